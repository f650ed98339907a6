/* SPDX-License-Identifier: Apache-2.0 */
/* The machine that a description gives under options: which GPUs, cores, links and routes. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "platforms/internal.h"

static const unsigned NONE = UINT_MAX;

/* A switch: the description's, or one that options add. */
struct place {
    struct duet_platform_switch figures;
    unsigned to_device_link, to_host_link; /* indices of links, NONE if no GPU here is in use */
};

/* The machine in the making. Arrays are GArrays so that hypothetical parts can be appended. */
struct plan {
    const struct duet_platform *platform;
    const struct duet_platform_options *options;
    GArray *sockets;                 /* struct duet_platform_socket */
    GArray *places;                  /* struct place */
    GArray *gpus;                    /* struct duet_platform_gpu, by device number */
    GArray *order;                   /* unsigned: device numbers in the order of use */
    GArray *links;                   /* struct duet_link */
    unsigned gpu_count, cpu_count;   /* in use */
    unsigned *free_cores;            /* by socket: cores that feed no GPU */
    unsigned *limits;                /* by device: 2 links (to device, to host), or NONE */
    unsigned peers[DUET_REACHES][2]; /* links down and up, or NONE */
};

static struct place *place_at(const struct plan *plan, unsigned index)
{
    return &g_array_index(plan->places, struct place, index);
}

static struct duet_platform_gpu *gpu_at(const struct plan *plan, unsigned device)
{
    return &g_array_index(plan->gpus, struct duet_platform_gpu, device);
}

static unsigned order_at(const struct plan *plan, unsigned position)
{
    return g_array_index(plan->order, unsigned, position);
}

static struct duet_platform_socket *socket_at(const struct plan *plan, unsigned index)
{
    return &g_array_index(plan->sockets, struct duet_platform_socket, index);
}

static void plan_fini(struct plan *plan)
{
    g_array_unref(plan->sockets);
    g_array_unref(plan->places);
    g_array_unref(plan->gpus);
    g_array_unref(plan->order);
    g_array_unref(plan->links);
    g_free(plan->free_cores);
    g_free(plan->limits);
}

/* Appends a switch with these figures, as options change them. */
static void add_place(struct plan *plan, const struct duet_platform_switch *figures)
{
    const char *kind = plan->platform->kinds[figures->kind].name;
    struct place place = {.figures = *figures, .to_device_link = NONE, .to_host_link = NONE};

    place.figures.to_device_Bps =
        duet__change_bandwidth(plan->options, kind, figures->to_device_Bps);
    place.figures.to_host_Bps = duet__change_bandwidth(plan->options, kind, figures->to_host_Bps);
    g_array_append_val(plan->places, place);
}

/* Appends a GPU. A bandwidth that options give its link is its own, too: then it has no limits. */
static void add_gpu(struct plan *plan, const struct duet_platform_gpu *given)
{
    const struct duet_platform *d = plan->platform;
    const char *kind = d->kinds[place_at(plan, given->position)->figures.kind].name;
    bool replaced = duet__is_replaced(plan->options, kind);
    struct duet_platform_gpu gpu = *given;

    gpu.to_device.bandwidth_Bps =
        replaced ? 0 : duet__change_bandwidth(plan->options, kind, gpu.to_device.bandwidth_Bps);
    gpu.to_host.bandwidth_Bps =
        replaced ? 0 : duet__change_bandwidth(plan->options, kind, gpu.to_host.bandwidth_Bps);
    g_array_append_val(plan->gpus, gpu);
}

static void plan_init(struct plan *plan, const struct duet_platform *platform,
                      const struct duet_platform_options *options)
{
    memset(plan, 0, sizeof(*plan));
    plan->platform = platform;
    plan->options = options;
    plan->sockets = g_array_new(FALSE, FALSE, sizeof(struct duet_platform_socket));
    plan->places = g_array_new(FALSE, FALSE, sizeof(struct place));
    plan->gpus = g_array_new(FALSE, FALSE, sizeof(struct duet_platform_gpu));
    plan->order = g_array_new(FALSE, FALSE, sizeof(unsigned));
    plan->links = g_array_new(FALSE, TRUE, sizeof(struct duet_link));
    g_array_append_vals(plan->sockets, platform->sockets, platform->socket_count);
    for (unsigned i = 0; i < platform->switch_count; i++)
        add_place(plan, &platform->switches[i]);
    for (unsigned i = 0; i < platform->gpu_count; i++) {
        unsigned device = platform->order != NULL ? platform->order[i] : i;

        add_gpu(plan, &platform->gpus[i]);
        g_array_append_val(plan->order, device);
    }
}

