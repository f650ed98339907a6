/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors of a run, and the data that stays valid. A task that fails, or does not run, poisons the
 * data that it was to write; tasks that read poisoned data do not run either. So data is right or
 * known not to be, whether the run ends with its first error or goes on (config.keep_going), and
 * any run can be continued.
 *
 * WATCH_TROUBLE is set with the first of all that and stays: only then is a task looked at for it.
 */
#include <stdio.h>

#include "core/internal.h"

/* Sets the error of the run and its message, unless there is one. */
static void set_error(struct duet_runtime *core, int error, const char *format, va_list arguments)
{
    spin_lock(&core->message_lock);
    if (!atomic_load_explicit(&core->error, memory_order_relaxed)) {
        (void)vsnprintf(core->run_message.text, sizeof core->run_message.text, format, arguments);
        atomic_store_explicit(&core->error, error, memory_order_release);
    }
    spin_unlock(&core->message_lock);
}

/* Stops the run: tasks that have not begun will not run any more. */
static void stop_run(struct duet_runtime *core)
{
    bool first = !atomic_exchange(&core->stopped, true);
    atomic_fetch_or(&core->watch, WATCH_TROUBLE);
    if (first)
        duet__gate_failed(core);
}

void duet__fail_run_as(struct duet_runtime *core, int error, const char *format, va_list arguments)
{
    set_error(core, error, format, arguments);
    stop_run(core);
}

void duet__fail_run(struct duet_runtime *core, int error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    duet__fail_run_as(core, error, format, arguments);
    va_end(arguments);
}

void duet__fail_task(struct duet_runtime *core, int error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_error(core, error, format, arguments);
    va_end(arguments);
    if (!core->keep_going)
        stop_run(core);
}

bool duet__failed(const struct duet_runtime *core)
{
    return atomic_load_explicit(&core->stopped, memory_order_acquire);
}

void duet_cancel(struct duet_runtime *runtime)
{
    duet__fail_run(runtime, DUET_ECANCELED, "the run was cancelled");
    for (unsigned w = 0; w < runtime->machine.worker_count; w++)
        runtime->ops->wake(runtime->engine, w);
}

/*
 * Fills `says` with the task's kernel, its number, and its name if the application gave one.
 * Returns its text.
 */
const char *duet__task_says(const struct duet_runtime *core, const struct duet_task *task,
                            struct task_says *says)
{
    const char *name = task->extra ? duet_trace_name(core, task->extra->name) : NULL;
    if (!task->klass)
        (void)snprintf(says->text, sizeof says->text, "an acquisition");
    else if (task->modes & (TASK_INITIALISES | TASK_COMBINES))
        (void)snprintf(says->text, sizeof says->text, "a reduction's own task (%s)",
                       duet_task_kernel(task));
    else
        (void)snprintf(says->text, sizeof says->text, "task %llu (%s%s%s)",
                       (unsigned long long)task->id, duet_task_kernel(task), name ? ", " : "",
                       name ? name : "");
    return says->text;
}

/* ------------------------------------------------------------------------------------------- */
/* Data that is not valid                                                                       */

/*
 * A write to a region of a matrix that is cut: it has failed (`bad`), or it has ended where an
 * earlier one may have failed. For each element the newest write counts.
 */
struct damage {
    struct damage *next; /* older */
    bool bad;
    size_t row, col, rows, cols, shape;
};

/*
 * Returns the region of a handle in *root, the handle that was registered or, inside a task with
 * children, the one that the task was given.
 */
static struct damage damage_of(struct duet_handle *handle, bool bad, struct duet_handle **root)
{
    struct damage of = {NULL, bad, 0, 0, handle->rows, handle->cols, handle->shape};
    for (; handle->of && !handle->of->expansion; handle = handle->of->whole) {
        of.row += handle->row;
        of.col += handle->col;
    }
    *root = handle;
    return of;
}

/* Records that a write to all of a handle has failed (`bad`) or has ended. Handle lock held. */
void duet__put_damage(struct duet_runtime *core, struct duet_handle *handle, bool bad)
{
    struct duet_handle *root;
    const struct damage put = damage_of(handle, bad, &root);
    const size_t bytes = sizeof put - offsetof(struct damage, row);
    struct damage *made = handle == root ? NULL : malloc(sizeof put);
    const bool all = handle == root || (!made && bad); /* without memory all of *root is bad */
    atomic_store_explicit(&handle->poisoned, bad, memory_order_relaxed);
    spin_lock(&core->damage_lock);
    for (struct damage **at = &root->damage, *old = *at; old; old = *at) {
        if (all || !memcmp(&old->row, &put.row, bytes)) {
            *at = old->next;
            free(old);
        } else {
            at = &old->next;
        }
    }
    if (all)
        root->damaged = bad;
    if (made) {
        *made = put;
        made->next = root->damage;
        root->damage = made;
    }
    spin_unlock(&core->damage_lock);
}

