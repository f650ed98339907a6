/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of commands: their dates, errors, and the loss of the device. */
#include <math.h>
#include <stdio.h>

#include "backends/opencl/internal.h"

/* ------------------------------------------------------------------------------------------- */
/* Dates                                                                                        */

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

void duet__opencl_place(struct backend_device *device, const struct stream *stream,
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
        command->why = device->loss;
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
    if (opencl_lost(device))
        return;
    (void)duet__opencl_text(device->loss, failure);
    atomic_store_explicit(&device->lost, true, memory_order_release);
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
    command->failure = *failure;
    command->start_s = command->launched_s;
    command->end_s = opencl_now(device->opencl);
}
