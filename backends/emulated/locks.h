/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page-locking as bookkeeping: nothing is locked, but misuse by the engine is found. DUET_EINVAL
 * and DUET_ENOMEM are returned where the contract says so; other errors of the engine are counted
 * and reported to the user.
 */
#ifndef DUET_EMULATED_LOCKS_H
#define DUET_EMULATED_LOCKS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/backend.h"

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

#endif
