/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the runtime's own operations on this machine, and the bandwidth of its memory, through
 * the public interface. */
#ifndef DUET_CALIBRATE_COSTS_H
#define DUET_CALIBRATE_COSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/duet.h>
#include <duet/machine.h>

#include "base/stats.h"

/* Input of measurements. Their errors are those of duet_open, DUET_ENOMEM, DUET_ETASK and
 * DUET_ECANCELED, all with a message. */
struct duet__measurement {
    const struct duet_config *config; /* the machine; policy, records and window are chosen */
    double end_s;                /* deadline on duet__clock_s; some samples are taken in any case */
    bool (*stop)(void *context); /* asked between steps: true ends the measurement; may be NULL */
    void *context;
    struct duet_message *message;
};

/* A measured time. */
struct duet__measured {
    const char *name;           /* "submit", a constant */
    const char *description;    /* one line, a constant */
    struct duet__summary times; /* seconds; count 0: not measured, `why` has the reason */
    const char *why;            /* NULL: it was measured */
};

enum duet__cost {
    DUET__COST_SUBMIT,        /* a task, on the application's thread, until it is in the graph */
    DUET__COST_PUSH,          /* a finished task makes another one ready: on a list */
    DUET__COST_POP,           /* a task is taken from the own list, run and reported done (empty) */
    DUET__COST_STEAL,         /* like POP, but from another worker's list, at the first attempt */
    DUET__COST_TASK,          /* an empty task on one worker: the sum of the above but STEAL */
    DUET__COST_WAKE,          /* from waking a CPU worker that sleeps until its kernel begins */
    DUET__COST_SPIN,          /* how long a worker polls before it sleeps */
    DUET__COST_KERNEL_LAUNCH, /* on the thread that feeds a device */
    DUET__COST_COPY_LAUNCH,
    DUET__COST_EVENT, /* from the end of a device's command until its thread knows */
    DUET__COSTS,
};

/* Measures all of them. */
DUET_MUST_CHECK int duet__costs_measure(const struct duet__measurement *given,
                                        struct duet__measured costs[DUET__COSTS]);

/*
 * Sets *out to the costs that the simulation charges: medians; 0 for costs that were not measured.
 * An attempt to steal, of which a stolen task may take several, is charged the difference of a
 * stolen and a popped task: failed attempts take less than that.
 */
void duet__costs_fill(const struct duet__measured costs[DUET__COSTS], struct duet_costs *out);

/* Bytes a second that the cores of one socket get from memory, beyond all caches. */
struct duet__bandwidth {
    double one_Bps;   /* what one core alone gets */
    double all_Bps;   /* what all CPU workers of the socket get together */
    uint64_t samples; /* 0: not measured */
};

/*
 * Measures by streaming through vectors far larger than any cache (y := y + a x, bytes as struct
 * duet__demand counts them: of each operand once) on one core, and on all CPU workers of its
 * socket. After an error *out is zeroed.
 */
DUET_MUST_CHECK int duet__bandwidth_measure(const struct duet__measurement *given,
                                            struct duet__bandwidth *out);

#endif
