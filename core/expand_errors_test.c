/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of tasks that expand: what is refused and how, and how failures end. */
#include "core/testing_expand.h"

enum { CPU = 0, GPU = 1, BLOCK = SLAB_ALIGN };

static struct testing *start(unsigned cpus, unsigned gpus)
{
    struct testing_machine make = {.cpus = cpus, .gpus = gpus};
    return testing_init(&make, "eager", 1);
}

/* The run has failed with this error and a message that says this, and all of it is finished. */
static void check_failed(struct testing *t, int error, const char *part)
{
    g_assert_cmpint(duet_wait(t->core), ==, error);
    TOLD(t->core, part);
    g_assert_cmpuint(unfinished(t->core), ==, 0);
}

/* ------------------------------------------------------------------------------------------- */
/* Refusals, each the failure of a run of its own                                               */

struct request {
    size_t index, row, col, rows, cols;
};

/* Blocks that have been given, and one that is refused, of a matrix of 10 x 6. */
struct refusal {
    struct request given, wanted;
    const char *says;
};

static const struct refusal refusals[] = {
    {{0, 0, 0, 1, 1}, {2, 0, 0, 1, 1}, "access 2 of a task with 2 accesses"},
    {{0, 0, 0, 1, 1}, {SIZE_MAX, 0, 0, 1, 1}, "of a task with 2 accesses"},
    {{0, 0, 0, 1, 1}, {0, 0, 1, 11, 1}, "access 0: a part of 11 x 1 at (0, 1) does not lie within"},
    {{0, 0, 0, 1, 1}, {0, 1, 1, 10, 1}, "which has 10 x 6"},
    {{0, 0, 0, 1, 1}, {0, 10, 1, 1, 1}, "does not lie within"},
    {{0, 0, 0, 1, 1}, {0, 1, 6, 1, 1}, "does not lie within"},
    {{0, 0, 0, 1, 1}, {0, 1, 1, 1, 6}, "does not lie within"},
    {{0, 0, 0, 1, 1}, {0, 1, 1, 0, 1}, "does not lie within"},
    {{0, 0, 0, 1, 1}, {0, 1, 1, 1, 0}, "does not lie within"},
    {{0, 0, 0, 1, 1}, {0, 1, 1, SIZE_MAX, 1}, "does not lie within"},
    {{0, 0, 0, 1, 1}, {0, 1, 1, 1, SIZE_MAX}, "does not lie within"},
    {{0, 0, 0, 1, 1}, {0, SIZE_MAX, 1, 2, 1}, "does not lie within"},
    {{0, 0, 0, 1, 1}, {0, 1, SIZE_MAX, 1, 2}, "does not lie within"},
    {{0, 2, 2, 4, 2},
     {0, 2, 2, 4, 2},
     "access 0: a part of 4 x 2 at (2, 2) overlaps an earlier one"},
    {{0, 2, 2, 4, 2}, {0, 0, 0, 3, 3}, "overlaps"},
    {{0, 2, 2, 4, 2}, {0, 5, 3, 5, 3}, "overlaps"},
    {{0, 2, 2, 4, 2}, {0, 0, 0, 10, 6}, "overlaps"},
    {{0, 2, 2, 4, 2}, {0, 3, 0, 1, 6}, "overlaps"},
};

struct asking {
    struct plan plan;
    const struct refusal *refusal;
};

static int ask(struct duet_expansion *expansion, const struct request *request,
               struct duet_handle **out)
{
    return duet_expand_block(expansion, request->index, request->row, request->col, request->rows,
                             request->cols, out);
}

static int asks(struct plan *plan, struct duet_expansion *expansion, const struct duet_call *call)
{
    const struct asking *asking = (const struct asking *)(const void *)plan;
    struct duet_handle *block = NULL, *refused = plan->blocks[0];
    g_assert_cmpint(ask(expansion, &asking->refusal->given, &block), ==, DUET_OK);
    g_assert_nonnull(block);
    int error = ask(expansion, &asking->refusal->wanted, &refused);
    g_assert_null(refused);
    return error;
}

