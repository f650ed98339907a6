/* SPDX-License-Identifier: Apache-2.0 */
/* The interval of a prediction, what makes it wide, and what would narrow it. */
#ifndef DUET_RUNS_INTERVAL_H
#define DUET_RUNS_INTERVAL_H

#include "runs/request.h"
#include "trace/run.h"

/*
 * Sets the interval in which a later run, or the median of several (config.interval), is expected
 * in 90 of 100 cases, from the runs of a series made for that (duet__predictive). NaN of fewer than
 * DUET_PREDICTIVE_LEAST runs. Noise of single executions is that of one run also in the interval of
 * a median: averaged over runs, it made intervals too narrow (docs/models.md).
 */
void duet__interval_find(const struct duet__series *series, double *low_s, double *high_s);

/* Fills run->basis, run->uses and run->guess from what a simulated run has executed on its first
   node. Does nothing for other runs. */
void duet__bases_find(const struct duet__request *request, const struct duet__spent *spent,
                      unsigned count, struct duet__run *run);

/* The uncertain figure that an interval has most of its width from. */
struct duet__widest {
    char name[2 * DUET_NAME_MAX + 8]; /* "dgemm on c2050", "the machine's state", "the links'
                                         bandwidths"; "": none stands out */
    double share;                     /* of the variance of the makespan's logarithm, 0 to 1 */
    double half;                      /* half of the interval, by its middle */
    double narrowed;                  /* half of it if that figure was certain */
    const struct duet__use *use;      /* kernel, of the first run; NULL: it is none */
    const char *why;                  /* why it is not certain; NULL: see the kernel */
};

/*
 * Finds the figure that makes the interval of a series widest, from how the makespan goes with each
 * drawn figure; the draws are repeated here. Of fewer than DUET_PREDICTIVE_LEAST runs *out is
 * zeroed.
 */
void duet__interval_widest(const struct duet__request *request, const struct duet__series *series,
                           struct duet__widest *out);

/* Returns a sentence on how wide an interval is and what narrows it; free with g_free. */
char *duet__interval_advice(const struct duet__request *request, const struct duet__widest *widest);

#endif
