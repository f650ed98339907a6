/* SPDX-License-Identifier: Apache-2.0 */
/* Starting the child processes of simulated runs, and collecting what they leave. */
#include "runs/simulated.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "world/open.h"

/* A run that is in the air. */
struct child {
    pid_t pid; /* 0: none */
    size_t index;
    FILE *stream; /* what it leaves: a file without a name */
};

struct pool {
    const struct duet_request *request;
    struct duet_run *runs;
    size_t count, next, finished;
    struct child *children; /* as many as may run at a time */
    unsigned running;
    size_t *failed;              /* lowest run of each policy that failed; reps: none */
    FILE *shared;                /* file behind the counters */
    duet_task_counter *counters; /* finished tasks, by run */
    sigset_t watched;            /* signals that are waited for, blocked meanwhile */
    sigset_t before;
    struct duet_progress *progress;
    int number; /* of the signal that came; 0: none */
};

/*
 * Blocks the signals that end a process, but for those that are ignored, and that of a child's end:
 * they are then taken one by one, and no handler is needed.
 */
static void block_signals(struct pool *pool)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action;

    sigemptyset(&pool->watched);
    signal(SIGCHLD, SIG_DFL);
    sigaddset(&pool->watched, SIGCHLD);
    for (size_t i = 0; i < G_N_ELEMENTS(ends); i++)
        if (sigaction(ends[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(&pool->watched, ends[i]);
    sigprocmask(SIG_BLOCK, &pool->watched, &pool->before);
}

static int open_counters(struct pool *pool, struct duet_message *message)
{
    size_t size = pool->count * sizeof(*pool->counters);

    pool->shared = tmpfile();
    if (!pool->shared || ftruncate(fileno(pool->shared), (off_t)size) != 0)
        return duet_fail(message, DUET_EIO, "cannot make a temporary file: %s", strerror(errno));
    pool->counters = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(pool->shared), 0);
    if (pool->counters == MAP_FAILED) {
        pool->counters = NULL;
        return duet_fail(message, DUET_EIO, "cannot share memory: %s", strerror(errno));
    }
    return 0;
}

/*
 * In the child: makes the run and ends the process. Signals stay blocked: a terminal sends its
 * interrupt to children too, and it is the parent that ends them, once it has what is finished.
 */
static void child_main(struct pool *pool, struct child *child)
{
    size_t reps = pool->request->reps;

    /* what libraries print must not get among the results */
    dup2(STDERR_FILENO, STDOUT_FILENO);
    duet_simulation_child(pool->request, child->index / reps, child->index % reps, child->stream,
                          &pool->counters[child->index]);
    _exit(ferror(child->stream) ? EXIT_FAILURE : EXIT_SUCCESS);
}

static void end_child(struct pool *pool, struct child *child)
{
    if (!child->pid)
        return;
    kill(child->pid, SIGKILL);
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
    size_t reps = pool->request->reps;

    duet_run_fail(&pool->runs[index], error, message);
    pool->failed[index / reps] = MIN(pool->failed[index / reps], index % reps);
    for (unsigned i = 0; i < pool->request->jobs; i++)
        if (is_futile(pool, pool->children[i].index))
            end_child(pool, &pool->children[i]);
    /* what has ended already is as if it had not been made: the same every time */
    for (size_t i = index + 1; i < (index / reps + 1) * reps; i++) {
        duet_run_fini(&pool->runs[i]);
        pool->runs[i].error = DUET_ECANCELED;
    }
}

static void start(struct pool *pool, size_t index)
{
    struct duet_message message;
    struct child *child = pool->children;
    pid_t pid = -1;

    while (child->pid)
        child++;
    child->index = index;
    child->stream = tmpfile();
    if (child->stream) {
        fflush(NULL);
        pid = fork();
    }
    if (pid == 0)
        child_main(pool, child);
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
    struct duet_message message = {""};
    size_t index = child->index;
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
        error = duet_simulation_read(pool->request, &pool->runs[index], stream, &message);
    fclose(stream);
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
    uint64_t done = 0;

    for (size_t i = 0; i < pool->count; i++)
        done += atomic_load_explicit(&pool->counters[i], memory_order_relaxed);
    duet_progress_draw(pool->progress, done, pool->finished);
}

static void wait_for_signal(struct pool *pool)
{
    const struct timespec pause = {.tv_nsec = 100 * 1000 * 1000};
    int number = sigtimedwait(&pool->watched, NULL, &pause);

    if (number <= 0 || number == SIGCHLD)
        return;
    /* what has ended meanwhile is finished */
    reap(pool);
    for (unsigned i = 0; i < pool->request->jobs; i++)
        end_child(pool, &pool->children[i]);
    pool->number = number;
    pool->next = pool->count;
}

static void run_all(struct pool *pool)
{
    pool->children = g_new0(struct child, pool->request->jobs);
    block_signals(pool);
    duet__open_ahead();
    start_some(pool);
    while (pool->running) {
        wait_for_signal(pool);
        reap(pool);
        start_some(pool);
        draw(pool);
    }
    sigprocmask(SIG_SETMASK, &pool->before, NULL);
    g_free(pool->children);
}

int duet_simulate(const struct duet_request *request, struct duet_progress *progress,
                  struct duet_run *runs, int *number, struct duet_message *message)
{
    struct pool pool = {.request = request,
                        .runs = runs,
                        .count = request->policy_count * request->reps,
                        .progress = progress};
    int error = open_counters(&pool, message);

    if (!error) {
        pool.failed = g_new(size_t, request->policy_count);
        for (size_t i = 0; i < request->policy_count; i++)
            pool.failed[i] = request->reps;
        run_all(&pool);
        g_free(pool.failed);
    }
    if (pool.counters)
        munmap(pool.counters, pool.count * sizeof(*pool.counters));
    if (pool.shared)
        fclose(pool.shared);
    progress->before_tasks += duet_request_tasks(request) * pool.count;
    progress->before_runs += pool.count;
    *number = pool.number;
    return error;
}
