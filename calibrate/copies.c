/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring copies between all memories of a machine. */
#include "calibrate/copies.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <glib.h>

#include "calibrate/copying.h"

enum {
    MEMORY_MIB = 256, /* of the host that copies come from and go to, at most */
    LEAST_MIB = 64,
    A_SECOND_MIB = 128, /* of the budget, at most: for touching it first */
    MIB = 1 << 20,
    MEMORY_SHARE = 8, /* at most this part of what is free */
    DEVICE_SHARE = 4,
};

size_t duet__copies_find(const struct duet__copies *copies, unsigned source, unsigned destination)
{
    size_t i = 0;
    while (copies->pairs[i].source != source || copies->pairs[i].destination != destination)
        i++;
    return i;
}

unsigned duet__copies_worker(const struct duet__copying *copying, unsigned node)
{
    const struct duet_machine *machine = copying->lab.machine;
    unsigned worker = 0;
    while (machine->workers[worker].node != node)
        worker++;
    return worker;
}

size_t duet__copies_most(const struct duet__copying *copying, unsigned count)
{
    const struct duet_machine *machine = copying->lab.machine;
    uint64_t most = copying->memory_bytes;
    for (unsigned n = 1; n < machine->node_count; n++)
        if (machine->nodes[n].capacity_bytes / DEVICE_SHARE / count < most)
            most = machine->nodes[n].capacity_bytes / DEVICE_SHARE / count;
    return most;
}

/* All pairs, those with the host first. */
static void make_pairs(struct duet__copies *out, const struct duet_machine *machine)
{
    unsigned nodes = machine->node_count;
    out->node_count = nodes;
    out->pairs = g_new0(struct duet__pair, (gsize)nodes * nodes);
    for (unsigned with_host = 0; with_host < 2; with_host++)
        for (unsigned s = 0; s < nodes; s++)
            for (unsigned d = 0; d < nodes; d++)
                if (s != d && (s == DUET_HOST || d == DUET_HOST) == !with_host)
                    out->pairs[out->pair_count++] = (struct duet__pair){
                        .source = s,
                        .destination = d,
                        .direct = duet_machine_route(machine, s, d)->direct,
                    };
}

/* How much of the host's memory, in whole MiB. */
static size_t count_memory(double budget_s)
{
    long page = sysconf(_SC_PAGESIZE), pages = sysconf(_SC_AVPHYS_PAGES);
    double mib = fmin(MEMORY_MIB, budget_s * A_SECOND_MIB);
    if (pages > 0)
        mib = fmin(mib, (double)pages * (double)page / MEMORY_SHARE / MIB);
    return (size_t)fmax(mib, LEAST_MIB) * MIB;
}

/* It is page-locked if that is possible. */
static int make_memory(struct duet__copying *copying, bool touch)
{
    size_t bytes = count_memory(copying->budget.end_s - duet__clock_s());
    copying->memory_bytes = bytes;
    copying->memory = aligned_alloc((size_t)sysconf(_SC_PAGESIZE), bytes);
    if (!copying->memory)
        return DUET_ENOMEM;
    if (touch) /* memory that was never written is read faster than other */
        memset(copying->memory, 1, bytes);
    int error = duet_pin(copying->lab.runtime, copying->memory, bytes);
    return error == DUET_ENOMEM ? DUET_OK : error; /* slower, as it is for applications then */
}

static int measure(struct duet__copying *copying, bool touch)
{
    make_pairs(copying->out, copying->lab.machine);
    int error = make_memory(copying, touch);
    if (!error)
        error = duet__copies_alone(copying);
    if (!error)
        error = duet__copies_beside(copying);
    return error;
}

int duet__copies_measure(const struct duet_config *config, double budget_s,
                         bool (*stop)(void *context), void *context, struct duet__copies *out,
                         struct duet_message *message)
{
    const struct duet_config own = duet__lab_devices(config, 1);
    struct duet__copying copying = {.budget = duet__lab_budget(budget_s, stop, context),
                                    .out = out};
    *out = (struct duet__copies){0};
    if (own.gpus == 0)
        return DUET_OK;
    int error = duet__lab_stop(&copying.budget, message);
    if (!error)
        error = duet__lab_open(&copying.lab, &own, message);
    if (error)
        return error;
    if (copying.lab.machine->node_count > 1)
        error = measure(&copying, !duet__lab_paced(config));
    error = duet__lab_close(&copying.lab, error);
    free(copying.memory);
    if (!error)
        duet__copies_infer(out);
    if (error == DUET_ENOMEM)
        (void)duet_fail(message, error, "no memory left to measure copies");
    if (error)
        duet__copies_fini(out);
    return error;
}

void duet__copies_fini(struct duet__copies *copies)
{
    g_free(copies->pairs);
    g_free(copies->together);
    g_free(copies->switches);
    g_free(copies->to_device_Bps);
    g_free(copies->to_host_Bps);
    *copies = (struct duet__copies){0};
}
