/* SPDX-License-Identifier: Apache-2.0 */
/* What options mean whatever the machine is. */
#include <math.h>
#include <string.h>

#include "platforms/internal.h"
#include "platforms/keys.h"

/* The name of a cost in options: "kernel-launch" for the key kernel_launch_s. Free with g_free. */
static char *cost_name(const struct duet__field *field)
{
    return g_strdelimit(g_strndup(field->key, strlen(field->key) - strlen("_s")), "_", '-');
}

double *duet_cost_find(struct duet_costs *costs, const char *name)
{
    double *found = NULL;

    for (const struct duet__field *field = duet__cost_fields; field->key && !found; field++) {
        char *own = cost_name(field);

        if (field->kind == DUET__NUMBER && strcmp(own, name) == 0)
            found = duet__field_at(field, costs);
        g_free(own);
    }
    return found;
}

char *duet_cost_names(void)
{
    GString *names = g_string_new(NULL);

    for (const struct duet__field *field = duet__cost_fields; field->key; field++) {
        char *own = cost_name(field);

        if (field->kind == DUET__NUMBER)
            g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", own);
        g_free(own);
    }
    return g_string_free(names, FALSE);
}

/* Whether an option is about the kind `name`. */
static bool means(const struct duet_link_override *link, const char *name)
{
    return strcmp(link->name, name) == 0 || strcmp(link->name, DUET__ALL_LINKS) == 0;
}

double duet__change_bandwidth(const struct duet_platform_options *options, const char *name,
                              double bandwidth)
{
    for (size_t i = 0; i < options->link_count; i++) {
        const struct duet_link_override *link = &options->links[i];

        if (means(link, name))
            bandwidth = link->bandwidth_Bps > 0 ? link->bandwidth_Bps : bandwidth * link->factor;
    }
    return bandwidth;
}

bool duet__is_replaced(const struct duet_platform_options *options, const char *name)
{
    for (size_t i = 0; i < options->link_count; i++)
        if (means(&options->links[i], name) && options->links[i].bandwidth_Bps > 0)
            return true;
    return false;
}

/* Adds a name that is not there yet. */
static void add_name(GPtrArray *names, char *name)
{
    if (g_ptr_array_find_with_equal_func(names, name, g_str_equal, NULL))
        g_free(name);
    else
        g_ptr_array_add(names, name);
}

GPtrArray *duet__link_kinds(const struct duet_platform *platform)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);

    for (unsigned i = 0; i < platform->fixed.link_count; i++)
        add_name(names, duet__kind_of(platform->fixed.links[i].name));
    for (unsigned i = 0; i < platform->kind_count; i++)
        add_name(names, g_strdup(platform->kinds[i].name));
    for (unsigned i = 0; i < DUET_REACHES; i++)
        if (platform->peers[i].name[0] != '\0')
            add_name(names, g_strdup(platform->peers[i].name));
    return names;
}

/* Whether links of this kind are only crossed by direct copies. */
static bool is_peer(const struct duet_platform *platform, const char *name)
{
    for (unsigned i = 0; i < DUET_REACHES; i++)
        if (strcmp(platform->peers[i].name, name) == 0)
            return true;
    return false;
}

char *duet_platform_kept_links(const struct duet_platform *platform,
                               const struct duet_platform_options *options)
{
    GPtrArray *names = duet__link_kinds(platform);
    GString *kept = g_string_new(NULL);

    for (unsigned i = 0; options->link_count > 0 && i < names->len; i++) {
        const char *name = g_ptr_array_index(names, i);
        bool changed = options->no_peer && is_peer(platform, name); /* nothing crosses it */

        for (size_t k = 0; k < options->link_count && !changed; k++)
            changed = means(&options->links[k], name);
        if (!changed)
            g_string_append_printf(kept, "%s%s", kept->len > 0 ? ", " : "", name);
    }
    g_ptr_array_unref(names);
    return g_string_free(kept, kept->len == 0);
}

