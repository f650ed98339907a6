/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands of a device: launch and copy give them to CUDA, and poll finds those that have ended. A
 * kernel costs two records of events (one if they are untimed), what it enqueues itself, and one
 * query of its end.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/cuda/internal.h"

static const char peer_lost[] = "the other device of the copy is lost";

/* Enters a command of a lost device, which has ended before it began. */
static int command_lost(const struct backend_device *device, struct stream *stream,
                        struct command *command, const char *why)
{
    command->ended = true;
    command->status = DUET_ELOST;
    command->reason.why = why;
    command->start_s = command->end_s = cuda_now(device->cuda);
    (void)duet__ring_add(&stream->commands, command);
    if (stream->given == stream->commands.count - 1)
        stream->given++;
    return DUET_OK;
}

static void give_timing(struct backend_device *device, struct command *command)
{
    if (command->timing)
        duet__timings_give(&device->timings, command->timing);
    if (command->capture)
        duet__capture_give(command->capture);
    command->timing = NULL;
    command->capture = NULL;
}

/* Removes the newest command, which was refused. */
static void unpush_command(struct backend_device *device, struct stream *stream)
{
    give_timing(device, cuda_at(stream, --stream->commands.count));
    if (stream->given > stream->commands.count)
        stream->given = stream->commands.count;
}

/* Removes the oldest command, which was reported. */
static void shift_command(struct backend_device *device, struct stream *stream)
{
    give_timing(device, cuda_at(stream, 0));
    ring_drop(&stream->commands);
    stream->given--;
    stream->reported++;
}

static int refuse_command(struct backend_device *device, const struct failure *failure,
                          int otherwise)
{
    device->head.why = duet__cuda_text(device->refusal, failure);
    return duet__cuda_status(failure->error, otherwise);
}

bool duet__cuda_begin(struct backend_device *device, const struct stream *stream,
                      struct command *command, struct failure *failure)
{
    command->timing = duet__timings_take(&device->timings, command->is_kernel, failure);
    command->launched_s = cuda_now(device->cuda);
    return command->timing &&
           (device->config.untimed ||
            !duet__cuda_failed(failure, "cudaEventRecord",
                               cudaEventRecord(command->timing->start, stream->handle)));
}

/* ------------------------------------------------------------------------------------------- */
/* Kernels                                                                                      */

/* Returns the stream of kernels with the fewest commands in flight. */
static struct stream *idlest_stream(struct backend_device *device)
{
    struct stream *best = &device->streams[0];
    for (unsigned i = 1; i < device->stream_count - 2; i++)
        if (device->streams[i].commands.count < best->commands.count)
            best = &device->streams[i];
    return best;
}

/*
 * Finds an error that the kernel's function did not report: a launch by <<<>>> that was refused.
 * Clears that error, which would be mistaken for one of the next kernel.
 */
static void look_behind(struct backend_device *device, struct command *command)
{
    struct failure failure = {.call = "cudaGetLastError, after the kernel's function",
                              .error = cudaGetLastError()};
    if (failure.error == cudaSuccess || failure.error == cudaErrorNotReady ||
        duet__cuda_broken(device, &failure) || command->status)
        return;
    command->status = duet__cuda_status(failure.error, DUET_ETASK);
    command->reason.failure = failure;
}

/* Runs the function of a kernel that is in its stream's ring, between its two events. */
static int run_kernel(struct backend_device *device, struct stream *stream, struct command *command,
                      const struct backend_kernel *kernel)
{
    struct failure failure;
    kernel->call->stream = stream->handle;
    kernel->call->status = command->timing->status;
    /* runtimes that keep cudaErrorNotReady as an error would show it to the kernel's function */
    (void)cudaGetLastError();
    struct duet__usage before;
    duet__thread_usage(&before);
    command->status = kernel->repeat ? duet__cuda_repeat(device, stream, command, kernel)
                                     : kernel->run(kernel->call);
    command->returned_s = cuda_now(device->cuda);
    if (!command->prepared)
        command->prepared = duet__has_prepared(command->returned_s - command->launched_s, &before);
    look_behind(device, command);
    if (backend_lost(device) ||
        !duet__cuda_failed(&failure, "cudaEventRecord",
                           cudaEventRecord(command->timing->end, stream->handle)))
        return DUET_OK;
    int status = command->status;
    duet__cuda_fail(device, stream, command, &failure);
    if (backend_lost(device))
        return DUET_OK;
    if (status) { /* the kernel's own failure comes first */
        command->status = status;
        command->reason.failure.call = NULL;
        return DUET_OK;
    }
    unpush_command(device, stream);
    return refuse_command(device, &failure, DUET_ETASK);
}

int duet__cuda_launch(struct backend_device *device, const struct backend_kernel *kernel)
{
    struct failure failure;
    struct stream *stream = idlest_stream(device);
    device->head.why = NULL;
    if (!kernel->run || !kernel->call)
        return DUET_EINVAL;
    struct command command = {.tag = kernel->tag,
                              .is_kernel = true,
                              .reason.message = kernel->call->message};
    if (!duet__ring_reserve(&stream->commands))
        return DUET_ENOMEM;
    if (backend_lost(device))
        return command_lost(device, stream, &command, device->loss);
    if (duet__cuda_begin(device, stream, &command, &failure)) {
        struct command *entered = duet__ring_add(&stream->commands, &command);
        stream->given++;
        return run_kernel(device, stream, entered, kernel);
    }
    if (command.timing)
        duet__timings_give(&device->timings, command.timing);
    command.timing = NULL;
    if (duet__cuda_broken(device, &failure))
        return command_lost(device, stream, &command, device->loss);
    return refuse_command(device, &failure, DUET_ETASK);
}

