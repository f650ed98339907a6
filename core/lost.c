/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lost device: its tasks go to others, its replicas are void. Nothing is restored: a task runs
 * again elsewhere if its inputs are valid there. They stay valid until it is finished, since only
 * the end of a writer invalidates other replicas.
 */
#include "core/internal.h"

/*
 * Makes nothing valid on the node, now and later. Any thread; more than once is fine. No lock held.
 */
void duet__node_lost(struct duet_runtime *core, unsigned node)
{
    struct node *self = &core->nodes[node];
    atomic_store(&self->lost, true);
    spin_lock(&self->lock);
    for (struct replica *replica = self->oldest; replica; replica = replica->newer) {
        spin_lock(&replica->handle->lock);
        bit_clear(replica->handle->valid, node);
        spin_unlock(&replica->handle->lock);
    }
    spin_unlock(&self->lock);
}

void duet__link_after(struct duet_task *parent, struct duet_task *task)
{
    task->next = parent->submitted;
    parent->submitted = task;
    duet__submitted_again(parent, task);
    uint64_t version;
    struct task_says says;
    struct duet_runtime *core = parent->klass->codelet->core;
    if (duet__task_repeat(parent, &version))
        duet__fail_task(core, DUET_EINVAL,
                        "a `capturable` kernel of a graph has submitted %s, which would be missing "
                        "where the graph is launched without calling the kernel's function",
                        task->klass ? duet__task_says(core, task, &says) : "the end of data");
}

/* Gives the reference that a kernel had made on a lost device to the task that it submits again. */
void duet__submitted_again(const struct duet_task *kernel, const struct duet_task *task)
{
    if (kernel->extra && kernel->extra->lost && task->extra && task->extra->ref)
        duet__ref_again(&kernel->extra->lost, task->extra->ref);
}

/* Enters the tasks that a kernel has submitted into the graph, in that order, when it has ended. */
void duet__link_submitted(struct duet_view *view, struct duet_task *task)
{
    struct duet_task *first = NULL;
    while (task->submitted) {
        struct duet_task *newest = task->submitted;
        task->submitted = newest->next;
        newest->next = first;
        first = newest;
    }
    while (first) {
        struct duet_task *next = first->next;
        first->next = NULL;
        duet__link_in(view, first);
        first = next;
    }
}

/* Drops the tasks that a kernel has submitted: it will submit them again. */
static void forget_submitted(struct duet_view *view, struct duet_task *task)
{
    while (task->submitted) {
        struct duet_task *newest = task->submitted;
        task->submitted = newest->next;
        if (!newest->klass)
            duet__unregister_forget(newest);
        if (newest->extra)
            duet__extra_postpone(view, task, newest);
        duet__scratch_refused(view->core, newest);
        duet__task_free(view->core, view->by, newest);
        duet__count_internal(view, 1);
        duet__count_finished(view, 1);
    }
}

/* Gives a task that the lost worker holds to the policy again. */
void duet__lost_requeue(struct duet_view *view, struct worker *worker, struct duet_task *task)
{
    if (task->state == TASK_RUNNING)
        forget_submitted(view, task);
    duet__slot_remove(worker, task);
    if (hopeless(view->core, task)) {
        duet__task_cancel(view, worker, task);
        return;
    }
    if (task->state == TASK_FETCHING || task->state == TASK_RUNNING)
        duet__cache_unpin(view, worker->node, task);
    if (task->modes & TASK_INITIALISES) {
        struct duet_task *next = task->prev;
        add_own(&worker->taken_ns, -(int64_t)(next->predicted_s * 1e9));
        duet__task_end(view, task);
        task = next;
    }
    if (task->modes & ACCESS_REDUCES)
        duet__contributions_lost(view, task);
    task->state = TASK_CREATED;
    duet__push(view, task);
}

/*
 * Does what a lost worker has to do when it is asked: it fails its copies, which nobody starts, and
 * gives its tasks back, which nobody else knows. Tasks whose inputs are on their way wait for the
 * copies to be reported.
 */
void duet__lost_next(struct duet_view *view, struct worker *worker)
{
    struct duet__copy *copy;
    while ((copy = duet__next_copy(worker)))
        duet__copy_lost(view, copy);
    for (unsigned i = 0; i < worker->taken; i++) {
        struct duet_task *task = worker->slots[i];
        bool arrived = atomic_load_explicit(&task->missing, memory_order_acquire) == 0;
        if (task->state == TASK_TAKEN || (task->state == TASK_FETCHING && arrived)) {
            duet__lost_requeue(view, worker, task);
            i--;
        }
    }
}

/* Ends all tasks that only workers of this kind can run, if the last of these is lost. */
static void kind_lost(struct duet_view *view, unsigned kind)
{
    struct duet_runtime *core = view->core;
    if (atomic_fetch_sub(&core->kinds[kind].living, 1) > 1)
        return;
    atomic_fetch_or(&core->dead_kinds, UINT64_C(1) << kind);
    duet__list_doom(view, &core->shared);
    for (struct duet_list *list = core->own_lists; list; list = list->next)
        duet__list_doom(view, list);
    for (unsigned w = 0; w < core->machine.worker_count; w++)
        duet__list_doom(view, &core->workers[w].list);
}

int duet__worker_lost(struct duet_runtime *core, unsigned worker, double now, struct duet__ops *ops)
{
    struct worker *self = &core->workers[worker];
    if (self->node == DUET_HOST)
        return DUET_EINVAL;
    if (atomic_load(&self->lost))
        return DUET_OK;
    struct duet_view view;
    view_begin(&view, core, now, (int)worker, ops);
    duet__node_lost(core, self->node);
    atomic_fetch_and(&core->hungry[worker / 64], ~(UINT64_C(1) << (worker % 64)));
    /* first, so that a thread that finds no living worker for a task knows that there is none */
    kind_lost(&view, self->kind);
    atomic_store(&self->lost, true);
    duet__mark_lost(core, worker, now);
    duet__list_drain(&view, &self->list);
    duet__lost_next(&view, self);
    /* it may have been woken for a task on another list: another worker has to look */
    view.wake_all = true;
    duet__view_flush(&view);
    return DUET_OK;
}
