/* SPDX-License-Identifier: Apache-2.0 */
/* Data handles, and the application's own access to their data. */
#include "core/internal.h"

/* Lets the engine free what it keeps about the handle. */
void duet__handle_forget(struct duet_runtime *core, struct duet_handle *handle)
{
    if (core->ops->forget && duet__handle_mark(handle))
        core->ops->forget(core->engine, handle);
}

static void handle_free(struct duet_runtime *core, struct duet_handle *handle)
{
    duet__handle_forget(core, handle);
    for (unsigned n = 1; n < core->machine.node_count; n++)
        if (handle->replicas[n])
            duet__cache_forget(core, handle->replicas[n]);
    if (handle->temporary)
        duet__host_leave(core, handle);
    duet__reduction_free(core, handle);
    duet__layout_free(handle->layout);
    if (handle->damage)
        duet__put_damage(core, handle, false);
    free(handle);
}

static void handle_enlist(struct duet_runtime *core, struct duet_handle *handle)
{
    spin_lock(&core->registry_lock);
    handle->id = ++core->handle_count;
    handle->next = core->handles;
    if (handle->next)
        handle->next->prev = handle;
    core->handles = handle;
    spin_unlock(&core->registry_lock);
}

/* Returns the offset of the policy's state in a handle, aligned for every type. */
size_t duet__data_state_offset(const struct duet_runtime *core)
{
    size_t words = core->node_words * sizeof(_Atomic(uint64_t));
    size_t pointers = core->machine.node_count * sizeof(struct replica *);
    return (sizeof(struct duet_handle) + 2 * words + pointers + 15) / 16 * 16;
}

size_t duet__place_state_offset(const struct duet_runtime *core, unsigned node)
{
    return duet__data_state_offset(core) + core->data_state_bytes + node * core->place_state_bytes;
}

/*
 * Allocates one block of memory: the handle, its replica pointers, its bit sets, the policy's
 * states.
 */
static struct duet_handle *handle_alloc(const struct duet_runtime *core)
{
    const unsigned nodes = core->machine.node_count;
    size_t bytes = duet__place_state_offset(core, nodes);
    if (core->chains)
        bytes += nodes * sizeof(struct access *);
    struct duet_handle *handle = calloc(1, bytes);
    if (!handle)
        return NULL;
    handle->replicas = (void *)(handle + 1);
    handle->valid = (void *)((char *)(handle + 1) + nodes * sizeof *handle->replicas);
    handle->coming = handle->valid + core->node_words;
    handle->replicas[DUET_HOST] = &handle->host;
    handle->host.handle = handle;
    bit_set(handle->valid, DUET_HOST);
    return handle;
}

/* Returns a handle of checked sizes, valid in the host's memory. NULL: no memory. */
struct duet_handle *duet__handle_new(struct duet_runtime *core, void *data, size_t rows,
                                     size_t cols, size_t ld, size_t element_bytes)
{
    struct duet_handle *handle = handle_alloc(core);
    if (!handle)
        return NULL;
    handle->core = core;
    handle->data = data;
    handle->rows = rows;
    handle->cols = cols;
    handle->ld = ld;
    handle->element_bytes = element_bytes;
    handle->bytes = (uint64_t)rows * cols * element_bytes;
    handle->slab_bytes = slab_round(handle->bytes);
    handle_enlist(core, handle);
    return handle;
}

/* Frees a handle that nobody uses, and its places in devices' memories. */
void duet__handle_remove(struct duet_runtime *core, struct duet_handle *handle)
{
    spin_lock(&core->registry_lock);
    if (handle->prev)
        handle->prev->next = handle->next;
    else
        core->handles = handle->next;
    if (handle->next)
        handle->next->prev = handle->prev;
    if (handle->entered)
        duet__region_leave(core, handle);
    spin_unlock(&core->registry_lock);
    handle_free(core, handle);
}

/* Frees a handle that the application has registered, and its parts. Nobody uses them. */
void duet__handle_gone(struct duet_runtime *core, struct duet_handle *handle)
{
    while (handle->cuts)
        handle->cuts = duet__parts_remove(core, handle->cuts);
    atomic_fetch_sub_explicit(&core->registered_bytes, handle->bytes, memory_order_relaxed);
    duet__handle_remove(core, handle);
}

