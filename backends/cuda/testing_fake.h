/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the tests of the fake CUDA share. */
#ifndef DUET_CUDA_TESTING_FAKE_H
#define DUET_CUDA_TESTING_FAKE_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <cuda_runtime_api.h>

#include <glib.h>

#include "tests/fake_cuda/fake.h"

enum { SIZE = 10000, PAGE = 4096 };

static inline void check_is(cudaError_t got, cudaError_t wanted)
{
    g_assert_cmpstr(cudaGetErrorName(got), ==, cudaGetErrorName(wanted));
}

static inline void check(cudaError_t got)
{
    check_is(got, cudaSuccess);
}

/* Fixture of most tests: two devices, and a stream, an event and memory of the first. */
struct set {
    cudaStream_t stream;
    cudaEvent_t event;
    unsigned char *device, *locked;
};

static inline void start_as(struct set *s, struct fake_cuda_config config)
{
    config.devices = 2;
    fake_cuda_reset(&config);
    check(cudaSetDevice(0));
    check(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking));
    check(cudaEventCreateWithFlags(&s->event, cudaEventDefault));
    check(cudaMalloc((void **)&s->device, SIZE));
    check(cudaHostAlloc((void **)&s->locked, SIZE, cudaHostAllocPortable));
}

static inline void start(struct set *s)
{
    start_as(s, (struct fake_cuda_config){0});
}

static inline void stop(const struct set *s)
{
    check(cudaSetDevice(0));
    check(cudaStreamDestroy(s->stream));
    check(cudaEventDestroy(s->event));
    check(cudaFree(s->device));
    check(cudaFreeHost(s->locked));
    g_assert_cmpuint(fake_cuda_leaks(true), ==, 0);
}

/* Frees the fixture when its first device is broken: each call has the error. */
static inline void abandon(const struct set *s, cudaError_t error)
{
    check_is(cudaFree(s->device), error);
    check_is(cudaStreamDestroy(s->stream), error);
    check_is(cudaEventDestroy(s->event), error);
    check_is(cudaFreeHost(s->locked), error);
    g_assert_cmpuint(fake_cuda_leaks(true), ==, 0);
}

static inline struct fake_cuda_stats stats(void)
{
    struct fake_cuda_stats s;
    fake_cuda_stats(&s);
    return s;
}

/* A host function that waits until it may go on. */
struct gate {
    _Atomic(bool) waiting, open;
};

static inline void pass(void *argument)
{
    struct gate *gate = argument;
    gate->waiting = true;
    while (!gate->open)
        (void)sched_yield();
}

static inline void block(cudaStream_t stream, struct gate *gate)
{
    gate->waiting = false;
    gate->open = false;
    check(cudaLaunchHostFunc(stream, pass, gate));
}

#endif
