/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudaHostRegister and cudaHostUnregister from any thread. Both work on the device that is current,
 * which on an application's thread is the first one although nobody has chosen it: that may be
 * broken, another process's, or not in use.
 */
#ifndef DUET_CUDA_REGISTER_H
#define DUET_CUDA_REGISTER_H

#include <stddef.h>

#include "backends/cuda/errors.h"

/* duet__cuda_well's answer once a device hangs: CUDA would wait for it. Nothing is registered, and
   what is registered stays so. */
enum { REGISTER_NEVER = -2 };

/* Who knows of a device to register on. Zeroed: nobody, and the current one is taken. */
struct registrar {
    /* As duet__cuda_well. */
    int (*device)(void *context, int current, int broken);
    void *context;
};

/*
 * Page-locks whole pages, for all devices; ends that. The device that is current on this thread
 * stays so. true: not done, *failure says which call failed and why.
 */
DUET_MUST_CHECK bool duet__cuda_register(const struct registrar *registrar, void *begin,
                                         size_t bytes, struct failure *failure);
DUET_MUST_CHECK bool duet__cuda_unregister(const struct registrar *registrar, void *begin,
                                           struct failure *failure);

#endif
