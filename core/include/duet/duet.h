/* SPDX-License-Identifier: Apache-2.0 */
/*
 * duet for applications: register data, submit tasks, wait. The same program runs on the machine at
 * hand or is simulated on another one; an option or the environment chooses when the runtime is
 * opened (see duet_config_environment).
 *
 * Time is in seconds (double) since the runtime was opened; sizes are in bytes unless named rows or
 * columns. Functions that return int give 0 or a negative `enum duet_error`; duet_last_message then
 * says what was wrong: DUET_EINVAL also for a handle, a codelet or a reference of another runtime.
 * A function does not block unless its comment says so.
 *
 * Functions that wait are refused inside kernels, expansions and functions called at a task's end
 * (duet_kernel_fn, duet_expand_fn, duet_done_fn), real or simulated: duet_wait, duet_ref_wait,
 * duet_acquire, duet_unregister, duet_uncut and duet_close do nothing there, return DUET_EINVAL and
 * fail the run with it. A task whose codelet says so may wait for its children (duet_expand_wait).
 * Everything else may be called there, too; duet_submit does not wait for the window. A simulated
 * runtime is used by one thread at a time, even where a comment below says "any thread"; only
 * duet_tasks_done may be called by others.
 */
#ifndef DUET_DUET_H
#define DUET_DUET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/layout.h>
#include <duet/error.h>
#include <duet/failure.h>
#include <duet/graph.h>
#include <duet/handles.h>
#include <duet/hint.h>
#include <duet/nodes.h>
#include <duet/parts.h>

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a function may have the name of a struct, as in C */
#endif

/* The version of this header. Versions are semantic (semver.org). */
#define DUET_VERSION "0.2.0"

/* Returns the version of the library that is running, "0.2.0". The text is static. Any thread. */
DUET_EXPORT const char *duet_version(void);

struct duet_runtime; /* one open runtime */
struct duet_codelet; /* a kernel with its implementations; lives as long as the runtime */
struct duet_handle;  /* a registered piece of data: duet/handles.h */

/* ------------------------------------------------------------------------------------------- */
/* Opening and closing                                                                          */

/*
 * Options of a runtime. Fill with duet_config_init, then change what you like. Strings are
 * borrowed.
 */
