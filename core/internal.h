/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core's data structures, and the lock under which each field may be touched.
 *
 * All locks are short spin locks. They may be nested in this order: parts lock (which parts of cut
 * data are in force), node lock (LRU, slab), handle lock (dependencies, replica states), and then
 * one of the leaves: copy queues, lists (and within these near_lock), pools, models, traces, places
 * of temporary data in the host's memory. duet__link holds the locks of all handles of one task,
 * taken in order of address. Exceptions: the explanation of a stuck run holds registry_lock around
 * a handle lock around the names' lock, and extra_lock around the lock of a reference around that
 * of its predecessor, or around the names' lock; asking a model anew for all sizes holds
 * registry_lock around the model's. The parts lock is held for long only while a trial copies the
 * held tasks (twin.c). Fields without a remark are written once, before other threads can see the
 * object.
 */
#ifndef DUET_CORE_INTERNAL_H
#define DUET_CORE_INTERNAL_H

#include <stdarg.h>
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
#include "core/plane.h"
#include "core/slab.h"

enum {
    MASKS_MAX = 64,          /* distinct sets of workers that tasks can be restricted to */
    MASK_MEMBER = 255,       /* `mask` of a task that no policy sees */
    KINDS_MAX = 64,          /* kinds of workers: architecture and memory size */
    POOL_EXACT = 8,          /* number of accesses up to which each has a pool of its own */
    POOLS = POOL_EXACT + 15, /* more accesses: a pool for each power of two up to 131,072 */
    MEMORY_SIZES = 4 * 64,   /* size classes of temporary data: four an octave */
    WAKES_MAX = 64,          /* workers to wake in one call; more: all are woken */
    NODE_WORDS_MAX = 65,     /* words of 64 memory nodes each */
    DEFAULT_WINDOW = 65536,  /* unfinished tasks */
};

/* Seconds below which a kernel is short: handing it to another thread takes about as long. */
#define SHORT_S 10e-6

/*
 * A call into the core: its caller and date, the operations to charge and the workers to wake when
 * all locks are free. Policies see it as their view.
 */
struct duet_view {
    struct duet_runtime *core;
    struct duet__ops *ops;
    double now;
    int by;                 /* calling worker, or DUET_SUBMITTER */
    struct worker *self;    /* worker `by`, or NULL */
    struct duet_task *over; /* task to be ended when no lock is held: see duet__task_over */
    bool busy;              /* called in a kernel of `by`: that worker asks for work much later */
    bool surely;            /* a locked list is waited for */
    /* work that is left until no lock is held; adjacent, to be tested together */
    bool wake_all, notify;
    bool ended; /* tasks have ended, and a thread waits for all of them */
    uint8_t wake_count;
    unsigned wakes[WAKES_MAX];
};

/* ------------------------------------------------------------------------------------------- */
/* Tasks                                                                                        */

/* Bits of access modes beyond DUET_R and DUET_W: those of enum duet_mode, and two of the core. */
enum {
    ACCESS_COMMUTES = DUET_COMMUTE & ~DUET_RW,
    ACCESS_REDUCES = DUET_REDUCE & ~DUET_RW,
    ACCESS_SCRATCH = DUET_SCRATCH & ~DUET_RW,
    ACCESS_COMBINES = 32, /* contributions are to be combined, see reduction.c */
    ACCESS_DROPS = 64,    /* the access ends the handle: temporary data needs no place for it */
    /* modes in which several successive accesses are granted together */
    SHARED_MODES = 1 << DUET_R | 1 << DUET_COMMUTE | 1 << DUET_REDUCE,
};

/* Further bits in `modes` of a task. */
enum {
    TASK_HOLDS = 1,       /* the task holds the handles on which it commutes */
    TASK_INITIALISES = 2, /* the task initialises a contribution for the task in `prev` */
    TASK_COMBINES = 32,   /* the task combines contributions, for the access whose turn it is */
    TASK_REVOKED = 128,   /* the task was revoked from a worker, and is not revoked again */
};

enum {
    WATCH_TROUBLE = 1, /* something has failed, some time */
    WATCH_RECORD = 2,  /* releases are recorded */
};

