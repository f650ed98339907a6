/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions. Tasks that reduce a handle run at once, each on a contribution: temporary data in the
 * memory of its worker. There are as many contributions as tasks were at work there at a time. A
 * worker that takes such a task and finds no free one makes one, and runs the initialisation first.
 * When another access follows, the contributions are combined by ordinary tasks, as a binary tree
 * whose last one enters the handle itself, before that access is granted.
 *
 * As long as there are contributions, the handle has one granted access more than tasks, which the
 * last combination takes over.
 */
#include "core/internal.h"

/* A contribution to a handle, under the lock of that handle. */
struct contribution {
    struct contribution *next;
    struct duet_handle *data, *whole;
    unsigned node, worker; /* memory node where it was made; worker that had it last */
    bool busy, ready;      /* a task has it; it was initialised */
    uint64_t added;        /* number of tasks that have ended on it */
};

struct reduction {
    struct duet_codelet *init, *combine;
    uint64_t kinds;               /* kinds of workers that can initialise */
    struct duet_task *combining;  /* called when the contributions are to be combined */
    struct contribution *first;   /* lock of the handle: list by memory node */
    const struct duet_task *last; /* the combination that is entering the handle */
    struct reduction *next;       /* next reduction to recover */
};

/* ------------------------------------------------------------------------------------------- */
/* Registering a reduction */

static int try_task(struct duet_runtime *core, struct duet_codelet *codelet,
                    const struct duet_access *accesses, size_t count, uint64_t *kinds)
{
    struct duet_task *task;
    struct duet_message message = {""};
    struct duet__ops ops = {0};
    struct duet_view view;
    const struct duet_task_desc desc = {.codelet = codelet,
                                        .accesses = accesses,
                                        .access_count = count};
    int error = duet__task_new(core, DUET_SUBMITTER, &desc, &task, &message);
    if (error) {
        duet__tell(core, &message);
        return error;
    }
    *kinds = task->klass->able;
    view_begin(&view, core, 0, DUET_SUBMITTER, &ops);
    duet__count_internal(&view, 1);
    duet__task_end(&view, task);
    duet__view_flush(&view);
    return DUET_OK;
}

/* Checks that tasks of both kernels can be made, and finds the workers that can initialise. */
static int try_both(struct duet_runtime *core, struct duet_handle *handle, struct reduction *made)
{
    uint64_t any;
    struct duet_handle *other =
        duet__temporary_new(core, handle->rows, handle->cols, handle->element_bytes);
    if (!other)
        return duet__refuse(core, DUET_ENOMEM, "no memory left for duet_set_reduction");
    const struct duet_access accesses[] = {{handle, DUET_RW}, {other, DUET_R}},
                             alone = {other, DUET_W};
    int error = try_task(core, made->init, &alone, 1, &made->kinds);
    if (!error)
        error = try_task(core, made->combine, accesses, 2, &any);
    duet__handle_remove(core, other);
    return error;
}

int duet_set_reduction(struct duet_runtime *runtime, struct duet_handle *handle,
                       const struct duet_codelet *init, const struct duet_codelet *combine)
{
    const struct duet__gate *gate = duet__gate_of(runtime);
    int error = duet__own_data(runtime, handle, "duet_set_reduction");
    if (error)
        return error;
    return gate ? gate->reduction(runtime->gate_arg, handle, init, combine)
                : duet__reduction_here(runtime, handle, init, combine);
}

