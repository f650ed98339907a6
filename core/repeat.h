/* SPDX-License-Identifier: Apache-2.0 */
/* What the core, an engine and a backend share of the kernels of a graph that run as one command.
 */
#ifndef DUET_CORE_REPEAT_H
#define DUET_CORE_REPEAT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* The kernels of a graph. Users: the core, as long as it may submit them, and a backend. */
struct duet__repeat {
    _Atomic(unsigned) users;
    _Atomic(unsigned) submitters; /* the core's part in `users` ends with the last of them */
    size_t kernels;
    size_t accesses; /* of all kernels: their buffers are no more */
    /* for the thread of the device */
    bool begun;   /* the kernels have been called before */
    bool refused; /* what they enqueue cannot be captured */
};

/* Ends the use by one user: frees it after the last one. */
static inline void duet__repeat_drop(struct duet__repeat *repeat)
{
    if (atomic_fetch_sub(&repeat->users, 1) == 1)
        free(repeat);
}

#endif
