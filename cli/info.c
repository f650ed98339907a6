/* SPDX-License-Identifier: Apache-2.0 */
/* `duet info`: the machine as `duet run` would use it, and why something is not used. */
#include "cli/info.h"

#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/job.h"
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
/* Unused parts of the machine                                                                  */

/* Notes that `what` is not used, and why. Takes both over. */
static void leave(struct duet__facts *facts, char *what, char *why)
{
    g_ptr_array_add(facts->unused, what);
    g_ptr_array_add(facts->unused, why);
}

/* Notes that `all` - `used` pieces of `what` are not used, if there are any. Takes `why` over. */
static void leave_rest(struct duet__facts *facts, unsigned all, unsigned used, const char *what,
                       char *why)
{
    if (all > used)
        leave(facts, g_strdup_printf("%u %s%s", all - used, what, all - used == 1 ? "" : "s"), why);
    else
        g_free(why);
}

static void leave_processors(struct duet__facts *facts)
{
    const struct duet__survey *survey = &facts->info.survey;
    unsigned workers = facts->info.machine.worker_count;

    leave_rest(facts, survey->threads, survey->usable_threads, "hardware thread",
               g_strdup("this process is not to run there (its affinity, by taskset or a "
                        "container)"));
    leave_rest(facts, survey->usable_threads, MAX(workers, survey->usable_cores), "hardware thread",
               g_strdup("beside another one in its core; --cpus takes more than one a core"));
    leave_rest(facts, survey->usable_cores, survey->cores, "core",
               g_strdup_printf("a control group leaves this process the time of %u",
                               survey->quota_cores));
    leave_rest(facts, survey->cores, workers, "core",
               facts->config->emulate
                   ? g_strdup("no worker's; the threads of emulated GPUs, and everything else, may "
                              "run there")
                   : g_strdup_printf("--cpus %d", facts->config->cpus));
}

static bool has_worker(const struct duet__info *info, unsigned device)
{
    for (unsigned w = 0; w < info->machine.worker_count; w++)
        if (info->devices[w] == (int)device)
            return true;
    return false;
}

static void leave_devices(struct duet__facts *facts)
{
    const struct duet__survey *survey = &facts->info.survey;
    const char *emulate = facts->config->emulate;
    const char *kind = facts->config->devices ? facts->config->devices : "cuda";

    for (unsigned d = 0; d < survey->device_count; d++) {
        const struct survey_device *device = &survey->devices[d];
        const struct survey_backend *backend = &survey->backends[device->backend];

        if (backend->kind != SURVEY_DEVICES || has_worker(&facts->info, d))
            continue;
        leave(facts,
              g_strdup_printf("%s device %u%s%s", backend->name, device->index,
                              *device->pci ? ", " : "", device->pci),
              device->error ? g_strdup(duet__facts_why(device))
              : emulate     ? g_strdup_printf("--emulate %s", emulate)
              : strcmp(backend->name, kind) != 0
                  ? g_strdup_printf("--devices %s takes others", kind)
                  : g_strdup_printf("--gpus %d", facts->config->gpus));
    }
}

static void find_unused(struct duet__facts *facts)
{
    if (facts->info.error)
        return;
    if (g_strcmp0(duet__facts_emulation(facts), "paced") == 0)
        leave(facts, g_strdup("the cores of this machine"),
              g_strdup_printf("at the pace of %s nothing is computed; workers are threads that "
                              "sleep meanwhile",
                              facts->config->emulate));
    else
        leave_processors(facts);
    leave_devices(facts);
    if (facts->config->no_peer)
        leave(facts, g_strdup("direct copies between GPUs"), g_strdup("--no-peer"));
}

/* Finds all facts for a configuration, which is borrowed. Returns errors of duet__info_open. */
static int find(struct duet__facts *facts, const struct duet_config *config,
                struct duet_message *message)
{
    int error = duet__info_open(&facts->info, config, true, message);

    *facts = (struct duet__facts){.config = config,
                                  .info = facts->info,
                                  .unused = g_ptr_array_new_with_free_func(g_free),
                                  .kernels = g_ptr_array_new_with_free_func(g_free)};
    if (error)
        return error;
    if (gethostname(facts->host, sizeof facts->host - 1) || !*facts->host)
        g_strlcpy(facts->host, "this machine", sizeof facts->host);
    facts->has_blas = duet__blas_about(&facts->blas);
    facts->cuda_error = duet__cuda_about(&facts->cuda_why);
    facts->opencl_error = duet__opencl_about(&facts->opencl_why);
    find_unused(facts);
    for (size_t i = 0; duet__workload_at(i); i++)
        for (const char *const *name = duet__workload_at(i)->kernels; *name; name++)
            if (!g_ptr_array_find_with_equal_func(facts->kernels, *name, g_str_equal, NULL))
                g_ptr_array_add(facts->kernels, g_strdup(*name));
    return 0;
}

/* ------------------------------------------------------------------------------------------- */
/* The command                                                                                  */

static int write_platform(const struct duet__facts *facts, const char *path,
                          struct duet_message *message)
{
    if (!path)
        return 0;
    if (facts->info.error)
        return duet_fail(message, facts->info.error, "%s", facts->info.why.text);
    return duet__platform_write_xml(&facts->info.machine, NULL, path, message);
}

static int show(const struct duet__facts *facts, const struct duet__job *job)
{
    struct duet_message message = {""};
    int status;

    (job->values.json ? duet__facts_put_json : duet__facts_put_text)(facts, stdout);
    status = duet__finish_output();
    if (write_platform(facts, job->values.machine_xml, &message) && status == DUET__DONE)
        status = duet__complain(DUET__FAILED, "%s", message.text);
    return status;
}

static int work(struct duet__job *job, int argc, char **argv)
{
    struct duet_message message = {""};
    struct duet__facts facts = {0};
    int status, error;

    if (argc > 1)
        return duet__complain(DUET__MISUSED, "duet info takes options only, not '%s'", argv[1]);
    error = duet__job_check_emulation(job, &message);
    if (!error)
        error = duet__job_check_machine(job, &message);
    if (!error)
        error = duet__files_distinct(job, &message);
    status = error ? duet__job_refuse(error, &message) : duet__files_check(job);
    if (status != DUET__DONE)
        return status;
    error = find(&facts, &job->request.config, &message);
    status = error ? duet__job_refuse(error, &message) : show(&facts, job);
    g_ptr_array_unref(facts.unused);
    g_ptr_array_unref(facts.kernels);
    duet__info_fini(&facts.info);
    return status;
}

const struct duet__command duet__info_command = {
    .name = "info",
    .description = "this duet, this machine, and what a run would use of it",
    .where = DUET__IN_INFO,
    .summary = "Shows this duet, this machine, and the machine that duet run would make of it with "
               "the same options:\nworkers, memories, links and routes, and what is not used and "
               "why.",
    .notes = "Bandwidths and latencies are what schedulers assume before anything was measured. A "
             "machine without GPUs\nis no error: the reason is shown. Options of duet run that are "
             "not here change nothing of the machine.\n\n"
             "Examples:\n"
             "  duet info\n"
             "  duet info --gpus 1 --gpu-memory 8GiB --json\n"
             "  duet info --emulate idgraf --gpus 4",
    .work = work,
};
