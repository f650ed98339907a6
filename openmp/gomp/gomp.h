/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface of gcc's OpenMP library over duet; that of LLVM's is made of the same in kmpc.c. A
 * parallel region is a team whose threads are the CPU workers of a runtime of that size: each
 * implicit task is a member (real/real.h), and each deferred explicit task is a child of the task
 * that creates it. Names: GOMP_* and omp_* as compilers call them (GCC 12), everything else as
 * OpenMP 5.1 has it.
 */
#ifndef DUET_OPENMP_GOMP_H
#define DUET_OPENMP_GOMP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/duet.h>

/* Begins the definition of a function that programs call. */
#define DUET__ABI(type, name, ...)                                                                 \
    DUET_EXPORT type name(__VA_ARGS__);                                                            \
    type name(__VA_ARGS__)

/* Define functions for programs: one expression, one statement, or the end of the program, since
 * the compiler's own library, reached otherwise, does not know duet's threads. */
#define GIVE(type, name, value, ...)                                                               \
    DUET__ABI(type, name, __VA_ARGS__)                                                             \
    {                                                                                              \
        return value;                                                                              \
    }
#define CALL(name, action, ...)                                                                    \
    DUET__ABI(void, name, __VA_ARGS__)                                                             \
    {                                                                                              \
        action;                                                                                    \
    }
#define REFUSED(name) CALL(name, duet__omp_refuse(#name), void)

enum { OMP_LINE = 64, OMP_SHARES = 8, OMP_LEVELS = 8 };

/* Kinds of schedules, as in OMP_SCHEDULE and omp_sched_t. */
enum omp_schedule {
    OMP_RUNTIME,
    OMP_STATIC,
    OMP_DYNAMIC,
    OMP_GUIDED,
    OMP_AUTO,
    OMP_KINDS = 7 /* mask of the kind in GOMP_loop_start's argument */
};

/* Internal control variables of a task's data environment. */
struct omp_icv {
    _Alignas(16) unsigned threads; /* nthreads-var; aligned, as its address is kept with flags */
    bool dynamic;
    unsigned schedule; /* enum omp_schedule; bit 31: monotonic */
    int chunk;
    unsigned levels; /* max-active-levels-var */
    unsigned team_limit, teams;
    unsigned league, place;  /* teams of the league, and which one it is in */
    unsigned limit;          /* thread-limit-var */
    _Atomic(unsigned) *used; /* threads of the contention group; NULL: they have no limit */
    struct omp_team *team;   /* team of the task that has these variables */
    struct omp_icv *next;    /* next in the list of variables that the team frees */
};

/* Settings of the process, from OMP_*, read once. */
struct omp_settings {
    struct omp_icv icv;
    unsigned threads[OMP_LEVELS], depth; /* OMP_NUM_THREADS by level of regions; their number */
    unsigned cores;
    int priority; /* max-task-priority-var */
    bool cancellation, binds;
    unsigned bind; /* omp_proc_bind_t */
    double spin_s; /* time that waiting threads spin (OMP_WAIT_POLICY); below 0: duet's default */
    size_t stack_bytes;
    /* libgomp's functions for the caller's default allocator; NULL: libgomp is not loaded */
    uintptr_t (*allocator)(void);
    void (*set_allocator)(uintptr_t allocator);
};

/* Returns the settings. A bad one ends the process with a line on standard error and status 2. */
const struct omp_settings *duet__omp_settings(void);

/* A loop: its values, the number of its iterations, and how they are dealt. */
struct omp_values {
    uint64_t start, stop, step;
    uint64_t count, chunk;
    uint64_t unit; /* chunks are multiples of it */
    unsigned schedule;
};

/* A worksharing construct that members of a team are in. */
struct omp_share {
    /* twice the number of the construct that it serves next or now, plus 1 when it is set up */
    _Alignas(OMP_LINE) _Atomic(uint64_t) turn;
    _Atomic(bool) claimed; /* a member sets it up */
    _Atomic(bool) cancelled;
    _Atomic(unsigned) left; /* members that have left it */
    struct omp_values loop;
    bool ordered_loop;
    unsigned dimensions;       /* doacross: of `counts` */
    uint64_t *counts;          /* doacross: iterations of each dimension */
    _Atomic(uint64_t) *posted; /* doacross: by outer iteration, inner ones that were posted */
    uintptr_t *reductions;     /* of the member that set it up */
    void *memory;              /* memory that the members share */
    _Alignas(OMP_LINE) _Atomic(uint64_t) next; /* first iteration that nobody has */
    _Atomic(uint64_t) ordered;                 /* first iteration whose turn has not passed */
};

struct omp_team;

