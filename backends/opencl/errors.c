/* SPDX-License-Identifier: Apache-2.0 */
/* Meaning of errors of OpenCL. */
#include "backends/opencl/errors.h"

#include <stdio.h>

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
