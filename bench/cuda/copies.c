/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bandwidth of copies between the host's memory and the GPU's, by size, direction and kind of the
 * host's memory. What came back from the GPU is compared with what went there.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/cuda/peers.h"
#include "bench/matrix.h"
#include "bench/timing.h"

enum { STAGE_BYTES = 4 << 20, STAGES = 2, TILE_ROW_BYTES = 8 << 10, TILE_LD_ROWS = 4 };

/* Buffers of one size. */
struct lane {
    const struct peers *peers;
    size_t bytes;
    char *host, *back; /* of the kind that is measured: what goes to the GPU, what comes back */
    char *device, *other;
    cudaStream_t second;
    char *stages[STAGES]; /* page-locked */
    cudaEvent_t free[STAGES];
};

/* How the host's memory is used. `in` and `out` end when the data is there. */
struct kind {
    const char *name;
    size_t stretch; /* host bytes for one byte that is copied */
    bool pinned, both;
    void (*in)(struct lane *lane);
    void (*out)(struct lane *lane);
};

/* ------------------------------------------------------------------------------------------- */

static void plain_in(struct lane *lane)
{
    CUDA(cudaMemcpyAsync(lane->device, lane->host, lane->bytes, cudaMemcpyHostToDevice,
                         lane->peers->stream));
    peers_wait(lane->peers);
}

static void plain_out(struct lane *lane)
{
    CUDA(cudaMemcpyAsync(lane->back, lane->device, lane->bytes, cudaMemcpyDeviceToHost,
                         lane->peers->stream));
    peers_wait(lane->peers);
}

/* A tile of a matrix whose columns lie further apart. */
static void tile_in(struct lane *lane)
{
    const size_t row = TILE_ROW_BYTES;
    CUDA(cudaMemcpy2DAsync(lane->device, row, lane->host, TILE_LD_ROWS * row, row,
                           lane->bytes / row, cudaMemcpyHostToDevice, lane->peers->stream));
    peers_wait(lane->peers);
}

static void tile_out(struct lane *lane)
{
    const size_t row = TILE_ROW_BYTES;
    CUDA(cudaMemcpy2DAsync(lane->back, TILE_LD_ROWS * row, lane->device, row, row,
                           lane->bytes / row, cudaMemcpyDeviceToHost, lane->peers->stream));
    peers_wait(lane->peers);
}

static size_t part_bytes(const struct lane *lane, size_t part)
{
    size_t rest = lane->bytes - part * STAGE_BYTES;
    return rest < STAGE_BYTES ? rest : STAGE_BYTES;
}

/* Pageable memory through two page-locked buffers: one is filled while the other is copied. */
static void staged_in(struct lane *lane)
{
    for (size_t part = 0; part * STAGE_BYTES < lane->bytes; part++) {
        size_t size = part_bytes(lane, part), at = part * STAGE_BYTES;
        CUDA(cudaEventSynchronize(lane->free[part % STAGES]));
        memcpy(lane->stages[part % STAGES], lane->host + at, size);
        CUDA(cudaMemcpyAsync(lane->device + at, lane->stages[part % STAGES], size,
                             cudaMemcpyHostToDevice, lane->peers->stream));
        CUDA(cudaEventRecord(lane->free[part % STAGES], lane->peers->stream));
    }
    peers_wait(lane->peers);
}

/* The copy of each part begins STAGES parts before it is taken out of its buffer. */
static void staged_out(struct lane *lane)
{
    size_t parts = (lane->bytes + STAGE_BYTES - 1) / STAGE_BYTES;
    for (size_t next = 0; next < parts + STAGES; next++) {
        if (next >= STAGES) {
            size_t part = next - STAGES;
            CUDA(cudaEventSynchronize(lane->free[part % STAGES]));
            memcpy(lane->back + part * STAGE_BYTES, lane->stages[part % STAGES],
                   part_bytes(lane, part));
        }
        if (next < parts) {
            CUDA(cudaMemcpyAsync(lane->stages[next % STAGES], lane->device + next * STAGE_BYTES,
                                 part_bytes(lane, next), cudaMemcpyDeviceToHost,
                                 lane->peers->stream));
            CUDA(cudaEventRecord(lane->free[next % STAGES], lane->peers->stream));
        }
    }
}

