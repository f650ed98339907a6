/* SPDX-License-Identifier: Apache-2.0 */
/* The machine that a description gives under options: which GPUs, cores, links and routes. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "platforms/description.h"

static const unsigned NONE = UINT_MAX;

/* A switch, with the GPUs and sockets that options add beyond the description. */
struct place {
    unsigned socket;
    unsigned kind;
    double to_device_Bps, to_host_Bps;
    unsigned to_device_link, to_host_link; /* indices of links, NONE if no GPU here is in use */
};

/* The machine in the making. Arrays are GArrays so that hypothetical parts can be appended. */
struct plan {
    const struct duet_platform *platform;
    const struct duet__description *d;
    const struct duet_platform_options *options;
    GArray *sockets;                  /* struct duet__socket */
    GArray *places;                   /* struct place */
    GArray *gpus;                     /* struct duet__gpu, by device number */
    GArray *order;                    /* unsigned: device numbers in the order of use */
    GArray *links;                    /* struct duet_link */
    unsigned gpu_count, cpu_count;    /* in use */
    unsigned *free_cores;             /* by socket: cores that feed no GPU */
    unsigned *limits;                 /* by device: 2 links (to device, to host), or NONE */
    unsigned peers[DUET__REACHES][2]; /* links down and up, or NONE */
};

static struct place *place_at(const struct plan *plan, unsigned index)
{
    return &g_array_index(plan->places, struct place, index);
}

static struct duet__gpu *gpu_at(const struct plan *plan, unsigned device)
{
    return &g_array_index(plan->gpus, struct duet__gpu, device);
}

static unsigned order_at(const struct plan *plan, unsigned position)
{
    return g_array_index(plan->order, unsigned, position);
}

