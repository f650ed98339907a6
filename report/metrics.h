/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics of a report: each is stated once, in metrics.c, and its column in the table, its key
 * in JSON and its column in CSV follow from that.
 */
#ifndef DUET_REPORT_METRICS_H
#define DUET_REPORT_METRICS_H

#include <stdbool.h>

#include "report/report.h"

/* A metric of a run. Outputs whose name is NULL leave it out. */
struct duet__metric {
    const char *key, *group; /* in JSON; `group`: the object that it is in */
    bool line;               /* begins a line of the JSON */
    const char *csv;
    const char *heads[2]; /* heading lines of the table: name and unit */
    double unit;          /* unit of the table by that of the value; 0: 1 */
    /* after the point, in the table; below 0: those that make five significant digits of the
       largest, of all in its group if it has one, but no more than minus this */
    int digits;
    bool bound;                                        /* shown in the table as a part of the
                                                          makespan */
    bool (*tabled)(const struct duet__report *report); /* NULL: always */
    bool (*known)(const struct duet__report *report);  /* NULL: always; else null, and no column */
    /* Returns the value, for an architecture or, below 0, for all; NaN: not known, or without a
     * meaning. NULL: the value is the member of the run at `at`. */
    double (*of)(const struct duet__report *report, const struct duet__run *run, int arch);
    size_t at;
    bool counts;  /* a whole number, as a member a uint64_t; else a double */
    bool by_arch; /* one value for each architecture, which is the unit, and the end of `csv` */
};

enum {
    DUET__TASKS,
    DUET__MAKESPAN,
    DUET__INTERVAL, /* of the mean makespan, or of later runs; in the table only */
    DUET__UNSCALED,
    DUET__GFLOPS,
    DUET__TO_DEVICE,
    DUET__TO_HOST,
    DUET__BETWEEN,
    DUET__HITS,
    DUET__IDLE,
    DUET__ARCH_IDLE,
    DUET__MESSAGES, /* for several nodes: from here to the last in the table only */
    DUET__MESSAGE_BYTES,
    DUET__NODE_LEAST, /* idle share of a node; in no column */
    DUET__NODE_MEDIAN,
    DUET__NODE_MOST,
    DUET__PATH,
    DUET__AREA,
    DUET__MIXED,
    DUET__LINKS,
    DUET__BEST,  /* the largest of the bounds */
    DUET__BASIS, /* shares of the kernels' expected time, by enum duet__basis */
    DUET__WALL_TIME = DUET__BASIS + DUET__BASES,
    DUET__RESIDUAL, /* the largest residual; in the table only */
    DUET__METRICS,
};

extern const struct duet__metric duet__metrics[DUET__METRICS];

/* Returns the metric of a run; `arch` matters if it is by_arch. */
double duet__metric(const struct duet__metric *metric, const struct duet__report *report,
                    const struct duet__run *run, int arch);

/* Returns the median over the runs of a policy (of the rate, that at the median makespan); NaN if
 * one is. */
double duet__metric_median(const struct duet__metric *metric, const struct duet__report *report,
                           const struct duet__series *series, int arch);

/*
 * For loops over its values: the first, from number `arch` on, of 0 or, where it is by_arch, the
 * architectures that have workers; -1 at the end.
 */
int duet__metric_next(const struct duet__metric *metric, const struct duet__report *report,
                      int arch);

#endif
