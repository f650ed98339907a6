/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heft-tm: each ready task goes to the worker on which it is expected to end first by the models of
 * kernel times alone: what waits there, then the task. Transfers count as nothing. Nobody steals.
 * With priorities=1 a worker runs its tasks by priority, otherwise in order of arrival.
 *
 * What has been done of the task that is running is known from when the one before it ended.
 */
#include <math.h>
#include <stdatomic.h>

#include <duet/policy.h>

enum { PRIORITIES };

/* Since when a worker has been at what it has to do. */
struct busy {
    _Atomic(double) since_s;
};

static unsigned earliest(struct duet_view *view, const struct duet_task *task, double now)
{
    double least = INFINITY;
    size_t shortest = 0;
    unsigned chosen = 0;
    for (unsigned w = 0; w < duet_view_workers(view); w++) {
        if (!duet_view_can_run(view, w, task))
            continue;
        struct busy *busy = duet_view_worker_state(view, w);
        double load = duet_view_load(view, w);
        double since = atomic_load_explicit(&busy->since_s, memory_order_relaxed);
        double wait = load > 0 ? fmax(0, since + load - now) : 0;
        double end = wait + duet_view_seconds(view, w, task);
        size_t length = duet_list_length(duet_view_list(view, w));
        if (end < least || (end == least && length < shortest)) {
            least = end;
            shortest = length;
            chosen = w;
        }
    }
    return chosen;
}

static void push(void *self, struct duet_view *view, struct duet_task **batch, size_t count, int by,
                 double now)
{
    bool priorities = duet_view_parameter(view, PRIORITIES) > 0;
    for (size_t i = 0; i < count; i++) {
        unsigned worker = earliest(view, batch[i], now);
        struct busy *busy = duet_view_worker_state(view, worker);
        if (!(duet_view_load(view, worker) > 0))
            atomic_store_explicit(&busy->since_s, now, memory_order_relaxed);
        duet_push_sorted(view, duet_view_list(view, worker), batch[i],
                         priorities ? duet_task_priority(batch[i]) : 0);
    }
}

static struct duet_task *pop(void *self, struct duet_view *view, unsigned worker, double now)
{
    return duet_pop_head(view, duet_view_list(view, worker), worker);
}

static void epilogue(void *self, struct duet_view *view, struct duet_task *task, unsigned worker,
                     const struct duet_times *times, double now)
{
    struct busy *busy = duet_view_worker_state(view, worker);
    atomic_store_explicit(&busy->since_s, times->end_s, memory_order_relaxed);
}

static const struct duet_policy_parameter parameters[] = {
    [PRIORITIES] = {"priorities", 0, 0, 1, "1: a worker runs its tasks by priority"},
    {NULL},
};

const struct duet_policy duet__policy_heft_tm = {
    .name = "heft-tm",
    .description = "earliest end by kernel times alone, without transfers",
    .source = "Augonnet et al., StarPU, CCPE 2011 (heft-tm)",
    .order = DUET_SORTED,
    .state_size_a_worker = sizeof(struct busy),
    .parameters = parameters,
    .push = push,
    .pop = pop,
    .epilogue = epilogue,
};