static void test_blocks_refused(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(refusals); i++) {
        struct duet_handle *h = NULL;
        OWNED(testing_end) struct testing *t = start(1, 0);
        struct asking asking = {.plan = {.expand = asks}, .refusal = &refusals[i]};
        g_assert_cmpint(duet_register_matrix(t->core, NULL, 10, 6, 12, 8, &h), ==, DUET_OK);
        (void)plan_submit(t, &asking.plan, h, DUET_RW, testing_handle(t, 1), DUET_R);
        check_failed(t, DUET_EINVAL, refusals[i].says);
        TOLD(t->core, "task 1 (split) cannot expand");
    }
}

/* Blocks that only touch do not overlap, and neither do equal ones of different data. */
static int tile(struct plan *plan, struct duet_expansion *expansion, const struct duet_call *call)
{
    static const struct request requests[] = {{0, 2, 2, 4, 2},  {0, 0, 2, 2, 2},  {0, 6, 2, 4, 2},
                                              {0, 0, 0, 10, 2}, {0, 0, 4, 10, 2}, {1, 2, 2, 4, 2}};
    for (unsigned i = 0; i < G_N_ELEMENTS(requests); i++)
        g_assert_cmpint(ask(expansion, &requests[i], &plan->blocks[i]), ==, DUET_OK);
    return DUET_OK;
}

static void test_blocks_that_touch(void)
{
    struct duet_handle *h = NULL, *g = NULL;
    OWNED(testing_end) struct testing *t = start(1, 0);
    struct plan plan = {.expand = tile};
    g_assert_cmpint(duet_register_matrix(t->core, NULL, 10, 6, 12, 8, &h), ==, DUET_OK);
    g_assert_cmpint(duet_register_matrix(t->core, NULL, 10, 6, 10, 8, &g), ==, DUET_OK);
    (void)plan_submit(t, &plan, h, DUET_RW, g, DUET_R);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    g_assert_cmpuint(plan.calls, ==, 1);
}

/* A child on its parent's own data. */
static int on_the_whole(struct plan *plan, struct duet_expansion *expansion,
                        const struct duet_call *call)
{
    return plan_child(plan, expansion, plan->t->cpu, plan->blocks[0], DUET_R, NULL, 0);
}

/* A child that writes what its parent may only read; reading it is fine. */
static int writes(struct plan *plan, struct duet_expansion *expansion, const struct duet_call *call)
{
    struct duet_handle *block = NULL;
    g_assert_cmpint(duet_expand_block(expansion, 0, 0, 0, 1, 1, &block), ==, DUET_OK);
    g_assert_cmpint(plan_child(plan, expansion, plan->t->cpu, block, DUET_R, NULL, 0), ==, DUET_OK);
    g_assert_cmpint(plan_child(plan, expansion, plan->t->cpu, block, DUET_W, NULL, 0), ==,
                    DUET_EINVAL);
    return plan_child(plan, expansion, plan->t->cpu, block, DUET_RW, NULL, 0);
}

/* A child that expands, given a block, hands its own child the block instead of a part of it. */
static int on_anothers(struct plan *plan, struct duet_expansion *expansion,
                       const struct duet_call *call)
{
    plan->inner->blocks[0] = NULL;
    g_assert_cmpint(duet_expand_block(expansion, 0, 0, 0, 1, 1, &plan->inner->blocks[0]), ==,
                    DUET_OK);
    return plan_inner(plan, expansion, plan->inner->blocks[0], DUET_RW);
}

static int without_kernel(struct plan *plan, struct duet_expansion *expansion,
                          const struct duet_call *call)
{
    g_assert_cmpint(duet_expand_submit(expansion, NULL), ==, DUET_EINVAL);
    return plan_child(plan, expansion, NULL, NULL, 0, NULL, 0);
}

