/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated engine of one node. An event is handled, then the workers that it woke are asked
 * for their next command, in increasing number.
 *
 * A worker decides at the date of the event; the cost of the decision and of the launch delays the
 * command itself (struct sim_worker.thread_s).
 */
#include <stdlib.h>

#include "sim/internal.h"

enum { IN_VAIN_MAX = 1000000 }; /* more questions at one date than any policy needs */

/* ------------------------------------------------------------------------------------------- */
/* Workers                                                                                      */

void duet__sim_wake(void *engine, unsigned worker)
{
    struct sim *sim = engine;
    sim->woken[worker / 64] |= UINT64_C(1) << (worker % 64);
    touch_node(sim);
}

static void notify_wait(void *engine)
{
    struct sim *sim = engine;
    sim->cluster->notified = true;
}

void duet__sim_charge(struct sim *sim, unsigned worker, const struct duet__ops *ops)
{
    const struct duet_costs *costs = &sim->machine.costs;
    struct sim_worker *self = &sim->workers[worker];
    if (self->thread_s < sim->cluster->now)
        self->thread_s = sim->cluster->now;
    if (ops->submissions | ops->pushes | ops->pops | ops->steal_attempts)
        self->thread_s += ops->submissions * costs->submit_s + ops->pushes * costs->push_s +
                          ops->pops * costs->pop_s + ops->steal_attempts * costs->steal_s;
}

struct kernel *duet__sim_kernel(struct sim *sim, const struct duet__engine_command *command,
                                double part)
{
    const struct duet_worker *worker = &sim->machine.workers[command->worker];
    struct sim_worker *self = &sim->workers[command->worker];
    struct kernel *kernel = self->kernels;
    while (kernel->used)
        kernel++;
    kernel->used = true;
    kernel->command = *command;
    kernel->part = part;
    kernel->body = NULL;
    self->idle = false;
    if (worker->node != DUET_HOST)
        self->thread_s += sim->machine.costs.kernel_launch_s;
    if (self->shares) {
        duet__cores_add(sim, kernel, self->thread_s);
        return kernel;
    }
    double seconds = duet__sim_seconds(sim, command->task, worker->arch) * part, end;
    if (worker->node == DUET_HOST) {
        kernel->start_s = self->thread_s;
        end = self->thread_s = kernel->start_s + seconds;
    } else {
        kernel->start_s = self->stream_s > self->thread_s ? self->stream_s : self->thread_s;
        end = self->stream_s = kernel->start_s + seconds;
    }
    duet__sim_event(sim, end, EVENT_KERNEL_END, command->worker, kernel);
    return kernel;
}

/* Asks a worker for commands until it is idle. */
static void ask_worker(struct sim *sim, unsigned worker)
{
    if (sim->rests && !duet__idle_may_ask(sim, worker))
        return;
    if (sim->asked_s < sim->cluster->now)
        sim->in_vain = 0;
    if (sim->in_vain == IN_VAIN_MAX)
        return;
    sim->asked_s = sim->cluster->now;
    for (;; sim->in_vain = 0) {
        struct duet__engine_command command;
        struct duet__ops ops = {0};
        sim->asked = (int)worker;
        duet__next(sim->core, worker, sim->cluster->now, &command, &ops);
        sim->asked = DUET_OUTSIDE;
        duet__sim_charge(sim, worker, &ops);
        if (command.kind == DUET_RUN && duet__task_waits(command.task)) {
            duet__body_begin(sim, &command);
        } else if (command.kind == DUET_RUN) {
            (void)duet__sim_kernel(sim, &command, 1);
        } else if (command.kind == DUET_RESUME) {
            duet__body_resume(sim, worker);
        } else if (command.kind == DUET_COPY) {
            struct sim_worker *self = &sim->workers[worker];
            self->thread_s += sim->machine.costs.copy_launch_s;
            duet__sim_copy(sim, &command, self->thread_s);
        } else {
            break;
        }
    }
    if (++sim->in_vain == IN_VAIN_MAX)
        duet__fail_run(sim->core, DUET_ESTUCK,
                       "workers were asked %d times at one date, and got nothing from the policy: "
                       "it may push again what it takes",
                       IN_VAIN_MAX);
    if (sim->rests)
        duet__idle_rest(sim, worker);
}

/* Asks workers in increasing number, until none is woken. */
bool duet__node_serve(struct sim *sim)
{
    bool asked = false;
    for (unsigned i = 0, quiet = 0; quiet < sim->words; i = i + 1 < sim->words ? i + 1 : 0) {
        for (quiet++; sim->woken[i]; quiet = 1) {
            const unsigned bit = (unsigned)__builtin_ctzll(sim->woken[i]);
            sim->woken[i] &= sim->woken[i] - 1;
            ask_worker(sim, i * 64 + bit);
            asked = true;
        }
    }
    return asked;
}

