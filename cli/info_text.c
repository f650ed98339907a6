/* SPDX-License-Identifier: Apache-2.0 */
/* `duet info` for people: what duet is, what the machine is, what is left. */
#include <string.h>

#include "cli/build.h"
#include "cli/info.h"
#include "report/table.h"

enum { AT = 16 /* column of texts */ };

static const char *plural(unsigned number)
{
    return number == 1 ? "" : "s";
}

/* ------------------------------------------------------------------------------------------- */
/* duet itself                                                                                  */

static void put_gpu_libraries(const struct duet__facts *facts, FILE *stream)
{
    const char *cuda = duet__build()->cuda;

    if (!*cuda)
        duet__put_field(stream, "GPU kernels", AT, "none in this build, which is without CUDA");
    else if (facts->cuda_error)
        duet__put_field(stream, "GPU kernels", AT,
                        "CUDA %s, but those of cuBLAS and cuSOLVER cannot be used: %s", cuda,
                        facts->cuda_why.text);
    else
        duet__put_field(stream, "GPU kernels", AT, "CUDA %s; cuBLAS and cuSOLVER are found", cuda);
}

/* Length of "OpenBLAS 0.3.21" at the beginning of a text that goes on with options. */
static int two_words(const char *text)
{
    size_t length = strcspn(text, " ");

    if (text[length])
        length += 1 + strcspn(text + length + 1, " ");
    return (int)length;
}

static void put_build(const struct duet__facts *facts, FILE *stream)
{
    const struct duet__build *build = duet__build();

    fprintf(stream, "duet %s\n", build->version);
    duet__put_field(stream, "compiled", AT, "by %s, %s%s%s%s", build->compiler, build->type,
                    build->link_time_optimisation ? ", optimised when linked" : "",
                    *build->sanitizers ? ", under sanitizers: " : "", build->sanitizers);
    duet__put_field(stream, "simulation", AT, "%s%s",
                    *build->simgrid ? "SimGrid " : "none in this build", build->simgrid);
    if (facts->has_blas)
        duet__put_field(stream, "CPU kernels", AT, "%.*s, code for %s",
                        two_words(facts->blas.build), facts->blas.build, facts->blas.core);
    else
        duet__put_field(stream, "CPU kernels", AT, "none of BLAS in this build");
    put_gpu_libraries(facts, stream);
}

/* ------------------------------------------------------------------------------------------- */
/* The host                                                                                     */

static void put_memory(const struct duet__facts *facts, FILE *stream)
{
    const struct duet__survey *survey = &facts->info.survey;
    char *all = duet__size_text(survey->memory_bytes), *left = duet__size_text(survey->free_bytes);

    if (survey->memory_bytes)
        duet__put_field(stream, "memory", AT, "%s%s%s%s", all, survey->free_bytes ? ", " : "",
                        survey->free_bytes ? left : "", survey->free_bytes ? " of it free" : "");
    g_free(all);
    g_free(left);
}

static bool has_gpus(const struct duet__survey *survey)
{
    for (unsigned b = 0; b < survey->backend_count; b++)
        if (survey->backends[b].kind == SURVEY_DEVICES && survey->backends[b].count)
            return true;
    return false;
}

static void put_pinning(const struct duet__facts *facts, FILE *stream)
{
    const struct duet__survey *survey = &facts->info.survey;
    uint64_t bytes = facts->info.pin_bytes;
    bool beyond = survey->memory_bytes && bytes > survey->memory_bytes;
    char *size;

    if (!has_gpus(survey))
        return;
    size = duet__size_text(bytes);
    if (bytes)
        duet__put_field(stream, "page-locking", AT,
                        "up to %s of the memory, for copies from and to GPUs (--pin)%s", size,
                        beyond ? "; that is more than there is" : "");
    else
        duet__put_field(
            stream, "page-locking", AT,
            "nothing of the application's (--pin none): copies from and to GPUs go through small "
            "buffers");
    g_free(size);
}

