/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source of a copy, chosen with regard to the copies under way (unless config.nearest_source).
 * For each link and each direction of each device the core keeps the seconds of copies that were
 * decided and have not ended, each as if it were alone; a device copies one after another in each
 * direction.
 */
#include <math.h>

#include "core/internal.h"

/* Returns the nanoseconds counted for a copy: at most eleven days. */
static int64_t ns_of(double seconds)
{
    return (int64_t)((seconds < 1e6 ? seconds : 1e6) * 1e9);
}

/* Returns the seconds of a lone copy. */
static double alone_s(const struct duet_route *route, uint64_t bytes)
{
    return route->latency_s + (double)bytes / route->bandwidth_Bps;
}

/*
 * Returns the counter of copies out of a node, or into it, which lie behind those of the links.
 * Unused for the host.
 */
static _Atomic(int64_t) *queue_of(const struct duet_runtime *core, unsigned node, bool out)
{
    return &core->queued_ns[core->machine.link_count + 2 * node + out];
}

static int64_t queued_ns(const struct duet_runtime *core, unsigned node, bool out)
{
    return atomic_load_explicit(queue_of(core, node, out), memory_order_relaxed);
}

/*
 * Returns the seconds until a copy decided now begins: behind the longest of its queues, since it
 * waits in all of them at once. Copies that share a link are taken as one after another: only the
 * last end counts.
 */
static double wait_s(const struct duet_runtime *core, const struct duet_route *route,
                     unsigned source, unsigned node)
{
    int64_t most = source != DUET_HOST ? queued_ns(core, source, true) : 0;
    int64_t into = node != DUET_HOST ? queued_ns(core, node, false) : 0;
    most = into > most ? into : most;
    for (unsigned i = 0; i < route->count; i++) {
        int64_t link =
            atomic_load_explicit(&core->queued_ns[route->links[i]], memory_order_relaxed);
        most = link > most ? link : most;
    }
    return most > 0 ? (double)most * 1e-9 : 0;
}

/* Returns the cost of a copy in seconds: its wait and its duration. */
static double cost_s(const struct duet_runtime *core, const struct duet_route *route,
                     unsigned source, unsigned node, uint64_t bytes)
{
    return wait_s(core, route, source, node) + alone_s(route, bytes);
}

/*
 * Returns the valid replica with a direct route to `node` from which a copy costs least, or, if not
 * `loaded`, takes least if it is alone; *best_s is that time. The lowest node among equals; -1:
 * there is none.
 */
static int best_source(const struct duet_runtime *core, const struct duet_handle *handle,
                       unsigned node, bool loaded, double *best_s)
{
    int best = -1;
    for (unsigned word = 0; word < core->node_words; word++) {
        uint64_t bits = atomic_load_explicit(&handle->valid[word], memory_order_relaxed);
        for (; bits; bits &= bits - 1) {
            unsigned source = word * 64 + (unsigned)__builtin_ctzll(bits);
            const struct duet_route *route = duet_machine_route(&core->machine, source, node);
            if (source == node || !route->direct)
                continue;
            double seconds = loaded ? cost_s(core, route, source, node, handle->bytes)
                                    : alone_s(route, handle->bytes);
            if (best < 0 || seconds < *best_s) {
                best = (int)source;
                *best_s = seconds;
            }
        }
    }
    return best;
}

/*
 * Returns the route by which a lone copy of a handle's data gets to `node` first, from one of the
 * nodes where it is valid; NULL: there is none.
 */
static const struct duet_route *shortest_route(const struct duet_runtime *core,
                                               const struct duet_handle *handle, unsigned node)
{
    const struct duet_route *into = duet_machine_route(&core->machine, 0, node), *best = NULL;
    const size_t others = core->machine.node_count;
    const double bytes = (double)handle->bytes;
    double best_s = INFINITY;
    for (unsigned word = 0; word < core->node_words; word++) {
        uint64_t bits = atomic_load_explicit(&handle->valid[word], memory_order_relaxed);
        for (; bits; bits &= bits - 1) {
            const unsigned source = word * 64 + (unsigned)__builtin_ctzll(bits);
            const struct duet_route *route = &into[source * others];
            if (source == node || !route->direct)
                continue;
            const double seconds = route->latency_s + bytes / route->bandwidth_Bps;
            if (!best || seconds < best_s) {
                best = route;
                best_s = seconds;
            }
        }
    }
    return best;
}

int duet__source(const struct duet_runtime *core, const struct duet_handle *handle, unsigned node,
                 double *cost)
{
    return best_source(core, handle, node, !core->nearest_source, cost);
}

