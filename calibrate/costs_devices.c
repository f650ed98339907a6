/* SPDX-License-Identifier: Apache-2.0 */
/* Measures costs of the thread that feeds the first device, from records of chains of tasks. */
#include <stdlib.h>

#include "calibrate/microbench.h"

enum {
    CHAIN = 200, /* tasks */
    COPIES = 100,
    COPY_BYTES = 4096,
    BLOCK_BYTES = 65536, /* of data that kernels write without reading it */
};

/* Runs a chain of empty kernels on the device: adds the times of launches, and the times until the
 * ends of the kernels before them were known. */
static void run_chain(struct duet__microbench *bench, struct duet_handle *data,
                      struct duet_handle *block, GArray *launches, GArray *ends)
{
    const struct duet_access accesses[] = {{data, DUET_RW}, {block, DUET_W}};
    const struct duet_event *before = NULL;
    struct duet_event *events;
    size_t count;
    if (!duet__microbench_goes_on(bench))
        return;
    duet_stats_reset(bench->runtime);
    for (unsigned i = 0; i < CHAIN; i++)
        duet__microbench_submit(bench, bench->empty, bench->cpus, accesses, 2, NULL);
    count = duet__microbench_events(bench, &events);
    for (size_t i = 0; i < count; i++) {
        const struct duet_event *task = &events[i];
        if (task->kind != DUET_EVENT_TASK)
            continue;
        if (before) {
            double launch_s = task->start_s - task->ready_s;
            double end_s = task->ready_s - before->end_s;
            g_array_append_val(launches, launch_s);
            g_array_append_val(ends, end_s);
        }
        before = task;
    }
    free(events);
}

/* Runs tasks with data that the host changes and the device reads, in turn. */
static void run_copies(struct duet__microbench *bench, struct duet_handle *data, GArray *launches)
{
    const struct duet_access change = {data, DUET_RW}, read = {data, DUET_R};
    struct duet_event *events;
    size_t count;
    if (!duet__microbench_goes_on(bench))
        return;
    duet_stats_reset(bench->runtime);
    for (unsigned i = 0; i < COPIES; i++) {
        duet__microbench_submit(bench, bench->empty, 0, &change, 1, NULL);
        duet__microbench_submit(bench, bench->empty, bench->cpus, &read, 1, NULL);
    }
    count = duet__microbench_events(bench, &events);
    for (size_t i = 0; i < count; i++) {
        double launch_s = events[i].start_s - events[i].submit_s;
        if (events[i].kind == DUET_EVENT_COPY && events[i].source == DUET_HOST)
            g_array_append_val(launches, launch_s);
    }
    free(events);
}

void duet__costs_devices(struct duet__microbench *bench, struct duet__measured *costs)
{
    static const enum duet__cost measured[] = {DUET__COST_KERNEL_LAUNCH, DUET__COST_EVENT,
                                               DUET__COST_COPY_LAUNCH};
    GArray *values[G_N_ELEMENTS(measured)];
    struct duet_handle *data, *block;
    if (bench->machine->node_count < 2)
        return;
    for (size_t i = 0; i < G_N_ELEMENTS(measured); i++)
        values[i] = g_array_new(FALSE, FALSE, sizeof(double));
    bench->memory = g_malloc0(COPY_BYTES + BLOCK_BYTES);
    data = duet__microbench_vector(bench, bench->memory, COPY_BYTES);
    block = duet__microbench_vector(bench, (char *)bench->memory + COPY_BYTES, BLOCK_BYTES);
    run_chain(bench, data, block, values[0], values[1]); /* the first chain finds no memory
                                                            prepared */
    g_array_set_size(values[0], 0);
    g_array_set_size(values[1], 0);
    run_chain(bench, data, block, values[0], values[1]);
    run_copies(bench, data, values[2]);
    for (size_t i = 0; i < G_N_ELEMENTS(measured); i++)
        duet__measured_set(&costs[measured[i]], values[i]);
}