/* ------------------------------------------------------------------------------------------- */
/* Copies                                                                                       */

int duet__cuda_copy(struct backend_device *device, const struct backend_copy *copy)
{
    struct stream *stream = copy->stream == BACKEND_IN ? cuda_in(device) : cuda_out(device);
    struct command command = {.tag = copy->tag, .copy = *copy};
    const struct backend_device *peer = copy->peer ? copy->peer : device;
    device->head.why = NULL;
    if (!duet__copy_placed(copy, device->head.base, device->config.capacity_bytes, peer->head.base,
                           peer->config.capacity_bytes))
        return DUET_EINVAL;
    if (!duet__ring_reserve(&stream->commands))
        return DUET_ENOMEM;
    if (backend_lost(device))
        return command_lost(device, stream, &command, device->loss);
    if (backend_lost(peer))
        return command_lost(device, stream, &command, peer_lost);
    command.direct = duet__cuda_is_direct(device->cuda, copy);
    struct command *entered = duet__ring_add(&stream->commands, &command);
    duet__cuda_feed(device, stream);
    if (!entered->ended || !entered->reason.failure.call)
        return DUET_OK;
    struct failure failure = entered->reason.failure;
    int status = entered->status;
    unpush_command(device, stream);
    (void)refuse_command(device, &failure, status);
    return status;
}

/* ------------------------------------------------------------------------------------------- */
/* Commands that have ended */

/* Takes the status that the stream has written before the kernel's end. */
static void take_late_status(struct command *command)
{
    if (command->status)
        return;
    int late = command->capture ? duet__capture_status(command->capture, &command->part)
                                : *(volatile int *)command->timing->status;
    command->status = duet__late_status(late, &command->reason.info);
}

/* Sets the dates and the status of the oldest command of a stream, which has ended. */
static void conclude(struct backend_device *device, struct stream *stream, struct command *command)
{
    struct failure failure;
    const struct timed timed = {.launched_s = command->launched_s,
                                .asked_s = command->returned_s,
                                .seen_s = cuda_now(device->cuda),
                                .stream_s = stream->end_s};
    if (!duet__timings_read(&device->timings, command->timing, &timed, &command->start_s,
                            &command->end_s, &failure)) {
        if (duet__cuda_broken(device, &failure))
            return;
        if (!command->status) {
            command->status =
                duet__cuda_status(failure.error, command->is_kernel ? DUET_ETASK : DUET_EIO);
            command->reason.failure = failure;
        }
    }
    command->ended = true;
    if (command->is_kernel) {
        if (command->prepared)
            command->start_s = fmax(command->start_s, command->returned_s);
        take_late_status(command);
    } else if (command->copy.peer && backend_lost(command->copy.peer)) {
        command->status = DUET_ELOST;
        command->reason.why = peer_lost;
    }
}

/* True if the oldest command of a stream has ended. */
static bool look_at_oldest(struct backend_device *device, struct stream *stream)
{
    struct command *command = cuda_at(stream, 0);
    struct failure failure;
    if (command->ended)
        return true;
    if (!stream->given || (command->chunks && stream->kind == BACKEND_OUT))
        return false; /* pieces are still to come, or to be copied out of buffers */
    cudaError_t error = cudaEventQuery(command->timing->end);
    if (error == cudaErrorNotReady)
        return false;
    if (duet__cuda_failed(&failure, "cudaEventQuery", error))
        duet__cuda_fail(device, stream, command, &failure);
    else
        conclude(device, stream, command);
    return command->ended;
}

/* Writes the completion of the oldest command. */
static bool report_oldest(struct backend_device *device, struct stream *stream,
                          struct backend_completion *out)
{
    const struct command *command = cuda_at(stream, 0);
    *out = (struct backend_completion){.tag = command->tag,
                                       .status = command->status,
                                       .start_s = command->start_s,
                                       .end_s = command->end_s,
                                       .part = command->part};
    return duet__complete(out, &stream->end_s, &device->reasons, &command->reason, duet__cuda_text);
}

/* Moves staged copies on. An error belongs to the copy of the oldest piece. */
static void advance_staged(struct backend_device *device, struct stream *stream)
{
    struct failure failure;
    const struct staging *staging = &stream->staging;
    if (stream->kind == BACKEND_OUT && !duet__cuda_empty(stream, false, &failure)) {
        size_t owner = staging->chunks[staging->first].owner - stream->reported;
        duet__cuda_fail(device, stream, cuda_at(stream, owner), &failure);
    }
    if (!backend_lost(device))
        duet__cuda_feed(device, stream);
}

/*
 * Polls one stream. Stops when the device is found to be lost, so that kernels that are to blame
 * are reported before commands that are lost with them.
 */
static size_t poll_stream(struct backend_device *device, struct stream *stream,
                          struct backend_completion *out, size_t max)
{
    bool lost = backend_lost(device);
    size_t taken = 0;
    if (!lost && (stream->staging.count || stream->given < stream->commands.count))
        advance_staged(device, stream);
    while (taken < max && stream->commands.count && look_at_oldest(device, stream) &&
           lost == backend_lost(device)) {
        if (!report_oldest(device, stream, &out[taken]))
            break;
        taken++;
        shift_command(device, stream);
    }
    return taken;
}

size_t duet__cuda_poll(struct backend_device *device, struct backend_completion *out, size_t max)
{
    bool lost = backend_lost(device);
    size_t taken = 0;
    device->reasons.used = 0;
    for (unsigned i = 0; i < device->stream_count && taken < max; i++) {
        taken += poll_stream(device, &device->streams[i], out + taken, max - taken);
        if (lost == backend_lost(device))
            continue;
        lost = true;
        i = UINT_MAX; /* again from the first stream */
    }
    return taken;
}
