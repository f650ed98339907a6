/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the runs of a study: selects them, orders them, and stores their rows in a file. */
#ifndef DUET_STUDY_STUDY_H
#define DUET_STUDY_STUDY_H

#include <stdbool.h>
#include <stdint.h>

#include <duet/error.h>

#include "runs/executor.h"
#include "runs/monitor.h"
#include "study/store.h"

struct duet__ranks;

/* "status" of a row without a result; such a row has an "error", too. */
enum {
    DUET__ROW_FAILED = 1,  /* something went wrong */
    DUET__ROW_REFUSED = 2, /* no such simulation exists */
    DUET__ROW_SYSTEM = 3,  /* the system had no means for it (a full disk): the row is not stored */
};

/* The runs to be made of a table. It borrows everything. */
struct duet__plan {
    const struct duet__study *study; /* its cells are numbered */
    const char *command, *version;   /* "simulate"; version of duet */
    const char *build;               /* commit that duet is of; NULL: unknown */
    const char *models;              /* "DIR:HOST" of StarPU, for cells that name none */
    uint64_t seed, reps;    /* replication r (from 0) of every cell has seed + r: equal random
                               numbers, so that cells differ by themselves */
    uint64_t part, parts;   /* all cells are the first part/parts of the order */
    uint64_t shard, shards; /* every shards-th of these, from number `shard` on */
    const uint32_t *chosen; /* the only cells, in this order; NULL: all cells */
    uint64_t chosen_count;
    bool retry;     /* make runs again that failed before */
    double until_s; /* date of the end, as by a signal (duet__clock_s); 0: ends when all is done */
    unsigned jobs;  /* runs at a time, on each rank; 0: duet__plan_jobs chooses */
    /* makes run `job / study->count` of cell `job % study->count`: its result is rows, objects of
       JSON, one a line */
    duet__execute_fn *execute;
    void *data;            /* argument of `execute` */
    duet__fresh_fn *fresh; /* as for duet__executor_settle */
    /* takes struct duet__figures, for g_free, by the number of a job that `execute` has, also of
       runs that were there; NULL: none are wanted */
    GHashTable *results;
    struct duet__ranks *ranks; /* ranks that have met; NULL: this process is alone */
};

/* The results of making a plan. */
struct duet__outcome {
    uint64_t total, there, made; /* runs: that are wanted; that were there; that were made now */
    uint64_t failed, refused;    /* of there and made: runs that failed; that are no simulation */
    char *example;               /* error of one run, with its command; for g_free */
    bool wrong;                  /* `example` has failed: such a cell goes before refused ones */
    uint64_t cell;               /* cell of `example`: the first one of its kind */
    uint64_t lost;               /* number of runs that were lost with servers and other ranks */
    int number;                  /* signal that ended it; 0: none */
};

/* Returns the figures of run `rep` of a cell that plan->results has; NULL: the run is not there, or
   has no result. */
const struct duet__figures *duet__plan_result(const struct duet__plan *plan, uint64_t cell,
                                              uint64_t rep);

/* Returns the number of runs of the chosen cells. */
uint64_t duet__plan_runs(const struct duet__plan *plan);

/* Returns the runs at a time: one for each core; with several ranks on a machine one for each
   rank. */
unsigned duet__plan_jobs(const struct duet__plan *plan);

/*
 * Makes all runs that are not in the store: all cells once, then all of them again. Commits rows
 * several times a second. A signal that ends a process ends it early, and
 * finished runs are kept. Other ranks take part while they are there; a job lost with one is given
 * to another. Returns DUET_EIO if the store or the system fails (committed rows are there), or
 * errors of duet__platform_load.
 */
DUET_MUST_CHECK int duet__study_make(const struct duet__plan *plan, struct duet__store *store,
                                     struct duet__progress *progress, struct duet__outcome *outcome,
                                     struct duet_message *message);

/* ------------------------------------------------------------------------------------------- */
/*
 * A study on several machines: processes that a launcher of MPI programs has started, the ranks.
 * MPI tells them where to meet, no more. From there on each of their workers has a connection of
 * TCP with rank 0, which ends when either of them does: a worker that dies is noticed, and the
 * others go on, whatever MPI would do.
 */

enum { DUET__TOKEN = 37 /* length of a UUID */ };

struct duet__ranks {
    unsigned rank, count; /* this process's number, and that of all */
    unsigned near;        /* ranks on this machine, once they have met */
    /* rank 0 only */
    int listening;               /* the socket for workers that connect */
    char token[DUET__TOKEN];     /* workers that connect know it */
    struct duet_message trouble; /* why a rank can do nothing; "": there is none */
};

/*
 * Meets the other ranks, in rank 0, and tells them where it listens. They call duet__ranks_serve.
 * Blocks until all are there. Returns DUET_EABSENT if this build is without MPI, DUET_EIO if they
 * cannot meet.
 */
DUET_MUST_CHECK int duet__ranks_meet(struct duet__ranks *ranks, struct duet_message *message);

/* Takes the workers that have connected with rank 0 into the executor. */
void duet__ranks_admit(struct duet__ranks *ranks, struct duet__executor *executor);

/*
 * Serves rank 0 in every other rank: its workers execute the jobs that rank 0 gives, each over a
 * connection of its own, until rank 0 has ended. With something in `trouble`, which this rank has
 * and rank 0 may not have, the rank only reports that.
 */
void duet__ranks_serve(const struct duet__plan *plan, const struct duet_message *trouble);

/*
 * Copies `data` of rank 0 to all ranks by MPI, and counts the ranks on this machine. Returns errors
 * of duet__ranks_meet.
 */
DUET_MUST_CHECK int duet__mpi_share(unsigned count, void *data, size_t bytes, unsigned *near,
                                    struct duet_message *message);

#endif
