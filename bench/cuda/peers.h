/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the peers of duet's GPU runs share: a GPU that is open, calls that end the program with
 * their name, repeats, and lines of JSON.
 */
#ifndef DUET_BENCH_CUDA_PEERS_H
#define DUET_BENCH_CUDA_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include "bench/cuda/kernels.h"

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
    int device;
    struct cudaDeviceProp properties;
    cudaStream_t stream;
    cublasHandle_t blas; /* bound to the stream */
};

/* Seconds of every repeat after the first one, which warms up. */
struct repeats {
    double start_s; /* when the first one began */
    unsigned made;
    double seconds[PEERS_REPEATS_MAX + 1];
};

/* Whether another repeat is to be made. */
bool repeats_go_on(const struct peers *peers, struct repeats *repeats);
void repeats_add(struct repeats *repeats, double elapsed_s);

/* ------------------------------------------------------------------------------------------- */
/* Errors end the program, with status 1 or PEERS_SKIPPED and one line                          */

_Noreturn void peers_end(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* `call` is the text of the call that returned the status. */
void peers_cuda(cudaError_t status, const char *call);
void peers_cublas(cublasStatus_t status, const char *call);
#define CUDA(call) peers_cuda((call), #call)
#define CUBLAS(call) peers_cublas((call), #call)

/* Skips if that much of the GPU's memory is not free. */
void peers_need(const struct peers *peers, double bytes);
/* Memory of the GPU, and page-locked memory of the host; never NULL. cudaFree, cudaFreeHost. */
void *peers_device(size_t bytes);
void *peers_pinned(size_t bytes);
/* Enqueues a copy on the stream, and waits for the stream. */
void peers_copy(const struct peers *peers, void *to, const void *from, size_t bytes);
void peers_wait(const struct peers *peers);

/* ------------------------------------------------------------------------------------------- */
/* One JSON object a line on standard output                                                    */

/* Begins with the mode and the peer. */
void line_begin(const struct peers *peers, const char *peer);
void line_text(const char *key, const char *value);
void line_integer(const char *key, uint64_t value);
void line_flag(const char *key, bool value);
/* The repeats in their unit: so much of `amount` a second; or seconds times `-amount`. */
void line_values(const struct repeats *repeats, const char *unit, double amount);
/* "verified"; a result that is wrong ends the program after the line. */
void line_end_verified(bool right);
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
