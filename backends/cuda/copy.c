/* SPDX-License-Identifier: Apache-2.0 */
/* Gives copies to CUDA: directly, or piece by piece through staging buffers. */

#include "backends/cuda/internal.h"

/* Both ends of a piece for CUDA: `cols` columns of `width` bytes. */
struct ends {
    unsigned char *to;
    const unsigned char *from;
    size_t to_pitch, from_pitch, width, cols;
};

enum progress { WHOLE, PART, REFUSED };

/* ------------------------------------------------------------------------------------------- */
/* One copy                                                                                     */

static bool move_bytes(const struct backend_device *device, const struct stream *stream,
                       const struct backend_device *peer, const struct ends *ends, size_t bytes,
                       struct failure *failure)
{
    if (peer)
        return !duet__cuda_failed(failure, "cudaMemcpyPeerAsync",
                                  cudaMemcpyPeerAsync(ends->to, (int)device->config.index,
                                                      ends->from, (int)peer->config.index, bytes,
                                                      stream->handle));
    return !duet__cuda_failed(failure, "cudaMemcpyAsync",
                              cudaMemcpyAsync(ends->to, ends->from, bytes,
                                              stream->kind == BACKEND_IN ? cudaMemcpyHostToDevice
                                                                         : cudaMemcpyDeviceToHost,
                                              stream->handle));
}

/*
 * Copies columns with gaps: one by one where the pitch is more than CUDA takes, which happens with
 * few columns only, and between devices, whose data is dense except in tests.
 */
static bool move_columns(const struct backend_device *device, const struct stream *stream,
                         const struct backend_device *peer, const struct ends *ends,
                         struct failure *failure)
{
    if (!peer && ends->to_pitch <= device->max_pitch && ends->from_pitch <= device->max_pitch)
        return !duet__cuda_failed(failure, "cudaMemcpy2DAsync",
                                  cudaMemcpy2DAsync(ends->to, ends->to_pitch, ends->from,
                                                    ends->from_pitch, ends->width, ends->cols,
                                                    stream->kind == BACKEND_IN
                                                        ? cudaMemcpyHostToDevice
                                                        : cudaMemcpyDeviceToHost,
                                                    stream->handle));
    struct ends column = *ends;
    for (size_t i = 0; i < ends->cols; i++) {
        if (!move_bytes(device, stream, peer, &column, ends->width, failure))
            return false;
        column.to += ends->to_pitch;
        column.from += ends->from_pitch;
    }
    return true;
}

static bool move_ends(const struct backend_device *device, const struct stream *stream,
                      const struct backend_device *peer, const struct ends *ends,
                      struct failure *failure)
{
    if (!ends->width || !ends->cols)
        return true;
    if (ends->cols == 1 || (ends->width == ends->to_pitch && ends->width == ends->from_pitch))
        return move_bytes(device, stream, peer, ends, ends->width * ends->cols, failure);
    return move_columns(device, stream, peer, ends, failure);
}

/* ------------------------------------------------------------------------------------------- */
/* Direct copies */

static bool record_end(const struct stream *stream, const struct command *command,
                       struct failure *failure)
{
    return !duet__cuda_failed(failure, "cudaEventRecord",
                              cudaEventRecord(command->timing->end, stream->handle));
}

static enum progress give_direct(struct backend_device *device, struct stream *stream,
                                 struct command *command, struct failure *failure)
{
    const struct backend_copy *copy = &command->copy;
    const struct ends ends = {
        .to = copy->destination,
        .from = copy->source,
        .to_pitch = copy->destination_pitch,
        .from_pitch = copy->source_pitch,
        .width = copy->column_bytes,
        .cols = copy->cols,
    };
    bool good = duet__cuda_begin(device, stream, command, failure) &&
                move_ends(device, stream, copy->peer, &ends, failure) &&
                record_end(stream, command, failure);
    return good ? WHOLE : REFUSED;
}

/* ------------------------------------------------------------------------------------------- */
/* Copies through staging buffers */

/* Returns the host's side of a copy. */
static struct pin_span span_of(const struct backend_copy *copy)
{
    bool in = copy->stream == BACKEND_IN;
    size_t pitch = in ? copy->source_pitch : copy->destination_pitch;
    return (struct pin_span){
        .data = in ? copy->source : copy->destination,
        .span_bytes = (uint64_t)pitch * (copy->cols - 1) + copy->column_bytes,
        .bytes = (uint64_t)copy->column_bytes * copy->cols,
    };
}

bool duet__cuda_is_direct(struct cuda *cuda, const struct backend_copy *copy)
{
    if (copy->peer || !copy->cols || !copy->column_bytes)
        return true;
    /* a triangle for the host: its own elements are copied out of a buffer */
    if (copy->stream == BACKEND_OUT && backend_slanted(copy))
        return false;
    const struct pin_span span = span_of(copy);
    return duet__pins_direct(&cuda->pins, &span, copy->mark);
}

