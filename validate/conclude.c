/* SPDX-License-Identifier: Apache-2.0 */
/* Conclusions: from the runs of an experiment to its report. */
#include <math.h>
#include <string.h>

#include "validate/experiment.h"
#include "base/stats.h"
#include "runtime/open.h"

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
