/* SPDX-License-Identifier: Apache-2.0 */
/* What few tasks have, kept apart from the records of all: large arguments. */
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

/* Gives a task what its description has beyond the record. DUET_ENOMEM; the task is then as it was.
 */
int duet__extra_new(struct duet_runtime *core, struct duet_task *task,
                    const struct duet_task_desc *desc)
{
    if (desc->args_bytes > SIZE_MAX - sizeof *task->extra)
        return DUET_ENOMEM;
    struct task_extra *extra = malloc(sizeof *extra + desc->args_bytes);
    if (!extra)
        return DUET_ENOMEM;
    *extra = (struct task_extra){0};
    if (desc->args_bytes)
        memcpy(extra->args, desc->args, desc->args_bytes);
    enlist(core, extra);
    task->extra = extra;
    return DUET_OK;
}

/* With the task's record. */
void duet__extra_free(struct duet_runtime *core, struct duet_task *task)
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
    free(extra);
}

void duet__extras_fini(struct duet_runtime *core)
{
    while (core->extras) {
        struct task_extra *next = core->extras->next;
        free(core->extras);
        core->extras = next;
    }
}