/*
 * Gives the rows *row to *end - 1 of a region in a column: none if *row is not below *end. Lowers
 * *next to the next column in which the region may have other rows.
 */
static void damage_rows(const struct damage *of, size_t col, size_t *row, size_t *end, size_t *next)
{
    const size_t beyond = of->col + of->cols;
    const bool before = col < of->col, within = !before && col < beyond;
    size_t edge = before ? of->col : !within ? SIZE_MAX : of->shape == FULL ? beyond : col + 1;
    *row = *end = 0;
    if (within)
        duet__shape_column((enum shape)of->shape, of->rows, col - of->col, row, end);
    *row += of->row;
    *end += of->row;
    *next = edge < *next ? edge : *next;
}

/* True if a row of a column is bad; rows in no region of `damage` are bad if `rest`. */
static bool rows_bad(const struct damage *damage, bool rest, size_t col, size_t row, size_t end,
                     size_t *next)
{
    for (; damage && row < end; damage = damage->next) {
        size_t first, beyond;
        damage_rows(damage, col, &first, &beyond, next);
        if (first >= beyond || first >= end || beyond <= row)
            continue;
        if (damage->bad || rows_bad(damage->next, rest, col, row, first, next))
            return true;
        row = beyond;
    }
    return row < end && rest;
}

static bool any_bad(const struct damage *damage, bool rest, const struct damage *of)
{
    bool bad = !damage && rest;
    size_t next = of->col, row, end;
    while (damage && next < of->col + of->cols && !bad) {
        const size_t col = next;
        next = SIZE_MAX;
        damage_rows(of, col, &row, &end, &next);
        bad = rows_bad(damage, rest, col, row, end, &next);
    }
    return bad;
}

static bool is_damaged(struct duet_runtime *core, struct duet_handle *handle)
{
    struct duet_handle *root;
    const struct damage of = damage_of(handle, false, &root);
    spin_lock(&core->damage_lock);
    bool bad = any_bad(root->damage, root->damaged, &of);
    spin_unlock(&core->damage_lock);
    return bad;
}

/* Marks a handle whose contents are not the result of its tasks. Handle lock held. */
void duet__poison(struct duet_runtime *core, struct duet_handle *handle)
{
    duet__put_damage(core, handle, true);
    atomic_fetch_or(&core->watch, WATCH_TROUBLE);
}

/*
 * Ends an access in a run that has had trouble: without a write, it leaves nothing valid; a write
 * of all data makes it valid. The application's write of data that it also reads leaves nothing
 * valid if some was not: all that it wrote may come of that. Handle lock held.
 */
void duet__settle_poison(struct duet_runtime *core, struct access *access, bool written)
{
    const bool read = access->mode & DUET_R;
    if (!(access->mode & DUET_W))
        return;
    if (!written)
        duet__poison(core, access->handle);
    else if ((!read || access_task(access)->state == TASK_RELEASED) &&
             atomic_load_explicit(&access->handle->poisoned, memory_order_relaxed))
        duet__put_damage(core, access->handle, read);
}

/* Poisons the data of a copy that failed, unless the data was written since. No lock held. */
void duet__poison_copy(struct duet_runtime *core, const struct duet__copy *copy)
{
    struct duet_handle *handle = copy->handle;
    spin_lock(&handle->lock);
    if (handle->replicas[copy->destination]->copy_version == handle->version)
        duet__poison(core, handle);
    spin_unlock(&handle->lock);
}

bool duet__reads_poisoned(const struct duet_task *task)
{
    for (unsigned i = 0; i < task->access_count; i++) {
        const struct access *access = &task->accesses[i];
        if ((access->mode & DUET_R) &&
            atomic_load_explicit(&access->handle->poisoned, memory_order_relaxed))
            return true;
    }
    return false;
}

