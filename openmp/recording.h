/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recording of an OpenMP program: each task with the steps of its own text, in order, and its own
 * seconds between them. A task is run by one thread at a time, and the OpenMP runtime orders these,
 * so its steps need no lock; memory comes from blocks of the thread's own.
 */
#ifndef DUET_OPENMP_RECORDING_H
#define DUET_OPENMP_RECORDING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <omp-tools.h>

#include "openmp/names.h"

enum duet__step_kind {
    DUET__STEP_CREATE,  /* creates a task */
    DUET__STEP_DEPEND,  /* waits as a task with the same clauses would */
    DUET__STEP_WAIT,    /* taskwait */
    DUET__STEP_GROUP,   /* a taskgroup begins */
    DUET__STEP_UNGROUP, /* it ends, with all tasks that were created in it */
    DUET__STEP_BARRIER,
    DUET__STEP_REGION, /* a parallel region */
    DUET__STEP_LOOP,   /* a loop, or something else that a team shares */
};

struct duet__omp_step {
    struct duet__omp_step *next;
    uint64_t before_ns; /* the task's own time since the step before */
    enum duet__step_kind kind;
    union {
        struct duet__omp_task *task;     /* CREATE, DEPEND */
        struct duet__omp_region *region; /* REGION */
        struct {
            size_t children, deeper; /* GROUP: as those of struct duet__omp_task */
        };
        struct {
            const void *code; /* LOOP */
            uint64_t ns;      /* 0: it stays in the thread's own time */
            uint64_t parts;   /* number to cut it into; 0: it is not cut */
        };
    };
};

struct duet__omp_task {
    struct duet__omp_task *parent; /* its creator; NULL: implicit, or the initial one */
    const void *code;              /* place of its construct */
    const void *hint;              /* its latest construct for which the runtime calls itself */
    const void *created_under;     /* the parent's hint at its creation */
    const ompt_dependence_t *dependences;
    struct duet__omp_step *first, *last;
    uint64_t since_ns; /* begin of its present run; 0: it does not run */
    uint64_t own_ns;   /* its own time since its last step */
    uint32_t dependence_count;
    int flags;
    bool waits;      /* in a taskwait or barrier: its thread's time is not its own */
    bool undeferred; /* its creator continues when it has ended */
    /* set when the graph is made */
    uint32_t piece;                  /* number of the piece that its steps are in now */
    struct duet__omp_step *group;    /* innermost taskgroup; `next` is the one around it */
    size_t children, deeper;         /* heights of the stacks of unawaited tasks at its begin */
    struct duet__omp_region *region; /* implicit: its region */
    struct duet__omp_task *sibling;  /* implicit: the next of the region */
    unsigned index, team;            /* implicit: its number, and that of threads */
};

struct duet__omp_region {
    const void *code;
    _Atomic(struct duet__omp_task *) team; /* implicit tasks, by `sibling` */
    struct duet__omp_task *creator;
    bool of_gcc; /* gcc's code computes static loops without calling the runtime */
    /* set when the graph is made */
    uint32_t start;          /* the piece before its tasks */
    size_t children, deeper; /* as those of struct duet__omp_task */
};

struct duet__omp_recording {
    struct duet__omp_task *initial;
    /* of the first parallel region, and of the last */
    _Atomic(uint64_t) begin_ns, end_ns;
    atomic_bool of_gcc;  /* at least one region was compiled by gcc */
    bool only_makespan;  /* the makespan alone was measured */
    uint64_t bytes;      /* size of each datum of a depend clause; 0: not known */
    uint64_t loop_parts; /* parts to cut each loop into; 0: loops stay with their threads */
    bool static_loops;   /* cuts also possible static loops of gcc's */
    const char *runtime; /* name that it gives itself */
    const void *runtime_module;
};

/* Writes the graph of `recording`, in duet's format, to the file `path`, whole or not at all.
 * Returns NULL, or the error (static text). */
const char *duet__omp_write(const struct duet__omp_recording *recording, const char *path);

/* ------------------------------------------------------------------------------------------- */
/* The graph made of it                                                                         */

/* A list that grows when items are appended. */
struct duet__omp_list {
    void *items;
    size_t count, room;
};

/* A part of a task; other pieces come before or after all of it, or are independent. */
struct duet__omp_piece {
    double ns;
    size_t after, accesses; /* index of the first of each; they end where the next piece's begin */
    uint32_t kernel;
    bool is_task; /* the whole of an explicit task */
};

struct duet__piece_access {
    uint32_t data;
    const char *mode; /* as in the file */
};

struct duet__omp_graph {
    const struct duet__omp_recording *of;
    struct duet__omp_list pieces, after, accesses; /* struct duet__omp_piece, uint32_t, _access */
    struct duet__omp_list kernels;                 /* struct duet__omp_place */
    uint32_t data_count;
};

#endif
