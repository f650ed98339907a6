/* SPDX-License-Identifier: Apache-2.0 */
/* The two questions of the engine: the next command of a worker, and the consequences of its
   end. */
#include <string.h>
#include <stddef.h>

#include "core/expand.h"
#include "core/engine.h"
#include "core/atomics.h"
#include "core/internal.h"

/* ------------------------------------------------------------------------------------------- */
/* Finding work                                                                                 */

/* Returns the task that a policy has returned to the worker, or fails the run and returns NULL. */
static struct duet_task *check_returned(struct duet_runtime *core, const struct worker *worker,
                                        struct duet_task *task)
{
    const bool none = (uintptr_t)task % _Alignof(struct duet_task) || (uintptr_t)task < 4096;
    struct task_says says;
    if (!task || (!none && task->state == TASK_CREATED &&
                  (core->masks[task->mask].kinds >> worker->kind & 1)))
        return task;
    duet__fail_run(core, DUET_EINVAL, "policy %s returns %s to %s: %s", policy_of(core)->name,
                   none ? "what is no task" : duet__task_says(core, task, &says),
                   core->machine.workers[worker->index].name,
                   none                          ? "no task is there"
                   : task->state == TASK_CREATED ? "this worker cannot run it"
                   : task->state == TASK_LISTED  ? "it is on a list"
                                                 : "a worker has taken it already");
    return NULL;
}

/* Asks victims, each once, until one gives a task: in random order, or in the given one. */
static struct duet_task *steal_task(struct duet_view *view, const struct duet_policy *policy,
                                    struct worker *worker)
{
    struct duet_runtime *core = view->core;
    unsigned count = core->machine.worker_count - 1, attempts = 0;
    const bool draws = !view->surely && !policy->victims;
    for (unsigned i = 0; i < count; i++) {
        unsigned j = draws ? i + duet_random_below(&worker->rng, count - i) : i;
        unsigned victim = worker->victims[j];
        worker->victims[j] = worker->victims[i];
        worker->victims[i] = victim;
        attempts++;
        if (!duet_list_length(&core->workers[victim].list))
            continue;
        struct duet_task *task =
            policy->steal(core->policy_state, view, worker->index, victim, view->now);
        if (task && check_returned(core, worker, task)) {
            view->ops->steals++;
            view->ops->steal_attempts += attempts;
            count_own(&worker->steals, 1);
            count_own(&worker->steal_attempts, attempts);
            return task;
        }
    }
    return NULL;
}

static struct duet_task *pop_task(struct duet_view *view, struct worker *worker)
{
    struct duet_runtime *core = view->core;
    struct duet_task *task =
        policy_of(core)->pop(core->policy_state, view, worker->index, view->now);
    task = check_returned(core, worker, task);
    if (task) {
        view->ops->pops++;
        count_own(&worker->pops, 1);
    }
    return task;
}

static HOT struct duet_task *pop_or_steal(struct duet_view *view, struct worker *worker)
{
    struct duet_task *task = pop_task(view, worker);
    const struct duet_policy *policy = policy_of(view->core);
    return task || !policy->steal ? task : steal_task(view, policy, worker);
}

/* Marks the worker as idle or not. Returns true if it was marked before, and has not been woken
   since. */
static bool set_hungry(struct duet_runtime *core, unsigned worker, bool hungry)
{
    uint64_t bit = UINT64_C(1) << (worker % 64);
    _Atomic(uint64_t) *word = &core->hungry[worker / 64];
    return bit & (hungry ? atomic_fetch_or(word, bit) : atomic_fetch_and(word, ~bit));
}

/*
 * Returns a task for the worker, or NULL: it is then marked hungry, so that a thread that pushes a
 * task wakes it. A task pushed between looking and marking is found by looking once more;
 * otherwise, as always in a simulation, the second look finds nothing and draws no random number.
 * See list_try_lock in list.c. If the worker was woken although it has found a task, another one is
 * woken.
 */
