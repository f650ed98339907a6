/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a runtime that simulates. */
#include "world/close.h"
#include "world/open.h"
#include "core/engine.h"
#include "sim/sim.h"

/* Makes the engine, and a core that takes it over. */
static int bind(const struct duet_config *config, const struct duet_calibration *calibration,
                struct duet_core_config *core, struct duet_runtime **out,
                struct duet_message *message)
{
    unsigned without = 0;
    int error = duet__effects_parse("--without", config->without, &without, message);
    if (error)
        return error;
    const struct sim_options options = {
        .calibration = calibration,
        .noise = config->noise,
        .jitter = config->jitter,
        .extrapolate = config->extrapolate,
        .seed = config->seed,
        .effects = DUET__EFFECTS & ~without,
    };
    error = duet__sim_new(&core->engine, core->machine, &options, message);
    if (error)
        return error;
    error = duet__core_new(out, core, message);
    if (error) {
        core->ops->destroy(core->engine);
        return error;
    }
    duet__sim_attach(core->engine, *out);
    error = duet__open_prime(*out, calibration, 1);
    if (error) {
        duet__core_free(*out);
        *out = NULL;
    }
    return error;
}

void duet__open_ahead(void)
{
    duet__sim_ops();
}

int duet__open_simulated(struct duet_runtime **out, const struct duet_config *config,
                         const struct duet_platform *platform, struct duet_message *message)
{
    struct duet__times *times = NULL;
    struct duet_machine machine = {0};
    struct duet_core_config core;
    int error = duet__open_platform(platform, config->simulate, config, &times, &machine, message);
    if (error)
        return error;
    /* the parts first: a process can make one engine only */
    error = duet__open_core(&core, config, message);
    core.machine = &machine;
    core.ops = duet__sim_ops();
    if (!error)
        error = bind(config, &times->calibration, &core, out, message);
    if (error)
        duet__times_free(times);
    else
        duet__remember(*out, config, times);
    duet_machine_fini(&machine);
    return error;
}
