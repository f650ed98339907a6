/* SPDX-License-Identifier: Apache-2.0 */
/* `duet info`: finds out what is shown. */
#include "cli/info.h"

#include <string.h>
#include <unistd.h>

#include "workloads/kernels.h"
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
    struct duet__unused unused;
    va_list args;

    if (number)
        unused.what = g_strdup_printf("%u %s%s", number, what, number == 1 ? "" : "s");
    else
        unused.what = g_strdup(what);
    va_start(args, format);
    unused.why = g_strdup_vprintf(format, args);
    va_end(args);
    g_array_append_val(facts->unused, unused);
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

    facts->unused = g_array_new(FALSE, FALSE, sizeof(struct duet__unused));
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

/* ------------------------------------------------------------------------------------------- */
/* Kernels                                                                                      */

static void offer(struct duet__facts *facts, const char *name)
{
    struct duet__offer offer = {name, duet__kernel(name) != NULL, duet__cuda_kernel(name) != NULL};

    for (guint i = 0; i < facts->offers->len; i++)
        if (strcmp(g_array_index(facts->offers, struct duet__offer, i).name, name) == 0)
            return;
    g_array_append_val(facts->offers, offer);
}

/* Kernels of all workloads that can run, in order of appearance. */
static void find_offers(struct duet__facts *facts)
{
    facts->offers = g_array_new(FALSE, FALSE, sizeof(struct duet__offer));
    for (size_t i = 0; duet_workload_at(i); i++) {
        const struct duet_workload *workload = duet_workload_at(i);

        for (size_t k = 0; workload->kernels[k]; k++)
            offer(facts, workload->kernels[k]);
    }
}

/* ------------------------------------------------------------------------------------------- */

int duet__facts_find(struct duet__facts *facts, const struct duet_config *config,
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
    find_offers(facts);
    return 0;
}

void duet__facts_fini(struct duet__facts *facts)
{
    for (guint i = 0; facts->unused && i < facts->unused->len; i++) {
        g_free(g_array_index(facts->unused, struct duet__unused, i).what);
        g_free(g_array_index(facts->unused, struct duet__unused, i).why);
    }
    if (facts->unused)
        g_array_free(facts->unused, TRUE);
    if (facts->offers)
        g_array_free(facts->offers, TRUE);
    duet__info_fini(&facts->info);
    *facts = (struct duet__facts){0};
}
