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

/* A slot that duet asks every policy for when it opens it. */
static void push(void *self, struct duet_view *view, struct duet_task **batch, size_t count, int by,
                 double now)
{
    for (size_t i = 0; i < count; i++)
        duet_push_tail(view, duet_view_shared(view), batch[i]);
}

/*
 * Asks all workers about a task, which is one call out of Python: `answers` gets whether each can
 * run it, then the seconds, those of transfers, and those of transfers alone.
 */
DUET_EXPORT void duet__python_ask(const struct duet_view *view, const struct duet_task *task,
                                  double *answers);

void duet__python_ask(const struct duet_view *view, const struct duet_task *task, double *answers)
{
    const unsigned workers = duet_view_workers(view);
    for (unsigned worker = 0; worker < workers; worker++) {
        answers[worker] = duet_view_can_run(view, worker, task);
        answers[workers + worker] = duet_view_seconds(view, worker, task);
        answers[2 * workers + worker] = duet_view_transfer_seconds(view, worker, task, false);
        answers[3 * workers + worker] = duet_view_transfer_seconds(view, worker, task, true);
    }
}

/* Not constant: Python changes it before a runtime is opened. */
DUET_EXPORT struct duet_policy duet_policy = {
    .name = "in Python, for programs in Python (... -- python3 -m duet GRAPH.json)",
    .description = "a policy in Python, in processes of Python",
    .source = "docs/python.md",
    .order = DUET_DEQUE,
    .init = refuse,
    .push = push,
    .pop = duet_pop_own_or_shared,
};
