/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of a set of runs of one problem, by policy, and the texts made from them: a table for
 * people, JSON and CSV for programs, a page to look at. Plain data, whether the runs were
 * simulated, real, or read from a file.
 */
#ifndef DUET_REPORT_H
#define DUET_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <duet/error.h>
#include <duet/machine.h>

#include "runs/request.h"
#include "trace/run.h"

/* Request and results. Everything is borrowed. */
struct duet__report {
    const char *command;                 /* the command line that makes this report again */
    const struct duet__request *request; /* with the machine that the runs were made on */
    const struct duet__series *series;   /* each with a run */
    size_t series_count;
    unsigned cores;   /* number that runs on this machine could use */
    bool interrupted; /* some runs were not made, because of a signal */
    bool show_wall;   /* times of simulating are printed; without, equal commands give equal
                         bytes */
};

/* Makespans of all runs of a policy, and their verification. Medians of other metrics:
 * metrics.h. */
struct duet__policy_summary {
    double makespan_s, mean_s;
    double ci95_low_s, ci95_high_s; /* interval of the mean; NaN: none (duet__spreads) */
    double residual;                /* the largest one; infinite if one is not a number */
    size_t judged, failed;          /* results with a verdict, and those that do not pass */
};

struct duet__policy_summary duet__report_summarise(const struct duet__series *series);

/* Number of computing CPU cores, or accelerators, of a machine: workers by memory node. */
unsigned duet__report_cpus(const struct duet_machine *machine);
unsigned duet__report_gpus(const struct duet_machine *machine);

/* The writers leave write errors to the one who closes the stream. */

/* A table for a terminal: one row a policy. */
void duet__report_write_table(FILE *stream, const struct duet__report *report);
/* One JSON object, schema 1. */
void duet__report_write_json(FILE *stream, const struct duet__report *report);
/* A header line and one line a run. */
void duet__report_write_csv(FILE *stream, const struct duet__report *report);
/* Writes each run as a JSON object on a line, with members of the problem that CSV leaves out. */
void duet__report_write_rows(FILE *stream, const struct duet__report *report);

/* "simulated", "real", or "emulated": on this machine, but not its GPUs. */
const char *duet__report_world(const struct duet__report *report);
static inline bool duet__report_simulated(const struct duet__report *report)
{
    return report->request->config.simulate != NULL;
}

/* Returns "auto took cp, 1.5 s expected of 120 tasks; then dmda, +1.2 %": the choice in the first
 * run; NULL for a policy that chooses among no others. Free with g_free. */
char *duet__report_choice(const struct duet__series *series);

/* Returns a verdict of the series, which has the formula; formula NULL: none was judged. */
struct duet__verdict duet__series_verdict(const struct duet__series *series);
/* Returns any verdict of all series; formula NULL: none was judged. */
struct duet__verdict duet__report_verdict(const struct duet__report *report);

/* "one run", "the median of 5 runs": what intervals are of; "" if there are none. g_free. */
char *duet__report_interval(const struct duet__report *report);

/* "4 CPUs (x5650), 8 GPUs (c2050)". Never NULL; free with g_free. */
char *duet__report_resources(const struct duet_machine *machine);
/* "cholesky, n 38400, tile 960, double precision, 11480 tasks, ...": likewise. */
char *duet__report_problem(const struct duet__report *report);

#endif
