/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of ready tasks. A list keeps a queue for each set of workers that its tasks are restricted
 * to, so that a worker finds the first task it can run without passing over the others one by one;
 * positions keep the order across queues. Queues are doubly linked, or pairing heaps (Fredman et
 * al., Algorithmica 1986) when the policy wants priorities.
 */
#include <math.h>

#include "core/internal.h"

/*
 * Tries to lock a list. `gate` holds twice the length, and 1 while the list is locked. A pusher
 * first locks the list, then looks for idle workers; a worker first says that it is idle, then
 * looks at the lengths (find_task). All of this is sequentially consistent: either the worker sees
 * the task, or the pusher sees the worker.
 */
static inline bool list_try_lock(struct duet_list *list, uint32_t coming)
{
    uint32_t gate = atomic_load_explicit(&list->gate, memory_order_relaxed);
    return !(gate & 1) && atomic_compare_exchange_strong(&list->gate, &gate, gate + 2 * coming + 1);
}

static inline void list_lock(struct duet_list *list, uint32_t coming)
{
    for (unsigned tries = 0; !list_try_lock(list, coming); tries++)
        duet__spin_rest(tries);
}

/* Unlocks a list that has `gone` tasks less than when it was locked. */
static inline void list_unlock(struct duet_list *list, uint32_t gone)
{
    uint32_t gate = atomic_load_explicit(&list->gate, memory_order_relaxed);
    atomic_store_explicit(&list->gate, gate - 2 * gone - 1, memory_order_release);
}

static inline int32_t missing_of(const struct duet_task *task)
{
    return atomic_load_explicit(&task->missing, memory_order_relaxed);
}

/* True if task `a` of a list comes before `b`, from the head. */
static inline bool list_earlier(unsigned order, const struct duet_task *a,
                                const struct duet_task *b)
{
    const bool by_priority = order == DUET_HEAP || order == DUET_HEAP_NEAREST;
    if (by_priority && a->priority != b->priority)
        return a->priority > b->priority;
    if (order == DUET_SORTED && a->note != b->note)
        return a->note > b->note;
    if (order >= DUET_NEAREST && missing_of(a) != missing_of(b))
        return missing_of(a) < missing_of(b);
    return a->position < b->position;
}

void duet__list_init(struct duet_list *list, struct duet_runtime *core, struct worker *owner)
{
    memset(list, 0, sizeof *list);
    list->core = core;
    list->owner = owner;
    list->first = -1;
}

/* Sets the order of a list that is empty. */
void duet__list_order(struct duet_list *list, enum duet_order order)
{
    list_lock(list, 0);
    list->order = (uint8_t)order;
    list_unlock(list, 0);
}

size_t duet_list_length(const struct duet_list *list)
{
    return atomic_load(&list->gate) / 2;
}

/* ------------------------------------------------------------------------------------------- */
/*
 * A pairing heap of tasks: `prev` is a task's first child, `next` its next sibling. In lists by
 * missing inputs `above` is the sibling before a task, or the parent of a first child.
 */

static struct duet_task *heap_meld(unsigned order, struct duet_task *a, struct duet_task *b)
{
    if (!a || !b)
        return a ? a : b;
    if (list_earlier(order, b, a)) {
        struct duet_task *swap = a;
        a = b;
        b = swap;
    }
    b->next = a->prev;
    a->prev = b;
    if (order >= DUET_NEAREST) {
        b->above = a;
        if (b->next)
            b->next->above = b;
    }
    return a;
}

/* Joins the children of a removed root: pairs from left to right, then from right to left. */
static struct duet_task *join_children(unsigned order, struct duet_task *child)
{
    struct duet_task *pairs = NULL, *root = NULL;
    while (child) {
        struct duet_task *second = child->next, *rest = second ? second->next : NULL;
        child->next = NULL;
        if (second)
            second->next = NULL;
        struct duet_task *pair = heap_meld(order, child, second);
        pair->next = pairs;
        pairs = pair;
        child = rest;
    }
    while (pairs) {
        struct duet_task *rest = pairs->next;
        pairs->next = NULL;
        root = heap_meld(order, root, pairs);
        pairs = rest;
    }
    return root;
}

