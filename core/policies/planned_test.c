/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decisions of the policies that know the whole graph, static and cp, on graphs calculated by hand.
 * Times in milliseconds on a core and on a device; 0: not there.
 */
#include "core/testing.h"

enum { CPU = 0, GPU = 1, MOST = 16 };

struct times {
    double cpu_ms, gpu_ms;
};

static double work(const void *args)
{
    const struct times *times = args;
    return 1e6 * times->cpu_ms + 1e3 * times->gpu_ms;
}

static double cost(const void *args, const char *arch)
{
    const struct times *times = args;
    return (strcmp(arch, "core") ? times->gpu_ms : times->cpu_ms) * 1e-3;
}

static struct duet_codelet *codelets[3]; /* for both, cores, devices */

static struct testing *start(const char *policy, unsigned cpus, unsigned gpus)
{
    static const struct duet_implementation both[] = {{.arch = "cuda"}, {.arch = "cpu"}};
    static const char *const names[] = {"both", "core", "device"};
    struct testing *t =
        testing_init(&(struct testing_machine){.cpus = cpus, .gpus = gpus}, policy, 1);
    for (unsigned i = 0; i < 3; i++) {
        const struct duet_codelet_desc desc = {.name = names[i],
                                               .implementations = both + (i == 1),
                                               .implementation_count = i ? 1 : 2,
                                               .flops = work,
                                               .cost = cost};
        g_assert_cmpint(duet_register_codelet(t->core, &desc, &codelets[i]), ==, DUET_OK);
    }
    return t;
}

static void submit(struct testing *t, double cpu_ms, double gpu_ms, struct duet_handle *a,
                   int mode_a, struct duet_handle *b, int mode_b)
{
    const struct times times = {cpu_ms, gpu_ms};
    const struct duet_access accesses[] = {{a, (enum duet_mode)mode_a},
                                           {b, (enum duet_mode)mode_b}};
    const struct duet_task_desc desc = {.codelet = codelets[cpu_ms == 0   ? 2
                                                            : gpu_ms == 0 ? 1
                                                                          : 0],
                                        .accesses = accesses,
                                        .access_count = mode_b   ? 2
                                                        : mode_a ? 1
                                                                 : 0,
                                        .args = &times,
                                        .args_bytes = sizeof times};
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
}

/* All is done, and these tasks ran on the worker, in this order; the list ends with 0. */
static void expect(struct testing *t, int worker, const uint64_t *ids)
{
    struct duet_event *events;
    size_t count;
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    g_assert_cmpint(duet_trace_events(t->core, &events, &count), ==, DUET_OK);
    for (size_t i = 0; i < count; i++)
        if (events[i].kind == DUET_EVENT_TASK && events[i].worker == worker)
            g_assert_cmpuint(events[i].id, ==, *ids++);
    g_assert_cmpuint(*ids, ==, 0);
    free(events);
}

#define EXPECT(t, worker, ...) expect(t, worker, (const uint64_t[]){__VA_ARGS__, 0})

/*
 * The device waits for what the core computes, and what was submitted first, of the lowest rank,
 * fits into the gap: task 4 has a planned beginning before that of 3.
 *
 *     device  2 [0, 10]  4 [10, 15]   3 [20, 30]
 *     core    1 [0, 20]
 */
static void test_gap(void)
{
    OWNED(testing_end) struct testing *t = start("static", 1, 1);
    struct duet_handle *a = testing_handle(t, 8), *b = testing_handle(t, 8);
    submit(t, 20, 0, a, DUET_W, NULL, 0);
    submit(t, 0, 10, b, DUET_W, NULL, 0);
    submit(t, 0, 10, a, DUET_R, b, DUET_RW);
    submit(t, 14, 5, NULL, 0, NULL, 0);
    EXPECT(t, CPU, 1);
    EXPECT(t, GPU, 2, 4, 3);
}

/*
 * The long chain first, and what is short where it ends first, though a core would be free at once:
 * the device is at 10 + 10 + 3 ms when the core is at 40.
 */
