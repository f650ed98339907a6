/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dada: distributed affinity dual approximation. The tasks of a batch are placed for the smallest
 * makespan whose guess g succeeds; g is found by bisection.
 *
 * Affinity: each task goes to the worker whose memory holds most of its bytes, as long as the load
 * of that worker stays within alpha x g. Balance: tasks that take longer than g on CPUs go to
 * devices and the other way round; the rest by descending speed-up to devices until their work is g
 * each, then to CPUs. Of its kind, a task gets the worker that would end it first. The guess fails
 * if the work of CPUs, or the tasks that only devices end within g, is more than g each.
 *
 * alpha = 0 is the dual approximation alone (Kedad-Sidhoum, Monna, Mounie, Trystram, HeteroPar
 * 2013). Loads and work include the tasks that workers have already. The paper leaves open in which
 * order affinities are served, and whether their work counts in the balance: here by speed-up, and
 * it does. transfers=1 is the paper's variant with predicted communications.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <duet/policy.h>

enum { ALPHA, TRANSFERS };
enum { CPU, DEVICE, KINDS };

struct busy {
    _Atomic(double) since_s; /* date from which a worker has been busy without a break */
};

struct item {
    struct duet_task *task;
    double shortest[KINDS]; /* INFINITY: no worker of the kind can run it */
    unsigned near, worker;  /* worker with most of its bytes; worker that is to run it */
    bool placed;            /* placed by affinity */
    uint64_t bytes;         /* valid on `near` */
};

struct plan {
    struct duet_view *view;
    size_t count;
    unsigned workers, of_kind[KINDS];
    double alpha;
    bool transfers;
    struct item *items; /* by descending speed-up */
    double *waits, *loads;
};

static double seconds(const struct plan *plan, unsigned worker, const struct duet_task *task)
{
    double kernel = duet_view_seconds(plan->view, worker, task), transfer = 0;
    if (plan->transfers)
        transfer = duet_view_transfer_seconds(plan->view, worker, task, true);
    return fmax(kernel, 1e-6) + transfer; /* without known times, numbers of tasks are balanced */
}

static void describe(const struct plan *plan, struct item *item, struct duet_task *task)
{
    *item = (struct item){.task = task, .shortest = {INFINITY, INFINITY}};
    for (unsigned w = 0; w < plan->workers; w++) {
        double *shortest = &item->shortest[duet_view_is_device(plan->view, w)];
        if (!duet_view_can_run(plan->view, w, task))
            continue;
        *shortest = fmin(*shortest, seconds(plan, w, task));
        uint64_t bytes = duet_view_valid_bytes(plan->view, duet_view_node(plan->view, w), task);
        bool sooner = bytes == item->bytes && plan->waits[w] < plan->waits[item->near];
        if (bytes > item->bytes || (bytes && sooner)) {
            item->near = w;
            item->bytes = bytes;
        }
    }
}

/* True if every worker that could run the task is lost: its place does not matter. */
static bool lost(const struct item *item)
{
    return isinf(item->shortest[CPU]) && isinf(item->shortest[DEVICE]);
}

static double dada_speedup(const struct item *item)
{
    return lost(item) ? 0 : item->shortest[CPU] / item->shortest[DEVICE];
}

static int by_speedup(const void *left, const void *right)
{
    const struct item *a = left, *b = right;
    double of_a = dada_speedup(a), of_b = dada_speedup(b);
    if (of_a != of_b)
        return of_a > of_b ? -1 : 1;
    return duet_task_id(a->task) < duet_task_id(b->task) ? -1 : 1;
}

/* Gives a task to the worker of this kind that would end it first; returns its seconds. */
static double dada_put(struct plan *plan, struct item *item, bool device)
{
    double first = INFINITY, took = 0;
    for (unsigned w = 0; w < plan->workers; w++) {
        if (duet_view_is_device(plan->view, w) != device ||
            !duet_view_can_run(plan->view, w, item->task))
            continue;
        double own = seconds(plan, w, item->task);
        if (plan->loads[w] + own < first) {
            first = plan->loads[w] + own;
            took = own;
            item->worker = w;
        }
    }
    plan->loads[item->worker] += took;
    return took;
}

static void place_near(struct plan *plan, double guess, double *work)
{
    for (size_t i = 0; i < plan->count; i++) {
        struct item *item = &plan->items[i];
        double own = seconds(plan, item->near, item->task);
        item->placed = item->bytes && plan->loads[item->near] + own <= plan->alpha * guess;
        if (!item->placed)
            continue;
        item->worker = item->near;
        plan->loads[item->near] += own;
        work[duet_view_is_device(plan->view, item->near)] += own;
    }
}

