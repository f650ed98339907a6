/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks of a graph that one device alone can run, submitted as a single task: it uses the data of
 * all, and its function calls theirs in order. The engine may then launch all kernels at once.
 *
 * A struct fused is not changed once its task was submitted: each change of a graph makes another
 * one, as tasks of the same graph may be in flight with the arguments of before.
 */
#include <stdio.h>

#include "core/internal.h"
#include "core/repeat.h"

/* One of a graph's tasks: how its function is called. */
struct part {
    duet_kernel_fn run;
    const char *kernel;
    size_t count; /* number of the task's buffers */
    bool bare;    /* the task has no arguments */
    _Alignas(16) char args[DUET_ARGS_INLINE];
};

struct fused {
    _Atomic(unsigned) users; /* the graph, and each task in flight */
    unsigned worker;
    struct duet__repeat *repeat;
    uint64_t version; /* number among the structs that its graph has had */
    double flops;     /* of all tasks; 0: those of some kernel are not counted */
    struct duet_task_desc desc;
    struct duet_access *accesses; /* those of `desc` */
    size_t *places;               /* for each access of each task, its place in `accesses` */
    struct duet_buffer *room;     /* buffers of the function that the device's thread calls */
    struct part parts[];
};

/* An access of a recorded task, to be joined with others to the same handle. */
struct join {
    struct duet_handle *handle;
    size_t number; /* among the accesses of all tasks */
    uint8_t mode;  /* 0: that of an earlier access of the same task includes it */
};

void duet__fused_drop(struct fused *fused)
{
    if (!fused || atomic_fetch_sub(&fused->users, 1) > 1)
        return;
    if (atomic_fetch_sub(&fused->repeat->submitters, 1) == 1)
        duet__repeat_drop(fused->repeat);
    free(fused);
}

/* ------------------------------------------------------------------------------------------- */
/* The joined task                                                                              */

static struct fused *fused_of(const void *args)
{
    return *(struct fused *const *)args;
}

static double fused_flops(const void *args)
{
    return fused_of(args)->flops;
}

void duet__part_failed(const struct duet_call *call, size_t kernel, int error, const char *why)
{
    (void)duet_fail(call->message, error, "%s (task %zu of the graph, from 0): %s",
                    fused_of(call->args)->parts[kernel].kernel, kernel,
                    why && *why ? why : duet_strerror(error));
}

/* The function of the joined task: calls those of all tasks, on the thread of the device. */
static int fused_run(const struct duet_call *call)
{
    const struct fused *fused = fused_of(call->args);
    const size_t *place = fused->places;
    int error = DUET_OK;
    for (size_t i = 0; i < fused->repeat->kernels && !error; i++) {
        const struct part *part = &fused->parts[i];
        struct duet_message message;
        struct duet_call own = *call;
        message.text[0] = '\0';
        for (size_t b = 0; b < part->count; b++)
            fused->room[b] = call->buffers[*place++];
        own.args = part->bare ? NULL : part->args;
        own.buffers = fused->room;
        own.buffer_count = part->count;
        own.status = call->status ? call->status + i : NULL;
        own.message = &message;
        error = part->run(&own);
        if (error)
            duet__part_failed(call, i, error, message.text);
    }
    return error;
}

static void fused_end(struct duet_runtime *runtime, void *fused, int status)
{
    duet__fused_drop(fused);
}

void duet__fused_left(const struct task_extra *extra)
{
    if (extra->done == fused_end)
        duet__fused_drop(extra->done_arg);
}

int duet__fused_submit(struct duet_runtime *core, struct fused *fused)
{
    const struct duet_task_extra extra = {.done = fused_end, .done_arg = fused};
    struct duet_task_desc desc = fused->desc;
    desc.extra = &extra;
    desc.args = &fused;
    atomic_fetch_add(&fused->users, 1);
    int error = duet__submit_here(core, &desc);
    if (error)
        duet__fused_drop(fused);
    return error;
}

