/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy whose slots are functions in Python: python/duet/policy.py opens this object and sets
 * them, before duet opens it as `--policy ./mine.so` in the same process.
 */
#include <duet/policy.h>

/* Without Python, which sets the slots in its own process, there is no policy. */
static int refuse(void *self, struct duet_view *view)
{
    return DUET_EABSENT;
}

/* Slots that duet asks every policy for when it opens it. */
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

/* Not constant: Python changes it before a runtime is opened. */
DUET_EXPORT struct duet_policy duet_policy = {
    .name = "in Python, for programs in Python (... -- python3 -m duet GRAPH.json)",
    .description = "a policy in Python, in processes of Python",
    .source = "docs/python.md",
    .order = DUET_DEQUE,
    .init = refuse,
    .push = push,
    .pop = pop,
};
