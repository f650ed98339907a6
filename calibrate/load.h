/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast this machine's cores are at the moment, and what other processes, and other machines on
 * the same hardware, take of them while something is measured.
 */
#ifndef DUET_CALIBRATE_LOAD_H
#define DUET_CALIBRATE_LOAD_H

#include <stdbool.h>

enum { DUET__CORES_MOST = 1024 }; /* that are looked at */

/*
 * What the cores that this process may use have done up to a date, all together: seconds. NaN where
 * it is not known.
 */
struct duet__load {
    double at_s;     /* the date, by duet__clock_s */
    double busy_s;   /* computing for anybody here, the system included */
    double stolen_s; /* that the hypervisor gave to others */
    double own_s;    /* of busy_s, for this process and those children that it has waited for */
    unsigned cores;
};

/* What happened between two dates, in cores: as a mean, 0.5 is half of one core all the time. */
struct duet__disturbance {
    double others; /* other processes, stolen time included; NaN: not known */
    double stolen; /* of that, the hypervisor's */
    unsigned cores;
    /* others took more than a tenth of a core, or a hundredth of many cores; and for longer than
       some ticks, in which the system counts */
    bool disturbed;
};

/* The load so far. */
struct duet__load duet__load_now(void);

/*
 * Reads the text of /proc/stat, which counts in ticks of `tick_s` seconds, into all but the date
 * and own_s, which stay: the sum over the cores i with cores[i]; NULL: all. False, with NaN, where
 * it is not such a text, or has none of them.
 */
bool duet__load_read(const char *text, double tick_s, const bool cores[DUET__CORES_MOST],
                     struct duet__load *out);

/* Time in which nobody else should compute, between two dates. */
struct duet__disturbance duet__load_between(const struct duet__load *before,
                                            const struct duet__load *after);

/* The same for the moment: looks on for a fifth of a second, in which the caller does nothing. */
struct duet__disturbance duet__load_look(void);

/* "other processes use 0.9 of 2 cores"; caller frees with g_free. */
char *duet__load_text(const struct duet__disturbance *disturbance);

/*
 * Seconds of a fixed piece of double precision work, which needs no memory beyond a core's caches,
 * on `threads` threads at once (0: one): the lower quartile over threads and repetitions. Takes
 * some hundredths of a second. To be compared with other calls by the same duet: a machine whose
 * clock or whose neighbours have changed gives another figure, and one with less memory bandwidth
 * does not.
 */
double duet__probe_seconds(unsigned threads);

#endif
