/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the application go through a gate, those from inside do not. */
#include <duet/failure.h>
#include <duet/graph.h>
#include <duet/hint.h>

#include "core/testing_lost.h"

enum call { SUBMIT, WAIT, ACQUIRE, RELEASE, UNREGISTER, LATER, HINT, REDUCTION, RECOVER, RESET };

struct keeper {
    struct duet_runtime *core;
    unsigned calls[RESET + 1], failures;
    struct duet_message why;
};

/* Counts a call through the gate. Returns the runtime behind it. */
static struct duet_runtime *counted(void *gate, enum call call)
{
    struct keeper *keeper = gate;
    keeper->calls[call]++;
    return keeper->core;
}

static int submit(void *gate, const struct duet_task_desc *task)
{
    return duet__submit_here(counted(gate, SUBMIT), task);
}

static int wait(void *gate)
{
    return duet__wait_here(counted(gate, WAIT));
}

static int acquire(void *gate, struct duet_handle *handle, enum duet_mode mode)
{
    return duet__acquire_here(counted(gate, ACQUIRE), handle, mode);
}

static int release(void *gate, struct duet_handle *handle)
{
    return duet__release_here(counted(gate, RELEASE), handle);
}

static int unregister(void *gate, struct duet_handle *handle, bool waits)
{
    return waits ? duet__unregister_here(counted(gate, UNREGISTER), handle)
                 : duet__unregister_submit_here(counted(gate, LATER), handle);
}

static int hint(void *gate, struct duet_handle *handle, enum duet__hint kind, unsigned node)
{
    return duet__hint_here(counted(gate, HINT), handle, kind, node);
}

static int reduction(void *gate, struct duet_handle *handle, const struct duet_codelet *init,
                     const struct duet_codelet *combine)
{
    return duet__reduction_here(counted(gate, REDUCTION), handle, init, combine);
}

static int recover(void *gate)
{
    return duet__recover_here(counted(gate, RECOVER));
}

static void stats_reset(void *gate)
{
    duet__stats_reset_here(counted(gate, RESET));
}

static void failed(void *gate, int error, const char *why)
{
    struct keeper *keeper = gate;
    keeper->failures++;
    (void)duet_fail(&keeper->why, error, "%s", why);
}

static const struct duet__gate gate = {submit, wait,      acquire, release,     unregister,
                                       hint,   reduction, recover, stats_reset, failed};

static struct testing *start(struct keeper *keeper)
{
    struct testing *t = lost_start(&(struct testing_machine){.cpus = 1, .gpus = 1}, "eager");
    *keeper = (struct keeper){.core = t->core};
    g_assert_null(duet__core_gate_arg(t->core));
    duet__core_gate(t->core, &gate, keeper);
    g_assert_true(duet__core_gate_arg(t->core) == keeper);
    return t;
}

/* Each call, by the application, or inside a kernel where it may be made there. */
static void use(struct testing *t, bool inside)
{
    struct duet_handle *a, *b;
    g_assert_cmpint(duet_register_temporary(t->core, 4, 4, 8, &a), ==, DUET_OK);
    g_assert_cmpint(duet_register_temporary(t->core, 4, 4, 8, &b), ==, DUET_OK);
    t->in_kernel = inside ? 1 : 0;
    g_assert_cmpint(duet_set_reduction(t->core, a, t->any, t->any), ==, DUET_OK);
    submit_to(t, t->any, NULL, a, DUET_W, NULL, 0);
    struct duet_graph *graph = NULL;
    g_assert_cmpint(duet_graph_begin(t->core), ==, inside ? DUET_EINVAL : DUET_OK);
    g_assert_cmpint(duet_insert(t->core, t->any, DUET_W, b, DUET_VALUE, &(double){1e6},
                                sizeof(double), 0),
                    ==, DUET_OK);
    g_assert_cmpint(duet_graph_end(t->core, &graph), ==, inside ? DUET_EINVAL : DUET_OK);
    g_assert_true(inside || !duet_graph_submit(t->core, graph));
    duet_graph_free(graph);
    g_assert_cmpint(duet_prefetch(t->core, a, 1), ==, DUET_OK);
    g_assert_cmpint(duet_wont_use(t->core, a), ==, DUET_OK);
    g_assert_cmpint(duet_invalidate(t->core, a), ==, DUET_OK);
    g_assert_cmpint(duet_unregister_submit(t->core, a), ==, DUET_OK);
    if (!inside) {
        g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
        g_assert_cmpint(duet_acquire(t->core, b, DUET_RW), ==, DUET_OK);
        g_assert_cmpint(duet_release(t->core, b), ==, DUET_OK);
        g_assert_cmpint(duet_unregister(t->core, b), ==, DUET_OK);
        duet_stats_reset(t->core);
        g_assert_cmpint(duet_recover(t->core), ==, DUET_OK);
    }
    t->in_kernel = 0;
}

