/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that are held until the application waits, and their upward ranks on graphs that are small
 * enough to say by hand what these are. Kernels take as many milliseconds as they say on a core, a
 * tenth of it on a device; copies 1 us, and 1 ns for each byte.
 */
#include "core/testing_expand.h"

enum { MOST = 16 };

static const double MS = 1e-3;

static struct testing *start(unsigned cpus, unsigned gpus, enum duet__priorities priorities)
{
    struct testing *t =
        testing_init(&(struct testing_machine){.cpus = cpus, .gpus = gpus}, "eager", 1);
    g_assert_cmpint(duet__held_new(t->core), ==, DUET_OK);
    t->core->priorities = priorities;
    t->core->priority_bits = priorities == DUET__WORKLOAD ? -1 : 0;
    return t;
}

/* A task of `ms` on a core, with up to two accesses (mode 0: none), after another one. */
static void submit_after(struct testing *t, double ms, struct duet_handle *a, int mode_a,
                         struct duet_handle *b, int mode_b, const struct duet_task_extra *extra)
{
    const struct duet_access accesses[] = {{a, (enum duet_mode)mode_a},
                                           {b, (enum duet_mode)mode_b}};
    const double flops = ms * 1e6;
    const struct duet_task_desc desc = {.codelet = t->any,
                                        .accesses = accesses,
                                        .access_count = mode_b   ? 2
                                                        : mode_a ? 1
                                                                 : 0,
                                        .args = &flops,
                                        .args_bytes = sizeof flops,
                                        .extra = extra,
                                        .priority = 7};
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
}

static void submit(struct testing *t, double ms, struct duet_handle *a, int mode_a,
                   struct duet_handle *b, int mode_b)
{
    submit_after(t, ms, a, mode_a, b, mode_b, NULL);
}

static size_t ready(struct testing *t)
{
    return duet_list_length(&t->core->shared);
}

static void end(struct testing *t)
{
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    testing_fini(t);
}

/* ------------------------------------------------------------------------------------------- */
/* Holding                                                                                      */

static void test_waits(void)
{
    struct testing *t = start(1, 0, DUET__WORKLOAD);
    struct duet_handle *a = testing_handle(t, 8);
    submit(t, 1, NULL, 0, NULL, 0);
    submit(t, 1, a, DUET_RW, NULL, 0);
    submit(t, 1, a, DUET_RW, NULL, 0);
    g_assert_cmpuint(ready(t), ==, 0);
    g_assert_cmpuint(unfinished(t->core), ==, 3);
    testing_let_in(t);
    g_assert_cmpuint(ready(t), ==, 2);
    submit(t, 1, NULL, 0, NULL, 0);
    g_assert_cmpuint(ready(t), ==, 2); /* nobody waits any more */
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    g_assert_cmpuint(duet_tasks_done(t->core), ==, 4);
    end(t);
}

/* A hint that is held still uses its handle, which is unregistered when it has ended. */
static void test_hint(void)
{
    struct testing *t = start(1, 1, DUET__WORKLOAD);
    struct duet_handle *a = testing_handle(t, 8);
    t->core->computes = true;
    g_assert_cmpint(duet_prefetch(t->core, a, 1), ==, DUET_OK);
    g_assert_cmpint(duet_unregister(t->core, a), ==, DUET_OK);
    g_assert_null(t->core->handles);
    end(t);
}

/* Other waits of the application, and a full window. */
static void test_other_waits(void)
{
    struct duet_ref *ref;
    struct testing *t = start(1, 0, DUET__WORKLOAD);
    struct duet_handle *a = testing_handle(t, 8), *b = testing_handle(t, 8);
    submit(t, 1, a, DUET_RW, NULL, 0);
    g_assert_cmpint(duet_acquire(t->core, a, DUET_R), ==, DUET_OK);
    g_assert_cmpuint(duet_tasks_done(t->core), ==, 1);
    submit_after(t, 1, b, DUET_RW, NULL, 0, &(struct duet_task_extra){.ref = &ref});
    g_assert_cmpint(duet_release(t->core, a), ==, DUET_OK);
    g_assert_cmpint(duet_ref_wait(t->core, ref), ==, DUET_OK);
    duet_ref_free(ref);
    submit(t, 1, b, DUET_RW, NULL, 0);
    g_assert_cmpint(duet_unregister(t->core, b), ==, DUET_OK);
    g_assert_cmpuint(duet_tasks_done(t->core), ==, 3);
    t->core->window = 2;
    for (unsigned i = 0; i < 5; i++)
        submit(t, 1, a, DUET_RW, NULL, 0);
    g_assert_cmpuint(duet_tasks_done(t->core), >=, 5);
    end(t);
}

