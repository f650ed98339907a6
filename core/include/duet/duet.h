/* SPDX-License-Identifier: Apache-2.0 */
/*
 * duet for applications: register data, submit tasks, wait. The same program runs on the machine
 * at hand or is simulated on another one; which of the two is chosen when the runtime is opened,
 * by an option or by the environment (see duet_config_environment).
 *
 * Time is in seconds (double) since the runtime was opened; sizes are in bytes unless named rows
 * or columns. Functions that return int give 0 or a negative `enum duet_error`; duet_last_message
 * then says what was wrong. Unless a function says otherwise it does not block.
 *
 * Inside kernels, expansions and what is called at a task's end (duet_kernel_fn, duet_expand_fn,
 * duet_done_fn) what waits is refused, in both worlds: duet_wait, duet_ref_wait, duet_acquire,
 * duet_unregister, duet_uncut and duet_close do nothing there, return DUET_EINVAL and fail the run
 * with it. A task whose codelet says so may wait for its
 * children (duet_expand_wait). Everything else may be called there, too; duet_submit does not wait
 * for the window. A simulated runtime is used by one thread at a time, whatever is said of any
 * thread below, but for duet_tasks_done.
 */
#ifndef DUET_DUET_H
#define DUET_DUET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/layout.h>
#include <duet/error.h>
#include <duet/failure.h>
#include <duet/handles.h>
#include <duet/hint.h>
#include <duet/nodes.h>
#include <duet/parts.h>

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a function may have the name of a struct, as in C */
#endif
#pragma GCC visibility push(default) /* exported by libduet, as nothing else is */

/* The version of this header. Versions are semantic (semver.org). */
#define DUET_VERSION "0.1.0"

/* Returns the version of the library that is running, "0.1.0". The text is static. Any thread. */
const char *duet_version(void);

struct duet_runtime; /* one open runtime */
struct duet_codelet; /* a kernel with its implementations; lives as long as the runtime */
struct duet_handle;  /* a registered piece of data: duet/handles.h */

/* ------------------------------------------------------------------------------------------- */
/* Opening and closing                                                                          */

