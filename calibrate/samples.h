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

#include "calibrate/model.h"
#include "platforms/model/effects.h"

enum {
    DUET__NO_LABEL = UINT32_MAX, /* of a task that is no sample: it failed, or has no work */
};

/* Which curve a sample belongs to. Borrowed strings. */
struct duet__label {
    const char *kernel, *arch, *context;
    bool host; /* all its samples ran on CPU workers */
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
    uint64_t item;             /* as in duet__observation */
    double state;              /* of the machine, see states.h; 0: not known */
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
    size_t label_count, label_room;
    size_t *order; /* sorted by names of kernel, architecture and context, work, run, beginning */
    struct duet__group *groups; /* in that order */
    size_t group_count;
};

/*
 * Reads the TASK records of all runs. `overhead_s` is taken off every time, but never leaves less
 * than a tenth of it. *out borrows from `runs` and is the caller's (duet__samples_fini).
 * DUET_EINVAL with a message where there is not a single sample, DUET_ENOMEM; *out is then empty.
 */
DUET_MUST_CHECK int duet__samples_gather(const struct duet__observation *runs, size_t run_count,
                                         double overhead_s, struct duet__samples *out,
                                         struct duet_message *message);

void duet__samples_fini(struct duet__samples *samples); /* safe on a zeroed one, and twice */

/*
 * Computes duet__sample.others of the samples of one run, `events` being their records in the same
 * order: on each socket, the time that all its workers have computed up to a date is a function
 * that is walked along once; what it grows by during an execution, less the execution itself, is
 * what the others did. DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__samples_others(const struct duet_machine *machine,
                                         const struct duet_event *const *events,
                                         struct duet__sample *samples, size_t count);

/*
 * Fills misses[i] for every operand i of the first `limit` samples of each run (0: all), with
 * caches of these sizes. DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__samples_walk(const struct duet__samples *samples,
                                       const struct duet_sharing *sharing, size_t limit,
                                       struct duet__miss *misses);

#endif