struct duet_config {
    size_t size; /* bytes of this struct where the program was compiled, of duet_config_init; fields
                    that only a newer libduet knows have their defaults */
    const char *simulate; /* platform to simulate: a name or a file; NULL: run on this machine */
    /*
     * Emulated GPUs on this machine. "free": they compute on CPU cores, in memories of their own,
     * at the speed of these cores. A platform (name or file): each kernel and copy takes the time
     * that its calibration says, times `scale`, and nothing is computed. NULL: no emulation.
     */
    const char *emulate;
    /*
     * Interface by which the GPUs of this machine are programmed. "cuda", or "opencl": GPUs and
     * accelerators of all OpenCL platforms or, where there are none, its CPUs (pocl). NULL: "cuda".
     * Not with `emulate`.
     */
    const char *devices;
    double scale;      /* factor of emulated times; 0: 1 */
    const char *lose;  /* emulated GPUs that fail, to test a program: "gpu1@100" is lost at its
                          100th kernel or copy; several separated by commas. NULL: none */
    double watchdog_s; /* seconds after which a wait in which nothing at all happens ends with
                          DUET_ESTUCK; 0: 10 s; below 0: never */
    bool no_bind;      /* threads are not bound to cores */
    int cpus;          /* number of CPU cores that compute; -1: all that feed no GPU */
    int gpus;          /* number of GPUs; -1: all */
    uint64_t gpu_memory_bytes; /* usable bytes of each GPU; 0: as the platform says */
    double gpu_memory_share;   /* usable bytes of each GPU as a share, above 0 and at most 1, of
                                  what is free on a GPU of this machine (with a platform: of what
                                  that says); 0: 0.9 on this machine. Not with gpu_memory_bytes */
    const char *links;         /* "pcie=12GB/s,qpi=8GB/s": bandwidths to replace; NULL: none */
    bool no_peer;              /* GPUs do not copy directly to each other */
    bool nearest_source;       /* true: data is copied from where a lone copy would arrive first.
                                  false: from where it costs least beside the copies under way, also
                                  by way of the host */
    const char *policy;        /* scheduling policy: name, or path of a shared object, then values
                                  of its parameters, "NAME:PARAMETER=VALUE:..."; NULL: "ws" */
    const char *model;         /* performance model: name; NULL: "history" */
    const char *nodes;         /* number of processes that run the program together, over MPI or in
                                  a simulation: "4", or a grid of rows and columns by which data is
                                  distributed: "2x2"; NULL: one */
    const char *network; /* network between simulated nodes, "fat-tree:100Gbps,1us" (docs/nodes.md);
                            NULL: the platform's */
    uint64_t seed;       /* seed of all random choices; same seed, same simulated run */
    size_t window;       /* maximum of tasks submitted and unfinished; 0: default (65,536) */
    unsigned gpu_window; /* tasks in preparation or in flight per GPU; 0: 2 */
    unsigned gpu_window_short; /* gpu_window while the tasks in it are short (together 100 us, as
                                  far as known) and none waits for copies, so that a GPU does not
                                  wait for launches; 0: 8, or gpu_window if that is set */
    unsigned gpu_streams;      /* kernels that may run at once on a GPU of this machine; 0: 1. More
                                  fill a large GPU with small tasks, whose measured times then
                                  include each other's */
    bool gpu_untimed;          /* GPUs of this machine record no times, which saves some
                                  microseconds a kernel or copy: its dates are those at which the
                                  host launched it and saw its end */
    uint64_t pin_bytes;        /* limit of page-locked host memory (duet_pin); 0: three quarters of
                                  the memory, or of what control groups leave */
    bool no_pin;               /* the application's memory is never page-locked */
    bool set_arch;   /* kernels that have an accelerator implementation run on accelerators only,
                        unless a task's own `where` names other workers */
    bool keep_going; /* true: after a task has failed, only tasks that need its output do not run.
                        false: no further task begins. See duet/failure.h */
    bool hold;       /* submitted tasks wait until a thread of the application waits or the window
                        is full, and only then enter the graph, so that the successors of each are
                        known */
    const char *priorities; /* task priorities that policies see. "workload": as submitted; "none":
                               all 0; "bottom-level": longest path to the end (upward rank), for
                               which tasks are held: docs/policies.md. NULL: "workload" */
    bool strict;       /* tasks whose data fits no accelerator that could run them are refused, not
                          left to the CPUs */
    bool noise;        /* simulated kernel times are drawn from the measured distribution */
    bool jitter;       /* simulated latencies of threads (costs wake, event) vary at random by up to
                          a tenth, and nothing else does; with `noise` they do anyway */
    bool extrapolate;  /* simulated kernel sizes beyond the measured ones are allowed */
    bool no_costs;     /* operations of the simulated runtime itself cost nothing */
    const char *costs; /* "submit=1us,steal=2us,...": costs to replace; NULL: the platform's */
    double model_error;  /* relative error e put on purpose into the kernel times that the scheduler
                            expects: each kernel and architecture gets a factor drawn from [1-e,
                            1+e]; 0: none */
    double perturbation; /* error h put on purpose into each prediction as by StarPU's authors (CCPE
                            2011): the logarithm of its microseconds is multiplied by a factor drawn
                            from [1-h, 1+h], one of 32 for tasks that are alike; 0: none */
    bool learn;          /* performance models know nothing at first but what kernels' `cost` says;
                            calibrations serve the simulated machine only */
    /*
     * Effects that the simulated machine does without, to see their share: a list of "caches",
     * "bandwidth", "neighbours", "cores" (see docs/models.md), "wake-ups" (of sleeping workers,
     * noticing of events), "start" (the first worker is the application). NULL: none
     */
    const char *without;
    const char *context;  /* workload whose kernel times are used where the platform has those of
                             several; NULL: any */
    bool record;          /* records are kept (duet_trace_events) */
    bool record_accesses; /* records are kept, and the accesses of their tasks (duet_trace_accesses)
                           */
    const char *trace;    /* file for a Perfetto trace, or a Paje trace if it ends in .paje, written
                             by duet_close; "%u" in it becomes a number that no other run has;
                             duet_open of one process fails if it cannot be written; NULL: none */
    /*
     * Platform file of this machine, "mine.json". duet_close adds measured kernel times to those
     * that earlier runs have left there (docs/calibrate.md). It is created if it is missing.
     * duet_open fails if it cannot be written or belongs to another machine; if duet_close cannot
     * add to it, it says so on standard error and returns no error. Not with `simulate` nor at the
     * pace of a platform. NULL: none.
     */
    const char *calibrate;
    bool report; /* duet_close prints a summary on standard error */
    bool quiet;  /* standard error gets errors and requested output only: no remarks on workers that
                    share cores, GPUs that are left out, or devices. For programs that open one
                    runtime after another */
    bool figures; /* `trace` alone keeps no records: it has figures of the run, but no kernels and
                     no copies */
    bool no_cuda_graphs; /* tasks of a graph (duet/graph.h) are never joined on a GPU */
    /* what carries copies and messages of simulations: "fluid", duet's own engine, or "simgrid";
       NULL: "fluid" */
    const char *network_engine;
    /*
     * Interval for which the machine of a simulation is drawn, by the seed (docs/models.md): "run",
     * as one later run may meet it, or "median:5", as the median of five may. Costs of the
     * runtime's operations are drawn and, with `noise`, its state, links, and times of kernels.
     * NULL: none
     */
    const char *interval;
};