/* One more switch like the description's switch `model`, with at most `most` GPUs like its first.
 */
static void add_switch(struct plan *plan, unsigned model, unsigned socket, unsigned most)
{
    const struct duet_platform *d = plan->platform;
    const struct duet_platform_link *kind = &d->kinds[d->switches[model].kind];
    const struct duet_platform_switch figures = {.socket = socket,
                                                 .kind = d->switches[model].kind,
                                                 .to_device_Bps = kind->to_device.bandwidth_Bps,
                                                 .to_host_Bps = kind->to_host.bandwidth_Bps};
    struct duet_platform_gpu gpu = {.memory_bytes = 0};
    unsigned count = 0;

    for (unsigned i = 0; i < d->gpu_count; i++)
        if (d->gpus[i].position == model && count++ == 0)
            gpu = d->gpus[i];
    gpu.position = plan->places->len;
    gpu.to_device = (struct duet_platform_figure){.latency_s = kind->to_device.latency_s};
    gpu.to_host = (struct duet_platform_figure){.latency_s = kind->to_host.latency_s};
    add_place(plan, &figures);
    for (unsigned i = 0; i < MIN(count, most); i++)
        add_gpu(plan, &gpu);
}

/* Appends the added GPUs (numbers from `first`) to the order of use: one per switch first. */
static void spread(struct plan *plan, unsigned first)
{
    unsigned *depth = g_new0(unsigned, plan->places->len);
    unsigned *rank = g_new(unsigned, plan->gpus->len);
    unsigned left = plan->gpus->len - first;

    for (unsigned i = first; i < plan->gpus->len; i++)
        rank[i] = depth[gpu_at(plan, i)->position]++;
    for (unsigned round = 0; left > 0; round++) {
        for (unsigned i = first; i < plan->gpus->len; i++) {
            if (rank[i] == round) {
                g_array_append_val(plan->order, i);
                left--;
            }
        }
    }
    g_free(rank);
    g_free(depth);
}

/*
 * Adds what it takes to have `wanted` GPUs: the description's switches over again, each time on
 * new sockets that stand in for its own.
 */
static void extend(struct plan *plan, unsigned wanted)
{
    const struct duet_platform *d = plan->platform;
    unsigned *stand_ins = g_new(unsigned, d->socket_count);

    for (unsigned model = 0; plan->gpus->len < wanted; model = (model + 1) % d->switch_count) {
        const struct duet_platform_switch *sw = &d->switches[model];

        if (model == 0)
            for (unsigned i = 0; i < d->socket_count; i++)
                stand_ins[i] = NONE;
        if (stand_ins[sw->socket] == NONE) {
            stand_ins[sw->socket] = plan->sockets->len;
            g_array_append_val(plan->sockets, d->sockets[sw->socket]);
        }
        add_switch(plan, model, stand_ins[sw->socket], wanted - plan->gpus->len);
    }
    g_free(stand_ins);
    spread(plan, d->gpu_count);
}

/* Decides which GPUs are used, which cores feed them and how many cores compute. */
static int choose_workers(struct plan *plan, struct duet_message *message)
{
    const struct duet_platform_options *o = plan->options;
    const char *name = plan->platform->name;
    unsigned cores = 0;

    plan->gpu_count = o->gpus < 0 ? plan->platform->gpu_count : (unsigned)o->gpus;
    if (plan->gpu_count > plan->platform->gpu_count && plan->platform->gpu_count == 0)
        return duet_fail(message, DUET_EINVAL, "%s has no GPU to add more of", name);
    if (plan->gpu_count > plan->platform->gpu_count)
        extend(plan, plan->gpu_count);
    for (unsigned i = 0; i < plan->sockets->len; i++)
        cores += socket_at(plan, i)->cores;
    if (plan->gpu_count > cores)
        return duet_fail(message, DUET_EINVAL,
                         "%u GPUs need a core each, %s has %u: use fewer GPUs (--gpus)",
                         plan->gpu_count, name, cores);
    plan->cpu_count = o->cpus < 0 ? cores - plan->gpu_count : (unsigned)o->cpus;
    if (plan->cpu_count > cores - plan->gpu_count)
        return duet_fail(message, DUET_EINVAL,
                         "%u CPUs and %u GPUs need %u cores (each GPU takes one), %s has %u",
                         plan->cpu_count, plan->gpu_count, plan->cpu_count + plan->gpu_count, name,
                         cores);
    if (plan->cpu_count + plan->gpu_count == 0)
        return duet_fail(message, DUET_EINVAL, "no CPU and no GPU: at least one worker is needed");
    return DUET_OK;
}

