/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run's ready tasks, links and memories were at every moment, made from its records, and
 * what that adds up to: for traces, timelines and explanations.
 */
#ifndef DUET_TRACE_COUNTERS_H
#define DUET_TRACE_COUNTERS_H

#include <glib.h>

#include "trace/recording.h"

enum duet__counted {
    DUET_COUNTED_READY, /* tasks that are ready and do not run yet; one counter */
    DUET_COUNTED_IN,    /* bytes on their way to a memory; of each one, as the next two */
    DUET_COUNTED_OUT,   /* from a memory */
    DUET_COUNTED_USED,  /* bytes of a device's memory that are taken (struct duet_event) */
    DUET_COUNTED_LINK,  /* bytes on their way over a link of the machine; of each one */
};

/* What a counter is from a date on, until that of the next point. */
struct duet__moment {
    double date_s, value;
};

struct duet__counter {
    enum duet__counted what;
    unsigned index; /* of the memory, or the link */
    /* struct duet__moment: dates ascend, values change; before the first one it is 0. NULL or
       empty: it always is, or it is not known (of links in traces that were read, of memory in old
       ones) */
    GArray *points;
    double most;     /* of its values */
    double busy_s;   /* it was not 0 */
    uint64_t amount; /* tasks, or bytes, that were counted; 0 of USED */
};

/* Owned, by duet__counters_fini. Zero-initialise. */
struct duet__counters {
    struct duet__counter *all; /* READY, then IN of all memories, OUT, USED, then LINK */
    unsigned count, nodes;
};

/*
 * Counts what is in the records: O(n log n). A counter has `most` points at most, at least two;
 * where it would have more, they are the means of equal intervals. What failed does not count.
 */
void duet__counters_make(const struct duet__recording *recording, unsigned most,
                         struct duet__counters *out);

void duet__counters_fini(struct duet__counters *counters); /* safe on a zeroed one, and twice */

static inline const struct duet__counter *duet__counter(const struct duet__counters *counters,
                                                        enum duet__counted what, unsigned index)
{
    return &counters->all[what ? 1 + ((unsigned)what - 1) * counters->nodes + index : 0];
}

/* What copies did with one memory. */
struct duet__node_use {
    uint64_t in_bytes, out_bytes;
    double in_s, out_s;   /* at least one copy was under way */
    uint64_t again_bytes; /* of in_bytes: the same data had been there before; 0 of the host */
    uint64_t peak_bytes;  /* taken of it at once; 0: not known */
};

/* By memory of the machine, for g_free. */
struct duet__node_use *duet__use_make(const struct duet__recording *recording);

#endif
