/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the machine of a description under options: GPUs, cores, links and routes. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "platforms/internal.h"

static const unsigned NONE = UINT_MAX;

/* Two links: towards devices (or lower GPUs), and towards the host (or higher ones). */
struct pair {
    unsigned in, out; /* 1 + index of the link; 0: there is none */
};

struct plan {
    struct duet__platform d; /* changed by options; owns only the copied arrays */
    const struct duet__platform_options *options;
    struct duet_machine *machine;
    unsigned gpus, cpus;   /* workers in use */
    struct pair *switches; /* by switch */
    struct pair *hubs;     /* by socket */
    struct pair *limits;   /* by device */
    struct pair *ports;    /* by device */
    struct pair host;
    struct pair peers[DUET_PEERS];
};

/* Returns a copy of an array, with room for `more` elements. */
static void *copy_of(const void *array, unsigned count, unsigned more, size_t size)
{
    void *copy = g_malloc0_n((size_t)count + more + 1, size);
    if (count > 0)
        memcpy(copy, array, count * size);
    return copy;
}

static void plan_init(struct plan *plan, const struct duet__platform *platform,
                      const struct duet__platform_options *options, struct duet_machine *machine)
{
    struct duet__platform *d = &plan->d;
    unsigned gpus = options->gpus < 0 ? platform->gpu_count : (unsigned)options->gpus;
    unsigned more = gpus > platform->gpu_count ? gpus - platform->gpu_count : 0;
    *plan = (struct plan){.d = *platform, .options = options, .machine = machine, .gpus = gpus};
    d->sockets = copy_of(d->sockets, d->socket_count, more, sizeof(*d->sockets));
    d->switches = copy_of(d->switches, d->switch_count, more, sizeof(*d->switches));
    d->gpus = copy_of(d->gpus, d->gpu_count, more, sizeof(*d->gpus));
    d->order = g_new(unsigned, (size_t)d->gpu_count + more + 1);
    for (unsigned i = 0; i < d->gpu_count; i++)
        d->order[i] = platform->order != NULL ? platform->order[i] : i;
}

static void plan_fini(struct plan *plan)
{
    g_free(plan->d.sockets);
    g_free(plan->d.switches);
    g_free(plan->d.gpus);
    g_free(plan->d.order);
    g_free(plan->switches);
    g_free(plan->hubs);
    g_free(plan->limits);
    g_free(plan->ports);
}

/* Adds a switch like switch `model`, with as many GPUs like its first, but at most `most`. */
static void add_switch(struct duet__platform *d, unsigned model, unsigned socket,
                       unsigned described, unsigned most)
{
    const struct duet__platform_link *kind = &d->kinds[d->switches[model].kind];
    struct duet__platform_gpu gpu = {.memory_bytes = 0};
    unsigned count = 0;
    for (unsigned i = 0; i < described; i++)
        if (d->gpus[i].position == model && count++ == 0)
            gpu = d->gpus[i];
    gpu.position = d->switch_count;
    gpu.to_device = (struct duet__platform_figure){.latency_s = kind->to_device.latency_s};
    gpu.to_host = (struct duet__platform_figure){.latency_s = kind->to_host.latency_s};
    for (unsigned i = 0; i < MIN(count, most); i++)
        d->gpus[d->gpu_count++] = gpu;
    d->switches[d->switch_count++] =
        (struct duet__platform_switch){.socket = socket,
                                       .kind = d->switches[model].kind,
                                       .to_device_Bps = kind->to_device.bandwidth_Bps,
                                       .to_host_Bps = kind->to_host.bandwidth_Bps};
}

static bool has_gpus(const struct duet__platform *d, unsigned sw)
{
    for (unsigned i = 0; i < d->gpu_count; i++)
        if (d->gpus[i].position == sw)
            return true;
    return false;
}

/* Adds switches like those of the description, each time on new sockets, until there are `wanted`
 * GPUs. Each switch is used once before any is used again. */
static void add_gpus(struct duet__platform *d, unsigned wanted)
{
    const unsigned gpus = d->gpu_count, switches = d->switch_count, sockets = d->socket_count;
    unsigned *stand_ins = g_new0(unsigned, sockets + 1);
    unsigned listed = gpus;
    for (unsigned model = 0; d->gpu_count < wanted; model = (model + 1) % switches) {
        unsigned socket = d->switches[model].socket;
        for (unsigned i = 0; model == 0 && i < sockets; i++)
            stand_ins[i] = NONE;
        if (!has_gpus(d, model))
            continue;
        if (stand_ins[socket] == NONE) {
            stand_ins[socket] = d->socket_count;
            d->sockets[d->socket_count++] = d->sockets[socket];
        }
        add_switch(d, model, stand_ins[socket], gpus, wanted - d->gpu_count);
    }
    for (unsigned round = 0; listed < wanted; round++)
        for (unsigned i = gpus, rank = 0; i < wanted; i++) {
            rank = d->gpus[i].position == d->gpus[i - 1].position ? rank + 1 : 0;
            if (rank == round)
                d->order[listed++] = i;
        }
    g_free(stand_ins);
}