/* An access of a task; stored behind the task. 24 bytes. */
struct access {
    struct duet_handle *handle;
    /* Next in the handle's chain until granted; then next waiter of a replica. Handle lock. */
    struct access *next;
    uint16_t index; /* position in the task */
    uint16_t order; /* accesses by address of handle: the i-th is number `order` of access i */
    uint8_t mode;   /* enum duet_mode; 0: an earlier access of this task is to the same handle */
    bool lacks;     /* its data is missing where its task is listed; `next` chains it: list.c */
};

enum task_state {
    TASK_CREATED,  /* in no list, or held by the policy */
    TASK_LISTED,   /* on a list */
    TASK_TAKEN,    /* taken by a worker; memory not yet found */
    TASK_FETCHING, /* memory found; `missing` copies are on their way */
    TASK_RUNNING,  /* RUN was given to the engine */
    TASK_BODY,     /* RUN was given; it may wait for its children and is in no slot */
    TASK_RELEASED, /* an acquisition that the application has ended */
    TASK_AHEAD,    /* a hint that fetches a task's inputs until they are written */
};

/* Properties that few tasks have, behind one pointer; mostly stored behind the accesses. */
struct task_extra {
    struct duet_ref *ref;         /* reference to the task; NULL: none */
    struct duet_ref *lost;        /* tasks that its kernel will submit again: lost.c */
    struct duet_task *next, **at; /* extra_lock: children that come after others; NULL: none */
    struct edge *edges;           /* its explicit predecessors: ref.c */
    unsigned edge_count;
    int status;    /* status with which it has ended */
    uint32_t name; /* number of its name; 0: none */
    uint32_t iteration;
    duet_done_fn done;
    void *done_arg;
    _Alignas(16) char args[]; /* all of the arguments */
};

struct duet_task {
    struct duet_task *next, *prev; /* used by the list, heap, pool or engine queue that holds it */
    uint64_t id;
    struct task_class *klass; /* NULL: an acquisition by the application */
    _Atomic(int32_t) pending; /* accesses not granted, plus 1 while being linked */
    _Atomic(int32_t) missing; /* inputs on their way; on a list by missing inputs: those lacking */
    int32_t priority;
    uint16_t access_count;
    uint8_t mask; /* index into core->masks */
    uint8_t pool; /* pool of its record */
    union {
        int64_t queued_ns;           /* on a list: the task's part of its owner's load */
        struct duet_task *submitted; /* running: tasks of duet__link_after, the newest first */
    };
    union {
        int64_t position;   /* on a list: order within it; list lock */
        double predicted_s; /* taken: seconds expected on its worker; 0: not known */
        /* Without class: function that ends it when its data is there, called without lock. NULL:
           the application waits for the data. */
        void (*over)(struct duet_view *view, struct duet_task *task);
    };
    double work; /* flops, or bytes; a class may have several sizes */
    double complexity;
    union {
        double note;             /* the policy's */
        struct duet_task *above; /* on a list by missing inputs: the task that points to it */
    };
    double submit_s;
    _Atomic(double) ready_s;
    /* expansion of a child, or the one that this acquisition ends */
    struct duet_expansion *parent;
    uint32_t worker; /* worker that took it, or has it on its list; of a hint: its memory node */
    uint8_t state;   /* enum task_state; written by the worker's thread */
    bool kept;       /* the worker on which it was submitted keeps it: nested.c */
    bool bare;       /* it has no arguments: its functions get NULL in their place */
    uint8_t modes;   /* bits beyond DUET_RW of its accesses' modes; mostly 0: see modes.c */
    struct task_extra *extra; /* NULL: none, or the record is in a pool */
    _Alignas(16) char args[DUET_ARGS_INLINE];
    struct access accesses[];
};

/* Ready tasks of one worker set within a list. List lock. */
struct queue {
    struct duet_task *head, *tail; /* DUET_HEAP: head is the heap's root */
};

struct duet_list {
    /* seldom written, read by any thread */
    struct duet_runtime *core;
    struct worker *owner;   /* worker that owns it; NULL: shared */
    uint8_t order;          /* enum duet_order */
    struct duet_list *next; /* core->own_lists */
    /* written under the lock */
    _Alignas(LINE) _Atomic(uint32_t) gate; /* lock and length: see list.c */
    _Atomic(int64_t) expected_ns;          /* expected time of its tasks on its owner */
    int64_t first, last;   /* positions of the next task pushed at the head and at the tail */
    struct access *nearer; /* near_lock: its tasks' missing inputs that are on their way by now */
    struct queue queues[MASKS_MAX];
};

