/* SPDX-License-Identifier: Apache-2.0 */
/* The library's start-up: checks the configuration and picks a world. */
#include <math.h>

#include "core/engine.h"
#include "runtime/open.h"
#include "runtime/settings.h"
#include "base/files.h"
#include "base/units.h"

static int unknown_model(const char *name, struct duet_message *message)
{
    g_autoptr(GString) known = g_string_new(NULL);
    for (size_t i = 0; duet_model_at(i); i++)
        g_string_append_printf(known, "%s%s", i ? ", " : "", duet_model_at(i)->name);
    return duet_fail(message, DUET_ENOTFOUND, "unknown performance model '%s': known are %s", name,
                     known->str);
}

int duet__open_core(struct duet__core_config *core, const struct duet_config *config,
                    struct duet_message *message)
{
    const bool traced = config->trace && !config->figures;
    *core = (struct duet__core_config){
        .seed = config->seed,
        .window = config->window,
        .set_arch = config->set_arch,
        .strict = config->strict,
        .keep_going = config->keep_going,
        .hold = config->hold,
        .nearest_source = config->nearest_source,
        .record = config->record || traced || config->calibrate,
        .record_accesses = config->record_accesses || traced || config->calibrate,
        .model_error = config->model_error,
        .perturbation = config->perturbation,
    };
    const struct duet_grid grid = duet__nodes_wanted(config);
    int error = duet__priorities_read(config->priorities, &core->priorities, message);
    if (!error)
        error = duet__policy_load(config->policy ? config->policy : "ws", &core->policy,
                                  core->parameters, message);
    if (!error && grid.rows * grid.cols > 1 && core->policy->candidates)
        error = duet_fail(message, DUET_EINVAL,
                          "policy %s tries others with all tasks at once, of which each of several "
                          "nodes has some: choose another one",
                          core->policy->name);
    if (!error && grid.rows * grid.cols > 1 && duet__followed(core->policy))
        error = duet_fail(message, DUET_EINVAL, "%s: a schedule is of one node", config->policy);
    if (error)
        return error;
    core->chosen = true;
    const char *model = config->model ? config->model : core->policy->model;
    core->model = model ? duet_model_find(model) : duet_model_at(0);
    return core->model ? DUET_OK : unknown_model(model, message);
}

/* Gives a calibration's means, times `scale`, to the scheduler's models. */
static int prime(struct duet_runtime *core, const struct duet__calibration *calibration,
                 double scale)
{
    const struct duet_machine *machine = duet_runtime_machine(core);
    int error = DUET_OK;
    for (size_t c = 0; c < calibration->count; c++) {
        const struct duet__curve *curve = &calibration->curves[c];
        for (unsigned a = 0; a < machine->arch_count; a++) {
            if (strcmp(machine->archs[a].name, curve->arch) != 0)
                continue;
            for (size_t p = 0; p < curve->count && !error; p++)
                error =
                    duet__prime(core, curve->kernel, a, curve->points[p].work,
                                curve->points[p].mean_s * scale, MAX(curve->points[p].samples, 1));
        }
    }
    return error;
}

int duet__open_bind(struct duet_runtime **out, const struct duet__core_config *core,
                    const struct duet_config *config, const struct duet__times *times, double scale,
                    struct duet_message *message)
{
    int error = duet__core_new(out, core, message);
    if (error) {
        core->ops->destroy(core->engine);
        return error;
    }
    if (config->trace && config->simulate)
        duet__keep_entered(*out);
    error = times && !config->learn ? prime(*out, &times->calibration, scale) : DUET_OK;
    if (error) {
        duet__core_free(*out);
        *out = NULL;
    }
    return error;
}

static int check_memory(const struct duet_config *config, struct duet_message *message)
{
    double share = config->gpu_memory_share;
    if (!(share >= 0) || share > 1)
        return duet_fail(message, DUET_EINVAL,
                         "a part of %g of each GPU's memory: it must be above 0 and at most 1",
                         share);
    if (share > 0 && config->gpu_memory_bytes)
        return duet_fail(message, DUET_EINVAL,
                         "the memory of GPUs is given twice: as %llu bytes and as a part of %g",
                         (unsigned long long)config->gpu_memory_bytes, share);
    return DUET_OK;
}

