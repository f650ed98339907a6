/* SPDX-License-Identifier: Apache-2.0 */
/* Making the runs of a study: which of them, in which order, into which file. */
#ifndef DUET_STUDY_STUDY_H
#define DUET_STUDY_STUDY_H

#include <stdbool.h>
#include <stdint.h>

#include "runs/executor.h"
#include "runs/progress.h"
#include "study/store.h"
#include "study/table.h"

struct duet__ranks;

/* "status" of a row without a result, which has an "error", too. */
enum {
    DUET__ROW_FAILED = 1,  /* something went wrong */
    DUET__ROW_REFUSED = 2, /* there is no such simulation */
    DUET__ROW_SYSTEM = 3,  /* the system had no means for it (a full disk): it is not noted */
};

/* What is to be made of a table. Everything is borrowed. */
struct duet__plan {
    const struct duet__study *study; /* with numbers */
    const char *command, *version;   /* "simulate"; of duet */
    const char *build;               /* of which commit that is; NULL: unknown */
    const char *models;              /* "DIR:HOST" of StarPU for cells that name none */
    uint64_t seed, reps;    /* replication r (from 0) of every cell has seed + r: the same random
                               numbers, so that differences between cells are not theirs */
    uint64_t part, parts;   /* of all cells, the first part/parts of the order */
    uint64_t shard, shards; /* of these, every shards-th from number `shard` on */
    const uint32_t *chosen; /* these cells in place of them all, in this order; NULL: none */
    uint64_t chosen_count;
    bool retry;     /* what has failed before */
    double until_s; /* end then, as by a signal (duet__clock_s); 0: when all is done */
    unsigned jobs;  /* at a time, on each rank; 0: duet__plan_jobs chooses */
    /* makes run `job / study->count` of cell `job % study->count`: its result is rows, objects of
       JSON, a line each */
    duet__execute_fn *execute;
    void *data;                /* of `execute` */
    struct duet__ranks *ranks; /* that have met; NULL: this process is alone */
};

/* What became of it. */
struct duet__outcome {
    uint64_t total, there, made; /* runs: that are wanted; that were there; that were made now */
    uint64_t failed, refused;    /* of these: which failed; which are no simulation at all */
    char *example;               /* what one said, with its command; for g_free */
    bool wrong;                  /* ... it failed: such a cell is told before refused ones, */
    uint64_t cell;               /* ... and of both the first one */
    uint64_t lost;               /* times that a worker on another machine was lost at work */
    int number;                  /* of the signal that ended it; 0: none */
};

/* Runs of the cells that are chosen. */
uint64_t duet__plan_runs(const struct duet__plan *plan);

/* Runs at a time: a core each; of several ranks on a machine one each. */
unsigned duet__plan_jobs(const struct duet__plan *plan);

/*
 * Makes all runs that are not in the store: all cells once, then all of them again. Rows are
 * committed several times a second. A signal that ends a process ends it early, with what is
 * finished kept. With several ranks, the others have part in it while they are there, and what one
 * was at when it was lost is given to another. DUET_EIO where the store or the system fails
 * (what was committed is there), errors of duet__platform_load.
 */
DUET_MUST_CHECK int duet__study_make(const struct duet__plan *plan, struct duet__store *store,
                                     struct duet__progress *progress, struct duet__outcome *outcome,
                                     struct duet_message *message);

#endif
