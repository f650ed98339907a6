/* SPDX-License-Identifier: Apache-2.0 */
/* Submitting tasks and waiting for them, on the application's thread. */
#include <stdio.h>

#include "core/internal.h"

/* True if access i is to be locked after access j: by address of the handle, then by index. */
static bool locks_after(const struct access *accesses, unsigned i, unsigned j)
{
    uintptr_t address_i = (uintptr_t)accesses[i].handle, address_j = (uintptr_t)accesses[j].handle;
    return address_i != address_j ? address_i > address_j : i > j;
}

/* Makes one pass of an insertion sort, of accesses at distance `gap`. */
static inline void insert_at(struct access *accesses, unsigned count, unsigned gap)
{
    for (unsigned i = gap; i < count; i++) {
        uint16_t order = accesses[i].order;
        unsigned j = i;
        for (; j >= gap && locks_after(accesses, accesses[j - gap].order, order); j -= gap)
            accesses[j].order = accesses[j - gap].order;
        accesses[j].order = order;
    }
}

/*
 * Sorts and joins many accesses, as sort_accesses: at shrinking distances first (Shell, CACM 1959).
 */
RARE static unsigned sort_many(struct access *accesses, unsigned count)
{
    for (unsigned gap = count / 2; gap > 1; gap = gap * 5 / 11)
        insert_at(accesses, count, gap);
    insert_at(accesses, count, 1);
    unsigned different = 0;
    struct access *first = NULL;
    for (unsigned i = 0; i < count; i++) {
        struct access *access = &accesses[accesses[i].order];
        if (first && first->handle == access->handle) {
            first->mode |= access->mode;
            access->mode = 0;
        } else {
            first = access;
            different++;
        }
    }
    return different;
}

/* Joins the access whose place in the order is `at` into the first one to the same handle. */
RARE static void join_access(struct access *accesses, unsigned at)
{
    struct access *access = &accesses[accesses[at].order], *first;
    do
        first = &accesses[accesses[--at].order];
    while (!first->mode);
    first->mode |= access->mode;
    access->mode = 0;
}

/*
 * Sorts the accesses by address of their handles, the order in which duet__link locks them, and
 * joins accesses to the same handle into the first of them. Returns the number of those left.
 */
static HOT unsigned sort_accesses(struct access *accesses, unsigned count)
{
    if (count > 24)
        return sort_many(accesses, count);
    unsigned different = count;
    for (unsigned i = 1; i < count; i++) {
        const struct duet_handle *handle = accesses[i].handle, *before = NULL;
        unsigned j = i;
        for (; j > 0; j--) {
            before = accesses[accesses[j - 1].order].handle;
            if ((uintptr_t)before <= (uintptr_t)handle)
                break;
            accesses[j].order = accesses[j - 1].order;
        }
        accesses[j].order = (uint16_t)i;
        if (j > 0 && before == handle) {
            join_access(accesses, j);
            different--;
        }
    }
    return different;
}

/* Refuses an access with an invalid handle or mode. */
static int check_access(const struct duet_runtime *core, const struct duet_task_desc *desc,
                        unsigned i, struct duet_message *message)
{
    const struct duet_access *access = &desc->accesses[i];
    const enum duet_mode mode = access->mode;
    const bool plain = mode >= DUET_R && mode <= DUET_RW;
    const bool special = mode == DUET_COMMUTE || mode == DUET_SCRATCH || mode == DUET_REDUCE;
    if (!access->handle || (!plain && !special))
        return duet_fail(message, DUET_EINVAL, "access %u (from 0) of a %s task has %s", i,
                         desc->codelet->name, access->handle ? "no valid mode" : "no handle");
    if (access->handle->core != core && mode != DUET_SCRATCH) /* only its shape counts */
        return duet_fail(message, DUET_EINVAL,
                         "access %u (from 0) of a %s task is to data of another runtime", i,
                         desc->codelet->name);
    if (mode == DUET_SCRATCH && access->handle->layout)
        return duet_fail(
            message, DUET_EINVAL,
            "access %u (from 0) of a %s task is scratch of the shape of handle %llu, which is "
            "%s: name temporary data (duet_register_temporary) of the size that is needed",
            i, desc->codelet->name, (unsigned long long)access->handle->id,
            duet__no_matrix(access->handle));
    if (mode == DUET_REDUCE && !access->handle->reduction)
        return duet_fail(message, DUET_EINVAL,
                         "access %u (from 0) of a %s task reduces handle %llu, of which nobody "
                         "has said how: call duet_set_reduction before",
                         i, desc->codelet->name, (unsigned long long)access->handle->id);
    return DUET_OK;
}

