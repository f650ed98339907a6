/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `duet validate`: from texts to a checked struct duet__validate. */
#include <string.h>

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

static int read_counts(struct duet__validate *validate, const struct duet__texts *texts,
                       struct duet_message *message)
{
    /* at least as many as will say something; those at a pace are all alike */
    uint64_t reps = validate->until > 0 ? 5 : 3, warmups = 1;
    /* what rounds differ by is learnt from many short ones, unless the number of runs is given */
    uint64_t rounds = texts->reps ? 5 : 10;
    uint64_t jobs = g_get_num_processors();
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
        error = duet__count_option("--seed", texts->seed, 0, UINT64_MAX,
                                   &validate->job.request.seed, message);
    validate->reps = (size_t)reps;
    validate->rounds = (size_t)(validate->until > 0 ? rounds : MIN(rounds, reps));
    validate->warmups = (size_t)warmups;
    validate->sim_reps = (size_t)sim_reps;
    validate->jobs = (unsigned)jobs;
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
static int read_goal(struct duet__validate *validate, const struct duet__texts *texts,
                     struct duet_message *message)
{
    bool wanted = texts->until || texts->case_time || (!texts->reps && !validate->paced);
    int error = 0;

    validate->until = wanted ? 0.01 : 0;
    validate->case_time_s = 3;
    if (texts->until)
        error = read_percent("--until", texts->until, &validate->until, message);
    if (!error && texts->case_time)
        error =
            duet__parse_seconds("--case-time", texts->case_time, &validate->case_time_s, message);
    return error;
}

/* Whether the options go with --calibrate, or make sense without it. */
static int check_calibrate(const struct duet__validate *validate, const struct duet__texts *texts,
                           struct duet_message *message)
{
    if (!texts->calibrate && (texts->out || texts->calibrate_time))
        return duet_fail(message, DUET_EINVAL, "%s is for --calibrate",
                         texts->out ? "--out" : "--calibrate-time");
    if (texts->calibrate && texts->platform)
        return duet_fail(message, DUET_EINVAL,
                         "--calibrate and --platform exclude each other: what is measured is what "
                         "the predictions are made from");
    if (texts->calibrate && validate->paced)
        return duet_fail(message, DUET_EINVAL,
                         "--calibrate: %s is known already, and nothing is measured of it",
                         texts->emulate);
    return 0;
}

static int read_settings(struct duet__validate *validate, const struct duet__texts *texts,
                         struct duet_message *message)
{
    struct duet__job *job = &validate->job;
    unsigned ignored;
    int error;

    validate->paced = texts->emulate && strcmp(texts->emulate, "free") != 0;
    error = read_goal(validate, texts, message);
    if (!error)
        error = read_counts(validate, texts, message);
    if (!error)
        error = check_calibrate(validate, texts, message);
    if (!error)
        error = duet__effects_parse("--without", texts->without, &ignored, message);
    job->json = texts->json;
    job->csv = texts->csv;
    job->quiet = texts->quiet;
    job->html = g_strdup(texts->html);
    job->request.config.extrapolate = texts->extrapolate;
    job->request.config.without = duet_request_keep(&job->request, g_strdup(texts->without));
    validate->noise = !texts->no_noise && !validate->paced;
    validate->verbose = texts->verbose;
    validate->follow_speed = texts->follow_speed;
    validate->scale = 1;
    if (!error && texts->json && texts->csv)
        error = duet_fail(message, DUET_EINVAL, "--json and --csv exclude each other");
    if (!error && texts->budget)
        error = duet__parse_seconds("--budget", texts->budget, &validate->budget_s, message);
    if (!error && texts->fail_over)
        error = read_percent("--fail-over", texts->fail_over, &validate->fail_over, message);
    if (!error && texts->scale)
        error = duet__parse_scale("--scale", texts->scale, &validate->scale, message);
    if (!error && texts->scale && !validate->paced)
        error = duet_fail(message, DUET_EINVAL,
                          "--scale is for an emulated platform: --emulate PLATFORM (duet list "
                          "platforms shows them)");
    if (!error && validate->paced && texts->follow_speed)
        error = duet_fail(message, DUET_EINVAL,
                          "--follow-speed: an emulated platform is always as fast as it says");
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

    validate->specs = g_ptr_array_new_with_free_func(duet__spec_free);
    if (!texts->cases)
        return duet__specs_from_texts(validate->specs, texts, argc, argv, message);
    validate->cases = g_strdup(texts->cases);
    error = check_contradictions(texts, argc, argv, message);
    return error ? error : duet__specs_from_file(validate->specs, texts->cases, message);
}

/* The file that duet calibrate writes for this machine. */
static int read_own_platform(struct duet__validate *validate, struct duet_message *message)
{
    const char *host = g_get_host_name();

    /* the first part of the name, as duet calibrate calls it */
    validate->platform_name = g_strdup_printf("./%.*s.json", (int)strcspn(host, "."), host);
    if (g_file_test(validate->platform_name, G_FILE_TEST_EXISTS))
        return 0;
    return duet_fail(message, DUET_EINVAL,
                     "there is no %s to predict from: run duet calibrate first, name what it wrote "
                     "(--platform FILE), or let it be measured along with the cases (--calibrate)",
                     validate->platform_name);
}

static int read_platform(struct duet__validate *validate, const struct duet__texts *texts,
                         struct duet_message *message)
{
    int error = 0;

    if ((texts->platform && !*texts->platform) || (texts->emulate && !*texts->emulate))
        return duet_fail(message, DUET_EINVAL, "%s takes the name of a machine or a file, not ''",
                         texts->platform && !*texts->platform ? "--platform" : "--emulate");
    if (texts->calibrate)
        return duet__calibrating_begin(validate, texts, message);
    if (texts->platform)
        validate->platform_name = g_strdup(texts->platform);
    else if (validate->paced)
        validate->platform_name = g_strdup(texts->emulate);
    else if (texts->emulate)
        error = duet_fail(message, DUET_EINVAL,
                          "--emulate free needs --platform FILE: duet calibrate --emulate free "
                          "writes one");
    else
        error = read_own_platform(validate, message);
    if (error)
        return error;
    validate->job.request.config.simulate = validate->platform_name;
    validate->job.platform_option = "--platform";
    error = duet_platform_load(validate->platform_name, NULL, &validate->platform, message);
    if (!error && texts->follow_speed && !(validate->platform->probe_s > 0))
        error = duet_fail(message, DUET_EINVAL,
                          "--follow-speed: %s does not say how fast the cores were when it was "
                          "calibrated",
                          validate->platform_name);
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
        error = duet__pairs_make(validate, texts, message);
    if (!error && validate->calibrating)
        error = duet__calibrating_plan(validate, message);
    return error;
}

int duet__validate_parse(struct duet__validate *validate, int argc, char **argv)
{
    struct duet_message message = {""};
    struct duet__texts texts = {0};
    int status = DUET__MISUSED;

    duet__job_init(&validate->job, "validate", argc, argv);
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

void duet__validate_fini(struct duet__validate *validate)
{
    for (size_t i = 0; i < validate->pair_count; i++)
        duet__pair_fini(&validate->pairs[i]);
    g_free(validate->pairs);
    if (validate->specs)
        g_ptr_array_free(validate->specs, TRUE);
    duet__calibrating_free(validate->calibrating);
    duet_platform_free(validate->platform);
    g_free(validate->platform_name);
    g_free(validate->thread_costs);
    g_free(validate->cases);
    duet__job_fini(&validate->job);
    *validate = (struct duet__validate){0};
}
