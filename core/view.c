/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions of a policy. All of it reads atomics or constants; answers may be outdated when threads
 * run.
 */
#include <math.h>

#include "core/internal.h"

RARE static struct duet_list *no_list(struct duet_view *view, unsigned worker)
{
    duet__fail_run(view->core, DUET_EINVAL, "policy %s asks for the list of worker %d of %u",
                   view->core->parameters_of->name, (int)worker, view->core->machine.worker_count);
    return &view->core->shared;
}

HOT struct duet_list *duet_view_list(struct duet_view *view, unsigned worker)
{
    if (worker >= view->core->machine.worker_count)
        return no_list(view, worker);
    return &view->core->workers[worker].list;
}

struct duet_list *duet_view_shared(struct duet_view *view)
{
    return &view->core->shared;
}

unsigned duet_view_workers(const struct duet_view *view)
{
    return view->core->machine.worker_count;
}

unsigned duet_view_nodes(const struct duet_view *view)
{
    return view->core->machine.node_count;
}

unsigned duet_view_archs(const struct duet_view *view)
{
    return view->core->machine.arch_count;
}

unsigned duet_view_arch(const struct duet_view *view, unsigned worker)
{
    return has_worker(view->core, worker) ? view->core->workers[worker].arch : 0;
}

unsigned duet_view_node(const struct duet_view *view, unsigned worker)
{
    return has_worker(view->core, worker) ? view->core->workers[worker].node : DUET_HOST;
}

bool duet_view_is_device(const struct duet_view *view, unsigned worker)
{
    return duet_view_node(view, worker) != DUET_HOST;
}

inline unsigned duet_view_local(const struct duet_view *view, int by)
{
    return by >= 0 ? (unsigned)by : 0;
}

void *duet_view_worker_state(struct duet_view *view, unsigned worker)
{
    if (!has_worker(view->core, worker))
        return NULL;
    return view->core->worker_states + worker * view->core->worker_state_bytes;
}

double duet_view_parameter(const struct duet_view *view, unsigned index)
{
    struct duet_runtime *core = view->core;
    if (index < duet__parameter_count(core->parameters_of))
        return core->parameters[index];
    duet__fail_run(core, DUET_EINVAL, "policy %s asks for its parameter %u, and has %u",
                   core->parameters_of->name, index, duet__parameter_count(core->parameters_of));
    return 0;
}

unsigned duet_view_random(struct duet_view *view, int worker, unsigned bound)
{
    struct duet_runtime *core = view->core;
    /* only the calling worker's own generator is free of races */
    if (worker >= 0 && worker == view->by)
        return duet_random_below(&core->workers[worker].rng, bound);
    spin_lock(&core->submit_lock);
    unsigned drawn = duet_random_below(&core->submit_rng, bound);
    spin_unlock(&core->submit_lock);
    return drawn;
}

uint64_t duet_view_first_task(const struct duet_view *view)
{
    return atomic_load_explicit(&view->core->first_task, memory_order_relaxed);
}

const void *duet_view_context(const struct duet_view *view)
{
    return view->core->parameters_of->context;
}

const struct duet_machine *duet_view_machine(const struct duet_view *view)
{
    return &view->core->machine;
}

void duet_view_fail(struct duet_view *view, int error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    duet__fail_run_as(view->core, error, format, arguments);
    va_end(arguments);
    view->wake_all = true; /* for tasks that are cancelled now */
}

bool duet_view_can_run(const struct duet_view *view, unsigned worker, const struct duet_task *task)
{
    const struct worker *self = &view->core->workers[worker];
    return has_worker(view->core, worker) &&
           (view->core->masks[task->mask].kinds >> self->kind & 1) &&
           !atomic_load_explicit(&self->lost, memory_order_acquire);
}

double duet_view_seconds(const struct duet_view *view, unsigned worker,
                         const struct duet_task *task)
{
    if (!has_worker(view->core, worker))
        return 0;
    return duet__expected_s(task, view->core->workers[worker].arch);
}

double duet_view_transfer_seconds(const struct duet_view *view, unsigned worker,
                                  const struct duet_task *task, bool alone)
{
    const struct duet_runtime *core = view->core;
    unsigned node = duet_view_node(view, worker);
    double sharers = alone ? 1 : core->accelerators, seconds = 0;
    for (unsigned i = 0; has_worker(core, worker) && i < task->access_count; i++)
        if (task->accesses[i].mode & DUET_R)
            seconds += duet__transfer_seconds(core, task->accesses[i].handle, node, sharers);
    return seconds;
}

void *duet_task_data_state(struct duet_view *view, const struct duet_task *task, size_t index)
{
    if (index >= task->access_count)
        return NULL;
    return (char *)task->accesses[index].handle + duet__data_state_offset(view->core);
}

double duet_view_copy_alone_seconds(const struct duet_view *view, unsigned from, unsigned to,
                                    uint64_t bytes)
{
    if (!has_node(view->core, from) || !has_node(view->core, to))
        return 0;
    return duet__copy_seconds(&view->core->machine, from, to, bytes);
}

bool duet_view_valid(const struct duet_view *view, unsigned node, const struct duet_task *task,
                     size_t index)
{
    if (!has_node(view->core, node) || index >= task->access_count || !task->accesses[index].mode)
        return false;
    const struct duet_handle *handle = task->accesses[index].handle;
    return bit_test_acquire(handle->coming, node) || bit_test(handle->valid, node);
}

