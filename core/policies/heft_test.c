/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of heft: order by speed-up, earliest finish with transfers beside the kernels before, dates
 * corrected by what was measured, no stealing. One core, one device or two, times in milliseconds.
 */
#include <glib.h>

#include "core/testing.h"

enum { CPU = 0, GPU = 1 };

struct times {
    double cpu_ms, gpu_ms;
    uint64_t number; /* tells classes apart */
};

static double work(const void *args)
{
    struct times times;
    memcpy(&times, args, sizeof times);
    return 1e6 + (double)times.number;
}

static double cost(const void *args, const char *arch)
{
    struct times times;
    memcpy(&times, args, sizeof times);
    return (strcmp(arch, "core") ? times.gpu_ms : times.cpu_ms) * 1e-3;
}

static void start(struct testing *t, unsigned gpus)
{
    testing_init(t, &(struct testing_machine){.cpus = 1, .gpus = gpus}, "heft", 1);
    g_assert_null(t->core->policy->steal);
}

/* A task with expected times of its own: each has a kernel, so that measurements do not mix. */
static struct duet_task *task(struct testing *t, double cpu_ms, double gpu_ms,
                              struct duet_handle *handle)
{
    char name[DUET_NAME_MAX];
    struct duet_codelet *codelet;
    struct duet_implementation both[] = {{.arch = "cpu"}, {.arch = "cuda"}};
    struct duet_codelet_desc desc = {.name = name,
                                     .implementations = cpu_ms > 0 ? both : both + 1,
                                     .implementation_count = cpu_ms > 0 && gpu_ms > 0 ? 2 : 1,
                                     .flops = work,
                                     .cost = cost};
    testing_name(name, "kernel", (unsigned)duet_kernel_count(t->core));
    g_assert_cmpint(duet_codelet(t->core, &desc, &codelet), ==, DUET_OK);
    struct times times = {cpu_ms, gpu_ms, duet_kernel_count(t->core)};
    struct duet_access access = {handle, DUET_R};
    struct duet_task_desc task_desc = {.codelet = codelet,
                                       .accesses = &access,
                                       .access_count = handle != NULL,
                                       .args = &times,
                                       .args_bytes = sizeof times};
    t->hold = true;
    g_assert_cmpint(duet_submit(t->core, &task_desc), ==, DUET_OK);
    t->hold = false;
    return t->held;
}

static void push(struct testing *t, struct duet_task **batch, size_t count)
{
    struct duet_view view = testing_view(t, DUET_SUBMITTER);
    t->core->policy->push(t->core->policy_state, &view, batch, count, DUET_SUBMITTER, t->now);
}

/* Where one more task goes. It stays there. */
static unsigned placed(struct testing *t, struct duet_task *one)
{
    struct duet_view view = testing_view(t, DUET_SUBMITTER);
    size_t before[8] = {0};
    for (unsigned w = 0; w < t->workers; w++)
        before[w] = duet_list_length(duet_view_list(&view, w));
    push(t, &one, 1);
    for (unsigned w = 0; w < t->workers; w++)
        if (duet_list_length(duet_view_list(&view, w)) > before[w])
            return w;
    g_assert_not_reached();
}

/* The device runs its next task, which takes this long. */
static void run(struct testing *t, double ms)
{
    struct duet__engine_command command = testing_next(t, GPU);
    g_assert_cmpint(command.kind, ==, DUET_RUN);
    testing_done(t, &command, ms * 1e-3, 0);
}

/* The task that gains most chooses first: pushed in any order, B has the device and A the core. */
static void test_order(void)
{
    for (unsigned swap = 0; swap < 2; swap++) {
        struct testing t;
        start(&t, 1);
        struct duet_task *a = task(&t, 1, 0.5, NULL), *b = task(&t, 10, 1, NULL);
        struct duet_task *batch[] = {swap ? b : a, swap ? a : b};
        struct duet_view view = testing_view(&t, DUET_SUBMITTER);
        push(&t, batch, 2);
        g_assert_true(duet_pop_head(&view, duet_view_list(&view, GPU), GPU) == b);
        g_assert_true(duet_pop_head(&view, duet_view_list(&view, CPU), CPU) == a);
        testing_fini(&t);
    }
}

