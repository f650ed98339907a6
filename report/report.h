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

#include <duet/machine.h>

#include "runs/interval.h"
#include "trace/account.h"
#include "trace/counters.h"
#include "validate/validation.h"

/* Request and results. Everything is borrowed. */
struct duet__report {
    const char *command;                 /* the command line that makes this report again */
    const struct duet__request *request; /* with the machine that the runs were made on */
    const struct duet__series *series;   /* each with a run */
    size_t series_count;
    const struct duet__run_plan *plans; /* of each series' first run; NULL: nothing was planned */
    unsigned cores;                     /* number that runs on this machine could use */
    bool interrupted;                   /* some runs were not made, because of a signal */
    bool show_wall; /* times of simulating are printed; without, equal commands give equal
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

/* "one run", "the median of 5 runs": what intervals (config.interval) are of; "" if there are none.
   g_free. */
char *duet__report_interval(const char *interval);

/* "4 CPUs (x5650), 8 GPUs (c2050)". Never NULL; free with g_free. */
char *duet__report_resources(const struct duet_machine *machine);
/* "cholesky, n 38400, tile 960, double precision, 11480 tasks, ...": likewise. */
char *duet__report_problem(const struct duet__report *report);

/* ------------------------------------------------------------------------------------------- */
/* Shared by the writers of a comparison: names, the order of cases, the explanation of all. */

/* Prints the rounds, from 1, in which others used the cores, and the number of their runs that the
 * figures leave out for that; nothing if count is 0. */
void duet__put_disturbed(FILE *stream, const size_t *rounds, size_t count, size_t left_out);

/* Returns "dgemm on c2050", or the name of the reason. Borrowed from the difference or constant. */
const char *duet__difference_name(const struct duet__difference *difference);

/*
 * Returns the main part of a case's difference: the largest one that is not idle, overhead or
 * spread, if it has the sign of the largest of all and is at least a third of it; else that one.
 * Borrowed; NULL without an explanation.
 */
const struct duet__difference *duet__culprit(const struct duet__explanation *explanation);

/* Returns this part in words: "dgemm on cpu takes 1.52 ms predicted, 1.01 ms measured (+50 %)";
 * free with g_free. NULL without an explanation. */
char *duet__culprit_text(const struct duet__validation *validation,
                         const struct duet__explanation *explanation);

/* One part of the explanation over all cases. */
struct duet__mean_part {
    enum duet__reason reason;
    char name[2 * DUET_NAME_MAX];
    double share; /* mean over the explained cases of its seconds by the measured makespan */
};

/* The parts of the explanation over all cases, the largest in absolute value first. */
struct duet__causes {
    struct duet__mean_part *parts;
    size_t count;
    size_t cases; /* number that are explained */
    double whole; /* sum of the shares: the mean error of those cases */
};

/* The caller frees .parts with g_free. */
struct duet__causes duet__causes_of(const struct duet__validation *validation);

/* ------------------------------------------------------------------------------------------- */
/* Explains why one run took as long as it did: `duet explain`, for people and for programs. */

/* Analysis of a run, all borrowed. */
struct duet__why {
    const char *path_name; /* the run's file */
    const char *command;   /* command line of the report */
    const struct duet__trace *trace;
    const struct duet__account *account;
    const struct duet__path *path;
    const struct duet__node_use *uses;
    const struct duet__what_if *what_if; /* NULL: nothing was simulated */
    const struct duet__holding *holding; /* NULL: no interval was asked for */
    const char *simulated;               /* platform of the simulations, "idgraf"; NULL likewise */
};

/* Names of states in JSON: "to_device". */
extern const char *const duet__state_names[DUET_STATES];

void duet__why_write_text(FILE *stream, const struct duet__why *why);
void duet__why_write_json(FILE *stream, const struct duet__why *why);

#endif
