/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of tasks that expand: in which order children and successors run, where results go, and
 * what is left behind. Refusals and failures are in expand_errors_test.c.
 */
#include "core/testing_expand.h"

enum { CPU = 0, CPU1 = 1, BLOCK = SLAB_ALIGN };

static struct testing *start(unsigned cpus, unsigned gpus, uint64_t capacity_bytes)
{
    struct testing_machine make = {.cpus = cpus, .gpus = gpus, .capacity_bytes = capacity_bytes};
    return testing_init(&make, "eager", 1);
}

/* Checks that an expansion leaves nothing: its blocks are gone, also from the devices. */
static void check_clean(struct testing *t, unsigned handles)
{
    unsigned left = 0;
    for (const struct duet_handle *h = t->core->handles; h; h = h->next)
        left++;
    g_assert_cmpuint(left, ==, handles);
    g_assert_cmpuint(unfinished(t->core), ==, 0);
    for (unsigned n = 1; n < t->core->machine.node_count; n++) {
        g_assert_cmpuint(atomic_load(&t->core->nodes[n].pinned), ==, 0);
        g_assert_cmpuint(t->core->nodes[n].leaving_bytes, ==, 0);
    }
}

static void finish(struct testing *t)
{
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    testing_fini(t);
}

/* ------------------------------------------------------------------------------------------- */
/* Order                                                                                        */

/* Two writers, one that reads the first's block, one that reads the others'. */
static int diamond(struct plan *plan, struct duet_expansion *expansion,
                   const struct duet_call *call)
{
    struct duet_codelet *cpu = plan->t->cpu;
    struct duet_handle **b = plan->blocks;
    int error = plan_cut(plan, expansion, 0, call->buffers[0].rows, 4);
    error = error ? error : plan_child(plan, expansion, cpu, b[0], DUET_W, NULL, 0);
    error = error ? error : plan_child(plan, expansion, cpu, b[1], DUET_W, NULL, 0);
    error = error ? error : plan_child(plan, expansion, cpu, b[0], DUET_R, b[2], DUET_W);
    return error ? error : plan_child(plan, expansion, cpu, b[2], DUET_R, b[1], DUET_RW);
}

/* Tasks submitted before the parent run before its children, later ones after them. */
static void test_order(void)
{
    uint64_t ids[8];
    struct testing *t = start(1, 0, 0);
    struct duet_handle *h = testing_handle(t, 4 * BLOCK);
    struct plan plan = {.expand = diamond};
    uint64_t before = testing_submit(t, t->cpu, h, DUET_W, NULL, 0, 0);
    uint64_t parent = plan_submit(t, &plan, h, DUET_RW, NULL, 0);
    uint64_t after = testing_submit(t, t->cpu, h, DUET_R, NULL, 0, 0);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    g_assert_cmpuint(plan.calls, ==, 1);
    g_assert_cmpuint(parent, ==, 2);
    g_assert_cmpuint(plan_order(t, ids, 8), ==, 6);
    const uint64_t expected[] = {before, plan.ids[0], plan.ids[1], plan.ids[2], plan.ids[3], after};
    g_assert_cmpmem(ids, sizeof expected, expected, sizeof expected);
    check_clean(t, 1);
    finish(t);
}

static int two_readers(struct plan *plan, struct duet_expansion *expansion,
                       const struct duet_call *call)
{
    int error = plan_cut(plan, expansion, 0, call->buffers[0].rows, 2);
    for (unsigned i = 0; i < 2 && !error; i++)
        error = plan_child(plan, expansion, plan->t->cpu, plan->blocks[i], DUET_R, NULL, 0);
    return error;
}

