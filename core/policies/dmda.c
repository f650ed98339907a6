/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dmda, dmdas, dmdar, heft-tm: each ready task goes to the worker of the lowest
 *
 * alpha x expected end + beta x transfer, where expected end = max(worker free, now + transfer) +
 * expected time
 *
 * and the transfer is that of lone copies. A worker is free when the tasks that wait on it are
 * done, counted from the end of its last task; without known times, the shortest list is taken.
 * dmda runs a worker's tasks in order of arrival; dmdas by priority, and among equal ones, as dmdar
 * among all, the one with the fewest inputs that are not valid there. heft-tm uses the times of
 * kernels alone, without transfers; with priorities=1 a worker runs its tasks by priority,
 * otherwise in order of arrival.
 *
 * StarPU 1.3 takes the fitness relative to the earliest end, which chooses the same worker, and
 * adds energy, which duet does not know. StarPU sets a worker's dates anew when a task is taken;
 * these are set when one ends.
 */
#include <math.h>
#include <stdatomic.h>

#include <duet/policy.h>

enum { ALPHA, BETA, PREFETCH, LUF };

static const struct duet_policy_parameter parameters[] = {
    [ALPHA] = {"alpha", 1, 0, 1000, "weight of the expected end"},
    [BETA] = {"beta", 1, 0, 1000, "weight of the transfer"},
    [PREFETCH] = {"prefetch", 0, 0, 1, "1: brings data when a task is placed"},
    [LUF] = {"luf", 1, 0, 1, "1: data that fewest waiting tasks use makes room; 0: oldest"},
    {NULL},
};

enum { PRIORITIES };

static const struct duet_policy_parameter of_heft_tm[] = {
    [PRIORITIES] = {"priorities", 0, 0, 1, "1: a worker runs its tasks by priority"},
    {NULL},
};

/* Date from which a worker has been busy without a break. */
struct busy {
    _Atomic(double) since_s;
};

static double free_at(struct duet_view *view, unsigned worker, double now)
{
    struct busy *busy = duet_view_worker_state(view, worker);
    double load = duet_view_load(view, worker);
    double since = atomic_load_explicit(&busy->since_s, memory_order_relaxed);
    return load > 0 ? fmax(now, since + load) : now;
}

/* Weights of the terms of the fitness. */
struct weights {
    double end, transfer;
    bool moves; /* transfers take time */
};

/* Returns the worker for a task, which is to be put on its list. */
static unsigned dmda_choose_worker(struct duet_view *view, const struct duet_task *task,
                                   struct weights weights, double now)
{
    double least = INFINITY, transfer = -1, chosen_transfer = 0;
    size_t shortest = 0;
    unsigned chosen = 0, node = 0;
    for (unsigned w = 0; w < duet_view_workers(view); w++) {
        if (!duet_view_can_run(view, w, task))
            continue;
        double wait = free_at(view, w, now) - now, seconds = duet_view_seconds(view, w, task);
        if (weights.end * (wait + seconds) > least)
            continue; /* it is worse even if the transfer takes no time */
        if (transfer < 0 || duet_view_node(view, w) != node) {
            node = duet_view_node(view, w);
            transfer = weights.moves ? duet_view_transfer_seconds(view, w, task, true) : 0;
        }
        double end = fmax(wait, transfer) + seconds;
        double fitness = weights.end * end + weights.transfer * transfer;
        size_t length = duet_list_length(duet_view_list(view, w));
        if (fitness < least || (fitness == least && length < shortest)) {
            least = fitness;
            shortest = length;
            chosen = w;
            chosen_transfer = transfer;
        }
    }
    struct busy *busy = duet_view_worker_state(view, chosen);
    if (!(duet_view_load(view, chosen) > 0))
        atomic_store_explicit(&busy->since_s, now + chosen_transfer, memory_order_relaxed);
    return chosen;
}

static void dmda_push(void *self, struct duet_view *view, struct duet_task **batch, size_t count,
                      int by, double now)
{
    const struct weights weights = {duet_view_parameter(view, ALPHA),
                                    duet_view_parameter(view, BETA), true};
    const bool prefetches = duet_view_parameter(view, PREFETCH) > 0;
    for (size_t i = 0; i < count; i++) {
        unsigned worker = dmda_choose_worker(view, batch[i], weights, now);
        if (prefetches)
            duet_view_prefetch(view, batch[i], duet_view_node(view, worker));
        duet_luf_count(view, batch[i], worker, 1);
        duet_push_tail(view, duet_view_list(view, worker), batch[i]);
    }
}

/* Evicts by luf, or the least recently used data. */
static double dmda_victim(void *self, struct duet_view *view, unsigned node, void *place, bool sole)
{
    bool luf = duet_view_parameter(view, LUF) > 0;
    return luf ? duet_luf_victim(self, view, node, place, sole) : INFINITY;
}

static void push_sorted(void *self, struct duet_view *view, struct duet_task **batch, size_t count,
                        int by, double now)
{
    const struct weights weights = {1, 0, false};
    bool priorities = duet_view_parameter(view, PRIORITIES) > 0;
    for (size_t i = 0; i < count; i++)
        duet_push_sorted(view,
                         duet_view_list(view, dmda_choose_worker(view, batch[i], weights, now)),
                         batch[i], priorities ? duet_task_priority(batch[i]) : 0);
}

static void dmda_epilogue(void *self, struct duet_view *view, struct duet_task *task,
                          unsigned worker, const struct duet_times *times, double now)
{
    struct busy *busy = duet_view_worker_state(view, worker);
    atomic_store_explicit(&busy->since_s, times->end_s, memory_order_relaxed);
    duet_luf_count(view, task, worker, -1);
}

/* Slots of the policies that weigh transfers. */
#define DMDA_SLOTS                                                                                 \
    .source = "Augonnet et al., ICPADS 2010; StarPU 1.3",                                          \
    .state_size_a_worker = sizeof(struct busy), .state_size_a_place = DUET_LUF_BYTES,              \
    .scores_hold = true, .parameters = parameters, .push = dmda_push, .victim = dmda_victim,       \
    .epilogue = dmda_epilogue

const struct duet_policy duet__policy_dmda = {
    .name = "dmda",
    .description = "earliest expected end, transfers weighed",
    .order = DUET_DEQUE,
    .pop = duet_pop_own,
    DMDA_SLOTS,
};

const struct duet_policy duet__policy_dmdas = {
    .name = "dmdas",
    .description = "dmda; then by priority, among equals what has most of its data",
    .order = DUET_HEAP_NEAREST,
    .pop = duet_pop_own,
    DMDA_SLOTS,
};

const struct duet_policy duet__policy_dmdar = {
    .name = "dmdar",
    .description = "dmda; then what has most of its data",
    .order = DUET_NEAREST,
    .pop = duet_pop_own,
    DMDA_SLOTS,
};

const struct duet_policy duet__policy_heft_tm = {
    .name = "heft-tm",
    .description = "earliest end by kernel times alone, without transfers",
    .source = "Augonnet et al., StarPU, CCPE 2011 (heft-tm)",
    .order = DUET_SORTED,
    .state_size_a_worker = sizeof(struct busy),
    .parameters = of_heft_tm,
    .push = push_sorted,
    .pop = duet_pop_own,
    .epilogue = dmda_epilogue,
};
