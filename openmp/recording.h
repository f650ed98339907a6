/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an OpenMP program did, as it is recorded: each task with the steps of its own text, in
 * order, and its own seconds between them. A task is run by one thread at a time, and the OpenMP
 * runtime orders these, so a task's steps need no lock; memory comes from blocks of the thread's
 * own.
 */
#ifndef DUET_OPENMP_RECORDING_H
#define DUET_OPENMP_RECORDING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <omp-tools.h>

enum duet__step_kind {
    DUET__STEP_CREATE,  /* of a task */
    DUET__STEP_DEPEND,  /* waits for what a task with the same clauses would wait for */
    DUET__STEP_WAIT,    /* taskwait */
    DUET__STEP_GROUP,   /* a taskgroup begins */
    DUET__STEP_UNGROUP, /* and ends, with all tasks that were created in it */
    DUET__STEP_BARRIER,
    DUET__STEP_REGION, /* parallel */
    DUET__STEP_LOOP,   /* or something else that a team shares */
};

struct duet__omp_step {
    struct duet__omp_step *next;
    uint64_t before_ns; /* the task's own time since the step before */
    enum duet__step_kind kind;
    union {
        struct duet__omp_task *task;     /* CREATE, DEPEND */
        struct duet__omp_region *region; /* REGION */
        struct {
            size_t children, deeper; /* GROUP: as those of a task below */
        };
        struct {
            const void *code; /* LOOP */
            uint64_t ns;      /* 0: it stays with its thread, whose own time has it */
            uint64_t parts;   /* 0: it is not to be cut */
        };
    };
};

struct duet__omp_task {
    struct duet__omp_task *parent; /* that created it; NULL: implicit, or the initial one */
    const void *code;              /* where its construct is */
    const void *hint;              /* its latest construct that the runtime calls itself for */
    const void *created_under;     /* the parent's hint then */
    const ompt_dependence_t *dependences;
    struct duet__omp_step *first, *last;
    uint64_t since_ns; /* it runs since then; 0: it does not */
    uint64_t own_ns;   /* its own time since its last step */
    uint32_t dependence_count;
    int flags;
    bool waits;      /* in a taskwait or barrier: what its thread does is not its own time */
    bool undeferred; /* its creator goes on when it has ended */
    /* when the graph is made of it */
    uint32_t piece;               /* that its steps belong to now */
    struct duet__omp_step *group; /* innermost taskgroup; `next` is the one around it */
    size_t children, deeper;      /* where its own begin, of tasks that nobody has waited for yet */
    struct duet__omp_region *region; /* implicit: of that */
    struct duet__omp_task *sibling;  /* implicit: another one of the region */
    unsigned index, team;            /* implicit: its number among so many */
};

struct duet__omp_region {
    const void *code;
    _Atomic(struct duet__omp_task *) team; /* implicit tasks, by `sibling` */
    struct duet__omp_task *creator;
    bool of_gcc; /* which computes static loops without calling the runtime */
    /* when the graph is made of it */
    uint32_t start;          /* the piece that its tasks go on after */
    size_t children, deeper; /* as those of a task */
};

struct duet__omp_recording {
    struct duet__omp_task *initial;
    /* of the first parallel region, and of the last */
    _Atomic(uint64_t) begin_ns, end_ns;
    atomic_bool of_gcc;  /* a region is */
    bool only_makespan;  /* no task was recorded */
    uint64_t bytes;      /* what each depend clause names has so many; 0: not known */
    uint64_t loop_parts; /* that each loop is cut into; 0: it stays with its threads */
    bool static_loops;   /* also what may be a static loop of gcc's */
    const char *runtime; /* its name for itself */
    const void *runtime_module;
};

/*
 * Writes the graph that `recording` is, in duet's format, to the file `path`, whole or not at all.
 * Returns NULL, or says what went wrong (static text).
 */
const char *duet__omp_write(const struct duet__omp_recording *recording, const char *path);

/* ------------------------------------------------------------------------------------------- */
/* The graph made of it                                                                         */

/* Grows as items are put behind it. */
struct duet__omp_list {
    void *items;
    size_t count, room;
};

/* A part of a task, which nothing that other tasks do can fall into. */
struct duet__omp_piece {
    double ns;
    size_t after, accesses; /* where its own begin; they end where the next one's begin */
    uint32_t kernel;
    bool is_task; /* the whole of an explicit task */
};

struct duet__piece_access {
    uint32_t data;
    const char *mode; /* as in the file */
};

/*
 * The code of a construct, or of a parallel region outside its tasks. It is a kernel, together with
 * the other copies of the same construct that a compiler makes of a loop.
 */
struct duet__omp_place {
    const void *code; /* NULL: none */
    const char *kind; /* "", "parallel:", "loop:"; "serial" and "barrier" have no code */
    /* found by duet__omp_names: */
    uint32_t kernel; /* its number in the file */
    char *name;      /* of the kernel; NULL: an earlier place of it has that */
    char *key;       /* equal for all places of a kernel; NULL: not known */
    size_t rank;     /* of the name among the same ones, by code */
};

struct duet__omp_graph {
    const struct duet__omp_recording *of;
    struct duet__omp_list pieces, after, accesses; /* struct duet__omp_piece, uint32_t, _access */
    struct duet__omp_list kernels;                 /* struct duet__omp_place */
    uint32_t data_count;
};

/* Makes `graph`, zeroed but for its recording, which is used up. False: there is no memory. */
bool duet__omp_graph_make(struct duet__omp_graph *graph);

void duet__omp_graph_fini(struct duet__omp_graph *graph);

/*
 * A function that the program calls, and that LLVM's runtime has not, or not right; or NULL. From
 * then on a fault (SIGSEGV) of such a program in LLVM's or gcc's runtime ends it with a line on
 * standard error and exit status 2.
 */
const char *duet__omp_beyond(void);

/* Where the program or library that has `code` begins; NULL: nowhere known. */
const void *duet__omp_module(const void *code);

/*
 * Numbers the kernels that `count` places are, and names the first place of each: its kind, and
 * "file.c:12" where the program's debugging information tells, else "module+0x1234", which is the
 * same in every run. Places of one line of one function are one kernel, but in programs of gcc.
 * False: there is no memory.
 */
bool duet__omp_names(struct duet__omp_place *places, size_t count, bool of_gcc);

#endif
