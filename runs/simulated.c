/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated runs of a request, each a job of an executor. */

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runs/executor.h"
#include "runs/session.h"
#include "trace/run.h"
#include "runtime/open.h"

/* The runs of a request under way; a job's number is that of its run, policy after policy. */
struct batch {
    const struct duet__request *request;
    struct duet__series *series;
    size_t count, next, finished;
    bool shared;    /* servers make the runs: see duet__executor_settle */
    bool *made;     /* by run: true if it was made */
    size_t *failed; /* lowest run of each policy that failed; reps: none */
    struct duet__executor *executor;
    _Atomic uint64_t *counters; /* number of finished tasks, by run; shared with the children */
    struct duet__signals signals;
    struct duet__progress *progress;
    int number; /* number of the signal that came; 0: none */
};

/* ------------------------------------------------------------------------------------------- */
/* Children                                                                                     */

/* The head of the result that a child sends; the arrays of its recording follow (run.h). */
struct result {
    int error; /* enum duet_error */
    struct duet_message message;
    struct duet__run run; /* its pointers say no more to the parent than that a machine is there */
};

/* A thread that tells the parent, until the process ends, how far the run is. */
struct watcher {
    const struct duet_runtime *runtime;
    _Atomic uint64_t *done;
};

static void *watch(void *argument)
{
    const struct watcher *watcher = argument;
    for (;;) {
        atomic_store_explicit(watcher->done, duet_tasks_done(watcher->runtime),
                              memory_order_relaxed);
        g_usleep(50 * G_TIME_SPAN_MILLISECOND);
    }
    return NULL;
}

/*
 * Puts what this process allocates from now on into large pages, if the system grants them: tasks,
 * data and events of a simulation lie all over tens of MB, and faults of small pages and searches
 * of their tables take a third of its time. The heap grows once, for all that most simulations
 * need; a page takes memory once it is written.
 */
static void use_large_pages(void)
{
    enum { MIB = 1 << 20, PAGE = 2 * MIB, HEAP = 1024 * MIB, LARGEST = 32 * MIB };
    static void *before; /* takes the rest of a page, which stays a small one */
    char *const end = sbrk(0), *first = end + -(uintptr_t)end % PAGE;
    if (before || !mallopt(M_MMAP_THRESHOLD, LARGEST) || !mallopt(M_TRIM_THRESHOLD, INT_MAX) ||
        !mallopt(M_TOP_PAD, HEAP))
        return;
    before = malloc((size_t)(first - end) + 1);
    mallopt(M_TOP_PAD, PAGE);
    if ((char *)sbrk(0) > first)
        (void)madvise(first, (size_t)((char *)sbrk(0) - first), MADV_HUGEPAGE);
}

/*
 * Makes a run of a request; `done` is told how many tasks are finished. NULL: nobody is told, and
 * nothing stays open.
 */
static int make_run(struct duet__request *request, const char *policy, size_t rep,
                    _Atomic uint64_t *done, struct duet__run *run, struct duet_message *message)
{
    const enum duet__recorded records = duet__request_records(request, rep);
    struct duet__session session = {.request = request,
                                    .policy = policy,
                                    .problem = request->problem};
    struct watcher *watcher;
    int error;
    use_large_pages();
    if (request->workload->program) /* a program ends with this process */
        (void)setsid();
    request->seed += rep;
    request->records = records;
    error = duet__session_open(&session, message);
    if (!error && done && session.runtime) {
        watcher = g_new(struct watcher, 1); /* the thread outlives this function */
        *watcher = (struct watcher){.runtime = session.runtime, .done = done};
        g_thread_unref(g_thread_new("progress", watch, watcher));
    }
    if (!error)
        error = duet__session_run(&session, run, request->records, message);
    if (!done) /* the process goes on */
        duet__session_close(&session);
    return error;
}

int duet__simulate_here(const struct duet__request *request, struct duet__run *run,
                        struct duet_message *message)
{
    struct duet__request own = *request;
    return make_run(&own, request->policies[0], 0, NULL, run, message);
}

/* Executes a job of a batch, as a duet__execute_fn. */
static void execute(uint64_t job, FILE *stream, void *data)
{
    const struct batch *batch = data;
    const struct duet__request *all = batch->request;
    const size_t policy = job / all->reps;
    struct duet__request request = all->variants ? all->variants[policy] : *all;
    struct result result = {0};
    result.error =
        make_run(&request, all->policies[policy], job % all->reps,
                 batch->shared ? NULL : &batch->counters[job], &result.run, &result.message);
    duet__wire_write(stream, &result, 1, sizeof result);
    duet__recording_write(stream, &result.run.recording);
    duet__run_fini(&result.run);
}

/* ------------------------------------------------------------------------------------------- */
/* The parent                                                                                   */

static int read_result(const struct duet__ended *ended, struct duet__run *run,
                       struct duet_message *message)
{
    FILE *stream = ended->result ? fmemopen(ended->result, ended->length, "r") : NULL;
    struct result result = {0};
    int error = 0;
    if (!stream)
        return duet_fail(message, DUET_ECANCELED, "%s", ended->message.text);
    if (fread(&result, sizeof result, 1, stream) == 1 && result.error) {
        error = duet_fail(message, result.error, "%s",
                          *result.message.text ? result.message.text : duet_strerror(result.error));
    } else {
        *run = result.run;
        if (ended->length < sizeof result || !duet__recording_read(stream, &run->recording)) {
            duet__run_fini(run);
            error = duet_fail(message, DUET_EIO, "it left only a part of its outcome");
        }
    }
    fclose(stream);
    return error;
}

