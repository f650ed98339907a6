/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface between the scheduler core and an engine. The core decides, an engine takes time.
 *
 * duet__next(worker, now) returns a command for the worker: COPY, RUN, RESUME, IDLE or EXIT.
 * duet__done(command, now, report) says that it has been carried out. ops.wake(worker) asks the
 * engine to call duet__next again for this worker.
 *
 * Threads: calls for different workers may come from different threads at once; those for one
 * worker, also duet__link by it, must not overlap. ops are called from inside duet__next,
 * duet__done and duet__link on the thread that called these, with no lock held; ops.wake must not
 * call back into the core. Time is in seconds since the run began and never goes back for one
 * worker.
 */
#ifndef DUET_CORE_ENGINE_H
#define DUET_CORE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/duet.h>
#include <duet/model.h>
#include <duet/policy.h>
#include <duet/trace.h>

enum { DUET_UNNUMBERED = UINT32_MAX >> 1 };

/* A class of executions that take equally long. */
struct duet__class {
    const struct duet_codelet *codelet;
    const void *args; /* arguments of one of them: valid as long as that task, or the call */
    double work;      /* flops, or bytes */
    bool counts_flops;
    /*
     * Number from 0 in order of appearance: equal numbers mean equal times. DUET_UNNUMBERED while
     * it is classified, and where a kernel has more classes than the core distinguishes.
     */
    unsigned number;
};

enum {
    DUET_OUTSIDE = -2,
    DUET_FORKED = -3
}; /* results of ops.inside beside workers and DUET_SUBMITTER */

enum duet__engine_command_kind {
    DUET_IDLE, /* nothing to do now; the core will wake the worker */
    DUET_RUN,  /* run `task` on the worker's kernel stream, after the kernels before it */
    DUET_COPY, /* run `copy`, after the copies before it in the same direction */
    DUET_EXIT, /* the runtime closes: the worker may end */
    /* Go on with `task`, the worker's newest that has begun and waits: ops.await returns. */
    DUET_RESUME,
};

/* The FIFO of a device on which a copy runs: each device does one copy per direction at a time. */
enum duet__stream {
    DUET_STREAM_IN,  /* from the host or another device into this worker's device */
    DUET_STREAM_OUT, /* from this worker's device to the host */
};

/* A copy of one handle's data: see duet__copy_pieces. Owned by the core, valid until duet__done. */
struct duet__copy {
    struct duet_handle *handle;
    uint64_t handle_id;                         /* from 1 */
    uint64_t bytes;                             /* > 0 */
    uint16_t source, destination;               /* memory nodes, different */
    bool write_back;                            /* eviction: the copy makes room on its source */
    uint64_t source_offset, destination_offset; /* bytes in the slab; 0 for the host's memory */
    double decided_s;                           /* when the core decided it */
    uint64_t asked_by, after; /* causes, where the run is recorded: see released.c */
    /* the engine's, 0 at first: pieces in flight; when the first began; the first error of one, and
       what is known of it, its own if there are several */
    unsigned pieces;
    double start_s;
    int status;
    char *why;
};

/* A piece of a copy: `cols` columns of column_bytes each, at both ends with their own pitch. */
struct duet__piece {
    void *to;
    const void *from;
    size_t column_bytes, cols, to_pitch, from_pitch; /* pitch: from column to column */
    /* Rows of a triangle, as in struct backend_copy; end and end_step 0: whole columns. */
    size_t first, first_step, end, end_step;
};
/* Takes a piece. An error ends the copy. */
typedef int (*duet__piece_fn)(void *arg, const struct duet__piece *piece);

/* Scheduling operations of a call, for the engine to charge. Added to, never reset. */
struct duet__ops {
    unsigned submissions;    /* children that expanding tasks submitted */
    unsigned pushes;         /* tasks placed on lists */
    unsigned pops;           /* tasks taken from own or shared lists */
    unsigned steal_attempts; /* victims asked, up to and including the one that gave a task */
    unsigned steals;         /* tasks stolen */
};

struct duet__engine_command {
    enum duet__engine_command_kind kind;
    unsigned worker;
    enum duet__stream stream; /* COPY */
    struct duet_task *task;   /* RUN, RESUME */
    struct duet__copy *copy;  /* COPY */
};

