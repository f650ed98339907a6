/* SPDX-License-Identifier: Apache-2.0 */
/* The interval of a prediction, what makes it wide, and what would narrow it. */
#ifndef DUET_RUNS_INTERVAL_H
#define DUET_RUNS_INTERVAL_H

#include "runs/monitor.h"
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

/*
 * Returns a sentence on how wide the interval of a series is, which figure makes it widest, judged
 * by how the makespan goes with each drawn figure, and what narrows it; free with g_free. NULL of
 * fewer than DUET_PREDICTIVE_LEAST runs.
 */
char *duet__interval_advice(const struct duet__request *request, const struct duet__series *series);

/* A drawn figure that was held at its middle. */
struct duet__held {
    char *name, *why;    /* "dgemm on c2050", "the machine's state"; why it is not certain; owned */
    double share, error; /* part of the variance of the makespan's logarithm that goes with it, and
                            the standard error of that */
    double half;         /* half of the interval without its draws, by its middle */
};

enum { DUET__HELD = 4 }; /* figures that are held, at most */

/* Parts of an interval, by simulations. Zero-initialise; owned, by duet__holding_fini. */
struct duet__holding {
    const char *interval;     /* "run", "median:5"; borrowed */
    size_t reps, simulations; /* drawn machines, and simulations in all */
    double low_s, high_s, half;
    struct duet__held held[DUET__HELD]; /* the largest share first */
    unsigned count;
    unsigned tied;        /* so many, from the first on, may be the one that makes it widest; 0: no
                             figure stands out */
    double measured_half; /* half of the interval if the first were measured; NaN: it is, or is no
                             kernel's time */
};

/*
 * Finds what makes the interval of the runs of the first policy wide: simulates them on
 * DUET_PREDICTIVE_USUAL drawn machines, then on the same with one figure at its middle, in turn for
 * the DUET__HELD with which the makespan goes most, and, if one of them stands out that is a time
 * nobody has measured, with that time drawn as a measured one. `tile`: of the workload, 0: it has
 * none. *number: the signal that ended it, or 0. Errors of duet__simulate and of simulated runs,
 * with a message.
 */
DUET_MUST_CHECK int duet__interval_hold(const struct duet__request *request, const char *interval,
                                        uint64_t tile, struct duet__progress *progress,
                                        struct duet__holding *out, int *number,
                                        struct duet_message *message);

void duet__holding_fini(struct duet__holding *holding); /* safe on a zeroed one, and twice */

#endif
