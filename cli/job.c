/* SPDX-License-Identifier: Apache-2.0 */
/* From options as texts to a checked struct duet__job. */
#include "cli/job.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <duet/model.h>
#include <duet/policy.h>

#include "cli/command.h"
#include "world/plugin.h"
#include "world/units.h"

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

void duet__job_init(struct duet__job *job, const char *name, int argc, char *const *argv)
{
    job->name = name;
    job->command = quote(argc, argv);
    duet_request_init(&job->request);
    job->links = g_array_new(FALSE, FALSE, sizeof(struct duet_link_override));
}

void duet__job_fini(struct duet__job *job)
{
    g_free(job->command);
    duet_request_fini(&job->request);
    g_clear_pointer(&job->links, g_array_unref);
    duet_platform_free(job->platform);
    g_free(job->trace);
    g_free(job->gantt);
    g_free(job->html);
    g_free(job->machine_xml);
    *job = (struct duet__job){0};
}

bool duet__job_records(const struct duet__job *job)
{
    return job->trace || job->gantt || job->html;
}

int duet__job_help(const struct duet__texts *texts)
{
    if (texts->policy && strcmp(texts->policy, "help") == 0)
        duet__print_policies();
    else if (texts->model && strcmp(texts->model, "help") == 0)
        duet__print_models();
    else
        return -1;
    return duet__finish_output();
}

int duet__job_refuse(int error, const struct duet_message *message)
{
    /* a file that cannot be read is bad input */
    return duet__complain(error == DUET_EIO ? DUET__MISUSED : duet__status_of(error), "%s",
                          message->text);
}

int duet__job_complain(const char *what, int error, const char *message)
{
    int status = duet__status_of(error);
    bool hint = strstr(message, "allow extrapolation") != NULL;

    if (status == DUET__MISUSED)
        return duet__complain(status, "%s%s", message, hint ? " (--extrapolate)" : "");
    return duet__complain(status, "%s failed: %s", what, message);
}

