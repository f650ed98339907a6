/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computations whose arrays are all in the GPU's memory, by cuBLAS, cuSOLVER and a simple kernel;
 * and cuBLASXt's product, out of the host's. Each repeat is measured twice: the computation alone,
 * and with copies, which bring the arrays from page-locked memory of the host and the result back,
 * one after the other. What came back last is checked.
 */
#include <math.h>
#include <stdlib.h>

#include <cublasXt.h>
#include <cusolverDn.h>

#include "bench/cuda/peers.h"
#include "bench/matrix.h"
#include "bench/timing.h"

enum { ARRAYS = 3, JACOBI_STEPS = 10 };

struct computation {
    struct peers *peers;
    const char *peer, *unit;
    double amount;      /* of the unit, in a repeat */
    size_t array_bytes; /* of each array */
    void *host[ARRAYS], *device[ARRAYS];
    unsigned inputs;         /* arrays that are copied to the GPU */
    unsigned result, answer; /* device[result] is copied to host[answer] */
    void (*compute)(struct computation *computation);
    bool (*is_right)(const struct computation *computation);
    struct repeats in_core, with_copies;
    /* products of matrices with x: right, and `added` more by each repeat */
    void *x, *right, *added, *found;
    struct solver *solver;
};

static void open_arrays(struct computation *c, unsigned of_host, unsigned of_device)
{
    peers_need(c->peers, of_device * (double)c->array_bytes);
    for (unsigned i = 0; i < ARRAYS; i++) {
        c->host[i] = i < of_host ? peers_pinned(c->array_bytes) : NULL;
        c->device[i] = i < of_device ? peers_device(c->array_bytes) : NULL;
    }
    /* of n x n matrices; vectors need none */
    if (c->array_bytes / c->peers->element == c->peers->n)
        return;
    void **vectors[] = {&c->x, &c->right, &c->added, &c->found};
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++)
        *vectors[i] = zeroed(c->peers->n * c->peers->element);
    fill_values(c->x, c->peers->precision, c->peers->n, 4);
}

static void close_arrays(const struct computation *c)
{
    for (unsigned i = 0; i < ARRAYS; i++) {
        CUDA(cudaFreeHost(c->host[i]));
        CUDA(cudaFree(c->device[i]));
    }
    free(c->x);
    free(c->right);
    free(c->added);
    free(c->found);
}

static void print(const struct computation *c, const struct repeats *repeats, bool copies,
                  bool right)
{
    const struct peers *peers = c->peers;
    line_begin(peers, c->peer);
    line_text("workload", peers->mode);
    line_text("precision", peers->precision == 's' ? "s" : "d");
    line_integer("n", peers->n);
    line_flag("copies", copies);
    if (peers->block)
        line_integer("tile", peers->block);
    line_values(repeats, c->unit, c->amount);
    line_end_verified(right);
}

static void measure(struct computation *c)
{
    const struct peers *peers = c->peers;
    while (repeats_go_on(peers, &c->in_core)) {
        double start = seconds();
        for (unsigned i = 0; i < c->inputs; i++)
            peers_copy(peers, c->device[i], c->host[i], c->array_bytes);
        peers_wait(peers);
        double copied = seconds();
        c->compute(c);
        peers_wait(peers);
        repeats_add(&c->in_core, seconds() - copied);
        peers_copy(peers, c->host[c->answer], c->device[c->result], c->array_bytes);
        peers_wait(peers);
        repeats_add(&c->with_copies, seconds() - start);
    }
    bool right = c->is_right(c);
    print(c, &c->in_core, false, right);
    print(c, &c->with_copies, true, right);
}

/* ------------------------------------------------------------------------------------------- */
/* C := C + A B, where every repeat adds the product once more                                  */

static void compute_gemm(struct computation *c)
{
    const struct peers *peers = c->peers;
    int n = (int)peers->n;
    const float one_s = 1;
    const double one_d = 1;
    if (peers->precision == 's')
        CUBLAS(cublasSgemm(peers->blas, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one_s, c->device[0], n,
                           c->device[1], n, &one_s, c->device[2], n));
    else
        CUBLAS(cublasDgemm(peers->blas, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one_d, c->device[0], n,
                           c->device[1], n, &one_d, c->device[2], n));
}