/* How to run. Fill with duet_config_init, then change what you like. Strings are borrowed. */
struct duet_config {
    const char *simulate; /* platform to simulate: a name or a file; NULL: run on this machine */
    /*
     * Run on this machine, but with emulated GPUs: "free" computes on CPU cores in memories of
     * their own, as fast as these can; a platform (name or file) makes every kernel and copy take
     * the time that its calibration says, times `scale`, and computes nothing. NULL: no emulation.
     */
    const char *emulate;
    /*
     * How the GPUs of this machine are programmed: "cuda", or "opencl": GPUs and accelerators of
     * all platforms of OpenCL or, where there are none, its CPUs (pocl). NULL: "cuda". Not with
     * `emulate`.
     */
    const char *devices;
    double scale;      /* of emulated times; 0: 1 */
    const char *lose;  /* "gpu1@100": that emulated GPU is lost at its 100th kernel or copy; several
                          separated by commas. To try what a program does then. NULL: none */
    double watchdog_s; /* a wait in which nothing at all happens for so long ends with DUET_ESTUCK;
                          0: 10 s; below 0: never */
    bool no_bind;      /* leave threads where the operating system puts them */
    int cpus;          /* computing CPU cores; -1: all that feed no GPU */
    int gpus;          /* GPUs; -1: all */
    uint64_t gpu_memory_bytes; /* usable bytes of each GPU; 0: as the platform says */
    double gpu_memory_share;   /* the same as a part of what is free on a GPU of this machine (of
                                  what the platform says, if there is one), above 0 and at most 1;
                                  0: 0.9 on this machine. Not with gpu_memory_bytes */
    const char *links;         /* "pcie=12GB/s,qpi=8GB/s": bandwidths to replace; NULL: none */
    bool no_peer;              /* no direct copies between GPUs */
    bool nearest_source;       /* data is copied from where a lone copy would arrive first, whatever
                                  is under way; else from where that costs least with the copies
                                  under way, also by way of the host */
    const char *policy;        /* scheduling policy: name, or path of a shared object, then values
                                  of its parameters, "NAME:PARAMETER=VALUE:..."; NULL: "ws" */
    const char *model;         /* performance model: name; NULL: "history" */
    const char *nodes;         /* how many processes run the program together, over MPI or in
                                  a simulation, and how data is dealt out to them: "4", or "2x2",
                                  rows and columns; NULL: one */
    const char *network; /* what joins simulated nodes, "fat-tree:100Gbps,1us" (docs/nodes.md);
                            NULL: what the platform says */
    uint64_t seed;       /* of every random choice; same seed, same simulated run */
    size_t window;       /* tasks submitted and unfinished at most; 0: default (65,536) */
    unsigned gpu_window; /* tasks in preparation or in flight per GPU; 0: 2 */
    unsigned gpu_window_short; /* the same while those in it are short, 100 us together as far as is
                                  known, and none waits for copies, so that a GPU does not wait for
                                  launches; 0: 8, or gpu_window if that was given */
    unsigned gpu_streams;      /* kernels that may run at once on a GPU of this machine; 0: 1. More
                                  fill a large GPU with small tasks, whose measured times then
                                  include each other's */
    bool gpu_untimed;          /* GPUs of this machine record no times, which saves some
                                  microseconds a kernel or copy: its dates are those at which the
                                  host launched it and saw its end */
    uint64_t pin_bytes;        /* of the host's memory that may be page-locked (duet_pin); 0: three
                                  quarters of it, or of what control groups leave */
    bool no_pin;               /* page-lock nothing of the application's */
    bool set_arch;   /* kernels that have an accelerator implementation run on accelerators only,
                        unless a task's own `where` names other workers */
    bool keep_going; /* after a task has failed, only those that need what it was to write do not
                        run; else nothing does that has not begun. See duet/failure.h */
    bool hold;       /* what the application submits enters the graph when one of its threads
                        waits, or the window is full: then it is known what comes after a task.
                        Nothing runs before */
    const char *priorities; /* of tasks, for policies that look at them: "workload": those they are
                               submitted with; "none": all 0; "bottom-level": by the longest path
                               to the end (upward rank), for which tasks are held: docs/policies.md.
                               NULL: "workload" */
    bool strict;      /* refuse tasks whose data fits no accelerator that could run them, instead of
                         leaving them to the CPUs */
    bool noise;       /* simulated kernel times are drawn from the measured distribution */
    bool jitter;      /* simulated latencies of threads (costs wake, event) are drawn, up to a tenth
                         more or less, and nothing else; with noise they are anyway */
    bool extrapolate; /* allow simulated kernel sizes beyond the measured ones */
    bool no_costs;    /* the simulated runtime's own operations cost nothing */
    const char *costs;   /* "submit=1us,steal=2us,...": costs to replace; NULL: the platform's */
    double model_error;  /* relative error put on purpose into what the scheduler believes of kernel
                            times: each kernel and architecture by a factor drawn from
                            [1-e, 1+e]; 0: none */
    double perturbation; /* the same as StarPU's authors did (CCPE 2011): the logarithm of each
                            prediction, in microseconds, times a factor drawn from [1-h, 1+h], 32
                            for tasks that are alike; 0: none */
    bool learn;          /* performance models know nothing at first, but what kernels' `cost` says:
                            calibrations are for the simulated machine only */
    /*
     * Causes that the simulated machine is to be without, to see their share: a list of "caches",
     * "bandwidth", "neighbours", "cores" (see docs/models.md), "wake-ups" (of workers that sleep,
     * noticing of events), "start" (the first worker being the application). NULL: none
     */
    const char *without;
    const char *context;  /* workload whose kernel times are meant where the platform has several;
                             NULL: any */
    bool record;          /* keep trace records (duet_trace_events) */
    bool record_accesses; /* the same, and of which data (duet_trace_accesses) */
    const char *trace;    /* file for a Perfetto trace, or one of Paje's format if it ends in .paje,
                             written by duet_close; "%u" in it becomes what no other run has; NULL:
                             none */
    /*
     * Platform file of this machine, "mine.json", to which duet_close adds what kernels took, with
     * what earlier runs have left there: docs/calibrate.md. It is made if it is not there. One that
     * cannot be written, or is of another machine, is an error of duet_open; where duet_close fails
     * to add to it, that is said on standard error, and is no error. Not with `simulate` nor at the
     * pace of a platform. NULL: none.
     */
    const char *calibrate;
    bool report; /* duet_close prints a summary on standard error */
    bool quiet;  /* nothing but errors and what was asked for on standard error: no remark
                    on workers that share cores, GPUs that are left out, or devices. For
                    programs that open one runtime after another */
};

