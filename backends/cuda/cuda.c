/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA GPUs, by the CUDA runtime: the table of the backend. */
#include <math.h>
#include <stdlib.h>

#include "backends/cuda/internal.h"
#include "backends/cuda/nvml.h"

static void cuda_detach(void *shared)
{
    struct cuda *cuda = shared;
    if (!cuda)
        return;
    duet__pins_fini(&cuda->pins);
    (void)pthread_mutex_destroy(&cuda->mutex);
    free(cuda);
}

static int cuda_attach(void **shared, const struct backend_setup *setup,
                       struct duet_message *message)
{
    if (!setup->now || setup->scale > 0)
        return duet_fail(message, DUET_EINVAL,
                         "GPUs need a clock, and have a pace of their own: no scale");
    struct cuda *cuda = calloc(1, sizeof *cuda);
    if (!cuda)
        return duet_fail(message, DUET_ENOMEM, "GPUs: out of memory");
    cuda->setup = *setup;
    cuda->staging_bytes = STAGING_BYTES;
    if (pthread_mutex_init(&cuda->mutex, NULL)) {
        free(cuda);
        return duet_fail(message, DUET_ENOMEM, "GPUs: no mutex");
    }
    if (duet__pins_init(&cuda->pins, setup->pin_bytes, setup->say, setup->clock)) {
        (void)pthread_mutex_destroy(&cuda->mutex);
        free(cuda);
        return duet_fail(message, DUET_ENOMEM, "GPUs: no mutex");
    }
    cuda->pins.cuda = cuda;
    cuda->pins.more = setup->pin_more;
    *shared = cuda;
    return DUET_OK;
}

static int cuda_pin(void *shared, void *data, uint64_t bytes, struct duet_message *message)
{
    return duet__pins_pin(&((struct cuda *)shared)->pins, data, bytes, message);
}

static int cuda_unpin(void *shared, void *data, struct duet_message *message)
{
    return duet__pins_unpin(&((struct cuda *)shared)->pins, data, message);
}

static void cuda_forget(void *shared, _Atomic(void *) *mark)
{
    duet__pins_forget(&((struct cuda *)shared)->pins, mark);
}

/* There is no next_s: CUDA's callbacks cost more than polling. */
const struct duet__backend duet__backend_cuda = {
    .name = "cuda",
    .description = "NVIDIA GPUs, by CUDA",
    .count = duet__cuda_count,
    .impaired = duet__cuda_impaired,
    .describe = duet__cuda_describe,
    .links = duet__cuda_links,
    .attach = cuda_attach,
    .detach = cuda_detach,
    .pin = cuda_pin,
    .unpin = cuda_unpin,
    .forget = cuda_forget,
    .open = duet__cuda_open,
    .close = duet__cuda_close,
    .launch = duet__cuda_launch,
    .repeats = true,
    .copy = duet__cuda_copy,
    .poll = duet__cuda_poll,
    .abandon = duet__cuda_abandon,
};