/* Chooses the GPUs in use and the number of cores that compute. */
static int choose_workers(struct plan *plan, struct duet_message *message)
{
    struct duet__platform *d = &plan->d;
    unsigned cores, described = duet__platform_cores(d);
    if (plan->gpus > d->gpu_count && d->gpu_count == 0)
        return duet_fail(message, DUET_EINVAL, "%s has no GPU to add more of", d->name);
    if (plan->gpus > d->gpu_count)
        add_gpus(d, plan->gpus);
    cores = duet__platform_cores(d);
    if (plan->gpus > cores)
        return duet_fail(message, DUET_EINVAL,
                         "%u GPUs need a core each, %s has %u: use fewer GPUs (--duet-gpus)",
                         plan->gpus, d->name, cores);
    plan->cpus = plan->options->cpus < 0 ? cores - plan->gpus : (unsigned)plan->options->cpus;
    if (plan->cpus > cores - plan->gpus)
        return duet_fail(message, DUET_EINVAL,
                         "%u CPUs and %u GPUs need %u cores (each GPU takes one), %s has %u",
                         plan->cpus, plan->gpus, plan->cpus + plan->gpus, d->name, cores);
    if (plan->cpus + plan->gpus == 0)
        return duet_fail(message, DUET_EINVAL, "no CPU and no GPU: at least one worker is needed");
    if (described > 0) /* added sockets get limits in the same proportion */
        d->cores =
            (unsigned)MIN(((uint64_t)d->cores * cores + described - 1) / described, UINT_MAX);
    return DUET_OK;
}

/* Applies options to limits; limits that are absent stay so. */
static void change_limits(const struct duet__platform_options *options, const char *name,
                          struct duet__platform_limits *limits)
{
    if (limits->to_device_Bps > 0)
        duet__change_bandwidth(options, name, &limits->to_device_Bps);
    if (limits->to_host_Bps > 0)
        duet__change_bandwidth(options, name, &limits->to_host_Bps);
}

/* Applies options to links. A GPU's own limit is removed where options give its kind of link a
 * bandwidth: that of the switch then counts. */
void duet__change_links(struct duet__platform *d, const struct duet__platform_options *options)
{
    for (unsigned i = 0; i < d->gpu_count; i++) {
        struct duet__platform_gpu *gpu = &d->gpus[i];
        const char *kind = d->kinds[d->switches[gpu->position].kind].name;
        duet__change_bandwidth(options, kind, &gpu->to_device.bandwidth_Bps);
        duet__change_bandwidth(options, kind, &gpu->to_host.bandwidth_Bps);
        if (gpu->port_in_Bps > 0)
            duet__change_bandwidth(options, "port", &gpu->port_in_Bps);
        if (gpu->port_out_Bps > 0)
            duet__change_bandwidth(options, "port", &gpu->port_out_Bps);
    }
    for (unsigned i = 0; i < d->switch_count; i++) {
        struct duet__platform_switch *sw = &d->switches[i];
        duet__change_bandwidth(options, d->kinds[sw->kind].name, &sw->to_device_Bps);
        duet__change_bandwidth(options, d->kinds[sw->kind].name, &sw->to_host_Bps);
    }
    for (unsigned i = 0; i < d->socket_count; i++)
        change_limits(options, "hub", &d->sockets[i].hub);
    change_limits(options, "host", &d->host);
    for (unsigned i = 0; i < DUET_PEERS; i++) {
        duet__change_bandwidth(options, d->peers[i].name, &d->peers[i].up.bandwidth_Bps);
        duet__change_bandwidth(options, d->peers[i].name, &d->peers[i].down.bandwidth_Bps);
    }
}

static unsigned add_link(struct plan *plan, double bandwidth, bool per_copy, const char *format,
                         ...) DUET_PRINTF(4, 5);

static unsigned add_link(struct plan *plan, double bandwidth, bool per_copy, const char *format,
                         ...)
{
    struct duet_link *link = &plan->machine->links[plan->machine->link_count];
    va_list args;
    link->bandwidth_Bps = bandwidth;
    link->per_copy = per_copy;
    va_start(args, format);
    (void)g_vsnprintf(link->name, sizeof(link->name), format, args);
    va_end(args);
    return ++plan->machine->link_count;
}

