/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core's data structures, and who may touch each field under which lock.
 *
 * Locks, all short spin locks, in the order in which they may be nested:
 *   parts lock (which parts of cut data are in force)  >  node lock (LRU, slab)  >  handle lock
 *   (dependencies, replica states)  >  everything else (copy queues, lists, pools, models, traces,
 *   places of temporary data in the host's memory), which are leaves.
 * duet__link holds the locks of all handles of one task, taken in order of address. To explain a
 * run that is stuck, registry_lock is held around a handle lock around the names' lock, and
 * extra_lock around the lock of a reference around that of the one it comes after, or around the
 * names' lock; to ask a model anew for all sizes, registry_lock around the model's. The parts lock
 * is held for long once: while a trial makes the tasks again that are held (twin.c). Fields without
 * a remark are written once, before other threads can see the object.
 */
#ifndef DUET_CORE_INTERNAL_H
#define DUET_CORE_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <duet/layout.h>
#include <duet/parts.h>
#include <duet/random.h>

#include "core/engine.h"

#include "core/atomics.h"
#include "core/hot.h"
#include "core/lines.h"
#include "core/plane.h"
#include "core/slab.h"
#include "core/spin.h"

enum {
    MASKS_MAX = 64,          /* distinct sets of workers that tasks can be restricted to */
    KINDS_MAX = 64,          /* kinds of workers: architecture and memory size */
    POOL_EXACT = 8,          /* task records with up to this many accesses fit exactly */
    POOLS = POOL_EXACT + 15, /* beyond, a pool for each power of two up to 131,072 */
    MEMORY_SIZES = 4 * 64,   /* of temporary data: four an octave */
    WAKES_MAX = 64,          /* workers one call remembers to wake; more: all are woken */
    NODE_WORDS_MAX = 65,     /* 64 memory nodes each */
    DEFAULT_WINDOW = 65536,  /* tasks */
};

/* Seconds below which a kernel is short: to hand it to another thread takes about as long. */
#define SHORT_S 10e-6

/*
 * One call into the core: who calls and when, and what the call gathers, operations to charge and
 * workers to wake when locks are free. Policies see it as their view.
 */
struct duet_view {
    struct duet_runtime *core;
    struct duet__ops *ops;
    double now;
    int by;                 /* calling worker, or DUET_SUBMITTER */
    struct worker *self;    /* that worker, or NULL */
    struct duet_task *over; /* to be ended when no lock is held: see duet__task_over */
    bool busy;   /* inside a kernel of `by`, which goes on: that worker asks for work much later */
    bool surely; /* a list that is locked is to be waited for */
    /* what is left to do when no lock is held, side by side to be looked at together */
    bool wake_all, notify;
    bool ended; /* tasks have, and somebody waits for all of them */
    uint8_t wake_count;
    unsigned wakes[WAKES_MAX];
};

/* ------------------------------------------------------------------------------------------- */
/* Tasks                                                                                        */

/* Bits of modes: those of enum duet_mode that are neither DUET_R nor DUET_W, and one more. */
enum {
    ACCESS_COMMUTES = DUET_COMMUTE & ~DUET_RW,
    ACCESS_REDUCES = DUET_REDUCE & ~DUET_RW,
    ACCESS_SCRATCH = DUET_SCRATCH & ~DUET_RW,
    ACCESS_COMBINES =
        32,            /* of what is granted: contributions are to be combined, see reduction.c */
    ACCESS_DROPS = 64, /* the handle is freed when it ends: temporary data needs no place for it */
    /* modes of which several accesses in turn are granted together */
    SHARED_MODES = 1 << DUET_R | 1 << DUET_COMMUTE | 1 << DUET_REDUCE,
};

/* Beside these bits in `modes` of a task. */
enum {
    TASK_HOLDS = 1,       /* the handles on which it commutes are its own now */
    TASK_INITIALISES = 2, /* a contribution, of the task that is kept in `prev` */
    TASK_COMBINES = 32,   /* contributions, it being the turn of what it combines */
    TASK_REVOKED = 128,   /* from who had taken it: not once more */
};

/* One access of one task; stored behind the task. 24 bytes. */
struct access {
    struct duet_handle *handle;
    /* handle lock: next in the handle's chain while not granted; then next waiter of a replica */
    struct access *next;
    uint16_t index; /* position in the task */
    uint16_t order; /* the i-th access by address of handle is the one numbered order of access i */
    uint8_t mode;   /* enum duet_mode; 0: the same handle as an earlier access of this task */
};

enum task_state {
    TASK_CREATED,  /* in nobody's hands, or the policy's */
    TASK_LISTED,   /* on a list */
    TASK_TAKEN,    /* by a worker; memory not yet found */
    TASK_FETCHING, /* memory found; `missing` copies on their way */
    TASK_RUNNING,  /* RUN was given to the engine */
    TASK_BODY,     /* likewise, and it may wait for its children: it is in no slot */
    TASK_RELEASED, /* an acquisition that the application has ended */
    TASK_AHEAD,    /* a hint that brings what a task is to read, as long as nobody writes that */
};

/* What few tasks have, behind one pointer, and mostly behind their accesses. */
struct task_extra {
    struct duet_ref *ref;         /* to it; NULL: none was asked for */
    struct duet_ref *lost;        /* to what its kernel, whose device was lost, will submit again */
    struct duet_task *next, **at; /* extra_lock: of children that come after others; NULL: none */
    struct edge *edges;           /* what it comes after: ref.c */
    unsigned edge_count;
    int status;    /* with which it has ended */
    uint32_t name; /* number of the application's; 0: none */
    uint32_t iteration;
    duet_done_fn done;
    void *done_arg;
    _Alignas(16) char args[]; /* all of them */
};

struct duet_task {
    struct duet_task *next, *prev; /* list, heap, pool or engine queue: whoever holds the task */
    uint64_t id;
    struct task_class *klass; /* NULL: an acquisition by the application */
    _Atomic(int32_t) pending; /* accesses not granted, and 1 while being linked */
    _Atomic(int32_t) missing; /* inputs on their way */
    int32_t priority;
    uint16_t access_count;
    uint8_t mask; /* index into core->masks */
    uint8_t pool; /* of its record */
    union {
        int64_t queued_ns;           /* on a list: what it adds to the load of the list's owner */
        struct duet_task *submitted; /* running: duet__link_after, the newest first */
    };
    union {
        int64_t position;   /* on a list, list lock: order within it */
        double predicted_s; /* taken: seconds that it is expected to take there; 0: not known */
        /* of a task without class: what ends it when its data is there, with no lock held; NULL:
           the application, which waits for that */
        void (*over)(struct duet_view *view, struct duet_task *task);
    };
    double work; /* flops, or bytes: that of its class may be of several sizes */
    double complexity, note, submit_s;
    _Atomic(double) ready_s;
    /* of a child: the expansion it belongs to; of the acquisition that ends one: that one */
    struct duet_expansion *parent;
    uint32_t worker; /* that took it; of a hint: the node that it is about */
    uint8_t state;   /* enum task_state; the worker's thread */
    bool kept;       /* by the worker on which it was submitted: nested.c */
    uint8_t modes;   /* bits beyond DUET_RW of its accesses' modes; most have none: see modes.c */
    struct task_extra *extra; /* NULL: it has nothing of that, or is in a pool */
    _Alignas(16) char args[DUET_ARGS_INLINE];
    struct access accesses[];
};

/* Ready tasks of one worker set within a list. List lock. */
struct queue {
    struct duet_task *head, *tail; /* DUET_HEAP: head is the heap's root */
};

struct duet_list {
    /* hardly ever written, looked at by anybody */
    struct worker *owner;   /* NULL: all share it */
    uint8_t order;          /* enum duet_order */
    struct duet_list *next; /* core->own_lists */
    /* written under the lock */
    _Alignas(LINE) _Atomic(uint32_t) gate; /* lock and length: see list.c */
    _Atomic(int64_t) expected_ns;          /* time its tasks are expected to take its owner */
    int64_t first, last; /* positions of the next task pushed at the head, at the tail */
    struct queue queues[MASKS_MAX];
};

/* ------------------------------------------------------------------------------------------- */
/* Kernels                                                                                      */

/* How alike the executions of a class are: see class.c. */
enum grain { GRAIN_SIZE, GRAIN_BAND, GRAIN_OCTAVE, GRAINS };

struct duet_codelet {
    struct duet_runtime *core;
    unsigned index;
    char name[DUET_NAME_MAX];
    double (*flops)(const void *args);
    double (*cost)(const void *args, const char *arch);
    bool tells_apart;    /* tasks of the same sizes: by cost, or by errors in what is believed */
    bool asked;          /* that, or flops are there */
    uint64_t archs;      /* architectures with an implementation */
    duet_kernel_fn *run; /* by architecture */
    duet_kernel_fn emulation;
    duet_expand_fn expand; /* NULL: an ordinary kernel */
    bool waits;            /* it is run by the engine, and may wait for its children */
    void **models;         /* by architecture: the model's state; model_lock */
    double *belief_factor; /* by architecture: model_error at work */
    uint64_t primed;       /* architectures of which a calibration has told the model */
    struct duet_codelet *next;
    /* what changes, apart from what is read for every task: by submissions, then by workers */
    _Alignas(LINE) _Atomic(struct task_class *) last; /* class of one size found last */
    _Atomic(struct task_class *) alone;     /* of tasks without data, where all of them are alike */
    _Atomic(unsigned) class_counts[GRAINS]; /* written under the registry lock */
    _Atomic(unsigned) varied;               /* tasks submitted with perturbed expectations */
    _Alignas(LINE) struct spin model_lock;
};

/* What one worker knows of a class. Its thread writes it. */
struct executions {
    _Alignas(LINE) uint64_t ran; /* finished here */
    uint64_t timed;              /* of these, and how long they took together */
    double timed_s;
    /* measured, but not yet told to the model */
    double seconds;
    unsigned samples, enough; /* told when there are as many as `enough` */
    double usual_s;           /* near their median, whatever the outliers; 0: none */
};

/* Executions of one kernel that take about equally long. */
struct task_class {
    struct duet_codelet *codelet;
    unsigned number; /* DUET_UNNUMBERED: they are of different sizes */
    unsigned index;  /* in core->classes */
    double work;
    bool counts_flops;
    uint64_t footprint, bytes;
    uint64_t able;              /* kinds of workers that can run it */
    uint64_t kinds;             /* those of a task that names none: fewer with SetArch */
    _Atomic(uint64_t) possible; /* those, and the kinds that some task has named */
    uint64_t too_big;           /* kinds that were left out for their memory alone */
    _Atomic(uint64_t) barred;   /* kinds that reductions keep tasks of the class from */
    _Atomic(struct duet_codelet *) barrier; /* what initialises such a reduction; NULL: none does */
    _Atomic(uint16_t) mask;    /* 1 + that of tasks without restriction; 0: not known */
    _Atomic(double) best_s;    /* shortest time, for the critical path */
    _Atomic(double) *expected; /* by architecture, from the model; 0: not known */
    _Atomic(double) *mean;     /* by architecture, from the engine, of the shortest; 0: not known */
    struct executions *executions; /* by worker */
    struct task_class *twin;       /* see handle */
    struct task_class *next;       /* hash chain */
};

/* ------------------------------------------------------------------------------------------- */
/* Data                                                                                         */

/* A handle's data on one memory node. */
struct replica {
    struct duet_handle *handle;
    struct slab_block *block;      /* set under the node lock, cleared under node and handle lock */
    struct replica *older, *newer; /* node lock: LRU list of replicas with a block */
    /* the rest: handle lock */
    uint32_t pins; /* uses that forbid eviction: tasks, and copies that read it */
    uint16_t node;
    bool copying; /* a copy into it is decided or in flight, or chained */
    bool leaving; /* its write-back is in flight: evict afterwards */
    bool hinted;  /* the copy into it was asked for by hints alone */
    struct access *waiters;
    struct replica *chained,
        *chain_next;            /* copies that start when this replica (the host's) is there */
    struct duet__copy copy;     /* into this replica */
    uint64_t copy_version;      /* the handle's version when the copy was decided */
    double arrival_s;           /* when it was expected then */
    struct replica *queue_next; /* copy queue lock */
};

/* Which elements of its square are a part: see duet__shape_column. */
enum shape { FULL, LOWER, UPPER, STRICTLY_LOWER, STRICTLY_UPPER, DIAGONAL };

/*
 * Parts of one whole that do not overlap: those of a cut by the application, or the blocks of an
 * expansion.
 */
struct parts {
    struct duet_handle *whole;
    struct duet_expansion *expansion; /* whose blocks they are; NULL: a cut */
    struct parts *next;               /* of the same whole, parts_lock; of the same expansion */
    bool in_force;                    /* a cut, parts_lock: see cut.c */
    bool writable;                    /* blocks: the expanding task may write them */
    unsigned count, capacity;
    struct duet_handle **handles;
    uint64_t bytes;     /* of them together */
    struct plane plane; /* of them */
};

/*
 * What comes after the next access to look at, going backwards: of accesses that are in no order
 * among each other, the `run` of them that was looked at last. Whoever lets tasks in: rank.c.
 */
struct below {
    unsigned pass;          /* an earlier one: nothing comes after */
    bool reads, next_reads; /* does the run read; what comes after it? */
    uintptr_t run;
    double run_s, next_s; /* the longest path from the run on; from what comes after it */
};

struct duet_handle {
    struct spin lock;
    atomic_bool family;     /* handle lock: it is part of a cut, or has been cut; never unset */
    bool apart;             /* parts_lock: only parts of it are in force */
    bool entered;           /* registry_lock: its memory is known to region.c */
    uint8_t active_mode;    /* handle lock, as all of the next five: mode of the granted accesses */
    _Atomic(bool) poisoned; /* what it holds is not valid; read also by who has it granted */
    uint32_t active;        /* granted and unfinished accesses */
    struct access *head, *tail;       /* accesses not granted yet, in order of submission */
    uint64_t version;                 /* counts writes */
    double write_path_s, read_path_s; /* critical path up to the last write, the last reads */
    uint32_t seen_as;                 /* 1 + its number in what has entered; 0: none so far */
    unsigned seen_reset;              /* number of the measurement that this is of */
    uint64_t id, bytes, slab_bytes;
    _Atomic(void *) data; /* in the host's memory, written once */
    size_t rows, cols, ld, element_bytes;
    struct duet_task *acquired; /* handle lock: the application's acquisition, or what frees it */
    bool held;                  /* handle lock, as the next two: by a task that commutes on it */
    bool temporary;             /* `data` is the core's: NULL until it is needed, see transfer.c */
    bool elsewhere;             /* its contents may be nowhere here: acquire.c */
    bool damaged; /* damage_lock: elements in no region of `damage` are not valid: failure.c */
    struct damage *damage; /* damage_lock: writes to regions, the newest first; NULL of a part */
    struct duet_task *waiting, *last_waiting; /* to hold it, by `next` */
    struct parts *of;                         /* that it is one of; NULL: it was registered */
    struct parts *cuts;                       /* parts_lock: of it, the newest first */
    size_t row, col;                          /* of a part: where it begins in its whole */
    uint8_t shape;                            /* of a part: enum shape */
    struct layout *layout;       /* what it is instead of a matrix: layout.c; NULL: it is one */
    struct reduction *reduction; /* how it is reduced; NULL: not */
    struct contribution *contribution; /* that this is to another one; NULL: none */
    struct below below;
    struct duet_handle *twin; /* the same in the trial that is being made; who lets tasks in */
    struct duet_handle *next, *prev; /* core->handles, registry lock */
    struct replica host;
    _Atomic(void *) mark;      /* the engine's: duet__handle_mark */
    void *note;                /* duet__handle_note: the application's thread */
    struct replica **replicas; /* by node; NULL until first used; handle lock */
    /* bit a node: valid, being copied to. Written under the handle lock, read by policies without
     */
    _Atomic(uint64_t) *valid, *coming;
};

struct node {
    struct spin lock;
    struct slab slab;                /* node lock */
    struct replica *oldest, *newest; /* node lock */
    _Atomic(uint32_t) pinned;        /* replicas with pins */
    uint64_t leaving_bytes;          /* node lock: write-backs in flight that will make room */
    _Atomic(bool) blocked;           /* a worker of this node waits for room */
    _Atomic(bool) lost;              /* the device is gone: nothing becomes valid here any more */
    unsigned worker;                 /* that starts this node's copies */
    uint64_t evictions, write_backs; /* node lock */
    struct spin pool_lock;
    struct replica *spare;   /* pool_lock */
    struct replica **arrays; /* pool_lock */
    unsigned array_count;
};

/* ------------------------------------------------------------------------------------------- */
/* Workers and the whole                                                                        */

/* Nested tasks that a worker keeps to itself (nested.c). Its thread only. */
struct nested {
    const struct task_class *running; /* of the kernel that the engine was given last; NULL: none */
    double now;                       /* when it was given */
    uint64_t ended;                   /* of those that were kept, not counted in `finished` */
    uint64_t next, end, reserved;     /* numbers left of a bundle, and how many it had; 0: none */
    struct duet_task *oldest, *newest; /* `next` of each is the one after it */
    struct duet_task *spare;           /* records, chained by `next` */
};

/* Records of tasks that a worker has to use again, or to return to their pool. Its thread only. */
struct freed {
    struct duet_task *first, *last;
    unsigned count;
};

struct worker {
    /* hardly ever written, looked at by anybody */
    _Alignas(LINE) unsigned index, arch, node, kind, window, window_short;
    _Atomic(bool) lost;    /* its device is gone; set by its thread */
    _Atomic(bool) fed;     /* it found a task when it last looked for one; likewise */
    _Atomic(bool) revokes; /* the policy may give away what it has taken */
    _Atomic(bool) waits;   /* some task of its slots has not begun; likewise, see revoke.c */
    struct duet_task **slots;
    unsigned *victims;
    /* this worker's thread */
    _Alignas(LINE) unsigned taken; /* tasks in slots */
    unsigned copying;              /* copies given to the engine and not done */
    bool drained;                  /* counted as such in the core, which is stopping */
    bool at_body;                  /* RUN or RESUME was given for a task that waits, and it has
                                      neither paused nor ended since */
    unsigned depth;                /* tasks that have begun and may wait */
    struct duet_expansion *body;   /* of the newest task that has begun and may wait */
    uint64_t rng;
    _Atomic(uint64_t) finished; /* tasks that ended in calls of this worker; read at any time */
    _Atomic(uint64_t) internal; /* of these, none of the application's; counted before; likewise */
    struct freed freed[POOL_EXACT + 1];
    struct nested nested;
    struct duet_task **batch; /* room for tasks that a completion made ready */
    size_t batch_capacity;
    /* written by this worker's thread, read at any time */
    _Atomic(double) busy_s, last_end_s, flops;
    _Atomic(uint64_t) tasks, accesses, reads, hits, merged;
    _Atomic(uint64_t) pushes, pops, steals, steal_attempts, revocations;
    /* this worker's thread, and those who ask for statistics: trace_lock */
    struct spin trace_lock;
    bool events_lost;
    struct duet_event *events;
    size_t event_count, event_capacity;
    struct duet_trace_access *touched; /* of the recorded tasks */
    size_t touched_count, touched_capacity;
    uint64_t bytes_in, bytes_out, bytes_between, copies_in, copies_out, copies_between;
    /* anybody */
    _Alignas(LINE) struct spin copy_lock;
    struct replica *copy_head, *copy_tail; /* copy_lock: copies to start */
    struct replica *idle_head, *idle_tail; /* the same, when there are none of these: of hints */
    _Atomic(uint32_t) copies;              /* how many; written under copy_lock */
    _Atomic(int64_t) taken_ns; /* expected time of its tasks in slots; written by its thread */
    _Alignas(LINE) struct duet_list list;
};

/* Records of tasks with the same number of accesses. */
struct pool {
    _Alignas(LINE) struct spin lock;
    struct duet_task *ready; /* lock */
    void **chunks;           /* lock */
    size_t chunk_count, chunk_capacity;
    char *fresh, *fresh_end; /* lock: part of the last chunk not yet used */
    /* anybody pushes; whoever holds the lock takes all */
    _Alignas(LINE) _Atomic(struct duet_task *) returned;
};

/* A set of workers that tasks are restricted to. */
struct mask {
    uint64_t kinds;
    uint64_t *workers; /* bit a worker */
};

/* A measurement known before its kernel was registered. */
struct prime {
    char kernel[DUET_NAME_MAX];
    unsigned arch;
    double work, mean_s;
    uint64_t samples;
    struct prime *next;
};

/* Texts of the application and its marks in the trace: names.c. All under the lock. */
struct names {
    struct spin lock;
    struct name **list, **table; /* by number from 1; hash chains */
    size_t count, capacity;      /* of both */
    struct duet_trace_mark *marks;
    size_t mark_count, mark_capacity;
    size_t phase; /* 1 + the mark that is the phase which goes on; 0: none does */
};

struct duet_runtime {
    struct duet_machine machine;
    _Atomic(const struct duet_policy *) policy; /* another one once a choice was made: choose.c */
    struct choice *choice;                      /* NULL: there is none to be made */
    void *policy_state;
    char *worker_states; /* policy->state_size_a_worker (rounded) for each worker */
    size_t state_bytes, worker_state_bytes, data_state_bytes, place_state_bytes;
    bool begins;                             /* the policy's init is called: it may make lists */
    const struct duet_policy *parameters_of; /* the one that begins, or has begun */
    double parameters[DUET_PARAMETERS_MAX];
    const struct duet_model *model;
    const struct duet__engine_ops *ops;
    void *engine;
    bool set_arch, strict, record, record_accesses, computes, keep_going, nearest_source;
    bool keeps; /* workers keep nested tasks to themselves */
    enum duet__priorities priorities;
    int32_t priority_bits;   /* of what tasks are submitted with: all or none */
    struct entered *entered; /* what bounds are computed from; NULL: it is not kept */
    struct held *held;       /* tasks of the application wait for it to wait; NULL: they do not */
    /* where tasks and acquisitions go that were made: ops->submitted, or held.c before that */
    void (*enter)(void *enter_for, struct duet_task *task);
    void *enter_for;
    const struct duet__gate *gate; /* asked first, by the application; NULL: nobody is */
    void *gate_arg;
    double model_error, perturbation;
    uint64_t seed;
    size_t window;
    unsigned accelerators; /* memory nodes of devices */
    unsigned node_words, worker_words;

    unsigned kind_count;
    struct {
        unsigned arch;
        uint64_t capacity_bytes; /* UINT64_MAX: the host */
        bool device;
        _Atomic(unsigned) living; /* workers of this kind that are not lost */
    } kinds[KINDS_MAX];
    _Atomic(uint64_t) dead_kinds; /* kinds of which no worker lives */

    struct worker *workers;
    struct node *nodes;
    _Atomic(int64_t) *queued_ns; /* copies under way, by link and node: see source.c */
    struct duet_list shared;
    struct duet_list *own_lists; /* of the policy: duet_view_new_list */

    struct spin mask_lock;
    _Atomic(unsigned) mask_count;
    struct mask masks[MASKS_MAX];

    struct pool pools[POOLS];
    atomic_bool extras; /* some task has, or had, one */
    struct spin extra_lock;
    struct duet_task *children; /* extra_lock: those that come after others without data */
    unsigned resets;            /* duet_stats_reset: written while nothing is in flight */
    struct names names;
    void *kept; /* by the library's start-up */
    void (*free_kept)(void *data);

    struct spin registry_lock; /* codelets, classes, handles, primes */
    struct duet_codelet *codelets, *last_codelet;
    unsigned codelet_count;
    struct task_class **class_table; /* hash chains */
    size_t class_buckets;
    struct task_class **classes; /* in order of appearance */
    size_t class_count, class_capacity;
    double *class_seconds; /* by architecture: for duet_class_stats */
    uint64_t *class_ran;   /* by worker: likewise */
    struct duet_handle *handles;
    struct region *regions; /* registry_lock: memory that is registered */
    uint64_t handle_count;
    _Atomic(uint64_t) registered_bytes; /* of handles that are no blocks of others */
    struct prime *primes;

    struct spin memory_lock;
    struct spare_memory *spare_memory[MEMORY_SIZES]; /* memory_lock: see temporary.c */
    uint64_t spare_bytes;                            /* memory_lock */

    atomic_bool cut;        /* some data is, or was */
    struct spin parts_lock; /* which parts of cut data are in force, while tasks are linked */
    uint64_t *hosts;        /* bit a worker: its memory is the host's */
    /* changes seldom while there is enough to do, and is looked at for every task */
    _Atomic(uint64_t) *hungry; /* bit a worker: its last duet__next said IDLE for want of work */
    /* by those who submit */
    _Alignas(LINE) _Atomic(uint64_t) submitted; /* tasks created: the last id */
    /* how many had finished at some time: enough to see that the window is not full */
    _Atomic(uint64_t) finished_seen;
    _Atomic(uint64_t) finished; /* successors released, in calls of no worker: see finished.c */
    _Atomic(uint64_t) internal; /* as a worker's, likewise */
    /* by who ends a task while submissions wait, see window_open: how many, and how many open it */
    _Alignas(LINE) _Atomic(uint64_t) ended, open_at;
    /* looked at for every task */
    _Alignas(LINE) _Atomic(unsigned) throttled; /* submissions that wait: the window is full */
    _Atomic(unsigned) waits;                    /* for all tasks to finish */
    _Atomic(bool) stopping;
    _Atomic(unsigned) drained; /* workers that have had nothing left since then */
    _Atomic(bool) told;        /* there is a `message` */
    _Atomic(bool) trouble;     /* something has failed, some time */
    _Atomic(bool) stopped;     /* what has not begun does not run any more */
    _Atomic(int) error;        /* first error of the run */
    _Atomic(uint64_t) failed_tasks, cancelled_tasks;
    atomic_bool lends;         /* such an acquisition was made */
    _Atomic(unsigned) awaited; /* acquisitions that were granted and not ended: acquire.c */
    struct spin message_lock;
    struct duet_message run_message;        /* message_lock: of that error */
    struct duet_message message;            /* message_lock: of the last call that failed */
    struct spin damage_lock;                /* which parts of handles are not valid */
    _Alignas(LINE) struct spin submit_lock; /* writing the three below */
    uint64_t submit_rng;
    _Atomic(double) first_submit_s; /* INFINITY: nothing was submitted */
    _Atomic(double) critical_path_s;
};

#include "core/calls.h"

#endif
