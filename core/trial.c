/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trial: the simulation of the held tasks under a policy. It is a second core on the same
 * machine, with copies of handles and tasks, and an engine whose time is a number: kernels take the
 * time that the first core expects, scheduling the machine's costs, copies what flows.h says. There
 * is no thread and no clock: the same tasks take the same times.
 */
#include <math.h>

#include "core/flows.h"
#include "core/trial.h"

struct kernel {
    struct duet_task *task;
    double start_s, end_s;
};

/* Busy times of a worker. */
struct line {
    double thread_s, stream_s;
    struct kernel *kernels; /* ring of as many as its slots, in those of all workers */
    unsigned first, count, room;
};

struct trial {
    struct duet_runtime *core;
    const struct duet_machine *machine;
    struct duet_task **tasks; /* tasks to be submitted */
    size_t next, count;
    double now, submit_s; /* submit_s: date of the next submission */
    double last_end_s;
    struct line *lines;
    struct kernel *kernels; /* of all workers */
    uint64_t *woken;
    struct duet__flows flows; /* copies, until their ends are noticed */
    bool waits;               /* the application has submitted all and waits */
    bool failed;              /* out of memory */
};

/* ------------------------------------------------------------------------------------------- */
/* Workers                                                                                      */

static void trial_wake(void *engine, unsigned worker)
{
    struct trial *trial = engine;
    trial->woken[worker / 64] |= UINT64_C(1) << (worker % 64);
}

static void trial_charge(struct trial *trial, unsigned worker, const struct duet__ops *ops)
{
    const struct duet_costs *costs = &trial->machine->costs;
    struct line *line = &trial->lines[worker];
    line->thread_s = fmax(line->thread_s, trial->now) + ops->pushes * costs->push_s +
                     ops->pops * costs->pop_s + ops->steal_attempts * costs->steal_s;
}

static void launch_copy(struct trial *trial, const struct duet__engine_command *command)
{
    struct line *line = &trial->lines[command->worker];
    line->thread_s += trial->machine->costs.copy_launch_s;
    const struct duet__flow flow = {.source = command->copy->source,
                                    .destination = command->copy->destination,
                                    .bytes = (double)command->copy->bytes,
                                    .start_s = line->thread_s,
                                    .tag = command->copy,
                                    .worker = command->worker};
    trial->failed |= duet__flows_add(&trial->flows, &flow) != DUET_OK;
}

static void launch_kernel(struct trial *trial, const struct duet__engine_command *command)
{
    const struct duet_worker *worker = &trial->machine->workers[command->worker];
    struct line *line = &trial->lines[command->worker];
    struct kernel *kernel = &line->kernels[(line->first + line->count++) % line->room];
    bool device = worker->node != DUET_HOST;
    line->thread_s += device ? trial->machine->costs.kernel_launch_s : 0;
    kernel->task = command->task;
    kernel->start_s = device ? fmax(line->stream_s, line->thread_s) : line->thread_s;
    kernel->end_s = kernel->start_s + duet__expected_s(command->task, worker->arch);
    *(device ? &line->stream_s : &line->thread_s) = kernel->end_s;
}

/* Asks a worker until it is idle; the application's own thread only once that waits. */
static void trial_ask(struct trial *trial, unsigned worker)
{
    struct duet__engine_command command = {.kind = DUET_RUN};
    bool submits = trial->machine->first_waits && !trial->waits;
    if (worker == 0 && submits && trial->machine->workers[0].node == DUET_HOST)
        return;
    while (command.kind == DUET_RUN || command.kind == DUET_COPY) {
        struct duet__ops ops = {0};
        duet__next(trial->core, worker, trial->now, &command, &ops);
        trial_charge(trial, worker, &ops);
        if (command.kind == DUET_RUN)
            launch_kernel(trial, &command);
        else if (command.kind == DUET_COPY)
            launch_copy(trial, &command);
    }
}

/* Asks woken workers, in increasing number, until none is. */
static void trial_serve(struct trial *trial)
{
    for (unsigned i = 0; i < trial->core->worker_words; i++) {
        while (trial->woken[i]) {
            unsigned worker = i * 64 + (unsigned)__builtin_ctzll(trial->woken[i]);
            trial->woken[i] &= trial->woken[i] - 1;
            trial_ask(trial, worker);
            i = 0;
        }
    }
}

static void tell_done(struct trial *trial, const struct duet__engine_command *command,
                      double start_s, double end_s)
{
    const struct duet__completion report = {.start_s = start_s, .end_s = end_s};
    struct duet__ops ops = {0};
    duet__done(trial->core, command, trial->now, &report, &ops);
    trial_charge(trial, command->worker, &ops);
    trial_wake(trial, command->worker);
}

/* Returns the date at which the worker's thread notices an end: a device's later than it was. */
static double noticed_s(const struct trial *trial, unsigned worker, double end_s)
{
    const struct duet_machine *machine = trial->machine;
    return end_s + (machine->workers[worker].node == DUET_HOST ? 0 : machine->costs.event_s);
}

static void end_kernel(struct trial *trial, unsigned worker)
{
    struct line *line = &trial->lines[worker];
    const struct kernel kernel = line->kernels[line->first];
    const struct duet__engine_command command = {DUET_RUN, worker, 0, kernel.task, NULL};
    line->first = (line->first + 1) % line->room;
    line->count--;
    trial->last_end_s = fmax(trial->last_end_s, kernel.end_s);
    tell_done(trial, &command, kernel.start_s, kernel.end_s);
}

static void end_copy(struct trial *trial, size_t index)
{
    const struct duet__flow flow = duet__flows_remove(&trial->flows, index);
    const struct duet__engine_command command = {DUET_COPY, flow.worker, 0, NULL, flow.tag};
    tell_done(trial, &command, flow.start_s, flow.date_s);
}

