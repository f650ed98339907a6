/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs that are recorded once and submitted again. A graph keeps, of each task, its description
 * and mostly its model: the task's record as duet_submit fills it, with class, restriction and
 * sorted accesses, which only lacks a number. Submitting again copies models.
 *
 * Why a task that is submitted again starts once, and not never:
 *
 * - A graph is used by one thread, without lock. Models are never linked, and workers never see
 *   them, so no thread writes to one while it is copied.
 *
 * - A copy goes into a fresh record of a pool (pool lock). It belongs to the submitting thread
 *   until that links it, and is an ordinary task from then on, under the locks of core/internal.h.
 *   Copies of one model have nothing in common: all of them may be in flight at once.
 *
 * - `pending` of a copy is 1 + the number of its accesses to different handles. Each of these is
 *   counted down once: by duet__link or duet__link_all, which grants it under the handle's lock or
 *   leaves it in the handle's queue, or by the end of the access before it, which takes it from
 *   there under that lock. The last 1 is the linking call's. Whoever counts `pending` down to 0
 *   gives the task to the policy, and nobody else.
 *
 * Also dependencies inside of a graph go through the queues of handles. Edges known before would
 * have to skip accesses between the first writer and the last one of a handle, as all others meet
 * tasks of before and after; an iteration has hardly any, which writes each handle once or twice.
 */
#include "core/internal.h"

enum { ALIGNED = 16, BUNDLE = 32 /* tasks that enter in one call */ };

/* A task as it was described. Arguments, accesses, node and name follow it in its memory. */
struct recorded {
    struct duet_task_desc desc;
    struct duet_task_extra extra;
    struct duet_access *accesses; /* those of `desc` */
    char *args;                   /* likewise */
    struct duet_task *model;      /* its memory */
    bool changed;                 /* since the model was filled */
    bool follows;                 /* it came after others by references */
};

/* An access to a handle, as it was recorded: the handle may have been unregistered since. */
struct use {
    struct duet_handle *recorded;
    struct recorded *task;
    size_t access;
    uint64_t id;
    size_t rows, cols, element_bytes; /* 0: it is no matrix, or a part */
};

struct duet_graph {
    _Atomic(struct duet_runtime *) core; /* NULL: it was closed while this was recorded */
    _Atomic(struct duet_graph *) next;   /* in core->recordings; registry lock */
    struct recorded **tasks;
    size_t count, room;
    struct duet_task **models; /* NULL for a task that is submitted as it is described */
    char *records;             /* memory of the models */
    struct use *uses;          /* by address of the recorded handle */
    size_t use_count;
    bool changed;        /* some task has */
    struct fused *fused; /* all tasks as one; NULL: one by one */
    bool stale;          /* it has to be made again */
    const char *barred;  /* function that no graph can call again; NULL: none */
    bool full;           /* there was no memory for a task */
};

static _Thread_local struct duet_graph *recording; /* by this thread; NULL: it does not */

/* True if the call is to be recorded: not one inside a task that the recording thread runs. */
static bool records(const struct duet_runtime *core)
{
    return recording && recording->core == core && duet__caller(core) == DUET_OUTSIDE;
}

/* ------------------------------------------------------------------------------------------- */
/* Recording                                                                                    */

void duet_graph_free(struct duet_graph *graph)
{
    if (!graph)
        return;
    for (size_t i = 0; i < graph->count; i++)
        free(graph->tasks[i]);
    free(graph->tasks);
    free(graph->models);
    free(graph->records);
    free(graph->uses);
    duet__fused_drop(graph->fused);
    free(graph);
}

/* Frees what the thread records of a runtime that was closed. */
static void drop_closed(void)
{
    if (!recording || recording->core)
        return;
    duet_graph_free(recording);
    recording = NULL;
}

void duet__record_drop(struct duet_runtime *core)
{
    for (struct duet_graph *graph = core->recordings, *next; graph; graph = next) {
        next = graph->next; /* read now: its thread may free it */
        graph->core = NULL;
    }
    drop_closed();
}

void duet__record_bars(struct duet_runtime *core, const char *function)
{
    if (records(core) && !recording->barred)
        recording->barred = function;
}