static struct duet_task *find_task(struct duet_view *view, struct worker *worker)
{
    struct duet_runtime *core = view->core;
    struct duet_task *task = pop_or_steal(view, worker);
    bool fed = atomic_load_explicit(&worker->fed, memory_order_relaxed);
    if (task && fed)
        return task;
    if (task) {
        if (bit_test(core->hungry, worker->index))
            (void)set_hungry(core, worker->index, false);
    } else {
        bool before = set_hungry(core, worker->index, true);
        view->surely = true;
        task = pop_or_steal(view, worker);
        view->surely = false;
        if (!task && !before && atomic_load_explicit(&worker->revokes, memory_order_relaxed))
            duet__call_waiting(view);
        if (task && !set_hungry(core, worker->index, false))
            duet__call_another(view);
    }
    if (task)
        atomic_store_explicit(&worker->fed, true, memory_order_relaxed);
    else
        atomic_store(&worker->fed, false);
    return task;
}

/* ------------------------------------------------------------------------------------------- */
/* A worker's tasks in preparation and in flight                                                */

/* Tells the policy that a task without a kernel of its own has ended. */
static void tell_end(struct duet_view *view, const struct worker *worker, struct duet_task *task)
{
    const struct duet_policy *policy = policy_of(view->core);
    const struct duet_times times = {.start_s = view->now, .end_s = view->now};
    if (policy->epilogue)
        policy->epilogue(view->core->policy_state, view, task, worker->index, &times, view->now);
}

/* Ends a task in no slot that will not run because the run, or its input, has failed. */
void duet__task_cancel(struct duet_view *view, struct worker *worker, struct duet_task *task)
{
    bool placed = task->state == TASK_FETCHING || task->state == TASK_RUNNING;
    bool pinned = placed && worker->node != DUET_HOST;
    struct duet__completion report = {.start_s = view->now, .end_s = view->now};
    struct duet_task *next = task->modes & TASK_INITIALISES ? task->prev : NULL;
    if (!next && (placed || task->state == TASK_TAKEN))
        tell_end(view, worker, task);
    duet__trace_task(view->core, worker, task, &report, true);
    duet__count_failure(view->core, task, duet__cancelled_by(view->core), true);
    duet__graph_finish(view, task, worker->node, pinned, false);
    duet__task_end(view, task);
    if (!next)
        return;
    add_own(&worker->taken_ns, -(int64_t)(next->predicted_s * 1e9));
    duet__task_cancel(view, worker, next);
}

/*
 * True if all tasks of the worker were given to its device, and are known to take some time there.
 */
static bool all_running(const struct worker *worker)
{
    for (unsigned i = 0; i < worker->taken; i++)
        if (worker->slots[i]->state != TASK_RUNNING || !(worker->slots[i]->predicted_s > 0))
            return false;
    return true;
}

/*
 * True if the worker may take one more task. Beyond its window only while all its tasks were given
 * to the device and are known to last less than some launches take: another task then keeps the
 * device busy. If a task waits for copies, those of more tasks would only delay them.
 */
static bool has_slot(const struct worker *worker)
{
    static const int64_t launches_ns = 100000;
    if (worker->taken < worker->window)
        return true;
    return worker->taken < worker->window_short &&
           atomic_load_explicit(&worker->taken_ns, memory_order_relaxed) < launches_ns &&
           all_running(worker);
}

HOT void duet__slot_remove(struct worker *worker, struct duet_task *task)
{
    unsigned i = 0;
    while (worker->slots[i] != task)
        i++;
    worker->taken--;
    for (; i < worker->taken; i++)
        worker->slots[i] = worker->slots[i + 1];
    add_own(&worker->taken_ns, -(int64_t)(task->predicted_s * 1e9));
}

/*
 * Takes one more task into preparation. Returns false if there is none. Beyond its window a worker
 * steals nothing, and need not be woken.
 */
static bool take_task(struct duet_view *view, struct worker *worker)
{
    struct duet_runtime *core = view->core;
    bool beyond = worker->taken >= worker->window;
    struct duet_task *task = beyond ? pop_task(view, worker) : find_task(view, worker);
    if (!task)
        return false;
    if (atomic_load_explicit(&worker->member, memory_order_relaxed)) {
        duet__push(view, task); /* its team's first: the worker has to have begun its own part */
        return false;
    }
    task->worker = worker->index;
    task->state = TASK_TAKEN;
    task->predicted_s = duet__expected_s(task, worker->arch);
    add_own(&worker->taken_ns, (int64_t)(task->predicted_s * 1e9));
    worker->slots[worker->taken++] = task;
    const struct duet_policy *policy = policy_of(core);
    if (policy->prologue)
        policy->prologue(core->policy_state, view, task, worker->index, view->now);
    if (task->modes & ACCESS_REDUCES)
        duet__contribute(view, worker, task);
    return true;
}