/* For acquisitions, of which there are few: a call that is not inlined. */
RARE unsigned duet__sort_accesses(struct access *accesses, unsigned count)
{
    return sort_accesses(accesses, count);
}

static inline void copy_access(struct duet_task *task, const struct duet_task_desc *desc,
                               unsigned i)
{
    struct access *to = &task->accesses[i];
    to->handle = desc->accesses[i].handle;
    to->mode = (uint8_t)desc->accesses[i].mode;
    to->index = to->order = (uint16_t)i;
}

/* Checks accesses where data is cut. */
RARE static int check_cut(const struct duet_task *task, const struct duet_task_desc *desc,
                          struct duet_message *message)
{
    return duet__check_turns(task->accesses, task->access_count, desc->codelet->name, message);
}

static inline int check_copied(const struct duet_runtime *core, struct duet_task *task,
                               const struct duet_task_desc *desc, struct duet_message *message)
{
    task->access_count = (uint16_t)desc->access_count;
    task->modes = 0;
    if (atomic_load_explicit(&core->cut, memory_order_relaxed) && desc->access_count > 1)
        return check_cut(task, desc, message);
    return DUET_OK;
}

/* Copies accesses of which some are more than reading or writing, or invalid. */
RARE static int copy_special(struct duet_runtime *core, struct duet_task *task,
                             const struct duet_task_desc *desc, struct duet_message *message)
{
    uint8_t modes = 0;
    int error = DUET_OK;
    task->modes = 0; /* the task has no scratch buffers yet */
    for (unsigned i = 0; i < desc->access_count && !error; i++) {
        error = check_access(core, desc, i, message);
        copy_access(task, desc, i);
        if (desc->accesses[i].mode > DUET_RW)
            modes |= (uint8_t)(desc->accesses[i].mode & ~DUET_RW);
    }
    if (!error)
        error = check_copied(core, task, desc, message);
    if (error)
        return error;
    task->modes = modes;
    if ((modes & ACCESS_SCRATCH) && duet__scratch_make(core, task))
        return duet_fail(message, DUET_ENOMEM, "no memory left for the scratch of another task");
    return DUET_OK;
}

static inline int copy_accesses(struct duet_runtime *core, struct duet_task *task,
                                const struct duet_task_desc *desc, struct duet_message *message)
{
    const unsigned count = (unsigned)desc->access_count;
    for (unsigned i = 0; i < count; i++) {
        const struct duet_access *from = &desc->accesses[i];
        if (!from->handle || from->handle->core != core || from->mode < DUET_R ||
            from->mode > DUET_RW)
            return copy_special(core, task, desc, message);
        copy_access(task, desc, i);
    }
    return check_copied(core, task, desc, message);
}

/* True if a task is too large for some device; *largest is the memory of the largest of them. */
static bool too_small(const struct duet_runtime *core, const struct duet_task *task, uint64_t where,
                      uint64_t *largest)
{
    const struct task_class *klass = task->klass;
    uint64_t archs = klass->codelet->archs & (where ? where : UINT64_MAX);
    uint64_t kinds = duet__kinds_of_archs(core, archs),
             bytes = duet__slab_bytes(task->accesses, task->access_count);
    bool any = false;
    *largest = 0;
    for (unsigned k = 0; klass->too_big && k < core->kind_count; k++) {
        uint64_t capacity = core->kinds[k].capacity_bytes;
        if (!(kinds >> k & 1) || capacity >= bytes)
            continue;
        any = true;
        if (capacity > *largest)
            *largest = capacity;
    }
    return any;
}

