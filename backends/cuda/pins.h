/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page-locked ranges of the host's memory (cudaHostRegister): those that the application asked for,
 * and those of handles, made with their first copy. All consist of whole pages, and no two share
 * one. CUDA wants the host's side of a copy to be in one registration or in none, so a copy goes to
 * CUDA directly only from inside of one range; all others are staged.
 *
 * Any thread. A mutex protects everything but the read of a handle's mark. It is held while the
 * system page-locks, since a copy that meets it would have to wait for that anyway.
 */
#ifndef DUET_CUDA_PINS_H
#define DUET_CUDA_PINS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/backend.h"
#include "backends/cuda/errors.h"

/* ------------------------------------------------------------------------------------------- */
/*
 * cudaHostRegister and cudaHostUnregister from any thread. Both work on the current device, which
 * on an application's thread is the first one although nobody has chosen it: that may be broken,
 * another process's, or not in use.
 */

/* Result of duet__cuda_well once a device hangs, for which CUDA would wait: nothing is registered
   or unregistered any more. */
enum { REGISTER_NEVER = -2 };

/* Finder of a device to register on. Zeroed: the current device is used. */
struct registrar {
    /* As duet__cuda_well. */
    int (*device)(void *context, int current, int broken);
    void *context;
};

/*
 * Page-lock whole pages for all devices, and end that. The current device of this thread stays.
 * Return true if not done, with the call and the reason in *failure.
 */
DUET_MUST_CHECK bool duet__cuda_register(const struct registrar *registrar, void *begin,
                                         size_t bytes, struct failure *failure);
DUET_MUST_CHECK bool duet__cuda_unregister(const struct registrar *registrar, void *begin,
                                           struct failure *failure);

/* ------------------------------------------------------------------------------------------- */

struct pin_range; /* one registration */

struct pins {
    pthread_mutex_t mutex;     /* lock of all below */
    struct pin_range **ranges; /* registered ones, by address */
    size_t count, capacity;
    struct pin_range *dead; /* unpinned ranges to which marks still point */
    uint64_t limit_bytes, bytes;
    uint64_t (*more)(void *clock); /* returns the current limit; may be NULL */
    uint64_t piece_bytes;          /* largest size of one registration */
    uintptr_t page_bytes;
    unsigned told;     /* remarks already made, bits */
    unsigned refusals; /* refusals of handles' memory by the system */
    unsigned vain;     /* requests for a larger limit since it last grew */
    bool stuck;        /* CUDA has refused to end a registration */
    struct registrar registrar;
    void (*say)(void *clock, const char *line);
    void *clock;
};

/* The host's side of a copy. */
struct pin_span {
    const void *data;
    uint64_t span_bytes; /* from the first byte to the last */
    uint64_t bytes;      /* bytes copied: less than the span if the columns have gaps */
};

/*
 * Initialises. limit_bytes 0: nothing is page-locked. `say` may be NULL. DUET_ENOMEM: there is
 * nothing to free.
 */
DUET_MUST_CHECK int duet__pins_init(struct pins *pins, uint64_t limit_bytes,
                                    void (*say)(void *clock, const char *line), void *clock);
/* Unregisters all remaining ranges. */
void duet__pins_fini(struct pins *pins);

/* As the slots pin, unpin and forget of struct duet__backend. */
DUET_MUST_CHECK int duet__pins_pin(struct pins *pins, void *data, uint64_t bytes,
                                   struct duet_message *message);
int duet__pins_unpin(struct pins *pins, void *data, struct duet_message *message);
void duet__pins_forget(struct pins *pins, _Atomic(void *) *mark);

/*
 * True if this copy may go to CUDA directly. The first copy with a mark decides for all copies of
 * its handle, and page-locks the handle's memory if it is worth it and nothing prevents it. Without
 * a mark nothing is page-locked.
 */
bool duet__pins_direct(struct pins *pins, const struct pin_span *span, _Atomic(void *) *mark);

/* True if no page of it is in a range: CUDA takes it as ordinary memory. */
bool duet__pins_ordinary(struct pins *pins, const struct pin_span *span);

#endif
