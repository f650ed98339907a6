/* SPDX-License-Identifier: Apache-2.0 */
/* What the two files of the account share: gaps in which workers wait. */
#ifndef DUET_ACCOUNT_WAITS_H
#define DUET_ACCOUNT_WAITS_H

#include <glib.h>

#include "validate/account.h"

/* A stretch in which a worker runs nothing although its next task is ready. */
struct duet__gap {
    unsigned node; /* memory that the worker's kernels work in */
    double start_s, end_s;
};

/*
 * Divides the gaps (struct duet__gap), which it sorts, among the directions of the copies that were
 * waited for, and overhead: O((gaps + copies) log(gaps + copies)). The records have been checked.
 */
void duet__account_waits(const struct duet_recording *recording, GArray *gaps, double *parts_s);

#endif
