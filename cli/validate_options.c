/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `duet validate`: from texts to an experiment whose cases are made. */
#include <string.h>

#include "cli/calibrate.h"
#include "cli/command.h"
#include "cli/validate.h"
#include "platforms/model/effects.h"
#include "world/units.h"

static const char summary[] =
    "Runs task graphs on this machine, simulates the same, and says how far the two are apart, and "
    "why.";

static const char notes[] =
    "A case is a workload with a size, a tile, a policy, and numbers of CPUs and GPUs: one for "
    "each\ncombination of the lists, or of those in the file of --cases. Everything is simulated "
    "first, from\nthe platform that duet calibrate has measured here; then each round makes some "
    "of the measured runs\nof every case. An interrupt (Ctrl-C) reports the cases as far as they "
    "were measured.\n\n"
    "--emulate PLATFORM measures at that platform's pace instead of on this machine; its times are "
    "means,\nso the simulation has no noise then. Only how long threads take to wake and to notice "
    "is this\nmachine's, and measured first.\n\n"
    "--calibrate measures the kernels of the cases in the same minutes as the cases, in other "
    "runs, "
    "so that\na machine whose speed drifts is predicted as it was. The simulations are made last "
    "then.\n\n"
    "Examples:\n"
    "  duet validate cholesky --calibrate --n 2048,4096 --tile 256 --policy ws,heft\n"
    "  duet calibrate && duet validate cholesky lu --n 2048,4096 --tile 256 --policy ws,heft\n"
    "  duet validate --cases cases.json --html report.html --fail-over 5%\n"
    "  duet validate cholesky --emulate idgraf --scale 0.1 --n 9600 --tile 960 --gpus 1,4,8";

/* ------------------------------------------------------------------------------------------- */
/* The command line                                                                             */

static int read_counts(struct duet__validate *validate, const struct duet__texts *texts,
                       struct duet_message *message)
{
    struct duet_experiment *experiment = &validate->experiment;
    /* at least as many as will say something; those at a pace are all alike */
    uint64_t reps = experiment->until > 0 ? 5 : 3, warmups = 1;
    /* what rounds differ by is learnt from many short ones, unless the number of runs is given */
    uint64_t rounds = texts->reps ? 5 : 10;
    uint64_t jobs = g_get_num_processors(), seed = 1;
    uint64_t sim_reps = texts->no_noise ? 1 : 15;
    int error = duet__count_option("--reps", texts->reps, 1, 100000, &reps, message);

    if (!error)
        error = duet__count_option("--rounds", texts->rounds, 1, 100000, &rounds, message);
    if (!error)
        error = duet__count_option("--warmup", texts->warmup, 0, 100000, &warmups, message);
    if (!error)
        error = duet__count_option("--sim-reps", texts->sim_reps, 1, 100000, &sim_reps, message);
    if (!error)
        error = duet__count_option("--jobs", texts->jobs, 1, 1000, &jobs, message);
    if (!error)
        error = duet__count_option("--seed", texts->seed, 0, UINT64_MAX, &seed, message);
    experiment->base.reps = (size_t)reps;
    experiment->base.warmups = (size_t)warmups;
    experiment->base.jobs = (unsigned)jobs;
    experiment->base.seed = seed;
    experiment->rounds = (size_t)(experiment->until > 0 ? rounds : MIN(rounds, reps));
    experiment->sim_reps = (size_t)sim_reps;
    return error;
}

/* "5%" as 0.05. */
static int read_percent(const char *option, const char *text, double *out,
                        struct duet_message *message)
{
    char *number = g_str_has_suffix(text, "%") ? g_strndup(text, strlen(text) - 1) : NULL;
    double percent = 0;
    struct duet_message ignored;

    if (!number || duet__parse_real(option, number, 0, 1e6, &percent, &ignored) || !(percent > 0)) {
        g_free(number);
        return duet_fail(message, DUET_EINVAL,
                         "%s takes a percentage above 0, such as 5%%, not "
                         "'%s'",
                         option, text);
    }
    g_free(number);
    *out = percent / 100;
    return 0;
}

/* How many runs are enough. */
static int read_goal(struct duet_experiment *experiment, const struct duet__texts *texts,
                     struct duet_message *message)
{
    bool wanted =
        texts->until || texts->case_time || (!texts->reps && !duet_experiment_paced(experiment));
    int error = 0;