static bool is_fused(const struct duet_codelet *codelet)
{
    return codelet->flops == fused_flops;
}

struct duet__repeat *duet__task_repeat(const struct duet_task *task, uint64_t *version)
{
    if (!is_fused(task->klass->codelet))
        return NULL;
    const struct fused *fused = fused_of(task_args(task));
    *version = fused->version;
    return fused->repeat;
}

/* ------------------------------------------------------------------------------------------- */
/* Joining tasks                                                                                */

/* Returns the only worker of a set; -1 if there are several. */
static int only_worker(const struct duet_runtime *core, uint8_t mask)
{
    int only = -1;
    for (unsigned w = 0; w < core->machine.worker_count; w++) {
        if (!(core->masks[mask].workers[w / 64] >> (w % 64) & 1))
            continue;
        if (only >= 0)
            return -1;
        only = (int)w;
    }
    return only;
}

/* Returns the worker that alone can run these tasks, and can run them as one; -1: there is none. */
static int common_worker(const struct duet_runtime *core, struct duet_task *const *models,
                         size_t count)
{
    const struct duet_task *first = count > 1 && core->ops->repeats ? models[0] : NULL;
    const int worker = first ? only_worker(core, first->mask) : -1;
    bool can = worker >= 0 && core->ops->repeats(core->engine, (unsigned)worker);
    for (size_t i = 0; can && i < count; i++) {
        const struct duet_task *task = models[i];
        can = task && task->mask == first->mask && !task->modes && task->klass->codelet->capturable;
        for (unsigned a = 0; can && a < task->access_count; a++)
            can = !task->accesses[a].handle->layout;
    }
    return can ? worker : -1;
}

/* Returns the codelet of joined tasks, of `count` tasks each, for this worker; NULL: there is none,
   as the application has another one of that name, or for lack of memory. */
static struct duet_codelet *fused_codelet(struct duet_runtime *core, int worker, size_t count)
{
    char name[DUET_NAME_MAX];
    const struct duet_implementation one =
        {.arch = core->machine.archs[core->workers[worker].arch].backend, .run = fused_run};
    const struct duet_codelet_desc desc = {.name = name,
                                           .implementations = &one,
                                           .implementation_count = 1,
                                           .flops = fused_flops};
    (void)snprintf(name, sizeof name, "graph of %u tasks", (unsigned)count);
    struct duet_codelet *codelet = duet_codelet_find(core, name);
    if (!codelet && duet_register_codelet(core, &desc, &codelet))
        codelet = duet_codelet_find(core, name); /* another thread has been faster */
    return codelet && is_fused(codelet) ? codelet : NULL;
}

static int joins_by_handle(const void *left, const void *right)
{
    const struct join *a = left, *b = right;
    uintptr_t first = (uintptr_t)a->handle, second = (uintptr_t)b->handle;
    if (first != second)
        return first > second ? 1 : -1;
    return (a->number > b->number) - (a->number < b->number);
}

/*
 * Joins the accesses of all tasks: data that is only read is read, data whose first access writes
 * it as a whole is written, all other data is read and written. Returns false if there is no
 * memory.
 */
static bool join_accesses(struct fused *fused, struct duet_task *const *models)
{
    struct join *joins = malloc((fused->repeat->accesses + 1) * sizeof *joins);
    struct duet_access *access = fused->accesses;
    size_t count = 0;
    if (!joins)
        return false;
    for (size_t i = 0; i < fused->repeat->kernels; i++)
        for (unsigned a = 0; a < models[i]->access_count; a++, count++)
            joins[count] =
                (struct join){models[i]->accesses[a].handle, count, models[i]->accesses[a].mode};
    qsort(joins, count, sizeof *joins, joins_by_handle);
    for (size_t i = 0; i < count; i++) {
        if (!i || joins[i].handle != joins[i - 1].handle)
            *access++ = (struct duet_access){joins[i].handle, (enum duet_mode)joins[i].mode};
        else if (access[-1].mode == DUET_R && (joins[i].mode & DUET_W))
            access[-1].mode = DUET_RW;
        fused->places[joins[i].number] = (size_t)(access - fused->accesses) - 1;
    }
    fused->desc.access_count = (size_t)(access - fused->accesses);
    free(joins);
    return true;
}

