/* SPDX-License-Identifier: Apache-2.0 */
/* cuSOLVER on LAPACKE, and the libraries as duet opens them. */
#include <cusolverDn.h>
#include <lapacke.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake_cuda/cublas.h"
#include "tests/fake_cuda/internal.h"
#include "tests/fake_cuda/library.h"

enum { POISON = 0xff, SPARE = 37 /* elements of workspace beside the columns */ };

struct cusolverDnContext {
    struct fake_library library; /* first, as in every handle */
};

static cusolverStatus_t create(cusolverDnHandle_t *out)
{
    int device;
    *out = NULL;
    if (cudaGetDevice(&device))
        return CUSOLVER_STATUS_NOT_INITIALIZED;
    *out = calloc(1, sizeof **out);
    if (!*out)
        abort();
    (*out)->library.device = (unsigned)device;
    return CUSOLVER_STATUS_SUCCESS;
}

static cusolverStatus_t destroy(cusolverDnHandle_t handle)
{
    if (!handle)
        return CUSOLVER_STATUS_NOT_INITIALIZED;
    free(handle);
    return CUSOLVER_STATUS_SUCCESS;
}

static cusolverStatus_t set_stream(cusolverDnHandle_t handle, cudaStream_t stream)
{
    if (!handle)
        return CUSOLVER_STATUS_NOT_INITIALIZED;
    handle->library.stream = stream;
    return CUSOLVER_STATUS_SUCCESS;
}

/* Arguments of a factorisation of m x n, with `pivots` or without. */
struct call {
    bool single, lower;
    int m, n, ld, size;
    void *a, *workspace, *pivots, *info;
};

static int workspace_of(int m, int n)
{
    return m + n + SPARE;
}

/* Computes a factorisation, all of whose data lies on the device. */
static cusolverStatus_t compute(cusolverDnHandle_t handle, void (*run)(void *argument),
                                struct call call)
{
    size_t bytes = call.single ? sizeof(float) : sizeof(double);
    size_t shortest = (size_t)(call.m < call.n ? call.m : call.n);
    if (!handle)
        return CUSOLVER_STATUS_NOT_INITIALIZED;
    if (call.m < 0 || call.n < 0 || call.ld < (call.m > 1 ? call.m : 1) ||
        call.size < workspace_of(call.m, call.n))
        return CUSOLVER_STATUS_INVALID_VALUE;
    const struct fake_matrix matrices[] = {
        {&call.a, (size_t)call.m, (size_t)call.n, (size_t)call.ld, bytes},
        {&call.workspace, (size_t)call.size, 1, 0, bytes},
        {&call.pivots, call.pivots ? shortest : 0, 1, 0, sizeof(int)},
        {&call.info, 1, 1, 0, sizeof(int)},
    };
    cudaError_t error = fake_compute(&handle->library, run, &call, sizeof call, matrices, 4);
    return error ? CUSOLVER_STATUS_EXECUTION_FAILED : CUSOLVER_STATUS_SUCCESS;
}

static void use_workspace(const struct call *x)
{
    memset(x->workspace, POISON, (size_t)x->size * (x->single ? sizeof(float) : sizeof(double)));
}

static void run_potrf(void *argument)
{
    const struct call *x = argument;
    char uplo = x->lower ? 'L' : 'U';
    use_workspace(x);
    *(int *)x->info = x->single ? LAPACKE_spotrf_work(LAPACK_COL_MAJOR, uplo, x->n, x->a, x->ld)
                                : LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, uplo, x->n, x->a, x->ld);
}

/*
 * Defines LU without interchanges; info is the first pivot that is 0, and the factors then are of
 * no use.
 */
#define DEFINE_NO_PIVOTS(name, type)                                                               \
    static int name(type *a, size_t m, size_t n, size_t ld)                                        \
    {                                                                                              \
        int info = 0;                                                                              \
        for (size_t k = 0; k < m && k < n; k++) {                                                  \
            type pivot = a[k + k * ld];                                                            \
            if (pivot == 0 && !info)                                                               \
                info = (int)k + 1;                                                                 \
            for (size_t i = k + 1; i < m; i++)                                                     \
                a[i + k * ld] /= pivot;                                                            \
            for (size_t j = k + 1; j < n; j++)                                                     \
                for (size_t i = k + 1; i < m; i++)                                                 \
                    a[i + j * ld] -= a[i + k * ld] * a[k + j * ld];                                \
        }                                                                                          \
        return info;                                                                               \
    }

