/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cp: the critical path first. Order and place as in HEFT (Topcuoglu, Hariri, Wu, TPDS 2002), but
 * each at its time. The order is by upward rank (equation 8) over all submitted tasks, before
 * anything runs. The place is chosen when a task is ready, where it would end first (equations 5
 * and 6) by the place of its data and the loads of workers, with the weight of transfers that
 * StarPU's dmda gives them (CCPE 2011). Tasks without a plan come after all that have one, on the
 * same list.
 */
#include <math.h>
#include <stdlib.h>

#include <duet/policy.h>

enum { BETA };

static const struct duet_policy_parameter parameters[] = {
    [BETA] = {"beta", 1, 0, 1000, "weight of the transfer, beside the expected end"},
    {NULL},
};

struct item {
    struct duet_task *task;
    double rank;
};

static int cp_by_rank(const void *left, const void *right)
{
    const struct item *a = left, *b = right;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

/* Sets priorities from 1 by rank, equal ranks the same; unchanged if there is no memory. */
static void cp_plan(void *self, struct duet_view *view, struct duet_task *const *tasks,
                    size_t count, const double *ranks, double now)
{
    struct item *items = malloc(count * sizeof *items);
    int priority = 1;
    for (size_t i = 0; items && i < count; i++)
        items[i] = (struct item){tasks[i], ranks[i]};
    if (items)
        qsort(items, count, sizeof *items, cp_by_rank);
    for (size_t i = 0; items && i < count; i++) {
        priority += i && items[i].rank > items[i - 1].rank;
        duet_task_set_priority(items[i].task, priority);
        duet_task_set_note(items[i].task, 1);
    }
    free(items);
}

/*
 * Returns the worker of the lowest expected end + beta x transfer, where copies are alone; the
 * lowest number among equals. Without the second term, copies that overlap with kernels would be
 * made for nothing.
 */
static unsigned cp_choose_worker(struct duet_view *view, const struct duet_task *task)
{
    unsigned best = 0;
    double least = INFINITY;
    for (unsigned w = 0; w < duet_view_workers(view); w++) {
        if (!duet_view_can_run(view, w, task))
            continue;
        double load_s = duet_view_load(view, w), seconds = duet_view_seconds(view, w, task);
        if (load_s + seconds >= least)
            continue; /* it is no better even if the transfer takes no time */
        double transfer_s = duet_view_transfer_seconds(view, w, task, true);
        double end_s = fmax(load_s, transfer_s) + seconds;
        double fitness = end_s + duet_view_parameter(view, BETA) * transfer_s;
        if (fitness < least) {
            least = fitness;
            best = w;
        }
    }
    return best;
}

/* Compares tasks by descending priority, then by number. */
static int cp_compare_tasks(const void *left, const void *right)
{
    const struct duet_task *a = *(struct duet_task *const *)left;
    const struct duet_task *b = *(struct duet_task *const *)right;
    if (duet_task_priority(a) != duet_task_priority(b))
        return duet_task_priority(a) > duet_task_priority(b) ? -1 : 1;
    return duet_task_id(a) < duet_task_id(b) ? -1 : 1;
}

static void cp_push(void *self, struct duet_view *view, struct duet_task **batch, size_t count,
                    int by, double now)
{
    for (size_t i = 0; i < count; i++)
        if (duet_task_note(batch[i]) == 0)
            duet_task_set_priority(batch[i], 0);
    qsort(batch, count, sizeof(struct duet_task *), cp_compare_tasks);
    for (size_t i = 0; i < count; i++) {
        unsigned worker = cp_choose_worker(view, batch[i]);
        duet_luf_count(view, batch[i], worker, 1);
        duet_push_tail(view, duet_view_list(view, worker), batch[i]);
    }
}

const struct duet_policy duet__policy_cp = {
    .name = "cp",
    .description = "the critical path of the whole graph first, where it ends first",
    .source = "Topcuoglu, Hariri, Wu, TPDS 13(3), 2002 (order before, place at run time)",
    .order = DUET_HEAP,
    .parameters = parameters,
    .state_size_a_place = DUET_LUF_BYTES,
    .scores_hold = true,
    .push = cp_push,
    .pop = duet_pop_own,
    .victim = duet_luf_victim,
    .epilogue = duet_luf_epilogue,
    .plan = cp_plan,
};