/* ------------------------------------------------------------------------------------------- */
/* Kernels                                                                                      */

/* Degrees of similarity between the executions of a class: see class.c. */
enum grain { GRAIN_SIZE, GRAIN_BAND, GRAIN_OCTAVE, GRAINS };

struct duet_codelet {
    struct duet_runtime *core;
    unsigned index;
    char name[DUET_NAME_MAX];
    double (*flops)(const void *args);
    double (*cost)(const void *args, const char *arch);
    bool tells_apart;    /* tasks of the same sizes differ by cost or perturbation */
    bool asked;          /* tells_apart, or flops are counted */
    uint64_t archs;      /* architectures with an implementation */
    duet_kernel_fn *run; /* function by architecture */
    duet_kernel_fn emulation;
    duet_expand_fn expand; /* NULL: an ordinary kernel */
    bool waits;            /* the engine runs it, and it may wait for its children */
    bool capturable;       /* as in its description */
    void **models;         /* state of the model, by architecture; model_lock */
    double *belief_factor; /* factor of model_error, by architecture */
    uint64_t primed;       /* architectures for which a calibration has primed the model */
    struct duet_codelet *next;
    /*
     * variable fields, apart from those read for every task: written by submissions, then by
     * workers
     */
    _Alignas(LINE) _Atomic(struct task_class *) last; /* class of one size that was found last */
    _Atomic(struct task_class *) alone;               /* class of alike tasks without data */
    _Atomic(unsigned) class_counts[GRAINS];           /* written under the registry lock */
    _Atomic(unsigned) varied;                         /* tasks with perturbed expectations */
    _Alignas(LINE) struct spin model_lock;
};

/* Executions of a class on one worker, whose thread writes them. */
struct executions {
    _Alignas(LINE) uint64_t ran; /* tasks finished here */
    uint64_t timed;              /* timed ones of these, and their sum */
    double timed_s;
    /* measured, but not yet told to the model */
    double seconds;
    unsigned samples, enough; /* `samples` are told when there are `enough` */
    double usual_s;           /* near the median, robust against outliers; 0: none */
};

/* Executions of one kernel that take about equally long. */
struct task_class {
    struct duet_codelet *codelet;
    unsigned number; /* DUET_UNNUMBERED if sizes differ */
    unsigned index;  /* index in core->classes */
    double work;
    bool counts_flops;
    uint64_t footprint, bytes;
    uint64_t able;              /* kinds of workers that can run it */
    uint64_t kinds;             /* kinds for tasks without `where`: fewer with SetArch */
    _Atomic(uint64_t) possible; /* kinds that may run at least one of its tasks */
    uint64_t too_big;           /* kinds that were excluded for their memory alone */
    _Atomic(uint64_t) barred;   /* kinds of workers on which tasks of the class may not run: a
                                   reduction's `init` cannot run there */
    _Atomic(struct duet_codelet *) barrier; /* `init` of that reduction */
    _Atomic(uint16_t) mask;    /* 1 + mask of tasks without restriction; 0: not known */
    _Atomic(double) best_s;    /* shortest time, for the critical path */
    _Atomic(double) *expected; /* seconds by architecture, from the model; 0: not known */
    _Atomic(double) *mean;     /* engine's seconds of the shortest, by architecture; 0: not known */
    struct executions *executions; /* executions, by worker */
    struct task_class *twin;       /* copy of the class in a trial: see struct duet_handle */
    struct task_class *next;       /* hash chain */
};

/* ------------------------------------------------------------------------------------------- */
/* Data                                                                                         */

