/* SPDX-License-Identifier: Apache-2.0 */
/* The module "area": the area bound, on Clp. */
#include "world/modules/module.h"

extern const struct duet__area_module duet__module;

const struct duet__area_module duet__module = {
    .module.build = DUET_MODULE_BUILD,
    .bound = duet_area_bound,
};
