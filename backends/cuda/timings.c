/* SPDX-License-Identifier: Apache-2.0 */
/* Events, statuses and dates of commands in flight. */
#include "backends/cuda/internal.h"

#include <math.h>
#include <stdlib.h>

enum {
    BLOCK = 32,                     /* least number of timings made at a time */
    STRIDE = 64 / (int)sizeof(int), /* each status lies in a cache line of its own */
};

static const double usual_age_s = 0.5;   /* age of an anchor at which the next one is made */
static const double resolution_s = 5e-7; /* resolution of an event, says the reference */

struct timing_block {
    struct timing_block *next;
    int *statuses; /* statuses of kernels, from cudaHostAlloc */
    unsigned count;
    struct timing timings[];
};

/* ------------------------------------------------------------------------------------------- */
/* Lists of timings */

static void free_block(struct timing_block *block)
{
    for (unsigned i = 0; i < block->count; i++) {
        if (block->timings[i].start)
            duet__cuda_ignore(cudaEventDestroy(block->timings[i].start));
        if (block->timings[i].end)
            duet__cuda_ignore(cudaEventDestroy(block->timings[i].end));
    }
    if (block->statuses)
        duet__cuda_ignore(cudaFreeHost(block->statuses));
    free(block);
}

/* Makes an event with a date, or without for untimed timings, which is cheaper. */
static bool make_event(const struct timings *timings, cudaEvent_t *event, struct failure *failure)
{
    unsigned flags = timings->untimed ? cudaEventDisableTiming : cudaEventDefault;
    return !duet__cuda_failed(failure, "cudaEventCreateWithFlags",
                              cudaEventCreateWithFlags(event, flags));
}

static bool fill_block(const struct timings *timings, struct timing_block *block, bool kernels,
                       struct failure *failure)
{
    void *statuses = NULL;
    if (kernels && duet__cuda_failed(failure, "cudaHostAlloc",
                                     cudaHostAlloc(&statuses, block->count * STRIDE * sizeof(int),
                                                   cudaHostAllocPortable)))
        return false;
    block->statuses = statuses;
    for (unsigned i = 0; i < block->count; i++) {
        struct timing *timing = &block->timings[i];
        timing->status = kernels ? block->statuses + (size_t)i * STRIDE : NULL;
        if (!make_event(timings, &timing->start, failure) ||
            !make_event(timings, &timing->end, failure))
            return false;
    }
    return true;
}

static void timing_put(struct timings *timings, struct timing *timing)
{
    struct timing **list = timing->status ? &timings->kernels : &timings->copies;
    timing->next = *list;
    *list = timing;
}

static bool timings_grow(struct timings *timings, bool kernels, unsigned count,
                         struct failure *failure)
{
    *failure = (struct failure){.call = "calloc", .error = cudaErrorMemoryAllocation};
    count = count < BLOCK ? BLOCK : count;
    struct timing_block *block = calloc(1, sizeof *block + count * sizeof(struct timing));
    if (!block)
        return false;
    block->count = count;
    /* events belong to the current device; a thread may have opened several */
    if (duet__cuda_failed(failure, "cudaSetDevice", cudaSetDevice(timings->device)) ||
        !fill_block(timings, block, kernels, failure)) {
        free_block(block);
        return false;
    }
    block->next = timings->blocks;
    timings->blocks = block;
    for (unsigned i = 0; i < count; i++)
        timing_put(timings, &block->timings[i]);
    return true;
}

struct timing *duet__timings_take(struct timings *timings, bool kernel, struct failure *failure)
{
    struct timing **list = kernel ? &timings->kernels : &timings->copies;
    if (!*list && !timings_grow(timings, kernel, BLOCK, failure))
        return NULL;
    struct timing *timing = *list;
    *list = timing->next;
    timing->anchor = timings->anchor;
    timing->anchor->users++;
    if (kernel)
        *timing->status = 0;
    return timing;
}

