/* SPDX-License-Identifier: Apache-2.0 */
/* Copies in pieces, through the buffers of their stream. */
#include "backends/opencl/internal.h"

/*
 * Copies a piece between a buffer, where its columns are dense, and the slab, from `at` on with
 * this pitch.
 */
static bool transfer(const struct backend_device *device, const struct stream *stream,
                     const struct piece *piece, unsigned char *buffer, size_t at, size_t pitch,
                     cl_event *event, struct failure *failure)
{
    const size_t there[3] = {at, 0, 0}, here[3] = {0, 0, 0};
    const size_t region[3] = {piece->width, piece->cols, 1};
    const size_t width = piece->width, bytes = piece->width * piece->cols;
    bool in = stream->kind == BACKEND_IN, dense = piece->cols == 1 || pitch == width;
    cl_command_queue queue = stream->queue;
    cl_mem slab = device->slab;
    cl_int error;
    if (dense && in)
        error = clEnqueueWriteBuffer(queue, slab, CL_FALSE, at, bytes, buffer, 0, NULL, event);
    else if (dense)
        error = clEnqueueReadBuffer(queue, slab, CL_FALSE, at, bytes, buffer, 0, NULL, event);
    else if (in)
        error = clEnqueueWriteBufferRect(queue, slab, CL_FALSE, there, here, region, pitch, 0,
                                         width, 0, buffer, 0, NULL, event);
    else
        error = clEnqueueReadBufferRect(queue, slab, CL_FALSE, there, here, region, pitch, 0, width,
                                        0, buffer, 0, NULL, event);
    return !duet__opencl_failed(failure, in ? "clEnqueueWriteBuffer" : "clEnqueueReadBuffer",
                                error);
}

/* Sends a piece through the buffer behind the newest, which is free. */
static bool pass_piece(struct backend_device *device, struct stream *stream,
                       struct command *command, const struct piece *piece, struct failure *failure)
{
    const struct backend_copy *copy = &command->copy;
    unsigned next = (stream->oldest + stream->chunk_count) % STAGING_BUFFERS;
    struct chunk *chunk = &stream->chunks[next];
    unsigned char *buffer = stream->buffers + next * device->opencl->staging_bytes;
    bool in = stream->kind == BACKEND_IN;
    size_t pitch = in ? copy->destination_pitch : copy->source_pitch;
    const unsigned char *data = in ? copy->destination : copy->source;
    if (in)
        duet__piece_pack(buffer, copy, piece);
    if (!transfer(device, stream, piece, buffer,
                  (size_t)(data - device->base) + piece->column * pitch + piece->offset, pitch,
                  &chunk->event, failure))
        return false;
    chunk->owner = command;
    chunk->piece = *piece;
    stream->chunk_count++;
    command->chunks++;
    return true;
}

void duet__opencl_feed(struct backend_device *device, struct stream *stream)
{
    bool gave = false;
    while (stream->waiting) {
        struct command *command = stream->waiting;
        struct failure failure;
        struct piece piece;
        if (!command->ended && stream->chunk_count == STAGING_BUFFERS)
            break;
        if (command->ended || !duet__piece_cut(&command->copy, &command->cut,
                                               device->opencl->staging_bytes, &piece)) {
            command->given = true;
            stream->waiting = command->next;
        } else if (pass_piece(device, stream, command, &piece, &failure)) {
            gave = true;
        } else {
            duet__opencl_fail(device, command, &failure);
        }
    }
    if (gave)
        (void)clFlush(stream->queue);
}

/* Records the dates of a copied piece. */
static void measure_piece(const struct backend_device *device, cl_event event,
                          struct command *command)
{
    double first_s, last_s;
    if (!duet__opencl_date(device, event, CL_PROFILING_COMMAND_START, &first_s) ||
        !duet__opencl_date(device, event, CL_PROFILING_COMMAND_END, &last_s))
        return;
    if (!command->measured)
        command->first_s = first_s;
    command->last_s = last_s;
    command->measured = true;
}

void duet__opencl_empty(struct backend_device *device, struct stream *stream)
{
    while (stream->chunk_count) {
        const struct chunk *chunk = &stream->chunks[stream->oldest];
        struct command *owner = chunk->owner;
        struct failure failure;
        if (!duet__opencl_ended(chunk->event, "a copy of OpenCL's", &failure))
            return;
        if (failure.call)
            duet__opencl_fail(device, owner, &failure);
        if (opencl_lost(device))
            return; /* nothing is on its way any more */
        if (!owner->ended) {
            measure_piece(device, chunk->event, owner);
            if (stream->kind == BACKEND_OUT)
                duet__piece_unpack(stream->buffers + stream->oldest * device->opencl->staging_bytes,
                                   &owner->copy, &chunk->piece);
        }
        (void)clReleaseEvent(chunk->event);
        owner->chunks--;
        stream->oldest = (stream->oldest + 1) % STAGING_BUFFERS;
        stream->chunk_count--;
    }
}
