/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated engine. The application's thread runs it: a wait lets simulated time pass until the
 * awaited condition holds. Ends of kernels are events of a heap of our own, of which the network
 * knows the next date; copies are flows of the network. An event is handled, then the workers it
 * woke are asked what to do, in increasing number.
 *
 * A worker decides at the date of the event; what the decision and the launch cost delays what it
 * starts (struct sim_worker.thread_s).
 */
#include <stdlib.h>
#include <string.h>

#include "sim/internal.h"

/* ------------------------------------------------------------------------------------------- */
/* Events and alarms                                                                            */

/* Makes sure that the network gives an alarm for the first event. */
static void arm(struct sim *sim)
{
    if (sim->events.count == 0)
        return;
    double date = sim->events.heap[0].date, clock = duet__network_clock();
    if (sim->alarm_count && sim->alarms[sim->alarm_count - 1] <= date)
        return;
    if (sim->alarm_count == sim->alarm_capacity) {
        size_t capacity = 2 * sim->alarm_capacity + 64;
        double *alarms = realloc(sim->alarms, capacity * sizeof *alarms);
        if (!alarms) {
            duet__fail_run(sim->core, DUET_ENOMEM, "no memory left for another alarm");
            return;
        }
        sim->alarms = alarms;
        sim->alarm_capacity = capacity;
    }
    sim->alarms[sim->alarm_count++] = date;
    duet__network_alarm(date > clock ? date : clock);
}

void duet__sim_event(struct sim *sim, double date, enum event_kind kind, unsigned worker,
                     void *what)
{
    if (!duet__events_add(&sim->events, date, kind, worker, what))
        duet__fail_run(sim->core, DUET_ENOMEM, "no memory left for another event");
}

/* ------------------------------------------------------------------------------------------- */
/* Workers                                                                                      */

void duet__sim_wake(void *engine, unsigned worker)
{
    struct sim *sim = engine;
    sim->woken[worker / 64] |= UINT64_C(1) << (worker % 64);
}

static void notify(void *engine)
{
    struct sim *sim = engine;
    sim->notified = true;
}