int duet_graph_begin(struct duet_runtime *runtime)
{
    int error = duet__not_forked(runtime, "duet_graph_begin");
    if (error)
        return error;
    drop_closed();
    if (recording || duet__caller(runtime) != DUET_OUTSIDE)
        return duet__refuse(runtime, DUET_EINVAL, "duet_graph_begin was called %s",
                            recording ? "by a thread that records already: duet_graph_end ends that"
                                      : "inside a task, whose submissions cannot be recorded");
    recording = calloc(1, sizeof *recording);
    if (!recording)
        return duet__refuse(runtime, DUET_ENOMEM, "no memory left for a graph");
    recording->core = runtime;
    spin_lock(&runtime->registry_lock);
    recording->next = runtime->recordings;
    runtime->recordings = recording;
    spin_unlock(&runtime->registry_lock);
    return DUET_OK;
}

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
}

/* Returns a copy of a description with all that it points to, or NULL if there is no memory. */
static struct recorded *recorded_new(const struct duet_task_desc *desc)
{
    static const struct duet_task_extra none = {NULL};
    const struct duet_task_extra *extra = desc->extra ? desc->extra : &none;
    const size_t head = aligned(sizeof(struct recorded)), args = aligned(desc->args_bytes),
                 accesses = desc->access_count * sizeof *desc->accesses,
                 name = extra->name ? strlen(extra->name) + 1 : 0;
    char *memory = malloc(head + args + accesses + sizeof(unsigned) + name);
    if (!memory)
        return NULL;
    struct recorded *task = (struct recorded *)(void *)memory;
    *task = (struct recorded){.desc = *desc, .extra = *extra, .changed = true};
    task->args = memory + head;
    task->accesses = (struct duet_access *)(void *)(task->args + args);
    task->desc.args = task->args;
    task->desc.accesses = task->accesses;
    task->desc.extra = desc->extra ? &task->extra : NULL;
    if (desc->args_bytes)
        memcpy(task->args, desc->args, desc->args_bytes);
    if (accesses)
        memcpy(task->accesses, desc->accesses, accesses);
    for (size_t i = 0; extra->after && i < extra->after_count; i++)
        task->follows |= extra->after[i] != NULL;
    task->extra.ref = NULL;
    task->extra.after = NULL;
    task->extra.after_count = 0;
    if (!extra->done && !extra->name && !extra->iteration && !extra->node)
        task->desc.extra = NULL; /* nothing is left */
    char *behind = (char *)task->accesses + accesses;
    if (extra->node) {
        memcpy(behind, extra->node, sizeof(unsigned));
        task->extra.node = (const unsigned *)(void *)behind;
    }
    if (name)
        task->extra.name = memcpy(behind + sizeof(unsigned), extra->name, name);
    return task;
}

static bool reserve_recorded(struct duet_graph *graph)
{
    if (graph->count < graph->room)
        return true;
    size_t room = 2 * graph->room + 64;
    struct recorded **tasks = realloc(graph->tasks, room * sizeof(struct recorded *));
    if (!tasks)
        return false;
    graph->tasks = tasks;
    graph->room = room;
    return true;
}

struct recorded *duet__record_begin(const struct duet_runtime *core,
                                    const struct duet_task_desc *desc)
{
    return records(core) ? recorded_new(desc) : NULL;
}

void duet__record_end(const struct duet_runtime *core, struct recorded *task, bool submitted)
{
    if (submitted && task && reserve_recorded(recording)) {
        recording->tasks[recording->count++] = task;
        return;
    }
    if (submitted && records(core))
        recording->full = true;
    free(task);
}

/* ------------------------------------------------------------------------------------------- */
/* Making the graph                                                                             */

static int by_handle(const void *left, const void *right)
{
    const struct use *a = left, *b = right;
    uintptr_t first = (uintptr_t)a->recorded, second = (uintptr_t)b->recorded;
    return (first > second) - (first < second);
}

static size_t model_bytes(const struct recorded *task)
{
    return whole_lines(sizeof *task->model + task->desc.access_count * sizeof(struct access));
}

static struct use use_of(struct recorded *task, size_t access)
{
    struct duet_handle *handle = task->accesses[access].handle;
    struct use use = {.recorded = handle, .task = task, .access = access, .id = handle->id};
    if (!handle->layout && !handle->of) {
        use.rows = handle->rows;
        use.cols = handle->cols;
        use.element_bytes = handle->element_bytes;
    }
    return use;
}

