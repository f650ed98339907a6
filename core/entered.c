/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorded graph: tasks that have entered it, in order, from which bounds on the makespan are
 * computed.
 */
#include "core/internal.h"

/* Limits of the recorded graph: some 150 MB. */
enum { TASKS_MOST = 1 << 22, USES_MOST = 1 << 24 };

struct entered {
    struct spin lock; /* taken inside the locks of a task's handles; only a reference's lock is
                         taken inside it */
    struct duet__entered kept;
    size_t task_room, use_room, datum_room;
    bool full; /* no more tasks are recorded: limit reached, or no memory */
};

/* Makes room for `count` more elements of an array. */
static bool reserve_array(void **array, size_t *room, size_t used, size_t count, size_t bytes)
{
    if (*room - used >= count)
        return true;
    size_t more = 2 * (used + count) + 1024;
    void *larger = realloc(*array, more * bytes);
    if (!larger)
        return false;
    *array = larger;
    *room = more;
    return true;
}

/* Makes room for one more task with so many uses. Lock held. */
static bool reserve_task(struct entered *all, size_t uses)
{
    struct duet__entered *kept = &all->kept;
    if (all->task_room > kept->task_count && all->use_room - kept->use_count >= uses &&
        all->datum_room - kept->datum_count >= uses && kept->use_count + uses < USES_MOST)
        return kept->task_count < TASKS_MOST;
    return kept->task_count < TASKS_MOST && kept->use_count + uses < USES_MOST &&
           reserve_array((void **)&kept->tasks, &all->task_room, kept->task_count, 1,
                         sizeof *kept->tasks) &&
           reserve_array((void **)&kept->uses, &all->use_room, kept->use_count, uses,
                         sizeof *kept->uses) &&
           reserve_array((void **)&kept->bytes, &all->datum_room, kept->datum_count, uses,
                         sizeof *kept->bytes);
}

/* Returns the bytes that a device has to copy before it reads the handle: all, if it is valid in
   the host's memory alone and shares no place with other data; else 0. Handle lock held. */
static uint64_t bytes_at_home(const struct duet_runtime *core, const struct duet_handle *handle)
{
    for (unsigned n = 0; n < core->machine.node_count; n++)
        if (bit_test(handle->valid, n) != (n == DUET_HOST) || bit_test(handle->coming, n))
            return 0;
    bool apart = !handle->of && !atomic_load_explicit(&handle->family, memory_order_relaxed);
    return apart ? handle->bytes : 0;
}

/* Returns the number of a handle in this measurement, by order of first use. */
static uint32_t number_of(struct duet_runtime *core, struct duet_handle *handle)
{
    struct duet__entered *kept = &core->entered->kept;
    if (handle->seen_reset != core->resets || !handle->seen_as) {
        kept->bytes[kept->datum_count++] = bytes_at_home(core, handle);
        handle->seen_as = (uint32_t)kept->datum_count;
        handle->seen_reset = core->resets;
    }
    return handle->seen_as - 1;
}

static void record_use(struct duet_runtime *core, const struct access *access)
{
    struct duet__entered *kept = &core->entered->kept;
    const bool reduces = access->mode & ACCESS_REDUCES, commutes = access->mode & ACCESS_COMMUTES;
    const struct duet_handle *whole = access->handle;
    while (whole->of) { /* parts bring data of their whole to devices, too */
        whole = whole->of->whole;
        if (whole->seen_reset == core->resets && whole->seen_as)
            kept->bytes[whole->seen_as - 1] = 0;
    }
    kept->uses[kept->use_count++] =
        number_of(core, access->handle) << DUET__USE_BITS |
        (access->mode & DUET_R && !reduces ? DUET__USE_READS : 0) |
        (access->mode & DUET_W && !reduces && !commutes ? DUET__USE_IN_TURN : 0);
}

/* Records a task. The locks of its handles are held. */
__attribute__((noinline)) void duet__entered_add(struct duet_runtime *core, struct duet_task *task)
{
    struct entered *all = core->entered;
    const struct task_extra *extra = task->extra;
    spin_lock(&all->lock);
    struct duet__entered *kept = &all->kept;
    /* a combining task is recorded after the access that waits for it, although it runs before */
    bool combines = task->modes & TASK_COMBINES;
    unsigned edges = extra ? extra->edge_count : 0;
    all->full = all->full || !reserve_task(all, task->access_count + (size_t)edges);
    if (!all->full) {
        for (unsigned i = 0; i < edges; i++) {
            uint32_t before = duet__edge_seen(extra, i);
            if (before)
                kept->uses[kept->use_count++] = (before - 1) << DUET__USE_BITS | DUET__USE_TASK;
        }
        for (unsigned i = 0; i < task->access_count && !combines; i++)
            if (task->accesses[i].mode)
                record_use(core, &task->accesses[i]);
        kept->tasks[kept->task_count++] = (struct duet__entered_task){
            .klass = task->klass ? task->klass->index : UINT32_MAX,
            .end = (uint32_t)kept->use_count,
        };
        if (extra && extra->ref)
            duet__ref_see(extra->ref, (uint32_t)kept->task_count);
    }
    spin_unlock(&all->lock);
}

void duet__entered_reset(struct duet_runtime *core)
{
    struct entered *all = core->entered;
    if (!all)
        return;
    all->kept.task_count = all->kept.use_count = all->kept.datum_count = 0;
    all->full = false;
}

void duet__entered_fini(struct duet_runtime *core)
{
    if (!core->entered)
        return;
    free(core->entered->kept.tasks);
    free(core->entered->kept.uses);
    free(core->entered->kept.bytes);
    free(core->entered);
}

void duet__keep_entered(struct duet_runtime *core)
{
    if (!core->entered)
        core->entered = calloc(1, sizeof *core->entered);
}

const struct duet__entered *duet__entered(const struct duet_runtime *core)
{
    return core->entered ? &core->entered->kept : NULL;
}
