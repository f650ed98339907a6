/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data structures shared by the files of the OpenCL backend: devices, their streams, and commands
 * in flight.
 *
 * A device has a context, a slab and queues of its own; it is used by its worker's thread alone,
 * but other threads read its base and whether it is lost. Every stream is a queue in order. Copies
 * go in pieces through permanently mapped buffers (CL_MEM_ALLOC_HOST_PTR, which implementations
 * page-lock): OpenCL's functions may block with any other host memory.
 */
#ifndef DUET_BACKENDS_OPENCL_INTERNAL_H
#define DUET_BACKENDS_OPENCL_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <duet/opencl.h>

#include "backends/common.h"

/* ------------------------------------------------------------------------------------------- */
/* Errors of OpenCL: their names with the call's, and their meaning for a device. */

/* Returns true if the call has failed, and fills *failure. */
DUET_MUST_CHECK bool duet__opencl_failed(struct failure *failure, const char *call, cl_int error);

/*
 * True if the device is of no use any more. The backend's calls are correct, so an "invalid" object
 * of its own has been broken by what ran on the device.
 */
bool duet__opencl_gone(cl_int error);

/* Returns DUET_ENOMEM for a lack of memory, else `otherwise`. */
int duet__opencl_status(cl_int error, int otherwise);

/* Writes "clCreateBuffer: CL_OUT_OF_RESOURCES (-5)". Returns text. */
const char *duet__opencl_text(char text[FAILURE_TEXT], const struct failure *failure);

/* ------------------------------------------------------------------------------------------- */
/* Devices                                                                                      */

/* A kernel or a copy, from its launch until its completion was polled. */
struct command {
    struct command *next; /* next in its stream, or in the list of free ones */
    void *tag;
    bool is_kernel;
    bool ended; /* status and dates are final; chunks may still be on their way */
    int status;
    double launched_s, start_s, end_s;
    bool measured; /* first_s and last_s are set, on the device's clock; of a copy by its pieces so
                      far */
    double first_s, last_s;
    struct reason reason;
    /* Fields of kernels. */
    cl_event start, end; /* markers around what its function enqueues */
    double returned_s;   /* date at which its function returned */
    bool prepared;       /* its function has prepared something */
    int late;            /* status that its stream wrote before its end */
    /* Fields of copies. */
    struct backend_copy copy;
    struct cut cut;
    bool given;      /* all of its pieces were given */
    unsigned chunks; /* pieces in staging buffers now */
};

/* A piece on its way through a staging buffer. */
struct chunk {
    cl_event event;
    struct command *owner;
    struct piece piece;
};

struct stream {
    struct duet_opencl view; /* argument of kernels */
    cl_command_queue queue;
    enum backend_stream kind;
    struct command *first, **last; /* in flight, oldest first; link for the next one */
    size_t count;
    double end_s; /* end of the last one reported */
    /* Fields of streams of copies. */
    struct command *waiting; /* oldest copy that is not given completely, or NULL */
    cl_mem staging;          /* NULL: none */
    unsigned char *buffers;
    struct chunk chunks[STAGING_BUFFERS];
    unsigned oldest, chunk_count;
};

/* Shared data that attach makes. */
struct opencl {
    struct backend_setup setup;
    size_t staging_bytes; /* size of a staging buffer */
};

struct backend_device {
    struct backend_head head; /* base: addresses without memory */
    struct opencl *opencl;
    struct backend_config config;
    cl_device_id id;
    cl_context context;
    cl_mem slab;
    char loss[FAILURE_TEXT]; /* reason of its loss */
    struct reasons reasons;
    struct command *spare;
    struct dates dates;
    cl_ulong origin_ns; /* date of the device's clock from which `dates` counts */
    double unsure_s;    /* resolution of the device's clock */
    unsigned stream_count;
    struct stream streams[]; /* kernels, then in, then out */
};

static inline double opencl_now(const struct opencl *opencl)
{
    return opencl->setup.now(opencl->setup.clock);
}

/* ------------------------------------------------------------------------------------------- */
/* opencl.c: the devices */

unsigned duet__opencl_count(struct duet_message *why);
/* Gives the device of this number. Returns false if there is none. */
DUET_MUST_CHECK bool duet__opencl_id(unsigned index, cl_device_id *id);

/* ------------------------------------------------------------------------------------------- */
/* device.c: open and close                                                                     */

DUET_MUST_CHECK int duet__opencl_open(struct backend_device **out, void *shared,
                                      const struct backend_config *config,
                                      struct duet_message *message);
void duet__opencl_close(struct backend_device *device);

/* ------------------------------------------------------------------------------------------- */
/* commands.c: launch, copy and poll                                                            */

DUET_MUST_CHECK int duet__opencl_launch(struct backend_device *device,
                                        const struct backend_kernel *kernel);
DUET_MUST_CHECK int duet__opencl_copy(struct backend_device *device,
                                      const struct backend_copy *copy);
size_t duet__opencl_poll(struct backend_device *device, struct backend_completion *out, size_t max);

/* ------------------------------------------------------------------------------------------- */
/* commands.c: ends of commands */

/* Queries an event. Returns true if it has ended, well or with *failure, which names `call`. */
bool duet__opencl_ended(cl_event event, const char *call, struct failure *failure);

/*
 * Ends a command with an error. If the error means that the device is lost, all commands in flight
 * end with DUET_ELOST.
 */
void duet__opencl_fail(struct backend_device *device, struct command *command,
                       const struct failure *failure);

/*
 * Gives a date of an event (CL_PROFILING_COMMAND_*) in seconds on the device's clock. Returns false
 * if there is none.
 */
DUET_MUST_CHECK bool duet__opencl_date(const struct backend_device *device, cl_event event,
                                       cl_profiling_info which, double *date_s);

#endif
