/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the trials of an experiment, cases that can be measured and predicted; concludes them. */
#include "validate/experiment.h"
#include "runtime/open.h"

void duet__experiment_init(struct duet__experiment *experiment)
{
    *experiment = (struct duet__experiment){
        .texts = g_ptr_array_new_with_free_func(g_free),
        .round_count = 1,
        .sim_reps = 1,
    };
    duet__rounds_init(&experiment->rounds);
    duet__request_init(&experiment->base);
}

static void trial_fini(struct duet__trial *trial)
{
    duet__sample_fini(&trial->measured);
    duet__sample_fini(&trial->predicted);
    duet__request_fini(&trial->simulated);
    duet__request_fini(&trial->real);
    g_clear_pointer(&trial->probes, g_array_unref);
    g_free(trial->settings);
    g_free(trial->failure);
}

void duet__experiment_fini(struct duet__experiment *experiment)
{
    for (size_t i = 0; i < experiment->trial_count; i++)
        trial_fini(&experiment->trials[i]);
    g_free(experiment->trials);
    g_free(experiment->cases);
    g_clear_pointer(&experiment->texts, g_ptr_array_unref);
    duet__rounds_fini(&experiment->rounds);
    duet__platform_free(experiment->platform);
    g_free(experiment->platform_name);
    g_free(experiment->calibrated);
    duet__request_fini(&experiment->base);
    *experiment = (struct duet__experiment){0};
}

void duet__trial_fail(struct duet__trial *trial, const char *doing, int error,
                      const struct duet_message *message)
{
    g_autofree char *own = duet__own_options(message->text);
    if (trial->failure)
        return;
    trial->error = error;
    trial->failure = g_strdup_printf("could not be %s: %s", doing, own);
    g_strdelimit(trial->failure, "\r\n", ' ');
}

struct duet__tally duet__experiment_tally(const struct duet__experiment *experiment)
{
    struct duet__tally tally = {0};
    for (size_t i = 0; i < experiment->trial_count; i++) {
        const struct duet__trial *trial = &experiment->trials[i];
        if (!trial->failure) {
            tally.left++;
            tally.runs += duet__sample_count(&trial->measured);
            tally.predicted += duet__sample_count(&trial->predicted) > 0;
        } else if (!trial->refused && !tally.failures++) {
            tally.failed = trial;
        }
    }
    return tally;
}

/* ------------------------------------------------------------------------------------------- */
/* One case                                                                                     */

/* Completes the request of the measured side. Returns an error if its sizes are to blame. */
static int make_real(const struct duet__experiment *experiment, struct duet__request *real,
                     struct duet_message *message)
{
    const struct duet__workload *workload = real->workload;
    bool paced = duet__request_paced(&experiment->base);
    struct duet__problem *problem = &real->problem;
    real->config.context = workload->name; /* the context of a platform's kernel times */
    real->config.extrapolate = paced && experiment->base.config.extrapolate;
    problem->seed = real->seed;
    if (!paced && !workload->generate && !workload->program)
        return duet_fail(message, DUET_EINVAL,
                         "%s has no kernels that compute%s, so that it can only be measured on an "
                         "emulated platform (--emulate)",
                         workload->name, workload->kernels[0] ? " in this duet" : "");
    return workload->check(problem, message);
}

/* Builds the machine of the predicted side, which decides how many CPUs and GPUs both have. */
static int build_machine(const struct duet__experiment *experiment, struct duet__trial *trial,
                         struct duet_message *message)
{
    struct duet_config *real = &trial->real.config, *simulated = &trial->simulated.config;
    const struct duet_machine *machine = &trial->simulated.machine;
    int error;
    simulated->simulate = experiment->platform_name;
    trial->simulated.platform = experiment->platform;
    error = duet__request_build(&trial->simulated, message);
    trial->cpus = (unsigned)MAX(real->cpus, 0);
    trial->gpus = (unsigned)MAX(real->gpus, 0);
    if (error)
        return error;
    trial->cpus = trial->gpus = 0;
    for (unsigned i = 0; i < machine->worker_count; i++)
        *(machine->workers[i].node == DUET_HOST ? &trial->cpus : &trial->gpus) += 1;
    real->cpus = simulated->cpus = (int)trial->cpus;
    real->gpus = simulated->gpus = (int)trial->gpus;
    real->no_cuda_graphs = true; /* each task of a graph is simulated */
    return 0;
}