int duet__count_option(const char *option, const char *text, uint64_t low, uint64_t high,
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

/* A number of 1 or more; not given: *out stays. */
static int few_option(const char *option, const char *text, uint64_t most, unsigned *out,
                      struct duet_message *message)
{
    uint64_t value = *out;
    int result = duet__count_option(option, text, 1, most, &value, message);

    *out = (unsigned)value;
    return result;
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

int duet__job_read_run(struct duet__job *job, const struct duet__texts *texts, uint64_t reps,
                       struct duet_message *message)
{
    struct duet_config *config = &job->request.config;
    uint64_t window = 0;
    int result = duet__count_option("--reps", texts->reps, 1, 100000, &reps, message);

    if (!result)
        result =
            duet__count_option("--seed", texts->seed, 0, UINT64_MAX, &job->request.seed, message);
    if (!result)
        result = duet__count_option("--window", texts->window, 1, UINT32_MAX, &window, message);
    if (!result && texts->model_error)
        result = duet__parse_real("--model-error", texts->model_error, 0, 1, &config->model_error,
                                  message);
    if (!result && texts->model && !duet_model_find(texts->model))
        result = unknown_model(texts->model, message);
    if (!result && texts->json && texts->csv)
        result = duet_fail(message, DUET_EINVAL, "--json and --csv exclude each other");
    config->model = duet_request_keep(&job->request, g_strdup(texts->model));
    config->window = (size_t)window;
    config->set_arch = texts->set_arch;
    config->extrapolate = texts->extrapolate;
    job->request.reps = (size_t)reps;
    job->json = texts->json;
    job->csv = texts->csv;
    job->quiet = texts->quiet;
    job->trace = g_strdup(texts->trace);
    job->gantt = g_strdup(texts->gantt);
    job->html = g_strdup(texts->html);
    job->machine_xml = g_strdup(texts->machine_xml);
    job->request.bounds = true;
    job->request.records = duet__job_records(job) ? DUET_RECORDS_FIRST : DUET_RECORDS_NONE;
    return result;
}

static int unknown_workload(const struct duet__job *job, const char *name,
                            struct duet_message *message)
{
    GString *known = g_string_new(NULL);
    int result;

    for (size_t i = 0; duet_workload_at(i); i++)
        g_string_append_printf(known, "%s%s", i ? ", " : "", duet_workload_at(i)->name);
    if (name)
        result = duet_fail(message, DUET_ENOTFOUND, "unknown workload '%s', known are: %s", name,
                           known->str);
    else
        result = duet_fail(message, DUET_EINVAL, "which workload? duet %s WORKLOAD, one of: %s",
                           job->name, known->str);
    g_string_free(known, TRUE);
    return result;
}

int duet__job_read_workload(struct duet__job *job, int argc, char *const *argv,
                            struct duet_message *message)
{
    const char *name = argc > 1 ? argv[1] : NULL;

    if (argc > 2)
        return duet_fail(message, DUET_EINVAL, "one workload at a time: '%s' is one too many",
                         argv[2]);
    job->request.workload = name ? duet_workload_find(name) : NULL;
    if (!job->request.workload)
        return unknown_workload(job, name, message);
    job->request.config.context =
        job->request.workload->name; /* of the kernel times of a platform */
    return 0;
}

int duet__job_read_problem(struct duet__job *job, const struct duet__texts *texts, uint64_t n,
                           uint64_t tile, struct duet_message *message)
{
    struct duet_problem *problem = &job->request.problem;
    const char *precision = texts->precision;
    int result;

    problem->n = n;
    problem->tile = tile;
    problem->precision = 'd';
    problem->seed = job->request.seed;
    result = precision ? duet_precision_read(precision, &problem->precision, message) : 0;
    if (!result)
        result = duet__count_option("--n", texts->n, 1, UINT32_MAX, &problem->n, message);
    if (!result)
        result = duet__count_option("--tile", texts->tile, 1, UINT32_MAX, &problem->tile, message);
    if (!result)
        result = duet_request_set_params(&job->request, texts->params, message);
    return result ? result : job->request.workload->check(problem, message);
}

int duet__job_read_policies(struct duet__job *job, const struct duet__texts *texts,
                            struct duet_message *message)
{
    int result = duet_policies_read(texts->policy, &job->request.policies, message);

    job->request.policy_count = result ? 0 : g_strv_length(job->request.policies);
    return result;
}

static int read_links(struct duet__job *job, char **links, struct duet_message *message)
{
    for (char **link = links; link && *link; link++) {
        const char *equals = strchr(*link, '=');
        struct duet_link_override override = {0};
        int result;

        if (!equals || equals == *link)
            return duet_fail(message, DUET_EINVAL, "--link takes NAME=VALUE, not '%s'", *link);
        result = duet__parse_change("--link", equals + 1, &override.bandwidth_Bps, &override.factor,
                                    message);
        if (result)
            return result;
        override.name =
            duet_request_keep(&job->request, g_strndup(*link, (size_t)(equals - *link)));
        g_array_append_val(job->links, override);
    }
    if (links && *links)
        job->request.config.links = duet_request_keep(&job->request, g_strjoinv(",", links));
    return 0;
}

/* What means something only of an emulated platform (`paced`), of GPUs that compute, or of none. */
static int check_emulation(const struct duet__texts *texts, bool paced,
                           struct duet_message *message)
{
    const char *paced_only = texts->scale         ? "--scale"
                             : texts->links       ? "--link"
                             : texts->extrapolate ? "--extrapolate"
                                                  : NULL;
    const char *unpaced_only = texts->gpu_streams ? "--gpu-streams" : texts->pin ? "--pin" : NULL;

    if (texts->emulate && !*texts->emulate)
        return duet_fail(message, DUET_EINVAL,
                         "--emulate takes 'free' or the name of a machine or a file, not '' (duet "
                         "list platforms shows them)");
    if (paced_only && !paced)
        return duet_fail(message, DUET_EINVAL,
                         "%s is for an emulated platform: --emulate PLATFORM (duet list platforms "
                         "shows them)",
                         paced_only);
    if (unpaced_only && paced)
        return duet_fail(message, DUET_EINVAL,
                         "%s is for GPUs that compute: an emulated platform's run one kernel at a "
                         "time and copy nothing",
                         unpaced_only);
    if (texts->lose && !texts->emulate)
        return duet_fail(message, DUET_EINVAL,
                         "--lose is for emulated GPUs: --emulate free, or --emulate PLATFORM");
    return 0;
}

int duet__job_read_emulation(struct duet__job *job, const struct duet__texts *texts,
                             struct duet_message *message)
{
    struct duet_config *config = &job->request.config;
    bool paced = texts->emulate && strcmp(texts->emulate, "free") != 0;
    int result = check_emulation(texts, paced, message);

    config->emulate = duet_request_keep(&job->request, g_strdup(texts->emulate));
    config->lose = duet_request_keep(&job->request, g_strdup(texts->lose));
    config->no_bind = texts->no_bind;
    job->platform_option = "--emulate";
    if (!result && texts->scale)
        result = duet__parse_scale("--scale", texts->scale, &config->scale, message);
    return result;
}

/*
 * The two windows of a GPU, before it is known whether there is one. A machine's file may have
 * others than the usual ones: of that the machine's own check complains.
 */
static int check_windows(const struct duet__job *job, struct duet_message *message)
{
    enum { USUAL = 2 };
    const struct duet_config *config = &job->request.config;
    const char *platform = duet_request_platform(&job->request);
    unsigned window = config->gpu_window ? config->gpu_window : USUAL;

    if (!config->gpu_window_short || config->gpu_window_short >= window)
        return 0;
    if (!config->gpu_window && platform && g_str_has_suffix(platform, ".xml"))
        return 0;
    return duet_fail(message, DUET_EINVAL,
                     "--gpu-window-short %u is less than --gpu-window %u%s: short tasks want as "
                     "large a window as others, or a larger one",
                     config->gpu_window_short, window, config->gpu_window ? "" : " (the default)");
}

int duet__job_read_machine(struct duet__job *job, const struct duet__texts *texts,
                           struct duet_message *message)
{
    struct duet_config *config = &job->request.config;
    int result = int_option("--cpus", texts->cpus, 0, &config->cpus, message);

    config->no_peer = texts->no_peer;
    config->strict = true; /* tiles that fit no GPU are more likely a mistake than a wish */
    if (!result)
        result = int_option("--gpus", texts->gpus, 0, &config->gpus, message);
    if (!result)
        result = few_option("--gpu-window", texts->gpu_window, UNITS_GPU_WINDOW_MAX,
                            &config->gpu_window, message);
    if (!result)
        result = few_option("--gpu-window-short", texts->gpu_window_short, UNITS_GPU_WINDOW_MAX,
                            &config->gpu_window_short, message);
    if (!result)
        result = check_windows(job, message);
    if (!result)
        result = few_option("--gpu-streams", texts->gpu_streams, UNITS_GPU_STREAMS_MAX,
                            &config->gpu_streams, message);
    if (!result && texts->gpu_memory)
        result = duet__parse_memory("--gpu-memory", texts->gpu_memory, &config->gpu_memory_bytes,
                                    &config->gpu_memory_share, message);
    if (!result && texts->pin)
        result = duet__parse_pin("--pin", texts->pin, &config->pin_bytes, &config->no_pin, message);
    return result ? result : read_links(job, texts->links, message);
}
