/* SPDX-License-Identifier: Apache-2.0 */
/* `duet explain`: reads a trace, finds why its run took so long, simulates what would help. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/job.h"
#include "base/files.h"
#include "report/page/page.h"
#include "runs/interval.h"
#include "runs/session.h"
#include "trace/trace.h"
#include "runtime/open.h"
#include "runtime/schedule.h"

/* Everything that is found out about a run. Zero-initialise. */
struct findings {
    struct duet__trace trace;
    struct duet__account account;
    struct duet__path path;
    struct duet__node_use *uses;
    struct duet__what_if what_if;
    struct duet__holding holding;
};

static void free_findings(struct findings *findings)
{
    duet__trace_fini(&findings->trace);
    duet__account_fini(&findings->account);
    duet__path_fini(&findings->path);
    g_free(findings->uses);
    duet__what_if_fini(&findings->what_if);
    duet__holding_fini(&findings->holding);
}

/* Makes the graph of the run if that is possible; else `why` says what prevents it. */
static int take_graph(struct duet__job *job, const struct duet__trace *trace,
                      struct duet_message *why)
{
    int error;
    job->graph = g_new0(struct duet__graph, 1);
    duet__graph_init(job->graph);
    error = duet__graph_take(job->graph, &trace->run.recording, why);
    if (error) {
        duet__graph_free(job->graph);
        job->graph = NULL;
        return error;
    }
    job->graph->name = g_strdup(trace->workload ? trace->workload : "trace");
    return 0;
}

static int find(struct duet__job *job, const char *path, struct findings *findings,
                struct duet_message *why, struct duet_message *message)
{
    int error = duet__trace_load(path, &findings->trace, message);
    const struct duet__recording *recording = &findings->trace.run.recording;
    struct duet_message problem;
    if (error)
        return error;
    if (duet__account_make(recording, &findings->account, &problem))
        return duet_fail(message, DUET_EPARSE, "%.300s: %s", path, problem.text);
    (void)take_graph(job, &findings->trace, why);
    duet__path_make(recording, job->graph, &findings->path);
    findings->uses = duet__use_make(recording);
    return 0;
}

/* ------------------------------------------------------------------------------------------- */
/* Changes that would help                                                                      */

/* Takes the workload of a trace, if it is no larger than what the trace shows. */
static int take_workload(struct duet__request *request, const struct duet__trace *trace,
                         unsigned nodes, struct duet_message *message)
{
    const size_t records = trace->run.recording.event_count;
    int error = duet__what_if_workload(request, trace, trace->tile, message);
    if (error || (duet__request_nodes(request) == nodes && duet__request_tasks(request) <= records))
        return error;
    return duet_fail(message, DUET_EPARSE,
                     "the trace is of %u nodes and %zu records, and names a run of %u nodes and "
                     "%" PRIu64 " tasks",
                     nodes, records, duet__request_nodes(request), duet__request_tasks(request));
}

/* Takes the run's graph to be simulated. Of several nodes, the graph does not say which node owns
   which data: there the workload itself is taken. */
static int take_work(struct duet__job *job, const struct duet__trace *trace, unsigned nodes,
                     struct duet_message *message)
{
    struct duet__request *request = &job->request;
    request->config.strict = false;
    if (nodes > 1)
        return take_workload(request, trace, nodes, message);
    job->graph_workload = duet__graph_workload(job->graph);
    request->workload = &job->graph_workload;
    request->problem.graph = job->graph;
    request->problem.n = duet__graph_count(job->graph);
    request->config.context = request->workload->name;
    return 0;
}

/* Returns the name of one node, cut off if it is long: several are "idgraf_x4". */
static char *node_name(const char *machine, unsigned nodes)
{
    const char *end = nodes > 1 ? strrchr(machine, '_') : NULL;
    return g_strndup(machine, end ? (gsize)(end - machine) : strlen(machine));
}

/* True if a platform has that name of a node. */
static bool is_named(const struct duet__platform *platform, const char *name, unsigned nodes)
{
    return nodes > 1 ? strncmp(platform->name, name, DUET__NODE_NAME) == 0
                     : strcmp(platform->name, name) == 0;
}