/* Sets every field to its default. */
void duet_config_init(struct duet_config *config);

/*
 * Overrides fields from the environment: DUET_SIMULATE, DUET_EMULATE, DUET_DEVICES, DUET_SCALE,
 * DUET_LOSE, DUET_WATCHDOG (seconds, or "never"), DUET_NO_BIND, DUET_CPUS, DUET_GPUS,
 * DUET_GPU_MEMORY, DUET_GPU_WINDOW, DUET_GPU_WINDOW_SHORT, DUET_GPU_STREAMS, DUET_GPU_UNTIMED,
 * DUET_PIN ("none" or a size), DUET_LINKS, DUET_NO_PEER, DUET_NEAREST_SOURCE, DUET_POLICY,
 * DUET_MODEL, DUET_LEARN, DUET_SEED, DUET_NODES, DUET_NETWORK, DUET_WINDOW, DUET_SET_ARCH,
 * DUET_KEEP_GOING, DUET_HOLD, DUET_PRIORITIES, DUET_NOISE, DUET_JITTER, DUET_EXTRAPOLATE,
 * DUET_NO_COSTS, DUET_COSTS, DUET_MODEL_ERROR, DUET_PERTURBATION, DUET_WITHOUT, DUET_CONTEXT,
 * DUET_TRACE, DUET_CALIBRATE, DUET_REPORT. DUET_EINVAL with a message that names the variable;
 * config may then be partly changed. The strings belong to the environment.
 */
DUET_MUST_CHECK int duet_config_environment(struct duet_config *config,
                                            struct duet_message *message);

/*
 * Takes options of the form --duet-NAME=VALUE out of the argument list (NAME as the variables
 * above, lower case, '-' for '_': --duet-simulate=idgraf), shortens *argc, and leaves the rest in
 * order. Same errors as duet_config_environment.
 */
DUET_MUST_CHECK int duet_config_arguments(struct duet_config *config, int *argc, char **argv,
                                          struct duet_message *message);

/*
 * Opens a runtime. `config` NULL: defaults and environment. On success *out is owned by the caller
 * (duet_close). One simulated runtime may be open in a process, and only one after another is
 * not possible either (SimGrid's engine cannot be created twice): DUET_EBUSY. Real ones start their
 * threads before this returns, and there may be several. Links, costs, noise and extrapolation
 * belong to platforms: a run on this machine without one looks at none of them. DUET_EINVAL:
 * `emulate` together with `simulate` or `devices`, `lose` without `emulate`, `scale` without a
 * platform to emulate.
 */
DUET_MUST_CHECK int duet_open(struct duet_runtime **out, const struct duet_config *config,
                              struct duet_message *message);

/*
 * Waits for all tasks, writes what was asked for (trace, report) and frees everything, handles
 * and codelets included. Data is not brought back to the host: duet_acquire or
 * duet_unregister before. Returns the first error of the run or of writing; one that no earlier
 * wait has returned is also printed on standard error. NULL is fine. A program may also end without
 * it, at any time: with its own exit status, and without what was asked for. A child made by fork
 * has none of the threads of its parent's real runtime: this call, and all others that wait, submit
 * or release, return DUET_EINVAL there.
 */
int duet_close(struct duet_runtime *runtime);

/*
 * The message of the last error of this runtime, whichever thread got it; "" if none. A copy for
 * the calling thread, valid until this thread asks again.
 */
const char *duet_last_message(const struct duet_runtime *runtime);

/* Seconds since the runtime was opened: wall clock, or simulated. */
double duet_now(const struct duet_runtime *runtime);

/*
 * Whether kernels compute: on this machine, and on emulated GPUs that are as fast as these can.
 * Simulations and emulations of a platform take the time of kernels alone: there is nothing to
 * verify.
 */
bool duet_computes(const struct duet_runtime *runtime);

/* ------------------------------------------------------------------------------------------- */
/* Kernels                                                                                      */

