/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the time of a run went, and why two runs of one problem differ: every second of every
 * worker is in exactly one part, so that the parts of the difference add up to it.
 */
#ifndef DUET_ACCOUNT_H
#define DUET_ACCOUNT_H

#include <stddef.h>
#include <stdint.h>

#include <glib.h>

#include <duet/error.h>
#include <duet/machine.h>

#include "runs/recording.h"

/* What a worker does, or waits for, at a moment of the run (0 to the makespan). */
enum duet__part {
    DUET_PART_KERNEL,    /* runs a kernel */
    DUET_PART_TO_DEVICE, /* waits: the next task it runs is ready, and data for it is on its way
                            (or asked for) to its device from the host */
    DUET_PART_TO_HOST,   /* ... data on its way to the host (also on its way to a device, or to
                            make room on its device) */
    DUET_PART_BETWEEN,   /* ... from another device */
    DUET_PART_OVERHEAD,  /* its next task is ready and its data there, but it does not run */
    DUET_PART_IDLE,      /* its next task is not ready yet, or there is none any more */
    DUET_PARTS,
};

/* The same in more detail, by worker: what it does, or why it does nothing. */
enum duet__state {
    DUET_STATE_KERNEL,
    DUET_STATE_TO_DEVICE_QUEUE, /* data is to come from the host, and its copy has not begun */
    DUET_STATE_TO_DEVICE,       /* ... is under way */
    DUET_STATE_TO_HOST_QUEUE,
    DUET_STATE_TO_HOST,
    DUET_STATE_BETWEEN_QUEUE,
    DUET_STATE_BETWEEN,
    DUET_STATE_ROOM, /* data has to leave the device's memory before other data comes in */
    DUET_STATE_OVERHEAD,
    DUET_STATE_ELSEWHERE, /* none of its own is ready, but one that it could run waits elsewhere */
    DUET_STATE_BEFORE,    /* no task that it could run is ready: before its first one, */
    DUET_STATE_WITHIN,    /* between two, */
    DUET_STATE_AFTER,     /* after its last one */
    DUET_STATES,
};

/* The part that a state belongs to. */
enum duet__part duet__state_part(enum duet__state state);

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
    double parts_s[DUET_PARTS];      /* their sum is workers * makespan_s */
    double (*states_s)[DUET_STATES]; /* by worker: the sum of each is makespan_s; NULL of a mean */
    struct duet__account_kernel *kernels;
    size_t kernel_count;
    double bytes[3]; /* copied: to devices, to the host, between devices */
};

/*
 * Makes the account of a recorded run. Kernels of one worker that overlap (several streams) count
 * in parts: each moment once, shared among those that run. Dates count from the first submission.
 * Of several copies that are waited for at once the one that ends last counts. The caller owns *out
 * (duet__account_fini). DUET_EINVAL (no worker, dates that make no sense).
 */
DUET_MUST_CHECK int duet__account_make(const struct duet__recording *recording,
                                       struct duet__account *out, struct duet_message *message);

/* The mean of at least one account, of runs with equally many workers. The caller owns *out. */
void duet__account_mean(const struct duet__account *accounts, size_t count,
                        struct duet__account *out);

void duet__account_fini(struct duet__account *account); /* safe on a zeroed one, and twice */

/* What a part of a difference is about. */
enum duet__reason {
    DUET_REASON_KERNEL,    /* one kernel takes longer or shorter on one architecture */
    DUET_REASON_SCHEDULE,  /* kernels run on other architectures, or another number of times */
    DUET_REASON_TO_DEVICE, /* waiting for copies, by direction */
    DUET_REASON_TO_HOST,
    DUET_REASON_BETWEEN,
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

/* A stretch in which a worker runs nothing. */
struct duet__gap {
    unsigned worker;
    unsigned node;          /* memory that its kernels work in */
    enum duet__state state; /* of those without a task: where in the run it is */
    double start_s, end_s;
};

/*
 * Divides the gaps (struct duet__gap) of workers whose next task is ready, which it sorts, among
 * the copies that were waited for, and overhead: O((gaps + copies) log(gaps + copies)). The records
 * have been checked.
 */
void duet__account_waits(const struct duet__recording *recording, GArray *gaps,
                         double (*states_s)[DUET_STATES]);

/* Divides those of workers without a ready task into where there was one elsewhere, or none. */
void duet__account_idle(const struct duet__recording *recording, const GArray *gaps,
                        double (*states_s)[DUET_STATES]);

#endif
