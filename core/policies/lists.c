/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policies that choose a list for each ready task, and leave the rest to lists: eager and no-prio
 * (one list for all), ws, lws, data-aware and locality-aware (work stealing), random, w-rand and
 * pinned (nobody steals).
 */
#include <math.h>

#include <duet/policy.h>

/* The rule of a policy, which is its `context`. */
struct rule {
    /* Returns the worker to whose list a task goes. */
    unsigned (*choose)(struct duet_view *view, const struct duet_task *task, int by, bool weighted);
    bool first;    /* tasks for the local worker go before the others on its list */
    bool weighted; /* argument of `choose` */
};

static void push_by_rule(void *self, struct duet_view *view, struct duet_task **batch, size_t count,
                         int by, double now)
{
    const struct rule *rule = duet_view_context(view);
    for (size_t i = 0; i < count; i++) {
        unsigned worker = rule->choose(view, batch[i], by, rule->weighted);
        struct duet_list *list = duet_view_list(view, worker);
        if (rule->first && worker == duet_view_local(view, by))
            duet_push_head(view, list, batch[i]);
        else
            duet_push_tail(view, list, batch[i]);
    }
}

/* Parameter of policies that give tasks which were taken and not begun to idle workers. */
#define REVOKE(value)                                                                              \
    {                                                                                              \
        "revoke", value, 0, 1000,                                                                  \
            "own times of an idle worker in which it must end what another has taken; 0: never"    \
    }

static const struct duet_policy_parameter never[] = {REVOKE(0), {NULL}},
                                          late[] = {REVOKE(2), {NULL}};

static int revoke_late(void *self, struct duet_view *view, const struct duet_task *task,
                       unsigned victim, double begin_s, double now)
{
    return duet_view_sooner(view, task, victim, begin_s - now, duet_view_parameter(view, 0));
}

/* ------------------------------------------------------------------------------------------- */
/*
 * eager, no-prio: one list for all workers, highest priority first, or first in, first out. The
 * baselines.
 */

static void eager_push(void *self, struct duet_view *view, struct duet_task **batch, size_t count,
                       int by, double now)
{
    for (size_t i = 0; i < count; i++)
        duet_push_tail(view, duet_view_shared(view), batch[i]);
}

const struct duet_policy duet__policy_eager = {
    .name = "eager",
    .description = "greedy: one shared list, highest priority first",
    .source = "Augonnet et al., StarPU, CCPE 2011 (eager, with priorities)",
    .order = DUET_HEAP,
    .parameters = never,
    .push = eager_push,
    .pop = duet_pop_own_or_shared,
    .revoke = revoke_late,
};

const struct duet_policy duet__policy_no_prio = {
    .name = "no-prio",
    .description = "greedy: one shared list, in order of readiness",
    .source = "Augonnet et al., StarPU, CCPE 2011 (greedy without priorities)",
    .order = DUET_DEQUE,
    .parameters = never,
    .push = eager_push,
    .pop = duet_pop_own_or_shared,
    .revoke = revoke_late,
};

/* ws: work stealing. Local push and pop at the head, steal at the tail of a random victim. */

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

/* ------------------------------------------------------------------------------------------- */
/*
 * lws: locality work stealing. Ready tasks go to the local list. A worker takes tasks of highest
 * priority first, its own before those of its neighbours, nearest neighbours first: workers of its
 * own kind before others, then by the difference of their numbers, which follow the cores.
 *
 * StarPU orders neighbours by the machine's topology, of which a policy here sees the numbers.
 * Unlike in StarPU, tasks that were taken and not begun go to an idle worker that would end them
 * earlier.
 */

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

const struct duet_policy duet__policy_lws = {
    .name = "lws",
    .description = "work stealing by priority, neighbours first",
    .source = "StarPU 1.3 (its default)",
    .order = DUET_HEAP,
    .parameters = late,
    .victims = lws_victims,
    .push = ws_push,
    .pop = duet_pop_own,
    .steal = duet_steal_own,
    .revoke = revoke_late,
};

/* ------------------------------------------------------------------------------------------- */
/*
 * data-aware (H1): a ready task goes to the worker whose memory node holds most valid bytes of all
 * its accesses; idle workers steal as in ws.
 */

/*
 * Returns the worker with most valid bytes; among equals the local one, else one of them at random.
 */
static unsigned data_aware_choose_worker(struct duet_view *view, const struct duet_task *task,
                                         int by, bool weighted)
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

const struct duet_policy duet__policy_data_aware = {
    .name = "data-aware",
    .description = "to the worker whose memory holds most of the task's data (H1); steals",
    .source = "Gautier et al., XKaapi, IPDPS 2013 (heuristic H1)",
    .order = DUET_DEQUE,
    .context = &(const struct rule){.choose = data_aware_choose_worker, .first = true},
    .push = push_by_rule,
    .pop = duet_pop_own,
    .steal = duet_steal_own,
};

/* ------------------------------------------------------------------------------------------- */
/*
 * locality-aware (H2): a ready task goes to a worker with a valid copy of data that the task
 * writes, at random among several, to the local worker if there is none; idle workers steal as in
 * ws. The next task that updates the result will find it there.
 */

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
                                             int by, bool weighted)
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

const struct duet_policy duet__policy_locality_aware = {
    .name = "locality-aware",
    .description = "to a worker that holds data the task writes (H2); steals",
    .source = "Gautier et al., XKaapi, IPDPS 2013 (heuristic H2)",
    .order = DUET_DEQUE,
    .context = &(const struct rule){.choose = locality_aware_choose_worker, .first = true},
    .push = push_by_rule,
    .pop = duet_pop_own,
    .steal = duet_steal_own,
};

/* ------------------------------------------------------------------------------------------- */
/*
 * random: each task goes to one of the workers that can run it, all equally likely. w-rand: with
 * probabilities in proportion to given weights, or to the workers' speeds at the task. Nobody
 * steals.
 */

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

const struct duet_policy duet__policy_random = {
    .name = "random",
    .description = "to a worker at random, all equally likely",
    .source = "the base line of UnMP (HeteroPar 2012)",
    .order = DUET_DEQUE,
    .context = &(const struct rule){.choose = random_choose_worker},
    .push = push_by_rule,
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
    .context = &(const struct rule){.choose = random_choose_worker, .weighted = true},
    .push = push_by_rule,
    .pop = duet_pop_own,
};

/* pinned: the priority of each task is the number of its worker. For measurements. */

/* Returns the worker whose number is the task's priority, or the next one that can run the task. */
static unsigned pinned_choose_worker(struct duet_view *view, const struct duet_task *task, int by,
                                     bool weighted)
{
    unsigned count = duet_view_workers(view);
    int priority = duet_task_priority(task);
    unsigned first = priority > 0 ? (unsigned)priority % count : 0;
    for (unsigned i = 0; i < count; i++)
        if (duet_view_can_run(view, (first + i) % count, task))
            return (first + i) % count;
    return first;
}

const struct duet_policy duet__policy_pinned = {
    .name = "pinned",
    .description = "for measurements: a task's priority is the number of its worker",
    .source = "duet itself",
    .order = DUET_DEQUE,
    .context = &(const struct rule){.choose = pinned_choose_worker},
    .push = push_by_rule,
    .pop = duet_pop_own,
};
