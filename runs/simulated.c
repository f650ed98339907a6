/* SPDX-License-Identifier: Apache-2.0 */
/* The child processes of simulated runs: starting them, what they do, collecting what they leave.
 */
#include "runs/simulated.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runs/monitor.h"
#include "runs/session.h"
#include "runs/wire.h"
#include "world/open.h"

/* Of the runs in the air one. */
struct child {
    pid_t pid; /* 0: none */
    size_t index;
    FILE *stream; /* what it leaves: a file without a name */
};

struct pool {
    const struct duet__request *request;
    struct duet__series *series;
    size_t count, next, finished;
    bool *made;             /* by run, policy after policy */
    size_t *failed;         /* lowest run of each policy that failed; reps: none */
    struct child *children; /* as many as may run at a time */
    unsigned running;
    _Atomic uint64_t *counters; /* finished tasks, by run; shared with the children */
    struct duet__signals signals;
    struct duet__progress *progress;
    int number; /* of the signal that came; 0: none */
};

/* ------------------------------------------------------------------------------------------- */
/* In the child                                                                                 */

/*
 * What a child leaves: this, then the arrays of the recording (wire.h).
 */
struct result {
    int error; /* enum duet_error */
    struct duet_message message;
    struct duet__run run; /* its pointers mean nothing to the parent, but that a machine is there */
};

/* Tells the parent how far the run is, from a thread beside it, until the process ends. */
struct watcher {
    const struct duet_runtime *runtime; /* NULL: a program's */
    _Atomic uint64_t *done;
    pid_t parent;
};

static void *watch(void *argument)
{
    const struct watcher *watcher = argument;

    /* nobody reads what comes out any more once the parent has died */
    while (getppid() == watcher->parent) {
        if (watcher->runtime)
            atomic_store_explicit(watcher->done, duet_tasks_done(watcher->runtime),
                                  memory_order_relaxed);
        g_usleep(50 * G_TIME_SPAN_MILLISECOND);
    }
    _exit(EXIT_FAILURE);
}

/* A guess that a recorded run rests on, as the parent has it; NULL: none. */
static const char *find_guess(const struct duet__recording *recording, GHashTable *guesses)
{
    const struct duet_machine *machine = recording->machine;
    const char *found = NULL;

    for (size_t i = 0; i < recording->event_count && !found; i++) {
        const struct duet_event *event = &recording->events[i];
        g_autofree char *name = NULL;

        if (event->kind != DUET_EVENT_TASK)
            continue;
        name = g_strdup_printf("%s on %s", duet__recording_kernel(recording, event),
                               machine->archs[machine->workers[event->worker].arch].name);
        found = g_hash_table_lookup(guesses, name);
    }
    return found;
}

/*
 * Makes the run and ends the process. Signals stay blocked: a terminal sends its interrupt to
 * children too, and it is the parent that ends them, once it has what is finished.
 */
static void child_main(const struct pool *pool, const struct child *child, pid_t parent)
{
    const size_t reps = pool->request->reps, policy = child->index / reps,
                 rep = child->index % reps;
    struct duet__request request =
        pool->request->variants ? pool->request->variants[policy] : *pool->request;
    const enum duet__recorded records = duet__request_records(&request, rep);
    struct duet__session session = {.request = &request,
                                    .policy = pool->request->policies[policy],
                                    .problem = request.problem};
    struct result result = {0};
    struct watcher watcher = {.done = &pool->counters[child->index], .parent = parent};

    if (request.workload->program) /* whoever ends this process ends that, too */
        (void)setsid();
    /* what libraries print must not get among the results */
    dup2(STDERR_FILENO, STDOUT_FILENO);
    request.seed += rep;
    request.records = request.guesses ? MAX(records, DUET_RECORDS_FIRST) : records;
    result.error = duet__session_open(&session, &result.message);
    if (!result.error) {
        watcher.runtime = session.runtime;
        g_thread_unref(g_thread_new("progress", watch, &watcher));
        result.error = duet__session_run(&session, &result.run, request.records, &result.message);
    }
    if (!result.error && request.guesses) {
        result.run.guess = find_guess(&result.run.recording, request.guesses);
        if (records == DUET_RECORDS_NONE)
            duet__recording_fini(&result.run.recording);
    }
    duet__wire_write(child->stream, &result, 1, sizeof result);
    duet__recording_write(child->stream, &result.run.recording);
    fflush(child->stream);
    /* nothing is gained by tidying up what the system takes back; what could not be written is
       missed when it is read */
    _exit(EXIT_SUCCESS);
}

