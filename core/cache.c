/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory as a cache of the host's: least recently used replicas make room, and those that
 * hold the only valid copy are written back first (lazy write-back). A task gets all the room it
 * needs or none, so tasks that wait for room hold nothing that others wait for.
 */
#include <math.h>

#include "core/internal.h"

/* ------------------------------------------------------------------------------------------- */
/* LRU list; the node's lock is held                                                            */

static void lru_remove(struct node *node, struct replica *replica)
{
    if (replica->older)
        replica->older->newer = replica->newer;
    else
        node->oldest = replica->newer;
    if (replica->newer)
        replica->newer->older = replica->older;
    else
        node->newest = replica->older;
    replica->older = replica->newer = NULL;
    node->placed--;
}

static void lru_add_newest(struct node *node, struct replica *replica)
{
    replica->newer = NULL;
    replica->older = node->newest;
    if (node->newest)
        node->newest->newer = replica;
    else
        node->oldest = replica;
    node->newest = replica;
    node->placed++;
    replica->order = node->newest_order++;
}

static void lru_add_oldest(struct node *node, struct replica *replica)
{
    replica->older = NULL;
    replica->newer = node->oldest;
    if (node->oldest)
        node->oldest->older = replica;
    else
        node->newest = replica;
    node->oldest = replica;
    node->placed++;
    replica->order = --node->oldest_order;
}

/* ------------------------------------------------------------------------------------------- */
/*
 * Replicas that may leave where scores hold: a heap, the first to leave on top, by what was known
 * when they were last looked at. One that could leave earlier since then is on the list of what has
 * changed; that one would leave later is noticed when it is on top.
 */

enum { ASKED_MAX = 1024 };

struct candidate {
    double score;
    int64_t order;
    struct replica *replica;
};

static bool leaves_before(const struct candidate *a, const struct candidate *b)
{
    return a->score > b->score || (a->score == b->score && a->order < b->order);
}

static void heap_set(struct candidate *heap, unsigned place, struct candidate one)
{
    heap[place] = one;
    one.replica->place = place;
}

/* Puts a candidate where it belongs; `place`, from 1, is free. Node lock held, as below. */
static void heap_put(struct node *node, struct candidate one, unsigned place)
{
    struct candidate *heap = node->candidates;
    for (; place > 1 && leaves_before(&one, &heap[place / 2]); place /= 2)
        heap_set(heap, place, heap[place / 2]);
    for (unsigned child; (child = 2 * place) <= node->candidate_count; place = child) {
        child += child < node->candidate_count && leaves_before(&heap[child + 1], &heap[child]);
        if (!leaves_before(&heap[child], &one))
            break;
        heap_set(heap, place, heap[child]);
    }
    heap_set(heap, place, one);
}

static void heap_leave(struct node *node, struct replica *replica)
{
    const unsigned place = replica->place;
    replica->place = 0;
    if (place && place < node->candidate_count--)
        heap_put(node, node->candidates[node->candidate_count + 1], place);
}

/* Puts a replica on the list of what has changed. A handle's lock may be held. */
void duet__replica_changed(struct node *node, struct replica *replica)
{
    spin_lock(&node->changed_lock);
    if (!replica->changed_at) {
        replica->changed_at = &node->changed;
        replica->changed_next = node->changed;
        if (node->changed)
            node->changed->changed_at = &replica->changed_next;
        node->changed = replica;
    }
    spin_unlock(&node->changed_lock);
}

static void unlist(struct node *node, struct replica *replica)
{
    spin_lock(&node->changed_lock);
    if (replica->changed_at) {
        *replica->changed_at = replica->changed_next;
        if (replica->changed_next)
            replica->changed_next->changed_at = replica->changed_at;
        replica->changed_at = NULL;
    }
    spin_unlock(&node->changed_lock);
}

/* A granted access overwrites the data, which need not be written back then. Handle lock held. */
void duet__data_dies(struct duet_handle *handle)
{
    struct duet_runtime *core = handle->core;
    for (unsigned word = 0; word < core->node_words; word++)
        for (uint64_t bits = atomic_load_explicit(&handle->valid[word], memory_order_relaxed); bits;
             bits &= bits - 1) {
            const unsigned node = word * 64 + (unsigned)__builtin_ctzll(bits);
            replica_changed(&core->nodes[node], handle->replicas[node]);
        }
}

/* ------------------------------------------------------------------------------------------- */
/* Eviction; the node's lock is held                                                            */