/* Data of a handle on one memory node. */
struct replica {
    struct duet_handle *handle;
    struct slab_block *block;      /* set under the node lock, cleared under node and handle lock */
    struct replica *older, *newer; /* node lock: LRU list of replicas with a block */
    int64_t order;                 /* node lock: less than that of those used more recently */
    uint32_t place;                /* node lock: place in the heap of cache.c, from 1; 0: none */
    struct replica *changed_next, **changed_at; /* changed_lock: list of what has changed */
    /* members from here on: handle lock */
    uint32_t pins; /* uses that forbid eviction: tasks, and copies that read it */
    uint16_t node;
    bool copying; /* a copy into it is decided or in flight, or chained */
    bool leaving; /* a write-back of this replica is in flight: it is evicted afterwards */
    bool hinted;  /* the copy into it was asked for by hints alone */
    struct access *waiters;
    struct replica *chained,
        *chain_next;            /* copies that start when this replica (the host's) is valid */
    struct duet__copy copy;     /* copy into this replica */
    uint64_t copy_version;      /* the handle's version when the copy was decided */
    double arrival_s;           /* expected arrival at that time */
    struct replica *queue_next; /* copy queue lock */
};

/* Elements of a square that belong to a part: see duet__shape_column. */
enum shape { FULL, LOWER, UPPER, STRICTLY_LOWER, STRICTLY_UPPER, DIAGONAL };

/*
 * Parts of one handle that do not overlap, made by a cut of the application, or as the blocks of an
 * expansion.
 */
struct parts {
    struct duet_handle *whole;
    struct duet_expansion *expansion; /* expansion whose blocks they are; NULL: a cut */
    struct parts *next;               /* next of the same handle, parts_lock, or expansion */
    bool in_force;                    /* true for a cut in force, parts_lock: see cut.c */
    bool writable;                    /* true for blocks that the expanding task may write */
    unsigned count, capacity;
    struct duet_handle **handles;
    uint64_t bytes;     /* bytes of all parts */
    struct plane plane; /* rectangles of the parts */
};

/*
 * State of a handle while upward ranks are computed backwards: the path after the next access to
 * look at. A run is a series of accesses without order among each other. Only for the thread that
 * lets tasks in: rank.c.
 */
struct below {
    unsigned pass;          /* number of the pass; an earlier one: nothing comes after */
    bool reads, next_reads; /* true if the run reads, if the accesses after it read */
    uintptr_t run;
    double run_s, next_s; /* longest path from the run on; from the accesses after it */
};

struct duet_handle {
    struct spin lock;
    atomic_bool family;     /* handle lock: it is part of a cut, or has been cut; never unset */
    bool apart;             /* parts_lock: only its parts are in force */
    bool entered;           /* registry_lock: region.c knows its memory */
    uint8_t active_mode;    /* mode of the granted accesses; handle lock, as for the next five */
    _Atomic(bool) poisoned; /* contents are not valid; also read under a granted access */
    uint32_t active;        /* granted and unfinished accesses */
    struct access *head, *tail;       /* accesses not granted yet, in order of submission */
    uint64_t version;                 /* counts writes */
    double write_path_s, read_path_s; /* critical path up to the last write, the last reads */
    uint32_t seen_as;                 /* 1 + number in entered.c; 0: none */
    unsigned seen_reset;              /* measurement to which seen_as belongs */
    uint64_t id, bytes, slab_bytes;
    _Atomic(void *) data; /* address in the host's memory, written once */
    size_t rows, cols, ld, element_bytes;
    struct duet_runtime *core;  /* runtime in which it is registered */
    struct duet_task *acquired; /* handle lock: acquisition by the application, or its end */
    bool held;                  /* a task that commutes has it; handle lock, as the next two */
    bool temporary;             /* `data` is the core's: NULL until it is needed, see transfer.c */
    bool elsewhere;             /* the valid replicas may all be in other processes: acquire.c */
    bool damaged; /* damage_lock: elements in no region of `damage` are not valid: failure.c */
    struct damage *damage; /* damage_lock: writes to regions, the newest first; NULL for a part */
    struct duet_task *waiting, *last_waiting; /* tasks that wait to hold it, by `next` */
    struct parts *of;                         /* NULL: it was registered */
    struct parts *cuts;                       /* parts_lock: its cuts, the newest first */
    size_t row, col;                          /* first element of a part in the whole */
    uint8_t shape;                            /* enum shape of a part */
    struct layout *layout;             /* layout that is not a matrix: layout.c; NULL: a matrix */
    struct reduction *reduction;       /* reduction; NULL: none */
    struct contribution *contribution; /* contribution to another handle; NULL: none */
    struct below below;
    struct duet_handle *twin;        /* copy in a trial; for the thread that lets tasks in */
    struct duet_handle *next, *prev; /* core->handles, registry lock */
    struct replica host;
    _Atomic(void *) mark;                /* the engine's: duet__handle_mark */
    void *note;                          /* duet__handle_note's; for the application's thread */
    _Atomic(struct replica *) *replicas; /* by node; NULL until first used; written under the handle
                                            lock */
    /* Bit sets of nodes where it is valid, and into which it is being copied. Written under the
       handle lock, read by policies without it. */
    _Atomic(uint64_t) *valid, *coming;
};

