/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces the transport over MPI if duet is built without MPI. */
#include "nodes/mpi.h"

int duet__mpi_meet(struct duet__mpi **out, unsigned nodes, struct duet__mpi_place *place,
                   struct duet_message *message)
{
    *out = NULL;
    return duet_fail(message, DUET_EABSENT,
                     "%u nodes are wanted, and duet was built without MPI: build it where "
                     "libopenmpi-dev is, or simulate them",
                     nodes);
}

int duet__mpi_agree(int error, struct duet_message *message)
{
    return error;
}

void duet__mpi_decline(const char *why)
{
}

int duet__mpi_spread(void *data, size_t bytes, unsigned *count, unsigned *near,
                     struct duet_message *message)
{
    return duet_fail(message, DUET_EABSENT,
                     "duet was built without MPI: build it where libopenmpi-dev is, or use "
                     "--shard");
}

void duet__mpi_start(struct duet__mpi *mpi, struct duet_runtime *core, struct duet__nodes *nodes,
                     const struct duet__mpi_calls *calls)
{
}

const struct duet__transport *duet__mpi_transport(void)
{
    return NULL;
}

int duet__mpi_measure(double seconds, struct duet__mpi_measured *out, struct duet_message *message)
{
    *out = (struct duet__mpi_measured){0};
    return duet_fail(message, DUET_EABSENT,
                     "messages cannot be measured: duet was built without MPI, build it where "
                     "libopenmpi-dev is");
}
