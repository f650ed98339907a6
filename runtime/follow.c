/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy that follows a schedule. Each worker runs its tasks in their order, and waits for the
 * next one if that is not ready. With slack, a worker that would wait takes a task that is late
 * instead.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/open.h"
#include "runtime/schedule.h"

/* A worker of the machine. */
struct following {
    uint32_t number;        /* its index in the schedule's workers; DUET__UNPLANNED: none */
    _Atomic(uint32_t) next; /* place of its next task */
};

struct state {
    const struct duet__schedule *schedule;
    unsigned *workers;        /* number in the machine, by index in the schedule's workers */
    double slack_s;           /* 0: none */
    _Atomic(double) *ready_s; /* with slack, by task: date at which it was ready */
    _Atomic(bool) *taken;     /* with slack, by task */
    _Atomic(uint64_t) first;  /* number in this run of the schedule's task 1; 0: it has not come */
    _Atomic(double) begin_s;  /* date at which the first task came */
    _Atomic(size_t) ended;    /* tasks that have ended */
    _Atomic(bool) failed;     /* a task was not as planned: all are given out, to be cancelled */
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
                           "%s has tasks for %s: the workers of this machine are %s%s",
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
    if (state->slack_s > 0) {
        state->ready_s = calloc(schedule->count + 1, sizeof *state->ready_s);
        state->taken = calloc(schedule->count + 1, sizeof *state->taken);
    }
    if (!state->workers || (state->slack_s > 0 && (!state->ready_s || !state->taken)))
        return DUET_ENOMEM;
    for (unsigned w = 0; w < duet_view_workers(view); w++)
        ((struct following *)duet_view_worker_state(view, w))->number = DUET__UNPLANNED;
    return find_workers(state, view);
}

static void follow_fini(void *self)
{
    struct state *state = self;

    free(state->workers);
    free(state->ready_s);
    free(state->taken);
}

/* Returns the index of a task in the schedule; at least `count` if the schedule has no such task.
 */
static uint64_t index_of(const struct state *state, const struct duet_task *task)
{
    return duet_task_id(task) - atomic_load_explicit(&state->first, memory_order_acquire);
}

