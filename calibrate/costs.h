/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the runtime's own operations take on this machine, and what its memory gives, measured
 * through the public interface.
 */
#ifndef DUET_CALIBRATE_COSTS_H
#define DUET_CALIBRATE_COSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/duet.h>
#include <duet/machine.h>

#include "base/stats.h"

/*
 * What measurements are given. Their errors are those of duet_open, DUET_ENOMEM, DUET_ETASK and
 * DUET_ECANCELED, all with a message.
 */
struct duet__measurement {
    const struct duet_config *config; /* the machine; policy, records and window are chosen */
    double end_s; /* on duet__clock_s, by which it is to be over, but some samples there are */
    bool (*stop)(void *context); /* asked between its steps: true ends it; NULL: nobody is asked */
    void *context;
    struct duet_message *message;
};

/* A measured time. */
struct duet__measured {
    const char *name;           /* "submit", a constant */
    const char *description;    /* one line, a constant */
    struct duet__summary times; /* seconds; count 0: it could not be measured, `why` says why */
    const char *why;            /* NULL: it was measured */
};

enum duet__cost {
    DUET__COST_SUBMIT, /* a task, on the application's thread, until it is in the graph */
    DUET__COST_PUSH,   /* a finished task makes another one ready: on a list */
    DUET__COST_POP,    /* a task is taken from the own list, run and reported done (empty) */
    DUET__COST_STEAL,  /* the same, but taken from another worker's list, at the first attempt */
    DUET__COST_TASK,   /* all of an empty task on one worker: the sum of the above but steals */
    DUET__COST_WAKE,   /* from waking a CPU worker that sleeps until its kernel begins */
    DUET__COST_SPIN,   /* how long a worker watches before it sleeps */
    DUET__COST_KERNEL_LAUNCH, /* on the thread that feeds a device */
    DUET__COST_COPY_LAUNCH,
    DUET__COST_EVENT, /* from the end of a device's command until its thread knows */
    DUET__COSTS,
};

/* Measures all of them. */
DUET_MUST_CHECK int duet__costs_measure(const struct duet__measurement *given,
                                        struct duet__measured costs[DUET__COSTS]);

/*
 * What of it the simulation charges: medians into *out. What was not measured stays 0. An attempt
 * to steal, of which a stolen task may take several, is charged what a stolen task takes longer
 * than a popped one: the attempts before the one that succeeds take less than that.
 */
void duet__costs_fill(const struct duet__measured costs[DUET__COSTS], struct duet_costs *out);

/* Bytes a second that the cores of one socket get from memory, beyond all caches. */
struct duet__bandwidth {
    double one_Bps;   /* one core alone */
    double all_Bps;   /* all CPU workers of the socket together, the sum */
    uint64_t samples; /* 0: not measured */
};

/*
 * Streams through vectors far larger than any cache (y := y + a x, bytes as struct duet__demand
 * counts them: of each operand once) on one core, and on all CPU workers of its socket. After an
 * error *out is zeroed.
 */
DUET_MUST_CHECK int duet__bandwidth_measure(const struct duet__measurement *given,
                                            struct duet__bandwidth *out);

#endif