/* Loads the platform that was asked for, or else the run's, if its file has not changed since. */
static int load_platform(struct duet__job *job, const struct duet__trace *trace,
                         struct duet_message *message)
{
    const char *file = job->values.platform ? NULL : trace->platform_file;
    int error;
    if (file && !g_file_test(file, G_FILE_TEST_IS_REGULAR))
        return duet_fail(message, DUET_EIO,
                         "%.300s, the platform of the run, is no file any more: --platform FILE "
                         "says where it is now",
                         file);
    error = duet__platform_load(job->request.config.simulate, &job->platform, message);
    if (!error && file && g_strcmp0(job->platform->digest, trace->platform_digest) != 0)
        error = duet_fail(message, DUET_EINVAL,
                          "%.300s, the platform of the run, has changed since: --platform FILE "
                          "takes it as it is now",
                          file);
    return error;
}

/* Refuses a network named by the trace alone if it is larger than what the trace shows. */
static int check_network(const struct duet__job *job, unsigned nodes, struct duet_message *message)
{
    enum { MOST_PARTS = 256 }; /* a node; a network may be larger than the part that a run uses */
    const char *text = job->request.config.network;
    struct duet__network network = {.levels = 0};
    int error = 0;
    if (nodes > 1 && text && !job->values.config.network)
        error = duet__network_parse("network", text, &job->platform->network, &network, message);
    if (error || duet__network_parts(&network) <= MOST_PARTS * (double)nodes)
        return error;
    return duet_fail(message, DUET_EINVAL,
                     "the network of the trace, %.200s, is far larger than the %u nodes that it "
                     "shows: --network takes it all the same",
                     text, nodes);
}

/* Makes the request that simulates the run as it was made, as far as the trace says how. */
static int make_request(struct duet__job *job, const struct duet__trace *trace,
                        struct duet_message *message)
{
    const struct duet_machine *machine = trace->run.recording.machine;
    const unsigned nodes = duet__host_count(machine);
    struct duet__request *request = &job->request;
    struct duet_config *config = &request->config;
    const char *given = job->values.config.policy, *policy = given ? given : trace->policy;
    const char *name = duet__request_keep(request, node_name(machine->name, nodes));
    int error = duet__settings_read(trace->options, config, message);
    config->simulate = job->values.platform   ? job->values.platform
                       : trace->platform_file ? trace->platform_file
                                              : name;
    if (job->values.config.network)
        config->network = job->values.config.network;
    if (!error && job->values.config.network && nodes == 1)
        error = duet_fail(message, DUET_EINVAL, "--network joins nodes, and the run is of one");
    if (!error)
        error = load_platform(job, trace, message);
    if (!error)
        error = check_network(job, nodes, message);
    if (!error)
        error = take_work(job, trace, nodes, message);
    if (error)
        return error;
    request->reps = 1;
    request->warmups = 0;
    config->seed = request->seed = trace->run.seed;
    if (is_named(job->platform, name, nodes)) { /* as much of it as the run had, or its node 0 */
        config->cpus = config->gpus = 0;
        for (unsigned i = 0; i < machine->worker_count; i++)
            if (duet__host_of(machine, machine->workers[i].node) == DUET_HOST)
                *(machine->workers[i].node == DUET_HOST ? &config->cpus : &config->gpus) += 1;
        config->gpu_memory_bytes = duet__what_if_memory(machine);
    } else {
        config->links = NULL;
    }
    error = duet__request_set_policies(request, policy && *policy ? policy : NULL, message);
    duet__calibration_select(&job->platform->calibration, config->context);
    request->platform = job->platform;
    if (!error && request->policy_count > 1)
        error = duet_fail(message, DUET_EINVAL, "one policy is simulated, not several");
    error = error ? error : duet__request_build(request, message);
    if (!error && request->problem.graph) {
        duet__job_guess(job);
        request->guesses = g_hash_table_size(job->guesses) ? job->guesses : NULL;
    }
    return error;
}

/* Simulates changes; prints what cannot be simulated, and shows the rest. Returns the exit
   status. */
