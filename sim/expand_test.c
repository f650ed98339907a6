/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that expand, in simulated time: when their children run, what comes back, what it costs. */
#include "sim/testing.h"

enum { MB = 1000000 };

static struct lab lab;

/* A child of so many seconds on one worker. */
static int child(struct duet_expansion *expansion, const char *where, double seconds,
                 struct duet_handle *block)
{
    const struct lab_seconds times = {seconds, seconds};
    const struct duet_access access = {block, DUET_RW};
    const struct duet_task_desc desc = {.codelet = lab.kernel,
                                        .accesses = &access,
                                        .access_count = 1,
                                        .args = &times,
                                        .args_bytes = sizeof times,
                                        .where = duet_where(lab.duet, where)};
    return duet_expand_submit(expansion, &desc);
}

/* Two halves, for the workers and times that the task carries. */
struct halves {
    const char *where[2];
    double seconds[2];
};

static int halve(struct duet_expansion *expansion, const struct duet_call *call)
{
    struct halves halves;
    size_t half = call->buffers[0].rows / 2;
    int error = DUET_OK;
    memcpy(&halves, call->args, sizeof halves);
    g_assert_null(call->buffers[0].data);
    for (unsigned i = 0; i < 2 && !error; i++) {
        struct duet_handle *block = NULL;
        error = duet_expand_block(expansion, 0, i * half, 0, half, 1, &block);
        error = error ? error : child(expansion, halves.where[i], halves.seconds[i], block);
    }
    return error;
}

static void submit_halves(const char *first, double first_s, const char *second, double second_s,
                          struct duet_handle *handle)
{
    const struct halves halves = {{first, second}, {first_s, second_s}};
    const struct duet_access access = {handle, DUET_RW};
    const struct duet_codelet_desc codelet = {.name = "halve", .expand = halve};
    struct duet_task_desc desc = {.accesses = &access,
                                  .access_count = 1,
                                  .args = &halves,
                                  .args_bytes = sizeof halves};
    struct duet_codelet *made = duet_codelet_find(lab.duet, "halve");
    if (!made)
        g_assert_cmpint(duet_register_codelet(lab.duet, &codelet, &made), ==, DUET_OK);
    desc.codelet = made;
    g_assert_cmpint(duet_submit(lab.duet, &desc), ==, DUET_OK);
}

/*
 * Two GPUs at different switches get 1 MB each (0 to 2 ms) and compute until 3 and until 4 ms. Then
 * both halves come back (until 6 ms), and the CPU reads the whole.
 */
static void test_dates(void)
{
    lab = lab_open(&(struct lab_options){.cpus = 1, .gpus = 3});
    struct duet_handle *x = lab_data(&lab, 2 * MB);
    submit_halves("gpu0", 0.001, "gpu2", 0.002, x);
    lab_task(&lab, "cpu0", 0.001, 1, x, DUET_R);
    lab_finish(&lab);
    assert_copy(&lab, 2, 1, "host", "gpu0", 0, 0.002);
    assert_copy(&lab, 3, 1, "host", "gpu2", 0, 0.002);
    assert_kernel(&lab, 3, "gpu0", 0.002, 0.003);
    assert_kernel(&lab, 4, "gpu2", 0.002, 0.004);
    assert_copy(&lab, 2, 2, "gpu0", "host", 0.004, 0.006);
    assert_copy(&lab, 3, 2, "gpu2", "host", 0.004, 0.006);
    assert_kernel(&lab, 2, "cpu0", 0.006, 0.007);
    g_assert_cmpuint(lab_count(&lab, DUET_EVENT_TASK), ==, 3); /* the expanded one is no kernel */
    lab_close(&lab);
}

/*
 * Submitting costs 1 ms: the application's first task is there at 1 ms, and the worker that expands
 * it begins its first child when it has submitted both.
 */
