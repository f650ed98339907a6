/* SPDX-License-Identifier: Apache-2.0 */
/* no-prio: eager without priorities, one list for all workers, first in, first out. */
#include <duet/policy.h>

static void push(void *self, struct duet_view *view, struct duet_task **batch, size_t count, int by,
                 double now)
{
    for (size_t i = 0; i < count; i++)
        duet_push_tail(view, duet_view_shared(view), batch[i]);
}

static struct duet_task *pop(void *self, struct duet_view *view, unsigned worker, double now)
{
    return duet_pop_head(view, duet_view_shared(view), worker);
}

const struct duet_policy duet__policy_no_prio = {
    .name = "no-prio",
    .description = "greedy: one shared list, in order of readiness",
    .source = "Augonnet et al., StarPU, CCPE 2011 (greedy without priorities)",
    .order = DUET_DEQUE,
    .push = push,
    .pop = pop,
};
