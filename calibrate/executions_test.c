/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of reading records, by hand. */
#include <math.h>
#include <string.h>

#include <glib.h>

#include "calibrate/model.h"

/* Two sockets: workers 0, 1, 2 and 3; worker 4 is a device. */
enum { WORKERS = 5, DEVICE = 4 };

static void machine_init(struct duet_machine *machine)
{
    g_assert_cmpint(duet_machine_init(machine, 2, 2, WORKERS, 0), ==, 0);
    machine->workers[3].socket = 1;
    machine->workers[DEVICE].node = 1;
    machine->workers[DEVICE].arch = 1;
    g_strlcpy(machine->archs[0].name, "core", DUET_NAME_MAX);
    g_strlcpy(machine->archs[1].name, "device", DUET_NAME_MAX);
    machine->sharing = (struct duet_sharing){8 << 10, 0};
}

static struct duet_event task(uint64_t id, int worker, double start_s, double end_s)
{
    return (struct duet_event){.kind = DUET_EVENT_TASK,
                               .worker = worker,
                               .id = id,
                               .start_s = start_s,
                               .end_s = end_s,
                               .work = 100};
}

static int gather(struct duet_machine *machine, struct duet_event *events, size_t count,
                  struct duet_trace_access *accesses, size_t access_count, double overhead_s,
                  struct duet__executions *out)
{
    static const char *kernels[] = {"b", "a"};
    static struct duet__recorded_run run; /* the executions borrow from it */
    run = (struct duet__recorded_run){
        .recording = {machine, events, count, kernels, 2, 10, accesses, access_count},
        .context = NULL,
    };
    return duet__executions_read(&run, 1, overhead_s, out, NULL);
}

static void test_others(void)
{
    OWNED(duet_machine_fini) struct duet_machine machine;
    struct duet__executions executions;
    struct duet_event events[] = {
        task(1, 0, 0, 4), task(2, 1, 1, 3), task(3, 3, 1, 3), task(4, DEVICE, 1, 3),
        task(5, 2, 2, 6), task(6, 1, 3, 4), task(7, 0, 8, 9),
    };
    static const double others[] = {1.25, 1.5, 0, 0, 1, 2, 0};
    machine_init(&machine);
    g_assert_cmpint(gather(&machine, events, G_N_ELEMENTS(events), NULL, 0, 0, &executions), ==, 0);
    g_assert_cmpuint(executions.count, ==, G_N_ELEMENTS(events));
    for (size_t i = 0; i < executions.count; i++) {
        g_assert_cmpfloat(fabs(executions.list[i].others - others[i]), <, 1e-12);
        g_assert_cmpuint(executions.list[i].workers, ==,
                         events[i].worker == DEVICE ? 0
                         : events[i].worker == 3    ? 1
                                                    : 3);
    }
    duet__executions_fini(&executions);
    duet__executions_fini(&executions);
}

/* A kernel's seconds are those in which it had a core: on two cores, three kernels have two thirds
 * of one each. Kernels of devices need a core where these are emulated. */
static void test_cores(void)
{
    static const struct {
        unsigned cores;
        const char *arch;
        double seconds[4];
    } cases[] = {
        {0, "emulated", {4, 2, 2, 2}},
        {3, "emulated", {4, 2, 2, 2}},
        {2, "device", {4, 2, 2, 2}},
        {1, "device", {3, 2, 1, 2}},
        {2, "emulated", {11. / 3, 5. / 3, 5. / 3, 2}},
        {1, "emulated", {7. / 3, 5. / 6, 5. / 6, 2}},
    };
    struct duet_event events[] = {task(1, 0, 0, 4), task(2, DEVICE, 1, 3), task(3, 1, 2, 4),
                                  task(4, 2, 8, 10)};
    for (size_t c = 0; c < G_N_ELEMENTS(cases); c++) {
        OWNED(duet_machine_fini) struct duet_machine machine;
        OWNED(duet__executions_fini) struct duet__executions executions;
        machine_init(&machine);
        machine.cores = cases[c].cores;
        g_strlcpy(machine.archs[1].name, cases[c].arch, DUET_NAME_MAX);
        g_assert_cmpint(gather(&machine, events, 4, NULL, 0, 0, &executions), ==, 0);
        for (size_t i = 0; i < 4; i++)
            g_assert_cmpfloat(fabs(executions.list[i].seconds - cases[c].seconds[i]), <, 1e-12);
    }
}

