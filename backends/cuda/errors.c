/* SPDX-License-Identifier: Apache-2.0 */
/* Meaning of errors of the CUDA runtime. */
#include "backends/cuda/internal.h"

#include <stdio.h>

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
