/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every kernel for GPUs against the one for CPUs, in both precisions, on matrices whose columns
 * have gaps between them (which must stay), of sizes from 1 on, odd ones too; an impossible
 * factorisation becomes a status; handles are reused. Runs on real or fake GPUs, and is skipped
 * without any.
 */
#include "workloads/kernels_cuda.h"

#include <string.h>

#include <cuda_runtime_api.h>
#include <glib.h>

#include "workloads/kernels_cuda_handles.h"
#include "workloads/test_matrices.h"

enum { BUFFERS_MAX = 10 };

/* ------------------------------------------------------------------------------------------- */
/* Calls on the device                                                                          */

static void check(cudaError_t error)
{
    g_assert_cmpstr(cudaGetErrorName(error), ==, "cudaSuccess");
}

/* A stream, and the page-locked int of its kernel. */
struct seat {
    cudaStream_t stream;
    int *status;
};

static struct seat open_seat(void)
{
    struct seat seat;
    check(cudaSetDevice(0));
    check(cudaStreamCreateWithFlags(&seat.stream, cudaStreamNonBlocking));
    check(cudaHostAlloc((void **)&seat.status, sizeof *seat.status, cudaHostAllocDefault));
    *seat.status = 0;
    return seat;
}

static void close_seat(struct seat *seat)
{
    check(cudaStreamDestroy(seat->stream));
    check(cudaFreeHost(seat->status));
}

static size_t bytes_of(const struct duet_buffer *buffer)
{
    return buffer->ld * buffer->cols * buffer->element_bytes;
}

/* Copies a buffer, gaps too, to the device's memory. */
static struct duet_buffer to_device(const struct duet_buffer *host)
{
    struct duet_buffer copy = *host;
    check(cudaMalloc(&copy.data, bytes_of(host)));
    check(cudaMemcpy(copy.data, host->data, bytes_of(host), cudaMemcpyHostToDevice));
    return copy;
}

/* Copies a buffer back, and frees the copy. */
static void from_device(const struct duet_buffer *host, const struct duet_buffer *copy)
{
    check(cudaMemcpy(host->data, copy->data, bytes_of(host), cudaMemcpyDeviceToHost));
    check(cudaFree(copy->data));
}

/* Enqueues a kernel on copies of the buffers, waits, and copies them back; *status is the kernel's.
 * Returns its error. */
static int launch(const struct seat *seat, const char *base, const struct duet_buffer *buffers,
                  size_t count, const void *args, int *status)
{
    struct duet_buffer copies[BUFFERS_MAX];
    const struct duet_call call = {.args = args,
                                   .buffers = copies,
                                   .buffer_count = count,
                                   .stream = seat->stream,
                                   .status = seat->status,
                                   .message = hear()};
    for (size_t i = 0; i < count; i++)
        copies[i] = to_device(&buffers[i]);
    /* cudaMemcpy may return before the last bytes are there, and the stream does not wait for it */
    check(cudaDeviceSynchronize());
    *seat->status = 0;
    int error = duet__cuda_kernel(base)(&call);
    g_assert_cmpstr(heard(), ==, "");
    check(cudaStreamSynchronize(seat->stream));
    *status = *seat->status;
    for (size_t i = 0; i < count; i++)
        from_device(&buffers[i], &copies[i]);
    return error;
}

/* Clears the part above the diagonal, which is unspecified after potrf: cuSOLVER does not promise
 * to keep it. */
static void forget_upper(const struct duet_buffer *a)
{
    for (size_t j = 1; j < a->cols; j++) {
        for (size_t i = 0; i < j; i++)
            set(a, i, j, 0);
    }
}

/* Runs a kernel on the CPU and on the GPU, on the same buffers: elements differ by less than scale
 * x 10^-14 (10^-6 in single precision), gaps not at all. Frees the buffers. */
