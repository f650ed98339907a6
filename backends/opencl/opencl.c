/* SPDX-License-Identifier: Apache-2.0 */
/* Devices of OpenCL 1.2: the table of the backend. */
#include <stdlib.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "backends/opencl/internal.h"

static int opencl_attach(void **shared, const struct backend_setup *setup,
                         struct duet_message *message)
{
    if (!setup->now || setup->scale > 0)
        return duet_fail(message, DUET_EINVAL,
                         "GPUs need a clock, and have a pace of their own: no scale");
    struct opencl *opencl = calloc(1, sizeof *opencl);
    if (!opencl)
        return duet_fail(message, DUET_ENOMEM, "GPUs: out of memory");
    opencl->setup = *setup;
    opencl->staging_bytes = STAGING_BYTES;
    *shared = opencl;
    return DUET_OK;
}

static void opencl_detach(void *shared)
{
    free(shared);
}

/*
 * No direct copies: a context for each device has none, and a context for several lets the
 * implementation move a whole slab from one to the other. All copies go through the host's memory.
 */
static int opencl_links(unsigned count, struct backend_link *links, struct duet_message *message)
{
    return DUET_OK;
}

/* ------------------------------------------------------------------------------------------- */
/*
 * OpenCL's devices and their properties: the GPUs and accelerators of all platforms or, if there
 * are none, CPUs, for which pocl makes devices: a user who asks for OpenCL then wants these.
 */

enum { PLATFORMS = 16, DEVICES = 64, NAME = 64 };

/* The devices, or the reason why there are none, for the whole process. */
static struct {
    cl_device_id ids[DEVICES];
    unsigned count;
    struct failure failure;
} found;

/* Lists all devices of this type, at most DEVICES of them. Returns their number. */
static unsigned list(cl_device_type type, cl_device_id ids[DEVICES], struct failure *failure)
{
    cl_platform_id platforms[PLATFORMS];
    cl_uint platform_count = 0, count = 0;
    if (duet__opencl_failed(failure, "clGetPlatformIDs",
                            clGetPlatformIDs(PLATFORMS, platforms, &platform_count)))
        return 0;
    *failure = (struct failure){.call = "clGetDeviceIDs", .error = CL_DEVICE_NOT_FOUND};
    for (cl_uint p = 0; p < platform_count && p < PLATFORMS; p++) {
        cl_uint some = 0, room = DEVICES - count;
        if (room && clGetDeviceIDs(platforms[p], type, room, ids + count, &some) == CL_SUCCESS)
            count += some < room ? some : room;
    }
    return count;
}

static void find_devices(void)
{
    found.count = list(CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR, found.ids, &found.failure);
    if (!found.count)
        found.count = list(CL_DEVICE_TYPE_CPU, found.ids, &found.failure);
}

/*
 * Finds the devices once, on one thread: pocl 3.1 has no devices for a thread that asks during its
 * start.
 */
static unsigned look_once(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, find_devices);
    return found.count;
}

unsigned duet__opencl_count(struct duet_message *why)
{
    char text[FAILURE_TEXT];
    unsigned count = look_once();
    if (!count)
        (void)duet_fail(why, DUET_EABSENT,
                        "OpenCL has no devices (%s): is the GPU vendor's implementation (ICD) "
                        "installed, or pocl-opencl-icd for CPUs?",
                        duet__opencl_text(text, &found.failure));
    return count;
}

bool duet__opencl_id(unsigned index, cl_device_id *id)
{
    if (index >= look_once())
        return false;
    *id = found.ids[index];
    return true;
}

/* Gives a text of a device; "" if it does not say. */
static void ask_text(cl_device_id id, cl_device_info what, char text[NAME])
{
    char all[4 * NAME];
    size_t bytes = 0;
    if (clGetDeviceInfo(id, what, sizeof all, all, &bytes) != CL_SUCCESS || !bytes)
        bytes = 1;
    all[bytes - 1] = '\0';
    (void)snprintf(text, NAME, "%.*s", NAME - 1, all);
}

