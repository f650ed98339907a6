/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data cut into parts. The whole and its cuts are views of the same memory, with replicas of their
 * own on devices, so they may be used only in turns: some views are in force, and any of these may
 * be read; a view that is written has to be the only one in force. When a task enters the graph
 * whose access does not fit, the core enters another one before it, a turn: an acquisition of all
 * handles of two views, at whose end the data is in the host's memory, and the second view in
 * force. There are turns only where a program goes from one view to another.
 *
 * To read a view, a turn goes from one that is in force (R) to the wanted one (W), and both are in
 * force then. To write a view, a turn goes from each other one that is in force (RW) to the wanted
 * one (W), which replaces it; if the wanted one was in force, so that all of them are valid in the
 * host's memory, the turn only waits for the users of the others (W, and R of the wanted one).
 *
 * Parts may be cut in turn: the access to a part is one to each view on the way to it, the
 * outermost first; and if a turn uses a handle that is cut itself, its whole is put in force. While
 * more than one view is in force, all of them are valid in the host's memory.
 */
#include "core/internal.h"

/* ------------------------------------------------------------------------------------------- */
/* Turns. parts_lock is held                                                                    */

/* Returns the number of handles of a view: one of the handle's cuts, or NULL, the handle itself. */
static unsigned view_size(const struct parts *view)
{
    return view ? view->count : 1;
}

static bool in_force(const struct duet_handle *whole, const struct parts *view)
{
    return view ? view->in_force : !whole->apart;
}

static void put_in_force(struct duet_handle *whole, struct parts *view, bool value)
{
    if (view)
        view->in_force = value;
    else
        whole->apart = !value;
}

static void need_view(struct duet_view *view, struct duet_handle *whole, struct parts *wanted,
                      unsigned mode);

/* Adds the accesses of a turn to all handles of a view, from number `first` on. */
static void use_view(struct duet_view *view, struct duet_task *turn, unsigned first,
                     struct duet_handle *whole, struct parts *used, unsigned mode)
{
    for (unsigned i = 0; i < view_size(used); i++) {
        struct access *access = &turn->accesses[first + i];
        access->handle = used ? used->handles[i] : whole;
        access->mode = (uint8_t)mode;
        if (used && access->handle->cuts)
            need_view(view, access->handle, NULL, mode);
    }
}

/* Enters a turn that brings the data of the handle from one view to another. */
static void turn(struct duet_view *view, struct duet_handle *whole, struct parts *from,
                 unsigned mode_from, struct parts *to, unsigned mode_to)
{
    unsigned count = view_size(from) + view_size(to);
    struct duet_task *task = duet__acquisition_new(view->core, count);
    if (!task) {
        duet__fail_run(view->core, DUET_ENOMEM,
                       "no memory left to go from handle %llu to its parts, or back",
                       (unsigned long long)whole->id);
        return;
    }
    task->over = duet__acquire_end;
    use_view(view, task, 0, whole, from, mode_from);
    use_view(view, task, view_size(from), whole, to, mode_to);
    (void)duet__sort_accesses(task->accesses, count);
    duet__link_turn(view, task);
}

static void turn_to_read(struct duet_view *view, struct duet_handle *whole, struct parts *wanted)
{
    struct parts *from = whole->apart ? whole->cuts : NULL;
    while (from && !from->in_force)
        from = from->next;
    turn(view, whole, from, DUET_R, wanted, DUET_W);
}

/*
 * Makes a turn from one other view to write the wanted one. An access that overwrites the whole
 * does not need the old contents.
 */
static void turn_to_write(struct duet_view *view, struct duet_handle *whole, struct parts *from,
                          struct parts *wanted, unsigned mode)
{
    if (from == wanted || !in_force(whole, from))
        return;
    if (in_force(whole, wanted))
        turn(view, whole, from, DUET_W, wanted, DUET_R);
    else
        turn(view, whole, from, !wanted && !(mode & DUET_R) ? DUET_W : DUET_RW, wanted, DUET_W);
    put_in_force(whole, from, false);
    put_in_force(whole, wanted, true);
}

