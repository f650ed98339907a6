/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs and their properties. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda/internal.h"

/* ------------------------------------------------------------------------------------------- */
/* Number of GPUs */

static void version(char text[16], int number)
{
    (void)snprintf(text, 16, "%d.%d", number / 1000, number % 1000 / 10);
}

/* Writes why there is no GPU, for people. */
static void explain_absence(struct duet_message *why, const struct failure *failure)
{
    char text[FAILURE_TEXT], driver[16], runtime[16];
    int driver_number = 0, runtime_number = 0;
    duet__cuda_ignore(cudaDriverGetVersion(&driver_number));
    duet__cuda_ignore(cudaRuntimeGetVersion(&runtime_number));
    version(driver, driver_number);
    version(runtime, runtime_number);
    if (failure->error == cudaErrorStubLibrary)
        (void)duet_fail(why, DUET_EABSENT,
                        "the CUDA driver that was found is a stub to link with (libcuda.so in a "
                        "folder \"stubs\"): take that folder out of LD_LIBRARY_PATH");
    else if (!driver_number)
        (void)duet_fail(why, DUET_EABSENT,
                        "no NVIDIA driver is installed or loaded (is there an NVIDIA GPU? does "
                        "nvidia-smi work?)");
    else if (failure->error == cudaErrorInsufficientDriver)
        (void)duet_fail(why, DUET_EABSENT,
                        "the NVIDIA driver is too old: it knows CUDA up to %s, this duet is built "
                        "with %s; update the driver, or build with an older toolkit",
                        driver, runtime);
    else if (failure->error == cudaErrorNoDevice)
        (void)duet_fail(why, DUET_EABSENT,
                        "the NVIDIA driver (CUDA %s) shows no GPU: is CUDA_VISIBLE_DEVICES set to "
                        "none, or to one that does not exist?",
                        driver);
    else if (failure->error == cudaErrorSystemNotReady)
        (void)duet_fail(why, DUET_EABSENT,
                        "the NVIDIA driver (CUDA %s) is not ready: machines with NVSwitch need the "
                        "service nvidia-fabricmanager, of the driver's version, to run",
                        driver);
    else
        (void)duet_fail(why, DUET_EABSENT, "%s (driver: CUDA %s, runtime: %s)",
                        duet__cuda_text(text, failure), driver, runtime);
}

unsigned duet__cuda_count(struct duet_message *why)
{
    struct failure failure;
    int count = 0;
    if (!duet__cuda_failed(&failure, "cudaGetDeviceCount", cudaGetDeviceCount(&count))) {
        if (count > 0)
            return (unsigned)count;
        failure = (struct failure){.call = "cudaGetDeviceCount", .error = cudaErrorNoDevice};
    }
    explain_absence(why, &failure);
    return 0;
}

/* False where there is no driver, and where GPUs are hidden on purpose. */
bool duet__cuda_impaired(void)
{
    int count = 0, driver = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    duet__cuda_ignore(error);
    duet__cuda_ignore(cudaDriverGetVersion(&driver));
    return driver && error != cudaSuccess && error != cudaErrorNoDevice;
}

/* ------------------------------------------------------------------------------------------- */
/* Properties */

/*
 * Returns the assumed bandwidth of a link to the host in one direction, in B/s: PCI Express of the
 * generation that GPUs of this compute capability have. A calibration measures it.
 */
static double assumed_bandwidth(int major)
{
    if (major >= 9)
        return 48e9;                 /* 5.0 x16 */
    return major >= 8 ? 24e9 : 12e9; /* 4.0, 3.0 */
}

static const double assumed_latency_s = 8e-6;

/*
 * Returns the memory to leave beside the slab: cuBLAS and cuSOLVER with their code (about 512 MiB),
 * their workspaces (32 MiB a handle of cuBLAS on Hopper), streams, events, stacks of kernels.
 */
static uint64_t reserve_of(uint64_t free_bytes)
{
    const uint64_t most = UINT64_C(1) << 30;
    return free_bytes / 8 < most ? free_bytes / 8 : most;
}

/* Returns ten times the least compute capability for which the toolkit and its libraries have
   code. */
static int least_compute(void)
{
    const int runtime = CUDART_VERSION;
    return runtime >= 13000 ? 75 : 50;
}