int duet__reduction_here(struct duet_runtime *runtime, struct duet_handle *handle,
                         const struct duet_codelet *init, const struct duet_codelet *combine)
{
    if (!init || !combine || init->expand || (handle->of && handle->of->expansion) ||
        handle->reduction)
        return duet__refuse(
            runtime, DUET_EINVAL,
            "duet_set_reduction needs a handle that is no block of an expansion and "
            "has no reduction yet, a kernel that initialises, which does not "
            "expand, and one that combines");
    if (handle->layout)
        return duet__refuse(runtime, DUET_EINVAL,
                            "handle %llu is %s, which cannot be reduced: register a matrix",
                            (unsigned long long)handle->id, duet__no_matrix(handle));
    struct reduction *made = calloc(1, sizeof *made);
    struct duet_task *combining = made ? duet__acquisition_new(runtime, 1) : NULL;
    int error = DUET_ENOMEM;
    if (!combining) {
        (void)duet__refuse(runtime, error, "no memory left for duet_set_reduction");
        goto failed;
    }
    made->init = (struct duet_codelet *)(uintptr_t)init;
    made->combine = (struct duet_codelet *)(uintptr_t)combine;
    error = try_both(runtime, handle, made);
    if (error)
        goto failed;
    made->combining = combining;
    combining->accesses[0].handle = handle;
    combining->over = duet__combine;
    handle->reduction = made;
    return DUET_OK;
failed:
    if (combining)
        duet__task_free(runtime, DUET_SUBMITTER, combining);
    free(made);
    return error;
}

/* Frees the reduction of a handle that is freed. */
void duet__reduction_free(struct duet_runtime *core, struct duet_handle *handle)
{
    struct reduction *reduction = handle->reduction;
    if (!reduction)
        return;
    while (reduction->first) {
        struct contribution *contribution = reduction->first;
        reduction->first = contribution->next;
        free(contribution);
    }
    duet__task_free(core, DUET_SUBMITTER, reduction->combining);
    free(reduction);
}

/*
 * Restricts a task that reduces to workers that can initialise its contributions. DUET_ENOWORKER
 * with a message: none can; DUET_EINVAL: it also uses the handle in another way.
 */
int duet__reduction_restrict(struct duet_runtime *core, struct duet_task *task,
                             struct duet_message *message)
{
    uint64_t kinds = core->masks[task->mask].kinds, own = kinds;
    for (unsigned i = 0; i < task->access_count; i++) {
        const struct access *access = &task->accesses[i];
        if (!(access->mode & ACCESS_REDUCES))
            continue;
        if (access->mode != DUET_REDUCE)
            return duet_fail(message, DUET_EINVAL,
                             "a %s task reduces handle %llu and also uses it in another way",
                             duet_task_kernel(task), (unsigned long long)access->handle->id);
        const struct reduction *reduction = access->handle->reduction;
        const uint64_t known = atomic_load_explicit(&task->klass->barred, memory_order_relaxed);
        const uint64_t barred = kinds & ~reduction->kinds;
        if (barred & ~known) { /* once a class: all threads that submit its tasks share the cache
                                  line */
            atomic_store_explicit(&task->klass->barrier, reduction->init, memory_order_relaxed);
            atomic_fetch_or_explicit(&task->klass->barred, barred, memory_order_relaxed);
        }
        kinds &= reduction->kinds;
    }
    if (!kinds)
        return duet_fail(message, DUET_ENOWORKER,
                         "no worker can run kernel %s and also initialise what it reduces",
                         duet_task_kernel(task));
    if (kinds != own && duet__mask_find(core, kinds, &task->mask))
        return duet_fail(message, DUET_ENOMEM,
                         "tasks are restricted to more than %d different sets of workers",
                         MASKS_MAX);
    return DUET_OK;
}

/* ------------------------------------------------------------------------------------------- */
/* Taking a contribution                                                                        */

/* Frees the data of a contribution that no task uses, when nothing of it is in flight. */
static void contribution_drop(struct duet_view *view, struct duet_handle *data)
{
    struct duet_task *task = duet__unregistering_new(view->core, data);
    if (!task)
        return; /* it stays until the runtime is closed */
    duet__count_internal(view, 1);
    duet__link_in(view, task);
}

static void set_users(struct duet_handle *data, uint32_t users)
{
    spin_lock(&data->lock);
    data->active = users;
    data->active_mode = DUET_RW;
    spin_unlock(&data->lock);
}

/*
 * Takes a free contribution in this worker's memory, the worker's own if there is one. NULL: none
 * is free.
 */
static struct contribution *take_free(struct duet_handle *whole, const struct worker *worker)
{
    struct contribution *found = NULL;
    spin_lock(&whole->lock);
    for (struct contribution *c = whole->reduction->first; c; c = c->next)
        if (!c->busy && c->node == worker->node && (!found || c->worker == worker->index) &&
            !atomic_load_explicit(&c->data->poisoned, memory_order_relaxed))
            found = c;
    if (found) {
        found->busy = true;
        found->worker = worker->index;
    }
    spin_unlock(&whole->lock);
    return found;
}