/* Puts a view in force for an access in this mode. */
static void need_view(struct duet_view *view, struct duet_handle *whole, struct parts *wanted,
                      unsigned mode)
{
    if (mode & DUET_W) {
        turn_to_write(view, whole, NULL, wanted, mode);
        for (struct parts *from = whole->cuts; from; from = from->next)
            turn_to_write(view, whole, from, wanted, mode);
    } else if (!in_force(whole, wanted)) {
        turn_to_read(view, whole, wanted);
        put_in_force(whole, wanted, true);
    }
}

/* Puts all views on the way to a part in force for an access in this mode. */
static void need_way(struct duet_view *view, const struct duet_handle *part, unsigned mode)
{
    struct parts *of = part->of;
    if (!of || of->expansion)
        return;
    need_way(view, of->whole, mode);
    need_view(view, of->whole, of, mode);
}

/* The handles' locks are held. */
bool duet__is_cut(const struct duet_task *task)
{
    if (task->modes & TASK_COMBINES)
        return false; /* the turn of a task that combines was made already */
    for (unsigned i = 0; i < task->access_count; i++) {
        const struct duet_handle *handle = task->accesses[i].handle;
        if (task->accesses[i].mode && atomic_load_explicit(&handle->family, memory_order_relaxed))
            return true;
    }
    return false;
}