/* Both directions at once; half of the bytes counted goes each way. */
static void both_ways(struct lane *lane)
{
    CUDA(cudaMemcpyAsync(lane->other, lane->host, lane->bytes, cudaMemcpyHostToDevice,
                         lane->peers->stream));
    CUDA(cudaMemcpyAsync(lane->back, lane->device, lane->bytes, cudaMemcpyDeviceToHost,
                         lane->second));
    peers_wait(lane->peers);
    CUDA(cudaStreamSynchronize(lane->second));
}

static const struct kind kinds[] = {
    {"page-locked", 1, true, true, plain_in, plain_out},
    {"page-locked tile", TILE_LD_ROWS, true, false, tile_in, tile_out},
    {"staged", 1, false, false, staged_in, staged_out},
    {"pageable", 1, false, false, plain_in, plain_out},
};

/* ------------------------------------------------------------------------------------------- */

/* Whether what comes back is what went there, where it was copied. */
static bool came_back(const struct lane *lane, const struct kind *kind)
{
    size_t stretch = kind->stretch, row = stretch == 1 ? lane->bytes : TILE_ROW_BYTES;
    for (size_t at = 0; at < lane->bytes * stretch; at += row * stretch)
        if (memcmp(lane->back + at, lane->host + at, row) != 0)
            return false;
    return true;
}

/* One line: as many copies a repeat as fill some time, so that small ones are not noise. */
static void measure(struct lane *lane, const struct kind *kind, const char *direction,
                    void (*copy)(struct lane *lane), double ways)
{
    enum { CALLS_MAX = 64, ENOUGH_BYTES = 64 << 20 };
    size_t calls = ENOUGH_BYTES / lane->bytes;
    calls = calls < 1 ? 1 : calls > CALLS_MAX ? CALLS_MAX : calls;
    struct repeats repeats = {.made = 0};
    memset(lane->back, 0, lane->bytes * kind->stretch);
    while (repeats_go_on(lane->peers, &repeats)) {
        double start = seconds();
        for (size_t i = 0; i < calls; i++)
            copy(lane);
        repeats_add(&repeats, (seconds() - start) / (double)calls);
    }
    line_begin(lane->peers, "cuda");
    line_text("memory", kind->name);
    line_text("direction", direction);
    line_integer("bytes", lane->bytes);
    line_values(&repeats, "GB/s", 1e-9 * ways * (double)lane->bytes);
    /* the GPU's bytes are known to be right only when they have come back */
    if (copy == kind->in)
        kind->out(lane);
    line_end_verified(came_back(lane, kind));
}

static void measure_kind(struct lane *lane, const struct kind *kind)
{
    size_t bytes = lane->bytes * kind->stretch;
    lane->host = kind->pinned ? peers_pinned(bytes) : zeroed(bytes);
    lane->back = kind->pinned ? peers_pinned(bytes) : zeroed(bytes);
    fill_values(lane->host, 'd', bytes / sizeof(double), lane->bytes);
    measure(lane, kind, "to-device", kind->in, 1);
    measure(lane, kind, "to-host", kind->out, 1);
    if (kind->both)
        measure(lane, kind, "both", both_ways, 2);
    if (kind->pinned) {
        CUDA(cudaFreeHost(lane->host));
        CUDA(cudaFreeHost(lane->back));
    } else {
        free(lane->host);
        free(lane->back);
    }
}

void mode_copies(struct peers *peers)
{
    static const size_t sizes[] = {64 << 10, 1 << 20, 8 << 20, 32 << 20, 256 << 20};
    struct lane lane = {.peers = peers};
    CUDA(cudaStreamCreateWithFlags(&lane.second, cudaStreamNonBlocking));
    for (size_t i = 0; i < STAGES; i++) {
        lane.stages[i] = peers_pinned(STAGE_BYTES);
        CUDA(cudaEventCreateWithFlags(&lane.free[i], cudaEventDisableTiming));
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && (!peers->n || sizes[i] <= peers->n);
         i++) {
        lane.bytes = sizes[i];
        lane.device = peers_device(lane.bytes);
        lane.other = peers_device(lane.bytes);
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
            measure_kind(&lane, &kinds[k]);
        CUDA(cudaFree(lane.device));
        CUDA(cudaFree(lane.other));
    }
    for (size_t i = 0; i < STAGES; i++) {
        CUDA(cudaFreeHost(lane.stages[i]));
        CUDA(cudaEventDestroy(lane.free[i]));
    }
    CUDA(cudaStreamDestroy(lane.second));
}
