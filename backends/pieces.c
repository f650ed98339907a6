/* SPDX-License-Identifier: Apache-2.0 */
/* Copies in pieces. */
#include "backends/pieces.h"

#include <string.h>

bool duet__piece_cut(const struct backend_copy *copy, struct cut *cut, size_t room,
                     struct piece *piece)
{
    size_t bytes = copy->column_bytes, left = copy->cols - cut->column;
    if (!left || !bytes)
        return false;
    *piece = (struct piece){.column = cut->column, .offset = cut->offset};
    if (cut->offset || bytes > room) {
        piece->cols = 1;
        piece->width = bytes - cut->offset < room ? bytes - cut->offset : room;
        cut->offset += piece->width;
        if (cut->offset < bytes)
            return true;
        cut->offset = 0;
        cut->column++;
        return true;
    }
    piece->width = bytes;
    piece->cols = room / bytes < left ? room / bytes : left;
    cut->column += piece->cols;
    return true;
}

void duet__piece_pack(unsigned char *buffer, const struct backend_copy *copy,
                      const struct piece *piece)
{
    const unsigned char *from = copy->source;
    from += piece->column * copy->source_pitch + piece->offset;
    if (piece->width == copy->source_pitch) {
        memcpy(buffer, from, piece->width * piece->cols);
        return;
    }
    for (size_t i = 0; i < piece->cols; i++)
        memcpy(buffer + i * piece->width, from + i * copy->source_pitch, piece->width);
}

/*
 * Copies whole columns of a piece out of a buffer, of which only the triangle's elements are
 * written.
 */
static void unpack_slanted(const unsigned char *buffer, const struct backend_copy *copy,
                           const struct piece *piece)
{
    unsigned char *to = copy->destination;
    for (size_t i = 0; i < piece->cols; i++) {
        size_t col = piece->column + i, from, end;
        end = backend_column(copy, col, &from) + from;
        from = from > piece->offset ? from : piece->offset;
        end = end < piece->offset + piece->width ? end : piece->offset + piece->width;
        if (from < end)
            memcpy(to + col * copy->destination_pitch + from,
                   buffer + i * piece->width + (from - piece->offset), end - from);
    }
}

void duet__piece_unpack(const unsigned char *buffer, const struct backend_copy *copy,
                        const struct piece *piece)
{
    unsigned char *to = copy->destination;
    to += piece->column * copy->destination_pitch + piece->offset;
    if (backend_slanted(copy)) {
        unpack_slanted(buffer, copy, piece);
        return;
    }
    if (piece->width == copy->destination_pitch) {
        memcpy(to, buffer, piece->width * piece->cols);
        return;
    }
    for (size_t i = 0; i < piece->cols; i++)
        memcpy(to + i * copy->destination_pitch, buffer + i * piece->width, piece->width);
}

bool duet__copy_inside(const struct backend_copy *copy, const void *data, size_t pitch,
                       const void *slab, uint64_t slab_bytes)
{
    uintptr_t base = (uintptr_t)slab, first = (uintptr_t)data;
    if (!copy->cols || !copy->column_bytes)
        return true;
    if (first < base || first - base > slab_bytes ||
        copy->column_bytes > slab_bytes - (first - base))
        return false;
    uint64_t left = slab_bytes - (first - base) - copy->column_bytes;
    return copy->cols == 1 || (pitch >= copy->column_bytes && left / pitch >= copy->cols - 1);
}
