/* SPDX-License-Identifier: Apache-2.0 */
/* Applies options that mean the same for every machine. */
#include <math.h>
#include <string.h>

#include "platforms/internal.h"

double *duet__cost_find(struct duet_costs *costs, const char *name)
{
    g_autofree char *key = g_strdelimit(g_strconcat(name, "_s", NULL), "-", '_');
    for (const struct duet__field *field = duet__cost_fields; field->key; field++)
        if (field->kind == DUET__NUMBER && strcmp(field->key, key) == 0)
            return duet__field_at(field, costs);
    return NULL;
}

char *duet__cost_names(void)
{
    GString *names = g_string_new(NULL);
    for (const struct duet__field *field = duet__cost_fields; field->key; field++)
        if (field->kind == DUET__NUMBER)
            g_string_append_printf(names, "%s%.*s", names->len > 0 ? ", " : "",
                                   (int)(strlen(field->key) - strlen("_s")), field->key);
    return g_strdelimit(g_string_free(names, FALSE), "_", '-');
}

/* True if an option is about links of the kind `name`. */
static bool is_about(const struct duet__link_override *link, const char *name)
{
    return strcmp(link->name, name) == 0 || strcmp(link->name, DUET__ALL_LINKS) == 0;
}

void duet__change_bandwidth(const struct duet__platform_options *options, const char *name,
                            double *bandwidth)
{
    for (size_t i = 0; i < options->link_count; i++) {
        const struct duet__link_override *link = &options->links[i];
        if (is_about(link, name))
            *bandwidth = link->bandwidth_Bps > 0 ? link->bandwidth_Bps : *bandwidth * link->factor;
    }
}

/* Adds a name, unless it is empty or there already. */
static void add_name(GPtrArray *names, char *name)
{
    if (*name == '\0' || g_ptr_array_find_with_equal_func(names, name, g_str_equal, NULL))
        g_free(name);
    else
        g_ptr_array_add(names, name);
}

/* Returns the kind of a link, from its name: "pcie" for "pcie0-to-host", "peer_switch" for
 * "peer_switch-up"; a name of another form is its own kind. Free with g_free. */
static char *kind_of(const char *link)
{
    const char *dash = strchr(link, '-');
    size_t length = dash != NULL ? (size_t)(dash - link) : strlen(link);
    if (dash == NULL)
        return g_strdup(link);
    while (length > 0 && g_ascii_isdigit(link[length - 1]))
        length--;
    return length > 0 ? g_strndup(link, length) : g_strdup(link);
}

/* Returns the names of all kinds of links, or only of direct copies, in the order of the file. */
static GPtrArray *link_kinds(const struct duet__platform *platform, bool peers)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    for (unsigned i = 0; i < platform->fixed.link_count && !peers; i++)
        add_name(names, kind_of(platform->fixed.links[i].name));
    for (unsigned i = 0; i < platform->kind_count && !peers; i++)
        add_name(names, g_strdup(platform->kinds[i].name));
    for (unsigned i = 0; i < platform->socket_count && !peers; i++)
        if (platform->sockets[i].hub.to_device_Bps > 0 || platform->sockets[i].hub.to_host_Bps > 0)
            add_name(names, g_strdup("hub"));
    if (!peers && (platform->host.to_device_Bps > 0 || platform->host.to_host_Bps > 0))
        add_name(names, g_strdup("host"));
    for (unsigned i = 0; i < platform->gpu_count; i++)
        if (platform->gpus[i].port_in_Bps > 0 || platform->gpus[i].port_out_Bps > 0)
            add_name(names, g_strdup("port"));
    for (unsigned i = 0; i < DUET_PEERS; i++)
        add_name(names, g_strdup(platform->peers[i].name));
    return names;
}

char *duet__platform_kept_links(const struct duet__platform *platform,
                                const struct duet__platform_options *options)
{
    g_autoptr(GPtrArray) names = link_kinds(platform, false), peers = link_kinds(platform, true);
    GString *kept = g_string_new(NULL);
    for (unsigned i = 0; options->link_count > 0 && i < names->len; i++) {
        const char *name = names->pdata[i];
        bool changed = options->no_peer && /* no copy crosses it */
                       g_ptr_array_find_with_equal_func(peers, name, g_str_equal, NULL);

        for (size_t k = 0; k < options->link_count && !changed; k++)
            changed = is_about(&options->links[k], name);
        if (!changed)
            g_string_append_printf(kept, "%s%s", kept->len > 0 ? ", " : "", name);
    }
    return g_string_free(kept, kept->len == 0);
}

