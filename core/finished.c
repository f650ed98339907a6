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

/*
 * The same in a call that tells those who wait. Who waits for all tasks is told by the last worker
 * to turn idle, or at the end of a call of none.
 */
inline void duet__count_finished(struct duet_view *view, uint64_t count)
{
    struct duet_runtime *core = view->core;
    struct worker *self = view->self;
    if (add(core, self, count))
        view->notify = true;
    if (!self && atomic_load(&core->waits))
        view->ended = true;
}

/*
 * So many tasks, which are not counted as finished yet, are none of the application's: the
 * runtime's own, numbers that no task got, or what will be submitted again.
 */
RARE void duet__count_internal(struct duet_view *view, uint64_t count)
{
    if (view->self)
        count_own(&view->self->internal, count);
    else
        atomic_fetch_add(&view->core->internal, count);
}

/* Never more than were submitted: who sees that one has finished sees that it is internal. */
uint64_t duet_tasks_done(const struct duet_runtime *runtime)
{
    uint64_t finished = duet__finished_tasks(runtime), internal = atomic_load(&runtime->internal);
    for (unsigned w = 0; w < runtime->machine.worker_count; w++)
        internal += atomic_load(&runtime->workers[w].internal);
    return finished > internal ? finished - internal : 0;
}

/*
 * Is there another worker that has tasks? One that is hungry has none, and one that was called and
 * has not come yet is not worth waiting for.
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
 * The worker has nothing to do: is what somebody waits for there? Every worker that has ended a
 * task has said by now that it found no other (`fed`) and comes here before it rests with none, so
 * the last one to do so sees that all others have, and makes the sum for all of them. Of it and a
 * thread that comes to wait, which says so before it makes the sum, one sees the other: all of
 * these are sequentially consistent.
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
