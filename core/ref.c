/* SPDX-License-Identifier: Apache-2.0 */
/*
 * References to tasks. A reference outlives its task, so that the application can ask for it later;
 * it is freed when neither the application, nor its task, nor a successor holds it. Successors of a
 * task that has not ended are linked to its reference until then.
 */
#include "core/internal.h"

/* An explicit dependency: `task` comes after the task of `ref`. */
struct edge {
    struct duet_ref *ref; /* held by the edge */
    struct duet_task *task;
    struct edge *next; /* lock of the reference */
};

struct duet_ref {
    struct duet_runtime *core;
    struct duet_ref *next;  /* next of a list: a kernel will submit these tasks again; owned by that
                               kernel */
    struct duet_ref *again; /* reference to the same task from before its kernel's device was lost;
                               owned by the task */
    struct spin lock;
    struct duet_task *task;    /* lock: its task, from when that enters the graph until it ends */
    struct edge *first, *last; /* lock: successors, in order of submission */
    double path_s;             /* lock: critical path up to its task */
    unsigned reset;            /* lock: measurement to which path_s belongs */
    uint64_t id;               /* lock: number of its task, once that has entered the graph */
    uint32_t seen;             /* lock: 1 + number of its task in the recorded graph; 0: not
                                  recorded */
    unsigned seen_reset;       /* lock: measurement to which `seen` belongs */
    struct duet_ref *twin;     /* its copy in a trial; for the thread that lets tasks in */
    double rank;               /* for the thread that lets tasks in: highest rank of its successors,
                                  in s */
    _Atomic(unsigned) holders;
    _Atomic(bool) ended;  /* written under the lock */
    _Atomic(bool) waited; /* a thread of the application waits for it */
};

/* ------------------------------------------------------------------------------------------- */
/* Making and freeing                                                                           */

struct duet_ref *duet__ref_new(struct duet_runtime *core)
{
    struct duet_ref *ref = calloc(1, sizeof *ref);
    if (ref) {
        ref->core = core;
        atomic_init(&ref->holders, 2); /* the application and the task */
    }
    return ref;
}

void duet_ref_free(struct duet_ref *ref)
{
    if (!ref || atomic_fetch_sub_explicit(&ref->holders, 1, memory_order_acq_rel) > 1)
        return;
    duet_ref_free(ref->again);
    free(ref);
}

/* Adds a reference to a list, when the device of the kernel that has submitted its task is lost. */
void duet__ref_postpone(struct duet_ref **list, struct duet_ref *ref)
{
    ref->next = *list;
    *list = ref;
}

/*
 * Links the first reference of a list to `ref`: the kernel runs again, and has submitted that task
 * once more.
 */
void duet__ref_again(struct duet_ref **list, struct duet_ref *ref)
{
    ref->again = *list;
    *list = ref->again->next;
}

/*
 * Ends all references of a list: the kernel has ended without submitting their tasks again. `view`
 * NULL: the runtime is closed.
 */
void duet__refs_drop(struct duet_view *view, struct duet_ref *list)
{
    while (list) {
        struct duet_ref *ref = list;
        list = ref->next;
        if (view)
            duet__ref_end(view, ref);
        duet_ref_free(ref);
    }
}

int duet__refs_check(const struct duet_runtime *core, const struct duet_task_desc *desc,
                     struct duet_message *message)
{
    const struct duet_task_extra *from = desc->extra;
    if (!from)
        return DUET_OK;
    if (from->after_count > UINT16_MAX || (from->after_count && !from->after))
        return duet_fail(message, DUET_EINVAL,
                         "a %s task comes after %zu others; at most 65,535 are possible",
                         desc->codelet->name, from->after_count);
    for (size_t i = 0; i < from->after_count; i++)
        if (from->after[i] && from->after[i]->core != core)
            return duet_fail(message, DUET_EINVAL,
                             "reference %zu of what a %s task comes after is of another runtime", i,
                             desc->codelet->name);
    return DUET_OK;
}

size_t duet__edges_bytes(size_t count)
{
    return count * sizeof(struct edge);
}