/* One buffer as a kernel sees it: a replica of the handle in the memory of its worker. */
struct duet_buffer {
    void *data; /* NULL when simulated without data */
    size_t rows, cols, ld, element_bytes;
    size_t planes, plane; /* of duet_block: how many, and elements from one to the next; else 1 and
                             ld * cols */
};

/* What a kernel receives. All of it is borrowed for the duration of the call. */
struct duet_call {
    struct duet_runtime *runtime; /* for duet_submit from inside a task */
    const void *args;             /* the task's arguments */
    const struct duet_buffer *buffers;
    size_t buffer_count; /* as many as accesses, in their order; several of one to duet_arrays */
    void *stream;        /* backend's stream (cudaStream_t; struct duet_opencl), NULL on CPUs */
    /*
     * On a device that runs kernels asynchronously: page-locked memory for CUDA, 0 at first. What
     * the kernel's stream writes there before the kernel ends is its status: 0, or that it has
     * failed (a negative enum duet_error, or an info of LAPACK above 0). Else NULL.
     */
    int *status;
    struct duet_message *message; /* to say why it fails: duet_fail(call->message, ...). Or NULL */
};

/*
 * A kernel: returns 0, or a negative enum duet_error that fails the task. It may submit tasks
 * (nested tasks): they are ordered after all tasks submitted before, so one that conflicts with the
 * task at hand runs after it. Those of a kernel on a device are ordered, and may run, when it has
 * ended: if the device is lost first, the kernel runs again elsewhere, and only what it submits
 * then counts; a reference to what it submitted is to that then, in the order of its submissions.
 * In simulations kernels are not called, and submit nothing.
 */
typedef int (*duet_kernel_fn)(const struct duet_call *call);

struct duet_implementation {
    /* architecture ("c2050"), backend ("cpu", "cuda", "opencl"), or "emulated": what an emulated
       GPU calls, which is the one for "cpu" if this is not given */
    const char *arch;
    duet_kernel_fn run; /* NULL: only simulated; when run for real, as if it were not listed */
};

struct duet_expansion; /* a task at the moment at which it expands */
/*
 * Expands a task into children (duet_expand_block, duet_expand_submit). buffers[i].data is the
 * host's replica, only to be passed on. Returns 0 or a negative enum duet_error that fails the
 * task. What it submits by duet_submit is no child: as the nested tasks of a kernel.
 */
typedef int (*duet_expand_fn)(struct duet_expansion *expansion, const struct duet_call *call);

struct duet_codelet_desc {
    const char *name; /* kernel name; key of the performance models: "dgemm". At most 31 bytes */
    const struct duet_implementation *implementations;
    size_t implementation_count;
    /* flops of one execution with these arguments; NULL: not counted (models then use bytes) */
    double (*flops)(const void *args);
    /* seconds of an execution with these arguments on an architecture, as far as the application
       knows: used where no calibration knows the kernel and nothing was measured of tasks of this
       size and cost; <= 0: not known. Called for every task, by any thread, and again until the
       task has ended: it depends on what it is given alone. May be NULL */
    double (*cost)(const void *args, const char *arch);
    /* instead of implementations: the task is replaced by its children when its inputs are there.
       NULL: an ordinary kernel */
    duet_expand_fn expand;
    /* of a codelet that expands: it may call duet_expand_wait, and computes itself, on its worker:
       then a simulation needs to know its time, as a kernel's */
    bool waits;
};

/*
 * Registers a kernel; what `desc` points to is copied. Implementations for architectures that the
 * machine does not have are ignored. Errors: DUET_EINVAL (no name, no implementation or both
 * implementations and `expand`, duplicate name), DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet_codelet(struct duet_runtime *runtime, const struct duet_codelet_desc *desc,
                                 struct duet_codelet **out);

/* The kernel registered under this name, or NULL. */
struct duet_codelet *duet_codelet_find(struct duet_runtime *runtime, const char *name);

/*
 * The restriction `name`: a set of architectures as a mask for struct duet_task_desc. `name` is an
 * architecture, a backend, or several separated by commas. 0 if the machine has none of them.
 */
uint64_t duet_where(const struct duet_runtime *runtime, const char *name);

/* ------------------------------------------------------------------------------------------- */
/* Tasks                                                                                        */

