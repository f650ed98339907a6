/* SPDX-License-Identifier: Apache-2.0 */
/* Times of kernels on the simulated machine: the calibration's means, or draws around them. */
#include <stdlib.h>

#include "sim/internal.h"

int duet__sim_classify(void *engine, const struct duet__class *klass, uint64_t *archs,
                       struct duet_message *message)
{
    struct sim *sim = engine;
    return duet__class_timed(klass, sim->options.calibration, sim->options.extrapolate, archs,
                             message);
}

/* Looks up the times of a class; a kernel known only to a cost function has a mean alone. */
static void look_up_point(const struct sim *sim, const struct duet__class *klass, unsigned arch,
                          struct duet__point *out)
{
    if (duet__class_point(klass, arch, sim->options.calibration, sim->options.extrapolate, out))
        return;
    *out =
        (struct duet__point){.mean_s = duet__class_calibrated(klass, arch, sim->options.calibration,
                                                              sim->options.extrapolate, NULL),
                             .uncertainty = DUET__GUESS_UNCERTAINTY,
                             .basis = DUET__GUESSED};
}

/* True if the host's memory has workers of this architecture. */
static bool is_of_host(const struct sim *sim, unsigned arch)
{
    for (unsigned w = 0; w < sim->machine.worker_count; w++)
        if (sim->machine.workers[w].node == DUET_HOST && sim->machine.workers[w].arch == arch)
            return true;
    return false;
}

/*
 * Returns the mean of the class, whatever is drawn: bounds must not depend on the estimates of
 * policies. If it depends on the circumstances, the mean under the best ones.
 */
double duet__sim_mean(void *engine, const struct duet__class *klass, unsigned arch)
{
    const struct sim *sim = engine;
    struct duet__point point;
    look_up_point(sim, klass, arch, &point);
    if (!sim->cores || !is_of_host(sim, arch))
        return point.mean_s;
    double best_s = point.base_s > 0 ? point.base_s : point.mean_s;
    /* some kernels were measured to be faster beside others */
    return point.busy_ratio > 0 && point.busy_ratio < 1 ? best_s * point.busy_ratio : best_s;
}

/* Looks up the times that a class has in this simulation, where those of the machine are drawn. */
static void draw_point(const struct sim *sim, const struct duet__class *klass, unsigned arch,
                       struct duet__point *out)
{
    const char *name = sim->machine.archs[arch].name;
    double factor;
    look_up_point(sim, klass, arch, out);
    if (!sim->options.noise)
        return;
    factor = duet__draw_kernel(&sim->options.draws, duet__class_kernel(klass), name, out);
    if (is_of_host(sim, arch))
        factor *= duet__draw_state(&sim->options.draws, &sim->options.calibration->states);
    out->mean_s *= factor;
    out->deviation_s *= factor;
    out->base_s *= factor;
    out->memory_s *= factor;
}

/* Returns the place of a class's points, by architecture; NULL: out of memory. */
static struct duet__point **points_of(struct sim *sim, size_t number)
{
    if (number >= sim->point_count) {
        size_t count = 2 * number + 64;
        struct duet__point **points = realloc(sim->points, count * sizeof(struct duet__point *));
        if (!points)
            return NULL;
        for (size_t i = sim->point_count; i < count; i++)
            points[i] = NULL;
        sim->points = points;
        sim->point_count = count;
    }
    return &sim->points[number];
}

/*
 * Returns the times of the task's class on an architecture, computed at its first execution. Those
 * of a task whose class has no number are valid until the next call. NULL: out of memory.
 */
const struct duet__point *duet__sim_point(struct sim *sim, const struct duet_task *task,
                                          unsigned arch)
{
    const struct duet__class klass = duet__task_class(task);
    if (klass.number == DUET_UNNUMBERED) {
        draw_point(sim, &klass, arch, &sim->point);
        return &sim->point;
    }
    struct duet__point **points = points_of(sim, klass.number);
    if (points && !*points) {
        *points = malloc(sim->machine.arch_count * sizeof **points);
        for (unsigned a = 0; *points && a < sim->machine.arch_count; a++)
            draw_point(sim, &klass, a, &(*points)[a]);
    }
    return points && *points ? &(*points)[arch] : NULL;
}

static uint64_t stream_of(uint64_t seed, uint64_t task)
{
    return duet_random_stream(seed ^ UINT64_C(0x6e6f697365), task);
}

/*
 * Returns the factor drawn for a task: by two numbers from its own random stream, which depends on
 * the seed and the task alone, so that every policy meets the same ones (common random numbers).
 */
double duet__sim_factor(const struct sim *sim, const struct duet_task *task,
                        const struct duet__point *point)
{
    if (!sim->options.noise)
        return 1;
    uint64_t state = stream_of(sim->options.seed, duet_task_id(task));
    double u = duet_random_unit(&state), v = duet_random_unit(&state);
    return duet__factor(point, u, v);
}

/* Returns the seconds of this execution on that architecture, if nothing is shared. */
double duet__sim_seconds(struct sim *sim, const struct duet_task *task, unsigned arch)
{
    const struct duet__point *point = duet__sim_point(sim, task, arch);
    if (!point) {
        duet__fail_run(sim->core, DUET_ENOMEM, "no memory left for kernel times");
        return 0;
    }
    return point->mean_s * duet__sim_factor(sim, task, point);
}

void duet__sim_timings_fini(struct sim *sim)
{
    for (size_t i = 0; i < sim->point_count; i++)
        free(sim->points[i]);
    free(sim->points);
}