/* Makes the links of switches with GPUs in use, and the limits of GPUs slower than their switch. */
static void make_host_links(struct plan *plan)
{
    const struct duet__platform *d = &plan->d;
    plan->switches = g_new0(struct pair, d->switch_count + 1);
    plan->limits = g_new0(struct pair, d->gpu_count + 1);
    for (unsigned i = 0; i < plan->gpus; i++) {
        unsigned device = d->order[i], position = d->gpus[device].position;
        const struct duet__platform_gpu *gpu = &d->gpus[device];
        const struct duet__platform_switch *sw = &d->switches[position];
        struct pair *links = &plan->switches[position], *limits = &plan->limits[device];
        const char *kind = d->kinds[sw->kind].name;
        if (links->in == 0) {
            links->in = add_link(plan, sw->to_device_Bps, false, "%s%u-to-device", kind, position);
            links->out = add_link(plan, sw->to_host_Bps, false, "%s%u-to-host", kind, position);
        }
        if (gpu->to_device.bandwidth_Bps > 0 && gpu->to_device.bandwidth_Bps < sw->to_device_Bps)
            limits->in = add_link(plan, gpu->to_device.bandwidth_Bps, true, "%s-gpu%u-to-device",
                                  kind, device);
        if (gpu->to_host.bandwidth_Bps > 0 && gpu->to_host.bandwidth_Bps < sw->to_host_Bps)
            limits->out =
                add_link(plan, gpu->to_host.bandwidth_Bps, true, "%s-gpu%u-to-host", kind, device);
    }
}

/* Makes the links of a limit. A direction gets none in which the switches in use of a socket (NONE:
 * of all) cannot reach the limit. */
static struct pair limit_links(struct plan *plan, const struct duet__platform_limits *limits,
                               unsigned socket, const char *name)
{
    const struct duet__platform *d = &plan->d;
    struct pair links = {0, 0};
    double in = 0, out = 0;
    for (unsigned i = 0; i < d->switch_count; i++)
        if (plan->switches[i].in != 0 && (socket == NONE || d->switches[i].socket == socket)) {
            in += d->switches[i].to_device_Bps;
            out += d->switches[i].to_host_Bps;
        }
    if (limits->to_device_Bps > 0 && limits->to_device_Bps < in)
        links.in = add_link(plan, limits->to_device_Bps, false, "%s-to-device", name);
    if (limits->to_host_Bps > 0 && limits->to_host_Bps < out)
        links.out = add_link(plan, limits->to_host_Bps, false, "%s-to-host", name);
    return links;
}

/* Makes the limits that all devices of a socket share, and those that all of the machine share. */
static void make_limits(struct plan *plan)
{
    const struct duet__platform *d = &plan->d;
    plan->hubs = g_new0(struct pair, d->socket_count + 1);
    for (unsigned i = 0; i < d->socket_count; i++) {
        g_autofree char *name = g_strdup_printf("hub%u", i);
        plan->hubs[i] = limit_links(plan, &d->sockets[i].hub, i, name);
    }
    plan->host = limit_links(plan, &d->host, NONE, "host");
}

enum duet__reach duet__reach_between(const struct duet__platform *platform, unsigned a, unsigned b)
{
    unsigned switch_a = platform->gpus[a].position, switch_b = platform->gpus[b].position;
    if (switch_a == switch_b)
        return DUET_REACH_SWITCH;
    return platform->switches[switch_a].socket == platform->switches[switch_b].socket
               ? DUET_REACH_SOCKET
               : DUET_REACH_REMOTE;
}

/* Returns the kind of direct copies between two GPUs. */
static unsigned peer_between(const struct duet__platform *d, unsigned a, unsigned b)
{
    enum duet__reach reach = duet__reach_between(d, a, b);
    unsigned arch = d->gpus[a].arch;
    for (unsigned i = DUET_REACHES; i < DUET_PEERS && d->peers[i].name[0] != '\0'; i++)
        if (d->peers[i].reach == reach && d->peers[i].arch == arch && d->gpus[b].arch == arch)
            return i;
    return reach;
}

/* Makes the port of a GPU, which its direct copies over links of their own share. */
static void make_port(struct plan *plan, unsigned device)
{
    const struct duet__platform_gpu *gpu = &plan->d.gpus[device];
    struct pair *port = &plan->ports[device];
    if (port->in == 0 && gpu->port_in_Bps > 0)
        port->in = add_link(plan, gpu->port_in_Bps, false, "port%u-in", device);
    if (port->out == 0 && gpu->port_out_Bps > 0)
        port->out = add_link(plan, gpu->port_out_Bps, false, "port%u-out", device);
}

