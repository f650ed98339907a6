/* SPDX-License-Identifier: Apache-2.0 */
/* Shares the filling and judging of large data among all cores. */
#ifndef DUET_WORKLOADS_SHARE_H
#define DUET_WORKLOADS_SHARE_H

#include <stdint.h>

/* Does the part [first, end) of the work. */
typedef void duet__part_fn(void *self, uint64_t first, uint64_t end);

/*
 * Calls `run` for parts of [0, count), which together are all of it, on as many threads as this
 * process has cores; fewer if there are less than about a million of `elements` for each. Blocks
 * until all have ended. Parts must not write what others read or write. Never fails: parts for
 * which there is no thread run on the caller's.
 */
void duet__share(uint64_t count, uint64_t elements, duet__part_fn *run, void *self);

#endif
