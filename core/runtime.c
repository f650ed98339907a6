/* SPDX-License-Identifier: Apache-2.0 */
/* Making and freeing a core. */
#include <math.h>

#include "core/internal.h"

/* Finds or adds the kind of a worker: its architecture and the memory its tasks must fit into. */
static int kind_of(struct duet_runtime *core, const struct duet_worker *worker, unsigned *out)
{
    bool device = worker->node != DUET_HOST;
    uint64_t capacity = device ? core->nodes[worker->node].slab.capacity_bytes : UINT64_MAX;
    for (unsigned k = 0; k < core->kind_count; k++) {
        if (core->kinds[k].arch == worker->arch && core->kinds[k].device == device &&
            core->kinds[k].capacity_bytes == capacity) {
            atomic_fetch_add(&core->kinds[k].living, 1);
            *out = k;
            return DUET_OK;
        }
    }
    if (core->kind_count == KINDS_MAX)
        return DUET_EINVAL;
    core->kinds[core->kind_count].arch = worker->arch;
    core->kinds[core->kind_count].device = device;
    core->kinds[core->kind_count].capacity_bytes = capacity;
    atomic_init(&core->kinds[core->kind_count].living, 1);
    *out = core->kind_count++;
    return DUET_OK;
}

static int make_nodes(struct duet_runtime *core, struct duet_message *message)
{
    const struct duet_machine *machine = &core->machine;
    core->nodes = calloc(machine->node_count, sizeof *core->nodes);
    core->queued_ns =
        calloc(machine->link_count + 2 * (size_t)machine->node_count, sizeof *core->queued_ns);
    if (!core->nodes || !core->queued_ns)
        return DUET_ENOMEM;
    for (unsigned n = 1; n < core->machine.node_count; n++) {
        int error = duet__slab_init(&core->nodes[n].slab, core->machine.nodes[n].capacity_bytes);
        if (error)
            return error;
        unsigned users = 0;
        for (unsigned w = 0; w < core->machine.worker_count; w++) {
            if (core->machine.workers[w].node == n) {
                core->nodes[n].worker = w;
                users++;
            }
        }
        if (users != 1)
            return duet_fail(message, DUET_EINVAL,
                             "memory node %s of machine %s has %u workers; a device has one",
                             core->machine.nodes[n].name, core->machine.name, users);
        core->accelerators++;
    }
    return DUET_OK;
}

static int make_worker(struct duet_runtime *core, unsigned index, struct duet_message *message)
{
    const struct duet_worker *from = &core->machine.workers[index];
    struct worker *worker = &core->workers[index];
    worker->index = index;
    worker->arch = from->arch;
    worker->node = from->node;
    worker->window = from->window;
    worker->window_short = duet_worker_slots(from);
    worker->rng = duet_random_stream(core->seed, index + 1);
    duet__list_init(&worker->list, core, worker);
    if (kind_of(core, from, &worker->kind))
        return duet_fail(message, DUET_EINVAL, "machine %s has more than %d kinds of workers",
                         core->machine.name, KINDS_MAX);
    worker->slots = calloc(worker->window_short, sizeof(struct duet_task *));
    worker->victims = calloc(core->machine.worker_count, sizeof *worker->victims);
    if (!worker->slots || !worker->victims)
        return DUET_ENOMEM;
    unsigned count = 0;
    for (unsigned w = 0; w < core->machine.worker_count; w++)
        if (w != index)
            worker->victims[count++] = w;
    return DUET_OK;
}

