/* SPDX-License-Identifier: Apache-2.0 */
/* Calibration between the rounds of an experiment: its slices, and the use of its results. */
#include "validate/experiment.h"

#include <math.h>

/* Least time that is worth the name, if the runs of the cases take less. */
static const double least_s = 20;

void duet__recalibration_fini(struct duet__recalibration *recalibration)
{
    if (recalibration->timer) {
        duet__calibrating_fini(&recalibration->calibrating);
        duet__request_fini(&recalibration->runs);
        g_timer_destroy(recalibration->timer);
    }
    duet__calibrate_request_fini(&recalibration->request);
    *recalibration = (struct duet__recalibration){0};
}

/* Takes the calibrated platform to predict from. */
static void use_platform(const struct duet__recalibration *recalibration,
                         struct duet__experiment *experiment)
{
    duet__platform_free(experiment->platform);
    experiment->platform = g_new0(struct duet__platform, 1);
    duet__describe_machine(&recalibration->calibrating, experiment->platform);
    g_free(experiment->platform_name);
    experiment->platform_name = g_strdup(experiment->platform->name);
}

/* ------------------------------------------------------------------------------------------- */
/* Before anything is measured                                                                  */

/* Returns the most GPUs of any case; -1: none says how many. */
static int most_gpus(const struct duet__experiment *experiment)
{
    int most = -1;

    for (size_t i = 0; i < experiment->trial_count; i++)
        most = MAX(most, experiment->trials[i].real.config.gpus);
    return most;
}

int duet__recalibration_begin(struct duet__recalibration *recalibration,
                              struct duet__experiment *experiment, struct duet_message *message)
{
    struct duet__request *runs = &recalibration->runs;
    int error;

    recalibration->timer = g_timer_new();
    duet__request_copy(runs, &experiment->base);
    runs->config.seed = runs->seed;
    runs->config.extrapolate = false;
    runs->config.without = NULL;
    /* all existing GPUs, or as many emulated ones as any case has */
    if (runs->config.emulate)
        runs->config.gpus = most_gpus(experiment);
    recalibration->request.runs = runs;
    recalibration->request.subjects = g_array_new(FALSE, FALSE, sizeof(struct duet__setup));
    recalibration->calibrating.request = &recalibration->request;
    error = duet__calibrating_look(&recalibration->calibrating, message);
    if (!error)
        use_platform(recalibration, experiment);
    experiment->probe = true;
    return error;
}

static void add_subject(GArray *subjects, const struct duet__request *real)
{
    const struct duet__setup subject = {.workload = real->workload,
                                        .problem = {.tile = real->problem.tile,
                                                    .precision = real->problem.precision}};

    for (guint i = 0; i < subjects->len; i++) {
        const struct duet__setup *other = &g_array_index(subjects, struct duet__setup, i);

        if (other->workload == subject.workload && other->problem.tile == subject.problem.tile &&
            other->problem.precision == subject.problem.precision)
            return;
    }
    g_array_append_val(subjects, subject);
}

int duet__recalibration_plan(struct duet__recalibration *recalibration,
                             const struct duet__experiment *experiment,
                             struct duet_message *message)
{
    struct duet__calibrate_request *request = &recalibration->request;

    for (size_t i = 0; i < experiment->trial_count; i++)
        if (!experiment->trials[i].failure)
            add_subject(request->subjects, &experiment->trials[i].real);
    request->budget_s = recalibration->time_s > 0 ? recalibration->time_s : least_s;
    return duet__plan_make(&recalibration->calibrating, message);
}

/* ------------------------------------------------------------------------------------------- */
/* While the cases are measured                                                                 */

/* Returns the time for all slices up to this one. */
static double due(const struct duet__recalibration *recalibration,
                  const struct duet__experiment *experiment, double runs_s)
{
    double part = (double)(experiment->rounds.round + 1) / (double)(experiment->round_count + 1);

    return recalibration->time_s > 0 ? part * recalibration->time_s : fmax(part * least_s, runs_s);
}

/*
 * Returns the time of a round over all that is to be measured, so that it fits between two of the
 * cases: sizes of problems are chosen by that.
 */
static double round_time(const struct duet__recalibration *recalibration,
                         const struct duet__experiment *experiment)
{
    double time_s = recalibration->time_s, cases_s = 0;

    if (experiment->until > 0)
        cases_s = experiment->case_time_s * (double)experiment->trial_count / 2;
    if (!(time_s > 0))
        time_s = fmax(least_s, cases_s);
    return time_s / (double)(experiment->round_count + 1);
}

void duet__recalibration_slice(struct duet__recalibration *recalibration,
                               const struct duet__experiment *experiment, double runs_s,
                               struct duet__monitor *monitor)
{
    struct duet__calibrating *c = &recalibration->calibrating;
    double all_s = due(recalibration, experiment, runs_s);

    c->monitor = monitor;
    duet__calibrating_go_on(c);
    if (!experiment->rounds.round)
        duet__calibrating_once(c);
    duet__calibrating_slice(c, all_s - c->paused_s, round_time(recalibration, experiment));
    duet__calibrating_pause(c);
}

/* ------------------------------------------------------------------------------------------- */
/* After the cases were measured                                                                */

bool duet__recalibration_finish(struct duet__recalibration *recalibration,
                                struct duet__experiment *experiment)
{
    struct duet__calibrating *c = &recalibration->calibrating;
    double wall_s = g_timer_elapsed(recalibration->timer, NULL);
    bool minutes = wall_s >= 120;

    g_free(experiment->calibrated);
    experiment->calibrated =
        g_strdup_printf("calibrated in the same %.0f %s: %u runs", wall_s / (minutes ? 60 : 1),
                        minutes ? "minutes" : "seconds", c->runs->len);
    /* no monitor attends to signals any more */
    c->monitor = NULL;
    if (c->runs->len)
        duet__calibrating_fit(c);
    if (!c->model.quality_count)
        return false;
    use_platform(recalibration, experiment);
    duet__trials_rebuild(experiment);
    return true;
}
