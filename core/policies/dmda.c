/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dmda, dmdas, dmdar: each ready task goes to the worker of the lowest
 *
 *   alpha x expected end + beta x transfer
 *   expected end = max(worker free, now + transfer) + expected time
 *
 * where the transfer is that of copies that are alone. A worker is free when what waits on it is
 * done, which follows the last task that has ended there; where nothing is known of the times, the
 * shortest list is taken. dmda runs a worker's tasks in order of arrival; dmdas by priority, and
 * among equal ones, as dmdar among all, the one of which fewest inputs are not valid there.
 *
 * StarPU 1.3 takes the fitness relative to the earliest end, which chooses the same worker, and
 * adds energy, which duet does not know. Its dates start anew when a task is taken; these when one
 * ends.
 */
#include <math.h>
#include <stdatomic.h>

#include <duet/policy.h>

enum { ALPHA, BETA };

static const struct duet_policy_parameter parameters[] = {
    [ALPHA] = {"alpha", 1, 0, 1000, "weight of the expected end"},
    [BETA] = {"beta", 1, 0, 1000, "weight of the transfer"},
    {NULL},
};

/* Since when a worker has been at what it has to do. */
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

static void assign(struct duet_view *view, struct duet_task *task, double now)
{
    double alpha = duet_view_parameter(view, ALPHA), beta = duet_view_parameter(view, BETA);
    double least = INFINITY, transfer = -1, chosen_transfer = 0;
    size_t shortest = 0;
    unsigned chosen = 0, node = 0;
    for (unsigned w = 0; w < duet_view_workers(view); w++) {
        if (!duet_view_can_run(view, w, task))
            continue;
        if (transfer < 0 || duet_view_node(view, w) != node) {
            node = duet_view_node(view, w);
            transfer = duet_view_transfer_alone_seconds(view, w, task);
        }
        double start = fmax(free_at(view, w, now) - now, transfer);
        double fitness = alpha * (start + duet_view_seconds(view, w, task)) + beta * transfer;
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
    duet_push_tail(view, duet_view_list(view, chosen), task);
}

static void push(void *self, struct duet_view *view, struct duet_task **batch, size_t count, int by,
                 double now)
{
    for (size_t i = 0; i < count; i++)
        assign(view, batch[i], now);
}

static void epilogue(void *self, struct duet_view *view, struct duet_task *task, unsigned worker,
                     const struct duet_times *times, double now)
{
    struct busy *busy = duet_view_worker_state(view, worker);
    atomic_store_explicit(&busy->since_s, times->end_s, memory_order_relaxed);
}

static struct duet_task *pop(void *self, struct duet_view *view, unsigned worker, double now)
{
    return duet_pop_head(view, duet_view_list(view, worker), worker);
}

/* For which memory node the best task is looked for, of tasks of one priority if that is so. */
struct choice {
    unsigned node;
    bool one_priority, begun;
    int priority;
};

static double ready(void *context, const struct duet_view *view, const struct duet_task *task)
{
    struct choice *choice = context;
    if (!choice->begun)
        choice->priority = duet_task_priority(task);
    choice->begun = true;
    if (choice->one_priority && duet_task_priority(task) < choice->priority)
        return NAN;
    size_t missing = 0;
    for (size_t i = 0; i < duet_task_accesses(task); i++)
        missing += duet_task_reads(task, i) && !duet_view_valid(view, choice->node, task, i);
    return missing ? -(double)missing : INFINITY;
}

static struct duet_task *pop_ready(void *self, struct duet_view *view, unsigned worker, double now)
{
    struct choice choice = {.node = duet_view_node(view, worker)};
    return duet_pop_best(view, duet_view_list(view, worker), worker, ready, &choice);
}

static struct duet_task *pop_sorted(void *self, struct duet_view *view, unsigned worker, double now)
{
    struct choice choice = {.node = duet_view_node(view, worker), .one_priority = true};
    return duet_pop_best(view, duet_view_list(view, worker), worker, ready, &choice);
}

#define SOURCE "Augonnet et al., ICPADS 2010; StarPU 1.3"

const struct duet_policy duet__policy_dmda = {
    .name = "dmda",
    .description = "earliest expected end, transfers weighed",
    .source = SOURCE,
    .order = DUET_DEQUE,
    .state_size_a_worker = sizeof(struct busy),
    .parameters = parameters,
    .push = push,
    .pop = pop,
    .epilogue = epilogue,
};

const struct duet_policy duet__policy_dmdas = {
    .name = "dmdas",
    .description = "dmda; then by priority, among equals what has most of its data",
    .source = SOURCE,
    .order = DUET_HEAP,
    .state_size_a_worker = sizeof(struct busy),
    .parameters = parameters,
    .push = push,
    .pop = pop_sorted,
    .epilogue = epilogue,
};

const struct duet_policy duet__policy_dmdar = {
    .name = "dmdar",
    .description = "dmda; then what has most of its data",
    .source = SOURCE,
    .order = DUET_DEQUE,
    .state_size_a_worker = sizeof(struct busy),
    .parameters = parameters,
    .push = push,
    .pop = pop_ready,
    .epilogue = epilogue,
};