static int refuse_task(const struct duet_runtime *core, const struct duet_task *task,
                       uint64_t where, struct duet_message *message)
{
    const struct duet_codelet *codelet = task->klass->codelet;
    const char *kernel = codelet->name;
    uint64_t largest;
    if (too_small(core, task, where, &largest)) {
        return duet_fail(message, DUET_ETOOBIG,
                         "a %s task needs %llu bytes of device memory, and the largest device has "
                         "%llu (in blocks of %d): use smaller tiles, or more memory",
                         kernel,
                         (unsigned long long)duet__slab_bytes(task->accesses, task->access_count),
                         (unsigned long long)largest, SLAB_ALIGN);
    }
    if (codelet->expand)
        return duet_fail(message, DUET_ENOWORKER,
                         "kernel %s expands, which needs a CPU worker, and machine %s has none in "
                         "use: add one (--duet-cpus)",
                         kernel, core->machine.name);
    if (!codelet->archs)
        return duet_fail(message, DUET_ENOWORKER,
                         "kernel %s has no implementation for any architecture of machine %s",
                         kernel, core->machine.name);
    return duet_fail(message, DUET_ENOWORKER,
                     "no worker in use on machine %s can run kernel %s%s: add CPUs or GPUs, or "
                     "allow it elsewhere",
                     core->machine.name, kernel, where ? " with this restriction" : "");
}

static bool any_device(const struct duet_runtime *core, uint64_t kinds)
{
    for (unsigned k = 0; k < core->kind_count; k++)
        if (core->kinds[k].device && kinds >> k & 1)
            return true;
    return false;
}

/*
 * Adds the kinds of workers that may run a task to those that bounds on the makespan count for its
 * class.
 */
static void count_kinds(struct task_class *klass, uint64_t kinds)
{
    if (!(kinds & ~atomic_load_explicit(&klass->possible, memory_order_relaxed)))
        return;
    atomic_fetch_or(&klass->possible, kinds);
    duet__class_best(klass);
}

/* Restricts a task that names workers, or the first of its class. */
RARE static int restrict_anew(struct duet_runtime *core, struct duet_task *task, uint64_t where,
                              struct duet_message *message)
{
    uint64_t kinds = task->klass->kinds;
    if (where)
        kinds = task->klass->able & duet__kinds_of_archs(core, where);
    uint64_t largest;
    bool pushed_out = core->strict && task->klass->too_big && !any_device(core, kinds);
    if (!kinds || (pushed_out && too_small(core, task, where, &largest)))
        return refuse_task(core, task, where, message);
    if (duet__mask_find(core, kinds, &task->mask))
        return duet_fail(message, DUET_ENOMEM,
                         "tasks are restricted to more than %d different sets of workers",
                         MASKS_MAX);
    count_kinds(task->klass, kinds);
    if (!where)
        atomic_store_explicit(&task->klass->mask, (uint16_t)(task->mask + 1), memory_order_release);
    return DUET_OK;
}

/* Sets the workers that may run the task. */
static HOT int restrict_task(struct duet_runtime *core, struct duet_task *task, uint64_t where,
                             struct duet_message *message)
{
    uint16_t known = atomic_load_explicit(&task->klass->mask, memory_order_acquire);
    if (where || !known)
        return restrict_anew(core, task, where, message);
    task->mask = (uint8_t)(known - 1);
    return DUET_OK;
}

static HOT int check_task(const struct duet_runtime *core, const struct duet_task_desc *desc,
                          struct duet_message *message)
{
    if (!desc || !desc->codelet) {
        duet_fail(message, DUET_EINVAL, "a task needs a codelet");
        return DUET_EINVAL;
    }
    if (desc->codelet->core != core)
        return duet_fail(message, DUET_EINVAL, "kernel %s of a task is of another runtime",
                         desc->codelet->name);
    if (desc->args_bytes && !desc->args)
        return duet_fail(message, DUET_EINVAL,
                         "a %s task has %zu bytes of arguments at no address (args is NULL)",
                         desc->codelet->name, desc->args_bytes);
    if (desc->access_count > UINT16_MAX || (desc->access_count && !desc->accesses))
        return duet_fail(message, DUET_EINVAL,
                         "a %s task has %zu accesses; at most 65,535 are possible",
                         desc->codelet->name, desc->access_count);
    return DUET_OK;
}

