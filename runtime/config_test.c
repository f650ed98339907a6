/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration from the environment and from arguments, good and bad; opening with bad ones. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include <duet/duet.h>
#include <duet/trace.h>

#include <glib.h>
#include "runtime/settings.h"

/* Gives the environment these variables, "NAME=VALUE ...", and no others of duet. */
static void use_environment(const char *variables)
{
    g_auto(GStrv) names = g_listenv();
    g_auto(GStrv) all = g_strsplit(variables, " ", -1);
    for (char **name = names; *name; name++)
        if (g_str_has_prefix(*name, "DUET_"))
            g_unsetenv(*name);
    for (char **variable = all; *variable; variable++) {
        g_auto(GStrv) parts = g_strsplit(*variable, "=", 2);
        g_setenv(parts[0], parts[1], TRUE);
    }
}

static void set(struct duet_config *config, const char *variables)
{
    use_environment(variables);
    if (duet_config_environment(config, hear()))
        g_error("%s gives \"%s\"", variables, heard());
}

static void test_defaults(void)
{
    g_assert_cmpstr(duet_version(), ==, DUET_VERSION);
    struct duet_config config;
    struct duet_message message = {"unchanged"};
    memset(&config, 0x55, sizeof config);
    duet_config_init(&config);
    use_environment("");
    g_assert_cmpint(duet_config_environment(&config, &message), ==, DUET_OK);
    g_assert_cmpstr(message.text, ==, "unchanged");
    g_assert_null(config.simulate);
    g_assert_cmpint(config.cpus, ==, -1);
    g_assert_cmpint(config.gpus, ==, -1);
    g_assert_cmpuint(config.gpu_memory_bytes, ==, 0);
    g_assert_cmpfloat(config.gpu_memory_share, ==, 0);
    g_assert_cmpuint(config.gpu_window + config.gpu_window_short + config.gpu_streams, ==, 0);
    g_assert_true(config.pin_bytes == 0 && !config.no_pin);
    g_assert_null(config.policy);
    g_assert_true(!config.without && !config.context);
    g_assert_cmpuint(config.seed, ==, 0);
    g_assert_false(config.hold || config.priorities);
    g_assert_false(config.noise || config.set_arch || config.record || config.no_costs);
}

static void test_environment(void)
{
    struct duet_config config;
    duet_config_init(&config);
    set(&config,
        "DUET_SIMULATE=idgraf DUET_CPUS=4 DUET_GPUS=0 DUET_GPU_MEMORY=1.5GiB "
        "DUET_LINKS=pcie=12GB/s DUET_POLICY=heft DUET_MODEL=regression "
        "DUET_SEED=18446744073709551615 DUET_WINDOW=100 DUET_SET_ARCH=1 DUET_HOLD=1 "
        "DUET_PRIORITIES=none DUET_NOISE=yes DUET_EXTRAPOLATE= DUET_COSTS=submit=1us "
        "DUET_WITHOUT=caches,wake-ups DUET_CONTEXT=cholesky DUET_TRACE=trace.json DUET_REPORT=no");
    g_assert_cmpstr(config.simulate, ==, "idgraf");
    g_assert_cmpint(config.cpus, ==, 4);
    g_assert_cmpint(config.gpus, ==, 0);
    g_assert_cmpuint(config.gpu_memory_bytes, ==, 3ULL << 29);
    g_assert_cmpstr(config.links, ==, "pcie=12GB/s");
    g_assert_cmpstr(config.policy, ==, "heft");
    g_assert_cmpstr(config.model, ==, "regression");
    g_assert_cmpuint(config.seed, ==, G_MAXUINT64);
    g_assert_cmpuint(config.window, ==, 100);
    g_assert_true(config.set_arch && config.noise && config.extrapolate && config.hold);
    g_assert_cmpstr(config.priorities, ==, "none");
    g_assert_false(config.report);
    g_assert_cmpstr(config.costs, ==, "submit=1us");
    g_assert_cmpstr(config.without, ==, "caches,wake-ups");
    g_assert_cmpstr(config.context, ==, "cholesky");
    g_assert_cmpstr(config.trace, ==, "trace.json");
}

