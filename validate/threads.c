/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What threads of this machine take when a platform's pace is emulated on it. Kernels and copies
 * last what the platform says; to wake a thread, and to notice what a device has done, takes what
 * it takes here.
 */
#include "calibrate/costs.h"
#include "validate/experiment.h"
#include "world/clock.h"

static const double BUDGET_S = 1;

/* The configuration with most devices, on which the threads have most to do. */
static const struct duet_config *largest(const struct duet_experiment *experiment)
{
    const struct duet_pair *most = NULL;

    for (size_t i = 0; i < experiment->pair_count; i++)
        if (!experiment->pairs[i].failure && (!most || experiment->pairs[i].gpus > most->gpus))
            most = &experiment->pairs[i];
    return most ? &most->real.config : NULL;
}

/* Asked between measurements: whether to give up. */
static bool stop(void *monitor)
{
    return duet_monitor_signal(monitor) != 0;
}

/*
 * Adds one that was measured, as the simulations have it: their times are multiplied by the scale
 * afterwards. What was not measured stays as the platform has it.
 */
static void add_cost(GString *text, const char *name, double seconds, double scale)
{
    char number[G_ASCII_DTOSTR_BUF_SIZE];

    if (!(seconds > 0))
        return;
    g_ascii_formatd(number, sizeof(number), "%.9f", seconds / scale);
    g_string_append_printf(text, "%s%s=%ss", text->len ? "," : "", name, number);
}

static double median_of(const struct duet__measured *cost)
{
    return cost->times.count ? cost->times.median : 0;
}

static void use_costs(struct duet_experiment *experiment, const struct duet__measured *costs)
{
    double scale = duet_experiment_scale(experiment);
    GString *text = g_string_new(NULL);

    experiment->wake_s = median_of(&costs[DUET__COST_WAKE]);
    experiment->event_s = median_of(&costs[DUET__COST_EVENT]);
    add_cost(text, "wake", experiment->wake_s, scale);
    add_cost(text, "event", experiment->event_s, scale);
    experiment->thread_costs = g_string_free(text, FALSE);
    for (size_t i = 0; i < experiment->pair_count; i++) {
        struct duet_config *config = &experiment->pairs[i].simulated.config;

        if (*experiment->thread_costs)
            config->costs = experiment->thread_costs;
        config->jitter = true;
    }
}

int duet_experiment_measure_threads(struct duet_experiment *experiment,
                                    struct duet_message *message)
{
    const struct duet_config *config = largest(experiment);
    struct duet_monitor monitor = {0};
    struct duet__measured costs[DUET__COSTS];
    struct duet_config own;
    int error;

    if (!config)
        return 0;
    own = *config;
    own.cpus = -1; /* one thread wakes another, however many CPUs the cases have */
    duet_monitor_start(&monitor, false, 0, 0);
    error = duet__costs_measure(&(struct duet__measurement){.config = &own,
                                                            .end_s = duet__clock_s() + BUDGET_S,
                                                            .stop = stop,
                                                            .context = &monitor,
                                                            .message = message},
                                costs);
    duet_monitor_stop(&monitor);
    experiment->number = duet_monitor_signal(&monitor);
    if (experiment->number)
        return 0; /* what was interrupted says nothing */
    if (!error)
        use_costs(experiment, costs);
    return error;
}