/* Members of a team are its threads: facts of one beside its task, for that thread alone. */
struct omp_member {
    _Alignas(OMP_LINE) uint64_t constructs, singles; /* constructs met so far; singles among them */
    struct omp_share *share;                         /* the current one; NULL: none */
    uint64_t trips;                                  /* static schedule: chunks taken */
    uint64_t first, end;                             /* iterations of the current chunk */
    unsigned created;                                /* tasks so far */
    uint64_t unfinished;                             /* tasks of the runtime when it looked last */
    bool shown;                                      /* its place, once */
    void *doacross;                                  /* of kmpc.c */
};

/* A taskgroup, or a region with reductions. */
struct omp_group {
    struct omp_group *up;
    uintptr_t *reductions; /* the newest; NULL: none */
    _Atomic(bool) cancelled;
    _Atomic(uint64_t) tasks; /* deferred ones that have not ended */
    bool alone;              /* its task had no other children when it began */
    bool workshare;          /* it is of a worksharing construct */
};

/* An address in depend clauses of the children of one task. */
struct omp_token {
    const void *address;
    struct duet_handle *handle;
    struct omp_token *next; /* in its bucket, or among spare ones */
    char byte;              /* the handle's data */
};

struct omp_tokens {
    struct omp_token **buckets;
    size_t count, room; /* room: a power of two */
};

/* A task region that a thread executes, on that thread's stack. */
struct omp_task {
    struct omp_task *up; /* the task on top of which it runs; NULL: none */
    struct omp_team *team;
    struct omp_member *member; /* NULL: an explicit task */
    unsigned thread;           /* omp_get_thread_num */
    bool final;
    bool waits;                       /* children were deferred since it waited for them last */
    struct duet_expansion *expansion; /* NULL: children run at once */
    struct omp_group *group;
    bool shares; /* its children count as its creator's */
    const struct omp_icv *icv;
    struct omp_icv *own; /* `icv`, if no other task has it; else NULL */
    struct omp_tokens tokens;
    struct event *events; /* of tasks with the clause detach that ran at once */
};

/* A team, and the region that it executes. */
struct omp_team {
    struct omp_runtime *on; /* NULL: of one thread, whose tasks run at once */
    unsigned size, level, active_level;
    struct omp_task *up; /* the task that met the region */
    void (*run)(void *data);
    void *data;
    struct omp_icv icv;
    struct omp_group *group;        /* of reductions of the region; NULL: none */
    _Atomic(struct omp_icv *) icvs; /* list of the variables that its tasks have changed */
    struct omp_member *members;
    uintptr_t allocator; /* default allocator of the thread that met the region */
    void *copied;        /* copyprivate */
    bool shared_first;   /* the region is one worksharing construct: its members begin in it */
    _Alignas(OMP_LINE) _Atomic(unsigned) arrived; /* members at the barrier */
    _Atomic(unsigned) asleep;                     /* members that wait in duet__team_wait */
    _Atomic(unsigned) full; /* those that wait for tasks to end before they create more */
    _Atomic(bool) open;     /* all members have been made, and may begin */
    _Atomic(bool) cancelled;
    _Atomic(unsigned) cancel_arrived;           /* members at a barrier that cancelling ends */
    _Alignas(OMP_LINE) _Atomic(uint64_t) phase; /* barriers passed */
    _Atomic(bool) deferred; /* some task was deferred since the last barrier: read with `phase` */
    _Atomic(uint64_t) cancel_phase;
    _Alignas(OMP_LINE) _Atomic(uint64_t) singles; /* single constructs that have their thread */
    struct omp_share shares[OMP_SHARES];
};

/* A runtime of duet for teams of one size. */
struct omp_runtime {
    unsigned size;
    _Atomic(bool) busy; /* it executes a region */
    struct duet_runtime *core;
    void *engine;
    bool records;
    struct omp_kernels *kernels; /* codelets by function */
    struct omp_token **spare;    /* by worker: tokens of tasks that have ended */
    _Atomic(struct omp_runtime *) next;
    struct omp_team team;
};

/* ------------------------------------------------------------------------------------------- */
/* team.c */

extern _Thread_local struct omp_task *duet__omp_now __attribute__((tls_model("initial-exec")));

/* Makes the initial task of a thread that has none. */
struct omp_task *duet__omp_first(void);

/* Returns the task that the calling thread executes. */
static inline struct omp_task *omp_now(void)
{
    struct omp_task *task = duet__omp_now;
    return task ? task : duet__omp_first();
}

/*
 * Executes a parallel region of `wanted` threads (0: as many as the environment says). `shared`: it
 * is one worksharing construct, which the caller has set up; NULL: it is not.
 */
void duet__omp_region(void (*run)(void *), void *data, unsigned wanted,
                      const struct omp_values *shared, struct omp_group *group);

/* Executes a parallel region whose kernel is another function than `run`. */
void duet__omp_region_as(void (*kernel)(void *), void (*run)(void *), void *data, unsigned wanted);

/* A region of one thread, on memory of the caller between its begin and its end. */
struct omp_alone {
    struct omp_team team;
    struct omp_member member;
    struct omp_task task;
};
void duet__omp_alone_begin(struct omp_alone *alone, void (*run)(void *), void *data,
                           const struct omp_values *shared, struct omp_group *group);