static int without_handle(struct plan *plan, struct duet_expansion *expansion,
                          const struct duet_call *call)
{
    return plan_child(plan, expansion, plan->t->cpu, NULL, DUET_R, NULL, 0);
}

/* Too large for the device, and nobody else can run it. */
static int too_big(struct plan *plan, struct duet_expansion *expansion,
                   const struct duet_call *call)
{
    struct duet_handle *block = NULL;
    int error = duet_expand_block(expansion, 0, 0, 0, 2 << 20, 1, &block);
    return error ? error : plan_child(plan, expansion, plan->t->gpu, block, DUET_R, NULL, 0);
}

static void refuse_child(int (*expand)(struct plan *, struct duet_expansion *,
                                       const struct duet_call *),
                         int mode, int error, const char *says)
{
    OWNED(testing_end) struct testing *t = start(1, 1);
    struct duet_handle *h = testing_handle(t, 2 << 20);
    struct plan inner = {.expand = on_the_whole};
    struct plan plan = {.expand = expand, .inner = &inner, .blocks = {h}};
    (void)plan_submit(t, &plan, h, mode, NULL, 0);
    (void)testing_submit(t, t->cpu, h, DUET_R, NULL, 0, 0);
    check_failed(t, error, says);
    g_assert_cmpint(duet_unregister(t->core, h), ==, error);
}

static void test_children_refused(void)
{
    refuse_child(on_the_whole, DUET_RW, DUET_EINVAL, "access 0 of a child is no block of the task");
    refuse_child(on_anothers, DUET_RW, DUET_EINVAL, "access 0 of a child is no block of the task");
    refuse_child(writes, DUET_R, DUET_EINVAL,
                 "access 0 of a child writes a block of data that the task may only read");
    refuse_child(without_kernel, DUET_R, DUET_EINVAL, "a task needs a codelet");
    refuse_child(without_handle, DUET_R, DUET_EINVAL, "is no block of the task");
    refuse_child(too_big, DUET_R, DUET_ETOOBIG, "2097152 bytes");
}

/* A refusal is an answer, not a failure: the function may go on without. */
static int tries(struct plan *plan, struct duet_expansion *expansion, const struct duet_call *call)
{
    struct duet_handle *block = NULL;
    g_assert_cmpint(duet_expand_block(expansion, 7, 0, 0, 1, 1, &block), ==, DUET_EINVAL);
    g_assert_cmpint(plan_child(plan, expansion, plan->t->cpu, plan->blocks[0], DUET_R, NULL, 0), ==,
                    DUET_EINVAL);
    g_assert_cmpint(duet_expand_block(expansion, 0, 0, 0, 1, 1, &block), ==, DUET_OK);
    return plan_child(plan, expansion, plan->t->cpu, block, DUET_RW, NULL, 0);
}

static void test_refusal_survived(void)
{
    OWNED(testing_end) struct testing *t = start(1, 0);
    struct duet_handle *h = testing_handle(t, BLOCK);
    struct plan plan = {.expand = tries, .blocks = {h}};
    (void)plan_submit(t, &plan, h, DUET_RW, NULL, 0);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    g_assert_cmpuint(plan.children, ==, 1);
    g_assert_cmpint(duet_unregister(t->core, h), ==, DUET_OK);
}

/* ------------------------------------------------------------------------------------------- */
/* Machines and codelets                                                                        */

static int nothing(struct plan *plan, struct duet_expansion *expansion,
                   const struct duet_call *call)
{
    return DUET_OK;
}

static void test_no_cpu(void)
{
    OWNED(testing_end) struct testing *t = start(0, 2);
    struct plan plan = {.expand = nothing, .t = t}, *pointer = &plan;
    struct duet_task_desc desc = plan_desc(t, &pointer, NULL, 0);
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_ENOWORKER);
    TOLD(t->core, "split expands, which needs a CPU worker");
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
}