static void test_static(void)
{
    OWNED(testing_end) struct testing *t = start("static", 1, 1);
    struct duet_handle *a = testing_handle(t, 8);
    submit(t, 40, 3, NULL, 0, NULL, 0);
    submit(t, 90, 10, a, DUET_RW, NULL, 0);
    submit(t, 90, 10, a, DUET_RW, NULL, 0);
    EXPECT(t, GPU, 2, 3, 1);
    /* what comes when nobody waits for it, from a kernel: planned by nobody, to who ends it first
     */
    t->in_kernel = 1 + CPU;
    submit(t, 1, 2, NULL, 0, NULL, 0);
    submit(t, 2, 1, NULL, 0, NULL, 0);
    t->in_kernel = 0;
    EXPECT(t, CPU, 4);
    EXPECT(t, GPU, 2, 3, 1, 5);
}

/* A copy of 1 MB takes 1 ms: the second task stays where its data is, and writers are waited for.
 */
static void test_copies(void)
{
    OWNED(testing_end) struct testing *t = start("static", 1, 1);
    struct duet_handle *a = testing_handle(t, 1000000);
    submit(t, 2, 0, a, DUET_W, NULL, 0);
    submit(t, 1.5, 1, a, DUET_RW, NULL, 0);
    submit(t, 4, 1, a, DUET_R, NULL, 0);
    EXPECT(t, CPU, 1, 2);
    EXPECT(t, GPU, 3);
}

/* Checks that tasks planned for a lost device go elsewhere. */
static void check_lost(const char *policy)
{
    struct duet__ops ops = {0};
    OWNED(testing_end) struct testing *t = start(policy, 1, 1);
    for (unsigned i = 0; i < 3; i++)
        submit(t, 10, 1, NULL, 0, NULL, 0);
    testing_let_in(t);
    g_assert_cmpuint(duet_list_length(&t->core->workers[GPU].list), ==, 3);
    g_assert_cmpint(duet__worker_lost(t->core, GPU, t->now, &ops), ==, DUET_OK);
    EXPECT(t, CPU, 1, 2, 3);
}

static void test_lost(void)
{
    check_lost("static");
    check_lost("cp");
}

/* A task that no worker can run any more, before another task of its data, blocks no other. */
static void test_lost_before(void)
{
    struct duet__ops ops = {0};
    OWNED(testing_end) struct testing *t = start("static", 2, 1);
    t->core->keep_going = true;
    struct duet_handle *a = testing_handle(t, 8);
    g_assert_cmpint(duet__worker_lost(t->core, 2, t->now, &ops), ==, DUET_OK);
    submit(t, 0, 1, a, DUET_R, NULL, 0);
    submit(t, 1, 0, a, DUET_W, NULL, 0);
    for (unsigned i = 0; i < 3; i++)
        submit(t, 1, 0, NULL, 0, NULL, 0);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_ELOST);
    for (unsigned w = 0; w < 2; w++)
        g_assert_cmpuint(duet_worker_stats(t->core, w).tasks, ==, 2);
}

/* One core runs the longest path first, whatever was submitted first; then unplanned tasks. */
static void test_critical_path(void)
{
    OWNED(testing_end) struct testing *t = start("cp", 1, 0);
    struct duet_handle *a = testing_handle(t, 8);
    submit(t, 5, 0, NULL, 0, NULL, 0);
    submit(t, 10, 0, a, DUET_RW, NULL, 0);
    submit(t, 10, 0, a, DUET_RW, NULL, 0);
    submit(t, 12, 0, NULL, 0, NULL, 0);
    t->in_kernel = 1 + CPU;
    submit(t, 50, 0, NULL, 0, NULL, 0);
    t->in_kernel = 0;
    EXPECT(t, CPU, 2, 4, 3, 1, 5);
}

/*
 * The place is decided when a task is ready: the device has more to do by then than the core, and
 * of two devices the one that has the data.
 */
static void test_place(void)
{
    struct testing *t = start("cp", 1, 1);
    for (unsigned i = 0; i < 5; i++)
        submit(t, 10, 3, NULL, 0, NULL, 0);
    EXPECT(t, CPU, 4); /* the device: 3, 6, 9, then 12 ms */
    EXPECT(t, GPU, 1, 2, 3, 5);
    testing_fini(t);
    t = start("cp", 0, 2);
    struct duet_handle *a = testing_handle(t, 100000);
    submit(t, 0, 1, NULL, 0, NULL, 0);
    submit(t, 0, 1, a, DUET_W, NULL, 0);
    submit(t, 0, 1, a, DUET_R, NULL, 0);
    EXPECT(t, 1, 2, 3);
    testing_fini(t);
}

TEST_MAIN(test_gap, test_static, test_copies, test_lost, test_lost_before, test_critical_path,
          test_place)
