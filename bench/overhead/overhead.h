/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same small task programs for several runtimes: what a runtime provides (struct peer), and the
 * kernels that all of them run. main.c times and verifies; kernels.c is compiled into each program.
 */
#ifndef DUET_BENCH_OVERHEAD_H
#define DUET_BENCH_OVERHEAD_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CELL_BYTES = 64, /* one block of data in most benchmarks: a cache line with one counter */
};

/* ------------------------------------------------------------------------------------------- */
/* Kernels                                                                                      */

/* An empty task, but for the proof that it ran. */
void kernel_mark(uint32_t *mark);
/* An empty task on data, but for the proof that it ran alone. */
void kernel_bump(uint64_t *cell);
/*
 * One point of the stencil: `iterations` dependent multiplications and additions, whose result
 * depends on the three cells read. The same on every compiler.
 */
void kernel_stencil(uint64_t *out, const uint64_t *left, const uint64_t *centre,
                    const uint64_t *right, uint64_t iterations);
/* y := y + 2 x */
void kernel_saxpy(size_t count, const float *x, float *y);
/* The n-th Fibonacci number, by two recursive calls. */
uint64_t kernel_fibonacci(unsigned n);

/* ------------------------------------------------------------------------------------------- */
/* Fibonacci by tasks that do not wait                                                          */

/*
 * One call, for runtimes whose tasks do not wait: the second of two children to end adds up and
 * goes on with the parent. Frames are laid out in the order of a depth-first walk.
 */
struct frame {
    struct frame *parent;
    unsigned n, which;  /* which: 0 or 1, of the parent's children */
    atomic_int missing; /* children that have not ended */
    uint64_t value[2];  /* of the children */
};

/* Frames of fibonacci(n): calls, and tasks. */
size_t frame_count(unsigned n);
/* Makes the frames of both children of a call with n >= 2. */
void frame_split(struct frame *frame, struct frame *children[2]);
/* Ends a call with n < 2, and those of its ancestors of which it was the last. */
void frame_end(struct frame *frame);

/* ------------------------------------------------------------------------------------------- */
/* Runtimes                                                                                     */

/* Every function ends the program with a message on an error. `self` is what open returned. */
struct peer {
    const char *name;
    void *(*open)(unsigned workers);
    void (*close)(void *self);
    /* Makes `count` blocks of `bytes` known, one behind the other from `base` on, until drop. */
    void (*blocks)(void *self, char *base, size_t count, size_t bytes);
    void (*drop)(void *self);
    /* `joins` times: one task for each of `tasks` marks, then a wait for all of them. */
    void (*fork_join)(void *self, uint32_t *marks, size_t tasks, size_t joins);
    /* `length` tasks that bump block 0. */
    void (*chain)(void *self, size_t length);
    /*
     * Tiled right-looking Cholesky in which a kernel bumps the tile it writes; tile (i, j) is block
     * i * n + j. For each k: potrf RW(k,k); trsm R(k,k) RW(i,k) for i > k; syrk R(i,k) RW(i,i) and
     * gemm R(i,k) R(j,k) RW(i,j) for i > j > k.
     */
    void (*cholesky)(void *self, size_t n);
    /* Calls fibonacci(n) with a task for each call; frames: as many as frame_count(n). */
    uint64_t (*fibonacci)(void *self, unsigned n, struct frame *frames);
    /*
     * `steps` times `width` points: point i of step t reads points i-1, i, i+1 of the step before
     * (the border points read themselves twice) and writes itself. Point i of step t is block
     * t % 2 * width + i; step 0 is there.
     */
    void (*stencil)(void *self, size_t width, size_t steps, uint64_t iterations);
    /*
     * `passes` times: a task for each of `count` blocks, kernel_saxpy of block i on block count +
     * i, then a wait, so that no block is used again while it is in cache.
     */
    void (*saxpy)(void *self, size_t count, size_t passes);
};

/* Defined by the file of each runtime. */
extern const struct peer overhead_peer;

#endif
