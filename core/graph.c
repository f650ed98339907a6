/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The graph: dependencies inferred from accesses in order of submission. Each handle keeps the
 * chain of accesses that are not granted yet. Either one writing access or a run of reading ones is
 * granted at a time; when all of them are finished the next is granted. So an access costs constant
 * work and 24 bytes whatever the number of successors, and there are no edges to allocate.
 */
#include <stdlib.h>
#include <string.h>

#include "core/internal.h"
#include "core/stale.h"

/* Tasks that became ready, in order of activation, chained by `next`. */
struct ready {
    struct duet_task *first, *last;
    size_t count;
    double now;
};

static void ready_add(struct ready *ready, struct duet_task *task)
{
    task->next = NULL;
    if (ready->last)
        ready->last->next = task;
    else
        ready->first = task;
    ready->last = task;
    ready->count++;
}

/* ------------------------------------------------------------------------------------------- */
/* Giving ready tasks to the policy                                                             */

static inline void push_batch(struct duet_view *view, struct duet_task **batch, size_t count)
{
    struct duet_runtime *core = view->core;
    if (count)
        policy_of(core)->push(core->policy_state, view, batch, count, view->by, view->now);
}

/* Room for `count` tasks, the worker's own; fewer if memory is short. */
static size_t batch_room(struct worker *worker, size_t count)
{
    if (count > worker->batch_capacity) {
        struct duet_task **batch = realloc(worker->batch, 2 * count * sizeof *batch);
        if (batch) {
            worker->batch = batch;
            worker->batch_capacity = 2 * count;
        }
    }
    return worker->batch_capacity;
}

/*
 * A task is ready at the latest of the dates of its submission and of all that it waited for: on
 * threads, who is last to release it may have been the first to look at the clock.
 */
static void ready_since(struct duet_task *task, double now)
{
    /* looked at first: what the others have written is known then */
    bool alone = atomic_load_explicit(&task->pending, memory_order_acquire) <= 1;
    double known = atomic_load_explicit(&task->ready_s, memory_order_relaxed);
    if (alone && known < now) {
        atomic_store_explicit(&task->ready_s, now, memory_order_relaxed);
        return;
    }
    while (known < now &&
           !atomic_compare_exchange_weak_explicit(&task->ready_s, &known, now, memory_order_relaxed,
                                                  memory_order_relaxed))
        ;
}

/*
 * Acquisitions by the application go ahead at once, what nobody can run is put aside to end, and
 * what commutes with others may have to wait for them.
 */
static bool set_aside(struct duet_view *view, struct duet_task *task)
{
    if (!task->klass) {
        duet__acquire_ready(view, task);
        return true;
    }
    if (!doomed(view->core, task->mask))
        return task->modes && !duet__hold(task);
    task->next = view->over;
    view->over = task;
    return true;
}

/* Gives one ready task to the policy. */
static inline void push(struct duet_view *view, struct duet_task *task)
{
    if (!set_aside(view, task))
        push_batch(view, &task, 1);
}

/* The same of a task that was in other hands, and is ready only now. */
void duet__push(struct duet_view *view, struct duet_task *task)
{
    ready_since(task, view->now);
    push(view, task);
}

/* One thing less that a task waits for, which is no access. No lock held. */
void duet__released(struct duet_view *view, struct duet_task *task)
{
    ready_since(task, view->now);
    if (count_down(&task->pending, 1))
        push(view, task);
}

/* Gives ready tasks to the policy, in one batch. */
static inline void push_ready(struct duet_view *view, struct ready *ready)
{
    enum { SMALL = 32 };
    struct duet_task *small[SMALL], **batch = small;
    size_t room = SMALL, count = 0;
    if (ready->count > SMALL && view->self) {
        size_t larger = batch_room(view->self, ready->count);
        if (larger > SMALL) {
            batch = view->self->batch;
            room = larger;
        }
    }
    struct duet_task *task = ready->first;
    while (task) {
        struct duet_task *next = task->next;
        if (!set_aside(view, task)) {
            batch[count++] = task;
            if (count == room) {
                push_batch(view, batch, count);
                count = 0;
            }
        }
        task = next;
    }
    push_batch(view, batch, count);
}