static int make_workers(struct duet_runtime *core, struct duet_message *message)
{
    unsigned count = core->machine.worker_count;
    core->workers = zeroed(count * sizeof *core->workers);
    if (!core->workers)
        return DUET_ENOMEM;
    core->worker_words = (count + 63) / 64;
    core->hungry = zeroed((core->worker_words + 7) / 8 * LINE);
    core->hosts = calloc(core->worker_words, sizeof *core->hosts);
    core->class_seconds = calloc(core->machine.arch_count, sizeof *core->class_seconds);
    core->class_ran = calloc(count, sizeof *core->class_ran);
    if (!core->hungry || !core->hosts || !core->class_seconds || !core->class_ran)
        return DUET_ENOMEM;
    duet__list_init(&core->shared, core, NULL);
    for (unsigned w = 0; w < count; w++) {
        int error = make_worker(core, w, message);
        if (error)
            return error;
    }
    for (unsigned w = 0; w < count; w++)
        if (core->workers[w].node == DUET_HOST)
            core->hosts[w / 64] |= UINT64_C(1) << (w % 64);
    return DUET_OK;
}

/* Lets the policy order the victims of a thief, and checks that all are still there. */
static int order_victims(struct duet_view *view, const struct duet_policy *policy, unsigned thief,
                         struct duet_message *message)
{
    struct duet_runtime *core = view->core;
    unsigned count = core->machine.worker_count, *order = core->workers[thief].victims;
    policy->victims(core->policy_state, view, thief, order);
    bool *seen = calloc(count, sizeof *seen);
    if (!seen)
        return DUET_ENOMEM;
    seen[thief] = true;
    unsigned i = 0;
    for (; i + 1 < count && order[i] < count && !seen[order[i]]; i++)
        seen[order[i]] = true;
    free(seen);
    if (i + 1 == count)
        return DUET_OK;
    return duet_fail(message, DUET_EINVAL,
                     "policy %s: the victims of worker %u are all others, each once; number %u of "
                     "its order is worker %u",
                     policy->name, thief, i, order[i]);
}

/* Makes the policy. Its memory has room for each policy that the core may choose. */
static int make_policy(struct duet_runtime *core, const struct duet__core_config *config,
                       struct duet_message *message)
{
    const struct duet_policy *policy = config->policy;
    double parameters[DUET_PARAMETERS_MAX];
    if (policy->candidates)
        return duet__choice_new(core, config, message);
    for (unsigned i = 0; i < duet__parameter_count(policy); i++)
        parameters[i] = config->chosen ? config->parameters[i] : policy->parameters[i].initial;
    duet__policy_room(core, policy);
    return duet__policy_begin(core, policy, parameters, message);
}

static void raise_room(size_t *room, size_t bytes, size_t whole)
{
    bytes = (bytes + whole - 1) / whole * whole;
    *room = bytes > *room ? bytes : *room;
}

void duet__policy_room(struct duet_runtime *core, const struct duet_policy *policy)
{
    raise_room(&core->state_bytes, policy->state_size, 1);
    raise_room(&core->worker_state_bytes, policy->state_size_a_worker, 64);
    raise_room(&core->data_state_bytes, policy->state_size_a_data, 16);
    raise_room(&core->place_state_bytes, policy->state_size_a_place, 16);
    core->chains |= policy->order >= DUET_NEAREST;
}

int duet__policy_begin(struct duet_runtime *core, const struct duet_policy *policy,
                       const double *parameters, struct duet_message *message)
{
    const unsigned workers = core->machine.worker_count;
    if (!core->policy_state)
        core->policy_state = calloc(1, core->state_bytes + 1);
    if (!core->worker_states)
        core->worker_states = calloc(workers, core->worker_state_bytes + 1);
    if (!core->policy_state || !core->worker_states)
        return DUET_ENOMEM;
    core->parameters_of = policy;
    memcpy(core->parameters, parameters, duet__parameter_count(policy) * sizeof *parameters);
    duet__list_order(&core->shared, policy->order);
    for (unsigned w = 0; w < workers; w++) {
        duet__list_order(&core->workers[w].list, policy->order);
        atomic_store(&core->workers[w].revokes, policy->revoke != NULL);
    }
    struct duet__ops ops = {0};
    struct duet_view view;
    view_begin(&view, core, 0, DUET_SUBMITTER, &ops);
    core->begins = true;
    int error = policy->init ? policy->init(core->policy_state, &view) : DUET_OK;
    core->begins = false;
    if (error && *core->run_message.text) /* init has called duet_view_fail */
        error = duet_fail(message, error < 0 ? error : DUET_EINVAL, "%s", core->run_message.text);
    else if (error)
        error = duet_fail(message, error < 0 ? error : DUET_EINVAL,
                          "policy %s: its init returned %d (%s)", policy->name, error,
                          duet_strerror(error));
    for (unsigned w = 0; policy->victims && w < workers && !error; w++)
        error = order_victims(&view, policy, w, message);
    /* idle workers ask it from now on; after an error it is the one whose `fini` is called */
    atomic_store_explicit(&core->policy, policy, memory_order_release);
    return error;
}

