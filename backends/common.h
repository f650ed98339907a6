/* SPDX-License-Identifier: Apache-2.0 */
/* Small functions that backends of GPUs share. */
#ifndef DUET_BACKENDS_COMMON_H
#define DUET_BACKENDS_COMMON_H

#include <duet/machine.h>

#include "backends/backend.h"

/*
 * Makes an architecture's name out of a device's: "NVIDIA H200" gives "h200", "Tesla
 * V100-SXM2-32GB" gives "v100-sxm2-32gb"; never an empty one.
 */
void duet__arch_name(char arch[DUET_NAME_MAX], const char *name);

/*
 * Returns the status for the value that a kernel's stream has left: itself if it is 0 or an enum
 * duet_error, else DUET_ETASK, with the value in *info.
 */
int duet__late_status(int late, int *info);

enum { KERNEL_STREAMS = 128 }; /* most kernels that a GPU runs at a time */

/* Checks what the slot `open` is given. DUET_EINVAL with a message. */
DUET_MUST_CHECK int duet__config_check(const struct backend_config *config,
                                       struct duet_message *message);

/* Usage of a thread so far. */
struct duet__usage {
    double computed_s; /* processor time, as exact as the system's ticks */
    long sleeps;       /* times that it gave up its core to wait */
};

void duet__thread_usage(struct duet__usage *usage);

/* Duration from which a kernel's function may have prepared something. */
#define DUET__PREPARING_S 5e-3

/*
 * True if a kernel's function has prepared something (opened a library, compiled or loaded code),
 * which is no part of the kernel. It took wall_s; `before` is its thread's usage at its start. A
 * function that was only preempted has prepared nothing: its kernel may have begun meanwhile.
 */
bool duet__has_prepared(double wall_s, const struct duet__usage *before);

/* ------------------------------------------------------------------------------------------- */
/* A growing first-in first-out queue of slots of one size: no allocation per element. */

/* A ring. Set slot_bytes, leave the rest 0. */
struct ring {
    size_t slot_bytes;
    unsigned char *slots;
    size_t first, count, capacity; /* capacity: 0 or a power of two */
};

/* Returns the i-th oldest slot, i < count or just reserved. Valid until the next reservation. */
static inline void *ring_at(const struct ring *ring, size_t i)
{
    return ring->slots + ((ring->first + i) & (ring->capacity - 1)) * ring->slot_bytes;
}

/* Makes room for one more slot. Returns false if there is no memory; nothing has changed. */
bool duet__ring_reserve(struct ring *ring);

/* Adds a copy of *value behind the others; room was reserved. Returns its slot. */
void *duet__ring_add(struct ring *ring, const void *value);

/* Removes the oldest slot; there is one. */
static inline void ring_drop(struct ring *ring)
{
    ring->first = (ring->first + 1) & (ring->capacity - 1);
    ring->count--;
}

/* Frees the slots. Safe on a zeroed ring, and twice. */
void duet__ring_fini(struct ring *ring);

/* ------------------------------------------------------------------------------------------- */
/* Reasons of failures                                                                          */

enum {
    TEXTS = 8, /* reasons that one poll can write */
    FAILURE_TEXT = 192,
};

/* A call of CUDA or OpenCL, or a command, that has failed. */
struct failure {
    const char *call; /* name of the call, "cudaMalloc"; a constant. NULL: none has failed */
    int error;        /* a cudaError_t or a cl_int */
};

/* Reason of a command's status: the first that is there. */
struct reason {
    const char *why; /* a constant text, or NULL */
    int info;        /* a late status that is no enum duet_error, or 0 */
    struct failure failure;
    const struct duet_message *message; /* what a kernel says of its failure; or NULL */
};

/* Texts of the reasons that one poll has given, until the next one. */
struct reasons {
    char texts[TEXTS][FAILURE_TEXT];
    unsigned used;
};

/*
 * Completes a completion, of which all but `why` is set: with the reason of an error, which for a
 * call `text` writes and returns, and with dates that do not go back behind *end_s, the end of the
 * one before. Returns false, as it was, if all texts are used.
 */
DUET_MUST_CHECK bool duet__complete(struct backend_completion *out, double *end_s,
                                    struct reasons *reasons, const struct reason *reason,
                                    const char *(*text)(char *, const struct failure *));

/* ------------------------------------------------------------------------------------------- */
/*
 * Conversion from a device's time to the engine's. A device measures its own commands well (half a
 * microsecond) on a clock that begins anywhere and runs a little faster or slower than the host's.
 * The two are related by one certainty: no command begins before it was launched or ends after it
 * was seen to have ended. So host = device + offset, and every command bounds the offset from both
 * sides:
 *
 * launched - start <= offset <= seen - end
 *
 * and where its end was requested later than its start, from below once more:
 *
 * asked - end <= offset
 *
 * The tighter of these bounds come from commands launched to an idle device and from ends that were
 * queried just then; they are stored, and widened with time by the possible drift. The offset
 * itself only moves when a bound pushes it.
 */

struct dates {
    double low_s, high_s; /* bounds of the offset at date at_s of the engine */
    double offset_s, at_s;
};

/* A measured command. All in seconds. */
struct measured {
    double start_s, end_s; /* on the device's clock; start <= end */
    double unsure_s;       /* largest error of both together: >= 0 */
    double launched_s;     /* engine's clock: it began later */
    double asked_s;        /* the event at its end was recorded later than this; 0: not known */
    double seen_s;         /* engine's clock: it had ended; >= launched_s and asked_s */
    double stream_s;       /* end of the previous command of its stream, as placed */
};

/* Initialises: date 0 of the device's clock lies between these two dates of the engine's. */
void duet__dates_init(struct dates *dates, double launched_s, double seen_s);

/*
 * Places a command on the engine's clock. For any measurement, launched <= *start <= *end <= seen,
 * *start >= stream (which is <= seen), and *end >= asked.
 */
void duet__dates_place(struct dates *dates, const struct measured *measured, double *start_s,
                       double *end_s);

/* ------------------------------------------------------------------------------------------- */
/*
 * Copies in pieces, through buffers that a device copies asynchronously: functions shared by
 * backends of GPUs.
 */

enum {
    STAGING_BUFFERS = 2,     /* buffers of a direction: the host fills or empties one meanwhile */
    STAGING_BYTES = 4 << 20, /* size of a buffer, except in tests */
};

/* Progress of cutting a copy into pieces. */
struct cut {
    size_t column, offset; /* columns, and bytes of the next one, that were cut off */
};

/* A part of a copy: whole columns, or a part of one. */
struct piece {
    size_t column, offset; /* beginning in the copy */
    size_t width, cols;    /* bytes of each column, number of columns */
};

/* Cuts off the next piece, of `room` bytes at most (> 0). Returns false if nothing is left. */
bool duet__piece_cut(const struct backend_copy *copy, struct cut *cut, size_t room,
                     struct piece *piece);

/* Copy a piece between the host's memory and a buffer, where columns are dense. */
void duet__piece_pack(unsigned char *buffer, const struct backend_copy *copy,
                      const struct piece *piece);
void duet__piece_unpack(const unsigned char *buffer, const struct backend_copy *copy,
                        const struct piece *piece);

/*
 * True if both ends of a copy are where they should be, in the device's slab of so many bytes and,
 * with copy->peer, in the peer's: errors of the engine are reported.
 */
bool duet__copy_placed(const struct backend_copy *copy, const void *slab, uint64_t slab_bytes,
                       const void *peer_slab, uint64_t peer_bytes);

#endif