/* Report of how a command ended. */
struct duet__completion {
    double start_s, end_s; /* when the kernel or copy ran */
    int status;            /* 0 or a negative enum duet_error */
    const char *why;       /* reason of an error, for the run's message; NULL or "": text of
                              `status` */
    double before_s;       /* seconds of earlier pieces of a task that waits */
};

/* Functions that an engine provides. All slots are needed unless their comment says so. */
struct duet__engine_ops {
    /* Asks the engine to call duet__next for this worker soon. May be called more than needed. */
    void (*wake)(void *engine, unsigned worker);
    /*
     * A task was created by duet_submit, on the application's thread or inside a task that a worker
     * runs, or an acquisition begins or ends. The engine calls duet__link with it (duet__link_after
     * in a kernel of a device), now or, in simulated time, when its submission has taken its time;
     * in order for one thread.
     */
    void (*submitted)(void *engine, struct duet_task *task);
    /*
     * As `submitted` for created tasks of the application, linked by their first member; the engine
     * calls duet__link_all with them. NULL: `submitted` is called with each.
     */
    void (*submitted_all)(void *engine, struct duet_task *first);
    /*
     * Blocks the application's thread until reached(arg). Returns 0, or DUET_ESTUCK if it never
     * will be.
     */
    int (*wait)(void *engine, bool (*reached)(void *arg), void *arg);
    /*
     * Returns the worker whose kernel runs on the calling thread, or that asks for work on it and
     * may expand a task; DUET_SUBMITTER on a thread that is no worker's; DUET_OUTSIDE on the
     * application's, the only one that may wait, also for the window; DUET_FORKED in a child of the
     * process that has the engine's threads. May be NULL: there is only the application.
     */
    int (*inside)(void *engine);
    /*
     * Waits, in a call of duet__body_run and on its stack, until the task's children have ended:
     * calls duet__pause, carries out commands of duet__next, and returns at RESUME. `last`: the
     * task's function has returned. May be NULL: no task waits.
     */
    void (*await)(void *engine, bool last);
    /*
     * Evaluates `reached` of waiting threads again, because something changed. Called from any
     * thread, after the change, like wake. May be NULL: no thread waits.
     */
    void (*notify)(void *engine);
    /*
     * Runs, in a call of duet__body_run, the children that its worker keeps to itself, as long as
     * duet__nested_awaited is true. NULL: the engine runs no kept nested tasks.
     */
    void (*run_kept)(void *engine);
    /*
     * True if the worker can launch the kernels of a graph at once: duet__task_repeat. NULL: none
     * can.
     */
    bool (*repeats)(void *engine, unsigned worker);
    /* Returns the seconds since the run began, on the application's thread. */
    double (*now)(void *engine);
    /* As duet_worker_scheduling. May be NULL: no worker ever is scheduling. */
    int (*scheduling)(void *engine, uint64_t *steps);
    /*
     * Clears the bits of *archs on which the engine can neither time nor run executions of a new
     * class. An error refuses the submission. Also called for each task whose size shares a class
     * with others.
     */
    int (*classify)(void *engine, const struct duet__class *klass, uint64_t *archs,
                    struct duet_message *message);
    /*
     * Returns the mean seconds of such executions on an architecture if the engine knows them for
     * sure, for bounds on the makespan; 0: the model's prediction is used. May be NULL.
     */
    double (*mean)(void *engine, const struct duet__class *klass, unsigned arch);
    /*
     * As duet_pin and duet_unpin, for a checked range that is not at NULL. Both may be NULL:
     * nothing is done. Any thread.
     */
    int (*pin)(void *engine, void *data, size_t bytes, struct duet_message *message);
    int (*unpin)(void *engine, void *data, struct duet_message *message);
    /*
     * Frees the engine's data in duet__handle_mark: the handle, or its place in the host's memory,
     * is about to be freed, and nothing of it is in flight. Called on the thread that frees it; for
     * handles left at the end, by duet__handles_forget. May be NULL.
     */
    void (*forget)(void *engine, struct duet_handle *handle);
    /* Frees the engine. Called last by duet_close. May be NULL: the engine stays the caller's. */
    void (*destroy)(void *engine);
};

/* Priorities of tasks: as submitted, none, or by upward rank (rank.c). */
enum duet__priorities { DUET__WORKLOAD, DUET__NONE, DUET__BOTTOM_LEVEL };

/* Reads "workload" (also NULL), "none" or "bottom-level". DUET_ENOTFOUND with a message. */
DUET_MUST_CHECK int duet__priorities_read(const char *text, enum duet__priorities *out,
                                          struct duet_message *message);