    experiment->until = wanted ? 0.01 : 0;
    experiment->case_time_s = 3;
    if (texts->until)
        error = read_percent("--until", texts->until, &experiment->until, message);
    if (!error && texts->case_time)
        error =
            duet__parse_seconds("--case-time", texts->case_time, &experiment->case_time_s, message);
    return error;
}

/* Options that go with others only, or that exclude each other. */
static int check_combinations(const struct duet__texts *texts, bool paced,
                              struct duet_message *message)
{
    if (texts->json && texts->csv)
        return duet_fail(message, DUET_EINVAL, "--json and --csv exclude each other");
    if (!texts->calibrate && (texts->out || texts->calibrate_time))
        return duet_fail(message, DUET_EINVAL, "%s is for --calibrate",
                         texts->out ? "--out" : "--calibrate-time");
    if (texts->calibrate && texts->platform)
        return duet_fail(message, DUET_EINVAL,
                         "--calibrate and --platform exclude each other: what is measured is what "
                         "the predictions are made from");
    if (texts->calibrate && paced)
        return duet_fail(message, DUET_EINVAL,
                         "--calibrate: %s is known already, and nothing is measured of it",
                         texts->emulate);
    if (texts->scale && !paced)
        return duet_fail(message, DUET_EINVAL,
                         "--scale is for an emulated platform: --emulate PLATFORM (duet list "
                         "platforms shows them)");
    if (paced && texts->follow_speed)
        return duet_fail(message, DUET_EINVAL,
                         "--follow-speed: an emulated platform is always as fast as it says");
    return 0;
}

static int read_settings(struct duet__validate *validate, const struct duet__texts *texts,
                         struct duet_message *message)
{
    struct duet_experiment *experiment = &validate->experiment;
    struct duet__job *job = &validate->job;
    /* the lists are those of the specs */
    const struct duet__texts common = {.emulate = texts->emulate, .scale = texts->scale};
    unsigned ignored;
    int error =
        check_combinations(texts, texts->emulate && strcmp(texts->emulate, "free") != 0, message);

    job->json = texts->json;
    job->csv = texts->csv;
    job->quiet = texts->quiet;
    job->html = g_strdup(texts->html);
    validate->verbose = texts->verbose;
    if (!error)
        error = duet__job_read_emulation(job, &common, message);
    if (!error)
        error = duet__job_read_machine(job, &common, message);
    job->request.config.extrapolate = texts->extrapolate;
    job->request.config.without = duet_request_keep(&job->request, g_strdup(texts->without));
    duet_request_fini(&experiment->base);
    duet_request_copy(&experiment->base, &job->request);
    experiment->noise = !texts->no_noise && !duet_experiment_paced(experiment);
    experiment->follow_speed = texts->follow_speed;
    experiment->keep_disturbed = texts->keep_disturbed;
    experiment->keep = texts->html != NULL;
    if (!error)
        error = read_goal(experiment, texts, message);
    if (!error)
        error = read_counts(validate, texts, message);
    if (!error)
        error = duet__effects_parse("--without", texts->without, &ignored, message);
    if (!error && texts->budget)
        error = duet__parse_seconds("--budget", texts->budget, &validate->budget_s, message);
    if (!error && texts->fail_over)
        error = read_percent("--fail-over", texts->fail_over, &validate->fail_over, message);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Cases                                                                                        */

/* The numbers of "A,B,C". */
static int read_list(const char *option, const char *text, uint64_t low, uint64_t high,
                     GArray *list, struct duet_message *message)
{
    char **parts;
    int error = 0;

    if (!text)
        return 0;
    if (!*text)
        return duet_fail(message, DUET_EINVAL, "%s takes a list, not ''", option);
    parts = g_strsplit(text, ",", -1);
    for (size_t i = 0; parts[i] && !error; i++) {
        uint64_t value = 0;

        error = duet__parse_count(option, parts[i], low, high, &value, message);
        g_array_append_val(list, value);
    }
    g_strfreev(parts);
    return error;
}

static int read_spec(struct duet_spec *spec, const struct duet__texts *texts,
                     struct duet_message *message)
{
    int error = 0;

