/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of ready tasks. A list keeps a queue for each set of workers that its tasks are restricted
 * to, so that a worker finds the first task it can run without passing over the others one by one;
 * positions keep the order across queues. Queues are doubly linked, or pairing heaps (Fredman et
 * al., Algorithmica 1986) when the policy wants priorities.
 */
#include <string.h>

#include "core/internal.h"

void duet__list_init(struct duet_runtime *core, struct duet_list *list, int owner)
{
    unsigned number = owner == DUET_NO_WORKER ? core->machine.worker_count : (unsigned)owner;
    memset(list, 0, sizeof *list);
    list->owner = owner;
    list->order = (uint8_t)core->policy->order;
    list->first = -1;
    list->filled = &core->filled[number / 64];
    list->bit = (uint8_t)(number % 64);
}

/* ------------------------------------------------------------------------------------------- */
/* Pairing heap: prev is the first child, next the next sibling                                 */

static bool earlier(const struct duet_task *a, const struct duet_task *b)
{
    return a->priority != b->priority ? a->priority > b->priority : a->position < b->position;
}

static struct duet_task *meld(struct duet_task *a, struct duet_task *b)
{
    if (!a || !b)
        return a ? a : b;
    if (earlier(b, a)) {
        struct duet_task *swap = a;
        a = b;
        b = swap;
    }
    b->next = a->prev;
    a->prev = b;
    return a;
}

/* Joins the children of a removed root: pairs from left to right, then from right to left. */
static struct duet_task *join_children(struct duet_task *child)
{
    struct duet_task *pairs = NULL, *root = NULL;
    while (child) {
        struct duet_task *second = child->next, *rest = second ? second->next : NULL;
        child->next = NULL;
        if (second)
            second->next = NULL;
        struct duet_task *pair = meld(child, second);
        pair->next = pairs;
        pairs = pair;
        child = rest;
    }
    while (pairs) {
        struct duet_task *rest = pairs->next;
        pairs->next = NULL;
        root = meld(root, pairs);
        pairs = rest;
    }
    return root;
}

/* ------------------------------------------------------------------------------------------- */
/* Queues; the list's lock is held                                                              */