/*
 * Returns the first of the worker's tasks that can start now. It finds room for those that have
 * none yet, oldest first. *stalled: one of them waits for room, so no further task may be taken.
 */
static struct duet_task *startable(struct duet_view *view, struct worker *worker, bool *stalled)
{
    *stalled = false;
    for (unsigned i = 0; i < worker->taken; i++) {
        struct duet_task *task = worker->slots[i];
        bool failed = task->state != TASK_RUNNING && hopeless(view->core, task);
        if (task->state == TASK_TAKEN && !failed && !*stalled) {
            int prepared = duet__cache_prepare(view, worker, task);
            *stalled = prepared == 0;
            /* also if an input was lost for good: the task does not run without it */
            failed = prepared < 0 || hopeless(view->core, task);
        }
        bool arrived = atomic_load_explicit(&task->missing, memory_order_acquire) == 0;
        if (failed && (task->state == TASK_TAKEN || arrived)) {
            duet__slot_remove(worker, task);
            duet__task_cancel(view, worker, task);
            i--;
        } else if (task->state == TASK_FETCHING && arrived) {
            return task;
        }
    }
    return NULL;
}

/* Expands a task, which leaves its slot to its children. */
static void expand_task(struct duet_view *view, struct worker *worker, struct duet_task *task)
{
    duet__slot_remove(worker, task);
    tell_end(view, worker, task);
    duet__expand(view, task);
}

static bool next_copy(struct worker *worker, struct duet__engine_command *command)
{
    if (atomic_load_explicit(&worker->copies, memory_order_relaxed) == 0)
        return false;
    struct duet__copy *copy = duet__next_copy(worker);
    if (!copy)
        return false;
    worker->copying++;
    command->kind = DUET_COPY;
    command->copy = copy;
    command->stream = copy->destination == worker->node ? DUET_STREAM_IN : DUET_STREAM_OUT;
    return true;
}

/* Returns the oldest task that the worker was given to run and that has not ended; NULL: none. */
const struct duet_task *duet__running_kernel(const struct worker *worker)
{
    for (unsigned i = 0; i < worker->taken; i++)
        if (worker->slots[i]->state == TASK_RUNNING)
            return worker->slots[i];
    return NULL;
}

/*
 * Resumes the worker's newest task that waits, if it can go on. If the worker was woken meanwhile
 * for a task that it leaves, or has pushed tasks on its own list, it wakes others.
 */
__attribute__((cold)) static void resume_body(struct duet_view *view, struct worker *worker,
                                              struct duet__engine_command *command)
{
    struct duet_runtime *core = view->core;
    const struct duet_expansion *body = worker->body;
    if (worker->at_body || !atomic_load_explicit(&body->ready, memory_order_acquire) ||
        duet__running_kernel(worker))
        return;
    bool hungry = !atomic_load_explicit(&worker->fed, memory_order_relaxed);
    worker->at_body = true;
    command->kind = DUET_RESUME;
    command->task = body->task;
    worker->nested.running = body->task->klass;
    worker->nested.now = view->now;
    bool called = hungry && !set_hungry(core, worker->index, false);
    if (called || duet_list_length(&worker->list))
        duet__call_another(view);
    atomic_store_explicit(&worker->fed, true, memory_order_relaxed);
}

static inline void give_task(struct duet_view *view, struct worker *worker, struct duet_task *task,
                             struct duet__engine_command *command)
{
    task->submitted = NULL;
    command->kind = DUET_RUN;
    command->task = task;
    worker->nested.running = task->klass;
    worker->nested.now = view->now;
}

/* Gives a task that waits to the worker, in no slot, so that the worker can take others meanwhile.
   Returns false if its codelet does not wait. */
__attribute__((cold)) static bool give_body(struct duet_view *view, struct worker *worker,
                                            struct duet_task *task,
                                            struct duet__engine_command *command)
{
    if (!task->klass->codelet->waits)
        return false;
    give_task(view, worker, task, command);
    duet__slot_remove(worker, task);
    task->state = TASK_BODY;
    worker->at_body = true;
    return true;
}

