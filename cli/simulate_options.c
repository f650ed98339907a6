/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `duet simulate`: from texts to a checked struct duet__simulation. */
#include "cli/simulate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <duet/model.h>
#include <duet/policy.h>

#include "cli/command.h"
#include "lib/plugin.h"
#include "lib/units.h"

/* Options as texts; NULL: not given. */
struct raw {
    char *platform, *n, *tile, *precision, *cpus, *gpus, *policy, *reps, *seed, *jobs;
    char *gpu_memory, *gpu_window, *window, *model, *model_error, *costs;
    char *trace, *gantt, *html, *machine_xml;
    char **links, **params;
    gboolean set_arch, noise, extrapolate, no_costs, no_peer, json, csv, wall, quiet;
};

static const char summary[] =
    "Simulates a task graph on a machine, under one or several scheduling policies, and prints one "
    "line\na policy: makespan, rate, bytes moved, cache hits, idle time, lower bounds.";

static const char notes[] =
    "Run r of a policy (from 0) has seed S + r. The same command gives the same output, byte for "
    "byte,\nwhich is why the time a simulation took is left out of it unless --wall asks for it. "
    "Makespans of\nseveral runs are given as their median and the 95 % confidence interval of "
    "their "
    "mean.\n\n"
    "With several policies, --trace and --gantt write one file each, the policy's name before the\n"
    "extension; with several runs, they show the first. duet list shows what there is.\n\n"
    "Example:\n"
    "  duet simulate cholesky --platform idgraf --n 38400 --tile 960 --cpus 4 --gpus 8 \\\n"
    "      --policy all --set-arch --html report.html";

static bool parse_texts(struct raw *raw, int *argc, char ***argv)
{
    const GOptionEntry entries[] = {
        {"platform", 'p', 0, G_OPTION_ARG_STRING, &raw->platform, "Machine: name or file", "P"},
        {"n", 'n', 0, G_OPTION_ARG_STRING, &raw->n, "Size of the problem", "N"},
        {"tile", 't', 0, G_OPTION_ARG_STRING, &raw->tile, "Edge of a tile, in elements", "T"},
        {"precision", 0, 0, G_OPTION_ARG_STRING, &raw->precision, "s or d (default)", "s|d"},
        {"cpus", 0, 0, G_OPTION_ARG_STRING, &raw->cpus,
         "Computing cores; default: all that feed no GPU", "C"},
        {"gpus", 0, 0, G_OPTION_ARG_STRING, &raw->gpus, "GPUs; default: all", "G"},
        {"policy", 0, 0, G_OPTION_ARG_STRING, &raw->policy,
         "Policies, by name or shared object; default: ws", "A,B,...|all|help"},
        {"reps", 0, 0, G_OPTION_ARG_STRING, &raw->reps, "Runs of each policy; default: 1", "R"},
        {"seed", 0, 0, G_OPTION_ARG_STRING, &raw->seed, "Seed of the first run; default: 1", "S"},
        {"set-arch", 0, 0, G_OPTION_ARG_NONE, &raw->set_arch,
         "Kernels that GPUs have run on GPUs only", NULL},
        {"noise", 0, 0, G_OPTION_ARG_NONE, &raw->noise,
         "Draw kernel times from the measured distribution", NULL},
        {"extrapolate", 0, 0, G_OPTION_ARG_NONE, &raw->extrapolate,
         "Allow kernel sizes beyond the measured ones", NULL},
        {"no-costs", 0, 0, G_OPTION_ARG_NONE, &raw->no_costs,
         "The runtime's own operations take no time", NULL},
        {"costs", 0, 0, G_OPTION_ARG_STRING, &raw->costs,
         "Times of the runtime's own operations, \"submit=1us,steal=2us\"", "LIST"},
        {"link", 0, 0, G_OPTION_ARG_STRING_ARRAY, &raw->links,
         "Bandwidth of a kind of links, \"pcie=12GB/s\" (repeatable)", "NAME=BW"},
        {"gpu-memory", 0, 0, G_OPTION_ARG_STRING, &raw->gpu_memory, "Memory of each GPU, \"6GiB\"",
         "SIZE"},
        {"gpu-window", 0, 0, G_OPTION_ARG_STRING, &raw->gpu_window,
         "Tasks in preparation or in flight per GPU; default: 2", "K"},
        {"no-peer", 0, 0, G_OPTION_ARG_NONE, &raw->no_peer, "No direct copies between GPUs", NULL},
        {"window", 0, 0, G_OPTION_ARG_STRING, &raw->window,
         "Submitted, unfinished tasks at most; default: 65536", "W"},
        {"model", 0, 0, G_OPTION_ARG_STRING, &raw->model, "Performance model; default: history",
         "M|help"},
        {"model-error", 0, 0, G_OPTION_ARG_STRING, &raw->model_error,
         "Relative error put into what policies believe, 0 to below 1", "E"},
        {"param", 0, 0, G_OPTION_ARG_STRING_ARRAY, &raw->params,
         "Parameter of the workload (repeatable)", "NAME=VALUE"},
        {"json", 0, 0, G_OPTION_ARG_NONE, &raw->json, "Print JSON", NULL},
        {"csv", 0, 0, G_OPTION_ARG_NONE, &raw->csv, "Print CSV, one line a run", NULL},
        {"wall", 0, 0, G_OPTION_ARG_NONE, &raw->wall, "Print how long the simulations took, too",
         NULL},
        {"trace", 0, 0, G_OPTION_ARG_FILENAME, &raw->trace, "Write a Perfetto trace", "F.json"},
        {"gantt", 0, 0, G_OPTION_ARG_FILENAME, &raw->gantt, "Write a Gantt chart", "F.svg"},
        {"html", 0, 0, G_OPTION_ARG_FILENAME, &raw->html, "Write a page with all of it", "F.html"},
        {"machine-xml", 0, 0, G_OPTION_ARG_FILENAME, &raw->machine_xml,
         "Write the machine as a SimGrid platform, and its kernel times beside it", "F.xml"},
        {"jobs", 'j', 0, G_OPTION_ARG_STRING, &raw->jobs,
         "Runs at a time; default: one a core of this machine", "J"},
        {"quiet", 'q', 0, G_OPTION_ARG_NONE, &raw->quiet, "No progress bar", NULL},
        {NULL, 0, 0, G_OPTION_ARG_NONE, NULL, NULL, NULL},
    };

    return duet__parse_options("simulate", "WORKLOAD", summary, notes, entries, argc, argv);
}

