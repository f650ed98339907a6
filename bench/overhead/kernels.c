/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the overhead benchmarks, for every runtime. */
#include "bench/overhead/overhead.h"

void kernel_mark(uint32_t *mark)
{
    ++*mark;
}

void kernel_bump(uint64_t *cell)
{
    ++*cell;
}

void kernel_stencil(uint64_t *out, const uint64_t *left, const uint64_t *centre,
                    const uint64_t *right, uint64_t iterations)
{
    /* Knuth's linear congruential generator (MMIX): each step needs the one before */
    uint64_t x = *left + 3 * *centre + 5 * *right + 1;
    for (uint64_t i = 0; i < iterations; i++)
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    *out = x;
}

double kernel_sum(const double *numbers, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += numbers[i];
    return sum;
}

uint64_t kernel_fibonacci(unsigned n)
{
    return n < 2 ? n : kernel_fibonacci(n - 1) + kernel_fibonacci(n - 2);
}

/* ------------------------------------------------------------------------------------------- */

size_t frame_count(unsigned n)
{
    size_t count = 1, next = 1;
    for (unsigned i = 0; i < n; i++) {
        size_t after = 1 + count + next;
        count = next;
        next = after;
    }
    return count;
}

void frame_split(struct frame *frame, struct frame *children[2])
{
    children[0] = frame + 1;
    children[1] = frame + 1 + frame_count(frame->n - 1);
    atomic_store_explicit(&frame->missing, 2, memory_order_relaxed);
    for (unsigned i = 0; i < 2; i++) {
        children[i]->parent = frame;
        children[i]->n = frame->n - 1 - i;
        children[i]->which = i;
    }
}

void frame_end(struct frame *frame)
{
    uint64_t value = frame->n;
    for (; frame->parent; frame = frame->parent) {
        struct frame *parent = frame->parent;
        parent->value[frame->which] = value;
        if (atomic_fetch_sub_explicit(&parent->missing, 1, memory_order_acq_rel) != 1)
            return;
        value = parent->value[0] + parent->value[1];
    }
}
