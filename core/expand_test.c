/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of tasks that expand: in which order children and successors run, where results go, and
 * what is left behind. Refusals and failures are in expand_errors_test.c.
 */
#include "core/testing_script.h"

enum { BLOCK = SLAB_ALIGN };

#define ONE "cpus=1 gpus=1 unasked "
/* Two writers, one that reads the first's block, one that reads the others'. */
#define DIAMOND "plan p cut 4, cpu p0:w, cpu p1:w, cpu p0:r p2:w, cpu p2:r p1:rw;"
#define READERS "plan p cut 2, cpu p0:r, cpu p1:r;"
#define WRITER "plan p cut 2, gpu p1:w;"

static const struct script scripts[] = {
    /* order */
    {"tasks submitted before the parent run before its children, later ones after them",
     "cpus=1 unasked",
     DIAMOND "data a*4; cpu a:w; split p a:rw; cpu a:r; wait; expanded p 1; order 1 4 5 6 7 3;"
             "handles 1"},
    {"the successor waits for all children, however they overlap", "cpus=2 unasked",
     READERS "data a*2; split p a:r; cpu a:w; cpu0 run 3; cpu1 run 4; done 4; cpu1 idle; done 3;"
             "cpu0 run 2; done 2; submissions 2; handles 1"},

    /* results */
    {"data that a child wrote on a device is back in the host's memory before a successor begins",
     ONE,
     WRITER "data a*2; split p a:rw; cpu a:r; cpu0 idle; gpu0 run 3; done 3; cpu0 idle;"
            "gpu0 copy p1 gpu0>host; gpu0 idle; cpu0 idle; hush cpu0; done p1; woken cpu0;"
            "cpu0 work 1; copies 0; used gpu0 0; handles 1"},
    {"replicas of the whole from before the expansion are stale after it", ONE,
     WRITER "data a*2; gpu a:rw; split p a:rw; drain; valid a host; gpu a:r; gpu0 work 1;"
            "copied a host>gpu0; copies 0; handles 1"},
    {"a child that only reads leaves the copies valid", ONE,
     READERS "data a*2; gpu a:rw; split p a:r; drain; valid a host gpu0; handles 1"},
    {"the input that comes from a device is there before the task expands", ONE,
     READERS "data a*2; gpu a:w; gpu0 work 1; split p a:r; cpu0 idle; expanded p 0; gpu0 work 0;"
             "cpu0 work 2; expanded p 1"},

    /* shapes */
    {"with no children, no blocks, neither, no data at all, it is finished, the successor runs",
     ONE,
     "plan p {|cut 2|any, cpu}; plan q; data a*2; gpu a:w; gpu0 work 1; split p a:rw; split q;"
     "cpu a:rw; drain; tasks {2|2|4}; expanded p 1; expanded q 1; handles 1"},
    {"two tasks that read the same data expand at once; a writer waits for both", "cpus=3 unasked",
     READERS "plan q cut 2, cpu q0:r, cpu q1:r; data a*2; split p a:r; split q a:r; cpu a:rw;"
             "cpu0 run 4; cpu1 run 5; expanded p 1; expanded q 1; differ p0 q0; cpu2 work 2; done "
             "4; cpu2 idle;"
             "done 5; cpu2 work 1; handles 1"},

    /* counters, the application */
    {"children are counted and recorded, their parents are not; finished are all of them",
     "cpus=1 unasked",
     DIAMOND "data a*4; split p a:rw; wait; tasks 4; accesses 6; pops 5; busy_us 4; submissions 4; "
             "finished 5; order 2 3 4 5"},
    {"acquiring and unregistering wait for the children and find the result", ONE,
     WRITER
     "data a*2; split p a:rw; acquire a:r; tasks 1; valid a host; unfinished 0; split p a:rw;"
     "cpu0 idle; release a; unregister a; tasks 2; handles 0"},
};

/* All is finished, with so many handles: blocks are gone. */
static void finish(struct testing *t, unsigned handles)
{
    for (const struct duet_handle *h = t->core->handles; h; h = h->next)
        handles--;
    g_assert_cmpuint(handles, ==, 0);
    lost_end(t, DUET_OK, NULL);
}

static int two_readers(struct plan *plan, struct duet_expansion *expansion,
                       const struct duet_call *call)
{
    int error = plan_cut(plan, expansion, 0, call->buffers[0].rows, 2);
    for (unsigned i = 0; i < 2 && !error; i++)
        error = plan_child(plan, expansion, plan->t->cpu, plan->blocks[i], DUET_R, NULL, 0);
    return error;
}

/* A worker that only expands wakes one that is idle, and is itself woken when it found nothing. */
static void test_wakes(void)
{
    struct testing *t = stage_of("cpus=3 unasked");
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
    finish(t, 1);
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
    struct testing *t = stage_of("cpus=1 gpus=1 blocks=2 unasked");
    struct duet_handle *h = testing_handle(t, MANY * BLOCK);
    struct plan plan = {.expand = rounds};
    (void)plan_submit(t, &plan, h, DUET_RW, NULL, 0);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    duet_stats(t->core, &stats);
    g_assert_cmpuint(stats.tasks, ==, 2 * MANY);
    g_assert_cmpuint(stats.write_backs, >=, MANY);
    g_assert_cmpuint(t->core->nodes[1].slab.used_bytes, ==, 0);
    finish(t, 1);
}

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
    struct testing *t = stage_of("cpus=1 gpus=1 unasked");
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
    finish(t, 1);
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
    struct testing *t = stage_of("cpus=1 unasked");
    struct duet_handle *h = testing_handle(t, 2 * BLOCK);
    struct plan plan = {.expand = twice};
    (void)plan_submit(t, &plan, h, DUET_R, h, DUET_W);
    (void)testing_submit(t, t->cpu, h, DUET_R, NULL, 0, 0);
    testing_drain(t);
    g_assert_cmpuint(plan.children, ==, 2);
    finish(t, 1);
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
    struct testing *t = stage_of("cpus=1 unasked");
    struct plan plan = {.expand = sees_all, .t = t}, *pointer = &plan;
    struct duet_access accesses[WIDE];
    for (unsigned i = 0; i < WIDE; i++)
        accesses[i] = (struct duet_access){testing_handle(t, i + 1), DUET_R};
    struct duet_task_desc desc = plan_desc(t, &pointer, accesses, WIDE);
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
    testing_drain(t);
    g_assert_cmpuint(plan.calls, ==, 1);
    finish(t, WIDE);
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
    struct testing *t = stage_of("cpus=1 unasked");
    struct plan bare = {.expand = deeper}, plan = bare;
    struct duet_handle *h = testing_handle(t, BLOCK);
    (void)plan_submit(t, &bare, NULL, 0, NULL, 0);
    (void)plan_submit(t, &plan, h, DUET_RW, NULL, 0);
    testing_drain(t);
    g_assert_true(bare.calls == DEEP && plan.calls == DEEP_BLOCKS);
    finish(t, 1);
}

SCRIPTS_MAIN(test_scripts, test_wakes, test_eviction, test_nested, test_same_handle_twice,
             test_many_accesses, test_deep)