/* Configuration of a core. Everything is copied but `engine`, which it takes over. */
struct duet__core_config {
    const struct duet_machine *machine;
    const struct duet_policy *policy;
    bool chosen; /* true: the policy has `parameters`; false: its initial values */
    double parameters[DUET_PARAMETERS_MAX];
    const struct duet_model *model; /* NULL: classes come from another core
                                       (duet__class_twin), and keep their expected times */
    uint64_t seed;
    size_t window;                         /* most tasks submitted and unfinished; 0: 65,536 */
    bool set_arch, strict;                 /* as in struct duet_config */
    bool computes;                         /* kernels run: data without an address is refused */
    bool keep_going, hold, nearest_source; /* as in struct duet_config */
    enum duet__priorities priorities;
    bool record, record_accesses;
    double model_error, perturbation;
    const struct duet__engine_ops *ops;
    void *engine;
};

/* Returns the number of a policy's parameters. */
unsigned duet__parameter_count(const struct duet_policy *policy);

/*
 * Makes a core. On success *out is owned by the caller (duet__core_free, or duet_close through the
 * library's start-up). On error `engine` still belongs to the caller. Errors: DUET_EINVAL with a
 * message, DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__core_new(struct duet_runtime **out,
                                   const struct duet__core_config *config,
                                   struct duet_message *message);

/* Frees a core whose tasks are finished or will never run, and destroys its engine. NULL is fine.
 */
void duet__core_free(struct duet_runtime *core);

/*
 * Cancels unfinished tasks, makes duet__next answer EXIT to every worker once none of them has
 * anything in flight, and wakes them all.
 */
void duet__core_stop(struct duet_runtime *core);

/*
 * Tells the model that `samples` executions of `kernel` with this work took mean_s on architecture
 * `arch`; before the first task, from a calibration. For any data size. DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__prime(struct duet_runtime *core, const char *kernel, unsigned arch,
                                double work, double mean_s, uint64_t samples);

/*
 * Enters a created task into the graph at date `now`; if it is ready, it goes to the policy.
 * Another thread may finish the task before this returns. Operations are added to *ops. `by` is the
 * worker on whose thread, and inside whose kernel, it was submitted, or DUET_SUBMITTER.
 */
void duet__link(struct duet_runtime *core, struct duet_task *task, int by, double now,
                struct duet__ops *ops);

/* As duet__link for tasks of the application in order, linked by their first member. */
void duet__link_all(struct duet_runtime *core, struct duet_task *first, double now,
                    struct duet__ops *ops);

/*
 * Keeps a created task that the kernel of `parent`, a RUN on a device, has submitted: it enters the
 * graph when duet__done says that the kernel has ended. If the device is lost first, the kernel
 * runs again elsewhere and submits again; tasks kept here are dropped. Called on the kernel's
 * thread, in place of duet__link.
 */
void duet__link_after(struct duet_task *parent, struct duet_task *task);

/*
 * Returns a command for `worker` at date `now`. Called until it is IDLE; operations are added to
 * *ops.
 */
void duet__next(struct duet_runtime *core, unsigned worker, double now,
                struct duet__engine_command *command, struct duet__ops *ops);

/*
 * Says that a command (RUN or COPY) has ended. Successors are released and given to the policy;
 * operations are added to *ops. The task or copy may not be used afterwards. The caller then asks
 * duet__next for this worker again.
 */
void duet__done(struct duet_runtime *core, const struct duet__engine_command *command, double now,
                const struct duet__completion *report, struct duet__ops *ops);

/*
 * Says that the device of `worker` is lost with its memory. Called on the worker's thread, at any
 * time, but before the worker's pending commands are reported as done with status DUET_ELOST. Its
 * tasks go to other workers; data that was valid there only is lost, and a task that needs it
 * fails. From then on duet__next answers IDLE (or EXIT). DUET_EINVAL for a worker of the host's
 * memory.
 */
int duet__worker_lost(struct duet_runtime *core, unsigned worker, double now,
                      struct duet__ops *ops);

/*
 * Runs a task of a codelet that waits (duet__task_waits), for which RUN was given: calls its
 * function and waits for its children. Other tasks of this worker begin and end meanwhile, each on
 * top of the stack of the one before. Returns the status; *message says why.
 */
int duet__body_run(struct duet_runtime *core, unsigned worker, struct duet_task *task,
                   struct duet_message *message);

