/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels take on the simulated machine: the calibration's means, or draws around them. */
#include <math.h>
#include <stdlib.h>

#include <duet/random.h>

#include "sim/internal.h"

int duet__sim_classify(void *engine, const struct duet_class *klass, uint64_t *archs,
                       struct duet_message *message)
{
    struct sim *sim = engine;
    return duet__class_timed(klass, sim->options.calibration, sim->options.extrapolate, archs,
                             message);
}

static struct timing measure(const struct sim *sim, const struct duet_class *klass, unsigned arch)
{
    struct timing timing = {0};
    double deviation = 0;
    timing.mean_s = duet__class_calibrated(klass, arch, sim->options.calibration,
                                           sim->options.extrapolate, &deviation);
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
