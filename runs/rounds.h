/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds of runs on this machine: each of some cases has a turn in every round, so that a machine
 * that becomes slower or faster meanwhile does so for all of them. */
#ifndef DUET_RUNS_ROUNDS_H
#define DUET_RUNS_ROUNDS_H

#include <stdbool.h>

#include "runs/session.h"

/* ------------------------------------------------------------------------------------------- */
/* The load by others: the speed of this machine's cores at the moment (probe.c), and their use by
   other processes, and by other machines on the same hardware */

enum { DUET__CORES_MOST = 1024 }; /* most cores that are looked at */

/* Seconds, over all cores of this process, up to a date. NaN: not known. */
struct duet__load {
    double at_s;     /* the date, by duet__clock_s */
    double busy_s;   /* computing for any process, the system included */
    double stolen_s; /* given to other machines by the hypervisor */
    double own_s;    /* part of busy_s of this process and the children that it has waited for */
    unsigned cores;
};

/* Disturbance between two dates, as a mean number of cores: 0.5 is half of one core all the
 * time. */
struct duet__disturbance {
    double others; /* used by other processes, stolen time included; NaN: not known */
    double stolen; /* part of it that the hypervisor took */
    unsigned cores;
    /* others took more than a tenth of a core, or a hundredth of many cores; and for longer than
       some ticks, in which the system counts */
    bool disturbed;
    bool by_processes; /* other processes of this machine alone used more than that limit, without
                          what the hypervisor took */
};

/* Returns the load up to now. */
struct duet__load duet__load_now(void);

/*
 * Reads /proc/stat, in ticks of `tick_s` seconds, into all but the date and own_s, which stay: sums
 * over the cores i with cores[i]; NULL: all. false, with NaN: not such a text, or none of the cores
 * is in it.
 */
bool duet__load_read(const char *text, double tick_s, const bool cores[DUET__CORES_MOST],
                     struct duet__load *out);

/* Returns the disturbance between two dates. */
struct duet__disturbance duet__load_between(const struct duet__load *before,
                                            const struct duet__load *after);

/* Returns the disturbance of the moment, during a fifth of a second in which the caller does
 * nothing. */
struct duet__disturbance duet__load_look(void);

/* "other processes use 0.9 of 2 cores"; caller frees with g_free. */
char *duet__load_text(const struct duet__disturbance *disturbance);

/*
 * Returns the seconds of a fixed double precision computation in a core's caches on `threads`
 * threads at once (0: one): the lower quartile over threads and repetitions. Takes some hundredths
 * of a second. Comparable between calls of one version of duet: the figure changes with the clock
 * or neighbours, and not with memory bandwidth.
 */
double duet__probe_seconds(unsigned threads);

/* ------------------------------------------------------------------------------------------- */
/* Rounds of cases                                                                              */

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
