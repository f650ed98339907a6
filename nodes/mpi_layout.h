/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts of data in memory for MPI, so that it sends and receives in place. */
#ifndef DUET_NODES_MPI_LAYOUT_H
#define DUET_NODES_MPI_LAYOUT_H

#include <mpi.h>

#include "nodes/mpi.h"

/* Arguments of an MPI call. duet__mpi_layout_end frees its type after the call. */
struct layout {
    void *address;
    int count;
    MPI_Datatype type;
};

/*
 * Makes the layout of a datum's contents in the host's memory. DUET_ENOMEM, DUET_EIO, errors of
 * calls->pieces.
 */
DUET_MUST_CHECK int duet__mpi_layout(const struct duet__mpi_calls *calls,
                                     const struct duet_handle *handle, size_t bytes,
                                     struct layout *out);

/* Makes the layout of `bytes` at an address. */
DUET_MUST_CHECK int duet__mpi_layout_bytes(void *address, size_t bytes, struct layout *out);

void duet__mpi_layout_end(struct layout *layout);

#endif
