/* SPDX-License-Identifier: Apache-2.0 */
/*
 * darts: data before tasks. A device that has nothing planned looks for the datum that, brought to
 * its memory, frees most of the ready tasks: leaves them with all that they read there. These tasks
 * are planned for it. Where none frees a task, it takes a task of the datum that most tasks lack
 * with one other, or then with several. What was planned and has lost data meanwhile is given back.
 * Room is made by luf, least used in the future: what the fewest of the tasks use that are planned
 * for the device, or have begun there, goes first.
 *
 * The papers have devices alone and, but for Cholesky, tasks that are all ready and equal, and draw
 * where several data are equal. Here, of the data that free tasks, the one that the most urgent
 * task lacks goes before how many it frees (or before whether it does: urgent=1), and then the
 * first; planned tasks run by priority; a device that finds nothing takes from the plans of others;
 * and a CPU takes what devices would not be through with before it, as in heteroprio.
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
 * How many ready tasks lack a datum and nothing, one or several others, in the look of a number,
 * and the highest priority of them.
 */
struct datum {
    uint64_t look;
    unsigned alone, with_one, with_more;
    int priority;
};

enum { KINDS_MAX = 64 };

struct state {
    uint64_t looks; /* counted with the shared list locked */
    /* devices by architecture: the first of each, and how many */
    unsigned kinds;
    struct kind {
        unsigned first, count;
    } kind[KINDS_MAX];
};

static int init(void *self, struct duet_view *view)
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

/* A device that looks through tasks. */
struct look {
    struct duet_view *view;
    struct state *state;
    unsigned worker, node;
    bool urgent;
    uint64_t number; /* of this look */
    struct datum best;
    uint64_t data; /* which that is; 0: none */
};

static unsigned missing(const struct look *look, const struct duet_task *task)
{
    unsigned count = 0;
    for (size_t i = 0; i < duet_task_accesses(task); i++)
        count += duet_task_reads(task, i) && !duet_view_valid(look->view, look->node, task, i);
    return count;
}

static bool better(const struct datum *a, const struct datum *b, bool urgent)
{
    if (!urgent && !a->alone != !b->alone)
        return a->alone;
    if (a->priority != b->priority)
        return a->priority > b->priority;
    if (a->alone != b->alone)
        return a->alone > b->alone;
    return a->with_one != b->with_one ? a->with_one > b->with_one : a->with_more > b->with_more;
}

/* Counts what a task lacks; it is taken at once if that is nothing, by priority. */
static double weigh(void *context, const struct duet_view *view, const struct duet_task *task)
{
    struct look *look = context;
    const unsigned lacks = missing(look, task);
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
        if (!look->data || look->data == data || better(datum, &look->best, look->urgent)) {
            look->best = *datum;
            look->data = data;
        }
    }
    return -INFINITY;
}

static bool reads(const struct duet_task *task, uint64_t data)
{
    bool found = false;
    for (size_t i = 0; i < duet_task_accesses(task) && !found; i++)
        found = duet_task_reads(task, i) && duet_task_data(task, i) == data;
    return found;
}

/* Of tasks that read the chosen datum, the one that lacks fewest others, by priority. */
static double wants(void *context, const struct duet_view *view, const struct duet_task *task)
{
    const struct look *look = context;
    if (!reads(task, look->data))
        return -INFINITY;
    return duet_task_priority(task) - 0x1p33 * missing(look, task);
}

static double is_there(void *context, const struct duet_view *view, const struct duet_task *task)
{
    return missing(context, task) ? -INFINITY : duet_task_priority(task);
}

static double by_priority(void *context, const struct duet_view *view, const struct duet_task *task)
{
    return duet_task_priority(task);
}

/* What lacks the chosen datum alone is planned for the worker. */
static bool is_freed(void *context, const struct duet_view *view, const struct duet_task *task)
{
    const struct look *look = context;
    bool freed = missing(look, task) == 1 && reads(task, look->data);
    if (freed)
        duet_luf_count(look->view, task, look->worker, 1);
    return freed;
}

static bool any(void *context, const struct duet_view *view, const struct duet_task *task)
{
    const struct look *look = context;
    duet_luf_count(look->view, task, look->worker, -1);
    return true;
}

/* A task that is to be begun, others perhaps being planned with it. NULL: it can run none. */
static struct duet_task *choose(struct look *look, struct duet_list *ready, struct duet_list *own)
{
    struct duet_task *task;
    do { /* again if others take what was found */
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
        duet_move(view, own, ready, worker, any, &look);
    look.urgent = duet_view_parameter(view, URGENT) > 0;
    return choose(&look, ready, own);
}

/* A CPU that looks for what devices leave. */
struct offer {
    const struct state *state;
    unsigned worker;
    size_t waiting;
};

/*
 * The task that it is least bad at, of those that devices would not be through with before it. A
 * kind of which the first is lost counts for nothing.
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

static struct duet_task *pop(void *self, struct duet_view *view, unsigned worker, double now)
{
    if (duet_view_is_device(view, worker))
        return pop_device(self, view, worker);
    struct duet_list *ready = duet_view_shared(view);
    struct offer offer = {self, worker, duet_list_length(ready)};
    return duet_pop_best(view, ready, worker, leave, &offer);
}

static struct duet_task *steal(void *self, struct duet_view *view, unsigned thief, unsigned victim,
                               double now)
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

static void push(void *self, struct duet_view *view, struct duet_task **batch, size_t count, int by,
                 double now)
{
    for (size_t i = 0; i < count; i++)
        duet_push_tail(view, duet_view_shared(view), batch[i]);
}

/* LUF, or what was used least recently. */
static double victim(void *self, struct duet_view *view, unsigned node, void *place, bool sole)
{
    bool luf = duet_view_parameter(view, LUF) > 0;
    return luf ? duet_luf_victim(self, view, node, place, sole) : INFINITY;
}

const struct duet_policy duet__policy_darts = {
    .name = "darts",
    .description = "devices choose the data that frees most tasks; luf eviction",
    .source = "Gonthier, Marchal, Thibault, FGCS 149, 2023 (DARTS, LUF)",
    .order = DUET_DEQUE,
    .declines = true,
    .state_size = sizeof(struct state),
    .state_size_a_data = sizeof(struct datum),
    .state_size_a_place = DUET_LUF_BYTES,
    .parameters = parameters,
    .init = init,
    .push = push,
    .pop = pop,
    .steal = steal,
    .victim = victim,
    .epilogue = duet_luf_epilogue,
};