static HOT int task_fill(struct duet_runtime *core, struct duet_task *task,
                         const struct duet_task_desc *desc, struct duet_message *out)
{
    int error = copy_accesses(core, task, desc, out);
    if (error)
        return error;
    unsigned different = task->access_count;
    if (different > 1)
        different = sort_accesses(task->accesses, different);
    task->bare = !desc->args_bytes;
    if (has_extra(desc)) {
        error = duet__extra_new(core, task, desc, out);
        if (error)
            return error;
        different += task->extra->edge_count;
    } else {
        copy_args(task, desc);
    }
    struct duet_message message;
    message.text[0] = '\0';
    struct duet_codelet *codelet = (struct duet_codelet *)(uintptr_t)desc->codelet;
    error = duet__class_find(codelet, task_args(task), task->accesses, task->access_count,
                             &task->klass, &task->work, &message);
    if (error)
        return duet_fail(out, error, "%s", *message.text ? message.text : duet_strerror(error));
    error = restrict_task(core, task, desc->where, out);
    if (!error && (task->modes & ACCESS_REDUCES))
        error = duet__reduction_restrict(core, task, out);
    if (error)
        return error;
    task->state = TASK_CREATED;
    task->kept = false;
    task->parent = NULL;
    task->note = 0;
    task->priority = desc->priority & core->priority_bits;
    task->complexity = desc->complexity > 0 ? desc->complexity : task->work;
    atomic_init(&task->pending, (int32_t)different + 1);
    return DUET_OK;
}

/*
 * Returns how many tasks the window has room for, or fewer. Reads counters of other threads only
 * when the last sum does not suffice.
 */
inline uint64_t duet__window_room(struct duet_runtime *core)
{
    uint64_t submitted = atomic_load_explicit(&core->submitted, memory_order_relaxed);
    uint64_t seen = atomic_load_explicit(&core->finished_seen, memory_order_relaxed);
    if (submitted - seen < core->window)
        return core->window - (submitted - seen);
    seen = duet__finished_tasks(core);
    atomic_store_explicit(&core->finished_seen, seen, memory_order_relaxed);
    submitted = atomic_load(&core->submitted) - seen;
    return submitted < core->window ? core->window - submitted : 0;
}

static bool window_full(struct duet_runtime *core)
{
    return duet__window_room(core) == 0;
}

/*
 * Returns true if a full window has opened; else it sets the number of tasks that have to end from
 * now on. `ended` is counted after the worker's own counter, and read before the sum is made: tasks
 * that end meanwhile may be counted twice, and a submission looks once too often. A worker that
 * notices late that a submission waits leaves a bundle uncounted here: then the next worker without
 * work tells it (duet__look_idle).
 */
static bool window_open(void *argument)
{
    struct duet_runtime *core = argument;
    uint64_t open_at;
    do {
        uint64_t ended = atomic_load(&core->ended);
        uint64_t left = unfinished(core);
        if (left <= window_low(core))
            return true;
        open_at = ended + left - window_low(core);
        atomic_store(&core->open_at, open_at);
    } while (atomic_load(&core->ended) >= open_at);
    return false;
}

/* Clears the reference of a task that was not submitted. Returns `error`. */
RARE int duet__not_made(const struct duet_task_desc *desc, int error)
{
    if (desc && desc->extra && desc->extra->ref)
        *desc->extra->ref = NULL;
    return error;
}

/* Frees a task that is not submitted after all. */
RARE static int task_give_up(struct duet_runtime *core, int by, const struct duet_task_desc *desc,
                             struct duet_task *task, int error)
{
    duet__scratch_refused(core, task);
    if (task->extra)
        duet__extra_refused(task);
    duet__task_free(core, by, task);
    return duet__not_made(desc, error);
}

