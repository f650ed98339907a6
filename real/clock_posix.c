/* SPDX-License-Identifier: Apache-2.0 */
/* The clock on processors whose counter this engine cannot read: CLOCK_MONOTONIC. */
#include <time.h>

#include "real/internal.h"

static uint64_t monotonic_ns(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

void duet__clock_start(struct clock *clock)
{
    uint64_t now = monotonic_ns();
    *clock = (struct clock){.origin = now, .tick_s = 1e-9};
}

double duet__clock_now(const struct clock *clock)
{
    return (double)(monotonic_ns() - clock->origin) * clock->tick_s;
}

void duet__clock_rest(void)
{
}