/*
 * Says that the newest task of the worker waits, after a piece of its work that the report
 * describes. `kept`: the worker has kept the task, which is not timed by itself; `report` is NULL
 * if the run is not recorded. From now on duet__next gives the worker other tasks, or RESUME.
 */
void duet__pause(struct duet_runtime *core, unsigned worker, const struct duet__completion *report,
                 bool kept);

/*
 * Holds the newest task of the worker in a wait for something beside the core (a barrier), or lets
 * it go on: duet__next then says RESUME, whatever children it has. On the worker's thread.
 */
void duet__body_hold(struct duet_runtime *core, unsigned worker, bool held);

/*
 * Makes a task that no policy sees: a member of a team, of a codelet that waits, without accesses,
 * for a worker that runs none. Called on the thread of worker `by`. Errors as duet_submit. The
 * worker takes no other task from now on until duet__member_take, on its thread, which returns true
 * with the command *command, RUN, if there is a member to begin. The caller wakes it.
 */
DUET_MUST_CHECK int duet__member_post(struct duet_runtime *core, unsigned by, unsigned worker,
                                      const struct duet_task_desc *desc, double now,
                                      struct duet_message *message);
bool duet__member_take(struct duet_runtime *core, unsigned worker, double now,
                       struct duet__engine_command *command);

/*
 * For tasks that wait, on their worker's thread. duet__expand_any_data: their children may be
 * ordered by data that is no block of theirs, and that no task but them uses while they run; these
 * get no buffers, and may do the same. duet__child_hold counts one child more, until
 * duet__child_release, on any thread.
 */
void duet__expand_any_data(struct duet_expansion *expansion);
unsigned duet__expand_worker(const struct duet_expansion *expansion);
void duet__child_hold(struct duet_expansion *expansion);
void duet__child_release(struct duet_runtime *core, struct duet_expansion *expansion);

/* True if duet__body_run has to run the task. */
bool duet__task_waits(const struct duet_task *task);

/*
 * Nested tasks that a worker keeps to itself, see core/nested.c. An engine whose ops.inside names a
 * worker of the host's memory runs them, on that worker's thread: after each RUN, if
 * duet__nested_any, it runs the tasks of duet__nested_next (kernels without buffers) and reports
 * each by duet__nested_done, until it gets NULL or has something else to do. Then duet__nested_end,
 * with the date at which the first of them began, gives the others to the policy. The dates of a
 * single task matter only if duet__records.
 */
bool duet__nested_any(const struct duet_runtime *core, unsigned worker);
struct duet_task *duet__nested_next(struct duet_runtime *core, unsigned worker, double now,
                                    struct duet__ops *ops);
void duet__nested_done(struct duet_runtime *core, unsigned worker, struct duet_task *task,
                       const struct duet__completion *report);
/* True if kept tasks include children of the worker's newest task that waits. */
bool duet__nested_awaited(const struct duet_runtime *core, unsigned worker);
void duet__nested_end(struct duet_runtime *core, unsigned worker, double start_s, double now,
                      struct duet__ops *ops);

/* True if the run is recorded. */
bool duet__records(const struct duet_runtime *core);

/*
 * True once the run has failed or was cancelled: tasks that have not started will not run any more.
 */
bool duet__failed(const struct duet_runtime *core);

/* True if some worker is idle, so that it would take a task submitted now at once. */
bool duet__hungry(const struct duet_runtime *core);

/* True if everything that was submitted has ended. */
bool duet__finished(const struct duet_runtime *core);

/*
 * Ends the run with DUET_ESTUCK, on the thread of a worker whose task waits while nothing happens
 * any more; tasks that have not begun end without waiting for others.
 */
void duet__give_up(struct duet_runtime *core, unsigned worker, double now);

/* Writes which tasks wait for what, for the message of a run that is stuck. */
void duet__explain(struct duet_runtime *core, struct duet_message *message);

/*
 * Returns 0 if the calling thread may wait in `function`. Inside a kernel or an expansion it
 * returns DUET_EINVAL, and fails the run, so that nobody overlooks it.
 */
int duet__may_wait(struct duet_runtime *core, const char *function);

/*
 * True from when a thread of the application begins to let held tasks in, before it calls ops.wait,
 * until it has waited.
 */
bool duet__about_to_wait(const struct duet_runtime *core);

/*
 * Records an error of the run, to be returned by duet_wait, and ends the run; only the first one is
 * kept. Any thread.
 */
