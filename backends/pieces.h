/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies in pieces, through buffers that a device copies from and to beside everything else: what
 * backends of GPUs share of it.
 */
#ifndef DUET_BACKENDS_PIECES_H
#define DUET_BACKENDS_PIECES_H

#include "backends/backend.h"

/* How much of a copy was cut off already. */
struct cut {
    size_t column, offset; /* columns, and bytes of the next one */
};

/* A part of a copy: whole columns, or a part of one. */
struct piece {
    size_t column, offset; /* where it begins */
    size_t width, cols;    /* bytes of each column, columns */
};

/* The next piece, of `room` bytes at most (> 0). false: nothing is left. */
bool duet__piece_cut(const struct backend_copy *copy, struct cut *cut, size_t room,
                     struct piece *piece);

/* Between the host's memory and a buffer, where columns lie without gaps. */
void duet__piece_pack(unsigned char *buffer, const struct backend_copy *copy,
                      const struct piece *piece);
void duet__piece_unpack(const unsigned char *buffer, const struct backend_copy *copy,
                        const struct piece *piece);

/*
 * true if `cols` columns of the copy, from `data` on and so far apart, are inside of a slab of so
 * many bytes: an engine that errs is told.
 */
bool duet__copy_inside(const struct backend_copy *copy, const void *data, size_t pitch,
                       const void *slab, uint64_t slab_bytes);

#endif