/* The successor waits for all children, however they overlap. */
static void test_all_children(void)
{
    struct testing *t = start(2, 0, 0);
    struct duet_handle *h = testing_handle(t, 2 * BLOCK);
    struct plan plan = {.expand = two_readers};
    (void)plan_submit(t, &plan, h, DUET_R, NULL, 0);
    (void)testing_submit(t, t->cpu, h, DUET_W, NULL, 0, 0);
    struct duet__engine_command first = testing_next(t, CPU);
    struct duet__engine_command second = testing_next(t, CPU1);
    g_assert_cmpint(first.kind, ==, DUET_RUN);
    g_assert_cmpint(second.kind, ==, DUET_RUN);
    g_assert_cmpuint(duet_task_id(first.task), ==, plan.ids[0]);
    g_assert_cmpuint(duet_task_id(second.task), ==, plan.ids[1]);
    testing_done(t, &second, 1e-6, 0);
    g_assert_cmpint(testing_next(t, CPU1).kind, ==, DUET_IDLE);
    testing_done(t, &first, 1e-6, 0);
    struct duet__engine_command successor = testing_next(t, CPU);
    g_assert_cmpint(successor.kind, ==, DUET_RUN);
    testing_done(t, &successor, 1e-6, 0);
    g_assert_cmpuint(t->ops.submissions, ==, 2);
    check_clean(t, 1);
    finish(t);
}

/* A worker that only expands wakes one that is idle, and is itself woken when it found nothing. */
static void test_wakes(void)
{
    struct testing *t = start(3, 0, 0);
    struct duet_handle *h = testing_handle(t, 2 * BLOCK);
    struct plan plan = {.expand = two_readers};
    for (unsigned w = 0; w < 3; w++)
        g_assert_cmpint(testing_next(t, w).kind, ==, DUET_IDLE);
    t->wakes = 0;
    (void)plan_submit(t, &plan, h, DUET_R, NULL, 0);
    g_assert_cmpuint(t->wakes, ==, 1);
    unsigned woken = t->woken[0] ? 0 : t->woken[1] ? 1 : 2;
    struct duet__engine_command first = testing_next(t, woken);
    g_assert_cmpint(first.kind, ==, DUET_RUN);
    g_assert_cmpuint(t->wakes, >=, 2);
    bool ran = false;
    for (unsigned w = 0; w < 3; w++)
        ran |= t->woken[w] && testing_work(t, w, NULL) == 1;
    g_assert_true(ran);
    testing_done(t, &first, 1e-6, 0);
    g_assert_cmpuint(unfinished(t->core), ==, 0);
    finish(t);
}

/* ------------------------------------------------------------------------------------------- */
/* Results                                                                                      */

static int one_writer(struct plan *plan, struct duet_expansion *expansion,
                      const struct duet_call *call)
{
    int error = plan_cut(plan, expansion, 0, call->buffers[0].rows, 2);
    return error ? error
                 : plan_child(plan, expansion, plan->t->gpu, plan->blocks[1], DUET_W, NULL, 0);
}

/* Data that a child wrote on a device is back in the host's memory before a successor begins. */
static void test_gather(void)
{
    struct testing_log log = {0};
    struct testing *t = start(1, 1, 0);
    enum { GPU = 1 };
    struct duet_handle *h = testing_handle(t, 2 * BLOCK);
    struct plan plan = {.expand = one_writer};
    (void)plan_submit(t, &plan, h, DUET_RW, NULL, 0);
    (void)testing_submit(t, t->cpu, h, DUET_R, NULL, 0, 0);
    g_assert_cmpint(testing_next(t, CPU).kind, ==, DUET_IDLE);
    struct duet__engine_command run = testing_next(t, GPU);
    g_assert_cmpint(run.kind, ==, DUET_RUN);
    testing_done(t, &run, 1e-6, 0);
    g_assert_cmpint(testing_next(t, CPU).kind, ==, DUET_IDLE);
    struct duet__engine_command back = testing_next(t, GPU);
    g_assert_cmpint(back.kind, ==, DUET_COPY);
    g_assert_true(back.stream == DUET_STREAM_OUT && back.copy->handle == plan.blocks[1]);
    g_assert_cmpuint(back.copy->bytes, ==, BLOCK);
    g_assert_false(back.copy->write_back);
    g_assert_cmpint(testing_next(t, GPU).kind, ==, DUET_IDLE);
    g_assert_cmpint(testing_next(t, CPU).kind, ==, DUET_IDLE);
    t->woken[CPU] = false;
    testing_done(t, &back, 1e-6, 0);
    g_assert_true(t->woken[CPU]);
    g_assert_cmpuint(testing_work(t, CPU, &log), ==, 1);
    g_assert_cmpuint(log.count, ==, 0);
    g_assert_cmpuint(t->core->nodes[1].slab.used_bytes, ==, 0);
    check_clean(t, 1);
    finish(t);
}

