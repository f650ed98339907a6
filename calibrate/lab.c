/* SPDX-License-Identifier: Apache-2.0 */
/* What measurements through the public interface share. */
#include "calibrate/lab.h"

#include <math.h>

bool duet__lab_goes_on(struct duet__lab *lab)
{
    const struct duet__measurement *given = lab->given;
    if (!lab->error && given->stop && given->stop(given->context))
        lab->error = duet_fail(given->message, DUET_ECANCELED, "the measurement was interrupted");
    return !lab->error;
}

bool duet__lab_more(struct duet__lab *lab, size_t count, size_t least, size_t most, double end_s)
{
    return (count < least || (count < most && duet__clock_s() < end_s)) && duet__lab_goes_on(lab);
}

double duet__lab_share(const struct duet__lab *lab, double part)
{
    double now_s = duet__clock_s();
    return now_s + fmax(0, lab->given->end_s - now_s) * part;
}

void duet__lab_note(struct duet__lab *lab, int error)
{
    const char *text = duet_last_message(lab->runtime);
    if (error && !lab->error)
        lab->error =
            duet_fail(lab->given->message, error, "%s", *text ? text : duet_strerror(error));
}

/* ------------------------------------------------------------------------------------------- */
/* Kernels                                                                                      */

static int run_empty(const struct duet_call *call)
{
    return DUET_OK;
}

/* Where a pace is emulated, something has to be its time. */
static double some_time(const void *args, const char *arch)
{
    return 1e-5;
}

struct duet_codelet *duet__lab_kernel(struct duet__lab *lab, const char *name, duet_kernel_fn cpu,
                                      duet_kernel_fn emulated)
{
    const struct duet_implementation implementations[] = {
        {.arch = "cpu", .run = cpu ? cpu : run_empty},
        {.arch = "emulated", .run = emulated ? emulated : run_empty},
        {.arch = "cuda", .run = run_empty},
    };
    const struct duet_codelet_desc desc = {
        .name = name,
        .implementations = implementations,
        .implementation_count = G_N_ELEMENTS(implementations),
        .cost = some_time,
    };
    struct duet_codelet *codelet = NULL;
    if (!lab->error)
        duet__lab_note(lab, duet_codelet(lab->runtime, &desc, &codelet));
    return codelet;
}

/* ------------------------------------------------------------------------------------------- */
/* Opening and closing                                                                          */

static struct duet_config configure(const struct duet_config *given, const char *policy, int cpus,
                                    int gpus)
{
    struct duet_config own = *given;
    own.policy = policy;
    own.window = 0;
    own.record_accesses = own.report = own.set_arch = false;
    own.record = gpus > 0;
    own.trace = own.lose = NULL;
    own.quiet = true;
    if (gpus) {
        own.cpus = cpus;
        own.gpus = MIN(own.gpus, gpus); /* all of them stay all */
        return own;
    }
    own.emulate = NULL;
    own.scale = 0;
    own.gpus = 0;
    if (own.cpus == 0)
        own.cpus = 1;
    if (cpus && (own.cpus < 0 || own.cpus > cpus))
        own.cpus = cpus;
    return own;
}

bool duet__lab_open(struct duet__lab *lab, const struct duet__measurement *given,
                    const char *policy, int cpus, int gpus)
{
    const struct duet_config config = configure(given->config, policy, cpus, gpus);
    *lab = (struct duet__lab){.given = given};
    if (duet__lab_goes_on(lab))
        lab->error = duet_open(&lab->runtime, &config, given->message);
    if (lab->error)
        return false;
    lab->machine = duet_runtime_machine(lab->runtime);
    while (lab->cpus < lab->machine->worker_count &&
           lab->machine->workers[lab->cpus].node == DUET_HOST)
        lab->cpus++;
    lab->empty = duet__lab_kernel(lab, "calibrate_empty", NULL, NULL);
    return !lab->error;
}

int duet__lab_close(struct duet__lab *lab)
{
    int closed = lab->runtime ? duet_close(lab->runtime) : DUET_OK;
    g_free(lab->memory);
    if (!lab->error && closed)
        lab->error = duet_fail(lab->given->message, closed, "a measurement ended with: %s",
                               duet_strerror(closed));
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
                      const struct duet_access *accesses, size_t count, void *context)
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

void duet__measured_set(struct duet__measured *out, GArray *values)
{
    out->times = duet__summarise((const double *)(void *)values->data, values->len);
    if (out->times.count)
        out->why = NULL;
    g_array_unref(values);
}