void duet__timings_give(struct timings *timings, struct timing *timing)
{
    timing->anchor->users--;
    timing_put(timings, timing);
}

/* ------------------------------------------------------------------------------------------- */
/* Dates                                                                                        */

/* Returns in *s the seconds from one event to another, both of which have happened. */
static bool elapsed(cudaEvent_t from, cudaEvent_t to, double *s, struct failure *failure)
{
    float ms = 0;
    if (duet__cuda_failed(failure, "cudaEventElapsedTime", cudaEventElapsedTime(&ms, from, to)))
        return false;
    *s = fmax(ms * 1e-3, 0);
    return true;
}

/* Makes the end of a command the next anchor, if one is free for it. */
static void move_anchor(struct timings *timings, struct timing *timing, double date_s)
{
    for (unsigned i = 0; i < ANCHORS; i++) {
        struct anchor *anchor = &timings->anchors[i];
        if (anchor->users || anchor == timings->anchor)
            continue;
        cudaEvent_t event = anchor->event;
        anchor->event = timing->end;
        anchor->date_s = date_s;
        timing->end = event;
        timings->anchor = anchor;
        return;
    }
}

bool duet__timings_read(struct timings *timings, struct timing *timing, const struct timed *timed,
                        double *start_s, double *end_s, struct failure *failure)
{
    double since_s, length_s;
    *start_s = fmax(timed->launched_s, timed->stream_s);
    *end_s = timed->seen_s;
    if (timings->untimed)
        return true;
    if (!elapsed(timing->anchor->event, timing->start, &since_s, failure) ||
        !elapsed(timing->start, timing->end, &length_s, failure))
        return false;
    struct measured measured = {
        .start_s = timing->anchor->date_s + since_s,
        .unsure_s = resolution_s + since_s * 0x1p-24, /* half of a float's last digit */
        .launched_s = timed->launched_s,
        .asked_s = timed->asked_s,
        .seen_s = timed->seen_s,
        .stream_s = timed->stream_s,
    };
    measured.end_s = measured.start_s + length_s;
    duet__dates_place(&timings->dates, &measured, start_s, end_s);
    if (measured.end_s - timings->anchor->date_s > timings->anchor_age_s)
        move_anchor(timings, timing, measured.end_s);
    return true;
}

/* Records the first anchor's event on an idle stream and waits until it has happened. */
static bool strike_anchor(struct timings *timings, cudaStream_t stream, struct failure *failure)
{
    double launched_s = timings->now(timings->clock);
    if (duet__cuda_failed(failure, "cudaEventRecord",
                          cudaEventRecord(timings->anchor->event, stream)) ||
        duet__cuda_failed(failure, "cudaStreamSynchronize", cudaStreamSynchronize(stream)))
        return false;
    duet__dates_init(&timings->dates, launched_s, timings->now(timings->clock));
    return true;
}

bool duet__timings_init(struct timings *timings, cudaStream_t stream, unsigned kernels,
                        struct failure *failure)
{
    for (unsigned i = 0; i < ANCHORS; i++)
        if (!make_event(timings, &timings->anchors[i].event, failure))
            return false;
    timings->anchor = &timings->anchors[0];
    timings->anchor_age_s = usual_age_s;
    /* twice: the first time includes initialisations of the driver */
    return timings_grow(timings, true, kernels, failure) &&
           timings_grow(timings, false, BLOCK, failure) &&
           strike_anchor(timings, stream, failure) && strike_anchor(timings, stream, failure);
}

void duet__timings_fini(struct timings *timings)
{
    while (timings->blocks) {
        struct timing_block *next = timings->blocks->next;
        free_block(timings->blocks);
        timings->blocks = next;
    }
    for (unsigned i = 0; i < ANCHORS; i++)
        if (timings->anchors[i].event)
            duet__cuda_ignore(cudaEventDestroy(timings->anchors[i].event));
    *timings = (struct timings){.device = timings->device};
}
