/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of tasks that expand: what is refused and how, and how failures end. */
#include "core/testing_script.h"

enum { BLOCK = SLAB_ALIGN };

#define ONE "cpus=1 gpus=1 unasked"
/* Two blocks, each written on the device and then changed by a CPU. */
#define FOUR "plan p cut 2, gpu p0:w, gpu p1:w, cpu p0:rw, cpu p1:rw; data a*2; split p a:rw;"

static const struct script scripts[] = {
    {"a failing child keeps the others from beginning, and the successor", ONE,
     FOUR "cpu a:r; cpu0 idle; gpu0 run 3; gpu0 run 4; done 3; done 4 ETASK; wait ETASK;"
          "says task 4 (for_gpus) failed on gpu0: a task failed; unfinished 0; order 3;"
          "unregister a ETASK; used gpu0 0; end ETASK"},
    {"a child fails while the other child's block is on its way back", ONE,
     FOUR "cpu0 idle; gpu0 run 2; gpu0 run 3; done 2; cpu0 idle; gpu0 copy p0 gpu0>host;"
          "done 3 ETASK; cpu0 idle; gpu0 idle; unfinished 3; done p0; end ETASK task 3"},
    {"the function itself gives up behind its children", ONE,
     "plan p cut 2, gpu p0:w, gpu p1:w, cpu p0:rw, cpu p1:rw, EIO; data a*2; split p a:rw; cpu "
     "a:rw;"
     "wait EIO; says task 1 (split) cannot expand: cannot read or write; unfinished 0; order;"
     "unregister a EIO; end EIO"},
    {"after a failure a task does not expand, and neither do those that come then",
     "cpus=1 unasked",
     "plan p; data a; cpu a:rw; split p a:rw; cpu0 run 1; done 1 ETASK; wait ETASK; says task 1;"
     "split p a:rw; wait ETASK; expanded p 0; end ETASK task 1"},
    {"cancelled with a child in flight: it ends, the others do not begin", ONE,
     FOUR "cpu a:rw; cpu0 idle; gpu0 run 3; cancel; woken cpu0; woken gpu0; cpu0 idle; gpu0 idle;"
          "unfinished 5; done 3; wait ECANCELED; says the run was cancelled; order 3;"
          "unregister a ECANCELED; end ECANCELED"},
};

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
        OWNED(testing_end) struct testing *t = stage_of("cpus=1 gpus=0 unasked");
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
    OWNED(testing_end) struct testing *t = stage_of("cpus=1 gpus=0 unasked");
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
    OWNED(testing_end) struct testing *t = stage_of("cpus=1 gpus=1 unasked");
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
    OWNED(testing_end) struct testing *t = stage_of("cpus=1 gpus=0 unasked");
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
    OWNED(testing_end) struct testing *t = stage_of("cpus=0 gpus=2 unasked");
    struct plan plan = {.expand = nothing, .t = t}, *pointer = &plan;
    struct duet_task_desc desc = plan_desc(t, &pointer, NULL, 0);
    REFUSED(t->core, duet_submit(t->core, &desc), DUET_ENOWORKER,
            "split expands, which needs a CPU worker");
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
}

/* Restricting it to devices leaves no worker; restricting it to CPUs changes nothing. */
static void test_restricted(void)
{
    OWNED(testing_end) struct testing *t = stage_of("cpus=1 gpus=1 unasked");
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
    OWNED(testing_end) struct testing *t = stage_of("cpus=1 gpus=0 unasked");
    struct duet_implementation implementation = {.arch = "cpu"};
    struct duet_codelet_desc desc = {.name = "both",
                                     .expand = plan_expand,
                                     .implementations = &implementation,
                                     .implementation_count = 1};
    REFUSED(t->core, duet_register_codelet(t->core, &desc, &codelet), DUET_EINVAL,
            "kernel both has implementations and expands");
}

SCRIPTS_MAIN(test_scripts, test_blocks_refused, test_blocks_that_touch, test_children_refused,
             test_refusal_survived, test_no_cpu, test_restricted, test_both_kinds_of_codelet)