/* Hints and the end of data keep their turn: what is read was written, what was given up is not. */
static void test_turns(void)
{
    struct testing *t = start(1, 1, DUET__WORKLOAD);
    struct duet_handle *a = testing_handle(t, 8), *b = testing_handle(t, 8);
    submit(t, 1, a, DUET_W, b, DUET_R);
    g_assert_cmpint(duet_prefetch(t->core, a, 1), ==, DUET_OK);
    g_assert_cmpint(duet_invalidate(t->core, b), ==, DUET_OK);
    g_assert_cmpint(duet_unregister_submit(t->core, b), ==, DUET_OK);
    g_assert_cmpuint(ready(t), ==, 0);
    g_assert_true(duet_valid(t->core, b));
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    g_assert_true(bit_test(a->valid, 1));
    g_assert_true(t->core->handles == a); /* b is gone */
    end(t);
}

/* Submissions of a kernel do not wait: its worker is not the application. */
static void test_inside(void)
{
    struct testing *t = start(1, 0, DUET__WORKLOAD);
    submit(t, 1, NULL, 0, NULL, 0);
    t->in_kernel = 1;
    submit(t, 1, NULL, 0, NULL, 0);
    t->in_kernel = 0;
    g_assert_cmpuint(ready(t), ==, 1);
    end(t);
}

static void submit_at_end(struct duet_runtime *core, void *argument, int status)
{
    submit(argument, 1, NULL, 0, NULL, 0);
}

/* Nor does what the end of a task submits, on whichever thread. */
static void test_done(void)
{
    struct testing *t = start(1, 0, DUET__WORKLOAD);
    submit_after(t, 1, NULL, 0, NULL, 0,
                 &(struct duet_task_extra){.done = submit_at_end, .done_arg = t});
    testing_let_in(t);
    g_assert_cmpuint(testing_work(t, 0, NULL), ==, 2);
    end(t);
}

/* Data that a kernel unregisters is still there for tasks that are held. */
static void test_given_up_inside(void)
{
    struct testing *t = start(1, 0, DUET__WORKLOAD);
    struct duet_handle *a = testing_handle(t, 8);
    submit(t, 1, a, DUET_RW, NULL, 0);
    t->in_kernel = 1;
    g_assert_cmpint(duet_unregister_submit(t->core, a), ==, DUET_OK);
    t->in_kernel = 0;
    g_assert_true(t->core->handles == a);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    g_assert_null(t->core->handles);
    end(t);
}

static bool submits_once(void *argument)
{
    struct testing *t = argument;
    if (!duet_tasks_done(t->core) && !ready(t)) {
        submit(t, 1, NULL, 0, NULL, 0); /* another thread of the application */
        g_assert_cmpuint(ready(t), ==, 1);
    }
    return true;
}

/* While a thread waits nothing is held: it may be what that waits for. */
static void test_while_waiting(void)
{
    struct testing *t = start(1, 0, DUET__WORKLOAD);
    g_assert_cmpint(duet__wait_until(t->core, submits_once, t), ==, DUET_OK);
    submit(t, 1, NULL, 0, NULL, 0);
    g_assert_cmpuint(ready(t), ==, 1);
    end(t);
}

/* A runtime that is given up with tasks held. */
static void test_given_up(void)
{
    struct duet_ref *ref;
    OWNED(testing_end) struct testing *t = start(1, 0, DUET__BOTTOM_LEVEL);
    submit_after(t, 1, NULL, 0, NULL, 0, &(struct duet_task_extra){.ref = &ref});
    submit_after(t, 1, NULL, 0, NULL, 0,
                 &(struct duet_task_extra){.after = &ref, .after_count = 1, .name = "late"});
    duet_ref_free(ref);
    testing_stop(t);
}

