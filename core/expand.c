/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that expand into children on blocks of their data. The expanded task keeps its accesses,
 * and thereby its successors waiting, until its children are finished and their blocks are back in
 * the host's memory. Blocks are handles of their own, so that children depend on each other only.
 */
#include "core/expand.h"
#include "core/stale.h"

enum { BUFFERS = 16 }; /* accesses of a task up to which expanding needs no allocation */

/* ------------------------------------------------------------------------------------------- */
/* Calls of the application while a task expands */

/*
 * True if the task may write the handle. The first access to a handle carries the modes of all of
 * them.
 */
static bool may_write(const struct duet_task *task, const struct duet_handle *handle)
{
    for (unsigned i = 0; i < task->access_count; i++)
        if (task->accesses[i].handle == handle && (task->accesses[i].mode & DUET_W))
            return true;
    return false;
}

/* Returns the blocks of an access, which are those of its handle. NULL: no memory. */
static struct parts *blocks_of(struct duet_expansion *expansion, size_t index)
{
    struct duet_handle *whole = expansion->task->accesses[index].handle;
    struct parts *blocks = expansion->blocks;
    while (blocks && blocks->whole != whole)
        blocks = blocks->next;
    if (blocks)
        return blocks;
    blocks = duet__parts_new(whole, expansion);
    if (blocks) {
        blocks->writable = may_write(expansion->task, whole);
        blocks->next = expansion->blocks;
        expansion->blocks = blocks;
    }
    return blocks;
}

int duet_expand_block(struct duet_expansion *expansion, size_t index, size_t row, size_t col,
                      size_t rows, size_t cols, struct duet_handle **out)
{
    const struct duet_task *task = expansion->task;
    const struct duet_part part = {row, col, rows, cols};
    *out = NULL;
    if (index >= task->access_count)
        return duet_fail(expansion->message, DUET_EINVAL, "access %zu of a task with %u accesses",
                         index, task->access_count);
    struct parts *blocks = blocks_of(expansion, index);
    if (expansion->block_count == UINT16_MAX)
        return duet_fail(expansion->message, DUET_EINVAL, "more than %d blocks in one expansion",
                         UINT16_MAX);
    if (!blocks)
        return duet_fail(expansion->message, DUET_ENOMEM, "no memory left for another block");
    struct duet_message message = {""};
    int error = duet__part_add(expansion->core, blocks, &part, FULL, &message);
    if (error)
        return duet_fail(expansion->message, error, "access %zu: %s", index, message.text);
    expansion->block_count++;
    *out = blocks->handles[blocks->count - 1];
    return DUET_OK;
}

static int check_child(struct duet_expansion *expansion, const struct duet_task_desc *desc)
{
    if (expansion->any_data)
        return DUET_OK;
    for (size_t i = 0; desc && desc->accesses && i < desc->access_count; i++) {
        const struct duet_handle *handle = desc->accesses[i].handle;
        if (handle && desc->accesses[i].mode == DUET_SCRATCH)
            continue; /* only its shape counts */
        if (!handle || !handle->of || handle->of->expansion != expansion)
            return duet_fail(expansion->message, DUET_EINVAL,
                             "access %zu of a child is no block of the task that expands", i);
        if ((desc->accesses[i].mode & DUET_W) && !handle->of->writable)
            return duet_fail(expansion->message, DUET_EINVAL,
                             "access %zu of a child writes a block of data that the task may only "
                             "read",
                             i);
    }
    return DUET_OK;
}

/*
 * Returns the task of a reference if it cannot end before a child of the expansion: an ancestor of
 * the child, or a task on top of which an ancestor waits on a worker's stack. Else NULL.
 */
static const struct duet_task *waits_for_child(const struct duet_expansion *expansion,
                                               const struct duet_ref *ref)
{
    const struct worker *seen = NULL; /* worker whose stack below was looked at */
    for (const struct duet_expansion *up = expansion; up; up = up->task->parent) {
        const struct duet_expansion *below = up;
        for (; below && (below == up || up->self != seen); below = below->below)
            if (below->task->extra && below->task->extra->ref == ref)
                return below->task;
        seen = up->self ? up->self : seen;
    }
    return NULL;
}

