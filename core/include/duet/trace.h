/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trace of a run: counters that are always kept, and one record a kernel and a copy when recording
 * is on. The core fills them in real and in simulated runs, so they mean the same in both.
 */
#ifndef DUET_TRACE_H
#define DUET_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/error.h>
#include <duet/machine.h>

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a function may have the name of a struct, as in C */
#endif

struct duet_runtime;

enum duet_event_kind {
    DUET_EVENT_TASK, /* a kernel ran on a worker */
    DUET_EVENT_COPY, /* bytes went from one memory node to another */
};

enum { DUET_NO_WORKER = -1 };

/* Kinds of what a kernel or a copy waited for last, other than its worker and its link. */
enum duet_release {
    DUET_RELEASE_SUBMISSION, /* nothing: all had ended when it was submitted, or asked for */
    DUET_RELEASE_TASK,       /* a task that it comes after, or that wrote what is copied */
    DUET_RELEASE_COPY,       /* a copy of data that it needs, or from which this one goes on */
    DUET_RELEASE_ROOM,       /* a task or a copy that left memory on the device to it */
    DUET_RELEASE_WORKER,  /* COPY: a task, after which the worker turned to the one that needs it */
    DUET_RELEASE_OUTSIDE, /* the application, or another node, had the data until then */
};

/* A record of a kernel or a copy. Dates in seconds since the runtime was opened. */
struct duet_event {
    enum duet_event_kind kind;
    int worker;      /* worker that ran the kernel or started the copy */
    unsigned kernel; /* TASK: index of the kernel (duet_kernel_name); COPY: 0 */
    /* Index in the records of what released this one (see `release`), and 1; OUTSIDE: number of the
       handle; 0: nothing, or it is not in the records. */
    uint32_t released_by;
    uint64_t id;     /* TASK: number of the task, from 1 in order of submission;
                        COPY: number of the handle, from 1 in order of registration */
    double submit_s; /* TASK: when submitted; COPY: when the core decided it */
    double ready_s;  /* TASK: when its last dependency ended; COPY: = submit_s */
    double start_s;  /* kernel or copy started */
    double end_s;    /* kernel or copy ended */
    uint16_t source; /* COPY: memory node of the source; TASK: the worker's */
    uint16_t destination;
    bool write_back; /* COPY: made room for something else (eviction) */
    bool failed;     /* TASK: the kernel reported an error or was not run because of one;
                        COPY: it did not arrive */
    bool paused; /* TASK: a piece of it, before a wait for its children; there are further records
                    of the same id, the last of which is not paused */
    uint8_t release;     /* enum duet_release */
    uint64_t bytes;      /* COPY: bytes moved; TASK: bytes of all accesses */
    double work;         /* TASK: flops where its kernel counts them, else bytes; COPY: 0 */
    uint32_t name;       /* TASK: number of the task's name (duet_trace_name); 0: none */
    uint32_t iteration;  /* TASK: the application's iteration; 0: none */
    int32_t priority;    /* TASK: the application's priority, unless the policy has changed it */
    bool own;            /* TASK: made by the runtime to begin or add up contributions */
    bool child;          /* TASK: child of one that expands, or is waited for by it */
    uint64_t where;      /* TASK: bits of the architectures that could run it */
    uint64_t used_bytes; /* occupied bytes of a device's memory at the end: the worker's, or the
                            copy's destination, or its source if the destination is the host; 0: no
                            device */
};

/*
 * Returns the records, sorted by start_s, then worker, then id. *events is owned by the caller
 * (free). Only when no task is in flight. Errors: DUET_EINVAL (recording was off), DUET_ENOMEM.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_trace_events(const struct duet_runtime *runtime,
                                                  struct duet_event **events, size_t *count);

/* Returns the text of a number in the records, or NULL. Any time. Owned by the runtime. */
DUET_EXPORT const char *duet_trace_name(const struct duet_runtime *runtime, uint32_t number);