/* Takes a task that is not the root, with its children, out of a heap by missing inputs. */
static void heap_cut(struct duet_task *task)
{
    *(task->above->prev == task ? &task->above->prev : &task->above->next) = task->next;
    if (task->next)
        task->next->above = task->above;
    task->next = NULL;
}

/* ------------------------------------------------------------------------------------------- */
/*
 * Lists sorted by the tasks' missing inputs. Functions here are called with the list's lock held,
 * and near_lock of its owner's memory node. For each handle and node there is a chain of the
 * accesses that lack its data there, of tasks on the lists of the node's workers. When the data is
 * to be copied there, duet__list_nearer hands the chain to these lists, which move the tasks
 * forward when the next one is taken: constant work for each input of a task. Lists are not told
 * when data leaves a node. A task's missing inputs may thus have been counted too low, never too
 * high, and those of the first task are counted anew before it is taken.
 */

/* Returns the head of the chain of a handle and node. */
static struct access **lacking(const struct duet_runtime *core, struct duet_handle *handle,
                               unsigned node)
{
    char *chains = (char *)handle + duet__place_state_offset(core, core->machine.node_count);
    return (struct access **)(void *)chains + node;
}

/* Moves the accesses that lack a handle's data on a node to `nearer` of their tasks' lists. */
static void chain_pass_on(struct duet_runtime *core, struct duet_handle *handle, unsigned node)
{
    struct access **chain = lacking(core, handle, node), *access;
    while ((access = *chain)) {
        struct duet_list *list = &core->workers[access_task(access)->worker].list;
        *chain = access->next;
        access->next = list->nearer;
        list->nearer = access;
    }
}

void duet__list_nearer(struct duet_runtime *core, struct duet_handle *handle, unsigned node)
{
    spin_lock(&core->nodes[node].near_lock);
    chain_pass_on(core, handle, node);
    spin_unlock(&core->nodes[node].near_lock);
}

/* Returns the number of missing inputs of a task; chains those that are in no chain yet. */
static int32_t count_missing(const struct duet_list *list, struct duet_task *task)
{
    const unsigned node = list->owner->node;
    int32_t count = 0;
    for (unsigned i = 0; i < task->access_count; i++) {
        struct access *access = &task->accesses[i];
        const struct duet_handle *handle = access->handle;
        /* `valid` is set before `coming` is cleared */
        if (!access->lacks && (access->mode & DUET_R) && !bit_test_acquire(handle->coming, node) &&
            !bit_test(handle->valid, node)) {
            struct access **chain = lacking(list->core, access->handle, node);
            access->lacks = true;
            access->next = *chain;
            *chain = access;
        }
        count += access->lacks;
    }
    return count;
}

static void set_missing(struct duet_task *task, int32_t count)
{
    atomic_store_explicit(&task->missing, count, memory_order_relaxed);
}

/* Moves tasks forward for their missing inputs that are on their way by now: list->nearer. */
static void list_move_nearer(struct duet_list *list)
{
    for (struct access *access; (access = list->nearer);) {
        struct duet_task *task = access_task(access), **head = &list->queues[task->mask].head;
        list->nearer = access->next;
        access->lacks = false;
        set_missing(task, missing_of(task) - 1);
        if (*head == task)
            continue;
        heap_cut(task);
        *head = heap_meld(list->order, *head, task);
    }
}

/*
 * Counts and chains the missing inputs of a task that comes onto a list. The caller holds the
 * list's lock, but no near_lock.
 */
static void list_measure(const struct duet_list *list, struct duet_task *task)
{
    set_missing(task, 0);
    if (!list->owner)
        return;
    struct node *node = &list->core->nodes[list->owner->node];
    task->worker = list->owner->index;
    for (unsigned i = 0; i < task->access_count; i++)
        task->accesses[i].lacks = false;
    spin_lock(&node->near_lock);
    set_missing(task, count_missing(list, task));
    spin_unlock(&node->near_lock);
}