void *duet_task_place_state(struct duet_view *view, const struct duet_task *task, size_t index,
                            unsigned node)
{
    if (index >= task->access_count || !has_node(view->core, node))
        return NULL;
    return (char *)task->accesses[index].handle + duet__place_state_offset(view->core, node);
}

uint64_t duet_view_capacity_bytes(const struct duet_view *view, unsigned node)
{
    if (!has_node(view->core, node))
        return 0;
    return node == DUET_HOST ? UINT64_MAX : view->core->nodes[node].slab.capacity_bytes;
}

uint64_t duet_view_free_bytes(const struct duet_view *view, unsigned node)
{
    if (node == DUET_HOST || !has_node(view->core, node))
        return duet_view_capacity_bytes(view, node);
    const struct slab *slab = &view->core->nodes[node].slab;
    return slab->capacity_bytes - atomic_load_explicit(&slab->used_bytes, memory_order_relaxed);
}

uint64_t duet_view_valid_bytes(const struct duet_view *view, unsigned node,
                               const struct duet_task *task)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < task->access_count; i++)
        if (duet_view_valid(view, node, task, i))
            bytes += task->accesses[i].handle->bytes;
    return bytes;
}

bool duet_view_idle(const struct duet_view *view, unsigned worker)
{
    return has_worker(view->core, worker) &&
           atomic_load(&view->core->hungry[worker / 64]) >> (worker % 64) & 1;
}

double duet_view_load(const struct duet_view *view, unsigned worker)
{
    if (!has_worker(view->core, worker))
        return 0;
    const struct worker *w = &view->core->workers[worker];
    int64_t ns = atomic_load_explicit(&w->list.expected_ns, memory_order_relaxed) +
                 atomic_load_explicit(&w->taken_ns, memory_order_relaxed);
    return ns > 0 ? (double)ns * 1e-9 : 0;
}

/* ------------------------------------------------------------------------------------------- */
/*
 * Eviction of data least used in the future (LUF: Gonthier, Marchal, Thibault, FGCS 149, 2023), for
 * policies that assign tasks to workers before these take them.
 */

_Static_assert(sizeof(_Atomic(int)) <= DUET_LUF_BYTES, "the count has its place");

void duet_luf_count(struct duet_view *view, const struct duet_task *task, unsigned worker,
                    int change)
{
    struct duet_runtime *core = view->core;
    const unsigned node = duet_view_node(view, worker);
    if (node == DUET_HOST || policy_of(core)->state_size_a_place < DUET_LUF_BYTES ||
        (change > 0 && atomic_load_explicit(&core->registered_bytes, memory_order_relaxed) <=
                           core->nodes[node].slab.capacity_bytes))
        return;
    for (unsigned i = 0; i < task->access_count; i++) {
        if (task->accesses[i].mode & ACCESS_REDUCES)
            continue; /* a reduction ends in another handle */
        _Atomic(int) *uses = duet_task_place_state(view, task, i, node);
        /* tasks that began before there was so much data were not counted */
        if (change > 0 || atomic_load_explicit(uses, memory_order_relaxed) > 0)
            atomic_fetch_add_explicit(uses, change, memory_order_relaxed);
        struct replica *replica = task->accesses[i].handle->replicas[node];
        if (change < 0 && replica)
            replica_changed(&core->nodes[node], replica);
    }
}

void duet_luf_epilogue(void *self, struct duet_view *view, struct duet_task *task, unsigned worker,
                       const struct duet_times *times, double now)
{
    duet_luf_count(view, task, worker, -1);
}

double duet_luf_victim(void *self, struct duet_view *view, unsigned node, void *place, bool sole)
{
    _Atomic(int) *uses = place;
    const int count = atomic_load_explicit(uses, memory_order_relaxed);
    return count == 0 && !sole ? INFINITY : -count - (sole ? 0.5 : 0);
}

/* ------------------------------------------------------------------------------------------- */
/*
 * Direct successors of a task, as far as they were submitted: there are no edges to follow, but the
 * next accesses in the chains of the task's data, and the edges of its reference.
 */

/*
 * Counts a successor that waits, with one of its accesses, for `before` tasks, of which this is
 * one; acquisitions do not count.
 */
static void add_successor(struct duet_successors *found, const struct duet_task *next,
                          unsigned before)
{
    int waits = atomic_load_explicit(&next->pending, memory_order_relaxed);
    if (!next->klass || waits < 1)
        return;
    found->count++;
    found->normalised += 1.0 / ((double)waits * before);
}

/*
 * Counts the tasks that are granted the data together when the task, and others of its kind, have
 * ended.
 */
static void add_next(struct duet_successors *found, struct duet_handle *handle)
{
    spin_lock(&handle->lock);
    struct access *access = handle->head;
    const unsigned mode = access ? access->mode : 0, before = handle->active ? handle->active : 1;
    while (access) {
        add_successor(found, access_task(access), before);
        access = SHARED_MODES >> (mode & 31) & 1 ? access->next : NULL;
        if (access && access->mode != mode)
            break;
    }
    spin_unlock(&handle->lock);
}

struct duet_successors duet_task_successors(const struct duet_task *task)
{
    struct duet_successors found = {0};
    for (unsigned i = 0; i < task->access_count; i++)
        if (task->accesses[i].mode)
            add_next(&found, task->accesses[i].handle);
    if (task->extra && task->extra->ref)
        duet__ref_each(task->extra->ref, add_successor, &found);
    return found;
}
