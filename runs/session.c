/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of one policy, one after another in one runtime. */
#include "runs/session.h"

#include <inttypes.h>

#include "nodes/mpi.h"
#include "runs/interval.h"
#include "base/clock.h"
#include "runtime/open.h"

static bool given_up(const struct duet__session *session)
{
    return session->monitor && duet__monitor_signal(session->monitor);
}

/* Adds the command that measures a workload's kernels to a message about one without a time. */
static void advise(const struct duet__request *request, struct duet_message *message)
{
    g_autofree char *how = duet__workload_measured(request->workload, &request->problem);
    g_auto(GStrv) parts = g_strsplit(message->text, DUET__OWN_TIMES, 2);
    duet_fail(message, DUET_ENOMODEL, "%s, or measure it on that machine: %s", parts[0], how);
}

/* Takes the message of a failed call from the runtime, where the call has given none. */
static int explain(const struct duet__session *session, int error, struct duet_message *message)
{
    const struct duet__request *request = session->request;
    const char *last = duet_last_message(session->runtime);
    if (error && !message->text[0]) {
        duet_fail(message, error, "%s", last[0] ? last : duet_strerror(error));
        if (error == DUET_ENOMODEL && !request->problem.graph)
            advise(request, message);
    }
    return error;
}

/* Takes the machine of the request's first runtime as the request's. */
static int adopt_machine(struct duet__request *request, const struct duet_machine *machine)
{
    if (request->platform_name)
        return 0;
    request->platform_name = g_strdup(machine->name);
    return duet_machine_copy(&request->machine, machine);
}

/* Refuses a schedule of another number of tasks than the request's workload has. */
static int check_schedule(struct duet__session *session, struct duet_message *message)
{
    const struct duet__schedule *schedule;
    const struct duet_policy *policy;
    uint64_t tasks;
    int error = duet__policy_load(session->policy, &policy, NULL, message);
    if (error)
        return error;
    schedule = duet__followed(policy);
    session->scheduled = schedule != NULL;
    tasks = schedule ? duet__request_tasks(session->request) : 0;
    if (!schedule || schedule->planned == tasks)
        return 0;
    return duet_fail(message, DUET_EINVAL,
                     "%s is of another task graph: it has %zu tasks, this one %" PRIu64,
                     schedule->path, schedule->planned, tasks);
}

int duet__session_open(struct duet__session *session, struct duet_message *message)
{
    const struct duet__request *request = session->request;
    struct duet_config config = request->config;
    unsigned nodes;
    int error;
    if (request->workload->program)
        return 0;
    error = check_schedule(session, message);
    if (error)
        return error;
    config.quiet |= session->quiet;
    config.policy = session->policy;
    config.seed = request->seed;
    config.record = request->records != DUET_RECORDS_NONE;
    config.record_accesses = request->records >= DUET_RECORDS_TRACE;
    if (session->monitor)
        duet__monitor_open(session->monitor, session->policy);
    error = duet__open_with(&session->runtime, &config, request->platform, message);
    if (error && session->monitor)
        duet__monitor_open(session->monitor, NULL);
    if (error)
        return error;
    nodes = duet_node_count(session->runtime);
    session->quiet = true;
    session->spent = false;
    /* no measured run is slowed down for bounds, but for a path over nodes */
    if (request->bounds && config.simulate && nodes == 1)
        duet__keep_entered(session->runtime);
    else if (request->bounds && nodes > 1)
        duet__nodes_keep_path(duet__nodes_of(session->runtime));
    if (session->monitor)
        duet__monitor_watch(session->monitor, session->runtime);
    session->error =
        explain(session, adopt_machine(session->request, duet_runtime_machine(session->runtime)),
                message);
    if (!session->error && config.record)
        session->error =
            duet__memories_check(nodes, nodes * duet_runtime_machine(session->runtime)->node_count,
                                 message);
    error = session->error;
    if (error)
        duet__session_close(session);
    return error;
}

void duet__session_close(struct duet__session *session)
{
    const bool over = session->error || given_up(session);
    if (!session->runtime)
        return;
    if (session->monitor)
        duet__monitor_leave(session->monitor);
    /* Lets the closing wait for nothing, and say nothing that no wait has told yet. The waits of
       several nodes pair: another node may wait because it has cancelled the run. */
    if (over)
        duet_cancel(session->runtime);
    if (((over && session->error != DUET_ETASK) || duet_node_count(session->runtime) > 1) &&
        duet_wait(session->runtime))
        session->error = DUET_ECANCELED;
    duet_close(session->runtime);
    if (session->monitor)
        duet__monitor_open(session->monitor, NULL);
    session->runtime = NULL;
    session->request->workload->fini(session->state);
    session->state = NULL;
}

