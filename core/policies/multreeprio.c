/* SPDX-License-Identifier: Apache-2.0 */
/*
 * multreeprio: a worker takes the task on which its kind of worker gains most: the largest
 * difference between the expected times of the other kind and of its own. Among tasks of equal
 * gain, those within `epsilon` of the most critical one, at most `tasks` of them, are compared by
 * locality. The criticality of a task is what it releases: the sum over its successors of 1 / their
 * predecessors (the paper's normalised out degree, NOD), over the highest one seen. Its locality is
 * its bytes valid in the worker's memory, written ones squared (LS_SDH2 of Bramas, PeerJ Computer
 * Science 2019). A worker of the kind that does not gain takes a task only when those that gain
 * have more to do each, by expected times, than the task takes there (pop condition).
 *
 * The paper has a heap for each memory node, with the task in all of them, and evicts from a node's
 * heap the tasks that its pop condition has refused. Here a task is in one heap of tasks of similar
 * gain, within half as much again, and devices and CPUs go through the heaps from opposite ends;
 * refused tasks stay and may be taken later. There are two kinds, CPUs and devices, each with its
 * shortest time.
 */
#include <math.h>
#include <stdatomic.h>

#include <duet/policy.h>

enum { SIDE = 52, EVEN = SIDE, HEAPS = 2 * SIDE + 1 }; /* EVEN: both kinds are equally fast */
enum { EPSILON, TASKS, SLOW };
enum { CPU, DEVICE, KINDS };

struct heap {
    struct duet_list *list;
    _Atomic(double) seconds; /* time of one of its tasks on the kind that gains */
};

struct heaps {
    struct heap each[HEAPS];
    _Atomic(double) highest; /* highest NOD seen */
};

static int multreeprio_init(void *self, struct duet_view *view)
{
    struct heaps *heaps = self;
    for (unsigned i = 0; i < HEAPS; i++) {
        heaps->each[i].list = duet_view_new_list(view, DUET_SORTED);
        if (!heaps->each[i].list)
            return DUET_ENOMEM;
    }
    return DUET_OK;
}

/* Finds the shortest expected times of both kinds of workers; INFINITY: none can run it. */
static void multreeprio_shortest(const struct duet_view *view, const struct duet_task *task,
                                 double *of_kind)
{
    of_kind[CPU] = of_kind[DEVICE] = INFINITY;
    for (unsigned w = 0; w < duet_view_workers(view); w++) {
        double *own = &of_kind[duet_view_is_device(view, w)];
        if (duet_view_can_run(view, w, task))
            *own = fmin(*own, duet_view_seconds(view, w, task));
    }
}

/*
 * Returns the heap of a task: the first is for tasks of CPUs alone, the last for those of devices
 * alone.
 */
static unsigned multreeprio_place(const double *of_kind)
{
    if (isinf(of_kind[CPU]) || isinf(of_kind[DEVICE]))
        return isinf(of_kind[DEVICE]) ? 0 : HEAPS - 1;
    double gain = of_kind[CPU] > 0 && of_kind[DEVICE] > 0 ? of_kind[CPU] - of_kind[DEVICE] : 0;
    double steps = fmin(round(log1p(fabs(gain) / 1e-6) / log(1.5)), SIDE - 1);
    return (unsigned)(EVEN + (gain < 0 ? -steps : steps));
}

static void multreeprio_push(void *self, struct duet_view *view, struct duet_task **batch,
                             size_t count, int by, double now)
{
    struct heaps *heaps = self;
    for (size_t i = 0; i < count; i++) {
        double of_kind[KINDS], nod = duet_task_successors(batch[i]).normalised;
        multreeprio_shortest(view, batch[i], of_kind);
        struct heap *heap = &heaps->each[multreeprio_place(of_kind)];
        double highest = atomic_load_explicit(&heaps->highest, memory_order_relaxed);
        while (nod > highest && !atomic_compare_exchange_weak(&heaps->highest, &highest, nod))
            ;
        atomic_store_explicit(&heap->seconds, fmin(of_kind[CPU], of_kind[DEVICE]),
                              memory_order_relaxed);
        duet_push_sorted(view, heap->list, batch[i], nod);
    }
}

