/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runs of `duet simulate`, each in a child process (SimGrid has one engine a process), as many
 * at a time as there are cores. The outcome does not depend on which child ends first.
 */
#include "cli/simulate.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/progress.h"

/* A run that is in the air. */
struct child {
    pid_t pid; /* 0: none */
    size_t index;
    FILE *stream; /* its outcome: a file without a name */
};

struct pool {
    const struct duet__simulation *simulation;
    struct duet__outcome *outcomes;
    struct child *children; /* `jobs` of them */
    unsigned running;
    size_t count, next, finished;
    size_t failed; /* lowest run that failed; count: none */
    int error;     /* and its error */
    struct duet_message message;
    FILE *shared;            /* file behind the counters */
    duet__counter *counters; /* finished tasks, by run */
    sigset_t watched;        /* signals that are waited for, blocked meanwhile */
    sigset_t before;
    struct duet__progress progress;
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

static int open_counters(struct pool *pool)
{
    size_t size = pool->count * sizeof(*pool->counters);

    pool->shared = tmpfile();
    if (!pool->shared || ftruncate(fileno(pool->shared), (off_t)size) != 0)
        return duet__complain(DUET__FAILED, "cannot make a temporary file: %s", strerror(errno));
    pool->counters = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(pool->shared), 0);
    if (pool->counters == MAP_FAILED) {
        pool->counters = NULL;
        return duet__complain(DUET__FAILED, "cannot share memory: %s", strerror(errno));
    }
    return DUET__DONE;
}

/* In the child: makes the run and ends the process. */
static void child_main(struct pool *pool, struct child *child)
{
    size_t reps = pool->simulation->job.reps;

    /* what libraries print must not get among the results */
    dup2(STDERR_FILENO, STDOUT_FILENO);
    sigprocmask(SIG_SETMASK, &pool->before, NULL);
    duet__simulation_child(pool->simulation, child->index / reps, child->index % reps,
                           child->stream, &pool->counters[child->index]);
    _exit(ferror(child->stream) ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* Remembers the failure of the lowest run, and does not begin those after it. */
static void fail(struct pool *pool, size_t index, int error, const struct duet_message *message)
{
    if (index >= pool->failed)
        return;
    pool->failed = index;
    pool->error = error;
    pool->message = *message;
    for (unsigned i = 0; i < pool->simulation->jobs; i++)
        if (pool->children[i].pid && pool->children[i].index > index)
            kill(pool->children[i].pid, SIGKILL);
}

static void start(struct pool *pool)
{
    struct duet_message message;
    struct child *child = pool->children;
    pid_t pid = -1;

    while (child->pid)
        child++;
    child->index = pool->next++;
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
    child->stream = NULL;
    fail(pool, child->index, DUET_EIO, &message);
}

/* The outcome of a child that has ended. */
static void finish(struct pool *pool, struct child *child, int status)
{
    struct duet_message message = {""};
    int error;

    if (WIFSIGNALED(status))
        error = duet_fail(&message, DUET_ECANCELED, "killed by signal %d (%s)", WTERMSIG(status),
                          strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) != EXIT_SUCCESS)
        error = duet_fail(&message, DUET_ECANCELED, "it ended with status %d", WEXITSTATUS(status));
    else
        error = duet__outcome_read(&pool->outcomes[child->index], fileno(child->stream),
                                   &pool->simulation->job.machine, &message);
    if (error)
        fail(pool, child->index, error, &message);
    fclose(child->stream);
    *child = (struct child){0};
    pool->running--;
    pool->finished++;
}

/* Looks which children have ended. */
static void reap(struct pool *pool)
{
    for (unsigned i = 0; i < pool->simulation->jobs; i++) {
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
    duet__progress_draw(&pool->progress, done, pool->finished);
}

/* Ends the children, then this process, by the signal that came. */
static void die(struct pool *pool, int number)
{
    for (unsigned i = 0; i < pool->simulation->jobs; i++) {
        if (!pool->children[i].pid)
            continue;
        kill(pool->children[i].pid, SIGKILL);
        waitpid(pool->children[i].pid, NULL, 0);
    }
    duet__progress_clear(&pool->progress);
    signal(number, SIG_DFL);
    raise(number);
    sigprocmask(SIG_SETMASK, &pool->before, NULL);
}

static void wait_for_signal(struct pool *pool)
{
    const struct timespec pause = {.tv_nsec = 100 * 1000 * 1000};
    int number = sigtimedwait(&pool->watched, NULL, &pause);

    if (number > 0 && number != SIGCHLD)
        die(pool, number);
}

static void run_all(struct pool *pool)
{
    while (pool->running || pool->next < MIN(pool->count, pool->failed)) {
        while (pool->running < pool->simulation->jobs &&
               pool->next < MIN(pool->count, pool->failed))
            start(pool);
        if (pool->running)
            wait_for_signal(pool);
        reap(pool);
        draw(pool);
    }
}

/* One line for the run that failed. */
static int complain(const struct pool *pool)
{
    const struct duet__job *job = &pool->simulation->job;
    char *what = g_strdup_printf("the simulation of %s with seed %" G_GUINT64_FORMAT,
                                 job->policies[pool->failed / job->reps],
                                 job->seed + pool->failed % job->reps);
    int status = duet__job_complain(what, pool->error, &pool->message);

    g_free(what);
    return status;
}

int duet__simulation_run(const struct duet__simulation *simulation, struct duet__outcome *outcomes)
{
    const struct duet__job *job = &simulation->job;
    size_t count = job->policy_count * job->reps;
    struct pool pool = {.simulation = simulation,
                        .outcomes = outcomes,
                        .count = count,
                        .failed = count};
    int status = open_counters(&pool);

    if (status == DUET__DONE) {
        pool.children = g_new0(struct child, simulation->jobs);
        duet__progress_init(&pool.progress, !job->quiet,
                            job->workload->tasks(&job->problem) * count, count);
        block_signals(&pool);
        run_all(&pool);
        duet__progress_clear(&pool.progress);
        sigprocmask(SIG_SETMASK, &pool.before, NULL);
        if (pool.failed < count)
            status = complain(&pool);
        g_free(pool.children);
    }
    if (pool.counters)
        munmap(pool.counters, count * sizeof(*pool.counters));
    if (pool.shared)
        fclose(pool.shared);
    return status;
}
