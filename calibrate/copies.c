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

/* Sizes of copies that are alone. */
enum {
    SMALLEST = 4096, /* bytes */
    LARGEST = 1 << 26,
    GROWTH = 4,
    REPETITIONS = 5,
    LEAST_SIZES = 4, /* whatever the budget says */
    SAMPLES = 64,    /* more than sizes and repetitions give */
};

static const double LONGEST_S = 5e-3; /* larger copies say nothing more */
static const double SHARE = 0.7;      /* of the budget: the rest is for copies at the same time */

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
static void make_memory(struct duet__copying *copying, bool touch)
{
    size_t bytes = count_memory(copying->lab.budget->end_s - duet__clock_s());
    int error;
    copying->memory_bytes = bytes;
    copying->memory = aligned_alloc((size_t)sysconf(_SC_PAGESIZE), bytes);
    if (!copying->memory) {
        duet__lab_note(&copying->lab, DUET_ENOMEM);
        return;
    }
    if (touch) /* memory that was never written is read faster than other */
        memset(copying->memory, 1, bytes);
    error = duet_pin(copying->lab.runtime, copying->memory, bytes);
    /* without, it is slower, as it is for applications then */
    duet__lab_note(&copying->lab, error == DUET_ENOMEM ? DUET_OK : error);
}

/* ------------------------------------------------------------------------------------------- */
/* Copies of one pair of memories with nothing beside them: a task on the source writes the data,
   one on the destination reads it, in turn; each copy is in the records. */

struct series {
    struct duet__copy_sample samples[SAMPLES];
    size_t count;
    double last_s; /* of the largest size so far */
};

/* A copy from `source` to `destination` began and ended; through the host there are two. */
static void add_copies(struct series *series, const struct duet__pair *pair,
                       const struct duet_event *events, size_t count)
{
    double begin_s = -1;
    series->last_s = 0;
    for (size_t i = 0; i < count; i++) {
        const struct duet_event *copy = &events[i];
        if (copy->kind != DUET_EVENT_COPY || copy->failed)
            continue;
        if (copy->source == pair->source)
            begin_s = copy->start_s;
        if (copy->destination != pair->destination || begin_s < 0 || series->count == SAMPLES)
            continue;
        double seconds = copy->end_s - begin_s;
        series->samples[series->count++] = (struct duet__copy_sample){(double)copy->bytes, seconds};
        series->last_s = fmax(series->last_s, seconds);
        begin_s = -1;
    }
}

/* A part of the host's memory that has not been used for the longest time: no cache has it. */
static char *next_part(struct duet__copying *copying, size_t bytes)
{
    if (copying->used_bytes + bytes > copying->memory_bytes)
        copying->used_bytes = 0;
    char *part = copying->memory + copying->used_bytes;
    copying->used_bytes += bytes;
    return part;
}

/* Data that is not on the devices yet. */
static void copy_once(struct duet__copying *copying, const struct duet__pair *pair, size_t bytes)
{
    struct duet__lab *lab = &copying->lab;
    struct duet_handle *data = duet__lab_vector(lab, next_part(copying, bytes), bytes);
    const struct duet_access write = {data, DUET_W}, read = {data, DUET_R};
    duet__lab_submit(lab, lab->fill, duet__copies_worker(copying, pair->source), &write, 1);
    duet__lab_submit(lab, lab->empty, duet__copies_worker(copying, pair->destination), &read, 1);
    duet__lab_forget(lab, data);
}

static void measure_size(struct duet__copying *copying, const struct duet__pair *pair, size_t bytes,
                         struct series *series)
{
    struct duet_event *events;
    size_t count;
    duet_stats_reset(copying->lab.runtime);
    for (unsigned i = 0; i < REPETITIONS; i++)
        copy_once(copying, pair, bytes);
    count = duet__lab_events(&copying->lab, &events);
    add_copies(series, pair, events, count);
    free(events);
}

static void measure_pair(struct duet__copying *copying, struct duet__pair *pair, double end_s)
{
    struct series series = {.count = 0};
    size_t most = duet__copies_most(copying, 1);
    unsigned sizes = 0;
    for (size_t bytes = SMALLEST; bytes <= LARGEST && bytes <= most; bytes *= GROWTH) {
        if (series.last_s * GROWTH > LONGEST_S && sizes >= LEAST_SIZES)
            break;
        if (duet__clock_s() > end_s && sizes >= LEAST_SIZES)
            break;
        if (!duet__lab_goes_on(&copying->lab))
            return;
        measure_size(copying, pair, bytes, &series);
        sizes++;
    }
    duet__copies_fit(series.samples, series.count, pair);
}

static void measure_alone(struct duet__copying *copying)
{
    struct duet__copies *out = copying->out;
    double begin_s = duet__clock_s();
    double a_pair_s =
        (duet__budget_share(copying->lab.budget, SHARE) - begin_s) / (double)out->pair_count;
    for (size_t i = 0; i < out->pair_count; i++)
        measure_pair(copying, &out->pairs[i], begin_s + a_pair_s * (double)(i + 1));
}

/* ------------------------------------------------------------------------------------------- */

static void measure(struct duet__copying *copying, bool touch)
{
    make_pairs(copying->out, copying->lab.machine);
    make_memory(copying, touch);
    if (copying->lab.error)
        return;
    measure_alone(copying);
    duet__copies_beside(copying);
}

int duet__copies_measure(const struct duet_config *config, double budget_s,
                         bool (*stop)(void *context), void *context, struct duet__copies *out,
                         struct duet_message *message)
{
    const struct duet_config own = duet__lab_devices(config, 1);
    const struct duet__budget budget = duet__lab_budget(budget_s, stop, context);
    struct duet__copying copying = {.out = out};
    int error;
    *out = (struct duet__copies){0};
    if (own.gpus == 0)
        return DUET_OK;
    if (duet__lab_open(&copying.lab, &own, &budget, message) && copying.lab.machine->node_count > 1)
        measure(&copying, !duet__lab_paced(config));
    error = duet__lab_close(&copying.lab);
    free(copying.memory);
    if (error)
        duet__copies_fini(out);
    else
        duet__copies_infer(out);
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
