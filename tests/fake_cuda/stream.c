/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: a thread each, which executes its commands one after the other. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/fake_cuda/internal.h"

#define RESOLUTION_S 0.5e-6 /* resolution of events, as CUDA documents it */

/* ------------------------------------------------------------------------------------------- */
/* The thread                                                                                   */

/* Waits a random time up to delay_us: streams do not execute in the order of their commands. */
static void dawdle(struct fake_stream *stream, unsigned delay_us)
{
    stream->random = stream->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    if (!delay_us)
        return;
    struct timespec wait = {0, (long)((stream->random >> 33) % (delay_us + 1)) * 1000};
    (void)nanosleep(&wait, NULL);
}

static void release(struct fake_event *event)
{
    if (event && --event->uses == 0 && event->destroyed)
        free(event);
}

/* True if the command may be executed, now that all before it have been. */
static bool may_run(struct fake_stream *stream, const struct fake_command *command)
{
    struct fake *fake = fake_state();
    struct fake_device *device = &fake->devices[stream->device];
    const struct fake_event *wait = command->wait;
    while (wait && wait->completed < command->number && !device->broken &&
           !fake_error_of(wait->device))
        fake_wait();
    if (!device->broken && device->fuse && --device->fuse == 0)
        fake_break(stream->device, device->fuse_error);
    return !device->broken;
}

/* Returns the date on the device's clock, which has another beginning, another rate, and steps. */
static double date_of(unsigned device)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    double rate = device % 2 ? 1 - 50e-6 : 1 + 50e-6;
    double date_s = rate * ((double)now.tv_sec + 1e-9 * (double)now.tv_nsec) + 1000 * device;
    return floor(date_s / RESOLUTION_S) * RESOLUTION_S;
}

static void execute(struct fake_stream *stream, struct fake_command *command)
{
    unsigned delay_us = fake_state()->config.delay_us;
    if (!may_run(stream, command))
        return;
    fake_unlock();
    dawdle(stream, delay_us);
    fake_set_inside(command->host);
    if (command->run)
        command->run(command->argument);
    fake_set_inside(false);
    fake_lock();
    if (command->record && command->record->completed < command->number) {
        command->record->completed = command->number;
        command->record->date_s = date_of(stream->device);
    }
}

static void *work(void *argument)
{
    struct fake_stream *stream = argument;
    fake_lock();
    for (;;) {
        while (!stream->first && !stream->closing)
            fake_wait();
        struct fake_command *command = stream->first;
        if (!command)
            break;
        execute(stream, command);
        stream->first = command->next;
        stream->done++;
        release(command->record);
        release(command->wait);
        free(command);
        fake_changed();
    }
    fake_unlock();
    return NULL;
}

/* ------------------------------------------------------------------------------------------- */
/* Commands                                                                                     */

struct fake_command *fake_command(void (*run)(void *argument), const void *argument, size_t bytes)
{
    struct fake_command *command = calloc(1, sizeof *command + bytes);
    if (!command)
        abort();
    command->run = run;
    command->bytes = bytes;
    if (bytes)
        memcpy(command->argument, argument, bytes);
    return command;
}

void fake_give(struct fake_stream *stream, struct fake_command *command)
{
    if (stream->capture) {
        fake_capture(stream, command);
        return;
    }
    if (stream->first)
        stream->last->next = command;
    else
        stream->first = command;
    stream->last = command;
    stream->given++;
    fake_changed();
}

cudaError_t fake_drain(struct fake_stream *stream)
{
    uint64_t given = stream->given;
    unsigned device = stream->device;
    stream->waiters++;
    while (stream->done < given)
        fake_wait();
    stream->waiters--;
    fake_changed();
    return fake_error_of(device);
}

cudaError_t fake_drain_device(unsigned device)
{
    struct fake_table *table = &fake_state()->streams;
    for (size_t i = 0; i < table->count; i++) {
        struct fake_stream *stream = table->items[i];
        if (stream && stream->device == device)
            (void)fake_drain(stream);
    }
    return fake_error_of(device);
}

void fake_drain_all(void)
{
    for (unsigned d = 0; d < fake_state()->config.devices; d++)
        (void)fake_drain_device(d);
}

static bool overlap(struct span a, struct span b)
{
    return a.bytes && b.bytes && a.begin < b.begin + b.bytes && b.begin < a.begin + a.bytes;
}

bool fake_host_in_use(struct span span)
{
    const struct fake_table *table = &fake_state()->streams;
    for (size_t i = 0; i < table->count; i++) {
        const struct fake_stream *stream = table->items[i];
        const struct fake_command *command = stream ? stream->first : NULL;
        for (; command; command = command->next)
            if (overlap(command->used[0], span) || overlap(command->used[1], span))
                return true;
    }
    return false;
}

