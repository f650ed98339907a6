/* SPDX-License-Identifier: Apache-2.0 */
/* Executions in recorded runs: their times, busy neighbours, and operands. */
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
    struct duet__recording recording; /* has accesses, else operands are not known */
    const char *context;              /* the workload; NULL: "" */
    /* equal for runs of the same problem on as many workers under one policy; 0: like no other */
    uint64_t repeats;
    /* equal for runs of one problem on as many workers, under any policy; 0: not known */
    uint64_t problem;
    bool disturbed; /* others computed meanwhile; the caller decides whether to use it */
};

/* One executed task. */
struct duet__execution {
    double seconds;    /* length, without the runtime's overhead */
    double others;     /* mean number of the socket's other CPU workers that computed meanwhile */
    uint32_t run;      /* index of its run */
    uint32_t worker;   /* index in the run's machine */
    uint32_t workers;  /* number of CPU workers of its socket, itself included; 0: on a device */
    bool fresh;        /* first of its run to write some data, as far as operands are known */
    uint32_t operands; /* number; 0 if accesses were not recorded, and on devices */
    size_t first;      /* index of its first operand */
};

/* The executions of a run: `first` to first + count - 1, in order of their beginning. */
struct duet__executed_run {
    const struct duet__recorded_run *of; /* borrowed */
    size_t first, count;
    uint64_t registered_bytes; /* sum over all distinct handles */
    double state; /* state of the machine then, see duet__states_remove; 0: not known */
    double total; /* time of its kernels by their usual time, in units of the median of equal runs;
                     0: not known */
};

/* Executions of one kernel on one architecture in one workload, with the same work: a point. */
struct duet__group {
    const char *kernel, *arch, *context; /* borrowed */
    double work;                         /* > 0 */
    bool host;                           /* all its executions ran on CPU workers */
    GArray *members;                     /* size_t: indices, in order of runs */
};

/* Executions and their groups. Those that failed or have no work are in no group. */
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
 * Reads the TASK records of all runs. `overhead_s` is subtracted from every time, of which at least
 * a tenth is left. *out borrows from `runs` and is the caller's (duet__executions_fini).
 * DUET_EINVAL with a message if there is no execution; *out is then empty.
 */
DUET_MUST_CHECK int duet__executions_read(const struct duet__recorded_run *runs, size_t run_count,
                                          double overhead_s, struct duet__executions *out,
                                          struct duet_message *message);

void duet__executions_fini(struct duet__executions *executions); /* safe on a zeroed one, twice */

/* Sets missing[i], the part of operand i that is in no cache, for the first `limit` executions of
 * each run (0: all), with caches of this size. */
void duet__missing_find(const struct duet__executions *executions,
                        const struct duet_sharing *sharing, size_t limit, double *missing);

/*
 * Takes the state of the machine out of the times of host kernels. On a machine that others use, or
 * whose clock changes, a whole run may be faster or slower than equal runs
 * (duet__recorded_run.repeats): its state is that factor. It is the median over the run's
 * executions, weighted by their usual times, of measured by usual time; the usual time is the
 * median of that kernel in equal runs. States are scaled to a median of 1, and times are divided by
 * them: they become those of the median state. Fewer than three equal runs have no known state (0),
 * and keep their times. *out is set to the distribution of these factors, but of all time in
 * kernels, which stalls make longer as well; its drift is from the medians of the fifths of the
 * runs, in their order.
 */
void duet__states_remove(struct duet__executions *all, struct duet__states *out);

#endif