struct node {
    struct spin lock;
    struct slab slab;                   /* node lock */
    struct replica *oldest, *newest;    /* node lock, as the next one */
    unsigned placed;                    /* replicas with a block, which are those of the list */
    int64_t newest_order, oldest_order; /* node lock: bounds of the orders in the list */
    struct candidate *candidates;       /* node lock: heap of cache.c, from 1; NULL: none */
    unsigned candidate_count;           /* node lock */
    _Atomic(bool) scored;               /* there is that heap, and what changes goes on a list */
    struct spin changed_lock;
    struct replica *changed;  /* changed_lock: replicas that may leave earlier than is known */
    _Atomic(uint32_t) pinned; /* replicas with pins */
    uint64_t leaving_bytes;   /* node lock: write-backs in flight */
    _Atomic(bool) blocked;    /* a worker of this node waits for room */
    _Atomic(bool) lost;       /* device gone: nothing becomes valid here any more */
    unsigned worker;          /* the worker that starts copies into it */
    _Atomic(uint64_t) freed;  /* the record at whose end there was more room; if blocked */
    struct spin near_lock;    /* guards chains of accesses that lack data here: list.c */
    uint64_t evictions, write_backs; /* node lock */
    struct spin pool_lock;
    struct replica *spare;   /* pool_lock */
    struct replica **arrays; /* pool_lock */
    unsigned array_count;
};

/* ------------------------------------------------------------------------------------------- */
/* Workers and the whole                                                                        */

/* Nested tasks that a worker keeps to itself (nested.c). For its thread only. */
struct nested {
    const struct task_class *running;  /* class of the last RUN's kernel; NULL: none */
    double now;                        /* date at which it was given */
    uint64_t ended;                    /* ended kept tasks, not yet in `finished` */
    uint64_t next, end, reserved;      /* task numbers left of a bundle, and its size; 0: none */
    struct duet_task *oldest, *newest; /* kept tasks, linked by `next` from the oldest */
    struct duet_task *spare;           /* free records, linked by `next` */
};

/* Rows that grow: records, notes or accesses. */
struct rows {
    void *rows;
    size_t count, capacity;
};

/* A record of a task or a copy, with what is known of its release: see released.c. */
struct record {
    struct duet_event event;
    uint64_t asked_by, after, own;
};

/* A note of what released a task. */
struct note {
    uint64_t task;
    double date_s;
    uint64_t by; /* a record; OUTSIDE: a handle */
    uint8_t release;
};

/* Records of tasks that a worker has to use again, or to return to their pool. Its thread only. */
struct freed {
    struct duet_task *first, *last;
    unsigned count;
};

