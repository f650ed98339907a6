/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Direct successors of a task, as far as they were submitted: there are no edges to follow, but the
 * next accesses in the chains of the task's data, and the edges of its reference.
 */
#include "core/internal.h"

/*
 * Counts a successor that waits, with one of its accesses, for `before` tasks, of which this is
 * one; acquisitions do not count.
 */
static void add_successor(struct duet_successors *found, const struct duet_task *next,
                          unsigned before)
{
    int waits = atomic_load_explicit(&next->pending, memory_order_relaxed);
    if (!next->klass || waits < 1)
        return;
    found->count++;
    found->normalised += 1.0 / ((double)waits * before);
}

/*
 * Counts the tasks that are granted the data together when the task, and others of its kind, have
 * ended.
 */
static void add_next(struct duet_successors *found, struct duet_handle *handle)
{
    spin_lock(&handle->lock);
    struct access *access = handle->head;
    const unsigned mode = access ? access->mode : 0, before = handle->active ? handle->active : 1;
    while (access) {
        add_successor(found, access_task(access), before);
        access = SHARED_MODES >> (mode & 31) & 1 ? access->next : NULL;
        if (access && access->mode != mode)
            break;
    }
    spin_unlock(&handle->lock);
}

struct duet_successors duet_task_successors(const struct duet_task *task)
{
    struct duet_successors found = {0};
    for (unsigned i = 0; i < task->access_count; i++)
        if (task->accesses[i].mode)
            add_next(&found, task->accesses[i].handle);
    if (task->extra && task->extra->ref)
        duet__ref_each(task->extra->ref, add_successor, &found);
    return found;
}