static int core_fill(struct duet_runtime *core, const struct duet__core_config *config,
                     struct duet_message *message)
{
    int error = duet_machine_copy(&core->machine, config->machine);
    if (error)
        return error;
    core->model = config->model;
    core->seed = config->seed;
    core->window = config->window ? config->window : DEFAULT_WINDOW;
    core->set_arch = config->set_arch;
    core->strict = config->strict;
    core->record = config->record || config->record_accesses;
    core->record_accesses = config->record_accesses;
    atomic_init(&core->watch, core->record ? WATCH_RECORD : 0);
    core->computes = config->computes;
    core->keep_going = config->keep_going;
    core->nearest_source = config->nearest_source;
    core->priorities = config->priorities;
    core->priority_bits = config->priorities == DUET__WORKLOAD ? -1 : 0;
    core->model_error = config->model_error;
    core->perturbation = config->perturbation;
    core->submit_rng = duet_random_stream(config->seed, 0);
    atomic_init(&core->first_submit_s, INFINITY);
    core->node_words = (core->machine.node_count + 63) / 64;
    error = make_nodes(core, message);
    if (!error)
        error = make_workers(core, message);
    bool holds = config->hold || config->priorities == DUET__BOTTOM_LEVEL || config->policy->plan ||
                 config->policy->candidates;
    if (!error && holds)
        error = duet__held_new(core);
    return error ? error : make_policy(core, config, message);
}

int duet__core_new(struct duet_runtime **out, const struct duet__core_config *config,
                   struct duet_message *message)
{
    *out = NULL;
    int error = duet_policy_check(config->policy, message);
    if (!error)
        error = duet_machine_check(config->machine, message);
    if (error)
        return error;
    if (config->machine->arch_count > 64 || config->machine->node_count > 64 * NODE_WORDS_MAX)
        return duet_fail(message, DUET_EINVAL,
                         "machine %s is too large: at most 64 architectures and %d memory nodes",
                         config->machine->name, 64 * NODE_WORDS_MAX);
    if (!(config->model_error >= 0 && config->model_error < 1))
        return duet_fail(message, DUET_EINVAL, "a model error of %g: it must be in [0, 1)",
                         config->model_error);
    if (!(config->perturbation >= 0 && config->perturbation < 1))
        return duet_fail(message, DUET_EINVAL, "a perturbation of %g: it must be in [0, 1)",
                         config->perturbation);
    struct duet_runtime *core = zeroed(sizeof *core);
    if (!core)
        return DUET_ENOMEM;
    error = core_fill(core, config, message);
    if (error) {
        duet__core_free(core); /* no ops yet: the engine stays the caller's */
        return error;
    }
    core->ops = config->ops;
    core->keeps = config->policy->keeps_nested && config->ops->run_kept;
    core->engine = config->engine;
    if (!core->held) {
        core->enter = core->ops->submitted;
        core->enter_for = core->engine;
    }
    *out = core;
    return DUET_OK;
}

static void free_workers(struct duet_runtime *core)
{
    for (unsigned w = 0; core->workers && w < core->machine.worker_count; w++) {
        struct worker *worker = &core->workers[w];
        free(worker->slots);
        free(worker->victims);
        free(worker->batch);
        free(worker->records.rows);
        free(worker->notes.rows);
        free(worker->touched.rows);
    }
    free(core->workers);
}