static void raw_fini(struct raw *raw)
{
    char *texts[] = {raw->platform,   raw->n,      raw->tile,  raw->precision,   raw->cpus,
                     raw->gpus,       raw->policy, raw->reps,  raw->seed,        raw->jobs,
                     raw->gpu_memory, raw->window, raw->model, raw->model_error, raw->costs,
                     raw->gpu_window, raw->trace,  raw->gantt, raw->html,        raw->machine_xml};

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
        g_free(texts[i]);
    g_strfreev(raw->links);
    g_strfreev(raw->params);
}

/* A text that lives as long as the simulation. */
static const char *keep(struct duet__simulation *simulation, char *text)
{
    g_ptr_array_add(simulation->texts, text);
    return text;
}

/* The option's number, unchanged where it was not given. */
static int count_option(const char *option, const char *text, uint64_t low, uint64_t high,
                        uint64_t *out, struct duet_message *message)
{
    return text ? duet__parse_count(option, text, low, high, out, message) : 0;
}

static int int_option(const char *option, const char *text, uint64_t low, int *out,
                      struct duet_message *message)
{
    uint64_t value;
    int result;

    if (!text)
        return 0;
    result = duet__parse_count(option, text, low, 1000000, &value, message);
    if (!result)
        *out = (int)value;
    return result;
}

/* Splits "NAME=VALUE". */
static int split(struct duet__simulation *simulation, const char *option, const char *text,
                 const char **name, const char **value, struct duet_message *message)
{
    const char *equals = strchr(text, '=');

    if (!equals || equals == text)
        return duet_fail(message, DUET_EINVAL, "%s takes NAME=VALUE, not '%s'", option, text);
    *name = keep(simulation, g_strndup(text, (size_t)(equals - text)));
    *value = keep(simulation, g_strdup(equals + 1));
    return 0;
}

