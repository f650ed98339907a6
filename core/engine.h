/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seam between the scheduler core and an engine. The core decides, an engine takes time.
 *
 *   duet__next(worker, now)  -> command      what should this worker do?
 *                                            COPY | RUN | RESUME | IDLE | EXIT
 *   duet__done(command, now, report)         it has done it
 *   ops.wake(worker)                         ask again for this worker
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
#include <duet/machine.h>
#include <duet/model.h>
#include <duet/policy.h>
#include <duet/trace.h>

enum { DUET_UNNUMBERED = UINT32_MAX >> 1 };

/* What executions that take equally long have in common: a class of them. */
struct duet__class {
    const struct duet_codelet *codelet;
    const void *args; /* of one of them: valid as long as that task, or the call */
    double work;      /* flops, or bytes */
    bool counts_flops;
    /*
     * From 0 in order of appearance: the same number, the same times. DUET_UNNUMBERED while it is
     * classified, and where a kernel has more classes than the core tells apart.
     */
    unsigned number;
};

enum {
    DUET_OUTSIDE = -2,
    DUET_FORKED = -3
}; /* ops.inside returns these, a worker or DUET_SUBMITTER */

enum duet__engine_command_kind {
    DUET_IDLE, /* nothing now; the core will wake the worker */
    DUET_RUN,  /* run `task` on the worker's kernel stream, after the kernels before it */
    DUET_COPY, /* run `copy`, after the copies before it in the same direction */
    DUET_EXIT, /* the runtime closes: the worker may end */
    /* go on with `task`, the newest of the worker's that has begun and waits: ops.await returns */
    DUET_RESUME,
};

/* The FIFO of a device on which a copy runs: one copy a direction a device at a time. */
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
    bool write_back;                            /* makes room on its source */
    uint64_t source_offset, destination_offset; /* bytes in the slab; 0 for the host's memory */
    double decided_s;                           /* when the core decided it */
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
    size_t column_bytes, cols, to_pitch, from_pitch; /* bytes from one column to the next */
    /* of a triangle, as in struct backend_copy; end and end_step 0: whole columns */
    size_t first, first_step, end, end_step;
};
/* Takes a piece. An error ends the copy. */
typedef int (*duet__piece_fn)(void *arg, const struct duet__piece *piece);

/* Scheduling operations that a call made, for the engine to charge. Added to, never reset. */
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

/* How a command went. */
struct duet__completion {
    double start_s, end_s; /* of the kernel or the copy itself */
    int status;            /* 0 or a negative enum duet_error */
    const char *why;       /* the run's message about an error; NULL or "": its own text */
    double before_s;       /* seconds of its pieces before, of a task that waits */
};