static void compare(const char *base, struct duet_buffer *buffers, size_t count, const void *args,
                    double scale)
{
    OWNED(close_seat) struct seat seat = open_seat();
    struct duet_buffer expected[BUFFERS_MAX];
    const struct duet_call call = {.args = args, .buffers = expected, .buffer_count = count};
    int status;
    for (size_t i = 0; i < count; i++) {
        expected[i] = buffers[i];
        expected[i].data = g_memdup2(buffers[i].data, bytes_of(&buffers[i]));
    }
    g_assert_cmpint(duet__kernel(base)(&call), ==, 0);
    g_assert_cmpint(launch(&seat, base, buffers, count, args, &status), ==, 0);
    g_assert_cmpint(status, ==, 0);
    if (!strcmp(base, "potrf")) {
        forget_upper(&buffers[0]);
        forget_upper(&expected[0]);
    }
    for (size_t i = 0; i < count; i++) {
        double *dense = values(&expected[i]);
        same(&buffers[i], dense, scale);
        if (scale == 0)
            g_assert_cmpmem(buffers[i].data, bytes_of(&buffers[i]), expected[i].data,
                            bytes_of(&buffers[i]));
        g_free(dense);
        g_free(expected[i].data);
        g_free(buffers[i].data);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Kernels of tiles                                                                             */

static void tiles(const char *base, size_t m, size_t n, size_t element_bytes, double scale)
{
    const struct duet__axpy_args vectors = {m, -1.25};
    const bool gemm = !strcmp(base, "gemm"), axpy = !strcmp(base, "axpy");
    for (uint32_t form = 0; form < (gemm ? 4 : 1); form++) {
        const struct duet__tile_args forms = {.form = form};
        const void *args = gemm ? (const void *)&forms : axpy ? &vectors : NULL;
        struct duet_buffer b[3];
        size_t count = make_operands(base, m, n, element_bytes, form, b);
        compare(base, b, count, args, scale);
    }
}

/* A kernel, and the error of its elements that is allowed; m, n: the sizes. */
#define DEFINE_TILES(name, scale)                                                                  \
    static void name(size_t m, size_t n, size_t element_bytes)                                     \
    {                                                                                              \
        tiles(#name, m, n, element_bytes, scale);                                                  \
    }                                                                                              \
    DEFINE_TEST(name)

DEFINE_TILES(gemm, (double)(m + n) / 2 + 1)
DEFINE_TILES(syrk, (double)n)
DEFINE_TILES(axpy, 1)
DEFINE_TILES(trsm, 10)
DEFINE_TILES(trsm_l, 10)
DEFINE_TILES(trsm_r, 10)
DEFINE_TILES(potrf, 10 * sqrt((double)m))
DEFINE_TILES(getrf_nopiv, 10 * (double)m)

/* The status of a tile of order 5 with a bad element (2,2) is its third row. */
static void spoilt(const char *base, size_t element_bytes, double value)
{
    OWNED(close_seat) struct seat seat = open_seat();
    struct duet_buffer a = make(0, 5, 5, element_bytes, 5);
    int status;
    for (size_t j = 0; j < 3; j++)
        set(&a, 2, j, j < 2 ? 0 : value);
    g_assert_cmpint(launch(&seat, base, &a, 1, NULL, &status), ==, 0);
    g_assert_cmpint(status, ==, 3);
    g_free(a.data);
}

static void test_failures(void)
{
    for (size_t element_bytes = 4; element_bytes <= 8; element_bytes += 4) {
        spoilt("potrf", element_bytes, -1);
        spoilt("getrf_nopiv", element_bytes, 0);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Jacobi's iteration: equal to the last bit                                                    */

static void jacobi2d(size_t m, size_t n, size_t element_bytes)
{
    struct duet_buffer b[] = {
        make(0, m, n, element_bytes, 0), /* the old block, then its neighbours' borders */
        make(1, 1, n, element_bytes, 0), make(2, 1, n, element_bytes, 0),
        make(3, m, 1, element_bytes, 0), make(4, m, 1, element_bytes, 0),
        make(5, m, n, element_bytes, 0), /* the new block, then its own borders */
        make(6, 1, n, element_bytes, 0), make(7, 1, n, element_bytes, 0),
        make(8, m, 1, element_bytes, 0), make(9, m, 1, element_bytes, 0),
    };
    compare("jacobi2d", b, G_N_ELEMENTS(b), NULL, 0);
}

static void test_jacobi2d(void)
{
    each(jacobi2d);
    jacobi2d(300, 7, 8); /* more rows than a block of threads has */
    jacobi2d(257, 130, 4);
}

/* ------------------------------------------------------------------------------------------- */
/* Handles                                                                                      */

static struct duet__cuda_handles *handles_for(cudaStream_t stream)
{
    struct duet__cuda_handles *handles = NULL;
    int error = duet__cuda_handles(&handles, stream, hear());
    g_assert_cmpstr(heard(), ==, "");
    g_assert_cmpint(error, ==, 0);
    return handles;
}

/* Uses two streams, each of which keeps handles of its own. *blas: those of the first. */
static gpointer use_two(gpointer blas)
{
    struct seat first = open_seat(), second = open_seat();
    struct duet__cuda_handles *one = handles_for(first.stream), *two = handles_for(second.stream);
    g_assert_true(one != two && one->blas != two->blas);
    g_assert_true(handles_for(first.stream) == one && handles_for(second.stream) == two);
    g_assert_true(one->stream == first.stream && two->stream == second.stream);
    ((cublasHandle_t *)blas)[0] = one->blas;
    ((cublasHandle_t *)blas)[1] = two->blas;
    close_seat(&first);
    close_seat(&second);
    return NULL;
}

/* A thread that begins takes over the handles of one that has ended. */
static void test_handles(void)
{
    cublasHandle_t before[2], after[2];
    g_thread_join(g_thread_new("before", use_two, before));
    size_t spare = duet__cuda_handles_spare();
    g_assert_cmpuint(spare, >=, 2);
    g_thread_join(g_thread_new("after", use_two, after));
    g_assert_cmpuint(duet__cuda_handles_spare(), ==, spare);
    g_assert_true((before[0] == after[0] && before[1] == after[1]) ||
                  (before[0] == after[1] && before[1] == after[0]));
}

/* Two simultaneous threads have different handles. */
static gpointer use_kernels(gpointer unused)
{
    for (size_t n = 1; n < 40; n += 6) {
        potrf(n, n, 8);
        getrf_nopiv(40 - n, n, 4);
        gemm(n, 40 - n, 8);
    }
    return NULL;
}

static void test_threads(void)
{
    if (no_blas())
        return;
    GThread *threads[4];
    g_assert_cmpint(duet__blas_begin(4, NULL), ==, 0);
    for (size_t i = 0; i < G_N_ELEMENTS(threads); i++)
        threads[i] = g_thread_new("kernels", use_kernels, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(threads); i++)
        g_thread_join(threads[i]);
}

/* The workspace grows while the old one is in use, and does not overlap info. */
static void test_workspace(void)
{
    OWNED(close_seat) struct seat seat = open_seat();
    struct duet__cuda_handles *handles = handles_for(seat.stream);
    void *last = NULL;
    for (size_t bytes = 1; bytes < 100000; bytes *= 3) {
        void *workspace = NULL;
        int *info = NULL;
        g_assert_cmpint(duet__cuda_workspace(handles, bytes, &workspace, &info, NULL), ==, 0);
        g_assert_cmpuint((uintptr_t)workspace % 256, ==, 0);
        g_assert_cmpuint((uintptr_t)info, >=, (uintptr_t)workspace + bytes);
        check(cudaMemsetAsync(workspace, 0, bytes, seat.stream));
        check(cudaMemsetAsync(info, 0, sizeof *info, seat.stream));
        last = workspace;
    }
    void *again = NULL;
    int *info = NULL;
    g_assert_cmpint(duet__cuda_workspace(handles, 10, &again, &info, NULL), ==, 0);
    g_assert_true(again == last);
    check(cudaStreamSynchronize(seat.stream));
}

/* ------------------------------------------------------------------------------------------- */

/* Panels and their interchanges stay on CPUs. */
static void test_unknown(void)
{
    g_assert_null(duet__cuda_kernel("getrf"));
    g_assert_null(duet__cuda_kernel("laswp"));
    g_assert_null(duet__cuda_kernel("dgemm"));
    g_assert_null(duet__cuda_kernel(""));
}

static bool has_devices(void)
{
    int devices = 0;
    return cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
}

TEST_MAIN_IF(has_devices(), test_gemm, test_syrk, test_axpy, test_trsm, test_trsm_l, test_trsm_r,
             test_potrf, test_getrf_nopiv, test_failures, test_jacobi2d, test_handles, test_threads,
             test_workspace, test_unknown)
