/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Held tasks: submissions of the application are kept until one of its threads waits, and then
 * enter the graph in order, so that the successors of a task are known before it runs. Submissions
 * of kernels, expansions and ends of tasks enter at once, but for the end of data that held tasks
 * may use; so does everything while a thread waits.
 */
#include "core/internal.h"

struct held {
    struct spin lock;
    struct duet_task *first, *last; /* linked by `next`; lock, as for all of these */
    size_t count;
    unsigned waiting; /* number of threads that wait */
    bool entering;    /* one of them lets tasks in, also those that come meanwhile */
    unsigned pass;    /* number of times that ranks were computed; for the thread that lets tasks
                         in */
    struct mean_copy copy;
};

/* A task and its upward rank. */
struct ranked {
    double rank;
    struct duet_task *task;
};

/* Keeps a submission of the application, or (not `own`) one that comes after such. Returns false if
   it enters at once. */
static bool keep_task(struct held *held, struct duet_task *task, bool own)
{
    spin_lock(&held->lock);
    bool keep = held->entering || (own ? !held->waiting : held->first != NULL);
    if (keep) {
        task->next = NULL;
        if (held->first)
            held->last->next = task;
        else
            held->first = task;
        held->last = task;
        held->count++;
    }
    spin_unlock(&held->lock);
    return keep;
}

static void hold_or_submit(void *enter_for, struct duet_task *task)
{
    struct duet_runtime *core = enter_for;
    const bool own = duet__caller(core) == DUET_OUTSIDE, ends_data = !task->klass && task->over;
    if (!(own || ends_data) || !keep_task(core->held, task, own))
        core->ops->submitted(core->engine, task);
}

int duet__held_new(struct duet_runtime *core)
{
    core->held = calloc(1, sizeof *core->held);
    if (!core->held)
        return DUET_ENOMEM;
    core->held->copy = duet__mean_copy(core);
    core->enter = hold_or_submit;
    core->enter_for = core;
    return DUET_OK;
}

int duet__priorities_read(const char *text, enum duet__priorities *out,
                          struct duet_message *message)
{
    static const char *const names[] = {[DUET__WORKLOAD] = "workload",
                                        [DUET__NONE] = "none",
                                        [DUET__BOTTOM_LEVEL] = "bottom-level"};
    *out = DUET__WORKLOAD;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (!text || !strcmp(text, names[i])) {
            *out = (enum duet__priorities)i;
            return DUET_OK;
        }
    }
    return duet_fail(message, DUET_ENOTFOUND,
                     "unknown priorities '%s': known are none, workload and bottom-level", text);
}

static int by_rank(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

/*
 * Sets priorities by rank: the lowest rank has priority 0, equal ones the same, the next higher one
 * 1 more.
 */
static void set_priorities(struct ranked *by, struct duet_task *const *tasks, const double *ranks,
                           size_t count)
{
    for (size_t i = 0; i < count; i++)
        by[i] = (struct ranked){ranks[i], tasks[i]};
    qsort(by, count, sizeof *by, by_rank);
    int priority = 0;
    for (size_t i = 0; i < count; i++) {
        priority += i && by[i].rank > by[i - 1].rank;
        by[i].task->priority = priority;
    }
}

/* Lets the policy plan tasks. */
void duet__plan(struct duet_runtime *core, struct duet_task **tasks, const double *ranks,
                size_t count, double now)
{
    struct duet__ops ops = {0};
    struct duet_view view;
    view_begin(&view, core, now, DUET_SUBMITTER, &ops);
    policy_of(core)->plan(core->policy_state, &view, tasks, count, ranks, now);
    duet__view_flush(&view);
}

/*
 * Ranks, plans and chooses for tasks before they enter. Without memory for it they enter unchanged.
 */
static void prepare_tasks(struct duet_runtime *core, struct duet_task *first, size_t count)
{
    const bool chooses = duet__chooses(core, count);
    if (core->priorities != DUET__BOTTOM_LEVEL && !policy_of(core)->plan && !chooses)
        return;
    struct duet_task **tasks = malloc(count * sizeof *tasks);
    double *ranks = malloc(count * sizeof *ranks);
    struct ranked *by = malloc(count * sizeof *by);
    if (tasks && ranks && by) {
        size_t all = 0, of_workers = 0, submitted = 0;
        for (struct duet_task *task = first; task; task = task->next)
            tasks[all++] = task;
        duet__ranks(core, tasks, all, &core->held->copy, ++core->held->pass, ranks);
        for (size_t i = 0; i < all; i++) { /* without acquisitions and hints */
            submitted += tasks[i]->klass || tasks[i]->id;
            if (!tasks[i]->klass)
                continue;
            tasks[of_workers] = tasks[i];
            ranks[of_workers++] = ranks[i];
        }
        if (core->priorities == DUET__BOTTOM_LEVEL)
            set_priorities(by, tasks, ranks, of_workers);
        if (chooses)
            duet__choose(core, tasks, ranks, of_workers, submitted);
        if (policy_of(core)->plan && of_workers)
            duet__plan(core, tasks, ranks, of_workers, core->ops->now(core->engine));
    }
    free(tasks);
    free(ranks);
    free(by);
}

/* Lets held tasks enter, for a thread of the application that is about to wait. */
static void let_in(struct duet_runtime *core)
{
    struct held *held = core->held;
    spin_lock(&held->lock);
    held->waiting++;
    /*
     * a thread that waits for tasks which are yet to enter would find nothing going on, and give up
     */
    for (unsigned tries = 0; held->entering; tries++) {
        spin_unlock(&held->lock);
        duet__spin_rest(tries);
        spin_lock(&held->lock);
    }
    while (held->first) {
        struct duet_task *task = held->first;
        size_t count = held->count;
        held->first = held->last = NULL;
        held->count = 0;
        held->entering = true;
        spin_unlock(&held->lock);
        prepare_tasks(core, task, count);
        while (task) {
            struct duet_task *next = task->next; /* the task may run and be freed */
            core->ops->submitted(core->engine, task);
            task = next;
        }
        spin_lock(&held->lock);
        held->entering = false;
    }
    spin_unlock(&held->lock);
}

bool duet__about_to_wait(const struct duet_runtime *core)
{
    if (!core->held)
        return false;
    spin_lock(&core->held->lock);
    bool waiting = core->held->waiting > 0;
    spin_unlock(&core->held->lock);
    return waiting;
}

int duet__wait_until(struct duet_runtime *core, bool (*reached)(void *arg), void *arg)
{
    if (!core->held)
        return core->ops->wait(core->engine, reached, arg);
    let_in(core);
    int error = core->ops->wait(core->engine, reached, arg);
    spin_lock(&core->held->lock);
    core->held->waiting--;
    spin_unlock(&core->held->lock);
    return error;
}
