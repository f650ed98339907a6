/* SPDX-License-Identifier: Apache-2.0 */
/* What makes the interval of a prediction wide, and what would narrow it. */
#ifndef DUET_RUNS_INTERVAL_H
#define DUET_RUNS_INTERVAL_H

#include "runs/request.h"
#include "trace/run.h"

/*
 * Sets the interval in which a later run, or the median of several (config.interval), is expected
 * in 90 of 100 cases, from the runs of a series made for that (duet__predictive); NaN without any.
 * Noise of single executions is as in one run, also in the interval of a median: what is averaged
 * there was more than medians of later runs are, in which noise of one run has to do with that of
 * the next (docs/models.md).
 */
void duet__interval_find(const struct duet__series *series, double *low_s, double *high_s);

/* The uncertain figure that an interval has most of its width from. */
struct duet__widest {
    char name[2 * DUET_NAME_MAX + 8]; /* "dgemm on c2050", "the machine's state", "costs", "links";
                                         "": none stands out */
    double share;                     /* of the variance of the makespan's logarithm, 0 to 1 */
    double half;                      /* half of the interval, by its middle */
    double narrowed;                  /* half of it if that figure was certain */
    const struct duet__use *use;      /* kernel, of the first run; NULL: it is none */
};

/*
 * Finds it from the runs of a series, which were made for an interval: from how the makespan goes
 * with each of the drawn figures, which are drawn again here. DUET_PREDICTIVE_LEAST runs are
 * needed; of fewer *out is zeroed.
 */
void duet__interval_widest(const struct duet__request *request, const struct duet__series *series,
                           struct duet__widest *out);

/* Returns a sentence on that, with what narrows the interval; free with g_free. */
char *duet__interval_advice(const struct duet__request *request, const struct duet__widest *widest);

#endif