/* Makes the limits of the kinds of direct copies that GPUs in use have between them. */
static void make_peer_links(struct plan *plan)
{
    const struct duet__platform *d = &plan->d;
    bool used[DUET_PEERS] = {false};
    plan->ports = g_new0(struct pair, d->gpu_count + 1);
    for (unsigned i = 0; i < plan->gpus; i++)
        for (unsigned j = 0; j < i; j++)
            used[peer_between(d, d->order[i], d->order[j])] = true;
    for (unsigned kind = 0; kind < DUET_PEERS; kind++) {
        const struct duet__platform_peer *peer = &d->peers[kind];
        struct pair *links = &plan->peers[kind];
        if (!used[kind] || peer->name[0] == '\0' || plan->options->no_peer)
            continue;
        links->in = add_link(plan, peer->down.bandwidth_Bps, true, "%s-down", peer->name);
        links->out = add_link(plan, peer->up.bandwidth_Bps, true, "%s-up", peer->name);
        for (unsigned i = 0; peer->own_link && i < plan->gpus; i++)
            make_port(plan, d->order[i]);
    }
}

/* Appends a link to a route and narrows the route's bandwidth; no link (0) changes nothing. */
static void cross_pair(const struct duet_machine *machine, struct duet_route *route, unsigned link)
{
    double bandwidth;
    if (link == 0)
        return;
    bandwidth = machine->links[link - 1].bandwidth_Bps;
    route->direct = true;
    route->bandwidth_Bps = route->count > 0 ? fmin(route->bandwidth_Bps, bandwidth) : bandwidth;
    route->links[route->count++] = (uint16_t)(link - 1);
}

static const struct pair *hub_of(const struct plan *plan, unsigned device)
{
    return &plan->hubs[plan->d.switches[plan->d.gpus[device].position].socket];
}

static void make_host_routes(const struct plan *plan, unsigned node)
{
    struct duet_machine *m = plan->machine;
    unsigned device = plan->d.order[node - 1];
    const struct duet__platform_gpu *gpu = &plan->d.gpus[device];
    const struct pair *hub = hub_of(plan, device);
    struct duet_route *in = &m->routes[node], *out = &m->routes[(size_t)node * m->node_count];
    in->latency_s = gpu->to_device.latency_s;
    out->latency_s = gpu->to_host.latency_s;
    cross_pair(m, in, plan->switches[gpu->position].in);
    cross_pair(m, in, plan->limits[device].in);
    cross_pair(m, in, hub->in);
    cross_pair(m, in, plan->host.in);
    cross_pair(m, out, plan->switches[gpu->position].out);
    cross_pair(m, out, plan->limits[device].out);
    cross_pair(m, out, hub->out);
    cross_pair(m, out, plan->host.out);
}

/* Makes the route of direct copies: over both switches' links to the host, and between sockets both
 * hubs, unless it stays inside one switch or has a link of its own, between two ports. */
static void make_peer_route(const struct plan *plan, unsigned source, unsigned destination)
{
    const struct duet__platform *d = &plan->d;
    struct duet_machine *m = plan->machine;
    unsigned from = d->order[source - 1], to = d->order[destination - 1];
    enum duet__reach reach = duet__reach_between(d, from, to);
    unsigned kind = peer_between(d, from, to);
    unsigned link = from < to ? plan->peers[kind].out : plan->peers[kind].in;
    const struct duet__platform_peer *peer = &d->peers[kind];
    struct duet_route *route = &m->routes[(size_t)source * m->node_count + destination];
    if (link == 0)
        return;
    route->latency_s = from < to ? peer->up.latency_s : peer->down.latency_s;
    if (reach != DUET_REACH_SWITCH && !peer->own_link) {
        cross_pair(m, route, plan->switches[d->gpus[from].position].out);
        cross_pair(m, route, plan->switches[d->gpus[to].position].in);
    }
    if (reach == DUET_REACH_REMOTE && !peer->own_link) {
        cross_pair(m, route, hub_of(plan, from)->out);
        cross_pair(m, route, hub_of(plan, to)->in);
    }
    if (peer->own_link) {
        cross_pair(m, route, plan->ports[from].out);
        cross_pair(m, route, plan->ports[to].in);
    }
    cross_pair(m, route, link);
}

