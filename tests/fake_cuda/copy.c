/* SPDX-License-Identifier: Apache-2.0 */
/* Copies, and filling with a byte. */
#include <stdlib.h>
#include <string.h>

#include "tests/fake_cuda/internal.h"

enum { MAX_PITCH = 0x7fffffff };

/* A copy of `rows` pieces of `width` bytes each, a pitch apart; real addresses. */
struct transfer {
    unsigned char *destination;
    const unsigned char *source;
    void *owned; /* NULL, or the memory of the source, to be released afterwards */
    size_t width, rows, destination_pitch, source_pitch;
};

static void move(void *argument)
{
    const struct transfer *t = argument;
    for (size_t i = 0; i < t->rows; i++)
        memcpy(t->destination + i * t->destination_pitch, t->source + i * t->source_pitch,
               t->width);
    free(t->owned);
}

static struct span span_of(const void *begin, size_t pitch, const struct transfer *t)
{
    return (struct span){(uintptr_t)begin, (t->rows - 1) * pitch + t->width};
}

/* True if the kind of copy that the caller names is right for the addresses. */
static bool fits(enum cudaMemcpyKind kind, bool from_device, bool to_device)
{
    switch (kind) {
    case cudaMemcpyHostToHost:
        return !from_device && !to_device;
    case cudaMemcpyHostToDevice:
        return !from_device && to_device;
    case cudaMemcpyDeviceToHost:
        return from_device && !to_device;
    case cudaMemcpyDeviceToDevice:
        return from_device && to_device;
    case cudaMemcpyDefault:
        return true;
    default:
        return false;
    }
}

static void count(struct fake_place from, struct fake_place to, uint64_t bytes, unsigned device)
{
    struct fake *fake = fake_state();
    struct fake_cuda_stats *stats = &fake->stats;
    if (from.kind == FAKE_DEVICE && to.kind == FAKE_DEVICE) {
        if (from.device == to.device) {
            stats->within++;
            return;
        }
        bool direct = fake->devices[device].peer[device == to.device ? from.device : to.device];
        stats->direct += direct;
        stats->staged += !direct;
        stats->peer_bytes += bytes;
    } else if (from.kind == FAKE_PAGEABLE || to.kind == FAKE_PAGEABLE) {
        stats->pageable_in += to.kind == FAKE_DEVICE;
        stats->pageable_out += from.kind == FAKE_DEVICE;
        stats->pageable_bytes += bytes;
    } else {
        stats->in += to.kind == FAKE_DEVICE;
        stats->in_bytes += to.kind == FAKE_DEVICE ? bytes : 0;
        stats->out += from.kind == FAKE_DEVICE;
        stats->out_bytes += from.kind == FAKE_DEVICE ? bytes : 0;
    }
}

/* Takes a copy of the source as it is now, without gaps. */
static void stage(struct transfer *t)
{
    unsigned char *copy = malloc(t->width * t->rows);
    if (!copy)
        abort();
    struct transfer inner = *t;
    inner.destination = copy;
    inner.destination_pitch = t->width;
    inner.owned = NULL;
    move(&inner);
    t->source = copy;
    t->owned = copy;
    t->source_pitch = t->width;
}

