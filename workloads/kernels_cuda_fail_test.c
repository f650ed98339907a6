/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel for GPUs that CUDA refuses returns an error that names the call, leaves nothing half
 * made, and works when it is called again. On the fake CUDA, which can be told to fail. */
#include <string.h>

#include <cuda_runtime_api.h>

#include <glib.h>

#include "tests/fake_cuda/fake.h"
#include "workloads/kernels_cuda.h"
#include "workloads/kernels_cuda_handles.h"
#include "workloads/tiles.h"

enum { N = 4, DEVICES = 5 /* one for each test, on which nothing was made before */ };

/* A stream, and an N x N tile in the device's memory. */
struct bench {
    cudaStream_t stream;
    struct duet_buffer tiles[3];
    int *status;
};

static void check(cudaError_t error)
{
    g_assert_cmpstr(cudaGetErrorName(error), ==, "cudaSuccess");
}

static struct bench bench_open(int device)
{
    static const double identity[N * N] = {[0] = 1, [N + 1] = 1, [2 * N + 2] = 1, [3 * N + 3] = 1};
    struct bench bench;
    check(cudaSetDevice(device));
    check(cudaStreamCreateWithFlags(&bench.stream, cudaStreamNonBlocking));
    check(cudaHostAlloc((void **)&bench.status, sizeof *bench.status, cudaHostAllocDefault));
    for (size_t i = 0; i < 3; i++) {
        bench.tiles[i] = (struct duet_buffer){.data = NULL,
                                              .rows = N,
                                              .cols = N,
                                              .ld = N,
                                              .element_bytes = sizeof *identity};
        check(cudaMalloc(&bench.tiles[i].data, sizeof identity));
        check(cudaMemcpy(bench.tiles[i].data, identity, sizeof identity, cudaMemcpyHostToDevice));
    }
    return bench;
}

static void bench_close(struct bench *bench)
{
    check(cudaStreamDestroy(bench->stream));
    check(cudaFreeHost(bench->status));
    for (size_t i = 0; i < 3; i++)
        check(cudaFree(bench->tiles[i].data));
}

static int launch(struct bench *bench, const char *base, struct duet_message *message)
{
    static const struct duet__tile_args args = {.form = 0};
    const struct duet_call call = {.args = &args,
                                   .buffers = bench->tiles,
                                   .buffer_count = 3,
                                   .stream = bench->stream,
                                   .status = bench->status,
                                   .message = message};
    *bench->status = 0;
    return duet__cuda_kernel(base)(&call);
}

static void fails(struct bench *bench, const char *base, int error, const char *why)
{
    g_assert_cmpint(launch(bench, base, hear()), ==, error);
    g_assert_cmpstr(heard(), ==, why);
}

static void works(struct bench *bench, const char *base)
{
    int error = launch(bench, base, hear());
    g_assert_cmpstr(heard(), ==, "");
    g_assert_cmpint(error, ==, 0);
    check(cudaStreamSynchronize(bench->stream));
    g_assert_cmpint(*bench->status, ==, 0);
}

/* A handle that could not be made is made by the next call. */
static void test_handles(void)
{
    OWNED(bench_close) struct bench bench = bench_open(0);
    fake_cuda_fail("cudaGetDevice", 1, cudaErrorInitializationError);
    fails(&bench, "gemm", DUET_ETASK,
          "cudaGetDevice: initialization error (cudaErrorInitializationError)");
    fake_cuda_fail("cudaGetDevice", 2, cudaErrorInitializationError);
    fails(&bench, "gemm", DUET_ETASK, "cublasCreate: CUBLAS_STATUS_NOT_INITIALIZED");
    g_assert_cmpuint(duet__cuda_handles_spare(), ==, 0);
    works(&bench, "gemm");
    fake_cuda_fail("cudaGetDevice", 2, cudaErrorInitializationError);
    fails(&bench, "potrf", DUET_ETASK, "cusolverDnCreate: CUSOLVER_STATUS_NOT_INITIALIZED");
    works(&bench, "potrf");
}

/* A workspace that cannot be allocated; then a status that cannot be copied. */
static void test_workspace(void)
{
    OWNED(bench_close) struct bench bench = bench_open(1);
    uint64_t before = fake_cuda_calls("cudaMallocAsync");
    fake_cuda_fail("cudaMallocAsync", 1, cudaErrorMemoryAllocation);
    fails(&bench, "potrf", DUET_ENOMEM,
          "cudaMallocAsync: cuSOLVER needs 1 MiB of the GPU's memory beside that for data: lower "
          "--gpu-memory (DUET_GPU_MEMORY)");
    works(&bench, "potrf");
    fake_cuda_fail("cudaMemcpyAsync", 1, cudaErrorInvalidValue);
    fails(&bench, "getrf_nopiv", DUET_ETASK,
          "cudaMemcpyAsync: invalid argument (cudaErrorInvalidValue)");
    works(&bench, "getrf_nopiv");
    g_assert_cmpuint(fake_cuda_calls("cudaMallocAsync") - before, ==, 2); /* refused, and kept */
}