DEFINE_NO_PIVOTS(without_pivots_single, float)
DEFINE_NO_PIVOTS(without_pivots_double, double)

static void run_getrf(void *argument)
{
    const struct call *x = argument;
    size_t m = (size_t)x->m, n = (size_t)x->n, ld = (size_t)x->ld;
    int info;
    use_workspace(x);
    if (!x->pivots)
        info = x->single ? without_pivots_single(x->a, m, n, ld)
                         : without_pivots_double(x->a, m, n, ld);
    else if (x->single)
        info = LAPACKE_sgetrf_work(LAPACK_COL_MAJOR, x->m, x->n, x->a, x->ld, x->pivots);
    else
        info = LAPACKE_dgetrf_work(LAPACK_COL_MAJOR, x->m, x->n, x->a, x->ld, x->pivots);
    *(int *)x->info = info;
}

/* Defines the functions of both precisions, as cuSOLVER declares them. */
#define DEFINE_FACTORISATIONS(prefix, type, is_single)                                             \
    static cusolverStatus_t prefix##potrf_size(cusolverDnHandle_t handle, cublasFillMode_t uplo,   \
                                               int n, type *a, int lda, int *size)                 \
    {                                                                                              \
        *size = workspace_of(n, n);                                                                \
        return handle ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_NOT_INITIALIZED;                 \
    }                                                                                              \
    static cusolverStatus_t prefix##getrf_size(cusolverDnHandle_t handle, int m, int n, type *a,   \
                                               int lda, int *size)                                 \
    {                                                                                              \
        *size = workspace_of(m, n);                                                                \
        return handle ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_NOT_INITIALIZED;                 \
    }                                                                                              \
    static cusolverStatus_t prefix##potrf(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, \
                                          type *a, int lda, type *workspace, int size, int *info)  \
    {                                                                                              \
        return compute(handle, run_potrf,                                                          \
                       (struct call){.single = is_single,                                          \
                                     .lower = uplo == CUBLAS_FILL_MODE_LOWER,                      \
                                     .m = n,                                                       \
                                     .n = n,                                                       \
                                     .ld = lda,                                                    \
                                     .size = size,                                                 \
                                     .a = a,                                                       \
                                     .workspace = workspace,                                       \
                                     .info = info});                                               \
    }                                                                                              \
    static cusolverStatus_t prefix##getrf(cusolverDnHandle_t handle, int m, int n, type *a,        \
                                          int lda, type *workspace, int *pivots, int *info)        \
    {                                                                                              \
        return compute(handle, run_getrf,                                                          \
                       (struct call){.single = is_single,                                          \
                                     .m = m,                                                       \
                                     .n = n,                                                       \
                                     .ld = lda,                                                    \
                                     .size = workspace_of(m, n),                                   \
                                     .a = a,                                                       \
                                     .workspace = workspace,                                       \
                                     .pivots = pivots,                                             \
                                     .info = info});                                               \
    }

DEFINE_FACTORISATIONS(s, float, true)
DEFINE_FACTORISATIONS(d, double, false)

static struct duet__cuda_library library;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void open_libraries(void)
{
    fake_cublas(&library);
    fake_cusolver(&library);
}

void fake_cusolver(struct duet__cuda_library *out)
{
    out->cusolverDnCreate = create;
    out->cusolverDnDestroy = destroy;
    out->cusolverDnSetStream = set_stream;
    out->cusolverDnSpotrf_bufferSize = spotrf_size;
    out->cusolverDnDpotrf_bufferSize = dpotrf_size;
    out->cusolverDnSpotrf = spotrf;
    out->cusolverDnDpotrf = dpotrf;
    out->cusolverDnSgetrf_bufferSize = sgetrf_size;
    out->cusolverDnDgetrf_bufferSize = dgetrf_size;
    out->cusolverDnSgetrf = sgetrf;
    out->cusolverDnDgetrf = dgetrf;
}

/* Returns the fakes of the two libraries, which are always there (kernels_cuda_handles.h). */
const struct duet__cuda_library *duet__cuda_library(struct duet_message *message)
{
    (void)pthread_once(&once, open_libraries);
    return &library;
}