/* Restricting it to devices leaves no worker; restricting it to CPUs changes nothing. */
static void test_restricted(void)
{
    OWNED(testing_end) struct testing *t = start(1, 1);
    struct plan plan = {.expand = nothing, .t = t}, *pointer = &plan;
    struct duet_task_desc desc = plan_desc(t, &pointer, NULL, 0);
    desc.where = duet_where(t->core, "cuda");
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_ENOWORKER);
    desc.where = duet_where(t->core, "cpu");
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    g_assert_cmpuint(plan.calls, ==, 1);
}

static void test_both_kinds_of_codelet(void)
{
    struct duet_codelet *codelet = NULL;
    OWNED(testing_end) struct testing *t = start(1, 0);
    struct duet_implementation implementation = {.arch = "cpu"};
    struct duet_codelet_desc desc = {.name = "both",
                                     .expand = plan_expand,
                                     .implementations = &implementation,
                                     .implementation_count = 1};
    g_assert_cmpint(duet_register_codelet(t->core, &desc, &codelet), ==, DUET_EINVAL);
    TOLD(t->core, "kernel both has implementations and expands");
}

/* ------------------------------------------------------------------------------------------- */
/* Failures                                                                                     */

/* Two blocks, each written on the device and then changed by a CPU. */
static int four(struct plan *plan, struct duet_expansion *expansion, const struct duet_call *call)
{
    struct testing *t = plan->t;
    int error = plan_cut(plan, expansion, 0, call->buffers[0].rows, 2);
    for (unsigned i = 0; i < 2 && !error; i++)
        error = plan_child(plan, expansion, t->gpu, plan->blocks[i], DUET_W, NULL, 0);
    for (unsigned i = 0; i < 2 && !error; i++)
        error = plan_child(plan, expansion, t->cpu, plan->blocks[i], DUET_RW, NULL, 0);
    return error;
}

/* A failing child keeps the others from beginning, and the successor. */
static void test_child_fails(void)
{
    uint64_t ids[8];
    OWNED(testing_end) struct testing *t = start(1, 1);
    struct duet_handle *h = testing_handle(t, 2 * BLOCK);
    struct plan plan = {.expand = four};
    (void)plan_submit(t, &plan, h, DUET_RW, NULL, 0);
    (void)testing_submit(t, t->cpu, h, DUET_R, NULL, 0, 0);
    g_assert_cmpint(testing_next(t, CPU).kind, ==, DUET_IDLE);
    struct duet__engine_command first = testing_next(t, GPU), second = testing_next(t, GPU);
    g_assert_true(first.kind == DUET_RUN && second.kind == DUET_RUN);
    testing_done(t, &first, 1e-6, 0);
    testing_done(t, &second, 1e-6, DUET_ETASK);
    check_failed(t, DUET_ETASK, "task 4 (for_gpus) failed on gpu0: a task failed");
    g_assert_cmpuint(plan_order(t, ids, 8), ==, 1);
    g_assert_cmpuint(ids[0], ==, plan.ids[0]);
    g_assert_cmpint(duet_unregister(t->core, h), ==, DUET_ETASK);
    g_assert_cmpuint(t->core->nodes[1].slab.used_bytes, ==, 0);
}

/* A child fails while the other child's block is on its way back. */
static void test_child_fails_during_copy(void)
{
    OWNED(testing_end) struct testing *t = start(1, 1);
    struct duet_handle *h = testing_handle(t, 2 * BLOCK);
    struct plan plan = {.expand = four};
    (void)plan_submit(t, &plan, h, DUET_RW, NULL, 0);
    g_assert_cmpint(testing_next(t, CPU).kind, ==, DUET_IDLE);
    struct duet__engine_command first = testing_next(t, GPU), second = testing_next(t, GPU);
    testing_done(t, &first, 1e-6, 0);
    g_assert_cmpint(testing_next(t, CPU).kind, ==, DUET_IDLE);
    struct duet__engine_command copy = testing_next(t, GPU);
    g_assert_cmpint(copy.kind, ==, DUET_COPY);
    testing_done(t, &second, 1e-6, DUET_ETASK);
    g_assert_cmpint(testing_next(t, CPU).kind, ==, DUET_IDLE);
    g_assert_cmpint(testing_next(t, GPU).kind, !=, DUET_RUN);
    g_assert_cmpuint(unfinished(t->core), >, 0);
    testing_done(t, &copy, 1e-6, 0);
    check_failed(t, DUET_ETASK, "task 3");
}

