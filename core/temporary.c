/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data without an address: memory of the host is taken for it when the first task or copy needs it,
 * and kept for the next data of that size. Also handles that are freed, without waiting, when the
 * tasks submitted so far have ended.
 */
#include "core/internal.h"

static const uint64_t SPARE_MAX = UINT64_C(256) << 20; /* bytes that are kept unused */
enum { SMALL_BYTES = 256, PAGE_BYTES = 4096 };

/* ------------------------------------------------------------------------------------------- */
/* The host's memory                                                                            */

/* Head of memory that is kept. */
struct spare_memory {
    struct spare_memory *next;
};

/*
 * Returns the size class for `bytes`, of four an octave, and its size: whole pages if it is large,
 * so that each piece can be page-locked alone.
 */
static unsigned size_for(uint64_t bytes, size_t *rounded, size_t *alignment)
{
    uint64_t last = (bytes > SMALL_BYTES ? bytes : SMALL_BYTES) - 1;
    unsigned octave = 63 - (unsigned)__builtin_clzll(last);
    uint64_t base = UINT64_C(1) << octave, step = base / 4, quarter = (last - base) / step;
    *rounded = (size_t)(base + (quarter + 1) * step);
    *alignment = step >= PAGE_BYTES ? PAGE_BYTES : LINE;
    return octave * 4 + (unsigned)quarter;
}

static void *take_memory(struct duet_runtime *core, uint64_t bytes)
{
    size_t rounded, alignment;
    struct spare_memory **spare = &core->spare_memory[size_for(bytes, &rounded, &alignment)];
    spin_lock(&core->memory_lock);
    struct spare_memory *memory = *spare;
    if (memory) {
        *spare = memory->next;
        core->spare_bytes -= rounded;
    }
    spin_unlock(&core->memory_lock);
    return memory ? memory : aligned_alloc(alignment, rounded);
}

/* Keeps memory of freed temporary data, or frees it where much is kept already. */
static void give_memory(struct duet_runtime *core, void *data, uint64_t bytes)
{
    size_t rounded, alignment;
    struct spare_memory **spare = &core->spare_memory[size_for(bytes, &rounded, &alignment)];
    struct spare_memory *memory = data;
    spin_lock(&core->memory_lock);
    bool keeps = rounded <= SPARE_MAX - core->spare_bytes;
    if (keeps) {
        memory->next = *spare;
        *spare = memory;
        core->spare_bytes += rounded;
    }
    spin_unlock(&core->memory_lock);
    if (!keeps)
        free(memory);
}

void duet__memory_fini(struct duet_runtime *core)
{
    for (unsigned i = 0; i < MEMORY_SIZES; i++) {
        while (core->spare_memory[i]) {
            struct spare_memory *memory = core->spare_memory[i];
            core->spare_memory[i] = memory->next;
            free(memory);
        }
    }
}

/* Returns the bytes of the handle's place: several areas are as far apart as on a device. */
static uint64_t place_bytes(const struct duet_handle *handle)
{
    return handle->layout ? handle->slab_bytes : handle->bytes;
}

/*
 * Gives temporary data a place in the host's memory, where anything computes. Returns false if
 * there is no memory. Handle lock held.
 */
bool duet__host_place(struct duet_runtime *core, struct duet_handle *handle)
{
    if (!handle->data && core->computes) {
        void *memory = take_memory(core, place_bytes(handle));
        if (memory && handle->layout)
            duet__layout_place(handle, memory);
        handle->data = memory;
    }
    return handle->data || !core->computes;
}

/* Frees the place in the host's memory, if there is one. Nobody uses the data, or is about to. */
void duet__host_leave(struct duet_runtime *core, struct duet_handle *handle)
{
    void *memory = handle->data;
    if (!memory)
        return;
    if (handle->layout)
        duet__layout_place(handle, NULL);
    handle->data = NULL;
    give_memory(core, memory, place_bytes(handle));
}

/* ------------------------------------------------------------------------------------------- */
/* Temporary data                                                                               */

/* Returns a handle of that shape which is valid nowhere. NULL: no memory. */
struct duet_handle *duet__temporary_new(struct duet_runtime *core, size_t rows, size_t cols,
                                        size_t element_bytes)
{
    struct duet_handle *handle = duet__handle_new(core, NULL, rows, cols, rows, element_bytes);
    if (!handle)
        return NULL;
    handle->temporary = true;
    bit_clear(handle->valid, DUET_HOST);
    return handle;
}