/* Sets every field of a struct of `size` bytes to its default. For duet_config_init. */
DUET_EXPORT void duet_config_init_size(struct duet_config *config, size_t size);

/* Sets every field to its default. */
static inline void duet_config_init(struct duet_config *config)
{
    duet_config_init_size(config, sizeof *config);
}

/*
 * Overrides fields from the environment: DUET_SIMULATE, DUET_EMULATE, DUET_DEVICES, DUET_SCALE,
 * DUET_LOSE, DUET_WATCHDOG (seconds, or "never"), DUET_NO_BIND, DUET_CPUS, DUET_GPUS,
 * DUET_GPU_MEMORY, DUET_GPU_WINDOW, DUET_GPU_WINDOW_SHORT, DUET_GPU_STREAMS, DUET_GPU_UNTIMED,
 * DUET_NO_CUDA_GRAPHS, DUET_PIN ("none" or a size), DUET_LINKS, DUET_NO_PEER,
 * DUET_NEAREST_SOURCE, DUET_POLICY, DUET_MODEL, DUET_LEARN, DUET_SEED, DUET_NODES, DUET_NETWORK,
 * DUET_NETWORK_ENGINE, DUET_WINDOW, DUET_SET_ARCH, DUET_KEEP_GOING, DUET_HOLD, DUET_PRIORITIES,
 * DUET_NOISE, DUET_INTERVAL, DUET_JITTER, DUET_EXTRAPOLATE, DUET_NO_COSTS, DUET_COSTS,
 * DUET_MODEL_ERROR, DUET_PERTURBATION, DUET_WITHOUT, DUET_CONTEXT, DUET_TRACE, DUET_FIGURES,
 * DUET_CALIBRATE, DUET_REPORT. The strings belong to the environment. Error: DUET_EINVAL, with a
 * message that names the variable; `config` may then be partly changed.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_config_environment(struct duet_config *config,
                                                        struct duet_message *message);

/*
 * Takes options of the form --duet-NAME=VALUE out of the argument list, shortens *argc, and leaves
 * the rest in order. NAME is that of a variable of duet_config_environment in lower case with '-'
 * for '_': --duet-simulate=idgraf. Errors as duet_config_environment.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_config_arguments(struct duet_config *config, int *argc,
                                                      char **argv, struct duet_message *message);

/*
 * Opens a runtime. `config` NULL: defaults and environment. On success the caller owns *out
 * (duet_close). Several may be open, of which those of this machine have started their threads when
 * this returns. On SimGrid (`network_engine`, or a network of a file) a process can open one
 * simulated runtime in its life, because SimGrid's engine cannot be created twice: a second one
 * fails with DUET_EBUSY, and without SimGrid each fails with DUET_EABSENT. Links, costs, noise and
 * extrapolation belong to platforms: a run on this machine without one ignores them. DUET_EINVAL:
 * `emulate` together with `simulate` or `devices`, `lose` without `emulate`, `scale` without a
 * platform to emulate, a `config` that duet_config_init has not set, or that is of a newer duet
 * than the library.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_open(struct duet_runtime **out,
                                          const struct duet_config *config,
                                          struct duet_message *message);

/*
 * Waits (blocking) for all tasks, writes what was asked for (trace, report) and frees everything,
 * handles and codelets included. Data is not brought back to the host: call duet_acquire or
 * duet_unregister before. Returns the first error of the run or of writing; one that no earlier
 * wait has returned is also printed on standard error. NULL is fine. A program may also end without
 * this call, at any time: with its own exit status, and without trace and report. A child made by
 * fork has none of the threads of its parent's real runtime: this and all other calls that wait,
 * submit or release return DUET_EINVAL there.
 */
