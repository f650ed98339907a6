/* SPDX-License-Identifier: Apache-2.0 */
/* What memory limits: AXPY by cuBLAS, and Jacobi's iteration by a simple kernel, in core. */
#include <math.h>
#include <stdlib.h>

#include "bench/cuda/kernels.h"
#include "bench/cuda/peers.h"
#include "bench/timing.h"

enum { JACOBI_STEPS = 10 };

static double element_at(const void *values, size_t element, size_t i)
{
    return element == sizeof(float) ? (double)((const float *)values)[i]
                                    : ((const double *)values)[i];
}

static void print(const struct peers *peers, const char *peer, bool copies,
                  const struct peers_times *times, double bytes, double wrong)
{
    line_begin(peers, peer);
    line_text("precision", peers->precision == 's' ? "s" : "d");
    line_integer("n", peers->n);
    line_flag("copies", copies);
    line_number("bytes", bytes);
    line_times(times, "bytes_per_second", bytes);
    line_residual(wrong);
    line_end();
}

/* ------------------------------------------------------------------------------------------- */
/* y := y + alpha x                                                                             */

static const double alpha = 0.5; /* the products are exact */

static void add(const struct peers *peers, const void *x, void *y)
{
    int n = (int)peers->n;
    const float alpha_s = (float)alpha;
    if (peers->precision == 's')
        CUBLAS(cublasSaxpy(peers->blas, n, &alpha_s, x, 1, y, 1));
    else
        CUBLAS(cublasDaxpy(peers->blas, n, &alpha, x, 1, y, 1));
}

/* The largest error of an element, in its own roundoff. */
static double axpy_residual(const struct peers *peers, const void *x, const void *before,
                            const void *y)
{
    double epsilon = peers->element == sizeof(float) ? 0x1p-24 : 0x1p-53, largest = 0;
    for (size_t i = 0; i < peers->n; i++) {
        double was = element_at(before, peers->element, i);
        double added = alpha * element_at(x, peers->element, i);
        double error = fabs(element_at(y, peers->element, i) - (was + added));
        largest = isnan(error) ? INFINITY : fmax(largest, error / (fabs(was) + fabs(added)));
    }
    return largest / epsilon;
}

void mode_axpy(struct peers *peers)
{
    size_t bytes = peers->n * peers->element;
    struct peers_times in_core = {.count = 0}, with_copies = {.count = 0};
    bool warm = false, warm_too = false;
    peers_need(peers, 2 * (double)bytes);
    void *host_x = peers_pinned(bytes), *host_y = peers_pinned(bytes), *sum = peers_pinned(bytes);
    void *x = peers_device(bytes), *y = peers_device(bytes);
    for (size_t i = 0; i < peers->n; i++) {
        double value = (double)(i % 1021) - 510, other = (double)(i % 509) / 8;
        if (peers->precision == 's') {
            ((float *)host_x)[i] = (float)value;
            ((float *)host_y)[i] = (float)other;
        } else {
            ((double *)host_x)[i] = value;
            ((double *)host_y)[i] = other;
        }
    }
    peers->start_s = seconds();
    while (peers_again(peers, &in_core)) {
        double start = seconds();
        CUDA(cudaMemcpyAsync(x, host_x, bytes, cudaMemcpyHostToDevice, peers->stream));
        CUDA(cudaMemcpyAsync(y, host_y, bytes, cudaMemcpyHostToDevice, peers->stream));
        CUDA(cudaStreamSynchronize(peers->stream));
        double copied = seconds();
        add(peers, x, y);
        CUDA(cudaStreamSynchronize(peers->stream));
        peers_add(&in_core, &warm, seconds() - copied);
        CUDA(cudaMemcpyAsync(sum, y, bytes, cudaMemcpyDeviceToHost, peers->stream));
        CUDA(cudaStreamSynchronize(peers->stream));
        peers_add(&with_copies, &warm_too, seconds() - start);
    }
    double wrong = axpy_residual(peers, host_x, host_y, sum);
    print(peers, "cublas", false, &in_core, 3 * (double)bytes, wrong);
    print(peers, "cublas", true, &with_copies, 3 * (double)bytes, wrong);
    CUDA(cudaFree(x));
    CUDA(cudaFree(y));
    CUDA(cudaFreeHost(host_x));
    CUDA(cudaFreeHost(host_y));
    CUDA(cudaFreeHost(sum));
}

/* ------------------------------------------------------------------------------------------- */
/* Jacobi                                                                                       */

