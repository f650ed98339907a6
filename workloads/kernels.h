/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of the workloads' tasks on CPUs, and judges of their results. Those that need BLAS and
 * LAPACK are in kernels_blas*.c and kernels_verify.c, and opened as a module.
 *
 * A kernel works in single or double precision, as the elements of its buffers are, with their
 * sizes and leading dimensions, which may differ from one replica to another. It fails with
 * DUET_ETASK where the mathematics does not go on (a matrix that is not positive definite, a pivot
 * of 0 or not finite), DUET_ENOMEM where it needs workspace.
 */
#ifndef DUET_KERNELS_H
#define DUET_KERNELS_H

#include <stdbool.h>
#include <string.h>

#include <duet/duet.h>

#include "workloads/data.h"
#include "workloads/workload.h"

/*
 * The CPU's code for the kernel of this base name (both precisions), or NULL if this build has
 * none. Accesses in their order, and arguments:
 *
 *   gemm         A, B, C        C := C +- A B or B'; struct duet__tile_args, its `form`
 *   syrk         A, C           lower C := C - A A'
 *   trsm         L, B           B := B L^-T, L lower
 *   trsm_l       L, B           B := L^-1 B, L lower with unit diagonal
 *   trsm_r       U, B           B := B U^-1, U upper
 *   potrf        A              lower A := L with A = L L'
 *   getrf_nopiv  A              A := L, U with A = L U, unit diagonal of L not stored
 *   getrf        P, A1, A2 ...  the panel of these tiles, one below the other, by partial pivoting;
 *                               P: row interchanges as in LAPACK, int32_t from 1, in the panel
 *   laswp        P, A1, A2 ...  these row interchanges, in their order, in the tiles of a column
 *   geqrt        A, T           A := R and, below the diagonal, V with Q = I - V T V', A = Q R
 *   ormqr        V, T, C        C := Q' C; struct duet__tile_args, in whose `form` DUET__TRANSPOSED
 *                               stands for Q' in the place of Q
 *   tsqrt        R, B, T        the same factors of R, upper, and B below it: R := R, B := V
 *   tsmqr        V, T, C, D     C and D below it := Q' (C, D), with tsqrt's factors; form as above
 *   getrf_incpiv A, T           A := L, U with P A = L U; T: P (kernels_blas_tiles.c)
 *   gessm        L, T, C        C := L^-1 P C, with these factors
 *   tstrf        U, B, T        the same of U, upper, and B below; T: P, and what of L is not in B
 *   ssssm        B, T, C, D     C and D below it := L^-1 P (C, D), with tstrf's factors
 *   axpy         x, y           y := alpha x + y; struct duet__axpy_args
 *   jacobi2d     see jacobi2d.c
 *   nbody        see nbody.c
 *   sort         a              a in ascending order, by odd-even transposition
 */
duet_kernel_fn duet__kernel(const char *base);

/* Arguments of axpy. */
struct duet__axpy_args {
    uint64_t count; /* elements */
    double alpha;
};

/* Returns a kernel that needs BLAS, for duet__kernel. */
duet_kernel_fn duet__blas_kernel(const char *base);

/* An element of a table that ends with base NULL. */
struct duet__kernel {
    const char *base;
    duet_kernel_fn run;
};

static inline duet_kernel_fn duet__kernel_in(const struct duet__kernel *kernel, const char *base)
{
    while (kernel->base && strcmp(kernel->base, base) != 0)
        kernel++;
    return kernel->run;
}

/* The kernels that need no BLAS. */
int duet__kernel_jacobi2d(const struct duet_call *call);
int duet__kernel_nbody(const struct duet_call *call);

/*
 * Makes each call of BLAS use one thread from now on, in the whole process and for good: OpenBLAS
 * 0.3.21 was seen to wait forever after the number had been raised later. Not while another thread
 * is in such a call. DUET_ENOMEM with a message: the address space is too small for calls from so
 * many threads at once, for which OpenBLAS would try for ever. Does nothing in a build without
 * BLAS.
 */
DUET_MUST_CHECK int duet__blas_begin(unsigned threads, struct duet_message *message);