/* What an engine provides. All slots are needed but those that say so. */
struct duet__engine_ops {
    /* Ask duet__next again for this worker, soon. May be called more than needed. */
    void (*wake)(void *engine, unsigned worker);
    /*
     * A task was created by duet_submit, on the application's thread or inside a task that a worker
     * runs, or an acquisition begins or ends: call duet__link with it (duet__link_after in a kernel
     * of a device), now or, in simulated time, when its submission has taken its time; in order for
     * one thread.
     */
    void (*submitted)(void *engine, struct duet_task *task);
    /* Blocks the application's thread until reached(arg). 0, or DUET_ESTUCK if it never will. */
    int (*wait)(void *engine, bool (*reached)(void *arg), void *arg);
    /*
     * Whose kernel runs on the calling thread, or who asks for work on it and may expand a task: a
     * worker; DUET_SUBMITTER on a thread that is no worker's; DUET_OUTSIDE on the application's.
     * Only the last may wait, also for the window. DUET_FORKED: in a child of the process that has
     * the engine's threads. May be NULL: there is only the application.
     */
    int (*inside)(void *engine);
    /*
     * In a call of duet__body_run, on its stack: the task waits until its children have ended.
     * Calls duet__pause, carries out what duet__next says, and returns when that says RESUME.
     * `last`: its function has returned. May be NULL: no task waits.
     */
    void (*await)(void *engine, bool last);
    /*
     * Something changed that an application's thread may be waiting for: evaluate its `reached`
     * again. Called from any thread, after the change, like wake.
     */
    void (*notify)(void *engine);
    /*
     * In a call of duet__body_run: the task waits for children that its worker keeps to itself, and
     * duet__nested_awaited says whether there are any left: runs them. NULL: the engine runs no
     * nested tasks that workers keep.
     */
    void (*run_kept)(void *engine);
    /* Seconds since the run began, on the application's thread. */
    double (*now)(void *engine);
    /* As duet_worker_scheduling. May be NULL: nobody ever is. */
    int (*scheduling)(void *engine, uint64_t *steps);
    /*
     * Executions appeared that are like none that the core knows: which architectures can the
     * engine time or run them on? Bits of *archs that it cannot are to be cleared. An error refuses
     * the submission. Also asked for each task whose size shares a class with others.
     */
    int (*classify)(void *engine, const struct duet__class *klass, uint64_t *archs,
                    struct duet_message *message);
    /*
     * Seconds that such executions take on that architecture on average, if the engine knows it for
     * sure: what bounds on the makespan are computed from. 0: the model's word counts.
     * May be NULL.
     */
    double (*mean)(void *engine, const struct duet__class *klass, unsigned arch);
    /*
     * As duet_pin and duet_unpin, of a checked range, not at NULL. Both may be NULL: then nothing
     * is done. Any thread.
     */
    int (*pin)(void *engine, void *data, size_t bytes, struct duet_message *message);
    int (*unpin)(void *engine, void *data, struct duet_message *message);
    /*
     * A handle, or its place in the host's memory, is about to be freed, and nothing of it is in
     * flight: what the engine keeps in duet__handle_mark is to be given up. On the thread that
     * frees it; of the handles that are left at the end, in duet__handles_forget. May be NULL.
     */
    void (*forget)(void *engine, struct duet_handle *handle);
    /* Frees the engine. Called last by duet_close. */
    void (*destroy)(void *engine);
};

/* Priorities of tasks: as submitted, none, or by upward rank (rank.c). */
enum duet__priorities { DUET__WORKLOAD, DUET__NONE, DUET__BOTTOM_LEVEL };

/* "workload" (also NULL), "none" or "bottom-level". DUET_ENOTFOUND with a message. */
DUET_MUST_CHECK int duet__priorities_read(const char *text, enum duet__priorities *out,
                                          struct duet_message *message);

/* What a core is made from. Everything is copied but `engine`, which it takes over. */
struct duet__core_config {
    const struct duet_machine *machine;
    const struct duet_policy *policy;
    bool chosen; /* the policy's parameters are these; otherwise as they are initially */
    double parameters[DUET_PARAMETERS_MAX];
    const struct duet_model *model;
    uint64_t seed;
    size_t window;                         /* submitted and unfinished tasks at most; 0: 65,536 */
    bool set_arch, strict;                 /* as in struct duet_config */
    bool computes;                         /* kernels run: data without an address is refused */
    bool keep_going, hold, nearest_source; /* as in struct duet_config */
    enum duet__priorities priorities;
    bool record, record_accesses;
    double model_error, perturbation;
    const struct duet__engine_ops *ops;
    void *engine;
};

/* How many parameters a policy has. */
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
 * Cancels what has not finished, makes duet__next answer EXIT to every worker once none of them has
 * anything in flight, and wakes them all.
 */
void duet__core_stop(struct duet_runtime *core);

/*
 * Tells the model that `samples` executions of `kernel` with this work took mean_s on architecture
 * `arch`; before the first task, from a calibration. footprint 0: any data size. DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__prime(struct duet_runtime *core, const char *kernel, unsigned arch,
                                double work, double mean_s, uint64_t samples);

/*
 * Enters a created task into the graph at date `now`. Ready at once, it goes to the policy. The
 * task may be finished by another thread before this returns. The operations made are added to
 * *ops. `by`: the worker on whose thread, and inside whose kernel, it was submitted, or
 * DUET_SUBMITTER.
 */
