/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C := C + A B by cuBLAS, with all of the matrices in the GPU's memory, and by cuBLASXt from the
 * host's. Every repeat adds the product once more, so that in the end all of them are checked.
 */
#include <stdlib.h>

#include <cublasXt.h>

#include "bench/cuda/peers.h"
#include "bench/timing.h"

/* Matrices in page-locked memory of the host, and what is to become of C x. */
struct product {
    void *a, *b, *c;
    double *x, *abx, *cx; /* A (B x); C x before */
    size_t bytes;         /* of a matrix */
    unsigned times;       /* that A B was added */
};

static void prepare(const struct peers *peers, struct product *product)
{
    size_t n = peers->n, bytes = n * n * peers->element;
    double *bx = zeroed(n * sizeof *bx);
    *product = (struct product){
        .a = peers_pinned(bytes),
        .b = peers_pinned(bytes),
        .c = peers_pinned(bytes),
        .x = peers_vector(n, 4),
        .abx = zeroed(n * sizeof(double)),
        .cx = zeroed(n * sizeof(double)),
        .bytes = bytes,
    };
    peers_fill(product->a, peers->element, n, PEERS_GENERAL, 1);
    peers_fill(product->b, peers->element, n, PEERS_GENERAL, 2);
    peers_fill(product->c, peers->element, n, PEERS_GENERAL, 3);
    peers_multiply(product->b, peers->element, n, PEERS_GENERAL, false, product->x, bx);
    peers_multiply(product->a, peers->element, n, PEERS_GENERAL, false, bx, product->abx);
    peers_multiply(product->c, peers->element, n, PEERS_GENERAL, false, product->x, product->cx);
    free(bx);
}

static double residual(const struct peers *peers, const struct product *product)
{
    size_t n = peers->n;
    double *found = zeroed(n * sizeof *found), *right = zeroed(n * sizeof *right);
    for (size_t i = 0; i < n; i++)
        right[i] = product->cx[i] + product->times * product->abx[i];
    peers_multiply(product->c, peers->element, n, PEERS_GENERAL, false, product->x, found);
    double result = peers_residual(peers->element, n, found, right);
    free(found);
    free(right);
    return result;
}

static void release(const struct product *product)
{
    CUDA(cudaFreeHost(product->a));
    CUDA(cudaFreeHost(product->b));
    CUDA(cudaFreeHost(product->c));
    free(product->x);
    free(product->abx);
    free(product->cx);
}

static void print(const struct peers *peers, const char *peer, bool copies,
                  const struct peers_times *times, double wrong)
{
    double n = (double)peers->n;
    line_begin(peers, peer);
    line_text("precision", peers->precision == 's' ? "s" : "d");
    line_integer("n", peers->n);
    line_flag("copies", copies);
    if (peers->block)
        line_integer("block", peers->block);
    line_times(times, "gflops", 2e-9 * n * n * n);
    line_residual(wrong);
    line_end();
}

/* ------------------------------------------------------------------------------------------- */
/* In core                                                                                      */

static void multiply(const struct peers *peers, const void *a, const void *b, void *c)
{
    int n = (int)peers->n;
    if (peers->precision == 's') {
        const float one = 1;
        CUBLAS(cublasSgemm(peers->blas, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, n, b, n, &one,
                           c, n));
    } else {
        const double one = 1;
        CUBLAS(cublasDgemm(peers->blas, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, n, b, n, &one,
                           c, n));
    }
}

void mode_gemm(struct peers *peers)
{
    size_t bytes = peers->n * peers->n * peers->element;
    struct peers_times in_core = {.count = 0}, with_copies = {.count = 0};
    bool warm = false, warm_too = false;
    struct product product;
    peers_need(peers, 3 * (double)bytes);
    prepare(peers, &product);
    void *a = peers_device(bytes), *b = peers_device(bytes), *c = peers_device(bytes);

    for (peers->start_s = seconds(); peers_again(peers, &in_core); product.times++) {
        double start = seconds();
        CUDA(cudaMemcpyAsync(a, product.a, bytes, cudaMemcpyHostToDevice, peers->stream));
        CUDA(cudaMemcpyAsync(b, product.b, bytes, cudaMemcpyHostToDevice, peers->stream));
        CUDA(cudaMemcpyAsync(c, product.c, bytes, cudaMemcpyHostToDevice, peers->stream));
        CUDA(cudaStreamSynchronize(peers->stream));
        double copied = seconds();
        multiply(peers, a, b, c);
        CUDA(cudaStreamSynchronize(peers->stream));
        peers_add(&in_core, &warm, seconds() - copied);
        CUDA(cudaMemcpyAsync(product.c, c, bytes, cudaMemcpyDeviceToHost, peers->stream));
        CUDA(cudaStreamSynchronize(peers->stream));
        peers_add(&with_copies, &warm_too, seconds() - start);
    }
    double wrong = residual(peers, &product);
    print(peers, "cublas", false, &in_core, wrong);
    print(peers, "cublas", true, &with_copies, wrong);
    CUDA(cudaFree(a));
    CUDA(cudaFree(b));
    CUDA(cudaFree(c));
    release(&product);
}

/* ------------------------------------------------------------------------------------------- */
/* Out of core                                                                                  */

static void multiply_xt(const struct peers *peers, cublasXtHandle_t xt,
                        const struct product *product)
{
    size_t n = peers->n;
    if (peers->precision == 's') {
        const float one = 1;
        CUBLAS(cublasXtSgemm(xt, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, product->a, n, product->b,
                             n, &one, product->c, n));
    } else {
        const double one = 1;
        CUBLAS(cublasXtDgemm(xt, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, product->a, n, product->b,
                             n, &one, product->c, n));
    }
}

void mode_gemm_xt(struct peers *peers)
{
    struct peers_times times = {.count = 0};
    bool warm = false;
    cublasXtHandle_t xt;
    struct product product;
    int devices[] = {peers->device};
    CUBLAS(cublasXtCreate(&xt));
    CUBLAS(cublasXtDeviceSelect(xt, 1, devices));
    if (peers->block)
        CUBLAS(cublasXtSetBlockDim(xt, (int)peers->block));
    prepare(peers, &product);
    for (peers->start_s = seconds(); peers_again(peers, &times); product.times++) {
        double start = seconds();
        multiply_xt(peers, xt, &product);
        CUDA(cudaDeviceSynchronize());
        peers_add(&times, &warm, seconds() - start);
    }
    print(peers, "cublasxt", true, &times, residual(peers, &product));
    CUBLAS(cublasXtDestroy(xt));
    release(&product);
}