/* Tells the core that the kernel has ended, when the worker's thread knows it. */
static void kernel_done(struct sim *sim, unsigned worker, struct kernel *kernel)
{
    struct duet__completion report = {.start_s = kernel->start_s, .end_s = kernel->end_s};
    struct duet__ops ops = {0};
    kernel->used = false;
    sim->workers[worker].idle = false;
    if (kernel->body) {
        duet__body_passed(sim, kernel);
        return;
    }
    sim->asked = (int)worker;
    duet__done(sim->core, &kernel->command, sim->cluster->now, &report, &ops);
    sim->asked = DUET_OUTSIDE;
    duet__sim_charge(sim, worker, &ops);
    duet__sim_wake(sim, worker);
}

static void copy_done(struct sim *sim, unsigned worker, struct transfer *transfer)
{
    struct duet__ops ops = {0};
    sim->workers[worker].idle = false;
    sim->asked = (int)worker;
    duet__sim_copy_done(sim, transfer, &ops);
    sim->asked = DUET_OUTSIDE;
    duet__sim_charge(sim, worker, &ops);
    duet__sim_wake(sim, worker);
}

/* True if the worker's thread has to notice its device's completions, which takes time. */
static bool notices(const struct sim *sim, unsigned worker)
{
    return sim->notice_s > 0 && sim->machine.workers[worker].node != DUET_HOST;
}

static void kernel_end(struct sim *sim, unsigned worker, struct kernel *kernel)
{
    kernel->end_s = sim->cluster->now;
    if (sim->workers[worker].shares)
        duet__cores_end(sim, kernel);
    if (notices(sim, worker))
        duet__sim_event(sim, duet__idle_notice_s(sim), EVENT_KERNEL_NOTICED, worker, kernel);
    else
        kernel_done(sim, worker, kernel);
}

static void copy_end(struct sim *sim, unsigned worker, struct transfer *transfer)
{
    duet__sim_copy_end(sim, transfer);
    if (notices(sim, worker))
        duet__sim_event(sim, duet__idle_notice_s(sim), EVENT_COPY_NOTICED, worker, transfer);
    else
        copy_done(sim, worker, transfer);
}

/* ------------------------------------------------------------------------------------------- */
/* Functions of the engine */

void duet__node_event(struct sim *sim, const struct event *event)
{
    unsigned worker = event_worker(event) - of_all(sim, 0);
    duet__sim_submit_due(sim, event_kind(event) == EVENT_SUBMIT);
    switch (event_kind(event)) {
    case EVENT_KERNEL_END:
        kernel_end(sim, worker, event->what);
        break;
    case EVENT_KERNEL_NOTICED:
        kernel_done(sim, worker, event->what);
        break;
    case EVENT_COPY_END:
        copy_end(sim, worker, event->what);
        break;
    case EVENT_COPY_NOTICED:
        copy_done(sim, worker, event->what);
        break;
    case EVENT_FLOW_START:
        duet__sim_flow(sim, event->what);
        break;
    case EVENT_SUBMIT:
        sim->dated_s = INFINITY;
        break;
    case EVENT_SERVE:
        break;
    case EVENT_AWAKE:
        duet__idle_awake(sim, worker);
        break;
    case EVENT_WAIT:
        duet__first_open(sim);
        break;
    case EVENT_KERNEL_BEGIN:
        duet__cores_begin(sim, event->what);
        break;
    case EVENT_FAILED:
    case EVENT_MESSAGE_ARRIVED:
    case EVENT_MESSAGE_SENT:
    case EVENT_PROGRESS:
    case EVENT_MESSAGE_FLOW:
        duet__messages_event(sim, event_kind(event), event->what);
        break;
    }
}

/*
 * Returns the worker that is calling: kernels do not run here; only tasks that expand are called,
 * and functions at a task's end.
 */
static int sim_inside(void *engine)
{
    const struct sim *sim = engine;
    return sim->asked;
}

static double sim_now(void *engine)
{
    const struct sim *sim = engine;
    bool ahead = sim->asked == DUET_OUTSIDE && sim->submit_s > sim->cluster->now;
    return ahead ? sim->submit_s : sim->cluster->now;
}

/* ------------------------------------------------------------------------------------------- */
/* Making and freeing                                                                           */

