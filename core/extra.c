/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What few tasks have, kept apart from the records of all: large arguments, references, what they
 * come after, what is called at their end, what they are called in traces.
 */
#include <stdlib.h>
#include <string.h>

#include "core/internal.h"

/* So that those of tasks that never end are found when the runtime is closed. */
static void enlist(struct duet_runtime *core, struct task_extra *extra)
{
    spin_lock(&core->extra_lock);
    extra->next = core->extras;
    if (extra->next)
        extra->next->prev = extra;
    core->extras = extra;
    spin_unlock(&core->extra_lock);
}

/* One block of memory: the extra, the arguments, what the task comes after. NULL: none left. */
static struct task_extra *extra_alloc(const struct duet_task_desc *desc, size_t after_count)
{
    size_t edges = duet__edges_bytes(after_count);
    if (desc->args_bytes > SIZE_MAX / 2)
        return NULL;
    size_t args = (desc->args_bytes + 15) / 16 * 16;
    struct task_extra *extra = malloc(sizeof *extra + args + edges);
    if (!extra)
        return NULL;
    *extra = (struct task_extra){.edges = (struct edge *)(void *)(extra->args + args)};
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
    struct duet_ref *ref = from->ref ? duet__ref_new(core) : NULL;
    struct task_extra *extra = from->ref && !ref ? NULL : extra_alloc(desc, from->after_count);
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
    enlist(core, extra);
    task->extra = extra;
    if (ref)
        *from->ref = ref;
    return DUET_OK;
}

static void give_up(struct task_extra *extra)
{
    duet_ref_free(extra->ref);
    duet__edges_free(extra->edges, extra->edge_count);
    free(extra);
}

static void extra_free(struct duet_runtime *core, struct duet_task *task)
{
    struct task_extra *extra = task->extra;
    task->extra = NULL;
    spin_lock(&core->extra_lock);
    if (extra->prev)
        extra->prev->next = extra->next;
    else
        core->extras = extra->next;
    if (extra->next)
        extra->next->prev = extra->prev;
    spin_unlock(&core->extra_lock);
    give_up(extra);
}

/* The task was not made after all: nobody has seen its reference. */
void duet__extra_refused(struct duet_runtime *core, struct duet_task *task)
{
    duet_ref_free(task->extra->ref);
    extra_free(core, task);
}

void duet__extras_fini(struct duet_runtime *core)
{
    while (core->extras) {
        struct task_extra *next = core->extras->next;
        give_up(core->extras);
        core->extras = next;
    }
}

void duet__extra_failed(struct duet_task *task, int status)
{
    if (task->extra)
        task->extra->status = status;
}

/* The task is to be forgotten, and nobody waits for it any more. No lock held. */
void duet__extra_forget(struct duet_view *view, struct duet_task *task)
{
    if (task->extra->ref)
        duet__ref_end(view, task->extra->ref);
    extra_free(view->core, task);
}

/* The task has ended, with nothing left to do but to count it. No lock held. */
/* What the calling thread is in the middle of, which may be the application's own. */
static _Thread_local unsigned in_done;

bool duet__in_done(void)
{
    return in_done > 0;
}

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
