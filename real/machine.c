/* SPDX-License-Identifier: Apache-2.0 */
/* The machine at hand, as far as backends know it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/backend.h"
#include "real/real.h"
#include "real/topology.h"

enum { CPUS_MAX = 1024 /* workers; memory grows with their square */ };

static const double USUAL_BPS = 1e10; /* of a link of which nothing is known */

/* A device that will be used. */
struct found {
    const struct duet_backend *backend;
    struct backend_info info;
    unsigned arch;
};

struct plan {
    const struct real_wanted *wanted;
    struct places *places;
    struct found *devices;
    unsigned device_count, device_capacity;
    unsigned cpus;
    char why_none[DUET_MESSAGE_MAX]; /* a backend's reason for having no device */
};

static const char *const CPU = "cpu", *const EMULATED = "emulated";

/* ------------------------------------------------------------------------------------------- */
/* What there is                                                                                */

static int add_device(struct plan *plan, const struct duet_backend *backend, unsigned index,
                      struct duet_message *message)
{
    if (plan->device_count == plan->device_capacity) {
        unsigned capacity = 2 * plan->device_capacity + 8;
        struct found *devices = realloc(plan->devices, capacity * sizeof *devices);
        if (!devices)
            return duet_fail(message, DUET_ENOMEM, "no memory left for the machine");
        plan->devices = devices;
        plan->device_capacity = capacity;
    }
    struct found *found = &plan->devices[plan->device_count];
    *found = (struct found){.backend = backend};
    int error = backend->describe(index, &found->info, message);
    if (!error)
        plan->device_count++;
    return error;
}

/* Devices of one backend, while more are wanted. */
static int find_devices(struct plan *plan, const struct duet_backend *backend, unsigned wanted,
                        struct duet_message *message)
{
    struct duet_message why = {""};
    unsigned count = backend->count(&why);
    if (!count && *why.text)
        (void)snprintf(plan->why_none, sizeof plan->why_none, "%s", why.text);
    for (unsigned i = 0; i < count && plan->device_count < wanted; i++) {
        int error = add_device(plan, backend, i, message);
        if (error)
            return error;
    }
    return DUET_OK;
}

static int find_all(struct plan *plan, struct duet_message *message)
{
    bool emulate = plan->wanted->emulate;
    unsigned all = emulate ? 1 : UINT32_MAX;
    unsigned wanted = plan->wanted->gpus < 0 ? all : (unsigned)plan->wanted->gpus;
    for (size_t i = 0; duet__backend_at(i); i++) {
        const struct duet_backend *backend = duet__backend_at(i);
        if (backend->execute || !strcmp(backend->name, EMULATED) != emulate)
            continue;
        int error = find_devices(plan, backend, wanted, message);
        if (error)
            return error;
    }
    if (plan->wanted->gpus < 0 || plan->device_count == wanted)
        return DUET_OK;
    return duet_fail(message, DUET_EINVAL,
                     "%u %sGPU%s wanted, and there %s %u%s%s: ask for fewer%s", wanted,
                     emulate ? "emulated " : "", wanted == 1 ? " is" : "s are",
                     plan->device_count == 1 ? "is" : "are", plan->device_count,
                     *plan->why_none ? ", since " : "", plan->why_none,
                     emulate ? "" : ", or emulate them");
}

/* A core feeds each device; emulated or not, at least one is left to compute. */
static int count_cpus(struct plan *plan, struct duet_message *message)
{
    unsigned cores = duet__places_cores(plan->places);
    plan->cpus = cores > plan->device_count ? cores - plan->device_count : 1;
    if (plan->wanted->cpus >= 0)
        plan->cpus = (unsigned)plan->wanted->cpus;
    if (plan->cpus > CPUS_MAX)
        return duet_fail(message, DUET_EINVAL,
                         "%u CPU workers are wanted on %u cores: at most %d are possible",
                         plan->cpus, cores, CPUS_MAX);
    if (plan->cpus + plan->device_count == 0)
        return duet_fail(message, DUET_EINVAL,
                         "no CPU and no GPU: at least one worker is needed, and there are %u cores",
                         cores);
    return DUET_OK;
}

/* ------------------------------------------------------------------------------------------- */
/* The machine                                                                                  */

static void name(char to[DUET_NAME_MAX], const char *what, unsigned number, const char *rest)
{
    (void)snprintf(to, DUET_NAME_MAX, "%s%u%s", what, number, rest);
}

/* Numbers the architectures, each name once, in order of appearance. How many. */
static unsigned number_archs(struct plan *plan)
{
    unsigned count = plan->cpus ? 1 : 0;
    for (unsigned d = 0; d < plan->device_count; d++) {
        unsigned same = 0;
        while (strcmp(plan->devices[same].info.arch, plan->devices[d].info.arch) != 0)
            same++;
        plan->devices[d].arch = same < d ? plan->devices[same].arch : count++;
    }
    return count;
}

