/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels take on the simulated machine: the calibration's means, or draws around them. */
#include <math.h>
#include <stdlib.h>

#include <duet/random.h>

#include "platforms/model/lookup.h"
#include "sim/internal.h"

int duet__sim_classify(void *engine, const struct duet__class *klass, uint64_t *archs,
                       struct duet_message *message)
{
    struct sim *sim = engine;
    return duet__class_timed(klass, sim->options.calibration, sim->options.extrapolate, archs,
                             message);
}

static struct timing measure(const struct sim *sim, const struct duet__class *klass, unsigned arch)
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

/* The whole point; of a kernel that only a cost function knows, the time. */
static void look_up(const struct sim *sim, const struct duet__class *klass, unsigned arch,
                    struct duet__point *out)
{
    if (duet__class_point(klass, arch, sim->options.calibration, sim->options.extrapolate, out))
        return;
    *out =
        (struct duet__point){.mean_s = duet__class_calibrated(klass, arch, sim->options.calibration,
                                                              sim->options.extrapolate, NULL)};
}

/* Is the time of a class on this architecture more than a mean and a deviation? */
static bool needs_point(const struct sim *sim, const struct duet__point *point)
{
    return sim->cores || (sim->options.noise && (point->noise > 0 || point->run_deviation > 0));
}

/*
 * What executions of a class take on one architecture. What else is known of it goes to `room`,
 * where it is needed.
 */
static struct timing work_out(const struct sim *sim, const struct duet__class *klass, unsigned arch,
                              struct duet__point *room)
{
    struct timing timing = measure(sim, klass, arch);
    if (!sim->cores && !sim->options.noise)
        return timing;
    look_up(sim, klass, arch, room);
    if (needs_point(sim, room))
        timing.point = room;
    return timing;
}

/* Has the host's memory workers of this architecture? */
static bool of_host(const struct sim *sim, unsigned arch)
{
    for (unsigned w = 0; w < sim->machine.worker_count; w++)
        if (sim->machine.workers[w].node == DUET_HOST && sim->machine.workers[w].arch == arch)
            return true;
    return false;
}

/*
 * The mean of the class, whatever is drawn: bounds must not depend on what policies believe. Where
 * it depends on the circumstances, that of the best.
 */
double duet__sim_mean(void *engine, const struct duet__class *klass, unsigned arch)
{
    const struct sim *sim = engine;
    struct duet__point point = {0};
    if (sim->cores && of_host(sim, arch))
        look_up(sim, klass, arch, &point);
    double best_s = point.base_s > 0 ? point.base_s : measure(sim, klass, arch).mean_s;
    /* some kernels were measured to be faster beside others */
    return point.busy_ratio > 0 && point.busy_ratio < 1 ? best_s * point.busy_ratio : best_s;
}

/* Where the timings of a class are kept, by architecture; NULL: out of memory. */
static struct timing **place_of(struct sim *sim, size_t number)
{
    if (number >= sim->timing_count) {
        size_t count = 2 * number + 64;
        struct timing **timings = realloc(sim->timings, count * sizeof(struct timing *));
        if (!timings)
            return NULL;
        for (size_t i = sim->timing_count; i < count; i++)
            timings[i] = NULL;
        sim->timings = timings;
        sim->timing_count = count;
    }
    return &sim->timings[number];
}

/* The timings of a class by architecture, and room for the points behind them. NULL: no memory. */
static struct timing *work_out_all(const struct sim *sim, const struct duet__class *klass)
{
    unsigned archs = sim->machine.arch_count;
    bool points = sim->cores || sim->options.noise;
    struct timing *timings =
        malloc(archs * (sizeof *timings + points * sizeof(struct duet__point)));
    struct duet__point *room = (struct duet__point *)(void *)(timings + archs), none;
    for (unsigned a = 0; timings && a < archs; a++)
        timings[a] = work_out(sim, klass, a, points ? &room[a] : &none);
    return timings;
}

