/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of CUDA's runtime, cuBLAS and cuSOLVER by the names of the call and of the status. */
#include "workloads/kernels_cuda_handles.h"

int duet__cublas_check(const struct duet__cuda_library *library, cublasStatus_t status,
                       const char *call, struct duet_message *message)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return 0;
    return duet_fail(message, status == CUBLAS_STATUS_ALLOC_FAILED ? DUET_ENOMEM : DUET_ETASK,
                     "%s: %s", call, library->cublasGetStatusName(status));
}

/* Names of statuses, for which cuSOLVER has no function. */
static const struct {
    cusolverStatus_t status;
    const char *name;
} names[] = {
#define NAME(status)                                                                               \
    {                                                                                              \
        status, #status                                                                            \
    }
    NAME(CUSOLVER_STATUS_NOT_INITIALIZED), NAME(CUSOLVER_STATUS_ALLOC_FAILED),
    NAME(CUSOLVER_STATUS_INVALID_VALUE),   NAME(CUSOLVER_STATUS_ARCH_MISMATCH),
    NAME(CUSOLVER_STATUS_MAPPING_ERROR),   NAME(CUSOLVER_STATUS_EXECUTION_FAILED),
    NAME(CUSOLVER_STATUS_INTERNAL_ERROR),  NAME(CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED),
    NAME(CUSOLVER_STATUS_NOT_SUPPORTED),   NAME(CUSOLVER_STATUS_ZERO_PIVOT),
    NAME(CUSOLVER_STATUS_INVALID_LICENSE), NAME(CUSOLVER_STATUS_INVALID_WORKSPACE),
};

int duet__cusolver_check(cusolverStatus_t status, const char *call, struct duet_message *message)
{
    if (status == CUSOLVER_STATUS_SUCCESS)
        return 0;
    int error = status == CUSOLVER_STATUS_ALLOC_FAILED ? DUET_ENOMEM : DUET_ETASK;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i].status == status)
            return duet_fail(message, error, "%s: %s", call, names[i].name);
    }
    return duet_fail(message, error, "%s: status %d of cuSOLVER", call, (int)status);
}

int duet__cudart_check(cudaError_t status, const char *call, struct duet_message *message)
{
    if (status == cudaSuccess)
        return 0;
    return duet_fail(message, status == cudaErrorMemoryAllocation ? DUET_ENOMEM : DUET_ETASK,
                     "%s: %s (%s)", call, cudaGetErrorString(status), cudaGetErrorName(status));
}
