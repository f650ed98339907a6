/* SPDX-License-Identifier: Apache-2.0 */
/* `duet validate`: predicts and measures the cases, and reports how far the two are apart. */
#include "cli/validate.h"

#include "cli/calibrate.h"
#include "cli/command.h"
#include "cli/validation.h"
#include "world/clock.h"

/* ------------------------------------------------------------------------------------------- */
/* What is done                                                                                 */

/* Calibrates before a round, or after the last one, where that was asked for. Exit status. */
static int calibrate(struct duet__validate *validate, size_t round, double runs_s,
                     struct duet_monitor *monitor, struct duet_progress *progress)
{
    struct duet_recalibration *recalibration = &validate->recalibration;
    const struct duet__failure *failure = &recalibration->calibrating.now;
    int error;

    if (!validate->job.values.calibrate || duet_monitor_signal(monitor))
        return DUET__DONE;
    duet_progress_say(progress, (double)round / (double)validate->experiment.rounds, "calibrating");
    error = duet_recalibration_slice(recalibration, &validate->experiment, round, runs_s, monitor);
    return error ? duet__job_complain(failure->what, error, failure->message.text) : DUET__DONE;
}

/* Writes what was found where that was asked for: the measured runs are worth a report anyway. */
static void write_platform(struct duet__validate *validate)
{
    const char *out = validate->job.values.out;
    struct duet_message message = {""};

    if (out &&
        duet_platform_write(validate->experiment.platform, out, DUET_WRITE_REPLACE, &message))
        validate->written = duet__complain(DUET__FAILED, "%s", message.text);
}

static int finish_calibration(struct duet__validate *validate)
{
    struct duet_recalibration *recalibration = &validate->recalibration;
    const struct duet__failure *failure = &recalibration->calibrating.now;
    int error = duet_recalibration_finish(recalibration, &validate->experiment);

    if (error)
        return duet__job_complain(failure->what, error, failure->message.text);
    write_platform(validate);
    return DUET__DONE;
}

/* The rounds, with calibration before, between and after them where that was asked for. */
static int measure(struct duet__validate *validate)
{
    struct duet_experiment *experiment = &validate->experiment;
    struct duet_monitor monitor = {0};
    struct duet_progress progress = {0};
    double start_s = duet__clock_s(), runs_s = 0;
    int status;

    duet_monitor_start(&monitor, false, 0, 0);
    duet__warn_of_load();
    duet_progress_init(&progress, !validate->job.values.quiet, 0, 0);
    status = calibrate(validate, 0, runs_s, &monitor, &progress);
    for (size_t round = 0; round < experiment->rounds && status == DUET__DONE; round++) {
        double round_s = duet__clock_s();

        if (duet_monitor_signal(&monitor) || (round && validate->job.values.budget_s > 0 &&
                                              round_s - start_s >= validate->job.values.budget_s))
            break;
        duet_experiment_measure_round(experiment, round, &monitor, &progress);
        runs_s += duet__clock_s() - round_s;
        status = calibrate(validate, round + 1, runs_s, &monitor, &progress);
    }
    duet_progress_clear(&progress);
    duet_monitor_stop(&monitor);
    experiment->number = duet_monitor_signal(&monitor);
    return status;
}

/* Both sides of all cases. Exit status of what has failed as a whole. */
static int make_sides(struct duet__validate *validate)
{
    struct duet_experiment *experiment = &validate->experiment;
    struct duet_message message = {""};
    int status = DUET__DONE, error = 0;

    if (duet_experiment_paced(experiment))
        error = duet_experiment_measure_threads(experiment, &message);
    if (error)
        return duet__complain(duet__status_of(error), "measuring this machine's threads: %s",
                              message.text);
    if (experiment->number)
        return status;
    /* what cannot be predicted is not measured; but for what the calibration has yet to tell */
    if (!validate->job.values.calibrate)
        duet_experiment_predict(experiment, validate->job.values.quiet);
    if (!experiment->number && !duet_pairs_all_failed(experiment))
        status = measure(validate);
    if (status != DUET__DONE || experiment->number || !validate->job.values.calibrate ||
        duet_pairs_all_failed(experiment))
        return status;
    status = finish_calibration(validate);
    if (status == DUET__DONE)
        duet_experiment_predict(experiment, validate->job.values.quiet);
    return status;
}

/* ------------------------------------------------------------------------------------------- */
/* What is said of it                                                                           */

/* One line for cases that could not be made, though nothing was wrong with them. Exit status. */
static int check_failures(const struct duet_experiment *experiment)
{
    const char *first = NULL;
    size_t failures = 0;

    for (size_t i = 0; i < experiment->pair_count; i++) {
        const struct duet_pair *pair = &experiment->pairs[i];

        if (!pair->failure || pair->refused)
            continue;
        failures++;
        first = first ? first : pair->failure;
    }
    if (!failures)
        return DUET__DONE;
    return duet__complain(DUET__FAILED, "%zu of %zu cases failed, the first %s", failures,
                          experiment->pair_count, first);
}

static int report(struct duet__validate *validate)
{
    struct duet_validation validation;
    int status;

    duet_experiment_conclude(&validate->experiment, &validation);
    validation.command = validate->job.line;
    validation.fail_over = validate->job.values.fail_over;
    if (!validation.case_count)
        return DUET__DONE;
    status = duet__validation_show(&validate->job, &validation);
    duet_validation_fini(&validation);
    return status == DUET__DONE ? check_failures(&validate->experiment) : status;
}

/* One line that says how much there is, when a signal came. Exit status. */
static int say_interrupted(const struct duet_experiment *experiment)
{
    size_t runs = 0, predicted = 0;

    for (size_t i = 0; i < experiment->pair_count; i++) {
        if (experiment->pairs[i].failure)
            continue;
        runs += duet_sample_count(&experiment->pairs[i].measured);
        predicted += duet_sample_count(&experiment->pairs[i].predicted) > 0;
    }
    return duet__complain(DUET__SIGNALLED + experiment->number,
                          "interrupted: %zu measured run%s finished%s", runs,
                          runs == 1 ? " is" : "s are",
                          runs && !predicted ? ", and nothing is predicted to compare with" : "");
}

static int validate_all(struct duet__validate *validate)
{
    const struct duet_experiment *experiment = &validate->experiment;
    const struct duet_pair *failed;
    int status = duet__files_check(&validate->job);

    if (status == DUET__DONE)
        status = make_sides(validate);
    if (status != DUET__DONE)
        return status;
    failed = experiment->number ? NULL : duet_pairs_all_failed(experiment);
    if (failed)
        return duet__complain(duet__status_of(failed->error), "%s under %s %s",
                              failed->real.workload->name, failed->real.policies[0],
                              failed->failure);
    status = report(validate);
    if (experiment->number)
        status = say_interrupted(experiment);
    return status == DUET__DONE ? validate->written : status;
}

int duet__validate_run(int argc, char **argv)
{
    struct duet__validate validate = {0};
    int status;

    duet__job_init(&validate.job, &duet__validate_command, argc, argv);
    duet_experiment_init(&validate.experiment);
    status = duet__validate_parse(&validate, argc, argv);
    if (status < 0)
        status = validate_all(&validate);
    duet_experiment_fini(&validate.experiment);
    duet_recalibration_fini(&validate.recalibration);
    duet__job_fini(&validate.job);
    return status;
}
