/* SPDX-License-Identifier: Apache-2.0 */
/* Shares work among threads that last only as long as it. */
#include "workloads/share.h"

#include <glib.h>

enum { THREADS_MAX = 64, ENOUGH = 1 << 20 /* elements that are worth the start of a thread */ };

struct part {
    duet__part_fn *run;
    void *self;
    uint64_t first, end;
};

static void *run_part(void *opaque)
{
    const struct part *part = opaque;
    part->run(part->self, part->first, part->end);
    return NULL;
}

void duet__share(uint64_t count, uint64_t elements, duet__part_fn *run, void *self)
{
    GThread *threads[THREADS_MAX];
    struct part parts[THREADS_MAX];
    uint64_t most = MIN(count, elements / ENOUGH);
    uint64_t wanted = CLAMP(most, 1, MIN(g_get_num_processors(), THREADS_MAX));
    for (uint64_t i = 0; i < wanted; i++) {
        parts[i] = (struct part){run, self, count * i / wanted, count * (i + 1) / wanted};
        threads[i] = i ? g_thread_try_new("duet-share", run_part, &parts[i], NULL) : NULL;
    }
    for (uint64_t i = 0; i < wanted; i++) {
        if (threads[i])
            g_thread_join(threads[i]);
        else
            run_part(&parts[i]);
    }
}