/* Cores of each socket that compute: each GPU in use takes one, on its own socket if possible. */
static unsigned *computing_cores(const struct plan *plan)
{
    const struct duet__platform *d = &plan->d;
    unsigned *cores = g_new0(unsigned, d->socket_count + 1);
    for (unsigned i = 0; i < d->socket_count; i++)
        cores[i] = d->sockets[i].cores;
    for (unsigned i = 0; i < plan->gpus; i++) {
        unsigned socket = d->switches[d->gpus[d->order[i]].position].socket;
        if (cores[socket] == 0) /* another socket has one: there are cores for all GPUs */
            for (socket = 0; cores[socket] == 0; socket++)
                ;
        cores[socket]--;
    }
    return cores;
}

/* Makes the CPU workers: dealt over the sockets in turn, then numbered socket by socket. */
static void make_cpus(const struct plan *plan)
{
    const struct duet__platform *d = &plan->d;
    unsigned *cores = computing_cores(plan), *dealt = g_new0(unsigned, d->socket_count + 1);
    struct duet_worker *worker = plan->machine->workers;
    for (unsigned left = plan->cpus; left > 0;)
        for (unsigned i = 0; i < d->socket_count && left > 0; i++)
            if (dealt[i] < cores[i]) {
                dealt[i]++;
                left--;
            }
    for (unsigned i = 0; i < d->socket_count; i++)
        for (; dealt[i] > 0; dealt[i]--, worker++) {
            *worker = (struct duet_worker){.arch = d->sockets[i].arch,
                                           .node = DUET_HOST,
                                           .socket = i,
                                           .window = 1};
            (void)g_snprintf(worker->name, sizeof(worker->name), "cpu%u",
                             (unsigned)(worker - plan->machine->workers));
        }
    g_free(cores);
    g_free(dealt);
}

static void make_gpus(const struct plan *plan)
{
    const struct duet__platform *d = &plan->d;
    for (unsigned i = 0; i < plan->gpus; i++) {
        unsigned device = d->order[i];
        const struct duet__platform_gpu *gpu = &d->gpus[device];
        struct duet_node *node = &plan->machine->nodes[i + 1];
        struct duet_worker *worker = &plan->machine->workers[plan->cpus + i];
        *worker = (struct duet_worker){.arch = gpu->arch,
                                       .node = i + 1,
                                       .socket = d->switches[gpu->position].socket};
        (void)g_snprintf(node->name, sizeof(node->name), "gpu%u", device);
        (void)g_snprintf(worker->name, sizeof(worker->name), "gpu%u", device);
        node->capacity_bytes = duet__gpu_memory(plan->options, gpu->memory_bytes);
        duet__set_windows(plan->options, worker);
    }
}

static int make_machine(struct plan *plan, struct duet_message *message)
{
    enum { LINKS_EACH = 6 }; /* of a GPU, at most; two of each reach and hub, and of the host */
    const struct duet__platform *d = &plan->d;
    struct duet_machine *machine = plan->machine;
    int error = duet_machine_init(machine, d->arch_count, plan->gpus + 1, plan->cpus + plan->gpus,
                                  LINKS_EACH * plan->gpus + 2 * (DUET_PEERS + d->socket_count + 1));
    if (error)
        return duet_fail(message, error, "%s with %u GPUs: %s", d->name, plan->gpus,
                         duet_strerror(error));
    machine->link_count = 0; /* the number of links so far */
    memcpy(machine->name, d->name, sizeof(machine->name));
    memcpy(machine->archs, d->archs, d->arch_count * sizeof(*d->archs));
    machine->costs = d->costs;
    machine->sharing = d->sharing;
    machine->cores = d->cores;
    machine->first_waits = d->first_waits;
    g_strlcpy(machine->nodes[DUET_HOST].name, "host", DUET_NAME_MAX);
    make_host_links(plan);
    make_limits(plan);
    make_peer_links(plan);
    make_cpus(plan);
    make_gpus(plan);
    for (unsigned i = 1; i <= plan->gpus; i++) {
        make_host_routes(plan, i);
        for (unsigned j = 1; j <= plan->gpus; j++)
            if (i != j)
                make_peer_route(plan, i, j);
    }
    error = duet_machine_check(machine, message);
    if (error)
        duet_machine_fini(machine);
    return error;
}

int duet__derive(const struct duet__platform *platform,
                 const struct duet__platform_options *options, struct duet_machine *machine,
                 struct duet_message *message)
{
    struct plan plan;
    int error;
    plan_init(&plan, platform, options, machine);
    error = choose_workers(&plan, message);
    if (!error) {
        duet__change_links(&plan.d, options);
        error = make_machine(&plan, message);
    }
    plan_fini(&plan);
    return error;
}