static int read_params(struct duet__simulation *simulation, char *const *params,
                       struct duet_message *message)
{
    for (; params && *params; params++) {
        struct duet_setting setting = {0};
        int result = split(simulation, "--param", *params, &setting.name, &setting.value, message);

        if (result)
            return result;
        g_array_append_val(simulation->settings, setting);
    }
    simulation->problem.settings = (const struct duet_setting *)(void *)simulation->settings->data;
    simulation->problem.setting_count = simulation->settings->len;
    return 0;
}

static int read_links(struct duet__simulation *simulation, char **links,
                      struct duet_message *message)
{
    for (char **link = links; link && *link; link++) {
        struct duet_link_override override = {0};
        const char *value = "";
        int result = split(simulation, "--link", *link, &override.name, &value, message);

        if (!result)
            result = duet__parse_bandwidth("--link", value, &override.bandwidth_Bps, message);
        if (result)
            return result;
        g_array_append_val(simulation->links, override);
    }
    if (links && *links)
        simulation->config.links = keep(simulation, g_strjoinv(",", links));
    return 0;
}

static int read_machine(struct duet__simulation *simulation, const struct raw *raw,
                        struct duet_message *message)
{
    struct duet_config *config = &simulation->config;
    uint64_t gpu_window = 0;
    int result;

    if (!raw->platform)
        return duet_fail(message, DUET_EINVAL,
                         "which machine? --platform NAME (duet list platforms shows them)");
    if (!*raw->platform)
        return duet_fail(message, DUET_EINVAL,
                         "--platform takes the name of a machine or a file, not '' (duet list "
                         "platforms shows them)");
    config->simulate = keep(simulation, g_strdup(raw->platform));
    config->no_peer = raw->no_peer;
    config->strict = true; /* tiles that fit no GPU are more likely a mistake than a wish */
    result = int_option("--cpus", raw->cpus, 0, &config->cpus, message);
    if (!result)
        result = int_option("--gpus", raw->gpus, 0, &config->gpus, message);
    if (!result)
        result = count_option("--gpu-window", raw->gpu_window, 1, 1024, &gpu_window, message);
    if (!result && raw->gpu_memory)
        result =
            duet__parse_size("--gpu-memory", raw->gpu_memory, &config->gpu_memory_bytes, message);
    config->gpu_window = (unsigned)gpu_window;
    return result ? result : read_links(simulation, raw->links, message);
}

static int unknown_model(const char *name, struct duet_message *message)
{
    GString *known = g_string_new(NULL);
    int result;

    for (size_t i = 0; duet_model_at(i); i++)
        g_string_append_printf(known, "%s%s", i ? ", " : "", duet_model_at(i)->name);
    result = duet_fail(message, DUET_ENOTFOUND, "unknown performance model '%s', known are: %s",
                       name, known->str);
    g_string_free(known, TRUE);
    return result;
}

/* What concerns the runs and not the machine. */
static int read_run(struct duet__simulation *simulation, const struct raw *raw,
                    struct duet_message *message)
{
    struct duet_config *config = &simulation->config;
    uint64_t reps = 1, window = 0, jobs = g_get_num_processors();
    int result = count_option("--reps", raw->reps, 1, 100000, &reps, message);

    if (!result)
        result = count_option("--seed", raw->seed, 0, UINT64_MAX, &simulation->seed, message);
    if (!result)
        result = count_option("--jobs", raw->jobs, 1, 1000, &jobs, message);
    if (!result)
        result = count_option("--window", raw->window, 1, UINT32_MAX, &window, message);
    if (!result && raw->model_error)
        result = duet__parse_real("--model-error", raw->model_error, 0, 1, &config->model_error,
                                  message);
    if (!result && raw->model && !duet_model_find(raw->model))
        result = unknown_model(raw->model, message);
    if (!result && raw->costs && raw->no_costs)
        result = duet_fail(message, DUET_EINVAL, "--costs and --no-costs exclude each other");
    if (!result && raw->json && raw->csv)
        result = duet_fail(message, DUET_EINVAL, "--json and --csv exclude each other");
    config->model = keep(simulation, g_strdup(raw->model));
    config->costs = keep(simulation, g_strdup(raw->costs));
    config->window = (size_t)window;
    config->set_arch = raw->set_arch;
    config->noise = raw->noise;
    config->extrapolate = raw->extrapolate;
    config->no_costs = raw->no_costs;
    simulation->reps = (size_t)reps;
    simulation->jobs = (unsigned)jobs;
    return result;
}