/*
 * Judges factors: *residual = ||P A - L U|| / (n ||A|| eps) in the 1-norm with eps the unit
 * roundoff of the precision, as LAPACK's test program does (xGET01); row i of P A is row rows[i] of
 * A (NULL: i). Of a matrix of lower tiles alone the factors are L L' (xPOT01). NaN if a factor has
 * one. On one thread, so as many flops as the factorisation on one core, or until `how` (NULL:
 * never) stops it. DUET_ENOMEM with a message.
 */
DUET_MUST_CHECK int duet__residual(const struct duet__storage *a, const uint64_t *rows,
                                   const struct duet__judging *how, double *residual,
                                   struct duet_message *message);

/*
 * Slot `verify` of tiled workloads whose first matrix, filled and then factorised, has the factors,
 * and whose second, of LU with pivoting, has the row interchanges of panel k in its tile (k,0),
 * relative to the panel. how->exact: by duet__residual. Else by one random vector x, in n^2
 * operations and extended precision on all cores: the largest, over rows, of
 * |L U x - P A x| / (eps (|L| |U| |x| + |A| |x|)), a backward error of each row as it shows in x
 * (Freivalds; Higham, Accuracy and Stability of Numerical Algorithms, 10.1 and 9.3). A wrong
 * element goes unnoticed only if x hides it. NaN if a factor has one, or an interchange is invalid.
 * DUET_ENOMEM with a message, and errors of duet__residual.
 */
DUET_MUST_CHECK int duet__judge_factors(void *data, const struct duet__judging *how,
                                        struct duet__verdict *verdict,
                                        struct duet_message *message);

/* ------------------------------------------------------------------------------------------- */
/*
 * Judging products by a random vector (Freivalds, "Fast probabilistic algorithms", MFCS 1979), in
 * extended precision: after a large diagonal each term would be rounded in double.
 */

/* A vector, and the scale of its rounding errors: the same sums of absolute values. */
struct duet__vector {
    long double *value;
    double *gauge;
};

/* Make vectors of n zeros, and free them, even after an error. DUET_ENOMEM. */
DUET_MUST_CHECK int duet__vectors_init(struct duet__vector *vectors, unsigned count, uint64_t n);
void duet__vectors_fini(struct duet__vector *vectors, unsigned count);

/* Draws elements of at least 1/2 in absolute value, so that no single wrong element hides. */
void duet__vector_draw(struct duet__vector *x, uint64_t n, uint64_t key);

/* Adds A x to y, with A as it was filled; of lower tiles alone A is symmetric. */
void duet__vector_add_initial(const struct duet__storage *a, const struct duet__judging *how,
                              const struct duet__vector *x, struct duet__vector *y);

/* Called with the stored element (i, j) of a matrix. */
typedef void duet__element_fn(void *self, uint64_t i, uint64_t j, double value);

/* Calls `fn` for all elements, on several threads, each with whole columns, or with whole rows. */
void duet__each_element(const struct duet__storage *a, const struct duet__judging *how,
                        duet__element_fn *fn, void *self, bool by_column);

/* Returns the largest |value| / (gauge x unit roundoff) of y; NaN if one is NaN. */
double duet__vector_error(const struct duet__vector *y, uint64_t n, size_t element_bytes);

/* ------------------------------------------------------------------------------------------- */
/* The libraries behind the kernels, for people: names, and whether they can be opened. */

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

/*
 * Returns the code for OpenCL's devices of the kernel of this base name (both precisions), or NULL
 * if there is none: calls of CLBlast, without factorisations of tiles, panels and jacobi2d;
 * kernels_opencl_absent.c stands in where that or OpenCL is missing.
 *
 * A kernel is called on the thread of the device's worker and enqueues on the queue of its call.
 * CLBlast's code is compiled by the first calls in a process, which takes seconds; solves also wait
 * for parts of their work.
 */
duet_kernel_fn duet__opencl_kernel(const char *base);

/* Units of the workload nbody and its kernel: the gravitational constant and the edge of the cube
 * in which bodies begin are 1. Each of n bodies has the mass (1 + m) / n, with m uniform in [-1/2,
 * 1/2) and stored. */
#define DUET__TIME_STEP 0.01
#define DUET__SOFTENING 0.0025 /* added to squares of distances: pulls stay finite */

#endif
