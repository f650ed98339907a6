/* SPDX-License-Identifier: Apache-2.0 */
/* From the values of options to a checked struct duet__job. */
#include "cli/job.h"

#include "runs/session.h"
#include "runtime/schedule.h"
#include "study/table.h"
#include "base/units.h"

/* Returns the command line as one can paste it into a shell. */
static char *quote(int argc, char *const *argv)
{
    g_autoptr(GPtrArray) words = g_ptr_array_new();
    g_ptr_array_add(words, (char *)(uintptr_t) "duet");
    for (int i = 0; i < argc; i++)
        g_ptr_array_add(words, argv[i]);
    g_ptr_array_add(words, NULL);
    return duet__shell_text((const char *const *)words->pdata);
}

void duet__job_init(struct duet__job *job, const struct duet__command *command, int argc,
                    char *const *argv)
{
    *job = (struct duet__job){
        .command = command,
        .line = quote(argc, argv),
        .values = {.kept = g_ptr_array_new_with_free_func(g_free), .warmups = 1},
        .given = g_array_new(FALSE, FALSE, sizeof(struct duet__given)),
    };
    duet_config_init(&job->values.config);
    job->values.config.seed = 1;
    duet__request_init(&job->request);
}

void duet__job_fini(struct duet__job *job)
{
    g_free(job->line);
    duet__schedule_free(job->improved);
    duet__request_fini(&job->request);
    g_clear_pointer(&job->given, g_array_unref);
    g_clear_pointer(&job->values.kept, g_ptr_array_unref);
    duet__graph_free(job->graph);
    if (job->guesses)
        g_hash_table_unref(job->guesses);
    duet__platform_free(job->platform);
    *job = (struct duet__job){0};
}

void duet__job_take_values(struct duet__job *job)
{
    const struct duet__values *values = &job->values;
    struct duet__request *request = &job->request;
    request->config = values->config;
    request->config.policy = NULL; /* there may be several, and runs have one each */
    request->config.strict = true; /* tiles that fit no GPU are more likely a mistake than meant */
    request->seed = values->config.seed;
    request->reps = (size_t)values->reps;
    request->warmups = (size_t)values->warmups;
    request->jobs = (unsigned)(values->jobs ? values->jobs : g_get_num_processors());
    request->verify = (enum duet__verified)values->verify;
}

/*
 * Reads options, answers --help, "--policy help" and "--model help", and sets the request from the
 * values. Arguments that are no options stay in *argv. Returns -1 if the command shall go on, else
 * the exit status.
 */
static int job_parse(struct duet__job *job, int *argc, char ***argv)
{
    const struct duet__values *values = &job->values;
    if (!duet__job_options(job, argc, argv))
        return DUET__MISUSED;
    duet__job_take_values(job);
    if (values->config.policy && strcmp(values->config.policy, "help") == 0)
        duet__print_policies();
    else if (values->config.model && strcmp(values->config.model, "help") == 0)
        duet__print_models();
    else
        return -1;
    return duet__finish_output();
}

int duet__command_run(const struct duet__command *command, int argc, char **argv)
{
    struct duet__job job;
    unsigned count;
    int status;
    duet__job_init(&job, command, argc, argv);
    status = job_parse(&job, &argc, &argv);
    if (status < 0)
        status = command->work(&job, argc, argv);
    duet__launched_as(&count);
    if (status != DUET__DONE && job.together && count > 1)
        duet__processes_decline(duet__last_line());
    duet__job_fini(&job);
    return status;
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
    if (status == DUET__MISUSED)
        return duet__complain(status, "%s", message);
    return duet__complain(status, "%s failed: %s", what, message);
}

int duet__job_check_run(struct duet__job *job, struct duet_message *message)
{
    job->request.bounds = true;
    /* a page's critical path is exact with accesses; measured runs are not slowed down for it */
    if (job->values.trace || (job->values.html && job->request.config.simulate))
        job->request.records = DUET_RECORDS_TRACE;
    else if (job->values.gantt || job->values.html || job->values.schedule_out ||
             job->values.improve_s > 0)
        job->request.records = DUET_RECORDS_FIRST;
    return duet__exclude(job, "json", "csv", message);
}

bool duet__is_file(const char *name)
{
    return strpbrk(name, "./") || g_file_test(name, G_FILE_TEST_EXISTS);
}

int duet__find_starpu(struct duet__job *job, struct duet__graph_models *models,
                      struct duet_message *message)
{
    const char *home = g_getenv("STARPU_HOME"), *cache = g_getenv("XDG_CACHE_HOME");
    const char *directory = g_getenv("STARPU_PERF_MODEL_DIR"), *host = g_getenv("STARPU_HOSTNAME");
    char *own = duet__request_keep(&job->request, g_strdup(job->values.starpu_models));
    char *colon = own ? strrchr(own, ':') : NULL;
    if (colon)
        *colon++ = 0;
    if (own && !g_file_test(own, G_FILE_TEST_IS_DIR))
        return duet_fail(message, DUET_EINVAL,
                         "--starpu-models takes DIR[:HOST], and '%.300s' is no directory", own);
    host = colon ? colon : host ? host : g_get_host_name();
    home = home ? home : cache ? cache : g_get_home_dir();
    models->needed = own;
    models->directory =
        own ? own
            : duet__request_keep(&job->request,
                                 directory ? g_strdup(directory)
                                           : g_build_filename(home, ".starpu", "sampling", NULL));
    models->host = duet__request_keep(&job->request,
                                      colon ? g_strdup(host) : g_strndup(host, strcspn(host, ".")));
    return 0;
}

