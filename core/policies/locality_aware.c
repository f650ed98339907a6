/* SPDX-License-Identifier: Apache-2.0 */
/*
 * locality-aware (H2): a ready task goes to a worker with a valid copy of data that the task
 * writes, at random among several, to the local worker if there is none; idle workers steal as in
 * ws. The next task that updates the result will find it there.
 */
#include <duet/policy.h>

static bool holds_written(const struct duet_view *view, unsigned worker,
                          const struct duet_task *task)
{
    unsigned node = duet_view_node(view, worker);
    for (size_t i = 0; i < duet_task_accesses(task); i++)
        if (duet_task_writes(task, i) && duet_view_valid(view, node, task, i))
            return true;
    return false;
}

static unsigned locality_aware_choose_worker(struct duet_view *view, const struct duet_task *task,
                                             int by)
{
    unsigned chosen = duet_view_local(view, by), owners = 0;
    for (unsigned w = 0; w < duet_view_workers(view); w++) {
        if (!duet_view_can_run(view, w, task) || !holds_written(view, w, task))
            continue;
        owners++;
        /* each of the owners seen so far is kept with the same probability */
        if (owners == 1 || duet_view_random(view, by, owners) == 0)
            chosen = w;
    }
    return chosen;
}

static void locality_aware_push(void *self, struct duet_view *view, struct duet_task **batch,
                                size_t count, int by, double now)
{
    for (size_t i = 0; i < count; i++) {
        unsigned worker = locality_aware_choose_worker(view, batch[i], by);
        struct duet_list *list = duet_view_list(view, worker);
        if (worker == duet_view_local(view, by))
            duet_push_head(view, list, batch[i]);
        else
            duet_push_tail(view, list, batch[i]);
    }
}

const struct duet_policy duet__policy_locality_aware = {
    .name = "locality-aware",
    .description = "to a worker that holds data the task writes (H2); steals",
    .source = "Gautier et al., XKaapi, IPDPS 2013 (heuristic H2)",
    .order = DUET_DEQUE,
    .push = locality_aware_push,
    .pop = duet_pop_own,
    .steal = duet_steal_own,
};
