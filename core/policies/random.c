/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random: each task goes to one of the workers that can run it, all equally likely. w-rand: with
 * probabilities in proportion to given weights, or to the workers' speeds at the task. Nobody
 * steals.
 */
#include <math.h>

#include <duet/policy.h>

enum { CPU, GPU }; /* parameters of w-rand */

/* Returns the shortest known expected time of the task; INFINITY: none is known. */
static double random_shortest(const struct duet_view *view, const struct duet_task *task)
{
    double best = INFINITY;
    for (unsigned w = 0; w < duet_view_workers(view); w++) {
        double seconds = duet_view_can_run(view, w, task) ? duet_view_seconds(view, w, task) : 0;
        best = seconds > 0 ? fmin(best, seconds) : best;
    }
    return best;
}

/*
 * Returns the given weight of a worker, or its speed relative to the fastest worker; a worker of
 * unknown speed counts as the fastest.
 */
static double random_weight(const struct duet_view *view, unsigned worker,
                            const struct duet_task *task, double best)
{
    double given = duet_view_parameter(view, duet_view_is_device(view, worker) ? GPU : CPU);
    double seconds = duet_view_seconds(view, worker, task);
    return given > 0 ? given : seconds > 0 ? best / seconds : 1;
}

/*
 * Returns one of the able workers; weighted or not, each seen so far is kept with its probability.
 */
static unsigned random_choose_worker(struct duet_view *view, const struct duet_task *task, int by,
                                     bool weighted)
{
    enum { STEPS = 1 << 24 };
    double best = weighted ? random_shortest(view, task) : 0, total = 0;
    unsigned chosen = 0;
    for (unsigned w = 0; w < duet_view_workers(view); w++) {
        if (!duet_view_can_run(view, w, task))
            continue;
        double own = weighted ? random_weight(view, w, task, best) : 1;
        total += own;
        if (own == total || duet_view_random(view, by, STEPS) * total < own * STEPS)
            chosen = w;
    }
    return chosen;
}

static void random_push(void *self, struct duet_view *view, struct duet_task **batch, size_t count,
                        int by, double now)
{
    for (size_t i = 0; i < count; i++)
        duet_push_tail(view, duet_view_list(view, random_choose_worker(view, batch[i], by, false)),
                       batch[i]);
}

static void push_weighted(void *self, struct duet_view *view, struct duet_task **batch,
                          size_t count, int by, double now)
{
    for (size_t i = 0; i < count; i++)
        duet_push_tail(view, duet_view_list(view, random_choose_worker(view, batch[i], by, true)),
                       batch[i]);
}

const struct duet_policy duet__policy_random = {
    .name = "random",
    .description = "to a worker at random, all equally likely",
    .source = "the base line of UnMP (HeteroPar 2012)",
    .order = DUET_DEQUE,
    .push = random_push,
    .pop = duet_pop_own,
};

static const struct duet_policy_parameter weights[] = {
    [CPU] = {"cpu", 0, 0, 1e6, "weight of a CPU worker; 0: its speed at the task"},
    [GPU] = {"gpu", 0, 0, 1e6, "weight of a GPU worker; 0: its speed at the task"},
    {NULL},
};

const struct duet_policy duet__policy_w_rand = {
    .name = "w-rand",
    .description = "to a worker at random, by weights or relative speeds",
    .source = "Augonnet et al., StarPU, CCPE 2011 (w-rand); UnMP, HeteroPar 2012",
    .order = DUET_DEQUE,
    .parameters = weights,
    .push = push_weighted,
    .pop = duet_pop_own,
};
