/* SPDX-License-Identifier: Apache-2.0 */
/* Counting finished tasks, and telling the threads that wait for them. */
#include "core/internal.h"

/*
 * Returns the number of finished tasks. Each worker counts those that end in its calls, so that no
 * cache line is written by all. The sum is of no single moment, but between the numbers before and
 * after.
 */
uint64_t duet__finished_tasks(const struct duet_runtime *core)
{
    uint64_t count = atomic_load(&core->finished);
    for (unsigned w = 0; w < core->machine.worker_count; w++)
        count += atomic_load(&core->workers[w].finished);
    return count;
}

/*
 * Counts finished tasks, in a call of worker `self`, or of none (NULL). Returns true if that is
 * enough for a waiting submission. A counter that all threads write is touched only while one
 * waits.
 */
static bool count_ended(struct duet_runtime *core, struct worker *self, uint64_t count)
{
    if (self) {
        uint64_t before = atomic_load_explicit(&self->finished, memory_order_relaxed);
        /* a thread that reads this sees the writes of the tasks */
        atomic_store_explicit(&self->finished, before + count, memory_order_release);
    } else {
        atomic_fetch_add(&core->finished, count);
    }
    /* in order with the sum that a waiting thread makes afterwards, also without a worker, which
       would look again before it rests */
    return atomic_load(&core->throttled) &&
           atomic_fetch_add(&core->ended, count) + count >= atomic_load(&core->open_at);
}

/*
 * Counts finished tasks for a worker that has more tasks, after the last of which waiting threads
 * are told.
 */
void duet__add_finished(struct duet_runtime *core, struct worker *self, uint64_t count)
{
    (void)count_ended(core, self, count);
}

/*
 * Counts finished tasks in a call that tells waiting threads. Threads that wait for all tasks are
 * told by the last worker to turn idle, or at the end of a call of no worker.
 */
inline void duet__count_finished(struct duet_view *view, uint64_t count)
{
    struct duet_runtime *core = view->core;
    struct worker *self = view->self;
    if (count_ended(core, self, count))
        view->notify = true;
    if (!self && atomic_load(&core->waits))
        view->ended = true;
}

/*
 * Counts tasks, not yet counted as finished, that are not the application's: the runtime's own,
 * numbers that no task got, or tasks that will be submitted again.
 */
RARE void duet__count_internal(struct duet_view *view, uint64_t count)
{
    if (view->self)
        count_own(&view->self->internal, count);
    else
        atomic_fetch_add(&view->core->internal, count);
}

/* never more than were submitted: a thread that sees a task finished sees that it is internal */
uint64_t duet_tasks_done(const struct duet_runtime *runtime)
{
    uint64_t finished = duet__finished_tasks(runtime), internal = atomic_load(&runtime->internal);
    for (unsigned w = 0; w < runtime->machine.worker_count; w++)
        internal += atomic_load(&runtime->workers[w].internal);
    return finished > internal ? finished - internal : 0;
}

/*
 * True if another worker has tasks. A hungry one has none, and one that was woken and has not come
 * yet is not waited for.
 */
static bool others_work(const struct duet_runtime *core, unsigned worker)
{
    for (unsigned i = 0; i < core->worker_words; i++) {
        unsigned first = i * 64, count = core->machine.worker_count - first;
        uint64_t all = count < 64 ? (UINT64_C(1) << count) - 1 : UINT64_MAX;
        uint64_t rest = all & ~atomic_load(&core->hungry[i]);
        for (; rest; rest &= rest - 1) {
            const struct worker *other = &core->workers[first + (unsigned)__builtin_ctzll(rest)];
            if (other->index != worker && atomic_load(&other->fed) && !atomic_load(&other->lost))
                return true;
        }
    }
    return false;
}

/*
 * Tells waiting threads, in the call of a worker that has nothing to do, if all tasks have
 * finished. Every worker that has ended a task has cleared `fed` by now and comes here before it
 * rests, so the last one sees that all others have, and makes the sum for all of them. It and a
 * thread that begins to wait, which says so before it makes the sum, cannot both miss the other:
 * all these accesses are sequentially consistent.
 */
void duet__look_idle(struct duet_view *view, struct worker *worker)
{
    struct duet_runtime *core = view->core;
    atomic_store(&worker->finished, atomic_load_explicit(&worker->finished, memory_order_relaxed));
    bool waits = atomic_load(&core->waits), throttled = atomic_load(&core->throttled);
    if (!throttled && (!waits || others_work(core, worker->index)))
        return;
    uint64_t left = unfinished(core);
    if (left == 0 || (throttled && left <= window_low(core)))
        view->notify = true;
}