static void all_policies(struct duet__simulation *simulation)
{
    GPtrArray *names = g_ptr_array_new();

    for (size_t i = 0; duet_policy_at(i); i++)
        g_ptr_array_add(names, g_strdup(duet_policy_at(i)->name));
    g_ptr_array_add(names, NULL);
    simulation->policies = (char **)g_ptr_array_free(names, FALSE);
}

static int read_policies(struct duet__simulation *simulation, const char *text,
                         struct duet_message *message)
{
    bool all;

    if (!text)
        text = "ws";
    all = strcmp(text, "all") == 0;
    if (all)
        all_policies(simulation);
    else
        simulation->policies = g_strsplit(text, ",", -1);
    simulation->policy_count = g_strv_length(simulation->policies);
    for (size_t i = 0; i < simulation->policy_count; i++) {
        const char *name = simulation->policies[i];
        const struct duet_policy *policy;
        int result;

        if (strcmp(name, "all") == 0 && !all)
            return duet_fail(message, DUET_EINVAL,
                             "--policy all stands alone: it is every policy that there is");
        result = duet__policy_load(name, &policy, message);
        if (result)
            return result;
        for (size_t k = 0; k < i; k++)
            if (strcmp(name, simulation->policies[k]) == 0)
                return duet_fail(message, DUET_EINVAL, "--policy names '%s' twice", name);
    }
    return simulation->policy_count
               ? 0
               : duet_fail(message, DUET_EINVAL, "--policy names no policy (--policy help)");
}

static int unknown_workload(const char *name, struct duet_message *message)
{
    GString *known = g_string_new(NULL);
    int result;

    for (size_t i = 0; duet_workload_at(i); i++)
        g_string_append_printf(known, "%s%s", i ? ", " : "", duet_workload_at(i)->name);
    if (name)
        result = duet_fail(message, DUET_ENOTFOUND, "unknown workload '%s', known are: %s", name,
                           known->str);
    else
        result = duet_fail(message, DUET_EINVAL,
                           "which workload? duet simulate WORKLOAD, one of: %s", known->str);
    g_string_free(known, TRUE);
    return result;
}

static int read_problem(struct duet__simulation *simulation, const char *workload,
                        const struct raw *raw, struct duet_message *message)
{
    struct duet_problem *problem = &simulation->problem;
    int result;

    simulation->workload = workload ? duet_workload_find(workload) : NULL;
    if (!simulation->workload)
        return unknown_workload(workload, message);
    problem->n = simulation->workload->default_n;
    problem->tile = simulation->workload->default_tile;
    problem->precision = 'd';
    problem->seed = simulation->seed;
    if (raw->precision && strcmp(raw->precision, "s") != 0 && strcmp(raw->precision, "d") != 0)
        return duet_fail(message, DUET_EINVAL, "--precision is s (single) or d (double), not '%s'",
                         raw->precision);
    if (raw->precision)
        problem->precision = raw->precision[0];
    result = count_option("--n", raw->n, 1, UINT32_MAX, &problem->n, message);
    if (!result)
        result = count_option("--tile", raw->tile, 1, UINT32_MAX, &problem->tile, message);
    if (!result)
        result = read_params(simulation, raw->params, message);
    return result ? result : simulation->workload->check(problem, message);
}

/* The machine that the runs will simulate, for reports, and as a file if one is asked for. */
static int build_machine(struct duet__simulation *simulation, struct duet_message *message)
{
    const struct duet_config *config = &simulation->config;
    const struct duet_platform_options options = {
        .cpus = config->cpus,
        .gpus = config->gpus,
        .gpu_memory_bytes = config->gpu_memory_bytes,
        .gpu_window = config->gpu_window,
        .no_peer = config->no_peer,
        .links = (const struct duet_link_override *)(void *)simulation->links->data,
        .link_count = simulation->links->len,
    };
    struct duet_platform *platform = NULL;
    int result = duet_platform_load(config->simulate, NULL, &platform, message);

    if (!result) {
        simulation->platform_name = g_strdup(duet_platform_name(platform));
        result = duet_platform_build(platform, &options, &simulation->machine, message);
    }
    if (!result && simulation->machine_xml)
        result = duet_platform_write_xml(&simulation->machine, duet_platform_calibration(platform),
                                         simulation->machine_xml, message);
    duet_platform_free(platform);
    return result;
}

