/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up classes in calibrations, for engines whose kernels take calibrated times. */
#include "platforms/model/curves.h"

#include "core/engine.h"

/* Fails with the sizes that a curve covers: tile edges where they are known. */
static int refuse_size(const struct duet__class *klass, const struct duet__curve *curve,
                       struct duet_message *message)
{
    const struct duet__point *low = &curve->points[0], *high = &curve->points[curve->count - 1];
    const char *kernel = duet__class_kernel(klass);
    const char *unit = klass->counts_flops ? "flops" : "bytes";
    if (low->size > 0 && high->size > 0)
        return duet_fail(message, DUET_ENOMODEL,
                         "kernel %s with %.4g %s lies outside what was measured on %s (tiles of %g "
                         "to %g: %.4g to %.4g %s): choose another tile size, or allow "
                         "extrapolation (--duet-extrapolate)",
                         kernel, klass->work, unit, curve->arch, low->size, high->size, low->work,
                         high->work, unit);
    return duet_fail(message, DUET_ENOMODEL,
                     "kernel %s with %.4g %s lies outside what was measured on %s (%.4g to %.4g "
                     "%s): choose another size, or allow extrapolation (--duet-extrapolate)",
                     kernel, klass->work, unit, curve->arch, low->work, high->work, unit);
}

static const struct duet__curve *curve_of(const struct duet__class *klass, unsigned arch,
                                          const struct duet__calibration *calibration)
{
    return duet__calibration_find(calibration, duet__class_kernel(klass),
                                  duet__class_machine(klass)->archs[arch].name);
}

int duet__class_timed(const struct duet__class *klass, const struct duet__calibration *calibration,
                      bool extrapolate, uint64_t *archs, struct duet_message *message)
{
    const struct duet_machine *machine = duet__class_machine(klass);
    for (unsigned a = 0; a < machine->arch_count; a++) {
        if (!(*archs >> a & 1))
            continue;
        const struct duet__curve *curve = curve_of(klass, a, calibration);
        struct duet__point point;
        bool cost = duet__class_cost(klass, a) > 0;
        if (!curve && !cost)
            *archs &= ~(UINT64_C(1) << a);
        if (curve && !cost && duet__curve_point(curve, klass->work, extrapolate, &point))
            return refuse_size(klass, curve, message);
    }
    if (!*archs && !calibration->count)
        return duet_fail(message, DUET_ENOMODEL,
                         "no time is known for kernel %s: %s comes without kernel times. Choose a "
                         "platform that has some (an XML file names them by the property "
                         "duet.calibration)" DUET__OWN_TIMES,
                         duet__class_kernel(klass), machine->name);
    if (!*archs)
        return duet_fail(message, DUET_ENOMODEL,
                         "no time is known for kernel %s on any architecture of %s that implements "
                         "it: choose another platform" DUET__OWN_TIMES,
                         duet__class_kernel(klass), machine->name);
    return DUET_OK;
}

bool duet__class_point(const struct duet__class *klass, unsigned arch,
                       const struct duet__calibration *calibration, bool extrapolate,
                       struct duet__point *out)
{
    const struct duet__curve *curve = curve_of(klass, arch, calibration);
    return curve && duet__curve_point(curve, klass->work, extrapolate, out) == DUET_OK;
}

double duet__class_calibrated(const struct duet__class *klass, unsigned arch,
                              const struct duet__calibration *calibration, bool extrapolate,
                              double *deviation_s)
{
    struct duet__point point = {0};
    if (!duet__class_point(klass, arch, calibration, extrapolate, &point))
        point.mean_s = duet__class_cost(klass, arch);
    if (deviation_s)
        *deviation_s = point.deviation_s;
    return point.mean_s;
}