/* Returns DUET_EINVAL for a shape that no data can have. */
int duet__shape_check(struct duet_runtime *runtime, size_t rows, size_t cols, size_t ld,
                      size_t element_bytes)
{
    if (rows == 0 || cols == 0 || element_bytes == 0 || ld < rows)
        return duet__refuse(
            runtime, DUET_EINVAL,
            "cannot register a matrix of %zu x %zu elements of %zu bytes with leading "
            "dimension %zu: sizes must be positive and the leading dimension at least "
            "the number of rows",
            rows, cols, element_bytes, ld);
    if (cols > SIZE_MAX / 4 / ld || ld * cols > SIZE_MAX / 4 / element_bytes)
        return duet__refuse(
            runtime, DUET_EINVAL,
            "a matrix of %zu x %zu elements of %zu bytes exceeds the address space: is "
            "a size negative?",
            rows, cols, element_bytes);
    return DUET_OK;
}

/*
 * Returns DUET_EINVAL for data without an address where kernels compute, unless a gate is set: it
 * may be another process's.
 */
int duet__address_check(struct duet_runtime *runtime, const struct duet_array *array)
{
    if (array->data || !runtime->computes || runtime->gate)
        return DUET_OK;
    return duet__refuse(runtime, DUET_EINVAL,
                        "data of %zu x %zu elements has no address (NULL), which is for runs that "
                        "compute nothing, simulations and emulations of a platform, and for "
                        "duet_register_temporary",
                        array->rows, array->cols);
}

/* Enters the memory of a new handle. On DUET_EINVAL, DUET_ENOMEM the handle is freed. */
int duet__handle_register(struct duet_runtime *runtime, struct duet_handle *handle)
{
    struct duet_message message;
    message.text[0] = '\0';
    const unsigned placed = duet__areas_placed(handle);
    int error = DUET_OK;
    if (runtime->computes && placed && placed < duet__area_count(handle))
        error = duet_fail(&message, DUET_EINVAL,
                          "some arrays of a handle have an address, and some (NULL) have none");
    else if (placed)
        error = duet__region_enter(runtime, handle, &message);
    if (error) {
        duet__handle_remove(runtime, handle);
        return duet__refuse(runtime, error, "%s", message.text);
    }
    atomic_fetch_add_explicit(&runtime->registered_bytes, handle->bytes, memory_order_relaxed);
    if (runtime->computes && !placed && !handle->data)
        duet__handle_elsewhere(runtime, handle);
    return DUET_OK;
}

int duet_register_matrix(struct duet_runtime *runtime, void *data, size_t rows, size_t cols,
                         size_t ld, size_t element_bytes, struct duet_handle **out)
{
    const struct duet_array array = {data, rows, cols, ld, element_bytes};
    *out = NULL;
    int error = duet__shape_check(runtime, rows, cols, ld, element_bytes);
    if (!error)
        error = duet__address_check(runtime, &array);
    if (error)
        return error;
    struct duet_handle *handle = duet__handle_new(runtime, data, rows, cols, ld, element_bytes);
    if (!handle)
        return duet__refuse(runtime, DUET_ENOMEM, "no memory left for another handle");
    error = duet__handle_register(runtime, handle);
    if (!error)
        *out = handle;
    return error;
}

_Atomic(void *) *duet__handle_mark(struct duet_handle *handle)
{
    return handle->of || handle->layout ? NULL
                                        : &handle->mark; /* the mark is for one piece of memory */
}

void **duet__handle_note(struct duet_handle *handle)
{
    while (handle->of)
        handle = handle->of->whole;
    return &handle->note;
}

bool duet__handle_is_part(const struct duet_handle *handle)
{
    return handle->of;
}

/* ------------------------------------------------------------------------------------------- */
/* Access by the application                                                                    */

