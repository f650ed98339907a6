/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lws: locality work stealing. Ready tasks go to the local list. A worker takes tasks of highest
 * priority first, its own before those of its neighbours, nearest neighbours first: workers of its
 * own kind before others, then by the difference of their numbers, which follow the cores.
 *
 * StarPU orders neighbours by the machine's topology, of which a policy here sees the numbers.
 * Unlike in StarPU, tasks that were taken and not begun go to an idle worker that would end them
 * earlier.
 */
#include <duet/policy.h>

static void lws_victims(void *self, struct duet_view *view, unsigned thief, unsigned *order)
{
    unsigned count = duet_view_workers(view), filled = 0;
    bool kind = duet_view_is_device(view, thief);
    for (unsigned other = 0; other < 2; other++) {
        for (unsigned far = 1; far < count; far++) {
            if (thief >= far && (duet_view_is_device(view, thief - far) != kind) == other)
                order[filled++] = thief - far;
            if (thief + far < count && (duet_view_is_device(view, thief + far) != kind) == other)
                order[filled++] = thief + far;
        }
    }
}

static void lws_push(void *self, struct duet_view *view, struct duet_task **batch, size_t count,
                     int by, double now)
{
    struct duet_list *list = duet_view_list(view, duet_view_local(view, by));
    for (size_t i = 0; i < count; i++)
        duet_push_tail(view, list, batch[i]);
}

static const struct duet_policy_parameter parameters[] = {
    {"revoke", 2, 0, 1000,
     "own times of an idle worker in which it must end what another has taken; 0: never"},
    {NULL},
};

static int lws_revoke(void *self, struct duet_view *view, const struct duet_task *task,
                      unsigned victim, double begin_s, double now)
{
    return duet_view_sooner(view, task, victim, begin_s - now, duet_view_parameter(view, 0));
}

const struct duet_policy duet__policy_lws = {
    .name = "lws",
    .description = "work stealing by priority, neighbours first",
    .source = "StarPU 1.3 (its default)",
    .order = DUET_HEAP,
    .parameters = parameters,
    .victims = lws_victims,
    .push = lws_push,
    .pop = duet_pop_own,
    .steal = duet_steal_own,
    .revoke = lws_revoke,
};