static struct duet__socket *socket_at(const struct plan *plan, unsigned index)
{
    return &g_array_index(plan->sockets, struct duet__socket, index);
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

static void plan_init(struct plan *plan, const struct duet_platform *platform,
                      const struct duet_platform_options *options)
{
    const struct duet__description *d = &platform->machine;

    memset(plan, 0, sizeof(*plan));
    plan->platform = platform;
    plan->d = d;
    plan->options = options;
    plan->sockets = g_array_new(FALSE, FALSE, sizeof(struct duet__socket));
    plan->places = g_array_new(FALSE, FALSE, sizeof(struct place));
    plan->gpus = g_array_new(FALSE, FALSE, sizeof(struct duet__gpu));
    plan->order = g_array_new(FALSE, FALSE, sizeof(unsigned));
    plan->links = g_array_new(FALSE, TRUE, sizeof(struct duet_link));
    g_array_append_vals(plan->sockets, d->sockets, d->socket_count);
    if (d->gpu_count > 0) {
        g_array_append_vals(plan->gpus, d->gpus, d->gpu_count);
        g_array_append_vals(plan->order, d->order, d->gpu_count);
    }
    for (unsigned i = 0; i < d->switch_count; i++) {
        const struct duet__switch *sw = &d->switches[i];
        struct place place = {.socket = sw->socket,
                              .kind = sw->kind,
                              .to_device_Bps = sw->to_device_Bps,
                              .to_host_Bps = sw->to_host_Bps,
                              .to_device_link = NONE,
                              .to_host_link = NONE};

        g_array_append_val(plan->places, place);
    }
}

/* One more switch like the description's switch `model`, with `count` GPUs like its first one. */
static void add_switch(struct plan *plan, unsigned model, unsigned socket, unsigned count)
{
    const struct duet__switch *sw = &plan->d->switches[model];
    const struct duet__link_kind *kind = &plan->d->kinds[sw->kind];
    struct place place = {.socket = socket,
                          .kind = sw->kind,
                          .to_device_Bps = kind->to_device.bandwidth_Bps,
                          .to_host_Bps = kind->to_host.bandwidth_Bps,
                          .to_device_link = NONE,
                          .to_host_link = NONE};
    struct duet__gpu gpu = plan->d->gpus[sw->gpus[0]];

    gpu.position = plan->places->len;
    gpu.to_device = (struct duet__figure){.latency_s = kind->to_device.latency_s};
    gpu.to_host = (struct duet__figure){.latency_s = kind->to_host.latency_s};
    g_array_append_val(plan->places, place);
    for (unsigned i = 0; i < count; i++)
        g_array_append_val(plan->gpus, gpu);
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
    const struct duet__description *d = plan->d;
    unsigned *stand_ins = g_new(unsigned, d->socket_count);

    for (unsigned model = 0; plan->gpus->len < wanted; model = (model + 1) % d->switch_count) {
        const struct duet__switch *sw = &d->switches[model];

        if (model == 0)
            for (unsigned i = 0; i < d->socket_count; i++)
                stand_ins[i] = NONE;
        if (stand_ins[sw->socket] == NONE) {
            stand_ins[sw->socket] = plan->sockets->len;
            g_array_append_val(plan->sockets, d->sockets[sw->socket]);
        }
        add_switch(plan, model, stand_ins[sw->socket],
                   MIN(sw->gpu_count, wanted - plan->gpus->len));
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

    plan->gpu_count = o->gpus < 0 ? plan->d->gpu_count : (unsigned)o->gpus;
    if (plan->gpu_count > plan->d->gpu_count && plan->d->gpu_count == 0)
        return duet_fail(message, DUET_EINVAL, "%s has no GPU to add more of", name);
    if (plan->gpu_count > plan->d->gpu_count)
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
        unsigned socket = place_at(plan, gpu_at(plan, order_at(plan, i))->position)->socket;

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
static void make_switch_links(struct plan *plan, unsigned index, double override)
{
    struct place *place = place_at(plan, index);
    const char *kind = plan->d->kinds[place->kind].name;
    char name[DUET_NAME_MAX];

    if (place->to_device_link != NONE)
        return;
    if (override > 0)
        place->to_device_Bps = place->to_host_Bps = override;
    (void)g_snprintf(name, sizeof(name), "%s%u-to-device", kind, index);
    place->to_device_link = add_link(plan, place->to_device_Bps, false, name);
    (void)g_snprintf(name, sizeof(name), "%s%u-to-host", kind, index);
    place->to_host_link = add_link(plan, place->to_host_Bps, false, name);
}

/* The limits of a GPU that is slower than its switch. */
static void make_limits(struct plan *plan, unsigned device)
{
    const struct duet__gpu *gpu = gpu_at(plan, device);
    const struct place *place = place_at(plan, gpu->position);
    const char *kind = plan->d->kinds[place->kind].name;
    unsigned *limit = &plan->limits[2 * (size_t)device];
    char name[DUET_NAME_MAX];

    if (gpu->to_device.bandwidth_Bps > 0 && gpu->to_device.bandwidth_Bps < place->to_device_Bps) {
        (void)g_snprintf(name, sizeof(name), "%s-gpu%u-to-device", kind, device);
        limit[0] = add_link(plan, gpu->to_device.bandwidth_Bps, true, name);
    }
    if (gpu->to_host.bandwidth_Bps > 0 && gpu->to_host.bandwidth_Bps < place->to_host_Bps) {
        (void)g_snprintf(name, sizeof(name), "%s-gpu%u-to-host", kind, device);
        limit[1] = add_link(plan, gpu->to_host.bandwidth_Bps, true, name);
    }
}

/* Bandwidth that is given by an option is the GPUs' too: then they have no limits of their own. */
static void make_host_links(struct plan *plan)
{
    plan->limits = g_new(unsigned, 2 * (size_t)plan->gpus->len);
    for (unsigned i = 0; i < plan->gpu_count; i++) {
        unsigned device = order_at(plan, i);
        unsigned position = gpu_at(plan, device)->position;
        const char *kind = plan->d->kinds[place_at(plan, position)->kind].name;
        double override = duet__override(plan->options, kind);

        make_switch_links(plan, position, override);
        plan->limits[2 * (size_t)device] = plan->limits[2 * (size_t)device + 1] = NONE;
        if (!(override > 0))
            make_limits(plan, device);
    }
}

static enum duet__reach reach_between(const struct plan *plan, unsigned a, unsigned b)
{
    unsigned place_a = gpu_at(plan, a)->position;
    unsigned place_b = gpu_at(plan, b)->position;

    if (place_a == place_b)
        return DUET__REACH_SWITCH;
    if (place_at(plan, place_a)->socket == place_at(plan, place_b)->socket)
        return DUET__REACH_SOCKET;
    return DUET__REACH_REMOTE;
}

/* The limits of direct copies, for the reaches that GPUs in use have between them. */
static void make_peer_links(struct plan *plan)
{
    bool used[DUET__REACHES] = {false};

    for (unsigned i = 0; i < plan->gpu_count; i++)
        for (unsigned j = 0; j < i; j++)
            used[reach_between(plan, order_at(plan, i), order_at(plan, j))] = true;
    for (unsigned reach = 0; reach < DUET__REACHES; reach++) {
        const struct duet__peer_kind *peer = &plan->d->peers[reach];
        double override = peer->present ? duet__override(plan->options, peer->name) : 0;
        char name[DUET_NAME_MAX];

        plan->peers[reach][0] = plan->peers[reach][1] = NONE;
        if (!used[reach] || !peer->present || plan->options->no_peer)
            continue;
        (void)g_snprintf(name, sizeof(name), "%s-down", peer->name);
        plan->peers[reach][0] =
            add_link(plan, override > 0 ? override : peer->down.bandwidth_Bps, true, name);
        (void)g_snprintf(name, sizeof(name), "%s-up", peer->name);
        plan->peers[reach][1] =
            add_link(plan, override > 0 ? override : peer->up.bandwidth_Bps, true, name);
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
    const struct duet__gpu *gpu = gpu_at(plan, device);
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
    enum duet__reach reach = reach_between(plan, from, to);
    const struct duet__peer_kind *peer = &plan->d->peers[reach];
    unsigned link = plan->peers[reach][from < to];
    struct duet_route *route = &machine->routes[(size_t)source * machine->node_count + destination];

    if (link == NONE)
        return;
    route->direct = true;
    route->latency_s = from < to ? peer->up.latency_s : peer->down.latency_s;
    if (reach != DUET__REACH_SWITCH && !peer->own_link) {
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
        const struct duet__gpu *gpu = gpu_at(plan, device);
        struct duet_node *node = &machine->nodes[i + 1];
        struct duet_worker *w = &machine->workers[plan->cpu_count + i];

        (void)snprintf(node->name, sizeof(node->name), "gpu%u", device);
        (void)snprintf(w->name, sizeof(w->name), "gpu%u", device);
        node->capacity_bytes = duet__gpu_memory(o, gpu->memory_bytes);
        w->arch = gpu->arch;
        w->node = i + 1;
        w->socket = place_at(plan, gpu->position)->socket;
        duet__set_windows(o, w);
    }
}

/* The cores there are; sockets that options add have theirs in the same proportion. */
static unsigned count_cores(const struct plan *plan)
{
    const struct duet__description *d = plan->d;
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
    const struct duet__description *d = plan->d;
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

static int check_options(const struct duet__description *d,
                         const struct duet_platform_options *options, struct duet_message *message)
{
    const char *names[DUET__MAX_LINK_KINDS + DUET__REACHES];
    unsigned count = 0;

    for (unsigned i = 0; i < d->kind_count; i++)
        names[count++] = d->kinds[i].name;
    for (unsigned i = 0; i < DUET__REACHES; i++)
        if (d->peers[i].present)
            names[count++] = d->peers[i].name;
    return duet__check_options(options, names, count, message);
}

int duet__derive(const struct duet_platform *platform, const struct duet_platform_options *options,
                 struct duet_machine *machine, struct duet_message *message)
{
    struct plan plan;
    int error;

    memset(machine, 0, sizeof(*machine));
    error = check_options(&platform->machine, options, message);
    if (error != DUET_OK)
        return error;
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
