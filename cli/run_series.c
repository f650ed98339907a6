/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runs of `duet run`: for each policy one runtime, in which warm-up runs and measured ones
 * follow each other on the same data.
 */
#include "cli/run.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/attendant.h"
#include "cli/command.h"
#include "validate/bounds.h"

/* All runs of a trial under way. */
struct session {
    struct duet__trial *trial;
    struct duet__findings *findings;
    struct duet__attendant *attendant;
    void *data;                   /* what the workload computes on; NULL: nothing */
    struct duet_runtime *runtime; /* of the policy at hand */
    void *state;                  /* the workload's, of the run at hand */
    struct duet_message message;  /* of what failed */
    bool opened;                  /* a runtime has been */
    bool in_run;                  /* it failed when tasks ran, so that the input is not to blame */
};

static double wall_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static bool given_up(struct session *session)
{
    return duet__attendant_signal(session->attendant) != 0;
}

/* ------------------------------------------------------------------------------------------- */
/* What a run leaves                                                                            */

void duet__record_fini(struct duet__record *record)
{
    free(record->events);
    g_strfreev(record->kernels);
    *record = (struct duet__record){0};
}

/* The records of the run at hand, with dates that count from its first submission. */
static int keep_record(struct session *session, struct duet__record *record)
{
    struct duet_runtime *runtime = session->runtime;
    size_t count = 0, kernels = duet_kernel_count(runtime);
    struct duet_stats stats;
    int error = duet_trace_events(runtime, &record->events, &count);

    if (error)
        return error;
    duet_stats(runtime, &stats);
    for (size_t i = 0; i < count; i++) {
        record->events[i].submit_s -= stats.first_submit_s;
        record->events[i].ready_s -= stats.first_submit_s;
        record->events[i].start_s -= stats.first_submit_s;
        record->events[i].end_s -= stats.first_submit_s;
    }
    record->kernels = g_new0(char *, kernels + 1);
    for (size_t i = 0; i < kernels; i++)
        record->kernels[i] = g_strdup(duet_kernel_name(runtime, i));
    record->recording = (struct duet_recording){
        .machine = &session->trial->job.machine,
        .events = record->events,
        .event_count = count,
        .kernels = (const char *const *)record->kernels,
        .kernel_count = kernels,
        .makespan_s = stats.makespan_s,
    };
    return 0;
}

/* Shows the run at hand to the one who wants to see each. */
static int show(struct session *session, const struct duet_run *run)
{
    const struct duet__trial *trial = session->trial;
    struct duet__record record = {0};
    int error = keep_record(session, &record);

    if (!error)
        error = trial->each(trial->self, run, &record, &session->message);
    duet__record_fini(&record);
    return error;
}

/* Figures of the run at hand, whose tasks are finished; NULL: it is a warm-up. */
static int measure(struct session *session, struct duet__series *series, struct duet_run *run)
{
    struct duet_bounds bounds = {0};
    int error = 0;

    if (!run)
        return 0;
    duet_stats(session->runtime, &run->stats);
    if (session->trial->each)
        return show(session, run);
    /* without a measured time of every kernel there is no bound */
    if (!duet_bounds(session->runtime, &bounds, NULL)) {
        run->critical_path_s = bounds.critical_path_s;
        run->area_s = bounds.area_s;
    }
    if (duet__job_records(&session->trial->job) && series->count == 0)
        error = keep_record(session, &series->record);
    return error;
}