static int ask(struct duet__job *job, struct findings *findings, const struct duet_message *why)
{
    struct duet__progress progress;
    struct duet_message message = {""};
    const char *policy = findings->trace.policy, *interval = job->values.config.interval;
    g_autofree char *path = policy ? duet__policy_base(policy) : NULL;
    int number = 0, error;
    if (!job->graph)
        return duet__complain(DUET__DONE, "no change is simulated: %s", why->text);
    /* a trace is data: what it names is no reason to run code */
    if (!job->values.config.policy && path && !duet__schedule_is(path) &&
        (strchr(path, '/') || strstr(path, ".so")))
        return duet__complain(DUET__DONE,
                              "no change is simulated: the policy of the trace is a shared object, "
                              "which --policy %s would load",
                              policy);
    error = make_request(job, &findings->trace, &message);
    if (!error) {
        duet__progress_init(&progress, !job->values.quiet, 0, 0);
        error = duet__what_if_make(&job->request, &findings->trace, &findings->path, &progress,
                                   &findings->what_if, &number, &message);
        if (!error && !number && interval)
            error = duet__interval_hold(&job->request, interval, findings->trace.tile, &progress,
                                        &findings->holding, &number, &message);
        duet__progress_clear(&progress);
    }
    if (number)
        return duet__complain(DUET__SIGNALLED + number, "interrupted");
    if (error && (job->values.platform || job->values.config.network || interval))
        return duet__job_refuse(error, &message);
    if (error)
        duet__complain(DUET__DONE, "no change is simulated: %s%s", message.text,
                       strstr(message.text, "--network") || strstr(message.text, "--platform")
                           ? ""
                           : " (--platform P names a machine, also one that duet calibrate made)");
    if (error)
        duet__what_if_fini(&findings->what_if);
    return DUET__DONE;
}

static void write_page(FILE *stream, const void *why)
{
    duet__page_write_why(stream, why);
}

static int check(const struct duet__job *job, int argc, char *const *argv,
                 struct duet_message *message)
{
    const char *html = job->values.html;
    int error = 0;
    if (argc != 2)
        return duet_fail(message, DUET_EINVAL,
                         "explain takes one trace, not %d (duet explain --help)", argc - 1);
    if (html && !*html)
        return duet_fail(message, DUET_EINVAL, "--html takes the name of a file, not ''");
    if (html && duet__files_same(html, argv[1]))
        return duet_fail(message, DUET_EINVAL, "--html and the trace are one file, %s", html);
    if (html)
        error = duet__file_check(html, message);
    error = error ? error : duet__exclude(job, "interval", "no-what-if", message);
    error = error ? error : duet__exclude(job, "platform", "no-what-if", message);
    return error ? error : duet__exclude(job, "network", "no-what-if", message);
}

static int work(struct duet__job *job, int argc, char **argv)
{
    struct findings findings = {0};
    struct duet_message message = {""}, why = {""};
    int error = check(job, argc, argv, &message), status;
    if (!error)
        error = find(job, argv[1], &findings, &why, &message);
    status = error                    ? duet__job_refuse(error, &message)
             : job->values.no_what_if ? DUET__DONE
                                      : ask(job, &findings, &why);
    if (!status) {
        const struct duet__why shown = {
            .path_name = argv[1],
            .command = job->line,
            .trace = &findings.trace,
            .account = &findings.account,
            .path = &findings.path,
            .uses = findings.uses,
            .what_if = findings.what_if.changes ? &findings.what_if : NULL,
            .holding = findings.holding.simulations ? &findings.holding : NULL,
            .simulated = job->request.platform_name,
        };
        (job->values.json ? duet__why_write_json : duet__why_write_text)(stdout, &shown);
        status = duet__finish_output();
        if (job->values.html && duet__file_write(job->values.html, write_page, &shown, &message))
            status = duet__complain(DUET__FAILED, "%s", message.text);
    }
    free_findings(&findings);
    return status;
}

const struct duet__command duet__explain_command = {
    .name = "explain",
    .description = "one trace: why the run took so long, and what would help",
    .where = DUET__IN_EXPLAIN,
    .arguments = "TRACE.json",
    .summary =
        "Explains the run of a trace (--trace, DUET_TRACE): its critical path through tasks, "
        "copies and\nwaits, what each worker did or waited for, what links and memories were used "
        "for, and by\nsimulation what changes would bring.",
    .notes =
        "Changes are simulated on the platform that the trace names, with its numbers of CPUs and "
        "GPUs,\nmemory and links; --platform takes another machine, as it is described.\n\n"
        "Example:\n"
        "  duet simulate cholesky --platform idgraf --n 9600 --link pcie=1GB/s --trace run.json\n"
        "  duet explain run.json",
    .work = work,
};
