/* SPDX-License-Identifier: Apache-2.0 */
/* Clp, in its module, as it brings LAPACK with it: opened for machines of three architectures. */
#include "world/modules/module.h"

int duet__area_prices(const struct duet__area *area, double *prices, double *optimum_s,
                      struct duet_message *message)
{
    const struct duet__area_module *module = duet__module_open("area", message);
    return module ? module->prices(area, prices, optimum_s, message) : DUET_EABSENT;
}
