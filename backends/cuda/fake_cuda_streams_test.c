/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fake CUDA keeps the rules of CUDA that its header names, of streams, events, copies and
 * libraries.
 */
#include "backends/cuda/testing_fake.h"

#include <string.h>

#include "workloads/kernels_cuda_handles.h"

/* ------------------------------------------------------------------------------------------- */
/* Streams and events                                                                           */

static void test_handles(void)
{
    OWNED(stop) struct set s;
    cudaStream_t stream;
    cudaEvent_t event, other;
    start(&s);
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    check(cudaStreamDestroy(stream));
    check(cudaEventDestroy(event));
    check_is(cudaStreamDestroy(stream), cudaErrorInvalidResourceHandle);
    check_is(cudaEventDestroy(event), cudaErrorInvalidResourceHandle);
    check_is(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
    check_is(cudaStreamQuery(NULL), cudaErrorInvalidResourceHandle);
    check_is(cudaEventRecord(event, s.stream), cudaErrorInvalidResourceHandle);
    check_is(cudaEventRecord(s.event, stream), cudaErrorInvalidResourceHandle);
    check_is(cudaEventQuery(event), cudaErrorInvalidResourceHandle);
    check_is(cudaMemcpyAsync(s.device, s.locked, 1, cudaMemcpyDefault, stream),
             cudaErrorInvalidResourceHandle);
    check(cudaSetDevice(1));
    check(cudaEventCreate(&other));
    check_is(cudaEventRecord(other, s.stream), cudaErrorInvalidResourceHandle);
    check_is((cudaError_t)fake_cuda_launch(s.stream, pass, NULL, 0),
             cudaErrorInvalidResourceHandle); /* of the device that is not current */
    check(cudaEventDestroy(other));
}

/* Streams are FIFOs, beside each other but where one waits for an event of another. */
static void test_order(void)
{
    OWNED(stop) struct set s;
    cudaStream_t second;
    struct gate gate;
    unsigned char back = 0;
    start(&s);
    check(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    check(cudaEventQuery(s.event)); /* never recorded */
    block(s.stream, &gate);
    check(cudaMemsetAsync(s.device, 7, SIZE, s.stream));
    check(cudaEventRecord(s.event, s.stream));
    check_is(cudaEventQuery(s.event), cudaErrorNotReady);
    check_is(cudaStreamQuery(s.stream), cudaErrorNotReady);
    check(cudaMemsetAsync(s.device, 3, 1, second));
    check(cudaStreamSynchronize(second)); /* did not wait */
    check(cudaMemcpy(&back, s.device, 1, cudaMemcpyDeviceToHost));
    g_assert_cmpuint(back, ==, 3);
    check(cudaStreamWaitEvent(second, s.event, 0));
    check(cudaMemcpyAsync(s.locked, s.device, 1, cudaMemcpyDeviceToHost, second));
    check_is(cudaStreamQuery(second), cudaErrorNotReady);
    gate.open = true;
    check(cudaEventSynchronize(s.event));
    check(cudaEventQuery(s.event));
    check(cudaStreamSynchronize(second));
    g_assert_cmpuint(s.locked[0], ==, 7);
    check(cudaStreamDestroy(second));
}

static void test_elapsed(void)
{
    OWNED(stop) struct set s;
    cudaEvent_t end, blind;
    struct gate gate;
    float ms = -1;
    start(&s);
    check(cudaEventCreate(&end));
    check(cudaEventCreateWithFlags(&blind, cudaEventDisableTiming));
    check_is(cudaEventElapsedTime(&ms, s.event, end), cudaErrorInvalidResourceHandle);
    check(cudaEventRecord(s.event, s.stream));
    check(cudaEventRecord(blind, s.stream));
    block(s.stream, &gate);
    check(cudaEventRecord(end, s.stream));
    check_is(cudaEventElapsedTime(&ms, s.event, end), cudaErrorNotReady);
    check(cudaEventSynchronize(s.event)); /* so that it is older than what follows */
    gint64 begun = g_get_monotonic_time();
    while (g_get_monotonic_time() - begun < 2000)
        (void)sched_yield();
    gate.open = true;
    check(cudaEventSynchronize(end));
    check(cudaEventElapsedTime(&ms, s.event, end));
    g_assert_cmpfloat(ms, >=, 1.99); /* its clock may be slower than the host's */
    check(cudaEventElapsedTime(&ms, end, s.event));
    g_assert_cmpfloat(ms, <=, -1.99);
    check_is(cudaEventElapsedTime(&ms, s.event, blind), cudaErrorInvalidResourceHandle);
    check(cudaEventDestroy(end));
    check(cudaEventDestroy(blind));
}

static void call_cuda(void *argument)
{
    *(cudaError_t *)argument = cudaStreamQuery(NULL);
}

static void test_host_function(void)
{
    OWNED(stop) struct set s;
    cudaError_t error = cudaSuccess;
    start(&s);
    check_is(cudaLaunchHostFunc(s.stream, NULL, NULL), cudaErrorInvalidValue);
    check(cudaLaunchHostFunc(s.stream, call_cuda, &error));
    check(cudaStreamSynchronize(s.stream));
    check_is(error, cudaErrorNotPermitted);
    g_assert_cmpuint(stats().host_functions, ==, 1);
}

/* ------------------------------------------------------------------------------------------- */
/* Graphs                                                                                       */

/* A captured stream does nothing until its graph is launched, each time; the graph can be updated.
 */
static void test_graph(void)
{
    OWNED(stop) struct set s;
    cudaGraph_t graph, other;
    cudaGraphExec_t exec;
    cudaGraphExecUpdateResultInfo info;
    unsigned char back = 0;
    start(&s);
    check(cudaMemset(s.device, 1, SIZE));
    check_is(cudaStreamEndCapture(s.stream, &graph), cudaErrorIllegalState);
    for (unsigned i = 0; i < 2; i++) {
        check(cudaStreamBeginCapture(s.stream, cudaStreamCaptureModeThreadLocal));
        check(cudaMemsetAsync(s.device, 7 + (int)i, SIZE, s.stream));
        check(cudaStreamEndCapture(s.stream, i ? &other : &graph));
    }
    check(cudaGraphInstantiate(&exec, graph, 0));
    check(cudaMemcpy(&back, s.device, 1, cudaMemcpyDeviceToHost));
    g_assert_cmpuint(back, ==, 1);
    for (unsigned i = 0; i < 2; i++) {
        check(cudaGraphLaunch(exec, s.stream));
        check(cudaStreamSynchronize(s.stream));
        check(cudaMemcpy(&back, s.device, 1, cudaMemcpyDeviceToHost));
        g_assert_cmpuint(back, ==, 7 + i);
        check(cudaGraphExecUpdate(exec, other, &info));
    }
    check(cudaGraphDestroy(other));
    check(cudaGraphExecDestroy(exec));
    check_is(cudaGraphLaunch(exec, s.stream), cudaErrorInvalidValue);
    g_assert_cmpuint(fake_cuda_leaks(false), ==, 4 + 1); /* what `stop` frees, and `graph` */
    check(cudaGraphDestroy(graph));
}

/* Calls that could wait, allocate or record, and copies of pageable memory, spoil a capture. */
static void test_spoiled(void)
{
    OWNED(stop) struct set s;
    cudaGraph_t graph;
    void *memory = NULL;
    unsigned char pageable = 0;
    start(&s);
    for (unsigned i = 0; i < 5; i++) {
        check(cudaStreamBeginCapture(s.stream, cudaStreamCaptureModeThreadLocal));
        const cudaError_t error =
            i == 0   ? cudaStreamSynchronize(s.stream)
            : i == 1 ? cudaMalloc(&memory, 1)
            : i == 2 ? cudaEventRecord(s.event, s.stream)
            : i == 3 ? cudaMemcpyAsync(s.device, &pageable, 1, cudaMemcpyDefault, s.stream)
                     : cudaSuccess;
        check_is(error, i < 4 ? cudaErrorStreamCaptureUnsupported : cudaSuccess);
        check_is(cudaStreamEndCapture(s.stream, &graph),
                 i < 4 ? cudaErrorStreamCaptureInvalidated : cudaSuccess);
    }
    check(cudaGraphDestroy(graph));
    check(cudaStreamSynchronize(s.stream));
}

/* ------------------------------------------------------------------------------------------- */
/* Copies                                                                                       */

static void test_ranges(void)
{
    OWNED(stop) struct set s;
    g_autofree unsigned char *memory = g_malloc0(SIZE);
    start(&s);
    check(cudaHostRegister(memory + 1000, 1000, 0));
    check(cudaHostRegister(memory + 2000, 1000, 0));
    struct {
        unsigned char *host;
        size_t bytes;
        cudaError_t error;
    } cases[] = {
        {memory + 1000, 1000, cudaSuccess},
        {memory, 1000, cudaSuccess},
        {memory + 3000, 500, cudaSuccess},
        {memory + 999, 2, cudaErrorInvalidValue},
        {memory + 1500, 1000, cudaErrorInvalidValue},
        {memory + 2999, 2, cudaErrorInvalidValue},
        {memory, 5000, cudaErrorInvalidValue},
        {s.locked, SIZE, cudaSuccess},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        size_t bytes = cases[i].bytes;
        unsigned char *host = cases[i].host;
        check_is(cudaMemcpyAsync(s.device, host, bytes, cudaMemcpyHostToDevice, s.stream),
                 cases[i].error);
        check_is(cudaMemcpyAsync(host, s.device, bytes, cudaMemcpyDeviceToHost, s.stream),
                 cases[i].error);
    }
    check_is(cudaMemcpyAsync(s.device + 1, s.locked, SIZE, cudaMemcpyHostToDevice, s.stream),
             cudaErrorInvalidValue);
    check_is(cudaMemsetAsync(s.device + 1, 0, SIZE, s.stream), cudaErrorInvalidValue);
    check_is(cudaMemsetAsync(s.locked, 0, SIZE, s.stream), cudaErrorInvalidValue);
    check(cudaStreamSynchronize(s.stream));
    check(cudaHostUnregister(memory + 1000));
    check(cudaHostUnregister(memory + 2000));
}

/* Memory that is not page-locked: what the host waits for, and what is taken at once. */
static void test_pageable(void)
{
    OWNED(stop) struct set s;
    struct gate gate;
    unsigned char in[64], out[64] = {0};
    start(&s);
    memset(in, 5, sizeof in);
    block(s.stream, &gate);
    check(cudaMemcpyAsync(s.device, in, sizeof in, cudaMemcpyHostToDevice, s.stream));
    memset(in, 6, sizeof in);
    gate.open = true;
    check(cudaMemcpyAsync(out, s.device, sizeof out, cudaMemcpyDeviceToHost, s.stream));
    g_assert_cmpuint(out[63], ==, 5); /* without waiting for the stream here */
    struct fake_cuda_stats counted = stats();
    g_assert_cmpuint(counted.pageable_in, ==, 1);
    g_assert_cmpuint(counted.pageable_out, ==, 1);
    g_assert_cmpuint(counted.pageable_bytes, ==, 128);
    memset(s.locked, 1, SIZE);
    block(s.stream, &gate);
    check(cudaMemcpyAsync(s.device, s.locked, SIZE, cudaMemcpyHostToDevice, s.stream));
    memset(s.locked, 2, SIZE); /* seen by the copy */
    gate.open = true;
    check(cudaStreamSynchronize(s.stream));
    check(cudaMemcpy(out, s.device, 1, cudaMemcpyDefault));
    g_assert_cmpuint(out[0], ==, 2);
    g_assert_cmpuint(stats().in_bytes, ==, SIZE);
}

static void test_columns(void)
{
    OWNED(stop) struct set s;
    start(&s);
    for (unsigned i = 0; i < SIZE; i++)
        s.locked[i] = (unsigned char)(i % 251);
    check(cudaMemset(s.device, 0, SIZE));
    check(cudaMemcpy2DAsync(s.device, 8, s.locked, 100, 5, 10, cudaMemcpyHostToDevice, s.stream));
    check(cudaStreamSynchronize(s.stream));
    const unsigned char *got = fake_cuda_memory(0, s.device, 80);
    for (unsigned i = 0; i < 80; i++)
        g_assert_cmpuint(got[i], ==, i % 8 < 5 ? (i / 8 * 100 + i % 8) % 251 : 0);
    check_is(cudaMemcpy2DAsync(s.device, 4, s.locked, 100, 5, 10, cudaMemcpyDefault, s.stream),
             cudaErrorInvalidPitchValue);
    check_is(cudaMemcpy2DAsync(s.device, 8, s.locked, (size_t)1 << 31, 5, 1, cudaMemcpyDefault,
                               s.stream),
             cudaErrorInvalidPitchValue);
    check_is(cudaMemcpy2DAsync(s.device, 8, s.locked, 100, 5, 101, cudaMemcpyDefault, s.stream),
             cudaErrorInvalidValue);
    check_is(cudaMemcpyAsync(s.device, s.locked, 1, (enum cudaMemcpyKind)9, s.stream),
             cudaErrorInvalidMemcpyDirection);
    fake_cuda_tolerate(true);
    check_is(cudaMemcpyAsync(s.device, s.locked, 1, cudaMemcpyDeviceToHost, s.stream),
             cudaErrorInvalidValue);
    g_assert_cmpuint(stats().violations, ==, 1);
}

static void test_across(void)
{
    OWNED(stop) struct set s;
    unsigned char *there;
    start(&s);
    check(cudaSetDevice(1));
    check(cudaMalloc((void **)&there, SIZE));
    check(cudaSetDevice(0));
    check(cudaMemset(s.device, 9, SIZE));
    check(cudaMemcpyPeerAsync(there, 1, s.device, 0, SIZE, s.stream));
    g_assert_cmpuint(stats().staged, ==, 1);
    check(cudaDeviceEnablePeerAccess(1, 0));
    check(cudaMemcpyAsync(there, s.device, SIZE, cudaMemcpyDeviceToDevice, s.stream));
    g_assert_cmpuint(stats().direct, ==, 1);
    check_is(cudaMemcpyPeerAsync(there, 0, s.device, 1, SIZE, s.stream), cudaErrorInvalidValue);
    check_is(cudaMemcpyPeerAsync(there, 1, s.locked, 0, SIZE, s.stream), cudaErrorInvalidValue);
    check_is(cudaMemcpyPeerAsync(there, 2, s.device, 0, SIZE, s.stream), cudaErrorInvalidDevice);
    check(cudaStreamSynchronize(s.stream));
    g_assert_cmpuint(*(unsigned char *)fake_cuda_memory(1, there + SIZE - 1, 1), ==, 9);
    check(cudaFree(there));
}

/* ------------------------------------------------------------------------------------------- */
/* Libraries                                                                                    */

/* y := 2 x + y, in the place of all functions, which are tried beside the CPU's elsewhere. */
static void test_library(void)
{
    OWNED(stop) struct set s;
    const struct duet__cuda_library *library = duet__cuda_library(hear());
    const double x[3] = {1, 2, 3}, two = 2;
    double y[3];
    cublasHandle_t handle;
    start(&s);
    g_assert_cmpint(library->cublasCreate(&handle), ==, CUBLAS_STATUS_SUCCESS);
    g_assert_cmpint(library->cublasDaxpy(handle, 3, &two, (double *)s.device, 1, (double *)s.device,
                                         1),
                    ==, CUBLAS_STATUS_EXECUTION_FAILED); /* without a stream */
    g_assert_cmpint(library->cublasSetStream(handle, s.stream), ==, CUBLAS_STATUS_SUCCESS);
    double *dx = (double *)s.device, *dy = dx + 3;
    check(cudaMemcpy(dx, x, sizeof x, cudaMemcpyDefault));
    check(cudaMemcpy(dy, x, sizeof x, cudaMemcpyDefault));
    g_assert_cmpint(library->cublasDaxpy(handle, 3, &two, dx, 1, dy, 1), ==, CUBLAS_STATUS_SUCCESS);
    check(cudaStreamSynchronize(s.stream));
    check(cudaMemcpy(y, dy, sizeof y, cudaMemcpyDefault));
    g_assert_true(y[0] == 3 && y[1] == 6 && y[2] == 9);
    check(cudaSetDevice(1));
    g_assert_cmpint(library->cublasDaxpy(handle, 3, &two, dx, 1, dy, 1), ==,
                    CUBLAS_STATUS_EXECUTION_FAILED);
    check(cudaSetDevice(0));
    g_assert_cmpint(library->cublasDestroy(handle), ==, CUBLAS_STATUS_SUCCESS);
}

/* A kernel that is given memory of the host breaks its device, when it is executed. */
static void test_illegal_address(void)
{
    struct set s;
    const struct duet__cuda_library *library = duet__cuda_library(hear());
    const double one = 1;
    double host[3] = {1, 2, 3};
    cublasHandle_t handle;
    start(&s);
    g_assert_cmpint(library->cublasCreate(&handle), ==, CUBLAS_STATUS_SUCCESS);
    g_assert_cmpint(library->cublasSetStream(handle, s.stream), ==, CUBLAS_STATUS_SUCCESS);
    g_assert_cmpint(library->cublasDaxpy(handle, 3, &one, host, 1, (double *)s.device, 1), ==,
                    CUBLAS_STATUS_SUCCESS);
    check_is(cudaStreamSynchronize(s.stream), cudaErrorIllegalAddress);
    g_assert_cmpint(library->cublasDestroy(handle), ==, CUBLAS_STATUS_SUCCESS);
    abandon(&s, cudaErrorIllegalAddress);
}

TEST_MAIN(test_handles, test_order, test_elapsed, test_host_function, test_graph, test_spoiled,
          test_ranges, test_pageable, test_columns, test_across, test_library, test_illegal_address)