/* Returns a number of a device, which OpenCL has with 8 or 4 bytes. */
static cl_ulong ask_number(cl_device_id id, cl_device_info what, struct failure *failure)
{
    union {
        cl_ulong wide;
        cl_uint narrow;
    } value = {0};
    size_t bytes = 0;
    if (duet__opencl_failed(failure, "clGetDeviceInfo",
                            clGetDeviceInfo(id, what, sizeof value, &value, &bytes)))
        return 0;
    return bytes == sizeof value.narrow ? value.narrow : value.wide;
}

static bool is_cpu(cl_device_id id)
{
    cl_device_type type = 0;
    return clGetDeviceInfo(id, CL_DEVICE_TYPE, sizeof type, &type, NULL) == CL_SUCCESS &&
           (type & CL_DEVICE_TYPE_CPU);
}

/*
 * Returns the usable memory of a device. One object holds all its data, so the largest object is
 * the limit; an eighth of the memory, at most 1 GiB, is left to libraries.
 */
static uint64_t usable(uint64_t total, uint64_t object)
{
    const uint64_t most = UINT64_C(1) << 30;
    uint64_t left = total / 8 < most ? total / 8 : most;
    return object < total - left ? object : total - left;
}

static int opencl_describe(unsigned index, struct backend_info *info, struct duet_message *message)
{
    /* PCI Express 3.0 x16, assumed; a calibration says better */
    static const double assumed_Bps = 12e9, assumed_s = 20e-6;
    char name[NAME], version[NAME], vendor[NAME], text[FAILURE_TEXT];
    struct failure failure = {.call = NULL};
    cl_device_id id;
    if (!duet__opencl_id(index, &id))
        return duet_fail(message, DUET_EINVAL, "GPU %u: there is none", index);
    ask_text(id, CL_DEVICE_NAME, name);
    ask_text(id, CL_DEVICE_VERSION, version);
    ask_text(id, CL_DEVICE_VENDOR, vendor);
    cl_ulong units = ask_number(id, CL_DEVICE_MAX_COMPUTE_UNITS, &failure);
    cl_ulong total = ask_number(id, CL_DEVICE_GLOBAL_MEM_SIZE, &failure);
    cl_ulong object = ask_number(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, &failure);
    if (failure.call)
        return duet_fail(message, DUET_EIO, "GPU %u: %s", index, duet__opencl_text(text, &failure));
    if (!strncmp(version, "OpenCL 1.0", 10) || !strncmp(version, "OpenCL 1.1", 10))
        return duet_fail(message, DUET_EABSENT, "GPU %u: %s has %.10s, and 1.2 is needed", index,
                         name, version);
    *info = (struct backend_info){.memory_bytes = usable(total, object),
                                  .total_bytes = total,
                                  .bandwidth_Bps = assumed_Bps,
                                  .latency_s = assumed_s};
    /* pocl's names of CPUs are long, and differ from the CPUs' own */
    duet__arch_name(info->arch, is_cpu(id) ? "opencl-cpu" : name);
    (void)snprintf(info->description, sizeof info->description,
                   "%.40s, %.30s, %.10s, %u compute units", name, vendor, version, (unsigned)units);
    return DUET_OK;
}

/*
 * There is no next_s: a callback comes on a thread of the implementation, which would have to be
 * waited for when the device is closed, and costs more than polling.
 */
const struct duet__backend duet__backend_opencl = {
    .name = "opencl",
    .description = "GPUs and accelerators, by OpenCL",
    .count = duet__opencl_count,
    .describe = opencl_describe,
    .links = opencl_links,
    .attach = opencl_attach,
    .detach = opencl_detach,
    .open = duet__opencl_open,
    .close = duet__opencl_close,
    .launch = duet__opencl_launch,
    .copy = duet__opencl_copy,
    .poll = duet__opencl_poll,
};
