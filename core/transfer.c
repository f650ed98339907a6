/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between memory nodes: the workers that start them, and the tasks that wait for them. A
 * replica has at most one copy coming in, so requests for data on its way are merged into it.
 */
#include <math.h>

#include "core/internal.h"

enum { REPLICAS_FIRST = 4, DOUBLINGS = 4 }; /* records in the first array; its doublings */

/* Returns an unused replica record of a node, to be filled by the caller; NULL: out of memory. */
static struct replica *new_replica(struct node *node)
{
    spin_lock(&node->pool_lock);
    if (!node->spare) {
        struct replica **arrays =
            realloc(node->arrays, (node->array_count + 1) * sizeof(struct replica *));
        const unsigned number = node->array_count < DOUBLINGS ? node->array_count : DOUBLINGS;
        const unsigned count = REPLICAS_FIRST << number;
        struct replica *array = arrays ? malloc(count * sizeof *array) : NULL;
        if (arrays)
            node->arrays = arrays;
        if (array) {
            node->arrays[node->array_count++] = array;
            for (unsigned i = 0; i < count; i++) {
                array[i].queue_next = node->spare;
                node->spare = &array[i];
            }
        }
    }
    struct replica *replica = node->spare;
    if (replica)
        node->spare = replica->queue_next;
    spin_unlock(&node->pool_lock);
    return replica;
}

/*
 * Returns the handle's replica on a node, made on first use; NULL: out of memory. Handle lock held.
 */
struct replica *duet__replica_get(struct duet_runtime *core, struct duet_handle *handle,
                                  unsigned node)
{
    struct replica *replica = handle->replicas[node];
    if (replica)
        return replica;
    replica = new_replica(&core->nodes[node]);
    if (!replica)
        return NULL;
    memset(replica, 0, sizeof *replica);
    replica->handle = handle;
    replica->node = (uint16_t)node;
    handle->replicas[node] = replica;
    return replica;
}

/* Forbids eviction of a device's replica. Handle lock held. */
void duet__replica_pin(struct duet_runtime *core, struct replica *replica)
{
    if (replica->node != DUET_HOST && replica->pins++ == 0)
        atomic_fetch_add_explicit(&core->nodes[replica->node].pinned, 1, memory_order_relaxed);
}

/*
 * Ends a pin; a worker that waits for room on the node looks again, unless it is the caller, which
 * looks again anyway. Handle lock held.
 */
void duet__replica_unpin(struct duet_view *view, struct replica *replica)
{
    if (replica->node == DUET_HOST || --replica->pins > 0)
        return;
    struct node *node = &view->core->nodes[replica->node];
    atomic_fetch_sub(&node->pinned, 1);
    replica_changed(node, replica);
    if (!atomic_load(&node->blocked))
        return;
    atomic_store(&node->freed, duet__last_record(view));
    if (view->by != (int)node->worker)
        duet__view_wake(view, node->worker);
}

static void queue_append(struct replica **head, struct replica **tail, struct replica *into)
{
    into->queue_next = NULL;
    if (*tail)
        (*tail)->queue_next = into;
    else
        *head = into;
    *tail = into;
}

/* Gives a copy to the worker that starts it. Handle lock held. */
static void enqueue_copy(struct duet_view *view, struct replica *into)
{
    struct duet_runtime *core = view->core;
    unsigned device = into->node != DUET_HOST ? into->node : into->copy.source;
    struct worker *worker = &core->workers[core->nodes[device].worker];
    spin_lock(&worker->copy_lock);
    if (into->hinted)
        queue_append(&worker->idle_head, &worker->idle_tail, into);
    else
        queue_append(&worker->copy_head, &worker->copy_tail, into);
    atomic_fetch_add_explicit(&worker->copies, 1, memory_order_relaxed);
    spin_unlock(&worker->copy_lock);
    duet__view_wake(view, worker->index);
}

/*
 * Returns the next copy that a worker is to start, oldest first, or NULL. Copies for hints come
 * when there is no other and none is in flight, so that tasks do not wait behind them for long.
 */
struct duet__copy *duet__next_copy(struct worker *worker)
{
    if (atomic_load_explicit(&worker->copies, memory_order_acquire) == 0)
        return NULL;
    spin_lock(&worker->copy_lock);
    struct replica **head = worker->copy_head ? &worker->copy_head : &worker->idle_head;
    struct replica **tail = worker->copy_head ? &worker->copy_tail : &worker->idle_tail;
    bool waits = head == &worker->idle_head && worker->copying > 0;
    struct replica *into = waits ? NULL : *head;
    if (into) {
        *head = into->queue_next;
        if (!*head)
            *tail = NULL;
        atomic_fetch_sub_explicit(&worker->copies, 1, memory_order_relaxed);
    }
    spin_unlock(&worker->copy_lock);
    return into ? &into->copy : NULL;
}