/* Finds where both ends are, and checks that they may be there. */
static cudaError_t look(const struct transfer *t, enum cudaMemcpyKind kind, struct fake_place *from,
                        struct fake_place *to)
{
    *from = fake_find(span_of(t->source, t->source_pitch, t));
    *to = fake_find(span_of(t->destination, t->destination_pitch, t));
    if (from->kind == FAKE_MIXED || to->kind == FAKE_MIXED)
        return cudaErrorInvalidValue;
    if ((unsigned)kind > cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    if (!fits(kind, from->kind == FAKE_DEVICE, to->kind == FAKE_DEVICE)) {
        fake_violation("a copy of kind %d whose addresses are of another one", (int)kind);
        return cudaErrorInvalidValue;
    }
    if (from->kind == FAKE_DEVICE && fake_error_of(from->device))
        return fake_error_of(from->device);
    return to->kind == FAKE_DEVICE ? fake_error_of(to->device) : cudaSuccess;
}

/* Returns the transfer with device addresses replaced by those of their bytes. */
static struct transfer real_addresses(struct transfer t, struct fake_place from,
                                      struct fake_place to)
{
    struct transfer real = t;
    if (from.kind == FAKE_DEVICE)
        real.source = fake_shadow(from.device, span_of(t.source, t.source_pitch, &t));
    if (to.kind == FAKE_DEVICE)
        real.destination = fake_shadow(to.device, span_of(t.destination, t.destination_pitch, &t));
    return real;
}

static cudaError_t copy(struct transfer t, enum cudaMemcpyKind kind, cudaStream_t handle)
{
    struct fake_stream *stream;
    struct fake_place from, to;
    cudaError_t error = fake_stream_of(handle, &stream);
    if (!error && t.width > 0 && t.rows > 0)
        error = look(&t, kind, &from, &to);
    if (error || !t.width || !t.rows)
        return error;
    if (stream->capture && (from.kind == FAKE_PAGEABLE || to.kind == FAKE_PAGEABLE))
        return fake_spoil(stream);
    count(from, to, t.width * t.rows, stream->device);
    struct transfer real = real_addresses(t, from, to);
    if (from.kind == FAKE_PAGEABLE)
        stage(&real);
    struct fake_command *command = fake_command(move, &real, sizeof real);
    if (from.kind == FAKE_LOCKED)
        command->used[0] = span_of(t.source, t.source_pitch, &t);
    if (to.kind == FAKE_LOCKED)
        command->used[1] = span_of(t.destination, t.destination_pitch, &t);
    fake_give(stream, command);
    return to.kind == FAKE_PAGEABLE ? fake_drain(stream) : cudaSuccess;
}

static struct transfer dense(void *destination, const void *source, size_t bytes)
{
    return (struct transfer){destination, source, NULL, bytes, 1, bytes, bytes};
}

cudaError_t cudaMemcpyAsync(void *destination, const void *source, size_t bytes,
                            enum cudaMemcpyKind kind, cudaStream_t stream)
{
    cudaError_t error = fake_enter(FAKE_cudaMemcpyAsync, false);
    return fake_leave(error ? error : copy(dense(destination, source, bytes), kind, stream));
}

cudaError_t cudaMemcpy2DAsync(void *destination, size_t destination_pitch, const void *source,
                              size_t source_pitch, size_t width, size_t height,
                              enum cudaMemcpyKind kind, cudaStream_t stream)
{
    cudaError_t error = fake_enter(FAKE_cudaMemcpy2DAsync, false);
    struct transfer t = {destination, source, NULL, width, height, destination_pitch, source_pitch};
    if (!error && (destination_pitch > MAX_PITCH || source_pitch > MAX_PITCH ||
                   width > destination_pitch || width > source_pitch))
        error = cudaErrorInvalidPitchValue;
    return fake_leave(error ? error : copy(t, kind, stream));
}

cudaError_t cudaMemcpyPeerAsync(void *destination, int destination_device, const void *source,
                                int source_device, size_t bytes, cudaStream_t stream)
{
    unsigned devices = fake_state()->config.devices;
    cudaError_t error = fake_enter(FAKE_cudaMemcpyPeerAsync, false);
    if (!error && ((unsigned)destination_device >= devices || (unsigned)source_device >= devices))
        error = cudaErrorInvalidDevice;
    if (!error && bytes &&
        (!fake_shadow((unsigned)destination_device, (struct span){(uintptr_t)destination, bytes}) ||
         !fake_shadow((unsigned)source_device, (struct span){(uintptr_t)source, bytes})))
        error = cudaErrorInvalidValue;
    return fake_leave(
        error ? error : copy(dense(destination, source, bytes), cudaMemcpyDeviceToDevice, stream));
}

/* Copies at once, without waiting for non-blocking streams: duet makes no others. */
cudaError_t cudaMemcpy(void *destination, const void *source, size_t bytes,
                       enum cudaMemcpyKind kind)
{
    struct fake_place from, to;
    struct transfer t = dense(destination, source, bytes);
    cudaError_t error = fake_enter(FAKE_cudaMemcpy, true);
    if (!error && bytes)
        error = look(&t, kind, &from, &to);
    if (error || !bytes)
        return fake_leave(error);
    count(from, to, bytes, fake_device());
    t = real_addresses(t, from, to);
    move(&t);
    return fake_leave(cudaSuccess);
}

/* ------------------------------------------------------------------------------------------- */
/* Filling                                                                                      */

struct filling {
    void *at;
    size_t bytes;
    int value;
};

static void fill(void *argument)
{
    const struct filling *filling = argument;
    memset(filling->at, filling->value, filling->bytes);
}

/* *out: the filling to be done; its `at` is NULL if there is nothing to do. */
static cudaError_t filling_of(struct filling *out, const void *pointer, int value, size_t bytes)
{
    struct span span = {(uintptr_t)pointer, bytes};
    *out = (struct filling){NULL, bytes, value};
    if (!bytes)
        return cudaSuccess;
    struct fake_place place = fake_find(span);
    if (place.kind != FAKE_DEVICE)
        return cudaErrorInvalidValue;
    out->at = fake_shadow(place.device, span);
    return fake_error_of(place.device);
}

cudaError_t cudaMemsetAsync(void *pointer, int value, size_t bytes, cudaStream_t handle)
{
    struct fake_stream *stream;
    struct filling filling;
    cudaError_t error = fake_enter(FAKE_cudaMemsetAsync, false);
    if (!error)
        error = fake_stream_of(handle, &stream);
    if (!error)
        error = filling_of(&filling, pointer, value, bytes);
    if (!error && filling.at)
        fake_give(stream, fake_command(fill, &filling, sizeof filling));
    return fake_leave(error);
}

cudaError_t cudaMemset(void *pointer, int value, size_t bytes)
{
    struct filling filling;
    cudaError_t error = fake_enter(FAKE_cudaMemset, true);
    if (!error)
        error = filling_of(&filling, pointer, value, bytes);
    if (!error && filling.at)
        fill(&filling);
    return fake_leave(error);
}
