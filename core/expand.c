/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that expand into children on blocks of their data. The expanded task keeps its accesses,
 * and so its successors waiting, until its children are finished and their blocks are back in the
 * host's memory; blocks are handles of their own, so that children depend on each other only.
 */
#include <stdlib.h>
#include <string.h>

#include "core/internal.h"

enum { BUFFERS = 16 }; /* accesses of a task for which expanding needs no memory of its own */

/* A window of one access's data. */
struct block {
    struct duet_handle *handle;
    const struct duet_handle *whole;
    size_t row, col, rows, cols;
    bool writable;
};

struct duet_expansion {
    struct duet_runtime *core;
    struct duet_task *task;       /* that expands */
    struct duet_view *view;       /* the call in which it expands; NULL afterwards */
    _Atomic(uint64_t) unfinished; /* children, and 1 while it expands */
    struct block *blocks;
    unsigned block_count, block_capacity;
    struct duet_message message; /* of the last error of the two functions below, or the
                                    application's own */
};

/* ------------------------------------------------------------------------------------------- */
/* What the application calls while a task expands                                              */

static bool overlap(const struct block *a, const struct block *b)
{
    return a->whole == b->whole && a->row < b->row + b->rows && b->row < a->row + a->rows &&
           a->col < b->col + b->cols && b->col < a->col + a->cols;
}

/* The first access to the same handle carries the modes of all of them. */
static bool may_write(const struct duet_task *task, const struct duet_handle *handle)
{
    for (unsigned i = 0; i < task->access_count; i++)
        if (task->accesses[i].handle == handle && (task->accesses[i].mode & DUET_W))
            return true;
    return false;
}

static int check_block(struct duet_expansion *expansion, size_t index, const struct block *wanted)
{
    const struct duet_handle *whole = wanted->whole;
    if (wanted->rows == 0 || wanted->cols == 0 || wanted->row >= whole->rows ||
        wanted->rows > whole->rows - wanted->row || wanted->col >= whole->cols ||
        wanted->cols > whole->cols - wanted->col)
        return duet_fail(&expansion->message, DUET_EINVAL,
                         "a block of %zu x %zu at (%zu, %zu) does not lie within access %zu, which "
                         "has %zu x %zu",
                         wanted->rows, wanted->cols, wanted->row, wanted->col, index, whole->rows,
                         whole->cols);
    for (unsigned i = 0; i < expansion->block_count; i++)
        if (overlap(wanted, &expansion->blocks[i]))
            return duet_fail(&expansion->message, DUET_EINVAL,
                             "a block of %zu x %zu at (%zu, %zu) of access %zu overlaps an earlier "
                             "one",
                             wanted->rows, wanted->cols, wanted->row, wanted->col, index);
    if (expansion->block_count == UINT16_MAX)
        return duet_fail(&expansion->message, DUET_EINVAL, "more than %d blocks in one expansion",
                         UINT16_MAX);
    return DUET_OK;
}

/* Room for one more block. */
static bool reserve(struct duet_expansion *expansion)
{
    if (expansion->block_count < expansion->block_capacity)
        return true;
    unsigned capacity = expansion->block_capacity ? 2 * expansion->block_capacity : 64;
    struct block *blocks = realloc(expansion->blocks, capacity * sizeof *blocks);
    if (!blocks)
        return false;
    expansion->blocks = blocks;
    expansion->block_capacity = capacity;
    return true;
}

int duet_expand_block(struct duet_expansion *expansion, size_t index, size_t row, size_t col,
                      size_t rows, size_t cols, struct duet_handle **out)
{
    struct duet_task *task = expansion->task;
    *out = NULL;
    if (index >= task->access_count)
        return duet_fail(&expansion->message, DUET_EINVAL, "access %zu of a task with %u accesses",
                         index, task->access_count);
    const struct duet_handle *whole = task->accesses[index].handle;
    struct block block = {.whole = whole, .row = row, .col = col, .rows = rows, .cols = cols};
    int error = check_block(expansion, index, &block);
    if (error)
        return error;
    size_t first = (row + col * whole->ld) * whole->element_bytes;
    void *data = whole->data ? (char *)whole->data + first : NULL;
    block.writable = may_write(task, whole);
    if (reserve(expansion))
        block.handle =
            duet__handle_new(expansion->core, data, rows, cols, whole->ld, whole->element_bytes);
    if (!block.handle)
        return duet_fail(&expansion->message, DUET_ENOMEM, "no memory left for another block");
    block.handle->expansion = expansion;
    block.handle->block = expansion->block_count;
    expansion->blocks[expansion->block_count++] = block;
    *out = block.handle;
    return DUET_OK;
}

static int check_child(struct duet_expansion *expansion, const struct duet_task_desc *desc)
{
    for (size_t i = 0; desc && desc->accesses && i < desc->access_count; i++) {
        const struct duet_handle *handle = desc->accesses[i].handle;
        if (handle && desc->accesses[i].mode == DUET_SCRATCH)
            continue; /* of which only the shape counts */
        if (!handle || handle->expansion != expansion)
            return duet_fail(&expansion->message, DUET_EINVAL,
                             "access %zu of a child is no block of the task that expands", i);
        if ((desc->accesses[i].mode & DUET_W) && !expansion->blocks[handle->block].writable)
            return duet_fail(&expansion->message, DUET_EINVAL,
                             "access %zu of a child writes a block of data that the task may only "
                             "read",
                             i);
    }
    return DUET_OK;
}

