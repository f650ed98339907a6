/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of copies, and the page-locked buffers that they go through. */
#include "backends/cuda/staging.h"

#include <string.h>

bool duet__staging_cut(const struct backend_copy *copy, struct cut *cut, size_t room,
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

void duet__staging_pack(unsigned char *buffer, const struct backend_copy *copy,
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

/* Whole columns came, of which only what belongs to the triangle is put into place. */
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

void duet__staging_unpack(const unsigned char *buffer, const struct backend_copy *copy,
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

static bool open_all(struct staging *staging, struct failure *failure)
{
    void *memory = NULL;
    if (duet__cuda_failed(failure, "cudaHostAlloc",
                          cudaHostAlloc(&memory, STAGING_BUFFERS * staging->bytes,
                                        cudaHostAllocPortable)))
        return false;
    staging->memory = memory;
    for (unsigned i = 0; i < STAGING_BUFFERS; i++)
        if (duet__cuda_failed(failure, "cudaEventCreateWithFlags",
                              cudaEventCreateWithFlags(&staging->passed[i],
                                                       cudaEventDisableTiming)))
            return false;
    return true;
}

bool duet__staging_open(struct staging *staging, size_t bytes, struct failure *failure)
{
    *staging = (struct staging){.bytes = bytes};
    if (open_all(staging, failure))
        return true;
    duet__staging_close(staging);
    return false;
}

void duet__staging_close(struct staging *staging)
{
    for (unsigned i = 0; i < STAGING_BUFFERS; i++)
        if (staging->passed[i])
            duet__cuda_ignore(cudaEventDestroy(staging->passed[i]));
    if (staging->memory)
        duet__cuda_ignore(cudaFreeHost(staging->memory));
    *staging = (struct staging){.memory = NULL};
}
