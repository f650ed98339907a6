/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuBLAS and cuSOLVER, opened when first needed: they are hundreds of megabytes, which a command
 * that computes on no GPU is not to pay for, and a machine without them runs everything else.
 */
#ifndef DUET_KERNELS_CUDA_LIBRARY_H
#define DUET_KERNELS_CUDA_LIBRARY_H

#include <cublas_v2.h>
#include <cusolverDn.h>

#include <duet/error.h>

/* X(name): the functions of cuBLAS that are called, as cublas_v2.h names them. */
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

/* The same of cuSOLVER. */
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
 * Their addresses, each in a member of its name: library->cublasDgemm(handle, ...). The header of
 * cuBLAS maps names to those of its second interface (cublasDgemm_v2); that holds for the members
 * as well, so that nobody sees it.
 */
struct duet__cuda_library {
#define X(name) __typeof__(name) *name;
    DUET__CUBLAS_FUNCTIONS(X)
    DUET__CUSOLVER_FUNCTIONS(X)
#undef X
};

/*
 * The libraries, opened by the first call in the process; it may take a second, others wait. They
 * stay until the process ends. NULL with a message that names the library, the reason and what to
 * do. Any thread.
 */
const struct duet__cuda_library *duet__cuda_library(struct duet_message *message);

#endif
