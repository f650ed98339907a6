/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a set of runs of one problem gave, policy by policy, and the texts made from it: a table for
 * people, JSON and CSV for programs, a page to look at. Plain data, so that it does not matter
 * whether the runs were simulated, real, or read from a file.
 */
#ifndef DUET_REPORT_H
#define DUET_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <duet/error.h>
#include <duet/machine.h>
#include <duet/trace.h>

#include "runs/run.h"

/* The runs of one policy. */
struct duet_policy_runs {
    const char *policy;
    const struct duet_run *runs;
    size_t run_count; /* at least 1; the first may be recorded, and is what drawings show */
};

enum duet_emulation {
    DUET_EMULATION_NONE,
    DUET_EMULATION_FREE,  /* CPU cores compute what GPUs would: as fast as these can */
    DUET_EMULATION_PACED, /* kernels and copies take the times of a platform, nothing is computed */
};

/* What is known of runs on this machine beside the rest. */
struct duet_report_real {
    enum duet_emulation emulation;
    double scale;     /* PACED: factor of that platform's times */
    const char *lose; /* emulated GPUs lost on purpose, "gpu1@100"; NULL: none */
    unsigned cores;   /* that the process may use */
    size_t warmups,
        reps;            /* runs a policy that were asked for: before the measured ones, measured */
    bool interrupted;    /* some of them were not made, because somebody gave up */
    const char *formula; /* of the residuals; NULL: not verified */
    double threshold;    /* a residual below it passes */
};

/* Everything is borrowed. */
struct duet_report {
    const char *command; /* the command line that makes this report again */
    const char *world;   /* "simulated", "real", or "emulated": on this machine, but not its GPUs */
    const struct duet_report_real *real; /* NULL: simulated */
    const char *workload;
    const char *settings; /* parameters of the workload, "variant=left"; "" if none */
    const char *platform;
    uint64_t n, tile;
    char precision; /* 's' or 'd' */
    bool set_arch;
    bool noise;
    const char *without; /* causes that the simulated machine was without, "caches"; NULL: none */
    bool show_wall;      /* otherwise two equal commands give equal bytes */
    double flops; /* of the whole problem, by which rates are computed; 0: as the runs counted */
    const struct duet_machine *machine;
    const struct duet_policy_runs *policies;
    size_t policy_count;
};

/* What all runs of a policy say of its makespan, and whether they were right. For the medians of
 * other figures see figures.h. */
struct duet_policy_summary {
    double makespan_s, mean_s;
    double ci95_low_s, ci95_high_s; /* interval of the mean; NaN of fewer than DUET_INTERVAL_RUNS */
    double residual;                /* the largest; infinite if one is not a number */
    size_t failed;                  /* residuals that do not pass */
};

/* Computing CPU cores and accelerators of a machine: workers by memory node. */
unsigned duet_report_cpus(const struct duet_machine *machine);
unsigned duet_report_gpus(const struct duet_machine *machine);

/* Errors: DUET_ENOMEM, DUET_EINVAL (no run). */
DUET_MUST_CHECK int duet_report_summarise(const struct duet_report *report,
                                          const struct duet_policy_runs *policy,
                                          struct duet_policy_summary *summary,
                                          struct duet_message *message);

/*
 * The writers below leave write errors to the one who closes the stream. Errors: DUET_ENOMEM,
 * DUET_EINVAL (a policy without runs).
 */

/* A table for a terminal: one row a policy. */
DUET_MUST_CHECK int duet_report_write_table(FILE *stream, const struct duet_report *report,
                                            struct duet_message *message);
/* One JSON object, schema 1. */
DUET_MUST_CHECK int duet_report_write_json(FILE *stream, const struct duet_report *report,
                                           struct duet_message *message);
/* A header line and one line a run. */
DUET_MUST_CHECK int duet_report_write_csv(FILE *stream, const struct duet_report *report,
                                          struct duet_message *message);

/* Whether a residual of the report passes. */
bool duet_report_passes(const struct duet_report *report, double residual);

/*
 * Where it ran, so that nobody takes an emulated run for another one: "idgraf", "an emulated idgraf
 * (times x 0.01, nothing computed)". Never NULL; free with g_free.
 */
char *duet_report_place(const struct duet_report *report);
/* "4 CPUs (x5650), 8 GPUs (c2050)": likewise. */
char *duet_report_resources(const struct duet_machine *machine);
/* "cholesky, n 38400, tile 960, double precision, 11480 tasks, ...": likewise. */
char *duet_report_problem(const struct duet_report *report);

#endif