static bool gemm_is_right(const struct computation *c)
{
    size_t n = c->peers->n;
    char precision = c->peers->precision;
    void *right = zeroed(n * c->peers->element);
    add(precision, n, 1, c->right, right);
    add(precision, n, c->in_core.made, c->added, right);
    multiply(c->host[2], precision, n, c->x, c->found);
    bool is_right = residual(precision, n, c->found, right) < RESIDUAL_MOST;
    free(right);
    return is_right;
}

static void prepare_gemm(struct computation *c, struct peers *peers, unsigned of_device)
{
    double n = (double)peers->n;
    char precision = peers->precision;
    *c = (struct computation){.peers = peers,
                              .unit = "Gflop/s",
                              .amount = 2e-9 * n * n * n,
                              .array_bytes = peers->n * peers->n * peers->element,
                              .inputs = 3,
                              .result = 2,
                              .answer = 2,
                              .compute = compute_gemm,
                              .is_right = gemm_is_right};
    open_arrays(c, 3, of_device);
    for (unsigned i = 0; i < 3; i++)
        fill_values(c->host[i], precision, peers->n * peers->n, i);
    multiply(c->host[1], precision, peers->n, c->x, c->found);
    multiply(c->host[0], precision, peers->n, c->found, c->added);
    multiply(c->host[2], precision, peers->n, c->x, c->right);
}

void mode_gemm(struct peers *peers)
{
    struct computation c;
    prepare_gemm(&c, peers, 3);
    c.peer = "cublas";
    measure(&c);
    close_arrays(&c);
}

void mode_gemm_xt(struct peers *peers)
{
    struct computation c;
    cublasXtHandle_t xt;
    size_t n = peers->n;
    const float one_s = 1;
    const double one_d = 1;
    CUBLAS(cublasXtCreate(&xt));
    CUBLAS(cublasXtDeviceSelect(xt, 1, (int[]){peers->device}));
    if (peers->block)
        CUBLAS(cublasXtSetBlockDim(xt, (int)peers->block));
    prepare_gemm(&c, peers, 0);
    c.peer = "cublasxt";
    while (repeats_go_on(peers, &c.in_core)) {
        double start = seconds();
        if (peers->precision == 's')
            CUBLAS(cublasXtSgemm(xt, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one_s, c.host[0], n,
                                 c.host[1], n, &one_s, c.host[2], n));
        else
            CUBLAS(cublasXtDgemm(xt, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one_d, c.host[0], n,
                                 c.host[1], n, &one_d, c.host[2], n));
        CUDA(cudaDeviceSynchronize());
        repeats_add(&c.in_core, seconds() - start);
    }
    print(&c, &c.in_core, true, gemm_is_right(&c));
    CUBLAS(cublasXtDestroy(xt));
    close_arrays(&c);
}

/* ------------------------------------------------------------------------------------------- */
/* Cholesky (lower triangle) and LU with partial pivoting by cuSOLVER's 64-bit functions        */

struct solver {
    bool symmetric; /* Cholesky */
    cusolverDnHandle_t handle;
    cusolverDnParams_t parameters;
    cudaDataType type;
    void *workspace, *host_workspace;
    size_t workspace_bytes, host_workspace_bytes;
    int64_t *pivots;
    int *info;
};

static void check_solver(cusolverStatus_t status, const char *call)
{
    if (status != CUSOLVER_STATUS_SUCCESS)
        peers_end(1, "%s: status %d of cuSOLVER", call, (int)status);
}
#define CUSOLVER(call) check_solver((call), #call)

static void open_solver(const struct computation *c, struct solver *s)
{
    int64_t n = (int64_t)c->peers->n;
    s->type = c->peers->precision == 's' ? CUDA_R_32F : CUDA_R_64F;
    CUSOLVER(cusolverDnCreate(&s->handle));
    CUSOLVER(cusolverDnSetStream(s->handle, c->peers->stream));
    CUSOLVER(cusolverDnCreateParams(&s->parameters));
    if (s->symmetric)
        CUSOLVER(cusolverDnXpotrf_bufferSize(s->handle, s->parameters, CUBLAS_FILL_MODE_LOWER, n,
                                             s->type, c->device[0], n, s->type, &s->workspace_bytes,
                                             &s->host_workspace_bytes));
    else
        CUSOLVER(cusolverDnXgetrf_bufferSize(s->handle, s->parameters, n, n, s->type, c->device[0],
                                             n, s->type, &s->workspace_bytes,
                                             &s->host_workspace_bytes));
    /* one byte more: nothing of no bytes is asked for */
    s->workspace = peers_device(s->workspace_bytes + 1);
    s->host_workspace = zeroed(s->host_workspace_bytes + 1);
    s->pivots = peers_device(c->peers->n * sizeof *s->pivots);
    s->info = peers_device(sizeof *s->info);
}

