/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a runtime that simulates. */
#include "world/open.h"
#include "core/engine.h"
#include "sim/sim.h"

void duet__open_ahead(void)
{
    duet__sim_ops();
}

int duet__open_simulated(struct duet_runtime **out, const struct duet_config *config,
                         const struct duet__platform *platform, struct duet_message *message)
{
    struct duet__times *times = NULL;
    struct duet_machine machine = {0};
    struct duet__core_config core;
    unsigned without = 0;
    int error = duet__open_platform(platform, config->simulate, config, &times, &machine, message);
    if (error)
        return error;
    struct sim_options options = {
        .calibration = &times->calibration,
        .noise = config->noise,
        .jitter = config->jitter,
        .extrapolate = config->extrapolate,
        .seed = config->seed,
        .effects = DUET__EFFECTS,
    };
    error = duet__effects_parse("--without", config->without, &without, message);
    options.effects &= ~without;
    /* the parts first: a process can make one engine only */
    if (!error)
        error = duet__open_core(&core, config, message);
    core.machine = &machine;
    core.ops = duet__sim_ops();
    if (!error)
        error = duet__sim_new(&core.engine, &machine, &options, message);
    if (error)
        duet__times_free(times);
    else
        error = duet__open_bind(out, &core, config, times, 1, message);
    if (!error)
        duet__sim_attach(core.engine, *out);
    duet_machine_fini(&machine);
    return error;
}