/* Refuses a child that comes after a task that waits for it. */
static int check_after(struct duet_expansion *expansion, const struct duet_task_desc *desc)
{
    const struct duet_task_extra *extra = desc->extra;
    for (size_t i = 0; extra->after && i < extra->after_count; i++) {
        struct task_says says;
        const struct duet_task *task =
            extra->after[i] ? waits_for_child(expansion, extra->after[i]) : NULL;
        if (task)
            return duet_fail(expansion->message, DUET_EINVAL,
                             "a child comes after %s, which ends only after that child: leave this "
                             "out of `after`",
                             duet__task_says(expansion->core, task, &says));
    }
    return DUET_OK;
}

/* Submits a child as an ordinary task. */
__attribute__((noinline)) static int submit_child(struct duet_expansion *expansion,
                                                  const struct duet_task_desc *desc)
{
    struct duet_runtime *core = expansion->core;
    struct duet_task *task;
    int error = check_child(expansion, desc);
    int by = expansion->self ? (int)expansion->self->index : expansion->view->by;
    if (error)
        return duet__not_made(desc, error);
    error = desc && desc->extra ? check_after(expansion, desc) : DUET_OK;
    if (error)
        return duet__not_made(desc, error);
    error = duet__task_new(core, by, desc, &task, expansion->message);
    if (error)
        return error;
    task->parent = expansion;
    if (core->priorities == DUET__BOTTOM_LEVEL)
        task->priority = expansion->task->priority;
    if (task->extra && task->extra->edge_count)
        duet__extra_enlist(core, task);
    atomic_fetch_add_explicit(&expansion->unfinished, 1, memory_order_relaxed);
    if (expansion->self) {
        expansion->any = true;
        core->ops->submitted(core->engine, task);
    } else {
        expansion->view->ops->submissions++;
        duet__link_in(expansion->view, task);
    }
    return DUET_OK;
}

int duet_expand_submit(struct duet_expansion *expansion, const struct duet_task_desc *desc)
{
    struct duet_runtime *core = expansion->core;
    if (!expansion->self || !core->ops->run_kept ||
        !duet__nested_submit(core, expansion->self, desc, expansion))
        return submit_child(expansion, desc);
    expansion->any = true;
    return DUET_OK;
}

struct duet_message *duet__expansion_message(struct duet_expansion *expansion)
{
    return expansion->message;
}

/* Says that the expanding task leaves nothing valid. Any thread, before its last child ends. */
void duet__expansion_failed(struct duet_expansion *expansion, int error)
{
    int none = DUET_OK;
    (void)atomic_compare_exchange_strong(&expansion->failed, &none, error);
}

/* ------------------------------------------------------------------------------------------- */
/* Expanding */

/* Calls the codelet's function with the buffers of the host. */
static int expand_call(struct duet_expansion *expansion)
{
    struct duet_task *task = expansion->task;
    struct duet_buffer few[BUFFERS], *buffers = few;
    const size_t count = task->access_count ? duet__task_buffer_count(task) : 0;
    if (count > BUFFERS)
        buffers = malloc(count * sizeof *buffers);
    if (!buffers)
        return DUET_ENOMEM;
    if (count)
        duet__laid_buffers(task, DUET_HOST, NULL, buffers);
    const struct duet_call arguments = {.runtime = expansion->core,
                                        .args = task_args(task),
                                        .buffers = buffers,
                                        .buffer_count = count,
                                        .message = expansion->message};
    int status = task->klass->codelet->expand(expansion, &arguments);
    if (buffers != few)
        free(buffers);
    return status;
}

