/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of one pair of memories with nothing beside them. A task on the source writes the data,
 * one on the destination reads it, in turn; each copy is in the records.
 */
#include <math.h>
#include <stdlib.h>

#include "calibrate/copying.h"

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
static int copy_once(struct duet__copying *copying, const struct duet__pair *pair, size_t bytes)
{
    const struct duet__lab *lab = &copying->lab;
    struct duet_access write = {.mode = DUET_W}, read = {.mode = DUET_R};
    int error = duet_vector(lab->runtime, next_part(copying, bytes), bytes, 1, &write.handle);
    if (error)
        return duet__lab_fail(lab, error);
    read.handle = write.handle;
    error = duet__lab_submit(lab, lab->fill, duet__copies_worker(copying, pair->source), &write, 1,
                             NULL, 0);
    if (!error)
        error = duet__lab_submit(lab, lab->empty, duet__copies_worker(copying, pair->destination),
                                 &read, 1, NULL, 0);
    int freed = duet_unregister(lab->runtime, write.handle);
    return !error && freed ? duet__lab_fail(lab, freed) : error;
}

static int measure_size(struct duet__copying *copying, const struct duet__pair *pair, size_t bytes,
                        struct series *series)
{
    struct duet_event *events = NULL;
    size_t count = 0;
    int error = DUET_OK;
    duet_stats_reset(copying->lab.runtime);
    for (unsigned i = 0; i < REPETITIONS && !error; i++)
        error = copy_once(copying, pair, bytes);
    int waited = duet__lab_events(&copying->lab, &events, &count);
    error = error ? error : waited;
    if (!error)
        add_copies(series, pair, events, count);
    free(events);
    return error;
}

static int measure_pair(struct duet__copying *copying, struct duet__pair *pair, double end_s)
{
    struct series series = {.count = 0};
    size_t most = duet__copies_most(copying, 1);
    unsigned sizes = 0;
    int error = DUET_OK;
    for (size_t bytes = SMALLEST; bytes <= LARGEST && bytes <= most && !error; bytes *= GROWTH) {
        if (series.last_s * GROWTH > LONGEST_S && sizes >= LEAST_SIZES)
            break;
        if (duet__clock_s() > end_s && sizes >= LEAST_SIZES)
            break;
        error = duet__lab_stop(&copying->budget, copying->lab.message);
        if (!error)
            error = measure_size(copying, pair, bytes, &series);
        sizes++;
    }
    if (!error)
        duet__copies_fit(series.samples, series.count, pair);
    return error;
}

int duet__copies_alone(struct duet__copying *copying)
{
    struct duet__copies *out = copying->out;
    double begin_s = duet__clock_s();
    double a_pair_s =
        (duet__lab_share(&copying->budget, SHARE) - begin_s) / (double)out->pair_count;
    int error = DUET_OK;
    for (size_t i = 0; i < out->pair_count && !error; i++)
        error = measure_pair(copying, &out->pairs[i], begin_s + a_pair_s * (double)(i + 1));
    return error;
}
