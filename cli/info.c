/* SPDX-License-Identifier: Apache-2.0 */
/* `duet info`: the machine as `duet run` would use it, and why something is not used. */
#include "cli/info.h"

#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/job.h"
#include "workloads/kernels_cuda.h"
#include "workloads/workload.h"

const char *duet__facts_emulation(const struct duet__facts *facts)
{
    const char *emulate = facts->config->emulate;

    if (!emulate)
        return NULL;
    return strcmp(emulate, "free") != 0 ? "paced" : "free";
}

const char *duet__facts_why(const struct survey_device *device)
{
    char name[32];
    int length = g_snprintf(name, sizeof name, "GPU %u: ", device->index);
    const char *why = device->why.text;

    return g_str_has_prefix(why, name) ? why + length : why;
}

/* ------------------------------------------------------------------------------------------- */
/* What is not used                                                                             */

/* Notes that `number` of `what` are not used (0: that `what` is not), and why. */
static void G_GNUC_PRINTF(4, 5)
    leave(struct duet__facts *facts, unsigned number, const char *what, const char *format, ...)
{
    va_list args;

    g_ptr_array_add(facts->unused,
                    number ? g_strdup_printf("%u %s%s", number, what, number == 1 ? "" : "s")
                           : g_strdup(what));
    va_start(args, format);
    g_ptr_array_add(facts->unused, g_strdup_vprintf(format, args));
    va_end(args);
}

/* Cores that could have computed. */
static void leave_cores(struct duet__facts *facts, unsigned workers)
{
    const struct duet__survey *survey = &facts->info.survey;
    unsigned left = survey->cores > workers ? survey->cores - workers : 0;

    if (survey->usable_cores > survey->cores)
        leave(facts, survey->usable_cores - survey->cores, "core",
              "a control group leaves this process the time of %u", survey->quota_cores);
    if (!left)
        return;
    if (duet__facts_emulation(facts))
        leave(facts, left, "core",
              "no worker's; the threads of emulated GPUs, and everything else, may run there");
    else
        leave(facts, left, "core", "--cpus %d", facts->config->cpus);
}

static void leave_processors(struct duet__facts *facts)
{
    const struct duet__survey *survey = &facts->info.survey;
    unsigned workers = facts->info.machine.worker_count;
    unsigned most = MAX(workers, survey->usable_cores);

    if (survey->threads > survey->usable_threads)
        leave(facts, survey->threads - survey->usable_threads, "hardware thread",
              "this process is not to run there (its affinity, by taskset or a container)");
    if (survey->usable_threads > most)
        leave(facts, survey->usable_threads - most, "hardware thread",
              "beside another one in its core; --cpus takes more than one a core");
    leave_cores(facts, workers);
}

static bool is_taken(const struct duet__info *info, unsigned device)
{
    for (unsigned w = 0; w < info->machine.worker_count; w++)
        if (info->devices[w] == (int)device)
            return true;
    return false;
}

static void leave_devices(struct duet__facts *facts)
{
    const struct duet__survey *survey = &facts->info.survey;

    for (unsigned d = 0; d < survey->device_count; d++) {
        const struct survey_device *device = &survey->devices[d];
        const struct survey_backend *backend = &survey->backends[device->backend];
        g_autofree char *what = NULL;

        if (backend->kind != SURVEY_DEVICES || is_taken(&facts->info, d))
            continue;
        what = g_strdup_printf("%s device %u%s%s", backend->name, device->index,
                               *device->pci ? ", " : "", device->pci);
        if (device->error)
            leave(facts, 0, what, "%s", duet__facts_why(device));
        else if (facts->config->emulate)
            leave(facts, 0, what, "--emulate %s", facts->config->emulate);
        else
            leave(facts, 0, what, "--gpus %d", facts->config->gpus);
    }
}

static void find_unused(struct duet__facts *facts)
{
    const char *emulation = duet__facts_emulation(facts);

    facts->unused = g_ptr_array_new_with_free_func(g_free);
    if (facts->info.error)
        return;
    if (emulation && strcmp(emulation, "paced") == 0)
        leave(facts, 0, "the cores of this machine",
              "at the pace of %s nothing is computed; workers are threads that sleep meanwhile",
              facts->config->emulate);
    else
        leave_processors(facts);
    leave_devices(facts);
    if (facts->config->no_peer)
        leave(facts, 0, "direct copies between GPUs", "--no-peer");
}