int duet__member_post(struct duet_runtime *core, unsigned by, unsigned worker,
                      const struct duet_task_desc *desc, double now, struct duet_message *message)
{
    struct duet_task *task;
    int error = duet__task_new(core, (int)by, desc, &task, message);
    if (error)
        return error;
    task->mask = MASK_MEMBER;
    duet__link_alone(core, task, now);
    atomic_store(&core->workers[worker].member, task);
    return DUET_OK;
}

bool duet__member_take(struct duet_runtime *core, unsigned worker, double now,
                       struct duet__engine_command *command)
{
    struct worker *self = &core->workers[worker];
    if (!atomic_load_explicit(&self->member, memory_order_relaxed))
        return false;
    struct duet_task *task = atomic_exchange(&self->member, NULL);
    task->submitted = NULL;
    task->worker = worker;
    task->predicted_s = 0;
    task->state = TASK_BODY;
    self->at_body = true;
    self->nested.running = task->klass;
    self->nested.now = now;
    (void)set_hungry(core, worker, false);
    atomic_store(&self->fed, true);
    *command = (struct duet__engine_command){.kind = DUET_RUN, .worker = worker, .task = task};
    return true;
}

/* Fills *command with the worker's next command. */
static void choose_command(struct duet_view *view, struct worker *worker,
                           struct duet__engine_command *command)
{
    if (next_copy(worker, command) || worker->at_body)
        return;
    for (;;) {
        bool stalled = false;
        if (worker->body) {
            resume_body(view, worker, command);
            if (command->kind == DUET_RESUME)
                return;
        }
        struct duet_task *task = worker->taken ? startable(view, worker, &stalled) : NULL;
        if (task && task->klass->codelet->expand) {
            if (give_body(view, worker, task, command))
                return;
            expand_task(view, worker, task);
            continue;
        }
        if (task) {
            task->state = TASK_RUNNING;
            give_task(view, worker, task, command);
            return;
        }
        /* preparing may have queued copies on this worker */
        if (next_copy(worker, command) || stalled || !has_slot(worker) || !take_task(view, worker))
            return;
    }
}

/*
 * Returns true if a worker without tasks may leave while the core is stopping: only when all others
 * have had none, as one of them may wait for a copy of this one. No task is prepared any more: a
 * worker that has had none once may still cancel tasks of others, and make copies for them, but
 * waits for none itself.
 */
static bool may_leave(struct duet_view *view, struct worker *worker)
{
    struct duet_runtime *core = view->core;
    const unsigned all = core->machine.worker_count;
    if (!worker->drained && atomic_fetch_add(&core->drained, 1) + 1 == all)
        view->wake_all = true;
    worker->drained = true;
    return atomic_load(&core->drained) == all && atomic_load(&worker->copies) == 0;
}

/*
 * Chooses the next command of a worker. Returns true if the caller has to ask again, since a task
 * of the worker went to another one.
 */
static __attribute__((noinline)) bool next_command(struct duet_runtime *core, unsigned worker,
                                                   double now, struct duet__engine_command *command,
                                                   struct duet__ops *ops)
{
    struct duet_view view;
    bool again = false;
    view_begin(&view, core, now, (int)worker, ops);
    struct worker *self = view.self;
    *command = (struct duet__engine_command){.kind = DUET_IDLE, .worker = worker};
    if (atomic_load_explicit(&self->lost, memory_order_relaxed))
        duet__lost_next(&view, self);
    else
        choose_command(&view, self, command);
    bool idle = command->kind == DUET_IDLE && self->taken == 0 && self->copying == 0 &&
                !self->body && !self->at_body;
    if (idle && atomic_load(&core->stopping) && may_leave(&view, self))
        command->kind = DUET_EXIT;
    if (!self->taken)
        duet__look_idle(&view, self);
    else if (atomic_load_explicit(&self->revokes, memory_order_relaxed))
        again = duet__revoke(&view, self, command);
    duet__view_flush(&view);
    if (self->body && command->kind == DUET_IDLE && !again) {
        /* the last child may have ended in this call */
        resume_body(&view, self, command);
        duet__view_flush(&view);
    }
    return again;
}

