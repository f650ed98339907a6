/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trial: the simulation of the held tasks under a policy. It is a second core on the same
 * machine, with copies of handles and tasks, and an engine whose time is a number: kernels take the
 * time that the first core expects, scheduling the machine's costs; a device copies one piece of
 * data after another in each direction, and copies share links max-min fairly (Bertsekas, Gallager,
 * Data Networks, section 6.5.2). There is no thread and no clock: the same tasks take the same
 * times.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/trial.h"

enum copy_state { WAITING, LATENT, FLOWING, ARRIVED };

/* A copy that the core has decided, in order of launch. */
struct flow {
    struct duet__engine_command command;
    enum copy_state state;
    double date; /* WAITING: launch; LATENT, ARRIVED: end of the state */
    double start_s, end_s;
    double left, rate; /* FLOWING: bytes left, bytes per second; rate < 0 while rates are set */
};

struct kernel {
    struct duet_task *task;
    double start_s, end_s;
};

/* Busy times of a worker. */
struct line {
    double thread_s, stream_s;
    struct kernel *kernels; /* ring of as many as its slots */
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
    uint64_t *woken;
    struct flow *flows;
    size_t flow_count, flow_capacity;
    double flowed_s;  /* date to which `left` of the flows applies */
    double *free_Bps; /* by link: bandwidth left to share, and number of sharers */
    unsigned *sharers;
    uint64_t pass, *taken; /* by direction of a node: last pass in which it was taken */
    bool waits;            /* the application has submitted all and waits */
    bool failed;           /* out of memory */
};

/* ------------------------------------------------------------------------------------------- */
/* Links                                                                                        */

static const struct duet_route *route_of(const struct trial *trial, const struct flow *flow)
{
    const struct duet__copy *copy = flow->command.copy;
    return duet_machine_route(trial->machine, copy->source, copy->destination);
}

/* Returns the rate of the flow if its links were shared equally by flows without a rate. */
static double equal_share(const struct trial *trial, const struct flow *flow)
{
    const struct duet_route *route = route_of(trial, flow);
    double least = INFINITY;
    for (unsigned i = 0; i < route->count; i++) {
        const struct duet_link *link = &trial->machine->links[route->links[i]];
        double share = link->per_copy
                           ? link->bandwidth_Bps
                           : trial->free_Bps[route->links[i]] / trial->sharers[route->links[i]];
        least = share < least ? share : least;
    }
    return least;
}

static void flow_set_rate(struct trial *trial, struct flow *flow, double rate)
{
    const struct duet_route *route = route_of(trial, flow);
    flow->rate = rate;
    for (unsigned i = 0; i < route->count; i++) {
        trial->free_Bps[route->links[i]] -= rate;
        trial->sharers[route->links[i]]--;
    }
}

/*
 * Sets all rates anew after a flow has begun or ended: the narrowest links give equal shares first,
 * then the rest is shared.
 */
static void share_links(struct trial *trial)
{
    size_t left = 0;
    for (size_t f = 0; f < trial->flow_count; f++) {
        struct flow *flow = &trial->flows[f];
        if (flow->state != FLOWING)
            continue;
        const struct duet_route *route = route_of(trial, flow);
        flow->rate = -1;
        left++;
        for (unsigned i = 0; i < route->count; i++) {
            trial->free_Bps[route->links[i]] = trial->machine->links[route->links[i]].bandwidth_Bps;
            trial->sharers[route->links[i]] = 0;
        }
    }
    for (size_t f = 0; f < trial->flow_count; f++)
        for (unsigned i = 0;
             trial->flows[f].state == FLOWING && i < route_of(trial, &trial->flows[f])->count; i++)
            trial->sharers[route_of(trial, &trial->flows[f])->links[i]]++;
    while (left) {
        double level = INFINITY;
        for (size_t f = 0; f < trial->flow_count; f++)
            if (trial->flows[f].state == FLOWING && trial->flows[f].rate < 0)
                level = fmin(level, equal_share(trial, &trial->flows[f]));
        for (size_t f = 0; f < trial->flow_count; f++) {
            struct flow *flow = &trial->flows[f];
            if (flow->state != FLOWING || flow->rate >= 0 ||
                equal_share(trial, flow) > level * (1 + 1e-12))
                continue;
            flow_set_rate(trial, flow, level);
            left--;
        }
    }
}

/* Moves all flows up to now, before rates change. */
static void let_flow(struct trial *trial)
{
    for (size_t f = 0; f < trial->flow_count; f++)
        if (trial->flows[f].state == FLOWING)
            trial->flows[f].left -= (trial->now - trial->flowed_s) * trial->flows[f].rate;
    trial->flowed_s = trial->now;
}

/* Returns the date at which the copy's state changes; INFINITY: when others end. */
static double flow_date(const struct trial *trial, const struct flow *flow)
{
    if (flow->state == FLOWING)
        return fmax(trial->flowed_s + flow->left / flow->rate, trial->now);
    return flow->state == WAITING ? INFINITY : flow->date;
}

/* ------------------------------------------------------------------------------------------- */
/* Copies                                                                                       */

/*
 * Takes a direction of a memory node for this pass. Returns true for the first to take it, and
 * always for the host's.
 */
static bool take_direction(struct trial *trial, unsigned node, bool out)
{
    bool first = node == DUET_HOST || trial->taken[2 * node + out] != trial->pass;
    trial->taken[2 * node + out] = trial->pass;
    return first;
}