DUET_EXPORT int duet_close(struct duet_runtime *runtime);

/*
 * Returns the message of the last error of this runtime, whichever thread got it; "" if none. The
 * text is a copy for the calling thread, valid until this thread asks again.
 */
DUET_EXPORT const char *duet_last_message(const struct duet_runtime *runtime);

/* Returns the seconds since the runtime was opened: wall clock, or simulated. */
DUET_EXPORT double duet_now(const struct duet_runtime *runtime);

/*
 * True if kernels compute: on this machine, and on "free" emulated GPUs. In simulations and in
 * emulations of a platform kernels only take time: there is nothing to verify.
 */
DUET_EXPORT bool duet_computes(const struct duet_runtime *runtime);

/*
 * Returns the number of the worker whose kernel, or expansion, the calling thread runs, as in
 * duet_runtime_machine; below 0 outside of them.
 */
DUET_EXPORT int duet_worker_here(const struct duet_runtime *runtime);

/* ------------------------------------------------------------------------------------------- */
/* Kernels                                                                                      */

/* One buffer as a kernel sees it: a replica of the handle in the memory of its worker. */
struct duet_buffer {
    void *data; /* NULL when simulated without data */
    size_t rows, cols, ld, element_bytes;
    size_t planes, plane; /* duet_register_block's number of planes, and elements from one to the
                             next; else 1 and ld * cols */
};

/* Arguments of a kernel. All of it is borrowed for the duration of the call. */
struct duet_call {
    struct duet_runtime *runtime; /* for duet_submit from inside a task */
    const void *args;             /* the task's arguments; NULL: it has none */
    const struct duet_buffer *buffers;
    size_t buffer_count; /* one an access, in their order; several for an access to
                            duet_register_arrays */
    void *stream;        /* backend's stream (cudaStream_t; struct duet_opencl), NULL on CPUs */
    /*
     * Status that an asynchronous kernel leaves on a device: page-locked memory for CUDA, 0 at
     * first. The kernel's stream writes it before the kernel ends: 0, or why it has failed (a
     * negative enum duet_error, or an info of LAPACK above 0). NULL on other devices.
     */
    int *status;
    struct duet_message *message; /* text of a failure: duet_fail(call->message, ...). May be NULL
                                   */
};

/*
 * A kernel: returns 0, or a negative enum duet_error that fails the task. It may submit tasks
 * (nested tasks): they are ordered after all tasks submitted before, so one that conflicts with the
 * calling task runs after it. Tasks that a device's kernel submits are ordered, and may run, when
 * it has ended. If the device is lost first, the kernel runs again elsewhere and only its second
 * submissions count; references to the first ones then stand for the second ones, in order. In
 * simulations kernels are not called, and submit nothing.
 */
typedef int (*duet_kernel_fn)(const struct duet_call *call);

struct duet_implementation {
    /* Architecture ("c2050"), backend ("cpu", "cuda", "opencl"), or "emulated": called by emulated
       GPUs, which otherwise call the one for "cpu". */
    const char *arch;
    duet_kernel_fn run; /* NULL: only simulated; a real run ignores this entry */
};