/* Returns the number of edges: references that are NULL are none. */
unsigned duet__edges_fill(struct edge *edges, struct duet_task *task,
                          const struct duet_task_extra *from)
{
    unsigned count = 0;
    for (size_t i = 0; i < from->after_count; i++) {
        if (!from->after[i])
            continue;
        atomic_fetch_add_explicit(&from->after[i]->holders, 1, memory_order_relaxed);
        edges[count++] = (struct edge){.ref = from->after[i], .task = task};
    }
    return count;
}

struct duet_runtime *duet__edges_core(const struct edge *edges)
{
    return edges->ref->core;
}

/* Returns the number of the i-th predecessor, which has ended. */
uint64_t duet__edge_after(const struct edge *edges, unsigned i)
{
    return edges[i].ref->id;
}

void duet__edges_free(struct edge *edges, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        duet_ref_free(edges[i].ref);
}

/* ------------------------------------------------------------------------------------------- */
/* The graph                                                                                    */

/*
 * Enters an edge. Returns true if its predecessor has ended already. Raises *path to the longest
 * one up to there.
 */
static bool edge_enter(struct edge *edge, double *path)
{
    struct duet_ref *ref = edge->ref;
    spin_lock(&ref->lock);
    bool ended = atomic_load_explicit(&ref->ended, memory_order_relaxed);
    if (ref->path_s > *path && ref->reset == ref->core->resets)
        *path = ref->path_s;
    if (!ended && ref->last)
        ref->last->next = edge;
    else if (!ended)
        ref->first = edge;
    if (!ended)
        ref->last = edge;
    spin_unlock(&ref->lock);
    return ended;
}

int duet__edges_enter(struct duet_task *task, double *path)
{
    const struct task_extra *extra = task->extra;
    int granted = 0;
    for (unsigned i = 0; i < extra->edge_count; i++)
        granted += edge_enter(&extra->edges[i], path);
    return granted;
}

void duet__ref_entered(struct duet_ref *ref, struct duet_task *task, double path)
{
    spin_lock(&ref->lock);
    ref->task = task;
    ref->id = task->id;
    ref->path_s = path;
    ref->reset = ref->core->resets;
    spin_unlock(&ref->lock);
}

/* Sets the number, from 1, of its task in the recorded graph. */
void duet__ref_see(struct duet_ref *ref, uint32_t number)
{
    spin_lock(&ref->lock);
    ref->seen = number;
    ref->seen_reset = ref->core->resets;
    spin_unlock(&ref->lock);
}

/*
 * Returns the number of a predecessor in the recorded graph; 0: it is not recorded, or belongs to
 * an earlier measurement.
 */
uint32_t duet__edge_seen(const struct task_extra *extra, unsigned index)
{
    struct duet_ref *ref = extra->edges[index].ref;
    spin_lock(&ref->lock);
    uint32_t number = ref->seen_reset == ref->core->resets ? ref->seen : 0;
    spin_unlock(&ref->lock);
    return number;
}

/* Gives the upward rank of a held task to its predecessors. */
void duet__edges_rank(const struct duet_task *task, double rank)
{
    const struct task_extra *extra = task->extra;
    for (unsigned i = 0; i < extra->edge_count; i++)
        if (rank > extra->edges[i].ref->rank)
            extra->edges[i].ref->rank = rank;
}

double duet__ref_rank(const struct duet_ref *ref)
{
    return ref->rank;
}

void duet__ref_set_twin(struct duet_ref *ref, struct duet_ref *twin)
{
    ref->twin = twin;
}

/*
 * Gives the copies in a trial of the references to predecessors; NULL: the task is not in the
 * trial.
 */
void duet__edges_twins(const struct task_extra *extra, struct duet_ref **out)
{
    for (unsigned i = 0; i < extra->edge_count; i++)
        out[i] = extra->edges[i].ref->twin;
}

/* Calls `add` for each task that comes after the reference's. */
void duet__ref_each(struct duet_ref *ref, duet__next_fn *add, struct duet_successors *found)
{
    spin_lock(&ref->lock);
    for (const struct edge *edge = ref->first; edge; edge = edge->next)
        add(found, edge->task, 1);
    spin_unlock(&ref->lock);
}

/* Counts the end of a predecessor for the successors of a list of edges. No lock held. */
static void edges_release(struct duet_view *view, struct edge *edge)
{
    while (edge) {
        struct edge *next = edge->next; /* the task may run and be freed */
        duet__released(view, edge->task);
        edge = next;
    }
}

