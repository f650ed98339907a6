/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing a device: its context, its slab and its queues. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "backends/opencl/internal.h"

/* ------------------------------------------------------------------------------------------- */
/* Errors of OpenCL                                                                             */

enum {
    NO_PLATFORM = -1001, /* CL_PLATFORM_NOT_FOUND_KHR, of cl_khr_icd */
    NVIDIA_FAULT = -9999 /* an illegal access, in NVIDIA's implementation */
};

bool duet__opencl_failed(struct failure *failure, const char *call, cl_int error)
{
    if (error == CL_SUCCESS)
        return false;
    *failure = (struct failure){.call = call, .error = error};
    return true;
}

bool duet__opencl_gone(cl_int error)
{
    switch (error) {
    case CL_DEVICE_NOT_AVAILABLE:
    case CL_INVALID_DEVICE:
    case CL_INVALID_CONTEXT:
    case CL_INVALID_COMMAND_QUEUE:
    case NVIDIA_FAULT:
        return true;
    default:
        return false;
    }
}

int duet__opencl_status(cl_int error, int otherwise)
{
    switch (error) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
    case CL_OUT_OF_HOST_MEMORY:
    case CL_INVALID_BUFFER_SIZE:
        return DUET_ENOMEM;
    default:
        return otherwise;
    }
}

/* Returns the name of an error that applications' kernels and this backend can meet. */
static const char *name_of(cl_int error)
{
#define NAME(name)                                                                                 \
    case name:                                                                                     \
        return #name;
    switch (error) {
        NAME(CL_DEVICE_NOT_FOUND)
        NAME(CL_DEVICE_NOT_AVAILABLE)
        NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE)
        NAME(CL_OUT_OF_RESOURCES)
        NAME(CL_OUT_OF_HOST_MEMORY)
        NAME(CL_PROFILING_INFO_NOT_AVAILABLE)
        NAME(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
        NAME(CL_INVALID_VALUE)
        NAME(CL_INVALID_DEVICE)
        NAME(CL_INVALID_CONTEXT)
        NAME(CL_INVALID_QUEUE_PROPERTIES)
        NAME(CL_INVALID_COMMAND_QUEUE)
        NAME(CL_INVALID_MEM_OBJECT)
        NAME(CL_INVALID_EVENT)
        NAME(CL_INVALID_OPERATION)
        NAME(CL_INVALID_BUFFER_SIZE)
    case NO_PLATFORM:
        return "CL_PLATFORM_NOT_FOUND_KHR";
    case NVIDIA_FAULT:
        return "a kernel reached where it may not";
    default:
        return "error";
    }
#undef NAME
}

const char *duet__opencl_text(char text[FAILURE_TEXT], const struct failure *failure)
{
    (void)snprintf(text, FAILURE_TEXT, "%s: %s (%d)", failure->call, name_of(failure->error),
                   (int)failure->error);
    return text;
}

/* ------------------------------------------------------------------------------------------- */
/* Devices                                                                                      */

enum { NAP_NS = 20000 /* pause between two polls of a device that is closed */ };

/* ------------------------------------------------------------------------------------------- */
/* Opening                                                                                      */

/*
 * Reserves addresses to stand for the slab, which has none: they are unique, and access to them
 * faults.
 */
static bool reserve_addresses(struct backend_device *device, struct failure *failure)
{
    void *base = mmap(NULL, (size_t)device->config.capacity_bytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *failure = (struct failure){.call = "mmap", .error = CL_OUT_OF_HOST_MEMORY};
    if (base == MAP_FAILED)
        return false;
    device->head.base = base;
    return true;
}

/*
 * Allocates the slab, and writes its last byte: allocation may be delayed to the first use, and
 * some implementations accept any size and fail then.
 */
static bool make_slab(struct backend_device *device, struct failure *failure)
{
    const unsigned char zero = 0;
    size_t bytes = (size_t)device->config.capacity_bytes;
    cl_int error;
    device->slab = clCreateBuffer(device->context, CL_MEM_READ_WRITE, bytes, NULL, &error);
    return !duet__opencl_failed(failure, "clCreateBuffer", error) &&
           !duet__opencl_failed(failure, "clEnqueueWriteBuffer",
                                clEnqueueWriteBuffer(device->streams[0].queue, device->slab,
                                                     CL_TRUE, bytes - 1, 1, &zero, 0, NULL, NULL));
}

/* Makes the buffers of a stream's copies, mapped until the device is closed. */
static bool make_staging(struct backend_device *device, struct stream *stream,
                         struct failure *failure)
{
    size_t bytes = STAGING_BUFFERS * device->opencl->staging_bytes;
    cl_int error;
    stream->staging = clCreateBuffer(device->context, CL_MEM_ALLOC_HOST_PTR, bytes, NULL, &error);
    if (duet__opencl_failed(failure, "clCreateBuffer", error))
        return false;
    stream->buffers =
        clEnqueueMapBuffer(stream->queue, stream->staging, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                           bytes, 0, NULL, NULL, &error);
    return !duet__opencl_failed(failure, "clEnqueueMapBuffer", error);
}

static bool make_queue(struct backend_device *device, unsigned index, struct failure *failure)
{
    struct stream *stream = &device->streams[index];
    cl_int error;
    stream->kind = index + 2 < device->stream_count   ? BACKEND_KERNEL
                   : index + 1 < device->stream_count ? BACKEND_IN
                                                      : BACKEND_OUT;
    stream->last = &stream->first;
    stream->queue =
        clCreateCommandQueue(device->context, device->id, CL_QUEUE_PROFILING_ENABLE, &error);
    return !duet__opencl_failed(failure, "clCreateCommandQueue", error);
}

/* Runs a marker on the device, to relate its clock to the host's. */
static bool strike_clock(struct backend_device *device, struct failure *failure)
{
    cl_command_queue queue = device->streams[0].queue;
    double launched_s = opencl_now(device->opencl), end_s = 0;
    size_t resolution_ns = 1;
    cl_event event;
    if (duet__opencl_failed(failure, "clEnqueueMarkerWithWaitList",
                            clEnqueueMarkerWithWaitList(queue, 0, NULL, &event)))
        return false;
    bool good = !duet__opencl_failed(failure, "clWaitForEvents", clWaitForEvents(1, &event));
    duet__dates_init(&device->dates, launched_s, opencl_now(device->opencl));
    if (good && duet__opencl_date(device, event, CL_PROFILING_COMMAND_END, &end_s))
        (void)clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof device->origin_ns,
                                      &device->origin_ns, NULL);
    (void)clReleaseEvent(event);
    (void)clGetDeviceInfo(device->id, CL_DEVICE_PROFILING_TIMER_RESOLUTION, sizeof resolution_ns,
                          &resolution_ns, NULL);
    device->unsure_s = 1e-9 * (double)resolution_ns;
    return good;
}