struct worker {
    /* seldom written, read by any thread */
    _Alignas(LINE) unsigned index, arch, node, kind, window, window_short;
    _Atomic(bool) lost;                 /* true if the device is lost; set by the worker's thread */
    _Atomic(struct duet_task *) member; /* its part of a team, to begin; NULL: none */
    _Atomic(bool) fed;                  /* true if its last look found a task; set by its thread */
    _Atomic(bool) revokes;              /* the policy may revoke tasks that it has taken */
    _Atomic(bool) waits; /* a task in its slots has not begun; set by its thread, see revoke.c */
    struct duet_task **slots;
    unsigned *victims;
    /* members for this worker's thread */
    _Alignas(LINE) unsigned taken; /* tasks in slots */
    unsigned copying;              /* copies given to the engine and not done */
    bool drained;                  /* counted in `drained` of the core, which is stopping */
    bool at_body;                  /* RUN or RESUME was given for a task that may wait, and it has
                                      neither paused nor ended since */
    unsigned depth;                /* number of tasks that have begun and may wait */
    struct duet_expansion *body;   /* expansion of the newest task that has begun and may wait */
    uint64_t rng;
    _Atomic(uint64_t) finished; /* tasks that ended in calls of this worker; read at any time */
    _Atomic(uint64_t) internal; /* part of `finished` not the application's; counted before */
    struct freed freed[POOL_EXACT + 1];
    struct nested nested;
    struct duet_task **batch; /* room for tasks that a completion made ready */
    size_t batch_capacity;
    /* written by this worker's thread, read at any time */
    _Atomic(double) busy_s, last_end_s, flops;
    _Atomic(uint64_t) tasks, accesses, reads, hits, merged;
    _Atomic(uint64_t) pushes, pops, steals, steal_attempts, revocations;
    /* members for this worker's thread and those that ask for statistics: trace_lock */
    struct spin trace_lock;
    bool records_lost;
    struct rows records, notes; /* struct record, struct note */
    struct rows touched;        /* struct duet_trace_access: of the recorded tasks */
    size_t last_task;           /* index of the last record of a task, and 1 */
    uint16_t generation;        /* generation of the records: another one after each reset */
    uint64_t bytes_in, bytes_out, bytes_between, copies_in, copies_out, copies_between;
    /* members for any thread */
    _Alignas(LINE) struct spin copy_lock;
    struct replica *copy_head, *copy_tail; /* copy_lock: copies to start */
    struct replica *idle_head, *idle_tail; /* copy_lock: copies for hints, started last */
    _Atomic(uint32_t) copies;              /* number of copies to start; written under copy_lock */
    _Atomic(int64_t) taken_ns; /* expected time of the tasks in its slots; written by its thread */
    _Alignas(LINE) struct duet_list list;
};

/* Records of tasks with the same number of accesses. */
struct pool {
    _Alignas(LINE) struct spin lock;
    struct duet_task *ready; /* lock */
    void **chunks;           /* lock */
    size_t chunk_count, chunk_capacity;
    char *fresh, *fresh_end; /* lock: part of the last chunk not yet used */
    /* any thread pushes; the holder of the lock takes all */
    _Alignas(LINE) _Atomic(struct duet_task *) returned;
};

/* A set of workers that tasks are restricted to. */
struct mask {
    uint64_t kinds;
    uint64_t *workers; /* bit set of workers */
};

/* A measurement known before its kernel was registered. */
struct prime {
    char kernel[DUET_NAME_MAX];
    unsigned arch;
    double work, mean_s;
    uint64_t samples;
    struct prime *next;
};

/* Texts of the application and its marks in the trace: names.c. All under `lock`. */
struct names {
    struct spin lock;
    struct name **list, **table; /* texts by number from 1; hash chains */
    size_t count, capacity;      /* sizes of the list and the table */
    struct duet_trace_mark *marks;
    size_t mark_count, mark_capacity;
    size_t phase; /* 1 + the mark of the current phase; 0: none */
};

struct duet_runtime {
    struct duet_machine machine;
    _Atomic(const struct duet_policy *) policy; /* replaced once a choice was made: choose.c */
    struct choice *choice;                      /* NULL: none is to be made */
    void *policy_state;
    char *worker_states; /* policy->state_size_a_worker (rounded) for each worker */
    size_t state_bytes, worker_state_bytes, data_state_bytes, place_state_bytes;
    bool chains; /* handles have chains of missing inputs, behind the policy's states: list.c */
    bool begins; /* the policy's init is running: it may make lists */
    const struct duet_policy *parameters_of; /* policy in its init, or the current one */
    double parameters[DUET_PARAMETERS_MAX];
    const struct duet_model *model;
    const struct duet__engine_ops *ops;
    void *engine;
    bool set_arch, strict, record, record_accesses, computes, keep_going, nearest_source;
    bool keeps; /* workers keep nested tasks to themselves */
    enum duet__priorities priorities;
    int32_t priority_bits;   /* mask for submitted priorities: all bits or none */
    struct entered *entered; /* recorded graph for bounds; NULL: not recorded */
    struct held *held;       /* tasks wait here until the application waits; NULL: they do not */
    /* Receiver of new tasks and acquisitions: held.c, or ops->submitted. */
    void (*enter)(void *enter_for, struct duet_task *task);
    void *enter_for;
    const struct duet__gate *gate; /* gate between application and core; NULL: none */
    void *gate_arg;
    _Atomic(struct duet_graph *) recordings; /* graphs that are recorded: replay.c; registry lock */
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
    _Atomic(uint64_t) dead_kinds; /* kinds without living workers */