/*
 * How long the task takes on an architecture, worked out at the first execution of its class, or
 * for each of those that have none of their own. NULL: out of memory.
 */
static const struct timing *timing_of(struct sim *sim, const struct duet_task *task, unsigned arch)
{
    const struct duet__class klass = duet__task_class(task);
    if (klass.number == DUET_UNNUMBERED) {
        sim->timing = work_out(sim, &klass, arch, &sim->point);
        return &sim->timing;
    }
    struct timing **timings = place_of(sim, klass.number);
    if (timings && !*timings)
        *timings = work_out_all(sim, &klass);
    return timings && *timings ? &(*timings)[arch] : NULL;
}

static uint64_t stream_of(uint64_t seed, uint64_t task)
{
    return duet_random_stream(seed ^ UINT64_C(0x6e6f697365), task);
}

/*
 * A log-normal draw (kernel times are skewed to the right and never negative) that depends on the
 * seed and the task alone: every policy meets the same luck (common random numbers).
 */
static double draw(const struct timing *timing, uint64_t seed, uint64_t task)
{
    const double pi = 3.14159265358979323846;
    uint64_t state = stream_of(seed, task);
    double radius = sqrt(-2 * log1p(-duet_random_unit(&state)));
    double normal = radius * cos(2 * pi * duet_random_unit(&state));
    return exp(timing->mu + timing->sigma * normal);
}

/* The number below which a standard normal variable is with probability p, 0 < p < 1. */
static double normal_quantile(double p)
{
    double low = -40, high = 40;
    while (high - low > 1e-12) {
        double middle = (low + high) / 2;
        if (erfc(-middle / sqrt(2)) / 2 < p)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

/*
 * The machine's state in a run, in deviations. Runs with one seed after another have evenly spread
 * states, of which the first is the median (the additive recurrence of the golden ratio: Weyl,
 * Mathematische Annalen 77, 1916): the median of a few runs is then that of many.
 */
double duet__sim_state(const struct sim_options *options)
{
    uint64_t place = (UINT64_C(1) << 63) + (options->seed - 1) * UINT64_C(0x9e3779b97f4a7c15);
    return options->noise ? normal_quantile(((double)(place >> 12) + 0.5) * 0x1p-52) : 0;
}

/* Whatever is drawn for a task: two numbers from its own random stream. */
double duet__sim_factor(const struct sim *sim, const struct duet_task *task,
                        const struct duet__point *point)
{
    if (!sim->options.noise)
        return 1;
    uint64_t state = stream_of(sim->options.seed, duet_task_id(task));
    double u = duet_random_unit(&state), v = duet_random_unit(&state);
    return duet__factor(point, u, v) * exp(point->run_deviation * sim->state);
}

/* Seconds this execution takes on that architecture, if nothing is shared. */
double duet__sim_seconds(struct sim *sim, const struct duet_task *task, unsigned arch)
{
    const struct timing *timing = timing_of(sim, task, arch);
    if (!timing) {
        duet__fail_run(sim->core, DUET_ENOMEM, "no memory left for kernel times");
        return 0;
    }
    if (timing->point && timing->point->noise > 0)
        return timing->mean_s * duet__sim_factor(sim, task, timing->point);
    double state = timing->point ? exp(timing->point->run_deviation * sim->state) : 1;
    return state * (timing->sigma > 0 ? draw(timing, sim->options.seed, duet_task_id(task))
                                      : timing->mean_s);
}

/* What was measured of such executions, if something is shared, until the next call; NULL: out of
 * memory. */
const struct duet__point *duet__sim_point(struct sim *sim, const struct duet_task *task,
                                          unsigned arch)
{
    const struct timing *timing = timing_of(sim, task, arch);
    return timing ? timing->point : NULL;
}

void duet__sim_timings_fini(struct sim *sim)
{
    for (size_t i = 0; i < sim->timing_count; i++)
        free(sim->timings[i]);
    free(sim->timings);
}