    spec->set_arch = texts->set_arch;
    if (texts->params) {
        g_strfreev(spec->params);
        spec->params = g_strdupv(texts->params);
    }
    if (texts->policy) {
        g_strfreev(spec->policies);
        spec->policies = g_strsplit(texts->policy, ",", -1);
    }
    if (texts->policy && !*texts->policy)
        error = duet_fail(message, DUET_EINVAL, "--policy takes a list, not ''");
    if (!error && texts->precision)
        error = duet_precision_read(texts->precision, &spec->precision, message);
    if (!error)
        error = read_list("--n", texts->n, 1, UINT32_MAX, spec->n, message);
    if (!error)
        error = read_list("--tile", texts->tile, 1, UINT32_MAX, spec->tile, message);
    if (!error)
        error = read_list("--cpus", texts->cpus, 0, 1000000, spec->cpus, message);
    if (!error)
        error = read_list("--gpus", texts->gpus, 0, 1000000, spec->gpus, message);
    return error ? error : duet_spec_check(spec, message);
}

/* The specs that the options describe, one for each workload in argv[1] and after. */
static int read_workloads(struct duet__validate *validate, const struct duet__texts *texts,
                          int argc, char *const *argv, struct duet_message *message)
{
    int error = 0;

    for (int i = 1; (i < argc || i == 1) && !error; i++) {
        char *arguments[] = {argv[0], i < argc ? argv[i] : NULL, NULL};
        struct duet_spec *spec = duet_spec_new();

        g_ptr_array_add(validate->experiment.specs, spec);
        error = duet__job_read_workload(&validate->job, i < argc ? 2 : 1, arguments, message);
        spec->workload = validate->job.request.workload;
        for (int k = 1; k < i && !error; k++)
            if (strcmp(argv[i], argv[k]) == 0)
                error = duet_fail(message, DUET_EINVAL, "%s is named twice", argv[i]);
        if (!error)
            error = read_spec(spec, texts, message);
    }
    return error;
}

/* What is in the file of cases is not said again. */
static int check_contradictions(const struct duet__texts *texts, int argc, char *const *argv,
                                struct duet_message *message)
{
    const struct {
        const char *name;
        bool given;
    } options[] = {
        {"--n", texts->n},           {"--tile", texts->tile},
        {"--cpus", texts->cpus},     {"--gpus", texts->gpus},
        {"--policy", texts->policy}, {"--precision", texts->precision},
        {"--param", texts->params},  {"--set-arch", texts->set_arch},
    };

    if (argc > 1)
        return duet_fail(message, DUET_EINVAL, "--cases says which workloads: not '%s' as well",
                         argv[1]);
    for (size_t i = 0; i < G_N_ELEMENTS(options); i++)
        if (options[i].given)
            return duet_fail(message, DUET_EINVAL, "--cases and %s exclude each other",
                             options[i].name);
    return 0;
}

static int read_specs(struct duet__validate *validate, const struct duet__texts *texts, int argc,
                      char *const *argv, struct duet_message *message)
{
    int error;

    if (!texts->cases)
        return read_workloads(validate, texts, argc, argv, message);
    validate->cases = g_strdup(texts->cases);
    error = check_contradictions(texts, argc, argv, message);
    return error ? error : duet_specs_read(validate->experiment.specs, texts->cases, message);
}

/* ------------------------------------------------------------------------------------------- */
/* The platform                                                                                 */

/* The file that duet calibrate writes for this machine. */
static int find_own_platform(struct duet_experiment *experiment, struct duet_message *message)
{
    const char *host = g_get_host_name();

    /* the first part of the name, as duet calibrate calls it */
    experiment->platform_name = g_strdup_printf("./%.*s.json", (int)strcspn(host, "."), host);
    if (g_file_test(experiment->platform_name, G_FILE_TEST_EXISTS))
        return 0;
    return duet_fail(message, DUET_EINVAL,
                     "there is no %s to predict from: run duet calibrate first, name what it wrote "
                     "(--platform FILE), or let it be measured along with the cases (--calibrate)",
                     experiment->platform_name);
}

/* What is measured between the rounds, and a platform without times until then. */
static int begin_calibration(struct duet__validate *validate, const struct duet__texts *texts,
                             struct duet_message *message)
{
    struct duet_recalibration *recalibration = &validate->recalibration;
    struct duet__calibrate_options names = {.out = g_strdup(texts->out)};
    int error = duet__calibrate_options_name(&names, NULL, message);