void duet__fail_run(struct duet_runtime *core, int error, const char *format, ...)
    DUET_PRINTF(3, 4);
/*
 * Records an error that concerns a task or data: as duet__fail_run, unless the run keeps going
 * after failures.
 */
void duet__fail_task(struct duet_runtime *core, int error, const char *format, ...)
    DUET_PRINTF(3, 4);

/* Refuses a call: returns `error`, and keeps the reason for duet_last_message. Any thread. */
int duet__refuse(struct duet_runtime *core, int error, const char *format, ...) DUET_PRINTF(3, 4);
/* Refuses a call in a child made by fork, which has none of the runtime's threads: DUET_EINVAL. */
int duet__not_forked(struct duet_runtime *core, const char *function);
/*
 * Returns DUET_EINVAL with a message that names the function if the handle is NULL or of another
 * runtime.
 */
int duet__own_data(struct duet_runtime *core, const struct duet_handle *handle,
                   const char *function);

/*
 * A function that is called while another thread holds a lock of the core that the caller needs:
 * after each look at the lock, with 0, 1, 2, ... in one wait. It should pause for a moment at
 * first, and soon let other threads run, also those of a lower priority, as the holder may be one
 * of these. For all runtimes of the process; engines that call the core from several threads set
 * one. NULL, as at the start: none.
 */
typedef void (*duet__rest_fn)(unsigned tries);
void duet__rest_by(duet__rest_fn rest);

/* ------------------------------------------------------------------------------------------- */
/* Questions of engines */

const char *duet__class_kernel(const struct duet__class *klass);
/* Returns the seconds of the codelet's cost function; 0: not known. */
double duet__class_cost(const struct duet__class *klass, unsigned arch);
/* Returns the machine of the class's runtime, which numbers the architectures. */
const struct duet_machine *duet__class_machine(const struct duet__class *klass);

/* True for an acquisition by the application, which has no class. */
bool duet__task_acquires(const struct duet_task *task);
struct duet__class duet__task_class(const struct duet_task *task);
/* Returns the implementation for the worker's architecture; NULL if there is none. */
duet_kernel_fn duet__task_function(const struct duet_task *task, unsigned arch);
/*
 * Returns the implementation for emulated devices: "emulated", else "cpu"; NULL if there is none.
 */
duet_kernel_fn duet__task_emulation(const struct duet_task *task);
/* As duet__task_function and duet__task_emulation, for a class in ops.classify. */
duet_kernel_fn duet__class_function(const struct duet__class *klass, unsigned arch);
duet_kernel_fn duet__class_emulation(const struct duet__class *klass);
/* True for a class of tasks that expand: the engine never runs one. */
bool duet__class_expands(const struct duet__class *klass);
/*
 * Returns the number of the handle of the task's index-th access, from 1 in order of registration.
 */
uint64_t duet__task_handle_id(const struct duet_task *task, size_t index);
/* Returns the number of a handle, from 1 in order of registration. */
uint64_t duet__handle_number(const struct duet_handle *handle);
/* Returns the engine of a core. */
void *duet__engine_of(const struct duet_runtime *core);
/* Renames a codelet, for traces and reports only. No task may run meanwhile. */
void duet__codelet_rename(struct duet_codelet *codelet, const char *name);
/* Returns the number of tasks that have not ended. */
uint64_t duet__unfinished(const struct duet_runtime *core);
/* Waits for a moment, as threads do for a lock. */
void duet__rest_now(unsigned tries);
/* Returns the highest number that a task has got so far. */
uint64_t duet__numbered(const struct duet_runtime *core);
/* Returns the bytes of all registered handles. */
uint64_t duet__registered_bytes(const struct duet_runtime *core);
/* Returns the date at which the task became ready: its kernel begins no earlier. */
double duet__task_ready(const struct duet_task *task);
/*
 * Returns what is known of the kernels of a graph, for a task that stands for all of them; else
 * NULL. *version: tasks of one version enqueue the same if their buffers are the same.
 * duet__part_failed sets the message of such a task's call: that one of its kernels, from 0, has
 * failed, with this error and for this reason (NULL or "": none is known).
 */
