/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data-aware (H1): a ready task goes to the worker whose memory node holds most valid bytes of all
 * its accesses; idle workers steal as in ws.
 */
#include <duet/policy.h>

/*
 * Returns the worker with most valid bytes; among equals the local one, else one of them at random.
 */
static unsigned data_aware_choose_worker(struct duet_view *view, const struct duet_task *task,
                                         int by)
{
    unsigned local = duet_view_local(view, by), best = local, equals = 0;
    uint64_t most = 0;
    bool local_best = false;
    for (unsigned w = 0; w < duet_view_workers(view); w++) {
        if (!duet_view_can_run(view, w, task))
            continue;
        uint64_t bytes = duet_view_valid_bytes(view, duet_view_node(view, w), task);
        if (equals == 0 || bytes > most) {
            most = bytes;
            equals = 0;
            local_best = false;
        }
        if (bytes < most)
            continue;
        equals++;
        local_best = local_best || w == local;
        /* each of the equals seen so far is kept with the same probability */
        if (equals == 1 || duet_view_random(view, by, equals) == 0)
            best = w;
    }
    return local_best ? local : best;
}

static void data_aware_push(void *self, struct duet_view *view, struct duet_task **batch,
                            size_t count, int by, double now)
{
    for (size_t i = 0; i < count; i++) {
        unsigned worker = data_aware_choose_worker(view, batch[i], by);
        struct duet_list *list = duet_view_list(view, worker);
        if (worker == duet_view_local(view, by))
            duet_push_head(view, list, batch[i]);
        else
            duet_push_tail(view, list, batch[i]);
    }
}

const struct duet_policy duet__policy_data_aware = {
    .name = "data-aware",
    .description = "to the worker whose memory holds most of the task's data (H1); steals",
    .source = "Gautier et al., XKaapi, IPDPS 2013 (heuristic H1)",
    .order = DUET_DEQUE,
    .push = data_aware_push,
    .pop = duet_pop_own,
    .steal = duet_steal_own,
};