    struct worker *workers;
    struct node *nodes;
    _Atomic(int64_t) *queued_ns; /* copies under way, by link and node: see source.c */
    struct duet_list shared;
    struct duet_list *own_lists; /* lists of the policy: duet_view_new_list */

    struct spin mask_lock;
    _Atomic(unsigned) mask_count;
    struct mask masks[MASKS_MAX];

    struct pool pools[POOLS];
    atomic_bool extras; /* some task has, or had, a task_extra */
    struct spin extra_lock;
    struct duet_task *children; /* extra_lock: children that come after others without data */
    unsigned resets;            /* number of duet_stats_reset: written while nothing is in flight */
    struct names names;
    void *kept; /* memory of the library's start-up */
    void (*free_kept)(void *data);

    struct spin registry_lock; /* codelets, classes, handles, primes */
    struct duet_codelet *codelets, *last_codelet;
    unsigned codelet_count;
    struct task_class **class_table; /* hash chains */
    size_t class_buckets;
    struct task_class **classes; /* classes in order of appearance */
    size_t class_count, class_capacity;
    double *class_seconds; /* seconds by architecture, for duet_class_stats */
    uint64_t *class_ran;   /* finished tasks by worker, for duet_class_stats */
    struct duet_handle *handles;
    struct region *regions; /* registry_lock: registered memory */
    uint64_t handle_count;
    _Atomic(uint64_t) registered_bytes; /* bytes of handles that are not blocks of others */
    struct prime *primes;

    struct spin memory_lock;
    struct spare_memory *spare_memory[MEMORY_SIZES]; /* memory_lock: see temporary.c */
    uint64_t spare_bytes;                            /* memory_lock */

    atomic_bool cut;        /* some data is, or was, cut */
    struct spin parts_lock; /* parts in force, while tasks are linked */
    uint64_t *hosts;        /* bit set of workers whose memory is the host's */
    /* seldom written while there is enough work, read for every task */
    _Atomic(uint64_t) *hungry; /* bit a worker: its last duet__next was IDLE for lack of work */
    /* members for submitting threads */
    _Alignas(LINE) _Atomic(uint64_t) submitted; /* tasks created: the last id */
    _Atomic(uint64_t) first_task;               /* see duet_view_first_task */
    /* tasks finished at some earlier time: enough to see that the window is not full */
    _Atomic(uint64_t) finished_seen;
    _Atomic(uint64_t) finished; /* tasks ended in calls of no worker: see finished.c */
    _Atomic(uint64_t) internal; /* part of `finished` not the application's */
    /* Tasks ended while submissions wait (window_open), and their number that lets these go on. */
    _Alignas(LINE) _Atomic(uint64_t) ended, open_at;
    /* members read for every task */
    _Alignas(LINE) _Atomic(unsigned) throttled; /* submissions that wait for a full window */
    _Atomic(unsigned) waits;                    /* waits for all tasks to finish */
    _Atomic(bool) stopping;
    _Atomic(unsigned) drained; /* workers that have had nothing left since then */
    _Atomic(bool) told;        /* `message` has been written */
    _Atomic(uint8_t) watch;    /* WATCH_...: reasons to look closely at ends of tasks */
    _Atomic(bool) stopped;     /* true if tasks that have not begun do not run any more */
    _Atomic(int) error;        /* first error of the run */
    _Atomic(uint64_t) failed_tasks, cancelled_tasks;
    atomic_bool lends;         /* true if duet__acquire_submit was used */
    _Atomic(unsigned) awaited; /* acquisitions granted and not ended: acquire.c */
    struct spin message_lock;
    struct duet_message run_message;        /* message_lock: message of `error` */
    struct duet_message message;            /* message_lock: message of the last call that failed */
    struct spin damage_lock;                /* lock of `damage` of handles */
    _Alignas(LINE) struct spin submit_lock; /* lock for writing the three below */
    uint64_t submit_rng;
    _Atomic(double) first_submit_s; /* INFINITY: nothing was submitted */
    _Atomic(double) critical_path_s;
};

#include "core/calls.h"

#endif
