/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles of cuBLAS and cuSOLVER for kernels on GPUs: one for each stream of a GPU's worker. A
 * handle takes long to create, so those of a thread that ends are kept for the next one on the same
 * device, in the next run of the process.
 */
#ifndef DUET_KERNELS_CUDA_HANDLES_H
#define DUET_KERNELS_CUDA_HANDLES_H

#include <stddef.h>

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cusolverDn.h>

#include <duet/error.h>

/* X(name): the functions of cuBLAS in use, as cublas_v2.h names them. */
#define DUET__CUBLAS_FUNCTIONS(X)                                                                  \
    X(cublasCreate)                                                                                \
    X(cublasDestroy)                                                                               \
    X(cublasSetStream)                                                                             \
    X(cublasGetStatusName)                                                                         \
    X(cublasSgemm)                                                                                 \
    X(cublasDgemm)                                                                                 \
    X(cublasSsyrk)                                                                                 \
    X(cublasDsyrk)                                                                                 \
    X(cublasStrsm)                                                                                 \
    X(cublasDtrsm)                                                                                 \
    X(cublasSaxpy)                                                                                 \
    X(cublasDaxpy)

/* X(name): the functions of cuSOLVER in use. */
#define DUET__CUSOLVER_FUNCTIONS(X)                                                                \
    X(cusolverDnCreate)                                                                            \
    X(cusolverDnDestroy)                                                                           \
    X(cusolverDnSetStream)                                                                         \
    X(cusolverDnSpotrf_bufferSize)                                                                 \
    X(cusolverDnDpotrf_bufferSize)                                                                 \
    X(cusolverDnSpotrf)                                                                            \
    X(cusolverDnDpotrf)                                                                            \
    X(cusolverDnSgetrf_bufferSize)                                                                 \
    X(cusolverDnDgetrf_bufferSize)                                                                 \
    X(cusolverDnSgetrf)                                                                            \
    X(cusolverDnDgetrf)

/*
 * Addresses of functions of cuBLAS and cuSOLVER, each in a member of its name, as in
 * library->cublasDgemm(handle, ...). The header of cuBLAS maps names to those of its second
 * interface (cublasDgemm_v2), members included.
 */
struct duet__cuda_library {
#define X(name) __typeof__(name) *name;
    DUET__CUBLAS_FUNCTIONS(X)
    DUET__CUSOLVER_FUNCTIONS(X)
#undef X
};

/*
 * Returns the libraries, opened by the first call in the process; it may take a second, others
 * wait. They stay until the process ends. NULL with a message that names the library, the reason
 * and what to do. Any thread.
 */
const struct duet__cuda_library *duet__cuda_library(struct duet_message *message);

/* Handles of one stream, used by one thread. */
struct duet__cuda_handles {
    const struct duet__cuda_library *library;
    cudaStream_t stream;
    unsigned long long stream_id; /* a later stream may lie at the same address */
    cublasHandle_t blas;
    cusolverDnHandle_t solver; /* NULL until duet__cuda_solver has made it */
};

/*
 * Returns the handles of this thread for `stream` of the current device, made or taken over by the
 * first call; cuBLAS's is bound to the stream. The library keeps them. Errors, with a message that
 * names the failed call: DUET_EABSENT (no library), DUET_ENOMEM, DUET_ETASK.
 */
DUET_MUST_CHECK int duet__cuda_handles(struct duet__cuda_handles **out, cudaStream_t stream,
                                       struct duet_message *message);

/* Makes the handle of cuSOLVER, bound to the stream, if there is none yet. Errors as
 * duet__cuda_handles. */
DUET_MUST_CHECK int duet__cuda_solver(struct duet__cuda_handles *handles,
                                      struct duet_message *message);

/*
 * Returns device memory of at least `bytes`, aligned to 256, for work enqueued on the stream before
 * the next call for the same handles. An int behind it, *info, is for the status from cuSOLVER.
 * Grows in stream order, without waiting. DUET_ENOMEM, DUET_ETASK with a message.
 */
DUET_MUST_CHECK int duet__cuda_workspace(struct duet__cuda_handles *handles, size_t bytes,
                                         void **out, int **info, struct duet_message *message);

/* Number of handles in this process that no thread uses, for the next threads of their devices. For
 * tests. */
size_t duet__cuda_handles_spare(void);

/*
 * Returns the error of a failed call, with the names of call and status in the message:
 * "cublasDgemm: CUBLAS_STATUS_EXECUTION_FAILED". DUET_ENOMEM if memory was short, else DUET_ETASK;
 * 0 for success.
 */
int duet__cublas_check(const struct duet__cuda_library *library, cublasStatus_t status,
                       const char *call, struct duet_message *message);
int duet__cusolver_check(cusolverStatus_t status, const char *call, struct duet_message *message);
int duet__cudart_check(cudaError_t status, const char *call, struct duet_message *message);

#endif