/* True if another node than the replica's holds valid data. Handle lock held. */
static bool valid_elsewhere(const struct duet_runtime *core, const struct replica *replica)
{
    for (unsigned word = 0; word < core->node_words; word++) {
        uint64_t bits = atomic_load_explicit(&replica->handle->valid[word], memory_order_relaxed);
        if (replica->node / 64 == word)
            bits &= ~(UINT64_C(1) << (replica->node % 64));
        if (bits)
            return true;
    }
    return false;
}

/*
 * True if no one will read the data: a granted access overwrites all of it, or frees it; a copy
 * would only come after that. Handle lock held.
 */
static bool is_dead(const struct duet_handle *handle)
{
    return handle->active > 0 && !(handle->active_mode & (DUET_R | ACCESS_REDUCES));
}

/* Replicas that may be evicted to make room. */
enum room { INVALID, CLEAN, ANY };

/*
 * True if the replica may be evicted. *sole: only after a write-back. Data that will not be read is
 * not written back: its writer may already work in the host's memory. Handle lock held.
 */
static bool may_go(const struct duet_runtime *core, const struct replica *replica, enum room room,
                   bool *sole)
{
    const struct duet_handle *handle = replica->handle;
    *sole = false;
    if (replica->pins || replica->copying || replica->leaving)
        return false;
    if (!bit_test(handle->valid, replica->node))
        return true;
    *sole = !is_dead(handle) && !valid_elsewhere(core, replica);
    return *sole ? room == ANY && !handle->host.copying : room != INVALID;
}

/* Frees the replica's place. Node and handle lock held. */
static void replica_drop(struct node *node, struct replica *replica)
{
    bit_clear(replica->handle->valid, replica->node);
    lru_remove(node, replica);
    heap_leave(node, replica);
    duet__slab_free(&node->slab, replica->block);
    replica->block = NULL;
}

/* Evicts what may go, at once or by starting its write-back for the task. */
static void evict(struct duet_view *view, struct node *node, struct replica *replica,
                  enum room room, const struct duet_task *task)
{
    struct duet_handle *handle = replica->handle;
    bool sole;
    spin_lock(&handle->lock);
    if (may_go(view->core, replica, room, &sole)) {
        if (!sole) {
            replica_drop(node, replica);
            node->evictions++;
        } else {
            node->leaving_bytes += replica->block->bytes;
            node->write_backs++;
            duet__write_back(view, replica, task);
        }
    }
    spin_unlock(&handle->lock);
}

/*
 * Returns true if a replica may go, with its score: that of the policy, or INFINITY if it is
 * invalid. If it may not, score 0 says that it is pinned.
 */
static bool score_replica(struct duet_view *view, const struct duet_policy *policy,
                          const struct replica *replica, enum room room, double *score)
{
    struct duet_runtime *core = view->core;
    struct duet_handle *handle = replica->handle;
    bool sole;
    spin_lock(&handle->lock);
    const bool may = may_go(core, replica, room, &sole);
    const bool valid = bit_test(handle->valid, replica->node);
    *score = replica->pins ? 0 : INFINITY;
    spin_unlock(&handle->lock);
    void *place = (char *)handle + duet__place_state_offset(core, replica->node);
    if (may && valid)
        *score = policy->victim(core->policy_state, view, replica->node, place, sole);
    return may;
}

/*
 * Returns the replica that the policy evicts first; NULL: none may go. Valid data whose score is
 * not the highest so far, whether it has to be written back or not, is passed over without its
 * lock.
 */
RARE static struct replica *search_victim(struct duet_view *view, const struct duet_policy *policy,
                                          const struct node *node, enum room room)
{
    struct duet_runtime *core = view->core;
    const unsigned index = (unsigned)(node - core->nodes);
    const size_t offset = duet__place_state_offset(core, index);
    struct replica *best = NULL;
    double most = -INFINITY, score;
    unsigned asked = 0;
    for (struct replica *at = node->oldest; at && asked < ASKED_MAX; at = at->newer) {
        void *place = (char *)at->handle + offset;
        if (best && node->placed <= ASKED_MAX && bit_test(at->handle->valid, index) &&
            policy->victim(core->policy_state, view, index, place, false) <= most &&
            policy->victim(core->policy_state, view, index, place, true) <= most)
            continue;
        if (!score_replica(view, policy, at, room, &score))
            continue;
        if (!best || score > most) {
            best = at;
            most = score;
        }
        asked += score < INFINITY ? 1 : ASKED_MAX;
    }
    return best;
}

