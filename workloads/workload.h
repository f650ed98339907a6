/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Task graphs that `duet` runs and simulates: one file each, one external `const struct
 * duet__workload`, one line in list.h.
 */
#ifndef DUET_WORKLOAD_H
#define DUET_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/duet.h>
#include <duet/nodes.h>

/* One parameter a workload has beside size, tile and precision: `--param name=value`. */
struct duet__parameter {
    const char *name;
    const char *values;      /* "left|right", "0..100", ... for --help */
    const char *initial;     /* value when not given */
    const char *description; /* one line */
};

struct duet__graph; /* workloads/files/graph.h */

/* A value given on the command line. */
struct duet__setting {
    const char *name, *value;
};

struct duet__problem {
    uint64_t n;     /* matrix order, or the size as the workload says */
    uint64_t tile;  /* tile edge in elements */
    char precision; /* 's' or 'd' */
    uint64_t seed;  /* of what the workload draws at random: the shape of random graphs, contents */
    const struct duet__setting *settings;
    size_t setting_count;
    void *data; /* what `generate` made, to compute on; NULL: simulated without data */
    const struct duet__graph *graph; /* borrowed, of a workload that is a file's; else NULL */
    char *const *speeds;             /* "ARCH=X", of one, NULL-ended; NULL: none */
    struct duet_grid nodes; /* of the runtime; zeroed: one. What cannot be dealt out is refused */
    bool verify; /* the results will be judged: those of several nodes all go to node 0 */
};

/* Whether a runtime of several nodes is to run it. */
static inline bool duet__several_nodes(const struct duet__problem *problem)
{
    return (uint64_t)problem->nodes.rows * problem->nodes.cols > 1;
}

/* How results are judged. */
struct duet__judging {
    bool exact; /* factors are multiplied out, in n^3 operations on one core; else applied to a
                   random vector, in n^2 on all of them */
    bool (*stop)(
        void *context); /* true: the judgement is given up. Any thread; NULL: it never is */
    void *context;
};

static inline bool duet__judging_stopped(const struct duet__judging *how)
{
    return how && how->stop && how->stop(how->context);
}

/* Whether a result is right, as LAPACK's own tests judge it. */
struct duet__verdict {
    const char *formula; /* "||A - L L'|| / (n ||A|| eps)": a constant */
    double residual;     /* scaled, without unit; NaN or infinite never passes */
    double threshold;    /* it passes below: LAPACK's tests use 30 */
};

struct duet__tiled; /* workloads/tiles.h */

struct duet__workload {
    const char *name;                         /* "cholesky" */
    const char *description;                  /* one line */
    const char *source;                       /* paper or book the algorithm is taken from */
    const struct duet__parameter *parameters; /* ended by a NULL name; NULL: none */
    const char *const *kernels;               /* base names ("gemm"), ended by NULL */
    uint64_t default_n, default_tile;
    uint64_t real_n, real_tile;      /* the same for runs on a machine; 0: those above */
    const struct duet__tiled *tiled; /* of one on tiles: what is its own; else NULL */

    /* Checks sizes, precision and every setting. DUET_EINVAL with a message that says what to do.
     */
    int (*check)(const struct duet__problem *problem, struct duet_message *message);
    /* Flops of the whole problem, as LAPACK's working note 41 counts them. */
    double (*flops)(const struct duet__problem *problem);
    /* Number of tasks build will submit. */
    uint64_t (*tasks)(const struct duet__problem *problem);
    /* Bytes of the data it registers. */
    uint64_t (*bytes)(const struct duet__problem *problem);
    /*
     * Registers codelets and data with the runtime and submits every task; may block in
     * duet_submit; does not wait at the end. *state is the workload's, passed to fini. On error
     * the tasks submitted so far stay submitted; message may stay empty, duet_last_message then
     * says it. `self` is this workload.
     */
    int (*build)(const struct duet__workload *self, struct duet_runtime *runtime,
                 const struct duet__problem *problem, void **state, struct duet_message *message);
    /* Frees what build made, after the runtime is closed. NULL state is fine. */
    void (*fini)(void *state);

    /*
     * A program that makes its task graph itself, and its arguments, NULL-ended: each run is a
     * process of it (runs/program.h), and what makes runs in this one is NULL. NULL: there is none.
     */
    char **program;

    /*
     * Real runs; all NULL in a workload that can only be simulated. One after another: generate,
     * then for each run fill, build, duet_wait, retrieve, fini, and verify if wished; then discard,
     * after duet_close: build page-locks the data until then. Codelets stay with the runtime, too:
     * build finds those that an earlier build registered.
     */

    /*
     * Allocates the data of a checked problem (problem->data is not used). *data is the caller's,
     * for discard. DUET_ENOMEM with a message that says how many bytes. Keeps a copy of what it
     * needs of *problem.
     */
    int (*generate)(const struct duet__workload *self, const struct duet__problem *problem,
                    void **data, struct duet_message *message);
    /* Sets the contents, the same for the same seed on every machine; between runs again. Of
     * several nodes, what this process of the runtime owns; NULL: all. */
    void (*fill)(void *data, const struct duet_runtime *runtime);
    /* Unregisters the data, so that results are in the host's memory: of several nodes, where they
     * are owned, or at node 0 (problem->verify). The run's error. */
    int (*retrieve)(struct duet_runtime *runtime, void *state);
    /* Judges the results of a run that was filled and retrieved, on node 0; `how` NULL: as quickly
     * as possible, to the end. Leaves the data unspecified, and the verdict once how->stop has said
     * true. DUET_ENOMEM with a message. */
    int (*verify)(void *data, const struct duet__judging *how, struct duet__verdict *verdict,
                  struct duet_message *message);
    /* Frees the data. NULL is fine. */
    void (*discard)(void *data);
};

/* The workload of this name, or NULL. */
const struct duet__workload *duet__workload_find(const char *name);

/* The index-th workload, NULL beyond the last. */
const struct duet__workload *duet__workload_at(size_t index);

#endif
