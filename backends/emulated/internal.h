/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the emulated backend share: devices in ordinary memory, free (free.c: threads
 * copy and compute) or paced (paced.c and bus.c: dates are computed, nothing else is).
 */
#ifndef DUET_EMULATED_INTERNAL_H
#define DUET_EMULATED_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/backend.h"
#include "backends/emulated/locks.h"
#include "backends/emulated/memory.h"
#include "backends/emulated/ring.h"
#include "backends/emulated/shares.h"

enum { WHY_BYTES = 24 };

/* A kernel or a copy, from its launch until its completion was polled. */
struct command {
    struct backend_completion report; /* the tag at once, the rest when it has ended */
    char why[WHY_BYTES];              /* more about an error; "": nothing */
    struct lock_note *note;           /* of a copy */
    bool is_kernel;
    union {
        struct backend_kernel kernel;
        struct backend_copy copy;
    };
};

/* The commands of a stream, in order; the first `done` of them have ended. */
struct queue {
    struct ring commands;
    size_t done;
};

/* The oldest command that has not ended, or NULL. Valid until the next one is added. */
static inline struct command *queue_head(const struct queue *queue)
{
    return queue->done < queue->commands.count ? ring_at(&queue->commands, queue->done) : NULL;
}

/* What a paced and a free device do differently; slots as in struct duet__backend. */
struct mode {
    void (*close)(struct backend_device *device);
    int (*launch)(struct backend_device *device, const struct command *command);
    size_t (*poll)(struct backend_device *device, struct backend_completion *out, size_t max);
    double (*next_s)(const struct backend_device *device);
};

/* What both kinds of devices have. */
struct backend_device {
    const struct mode *mode;
    struct emulated *emulated;
    struct backend_config config;
    struct memory memory;
    uint64_t launched; /* kernels and copies so far */
    bool lost;         /* set on the worker's thread; others look with a mutex held */
};

/* What all paced devices of an engine have in common: the links that their copies share. */
struct bus {
    pthread_mutex_t mutex; /* of all below, and of the paced devices */
    pthread_cond_t told;   /* a device's count of callers inside its notify fell to 0 */
    struct paced **devices;
    unsigned count, capacity;
    struct shares shares;
    double now_s;  /* everything up to here has happened */
    bool stirred;  /* something has happened that devices may not know of */
    bool unshared; /* a flow has begun or ended: shares are to be found again */
};

/* What attach makes. */
struct emulated {
    struct backend_setup setup;
    struct locks locks;
    struct bus bus; /* paced only */
};

/* bus.c: of a zeroed bus. DUET_ENOMEM, nothing left to free then. */
DUET_MUST_CHECK int duet__bus_init(struct bus *bus, const struct duet_machine *machine);
/* All devices are closed. */
void duet__bus_fini(struct bus *bus);

/* Moves the completions of commands that have ended into out, `max` at most; all lost if `lost`. */
size_t duet__emulated_take(struct queue *queue, struct backend_completion *out, size_t max,
                           bool lost);

/* free.c: a device that computes. config is checked. DUET_ENOMEM with a message. */
DUET_MUST_CHECK int duet__emulated_open_free(struct backend_device **out, struct emulated *emulated,
                                             const struct backend_config *config,
                                             struct duet_message *message);

/* paced.c: a device that only takes time. Likewise. */
DUET_MUST_CHECK int duet__emulated_open_paced(struct backend_device **out,
                                              struct emulated *emulated,
                                              const struct backend_config *config,
                                              struct duet_message *message);

#endif
