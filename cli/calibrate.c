/* SPDX-License-Identifier: Apache-2.0 */
/* `duet calibrate`: reads the command line, measures, writes files and report. */
#include "cli/calibrate.h"

#include <inttypes.h>

#include "base/table.h"
#include "runtime/open.h"

static const char *const usual[] = {"cholesky", "lu", "gemm", "jacobi2d", "saxpy"};

/* ------------------------------------------------------------------------------------------- */
/* The machine                                                                                  */

bool duet__do_apart(duet__execute_fn *execute, void *data, const struct duet__signals *signals,
                    int *number)
{
    struct duet__executor *executor = duet__executor_new(1, execute, data);
    struct duet__ended ended = {.result = NULL};
    bool over = duet__executor_give(executor, 0, true, NULL) != 0;
    *number = 0;
    while (!over && !*number) {
        over = duet__executor_take(executor, 0.1, &ended);
        *number = signals ? duet__signals_take(signals, 0) : 0;
    }
    duet__executor_free(executor);
    free(ended.result);
    return ended.length > 0;
}

/* Leaves a result unless a file is of another machine: a duet__execute_fn. */
static void look_here(uint64_t job, FILE *result, void *config)
{
    struct duet__history *history;
    if (duet__history_open(&history, config, NULL) != DUET_EINVAL)
        fputs("it may be", result);
}

bool duet__is_here(const char *platform, const char *devices, const struct duet__signals *signals,
                   int *number)
{
    struct duet_config config;
    duet_config_init(&config);
    config.calibrate = platform;
    config.devices = devices;
    return duet__do_apart(look_here, &config, signals, number);
}

/* ------------------------------------------------------------------------------------------- */
/* The workloads to be measured                                                                 */

static int read_precisions(struct duet__calibrate_request *request, const char *text,
                           struct duet_message *message)
{
    static const char *const known[][2] = {{"d", "d"},   {"s", "s"},    {"sd", "sd"},
                                           {"ds", "sd"}, {"s,d", "sd"}, {"d,s", "sd"}};
    request->precisions = text ? NULL : "d";
    for (size_t i = 0; i < G_N_ELEMENTS(known) && text; i++)
        if (strcmp(text, known[i][0]) == 0)
            request->precisions = known[i][1];
    if (request->precisions)
        return 0;
    return duet_fail(message, DUET_EINVAL,
                     "--precision is s (single), d (double), or sd for both, not '%s'", text);
}

static bool can_compute(const struct duet__workload *workload)
{
    return workload->generate && workload->retrieve && workload->kernels[0];
}

/* Adds one named workload. */
static int add_workload(struct duet__calibrate_options *options, const char *name,
                        struct duet_message *message)
{
    const struct duet__workload *workload;
    int error = duet__job_find_workload(options->job, name, &workload, message);
    if (error == DUET_ENOTFOUND && duet__is_file(name))
        return duet_fail(message, error, "%.300s is no workload: traces are read with --from",
                         name);
    if (error)
        return error;
    if (g_ptr_array_find(options->request.workloads, workload, NULL))
        return duet_fail(message, DUET_EINVAL, "'%s' is named twice", name);
    if (!can_compute(workload))
        return duet_fail(message, DUET_EINVAL,
                         "%s has no kernels that compute%s: it has nothing to be measured", name,
                         workload->kernels[0] ? " in this duet" : "");
    g_ptr_array_add(options->request.workloads, (void *)(uintptr_t)workload);
    return 0;
}

/* Takes the program behind "--" unchanged. */
static int take_program(struct duet__calibrate_options *options, const char *named,
                        struct duet_message *message)
{
    struct duet__request *runs = &options->job->request;
    int error = duet__job_take_program(options->job, named, runs, message);
    const struct duet__setup subject = {.workload = runs->workload,
                                        .problem = {.precision = runs->problem.precision}};
    options->request.subjects = g_array_new(FALSE, FALSE, sizeof subject);
    g_array_append_val(options->request.subjects, subject);
    return error;
}

