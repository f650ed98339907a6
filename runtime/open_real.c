/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a runtime that runs on this machine, with its own devices or emulated ones. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include "runtime/open.h"
#include "runtime/settings.h"
#include "core/engine.h"
#include "nodes/mpi.h"
#include "nodes/nodes.h"
#include "platforms/model/curves.h"
#include "real/real.h"

static double seconds(void *kept, const struct duet__class *klass, unsigned arch)
{
    const struct duet__times *times = kept;
    return duet__class_calibrated(klass, arch, &times->calibration, times->extrapolate, NULL);
}

static int classify(void *kept, const struct duet__class *klass, uint64_t *archs,
                    struct duet_message *message)
{
    const struct duet__times *times = kept;
    return duet__class_timed(klass, &times->calibration, times->extrapolate, archs, message);
}

/* An opening under way. The members that are left at its end are freed. */
struct opening {
    const struct duet_config *config;
    const struct duet__part *part; /* part of this machine; NULL: all of it */
    struct duet__times *times;     /* times of a paced emulation, else NULL */
    double scale;                  /* factor of time of a paced emulation, else 0 */
    struct duet_machine machine;   /* machine of the devices */
    unsigned *devices;             /* numbers at the backends; NULL in a paced emulation */
    struct duet_machine believed;  /* machine of the scheduler: the same at the emulation's pace */
};

/* Slows down the links and routes of a machine whose time runs `scale` times as long. */
static void stretch(struct duet_machine *machine, double scale)
{
    for (unsigned i = 0; i < machine->link_count; i++)
        machine->links[i].bandwidth_Bps /= scale;
    for (size_t i = 0; i < (size_t)machine->node_count * machine->node_count; i++) {
        machine->routes[i].bandwidth_Bps /= scale;
        machine->routes[i].latency_s *= scale;
    }
}

/* An emulated platform: its machine, and its kernel times as pace. */
static int rehearse(struct opening *opening, const struct duet__platform *platform,
                    struct duet_message *message)
{
    const struct duet_config *config = opening->config;
    int error = duet__open_platform(platform, config->emulate, config, &opening->times,
                                    &opening->machine, message);
    if (error)
        return error;
    opening->scale = config->scale > 0 ? config->scale : 1;
    error = duet_machine_copy(&opening->believed, &opening->machine);
    if (!error)
        stretch(&opening->believed, opening->scale);
    return error;
}

/* Opens the machine at hand. */
static int look(struct opening *opening, struct duet_message *message)
{
    int error = duet__real_machine(&opening->machine, &opening->devices, opening->config,
                                   opening->part, message);
    return error ? error : duet_machine_copy(&opening->believed, &opening->machine);
}

unsigned duet__usable_cores(void)
{
    return duet__real_cores();
}

double duet__spin_s(void)
{
    return SPIN_NS * 1e-9;
}

/* Makes the engine and the core, and starts them. */
static int start(struct opening *opening, struct duet__core_config *core, struct duet_runtime **out,
                 struct duet_message *message)
{
    const struct duet_config *config = opening->config;
    struct duet__times *times = opening->times;
    const struct real_pace pace = {.scale = opening->scale,
                                   .seconds = seconds,
                                   .classify = classify,
                                   .times = times};
    struct duet_config own = *config;
    if (opening->part && !opening->part->cores)
        own.no_bind = true; /* processes that have no core each would have the same ones */
    int error = duet__real_new(&core->engine, &opening->machine, &own, opening->devices,
                               times ? &pace : NULL, message);
    if (error)
        return error;
    core->machine = &opening->believed;
    core->computes = !times;
    core->ops = duet__real_ops();
    error = duet__open_bind(out, core, config, times, opening->scale, message);
    if (error)
        return error;
    duet__remember(*out, config, g_steal_pointer(&opening->times));
    error = duet__real_attach(core->engine, *out, message);
    if (error) {
        duet__core_free(*out);
        *out = NULL;
    }
    return error;
}

/* Opens a runtime on a part of this machine; NULL: all of it. */
static int open_part(struct duet_runtime **out, const struct duet_config *config,
                     const struct duet__platform *platform, const struct duet__part *part,
                     struct duet_message *message)
{
    struct opening opening = {.config = config, .part = part};
    struct duet__core_config core;
    int error = duet__open_core(&core, config, message);
    if (!error)
        error = duet__open_paced(config) ? rehearse(&opening, platform, message)
                                         : look(&opening, message);
    if (!error)
        error = start(&opening, &core, out, message);
    duet__times_free(opening.times);
    free(opening.devices);
    duet_machine_fini(&opening.machine);
    duet_machine_fini(&opening.believed);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* One node of several, over MPI                                                                */

static const struct duet__mpi_calls calls = {
    .done = duet__message_done,
    .failed = duet__nodes_failed,
    .pieces = duet__handle_pieces,
    .now = duet_now,
};

/* The runtime of this node alone, and what stands before it. */
static int open_mine(struct duet_runtime **out, struct duet__nodes **nodes,
                     const struct duet_config *config, const struct duet__platform *platform,
                     struct duet_grid grid, struct duet__mpi *mpi,
                     const struct duet__mpi_place *place, struct duet_message *message)
{
    struct duet_config mine = *config;
    const struct duet__part part = {.part = place->position,
                                    .parts = place->beside,
                                    .cores = duet__real_take_cores(place->share, place->sharers,
                                                                   !config->no_bind)};
    mine.quiet |= place->node > 0; /* one node makes the remarks on a machine */
    int error = open_part(out, &mine, platform, &part, message);
    if (error)
        return error;
    const struct duet__nodes_config of_nodes = {.count = grid.rows * grid.cols,
                                                .first = place->node,
                                                .hosted = 1,
                                                .grid = grid,
                                                .cores = out,
                                                .transport = duet__mpi_transport(),
                                                .transport_of = mpi};
    return duet__nodes_new(nodes, &of_nodes, message);
}

/* Opens a runtime as one of several nodes, each a process, in rows and columns. */
static int open_node(struct duet_runtime **out, const struct duet_config *config,
                     const struct duet__platform *platform, struct duet_grid grid,
                     struct duet_message *message)
{
    struct duet__mpi_place place;
    struct duet__nodes *nodes = NULL;
    struct duet__mpi *mpi;
    *out = NULL;
    int error = duet__mpi_meet(&mpi, grid.rows * grid.cols, &place, message);
    if (error)
        return error;
    error = open_mine(out, &nodes, config, platform, grid, mpi, &place, message);
    /* a node that cannot go on tells all: they would wait for it */
    error = duet__mpi_agree(error, message);
    if (!error) {
        duet__mpi_start(mpi, *out, nodes, &calls);
        return DUET_OK;
    }
    if (nodes)
        duet__nodes_free(nodes);
    else
        duet__mpi_transport()->close(mpi);
    duet__core_free(*out);
    *out = NULL;
    return error;
}

int duet__open_real(struct duet_runtime **out, const struct duet_config *config,
                    const struct duet__platform *platform, struct duet_message *message)
{
    const struct duet_grid grid = duet__nodes_wanted(config);
    return grid.rows * grid.cols > 1 ? open_node(out, config, platform, grid, message)
                                     : open_part(out, config, platform, NULL, message);
}
