/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An application's scheduling policy: each ready task goes to a random worker that can run it, and
 * stays there. Built as a shared object; the build makes it examples/policies/random_worker.so:
 *
 * cc -std=c11 -O2 -shared -fPIC random_worker.c -o random_worker.so
 *     duet simulate cholesky --platform idgraf --policy ./random_worker.so
 */
#include <duet/policy.h>

static unsigned choose(struct duet_view *view, const struct duet_task *task, int by)
{
    unsigned chosen = duet_view_local(view, by), able = 0;
    for (unsigned w = 0; w < duet_view_workers(view); w++) {
        if (!duet_view_can_run(view, w, task))
            continue;
        /* each of the workers seen so far is kept with the same probability */
        able++;
        if (duet_view_random(view, by, able) == 0)
            chosen = w;
    }
    return chosen;
}

static void push(void *self, struct duet_view *view, struct duet_task **batch, size_t count, int by,
                 double now)
{
    for (size_t i = 0; i < count; i++)
        duet_push_tail(view, duet_view_list(view, choose(view, batch[i], by)), batch[i]);
}

static struct duet_task *pop(void *self, struct duet_view *view, unsigned worker, double now)
{
    return duet_pop_head(view, duet_view_list(view, worker), worker);
}

const struct duet_policy duet_policy = {
    .name = "random-worker",
    .description = "to a random worker that can run the task; nobody steals",
    .source = "an example of a policy of one's own",
    .order = DUET_DEQUE,
    .push = push,
    .pop = pop,
};
