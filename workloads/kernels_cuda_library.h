/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLAS and cuSOLVER, opened when first needed: they are hundreds of megabytes, which a command
 * without GPUs need not load, and a machine without them runs everything else. */
#ifndef DUET_KERNELS_CUDA_LIBRARY_H
#define DUET_KERNELS_CUDA_LIBRARY_H

#include <cublas_v2.h>
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
 * Addresses of the functions, each in a member of its name: library->cublasDgemm(handle, ...). The
 * header of cuBLAS maps names to those of its second interface (cublasDgemm_v2), members included.
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

#endif
