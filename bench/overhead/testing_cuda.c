/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of cuda.cu on the fake CUDA's first GPU. */
#include <duet/duet.h>

#include "bench/overhead/overhead.h"
#include "tests/fake_cuda/fake.h"

int run_bump_on_gpu(const struct duet_call *call);

static void bump(void *argument)
{
    kernel_bump(*(uint64_t **)argument);
}

int run_bump_on_gpu(const struct duet_call *call)
{
    const struct duet_buffer *last = &call->buffers[call->buffer_count - 1];
    void *cell = fake_cuda_memory(0, last->data, CELL_BYTES);
    int error = cell ? fake_cuda_launch(call->stream, bump, &cell, sizeof cell) : -1;
    return error ? duet_fail(call->message, DUET_ETASK, "bump: error %d", error) : DUET_OK;
}
