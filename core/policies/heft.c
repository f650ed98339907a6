/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heft: tasks that became ready are sorted by their speed-up on accelerators, and each goes to the
 * worker on which it is expected to finish first, transfers included. Nobody steals.
 *
 * Each worker has a date until which it is expected to be busy. When a task ends, the worker's date
 * is moved by the difference between the task's expected and its measured end. Tasks that wait
 * behind it got their dates before that: `shift` is the sum of the moves, and a task stores its
 * expected end without the shift at that time, so that no difference is counted twice.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <duet/policy.h>

struct dates {
    _Atomic(double) busy_until_s, shift_s;
};

/* True if two workers have one architecture, and both or neither of them are accelerators. */
static bool are_alike(const struct duet_view *view, unsigned a, unsigned b)
{
    return duet_view_arch(view, a) == duet_view_arch(view, b) &&
           duet_view_is_device(view, a) == duet_view_is_device(view, b);
}

/*
 * Returns the shortest expected time on CPUs over the shortest on accelerators: 0 for tasks of CPUs
 * alone.
 */
static double heft_speedup(const struct duet_view *view, const struct duet_task *task)
{
    double cpu = INFINITY, accelerator = INFINITY;
    int seen = -1; /* last worker that was asked about; those alike take as long */
    for (unsigned w = 0; w < duet_view_workers(view); w++) {
        if ((seen >= 0 && are_alike(view, w, (unsigned)seen)) || !duet_view_can_run(view, w, task))
            continue;
        seen = (int)w;
        double *best = duet_view_is_device(view, w) ? &accelerator : &cpu;
        *best = fmin(*best, duet_view_seconds(view, w, task));
    }
    if (isinf(accelerator))
        return 0;
    return isinf(cpu) ? INFINITY : cpu / accelerator;
}

/*
 * Returns the worker that would finish the task first; the lowest number among equals. A task
 * starts when the worker is free and its data is there, whichever is later: transfers overlap with
 * the kernels before it, as they do in the runtime (earliest start time of HEFT, equation 5).
 * Workers of one memory node share the transfer term. It is computed once where they follow each
 * other, and not for workers that would end the task too late even if it were 0.
 */
static unsigned heft_earliest(struct duet_view *view, const struct duet_task *task, double now,
                              double *finish)
{
    unsigned best = 0, node = 0;
    double arrival = -1;
    *finish = INFINITY;
    for (unsigned w = 0; w < duet_view_workers(view); w++) {
        if (!duet_view_can_run(view, w, task))
            continue;
        struct dates *dates = duet_view_worker_state(view, w);
        double free_s = atomic_load_explicit(&dates->busy_until_s, memory_order_relaxed);
        double seconds = duet_view_seconds(view, w, task);
        if (free_s + seconds >= *finish)
            continue;
        if (arrival < 0 || duet_view_node(view, w) != node) {
            node = duet_view_node(view, w);
            arrival = now + duet_view_transfer_seconds(view, w, task, false);
        }
        double end = fmax(free_s, arrival) + seconds;
        if (end < *finish) {
            *finish = end;
            best = w;
        }
    }
    return best;
}

static void assign(struct duet_view *view, struct duet_task *task, double now)
{
    double finish;
    unsigned worker = heft_earliest(view, task, now, &finish);
    struct dates *dates = duet_view_worker_state(view, worker);
    atomic_store_explicit(&dates->busy_until_s, finish, memory_order_relaxed);
    double shift = atomic_load_explicit(&dates->shift_s, memory_order_relaxed);
    duet_task_set_note(task, finish - shift);
    duet_push_tail(view, duet_view_list(view, worker), task);
}

/*
 * Compares by descending speed-up, which is the tasks' note here; in order of submission among
 * equals.
 */
static int heft_compare_tasks(const void *left, const void *right)
{
    const struct duet_task *a = *(struct duet_task *const *)left;
    const struct duet_task *b = *(struct duet_task *const *)right;
    double of_a = duet_task_note(a), of_b = duet_task_note(b);
    if (of_a != of_b)
        return of_a > of_b ? -1 : 1;
    return duet_task_id(a) < duet_task_id(b) ? -1 : 1;
}

static void heft_push(void *self, struct duet_view *view, struct duet_task **batch, size_t count,
                      int by, double now)
{
    if (count > 1) {
        for (size_t i = 0; i < count; i++)
            duet_task_set_note(batch[i], heft_speedup(view, batch[i]));
        qsort(batch, count, sizeof(struct duet_task *), heft_compare_tasks);
    }
    for (size_t i = 0; i < count; i++)
        assign(view, batch[i], now);
}

static void heft_epilogue(void *self, struct duet_view *view, struct duet_task *task,
                          unsigned worker, const struct duet_times *times, double now)
{
    struct dates *dates = duet_view_worker_state(view, worker);
    double shift = atomic_load_explicit(&dates->shift_s, memory_order_relaxed);
    double move = times->end_s - (duet_task_note(task) + shift);
    double until = atomic_load_explicit(&dates->busy_until_s, memory_order_relaxed);
    atomic_store_explicit(&dates->shift_s, shift + move, memory_order_relaxed);
    atomic_store_explicit(&dates->busy_until_s, until + move, memory_order_relaxed);
}

const struct duet_policy duet__policy_heft = {
    .name = "heft",
    .description = "earliest finish time, transfers included, by descending GPU speed-up",
    .source = "Lima et al., Parallel Computing 44, 2015 (XKaapi); Topcuoglu et al., TPDS 2002",
    .order = DUET_DEQUE,
    .state_size_a_worker = sizeof(struct dates),
    .push = heft_push,
    .pop = duet_pop_own,
    .epilogue = heft_epilogue,
};