/* Replicas of the whole from before the expansion are stale after it. */
static void test_stale_replicas(void)
{
    struct testing_log log = {0};
    struct testing *t = start(1, 1, 0);
    enum { GPU = 1 };
    struct duet_handle *h = testing_handle(t, 2 * BLOCK);
    struct plan plan = {.expand = one_writer};
    (void)testing_submit(t, t->gpu, h, DUET_RW, NULL, 0, 0);
    (void)plan_submit(t, &plan, h, DUET_RW, NULL, 0);
    testing_drain(t);
    g_assert_true(bit_test(h->valid, 0) && !bit_test(h->valid, 1));
    (void)testing_submit(t, t->gpu, h, DUET_R, NULL, 0, 0);
    g_assert_cmpuint(testing_work(t, GPU, &log), ==, 1);
    g_assert_cmpuint(log.count, ==, 1);
    g_assert_true(log.copies[0].handle == h && log.copies[0].destination == 1);
    check_clean(t, 1);
    finish(t);
}

/* A child that only reads leaves the copies valid. */
static void test_reading(void)
{
    struct testing *t = start(1, 1, 0);
    struct duet_handle *h = testing_handle(t, 2 * BLOCK);
    struct plan plan = {.expand = two_readers};
    (void)testing_submit(t, t->gpu, h, DUET_RW, NULL, 0, 0);
    (void)plan_submit(t, &plan, h, DUET_R, NULL, 0);
    testing_drain(t);
    g_assert_true(bit_test(h->valid, 0) && bit_test(h->valid, 1));
    check_clean(t, 1);
    finish(t);
}

/* The input that comes from a device is there before the task expands. */
static void test_inputs_first(void)
{
    struct testing *t = start(1, 1, 0);
    enum { GPU = 1 };
    struct duet_handle *h = testing_handle(t, 2 * BLOCK);
    struct plan plan = {.expand = two_readers};
    (void)testing_submit(t, t->gpu, h, DUET_W, NULL, 0, 0);
    g_assert_cmpuint(testing_work(t, GPU, NULL), ==, 1);
    (void)plan_submit(t, &plan, h, DUET_R, NULL, 0);
    g_assert_cmpint(testing_next(t, CPU).kind, ==, DUET_IDLE);
    g_assert_cmpuint(plan.calls, ==, 0);
    g_assert_cmpuint(testing_work(t, GPU, NULL), ==, 0);
    g_assert_cmpuint(testing_work(t, CPU, NULL), ==, 2);
    g_assert_cmpuint(plan.calls, ==, 1);
    finish(t);
}

enum { MANY = 12 };

/* Each block is written and then changed on the device, in turn. */
static int rounds(struct plan *plan, struct duet_expansion *expansion, const struct duet_call *call)
{
    int error = plan_cut(plan, expansion, 0, call->buffers[0].rows, MANY);
    for (unsigned i = 0; i < 2 * MANY && !error; i++)
        error = plan_child(plan, expansion, plan->t->gpu, plan->blocks[i % MANY],
                           i < MANY ? DUET_W : DUET_RW, plan->blocks[(i + 5) % MANY],
                           i < MANY ? 0 : DUET_R);
    return error;
}

/* Blocks come and go in a memory that holds two of them. */
static void test_eviction(void)
{
    struct duet_stats stats;
    struct testing *t = start(1, 1, 2 * BLOCK);
    struct duet_handle *h = testing_handle(t, MANY * BLOCK);
    struct plan plan = {.expand = rounds};
    (void)plan_submit(t, &plan, h, DUET_RW, NULL, 0);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    duet_stats(t->core, &stats);
    g_assert_cmpuint(stats.tasks, ==, 2 * MANY);
    g_assert_cmpuint(stats.write_backs, >=, MANY);
    g_assert_cmpuint(t->core->nodes[1].slab.used_bytes, ==, 0);
    check_clean(t, 1);
    finish(t);
}

