/* SPDX-License-Identifier: Apache-2.0 */
/* pinned: the priority of each task is the number of its worker. For measurements. */
#include <duet/policy.h>

/* Returns the worker whose number is the task's priority, or the next one that can run the task. */
static unsigned pinned_choose_worker(const struct duet_view *view, const struct duet_task *task)
{
    unsigned count = duet_view_workers(view);
    int priority = duet_task_priority(task);
    unsigned first = priority > 0 ? (unsigned)priority % count : 0;
    for (unsigned i = 0; i < count; i++)
        if (duet_view_can_run(view, (first + i) % count, task))
            return (first + i) % count;
    return first;
}

static void pinned_push(void *self, struct duet_view *view, struct duet_task **batch, size_t count,
                        int by, double now)
{
    for (size_t i = 0; i < count; i++)
        duet_push_tail(view, duet_view_list(view, pinned_choose_worker(view, batch[i])), batch[i]);
}

const struct duet_policy duet__policy_pinned = {
    .name = "pinned",
    .description = "for measurements: a task's priority is the number of its worker",
    .source = "duet itself",
    .order = DUET_DEQUE,
    .push = pinned_push,
    .pop = duet_pop_own,
};