void duet__link(struct duet_runtime *core, struct duet_task *task, int by, double now,
                struct duet__ops *ops);

/*
 * Keeps a created task that the kernel of `parent`, a RUN on a device, has submitted: it enters the
 * graph when duet__done says that the kernel has ended. If the device is lost instead, the kernel
 * runs again elsewhere and submits again: what it submitted here is forgotten. On the kernel's
 * thread, in place of duet__link.
 */
void duet__link_after(struct duet_task *parent, struct duet_task *task);

/*
 * What `worker` should do at date `now`. Called until it says IDLE; operations added to *ops.
 */
void duet__next(struct duet_runtime *core, unsigned worker, double now,
                struct duet__engine_command *command, struct duet__ops *ops);

/*
 * The command (RUN or COPY) has ended. Successors are released and given to the policy; operations
 * added to *ops. The task or copy is not to be used afterwards. The caller then asks duet__next for
 * this worker again.
 */
void duet__done(struct duet_runtime *core, const struct duet__engine_command *command, double now,
                const struct duet__completion *report, struct duet__ops *ops);

/*
 * The device of `worker` is gone, with its memory: called on the worker's thread before the
 * commands that it still holds are reported as done with status DUET_ELOST, and at any time
 * otherwise. Its tasks go to other workers; what only it had computed is lost, and a task that
 * needs it fails. From then on duet__next says IDLE (or EXIT) to it. For a worker of the host's
 * memory: DUET_EINVAL.
 */
int duet__worker_lost(struct duet_runtime *core, unsigned worker, double now,
                      struct duet__ops *ops);

/*
 * Runs a task of a codelet that waits (duet__task_waits), for which RUN was given: calls its
 * function and waits for its children. Others of this worker begin and end meanwhile, each on top
 * of the one before. Returns the status; *message says why.
 */
int duet__body_run(struct duet_runtime *core, unsigned worker, struct duet_task *task,
                   struct duet_message *message);

/*
 * The newest task of the worker has come to a wait, after a piece of its work that the report
 * tells. `kept`: of one that the worker has kept, which is not timed by itself; NULL if the run is
 * not recorded. From now on duet__next gives others to the worker, or RESUME.
 */
void duet__pause(struct duet_runtime *core, unsigned worker, const struct duet__completion *report,
                 bool kept);

/* true: the task is one to run by duet__body_run. */
bool duet__task_waits(const struct duet_task *task);

/*
 * Nested tasks that a worker keeps to itself, see core/nested.c. An engine whose ops.inside names a
 * worker of the host's memory runs them, on that worker's thread: after each RUN, if there are
 * any, it runs what duet__nested_next gives (kernels without buffers) and reports it by
 * duet__nested_done, until it is given NULL or has something else to do; then duet__nested_end,
 * with the date at which the first of them began, gives what is left to the policy. The dates of a
 * single one matter only if duet__records.
 */
bool duet__nested_any(const struct duet_runtime *core, unsigned worker);
struct duet_task *duet__nested_next(struct duet_runtime *core, unsigned worker, double now,
                                    struct duet__ops *ops);
void duet__nested_done(struct duet_runtime *core, unsigned worker, struct duet_task *task,
                       const struct duet__completion *report);
/* Has the worker's newest task that waits children among them? */
bool duet__nested_awaited(const struct duet_runtime *core, unsigned worker);
void duet__nested_end(struct duet_runtime *core, unsigned worker, double start_s, double now,
                      struct duet__ops *ops);

/* true if the run is recorded. */
bool duet__records(const struct duet_runtime *core);

/* true once the run has failed or was cancelled: what has not started is not to run any more. */
bool duet__failed(const struct duet_runtime *core);

/* true if a task submitted now would be seen by some worker at once: one of them is idle. */
bool duet__hungry(const struct duet_runtime *core);

/* true if everything that was submitted has ended. */
bool duet__finished(const struct duet_runtime *core);

/*
 * Nothing happens any more, and a task of this worker waits, on whose thread this is called: the
 * run ends with DUET_ESTUCK, and tasks that have not begun end without waiting for others.
 */
