/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of heteroprio, multreeprio and dada, on hand-made cases: which task a worker takes, and
 * where tasks go. One core, two devices; times in milliseconds; 1 MB takes 1 ms.
 */
#include "core/policies/testing.h"

enum { CORE = 0, GPU = 1 };

#define THREE "cpus=1 gpus=2 blocks=65536 unasked "

static const struct script scripts[] = {
    {"heteroprio: devices begin where they gain most, the core where it loses least; priorities "
     "within a bucket",
     THREE "heteroprio",
     "set 0 0; A 3/0; B 0/3; C 4/2; D 40/2; E 20/1!1; F 1/4; push F D A E C B; pop gpu0 B;"
     "pop cpu0 A; pop gpu0 E; pop cpu0 F; pop cpu0 C; pop gpu1 D; pop gpu0 none; fini"},
    {"heteroprio: a device takes what it can, though the core be faster", THREE "heteroprio",
     "A 1/4; push A; pop gpu0 A; fini"},
    {"multreeprio: by seconds gained, not by speed-up; by the data's place, if about as critical",
     THREE "multreeprio",
     "data a; gpu a:rw; gpu0 work 1; A 20/1; B 60/30; C 60/30 a; D 1/4; push A D B C; pop cpu0 D;"
     "pop gpu0 C; pop gpu1 B; pop gpu1 A; fini"},
    /* 3 ms are the least guess: then the six that gain most may run anywhere, and fill two devices,
     * and the core has what is left */
    {"dada: what is left by two devices goes to the core; with that, what is theirs to one of them",
     THREE "dada",
     "A 2.5/2; B 3/1.1; C 3/1.1; D 3/1.1; E 3/1.1; F 3/1.1; G 3/1.1; push A B C D E F G;"
     "gpu0 lists 3; gpu1 lists 3; cpu0 lists 1; H 0/1; placed H gpu0; pop cpu0 A; fini"},
    {"dada: a task stays on the core if its copy takes longer than it gains", THREE "dada",
     "set 0 0; set 1 {1|0}; data a*15625; A 3/1 a; placed A {cpu0|gpu0}; fini"},
};

static void test_scripts(void)
{
    policy_scripts_play(scripts, G_N_ELEMENTS(scripts));
}

static struct testing *start(const char *policy)
{
    return testing_init(&(struct testing_machine){.cpus = 1, .gpus = 2, .capacity_bytes = 1 << 24},
                        policy, 1);
}

/* Returns the worker whose list has a task, and takes it off. */
static unsigned place_of(struct testing *t, const struct duet_task *one)
{
    for (unsigned w = 0; w < t->workers; w++) {
        struct duet_view view = testing_view(t, (int)w);
        struct duet_list *list = duet_view_list(&view, w);
        for (size_t i = duet_list_length(list); i; i--) {
            struct duet_task *first = duet_pop_head(&view, list, w);
            if (first == one)
                return w;
            duet_push_tail(&view, list, first);
        }
    }
    g_assert_not_reached();
}

/* The kernels of a writer and, when it runs, of so many tasks that wait for it. Returns it, taken.
 */
static struct duet_task *writer(struct testing *t, struct duet_handle *data, unsigned followers)
{
    (void)testing_submit(t, t->any, data, DUET_RW, NULL, 0, 0);
    struct duet_task *first = popped(t, GPU);
    for (unsigned i = 0; i < followers; i++)
        (void)testing_submit(t, t->any, data, DUET_R, NULL, 0, 0);
    return first;
}

/* In a bucket, or of what gains alike: the one that more wait for, whatever the priorities. */
static void test_released(void)
{
    static const char *const names[] = {"heteroprio", "multreeprio"};
    for (unsigned i = 0; i < 2; i++) {
        OWNED(testing_end) struct testing *t = start(names[i]);
        t->core->parameters[1] = 1; /* by what tasks release; compared with no other by its data */
        struct duet_task *all[3];
        for (unsigned n = 0; n < 3; n++)
            all[n] = writer(t, testing_handle(t, 1000), n == 1 ? 5 : n);
        all[0]->priority = 1;
        push(t, all, 3);
        g_assert_true(popped(t, GPU) == all[1]);
        g_assert_true(popped(t, GPU) == all[2]);
        g_assert_true(popped(t, GPU) == all[0]);
    }
}

