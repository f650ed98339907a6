/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cholesky (lower triangle) and LU with partial pivoting by cuSOLVER's 64-bit functions, with the
 * matrix in the GPU's memory. With copies: the whole matrix from page-locked memory of the host and
 * back, one after the other. The last repeat's factors are checked.
 */
#include <stdlib.h>

#include "bench/cuda/peers.h"
#include "bench/timing.h"

/* One factorisation on the GPU. */
struct factorisation {
    bool symmetric; /* Cholesky */
    cusolverDnHandle_t solver;
    cusolverDnParams_t parameters;
    cudaDataType type;
    void *matrix, *workspace, *host_workspace;
    size_t workspace_bytes, host_workspace_bytes;
    int64_t *pivots;
    int *info;
};

static void open_solver(const struct peers *peers, struct factorisation *f, void *matrix)
{
    int64_t n = (int64_t)peers->n;
    f->type = peers->precision == 's' ? CUDA_R_32F : CUDA_R_64F;
    f->matrix = matrix;
    CUSOLVER(cusolverDnCreate(&f->solver));
    CUSOLVER(cusolverDnSetStream(f->solver, peers->stream));
    CUSOLVER(cusolverDnCreateParams(&f->parameters));
    if (f->symmetric)
        CUSOLVER(cusolverDnXpotrf_bufferSize(f->solver, f->parameters, CUBLAS_FILL_MODE_LOWER, n,
                                             f->type, matrix, n, f->type, &f->workspace_bytes,
                                             &f->host_workspace_bytes));
    else
        CUSOLVER(cusolverDnXgetrf_bufferSize(f->solver, f->parameters, n, n, f->type, matrix, n,
                                             f->type, &f->workspace_bytes,
                                             &f->host_workspace_bytes));
    /* one byte more: nothing of no bytes is asked for */
    f->workspace = peers_device(f->workspace_bytes + 1);
    f->host_workspace = zeroed(f->host_workspace_bytes + 1);
    f->pivots = peers_device(peers->n * sizeof *f->pivots);
    f->info = peers_device(sizeof *f->info);
}

static void close_solver(const struct factorisation *f)
{
    CUDA(cudaFree(f->workspace));
    CUDA(cudaFree(f->pivots));
    CUDA(cudaFree(f->info));
    free(f->host_workspace);
    CUSOLVER(cusolverDnDestroyParams(f->parameters));
    CUSOLVER(cusolverDnDestroy(f->solver));
}

static void factorise(const struct peers *peers, const struct factorisation *f)
{
    int64_t n = (int64_t)peers->n;
    if (f->symmetric)
        CUSOLVER(cusolverDnXpotrf(f->solver, f->parameters, CUBLAS_FILL_MODE_LOWER, n, f->type,
                                  f->matrix, n, f->type, f->workspace, f->workspace_bytes,
                                  f->host_workspace, f->host_workspace_bytes, f->info));
    else
        CUSOLVER(cusolverDnXgetrf(f->solver, f->parameters, n, n, f->type, f->matrix, n, f->pivots,
                                  f->type, f->workspace, f->workspace_bytes, f->host_workspace,
                                  f->host_workspace_bytes, f->info));
}

static void check_info(const struct factorisation *f)
{
    int info;
    CUDA(cudaMemcpy(&info, f->info, sizeof info, cudaMemcpyDeviceToHost));
    if (info)
        peers_fail("%s: info = %d", f->symmetric ? "cusolverDnXpotrf" : "cusolverDnXgetrf", info);
}

/* ------------------------------------------------------------------------------------------- */