static void test_costs(void)
{
    lab = lab_open(&(struct lab_options){.cpus = 1, .costs = {.submit_s = 0.001}});
    struct duet_handle *x = lab_data(&lab, 2 * MB);
    submit_halves("cpu0", 0.005, "cpu0", 0.005, x);
    lab_finish(&lab);
    assert_kernel(&lab, 2, "cpu0", 0.003, 0.008);
    assert_kernel(&lab, 3, "cpu0", 0.008, 0.013);
    lab_close(&lab);
}

/* Submits a kernel on the CPU as duet_submit inside an expansion. */
static int submit_inside(double seconds)
{
    const struct lab_seconds times = {seconds, seconds};
    const struct duet_task_desc desc = {.codelet = lab.kernel,
                                        .args = &times,
                                        .args_bytes = sizeof times};
    return duet_submit(lab.duet, &desc);
}

/* Submits two kernels, and itself until the depth that it carries is 0. */
static int unfold(struct duet_expansion *expansion, const struct duet_call *call)
{
    unsigned depth;
    memcpy(&depth, call->args, sizeof depth);
    const struct duet_task_desc again = {.codelet = duet_codelet_find(lab.duet, "unfold"),
                                         .args = &(unsigned){depth - 1},
                                         .args_bytes = sizeof depth};
    int error = submit_inside(0.005);
    error = error ? error : submit_inside(0.005);
    return error || !depth ? error : duet_submit(lab.duet, &again);
}

static void submit_unfold(unsigned depth)
{
    const struct duet_codelet_desc codelet = {.name = "unfold", .expand = unfold};
    struct duet_task_desc desc = {.args = &depth, .args_bytes = sizeof depth};
    struct duet_codelet *made = NULL;
    g_assert_cmpint(duet_register_codelet(lab.duet, &codelet, &made), ==, DUET_OK);
    desc.codelet = made;
    g_assert_cmpint(duet_submit(lab.duet, &desc), ==, DUET_OK);
}

/*
 * Submitting costs 1 ms, also a worker: after an expansion it begins when all that this has
 * submitted is (4 ms, and 16 ms after a nested one). That goes beyond a full window, for which the
 * application waits until all is done, at 26 ms.
 */
static void test_submit(void)
{
    lab = lab_open(&(struct lab_options){.cpus = 1, .window = 1, .costs = {.submit_s = 0.001}});
    submit_unfold(1);
    lab_task(&lab, "cpu0", 0.005, 0);
    lab_finish(&lab);
    assert_kernel(&lab, 2, "cpu0", 0.004, 0.009);
    assert_kernel(&lab, 3, "cpu0", 0.009, 0.014);
    assert_kernel(&lab, 5, "cpu0", 0.016, 0.021);
    assert_kernel(&lab, 6, "cpu0", 0.021, 0.026);
    assert_kernel(&lab, 7, "cpu0", 0.027, 0.032);
    assert_seconds(lab_find(&lab, DUET_EVENT_TASK, 3, 1)->submit_s, 0.001);
    assert_seconds(lab_find(&lab, DUET_EVENT_TASK, 5, 1)->submit_s, 0.014);
    lab_close(&lab);
}

/*
 * The application waits for a window of two, and works as the first worker meanwhile. When the
 * first task has ended there is room, and no work for it to begin; the second one expands at that
 * date, for the first worker only, and there is none.
 */
static void test_window_of_first(void)
{
    lab = lab_open(&(struct lab_options){.cpus = 2, .first_waits = true, .window = 2});
    struct duet_handle *x = lab_data(&lab, 2 * MB);
    lab_task(&lab, "cpu1", 0.001, 1, x, DUET_RW);
    submit_halves("cpu0", 0.002, "cpu0", 0.003, x);
    lab_task(&lab, "cpu1", 0.001, 1, x, DUET_R);
    lab_finish(&lab);
    assert_kernel(&lab, 1, "cpu1", 0, 0.001);
    assert_kernel(&lab, 3, "cpu0", 0.001, 0.003);
    assert_kernel(&lab, 4, "cpu0", 0.003, 0.006);
    assert_kernel(&lab, 5, "cpu1", 0.006, 0.007);
    lab_close(&lab);
}

LAB_MAIN(test_dates, test_costs, test_submit, test_window_of_first)