struct duet_expansion; /* a task that is being expanded */
/*
 * Expands a task into children (duet_expand_block, duet_expand_submit). buffers[i].data is the
 * host's replica, only to be passed on. Returns 0 or a negative enum duet_error that fails the
 * task. A task that it submits by duet_submit is no child, but like a nested task of a kernel.
 */
typedef int (*duet_expand_fn)(struct duet_expansion *expansion, const struct duet_call *call);

struct duet_codelet_desc {
    const char *name; /* kernel name; key of the performance models: "dgemm". At most 31 bytes */
    const struct duet_implementation *implementations;
    size_t implementation_count;
    /*
     * Returns the flops of one execution with these arguments, NULL of a task without any. May be
     * NULL: not counted (models then use bytes).
     */
    double (*flops)(const void *args);
    /* Returns the seconds that the application expects of an execution with these arguments on an
       architecture; <= 0: not known. Used where no calibration knows the kernel and no task of this
       size and cost was measured. Called for every task, by any thread, and again until the task
       has ended, so that the result may depend on the arguments only. May be NULL. */
    double (*cost)(const void *args, const char *arch);
    /* Replaces implementations: the task is replaced by its children when its inputs are there.
       NULL: an ordinary kernel. */
    duet_expand_fn expand;
    /* The task may call duet_expand_wait and compute itself, on its worker. A simulation then needs
       to know its time, as a kernel's. For codelets that expand. */
    bool waits;
    /*
     * The functions for CUDA do nothing but enqueue, on the call's stream, work that depends on
     * their arguments and the buffers' addresses and sizes alone, and that has no pointer to the
     * call, its arguments, or variables of the function. What they enqueued may then be done again
     * without calling them (CUDA's stream capture): see duet_graph_submit.
     */
    bool capturable;
};

/*
 * Registers a kernel; the contents of `desc` are copied. Implementations for architectures that the
 * machine does not have are ignored. Errors: DUET_EINVAL (no name, no implementation or both
 * implementations and `expand`, duplicate name), DUET_ENOMEM.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_register_codelet(struct duet_runtime *runtime,
                                                      const struct duet_codelet_desc *desc,
                                                      struct duet_codelet **out);

/* Returns the kernel registered under this name, or NULL, also for a NULL name. */
DUET_EXPORT struct duet_codelet *duet_codelet_find(struct duet_runtime *runtime, const char *name);

/*
 * Returns a set of architectures as a mask for `where` of struct duet_task_desc; 0 if the machine
 * has none of them. `name` is an architecture, a backend, or several separated by commas.
 */
DUET_EXPORT uint64_t duet_where(const struct duet_runtime *runtime, const char *name);

/* ------------------------------------------------------------------------------------------- */
/* Tasks                                                                                        */

struct duet_access {
    struct duet_handle *handle;
    enum duet_mode mode;
};

enum { DUET_ARGS_INLINE = 64 }; /* bytes of arguments for which a task needs no allocation */

/*
 * A reference to a task: to wait for it, to ask if it has ended, and to let others come after it
 * without data. The application owns it until duet_ref_free; the task may end before.
 */
struct duet_ref;

/*
 * A function that is called once when a task has ended, after its children if it expands. `status`
 * is 0, or the negative enum duet_error of the task or the run; the task may then not have run at
 * all. Called on any thread, inside of the runtime: it should be short, and may submit tasks, for
 * which duet_wait waits too, but may not wait. Tasks submitted after a failure are cancelled: a
 * function that always submits would go on without end. Called in simulations as well.
 */
typedef void (*duet_done_fn)(struct duet_runtime *runtime, void *arg, int status);

/* Properties that few tasks have. */
struct duet_task_extra {
    /* Where a reference to the task is stored; NULL if the submission is refused. NULL: no
       reference is needed. */
    struct duet_ref **ref;
    /* Tasks that have to end, well or not, before this one begins, beside those that it follows for
       its data; NULL entries are ignored. A child that comes after its parent, or after an ancestor
       that waits, is refused with DUET_EINVAL: both would wait for each other. A cycle through
       other tasks ends a wait with DUET_ESTUCK. */
    struct duet_ref *const *after;
    size_t after_count; /* at most 65,535 */
    duet_done_fn done;  /* called at its end; NULL: nothing is */
    void *done_arg;
    const char *name;     /* name in traces, beside its kernel's: "potrf(3)". Copied. NULL: none.
                             Each different one is kept until the runtime is closed */
    uint32_t iteration;   /* iteration of the application in traces: 1, 2 ...; 0: none */
    const unsigned *node; /* node that runs it: duet/nodes.h; NULL: the node is chosen by its data
                           */
};