/* Ends the run unless a task is what the schedule says of it. Returns true if it is. */
static bool is_planned(const struct state *state, struct duet_view *view,
                       const struct duet_task *task)
{
    const struct duet__schedule *schedule = state->schedule;
    const uint64_t index = index_of(state, task);
    const unsigned long long number = index + 1;
    const struct duet__planned *planned = index < schedule->count ? &schedule->tasks[index] : NULL;
    const char *kernel = duet_task_kernel(task), *path = schedule->path, *there;
    unsigned long long bytes = 0;

    for (size_t i = 0; i < duet_task_accesses(task); i++)
        bytes += duet_task_access_bytes(task, i);
    if (!planned || planned->worker == DUET__UNPLANNED) {
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
    else if (!duet_view_can_run(view, state->workers[planned->worker], task))
        duet_view_fail(view, DUET_EINVAL, "%s has task %llu (%s) on %s, which cannot run it", path,
                       number, kernel, (char *)schedule->workers.list->pdata[planned->worker]);
    else
        return true;
    return false;
}

/* Begins with the first task: one that is ready at once, before any other has been. */
static void begin(struct state *state, const struct duet_task *first, double now)
{
    uint64_t none = 0;

    atomic_store(&state->begin_s, now);
    (void)atomic_compare_exchange_strong(&state->first, &none, duet_task_id(first));
}

static void follow_push(void *self, struct duet_view *view, struct duet_task **batch, size_t count,
                        int by, double now)
{
    struct state *state = self;

    if (!atomic_load_explicit(&state->first, memory_order_acquire))
        begin(state, batch[0], now);
    for (size_t i = 0; i < count; i++) {
        const struct duet__planned *planned;

        if (!is_planned(state, view, batch[i])) {
            atomic_store(&state->failed, true);
            duet_push_tail(view, duet_view_shared(view), batch[i]);
            continue;
        }
        planned = &state->schedule->tasks[index_of(state, batch[i])];
        if (state->ready_s)
            atomic_store(&state->ready_s[index_of(state, batch[i])], now);
        duet_push_sorted(view,
                         state->ready_s ? duet_view_shared(view)
                                        : duet_view_list(view, state->workers[planned->worker]),
                         batch[i], -(double)planned->place);
    }
}

/* A worker that looks for a task. */
struct look {
    const struct state *state;
    const struct following *self;
    double now;
};

/* Scores the worker's next task, and no other. */
static double score_next(void *context, const struct duet_view *view, const struct duet_task *task)
{
    const struct look *look = context;

    return duet_task_note(task) == -(double)atomic_load(&look->self->next) ? INFINITY : NAN;
}

/* Scores the worker's next task, or else tasks that are late, in the order of their dates. */
static double score_late(void *context, const struct duet_view *view, const struct duet_task *task)
{
    const struct look *look = context;
    const struct state *state = look->state;
    const uint64_t index = index_of(state, task);
    const struct duet__planned *planned = &state->schedule->tasks[index];
    double due_s = atomic_load(&state->ready_s[index]);

    if (planned->worker == look->self->number && planned->place == atomic_load(&look->self->next))
        return INFINITY;
    if (planned->start_s > due_s - atomic_load(&state->begin_s))
        due_s = planned->start_s + atomic_load(&state->begin_s);
    return look->now >= due_s + state->slack_s ? -due_s : -INFINITY;
}

/* Moves a worker on to the first of its tasks that nobody has taken. */
static void advance(const struct state *state, struct following *self)
{
    const struct duet__schedule *schedule = state->schedule;
    const uint32_t *order = schedule->order + schedule->first[self->number];
    uint32_t length = (uint32_t)(schedule->first[self->number + 1] - schedule->first[self->number]);
    uint32_t next = atomic_load(&self->next);

    while (next < length && atomic_load(&state->taken[order[next]]))
        next++;
    atomic_store(&self->next, next);
}

static struct duet_task *follow_pop(void *self, struct duet_view *view, unsigned worker, double now)
{
    struct state *state = self;
    struct following *own = duet_view_worker_state(view, worker);
    struct look look = {state, own, now};
    struct duet_task *task;

    if (atomic_load_explicit(&state->failed, memory_order_relaxed))
        return duet_pop_own_or_shared(self, view, worker, now);
    if (state->ready_s) {
        if (own->number != DUET__UNPLANNED)
            advance(state, own);
        task = duet_pop_best(view, duet_view_shared(view), worker, score_late, &look);
        if (task)
            atomic_store(&state->taken[index_of(state, task)], true);
        return task;
    }
    task = duet_pop_best(view, duet_view_list(view, worker), worker, score_next, &look);
    if (task)
        atomic_fetch_add(&own->next, 1);
    return task;
}

static void follow_epilogue(void *self, struct duet_view *view, struct duet_task *task,
                            unsigned worker, const struct duet_times *times, double now)
{
    struct state *state = self;

    if (atomic_fetch_add(&state->ended, 1) + 1 < state->schedule->planned)
        return;
    /* the last one: the next task that comes is the first of another run */
    for (unsigned w = 0; w < duet_view_workers(view); w++)
        atomic_store(&((struct following *)duet_view_worker_state(view, w))->next, 0);
    for (size_t i = 0; state->taken && i < state->schedule->count; i++)
        atomic_store(&state->taken[i], false);
    atomic_store(&state->ended, 0);
    atomic_store(&state->first, 0);
}

static void follow_explain(void *self, struct duet_view *view, struct duet_message *message)
{
    const struct state *state = self;
    const struct duet__schedule *schedule = state->schedule;

    for (unsigned i = 0; i < schedule->workers.list->len; i++) {
        struct following *one = duet_view_worker_state(view, state->workers[i]);
        size_t at = schedule->first[i] + atomic_load(&one->next);

        if (at >= schedule->first[i + 1])
            continue;
        (void)duet_fail(message, DUET_ESTUCK,
                        "by %s %s waits for task %u, which is not ready, or not submitted",
                        schedule->path, (char *)schedule->workers.list->pdata[i],
                        schedule->order[at] + 1);
        return;
    }
}

static const struct duet_policy_parameter parameters[] = {
    {"slack", 0, 0, 1e6,
     "seconds after which a ready task is late, so that any idle worker takes it; 0: never"},
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
        .epilogue = follow_epilogue,
        .explain = follow_explain,
        .context = schedule,
    };
}

const struct duet__schedule *duet__followed(const struct duet_policy *policy)
{
    return policy->init == follow_init ? policy->context : NULL;
}