/* ------------------------------------------------------------------------------------------- */
/* Runs                                                                                         */

/* Submits the tasks and waits for them. */
static int compute(struct duet__session *session, struct duet_message *message)
{
    const struct duet__request *request = session->request;
    int error = request->workload->build(request->workload, session->runtime, &session->problem,
                                         &session->state, message);
    int waited;
    /* result of waiting, kept before another call replaces the message */
    explain(session, error, message);
    waited = duet_wait(session->runtime);
    if (!waited)
        return error;
    /* a task's error comes before what its submission said of that */
    message->text[0] = 0;
    explain(session, waited, message);
    if (session->scheduled && (waited == DUET_EINVAL || waited == DUET_ESTUCK))
        return DUET_EINVAL; /* the schedule is of another graph, or has a cycle */
    return request->config.simulate ? waited : DUET_ETASK;
}

/* Brings the results to the host's memory, so that the next run can begin. */
static int retrieve(struct duet__session *session, struct duet_message *message)
{
    const struct duet__request *request = session->request;
    int error = 0;
    session->spent = !request->workload->retrieve;
    if (!session->spent && !request->config.simulate)
        error = request->workload->retrieve(session->runtime, session->state);
    explain(session, error, message);
    return error ? DUET_ETASK : 0;
}

/* Takes figures and records of the run at hand, whose tasks are finished. */
static int measure(struct duet__session *session, struct duet__run *run, enum duet__recorded record,
                   struct duet_message *message)
{
    const struct duet__request *request = session->request;
    const unsigned nodes = duet_node_count(session->runtime);
    struct duet__network network = {.bandwidth_Bps = 0};
    struct duet__spent *spent;
    unsigned count;
    int error = 0;
    run->seed = request->seed;
    if (nodes > 1 && request->platform && request->config.simulate)
        error = duet__open_network(request->platform, &request->config, nodes, &network, message);
    if (!error)
        error = duet__run_take(session->runtime, record != DUET_RECORDS_NONE,
                               record == DUET_RECORDS_ACCESSES,
                               &(struct duet__wires){network.bandwidth_Bps, network.latency_s}, run,
                               message);
    if (error)
        return error;
    (void)duet_choice(session->runtime, &run->choice);
    spent = duet__spent_take(session->runtime, &count);
    duet__bases_find(request, spent, count, run);
    g_free(spent);
    if (!(run->stats.makespan_s <= DUET__MAKESPAN_MOST_S))
        return duet_fail(message, DUET_EINVAL,
                         "the run takes %g s; of more than %g s nothing is reported",
                         run->stats.makespan_s, DUET__MAKESPAN_MOST_S);
    /* without a time of every kernel there is no bound */
    if (request->bounds && nodes == 1)
        run->bounds = duet__bounds(session->runtime, request->config.simulate != NULL);
    return 0;
}

static bool is_given_up(void *session)
{
    return given_up(session);
}

/* Judges the run's result if that is asked for. A signal gives the judgement up, not the run. */
static int judge(const struct duet__session *session, struct duet__run *run,
                 struct duet_message *message)
{
    const struct duet__request *request = session->request;
    const struct duet__judging how = {.exact = request->verify == DUET__VERIFY_EXACT,
                                      .stop = is_given_up,
                                      .context = (void *)(uintptr_t)session};
    int error;
    if (request->verify == DUET__VERIFY_NONE ||
        (request->verify == DUET__VERIFY_LAST && !session->last) ||
        duet_node(session->runtime) != 0)
        return 0;
    error = request->workload->verify(session->problem.data, &how, &run->verdict, message);
    if (given_up(session))
        run->verdict = (struct duet__verdict){.formula = NULL};
    return error;
}

static int run_once(struct duet__session *session, struct duet__run *run,
                    enum duet__recorded record, struct duet_message *message)
{
    const struct duet__request *request = session->request;
    double start_s, computed_s;
    int error;
    if (session->problem.data)
        request->workload->fill(session->problem.data, session->runtime);
    /* nodes begin together, also after one of them has judged what they did last */
    error = duet_node_count(session->runtime) > 1 ? duet_wait(session->runtime) : 0;
    if (error)
        return explain(session, error, message);
    duet_stats_reset(session->runtime);
    start_s = duet__clock_s();
    error = compute(session, message);
    computed_s = duet__clock_s();
    if (!error && run)
        error = measure(session, run, record, message);
    if (run)
        start_s += duet__clock_s() - computed_s; /* the judgement is not the run's */
    if (!error)
        error = retrieve(session, message);
    if (error)
        return error;
    request->workload->fini(session->state);
    session->state = NULL;
    if (!run)
        return 0;
    run->wall_s = duet__clock_s() - start_s;
    return judge(session, run, message);
}