/* Takes a core for each GPU in use, on its own socket while there is one. */
static void feed(struct plan *plan)
{
    plan->free_cores = g_new(unsigned, plan->sockets->len);
    for (unsigned i = 0; i < plan->sockets->len; i++)
        plan->free_cores[i] = socket_at(plan, i)->cores;
    for (unsigned i = 0; i < plan->gpu_count; i++) {
        unsigned socket = place_at(plan, gpu_at(plan, order_at(plan, i))->position)->figures.socket;

        if (plan->free_cores[socket] == 0) /* another one has: there are cores for all GPUs */
            for (socket = 0; socket + 1 < plan->sockets->len; socket++)
                if (plan->free_cores[socket] > 0)
                    break;
        plan->free_cores[socket]--;
    }
}

static unsigned add_link(struct plan *plan, double bandwidth, bool per_copy, const char *name)
{
    struct duet_link link = {.bandwidth_Bps = bandwidth, .per_copy = per_copy};

    g_strlcpy(link.name, name, sizeof(link.name));
    g_array_append_val(plan->links, link);
    return plan->links->len - 1;
}

/* The links of switch `index`, shared by its GPUs; made when the first of them is met. */
static void make_switch_links(struct plan *plan, unsigned index)
{
    struct place *place = place_at(plan, index);
    const char *kind = plan->platform->kinds[place->figures.kind].name;
    char name[DUET_NAME_MAX];

    if (place->to_device_link != NONE)
        return;
    (void)g_snprintf(name, sizeof(name), "%s%u-to-device", kind, index);
    place->to_device_link = add_link(plan, place->figures.to_device_Bps, false, name);
    (void)g_snprintf(name, sizeof(name), "%s%u-to-host", kind, index);
    place->to_host_link = add_link(plan, place->figures.to_host_Bps, false, name);
}

/* The limits of a GPU that is slower than its switch. */
static void make_limits(struct plan *plan, unsigned device)
{
    const struct duet_platform_gpu *gpu = gpu_at(plan, device);
    const struct place *place = place_at(plan, gpu->position);
    const char *kind = plan->platform->kinds[place->figures.kind].name;
    unsigned *limit = &plan->limits[2 * (size_t)device];
    char name[DUET_NAME_MAX];

    if (gpu->to_device.bandwidth_Bps > 0 &&
        gpu->to_device.bandwidth_Bps < place->figures.to_device_Bps) {
        (void)g_snprintf(name, sizeof(name), "%s-gpu%u-to-device", kind, device);
        limit[0] = add_link(plan, gpu->to_device.bandwidth_Bps, true, name);
    }
    if (gpu->to_host.bandwidth_Bps > 0 && gpu->to_host.bandwidth_Bps < place->figures.to_host_Bps) {
        (void)g_snprintf(name, sizeof(name), "%s-gpu%u-to-host", kind, device);
        limit[1] = add_link(plan, gpu->to_host.bandwidth_Bps, true, name);
    }
}

static void make_host_links(struct plan *plan)
{
    plan->limits = g_new(unsigned, 2 * (size_t)plan->gpus->len);
    for (unsigned i = 0; i < plan->gpu_count; i++) {
        unsigned device = order_at(plan, i);

        make_switch_links(plan, gpu_at(plan, device)->position);
        plan->limits[2 * (size_t)device] = plan->limits[2 * (size_t)device + 1] = NONE;
        make_limits(plan, device);
    }
}

