/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Revocation: a task that a worker has taken and not begun goes to an idle one, if the policy says
 * so. The worker's own thread asks the policy, so that nobody else touches its slots: before it
 * begins a task, and whenever it asks for work while a task waits; a worker that becomes idle wakes
 * it for that.
 */
#include <math.h>

#include "core/internal.h"

/* Returns the date at which the task's inputs were expected to have arrived. */
static double arrival_s(const struct duet_task *task, unsigned node)
{
    double latest = 0;
    for (unsigned i = 0; i < task->access_count; i++) {
        const struct access *access = &task->accesses[i];
        struct duet_handle *handle = access->handle;
        if (!(access->mode & DUET_R) || bit_test(handle->valid, node))
            continue;
        spin_lock(&handle->lock);
        const struct replica *into = handle->replicas[node];
        if (into && into->copying)
            latest = fmax(latest, into->arrival_s);
        spin_unlock(&handle->lock);
    }
    return latest;
}

/* Returns the date at which the worker is expected to have finished its earlier tasks. */
static double free_s(const struct worker *worker, unsigned slot, double now)
{
    struct duet_task *const *slots = worker->slots;
    double end = now;
    if (slot && slots[0]->state == TASK_RUNNING) {
        end = atomic_load_explicit(&worker->last_end_s, memory_order_relaxed);
        /* it was given last, before now */
        if ((slot == 1 || slots[1]->state != TASK_RUNNING) && worker->nested.now < now)
            end = fmax(end, worker->nested.now);
    }
    for (unsigned i = 0; i < slot; i++)
        end += slots[i]->predicted_s;
    return end;
}

/* True if inputs of the task are still on their way. */
static bool is_fetching(const struct duet_task *task)
{
    return task->state == TASK_FETCHING &&
           atomic_load_explicit(&task->missing, memory_order_acquire) > 0;
}

/*
 * True if data that the task writes is still being copied. Leaving such a copy behind would be
 * useless, or leave it half written: the task waits for it, and the policy is asked then.
 */
static bool writes_coming(const struct duet_task *task, unsigned node)
{
    bool any = false;
    for (unsigned i = 0; i < task->access_count && is_fetching(task) && !any; i++) {
        const struct access *access = &task->accesses[i];
        if (!(access->mode & DUET_W))
            continue;
        spin_lock(&access->handle->lock);
        const struct replica *replica = access->handle->replicas[node];
        any = replica->copying || replica->leaving;
        spin_unlock(&access->handle->lock);
    }
    return any;
}

/* Takes the task out of the worker's hands. Returns false if there is no memory to do so. */
static bool take_back(struct duet_view *view, struct worker *worker, struct duet_task *task)
{
    if (task->state == TASK_FETCHING) {
        if (!duet__leave_behind(view, task, worker->node))
            return false;
        /* a thread that ends a copy may have found the task, and be about to count that */
        for (unsigned tries = 0; is_fetching(task); tries++)
            duet__spin_rest(tries);
        duet__cache_unpin(view, worker->node, task);
    }
    if (worker->node != DUET_HOST) /* if it was the task that waited for room, none does now */
        atomic_store(&view->core->nodes[worker->node].blocked, false);
    duet__slot_remove(worker, task);
    task->state = TASK_CREATED;
    task->modes |= TASK_REVOKED;
    return true;
}

/*
 * Asks the policy for a task in a slot. Not for a task that commutes, since others may write its
 * data beside the copies left behind; that reduces, since it has contributions of this worker; or
 * that uses scratch; nor for children, whose blocks are freed when all of them have ended.
 */
static bool offer_task(struct duet_view *view, struct worker *worker, unsigned slot)
{
    struct duet_runtime *core = view->core;
    struct duet_task *task = worker->slots[slot];
    if (task->state == TASK_RUNNING || task->modes || task->parent || hopeless(core, task) ||
        writes_coming(task, worker->node))
        return false;
    double begin_s = fmax(free_s(worker, slot, view->now), arrival_s(task, worker->node));
    int thief = policy_of(core)->revoke(core->policy_state, view, task, worker->index,
                                        fmax(begin_s, view->now), view->now);
    if (thief < 0)
        return false;
    struct duet_list *list = duet_view_list(view, (unsigned)thief); /* the worker's, or the run has
                                                                   failed */
    if (hopeless(core, task) || !take_back(view, worker, task))
        return false;
    count_own(&worker->revocations, 1);
    duet_push_tail(view, list, task);
    return true;
}

/*
 * Gives one of the worker's tasks to an idle worker, the newest that the policy gives. Returns true
 * if it has: the worker's command, not given to it yet, has to be chosen anew.
 */
RARE bool duet__revoke(struct duet_view *view, struct worker *worker,
                       struct duet__engine_command *command)
{
    struct duet_task *next = command->kind == DUET_RUN ? command->task : NULL;
    bool waits = false, given = false;
    if ((!next && command->kind != DUET_IDLE) || (next && next->state != TASK_RUNNING) ||
        atomic_load_explicit(&worker->lost, memory_order_relaxed))
        return false;
    for (unsigned i = 0; i < worker->taken; i++)
        waits = waits || worker->slots[i]->state != TASK_RUNNING;
    /* set first: a worker that becomes idle from now on sees it, or is seen */
    if (waits != atomic_load_explicit(&worker->waits, memory_order_relaxed))
        atomic_store(&worker->waits, waits);
    bool idle = false;
    for (unsigned w = 0; w < view->core->machine.worker_count && !idle; w++)
        idle = w != worker->index && duet_view_idle(view, w);
    if (!idle)
        return false;
    if (next)
        next->state = TASK_FETCHING;
    for (unsigned i = worker->taken; i-- > 0 && !given;)
        given = offer_task(view, worker, i);
    if (next && given)
        worker->nested.running = NULL;
    if (next && !given)
        next->state = TASK_RUNNING;
    return given;
}

/* Wakes workers with tasks that wait, so that they ask the policy, when a worker becomes idle. */
void duet__call_waiting(struct duet_view *view)
{
    struct duet_runtime *core = view->core;
    for (unsigned w = 0; w < core->machine.worker_count; w++)
        if ((int)w != view->by && atomic_load(&core->workers[w].waits))
            duet__view_wake(view, w);
}

int duet_view_sooner(struct duet_view *view, const struct duet_task *task, unsigned victim,
                     double wait_s, double weight)
{
    double own_s = duet_view_seconds(view, victim, task), least_s = wait_s + own_s;
    int thief = -1;
    for (unsigned w = 0; w < duet_view_workers(view) && own_s > 0 && weight > 0; w++) {
        if (w == victim || !duet_view_idle(view, w) || !duet_view_can_run(view, w, task))
            continue;
        double seconds = weight * duet_view_seconds(view, w, task);
        double start_s =
            fmax(duet_view_load(view, w), duet_view_transfer_seconds(view, w, task, true));
        if (seconds > 0 && start_s + seconds < least_s) {
            least_s = start_s + seconds;
            thief = (int)w;
        }
    }
    return thief;
}
