/* SPDX-License-Identifier: Apache-2.0 */
/* Memory in whole cache lines: data of different threads is kept apart. */
#ifndef DUET_CORE_LINES_H
#define DUET_CORE_LINES_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 64 }; /* bytes of a cache line */

static inline size_t whole_lines(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

/* Returns zeroed memory for structures that are aligned to cache lines, or NULL. */
static inline void *zeroed(size_t bytes)
{
    void *memory = aligned_alloc(LINE, bytes);
    return memory ? memset(memory, 0, bytes) : NULL;
}

#endif