/* Ends a task that cannot even begin to expand, with its data invalid. */
static void expansion_refused(struct duet_view *view, struct duet_task *task)
{
    duet__graph_finish(view, task, DUET_HOST, false, false);
    duet__task_end(view, task);
}

/* Expands a task that a worker of the host's memory has taken. No lock held. */
void duet__expand(struct duet_view *view, struct duet_task *task)
{
    struct duet_expansion *expansion = calloc(1, sizeof *expansion + sizeof *expansion->message);
    int status = DUET_ENOMEM;
    if (expansion) {
        expansion->message = (struct duet_message *)(expansion + 1);
        expansion->core = view->core;
        expansion->task = task;
        expansion->view = view;
        atomic_init(&expansion->unfinished, 1);
        status = expand_call(expansion);
        expansion->view = NULL;
    }
    if (status) {
        if (expansion)
            duet__expansion_failed(expansion, status);
        duet__count_failure(view->core, task, status, false);
        duet__fail_task(view->core, status, "task %llu (%s) cannot expand: %s",
                        (unsigned long long)task->id, duet_task_kernel(task),
                        expansion && *expansion->message->text ? expansion->message->text
                                                               : duet_strerror(status));
    }
    if (!expansion)
        expansion_refused(view, task);
    else if (duet__child_finished(view, expansion))
        duet__task_end(view, task);
}

/* ------------------------------------------------------------------------------------------- */
/* Ending                                                                                       */

/* Frees blocks that nobody uses. */
static void blocks_free(struct duet_expansion *expansion)
{
    while (expansion->blocks)
        expansion->blocks = duet__parts_remove(expansion->core, expansion->blocks);
}

/* Frees an expansion whose children are finished. Returns its task, which is to be ended. */
static struct duet_task *expansion_finish(struct duet_view *view, struct duet_expansion *expansion)
{
    struct duet_task *task = expansion->task;
    int error = atomic_load_explicit(&expansion->failed, memory_order_acquire);
    duet__extra_failed(task, error);
    if (error && task->parent)
        duet__expansion_failed(task->parent, error);
    blocks_free(expansion);
    free(expansion);
    duet__graph_finish(view, task, DUET_HOST, false, !error);
    return task;
}

/* Makes the host's replica, which is valid, the only valid one. No lock held. */
static void host_alone(struct duet_runtime *core, struct duet_handle *handle)
{
    struct stale stale;
    spin_lock(&handle->lock);
    bool devices =
        bit_test(handle->valid, DUET_HOST) && invalidate_others(core, handle, DUET_HOST, &stale);
    spin_unlock(&handle->lock);
    if (devices)
        tell_stale(core, handle, &stale);
}

/*
 * Invalidates other replicas of writable blocks, as a task that has waited may change them in the
 * host's memory.
 */
static void open_blocks(const struct duet_expansion *expansion)
{
    for (const struct parts *blocks = expansion->blocks; blocks; blocks = blocks->next)
        for (unsigned b = 0; blocks->writable && b < blocks->count; b++)
            host_alone(expansion->core, blocks->handles[b]);
}

/* Ends the acquisition of all blocks, which are then in the host's memory. */
static void gather_end(struct duet_view *view, struct duet_task *gather)
{
    struct duet_expansion *expansion = gather->parent;
    if (duet__reads_poisoned(gather))
        duet__expansion_failed(expansion, DUET_EDATA);
    duet__task_free(view->core, view->by, gather);
    if (expansion->self) {
        open_blocks(expansion);
        duet__body_ready(view, expansion);
        return;
    }
    duet__task_end(view, expansion_finish(view, expansion));
}

/* Returns an acquisition of all blocks, to bring them to the host's memory. NULL: no memory. */
static struct duet_task *gather_new(struct duet_expansion *expansion)
{
    unsigned i = 0;
    struct duet_task *task = duet__acquisition_new(expansion->core, expansion->block_count);
    if (!task)
        return NULL;
    task->parent = expansion;
    task->over = gather_end;
    for (const struct parts *blocks = expansion->blocks; blocks; blocks = blocks->next) {
        for (unsigned b = 0; b < blocks->count; b++, i++) {
            task->accesses[i].handle = blocks->handles[b];
            task->accesses[i].mode = DUET_R;
        }
    }
    return task;
}

