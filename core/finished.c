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

/* Has the worker another task at hand? */
static bool has_more(const struct worker *self)
{
    return self->taken || duet_list_length(&self->list);
}

/*
 * So many tasks less are unfinished, in a call of this worker, or of none (NULL). true: enough for
 * a submission that waits. A counter that all threads write is touched only while one does.
 */
static bool add(struct duet_runtime *core, struct worker *self, uint64_t count)
{
    if (self) {
        uint64_t before = atomic_load_explicit(&self->finished, memory_order_relaxed);
        /* who has read this has seen what the tasks did */
        atomic_store_explicit(&self->finished, before + count, memory_order_release);
    } else {
        atomic_fetch_add(&core->finished, count);
    }
    /* in order with the sum that a thread which waits makes afterwards, also where no worker
       counts, which would look again before it rests */
    return atomic_load(&core->throttled) &&
           atomic_fetch_add(&core->ended, count) + count >= atomic_load(&core->open_at);
}

/* For a worker that has more tasks, at the end of the last of which those who wait are told. */
void duet__add_finished(struct duet_runtime *core, struct worker *self, uint64_t count)
{
    (void)add(core, self, count);
}

/* The same in a call that tells those who wait. */
inline void duet__count_finished(struct duet_view *view, uint64_t count)
{
    struct duet_runtime *core = view->core;
    struct worker *self = view->self;
    if (add(core, self, count))
        view->notify = true;
    if (atomic_load(&core->waits) && !(self && has_more(self)))
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
    const struct worker *self = view->self;
    bool more = self && (has_more(self) || any_listed(core));
    if (!more && unfinished(core) == 0)
        view->notify = true;
}

/*
 * The worker has nothing to do: is what somebody waits for there? Of two workers that ended the
 * last tasks, the second to store its counter here sees the first one's; and of this and a thread
 * that comes to wait, which says so before it makes the sum, one sees the other: all of these are
 * sequentially consistent. Every worker that has ended a task comes here before it rests with none.
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