/* Groups are sorted by names and work; failed tasks, copies and unknown workers are no samples. */
static void test_groups(void)
{
    OWNED(duet_machine_fini) struct duet_machine machine;
    struct duet__executions executions;
    struct duet_event events[] = {
        task(1, 0, 0, 1), task(2, 0, 1, 2), task(3, 0, 2, 3), task(4, DEVICE, 3, 4),
        task(5, 0, 4, 5), task(6, 0, 5, 6), task(7, 9, 6, 7), task(8, 0, 7, 8),
    };
    events[1].kernel = 1;
    events[2].work = 50;
    events[4].failed = true;
    events[5].work = 0;
    events[7].kind = DUET_EVENT_COPY;
    machine_init(&machine);
    g_assert_cmpint(gather(&machine, events, G_N_ELEMENTS(events), NULL, 0, 0, &executions), ==, 0);
    g_assert_cmpuint(executions.groups->len, ==, 4);
    static const char *kernels[] = {"a", "b", "b", "b"};
    static const char *const archs[] = {"core", "core", "core", "device"};
    static const double works[] = {100, 50, 100, 100};
    for (guint i = 0; i < 4; i++) {
        const struct duet__group *group = duet__group_at(&executions, i);
        g_assert_cmpstr(group->kernel, ==, kernels[i]);
        g_assert_cmpstr(group->arch, ==, archs[i]);
        g_assert_cmpstr(group->context, ==, "");
        g_assert_cmpfloat(group->work, ==, works[i]);
        g_assert_cmpuint(group->members->len, ==, 1);
        g_assert_true(group->host == (i < 3));
    }
    duet__executions_fini(&executions);
    /* no execution at all */
    events[0].failed = true;
    g_assert_cmpint(gather(&machine, events, 1, NULL, 0, 0, &executions), ==, DUET_EINVAL);
    g_assert_null(executions.list);
}

/* The runtime's overhead is subtracted, but at most nine tenths of a time. */
static void test_overhead(void)
{
    OWNED(duet_machine_fini) struct duet_machine machine;
    OWNED(duet__executions_fini) struct duet__executions executions;
    struct duet_event events[] = {task(1, 0, 0, 1), task(2, 0, 1, 1.25)};
    machine_init(&machine);
    g_assert_cmpint(gather(&machine, events, 2, NULL, 0, 0.24, &executions), ==, 0);
    g_assert_cmpfloat(executions.list[0].seconds, ==, 0.76);
    g_assert_cmpfloat(executions.list[1].seconds, ==, 0.025);
}

/* Operands are looked up by task, registered once, and weighted by their bytes in the missing
 * part. */
static void test_operands(void)
{
    enum { MANY = 11 };
    OWNED(duet_machine_fini) struct duet_machine machine;
    OWNED(duet__executions_fini) struct duet__executions executions;
    struct duet__rows rows;
    double missing[MANY + 2];
    struct duet_trace_access accesses[MANY + 2] = {
        {.task = 1, .handle = 1, .bytes = 1000, .reads = true}};
    struct duet_event events[] = {task(2, 0, 0, 1), task(1, 0, 1, 2), task(3, 0, 2, 3)};
    for (unsigned i = 0; i < MANY; i++)
        accesses[1 + i] = (struct duet_trace_access){.task = 2,
                                                     .index = i,
                                                     .handle = 1 + i,
                                                     .bytes = 1000,
                                                     .reads = true};
    accesses[MANY + 1] =
        (struct duet_trace_access){.task = 3, .handle = 1, .bytes = 1000, .reads = true};
    machine_init(&machine);
    g_assert_cmpint(gather(&machine, events, G_N_ELEMENTS(events), accesses, MANY + 2, 0,
                           &executions),
                    ==, 0);
    g_assert_cmpuint(executions.runs[0].registered_bytes, ==, 1000 * MANY);
    g_assert_cmpuint(executions.list[0].operands, ==, MANY);
    g_assert_cmpuint(executions.operands[executions.list[1].first].handle, ==, 1);
    duet__missing_find(&executions, &machine.sharing, 0, missing);
    duet__rows_make(&executions, duet__group_at(&executions, 0), missing, 0, &rows);
    g_assert_cmpuint(rows.count, ==, 3);
    /* the first task finds no data in the cache: its distance is all registered data */
    g_assert_cmpfloat(rows.missing[0], ==,
                      duet__caches_missing(1000 * MANY, (double)machine.sharing.shared_bytes));
    g_assert_cmpfloat(rows.bytes, ==, 1000.0 * (MANY + 2) / 3);
    g_assert_cmpfloat(rows.list[0].bytes, ==, 1000 * MANY);
    g_assert_cmpfloat(rows.list[1].bytes, ==, 1000);
    /* the last task's data has just been used */
    g_assert_cmpfloat(rows.missing[2], ==,
                      duet__caches_missing(1000, (double)machine.sharing.shared_bytes));
    duet__rows_fini(&rows);
    duet__rows_make(&executions, duet__group_at(&executions, 0), missing, 2, &rows);
    g_assert_cmpuint(rows.count, ==, 2);
    duet__rows_fini(&rows);
    duet__rows_fini(&rows);
}

TEST_MAIN(test_others, test_cores, test_groups, test_overhead, test_operands)
