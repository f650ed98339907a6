/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests what released tasks and copies, where that is known by hand. The machine is that of
 * sim/testing.h; tasks and handles are numbered from 1.
 */
#include "sim/testing.h"

static const uint64_t MB = 1000000;

/* Checks an event's release, by the number-th record of a task or of copies of a handle. */
static void expect(const struct lab *lab, const struct duet_event *event, enum duet_release release,
                   enum duet_event_kind kind, uint64_t id, unsigned number)
{
    g_assert_nonnull(event);
    g_assert_cmpint(event->release, ==, release);
    if (release == DUET_RELEASE_SUBMISSION)
        g_assert_cmpuint(event->released_by, ==, 0);
    else
        g_assert_true(&lab->events[event->released_by - 1] == lab_find(lab, kind, id, number));
}

static void expect_task(const struct lab *lab, uint64_t task, enum duet_release release,
                        enum duet_event_kind kind, uint64_t id)
{
    expect(lab, lab_find(lab, DUET_EVENT_TASK, task, 1), release, kind, id, 1);
}

static void expect_copy(const struct lab *lab, uint64_t handle, unsigned number,
                        enum duet_release release, enum duet_event_kind kind, uint64_t id)
{
    expect(lab, lab_find(lab, DUET_EVENT_COPY, handle, number), release, kind, id, 1);
}

static void test_chain(void)
{
    struct lab lab = lab_open(&(struct lab_options){.cpus = 2});
    struct duet_handle *a = lab_data(&lab, MB);
    lab_task(&lab, "cpu0", 0.002, 1, a, DUET_RW);
    lab_task(&lab, "cpu1", 0.001, 1, a, DUET_RW);
    lab_task(&lab, "cpu0", 0.001, 1, a, DUET_RW);
    lab_finish(&lab);
    expect_task(&lab, 1, DUET_RELEASE_SUBMISSION, DUET_EVENT_TASK, 0);
    expect_task(&lab, 2, DUET_RELEASE_TASK, DUET_EVENT_TASK, 1);
    expect_task(&lab, 3, DUET_RELEASE_TASK, DUET_EVENT_TASK, 2);
    lab_close(&lab);
}

/* The second of three predecessors ends last; tasks in no order have no reason. */
static void test_fan_in(void)
{
    struct lab lab = lab_open(&(struct lab_options){.cpus = 3});
    struct duet_handle *data[] = {lab_data(&lab, MB), lab_data(&lab, MB), lab_data(&lab, MB)};
    lab_task(&lab, "cpu0", 0.002, 1, data[0], DUET_W);
    lab_task(&lab, "cpu1", 0.005, 1, data[1], DUET_W);
    lab_task(&lab, "cpu2", 0.003, 1, data[2], DUET_W);
    lab_task(&lab, "cpu0", 0.001, 3, data[0], DUET_R, data[1], DUET_R, data[2], DUET_R);
    lab_finish(&lab);
    expect_task(&lab, 3, DUET_RELEASE_SUBMISSION, DUET_EVENT_TASK, 0);
    expect_task(&lab, 4, DUET_RELEASE_TASK, DUET_EVENT_TASK, 2);
    lab_close(&lab);
}

/* A task waits for a copy, which its predecessor has let go on. */
static void test_copy(void)
{
    struct lab lab = lab_open(&(struct lab_options){.cpus = 1, .gpus = 1});
    struct duet_handle *a = lab_data(&lab, 5 * MB), *b = lab_data(&lab, MB);
    lab_task(&lab, "cpu0", 0.004, 1, a, DUET_RW);
    lab_task(&lab, "gpu0", 0.001, 2, a, DUET_R, b, DUET_R);
    lab_finish(&lab);
    expect_copy(&lab, 1, 1, DUET_RELEASE_TASK, DUET_EVENT_TASK, 1);
    expect_copy(&lab, 2, 1, DUET_RELEASE_TASK, DUET_EVENT_TASK, 1);
    expect_task(&lab, 2, DUET_RELEASE_COPY, DUET_EVENT_COPY, 2); /* goes behind a's copy */
    lab_close(&lab);
}