int duet_register_temporary(struct duet_runtime *runtime, size_t rows, size_t cols,
                            size_t element_bytes, struct duet_handle **out)
{
    *out = NULL;
    int error = duet__shape_check(runtime, rows, cols, rows, element_bytes);
    if (error)
        return error;
    *out = duet__temporary_new(runtime, rows, cols, element_bytes);
    if (!*out)
        return duet__refuse(runtime, DUET_ENOMEM, "no memory left for another handle");
    atomic_fetch_add_explicit(&runtime->registered_bytes, (*out)->bytes, memory_order_relaxed);
    return DUET_OK;
}

void *duet_address(const struct duet_handle *handle)
{
    return handle ? handle->data : NULL;
}

/*
 * Fails the run, or the tasks that depend on the data, because the data of an access could not be
 * brought to its node. Without memory for data to be written nothing goes on.
 */
void duet__no_data(struct duet_runtime *core, const struct duet_task *task,
                   const struct access *access, enum fetch fetch)
{
    const struct duet_handle *handle = access->handle;
    unsigned long long id = handle->id;
    struct task_says says;
    const char *who = duet__task_says(core, task, &says);
    if (fetch == FETCH_FULL)
        duet__fail_run(core, DUET_ENOMEM, "%s: no memory left for %llu bytes of temporary data",
                       who, (unsigned long long)handle->bytes);
    else if (handle->temporary && handle->version == 0)
        duet__fail_task(core, DUET_EINVAL,
                        "%s reads handle %llu, temporary data that nothing has written before: "
                        "write it first (DUET_W)",
                        who, id);
    else if (!task->klass)
        duet__fail_task(core, DUET_ELOST, "handle %llu: its only valid copy was lost with a device",
                        id);
    else
        duet__fail_task(core, DUET_ELOST,
                        "%s: the only valid copy of its data was lost with a device", who);
}

/* ------------------------------------------------------------------------------------------- */
/* Unregistering without waiting                                                                */

/*
 * Frees a handle: all tasks submitted before have ended, the data is in the host's memory if it has
 * an address, and nothing of it is in flight.
 */
static void unregister_end(struct duet_view *view, struct duet_task *task)
{
    struct duet_handle *handle = task->accesses[0].handle;
    spin_lock(&handle->lock);
    bool used = handle->head != NULL;
    handle->acquired = NULL;
    spin_unlock(&handle->lock);
    if (used) {
        duet__fail_task(view->core, DUET_EINVAL,
                        "handle %llu is used by a task that was submitted after "
                        "duet_unregister_submit: unregister it later",
                        (unsigned long long)handle->id);
        duet__graph_finish(view, task, DUET_HOST, false, false);
    } else {
        duet__handle_gone(view->core, handle);
    }
    duet__task_end(view, task);
}

/*
 * Drops an unregistration: the kernel on a device that has submitted it runs again elsewhere, and
 * submits it again.
 */
void duet__unregister_forget(struct duet_task *task)
{
    struct duet_handle *handle = task->accesses[0].handle;
    spin_lock(&handle->lock);
    handle->acquired = NULL;
    spin_unlock(&handle->lock);
}

/*
 * Returns the task that unregisters a handle, counted as submitted and not yet linked. NULL: no
 * memory.
 */
struct duet_task *duet__unregistering_new(struct duet_runtime *core, struct duet_handle *handle)
{
    struct duet_task *task = duet__acquisition_new(core, 1);
    if (!task)
        return NULL;
    task->accesses[0].handle = handle;
    task->accesses[0].mode = duet__last_mode(handle);
    task->over = unregister_end;
    task->id = atomic_fetch_add_explicit(&core->submitted, 1, memory_order_relaxed) + 1;
    return task;
}

int duet_unregister_submit(struct duet_runtime *runtime, struct duet_handle *handle)
{
    const struct duet__gate *gate = duet__gate_of(runtime);
    int error = handle ? duet__own_data(runtime, handle, "duet_unregister_submit") : DUET_OK;
    if (!handle || error)
        return error;
    duet__record_bars(runtime, "duet_unregister_submit");
    return gate ? gate->unregister(runtime->gate_arg, handle, false)
                : duet__unregister_submit_here(runtime, handle);
}

int duet__unregister_submit_here(struct duet_runtime *runtime, struct duet_handle *handle)
{
    int error = duet__not_forked(runtime, "duet_unregister_submit");
    if (!error)
        error = duet__may_unregister(runtime, handle);
    if (!error && handle->acquired)
        error = duet__release_here(runtime, handle);
    if (error)
        return error;
    struct duet_task *task = duet__unregistering_new(runtime, handle);
    if (!task)
        return duet__refuse(runtime, DUET_ENOMEM, "no memory left for duet_unregister_submit");
    spin_lock(&handle->lock);
    handle->acquired = task;
    spin_unlock(&handle->lock);
    runtime->enter(runtime->enter_for, task);
    return DUET_OK;
}
