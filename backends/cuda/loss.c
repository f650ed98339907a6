/* SPDX-License-Identifier: Apache-2.0 */
/* Errors that end a command, and those that end the device. */
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "backends/cuda/internal.h"

/*
 * Ends the commands of a lost device in one stream. Returns true if kernels of it may be to blame.
 */
static bool end_commands(struct backend_device *device, struct stream *stream, bool by_kernel)
{
    double now_s = cuda_now(device->cuda);
    bool blamed = false;
    for (size_t i = 0; i < stream->commands.count; i++) {
        struct command *command = cuda_at(stream, i);
        if (command->ended)
            continue;
        command->ended = true;
        command->start_s = command->timing ? command->launched_s : now_s;
        command->end_s = now_s;
        command->status = DUET_ELOST;
        command->reason.why = device->loss;
        if (!command->is_kernel || !by_kernel)
            continue;
        command->status = DUET_ETASK;
        blamed = true;
    }
    stream->given = stream->commands.count;
    stream->staging.count = 0;
    return blamed;
}

/*
 * Loses the device, for the reason in device->loss. Returns true if tasks failed with that reason.
 */
static bool lose_device(struct backend_device *device, bool by_kernel)
{
    bool blamed = false;
    atomic_store_explicit(&device->head.lost, true, memory_order_release);
    for (unsigned i = 0; i < device->stream_count; i++)
        blamed |= end_commands(device, &device->streams[i], by_kernel);
    return blamed;
}

static void say_lost(const struct backend_device *device)
{
    const struct backend_setup *setup = &device->cuda->setup;
    char line[LABEL + FAILURE_TEXT + 16];
    if (!setup->say)
        return;
    (void)snprintf(line, sizeof line, "%s is lost: %s", device->label, device->loss);
    setup->say(setup->clock, line);
}

void duet__cuda_lose(struct backend_device *device, const struct failure *failure)
{
    if (backend_lost(device))
        return;
    (void)duet__cuda_text(device->loss, failure);
    /* kernels are blamed for an unlisted error, as all of hardware and driver are listed */
    if (!lose_device(device, duet__cuda_fate(failure->error) != FATE_GONE))
        say_lost(device);
}

void duet__cuda_abandon(struct backend_device *device)
{
    device->abandoned = true;
    duet__cuda_hang();
    if (backend_lost(device))
        return;
    (void)snprintf(device->loss, sizeof device->loss,
                   "what it runs has not ended for %g s and is waited for no longer",
                   device->cuda->setup.patience_s);
    (void)lose_device(device, true);
    say_lost(device);
}

/*
 * True if the device itself works: the error may concern the other end of a copy, or one call. Else
 * *failure is the error that any call has now.
 */
static bool is_well(const struct backend_device *device, struct failure *failure)
{
    cudaError_t error = cudaStreamQuery(device->streams[0].handle);
    return error == cudaErrorNotReady || !duet__cuda_failed(failure, "cudaStreamQuery", error);
}

bool duet__cuda_broken(struct backend_device *device, const struct failure *failure)
{
    struct failure lasting = *failure;
    if (!backend_lost(device) &&
        (duet__cuda_fate(failure->error) != FATE_REFUSED || !is_well(device, &lasting)))
        duet__cuda_lose(device, &lasting);
    return backend_lost(device);
}

/*
 * Counts commands of the stream that have ended, oldest first. Returns true if there are more than
 * before.
 */
static bool goes_on(const struct stream *stream, size_t *ended)
{
    size_t before = *ended;
    for (; *ended < stream->given; ++*ended) {
        const struct command *command = cuda_at(stream, *ended);
        if (command->timing && cudaEventQuery(command->timing->end) == cudaErrorNotReady)
            break;
    }
    return *ended > before;
}

/*
 * Waits until the stream is idle. A device that refuses even that, or ends nothing for the setup's
 * patience_s, is lost.
 */
static void settle_stream(struct backend_device *device, struct stream *stream)
{
    struct failure failure;
    const struct timespec nap = {.tv_nsec = CUDA_NAP_NS};
    double patience_s = device->cuda->setup.patience_s, since_s = cuda_now(device->cuda);
    size_t ended = 0;
    cudaError_t error = cudaStreamQuery(stream->handle);
    while (error == cudaErrorNotReady) {
        double now_s = cuda_now(device->cuda);
        if (goes_on(stream, &ended))
            since_s = now_s;
        else if (patience_s > 0 && now_s - since_s > patience_s)
            break;
        (void)nanosleep(&nap, NULL);
        error = cudaStreamQuery(stream->handle);
    }
    if (error == cudaErrorNotReady)
        duet__cuda_abandon(device);
    else if (duet__cuda_failed(&failure, "cudaStreamQuery", error) ||
             !duet__cuda_empty(stream, true, &failure))
        duet__cuda_lose(device, &failure);
}

void duet__cuda_fail(struct backend_device *device, struct stream *stream, struct command *command,
                     const struct failure *failure)
{
    const struct backend_device *peer = command->is_kernel ? NULL : command->copy.peer;
    struct failure lasting;
    bool foreign =
        peer && duet__cuda_fate(failure->error) != FATE_REFUSED && is_well(device, &lasting);
    if (!foreign && duet__cuda_broken(device, failure))
        return;
    command->ended = true; /* before its staging buffers are emptied */
    command->status = duet__cuda_status(failure->error, command->is_kernel ? DUET_ETASK : DUET_EIO);
    command->reason.failure = *failure;
    /* the peer's own thread may not have seen its loss yet */
    if (foreign || (peer && backend_lost(peer)))
        command->status = DUET_ELOST;
    command->start_s = command->timing ? command->launched_s : cuda_now(device->cuda);
    if (command->timing)
        settle_stream(device, stream);
    command->end_s = fmax(cuda_now(device->cuda), command->start_s);
}