/* ------------------------------------------------------------------------------------------- */
/* Shapes                                                                                       */

/* The child of test_nested: one column of the parent's block, cut in two for the device. */
static int column(struct plan *plan, struct duet_expansion *expansion, const struct duet_call *call)
{
    const struct duet_buffer *buffer = &call->buffers[0];
    g_assert_cmpuint(buffer->rows, ==, 4);
    g_assert_cmpuint(buffer->cols, ==, 3);
    g_assert_cmpuint(buffer->ld, ==, 10);
    int error = duet_expand_block(expansion, 0, 0, 1, 2, 1, &plan->blocks[0]);
    error = error ? error : duet_expand_block(expansion, 0, 2, 1, 2, 1, &plan->blocks[1]);
    for (unsigned i = 0; i < 2 && !error; i++)
        error = plan_child(plan, expansion, plan->t->gpu, plan->blocks[i], DUET_RW, NULL, 0);
    return error;
}

static int to_column(struct plan *plan, struct duet_expansion *expansion,
                     const struct duet_call *call)
{
    int error = duet_expand_block(expansion, 0, 5, 4, 4, 3, &plan->blocks[0]);
    error =
        error ? error : plan_child(plan, expansion, plan->t->cpu, plan->blocks[0], DUET_W, NULL, 0);
    error = error ? error : plan_inner(plan, expansion, plan->blocks[0], DUET_RW);
    return error ? error
                 : plan_child(plan, expansion, plan->t->cpu, plan->blocks[0], DUET_R, NULL, 0);
}

/* Children expand in turn, on blocks that lie where they should in the matrix. */
static void test_nested(void)
{
    double data[10 * 8];
    uint64_t ids[8];
    struct testing *t = start(1, 1, 0);
    struct duet_handle *h = NULL;
    g_assert_cmpint(duet_register_matrix(t->core, data, 10, 8, 10, sizeof *data, &h), ==, DUET_OK);
    struct plan inner = {.expand = column}, plan = {.expand = to_column, .inner = &inner};
    (void)plan_submit(t, &plan, h, DUET_RW, NULL, 0);
    uint64_t after = testing_submit(t, t->gpu, h, DUET_R, NULL, 0, 0);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    g_assert_true(inner.data == &data[5 + 4 * 10]);
    g_assert_cmpuint(plan_order(t, ids, 8), ==, 5);
    g_assert_cmpuint(ids[0], ==, plan.ids[0]);
    g_assert_cmpuint(ids[1], ==, inner.ids[0]);
    g_assert_cmpuint(ids[2], ==, inner.ids[1]);
    g_assert_cmpuint(ids[3], ==, plan.ids[2]);
    g_assert_cmpuint(ids[4], ==, after);
    check_clean(t, 1);
    finish(t);
}

static int nothing(struct plan *plan, struct duet_expansion *expansion,
                   const struct duet_call *call)
{
    return DUET_OK;
}

static int only_blocks(struct plan *plan, struct duet_expansion *expansion,
                       const struct duet_call *call)
{
    return plan_cut(plan, expansion, 0, call->buffers[0].rows, 2);
}

static int only_children(struct plan *plan, struct duet_expansion *expansion,
                         const struct duet_call *call)
{
    int error = plan_child(plan, expansion, plan->t->any, NULL, 0, NULL, 0);
    return error ? error : plan_child(plan, expansion, plan->t->cpu, NULL, 0, NULL, 0);
}

