/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: their properties, and their access to each other. */
#include <stdio.h>
#include <string.h>

#include "tests/fake_cuda/internal.h"

enum { VERSION = CUDART_VERSION, MULTIPROCESSORS = 4, MAX_PITCH = 0x7fffffff };

/* Returns ten times the compute capability. */
static int compute_of(int device)
{
    unsigned set = fake_state()->config.compute;
    return device || !set ? 90 : (int)set;
}

static bool known(int device)
{
    return device >= 0 && (unsigned)device < fake_state()->config.devices;
}

static cudaError_t both_known(int a, int b)
{
    return known(a) && known(b) ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    cudaError_t error = fake_enter(FAKE_cudaGetDeviceCount, false);
    *count = error ? 0 : (int)fake_state()->config.devices;
    if (!error && !*count)
        error = cudaErrorNoDevice;
    return fake_leave(error);
}

cudaError_t cudaDriverGetVersion(int *version)
{
    cudaError_t error = fake_enter(FAKE_cudaDriverGetVersion, false);
    *version = error == cudaErrorInsufficientDriver ? 0 : VERSION;
    return fake_leave(error == cudaErrorInsufficientDriver ? cudaSuccess : error);
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    cudaError_t error = fake_enter(FAKE_cudaRuntimeGetVersion, false);
    *version = VERSION;
    return fake_leave(error == cudaErrorInsufficientDriver ? cudaSuccess : error);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    cudaError_t error = fake_enter(FAKE_cudaGetDeviceProperties, false);
    if (!error && !known(device))
        error = cudaErrorInvalidDevice;
    if (error)
        return fake_leave(error);
    memset(properties, 0, sizeof *properties);
    (void)snprintf(properties->name, sizeof properties->name, "Fake GPU %d", device);
    properties->totalGlobalMem = fake_state()->config.memory_bytes;
    properties->major = compute_of(device) / 10;
    properties->minor = compute_of(device) % 10;
    properties->multiProcessorCount = MULTIPROCESSORS;
    properties->concurrentKernels = 1;
    properties->asyncEngineCount = 2;
    properties->unifiedAddressing = 1;
    properties->memPitch = MAX_PITCH;
    properties->pciBusID = device + 1;
    return fake_leave(cudaSuccess);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    cudaError_t error = fake_enter(FAKE_cudaDeviceGetAttribute, false);
    if (!error && !known(device))
        error = cudaErrorInvalidDevice;
    if (!error && attribute != cudaDevAttrMultiProcessorCount && attribute != cudaDevAttrMaxPitch)
        error = cudaErrorInvalidValue;
    if (!error)
        *value = attribute == cudaDevAttrMaxPitch ? MAX_PITCH : MULTIPROCESSORS;
    return fake_leave(error);
}

/* Returns bus `device` + 1 of a domain that machines do not have, so that nothing real is found. */
cudaError_t cudaDeviceGetPCIBusId(char *id, int bytes, int device)
{
    cudaError_t error = fake_enter(FAKE_cudaDeviceGetPCIBusId, false);
    if (!error && !known(device))
        error = cudaErrorInvalidDevice;
    if (!error && bytes < (int)sizeof "0000:00:00.0")
        error = cudaErrorInvalidValue;
    if (!error)
        (void)snprintf(id, (size_t)bytes, "FA0E:%02X:00.0", (unsigned)device + 1);
    return fake_leave(error);
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
    cudaError_t error = fake_enter(FAKE_cudaMemGetInfo, true);
    if (!error) {
        const struct fake *fake = fake_state();
        *total = fake->config.memory_bytes;
        *free = *total - fake->devices[fake_device()].used;
    }
    return fake_leave(error);
}

/* ------------------------------------------------------------------------------------------- */
/* Peers                                                                                        */

