/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data structures shared by the files of the CUDA backend: devices, their streams, and commands in
 * flight.
 *
 * A device is used by its worker's thread alone; other threads only read its base and whether it is
 * lost. Commands are in a ring a stream, in order: those that CUDA has, then those that wait for a
 * staging buffer. Only open, close, the handling of errors and the capture of a graph's kernels
 * block. Open makes page-locked memory for config.kernels kernels, as CUDA may wait for the whole
 * device to make it.
 */
#ifndef DUET_CUDA_INTERNAL_H
#define DUET_CUDA_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#include "backends/common.h"

/* ------------------------------------------------------------------------------------------- */
/*
 * Errors of the CUDA runtime: their texts with the call's name, their meaning for a device, and
 * duet's error codes for them.
 */

/* Consequence of an error for the device on which it was seen. */
enum fate {
    FATE_REFUSED, /* one call was refused; everything else works */
    FATE_KERNEL,  /* a kernel has done what is not allowed, and the device's context is broken */
    FATE_GONE,    /* the context is broken and no kernel is to blame: hardware, driver */
};

/*
 * Returns true if the call has failed: *failure is filled, and the error is cleared in
 * cudaGetLastError, where the next one would be mistaken for it.
 */
DUET_MUST_CHECK bool duet__cuda_failed(struct failure *failure, const char *call,
                                       cudaError_t error);

/* Clears the error of a call whose result does not matter, as in cleaning up. */
void duet__cuda_ignore(cudaError_t error);

enum fate duet__cuda_fate(cudaError_t error);

/* Returns DUET_ENOMEM for a lack of memory, else `otherwise`. */
int duet__cuda_status(cudaError_t error, int otherwise);

/*
 * Writes "cudaMalloc: out of memory (cudaErrorMemoryAllocation)". Once a context is broken all
 * calls fail and none is to blame: "an illegal memory access was encountered
 * (cudaErrorIllegalAddress), seen by cudaEventQuery". Returns text.
 */
const char *duet__cuda_text(char text[FAILURE_TEXT], const struct failure *failure);

/* ------------------------------------------------------------------------------------------- */
/*
 * Copies of memory that is not page-locked: in pieces through page-locked buffers, of which the
 * host fills or empties one while the device copies the other. One object for each direction of a
 * device, whose stream keeps everything in order.
 */

/* A piece on its way through a buffer. */
struct chunk {
    uint64_t owner; /* number of its command in the stream */
    struct piece piece;
};

struct staging {
    unsigned char *memory; /* the buffers; NULL: none */
    size_t bytes;          /* size of each */
    cudaEvent_t passed[STAGING_BUFFERS];
    struct chunk chunks[STAGING_BUFFERS];
    unsigned first, count; /* chunks on their way, oldest first, and their buffers */
};

/*
 * Allocates the buffers, of so many bytes each, for the current device. Returns false with the
 * reason in *failure; nothing is allocated then.
 */
DUET_MUST_CHECK bool duet__staging_open(struct staging *staging, size_t bytes,
                                        struct failure *failure);
/* Frees the buffers. Safe on a zeroed object. Nothing is on its way. */
void duet__staging_close(struct staging *staging);

/*
 * Returns the buffer behind the newest chunk, which is free if there are fewer than
 * STAGING_BUFFERS.
 */
static inline unsigned staging_next(const struct staging *staging)
{
    return (staging->first + staging->count) % STAGING_BUFFERS;
}

static inline unsigned char *staging_buffer(const struct staging *staging, unsigned which)
{
    return staging->memory + which * staging->bytes;
}

/* ------------------------------------------------------------------------------------------- */
/*
 * Timings of commands in flight: two events (untimed: only the last is recorded), an anchor, and,
 * for a kernel, a page-locked int for its late status. They are taken from lists and returned, so
 * that nothing is allocated on the path of a task. A list grows when more commands are in flight
 * than ever before. Page-locked memory is made when the device is opened, for as many kernels as
 * may be in flight: CUDA may allocate it only once the device is idle.
 *
 * cudaEventElapsedTime returns a float of milliseconds and loses its half microsecond after some
 * seconds. Commands are therefore measured from an anchor: an event that had happened when they
 * were launched, and whose own date is added up in double. The end of some command becomes the next
 * anchor about twice a second.
 */