static void put_host(const struct duet__facts *facts, FILE *stream)
{
    const struct duet__survey *survey = &facts->info.survey;

    fprintf(stream, "\n%s\n", facts->host);
    duet__put_field(stream, "processors", AT, "%u core%s on %u socket%s, %u hardware thread%s",
                    survey->cores, plural(survey->cores), survey->sockets, plural(survey->sockets),
                    survey->usable_threads, plural(survey->usable_threads));
    if (survey->threads > survey->usable_threads)
        duet__put_field(stream, "", AT, "(of %u hardware threads that the machine has)",
                        survey->threads);
    if (survey->quota_cores)
        duet__put_field(stream, "", AT, "(a control group leaves the time of %u core%s)",
                        survey->quota_cores, plural(survey->quota_cores));
    put_memory(facts, stream);
    put_pinning(facts, stream);
}

/* ------------------------------------------------------------------------------------------- */
/* Devices                                                                                      */

static void put_device(const struct survey_device *device, FILE *stream)
{
    char *usable = duet__size_text(device->memory_bytes),
         *all = duet__size_text(device->total_bytes);

    if (device->error)
        duet__put_field(stream, "", AT, "%u: cannot be used: %s", device->index,
                        duet__facts_why(device));
    else
        duet__put_field(stream, "", AT, "%u: %s (%s)%s%s; %s usable of %s", device->index,
                        device->description, device->arch, *device->pci ? ", PCI " : "",
                        device->pci, usable, all);
    g_free(usable);
    g_free(all);
}

static void put_backend(const struct duet__survey *survey, unsigned number, FILE *stream)
{
    const struct survey_backend *backend = &survey->backends[number];
    const struct survey_device *first = survey->devices;

    while (first < survey->devices + survey->device_count && first->backend != number)
        first++;
    if (!backend->count)
        duet__put_field(stream, backend->name, AT, "no devices: %s",
                        *backend->why.text ? backend->why.text : "there are none");
    else if (backend->kind == SURVEY_DEVICES)
        duet__put_field(stream, backend->name, AT, "%u device%s: %s", backend->count,
                        plural(backend->count), backend->description);
    else if (backend->kind == SURVEY_CORES)
        duet__put_field(stream, backend->name, AT, "%u core%s: %s", backend->count,
                        plural(backend->count),
                        first->error ? first->why.text : first->description);
    else
        duet__put_field(stream, backend->name, AT, "up to %u: %s (--emulate free)", backend->count,
                        first->error ? first->why.text : first->description);
    for (unsigned d = 0; d < survey->device_count && backend->kind == SURVEY_DEVICES; d++)
        if (survey->devices[d].backend == number)
            put_device(&survey->devices[d], stream);
}

/* ------------------------------------------------------------------------------------------- */
/* The rest                                                                                     */

static void put_unused(const struct duet__facts *facts, FILE *stream)
{
    if (!facts->unused->len)
        return;
    fputs("\nnot used\n", stream);
    for (guint i = 0; i < facts->unused->len; i++) {
        const struct duet__unused *unused = &g_array_index(facts->unused, struct duet__unused, i);

        duet__put_field(stream, "", 2, "%s: %s", unused->what, unused->why);
    }
}

static void put_offers(const struct duet__facts *facts, FILE *stream)
{
    GString *cpu = g_string_new(NULL), *cuda = g_string_new(NULL);

    for (guint i = 0; i < facts->offers->len; i++) {
        const struct duet__offer *offer = &g_array_index(facts->offers, struct duet__offer, i);

        if (offer->cpu)
            g_string_append_printf(cpu, "%s%s", cpu->len ? ", " : "", offer->name);
        if (offer->cuda)
            g_string_append_printf(cuda, "%s%s", cuda->len ? ", " : "", offer->name);
    }
    fputs("\nkernels, in single and double precision\n", stream);
    duet__put_field(stream, "cpu", AT, "%s", cpu->len ? cpu->str : "none");
    duet__put_field(stream, "cuda", AT, "%s", cuda->len ? cuda->str : "none");
    g_string_free(cpu, TRUE);
    g_string_free(cuda, TRUE);
}

void duet__facts_put_text(const struct duet__facts *facts, FILE *stream)
{
    put_build(facts, stream);
    put_host(facts, stream);
    fputs("\ndevices\n", stream);
    for (unsigned b = 0; b < facts->info.survey.backend_count; b++)
        put_backend(&facts->info.survey, b, stream);
    duet__facts_put_machine(facts, stream);
    put_unused(facts, stream);
    put_offers(facts, stream);
}
