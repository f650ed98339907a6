/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a machine read from XML that options leave. Nothing can be added to such a machine.
 */
#include <math.h>
#include <string.h>

#include "platforms/description.h"

char *duet__kind_of(const char *link)
{
    const char *dash = strchr(link, '-');
    size_t length = dash != NULL ? (size_t)(dash - link) : strlen(link);

    if (dash == NULL)
        return g_strdup(link);
    while (length > 0 && g_ascii_isdigit(link[length - 1]))
        length--;
    return length > 0 ? g_strndup(link, length) : g_strdup(link);
}

static void copy_links(const struct duet_machine *from, struct duet_machine *to,
                       const struct duet_platform_options *options)
{
    for (unsigned i = 0; i < from->link_count; i++) {
        char *kind = duet__kind_of(from->links[i].name);

        to->links[i] = from->links[i];
        to->links[i].bandwidth_Bps =
            duet__change_bandwidth(options, kind, from->links[i].bandwidth_Bps);
        g_free(kind);
    }
}

static void copy_routes(const struct duet_machine *from, struct duet_machine *to, bool no_peer)
{
    for (unsigned i = 0; i < to->node_count; i++) {
        for (unsigned j = 0; j < to->node_count; j++) {
            struct duet_route *route = &to->routes[(size_t)i * to->node_count + j];

            if (no_peer && i != DUET_HOST && j != DUET_HOST)
                continue;
            *route = *duet_machine_route(from, i, j);
            if (!route->direct)
                continue;
            route->bandwidth_Bps = INFINITY;
            for (unsigned k = 0; k < route->count; k++)
                route->bandwidth_Bps =
                    fmin(route->bandwidth_Bps, to->links[route->links[k]].bandwidth_Bps);
        }
    }
}

/* The windows of a GPU's worker are those of the file, but for what options say. */
static void change_windows(struct duet_worker *worker, const struct duet_platform_options *options)
{
    if (options->gpu_window > 0)
        duet__set_windows(options, worker);
    else if (options->gpu_window_short > 0)
        worker->window_short = options->gpu_window_short;
}

/* Copies the first `cpus` CPU workers and those of the first `gpus` devices; counts them. */
static unsigned copy_workers(const struct duet_machine *from, struct duet_worker *to, unsigned cpus,
                             unsigned gpus, const struct duet_platform_options *options)
{
    unsigned count = 0;

    for (unsigned i = 0; i < from->worker_count; i++) {
        const struct duet_worker *w = &from->workers[i];

        if (w->node == DUET_HOST ? cpus == 0 : w->node > gpus)
            continue;
        if (w->node == DUET_HOST)
            cpus--;
        to[count] = *w;
        if (w->node != DUET_HOST)
            change_windows(&to[count], options);
        count++;
    }
    return count;
}

static int choose(const struct duet_platform *platform, const struct duet_platform_options *o,
                  unsigned *cpus, unsigned *gpus, struct duet_message *message)
{
    const struct duet_machine *m = &platform->fixed;

    *cpus = 0;
    for (unsigned i = 0; i < m->worker_count; i++)
        *cpus += m->workers[i].node == DUET_HOST;
    *gpus = m->node_count - 1;
    if (o->gpus > (int)*gpus)
        return duet_fail(message, DUET_EINVAL,
                         "%d GPUs, but %s has %u and nothing can be added to a platform read from "
                         "XML",
                         o->gpus, platform->name, *gpus);
    if (o->cpus > (int)*cpus)
        return duet_fail(message, DUET_EINVAL, "%d CPUs, but %s has %u computing cores", o->cpus,
                         platform->name, *cpus);
    if (o->gpus >= 0)
        *gpus = (unsigned)o->gpus;
    if (o->cpus >= 0)
        *cpus = (unsigned)o->cpus;
    return DUET_OK;
}

int duet__subset(const struct duet_platform *platform, const struct duet_platform_options *options,
                 struct duet_machine *machine, struct duet_message *message)
{
    const struct duet_machine *from = &platform->fixed;
    struct duet_worker *workers;
    unsigned cpus = 0, gpus = 0, count;
    int error;

    error = choose(platform, options, &cpus, &gpus, message);
    if (error != DUET_OK)
        return error;
    workers = g_new0(struct duet_worker, from->worker_count);
    count = copy_workers(from, workers, cpus, gpus, options);
    if (count == 0) {
        error = duet_fail(message, DUET_EINVAL, "no worker is left on %s: use more CPUs or GPUs",
                          platform->name);
        goto copied;
    }
    error = duet_machine_init(machine, from->arch_count, gpus + 1, count, from->link_count);
    if (error != DUET_OK) {
        duet_fail(message, error, "%s: %s", platform->name, duet_strerror(error));
        goto copied;
    }
    memcpy(machine->name, from->name, sizeof(machine->name));
    memcpy(machine->archs, from->archs, from->arch_count * sizeof(*from->archs));
    memcpy(machine->nodes, from->nodes, machine->node_count * sizeof(*from->nodes));
    memcpy(machine->workers, workers, count * sizeof(*workers));
    machine->costs = from->costs;
    machine->sharing = from->sharing;
    machine->cores = from->cores;
    machine->first_waits = from->first_waits;
    for (unsigned i = 1; i <= gpus; i++)
        machine->nodes[i].capacity_bytes =
            duet__gpu_memory(options, machine->nodes[i].capacity_bytes);
    copy_links(from, machine, options);
    copy_routes(from, machine, options->no_peer);
    error = duet_machine_check(machine, message);
    if (error != DUET_OK)
        duet_machine_fini(machine);
copied:
    g_free(workers);
    return error;
}
