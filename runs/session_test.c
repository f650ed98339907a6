/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions, with a workload that submits nothing. */
#include "runs/session.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <glib.h>

static bool interrupts; /* a signal comes while a result is judged */

static int generate(const struct duet__workload *self, const struct duet__problem *problem,
                    void **data, struct duet_message *message)
{
    *data = g_malloc(1);
    return 0;
}

static void fill(void *data, const struct duet_runtime *runtime)
{
}

static int build(const struct duet__workload *self, struct duet_runtime *runtime,
                 const struct duet__problem *problem, void **state, struct duet_message *message)
{
    return 0;
}

static int retrieve(struct duet_runtime *runtime, void *state)
{
    return 0;
}

static struct duet__monitor monitor;

static int verify(void *data, const struct duet__judging *how, struct duet__verdict *verdict,
                  struct duet_message *message)
{
    *verdict = (struct duet__verdict){.formula = "none", .residual = 1, .threshold = 2};
    if (interrupts)
        kill(getpid(), SIGTERM);
    while (interrupts && !duet__monitor_signal(&monitor))
        g_usleep(1000);
    return 0;
}

static const struct duet__workload nothing = {
    .name = "nothing",
    .generate = generate,
    .fill = fill,
    .build = build,
    .retrieve = retrieve,
    .verify = verify,
    .fini = g_free,
    .discard = g_free,
};

/* The runs of one policy out of three. */
static size_t count(int *number)
{
    OWNED(duet__request_fini) struct duet__request request;
    OWNED(duet__series_fini) struct duet__series series = {0};
    size_t finished;
    duet__request_init(&request);
    request.workload = &nothing;
    request.policies = g_strsplit("ws", ",", -1);
    request.policy_count = 1;
    request.reps = 3;
    request.verify = true;
    request.config.cpus = 1;
    request.config.gpus = 0;
    request.config.no_bind = true;
    monitor = (struct duet__monitor){0};
    duet__monitor_start(&monitor, false, 1, 3);
    WORKS(duet__run_all(&request, &monitor, &series, hear()));
    duet__monitor_stop(&monitor);
    g_assert_cmpint(series.error, ==, 0);
    g_assert_cmpstr(series.policy, ==, "ws");
    g_assert_null(duet__series_recording(&series));
    for (size_t i = 0; i < series.count; i++)
        g_assert_true(duet__run_passes(&series.runs[i]));
    finished = series.count;
    *number = duet__monitor_signal(&monitor);
    return finished;
}

/* A run that is finished when a signal comes counts. */
static void test_signal(void)
{
    int number;
    interrupts = false;
    g_assert_cmpuint(count(&number), ==, 3);
    g_assert_cmpint(number, ==, 0);
    interrupts = true;
    g_assert_cmpuint(count(&number), ==, 1);
    g_assert_cmpint(number, ==, SIGTERM);
}

static atomic_bool over;

static void *be_library(void *unused)
{
    while (!atomic_load(&over))
        g_usleep(1000);
    return unused;
}

/* A library's thread, which was there before, hands on who sent a signal. */
static void subprocess_sender(void)
{
    GThread *library = g_thread_new("library", be_library, NULL);
    struct duet__signals signals;
    sigset_t pending;
    static const int wanted[] = {SIGTERM, 0, SIGTERM}; /* the second one is the echo */
    pid_t sender;
    duet__signals_hold(&signals, false);
    sender = fork();
    for (int i = 0; !sender && i < 3; i++) {
        kill(getppid(), SIGTERM);
        raise(SIGSTOP);
    }
    if (!sender)
        _exit(0);
    for (int i = 0; i < 3; i++) {
        g_assert_cmpint(waitpid(sender, NULL, WUNTRACED), ==, sender);
        do
            g_assert_cmpint(sigpending(&pending), ==, 0);
        while (!sigismember(&pending, SIGTERM)); /* not handed on yet */
        g_assert_cmpint(duet__signals_take(&signals, 0.9), ==, wanted[i]);
        kill(sender, SIGCONT);
    }
    g_assert_cmpint(waitpid(sender, NULL, 0), ==, sender);
    atomic_store(&over, true);
    g_thread_join(library);
}

static void test_sender(void)
{
    g_test_trap_subprocess("/subprocess/sender", 0, 0);
    g_test_trap_assert_passed();
}

TEST_MAIN(test_signal, subprocess_sender, test_sender)
