/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a runtime that simulates: one node, or a cluster of nodes that are alike. */
#include <glib.h>
#include <string.h>

#include "core/engine.h"
#include "nodes/nodes.h"
#include "sim/sim.h"
#include "runtime/open.h"
#include "runtime/settings.h"
#include "base/units.h"

/* An opening under way. */
struct opening {
    const struct duet_config *config;
    struct duet_grid grid;
    unsigned nodes;
    struct duet__times *times;
    struct duet_machine machine;
    struct duet__network network;
    struct sim_options options;
    struct duet__core_config core; /* core of the first node */
    void **engines;
    struct duet_runtime **cores;
};

/* Tasks that a core keeps back enter when its own application waits: here it is one for all. */
static int check_nodes(const struct opening *opening, struct duet_message *message)
{
    const struct duet__core_config *core = &opening->core;
    if (opening->nodes > 1 && core->policy->plan)
        return duet_fail(message, DUET_EINVAL,
                         "policy %s plans all tasks at once, which simulations of several nodes do "
                         "not know: choose another one",
                         core->policy->name);
    if (opening->nodes > 1 && (core->hold || core->priorities == DUET__BOTTOM_LEVEL))
        return duet_fail(message, DUET_EINVAL,
                         "simulations of several nodes hold no tasks back (%s): leave it out",
                         core->hold ? "hold" : "priorities by bottom level");
    return DUET_OK;
}

/* Reads all parts but the engines, which are made when nothing else can be refused. */
static int read_all(struct opening *opening, const struct duet__platform *platform,
                    struct duet_message *message)
{
    const struct duet_config *config = opening->config;
    const char *engine = config->network_engine ? config->network_engine : "fluid";
    struct duet__draws draws = {.seed = config->seed, .hold = platform->hold};
    unsigned without = 0;
    int error =
        duet__open_platform(platform, NULL, config, &opening->times, &opening->machine, message);
    if (error)
        return error;
    if (strcmp(engine, "fluid") != 0 && strcmp(engine, "simgrid") != 0)
        error = duet_fail(message, DUET_EINVAL,
                          "--duet-network-engine: '%s' is no engine of networks, of which there "
                          "are fluid and simgrid",
                          engine);
    if (!error && opening->nodes > 1)
        error = duet__open_network(platform, config, opening->nodes, &opening->network, message);
    if (!error)
        error = duet__effects_parse("--duet-without", config->without, &without, message);
    if (!error)
        error = duet__draws_parse("--duet-interval", config->interval, &draws.runs, message);
    if (config->noise)
        duet__draw_network(&draws, &opening->network);
    opening->options = (struct sim_options){
        .calibration = &opening->times->calibration,
        .noise = config->noise,
        .draws = draws,
        .jitter = config->jitter,
        .extrapolate = config->extrapolate,
        .seed = config->seed,
        .effects = DUET__EFFECTS & ~without,
        .nodes = opening->nodes,
        .network = opening->nodes > 1 ? &opening->network : NULL,
        .simgrid = !strcmp(engine, "simgrid"),
    };
    if (opening->options.simgrid || opening->network.kind == DUET__NETWORK_FILE)
        duet__code_came();
    if (!error)
        error = duet__open_core(&opening->core, config, message);
    return error ? error : check_nodes(opening, message);
}

static int make_nodes(struct opening *opening, struct duet_message *message)
{
    const struct duet__nodes_config config = {.count = opening->nodes,
                                              .hosted = opening->nodes,
                                              .grid = opening->grid,
                                              .cores = opening->cores,
                                              .transport = duet__sim_transport(),
                                              .transport_of = opening->engines[0]};
    struct duet__nodes *nodes; /* owned by the first core from now on */
    return duet__nodes_new(&nodes, &config, message);
}

/* Makes a core for each engine, of which the first one has the kernel times. */
static int make_cores(struct opening *opening, struct duet_message *message)
{
    struct duet__core_config core = opening->core;
    int error = DUET_OK;
    unsigned made = 0;
    for (; made < opening->nodes && !error; made++) {
        core.engine = opening->engines[made];
        core.seed = duet__node_seed(opening->core.seed, made);
        error = duet__open_bind(&opening->cores[made], &core, opening->config, opening->times, 1,
                                message);
        if (!error && !made)
            duet__remember(opening->cores[0], opening->config, opening->times);
        if (!error)
            duet__sim_attach(core.engine, opening->cores[made]);
    }
    if (!opening->cores[0])
        duet__times_free(opening->times);
    if (!error && opening->nodes > 1)
        error = make_nodes(opening, message);
    for (unsigned n = made; n < opening->nodes && error; n++)
        core.ops->destroy(opening->engines[n]);
    for (unsigned n = made; n > 0 && error; n--) /* the first core has what others need */
        duet__core_free(opening->cores[n - 1]);
    return error;
}

static int open_on(struct duet_runtime **out, struct opening *opening,
                   const struct duet__platform *platform, struct duet_message *message)
{
    struct duet_machine drawn = {.node_count = 0}; /* policies expect the machine as it is known */
    int error = read_all(opening, platform, message);
    opening->core.machine = &opening->machine;
    opening->core.ops = duet__sim_ops();
    if (!error && duet_machine_copy(&drawn, &opening->machine))
        error = duet_fail(message, DUET_ENOMEM, "no memory left for the machine");
    if (!error)
        duet__draw_machine(&opening->options.draws,
                           opening->options.noise ? &opening->times->calibration.states : NULL,
                           &drawn);
    if (!error)
        error = duet__sim_new(opening->engines, &drawn, &opening->options, message);
    duet_machine_fini(&drawn);
    if (error)
        duet__times_free(opening->times);
    else
        error = make_cores(opening, message);
    duet_machine_fini(&opening->machine);
    if (error)
        return error;
    *out = opening->cores[0];
    duet__remember_cores(*out, g_steal_pointer(&opening->cores), opening->nodes);
    return DUET_OK;
}

int duet__open_simulated(struct duet_runtime **out, const struct duet_config *config,
                         const struct duet__platform *platform, struct duet_message *message)
{
    struct opening opening = {.config = config, .grid = duet__nodes_wanted(config)};
    struct duet__platform *loaded = NULL;
    int error = platform ? DUET_OK : duet__platform_load(config->simulate, &loaded, message);
    if (error)
        return error;
    opening.nodes = opening.grid.rows * opening.grid.cols;
    opening.engines = g_new0(void *, opening.nodes);
    opening.cores = g_new0(struct duet_runtime *, opening.nodes);
    error = open_on(out, &opening, platform ? platform : loaded, message);
    g_free(opening.engines);
    g_free(opening.cores);
    duet__platform_free(loaded);
    return error;
}