/*
 * Scores a replica for the heap. Returns false if it may not go: it is looked at again in the next
 * search or, if it is pinned, when it is not any more.
 */
static bool score_candidate(struct duet_view *view, const struct duet_policy *policy,
                            struct node *node, struct replica *replica)
{
    struct candidate one = {.order = replica->order, .replica = replica};
    const bool may = score_replica(view, policy, replica, ANY, &one.score);
    if (may)
        heap_put(node, one, replica->place ? replica->place : ++node->candidate_count);
    else
        heap_leave(node, replica);
    if (!may && one.score > 0)
        duet__replica_changed(node, replica);
    return may;
}

/* Returns what search_victim would find for ANY. */
static struct replica *first_candidate(struct duet_view *view, const struct duet_policy *policy,
                                       struct node *node)
{
    spin_lock(&node->changed_lock);
    struct replica *changed = node->changed, *top;
    node->changed = NULL;
    if (changed)
        changed->changed_at = &changed;
    spin_unlock(&node->changed_lock);
    while ((top = changed)) {
        unlist(node, top);
        if (top->block)
            (void)score_candidate(view, policy, node, top);
    }
    while (node->candidate_count) {
        top = node->candidates[1].replica;
        if (score_candidate(view, policy, node, top) && node->candidates[1].replica == top)
            return top;
    }
    return NULL;
}

/* Returns the replica that the policy evicts first; NULL: none may go. */
static struct replica *choose_victim(struct duet_view *view, const struct duet_policy *policy,
                                     struct node *node, enum room room)
{
    if (!policy->scores_hold || room != ANY || node->placed > ASKED_MAX)
        return search_victim(view, policy, node, room);
    if (!node->scored) {
        node->candidates = malloc((ASKED_MAX + 1) * sizeof *node->candidates);
        atomic_store(&node->scored, node->candidates != NULL);
        for (struct replica *at = node->oldest; at && node->scored; at = at->newer)
            duet__replica_changed(node, at);
    }
    return node->scored ? first_candidate(view, policy, node)
                        : search_victim(view, policy, node, room);
}

/*
 * A block for the task, after evictions if need be: oldest replicas first, or as the policy says.
 * NULL: not now; enough write-backs are then on their way, or nothing else may go.
 */
static struct slab_block *alloc(struct duet_view *view, struct node *node, uint64_t bytes,
                                enum room room, const struct duet_task *task)
{
    struct slab_block *block = duet__slab_alloc(&node->slab, bytes);
    if (block)
        return block;
    const struct duet_policy *policy = policy_of(view->core);
    /* invalid replicas are the oldest: there is nothing to choose */
    const bool chooses = policy->victim && room != INVALID;
    struct replica *next = node->oldest, *replica;
    while (!block && node->leaving_bytes < bytes &&
           (replica = chooses ? choose_victim(view, policy, node, room) : next)) {
        next = replica->newer;
        uint64_t used = node->slab.used_bytes;
        evict(view, node, replica, room, task);
        if (node->slab.used_bytes < used)
            block = duet__slab_alloc(&node->slab, bytes);
        else if (room == INVALID)
            break; /* the invalid replicas are the oldest */
    }
    return block;
}

/* Allocates room for every access that has none. Returns false if some are still without. */
static bool room_alloc_all(struct duet_view *view, struct node *node, unsigned index,
                           struct duet_task *task)
{
    for (unsigned i = 0; i < task->access_count; i++) {
        struct access *access = &task->accesses[i];
        if (!access->mode)
            continue;
        struct replica *replica = access->handle->replicas[index];
        if (replica->block)
            continue;
        struct slab_block *block = alloc(view, node, access->handle->slab_bytes, ANY, task);
        if (!block)
            return false;
        replica->block = block;
        lru_add_newest(node, replica);
    }
    return true;
}

/*
 * Evicts all unused replicas, for a task that fits into the slab, but not into its free pieces.
 * Returns true if it is empty now.
 */
static bool clear(struct duet_view *view, struct node *node, const struct duet_task *task)
{
    struct replica *replica = node->oldest;
    while (replica) {
        struct replica *next = replica->newer;
        evict(view, node, replica, ANY, task);
        replica = next;
    }
    return node->oldest == NULL;
}

/* ------------------------------------------------------------------------------------------- */
/* Preparing a task                                                                             */

