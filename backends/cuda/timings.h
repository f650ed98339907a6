/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timings of commands in flight: two events (untimed: only the last is recorded), an anchor, and,
 * for a kernel, a page-locked int for its late status. They are taken from lists and returned, so
 * that nothing is allocated on the path of a task. A list grows when more commands are in flight
 * than ever before. Page-locked memory is made when the device is opened, for as many kernels as
 * may be in flight: CUDA may allocate it only once the device is idle.
 *
 * cudaEventElapsedTime returns a float of milliseconds and loses its half microsecond after some
 * seconds. Commands are therefore measured from an anchor: an event that had happened when they
 * were launched, and whose own date is added up in double. The end of some command becomes the next
 * anchor about twice a second.
 */
#ifndef DUET_CUDA_TIMINGS_H
#define DUET_CUDA_TIMINGS_H

#include "backends/common.h"
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
    int *status; /* kernel: page-locked; NULL: a copy */
    struct anchor *anchor;
    struct timing *next; /* next in its list */
};

struct timing_block;

struct timings {
    int device;
    bool untimed; /* events show only that something has ended: dates are the host's */
    struct timing *kernels, *copies; /* free timings */
    struct timing_block *blocks;
    struct anchor anchors[ANCHORS];
    struct anchor *anchor; /* the newest anchor */
    double anchor_age_s;   /* age at which another one is made; constant except in tests */
    struct dates dates;
    double (*now)(void *clock);
    void *clock;
};

/*
 * Makes timings for `kernels` kernels in flight and for some copies, and the first anchor on
 * `stream`, which is empty; waits for that. The device is current. On failure *failure names the
 * call; duet__timings_fini frees what was made.
 */
DUET_MUST_CHECK bool duet__timings_init(struct timings *timings, cudaStream_t stream,
                                        unsigned kernels, struct failure *failure);
/* Frees all timings. Safe on a zeroed object. Nothing is in flight. */
void duet__timings_fini(struct timings *timings);

/* Returns a timing for a kernel, whose status is 0, or a copy, to be launched now. NULL: *failure
   says why. */
struct timing *duet__timings_take(struct timings *timings, bool kernel, struct failure *failure);
void duet__timings_give(struct timings *timings, struct timing *timing);

/* Dates of the host for a command between whose events the device was busy. */
struct timed {
    double launched_s; /* on the engine's clock, before its first event was recorded */
    double asked_s;    /* before its last event was recorded; 0: not known */
    double seen_s;     /* after that event was seen to have happened */
    double stream_s;   /* end of the previous command of its stream */
};

/*
 * Gives the dates of a command on the engine's clock: those of launching and seeing if events are
 * untimed or, with the result false, if a call failed. The timing's end may become an anchor.
 */
DUET_MUST_CHECK bool duet__timings_read(struct timings *timings, struct timing *timing,
                                        const struct timed *timed, double *start_s, double *end_s,
                                        struct failure *failure);

#endif