/* Returns true if a lower run of the same policy has failed, so that this one is not wanted. */
static bool is_futile(const struct batch *batch, size_t index)
{
    return index % batch->request->reps > batch->failed[index / batch->request->reps];
}

/* Notes the failure of a run, and ends those of its policy that come after it. */
static void note_failure(struct batch *batch, size_t index, int error,
                         const struct duet_message *message)
{
    const size_t reps = batch->request->reps;
    struct duet__series *series = &batch->series[index / reps];
    if (is_futile(batch, index))
        return;
    batch->failed[index / reps] = index % reps;
    series->error = error;
    series->message = *message;
    series->failed_seed = batch->request->seed + index % reps;
    batch->finished +=
        duet__executor_end(batch->executor, index + 1, (index / reps + 1) * reps - 1);
}

/* Starts the next runs, as many as may run at a time. */
static void start_some(struct batch *batch)
{
    while (batch->next < batch->count && duet__executor_idle(batch->executor, true)) {
        struct duet_message message = {""};
        const size_t index = batch->next++;
        const bool futile = is_futile(batch, index);
        int error = futile ? 0 : duet__executor_give(batch->executor, index, true, &message);
        batch->finished += futile || error;
        if (error)
            note_failure(batch, index, error, &message);
    }
}

/* Takes the result of a run that has ended. */
static void finish(struct batch *batch, struct duet__ended *ended)
{
    const struct duet__request *request = batch->request;
    const size_t index = ended->job;
    struct duet_message message = {""};
    int error;
    if (ended->lost && !duet__executor_give(batch->executor, index, true, &ended->message))
        return; /* a child shows why the run has killed its server */
    error = read_result(ended, &batch->series[index / request->reps].runs[index % request->reps],
                        &message);
    free(ended->result);
    batch->finished++;
    atomic_store(&batch->counters[index], duet__request_tasks(request));
    batch->made[index] = !error;
    if (error)
        note_failure(batch, index, error, &message);
}

static void draw(struct batch *batch)
{
    const uint64_t tasks = duet__request_tasks(batch->request);
    uint64_t done = 0;
    for (size_t i = 0; i < batch->count; i++) {
        uint64_t own = atomic_load_explicit(&batch->counters[i], memory_order_relaxed);
        done += MIN(own, tasks); /* without tasks made by expansions */
    }
    duet__progress_draw(batch->progress, done, batch->finished);
}

/* Moves the runs of a policy that count to the front; those after one that failed do not. */
static void gather(struct batch *batch, size_t policy)
{
    const size_t reps = batch->request->reps;
    struct duet__series *series = &batch->series[policy];
    for (size_t i = 0; i < reps; i++) {
        struct duet__run run = series->runs[i];
        series->runs[i] = (struct duet__run){0};
        if (!batch->made[policy * reps + i])
            continue;
        if (i < batch->failed[policy])
            series->runs[series->count++] = run;
        else
            duet__run_fini(&run);
    }
}

/* Waits a little for runs to end; a signal ends all that are at work. */
static void attend(struct batch *batch)
{
    struct duet__ended ended;
    if (duet__executor_take(batch->executor, 0.1, &ended))
        finish(batch, &ended);
    batch->number = duet__signals_take(&batch->signals, 0);
    if (!batch->number)
        return;
    /* runs that have ended meanwhile count */
    while (duet__executor_take(batch->executor, 0, &ended))
        finish(batch, &ended);
    (void)duet__executor_end(batch->executor, 0, batch->count);
    batch->next = batch->count;
}

static void run_all(struct batch *batch)
{
    /* A server tells nothing of a run before its end: each is one of many, and short. */
    enum { MANY = 8, SMALL = 1000000 }; /* runs of a server; tasks of a run */
    const struct duet__request *request = batch->request;
    batch->shared = batch->count / MANY > request->jobs && !request->workload->program &&
                    duet__request_tasks(request) < SMALL;
    batch->executor =
        duet__executor_new((unsigned)MIN(request->jobs, batch->count), execute, batch);
    batch->made = g_new0(bool, batch->count);
    batch->failed = g_new(size_t, request->policy_count);
    for (size_t i = 0; i < request->policy_count; i++) {
        batch->failed[i] = request->reps;
        batch->series[i] = (struct duet__series){.policy = request->policies[i],
                                                 .runs = g_new0(struct duet__run, request->reps)};
    }
    duet__signals_hold(&batch->signals, false);
    if (batch->shared)
        duet__executor_settle(batch->executor, duet__is_fresh);
    start_some(batch);
    while (duet__executor_busy(batch->executor)) {
        attend(batch);
        start_some(batch);
        draw(batch);
    }
    if (!batch->number)
        batch->number = duet__signals_take(&batch->signals, 0);
    duet__signals_release(&batch->signals);
    for (size_t i = 0; i < request->policy_count; i++)
        gather(batch, i);
    duet__executor_free(batch->executor);
    g_free(batch->failed);
    g_free(batch->made);
}

int duet__simulate(const struct duet__request *request, struct duet__progress *progress,
                   struct duet__series *series, int *number, struct duet_message *message)
{
    struct batch batch = {.request = request,
                          .series = series,
                          .count = request->policy_count * request->reps,
                          .progress = progress};
    const size_t bytes = batch.count * sizeof(*batch.counters);
    int error = 0;
    batch.counters = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (batch.counters == MAP_FAILED) {
        error = duet_fail(message, DUET_EIO, "cannot share memory: %s", strerror(errno));
    } else {
        run_all(&batch);
        munmap(batch.counters, bytes);
    }
    progress->before_tasks += duet__request_tasks(request) * batch.count;
    progress->before_runs += batch.count;
    *number = batch.number;
    return error;
}
