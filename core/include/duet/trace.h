/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happened in a run: counters that are always kept, and one record a kernel and a copy when
 * recording is on. Both worlds fill them through the core, so they mean the same in both.
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
#pragma GCC visibility push(default) /* exported by libduet, as nothing else is */

struct duet_runtime;

enum duet_event_kind {
    DUET_EVENT_TASK, /* a kernel ran on a worker */
    DUET_EVENT_COPY, /* bytes went from one memory node to another */
};

enum { DUET_NO_WORKER = -1 };

/* One record. Dates in seconds since the runtime was opened. */
struct duet_event {
    enum duet_event_kind kind;
    int worker;      /* that ran the kernel, or that started the copy */
    unsigned kernel; /* TASK: index of the kernel (duet_kernel_name); COPY: 0 */
    uint64_t id;     /* TASK: number of the task, from 1 in order of submission;
                        COPY: number of the handle, from 1 in order of registration */
    double submit_s; /* TASK: when submitted; COPY: when the core decided it */
    double ready_s;  /* TASK: when its last dependency ended; COPY: = submit_s */
    double start_s;  /* kernel or copy started */
    double end_s;    /* kernel or copy ended */
    uint16_t source; /* COPY: memory nodes; TASK: both the worker's node */
    uint16_t destination;
    bool write_back; /* COPY: made room for something else (eviction) */
    bool failed;     /* TASK: the kernel reported an error or was not run because of one;
                        COPY: it did not arrive */
    bool paused;     /* TASK: a piece of it, after which it waited for its children; there are
                        further records of the same id, the last of which is not paused */
    uint64_t bytes;  /* COPY: bytes moved; TASK: bytes of all accesses */
    double work;     /* TASK: flops where its kernel counts them, else bytes; COPY: 0 */
    uint32_t name;   /* TASK: number of what the application calls it (duet_trace_name); 0: none */
    uint32_t iteration;  /* TASK: as the application says; 0: none */
    int32_t priority;    /* TASK: the application's, or what the policy has made of it */
    bool own;            /* TASK: the runtime's own, which makes or adds up contributions */
    bool child;          /* TASK: of one that expands, or that waits for it */
    uint64_t where;      /* TASK: the architectures that could run it, as bits */
    uint64_t used_bytes; /* of a device's memory, when this had ended, whatever is in it: of the
                            worker's, or the copy's destination, or its source where that is the
                            host; 0: of none */
};

/*
 * The records, sorted by start_s, then worker, then id. *events is owned by the caller (free). Only
 * when no task is in flight. Errors: DUET_EINVAL (recording was off), DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet_trace_events(const struct duet_runtime *runtime,
                                      struct duet_event **events, size_t *count);

/* The text of a number in the records; NULL: there is none. Any time. Owned by the runtime. */
const char *duet_trace_name(const struct duet_runtime *runtime, uint32_t number);

/* What the application has marked: a moment, or a phase of it; or that a device was lost. */
struct duet_trace_mark {
    uint32_t name; /* its text (duet_trace_name) */
    bool phase;
    double start_s, end_s; /* dates on the application's thread; of a moment, the same twice */
    unsigned lost;         /* the worker of that device, and 1; its name is the text; else 0 */
};

/*
 * The marks since the opening, or the last duet_stats_reset, in the order in which they were made;
 * a phase that goes on ends now. *marks is owned by the caller (free). Any time. Errors:
 * DUET_EINVAL (recording was off), DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet_trace_marks(const struct duet_runtime *runtime,
                                     struct duet_trace_mark **marks, size_t *count);

/* One access of a task that is in the records, or one task that it comes after explicitly. */
struct duet_trace_access {
    uint64_t task;   /* number of the task, as in struct duet_event */
    unsigned index;  /* of the access in its task, as submitted; what else is here has others */
    uint64_t handle; /* number of the handle, from 1 in order of registration; 0: of no access */
    uint64_t bytes;  /* of the handle's data */
    /* number of the handle that it is a part of (duet/parts.h), or a contribution to; 0: of none.
       Where that is a part in turn, and not accessed itself, an access without a mode tells of what
     */
    uint64_t whole;
    uint64_t cut; /* parts of one have the same number here, and have nothing in common */
    bool reads, writes;
    bool temporary; /* nothing was in it before the first task that writes it (duet_temporary) */
    unsigned mode;  /* enum duet_mode; 0: none, or what an earlier access says */
    uint64_t after; /* number of the task that this one comes after; 0: it is an access */
};

/*
 * The accesses of the tasks in the records, and what these come after, in order of tasks, then of
 * their accesses. *accesses is owned by the caller (free). Only when no task is in flight. Errors:
 * DUET_EINVAL (they were not recorded: config.record_accesses), DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet_trace_accesses(const struct duet_runtime *runtime,
                                        struct duet_trace_access **accesses, size_t *count);

/* The machine the runtime runs on. Owned by the runtime. */
const struct duet_machine *duet_runtime_machine(const struct duet_runtime *runtime);

/* Number of kernels registered, and the name of each (NULL beyond). Owned by the runtime. */
size_t duet_kernel_count(const struct duet_runtime *runtime);
const char *duet_kernel_name(const struct duet_runtime *runtime, size_t kernel);