static void insert(struct duet_list *list, struct duet_task *task, bool at_head)
{
    struct queue *queue = &list->queues[task->mask];
    task->next = task->prev = NULL;
    if (list->order == DUET_PRIORITY) {
        task->position = list->last++;
        queue->head = meld(queue->head, task);
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

static void take_out(struct duet_list *list, struct duet_task *task)
{
    struct queue *queue = &list->queues[task->mask];
    if (list->order == DUET_PRIORITY) {
        queue->head = join_children(task->prev);
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

/* The first task from that end that workers of this kind can run. */
static struct duet_task *first_for(const struct duet_runtime *core, const struct duet_list *list,
                                   unsigned kind, bool from_head)
{
    unsigned masks = atomic_load_explicit(&core->mask_count, memory_order_acquire);
    struct duet_task *best = NULL;
    for (unsigned m = 0; m < masks; m++) {
        bool heap = list->order == DUET_PRIORITY;
        struct duet_task *task = heap || from_head ? list->queues[m].head : list->queues[m].tail;
        if (!task || !(core->masks[m].kinds >> kind & 1))
            continue;
        bool better = !best || (heap        ? earlier(task, best)
                                : from_head ? task->position < best->position
                                            : task->position > best->position);
        if (better)
            best = task;
    }
    return best;
}

/* ------------------------------------------------------------------------------------------- */
/* Lists that may have tasks                                                                    */

/*
 * A list's bit in `filled` is set when a task is pushed, and cleared when somebody looks and finds
 * none at all: while a list is pushed to and popped from, its bit stays as it is, and threads only
 * read the words. Both happen under the list's lock, so a clear bit means that the list is empty,
 * or that whoever pushes has not looked for idle workers yet. A worker that says it is idle and
 * then looks at the bits and, where they are set, takes the locks (find_task), therefore finds the
 * task or is found: the bits and `hungry` are sequentially consistent, and of two critical sections
 * the later one knows what came before the earlier one.
 */
static bool is_filled(const struct duet_list *list)
{
    return atomic_load(list->filled) >> list->bit & 1;
}

static void set_filled(const struct duet_list *list)
{
    if (!is_filled(list))
        atomic_fetch_or(list->filled, UINT64_C(1) << list->bit);
}

static void clear_filled(const struct duet_list *list)
{
    atomic_fetch_and(list->filled, ~(UINT64_C(1) << list->bit));
}

/* ------------------------------------------------------------------------------------------- */
/* Idle workers                                                                                 */

static bool is_hungry(struct duet_runtime *core, unsigned worker)
{
    /* sequentially consistent: after the push, see is_filled */
    return atomic_load(&core->hungry[worker / 64]) >> (worker % 64) & 1;
}

/* true if this call turned the worker from hungry to called. */
static bool call(struct duet_view *view, unsigned worker)
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

/* The n-th set bit of a word, n from 0. */
static unsigned nth_bit(uint64_t word, unsigned n)
{
    while (n--)
        word &= word - 1;
    return (unsigned)__builtin_ctzll(word);
}

/* The chosen-th of the hungry workers among `able`, or -1 if there are fewer by now. */
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

/*
 * Calls one idle worker that can run tasks of this mask, each equally likely; again if the chosen
 * one found work of its own meanwhile.
 */
static void call_one(struct duet_view *view, unsigned mask)
{
    struct duet_runtime *core = view->core;
    const uint64_t *able = core->masks[mask].workers;
    for (;;) {
        unsigned count = 0;
        for (unsigned i = 0; i < core->worker_words; i++)
            count += count_bits(able[i] & atomic_load(&core->hungry[i]));
        if (!count)
            return;
        unsigned chosen = count > 1 ? duet_view_random(view, view->by, count) : 0;
        int worker = nth_hungry(core, able, chosen);
        if (worker >= 0 && call(view, (unsigned)worker))
            return;
    }
}

/*
 * The calling worker asks for work next: the only task on its own list is its own, unless it is
 * still at a kernel, waits for room on its device, or has a full window, and so may take nothing.
 */
static bool takes_next(const struct duet_view *view, const struct worker *self)
{
    const struct node *node = &view->core->nodes[self->node];
    bool stalled = atomic_load_explicit(&node->blocked, memory_order_relaxed);
    return !view->busy && !stalled && self->taken < self->window;
}

static bool any_hungry(const struct duet_runtime *core)
{
    for (unsigned i = 0; i < core->worker_words; i++)
        if (atomic_load(&core->hungry[i]))
            return true;
    return false;
}

/* Makes sure that somebody looks at the list, which now holds one more task of this mask. */
static void announce(struct duet_view *view, const struct duet_list *list, unsigned mask, bool only)
{
    struct duet_runtime *core = view->core;
    if (!any_hungry(core))
        return;
    bool shared = list->owner == DUET_NO_WORKER;
    if (!shared) {
        unsigned owner = (unsigned)list->owner;
        bool able = core->masks[mask].kinds >> core->workers[owner].kind & 1;
        if (able && is_hungry(core, owner) && call(view, owner))
            return;
        if (able && only && list->owner == view->by && takes_next(view, &core->workers[owner]))
            return;
    }
    if (shared || core->policy->steal)
        call_one(view, mask);
}

/* ------------------------------------------------------------------------------------------- */
/* What policies use                                                                            */

/* Expected time of a task, for the load of a list's owner. */
static int64_t expected_ns(const struct duet_view *view, int owner, const struct duet_task *task)
{
    if (owner == DUET_NO_WORKER)
        return 0;
    return (int64_t)(duet_view_seconds(view, (unsigned)owner, task) * 1e9);
}

/* A list whose owner lives and can run the task; the same one if nobody can. */
static struct duet_list *living(struct duet_runtime *core, struct duet_list *list,
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

static bool owner_lost(struct duet_runtime *core, const struct duet_list *list)
{
    return list->owner != DUET_NO_WORKER &&
           atomic_load_explicit(&core->workers[list->owner].lost, memory_order_acquire);
}

/* Enters a task into a list. false: the list's owner is lost, or everybody who could run it. */
static bool enter(struct duet_view *view, struct duet_list *list, struct duet_task *task,
                  bool at_head, bool *only)
{
    task->queued_ns = expected_ns(view, list->owner, task);
    spin_lock(&list->lock);
    /* under the lock: whoever declares a worker lost looks through the list afterwards */
    bool good = !owner_lost(view->core, list) && !doomed(view->core, task->mask);
    if (good) {
        uint32_t count = atomic_load_explicit(&list->count, memory_order_relaxed);
        *only = count == 0;
        insert(list, task, at_head);
        atomic_store_explicit(&list->count, count + 1, memory_order_relaxed);
        add_own(&list->expected_ns, task->queued_ns);
        set_filled(list);
    }
    spin_unlock(&list->lock);
    return good;
}

static void push(struct duet_view *view, struct duet_list *list, struct duet_task *task,
                 bool at_head)
{
    struct duet_runtime *core = view->core;
    unsigned mask = task->mask;
    if (task->state != TASK_CREATED) {
        duet__fail_run(core, DUET_EINVAL, "policy %s pushes task %llu (%s) twice",
                       core->policy->name, (unsigned long long)task->id, duet_task_kernel(task));
        return;
    }
    task->state = TASK_LISTED;
    view->ops->pushes++;
    /* before anybody can take it: who has seen all tasks finished reads the count */
    if (view->self)
        count_own(&view->self->pushes, 1);
    bool only;
    while (!enter(view, list, task, at_head, &only)) {
        if (doomed(core, mask)) {
            task->next = view->over;
            view->over = task;
            return;
        }
        list = living(core, list, task);
    }
    /* another worker may have the task by now */
    announce(view, list, mask, only);
}

void duet_push_head(struct duet_view *view, struct duet_list *list, struct duet_task *task)
{
    push(view, list, task, true);
}

void duet_push_tail(struct duet_view *view, struct duet_list *list, struct duet_task *task)
{
    push(view, list, task, false);
}

static struct duet_task *pop(struct duet_view *view, struct duet_list *list, unsigned worker,
                             bool from_head)
{
    struct duet_runtime *core = view->core;
    if (!is_filled(list) || (!view->surely && !duet_list_length(list)))
        return NULL;
    spin_lock(&list->lock);
    struct duet_task *task = first_for(core, list, core->workers[worker].kind, from_head);
    uint32_t count = atomic_load_explicit(&list->count, memory_order_relaxed);
    if (task) {
        take_out(list, task);
        atomic_store_explicit(&list->count, count - 1, memory_order_relaxed);
        add_own(&list->expected_ns, -task->queued_ns);
    } else if (!count) {
        clear_filled(list);
    }
    spin_unlock(&list->lock);
    if (!task)
        return NULL;
    task->next = task->prev = NULL;
    task->state = TASK_CREATED;
    return task;
}

/* Takes all tasks of one mask out of a list, in its order, chained by `next`. */
static struct duet_task *take_all(struct duet_list *list, unsigned mask)
{
    struct duet_task *first = NULL, **end = &first, *task;
    spin_lock(&list->lock);
    while ((task = list->queues[mask].head)) {
        take_out(list, task);
        uint32_t count = atomic_load_explicit(&list->count, memory_order_relaxed);
        atomic_store_explicit(&list->count, count - 1, memory_order_relaxed);
        add_own(&list->expected_ns, -task->queued_ns);
        task->next = task->prev = NULL;
        *end = task;
        end = &task->next;
    }
    spin_unlock(&list->lock);
    return first;
}

/* Ends the tasks on a list that nobody is left to run. */
void duet__list_doom(struct duet_view *view, struct duet_list *list)
{
    unsigned masks = atomic_load_explicit(&view->core->mask_count, memory_order_acquire);
    for (unsigned m = 0; m < masks; m++) {
        struct duet_task *task = doomed(view->core, m) ? take_all(list, m) : NULL;
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
        struct duet_task *task = take_all(list, m);
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
    return pop(view, list, worker, true);
}

struct duet_task *duet_pop_tail(struct duet_view *view, struct duet_list *list, unsigned worker)
{
    return pop(view, list, worker, false);
}

size_t duet_list_length(const struct duet_list *list)
{
    return atomic_load_explicit(&list->count, memory_order_relaxed);
}
