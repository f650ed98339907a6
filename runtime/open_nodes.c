/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a runtime that is one node of several, each a process, over MPI. */
#include <string.h>

#include "core/engine.h"
#include "nodes/mpi.h"
#include "nodes/nodes.h"
#include "real/real.h"
#include "runtime/open.h"

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
    int error = duet__open_real(out, &mine, platform, &part, message);
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

int duet__open_node(struct duet_runtime **out, const struct duet_config *config,
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