/* ------------------------------------------------------------------------------------------- */
/* What it has left                                                                             */

static int read_result(FILE *stream, struct duet__run *run, struct duet_message *message)
{
    struct result result;

    rewind(stream);
    if (fread(&result, sizeof result, 1, stream) != 1)
        return duet_fail(message, DUET_EIO, "it ended without a result");
    if (result.error)
        return duet_fail(message, result.error, "%s",
                         *result.message.text ? result.message.text : duet_strerror(result.error));
    *run = result.run;
    if (duet__recording_read(stream, &run->recording))
        return 0;
    duet__run_fini(run);
    return duet_fail(message, DUET_EIO, "it left only a part of its outcome: is /tmp full?");
}

/* ------------------------------------------------------------------------------------------- */
/* The parent                                                                                   */

static void end_child(struct pool *pool, struct child *child)
{
    if (!child->pid)
        return;
    kill(child->pid, SIGKILL);
    kill(-child->pid, SIGKILL); /* what it has started */
    waitpid(child->pid, NULL, 0);
    fclose(child->stream);
    *child = (struct child){0};
    pool->running--;
    pool->finished++;
}

/* Whether a lower run of the same policy has failed, so that this one is not wanted any more. */
static bool is_futile(const struct pool *pool, size_t index)
{
    return index % pool->request->reps > pool->failed[index / pool->request->reps];
}

/* Notes the failure of a run, and ends those of its policy that come after it. */
static void fail(struct pool *pool, size_t index, int error, const struct duet_message *message)
{
    const size_t reps = pool->request->reps;
    struct duet__series *series = &pool->series[index / reps];

    if (is_futile(pool, index))
        return;
    pool->failed[index / reps] = index % reps;
    series->error = error;
    series->message = *message;
    series->failed_seed = pool->request->seed + index % reps;
    for (unsigned i = 0; i < pool->request->jobs; i++)
        if (is_futile(pool, pool->children[i].index))
            end_child(pool, &pool->children[i]);
}

static void start(struct pool *pool, size_t index)
{
    struct duet_message message;
    struct child *child = pool->children;
    pid_t pid = -1, parent = getpid();

    while (child->pid)
        child++;
    child->index = index;
    child->stream = tmpfile();
    if (child->stream) {
        fflush(NULL);
        pid = fork();
    }
    if (pid == 0)
        child_main(pool, child, parent);
    if (pid > 0) {
        child->pid = pid;
        pool->running++;
        return;
    }
    duet_fail(&message, DUET_EIO, "cannot start a process: %s", strerror(errno));
    if (child->stream)
        fclose(child->stream);
    *child = (struct child){0};
    fail(pool, index, DUET_EIO, &message);
}

/* Starts the next runs, as many as may run at a time. */
static void start_some(struct pool *pool)
{
    while (pool->running < pool->request->jobs && pool->next < pool->count) {
        size_t index = pool->next++;

        if (is_futile(pool, index))
            pool->finished++;
        else
            start(pool, index);
    }
}