struct duet_task_desc {
    const struct duet_codelet *codelet;
    const struct duet_access *accesses; /* two accesses to one handle count as one, RW if mixed */
    size_t access_count;                /* at most 65,535 */
    const void *args;                   /* copied, with alignment for every type */
    size_t args_bytes;
    int priority;      /* higher runs earlier, for policies that look at it */
    uint64_t where;    /* 0: anywhere; else only on these architectures (duet_where): SetArch */
    double complexity; /* hint for policies that use it (UnMP); 0: flops */
    const struct duet_task_extra *extra; /* properties that few tasks have; NULL: none of them */
};

/*
 * Submits a task. It runs after every earlier submitted task that it conflicts with on a handle
 * (sequential consistency: reads after writes, writes after reads and writes). Everything is
 * copied. Blocks while `window` tasks are unfinished, but not inside a task. Any thread: tasks of
 * one thread are ordered, those of different threads are ordered as they arrive. Errors:
 * DUET_EINVAL, DUET_ENOWORKER, DUET_ETOOBIG, DUET_ENOMODEL (simulated, no time known), DUET_ENOMEM;
 * the task is then not submitted.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_submit(struct duet_runtime *runtime,
                                            const struct duet_task_desc *task);

/*
 * First argument of an item of duet_insert, where it is not the mode of an access. The comments
 * name the types of the arguments that follow it.
 */
enum duet_item {
    DUET_VALUE =
        256,        /* const void *, size_t: so many bytes are copied for the kernel: duet_values */
    DUET_PRIORITY,  /* int */
    DUET_WHERE,     /* uint64_t, of duet_where */
    DUET_REF,       /* struct duet_ref ** */
    DUET_AFTER,     /* struct duet_ref *, or a NULL pointer */
    DUET_DONE,      /* duet_done_fn, and void * for it */
    DUET_NAME,      /* const char * */
    DUET_ITERATION, /* uint32_t */
    DUET_NODE,      /* unsigned: duet/nodes.h */
};

/*
 * Submits a task that is given as a list of items, which ends with 0:
 *
 *     duet_insert(duet, axpy, DUET_R, x, DUET_RW, y, DUET_VALUE, &n, sizeof n, DUET_PRIORITY, 3, 0)
 *
 * An access is a mode and a handle; accesses and values are numbered in their order. At most 64
 * accesses, 32 values and 16 times DUET_AFTER. The arguments of an item must have the types that
 * enum duet_item names, as with printf (a size is a size_t, not 8). Errors as duet_submit;
 * DUET_EINVAL: an unknown item, with its number.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_insert(struct duet_runtime *runtime,
                                            const struct duet_codelet *codelet, ...);

/*
 * Copies, in a kernel, all values of a task that was given as a list to variables of the kernel, in
 * their order. The arguments are pairs of an address and a size_t, which end with NULL.
 *
 *     int error = duet_values(call, &n, sizeof n, &alpha, sizeof alpha, NULL);
 *
 * DUET_EINVAL, with a message in the call, if the number of values or the size of one differs; the
 * kernel passes it on by returning the error.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_values(const struct duet_call *call, ...);

/*
 * Returns the value number `index`, from 0, of a task that was given as a list, where it lies in
 * the arguments, aligned for every type. For `flops` and `cost` of a codelet, and for values that
 * are too large to be copied. NULL: none has this number and size. `args` is that of a task, or
 * NULL.
 */
DUET_EXPORT const void *duet_value(const void *args, size_t index, size_t bytes);

