/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands of a device: launch and copy give them to OpenCL, and poll finds those that have ended.
 * A kernel costs two markers, what it enqueues itself, and queries of the second marker.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/opencl/internal.h"

/* ------------------------------------------------------------------------------------------- */
/* Commands in flight */

/* Returns a zeroed command; NULL: no memory. */
static struct command *command_take(struct backend_device *device, void *tag)
{
    struct command *command = device->spare;
    if (command)
        device->spare = command->next;
    else
        command = malloc(sizeof *command);
    if (command)
        *command = (struct command){.tag = tag, .launched_s = opencl_now(device->opencl)};
    return command;
}

/* Adds a command behind the others of its stream. On a lost device it ends at once. */
static void command_push(const struct backend_device *device, struct stream *stream,
                         struct command *command)
{
    *stream->last = command;
    stream->last = &command->next;
    stream->count++;
    if (!backend_lost(device))
        return;
    command->ended = true;
    command->status = DUET_ELOST;
    command->reason.why = device->loss;
    command->start_s = command->end_s = command->launched_s;
}

/* Removes the oldest command, which was reported. */
static void command_shift(struct backend_device *device, struct stream *stream)
{
    struct command *command = stream->first;
    stream->first = command->next;
    if (!stream->first)
        stream->last = &stream->first;
    stream->count--;
    if (command->start)
        (void)clReleaseEvent(command->start);
    if (command->end)
        (void)clReleaseEvent(command->end);
    command->next = device->spare;
    device->spare = command;
}

/* ------------------------------------------------------------------------------------------- */
/* Kernels                                                                                      */

/* Returns the stream of kernels with the fewest commands in flight. */
static struct stream *idlest_stream(struct backend_device *device)
{
    struct stream *best = &device->streams[0];
    for (unsigned i = 1; i < device->stream_count - 2; i++)
        if (device->streams[i].count < best->count)
            best = &device->streams[i];
    return best;
}

static bool mark_stream(const struct stream *stream, cl_event *event, struct failure *failure)
{
    return !duet__opencl_failed(failure, "clEnqueueMarkerWithWaitList",
                                clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, event));
}

/* Runs the function of a kernel that is in its stream, between two markers. */
static void run_kernel(struct backend_device *device, struct stream *stream,
                       struct command *command, const struct backend_kernel *kernel)
{
    struct failure failure;
    if (!mark_stream(stream, &command->start, &failure)) {
        duet__opencl_fail(device, command, &failure);
        return;
    }
    kernel->call->stream = &stream->view;
    kernel->call->status = &command->late;
    struct duet__usage before;
    duet__thread_usage(&before);
    command->status = kernel->run(kernel->call);
    command->returned_s = opencl_now(device->opencl);
    command->prepared = duet__has_prepared(command->returned_s - command->launched_s, &before);
    if (mark_stream(stream, &command->end, &failure)) {
        (void)clFlush(stream->queue);
        return;
    }
    int status = command->status;
    (void)clFinish(stream->queue); /* enqueued commands may use the task's data */
    duet__opencl_fail(device, command, &failure);
    if (!status || backend_lost(device))
        return;
    command->status = status; /* the kernel's own failure comes first */
    command->reason.failure.call = NULL;
}

int duet__opencl_launch(struct backend_device *device, const struct backend_kernel *kernel)
{
    struct stream *stream = idlest_stream(device);
    device->head.why = NULL;
    if (!kernel->run || !kernel->call)
        return DUET_EINVAL;
    struct command *command = command_take(device, kernel->tag);
    if (!command)
        return DUET_ENOMEM;
    command->is_kernel = true;
    command->reason.message = kernel->call->message;
    command_push(device, stream, command);
    if (!command->ended)
        run_kernel(device, stream, command, kernel);
    return DUET_OK;
}

