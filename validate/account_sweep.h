/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the account share: one worker's kernels, gaps and what it waits for. */
#ifndef DUET_ACCOUNT_SWEEP_H
#define DUET_ACCOUNT_SWEEP_H

#include <stddef.h>
#include <stdint.h>

#include <duet/error.h>

#include "validate/account.h"

/* Seconds of one execution, or of all of one kernel on one architecture. */
struct duet__share {
    size_t kernel; /* index in the recording; kernel_count stands for those without a name */
    unsigned arch;
    double seconds;
};

/* A stretch in which a worker runs nothing although its next task is ready. */
struct duet__gap {
    unsigned node; /* memory that the worker's kernels work in */
    double start_s, end_s;
};

/* What is collected from all workers. Arrays with room for one element a TASK event. */
struct duet__sweep {
    const struct duet_recording *recording;
    double *parts_s; /* DUET_PARTS */
    struct duet__share *shares;
    struct duet__gap *gaps;
    size_t share_count, gap_count;
};

/*
 * Adds the kernels of all workers, their idle time, and the gaps in which they wait. The records
 * have been checked. DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__account_kernels(struct duet__sweep *sweep);

/*
 * Divides the gaps, which it sorts, among the directions of the copies that were waited for, and
 * overhead: O((gaps + copies) log(gaps + copies)). DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__account_waits(struct duet__sweep *sweep);

#endif
