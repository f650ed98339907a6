/* SPDX-License-Identifier: Apache-2.0 */
/* The library's start-up: picks a world, makes the engine and the core, and binds them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include <duet/duet.h>

#include "core/engine.h"
#include "lib/close.h"
#include "lib/plugin.h"
#include "lib/units.h"
#include "platforms/platform.h"
#include "sim/sim.h"

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
    double bandwidth = 0;
    int error = duet__parse_bandwidth("--link", value, &bandwidth, message);
    if (error)
        return error;
    char *copy = g_strdup(name);
    g_ptr_array_add(links->names, copy);
    struct duet_link_override override = {.name = copy, .bandwidth_Bps = bandwidth};
    g_array_append_val(links->overrides, override);
    return DUET_OK;
}

static int take_cost(void *context, const char *name, const char *value,
                     struct duet_message *message)
{
    struct duet_costs *costs = context;
    const struct {
        const char *name;
        double *seconds;
    } known[] = {
        {"submit", &costs->submit_s},
        {"push", &costs->push_s},
        {"pop", &costs->pop_s},
        {"steal", &costs->steal_s},
        {"kernel-launch", &costs->kernel_launch_s},
        {"copy-launch", &costs->copy_launch_s},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(known); i++)
        if (!strcmp(name, known[i].name))
            return duet__parse_seconds("--costs", value, known[i].seconds, message);
    return duet_fail(message, DUET_EINVAL,
                     "unknown cost '%s': known are submit, push, pop, steal, kernel-launch, "
                     "copy-launch",
                     name);
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
            .gpu_window = config->gpu_window,
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

/* Gives the calibration's means to the scheduler's models: what it believes at the start. */
static int prime(struct duet_runtime *core, const struct duet_calibration *calibration)
{
    const struct duet_machine *machine = duet_runtime_machine(core);
    for (size_t c = 0; c < calibration->count; c++) {
        const struct duet_curve *curve = &calibration->curves[c];
        for (unsigned a = 0; a < machine->arch_count; a++) {
            if (strcmp(machine->archs[a].name, curve->arch) != 0)
                continue;
            for (size_t p = 0; p < curve->count; p++) {
                const struct duet_point *point = &curve->points[p];
                int error = duet__prime(core, curve->kernel, a, point->work, point->mean_s,
                                        point->samples ? point->samples : 1);
                if (error)
                    return error;
            }
        }
    }
    return DUET_OK;
}

static int find_parts(const struct duet_config *config, const struct duet_policy **policy,
                      const struct duet_model **model, struct duet_message *message)
{
    int error = duet__policy_load(config->policy ? config->policy : "ws", policy, message);
    if (error)
        return error;
    *model = config->model ? duet_model_find(config->model) : duet_model_at(0);
    if (*model)
        return DUET_OK;
    GString *known = g_string_new(NULL);
    for (size_t i = 0; duet_model_at(i); i++)
        g_string_append_printf(known, "%s%s", i ? ", " : "", duet_model_at(i)->name);
    duet_fail(message, DUET_ENOTFOUND, "unknown performance model '%s': known are %s",
              config->model, known->str);
    g_string_free(known, TRUE);
    return DUET_ENOTFOUND;
}

static int bind(const struct duet_config *config, const struct duet_platform *platform,
                const struct duet_machine *machine, struct duet_runtime **out,
                struct duet_message *message)
{
    struct duet_core_config core = {
        .machine = machine,
        .seed = config->seed,
        .window = config->window,
        .set_arch = config->set_arch,
        .strict = config->strict,
        .record = config->record || config->trace,
        .model_error = config->model_error,
        .ops = duet__sim_ops(),
    };
    int error = find_parts(config, &core.policy, &core.model, message);
    if (error)
        return error;
    const struct duet_calibration *calibration = duet_platform_calibration(platform);
    struct sim_options options = {
        .calibration = calibration,
        .noise = config->noise,
        .extrapolate = config->extrapolate,
        .seed = config->seed,
    };
    error = duet__sim_new(&core.engine, machine, &options, message);
    if (error)
        return error;
    error = duet__core_new(out, &core, message);
    if (error) {
        core.ops->destroy(core.engine);
        return error;
    }
    duet__sim_attach(core.engine, *out);
    error = prime(*out, calibration);
    if (error) {
        duet__core_free(*out);
        *out = NULL;
    }
    return error;
}

static int simulate(const struct duet_config *config, struct duet_runtime **out,
                    struct duet_message *message)
{
    struct duet_platform *platform = NULL;
    struct duet_machine machine = {0};
    int error = duet_platform_load(config->simulate, NULL, &platform, message);
    if (!error)
        error = build_machine(platform, config, &machine, message);
    if (!error)
        error = bind(config, platform, &machine, out, message);
    if (!error)
        error = duet__remember(*out, config, platform);
    else
        duet_platform_free(platform);
    duet_machine_fini(&machine);
    return error;
}

int duet_open(struct duet_runtime **out, const struct duet_config *config,
              struct duet_message *message)
{
    struct duet_config own;
    struct duet_message local = {""};
    *out = NULL;
    if (!config) {
        duet_config_init(&own);
        int error = duet_config_environment(&own, message);
        if (error)
            return error;
        config = &own;
    }
    if (!config->simulate)
        return duet_fail(message, DUET_EABSENT,
                         "this duet has no real engine yet: name a platform to simulate, with "
                         "DUET_SIMULATE=idgraf or --duet-simulate=idgraf");
    int error = simulate(config, out, &local);
    if (error)
        duet_fail(message, error, "%s", *local.text ? local.text : duet_strerror(error));
    return error;
}