static void free_nodes(struct duet_runtime *core)
{
    for (unsigned n = 0; core->nodes && n < core->machine.node_count; n++) {
        struct node *node = &core->nodes[n];
        duet__slab_fini(&node->slab);
        for (unsigned i = 0; i < node->array_count; i++)
            free(node->arrays[i]);
        free(node->arrays);
        free(node->candidates);
    }
    free(core->nodes);
    free(core->queued_ns);
}

void *duet__engine_of(const struct duet_runtime *core)
{
    return core->engine;
}

void duet__core_free(struct duet_runtime *core)
{
    if (!core)
        return;
    duet__record_drop(core);
    if (core->ops && core->ops->destroy)
        core->ops->destroy(core->engine);
    if (core->policy && policy_of(core)->fini)
        policy_of(core)->fini(core->policy_state);
    free(core->choice);
    duet__handles_fini(core);
    duet__memory_fini(core);
    duet__regions_fini(core);
    duet__classes_fini(core);
    duet__codelets_fini(core);
    duet__pools_fini(core);
    duet__names_fini(core);
    free_workers(core);
    free_nodes(core);
    duet__masks_fini(core);
    free(core->held);
    duet__entered_fini(core);
    free(core->hungry);
    free(core->hosts);
    free(core->class_seconds);
    free(core->class_ran);
    while (core->own_lists) {
        struct duet_list *next = core->own_lists->next;
        free(core->own_lists);
        core->own_lists = next;
    }
    free(core->policy_state);
    free(core->worker_states);
    duet_machine_fini(&core->machine);
    if (core->free_kept)
        core->free_kept(core->kept);
    free(core);
}

void duet__core_keep(struct duet_runtime *core, void *data, void (*free_data)(void *data))
{
    core->kept = data;
    core->free_kept = free_data;
}

void *duet__core_kept(const struct duet_runtime *core)
{
    return core->kept;
}

void duet__core_stop(struct duet_runtime *core)
{
    if (!duet__finished(core))
        duet_cancel(core);
    atomic_store(&core->stopping, true);
    for (unsigned w = 0; w < core->machine.worker_count; w++)
        core->ops->wake(core->engine, w);
}

void *duet__core_engine(const struct duet_runtime *core)
{
    return core->engine;
}

/* ------------------------------------------------------------------------------------------- */
/* Calls of the application's own threads that a gate takes over from the core. */

void duet__core_gate(struct duet_runtime *core, const struct duet__gate *gate, void *arg)
{
    core->gate_arg = arg;
    core->gate = gate;
}

void *duet__core_gate_arg(const struct duet_runtime *core)
{
    return core->gate ? core->gate_arg : NULL;
}

/*
 * Returns the gate for a call of the application's own thread; NULL: there is none, or the call
 * comes from inside the core.
 */
const struct duet__gate *duet__gate_of(const struct duet_runtime *core)
{
    return core->gate && duet__caller(core) == DUET_OUTSIDE ? core->gate : NULL;
}

RARE int duet__gate_submit(struct duet_runtime *core, const struct duet_task_desc *desc)
{
    const struct duet__gate *gate = duet__gate_of(core);
    if (desc && desc->codelet && desc->codelet->core != core)
        gate = NULL; /* the core refuses the task */
    for (size_t i = 0; gate && desc && desc->accesses && i < desc->access_count; i++) {
        const struct duet_access *access = &desc->accesses[i];
        if (access->mode != DUET_SCRATCH && (!access->handle || access->handle->core != core))
            gate = NULL;
    }
    return gate ? gate->submit(core->gate_arg, desc) : duet__submit_here(core, desc);
}

/* Tells the gate that the run has failed, for the first time. */
void duet__gate_failed(struct duet_runtime *core)
{
    struct duet_message why;
    if (!core->gate || !core->gate->failed)
        return;
    spin_lock(&core->message_lock);
    why = core->run_message;
    spin_unlock(&core->message_lock);
    core->gate->failed(core->gate_arg, atomic_load(&core->error), why.text);
}
