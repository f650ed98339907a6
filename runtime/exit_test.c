/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that end in the middle of a run, without duet_close: with their own exit status. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/testing.h"

enum { COUNT = 1 << 16, HANDLES = 6, RUNTIMES = 2 };

enum when { IN_FLIGHT, INSIDE, FAILED };

/* A program: `runtimes` in the world of `simulate` and `emulate`, which end by exit(status). */
struct program {
    const char *simulate, *emulate;
    unsigned runtimes;
    enum when when;
    int status;
};

static struct program program;
static struct duet_runtime *held[RUNTIMES]; /* of a program, until it ends */
static double data[RUNTIMES][HANDLES][COUNT];

/* Ends the program, by one of its threads: exit may not be called by two. */
static void leave(void)
{
    static atomic_flag leaving = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&leaving))
        exit(program.status);
    for (;;)
        pause();
}

static int compute(const struct duet_call *call)
{
    double *values = call->buffers[0].data;
    for (int i = 0; i < COUNT; i++)
        values[i] += 1;
    return DUET_OK;
}

static double cost(const void *args, const char *arch)
{
    return 0.010;
}

static int end(struct duet_expansion *expansion, const struct duet_call *call)
{
    if (program.when == INSIDE)
        leave();
    return DUET_EIO;
}

static void submit(struct duet_runtime *duet, const char *name, struct duet_handle *handle)
{
    const struct duet_access access = {handle, DUET_RW};
    const struct duet_task_desc task = testing_task(duet, name, handle ? &access : NULL, NULL, 0);
    must(duet, duet_submit(duet, &task));
}

/* Makes the program wait in the middle of a run, with kernels and copies in flight. */
static void run_a_while(unsigned index)
{
    struct duet_handle *handles[HANDLES];
    struct duet_config config =
        testing_config(program.simulate, 2, program.simulate || program.emulate ? 2 : 0);
    const struct duet_codelet_desc computes = {.cost = cost}, ends = {.expand = end};
    config.emulate = program.emulate;
    struct duet_runtime *duet = held[index] = testing_open(&config);
    (void)testing_codelet(duet, "compute", compute, computes);
    (void)testing_codelet(duet, "end", NULL, ends);
    for (unsigned i = 0; i < HANDLES; i++)
        must(duet, duet_register_vector(duet, data[index][i], COUNT, sizeof(double), &handles[i]));
    submit(duet, "compute", handles[0]);
    for (unsigned i = 1; i < 100 * HANDLES; i++)
        if (i % HANDLES)
            submit(duet, "compute", handles[i % HANDLES]);
    if (program.when != IN_FLIGHT)
        submit(duet, "end", NULL);
    int error = duet_acquire(duet, handles[0], DUET_R);
    g_assert_true(!error || program.when == FAILED);
}

/* Runs a program in a process of its own. */
static void run(void)
{
    int status = 0;
    pid_t child = fork();
    g_assert_cmpint(child, >=, 0);
    if (child == 0) {
        for (unsigned i = 0; i < program.runtimes; i++)
            run_a_while(i);
        leave();
    }
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    if (WIFSIGNALED(status))
        g_error("the program ended by signal %d", WTERMSIG(status));
    g_assert_cmpint(WEXITSTATUS(status), ==, program.status);
}

static void run_all(struct program like)
{
    program = like;
    for (program.when = IN_FLIGHT; program.when <= FAILED; program.when++) {
        program.status = program.when == FAILED ? 0 : 3;
        run();
    }
}

static void test_simulated(void)
{
    run_all((struct program){.simulate = "idgraf", .runtimes = RUNTIMES});
}

static void test_real(void)
{
    run_all((struct program){.runtimes = RUNTIMES});
}

static void test_emulated(void)
{
    run_all((struct program){.emulate = "free", .runtimes = RUNTIMES});
}

static atomic_uint opened;

static void *open_and_close(void *unused)
{
    const struct duet_config config = testing_config(NULL, 2, -1);
    for (;; atomic_fetch_add(&opened, 1))
        (void)duet_close(testing_open(&config));
    return unused;
}

/* The process ends while other threads open and close runtimes, each time at another moment. */
static void test_opening(void)
{
    if (g_getenv("TSAN_OPTIONS")) { /* TSan reports ended threads that nobody has joined yet */
        g_test_skip("threads are left");
        return;
    }
    for (unsigned i = 0; i < 10; i += 2) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            pthread_t thread;
            for (unsigned t = 0; t < 4; t++)
                g_assert_cmpint(pthread_create(&thread, NULL, open_and_close, NULL), ==, 0);
            while (atomic_load(&opened) < i)
                (void)sched_yield();
            exit(0);
        }
        g_assert_cmpint(waitpid(child, &status, 0), ==, child);
        g_assert_cmpint(status, ==, 0);
    }
}

TEST_MAIN(test_simulated, test_real, test_emulated, test_opening)