int duet__own_data(struct duet_runtime *core, const struct duet_handle *handle,
                   const char *function)
{
    if (handle && handle->core == core)
        return DUET_OK;
    return duet__refuse(core, DUET_EINVAL, "%s needs a handle %s", function,
                        handle ? "of this runtime (it is of another one)" : "(it is NULL)");
}

/*
 * Returns an acquisition, or NULL if there is no memory. It is a task that no worker runs: when it
 * is granted, the data is brought to the host, and the application's thread goes on. The caller
 * sets handles and modes.
 */
struct duet_task *duet__acquisition_new(struct duet_runtime *core, unsigned count)
{
    struct duet_task *task = duet__task_alloc(core, DUET_SUBMITTER, count);
    if (!task)
        return NULL;
    uint8_t pool = task->pool;
    memset(task, 0, sizeof *task + count * sizeof(struct access));
    task->pool = pool;
    task->access_count = (uint16_t)count;
    for (unsigned i = 0; i < count; i++)
        task->accesses[i].index = task->accesses[i].order = (uint16_t)i;
    atomic_init(&task->pending, (int32_t)count + 1);
    atomic_init(&task->missing, 1);
    return task;
}

/*
 * Fetches the data of an acquisition to the host's memory; `missing` counts the copies on their
 * way. Also after a failure, since write-backs may be under way.
 */
void duet__bring_home(struct duet_view *view, struct duet_task *task)
{
    for (unsigned i = 0; i < task->access_count; i++) {
        struct access *access = &task->accesses[i];
        spin_lock(&access->handle->lock);
        enum fetch fetch = duet__fetch(view, access, DUET_HOST);
        spin_unlock(&access->handle->lock);
        if (fetch >= FETCH_FAILED)
            duet__no_data(view->core, task, access, fetch);
    }
}

/* Fetches the data of a granted acquisition to the host's memory, or of a hint to its node. */
void duet__acquire_ready(struct duet_view *view, struct duet_task *task)
{
    atomic_store_explicit(&task->missing, 2, memory_order_relaxed);
    bool vain = duet__hint_is_vain(view->core, task);
    if (!vain && task->worker != DUET_HOST)
        duet__cache_prefetch(view, task, task->worker, true);
    else if (!vain)
        duet__bring_home(view, task);
    /* one for this call, one that stood for not being granted */
    duet__arrived(view, task, 2);
}

static bool acquisition_there(void *argument)
{
    struct duet_task *task = argument;
    return atomic_load_explicit(&task->pending, memory_order_acquire) == 0 &&
           atomic_load_explicit(&task->missing, memory_order_acquire) == 0;
}

/* Sets the application's acquisition of the handle. Returns false if there is one already. */
static bool set_acquired(struct duet_handle *handle, struct duet_task *task)
{
    spin_lock(&handle->lock);
    bool first = !handle->acquired;
    if (first)
        handle->acquired = task;
    spin_unlock(&handle->lock);
    return first;
}

static int acquire_and_wait(struct duet_runtime *runtime, struct duet_handle *handle, uint8_t mode)
{
    struct duet_task *task = duet__acquisition_new(runtime, 1);
    if (!task)
        return duet__refuse(runtime, DUET_ENOMEM, "no memory left for duet_acquire");
    task->accesses[0].handle = handle;
    task->accesses[0].mode = mode;
    if (!set_acquired(handle, task)) {
        duet__task_free(runtime, DUET_SUBMITTER, task);
        return duet__refuse(runtime, DUET_EINVAL, "handle %llu is acquired already",
                            (unsigned long long)handle->id);
    }
    runtime->enter(runtime->enter_for, task);
    int error = duet__wait_until(runtime, acquisition_there, task);
    if (error) {
        duet__tell_stuck(runtime);
        return error;
    }
    return duet__data_error(runtime, handle, mode);
}

int duet_acquire(struct duet_runtime *runtime, struct duet_handle *handle, enum duet_mode mode)
{
    if (mode != DUET_R && mode != DUET_W && mode != DUET_RW)
        return duet__refuse(runtime, DUET_EINVAL,
                            "duet_acquire needs a mode of DUET_R, DUET_W or DUET_RW");
    int error = duet__own_data(runtime, handle, "duet_acquire");
    if (!error)
        error = duet__may_wait(runtime, "duet_acquire");
    if (error)
        return error;
    duet__record_bars(runtime, "duet_acquire");
    return runtime->gate ? runtime->gate->acquire(runtime->gate_arg, handle, mode)
                         : duet__acquire_here(runtime, handle, mode);
}

