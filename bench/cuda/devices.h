/* SPDX-License-Identifier: Apache-2.0 */
/* Whether there is a GPU to measure, and, if not, why. */
#ifndef DUET_BENCH_CUDA_DEVICES_H
#define DUET_BENCH_CUDA_DEVICES_H

#include <stddef.h>

/* How many GPUs CUDA shows. If none, 0, and `why` (of `size` bytes, cut if longer) says why. */
int count_devices(char *why, size_t size);

#endif
