/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hints: acquisitions that nobody waits for, which end when the data has arrived at its node.
 */
#include "core/internal.h"

/*
 * Ends duet_wont_use: the data is in the host's memory, and its places on devices are the first to
 * be used again.
 */
static void wont_use_end(struct duet_view *view, struct duet_task *hint)
{
    struct duet_runtime *core = view->core;
    struct duet_handle *handle = hint->accesses[0].handle;
    for (unsigned n = 1; n < core->machine.node_count; n++) {
        spin_lock(&handle->lock);
        struct replica *replica = handle->replicas[n];
        spin_unlock(&handle->lock);
        if (replica)
            duet__cache_stale(core, replica);
    }
    duet__acquire_end(view, hint);
}

static void prefetch_end(struct duet_view *view, struct duet_task *hint)
{
    duet__acquire_end(view, hint);
}

/*
 * Ends duet_invalidate: the contents of the host's memory count as the data; it stays invalid if it
 * was.
 */
static void invalidate_end(struct duet_view *view, struct duet_task *hint)
{
    hint->accesses[0].mode |= DUET_R;
    duet__acquire_end(view, hint);
}

/*
 * True if the data is valid or being copied anywhere; otherwise a hint does nothing. Handle lock
 * held.
 */
static bool anywhere(const struct duet_runtime *core, const struct duet_handle *handle)
{
    uint64_t bits = 0;
    for (unsigned word = 0; word < core->node_words; word++)
        bits |= atomic_load_explicit(&handle->valid[word], memory_order_relaxed) |
                atomic_load_explicit(&handle->coming[word], memory_order_relaxed);
    return bits != 0;
}

bool duet__hint_is_vain(const struct duet_runtime *core, struct duet_task *task)
{
    const uint8_t mode = task->access_count == 1 ? task->accesses[0].mode : 0;
    bool last = (mode & ACCESS_DROPS) && (mode & DUET_R); /* keeps any contents */
    if (!last && task->over != wont_use_end && task->over != prefetch_end)
        return false;
    struct duet_handle *handle = task->accesses[0].handle;
    spin_lock(&handle->lock);
    bool vain = !anywhere(core, handle);
    spin_unlock(&handle->lock);
    return vain;
}

static int submit_hint(struct duet_runtime *core, struct duet_handle *handle, enum duet_mode mode,
                       unsigned node, void (*over)(struct duet_view *view, struct duet_task *hint))
{
    if (node >= core->machine.node_count)
        return duet__refuse(core, DUET_EINVAL,
                            "a hint needs one of the %u memory nodes of machine %s",
                            core->machine.node_count, core->machine.name);
    if (duet__caller(core) != DUET_OUTSIDE || duet__failed(core))
        return DUET_OK;
    struct duet_task *hint = duet__acquisition_new(core, 1);
    if (!hint)
        return duet__refuse(core, DUET_ENOMEM, "no memory left for a hint");
    hint->accesses[0].handle = handle;
    hint->accesses[0].mode = (uint8_t)mode;
    hint->worker = node;
    hint->over = over;
    core->enter(core->enter_for, hint);
    return DUET_OK;
}

/*
 * Returns a hint with one more access to data that is granted to the task already; NULL: no memory.
 */
static struct duet_task *hint_ahead(struct duet_view *view, const struct access *access)
{
    struct duet_task *hint = duet__acquisition_new(view->core, 1);
    if (!hint)
        return NULL;
    hint->accesses[0].handle = access->handle;
    hint->accesses[0].mode = DUET_R;
    hint->over = prefetch_end;
    hint->state = TASK_AHEAD;
    spin_lock(&access->handle->lock);
    access->handle->active++;
    spin_unlock(&access->handle->lock);
    return hint;
}

/* Fetches the data of an access to a node, by a hint that ends with the copy. */
static void prefetch_access(struct duet_view *view, const struct access *access, unsigned node)
{
    struct duet_task *hint = hint_ahead(view, access);
    if (!hint)
        return;
    if (!duet__hint_is_vain(view->core, hint))
        duet__cache_prefetch(view, hint, node, false);
    duet__arrived(view, hint, 1);
}

/*
 * True for a block of an expansion, or a part of one, which is gone once the children have ended.
 */
static bool is_block(const struct duet_handle *handle)
{
    while (handle->of && !handle->of->expansion)
        handle = handle->of->whole;
    return handle->of != NULL;
}

void duet_view_prefetch(struct duet_view *view, const struct duet_task *task, unsigned node)
{
    const bool device = node != DUET_HOST && node < view->core->machine.node_count;
    for (unsigned i = 0; device && i < task->access_count; i++) {
        uint8_t mode = task->accesses[i].mode;
        if ((mode == DUET_R || mode == DUET_RW) && !duet_view_valid(view, node, task, i) &&
            !is_block(task->accesses[i].handle))
            prefetch_access(view, &task->accesses[i], node);
    }
}

/*
 * Lets hints wait for copies to the node in place of the task, so that nobody writes data that is
 * still being read. Returns false if there is no memory: nothing has changed.
 */
bool duet__leave_behind(struct duet_view *view, struct duet_task *task, unsigned node)
{
    struct duet_task *first = NULL, **end = &first;
    bool all = true;
    for (unsigned i = 0; i < task->access_count && all; i++) {
        if (!task->accesses[i].mode)
            continue;
        *end = hint_ahead(view, &task->accesses[i]);
        all = *end != NULL;
        end = all ? &(*end)->next : end;
    }
    for (unsigned i = 0; first; i++) {
        struct access *access = &task->accesses[i];
        struct duet_task *hint = first;
        struct duet_handle *handle = access->handle;
        if (!access->mode)
            continue;
        first = hint->next;
        spin_lock(&handle->lock);
        bool waited = all && (duet__await_for(access, hint->accesses, handle->replicas[node]) ||
                              duet__await_for(access, hint->accesses, &handle->host));
        spin_unlock(&handle->lock);
        if (waited)
            (void)count_down(&task->missing, 1);
        duet__arrived(view, hint, 1);
    }
    return all;
}

int duet__hint_here(struct duet_runtime *core, struct duet_handle *handle, enum duet__hint kind,
                    unsigned node)
{
    if (kind == DUET__INVALIDATE)
        return submit_hint(core, handle, DUET_W, DUET_HOST, invalidate_end);
    return submit_hint(core, handle, DUET_R, node,
                       kind == DUET__PREFETCH ? prefetch_end : wont_use_end);
}

static int give_hint(struct duet_runtime *core, struct duet_handle *handle, enum duet__hint kind,
                     unsigned node)
{
    int error = duet__not_forked(core, "a hint");
    if (!error)
        error = duet__own_data(core, handle, "a hint");
    if (error)
        return error;
    const struct duet__gate *gate = duet__gate_of(core);
    return gate ? gate->hint(core->gate_arg, handle, kind, node)
                : duet__hint_here(core, handle, kind, node);
}

int duet_prefetch(struct duet_runtime *runtime, struct duet_handle *handle, unsigned node)
{
    return give_hint(runtime, handle, DUET__PREFETCH, node);
}

int duet_wont_use(struct duet_runtime *runtime, struct duet_handle *handle)
{
    return give_hint(runtime, handle, DUET__WONT_USE, DUET_HOST);
}

int duet_invalidate(struct duet_runtime *runtime, struct duet_handle *handle)
{
    return give_hint(runtime, handle, DUET__INVALIDATE, DUET_HOST);
}
