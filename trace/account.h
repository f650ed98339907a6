/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the time of a run went, and why two runs of one problem differ: every second of every
 * worker is in exactly one part, so that the parts of the difference add up to it.
 */
#ifndef DUET_TRACE_ACCOUNT_H
#define DUET_TRACE_ACCOUNT_H

#include <stddef.h>
#include <stdint.h>

#include <glib.h>

#include <duet/error.h>
#include <duet/machine.h>

#include "trace/recording.h"

/* What a worker does at a moment of the run (0 to the makespan), or why it does nothing. */
enum duet__state {
    DUET_STATE_KERNEL,
    /* its next task is ready, and data for it is to come from the host: its copy has not begun, */
    DUET_STATE_TO_DEVICE_QUEUE,
    DUET_STATE_TO_DEVICE,     /* or is under way */
    DUET_STATE_TO_HOST_QUEUE, /* to the host, perhaps on its way to a device */
    DUET_STATE_TO_HOST,
    DUET_STATE_ROOM,          /* data has to leave the device's memory before other data comes in */
    DUET_STATE_BETWEEN_QUEUE, /* from another device */
    DUET_STATE_BETWEEN,
    DUET_STATE_MESSAGE_QUEUE, /* none of its own is ready before a message comes from another node
                               */
    DUET_STATE_MESSAGE,
    DUET_STATE_OVERHEAD,  /* its next task is ready and its data there, but it does not run */
    DUET_STATE_ELSEWHERE, /* none of its own is ready, but one that it could run waits elsewhere */
    DUET_STATE_BEFORE,    /* no task that it could run is ready: before its first one, */
    DUET_STATE_WITHIN,    /* between two, */
    DUET_STATE_AFTER,     /* after its last one */
    DUET_STATE_LOST,      /* its device is lost */
    DUET_STATES,
};

/* Seconds of the states from one to another, which is among them. */
double duet__states_sum(const double seconds[DUET_STATES], enum duet__state first,
                        enum duet__state last);

/* Executions of one kernel on one architecture. */
struct duet__account_kernel {
    char name[DUET_NAME_MAX], arch[DUET_NAME_MAX];
    double count;   /* executions; a mean over runs once accounts are combined */
    double seconds; /* of all of them, on all workers */
};

/* Seconds are sums over the workers. */
struct duet__account {
    unsigned workers;
    double makespan_s;
    double states_s[DUET_STATES];     /* their sum is workers * makespan_s */
    double (*workers_s)[DUET_STATES]; /* of each worker; NULL of a mean */
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
    enum duet__state state; /* why; in the making, if it is not for what it is divided among */
    double start_s, end_s;
    size_t next; /* index of the task that ends it; SIZE_MAX: none does */
};

/*
 * The account as stretches: struct duet__gap, for g_array_unref, by worker, then start. What one
 * gap has of each state is known, and not in which order: it comes as one stretch a state. NULL:
 * there is no account of the recording.
 */
GArray *duet__account_gaps(const struct duet__recording *recording);

/* What a part of a difference is about. */
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
    char what[2 * DUET_NAME_MAX]; /* of a kernel: "dgemm on c2050"; else "" */
    double seconds;               /* of the makespan: first less second; the sum is the whole */
    double first, second;         /* the figures behind it: of a kernel its mean seconds; else the
                                     part's seconds of the makespan */
};

struct duet__explanation {
    double first_s, second_s, whole_s;    /* makespans, first less second */
    struct duet__difference *differences; /* the largest in absolute value first */
    size_t count;
    /* of the tasks' seconds in the second, the part that ran on another architecture in the first
     */
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

/* ------------------------------------------------------------------------------------------- */
/* Between account*.c                                                                           */

/* Something that has one state for so long; those of one array are in order and apart. */
struct duet__stretch {
    double start_s, end_s;
    enum duet__state state;
};

/* Where what gaps are divided into goes. */
struct duet__gap_sums {
    double (*workers_s)[DUET_STATES]; /* is added to */
    GArray *pieces;                   /* struct duet__gap; NULL: not wanted */
};

/* Divides a gap among the stretches in it; what is left keeps its own state. */
void duet__gap_divide(const struct duet__gap *gap, const GArray *stretches,
                      const struct duet__gap_sums *sums);

/* What a copy does: one of the states that come after the one in which it is waited for, or ROOM.
 */
enum duet__state duet__copy_state(const struct duet_machine *machine,
                                  const struct duet_event *copy);

/*
 * Divides all gaps (struct duet__gap): those of workers whose next task is ready (OVERHEAD) among
 * the copies that this waited for, others into where there was a task elsewhere, or none. The
 * records have been checked.
 */
void duet__account_divide(const struct duet__recording *recording, const GArray *gaps,
                          const struct duet__gap_sums *sums);

#endif