void duet__node_free(struct sim *sim)
{
    duet__bodies_fini(sim);
    duet__sim_copies_fini(sim);
    duet__sim_timings_fini(sim);
    duet__cores_fini(sim);
    for (unsigned w = 0; sim->workers && w < sim->machine.worker_count; w++)
        free(sim->workers[w].kernels);
    free(sim->workers);
    free(sim->woken);
    free(sim->ring);
    free(sim);
}

const struct duet__engine_ops *duet__sim_ops(void)
{
    static const struct duet__engine_ops ops = {
        .wake = duet__sim_wake,
        .submitted = duet__sim_submitted,
        .wait = duet__sim_wait,
        .inside = sim_inside,
        .await = duet__sim_await,
        .notify = notify_wait,
        .now = sim_now,
        .classify = duet__sim_classify,
        .mean = duet__sim_mean,
        .destroy = duet__sim_destroy,
    };
    return &ops;
}

static bool fill_node(struct sim *sim)
{
    const struct duet_machine *machine = &sim->machine;
    sim->words = (machine->worker_count + 63) / 64;
    sim->workers = calloc(machine->worker_count, sizeof *sim->workers);
    sim->woken = calloc(sim->words, sizeof *sim->woken);
    sim->incoming = calloc(machine->node_count, sizeof *sim->incoming);
    sim->outgoing = calloc(machine->node_count, sizeof *sim->outgoing);
    if (!sim->workers || !sim->woken || !sim->incoming || !sim->outgoing)
        return false;
    for (unsigned w = 0; w < machine->worker_count; w++) {
        sim->workers[w].kernels =
            calloc(duet_worker_slots(&machine->workers[w]), sizeof(struct kernel));
        if (!sim->workers[w].kernels)
            return false;
    }
    return true;
}

int duet__node_new(struct sim **out, struct cluster *cluster, unsigned number,
                   const struct sim_options *options)
{
    struct sim *sim = calloc(1, sizeof *sim);
    if (!sim)
        return DUET_ENOMEM;
    sim->cluster = cluster;
    sim->number = number;
    sim->machine = cluster->machine;
    sim->options = *options;
    sim->options.seed = duet__node_seed(options->seed, number);
    sim->asked = DUET_OUTSIDE;
    sim->dated_s = INFINITY;
    int error = fill_node(sim) ? duet__cores_init(sim) : DUET_ENOMEM;
    if (error) {
        duet__node_free(sim);
        return error;
    }
    duet__idle_init(sim);
    *out = sim;
    return DUET_OK;
}

void duet__sim_attach(void *engine, struct duet_runtime *core)
{
    struct sim *sim = engine;
    sim->core = core;
    for (unsigned w = 0; w < sim->machine.worker_count; w++)
        duet__sim_wake(sim, w); /* every worker asks for work once, and is idle then */
}

/* ------------------------------------------------------------------------------------------- */
/* The heap of dated events. */

static bool is_earlier(const struct event *a, const struct event *b)
{
    return a->date < b->date || (a->date == b->date && a->order < b->order);
}

static void heap_add(struct events *events, const struct event *event)
{
    size_t i = events->heaped++;
    for (; i > 0 && is_earlier(event, &events->heap[(i - 1) / 2]); i = (i - 1) / 2)
        events->heap[i] = events->heap[(i - 1) / 2];
    events->heap[i] = *event;
}

bool duet__events_add(struct events *events, double date, enum event_kind kind, unsigned worker,
                      void *what)
{
    if (events->count == events->capacity) {
        size_t capacity = events->capacity ? 2 * events->capacity : 64;
        struct event *heap = realloc(events->heap, capacity * sizeof *heap);
        if (!heap)
            return false;
        events->heap = heap;
        events->capacity = capacity;
    }
    struct event event = {date, event_order(events, kind, worker), what};
    events->sequence++;
    const bool before = events->count++ > events->heaped;
    if (before ? !is_earlier(&event, &events->first)
               : events->heaped && !is_earlier(&event, &events->heap[0])) {
        heap_add(events, &event);
        return true;
    }
    if (before)
        heap_add(events, &events->first);
    events->first = event;
    return true;
}

struct event duet__events_take(struct events *events)
{
    if (events->count-- > events->heaped)
        return events->first;
    struct event *heap = events->heap;
    const struct event first = heap[0], *last = &heap[--events->heaped];
    size_t i = 0, count = events->heaped;
    /* the root's gap sinks to a leaf; the last event, which is mostly late, rises from there */
    for (size_t child = 1; child < count; child = 2 * i + 1) {
        child += child + 1 < count && is_earlier(&heap[child + 1], &heap[child]);
        heap[i] = heap[child];
        i = child;
    }
    for (; i > 0 && is_earlier(last, &heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = *last;
    return first;
}
