/* SPDX-License-Identifier: Apache-2.0 */
/* Runs on this machine, one after another in one runtime. */
#include "runs/real.h"

#include "validate/bounds.h"
#include "world/clock.h"

static bool given_up(const struct duet_session *session)
{
    return duet_monitor_signal(session->monitor) != 0;
}

/* Takes the message of a failed call from the runtime, where the call has given none. */
static int explain(const struct duet_session *session, int error, struct duet_message *message)
{
    const char *last = duet_last_message(session->runtime);

    if (error && !message->text[0])
        duet_fail(message, error, "%s", last[0] ? last : duet_strerror(error));
    return error;
}

/* The machine of the request is that of its first runtime. */
static int adopt_machine(struct duet_session *session)
{
    const struct duet_machine *machine = duet_runtime_machine(session->runtime);
    struct duet_request *request = session->request;

    if (request->platform_name)
        return 0;
    request->platform_name = g_strdup(machine->name);
    return duet_machine_copy(&request->machine, machine);
}

int duet_session_open(struct duet_session *session, struct duet_message *message)
{
    const struct duet_request *request = session->request;
    struct duet_config config = request->config;
    int error;

    config.quiet |= session->quiet;
    config.policy = session->policy;
    config.seed = request->seed;
    config.record = request->records != DUET_RECORDS_NONE;
    config.record_accesses = request->records == DUET_RECORDS_ACCESSES;
    error = duet_open(&session->runtime, &config, message);
    if (error)
        return error;
    session->quiet = true;
    session->error = 0;
    duet_monitor_watch(session->monitor, session->runtime);
    error = adopt_machine(session);
    session->error = error;
    if (error) {
        explain(session, error, message);
        duet_session_close(session);
    }
    return error;
}

void duet_session_close(struct duet_session *session)
{
    bool over = session->error || given_up(session);

    if (!session->runtime)
        return;
    duet_monitor_leave(session->monitor);
    /* nothing is to be waited for, and what no wait has told yet is not for the closing to say */
    if (over)
        duet_cancel(session->runtime);
    if (over && session->error != DUET_ETASK && duet_wait(session->runtime))
        session->error = DUET_ECANCELED;
    duet_close(session->runtime);
    session->runtime = NULL;
    session->request->workload->fini(session->state);
    session->state = NULL;
}

/* ------------------------------------------------------------------------------------------- */
/* One run                                                                                      */

/* Submits the tasks and waits for them. */
static int compute(struct duet_session *session, struct duet_message *message)
{
    const struct duet_workload *workload = session->request->workload;
    int error = workload->build(session->runtime, &session->problem, &session->state, message);
    int waited;

    /* before another call replaces it */
    explain(session, error, message);
    waited = duet_wait(session->runtime);
    if (!waited)
        return error;
    /* what a task did comes before what its submission said of that */
    message->text[0] = 0;
    explain(session, waited, message);
    return DUET_ETASK;
}

/* Brings the results to the host's memory, so that the next run can begin. */
static int retrieve(struct duet_session *session, struct duet_message *message)
{
    const struct duet_workload *workload = session->request->workload;
    int error = workload->retrieve ? workload->retrieve(session->runtime, session->state) : 0;

    explain(session, error, message);
    return error ? DUET_ETASK : 0;
}

/* Figures and records of the run at hand, whose tasks are finished. */
static int measure(struct duet_session *session, struct duet_run *run, enum duet_records record,
                   struct duet_message *message)
{
    struct duet_bounds bounds = {0};
    int error = 0;

    duet_stats(session->runtime, &run->stats);
    /* without a measured time of every kernel there is no bound */
    if (session->request->bounds && !duet_bounds(session->runtime, &bounds, NULL)) {
        run->critical_path_s = bounds.critical_path_s;
        run->area_s = bounds.area_s;
    }
    if (record != DUET_RECORDS_NONE)
        error =
            duet_recording_take(&run->recording, session->runtime, record == DUET_RECORDS_ACCESSES);
    duet_recording_shift(&run->recording, -run->stats.first_submit_s);
    return explain(session, error, message);
}

static int run_once(struct duet_session *session, struct duet_run *run, enum duet_records record,
                    struct duet_message *message)
{
    const struct duet_request *request = session->request;
    double start_s;
    int error;

    if (session->problem.data)
        request->workload->fill(session->problem.data);
    duet_stats_reset(session->runtime);
    start_s = duet__clock_s();
    error = compute(session, message);
    if (!error && run)
        error = measure(session, run, record, message);
    if (!error)
        error = retrieve(session, message);
    if (error)
        return error;
    request->workload->fini(session->state);
    session->state = NULL;
    if (!run)
        return 0;
    run->wall_s = duet__clock_s() - start_s;
    run->seed = request->seed;
    return request->verify
               ? request->workload->verify(session->problem.data, &run->verdict, message)
               : 0;
}

int duet_session_run(struct duet_session *session, struct duet_run *run, enum duet_records record,
                     struct duet_message *message)
{
    int error = 0;

    if (!session->runtime)
        error = duet_session_open(session, message);
    if (!error && !given_up(session))
        error = run_once(session, run, record, message);
    session->error = error;
    if (given_up(session)) {
        if (run)
            duet_run_fini(run);
        /* what a cancelled run says of itself is no news */
        error = DUET_ECANCELED;
        message->text[0] = 0;
    }
    if (run)
        run->error = error;
    if (error && run && message->text[0])
        duet_run_fail(run, error, message);
    if (!error)
        duet_monitor_count(session->monitor);
    /* data that the workload cannot take back leaves with the runtime */
    if (!session->request->workload->retrieve)
        duet_session_close(session);
    return error;
}

/* ------------------------------------------------------------------------------------------- */

void duet_series_make(struct duet_series *series, struct duet_session *session)
{
    const struct duet_request *request = session->request;
    int error = 0;

    *series = (struct duet_series){.policy = session->policy, .runs = duet_runs_new(request->reps)};
    for (size_t i = 0; i < request->warmups + request->reps && !error; i++) {
        struct duet_run *run = i < request->warmups ? NULL : &series->runs[series->count];
        bool first = run && series->count == 0 && request->records == DUET_RECORDS_FIRST;

        if (!session->runtime)
            error = duet_session_open(session, &series->message);
        series->opened |= !error;
        if (!error)
            error =
                duet_session_run(session, run,
                                 first || request->records > DUET_RECORDS_FIRST ? request->records
                                                                                : DUET_RECORDS_NONE,
                                 &series->message);
        series->count += !error && run;
    }
    series->error = given_up(session) ? 0 : error;
    duet_session_close(session);
}
