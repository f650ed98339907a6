/* SPDX-License-Identifier: Apache-2.0 */
/* Events: progress of streams, and the dates of it. */
#include <stdlib.h>

#include "tests/fake_cuda/internal.h"

cudaError_t fake_event_of(cudaEvent_t handle, struct fake_event **out)
{
    *out = fake_get(&fake_state()->events, handle);
    return *out ? fake_error_of((*out)->device) : cudaErrorInvalidResourceHandle;
}

static cudaError_t create(cudaEvent_t *out, unsigned flags)
{
    const unsigned known = cudaEventBlockingSync | cudaEventDisableTiming;
    if (!out || flags & ~known)
        return cudaErrorInvalidValue;
    struct fake_event *event = calloc(1, sizeof *event);
    if (!event)
        abort();
    event->device = fake_device();
    event->flags = flags;
    *out = fake_put(&fake_state()->events, event);
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    cudaError_t error = fake_enter(FAKE_cudaEventCreate, true);
    return fake_leave(error ? error : create(event, cudaEventDefault));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    cudaError_t error = fake_enter(FAKE_cudaEventCreateWithFlags, true);
    return fake_leave(error ? error : create(event, flags));
}

cudaError_t cudaEventDestroy(cudaEvent_t handle)
{
    cudaError_t error = fake_enter(FAKE_cudaEventDestroy, false);
    if (error)
        return fake_leave(error);
    struct fake_event *event = fake_take(&fake_state()->events, handle);
    if (!event)
        return fake_leave(cudaErrorInvalidResourceHandle);
    error = fake_error_of(event->device);
    event->destroyed = true;
    if (!event->uses)
        free(event);
    return fake_leave(error);
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle)
{
    struct fake_stream *stream;
    struct fake_event *event;
    cudaError_t error = fake_enter(FAKE_cudaEventRecord, false);
    if (!error)
        error = fake_event_of(handle, &event);
    if (!error)
        error = fake_stream_of(stream_handle, &stream);
    if (!error && event->device != stream->device)
        error = cudaErrorInvalidResourceHandle;
    if (error)
        return fake_leave(error);
    struct fake_command *command = fake_command(NULL, NULL, 0);
    command->record = event;
    command->number = ++event->recorded;
    event->uses++;
    fake_give(stream, command);
    return fake_leave(cudaSuccess);
}

cudaError_t cudaEventQuery(cudaEvent_t handle)
{
    struct fake_event *event;
    cudaError_t error = fake_enter(FAKE_cudaEventQuery, false);
    if (!error)
        error = fake_event_of(handle, &event);
    if (!error && event->completed < event->recorded)
        error = cudaErrorNotReady;
    return fake_leave(error);
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle)
{
    struct fake_event *event;
    cudaError_t error = fake_enter(FAKE_cudaEventSynchronize, false);
    if (!error)
        error = fake_event_of(handle, &event);
    if (error)
        return fake_leave(error);
    uint64_t number = event->recorded;
    unsigned device = event->device;
    event->uses++;
    while (event->completed < number && !fake_error_of(device))
        fake_wait();
    if (--event->uses == 0 && event->destroyed)
        free(event);
    return fake_leave(fake_error_of(device));
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start_handle, cudaEvent_t end_handle)
{
    struct fake_event *start, *end;
    cudaError_t error = fake_enter(FAKE_cudaEventElapsedTime, false);
    if (!error)
        error = fake_event_of(start_handle, &start);
    if (!error)
        error = fake_event_of(end_handle, &end);
    if (error)
        return fake_leave(error);
    if ((start->flags | end->flags) & cudaEventDisableTiming || start->device != end->device ||
        !start->recorded || !end->recorded)
        return fake_leave(cudaErrorInvalidResourceHandle);
    if (start->completed < start->recorded || end->completed < end->recorded)
        return fake_leave(cudaErrorNotReady);
    *ms = (float)((end->date_s - start->date_s) * 1e3);
    return fake_leave(cudaSuccess);
}
