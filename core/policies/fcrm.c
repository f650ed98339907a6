/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fcrm: each worker has a weight at a task, from a forecast of its time over the task's complexity
 * (a regression by segments, known beforehand or learned meanwhile: the model `segmented`) and from
 * where the data is. Of the paper its abstract was at hand, so that the rest is our choice:
 *
 *   weight = 1 / (time for what the worker has to do + locality x time of copies + forecast),
 *
 * the task goes where that is highest, and what some worker has no forecast of yet waits on the
 * shared list for whoever has nothing else to do: so all kinds of workers try it. Nobody steals.
 */
#include <math.h>
#include <stdatomic.h>

#include <duet/policy.h>

enum { LOCALITY };

struct busy {
    _Atomic(double) since_s; /* since when a worker has been at what it has to do */
};

/* 0: nothing is known. */
static double weight(struct duet_view *view, unsigned worker, const struct duet_task *task,
                     double now)
{
    const struct busy *busy = duet_view_worker_state(view, worker);
    double since = atomic_load_explicit(&busy->since_s, memory_order_relaxed);
    double seconds = duet_view_seconds(view, worker, task);
    double copies = duet_view_transfer_alone_seconds(view, worker, task);
    double has = duet_view_load(view, worker);
    has = has > 0 ? fmax(0, since + has - now) : 0;
    return seconds > 0 ? 1 / (has + duet_view_parameter(view, LOCALITY) * copies + seconds) : 0;
}

static struct duet_list *choose(struct duet_view *view, const struct duet_task *task, double now)
{
    unsigned chosen = 0;
    double highest = 0;
    for (unsigned w = 0; w < duet_view_workers(view); w++) {
        if (!duet_view_can_run(view, w, task))
            continue;
        double own = weight(view, w, task, now);
        if (!(own > 0))
            return duet_view_shared(view);
        if (own > highest) {
            highest = own;
            chosen = w;
        }
    }
    struct busy *busy = duet_view_worker_state(view, chosen);
    if (!(duet_view_load(view, chosen) > 0))
        atomic_store_explicit(&busy->since_s, now, memory_order_relaxed);
    return duet_view_list(view, chosen);
}

static void push(void *self, struct duet_view *view, struct duet_task **batch, size_t count, int by,
                 double now)
{
    for (size_t i = 0; i < count; i++)
        duet_push_tail(view, choose(view, batch[i], now), batch[i]);
}

static void epilogue(void *self, struct duet_view *view, struct duet_task *task, unsigned worker,
                     const struct duet_times *times, double now)
{
    struct busy *busy = duet_view_worker_state(view, worker);
    atomic_store_explicit(&busy->since_s, times->end_s, memory_order_relaxed);
}

static const struct duet_policy_parameter parameters[] = {
    [LOCALITY] = {"locality", 1, 0, 1000, "how much the time of copies counts"},
    {NULL},
};

const struct duet_policy duet__policy_fcrm = {
    .name = "fcrm",
    .description = "to the worker of the highest weight, by forecasts over complexity",
    .source = "Podobas, Brorsson, Vlassov, HeteroPar 2012 (UnMP)",
    .order = DUET_DEQUE,
    .model = "segmented",
    .state_size_a_worker = sizeof(struct busy),
    .parameters = parameters,
    .push = push,
    .pop = duet_pop_own_or_shared,
    .epilogue = epilogue,
};
