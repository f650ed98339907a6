/* SPDX-License-Identifier: Apache-2.0 */
/* The module "sim": the simulated engine, on SimGrid. */
#include "runtime/modules/module.h"

extern const struct duet__sim_module duet__module;

const struct duet__sim_module duet__module = {
    .module.build = DUET_MODULE_BUILD,
    .make = duet__sim_new,
    .ops = duet__sim_ops,
    .transport = duet__sim_transport,
    .attach = duet__sim_attach,
};
