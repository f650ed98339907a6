/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernel or copy each one waited for, from the records of a run: the arrows of traces. */
#ifndef DUET_TRACE_ARROWS_H
#define DUET_TRACE_ARROWS_H

#include "trace/recording.h"

/*
 * By event, the index of what it waited for, and 1; 0: nothing. That is, of the tasks that a task
 * comes after, by its data or explicitly, and the copies that brought its data, the one that ended
 * last; without `all`, only if the task before it on its worker ended earlier. Of a copy that
 * something waited for: the task or copy that its data is of. It has a lower index. Data is
 * followed by handle, not from parts to their whole. Events are sorted by start; for g_free.
 * O(n log n). `again_bytes`, NULL or a number for each memory: to it are added the bytes that were
 * copied there though the same data had been there before.
 */
uint32_t *duet__arrows_make(const struct duet__recording *recording, bool all,
                            uint64_t *again_bytes);

#endif