/* The heap in which a worker searches. */
struct look {
    unsigned worker;
    bool refuses;   /* takes a task only if the other kind has enough to do */
    double waiting; /* seconds of work that wait for the other kind */
    double range;   /* range of criticality */
    double critical, slow;
    unsigned left; /* tasks left to compare */
    bool begun;
};

/*
 * True if the workers that gain have more to do each than the task takes the worker, or none of
 * them is left.
 */
static bool multreeprio_enough(const struct look *look, const struct duet_view *view,
                               const struct duet_task *task)
{
    unsigned others = 0;
    bool device = duet_view_is_device(view, look->worker);
    for (unsigned w = 0; w < duet_view_workers(view); w++)
        others += duet_view_is_device(view, w) != device && duet_view_can_run(view, w, task);
    return look->waiting >= look->slow * others * duet_view_seconds(view, look->worker, task);
}

static double multreeprio_score(void *context, const struct duet_view *view,
                                const struct duet_task *task)
{
    struct look *look = context;
    double critical = duet_task_note(task), local = 0;
    if (!look->begun)
        look->critical = critical;
    look->begun = true;
    if (!look->left || critical < look->critical - look->range ||
        (look->refuses && !multreeprio_enough(look, view, task)))
        return NAN;
    look->left--;
    for (size_t i = 0; i < duet_task_accesses(task); i++) {
        double bytes = (double)duet_task_access_bytes(task, i);
        if (duet_view_valid(view, duet_view_node(view, look->worker), task, i))
            local += duet_task_writes(task, i) ? bytes * bytes : bytes;
    }
    return local;
}

static double multreeprio_waiting(const struct heap *heap)
{
    size_t count = duet_list_length(heap->list);
    return count ? (double)count * atomic_load_explicit(&heap->seconds, memory_order_relaxed) : 0;
}

static struct duet_task *multreeprio_pop(void *self, struct duet_view *view, unsigned worker,
                                         double now)
{
    struct heaps *heaps = self;
    bool device = duet_view_is_device(view, worker);
    double others = 0;
    struct duet_task *task = NULL;
    for (unsigned i = 0; i < SIDE; i++)
        others += multreeprio_waiting(&heaps->each[device ? i : HEAPS - 1 - i]);
    for (unsigned i = 0; i < HEAPS && !task; i++) {
        struct duet_list *list = heaps->each[device ? HEAPS - 1 - i : i].list;
        struct look look = {
            .worker = worker,
            .refuses = i > EVEN,
            .waiting = others,
            .range = duet_view_parameter(view, EPSILON) *
                     atomic_load_explicit(&heaps->highest, memory_order_relaxed),
            .slow = duet_view_parameter(view, SLOW),
            .left = (unsigned)duet_view_parameter(view, TASKS),
        };
        task = duet_pop_best(view, list, worker, multreeprio_score, &look);
    }
    return task;
}

static const struct duet_policy_parameter parameters[] = {
    [EPSILON] = {"epsilon", 0.8, 0, 1, "how much less critical a task with more data may be"},
    [TASKS] = {"tasks", 10, 1, 1000, "how many tasks are compared by their data"},
    [SLOW] = {"slow", 1, 0, 1000,
              "how long those that gain must have to do, in times of who asks; 0: any"},
    {NULL},
};

const struct duet_policy duet__policy_multreeprio = {
    .name = "multreeprio",
    .description = "what gains most on a kind of worker, then by what it releases and its data",
    .source = "Tayeb, Bramas, Faverge, Guermouche, IPDPSW 2024 (MultiPrio)",
    .order = DUET_DEQUE,
    .may_decline = true,
    .state_size = sizeof(struct heaps),
    .parameters = parameters,
    .init = multreeprio_init,
    .push = multreeprio_push,
    .pop = multreeprio_pop,
};