void duet__trials_rebuild(struct duet__experiment *experiment)
{
    for (size_t i = 0; i < experiment->trial_count; i++) {
        struct duet__trial *trial = &experiment->trials[i];
        struct duet_message message = {""};
        int error = 0;
        /* the platform that the trial had before is gone */
        trial->simulated.platform = experiment->platform;
        trial->simulated.config.simulate = experiment->platform_name;
        if (!trial->failure)
            error = build_machine(experiment, trial, &message);
        if (error)
            duet__trial_fail(trial, "simulated", error, &message);
    }
}

/* Sets the request of the predicted side: the measured problem, simulated on the platform. */
static void make_simulated(const struct duet__experiment *experiment, struct duet__trial *trial)
{
    const struct duet_config *base = &experiment->base.config;
    struct duet__request *request = &trial->simulated;
    duet__request_copy(request, &trial->real);
    request->reps = experiment->sim_reps;
    request->config.emulate = NULL;
    request->config.scale = 0;
    request->config.noise = experiment->noise;
    request->config.extrapolate = base->extrapolate;
    request->config.without = base->without;
    trial->real.config.network = NULL; /* a real network is there */
}

static void make_trial(const struct duet__experiment *experiment, struct duet__trial *trial)
{
    struct duet_message message = {""};
    int error = make_real(experiment, &trial->real, &message);
    trial->settings = duet__request_facts(&trial->real);
    trial->probes = g_array_new(FALSE, FALSE, sizeof(double));
    duet__sample_init(&trial->measured, experiment->keep);
    duet__sample_init(&trial->predicted, experiment->keep);
    if (!error) {
        make_simulated(experiment, trial);
        error = build_machine(experiment, trial, &message);
    }
    if (error) {
        trial->refused = true;
        trial->error = error;
        trial->failure = g_strdup(message.text);
    }
}

int duet__trials_make(struct duet__experiment *experiment, struct duet_message *message)
{
    struct duet__trial *trials = experiment->trials;
    bool some = false;
    experiment->rounds.cases = experiment->trial_count;
    for (size_t i = 0; i < experiment->trial_count; i++) {
        make_trial(experiment, &trials[i]);
        some |= !trials[i].failure;
        experiment->together |= duet__processes_share(&trials[i].real);
    }
    return some ? 0 : duet_fail(message, trials[0].error, "%s", trials[0].failure);
}

/* ------------------------------------------------------------------------------------------- */
/* Conclusions                                                                                  */

/* Keeps a text, which it takes over, as long as the experiment. */
static const char *keep(struct duet__experiment *experiment, char *text)
{
    g_ptr_array_add(experiment->texts, text);
    return text;
}

/* Returns the title: "cholesky, gemm and lu on vm". */
static char *title_of(const struct duet__experiment *experiment)
{
    g_autoptr(GPtrArray) workloads = g_ptr_array_new();
    GString *text = g_string_new(NULL);
    for (size_t i = 0; i < experiment->trial_count; i++) {
        const void *workload = experiment->trials[i].real.workload;
        if (!g_ptr_array_find(workloads, workload, NULL))
            g_ptr_array_add(workloads, (void *)(uintptr_t)workload);
    }
    for (guint i = 0; i < workloads->len; i++)
        g_string_append_printf(text, "%s%s",
                               !i                        ? ""
                               : i + 1 == workloads->len ? " and "
                                                         : ", ",
                               ((const struct duet__workload *)workloads->pdata[i])->name);
    g_string_append_printf(text, " on %s", experiment->platform->name);
    return g_string_free(text, FALSE);
}

static char *machine_of(const struct duet__experiment *experiment)
{
    const char *emulate = experiment->base.config.emulate;
    unsigned cores = duet__usable_cores();
    g_autofree char *here =
        g_strdup_printf("%s, %u core%s", g_get_host_name(), cores, cores == 1 ? "" : "s");
    if (duet__request_paced(&experiment->base))
        return g_strdup_printf("%s emulated on %s (times x %g, nothing computed)", emulate, here,
                               duet__request_scale(&experiment->base));
    return g_strdup_printf("%s%s", here, emulate ? ", GPUs emulated" : "");
}

