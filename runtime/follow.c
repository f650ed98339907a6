/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy that follows a schedule. Each worker runs its tasks in their order, and waits for the
 * next one if that is not ready. With slack, a worker that would wait takes a task of another one
 * instead that is planned earlier than its own next task, and that it ends earlier than the other.
 *
 * Runs follow each other in one runtime; a run begins with the first task after the opening,
 * duet_stats_reset or duet_recover. Places and marks carry the number of their run, so that nothing
 * has to be reset while idle workers look at them. One thread submits the first task of a run.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/open.h"
#include "runtime/schedule.h"

/* A worker of the machine. */
struct following {
    uint32_t number;        /* its index in the schedule's workers; DUET__UNPLANNED: none */
    _Atomic(uint64_t) next; /* number of the run << 32 | place of its next task */
};

struct state {
    const struct duet__schedule *schedule;
    unsigned *workers;        /* number in the machine, by index in the schedule's workers */
    double slack_s;           /* below 0: none */
    _Atomic(uint32_t) *taken; /* with slack: last run in which a task was taken, by task */
    _Atomic(uint64_t) first;  /* number in the runtime of the schedule's task 1 */
    _Atomic(uint32_t) run;    /* number of the run, from 1 */
    _Atomic(uint32_t) failed; /* last run that had a task which was not as planned: all tasks are
                                 given out, to be cancelled */
};

static int find_workers(struct state *state, struct duet_view *view)
{
    const struct duet__schedule *schedule = state->schedule;
    const struct duet_machine *machine = duet_view_machine(view);
    for (unsigned i = 0; i < schedule->workers.list->len; i++) {
        const char *name = schedule->workers.list->pdata[i];
        unsigned w = 0;
        while (w < machine->worker_count && strcmp(machine->workers[w].name, name) != 0)
            w++;
        if (w == machine->worker_count) {
            g_autoptr(GString) known = g_string_new(NULL);
            for (unsigned k = 0; k < w && k < 16; k++)
                g_string_append_printf(known, "%s%s", k ? ", " : "", machine->workers[k].name);
            duet_view_fail(view, DUET_EINVAL,
                           "%s has tasks for '%s': the workers of this machine are %s%s",
                           schedule->path, name, known->str, w > 16 ? ", ..." : "");
            return DUET_EINVAL;
        }
        state->workers[i] = w;
        ((struct following *)duet_view_worker_state(view, w))->number = i;
    }
    return DUET_OK;
}

static int follow_init(void *self, struct duet_view *view)
{
    struct state *state = self;
    const struct duet__schedule *schedule = duet_view_context(view);
    state->schedule = schedule;
    state->slack_s = duet_view_parameter(view, 0);
    state->workers = calloc(schedule->workers.list->len + 1, sizeof *state->workers);
    if (state->slack_s >= 0)
        state->taken = calloc(schedule->count + 1, sizeof *state->taken);
    if (!state->workers || (state->slack_s >= 0 && !state->taken))
        return DUET_ENOMEM;
    for (unsigned w = 0; w < duet_view_workers(view); w++)
        ((struct following *)duet_view_worker_state(view, w))->number = DUET__UNPLANNED;
    return find_workers(state, view);
}

static void follow_fini(void *self)
{
    struct state *state = self;
    free(state->workers);
    free(state->taken);
}

/* Returns the index of a task in the schedule; at least `count` if the schedule has no such task.
 */
static uint64_t index_of(const struct state *state, const struct duet_task *task)
{
    return duet_task_id(task) - atomic_load_explicit(&state->first, memory_order_acquire);
}

/* Returns the plan of a task, or NULL if it has none. */
static const struct duet__planned *plan_of(const struct state *state, const struct duet_task *task)
{
    const uint64_t index = index_of(state, task);
    const struct duet__planned *tasks = state->schedule->tasks;
    return index < state->schedule->count && tasks[index].worker != DUET__UNPLANNED ? &tasks[index]
                                                                                    : NULL;
}

