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

static void launch(struct bed *bed)
{
    CUDA(peers_launch_empty(bed->peers->stream));
}

static void record(struct bed *bed)
{
    CUDA(cudaEventRecord(bed->event, bed->peers->stream));
}

static void query(struct bed *bed)
{
    cudaError_t status = cudaEventQuery(bed->event);
    if (status != cudaErrorNotReady)
        CUDA(status);
}

static void wait_event(struct bed *bed)
{
    CUDA(cudaStreamWaitEvent(bed->peers->stream, bed->event, 0));
}

static void copy(struct bed *bed)
{
    CUDA(cudaMemcpyAsync(bed->device, bed->host, SMALL_BYTES, cudaMemcpyHostToDevice,
                         bed->peers->stream));
}

static void set(struct bed *bed)
{
    CUDA(cudaMemsetAsync(bed->device, 0, SMALL_BYTES, bed->peers->stream));
}

/* Ends with the GPU idle. */
static void settle(struct bed *bed)
{
    peers_wait(bed->peers);
}

static void launch_and_settle(struct bed *bed)
{
    launch(bed);
    settle(bed);
}

/* As an engine that polls sees it: until an event behind the kernel is done. */
static void launch_and_poll(struct bed *bed)
{
    launch(bed);
    record(bed);
    while (cudaEventQuery(bed->event) == cudaErrorNotReady)
        ;
}

static void copy_and_settle(struct bed *bed)
{
    copy(bed);
    settle(bed);
}

static void pin_and_unpin(struct bed *bed)
{
    CUDA(cudaHostRegister(bed->pageable, PIN_BYTES, cudaHostRegisterDefault));
    CUDA(cudaHostUnregister(bed->pageable));
}

static void allocate(struct bed *bed)
{
    CUDA(cudaFreeHost(peers_pinned(PIN_BYTES)));
}

static const struct {
    const char *name;
    void (*call)(struct bed *bed);
    unsigned calls; /* a repeat */
} costs[] = {
    {"kernel, enqueued", launch, BATCH},
    {"kernel, until it is done", launch_and_settle, BATCH},
    {"kernel, until an event is seen", launch_and_poll, BATCH},
    {"event, recorded", record, BATCH},
    {"event, asked", query, BATCH},
    {"event, waited for by a stream", wait_event, BATCH},
    {"copy of 64 bytes, enqueued", copy, BATCH},
    {"copy of 64 bytes, until it is done", copy_and_settle, BATCH},
    {"memset of 64 bytes, enqueued", set, BATCH},
    {"page-locking and unlocking of 256 MiB", pin_and_unpin, 1},
    {"page-locked 256 MiB, allocated and freed", allocate, 1},
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
            settle(&bed);
            double start = seconds();
            for (unsigned k = 0; k < costs[i].calls; k++)
                costs[i].call(&bed);
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