/*
 * Takes a task off a list by missing inputs. The inputs that it lacks count as on their way for
 * other tasks, since its worker requests them next. The caller holds the list's lock, but no
 * near_lock.
 */
static void list_leave(struct duet_list *list, struct duet_task *task)
{
    struct duet_task **head = &list->queues[task->mask].head;
    if (list->owner) {
        const unsigned index = list->owner->node;
        struct node *node = &list->core->nodes[index];
        spin_lock(&node->near_lock);
        for (unsigned i = 0; i < task->access_count; i++)
            if (task->accesses[i].lacks)
                chain_pass_on(list->core, task->accesses[i].handle, index);
        list_move_nearer(list);
        spin_unlock(&node->near_lock);
    }
    struct duet_task *children = join_children(list->order, task->prev);
    if (*head == task) {
        *head = children;
    } else {
        heap_cut(task);
        *head = heap_meld(list->order, *head, children);
    }
    task->note = 0;
}

/* ------------------------------------------------------------------------------------------- */
/* Queues; the list's lock is held                                                              */

static HOT void queue_insert(struct duet_list *list, struct duet_task *task, bool at_head)
{
    struct queue *queue = &list->queues[task->mask];
    task->next = task->prev = NULL;
    if (list->order != DUET_DEQUE) {
        task->position = list->last++;
        if (list->order >= DUET_NEAREST)
            list_measure(list, task);
        queue->head = heap_meld(list->order, queue->head, task);
    } else if (at_head) {
        task->position = list->first--;
        task->next = queue->head;
        if (queue->head)
            queue->head->prev = task;
        else
            queue->tail = task;
        queue->head = task;
    } else {
        task->position = list->last++;
        task->prev = queue->tail;
        if (queue->tail)
            queue->tail->next = task;
        else
            queue->head = task;
        queue->tail = task;
    }
}

static HOT void queue_remove(struct duet_list *list, struct duet_task *task)
{
    struct queue *queue = &list->queues[task->mask];
    if (list->order >= DUET_NEAREST) {
        list_leave(list, task);
        return;
    }
    if (list->order != DUET_DEQUE) {
        queue->head = join_children(list->order, task->prev);
        return;
    }
    if (task->prev)
        task->prev->next = task->next;
    else
        queue->head = task->next;
    if (task->next)
        task->next->prev = task->prev;
    else
        queue->tail = task->prev;
}

/*
 * Returns the list's first task, from that end, that workers of this kind can run. The list's lock
 * is held.
 */
HOT static struct duet_task *list_first(const struct duet_runtime *core,
                                        const struct duet_list *list, unsigned kind, bool from_head)
{
    unsigned masks = atomic_load_explicit(&core->mask_count, memory_order_acquire);
    struct duet_task *best = NULL;
    for (unsigned m = 0; m < masks; m++) {
        bool heap = list->order != DUET_DEQUE;
        struct duet_task *task = heap || from_head ? list->queues[m].head : list->queues[m].tail;
        if (!task || !(core->masks[m].kinds >> kind & 1))
            continue;
        bool better = !best || (heap        ? list_earlier(list->order, task, best)
                                : from_head ? task->position < best->position
                                            : task->position > best->position);
        if (better)
            best = task;
    }
    return best;
}

/*
 * Returns the task that list_first gives, to be taken. On a list by missing inputs, those of the
 * task in front are counted anew until the count is right.
 */
HOT static struct duet_task *list_next(const struct duet_runtime *core, struct duet_list *list,
                                       unsigned kind, bool from_head)
{
    struct duet_task *task = list_first(core, list, kind, from_head);
    if (list->order < DUET_NEAREST || !task || !list->owner)
        return task;
    struct node *node = &core->nodes[list->owner->node];
    spin_lock(&node->near_lock);
    list_move_nearer(list);
    for (;;) {
        task = list_first(core, list, kind, true);
        int32_t missing = count_missing(list, task);
        if (missing == missing_of(task))
            break;
        struct duet_task **head = &list->queues[task->mask].head;
        *head = join_children(list->order, task->prev);
        task->prev = NULL;
        set_missing(task, missing);
        *head = heap_meld(list->order, *head, task);
    }
    spin_unlock(&node->near_lock);
    return task;
}

