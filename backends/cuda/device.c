/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing a device: its slab, its streams, and its ways to the other devices. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "backends/cuda/internal.h"

/* ------------------------------------------------------------------------------------------- */
/* Errors of the CUDA runtime                                                                   */

/*
 * Errors that the oldest supported toolkits (CUDA 12.0) do not know yet. The numbers are part of
 * the driver's interface and stay.
 */
enum {
    ERROR_CONTAINED = 226,             /* cudaErrorContained */
    ERROR_TENSOR_MEMORY_LEAK = 721,    /* cudaErrorTensorMemoryLeak */
    ERROR_MPS_CLIENT_TERMINATED = 810, /* cudaErrorMpsClientTerminated */
    ERROR_EXTERNAL_DEVICE = 911,       /* cudaErrorExternalDevice */
};

bool duet__cuda_failed(struct failure *failure, const char *call, cudaError_t error)
{
    if (error == cudaSuccess)
        return false;
    (void)cudaGetLastError();
    *failure = (struct failure){.call = call, .error = error};
    return true;
}

void duet__cuda_ignore(cudaError_t error)
{
    if (error != cudaSuccess)
        (void)cudaGetLastError();
}

/*
 * Classifies an error. For the first two groups the runtime's reference says that the process "must
 * be terminated and relaunched": in fact the context is lost, and with it the device for this
 * process.
 */
enum fate duet__cuda_fate(cudaError_t error)
{
    switch ((int)error) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case ERROR_TENSOR_MEMORY_LEAK:
        return FATE_KERNEL;
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case ERROR_CONTAINED:
    case ERROR_EXTERNAL_DEVICE:
    case cudaErrorDevicesUnavailable:
    case cudaErrorDeviceUninitialized:
    case cudaErrorContextIsDestroyed:
    case cudaErrorCudartUnloading:
    case cudaErrorMpsRpcFailure:
    case ERROR_MPS_CLIENT_TERMINATED:
    case cudaErrorUnknown:
        return FATE_GONE;
    default:
        return FATE_REFUSED;
    }
}

int duet__cuda_status(cudaError_t error, int otherwise)
{
    return error == cudaErrorMemoryAllocation ? DUET_ENOMEM : otherwise;
}

const char *duet__cuda_text(char text[FAILURE_TEXT], const struct failure *failure)
{
    const char *what = cudaGetErrorString(failure->error);
    const char *name = cudaGetErrorName(failure->error);
    if (duet__cuda_fate(failure->error) != FATE_REFUSED)
        (void)snprintf(text, FAILURE_TEXT, "%s (%s), seen by %s", what, name, failure->call);
    else
        (void)snprintf(text, FAILURE_TEXT, "%s: %s (%s)", failure->call, what, name);
    return text;
}

/* ------------------------------------------------------------------------------------------- */
/* Devices                                                                                      */

enum { MASK = 64 }; /* number of devices for which struct cuda's mask has bits */

static double gib(uint64_t bytes)
{
    return (double)bytes / (1 << 30);
}

/* ------------------------------------------------------------------------------------------- */
/* Other devices                                                                                */

/* Gives the current device `from` access to the memory of `to`; without it CUDA copies through the
   host. */
static void enable_peer(const struct cuda *cuda, unsigned from, unsigned to)
{
    struct failure failure;
    char text[FAILURE_TEXT], line[2 * FAILURE_TEXT];
    int can = 0;
    if (duet__cuda_failed(&failure, "cudaDeviceCanAccessPeer",
                          cudaDeviceCanAccessPeer(&can, (int)from, (int)to)))
        can = 0;
    else if (!can)
        return;
    if (can && (!duet__cuda_failed(&failure, "cudaDeviceEnablePeerAccess",
                                   cudaDeviceEnablePeerAccess((int)to, 0)) ||
                failure.error == cudaErrorPeerAccessAlreadyEnabled))
        return;
    if (!cuda->setup.say)
        return;
    (void)snprintf(line, sizeof line,
                   "cuda: copies between GPU %u and GPU %u go through the host's memory: %s", from,
                   to, duet__cuda_text(text, &failure));
    cuda->setup.say(cuda->setup.clock, line);
}

/* Returns a device's bit in struct cuda's mask. */
static uint64_t bit_of(unsigned index)
{
    return index < MASK ? UINT64_C(1) << index : 0;
}

/* Enters a device, which is current, and connects it with all open ones, both ways. */
static bool device_enlist(struct backend_device *device, struct failure *failure)
{
    struct cuda *cuda = device->cuda;
    bool good = true;
    (void)pthread_mutex_lock(&cuda->mutex);
    for (const struct backend_device *other = cuda->devices; good && other; other = other->next) {
        if (other->config.index == device->config.index)
            continue;
        enable_peer(cuda, device->config.index, other->config.index);
        good =
            !duet__cuda_failed(failure, "cudaSetDevice", cudaSetDevice((int)other->config.index));
        if (good)
            enable_peer(cuda, other->config.index, device->config.index);
        good = !duet__cuda_failed(failure, "cudaSetDevice",
                                  cudaSetDevice((int)device->config.index)) &&
               good;
    }
    device->next = cuda->devices;
    cuda->devices = device;
    device->listed = true;
    cuda->well |= bit_of(device->config.index);
    (void)pthread_mutex_unlock(&cuda->mutex);
    return good;
}

