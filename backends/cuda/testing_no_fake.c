/* SPDX-License-Identifier: Apache-2.0 */
/* The fake CUDA's test functions, which do nothing where tests are linked with the real CUDA. */
#include <string.h>

#include "tests/fake_cuda/fake.h"

bool fake_cuda_present(void)
{
    return false;
}

void fake_cuda_reset(const struct fake_cuda_config *config)
{
}

void fake_cuda_break(unsigned device, int error, unsigned operations)
{
}

void fake_cuda_stats(struct fake_cuda_stats *stats)
{
    memset(stats, 0, sizeof *stats);
}

uint64_t fake_cuda_registered(void)
{
    return 0;
}

unsigned fake_cuda_leaks(bool say)
{
    return 0;
}
