/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated nodes on one clock. The application's thread runs them: a wait lets simulated time pass
 * until the awaited condition holds. Ends of kernels are events of a heap of our own; the network
 * asks for the date of its next event. Copies are flows of the network. An event concerns one node.
 * All nodes that it has changed are served before the next event: workers that were woken are
 * asked, and submissions that are due are entered.
 */
#include <stdlib.h>

#include "sim/internal.h"

enum { WORKERS_MAX = 1 << 20 /* of all nodes, in the order of events */ };

/* ------------------------------------------------------------------------------------------- */
/* Events                                                                                       */

static void fail_for_memory(struct cluster *cluster, const char *what)
{
    duet__fail_run(cluster->nodes[0]->core, DUET_ENOMEM, "no memory left for another %s", what);
}

static double next_event_s(void *owner)
{
    const struct cluster *cluster = owner;
    return duet__events_first_s(&cluster->events);
}

void duet__sim_event(struct sim *sim, double date, enum event_kind kind, unsigned worker,
                     void *what)
{
    sim->pending++;
    if (!duet__events_add(&sim->cluster->events, date, kind, of_all(sim, worker), what))
        fail_for_memory(sim->cluster, "event");
}

void duet__sim_flows(const struct flow *flow, bool begun)
{
    if (!begun)
        fail_for_memory(flow->sim->cluster, "flow");
    flow->sim->cluster->flows += begun;
    flow->sim->pending += begun;
}

static struct sim *node_of(const struct cluster *cluster, const struct event *event)
{
    return cluster->nodes[event_worker(event) / cluster->machine.worker_count];
}

/* ------------------------------------------------------------------------------------------- */
/* The run                                                                                      */

void duet__sim_touched(struct sim *sim)
{
    struct cluster *cluster = sim->cluster;
    sim->touched = true;
    sim->next = NULL;
    *cluster->touched_end = sim;
    cluster->touched_end = &sim->next;
}

/* Asks the workers that were woken: on the node of the event first, then on others. */
static void serve_nodes(struct cluster *cluster)
{
    struct sim *at = cluster->at;
    bool any = duet__node_serve(at) && cluster->touched;
    for (struct sim *sim = cluster->touched; sim; sim = sim->next) {
        cluster->at = sim;
        any |= duet__node_serve(sim);
    }
    cluster->at = at;
    if (any && cluster->touched)
        serve_nodes(cluster);
}

static void look_ahead_of(struct sim *sim)
{
    sim->cluster->at = sim; /* a worker that this wakes is asked later, at an event */
    duet__sim_submit_ahead(sim);
    duet__first_date(sim);
}

/*
 * Enters the submissions that are made before the next event, on all nodes that were changed, and
 * adds the events that are known by then.
 */
static void look_ahead(struct cluster *cluster)
{
    struct sim *at = cluster->at;
    look_ahead_of(at);
    while (cluster->touched) {
        struct sim *sim = cluster->touched;
        cluster->touched = sim->next;
        sim->touched = false;
        if (sim != at)
            look_ahead_of(sim);
    }
    cluster->touched_end = &cluster->touched;
}

static bool wait_is_over(struct cluster *cluster)
{
    bool look = cluster->notified;
    cluster->notified = false;
    if (!look || !cluster->reached)
        return false;
    if (!cluster->reached(cluster->reached_arg)) {
        duet__first_again(cluster->waiter);
        return false;
    }
    cluster->notified = duet__first_busy(cluster->waiter);
    return !cluster->notified;
}

/* Handles all events dated up to now. Returns true if the wait is over. */
static bool alarm_rings(void *owner, double date)
{
    struct cluster *cluster = owner;
    bool stop = false;
    while (!stop && duet__events_first_s(&cluster->events) <= date) {
        struct event event = duet__events_take(&cluster->events);
        struct sim *sim = node_of(cluster, &event);
        sim->pending--;
        cluster->at = sim;
        if (event_kind(&event) != EVENT_KERNEL_END || !duet__cores_moved(sim, &event)) {
            if (cluster->now < event.date)
                cluster->now = event.date;
            duet__node_event(sim, &event);
            serve_nodes(cluster);
            stop = wait_is_over(cluster);
        }
        if (!stop)
            look_ahead(cluster);
    }
    return stop;
}

/*
 * Turns the arrival of a flow into an event of this date, so that equal dates keep their canonical
 * order.
 */
