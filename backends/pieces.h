/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies in pieces, through buffers that a device copies asynchronously: functions shared by
 * backends of GPUs.
 */
#ifndef DUET_BACKENDS_PIECES_H
#define DUET_BACKENDS_PIECES_H

#include "backends/backend.h"

/* Progress of cutting a copy into pieces. */
struct cut {
    size_t column, offset; /* columns, and bytes of the next one, that were cut off */
};

/* A part of a copy: whole columns, or a part of one. */
struct piece {
    size_t column, offset; /* beginning in the copy */
    size_t width, cols;    /* bytes of each column, number of columns */
};

/* Cuts off the next piece, of `room` bytes at most (> 0). Returns false if nothing is left. */
bool duet__piece_cut(const struct backend_copy *copy, struct cut *cut, size_t room,
                     struct piece *piece);

/* Copy a piece between the host's memory and a buffer, where columns are dense. */
void duet__piece_pack(unsigned char *buffer, const struct backend_copy *copy,
                      const struct piece *piece);
void duet__piece_unpack(const unsigned char *buffer, const struct backend_copy *copy,
                        const struct piece *piece);

/*
 * True if `cols` columns of the copy, from `data` on with this pitch, are inside of a slab of so
 * many bytes: errors of the engine are reported.
 */
bool duet__copy_inside(const struct backend_copy *copy, const void *data, size_t pitch,
                       const void *slab, uint64_t slab_bytes);

#endif
