/* SPDX-License-Identifier: Apache-2.0 */
/* The description of this machine, by the backends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <limits.h>
#include <sys/resource.h>

#include "real/machine.h"

enum { CPUS_MAX = 1024 /* workers; memory grows with their square */ };

static const double USUAL_SHARE = 0.9; /* default share of a device's usable memory */

static const char *const CPU = "cpu", *const EMULATED = "emulated", *const USUAL = "cuda";

/* ------------------------------------------------------------------------------------------- */
/* Devices */

/* Makes room for one more device. */
static int reserve_device(struct parts *parts)
{
    if (parts->device_count < parts->device_capacity)
        return DUET_OK;
    unsigned capacity = 2 * parts->device_capacity + 8;
    struct found *devices = realloc(parts->devices, capacity * sizeof *devices);
    if (!devices)
        return DUET_ENOMEM;
    parts->devices = devices;
    parts->device_capacity = capacity;
    return DUET_OK;
}

/* Adds to the reasons for having no more devices. */
static void add_reason(struct duet_message *reasons, const char *reason)
{
    size_t used = strlen(reasons->text);
    if (*reason && used < sizeof reasons->text)
        (void)snprintf(reasons->text + used, sizeof reasons->text - used, "%s%s", used ? "; " : "",
                       reason);
}

/* Adds the reason that devices are divided among processes. */
static void add_part(struct duet_message *reasons, unsigned parts, unsigned count)
{
    struct duet_message why = {""};
    (void)duet_fail(&why, DUET_EINVAL, "%u of them are dealt out to %u processes", count, parts);
    add_reason(reasons, why.text);
}

/* Finds devices of one backend, while more are wanted. One that cannot be used adds a reason. */
static int find_devices(struct parts *parts, const struct duet__backend *backend, unsigned wanted,
                        struct duet_message *reasons, bool *left_out)
{
    const struct duet__part *part = parts->part;
    struct duet_message why = {""};
    unsigned count = backend->count(&why), first = 0;
    if (!count) {
        add_reason(reasons, why.text);
        *left_out |= backend->impaired && backend->impaired();
    }
    if (part && part->parts > 1 && !parts->config->emulate) {
        if (count)
            add_part(reasons, part->parts, count);
        first = part->part * count / part->parts;
        count = (part->part + 1) * count / part->parts;
    }
    for (unsigned i = first; i < count && parts->device_count < wanted; i++) {
        if (reserve_device(parts))
            return DUET_ENOMEM;
        struct found *found = &parts->devices[parts->device_count];
        *found = (struct found){.backend = backend, .index = i};
        why = (struct duet_message){""};
        if (backend->describe(i, &found->info, &why)) {
            add_reason(reasons, why.text);
            *left_out = true;
        } else {
            parts->device_count++;
        }
    }
    return DUET_OK;
}

/* Returns the backend whose devices are wanted; NULL with a message if there is no such one. */
static const struct duet__backend *wanted_backend(const struct duet_config *config,
                                                  struct duet_message *message)
{
    const char *name = config->emulate ? EMULATED : config->devices ? config->devices : USUAL;
    const struct duet__backend *backend = duet__backend_find(name);
    if (backend && !backend->execute && !strcmp(name, EMULATED) == (config->emulate != NULL))
        return backend;
    (void)duet_fail(message, DUET_EINVAL,
                    "no devices are programmed by \"%s\": name cuda or opencl (--duet-devices)",
                    name);
    return NULL;
}

/*
 * Finds all wanted devices. No backend is asked if no device is wanted: its start can take half a
 * second.
 */
