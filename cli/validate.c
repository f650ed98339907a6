/* SPDX-License-Identifier: Apache-2.0 */
/* `duet validate`: predicts and measures the cases, and reports how far the two are apart. */
#include <string.h>

#include "cli/calibrate.h"
#include "cli/tables.h"
#include "validate/experiment.h"
#include "base/files.h"
#include "base/clock.h"
#include "base/stats.h"
#include "report/page/page.h"

/* A validation: its options and its results. */
struct validate {
    struct duet__job *job;
    struct duet__tables tables; /* the cells to be predicted and measured */
    struct duet__experiment experiment;
    struct duet__recalibration recalibration; /* used by --calibrate */
    int status; /* status of calibrating, and of writing its results */
};

/* ------------------------------------------------------------------------------------------- */
/* The command line                                                                             */

/* Sets how many runs are made, in how many rounds, and how many are enough. */
static void count_runs(struct validate *validate)
{
    struct duet__experiment *experiment = &validate->experiment;
    const struct duet__job *job = validate->job;
    const struct duet__values *values = &job->values;
    /* processes that decided by what they measure would not make as many runs */
    bool until =
        !duet__given(job, "nodes") && (values->until > 0 || duet__given(job, "case-time") ||
                                       (!values->reps && !duet__request_paced(&experiment->base)));
    /* many short rounds show how rounds differ, unless the number of runs is given */
    uint64_t rounds = values->rounds ? values->rounds : values->reps ? 5 : 10;
    /* at least as many as will say something; those at a pace are all alike */
    uint64_t reps = values->reps ? values->reps : until ? 5 : 3;
    experiment->until = !until ? 0 : values->until > 0 ? values->until : 0.01;
    experiment->case_time_s = duet__given(job, "case-time") ? values->case_time_s : 3;
    experiment->base.reps = (size_t)reps;
    experiment->round_count = (size_t)(until ? rounds : MIN(rounds, reps));
    experiment->sim_reps = (size_t)(values->sim_reps   ? values->sim_reps
                                    : values->no_noise ? 1
                                                       : 15);
}

/* Checks options that need others, or exclude each other. */
static int check_combinations(const struct duet__job *job, struct duet_message *message)
{
    const struct duet__values *values = &job->values;
    bool paced = duet__request_paced(&job->request);
    if (!values->calibrate && (values->out || duet__given(job, "calibrate-time")))
        return duet_fail(message, DUET_EINVAL, "%s is for --calibrate",
                         values->out ? "--out" : "--calibrate-time");
    if (values->calibrate && values->platform)
        return duet_fail(message, DUET_EINVAL,
                         "--calibrate and --platform exclude each other: what is measured is what "
                         "the predictions are made from");
    if (values->calibrate && paced)
        return duet_fail(message, DUET_EINVAL,
                         "--calibrate: %s is known already, and nothing is measured of it",
                         values->config.emulate);
    if (paced && values->follow_speed)
        return duet_fail(message, DUET_EINVAL,
                         "--follow-speed: an emulated platform is always as fast as it says");
    return duet__exclude(job, "json", "csv", message);
}

/* Refuses options that several processes cannot have. */
static int check_together(const struct duet__job *job, struct duet_message *message)
{
    static const char *const alone[] = {"calibrate", "until", "case-time", "budget",
                                        "follow-speed"};
    for (size_t i = 0; i < G_N_ELEMENTS(alone); i++)
        if (duet__given(job, alone[i]))
            return duet_fail(message, DUET_EINVAL,
                             "--%s is for one node: of several all make the same number of runs, "
                             "--reps, and are predicted from --platform",
                             alone[i]);
    return 0;
}

