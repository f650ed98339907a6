/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The graph: dependencies inferred from accesses in order of submission. Each handle keeps the
 * chain of accesses that are not granted yet. Either one writing access or a run of reading ones is
 * granted at a time; when all of them are finished the next is granted. So an access costs constant
 * work and 24 bytes whatever the number of successors, and there are no edges to allocate.
 */
#include "core/stale.h"

/* Tasks that became ready, in order of activation, linked by `next`. */
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

/*
 * Makes room for `count` tasks in the worker's batch. Returns its capacity: less if there is no
 * memory.
 */
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
 * Sets the date of readiness to the latest of a task's submission and of the ends of its
 * predecessors: on threads, the last to release it may have been the first to read the clock.
 */
static void ready_since(struct duet_task *task, double now)
{
    /* read first: the dates written by other threads are visible then */
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
 * Takes a ready task that does not go to the policy now, and returns true: an acquisition goes
 * ahead at once, a task that no worker can run is put aside to end, and one that commutes with
 * others may have to wait for them.
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
static inline void push_one(struct duet_view *view, struct duet_task *task)
{
    if (!set_aside(view, task))
        push_batch(view, &task, 1);
}

/* Makes a task ready, and gives it to the policy. */
void duet__push(struct duet_view *view, struct duet_task *task)
{
    ready_since(task, view->now);
    push_one(view, task);
}

/* Counts the end of a predecessor without common data. No lock held. */
void duet__released(struct duet_view *view, struct duet_task *task)
{
    ready_since(task, view->now);
    if (!count_down(&task->pending, 1))
        return;
    note_released(view, task, DUET_RELEASE_TASK);
    push_one(view, task);
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

static void chain_append(struct duet_handle *handle, struct access *access)
{
    access->next = NULL;
    if (handle->tail)
        handle->tail->next = access;
    else
        handle->head = access;
    handle->tail = access;
}

/*
 * Enters an access to a handle whose granted mode is more than reading or writing. Handle lock
 * held.
 */
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
    chain_append(handle, access);
    if (handle->active_mode == DUET_REDUCE)
        duet__reduction_closes(view, handle);
    return false;
}

/* Enters an access. Returns true if it is granted at once. Handle lock held. */
static HOT bool enter_access(struct duet_view *view, struct duet_handle *handle,
                             struct access *access)
{
    bool readers = handle->active_mode == DUET_R && access->mode == DUET_R;
    if (!handle->head && (handle->active == 0 || readers)) {
        handle->active++;
        handle->active_mode = access->mode;
        if (!(access->mode & (DUET_R | ACCESS_REDUCES)))
            duet__data_dies(handle);
        return true;
    }
    if (handle->active_mode > DUET_RW)
        return enter_special(view, handle, access);
    chain_append(handle, access);
    return false;
}

/*
 * True if the access writes in order. Accesses that commute or reduce count for the critical path
 * like reads. `special`: the task has such accesses.
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
 * Enters all accesses of a task, with every handle locked, in order of address, so that tasks
 * submitted by several threads meet in the same order on all handles that they share. *path_out is
 * the longest path to the task's explicit predecessors, and then to its own end. `in_turn`: cut
 * data needs no turn before this task. `special`: some accesses may be more than reading or
 * writing. Returns the number of accesses granted.
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
    /* read now: a thread that cuts a handle later, whose lock is held, comes after this task */
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
        granted += enter_access(view, accesses[i].handle, &accesses[i]);
        spin_unlock(&accesses[i].handle->lock);
    }
    *path_out = path;
    return granted;
}

/*
 * Records the longest path and the first date of submissions; takes a lock only where one of them
 * changes.
 */
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

/* Returns the shortest time of a task; 0 for an acquisition. */
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

/* Enters the accesses of a task whose turn it is. parts_lock is held. */
RARE static int enter_in_turn(struct duet_view *view, struct duet_task *task, double seconds,
                              double *path)
{
    return enter_all(view, task, seconds, true, true, path);
}

