/* SPDX-License-Identifier: Apache-2.0 */
/* The module "area": the area bound of more than two architectures, on Clp. */
#include "world/modules/module.h"

extern const struct duet__area_module duet__module;

const struct duet__area_module duet__module = {
    .module.build = DUET_MODULE_BUILD,
    .prices = duet__area_prices,
};