static struct contribution *contribution_make(struct duet_runtime *core, struct duet_handle *whole,
                                              const struct worker *worker)
{
    struct contribution *made = calloc(1, sizeof *made);
    if (made)
        made->data = duet__temporary_new(core, whole->rows, whole->cols, whole->element_bytes);
    if (!made || !made->data) {
        free(made);
        return NULL;
    }
    atomic_fetch_add_explicit(&core->registered_bytes, made->data->bytes, memory_order_relaxed);
    made->data->contribution = made;
    made->whole = whole;
    made->node = worker->node;
    made->worker = worker->index;
    made->busy = true;
    spin_lock(&whole->lock);
    struct contribution **at = &whole->reduction->first;
    if (!*at)
        whole->active++; /* one access for all contributions */
    while (*at && (*at)->node <= made->node)
        at = &(*at)->next;
    made->next = *at;
    *at = made;
    spin_unlock(&whole->lock);
    return made;
}

/*
 * Makes the task that initialises a contribution, to be run by this worker now. NULL: the run
 * failed.
 */
static struct duet_task *initialising_task(struct duet_view *view, const struct worker *worker,
                                           const struct contribution *contribution)
{
    struct duet_task *task;
    struct duet_message message = {""};
    const struct duet_access access = {contribution->data, DUET_W};
    const struct duet_task_desc desc = {.codelet = contribution->whole->reduction->init,
                                        .accesses = &access,
                                        .access_count = 1};
    int error = duet__task_new(view->core, view->by, &desc, &task, &message);
    if (error) {
        duet__fail_run(view->core, error, "handle %llu cannot be reduced: %s",
                       (unsigned long long)contribution->whole->id, message.text);
        return NULL;
    }
    duet__count_internal(view, 1);
    duet__link_alone(view->core, task, view->now);
    task->modes = TASK_INITIALISES;
    task->state = TASK_TAKEN;
    task->worker = worker->index;
    task->predicted_s = duet__expected_s(task, worker->arch);
    return task;
}

/*
 * Replaces the handle of an access by a contribution. Returns true if that has to be initialised.
 */
static bool contribute(struct duet_view *view, struct worker *worker, struct access *access)
{
    struct duet_handle *whole = access->handle;
    struct contribution *contribution = take_free(whole, worker);
    if (!contribution)
        contribution = contribution_make(view->core, whole, worker);
    if (!contribution) {
        duet__fail_run(view->core, DUET_ENOMEM, "no memory left to reduce handle %llu",
                       (unsigned long long)whole->id);
        return false;
    }
    bool fresh = !contribution->ready;
    set_users(contribution->data, fresh ? 2 : 1);
    access->handle = contribution->data;
    access->mode = DUET_RW | ACCESS_REDUCES;
    return fresh;
}

/*
 * Gives a task that reduces, and that a worker has taken, contributions in place of its handles. A
 * new one is initialised first, by a task that has the slot of this one until it has ended.
 */
void duet__contribute(struct duet_view *view, struct worker *worker, struct duet_task *task)
{
    for (unsigned i = 0; i < task->access_count; i++) {
        struct access *access = &task->accesses[i];
        if (access->mode != DUET_REDUCE || !contribute(view, worker, access))
            continue;
        struct duet_task *first = initialising_task(view, worker, access->handle->contribution);
        if (!first)
            return;
        unsigned slot = 0;
        while (worker->slots[slot] != task)
            slot++;
        worker->slots[slot] = first;
        first->prev = task;
        add_own(&worker->taken_ns, (int64_t)(first->predicted_s * 1e9));
        return;
    }
}

/*
 * Gives the slot back to the task that is to use a contribution, which was initialised if `good`.
 */
void duet__initialised(struct duet_view *view, struct worker *worker, struct duet_task *task,
                       struct duet_handle *data, bool good)
{
    data->contribution->ready = good;
    worker->slots[worker->taken++] = task;
    duet__contribute(view, worker, task);
}