/* Arguments that the libraries refuse. */
static void test_arguments(void)
{
    OWNED(bench_close) struct bench bench = bench_open(2);
    bench.tiles[0].ld = N - 1;
    fails(&bench, "gemm", DUET_ETASK, "cublasDgemm: CUBLAS_STATUS_INVALID_VALUE");
    fails(&bench, "trsm", DUET_ETASK, "cublasDtrsm: CUBLAS_STATUS_INVALID_VALUE");
    fails(&bench, "getrf_nopiv", DUET_ETASK, "cusolverDnDgetrf: CUSOLVER_STATUS_INVALID_VALUE");
    bench.tiles[0].ld = N;
    works(&bench, "gemm");
}

/* Work that is enqueued on a destroyed stream is refused. */
static void test_streams(void)
{
    OWNED(bench_close) struct bench bench = bench_open(3);
    cudaStream_t gone;
    check(cudaStreamCreateWithFlags(&gone, cudaStreamNonBlocking));
    check(cudaStreamDestroy(gone));
    cudaStream_t stream = bench.stream;
    bench.stream = gone;
    fails(&bench, "syrk", DUET_ETASK,
          "cudaStreamGetId: invalid resource handle (cudaErrorInvalidResourceHandle)");
    bench.stream = stream;
    works(&bench, "syrk");
}

static void *jacobi2d_on(cudaStream_t stream)
{
    static struct duet_message message;
    struct duet_buffer buffers[10] = {{0}};
    const struct duet_call call = {.buffers = buffers,
                                   .buffer_count = 10,
                                   .stream = stream,
                                   .message = &message};
    for (size_t i = 0; i < 10; i++)
        buffers[i] =
            (struct duet_buffer){.data = NULL, .rows = 0, .cols = 0, .ld = 1, .element_bytes = 8};
    message.text[0] = '\0';
    g_assert_cmpint(duet__cuda_kernel("jacobi2d")(&call), ==, DUET_ETASK);
    return message.text;
}

static void test_jacobi2d(void)
{
    cudaStream_t gone;
    check(cudaSetDevice(3));
    check(cudaStreamCreateWithFlags(&gone, cudaStreamNonBlocking));
    check(cudaStreamDestroy(gone));
    g_assert_cmpstr(jacobi2d_on(gone), ==,
                    "cudaLaunchKernel: invalid resource handle (cudaErrorInvalidResourceHandle)");
}

/* On a broken device every kernel is refused by a call with a name. */
static void test_broken(void)
{
    struct bench bench = bench_open(4);
    works(&bench, "potrf");
    fake_cuda_break(4, cudaErrorIllegalAddress, 0);
    g_assert_cmpint(launch(&bench, "gemm", hear()), ==, DUET_ETASK);
    g_test_message("%s", heard());
    g_assert_nonnull(strchr(heard(), ':'));
    g_assert_cmpint(launch(&bench, "potrf", hear()), ==, DUET_ETASK);
    g_assert_nonnull(strchr(heard(), ':'));
}

/* A status without a name is reported by number. */
static void test_names(void)
{
    WORKS(duet__cusolver_check(CUSOLVER_STATUS_SUCCESS, "f", hear()));
    g_assert_cmpint(duet__cusolver_check(CUSOLVER_STATUS_ALLOC_FAILED, "f", hear()), ==,
                    DUET_ENOMEM);
    g_assert_cmpstr(heard(), ==, "f: CUSOLVER_STATUS_ALLOC_FAILED");
    g_assert_cmpint(duet__cusolver_check((cusolverStatus_t)12345, "f", hear()), ==, DUET_ETASK);
    g_assert_cmpstr(heard(), ==, "f: status 12345 of cuSOLVER");
}

static const struct fake_cuda_config config = {.devices = DEVICES};

/* Handles are bound anew if a new stream has the address of a destroyed one. */
static void test_same_address(void)
{
    struct duet__cuda_handles *handles[2];
    cudaStream_t streams[2];
    unsigned long long id;
    for (unsigned i = 0; i < 2; i++) {
        fake_cuda_reset(&config); /* makes the fake give the same addresses again */
        check(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
        check(cudaStreamGetId(streams[i], &id));
        WORKS(duet__cuda_handles(&handles[i], streams[i], hear()));
        g_assert_cmpuint(handles[i]->stream_id, ==, id);
        check(cudaStreamDestroy(streams[i]));
    }
    g_assert_true(streams[0] == streams[1] && handles[0] == handles[1]);
}

TEST_MAIN(test_same_address, test_handles, test_workspace, test_arguments, test_streams,
          test_jacobi2d, test_names, test_broken)
