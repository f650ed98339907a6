/* SPDX-License-Identifier: Apache-2.0 */
/* Real threads, as many as are asked for, however few cores there are. */
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/contention/contention.h"
#include "bench/timing.h"

enum { LINE = 64, TRIES = 100 };

struct real {
    _Alignas(LINE) struct lines_thread thread;
    pthread_t id;
    sem_t called;
    _Atomic(bool) has_call;
};

static struct real crew[CREW_MAX];
static _Thread_local unsigned index_here;
static void (*run_body)(unsigned self);

static void *begin(void *argument)
{
    struct real *self = argument;
    index_here = (unsigned)(self - crew);
    lines_become(&self->thread);
    run_body(index_here);
    lines_become(NULL);
    return NULL;
}

static void real_run(unsigned count, void (*body)(unsigned self))
{
    run_body = body;
    for (unsigned i = 0; i < count; i++) {
        crew[i].thread = (struct lines_thread){.index = i, .limit_ns = INFINITY};
        atomic_store(&crew[i].has_call, false);
        (void)sem_init(&crew[i].called, 0, 0);
    }
    for (unsigned i = 0; i < count; i++) {
        if (pthread_create(&crew[i].id, NULL, begin, &crew[i])) {
            (void)fprintf(stderr, "contention: no thread %u\n", i);
            exit(1);
        }
    }
    for (unsigned i = 0; i < count; i++)
        (void)pthread_join(crew[i].id, NULL);
}

static unsigned real_self(void)
{
    return index_here;
}

static void real_compute(double seconds_of_it)
{
    double end = seconds() + seconds_of_it;
    while (seconds() < end)
        ;
}

static void real_sleep(double seconds_of_it)
{
    const struct timespec span = {.tv_nsec = (long)(seconds_of_it * 1e9)};
    (void)nanosleep(&span, NULL);
}

static void real_rest(void)
{
    struct real *self = &crew[index_here];
    int tries = 0;
    while (tries < TRIES && sem_trywait(&self->called)) {
        (void)sched_yield();
        tries++;
    }
    if (tries == TRIES)
        while (sem_wait(&self->called))
            ;
    (void)atomic_exchange(&self->has_call, false);
}

static void real_call(unsigned who)
{
    if (!atomic_exchange(&crew[who].has_call, true))
        (void)sem_post(&crew[who].called);
}

const struct crew crew_real = {
    .run = real_run,
    .self = real_self,
    .now = seconds,
    .compute = real_compute,
    .sleep = real_sleep,
    .rest = real_rest,
    .call = real_call,
};

/* ------------------------------------------------------------------------------------------- */
/* Measures an atomic operation on a thread's own line, and the move of a line to another core. */

enum { TIMES = 20, TURNS = 10000 };

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
