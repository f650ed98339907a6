/* SPDX-License-Identifier: Apache-2.0 */
/* Children that end when they should. */
#define _GNU_SOURCE /* like the source below */
#include <signal.h>
#include <unistd.h>

static pid_t fork_last(void);

/* the child may be told that its parent has died before it could look */
#define fork fork_last
#include "runs/executor.c" /* NOLINT(bugprone-suspicious-include) */
#undef fork

#include "runs/session.h"

static bool orphans; /* a parent dies while it forks */
static int begins;   /* written to when a simulation begins; 0: nowhere */

static pid_t fork_last(void)
{
    pid_t parent = getpid(), pid = fork();
    if (pid > 0 && begins)
        g_assert_cmpint(write(begins, "", 1), ==, 1);
    if (pid == 0 && orphans)
        kill(parent, SIGKILL);
    while (pid == 0 && orphans && getppid() == parent)
        g_usleep(1000);
    return pid;
}

/* Simulates for minutes. Ends the process: by 0 if a signal has come. */
static void simulate_long(void)
{
    struct duet__request request;
    struct duet__series series = {0};
    struct duet__progress progress;
    int number = 0;
    duet__request_init(&request);
    request.workload = duet__workload_find("cholesky");
    request.problem.n = 307200;
    request.problem.tile = 960;
    request.policies = g_strsplit("ws", ",", -1);
    request.policy_count = 1;
    request.config.simulate = "idgraf";
    WORKS(duet__request_build(&request, hear()));
    duet__progress_init(&progress, false, 1, 1);
    WORKS(duet__simulate(&request, &progress, &series, &number, hear()));
    _exit(number == SIGTERM && !series.count && !series.error ? 0 : 1);
}

static void *idle(void *argument)
{
    while (true)
        g_usleep(1000000);
    return argument;
}

/* Returns how the process `pid` ends, or (-1) any other one. */
static int end_of(pid_t pid)
{
    int status;
    g_assert_cmpint(waitpid(pid, &status, 0), >, 0);
    return status;
}

/* A signal is taken where it is waited for, whatever other threads there are. */
static void test_threads(void)
{
    int ends[2];
    char byte;
    pid_t pid;
    g_assert_cmpint(pipe(ends), ==, 0);
    begins = ends[1];
    pid = fork();
    if (pid == 0) {
        g_thread_unref(g_thread_new("idle", idle, NULL));
        simulate_long();
    }
    begins = 0;
    close(ends[1]);
    g_assert_cmpint(read(ends[0], &byte, 1), ==, 1);
    close(ends[0]);
    kill(pid, SIGTERM);
    /* the kernel chooses another thread where the first one blocks the signal */
    g_assert_cmpint(end_of(pid), ==, 0);
}

/* A child whose parent is dead before it has begun ends, too. */
static void test_orphan(void)
{
    int status;
    pid_t pid;
    g_assert_cmpint(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), ==, 0);
    pid = fork();
    if (pid == 0) {
        orphans = true;
        simulate_long();
    }
    status = end_of(pid);
    g_assert_true(WIFSIGNALED(status));
    /* the orphan is this process's child now */
    (void)end_of(-1);
}

static int own[2]; /* a pipe that keeps a process of a child alive */

/* Leaves a result of many bytes, dies, leaves nothing, or leaves the pipe to a process of its own.
 */
static void leave(uint64_t job, FILE *result, void *data)
{
    if (job == 1)
        raise(SIGKILL);
    for (int i = 0; i < *(const int *)data && job != 2; i++)
        fputc('a' + (int)job, result);
    fflush(result);
    if (job == 3 && fork() == 0) {
        close(own[1]);
        _exit(read(own[0], &(char){0}, 1) != 0); /* when the test ends */
    }
}