/* Unpins the replicas of the first `count` accesses. */
static void unpin_first(struct duet_view *view, unsigned index, struct duet_task *task,
                        unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct access *access = &task->accesses[i];
        if (!access->mode)
            continue;
        spin_lock(&access->handle->lock);
        duet__replica_unpin(view, access->handle->replicas[index]);
        spin_unlock(&access->handle->lock);
    }
}

/* Unpins all replicas of a task that was placed. */
void duet__cache_unpin(struct duet_view *view, unsigned node, struct duet_task *task)
{
    unpin_first(view, node, task, task->access_count);
}

/*
 * Pins the task's replicas on a device, and makes them the most recently used. Returns false if
 * there is no memory. Node lock held.
 */
static bool pin_all(struct duet_view *view, struct node *node, unsigned index,
                    struct duet_task *task)
{
    for (unsigned i = 0; i < task->access_count; i++) {
        struct access *access = &task->accesses[i];
        if (!access->mode)
            continue;
        spin_lock(&access->handle->lock);
        struct replica *replica = duet__replica_get(view->core, access->handle, index);
        if (replica)
            duet__replica_pin(view->core, replica);
        spin_unlock(&access->handle->lock);
        if (!replica) {
            unpin_first(view, index, task, i);
            return false;
        }
        if (replica->block && replica != node->newest) {
            lru_remove(node, replica);
            lru_add_newest(node, replica);
        }
    }
    return true;
}

/* Tries once to place a task on a device. Returns 1: placed; 0: not now; < 0: enum duet_error. */
static int try_place(struct duet_view *view, unsigned index, struct duet_task *task)
{
    struct node *node = &view->core->nodes[index];
    spin_lock(&node->lock);
    bool again = true;
    int placed = 0;
    while (again) {
        again = false;
        if (!pin_all(view, node, index, task)) {
            placed = DUET_ENOMEM;
            break;
        }
        placed = room_alloc_all(view, node, index, task);
        if (!placed) {
            unpin_first(view, index, task, task->access_count);
            if (atomic_load(&node->pinned) == 0 && node->leaving_bytes == 0)
                again = clear(view, node, task);
        }
    }
    spin_unlock(&node->lock);
    return placed;
}

/*
 * Requests the inputs of a task whose replicas have their places. A replica that is valid here
 * stays so while the access is granted, since only a granted writer invalidates, and needs no lock.
 * Nor does `leaving`, which only this worker's thread sets and clears.
 */
static void fetch_all(struct duet_view *view, struct worker *worker, struct duet_task *task)
{
    const unsigned node = worker->node, count = task->access_count;
    for (unsigned i = 0; i < count; i++) {
        struct access *access = &task->accesses[i];
        if (!access->mode)
            continue;
        enum fetch fetch = FETCH_HIT;
        bool leaving =
            node != DUET_HOST && (access->mode & DUET_W) && access->handle->replicas[node]->leaving;
        if (leaving || !bit_test_acquire(access->handle->valid, node)) {
            spin_lock(&access->handle->lock);
            fetch = duet__fetch(view, access, node);
            spin_unlock(&access->handle->lock);
        }
        if (node != DUET_HOST && (access->mode & DUET_R)) {
            count_own(&worker->reads, 1);
            count_own(&worker->hits, fetch == FETCH_HIT || fetch == FETCH_MERGED);
            count_own(&worker->merged, fetch == FETCH_MERGED);
        }
        if (fetch >= FETCH_FAILED)
            duet__no_data(view->core, task, access, fetch);
    }
}

/*
 * Finds room for a taken task on its worker's memory node and requests its inputs. Returns 1:
 * `missing` counts the inputs on their way; 0: there is no room now, and the worker is woken when
 * that may have changed; DUET_ENOMEM: the run has failed, and the task holds nothing.
 */
inline int duet__cache_prepare(struct duet_view *view, struct worker *worker,
                               struct duet_task *task)
{
    if (worker->node != DUET_HOST) {
        struct node *node = &view->core->nodes[worker->node];
        int placed = try_place(view, worker->node, task);
        if (placed == 0) {
            /* say that somebody waits, then look once more: room made in between is not missed */
            atomic_store(&node->freed, 0);
            atomic_store(&node->blocked, true);
            placed = try_place(view, worker->node, task);
        }
        if (placed == 0)
            return 0;
        if (atomic_load_explicit(&node->blocked, memory_order_relaxed)) {
            duet__note(view, task, atomic_load(&node->freed), DUET_RELEASE_ROOM);
            atomic_store_explicit(&node->blocked, false, memory_order_relaxed);
        }
        if (placed < 0) {
            struct task_says says;
            duet__fail_task(view->core, placed, "%s: %s", duet__task_says(view->core, task, &says),
                            duet_strerror(placed));
            return placed;
        }
    }
    atomic_store_explicit(&task->missing, 1, memory_order_relaxed);
    fetch_all(view, worker, task);
    (void)count_down(&task->missing, 1);
    task->state = TASK_FETCHING;
    return 1;
}

