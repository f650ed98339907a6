/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that wait for their children. The engine runs such a task like a kernel, by duet__body_run,
 * on a stack that can be left: at a wait the engine asks duet__next for other tasks of the worker
 * and runs them on top, until that says RESUME. The core says so when the children of the worker's
 * newest task have ended and their blocks are back in the host's memory. So tasks end in the
 * opposite order of that in which they began, real or simulated: one that could go on stays while
 * another runs on top of it. Nobody waits for ever, because children depend on each other alone,
 * and because a worker that waits takes whatever it would take otherwise.
 */
#include "core/expand.h"

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
    if (body->block_count == 0 || !duet__gather(view, body))
        duet__body_ready(view, body);
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
    if (atomic_fetch_sub_explicit(&body->unfinished, 1, memory_order_acq_rel) == 1) {
        struct duet__ops ops = {0};
        struct duet_view view;
        view_begin(&view, core, core->ops->now(core->engine), (int)body->self->index, &ops);
        duet__children_ended(&view, body);
        duet__view_flush(&view);
    }
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
                                   .message = &body->message};
    return task->klass->codelet->expand(body, &call);
}

int duet__body_run(struct duet_runtime *core, unsigned worker, struct duet_task *task,
                   struct duet_message *message)
{
    struct duet_expansion body; /* not cleared: it contains a message */
    body.core = core;
    body.task = task;
    body.view = NULL;
    atomic_init(&body.unfinished, 1);
    atomic_init(&body.ready, false);
    atomic_init(&body.failed, DUET_OK);
    body.blocks = NULL;
    body.block_count = 0;
    body.any = false;
    body.kept = 0;
    body.self = &core->workers[worker];
    body.below = body.self->body;
    body.message.text[0] = '\0';
    body.self->body = &body;
    body.self->depth++;
    int status = task->access_count ? duet__expand_call(&body) : call_alone(&body);
    if (body.any)
        wait_for_children(&body, true);
    body.self->body = body.below;
    body.self->depth--;
    if (body.blocks)
        duet__blocks_free(&body);
    if (!status) /* it fails with its children */
        status = atomic_load_explicit(&body.failed, memory_order_acquire);
    if (status)
        *message = body.message;
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

bool duet__task_waits(const struct duet_task *task)
{
    return task->klass->codelet->waits;
}