int duet__acquire_here(struct duet_runtime *runtime, struct duet_handle *handle,
                       enum duet_mode mode)
{
    return acquire_and_wait(runtime, handle, (uint8_t)mode);
}

/* Ends an acquisition, at the date of its release. */
void duet__acquire_end(struct duet_view *view, struct duet_task *task)
{
    if (task->over && in_trouble(view->core))
        duet__pass_poison(view->core, task);
    duet__graph_finish(view, task, DUET_HOST, false, true);
    duet__task_free(view->core, view->by, task);
}

/*
 * Removes the application's acquisition from the handle and returns it; NULL with a message if
 * there is none.
 */
static struct duet_task *take_acquired(struct duet_runtime *runtime, struct duet_handle *handle)
{
    spin_lock(&handle->lock);
    struct duet_task *task = handle->acquired;
    if (task && (task->over || !acquisition_there(task)))
        task = NULL; /* it frees the handle, or still waits in a run that is stuck */
    if (task)
        handle->acquired = NULL;
    spin_unlock(&handle->lock);
    if (!task)
        (void)duet__refuse(runtime, DUET_EINVAL, "handle %llu is not acquired",
                           (unsigned long long)handle->id);
    return task;
}

int duet_release(struct duet_runtime *runtime, struct duet_handle *handle)
{
    const struct duet__gate *gate = duet__gate_of(runtime);
    int error = duet__own_data(runtime, handle, "duet_release");
    if (error)
        return error;
    return gate ? gate->release(runtime->gate_arg, handle) : duet__release_here(runtime, handle);
}

int duet__release_here(struct duet_runtime *runtime, struct duet_handle *handle)
{
    int error = duet__not_forked(runtime, "duet_release");
    struct duet_task *task = error ? NULL : take_acquired(runtime, handle);
    if (!task)
        return DUET_EINVAL;
    /* in order with the submissions before it, which simulated time may not have reached yet */
    task->state = TASK_RELEASED;
    runtime->ops->submitted(runtime->engine, task);
    return DUET_OK;
}

/* Ends an acquisition at once: nothing has been submitted since it was granted. */
void duet__release_now(struct duet_runtime *runtime, struct duet_handle *handle)
{
    struct duet__ops ops = {0};
    struct duet_view view;
    view_begin(&view, runtime, runtime->ops->now(runtime->engine), DUET_SUBMITTER, &ops);
    duet__acquire_end(&view, take_acquired(runtime, handle));
    duet__view_flush(&view);
}

/* Refuses a handle that the application may not unregister (any more). */
int duet__may_unregister(struct duet_runtime *runtime, struct duet_handle *handle)
{
    spin_lock(&handle->lock);
    bool going = handle->acquired && handle->acquired->over;
    spin_unlock(&handle->lock);
    if (going)
        return duet__refuse(runtime, DUET_EINVAL,
                            "handle %llu was given to duet_unregister_submit already",
                            (unsigned long long)handle->id);
    if (handle->of && handle->of->expansion)
        return duet__refuse(runtime, DUET_EINVAL,
                            "handle %llu is a block of a task that expands, with which it ends",
                            (unsigned long long)handle->id);
    if (handle->of)
        return duet__refuse(runtime, DUET_EINVAL,
                            "handle %llu is a part of handle %llu, and cannot be unregistered by "
                            "itself: duet_uncut frees all parts of a cut",
                            (unsigned long long)handle->id,
                            (unsigned long long)handle->of->whole->id);
    int error = DUET_OK;
    for (const struct parts *cut = handle->cuts; cut && !error; cut = cut->next)
        error = duet__check_parts(runtime, cut);
    return error;
}

/*
 * True if the acquisition that frees the handle would be granted at once, and change nothing: no
 * task or held hint is left that could use it, and the host's memory has the data. Always false
 * where nothing computes: waiting takes simulated time on.
 */
