/* SPDX-License-Identifier: Apache-2.0 */
/* Small random generator: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). A state is one number. */
#ifndef DUET_RANDOM_H
#define DUET_RANDOM_H

#include <stdint.h>

#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* C has no other */
#endif

/* Returns the next 64 random bits. */
static inline uint64_t duet_random_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/*
 * Returns a uniform number in [0, bound), bound > 0: multiply-shift, bias below bound / 2^32
 * (Lemire, 2019).
 */
static inline unsigned duet_random_below(uint64_t *state, unsigned bound)
{
    return (unsigned)(((duet_random_next(state) >> 32) * bound) >> 32);
}

/* Returns a uniform number in [0, 1). */
static inline double duet_random_unit(uint64_t *state)
{
    return (double)(duet_random_next(state) >> 11) / 9007199254740992.0; /* 2^53 */
}

/* Returns an independent state for stream `index` of a run seeded with `seed`. */
static inline uint64_t duet_random_stream(uint64_t seed, uint64_t index)
{
    uint64_t state = seed * UINT64_C(0xd1342543de82ef95) + index;
    return duet_random_next(&state);
}

#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif

#endif