enum { ANCHORS = 4 };

/* A date on the device's clock. */
struct anchor {
    cudaEvent_t event; /* has happened */
    double date_s;     /* device time: seconds since the first anchor */
    unsigned users;    /* commands in flight that count from it */
};

struct timing {
    cudaEvent_t start, end;
    int *status; /* kernel: page-locked; NULL: a copy */
    struct anchor *anchor;
    struct timing *next; /* next in its list */
};

struct timing_block;

struct timings {
    int device;
    bool untimed; /* events show only that something has ended: dates are the host's */
    struct timing *kernels, *copies; /* free timings */
    struct timing_block *blocks;
    struct anchor anchors[ANCHORS];
    struct anchor *anchor; /* the newest anchor */
    double anchor_age_s;   /* age at which another one is made; constant except in tests */
    struct dates dates;
    double (*now)(void *clock);
    void *clock;
};

/*
 * Makes timings for `kernels` kernels in flight and for some copies, and the first anchor on
 * `stream`, which is empty; waits for that. The device is current. On failure *failure names the
 * call; duet__timings_fini frees what was made.
 */
DUET_MUST_CHECK bool duet__timings_init(struct timings *timings, cudaStream_t stream,
                                        unsigned kernels, struct failure *failure);
/* Frees all timings. Safe on a zeroed object. Nothing is in flight. */
void duet__timings_fini(struct timings *timings);

/* Returns a timing for a kernel, whose status is 0, or a copy, to be launched now. NULL: *failure
   says why. */
struct timing *duet__timings_take(struct timings *timings, bool kernel, struct failure *failure);
void duet__timings_give(struct timings *timings, struct timing *timing);

/* Dates of the host for a command between whose events the device was busy. */
struct timed {
    double launched_s; /* on the engine's clock, before its first event was recorded */
    double asked_s;    /* before its last event was recorded; 0: not known */
    double seen_s;     /* after that event was seen to have happened */
    double stream_s;   /* end of the previous command of its stream */
};

/*
 * Gives the dates of a command on the engine's clock: those of launching and seeing if events are
 * untimed or, with the result false, if a call failed. The timing's end may become an anchor.
 */
DUET_MUST_CHECK bool duet__timings_read(struct timings *timings, struct timing *timing,
                                        const struct timed *timed, double *start_s, double *end_s,
                                        struct failure *failure);

/* ------------------------------------------------------------------------------------------- */
/*
 * Page-locked ranges of the host's memory (cudaHostRegister): those that the application asked for,
 * and those of handles, made with their first copy. All consist of whole pages, and no two share
 * one. CUDA wants the host's side of a copy to be in one registration or in none, so a copy goes to
 * CUDA directly only from inside of one range; all others are staged.
 *
 * Any thread. A mutex protects everything but the read of a handle's mark. It is held while the
 * system page-locks, since a copy that meets it would have to wait for that anyway.
 */

struct cuda;
struct pin_range; /* one registration */

struct pins {
    pthread_mutex_t mutex;     /* lock of all below */
    struct pin_range **ranges; /* registered ones, by address */
    size_t count, capacity;
    struct pin_range *dead; /* unpinned ranges to which marks still point */
    uint64_t limit_bytes, bytes;
    uint64_t (*more)(void *clock); /* returns the current limit; may be NULL */
    uint64_t piece_bytes;          /* largest size of one registration */
    uintptr_t page_bytes;
    unsigned told;     /* remarks already made, bits */
    unsigned refusals; /* refusals of handles' memory by the system */
    unsigned vain;     /* requests for a larger limit since it last grew */
    bool stuck;        /* CUDA has refused to end a registration */
    struct cuda *cuda; /* finds devices to register on (duet__cuda_well); NULL: the current one */
    void (*say)(void *clock, const char *line);
    void *clock;
};

/* The host's side of a copy. */
struct pin_span {
    const void *data;
    uint64_t span_bytes; /* from the first byte to the last */
    uint64_t bytes;      /* bytes copied: less than the span if the columns have gaps */
};

/*
 * Initialises. limit_bytes 0: nothing is page-locked. `say` may be NULL. DUET_ENOMEM: there is
 * nothing to free.
 */
