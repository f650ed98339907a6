/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of accesses, and records of them for models of caches and task graphs. */
#include <stdlib.h>
#include <string.h>

#include "core/internal.h"

uint64_t duet__access_bytes(const struct access *accesses, unsigned count)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < count; i++)
        if (accesses[i].mode)
            bytes += accesses[i].handle->bytes;
    return bytes;
}

uint64_t duet__slab_bytes(const struct access *accesses, unsigned count)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < count; i++)
        if (accesses[i].mode)
            bytes += accesses[i].handle->slab_bytes;
    return bytes;
}

static void record_access(struct worker *worker, const struct duet_trace_access *access)
{
    struct duet_trace_access *own = duet__row_add(worker, &worker->touched, sizeof *own);
    if (own)
        *own = *access;
}

/* Returns the cut to which the handle belongs; NULL: none. */
static const struct parts *cut_of(const struct duet_handle *handle)
{
    return handle->of && !handle->of->expansion ? handle->of : NULL;
}

static struct duet_trace_access access_of(uint64_t task, unsigned index,
                                          const struct duet_handle *handle)
{
    const struct parts *of = cut_of(handle);
    return (struct duet_trace_access){.task = task,
                                      .index = index,
                                      .handle = handle->id,
                                      .bytes = handle->bytes,
                                      .whole = of ? of->whole->id : 0,
                                      .cut = of ? of->handles[0]->id : 0,
                                      .temporary = duet__handle_temporary(handle)};
}

void duet__trace_accesses(struct worker *worker, const struct duet_task *task)
{
    const struct task_extra *extra = task->extra;
    unsigned index = task->access_count;
    for (unsigned i = 0; i < task->access_count; i++) {
        const struct access *access = &task->accesses[i];
        const struct parts *of = cut_of(access->handle);
        struct duet_trace_access record = access_of(task->id, i, access->handle);
        record.mode = access->mode & (DUET_COMMUTE | DUET_REDUCE | DUET_SCRATCH);
        record.reads = duet_task_reads(task, i);
        record.writes = duet_task_writes(task, i);
        if (record.mode & ACCESS_REDUCES) {
            record.mode = DUET_REDUCE;
            record.whole = duet__contribution_whole(access->handle);
        }
        record_access(worker, &record);
        for (; of && cut_of(of->whole); of = cut_of(of->whole)) {
            record = access_of(task->id, index++, of->whole);
            record_access(worker, &record);
        }
    }
    for (unsigned i = 0; extra && i < extra->edge_count; i++)
        record_access(worker,
                      &(struct duet_trace_access){.task = task->id,
                                                  .index = index++,
                                                  .after = duet__edge_after(extra->edges, i)});
}

/* Compares by task, then by order of its accesses. */
static int compare_accesses(const void *left, const void *right)
{
    const struct duet_trace_access *a = left, *b = right;
    if (a->task != b->task)
        return a->task < b->task ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

int duet_trace_accesses(const struct duet_runtime *runtime, struct duet_trace_access **accesses,
                        size_t *count)
{
    *accesses = NULL;
    *count = 0;
    if (!runtime->record_accesses)
        return DUET_EINVAL;
    struct rows all = {NULL};
    for (unsigned w = 0; w < runtime->machine.worker_count; w++) {
        if (!duet__rows_take(&runtime->workers[w], &runtime->workers[w].touched, &all,
                             sizeof **accesses)) {
            free(all.rows);
            return DUET_ENOMEM;
        }
    }
    if (all.count)
        qsort(all.rows, all.count, sizeof **accesses, compare_accesses);
    *accesses = all.rows;
    *count = all.count;
    return DUET_OK;
}

uint64_t duet__task_handle_id(const struct duet_task *task, size_t index)
{
    return task->accesses[index].handle->id;
}

uint64_t duet__handle_number(const struct duet_handle *handle)
{
    return handle->id;
}

uint64_t duet__numbered(const struct duet_runtime *core)
{
    return atomic_load_explicit(&core->submitted, memory_order_relaxed);
}

uint64_t duet__registered_bytes(const struct duet_runtime *core)
{
    return atomic_load_explicit(&core->registered_bytes, memory_order_relaxed);
}