static bool is_idle(const struct duet_runtime *core, struct duet_handle *handle)
{
    if (!core->computes || core->held || in_trouble(core) ||
        atomic_load_explicit(&handle->family, memory_order_relaxed) || unfinished(core))
        return false;
    uint64_t coming = 0;
    spin_lock(&handle->lock);
    for (unsigned word = 0; word < core->node_words; word++)
        coming |= atomic_load_explicit(&handle->coming[word], memory_order_relaxed);
    bool idle =
        !coming && !handle->active && !handle->acquired && bit_test(handle->valid, DUET_HOST);
    spin_unlock(&handle->lock);
    return idle;
}

int duet_unregister(struct duet_runtime *runtime, struct duet_handle *handle)
{
    if (!handle)
        return DUET_OK;
    int error = duet__own_data(runtime, handle, "duet_unregister");
    if (!error)
        error = duet__may_wait(runtime, "duet_unregister");
    if (error)
        return error;
    duet__record_bars(runtime, "duet_unregister");
    return runtime->gate ? runtime->gate->unregister(runtime->gate_arg, handle, true)
                         : duet__unregister_here(runtime, handle);
}

int duet__unregister_here(struct duet_runtime *runtime, struct duet_handle *handle)
{
    int error = duet__may_unregister(runtime, handle);
    if (error)
        return error;
    if (is_idle(runtime, handle)) {
        duet__handle_gone(runtime, handle);
        return DUET_OK;
    }
    if (handle->acquired && duet__release_here(runtime, handle)) {
        duet__tell_stuck(runtime);
        return DUET_ESTUCK;
    }
    /* as a writer, to wait also for tasks that only read it */
    int acquired = acquire_and_wait(runtime, handle, duet__last_mode(handle));
    if (acquired == DUET_ESTUCK)
        return acquired; /* tasks still refer to it: it stays until duet_close */
    if (handle->acquired) {
        duet__release_now(runtime, handle);
        duet__handle_gone(runtime, handle);
    }
    return acquired;
}

void duet__handles_forget(struct duet_runtime *core)
{
    for (struct duet_handle *handle = core->handles; handle; handle = handle->next)
        duet__handle_forget(core, handle);
}

void duet__handles_fini(struct duet_runtime *core)
{
    struct duet_handle *handle = core->handles;
    while (handle) {
        struct duet_handle *next = handle->next;
        if (handle->temporary)
            free(handle->data);
        duet__cuts_fini(handle);
        duet__reduction_free(core, handle);
        duet__layout_free(handle->layout);
        if (handle->damage)
            duet__put_damage(core, handle, false);
        free(handle);
        handle = next;
    }
}

/* ------------------------------------------------------------------------------------------- */
/*
 * Page-locking of the application's memory: requests are checked here and carried out by the
 * engine.
 */

int duet_pin(struct duet_runtime *runtime, void *data, size_t bytes)
{
    struct duet_message message = {""};
    int error = DUET_OK;
    if (bytes == 0 || bytes > UINTPTR_MAX - (uintptr_t)data)
        error = duet_fail(&message, DUET_EINVAL,
                          "cannot page-lock %zu bytes at %p: it must be at least one byte, and end "
                          "within the address space",
                          bytes, data);
    else if (!data && runtime->computes)
        error = duet_fail(&message, DUET_EINVAL,
                          "cannot page-lock %zu bytes without an address (NULL)", bytes);
    else if (data && runtime->ops->pin)
        error = runtime->ops->pin(runtime->engine, data, bytes, &message);
    if (error)
        duet__tell(runtime, &message);
    return error;
}

int duet_unpin(struct duet_runtime *runtime, void *data)
{
    struct duet_message message = {""};
    int error = DUET_OK;
    if (!data && runtime->computes)
        error = duet_fail(&message, DUET_EINVAL, "nothing is page-locked at no address (NULL)");
    else if (data && runtime->ops->unpin)
        error = runtime->ops->unpin(runtime->engine, data, &message);
    if (error)
        duet__tell(runtime, &message);
    return error;
}
