/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data structures shared by the files of the CUDA backend: devices, their streams, and commands in
 * flight.
 *
 * A device is used by its worker's thread alone; other threads only read its base and whether it is
 * lost. Commands are in a ring a stream, in order: those that CUDA has, then those that wait for a
 * staging buffer. Only open, close and the handling of errors block. Open makes page-locked memory
 * for config.kernels kernels, as CUDA may wait for the whole device to make it.
 */
#ifndef DUET_CUDA_INTERNAL_H
#define DUET_CUDA_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#include "backends/backend.h"
#include "backends/cuda/errors.h"
#include "backends/cuda/pins.h"
#include "backends/cuda/staging.h"
#include "backends/cuda/timings.h"

enum {
    KERNEL_STREAMS = 128, /* most kernels that a GPU runs at a time */
    LABEL = 96,
};

/* Shared data that attach makes. */
struct cuda {
    struct backend_setup setup;
    struct pins pins;
    size_t staging_bytes;           /* size of a staging buffer */
    pthread_mutex_t mutex;          /* lock of the list and of `well` */
    struct backend_device *devices; /* open devices */
    uint64_t well;                  /* bits of devices that were opened and, when last checked, not
                                       lost */
};

/* A kernel or a copy, from its launch until its completion was polled. */
struct command {
    void *tag;
    bool is_kernel;
    bool direct; /* a copy without staging */
    bool ended;  /* status and dates are final */
    int status;
    double launched_s, start_s, end_s;
    double returned_s;     /* kernel: date at which its function returned */
    bool prepared;         /* kernel: its function has prepared something */
    struct timing *timing; /* NULL: not given to CUDA */
    struct reason reason;
    struct backend_copy copy;
    struct cut cut;  /* progress through staging buffers */
    unsigned chunks; /* pieces in staging buffers now */
};

struct stream {
    cudaStream_t handle;
    enum backend_stream kind;
    struct command *commands;      /* a ring */
    size_t first, count, capacity; /* capacity: 0 or a power of two */
    size_t given;                  /* number of commands that were given to CUDA completely, or have
                                      ended */
    uint64_t reported;             /* number of commands reported before the oldest */
    double end_s;                  /* end of the last one reported */
    struct staging staging;        /* for copies; without memory if there was none */
};

struct backend_device {
    struct cuda *cuda;
    struct backend_config config;
    struct backend_device *next; /* next open device of the engine */
    bool listed;
    char label[LABEL]; /* "GPU 0 (NVIDIA H200)" */
    unsigned char *base;
    size_t max_pitch; /* largest pitch of 2-D copies, in bytes */
    _Atomic(bool) lost;
    bool abandoned;          /* its commands do not end: nothing of it can be freed */
    char loss[FAILURE_TEXT]; /* reason of its loss */
    const char *why;         /* last refusal, or NULL */
    char refusal[FAILURE_TEXT];
    struct reasons reasons;
    struct timings timings;
    unsigned stream_count;
    struct stream streams[]; /* kernels, then in, then out */
};

static inline double cuda_now(const struct cuda *cuda)
{
    return cuda->setup.now(cuda->setup.clock);
}

static inline bool cuda_lost(const struct backend_device *device)
{
    return atomic_load_explicit(&device->lost, memory_order_acquire);
}

static inline struct stream *cuda_in(struct backend_device *device)
{
    return &device->streams[device->stream_count - 2];
}

static inline struct stream *cuda_out(struct backend_device *device)
{
    return &device->streams[device->stream_count - 1];
}

/* Returns the i-th oldest command, i < count. Valid until the next reservation. */
static inline struct command *cuda_at(const struct stream *stream, size_t i)
{
    return &stream->commands[(stream->first + i) & (stream->capacity - 1)];
}

/* ------------------------------------------------------------------------------------------- */
/* info.c: count and describe, as the slots of struct duet__backend                             */

unsigned duet__cuda_count(struct duet_message *why);
bool duet__cuda_impaired(void);
DUET_MUST_CHECK int duet__cuda_describe(unsigned index, struct backend_info *info,
                                        struct duet_message *message);