/* ------------------------------------------------------------------------------------------- */
/* Ranks                                                                                        */

/* Submitted tasks with ranks; the tasks enter. */
struct ranked {
    size_t count;
    double ranks[MOST];
    int priorities[MOST];
};

static struct ranked seen;

static void see(void *self, struct duet_view *view, struct duet_task *const *tasks, size_t count,
                const double *ranks, double now)
{
    g_assert_cmpuint(count, <=, MOST);
    seen.count = count;
    for (size_t i = 0; i < count; i++) {
        seen.ranks[i] = ranks[i];
        seen.priorities[i] = duet_task_priority(tasks[i]);
    }
}

/* Starts as `start` does; the arguments of `see` are kept in `seen`. */
static struct testing *start_ranks(unsigned cpus, unsigned gpus)
{
    static struct duet_policy policy;
    struct testing *t = start(cpus, gpus, DUET__BOTTOM_LEVEL);
    policy = *t->core->policy;
    policy.plan = see;
    t->core->policy = &policy;
    return t;
}

/* The tasks have these ranks, in microseconds. */
static void expect(struct testing *t, const double *us, size_t count)
{
    testing_let_in(t);
    g_assert_cmpuint(seen.count, ==, count);
    for (size_t i = 0; i < count; i++)
        g_assert_cmpfloat_with_epsilon(seen.ranks[i], us[i] * 1e-6, 1e-12);
}

#define EXPECT(t, ...)                                                                             \
    expect(t, (const double[]){__VA_ARGS__}, G_N_ELEMENTS(((const double[]){__VA_ARGS__})))

/* Writers in turn; readers beside each other, between them. */
static void test_accesses(void)
{
    struct testing *t = start_ranks(1, 0);
    struct duet_handle *a = testing_handle(t, 8), *b = testing_handle(t, 8);
    submit(t, 1, a, DUET_W, NULL, 0);
    submit(t, 2, a, DUET_R, NULL, 0);
    submit(t, 3, a, DUET_R, b, DUET_W);
    submit(t, 4, a, DUET_RW, NULL, 0);
    submit(t, 5, b, DUET_R, NULL, 0);
    submit(t, 6, NULL, 0, NULL, 0);
    EXPECT(t, 9e3, 6e3, 8e3, 4e3, 5e3, 6e3);
    static const int expected[] = {4, 2, 3, 0, 1, 2};
    for (unsigned i = 0; i < 6; i++) /* by rank, from 0, equal ones alike */
        g_assert_cmpint(seen.priorities[i], ==, expected[i]);
    end(t);
}

/* Commuting tasks have no order; reducing ones neither, and readers come after both. */
static void test_modes(void)
{
    struct testing *t = start_ranks(1, 0);
    struct duet_handle *a = testing_handle(t, 8);
    submit(t, 1, a, DUET_COMMUTE, NULL, 0);
    submit(t, 2, a, DUET_COMMUTE, NULL, 0);
    submit(t, 3, a, DUET_R, NULL, 0);
    submit(t, 4, a, DUET_COMMUTE, NULL, 0);
    EXPECT(t, 8e3, 9e3, 7e3, 4e3);
    end(t);
}

/* A second batch knows nothing of the first one, and an acquisition takes no time. */
static void test_batches(void)
{
    struct testing *t = start_ranks(1, 0);
    struct duet_handle *a = testing_handle(t, 8);
    submit(t, 1, a, DUET_RW, NULL, 0);
    submit(t, 2, a, DUET_RW, NULL, 0);
    EXPECT(t, 3e3, 2e3);
    submit(t, 1, a, DUET_RW, NULL, 0);
    g_assert_cmpint(duet_prefetch(t->core, a, 0), ==, DUET_OK);
    submit(t, 5, a, DUET_RW, NULL, 0);
    EXPECT(t, 6e3, 5e3);
    end(t);
}

