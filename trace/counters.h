/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters of a run's ready tasks, links and memories at every moment, made from its records, and
 * their sums: for traces, timelines and explanations.
 */
#ifndef DUET_TRACE_COUNTERS_H
#define DUET_TRACE_COUNTERS_H

#include <glib.h>

#include "trace/recording.h"

enum duet__counted {
    DUET_COUNTED_READY, /* tasks that are ready and do not run yet; one counter */
    DUET_COUNTED_IN,    /* bytes on their way to a memory; one counter a memory */
    DUET_COUNTED_OUT,   /* bytes on their way from a memory; one counter a memory */
    DUET_COUNTED_USED,  /* bytes taken in a device's memory (struct duet_event) */
    DUET_COUNTED_LINK,  /* bytes on their way over a link; one counter a link */
};

/* Value of a counter from a date on, until that of the next point. */
struct duet__moment {
    double date_s, value;
};

struct duet__counter {
    enum duet__counted what;
    unsigned index; /* number of the memory, or the link */
    /* struct duet__moment: dates ascend, values change; 0 before the first. NULL or empty: always
       0, or not known (links in traces that were read, memory in old ones) */
    GArray *points;
    double most;     /* largest value */
    double busy_s;   /* seconds when it was not 0 */
    uint64_t amount; /* tasks, or bytes, that were counted; 0 for USED */
};

/* Counters of a run; owned, by duet__counters_fini. Zero-initialise. */
struct duet__counters {
    struct duet__counter *all; /* READY, then IN of all memories, OUT, USED, then LINK */
    unsigned count, nodes;
};

/*
 * Counts the records that did not fail: O(n log n). A counter has `most` points at most, at least
 * two; where it would have more, they are the means of equal intervals.
 */
void duet__counters_make(const struct duet__recording *recording, unsigned most,
                         struct duet__counters *out);

void duet__counters_fini(struct duet__counters *counters); /* safe on a zeroed one, and twice */

static inline const struct duet__counter *duet__counter(const struct duet__counters *counters,
                                                        enum duet__counted what, unsigned index)
{
    return &counters->all[what ? 1 + ((unsigned)what - 1) * counters->nodes + index : 0];
}

/* Copies to and from one memory. */
struct duet__node_use {
    uint64_t in_bytes, out_bytes;
    double in_s, out_s;   /* seconds with a copy under way */
    uint64_t again_bytes; /* part of in_bytes that had been there before; 0 for the host */
    uint64_t peak_bytes;  /* most bytes taken at once; 0: not known */
};

/* Returns the uses of the machine's memories, by memory, for g_free. */
struct duet__node_use *duet__use_make(const struct duet__recording *recording);

#endif