static void test_real_environment(void)
{
    struct duet_config config;
    duet_config_init(&config);
    g_assert_null(config.emulate);
    g_assert_cmpfloat(config.scale, ==, 0);
    g_assert_cmpfloat(config.watchdog_s, ==, 0);
    set(&config, "DUET_EMULATE=free DUET_SCALE=0.01 DUET_LOSE=gpu1@100 DUET_WATCHDOG=2.5 "
                 "DUET_NO_BIND=1");
    g_assert_cmpstr(config.emulate, ==, "free");
    g_assert_cmpfloat(config.scale, ==, 0.01);
    g_assert_cmpstr(config.lose, ==, "gpu1@100");
    g_assert_cmpfloat(config.watchdog_s, ==, 2.5);
    g_assert_true(config.no_bind);
    /* empty texts take back what an earlier source asked for */
    set(&config, "DUET_EMULATE= DUET_LOSE= DUET_WATCHDOG=never");
    g_assert_null(config.emulate);
    g_assert_null(config.lose);
    g_assert_cmpfloat(config.watchdog_s, <, 0);
}

/* A configuration is handed on whole, and nothing else is. */
static void test_handed_on(void)
{
    static const char variables[] =
        "DUET_SIMULATE=idgraf DUET_CPUS=0 DUET_GPU_MEMORY=33.3% DUET_GPU_WINDOW=3 DUET_PIN=none "
        "DUET_SCALE=0.1 DUET_WATCHDOG=never DUET_NOISE=1 DUET_SEED=123456789012 "
        "DUET_WITHOUT=caches DUET_POLICY=cp:b=3 DUET_MODEL_ERROR=0.25 DUET_COSTS=submit=1us "
        "DUET_WINDOW=4294967 DUET_CONTEXT=app DUET_PRIORITIES=workload DUET_JITTER=1 "
        "DUET_PERTURBATION=0.5";
    g_auto(GStrv) all = g_strsplit(variables, " ", -1);
    struct duet_config config;
    char **environment = g_environ_setenv(NULL, "DUET_TRACE", "old.json", TRUE);
    environment = g_environ_setenv(environment, "HOME", "/home", TRUE);
    duet_config_init(&config);
    set(&config, variables);
    environment = duet__config_environment(&config, environment);
    for (char **variable = all; *variable; variable++)
        g_assert_true(g_strv_contains((const char *const *)environment, *variable));
    g_assert_cmpstr(g_environ_getenv(environment, "HOME"), ==, "/home");
    g_assert_cmpuint(g_strv_length(environment), ==, g_strv_length(all) + 1);
    set(&config, "DUET_GPU_MEMORY=6GiB DUET_PIN=1MiB");
    config.scale = 0;
    environment = duet__config_environment(&config, environment);
    g_assert_cmpstr(g_environ_getenv(environment, "DUET_GPU_MEMORY"), ==, "6442450944");
    g_assert_cmpstr(g_environ_getenv(environment, "DUET_PIN"), ==, "1048576");
    g_assert_null(g_environ_getenv(environment, "DUET_SCALE"));
    g_strfreev(environment);
}

/* Uses of GPUs: a later setting takes back what was set otherwise before. */
static void test_gpu_environment(void)
{
    struct duet_config config;
    duet_config_init(&config);
    set(&config, "DUET_GPU_WINDOW=3 DUET_GPU_WINDOW_SHORT=1024 DUET_GPU_STREAMS=4");
    g_assert_cmpuint(config.gpu_window, ==, 3);
    g_assert_cmpuint(config.gpu_window_short, ==, 1024);
    g_assert_cmpuint(config.gpu_streams, ==, 4);
    set(&config, "DUET_GPU_MEMORY=80%");
    g_assert_cmpfloat(config.gpu_memory_share, ==, 0.8);
    g_assert_cmpuint(config.gpu_memory_bytes, ==, 0);
    set(&config, "DUET_GPU_MEMORY=2kB");
    g_assert_cmpfloat(config.gpu_memory_share, ==, 0);
    g_assert_cmpuint(config.gpu_memory_bytes, ==, 2000);
    set(&config, "DUET_GPU_MEMORY=100%");
    g_assert_cmpfloat(config.gpu_memory_share, ==, 1);
    g_assert_cmpuint(config.gpu_memory_bytes, ==, 0);
    set(&config, "DUET_GPU_MEMORY=0.5%");
    g_assert_cmpfloat(config.gpu_memory_share, ==, 0.005);
    set(&config, "DUET_PIN=2GiB");
    g_assert_true(config.pin_bytes == UINT64_C(1) << 31 && !config.no_pin);
    set(&config, "DUET_PIN=none");
    g_assert_true(config.pin_bytes == 0 && config.no_pin);
    set(&config, "DUET_PIN=7");
    g_assert_true(config.pin_bytes == 7 && !config.no_pin);
}

