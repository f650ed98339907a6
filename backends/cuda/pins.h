/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which ranges of the host's memory are page-locked (cudaHostRegister): those that the application
 * asked for, and those of handles, made with their first copy. All in whole pages, of which no two
 * ranges share one. CUDA wants the host's side of a copy to be in one registration or in none, so a
 * copy goes to CUDA directly only from inside of one range; everything else is staged.
 *
 * Any thread. A mutex orders all but the look at a handle's mark; it is held while the system
 * page-locks, since a copy that is in the way of that would have to wait for it anyway.
 */
#ifndef DUET_CUDA_PINS_H
#define DUET_CUDA_PINS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/backend.h"
#include "backends/cuda/register.h"

struct pin_range; /* one registration */

struct pins {
    pthread_mutex_t mutex;     /* of all below */
    struct pin_range **ranges; /* registered ones, by address */
    size_t count, capacity;
    struct pin_range *dead; /* unpinned, but marks still point to them */
    uint64_t limit_bytes, bytes;
    uint64_t (*more)(void *clock); /* the limit as it is now, or NULL */
    uint64_t piece_bytes;          /* of one registration at most */
    uintptr_t page_bytes;
    unsigned told;     /* what was said already, bits */
    unsigned refusals; /* of handles' memory, by the system */
    unsigned vain;     /* questions for a larger limit since it last grew */
    bool stuck;        /* CUDA has refused to end a registration */
    struct registrar registrar;
    void (*say)(void *clock, const char *line);
    void *clock;
};

/* The memory that a copy touches on the host's side, and how much of it. */
struct pin_span {
    const void *data;
    uint64_t span_bytes; /* from the first byte to the last */
    uint64_t bytes;      /* of them copied: less if the columns have gaps */
};

/* limit_bytes 0: nothing is page-locked. `say` may be NULL. DUET_ENOMEM, nothing to free then. */
DUET_MUST_CHECK int duet__pins_init(struct pins *pins, uint64_t limit_bytes,
                                    void (*say)(void *clock, const char *line), void *clock);
/* Unregisters all that is left. */
void duet__pins_fini(struct pins *pins);

/* As the slots of struct duet__backend. */
DUET_MUST_CHECK int duet__pins_pin(struct pins *pins, void *data, uint64_t bytes,
                                   struct duet_message *message);
int duet__pins_unpin(struct pins *pins, void *data, struct duet_message *message);
void duet__pins_forget(struct pins *pins, _Atomic(void *) *mark);

/*
 * true: this copy may go to CUDA directly. The first copy that carries a mark decides for all of
 * its handle's, and page-locks the handle's memory if it is worth it and nothing is in the way.
 * Without a mark nothing is page-locked.
 */
bool duet__pins_direct(struct pins *pins, const struct pin_span *span, _Atomic(void *) *mark);

/* true if no page of it is in a range: CUDA takes it as ordinary memory. */
bool duet__pins_ordinary(struct pins *pins, const struct pin_span *span);

#endif