/* Results come whole, and each death is told, also if SIGCHLD was ignored. */
static void test_results(void)
{
    enum { JOBS = 5, BYTES = 300000 };
    int bytes = BYTES;
    struct duet__executor *executor;
    struct duet__ended ended;
    unsigned seen = 0;
    g_assert_cmpint(pipe(own), ==, 0);
    signal(SIGCHLD, SIG_IGN);
    executor = duet__executor_new(JOBS, leave, &bytes);
    for (uint64_t job = 0; job < JOBS; job++)
        WORKS(duet__executor_give(executor, job, true, hear()));
    g_assert_cmpuint(duet__executor_idle(executor, true), ==, 0);
    while (duet__executor_busy(executor)) {
        if (!duet__executor_take(executor, 0.1, &ended))
            continue;
        seen |= 1U << ended.job;
        if (ended.job == 1)
            g_assert_nonnull(strstr(ended.message.text, "killed by signal 9"));
        else if (ended.job == 2)
            g_assert_cmpstr(ended.message.text, ==, "it ended without a result");
        else
            g_assert_cmpuint(ended.length, ==, BYTES);
        g_assert_true(!ended.result == (ended.job == 1 || ended.job == 2));
        for (size_t i = 0; ended.result && i < ended.length; i++)
            g_assert_cmpint(ended.result[i], ==, 'a' + (int)ended.job);
        free(ended.result);
    }
    g_assert_cmpuint(seen, ==, (1U << JOBS) - 1);
    duet__executor_free(executor);
    close(own[0]);
    close(own[1]);
}

enum { KILLS = 7, STAYS };

static unsigned left = 3; /* jobs that this process may execute */

static bool is_fresh(void)
{
    return left > 0;
}

/* Leaves the number of its process, kills it, or never ends. */
static void tell_process(uint64_t job, FILE *result, void *data)
{
    left--;
    if (job == KILLS)
        raise(SIGKILL);
    if (job == STAYS)
        while (true)
            pause();
    fprintf(result, "%d", (int)getpid());
}

/* Executes a job. Returns the process that has done so; 0: it was lost; -1: it has died. */
static int process_of(struct duet__executor *executor, uint64_t job)
{
    struct duet__ended ended = {0};
    int process;
    WORKS(duet__executor_give(executor, job, true, hear()));
    while (!duet__executor_take(executor, 1, &ended))
        ;
    g_assert_cmpuint(ended.job, ==, job);
    g_assert_true(!*ended.message.text || strstr(ended.message.text, "killed by signal 9"));
    process = ended.result ? (int)g_ascii_strtoll(ended.result, NULL, 10) : ended.lost ? 0 : -1;
    free(ended.result);
    return process;
}

/* A server executes jobs itself until it is fresh no more, or dies; then each job has a child. */
static void test_servers(void)
{
    struct duet__executor *executor = duet__executor_new(1, tell_process, NULL);
    int server, child;
    duet__executor_settle(executor, is_fresh);
    server = process_of(executor, 0);
    g_assert_cmpint(server, !=, getpid());
    g_assert_cmpint(process_of(executor, 1), ==, server);
    g_assert_cmpint(process_of(executor, 2), ==, server);
    child = process_of(executor, 3);
    g_assert_cmpint(child, !=, server);
    g_assert_cmpint(process_of(executor, 4), !=, child);
    duet__executor_free(executor);

    executor = duet__executor_new(1, tell_process, NULL);
    duet__executor_settle(executor, is_fresh);
    g_assert_cmpint(process_of(executor, 0), >, 0);
    g_assert_cmpint(process_of(executor, KILLS), ==, 0);
    g_assert_cmpint(process_of(executor, KILLS), ==, -1);
    g_assert_cmpint(process_of(executor, 1), >, 0);
    duet__executor_free(executor);

    executor = duet__executor_new(1, tell_process, NULL);
    duet__executor_settle(executor, is_fresh);
    g_assert_cmpuint(duet__executor_end(executor, 0, STAYS), ==, 0); /* nothing is at work */
    WORKS(duet__executor_give(executor, STAYS, true, hear()));
    g_assert_cmpuint(duet__executor_end(executor, 0, STAYS), ==, 1);
    g_assert_cmpuint(duet__executor_busy(executor), ==, 0);
    g_assert_cmpint(process_of(executor, 1), >, 0);
    duet__executor_free(executor);
}

/* A process without standard streams, whose connections may have their numbers, has servers, too.
 */
static void test_streams(void)
{
    const pid_t pid = fork();
    if (pid == 0) {
        struct duet__executor *executor = duet__executor_new(1, tell_process, NULL);
        close(STDIN_FILENO);
        close(STDOUT_FILENO);
        duet__executor_settle(executor, is_fresh);
        _exit(process_of(executor, 0) > 0 && process_of(executor, 1) > 0 ? 0 : 1);
    }
    g_assert_cmpint(end_of(pid), ==, 0);
}

TEST_MAIN(test_results, test_servers, test_streams, test_threads, test_orphan)