/* found := P' found: undoes the interchanges, the last one first. */
static void interchange(const struct peers *peers, const struct factorisation *f, double *found)
{
    size_t bytes = peers->n * sizeof(int64_t);
    int64_t *pivots = zeroed(bytes);
    CUDA(cudaMemcpy(pivots, f->pivots, bytes, cudaMemcpyDeviceToHost));
    for (size_t i = peers->n; i-- > 0;) {
        if (pivots[i] < 1 || pivots[i] > (int64_t)peers->n)
            peers_fail("cusolverDnXgetrf: pivot %zu is %lld", i, (long long)pivots[i]);
        size_t other = (size_t)pivots[i] - 1;
        double kept = found[i];
        found[i] = found[other];
        found[other] = kept;
    }
    free(pivots);
}

/* How far L (L' x), or P' L (U x), is from A x. */
static double residual(const struct peers *peers, const struct factorisation *f,
                       const void *factors, const double *x, const double *ax)
{
    size_t n = peers->n;
    double *between = zeroed(n * sizeof *between), *found = zeroed(n * sizeof *found);
    peers_multiply(factors, peers->element, n, f->symmetric ? PEERS_LOWER : PEERS_UPPER,
                   f->symmetric, x, between);
    peers_multiply(factors, peers->element, n, f->symmetric ? PEERS_LOWER : PEERS_UNIT_LOWER, false,
                   between, found);
    if (!f->symmetric)
        interchange(peers, f, found);
    double result = peers_residual(peers->element, n, found, ax);
    free(between);
    free(found);
    return result;
}

static void print(const struct peers *peers, bool copies, const struct peers_times *times,
                  double cubes, double wrong)
{
    double n = (double)peers->n;
    line_begin(peers, "cusolver");
    line_text("precision", peers->precision == 's' ? "s" : "d");
    line_integer("n", peers->n);
    line_flag("copies", copies);
    line_times(times, "gflops", 1e-9 * cubes * n * n * n);
    line_residual(wrong);
    line_end();
}

static void measure(struct peers *peers, struct factorisation *f, double cubes)
{
    size_t n = peers->n, bytes = n * n * peers->element;
    struct peers_times in_core = {.count = 0}, with_copies = {.count = 0};
    bool warm = false, warm_too = false;
    peers_need(peers, 2 * (double)bytes); /* the workspace is not known yet */
    void *host = peers_pinned(bytes), *factors = peers_pinned(bytes), *matrix = peers_device(bytes);
    double *x = peers_vector(n, 2), *ax = zeroed(n * sizeof *ax);
    peers_fill(host, peers->element, n, f->symmetric ? PEERS_SYMMETRIC : PEERS_GENERAL, 1);
    peers_multiply(host, peers->element, n, PEERS_GENERAL, false, x, ax);
    open_solver(peers, f, matrix);

    peers->start_s = seconds();
    while (peers_again(peers, &in_core)) {
        double start = seconds();
        CUDA(cudaMemcpyAsync(matrix, host, bytes, cudaMemcpyHostToDevice, peers->stream));
        CUDA(cudaStreamSynchronize(peers->stream));
        double copied = seconds();
        factorise(peers, f);
        CUDA(cudaStreamSynchronize(peers->stream));
        peers_add(&in_core, &warm, seconds() - copied);
        CUDA(cudaMemcpyAsync(factors, matrix, bytes, cudaMemcpyDeviceToHost, peers->stream));
        CUDA(cudaStreamSynchronize(peers->stream));
        peers_add(&with_copies, &warm_too, seconds() - start);
        check_info(f);
    }
    double wrong = residual(peers, f, factors, x, ax);
    print(peers, false, &in_core, cubes, wrong);
    print(peers, true, &with_copies, cubes, wrong);
    close_solver(f);
    CUDA(cudaFree(matrix));
    CUDA(cudaFreeHost(host));
    CUDA(cudaFreeHost(factors));
    free(x);
    free(ax);
}

void mode_potrf(struct peers *peers)
{
    measure(peers, &(struct factorisation){.symmetric = true}, 1.0 / 3);
}

void mode_getrf(struct peers *peers)
{
    measure(peers, &(struct factorisation){.symmetric = false}, 2.0 / 3);
}