/* A mark in the trace: a moment or a phase of the application, or the loss of a device. */
struct duet_trace_mark {
    uint32_t name; /* number of the mark's text (duet_trace_name); of a loss, the device's name */
    bool phase;
    double start_s, end_s; /* dates on the application's thread; equal for a moment */
    unsigned lost;         /* number of the lost device's worker + 1; 0: no loss */
};

/*
 * Returns the marks since the opening, or the last duet_stats_reset, in the order in which they
 * were made; a phase that goes on ends now. *marks is owned by the caller (free). Any time. Errors:
 * DUET_EINVAL (recording was off), DUET_ENOMEM.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_trace_marks(const struct duet_runtime *runtime,
                                                 struct duet_trace_mark **marks, size_t *count);

/* An access of a task in the records, or a task that it comes after explicitly. */
struct duet_trace_access {
    uint64_t task;   /* number of the task, as in struct duet_event */
    unsigned index;  /* index of the access in its task, as submitted; other entries have other
                        indices */
    uint64_t handle; /* number of the handle, from 1 in order of registration; 0: no access */
    uint64_t bytes;  /* size of the handle's data */
    /* Number of the handle that contains this part (duet/parts.h) or gets this contribution; 0:
       none. If that is itself a part and not accessed, an entry without a mode describes it. */
    uint64_t whole;
    uint64_t cut; /* number of the cut; parts with one number do not overlap */
    bool reads, writes;
    bool temporary; /* temporary data without contents before the first task that writes it
                       (duet_register_temporary) */
    unsigned mode;  /* enum duet_mode; 0: no mode, or that of an earlier access */
    uint64_t after; /* number of a task that this one comes after; 0: the entry is an access */
};

/*
 * Returns the accesses of the tasks in the records, and the tasks that these come after, in order
 * of tasks, then of their accesses. *accesses is owned by the caller (free). Only when no task is
 * in flight. Errors: DUET_EINVAL (not recorded: config.record_accesses), DUET_ENOMEM.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_trace_accesses(const struct duet_runtime *runtime,
                                                    struct duet_trace_access **accesses,
                                                    size_t *count);

/* Returns the machine of the runtime, which owns it. */
DUET_EXPORT const struct duet_machine *duet_runtime_machine(const struct duet_runtime *runtime);

/*
 * Return the number of registered kernels, and the name of each (NULL beyond). Owned by the
 * runtime.
 */
DUET_EXPORT size_t duet_kernel_count(const struct duet_runtime *runtime);
DUET_EXPORT const char *duet_kernel_name(const struct duet_runtime *runtime, size_t kernel);

enum { DUET_STATS_ARCHS = 8 }; /* architectures with counters of their own */

/* Counters of a whole run. */
struct duet_stats {
    uint64_t tasks;           /* finished tasks */
    uint64_t accesses;        /* accesses of finished tasks */
    double first_submit_s;    /* date of the first submission of a task (acquisitions do not count);
                                 0: none */
    double last_end_s;        /* end of the last kernel */
    double makespan_s;        /* last_end_s - first_submit_s; 0 if no task has finished */
    double flops;             /* flops of finished tasks, as their codelets count them */
    uint64_t bytes_to_device; /* host to device */
    uint64_t bytes_to_host;   /* device to host, write-backs of evictions included */
    uint64_t bytes_between;   /* device to device */
    uint64_t copies_to_device, copies_to_host, copies_between;
    uint64_t evictions;       /* replicas that made room for others */
    uint64_t write_backs;     /* evictions that had to copy the replica to the host first */
    uint64_t reads_on_device; /* R and RW accesses of tasks that ran on devices, or were taken back
                                 from them after their data had been asked for */
    uint64_t read_hits;       /* reads_on_device that found the data valid on the device, or on its
                                 way there */
    uint64_t merged;          /* read_hits with the data on its way (transfer merging) */
    uint64_t pushes, pops, steals, steal_attempts;
    uint64_t revocations; /* tasks given to another worker after one had taken them */
    double busy_s;        /* kernel times, summed over workers */
    double busy_by_arch_s[DUET_STATS_ARCHS]; /* kernel times, summed over the workers of each
                                                architecture */
    double critical_path_s; /* longest dependency chain, each task at its shortest time (as in
                               struct duet_class_stats) over the workers that can run it */
};

