/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the part of a machine read from XML that options leave. Nothing can be added to such a
 * machine. */
#include <math.h>
#include <string.h>

#include "platforms/internal.h"

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

static void change_links(struct duet_machine *m, const struct duet__platform_options *options)
{
    for (unsigned i = 0; i < m->link_count; i++) {
        g_autofree char *kind = duet__kind_of(m->links[i].name);

        duet__change_bandwidth(options, kind, &m->links[i].bandwidth_Bps);
    }
}

/* Keeps the host and the first `gpus` devices, and the routes between them. */
static void keep_nodes(struct duet_machine *m, unsigned gpus,
                       const struct duet__platform_options *options)
{
    unsigned count = gpus + 1;

    for (unsigned i = 0; i < count; i++) {
        for (unsigned j = 0; j < count; j++) {
            struct duet_route *route = &m->routes[(size_t)i * count + j];

            *route = *duet_machine_route(m, i, j); /* from further on in the array, or in place */
            if (options->no_peer && i != DUET_HOST && j != DUET_HOST)
                *route = (struct duet_route){.direct = false};
            if (!route->direct)
                continue;
            route->bandwidth_Bps = INFINITY;
            for (unsigned k = 0; k < route->count; k++)
                route->bandwidth_Bps =
                    fmin(route->bandwidth_Bps, m->links[route->links[k]].bandwidth_Bps);
        }
        if (i != DUET_HOST)
            m->nodes[i].capacity_bytes = duet__gpu_memory(options, m->nodes[i].capacity_bytes);
    }
    m->node_count = count;
}

/* Keeps the first `cpus` CPU workers and those of the first `gpus` devices. */
static void keep_workers(struct duet_machine *m, unsigned cpus, unsigned gpus,
                         const struct duet__platform_options *options)
{
    unsigned count = 0;

    for (unsigned i = 0; i < m->worker_count; i++) {
        struct duet_worker *worker = &m->workers[i];

        if (worker->node == DUET_HOST ? cpus == 0 : worker->node > gpus)
            continue;
        if (worker->node == DUET_HOST)
            cpus--;
        else
            duet__set_windows(options, worker);
        m->workers[count++] = *worker;
    }
    m->worker_count = count;
}

static int choose_counts(const struct duet__platform *platform,
                         const struct duet__platform_options *o, unsigned *cpus, unsigned *gpus,
                         struct duet_message *message)
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

int duet__subset(const struct duet__platform *platform,
                 const struct duet__platform_options *options, struct duet_machine *machine,
                 struct duet_message *message)
{
    unsigned cpus = 0, gpus = 0;
    int error = choose_counts(platform, options, &cpus, &gpus, message);

    if (error != DUET_OK)
        return error;
    error = duet_machine_copy(machine, &platform->fixed);
    if (error != DUET_OK)
        return duet_fail(message, error, "%s: %s", platform->name, duet_strerror(error));
    change_links(machine, options);
    keep_workers(machine, cpus, gpus, options);
    keep_nodes(machine, gpus, options);
    if (machine->worker_count == 0)
        error = duet_fail(message, DUET_EINVAL, "no worker is left on %s: use more CPUs or GPUs",
                          platform->name);
    else
        error = duet_machine_check(machine, message);
    if (error != DUET_OK)
        duet_machine_fini(machine);
    return error;
}
