/* SPDX-License-Identifier: Apache-2.0 */
/* What measurements through the public interface share. */
#include "calibrate/lab.h"

#include <math.h>
#include <sched.h>
#include <string.h>

#include <glib.h>

#include "validate/stats.h"

/* ------------------------------------------------------------------------------------------- */
/* Time                                                                                         */

struct duet__budget duet__lab_budget(double seconds, bool (*stop)(void *context), void *context)
{
    return (struct duet__budget){.end_s = duet__clock_s() + (seconds > 0 ? seconds : 0),
                                 .stop = stop,
                                 .context = context};
}

int duet__budget_check(const struct duet__budget *budget, struct duet_message *message)
{
    if (budget->stop && budget->stop(budget->context))
        return duet_fail(message, DUET_ECANCELED, "the measurement was interrupted");
    return DUET_OK;
}

bool duet__lab_goes_on(struct duet__lab *lab)
{
    if (!lab->error)
        lab->error = duet__budget_check(lab->budget, lab->message);
    return !lab->error;
}

double duet__budget_share(const struct duet__budget *budget, double share)
{
    double now = duet__clock_s();
    return now + fmax(0, budget->end_s - now) * share;
}

/* ------------------------------------------------------------------------------------------- */
/* Runtimes                                                                                     */

static struct duet_config quiet(const struct duet_config *config, const char *policy)
{
    struct duet_config own = *config;
    own.policy = policy;
    own.window = 0;
    own.record = own.record_accesses = false;
    own.trace = NULL;
    own.report = false;
    own.quiet = true;
    own.set_arch = false;
    own.lose = NULL;
    return own;
}

struct duet_config duet__lab_host(const struct duet_config *config, const char *policy, int cpus)
{
    struct duet_config own = quiet(config, policy);
    own.emulate = NULL;
    own.scale = 0;
    own.gpus = 0;
    if (own.cpus == 0)
        own.cpus = 1;
    if (cpus > 0 && (own.cpus < 0 || own.cpus > cpus))
        own.cpus = cpus;
    return own;
}

struct duet_config duet__lab_devices(const struct duet_config *config, int cpus)
{
    struct duet_config own = quiet(config, "pinned");
    own.cpus = cpus;
    own.record = true;
    return own;
}

bool duet__lab_paced(const struct duet_config *config)
{
    return config->emulate && strcmp(config->emulate, "free") != 0;
}

static int run_empty(const struct duet_call *call)
{
    return DUET_OK;
}

/* Memory that was never written is read faster than other. */
static int run_fill(const struct duet_call *call)
{
    for (size_t i = 0; i < call->buffer_count; i++) {
        const struct duet_buffer *buffer = &call->buffers[i];
        if (buffer->data)
            memset(buffer->data, 1, buffer->rows * buffer->cols * buffer->element_bytes);
    }
    return DUET_OK;
}

/* Where a pace is emulated, something has to be its time. */
static double some_time(const void *args, const char *arch)
{
    return 1e-5;
}

void duet__lab_note(struct duet__lab *lab, int error)
{
    const char *text = duet_last_message(lab->runtime);
    if (error && !lab->error)
        lab->error = duet_fail(lab->message, error, "%s", *text ? text : duet_strerror(error));
}

static struct duet_codelet *kernel(struct duet__lab *lab, const char *name, duet_kernel_fn cpu,
                                   duet_kernel_fn emulated)
{
    const struct duet_implementation implementations[] = {
        {.arch = "cpu", .run = cpu},
        {.arch = "emulated", .run = emulated},
        {.arch = "cuda", .run = run_empty},
    };
    const struct duet_codelet_desc desc = {
        .name = name,
        .implementations = implementations,
        .implementation_count = sizeof implementations / sizeof implementations[0],
        .cost = some_time,
    };
    struct duet_codelet *codelet = NULL;
    if (!lab->error)
        duet__lab_note(lab, duet_codelet(lab->runtime, &desc, &codelet));
    return codelet;
}

struct duet_codelet *duet__lab_kernel(struct duet__lab *lab, const char *name, duet_kernel_fn run)
{
    return kernel(lab, name, run, run_empty);
}

