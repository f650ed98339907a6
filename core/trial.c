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
/*
 * Copies of held tasks in the core of a trial, with their kernels, their data where it is valid
 * now, its cuts, and their explicit predecessors.
 */

static struct task_class *class_twin(struct duet_runtime *core, struct task_class *of)
{
    struct duet_codelet *codelet = of->twin ? NULL : duet__codelet_like(core, of->codelet);
    if (codelet)
        of->twin = duet__class_twin(of, codelet);
    return of->twin;
}

/* Gives a handle of the trial's core the size of `of`, valid where that is. */
static void be_twin(struct duet_runtime *core, struct duet_handle *of, struct duet_handle *twin)
{
    bool anywhere = false;
    twin->id = of->id;
    twin->bytes = of->bytes;
    twin->slab_bytes = of->slab_bytes;
    twin->apart = of->apart;
    for (unsigned n = 1; n < core->machine.node_count; n++)
        if (bit_test(of->valid, n))
            anywhere = duet__cache_put(core, twin, n) || anywhere;
    if (anywhere && !bit_test(of->valid, DUET_HOST))
        bit_clear(twin->valid, DUET_HOST);
    of->twin = twin;
}

/*
 * Cuts a handle's copy like the handle, by the given cut and those after it in the list. Returns
 * false if there is no memory. parts_lock is held.
 */
static bool make_cuts(struct duet_runtime *core, struct duet_handle *of, const struct parts *from)
{
    struct duet_message message;
    struct parts *parts = NULL;
    if (!from)
        return true;
    if (make_cuts(core, of, from->next))
        parts = duet__parts_new(of->twin, NULL);
    bool made = parts;
    for (unsigned i = 0; made && i < from->count; i++) {
        struct duet_handle *part = from->handles[i];
        const struct duet_part where = {part->row, part->col, part->rows, part->cols};
        made = !duet__part_add(core, parts, &where, (enum shape)part->shape, &message);
        if (made)
            be_twin(core, part, parts->handles[i]);
        made = made && make_cuts(core, part, part->cuts);
    }
    if (parts) {
        parts->in_force = from->in_force;
        duet__parts_attach(core, parts);
    }
    return made;
}

static struct duet_handle *handle_twin(struct duet_runtime *core, struct duet_handle *of)
{
    struct duet_handle *whole = of;
    if (of->twin)
        return of->twin;
    while (whole->of)
        whole = whole->of->whole;
    struct duet_handle *twin =
        duet__handle_new(core, NULL, whole->rows, whole->cols, whole->ld, whole->element_bytes);
    if (!twin)
        return NULL;
    be_twin(core, whole, twin);
    return make_cuts(core, whole, whole->cuts) ? of->twin : NULL;
}

/* Clears the copies of a handle and all of its parts. */
static void forget_handle(struct duet_handle *handle)
{
    handle->twin = NULL;
    for (const struct parts *cut = handle->cuts; cut; cut = cut->next)
        for (unsigned i = 0; i < cut->count; i++)
            forget_handle(cut->handles[i]);
}

/*
 * Clears the copies of an earlier trial of the task's class, reference and data. parts_lock is
 * held.
 */
static void forget_twins(struct duet_task *task)
{
    task->klass->twin = NULL;
    if (task->extra && task->extra->ref)
        duet__ref_set_twin(task->extra->ref, NULL);
    for (unsigned i = 0; i < task->access_count; i++) {
        struct duet_handle *whole = task->accesses[i].handle;
        while (whole->of)
            whole = whole->of->whole;
        if (whole->twin)
            forget_handle(whole);
    }
}

/* Copies a task's record, with the copies of its explicit predecessors. NULL: no memory. */
static struct duet_task *task_alloc(struct duet_runtime *core, const struct duet_task *of)
{
    const unsigned edges = of->extra ? of->extra->edge_count : 0;
    struct duet_ref *ref = NULL, **before = calloc(edges + 1, sizeof(struct duet_ref *));
    struct duet_message message;
    const struct duet_task_extra extra = {.after = before,
                                          .after_count = edges,
                                          .ref = of->extra && of->extra->ref ? &ref : NULL};
    const struct duet_task_desc desc = {.codelet = of->klass->twin->codelet, .extra = &extra};
    if (!before)
        return NULL;
    unsigned room = of->access_count + (of->extra ? duet__extra_room(&desc) : 0);
    struct duet_task *twin = duet__task_alloc(core, DUET_SUBMITTER, room);
    if (twin) {
        const uint8_t pool = twin->pool;
        memcpy(twin, of, sizeof *of + of->access_count * sizeof *of->accesses);
        twin->pool = pool;
        twin->extra = NULL;
        twin->klass = of->klass->twin;
    }
    if (twin && of->extra) {
        duet__edges_twins(of->extra, before);
        if (duet__extra_new(core, twin, &desc, &message))
            twin = NULL;
        else
            twin->pending -= (int32_t)(edges - twin->extra->edge_count);
    }
    if (ref) {
        duet__ref_set_twin(of->extra->ref, ref);
        duet_ref_free(ref); /* the task holds it */
    }
    free(before);
    return twin;
}

static struct duet_task *task_twin(struct duet_runtime *core, const struct duet_task *of)
{
    struct duet_task *twin = class_twin(core, of->klass) ? task_alloc(core, of) : NULL;
    for (unsigned i = 0; twin && i < of->access_count; i++) {
        twin->accesses[i].handle = handle_twin(core, of->accesses[i].handle);
        if (!twin->accesses[i].handle)
            return NULL;
    }
    if (twin)
        atomic_fetch_add(&core->submitted, 1);
    return twin;
}

/* Copies the tasks into the trial's core, not linked. Returns false if there is no memory. */
static bool make_twins(struct duet_runtime *core, struct duet_runtime *from,
                       struct duet_task *const *tasks, struct duet_task **twins, size_t count)
{
    uint8_t mask;
    for (unsigned m = 0; m < atomic_load(&from->mask_count); m++)
        if (duet__mask_find(core, from->masks[m].kinds, &mask))
            return false;
    bool made = true;
    spin_lock(&from->parts_lock);
    for (size_t t = 0; t < count; t++)
        forget_twins(tasks[t]);
    for (size_t t = 0; made && t < count; t++) {
        twins[t] = task_twin(core, tasks[t]);
        made = twins[t];
    }
    spin_unlock(&from->parts_lock);
    return made;
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
        make_twins(trial.core, core, tasks, trial.tasks, count))
        makespan_s = trial_run(&trial, ranks, limit_s);
    duet__core_free(trial.core);
    duet__flows_fini(&trial.flows);
    free(trial.lines);
    free(trial.kernels);
    free(trial.woken);
    free(trial.tasks);
    return makespan_s;
}