/* ------------------------------------------------------------------------------------------- */
/* Returning a contribution */

static void unlist(struct duet_handle *whole, struct contribution *contribution)
{
    struct contribution **at = &whole->reduction->first;
    while (*at != contribution)
        at = &(*at)->next;
    *at = contribution->next;
    if (!whole->reduction->first)
        whole->active--;
}

/*
 * Returns the contribution of a task that has ended; `written`: it has added something. Its access
 * is to the handle again, and stays granted. A contribution without additions is dropped.
 */
void duet__contribution_return(struct duet_view *view, struct access *access, bool written)
{
    struct duet_handle *data = access->handle;
    struct contribution *contribution = data->contribution;
    if (!contribution)
        return; /* no worker has taken the task */
    struct duet_handle *whole = contribution->whole;
    set_users(data, 0);
    spin_lock(&whole->lock);
    contribution->busy = false;
    contribution->added += written;
    bool empty = contribution->added == 0;
    if (empty)
        unlist(whole, contribution);
    spin_unlock(&whole->lock);
    access->handle = whole;
    access->mode = DUET_REDUCE;
    if (empty) {
        data->contribution = NULL;
        free(contribution);
        contribution_drop(view, data);
    }
}

/* Returns the number of the handle to which this is a contribution; 0: it is none. */
uint64_t duet__contribution_whole(const struct duet_handle *data)
{
    return data->contribution ? data->contribution->whole->id : 0;
}

/*
 * Returns the contributions of a task whose device is lost; those that only this task has used are
 * dropped.
 */
void duet__contributions_lost(struct duet_view *view, struct duet_task *task)
{
    for (unsigned i = 0; i < task->access_count; i++)
        if (task->accesses[i].mode & ACCESS_REDUCES)
            duet__contribution_return(view, &task->accesses[i], false);
}

/* ------------------------------------------------------------------------------------------- */
/* Combining                                                                                    */

/*
 * Starts the combination, when no lock is held, if the next access waits for no more tasks but for
 * the contributions. Called when an access has ended, or another one come. The handle's lock is
 * held.
 */
void duet__reduction_closes(struct duet_view *view, struct duet_handle *handle)
{
    struct reduction *reduction = handle->reduction;
    if (handle->active > 1 || !handle->head || !reduction->first)
        return;
    handle->active_mode = DUET_RW | ACCESS_COMBINES;
    /* counted before the task that ends now: the access that follows may be a hint, which counts
       nowhere */
    (void)atomic_fetch_add_explicit(&view->core->submitted, 1, memory_order_relaxed);
    duet__count_internal(view, 1);
    reduction->combining->next = view->over;
    view->over = reduction->combining;
}

/* True if the task is the last combination, which need not wait. Handle lock held. */
bool duet__reduction_enters(struct duet_handle *handle, const struct duet_task *task)
{
    if (handle->active_mode != (DUET_RW | ACCESS_COMBINES) || handle->reduction->last != task)
        return false;
    handle->active_mode = DUET_RW;
    return true;
}

/*
 * Submits the task that adds one contribution to another, or to the handle. Returns false if the
 * run failed.
 */
static bool submit_combination(struct duet_view *view, struct reduction *reduction,
                               struct duet_handle *into, struct duet_handle *from)
{
    struct duet_task *task;
    struct duet_message message = {""};
    const struct duet_access accesses[] = {{into, DUET_RW}, {from, DUET_R}};
    const struct duet_task_desc desc = {.codelet = reduction->combine,
                                        .accesses = accesses,
                                        .access_count = 2};
    int error = duet__task_new(view->core, view->by, &desc, &task, &message);
    if (error) {
        duet__fail_run(view->core, error, "handle %llu cannot be combined: %s",
                       (unsigned long long)into->id, message.text);
        return false;
    }
    duet__count_internal(view, 1);
    task->modes = TASK_COMBINES;
    if (into->reduction == reduction) {
        spin_lock(&into->lock);
        reduction->last = task;
        spin_unlock(&into->lock);
    }
    duet__link_in(view, task);
    return true;
}