enum { DUET_STATS_ARCHS = 8 }; /* architectures of a machine that have counters of their own */

/* Counters of a whole run. Seconds are sums over workers where a field says so. */
struct duet_stats {
    uint64_t tasks;           /* finished */
    uint64_t accesses;        /* of finished tasks */
    double first_submit_s;    /* date of the first submission of a task, which an acquisition is
                                 not; 0 if none */
    double last_end_s;        /* end of the last kernel */
    double makespan_s;        /* last_end_s - first_submit_s; 0 if no task has finished */
    double flops;             /* of finished tasks, as their codelets count them */
    uint64_t bytes_to_device; /* host to device */
    uint64_t bytes_to_host;   /* device to host, write-backs of evictions included */
    uint64_t bytes_between;   /* device to device */
    uint64_t copies_to_device, copies_to_host, copies_between;
    uint64_t evictions;       /* replicas that made room for others */
    uint64_t write_backs;     /* of these, how many had to be copied to the host first */
    uint64_t reads_on_device; /* R and RW accesses of tasks that ran on devices, or were taken back
                                 there when their data had been asked for */
    uint64_t read_hits;       /* of these, valid on the device, or on their way there, already */
    uint64_t merged;          /* of read_hits: on their way (transfer merging) */
    uint64_t pushes, pops, steals, steal_attempts;
    uint64_t revocations; /* tasks that another worker was given after one had taken them */
    double busy_s;        /* kernels, summed over workers */
    double busy_by_arch_s[DUET_STATS_ARCHS]; /* the same over the workers of each architecture */
    double critical_path_s; /* longest dependency chain, each task at its shortest time (as in
                               struct duet_class_stats) over those that can run it */
};

/* Fills *stats. Any time; exact when no task is in flight. */
void duet_stats(const struct duet_runtime *runtime, struct duet_stats *stats);

/*
 * Starts a new measurement: counters, the critical path and the trace begin anew; what models have
 * learned stays, and the critical path is from then on made of the times expected now. Only when no
 * task is in flight. The dates of what follows still count from the opening of the runtime.
 */
void duet_stats_reset(struct duet_runtime *runtime);

/* Which policy a runtime whose policy chooses among others (auto) has taken, and why. */
struct duet_choice {
    char policy[64];    /* with what is given of its parameters: "cp:beta=3" */
    double predicted_s; /* the makespan of what was tried */
    char runner_up[64]; /* "": none came to an end, or only one was tried */
    double runner_up_s; /* may be shorter by what says nothing, 0.5 % */
    size_t tasks;       /* on how many the candidates were tried */
    char why[80];       /* nothing was tried, and the policy is the first one; else "" */
};

/* Fills *out. false: the runtime's policy is none that chooses. Not while another thread waits for
   tasks. */
bool duet_choice(const struct duet_runtime *runtime, struct duet_choice *out);

/*
 * Tasks of the application finished since the runtime was opened, never more than were submitted:
 * cheap, any thread, for progress bars. It may go down for a moment: by those the runtime has made
 * itself, to reduce data or where a device is lost, until they have ended. Nested tasks that a
 * worker keeps to itself (struct duet_policy.private_nested) are counted in bundles of up to 64.
 */
uint64_t duet_tasks_done(const struct duet_runtime *runtime);

/*
 * A worker that is neither at a kernel or a copy nor idle at this moment: it is in the scheduler,
 * where it stays for microseconds. *steps grows with all that begins and ends, and is 0 while all
 * workers are idle: the same worker with the same steps for a second means that the policy, or a
 * function that expands a task, does not return. DUET_NO_WORKER: there is none, as in every
 * simulation. Any thread.
 */
int duet_worker_scheduling(const struct duet_runtime *runtime, uint64_t *steps);

/*
 * Per kernel, work, sizes of data and cost ("class"): how many tasks were finished and what they
 * are expected to take on each architecture, the figures behind the area bound. Of a kernel with
 * more than 1,024 of them, the others share classes: see docs/models.md.
 */
struct duet_class_stats {
    const char *kernel; /* owned by the runtime */
    double work;        /* flops, or bytes where flops are not counted; of a shared one, about */
    uint64_t tasks;     /* finished */
    /* by architecture: the mean that a simulated machine draws from (of tasks that share a class,
       the least), else of those that were
       measured, else what the model expects; 0: cannot run there. Owned by the runtime, valid until
       the next call with this runtime */
    const double *expected_s;
    const uint64_t *ran; /* by worker: how many finished there. Likewise */
};

/*
 * (see struct duet_class_stats) Number of classes, and the figures of one. DUET_EINVAL beyond. Only
 * when no task is in flight.
 */
size_t duet_class_count(const struct duet_runtime *runtime);
DUET_MUST_CHECK int duet_class_stats(const struct duet_runtime *runtime, size_t index,
                                     struct duet_class_stats *stats);

/* Busy seconds and finished tasks of one worker. Any time. */
double duet_worker_busy(const struct duet_runtime *runtime, unsigned worker);
uint64_t duet_worker_tasks(const struct duet_runtime *runtime, unsigned worker);

#pragma GCC visibility pop
#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif
#endif