static enum duet_reach reach_between(const struct plan *plan, unsigned a, unsigned b)
{
    unsigned place_a = gpu_at(plan, a)->position;
    unsigned place_b = gpu_at(plan, b)->position;

    if (place_a == place_b)
        return DUET_REACH_SWITCH;
    if (place_at(plan, place_a)->figures.socket == place_at(plan, place_b)->figures.socket)
        return DUET_REACH_SOCKET;
    return DUET_REACH_REMOTE;
}

static unsigned add_peer_link(struct plan *plan, const struct duet_platform_peer *peer,
                              const char *way, double bandwidth)
{
    char name[DUET_NAME_MAX];

    (void)g_snprintf(name, sizeof(name), "%s-%s", peer->name, way);
    return add_link(plan, duet__change_bandwidth(plan->options, peer->name, bandwidth), true, name);
}

/* The limits of direct copies, for the reaches that GPUs in use have between them. */
static void make_peer_links(struct plan *plan)
{
    bool used[DUET_REACHES] = {false};

    for (unsigned i = 0; i < plan->gpu_count; i++)
        for (unsigned j = 0; j < i; j++)
            used[reach_between(plan, order_at(plan, i), order_at(plan, j))] = true;
    for (unsigned reach = 0; reach < DUET_REACHES; reach++) {
        const struct duet_platform_peer *peer = &plan->platform->peers[reach];

        plan->peers[reach][0] = plan->peers[reach][1] = NONE;
        if (!used[reach] || peer->name[0] == '\0' || plan->options->no_peer)
            continue;
        plan->peers[reach][0] = add_peer_link(plan, peer, "down", peer->down.bandwidth_Bps);
        plan->peers[reach][1] = add_peer_link(plan, peer, "up", peer->up.bandwidth_Bps);
    }
}

/* Appends a link (NONE: nothing) to a route and narrows its bandwidth. */
static void cross(const struct plan *plan, struct duet_route *route, unsigned link)
{
    double bandwidth;

    if (link == NONE)
        return;
    bandwidth = g_array_index(plan->links, struct duet_link, link).bandwidth_Bps;
    route->bandwidth_Bps = route->count > 0 ? fmin(route->bandwidth_Bps, bandwidth) : bandwidth;
    route->links[route->count++] = (uint16_t)link;
}

static void make_host_routes(const struct plan *plan, struct duet_machine *machine, unsigned node)
{
    unsigned device = order_at(plan, node - 1);
    const struct duet_platform_gpu *gpu = gpu_at(plan, device);
    const struct place *place = place_at(plan, gpu->position);
    struct duet_route *in = &machine->routes[node];
    struct duet_route *out = &machine->routes[(size_t)node * machine->node_count];

    in->direct = out->direct = true;
    in->latency_s = gpu->to_device.latency_s;
    out->latency_s = gpu->to_host.latency_s;
    cross(plan, in, place->to_device_link);
    cross(plan, in, plan->limits[2 * (size_t)device]);
    cross(plan, out, place->to_host_link);
    cross(plan, out, plan->limits[2 * (size_t)device + 1]);
}

/*
 * A direct copy crosses both switches' links to the host, unless it stays inside one switch or has
 * a link of its own.
 */
static void make_peer_route(const struct plan *plan, struct duet_machine *machine, unsigned source,
                            unsigned destination)
{
    unsigned from = order_at(plan, source - 1);
    unsigned to = order_at(plan, destination - 1);
    enum duet_reach reach = reach_between(plan, from, to);
    const struct duet_platform_peer *peer = &plan->platform->peers[reach];
    unsigned link = plan->peers[reach][from < to];
    struct duet_route *route = &machine->routes[(size_t)source * machine->node_count + destination];

    if (link == NONE)
        return;
    route->direct = true;
    route->latency_s = from < to ? peer->up.latency_s : peer->down.latency_s;
    if (reach != DUET_REACH_SWITCH && !peer->own_link) {
        cross(plan, route, place_at(plan, gpu_at(plan, from)->position)->to_host_link);
        cross(plan, route, place_at(plan, gpu_at(plan, to)->position)->to_device_link);
    }
    cross(plan, route, link);
}

