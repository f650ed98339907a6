/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of a graph that are one command: what the core, an engine and a backend share. */
#ifndef DUET_CORE_REPEAT_H
#define DUET_CORE_REPEAT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

struct duet__repeat {
    _Atomic(unsigned) users; /* the core, as long as there are submitters; a backend's captures */
    _Atomic(unsigned) submitters; /* versions of the task that may be submitted, or in flight */
    size_t kernels;
    size_t accesses; /* of all kernels together: a call has at most so many buffers */
    /* used by the device's thread alone: */
    bool begun;   /* the kernels' functions have been called before */
    bool refused; /* what these enqueue cannot be captured */
};

/* Ends the use by one user: frees it after the last one. */
static inline void duet__repeat_drop(struct duet__repeat *repeat)
{
    if (atomic_fetch_sub(&repeat->users, 1) == 1)
        free(repeat);
}

#endif
