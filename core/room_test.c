/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of what a policy may know and say of devices' memories: room, data brought before its task
 * is taken, which data leaves, state for each place.
 */
#include <math.h>

#include "core/testing_script.h"

enum { BLOCK = SLAB_ALIGN, CPU = 0, GPU = 1, GPU2 = 2, NODE = 1, NODE2 = 2 };

/* The worth of data on a node, and whether it had to be written back when it was asked for. */
struct place {
    double worth;
    unsigned asked, sole;
};

static unsigned prefetch_to; /* 0: nowhere */

static void push(void *self, struct duet_view *view, struct duet_task **batch, size_t count, int by,
                 double now)
{
    for (size_t i = 0; i < count; i++) {
        if (prefetch_to)
            duet_view_prefetch(view, batch[i], prefetch_to);
        duet_push_tail(view, duet_view_shared(view), batch[i]);
    }
}

static struct duet_task *pop(void *self, struct duet_view *view, unsigned worker, double now)
{
    return duet_pop_head(view, duet_view_shared(view), worker);
}

static double victim(void *self, struct duet_view *view, unsigned node, void *data, bool sole)
{
    struct place *place = data;
    place->asked++;
    place->sole += sole;
    return place->worth;
}

static const struct duet_policy policy = {
    .name = "room",
    .description = "says what leaves",
    .source = "this test",
    .state_size_a_data = sizeof(char),
    .state_size_a_place = sizeof(struct place),
    .push = push,
    .pop = pop,
    .victim = victim,
};

static struct testing *start_policy(unsigned blocks, const struct duet_policy *with)
{
    prefetch_to = 0;
    return testing_init_policy(&(struct testing_machine){.cpus = 1,
                                                         .gpus = 2,
                                                         .capacity_bytes = blocks * BLOCK},
                               with, 1);
}

static struct testing *start(unsigned blocks)
{
    return start_policy(blocks, &policy);
}

static bool valid(const struct duet_handle *handle, unsigned node)
{
    return bit_test(handle->valid, node);
}

/* The policy's state of a handle on a node. */
static struct place *place_of(struct testing *t, struct duet_handle *handle, unsigned node)
{
    struct duet_task *task = testing_create(t, t->any, handle, DUET_R, NULL, 0, 0);
    struct duet_view view = testing_view(t, DUET_SUBMITTER);
    struct place *place = duet_task_place_state(&view, task, 0, node);
    duet__link(t->core, task, DUET_SUBMITTER, t->now, &t->ops);
    testing_drain(t);
    return place;
}

/* Runs one task on the first device, all of it at once. */
static void touch(struct testing *t, struct testing_log *log, struct duet_handle *a, int mode)
{
    (void)testing_submit(t, t->gpu, a, mode, NULL, 0, 0);
    g_assert_cmpuint(testing_work(t, GPU, log), ==, 1);
}

static void test_bytes(void)
{
    OWNED(testing_end) struct testing *t = start(4);
    struct duet_view view = testing_view(t, DUET_SUBMITTER);
    g_assert_cmpuint(duet_view_capacity_bytes(&view, 0), ==, UINT64_MAX);
    g_assert_cmpuint(duet_view_free_bytes(&view, 0), ==, UINT64_MAX);
    g_assert_cmpuint(duet_view_capacity_bytes(&view, NODE), ==, 4 * BLOCK);
    g_assert_cmpuint(duet_view_free_bytes(&view, NODE), ==, 4 * BLOCK);
    struct duet_handle *a = testing_handle(t, BLOCK + 1);
    touch(t, NULL, a, DUET_R);
    g_assert_cmpuint(duet_view_free_bytes(&view, NODE), ==, 2 * BLOCK);
    g_assert_cmpuint(duet_view_free_bytes(&view, NODE2), ==, 4 * BLOCK);
    g_assert_cmpint(duet_unregister(t->core, a), ==, DUET_OK);
    g_assert_cmpuint(duet_view_free_bytes(&view, NODE), ==, 4 * BLOCK);
}

/* State is of one datum on one node, zeroed, whatever the others are. */
static void test_places(void)
{
    OWNED(testing_end) struct testing *t = start(4);
    struct duet_handle *handles[3];
    for (unsigned i = 0; i < 3; i++) {
        handles[i] = testing_handle(t, BLOCK);
        for (unsigned node = 0; node < 3; node++) {
            struct place *place = place_of(t, handles[i], node);
            g_assert_cmpfloat(place->worth, ==, 0);
            g_assert_cmpuint((uintptr_t)place % 16, ==, 0);
            memset(place, (int)(3 * i + node + 1), sizeof *place);
        }
    }
    for (unsigned i = 0; i < 3; i++)
        for (unsigned node = 0; node < 3; node++)
            g_assert_cmpuint(place_of(t, handles[i], node)->asked, ==,
                             (3 * i + node + 1) * 0x01010101u);
}

