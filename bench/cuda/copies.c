/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bandwidth of copies between the host's memory and the GPU's, by size, direction and kind of the
 * host's memory. What came back from the GPU is compared with what went there.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/cuda/peers.h"
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

static void wait_for(struct lane *lane)
{
    CUDA(cudaStreamSynchronize(lane->peers->stream));
}

static void plain_in(struct lane *lane)
{
    CUDA(cudaMemcpyAsync(lane->device, lane->host, lane->bytes, cudaMemcpyHostToDevice,
                         lane->peers->stream));
    wait_for(lane);
}

static void plain_out(struct lane *lane)
{
    CUDA(cudaMemcpyAsync(lane->back, lane->device, lane->bytes, cudaMemcpyDeviceToHost,
                         lane->peers->stream));
    wait_for(lane);
}

/* A tile of a matrix whose columns lie further apart. */
static void tile_in(struct lane *lane)
{
    const size_t row = TILE_ROW_BYTES;
    CUDA(cudaMemcpy2DAsync(lane->device, row, lane->host, TILE_LD_ROWS * row, row,
                           lane->bytes / row, cudaMemcpyHostToDevice, lane->peers->stream));
    wait_for(lane);
}

static void tile_out(struct lane *lane)
{
    const size_t row = TILE_ROW_BYTES;
    CUDA(cudaMemcpy2DAsync(lane->back, TILE_LD_ROWS * row, lane->device, row, row,
                           lane->bytes / row, cudaMemcpyDeviceToHost, lane->peers->stream));
    wait_for(lane);
}

/* Pageable memory through two page-locked buffers: one is filled while the other is copied. */
static void staged_in(struct lane *lane)
{
    size_t part = 0;
    for (size_t at = 0; at < lane->bytes; at += STAGE_BYTES, part++) {
        size_t size = lane->bytes - at < STAGE_BYTES ? lane->bytes - at : STAGE_BYTES;
        CUDA(cudaEventSynchronize(lane->free[part % STAGES]));
        memcpy(lane->stages[part % STAGES], lane->host + at, size);
        CUDA(cudaMemcpyAsync(lane->device + at, lane->stages[part % STAGES], size,
                             cudaMemcpyHostToDevice, lane->peers->stream));
        CUDA(cudaEventRecord(lane->free[part % STAGES], lane->peers->stream));
    }
    wait_for(lane);
}

static void staged_part_out(struct lane *lane, size_t part)
{
    size_t at = part * STAGE_BYTES;
    size_t size = lane->bytes - at < STAGE_BYTES ? lane->bytes - at : STAGE_BYTES;
    CUDA(cudaMemcpyAsync(lane->stages[part % STAGES], lane->device + at, size,
                         cudaMemcpyDeviceToHost, lane->peers->stream));
    CUDA(cudaEventRecord(lane->free[part % STAGES], lane->peers->stream));
}

static void staged_out(struct lane *lane)
{
    size_t parts = (lane->bytes + STAGE_BYTES - 1) / STAGE_BYTES;
    for (size_t part = 0; part < parts && part < STAGES; part++)
        staged_part_out(lane, part);
    for (size_t part = 0; part < parts; part++) {
        size_t at = part * STAGE_BYTES;
        size_t size = lane->bytes - at < STAGE_BYTES ? lane->bytes - at : STAGE_BYTES;
        CUDA(cudaEventSynchronize(lane->free[part % STAGES]));
        memcpy(lane->back + at, lane->stages[part % STAGES], size);
        if (part + STAGES < parts)
            staged_part_out(lane, part + STAGES);
    }
}

/* Both directions at once; half of the bytes counted goes each way. */
static void both_ways(struct lane *lane)
{
    CUDA(cudaMemcpyAsync(lane->other, lane->host, lane->bytes, cudaMemcpyHostToDevice,
                         lane->peers->stream));
    CUDA(cudaMemcpyAsync(lane->back, lane->device, lane->bytes, cudaMemcpyDeviceToHost,
                         lane->second));
    wait_for(lane);
    CUDA(cudaStreamSynchronize(lane->second));
}

static const struct kind kinds[] = {
    {"page-locked", 1, true, true, plain_in, plain_out},
    {"page-locked tile", TILE_LD_ROWS, true, false, tile_in, tile_out},
    {"staged", 1, false, false, staged_in, staged_out},
    {"pageable", 1, false, false, plain_in, plain_out},
};

/* ------------------------------------------------------------------------------------------- */

/* One line: as many repeats as fill some time, so that small copies are not noise. */
static void measure(struct lane *lane, const struct kind *kind, const char *direction,
                    void (*copy)(struct lane *lane), double factor)
{
    enum { CALLS_MAX = 64, ENOUGH_BYTES = 64 << 20 };
    size_t calls = ENOUGH_BYTES / lane->bytes;
    calls = calls < 1 ? 1 : calls > CALLS_MAX ? CALLS_MAX : calls;
    struct peers_times times = {.count = 0};
    bool warm = false;
    while (times.count < lane->peers->repeats) {
        double start = seconds();
        for (size_t i = 0; i < calls; i++)
            copy(lane);
        peers_add(&times, &warm, (seconds() - start) / (double)calls);
    }
    line_begin(lane->peers, "cuda");
    line_text("memory", kind->name);
    line_text("direction", direction);
    line_integer("bytes", lane->bytes);
    line_times(&times, "bytes_per_second", factor * (double)lane->bytes);
}

static bool came_back(const struct lane *lane, const struct kind *kind)
{
    if (kind->stretch == 1)
        return memcmp(lane->host, lane->back, lane->bytes) == 0;
    for (size_t row = 0; row < lane->bytes / TILE_ROW_BYTES; row++) {
        size_t at = row * kind->stretch * TILE_ROW_BYTES;
        if (memcmp(lane->host + at, lane->back + at, TILE_ROW_BYTES) != 0)
            return false;
    }
    return true;
}

static void end_line(bool right)
{
    line_flag("verified", right);
    line_end();
    if (!right)
        peers_fail("other bytes came back than were copied to the GPU");
}

static void measure_kind(struct lane *lane, const struct kind *kind)
{
    size_t bytes = kind->stretch * lane->bytes;
    lane->host = kind->pinned ? peers_pinned(bytes) : zeroed(bytes);
    lane->back = kind->pinned ? peers_pinned(bytes) : zeroed(bytes);
    peers_fill_bytes(lane->host, bytes, lane->bytes);
    memset(lane->back, 0, bytes);
    /* the GPU's bytes are known to be right only when they have come back */
    kind->in(lane);
    kind->out(lane);
    bool right = came_back(lane, kind);
    measure(lane, kind, "to-device", kind->in, 1);
    end_line(right);
    memset(lane->back, 0, bytes);
    measure(lane, kind, "to-host", kind->out, 1);
    end_line(came_back(lane, kind));
    if (kind->both) {
        memset(lane->back, 0, bytes);
        measure(lane, kind, "both", both_ways, 2);
        end_line(came_back(lane, kind));
    }
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
