/* SPDX-License-Identifier: Apache-2.0 */
/*
 * darts: data before tasks. A device without planned tasks searches for the datum that, brought to
 * its memory, frees most of the ready tasks: it is then the only datum they lack. These tasks are
 * planned for the device. If no datum frees a task, it takes a task with the datum that most tasks
 * lack together with one other, or then with several. Planned tasks whose data was lost meanwhile
 * are given back. Eviction by luf, least used in the future: data used by the fewest tasks that are
 * planned for the device, or have begun there, leaves first.
 *
 * The papers have devices alone and, but for Cholesky, tasks that are all ready and equal, and
 * choose among equal data at random. Here, of the data that free tasks, the one that the most
 * urgent task lacks is preferred to the one that frees more (urgent=1: also to one that frees any),
 * and then the first. Planned tasks run by priority; a device that finds none takes from the plans
 * of others; and a CPU takes tasks that devices would not end before it, as in heteroprio.
 */
#include <math.h>

#include <duet/policy.h>

enum { URGENT, LUF };

static const struct duet_policy_parameter parameters[] = {
    [URGENT] = {"urgent", 0, 0, 1, "1: priority counts before what data frees"},
    [LUF] = {"luf", 1, 0, 1, "1: data that fewest planned tasks use makes room; 0: oldest"},
    {NULL},
};

/*
 * Numbers of ready tasks that lack a datum and no other, one other, or several, in the search
 * numbered `look`, and their highest priority.
 */
struct datum {
    uint64_t look;
    unsigned alone, with_one, with_more;
    int priority;
};

enum { KINDS_MAX = 64 };

struct state {
    uint64_t looks; /* counted with the shared list locked */
    /* Devices by architecture: the first of each, and their number. */
    unsigned kinds;
    struct kind {
        unsigned first, count;
    } kind[KINDS_MAX];
};

static int darts_init(void *self, struct duet_view *view)
{
    struct state *state = self;
    for (unsigned w = 0; w < duet_view_workers(view); w++) {
        unsigned k = 0;
        if (!duet_view_is_device(view, w))
            continue;
        while (k < state->kinds &&
               duet_view_arch(view, state->kind[k].first) != duet_view_arch(view, w))
            k++;
        if (k == state->kinds)
            state->kind[state->kinds++].first = w;
        state->kind[k].count++;
    }
    return DUET_OK;
}

/* The search of a device through ready tasks. */
struct look {
    struct duet_view *view;
    struct state *state;
    unsigned worker, node;
    bool urgent;
    uint64_t number; /* number of this search */
    struct datum best;
    uint64_t data; /* number of the best datum; 0: none */
};

static unsigned darts_missing(const struct look *look, const struct duet_task *task)
{
    unsigned count = 0;
    for (size_t i = 0; i < duet_task_accesses(task); i++)
        count += duet_task_reads(task, i) && !duet_view_valid(look->view, look->node, task, i);
    return count;
}

static bool darts_better(const struct datum *a, const struct datum *b, bool urgent)
{
    if (!urgent && !a->alone != !b->alone)
        return a->alone;
    if (a->priority != b->priority)
        return a->priority > b->priority;
    if (a->alone != b->alone)
        return a->alone > b->alone;
    return a->with_one != b->with_one ? a->with_one > b->with_one : a->with_more > b->with_more;
}

/* Counts the data that a task lacks; a task that lacks none is taken at once, by priority. */
static double weigh(void *context, const struct duet_view *view, const struct duet_task *task)
{
    struct look *look = context;
    const unsigned lacks = darts_missing(look, task);
    if (!lacks)
        return duet_task_priority(task);
    if (!look->number)
        look->number = ++look->state->looks;
    for (size_t i = 0; i < duet_task_accesses(task); i++) {
        if (!duet_task_reads(task, i) || duet_view_valid(view, look->node, task, i))
            continue;
        struct datum *datum = duet_task_data_state(look->view, task, i);
        if (datum->look != look->number)
            *datum = (struct datum){look->number, .priority = duet_task_priority(task)};
        datum->alone += lacks == 1;
        datum->with_one += lacks == 2;
        datum->with_more += lacks > 2;
        if (datum->priority < duet_task_priority(task))
            datum->priority = duet_task_priority(task);
        const uint64_t data = duet_task_data(task, i);
        if (!look->data || look->data == data || darts_better(datum, &look->best, look->urgent)) {
            look->best = *datum;
            look->data = data;
        }
    }
    return -INFINITY;
}

static bool darts_reads(const struct duet_task *task, uint64_t data)
{
    bool found = false;
    for (size_t i = 0; i < duet_task_accesses(task) && !found; i++)
        found = duet_task_reads(task, i) && duet_task_data(task, i) == data;
    return found;
}

/* Scores tasks that read the chosen datum: fewest other data lacking, then by priority. */
static double wants(void *context, const struct duet_view *view, const struct duet_task *task)
{
    const struct look *look = context;
    if (!darts_reads(task, look->data))
        return -INFINITY;
    return duet_task_priority(task) - 0x1p33 * darts_missing(look, task);
}

static double is_there(void *context, const struct duet_view *view, const struct duet_task *task)
{
    return darts_missing(context, task) ? -INFINITY : duet_task_priority(task);
}