/* The command line as one can paste it into a shell. */
static char *quote(int argc, char *const *argv)
{
    GString *text = g_string_new("duet");

    for (int i = 0; i < argc; i++) {
        char *valid = g_utf8_make_valid(argv[i], -1);
        char *quoted = *valid && !valid[strspn(valid, "abcdefghijklmnopqrstuvwxyz"
                                                      "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                      "0123456789_-+=./,:@%")]
                           ? g_strdup(valid)
                           : g_shell_quote(valid);

        g_string_append_printf(text, " %s", quoted);
        g_free(quoted);
        g_free(valid);
    }
    return g_string_free(text, FALSE);
}

/* All that is left once the options are texts. */
static int read_all(struct duet__simulation *simulation, const struct raw *raw, int argc,
                    char *const *argv, struct duet_message *message)
{
    int result;

    if (argc > 2)
        return duet_fail(message, DUET_EINVAL, "one workload at a time: '%s' is one too many",
                         argv[2]);
    result = read_run(simulation, raw, message);
    if (!result)
        result = read_problem(simulation, argc > 1 ? argv[1] : NULL, raw, message);
    if (!result)
        result = read_policies(simulation, raw->policy, message);
    if (!result)
        result = read_machine(simulation, raw, message);
    if (!result)
        result = duet__files_distinct(simulation, message);
    return result ? result : build_machine(simulation, message);
}

int duet__simulation_parse(struct duet__simulation *simulation, int argc, char **argv)
{
    struct duet_message message = {""};
    struct raw raw = {0};
    int status = -1, result;

    simulation->command = quote(argc, argv);
    simulation->settings = g_array_new(FALSE, FALSE, sizeof(struct duet_setting));
    simulation->links = g_array_new(FALSE, FALSE, sizeof(struct duet_link_override));
    simulation->texts = g_ptr_array_new_with_free_func(g_free);
    simulation->seed = 1;
    duet_config_init(&simulation->config);
    if (!parse_texts(&raw, &argc, &argv)) {
        raw_fini(&raw);
        return DUET__MISUSED;
    }
    simulation->json = raw.json;
    simulation->csv = raw.csv;
    simulation->wall = raw.wall;
    simulation->quiet = raw.quiet;
    simulation->trace = g_strdup(raw.trace);
    simulation->gantt = g_strdup(raw.gantt);
    simulation->html = g_strdup(raw.html);
    simulation->machine_xml = g_strdup(raw.machine_xml);
    if (raw.policy && strcmp(raw.policy, "help") == 0) {
        duet__print_policies();
        status = duet__finish_output();
    } else if (raw.model && strcmp(raw.model, "help") == 0) {
        duet__print_models();
        status = duet__finish_output();
    } else {
        result = read_all(simulation, &raw, argc, argv, &message);
        if (result)
            status = duet__complain(result == DUET_EIO ? DUET__MISUSED : duet__status_of(result),
                                    "%s", message.text);
    }
    raw_fini(&raw);
    return status;
}

void duet__simulation_fini(struct duet__simulation *simulation)
{
    g_free(simulation->command);
    if (simulation->settings)
        g_array_free(simulation->settings, TRUE);
    if (simulation->links)
        g_array_free(simulation->links, TRUE);
    if (simulation->texts)
        g_ptr_array_free(simulation->texts, TRUE);
    g_strfreev(simulation->policies);
    g_free(simulation->trace);
    g_free(simulation->gantt);
    g_free(simulation->html);
    g_free(simulation->machine_xml);
    g_free(simulation->platform_name);
    duet_machine_fini(&simulation->machine);
    *simulation = (struct duet__simulation){0};
}