/* A copy from device to device goes through the host: its second half goes on from the first. */
static void test_halves(void)
{
    struct lab lab = lab_open(&(struct lab_options){.gpus = 2, .no_peer = true});
    struct duet_handle *a = lab_data(&lab, 5 * MB);
    lab_task(&lab, "gpu0", 0.004, 1, a, DUET_W);
    lab_task(&lab, "gpu1", 0.001, 1, a, DUET_R);
    lab_finish(&lab);
    expect_copy(&lab, 1, 1, DUET_RELEASE_TASK, DUET_EVENT_TASK, 1);
    expect_copy(&lab, 1, 2, DUET_RELEASE_COPY, DUET_EVENT_COPY, 1);
    expect(&lab, lab_find(&lab, DUET_EVENT_TASK, 2, 1), DUET_RELEASE_COPY, DUET_EVENT_COPY, 1, 2);
    lab_close(&lab);
}

/* Copies asked for at once go one behind the other: the task waits for the last one. */
static void test_link(void)
{
    struct lab lab = lab_open(&(struct lab_options){.gpus = 1});
    struct duet_handle *a = lab_data(&lab, 5 * MB), *b = lab_data(&lab, 2 * MB);
    lab_task(&lab, "gpu0", 0.001, 2, a, DUET_R, b, DUET_R);
    lab_finish(&lab);
    expect_copy(&lab, 2, 1, DUET_RELEASE_SUBMISSION, DUET_EVENT_TASK, 0);
    assert_copy(&lab, 2, 1, "host", "gpu0", 0.006, 0.009);
    expect_task(&lab, 1, DUET_RELEASE_COPY, DUET_EVENT_COPY, 2);
    lab_close(&lab);
}

/* The worker is busy, so that it asks for the data of a task when it has a place for that. */
static void test_worker(void)
{
    struct lab lab = lab_open(&(struct lab_options){.cpus = 1, .gpus = 1, .gpu_window = 1});
    struct duet_handle *a = lab_data(&lab, 5 * MB);
    lab_task(&lab, "gpu0", 0.004, 0);
    lab_task(&lab, "gpu0", 0.001, 1, a, DUET_R);
    lab_task(&lab, "cpu0", 0.001, 0);
    lab_task(&lab, "cpu0", 0.001, 0);
    lab_finish(&lab);
    expect_copy(&lab, 1, 1, DUET_RELEASE_WORKER, DUET_EVENT_TASK, 1);
    expect_task(&lab, 2, DUET_RELEASE_COPY, DUET_EVENT_COPY, 1);
    expect_task(&lab, 4, DUET_RELEASE_SUBMISSION, DUET_EVENT_TASK, 0); /* task 4 could have begun */
    lab_close(&lab);
}

/* Memory for one of two: old data goes back first, after the task that has written it. */
static void test_room(void)
{
    struct lab lab = lab_open(&(struct lab_options){.gpus = 1, .gpu_memory_bytes = 6 * MB});
    struct duet_handle *a = lab_data(&lab, 5 * MB), *b = lab_data(&lab, 4 * MB);
    lab_task(&lab, "gpu0", 0.004, 1, a, DUET_RW);
    lab_task(&lab, "gpu0", 0.001, 1, b, DUET_R);
    lab_task(&lab, "gpu0", 0.001, 1, b, DUET_RW);
    lab_finish(&lab);
    expect(&lab, lab_find(&lab, DUET_EVENT_COPY, 1, 2), DUET_RELEASE_ROOM, DUET_EVENT_TASK, 1, 1);
    expect(&lab, lab_find(&lab, DUET_EVENT_COPY, 2, 1), DUET_RELEASE_ROOM, DUET_EVENT_COPY, 1, 2);
    expect_task(&lab, 2, DUET_RELEASE_COPY, DUET_EVENT_COPY, 2);
    expect_task(&lab, 3, DUET_RELEASE_TASK, DUET_EVENT_TASK, 2);
    lab_close(&lab);
}

/* The application has the data until it gives it back. */
static void test_outside(void)
{
    struct lab lab = lab_open(&(struct lab_options){.cpus = 1});
    struct duet_handle *a = lab_data(&lab, MB);
    g_assert_cmpint(duet_acquire(lab.duet, a, DUET_RW), ==, DUET_OK);
    lab_task(&lab, "cpu0", 0.001, 1, a, DUET_RW);
    duet_release(lab.duet, a);
    lab_finish(&lab);
    g_assert_cmpint(lab.events[0].release, ==, DUET_RELEASE_OUTSIDE);
    g_assert_cmpuint(lab.events[0].released_by, ==, 1);
    lab_close(&lab);
}

LAB_MAIN(test_chain, test_fan_in, test_copy, test_halves, test_link, test_worker, test_room,
         test_outside)