/* Ends the run unless a task is what the schedule says of it. Returns true if it is. */
static bool is_planned(const struct state *state, struct duet_view *view,
                       const struct duet_task *task)
{
    const struct duet__schedule *schedule = state->schedule;
    const unsigned long long number = index_of(state, task) + 1;
    const struct duet__planned *planned = plan_of(state, task);
    const char *kernel = duet_task_kernel(task), *path = schedule->path, *there;
    unsigned long long bytes = 0;
    for (size_t i = 0; i < duet_task_accesses(task); i++)
        bytes += duet_task_access_bytes(task, i);
    if (!planned) {
        duet_view_fail(view, DUET_EINVAL, "%s is of another task graph: it has no task %llu (%s)",
                       path, number, kernel);
        return false;
    }
    there = planned->kernel ? schedule->kernels.list->pdata[planned->kernel - 1] : kernel;
    if (strcmp(there, kernel) != 0)
        duet_view_fail(view, DUET_EINVAL,
                       "%s is of another task graph: its task %llu is a %s, that of this run a %s",
                       path, number, there, kernel);
    else if (planned->bytes != UINT64_MAX && planned->bytes != bytes)
        duet_view_fail(view, DUET_EINVAL,
                       "%s is of another task graph: the data of its task %llu (%s) has %llu "
                       "bytes, in this run %llu",
                       path, number, kernel, (unsigned long long)planned->bytes, bytes);
    else if (!state->taken && !duet_view_can_run(view, state->workers[planned->worker], task))
        duet_view_fail(view, DUET_EINVAL,
                       "%s has task %llu (%s) on %s, which cannot run it, or is lost", path, number,
                       kernel, (char *)schedule->workers.list->pdata[planned->worker]);
    else
        return true;
    return false;
}

static void follow_push(void *self, struct duet_view *view, struct duet_task **batch, size_t count,
                        int by, double now)
{
    struct state *state = self;
    const uint64_t first = duet_view_first_task(view);
    /* only the first task of a run, before which nothing is in flight, finds another number */
    if (atomic_load_explicit(&state->first, memory_order_acquire) != first) {
        atomic_fetch_add(&state->run, 1);
        atomic_store(&state->first, first);
    }
    for (size_t i = 0; i < count; i++) {
        const struct duet__planned *planned = plan_of(state, batch[i]);
        struct duet_list *list = duet_view_shared(view);
        if (!is_planned(state, view, batch[i]))
            atomic_store(&state->failed, atomic_load(&state->run));
        else if (!state->taken)
            list = duet_view_list(view, state->workers[planned->worker]);
        duet_push_sorted(view, list, batch[i], planned ? -(double)planned->place : 0);
    }
}

/* Returns the place of the worker's next task. */
static uint32_t next_of(const struct state *state, const struct following *worker)
{
    uint64_t next = atomic_load(&worker->next);
    return next >> 32 == atomic_load(&state->run) ? (uint32_t)next : 0;
}

static void set_next(const struct state *state, struct following *worker, uint32_t place)
{
    atomic_store(&worker->next, (uint64_t)atomic_load(&state->run) << 32 | place);
}

/* A worker that looks for a task. */
struct look {
    const struct state *state;
    const struct following *self;
    struct duet_view *view;
    unsigned worker;
    uint32_t next;                     /* place of its next task */
    const struct duet__planned *ahead; /* plan of that; NULL: none is left */
};

/*
 * Scores the worker's next task, and no other of the schedule; what is on its list and planned for
 * another worker, the runtime has given to it.
 */
static double score_next(void *context, const struct duet_view *view, const struct duet_task *task)
{
    const struct look *look = context;
    const struct duet__planned *planned = plan_of(look->state, task);
    return !planned || planned->worker != look->self->number || planned->place == look->next
               ? INFINITY
               : NAN;
}

/* Returns what a task is planned by: its date, or else the number of tasks before it. */
static double due(const struct duet__planned *planned)
{
    return isnan(planned->start_s) ? planned->place : planned->start_s;
}

/*
 * True if the worker is expected to end a task before its planned worker, which first runs what the
 * plan has before it. Planned times are converted by the ratio of both workers' expected times; the
 * worker's copies count. So a slow worker helps only one that has much left to do.
 */
static bool ends_earlier(const struct look *look, const struct duet_task *task,
                         const struct duet__planned *planned)
{
    const struct state *state = look->state;
    const struct duet__schedule *schedule = state->schedule;
    const unsigned other = state->workers[planned->worker];
    const double own_s = duet_view_seconds(look->view, look->worker, task),
                 other_s = duet_view_seconds(look->view, other, task),
                 copies_s = duet_view_transfer_seconds(look->view, look->worker, task, true);
    const bool dated = planned->end_s >= planned->start_s; /* without dates each task counts as 1 */
    const double length = dated ? planned->end_s - planned->start_s : 1;
    const uint32_t next = next_of(state, duet_view_worker_state(look->view, other));
    const uint32_t ahead = planned->place - MIN(next, planned->place);
    const uint32_t *order = schedule->order + schedule->first[planned->worker];
    const struct duet__planned *first = &schedule->tasks[order[planned->place - ahead]];
    return !(own_s > 0 && other_s > 0) ||
           (own_s + copies_s) / other_s * length <=
               length + (dated ? planned->start_s - first->start_s : ahead);
}

/*
 * Scores the worker's next task first, then, by planned date, tasks of others that it may take.
 * Tasks whose own worker cannot run them may be taken at once.
 */