/* Adds the second contribution to the first, the fourth to the third and so on. */
static void halve(struct duet_view *view, struct reduction *reduction, struct contribution *list,
                  bool needed)
{
    for (struct contribution *one = list, *other; one && (other = one->next); one = one->next) {
        if (needed)
            (void)submit_combination(view, reduction, one->data, other->data);
        one->next = other->next;
        contribution_drop(view, other->data);
        free(other);
    }
}

/*
 * Combines the contributions to a handle, unless the next access overwrites it or the run has
 * failed.
 */
static void combine_all(struct duet_view *view, struct duet_handle *handle)
{
    struct reduction *reduction = handle->reduction;
    spin_lock(&handle->lock);
    struct contribution *list = reduction->first;
    const bool reads = handle->head->mode & DUET_R;
    const bool needed = reads && !duet__failed(view->core);
    reduction->first = NULL;
    for (struct contribution *c = list; c; c = c->next)
        c->data->contribution = NULL;
    spin_unlock(&handle->lock);
    while (list && list->next)
        halve(view, reduction, list, needed);
    if (!list) /* unreachable: a contribution has kept the handle */
        return;
    struct duet_handle *sum = list->data;
    free(list);
    bool entered = needed && submit_combination(view, reduction, handle, sum);
    contribution_drop(view, sum);
    if (entered)
        return;
    if (reads) {
        spin_lock(&handle->lock);
        duet__poison(view->core, handle);
        spin_unlock(&handle->lock);
    }
    duet__graph_release(view, handle);
}

/* Combines as the end of the reduction's own task. No lock held. */
void duet__combine(struct duet_view *view, struct duet_task *task)
{
    combine_all(view, task->accesses[0].handle);
    duet__count_finished(view, 1);
}

/* ------------------------------------------------------------------------------------------- */
/* After an error                                                                               */

/* True if all additions to the handle are valid in some memory. The handle's lock is held. */
bool duet__contributions_valid(const struct duet_runtime *core, const struct duet_handle *handle)
{
    const struct contribution *c = handle->reduction ? handle->reduction->first : NULL;
    for (; c; c = c->next) {
        uint64_t anywhere = 0;
        if (!c->added)
            continue; /* the contribution is being made, or its first task is at work */
        for (unsigned word = 0; word < core->node_words; word++)
            anywhere |= atomic_load_explicit(&c->data->valid[word], memory_order_relaxed);
        if (!anywhere || atomic_load_explicit(&c->data->poisoned, memory_order_relaxed))
            return false;
    }
    return true;
}

/* Drops the contributions of a handle if one of them, or the handle, is not valid. */
static void reduction_recover(struct duet_view *view, struct duet_handle *handle)
{
    spin_lock(&handle->lock);
    bool combines = handle->active_mode ==
                    (DUET_RW | ACCESS_COMBINES); /* contributions are taken while it holds */
    struct contribution *list = combines ? NULL : handle->reduction->first;
    bool good = !atomic_load_explicit(&handle->poisoned, memory_order_relaxed) &&
                duet__contributions_valid(view->core, handle);
    if (list && !good) {
        duet__poison(view->core, handle);
        handle->reduction->first = NULL;
        handle->active--;
    }
    spin_unlock(&handle->lock);
    while (list && !good) {
        struct contribution *next = list->next;
        list->data->contribution = NULL;
        contribution_drop(view, list->data);
        free(list);
        list = next;
    }
}

/* Recovers all reductions after an error, when no task is left. */
void duet__reductions_recover(struct duet_runtime *core)
{
    struct duet__ops ops = {0};
    struct duet_view view;
    struct reduction *first = NULL;
    spin_lock(&core->registry_lock);
    for (struct duet_handle *h = core->handles; h; h = h->next) {
        if (h->reduction) {
            h->reduction->next = first;
            first = h->reduction;
        }
    }
    spin_unlock(&core->registry_lock);
    view_begin(&view, core, core->ops->now(core->engine), DUET_SUBMITTER, &ops);
    for (; first; first = first->next)
        reduction_recover(&view, first->combining->accesses[0].handle);
    duet__view_flush(&view);
}
