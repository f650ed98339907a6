/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks without data that a CPU worker's kernels submit, kept to itself in a private deque as long
 * as nobody else is idle: a spawn is then a few stores, and no lock, no shared counter, no wake
 * (Acar, Chargueraud, Rainey, "Scheduling parallel programs by work stealing with private deques",
 * PPoPP 2013; lazy task creation: Mohr, Kranz, Halstead, TPDS 1991). The owner looks for idle
 * workers before each of them and gives the oldest away, which is the largest part of a recursion.
 */
#ifndef DUET_REAL_PRIVATE_H
#define DUET_REAL_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/engine.h"

struct private_task {
    const struct duet_codelet *codelet;
    duet_kernel_fn run;
    struct duet_class *klass;
    int priority;
    uint32_t args_bytes;
    double complexity;
    _Alignas(16) char args[DUET_ARGS_MAX];
};

/* The worker's thread only. Zeroed: empty. */
struct private_deque {
    struct private_task *ring; /* of `capacity`, a power of two */
    size_t capacity;
    size_t oldest, newest; /* newest - oldest tasks; positions modulo capacity */
    bool open;             /* between duet__private_begin and duet__private_end */
    bool closed;           /* nothing is kept now: what is submitted goes the common way */
};

/*
 * Keeps a task that a kernel on this worker submits. false: it is to go the common way, because
 * somebody is idle, it cannot run here, or there is no memory.
 */
bool duet__private_keep(struct duet_runtime *core, unsigned worker, struct private_deque *deque,
                        const struct duet_task_desc *task);

/* Gives all of them to the core, oldest first. */
void duet__private_give_all(struct duet_runtime *core, struct private_deque *deque);

/*
 * Runs the newest, and before it gives the oldest away if somebody is idle. false: none is left.
 * Inside the worker's loop, on a thread whose submissions are the worker's.
 */
bool duet__private_run(struct duet_runtime *core, unsigned worker, struct private_deque *deque);

void duet__private_fini(struct private_deque *deque);

#endif