static void close_solver(const struct solver *s)
{
    CUDA(cudaFree(s->workspace));
    CUDA(cudaFree(s->pivots));
    CUDA(cudaFree(s->info));
    free(s->host_workspace);
    CUSOLVER(cusolverDnDestroyParams(s->parameters));
    CUSOLVER(cusolverDnDestroy(s->handle));
}

static void factorise(struct computation *c)
{
    const struct solver *s = c->solver;
    int64_t n = (int64_t)c->peers->n;
    if (s->symmetric)
        CUSOLVER(cusolverDnXpotrf(s->handle, s->parameters, CUBLAS_FILL_MODE_LOWER, n, s->type,
                                  c->device[0], n, s->type, s->workspace, s->workspace_bytes,
                                  s->host_workspace, s->host_workspace_bytes, s->info));
    else
        CUSOLVER(cusolverDnXgetrf(s->handle, s->parameters, n, n, s->type, c->device[0], n,
                                  s->pivots, s->type, s->workspace, s->workspace_bytes,
                                  s->host_workspace, s->host_workspace_bytes, s->info));
}

static bool factors_are_right(const struct computation *c)
{
    const struct peers *peers = c->peers;
    size_t n = peers->n;
    int info;
    int64_t *pivots = zeroed(n * sizeof *pivots);
    CUDA(cudaMemcpy(&info, c->solver->info, sizeof info, cudaMemcpyDeviceToHost));
    if (info)
        peers_end(1, "%s: info = %d", peers->mode, info);
    if (!c->solver->symmetric)
        CUDA(cudaMemcpy(pivots, c->solver->pivots, n * sizeof *pivots, cudaMemcpyDeviceToHost));
    memcpy(c->found, c->x, n * peers->element);
    multiply_factors(c->host[1], peers->precision, n, c->solver->symmetric ? NULL : pivots,
                     c->found);
    free(pivots);
    return residual(peers->precision, n, c->found, c->right) < RESIDUAL_MOST;
}

static void measure_solver(struct peers *peers, bool symmetric, double cubes)
{
    size_t n = peers->n;
    struct solver solver = {.symmetric = symmetric};
    struct computation c = {.peers = peers,
                            .peer = "cusolver",
                            .unit = "Gflop/s",
                            .amount = 1e-9 * cubes * (double)n * (double)n * (double)n,
                            .array_bytes = n * n * peers->element,
                            .inputs = 1,
                            .result = 0,
                            .answer = 1,
                            .compute = factorise,
                            .is_right = factors_are_right,
                            .solver = &solver};
    peers_need(peers, 2 * (double)c.array_bytes); /* the workspace is not known yet */
    open_arrays(&c, 2, 1);
    if (symmetric)
        fill_positive(c.host[0], peers->precision, n, 1);
    else
        fill_values(c.host[0], peers->precision, n * n, 1);
    multiply(c.host[0], peers->precision, n, c.x, c.right);
    open_solver(&c, &solver);
    measure(&c);
    close_solver(&solver);
    close_arrays(&c);
}

void mode_potrf(struct peers *peers)
{
    measure_solver(peers, true, 1.0 / 3);
}

void mode_getrf(struct peers *peers)
{
    measure_solver(peers, false, 2.0 / 3);
}

/* ------------------------------------------------------------------------------------------- */
/* y := y + alpha x                                                                             */

static const double alpha = 0.5; /* the products are exact */

static void compute_axpy(struct computation *c)
{
    const struct peers *peers = c->peers;
    const float alpha_s = (float)alpha;
    if (peers->precision == 's')
        CUBLAS(cublasSaxpy(peers->blas, (int)peers->n, &alpha_s, c->device[0], 1, c->device[1], 1));
    else
        CUBLAS(cublasDaxpy(peers->blas, (int)peers->n, &alpha, c->device[0], 1, c->device[1], 1));
}

