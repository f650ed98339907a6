/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudaHostRegister and cudaHostUnregister from any thread. Both work on the current device, which
 * on an application's thread is the first one although nobody has chosen it: that may be broken,
 * another process's, or not in use.
 */
#ifndef DUET_CUDA_REGISTER_H
#define DUET_CUDA_REGISTER_H

#include <stddef.h>

#include "backends/cuda/errors.h"

/* Result of duet__cuda_well once a device hangs, for which CUDA would wait: nothing is registered
   or unregistered any more. */
enum { REGISTER_NEVER = -2 };

/* Finder of a device to register on. Zeroed: the current device is used. */
struct registrar {
    /* As duet__cuda_well. */
    int (*device)(void *context, int current, int broken);
    void *context;
};

/*
 * Page-lock whole pages for all devices, and end that. The current device of this thread stays.
 * Return true if not done, with the call and the reason in *failure.
 */
DUET_MUST_CHECK bool duet__cuda_register(const struct registrar *registrar, void *begin,
                                         size_t bytes, struct failure *failure);
DUET_MUST_CHECK bool duet__cuda_unregister(const struct registrar *registrar, void *begin,
                                           struct failure *failure);

#endif