/* Equal speed-up: in order of submission; tasks of devices alone first, of cores alone last. */
static void test_order_of_equals(void)
{
    struct testing t;
    start(&t, 1);
    struct duet_task *a = task(&t, 100, 1, NULL), *b = task(&t, 200, 2, NULL);
    struct duet_task *only = task(&t, 0, 1, NULL);
    struct duet_task *batch[] = {b, a, only};
    struct duet_view view = testing_view(&t, DUET_SUBMITTER);
    push(&t, batch, 3);
    struct duet_list *list = duet_view_list(&view, GPU);
    g_assert_true(duet_pop_head(&view, list, GPU) == only);
    g_assert_true(duet_pop_head(&view, list, GPU) == a);
    g_assert_true(duet_pop_head(&view, list, GPU) == b);
    testing_fini(&t);
}

static void test_earliest_finish(void)
{
    struct testing t;
    start(&t, 2);
    g_assert_cmpuint(placed(&t, task(&t, 4, 3, NULL)), ==, 1); /* free: the faster, lowest number */
    g_assert_cmpuint(placed(&t, task(&t, 4, 3, NULL)), ==, 2); /* 4, 6, 3 */
    g_assert_cmpuint(placed(&t, task(&t, 4, 3, NULL)), ==, CPU);
    g_assert_cmpuint(placed(&t, task(&t, 4, 3, NULL)), ==, 1); /* 8, 6, 6 */
    t.now = 0.1;                                               /* all are free long since */
    g_assert_cmpuint(placed(&t, task(&t, 2, 3, NULL)), ==, CPU);
    testing_fini(&t);
}

/* 1 MB takes 1 ms to the device: it counts while the device is free, and hides behind a kernel. */
static void test_transfer(void)
{
    struct testing t;
    start(&t, 1);
    struct duet_handle *h = testing_handle(&t, 1000000);
    g_assert_cmpuint(placed(&t, task(&t, 1.5, 1, h)), ==, CPU);
    testing_fini(&t);
    start(&t, 1);
    h = testing_handle(&t, 1000000);
    g_assert_cmpuint(placed(&t, task(&t, 10, 2, NULL)), ==, GPU); /* busy for 2 ms */
    /* 2 + 1 with the copy hidden; 4 if it were not */
    g_assert_cmpuint(placed(&t, task(&t, 3.5, 1, h)), ==, GPU);
    testing_fini(&t);
}

/* A late task moves the date of its worker, once. */
static void test_late(void)
{
    struct testing t;
    start(&t, 1);
    for (unsigned i = 0; i < 3; i++)
        g_assert_cmpuint(placed(&t, task(&t, 100, 1, NULL)), ==, GPU);
    run(&t, 5); /* 4 late: the device is busy until 7 */
    g_assert_cmpuint(placed(&t, task(&t, 2.5, 1, NULL)), ==, CPU); /* 5 + 2.5 against 7 + 1 */
    run(&t, 1);                                                    /* as expected: still until 7 */
    /* the core until 7.5; at 6: 7.5 + 1 against 7 + 1.4; 11 + 1.4 if counted twice */
    g_assert_cmpuint(placed(&t, task(&t, 1, 1.4, NULL)), ==, GPU);
    testing_fini(&t);
}

static void test_early(void)
{
    struct testing t;
    start(&t, 1);
    for (unsigned i = 0; i < 2; i++)
        g_assert_cmpuint(placed(&t, task(&t, 100, 4, NULL)), ==, GPU);
    run(&t, 1);                                                    /* 3 early: until 5 */
    g_assert_cmpuint(placed(&t, task(&t, 5.5, 1, NULL)), ==, GPU); /* 6 against 6.5 */
    testing_fini(&t);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/heft/order", test_order);
    g_test_add_func("/heft/order_of_equals", test_order_of_equals);
    g_test_add_func("/heft/earliest_finish", test_earliest_finish);
    g_test_add_func("/heft/transfer", test_transfer);
    g_test_add_func("/heft/late", test_late);
    g_test_add_func("/heft/early", test_early);
    return g_test_run();
}