void duet__give_up(struct duet_runtime *core, unsigned worker, double now);

/* Who waits for what, for the message of a run that is stuck. */
void duet__explain(struct duet_runtime *core, struct duet_message *message);

/*
 * Whether the calling thread may wait, which it is about to do in `function`: not inside a kernel
 * or an expansion. DUET_EINVAL also fails the run, so that nobody overlooks it.
 */
int duet__may_wait(struct duet_runtime *core, const char *function);

/*
 * true from when a thread of the application begins to let in what was held, after which it calls
 * ops.wait, until it has waited.
 */
bool duet__about_to_wait(const struct duet_runtime *core);

/*
 * Records an error of the run, to be returned by duet_wait, and ends the run; the first one stays.
 * Any thread.
 */
void duet__fail_run(struct duet_runtime *core, int error, const char *format, ...)
    DUET_PRINTF(3, 4);
/* The same of an error that concerns a task, or data: a run that keeps going does. */
void duet__fail_task(struct duet_runtime *core, int error, const char *format, ...)
    DUET_PRINTF(3, 4);

/* Refuses a call: returns `error`, for which duet_last_message has the reason. Any thread. */
int duet__refuse(struct duet_runtime *core, int error, const char *format, ...) DUET_PRINTF(3, 4);
/* Refuses a call in a child made by fork, which has none of the runtime's threads: DUET_EINVAL. */
int duet__not_forked(struct duet_runtime *core, const char *function);

/*
 * What a thread does while another one holds a lock of the core that it needs: `rest` is called
 * after each look at the lock, with 0, 1, 2, ... for one wait. It is to rest for a moment at first,
 * and soon to let other threads run, also those of a lower priority: the holder may be one of
 * these. For all runtimes of the process; engines that call the core from several threads give one.
 * NULL, as at the start: nothing.
 */
typedef void (*duet__rest_fn)(unsigned tries);
void duet__rest_by(duet__rest_fn rest);

/* ------------------------------------------------------------------------------------------- */
/* What engines may look at                                                                     */

const char *duet__class_kernel(const struct duet__class *klass);
/* Seconds by the codelet's cost function; 0: not known. */
double duet__class_cost(const struct duet__class *klass, unsigned arch);
/* The machine of its runtime: what architectures are numbered by. */
const struct duet_machine *duet__class_machine(const struct duet__class *klass);

/* true: an acquisition by the application, which has no class. */
bool duet__task_acquires(const struct duet_task *task);
struct duet__class duet__task_class(const struct duet_task *task);
/* Finds what to call: the implementation for the worker's architecture; NULL if it has none. */
duet_kernel_fn duet__task_function(const struct duet_task *task, unsigned arch);
/* What an emulated device calls: the implementation "emulated", else "cpu"; NULL if none. */
duet_kernel_fn duet__task_emulation(const struct duet_task *task);
/* The same two for a class, for ops.classify. */
duet_kernel_fn duet__class_function(const struct duet__class *klass, unsigned arch);
duet_kernel_fn duet__class_emulation(const struct duet__class *klass);
/* true for a class of tasks that expand: the engine never runs one. */
bool duet__class_expands(const struct duet__class *klass);
/* Number of the handle of its index-th access, from 1 in order of registration. */
uint64_t duet__task_handle_id(const struct duet_task *task, size_t index);
/* Number of a handle, likewise. */
uint64_t duet__handle_number(const struct duet_handle *handle);
/* The highest number that a task has got so far. */
uint64_t duet__numbered(const struct duet_runtime *core);
/* Bytes of all handles that are registered. */
uint64_t duet__registered_bytes(const struct duet_runtime *core);
/* Date at which it became ready: its kernel begins no earlier. */
double duet__task_ready(const struct duet_task *task);
/* Its arguments, valid until duet__done. */
const void *duet__task_args(const struct duet_task *task);
/*
 * Fills *out (as many as duet_task_accesses) with the replicas of a task that RUN was given for, in
 * the memory of node `node`: for a device `base` is where its slab begins, data there being densely
 * stored (ld = rows); for the host it is not used. false: some of it is not a matrix, see below.
 */