static int find_all(struct parts *parts, struct duet_message *message)
{
    struct duet_message reasons = {""};
    bool emulate = parts->config->emulate, left_out = false;
    unsigned all = emulate ? 1 : UINT32_MAX;
    unsigned wanted = parts->config->gpus < 0 ? all : (unsigned)parts->config->gpus;
    const struct duet__backend *backend = wanted_backend(parts->config, message);
    if (!backend)
        return DUET_EINVAL;
    if (wanted && find_devices(parts, backend, wanted, &reasons, &left_out))
        return duet_fail(message, DUET_ENOMEM, "no memory left for the machine");
    if (parts->config->gpus < 0 && left_out && parts->told)
        (void)fprintf(stderr, "duet: GPUs are left out: %s\n", reasons.text);
    if (parts->config->gpus < 0 || parts->device_count == wanted)
        return DUET_OK;
    return duet_fail(message, DUET_EINVAL,
                     "%u %sGPU%s wanted, and there %s %u%s%s%s: ask for fewer%s", wanted,
                     emulate ? "emulated " : "", wanted == 1 ? " is" : "s are",
                     parts->device_count == 1 ? "is" : "are", parts->device_count,
                     *reasons.text ? " (" : "", reasons.text, *reasons.text ? ")" : "",
                     emulate ? "" : ", or emulate them (--duet-emulate=free)");
}

/* ------------------------------------------------------------------------------------------- */
/* Connections */

/* Connects devices of one backend, which are neighbours from `first` on, as the backend says. */
static int connect_some(struct parts *parts, unsigned first, unsigned count,
                        struct duet_message *message)
{
    const struct found *devices = &parts->devices[first];
    unsigned known = devices[count - 1].index + 1; /* some of which may not be used */
    struct backend_link *links = calloc((size_t)known * known, sizeof *links);
    if (!links)
        return duet_fail(message, DUET_ENOMEM, "no memory left for the machine");
    int error = DUET_OK;
    if (devices->backend->links)
        error = devices->backend->links(known, links, message);
    for (unsigned s = 0; s < count && !error; s++) {
        for (unsigned d = 0; d < count; d++) {
            struct backend_link *to =
                &parts->between[(size_t)(first + s) * parts->device_count + first + d];
            *to = devices->backend->links
                      ? links[(size_t)devices[s].index * known + devices[d].index]
                      : (struct backend_link){.direct = true};
        }
    }
    free(links);
    return error;
}

/* Connects all devices. Those of different backends have no direct copies between them. */
static int connect_all(struct parts *parts, struct duet_message *message)
{
    unsigned count = parts->device_count;
    size_t some = count ? count : 1;
    parts->ends = calloc(some, sizeof *parts->ends);
    parts->between = calloc(some * some, sizeof *parts->between);
    if (!parts->ends || !parts->between)
        return duet_fail(message, DUET_ENOMEM, "no memory left for the machine");
    for (unsigned d = 0; d < count; d++) {
        const struct backend_info *info = &parts->devices[d].info;
        parts->ends[d].bandwidth_Bps = info->bandwidth_Bps;
        parts->ends[d].latency_s = info->latency_s;
        if (*info->pci)
            duet__pci_read("/sys", info->pci, &parts->ends[d].path);
    }
    unsigned next;
    for (unsigned first = 0; first < count && !parts->config->no_peer; first = next) {
        next = first + 1;
        while (next < count && parts->devices[next].backend == parts->devices[first].backend)
            next++;
        int error = next - first > 1 ? connect_some(parts, first, next - first, message) : DUET_OK;
        if (error)
            return error;
    }
    return DUET_OK;
}

/*
 * Sets the number of CPU workers. A core feeds each device; emulated or not, at least one is left
 * to compute.
 */
static int count_cpus(struct parts *parts, struct duet_message *message)
{
    unsigned cores = duet__places_cores(parts->places);
    if (parts->part && parts->part->cores < cores)
        cores = parts->part->cores ? parts->part->cores : 1;
    parts->cores = cores;
    parts->cpus = cores > parts->device_count ? cores - parts->device_count : 1;
    if (parts->config->cpus >= 0)
        parts->cpus = (unsigned)parts->config->cpus;
    if (parts->cpus > CPUS_MAX)
        return duet_fail(message, DUET_EINVAL,
                         "%u CPU workers are wanted on %u cores: at most %d are possible",
                         parts->cpus, cores, CPUS_MAX);
    if (parts->cpus + parts->device_count == 0)
        return duet_fail(message, DUET_EINVAL,
                         "no CPU and no GPU: at least one worker is needed, and there are %u cores",
                         cores);
    return DUET_OK;
}

