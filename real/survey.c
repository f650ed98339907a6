/* SPDX-License-Identifier: Apache-2.0 */
/* The resources of this machine, by its backends, hwloc and the operating system. */
#include "real/survey.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "backends/backend.h"
#include "real/topology.h"

/* ------------------------------------------------------------------------------------------- */
/* Backends and their devices                                                                   */

static void describe_device(struct survey_device *device, const struct duet__backend *backend)
{
    struct backend_info info = {.arch = ""};
    device->error = backend->describe(device->index, &info, &device->why);
    if (device->error) {
        if (!*device->why.text)
            (void)duet_fail(&device->why, 0, "%s", duet_strerror(device->error));
        return;
    }
    memcpy(device->arch, info.arch, sizeof device->arch);
    memcpy(device->description, info.description, sizeof device->description);
    memcpy(device->pci, info.pci, sizeof device->pci);
    device->memory_bytes = info.memory_bytes;
    device->total_bytes = info.total_bytes;
    device->bandwidth_Bps = info.bandwidth_Bps;
    device->latency_s = info.latency_s;
}

static int add_devices(struct duet__survey *survey, unsigned number)
{
    const struct survey_backend *of = &survey->backends[number];
    const struct duet__backend *backend = duet__backend_at(number);
    unsigned shown = of->kind == SURVEY_DEVICES || !of->count ? of->count : 1;
    size_t room = survey->device_count + (size_t)shown;
    struct survey_device *devices =
        realloc(survey->devices, (room ? room : 1) * sizeof *survey->devices);
    if (!devices)
        return DUET_ENOMEM;
    survey->devices = devices;
    for (unsigned i = 0; i < shown; i++) {
        struct survey_device *device = &devices[survey->device_count++];
        *device = (struct survey_device){.backend = number, .index = i};
        describe_device(device, backend);
    }
    return DUET_OK;
}

static enum survey_kind kind_of(const struct duet__backend *backend)
{
    if (backend->execute)
        return SURVEY_CORES;
    return strcmp(backend->name, "emulated") ? SURVEY_DEVICES : SURVEY_EMULATED;
}

static int look_at_backends(struct duet__survey *survey, const char *devices)
{
    unsigned count = 0;
    while (duet__backend_at(count))
        count++;
    survey->backends = calloc(count ? count : 1, sizeof *survey->backends);
    if (!survey->backends)
        return DUET_ENOMEM;
    for (unsigned i = 0; i < count; i++) {
        const struct duet__backend *backend = duet__backend_at(i);
        struct survey_backend *to = &survey->backends[survey->backend_count++];
        to->name = backend->name;
        to->description = backend->description;
        to->kind = kind_of(backend);
        if (to->kind != SURVEY_DEVICES || !devices || !strcmp(devices, backend->name))
            to->count = backend->count(&to->why);
        else
            (void)duet_fail(&to->why, DUET_EABSENT, "not looked for");
        if (to->kind == SURVEY_CORES)
            survey->usable_cores = to->count;
        int error = add_devices(survey, i);
        if (error)
            return error;
    }
    return DUET_OK;
}

/* ------------------------------------------------------------------------------------------- */
/* Processors                                                                                   */

static unsigned sockets_of(const struct places *places)
{
    unsigned count = duet__places_count(places), sockets = 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned before = 0;
        while (duet__places_socket(places, before) != duet__places_socket(places, i))
            before++;
        sockets += before == i;
    }
    return sockets;
}

static int look_at_processors(struct duet__survey *survey)
{
    struct places *places;
    int error = duet__places_new(&places);
    if (error)
        return error;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned quota = duet__quota("/sys/fs/cgroup", "/proc/self/cgroup");
    survey->cores = duet__places_cores(places);
    survey->usable_threads = duet__places_count(places);
    survey->threads = online > 0 ? (unsigned)online : survey->usable_threads;
    survey->quota_cores = quota == UINT_MAX ? 0 : quota;
    survey->sockets = sockets_of(places);
    duet__places_free(places);
    return DUET_OK;
}

/* ------------------------------------------------------------------------------------------- */
/* Memory                                                                                       */

/* Reads "MemAvailable:  123 kB" of Linux, in bytes; 0 if it is not given. */
static uint64_t available_bytes(void)
{
    char line[128];
    unsigned long long kibibytes = 0;
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && !kibibytes && fgets(line, sizeof line, file))
        if (!strncmp(line, "MemAvailable:", strlen("MemAvailable:")))
            kibibytes = strtoull(line + strlen("MemAvailable:"), NULL, 10);
    if (file)
        (void)fclose(file);
    return (uint64_t)kibibytes << 10;
}

static void look_at_memory(struct duet__survey *survey)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    struct rlimit limit;
    if (pages > 0 && page_bytes > 0)
        survey->memory_bytes = (uint64_t)pages * (uint64_t)page_bytes;
    survey->free_bytes = available_bytes();
    survey->lock_bytes = UINT64_MAX;
    if (!getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur != RLIM_INFINITY)
        survey->lock_bytes = (uint64_t)limit.rlim_cur;
}

/* ------------------------------------------------------------------------------------------- */

int duet__survey(struct duet__survey *survey, const char *devices)
{
    *survey = (struct duet__survey){0};
    int error = look_at_processors(survey);
    if (!error)
        error = look_at_backends(survey, devices);
    look_at_memory(survey);
    if (error)
        duet__survey_fini(survey);
    return error;
}

void duet__survey_fini(struct duet__survey *survey)
{
    free(survey->backends);
    free(survey->devices);
    *survey = (struct duet__survey){0};
}

/* ------------------------------------------------------------------------------------------- */
/* Binding                                                                                      */

int duet__survey_places(const struct duet_machine *machine, int *processors)
{
    struct places *places;
    int error = duet__places_new(&places);
    if (error)
        return error;
    error = duet__places_of(places, machine, processors);
    for (unsigned w = 0; w < machine->worker_count && !error; w++)
        if (processors[w] >= 0)
            processors[w] = (int)duet__places_processor(places, (unsigned)processors[w]);
    duet__places_free(places);
    return error;
}
