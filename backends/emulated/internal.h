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

#include <duet/error.h>

#include "backends/common.h"
#include "core/flows.h"

/* ------------------------------------------------------------------------------------------- */
/* The slab of an emulated device: pages that hold NaNs until they are written. */

enum { MEMORY_POISON = 0xff }; /* every byte: a NaN for float and double, -1 for integers */

/* A slab; zeroed with file -1: none. */
struct memory {
    unsigned char *base;
    size_t bytes;       /* requested size */
    size_t mapped;      /* size in whole pieces */
    size_t piece_bytes; /* size of the file of poison, which is mapped over and over, copied on
                           write */
    int file;           /* -1: address space only */
};

/*
 * Makes a slab of `bytes` > 0. Pages take memory only when they are written. `reserve`: addresses
 * alone, which may not be touched. DUET_ENOMEM with a message.
 */
DUET_MUST_CHECK int duet__memory_open(struct memory *memory, uint64_t bytes, bool reserve,
                                      struct duet_message *message);

/*
 * Poisons the slab again and frees its pages. It must be unused. Returns false if the system
 * refuses; contents are then unspecified.
 */
bool duet__memory_poison(struct memory *memory);

/* Unmaps the slab. Safe if open failed, and twice. */
void duet__memory_close(struct memory *memory);

/* ------------------------------------------------------------------------------------------- */
/*
 * Page-locking as bookkeeping: nothing is locked, but misuse by the engine is found. DUET_EINVAL
 * and DUET_ENOMEM are returned where the contract says so; other errors of the engine are counted
 * and reported to the user.
 */

/* Value of a handle's mark. */
struct lock_note;

struct lock_range {
    uintptr_t begin, end;
};

struct locks {
    const struct backend_setup *setup; /* its pin_bytes, say and clock */
    pthread_mutex_t mutex;
    /* mutex */
    struct lock_range *ranges; /* do not overlap */
    size_t count, capacity;
    uint64_t bytes;
    struct lock_note *notes;
    unsigned errors; /* errors of the engine */
};

/*
 * Initialises. `setup` has to stay at its place until the end. DUET_ENOMEM: nothing is left to end.
 */
DUET_MUST_CHECK int duet__locks_init(struct locks *locks, const struct backend_setup *setup);

/* Frees everything. Marks that were not forgotten are an error of the engine. */
void duet__locks_fini(struct locks *locks);

/* As pin and unpin of struct duet__backend. The bytes count as they are, not in pages. */
DUET_MUST_CHECK int duet__locks_pin(struct locks *locks, void *data, uint64_t bytes,
                                    struct duet_message *message);
DUET_MUST_CHECK int duet__locks_unpin(struct locks *locks, void *data,
                                      struct duet_message *message);

/*
 * As forget of struct duet__backend. A copy in flight, or a foreign mark, is an error of the
 * engine.
 */
void duet__locks_forget(struct locks *locks, _Atomic(void *) *mark);

/*
 * Begins a copy with this mark (NULL: none). Returns a note for duet__locks_leave when it has
 * ended; NULL: there is nothing to note, or no memory for it.
 */
struct lock_note *duet__locks_use(struct locks *locks, _Atomic(void *) *mark);
void duet__locks_leave(struct locks *locks, struct lock_note *note); /* NULL is fine */

/* ------------------------------------------------------------------------------------------- */
/* Devices                                                                                      */

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
    struct backend_head head; /* lost: set on the worker's thread with a mutex held */
    const struct mode *mode;
    struct emulated *emulated;
    struct backend_config config;
    struct memory memory;
    uint64_t launched; /* number of kernels and copies so far */
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