/*
 * Brings all blocks to the host's memory. Returns false if there is no memory: the run has then
 * failed.
 */
static bool gather_blocks(struct duet_view *view, struct duet_expansion *expansion)
{
    struct duet_task *task = gather_new(expansion);
    if (!task) {
        expansion->blocks = NULL; /* they stay until the runtime is closed */
        expansion->block_count = 0;
        duet__expansion_failed(expansion, DUET_ENOMEM);
        duet__fail_task(view->core, DUET_ENOMEM, "no memory left to end task %llu (%s)",
                        (unsigned long long)expansion->task->id, duet_task_kernel(expansion->task));
        return false;
    }
    duet__bring_home(view, task);
    duet__arrived(view, task, 1);
    return true;
}

/*
 * Counts the end of a child, or of the expansion itself; the last one brings the results to the
 * host's memory. Returns the task that expanded if duet__task_end has to end it now, else NULL.
 */
struct duet_task *duet__child_finished(struct duet_view *view, struct duet_expansion *expansion)
{
    if (atomic_fetch_sub_explicit(&expansion->unfinished, 1, memory_order_acq_rel) > 1)
        return NULL;
    if (expansion->self) {
        duet__children_ended(view, expansion);
        return NULL;
    }
    return expansion->block_count && gather_blocks(view, expansion)
               ? NULL
               : expansion_finish(view, expansion);
}

/* ------------------------------------------------------------------------------------------- */
/*
 * Tasks that wait for their children. The engine runs such a task like a kernel, by duet__body_run,
 * on a stack that can be left: at a wait the engine asks duet__next for other tasks of the worker
 * and runs them on top, until that says RESUME. The core says so when the children of the worker's
 * newest task have ended and their blocks are back in the host's memory. So tasks end in the
 * opposite order of that in which they began, real or simulated: one that could go on stays while
 * another runs on top of it. Nobody waits for ever, because children depend on each other alone,
 * and because a worker that waits takes whatever it would take otherwise.
 */

/*
 * Lets the worker go on with the task: its last child, or the acquisition of its blocks, has ended.
 */
void duet__body_ready(struct duet_view *view, struct duet_expansion *body)
{
    unsigned worker = body->self->index;
    note_released(view, body->task, DUET_RELEASE_TASK);
    /* it may have ended, and be gone, from here on */
    atomic_store_explicit(&body->ready, true, memory_order_release);
    if (view->by != (int)worker) /* otherwise the worker asks again before it rests: duet__next */
        duet__view_wake(view, worker);
}

void duet__children_ended(struct duet_view *view, struct duet_expansion *body)
{
    if (body->block_count == 0 || !gather_blocks(view, body))
        duet__body_ready(view, body);
}

/* Ends the wait of a task whose children have ended by now. */
__attribute__((noinline)) static void end_wait(struct duet_expansion *body)
{
    struct duet_runtime *core = body->core;
    struct duet__ops ops = {0};
    struct duet_view view;
    view_begin(&view, core, core->ops->now(core->engine), (int)body->self->index, &ops);
    duet__children_ended(&view, body);
    duet__view_flush(&view);
}

/* Waits for children, some of which were submitted since the last wait. */
static void wait_for_children(struct duet_expansion *body, bool last)
{
    struct duet_runtime *core = body->core;
    body->any = false;
    if (body->kept) {
        core->ops->run_kept(core->engine);
        body->self->nested.running = body->task->klass;
    }
    if (body->block_count == 0 &&
        atomic_load_explicit(&body->unfinished, memory_order_acquire) == 1)
        return;
    atomic_store_explicit(&body->ready, false, memory_order_relaxed);
    if (atomic_fetch_sub_explicit(&body->unfinished, 1, memory_order_acq_rel) == 1)
        end_wait(body);
    if (!atomic_load_explicit(&body->ready, memory_order_acquire))
        core->ops->await(core->engine, last);
    atomic_store_explicit(&body->unfinished, 1, memory_order_relaxed);
}