static int check_nodes(const struct duet_config *config, struct duet_message *message)
{
    struct duet_grid grid;
    if (config->network && !config->simulate)
        return duet_fail(message, DUET_EINVAL,
                         "a network (%.300s) is of simulations: name a platform to simulate",
                         config->network);
    int error = duet__parse_nodes("nodes", config->nodes, &grid, message);
    if (!error && grid.rows * grid.cols > 1 && config->keep_going)
        error =
            duet_fail(message, DUET_EINVAL,
                      "a run on %u nodes cannot keep going when a task has failed: no node knows "
                      "what another one could not compute",
                      grid.rows * grid.cols);
    return error;
}

bool duet__open_paced(const struct duet_config *config)
{
    return config->emulate && strcmp(config->emulate, "free") != 0;
}

/* Checks that nothing is asked for that means nothing in the world to be opened. */
static int check(const struct duet_config *config, struct duet_message *message)
{
    if (config->simulate && config->emulate)
        return duet_fail(message, DUET_EINVAL,
                         "simulating (%s) and emulating (%s) exclude each other: name one of them",
                         config->simulate, config->emulate);
    if (config->devices && config->emulate)
        return duet_fail(message, DUET_EINVAL,
                         "this machine's devices (%s) and emulated ones (%s) exclude each other: "
                         "name one of them",
                         config->devices, config->emulate);
    if (config->lose && !config->emulate)
        return duet_fail(message, DUET_EINVAL,
                         "losing a GPU (%s) is for emulated ones: emulate \"free\" or a platform",
                         config->lose);
    if (config->scale != 0 && !duet__open_paced(config))
        return duet_fail(message, DUET_EINVAL,
                         "a scale of time (%g) is for an emulated platform: name one to emulate",
                         config->scale);
    if (!(config->scale >= 0) || isinf(config->scale))
        return duet_fail(message, DUET_EINVAL, "a scale of time of %g: it must be positive",
                         config->scale);
    if (config->calibrate && (config->simulate || duet__open_paced(config)))
        return duet_fail(message, DUET_EINVAL,
                         "kernel times cannot be kept (%.300s) of a simulation or at the pace of "
                         "a platform: nothing is measured in it",
                         config->calibrate);
    if (isnan(config->watchdog_s))
        return duet_fail(message, DUET_EINVAL, "the watchdog's time is no number");
    int error = check_nodes(config, message);
    return error ? error : check_memory(config, message);
}

int duet__open_with(struct duet_runtime **out, const struct duet_config *config,
                    const struct duet__platform *platform, struct duet_message *message)
{
    struct duet_message local = {""};
    struct duet__history *history = NULL;
    *out = NULL;
    int error = check(config, &local);
    if (!error && platform && !config->simulate && !duet__open_paced(config))
        error = duet_fail(&local, DUET_EINVAL,
                          "a platform is given, but not whether to simulate or to emulate it");
    /* of several processes the first one writes the trace, which others may have no folder for */
    if (!error && config->trace && (config->simulate || !config->nodes))
        error = duet__file_check(config->trace, &local);
    if (!error && config->calibrate)
        error = duet__history_open(&history, config, &local);
    if (!error)
        error = config->simulate ? duet__open_simulated(out, config, platform, &local)
                                 : duet__open_real(out, config, platform, &local);
    if (!error) {
        duet__remember_history(*out, history);
        return DUET_OK;
    }
    duet__history_free(history);
    return duet_fail(message, error, "%s", *local.text ? local.text : duet_strerror(error));
}

int duet_open(struct duet_runtime **out, const struct duet_config *config,
              struct duet_message *message)
{
    struct duet_config own;
    int error;
    *out = NULL;
    duet_config_init(&own);
    error =
        config ? duet__config_take(&own, config, message) : duet_config_environment(&own, message);
    return error ? error : duet__open_with(out, &own, NULL, message);
}
