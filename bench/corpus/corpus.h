/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded real runs, kept as lines of JSON, from which models of kernels are compared off line.
 * bench/README.md says what is in a line.
 */
#ifndef DUET_BENCH_CORPUS_H
#define DUET_BENCH_CORPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <glib.h>

#include "base/json.h"
#include "calibrate/model.h"
#include "trace/recording.h"
#include "workloads/workload.h"

/* A problem on certain workers under a policy. */
struct corpus_case {
    char workload[DUET_NAME_MAX], policy[DUET_NAME_MAX];
    uint64_t n, tile;
    unsigned cpus;
};

/* Properties that all runs of one workload, size and tile share, with tasks in order of
 * submission. */
struct corpus_problem {
    struct corpus_case of; /* without policy and workers */
    char **kernels;        /* names, NULL-ended */
    size_t task_count;
    unsigned *kernel; /* by task */
    double *work;     /* by task */
    struct duet_trace_access *accesses;
    size_t access_count;
};

/* One run, its records borrowing machine, names and accesses. */
struct corpus_run {
    const struct corpus_problem *problem;
    struct corpus_case of;
    unsigned round;
    double at_s;           /* when its turn began: seconds since 1970 */
    double others, stolen; /* cores used by others during its turn, and the hypervisor's part */
    struct duet__recording recording;
};

struct corpus {
    uint64_t shared_bytes; /* size of the last cache, as the system says */
    GPtrArray *problems;   /* struct corpus_problem */
    GArray *runs;          /* struct corpus_run */
    unsigned rounds;
};

/* "cholesky:2048:256:2:ws" (workload, n, tile, workers, policy). False where it is no such text. */
bool corpus_case_read(const char *text, struct corpus_case *out);

/* store.c: lines, written and read. */
void corpus_put_head(FILE *stream, uint64_t shared_bytes);
void corpus_put_problem(FILE *stream, const struct corpus_case *of,
                        const struct duet__recording *recording);
void corpus_put_run(FILE *stream, const struct corpus_run *run);

/*
 * Reads all lines of a stream; of one workload, or all (NULL). The machine of runs on so many
 * workers is machines[workers - 1], of `machine_count`. DUET_EPARSE, DUET_EIO with a message.
 */
DUET_MUST_CHECK int corpus_read(FILE *stream, const char *workload, struct duet_machine *machines,
                                unsigned machine_count, struct corpus *out,
                                struct duet_message *message);
void corpus_fini(struct corpus *corpus); /* safe on a zeroed one */

enum { CORPUS_SIMULATIONS = 99 }; /* most simulations of a case; their median counts */

/* The command of compare.c. Returns the exit status. */
int corpus_compare(unsigned simulations, bool intervals, const char *path, const char *workload);

/* ------------------------------------------------------------------------------------------- */
/* Models of kernels that are compared: the product's, and versions without one of its parts. */

struct candidate {
    const char *name;                        /* bench/README.md describes them */
    duet__kernel_fit_fn *fit;                /* NULL: the product's */
    void (*adjust)(struct duet__point *out); /* removes parts; NULL: none */
    bool keep_states, keep_size, no_bandwidth;
    const char *costs;   /* the runtime's costs other than measured, as config.costs */
    const char *without; /* effects left out of simulations, as config.without */
};

extern const struct candidate candidates[]; /* ended by a NULL name; the product's is the first */

#endif