/* ------------------------------------------------------------------------------------------- */
/* The machine                                                                                  */

static void set_name(char to[DUET_NAME_MAX], const char *what, unsigned number)
{
    (void)snprintf(to, DUET_NAME_MAX, "%s%u", what, number);
}

/* Numbers the architectures, each name once, in order of appearance. Returns their number. */
static unsigned number_archs(struct parts *parts)
{
    unsigned count = parts->cpus ? 1 : 0;
    for (unsigned d = 0; d < parts->device_count; d++) {
        unsigned same = 0;
        while (strcmp(parts->devices[same].info.arch, parts->devices[d].info.arch) != 0)
            same++;
        parts->devices[d].arch = same < d ? parts->devices[same].arch : count++;
    }
    return count;
}

/* Fills in the architectures. Emulated devices stand for the GPUs that kernels are written for. */
static void fill_archs(const struct parts *parts, struct duet_machine *machine)
{
    if (parts->cpus) {
        (void)snprintf(machine->archs[0].name, DUET_NAME_MAX, "%s", CPU);
        (void)snprintf(machine->archs[0].backend, DUET_NAME_MAX, "%s", CPU);
    }
    for (unsigned d = 0; d < parts->device_count; d++) {
        const struct found *found = &parts->devices[d];
        struct duet_arch *arch = &machine->archs[found->arch];
        (void)snprintf(arch->name, DUET_NAME_MAX, "%s", found->info.arch);
        (void)snprintf(arch->backend, DUET_NAME_MAX, "%s",
                       parts->config->emulate ? "cuda" : found->backend->name);
    }
}

/* Finds the package near each device, -1 if that is not known, and the places of all workers. */
static int deal_places(const struct parts *parts, int *near, int *place)
{
    for (unsigned d = 0; d < parts->device_count; d++)
        near[d] = duet__places_near(parts->places, parts->ends[d].path.processors);
    return duet__places_deal(parts->places, parts->cpus, parts->device_count, near, place);
}

/* Sets the workers' sockets, from which the engine will choose the same places again. */
static int fill_sockets(const struct parts *parts, struct duet_machine *machine)
{
    unsigned workers = machine->worker_count, places = duet__places_count(parts->places);
    int *near = calloc((size_t)parts->device_count + workers, sizeof *near);
    if (!near)
        return DUET_ENOMEM;
    int *place = near + parts->device_count;
    int error = deal_places(parts, near, place);
    for (unsigned w = 0; w < workers && !error; w++) {
        bool known = w >= parts->cpus && near[w - parts->cpus] >= 0;
        machine->workers[w].socket =
            known ? (unsigned)near[w - parts->cpus]
                  : duet__places_socket(parts->places,
                                        place[w] < 0 ? w % places : (unsigned)place[w]);
    }
    free(near);
    return error;
}

static void fill_workers(const struct parts *parts, struct duet_machine *machine)
{
    unsigned wanted = parts->config->gpu_window, shorts = parts->config->gpu_window_short;
    for (unsigned w = 0; w < machine->worker_count; w++) {
        struct duet_worker *worker = &machine->workers[w];
        bool device = w >= parts->cpus;
        unsigned number = device ? w - parts->cpus : w;
        set_name(worker->name, device ? "gpu" : CPU, number);
        worker->arch = device ? parts->devices[number].arch : 0;
        worker->node = device ? 1 + number : DUET_HOST;
        worker->window = !device ? 1 : wanted ? wanted : 2;
        worker->window_short = !device ? 0 : shorts ? shorts : wanted ? wanted : 8;
    }
}

/* Returns the used part of a device's usable memory. */
static uint64_t share_of(const struct duet_config *config, uint64_t usable)
{
    double usual = config->emulate ? 1 : USUAL_SHARE; /* emulated ones have exactly the stated
                                                         size */
    double share = config->gpu_memory_share > 0 ? config->gpu_memory_share : usual;
    uint64_t bytes = share < 1 ? (uint64_t)((double)usable * share) : usable;
    return bytes ? bytes : 1;
}

