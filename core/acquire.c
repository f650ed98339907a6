/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acquisitions by a part of the library, for which nobody waits and which a call ends: data that
 * goes to another process, or comes from there, lies in the host's memory meanwhile. Also for data
 * whose contents come and go with them: not here yet, or not needed any more.
 */
#include "core/internal.h"

struct duet__acquisition { /* in place of its task's arguments */
    struct duet_runtime *core;
    duet__granted_fn granted;
    void *arg;
    double end_s;
    int status; /* 0: data that was to be written is valid */
    /* Return of `granted`, and duet__acquisition_end: the second of them ends the task. */
    _Atomic(unsigned) halves;
};

_Static_assert(sizeof(struct duet__acquisition) <= DUET_ARGS_INLINE, "it has no other place");

static struct duet__acquisition *acquisition_of(struct duet_task *task)
{
    return (struct duet__acquisition *)(void *)task->args;
}

static struct duet_task *task_of(struct duet__acquisition *acquisition)
{
    return (struct duet_task *)(void *)((char *)acquisition - offsetof(struct duet_task, args));
}

/* Ends the task at the date of the acquisition's end, in a call that may have begun before. */
static void acquisition_finish(struct duet_view *view, struct duet_task *task)
{
    const struct duet__acquisition *acquisition = acquisition_of(task);
    const double before = view->now;
    if (acquisition->end_s > view->now)
        view->now = acquisition->end_s;
    duet__graph_finish(view, task, DUET_HOST, false, !acquisition->status);
    duet__count_internal(view, 1);
    duet__task_end(view, task);
    atomic_fetch_sub(&view->core->awaited, 1); /* last, when the end has become visible */
    view->now = before;
}

/* Returns true for the second of the two halves; writes before the first one are then visible. */
static bool is_second_half(struct duet__acquisition *acquisition)
{
    return atomic_fetch_add(&acquisition->halves, 1) == 1;
}

static void acquisition_granted(struct duet_view *view, struct duet_task *task)
{
    struct duet__acquisition *acquisition = acquisition_of(task);
    if (hopeless(view->core, task))
        acquisition->status = duet__cancelled_by(view->core);
    atomic_fetch_add(&view->core->awaited, 1);
    duet__in_done_begin();
    acquisition->granted(acquisition->arg, acquisition, acquisition->status);
    duet__in_done_end();
    if (is_second_half(acquisition))
        acquisition_finish(view, task);
}

int duet__acquire_submit(struct duet_runtime *core, struct duet_handle *handle, enum duet_mode mode,
                         int priority, duet__granted_fn granted_fn, void *arg)
{
    if (!handle || (mode != DUET_R && mode != DUET_W && mode != DUET_RW) || core->choice)
        return duet__refuse(core, DUET_EINVAL, "an acquisition needs %s",
                            core->choice ? "a policy that tries no others (auto does)"
                                         : "a handle and a mode of DUET_R, DUET_W or DUET_RW");
    struct duet_task *task = duet__acquisition_new(core, 1);
    if (!task)
        return duet__refuse(core, DUET_ENOMEM, "no memory left for an acquisition");
    *acquisition_of(task) =
        (struct duet__acquisition){.core = core, .granted = granted_fn, .arg = arg};
    task->accesses[0].handle = handle;
    task->accesses[0].mode = (uint8_t)mode;
    task->priority = priority;
    task->over = acquisition_granted;
    atomic_store_explicit(&core->lends, true, memory_order_relaxed);
    task->id = atomic_fetch_add_explicit(&core->submitted, 1, memory_order_relaxed) + 1;
    core->enter(core->enter_for, task);
    return DUET_OK;
}

void duet__acquisition_end(struct duet__acquisition *acquisition, double now, int status)
{
    struct duet__ops ops = {0};
    struct duet_view view;
    acquisition->end_s = now;
    if (status)
        acquisition->status = status;
    if (!is_second_half(acquisition))
        return;
    view_begin(&view, acquisition->core, now, DUET_SUBMITTER, &ops);
    acquisition_finish(&view, task_of(acquisition));
    duet__view_flush(&view);
}

bool duet__task_lends(const struct duet_runtime *core, const struct duet_task *task)
{
    /* not by the address of a function, of which a module has another copy */
    const struct duet__acquisition *made = (const void *)task->args;
    return (!task->klass && task->over && made->core == core) ||
           (task->state == TASK_RELEASED &&
            atomic_load_explicit(&core->lends, memory_order_relaxed));
}

bool duet__awaits(const struct duet_runtime *core)
{
    return atomic_load(&core->awaited) > 0;
}

/* ------------------------------------------------------------------------------------------- */
/* Contents that are not in this process */

void duet__handle_elsewhere(struct duet_runtime *core, struct duet_handle *handle)
{
    if (handle->temporary)
        return; /* temporary data has no contents yet */
    handle->elsewhere = true;
    if (!handle->data && !duet__areas_placed(handle)) {
        spin_lock(&core->registry_lock);
        handle->entered = false; /* wherever it is placed, no other data is */
        spin_unlock(&core->registry_lock);
        duet__be_placed(handle);
    }
    bit_clear(handle->valid, DUET_HOST);
}

/*
 * Drops all replicas: earlier tasks have ended, nothing of the handle is in flight, nobody else may
 * use it.
 */
static void drop_end(struct duet_view *view, struct duet_task *task)
{
    struct duet_runtime *core = view->core;
    struct duet_handle *handle = task->accesses[0].handle;
    spin_lock(&handle->lock);
    for (unsigned word = 0; word < core->node_words; word++)
        atomic_store_explicit(&handle->valid[word], 0, memory_order_relaxed);
    spin_unlock(&handle->lock);
    for (unsigned n = 1; n < core->machine.node_count; n++)
        if (handle->replicas[n])
            duet__cache_stale(core, handle->replicas[n]);
    if (handle->temporary && handle->data) {
        duet__handle_forget(core, handle);
        duet__host_leave(core, handle);
    }
    task->accesses[0].mode = DUET_R; /* it leaves nothing valid, nor invalid by failure */
    duet__acquire_end(view, task);
}

int duet__handle_drop(struct duet_runtime *core, struct duet_handle *handle)
{
    struct duet_task *task = duet__acquisition_new(core, 1);
    if (!task)
        return duet__refuse(core, DUET_ENOMEM, "no memory left to drop data");
    task->accesses[0].handle = handle;
    task->accesses[0].mode = DUET_W | ACCESS_DROPS;
    task->over = drop_end;
    if (!handle->temporary) /* workers may ask for contents of others */
        handle->elsewhere = true;
    core->enter(core->enter_for, task);
    return DUET_OK;
}

uint64_t duet__handle_bytes(const struct duet_handle *handle)
{
    return handle->bytes;
}

bool duet__handle_temporary(const struct duet_handle *handle)
{
    return handle->temporary && !handle->elsewhere;
}
