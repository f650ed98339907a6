/* SPDX-License-Identifier: Apache-2.0 */
/* ws: work stealing. Local push and pop at the head, steal at the tail of a random victim. */
#include <duet/policy.h>

static void ws_push(void *self, struct duet_view *view, struct duet_task **batch, size_t count,
                    int by, double now)
{
    struct duet_list *list = duet_view_list(view, duet_view_local(view, by));
    for (size_t i = 0; i < count; i++)
        duet_push_head(view, list, batch[i]);
}

const struct duet_policy duet__policy_ws = {
    .name = "ws",
    .description = "work stealing: push and pop locally, steal from a random victim",
    .source = "Gautier et al., XKaapi, IPDPS 2013",
    .order = DUET_DEQUE,
    .keeps_nested = true,
    .push = ws_push,
    .pop = duet_pop_own,
    .steal = duet_steal_own,
};