static void flow_arrived(void *owner, void *tag)
{
    struct cluster *cluster = owner;
    struct flow *flow = tag;
    cluster->flows--;
    flow->sim->pending--;
    duet__sim_event(flow->sim, duet__sim_clock(cluster), flow->end, flow->worker, tag);
}

int duet__sim_wait(void *engine, bool (*reached)(void *arg), void *arg)
{
    struct sim *sim = engine;
    struct cluster *cluster = sim->cluster;
    if (reached(arg))
        return DUET_OK;
    cluster->waiter = sim;
    cluster->reached = reached;
    cluster->reached_arg = arg;
    cluster->notified = sim->first_dated = false;
    cluster->at = sim;
    serve_nodes(cluster);
    look_ahead(cluster);
    cluster->engine->run(cluster->network);
    cluster->at = NULL;
    cluster->reached = NULL;
    return reached(arg) ? DUET_OK : DUET_ESTUCK;
}

/* ------------------------------------------------------------------------------------------- */
/* Making and freeing                                                                           */

/* Frees copies that have left their queues and are still to be noticed. */
static void free_copies(struct cluster *cluster)
{
    while (cluster->events.count) {
        const struct event event = duet__events_take(&cluster->events);
        if (event_kind(&event) == EVENT_COPY_NOTICED)
            free(event.what);
    }
}

static void free_cluster(struct cluster *cluster)
{
    duet__messages_free(cluster);
    free(cluster->events.heap);
    free(cluster->nodes);
    duet_machine_fini(&cluster->machine);
    free(cluster);
}

/*
 * Frees the engine of one node. The first one closes the network for all, the last one frees their
 * common data.
 */
void duet__sim_destroy(void *engine)
{
    struct sim *sim = engine;
    struct cluster *cluster = sim->cluster;
    if (cluster->living == cluster->count) {
        cluster->engine->close(cluster->network);
        free_copies(cluster);
    }
    duet__node_free(sim);
    if (--cluster->living == 0)
        free_cluster(cluster);
}

static int open_network(struct cluster *cluster, const struct sim_options *options,
                        struct duet_message *message)
{
    static const struct network_calls calls = {.next = next_event_s,
                                               .alarm = alarm_rings,
                                               .arrived = flow_arrived};
    const struct duet__network *network = options->network;
    const bool file = network && network->kind == DUET__NETWORK_FILE;
    cluster->engine =
        options->simgrid || file ? duet__network_simgrid(message) : &duet__network_fluid;
    return cluster->engine
               ? cluster->engine->open(&cluster->network, &cluster->machine, cluster->count,
                                       network, &calls, cluster, message)
               : DUET_EABSENT;
}

static int fill_cluster(struct cluster *cluster, const struct duet_machine *machine,
                        const struct sim_options *options)
{
    cluster->touched_end = &cluster->touched;
    cluster->count = options->nodes ? options->nodes : 1;
    cluster->nodes = calloc(cluster->count, sizeof(struct sim *));
    int error = cluster->nodes ? duet_machine_copy(&cluster->machine, machine) : DUET_ENOMEM;
    for (; !error && cluster->living < cluster->count; cluster->living++)
        error = duet__node_new(&cluster->nodes[cluster->living], cluster, cluster->living, options);
    return error || !options->network ? error : duet__messages_new(cluster, options->network);
}

int duet__sim_new(void **out, const struct duet_machine *machine, const struct sim_options *options,
                  struct duet_message *message)
{
    *out = NULL;
    if (options->nodes > WORKERS_MAX / machine->worker_count)
        return duet_fail(message, DUET_EINVAL, "%u nodes with %u workers each: %d workers at most",
                         options->nodes, machine->worker_count, WORKERS_MAX);
    struct cluster *cluster = calloc(1, sizeof *cluster);
    int error = cluster ? fill_cluster(cluster, machine, options) : DUET_ENOMEM;
    if (!error)
        error = open_network(cluster, options, message);
    if (error) {
        if (error == DUET_ENOMEM)
            duet_fail(message, error, "no memory left for the simulated machine");
        for (unsigned n = 0; cluster && n < cluster->living; n++)
            duet__node_free(cluster->nodes[n]);
        if (cluster)
            free_cluster(cluster);
        return error;
    }
    for (unsigned n = 0; n < cluster->count; n++)
        out[n] = cluster->nodes[n];
    return DUET_OK;
}