/* Marks a replica's data as on its way to its node: its copy is decided. Handle lock held. */
static void set_coming(struct duet_runtime *core, struct replica *into)
{
    into->copying = true;
    bit_set(into->handle->coming, into->node);
    if (policy_of(core)->order >= DUET_NEAREST)
        duet__list_nearer(core, into->handle, into->node);
}

/*
 * Starts the copy from a valid replica into one that has its place, because of a task, or NULL: of
 * what this call is about. Handle lock held.
 */
static void start(struct duet_view *view, struct replica *from, struct replica *into,
                  bool write_back, const struct duet_task *task)
{
    struct duet_handle *handle = into->handle;
    if (handle->temporary && into->node == DUET_HOST)
        (void)duet__host_place(view->core, handle); /* on failure the engine reports it */
    set_coming(view->core, into);
    duet__replica_pin(view->core, from);
    into->copy_version = handle->version;
    into->copy = (struct duet__copy){
        .handle = handle,
        .handle_id = handle->id,
        .bytes = handle->bytes,
        .source = from->node,
        .destination = into->node,
        .write_back = write_back,
        .source_offset = from->block ? from->block->offset : 0,
        .destination_offset = into->block ? into->block->offset : 0,
        .decided_s = view->now,
    };
    duet__note_asked(view, &into->copy, task);
    into->arrival_s = view->now + duet__copy_queued(view->core, &into->copy, 1);
    enqueue_copy(view, into);
}

/*
 * Turns a copy for hints that a task wants now, and the copies on which it is chained, into
 * ordinary ones, unless they have started. Handle lock held.
 */
RARE static void hurry_copy(struct duet_view *view, struct replica *into)
{
    for (; into->hinted; into = into->handle->replicas[into->copy.source]) {
        struct worker *worker = &view->core->workers[view->core->nodes[into->node].worker];
        struct replica *before = NULL;
        into->hinted = false;
        spin_lock(&worker->copy_lock);
        struct replica *at = worker->idle_head;
        for (; at && at != into; at = at->queue_next)
            before = at;
        if (at) {
            *(before ? &before->queue_next : &worker->idle_head) = into->queue_next;
            if (worker->idle_tail == into)
                worker->idle_tail = before;
            queue_append(&worker->copy_head, &worker->copy_tail, into);
        }
        spin_unlock(&worker->copy_lock);
        if (at)
            duet__view_wake(view, worker->index);
    }
}

/*
 * Lets the copy into a replica start when the copy into another one has arrived. Handle lock held.
 */
static void chain_copy(struct duet_view *view, struct replica *on, struct replica *into,
                       double cost_s)
{
    struct replica **end = &on->chained;
    while (*end)
        end = &(*end)->chain_next;
    *end = into;
    set_coming(view->core, into);
    into->copy_version = into->handle->version;
    into->copy = (struct duet__copy){.bytes = into->handle->bytes,
                                     .source = on->node,
                                     .destination = into->node};
    into->arrival_s = view->now + cost_s;
    (void)duet__copy_queued(view->core, &into->copy, 1);
    if (!into->hinted)
        hurry_copy(view, on);
}

/* Removes the first one from the chain of a replica; NULL: there is none. Handle lock held. */
static struct replica *unchain_copy(struct duet_view *view, struct replica *on)
{
    struct replica *into = on->chained;
    if (into) {
        on->chained = into->chain_next;
        into->chain_next = NULL;
        duet__copy_queued(view->core, &into->copy, -1);
    }
    return into;
}

/*
 * Requests data for a replica from the cheapest source: through the host when there is no direct
 * route, when its old contents are still being copied there, or when direct ways are slow or busy;
 * from another device to which it is on its way. Handle lock held.
 */
static bool request(struct duet_view *view, struct replica *into, const struct duet_task *task)
{
    struct duet_handle *handle = into->handle;
    double direct = INFINITY, by_host = INFINITY, by_device = INFINITY;
    const bool loaded = into->node != DUET_HOST && !view->core->nearest_source;
    int source = into->leaving ? -1 : duet__source(view->core, handle, into->node, &direct);
    if (source > DUET_HOST && loaded)
        by_host = duet__cost_by_host(view, handle, into->node);
    if (source >= 0 && loaded && !into->chained) {
        struct replica *on = duet__coming_source(view, handle, into->node, &by_device);
        if (on && by_device < fmin(direct, by_host)) {
            chain_copy(view, on, into, by_device);
            return true;
        }
    }
    if (source >= 0 && direct <= by_host) {
        start(view, handle->replicas[source], into, false, task);
        return true;
    }
    struct replica *host = &handle->host;
    if (!host->copying) {
        source = duet__source(view->core, handle, DUET_HOST, &direct);
        if (source < 0)
            return false;
        start(view, handle->replicas[source], host, false, task);
    }
    chain_copy(view, host, into, duet__cost_behind(view, host, into->node));
    return true;
}

