/* SPDX-License-Identifier: Apache-2.0 */
/* The module "simgrid": the engine of networks by SimGrid. */
#include "runtime/modules/module.h"

extern const struct duet__simgrid_module duet__module;

const struct duet__simgrid_module duet__module = {
    .module.build = DUET_MODULE_BUILD,
    .engine = duet__network_simgrid,
};