static int read_settings(struct validate *validate, int argc, char *const *argv,
                         struct duet_message *message)
{
    struct duet__experiment *experiment = &validate->experiment;
    struct duet__request *request = &validate->job->request;
    const struct duet__values *values = &validate->job->values;
    int error = duet__job_check_emulation(validate->job, message);
    if (!error && validate->job->program)
        error = duet__job_take_program(validate->job, argc > 1 ? argv[1] : NULL, request, message);
    if (!error)
        error = check_combinations(validate->job, message);
    duet__request_fini(&experiment->base);
    duet__request_copy(&experiment->base, request);
    experiment->noise = !values->no_noise && !duet__request_paced(&experiment->base);
    experiment->intervals = values->no_noise ? 0 : DUET_PREDICTIVE_USUAL;
    experiment->follow_speed = values->follow_speed;
    experiment->keep_disturbed = values->keep_disturbed;
    experiment->keep = values->html != NULL;
    count_runs(validate);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Cases                                                                                        */

static int make_cases(struct validate *validate, int argc, char *const *argv,
                      struct duet_message *message)
{
    enum { MOST = 10000 };
    const struct duet__study *study = validate->tables.study;
    struct duet__experiment *experiment = &validate->experiment;
    int error = duet__tables_read(&validate->tables, argc, argv, message);
    if (!error && study->count > MOST)
        return duet_fail(message, DUET_EINVAL, "more than %d cases are too many", MOST);
    experiment->trials = g_new0(struct duet__trial, error ? 0 : study->count);
    for (uint64_t i = 0; !error && i < study->count; i++)
        error = duet__tables_cell(&validate->tables, i, &experiment->base,
                                  &experiment->trials[experiment->trial_count++].real, message);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* The platform                                                                                 */

/* Finds the file that duet calibrate writes for this machine. */
static int find_own_platform(struct duet__experiment *experiment, struct duet_message *message)
{
    const char *host = g_get_host_name();
    /* the first part of the name, as duet calibrate calls it */
    experiment->platform_name = g_strdup_printf("./%.*s.json", (int)strcspn(host, "."), host);
    if (g_file_test(experiment->platform_name, G_FILE_TEST_EXISTS))
        return 0;
    return duet_fail(message, DUET_EINVAL,
                     "there is no %s to predict from: run duet calibrate first, name what it wrote "
                     "(--platform FILE), or let it be measured along with the cases (--calibrate)",
                     experiment->platform_name);
}

/* Prepares what is measured between the rounds, and a platform without times until then. */
static int begin_calibration(struct validate *validate, struct duet_message *message)
{
    struct duet__recalibration *recalibration = &validate->recalibration;
    const struct duet__values *values = &validate->job->values;
    g_autofree char *out = g_strdup(values->out);
    int error = duet__calibrate_names(NULL, &out, &recalibration->request.name, message);
    recalibration->time_s = values->calibrate_time_s;
    if (!error && duet__given(validate->job, "calibrate-time") &&
        !(values->calibrate_time_s >= 0.1))
        error = duet_fail(message, DUET_EINVAL, "--calibrate-time takes 0.1s or more, not '%gs'",
                          values->calibrate_time_s);
    if (!error && values->out)
        error = duet__platform_may_write(values->out, DUET_WRITE_REPLACE, message);
    return error ? error : duet__recalibration_begin(recalibration, &validate->experiment, message);
}

static int read_platform(struct validate *validate, struct duet_message *message)
{
    struct duet__experiment *experiment = &validate->experiment;
    const struct duet__values *values = &validate->job->values;
    const char *emulate = values->config.emulate;
    bool paced = duet__request_paced(&experiment->base);
    int error = 0;
    if (values->platform && !*values->platform)
        return duet_fail(message, DUET_EINVAL,
                         "--platform takes the name of a machine or a file, not ''");
    if (values->calibrate)
        return begin_calibration(validate, message);
    if (values->platform || paced)
        experiment->platform_name = g_strdup(values->platform ? values->platform : emulate);
    else if (emulate)
        error = duet_fail(message, DUET_EINVAL,
                          "--emulate free needs --platform FILE: duet calibrate --emulate free "
                          "writes one");
    else
        error = find_own_platform(experiment, message);
    if (error)
        return error;
    validate->job->request.config.simulate = experiment->platform_name;
    validate->job->platform_option = "--platform";
    error = duet__platform_load(experiment->platform_name, &experiment->platform, message);
    if (!error && values->follow_speed && !(experiment->platform->probe_s > 0))
        error = duet_fail(message, DUET_EINVAL,
                          "--follow-speed: %s does not say how fast the cores were when it was "
                          "calibrated",
                          experiment->platform_name);
    /* processes on one machine would measure each other */
    experiment->probe = !error && !paced && experiment->platform->probe_s > 0 &&
                        !duet__given(validate->job, "nodes");
    return error;
}

static int read_all(struct validate *validate, int argc, char *const *argv,
                    struct duet_message *message)
{
    int error = read_settings(validate, argc, argv, message);
    if (!error)
        error = make_cases(validate, argc, argv, message);
    if (!error)
        error = read_platform(validate, message);
    if (!error)
        error = duet__files_distinct(validate->job, message);
    if (!error)
        error = duet__trials_make(&validate->experiment, message);
    if (!error)
        validate->job->together = validate->experiment.together;
    if (!error && validate->experiment.together)
        error = check_together(validate->job, message);
    if (!error && validate->job->values.calibrate)
        error = duet__recalibration_plan(&validate->recalibration, &validate->experiment, message);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* The parts of a validation                                                                    */

/* Calibrates before a round, or after the last one, if that was asked for. Returns the exit status;
   it fails if no kernel could be run. */
static int calibrate(struct validate *validate, double runs_s, struct duet__monitor *monitor,
                     struct duet__progress *progress)
{
    struct duet__recalibration *recalibration = &validate->recalibration;
    const struct duet__experiment *experiment = &validate->experiment;
    if (!validate->job->values.calibrate || duet__monitor_signal(monitor))
        return DUET__DONE;
    duet__progress_say(progress, (double)experiment->rounds.round / (double)experiment->round_count,
                       "calibrating");
    duet__recalibration_slice(recalibration, experiment, runs_s, monitor);
    if (recalibration->calibrating.runs->len || duet__monitor_signal(monitor))
        return DUET__DONE;
    return duet__calibrate_complain(&recalibration->calibrating);
}

/* Writes the calibration if that was asked for: the measured runs are worth a report anyway. */
static void write_platform(struct validate *validate)
{
    const char *out = validate->job->values.out;
    struct duet_message message = {""};
    if (out &&
        duet__platform_write(validate->experiment.platform, out, DUET_WRITE_REPLACE, &message))
        validate->status = duet__complain(DUET__FAILED, "%s", message.text);
}

/* Ends the calibration; `whole` is false if a signal has ended it: then files stay as they were. */
static int finish_calibration(struct validate *validate, bool whole)
{
    struct duet__recalibration *recalibration = &validate->recalibration;
    bool fitted = duet__recalibration_finish(recalibration, &validate->experiment);
    int status = duet__calibrate_complain(&recalibration->calibrating);
    if (!fitted)
        return status;
    validate->status = status ? DUET__FAILED : DUET__DONE;
    if (whole)
        write_platform(validate);
    return DUET__DONE;
}

/* Remarks that the platform is not the machine that is measured. */
static void warn_of_platform(const struct validate *validate)
{
    const struct duet__values *values = &validate->job->values;
    const char *name = values->platform;
    int number;
    if (!name || values->config.emulate || validate->experiment.together ||
        g_str_has_suffix(name, ".xml"))
        return;
    if (!g_str_has_suffix(name, ".json") ||
        !duet__is_here(name, values->config.devices, NULL, &number))
        duet__complain(DUET__DONE,
                       "%s is not this machine: errors are of a prediction for another one", name);
}

/* Measures the rounds, with calibration before, between and after them if that was asked for. */
static int measure(struct validate *validate)
{
    struct duet__experiment *experiment = &validate->experiment;
    struct duet__monitor monitor = {0};
    struct duet__progress progress = {0};
    double start_s = duet__clock_s(), runs_s = 0;
    int status;
    warn_of_platform(validate);
    duet__monitor_start(&monitor, false, 0, 0);
    if (experiment->number) /* other processes do not know of the signal yet */
        duet__monitor_adopt(&monitor, experiment->number);
    duet__warn_of_load();
    duet__progress_init(&progress, !validate->job->values.quiet, 0, 0);
    status = calibrate(validate, runs_s, &monitor, &progress);
    while (experiment->rounds.round < experiment->round_count && status == DUET__DONE) {
        double round_s = duet__clock_s();
        if (experiment->rounds.round && validate->job->values.budget_s > 0 &&
            round_s - start_s >= validate->job->values.budget_s)
            break;
        if (duet__experiment_measure_round(experiment, &monitor, &progress))
            break;
        runs_s += duet__clock_s() - round_s;
        status = calibrate(validate, runs_s, &monitor, &progress);
    }
    duet__progress_clear(&progress);
    duet__monitor_stop(&monitor);
    experiment->number = duet__monitor_signal(&monitor);
    return status;
}

/* Predicts and measures all cases, one part after the other. Returns the exit status. */
static int make_parts(struct validate *validate)
{
    struct duet__experiment *experiment = &validate->experiment;
    struct duet_message message = {""};
    int status = DUET__DONE, error = 0, number;
    if (duet__request_paced(&experiment->base))
        error = duet__experiment_measure_threads(experiment, &message);
    if (error)
        return duet__complain(duet__status_of(error), "measuring this machine's threads: %s",
                              message.text);
    if (experiment->number && !experiment->together)
        return status;
    /* cases that cannot be predicted are not measured, unless the calibration is yet to tell */
    if (!validate->job->values.calibrate)
        duet__experiment_predict(experiment, validate->job->values.quiet);
    if (experiment->together || (!experiment->number && duet__experiment_tally(experiment).left))
        status = measure(validate); /* together, also what only some can do */
    if (status != DUET__DONE || !validate->job->values.calibrate ||
        !duet__experiment_tally(experiment).left)
        return status;
    number = experiment->number;
    if (number &&
        !(duet__experiment_tally(experiment).runs && validate->recalibration.calibrating.runs->len))
        return status;
    /* cases are predicted also after a signal, unless another one comes */
    experiment->number = 0;
    status = finish_calibration(validate, number == 0);
    if (status == DUET__DONE)
        duet__experiment_predict(experiment, validate->job->values.quiet);
    if (!number)
        return status;
    experiment->number = number;
    return DUET__DONE;
}

/*
 * Predicts and measures all cases. A signal, also between two parts, ends this early with a report
 * of what there is. Returns the exit status of what has failed as a whole.
 */
static int make_sides(struct validate *validate)
{
    struct duet__experiment *experiment = &validate->experiment;
    struct duet__signals signals;
    int status, number;
    duet__signals_hold(&signals, false);
    status = make_parts(validate);
    number = duet__signals_take(&signals, 0);
    if (!experiment->number)
        experiment->number = number;
    if (!experiment->number || !experiment->together) /* as in duet__monitor_stop */
        duet__signals_release(&signals);
    return status;
}

/* ------------------------------------------------------------------------------------------- */
/* The report                                                                                   */

static void write_page(FILE *stream, const void *validation)
{
    duet__page_write_validation(stream, validation);
}

int duet__validation_show(const struct duet__job *job, struct duet__validation *validation)
{
    const struct duet__values *values = &job->values;
    struct duet_message message = {""};
    int status;
    duet__validation_judge(validation);
    /* the table first: a long run is not lost because a disk is full */
    if (values->json)
        duet__validation_write_json(stdout, validation);
    else if (values->csv)
        duet__validation_write_csv(stdout, validation);
    else
        duet__validation_write_text(stdout, validation, values->verbose);
    status = duet__finish_output();
    if (values->html && duet__file_write(values->html, write_page, validation, &message))
        status = duet__complain(DUET__FAILED, "%s", message.text);
    if (status == DUET__DONE && validation->failed)
        status = duet__complain(DUET__FAILED,
                                "%zu of %zu cases differ by more than %g %%, the most by %.3g %%",
                                validation->failed, validation->case_count,
                                validation->fail_over * 100, validation->worst * 100);
    if (status == DUET__DONE && validation->fail_over > 0 && validation->unsettled)
        status = duet__complain(DUET__FAILED,
                                "nothing is concluded of %zu of %zu cases: other processes used "
                                "the cores",
                                validation->unsettled, validation->case_count);
    return status;
}

/* Sets the plan of a case's side, which the page shows. `kept` owns it. */
static void plan_side(const struct validate *validate, const struct duet__case *the,
                      struct duet__side *side, GPtrArray *kept)
{
    struct duet__run_plan *plan = g_new0(struct duet__run_plan, 1);
    duet__run_plan_make(the->policy, side->recording,
                        duet__request_scale(&validate->experiment.base), plan);
    g_ptr_array_add(kept, plan);
    g_ptr_array_add(kept, plan->tasks.events);
    side->plan = plan;
}

static int report(struct validate *validate, const struct duet__tally *tally)
{
    struct duet__validation validation;
    g_autoptr(GPtrArray) kept = g_ptr_array_new_with_free_func(g_free);
    int status;
    duet__experiment_conclude(&validate->experiment, &validation);
    validation.command = validate->job->line;
    validation.fail_over = validate->job->values.fail_over;
    if (!validation.case_count)
        return DUET__DONE;
    for (size_t i = 0; validate->job->values.html && i < validation.case_count; i++) {
        plan_side(validate, &validation.cases[i], &validation.cases[i].predicted, kept);
        plan_side(validate, &validation.cases[i], &validation.cases[i].measured, kept);
    }
    status = duet__validation_show(validate->job, &validation);
    duet__validation_fini(&validation);
    if (status == DUET__DONE && tally->failures)
        status =
            duet__complain(DUET__FAILED, "%zu of %zu cases failed, the first %s", tally->failures,
                           validate->experiment.trial_count, tally->failed->failure);
    return status;
}

static int validate_all(struct validate *validate)
{
    const struct duet__experiment *experiment = &validate->experiment;
    unsigned count;
    /* the first process has the measured runs */
    const bool is_told_by_another = experiment->together && duet__launched_as(&count) > 0;
    int status = is_told_by_another ? DUET__DONE : duet__files_check(validate->job);
    struct duet__tally tally;
    if (status == DUET__DONE)
        status = make_sides(validate);
    if (status != DUET__DONE || is_told_by_another)
        return status;
    tally = duet__experiment_tally(experiment);
    if (!tally.left && !experiment->number)
        return duet__complain(duet__status_of(tally.failed->error), "%s under %s %s",
                              tally.failed->real.workload->name, tally.failed->real.policies[0],
                              tally.failed->failure);
    status = report(validate, &tally);
    if (experiment->number)
        return duet__complain(DUET__SIGNALLED + experiment->number,
                              "interrupted: %zu measured run%s finished%s", tally.runs,
                              tally.runs == 1 ? " is" : "s are",
                              tally.runs && !tally.predicted
                                  ? ", and nothing is predicted to compare with"
                                  : "");
    return status == DUET__DONE ? validate->status : status;
}

static int work(struct duet__job *job, int argc, char **argv)
{
    struct validate validate = {.job = job};
    struct duet_message message = {""};
    int error, status;
    if (job->values.openmp)
        return duet__openmp_validate(job);
    job->together = duet__given(job, "nodes"); /* true until the number of nodes is known */
    validate.tables = (struct duet__tables){.job = job, .study = duet__study_new()};
    duet__experiment_init(&validate.experiment);
    error = read_all(&validate, argc, argv, &message);
    status = error ? duet__job_refuse(error, &message) : validate_all(&validate);
    duet__experiment_fini(&validate.experiment);
    duet__recalibration_fini(&validate.recalibration);
    duet__study_free(validate.tables.study);
    return status;
}

static const char notes[] =
    "A case is a workload with a size, a tile, a policy, and numbers of CPUs and GPUs: one for\n"
    "each combination of the lists, or of those in the file of --cases. Everything is simulated\n"
    "first, from the platform that duet calibrate has measured here; then each round makes some\n"
    "of the measured runs of every case. An interrupt (Ctrl-C) reports the cases as far as they\n"
    "were measured.\n"
    "\n"
    "--emulate PLATFORM measures at that platform's pace instead of on this machine; its times\n"
    "are means, so the simulation has no noise then. Only how long threads take to wake and to\n"
    "notice is this machine's, and measured first.\n"
    "\n"
    "--calibrate measures the kernels of the cases in the same minutes as the cases, in other\n"
    "runs, so that a machine whose speed drifts is predicted as it was. The simulations are made\n"
    "last then.\n"
    "\n"
    "--openmp -- PROGRAM records an OpenMP program with one thread, simulates that on --cpus "
    "equal\n"
    "cores (1,2 without it), and runs the program with as many threads, --rounds times each.\n"
    "\n"
    "Examples:\n"
    "  duet validate cholesky --calibrate --n 2048,4096 --tile 256 --policy ws,heft\n"
    "  duet calibrate && duet validate cholesky lu --n 2048,4096 --tile 256 --policy ws,heft\n"
    "  duet validate --cases cases.json --html report.html --fail-over 5%\n"
    "  duet validate cholesky --emulate idgraf --scale 0.1 --n 9600 --tile 960 --gpus 1,4,8";

const struct duet__command duet__validate_command = {
    .name = "validate",
    .description = "simulates and runs the same, says how far apart, and why",
    .where = DUET__IN_VALIDATE,
    .arguments = "[WORKLOAD... | -- PROGRAM ARGUMENT...]",
    .summary = "Runs task graphs on this machine, simulates the same, and says how far the two are "
               "apart, and why.",
    .notes = notes,
    .work = work,
};
