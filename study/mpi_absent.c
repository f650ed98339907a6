/* SPDX-License-Identifier: Apache-2.0 */
/* Stubs in place of MPI where it was not found. */
#include "study/study.h"

int duet__mpi_share(unsigned count, void *data, size_t bytes, unsigned *near,
                    struct duet_message *message)
{
    (void)data, (void)bytes;
    *near = 1;
    return duet_fail(message, DUET_EABSENT,
                     "this is one of %u ranks, but duet was built without MPI: build it where "
                     "libopenmpi-dev is, or use --shard",
                     count);
}
