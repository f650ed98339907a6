/* SPDX-License-Identifier: Apache-2.0 */
/* Functions shared by the files that look into lists: list.c and best.c. */
#ifndef DUET_CORE_LIST_H
#define DUET_CORE_LIST_H

#include "core/internal.h"

/*
 * Tries to lock a list. `gate` holds twice the length, and 1 while the list is locked. A pusher
 * first locks the list, then looks for idle workers; a worker first says that it is idle, then
 * looks at the lengths (find_task). All of this is sequentially consistent: either the worker sees
 * the task, or the pusher sees the worker.
 */
static inline bool list_try_lock(struct duet_list *list, uint32_t coming)
{
    uint32_t gate = atomic_load_explicit(&list->gate, memory_order_relaxed);
    return !(gate & 1) && atomic_compare_exchange_strong(&list->gate, &gate, gate + 2 * coming + 1);
}

static inline void list_lock(struct duet_list *list, uint32_t coming)
{
    for (unsigned tries = 0; !list_try_lock(list, coming); tries++)
        duet__spin_rest(tries);
}

/* Unlocks a list that has `gone` tasks less than when it was locked. */
static inline void list_unlock(struct duet_list *list, uint32_t gone)
{
    uint32_t gate = atomic_load_explicit(&list->gate, memory_order_relaxed);
    atomic_store_explicit(&list->gate, gate - 2 * gone - 1, memory_order_release);
}

/* True if task `a` of a list comes before `b`, from the head. */
static inline bool list_earlier(unsigned order, const struct duet_task *a,
                                const struct duet_task *b)
{
    if (order == DUET_HEAP && a->priority != b->priority)
        return a->priority > b->priority;
    if (order == DUET_SORTED && a->note != b->note)
        return a->note > b->note;
    return a->position < b->position;
}

/*
 * Returns the list's first task, from that end, that workers of this kind can run. The list's lock
 * is held.
 */
struct duet_task *duet__list_first(const struct duet_runtime *core, const struct duet_list *list,
                                   unsigned kind, bool from_head);
/*
 * Takes a task off a list whose lock is held. `link` is the pointer to it in its heap, NULL in a
 * DUET_DEQUE.
 */
void duet__list_take(struct duet_list *list, struct duet_task *task, struct duet_task **link);
/*
 * Puts tasks, linked by `next`, that the calling worker has taken off another list and can run on
 * its own list or a shared one.
 */
void duet__list_keep(struct duet_view *view, struct duet_list *list, struct duet_task *first,
                     uint32_t count);

#endif
