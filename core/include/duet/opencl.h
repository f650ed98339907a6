/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels for OpenCL devices: the queue that they enqueue on, and where their buffers lie. Needs no
 * header of OpenCL; its objects are void * here, as they are pointers there.
 */
#ifndef DUET_OPENCL_H
#define DUET_OPENCL_H

#include <stddef.h>

#include <duet/duet.h>

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* C has no other */
#endif

/*
 * Target of `stream` of struct duet_call when the worker's backend is "opencl". All of it is
 * borrowed, and the same in every call on this device with this queue, until the runtime is closed.
 */
struct duet_opencl {
    void *context; /* cl_context, of this device alone */
    void *device;  /* cl_device_id */
    void *queue;   /* cl_command_queue, in order: a kernel enqueues here, and does not wait */
    void *memory;  /* cl_mem: all data of this device */
    /*
     * Start of the address range in which `data` of the buffers lies. The range is reserved and
     * holds no memory: the host faults if it reads or writes there.
     */
    const void *base;
};

/*
 * Returns where a buffer of a call begins in `memory`, in bytes: a multiple of 256. Its columns are
 * ld elements apart. For a kernel that takes no offset, clCreateSubBuffer makes an object of it,
 * which may be released once the kernel is enqueued; the device's CL_DEVICE_MEM_BASE_ADDR_ALIGN
 * must be 2048 bits or less then.
 */
static inline size_t duet_opencl_offset(const struct duet_opencl *opencl,
                                        const struct duet_buffer *buffer)
{
    return (size_t)((const char *)buffer->data - (const char *)opencl->base);
}

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif
#endif
