/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules: the parts of duet that bring large libraries with them, in shared objects of their own
 * that are opened when something needs them. Each part is used through the header that it has
 * (sim/network.h, workloads/kernels.h, nodes/mpi.h); what is linked decides whether it is
 * inside the program, as in tests, or whether NAME.c of this folder stands there, which opens the
 * module and calls it through a table. NAME_module.c is the module's own: that table.
 *
 * A module has copies of its own of what it uses of the core: functions without state.
 */
#ifndef DUET_RUNTIME_MODULES_MODULE_H
#define DUET_RUNTIME_MODULES_MODULE_H

#include <stdbool.h>
#include <stddef.h>

#include <duet/error.h>

#include "core/engine.h"
#include "nodes/mpi.h"
#include "sim/network.h"
#include "workloads/kernels.h"

/* Head of each module's table, which the module exports as `duet__module`. */
struct duet__module {
    const char *build; /* DUET_MODULE_BUILD; another duet's table may have another form */
};

struct duet__simgrid_module {
    struct duet__module module;
    __typeof__(duet__network_simgrid) *engine;
};

struct duet__blas_module {
    struct duet__module module;
    __typeof__(duet__blas_kernel) *kernel;
    __typeof__(duet__blas_begin) *begin;
    __typeof__(duet__residual) *residual;
    __typeof__(duet__blas_about) *about;
};

struct duet__mpi_module {
    struct duet__module module;
    __typeof__(duet__mpi_meet) *meet;
    __typeof__(duet__mpi_agree) *agree;
    __typeof__(duet__mpi_decline) *decline;
    __typeof__(duet__mpi_spread) *spread;
    __typeof__(duet__mpi_start) *start;
    __typeof__(duet__mpi_transport) *transport;
    __typeof__(duet__mpi_measure) *measure;
};

/*
 * Returns the table of the module `name`, which stays open until the process ends: later calls cost
 * little. NULL with a message: this build lacks it, it is not where it belongs, a library is
 * missing, or it is of another build.
 */
const void *duet__module_open(const char *name, struct duet_message *message);

/* Returns the file libduet-NAME.so, for g_free; NULL: it is not where it belongs. */
char *duet__module_path(const char *name);

#endif
