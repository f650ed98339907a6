/* SPDX-License-Identifier: Apache-2.0 */
/* The tests' kernels for OpenCL's devices; see testing_kernels.h. */
#include "backends/opencl/testing_kernels.h"

#include <duet/opencl.h>

#include "backends/opencl/internal.h"

/* Arguments of a native kernel; copied when it is enqueued. */
struct flight {
    testing_opencl_body body;
    const void *args;
    int *status;
    unsigned char *memory; /* set by OpenCL */
    size_t offset, count;
};

static void CL_CALLBACK run(void *argument)
{
    const struct flight *flight = argument;
    unsigned char *bytes = flight->memory ? flight->memory + flight->offset : NULL;
    *flight->status = flight->body(flight->args, bytes, flight->count);
}

static int check(const struct duet_call *call, const char *name, cl_int error)
{
    return error ? duet_fail(call->message, DUET_ETASK, "%s: %d", name, (int)error) : DUET_OK;
}

int testing_opencl_call(const struct duet_call *call, testing_opencl_body body)
{
    const struct duet_opencl *opencl = call->stream;
    cl_mem memory = opencl->memory;
    struct flight flight = {.body = body, .args = call->args, .status = call->status};
    const void *place = &flight.memory;
    cl_uint buffers = call->buffer_count ? 1 : 0;
    if (buffers) {
        const struct duet_buffer *buffer = &call->buffers[0];
        flight.offset = duet_opencl_offset(opencl, buffer);
        flight.count = buffer->rows * buffer->cols * buffer->element_bytes;
    }
    return check(call, "clEnqueueNativeKernel",
                 clEnqueueNativeKernel(opencl->queue, run, &flight, sizeof flight, buffers,
                                       buffers ? &memory : NULL, buffers ? &place : NULL, 0, NULL,
                                       NULL));
}

unsigned testing_opencl_devices(void)
{
    cl_device_exec_capabilities able = 0;
    cl_device_id id;
    bool known = duet__opencl_id(0, &id) && clGetDeviceInfo(id, CL_DEVICE_EXECUTION_CAPABILITIES,
                                                            sizeof able, &able, NULL) == CL_SUCCESS;
    return known && (able & CL_EXEC_NATIVE_KERNEL) ? duet__opencl_count(NULL) : 0;
}
