/* SPDX-License-Identifier: Apache-2.0 */
/* What single calls of CUDA cost on the host, and how soon the GPU has done what they ask for. */
#include <stdlib.h>
#include <unistd.h>

#include "bench/cuda/peers.h"
#include "bench/timing.h"

enum { BATCH = 512, SMALL_BYTES = 64, PIN_BYTES = 256 << 20 };

/* What the calls work on. */
struct bed {
    const struct peers *peers;
    cudaEvent_t event;
    void *device, *host; /* SMALL_BYTES */
    void *pageable;      /* PIN_BYTES */
};

enum what { LAUNCH, SETTLE, RECORD, POLL, QUERY, WAIT_EVENT, COPY, SET, PIN, ALLOCATE, NOTHING };

static void call(const struct bed *bed, enum what what)
{
    cudaStream_t stream = bed->peers->stream;
    cudaError_t status;
    switch (what) {
    case LAUNCH:
        CUDA(peers_launch_empty(stream));
        break;
    case SETTLE: /* ends with the GPU idle */
        peers_wait(bed->peers);
        break;
    case RECORD:
        CUDA(cudaEventRecord(bed->event, stream));
        break;
    case POLL: /* as an engine that polls sees it: until an event behind the kernel is done */
        CUDA(cudaEventRecord(bed->event, stream));
        while (cudaEventQuery(bed->event) == cudaErrorNotReady)
            ;
        break;
    case QUERY:
        status = cudaEventQuery(bed->event);
        if (status != cudaErrorNotReady)
            CUDA(status);
        break;
    case WAIT_EVENT:
        CUDA(cudaStreamWaitEvent(stream, bed->event, 0));
        break;
    case COPY:
        CUDA(cudaMemcpyAsync(bed->device, bed->host, SMALL_BYTES, cudaMemcpyHostToDevice, stream));
        break;
    case SET:
        CUDA(cudaMemsetAsync(bed->device, 0, SMALL_BYTES, stream));
        break;
    case PIN:
        CUDA(cudaHostRegister(bed->pageable, PIN_BYTES, cudaHostRegisterDefault));
        CUDA(cudaHostUnregister(bed->pageable));
        break;
    case ALLOCATE:
        CUDA(cudaFreeHost(peers_pinned(PIN_BYTES)));
        break;
    case NOTHING:
        break;
    }
}

static const struct {
    const char *name;
    enum what first, then;
    unsigned calls; /* a repeat */
} costs[] = {
    {"kernel, enqueued", LAUNCH, NOTHING, BATCH},
    {"kernel, until it is done", LAUNCH, SETTLE, BATCH},
    {"kernel, until an event is seen", LAUNCH, POLL, BATCH},
    {"event, recorded", RECORD, NOTHING, BATCH},
    {"event, asked", QUERY, NOTHING, BATCH},
    {"event, waited for by a stream", WAIT_EVENT, NOTHING, BATCH},
    {"copy of 64 bytes, enqueued", COPY, NOTHING, BATCH},
    {"copy of 64 bytes, until it is done", COPY, SETTLE, BATCH},
    {"memset of 64 bytes, enqueued", SET, NOTHING, BATCH},
    {"page-locking and unlocking of 256 MiB", PIN, NOTHING, 1},
    {"page-locked 256 MiB, allocated and freed", ALLOCATE, NOTHING, 1},
};

void mode_costs(struct peers *peers)
{
    struct bed bed = {.peers = peers,
                      .device = peers_device(SMALL_BYTES),
                      .host = peers_pinned(SMALL_BYTES),
                      .pageable = zeroed(PIN_BYTES)};
    CUDA(cudaEventCreateWithFlags(&bed.event, cudaEventDisableTiming));
    for (size_t i = 0; i < sizeof costs / sizeof costs[0]; i++) {
        struct repeats repeats = {.made = 0};
        while (repeats_go_on(peers, &repeats)) {
            peers_wait(peers);
            double start = seconds();
            for (unsigned k = 0; k < costs[i].calls; k++) {
                call(&bed, costs[i].first);
                call(&bed, costs[i].then);
            }
            repeats_add(&repeats, (seconds() - start) / costs[i].calls);
        }
        line_begin(peers, "cuda");
        line_text("call", costs[i].name);
        line_values(&repeats, "us", -1e6);
        line_end();
    }
    CUDA(cudaEventDestroy(bed.event));
    CUDA(cudaFree(bed.device));
    CUDA(cudaFreeHost(bed.host));
    free(bed.pageable);
}