/* Begins the copies that no earlier one precedes in either direction that they need. */
static void begin_copies(struct trial *trial)
{
    trial->pass++;
    for (size_t f = 0; f < trial->flow_count; f++) {
        struct flow *flow = &trial->flows[f];
        if (flow->state == ARRIVED)
            continue;
        bool out = take_direction(trial, flow->command.copy->source, true);
        bool in = take_direction(trial, flow->command.copy->destination, false);
        if (flow->state != WAITING || !out || !in)
            continue;
        flow->state = LATENT;
        flow->start_s = fmax(flow->date, trial->now);
        flow->date = flow->start_s + route_of(trial, flow)->latency_s;
    }
}

static void launch_copy(struct trial *trial, const struct duet__engine_command *command)
{
    if (trial->flow_count == trial->flow_capacity) {
        size_t capacity = 2 * trial->flow_capacity + 64;
        struct flow *flows = realloc(trial->flows, capacity * sizeof *flows);
        trial->failed = trial->failed || !flows;
        if (!flows)
            return;
        trial->flows = flows;
        trial->flow_capacity = capacity;
    }
    struct line *line = &trial->lines[command->worker];
    line->thread_s += trial->machine->costs.copy_launch_s;
    trial->flows[trial->flow_count++] = (struct flow){.command = *command, .date = line->thread_s};
    begin_copies(trial);
}

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

/* Returns the delay after which a device's thread notices an end. */
static double notice_s(const struct trial *trial, unsigned worker)
{
    return trial->machine->workers[worker].node == DUET_HOST ? 0 : trial->machine->costs.event_s;
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

/* Moves a copy on to its next state: its latency is over, it has flowed, or its end was noticed. */
static void flow_go_on(struct trial *trial, size_t index)
{
    struct flow *flow = &trial->flows[index];
    if (flow->state == ARRIVED) {
        const struct flow over = *flow;
        memmove(flow, flow + 1, (--trial->flow_count - index) * sizeof *flow);
        tell_done(trial, &over.command, over.start_s, over.end_s);
        return;
    }
    let_flow(trial);
    if (flow->state == LATENT) {
        flow->state = FLOWING;
        flow->left = (double)flow->command.copy->bytes;
    } else {
        flow->state = ARRIVED;
        flow->end_s = trial->now;
        flow->date = trial->now + notice_s(trial, flow->command.worker);
        begin_copies(trial);
    }
    share_links(trial);
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
    double date = trial->waits ? INFINITY : trial->submit_s;
    unsigned worker = trial->machine->worker_count;
    size_t copy = trial->flow_count;
    for (size_t f = 0; f < trial->flow_count; f++) {
        double at = flow_date(trial, &trial->flows[f]);
        if (at <= date && (copy == trial->flow_count || at < date)) {
            date = at;
            copy = f;
        }
    }
    for (unsigned w = trial->machine->worker_count; w-- > 0;) {
        const struct line *line = &trial->lines[w];
        if (!line->count)
            continue;
        double at = line->kernels[line->first].end_s + notice_s(trial, w);
        if (at <= date) {
            date = at;
            worker = w;
        }
    }
    if (isinf(date))
        return false;
    trial->now = fmax(trial->now, date);
    if (worker < trial->machine->worker_count)
        end_kernel(trial, worker);
    else if (copy < trial->flow_count)
        flow_go_on(trial, copy);
    else
        trial_submit(trial);
    trial_serve(trial);
    return true;
}

/* ------------------------------------------------------------------------------------------- */
/* The second core                                                                              */

static void trial_notify(void *engine)
{
}

static void trial_destroy(void *engine)
{
}

static bool make_lines(struct trial *trial)
{
    const struct duet_machine *machine = trial->machine;
    trial->lines = calloc(machine->worker_count, sizeof *trial->lines);
    trial->woken = calloc((machine->worker_count + 63) / 64, sizeof *trial->woken);
    trial->free_Bps = calloc(machine->link_count + 1, sizeof *trial->free_Bps);
    trial->sharers = calloc(machine->link_count + 1, sizeof *trial->sharers);
    trial->taken = calloc(2 * (size_t)machine->node_count, sizeof *trial->taken);
    trial->tasks = calloc(trial->count, sizeof(struct duet_task *));
    bool made = trial->lines && trial->woken && trial->free_Bps && trial->sharers && trial->taken &&
                trial->tasks;
    for (unsigned w = 0; made && w < machine->worker_count; w++) {
        struct line *line = &trial->lines[w];
        line->room = duet_worker_slots(&machine->workers[w]);
        line->kernels = calloc(line->room, sizeof *line->kernels);
        made = line->kernels;
        trial_wake(trial, w);
    }
    return made;
}

static void free_lines(struct trial *trial)
{
    for (unsigned w = 0; trial->lines && w < trial->machine->worker_count; w++)
        free(trial->lines[w].kernels);
    free(trial->lines);
    free(trial->woken);
    free(trial->free_Bps);
    free(trial->sharers);
    free(trial->taken);
    free(trial->tasks);
    free(trial->flows);
}

static int make_core(struct trial *trial, const struct duet_runtime *from,
                     const struct candidate *candidate)
{
    static const struct duet__engine_ops ops = {
        .wake = trial_wake,
        .notify = trial_notify,
        .destroy = trial_destroy,
    };
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
    free_lines(&trial);
    return makespan_s;
}