__attribute__((cold)) void duet__take_turns(struct duet_view *view, struct duet_task *task)
{
    for (unsigned i = 0; i < task->access_count; i++) {
        const struct access *access = &task->accesses[i];
        if (!access->mode || !atomic_load_explicit(&access->handle->family, memory_order_relaxed))
            continue;
        /* a reduction adds to the earlier contents */
        const unsigned mode = access->mode & ACCESS_REDUCES ? DUET_RW : access->mode;
        need_way(view, access->handle, mode);
        if (access->handle->cuts)
            need_view(view, access->handle, NULL, mode);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Tasks that no order of turns suits */

static unsigned depth_of(const struct duet_handle *handle)
{
    unsigned depth = 0;
    for (; handle->of; handle = handle->of->whole)
        depth++;
    return depth;
}

/* True if two handles are a whole and a part of it, or parts of two cuts of one whole. */
static bool views_clash(const struct duet_handle *a, const struct duet_handle *b)
{
    unsigned depth_a = depth_of(a), depth_b = depth_of(b);
    const struct parts *by_a = NULL, *by_b = NULL;
    while (a != b && (a->of || b->of)) {
        bool up_a = a->of && depth_a >= depth_b, up_b = b->of && depth_b >= depth_a;
        if (up_a) {
            by_a = a->of;
            a = by_a->whole;
            depth_a--;
        }
        if (up_b) {
            by_b = b->of;
            b = by_b->whole;
            depth_b--;
        }
    }
    return a == b && by_a != by_b;
}

int duet__check_turns(const struct access *accesses, unsigned count, const char *kernel,
                      struct duet_message *message)
{
    for (unsigned i = 0; i < count; i++) {
        const struct access *a = &accesses[i];
        if (!atomic_load_explicit(&a->handle->family, memory_order_relaxed))
            continue;
        for (unsigned j = 0; j < i; j++) {
            const struct access *b = &accesses[j];
            if (!((a->mode | b->mode) & DUET_W) || ((a->mode | b->mode) & ACCESS_SCRATCH))
                continue;
            if (views_clash(a->handle, b->handle))
                return duet_fail(message, DUET_EINVAL,
                                 "accesses %u and %u of a %s task are to a handle and a part of "
                                 "it, or to parts of two cuts, and not both to read: use one of "
                                 "them",
                                 j, i, kernel);
        }
    }
    return DUET_OK;
}

/* ------------------------------------------------------------------------------------------- */
/* Calls of the application */

/* Adds a cut to its whole. */
void duet__parts_attach(struct duet_runtime *core, struct parts *parts)
{
    struct duet_handle *whole = parts->whole;
    for (unsigned i = 0; i < parts->count; i++)
        atomic_init(&parts->handles[i]->family, true);
    atomic_store_explicit(&core->cut, true, memory_order_relaxed);
    spin_lock(&core->parts_lock);
    parts->next = whole->cuts;
    whole->cuts = parts;
    spin_lock(&whole->lock);
    atomic_store_explicit(&whole->family, true, memory_order_relaxed);
    spin_unlock(&whole->lock);
    spin_unlock(&core->parts_lock);
}

/*
 * Parts by number: rows x cols blocks of sizes as equal as they can be, the first ones larger by
 * one; or a list.
 */
struct grid {
    size_t rows, cols;
    const struct duet_part *list; /* NULL: blocks of the grid */
    const enum shape *shapes;     /* shapes of the list's parts; NULL: rectangles */
};

static void range(size_t length, size_t count, size_t i, size_t *first, size_t *size)
{
    size_t each = length / count, larger = length % count;
    *first = i * each + (i < larger ? i : larger);
    *size = each + (i < larger);
}

static struct duet_part part_of(const struct grid *grid, const struct duet_handle *whole, size_t i)
{
    struct duet_part part;
    if (grid->list)
        return grid->list[i];
    range(whole->rows, grid->rows, i % grid->rows, &part.row, &part.rows);
    range(whole->cols, grid->cols, i / grid->rows, &part.col, &part.cols);
    return part;
}

/*
 * Gives temporary data a place in the host's memory, where its parts are first, with undefined
 * contents.
 */
static bool place_temporary(struct duet_runtime *core, struct duet_handle *whole)
{
    if (!whole->temporary)
        return true;
    spin_lock(&whole->lock);
    bool placed = duet__host_place(core, whole);
    if (placed && whole->version == 0)
        bit_set(whole->valid, DUET_HOST);
    spin_unlock(&whole->lock);
    return placed;
}

static int make_cut(struct duet_runtime *runtime, struct duet_handle *whole,
                    const struct grid *grid, struct duet_handle **out)
{
    struct duet_message message = {""};
    int error = duet__own_data(runtime, whole, "a cut");
    if (error)
        return error;
    if (!out || !grid->rows || !grid->cols)
        return duet__refuse(runtime, DUET_EINVAL, "a cut needs parts and room for them");
    if (whole->of && whole->of->expansion)
        return duet__refuse(runtime, DUET_EINVAL,
                            "handle %llu is a block of a task that expands: let a child expand it",
                            (unsigned long long)whole->id);
    if (!grid->list && !whole->layout && (grid->rows > whole->rows || grid->cols > whole->cols))
        return duet__refuse(runtime, DUET_EINVAL,
                            "%zu x %zu parts of %zu x %zu elements: some would be empty",
                            grid->rows, grid->cols, whole->rows, whole->cols);
    struct parts *parts = place_temporary(runtime, whole) ? duet__parts_new(whole, NULL) : NULL;
    if (!parts)
        return duet__refuse(runtime, DUET_ENOMEM, "no memory left for a cut");
    for (size_t i = 0; i < grid->rows * grid->cols && !error; i++) {
        const struct duet_part part = part_of(grid, whole, i);
        error =
            duet__part_add(runtime, parts, &part, grid->shapes ? grid->shapes[i] : FULL, &message);
    }
    if (error) {
        (void)duet__parts_remove(runtime, parts);
        return duet__refuse(runtime, error, "%s", message.text);
    }
    memcpy(out, parts->handles, parts->count * sizeof(struct duet_handle *));
    duet__parts_attach(runtime, parts);
    return DUET_OK;
}

int duet_cut(struct duet_runtime *runtime, struct duet_handle *whole, const struct duet_part *parts,
             size_t count, struct duet_handle **out)
{
    return make_cut(runtime, whole, &(struct grid){parts ? count : 0, 1, parts, NULL}, out);
}

int duet_cut_blocks(struct duet_runtime *runtime, struct duet_handle *whole, size_t rows,
                    size_t cols, struct duet_handle **out)
{
    return make_cut(runtime, whole, &(struct grid){rows, cols, NULL, NULL}, out);
}

int duet_cut_triangles(struct duet_runtime *runtime, struct duet_handle *whole,
                       enum duet_diagonal diagonal, struct duet_handle **out)
{
    static const enum shape shapes[][3] = {[DUET_DIAGONAL_LOWER] = {LOWER, STRICTLY_UPPER},
                                           [DUET_DIAGONAL_UPPER] = {STRICTLY_LOWER, UPPER},
                                           [DUET_DIAGONAL_APART] = {STRICTLY_LOWER, STRICTLY_UPPER,
                                                                    DIAGONAL}};
    bool square = whole && (whole->layout || (whole->rows == whole->cols && whole->rows >= 2));
    if (!square || diagonal < DUET_DIAGONAL_LOWER || diagonal > DUET_DIAGONAL_APART)
        return duet__refuse(runtime, DUET_EINVAL,
                            "only a square of 2 x 2 elements or more can be cut into triangles, "
                            "with its diagonal in the lower one, in the upper one, or apart");
    const struct duet_part all = {0, 0, whole->rows, whole->cols};
    const struct duet_part list[] = {all, all, all};
    size_t count = diagonal == DUET_DIAGONAL_APART ? 3 : 2;
    return make_cut(runtime, whole, &(struct grid){count, 1, list, shapes[diagonal]}, out);
}

/* Returns the first of the parts, and their parts, that the application has acquired, or NULL. */
static const struct duet_handle *acquired_part(const struct parts *parts)
{
    const struct duet_handle *found = NULL;
    for (unsigned i = 0; parts && i < parts->count && !found; i++) {
        const struct duet_handle *part = parts->handles[i];
        found = part->acquired ? part : NULL;
        for (const struct parts *cut = part->cuts; cut && !found; cut = cut->next)
            found = acquired_part(cut);
    }
    return found;
}

int duet__check_parts(struct duet_runtime *core, const struct parts *parts)
{
    const struct duet_handle *part = acquired_part(parts);
    if (part)
        return duet__refuse(core, DUET_EINVAL,
                            "handle %llu, a part of handle %llu, is acquired: release it first",
                            (unsigned long long)part->id, (unsigned long long)parts->whole->id);
    return DUET_OK;
}

/* Removes a cut from its whole. */
static void cut_detach(struct duet_runtime *core, struct parts *parts)
{
    spin_lock(&core->parts_lock);
    struct parts **at = &parts->whole->cuts;
    while (*at != parts)
        at = &(*at)->next;
    *at = parts->next;
    spin_unlock(&core->parts_lock);
}

int duet_uncut(struct duet_runtime *runtime, struct duet_handle *part)
{
    if (!part)
        return DUET_OK;
    struct parts *parts = part->of;
    if (!parts || parts->expansion)
        return duet__refuse(runtime, DUET_EINVAL, "handle %llu is no part of a cut",
                            (unsigned long long)part->id);
    int error = duet__own_data(runtime, part, "duet_uncut");
    if (!error)
        error = duet__may_wait(runtime, "duet_uncut");
    if (!error)
        error = duet__check_parts(runtime, parts);
    if (error)
        return error;
    duet__record_bars(runtime, "duet_uncut");
    /* as a writer, to wait also for tasks that only read parts */
    struct duet_handle *whole = parts->whole;
    bool had = whole->acquired != NULL;
    int acquired = duet__acquire_here(runtime, whole, DUET_RW);
    if (had || !whole->acquired || acquired == DUET_ESTUCK)
        return acquired;
    cut_detach(runtime, parts);
    (void)duet__parts_remove(runtime, parts);
    duet__release_now(runtime, whole);
    return acquired;
}
