/* SPDX-License-Identifier: Apache-2.0 */
/* Tests what released tasks and copies on threads, where only one answer is possible. */
#include <stdlib.h>

#include "core/testing_released.h"
#include "real/testing.h"

struct records {
    struct duet_event *events;
    size_t count;
};

static struct records records_of(const struct duet_runtime *core)
{
    struct records records = {NULL, 0};
    g_assert_cmpint(duet_trace_events(core, &records.events, &records.count), ==, DUET_OK);
    testing_check_released(records.events, records.count, 0);
    return records;
}

static const struct duet_event *find(const struct records *records, enum duet_event_kind kind,
                                     uint64_t id)
{
    for (size_t i = 0; i < records->count; i++)
        if (records->events[i].kind == kind && records->events[i].id == id)
            return &records->events[i];
    g_assert_not_reached();
}

static void expect(const struct records *records, const struct duet_event *event,
                   enum duet_release release, const struct duet_event *by)
{
    g_assert_cmpint(event->release, ==, release);
    g_assert_cmpuint(event->released_by, ==, by ? by - records->events + 1 : 0);
}

/* Number up to which the application lets tasks go on. */
static _Atomic(int) allowed;

struct turn {
    int number;
};

static int wait_turn(const struct duet_call *call)
{
    struct turn turn;
    memcpy(&turn, call->args, sizeof turn);
    while (atomic_load(&allowed) < turn.number)
        testing_sleep(1e-4);
    return DUET_OK;
}

static void submit(struct duet_runtime *core, const struct duet_codelet *codelet, int number,
                   const struct duet_access *accesses, size_t count)
{
    const struct turn turn = {number};
    testing_submit(core, codelet, accesses, count, &turn, sizeof turn);
}

/* The task that is let go last of two releases the third; the fourth comes after that one. */
static void test_fan_in(void)
{
    struct testing t = {.cpus = 2, .record = true};
    OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
    const struct duet_codelet *codelet = testing_codelet(core, "turn", wait_turn, "cpu");
    uint64_t values[2] = {0};
    const struct duet_access a = {testing_cells(core, &values[0], 1), DUET_RW},
                             b = {testing_cells(core, &values[1], 1), DUET_RW}, both[] = {a, b};
    atomic_store(&allowed, 0);
    submit(core, codelet, 2, &a, 1);
    submit(core, codelet, 1, &b, 1);
    submit(core, codelet, 0, both, 2);
    submit(core, codelet, 0, &b, 1);
    atomic_store(&allowed, 1);
    while (duet_tasks_done(core) < 1)
        testing_sleep(1e-4);
    atomic_store(&allowed, 2);
    testing_must(core, duet_wait(core));
    struct records records = records_of(core);
    const struct duet_event *tasks[4];
    for (unsigned i = 0; i < 4; i++)
        tasks[i] = find(&records, DUET_EVENT_TASK, i + 1);
    expect(&records, tasks[0], DUET_RELEASE_SUBMISSION, NULL);
    expect(&records, tasks[1], DUET_RELEASE_SUBMISSION, NULL);
    expect(&records, tasks[2], DUET_RELEASE_TASK, tasks[0]);
    expect(&records, tasks[3], DUET_RELEASE_TASK, tasks[2]);
    free(records.events);
}

/* A copy from a CPU to a GPU goes on after the task, and the next task after the copy. */
static void test_copy(void)
{
    struct testing t = {.cpus = 1, .gpus = 1, .record = true};
    OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
    const struct duet_codelet *cpu = testing_codelet(core, "cpu", wait_turn, "cpu"),
                              *gpu = testing_codelet(core, "gpu", wait_turn, "cuda");
    uint64_t value = 0;
    const struct duet_access access = {testing_cells(core, &value, 1), DUET_RW};
    atomic_store(&allowed, 0);
    submit(core, cpu, 1, &access, 1);
    submit(core, gpu, 0, &access, 1);
    atomic_store(&allowed, 1);
    testing_must(core, duet_wait(core));
    struct records records = records_of(core);
    const struct duet_event *copy = find(&records, DUET_EVENT_COPY, 1),
                            *first = find(&records, DUET_EVENT_TASK, 1),
                            *second = find(&records, DUET_EVENT_TASK, 2);
    expect(&records, copy, DUET_RELEASE_TASK, first);
    expect(&records, second, DUET_RELEASE_COPY, copy);
    free(records.events);
}

TEST_MAIN(test_fan_in, test_copy)