static void at_end(struct duet_runtime *core, void *arg, int status)
{
    submit_to(arg, ((struct testing *)arg)->any, NULL, NULL, 0, NULL, 0);
}

static void test_calls(void)
{
    struct keeper keeper;
    struct testing *t = start(&keeper);
    use(t, false);
    const unsigned once[] = {3, 1, 1, 1, 1, 1, 3, 1, 1, 1};
    g_assert_cmpmem(keeper.calls, sizeof keeper.calls, once, sizeof once);
    /* what is not of this runtime is refused before the gate */
    struct testing *other = testing_init(&(struct testing_machine){.cpus = 1}, "eager", 1);
    struct duet_handle *h = testing_handle(other, 8);
    g_assert_cmpint(duet_insert(t->core, t->any, DUET_RW, h, 0), ==, DUET_EINVAL);
    g_assert_cmpint(duet_insert(t->core, other->any, 0), ==, DUET_EINVAL);
    g_assert_cmpint(duet_prefetch(t->core, h, 1), ==, DUET_EINVAL);
    testing_fini(other);
    g_assert_cmpmem(keeper.calls, sizeof keeper.calls, once, sizeof once);
    use(t, true);
    g_assert_cmpmem(keeper.calls, sizeof keeper.calls, once, sizeof once);
    /* a `done` is inside, too */
    g_assert_cmpint(duet_insert(t->core, t->any, DUET_DONE, (duet_done_fn)at_end, (void *)t,
                                DUET_VALUE, &(double){1e6}, sizeof(double), 0),
                    ==, DUET_OK);
    (void)go(t, NULL);
    g_assert_cmpuint(keeper.calls[SUBMIT], ==, once[SUBMIT] + 1);
    duet__core_gate(t->core, NULL, NULL);
    use(t, false);
    g_assert_cmpuint(keeper.calls[SUBMIT], ==, once[SUBMIT] + 1);
    lost_end(t, DUET_OK, NULL);
}

static void test_failure(void)
{
    struct keeper keeper;
    struct testing *t = start(&keeper);
    submit_to(t, t->cpu, NULL, NULL, 0, NULL, 0);
    struct duet__engine_command run = expect_run(t, 0);
    testing_done(t, &run, 1e-3, DUET_EINVAL);
    duet__fail_run(t->core, DUET_ECANCELED, "another one");
    g_assert_cmpuint(keeper.failures, ==, 1);
    g_assert_nonnull(strstr(keeper.why.text, "for_cpus"));
    lost_end(t, DUET_EINVAL, "for_cpus");
}

/* Behind a gate what has no address may be another process's: the core finds a place for it. */
static void test_no_address(void)
{
    struct keeper keeper;
    struct testing *t = start(&keeper);
    t->core->computes = true;
    double numbers[8];
    struct duet_handle *handle;
    const struct duet_array arrays[] = {{NULL, 5, 7, 6, 8}, {numbers, 8, 1, 8, 8}};
    REFUSED(t->core, duet_register_arrays(t->core, arrays, 2, &handle), DUET_EINVAL, "some arrays");
    g_assert_cmpint(duet_register_arrays(t->core, arrays, 1, &handle), ==, DUET_OK);
    g_assert_false(duet_valid(t->core, handle));
    submit_to(t, t->cpu, NULL, handle, DUET_W, NULL, 0);
    (void)go(t, NULL);
    g_assert_nonnull(duet_address(handle));
    g_assert_cmpint(duet_register_matrix(t->core, NULL, 3, 3, 4, 8, &handle), ==, DUET_OK);
    submit_to(t, t->cpu, NULL, handle, DUET_R, NULL, 0);
    (void)go(t, NULL);
    lost_end(t, DUET_EINVAL, "nothing has written before");
}

TEST_MAIN(test_calls, test_failure, test_no_address)