/* Parts are beside each other; the whole, and another cut, come in turn. */
static void test_parts(void)
{
    struct duet_handle *half[2], *third[3];
    struct testing *t = start_ranks(1, 0);
    struct duet_handle *a = testing_handle(t, 6 * SLAB_ALIGN);
    g_assert_cmpint(duet_cut_blocks(t->core, a, 2, 1, half), ==, DUET_OK);
    g_assert_cmpint(duet_cut_blocks(t->core, a, 3, 1, third), ==, DUET_OK);
    submit(t, 1, half[0], DUET_RW, NULL, 0);
    submit(t, 2, half[1], DUET_RW, NULL, 0);
    submit(t, 3, third[2], DUET_RW, NULL, 0);
    submit(t, 4, a, DUET_RW, NULL, 0);
    submit(t, 5, half[0], DUET_RW, half[1], DUET_RW);
    EXPECT(t, 13e3, 14e3, 12e3, 9e3, 5e3);
    end(t);
}

static void test_references(void)
{
    struct duet_ref *first, *second;
    struct testing *t = start_ranks(1, 0);
    submit_after(t, 1, NULL, 0, NULL, 0, &(struct duet_task_extra){.ref = &first});
    submit_after(t, 2, NULL, 0, NULL, 0,
                 &(struct duet_task_extra){.after = &first, .after_count = 1, .ref = &second});
    submit_after(t, 3, NULL, 0, NULL, 0,
                 &(struct duet_task_extra){.after = &second, .after_count = 1});
    EXPECT(t, 6e3, 5e3, 3e3);
    duet_ref_free(first);
    duet_ref_free(second);
    end(t);
}

/*
 * Means over two cores and a device: 1 ms and 1 ms and 0.1 ms. Of six pairs of workers four copy,
 * 1 us and 1 us for 1000 bytes: 4/3 us in the mean, where data is written and then read.
 */
static void test_means(void)
{
    struct testing *t = start_ranks(2, 1);
    struct duet_handle *a = testing_handle(t, 1000);
    submit(t, 1, a, DUET_W, NULL, 0);
    submit(t, 1, a, DUET_R, NULL, 0);
    submit(t, 1, a, DUET_W, NULL, 0);
    EXPECT(t, 2100 + 4 / 3., 1400, 700);
    end(t);
}

/* ------------------------------------------------------------------------------------------- */
/* Priorities                                                                                   */

static int two_children(struct plan *plan, struct duet_expansion *expansion,
                        const struct duet_call *call)
{
    const double flops = 1e6;
    const struct duet_task_desc child = {.codelet = plan->t->cpu,
                                         .args = &flops,
                                         .args_bytes = sizeof flops,
                                         .priority = 99};
    int error = duet_expand_submit(expansion, &child);
    return error ? error : duet_expand_submit(expansion, &child);
}

/*
 * Checks the priorities of the tasks that run, in order: a task that expands, one after it, and
 * another.
 */
static void check_priorities(enum duet__priorities priorities, const int *expected)
{
    struct plan plan = {.expand = two_children};
    struct testing *t = start(1, 0, priorities);
    struct duet_handle *a = testing_handle(t, 8);
    (void)plan_submit(t, &plan, a, DUET_RW, NULL, 0);
    submit(t, 5, a, DUET_RW, NULL, 0);
    submit(t, 2, NULL, 0, NULL, 0);
    testing_let_in(t);
    for (unsigned i = 0; i < 4; i++) {
        struct duet__engine_command command = testing_next(t, 0);
        g_assert_cmpint(command.kind, ==, DUET_RUN);
        g_assert_cmpint(duet_task_priority(command.task), ==, expected[i]);
        testing_done(t, &command, MS, 0);
    }
    end(t);
}

static void test_priorities(void)
{
    check_priorities(DUET__WORKLOAD, (const int[]){7, 99, 99, 7});
    check_priorities(DUET__NONE, (const int[]){0, 0, 0, 0});
    /* children have that of the task that they are children of */
    check_priorities(DUET__BOTTOM_LEVEL, (const int[]){2, 2, 1, 0});
}

TEST_MAIN(test_hint, test_waits, test_other_waits, test_turns, test_inside, test_done,
          test_given_up_inside, test_while_waiting, test_given_up, test_accesses, test_modes,
          test_batches, test_parts, test_references, test_means, test_priorities)
