/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eviction of data least used in the future (LUF: Gonthier, Marchal, Thibault, FGCS 149, 2023), for
 * policies that assign tasks to workers before these take them.
 */
#include "core/internal.h"

_Static_assert(sizeof(_Atomic(int)) <= DUET_LUF_BYTES, "the count has its place");

void duet_luf_count(struct duet_view *view, const struct duet_task *task, unsigned worker,
                    int change)
{
    struct duet_runtime *core = view->core;
    const unsigned node = core->workers[worker].node;
    if (node == DUET_HOST || policy_of(core)->state_size_a_place < DUET_LUF_BYTES ||
        (change > 0 && atomic_load_explicit(&core->registered_bytes, memory_order_relaxed) <=
                           core->nodes[node].slab.capacity_bytes))
        return;
    for (unsigned i = 0; i < task->access_count; i++) {
        if (task->accesses[i].mode & ACCESS_REDUCES)
            continue; /* a reduction ends in another handle */
        _Atomic(int) *uses = duet_task_place_state(view, task, i, node);
        /* tasks that began before there was so much data were not counted */
        if (change > 0 || atomic_load_explicit(uses, memory_order_relaxed) > 0)
            atomic_fetch_add_explicit(uses, change, memory_order_relaxed);
    }
}

void duet_luf_epilogue(void *self, struct duet_view *view, struct duet_task *task, unsigned worker,
                       const struct duet_times *times, double now)
{
    duet_luf_count(view, task, worker, -1);
}

double duet_luf_victim(void *self, struct duet_view *view, unsigned node, void *place, bool sole)
{
    _Atomic(int) *uses = place;
    return -atomic_load_explicit(uses, memory_order_relaxed) - (sole ? 0.5 : 0);
}
