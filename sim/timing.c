/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels take on the simulated machine: the calibration's means, or draws around them. */
#include <math.h>
#include <stdlib.h>

#include <duet/random.h>

#include "sim/internal.h"

/* The sizes a curve covers, for a message: tile edges where they are known. */
static int refuse(const struct duet_class *klass, const struct duet_curve *curve,
                  struct duet_message *message)
{
    const struct duet_point *low = &curve->points[0], *high = &curve->points[curve->count - 1];
    const char *kernel = duet__class_kernel(klass);
    double work = duet__class_work(klass);
    const char *unit = duet__class_counts_flops(klass) ? "flops" : "bytes";
    if (low->size > 0 && high->size > 0)
        return duet_fail(message, DUET_ENOMODEL,
                         "kernel %s with %.4g %s lies outside what was measured on %s (tiles of %g "
                         "to %g: %.4g to %.4g %s): choose another tile size, or allow "
                         "extrapolation",
                         kernel, work, unit, curve->arch, low->size, high->size, low->work,
                         high->work, unit);
    return duet_fail(message, DUET_ENOMODEL,
                     "kernel %s with %.4g %s lies outside what was measured on %s (%.4g to %.4g "
                     "%s): choose another size, or allow extrapolation",
                     kernel, work, unit, curve->arch, low->work, high->work, unit);
}

/*
 * Clears the architectures on which nothing is known of the kernel. A size outside the measured
 * ones is refused even if another architecture could take it: leaving one out in silence would
 * simulate another machine.
 */
int duet__sim_classify(void *engine, const struct duet_class *klass, uint64_t *archs,
                       struct duet_message *message)
{
    struct sim *sim = engine;
    for (unsigned a = 0; a < sim->machine.arch_count; a++) {
        if (!(*archs >> a & 1))
            continue;
        const struct duet_curve *curve =
            duet_calibration_find(sim->options.calibration, duet__class_kernel(klass),
                                  sim->machine.archs[a].name);
        bool cost = duet__class_cost(klass, a) > 0;
        if (!curve && !cost)
            *archs &= ~(UINT64_C(1) << a);
        if (curve && !cost &&
            duet_curve_at(curve, duet__class_work(klass), sim->options.extrapolate, NULL, NULL))
            return refuse(klass, curve, message);
    }
    if (!*archs)
        return duet_fail(message, DUET_ENOMODEL,
                         "no time is known for kernel %s on any architecture of %s that implements "
                         "it: choose another platform, or give its codelet a cost function",
                         duet__class_kernel(klass), sim->machine.name);
    return DUET_OK;
}

static struct timing measure(const struct sim *sim, const struct duet_class *klass, unsigned arch)
{
    struct timing timing = {0};
    double deviation = 0;
    const struct duet_curve *curve =
        duet_calibration_find(sim->options.calibration, duet__class_kernel(klass),
                              sim->machine.archs[arch].name);
    if (!curve || duet_curve_at(curve, duet__class_work(klass), sim->options.extrapolate,
                                &timing.mean_s, &deviation))
        timing.mean_s = duet__class_cost(klass, arch);
    if (sim->options.noise && deviation > 0 && timing.mean_s > 0) {
        double ratio = deviation / timing.mean_s;
        double variance = log1p(ratio * ratio);
        timing.sigma = sqrt(variance);
        timing.mu = log(timing.mean_s) - variance / 2;
    }
    return timing;
}

/* The mean of the class, whatever is drawn: bounds must not depend on what policies believe. */
double duet__sim_mean(void *engine, const struct duet_class *klass, unsigned arch)
{
    return measure(engine, klass, arch).mean_s;
}

/* The timings of a class, worked out at its first execution; NULL: out of memory. */
static const struct timing *timings_of(struct sim *sim, const struct duet_class *klass)
{
    size_t index = duet__class_index(klass);
    if (index >= sim->timing_count) {
        size_t count = 2 * index + 64;
        struct timing **timings = realloc(sim->timings, count * sizeof(struct timing *));
        if (!timings)
            return NULL;
        for (size_t i = sim->timing_count; i < count; i++)
            timings[i] = NULL;
        sim->timings = timings;
        sim->timing_count = count;
    }
    if (!sim->timings[index]) {
        struct timing *timing = calloc(sim->machine.arch_count, sizeof *timing);
        if (!timing)
            return NULL;
        for (unsigned a = 0; a < sim->machine.arch_count; a++)
            timing[a] = measure(sim, klass, a);
        sim->timings[index] = timing;
    }
    return sim->timings[index];
}

/*
 * A log-normal draw (kernel times are skewed to the right and never negative) that depends on the
 * seed and the task alone: every policy meets the same luck (common random numbers).
 */
static double draw(const struct timing *timing, uint64_t seed, uint64_t task)
{
    const double pi = 3.14159265358979323846;
    uint64_t state = duet_random_stream(seed ^ UINT64_C(0x6e6f697365), task);
    double radius = sqrt(-2 * log1p(-duet_random_unit(&state)));
    double normal = radius * cos(2 * pi * duet_random_unit(&state));
    return exp(timing->mu + timing->sigma * normal);
}

/* Seconds this execution takes on that architecture. */
double duet__sim_seconds(struct sim *sim, const struct duet_task *task, unsigned arch)
{
    const struct timing *timings = timings_of(sim, duet__task_class(task));
    if (!timings) {
        duet__fail_run(sim->core, DUET_ENOMEM, "no memory left for kernel times");
        return 0;
    }
    const struct timing *timing = &timings[arch];
    return timing->sigma > 0 ? draw(timing, sim->options.seed, duet_task_id(task)) : timing->mean_s;
}

void duet__sim_timings_fini(struct sim *sim)
{
    for (size_t i = 0; i < sim->timing_count; i++)
        free(sim->timings[i]);
    free(sim->timings);
}