struct duet__repeat *duet__task_repeat(const struct duet_task *task, uint64_t *version);
void duet__part_failed(const struct duet_call *call, size_t kernel, int error, const char *why);
/* Returns the task's arguments, valid until duet__done. */
const void *duet__task_args(const struct duet_task *task);
/*
 * Fills *out (duet_task_accesses entries) with the replicas of a task that RUN was given for, in
 * the memory of node `node`. `base` is the beginning of a device's slab, where data is stored
 * densely (ld = rows); unused for the host. Returns false if some data is not a matrix:
 * duet__laid_buffers then.
 */
bool duet__task_buffers(const struct duet_task *task, unsigned node, void *base,
                        struct duet_buffer *out);
/*
 * Return the number of a task's buffers, and all of them, for any data; arguments as
 * duet__task_buffers.
 */
size_t duet__task_buffer_count(const struct duet_task *task);
void duet__laid_buffers(const struct duet_task *task, unsigned node, void *base,
                        struct duet_buffer *out);
/*
 * Calls `give` for each piece of a copy that was given as a command, on the thread of its worker:
 * none, one or many. `source` and `destination` are the beginnings of devices' slabs; unused for
 * the host. Returns the first error, of `give` or (DUET_EINVAL) of the type of the data.
 */
int duet__copy_pieces(const struct duet__copy *copy, void *source, void *destination,
                      duet__piece_fn give, void *arg);
/* Gives the handle's data in the host's memory. */
void duet__handle_buffer(const struct duet_handle *handle, struct duet_buffer *out);
/*
 * Returns a place where the engine may keep data about a handle; NULL at first. Returns NULL for a
 * part of other data, a block of an expansion, or data that is not a matrix.
 */
_Atomic(void *) *duet__handle_mark(struct duet_handle *handle);
/*
 * Returns a place where another part of the library may keep data about a handle, on the
 * application's thread; NULL at first. A part, or a block, shares the place of its whole.
 */
void **duet__handle_note(struct duet_handle *handle);
/* True for a part of other data, or a block of an expansion. */
bool duet__handle_is_part(const struct duet_handle *handle);
/*
 * Calls ops.forget for every handle that is left. For the destroy of an engine that has this slot,
 * once nothing is in flight any more: a run may have been given up in the middle.
 */
void duet__handles_forget(struct duet_runtime *core);
/*
 * Keeps data of the library's start-up with a core, with the function that frees it last in
 * duet__core_free; and returns it, or NULL if there is none.
 */
void duet__core_keep(struct duet_runtime *core, void *data, void (*free_data)(void *data));
void *duet__core_kept(const struct duet_runtime *core);

/*
 * The recorded graph: tasks that have entered since the opening, or the last duet_stats_reset, in
 * an order in which nothing comes before its predecessors. Only the first 4 million tasks, or as
 * many as there was memory for.
 */
struct duet__entered_task {
    uint32_t klass; /* number in duet_class_stats; UINT32_MAX: no kernel, it takes no time */
    uint32_t end;   /* end of its uses, which begin at the end of the previous task's */
};
enum {
    DUET__USE_READS = 1,
    DUET__USE_IN_TURN = 2, /* after all earlier uses, and before all later ones; otherwise ordered
                              only with uses that have this flag */
    DUET__USE_TASK = 4,    /* the use is not of data but of a task that has to end before */
    DUET__USE_BITS = 3,
};
struct duet__entered {
    struct duet__entered_task *tasks;
    uint32_t *uses; /* number of data or of a task, shifted by DUET__USE_BITS, and flags */
    /* Size of each piece of data whose first version is in the host's memory only, so that a device
       that reads it needs a copy; 0 for others. */
    uint64_t *bytes;
    size_t task_count, use_count, datum_count;
};

/* Begins to record the graph; before the first task. Without memory, it is not recorded. */
void duet__keep_entered(struct duet_runtime *core);

/*
 * Writes into `text` why no worker of an architecture could run tasks of a class (a number below
 * duet_class_count) although its kernel has code for it: the platform has no time of it, the data
 * does not fit into the memory, or the initialisation of a reduction cannot run there. `text` is
 * empty if nothing prevents it. Only when no task is in flight. Returns `text`.
 */
const char *duet__class_barrier(const struct duet_runtime *core, size_t index, unsigned arch,
                                char *text, size_t room);

/*
 * Returns the recorded graph, owned by the core; NULL: not recorded. Only when no task is in
 * flight.
 */
const struct duet__entered *duet__entered(const struct duet_runtime *core);

/* Returns the engine with which the core was made. */
void *duet__core_engine(const struct duet_runtime *core);

#include "core/outside.h"

#endif
