/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eager, no-prio: one list for all workers, highest priority first, or first in, first out. The
 * baselines.
 */
#include <duet/policy.h>

static void eager_push(void *self, struct duet_view *view, struct duet_task **batch, size_t count,
                       int by, double now)
{
    for (size_t i = 0; i < count; i++)
        duet_push_tail(view, duet_view_shared(view), batch[i]);
}

static const struct duet_policy_parameter parameters[] = {
    {"revoke", 0, 0, 1000,
     "own times of an idle worker in which it must end what another has taken; 0: never"},
    {NULL},
};

static int eager_revoke(void *self, struct duet_view *view, const struct duet_task *task,
                        unsigned victim, double begin_s, double now)
{
    return duet_view_sooner(view, task, victim, begin_s - now, duet_view_parameter(view, 0));
}

const struct duet_policy duet__policy_eager = {
    .name = "eager",
    .description = "greedy: one shared list, highest priority first",
    .source = "Augonnet et al., StarPU, CCPE 2011 (eager, with priorities)",
    .order = DUET_HEAP,
    .parameters = parameters,
    .push = eager_push,
    .pop = duet_pop_own_or_shared,
    .revoke = eager_revoke,
};

const struct duet_policy duet__policy_no_prio = {
    .name = "no-prio",
    .description = "greedy: one shared list, in order of readiness",
    .source = "Augonnet et al., StarPU, CCPE 2011 (greedy without priorities)",
    .order = DUET_DEQUE,
    .parameters = parameters,
    .push = eager_push,
    .pop = duet_pop_own_or_shared,
    .revoke = eager_revoke,
};