/* Sets the validity of handles that an acquisition brings from one view of the data to another. */
void duet__pass_poison(struct duet_runtime *core, struct duet_task *task)
{
    for (unsigned i = 0; i < task->access_count; i++) {
        struct access *access = &task->accesses[i];
        bool bad = is_damaged(core, access->handle);
        atomic_store_explicit(&access->handle->poisoned, bad, memory_order_relaxed);
        if (bad)
            access->mode |= DUET_R; /* duet__settle_poison leaves a bad handle bad if it was read */
    }
}

bool duet__hopeless(const struct duet_runtime *core, const struct duet_task *task)
{
    return duet__failed(core) || duet__reads_poisoned(task);
}

/* Returns the error of a task that does not run. */
int duet__cancelled_by(const struct duet_runtime *core)
{
    return duet__failed(core) ? atomic_load_explicit(&core->error, memory_order_acquire)
                              : DUET_EDATA;
}

/* Counts a task that ends without a result; its parent has none either. */
void duet__count_failure(struct duet_runtime *core, struct duet_task *task, int status,
                         bool cancelled)
{
    (void)atomic_fetch_add(cancelled ? &core->cancelled_tasks : &core->failed_tasks, 1);
    duet__extra_failed(task, status);
    if (task->parent)
        duet__expansion_failed(task->parent, status);
}

/* Returns the result of an acquisition of the handle: the run's error, or that of its data. */
int duet__data_error(struct duet_runtime *runtime, struct duet_handle *handle, unsigned mode)
{
    bool goes_on = runtime->keep_going && !duet__failed(runtime);
    int error = goes_on ? DUET_OK : duet__run_error(runtime);
    if (error || !(mode & DUET_R) || !is_damaged(runtime, handle))
        return error;
    return duet__refuse(
        runtime, DUET_EDATA,
        "handle %llu has no valid contents: a task that was to write it has failed, "
        "was cancelled, or lost them with a device",
        (unsigned long long)handle->id);
}

/* ------------------------------------------------------------------------------------------- */
/* Questions of the application */

/*
 * True if the elements that a handle shares with `asked` are in some memory, by the handle itself
 * or by its parts. parts_lock is held.
 */
static bool is_somewhere(const struct duet_runtime *core, struct duet_handle *handle,
                         const struct damage *asked)
{
    struct duet_handle *root;
    const struct damage of = damage_of(handle, false, &root);
    if (!any_bad(asked, false, &of))
        return true; /* the handle shares no element with what is asked for */
    const struct parts *cut = handle->apart ? handle->cuts : NULL;
    while (cut && !cut->in_force)
        cut = cut->next;
    bool valid = true;
    for (unsigned i = 0; cut && i < cut->count && valid; i++)
        valid = is_somewhere(core, cut->handles[i], asked);
    if (cut)
        return valid;
    uint64_t anywhere = 0;
    spin_lock(&handle->lock);
    for (unsigned word = 0; word < core->node_words; word++)
        anywhere |= atomic_load_explicit(&handle->valid[word], memory_order_relaxed);
    valid = duet__contributions_valid(core, handle);
    spin_unlock(&handle->lock);
    return valid && anywhere;
}

bool duet_valid(struct duet_runtime *runtime, struct duet_handle *handle)
{
    struct duet_handle *root;
    if (!handle || handle->core != runtime)
        return false;
    const struct damage asked = damage_of(handle, true, &root);
    spin_lock(&runtime->parts_lock);
    bool valid = !is_damaged(runtime, handle) && is_somewhere(runtime, root, &asked);
    spin_unlock(&runtime->parts_lock);
    return valid;
}

void duet_failures(const struct duet_runtime *runtime, struct duet_failures *out)
{
    out->failed = atomic_load(&runtime->failed_tasks);
    out->cancelled = atomic_load(&runtime->cancelled_tasks);
}

int duet_recover(struct duet_runtime *runtime)
{
    int error = duet__may_wait(runtime, "duet_recover");
    if (error)
        return error;
    return runtime->gate ? runtime->gate->recover(runtime->gate_arg) : duet__recover_here(runtime);
}

int duet__recover_here(struct duet_runtime *runtime)
{
    int error = duet__wait_all(runtime);
    if (error)
        return error;
    spin_lock(&runtime->message_lock);
    atomic_store(&runtime->error, DUET_OK);
    runtime->run_message.text[0] = '\0';
    spin_unlock(&runtime->message_lock);
    atomic_store(&runtime->stopped, false);
    atomic_store(&runtime->first_task, 0);
    duet__reductions_recover(runtime);
    return DUET_OK;
}