/* ------------------------------------------------------------------------------------------- */
/* Idle workers                                                                                 */

static bool is_hungry(struct duet_runtime *core, unsigned worker)
{
    return atomic_load(&core->hungry[worker / 64]) >> (worker % 64) & 1;
}

/* Wakes a worker. Returns true if this call turned it from hungry to woken. */
static bool wake_hungry(struct duet_view *view, unsigned worker)
{
    uint64_t bit = UINT64_C(1) << (worker % 64);
    uint64_t before = atomic_fetch_and(&view->core->hungry[worker / 64], ~bit);
    if (!(before & bit))
        return false;
    duet__view_wake(view, worker);
    return true;
}

static unsigned count_bits(uint64_t word)
{
    unsigned count = 0;
    for (; word; word &= word - 1)
        count++;
    return count;
}

/* Returns the n-th set bit of a word, n from 0. */
static unsigned nth_bit(uint64_t word, unsigned n)
{
    while (n--)
        word &= word - 1;
    return (unsigned)__builtin_ctzll(word);
}

/* Returns the chosen-th of the hungry workers among `able`, or -1 if there are fewer by now. */
static int nth_hungry(struct duet_runtime *core, const uint64_t *able, unsigned chosen)
{
    for (unsigned i = 0; i < core->worker_words; i++) {
        uint64_t word = able[i] & atomic_load(&core->hungry[i]);
        unsigned here = count_bits(word);
        if (chosen < here)
            return (int)(i * 64 + nth_bit(word, chosen));
        chosen -= here;
    }
    return -1;
}

/* Wakes all idle workers among `able`: any of them may leave the task where it is. */
static void wake_all_hungry(struct duet_view *view, const uint64_t *able)
{
    for (unsigned i = 0; i < view->core->worker_words; i++) {
        uint64_t word = able[i] & atomic_load(&view->core->hungry[i]);
        for (; word; word &= word - 1)
            (void)wake_hungry(view, i * 64 + (unsigned)__builtin_ctzll(word));
    }
}

/*
 * Wakes one idle worker that can run tasks of this mask, each equally likely; again if the chosen
 * one found work of its own meanwhile.
 */
static void wake_one_hungry(struct duet_view *view, unsigned mask)
{
    struct duet_runtime *core = view->core;
    const uint64_t *able = core->masks[mask].workers;
    if (policy_of(core)->may_decline) {
        wake_all_hungry(view, able);
        return;
    }
    for (;;) {
        unsigned count = 0;
        for (unsigned i = 0; i < core->worker_words; i++)
            count += count_bits(able[i] & atomic_load(&core->hungry[i]));
        if (!count)
            return;
        unsigned chosen = count > 1 ? duet_view_random(view, view->by, count) : 0;
        int worker = nth_hungry(core, able, chosen);
        if (worker >= 0 && wake_hungry(view, (unsigned)worker))
            return;
    }
}

/* Wakes an idle worker of each kind: it may have something to do, though nobody has woken it. */
void duet__call_another(struct duet_view *view)
{
    unsigned masks = atomic_load_explicit(&view->core->mask_count, memory_order_acquire);
    for (unsigned m = 0; m < masks; m++)
        wake_one_hungry(view, m);
}

/*
 * True if the calling worker will ask for work next, so that it takes the only task on its own
 * list: it is not at a kernel, does not wait for room on its device, and its window is not full.
 */
static bool takes_next(const struct duet_view *view, const struct worker *self)
{
    const struct node *node = &view->core->nodes[self->node];
    bool stalled = atomic_load_explicit(&node->blocked, memory_order_relaxed);
    return !view->busy && !stalled && self->taken < self->window;
}