/* Enters the accesses of a task on cut data, after the turns that it needs. */
RARE static int enter_cut(struct duet_view *view, struct duet_task *task, double *path)
{
    spin_lock(&view->core->parts_lock);
    duet__take_turns(view, task);
    int granted = enter_in_turn(view, task, best_seconds(task), path);
    spin_unlock(&view->core->parts_lock);
    return granted;
}

/*
 * Enters the accesses of a task that may have explicit predecessors, a reference, or accesses that
 * are more than reading or writing.
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

/* Enters a turn: an acquisition that puts a view in force. parts_lock is held. */
RARE void duet__link_turn(struct duet_view *view, struct duet_task *turn)
{
    double path = 0;
    turn->submit_s = view->now;
    atomic_store_explicit(&turn->ready_s, view->now, memory_order_relaxed);
    int granted = enter_in_turn(view, turn, 0, &path);
    if (count_down(&turn->pending, granted + 1))
        duet__acquire_ready(view, turn);
}

/* Enters a task. Returns true if it is ready: the caller gives it to the policy. */
static HOT bool enter_task(struct duet_view *view, struct duet_task *task)
{
    task->submit_s = view->now;
    atomic_store_explicit(&task->ready_s, view->now, memory_order_relaxed);
    double path = 0;
    int granted;
    if (task->extra || task->modes)
        granted = enter_rare(view, task, &path);
    else
        granted = enter_all(view, task, best_seconds(task), false, false, &path);
    if (task->klass) /* acquisitions do not count: the application may have much to prepare */
        count_submission(view->core, path, view->now);
    /* from here on another thread may run the task, unless this call makes it ready */
    return count_down(&task->pending, granted + 1);
}

/* Enters a task, inside of another call: see duet__link. */
HOT void duet__link_in(struct duet_view *view, struct duet_task *task)
{
    if (enter_task(view, task))
        push_one(view, task);
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

void duet__link_all(struct duet_runtime *core, struct duet_task *first, double now,
                    struct duet__ops *ops)
{
    struct duet_view view;
    struct ready ready = {.now = now};
    view_begin(&view, core, now, DUET_SUBMITTER, ops);
    while (first) {
        struct duet_task *task = first;
        first = task->next; /* read now: a task that is not ready may run and be freed */
        if (enter_task(&view, task))
            ready_add(&ready, task);
    }
    push_ready(&view, &ready);
    duet__view_flush(&view);
}

/* ------------------------------------------------------------------------------------------- */
/* Finishing                                                                                    */

static HOT void access_grant(struct duet_handle *handle, struct access *access, struct ready *ready)
{
    handle->active++;
    handle->active_mode = access->mode;
    if (!(access->mode & (DUET_R | ACCESS_REDUCES)))
        duet__data_dies(handle);
    struct duet_task *task = access_task(access);
    ready_since(task, ready->now);
    if (count_down(&task->pending, 1))
        ready_add(ready, task);
}

/* Grants the next access; `mode` not 0: also the following ones with this mode. */
static HOT void grant_next(struct duet_handle *handle, uint8_t mode, struct ready *ready)
{
    struct access *access = handle->head;
    while (access) {
        handle->head = access->next;
        if (!handle->head)
            handle->tail = NULL;
        access_grant(handle, access, ready);
        access = mode && handle->head && handle->head->mode == mode ? handle->head : NULL;
    }
}

/* Releases an access where the granted mode, or the next one, is more than reading or writing. */
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

/* Ends one granted access: the next one, or the next run of those that share, is granted. */
static HOT void access_release(struct duet_view *view, struct duet_handle *handle,
                               struct ready *ready)
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

/* Lets tasks that wait to hold the handle try, one after another, until one has it. */
static void handle_hand_over(struct duet_view *view, struct duet_handle *handle,
                             struct ready *ready)
{
    struct duet_task *task = duet__next_holder(handle, true);
    while (task) {
        ready_since(task, view->now);
        if (duet__hold(task))
            ready_add(ready, task);
        task = duet__next_holder(handle, false);
    }
}

/* Ends an access that is more than reading or writing. No lock held. */
static void end_special(struct duet_view *view, const struct duet_task *task, struct access *access,
                        bool written, struct ready *ready)
{
    struct duet_handle *handle = access->handle;
    if (access->mode & ACCESS_SCRATCH) {
        duet__handle_remove(view->core, handle);
        return;
    }
    if ((access->mode & ACCESS_COMMUTES) && (task->modes & TASK_HOLDS))
        handle_hand_over(view, handle, ready);
    if (access->mode & ACCESS_REDUCES) {
        duet__contribution_return(view, access, written);
        handle = access->handle;
    }
    spin_lock(&handle->lock);
    if ((access->mode & ACCESS_REDUCES) && !written)
        duet__poison(view->core, handle); /* its contribution is missing */
    access_release(view, handle, ready);
    spin_unlock(&handle->lock);
}

/* Parameters of how a task's accesses end. */
struct ending {
    unsigned node;
    bool pinned, written;
    bool trouble; /* something has failed: see failure.c */
};

/* Ends one access; `rare`: after an error, or with modes beyond reading and writing. */
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
    access_release(view, handle, ready);
    spin_unlock(&handle->lock);
}