/* Lets the access wait for the copy into a replica. Handle lock held. */
static void await_copy(struct access *waiter, struct replica *into)
{
    atomic_fetch_add_explicit(&access_task(waiter)->missing, 1, memory_order_relaxed);
    waiter->next = into->waiters;
    into->waiters = waiter;
}

/*
 * Lets `other` wait in place of the access, if that waits for a copy into the replica. Handle lock.
 */
bool duet__await_for(struct access *waiter, struct access *other, struct replica *into)
{
    struct access **at = &into->waiters;
    while (*at && *at != waiter)
        at = &(*at)->next;
    if (!*at)
        return false;
    *at = waiter->next;
    await_copy(other, into);
    return true;
}

/*
 * Makes the data of an access valid on a node where its replica has a place. Unless it is valid
 * already (FETCH_HIT), the access becomes a waiter and its task's `missing` count grows by one. An
 * access that only writes waits for a copy that is still coming in, and fetches nothing. One that
 * writes data which is being written back waits until that has been read, so that the host does not
 * get half of the old and half of the new. Temporary data gets its place in the host's memory.
 * Handle lock held.
 */
enum fetch duet__fetch(struct duet_view *view, struct access *waiter, unsigned node)
{
    struct duet_handle *handle = waiter->handle;
    struct replica *replica = handle->replicas[node];
    bool merged = replica->copying;
    if (handle->temporary && node == DUET_HOST && !(waiter->mode & ACCESS_DROPS) &&
        !duet__host_place(view->core, handle))
        return FETCH_FULL;
    if (bit_test(handle->valid, node) || (!merged && !(waiter->mode & DUET_R))) {
        if ((waiter->mode & DUET_W) && replica->leaving)
            await_copy(waiter, &handle->host);
        return FETCH_HIT;
    }
    if (!merged && !request(view, replica, access_task(waiter))) {
        /* who is to be told of that has been told, and gets what there is */
        if (atomic_load_explicit(&handle->poisoned, memory_order_relaxed))
            return FETCH_HIT;
        duet__poison(view->core, handle);
        return FETCH_FAILED;
    }
    if (replica->hinted && merged && access_task(waiter)->klass)
        hurry_copy(view, replica);
    await_copy(waiter, replica);
    return merged ? FETCH_MERGED : FETCH_STARTED;
}

/* Copies a device's only valid replica to the host, to evict it for a task. Handle lock held. */
void duet__write_back(struct duet_view *view, struct replica *replica, const struct duet_task *task)
{
    replica->leaving = true;
    start(view, replica, &replica->handle->host, true, task);
}

/* Counts `count` arrived inputs of a task; with the last one it goes on. */
void duet__arrived(struct duet_view *view, struct duet_task *task, int count)
{
    unsigned worker = task->worker;
    bool acquisition = task->klass == NULL, ends = acquisition && task->over;
    if (!count_down(&task->missing, count))
        return;
    /* the task may run and be freed from here on, unless the core ends it */
    if (ends) {
        task->next = view->over;
        view->over = task;
    } else if (acquisition) {
        view->notify = true;
    } else {
        duet__view_wake(view, worker);
    }
}

static void all_arrived(struct duet_view *view, struct access *waiters)
{
    while (waiters) {
        struct access *next = waiters->next;
        note_released(view, access_task(waiters), DUET_RELEASE_COPY);
        duet__arrived(view, access_task(waiters), 1);
        waiters = next;
    }
}

/*
 * True if a task waits to read the data coming into the replica, or into one that is chained on it.
 * Handle lock held.
 */
static bool is_wanted(const struct replica *into)
{
    for (struct access *waiter = into->waiters; waiter; waiter = waiter->next) {
        const struct duet_task *task = access_task(waiter);
        bool ahead = !task->klass && task->state == TASK_AHEAD;
        if ((waiter->mode & DUET_R) && !ahead)
            return true;
    }
    for (const struct replica *at = into->chained; at; at = at->chain_next)
        if (is_wanted(at))
            return true;
    return false;
}

/*
 * Wakes workers of devices that could not write the data back because a copy to the host was under
 * way: they look for room again. Handle lock held.
 */
static void look_again(struct duet_view *view, const struct duet_handle *handle)
{
    struct duet_runtime *core = view->core;
    for (unsigned n = 1; n < core->machine.node_count; n++)
        if (bit_test(handle->valid, n) && atomic_load(&core->nodes[n].blocked))
            duet__view_wake(view, core->nodes[n].worker);
}

/* Starts the copies that are chained on this replica. Handle lock held. */
static void continue_chained(struct duet_view *view, struct replica *from)
{
    for (struct replica *into; (into = unchain_copy(view, from));)
        start(view, from, into, false, NULL);
}

