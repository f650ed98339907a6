/* SPDX-License-Identifier: Apache-2.0 */
/* Speed of this machine's cores at the moment, and the use of them by other processes and other
 * machines on the same hardware. */
#ifndef DUET_RUNS_LOAD_H
#define DUET_RUNS_LOAD_H

#include <stdbool.h>

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

#endif