static int fill_nodes(const struct parts *parts, struct duet_machine *machine,
                      struct duet_message *message)
{
    uint64_t wanted = parts->config->gpu_memory_bytes;
    (void)snprintf(machine->nodes[DUET_HOST].name, DUET_NAME_MAX, "host");
    for (unsigned d = 0; d < parts->device_count; d++) {
        struct duet_node *node = &machine->nodes[1 + d];
        uint64_t there = parts->devices[d].info.memory_bytes;
        set_name(node->name, "gpu", d);
        node->capacity_bytes = wanted ? wanted : share_of(parts->config, there);
        if (!parts->config->emulate && wanted > there)
            return duet_fail(message, DUET_EINVAL,
                             "%.1f MiB of %s's memory are wanted, and %.1f MiB are usable: ask for "
                             "less (--duet-gpu-memory)",
                             (double)wanted / (1 << 20), node->name, (double)there / (1 << 20));
    }
    return DUET_OK;
}

static int fill_machine(const struct parts *parts, struct duet_machine *machine,
                        struct duet_message *message)
{
    if (gethostname(machine->name, sizeof machine->name - 1) || !*machine->name)
        (void)snprintf(machine->name, sizeof machine->name, "this machine");
    machine->cores = parts->cores;
    fill_archs(parts, machine);
    fill_workers(parts, machine);
    int error = fill_sockets(parts, machine);
    return error ? duet_fail(message, error, "no memory left for the machine")
                 : fill_nodes(parts, machine, message);
}

int duet__machine_make(struct duet_machine *machine, struct parts *parts,
                       struct duet_message *message)
{
    unsigned devices = parts->device_count, archs = number_archs(parts);
    struct links *links;
    memset(machine, 0, sizeof *machine);
    int error = duet__links_new(&links, parts->ends, devices, parts->between);
    if (error)
        return duet_fail(message, error, "no memory left for the links of %u devices", devices);
    error = duet_machine_init(machine, archs, 1 + devices, parts->cpus + devices,
                              duet__links_count(links));
    if (error) {
        duet__links_free(links);
        return duet_fail(message, error, "no memory left for the machine");
    }
    duet__links_fill(links, machine);
    duet__links_free(links);
    error = fill_machine(parts, machine, message);
    if (!error)
        error = duet_machine_check(machine, message);
    if (error)
        duet_machine_fini(machine);
    return error;
}

/* Returns the devices' numbers at their backends. NULL: no memory. */
static unsigned *numbers_of(const struct parts *parts)
{
    unsigned *numbers = calloc((size_t)parts->device_count + 1, sizeof *numbers);
    for (unsigned d = 0; numbers && d < parts->device_count; d++)
        numbers[d] = parts->devices[d].index;
    return numbers;
}

int duet__real_machine(struct duet_machine *machine, unsigned **devices,
                       const struct duet_config *config, const struct duet__part *part,
                       struct duet_message *message)
{
    struct parts parts = {.config = config, .part = part, .told = devices && !config->quiet};
    unsigned *numbers = NULL;
    memset(machine, 0, sizeof *machine);
    if (devices)
        *devices = NULL;
    int error = duet__places_new(&parts.places);
    if (error)
        return duet_fail(message, error, "no memory left for the machine");
    error = find_all(&parts, message);
    if (!error)
        error = connect_all(&parts, message);
    if (!error && devices && !(numbers = numbers_of(&parts)))
        error = duet_fail(message, DUET_ENOMEM, "no memory left for the machine");
    if (!error)
        error = count_cpus(&parts, message);
    if (!error)
        error = duet__machine_make(machine, &parts, message);
    if (devices && !error)
        *devices = numbers;
    else
        free(numbers);
    free(parts.devices);
    free(parts.ends);
    free(parts.between);
    duet__places_free(parts.places);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* The resources of this machine, by its backends, hwloc and the operating system */

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
