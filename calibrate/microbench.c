/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by measurements through the public interface. */
#include "calibrate/microbench.h"

#include "workloads/kernels_cuda.h"

bool duet__microbench_goes_on(struct duet__microbench *bench)
{
    const struct duet__measurement *given = bench->given;
    if (!bench->error && given->stop && given->stop(given->context))
        bench->error = duet_fail(given->message, DUET_ECANCELED, "the measurement was interrupted");
    return !bench->error;
}

bool duet__microbench_more(struct duet__microbench *bench, size_t count, size_t least, size_t most,
                           double end_s)
{
    return (count < least || (count < most && duet__clock_s() < end_s)) &&
           duet__microbench_goes_on(bench);
}

double duet__microbench_share(const struct duet__microbench *bench, double part)
{
    double now_s = duet__clock_s();
    return now_s + fmax(0, bench->given->end_s - now_s) * part;
}

void duet__microbench_note(struct duet__microbench *bench, int error)
{
    const char *text = duet_last_message(bench->runtime);
    if (error && !bench->error)
        bench->error =
            duet_fail(bench->given->message, error, "%s", *text ? text : duet_strerror(error));
}

/* ------------------------------------------------------------------------------------------- */
/* Kernels                                                                                      */

static int run_empty(const struct duet_call *call)
{
    return DUET_OK;
}

/* Time of emulated kernels, which need one. */
static double some_time(const void *args, const char *arch)
{
    return 1e-5;
}

struct duet_codelet *duet__microbench_kernel(struct duet__microbench *bench, const char *name,
                                             duet_kernel_fn cpu, duet_kernel_fn emulated)
{
    /* an empty kernel measures a launch; a function that enqueues nothing would not */
    const duet_kernel_fn launched = duet__cuda_kernel("empty");
    const struct duet_implementation implementations[] = {
        {.arch = "cpu", .run = cpu ? cpu : run_empty},
        {.arch = "emulated", .run = emulated ? emulated : run_empty},
        {.arch = "cuda", .run = launched ? launched : run_empty},
        {.arch = "opencl", .run = run_empty},
    };
    const struct duet_codelet_desc desc = {
        .name = name,
        .implementations = implementations,
        .implementation_count = G_N_ELEMENTS(implementations),
        .cost = some_time,
    };
    struct duet_codelet *codelet = NULL;
    if (!bench->error)
        duet__microbench_note(bench, duet_register_codelet(bench->runtime, &desc, &codelet));
    return codelet;
}

/* ------------------------------------------------------------------------------------------- */
/* Opening and closing                                                                          */

static struct duet_config configure(const struct duet_config *given, const char *policy, int cpus,
                                    int gpus)
{
    struct duet_config own = *given;
    own.nearest_source = true; /* copies between two devices alone are measured */
    own.policy = policy;
    own.window = 0;
    own.record_accesses = own.report = own.set_arch = false;
    own.hold = false; /* tasks are timed while others are submitted */
    own.record = gpus > 0;
    own.trace = own.lose = NULL;
    own.quiet = true;
    if (gpus) {
        own.cpus = cpus;
        own.gpus = MIN(own.gpus, gpus); /* -1 stays: all */
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

bool duet__microbench_open(struct duet__microbench *bench, const struct duet__measurement *given,
                           const char *policy, int cpus, int gpus)
{
    const struct duet_config config = configure(given->config, policy, cpus, gpus);
    *bench = (struct duet__microbench){.given = given};
    if (duet__microbench_goes_on(bench))
        bench->error = duet_open(&bench->runtime, &config, given->message);
    if (bench->error)
        return false;
    bench->machine = duet_runtime_machine(bench->runtime);
    while (bench->cpus < bench->machine->worker_count &&
           bench->machine->workers[bench->cpus].node == DUET_HOST)
        bench->cpus++;
    bench->empty = duet__microbench_kernel(bench, "calibrate_empty", NULL, NULL);
    return !bench->error;
}

int duet__microbench_close(struct duet__microbench *bench)
{
    int closed = bench->runtime ? duet_close(bench->runtime) : DUET_OK;
    g_free(bench->memory);
    if (!bench->error && closed)
        bench->error = duet_fail(bench->given->message, closed, "a measurement ended with: %s",
                                 duet_strerror(closed));
    return bench->error;
}

/* ------------------------------------------------------------------------------------------- */
/* Tasks                                                                                        */

struct duet_handle *duet__microbench_vector(struct duet__microbench *bench, void *data,
                                            size_t bytes)
{
    struct duet_handle *handle = NULL;
    if (!bench->error)
        duet__microbench_note(bench, duet_register_vector(bench->runtime, data, bytes, 1, &handle));
    return handle;
}

void duet__microbench_forget(struct duet__microbench *bench, struct duet_handle *handle)
{
    if (handle)
        duet__microbench_note(bench, duet_unregister(bench->runtime, handle));
}

void duet__microbench_submit(struct duet__microbench *bench, const struct duet_codelet *codelet,
                             unsigned worker, const struct duet_access *accesses, size_t count,
                             void *context)
{
    const struct duet_task_desc task = {.codelet = codelet,
                                        .accesses = accesses,
                                        .access_count = count,
                                        .args = &context,
                                        .args_bytes = sizeof context,
                                        .priority = (int)worker};
    if (!bench->error)
        duet__microbench_note(bench, duet_submit(bench->runtime, &task));
}

void duet__microbench_wait(struct duet__microbench *bench)
{
    duet__microbench_note(bench, duet_wait(bench->runtime));
}

size_t duet__microbench_events(struct duet__microbench *bench, struct duet_event **events)
{
    size_t count = 0;
    *events = NULL;
    duet__microbench_wait(bench);
    if (!bench->error)
        duet__microbench_note(bench, duet_trace_events(bench->runtime, events, &count));
    return bench->error ? 0 : count;
}

void duet__measured_set(struct duet__measured *out, GArray *values)
{
    out->times = duet__summarise((const double *)(void *)values->data, values->len);
    if (out->times.count)
        out->why = NULL;
    g_array_unref(values);
}