static double score_early(void *context, const struct duet_view *view, const struct duet_task *task)
{
    const struct look *look = context;
    const struct state *state = look->state;
    const struct duet__planned *planned = plan_of(state, task);
    if (!planned || (planned->worker == look->self->number && planned->place == look->next))
        return INFINITY;
    if (!duet_view_can_run(view, state->workers[planned->worker], task))
        return -due(planned);
    return (!look->ahead || due(planned) + state->slack_s <= due(look->ahead)) &&
                   (planned->worker == look->self->number || ends_earlier(look, task, planned))
               ? -due(planned)
               : -INFINITY;
}

/* Finds the first of a worker's tasks that nobody has taken. */
static void find_next(const struct state *state, struct look *look)
{
    const struct duet__schedule *schedule = state->schedule;
    const size_t first = schedule->first[look->self->number],
                 end = schedule->first[look->self->number + 1];
    const uint32_t run = atomic_load(&state->run);
    size_t at = first + look->next;
    while (at < end && atomic_load(&state->taken[schedule->order[at]]) == run)
        at++;
    look->next = (uint32_t)(at - first);
    look->ahead = at < end ? &schedule->tasks[schedule->order[at]] : NULL;
}

/* Takes the worker's next task, or else one that is planned earlier. */
static struct duet_task *pop_early(struct state *state, struct duet_view *view, unsigned worker,
                                   struct following *own)
{
    struct duet_list *shared = duet_view_shared(view);
    struct look look = {.state = state,
                        .self = own,
                        .view = view,
                        .worker = worker,
                        .next = next_of(state, own)};
    struct duet_task *task, *other;
    const struct duet__planned *planned;
    if (own->number != DUET__UNPLANNED) {
        find_next(state, &look);
        set_next(state, own, look.next);
    }
    task = duet_pop_best(view, shared, worker, score_early, &look);
    planned = task ? plan_of(state, task) : NULL;
    if (!planned)
        return task;
    atomic_store(&state->taken[index_of(state, task)], atomic_load(&state->run));
    if (planned->worker == own->number)
        return task;
    /* the one that it was planned for may have found it gone and waits: a push wakes it */
    other = duet_pop_head(view, shared, state->workers[planned->worker]);
    if (other)
        duet_push_sorted(view, shared, other, duet_task_note(other));
    return task;
}

static struct duet_task *follow_pop(void *self, struct duet_view *view, unsigned worker, double now)
{
    struct state *state = self;
    struct following *own = duet_view_worker_state(view, worker);
    struct look look = {.state = state, .self = own, .next = next_of(state, own)};
    const struct duet__planned *planned;
    struct duet_task *task;
    if (atomic_load(&state->failed) && atomic_load(&state->failed) == atomic_load(&state->run))
        return duet_pop_own_or_shared(self, view, worker, now);
    if (state->taken)
        return pop_early(state, view, worker, own);
    task = duet_pop_best(view, duet_view_list(view, worker), worker, score_next, &look);
    planned = task ? plan_of(state, task) : NULL;
    if (planned && planned->worker == own->number)
        set_next(state, own, look.next + 1);
    return task;
}

static void follow_explain(void *self, struct duet_view *view, struct duet_message *message)
{
    const struct state *state = self;
    const struct duet__schedule *schedule = state->schedule;
    for (unsigned i = 0; i < schedule->workers.list->len; i++) {
        const unsigned worker = state->workers[i];
        const size_t at = schedule->first[i] + next_of(state, duet_view_worker_state(view, worker));
        if (at >= schedule->first[i + 1] ||
            (*message->text && !duet_list_length(duet_view_list(view, worker))))
            continue;
        (void)duet_fail(message, DUET_ESTUCK,
                        "by %s %s waits for task %u, which is not ready, or not submitted",
                        schedule->path, (char *)schedule->workers.list->pdata[i],
                        schedule->order[at] + 1);
        /* one that has others to do is more telling than one that has nothing */
        if (duet_list_length(duet_view_list(view, worker)))
            return;
    }
}

static const struct duet_policy_parameter parameters[] = {
    {"slack", -1, -1, 1e6,
     "a worker that would wait takes another's task planned so many seconds before its next; -1: "
     "never"},
    {NULL},
};

void duet__follow(struct duet__schedule *schedule)
{
    schedule->policy = (struct duet_policy){
        .name = "schedule",
        .description = "follows a schedule",
        .source = "duet itself",
        .order = DUET_SORTED,
        .may_decline = true,
        .state_size = sizeof(struct state),
        .state_size_a_worker = sizeof(struct following),
        .parameters = parameters,
        .init = follow_init,
        .fini = follow_fini,
        .push = follow_push,
        .pop = follow_pop,
        .explain = follow_explain,
        .context = schedule,
    };
}

const struct duet__schedule *duet__followed(const struct duet_policy *policy)
{
    return policy->init == follow_init ? policy->context : NULL;
}