/*
 * True if there is surely no command for the worker: it has taken all tasks that it may, and each
 * one runs or waits for inputs. Most calls of duet__next come where this is so, after a copy has
 * ended or after the command before.
 */
static inline bool has_enough(const struct duet_runtime *core, const struct worker *worker)
{
    if (!worker->taken || has_slot(worker) || in_trouble(core) || worker->body || worker->at_body ||
        atomic_load_explicit(&worker->copies, memory_order_relaxed) ||
        atomic_load_explicit(&worker->revokes, memory_order_relaxed) ||
        atomic_load_explicit(&worker->lost, memory_order_relaxed))
        return false;
    for (unsigned i = 0; i < worker->taken; i++) {
        const struct duet_task *task = worker->slots[i];
        if (task->state != TASK_RUNNING &&
            (task->state != TASK_FETCHING ||
             atomic_load_explicit(&task->missing, memory_order_acquire) == 0))
            return false;
    }
    return true;
}

void duet__next(struct duet_runtime *core, unsigned worker, double now,
                struct duet__engine_command *command, struct duet__ops *ops)
{
    if (has_enough(core, &core->workers[worker])) {
        *command = (struct duet__engine_command){.kind = DUET_IDLE, .worker = worker};
        return;
    }
    while (next_command(core, worker, now, command, ops))
        ;
}

/* ------------------------------------------------------------------------------------------- */
/* Ends of commands                                                                             */

/*
 * Returns the reason of an error for the run's message: the engine's, or else the text of the
 * error.
 */
static const char *reason_of(const struct duet__completion *report)
{
    return report->why && *report->why ? report->why : duet_strerror(report->status);
}

RARE static void task_failed(struct duet_view *view, const struct worker *worker,
                             struct duet_task *task, const struct duet__completion *report)
{
    struct task_says says;
    duet__count_failure(view->core, task, report->status, false);
    duet__fail_task(view->core, report->status, "%s failed on %s: %s",
                    duet__task_says(view->core, task, &says),
                    view->core->machine.workers[worker->index].name, reason_of(report));
}

static void copy_failed(struct duet_view *view, const struct duet__copy *copy,
                        const struct duet__completion *report)
{
    const struct duet_node *nodes = view->core->machine.nodes;
    duet__poison_copy(view->core, copy);
    duet__fail_task(view->core, report->status, "copy of handle %llu from %s to %s failed: %s",
                    (unsigned long long)copy->handle_id, nodes[copy->source].name,
                    nodes[copy->destination].name, reason_of(report));
}

/* Ends a task; `initialises`: it initialises a contribution for the task in `prev`. */
static HOT void task_ended(struct duet_view *view, struct worker *worker, struct duet_task *task,
                           const struct duet__completion *report, bool initialises)
{
    struct duet_runtime *core = view->core;
    double seconds = report->before_s + (report->end_s - report->start_s);
    if (worker->node != DUET_HOST &&
        atomic_load_explicit(&core->nodes[worker->node].lost, memory_order_acquire)) {
        duet__lost_requeue(view, worker, task); /* its results are lost with the memory */
        return;
    }
    if (task->state == TASK_BODY)
        worker->at_body = false;
    else
        duet__slot_remove(worker, task);
    worker->nested.running = NULL;
    if (report->status)
        task_failed(view, worker, task, report);
    else if (seconds > 0)
        duet__class_measured(task->klass, worker, seconds);
    const struct duet_policy *policy = policy_of(core);
    if (policy->epilogue && !initialises && task->mask != MASK_MEMBER) {
        const struct duet_times times = {report->start_s - report->before_s, report->end_s,
                                         task->predicted_s};
        policy->epilogue(core->policy_state, view, task, worker->index, &times, view->now);
    }
    duet__trace_task(core, worker, task, report, report->status != 0);
    if (task->submitted)
        duet__link_submitted(view, task);
    struct duet_task *next = initialises ? task->prev : NULL;
    struct duet_handle *data = initialises ? task->accesses[0].handle : NULL;
    if (task->access_count)
        duet__graph_finish(view, task, worker->node, worker->node != DUET_HOST, !report->status);
    duet__task_end(view, task);
    if (initialises)
        duet__initialised(view, worker, next, data, !report->status);
}

