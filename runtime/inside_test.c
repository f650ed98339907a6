/* SPDX-License-Identifier: Apache-2.0 */
/* Tests what kernels and expansions may call, and what they get, in both worlds. */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <duet/trace.h>

#include "runtime/testing.h"

static struct duet_handle *handle;

static int compute(const struct duet_call *call)
{
    return DUET_OK;
}

static double cost(const void *args, const char *arch)
{
    return 1e-5;
}

static int submit(struct duet_runtime *duet, const char *name, unsigned depth)
{
    const struct duet_task_desc task = testing_task(duet, name, NULL, &depth, sizeof depth);
    return duet_submit(duet, &task);
}

/* Two kernels, and as often as it says itself, submitted twice: 2, 6, 14 ... kernels. */
static int unfold(struct duet_expansion *expansion, const struct duet_call *call)
{
    struct duet_runtime *duet = call->runtime;
    unsigned depth;
    memcpy(&depth, call->args, sizeof depth);
    g_assert_cmpint(submit(duet, "compute", 0), ==, DUET_OK);
    g_assert_cmpint(submit(duet, "compute", 0), ==, DUET_OK);
    if (!depth--)
        return DUET_OK;
    const struct duet_task_desc child = testing_task(duet, "unfold", NULL, &depth, sizeof depth);
    g_assert_cmpint(submit(duet, "unfold", depth), ==, DUET_OK);
    return duet_expand_submit(expansion, &child);
}

/* Everything but submissions. */
static int call_all(const struct duet_call *call)
{
    struct duet_runtime *duet = call->runtime;
    const struct duet_implementation where = {"cpu", compute};
    const struct duet_codelet_desc desc = {.name = "late",
                                           .implementations = &where,
                                           .implementation_count = 1,
                                           .cost = cost};
    struct duet_codelet *codelet = NULL;
    struct duet_handle *vector = NULL;
    struct duet_stats stats;
    double now_s = duet_now(duet);
    const int worker = duet_worker_here(duet);
    g_assert_true(worker >= 0 && (unsigned)worker < duet_runtime_machine(duet)->worker_count);
    duet_stats(duet, &stats);
    g_assert_cmpfloat(now_s, >=, stats.last_end_s);
    g_assert_cmpfloat(duet_now(duet), >=, now_s);
    g_assert_cmpint(duet_register_vector(duet, &stats, 1, sizeof stats, &vector), ==, DUET_OK);
    g_assert_cmpint(duet_register_codelet(duet, &desc, &codelet), ==, DUET_OK);
    g_assert_cmpint(duet_release(duet, vector), ==, DUET_EINVAL);
    g_assert_cmpint(duet_wait(duet), ==, DUET_EINVAL);
    g_assert_cmpint(duet_acquire(duet, handle, DUET_R), ==, DUET_EINVAL);
    g_assert_cmpint(duet_unregister(duet, handle), ==, DUET_EINVAL);
    g_assert_cmpint(duet_close(duet), ==, DUET_EINVAL);
    return DUET_OK;
}

static int expand_all(struct duet_expansion *expansion, const struct duet_call *call)
{
    return call_all(call);
}

static struct duet_runtime *open_world(const char *simulate)
{
    static double value;
    static const struct duet_codelet_desc computes = {.cost = cost}, unfolds = {.expand = unfold},
                                          expands = {.expand = expand_all};
    struct duet_config config = testing_config(simulate, 1, 0);
    config.window = 1;
    struct duet_runtime *duet = testing_open(&config);
    must(duet, duet_register_vector(duet, &value, 1, sizeof value, &handle));
    (void)testing_codelet(duet, "compute", compute, computes);
    (void)testing_codelet(duet, "unfold", NULL, unfolds);
    (void)testing_codelet(duet, "call", call_all, computes);
    (void)testing_codelet(duet, "expand", NULL, expands);
    return duet;
}

/* The window is full all the time, and nobody inside waits for it. */
static void submit_inside(struct duet_runtime *duet)
{
    struct duet_stats stats;
    for (unsigned i = 0; i < 3; i++)
        must(duet, submit(duet, "unfold", 2));
    must(duet, duet_wait(duet));
    duet_stats(duet, &stats);
    g_assert_cmpuint(stats.tasks, ==, 3 * 14);
}

/* A call that waits is refused and fails the run, even if the caller does not care. */
static void refuse_inside(struct duet_runtime *duet, const char *name)
{
    must(duet, submit(duet, name, 0));
    g_assert_cmpint(duet_wait(duet), ==, DUET_EINVAL);
    g_assert_true(g_str_has_prefix(duet_last_message(duet), "duet_wait was called inside"));
    g_assert_cmpint(duet_close(duet), ==, DUET_EINVAL);
}

static void test_expansion(void)
{
    const char *const worlds[] = {NULL, "idgraf"};
    for (unsigned i = 0; i < G_N_ELEMENTS(worlds); i++) {
        struct duet_runtime *duet = open_world(worlds[i]);
        submit_inside(duet);
        refuse_inside(duet, "expand");
    }
}

/* Kernels run in real runs only. */
static void test_kernel(void)
{
    refuse_inside(open_world(NULL), "call");
}

#define refused(duet, call) REFUSED(duet, call, DUET_EINVAL, "was called in a child made by fork")

/* A child made by fork has none of the runtime's threads: it waits for nothing, and may open one.
 */
static void test_fork(void)
{
    struct duet_runtime *duet = open_world(NULL);
    int status;
    must(duet, submit(duet, "compute", 0));
    must(duet, duet_acquire(duet, handle, DUET_R));
    pid_t child = fork();
    if (child == 0) {
        refused(duet, submit(duet, "compute", 0));
        refused(duet, duet_wait(duet));
        refused(duet, duet_release(duet, handle));
        refused(duet, duet_acquire(duet, handle, DUET_R));
        refused(duet, duet_unregister(duet, handle));
        refused(duet, duet_unregister_submit(duet, handle));
        refused(duet, duet_prefetch(duet, handle, DUET_HOST));
        refused(duet, duet_recover(duet));
        refused(duet, duet_close(duet));
#ifdef __SANITIZE_THREAD__ /* TSan knows no threads of children made by fork */
        _exit(0);
#endif
        duet = open_world(NULL);
        must(duet, submit(duet, "compute", 0));
        must(duet, duet_wait(duet));
        must(duet, duet_close(duet));
        _exit(0);
    }
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    g_assert_cmpint(status, ==, 0);
    must(duet, duet_release(duet, handle));
    must(duet, duet_close(duet));
}

TEST_MAIN(test_expansion, test_kernel, test_fork)
