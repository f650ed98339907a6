/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accesses that are more than reading and writing. DUET_SCRATCH: a buffer of a task's own, which is
 * temporary data that is made with the task and freed when it ends. DUET_COMMUTE: tasks that may
 * change a handle in any order, one at a time. Their accesses are granted together, as those of
 * readers are; a task of which all are granted then takes all the handles that it commutes on at
 * once, or waits at the first that is taken and tries again when that is free. So nobody holds one
 * while waiting for another, and nothing is tried in vain for long.
 */
#include "core/internal.h"

/* ------------------------------------------------------------------------------------------- */
/* Scratch                                                                                      */

static void free_scratch(struct duet_runtime *core, struct duet_task *task, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (task->accesses[i].mode & ACCESS_SCRATCH)
            duet__handle_remove(core, task->accesses[i].handle);
}

/* The task will not be: so won't its buffers. */
void duet__scratch_refused(struct duet_runtime *core, struct duet_task *task)
{
    if (task->modes & ACCESS_SCRATCH)
        free_scratch(core, task, task->access_count);
}

/* Gives a task that is made the buffers of its own, of the shapes of the handles it names. */
int duet__scratch_make(struct duet_runtime *core, struct duet_task *task)
{
    for (unsigned i = 0; i < task->access_count; i++) {
        struct access *access = &task->accesses[i];
        const struct duet_handle *like = access->handle;
        if (!(access->mode & ACCESS_SCRATCH))
            continue;
        access->handle = duet__temporary_new(core, like->rows, like->cols, like->element_bytes);
        if (!access->handle) {
            free_scratch(core, task, i);
            task->modes &= (uint8_t)~ACCESS_SCRATCH;
            return DUET_ENOMEM;
        }
    }
    return DUET_OK;
}

/* ------------------------------------------------------------------------------------------- */
/* Commuting                                                                                    */

static bool commutes(const struct access *access)
{
    return (access->mode & ACCESS_COMMUTES) != 0;
}

/* Locks the handles on which a task commutes, in order of address. How many. */
static unsigned lock_all(struct duet_task *task)
{
    unsigned locked = 0;
    for (unsigned i = 0; i < task->access_count; i++) {
        struct access *access = &task->accesses[task->accesses[i].order];
        if (!commutes(access))
            continue;
        spin_lock(&access->handle->lock);
        locked++;
    }
    return locked;
}

/* The task may be gone when the last of them is unlocked. */
static void unlock_all(struct duet_task *task, unsigned locked)
{
    for (unsigned i = 0; locked; i++) {
        struct access *access = &task->accesses[i];
        if (!commutes(access))
            continue;
        locked--;
        spin_unlock(&access->handle->lock);
    }
}

static void wait_at(struct duet_handle *handle, struct duet_task *task)
{
    task->next = NULL;
    if (handle->last_waiting)
        handle->last_waiting->next = task;
    else
        handle->waiting = task;
    handle->last_waiting = task;
}

/*
 * Takes all the handles on which a task commutes, all its accesses being granted; or none, and it
 * waits at the first that is taken, in the order of its accesses, which no address decides. true:
 * it has them, or had them before. No lock held.
 */
bool duet__hold(struct duet_task *task)
{
    if ((task->modes & (ACCESS_COMMUTES | TASK_HOLDS)) != ACCESS_COMMUTES)
        return true;
    struct duet_handle *busy = NULL;
    unsigned locked = lock_all(task);
    for (unsigned i = 0; i < task->access_count && !busy; i++)
        if (commutes(&task->accesses[i]) && task->accesses[i].handle->held)
            busy = task->accesses[i].handle;
    for (unsigned i = 0; i < task->access_count && !busy; i++)
        if (commutes(&task->accesses[i]))
            task->accesses[i].handle->held = true;
    if (busy)
        wait_at(busy, task);
    else
        task->modes |= TASK_HOLDS;
    unlock_all(task, locked);
    return !busy;
}

/*
 * Who held the handle has ended (`frees`), or somebody who waited for it waits for another one now:
 * the next one who waits is to try. NULL: there is none, or somebody holds it again. The caller's
 * access keeps the handle there.
 */
struct duet_task *duet__next_holder(struct duet_handle *handle, bool frees)
{
    spin_lock(&handle->lock);
    if (frees)
        handle->held = false;
    struct duet_task *task = handle->held ? NULL : handle->waiting;
    if (task) {
        handle->waiting = task->next;
        if (!handle->waiting)
            handle->last_waiting = NULL;
    }
    spin_unlock(&handle->lock);
    return task;
}