RARE static void initialisation_ended(struct duet_view *view, struct worker *worker,
                                      struct duet_task *task, const struct duet__completion *report)
{
    task_ended(view, worker, task, report, true);
}

static inline void task_done(struct duet_view *view, struct worker *worker, struct duet_task *task,
                             const struct duet__completion *report)
{
    if (task->modes & TASK_INITIALISES)
        initialisation_ended(view, worker, task, report);
    else
        task_ended(view, worker, task, report, false);
}

static void copy_done(struct duet_view *view, struct worker *worker, struct duet__copy *copy,
                      const struct duet__completion *report)
{
    struct duet_runtime *core = view->core;
    worker->copying--;
    duet__trace_copy(core, worker, copy, report);
    if (report->status == DUET_ELOST) {
        /* the device lives: the other end is lost */
        if (!atomic_load_explicit(&worker->lost, memory_order_relaxed) && copy->source != DUET_HOST)
            duet__node_lost(core, copy->source);
        duet__copy_lost(view, copy);
        return;
    }
    if (report->status)
        copy_failed(view, copy, report);
    duet__copy_done(view, copy);
}

void duet__done(struct duet_runtime *core, const struct duet__engine_command *command, double now,
                const struct duet__completion *report, struct duet__ops *ops)
{
    struct duet_view view;
    view_begin(&view, core, now, (int)command->worker, ops);
    struct worker *worker = view.self;
    if (command->kind == DUET_COPY)
        copy_done(&view, worker, command->copy, report);
    else if (command->kind == DUET_RUN)
        task_done(&view, worker, command->task, report);
    duet__view_flush(&view);
}

bool duet__finished(const struct duet_runtime *core)
{
    return unfinished(core) == 0;
}

bool duet__hungry(const struct duet_runtime *core)
{
    for (unsigned i = 0; i < core->worker_words; i++)
        if (atomic_load_explicit(&core->hungry[i], memory_order_relaxed))
            return true;
    return false;
}

/* ------------------------------------------------------------------------------------------- */
/* Waiting for a lock that is taken. */

/* set for the process, not for a runtime: locks know of none */
static _Atomic(duet__rest_fn) rest_of_engine;

void duet__rest_by(duet__rest_fn rest)
{
    atomic_store_explicit(&rest_of_engine, rest, memory_order_relaxed);
}

void duet__spin_rest(unsigned tries)
{
    duet__rest_fn rest = atomic_load_explicit(&rest_of_engine, memory_order_relaxed);
    if (rest)
        rest(tries);
}

void duet__rest_now(unsigned tries)
{
    duet__spin_rest(tries);
}

void duet__spin_wait(struct spin *lock)
{
    unsigned tries = 0;
    do {
        duet__spin_rest(tries++);
    } while (atomic_load_explicit(&lock->taken, memory_order_relaxed) ||
             atomic_exchange_explicit(&lock->taken, true, memory_order_acquire));
}

/* ------------------------------------------------------------------------------------------- */
/* Workers to wake, gathered while locks are held and woken afterwards. */

void duet__view_wake(struct duet_view *view, unsigned worker)
{
    if (view->wake_all)
        return;
    for (unsigned i = 0; i < view->wake_count; i++)
        if (view->wakes[i] == worker)
            return;
    if (view->wake_count == WAKES_MAX)
        view->wake_all = true;
    else
        view->wakes[view->wake_count++] = worker;
}

void duet__view_act(struct duet_view *view)
{
    struct duet_runtime *core = view->core;
    bool over = view->over;
    while (view->over) {
        struct duet_task *task = view->over;
        view->over = task->next;
        duet__task_over(view, task);
    }
    if (over && view->by >= 0)
        duet__look_idle(view, &core->workers[view->by]);
    else if (view->ended && unfinished(core) == 0)
        view->notify = true;
    if (view->wake_all) {
        for (unsigned w = 0; w < core->machine.worker_count; w++)
            core->ops->wake(core->engine, w);
    } else {
        for (unsigned i = 0; i < view->wake_count; i++)
            core->ops->wake(core->engine, view->wakes[i]);
    }
    if (view->notify && core->ops->notify)
        core->ops->notify(core->engine);
    view->wake_count = 0;
    view->wake_all = view->notify = view->ended = false;
}
