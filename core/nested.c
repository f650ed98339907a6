/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nested tasks that a worker keeps to itself: private deques (Acar, Chargueraud, Rainey, PPoPP
 * 2013; lazy task creation: Mohr, Kranz, Halstead, TPDS 1991). A policy of local lists and stealing
 * (struct duet_policy.keeps_nested) would put tasks that a kernel submits on its worker's list,
 * take the newest first, and let idle workers steal the oldest. Here they stay in the hands of the
 * worker's thread: no lock, no shared counter, no wake. The rules:
 *
 * - A task is kept if a short kernel on a CPU worker submits it without data and without
 * restriction, and its kernel is short as well: no other worker can take kept tasks while a kernel
 * runs.
 *
 * - Before each of them the worker looks for an idle CPU worker, and if there is one gives the
 * oldest, which is the largest part of a recursion, to the policy.
 *
 * - The worker runs the newest first, whatever its priority, before it asks the policy.
 *
 * - Children of a task that waits are kept in the same way, unless the run is recorded, and run
 * when it waits. Where many tasks wait on top of each other this is so under every policy and for
 * all kernels, as only depth first bounds the stack.
 *
 * A recording has them as all tasks, and changes none of this. Without a recording their dates are
 * not taken one by one: a look at the clock costs as much as all else.
 */
#include "core/expand.h"

enum { NUMBERS_MAX = 64, DEEP = 64 /* tasks that wait on one worker */ };

static bool is_short(const struct task_class *klass, unsigned worker)
{
    double usual_s = klass->executions[worker].usual_s;
    return usual_s > 0 && usual_s < SHORT_S;
}

/* True if a worker of the host's memory is idle. */
static bool is_wanted(const struct duet_runtime *core)
{
    for (unsigned i = 0; i < core->worker_words; i++)
        if (atomic_load_explicit(&core->hungry[i], memory_order_relaxed) & core->hosts[i])
            return true;
    return false;
}

/* ------------------------------------------------------------------------------------------- */
/* Numbers and counters                                                                         */

/* Counts kept tasks that have ended. */
static void count_kept(struct nested *nested, struct duet_view *view)
{
    uint64_t left = nested->end - nested->next, ended = nested->ended + left;
    if (left)
        duet__count_internal(view, left);
    nested->ended = nested->next = nested->end = nested->reserved = 0;
    if (ended)
        duet__count_finished(view, ended);
}

/*
 * Takes task numbers from the counter that all threads share, in bundles of one, two, four and so
 * on while there are more tasks to come; numbers that are left over count as ended.
 */
RARE static void reserve_numbers(struct duet_runtime *core, struct worker *worker)
{
    struct nested *nested = &worker->nested;
    uint64_t count = 2 * nested->reserved;
    nested->reserved = count == 0 ? 1 : count < NUMBERS_MAX ? count : NUMBERS_MAX;
    nested->next = atomic_fetch_add(&core->submitted, nested->reserved) + 1;
    nested->end = nested->next + nested->reserved;
    /* never the last: the current task has not ended */
    if (nested->ended)
        duet__add_finished(core, worker, nested->ended);
    nested->ended = 0;
}

static uint64_t next_number(struct duet_runtime *core, struct worker *worker)
{
    if (worker->nested.next == worker->nested.end)
        reserve_numbers(core, worker);
    return worker->nested.next++;
}

/* ------------------------------------------------------------------------------------------- */
/* Keeping                                                                                      */

/* True if tasks that this worker's kernel submits now may be kept. */
static bool may_keep(const struct duet_runtime *core, const struct worker *worker)
{
    return worker->node == DUET_HOST && worker->nested.running &&
           !atomic_load_explicit(&core->stopped, memory_order_relaxed);
}

/* Returns a record whose fields are zero where no nested task changes them. NULL: no memory. */
RARE static struct duet_task *new_record(struct duet_runtime *core, const struct worker *worker)
{
    struct duet_task *task = duet__task_alloc(core, (int)worker->index, 0);
    if (task) {
        uint8_t pool = task->pool;
        memset(task, 0, offsetof(struct duet_task, args));
        task->pool = pool;
        task->kept = true;
    }
    return task;
}

/* Returns a record for a nested task, a used one if there is any. NULL: no memory. */
static struct duet_task *take_record(struct duet_runtime *core, struct worker *worker)
{
    struct duet_task *task = worker->nested.spare;
    if (!task)
        return new_record(core, worker);
    worker->nested.spare = task->next;
    return task;
}

static void nested_append(struct nested *nested, struct duet_task *task)
{
    task->prev = nested->newest;
    task->next = NULL;
    if (nested->newest)
        nested->newest->next = task;
    else
        nested->oldest = task;
    nested->newest = task;
}

/* True if the worker may keep a task of this class to itself. */
static bool may_keep_class(const struct duet_runtime *core, const struct worker *worker,
                           const struct task_class *klass, const struct duet_expansion *parent)
{
    const struct task_class *running = worker->nested.running;
    bool can = klass->kinds >> worker->kind & 1;
    /* kept tasks are run by calling their kernels: expansions have none, and where nothing
       computes, so that only tasks that wait submit any, kernels are not called */
    if (!klass->codelet->waits && (klass->codelet->expand || (parent && !core->computes)))
        return false;
    if (parent && worker->depth >= DEEP)
        return can;
    if (parent && (core->record || !core->keeps))
        return false;
    return can && is_short(klass, worker->index) &&
           (running == klass || is_short(running, worker->index));
}