/* Fills *stats. Any time; exact when no task is in flight. */
DUET_EXPORT void duet_stats(const struct duet_runtime *runtime, struct duet_stats *stats);

/*
 * Starts a new measurement: resets counters, critical path and trace. Performance models keep what
 * they have learned; the critical path uses the times expected now. Only when no task is in flight.
 * Dates still count from the opening of the runtime.
 */
DUET_EXPORT void duet_stats_reset(struct duet_runtime *runtime);

/* Choice of a policy that chooses among others (auto), and its reason. */
struct duet_choice {
    char policy[64];    /* chosen policy with the parameters given: "cp:beta=3" */
    double predicted_s; /* makespan of its trial */
    char runner_up[64]; /* second best policy; "": no other trial ended */
    double runner_up_s; /* makespan of its trial; may be shorter by an insignificant 0.5 % */
    size_t tasks;       /* tasks of the trials */
    char why[80];       /* reason why nothing was tried, and the policy is the first one; else "" */
};

/* Fills *out. Returns false if the runtime's policy is none that chooses. Not while another thread
   waits for tasks. */
DUET_EXPORT bool duet_choice(const struct duet_runtime *runtime, struct duet_choice *out);

/*
 * Returns the number of the application's tasks finished since the runtime was opened, never more
 * than were submitted: cheap, any thread, for progress bars. It may go down for a moment, by the
 * tasks that the runtime has added to reduce data or after the loss of a device, until they have
 * ended. Nested tasks that a worker keeps to itself (keeps_nested of struct duet_policy) are
 * counted in bundles of up to 64.
 */
DUET_EXPORT uint64_t duet_tasks_done(const struct duet_runtime *runtime);

/*
 * Returns a worker that is in the scheduler at this moment, where it normally stays for
 * microseconds; DUET_NO_WORKER if all are idle, or at a kernel or a copy, and in every simulation.
 * *steps grows with each begin and end, and is 0 while all workers are idle: the same worker with
 * the same steps for a second means that the policy, or a function that expands a task, does not
 * return. Any thread.
 */
DUET_EXPORT int duet_worker_scheduling(const struct duet_runtime *runtime, uint64_t *steps);

/*
 * Finished tasks of one class (kernel, work, sizes of data and cost) and their expected times on
 * each architecture, on which the area bound is based. Of a kernel with more than 1,024 classes,
 * the others share classes: see docs/models.md.
 */
struct duet_class_stats {
    const char *kernel; /* owned by the runtime */
    double work;        /* flops, or bytes where flops are not counted; approximate in a shared
                           class */
    uint64_t tasks;     /* finished tasks */
    /* Expected seconds by architecture: the mean that a simulated machine draws from (in a shared
       class, the least), else the measured mean, else the model's prediction; 0: cannot run there.
       Owned by the runtime, valid until the next call with this runtime. */
    const double *expected_s;
    const uint64_t *ran; /* finished tasks by worker; owned and valid as expected_s */
};

/*
 * Return the number of classes, and the figures of one (DUET_EINVAL beyond). Only when no task is
 * in flight.
 */
DUET_EXPORT size_t duet_class_count(const struct duet_runtime *runtime);
DUET_EXPORT DUET_MUST_CHECK int duet_class_stats(const struct duet_runtime *runtime, size_t index,
                                                 struct duet_class_stats *stats);

/* Counters of one worker. */
struct duet_worker_stats {
    uint64_t tasks; /* finished tasks */
    double busy_s;  /* time in their kernels */
};

/* Returns the counters of a worker; zeros if there is no such worker. Any time. */
DUET_EXPORT struct duet_worker_stats duet_worker_stats(const struct duet_runtime *runtime,
                                                       unsigned worker);

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#include <duet/old_names.h>

#endif