/* ------------------------------------------------------------------------------------------- */
/* Time                                                                                         */

/* Submits the next task on the application's thread, which waits after the last one. */
static void trial_submit(struct trial *trial)
{
    const struct duet_costs *costs = &trial->machine->costs;
    struct duet__ops ops = {0};
    if (trial->next == trial->count) {
        trial->waits = true;
        trial_wake(trial, 0);
        return;
    }
    duet__link(trial->core, trial->tasks[trial->next++], DUET_SUBMITTER, trial->now, &ops);
    trial->submit_s += ops.pushes * costs->push_s;
    if (trial->next < trial->count)
        trial->submit_s += costs->submit_s;
}

/* Handles the next event. Returns false if there is none. */
static bool trial_step(struct trial *trial)
{
    const struct duet__flows *flows = &trial->flows;
    double date = trial->waits ? INFINITY : trial->submit_s;
    unsigned worker = trial->machine->worker_count;
    size_t copy = flows->count;
    for (size_t f = flows->count; f-- > 0;) {
        const struct duet__flow *flow = &flows->flows[f];
        if (flow->state == DUET__ENDED && noticed_s(trial, flow->worker, flow->date_s) <= date) {
            date = noticed_s(trial, flow->worker, flow->date_s);
            copy = f;
        }
    }
    for (unsigned w = trial->machine->worker_count; w-- > 0;) {
        const struct line *line = &trial->lines[w];
        if (line->count && noticed_s(trial, w, line->kernels[line->first].end_s) <= date) {
            date = noticed_s(trial, w, line->kernels[line->first].end_s);
            worker = w;
        }
    }
    if (isinf(date) && isinf(flows->next_s))
        return false;
    trial->now = fmax(trial->now, fmin(date, flows->next_s));
    if (flows->next_s <= date)
        duet__flows_advance(&trial->flows, flows->next_s);
    else if (worker < trial->machine->worker_count)
        end_kernel(trial, worker);
    else if (copy < flows->count)
        end_copy(trial, copy);
    else
        trial_submit(trial);
    trial_serve(trial);
    return true;
}

/* ------------------------------------------------------------------------------------------- */
/* The second core                                                                              */

static bool make_lines(struct trial *trial)
{
    const struct duet_machine *machine = trial->machine;
    size_t slots = 1;
    trial->lines = calloc(machine->worker_count, sizeof *trial->lines);
    for (unsigned w = 0; w < machine->worker_count; w++)
        slots += duet_worker_slots(&machine->workers[w]);
    trial->kernels = calloc(slots, sizeof *trial->kernels);
    trial->woken = calloc((machine->worker_count + 63) / 64, sizeof *trial->woken);
    trial->tasks = calloc(trial->count, sizeof(struct duet_task *));
    if (duet__flows_init(&trial->flows, machine, 1) || !trial->lines || !trial->kernels ||
        !trial->woken || !trial->tasks)
        return false;
    struct kernel *kernels = trial->kernels;
    for (unsigned w = 0; w < machine->worker_count; w++) {
        const unsigned room = duet_worker_slots(&machine->workers[w]);
        trial->lines[w] = (struct line){.kernels = kernels, .room = room};
        kernels += room;
        trial_wake(trial, w);
    }
    return true;
}

static int make_core(struct trial *trial, const struct duet_runtime *from,
                     const struct candidate *candidate)
{
    static const struct duet__engine_ops ops = {.wake = trial_wake};
    struct duet__core_config config = {
        .machine = trial->machine,
        .policy = candidate->policy,
        .chosen = true,
        .seed = from->seed,
        .nearest_source = from->nearest_source,
        .ops = &ops,
        .engine = trial,
    };
    memcpy(config.parameters, candidate->parameters, sizeof config.parameters);
    int error = duet__core_new(&trial->core, &config, NULL);
    if (!error)
        atomic_store(&trial->core->registered_bytes, atomic_load(&from->registered_bytes));
    for (unsigned w = 0; !error && w < trial->machine->worker_count; w++) {
        struct duet__ops counted = {0};
        if (atomic_load(&from->workers[w].lost))
            error = duet__worker_lost(trial->core, w, 0, &counted);
    }
    return error;
}

/* Lets the policy plan, and runs events up to the end. Returns the makespan, or INFINITY. */
static double trial_run(struct trial *trial, const double *ranks, double limit_s)
{
    struct duet_runtime *core = trial->core;
    if (policy_of(core)->plan)
        duet__plan(core, trial->tasks, ranks, trial->count, 0);
    trial->submit_s = trial->machine->costs.submit_s;
    trial_serve(trial);
    while (trial->now < limit_s && !trial->failed && trial_step(trial))
        ;
    bool ended = trial->next == trial->count && duet__finished(core) && !atomic_load(&core->error);
    return ended && !trial->failed ? trial->last_end_s - trial->machine->costs.submit_s : INFINITY;
}

double duet__trial(struct duet_runtime *core, const struct candidate *candidate,
                   struct duet_task *const *tasks, const double *ranks, size_t count,
                   double limit_s)
{
    struct trial trial = {.machine = &core->machine, .count = count};
    double makespan_s = INFINITY;
    if (make_lines(&trial) && !make_core(&trial, core, candidate) &&
        duet__twins(trial.core, core, tasks, trial.tasks, count))
        makespan_s = trial_run(&trial, ranks, limit_s);
    duet__core_free(trial.core);
    duet__flows_fini(&trial.flows);
    free(trial.lines);
    free(trial.kernels);
    free(trial.woken);
    free(trial.tasks);
    return makespan_s;
}