/* What emulated devices stand for are the GPUs that kernels are written for. */
static void fill_archs(const struct plan *plan, struct duet_machine *machine)
{
    if (plan->cpus) {
        (void)snprintf(machine->archs[0].name, DUET_NAME_MAX, "%s", CPU);
        (void)snprintf(machine->archs[0].backend, DUET_NAME_MAX, "%s", CPU);
    }
    for (unsigned d = 0; d < plan->device_count; d++) {
        const struct found *found = &plan->devices[d];
        struct duet_arch *arch = &machine->archs[found->arch];
        (void)snprintf(arch->name, DUET_NAME_MAX, "%s", found->info.arch);
        (void)snprintf(arch->backend, DUET_NAME_MAX, "%s",
                       plan->wanted->emulate ? "cuda" : found->backend->name);
    }
}

static void fill_workers(const struct plan *plan, struct duet_machine *machine)
{
    unsigned places = duet__places_count(plan->places);
    unsigned window = plan->wanted->gpu_window ? plan->wanted->gpu_window : 2;
    for (unsigned w = 0; w < machine->worker_count; w++) {
        struct duet_worker *worker = &machine->workers[w];
        bool device = w >= plan->cpus;
        unsigned number = device ? w - plan->cpus : w;
        name(worker->name, device ? "gpu" : CPU, number, "");
        worker->arch = device ? plan->devices[number].arch : 0;
        worker->node = device ? 1 + number : DUET_HOST;
        worker->socket = duet__places_socket(plan->places, w % places);
        worker->window = device ? window : 1;
    }
}

static int fill_nodes(const struct plan *plan, struct duet_machine *machine,
                      struct duet_message *message)
{
    uint64_t wanted = plan->wanted->gpu_memory_bytes;
    (void)snprintf(machine->nodes[DUET_HOST].name, DUET_NAME_MAX, "host");
    for (unsigned d = 0; d < plan->device_count; d++) {
        struct duet_node *node = &machine->nodes[1 + d];
        uint64_t there = plan->devices[d].info.memory_bytes;
        name(node->name, "gpu", d, "");
        node->capacity_bytes = wanted ? wanted : there;
        if (!plan->wanted->emulate && wanted > there)
            return duet_fail(message, DUET_EINVAL,
                             "%llu bytes of %s's memory are wanted, and %llu are usable",
                             (unsigned long long)wanted, node->name, (unsigned long long)there);
    }
    return DUET_OK;
}

/* A link of its own each way for every device. */
static void fill_links(const struct plan *plan, struct duet_machine *machine)
{
    for (unsigned d = 0; d < plan->device_count; d++) {
        double bandwidth = plan->devices[d].info.bandwidth_Bps;
        struct duet_link *links = &machine->links[2 * (size_t)d];
        name(links[0].name, "pcie", d, "-to-device");
        name(links[1].name, "pcie", d, "-to-host");
        links[0].bandwidth_Bps = links[1].bandwidth_Bps = bandwidth > 0 ? bandwidth : USUAL_BPS;
    }
}

static void fill_route(const struct plan *plan, struct duet_machine *machine, unsigned source,
                       unsigned destination)
{
    struct duet_route *route = &machine->routes[(size_t)source * machine->node_count + destination];
    bool between = source != DUET_HOST && destination != DUET_HOST;
    unsigned ends[] = {source, destination};
    if (source == destination || (between && plan->wanted->no_peer))
        return;
    route->direct = true;
    for (unsigned end = 0; end < 2; end++) {
        if (ends[end] == DUET_HOST)
            continue;
        unsigned link = 2 * (ends[end] - 1) + (end == 0);
        double latency = plan->devices[ends[end] - 1].info.latency_s;
        double bandwidth = machine->links[link].bandwidth_Bps;
        if (route->count == 0 || bandwidth < route->bandwidth_Bps)
            route->bandwidth_Bps = bandwidth;
        if (latency > route->latency_s)
            route->latency_s = latency;
        route->links[route->count++] = (uint16_t)link;
    }
}

static int build(struct plan *plan, struct duet_machine *machine, struct duet_message *message)
{
    unsigned devices = plan->device_count, archs = number_archs(plan);
    int error = duet_machine_init(machine, archs, 1 + devices, plan->cpus + devices, 2 * devices);
    if (error)
        return duet_fail(message, error, "no memory left for the machine");
    if (gethostname(machine->name, sizeof machine->name - 1) || !*machine->name)
        (void)snprintf(machine->name, sizeof machine->name, "this machine");
    fill_archs(plan, machine);
    fill_workers(plan, machine);
    fill_links(plan, machine);
    for (unsigned s = 0; s <= devices; s++)
        for (unsigned d = 0; d <= devices; d++)
            fill_route(plan, machine, s, d);
    error = fill_nodes(plan, machine, message);
    if (error)
        duet_machine_fini(machine);
    return error;
}

int duet__real_machine(struct duet_machine *machine, const struct real_wanted *wanted,
                       struct duet_message *message)
{
    struct plan plan = {.wanted = wanted};
    memset(machine, 0, sizeof *machine);
    int error = duet__places_new(&plan.places);
    if (error)
        return duet_fail(message, error, "no memory left for the machine");
    error = find_all(&plan, message);
    if (!error)
        error = count_cpus(&plan, message);
    if (!error)
        error = build(&plan, machine, message);
    free(plan.devices);
    duet__places_free(plan.places);
    return error;
}