static void device_delist(struct backend_device *device)
{
    struct cuda *cuda = device->cuda;
    if (!device->listed)
        return;
    (void)pthread_mutex_lock(&cuda->mutex);
    struct backend_device **link = &cuda->devices;
    while (*link != device)
        link = &(*link)->next;
    *link = device->next;
    if (backend_lost(device))
        cuda->well &= ~bit_of(device->config.index);
    (void)pthread_mutex_unlock(&cuda->mutex);
}

/* set for the process, which owns the GPUs' contexts */
static _Atomic(bool) hung;

bool duet__cuda_hung(void)
{
    return atomic_load_explicit(&hung, memory_order_acquire);
}

void duet__cuda_hang(void)
{
    atomic_store_explicit(&hung, true, memory_order_release);
}

int duet__cuda_well(struct cuda *cuda, int current, int broken)
{
    int found = -1;
    (void)pthread_mutex_lock(&cuda->mutex);
    if (duet__cuda_hung())
        found = REGISTER_NEVER;
    for (const struct backend_device *device = cuda->devices; device; device = device->next)
        if (backend_lost(device))
            cuda->well &= ~bit_of(device->config.index);
    if (broken >= 0)
        cuda->well &= ~bit_of((unsigned)broken);
    for (int i = 0; i < MASK && found != current && found != REGISTER_NEVER; i++)
        if (cuda->well >> i & 1)
            found = i;
    (void)pthread_mutex_unlock(&cuda->mutex);
    return found;
}

/* ------------------------------------------------------------------------------------------- */
/* Opening                                                                                      */

static bool make_streams(struct backend_device *device, struct failure *failure)
{
    for (unsigned i = 0; i < device->stream_count; i++) {
        struct stream *stream = &device->streams[i];
        stream->commands.slot_bytes = sizeof(struct command);
        stream->kind = BACKEND_KERNEL;
        if (stream == cuda_in(device))
            stream->kind = BACKEND_IN;
        else if (stream == cuda_out(device))
            stream->kind = BACKEND_OUT;
        /* the stream does not wait for the application's work on CUDA's default stream */
        if (duet__cuda_failed(failure, "cudaStreamCreateWithFlags",
                              cudaStreamCreateWithFlags(&stream->handle, cudaStreamNonBlocking)))
            return false;
    }
    return true;
}

/* Makes the staging buffers of a direction. Without memory for them, copies are made without. */
static bool make_staging(struct backend_device *device, struct stream *stream,
                         struct failure *failure)
{
    const struct backend_setup *setup = &device->cuda->setup;
    char text[FAILURE_TEXT], line[2 * FAILURE_TEXT];
    if (duet__staging_open(&stream->staging, device->cuda->staging_bytes, failure))
        return true;
    if (duet__cuda_broken(device, failure))
        return false;
    if (setup->say) {
        (void)snprintf(line, sizeof line,
                       "cuda: no buffers for what is not page-locked: %s; such copies are slow",
                       duet__cuda_text(text, failure));
        setup->say(setup->clock, line);
    }
    return true;
}

/* Makes a device current on this thread, and gets its properties. */
static bool look_at(struct backend_device *device, struct failure *failure)
{
    int index = (int)device->config.index, pitch = 0;
    struct cudaDeviceProp properties;
    if (duet__cuda_failed(failure, "cudaSetDevice", cudaSetDevice(index)) ||
        duet__cuda_failed(failure, "cudaGetDeviceProperties",
                          cudaGetDeviceProperties(&properties, index)) ||
        duet__cuda_failed(failure, "cudaDeviceGetAttribute",
                          cudaDeviceGetAttribute(&pitch, cudaDevAttrMaxPitch, index)))
        return false;
    properties.name[sizeof properties.name - 1] = '\0';
    (void)snprintf(device->label, sizeof device->label, "GPU %d (%.*s)", index, LABEL - 24,
                   properties.name);
    device->max_pitch = pitch > 0 ? (size_t)pitch : 0;
    return true;
}

static bool make_device(struct backend_device *device, struct failure *failure)
{
    void *slab = NULL;
    if (!look_at(device, failure) ||
        duet__cuda_failed(failure, "cudaMalloc",
                          cudaMalloc(&slab, (size_t)device->config.capacity_bytes)))
        return false;
    device->head.base = slab;
    return make_streams(device, failure) && make_staging(device, cuda_in(device), failure) &&
           make_staging(device, cuda_out(device), failure) &&
           duet__timings_init(&device->timings, cuda_in(device)->handle, device->config.kernels,
                              failure) &&
           device_enlist(device, failure);
}

