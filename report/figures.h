/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures of a report: each is stated once, in figures.c, and its column in the table, its key
 * in JSON and its column in CSV follow from that.
 */
#ifndef DUET_REPORT_FIGURES_H
#define DUET_REPORT_FIGURES_H

#include <stdbool.h>

#include "report/report.h"

/* How a figure is written into a table. JSON and CSV have its number. */
enum duet__unit {
    DUET__NOTHING,     /* not at all */
    DUET__SECONDS,     /* with the digits that the largest of the column needs */
    DUET__OWN_SECONDS, /* with those that it needs itself */
    DUET__WALL,        /* seconds by a clock on the wall */
    DUET__INTERVAL,    /* that of the mean makespan, seconds */
    DUET__RATE,        /* GFlop/s */
    DUET__BYTES,       /* GB, with the digits that the largest of all such columns needs */
    DUET__SHARE,       /* percent */
    DUET__BOUND,       /* percent of the makespan; 0: not known */
    DUET__RESIDUAL,    /* the largest */
};

/* One figure of a run. What is NULL is left out there. */
struct duet__figure {
    const char *key, *group; /* in JSON; `group`: of the object that it stands in */
    bool line;               /* begins a line of the JSON */
    bool counts;             /* a whole number */
    const char *csv;
    const char *heads[2]; /* two heading lines of the table: what, and in which unit */
    enum duet__unit unit;
    bool (*known)(const struct duet_report *report);  /* NULL: always; else null in JSON */
    bool (*tabled)(const struct duet_report *report); /* NULL: always; else in no table */
    double (*of)(const struct duet_report *report, const struct duet_run *run);
    /* of each architecture, by its name, which then is the second heading line and the end of
       `csv`; in place of `of` */
    double (*of_arch)(const struct duet_report *report, const struct duet_run *run, unsigned arch);
};

enum {
    DUET__TASKS,
    DUET__MAKESPAN,
    DUET__MEAN,
    DUET__UNSCALED,
    DUET__GFLOPS,
    DUET__TO_DEVICE,
    DUET__TO_HOST,
    DUET__BETWEEN,
    DUET__HITS,
    DUET__IDLE,
    DUET__ARCH_IDLE,
    DUET__PATH,
    DUET__AREA,
    DUET__WALL_TIME,
    DUET__WORST_RESIDUAL,
    DUET__FIGURES,
};

extern const struct duet__figure duet__figures[DUET__FIGURES];

/* The figure of one run; `arch` matters where it has `of_arch`. NaN: not known, or makes no sense.
 */
double duet__figure(const struct duet__figure *figure, const struct duet_report *report,
                    const struct duet_run *run, unsigned arch);

/* The median over the runs of a policy (the rate's is that at the median makespan); NaN if one is.
 */
double duet__figure_median(const struct duet__figure *figure, const struct duet_report *report,
                           const struct duet_series *series, unsigned arch);

/* The first column of a table or of CSV that it has from number `column` on (0 or an architecture
 * that has workers), -1: none. */
int duet__figure_column(const struct duet__figure *figure, const struct duet_report *report,
                        int column);

#endif