static int unknown_link(const char *name, const GPtrArray *names, struct duet_message *message)
{
    GString *list = g_string_new(NULL);

    for (unsigned i = 0; i < names->len; i++)
        g_string_append_printf(list, "%s, ", (const char *)names->pdata[i]);
    duet_fail(message, DUET_EINVAL, "no link is named %.60s (known: %.300s%s)", name, list->str,
              names->len > 0 ? DUET__ALL_LINKS : "none");
    g_string_free(list, TRUE);
    return DUET_EINVAL;
}

static int check_link(const struct duet_link_override *link, const GPtrArray *names,
                      struct duet_message *message)
{
    bool known = false;

    if (link->name == NULL)
        return duet_fail(message, DUET_EINVAL, "a link without a name");
    for (unsigned i = 0; i < names->len && !known; i++)
        known = means(link, names->pdata[i]);
    if (!known)
        return unknown_link(link->name, names, message);
    if (link->bandwidth_Bps == 0 && isfinite(link->factor) && link->factor > 0)
        return DUET_OK;
    if (!isfinite(link->bandwidth_Bps) || !(link->bandwidth_Bps > 0))
        return duet_fail(message, DUET_EINVAL,
                         "link %s: the bandwidth must be a positive number of bytes a second",
                         link->name);
    return DUET_OK;
}

static int check_links(const struct duet_platform *platform,
                       const struct duet_platform_options *options, struct duet_message *message)
{
    GPtrArray *names = duet__link_kinds(platform);
    int error = DUET_OK;

    for (size_t i = 0; i < options->link_count && error == DUET_OK; i++)
        error = check_link(&options->links[i], names, message);
    g_ptr_array_unref(names);
    return error;
}

uint64_t duet__gpu_memory(const struct duet_platform_options *options, uint64_t bytes)
{
    if (options->gpu_memory_bytes > 0)
        return options->gpu_memory_bytes;
    if (!(options->gpu_memory_share > 0))
        return bytes;
    return MAX((uint64_t)((double)bytes * options->gpu_memory_share), 1);
}

void duet__set_windows(const struct duet_platform_options *options, struct duet_worker *worker)
{
    enum { USUAL = 2, USUAL_SHORT = 8 };
    unsigned window = options->gpu_window;

    worker->window = window > 0 ? window : USUAL;
    worker->window_short = window > 0 ? window : USUAL_SHORT;
    if (options->gpu_window_short > 0)
        worker->window_short = options->gpu_window_short;
}

static int check_memory(const struct duet_platform_options *options, struct duet_message *message)
{
    double share = options->gpu_memory_share;

    if (!(share >= 0) || share > 1)
        return duet_fail(message, DUET_EINVAL,
                         "a part of %g of each GPU's memory: it must be above 0 and at most 1",
                         share);
    if (share > 0 && options->gpu_memory_bytes > 0)
        return duet_fail(message, DUET_EINVAL,
                         "the memory of GPUs is given twice, in bytes and as a part");
    return DUET_OK;
}

int duet__check_options(const struct duet_platform *platform,
                        const struct duet_platform_options *options, struct duet_message *message)
{
    if (options->cpus < -1 || options->gpus < -1)
        return duet_fail(message, DUET_EINVAL, "the number of %s cannot be negative",
                         options->cpus < -1 ? "CPUs" : "GPUs");
    if (options->gpus > DUET__MAX_GPUS)
        return duet_fail(message, DUET_EINVAL, "%d GPUs are too many, the most is %d",
                         options->gpus, DUET__MAX_GPUS);
    if (options->cpus == 0 && options->gpus == 0)
        return duet_fail(message, DUET_EINVAL, "no CPU and no GPU: at least one worker is needed");
    if (check_memory(options, message) != DUET_OK)
        return DUET_EINVAL;
    if (options->link_count > 0 && options->links == NULL)
        return duet_fail(message, DUET_EINVAL, "link_count without links");
    return check_links(platform, options, message);
}