/* Takes the traces of --from. */
static int take_traces(struct duet__calibrate_options *options, int argc, char *const *argv,
                       struct duet_message *message)
{
    static const char *const of_runs[] = {"n", "tile", "precision", "reps", "policy", "seed"};
    GPtrArray *traces = options->request.traces;
    for (size_t i = 0; i < G_N_ELEMENTS(of_runs); i++)
        if (duet__given(options->job, of_runs[i]))
            return duet_fail(message, DUET_EINVAL,
                             "--from runs nothing: --%s is for what is run, and traces are taken "
                             "as they are",
                             of_runs[i]);
    for (int i = 1; i < argc; i++) {
        if (g_ptr_array_find_with_equal_func(traces, argv[i], g_str_equal, NULL))
            return duet_fail(message, DUET_EINVAL, "'%.300s' is named twice", argv[i]);
        g_ptr_array_add(traces, argv[i]);
    }
    return 0;
}

static int read_workloads(struct duet__calibrate_options *options, int argc, char *const *argv,
                          struct duet_message *message)
{
    struct duet__calibrate_request *request = &options->request;
    int error = 0;
    if (options->job->program)
        return take_program(options, argc > 1 ? argv[1] : NULL, message);
    if (options->job->values.from && argc < 2)
        return duet_fail(message, DUET_EINVAL, "--from: which traces? --from F.json...");
    request->chosen = argc > 1;
    if (options->job->values.from)
        return take_traces(options, argc, argv, message);
    for (int i = 1; i < argc && !error; i++)
        error = add_workload(options, argv[i], message);
    for (size_t i = 0; i < G_N_ELEMENTS(usual) && !request->chosen; i++) {
        const struct duet__workload *workload = duet__workload_find(usual[i]);
        if (workload && can_compute(workload))
            g_ptr_array_add(request->workloads, (void *)(uintptr_t)workload);
    }
    if (!error && !request->workloads->len)
        error = duet_fail(message, DUET_EINVAL,
                          "no workload has kernels that compute in this duet, which is without "
                          "BLAS: nothing can be measured");
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* The file                                                                                     */

int duet__calibrate_names(const char *name, char **out, char **machine,
                          struct duet_message *message)
{
    g_autofree char *base = *out ? g_path_get_basename(*out) : NULL;
    const char *host = g_get_host_name();
    if (*out && !g_str_has_suffix(*out, ".json"))
        return duet_fail(message, DUET_EINVAL,
                         "--out %s: the name must end in .json, so that the file can be read again",
                         *out);
    if (name)
        *machine = g_strdup(name);
    else if (*out)
        *machine = g_strndup(base, strlen(base) - strlen(".json"));
    else /* a fully qualified host is known to its user by the first part */
        *machine = g_strndup(host, strcspn(host, "."));
    if (!**machine || strlen(*machine) >= DUET_NAME_MAX ||
        (*machine)[strspn(*machine, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_-.:+")])
        return duet_fail(message, DUET_EINVAL,
                         "'%s' cannot be the name of a machine, which has 1 to %d letters, digits "
                         "and _-.:+ (%s)",
                         *machine, DUET_NAME_MAX - 1, *out ? "--out" : "--name");
    if (!*out)
        *out = g_strconcat(*machine, ".json", NULL);
    return 0;
}

/* ------------------------------------------------------------------------------------------- */

static int read_own(struct duet__calibrate_options *options, struct duet_message *message)
{
    const struct duet__values *values = &options->job->values;
    struct duet__calibrate_request *request = &options->request;
    int error;
    request->budget_s = duet__given(options->job, "budget") ? values->budget_s : 60;
    request->rounds = values->reps;
    request->no_costs = values->no_costs;
    request->no_copies = values->no_copies;
    request->sizes = values->sizes;
    request->tiles = values->tiles;
    options->how = values->replace ? DUET_WRITE_REPLACE
                   : values->merge ? DUET_WRITE_MERGE
                                   : DUET_WRITE_NEW;
    options->out = g_strdup(values->out);
    if (!(request->budget_s >= 0.1))
        return duet_fail(message, DUET_EINVAL,
                         "--budget takes 0.1s or more, such as 120s, not '%gs'", request->budget_s);
    error = read_precisions(request, values->precision, message);
    if (!error)
        error = duet__exclude(options->job, "replace", "merge", message);
    if (!error && values->from && options->job->program)
        error = duet_fail(message, DUET_EINVAL,
                          "--from reads traces that are there: there is no program to be run");
    return error ? error
                 : duet__calibrate_names(values->name, &options->out, &request->name, message);
}

static int read_policy(struct duet__job *job, struct duet_message *message)
{
    struct duet__request *runs = &job->request;
    int error;
    if (!job->values.config.policy)
        return 0; /* several in turn */
    error = duet__request_set_policies(runs, job->values.config.policy, message);
    if (!error && runs->policy_count != 1)
        error = duet_fail(message, DUET_EINVAL, "--policy: calibration takes one policy");
    if (!error)
        runs->config.policy = runs->policies[0];
    return error;
}

static int read_all(struct duet__calibrate_options *options, int argc, char *const *argv,
                    struct duet_message *message)
{
    struct duet__job *job = options->job;
    int error = duet__job_check_run(job, message);
    options->request.runs = &job->request;
    options->request.workloads = g_ptr_array_new();
    options->request.traces = g_ptr_array_new();
    error = error ? error : read_own(options, message);
    error = error ? error : duet__job_check_emulation(job, message);
    options->request.paced = duet__request_paced(&job->request);
    error = error ? error : read_workloads(options, argc, argv, message);
    error = error ? error : read_policy(job, message);
    error = error ? error : duet__job_check_machine(job, message);
    if (!error && job->request.config.cpus == 0)
        error = duet_fail(message, DUET_EINVAL,
                          "--cpus 0: a machine is calibrated with one CPU worker or more");
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Measuring                                                                                    */

void duet__warn_of_load(void)
{
    struct duet__disturbance load = duet__load_look();
    g_autofree char *text = duet__load_text(&load);
    if (load.disturbed)
        (void)duet__complain(DUET__DONE, "%s: what is measured now is slower than the machine is",
                             text);
}

int duet__calibrate_complain(const struct duet__calibrating *c)
{
    int status = DUET__DONE;
    for (guint i = 0; i < c->failures->len; i++) {
        const struct duet__failure *failure = &g_array_index(c->failures, struct duet__failure, i);
        status = duet__job_complain(failure->what, failure->error, failure->message.text);
    }
    if (!c->runs->len && !c->failures->len)
        status = duet__complain(DUET__MISUSED,
                                "a calibration of %gs has no time to run anything: give it more",
                                c->request->budget_s);
    return status;
}

/* Writes the file, then the report. Returns the exit status. */
static int finish(const struct duet__calibrate_options *options, const struct duet__calibrating *c)
{
    struct duet__platform platform;
    struct duet_message message = {""};
    const bool shared = options->how == DUET_WRITE_MERGE; /* programs may add to it meanwhile */
    int locked = shared ? duet__history_lock(options->out, &message) : 0;
    int error = locked < 0 ? locked : 0, status = DUET__DONE;
    duet__describe_machine(c, &platform);
    if (!error)
        error = duet__platform_write(&platform, options->out, options->how, &message);
    if (shared && locked >= 0)
        duet__history_unlock(options->out, locked);
    if (error) {
        status = duet__complain(DUET__FAILED, "%s", message.text);
    } else if (!options->job->in_table) {
        if (options->job->values.json)
            duet__calibrate_put_json(options, c, &platform, stdout);
        else
            duet__calibrate_put_text(options, c, &platform, stdout);
        status = duet__finish_output();
    }
    duet__platform_fini(&platform);
    return status;
}

/* Measures, then writes what could be measured and reports the rest. Returns the exit status. */
static int measure(const struct duet__calibrate_options *options, struct duet__calibrating *c)
{
    struct duet__monitor monitor = {0};
    int number, status;
    c->monitor = &monitor;
    duet__monitor_start(&monitor, false, 0, 0);
    duet__warn_of_load();
    duet__progress_init(&c->bar, !options->job->values.quiet, 0, 0);
    duet__calibrating_all(c);
    duet__progress_clear(&c->bar);
    duet__monitor_stop(&monitor);
    number = duet__monitor_signal(&monitor);
    if (number) /* nothing has changed */
        return duet__complain(DUET__SIGNALLED + number, "interrupted: %s %s", options->out,
                              g_file_test(options->out, G_FILE_TEST_EXISTS) ? "stays as it was"
                                                                            : "was not written");
    status = duet__calibrate_complain(c);
    if (!c->model.quality_count)
        return status;
    return finish(options, c) || status ? DUET__FAILED : DUET__DONE;
}

int duet__calibrate(struct duet__calibrate_options *options)
{
    struct duet__calibrating c = {.request = &options->request};
    struct duet_message message = {""};
    int status, error;
    if (duet__platform_may_write(options->out, options->how, &message))
        return duet__complain(DUET__MISUSED, "%s", message.text);
    error = duet__calibrating_look(&c, &message);
    if (!error)
        error = duet__plan_make(&c, &message);
    if (!error)
        error = duet__calibrating_read(&c, &options->job->request, &message);
    status = error ? duet__job_refuse(error, &message) : measure(options, &c);
    duet__calibrating_fini(&c);
    return status;
}

static int work(struct duet__job *job, int argc, char **argv)
{
    struct duet__calibrate_options options = {.job = job};
    struct duet_message message = {""};
    int error = read_all(&options, argc, argv, &message), status;
    status = error               ? duet__job_refuse(error, &message)
             : job->values.nodes ? duet__calibrate_nodes(&options)
                                 : duet__calibrate(&options);
    duet__calibrate_request_fini(&options.request);
    g_free(options.out);
    return status;
}

const struct duet__command duet__calibrate_command = {
    .name = "calibrate",
    .description = "measures this machine, so that it can be simulated",
    .where = DUET__IN_CALIBRATE,
    .arguments = "[WORKLOAD... | --from F.json... | -- PROGRAM ARGUMENT...]",
    .summary =
        "Measures this machine and writes its description and kernel times, with which duet "
        "simulate\n--platform ./FILE predicts runs on it. What is measured are the workloads "
        "themselves: with data in\ncaches and beyond them, on one core and on all of them; and "
        "beside them what the runtime's own\noperations, copies and memory's bandwidth are.",
    .notes = "Workloads: those named, else cholesky, lu, gemm, jacobi2d and saxpy. A machine is "
             "predicted best\nfor workloads, tiles and precisions that it was calibrated with. "
             "F.json is written\nin one step, at the very end. An interrupt (Ctrl-C) leaves what "
             "was there. While it measures, the machine should have nothing else to do.\n\n"
             "Examples:\n"
             "  duet calibrate\n"
             "  duet calibrate cholesky lu --tile 256,512 --budget 120s --out mine.json\n"
             "  duet calibrate gemm --tile 384 --out mine.json --merge\n"
             "  duet simulate cholesky --platform ./mine.json --n 8192 --tile 256",
    .work = work,
};

/* ------------------------------------------------------------------------------------------- */
/* `mpirun -n 2 duet calibrate --nodes`: what messages take, added to the description of a machine.
 */

static void put_messages(const struct duet__network_fit *fit,
                         const struct duet__mpi_measured *measured,
                         const struct duet__measured *foreign, const char *path, FILE *stream)
{
    const struct duet__network *n = &fit->network;
    struct duet__table table;
    fprintf(stream, "%u nodes: messages between node 0 and each other one, over MPI\n\n",
            measured->nodes);
    duet__table_init(&table, "rrrrrrrr");
    duet__table_print(&table, "bytes\tmessages\toutliers\tmedian us\tquartiles\tpredicted\t"
                              "error %%\tGB/s in streams");
    for (size_t i = 0; i < fit->count; i++) {
        const struct duet__network_size *size = &fit->sizes[i];
        const struct duet__summary *ping = &size->ping;
        duet__table_print(&table, "%" PRIu64 "\t%zu\t%zu\t%.4g\t%.4g-%.4g\t%.4g\t%+.1f\t%.3g",
                          size->bytes, ping->count, size->rejected, 1e6 * ping->median,
                          1e6 * ping->quartile1, 1e6 * ping->quartile3, 1e6 * size->predicted_s,
                          100 * (size->predicted_s / ping->median - 1),
                          1e-9 * (double)size->bytes / size->stream_s);
    }
    duet__table_put(&table, stream, 2);
    fprintf(stream,
            "\nnetwork switch:%.6gGbps,%.6gus,eager=%" PRIu64
            ",overhead=%.6gus,rendezvous=%.6gus\n",
            n->bandwidth_Bps / 125e6, 1e6 * n->latency_s, n->eager_bytes, 1e6 * n->overhead_s,
            1e6 * n->rendezvous_s);
    fprintf(stream, "foreign %.3g us (%.3g to %.3g): %s\n", 1e6 * foreign->times.median,
            1e6 * foreign->times.quartile1, 1e6 * foreign->times.quartile3, foreign->description);
    fprintf(stream, "Written: into %s\n", path);
}

static void write_messages(const struct duet__network_fit *fit,
                           const struct duet__mpi_measured *measured,
                           const struct duet__measured *foreign, const char *path, FILE *stream)
{
    struct duet__json_writer json = {.stream = stream, .indented = true};
    const struct duet__network *n = &fit->network;
    duet__json_print(&json,
                     "{schema: 1, command: %s, file: %s, nodes: %u, network: {bandwidth_Bps: "
                     "%g, latency_s: %g, overhead_s: %g, rendezvous_s: %g, eager_bytes: %" PRIu64
                     "}, foreign_s: %g",
                     "calibrate", path, measured->nodes, n->bandwidth_Bps, n->latency_s,
                     n->overhead_s, n->rendezvous_s, n->eager_bytes, foreign->times.median);
    duet__json_begin(&json, "messages", '[');
    for (size_t i = 0; i < fit->count; i++) {
        const struct duet__network_size *size = &fit->sizes[i];
        duet__json_print(&json,
                         "{bytes: %" PRIu64 ", samples: %zu, rejected: %zu, median_s: %g, "
                         "quartile1_s: %g, quartile3_s: %g, predicted_s: %g, stream_s: %g}",
                         size->bytes, size->ping.count, size->rejected, size->ping.median,
                         size->ping.quartile1, size->ping.quartile3, size->predicted_s,
                         size->stream_s);
    }
    duet__json_print(&json, "]}");
}

/* Writes the file anew, with the network in place of its old one. */
static int replace_network(const char *path, const struct duet__network *network, double foreign_s,
                           struct duet_message *message)
{
    struct duet__platform *platform = NULL;
    g_autofree char *file =
        g_path_is_absolute(path) ? g_strdup(path) : g_strconcat("./", path, NULL);
    int locked = duet__history_lock(path, message);
    int error = locked < 0 ? locked : duet__platform_load(file, &platform, message);
    if (!error) {
        platform->network = *network;
        platform->costs.foreign_s = foreign_s;
        error = duet__platform_write(platform, path, DUET_WRITE_REPLACE, message);
    }
    duet__platform_free(platform);
    if (locked >= 0)
        duet__history_unlock(path, locked);
    return error;
}

/* Measures and writes the network: every process calls this. */
static int measure_messages(const struct duet__calibrate_options *options,
                            struct duet__mpi_measured *messages, struct duet__measured *foreign,
                            struct duet_message *message)
{
    struct duet_config config = options->job->request.config;
    g_autofree char *nodes = NULL;
    int error = duet__mpi_measure(options->request.budget_s, messages, message);
    nodes = g_strdup_printf("%u", messages->nodes);
    config.nodes = nodes;
    if (!error)
        error = duet__foreign_measure(&(struct duet__measurement){.config = &config,
                                                                  .message = message},
                                      foreign);
    return error;
}

int duet__calibrate_nodes(const struct duet__calibrate_options *options)
{
    struct duet__mpi_measured messages = {0};
    struct duet__measured foreign = {.name = NULL};
    struct duet__network_fit fit;
    struct duet_message message = {""};
    unsigned count;
    int error = 0;
    if (duet__launched_as(&count) == 0 && !g_file_test(options->out, G_FILE_TEST_IS_REGULAR))
        return duet__complain(DUET__MISUSED,
                              "--nodes adds to the description of a machine: there is no %s (duet "
                              "calibrate --out makes it)",
                              options->out);
    error = measure_messages(options, &messages, &foreign, &message);
    if (!error && messages.node == 0)
        error = duet__network_fit(&messages, &fit, &message);
    if (!error && messages.node == 0)
        error = replace_network(options->out, &fit.network, foreign.times.median, &message);
    if (!error && messages.node == 0)
        (options->job->values.json ? write_messages : put_messages)(&fit, &messages, &foreign,
                                                                    options->out, stdout);
    duet__mpi_measured_free(&messages);
    return error ? duet__job_refuse(error, &message) : duet__finish_output();
}
