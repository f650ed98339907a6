/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Properties that few tasks have, kept apart from the records of all: large arguments, references,
 * explicit predecessors, functions called at the end, names in traces.
 */
#include "core/internal.h"

enum {
    BEHIND_BYTES = 2048
}; /* larger ones are allocated by themselves: records are kept for other
      tasks */

static size_t args_room(const struct duet_task_desc *desc)
{
    return (desc->args_bytes + 15) / 16 * 16;
}

/* Returns the bytes of the extra, the arguments and the predecessors in one block of memory. */
static size_t extra_bytes(const struct duet_task_desc *desc)
{
    size_t after_count = desc->extra ? desc->extra->after_count : 0;
    if (desc->args_bytes > SIZE_MAX / 2)
        return SIZE_MAX;
    return sizeof(struct task_extra) + args_room(desc) + duet__edges_bytes(after_count);
}

/* Returns the place of the extra behind the accesses of a task. */
static struct task_extra *extra_behind(struct duet_task *task)
{
    uintptr_t end = (uintptr_t)&task->accesses[task->access_count];
    return (struct task_extra *)((end + 15) / 16 * 16);
}

/*
 * Returns the number of further accesses for which a task's record needs room, so that the extra
 * fits.
 */
RARE unsigned duet__extra_room(const struct duet_task_desc *desc)
{
    size_t bytes = extra_bytes(desc), each = sizeof(struct access);
    return bytes > BEHIND_BYTES ? 0 : (unsigned)((bytes + 15 + each - 1) / each);
}

/* Returns the memory of a task's extra, or NULL if there is none. */
static struct task_extra *extra_alloc(struct duet_task *task, const struct duet_task_desc *desc)
{
    size_t bytes = extra_bytes(desc);
    struct task_extra *extra = bytes > BEHIND_BYTES ? malloc(bytes) : extra_behind(task);
    if (!extra)
        return NULL;
    *extra = (struct task_extra){.edges = (struct edge *)(void *)(extra->args + args_room(desc))};
    if (desc->args_bytes)
        memcpy(extra->args, desc->args, desc->args_bytes);
    return extra;
}

/*
 * Gives a task the properties of its description that its record has no room for. Errors as
 * duet_submit, with a message; the task is then unchanged.
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
    extra->name = from->name ? duet__name(core, from->name) : 0; /* without memory it has no name */
    extra->edge_count = duet__edges_fill(extra->edges, task, from);
    task->extra = extra;
    atomic_store_explicit(&core->extras, true, memory_order_relaxed);
    if (ref)
        *from->ref = ref;
    return DUET_OK;
}

/* Lists a child that comes after others, so that it is found if it would wait for ever. */
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

static void extra_delist(const struct duet_task *child)
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
        extra_delist(task);
    task->extra = NULL;
    duet_ref_free(extra->ref);
    duet__refs_drop(NULL, extra->lost);
    duet__edges_free(extra->edges, extra->edge_count);
    if (extra != extra_behind(task))
        free(extra);
}

/* Frees the extra of a task that was not submitted: nobody has seen its reference. */
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

/* Ends the reference of a task that is dropped, and frees its extra. No lock held. */
static void extra_forget(struct duet_view *view, struct duet_task *task)
{
    struct duet_ref *lost = task->extra->lost;
    task->extra->lost = NULL;
    if (task->extra->ref)
        duet__ref_end(view, task->extra->ref);
    duet__refs_drop(view, lost);
    duet__extra_free(task);
}

/* Returns memory for the extra of a task that has none, with the task's arguments. */
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
 * Keeps the reference of a task whose submitter `kernel` has lost its device: it will stand for the
 * task that the kernel submits again. Without memory for that it ends now. No lock held.
 */
void duet__extra_postpone(struct duet_view *view, struct duet_task *kernel, struct duet_task *task)
{
    if (task->extra->ref && !kernel->extra)
        kernel->extra = extra_apart(view->core, kernel);
    if (task->extra->ref && kernel->extra) {
        duet__ref_postpone(&kernel->extra->lost, task->extra->ref);
        task->extra->ref = NULL;
    }
    extra_forget(view, task);
}

/* depth of duet_done_fn calls on this thread, which may be the application's */
static _Thread_local unsigned in_done;

bool duet__in_done(void)
{
    return in_done > 0;
}

/* Begins the call of a function that may submit tasks and not wait, on any thread. */
void duet__in_done_begin(void)
{
    in_done++;
}

void duet__in_done_end(void)
{
    in_done--;
}

/*
 * Calls `done` and ends the reference of a task that has ended but is not yet counted. No lock
 * held.
 */
RARE void duet__extra_end(struct duet_view *view, struct duet_task *task)
{
    const struct task_extra *extra = task->extra;
    if (extra->done) {
        in_done++;
        extra->done(view->core, extra->done_arg, extra->status);
        in_done--;
    }
    extra_forget(view, task);
}