int fake_cuda_launch(void *stream, void (*run)(void *argument), const void *argument, size_t bytes)
{
    struct fake_stream *on;
    fake_lock();
    cudaError_t error = fake_stream_of(stream, &on);
    if (!error && on->device != fake_device())
        error = cudaErrorInvalidResourceHandle;
    if (!error) {
        fake_state()->stats.kernels++;
        fake_give(on, fake_command(run, argument, bytes));
    }
    return (int)fake_leave(error);
}

/* ------------------------------------------------------------------------------------------- */
/* The functions of CUDA                                                                        */

cudaError_t fake_stream_of(cudaStream_t handle, struct fake_stream **out)
{
    *out = fake_get(&fake_state()->streams, handle);
    return *out ? fake_error_of((*out)->device) : cudaErrorInvalidResourceHandle;
}

static uint64_t streams_made; /* number in the process; needs the lock */

static cudaError_t create(cudaStream_t *out, unsigned flags)
{
    if (!out || flags & ~(unsigned)cudaStreamNonBlocking)
        return cudaErrorInvalidValue;
    struct fake_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        abort();
    stream->device = fake_device();
    stream->flags = flags;
    stream->id = ++streams_made;
    *out = fake_put(&fake_state()->streams, stream);
    stream->random = (uintptr_t)*out;
    if (pthread_create(&stream->thread, NULL, work, stream))
        abort();
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    cudaError_t error = fake_enter(FAKE_cudaStreamCreateWithFlags, true);
    return fake_leave(error ? error : create(stream, flags));
}

/* Destroys a stream: its thread ends when all is done, which CUDA does not wait for. */
cudaError_t cudaStreamDestroy(cudaStream_t handle)
{
    cudaError_t error = fake_enter(FAKE_cudaStreamDestroy, false);
    if (error)
        return fake_leave(error);
    struct fake_stream *stream = fake_get(&fake_state()->streams, handle);
    if (!stream || stream->closing)
        return fake_leave(cudaErrorInvalidResourceHandle);
    stream->closing = true;
    fake_changed();
    fake_unlock();
    (void)pthread_join(stream->thread, NULL);
    fake_lock();
    while (stream->waiters)
        fake_wait();
    error = fake_error_of(stream->device);
    (void)fake_take(&fake_state()->streams, handle);
    free(stream);
    return fake_leave(error);
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle)
{
    struct fake_stream *stream;
    cudaError_t error = fake_enter(FAKE_cudaStreamSynchronize, false);
    if (!error)
        error = fake_stream_of(handle, &stream);
    return fake_leave(error ? error : fake_drain(stream));
}

cudaError_t cudaStreamQuery(cudaStream_t handle)
{
    struct fake_stream *stream;
    cudaError_t error = fake_enter(FAKE_cudaStreamQuery, false);
    if (!error)
        error = fake_stream_of(handle, &stream);
    if (!error && stream->first)
        error = cudaErrorNotReady;
    return fake_leave(error);
}

cudaError_t cudaStreamGetId(cudaStream_t handle, unsigned long long *id)
{
    struct fake_stream *stream;
    cudaError_t error = fake_enter(FAKE_cudaStreamGetId, false);
    if (!error)
        error = fake_stream_of(handle, &stream);
    if (!error)
        *id = stream->id;
    return fake_leave(error);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event_handle, unsigned flags)
{
    struct fake_stream *stream;
    struct fake_event *event;
    cudaError_t error = fake_enter(FAKE_cudaStreamWaitEvent, false);
    if (!error)
        error = fake_stream_of(handle, &stream);
    if (!error)
        error = fake_event_of(event_handle, &event);
    if (!error && flags)
        error = cudaErrorInvalidValue;
    if (error)
        return fake_leave(error);
    struct fake_command *command = fake_command(NULL, NULL, 0);
    command->wait = event;
    command->number = event->recorded;
    event->uses++;
    fake_give(stream, command);
    return fake_leave(cudaSuccess);
}

struct host_function {
    cudaHostFn_t function;
    void *argument;
};

static void call(void *argument)
{
    const struct host_function *host = argument;
    host->function(host->argument);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void *argument)
{
    struct fake_stream *stream;
    struct host_function host = {function, argument};
    cudaError_t error = fake_enter(FAKE_cudaLaunchHostFunc, false);
    if (!error)
        error = fake_stream_of(handle, &stream);
    if (!error && !function)
        error = cudaErrorInvalidValue;
    if (error)
        return fake_leave(error);
    struct fake_command *command = fake_command(call, &host, sizeof host);
    command->host = true;
    fake_state()->stats.host_functions++;
    fake_give(stream, command);
    return fake_leave(cudaSuccess);
}

cudaError_t cudaDeviceSynchronize(void)
{
    cudaError_t error = fake_enter(FAKE_cudaDeviceSynchronize, true);
    return fake_leave(error ? error : fake_drain_device(fake_device()));
}
