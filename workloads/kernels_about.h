/* SPDX-License-Identifier: Apache-2.0 */
/* The libraries behind the kernels, for people: names, and whether they can be opened. */
#ifndef DUET_KERNELS_ABOUT_H
#define DUET_KERNELS_ABOUT_H

#include <stdbool.h>

#include <duet/error.h>

/* The BLAS that kernels on CPUs call. */
struct duet__blas {
    const char *build;     /* "OpenBLAS 0.3.21 DYNAMIC_ARCH ...": version and how it was built */
    const char *core;      /* the processor whose code it runs here: "Haswell" */
    const char *threading; /* "sequential", "pthreads", "OpenMP"; kernels use one thread anyway */
};

/* Fills *blas with constants. false: this build has no BLAS. */
bool duet__blas_about(struct duet__blas *blas);

/*
 * Opens cuBLAS and cuSOLVER, as the first kernel on a GPU does; that may take a second. DUET_OK;
 * DUET_EABSENT, also in a build without CUDA, with a message that says which and why.
 */
DUET_MUST_CHECK int duet__cuda_about(struct duet_message *message);

/* Opens CLBlast, for OpenCL's devices; otherwise as duet__cuda_about. */
DUET_MUST_CHECK int duet__opencl_about(struct duet_message *message);

#endif