/* A bad variable is refused, and the message names the variable and the value. */
static void test_bad_environment(void)
{
    static const char *const bad[][2] = {
        {"DUET_CPUS", "-1|four"},
        {"DUET_GPUS", "2 ||1e3"},
        {"DUET_GPU_MEMORY", "0|6 GB|6gb|-1GB|0%|101%|-1%|80 %|80%%|%"},
        {"DUET_GPU_WINDOW", "0"},
        {"DUET_GPU_WINDOW_SHORT", "0|1025"},
        {"DUET_GPU_STREAMS", "0|65|two"},
        {"DUET_PIN", "0|None|50%|"},
        {"DUET_SEED", "0x10|18446744073709551616"},
        {"DUET_WINDOW", "0"},
        {"DUET_NOISE", "maybe"},
        {"DUET_SET_ARCH", "2"},
        {"DUET_HOLD", "2"},
        {"DUET_REPORT", "TRUE"},
        {"DUET_SCALE", "0|-1|1x"},
        {"DUET_WATCHDOG", "0|10s|nan"},
        {"DUET_NO_BIND", "maybe"},
        {"DUET_NODES", "0|4097|2x|64x65|2x2x2"},
        {"DUET_NETWORK", "bus"},
        {"DUET_WITHOUT", "luck|Caches|cache"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_auto(GStrv) values = g_strsplit(bad[i][1], "|", -1);
        for (char **value = values; *value; value++) {
            struct duet_config config;
            duet_config_init(&config);
            use_environment("");
            g_setenv(bad[i][0], *value, TRUE);
            FAILS(duet_config_environment(&config, hear()), DUET_EINVAL, bad[i][0]);
            SAYS(*value);
        }
    }
}

/* Options are taken out, the rest stays in order, and arguments prevail over the environment. */
static void test_arguments(void)
{
    g_auto(GStrv) all = g_strsplit("--duet-program first --duet-simulate=idgraf --other=1 "
                                   "--duet-cpus=2 -x --duet-noise --duet-gpu-memory=1GB last",
                                   " ", -1);
    char *argv[10]; /* shortened below, while `all` owns the strings */
    memcpy(argv, all, sizeof argv);
    int argc = 9;
    struct duet_config config;
    duet_config_init(&config);
    set(&config, "DUET_CPUS=4");
    g_assert_cmpint(duet_config_arguments(&config, &argc, argv, NULL), ==, DUET_OK);
    static const char *const rest[] = {"--duet-program", "first", "--other=1", "-x", "last"};
    g_assert_cmpint(argc, ==, G_N_ELEMENTS(rest));
    for (int i = 0; i < argc; i++)
        g_assert_cmpstr(argv[i], ==, rest[i]);
    g_assert_null(argv[argc]);
    g_assert_cmpstr(config.simulate, ==, "idgraf");
    g_assert_cmpint(config.cpus, ==, 2);
    g_assert_true(config.noise);
    g_assert_cmpuint(config.gpu_memory_bytes, ==, 1000000000);
}

static void subprocess_misspelt(void)
{
    struct duet_config config;
    duet_config_init(&config);
    /* a program's own are DUET_TILE and those behind it */
    use_environment("DUET_POLCY=heft DUET_GPU_WINDOW=2 DUET_TILE=64 DUET_HOME=/opt/duet "
                    "DUET_COMMAND=build/duet DUET_SIMGRID=ON");
    for (int i = 0; i < 2; i++) /* the second runtime of a program says it no more */
        g_assert_cmpint(duet_config_environment(&config, NULL), ==, DUET_OK);
}

static void test_misspelt_environment(void)
{
    g_test_trap_subprocess("/subprocess/misspelt", 0, 0);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr("duet: DUET_POLCY sets nothing: did you mean DUET_POLICY?\n");
}

static void test_bad_arguments(void)
{
    static const char *const bad[] = {"--duet-cpus=x",       "--duet-cpus",
                                      "--duet-nonsense=1",   "--duet-simulates=a",
                                      "--duet-window=-2",    "--duet-",
                                      "--duet-noise=2",      "--duet-seed= 1",
                                      "--duet-gpu-window=0", "--duet-without=start,end",
                                      "--duet-trace"};
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autofree char *line = g_strconcat("program/", bad[i], "/rest", NULL);
        g_auto(GStrv) all = g_strsplit(line, "/", -1);
        char *argv[4];
        int argc = 3;
        memcpy(argv, all, sizeof argv);
        struct duet_config config;
        duet_config_init(&config);
        FAILS(duet_config_arguments(&config, &argc, argv, hear()), DUET_EINVAL, "--duet-");
        if (i == 3)
            SAYS("did you mean --duet-simulate?");
        if (!strchr(bad[i], '=') && bad[i][7]) /* also where any text would do */
            SAYS(" takes a value behind an equals sign: --duet-");
    }
}