DUET_MUST_CHECK int duet__pins_init(struct pins *pins, uint64_t limit_bytes,
                                    void (*say)(void *clock, const char *line), void *clock);
/* Unregisters all remaining ranges. */
void duet__pins_fini(struct pins *pins);

/* As the slots pin, unpin and forget of struct duet__backend. */
DUET_MUST_CHECK int duet__pins_pin(struct pins *pins, void *data, uint64_t bytes,
                                   struct duet_message *message);
int duet__pins_unpin(struct pins *pins, void *data, struct duet_message *message);
void duet__pins_forget(struct pins *pins, _Atomic(void *) *mark);

/*
 * True if this copy may go to CUDA directly. The first copy with a mark decides for all copies of
 * its handle, and page-locks the handle's memory if it is worth it and nothing prevents it. Without
 * a mark nothing is page-locked.
 */
bool duet__pins_direct(struct pins *pins, const struct pin_span *span, _Atomic(void *) *mark);

/* True if no page of it is in a range: CUDA takes it as ordinary memory. */
bool duet__pins_ordinary(struct pins *pins, const struct pin_span *span);

/* ------------------------------------------------------------------------------------------- */
/* Devices, their streams, and commands in flight                                               */

enum { LABEL = 96 };

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

struct capture; /* what the kernels of a graph have enqueued: capture.c */

/* A kernel or a copy, from its launch until its completion was polled. */
struct command {
    void *tag;
    bool is_kernel;
    bool direct; /* a copy without staging */
    bool ended;  /* status and dates are final */
    int status;
    double launched_s, start_s, end_s;
    double returned_s;       /* kernel: date at which its function returned */
    bool prepared;           /* kernel: its function has prepared something */
    struct timing *timing;   /* NULL: not given to CUDA */
    struct capture *capture; /* kernels of a graph; NULL: one kernel, or a copy */
    size_t part;             /* as in struct backend_completion */
    struct reason reason;
    struct backend_copy copy;
    struct cut cut;  /* progress through staging buffers */
    unsigned chunks; /* pieces in staging buffers now */
};

struct stream {
    cudaStream_t handle;
    enum backend_stream kind;
    struct ring commands;   /* struct command */
    size_t given;           /* number of commands that were given to CUDA completely, or have
                               ended */
    uint64_t reported;      /* number of commands reported before the oldest */
    double end_s;           /* end of the last one reported */
    struct staging staging; /* for copies; without memory if there was none */
};

struct backend_device {
    struct backend_head head;
    struct cuda *cuda;
    struct backend_config config;
    struct backend_device *next; /* next open device of the engine */
    bool listed;
    char label[LABEL];       /* "GPU 0 (NVIDIA H200)" */
    size_t max_pitch;        /* largest pitch of 2-D copies, in bytes */
    bool abandoned;          /* its commands do not end: nothing of it can be freed */
    char loss[FAILURE_TEXT]; /* reason of its loss */
    char refusal[FAILURE_TEXT];
    struct reasons reasons;
    struct timings timings;
    struct capture *captures; /* those of its graphs */
    unsigned stream_count;
    struct stream streams[]; /* kernels, then in, then out */
};

static inline double cuda_now(const struct cuda *cuda)
{
    return cuda->setup.now(cuda->setup.clock);
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
    return ring_at(&stream->commands, i);
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
 * such device; -1 if there is none; REGISTER_NEVER after duet__cuda_hung(). `broken` (-1: none) is
 * not chosen. Any thread.
 */
enum { REGISTER_NEVER = -2 };
int duet__cuda_well(struct cuda *cuda, int current, int broken);

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
/* capture.c: kernels of a graph                                                                */

/*
 * Launches the kernels of a graph, as one CUDA graph if it can. Returns the status of their
 * functions, or that of the command if the device is lost.
 */
int duet__cuda_repeat(struct backend_device *device, struct stream *stream, struct command *command,
                      const struct backend_kernel *kernel);
/* Returns the first late status that is not 0, and its kernel in *part as in backend_completion. */
int duet__capture_status(const struct capture *capture, size_t *part);
/* Ends a command's use of its capture. */
void duet__capture_give(struct capture *capture);
/* Frees captures: all, when nothing is in flight, or those of graphs that were freed. */
void duet__captures_free(struct backend_device *device, bool all);

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