bool duet__cuda_empty(struct stream *stream, bool idle, struct failure *failure)
{
    struct staging *staging = &stream->staging;
    while (staging->count) {
        const struct chunk *chunk = &staging->chunks[staging->first];
        cudaError_t error = idle ? cudaSuccess : cudaEventQuery(staging->passed[staging->first]);
        if (error == cudaErrorNotReady)
            return true;
        if (duet__cuda_failed(failure, "cudaEventQuery", error))
            return false;
        /* a copy that was reported or has failed is needed no more */
        if (chunk->owner >= stream->reported) {
            struct command *command = cuda_at(stream, chunk->owner - stream->reported);
            if (stream->kind == BACKEND_OUT && !command->ended)
                duet__piece_unpack(staging_buffer(staging, staging->first), &command->copy,
                                   &chunk->piece);
            command->chunks--;
        }
        staging->first = (staging->first + 1) % STAGING_BUFFERS;
        staging->count--;
    }
    return true;
}

/* Sends a piece through the buffer behind the newest, which is free. */
static bool pass_piece(struct backend_device *device, struct stream *stream,
                       struct command *command, const struct piece *piece, struct failure *failure)
{
    struct staging *staging = &stream->staging;
    const struct backend_copy *copy = &command->copy;
    unsigned next = staging_next(staging);
    unsigned char *buffer = staging_buffer(staging, next);
    bool in = stream->kind == BACKEND_IN;
    struct ends ends = {.to = buffer,
                        .from = buffer,
                        .to_pitch = piece->width,
                        .from_pitch = piece->width,
                        .width = piece->width,
                        .cols = piece->cols};
    if (in) {
        duet__piece_pack(buffer, copy, piece);
        ends.to_pitch = copy->destination_pitch;
        ends.to =
            (unsigned char *)copy->destination + piece->column * ends.to_pitch + piece->offset;
    } else {
        ends.from_pitch = copy->source_pitch;
        ends.from =
            (const unsigned char *)copy->source + piece->column * ends.from_pitch + piece->offset;
    }
    if (!move_ends(device, stream, NULL, &ends, failure) ||
        duet__cuda_failed(failure, "cudaEventRecord",
                          cudaEventRecord(staging->passed[next], stream->handle)))
        return false;
    uint64_t owner = stream->reported + stream->given;
    staging->chunks[next] = (struct chunk){.owner = owner, .piece = *piece};
    staging->count++;
    command->chunks++;
    return true;
}

/* Gives the next pieces of a copy, `*budget` at most. */
static enum progress give_pieces(struct backend_device *device, struct stream *stream,
                                 struct command *command, unsigned *budget, struct failure *failure)
{
    struct staging *staging = &stream->staging;
    while (command->cut.column < command->copy.cols) {
        struct piece piece;
        if (staging->count == STAGING_BUFFERS && !duet__cuda_empty(stream, false, failure))
            return REFUSED;
        if (staging->count == STAGING_BUFFERS || !*budget)
            return PART;
        if (!command->timing && !duet__cuda_begin(device, stream, command, failure))
            return REFUSED;
        --*budget;
        (void)duet__piece_cut(&command->copy, &command->cut, staging->bytes, &piece);
        if (!pass_piece(device, stream, command, &piece, failure))
            return REFUSED;
    }
    return record_end(stream, command, failure) ? WHOLE : REFUSED;
}

/*
 * Gives a copy to CUDA that is not page-locked. Without buffers CUDA may still take ordinary
 * memory, slowly and synchronously, but never memory of which only a part is page-locked.
 */
static enum progress give_staged(struct backend_device *device, struct stream *stream,
                                 struct command *command, unsigned *budget, struct failure *failure)
{
    if (stream->staging.memory)
        return give_pieces(device, stream, command, budget, failure);
    const struct pin_span span = span_of(&command->copy);
    if (!duet__pins_ordinary(&device->cuda->pins, &span)) {
        *failure = (struct failure){.call = "cudaHostAlloc", .error = cudaErrorMemoryAllocation};
        return REFUSED;
    }
    command->direct = true;
    return give_direct(device, stream, command, failure);
}

void duet__cuda_feed(struct backend_device *device, struct stream *stream)
{
    unsigned budget = STAGING_BUFFERS;
    while (stream->given < stream->commands.count) {
        struct command *command = cuda_at(stream, stream->given);
        struct failure failure;
        enum progress progress = WHOLE;
        if (!command->ended)
            progress = command->direct ? give_direct(device, stream, command, &failure)
                                       : give_staged(device, stream, command, &budget, &failure);
        if (progress == PART)
            return;
        if (progress == REFUSED)
            duet__cuda_fail(device, stream, command, &failure);
        if (backend_lost(device))
            return; /* all commands have ended */
        stream->given++;
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Page-locked buffers for pieces of copies. */

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
