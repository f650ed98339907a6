/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The overhead benchmarks as OpenMP tasks with dependencies. OVERHEAD_NAME is the runtime that the
 * compiler brings: libgomp or libomp.
 */
#include "bench/overhead/overhead.h"
#include "bench/timing.h"

struct openmp {
    unsigned workers;
    char *base; /* block i is base[i * bytes] */
    size_t bytes;
};

static void *open_openmp(unsigned workers)
{
    struct openmp *self = zeroed(sizeof *self);
    self->workers = workers;
    return self;
}

static void close_openmp(void *self)
{
    free(self);
}

static void blocks(void *opaque, char *base, size_t count, size_t bytes)
{
    struct openmp *self = opaque;
    self->base = base;
    self->bytes = bytes;
}

static void drop(void *self)
{
}

static void fork_join(void *opaque, uint32_t *marks, size_t tasks, size_t joins)
{
    const struct openmp *self = opaque;
#pragma omp parallel num_threads(self->workers)
#pragma omp single
    for (size_t j = 0; j < joins; j++) {
        for (size_t i = 0; i < tasks; i++) {
#pragma omp task firstprivate(i)
            kernel_mark(&marks[i]);
        }
#pragma omp taskwait
    }
}

static void chain(void *opaque, size_t length)
{
    const struct openmp *self = opaque;
    char *base = self->base;
#pragma omp parallel num_threads(self->workers)
#pragma omp single
    for (size_t i = 0; i < length; i++) {
#pragma omp task depend(inout : base[0])
        kernel_bump((uint64_t *)(void *)base);
    }
}

/* ------------------------------------------------------------------------------------------- */

static void trsm(const char *tile_kk, char *tile_ik)
{
#pragma omp task depend(in : *tile_kk) depend(inout : *tile_ik)
    kernel_bump((uint64_t *)(void *)tile_ik);
}

static void syrk(const char *tile_ik, char *tile_ii)
{
#pragma omp task depend(in : *tile_ik) depend(inout : *tile_ii)
    kernel_bump((uint64_t *)(void *)tile_ii);
}

static void gemm(const char *tile_ik, const char *tile_jk, char *tile_ij)
{
#pragma omp task depend(in : *tile_ik, *tile_jk) depend(inout : *tile_ij)
    kernel_bump((uint64_t *)(void *)tile_ij);
}

static char *tile(const struct openmp *self, size_t n, size_t i, size_t j)
{
    return self->base + (i * n + j) * self->bytes;
}

static void submit_cholesky(const struct openmp *self, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        char *tile_kk = tile(self, n, k, k);
#pragma omp task depend(inout : *tile_kk)
        kernel_bump((uint64_t *)(void *)tile_kk);
        for (size_t i = k + 1; i < n; i++)
            trsm(tile_kk, tile(self, n, i, k));
        for (size_t i = k + 1; i < n; i++) {
            syrk(tile(self, n, i, k), tile(self, n, i, i));
            for (size_t j = k + 1; j < i; j++)
                gemm(tile(self, n, i, k), tile(self, n, j, k), tile(self, n, i, j));
        }
    }
}

static void cholesky(void *opaque, size_t n)
{
    const struct openmp *self = opaque;
#pragma omp parallel num_threads(self->workers)
#pragma omp single
    submit_cholesky(self, n);
}

/* ------------------------------------------------------------------------------------------- */

/* As OpenMP has it: a task for each call, and a wait for the two. */
static uint64_t fibonacci_task(unsigned n)
{
    if (n < 2)
        return n;
    uint64_t a, b;
#pragma omp task shared(a) firstprivate(n)
    a = fibonacci_task(n - 1);
#pragma omp task shared(b) firstprivate(n)
    b = fibonacci_task(n - 2);
#pragma omp taskwait
    return a + b;
}

static uint64_t fibonacci(void *opaque, unsigned n, struct frame *frames)
{
    const struct openmp *self = opaque;
    uint64_t value = 0;
#pragma omp parallel num_threads(self->workers)
#pragma omp single
    value = fibonacci_task(n);
    return value;
}

static void point(char *out, char *left, char *centre, char *right, uint64_t iterations)
{
#pragma omp task depend(in : *left, *centre, *right) depend(out : *out) firstprivate(iterations)
    kernel_stencil((uint64_t *)(void *)out, (uint64_t *)(void *)left, (uint64_t *)(void *)centre,
                   (uint64_t *)(void *)right, iterations);
}

static void stencil(void *opaque, size_t width, size_t steps, uint64_t iterations)
{
    const struct openmp *self = opaque;
#pragma omp parallel num_threads(self->workers)
#pragma omp single
    for (size_t t = 1; t <= steps; t++) {
        char *before = self->base + (t - 1) % 2 * width * self->bytes;
        char *now = self->base + t % 2 * width * self->bytes;
        for (size_t i = 0; i < width; i++)
            point(now + i * self->bytes, before + (i ? i - 1 : 0) * self->bytes,
                  before + i * self->bytes, before + (i + 1 < width ? i + 1 : i) * self->bytes,
                  iterations);
    }
}

static void block_saxpy(char *x, char *y, size_t bytes)
{
#pragma omp task depend(in : *x) depend(inout : *y) firstprivate(bytes)
    kernel_saxpy(bytes / sizeof(float), (float *)(void *)x, (float *)(void *)y);
}

static void saxpy(void *opaque, size_t count, size_t passes)
{
    const struct openmp *self = opaque;
#pragma omp parallel num_threads(self->workers)
#pragma omp single
    for (size_t pass = 0; pass < passes; pass++) {
        for (size_t i = 0; i < count; i++)
            block_saxpy(self->base + i * self->bytes, self->base + (count + i) * self->bytes,
                        self->bytes);
#pragma omp taskwait
    }
}

const struct peer overhead_peer = {
    .name = OVERHEAD_NAME,
    .open = open_openmp,
    .close = close_openmp,
    .blocks = blocks,
    .drop = drop,
    .fork_join = fork_join,
    .chain = chain,
    .cholesky = cholesky,
    .fibonacci = fibonacci,
    .stencil = stencil,
    .saxpy = saxpy,
};
