/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An LRU stack of pieces of data that tells how many bytes were touched since a piece was: a
 * Fenwick tree (Fenwick, Software: Practice and Experience 24(3), 1994) over the dates of touches.
 */
#ifndef DUET_MODEL_STACK_H
#define DUET_MODEL_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/error.h>

/* Zero-initialise. Pieces are numbered from 0, densely. */
struct duet__stack {
    uint64_t *tree;  /* by date, from 1: bytes of what was touched last then */
    uint32_t *piece; /* by date: what was touched */
    uint32_t *date;  /* by piece: of its last touch; 0: it is not on the stack */
    uint32_t dates, now, pieces;
    uint64_t bytes; /* of all that is on it */
};

/* Bytes touched since the piece was, its own not included. false: it is not on the stack. */
bool duet__stack_distance(const struct duet__stack *stack, uint32_t piece, uint64_t *distance);

/* Touches a piece: it is on top. `bytes_of`: of all pieces, by number. DUET_ENOMEM. */
DUET_MUST_CHECK int duet__stack_touch(struct duet__stack *stack, uint32_t piece,
                                      const uint64_t *bytes_of);

/* Takes a piece off. */
void duet__stack_remove(struct duet__stack *stack, uint32_t piece, const uint64_t *bytes_of);

void duet__stack_fini(struct duet__stack *stack);

#endif