static char *calibration_of(const struct duet__experiment *experiment)
{
    const struct duet__platform *platform = experiment->platform;
    const char *without = experiment->base.config.without;
    GString *text = g_string_new(platform->name);
    if (!experiment->calibrated && strcmp(platform->name, experiment->platform_name) != 0)
        g_string_append_printf(text, " (%s)", experiment->platform_name);
    if (platform->description && *platform->description)
        g_string_append_printf(text, ": %s", platform->description);
    if (experiment->calibrated)
        g_string_append_printf(text, "; %s", experiment->calibrated);
    if (experiment->wake_s > 0)
        g_string_append_printf(text, "; threads as here: %.3g us to wake",
                               experiment->wake_s * 1e6);
    if (experiment->event_s > 0)
        g_string_append_printf(text, "%s %.3g us to notice a device's end",
                               experiment->wake_s > 0 ? "," : "; threads as here:",
                               experiment->event_s * 1e6);
    if (without)
        g_string_append_printf(text, "; simulated without %s", without);
    if (!experiment->noise && !duet__request_paced(&experiment->base))
        g_string_append(text, "; simulated without noise");
    if (experiment->follow_speed)
        g_string_append(text, "; predictions divided by the speed of the machine");
    return g_string_free(text, FALSE);
}

/* Returns the machine's speed when the trial was measured, by that of its calibration; 0: not
   known. */
static double speed_of(const struct duet__experiment *experiment, const struct duet__trial *trial)
{
    double median;
    if (!trial->probes->len)
        return 0;
    median = duet__median((double *)(void *)trial->probes->data, trial->probes->len);
    return median > 0 ? experiment->platform->probe_s / median : 0;
}

/* Brings both sides of a trial to one unit of time, and concludes its runs. */
static void conclude(struct duet__experiment *experiment, struct duet__trial *trial,
                     struct duet__case *the)
{
    double factor = duet__request_scale(&experiment->base);
    if (!experiment->keep_disturbed)
        experiment->left_out += duet__sample_leave_out(&trial->measured);
    if (experiment->follow_speed && the->speed > 0)
        factor /= the->speed;
    duet__sample_conclude(&trial->predicted, factor, &the->predicted);
    the->disturbed = !trial->quiet && !experiment->keep_disturbed;
    the->low_s = trial->low_s * factor;
    the->high_s = trial->high_s * factor;
    duet__sample_conclude(&trial->measured, 1, &the->measured);
}

static struct duet__case case_of(struct duet__experiment *experiment, struct duet__trial *trial)
{
    const struct duet__request *real = &trial->real;
    struct duet__case the = {.workload = real->workload->name,
                             .settings = trial->settings,
                             .platform = experiment->platform->name,
                             .policy = real->policies[0],
                             .n = real->problem.n,
                             .tile = real->problem.tile,
                             .precision = real->problem.precision,
                             .cpus = trial->cpus,
                             .gpus = trial->gpus,
                             .set_arch = real->config.set_arch,
                             .hold = real->config.hold,
                             .priorities = duet__request_priorities(real),
                             .speed = speed_of(experiment, trial),
                             .failure = trial->failure};
    if (!trial->failure)
        conclude(experiment, trial, &the);
    return the;
}

void duet__experiment_conclude(struct duet__experiment *experiment, struct duet__validation *out)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    size_t count = 0;
    g_free(experiment->cases);
    experiment->cases = g_new0(struct duet__case, experiment->trial_count);
    for (size_t i = 0; i < experiment->trial_count; i++) {
        struct duet__trial *trial = &experiment->trials[i];
        /* A trial without a failure and without runs was interrupted before. */
        if (trial->failure ||
            (duet__sample_count(&trial->measured) && duet__sample_count(&trial->predicted)))
            experiment->cases[count++] = case_of(experiment, trial);
    }
    *out = (struct duet__validation){
        .title = keep(experiment, title_of(experiment)),
        .first_name = "predicted",
        .second_name = "measured",
        .machine = keep(experiment, machine_of(experiment)),
        .calibration = keep(experiment, calibration_of(experiment)),
        .date = keep(experiment, g_date_time_format(now, "%Y-%m-%d %H:%M UTC")),
        .cases = experiment->cases,
        .case_count = count,
        .disturbed_rounds = (const size_t *)(void *)experiment->rounds.disturbed->data,
        .disturbed_count = experiment->rounds.disturbed->len,
        .left_out = experiment->left_out,
    };
}
