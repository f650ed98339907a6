/* SPDX-License-Identifier: Apache-2.0 */
/* Where data lies, as MPI is told of it: so that it takes it from there and puts it there. */
#ifndef DUET_NODES_MPI_LAYOUT_H
#define DUET_NODES_MPI_LAYOUT_H

#include <mpi.h>

#include "nodes/mpi.h"

/* What a call of MPI takes. duet__mpi_layout_end, after it, gives its type up. */
struct layout {
    void *address;
    int count;
    MPI_Datatype type;
};

/* Of a datum's contents in the host's memory. DUET_ENOMEM, DUET_EIO, errors of calls->pieces. */
DUET_MUST_CHECK int duet__mpi_layout(const struct duet__mpi_calls *calls,
                                     const struct duet_handle *handle, size_t bytes,
                                     struct layout *out);

/* Of `bytes` from an address on. */
DUET_MUST_CHECK int duet__mpi_layout_bytes(void *address, size_t bytes, struct layout *out);

void duet__mpi_layout_end(struct layout *layout);

#endif