int duet_expand_submit(struct duet_expansion *expansion, const struct duet_task_desc *desc)
{
    struct duet_task *task;
    int error = check_child(expansion, desc);
    if (error && desc && desc->ref)
        *desc->ref = NULL;
    if (!error)
        error =
            duet__task_new(expansion->core, expansion->view->by, desc, &task, &expansion->message);
    if (error)
        return error;
    task->parent = expansion;
    atomic_fetch_add_explicit(&expansion->unfinished, 1, memory_order_relaxed);
    expansion->view->ops->submissions++;
    duet__link_in(expansion->view, task);
    return DUET_OK;
}

struct duet_message *duet__expansion_message(struct duet_expansion *expansion)
{
    return &expansion->message;
}

/* ------------------------------------------------------------------------------------------- */
/* Beginning                                                                                    */

/* Calls the codelet's function with the buffers of the host. */
static int call(struct duet_expansion *expansion)
{
    struct duet_task *task = expansion->task;
    struct duet_buffer few[BUFFERS], *buffers = few;
    if (task->access_count > BUFFERS)
        buffers = malloc(task->access_count * sizeof *buffers);
    if (!buffers)
        return DUET_ENOMEM;
    duet__task_buffers(task, DUET_HOST, NULL, buffers);
    const struct duet_call arguments = {.runtime = expansion->core,
                                        .args = task_args(task),
                                        .buffers = buffers,
                                        .buffer_count = task->access_count,
                                        .message = &expansion->message};
    int status = task->klass->codelet->expand(expansion, &arguments);
    if (buffers != few)
        free(buffers);
    return status;
}

/* A task that cannot even begin to expand ends without its successors' data. */
static void end_at_once(struct duet_view *view, struct duet_task *task)
{
    duet__extra_failed(task, DUET_ENOMEM);
    duet__graph_finish(view, task, DUET_HOST, false, false);
    duet__task_end(view, task);
}

/* Expands a task that a worker of the host's memory has taken. No lock held. */
void duet__expand(struct duet_view *view, struct duet_task *task)
{
    struct duet_expansion *expansion = calloc(1, sizeof *expansion);
    int status = DUET_ENOMEM;
    if (expansion) {
        expansion->core = view->core;
        expansion->task = task;
        expansion->view = view;
        atomic_init(&expansion->unfinished, 1);
        status = call(expansion);
        expansion->view = NULL;
    }
    if (status)
        duet__fail_run(view->core, status, "task %llu (%s) cannot expand: %s",
                       (unsigned long long)task->id, duet_task_kernel(task),
                       expansion && *expansion->message.text ? expansion->message.text
                                                             : duet_strerror(status));
    if (!expansion)
        end_at_once(view, task);
    else if (duet__child_finished(view, expansion))
        duet__task_end(view, task);
}

/* ------------------------------------------------------------------------------------------- */
/* Ending                                                                                       */

/* All children are finished, their blocks are gone: so is the task itself, which is to be ended. */
static struct duet_task *finish(struct duet_view *view, struct duet_expansion *expansion)
{
    struct duet_task *task = expansion->task;
    int error = atomic_load_explicit(&view->core->error, memory_order_acquire);
    duet__extra_failed(task, error);
    free(expansion->blocks);
    free(expansion);
    duet__graph_finish(view, task, DUET_HOST, false, !error);
    return task;
}

/*
 * Brings the blocks that were written to the host's memory, as an acquisition of all of them; also
 * after a failure, since their write-backs may be under way.
 */
static void bring_home(struct duet_view *view, struct duet_expansion *expansion,
                       struct duet_task *task)
{
    bool lost = false;
    /* one more, so that it does not end before all are asked for */
    for (unsigned i = 0; i < expansion->block_count; i++) {
        struct access *access = &task->accesses[i];
        access->handle = expansion->blocks[i].handle;
        access->mode = DUET_R;
        spin_lock(&access->handle->lock);
        lost = duet__fetch(view, access, DUET_HOST) == FETCH_FAILED || lost;
        spin_unlock(&access->handle->lock);
    }
    if (lost)
        duet__fail_run(view->core, DUET_ELOST,
                       "task %llu (%s): the only valid copy of its data was lost with a device",
                       (unsigned long long)expansion->task->id, duet_task_kernel(expansion->task));
    duet__arrived(view, task, 1);
}

/* The blocks are in the host's memory. */
static void end(struct duet_view *view, struct duet_task *gather)
{
    struct duet_expansion *expansion = gather->parent;
    duet__task_free(view->core, view->by, gather);
    for (unsigned i = 0; i < expansion->block_count; i++)
        duet__handle_remove(expansion->core, expansion->blocks[i].handle);
    duet__task_end(view, finish(view, expansion));
}

/*
 * A child has ended, or the expansion itself. The last one brings the results home. Returns the
 * task that expanded if it is to be ended now, by duet__task_end, else NULL.
 */
struct duet_task *duet__child_finished(struct duet_view *view, struct duet_expansion *expansion)
{
    if (atomic_fetch_sub_explicit(&expansion->unfinished, 1, memory_order_acq_rel) > 1)
        return NULL;
    if (expansion->block_count == 0)
        return finish(view, expansion);
    struct duet_task *task = duet__acquisition_new(view->core, expansion->block_count);
    if (!task) {
        /* the blocks stay until the runtime is closed */
        duet__fail_run(view->core, DUET_ENOMEM, "no memory left to end task %llu (%s)",
                       (unsigned long long)expansion->task->id, duet_task_kernel(expansion->task));
        return finish(view, expansion);
    }
    task->parent = expansion;
    task->over = end;
    bring_home(view, expansion, task);
    return NULL;
}
