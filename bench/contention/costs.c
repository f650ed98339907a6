/* SPDX-License-Identifier: Apache-2.0 */
/* Measures an atomic operation on a thread's own line, and the move of a line to another core. */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

#include "bench/contention/crew.h"
#include "bench/contention/engine.h"
#include "bench/timing.h"

enum { LINE = 64, TIMES = 20, TURNS = 10000 };

static _Alignas(LINE) _Atomic(unsigned) turn;
static double atomic_s, turn_s;

/* Two threads write one line in turns: each reads what the other one wrote, then writes. */
static void play(unsigned self)
{
    for (unsigned t = 0; t < TIMES; t++) {
        double start = seconds();
        for (unsigned i = 0; i < TURNS; i++) {
            unsigned mine = 2 * (t * TURNS + i) + self;
            while (atomic_load_explicit(&turn, memory_order_acquire) != mine)
                ;
            atomic_store_explicit(&turn, mine + 1, memory_order_release);
        }
        if (self == 0)
            turn_s = fmin(turn_s, (seconds() - start) / (2 * TURNS));
    }
}

void costs_print(void)
{
    atomic_s = turn_s = INFINITY;
    for (unsigned t = 0; t < TIMES; t++) {
        double start = seconds();
        for (unsigned i = 0; i < TURNS; i++)
            atomic_fetch_add(&turn, 1);
        atomic_s = fmin(atomic_s, (seconds() - start) / TURNS);
    }
    atomic_store(&turn, 0);
    crew_real.run(2, play);
    printf("{\"atomic_ns\": %.2f, \"turn_ns\": %.1f}\n", atomic_s * 1e9, turn_s * 1e9);
}