static bool reaches(int device, int peer)
{
    return device != peer && !fake_state()->config.no_peers;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    cudaError_t error = fake_enter(FAKE_cudaDeviceCanAccessPeer, false);
    if (!error)
        error = both_known(device, peer);
    if (!error)
        *can = reaches(device, peer);
    return fake_leave(error);
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    cudaError_t error = fake_enter(FAKE_cudaDeviceEnablePeerAccess, true);
    if (!error && (!known(peer) || (unsigned)peer == fake_device()))
        error = cudaErrorInvalidDevice;
    if (!error && flags)
        error = cudaErrorInvalidValue;
    if (!error && !reaches((int)fake_device(), peer))
        error = cudaErrorPeerAccessUnsupported;
    if (error)
        return fake_leave(error);
    bool *enabled = &fake_state()->devices[fake_device()].peer[peer];
    if (*enabled)
        error = cudaErrorPeerAccessAlreadyEnabled;
    *enabled = true;
    return fake_leave(error);
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
    cudaError_t error = fake_enter(FAKE_cudaDeviceDisablePeerAccess, true);
    if (!error && !known(peer))
        error = cudaErrorInvalidDevice;
    if (error)
        return fake_leave(error);
    bool *enabled = &fake_state()->devices[fake_device()].peer[peer];
    if (!*enabled)
        error = cudaErrorPeerAccessNotEnabled;
    *enabled = false;
    return fake_leave(error);
}

/* ------------------------------------------------------------------------------------------- */
/* Names                                                                                        */

/* X(error, text): the errors that calls here give, or that tests let them give. */
#define ERRORS(X)                                                                                  \
    X(cudaSuccess, "no error")                                                                     \
    X(cudaErrorInvalidValue, "invalid argument")                                                   \
    X(cudaErrorMemoryAllocation, "out of memory")                                                  \
    X(cudaErrorInitializationError, "initialization error")                                        \
    X(cudaErrorInvalidPitchValue, "invalid pitch argument")                                        \
    X(cudaErrorInvalidDevicePointer, "invalid device pointer")                                     \
    X(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy")                        \
    X(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version") \
    X(cudaErrorDevicesUnavailable, "CUDA-capable device(s) is/are busy or unavailable")            \
    X(cudaErrorNoDevice, "no CUDA-capable device is detected")                                     \
    X(cudaErrorInvalidDevice, "invalid device ordinal")                                            \
    X(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered")                            \
    X(cudaErrorPeerAccessUnsupported, "peer access is not supported between these two devices")    \
    X(cudaErrorNvlinkUncorrectable, "uncorrectable NVLink error detected during the execution")    \
    X(cudaErrorOperatingSystem, "OS call failed or operation not supported on this OS")            \
    X(cudaErrorInvalidResourceHandle, "invalid resource handle")                                   \
    X(cudaErrorNotReady, "device not ready")                                                       \
    X(cudaErrorIllegalAddress, "an illegal memory access was encountered")                         \
    X(cudaErrorLaunchOutOfResources, "too many resources requested for launch")                    \
    X(cudaErrorLaunchTimeout, "the launch timed out and was terminated")                           \
    X(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled")                         \
    X(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled")                           \
    X(cudaErrorAssert, "device-side assert triggered")                                             \
    X(cudaErrorHostMemoryAlreadyRegistered,                                                        \
      "part or all of the requested memory range is already mapped")                               \
    X(cudaErrorHostMemoryNotRegistered,                                                            \
      "pointer does not correspond to a registered memory region")                                 \
    X(cudaErrorHardwareStackError, "hardware stack error")                                         \
    X(cudaErrorIllegalInstruction, "an illegal instruction was encountered")                       \
    X(cudaErrorMisalignedAddress, "misaligned address")                                            \
    X(cudaErrorInvalidAddressSpace, "operation not supported on global/shared address space")      \
    X(cudaErrorInvalidPc, "invalid program counter")                                               \
    X(cudaErrorLaunchFailure, "unspecified launch failure")                                        \
    X(cudaErrorNotPermitted, "operation not permitted")                                            \
    X(cudaErrorNotSupported, "operation not supported")                                            \
    X(cudaErrorUnknown, "unknown error")

const char *cudaGetErrorName(cudaError_t error)
{
    switch ((int)error) {
#define X(name, text)                                                                              \
    case name:                                                                                     \
        return #name;
        ERRORS(X)
#undef X
    default:
        return "unrecognized error code";
    }
}

const char *cudaGetErrorString(cudaError_t error)
{
    switch ((int)error) {
#define X(name, text)                                                                              \
    case name:                                                                                     \
        return text;
        ERRORS(X)
#undef X
    default:
        return "unrecognized error code";
    }
}