/* ------------------------------------------------------------------------------------------- */
/* Copies in pieces, through the buffers of their stream. */

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
                  (size_t)(data - device->head.base) + piece->column * pitch + piece->offset, pitch,
                  &chunk->event, failure))
        return false;
    chunk->owner = command;
    chunk->piece = *piece;
    stream->chunk_count++;
    command->chunks++;
    return true;
}

/* Gives the waiting copies of a stream to OpenCL, as far as there are buffers. */
static void feed_stream(struct backend_device *device, struct stream *stream)
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

/* Empties buffers whose pieces have ended. */
static void empty_buffers(struct backend_device *device, struct stream *stream)
{
    while (stream->chunk_count) {
        const struct chunk *chunk = &stream->chunks[stream->oldest];
        struct command *owner = chunk->owner;
        struct failure failure;
        if (!duet__opencl_ended(chunk->event, "a copy of OpenCL's", &failure))
            return;
        if (failure.call)
            duet__opencl_fail(device, owner, &failure);
        if (backend_lost(device))
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

int duet__opencl_copy(struct backend_device *device, const struct backend_copy *copy)
{
    bool in = copy->stream == BACKEND_IN;
    struct stream *stream = &device->streams[device->stream_count - (in ? 2 : 1)];
    device->head.why = copy->peer ? "OpenCL's devices have no direct copies" : NULL;
    if (copy->peer ||
        !duet__copy_placed(copy, device->head.base, device->config.capacity_bytes, NULL, 0))
        return DUET_EINVAL;
    struct command *command = command_take(device, copy->tag);
    if (!command)
        return DUET_ENOMEM;
    command->copy = *copy;
    command_push(device, stream, command);
    if (!stream->waiting)
        stream->waiting = command;
    feed_stream(device, stream);
    return DUET_OK;
}

/* ------------------------------------------------------------------------------------------- */
/* Commands that have ended */

/* Sets the dates of a command that has ended without error. */
static void place_command(struct backend_device *device, const struct stream *stream,
                          struct command *command)
{
    const struct measured measured = {.start_s = command->first_s,
                                      .end_s = fmax(command->last_s, command->first_s),
                                      .unsure_s = device->unsure_s,
                                      .launched_s = command->launched_s,
                                      .asked_s = command->returned_s,
                                      .seen_s = opencl_now(device->opencl),
                                      .stream_s = stream->end_s};
    if (command->measured) {
        duet__dates_place(&device->dates, &measured, &command->start_s, &command->end_s);
    } else {
        command->start_s = measured.launched_s;
        command->end_s = measured.seen_s;
    }
    if (command->prepared)
        command->start_s = fmax(command->start_s, command->returned_s);
}

/* Queries a kernel, and sets its dates and status if it has ended. */
static void look_at_kernel(struct backend_device *device, const struct stream *stream,
                           struct command *command)
{
    struct failure failure;
    if (!duet__opencl_ended(command->end, "a kernel of OpenCL's", &failure))
        return;
    if (failure.call) {
        duet__opencl_fail(device, command, &failure);
        return;
    }
    command->measured =
        duet__opencl_date(device, command->start, CL_PROFILING_COMMAND_END, &command->first_s) &&
        duet__opencl_date(device, command->end, CL_PROFILING_COMMAND_END, &command->last_s);
    place_command(device, stream, command);
    command->ended = true;
    if (!command->status)
        command->status = duet__late_status(*(volatile int *)&command->late, &command->reason.info);
}

/* True if the oldest command of a stream has ended. */
static bool look_at_oldest(struct backend_device *device, const struct stream *stream)
{
    struct command *command = stream->first;
    if (!command->ended && command->is_kernel) {
        look_at_kernel(device, stream, command);
    } else if (!command->ended && command->given && !command->chunks) {
        place_command(device, stream, command);
        command->ended = true;
    }
    return command->ended && !command->chunks;
}

/* Writes the completion of the oldest command. */
static bool report_oldest(struct backend_device *device, struct stream *stream,
                          struct backend_completion *out)
{
    const struct command *command = stream->first;
    *out = (struct backend_completion){.tag = command->tag,
                                       .status = command->status,
                                       .start_s = command->start_s,
                                       .end_s = command->end_s};
    return duet__complete(out, &stream->end_s, &device->reasons, &command->reason,
                          duet__opencl_text);
}

size_t duet__opencl_poll(struct backend_device *device, struct backend_completion *out, size_t max)
{
    size_t taken = 0;
    device->reasons.used = 0;
    for (unsigned i = 0; i < device->stream_count && taken < max; i++) {
        struct stream *stream = &device->streams[i];
        if (stream->chunk_count)
            empty_buffers(device, stream);
        if (stream->waiting)
            feed_stream(device, stream);
        while (taken < max && stream->first && look_at_oldest(device, stream)) {
            if (!report_oldest(device, stream, &out[taken]))
                return taken;
            taken++;
            command_shift(device, stream);
        }
    }
    return taken;
}

/* ------------------------------------------------------------------------------------------- */
/* Ends of commands: their dates, errors, and the loss of the device. */

bool duet__opencl_ended(cl_event event, const char *call, struct failure *failure)
{
    cl_int status = CL_QUEUED;
    failure->call = NULL;
    if (duet__opencl_failed(failure, "clGetEventInfo",
                            clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status,
                                           &status, NULL)))
        return true;
    return duet__opencl_failed(failure, call, status < 0 ? status : CL_SUCCESS) ||
           status == CL_COMPLETE;
}

bool duet__opencl_date(const struct backend_device *device, cl_event event, cl_profiling_info which,
                       double *date_s)
{
    cl_ulong date_ns = 0;
    if (clGetEventProfilingInfo(event, which, sizeof date_ns, &date_ns, NULL) != CL_SUCCESS)
        return false;
    *date_s = 1e-9 * (double)(int64_t)(date_ns - device->origin_ns);
    return true;
}

/* ------------------------------------------------------------------------------------------- */
/* Errors                                                                                       */

/* Ends all commands of a stream. What the device may still do, it does in memory that stays. */
static void end_commands(const struct backend_device *device, struct stream *stream)
{
    double now_s = opencl_now(device->opencl);
    for (struct command *command = stream->first; command; command = command->next) {
        command->chunks = 0;
        if (command->ended)
            continue;
        command->ended = true;
        command->start_s = command->launched_s;
        command->end_s = now_s;
        command->status = DUET_ELOST;
        command->reason.why = device->loss;
    }
    for (; stream->chunk_count; stream->chunk_count--) {
        (void)clReleaseEvent(stream->chunks[stream->oldest].event);
        stream->oldest = (stream->oldest + 1) % STAGING_BUFFERS;
    }
    stream->waiting = NULL;
}

static void lose_device(struct backend_device *device, const struct failure *failure)
{
    const struct backend_setup *setup = &device->opencl->setup;
    char line[FAILURE_TEXT + 32];
    if (backend_lost(device))
        return;
    (void)duet__opencl_text(device->loss, failure);
    atomic_store_explicit(&device->head.lost, true, memory_order_release);
    for (unsigned i = 0; i < device->stream_count; i++)
        end_commands(device, &device->streams[i]);
    if (!setup->say)
        return;
    (void)snprintf(line, sizeof line, "GPU %u is lost: %s", device->config.index, device->loss);
    setup->say(setup->clock, line);
}

void duet__opencl_fail(struct backend_device *device, struct command *command,
                       const struct failure *failure)
{
    if (duet__opencl_gone(failure->error))
        lose_device(device, failure);
    if (command->ended)
        return;
    command->ended = true;
    command->status =
        duet__opencl_status(failure->error, command->is_kernel ? DUET_ETASK : DUET_EIO);
    command->reason.failure = *failure;
    command->start_s = command->launched_s;
    command->end_s = opencl_now(device->opencl);
}
