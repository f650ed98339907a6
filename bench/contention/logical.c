/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logical threads: a stack and a clock each, run by one thread of the system. It is always the turn
 * of the one with the earliest date, until its clock is a little past that of the next one; what
 * accesses and kernels take moves the clocks (lines.c). Same program, same order, same counts.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#include "bench/contention/contention.h"

enum { STACK_BYTES = 1 << 18 };

static const double AHEAD_NS = 20; /* date beyond those of others at which a turn ends */

struct logical {
    struct lines_thread thread;
    enum { READY, RESTING, WATCHING, ENDED } state;
    bool called;
    uintptr_t line; /* line that it watches */
    ucontext_t context;
    char *stack;
};

static struct logical crew[CREW_MAX];
static unsigned count, now_running;
static ucontext_t outside;
static void (*run_body)(unsigned self);

/* Returns the earliest thread that can run; *second_ns: date of the next. NULL: there is none. */
static struct logical *earliest(double *second_ns)
{
    struct logical *first = NULL;
    *second_ns = INFINITY;
    for (unsigned i = 0; i < count; i++) {
        struct logical *other = &crew[i];
        if (other->state != READY)
            continue;
        if (!first || other->thread.now_ns < first->thread.now_ns) {
            *second_ns = first ? first->thread.now_ns : *second_ns;
            first = other;
        } else if (other->thread.now_ns < *second_ns) {
            *second_ns = other->thread.now_ns;
        }
    }
    return first;
}

static void resume(struct logical *one)
{
    now_running = (unsigned)(one - crew);
    lines_become(&one->thread);
}

/* Gives the turn to the earliest thread, which may be this one again. */
static void turn(void)
{
    struct logical *self = &crew[now_running];
    double second_ns;
    struct logical *first = earliest(&second_ns);
    if (first) {
        first->thread.limit_ns = second_ns + AHEAD_NS;
        if (first == self)
            return;
        resume(first);
        (void)swapcontext(&self->context, &first->context);
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        if (crew[i].state == ENDED)
            continue;
        (void)fprintf(stderr, "contention: all logical threads wait\n");
        exit(1);
    }
    lines_become(NULL);
    (void)swapcontext(&self->context, &outside);
}

/* Sleeps until another thread changes a watched line. */
static void watch(uintptr_t line)
{
    struct logical *self = &crew[now_running];
    self->line = line;
    self->state = WATCHING;
    turn();
}

static void changed(uintptr_t line)
{
    double now_ns = crew[now_running].thread.now_ns;
    for (unsigned i = 0; i < count; i++) {
        if (crew[i].state != WATCHING || crew[i].line != line)
            continue;
        crew[i].state = READY;
        if (crew[i].thread.now_ns < now_ns)
            crew[i].thread.now_ns = now_ns;
        crew[now_running].thread.limit_ns = now_ns; /* they come next */
    }
}

static void begin(void)
{
    run_body(now_running);
    crew[now_running].state = ENDED;
    turn();
}

static void prepare(struct logical *one)
{
    one->thread = (struct lines_thread){.index = (unsigned)(one - crew),
                                        .yield = turn,
                                        .watch = watch,
                                        .changed = changed};
    one->state = READY;
    one->called = false;
    one->stack = malloc(STACK_BYTES);
    if (!one->stack || getcontext(&one->context)) {
        (void)fprintf(stderr, "contention: no memory for %u stacks\n", count);
        exit(1);
    }
    one->context.uc_stack.ss_sp = one->stack;
    one->context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&one->context, begin, 0);
}

static void logical_run(unsigned threads, void (*body)(unsigned self))
{
    count = threads;
    run_body = body;
    for (unsigned i = 0; i < count; i++)
        prepare(&crew[i]);
    resume(&crew[0]);
    (void)swapcontext(&outside, &crew[0].context);
    for (unsigned i = 0; i < count; i++)
        free(crew[i].stack);
}

static unsigned logical_self(void)
{
    return now_running;
}

static double logical_now(void)
{
    return crew[now_running].thread.now_ns * 1e-9;
}

static void logical_compute(double seconds)
{
    crew[now_running].thread.now_ns += seconds * 1e9;
    turn();
}

static void logical_rest(void)
{
    struct logical *self = &crew[now_running];
    if (!self->called) {
        self->state = RESTING;
        turn();
    }
    self->called = false;
}

static void logical_call(unsigned who)
{
    struct logical *other = &crew[who];
    double now_ns = crew[now_running].thread.now_ns + lines_move_ns;
    other->called = true;
    if (other->state != RESTING)
        return;
    other->state = READY;
    if (other->thread.now_ns < now_ns)
        other->thread.now_ns = now_ns;
    if (crew[now_running].thread.limit_ns > other->thread.now_ns + AHEAD_NS)
        crew[now_running].thread.limit_ns = other->thread.now_ns + AHEAD_NS;
}

const struct crew crew_logical = {
    .run = logical_run,
    .self = logical_self,
    .now = logical_now,
    .compute = logical_compute,
    .sleep = logical_compute,
    .rest = logical_rest,
    .call = logical_call,
};
