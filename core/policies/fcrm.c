/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fcrm: each worker has a weight at a task, from a forecast of its time over the task's complexity
 * (a regression by segments, known beforehand or learned meanwhile: the model `segmented`) and from
 * the place of its data. Only the paper's abstract was at hand, so that the rest is our choice:
 *
 * weight = 1 / (time of the worker's load + locality x time of copies + forecast).
 *
 * The task goes to the highest weight. A task of which some worker has no forecast yet waits on the
 * shared list for a worker that has nothing else to do: so all kinds of workers try it. Nobody
 * steals.
 */
#include <math.h>
#include <stdatomic.h>

#include <duet/policy.h>

enum { LOCALITY };

struct busy {
    _Atomic(double) since_s; /* date from which a worker has been busy without a break */
};

/* Returns the weight of a worker at a task; 0: no time is known. */
static double fcrm_weight(struct duet_view *view, unsigned worker, const struct duet_task *task,
                          double now)
{
    const struct busy *busy = duet_view_worker_state(view, worker);
    double since = atomic_load_explicit(&busy->since_s, memory_order_relaxed);
    double seconds = duet_view_seconds(view, worker, task);
    double copies = duet_view_transfer_seconds(view, worker, task, true);
    double has = duet_view_load(view, worker);
    has = has > 0 ? fmax(0, since + has - now) : 0;
    return seconds > 0 ? 1 / (has + duet_view_parameter(view, LOCALITY) * copies + seconds) : 0;
}

static struct duet_list *fcrm_choose_list(struct duet_view *view, const struct duet_task *task,
                                          double now)
{
    unsigned chosen = 0;
    double highest = 0;
    for (unsigned w = 0; w < duet_view_workers(view); w++) {
        if (!duet_view_can_run(view, w, task))
            continue;
        double own = fcrm_weight(view, w, task, now);
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

static void fcrm_push(void *self, struct duet_view *view, struct duet_task **batch, size_t count,
                      int by, double now)
{
    for (size_t i = 0; i < count; i++)
        duet_push_tail(view, fcrm_choose_list(view, batch[i], now), batch[i]);
}

static void fcrm_epilogue(void *self, struct duet_view *view, struct duet_task *task,
                          unsigned worker, const struct duet_times *times, double now)
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
    .push = fcrm_push,
    .pop = duet_pop_own_or_shared,
    .epilogue = fcrm_epilogue,
};
