/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of dmda, dmdas, dmdar and heft-tm: where tasks go, and which of those that wait is taken.
 * One core, 1 Gflop/s; two devices, 10 Gflop/s; 1 MB takes 1 ms.
 */
#include "core/policies/testing.h"

enum { CPU = 0, GPU = 1, MB = 1000000 };

static struct testing *start(const char *policy)
{
    struct testing *t =
        testing_init(&(struct testing_machine){.cpus = 1, .gpus = 2, .capacity_bytes = 1 << 24},
                     policy, 1);
    g_assert_null(t->core->policy->steal);
    return t;
}

#define THREE "cpus=1 gpus=2 blocks=65536 unasked "

static const struct script scripts[] = {
    /* Ends on the core and the devices in ms: A 40, 4, 4; B 40, 8, 4; C 40, 8, 8; D 4, 8.4, 4.4; E,
     * where 1, 5 and 1 ms are left: 2, 5.1, 1.1. */
    {"tasks go by the time of the waiting ones and of the task itself", THREE "{dmda|heft-tm}",
     "A 40; B 40; C 40; D 4; E 1; placed A gpu0; placed B gpu1; placed C gpu0; placed D cpu0;"
     "at 3000; placed E gpu1; fini"},
    /* Ends in ms: 2 against 2 + 0.2; 4, 2.2, 2.2; 32, 2.2 + 3, 2 + 3, as the copy to gpu0 is done
     * when what waits there ends; 4 against 2.4 + 2. */
    {"a transfer counts while the device is free, hides behind what is there, and is weighed again",
     THREE "dmda",
     "set 1 0; data a*7813; A 2 a; B 2 a; C 30 a; D 2 a; placed A cpu0; placed B gpu0;"
     "placed C gpu1; set 1 1; placed D cpu0; fini"},
    {"heft-tm looks at no transfer", THREE "heft-tm", "data a*15625; A 2 a; placed A gpu0; fini"},
};

static void test_scripts(void)
{
    policy_scripts_play(scripts, G_N_ELEMENTS(scripts));
}

/* If nothing is known the shortest list is taken. */
static void test_unknown(gconstpointer policy)
{
    OWNED(testing_end)
    struct testing *t = testing_init(&(struct testing_machine){.cpus = 3}, policy, 1);
    t->untimed = ~UINT64_C(0);
    struct duet_codelet_desc desc = {.name = "unknown",
                                     .implementations =
                                         (const struct duet_implementation[]){{.arch = "cpu"}},
                                     .implementation_count = 1};
    struct duet_codelet *codelet;
    g_assert_cmpint(duet_register_codelet(t->core, &desc, &codelet), ==, DUET_OK);
    t->untimed = 0;
    for (unsigned i = 0; i < 6; i++)
        g_assert_cmpuint(placed(t, testing_create(t, codelet, NULL, 0, NULL, 0, 0)), ==, i % 3);
}

/* Brings `data` to a device by a task that it runs. */
static void bring(struct testing *t, struct duet_handle *data)
{
    (void)testing_submit(t, t->gpu, data, DUET_R, NULL, 0, 0);
    (void)testing_work(t, GPU, NULL);
    (void)testing_work(t, GPU + 1, NULL);
}

/* In the order in which they are taken by GPU, of those with these priorities and data. */
static void expect(const char *policy, bool sorted, const char *order)
{
    OWNED(testing_end) struct testing *t = start(policy);
    struct duet_handle *there = testing_handle(t, 8), *away = testing_handle(t, 8);
    bring(t, there);
    struct duet_task *tasks[4];
    struct duet_view view = testing_view(t, DUET_SUBMITTER);
    for (unsigned i = 0; i < 4; i++) {
        static const int priorities[] = {1, 2, 2, 1};
        tasks[i] = testing_create(t, t->gpu, there, DUET_R, away, i == 2 ? DUET_W : DUET_RW,
                                  priorities[i]);
        if (t->core->policy->order == DUET_SORTED)
            duet_push_sorted(&view, duet_view_list(&view, GPU), tasks[i],
                             sorted ? priorities[i] : 0);
        else
            duet_push_tail(&view, duet_view_list(&view, GPU), tasks[i]);
    }
    for (unsigned i = 0; i < 4; i++)
        g_assert_true(popped(t, GPU) == tasks[order[i] - '0']);
}

/* 2 has all its data there, the others lack something; 1 and 2 have the higher priority. */
static void test_taken(void)
{
    expect("dmda", false, "0123");
    expect("dmdas", false, "2103");
    expect("dmdar", false, "2013");
    expect("heft-tm", false, "0123");
    expect("heft-tm", true, "1203");
}

enum { WORKERS = 4, DATA = 12, MOST = 200, STEPS = 20000 };

