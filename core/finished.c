/* SPDX-License-Identifier: Apache-2.0 */
/* Counting the tasks that have finished, and telling those who wait for that. */
#include "core/internal.h"

/*
 * Tasks finished. Each worker counts those that end in its calls, so that no line is written by
 * all. The sum is not of one moment, but it was not less before, and is not more after.
 */
uint64_t duet__finished_tasks(const struct duet_runtime *core)
{
    uint64_t count = atomic_load(&core->finished);
    for (unsigned w = 0; w < core->machine.worker_count; w++)
        count += atomic_load(&core->workers[w].finished);
    return count;
}

/*
 * So many tasks less are unfinished. true: enough for a submission that waits. A counter that all
 * threads write is touched only while one does.
 */
bool duet__add_finished(struct duet_runtime *core, int by, uint64_t count)
{
    if (by >= 0) {
        _Atomic(uint64_t) *own = &core->workers[by].finished;
        uint64_t before = atomic_load_explicit(own, memory_order_relaxed);
        /* who has read this has seen what the tasks did */
        atomic_store_explicit(own, before + count, memory_order_release);
    } else {
        atomic_fetch_add(&core->finished, count);
    }
    return atomic_load_explicit(&core->throttled, memory_order_relaxed) &&
           atomic_fetch_add(&core->ended, count) + count >= atomic_load(&core->open_at);
}

/* Has the worker that calls another task at hand? */
static bool has_more(const struct duet_view *view)
{
    if (view->by < 0)
        return false;
    const struct worker *self = &view->core->workers[view->by];
    return self->taken || duet_list_length(&self->list);
}

/* The same in a call that tells those who wait. */
void duet__count_finished(struct duet_view *view, uint64_t count)
{
    struct duet_runtime *core = view->core;
    if (duet__add_finished(core, view->by, count))
        view->notify = true;
    if (atomic_load_explicit(&core->waits, memory_order_relaxed) && !has_more(view))
        view->ended = true;
}

static bool any_listed(const struct duet_runtime *core)
{
    for (unsigned i = 0; i < core->list_words; i++) {
        for (uint64_t bits = atomic_load(&core->filled[i]); bits; bits &= bits - 1) {
            unsigned number = i * 64 + (unsigned)__builtin_ctzll(bits);
            const struct duet_list *list =
                number < core->machine.worker_count ? &core->workers[number].list : &core->shared;
            if (duet_list_length(list))
                return true;
        }
    }
    return false;
}

/*
 * At the end of a call in which tasks ended: were they the last? The sum over all workers is made
 * only where that can be, when neither this worker nor any list has a task. What this overlooks,
 * since others work meanwhile, the next function sees.
 */
void duet__look_ended(struct duet_view *view)
{
    struct duet_runtime *core = view->core;
    bool more = has_more(view) || (view->by >= 0 && any_listed(core));
    if (!more && unfinished(core) == 0)
        view->notify = true;
}

/*
 * The worker has nothing to do: is what somebody waits for there? Of two workers that ended the
 * last tasks, the second to store its counter here sees the first one's; and of this and a thread
 * that comes to wait, which says so before it makes the sum, one sees the other: all of these are
 * sequentially consistent. Every worker that has ended a task comes here before it rests.
 */
void duet__look_idle(struct duet_view *view, struct worker *worker)
{
    struct duet_runtime *core = view->core;
    atomic_store(&worker->finished, atomic_load_explicit(&worker->finished, memory_order_relaxed));
    bool waits = atomic_load(&core->waits), throttled = atomic_load(&core->throttled);
    if (!waits && !throttled)
        return;
    uint64_t left = unfinished(core);
    if (left == 0 || (throttled && left <= window_low(core)))
        view->notify = true;
}
