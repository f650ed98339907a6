/* SPDX-License-Identifier: Apache-2.0 */
/* The machine of a platform, as the configuration changes it, and its kernel times. */
#include <string.h>

#include <glib.h>

#include "world/open.h"
#include "world/units.h"

/* Splits "a=x,b=y" and gives each part to `take`; `what` is for messages. */
static int each_pair(const char *what, const char *text,
                     int (*take)(void *context, const char *name, const char *value,
                                 struct duet_message *message),
                     void *context, struct duet_message *message)
{
    g_auto(GStrv) parts = g_strsplit(text ? text : "", ",", -1);
    for (char **part = parts; *part; part++) {
        char *equals = strchr(*part, '=');
        if (!equals || equals == *part)
            return duet_fail(message, DUET_EINVAL, "%s: '%s' is not of the form NAME=VALUE", what,
                             *part);
        *equals = '\0';
        int error = take(context, *part, equals + 1, message);
        if (error)
            return error;
    }
    return DUET_OK;
}

struct links {
    GArray *overrides;
    GPtrArray *names; /* keep what the overrides point to */
};

static int take_link(void *context, const char *name, const char *value,
                     struct duet_message *message)
{
    struct links *links = context;
    struct duet_link_override override = {0};
    int error =
        duet__parse_change("--link", value, &override.bandwidth_Bps, &override.factor, message);
    if (error)
        return error;
    char *copy = g_strdup(name);
    g_ptr_array_add(links->names, copy);
    override.name = copy;
    g_array_append_val(links->overrides, override);
    return DUET_OK;
}

static int take_cost(void *context, const char *name, const char *value,
                     struct duet_message *message)
{
    struct duet_costs *costs = context;
    double *seconds = duet_cost_find(costs, name);
    if (seconds)
        return duet__parse_seconds("--costs", value, seconds, message);
    char *known = duet_cost_names();
    int error = duet_fail(message, DUET_EINVAL, "unknown cost '%s': known are %s", name, known);
    g_free(known);
    return error;
}

static int build_machine(const struct duet_platform *platform, const struct duet_config *config,
                         struct duet_machine *machine, struct duet_message *message)
{
    struct links links = {.overrides = g_array_new(FALSE, FALSE, sizeof(struct duet_link_override)),
                          .names = g_ptr_array_new_with_free_func(g_free)};
    int error = each_pair("--link", config->links, take_link, &links, message);
    if (!error) {
        struct duet_platform_options options = {
            .cpus = config->cpus,
            .gpus = config->gpus,
            .gpu_memory_bytes = config->gpu_memory_bytes,
            .gpu_memory_share = config->gpu_memory_share,
            .gpu_window = config->gpu_window,
            .gpu_window_short = config->gpu_window_short,
            .no_peer = config->no_peer,
            .links = (const struct duet_link_override *)(void *)links.overrides->data,
            .link_count = links.overrides->len,
        };
        error = duet_platform_build(platform, &options, machine, message);
    }
    g_array_free(links.overrides, TRUE);
    g_ptr_array_free(links.names, TRUE);
    if (error)
        return error;
    if (config->no_costs)
        machine->costs = (struct duet_costs){0};
    error = each_pair("--costs", config->costs, take_cost, &machine->costs, message);
    if (error)
        duet_machine_fini(machine);
    return error;
}

void duet__times_free(struct duet__times *times)
{
    if (times)
        duet_calibration_fini(&times->calibration);
    g_free(times);
}

/* A copy: the platform stays as it is for others, whose context may be another one. */
static int copy_times(const struct duet_platform *platform, const struct duet_config *config,
                      struct duet__times **out, struct duet_message *message)
{
    const struct duet_calibration *all = &platform->calibration;
    struct duet__times *times = g_new0(struct duet__times, 1);
    times->extrapolate = config->extrapolate;
    for (size_t i = 0; i < all->count; i++) {
        const struct duet_curve *curve = &all->curves[i];
        int error =
            duet_calibration_add_context(&times->calibration, curve->kernel, curve->arch,
                                         curve->context, curve->points, curve->count, message);
        if (error) {
            duet__times_free(times);
            return error;
        }
    }
    duet_calibration_select(&times->calibration, config->context);
    *out = times;
    return DUET_OK;
}

int duet__open_platform(const struct duet_platform *platform, const char *name,
                        const struct duet_config *config, struct duet__times **times,
                        struct duet_machine *machine, struct duet_message *message)
{
    struct duet_platform *loaded = NULL;
    int error = DUET_OK;
    if (!platform)
        error = duet_platform_load(name, NULL, &loaded, message);
    if (!error)
        error = build_machine(platform ? platform : loaded, config, machine, message);
    if (!error && times) {
        error = copy_times(platform ? platform : loaded, config, times, message);
        if (error)
            duet_machine_fini(machine);
    }
    duet_platform_free(loaded);
    return error;
}