/* ------------------------------------------------------------------------------------------- */
/* device.c: open and close                                                                     */

enum { CUDA_NAP_NS = 20000 }; /* pause between two polls of a device that is closed */

DUET_MUST_CHECK int duet__cuda_open(struct backend_device **out, void *shared,
                                    const struct backend_config *config,
                                    struct duet_message *message);
void duet__cuda_close(struct backend_device *device);

/*
 * Returns a device for page-locking calls: `current` if it was opened and is not lost, else another
 * such device, but not `broken` (-1: none). -1: there is none; REGISTER_NEVER: duet__cuda_hung().
 * Any thread.
 */
int duet__cuda_well(void *shared, int current, int broken);

/*
 * True once this process has given up a device: CUDA may wait without end for its commands when
 * page-locked memory is registered, unregistered or freed. Any thread.
 */
bool duet__cuda_hung(void);
/* Makes duet__cuda_hung true. */
void duet__cuda_hang(void);

/* ------------------------------------------------------------------------------------------- */
/* commands.c: launch, copy and poll                                                            */

DUET_MUST_CHECK int duet__cuda_launch(struct backend_device *device,
                                      const struct backend_kernel *kernel);
DUET_MUST_CHECK int duet__cuda_copy(struct backend_device *device, const struct backend_copy *copy);
size_t duet__cuda_poll(struct backend_device *device, struct backend_completion *out, size_t max);

/*
 * Takes a timing for the command and records its start. Returns false with the reason in *failure.
 */
DUET_MUST_CHECK bool duet__cuda_begin(struct backend_device *device, const struct stream *stream,
                                      struct command *command, struct failure *failure);

/* ------------------------------------------------------------------------------------------- */
/* commands.c: the ring of a stream                                                             */

/* Makes room for one more command. Returns false if there is no memory. */
DUET_MUST_CHECK bool duet__cuda_reserve(struct stream *stream);
/* Adds a copy of *command behind the others; there is room. Returns it. */
struct command *duet__cuda_push(struct stream *stream, const struct command *command);
/* Remove the newest command, which was refused, and the oldest, which was reported. */
void duet__cuda_unpush(struct backend_device *device, struct stream *stream);
void duet__cuda_shift(struct backend_device *device, struct stream *stream);

/* ------------------------------------------------------------------------------------------- */
/* loss.c: errors that end a command or the device                                              */

/*
 * Loses the device because of an error: all commands in flight end, kernels with DUET_ETASK if one
 * of them may be to blame, all others with DUET_ELOST.
 */
void duet__cuda_lose(struct backend_device *device, const struct failure *failure);

/* Gives the device up as its commands do not end, as the slot of struct duet__backend. */
void duet__cuda_abandon(struct backend_device *device);

/*
 * Loses the device if the error means that it is broken or, for unlisted errors, if the next call
 * fails, too. Returns true if the device is lost, now or before.
 */
bool duet__cuda_broken(struct backend_device *device, const struct failure *failure);

/*
 * Ends a command of the stream with an error, once nothing of it runs any more: waits for all
 * commands of the stream, as long as one ends in the setup's patience_s. May lose the device
 * instead.
 */
void duet__cuda_fail(struct backend_device *device, struct stream *stream, struct command *command,
                     const struct failure *failure);

/* ------------------------------------------------------------------------------------------- */
/* copy.c: giving copies to CUDA                                                                */

/* True if this copy may go to CUDA directly. */
bool duet__cuda_is_direct(struct cuda *cuda, const struct backend_copy *copy);

/*
 * Gives the waiting copies of a stream to CUDA, as far as there are staging buffers, without
 * blocking. A copy that CUDA refuses ends with its failure.
 */
void duet__cuda_feed(struct backend_device *device, struct stream *stream);

/* Empties staging buffers whose pieces were copied; all of them if the stream is `idle`. */
DUET_MUST_CHECK bool duet__cuda_empty(struct stream *stream, bool idle, struct failure *failure);

#endif
