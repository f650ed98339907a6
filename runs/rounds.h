/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds of runs on this machine: each of some cases has a turn in every round, so that a machine
 * that becomes slower or faster meanwhile does so for all of them. */
#ifndef DUET_RUNS_ROUNDS_H
#define DUET_RUNS_ROUNDS_H

#include "runs/load.h"
#include "runs/session.h"

/* Rounds under way: duet__rounds_init comes first, then the caller sets `cases`. */
struct duet__rounds {
    size_t cases;
    size_t round, turn;       /* finished rounds; finished turns of the round at hand */
    GArray *disturbed;        /* size_t: rounds, from 1, in which others used the cores */
    struct duet__load before; /* load when the runs of the turn at hand began */
    GHashTable *opened;       /* set of numbers of workers that runtimes had before */
    struct {
        const struct duet__workload *workload;
        struct duet__problem
            problem; /* problem whose data later turns may need; data NULL: none is kept */
    } kept[2];
};

void duet__rounds_init(struct duet__rounds *rounds);
void duet__rounds_fini(struct duet__rounds *rounds); /* safe on zeroed ones */

/*
 * Begins the turn at hand, and returns its case. Every other round goes through the cases backward
 * (ABBA): a steady change, or an effect that lasts from one case to the next, is alike for all.
 */
size_t duet__rounds_begin(struct duet__rounds *rounds);

/* Looks at the load again, after what a turn does before its runs. */
void duet__rounds_look(struct duet__rounds *rounds);

/* Returns the load by others since it was looked at, and notes its round if they disturbed it. */
struct duet__disturbance duet__rounds_load(struct duet__rounds *rounds);

/* Ends the turn at hand. Returns true if the round has another one. */
bool duet__rounds_next(struct duet__rounds *rounds);

/* True if a runtime with as many workers was opened in an earlier turn, and has made its remarks on
   the machine. */
bool duet__rounds_opened(struct duet__rounds *rounds, int cpus, int gpus);

/*
 * Gives a problem its data: that of an earlier turn which computed on the same, or new data. It is
 * kept, in place of what was kept under this number, 0 or 1. Errors of the workload's `generate`.
 */
DUET_MUST_CHECK int duet__rounds_data(struct duet__rounds *rounds, size_t number,
                                      const struct duet__workload *workload,
                                      struct duet__problem *problem, struct duet_message *message);

/* Frees the data that turns have kept for others. */
void duet__rounds_discard(struct duet__rounds *rounds);

#endif