struct duet_access {
    struct duet_handle *handle;
    enum duet_mode mode;
};

enum { DUET_ARGS_INLINE = 64 }; /* bytes of arguments for which a task needs no allocation */

/*
 * A reference to a task: to wait for it, to ask whether it has ended, and to let others come after
 * it without data. The application holds it until duet_ref_free, whatever becomes of the task.
 */
struct duet_ref;

/*
 * Called once when a task has ended, after its children if it expands: with status 0, or the
 * negative enum duet_error that it or the run has failed with, when it may not have run at all. On
 * any thread, inside of the runtime: as a kernel it may submit tasks, which duet_wait waits for
 * too, but not wait; and it is to be short. What it submits after a failure is cancelled: who
 * submits whatever the status does so without end. In simulations it is called as well.
 */
typedef void (*duet_done_fn)(struct duet_runtime *runtime, void *arg, int status);

/* What few tasks have. */
struct duet_task_extra {
    /* where to leave a reference to the task; NULL: none is needed. NULL is left there if the
       submission is refused */
    struct duet_ref **ref;
    /* tasks that have to end, well or not, before this one begins, with or without data in common,
       beside those that it follows for its data; NULL among them: none. A child that comes after
       the task that it is a child of, or one below which that waits, is refused (DUET_EINVAL): both
       would wait for each other. What does so through other tasks ends a wait with DUET_ESTUCK */
    struct duet_ref *const *after;
    size_t after_count; /* at most 65,535 */
    duet_done_fn done;  /* at its end; NULL: nothing */
    void *done_arg;
    const char *name;     /* in traces, beside its kernel's: "potrf(3)". Copied. NULL: none. Each
                             different one is kept until the runtime is closed */
    uint32_t iteration;   /* of the application's, in traces: 1, 2 ...; 0: none */
    const unsigned *node; /* where it runs: duet/nodes.h; NULL: by its data */
};

struct duet_task_desc {
    const struct duet_codelet *codelet;
    const struct duet_access
        *accesses;       /* the same handle twice counts as one access, RW if mixed */
    size_t access_count; /* at most 65,535 */
    const void *args;    /* copied, to where it is aligned for every type */
    size_t args_bytes;
    int priority;      /* higher runs earlier, for policies that look at it */
    uint64_t where;    /* 0: anywhere; else only on these architectures (duet_where): SetArch */
    double complexity; /* hint for policies that use it (UnMP); 0: flops */
    const struct duet_task_extra *extra; /* what few tasks have; NULL: nothing of it */
};

/*
 * Submits a task. It runs after every earlier submitted task that it conflicts with on a handle
 * (sequential consistency: reads after writes, writes after reads and writes). Everything is
 * copied. May block while `window` tasks are unfinished, but not inside a task. May be called from
 * several threads: tasks of one thread are ordered, those of different threads as they come.
 * Errors: DUET_EINVAL, DUET_ENOWORKER, DUET_ETOOBIG, DUET_ENOMODEL (simulated, no time known),
 * DUET_ENOMEM; the task is then not submitted.
 */
DUET_MUST_CHECK int duet_submit(struct duet_runtime *runtime, const struct duet_task_desc *task);

/* What an item of duet_insert begins with, beside the mode of an access; and what follows it. */
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
 * duet_submit of a task that is given as a list of items, which ends with 0:
 *
 *     duet_insert(duet, axpy, DUET_R, x, DUET_RW, y, DUET_VALUE, &n, sizeof n, DUET_PRIORITY, 3, 0)
 *
 * An access is a mode and a handle; accesses and values are numbered in their order. At most 64
 * accesses, 32 values and 16 times DUET_AFTER. What follows has to be of the type that is named
 * above, as with printf (a size is a size_t, not 8). Errors as duet_submit; DUET_EINVAL: an item
 * that is none, with its number.
 */
DUET_MUST_CHECK int duet_insert(struct duet_runtime *runtime, const struct duet_codelet *codelet,
                                ...);

/*
 * In a kernel: copies the values of a task that was given as a list to where the kernel wants them,
 * all of them in their order: pairs of an address and a size_t, which end with NULL.
 *
 *     int error = duet_values(call, &n, sizeof n, &alpha, sizeof alpha, NULL);
 *
 * DUET_EINVAL, with a message in the call that the kernel passes on by returning the error: there
 * are more or fewer, or one is of another size.
 */