static bool make_device(struct backend_device *device, struct failure *failure)
{
    cl_int error;
    *failure = (struct failure){.call = "clGetDeviceIDs", .error = CL_DEVICE_NOT_FOUND};
    if (!duet__opencl_id(device->config.index, &device->id))
        return false;
    device->context = clCreateContext(NULL, 1, &device->id, NULL, NULL, &error);
    if (duet__opencl_failed(failure, "clCreateContext", error))
        return false;
    for (unsigned i = 0; i < device->stream_count; i++)
        if (!make_queue(device, i, failure))
            return false;
    if (!reserve_addresses(device, failure) || !make_slab(device, failure))
        return false;
    for (unsigned i = 0; i < device->stream_count; i++) {
        struct stream *stream = &device->streams[i];
        stream->view = (struct duet_opencl){.context = device->context,
                                            .device = device->id,
                                            .queue = stream->queue,
                                            .memory = device->slab,
                                            .base = device->head.base};
        if (stream->kind != BACKEND_KERNEL && !make_staging(device, stream, failure))
            return false;
    }
    return strike_clock(device, failure);
}

static int refuse_device(const struct backend_device *device, const struct failure *failure,
                         struct duet_message *message)
{
    char text[FAILURE_TEXT];
    (void)duet__opencl_text(text, failure);
    if (failure->error == CL_DEVICE_NOT_FOUND)
        return duet_fail(message, DUET_EABSENT, "GPU %u: there is none", device->config.index);
    if (duet__opencl_status(failure->error, DUET_EIO) == DUET_EIO)
        return duet_fail(message, DUET_EIO, "GPU %u cannot be used: %s", device->config.index,
                         text);
    return duet_fail(message, DUET_ENOMEM,
                     "GPU %u, of which %.2f GiB are wanted: %s: use less of it "
                     "(--duet-gpu-memory)",
                     device->config.index, (double)device->config.capacity_bytes / (1 << 30), text);
}

int duet__opencl_open(struct backend_device **out, void *shared,
                      const struct backend_config *config, struct duet_message *message)
{
    struct failure failure;
    int error = duet__config_check(config, message);
    if (error)
        return error;
    unsigned streams = (config->kernel_streams ? config->kernel_streams : 1) + 2;
    struct backend_device *device = calloc(1, sizeof *device + streams * sizeof(struct stream));
    if (!device)
        return duet_fail(message, DUET_ENOMEM, "GPU %u: out of memory", config->index);
    device->opencl = shared;
    device->config = *config;
    device->stream_count = streams;
    if (!make_device(device, &failure)) {
        error = refuse_device(device, &failure, message);
        duet__opencl_close(device);
        return error;
    }
    *out = device;
    return DUET_OK;
}

/* ------------------------------------------------------------------------------------------- */
/* Closing                                                                                      */

/* Polls until nothing is in flight, which is at once if the device is lost. */
static void drain_device(struct backend_device *device)
{
    struct backend_completion completions[TEXTS];
    const struct timespec nap = {.tv_nsec = NAP_NS};
    for (unsigned i = 0; i < device->stream_count; i++)
        while (device->streams[i].first)
            if (!duet__opencl_poll(device, completions, TEXTS))
                (void)nanosleep(&nap, NULL);
}

static void free_stream(struct stream *stream)
{
    if (stream->buffers)
        (void)clEnqueueUnmapMemObject(stream->queue, stream->staging, stream->buffers, 0, NULL,
                                      NULL);
    if (stream->queue) {
        (void)clFinish(stream->queue);
        (void)clReleaseCommandQueue(stream->queue);
    }
    if (stream->staging)
        (void)clReleaseMemObject(stream->staging);
}

void duet__opencl_close(struct backend_device *device)
{
    if (!device)
        return;
    drain_device(device);
    for (unsigned i = 0; i < device->stream_count; i++)
        free_stream(&device->streams[i]);
    if (device->slab)
        (void)clReleaseMemObject(device->slab);
    if (device->context)
        (void)clReleaseContext(device->context);
    if (device->head.base)
        (void)munmap(device->head.base, (size_t)device->config.capacity_bytes);
    while (device->spare) {
        struct command *next = device->spare->next;
        free(device->spare);
        device->spare = next;
    }
    free(device);
}