bool duet__lab_open(struct duet__lab *lab, const struct duet_config *config,
                    const struct duet__budget *budget, struct duet_message *message)
{
    *lab = (struct duet__lab){.budget = budget, .message = message};
    if (!duet__lab_goes_on(lab))
        return false;
    lab->error = duet_open(&lab->runtime, config, message);
    if (lab->error)
        return false;
    lab->machine = duet_runtime_machine(lab->runtime);
    while (lab->cpus < lab->machine->worker_count &&
           lab->machine->workers[lab->cpus].node == DUET_HOST)
        lab->cpus++;
    lab->empty = kernel(lab, "calibrate_empty", run_empty, run_empty);
    lab->fill = kernel(lab, "calibrate_fill", run_empty, run_fill);
    return !lab->error;
}

int duet__lab_close(struct duet__lab *lab)
{
    int closed = lab->runtime ? duet_close(lab->runtime) : DUET_OK;
    lab->runtime = NULL;
    if (!lab->error && closed)
        lab->error =
            duet_fail(lab->message, closed, "a measurement ended with: %s", duet_strerror(closed));
    return lab->error;
}

/* ------------------------------------------------------------------------------------------- */
/* Tasks                                                                                        */

struct duet_handle *duet__lab_vector(struct duet__lab *lab, void *data, size_t bytes)
{
    struct duet_handle *handle = NULL;
    if (!lab->error)
        duet__lab_note(lab, duet_vector(lab->runtime, data, bytes, 1, &handle));
    return handle;
}

void duet__lab_forget(struct duet__lab *lab, struct duet_handle *handle)
{
    if (handle)
        duet__lab_note(lab, duet_unregister(lab->runtime, handle));
}

void duet__lab_submit(struct duet__lab *lab, const struct duet_codelet *codelet, unsigned worker,
                      const struct duet_access *accesses, size_t count)
{
    duet__lab_submit_with(lab, codelet, worker, accesses, count, NULL);
}

void duet__lab_submit_with(struct duet__lab *lab, const struct duet_codelet *codelet,
                           unsigned worker, const struct duet_access *accesses, size_t count,
                           void *context)
{
    const struct duet_task_desc task = {.codelet = codelet,
                                        .accesses = accesses,
                                        .access_count = count,
                                        .args = &context,
                                        .args_bytes = sizeof context,
                                        .priority = (int)worker};
    if (!lab->error)
        duet__lab_note(lab, duet_submit(lab->runtime, &task));
}

void duet__lab_wait(struct duet__lab *lab)
{
    duet__lab_note(lab, duet_wait(lab->runtime));
}

size_t duet__lab_events(struct duet__lab *lab, struct duet_event **events)
{
    size_t count = 0;
    *events = NULL;
    duet__lab_wait(lab);
    if (!lab->error)
        duet__lab_note(lab, duet_trace_events(lab->runtime, events, &count));
    return lab->error ? 0 : count;
}

/* ------------------------------------------------------------------------------------------- */
/* Samples                                                                                      */

void duet__values_add(struct duet__values *samples, double value)
{
    if (samples->count == samples->capacity) {
        samples->capacity = 2 * samples->capacity + 64;
        samples->values = g_renew(double, samples->values, samples->capacity);
    }
    samples->values[samples->count++] = value;
}

void duet__values_report(struct duet__values *samples, struct duet__measured *out)
{
    struct duet_summary summary = {0};
    if (samples->count && duet_summarise(samples->values, samples->count, &summary, NULL))
        summary.count = 0; /* not all of them are finite */
    out->samples = summary.count;
    out->median_s = summary.median;
    out->mean_s = summary.mean;
    out->deviation_s = summary.deviation;
    out->low_s = summary.quartile1;
    out->high_s = summary.quartile3;
    if (out->samples)
        out->why[0] = '\0';
    samples->count = 0;
}

void duet__values_fini(struct duet__values *samples)
{
    g_free(samples->values);
    *samples = (struct duet__values){0};
}

/* ------------------------------------------------------------------------------------------- */
/* Room for the worker that is measured                                                         */

int duet__lab_processor(void)
{
    return sched_getcpu();
}

void *duet__lab_aside(int processor)
{
    cpu_set_t *before = g_new(cpu_set_t, 1);
    if (processor >= 0 && processor < CPU_SETSIZE &&
        !sched_getaffinity(0, sizeof *before, before)) {
        cpu_set_t others = *before;
        CPU_CLR((size_t)processor, &others);
        if (CPU_COUNT(&others) > 0 && !sched_setaffinity(0, sizeof others, &others))
            return before;
    }
    g_free(before);
    return NULL;
}

void duet__lab_back(void *before)
{
    if (before)
        (void)sched_setaffinity(0, sizeof(cpu_set_t), before);
    g_free(before);
}