/* Places all tasks for a makespan of about `guess`. Returns false if that is not possible. */
static bool dada_place(struct plan *plan, double guess)
{
    double work[KINDS] = {0};
    double room[KINDS] = {plan->of_kind[CPU] * guess, plan->of_kind[DEVICE] * guess};
    memcpy(plan->loads, plan->waits, plan->workers * sizeof *plan->loads);
    for (unsigned w = 0; w < plan->workers; w++)
        work[duet_view_is_device(plan->view, w)] += plan->loads[w];
    place_near(plan, guess, work);
    for (unsigned free = 0; free < 2; free++) { /* tasks of one kind of worker, then those of
                                                   either */
        for (size_t i = 0; i < plan->count; i++) {
            struct item *item = &plan->items[i];
            bool cpu = item->shortest[CPU] <= guess, device = item->shortest[DEVICE] <= guess;
            if (item->placed || lost(item) || (cpu && device) != free)
                continue;
            if (!cpu && !device)
                return false;
            device = device && (!cpu || work[DEVICE] < room[DEVICE]);
            work[device] += dada_put(plan, item, device);
        }
        if (work[CPU] > room[CPU] || (!free && work[DEVICE] > room[DEVICE]))
            return false;
    }
    return true;
}

/* Places all tasks by the smallest guess that succeeds, to one percent. */
static void bisect(struct plan *plan)
{
    double low = 0, high = 1e-6;
    for (unsigned tries = 0; tries < 64 && !dada_place(plan, high); tries++) {
        low = high;
        high *= 2;
    }
    while (high - low > 0.01 * high) {
        double guess = (low + high) / 2;
        if (dada_place(plan, guess))
            high = guess;
        else
            low = guess;
    }
    (void)dada_place(plan, high);
}

/* Describes the batch and the loads of workers, in memory for all of it; NULL: there is none. */
static double *describe_all(struct plan *plan, struct duet_task **batch, double now)
{
    size_t loads = 2 * plan->workers;
    double *memory = malloc(loads * sizeof *memory + plan->count * sizeof(struct item));
    if (!memory)
        return NULL;
    plan->waits = memory;
    plan->loads = memory + plan->workers;
    plan->items = (void *)(memory + loads);
    for (unsigned w = 0; w < plan->workers; w++) {
        struct busy *busy = duet_view_worker_state(plan->view, w);
        double load = duet_view_load(plan->view, w);
        double since = atomic_load_explicit(&busy->since_s, memory_order_relaxed);
        plan->waits[w] = load > 0 ? fmax(0, since + load - now) : 0;
        plan->of_kind[duet_view_is_device(plan->view, w)]++;
    }
    for (size_t i = 0; i < plan->count; i++)
        describe(plan, &plan->items[i], batch[i]);
    qsort(plan->items, plan->count, sizeof *plan->items, by_speedup);
    return memory;
}

static void dada_push(void *self, struct duet_view *view, struct duet_task **batch, size_t count,
                      int by, double now)
{
    struct plan plan = {.view = view,
                        .count = count,
                        .workers = duet_view_workers(view),
                        .alpha = duet_view_parameter(view, ALPHA),
                        .transfers = duet_view_parameter(view, TRANSFERS) > 0};
    double *memory = describe_all(&plan, batch, now);
    if (memory)
        bisect(&plan);
    for (size_t i = 0; i < count && memory; i++) {
        unsigned worker = plan.items[i].worker;
        struct busy *busy = duet_view_worker_state(view, worker);
        if (!(duet_view_load(view, worker) > 0))
            atomic_store_explicit(&busy->since_s, now, memory_order_relaxed);
        duet_push_tail(view, duet_view_list(view, worker), plan.items[i].task);
    }
    for (size_t i = 0; i < count && !memory; i++)
        duet_push_tail(view, duet_view_shared(view), batch[i]);
    free(memory);
}

static void dada_epilogue(void *self, struct duet_view *view, struct duet_task *task,
                          unsigned worker, const struct duet_times *times, double now)
{
    struct busy *busy = duet_view_worker_state(view, worker);
    atomic_store_explicit(&busy->since_s, times->end_s, memory_order_relaxed);
}

static const struct duet_policy_parameter parameters[] = {
    [ALPHA] = {"alpha", 0.5, 0, 1, "part of the guessed makespan that is filled by affinity"},
    [TRANSFERS] = {"transfers", 0, 0, 1, "1: expected times include transfers"},
    {NULL},
};

const struct duet_policy duet__policy_dada = {
    .name = "dada",
    .description = "affinity to data within alpha of a guessed makespan, then balance",
    .source = "Bleuse, Gautier, Lima, Mounie, Trystram, Euro-Par 2014 (DADA)",
    .order = DUET_DEQUE,
    .state_size_a_worker = sizeof(struct busy),
    .parameters = parameters,
    .push = dada_push,
    .pop = duet_pop_own_or_shared,
    .epilogue = dada_epilogue,
};