/* ------------------------------------------------------------------------------------------- */
/* Linking                                                                                      */

static void append(struct duet_handle *handle, struct access *access)
{
    access->next = NULL;
    if (handle->tail)
        handle->tail->next = access;
    else
        handle->head = access;
    handle->tail = access;
}

/* Enters an access where what is granted is more than reading or writing. Handle lock held. */
RARE static bool enter_special(struct duet_view *view, struct duet_handle *handle,
                               struct access *access)
{
    if (duet__reduction_enters(handle, access_task(access)))
        return true;
    if (!handle->head && handle->active_mode == access->mode &&
        (SHARED_MODES >> (access->mode & 31) & 1)) {
        handle->active++;
        return true;
    }
    append(handle, access);
    if (handle->active_mode == DUET_REDUCE)
        duet__reduction_closes(view, handle);
    return false;
}

/* Enters an access. true: granted at once. Handle lock held. */
static HOT bool enter(struct duet_view *view, struct duet_handle *handle, struct access *access)
{
    bool readers = handle->active_mode == DUET_R && access->mode == DUET_R;
    if (!handle->head && (handle->active == 0 || readers)) {
        handle->active++;
        handle->active_mode = access->mode;
        return true;
    }
    if (handle->active_mode > DUET_RW)
        return enter_special(view, handle, access);
    append(handle, access);
    return false;
}

/*
 * Does it write, in turn? What commutes or reduces counts for the critical path as what reads does;
 * `special`: the task has such accesses.
 */
static HOT bool is_ordered(const struct access *access, bool special)
{
    if (special && (access->mode & (ACCESS_COMMUTES | ACCESS_REDUCES)))
        return false;
    return access->mode & DUET_W;
}

/* Longest chain of expected times that ends with this access's predecessors. Handle lock held. */
static HOT double path_before(const struct duet_handle *handle, const struct access *access,
                              bool special)
{
    double path = handle->write_path_s;
    if (is_ordered(access, special) && handle->read_path_s > path)
        path = handle->read_path_s;
    return path;
}

static HOT void path_after(struct duet_handle *handle, const struct access *access, double path,
                           bool special)
{
    if (is_ordered(access, special)) {
        handle->write_path_s = path;
        handle->read_path_s = path;
    } else if (path > handle->read_path_s) {
        handle->read_path_s = path;
    }
}

RARE static void unlock_all(struct duet_task *task)
{
    for (unsigned i = 0; i < task->access_count; i++)
        if (task->accesses[i].mode)
            spin_unlock(&task->accesses[i].handle->lock);
}

static int enter_cut(struct duet_view *view, struct duet_task *task, double *path);

/*
 * Locks every handle of the task, in order of address, so that tasks submitted by several threads
 * meet in the same order on all handles that they share. *path: the longest one to what it comes
 * after without data, and then to its own end. `in_turn`: it is known that nothing has to come
 * before the task because of data that is cut. `special`: some accesses may be more than reading or
 * writing. Returns how many accesses are granted.
 */
static HOT int enter_all(struct duet_view *view, struct duet_task *task, double seconds,
                         bool in_turn, bool special, double *path_out)
{
    int granted = 0;
    double path = *path_out;
    struct access *accesses = task->accesses;
    const unsigned count = task->access_count;
    for (unsigned i = 0; i < count; i++) {
        struct access *access = &accesses[accesses[i].order];
        if (!access->mode)
            continue;
        spin_lock(&access->handle->lock);
        double before = path_before(access->handle, access, special);
        path = before > path ? before : path;
    }
    /* looked at now: who cuts a handle later, whose lock is held, comes after this task */
    if (!in_turn && atomic_load_explicit(&view->core->cut, memory_order_relaxed) &&
        duet__is_cut(task)) {
        unlock_all(task);
        return enter_cut(view, task, path_out);
    }
    path += seconds;
    if (view->core->entered)
        duet__entered_add(view->core, task);
    for (unsigned i = 0; i < count; i++) {
        if (!accesses[i].mode)
            continue;
        path_after(accesses[i].handle, &accesses[i], path, special);
        granted += enter(view, accesses[i].handle, &accesses[i]);
        spin_unlock(&accesses[i].handle->lock);
    }
    *path_out = path;
    return granted;
}