/* Reads a task graph from a file; the graph has a size of its own. */
static int read_graph(struct duet__job *job, const char *path, struct duet_message *message)
{
    static const char *const options[] = {"n", "tile", "precision", "param"};
    struct duet__graph_models models;
    int error;
    for (size_t i = 0; i < G_N_ELEMENTS(options); i++)
        if (duet__given(job, options[i]))
            return duet_fail(message, DUET_EINVAL,
                             "--%s is for duet's own workloads, not for a task graph from a file",
                             options[i]);
    error = duet__find_starpu(job, &models, message);
    error = error ? error : duet__graph_read(path, &models, &job->graph, message);
    if (error)
        return error;
    job->graph_path = path;
    job->graph_workload = duet__graph_workload(job->graph);
    job->request.problem.graph = job->graph;
    job->request.problem.speeds = job->values.speeds;
    job->request.config.strict = false; /* files are as large as they are */
    return 0;
}

int duet__job_find_workload(struct duet__job *job, const char *name,
                            const struct duet__workload **out, struct duet_message *message)
{
    g_autoptr(GString) known = g_string_new(NULL);
    *out = name ? duet__workload_find(name) : NULL;
    if (!*out && name && duet__is_file(name) &&
        job->command->where &
            (DUET__IN_SIMULATE | DUET__IN_RUN | DUET__IN_EXPORT | DUET__IN_TUNE)) {
        *out = &job->graph_workload;
        return read_graph(job, name, message);
    }
    if (*out && duet__given(job, "speed"))
        return duet_fail(message, DUET_EINVAL,
                         "--speed is for task graphs from files: the kernels of %s have times of "
                         "their own",
                         name);
    if (*out)
        return 0;
    for (size_t i = 0; duet__workload_at(i); i++)
        g_string_append_printf(known, "%s%s", i ? ", " : "", duet__workload_at(i)->name);
    if (name)
        return duet_fail(message, DUET_ENOTFOUND, "unknown workload '%s', known are: %s", name,
                         known->str);
    return duet_fail(message, DUET_EINVAL, "which workload? duet %s WORKLOAD, one of: %s",
                     job->command->name, known->str);
}

int duet__job_take_program(const struct duet__job *job, const char *named,
                           struct duet__request *request, struct duet_message *message)
{
    static const char *const of_workloads[] = {"n",      "tile",  "precision", "param",
                                               "verify", "cases", "speed"};
    if (named)
        return duet_fail(message, DUET_EINVAL,
                         "a workload, %s, or a program behind --, but not both", named);
    for (size_t i = 0; i < G_N_ELEMENTS(of_workloads); i++)
        if (duet__given(job, of_workloads[i]))
            return duet_fail(message, DUET_EINVAL,
                             "--%s is for workloads of duet: a program has its own arguments",
                             of_workloads[i]);
    if (duet__request_nodes(request) > 1)
        return duet_fail(
            message, DUET_EINVAL,
            "a program on several nodes is started by mpirun, or simulates them itself "
            "with DUET_NODES: duet runs programs on one");
    if (!duet__given(job, "warmup")) /* each run begins anew */
        request->warmups = 0;
    return duet__program_take(request, job->program, message);
}

int duet__job_read_workload(struct duet__job *job, int argc, char *const *argv,
                            struct duet_message *message)
{
    struct duet__request *request = &job->request;
    int error;
    if (job->program)
        error = duet__job_take_program(job, argc > 1 ? argv[1] : NULL, request, message);
    else if (argc > 2)
        return duet_fail(message, DUET_EINVAL, "one workload at a time: '%s' is one too many",
                         argv[2]);
    else
        error =
            duet__job_find_workload(job, argc > 1 ? argv[1] : NULL, &request->workload, message);
    if (request->workload) /* the context of a platform's kernel times */
        request->config.context = request->workload->name;
    return error;
}

int duet__job_take_problem(const struct duet__values *values, struct duet__request *request,
                           struct duet_message *message)
{
    const struct duet__workload *workload = request->workload;
    struct duet__problem *problem = &request->problem;
    bool real = !duet__request_platform(request) && workload->real_n;
    int error = 0;
    problem->n = values->n ? values->n : real ? workload->real_n : workload->default_n;
    problem->tile = values->tile ? values->tile
                    : real       ? workload->real_tile
                                 : workload->default_tile;
    problem->seed = request->seed;
    if (values->config.network && !values->config.nodes)
        return duet_fail(message, DUET_EINVAL,
                         "--network joins simulated nodes: say how many with --nodes");
    if (values->config.nodes)
        error = duet__parse_nodes("--nodes", values->config.nodes, &problem->nodes, message);
    if (values->precision && !error)
        error = duet__precision_read(values->precision, &problem->precision, message);
    return error ? error : duet__request_set_params(request, values->params, message);
}