void duet__sim_charge(struct sim *sim, unsigned worker, const struct duet__ops *ops)
{
    const struct duet_costs *costs = &sim->machine.costs;
    struct sim_worker *self = &sim->workers[worker];
    if (self->thread_s < sim->now)
        self->thread_s = sim->now;
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

/* Asks a worker until it is idle. */
static void ask(struct sim *sim, unsigned worker)
{
    if (sim->rests && !duet__idle_may_ask(sim, worker))
        return;
    for (;;) {
        struct duet__engine_command command;
        struct duet__ops ops = {0};
        sim->asked = (int)worker;
        duet__next(sim->core, worker, sim->now, &command, &ops);
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
    if (sim->rests)
        duet__idle_rest(sim, worker);
}

/* Asks the workers that were woken, in increasing number, until none is. */
static void serve(struct sim *sim)
{
    bool any = true;
    while (any) {
        any = false;
        for (unsigned i = 0; i < sim->words; i++) {
            while (sim->woken[i]) {
                uint64_t bit = sim->woken[i] & -sim->woken[i];
                sim->woken[i] &= ~bit;
                ask(sim, i * 64 + (unsigned)__builtin_ctzll(bit));
                any = true;
            }
        }
    }
}

/* The worker's thread knows that the kernel has ended, and tells the core. */
static void kernel_done(struct sim *sim, unsigned worker, struct kernel *kernel)
{
    struct duet__report report = {.start_s = kernel->start_s, .end_s = kernel->end_s};
    struct duet__ops ops = {0};
    kernel->used = false;
    sim->workers[worker].idle = false;
    if (kernel->body) {
        duet__body_passed(sim, kernel);
        return;
    }
    sim->asked = (int)worker;
    duet__done(sim->core, &kernel->command, sim->now, &report, &ops);
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

/* Has the worker's thread to notice what its device does? Not at once, then. */
static bool notices(const struct sim *sim, unsigned worker)
{
    return sim->notice_s > 0 && sim->machine.workers[worker].node != DUET_HOST;
}

static void kernel_end(struct sim *sim, unsigned worker, struct kernel *kernel)
{
    kernel->end_s = sim->now;
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
/* The run                                                                                      */

static void handle(struct sim *sim, const struct event *event)
{
    unsigned worker = event_worker(event);
    if (sim->now < event->date)
        sim->now = event->date;
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
        sim->submit_dated = false;
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
    }
    serve(sim);
}

static bool stop_here(struct sim *sim)
{
    bool look = sim->notified;
    sim->notified = false;
    if (!look || !sim->reached)
        return false;
    if (!sim->reached(sim->reached_arg)) {
        duet__first_again(sim);
        return false;
    }
    sim->notified = duet__first_busy(sim);
    return !sim->notified;
}

/* After what has happened: what happens before the next event, and the events that are known. */
static void look_ahead(struct sim *sim)
{
    duet__sim_submit_ahead(sim);
    duet__first_date(sim);
}

/* The network's alarm: everything dated up to now happens. true: the wait is over. */
static bool alarm_rings(void *engine)
{
    struct sim *sim = engine;
    double date = sim->alarms[--sim->alarm_count], clock = duet__network_clock();
    double limit = date > clock ? date : clock;
    bool stop = false;
    while (!stop && sim->events.count && sim->events.heap[0].date <= limit) {
        struct event event = duet__events_take(&sim->events);
        if (event_kind(&event) != EVENT_KERNEL_END || !duet__cores_moved(sim, &event)) {
            handle(sim, &event);
            stop = stop_here(sim);
        }
        if (!stop)
            look_ahead(sim);
    }
    arm(sim);
    return stop;
}

/* A flow has arrived: an event of this date, so that equal dates keep their canonical order. */
static void flow_arrived(void *engine, void *tag)
{
    struct sim *sim = engine;
    struct transfer *transfer = tag;
    sim->flows--;
    duet__sim_event(sim, duet__network_clock(), EVENT_COPY_END, transfer->command.worker, transfer);
    arm(sim);
}

static int sim_wait(void *engine, bool (*reached)(void *arg), void *arg)
{
    struct sim *sim = engine;
    if (reached(arg))
        return DUET_OK;
    sim->reached = reached;
    sim->reached_arg = arg;
    sim->notified = sim->first_dated = false;
    serve(sim);
    look_ahead(sim);
    arm(sim);
    duet__network_run();
    sim->reached = NULL;
    return reached(arg) ? DUET_OK : DUET_ESTUCK;
}

/* Kernels do not run here: only tasks that expand are called, and functions at a task's end. */
static int sim_inside(void *engine)
{
    const struct sim *sim = engine;
    return sim->asked;
}

static double sim_now(void *engine)
{
    const struct sim *sim = engine;
    bool ahead = sim->asked == DUET_OUTSIDE && sim->submit_s > sim->now;
    return ahead ? sim->submit_s : sim->now;
}

/* ------------------------------------------------------------------------------------------- */
/* Making and freeing                                                                           */

static void sim_free(struct sim *sim)
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
    free(sim->alarms);
    free(sim->events.heap);
    duet_machine_fini(&sim->machine);
    free(sim);
}

static void sim_destroy(void *engine)
{
    duet__network_close();
    sim_free(engine);
}

const struct duet__engine_ops *duet__sim_ops(void)
{
    static const struct duet__engine_ops ops = {
        .wake = duet__sim_wake,
        .submitted = duet__sim_submitted,
        .wait = sim_wait,
        .inside = sim_inside,
        .await = duet__sim_await,
        .notify = notify,
        .now = sim_now,
        .classify = duet__sim_classify,
        .mean = duet__sim_mean,
        .destroy = sim_destroy,
    };
    return &ops;
}

static bool fill(struct sim *sim)
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

int duet__sim_new(void **out, const struct duet_machine *machine, const struct sim_options *options,
                  struct duet_message *message)
{
    static const struct network_calls calls = {.alarm = alarm_rings, .arrived = flow_arrived};
    *out = NULL;
    struct sim *sim = calloc(1, sizeof *sim);
    if (!sim)
        return DUET_ENOMEM;
    sim->options = *options;
    sim->asked = DUET_OUTSIDE;
    int error = duet_machine_copy(&sim->machine, machine);
    if (!error && !fill(sim))
        error = DUET_ENOMEM;
    if (!error)
        error = duet__cores_init(sim);
    if (!error)
        duet__idle_init(sim);
    if (!error)
        error = duet__network_open(machine, &calls, sim, message);
    if (error) {
        if (error == DUET_ENOMEM)
            duet_fail(message, error, "no memory left for the simulated machine");
        sim_free(sim);
        return error;
    }
    *out = sim;
    return DUET_OK;
}

void duet__sim_attach(void *engine, struct duet_runtime *core)
{
    struct sim *sim = engine;
    sim->core = core;
    for (unsigned w = 0; w < sim->machine.worker_count; w++)
        duet__sim_wake(sim, w); /* everybody asks for work once, and is idle then */
}