/*
 * Makes a task in a call of worker `by`, or of none, counted as submitted and not yet linked.
 * Errors as duet_submit, with a message; never blocks.
 */
HOT int duet__task_new(struct duet_runtime *core, int by, const struct duet_task_desc *desc,
                       struct duet_task **out, struct duet_message *message)
{
    int error = check_task(core, desc, message);
    if (error)
        return duet__not_made(desc, error);
    unsigned room = (unsigned)desc->access_count;
    if (has_extra(desc))
        room += duet__extra_room(desc);
    struct duet_task *task = duet__task_alloc(core, by, room);
    if (!task)
        return duet__not_made(desc,
                              duet_fail(message, DUET_ENOMEM, "no memory left for another task"));
    error = task_fill(core, task, desc, message);
    if (error)
        return task_give_up(core, by, desc, task, error);
    task->id = take_numbers(core, 1);
    *out = task;
    return DUET_OK;
}

/*
 * Fills a record of its own memory, which is zeroed, as that of a task with arguments and accesses
 * that its record has room for, but for the number. Errors as duet_submit.
 */
RARE int duet__task_model(struct duet_runtime *core, struct duet_task *model,
                          const struct duet_task_desc *desc)
{
    struct duet_message message;
    duet__task_pool(model, (unsigned)desc->access_count);
    return task_fill(core, model, desc, &message);
}

/* Returns whose kernel runs on the calling thread, as ops.inside. */
static inline int inside_of(const struct duet_runtime *core)
{
    return core->ops->inside ? core->ops->inside(core->engine) : DUET_OUTSIDE;
}

/* Sets the message of duet_last_message; several threads may do so at once. */
void duet__tell(struct duet_runtime *core, const struct duet_message *message)
{
    const bool locks =
        inside_of(core) != DUET_FORKED; /* a thread of the parent may hold the lock */
    if (locks)
        spin_lock(&core->message_lock);
    core->message = *message;
    if (locks)
        spin_unlock(&core->message_lock);
    atomic_store_explicit(&core->told, true, memory_order_relaxed);
}

int duet__refuse(struct duet_runtime *core, int error, const char *format, ...)
{
    struct duet_message message;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(message.text, sizeof message.text, format, arguments);
    va_end(arguments);
    duet__tell(core, &message);
    return error;
}

int duet_worker_here(const struct duet_runtime *runtime)
{
    return inside_of(runtime);
}

/* Returns the caller as ops.inside, but DUET_SUBMITTER for the application's thread in a `done`. */
int duet__caller(const struct duet_runtime *core)
{
    int by = inside_of(core);
    return by == DUET_OUTSIDE && duet__in_done() ? DUET_SUBMITTER : by;
}

int duet__not_forked(struct duet_runtime *core, const char *function)
{
    if (inside_of(core) != DUET_FORKED)
        return DUET_OK;
    return duet__refuse(core, DUET_EINVAL,
                        "%s was called in a child made by fork, which has none of the runtime's "
                        "threads: it may open a runtime of its own",
                        function);
}

int duet__may_wait(struct duet_runtime *core, const char *function)
{
    int by = duet__caller(core);
    if (by == DUET_OUTSIDE || by == DUET_FORKED)
        return duet__not_forked(core, function);
    duet__fail_task(
        core, DUET_EINVAL,
        "%s was called inside a kernel, an expansion or a task's `done`, which may submit "
        "tasks but not wait",
        function);
    return DUET_EINVAL;
}

/* Submits where the application's call may go to a gate, or be recorded. */
RARE static int submit_aside(struct duet_runtime *runtime, const struct duet_task_desc *desc)
{
    struct duet_message unused;
    struct recorded *copy = NULL;
    if (!check_task(runtime, desc, &unused))
        copy = duet__record_begin(runtime, desc);
    int error = runtime->gate ? duet__gate_submit(runtime, desc) : duet__submit_here(runtime, desc);
    duet__record_end(runtime, copy, !error);
    return error;
}