/* Makes room for models, and lists the uses of handles. Returns false if there is no memory. */
static bool graph_make(struct duet_graph *graph)
{
    size_t bytes = LINE, uses = 0;
    for (size_t i = 0; i < graph->count; i++) {
        bytes += model_bytes(graph->tasks[i]);
        uses += graph->tasks[i]->desc.access_count;
    }
    graph->models = calloc(graph->count + 1, sizeof(struct duet_task *));
    graph->records = zeroed(bytes);
    graph->uses = malloc((uses + 1) * sizeof *graph->uses);
    if (!graph->models || !graph->records || !graph->uses)
        return false;
    bytes = 0;
    for (size_t i = 0; i < graph->count; i++) {
        struct recorded *task = graph->tasks[i];
        task->model = (struct duet_task *)(void *)(graph->records + bytes);
        bytes += model_bytes(task);
        for (size_t a = 0; a < task->desc.access_count; a++)
            graph->uses[graph->use_count++] = use_of(task, a);
    }
    if (uses)
        qsort(graph->uses, uses, sizeof *graph->uses, by_handle);
    graph->changed = graph->stale = true;
    return true;
}

/* True if the records of such tasks are always alike: scratch is made for each. */
static bool has_model(const struct duet_runtime *core, const struct duet_task_desc *desc)
{
    if (core->gate || core->perturbation > 0 || has_extra(desc))
        return false;
    for (size_t i = 0; i < desc->access_count; i++)
        if (desc->accesses[i].mode == DUET_SCRATCH)
            return false;
    return true;
}

/* Fills the models of tasks that have changed. One that is refused now is refused again later. */
RARE static void graph_refill(struct duet_graph *graph)
{
    for (size_t i = 0; i < graph->count; i++) {
        struct recorded *task = graph->tasks[i];
        if (!task->changed)
            continue;
        task->changed = false;
        bool filled = has_model(graph->core, &task->desc) &&
                      !duet__task_model(graph->core, task->model, &task->desc);
        graph->models[i] = filled ? task->model : NULL;
    }
    graph->changed = false;
}

/* Joins the tasks anew, where they can be one. */
RARE static void graph_fuse(struct duet_graph *graph)
{
    struct fused *before = graph->fused;
    graph->fused = duet__fuse(graph->core, before, graph->models, graph->count);
    duet__fused_drop(before);
    graph->stale = false;
}