static double by_priority(void *context, const struct duet_view *view, const struct duet_task *task)
{
    return duet_task_priority(task);
}

/* Chooses tasks that lack the chosen datum alone: they are planned for the worker. */
static bool is_freed(void *context, const struct duet_view *view, const struct duet_task *task)
{
    const struct look *look = context;
    bool freed = darts_missing(look, task) == 1 && darts_reads(task, look->data);
    if (freed)
        duet_luf_count(look->view, task, look->worker, 1);
    return freed;
}

static bool darts_any(void *context, const struct duet_view *view, const struct duet_task *task)
{
    const struct look *look = context;
    duet_luf_count(look->view, task, look->worker, -1);
    return true;
}

/* Returns a task to begin, after planning others perhaps. NULL: the device can run none. */
static struct duet_task *darts_choose_task(struct look *look, struct duet_list *ready,
                                           struct duet_list *own)
{
    struct duet_task *task;
    do { /* again if others take the task that was found */
        look->number = look->data = 0;
        task = duet_pop_best(look->view, ready, look->worker, weigh, look);
        if (!task && look->data && look->best.alone) {
            duet_move(look->view, ready, own, look->worker, is_freed, look);
            task = duet_pop_best(look->view, own, look->worker, by_priority, NULL);
            if (task)
                return task;
        } else if (!task && look->data) {
            task = duet_pop_best(look->view, ready, look->worker, wants, look);
        }
    } while (!task && look->data);
    if (task)
        duet_luf_count(look->view, task, look->worker, 1);
    return task;
}

static struct duet_task *pop_device(struct state *state, struct duet_view *view, unsigned worker)
{
    struct look look = {view, state, worker, duet_view_node(view, worker), .number = 0};
    struct duet_list *own = duet_view_list(view, worker), *ready = duet_view_shared(view);
    struct duet_task *task = duet_pop_best(view, own, worker, is_there, &look);
    if (task)
        return task;
    if (duet_list_length(own))
        duet_move(view, own, ready, worker, darts_any, &look);
    look.urgent = duet_view_parameter(view, URGENT) > 0;
    return darts_choose_task(&look, ready, own);
}

/* The search of a CPU for tasks that devices leave. */
struct offer {
    const struct state *state;
    unsigned worker;
    size_t waiting;
};

/*
 * Scores tasks that devices would not end before the CPU: the least slow-down is best. An
 * architecture whose first device is lost does not count.
 */
static double leave(void *context, const struct duet_view *view, const struct duet_task *task)
{
    const struct offer *offer = context;
    const struct state *state = offer->state;
    double own = duet_view_seconds(view, offer->worker, task), best = INFINITY;
    unsigned devices = 0;
    for (unsigned k = 0; k < state->kinds; k++) {
        if (!duet_view_can_run(view, state->kind[k].first, task))
            continue;
        devices += state->kind[k].count;
        best = fmin(best, duet_view_seconds(view, state->kind[k].first, task));
    }
    if (!devices || best >= own)
        return INFINITY;
    return (double)offer->waiting / devices * best >= own ? -own / best : -INFINITY;
}

static struct duet_task *darts_pop(void *self, struct duet_view *view, unsigned worker, double now)
{
    if (duet_view_is_device(view, worker))
        return pop_device(self, view, worker);
    struct duet_list *ready = duet_view_shared(view);
    struct offer offer = {self, worker, duet_list_length(ready)};
    return duet_pop_best(view, ready, worker, leave, &offer);
}

static struct duet_task *darts_steal(void *self, struct duet_view *view, unsigned thief,
                                     unsigned victim, double now)
{
    if (!duet_view_is_device(view, thief))
        return NULL;
    struct duet_task *task = duet_pop_tail(view, duet_view_list(view, victim), thief);
    if (task) {
        duet_luf_count(view, task, victim, -1);
        duet_luf_count(view, task, thief, 1);
    }
    return task;
}

static void darts_push(void *self, struct duet_view *view, struct duet_task **batch, size_t count,
                       int by, double now)
{
    for (size_t i = 0; i < count; i++)
        duet_push_tail(view, duet_view_shared(view), batch[i]);
}

/* Evicts by luf, or the least recently used data. */
static double darts_victim(void *self, struct duet_view *view, unsigned node, void *place,
                           bool sole)
{
    bool luf = duet_view_parameter(view, LUF) > 0;
    return luf ? duet_luf_victim(self, view, node, place, sole) : INFINITY;
}

const struct duet_policy duet__policy_darts = {
    .name = "darts",
    .description = "devices choose the data that frees most tasks; luf eviction",
    .source = "Gonthier, Marchal, Thibault, FGCS 149, 2023 (DARTS, LUF)",
    .order = DUET_DEQUE,
    .may_decline = true,
    .state_size = sizeof(struct state),
    .state_size_a_data = sizeof(struct datum),
    .state_size_a_place = DUET_LUF_BYTES,
    .scores_hold = true,
    .parameters = parameters,
    .init = darts_init,
    .push = darts_push,
    .pop = darts_pop,
    .steal = darts_steal,
    .victim = darts_victim,
    .epilogue = duet_luf_epilogue,
};