/*
 * Fetches the data of a hint to a device, if there is room without cost: no task waits for room,
 * and nothing is written back; unless `evicts`, nothing valid is dropped. `missing` of the hint
 * counts the copy.
 */
void duet__cache_prefetch(struct duet_view *view, struct duet_task *hint, unsigned index,
                          bool evicts)
{
    struct duet_runtime *core = view->core;
    struct node *node = &core->nodes[index];
    struct access *access = &hint->accesses[0];
    struct duet_handle *handle = access->handle;
    struct replica *replica = NULL;
    enum fetch fetch = FETCH_HIT;
    if (atomic_load(&node->lost) || atomic_load(&node->blocked) ||
        handle->slab_bytes > node->slab.capacity_bytes)
        return;
    spin_lock(&node->lock);
    spin_lock(&handle->lock);
    replica = duet__replica_get(core, handle, index);
    if (replica)
        duet__replica_pin(core, replica);
    spin_unlock(&handle->lock);
    if (replica && !replica->block) {
        replica->block = alloc(view, node, handle->slab_bytes, evicts ? CLEAN : INVALID, hint);
        if (replica->block)
            lru_add_newest(node, replica);
    }
    if (replica) {
        spin_lock(&handle->lock);
        replica->hinted = replica->hinted || !replica->copying;
        if (replica->block)
            fetch = duet__fetch(view, access, index);
        replica->hinted = replica->hinted && replica->copying;
        duet__replica_unpin(view, replica);
        spin_unlock(&handle->lock);
    }
    spin_unlock(&node->lock);
    if (fetch >= FETCH_FAILED)
        duet__no_data(core, hint, access, fetch);
}

/* ------------------------------------------------------------------------------------------- */
/* After copies and writes */

/*
 * Ends the write-back of an eviction: frees the place unless it is used again. Node and handle lock
 * held.
 */
void duet__cache_settled(struct duet_view *view, struct node *node, struct replica *replica)
{
    struct duet_handle *handle = replica->handle;
    replica->leaving = false;
    node->leaving_bytes -= replica->block->bytes;
    bool sole = bit_test(handle->valid, replica->node) && !valid_elsewhere(view->core, replica);
    if (replica->pins == 0 && !replica->copying && !sole) {
        replica_drop(node, replica);
        node->evictions++;
    }
    if (atomic_load(&node->blocked)) {
        atomic_store(&node->freed, duet__last_record(view));
        duet__view_wake(view, node->worker);
    }
}

/* Makes the place of a replica that became invalid the first to be used again. No lock held. */
void duet__cache_stale(struct duet_runtime *core, struct replica *replica)
{
    struct node *node = &core->nodes[replica->node];
    spin_lock(&node->lock);
    if (replica->block && replica != node->oldest) {
        lru_remove(node, replica);
        lru_add_oldest(node, replica);
    }
    replica_changed(node, replica);
    spin_unlock(&node->lock);
}

/* Makes data that nobody uses yet valid on a device. Returns false if there is no room. */
bool duet__cache_put(struct duet_runtime *core, struct duet_handle *handle, unsigned index)
{
    struct node *node = &core->nodes[index];
    struct replica *replica = duet__replica_get(core, handle, index);
    if (replica)
        replica->block = duet__slab_alloc(&node->slab, handle->slab_bytes);
    if (!replica || !replica->block)
        return false;
    lru_add_newest(node, replica);
    replica_changed(node, replica);
    bit_set(handle->valid, index);
    return true;
}

/* Frees the place of a replica whose handle is freed. No lock held, nobody uses the handle. */
void duet__cache_forget(struct duet_runtime *core, struct replica *replica)
{
    struct node *node = &core->nodes[replica->node];
    spin_lock(&node->lock);
    if (replica->block)
        replica_drop(node, replica);
    unlist(node, replica);
    spin_unlock(&node->lock);
    spin_lock(&node->pool_lock);
    replica->queue_next = node->spare;
    node->spare = replica;
    spin_unlock(&node->pool_lock);
}
