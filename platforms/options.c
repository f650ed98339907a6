/* SPDX-License-Identifier: Apache-2.0 */
/* Applies options that mean the same for every machine. */
#include <math.h>
#include <string.h>

#include "platforms/internal.h"
#include "platforms/keys.h"

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

/* Returns the names of all kinds of links, or only of direct copies, in the order of the file. */
static GPtrArray *link_kinds(const struct duet__platform *platform, bool peers)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);

    for (unsigned i = 0; i < platform->fixed.link_count && !peers; i++)
        add_name(names, duet__kind_of(platform->fixed.links[i].name));
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
    for (size_t i = 0; i < options->link_count && error == DUET_OK; i++)
        error = check_link(&options->links[i], names, message);
    return error;
}
