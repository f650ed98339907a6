/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the peers of duet's GPU runs share: a GPU that is open, calls that end the program with
 * their name, matrices in the host's memory with a check of what was computed, and lines of JSON.
 */
#ifndef DUET_BENCH_CUDA_PEERS_H
#define DUET_BENCH_CUDA_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cusolverDn.h>

enum {
    PEERS_SKIPPED = 77, /* exit status: no GPU, or it is too small */
    PEERS_REPEATS_MAX = 64,
};

/* One measurement: what the command line asks for, and the GPU. */
struct peers {
    const char *mode;
    char precision;   /* 's' or 'd' */
    size_t element;   /* bytes: 4 or 8 */
    size_t n;         /* order of the matrices; elements of vectors */
    unsigned repeats; /* at most PEERS_REPEATS_MAX; one more warms up */
    unsigned block;   /* of cuBLASXt; 0: its default */
    double limit_s;   /* no further repeat begins after this long; one is always made */
    double start_s;   /* when the measurement began */
    int device;
    struct cudaDeviceProp properties;
    cudaStream_t stream;
    cublasHandle_t blas; /* bound to the stream */
};

/* Seconds of every repeat. */
struct peers_times {
    double values[PEERS_REPEATS_MAX];
    unsigned count;
};

/* ------------------------------------------------------------------------------------------- */
/* check.c, fail.c: errors end the program, with status 1 and one line                          */

/* `call` is the text of the call that returned the status. */
void peers_cuda(cudaError_t status, const char *call);
void peers_cublas(cublasStatus_t status, const char *call);
void peers_cusolver(cusolverStatus_t status, const char *call);
#define CUDA(call) peers_cuda((call), #call)
#define CUBLAS(call) peers_cublas((call), #call)
#define CUSOLVER(call) peers_cusolver((call), #call)

_Noreturn void peers_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* As peers_fail, with PEERS_SKIPPED. */
_Noreturn void peers_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Skips if that much of the GPU's memory is not free. */
void peers_need(const struct peers *peers, double bytes);
/* Memory of the GPU, and page-locked memory of the host; never NULL. cudaFree, cudaFreeHost. */
void *peers_device(size_t bytes);
void *peers_pinned(size_t bytes);

/* Whether another repeat is to be made after those in `times`. */
bool peers_again(const struct peers *peers, const struct peers_times *times);
/* Adds a repeat; the first one ever, which warmed up, is dropped: *warm was false. */
void peers_add(struct peers_times *times, bool *warm, double elapsed_s);

/* ------------------------------------------------------------------------------------------- */
/* host.c: matrices in the host's memory, column-major without gaps, on all cores               */

enum peers_shape { PEERS_GENERAL, PEERS_SYMMETRIC, PEERS_LOWER, PEERS_UNIT_LOWER, PEERS_UPPER };

/*
 * Uniform in [-0.5, 0.5). PEERS_SYMMETRIC: symmetric, with n added to the diagonal, which makes it
 * positive definite. n x n, single precision if element is 4.
 */
void peers_fill(void *matrix, size_t element, size_t n, enum peers_shape shape, uint64_t seed);
/* y := M x in double precision, with the part of the matrix that `shape` names; or M' x. */
void peers_multiply(const void *matrix, size_t element, size_t n, enum peers_shape shape,
                    bool transposed, const double *x, double *y);
/* A vector for that: random, each element at least 1/2 in absolute value. Freed by the caller. */
double *peers_vector(size_t n, uint64_t seed);
/*
 * Largest difference of the vectors, in units of n eps times the largest element of `right`. Below
 * PEERS_THRESHOLD the result is right.
 */
double peers_residual(size_t element, size_t n, const double *found, const double *right);
#define PEERS_THRESHOLD 30.0

/* Words that are a function of their place, and whether they are there; bytes: a multiple of 8. */
void peers_fill_bytes(void *memory, size_t bytes, uint64_t seed);
bool peers_check_bytes(const void *memory, size_t bytes, uint64_t seed);

/* ------------------------------------------------------------------------------------------- */
/* lines.c: one JSON object a line on standard output                                           */

/* Begins with the mode, the device and the versions. */
void line_begin(const struct peers *peers, const char *peer);
void line_text(const char *key, const char *value);
void line_integer(const char *key, uint64_t value);
void line_number(const char *key, double value);
void line_flag(const char *key, bool value);
/* "seconds": [...] and "seconds_median"; amount > 0: also `rate`, amount over the median. */
void line_times(const struct peers_times *times, const char *rate, double amount);
/* "residual", "threshold", "verified"; a result that is wrong ends the program after the line. */
void line_residual(double residual);
void line_end(void);

/* ------------------------------------------------------------------------------------------- */
/* The modes                                                                                    */

void mode_device(struct peers *peers);   /* what it is */
void mode_gemm(struct peers *peers);     /* cuBLAS in core, with and without copies */
void mode_gemm_xt(struct peers *peers);  /* cuBLASXt from page-locked memory of the host */
void mode_potrf(struct peers *peers);    /* cuSOLVER in core, with and without copies */
void mode_getrf(struct peers *peers);    /* the same, with partial pivoting */
void mode_axpy(struct peers *peers);     /* cuBLAS in core, with and without copies */
void mode_jacobi2d(struct peers *peers); /* ten steps in core, with and without copies */
void mode_copies(struct peers *peers);   /* bandwidths by size, memory and direction */
void mode_costs(struct peers *peers);    /* launches, events, small copies, page-locking */

#endif