/* The highest score leaves, among equals the least recently used; what is invalid before all. */
static void test_victim(void)
{
    struct duet_handle *h[6];
    struct place *places[6];
    OWNED(testing_end) struct testing *t = start(3);
    for (unsigned i = 0; i < 6; i++) {
        h[i] = testing_handle(t, BLOCK);
        places[i] = place_of(t, h[i], NODE);
    }
    testing_drain(t);
    for (unsigned i = 0; i < 3; i++)
        touch(t, NULL, h[i], DUET_R);
    memset(places[0], 0, sizeof *places[0]);
    places[1]->worth = 2;
    places[2]->worth = 2;
    touch(t, NULL, h[3], DUET_R);
    g_assert_true(valid(h[0], NODE) && !valid(h[1], NODE) && valid(h[2], NODE));
    g_assert_cmpuint(places[0]->asked, ==, 1);
    g_assert_cmpuint(places[0]->sole, ==, 0);
    g_assert_cmpuint(places[3]->asked, ==, 0); /* whose room it is to be is not asked for */
    places[2]->worth = -INFINITY;
    places[0]->worth = -INFINITY; /* all of them may be that */
    places[3]->worth = -INFINITY;
    touch(t, NULL, h[4], DUET_R);
    g_assert_true(!valid(h[0], NODE) && valid(h[2], NODE) && valid(h[3], NODE));
    (void)testing_submit(t, t->cpu, h[4], DUET_W, NULL, 0, 0);
    g_assert_cmpuint(testing_work(t, CPU, NULL), ==, 1);
    unsigned asked = places[2]->asked;
    places[2]->worth = 10;
    touch(t, NULL, h[5], DUET_R);
    g_assert_true(!valid(h[4], NODE) && valid(h[2], NODE) && valid(h[3], NODE));
    g_assert_cmpuint(places[2]->asked, ==, asked);
}

/* Data that is written back first is reported so, and stays until it is. */
static void test_sole(void)
{
    OWNED(testing_end) struct testing *t = start(2);
    struct duet_handle *a = testing_handle(t, BLOCK), *b = testing_handle(t, BLOCK);
    struct duet_handle *c = testing_handle(t, BLOCK);
    struct place *of_a = place_of(t, a, NODE), *of_b = place_of(t, b, NODE);
    touch(t, NULL, a, DUET_R);
    touch(t, NULL, b, DUET_RW);
    of_b->worth = 1;
    (void)testing_submit(t, t->gpu, c, DUET_W, NULL, 0, 0);
    struct duet__engine_command out = testing_next(t, GPU);
    g_assert_true(out.kind == DUET_COPY && out.copy->write_back && out.copy->handle == b);
    g_assert_cmpuint(of_b->sole, ==, 1);
    g_assert_cmpuint(of_a->sole, ==, 0);
    g_assert_cmpint(testing_next(t, GPU).kind, ==, DUET_IDLE);
    g_assert_true(valid(a, NODE) && valid(b, NODE));
    testing_done(t, &out, 1e-6, 0);
    g_assert_cmpuint(testing_work(t, GPU, NULL), ==, 1);
    g_assert_true(valid(a, NODE) && !valid(b, NODE) && valid(c, NODE));
}

/* "to gpu0" has the data of what is submitted brought there, "to host" nowhere. */
static bool room_step(struct stage *stage, char **words)
{
    if (!stage_is(words, "to"))
        return false;
    prefetch_to = stage_node(stage, words[1], strlen(words[1]));
    return true;
}

