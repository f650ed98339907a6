/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of a policy's own, taking the best-scored task of a list, and moving chosen tasks. */
#include <math.h>

#include "core/list.h"

struct duet_list *duet_view_new_list(struct duet_view *view, enum duet_order order)
{
    struct duet_runtime *core = view->core;
    if (!core->begins) {
        duet__fail_run(core, DUET_EINVAL, "policy %s makes a list, which only its init may",
                       core->parameters_of->name);
        return NULL;
    }
    struct duet_list *list = zeroed(sizeof *list);
    if (!list)
        return NULL;
    duet__list_init(list, NULL);
    list->order = (uint8_t)order;
    list->next = core->own_lists;
    core->own_lists = list;
    return list;
}

/* The best task so far, and the pointer to it in its heap. */
struct search {
    const struct duet_view *view;
    unsigned order;
    duet_score_fn *score;
    void *context;
    struct duet_task *best, **link;
    double most;
};

/* Scores a task. Returns false if those after it need not be looked at. */
static bool consider_task(struct search *search, struct duet_task *task, struct duet_task **link)
{
    double score = search->score(search->context, search->view, task);
    bool first =
        score == search->most && search->best && list_earlier(search->order, task, search->best);
    if (score > search->most || first) {
        search->most = score;
        search->best = task;
        search->link = link;
    }
    return score < INFINITY;
}

/*
 * Searches a heap, in which nothing below a task comes before it, without a stack as deep as the
 * heap: the last child of a task leads back to it while the subtree is searched (Morris,
 * Information Processing Letters 9, 1979).
 */
static void search_heap(struct search *search, struct duet_task **link)
{
    struct duet_task *task = *link;
    while (task) {
        struct duet_task *last = task->prev;
        while (last && last->next && last->next != task)
            last = last->next;
        if (last && last->next) {
            last->next = NULL;
        } else if (consider_task(search, task, link) && last) {
            last->next = task;
            link = &task->prev;
            task = task->prev;
            continue;
        }
        link = &task->next;
        task = task->next;
    }
}

static void search_queue(struct search *search, struct queue *queue)
{
    if (search->order != DUET_DEQUE) {
        search_heap(search, &queue->head);
        return;
    }
    struct duet_task *task = queue->head;
    while (task && consider_task(search, task, NULL))
        task = task->next;
}

struct duet_task *duet_pop_best(struct duet_view *view, struct duet_list *list, unsigned worker,
                                duet_score_fn *score, void *context)
{
    const struct duet_runtime *core = view->core;
    unsigned kind = core->workers[worker].kind;
    if (!duet_list_length(list))
        return NULL;
    list_lock(list, 0);
    struct search search = {view, list->order, score, context, .most = -INFINITY};
    const struct duet_task *first = duet__list_first(core, list, kind, true);
    unsigned masks = first ? atomic_load_explicit(&core->mask_count, memory_order_acquire) : 0;
    if (first)
        search_queue(&search, &list->queues[first->mask]);
    for (unsigned m = 0, own = first ? first->mask : 0; m < masks; m++)
        if (m != own && (core->masks[m].kinds >> kind & 1))
            search_queue(&search, &list->queues[m]);
    if (search.best)
        duet__list_take(list, search.best, search.link);
    list_unlock(list, search.best ? 1 : 0);
    return search.best;
}

void duet_move(struct duet_view *view, struct duet_list *from, struct duet_list *to,
               unsigned worker, duet_choice_fn *chosen, void *context)
{
    const struct duet_runtime *core = view->core;
    const unsigned kind = core->workers[worker].kind;
    struct duet_task *first = NULL, **end = &first;
    uint32_t count = 0;
    list_lock(from, 0);
    unsigned masks = atomic_load_explicit(&core->mask_count, memory_order_acquire);
    for (unsigned m = 0; m < masks; m++) {
        struct duet_task *task = core->masks[m].kinds >> kind & 1 ? from->queues[m].head : NULL;
        while (task) {
            struct duet_task *next = task->next;
            if (chosen(context, view, task)) {
                duet__list_take(from, task, NULL);
                *end = task;
                end = &task->next;
                count++;
            }
            task = next;
        }
    }
    list_unlock(from, count);
    if (first)
        duet__list_keep(view, to, first, count);
}