/* The function itself gives up after its first child. */
static int gives_up(struct plan *plan, struct duet_expansion *expansion,
                    const struct duet_call *call)
{
    int error = four(plan, expansion, call);
    return error ? error : DUET_EIO;
}

static void test_function_fails(void)
{
    uint64_t ids[8];
    OWNED(testing_end) struct testing *t = start(1, 1);
    struct duet_handle *h = testing_handle(t, 2 * BLOCK);
    struct plan plan = {.expand = gives_up};
    (void)plan_submit(t, &plan, h, DUET_RW, NULL, 0);
    (void)testing_submit(t, t->cpu, h, DUET_RW, NULL, 0, 0);
    check_failed(t, DUET_EIO, "task 1 (split) cannot expand: cannot read or write");
    g_assert_cmpuint(plan_order(t, ids, 8), ==, 0);
    g_assert_cmpint(duet_unregister(t->core, h), ==, DUET_EIO);
}

/* A failure before the task expands: it does not. Those that come after do not either. */
static void test_failed_before(void)
{
    OWNED(testing_end) struct testing *t = start(1, 0);
    struct duet_handle *h = testing_handle(t, BLOCK);
    struct plan plan = {.expand = nothing};
    (void)testing_submit(t, t->cpu, h, DUET_RW, NULL, 0, 0);
    (void)plan_submit(t, &plan, h, DUET_RW, NULL, 0);
    struct duet__engine_command run = testing_next(t, CPU);
    testing_done(t, &run, 1e-6, DUET_ETASK);
    check_failed(t, DUET_ETASK, "task 1");
    (void)plan_submit(t, &plan, h, DUET_RW, NULL, 0);
    check_failed(t, DUET_ETASK, "task 1");
    g_assert_cmpuint(plan.calls, ==, 0);
}

/* Cancelled with a child in flight: it ends, the others do not begin. */
static void test_cancelled(void)
{
    uint64_t ids[8];
    OWNED(testing_end) struct testing *t = start(1, 1);
    struct duet_handle *h = testing_handle(t, 2 * BLOCK);
    struct plan plan = {.expand = four};
    (void)plan_submit(t, &plan, h, DUET_RW, NULL, 0);
    (void)testing_submit(t, t->cpu, h, DUET_RW, NULL, 0, 0);
    g_assert_cmpint(testing_next(t, CPU).kind, ==, DUET_IDLE);
    struct duet__engine_command run = testing_next(t, GPU);
    g_assert_cmpint(run.kind, ==, DUET_RUN);
    duet_cancel(t->core);
    g_assert_true(t->woken[CPU] && t->woken[GPU]);
    g_assert_cmpint(testing_next(t, CPU).kind, ==, DUET_IDLE);
    g_assert_cmpint(testing_next(t, GPU).kind, ==, DUET_IDLE);
    g_assert_cmpuint(unfinished(t->core), >, 0);
    testing_done(t, &run, 1e-6, 0);
    check_failed(t, DUET_ECANCELED, "the run was cancelled");
    g_assert_cmpuint(plan_order(t, ids, 8), ==, 1);
    g_assert_cmpuint(ids[0], ==, plan.ids[0]);
    g_assert_cmpint(duet_unregister(t->core, h), ==, DUET_ECANCELED);
    testing_stop(t);
}

TEST_MAIN(test_blocks_refused, test_blocks_that_touch, test_children_refused, test_refusal_survived,
          test_no_cpu, test_restricted, test_both_kinds_of_codelet, test_child_fails,
          test_child_fails_during_copy, test_function_fails, test_failed_before, test_cancelled)
