/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of held tasks in the core of a trial, with their kernels, their data where it is valid
 * now, its cuts, and their explicit predecessors.
 */
#include <stdlib.h>
#include <string.h>

#include "core/trial.h"

static struct task_class *class_twin(struct duet_runtime *core, struct task_class *of)
{
    struct duet_codelet *codelet = of->twin ? NULL : duet__codelet_like(core, of->codelet);
    if (codelet)
        of->twin = duet__class_twin(of, codelet);
    return of->twin;
}

/* Gives a handle of the trial's core the size of `of`, valid where that is. */
static void be_twin(struct duet_runtime *core, struct duet_handle *of, struct duet_handle *twin)
{
    bool anywhere = false;
    twin->id = of->id;
    twin->bytes = of->bytes;
    twin->slab_bytes = of->slab_bytes;
    twin->apart = of->apart;
    for (unsigned n = 1; n < core->machine.node_count; n++)
        if (bit_test(of->valid, n))
            anywhere = duet__cache_put(core, twin, n) || anywhere;
    if (anywhere && !bit_test(of->valid, DUET_HOST))
        bit_clear(twin->valid, DUET_HOST);
    of->twin = twin;
}

/*
 * Cuts a handle's copy like the handle, by the given cut and those after it in the list. Returns
 * false if there is no memory. parts_lock is held.
 */
static bool make_cuts(struct duet_runtime *core, struct duet_handle *of, const struct parts *from)
{
    struct duet_message message;
    struct parts *parts = NULL;
    if (!from)
        return true;
    if (make_cuts(core, of, from->next))
        parts = duet__parts_new(of->twin, NULL);
    bool made = parts;
    for (unsigned i = 0; made && i < from->count; i++) {
        struct duet_handle *part = from->handles[i];
        const struct duet_part where = {part->row, part->col, part->rows, part->cols};
        made = !duet__part_add(core, parts, &where, (enum shape)part->shape, &message);
        if (made)
            be_twin(core, part, parts->handles[i]);
        made = made && make_cuts(core, part, part->cuts);
    }
    if (parts) {
        parts->in_force = from->in_force;
        duet__parts_attach(core, parts);
    }
    return made;
}

static struct duet_handle *handle_twin(struct duet_runtime *core, struct duet_handle *of)
{
    struct duet_handle *whole = of;
    if (of->twin)
        return of->twin;
    while (whole->of)
        whole = whole->of->whole;
    struct duet_handle *twin =
        duet__handle_new(core, NULL, whole->rows, whole->cols, whole->ld, whole->element_bytes);
    if (!twin)
        return NULL;
    be_twin(core, whole, twin);
    return make_cuts(core, whole, whole->cuts) ? of->twin : NULL;
}

/* Clears the copies of a handle and all of its parts. */
static void forget_handle(struct duet_handle *handle)
{
    handle->twin = NULL;
    for (const struct parts *cut = handle->cuts; cut; cut = cut->next)
        for (unsigned i = 0; i < cut->count; i++)
            forget_handle(cut->handles[i]);
}

/*
 * Clears the copies of an earlier trial of the task's class, reference and data. parts_lock is
 * held.
 */
static void forget_twins(struct duet_task *task)
{
    task->klass->twin = NULL;
    if (task->extra && task->extra->ref)
        duet__ref_set_twin(task->extra->ref, NULL);
    for (unsigned i = 0; i < task->access_count; i++) {
        struct duet_handle *whole = task->accesses[i].handle;
        while (whole->of)
            whole = whole->of->whole;
        if (whole->twin)
            forget_handle(whole);
    }
}

/* Copies a task's record, with the copies of its explicit predecessors. NULL: no memory. */
static struct duet_task *task_alloc(struct duet_runtime *core, const struct duet_task *of)
{
    const unsigned edges = of->extra ? of->extra->edge_count : 0;
    struct duet_ref *ref = NULL, **before = calloc(edges + 1, sizeof(struct duet_ref *));
    struct duet_message message;
    const struct duet_task_extra extra = {.after = before,
                                          .after_count = edges,
                                          .ref = of->extra && of->extra->ref ? &ref : NULL};
    const struct duet_task_desc desc = {.codelet = of->klass->twin->codelet, .extra = &extra};
    if (!before)
        return NULL;
    unsigned room = of->access_count + (of->extra ? duet__extra_room(&desc) : 0);
    struct duet_task *twin = duet__task_alloc(core, DUET_SUBMITTER, room);
    if (twin) {
        const uint8_t pool = twin->pool;
        memcpy(twin, of, sizeof *of + of->access_count * sizeof *of->accesses);
        twin->pool = pool;
        twin->extra = NULL;
        twin->klass = of->klass->twin;
    }
    if (twin && of->extra) {
        duet__edges_twins(of->extra, before);
        if (duet__extra_new(core, twin, &desc, &message))
            twin = NULL;
        else
            twin->pending -= (int32_t)(edges - twin->extra->edge_count);
    }
    if (ref) {
        duet__ref_set_twin(of->extra->ref, ref);
        duet_ref_free(ref); /* the task holds it */
    }
    free(before);
    return twin;
}

static struct duet_task *task_twin(struct duet_runtime *core, const struct duet_task *of)
{
    struct duet_task *twin = class_twin(core, of->klass) ? task_alloc(core, of) : NULL;
    for (unsigned i = 0; twin && i < of->access_count; i++) {
        twin->accesses[i].handle = handle_twin(core, of->accesses[i].handle);
        if (!twin->accesses[i].handle)
            return NULL;
    }
    if (twin)
        atomic_fetch_add(&core->submitted, 1);
    return twin;
}

bool duet__twins(struct duet_runtime *core, struct duet_runtime *from,
                 struct duet_task *const *tasks, struct duet_task **twins, size_t count)
{
    uint8_t mask;
    for (unsigned m = 0; m < atomic_load(&from->mask_count); m++)
        if (duet__mask_find(core, from->masks[m].kinds, &mask))
            return false;
    bool made = true;
    spin_lock(&from->parts_lock);
    for (size_t t = 0; t < count; t++)
        forget_twins(tasks[t]);
    for (size_t t = 0; made && t < count; t++) {
        twins[t] = task_twin(core, tasks[t]);
        made = twins[t];
    }
    spin_unlock(&from->parts_lock);
    return made;
}