bool duet__task_buffers(const struct duet_task *task, unsigned node, void *base,
                        struct duet_buffer *out);
/* The same of any data: how many buffers there are, and all of them. */
size_t duet__task_buffer_count(const struct duet_task *task);
void duet__laid_buffers(const struct duet_task *task, unsigned node, void *base,
                        struct duet_buffer *out);
/*
 * Calls `give` for each piece of a copy that was given as a command, on the thread of its worker:
 * none, one or many. `source` and `destination` are where the slabs of devices begin; for the host
 * they are not used. Returns the first error, of `give` or (DUET_EINVAL) of the type of the data.
 */
int duet__copy_pieces(const struct duet__copy *copy, void *source, void *destination,
                      duet__piece_fn give, void *arg);
/* The handle's data in the host's memory. */
void duet__handle_buffer(const struct duet_handle *handle, struct duet_buffer *out);
/*
 * A place where the engine may keep something about a handle; NULL at first. NULL is returned for a
 * part of other data, a block of an expansion, or data that is not a matrix.
 */
_Atomic(void *) *duet__handle_mark(struct duet_handle *handle);
/*
 * A place where another part of the library keeps something about a handle, on the application's
 * thread; NULL at first. That of a part, or a block, is the place of what it is a part of.
 */
void **duet__handle_note(struct duet_handle *handle);
/* Is it a part of other data, or a block of an expansion? */
bool duet__handle_is_part(const struct duet_handle *handle);
/*
 * Calls ops.forget for every handle that is left. By the destroy of an engine that has that slot,
 * once nothing is in flight any more: a run may have been given up in the middle.
 */
void duet__handles_forget(struct duet_runtime *core);
/*
 * Something that the library's start-up keeps with a core, and how to free it; freed last by
 * duet__core_free. And that something again; NULL if there is none.
 */
void duet__core_keep(struct duet_runtime *core, void *data, void (*free_data)(void *data));
void *duet__core_kept(const struct duet_runtime *core);

/*
 * What has entered the graph since the opening, or the last duet_stats_reset, in an order in which
 * nothing comes before what it has to wait for. Of runs with more than 4 million tasks the first
 * ones only; so, too, where there is no memory for more.
 */
struct duet__entered_task {
    uint32_t klass; /* number in duet_class_stats; UINT32_MAX: no kernel, it takes no time */
    uint32_t end;   /* of its uses, which begin where those of the task before end */
};
enum {
    DUET__USE_READS = 1,
    DUET__USE_IN_TURN = 2, /* after all earlier uses, and before all later ones; else only after and
                              before those that are in turn */
    DUET__USE_TASK = 4,    /* no datum, but a task that has to end before */
    DUET__USE_BITS = 3,
};
struct duet__entered {
    struct duet__entered_task *tasks;
    uint32_t *uses; /* number of a datum or a task, shifted by DUET__USE_BITS, and flags */
    /* by datum: what a device that reads its first version needs a copy of, since that is in the
       host's memory only; 0: that is not so */
    uint64_t *bytes;
    size_t task_count, use_count, datum_count;
};

/* From now on that is kept: before the first task. Without memory for it, it is not. */
void duet__keep_entered(struct duet_runtime *core);

/*
 * Writes into `text` why no worker of an architecture could run tasks of a class (a number below
 * duet_class_count) although its kernel has code for it: the platform has no time of it, the data
 * does not fit into the memory, or what initialises a reduction cannot run there. `text` is empty
 * where nothing prevents it. Call it when no task is in flight. Returns `text`.
 */
const char *duet__class_barrier(const struct duet_runtime *core, size_t index, unsigned arch,
                                char *text, size_t room);

/* NULL: it is not kept. Owned by the core; only when no task is in flight. */
const struct duet__entered *duet__entered(const struct duet_runtime *core);

/* Engine of a runtime, as given at its making. */
void *duet__core_engine(const struct duet_runtime *core);

#include "core/outside.h"

#endif
