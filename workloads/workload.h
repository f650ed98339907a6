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

/* A parameter of a workload beside size, tile and precision: `--param name=value`. */
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
    uint64_t n;     /* order of the matrix, or another size */
    uint64_t tile;  /* tile edge in elements */
    char precision; /* 's' or 'd' */
    uint64_t seed;  /* seed of all random draws: shapes of graphs, contents */
    const struct duet__setting *settings;
    size_t setting_count;
    void *data; /* data of `generate` to compute on; NULL: simulated without data */
    const struct duet__graph *graph; /* the file's graph, borrowed, in workloads from files; else
                                        NULL */
    char *const *speeds;             /* "ARCH=X", of the graph, NULL-ended; NULL: none */
    struct duet_grid nodes; /* the runtime's nodes; zeroed: one. Workloads that cannot be dealt out
                               refuse others */
    bool verify;            /* results will be judged: those of several nodes all go to node 0 */
};

/* True if a runtime of several nodes is to run it. */
static inline bool duet__several_nodes(const struct duet__problem *problem)
{
    return (uint64_t)problem->nodes.rows * problem->nodes.cols > 1;
}

/* Way of judging results. */
struct duet__judging {
    bool exact; /* multiplies factors out, in n^3 operations on one core; else applies them to a
                   random vector, in n^2 on all cores */
    bool (*stop)(void *context); /* returns true to give up. Called on any thread; may be NULL */
    void *context;
};

static inline bool duet__judging_stopped(const struct duet__judging *how)
{
    return how && how->stop && how->stop(how->context);
}

/* Judgement of a result, as in LAPACK's own tests. */
struct duet__verdict {
    const char *formula; /* "||A - L L'|| / (n ||A|| eps)": a constant */
    double residual;     /* scaled, without unit; NaN or infinite never passes */
    double threshold;    /* results pass below it: LAPACK's tests use 30 */
};

struct duet__tiled; /* workloads/tiles.h */

struct duet__workload {
    const char *name;                         /* "cholesky" */
    const char *description;                  /* one line */
    const char *source;                       /* paper or book of the algorithm */
    const struct duet__parameter *parameters; /* ended by a NULL name; NULL: none */
    const char *const *kernels;               /* base names ("gemm"), NULL-ended */
    uint64_t default_n, default_tile;
    uint64_t real_n, real_tile;      /* size and tile for runs on a machine; 0: n and tile */
    const struct duet__tiled *tiled; /* properties of a tiled workload; else NULL */

    /* Checks sizes, precision and every setting. DUET_EINVAL with a message that says what to
     * do. */
    int (*check)(const struct duet__problem *problem, struct duet_message *message);
    /* Flops of the whole problem, as LAPACK's working note 41 counts them. */
    double (*flops)(const struct duet__problem *problem);
    /* Number of tasks that build will submit. */
    uint64_t (*tasks)(const struct duet__problem *problem);
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
     * process (runs/session.h), and the functions for runs in this process are NULL. NULL: no
     * program.
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
     * for discard. DUET_ENOMEM with a message that says how many bytes. Copies all it needs of
     * *problem.
     */
    int (*generate)(const struct duet__workload *self, const struct duet__problem *problem,
                    void **data, struct duet_message *message);
    /* Sets the contents, equal for equal seeds on every machine; called before each run. With
     * several nodes, fills the data that this process of the runtime owns; runtime NULL: all. */
    void (*fill)(void *data, const struct duet_runtime *runtime);
    /* Unregisters the data, so that results are in the host's memory: with several nodes, at their
     * owners, or at node 0 (problem->verify). Returns the run's error. */
    int (*retrieve)(struct duet_runtime *runtime, void *state);
    /*
     * Judges the results of a run that was filled and retrieved, on node 0; `how` NULL: in the
     * quickest way, to the end. Leaves the data unspecified, and the verdict, too, if how->stop has
     * returned true. DUET_ENOMEM with a message.
     */
    int (*verify)(void *data, const struct duet__judging *how, struct duet__verdict *verdict,
                  struct duet_message *message);
    /* Frees the data. NULL is fine. */
    void (*discard)(void *data);
};

/* Returns the workload of this name, or NULL. */
const struct duet__workload *duet__workload_find(const char *name);

/* Returns the command that measures the kernels of a problem, and the size of the last tile if it
   is smaller than the others; for g_free. */
char *duet__workload_measured(const struct duet__workload *workload,
                              const struct duet__problem *problem);

/* Returns the index-th workload, NULL beyond the last. */
const struct duet__workload *duet__workload_at(size_t index);

#endif