/* Kernels of all workloads that can run, in order of appearance. */
static void find_kernels(struct duet__facts *facts)
{
    facts->kernels = g_ptr_array_new_with_free_func(g_free);
    for (size_t i = 0; duet_workload_at(i); i++)
        for (const char *const *name = duet_workload_at(i)->kernels; *name; name++)
            if (!g_ptr_array_find_with_equal_func(facts->kernels, *name, g_str_equal, NULL))
                g_ptr_array_add(facts->kernels, g_strdup(*name));
}

/* Finds everything out for a configuration, which is borrowed. Errors of duet__info_open. */
static int find(struct duet__facts *facts, const struct duet_config *config,
                struct duet_message *message)
{
    int error = duet__info_open(&facts->info, config, message);

    facts->config = config;
    if (error)
        return error;
    if (gethostname(facts->host, sizeof facts->host - 1) || !*facts->host)
        g_strlcpy(facts->host, "this machine", sizeof facts->host);
    facts->has_blas = duet__blas_about(&facts->blas);
    facts->cuda_error = duet__cuda_about(&facts->cuda_why);
    find_unused(facts);
    find_kernels(facts);
    return 0;
}

static void fini(struct duet__facts *facts)
{
    g_clear_pointer(&facts->unused, g_ptr_array_unref);
    g_clear_pointer(&facts->kernels, g_ptr_array_unref);
    duet__info_fini(&facts->info);
}

/* ------------------------------------------------------------------------------------------- */
/* The command                                                                                  */

static int write_platform(const struct duet__facts *facts, const char *path,
                          struct duet_message *message)
{
    static const struct duet_calibration none = {0};

    if (!path)
        return 0;
    if (facts->info.error)
        return duet_fail(message, facts->info.error, "%s", facts->info.why.text);
    return duet_platform_write_xml(&facts->info.machine, &none, path, message);
}

static int show(const struct duet__job *job)
{
    struct duet_message message = {""};
    struct duet__facts facts = {0};
    int status = duet__files_check(job), error;

    if (status != DUET__DONE)
        return status;
    error = find(&facts, &job->request.config, &message);
    if (error) {
        status = duet__job_refuse(error, &message);
    } else {
        (job->values.json ? duet__facts_put_json : duet__facts_put_text)(&facts, stdout);
        status = duet__finish_output();
        error = write_platform(&facts, job->values.machine_xml, &message);
        if (status == DUET__DONE && error)
            status = duet__complain(DUET__FAILED, "%s", message.text);
    }
    fini(&facts);
    return status;
}

static int read_all(struct duet__job *job, int argc, char *const *argv,
                    struct duet_message *message)
{
    int error;

    if (argc > 1)
        return duet_fail(message, DUET_EINVAL, "duet info takes options only, not '%s'", argv[1]);
    error = duet__job_check_emulation(job, message);
    if (!error)
        error = duet__job_check_machine(job, message);
    return error ? error : duet__files_distinct(job, message);
}

static int work(struct duet__job *job, int argc, char **argv)
{
    struct duet_message message = {""};
    int error = read_all(job, argc, argv, &message);

    return error ? duet__job_refuse(error, &message) : show(job);
}

const struct duet__command duet__info_command = {
    .name = "info",
    .description = "this duet, this machine, and what a run would use of it",
    .where = DUET__IN_INFO,
    .summary = "Shows this duet, this machine, and the machine that duet run would make of it with "
               "the same "
               "options:\nworkers, memories, links and routes, and what is not used and why.",
    .notes = "Bandwidths and latencies are what schedulers assume before anything was measured. A "
             "machine "
             "without GPUs\nis no error: the reason is shown. Options of duet run that are not "
             "here change "
             "nothing of the machine.\n\n"
             "Examples:\n"
             "  duet info\n"
             "  duet info --gpus 1 --gpu-memory 8GiB --json\n"
             "  duet info --emulate idgraf --gpus 4",
    .work = work,
};