    validate->calibrate = true;
    validate->out = g_strdup(texts->out);
    recalibration->name = g_steal_pointer(&names.request.name);
    g_free(names.out);
    if (!error && texts->calibrate_time)
        error = duet__parse_seconds("--calibrate-time", texts->calibrate_time,
                                    &recalibration->time_s, message);
    if (!error && texts->calibrate_time && !(recalibration->time_s >= 0.1))
        error = duet_fail(message, DUET_EINVAL, "--calibrate-time takes 0.1s or more, not '%s'",
                          texts->calibrate_time);
    if (!error && validate->out)
        error = duet_platform_may_write(validate->out, DUET_WRITE_REPLACE, message);
    if (!error)
        error = duet_recalibration_begin(recalibration, &validate->experiment, message);
    return error;
}

static int read_platform(struct duet__validate *validate, const struct duet__texts *texts,
                         struct duet_message *message)
{
    struct duet_experiment *experiment = &validate->experiment;
    bool paced = duet_experiment_paced(experiment);
    int error = 0;

    if (texts->platform && !*texts->platform)
        return duet_fail(message, DUET_EINVAL,
                         "--platform takes the name of a machine or a file, not ''");
    if (texts->calibrate)
        return begin_calibration(validate, texts, message);
    if (texts->platform || paced)
        experiment->platform_name = g_strdup(texts->platform ? texts->platform : texts->emulate);
    else if (texts->emulate)
        error = duet_fail(message, DUET_EINVAL,
                          "--emulate free needs --platform FILE: duet calibrate --emulate free "
                          "writes one");
    else
        error = find_own_platform(experiment, message);
    if (error)
        return error;
    validate->job.request.config.simulate = experiment->platform_name;
    validate->job.platform_option = "--platform";
    error = duet_platform_load(experiment->platform_name, NULL, &experiment->platform, message);
    if (!error && texts->follow_speed && !(experiment->platform->probe_s > 0))
        error = duet_fail(message, DUET_EINVAL,
                          "--follow-speed: %s does not say how fast the cores were when it was "
                          "calibrated",
                          experiment->platform_name);
    experiment->probe = !error && !paced && experiment->platform->probe_s > 0;
    return error;
}

/* Whether what is written would replace the file of cases, or one another. */
static int check_files(const struct duet__validate *validate, const struct duet__texts *texts,
                       struct duet_message *message)
{
    const struct {
        const char *option, *path;
    } files[] = {{"--cases", validate->cases},
                 {"--html", validate->job.html},
                 {"--out", texts->out}};
    int error = duet__files_distinct(&validate->job, message);

    for (size_t i = 0; i < G_N_ELEMENTS(files) && !error; i++)
        for (size_t k = 0; k < i && !error; k++)
            if (files[i].path && files[k].path && duet__files_same(files[i].path, files[k].path))
                error = duet_fail(message, DUET_EINVAL, "%s and %s are one file, %s",
                                  files[k].option, files[i].option, files[k].path);
    return error;
}

static int read_all(struct duet__validate *validate, const struct duet__texts *texts, int argc,
                    char *const *argv, struct duet_message *message)
{
    int error = read_settings(validate, texts, message);

    if (!error)
        error = read_specs(validate, texts, argc, argv, message);
    if (!error)
        error = read_platform(validate, texts, message);
    if (!error)
        error = check_files(validate, texts, message);
    if (!error)
        error = duet_pairs_make(&validate->experiment, message);
    if (!error && validate->calibrate)
        error = duet_recalibration_plan(&validate->recalibration, &validate->experiment, message);
    return error;
}

int duet__validate_parse(struct duet__validate *validate, int argc, char **argv)
{
    struct duet_message message = {""};
    struct duet__texts texts = {0};
    int status = DUET__MISUSED;

    if (duet__texts_parse(&texts, DUET__FOR_VALIDATE, "validate", summary, notes, &argc, &argv)) {
        status = duet__job_help(&texts);
        if (status < 0) {
            int error = read_all(validate, &texts, argc, argv, &message);

            if (error)
                status = duet__job_refuse(error, &message);
        }
    }
    duet__texts_fini(&texts);
    return status;
}
