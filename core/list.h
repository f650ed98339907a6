/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that look into lists share: list.c and best.c. */
#ifndef DUET_CORE_LIST_H
#define DUET_CORE_LIST_H

#include "core/internal.h"

/*
 * A word holds both: twice the length, and 1 while the list is locked. So whoever pushes says so by
 * locking, then looks for idle workers; and a worker says first that it is idle, then looks at the
 * lengths (find_task). All of this is sequentially consistent: either it sees the task, or is seen.
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

/* With so many tasks less than when it was locked. */
static inline void list_unlock(struct duet_list *list, uint32_t gone)
{
    uint32_t gate = atomic_load_explicit(&list->gate, memory_order_relaxed);
    atomic_store_explicit(&list->gate, gate - 2 * gone - 1, memory_order_release);
}

/* Which of two tasks of a list comes first, from the head. */
static inline bool list_earlier(unsigned order, const struct duet_task *a,
                                const struct duet_task *b)
{
    if (order == DUET_HEAP && a->priority != b->priority)
        return a->priority > b->priority;
    if (order == DUET_SORTED && a->note != b->note)
        return a->note > b->note;
    return a->position < b->position;
}

/* The list's lock is held: its first task, from that end, that workers of this kind can run. */
struct duet_task *duet__list_first(const struct duet_runtime *core, const struct duet_list *list,
                                   unsigned kind, bool from_head);
/* Likewise: takes a task off a list; `link` leads to it in its heap, NULL in a DUET_DEQUE. */
void duet__list_take(struct duet_list *list, struct duet_task *task, struct duet_task **link);
/*
 * Puts tasks that the calling worker has taken off another list, and can run, chained by `next`, on
 * its own or a shared one.
 */
void duet__list_keep(struct duet_view *view, struct duet_list *list, struct duet_task *first,
                     uint32_t count);

#endif