/* No children, no blocks, neither, no data at all: the task is finished, the successor runs. */
static void test_empty(void)
{
    static int (*const shapes[])(struct plan *, struct duet_expansion *,
                                 const struct duet_call *) = {nothing, only_blocks, only_children};
    static const unsigned runs[] = {1, 1, 3};
    for (unsigned i = 0; i < 3; i++) {
        struct testing *t = start(1, 1, 0);
        struct duet_handle *h = testing_handle(t, 2 * BLOCK);
        struct plan plan = {.expand = shapes[i]}, bare = {.expand = nothing};
        (void)testing_submit(t, t->gpu, h, DUET_W, NULL, 0, 0);
        (void)testing_work(t, 1, NULL);
        (void)plan_submit(t, &plan, h, DUET_RW, NULL, 0);
        (void)plan_submit(t, &bare, NULL, 0, NULL, 0);
        (void)testing_submit(t, t->cpu, h, DUET_RW, NULL, 0, 0);
        testing_drain(t);
        struct duet_stats stats;
        duet_stats(t->core, &stats);
        g_assert_cmpuint(stats.tasks, ==, 1 + runs[i]);
        g_assert_true(plan.calls == 1 && bare.calls == 1);
        check_clean(t, 1);
        finish(t);
    }
}

/* A handle named twice counts once, and either number names it. */
static int twice(struct plan *plan, struct duet_expansion *expansion, const struct duet_call *call)
{
    g_assert_cmpuint(call->buffer_count, ==, 2);
    size_t half = call->buffers[1].rows / 2;
    int error = duet_expand_block(expansion, 0, 0, 0, half, 1, &plan->blocks[0]);
    error = error ? error : duet_expand_block(expansion, 1, half, 0, half, 1, &plan->blocks[1]);
    for (unsigned i = 0; i < 2 && !error; i++)
        error = plan_child(plan, expansion, plan->t->cpu, plan->blocks[i], DUET_W, NULL, 0);
    return error;
}

static void test_same_handle_twice(void)
{
    struct testing *t = start(1, 0, 0);
    struct duet_handle *h = testing_handle(t, 2 * BLOCK);
    struct plan plan = {.expand = twice};
    (void)plan_submit(t, &plan, h, DUET_R, h, DUET_W);
    (void)testing_submit(t, t->cpu, h, DUET_R, NULL, 0, 0);
    testing_drain(t);
    g_assert_cmpuint(plan.children, ==, 2);
    check_clean(t, 1);
    finish(t);
}

/* Two tasks that read the same data expand at once; a writer waits for both. */
static void test_two_parents(void)
{
    struct testing *t = start(3, 0, 0);
    struct duet_handle *h = testing_handle(t, 2 * BLOCK);
    struct plan one = {.expand = two_readers}, other = {.expand = two_readers};
    (void)plan_submit(t, &one, h, DUET_R, NULL, 0);
    (void)plan_submit(t, &other, h, DUET_R, NULL, 0);
    (void)testing_submit(t, t->cpu, h, DUET_RW, NULL, 0, 0);
    struct duet__engine_command first = testing_next(t, 0), second = testing_next(t, 1);
    g_assert_true(one.calls == 1 && other.calls == 1);
    g_assert_true(one.blocks[0] != other.blocks[0]);
    g_assert_cmpint(first.kind, ==, DUET_RUN);
    g_assert_cmpint(second.kind, ==, DUET_RUN);
    g_assert_cmpuint(testing_work(t, 2, NULL), ==, 2);
    testing_done(t, &first, 1e-6, 0);
    g_assert_cmpint(testing_next(t, 2).kind, ==, DUET_IDLE);
    testing_done(t, &second, 1e-6, 0);
    g_assert_cmpuint(testing_work(t, 2, NULL), ==, 1);
    check_clean(t, 1);
    finish(t);
}

enum { WIDE = 20, DEEP = 100000, DEEP_BLOCKS = 1000 };

static int sees_all(struct plan *plan, struct duet_expansion *expansion,
                    const struct duet_call *call)
{
    g_assert_cmpuint(call->buffer_count, ==, WIDE);
    for (unsigned i = 0; i < WIDE; i++)
        g_assert_cmpuint(call->buffers[i].rows, ==, i + 1);
    return DUET_OK;
}