/* The longest path and the first date so far; a lock only where one of them changes. */
static inline void count_submission(struct duet_runtime *core, double path, double now)
{
    if (path <= atomic_load_explicit(&core->critical_path_s, memory_order_relaxed) &&
        now >= atomic_load_explicit(&core->first_submit_s, memory_order_relaxed))
        return;
    spin_lock(&core->submit_lock);
    if (path > atomic_load_explicit(&core->critical_path_s, memory_order_relaxed))
        atomic_store_explicit(&core->critical_path_s, path, memory_order_relaxed);
    if (now < atomic_load_explicit(&core->first_submit_s, memory_order_relaxed))
        atomic_store_explicit(&core->first_submit_s, now, memory_order_relaxed);
    spin_unlock(&core->submit_lock);
}

/* What it takes at least; an acquisition takes nothing. */
static double best_seconds(const struct duet_task *task)
{
    return task->klass ? atomic_load_explicit(&task->klass->best_s, memory_order_relaxed) : 0;
}

/* Enters a task without accesses, which is ready at once and will not go to the policy. */
void duet__link_alone(struct duet_runtime *core, struct duet_task *task, double now)
{
    task->submit_s = now;
    atomic_store_explicit(&task->ready_s, now, memory_order_relaxed);
    atomic_store_explicit(&task->pending, 0, memory_order_relaxed);
    count_submission(core, best_seconds(task), now);
}

/* The same where it is known that it is this task's turn. parts_lock is held. */
RARE static int enter_in_turn(struct duet_view *view, struct duet_task *task, double seconds,
                              double *path)
{
    return enter_all(view, task, seconds, true, true, path);
}

/* The same of a task on cut data, after what has to come before it. */
RARE static int enter_cut(struct duet_view *view, struct duet_task *task, double *path)
{
    spin_lock(&view->core->parts_lock);
    duet__take_turns(view, task);
    int granted = enter_in_turn(view, task, best_seconds(task), path);
    spin_unlock(&view->core->parts_lock);
    return granted;
}

/*
 * The accesses of a task that may come after others without data, or be referred to, or of which
 * some are more than reading or writing.
 */
RARE static int enter_rare(struct duet_view *view, struct duet_task *task, double *path)
{
    const struct duet_task *kernel = view->busy ? duet__running_kernel(view->self) : NULL;
    if (kernel)
        duet__submitted_again(kernel, task);
    int granted = task->extra ? duet__edges_enter(task, path) : 0;
    granted += enter_all(view, task, best_seconds(task), false, true, path);
    if (task->extra && task->extra->ref)
        duet__ref_entered(task->extra->ref, task, *path);
    return granted;
}

/* Enters a predecessor that makes it the turn of others. parts_lock is held. */
RARE void duet__link_turn(struct duet_view *view, struct duet_task *turn)
{
    double path = 0;
    turn->submit_s = view->now;
    atomic_store_explicit(&turn->ready_s, view->now, memory_order_relaxed);
    int granted = enter_in_turn(view, turn, 0, &path);
    if (count_down(&turn->pending, granted + 1))
        duet__acquire_ready(view, turn);
}

/* duet__link as a part of a call. */
HOT void duet__link_in(struct duet_view *view, struct duet_task *task)
{
    task->submit_s = view->now;
    atomic_store_explicit(&task->ready_s, view->now, memory_order_relaxed);
    double path = 0;
    int granted;
    if (task->extra || task->modes)
        granted = enter_rare(view, task, &path);
    else
        granted = enter_all(view, task, best_seconds(task), false, false, &path);
    if (task->klass) /* an acquisition is none: the application may have much to prepare */
        count_submission(view->core, path, view->now);
    /* from here on another thread may run the task, if this does not make it ready itself */
    if (count_down(&task->pending, granted + 1))
        push(view, task);
}