int duet_submit(struct duet_runtime *runtime, const struct duet_task_desc *desc)
{
    if (runtime->gate || atomic_load_explicit(&runtime->recordings, memory_order_relaxed))
        return submit_aside(runtime, desc);
    return duet__submit_here(runtime, desc);
}

RARE static int wait_for_window(struct duet_runtime *runtime)
{
    atomic_fetch_add(&runtime->throttled, 1);
    int error = duet__wait_until(runtime, window_open, runtime);
    atomic_fetch_sub(&runtime->throttled, 1);
    if (error)
        duet__tell_stuck(runtime);
    return error;
}

int duet__window_here(struct duet_runtime *runtime)
{
    return window_full(runtime) ? wait_for_window(runtime) : DUET_OK;
}

int duet__submit_here(struct duet_runtime *runtime, const struct duet_task_desc *desc)
{
    int error = DUET_OK, by = inside_of(runtime);
    if (by == DUET_FORKED)
        return duet__not_made(desc, duet__not_forked(runtime, "duet_submit"));
    bool nests = by >= 0 && runtime->keeps;
    if (nests && duet__nested_submit(runtime, &runtime->workers[by], desc, NULL))
        return DUET_OK;
    /* submissions inside a kernel or an expansion never wait: they are beyond the window */
    if (by == DUET_OUTSIDE && window_full(runtime) && !duet__in_done()) {
        error = wait_for_window(runtime);
        if (error)
            return duet__not_made(desc, error);
    }
    struct duet_task *task = NULL;
    struct duet_message message;
    message.text[0] = '\0'; /* only the first byte: this runs for every task */
    error = duet__task_new(runtime, by, desc, &task, &message);
    if (!error)
        runtime->enter(runtime->enter_for, task);
    else
        duet__tell(runtime, &message);
    return error;
}

/* Returns the run's first error, and copies its message for duet_last_message. */
int duet__run_error(struct duet_runtime *runtime)
{
    int error = atomic_load_explicit(&runtime->error, memory_order_acquire);
    if (error) {
        spin_lock(&runtime->message_lock);
        runtime->message = runtime->run_message;
        spin_unlock(&runtime->message_lock);
        atomic_store_explicit(&runtime->told, true, memory_order_relaxed);
    }
    return error;
}

static bool all_finished(void *argument)
{
    const struct duet_runtime *core = argument;
    return unfinished(core) == 0;
}

/*
 * Blocks until all tasks have ended, with or without error. DUET_ESTUCK, with a message, if they
 * cannot.
 */
int duet__wait_all(struct duet_runtime *runtime)
{
    atomic_fetch_add(&runtime->waits, 1);
    int error = duet__wait_until(runtime, all_finished, runtime);
    atomic_fetch_sub(&runtime->waits, 1);
    if (error)
        duet__tell_stuck(runtime);
    return error;
}

int duet_wait(struct duet_runtime *runtime)
{
    int error = duet__may_wait(runtime, "duet_wait");
    if (error)
        return error;
    return runtime->gate ? runtime->gate->wait(runtime->gate_arg) : duet__wait_here(runtime);
}

int duet__wait_here(struct duet_runtime *runtime)
{
    int error = duet__wait_all(runtime);
    return error ? error : duet__run_error(runtime);
}

const char *duet_last_message(const struct duet_runtime *runtime)
{
    /* the returned text does not change, whatever other threads set meanwhile */
    static _Thread_local struct duet_message copy;
    struct duet_runtime *core = (struct duet_runtime *)(uintptr_t)runtime;
    if (!atomic_load_explicit(&core->told, memory_order_relaxed))
        return "";
    spin_lock(&core->message_lock);
    copy = core->message;
    spin_unlock(&core->message_lock);
    return copy.text;
}

double duet_now(const struct duet_runtime *runtime)
{
    return runtime->ops->now(runtime->engine);
}

bool duet_computes(const struct duet_runtime *runtime)
{
    return runtime->computes;
}