/*
 * Returns the cost of a copy to a node that starts when another one has arrived: it waits for that,
 * and for the other copies chained on it, which a device sends one after another. Handle lock held.
 */
double duet__cost_behind(const struct duet_view *view, const struct replica *on, unsigned node)
{
    const struct duet_route *route = duet_machine_route(&view->core->machine, on->node, node);
    double begin_s = fmax(on->arrival_s - view->now, wait_s(view->core, route, on->node, node));
    for (const struct replica *at = on->chained; at && on->node != DUET_HOST; at = at->chain_next)
        begin_s = fmax(begin_s, at->arrival_s - view->now);
    return begin_s + alone_s(route, on->handle->bytes);
}

/*
 * Returns the cost of bringing data that is not valid on the host to a device by way of it. The way
 * to the host costs nothing: others will copy from there, and no eviction has to write the data
 * back. If the data is on its way there already, that is no gain any more, and the rest of it
 * counts. INFINITY if there is no such way, or it would need memory there. Handle lock held.
 */
double duet__cost_by_host(const struct duet_view *view, const struct duet_handle *handle,
                          unsigned node)
{
    if (handle->host.copying)
        return duet__cost_behind(view, &handle->host, node);
    if (handle->temporary || !shortest_route(view->core, handle, DUET_HOST))
        return INFINITY;
    return cost_s(view->core, duet_machine_route(&view->core->machine, DUET_HOST, node), DUET_HOST,
                  node, handle->bytes);
}

/*
 * Returns the replica on its way to another device from which a copy to `node` costs least once it
 * is there, and that cost; NULL: there is none. Handle lock held.
 */
struct replica *duet__coming_source(const struct duet_view *view, const struct duet_handle *handle,
                                    unsigned node, double *best_s)
{
    const struct duet_runtime *core = view->core;
    struct replica *best = NULL;
    for (unsigned word = 0; word < core->node_words; word++) {
        uint64_t bits = atomic_load_explicit(&handle->coming[word], memory_order_relaxed);
        for (; bits; bits &= bits - 1) {
            struct replica *on = handle->replicas[word * 64 + (unsigned)__builtin_ctzll(bits)];
            if (on == &handle->host || on->copy_version != handle->version ||
                atomic_load(&core->nodes[on->node].lost) ||
                !duet_machine_route(&core->machine, on->node, node)->direct)
                continue;
            double seconds = duet__cost_behind(view, on, node);
            if (!best || seconds < *best_s) {
                best = on;
                *best_s = seconds;
            }
        }
    }
    return best;
}

/*
 * Counts a copy that is decided (`sign` 1), or has ended (-1), in its queues. Returns the seconds
 * that a decided one is expected to take with those before it.
 */
double duet__copy_queued(struct duet_runtime *core, const struct duet__copy *copy, int sign)
{
    const struct duet_route *route =
        duet_machine_route(&core->machine, copy->source, copy->destination);
    double seconds = alone_s(route, copy->bytes);
    int64_t ns = sign * ns_of(seconds);
    if (sign > 0)
        seconds += wait_s(core, route, copy->source, copy->destination);
    atomic_fetch_add_explicit(queue_of(core, copy->source, true), ns, memory_order_relaxed);
    atomic_fetch_add_explicit(queue_of(core, copy->destination, false), ns, memory_order_relaxed);
    for (unsigned i = 0; i < route->count; i++) {
        const struct duet_link *link = &core->machine.links[route->links[i]];
        ns = sign * ns_of((double)copy->bytes / link->bandwidth_Bps);
        if (!link->per_copy)
            atomic_fetch_add_explicit(&core->queued_ns[route->links[i]], ns, memory_order_relaxed);
    }
    return seconds;
}

/*
 * Returns the seconds a policy should expect until the handle's data is on `node`: latency + bytes
 * / bandwidth x `accelerators`, through the host where there is no direct route. 0 if it is there
 * or coming.
 */
double duet__transfer_seconds(const struct duet_runtime *core, const struct duet_handle *handle,
                              unsigned node, double accelerators)
{
    if (bit_test_acquire(handle->coming, node) || bit_test(handle->valid, node))
        return 0;
    const double bytes = (double)handle->bytes;
    const struct duet_route *route = shortest_route(core, handle, node);
    if (route)
        return route->latency_s + bytes / route->bandwidth_Bps * accelerators;
    const struct duet_route *out = shortest_route(core, handle, DUET_HOST);
    if (!out)
        return 0; /* a task writes the data: it will be elsewhere by then */
    const struct duet_route *in = duet_machine_route(&core->machine, DUET_HOST, node);
    return out->latency_s + in->latency_s +
           bytes * (1 / out->bandwidth_Bps + 1 / in->bandwidth_Bps) * accelerators;
}