/* What a child that has ended has left. */
static void finish(struct pool *pool, struct child *child, int status)
{
    const struct duet__request *request = pool->request;
    const size_t index = child->index;
    struct duet_message message = {""};
    FILE *stream = child->stream;
    int error;

    *child = (struct child){0};
    pool->running--;
    pool->finished++;
    if (WIFSIGNALED(status))
        error = duet_fail(&message, DUET_ECANCELED, "killed by signal %d (%s)", WTERMSIG(status),
                          strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) != EXIT_SUCCESS)
        error = duet_fail(&message, DUET_ECANCELED, "it ended with status %d", WEXITSTATUS(status));
    else
        error =
            read_result(stream, &pool->series[index / request->reps].runs[index % request->reps],
                        &message);
    fclose(stream);
    atomic_store(&pool->counters[index], duet__request_tasks(request));
    pool->made[index] = !error;
    if (error)
        fail(pool, index, error, &message);
}

/* Looks which children have ended. */
static void reap(struct pool *pool)
{
    for (unsigned i = 0; i < pool->request->jobs; i++) {
        struct child *child = &pool->children[i];
        int status;

        if (child->pid && waitpid(child->pid, &status, WNOHANG) == child->pid)
            finish(pool, child, status);
    }
}

static void draw(struct pool *pool)
{
    const uint64_t tasks = duet__request_tasks(pool->request);
    uint64_t done = 0;

    for (size_t i = 0; i < pool->count; i++) {
        uint64_t own = atomic_load_explicit(&pool->counters[i], memory_order_relaxed);

        done += MIN(own, tasks); /* not those that others expand into */
    }
    duet__progress_draw(pool->progress, done, pool->finished);
}

static void wait_for_signal(struct pool *pool)
{
    int number = duet__signals_take(&pool->signals, 0.1);

    if (!number)
        return;
    /* what has ended meanwhile is finished */
    reap(pool);
    for (unsigned i = 0; i < pool->request->jobs; i++)
        end_child(pool, &pool->children[i]);
    pool->number = number;
    pool->next = pool->count;
}

/* Moves the runs of a policy that count to the front; those after one that failed do not. */
static void gather(struct pool *pool, size_t policy)
{
    const size_t reps = pool->request->reps;
    struct duet__series *series = &pool->series[policy];

    for (size_t i = 0; i < reps; i++) {
        struct duet__run run = series->runs[i];

        series->runs[i] = (struct duet__run){0};
        if (!pool->made[policy * reps + i])
            continue;
        if (i < pool->failed[policy])
            series->runs[series->count++] = run;
        else
            duet__run_fini(&run);
    }
}

static void run_all(struct pool *pool)
{
    const struct duet__request *request = pool->request;

    pool->children = g_new0(struct child, request->jobs);
    pool->made = g_new0(bool, pool->count);
    pool->failed = g_new(size_t, request->policy_count);
    for (size_t i = 0; i < request->policy_count; i++) {
        pool->failed[i] = request->reps;
        pool->series[i] = (struct duet__series){.policy = request->policies[i],
                                                .runs = g_new0(struct duet__run, request->reps)};
    }
    duet__signals_hold(&pool->signals, true);
    duet__open_ahead();
    start_some(pool);
    while (pool->running) {
        wait_for_signal(pool);
        reap(pool);
        start_some(pool);
        draw(pool);
    }
    if (!pool->number)
        pool->number = duet__signals_take(&pool->signals, 0);
    duet__signals_release(&pool->signals);
    for (size_t i = 0; i < request->policy_count; i++)
        gather(pool, i);
    g_free(pool->failed);
    g_free(pool->made);
    g_free(pool->children);
}

int duet__simulate(const struct duet__request *request, struct duet__progress *progress,
                   struct duet__series *series, int *number, struct duet_message *message)
{
    struct pool pool = {.request = request,
                        .series = series,
                        .count = request->policy_count * request->reps,
                        .progress = progress};
    const size_t bytes = pool.count * sizeof(*pool.counters);
    int error = 0;

    pool.counters = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (pool.counters == MAP_FAILED) {
        error = duet_fail(message, DUET_EIO, "cannot share memory: %s", strerror(errno));
    } else {
        run_all(&pool);
        munmap(pool.counters, bytes);
    }
    progress->before_tasks += duet__request_tasks(request) * pool.count;
    progress->before_runs += pool.count;
    *number = pool.number;
    return error;
}