static void describe_in_words(struct backend_info *info, const struct cudaDeviceProp *properties)
{
    char driver[16], runtime[16];
    int driver_number = 0, runtime_number = 0;
    duet__cuda_ignore(cudaDriverGetVersion(&driver_number));
    duet__cuda_ignore(cudaRuntimeGetVersion(&runtime_number));
    version(driver, driver_number);
    version(runtime, runtime_number);
    int length = snprintf(info->description, sizeof info->description,
                          "%.40s, compute %d.%d, %.1f GiB, %d multiprocessors, driver CUDA %s, "
                          "runtime %s",
                          properties->name, properties->major, properties->minor,
                          (double)info->total_bytes / (1 << 30), properties->multiProcessorCount,
                          driver, runtime);
    if (length < 0) /* the text may be truncated, which happens with no existing GPU */
        *info->description = '\0';
}

/* True if this build has no code for the GPU; *old then says so. */
static bool is_old(const struct cudaDeviceProp *properties, struct duet_message *old)
{
    char runtime[16];
    int least = least_compute();
    if (10 * properties->major + properties->minor >= least)
        return false;
    version(runtime, CUDART_VERSION);
    (void)duet_fail(old, DUET_EABSENT,
                    "compute capability %d.%d: this duet was built with CUDA %s, which supports "
                    "%d.%d and later",
                    properties->major, properties->minor, runtime, least / 10, least % 10);
    return true;
}

static bool look_at_device(int index, struct backend_info *info, struct failure *failure,
                           struct duet_message *old)
{
    struct cudaDeviceProp properties;
    size_t free_bytes = 0, total_bytes = 0;
    if (duet__cuda_failed(failure, "cudaGetDeviceProperties",
                          cudaGetDeviceProperties(&properties, index)))
        return false;
    if (is_old(&properties, old))
        return true; /* this question makes no context on the device */
    if (duet__cuda_failed(failure, "cudaSetDevice", cudaSetDevice(index)) ||
        duet__cuda_failed(failure, "cudaMemGetInfo", cudaMemGetInfo(&free_bytes, &total_bytes)))
        return false;
    properties.name[sizeof properties.name - 1] = '\0';
    *info = (struct backend_info){.memory_bytes = free_bytes - reserve_of(free_bytes),
                                  .total_bytes = total_bytes,
                                  .bandwidth_Bps = assumed_bandwidth(properties.major),
                                  .latency_s = assumed_latency_s};
    duet__arch_name(info->arch, properties.name);
    describe_in_words(info, &properties);
    cudaError_t error = cudaDeviceGetPCIBusId(info->pci, sizeof info->pci, index);
    if (error != cudaSuccess)
        *info->pci = '\0'; /* unknown: only its place in the topology is lost */
    duet__cuda_ignore(error);
    info->pci[sizeof info->pci - 1] = '\0';
    for (char *c = info->pci; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return true;
}

/* ------------------------------------------------------------------------------------------- */

struct description {
    int index;
    struct backend_info *info;
    struct failure failure;
    struct duet_message old; /* reason why there is no code for it, or "" */
    bool good;
};

static void *look_aside(void *argument)
{
    struct description *description = argument;
    description->good = look_at_device(description->index, description->info, &description->failure,
                                       &description->old);
    return NULL;
}

/*
 * Makes the device's context, as free memory is known of the current device only. Runs on a thread
 * of its own, so that the application's thread keeps its current device.
 */
int duet__cuda_describe(unsigned index, struct backend_info *info, struct duet_message *message)
{
    char text[FAILURE_TEXT];
    pthread_t thread;
    if (index > INT16_MAX)
        return duet_fail(message, DUET_EINVAL, "GPU %u: there is none", index);
    struct description description = {.index = (int)index, .info = info};
    if (pthread_create(&thread, NULL, look_aside, &description))
        return duet_fail(message, DUET_ENOMEM, "GPU %u: the system refuses a thread", index);
    (void)pthread_join(thread, NULL);
    if (*description.old.text)
        return duet_fail(message, DUET_EABSENT, "GPU %u: %s", index, description.old.text);
    if (description.good)
        return DUET_OK;
    int error = description.failure.error == cudaErrorInvalidDevice ? DUET_EINVAL : DUET_EIO;
    return duet_fail(message, duet__cuda_status(description.failure.error, error), "GPU %u: %s",
                     index, duet__cuda_text(text, &description.failure));
}
