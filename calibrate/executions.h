/* SPDX-License-Identifier: Apache-2.0 */
/* Executions out of recorded runs: what they took, who computed beside them, where their data was.
 */
#ifndef DUET_CALIBRATE_EXECUTIONS_H
#define DUET_CALIBRATE_EXECUTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glib.h>

#include <duet/error.h>
#include <duet/machine.h>
#include <duet/trace.h>

#include "platforms/model/effects.h"
#include "trace/recording.h"

/* One recorded run. Everything is borrowed. */
struct duet__recorded_run {
    struct duet__recording recording; /* with accesses, or its operands are not known */
    const char *context;              /* the workload; NULL: "" */
    /* the same for runs that did the same: the same problem, on as many workers, under one policy;
       0: like no other */
    uint64_t repeats;
    /* the same for runs of one problem on as many workers, whatever the policy; 0: not known */
    uint64_t problem;
    bool disturbed; /* others computed meanwhile; whoever gives runs chooses among them */
};

/* One task. */
struct duet__execution {
    double seconds;   /* what it took, without what the runtime spends on a task */
    double others;    /* how many of the socket's other CPU workers computed meanwhile, as a mean */
    uint32_t run;     /* index */
    uint32_t worker;  /* of the run's machine */
    uint32_t workers; /* CPU workers of its socket, this one included; 0: it is no CPU worker */
    bool fresh;       /* the first of its run to write some data, as far as operands are known */
    uint32_t operands; /* how many; 0 where accesses were not recorded, and on devices */
    size_t first;      /* index of its first operand */
};

/* The executions of a run: `first` to first + count - 1, in order of their beginning. */
struct duet__executed_run {
    const struct duet__recorded_run *of; /* borrowed */
    size_t first, count;
    uint64_t registered_bytes; /* of its distinct handles */
    double state;              /* of the machine, see duet__states_remove; 0: not known */
};

/* Executions of one kernel on one architecture in one workload, with the same work: a point. */
struct duet__group {
    const char *kernel, *arch, *context; /* borrowed */
    double work;                         /* > 0 */
    bool host;                           /* all of them ran on CPU workers */
    GArray *members;                     /* size_t: indices, in order of runs */
};

/* Executions that failed, or have no work, are in no group. */
struct duet__executions {
    struct duet__execution *list;
    size_t count;
    struct duet__operand *operands;
    size_t operand_count;
    struct duet__executed_run *runs;
    size_t run_count;
    GArray *groups; /* struct duet__group, by names of context, architecture, kernel, and work */
};

static inline const struct duet__group *duet__group_at(const struct duet__executions *executions,
                                                       guint place)
{
    return &g_array_index(executions->groups, struct duet__group, place);
}

/*
 * Reads the TASK records of all runs. `overhead_s` is taken off every time, but never leaves less
 * than a tenth of it. *out borrows from `runs` and is the caller's (duet__executions_fini).
 * DUET_EINVAL with a message where there is not a single one; *out is then empty.
 */
DUET_MUST_CHECK int duet__executions_read(const struct duet__recorded_run *runs, size_t run_count,
                                          double overhead_s, struct duet__executions *out,
                                          struct duet_message *message);

void duet__executions_fini(struct duet__executions *executions); /* safe on a zeroed one, twice */

/*
 * Computes duet__execution.others and workers of `count` executions of one run, `events` being
 * their records in the same order: on each socket, the time that all its workers have computed up
 * to a date is a function that is walked along once; what it grows by during an execution, less the
 * execution itself, is what the others did.
 */
void duet__neighbours_find(const struct duet_machine *machine,
                           const struct duet_event *const *events,
                           struct duet__execution *executions, size_t count);

/*
 * Sets missing[i], the part that is in no cache, of every operand i of the first `limit` executions
 * of each run (0: all), with caches of this size.
 */
void duet__missing_find(const struct duet__executions *executions,
                        const struct duet_sharing *sharing, size_t limit, double *missing);

/*
 * Takes the state of the machine out of the times of host kernels. On a machine that others use, or
 * whose clock changes, a run is faster or slower as a whole than another one that did the same: a
 * state is the factor by which. It is the median over the run's executions, each weighted by its
 * usual time, of measured by usual time; usual is the median of that kernel in all runs that did
 * the same (duet__recorded_run.repeats), and states are scaled so that their median is 1. Then the
 * runs have their state, and their times are divided by it: they are those of the median state.
 * Runs of fewer than three that did the same have no known state (0), and their times stay.
 */
void duet__states_remove(struct duet__executions *all);

#endif
