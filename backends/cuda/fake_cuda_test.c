/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fake CUDA keeps the rules of CUDA that its header names, of devices, memory and what is
 * broken: what the tests of the backend for GPUs rely on. Streams: fake_cuda_streams_test.c.
 */
#include "backends/cuda/testing_fake.h"

#include <string.h>

/* ------------------------------------------------------------------------------------------- */
/* Devices                                                                                      */

static void test_absent(void)
{
    struct fake_cuda_config config = {0};
    int count = 7, version = 7;
    void *memory;
    fake_cuda_reset(&config);
    check_is(cudaGetDeviceCount(&count), cudaErrorNoDevice);
    g_assert_cmpint(count, ==, 0);
    check_is(cudaSetDevice(0), cudaErrorNoDevice);
    check_is(cudaMalloc(&memory, 1), cudaErrorNoDevice);
    config.no_driver = true;
    fake_cuda_reset(&config);
    check_is(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
    check(cudaDriverGetVersion(&version));
    g_assert_cmpint(version, ==, 0);
}

static gpointer other_thread(gpointer data)
{
    int device = 7;
    check(cudaGetDevice(&device));
    g_assert_cmpint(device, ==, 0);
    check(cudaGetLastError());
    return NULL;
}

/* The current device and the last error are each thread's own. */
static void test_current(void)
{
    OWNED(stop) struct set s;
    int device, count, value;
    char id[16];
    start(&s);
    check(cudaGetDeviceCount(&count));
    g_assert_cmpint(count, ==, 2);
    check(cudaSetDevice(1));
    check_is(cudaSetDevice(2), cudaErrorInvalidDevice);
    check_is(cudaSetDevice(-1), cudaErrorInvalidDevice);
    (void)g_thread_join(g_thread_new("other", other_thread, NULL));
    check(cudaGetDevice(&device));
    g_assert_cmpint(device, ==, 1);
    check_is(cudaPeekAtLastError(), cudaErrorInvalidDevice);
    check_is(cudaGetLastError(), cudaErrorInvalidDevice);
    check(cudaGetLastError());
    check(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 1));
    g_assert_cmpint(value, >, 0);
    check_is(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 2),
             cudaErrorInvalidDevice);
    check_is(cudaDeviceGetPCIBusId(id, 5, 1), cudaErrorInvalidValue);
    check(cudaDeviceGetPCIBusId(id, sizeof id, 1));
}

