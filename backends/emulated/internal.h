/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data structures shared by the files of the emulated backend: devices in ordinary memory, free
 * (free.c: threads copy and compute) or paced (paced.c: only dates are computed).
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
#include "core/flows.h"

enum { WHY_BYTES = 24, EMULATED_MAX = 64 /* most emulated devices: each has threads */ };

/* A kernel or a copy, from its launch until its completion was polled. */
struct command {
    struct backend_completion report; /* the tag at once, the rest when it has ended */
    char why[WHY_BYTES];              /* more about an error; "": nothing */
    struct lock_note *note;           /* copies only */
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

/* Returns the oldest command that has not ended, or NULL. Valid until the next one is added. */
static inline struct command *queue_head(const struct queue *queue)
{
    return queue->done < queue->commands.count ? ring_at(&queue->commands, queue->done) : NULL;
}

/* Functions in which paced and free devices differ; slots as in struct duet__backend. */
struct mode {
    void (*close)(struct backend_device *device);
    int (*launch)(struct backend_device *device, const struct command *command);
    size_t (*poll)(struct backend_device *device, struct backend_completion *out, size_t max);
    double (*next_s)(const struct backend_device *device);
};

/* Common part of free and paced devices. */
struct backend_device {
    const struct mode *mode;
    struct emulated *emulated;
    struct backend_config config;
    struct memory memory;
    uint64_t launched; /* number of kernels and copies so far */
    bool lost;         /* set on the worker's thread; others read it with a mutex held */
};

/* Shared data of all paced devices of an engine: their copies, which share links. */
struct bus {
    pthread_mutex_t mutex; /* lock of all below, and of the paced devices */
    pthread_cond_t told;   /* signalled when a device's count of callers inside its notify falls to
                              0 */
    struct paced *devices[EMULATED_MAX]; /* by index; NULL: not open */
    struct duet__flows flows;            /* copies that have not ended */
    double now_s;                        /* all events up to here have happened */
    bool stirred;                        /* an event has happened of which devices may not know */
};

/* Shared data that attach makes. */
struct emulated {
    struct backend_setup setup;
    struct locks locks;
    struct bus bus; /* paced only */
};

/* paced.c: initialises a zeroed bus. DUET_ENOMEM: nothing is left to free. */
DUET_MUST_CHECK int duet__bus_init(struct bus *bus, const struct backend_setup *setup);
/* Frees a bus. All devices are closed. */
void duet__bus_fini(struct bus *bus);

/*
 * Moves the completions of commands that have ended into `out`, `max` at most; as lost ones if
 * `lost`.
 */
size_t duet__emulated_take(struct queue *queue, struct backend_completion *out, size_t max,
                           bool lost);

/* free.c: opens a device that computes. config is checked. DUET_ENOMEM with a message. */
DUET_MUST_CHECK int duet__emulated_open_free(struct backend_device **out, struct emulated *emulated,
                                             const struct backend_config *config,
                                             struct duet_message *message);

/* paced.c: opens a device that only takes time. config is checked. DUET_ENOMEM with a message. */
DUET_MUST_CHECK int duet__emulated_open_paced(struct backend_device **out,
                                              struct emulated *emulated,
                                              const struct backend_config *config,
                                              struct duet_message *message);

#endif