/* The core leaves what two devices, ten times as fast, would be through with before it ended one.
 */
static void test_left(void)
{
    OWNED(testing_end) struct testing *t = start("heteroprio");
    for (unsigned i = 1; i < 20; i++) {
        struct duet_task *one = task(t, 10, 1, NULL, 0);
        push(t, &one, 1);
        g_assert_null(popped(t, CORE));
    }
    struct duet_task *one = task(t, 10, 1, NULL, 0);
    push(t, &one, 1);
    g_assert_nonnull(popped(t, CORE));
    g_assert_null(popped(t, CORE));
    g_assert_cmpint(duet__worker_lost(t->core, GPU, 0, &t->ops), ==, DUET_OK);
    g_assert_nonnull(popped(t, CORE)); /* only one of them is left */
    g_assert_cmpint(duet__worker_lost(t->core, GPU + 1, 0, &t->ops), ==, DUET_OK);
    for (unsigned i = 0; i < 18; i++)
        g_assert_nonnull(popped(t, CORE));
}

/* The core takes what devices are faster at when each of them has more to do than it takes. */
static void test_pop_condition(void)
{
    OWNED(testing_end) struct testing *t = start("multreeprio");
    struct duet_task *only = task(t, 0, 9.9, NULL, 0);
    push(t, &only, 1);
    for (unsigned i = 0; i < 10; i++) {
        struct duet_task *one = task(t, 10, 1, NULL, 0);
        push(t, &one, 1);
        g_assert_null(popped(t, CORE));
    }
    struct duet_task *one = task(t, 10, 1, NULL, 0);
    push(t, &one, 1);
    g_assert_nonnull(popped(t, CORE));
    g_assert_null(popped(t, CORE));
    lose(t, GPU);
    g_assert_nonnull(popped(t, CORE)); /* they have as much to do, and one is left */
}

/*
 * A task goes to its data, if that is within alpha times the makespan; otherwise the place does not
 * matter.
 */
static void test_affinity(void)
{
    for (unsigned alpha = 0; alpha < 2; alpha++) {
        OWNED(testing_end) struct testing *t = start("dada");
        struct duet_handle *data = testing_handle(t, 1000);
        struct duet_view view = testing_view(t, DUET_SUBMITTER);
        struct duet_task *first = testing_create(t, t->gpu, data, DUET_RW, NULL, 0, 0);
        duet_push_tail(&view, duet_view_list(&view, GPU + 1), first);
        (void)testing_work(t, GPU + 1, NULL);
        t->core->parameters[0] = alpha;
        struct duet_task *one = task(t, 10, 1, data, 0);
        push(t, &one, 1);
        g_assert_cmpuint(place_of(t, one), ==, alpha ? GPU + 1 : GPU);
    }
}

/* A task that no worker can run any more blocks no other. */
static void test_lost(void)
{
    OWNED(testing_end)
    struct testing *t =
        testing_init(&(struct testing_machine){.cpus = 1, .gpus = 2, .gpu_archs = 2}, "dada", 1);
    t->hold = true;
    submit_to(t, t->gpu, "card0", NULL, 0, NULL, 0);
    t->hold = false;
    struct duet_task *lost = t->held, *only = task(t, 0, 1, NULL, 0);
    lose(t, GPU);
    push(t, (struct duet_task *const[]){only, lost}, 2);
    g_assert_cmpuint(place_of(t, only), ==, GPU + 1);
}

TEST_MAIN(test_scripts, test_released, test_left, test_pop_condition, test_affinity, test_lost)