/* Whether every element is, but for its roundoff. */
static bool axpy_is_right(const struct computation *c)
{
    char precision = c->peers->precision;
    for (size_t i = 0; i < c->peers->n; i++) {
        double added = alpha * element(c->host[0], precision, i);
        double was = element(c->host[1], precision, i);
        double error = fabs(element(c->host[2], precision, i) - (was + added));
        if (!(error <= RESIDUAL_MOST * roundoff(precision) * (fabs(was) + fabs(added))))
            return false;
    }
    return true;
}

void mode_axpy(struct peers *peers)
{
    struct computation c = {.peers = peers,
                            .peer = "cublas",
                            .unit = "GB/s",
                            .amount = 3e-9 * (double)(peers->n * peers->element),
                            .array_bytes = peers->n * peers->element,
                            .inputs = 2,
                            .result = 1,
                            .answer = 2,
                            .compute = compute_axpy,
                            .is_right = axpy_is_right};
    open_arrays(&c, 3, 2);
    fill_values(c.host[0], peers->precision, peers->n, 1);
    fill_values(c.host[1], peers->precision, peers->n, 2);
    measure(&c);
    close_arrays(&c);
}

/* ------------------------------------------------------------------------------------------- */
/* Jacobi's iteration                                                                           */

static void compute_jacobi2d(struct computation *c)
{
    for (unsigned step = 0; step < JACOBI_STEPS; step++)
        CUDA(peers_launch_jacobi2d(c->peers->stream, c->peers->element, c->peers->n,
                                   c->device[step % 2], c->device[(step + 1) % 2]));
}

/* The largest error of a row: the same steps on the host, in double precision, around it only. */
static double jacobi_row_error(const struct computation *c, size_t row)
{
    enum { BAND = 2 * JACOBI_STEPS + 1 };
    char precision = c->peers->precision;
    size_t n = c->peers->n, low = row - JACOBI_STEPS;
    double *bands[2] = {zeroed(BAND * n * sizeof(double)), zeroed(BAND * n * sizeof(double))};
    for (size_t i = 0; i < BAND * n; i++)
        bands[0][i] = bands[1][i] = element(c->host[0], precision, low * n + i);
    for (unsigned step = 0; step < JACOBI_STEPS; step++) {
        const double *in = bands[step % 2];
        double *out = bands[(step + 1) % 2];
        for (size_t i = 1; i + 1 < BAND; i++)
            for (size_t at = i * n + 1; at + 1 < (i + 1) * n; at++)
                out[at] = 0.25 * (in[at - 1] + in[at + 1] + in[at - n] + in[at + n]);
    }
    double largest = 0;
    for (size_t j = 0; j < n; j++) {
        double error = fabs(element(c->host[1], precision, row * n + j) -
                            bands[JACOBI_STEPS % 2][JACOBI_STEPS * n + j]);
        largest = isnan(error) ? INFINITY : fmax(largest, error);
    }
    free(bands[0]);
    free(bands[1]);
    return largest;
}

/* By some of the rows, in roundoffs of 1/2, the largest value, a step. */
static bool jacobi_is_right(const struct computation *c)
{
    enum { ROWS = 16 };
    double largest = 0, unit = 0.5 * roundoff(c->peers->precision) * JACOBI_STEPS;
    for (size_t k = 0; k < ROWS; k++)
        largest = fmax(largest,
                       jacobi_row_error(c, JACOBI_STEPS + k * (c->peers->n - 2 * JACOBI_STEPS - 1) /
                                                              (ROWS - 1)));
    return largest < RESIDUAL_MOST * unit;
}

void mode_jacobi2d(struct peers *peers)
{
    size_t bytes = peers->n * peers->n * peers->element;
    struct computation c = {.peers = peers,
                            .peer = "kernel",
                            .unit = "GB/s",
                            .amount = 2e-9 * JACOBI_STEPS * (double)bytes,
                            .array_bytes = bytes,
                            .inputs = 1,
                            .result = JACOBI_STEPS % 2,
                            .answer = 1,
                            .compute = compute_jacobi2d,
                            .is_right = jacobi_is_right};
    if (peers->n < 4 * JACOBI_STEPS)
        peers_end(1, "jacobi2d needs N of %d at least", 4 * JACOBI_STEPS);
    open_arrays(&c, 2, 2);
    fill_values(c.host[0], peers->precision, peers->n * peers->n, 1);
    peers_copy(peers, c.device[1], c.host[0], bytes); /* the border, which no step writes */
    measure(&c);
    close_arrays(&c);
}
