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

int duet__lab_stop(const struct duet__budget *budget, struct duet_message *message)
{
    if (budget->stop && budget->stop(budget->context))
        return duet_fail(message, DUET_ECANCELED, "the measurement was interrupted");
    return DUET_OK;
}

double duet__lab_share(const struct duet__budget *budget, double share)
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

static int kernel(struct duet__lab *lab, const char *name, duet_kernel_fn cpu,
                  duet_kernel_fn emulated, struct duet_codelet **out)
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
    int error = duet_codelet(lab->runtime, &desc, out);
    return error ? duet__lab_fail(lab, error) : DUET_OK;
}

int duet__lab_kernel(struct duet__lab *lab, const char *name, duet_kernel_fn run,
                     struct duet_codelet **out)
{
    return kernel(lab, name, run, run_empty, out);
}

int duet__lab_open(struct duet__lab *lab, const struct duet_config *config,
                   struct duet_message *message)
{
    *lab = (struct duet__lab){.message = message};
    int error = duet_open(&lab->runtime, config, message);
    if (error)
        return error;
    lab->machine = duet_runtime_machine(lab->runtime);
    while (lab->cpus < lab->machine->worker_count &&
           lab->machine->workers[lab->cpus].node == DUET_HOST)
        lab->cpus++;
    error = kernel(lab, "calibrate_empty", run_empty, run_empty, &lab->empty);
    if (!error)
        error = kernel(lab, "calibrate_fill", run_empty, run_fill, &lab->fill);
    return error ? duet__lab_close(lab, error) : DUET_OK;
}

int duet__lab_close(struct duet__lab *lab, int error)
{
    int closed = lab->runtime ? duet_close(lab->runtime) : DUET_OK;
    lab->runtime = NULL;
    if (!error && closed)
        error =
            duet_fail(lab->message, closed, "a measurement ended with: %s", duet_strerror(closed));
    return error;
}

int duet__lab_fail(const struct duet__lab *lab, int error)
{
    const char *text = duet_last_message(lab->runtime);
    return duet_fail(lab->message, error, "%s", *text ? text : duet_strerror(error));
}

/* ------------------------------------------------------------------------------------------- */
/* Tasks                                                                                        */

int duet__lab_submit(const struct duet__lab *lab, const struct duet_codelet *codelet,
                     unsigned worker, const struct duet_access *accesses, size_t count,
                     const void *args, size_t args_bytes)
{
    const struct duet_task_desc task = {.codelet = codelet,
                                        .accesses = accesses,
                                        .access_count = count,
                                        .args = args,
                                        .args_bytes = args_bytes,
                                        .priority = (int)worker};
    int error = duet_submit(lab->runtime, &task);
    return error ? duet__lab_fail(lab, error) : DUET_OK;
}

int duet__lab_wait(const struct duet__lab *lab)
{
    int error = duet_wait(lab->runtime);
    return error ? duet__lab_fail(lab, error) : DUET_OK;
}

int duet__lab_events(const struct duet__lab *lab, struct duet_event **events, size_t *count)
{
    *events = NULL;
    int error = duet__lab_wait(lab);
    if (error)
        return error;
    error = duet_trace_events(lab->runtime, events, count);
    return error ? duet__lab_fail(lab, error) : DUET_OK;
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
