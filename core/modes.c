/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accesses that are more than reading and writing. DUET_SCRATCH: a buffer of a task's own, which is
 * temporary data that is made with the task and freed when it ends. DUET_COMMUTE: tasks that may
 * change a handle in any order, one at a time. Their accesses are granted together, as those of
 * readers are. A task whose accesses are all granted takes all the handles on which it commutes at
 * once, or waits at the first that is taken and tries again when that is free. So no task holds one
 * while waiting for another.
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

/* Frees the scratch of a task that will not be submitted. */
void duet__scratch_refused(struct duet_runtime *core, struct duet_task *task)
{
    if (task->modes & ACCESS_SCRATCH)
        free_scratch(core, task, task->access_count);
}

/* Gives a new task its own scratch buffers, of the shapes of the handles it names. */
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

/* Locks the handles on which a task commutes, in order of address. Returns their number. */
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

/* The task may be freed as soon as the last handle is unlocked. */
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
 * Takes all the handles on which a task commutes, or none: it then waits at the first that is
 * taken, in the order of its accesses, which no address decides. Returns true if it has them. All
 * its accesses are granted. No lock held.
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
 * Returns the next task that waits for the handle and should try to take it: its holder has ended
 * (`frees`), or a task that waited for it now waits for another one. NULL: no task waits, or the
 * handle is taken again. The caller's access keeps the handle there.
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