/* The same steps on the host, in double precision, on the rows around `row` only. */
static double jacobi_row_error(const struct peers *peers, const void *before, const void *after,
                               size_t row)
{
    enum { BAND = 2 * JACOBI_STEPS + 1 };
    size_t n = peers->n, low = row < JACOBI_STEPS ? 0 : row - JACOBI_STEPS;
    size_t high = row + JACOBI_STEPS < n ? row + JACOBI_STEPS : n - 1;
    double *bands[2] = {zeroed(BAND * n * sizeof(double)), zeroed(BAND * n * sizeof(double))};
    for (size_t i = low; i <= high; i++)
        for (size_t j = 0; j < n; j++)
            bands[0][(i - low) * n + j] = bands[1][(i - low) * n + j] =
                element_at(before, peers->element, i * n + j);
    for (unsigned step = 0; step < JACOBI_STEPS; step++) {
        const double *in = bands[step % 2];
        double *out = bands[(step + 1) % 2];
        for (size_t i = low + 1; i < high; i++)
            for (size_t j = 1; j + 1 < n; j++) {
                size_t at = (i - low) * n + j;
                out[at] = 0.25 * (in[at - 1] + in[at + 1] + in[at - n] + in[at + n]);
            }
    }
    double largest = 0;
    for (size_t j = 0; j < n; j++)
        largest = fmax(largest, fabs(element_at(after, peers->element, row * n + j) -
                                     bands[JACOBI_STEPS % 2][(row - low) * n + j]));
    free(bands[0]);
    free(bands[1]);
    return largest;
}

/* The largest error in some of the rows, in roundoffs of 1/2, the largest value, a step. */
static double jacobi_residual(const struct peers *peers, const void *before, const void *after)
{
    enum { ROWS = 16 };
    double epsilon = peers->element == sizeof(float) ? 0x1p-24 : 0x1p-53, largest = 0;
    for (size_t k = 0; k < ROWS; k++) {
        size_t row = JACOBI_STEPS + k * (peers->n - 2 * JACOBI_STEPS - 1) / (ROWS - 1);
        double error = jacobi_row_error(peers, before, after, row);
        largest = isnan(error) ? INFINITY : fmax(largest, error);
    }
    return largest / (0.5 * epsilon * JACOBI_STEPS);
}

void mode_jacobi2d(struct peers *peers)
{
    size_t bytes = peers->n * peers->n * peers->element;
    struct peers_times in_core = {.count = 0}, with_copies = {.count = 0};
    bool warm = false, warm_too = false;
    if (peers->n < 4 * JACOBI_STEPS)
        peers_fail("jacobi2d needs N of %d at least", 4 * JACOBI_STEPS);
    peers_need(peers, 2 * (double)bytes);
    void *before = peers_pinned(bytes), *after = peers_pinned(bytes);
    void *grids[2] = {peers_device(bytes), peers_device(bytes)};
    peers_fill(before, peers->element, peers->n, PEERS_GENERAL, 1);
    peers->start_s = seconds();
    while (peers_again(peers, &in_core)) {
        double start = seconds();
        CUDA(cudaMemcpyAsync(grids[0], before, bytes, cudaMemcpyHostToDevice, peers->stream));
        /* the border, which no step writes */
        CUDA(cudaMemcpyAsync(grids[1], grids[0], bytes, cudaMemcpyDeviceToDevice, peers->stream));
        CUDA(cudaStreamSynchronize(peers->stream));
        double copied = seconds();
        for (unsigned step = 0; step < JACOBI_STEPS; step++)
            CUDA(peers_launch_jacobi2d(peers->stream, peers->element, peers->n, grids[step % 2],
                                       grids[(step + 1) % 2]));
        CUDA(cudaStreamSynchronize(peers->stream));
        peers_add(&in_core, &warm, seconds() - copied);
        CUDA(cudaMemcpyAsync(after, grids[JACOBI_STEPS % 2], bytes, cudaMemcpyDeviceToHost,
                             peers->stream));
        CUDA(cudaStreamSynchronize(peers->stream));
        peers_add(&with_copies, &warm_too, seconds() - start);
    }
    double wrong = jacobi_residual(peers, before, after);
    print(peers, "kernel", false, &in_core, 2.0 * JACOBI_STEPS * (double)bytes, wrong);
    print(peers, "kernel", true, &with_copies, 2.0 * JACOBI_STEPS * (double)bytes, wrong);
    CUDA(cudaFree(grids[0]));
    CUDA(cudaFree(grids[1]));
    CUDA(cudaFreeHost(before));
    CUDA(cudaFreeHost(after));
}