static HOT bool any_hungry(const struct duet_runtime *core)
{
    for (unsigned i = 0; i < core->worker_words; i++)
        if (atomic_load(&core->hungry[i]))
            return true;
    return false;
}

/* Makes sure that some worker looks at the list, which now holds one more task of this mask. */
static __attribute__((noinline)) void announce(struct duet_view *view, const struct duet_list *list,
                                               unsigned mask, bool only)
{
    struct duet_runtime *core = view->core;
    const struct worker *owner = list->owner;
    if (owner && core->masks[mask].kinds >> owner->kind & 1) {
        if (is_hungry(core, owner->index) && wake_hungry(view, owner->index))
            return;
        if (only && owner == view->self && takes_next(view, owner))
            return;
    }
    if (!owner || policy_of(core)->steal)
        wake_one_hungry(view, mask);
}

/* ------------------------------------------------------------------------------------------- */
/* Functions for policies */

/* Returns the expected time of a task, for the load of a list's owner. */
static int64_t expected_ns(const struct worker *owner, const struct duet_task *task)
{
    return owner ? (int64_t)(duet__expected_s(task, owner->arch) * 1e9) : 0;
}

/* Returns a list whose owner lives and can run the task; `list` if there is none. */
static struct duet_list *living_list(struct duet_runtime *core, struct duet_list *list,
                                     const struct duet_task *task)
{
    unsigned count = core->machine.worker_count;
    for (unsigned i = 0; i < count; i++) {
        unsigned w = (unsigned)((task->id + i) % count);
        struct worker *worker = &core->workers[w];
        bool able = core->masks[task->mask].kinds >> worker->kind & 1;
        if (able && !atomic_load_explicit(&worker->lost, memory_order_acquire))
            return &worker->list;
    }
    return list;
}

static bool owner_lost(const struct duet_list *list)
{
    return list->owner && atomic_load_explicit(&list->owner->lost, memory_order_acquire);
}

/* Puts a task on a locked list, whose length includes it already. */
static HOT void list_attach(struct duet_list *list, struct duet_task *task, bool at_head)
{
    queue_insert(list, task, at_head);
    add_own(&list->expected_ns, task->queued_ns);
}

/*
 * Enters a task into a list. Returns false if the list's owner is lost, or every worker that could
 * run the task.
 */
static HOT bool list_enter(struct duet_view *view, struct duet_list *list, struct duet_task *task,
                           bool at_head, bool *only)
{
    task->queued_ns = expected_ns(list->owner, task);
    list_lock(list, 1);
    /* under the lock: a thread that declares a worker lost looks through the list afterwards */
    bool good = !owner_lost(list) && !doomed(view->core, task->mask);
    *only = duet_list_length(list) == 1;
    if (good)
        list_attach(list, task, at_head);
    list_unlock(list, good ? 0 : 1);
    return good;
}

/* Enters a task whose list's owner is lost into another list; ends it if no worker can run it. */
RARE static void push_elsewhere(struct duet_view *view, struct duet_list *list,
                                struct duet_task *task, bool at_head)
{
    const unsigned mask = task->mask;
    bool only;
    do {
        if (doomed(view->core, mask)) {
            task->next = view->over;
            view->over = task;
            return;
        }
        list = living_list(view->core, list, task);
    } while (!list_enter(view, list, task, at_head, &only));
    if (any_hungry(view->core))
        announce(view, list, mask, only);
}

RARE static void pushed_twice(struct duet_runtime *core, const struct duet_task *task)
{
    duet__fail_run(core, DUET_EINVAL, "policy %s pushes task %llu (%s) twice",
                   policy_of(core)->name, (unsigned long long)task->id, duet_task_kernel(task));
}

static HOT void list_push(struct duet_view *view, struct duet_list *list, struct duet_task *task,
                          bool at_head)
{
    struct duet_runtime *core = view->core;
    unsigned mask = task->mask;
    if (task->state != TASK_CREATED) {
        pushed_twice(core, task);
        return;
    }
    task->state = TASK_LISTED;
    view->ops->pushes++;
    /* before any worker can take it: a thread that has seen all tasks finished reads the count */
    if (view->self)
        count_own(&view->self->pushes, 1);
    bool only;
    if (!list_enter(view, list, task, at_head, &only))
        push_elsewhere(view, list, task, at_head);
    else if (any_hungry(core)) /* another worker may have the task by now */
        announce(view, list, mask, only);
}