HOT void duet__link(struct duet_runtime *core, struct duet_task *task, int by, double now,
                    struct duet__ops *ops)
{
    struct duet_view view;
    view_begin(&view, core, now, by, ops);
    view.busy = by >= 0;
    if (task->state == TASK_RELEASED)
        duet__acquire_end(&view, task);
    else
        duet__link_in(&view, task);
    duet__view_flush(&view);
}

/* ------------------------------------------------------------------------------------------- */
/* Finishing                                                                                    */

static HOT void grant(struct duet_handle *handle, struct access *access, struct ready *ready)
{
    handle->active++;
    handle->active_mode = access->mode;
    struct duet_task *task = access_task(access);
    ready_since(task, ready->now);
    if (count_down(&task->pending, 1))
        ready_add(ready, task);
}

/* Grants the next access; `mode`, if not 0: likewise those behind it that have the same one. */
static HOT void grant_next(struct duet_handle *handle, uint8_t mode, struct ready *ready)
{
    struct access *access = handle->head;
    while (access) {
        handle->head = access->next;
        if (!handle->head)
            handle->tail = NULL;
        grant(handle, access, ready);
        access = mode && handle->head && handle->head->mode == mode ? handle->head : NULL;
    }
}

/* The same where what was granted, or comes next, is more than reading or writing. */
RARE static void release_special(struct duet_view *view, struct duet_handle *handle,
                                 struct ready *ready)
{
    if (handle->active > 0) {
        if (handle->active_mode == DUET_REDUCE)
            duet__reduction_closes(view, handle);
        return;
    }
    const uint8_t mode = handle->head ? handle->head->mode : 0;
    grant_next(handle, SHARED_MODES >> (mode & 31) & 1 ? mode : 0, ready);
}

/* One granted access is finished: the next one, or the next run of those that share, is granted. */
static HOT void release(struct duet_view *view, struct duet_handle *handle, struct ready *ready)
{
    const struct access *next = handle->head;
    if (--handle->active > 0) {
        if (handle->active_mode > DUET_RW)
            release_special(view, handle, ready);
    } else if (next) {
        if (next->mode == DUET_R)
            grant_next(handle, DUET_R, ready);
        else if (next->mode <= DUET_RW)
            grant_next(handle, 0, ready);
        else
            release_special(view, handle, ready);
    }
}

/* The tasks that wait for the handle try to take it, one after another until one has. */
static void hand_over(struct duet_view *view, struct duet_handle *handle, struct ready *ready)
{
    struct duet_task *task = duet__next_holder(handle, true);
    while (task) {
        ready_since(task, view->now);
        if (duet__hold(task))
            ready_add(ready, task);
        task = duet__next_holder(handle, false);
    }
}

/* What comes last of an access that is more than reading or writing. No lock held. */
static void end_special(struct duet_view *view, const struct duet_task *task, struct access *access,
                        bool written, struct ready *ready)
{
    struct duet_handle *handle = access->handle;
    if (access->mode & ACCESS_SCRATCH) {
        duet__handle_remove(view->core, handle);
        return;
    }
    if ((access->mode & ACCESS_COMMUTES) && (task->modes & TASK_HOLDS))
        hand_over(view, handle, ready);
    if (access->mode & ACCESS_REDUCES) {
        duet__contribution_return(view, access, written);
        handle = access->handle;
    }
    spin_lock(&handle->lock);
    if ((access->mode & ACCESS_REDUCES) && !written)
        duet__poison(view->core, handle); /* what it was to add is missing */
    release(view, handle, ready);
    spin_unlock(&handle->lock);
}

/* How a task's accesses end. */
struct ending {
    unsigned node;
    bool pinned, written;
    bool trouble; /* something has failed: see failure.c */
};