/* Judges the result of the run at hand. */
static int verify(struct session *session, struct duet_run *run)
{
    struct duet_verdict verdict = {0};
    int error = session->trial->job.workload->verify(session->data, &verdict, &session->message);

    run->residual = verdict.residual;
    if (!error) {
        session->findings->formula = verdict.formula;
        session->findings->threshold = verdict.threshold;
    }
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* One run                                                                                      */

/* Waits for all tasks, after `error`; one of the run comes before it. */
static int settle(struct session *session, int error)
{
    int waited;

    /* before another call replaces it */
    duet__job_explain(&session->message, session->runtime, error);
    waited = duet_wait(session->runtime);
    if (!waited)
        return error;
    session->message.text[0] = 0;
    session->in_run = true;
    return duet__job_explain(&session->message, session->runtime, waited);
}

/* Brings the results to the host's memory, so that the next run can begin. */
static int retrieve(struct session *session)
{
    const struct duet_workload *workload = session->trial->job.workload;
    int error = workload->retrieve ? workload->retrieve(session->runtime, session->state) : 0;

    session->in_run = error != 0;
    return duet__job_explain(&session->message, session->runtime, error);
}

/* A run from the filling of its data on; run NULL: a warm-up. */
static int run_once(struct session *session, struct duet__series *series, struct duet_run *run)
{
    const struct duet__job *job = &session->trial->job;
    struct duet_problem problem = job->problem;
    double start;
    int error;

    if (session->data)
        job->workload->fill(session->data);
    duet_stats_reset(session->runtime);
    problem.data = session->data;
    start = wall_clock();
    error = job->workload->build(session->runtime, &problem, &session->state, &session->message);
    error = settle(session, error);
    if (!error)
        error = measure(session, series, run);
    if (!error)
        error = retrieve(session);
    if (!error && run)
        run->wall_s = wall_clock() - start;
    if (error)
        return error;
    job->workload->fini(session->state);
    session->state = NULL;
    return run && session->trial->verify ? verify(session, run) : 0;
}

/* ------------------------------------------------------------------------------------------- */
/* The runs of a policy                                                                         */

static int open_runtime(struct session *session, size_t policy)
{
    struct duet__job *job = &session->trial->job;
    struct duet_config config = job->config;
    int error;

    config.quiet |= session->opened; /* what is to be said of all of them has been */
    config.policy = job->policies[policy];
    config.seed = job->seed;
    config.record = session->trial->each || duet__job_records(job);
    error = duet_open(&session->runtime, &config, &session->message);
    if (!error && !job->platform_name) {
        job->platform_name = g_strdup(duet_runtime_machine(session->runtime)->name);
        error = duet_machine_copy(&job->machine, duet_runtime_machine(session->runtime));
    }
    if (session->runtime) {
        session->opened = true;
        duet__attendant_watch(session->attendant, session->runtime);
    }
    return error;
}

static void close_runtime(struct session *session, int error)
{
    bool over = error || given_up(session);

    if (!session->runtime)
        return;
    duet__attendant_leave(session->attendant);
    /* nothing is to be waited for, and what no wait has told yet is not for the closing to say */
    if (over)
        duet_cancel(session->runtime);
    if (over && !session->in_run)
        duet__job_explain(&session->message, session->runtime, duet_wait(session->runtime));
    duet_close(session->runtime);
    session->runtime = NULL;
    session->trial->job.workload->fini(session->state);
    session->state = NULL;
}

static int run_policy(struct session *session, size_t policy)
{
    const struct duet__trial *trial = session->trial;
    struct duet__series *series = &session->findings->series[policy];
    int error = 0;

    for (size_t i = 0; i < trial->warmups + trial->job.reps && !error; i++) {
        struct duet_run *run = i < trial->warmups ? NULL : &series->runs[series->count];

        if (!session->runtime)
            error = open_runtime(session, policy);
        if (!error && !given_up(session))
            error = run_once(session, series, run);
        if (given_up(session))
            break;
        if (!error && run) {
            run->seed = trial->job.seed;
            series->count++;
        }
        duet__attendant_count(session->attendant);
        if (run && !error && trial->enough && trial->enough(trial->self))
            break;
        /* data that the workload cannot take back leaves with the runtime */
        if (!trial->job.workload->retrieve)
            close_runtime(session, error);
    }
    close_runtime(session, error);
    return error;
}

/* All of them, up to the first error, which it returns; *what, to be freed, is what failed. */
static int run_policies(struct session *session, char **what)
{
    const struct duet__job *job = &session->trial->job;
    int error = 0;

    for (size_t i = 0; i < job->policy_count && !error && !given_up(session); i++) {
        g_free(*what);
        *what = g_strdup_printf("the run of %s", job->policies[i]);
        session->findings->series[i].runs = g_new0(struct duet_run, job->reps);
        error = run_policy(session, i);
    }
    return error;
}

/* One line for what failed. */
static int complain(const struct session *session, const char *what, int error)
{
    /* without a platform no file is read: it is a device of this machine that does not work */
    if (!session->opened && error == DUET_EIO && !session->trial->paced)
        return duet__complain(DUET__FAILED, "%s", session->message.text);
    if (!session->opened)
        return duet__job_refuse(error, &session->message);
    return duet__job_complain(what, session->in_run ? DUET_ETASK : error, &session->message);
}

int duet__trial_run(struct duet__trial *trial, struct duet__findings *findings)
{
    const struct duet__job *job = &trial->job;
    struct duet__attendant attendant = {0};
    struct session session = {.trial = trial, .findings = findings, .attendant = &attendant};
    size_t runs = job->policy_count * (trial->warmups + job->reps);
    char *what = NULL;
    int error = 0, status = DUET__DONE;

    duet__attendant_start(&attendant, !job->quiet, job->workload->tasks(&job->problem) * runs,
                          runs);
    if (!trial->paced)
        error = job->workload->generate(&job->problem, &session.data, &session.message);
    if (!error)
        error = run_policies(&session, &what);
    if (session.data)
        job->workload->discard(session.data);
    duet__attendant_stop(&attendant);
    findings->number = duet__attendant_signal(&attendant);
    /* what a cancelled run says of itself is no news */
    if (error && !findings->number)
        status = complain(&session, what, error);
    g_free(what);
    return status;
}

int duet__trial_go(struct duet__trial *trial, struct duet__attendant *attendant, void *data,
                   struct duet__findings *findings, struct duet_message *message)
{
    struct session session = {.trial = trial,
                              .findings = findings,
                              .attendant = attendant,
                              .data = data};
    char *what = NULL;
    int error = run_policies(&session, &what);

    g_free(what);
    if (!error || given_up(&session))
        return 0;
    return duet_fail(message, error, "%s",
                     session.message.text[0] ? session.message.text : duet_strerror(error));
}

void duet__series_fini(struct duet__series *series)
{
    g_free(series->runs);
    duet__record_fini(&series->record);
    *series = (struct duet__series){0};
}