DUET_MUST_CHECK int duet_values(const struct duet_call *call, ...);

/*
 * One of these values by its number, from 0, where it lies in the arguments, aligned for every
 * type: in `flops` and `cost` of a codelet, and for what is too large to be copied. NULL: there is
 * none of this number and size. `args` is that of a task, or NULL.
 */
const void *duet_value(const void *args, size_t index, size_t bytes);

/*
 * Blocks until the task has ended and its `done` has returned. Its data stays where it is:
 * duet_acquire brings it. Errors: DUET_EINVAL, DUET_ESTUCK, the run's error if a task has failed.
 */
DUET_MUST_CHECK int duet_ref_wait(struct duet_runtime *runtime, struct duet_ref *ref);

/* true if the task has ended. Any thread. In simulations no time passes by asking. */
bool duet_ref_ended(const struct duet_ref *ref);

/*
 * Gives the reference up, at any time, also after duet_close: the task and those that come after it
 * go on. NULL is fine.
 */
void duet_ref_free(struct duet_ref *ref);

/*
 * Blocks until every submitted task is finished. Returns the first error of a task (its name is in
 * the message; see duet_failures), or DUET_ESTUCK with what waits for what. Any number of waits in
 * a run.
 */
DUET_MUST_CHECK int duet_wait(struct duet_runtime *runtime);

/*
 * Gives the run up, from any thread but not from a signal handler: tasks that have not started will
 * not run any more, those that run end, and duet_wait returns DUET_ECANCELED. As after the failure
 * of a task, handles keep what was computed so far.
 */
void duet_cancel(struct duet_runtime *runtime);

/*
 * Marks a moment in the trace with a text, which is copied, at the date of duet_now; nothing if the
 * run is not recorded. Any thread, also in kernels. Errors: DUET_EINVAL (NULL), DUET_ENOMEM.
 */
int duet_mark(struct duet_runtime *runtime, const char *text);

/*
 * The same of a phase, which lasts until the next one begins or, with NULL, none: "assembly",
 * "factorization". Tasks may end long after the phase in which they were submitted.
 */
int duet_phase(struct duet_runtime *runtime, const char *text);

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
 * The block of rows x cols elements at (row, col) of access number `index` of the task, as a handle
 * for its children. It belongs to the expansion and ends with it, so that no other task may use it.
 * Blocks of one expansion may not overlap.
 * DUET_EINVAL (outside of the data, overlaps another one, no such access), DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet_expand_block(struct duet_expansion *expansion, size_t index, size_t row,
                                      size_t col, size_t rows, size_t cols,
                                      struct duet_handle **out);

/*
 * Submits a child: as duet_submit, but only on blocks of this expansion, which it may write only
 * where the expanding task may; never blocks.
 */
DUET_MUST_CHECK int duet_expand_submit(struct duet_expansion *expansion,
                                       const struct duet_task_desc *task);

/* The same of a child that is given as a list: see duet_insert. */
DUET_MUST_CHECK int duet_expand_insert(struct duet_expansion *expansion,
                                       const struct duet_codelet *codelet, ...);

/*
 * Waits for the children submitted so far, with their children, and has all blocks of the expansion
 * in the host's memory then: the task may compute with them, in buffers[i].data, submit more
 * children on the same blocks, and wait again. For codelets with `waits` alone, on the thread on
 * which they were called. Meanwhile the worker runs other tasks, on top of this one: the newest of
 * its own first. It must not hold a lock that such a task may want. What a task does not wait for
 * itself is waited for when it has returned, so that children may point into data that it has
 * allocated, but not to variables of a function that has ended.
 *
 * In simulations its functions are called, too, as those of all tasks that expand; half of what is
 * left of its time passes before it begins and after each wait, the rest when it has returned.
 *
 * Returns 0, or the run's error if it has failed, or that of the first child that has: then
 * children may not have run, and the task, which fails with them, is to return it. DUET_EINVAL: the
 * codelet does not say that it waits.
 */
DUET_MUST_CHECK int duet_expand_wait(struct duet_expansion *expansion);

#pragma GCC visibility pop
#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif
#endif