/* Ends a reference whose task has ended. No lock held. */
void duet__ref_end(struct duet_view *view, struct duet_ref *ref)
{
    struct duet_ref *again = ref->again;
    ref->again = NULL;
    spin_lock(&ref->lock);
    struct edge *edges = ref->first;
    ref->first = ref->last = NULL;
    atomic_store(&ref->ended, true);
    spin_unlock(&ref->lock);
    edges_release(view, edges);
    if (atomic_load(&ref->waited))
        view->notify = true;
    if (!again)
        return;
    duet__ref_end(view, again);
    duet_ref_free(again);
}

/* ------------------------------------------------------------------------------------------- */
/* Runs that are stuck                                                                          */

/* Removes an edge from its reference. Returns false if it is not there. */
static bool unlink_edge(struct edge *edge)
{
    struct duet_ref *ref = edge->ref;
    struct edge *before = NULL;
    spin_lock(&ref->lock);
    struct edge *at = ref->first;
    for (; at && at != edge; at = at->next)
        before = at;
    if (at) {
        *(before ? &before->next : &ref->first) = edge->next;
        if (ref->last == edge)
            ref->last = before;
    }
    spin_unlock(&ref->lock);
    return at != NULL;
}

/* Ends the explicit dependencies of all children, as the run is over. No lock held. */
void duet__refs_release(struct duet_view *view)
{
    struct duet_runtime *core = view->core;
    struct edge *all = NULL;
    spin_lock(&core->extra_lock);
    for (const struct duet_task *task = core->children; task; task = task->extra->next) {
        for (unsigned i = 0; i < task->extra->edge_count; i++) {
            struct edge *edge = &task->extra->edges[i];
            if (!unlink_edge(edge))
                continue;
            edge->next = all;
            all = edge;
        }
    }
    spin_unlock(&core->extra_lock);
    edges_release(view, all);
}

/* Returns the locked reference to the first predecessor that the task waits for, or NULL. */
static struct duet_ref *lock_before(const struct duet_task *task)
{
    for (unsigned i = 0; task->extra && i < task->extra->edge_count; i++) {
        struct duet_ref *ref = task->extra->edges[i].ref;
        spin_lock(&ref->lock);
        if (ref->task && !atomic_load_explicit(&ref->ended, memory_order_relaxed))
            return ref;
        spin_unlock(&ref->lock);
    }
    return NULL;
}

/*
 * Describes a child that waits, its predecessor, the predecessor of that and so on, at most `most`
 * tasks. Returns their number; *waits: the last of them has begun and waits itself.
 */
unsigned duet__refs_example(struct duet_runtime *core, struct task_says *says, unsigned most,
                            bool *waits)
{
    struct duet_ref *ref = NULL;
    unsigned count = 0;
    spin_lock(&core->extra_lock);
    for (const struct duet_task *task = core->children; task && !ref; task = task->extra->next) {
        ref = lock_before(task);
        if (ref)
            (void)duet__task_says(core, task, &says[count++]);
    }
    while (ref) {
        *waits = ref->task->state == TASK_BODY;
        (void)duet__task_says(core, ref->task, &says[count++]);
        struct duet_ref *before = count < most ? lock_before(ref->task) : NULL;
        spin_unlock(&ref->lock);
        ref = before;
    }
    spin_unlock(&core->extra_lock);
    return count;
}

/* ------------------------------------------------------------------------------------------- */
/* Calls of the application */

bool duet_ref_ended(const struct duet_ref *ref)
{
    return !ref || atomic_load_explicit(&ref->ended, memory_order_acquire);
}

static bool is_ended(void *ref)
{
    return atomic_load(&((struct duet_ref *)ref)->ended);
}

int duet_ref_wait(struct duet_runtime *runtime, struct duet_ref *ref)
{
    if (!ref || ref->core != runtime)
        return duet__refuse(runtime, DUET_EINVAL, "duet_ref_wait needs a reference to a task %s",
                            ref ? "of this runtime" : "(it is NULL)");
    int error = duet__may_wait(runtime, "duet_ref_wait");
    if (error)
        return error;
    /* set before reading `ended`, as the end sets that before it reads this */
    atomic_store(&ref->waited, true);
    error = duet__wait_until(runtime, is_ended, ref);
    if (error) {
        duet__tell_stuck(runtime);
        return error;
    }
    return duet__run_error(runtime);
}