/* Adds the accesses that wait for a replica to a chain of them. Handle lock held. */
static void add_waiters(struct access **chain, struct replica *replica)
{
    struct access **end = &replica->waiters;
    while (*end)
        end = &(*end)->next;
    *end = *chain;
    *chain = replica->waiters;
    replica->waiters = NULL;
}

/*
 * Gives up the copies into a replica and all that are chained on it; accesses that wait for them
 * are added to a chain. Handle lock held.
 */
static void give_up_copies(struct duet_view *view, struct replica *into, struct access **waiters)
{
    while (into) {
        struct replica *left = into->chain_next, *chained;
        into->chain_next = NULL;
        into->copying = into->hinted = false;
        bit_clear(into->handle->coming, into->node);
        add_waiters(waiters, into);
        while ((chained = unchain_copy(view, into))) {
            chained->chain_next = left;
            left = chained;
        }
        into = left;
    }
}

/*
 * Requests data again for a replica whose copy has not brought it: waiting accesses wait on; *gone:
 * there is no source. Handle lock held.
 */
static void retry_copy(struct duet_view *view, struct replica *into, struct access **waiters,
                       bool *gone)
{
    struct duet_handle *handle = into->handle;
    bool wants = is_wanted(into);
    into->copying = false;
    bit_clear(handle->coming, into->node);
    if (wants && request(view, into, NULL))
        return;
    if (wants && !atomic_load_explicit(&handle->poisoned, memory_order_relaxed)) {
        *gone = true;
        duet__poison(view->core, handle);
    }
    give_up_copies(view, into, waiters);
}

/*
 * Ends the copy in the replicas' states; `arrived`: it has succeeded. If its data is outdated, or
 * did not come, another copy is made for waiting accesses, and if its device is lost, for the
 * copies chained on it. Returns the accesses that need not wait any more. Handle lock held.
 */
static struct access *settle_copy(struct duet_view *view, struct replica *from,
                                  struct replica *into, bool arrived, bool *gone)
{
    struct duet_handle *handle = into->handle;
    const struct node *nodes = view->core->nodes;
    struct access *waiters = NULL;
    into->copying = false;
    bool lost = atomic_load_explicit(&nodes[into->node].lost, memory_order_acquire);
    bool current = arrived && into->copy_version == handle->version && !lost;
    if (current)
        bit_set(handle->valid, into->node);
    bit_clear(handle->coming, into->node);
    into->hinted = into->hinted && !current;
    if (!current || atomic_load_explicit(&nodes[from->node].lost, memory_order_acquire))
        look_again(view, handle);
    if (current) {
        continue_chained(view, into);
        waiters = into->waiters;
        into->waiters = NULL;
    } else if (!lost) {
        retry_copy(view, into, &waiters, gone);
    } else {
        for (struct replica *chained; (chained = unchain_copy(view, into));)
            retry_copy(view, chained, &waiters, gone);
        give_up_copies(view, into, &waiters);
    }
    duet__replica_unpin(view, from);
    return waiters;
}

/*
 * Ends a copy: its replica is valid, unless the data was written elsewhere meanwhile. Waiting tasks
 * go on; copies that go through the host continue; an eviction is completed. All of it under one
 * hold of the locks: once they are free, the handle may be unregistered.
 */
static void copy_ended(struct duet_view *view, struct duet__copy *copy, bool arrived)
{
    struct duet_runtime *core = view->core;
    struct duet_handle *handle = copy->handle;
    struct node *source = &core->nodes[copy->source];
    /* the copy's record may be used again below */
    bool evicting = copy->write_back, gone = false;
    uint64_t id = copy->handle_id;
    duet__copy_queued(core, copy, -1);
    if (evicting)
        spin_lock(&source->lock);
    spin_lock(&handle->lock);
    struct replica *from = handle->replicas[copy->source];
    struct replica *into = handle->replicas[copy->destination];
    struct access *waiters = settle_copy(view, from, into, arrived, &gone);
    if (evicting)
        duet__cache_settled(view, source, from);
    spin_unlock(&handle->lock);
    if (evicting)
        spin_unlock(&source->lock);
    if (gone)
        duet__fail_task(core, DUET_ELOST, "handle %llu: its only valid copy was lost with %s",
                        (unsigned long long)id,
                        arrived ? "a device" : core->machine.nodes[source - core->nodes].name);
    all_arrived(view, waiters);
}

void duet__copy_done(struct duet_view *view, struct duet__copy *copy)
{
    copy_ended(view, copy, true);
}

/*
 * Ends a copy that will not arrive because the device at one of its ends is lost. Waiting tasks get
 * the data from elsewhere; data that is nowhere else is lost, and the run fails.
 */
void duet__copy_lost(struct duet_view *view, struct duet__copy *copy)
{
    copy_ended(view, copy, false);
}