void duet__omp_alone_end(struct omp_alone *alone);

/* Runs a team of a league, or a target region, like a program with these variables; `limit` of
 * threads, 0: theirs. */
void duet__omp_apart(void (*run)(void *), void *data, const struct omp_icv *icv, unsigned limit);

/*
 * Waits for all members of the team and their tasks. `ends`: a cancellation ends the wait too, and
 * the function then returns true.
 */
bool duet__omp_barrier(bool ends);

/* Waits until `reached`, executing tasks of the team meanwhile. */
void duet__omp_wait(struct omp_task *task, bool (*reached)(void *arg), void *arg);

/* Lets waiting members look again. */
void duet__omp_call(struct omp_team *team);

/* Tells the core that the calling thread spins: its other hardware thread gets more of it. */
static inline void omp_pause(void)
{
#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
}

/* Pauses for a moment in a loop that waits for another thread; `tries` counts its rounds. */
void duet__omp_rest(unsigned tries);

/* Returns variables that the task may change. */
struct omp_icv *duet__omp_own_icv(struct omp_task *task);

/* Ends the process after a line on standard error. */
__attribute__((noreturn)) void duet__omp_die(const char *format, ...) DUET_PRINTF(1, 2);

/* Says that a program uses what is not here, and ends it. */
__attribute__((noreturn)) void duet__omp_refuse(const char *name);

/* kernels.c */
struct omp_kernels *duet__omp_kernels_new(void);
/* Returns the codelet of a function, made when it is first met; `kind` as in names of places. */
const struct duet_codelet *duet__omp_kernel(struct omp_runtime *on, void (*run)(void *),
                                            const char *kind);
/* Gives kernels the names of their places in the program's source. */
void duet__omp_rename(struct omp_runtime *on);

/* ------------------------------------------------------------------------------------------- */
/* task.c */

/* Waits for the children of a task, and (duet__omp_children) frees their tokens. */
void duet__omp_wait_children(struct omp_task *task);
void duet__omp_children(struct omp_task *task);
int duet__omp_run_task(struct duet_expansion *expansion, const struct duet_call *call);
int duet__omp_run_member(struct duet_expansion *expansion, const struct duet_call *call);

/*
 * Registers reductions: `data` of so many threads, after `old`. `as`: those of another thread that
 * has made the memory, or NULL.
 */
void duet__omp_reductions(uintptr_t *data, const uintptr_t *old, const uintptr_t *as,
                          unsigned threads);

/* Begins a task that runs at once, on top of the current one, and ends it. */
void duet__omp_task_begin(struct omp_task *task, bool final);
void duet__omp_task_end(struct omp_task *task);

/* Returns memory for a task's data; if `detached`, an event lies in front of the data. */
void *duet__omp_block_new(size_t bytes, bool detached);
/* Returns the handle of the event in front of a task's data. */
void *duet__omp_event_of(void *block);

struct omp_task_traits {
    bool final, detached, undeferred;
    int priority;
    void **depend; /* depend clauses in the format of GOMP_task; NULL: none */
};

/* Creates the task run(block), of the kernel, and gives it the block, of duet__omp_block_new. */
void duet__omp_task_new(void (*run)(void *), void (*kernel)(void *), void *block,
                        const struct omp_task_traits *traits);

/* A loop to be cut into tasks. */
struct omp_loop {
    uint64_t start, step, count, tasks;
    uint64_t chunk, longer; /* iterations of a task; the first `longer` tasks have one more */
};

/* Cuts `count` iterations by num_tasks or grainsize; wanted 0: a task for each thread. */
void duet__omp_loop_cut(struct omp_loop *loop, bool grainsize, bool strict, uint64_t wanted);

void GOMP_taskgroup_start(void);
void GOMP_taskgroup_end(void);
void GOMP_taskgroup_reduction_unregister(uintptr_t *data);

/* ------------------------------------------------------------------------------------------- */
/* settings.c and affinity.c */

int omp_get_team_num(void);
int omp_get_num_teams(void);
int omp_get_ancestor_thread_num(int level);
void omp_display_affinity(const char *text);
extern bool duet__omp_shows_affinity; /* each thread of a new team shows where it runs */

/* ------------------------------------------------------------------------------------------- */
/* work.c */

/* Sets up a loop from the values of a program; `up` as in unsigned loops. */
void duet__omp_loop_set(struct omp_values *loop, bool is_signed, bool up, uint64_t start,
                        uint64_t end, uint64_t step, unsigned schedule, uint64_t chunk);
/*
 * Enters a loop that duet__omp_loop_set has described. `memory` may be NULL; else *memory is the
 * number of bytes that the members share, and becomes the address of that memory, which is zeroed.
 */
void duet__omp_loop_begin(const struct omp_values *loop, bool ordered, void **memory);
void duet__omp_shares_reset(struct omp_team *team);

#endif
