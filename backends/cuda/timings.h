/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timings, which commands in flight carry: two events (untimed: only the last is recorded), a date
 * to count from, and, for a kernel, a page-locked int for its late status. They are taken from
 * lists and given back, so that nothing is made on the path of a task. A list grows when more
 * commands are in flight than ever before. Page-locked memory is made when the device is opened,
 * for as many kernels as may be in flight: CUDA may allocate it only once the device is idle.
 *
 * cudaEventElapsedTime is a float of milliseconds and loses its half microsecond after some
 * seconds. Commands are therefore measured from an anchor: an event that had happened when they
 * were launched, and whose own date is added up in double. The end of some command becomes the next
 * anchor about twice a second.
 */
#ifndef DUET_CUDA_TIMINGS_H
#define DUET_CUDA_TIMINGS_H

#include "backends/dates.h"
#include "backends/cuda/errors.h"

enum { ANCHORS = 4 };

/* A date on the device's clock. */
struct anchor {
    cudaEvent_t event; /* has happened */
    double date_s;     /* device time: seconds since the first anchor */
    unsigned users;    /* commands in flight that count from it */
};

struct timing {
    cudaEvent_t start, end;
    int *status; /* of a kernel, page-locked; NULL: of a copy */
    struct anchor *anchor;
    struct timing *next; /* in its list */
};

struct timing_block;

struct timings {
    int device;
    bool untimed; /* events tell only that something has ended: dates are the host's */
    struct timing *kernels, *copies; /* that are free */
    struct timing_block *blocks;
    struct anchor anchors[ANCHORS];
    struct anchor *anchor; /* the newest */
    double anchor_age_s;   /* at which another one is made; but in tests a constant */
    struct dates dates;
    double (*now)(void *clock);
    void *clock;
};

/*
 * Makes those of `kernels` kernels in flight and of some copies, and the first anchor on `stream`,
 * which is empty; waits for that. The device is current. On failure *failure says which call;
 * duet__timings_fini frees what there is.
 */
DUET_MUST_CHECK bool duet__timings_init(struct timings *timings, cudaStream_t stream,
                                        unsigned kernels, struct failure *failure);
/* Safe on zeroed ones. Nothing is in flight. */
void duet__timings_fini(struct timings *timings);

/* A timing for a kernel, whose status is 0, or a copy, to be launched now. NULL: *failure says why.
 */
struct timing *duet__timings_take(struct timings *timings, bool kernel, struct failure *failure);
void duet__timings_give(struct timings *timings, struct timing *timing);

/* Of a command between whose events the device was busy. */
struct timed {
    double launched_s; /* on the engine's clock, before its first event was recorded */
    double asked_s;    /* before its last one was recorded; 0: not known */
    double seen_s;     /* after that was seen to have happened */
    double stream_s;   /* end of the command before it in its stream */
};

/*
 * When a command ran, on the engine's clock. The dates are those of launching and seeing if events
 * are untimed or, with the result false, if a call failed. The timing's end may become an anchor.
 */
DUET_MUST_CHECK bool duet__timings_read(struct timings *timings, struct timing *timing,
                                        const struct timed *timed, double *start_s, double *end_s,
                                        struct failure *failure);

#endif