/*
 * Blocks until the task has ended and its `done` has returned. Its data stays where it is:
 * duet_acquire brings it. Errors: DUET_EINVAL, DUET_ESTUCK, the run's error if a task has failed.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_ref_wait(struct duet_runtime *runtime, struct duet_ref *ref);

/*
 * True if the task has ended, and for NULL, which a refused submission leaves. Any thread. In
 * simulations no time passes by asking.
 */
DUET_EXPORT bool duet_ref_ended(const struct duet_ref *ref);

/*
 * Releases the reference, at any time, also after duet_close; the task and those that come after it
 * go on. NULL is fine.
 */
DUET_EXPORT void duet_ref_free(struct duet_ref *ref);

/*
 * Blocks until every submitted task is finished. Returns the first error of a task (its name is in
 * the message; see duet_failures), or DUET_ESTUCK with the tasks that wait for each other. May be
 * called any number of times.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_wait(struct duet_runtime *runtime);

/*
 * Cancels the run, from any thread but not from a signal handler: tasks that have not started will
 * not run any more, those that run end, and duet_wait returns DUET_ECANCELED. Handles keep what was
 * computed so far, as after the failure of a task.
 */
DUET_EXPORT void duet_cancel(struct duet_runtime *runtime);

/*
 * Marks a moment in the trace with a text, which is copied, at the date of duet_now. Does nothing
 * if the run is not recorded. Any thread, also in kernels. Errors: DUET_EINVAL (NULL), DUET_ENOMEM.
 */
DUET_EXPORT int duet_mark(struct duet_runtime *runtime, const char *text);

/*
 * Marks the beginning of a phase in the trace, which lasts until the next one: "assembly",
 * "factorization". NULL ends it without a new one. Tasks may end long after the phase in which they
 * were submitted. Threads and errors as duet_mark.
 */
DUET_EXPORT int duet_phase(struct duet_runtime *runtime, const char *text);

/* ------------------------------------------------------------------------------------------- */
/* Tasks that expand                                                                            */

/*
 * Two-level algorithms: a task on a tile becomes tasks on blocks of that tile. The children may run
 * anywhere, on data that they share only with each other; the expanded task is finished when all of
 * them are, their results back in the host's memory, and only then do its successors run. Children
 * may expand in turn. A task expands on a CPU worker: in a machine without, its submission is
 * refused. The same expansion runs in simulations, where data pointers may be NULL.
 */

/*
 * Makes a handle for children of the task: rows x cols elements at (row, col) of its access number
 * `index`. It belongs to the expansion and ends with it, so that no other task may use it. Blocks
 * of one expansion may not overlap. Errors: DUET_EINVAL (outside of the data, overlaps another one,
 * no such access), DUET_ENOMEM.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_expand_block(struct duet_expansion *expansion, size_t index,
                                                  size_t row, size_t col, size_t rows, size_t cols,
                                                  struct duet_handle **out);

/*
 * Submits a child, as duet_submit, but only on blocks of this expansion, which it may write only
 * where the expanding task may. Never blocks.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_expand_submit(struct duet_expansion *expansion,
                                                   const struct duet_task_desc *task);

/* Submits a child that is given as a list of items: see duet_insert. */
DUET_EXPORT DUET_MUST_CHECK int duet_expand_insert(struct duet_expansion *expansion,
                                                   const struct duet_codelet *codelet, ...);

/*
 * Blocks until the children submitted so far have ended, with their children, and all blocks of the
 * expansion are in the host's memory. The task may then compute with them, in buffers[i].data,
 * submit more children on the same blocks, and wait again. For codelets with `waits` only, on the
 * thread on which they were called. Meanwhile the worker runs other tasks on the same stack, the
 * newest of its own first: the caller must not hold a lock that such a task may want. Children that
 * a task does not wait for itself are waited for when it has returned, so they may point into data
 * that it has allocated, but not to its local variables.
 *
 * Simulations call its functions, too, as those of all tasks that expand. Half of what is left of
 * its time passes before it begins and after each wait, the rest when it has returned.
 *
 * Returns 0, the run's error if it has failed, or the error of the first child that has: children
 * may then not have run, and the task, which fails with them, should return it. DUET_EINVAL: the
 * codelet has no `waits`.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_expand_wait(struct duet_expansion *expansion);

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#include <duet/old_names.h>

#endif
