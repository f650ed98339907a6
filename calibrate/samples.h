/* SPDX-License-Identifier: Apache-2.0 */
/* Executions out of recorded runs: what they took, who computed beside them, where their data was.
 */
#ifndef DUET_CALIBRATE_SAMPLES_H
#define DUET_CALIBRATE_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/error.h>
#include <duet/machine.h>
#include <duet/trace.h>

#include "platforms/model/effects.h"
#include "runs/recording.h"

/* One recorded run. Everything is borrowed. */
struct duet__observation {
    struct duet_recording recording; /* with accesses, or its operands are not known */
    const char *context;             /* the workload */
    /* the same for runs that did the same: the same problem, on as many workers, under one policy;
       0: like no other */
    uint64_t repeats;
    /* the same for runs of one problem on as many workers, whatever the policy; 0: not known */
    uint64_t problem;
    bool disturbed; /* others computed meanwhile; whoever gives runs chooses among them */
};

enum {
    DUET__NO_LABEL = UINT32_MAX, /* of a task that is no sample: it failed, or has no work */
};

/* Which curve a sample belongs to. Borrowed strings. */
struct duet__label {
    const char *kernel, *arch, *context;
    uint32_t rank; /* by their names */
    bool host;     /* all its samples ran on CPU workers */
};

/* One task. */
struct duet__sample {
    double seconds;   /* what it took, without what the runtime spends on a task; > 0 */
    double others;    /* how many of the socket's other CPU workers computed meanwhile, as a mean */
    double work;      /* > 0 */
    uint32_t label;   /* index into labels, or DUET__NO_LABEL */
    uint32_t worker;  /* of the run's machine */
    uint32_t workers; /* CPU workers of its socket, this one included; 0: it is no CPU worker */
    uint32_t operands; /* how many; 0 where accesses were not recorded, and on devices */
    size_t first;      /* index of its first operand */
};

/* One recorded run: samples first to first + count - 1, in order of their beginning. */
struct duet__sampled_run {
    const struct duet_machine *machine; /* borrowed */
    size_t first, count;
    uint64_t registered_bytes; /* of its distinct handles */
    uint64_t repeats, problem; /* as in duet__observation */
    double state;              /* of the machine, see duet__states_remove; 0: not known */
};

/* Samples of one point: indices order[first] to order[first + count - 1], in order of runs. */
struct duet__group {
    uint32_t label;
    double work;
    size_t first, count;
};

struct duet__samples {
    struct duet__sample *list;
    size_t count;
    struct duet__operand *operands;
    size_t operand_count;
    struct duet__sampled_run *runs;
    size_t run_count;
    struct duet__label *labels;
    size_t label_count;
    size_t *order; /* sorted by names of kernel, architecture and context, work, run, beginning */
    struct duet__group *groups; /* in that order */
    size_t group_count;
};

/*
 * Reads the TASK records of all runs. `overhead_s` is taken off every time, but never leaves less
 * than a tenth of it. *out borrows from `runs` and is the caller's (duet__samples_fini).
 * DUET_EINVAL with a message where there is not a single sample; *out is then empty.
 */
DUET_MUST_CHECK int duet__samples_gather(const struct duet__observation *runs, size_t run_count,
                                         double overhead_s, struct duet__samples *out,
                                         struct duet_message *message);

void duet__samples_fini(struct duet__samples *samples); /* safe on a zeroed one, and twice */

/*
 * Computes duet__sample.others of the samples of one run, `events` being their records in the same
 * order: on each socket, the time that all its workers have computed up to a date is a function
 * that is walked along once; what it grows by during an execution, less the execution itself, is
 * what the others did.
 */
void duet__samples_others(const struct duet_machine *machine,
                          const struct duet_event *const *events, struct duet__sample *samples,
                          size_t count);

/*
 * Fills misses[i] for every operand i of the first `limit` samples of each run (0: all), with
 * caches of these sizes.
 */
void duet__samples_walk(const struct duet__samples *samples, const struct duet_sharing *sharing,
                        size_t limit, struct duet__miss *misses);

/*
 * Takes the state of the machine out of the times of host kernels. On a machine that others use, or
 * whose clock changes, a run is faster or slower as a whole than another one that did the same: a
 * state is the factor by which. It is the median over the run's executions, each weighted by its
 * usual time, of measured by usual time; usual is the median of that kernel in all runs that did
 * the same (duet__observation.repeats), and states are scaled so that their median is 1. Then
 * samples->runs[].state is set, and the times of its samples are divided by it: they are those of
 * the median state. Runs of fewer than three that did the same have no known state (0), and their
 * times stay.
 */
void duet__states_remove(struct duet__samples *samples);

/*
 * Relative deviation of the states of those runs (indices, may repeat beside each other) that have
 * one: 1.4826 times the median of |log state|, without those runs that are the median themselves
 * (with few runs of a problem these would be a large part); 0 with fewer than two. `room` has as
 * many doubles.
 */
double duet__states_deviation(const struct duet__samples *samples, const size_t *runs, size_t count,
                              double *room);

#endif