static int refuse_device(const struct backend_device *device, const struct failure *failure,
                         struct duet_message *message)
{
    char text[FAILURE_TEXT];
    size_t free_bytes, total_bytes;
    double wanted_gib = gib(device->config.capacity_bytes);
    (void)duet__cuda_text(text, failure);
    if (failure->error == cudaErrorInvalidDevice)
        return duet_fail(message, DUET_EABSENT, "%s: %s", device->label, text);
    if (failure->error != cudaErrorMemoryAllocation)
        return duet_fail(message, DUET_EIO, "%s cannot be used: %s", device->label, text);
    cudaError_t error = cudaMemGetInfo(&free_bytes, &total_bytes);
    if (error != cudaSuccess) {
        duet__cuda_ignore(error);
        return duet_fail(message, DUET_ENOMEM, "%s, of which %.2f GiB are wanted: %s",
                         device->label, wanted_gib, text);
    }
    return duet_fail(message, DUET_ENOMEM,
                     "%s, of which %.2f GiB are wanted while %.2f of %.2f GiB are free: %s: use "
                     "less of it (--duet-gpu-memory)",
                     device->label, wanted_gib, gib(free_bytes), gib(total_bytes), text);
}

static int check_config(const struct backend_config *config, struct duet_message *message)
{
    if (config->index > INT16_MAX)
        return duet_fail(message, DUET_EABSENT, "GPU %u: there is none", config->index);
    return duet__config_check(config, message);
}

int duet__cuda_open(struct backend_device **out, void *shared, const struct backend_config *config,
                    struct duet_message *message)
{
    struct cuda *cuda = shared;
    struct failure failure;
    int error = check_config(config, message);
    if (!error && duet__cuda_hung())
        error = duet_fail(message, DUET_EIO,
                          "GPU %u cannot be used: this process has given up a GPU, whose work has "
                          "not ended and may block any other: start the program again",
                          config->index);
    if (error)
        return error;
    unsigned streams = (config->kernel_streams ? config->kernel_streams : 1) + 2;
    struct backend_device *device = calloc(1, sizeof *device + streams * sizeof(struct stream));
    if (!device)
        return duet_fail(message, DUET_ENOMEM, "GPU %u: out of memory", config->index);
    device->cuda = cuda;
    device->config = *config;
    device->stream_count = streams;
    device->timings.device = (int)config->index;
    device->timings.untimed = config->untimed;
    device->timings.now = cuda->setup.now;
    device->timings.clock = cuda->setup.clock;
    (void)snprintf(device->label, sizeof device->label, "GPU %u", config->index);
    if (!make_device(device, &failure)) {
        error = refuse_device(device, &failure, message);
        duet__cuda_close(device);
        return error;
    }
    *out = device;
    return DUET_OK;
}

/* ------------------------------------------------------------------------------------------- */
/* Closing                                                                                      */

static bool is_busy(const struct backend_device *device)
{
    for (unsigned i = 0; i < device->stream_count; i++)
        if (device->streams[i].commands.count)
            return true;
    return false;
}

/* Polls until nothing is in flight. A device that ends nothing for patience_s is given up. */
static void drain_device(struct backend_device *device)
{
    struct backend_completion completions[TEXTS];
    const struct timespec nap = {.tv_nsec = CUDA_NAP_NS};
    double patience_s = device->cuda->setup.patience_s, since_s = cuda_now(device->cuda);
    while (is_busy(device)) {
        double now_s = cuda_now(device->cuda);
        if (duet__cuda_poll(device, completions, TEXTS))
            since_s = now_s;
        else if (patience_s > 0 && now_s - since_s > patience_s)
            duet__cuda_abandon(device);
        else
            (void)nanosleep(&nap, NULL);
    }
}

/* Frees all resources of CUDA, which may wait for running commands. */
static void free_all(struct backend_device *device)
{
    for (unsigned i = 0; i < device->stream_count; i++)
        if (device->streams[i].handle)
            duet__cuda_ignore(cudaStreamDestroy(device->streams[i].handle));
    if (!duet__cuda_hung()) { /* these have page-locked memory */
        for (unsigned i = 0; i < device->stream_count; i++)
            duet__staging_close(&device->streams[i].staging);
        duet__timings_fini(&device->timings);
    }
    if (device->head.base)
        duet__cuda_ignore(cudaFree(device->head.base));
}

void duet__cuda_close(struct backend_device *device)
{
    if (!device)
        return;
    duet__cuda_ignore(cudaSetDevice((int)device->config.index));
    drain_device(device);
    device_delist(device);
    if (!device->abandoned)
        free_all(device);
    duet__captures_free(device, true);
    for (unsigned i = 0; i < device->stream_count; i++)
        duet__ring_fini(&device->streams[i].commands);
    free(device);
}