int duet__job_check_emulation(struct duet__job *job, struct duet_message *message)
{
    static const char of_paced[] = "is for an emulated platform: --emulate PLATFORM (duet list "
                                   "platforms shows them)";
    static const char of_computing[] = "is for GPUs that compute: an emulated platform's run one "
                                       "kernel at a time and copy nothing";
    const char *emulate = job->request.config.emulate;
    const bool paced = duet__request_paced(&job->request);
    const struct {
        const char *option;
        bool wrong;
        const char *why;
    } checks[] = {
        {"emulate", !(emulate && *emulate),
         "takes 'free' or the name of a machine or a file, not '' (duet list platforms shows "
         "them)"},
        {"scale", !paced, of_paced},
        {"link", !paced, of_paced},
        /* the predictions of validation may extrapolate whatever is measured */
        {"extrapolate", !paced && job->command->where != DUET__IN_VALIDATE, of_paced},
        {"gpu-streams", paced, of_computing},
        {"pin", paced, of_computing},
        {"lose", !emulate, "is for emulated GPUs: --emulate free, or --emulate PLATFORM"},
    };
    job->platform_option = "--emulate";
    for (size_t i = 0; i < G_N_ELEMENTS(checks); i++)
        if (checks[i].wrong && duet__given(job, checks[i].option))
            return duet_fail(message, DUET_EINVAL, "--%s %s", checks[i].option, checks[i].why);
    return 0;
}

/*
 * Checks the two windows of a GPU, before it is known whether there is one. A machine's file may
 * have windows other than the usual ones: the machine's own check complains about those.
 */
static int check_windows(const struct duet__job *job, struct duet_message *message)
{
    enum { USUAL = 2 };
    const struct duet_config *config = &job->request.config;
    const char *platform = duet__request_platform(&job->request);
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

int duet__job_check_machine(struct duet__job *job, struct duet_message *message)
{
    char **links = job->values.links;
    if (links)
        job->request.config.links = duet__request_keep(&job->request, g_strjoinv(",", links));
    return check_windows(job, message);
}

/* ------------------------------------------------------------------------------------------- */
/* Guesses                                                                                      */

/*
 * Adds the seconds of a kernel's tasks on an architecture to *all_s, and the guessed ones among
 * them to from_s: under the column of the graph that they are from, or, behind all columns, under
 * the platform, which only estimates them.
 */
static void add_kernel(const struct duet__job *job, const char *kernel,
                       const struct duet_arch *arch, const double *seconds, double *from_s,
                       double *all_s)
{
    const struct duet__calibration *calibration = &job->platform->calibration;
    const GPtrArray *columns = job->graph->archs;
    const bool measured = duet__calibration_find(calibration, kernel, arch->name) != NULL;
    g_autofree char *origin = duet__platform_origin(job->platform, kernel, arch->name);
    for (guint c = 0; c < columns->len; c++) {
        /* machines without kernel times are there for the times of graphs */
        const bool own = !strcmp(columns->pdata[c], arch->name) ||
                         (!calibration->count && !strcmp(columns->pdata[c], arch->backend));
        *all_s += seconds[c];
        if (strstr(origin, "estimated"))
            from_s[columns->len] += seconds[c];
        if (measured || own || !(seconds[c] > 0))
            continue;
        from_s[c] += seconds[c];
        g_hash_table_add(job->guesses, g_strdup_printf("%s on %s", kernel, arch->name));
    }
}

void duet__job_guess(struct duet__job *job)
{
    const struct duet_machine *machine = &job->request.machine;
    const GPtrArray *columns = job->graph->archs;
    g_autofree double *sources = duet__graph_sources(&job->request.problem, machine);
    g_autoptr(GString) text = g_string_new(NULL);
    const double *seconds = sources;
    job->guesses = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (unsigned a = 0; a < machine->arch_count; a++) {
        double *from_s = g_new0(double, columns->len + 1);
        double all_s = 0;
        for (guint k = 0; k < job->graph->kernels->len; k++, seconds += columns->len)
            add_kernel(job, duet__graph_kernel_name(job->graph, k), &machine->archs[a], seconds,
                       from_s, &all_s);
        for (guint c = 0; c <= columns->len; c++)
            if (from_s[c] > 0)
                g_string_append_printf(text, "%s%s %.0f %% as for %s", text->len ? ", " : "",
                                       machine->archs[a].name, 100 * from_s[c] / all_s,
                                       c < columns->len ? (char *)columns->pdata[c]
                                                        : "it, estimated");
        g_free(from_s);
    }
    g_free(job->request.estimated);
    job->request.estimated =
        text->len ? g_strdup_printf("tasks (share of the time: %s)", text->str) : NULL;
}
