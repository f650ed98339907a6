/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eager, no-prio: one list for all workers, highest priority first, or first in, first out. The
 * base lines.
 */
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

const struct duet_policy duet__policy_eager = {
    .name = "eager",
    .description = "greedy: one shared list, highest priority first",
    .source = "Augonnet et al., StarPU, CCPE 2011 (eager, with priorities)",
    .order = DUET_HEAP,
    .push = push,
    .pop = pop,
};

const struct duet_policy duet__policy_no_prio = {
    .name = "no-prio",
    .description = "greedy: one shared list, in order of readiness",
    .source = "Augonnet et al., StarPU, CCPE 2011 (greedy without priorities)",
    .order = DUET_DEQUE,
    .push = push,
    .pop = pop,
};