/* Tasks on the lists of all workers, in the order in which they were pushed. */
struct waiting {
    struct testing *t;
    struct duet_view view;
    struct duet_handle *data[DATA];
    unsigned count;
    struct {
        struct duet_task *task;
        unsigned list;
    } entries[MOST];
};

static int missing_of(const struct waiting *all, const struct duet_task *task, unsigned worker)
{
    int missing = 0;
    for (size_t i = 0; i < duet_task_accesses(task); i++)
        missing += duet_task_reads(task, i) &&
                   !duet_view_valid(&all->view, duet_view_node(&all->view, worker), task, i);
    return missing;
}

/* Takes the first task off a list; a search through all waiting tasks has to find the same one. */
static void take_nearest(struct waiting *all, unsigned list, unsigned worker)
{
    const bool by_priority = all->t->core->policy->order == DUET_HEAP_NEAREST;
    struct duet_task *best = NULL;
    unsigned at = 0;
    for (unsigned i = 0; i < all->count; i++) {
        struct duet_task *task = all->entries[i].task;
        if (all->entries[i].list != list || !duet_view_can_run(&all->view, worker, task))
            continue;
        const int higher =
            best && by_priority ? duet_task_priority(task) - duet_task_priority(best) : 0;
        if (!best || higher > 0 ||
            (!higher && missing_of(all, task, list) < missing_of(all, best, list))) {
            best = task;
            at = i;
        }
    }
    g_assert_true(duet_pop_head(&all->view, duet_view_list(&all->view, list), worker) == best);
    if (!best)
        return;
    g_assert_cmpfloat(duet_task_note(best), ==, 0);
    for (all->count--; at < all->count; at++)
        all->entries[at] = all->entries[at + 1];
}

/* Puts a task with random data on the list of a worker. */
static void push_random(struct waiting *all, uint64_t *rng, unsigned list)
{
    static const int modes[] = {DUET_R, DUET_W, DUET_RW};
    struct duet_codelet *codelet = duet_random_below(rng, 2) ? all->t->any
                                   : list < 2                ? all->t->cpu
                                                             : all->t->gpu;
    struct duet_handle *first = all->data[duet_random_below(rng, DATA)];
    struct duet_handle *second = all->data[duet_random_below(rng, DATA)];
    struct duet_task *task =
        testing_create(all->t, codelet, first, modes[duet_random_below(rng, 3)], second,
                       second == first ? 0 : modes[duet_random_below(rng, 3)],
                       (int)duet_random_below(rng, 3));
    all->entries[all->count].task = task;
    all->entries[all->count++].list = list;
    duet_push_tail(&all->view, duet_view_list(&all->view, list), task);
    duet_task_set_note(task, 1.5); /* does nothing there */
    g_assert_cmpfloat(duet_task_note(task), ==, 0);
}

/* Lists by missing inputs give the task that a search finds, whatever data comes and goes. */
static void test_nearest(gconstpointer policy)
{
    g_autofree struct waiting *all = g_new0(struct waiting, 1);
    uint64_t rng = 7;
    all->t = testing_init(&(struct testing_machine){.cpus = 2, .gpus = 2}, policy, 1);
    all->view = testing_view(all->t, DUET_SUBMITTER);
    for (unsigned i = 0; i < DATA; i++)
        all->data[i] = testing_handle(all->t, 8);
    for (unsigned step = 0; step < STEPS; step++) {
        const unsigned list = duet_random_below(&rng, WORKERS), what = duet_random_below(&rng, 8);
        struct duet_handle *data = all->data[duet_random_below(&rng, DATA)];
        const unsigned node = duet_view_node(&all->view, list);
        if (what < 3 && all->count < MOST) {
            push_random(all, &rng, list);
        } else if (what < 5) {
            take_nearest(all, list, duet_random_below(&rng, 4) ? list : (list + 2) % WORKERS);
        } else if (what == 5) {
            bit_clear(data->valid, node);
            bit_clear(data->coming, node);
        } else {
            bit_set(data->coming, node);
            duet__list_nearer(all->t->core, data, node);
        }
    }
    while (all->count)
        take_nearest(all, all->entries[0].list, all->entries[0].list);
    for (unsigned i = 0; i < DATA; i++) {
        bit_set(all->data[i]->valid, DUET_HOST);
        all->data[i]->coming[0] = 0;
    }
    testing_fini(all->t);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/dmda/scripts", test_scripts);
    g_test_add_data_func("/dmda/unknown", "dmda", test_unknown);
    g_test_add_data_func("/dmda/unknown/heft-tm", "heft-tm", test_unknown);
    g_test_add_func("/dmda/taken", test_taken);
    g_test_add_data_func("/dmda/nearest/dmdar", "dmdar", test_nearest);
    g_test_add_data_func("/dmda/nearest/dmdas", "dmdas", test_nearest);
    return g_test_run();
}