int duet_expand_wait(struct duet_expansion *expansion)
{
    struct duet_runtime *core = expansion->core;
    if (!expansion->self) {
        duet__fail_task(core, DUET_EINVAL,
                        "duet_expand_wait was called in task %llu (%s), whose codelet does not say "
                        "that it waits: set `waits` in its struct duet_codelet_desc",
                        (unsigned long long)expansion->task->id, duet_task_kernel(expansion->task));
        return DUET_EINVAL;
    }
    if (expansion->any)
        wait_for_children(expansion, false);
    return duet__failed(core) ? duet__run_error(core)
                              : atomic_load_explicit(&expansion->failed, memory_order_acquire);
}

/* Calls the codelet's function without buffers. */
static int call_alone(struct duet_expansion *body)
{
    const struct duet_task *task = body->task;
    const struct duet_call call = {.runtime = body->core,
                                   .args = task_args(task),
                                   .message = body->message};
    return task->klass->codelet->expand(body, &call);
}

int duet__body_run(struct duet_runtime *core, unsigned worker, struct duet_task *task,
                   struct duet_message *message)
{
    struct duet_expansion body;
    body.core = core;
    body.task = task;
    body.view = NULL;
    atomic_init(&body.unfinished, 1);
    atomic_init(&body.ready, false);
    atomic_init(&body.failed, DUET_OK);
    body.blocks = NULL;
    body.block_count = 0;
    body.any_data = task->parent && task->parent->any_data;
    body.any = false;
    body.kept = 0;
    body.self = &core->workers[worker];
    body.below = body.self->body;
    body.message = message;
    message->text[0] = '\0';
    body.self->body = &body;
    body.self->depth++;
    /* what orders tasks of such a parent is no data of theirs */
    int status = task->access_count && !body.any_data ? expand_call(&body) : call_alone(&body);
    if (body.any)
        wait_for_children(&body, true);
    body.self->body = body.below;
    body.self->depth--;
    if (body.blocks)
        blocks_free(&body);
    if (!status) /* it fails with its children */
        status = atomic_load_explicit(&body.failed, memory_order_acquire);
    return status;
}

void duet__pause(struct duet_runtime *core, unsigned worker, const struct duet__completion *report,
                 bool kept)
{
    struct worker *self = &core->workers[worker];
    self->at_body = false;
    self->nested.running = NULL; /* tasks submitted meanwhile are not to stay with this worker */
    if (report)
        duet__trace_piece(core, self, self->body->task, report, kept);
}

void duet__expand_any_data(struct duet_expansion *expansion)
{
    expansion->any_data = true;
}

unsigned duet__expand_worker(const struct duet_expansion *expansion)
{
    return expansion->self->index;
}

void duet__child_hold(struct duet_expansion *expansion)
{
    atomic_fetch_add_explicit(&expansion->unfinished, 1, memory_order_relaxed);
    expansion->any = true;
}

void duet__child_release(struct duet_runtime *core, struct duet_expansion *expansion)
{
    struct duet__ops ops = {0};
    struct duet_view view;
    const int by = core->ops->inside(core->engine);
    view_begin(&view, core, core->ops->now(core->engine), by < 0 ? DUET_SUBMITTER : by, &ops);
    (void)duet__child_finished(&view, expansion);
    duet__view_flush(&view);
}

void duet__body_hold(struct duet_runtime *core, unsigned worker, bool held)
{
    atomic_store_explicit(&core->workers[worker].body->ready, !held, memory_order_relaxed);
}

bool duet__task_waits(const struct duet_task *task)
{
    return task->klass->codelet->waits;
}
