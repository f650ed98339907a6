/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small task programs for several runtimes: kernels, which all of them run (kernels.c), and
 * functions that each runtime provides, in a file of its own. main.c submits the tasks, times and
 * verifies.
 */
#ifndef DUET_BENCH_OVERHEAD_H
#define DUET_BENCH_OVERHEAD_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CELL_BYTES = 64, /* one block of data: a cache line with one counter */
    BLOCKS_MAX = 4,  /* most of a task */
};

/* ------------------------------------------------------------------------------------------- */
/* Kernels                                                                                      */

/* Kernels of tasks. A task writes its last block, after reading it unless said otherwise, and reads
 * the others. */
enum kernel {
    MARK,   /* no block; the argument is the mark */
    BUMP_1, /* one block, or the stated number */
    BUMP_2,
    BUMP_3,
    STENCIL, /* 4 blocks, the last is not read; the argument points to the iterations */
    SIZED,   /* a mark with a size: the argument is a struct sized */
    KERNELS,
};

/* Argument of SIZED: the work of its task, for runtimes whose models know sizes. */
struct sized {
    uint32_t mark, size;
};

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
/* The sum of these numbers, added one after the other. */
double kernel_sum(const double *numbers, size_t count);
/* The n-th Fibonacci number, by two recursive calls. */
uint64_t kernel_fibonacci(unsigned n);

/*
 * One call of the recursion, for runtimes whose tasks do not wait: the second of two children to
 * end adds up and goes on with the parent. Frames are laid out in the order of a depth-first walk.
 */
struct frame {
    struct frame *parent;
    unsigned n, which;  /* which: 0 or 1, of the parent's children */
    atomic_int missing; /* children that have not ended */
    uint64_t value[2];  /* results of the children */
};

/* Frames of fibonacci(n): calls, and tasks. */
size_t frame_count(unsigned n);
/* Makes the frames of both children of a call with n >= 2. */
void frame_split(struct frame *frame, struct frame *children[2]);
/* Ends a call with n < 2, and its ancestors whose last open call it was. */
void frame_end(struct frame *frame);

/* ------------------------------------------------------------------------------------------- */
/* The runtime: every function ends the program with a message on an error                      */

extern const char peer_name[];

void peer_open(unsigned workers);
void peer_close(void);
/* Registers `count` blocks of CELL_BYTES, one behind the other from `base` on, until peer_drop. */
void peer_blocks(char *base, size_t count);
void peer_drop(void);

/* Registers numbers to be summed, by a task for each of so many pieces; until peer_drop. */
void peer_numbers(double *all, size_t count, size_t pieces);
/* Returns their sum, as a reduction. NaN: this runtime has none. */
double peer_sum(void);

/* Calls program(context), which submits tasks and waits for them, on a thread that may submit. */
void peer_run(void (*program)(const void *context), const void *context);
/* Submits a task on these blocks, by number. The argument must stay until it has run. */
void peer_submit(enum kernel kernel, const size_t *blocks, void *argument);
void peer_wait(void);
/* Submits so many times what program(context) submits, as a graph that is made once, and waits
 * after each AGAIN_WAIT of them. NULL: this runtime has no such graphs. */
enum { AGAIN_WAIT = 8 };
__attribute__((weak)) void peer_again(void (*program)(const void *context), const void *context,
                                      size_t times);

/* Calls fibonacci(n) with a task for each call; frames: as many as frame_count(n). */
uint64_t peer_fibonacci(unsigned n, struct frame *frames);
/* Computes it with tasks that wait for their two children. 0: this runtime's tasks do not wait. */
uint64_t peer_fibonacci_wait(unsigned n);

#endif