/* Ends one access; `rare`: more may be to do than of most. */
static HOT void end_access(struct duet_view *view, const struct duet_task *task,
                           struct access *access, const struct ending *ending, struct ready *ready,
                           bool rare)
{
    const unsigned node = ending->node;
    struct duet_runtime *core = view->core;
    struct duet_handle *handle = access->handle;
    struct stale stale;
    bool writes = ending->written && (access->mode & DUET_W);
    spin_lock(&handle->lock);
    if (writes && invalidate_others(core, handle, node, &stale)) {
        /* before the access is released: afterwards the handle may be unregistered */
        spin_unlock(&handle->lock);
        tell_stale(core, handle, &stale);
        spin_lock(&handle->lock);
    }
    if (rare && ending->trouble)
        duet__settle_poison(core, access, ending->written);
    if (ending->pinned)
        duet__replica_unpin(view, handle->replicas[node]);
    if (rare && access->mode > DUET_RW) {
        spin_unlock(&handle->lock);
        end_special(view, task, access, ending->written, ready);
        return;
    }
    release(view, handle, ready);
    spin_unlock(&handle->lock);
}

/* Where something has failed, or some accesses are more than reading or writing. */
RARE static void end_rare(struct duet_view *view, struct duet_task *task,
                          const struct ending *ending, struct ready *ready)
{
    for (unsigned i = 0; i < task->access_count; i++)
        if (task->accesses[i].mode)
            end_access(view, task, &task->accesses[i], ending, ready, true);
}

/*
 * Ends a task's accesses: what it wrote is valid on `node` alone (if `written`), its replicas there
 * are unpinned (if `pinned`), its successors become ready and go to the policy. The caller frees
 * the task and counts it.
 */
void duet__graph_finish(struct duet_view *view, struct duet_task *task, unsigned node, bool pinned,
                        bool written)
{
    const unsigned count = task->access_count;
    struct ready ready = {.now = view->now};
    const bool trouble =
        !written || atomic_load_explicit(&view->core->trouble, memory_order_relaxed);
    const struct ending ending = {node, pinned, written, trouble};
    if (trouble || task->modes) {
        end_rare(view, task, &ending, &ready);
    } else {
        for (unsigned i = 0; i < count; i++)
            if (task->accesses[i].mode)
                end_access(view, task, &task->accesses[i], &ending, &ready, false);
    }
    if (ready.count == 1)
        push(view, ready.first);
    else if (ready.count)
        push_ready(view, &ready);
}

/* One access less to a handle, which is no task's: those that wait for that go on. No lock held. */
RARE void duet__graph_release(struct duet_view *view, struct duet_handle *handle)
{
    struct ready ready = {.now = view->now};
    spin_lock(&handle->lock);
    release(view, handle, &ready);
    spin_unlock(&handle->lock);
    push_ready(view, &ready);
}

/*
 * The last that happens to a task: frees it and counts it, after duet__graph_finish. So with the
 * task that it was the last child of, and so on, in a loop because expansions may be nested deeply.
 */
HOT void duet__task_end(struct duet_view *view, struct duet_task *task)
{
    while (task) {
        struct duet_expansion *parent = task->parent;
        if (task->extra)
            duet__extra_end(view, task);
        duet__task_free(view->core, view->by, task);
        duet__count_finished(view, 1);
        task = parent ? duet__child_finished(view, parent) : NULL;
    }
}

/*
 * What was put off until no lock was held: the end of an acquisition that nobody waits for (an
 * expansion's or a turn's, whose data is back in the host's memory), or of a task that nobody is
 * left to run.
 */
void duet__task_over(struct duet_view *view, struct duet_task *task)
{
    if (!task->klass) {
        task->over(view, task);
        return;
    }
    struct task_says says;
    duet__fail_task(view->core, DUET_ELOST, "%s: every worker that could run it is lost",
                    duet__task_says(view->core, task, &says));
    duet__count_failure(view->core, task, DUET_ELOST, false);
    duet__graph_finish(view, task, DUET_HOST, false, false);
    duet__task_end(view, task);
}