/* CPU workers: dealt over the sockets in turn, then numbered socket by socket. */
static void make_cpus(const struct plan *plan, struct duet_machine *machine)
{
    unsigned *dealt = g_new0(unsigned, plan->sockets->len);
    unsigned next = 0;

    for (unsigned left = plan->cpu_count; left > 0;) {
        for (unsigned i = 0; i < plan->sockets->len && left > 0; i++) {
            if (dealt[i] < plan->free_cores[i]) {
                dealt[i]++;
                left--;
            }
        }
    }
    for (unsigned i = 0; i < plan->sockets->len; i++) {
        for (unsigned j = 0; j < dealt[i]; j++, next++) {
            struct duet_worker *w = &machine->workers[next];

            (void)snprintf(w->name, sizeof(w->name), "cpu%u", next);
            w->arch = socket_at(plan, i)->arch;
            w->node = DUET_HOST;
            w->socket = i;
            w->window = 1;
        }
    }
    g_free(dealt);
}

static void make_gpus(const struct plan *plan, struct duet_machine *machine)
{
    const struct duet_platform_options *o = plan->options;

    for (unsigned i = 0; i < plan->gpu_count; i++) {
        unsigned device = order_at(plan, i);
        const struct duet_platform_gpu *gpu = gpu_at(plan, device);
        struct duet_node *node = &machine->nodes[i + 1];
        struct duet_worker *w = &machine->workers[plan->cpu_count + i];

        (void)snprintf(node->name, sizeof(node->name), "gpu%u", device);
        (void)snprintf(w->name, sizeof(w->name), "gpu%u", device);
        node->capacity_bytes = duet__gpu_memory(o, gpu->memory_bytes);
        w->arch = gpu->arch;
        w->node = i + 1;
        w->socket = place_at(plan, gpu->position)->figures.socket;
        duet__set_windows(o, w);
    }
}

/* The cores there are; sockets that options add have theirs in the same proportion. */
static unsigned count_cores(const struct plan *plan)
{
    const struct duet_platform *d = plan->platform;
    uint64_t described = 0, all = 0;

    for (unsigned i = 0; i < plan->sockets->len; i++) {
        all += socket_at(plan, i)->cores;
        if (i < d->socket_count)
            described += socket_at(plan, i)->cores;
    }
    if (described == 0 || described == all)
        return d->cores;
    return (unsigned)MIN((d->cores * all + described - 1) / described, UINT_MAX);
}

static int make_machine(const struct plan *plan, struct duet_machine *machine,
                        struct duet_message *message)
{
    const struct duet_platform *d = plan->platform;
    int error = duet_machine_init(machine, d->arch_count, plan->gpu_count + 1,
                                  plan->cpu_count + plan->gpu_count, plan->links->len);

    if (error != DUET_OK)
        return duet_fail(message, error, "%s with %u GPUs: %s", plan->platform->name,
                         plan->gpu_count, duet_strerror(error));
    memcpy(machine->name, plan->platform->name, sizeof(machine->name));
    memcpy(machine->archs, d->archs, d->arch_count * sizeof(*d->archs));
    if (plan->links->len > 0)
        memcpy(machine->links, plan->links->data, plan->links->len * sizeof(*machine->links));
    machine->costs = d->costs;
    machine->sharing = d->sharing;
    machine->cores = count_cores(plan);
    machine->first_waits = d->first_waits;
    (void)snprintf(machine->nodes[DUET_HOST].name, DUET_NAME_MAX, "host");
    make_cpus(plan, machine);
    make_gpus(plan, machine);
    for (unsigned i = 1; i <= plan->gpu_count; i++) {
        make_host_routes(plan, machine, i);
        for (unsigned j = 1; j <= plan->gpu_count; j++)
            if (i != j)
                make_peer_route(plan, machine, i, j);
    }
    error = duet_machine_check(machine, message);
    if (error != DUET_OK)
        duet_machine_fini(machine);
    return error;
}

int duet__derive(const struct duet_platform *platform, const struct duet_platform_options *options,
                 struct duet_machine *machine, struct duet_message *message)
{
    struct plan plan;
    int error;

    plan_init(&plan, platform, options);
    error = choose_workers(&plan, message);
    if (error == DUET_OK) {
        feed(&plan);
        make_host_links(&plan);
        make_peer_links(&plan);
        error = make_machine(&plan, machine, message);
    }
    plan_fini(&plan);
    return error;
}
