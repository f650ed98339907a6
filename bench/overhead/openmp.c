/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The overhead benchmarks as OpenMP tasks with dependencies. OVERHEAD_NAME is the runtime that the
 * compiler brings: libgomp or libomp.
 */
#include "bench/overhead/overhead.h"

const char peer_name[] = OVERHEAD_NAME;

static unsigned threads;
static char *memory; /* block i is memory[i * CELL_BYTES] */
static double *numbers;
static size_t number_count, piece_count;

void peer_open(unsigned workers)
{
    threads = workers;
}

void peer_close(void)
{
}

void peer_blocks(char *base, size_t count)
{
    memory = base;
}

void peer_drop(void)
{
}

void peer_run(void (*program)(const void *context), const void *context)
{
#pragma omp parallel num_threads(threads)
#pragma omp single
    program(context);
}

static uint64_t *cell(char *block)
{
    return (uint64_t *)(void *)block;
}

/* Creates a task for a kernel: the number of dependencies is part of the program's text. */

static void mark(uint32_t *own)
{
#pragma omp task firstprivate(own)
    kernel_mark(own);
}

static void bump_1(char *a)
{
#pragma omp task depend(inout : *a)
    kernel_bump(cell(a));
}

static void bump_2(const char *a, char *b)
{
#pragma omp task depend(in : *a) depend(inout : *b)
    kernel_bump(cell(b));
}

static void bump_3(const char *a, const char *b, char *c)
{
#pragma omp task depend(in : *a, *b) depend(inout : *c)
    kernel_bump(cell(c));
}

static void point(char *a, char *b, char *c, char *d, const uint64_t *iterations)
{
#pragma omp task depend(in : *a, *b, *c) depend(out : *d) firstprivate(iterations)
    kernel_stencil(cell(d), cell(a), cell(b), cell(c), *iterations);
}

static char *block(const size_t *blocks, unsigned i)
{
    return memory + blocks[i] * CELL_BYTES;
}

void peer_submit(enum kernel kernel, const size_t *blocks, void *argument)
{
    if (kernel == MARK || kernel == SIZED) /* whose first member is a mark */
        mark(argument);
    else if (kernel == BUMP_1)
        bump_1(block(blocks, 0));
    else if (kernel == BUMP_2)
        bump_2(block(blocks, 0), block(blocks, 1));
    else if (kernel == BUMP_3)
        bump_3(block(blocks, 0), block(blocks, 1), block(blocks, 2));
    else if (kernel == STENCIL)
        point(block(blocks, 0), block(blocks, 1), block(blocks, 2), block(blocks, 3), argument);
}

void peer_wait(void)
{
#pragma omp taskwait
}

void peer_numbers(double *all, size_t count, size_t pieces)
{
    numbers = all;
    number_count = count;
    piece_count = pieces;
}

/* Sums as OpenMP does it: no task for each piece, but a loop over them. */
double peer_sum(void)
{
    double sum = 0;
#pragma omp parallel for num_threads(threads) reduction(+ : sum)
    for (size_t i = 0; i < piece_count; i++) {
        size_t begin = number_count * i / piece_count, end = number_count * (i + 1) / piece_count;
        sum += kernel_sum(numbers + begin, end - begin);
    }
    return sum;
}

/* Recurses as OpenMP does it: a task for each call, and a wait for the two. */
static uint64_t fibonacci(unsigned n)
{
    if (n < 2)
        return n;
    uint64_t a, b;
#pragma omp task shared(a)
    a = fibonacci(n - 1);
#pragma omp task shared(b)
    b = fibonacci(n - 2);
#pragma omp taskwait
    return a + b;
}

uint64_t peer_fibonacci_wait(unsigned n)
{
    uint64_t value = 0;
#pragma omp parallel num_threads(threads)
#pragma omp single
    value = fibonacci(n);
    return value;
}

uint64_t peer_fibonacci(unsigned n, struct frame *frames)
{
    return peer_fibonacci_wait(n);
}
