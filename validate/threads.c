/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures what threads of this machine take when a platform's pace is emulated on it. Kernels and
 * copies last what the platform says; waking a thread, and noticing what a device has done, take
 * what they take here.
 */
#include "calibrate/costs.h"
#include "validate/experiment.h"
#include "base/clock.h"

static const double BUDGET_S = 1;

/* Returns the configuration with most GPUs, on which the threads have most to do. */
static const struct duet_config *largest(const struct duet__experiment *experiment)
{
    const struct duet__trial *most = NULL;

    for (size_t i = 0; i < experiment->trial_count; i++)
        if (!experiment->trials[i].failure && (!most || experiment->trials[i].gpus > most->gpus))
            most = &experiment->trials[i];
    return most ? &most->real.config : NULL;
}

/* True if the measurements shall end: asked between two of them. */
static bool stop(void *monitor)
{
    return duet__monitor_signal(monitor) != 0;
}

/*
 * Gives the platform a measured cost; its times are multiplied by the scale afterwards. A cost that
 * was not measured stays as the platform has it. Returns the seconds; 0: not measured.
 */
static double use_cost(const struct duet__experiment *experiment,
                       const struct duet__measured *measured, double *cost)
{
    if (!measured->times.count || !(measured->times.median > 0))
        return 0;
    *cost = measured->times.median / duet__request_scale(&experiment->base);
    return measured->times.median;
}

static void use_costs(struct duet__experiment *experiment, const struct duet__measured *measured)
{
    struct duet_costs *costs = &experiment->platform->costs;

    experiment->wake_s = use_cost(experiment, &measured[DUET__COST_WAKE], &costs->wake_s);
    experiment->event_s = use_cost(experiment, &measured[DUET__COST_EVENT], &costs->event_s);
    for (size_t i = 0; i < experiment->trial_count; i++)
        experiment->trials[i].simulated.config.jitter = true;
}

int duet__experiment_measure_threads(struct duet__experiment *experiment,
                                     struct duet_message *message)
{
    const struct duet_config *config = largest(experiment);
    struct duet__monitor monitor = {0};
    struct duet__measured costs[DUET__COSTS];
    struct duet_config own;
    int error;

    if (!config)
        return 0;
    own = *config;
    own.nodes = NULL;
    own.cpus = -1; /* one thread wakes another, however many CPUs the cases have */
    duet__monitor_start(&monitor, false, 0, 0);
    error = duet__costs_measure(&(struct duet__measurement){.config = &own,
                                                            .end_s = duet__clock_s() + BUDGET_S,
                                                            .stop = stop,
                                                            .context = &monitor,
                                                            .message = message},
                                costs);
    duet__monitor_stop(&monitor);
    experiment->number = duet__monitor_signal(&monitor);
    if (experiment->number)
        return 0; /* interrupted measurements say nothing */
    if (!error)
        use_costs(experiment, costs);
    return error;
}
