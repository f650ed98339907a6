/* SPDX-License-Identifier: Apache-2.0 */
/* The area bound, in its module: Clp, which brings LAPACK with it, is opened when one is wanted. */
#include "world/modules/module.h"

int duet_area_bound(const struct duet_area_class *classes, size_t class_count,
                    const unsigned *workers, size_t arch_count, double *area_s,
                    struct duet_message *message)
{
    const struct duet__area_module *area = duet__module_open("area", message);
    return area ? area->bound(classes, class_count, workers, arch_count, area_s, message)
                : DUET_EABSENT;
}