static const struct script scripts[] = {
    {"data is brought before the task is taken, once, and only what is read and missing; a task "
     "that is taken meanwhile waits for the same copy",
     "cpus=1 gpus=2 blocks=4",
     "to host; data a b c; gpu b:r; gpu0 work 1; copies 1; to gpu0; cpu a:{r|rw|w} b:r;"
     "{gpu0 copy a host>gpu0; done a|gpu0 copy a host>gpu0; done a|}; gpu0 idle;"
     "valid a host {gpu0|gpu0|}; cpu0 work 1; valid a host {gpu0||}; pinned gpu0 0; gpu c:r;"
     "gpu0 work 1; copies 1; wait"},
    {"the task runs elsewhere meanwhile: what comes after it waits for the end of the copy",
     "cpus=1 gpus=2 blocks=4",
     "to gpu0; data a; cpu a:rw; gpu0 copy a host>gpu0; to host; cpu a:rw; cpu0 work 1; done a;"
     "valid a host; cpu0 work 1; to gpu0; cpu a:r; cpu0 work 1; unregister a; used gpu0 0"},
    {"no valid data makes room, only invalid data", "cpus=1 gpus=2 blocks=2",
     "to host; data a b c; gpu a:r; gpu0 work 1; gpu b:r; gpu0 work 1; to gpu0; cpu c:r; gpu0 idle;"
     "cpu0 work 1; to host; cpu b:w; cpu0 work 1; to gpu0; cpu c:r; gpu0 copy c host>gpu0; done c;"
     "gpu0 idle; valid a host gpu0; valid b host; valid c host gpu0; drain"},
};

static void test_prefetch(void)
{
    scripts_play_with(scripts, G_N_ELEMENTS(scripts), &(struct stage_more){&policy, room_step});
}

/*
 * Whether searches keep the scores of luf or ask for all of them, the same data leaves: two
 * runtimes have the same random accesses, counts, acquisitions and new data.
 */
static void test_scores_hold(void)
{
    enum { DATA = 24, BLOCKS = 7, STEPS = 20000 };
    struct duet_policy luf[2] = {policy, policy};
    struct duet_handle *data[2][DATA];
    struct testing *t[2];
    uint64_t random = 5;
    unsigned differ = 0;
    for (unsigned r = 0; r < 2; r++) {
        luf[r].victim = duet_luf_victim;
        luf[r].scores_hold = r;
        t[r] = start_policy(BLOCKS, &luf[r]);
        for (unsigned i = 0; i < DATA; i++)
            data[r][i] = testing_handle(t[r], BLOCK);
    }
    for (unsigned step = 0; step < STEPS; step++) {
        static const int modes[] = {DUET_R, DUET_R, DUET_W, DUET_RW};
        const unsigned action = duet_random_below(&random, 10), end = duet_random_below(&random, 4);
        const unsigned i = duet_random_below(&random, DATA), j = duet_random_below(&random, DATA);
        const int mode = modes[duet_random_below(&random, 4)], change = i < j ? 1 : -1;
        for (unsigned r = 0; r < 2; r++) {
            struct duet_view view = testing_view(t[r], DUET_SUBMITTER);
            struct duet_task *task;
            if (action == 0) { /* counts without a task's beginning or end */
                task = testing_create(t[r], t[r]->any, data[r][i], DUET_R, NULL, 0, 0);
                duet_luf_count(&view, task, GPU, change);
                duet__link(t[r]->core, task, DUET_SUBMITTER, t[r]->now, &t[r]->ops);
            } else if (action == 1) {
                g_assert_cmpint(duet_prefetch(t[r]->core, data[r][i], NODE), ==, DUET_OK);
            } else if (action == 2 && j == 0) {
                testing_drain(t[r]);
                g_assert_cmpint(duet_unregister(t[r]->core, data[r][i]), ==, DUET_OK);
                data[r][i] = testing_handle(t[r], BLOCK);
            } else {
                (void)testing_submit(t[r], action < 5 ? t[r]->cpu : t[r]->gpu, data[r][i], mode,
                                     i == j ? NULL : data[r][j], i == j ? 0 : DUET_R, 0);
            }
            (void)(end == 0 && testing_work(t[r], CPU, NULL));
            (void)(end == 1 && testing_work(t[r], GPU, NULL));
            if (end == 2)
                testing_drain(t[r]);
        }
        for (unsigned node = NODE; node <= NODE2; node++)
            for (unsigned d = 0; d < DATA; d++)
                differ += valid(data[0][d], node) != valid(data[1][d], node);
        g_assert_cmpuint(differ, ==, 0);
    }
    g_assert_cmpuint(t[1]->core->nodes[NODE].evictions, >, STEPS / 20);
    g_assert_cmpuint(t[1]->core->nodes[NODE].write_backs, >, STEPS / 20);
    for (unsigned r = 0; r < 2; r++) {
        testing_drain(t[r]);
        testing_fini(t[r]);
    }
}

TEST_MAIN(test_bytes, test_places, test_victim, test_sole, test_prefetch, test_scores_hold)
