/* SPDX-License-Identifier: Apache-2.0 */
/* The machine of a platform, as the configuration changes it, and its kernel times. */
#include <string.h>

#include <glib.h>

#include "runtime/open.h"
#include "base/units.h"

/* "a=x,b=y" as "a" and "b", each with its value behind its end; NULL: `what` is something else. */
static char **split_pairs(const char *what, const char *text, struct duet_message *message)
{
    char **pairs = g_strsplit(text ? text : "", ",", -1);
    for (char **pair = pairs; *pair; pair++) {
        char *equals = strchr(*pair, '=');
        if (!equals || equals == *pair) {
            duet_fail(message, DUET_EINVAL, "%s: '%s' is not of the form NAME=VALUE", what, *pair);
            g_strfreev(pairs);
            return NULL;
        }
        *equals = '\0';
    }
    return pairs;
}

static const char *value_of(const char *pair)
{
    return pair + strlen(pair) + 1;
}

/* Returns links with new figures, which refer to `pairs`; for g_array_unref. NULL: DUET_EINVAL. */
static GArray *read_links(char *const *pairs, struct duet_message *message)
{
    GArray *links = g_array_new(FALSE, FALSE, sizeof(struct duet__link_override));
    for (; *pairs; pairs++) {
        struct duet__link_override link = {.name = *pairs};
        if (duet__parse_change("--duet-links", value_of(*pairs), &link.bandwidth_Bps, &link.factor,
                               message)) {
            g_array_unref(links);
            return NULL;
        }
        g_array_append_val(links, link);
    }
    return links;
}

static int change_costs(struct duet_costs *costs, const char *text, struct duet_message *message)
{
    g_auto(GStrv) pairs = split_pairs("--duet-costs", text, message);
    for (char **pair = pairs; pair && *pair; pair++) {
        double *seconds = duet__cost_find(costs, *pair);
        g_autofree char *known = duet__cost_names();
        if (!seconds)
            return duet_fail(message, DUET_EINVAL, "unknown cost '%s': known are %s", *pair, known);
        int error = duet__parse_seconds("--duet-costs", value_of(*pair), seconds, message);
        if (error)
            return error;
    }
    return pairs ? DUET_OK : DUET_EINVAL;
}

static int build_machine(const struct duet__platform *platform, const struct duet_config *config,
                         struct duet_machine *machine, struct duet_message *message)
{
    g_auto(GStrv) pairs = split_pairs("--duet-links", config->links, message);
    g_autoptr(GArray) links = pairs ? read_links(pairs, message) : NULL;
    if (!links)
        return DUET_EINVAL;
    const struct duet__platform_options options = {
        .cpus = config->cpus,
        .gpus = config->gpus,
        .gpu_memory_bytes = config->gpu_memory_bytes,
        .gpu_memory_share = config->gpu_memory_share,
        .gpu_window = config->gpu_window,
        .gpu_window_short = config->gpu_window_short,
        .no_peer = config->no_peer,
        .links = (const struct duet__link_override *)(void *)links->data,
        .link_count = links->len,
    };
    int error = duet__platform_build(platform, &options, machine, message);
    if (error)
        return error;
    if (config->no_costs)
        machine->costs = (struct duet_costs){0};
    error = change_costs(&machine->costs, config->costs, message);
    if (error)
        duet_machine_fini(machine);
    return error;
}

int duet__open_network(const struct duet__platform *platform, const struct duet_config *config,
                       unsigned nodes, struct duet__network *out, struct duet_message *message)
{
    int error = DUET_OK;
    *out = platform->network;
    if (config->network)
        error = duet__network_parse("--duet-network", config->network, &platform->network, out,
                                    message);
    else if (out->bandwidth_Bps == 0)
        error = duet_fail(message, DUET_EINVAL,
                          "%s says nothing of a network between %u nodes: name one, such as "
                          "--duet-network=fat-tree:100Gbps,1us",
                          platform->name, nodes);
    if (!error)
        error = duet__network_shape(out, nodes, message);
    if (config->no_costs)
        out->overhead_s = 0;
    return error;
}

char *duet__open_kept_links(const struct duet__platform *platform, const struct duet_config *config)
{
    g_auto(GStrv) pairs = split_pairs("--duet-links", config->links, NULL);
    g_autoptr(GArray) links = pairs ? read_links(pairs, NULL) : NULL;
    if (!links)
        return NULL;
    return duet__platform_kept_links(platform,
                                     &(struct duet__platform_options){
                                         .no_peer = config->no_peer,
                                         .links = (const struct duet__link_override *)(void *)
                                                      links->data,
                                         .link_count = links->len,
                                     });
}

void duet__times_free(struct duet__times *times)
{
    if (times)
        duet__calibration_fini(&times->calibration);
    g_free(times);
}

/* Copies a platform's times: it stays as it is for others, whose context may be another one. */
static int copy_times(const struct duet__platform *platform, const struct duet_config *config,
                      struct duet__times **out, struct duet_message *message)
{
    struct duet__times *times = g_new0(struct duet__times, 1);
    const int error = duet__calibration_copy(&times->calibration, &platform->calibration, message);
    times->extrapolate = config->extrapolate;
    times->file = platform->file;
    times->digest = platform->digest;
    if (error) {
        duet__times_free(times);
        return error;
    }
    duet__calibration_select(&times->calibration, config->context);
    *out = times;
    return DUET_OK;
}

/* Sets the machine's states to those of runs on as many of its workers. */
static void take_usual(const struct duet_machine *machine, struct duet__states *states)
{
    unsigned cpus = 0;
    for (unsigned w = 0; w < machine->worker_count; w++)
        cpus += machine->workers[w].node == DUET_HOST;
    for (size_t i = 0; i < DUET__STATES; i++)
        states->factor[i] *= cpus > 1 ? states->busy : states->alone;
}

int duet__open_platform(const struct duet__platform *platform, const char *name,
                        const struct duet_config *config, struct duet__times **times,
                        struct duet_machine *machine, struct duet_message *message)
{
    struct duet__platform *loaded = NULL;
    int error = DUET_OK;
    if (!platform)
        error = duet__platform_load(name, &loaded, message);
    if (!error)
        error = build_machine(platform ? platform : loaded, config, machine, message);
    if (!error && times) {
        error = copy_times(platform ? platform : loaded, config, times, message);
        if (error)
            duet_machine_fini(machine);
        else
            take_usual(machine, &(*times)->calibration.states);
    }
    duet__platform_free(loaded);
    return error;
}
