/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schedules: which worker runs each task, and in which order. A schedule comes from a file that
 * anybody may write, or from the trace of a run, and is a policy: `--policy plan.json`.
 */
#ifndef DUET_RUNTIME_SCHEDULE_H
#define DUET_RUNTIME_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <duet/policy.h>

#include "base/texts.h"
#include "trace/recording.h"

enum { DUET__UNPLANNED = UINT32_MAX }; /* worker of a number that no task has */

/* The plan of a task. */
struct duet__planned {
    uint32_t worker;       /* index in `workers`; DUET__UNPLANNED: the schedule has no such task */
    uint32_t place;        /* number of tasks before it on its worker */
    unsigned kernel;       /* number of its name in `kernels`, from 1; 0: not known */
    uint64_t bytes;        /* size of the data of all accesses; UINT64_MAX: not known */
    double start_s, end_s; /* planned dates from the first submission on; NAN: not known */
};

/* A schedule. Tasks are numbered from 1, in order of submission. */
struct duet__schedule {
    struct duet_policy policy;           /* follows the schedule; its context is this struct */
    char *path;                          /* file it comes from, for messages */
    struct duet__texts workers, kernels; /* names */
    struct duet__planned *tasks;         /* by number less 1 */
    size_t count;                        /* length of `tasks` */
    size_t planned;                      /* tasks that have a worker: `count`, unless numbers are
                                            left out, which acquisitions of a program have */
    uint32_t *order; /* indices in `tasks`: those of the first worker in their order, then those of
                        the next, ... */
    size_t *first;   /* index in `order` of each worker's first task, and the end of `order` */
    double makespan_s; /* planned makespan; 0: not known */
};

/* True for the name of a schedule's file: it ends in .json or .json.gz. */
bool duet__schedule_is(const char *path);

/*
 * Reads a schedule or a trace, once for each version of the file; *out stays with the process.
 * DUET_EIO, DUET_EPARSE with a message that names the file.
 */
DUET_MUST_CHECK int duet__schedule_load(const char *path, const struct duet__schedule **out,
                                        struct duet_message *message);

/*
 * Reads the text of one, length bytes and a final zero; `path` is for messages. The caller frees
 * *out (duet__schedule_free). DUET_EPARSE with a message that names the file.
 */
DUET_MUST_CHECK int duet__schedule_read(const char *text, size_t length, const char *path,
                                        struct duet__schedule **out, struct duet_message *message);

/*
 * Makes the schedule of a run, in the order in which tasks began. `path` is for messages. The
 * caller frees *out (duet__schedule_free). DUET_EINVAL with a message: the run has no task, has
 * several nodes, or has tasks whose numbers differ from run to run (children, and the runtime's
 * own).
 */
DUET_MUST_CHECK int duet__schedule_take(const char *path, const struct duet__recording *recording,
                                        struct duet__schedule **out, struct duet_message *message);

/* Divides the dates of a schedule by an emulated run's factor of time: they are the platform's. */
void duet__schedule_unscale(struct duet__schedule *schedule, double scale);

/*
 * Writes to *out what a schedule planned for the tasks of a run that followed it. Planned dates are
 * multiplied by `scale`. The caller frees out->tasks.events with g_free.
 */
void duet__schedule_plan(const struct duet__schedule *schedule,
                         const struct duet__recording *recording, double scale,
                         struct duet__run_plan *out);

/* Returns a copy, for duet__schedule_free. */
struct duet__schedule *duet__schedule_copy(const struct duet__schedule *schedule);

/* Sets `order`, `first` and all places from the workers and planned beginnings of tasks; equal
   dates keep their order. */
void duet__schedule_arrange(struct duet__schedule *schedule);

/* Has duet__schedule_load find a schedule under its path, until NULL is given for that. The caller
   keeps it. */
void duet__schedule_offer(const char *path, const struct duet__schedule *schedule);

/* Writes a schedule; `machine` is the name of the machine, or NULL. */
void duet__schedule_write(FILE *stream, const struct duet__schedule *schedule, const char *machine);

void duet__schedule_free(struct duet__schedule *schedule); /* NULL is fine */

#endif