static void fill_parts(struct fused *fused, struct duet_task *const *models, unsigned arch)
{
    bool counted = true;
    fused->desc.priority = models[0]->priority;
    for (size_t i = 0; i < fused->repeat->kernels; i++) {
        const struct duet_task *model = models[i];
        const struct duet_codelet *codelet = model->klass->codelet;
        fused->parts[i] = (struct part){.run = codelet->run[arch],
                                        .kernel = codelet->name,
                                        .count = model->access_count,
                                        .bare = model->bare};
        memcpy(fused->parts[i].args, model->args, sizeof model->args);
        counted = counted && model->klass->counts_flops;
        fused->flops += model->work;
        if (model->priority > fused->desc.priority)
            fused->desc.priority = model->priority;
    }
    if (!counted)
        fused->flops = 0;
}

/* Returns a struct with room for these tasks. What all versions share is that of `before`; NULL:
   it is made. Returns NULL if there is no memory. */
static struct fused *fused_new(const struct fused *before, struct duet_task *const *models,
                               size_t count)
{
    const size_t each = sizeof(struct duet_buffer) + sizeof(struct duet_access) + sizeof(size_t);
    size_t accesses = 0;
    for (size_t i = 0; i < count; i++)
        accesses += models[i]->access_count;
    struct duet__repeat *repeat = before ? before->repeat : malloc(sizeof *repeat);
    struct fused *fused = calloc(1, sizeof *fused + count * sizeof(struct part) + accesses * each);
    if (!repeat || !fused) {
        free(fused);
        free(before ? NULL : repeat);
        return NULL;
    }
    if (!before)
        *repeat = (struct duet__repeat){.users = 1, .kernels = count, .accesses = accesses};
    atomic_fetch_add(&repeat->submitters, 1);
    fused->users = 1;
    fused->repeat = repeat;
    fused->version = before ? before->version + 1 : 1;
    fused->room = (struct duet_buffer *)(void *)&fused->parts[count];
    fused->accesses = (struct duet_access *)(void *)(fused->room + accesses);
    fused->places = (size_t *)(void *)(fused->accesses + accesses);
    return fused;
}

/* True if the joined task can be submitted, and for its worker alone: its data fits there. */
static bool suits(struct duet_runtime *core, struct fused *fused)
{
    struct duet_task_desc desc = fused->desc;
    if (desc.access_count > UINT16_MAX)
        return false;
    struct duet_task *model =
        zeroed(whole_lines(sizeof *model + desc.access_count * sizeof(struct access)));
    desc.args = &fused;
    bool can = model && !duet__task_model(core, model, &desc) &&
               only_worker(core, model->mask) == (int)fused->worker;
    free(model);
    return can;
}

struct fused *duet__fuse(struct duet_runtime *core, const struct fused *before,
                         struct duet_task *const *models, size_t count)
{
    const int worker = common_worker(core, models, count);
    struct duet_codelet *codelet = worker >= 0 ? fused_codelet(core, worker, count) : NULL;
    if (before && before->worker != (unsigned)worker)
        before = NULL;
    struct fused *fused = codelet ? fused_new(before, models, count) : NULL;
    if (!fused)
        return NULL;
    const unsigned arch = core->workers[worker].arch;
    fused->worker = (unsigned)worker;
    fused->desc = (struct duet_task_desc){.codelet = codelet,
                                          .accesses = fused->accesses,
                                          .args_bytes = sizeof fused, /* of the pointer */
                                          .where = UINT64_C(1) << arch};
    fill_parts(fused, models, arch);
    if (join_accesses(fused, models) && suits(core, fused))
        return fused;
    duet__fused_drop(fused);
    return NULL;
}
