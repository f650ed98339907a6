/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the OpenCL backend share: devices, their streams, and commands in flight.
 *
 * A device has a context, a slab and queues of its own; it is used by its worker's thread alone,
 * but for other threads' looks at its base and whether it is lost. Every stream is a queue in
 * order. Copies go in pieces through buffers that are mapped for good (CL_MEM_ALLOC_HOST_PTR, which
 * implementations page-lock): what OpenCL does with any other memory of the host may block.
 */
#ifndef DUET_BACKENDS_OPENCL_INTERNAL_H
#define DUET_BACKENDS_OPENCL_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/opencl.h>

#include "backends/backend.h"
#include "backends/dates.h"
#include "backends/opencl/errors.h"
#include "backends/pieces.h"

enum {
    TEXTS = 8,               /* reasons that one poll can write */
    KERNEL_STREAMS = 128,    /* kernels at a time on a device, at most */
    STAGING_BUFFERS = 2,     /* of a stream of copies: one is filled or emptied while the other is
                                copied */
    STAGING_BYTES = 4 << 20, /* of each */
};

/* A kernel or a copy, from its launch until its completion was polled. */
struct command {
    struct command *next; /* behind it in its stream, or in the list of spare ones */
    void *tag;
    bool is_kernel;
    bool ended; /* with this status and these dates; chunks may be on their way */
    int status;
    double launched_s, start_s, end_s;
    bool measured; /* on the device's clock, a copy by its pieces so far: */
    double first_s, last_s;
    /* Why the status is not 0: a text that stays, a call, or a late status. */
    const char *why;
    struct failure failure;
    int info;
    /* Of a kernel. */
    cl_event start, end; /* of markers around what its function enqueues */
    double returned_s;   /* when that did return */
    bool prepared;       /* and that had made something first */
    int late;            /* what its stream wrote before its end */
    const struct duet_message *message;
    /* Of a copy. */
    struct backend_copy copy;
    struct cut cut;
    bool given;      /* all pieces of it */
    unsigned chunks; /* in staging buffers now */
};

/* A piece on its way through a staging buffer. */
struct chunk {
    cl_event event;
    struct command *owner;
    struct piece piece;
};

struct stream {
    struct duet_opencl view; /* what kernels are given */
    cl_command_queue queue;
    enum backend_stream kind;
    struct command *first, **last; /* in flight, oldest first; where the next one goes */
    size_t count;
    double end_s; /* of the last one reported */
    /* Of copies. */
    struct command *waiting; /* the oldest of which not all is given, or NULL */
    cl_mem staging;          /* NULL: not there */
    unsigned char *buffers;
    struct chunk chunks[STAGING_BUFFERS];
    unsigned oldest, chunk_count;
};

/* What attach makes. */
struct opencl {
    struct backend_setup setup;
    size_t staging_bytes; /* of a staging buffer */
};

struct backend_device {
    struct opencl *opencl;
    struct backend_config config;
    cl_device_id id;
    cl_context context;
    cl_mem slab;
    unsigned char *base; /* addresses without memory */
    _Atomic(bool) lost;
    char loss[FAILURE_TEXT];         /* why it is lost */
    const char *why;                 /* the last refusal, or NULL */
    char texts[TEXTS][FAILURE_TEXT]; /* of the last poll */
    unsigned texts_used;
    struct command *spare;
    struct dates dates;
    cl_ulong origin_ns; /* 0 of the device's clock for them */
    double unsure_s;    /* its resolution */
    unsigned stream_count;
    struct stream streams[]; /* of kernels, then in, then out */
};

static inline double opencl_now(const struct opencl *opencl)
{
    return opencl->setup.now(opencl->setup.clock);
}

static inline bool opencl_lost(const struct backend_device *device)
{
    return atomic_load_explicit(&device->lost, memory_order_acquire);
}

/* ------------------------------------------------------------------------------------------- */
/* info.c: which devices there are                                                              */

unsigned duet__opencl_count(struct duet_message *why);
DUET_MUST_CHECK int duet__opencl_describe(unsigned index, struct backend_info *info,
                                          struct duet_message *message);
/* The device of this number; false: there is none. */
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
/* ends.c: how commands end                                                                     */

/* Looks at an event. true: it has ended, well or with *failure, in whose name `call` stands. */
bool duet__opencl_ended(cl_event event, const char *call, struct failure *failure);

/*
 * Ends a command with an error. Or, if the error says that the device is gone, loses that: all in
 * flight has ended then with DUET_ELOST.
 */
void duet__opencl_fail(struct backend_device *device, struct command *command,
                       const struct failure *failure);

/* Seconds on the device's clock of one of CL_PROFILING_COMMAND_*; false: it does not say. */
DUET_MUST_CHECK bool duet__opencl_date(const struct backend_device *device, cl_event event,
                                       cl_profiling_info which, double *date_s);

/* Sets the dates of a command that has ended well. */
void duet__opencl_place(struct backend_device *device, const struct stream *stream,
                        struct command *command);

/* ------------------------------------------------------------------------------------------- */
/* copy.c: copies in pieces                                                                     */

/* Gives OpenCL what waits in a stream of copies, as far as there are buffers. */
void duet__opencl_feed(struct backend_device *device, struct stream *stream);
/* Empties buffers whose pieces have ended. */
void duet__opencl_empty(struct backend_device *device, struct stream *stream);

#endif