/* Checks that a program has run on the workers that it was told to. */
static int check_machine(const struct duet_machine *asked, const struct duet_machine *had,
                         struct duet_message *message)
{
    bool same = asked->worker_count == had->worker_count && asked->node_count == had->node_count &&
                asked->arch_count == had->arch_count;
    for (unsigned w = 0; w < had->worker_count && same; w++)
        same = asked->workers[w].arch == had->workers[w].arch &&
               asked->workers[w].node == had->workers[w].node;
    return same ? 0
                : duet_fail(message, DUET_ETASK,
                            "the program has not run on the machine that it was told (%s, %u "
                            "workers), but on %s, %u workers: its configuration has to come from "
                            "the environment",
                            asked->name, asked->worker_count, had->name, had->worker_count);
}

/* Makes a run of a program, in a process of its own. */
static int run_program(struct duet__session *session, struct duet__run *run,
                       enum duet__recorded record, struct duet_message *message)
{
    struct duet__request *request = session->request;
    struct duet__run own = {0};
    const bool records = run && record != DUET_RECORDS_NONE;
    int error =
        duet__program_run(request, session->policy, session->monitor, records, &own, message);
    if (!error)
        error = adopt_machine(request, own.recording.machine);
    if (!error)
        error = check_machine(&request->machine, own.recording.machine, message);
    if (error || !records)
        duet__recording_fini(&own.recording);
    if (!error && run)
        *run = own;
    return error;
}

int duet__session_run(struct duet__session *session, struct duet__run *run,
                      enum duet__recorded record, struct duet_message *message)
{
    const bool program = session->request->workload->program != NULL;
    int error = 0;
    if (session->spent)
        duet__session_close(session);
    if (!session->runtime)
        error = duet__session_open(session, message);
    if (!error && given_up(session))
        error = DUET_ECANCELED;
    if (!error)
        error = program ? run_program(session, run, record, message)
                        : run_once(session, run, record, message);
    session->error = error;
    if (error && run)
        duet__run_fini(run);
    if (error && given_up(session)) {
        /* a cancelled run's message is no news */
        message->text[0] = 0;
        return DUET_ECANCELED;
    }
    if (!error && session->monitor)
        duet__monitor_count(session->monitor, session->runtime);
    return error;
}

/* ------------------------------------------------------------------------------------------- */

bool duet__processes_share(const struct duet__request *request)
{
    return duet__request_nodes(request) > 1 && !request->config.simulate;
}

int duet__processes_agree(bool together, struct duet__monitor *monitor, int error,
                          struct duet_message *message)
{
    const int number = duet__monitor_signal(monitor);
    if (number)
        error = number;
    if (together)
        error = duet__mpi_agree(error, message);
    if (error > 0 && !number)
        duet__monitor_adopt(monitor, error);
    return error;
}

void duet__processes_decline(const char *why)
{
    duet__mpi_decline(why);
}

/* Makes a session's warm-ups and runs. Returns the number of the signal that ended them, or 0. */
static int make_series(struct duet__session *session, struct duet__series *series)
{
    const struct duet__request *request = session->request;
    int error = 0;
    for (size_t i = 0; i < request->warmups && !error; i++)
        error = duet__session_run(session, NULL, DUET_RECORDS_NONE, &series->message);
    while (!error && series->count < request->reps) {
        session->last = series->count + 1 == request->reps;
        error = duet__session_run(session, &series->runs[series->count],
                                  duet__request_records(request, series->count), &series->message);
        series->count += !error;
    }
    duet__session_close(session);
    error = duet__processes_agree(duet__processes_share(request), session->monitor, error,
                                  &series->message);
    series->error = error < 0 ? error : 0;
    return error > 0 ? error : 0;
}

int duet__run_all(struct duet__request *request, struct duet__monitor *monitor,
                  struct duet__series *series, struct duet_message *message)
{
    struct duet__problem problem = request->problem;
    int error = 0, number = 0;
    problem.verify = request->verify != DUET__VERIFY_NONE;
    if (!duet__request_paced(request) && request->workload->generate)
        error = request->workload->generate(request->workload, &request->problem, &problem.data,
                                            message);
    error = duet__processes_agree(duet__processes_share(request), monitor, error, message);
    for (size_t i = 0; i < request->policy_count && !error && !number; i++) {
        struct duet__session session = {.request = request,
                                        .policy = request->policies[i],
                                        .monitor = monitor,
                                        .problem = problem,
                                        .quiet = i > 0};
        series[i] = (struct duet__series){.policy = request->policies[i],
                                          .runs = g_new0(struct duet__run, request->reps)};
        number = make_series(&session, &series[i]);
    }
    if (problem.data)
        request->workload->discard(problem.data);
    return error < 0 ? error : 0;
}
