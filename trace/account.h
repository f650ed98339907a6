/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accounts say where the time of a run went, and why two runs of one problem differ: every second
 * of every worker is in exactly one part, so that the parts of a difference add up to it.
 */
#ifndef DUET_TRACE_ACCOUNT_H
#define DUET_TRACE_ACCOUNT_H

#include <stddef.h>
#include <stdint.h>

#include <glib.h>

#include <duet/machine.h>

#include "trace/trace.h"
#include "workloads/files/graph.h"

/* State of a worker at a moment of the run (0 to the makespan): what it does, or why nothing. */
enum duet__state {
    DUET_STATE_KERNEL,
    /* the worker's next task waits for a copy from the host that has not begun */
    DUET_STATE_TO_DEVICE_QUEUE,
    DUET_STATE_TO_DEVICE,     /* a copy from the host that it waits for is under way */
    DUET_STATE_TO_HOST_QUEUE, /* a copy to the host, or by it to a device, has not begun */
    DUET_STATE_TO_HOST,
    DUET_STATE_ROOM,          /* data has to leave the device's memory before other data comes in */
    DUET_STATE_BETWEEN_QUEUE, /* a copy from another device has not begun */
    DUET_STATE_BETWEEN,
    DUET_STATE_MESSAGE_QUEUE, /* no task of the worker's is ready before a message comes */
    DUET_STATE_MESSAGE,
    DUET_STATE_OVERHEAD,  /* the next task is ready and its data there, but it does not run */
    DUET_STATE_ELSEWHERE, /* no task of its own is ready, but one it could run waits elsewhere */
    DUET_STATE_BEFORE,    /* nothing that the worker could run is ready before its first task */
    DUET_STATE_WITHIN,    /* nothing that the worker could run is ready between two tasks */
    DUET_STATE_AFTER,     /* nothing that the worker could run is left after its last task */
    DUET_STATE_LOST,      /* the worker's device is lost */
    DUET_STATES,
};

/* Returns the sum of the seconds of the states from `first` to `last`, both included. */
double duet__states_sum(const double seconds[DUET_STATES], enum duet__state first,
                        enum duet__state last);

/* Executions of one kernel on one architecture. */
struct duet__account_kernel {
    char name[DUET_NAME_MAX], arch[DUET_NAME_MAX];
    double count;   /* executions; a mean over runs once accounts are combined */
    double seconds; /* seconds of all executions, on all workers */
};

/* Account of a run, or mean of several; seconds are sums over the workers. */
struct duet__account {
    unsigned workers;
    double makespan_s;
    double states_s[DUET_STATES];     /* the sum over states is workers * makespan_s */
    double (*workers_s)[DUET_STATES]; /* seconds of each worker; NULL in a mean */
    struct duet__account_kernel *kernels;
    size_t kernel_count;
    double bytes[4]; /* copied: to devices, to the host, between devices; messages */
};

/*
 * Makes the account of a recorded run. Kernels of one worker that overlap (several streams) count
 * in parts: each moment once, shared among those that run. Dates count from the first submission.
 * Copies count for the task that they released, and a message for the one that is ready when it has
 * arrived. The caller owns *out
 * (duet__account_fini). DUET_EINVAL (no worker, dates that make no sense).
 */
DUET_MUST_CHECK int duet__account_make(const struct duet__recording *recording,
                                       struct duet__account *out, struct duet_message *message);

/* The mean of at least one account, of runs with equally many workers. The caller owns *out. */
void duet__account_mean(const struct duet__account *accounts, size_t count,
                        struct duet__account *out);

void duet__account_fini(struct duet__account *account); /* safe on a zeroed one, and twice */

/* A stretch in which a worker runs nothing. */
struct duet__gap {
    unsigned worker;
    enum duet__state state; /* why nothing runs; later divided among causes */
    double start_s, end_s;
    size_t next; /* index of the task that ends it; SIZE_MAX: none does */
};