bool duet__nested_submit(struct duet_runtime *core, struct worker *worker,
                         const struct duet_task_desc *desc, struct duet_expansion *parent)
{
    if (!desc || !desc->codelet || desc->codelet->core != core || desc->access_count ||
        desc->where || has_extra(desc) || (desc->args_bytes && !desc->args))
        return false;
    struct task_class *klass;
    double work;
    if (!may_keep(core, worker) || duet__class_find((struct duet_codelet *)(uintptr_t)desc->codelet,
                                                    desc->args, NULL, 0, &klass, &work, NULL))
        return false;
    uint16_t mask = atomic_load_explicit(&klass->mask, memory_order_acquire);
    if (!mask || !may_keep_class(core, worker, klass, parent))
        return false;
    struct nested *nested = &worker->nested;
    struct duet_task *task = take_record(core, worker);
    if (!task)
        return false;
    task->klass = klass;
    task->parent = parent;
    if (parent)
        parent->kept++;
    task->work = work;
    task->mask = (uint8_t)(mask - 1);
    task->state = TASK_CREATED;
    task->priority = desc->priority & core->priority_bits;
    task->complexity = desc->complexity > 0 ? desc->complexity : task->work;
    copy_args(task, desc);
    task->id = next_number(core, worker);
    duet__link_alone(core, task, core->record ? core->ops->now(core->engine) : nested->now);
    nested_append(nested, task);
    return true;
}

/* ------------------------------------------------------------------------------------------- */
/* Giving away and running                                                                      */

static struct duet_task *take_oldest(struct nested *nested)
{
    struct duet_task *task = nested->oldest;
    nested->oldest = task->next;
    if (nested->oldest)
        nested->oldest->prev = NULL;
    else
        nested->newest = NULL;
    task->next = task->prev = NULL;
    task->kept = false;
    if (task->parent) { /* its parent waits on this worker's stack */
        task->parent->kept--;
        atomic_fetch_add_explicit(&task->parent->unfinished, 1, memory_order_relaxed);
    }
    return task;
}

static struct duet_task *take_newest(struct nested *nested)
{
    struct duet_task *task = nested->newest;
    nested->newest = task->prev;
    if (nested->newest)
        nested->newest->next = NULL;
    else
        nested->oldest = NULL;
    return task;
}

/* Gives the oldest kept task to the policy, while this worker has something else to do. */
static void give_oldest(struct duet_view *view, struct nested *nested)
{
    bool busy = view->busy;
    view->busy = true;
    duet__push(view, take_oldest(nested));
    view->busy = busy;
}

/* Cancels all kept tasks if the run has `failed`; else gives one to an idle worker. */
RARE static void give_away(struct duet_runtime *core, struct worker *worker, double now,
                           struct duet__ops *ops, bool failed)
{
    struct duet_view view;
    view_begin(&view, core, now, (int)worker->index, ops);
    while (failed && worker->nested.oldest)
        duet__task_cancel(&view, worker, take_oldest(&worker->nested));
    if (!failed)
        give_oldest(&view, &worker->nested);
    duet__view_flush(&view);
}

struct duet_task *duet__nested_next(struct duet_runtime *core, unsigned worker, double now,
                                    struct duet__ops *ops)
{
    struct worker *self = &core->workers[worker];
    struct nested *nested = &self->nested;
    bool failed = duet__failed(core);
    if (failed || (nested->oldest != nested->newest && is_wanted(core)))
        give_away(core, self, now, ops, failed);
    if (!nested->newest)
        return NULL;
    struct duet_task *task = take_newest(nested);
    task->state = TASK_RUNNING;
    nested->now = now;
    nested->running = task->klass;
    return task;
}

void duet__nested_done(struct duet_runtime *core, unsigned worker, struct duet_task *task,
                       const struct duet__completion *report)
{
    struct worker *self = &core->workers[worker];
    struct task_class *klass = task->klass;
    if (report->status) {
        duet__count_failure(core, task, report->status, false);
        duet__fail_task(core, report->status, "task %llu (%s) failed on %s: %s",
                        (unsigned long long)task->id, klass->codelet->name,
                        core->machine.workers[worker].name,
                        report->why && *report->why ? report->why : duet_strerror(report->status));
    } else {
        count_own(&self->tasks, 1);
        klass->executions[worker].ran++;
        if (klass->counts_flops)
            add_own_double(&self->flops, task->work);
    }
    if (core->record)
        duet__trace_record(core, self, task, report, report->status != 0);
    if (task->parent)
        task->parent->kept--;
    self->at_body = false;
    task->next = self->nested.spare;
    self->nested.spare = task;
    self->nested.ended++;
}

void duet__nested_end(struct duet_runtime *core, unsigned worker, double start_s, double now,
                      struct duet__ops *ops)
{
    struct worker *self = &core->workers[worker];
    struct nested *nested = &self->nested;
    struct duet_view view;
    view_begin(&view, core, now, (int)worker, ops);
    nested->running = NULL;
    add_own_double(&self->busy_s, now - start_s);
    raise_own(&self->last_end_s, now);
    while (nested->oldest)
        give_oldest(&view, nested);
    count_kept(nested, &view);
    duet__view_flush(&view);
}

bool duet__nested_any(const struct duet_runtime *core, unsigned worker)
{
    return core->workers[worker].nested.end != 0;
}

bool duet__nested_awaited(const struct duet_runtime *core, unsigned worker)
{
    const struct duet_expansion *body = core->workers[worker].body;
    return body && body->kept;
}