void duet_push_head(struct duet_view *view, struct duet_list *list, struct duet_task *task)
{
    list_push(view, list, task, true);
}

void duet_push_tail(struct duet_view *view, struct duet_list *list, struct duet_task *task)
{
    list_push(view, list, task, false);
}

void duet_push_sorted(struct duet_view *view, struct duet_list *list, struct duet_task *task,
                      double key)
{
    task->note = key;
    list_push(view, list, task, false);
}

/* Takes a task off a locked list. */
static HOT void list_detach(struct duet_list *list, struct duet_task *task)
{
    queue_remove(list, task);
    add_own(&list->expected_ns, -task->queued_ns);
    task->next = task->prev = NULL;
}

/*
 * Takes a task off a list whose lock is held. `link` is the pointer to it in its heap, NULL in a
 * DUET_DEQUE.
 */
static void list_take(struct duet_list *list, struct duet_task *task, struct duet_task **link)
{
    struct queue *queue = &list->queues[task->mask];
    if (link && list->order < DUET_NEAREST) {
        *link = task->next;
        queue->head = heap_meld(list->order, queue->head, join_children(list->order, task->prev));
    } else {
        queue_remove(list, task);
    }
    add_own(&list->expected_ns, -task->queued_ns);
    task->next = task->prev = NULL;
    task->state = TASK_CREATED;
}

/* Takes the first task from that end that the worker can run off a locked list; NULL: none. */
static HOT struct duet_task *detach_first(const struct duet_runtime *core, struct duet_list *list,
                                          unsigned worker, bool from_head)
{
    struct duet_task *task = list_next(core, list, core->workers[worker].kind, from_head);
    if (task) {
        list_detach(list, task);
        task->state = TASK_CREATED;
    }
    return task;
}

static HOT struct duet_task *list_pop(struct duet_view *view, struct duet_list *list,
                                      unsigned worker, bool from_head)
{
    if (!duet_list_length(list))
        return NULL;
    list_lock(list, 0);
    struct duet_task *task = detach_first(view->core, list, worker, from_head);
    list_unlock(list, task ? 1 : 0);
    return task;
}

/* Takes all tasks of one mask off a list, in its order, linked by `next`. */
static struct duet_task *list_take_mask(struct duet_list *list, unsigned mask)
{
    struct duet_task *first = NULL, **end = &first, *task;
    uint32_t count = 0;
    list_lock(list, 0);
    for (; (task = list->queues[mask].head); count++) {
        list_detach(list, task);
        *end = task;
        end = &task->next;
    }
    list_unlock(list, count);
    return first;
}

/* Ends the tasks on a list that no worker is left to run. */
void duet__list_doom(struct duet_view *view, struct duet_list *list)
{
    unsigned masks = atomic_load_explicit(&view->core->mask_count, memory_order_acquire);
    for (unsigned m = 0; m < masks; m++) {
        struct duet_task *task = doomed(view->core, m) ? list_take_mask(list, m) : NULL;
        while (task) {
            struct duet_task *next = task->next;
            task->next = view->over;
            view->over = task;
            task = next;
        }
    }
}

/* Gives the tasks on a lost worker's list to the policy again. */
void duet__list_drain(struct duet_view *view, struct duet_list *list)
{
    unsigned masks = atomic_load_explicit(&view->core->mask_count, memory_order_acquire);
    for (unsigned m = 0; m < masks; m++) {
        struct duet_task *task = list_take_mask(list, m);
        while (task) {
            struct duet_task *next = task->next;
            task->state = TASK_CREATED;
            duet__push(view, task);
            task = next;
        }
    }
}

struct duet_task *duet_pop_head(struct duet_view *view, struct duet_list *list, unsigned worker)
{
    return has_worker(view->core, worker) ? list_pop(view, list, worker, true) : NULL;
}

