/* SPDX-License-Identifier: Apache-2.0 */
/* Errors that end a command, and those that end the device. */
#include <math.h>
#include <stdio.h>

#include "backends/cuda/internal.h"

/* Ends what a lost device holds in one stream. true: kernels of it may be to blame. */
static bool end_all(struct backend_device *device, struct stream *stream, bool by_kernel)
{
    double now_s = cuda_now(device->cuda);
    bool blamed = false;
    for (size_t i = 0; i < stream->count; i++) {
        struct command *command = cuda_at(stream, i);
        if (command->ended)
            continue;
        command->ended = true;
        command->start_s = command->timing ? command->launched_s : now_s;
        command->end_s = now_s;
        command->status = DUET_ELOST;
        command->why = device->loss;
        if (!command->is_kernel || !by_kernel)
            continue;
        command->status = DUET_ETASK;
        blamed = true;
    }
    stream->given = stream->count;
    stream->staging.count = 0;
    return blamed;
}

void duet__cuda_lose(struct backend_device *device, const struct failure *failure)
{
    const struct backend_setup *setup = &device->cuda->setup;
    bool by_kernel = duet__cuda_fate(failure->error) == FATE_KERNEL, blamed = false;
    char line[LABEL + FAILURE_TEXT + 16];
    if (cuda_lost(device))
        return;
    (void)duet__cuda_text(device->loss, failure);
    atomic_store_explicit(&device->lost, true, memory_order_release);
    for (unsigned i = 0; i < device->stream_count; i++)
        blamed |= end_all(device, &device->streams[i], by_kernel);
    if (blamed || !setup->say)
        return; /* the task's error says it */
    (void)snprintf(line, sizeof line, "%s is lost: %s", device->label, device->loss);
    setup->say(setup->clock, line);
}

bool duet__cuda_broken(struct backend_device *device, const struct failure *failure)
{
    if (!cuda_lost(device) && duet__cuda_fate(failure->error) != FATE_REFUSED)
        duet__cuda_lose(device, failure);
    return cuda_lost(device);
}

/* Whether the device itself works: what went wrong may be the other end of a copy. */
static bool is_well(const struct backend_device *device)
{
    cudaError_t error = cudaStreamQuery(device->streams[0].handle);
    if (error == cudaSuccess || error == cudaErrorNotReady)
        return true;
    duet__cuda_ignore(error);
    return false;
}

/* Waits until the stream is idle. A device that refuses even that is of no use any more. */
static bool settle(struct backend_device *device, struct stream *stream)
{
    struct failure failure;
    if (duet__cuda_failed(&failure, "cudaStreamSynchronize",
                          cudaStreamSynchronize(stream->handle))) {
        duet__cuda_lose(device, &failure);
        return false;
    }
    return duet__cuda_empty(stream, true, &failure);
}

void duet__cuda_fail(struct backend_device *device, struct stream *stream, struct command *command,
                     const struct failure *failure)
{
    const struct backend_device *peer = command->is_kernel ? NULL : command->copy.peer;
    bool foreign = peer && duet__cuda_fate(failure->error) != FATE_REFUSED && is_well(device);
    if (!foreign && duet__cuda_broken(device, failure))
        return;
    command->ended = true; /* before what it has in staging buffers is emptied */
    command->status = duet__cuda_status(failure->error, command->is_kernel ? DUET_ETASK : DUET_EIO);
    command->failure = *failure;
    /* the peer's own thread may not have seen yet that it is lost */
    if (foreign || (peer && cuda_lost(peer)))
        command->status = DUET_ELOST;
    command->start_s = command->timing ? command->launched_s : cuda_now(device->cuda);
    if (command->timing)
        (void)settle(device, stream);
    command->end_s = fmax(cuda_now(device->cuda), command->start_s);
}