int duet_graph_end(struct duet_runtime *runtime, struct duet_graph **out)
{
    *out = NULL;
    if (!records(runtime))
        return duet__refuse(runtime, DUET_EINVAL,
                            "duet_graph_end was called inside a task, or by a thread that records "
                            "no graph: duet_graph_begin begins one");
    struct duet_graph *graph = recording;
    recording = NULL;
    spin_lock(&runtime->registry_lock);
    _Atomic(struct duet_graph *) *at = &runtime->recordings;
    while (*at != graph)
        at = &(*at)->next;
    *at = graph->next;
    spin_unlock(&runtime->registry_lock);
    int error = DUET_OK;
    bool follows = false;
    for (size_t i = 0; i < graph->count; i++)
        follows |= graph->tasks[i]->follows;
    if (graph->barred)
        error = duet__refuse(runtime, DUET_EINVAL,
                             "a graph cannot call %s again, which was called while it was "
                             "recorded: call it before duet_graph_begin or after duet_graph_end",
                             graph->barred);
    else if (follows)
        error = duet__refuse(runtime, DUET_EINVAL,
                             "a recorded task comes after others by references, which a graph has "
                             "not when it is submitted again: let them have data in common");
    else if (graph->full || !graph_make(graph))
        error = duet__refuse(runtime, DUET_ENOMEM, "no memory left for the tasks of a graph");
    if (error)
        duet_graph_free(graph);
    else
        *out = graph;
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Changes                                                                                      */

int duet_graph_set_value(struct duet_graph *graph, size_t task, size_t value, const void *at,
                         size_t bytes)
{
    struct recorded *recorded = task < graph->count ? graph->tasks[task] : NULL;
    const void *old = NULL;
    if (recorded && recorded->desc.args_bytes >= ALIGNED && duet__has_values(recorded->args))
        old = duet_value(recorded->args, value, bytes);
    else if (recorded && !value && bytes == recorded->desc.args_bytes)
        old = recorded->args;
    if (!old || !at || !bytes)
        return duet__refuse(graph->core, DUET_EINVAL,
                            "task %zu of a graph of %zu has no value %zu (from 0) of %zu bytes",
                            task, graph->count, value, bytes);
    graph->stale |= memcmp(old, at, bytes) != 0;
    memcpy(recorded->args + ((const char *)old - recorded->args), at, bytes);
    if (recorded->desc.codelet->asked)
        recorded->changed = graph->changed = true;
    else if (graph->models[task])
        memcpy(recorded->model->args, recorded->args, recorded->desc.args_bytes);
    return DUET_OK;
}

int duet_graph_set_handle(struct duet_graph *graph, struct duet_handle *recorded,
                          struct duet_handle *instead)
{
    const struct use key = {.recorded = recorded};
    struct use *use = graph->use_count
                          ? bsearch(&key, graph->uses, graph->use_count, sizeof key, by_handle)
                          : NULL;
    if (!use)
        return duet__refuse(graph->core, DUET_EINVAL,
                            "no task of the graph used the handle that is to be replaced when it "
                            "was recorded");
    int error = duet__own_data(graph->core, instead, "duet_graph_set_handle");
    if (error)
        return error;
    if (instead->layout || instead->of || use->rows != instead->rows ||
        use->cols != instead->cols || use->element_bytes != instead->element_bytes)
        return duet__refuse(graph->core, DUET_EINVAL,
                            "handle %llu cannot replace handle %llu in a graph: both have to be "
                            "matrices of the same rows, columns and element size, and no parts",
                            (unsigned long long)instead->id, (unsigned long long)use->id);
    while (use > graph->uses && use[-1].recorded == recorded)
        use--;
    for (; use < graph->uses + graph->use_count && use->recorded == recorded; use++) {
        use->task->accesses[use->access].handle = instead;
        use->task->changed = graph->changed = graph->stale = true;
    }
    return DUET_OK;
}

/* ------------------------------------------------------------------------------------------- */
/* Submitting again                                                                             */

/* Fills fresh records, linked by `next`, and gives them numbers from `id` on. */
static HOT void copy_models(struct duet_task *task, struct duet_task *const *models, uint64_t id)
{
    for (; task; task = task->next, models++) {
        const struct duet_task *model = *models;
        struct duet_task *next = task->next;
        memcpy(task, model, sizeof *task);
        task->next = next;
        task->id = id++;
        for (unsigned i = 0; i < model->access_count; i++)
            task->accesses[i] = model->accesses[i];
    }
}

/*
 * Submits tasks that have models, from *index on: as many as have some, and as the window has room
 * for, but no more than a bundle. *index is then the next task.
 */
static int submit_models(struct duet_graph *graph, size_t *index)
{
    struct duet_runtime *core = graph->core;
    struct duet_task *const *models = graph->models + *index;
    uint64_t room = duet__window_room(core);
    if (!room) {
        int error = duet__window_here(core);
        if (error)
            return error;
        room = duet__window_room(core);
    }
    const size_t most = room > BUNDLE ? BUNDLE : room ? (size_t)room : 1;
    size_t count = 1;
    while (count < most && *index + count < graph->count && models[count])
        count++;
    struct duet_task *first = duet__tasks_alloc(core, models, count);
    if (!first)
        return duet__refuse(core, DUET_ENOMEM, "no memory left for another task");
    copy_models(first, models, take_numbers(core, count));
    *index += count;
    if (core->ops->submitted_all && !core->held) {
        core->ops->submitted_all(core->engine, first);
        return DUET_OK;
    }
    while (first) {
        struct duet_task *task = first;
        first = task->next; /* the task may run and be freed */
        core->enter(core->enter_for, task);
    }
    return DUET_OK;
}

int duet_graph_submit(struct duet_runtime *runtime, struct duet_graph *graph)
{
    if (!graph || graph->core != runtime)
        return duet__refuse(runtime, DUET_EINVAL, "duet_graph_submit needs a graph %s",
                            graph ? "of this runtime (it is of another one)" : "(it is NULL)");
    int error = duet__not_forked(runtime, "duet_graph_submit");
    if (error)
        return error;
    const bool plain = records(runtime) || duet__caller(runtime) != DUET_OUTSIDE;
    if (graph->changed)
        graph_refill(graph);
    if (graph->stale)
        graph_fuse(graph);
    if (graph->fused && !plain)
        return duet__fused_submit(runtime, graph->fused);
    for (size_t i = 0; i < graph->count && !error;)
        error = plain || !graph->models[i] ? duet_submit(runtime, &graph->tasks[i++]->desc)
                                           : submit_models(graph, &i);
    return error;
}