/*
 * The account as stretches: struct duet__gap, for g_array_unref, by worker, then start. What one
 * gap has of each state is known, and not in which order: it comes as one stretch a state. NULL:
 * there is no account of the recording.
 */
GArray *duet__account_gaps(const struct duet__recording *recording);

/* Subject of a part of a difference. */
enum duet__reason {
    DUET_REASON_KERNEL,    /* one kernel takes longer or shorter on one architecture */
    DUET_REASON_SCHEDULE,  /* kernels run on other architectures, or another number of times */
    DUET_REASON_TO_DEVICE, /* waiting for copies, by direction */
    DUET_REASON_TO_HOST,
    DUET_REASON_BETWEEN,
    DUET_REASON_MESSAGE,
    DUET_REASON_OVERHEAD,
    DUET_REASON_IDLE,
    DUET_REASON_SPREAD, /* the medians of the makespans differ by another amount than the means */
};

const char *duet__reason_name(enum duet__reason reason);

struct duet__difference {
    enum duet__reason reason;
    char what[2 * DUET_NAME_MAX]; /* "dgemm on c2050" for KERNEL; else "" */
    double seconds;               /* part of the makespan, first less second; the sum is whole_s */
    double first, second; /* figures behind the part: mean seconds of a kernel; else seconds of the
                             makespan */
};

struct duet__explanation {
    double first_s, second_s, whole_s;    /* makespans, first less second */
    struct duet__difference *differences; /* the largest in absolute value first */
    size_t count;
    /* share of the second run's task seconds that ran on another architecture in the first run */
    double moved_share;
};

/*
 * Explains first against second (predicted against measured), of equally many workers. `first_s`,
 * `second_s`: the makespans to be explained (medians), by which DUET_REASON_SPREAD completes the
 * sum; 0: those of the accounts. A kernel's own part is (mean first - mean second) x count second /
 * workers; what is left of its seconds is the schedule's. The caller owns *out
 * (duet__explanation_fini).
 */
void duet__explain_difference(const struct duet__account *first, const struct duet__account *second,
                              double first_s, double second_s, struct duet__explanation *out);

void duet__explanation_fini(struct duet__explanation *explanation);

/* Returns the state of waiting for a copy under way: TO_HOST, MESSAGE, ROOM ... */
enum duet__state duet__copy_state(const struct duet_machine *machine,
                                  const struct duet_event *copy);

/* ------------------------------------------------------------------------------------------- */
/*
 * The critical path says why a run took as long as it did: it is the chain of kernels, copies and
 * waits that ends last, each link of which began when the one before it had ended.
 */

/* A stretch of the path; the next one begins where it ends. */
struct duet__step {
    /* work or wait of the stretch; OVERHEAD: nothing that the records show; BEFORE: the application
       submits, or does something else */
    enum duet__state state;
    size_t event; /* index of the kernel or copy */
    double start_s, end_s;
    enum duet_release after; /* kind of what a kernel waited for last */
};

/* All stretches of the path of one kind. */
struct duet__path_part {
    enum duet__state state;
    unsigned kernel, arch; /* indices, for kernels */
    size_t count;          /* number of stretches */
    double seconds;
};

struct duet__path {
    GArray *steps; /* struct duet__step, from 0 to the makespan */
    GArray *parts; /* struct duet__path_part, the longest first; their sum is the makespan */
    /* number of kernels of the path that ran while a later task of it was ready for their worker,
       which begins a chain longer by a quarter (at the times of the run); 0 without a graph */
    double hindered_s;
};

/*
 * Finds the path by walking back from the end, along what released each event: O(n log n). `graph`
 * is what duet__graph_take makes of the recording, or NULL. The recording has an account, and a
 * task; its events are sorted by start.
 */
void duet__path_make(const struct duet__recording *recording, const struct duet__graph *graph,
                     struct duet__path *out);

void duet__path_fini(struct duet__path *path); /* safe on a zeroed one, and twice */

#endif
