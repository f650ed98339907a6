/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The built-in policy DECIDES behind functions that callgrind knows by name, so that it counts what
 * happens inside of them and nothing else. Compiled by bench/decisions.py for each policy.
 */
#include <duet/policy.h>

#define COUNTED __attribute__((noinline, visibility("default")))

static const struct duet_policy *policy;

COUNTED void decide_plan(void *self, struct duet_view *view, struct duet_task *const *tasks,
                         size_t count, const double *ranks, double now)
{
    policy->plan(self, view, tasks, count, ranks, now);
}

COUNTED void decide_push(void *self, struct duet_view *view, struct duet_task **batch, size_t count,
                         int by, double now)
{
    policy->push(self, view, batch, count, by, now);
}

COUNTED struct duet_task *decide_pop(void *self, struct duet_view *view, unsigned worker,
                                     double now)
{
    struct duet_task *task = policy->pop(self, view, worker, now);
    return task;
}

COUNTED struct duet_task *decide_steal(void *self, struct duet_view *view, unsigned thief,
                                       unsigned victim, double now)
{
    struct duet_task *task = policy->steal(self, view, thief, victim, now);
    return task;
}

COUNTED void decide_prologue(void *self, struct duet_view *view, struct duet_task *task,
                             unsigned worker, double now)
{
    policy->prologue(self, view, task, worker, now);
}

COUNTED void decide_epilogue(void *self, struct duet_view *view, struct duet_task *task,
                             unsigned worker, const struct duet_times *times, double now)
{
    policy->epilogue(self, view, task, worker, times, now);
}

struct duet_policy duet_policy;

__attribute__((constructor)) static void wrap(void)
{
    policy = duet_policy_find(DECIDES);
    if (!policy)
        return; /* and a policy without a name is refused */
    duet_policy = *policy;
    duet_policy.push = decide_push;
    duet_policy.pop = decide_pop;
    duet_policy.plan = policy->plan ? decide_plan : NULL;
    duet_policy.steal = policy->steal ? decide_steal : NULL;
    duet_policy.prologue = policy->prologue ? decide_prologue : NULL;
    duet_policy.epilogue = policy->epilogue ? decide_epilogue : NULL;
}
