/* SPDX-License-Identifier: Apache-2.0 */
/* What one run left, in whatever world it was made. */
#ifndef DUET_RUNS_RUN_H
#define DUET_RUNS_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include <duet/error.h>
#include <duet/trace.h>

#include "runs/recording.h"
#include "workloads/workload.h"

/* Zero-initialise; owned, by duet_run_fini. */
struct duet_run {
    int error;     /* enum duet_error; 0: it is whole; DUET_ECANCELED without message: not made */
    char *message; /* where it failed; NULL: nothing to say */
    uint64_t seed;
    struct duet_stats stats;
    double critical_path_s, area_s; /* lower bounds on the makespan; 0: not known */
    double wall_s;                  /* what it took to make; of a real run, with its results back in
                                       the host's memory */
    struct duet_verdict verdict;    /* formula NULL: it was not verified */
    struct duet_recording recording; /* machine NULL: it was not recorded */
};

void duet_run_fini(struct duet_run *run); /* safe on a zeroed one, and twice */

/* An array of `count` runs that are not made yet. duet_runs_free frees array and runs. */
struct duet_run *duet_runs_new(size_t count);
void duet_runs_free(struct duet_run *runs, size_t count); /* NULL is fine */

/* The records of the first of some runs; NULL: it was not recorded. */
static inline const struct duet_recording *duet_run_recording(const struct duet_run *first)
{
    return first->recording.machine ? &first->recording : NULL;
}

/* Whether its result is right, or nobody has asked. */
static inline bool duet_run_passes(const struct duet_run *run)
{
    return !run->verdict.formula || run->verdict.residual < run->verdict.threshold;
}

/* The measured runs of one policy. */
struct duet_series {
    const char *policy;
    struct duet_run *runs; /* by duet_runs_free; those after `count` are not made */
    size_t count;          /* that are finished; the first may be recorded */
    int error;             /* that ended them; 0: none, or a signal */
    bool opened;           /* a runtime was: else it is the input, or a device, that is to blame */
    struct duet_message message;
};

/* Notes that it failed, in the words of `message`; the first note stays. Returns `error`. */
int duet_run_fail(struct duet_run *run, int error, const struct duet_message *message);

#endif