struct duet_task *duet_pop_tail(struct duet_view *view, struct duet_list *list, unsigned worker)
{
    return has_worker(view->core, worker) ? list_pop(view, list, worker, false) : NULL;
}

struct duet_task *duet_pop_own(void *self, struct duet_view *view, unsigned worker, double now)
{
    if (!has_worker(view->core, worker))
        return NULL;
    return list_pop(view, &view->core->workers[worker].list, worker, true);
}

struct duet_task *duet_pop_own_or_shared(void *self, struct duet_view *view, unsigned worker,
                                         double now)
{
    struct duet_task *task = duet_pop_own(self, view, worker, now);
    return task ? task : duet_pop_head(view, duet_view_shared(view), worker);
}

/*
 * Limits of what a thief takes at once: seconds of work, beside which taking is short, and tasks.
 */
#define STOLEN_S (10 * SHORT_S)
enum { STOLEN_MAX = 64 };

/*
 * Takes more short tasks for a thief that has taken one off the victim's locked list, up to an
 * equal part of the list. Returns them linked by `next`.
 */
static struct duet_task *detach_share(const struct duet_view *view, struct duet_list *list,
                                      unsigned thief, double seconds, uint32_t *count)
{
    const struct duet_runtime *core = view->core;
    struct duet_task *first = NULL, **end = &first, *task;
    size_t share = duet_list_length(list) / core->machine.worker_count;
    share = share < STOLEN_MAX ? share : STOLEN_MAX;
    unsigned kind = core->workers[thief].kind;
    for (; share > 1 && seconds > 0; share--) {
        task = list_next(core, list, kind, false);
        if (!task)
            break;
        double next_s = duet_view_seconds(view, thief, task);
        seconds += next_s;
        if (!(next_s > 0) || seconds > STOLEN_S)
            break;
        list_detach(list, task);
        *end = task;
        end = &task->next;
        (*count)++;
    }
    return first;
}

/*
 * Puts tasks, linked by `next`, that the calling worker has taken off another list and can run on
 * its own list or a shared one.
 */
static void list_keep(struct duet_view *view, struct duet_list *list, struct duet_task *first,
                      uint32_t count)
{
    list_lock(list, count);
    while (first) {
        struct duet_task *next = first->next;
        first->queued_ns = expected_ns(list->owner, first);
        first->state = TASK_LISTED;
        list_attach(list, first, false);
        first = next;
    }
    list_unlock(list, 0);
    duet__call_another(view); /* an idle worker may have found the other list empty meanwhile */
}

struct duet_task *duet_steal_tail(struct duet_view *view, struct duet_list *list, unsigned thief)
{
    if (!has_worker(view->core, thief))
        return NULL;
    if (view->surely)
        list_lock(list, 0);
    else if (!list_try_lock(list, 0))
        return NULL;
    uint32_t more = 0;
    struct duet_task *rest = NULL, *task = detach_first(view->core, list, thief, false);
    bool device = duet_view_is_device(view, thief);
    if (task && !view->surely && !device)
        rest = detach_share(view, list, thief, duet_view_seconds(view, thief, task), &more);
    list_unlock(list, (task ? 1 : 0) + more);
    if (rest)
        list_keep(view, &view->core->workers[thief].list, rest, more);
    return task;
}

struct duet_task *duet_steal_own(void *self, struct duet_view *view, unsigned thief,
                                 unsigned victim, double now)
{
    return duet_steal_tail(view, duet_view_list(view, victim), thief);
}

/* ------------------------------------------------------------------------------------------- */
/* Lists of a policy's own, taking the best-scored task of a list, and moving chosen tasks. */