static void note_ready(struct duet_view *view, const struct ready *ready, uint64_t handle)
{
    for (const struct duet_task *task = ready->first; task; task = task->next)
        duet__note_released(view, task, handle);
}

/*
 * Where something has failed, or what is released is recorded, or some accesses are more than
 * reading or writing.
 */
RARE static void end_rare(struct duet_view *view, struct duet_task *task, struct ending ending,
                          struct ready *ready)
{
    const uint64_t handle = task->access_count ? task->accesses[0].handle->id : 0;
    ending.trouble = !ending.written || in_trouble(view->core);
    for (unsigned i = 0; i < task->access_count; i++)
        if (task->accesses[i].mode)
            end_access(view, task, &task->accesses[i], &ending, ready, true);
    note_ready(view, ready, handle);
}

/*
 * Ends a task's accesses: data that it wrote is valid on `node` alone (if `written`), its replicas
 * there are unpinned (if `pinned`), its successors become ready and go to the policy. The caller
 * frees the task and counts it.
 */
void duet__graph_finish(struct duet_view *view, struct duet_task *task, unsigned node, bool pinned,
                        bool written)
{
    const unsigned count = task->access_count;
    struct ready ready = {.now = view->now};
    const struct ending ending = {node, pinned, written, false};
    if (!written || atomic_load_explicit(&view->core->watch, memory_order_relaxed) || task->modes) {
        end_rare(view, task, ending, &ready);
    } else {
        for (unsigned i = 0; i < count; i++)
            if (task->accesses[i].mode)
                end_access(view, task, &task->accesses[i], &ending, &ready, false);
    }
    if (ready.count == 1)
        push_one(view, ready.first);
    else if (ready.count)
        push_ready(view, &ready);
}

/*
 * Ends one access to a handle that belongs to no task; accesses that wait for it go on. No lock
 * held.
 */
RARE void duet__graph_release(struct duet_view *view, struct duet_handle *handle)
{
    struct ready ready = {.now = view->now};
    spin_lock(&handle->lock);
    access_release(view, handle, &ready);
    spin_unlock(&handle->lock);
    note_ready(view, &ready, 0);
    push_ready(view, &ready);
}

/*
 * Frees a task and counts it, after duet__graph_finish. If it was the last child of a task, that
 * ends, too, and so on, in a loop because expansions may be nested deeply.
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
 * Does what was put off until no lock was held: the end of an acquisition that nobody waits for (an
 * expansion's or a turn's, whose data is back in the host's memory), or of a task that no worker is
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
