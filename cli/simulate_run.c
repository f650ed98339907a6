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
#include "world/open.h"

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
    struct duet__progress *progress;
    struct duet__sequence *sequence; /* of which this is a part; NULL: a signal ends the process */
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

/* Reads the outcome of a child, and shows it to the one who wants to see each. */
static int read_outcome(struct pool *pool, const struct child *child, struct duet_message *message)
{
    const struct duet__simulation *simulation = pool->simulation;
    struct duet__outcome *outcome = &pool->outcomes[child->index];
    size_t reps = simulation->job.reps;
    int error =
        duet__outcome_read(outcome, fileno(child->stream), &simulation->job.machine, message);

    if (!simulation->each)
        return error;
    if (!error)
        error = simulation->each(simulation->self, child->index / reps, child->index % reps,
                                 outcome, message);
    duet__outcome_fini(outcome);
    return error;
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
        error = read_outcome(pool, child, &message);
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
    uint64_t done = pool->sequence ? pool->sequence->tasks : 0;
    uint64_t runs = pool->sequence ? pool->sequence->runs : 0;

    for (size_t i = 0; i < pool->count; i++)
        done += atomic_load_explicit(&pool->counters[i], memory_order_relaxed);
    duet__progress_draw(pool->progress, done, runs + pool->finished);
}

static void end_children(struct pool *pool)
{
    for (unsigned i = 0; i < pool->simulation->jobs; i++) {
        struct child *child = &pool->children[i];

        if (!child->pid)
            continue;
        kill(child->pid, SIGKILL);
        waitpid(child->pid, NULL, 0);
        fclose(child->stream);
        *child = (struct child){0};
    }
    pool->running = 0;
}

/* Ends the children, then this process, by the signal that came; or the runs only. */
static void give_up(struct pool *pool, int number)
{
    end_children(pool);
    if (pool->sequence) {
        pool->sequence->number = number;
        pool->count = 0; /* so that none begins */
        return;
    }
    duet__progress_clear(pool->progress);
    signal(number, SIG_DFL);
    raise(number);
    sigprocmask(SIG_SETMASK, &pool->before, NULL);
}

static void wait_for_signal(struct pool *pool)
{
    const struct timespec pause = {.tv_nsec = 100 * 1000 * 1000};
    int number = sigtimedwait(&pool->watched, NULL, &pause);

    if (number > 0 && number != SIGCHLD)
        give_up(pool, number);
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

/* Makes them. An error if the system has no means for it; those of the runs are in the pool. */
static int make(struct pool *pool, struct duet_message *message)
{
    size_t bytes = pool->count * sizeof(*pool->counters);
    int error = open_counters(pool, message);

    if (!error) {
        pool->children = g_new0(struct child, pool->simulation->jobs);
        block_signals(pool);
        duet__open_ahead();
        run_all(pool);
        if (!pool->sequence)
            duet__progress_clear(pool->progress);
        sigprocmask(SIG_SETMASK, &pool->before, NULL);
        g_free(pool->children);
    }
    if (pool->counters)
        munmap(pool->counters, bytes);
    if (pool->shared)
        fclose(pool->shared);
    return error;
}

int duet__simulation_run(const struct duet__simulation *simulation, struct duet__outcome *outcomes)
{
    const struct duet__job *job = &simulation->job;
    size_t count = job->policy_count * job->reps;
    struct duet_message message = {""};
    struct duet__progress progress;
    struct pool pool = {.simulation = simulation,
                        .outcomes = outcomes,
                        .count = count,
                        .failed = count,
                        .progress = &progress};

    duet__progress_init(&progress, !job->quiet, job->workload->tasks(&job->problem) * count, count);
    if (make(&pool, &message))
        return duet__complain(DUET__FAILED, "%s", message.text);
    return pool.failed < count ? complain(&pool) : DUET__DONE;
}

int duet__simulation_go(const struct duet__simulation *simulation, struct duet__sequence *sequence,
                        struct duet_message *message)
{
    const struct duet__job *job = &simulation->job;
    size_t count = job->policy_count * job->reps;
    struct pool pool = {.simulation = simulation,
                        .count = count,
                        .failed = count,
                        .progress = &sequence->progress,
                        .sequence = sequence};
    int error;

    pool.outcomes = g_new0(struct duet__outcome, count);
    error = make(&pool, message);
    sequence->tasks += job->workload->tasks(&job->problem) * count;
    sequence->runs += count;
    /* those of runs that were not shown */
    for (size_t i = 0; i < count; i++)
        duet__outcome_fini(&pool.outcomes[i]);
    g_free(pool.outcomes);
    if (!error && !sequence->number && pool.failed < count)
        error = duet_fail(message, pool.error, "%s", pool.message.text);
    return error;
}