/* Every setting of the environment is named in duet.h, and has its field in a configuration, which
 * may be all that there is; options are said once in a command. */
static void test_settings(void)
{
    g_autofree char *header = NULL;
    const struct duet__option *setting, *other;
    g_assert_true(
        g_file_get_contents(DUET_SOURCE_DIR "/core/include/duet/duet.h", &header, NULL, NULL));
    for (size_t i = 0; (setting = duet__option_at(i)); i++) {
        g_autofree char *upper = g_ascii_strup(setting->name, -1);
        g_autofree char *name = g_strconcat("DUET_", g_strdelimit(upper, "-", '_'), NULL);
        if (setting->where & DUET__IN_ENVIRONMENT && !strstr(header, name))
            g_error("duet.h does not name %s", name);
        if (setting->where & DUET__IN_ENVIRONMENT)
            g_assert_cmpuint(setting->offset + setting->bytes, <=, sizeof(struct duet_config));
        g_assert_true(setting->where && *setting->help);
        for (size_t k = 0; k < i; k++) {
            other = duet__option_at(k);
            if (!strcmp(setting->name, other->name) && setting->where & other->where)
                g_error("%s is there twice", setting->name);
        }
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Opening                                                                                      */

/* Configurations that cannot be: of simulations, of emulated devices, of this machine. */
static void test_bad_open(void)
{
    static const struct {
        struct duet_config config; /* 0 CPUs or GPUs: as many as there are */
        int error;
        const char *fragment;
    } bad[] = {
        {{.simulate = "nowhere"}, DUET_ENOTFOUND, "nowhere"},
        {{.emulate = "nowhere"}, DUET_ENOTFOUND, "nowhere"},
        {{.simulate = "idgraf", .emulate = "free"}, DUET_EINVAL, "exclude each other"},
        {{.policy = "nobody"}, DUET_ENOTFOUND, "known are eager, ws"},
        {{.model = "guess"}, DUET_ENOTFOUND, "known are history"},
        {{.simulate = "idgraf", .costs = "submit=1us,lunch=1s"},
         DUET_EINVAL,
         "unknown cost 'lunch'"},
        {{.simulate = "idgraf", .costs = "submit=1"}, DUET_EINVAL, "takes a time with its unit"},
        {{.simulate = "idgraf", .without = "cores,lunch"}, DUET_EINVAL, "unknown cause 'lunch'"},
        {{.simulate = "idgraf", .links = "pcie"}, DUET_EINVAL, "NAME=VALUE"},
        {{.simulate = "idgraf", .cpus = 100}, DUET_EINVAL, "100"},
        {{.emulate = "idgraf", .cpus = 100}, DUET_EINVAL, "100"},
        {{.gpus = 1000}, DUET_EINVAL, "GPU"},
        {{.gpu_memory_bytes = 1 << 20, .gpu_memory_share = 0.5}, DUET_EINVAL, "given twice"},
        {{.gpu_memory_share = 1.5}, DUET_EINVAL, "a part of 1.5"},
        {{.gpu_memory_share = -0.5}, DUET_EINVAL, "above 0 and at most 1"},
        {{.gpu_memory_share = NAN}, DUET_EINVAL, "a part of nan"},
        {{.simulate = "idgraf", .gpu_window_short = 1}, DUET_EINVAL, "worker gpu0: the window of"},
        {{.emulate = "free", .gpus = 1, .gpu_window = 4, .gpu_window_short = 3},
         DUET_EINVAL,
         "worker gpu0: the window of short tasks"},
        {{.lose = "gpu0@1"}, DUET_EINVAL, "emulate"},
        {{.simulate = "idgraf", .lose = "gpu0@1"}, DUET_EINVAL, "emulate"},
        {{.emulate = "idgraf", .lose = "gpu99@1"}, DUET_EINVAL, "gpu99"},
        {{.scale = 0.5}, DUET_EINVAL, "platform"},
        {{.emulate = "free", .scale = 0.5}, DUET_EINVAL, "platform"},
        {{.emulate = "idgraf", .scale = -1}, DUET_EINVAL, "positive"},
        {{.emulate = "idgraf", .scale = NAN}, DUET_EINVAL, "positive"},
        {{.emulate = "idgraf", .scale = INFINITY}, DUET_EINVAL, "positive"},
        {{.watchdog_s = NAN}, DUET_EINVAL, "watchdog"},
    };
    use_environment("");
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        struct duet_runtime *duet = NULL;
        struct duet_config config = bad[i].config;
        config.size = sizeof config;
        config.cpus = config.cpus ? config.cpus : -1;
        config.gpus = config.gpus ? config.gpus : -1;
        FAILS(duet_open(&duet, &config, hear()), bad[i].error, bad[i].fragment);
        g_assert_null(duet);
    }
}

/* Costs: none, then one replaced; a second runtime beside the first or after it is refused. */
static void test_open(void)
{
    struct duet_runtime *duet = NULL, *second = NULL;
    struct duet_config config;
    duet_config_init(&config);
    config.simulate = "idgraf";
    config.no_costs = true;
    config.costs = "steal=2us,event=1us,wake=4us,spin=8us";
    WORKS(duet_open(&duet, &config, hear()));
    const struct duet_costs *costs = &duet_runtime_machine(duet)->costs;
    g_assert_cmpfloat(costs->submit_s, ==, 0);
    g_assert_cmpfloat(costs->push_s, ==, 0);
    g_assert_cmpfloat(costs->pop_s, ==, 0);
    g_assert_cmpfloat(costs->steal_s, ==, 2e-6);
    g_assert_cmpfloat(costs->kernel_launch_s, ==, 0);
    g_assert_cmpfloat(costs->copy_launch_s, ==, 0);
    g_assert_cmpfloat(costs->event_s, ==, 1e-6);
    g_assert_cmpfloat(costs->wake_s, ==, 4e-6);
    g_assert_cmpfloat(costs->spin_s, ==, 8e-6);
    /* several at a time, but for SimGrid's, of which a process can have one ever */
    WORKS(duet_open(&second, &config, hear()));
    g_assert_cmpint(duet_close(duet), ==, DUET_OK);
    g_assert_cmpint(duet_close(second), ==, DUET_OK);
    config.network_engine = "simgrid";
    int error = duet_open(&duet, &config, hear());
    if (error != DUET_EABSENT) {
        g_assert_cmpint(error, ==, DUET_OK);
        g_assert_cmpint(duet_open(&second, &config, hear()), ==, DUET_EBUSY);
        g_assert_cmpint(duet_close(duet), ==, DUET_OK);
        g_assert_cmpint(duet_open(&second, &config, hear()), ==, DUET_EBUSY);
        g_assert_null(second);
    }
    config.network_engine = "ns3";
    FAILS(duet_open(&second, &config, hear()), DUET_EINVAL, "there are fluid and simgrid");
    g_assert_cmpint(duet_close(NULL), ==, DUET_OK);
}

/* Configurations of programs compiled with an older or a newer duet, and one that was never set. */
static void test_sizes(void)
{
    union {
        struct duet_config config;
        unsigned char bytes[sizeof(struct duet_config) + 8];
    } given;
    const size_t old = offsetof(struct duet_config, policy);
    struct duet_runtime *duet = NULL;
    memset(&given, 0x5a, sizeof given);
    duet_config_init_size(&given.config, old);
    set(&given.config, "DUET_CPUS=1 DUET_POLICY=eager");
    g_assert_cmpint(given.config.cpus, ==, 1);
    g_assert_cmpuint(given.config.size, ==, old);
    for (size_t i = old; i < sizeof given; i++)
        g_assert_cmpuint(given.bytes[i], ==, 0x5a);
    given.config.gpus = 0;
    WORKS(duet_open(&duet, &given.config, hear()));
    g_assert_cmpint(duet_close(duet), ==, DUET_OK);
    duet_config_init_size(&given.config, sizeof given);
    FAILS(duet_open(&duet, &given.config, hear()), DUET_EINVAL, "newer duet");
    memset(&given, 0, sizeof given);
    FAILS(duet_open(&duet, &given.config, hear()), DUET_EINVAL, "duet_config_init");
}

TEST_MAIN(test_sizes, test_defaults, test_environment, test_real_environment, test_handed_on,
          test_gpu_environment, test_bad_environment, subprocess_misspelt,
          test_misspelt_environment, test_arguments, test_bad_arguments, test_settings,
          test_bad_open, test_open)
