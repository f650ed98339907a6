/* SPDX-License-Identifier: Apache-2.0 */
/* The module "mpi": what carries data between nodes, on MPI. */
#include "runtime/modules/module.h"

extern const struct duet__mpi_module duet__module;

const struct duet__mpi_module duet__module = {
    .module.build = DUET_MODULE_BUILD,
    .meet = duet__mpi_meet,
    .agree = duet__mpi_agree,
    .decline = duet__mpi_decline,
    .spread = duet__mpi_spread,
    .start = duet__mpi_start,
    .transport = duet__mpi_transport,
    .measure = duet__mpi_measure,
};
