/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What few tasks have, kept apart from the records of all: large arguments, references, what they
 * come after, what is called at their end, what they are called in traces.
 */
#include <stdlib.h>
#include <string.h>

#include "core/internal.h"

enum { BEHIND_BYTES = 2048 }; /* more is allocated by itself: records are kept for other tasks */

static size_t args_room(const struct duet_task_desc *desc)
{
    return (desc->args_bytes + 15) / 16 * 16;
}

/* Of one block of memory: the extra, the arguments, what the task comes after. */
static size_t extra_bytes(const struct duet_task_desc *desc)
{
    size_t after_count = desc->extra ? desc->extra->after_count : 0;
    if (desc->args_bytes > SIZE_MAX / 2)
        return SIZE_MAX;
    return sizeof(struct task_extra) + args_room(desc) + duet__edges_bytes(after_count);
}

/* Its place behind the accesses of a task. */
static struct task_extra *behind(struct duet_task *task)
{
    uintptr_t end = (uintptr_t)&task->accesses[task->access_count];
    return (struct task_extra *)((end + 15) / 16 * 16);
}

/* For how many accesses more a task's record is to have room. */
RARE unsigned duet__extra_room(const struct duet_task_desc *desc)
{
    size_t bytes = extra_bytes(desc), each = sizeof(struct access);
    return bytes > BEHIND_BYTES ? 0 : (unsigned)((bytes + 15 + each - 1) / each);
}

/* NULL: no memory. */
static struct task_extra *extra_alloc(struct duet_task *task, const struct duet_task_desc *desc)
{
    size_t bytes = extra_bytes(desc);
    struct task_extra *extra = bytes > BEHIND_BYTES ? malloc(bytes) : behind(task);
    if (!extra)
        return NULL;
    *extra = (struct task_extra){.edges = (struct edge *)(void *)(extra->args + args_room(desc))};
    if (desc->args_bytes)
        memcpy(extra->args, desc->args, desc->args_bytes);
    return extra;
}

/*
 * Gives a task what its description has beyond the record. Errors as duet_submit, with a message;
 * the task is then as it was.
 */
int duet__extra_new(struct duet_runtime *core, struct duet_task *task,
                    const struct duet_task_desc *desc, struct duet_message *message)
{
    int error = duet__refs_check(core, desc, message);
    if (error)
        return error;
    static const struct duet_task_extra none = {NULL};
    const struct duet_task_extra *from = desc->extra ? desc->extra : &none;
    if (from->node && *from->node)
        return duet_fail(message, DUET_EINVAL,
                         "a %s task is to run on node %u: a task that another one submits runs "
                         "where that does, and a runtime of one node has number 0 alone",
                         desc->codelet->name, *from->node);
    struct duet_ref *ref = from->ref ? duet__ref_new(core) : NULL;
    struct task_extra *extra = from->ref && !ref ? NULL : extra_alloc(task, desc);
    if (!extra) {
        free(ref);
        return duet_fail(message, DUET_ENOMEM, "no memory left for what a %s task comes with",
                         desc->codelet->name);
    }
    extra->ref = ref;
    extra->done = from->done;
    extra->done_arg = from->done_arg;
    extra->iteration = from->iteration;
    extra->name = from->name ? duet__name(core, from->name) : 0; /* without memory it has none */
    extra->edge_count = duet__edges_fill(extra->edges, task, from);
    task->extra = extra;
    atomic_store_explicit(&core->extras, true, memory_order_relaxed);
    if (ref)
        *from->ref = ref;
    return DUET_OK;
}

/* A child that comes after others may wait for ever: so that it is found then. */
void duet__extra_enlist(struct duet_runtime *core, struct duet_task *child)
{
    spin_lock(&core->extra_lock);
    child->extra->next = core->children;
    child->extra->at = &core->children;
    if (core->children)
        core->children->extra->at = &child->extra->next;
    core->children = child;
    spin_unlock(&core->extra_lock);
}

static void delist(const struct duet_task *child)
{
    const struct task_extra *extra = child->extra;
    struct duet_runtime *core = duet__edges_core(extra->edges);
    spin_lock(&core->extra_lock);
    *extra->at = extra->next;
    if (extra->next)
        extra->next->extra->at = extra->at;
    spin_unlock(&core->extra_lock);
}

void duet__extra_free(struct duet_task *task)
{
    struct task_extra *extra = task->extra;
    if (extra->at)
        delist(task);
    task->extra = NULL;
    duet_ref_free(extra->ref);
    duet__refs_drop(NULL, extra->lost);
    duet__edges_free(extra->edges, extra->edge_count);
    if (extra != behind(task))
        free(extra);
}

/* The task was not made after all: nobody has seen its reference. */
void duet__extra_refused(struct duet_task *task)
{
    duet_ref_free(task->extra->ref);
    duet__extra_free(task);
}

void duet__extra_failed(struct duet_task *task, int status)
{
    if (task->extra)
        task->extra->status = status;
}

/* The task is to be forgotten, and nobody waits for it any more. No lock held. */
void duet__extra_forget(struct duet_view *view, struct duet_task *task)
{
    struct duet_ref *lost = task->extra->lost;
    task->extra->lost = NULL;
    if (task->extra->ref)
        duet__ref_end(view, task->extra->ref);
    duet__refs_drop(view, lost);
    duet__extra_free(task);
}

/* Room for what few tasks have, of one that has nothing of it; its arguments go there, too. */
static struct task_extra *extra_apart(struct duet_runtime *core, const struct duet_task *task)
{
    struct task_extra *extra = malloc(sizeof *extra + sizeof task->args);
    if (!extra)
        return NULL;
    *extra = (struct task_extra){.edge_count = 0};
    memcpy(extra->args, task->args, sizeof task->args);
    atomic_store_explicit(&core->extras, true, memory_order_relaxed);
    return extra;
}

/*
 * The device of `kernel` is lost, which has submitted the task and will do so again: then the
 * reference to it is to that one. Without memory for that it ends now. No lock held.
 */
void duet__extra_postpone(struct duet_view *view, struct duet_task *kernel, struct duet_task *task)
{
    if (task->extra->ref && !kernel->extra)
        kernel->extra = extra_apart(view->core, kernel);
    if (task->extra->ref && kernel->extra) {
        duet__ref_postpone(&kernel->extra->lost, task->extra->ref);
        task->extra->ref = NULL;
    }
    duet__extra_forget(view, task);
}

/* What the calling thread is in the middle of, which may be the application's own. */
static _Thread_local unsigned in_done;

bool duet__in_done(void)
{
    return in_done > 0;
}

/* A function is called that may submit tasks and not wait, on whichever thread. */
void duet__in_done_begin(void)
{
    in_done++;
}

void duet__in_done_end(void)
{
    in_done--;
}

/* The task has ended, with nothing left to do but to count it. No lock held. */
RARE void duet__extra_end(struct duet_view *view, struct duet_task *task)
{
    const struct task_extra *extra = task->extra;
    if (extra->done) {
        in_done++;
        extra->done(view->core, extra->done_arg, extra->status);
        in_done--;
    }
    duet__extra_forget(view, task);
}