static void test_many_accesses(void)
{
    struct testing *t = start(1, 0, 0);
    struct plan plan = {.expand = sees_all, .t = t}, *pointer = &plan;
    struct duet_access accesses[WIDE];
    for (unsigned i = 0; i < WIDE; i++)
        accesses[i] = (struct duet_access){testing_handle(t, i + 1), DUET_R};
    struct duet_task_desc desc = plan_desc(t, &pointer, accesses, WIDE);
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
    testing_drain(t);
    g_assert_cmpuint(plan.calls, ==, 1);
    finish(t);
}

/* Expands into itself again and again. */
static int deeper(struct plan *plan, struct duet_expansion *expansion, const struct duet_call *call)
{
    plan->inner = plan;
    if (call->buffer_count == 0)
        return plan->calls == DEEP ? DUET_OK : plan_inner(plan, expansion, NULL, 0);
    if (plan->calls == DEEP_BLOCKS)
        return DUET_OK;
    struct duet_handle *block = NULL;
    int error = duet_expand_block(expansion, 0, 0, 0, call->buffers[0].rows, 1, &block);
    return error ? error : plan_inner(plan, expansion, block, DUET_RW);
}

/* A loop written as recursion does not use up the stack when it ends. */
static void test_deep(void)
{
    struct testing *t = start(1, 0, 0);
    struct plan bare = {.expand = deeper}, plan = bare;
    struct duet_handle *h = testing_handle(t, BLOCK);
    (void)plan_submit(t, &bare, NULL, 0, NULL, 0);
    (void)plan_submit(t, &plan, h, DUET_RW, NULL, 0);
    testing_drain(t);
    g_assert_true(bare.calls == DEEP && plan.calls == DEEP_BLOCKS);
    check_clean(t, 1);
    finish(t);
}

/* ------------------------------------------------------------------------------------------- */
/* Counters, the application                                                                    */

/* Children are counted and recorded, their parents are not; finished are all of them. */
static void test_counters(void)
{
    struct duet_stats stats;
    uint64_t ids[8];
    struct testing *t = start(1, 0, 0);
    struct duet_handle *h = testing_handle(t, 4 * BLOCK);
    struct plan plan = {.expand = diamond};
    uint64_t parent = plan_submit(t, &plan, h, DUET_RW, NULL, 0);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    duet_stats(t->core, &stats);
    g_assert_cmpuint(stats.tasks, ==, 4);
    g_assert_cmpuint(stats.accesses, ==, 6);
    g_assert_cmpuint(stats.pops, ==, 5);
    g_assert_cmpfloat_with_epsilon(stats.busy_s, 4e-6, 1e-12);
    g_assert_cmpuint(t->ops.submissions, ==, 4);
    g_assert_cmpuint(duet_tasks_done(t->core), ==, 5);
    g_assert_cmpuint(plan_order(t, ids, 8), ==, 4);
    for (unsigned i = 0; i < 4; i++)
        g_assert_cmpuint(ids[i], !=, parent);
    finish(t);
}

/* Unregistering and acquiring wait for the children and find the result. */
static void test_application_waits(void)
{
    struct testing *t = start(1, 1, 0);
    struct duet_handle *h = testing_handle(t, 2 * BLOCK);
    struct plan plan = {.expand = one_writer};
    (void)plan_submit(t, &plan, h, DUET_RW, NULL, 0);
    g_assert_cmpint(duet_acquire(t->core, h, DUET_R), ==, DUET_OK);
    g_assert_true(plan.children == 1 && bit_test(h->valid, 0));
    g_assert_cmpuint(unfinished(t->core), ==, 0);
    (void)plan_submit(t, &plan, h, DUET_RW, NULL, 0);
    g_assert_cmpint(testing_next(t, CPU).kind, ==, DUET_IDLE);
    g_assert_cmpint(duet_release(t->core, h), ==, DUET_OK);
    g_assert_cmpint(duet_unregister(t->core, h), ==, DUET_OK);
    g_assert_cmpuint(plan.children, ==, 2);
    check_clean(t, 0);
    finish(t);
}

TEST_MAIN(test_order, test_all_children, test_wakes, test_gather, test_stale_replicas, test_reading,
          test_inputs_first, test_eviction, test_nested, test_empty, test_same_handle_twice,
          test_two_parents, test_many_accesses, test_deep, test_counters, test_application_waits)