static int check_link(const struct duet__link_override *link, GPtrArray *names,
                      struct duet_message *message)
{
    g_autofree char *list = NULL;
    bool known = false;
    if (link->name == NULL)
        return duet_fail(message, DUET_EINVAL, "a link without a name");
    for (unsigned i = 0; i < names->len && !known; i++)
        known = is_about(link, names->pdata[i]);
    if (!known) {
        g_ptr_array_add(names, g_strdup(names->len > 0 ? DUET__ALL_LINKS : "none"));
        g_ptr_array_add(names, NULL);
        list = g_strjoinv(", ", (char **)names->pdata);
        return duet_fail(message, DUET_EINVAL, "no link is named %.60s (known: %.300s)", link->name,
                         list);
    }
    if (link->bandwidth_Bps == 0 && isfinite(link->factor) && link->factor > 0)
        return DUET_OK;
    if (!isfinite(link->bandwidth_Bps) || !(link->bandwidth_Bps > 0))
        return duet_fail(message, DUET_EINVAL,
                         "link %s: the bandwidth must be a positive number of bytes a second",
                         link->name);
    return DUET_OK;
}

uint64_t duet__gpu_memory(const struct duet__platform_options *options, uint64_t bytes)
{
    if (options->gpu_memory_bytes > 0)
        return options->gpu_memory_bytes;
    if (!(options->gpu_memory_share > 0))
        return bytes;
    return MAX((uint64_t)((double)bytes * options->gpu_memory_share), 1);
}

void duet__set_windows(const struct duet__platform_options *options, struct duet_worker *worker)
{
    enum { USUAL = 2, USUAL_SHORT = 8 };
    if (options->gpu_window > 0)
        worker->window = worker->window_short = options->gpu_window;
    if (worker->window == 0) {
        worker->window = USUAL;
        worker->window_short = USUAL_SHORT;
    }
    if (options->gpu_window_short > 0)
        worker->window_short = options->gpu_window_short;
}

int duet__check_options(const struct duet__platform *platform,
                        const struct duet__platform_options *options, struct duet_message *message)
{
    g_autoptr(GPtrArray) names = link_kinds(platform, false);
    double share = options->gpu_memory_share;
    int error = DUET_OK;
    if (options->cpus < -1 || options->gpus < -1)
        return duet_fail(message, DUET_EINVAL, "the number of %s cannot be negative",
                         options->cpus < -1 ? "CPUs" : "GPUs");
    if (options->gpus > DUET__MAX_GPUS)
        return duet_fail(message, DUET_EINVAL, "%d GPUs are too many, the most is %d",
                         options->gpus, DUET__MAX_GPUS);
    if (options->cpus == 0 && options->gpus == 0)
        return duet_fail(message, DUET_EINVAL, "no CPU and no GPU: at least one worker is needed");
    if (!(share >= 0) || share > 1)
        return duet_fail(message, DUET_EINVAL,
                         "a part of %g of each GPU's memory: it must be above 0 and at most 1",
                         share);
    if (share > 0 && options->gpu_memory_bytes > 0)
        return duet_fail(message, DUET_EINVAL,
                         "the memory of GPUs is given twice, in bytes and as a part");
    if (options->link_count > 0 && options->links == NULL)
        return duet_fail(message, DUET_EINVAL, "link_count without links");
    for (size_t i = 0; i < options->link_count && !error; i++)
        error = check_link(&options->links[i], names, message);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Takes the part of a machine read from XML that options leave. Nothing can be added to such a
 * machine. */

static void change_links(struct duet_machine *m, const struct duet__platform_options *options)
{
    for (unsigned i = 0; i < m->link_count; i++) {
        g_autofree char *kind = kind_of(m->links[i].name);
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
    if (error)
        return error;
    error = duet_machine_copy(machine, &platform->fixed);
    if (error)
        return duet_fail(message, error, "%s: %s", platform->name, duet_strerror(error));
    change_links(machine, options);
    keep_workers(machine, cpus, gpus, options);
    keep_nodes(machine, gpus, options);
    if (machine->worker_count == 0)
        error = duet_fail(message, DUET_EINVAL, "no worker is left on %s: use more CPUs or GPUs",
                          platform->name);
    else
        error = duet_machine_check(machine, message);
    if (error)
        duet_machine_fini(machine);
    return error;
}