struct duet_list *duet_view_new_list(struct duet_view *view, enum duet_order order)
{
    struct duet_runtime *core = view->core;
    if (!core->begins) {
        duet__fail_run(core, DUET_EINVAL, "policy %s makes a list, which only its init may",
                       core->parameters_of->name);
        return NULL;
    }
    struct duet_list *list = zeroed(sizeof *list);
    if (!list)
        return NULL;
    duet__list_init(list, core, NULL);
    if (order >= DUET_NEAREST) /* its tasks lack nothing: they are on no worker's list */
        order = order == DUET_NEAREST ? DUET_DEQUE : DUET_HEAP;
    list->order = (uint8_t)order;
    list->next = core->own_lists;
    core->own_lists = list;
    return list;
}

/* The best task so far, and the pointer to it in its heap. */
struct search {
    const struct duet_view *view;
    unsigned order;
    duet_score_fn *score;
    void *context;
    struct duet_task *best, **link;
    double most;
};

/* Scores a task. Returns false if those after it need not be looked at. */
static bool consider_task(struct search *search, struct duet_task *task, struct duet_task **link)
{
    double score = search->score(search->context, search->view, task);
    bool first =
        score == search->most && search->best && list_earlier(search->order, task, search->best);
    if (score > search->most || first) {
        search->most = score;
        search->best = task;
        search->link = link;
    }
    return score < INFINITY;
}

/*
 * Searches a heap, in which nothing below a task comes before it, without a stack as deep as the
 * heap: the last child of a task leads back to it while the subtree is searched (Morris,
 * Information Processing Letters 9, 1979).
 */
static void search_heap(struct search *search, struct duet_task **link)
{
    struct duet_task *task = *link;
    while (task) {
        struct duet_task *last = task->prev;
        while (last && last->next && last->next != task)
            last = last->next;
        if (last && last->next) {
            last->next = NULL;
        } else if (consider_task(search, task, link) && last) {
            last->next = task;
            link = &task->prev;
            task = task->prev;
            continue;
        }
        link = &task->next;
        task = task->next;
    }
}

static void search_queue(struct search *search, struct queue *queue)
{
    if (search->order != DUET_DEQUE) {
        search_heap(search, &queue->head);
        return;
    }
    struct duet_task *task = queue->head;
    while (task && consider_task(search, task, NULL))
        task = task->next;
}

struct duet_task *duet_pop_best(struct duet_view *view, struct duet_list *list, unsigned worker,
                                duet_score_fn *score, void *context)
{
    const struct duet_runtime *core = view->core;
    if (!duet_list_length(list) || !has_worker(core, worker))
        return NULL;
    unsigned kind = core->workers[worker].kind;
    list_lock(list, 0);
    struct search search = {view, list->order, score, context, .most = -INFINITY};
    const struct duet_task *first = list_first(core, list, kind, true);
    unsigned masks = first ? atomic_load_explicit(&core->mask_count, memory_order_acquire) : 0;
    if (first)
        search_queue(&search, &list->queues[first->mask]);
    for (unsigned m = 0, own = first ? first->mask : 0; m < masks; m++)
        if (m != own && (core->masks[m].kinds >> kind & 1))
            search_queue(&search, &list->queues[m]);
    if (search.best)
        list_take(list, search.best, search.link);
    list_unlock(list, search.best ? 1 : 0);
    return search.best;
}

void duet_move(struct duet_view *view, struct duet_list *from, struct duet_list *to,
               unsigned worker, duet_choice_fn *chosen, void *context)
{
    const struct duet_runtime *core = view->core;
    if (!has_worker(core, worker))
        return;
    const unsigned kind = core->workers[worker].kind;
    struct duet_task *first = NULL, **end = &first;
    uint32_t count = 0;
    list_lock(from, 0);
    unsigned masks = atomic_load_explicit(&core->mask_count, memory_order_acquire);
    for (unsigned m = 0; m < masks; m++) {
        struct duet_task *task = core->masks[m].kinds >> kind & 1 ? from->queues[m].head : NULL;
        while (task) {
            struct duet_task *next = task->next;
            if (chosen(context, view, task)) {
                list_take(from, task, NULL);
                *end = task;
                end = &task->next;
                count++;
            }
            task = next;
        }
    }
    list_unlock(from, count);
    if (first)
        list_keep(view, to, first, count);
}