static void test_peers(void)
{
    struct set s;
    int can = 7;
    start(&s);
    check(cudaDeviceCanAccessPeer(&can, 0, 1));
    g_assert_cmpint(can, ==, 1);
    check_is(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice);
    check_is(cudaDeviceEnablePeerAccess(1, 1), cudaErrorInvalidValue);
    check(cudaDeviceEnablePeerAccess(1, 0));
    check_is(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
    check(cudaDeviceDisablePeerAccess(1));
    check_is(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
    stop(&s);
    start_as(&s, (struct fake_cuda_config){.no_peers = true});
    check(cudaDeviceCanAccessPeer(&can, 0, 1));
    g_assert_cmpint(can, ==, 0);
    check_is(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessUnsupported);
    stop(&s);
}

/* ------------------------------------------------------------------------------------------- */
/* Memory                                                                                       */

static void test_memory(void)
{
    OWNED(stop) struct set s;
    size_t free_bytes, total;
    void *half, *more;
    start_as(&s, (struct fake_cuda_config){.memory_bytes = 1 << 20});
    check(cudaMemGetInfo(&free_bytes, &total));
    g_assert_cmpuint(total, ==, 1 << 20);
    g_assert_cmpuint(free_bytes, <, total);
    check(cudaMalloc(&half, 1 << 19));
    check_is(cudaMalloc(&more, 1 << 19), cudaErrorMemoryAllocation);
    check_is(cudaMalloc(&more, SIZE_MAX), cudaErrorMemoryAllocation);
    check(cudaSetDevice(1)); /* which has its own */
    check(cudaMalloc(&more, 1 << 19));
    check_is(cudaFree((char *)more + 256), cudaErrorInvalidValue);
    check(cudaFree(more));
    check_is(cudaFree(more), cudaErrorInvalidValue);
    check(cudaFree(NULL));
    check(cudaFree(half));
    g_assert_cmpuint(fake_cuda_used(1), ==, 0);
    g_assert_cmphex(*(unsigned char *)fake_cuda_memory(0, s.device + SIZE - 1, 1), ==, 0xff);
    g_assert_null(fake_cuda_memory(0, s.device + SIZE - 1, 2));
    g_assert_null(fake_cuda_memory(1, s.device, 1));
}

/* A large allocation, too, has bytes of its own, which hold values that nobody has written. */
static void test_large(void)
{
    enum { LARGE = (5 << 20) + SIZE, STEP = 1 << 16 };
    OWNED(stop) struct set s;
    start(&s);
    void *large;
    check(cudaMalloc(&large, LARGE));
    unsigned char *bytes = fake_cuda_memory(0, large, LARGE);
    for (size_t i = LARGE - 1; i < LARGE; i -= STEP) {
        g_assert_cmphex(bytes[i], ==, 0xff);
        bytes[i] = (unsigned char)(i / STEP);
    }
    for (size_t i = LARGE - 1; i < LARGE; i -= STEP)
        g_assert_cmphex(bytes[i], ==, (unsigned char)(i / STEP));
    check(cudaFree(large));
}

static void touch_device_memory(void)
{
    struct set s;
    start(&s);
    s.device[0] = 1;
}

static void test_untouchable(void)
{
    if (g_test_subprocess()) {
        touch_device_memory();
        return;
    }
    g_test_trap_subprocess(NULL, 0, (GTestSubprocessFlags)0);
    g_test_trap_assert_failed();
}

static void test_registrations(void)
{
    struct set s;
    g_autofree unsigned char *pages = g_malloc((size_t)8 * PAGE);
    start_as(&s, (struct fake_cuda_config){.registered_bytes = 4 * PAGE});
    check_is(cudaHostUnregister(pages), cudaErrorHostMemoryNotRegistered);
    check_is(cudaHostRegister(pages, 0, 0), cudaErrorInvalidValue);
    check(cudaHostRegister(pages, 100, cudaHostRegisterPortable));
    check_is(cudaHostRegister(pages, 100, 0), cudaErrorHostMemoryAlreadyRegistered);
    check_is(cudaHostRegister(pages + 99, 100, 0), cudaErrorHostMemoryAlreadyRegistered);
    check(cudaHostRegister(pages + 100, 100, 0));
    check_is(cudaHostRegister(s.locked, 100, 0), cudaErrorHostMemoryAlreadyRegistered);
    check_is(cudaHostRegister(pages + 200, 4 * PAGE, 0), cudaErrorMemoryAllocation);
    g_assert_cmpuint(fake_cuda_registered(), ==, 200);
    check_is(cudaHostUnregister(pages + 1), cudaErrorHostMemoryNotRegistered);
    check_is(cudaFreeHost(pages), cudaErrorInvalidValue);
    check_is(cudaHostUnregister(s.locked), cudaErrorHostMemoryNotRegistered);
    check(cudaHostUnregister(pages));
    check(cudaHostUnregister(pages + 100));
    check_is(cudaHostUnregister(pages), cudaErrorHostMemoryNotRegistered);
    stop(&s);
    start_as(&s, (struct fake_cuda_config){.whole_pages = true});
    unsigned char *aligned = (unsigned char *)(((uintptr_t)pages + PAGE - 1) / PAGE * PAGE);
    check(cudaHostRegister(aligned, 100, 0));
    check_is(cudaHostRegister(aligned + 200, 100, 0), cudaErrorHostMemoryAlreadyRegistered);
    check(cudaHostRegister(aligned + PAGE, 100, 0));
    check(cudaHostUnregister(aligned));
    check(cudaHostUnregister(aligned + PAGE));
    stop(&s);
}

/* Page locks that end under a copy, which CUDA does not check. */
static void test_unregister_early(void)
{
    OWNED(stop) struct set s;
    struct gate gate;
    g_autofree unsigned char *memory = g_malloc0(SIZE);
    start(&s);
    fake_cuda_tolerate(true);
    check(cudaHostRegister(memory, SIZE, 0));
    block(s.stream, &gate);
    check(cudaMemcpyAsync(s.device, memory, SIZE, cudaMemcpyHostToDevice, s.stream));
    check(cudaHostUnregister(memory));
    g_assert_cmpuint(stats().violations, ==, 1);
    gate.open = true;
    check(cudaStreamSynchronize(s.stream));
    fake_cuda_tolerate(false);
}

/* ------------------------------------------------------------------------------------------- */
/* Faults                                                                                       */

static void test_faults(void)
{
    OWNED(stop) struct set s;
    void *memory;
    start(&s);
    fake_cuda_fail("cudaMalloc", 2, cudaErrorMemoryAllocation);
    check(cudaMalloc(&memory, 1));
    check(cudaFree(memory));
    check_is(cudaMalloc(&memory, 1), cudaErrorMemoryAllocation);
    check(cudaMalloc(&memory, 1));
    check(cudaFree(memory));
    g_assert_cmpuint(fake_cuda_calls("cudaMalloc"), ==, 4);
    check(cudaMalloc(&memory, 1));
    g_assert_cmpuint(fake_cuda_leaks(false), ==, 5);
    check(cudaFree(memory));
}

/* A broken device: nothing happens any more, every call says so, and all can be taken away. */
static void test_broken(void)
{
    struct set s;
    int device;
    void *memory;
    start(&s);
    check(cudaMemset(s.device, 1, SIZE));
    check(cudaStreamSynchronize(s.stream));
    fake_cuda_break(0, cudaErrorIllegalAddress, 2);
    check(cudaMemsetAsync(s.device, 2, SIZE, s.stream));
    (void)cudaMemsetAsync(s.device, 3, SIZE, s.stream); /* of which it may know already */
    check_is(cudaStreamSynchronize(s.stream), cudaErrorIllegalAddress);
    g_assert_cmpuint(*(unsigned char *)fake_cuda_memory(0, s.device, 1), ==, 2);
    check_is(cudaEventRecord(s.event, s.stream), cudaErrorIllegalAddress);
    check_is(cudaEventQuery(s.event), cudaErrorIllegalAddress);
    check_is(cudaMalloc(&memory, 1), cudaErrorIllegalAddress);
    check_is(cudaGetLastError(), cudaErrorIllegalAddress);
    check_is(cudaGetLastError(), cudaErrorIllegalAddress);
    check(cudaGetDevice(&device));
    abandon(&s, cudaErrorIllegalAddress);
    check(cudaSetDevice(1)); /* which is sound */
    check(cudaMalloc(&memory, 1));
    check(cudaFree(memory));
}

/* Every injected error of a broken device breaks it, and others do not. */
static void test_sticky(void)
{
    struct set s;
    start(&s);
    fake_cuda_fail("cudaStreamQuery", 1, cudaErrorInvalidValue);
    fake_cuda_fail("cudaStreamQuery", 2, cudaErrorLaunchFailure);
    check_is(cudaStreamQuery(s.stream), cudaErrorInvalidValue);
    check(cudaStreamSynchronize(s.stream));
    check_is(cudaStreamQuery(s.stream), cudaErrorLaunchFailure);
    check_is(cudaStreamSynchronize(s.stream), cudaErrorLaunchFailure);
    abandon(&s, cudaErrorLaunchFailure);
}

/* A stream that waits for another's event does not wait forever when that one's device breaks. */
static void test_broken_wait(void)
{
    struct set s;
    struct gate gate;
    cudaStream_t other;
    start(&s);
    check(cudaSetDevice(1));
    check(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    check(cudaSetDevice(0));
    block(s.stream, &gate);
    check(cudaEventRecord(s.event, s.stream));
    check(cudaStreamWaitEvent(other, s.event, 0));
    fake_cuda_break(0, cudaErrorECCUncorrectable, 0);
    check(cudaStreamSynchronize(other));
    gate.open = true;
    check(cudaStreamDestroy(other));
    abandon(&s, cudaErrorECCUncorrectable);
}

TEST_MAIN(test_absent, test_current, test_peers, test_memory, test_large, test_untouchable,
          test_registrations, test_unregister_early, test_faults, test_broken, test_sticky,
          test_broken_wait)
