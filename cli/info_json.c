/* SPDX-License-Identifier: Apache-2.0 */
/* `duet info` for programs: docs/formats.md describes it. */
#include <inttypes.h>
#include <math.h>

#include "cli/info.h"
#include "base/json.h"
#include "workloads/kernels_cuda.h"
#include "workloads/kernels.h"

/* Returns the text; NULL for "". */
static const char *some(const char *text)
{
    return *text ? text : NULL;
}

/* Writes a whole number, or null where it is not known. */
static void known(struct duet__json_writer *json, const char *key, bool is_known, uint64_t value)
{
    if (is_known)
        duet__json_put_integer(json, key, value);
    else
        duet__json_put_string(json, key, NULL);
}

static void put_build(const struct duet__facts *facts, struct duet__json_writer *json)
{
    g_auto(GStrv) sanitizers = g_strsplit(DUET_BUILD_SANITIZERS, " ", -1);

    duet__json_print(
        json,
        "build: {version: %s, commit: %s, compiler: %s, type: %s, link_time_optimisation: %d, "
        "sanitizers: [",
        duet_version(), some(DUET_BUILD_COMMIT), DUET_BUILD_COMPILER, DUET_BUILD_TYPE,
        DUET_BUILD_LTO);
    for (char **name = sanitizers; *name; name++)
        if (**name)
            duet__json_put_string(json, NULL, *name);
    duet__json_print(json, "], simgrid: %s", some(DUET_BUILD_SIMGRID));
    if (facts->has_blas)
        duet__json_print(json, "blas: {version: %s, config: %s, core: %s, threading: %s}",
                         DUET_BUILD_BLAS, facts->blas.build, facts->blas.core,
                         facts->blas.threading);
    else
        duet__json_print(json, "blas: null");
    if (*DUET_BUILD_CUDA)
        duet__json_print(json,
                         "cuda: {toolkit: %s, compiled_for: %s, libraries: %d, libraries_why: %s}",
                         DUET_BUILD_CUDA, DUET_BUILD_CUDA_ARCHITECTURES, !facts->cuda_error,
                         some(facts->cuda_why.text));
    else
        duet__json_print(json, "cuda: null");
    duet__json_print(json, "opencl: {libraries: %d, libraries_why: %s}}", !facts->opencl_error,
                     some(facts->opencl_why.text));
}

static void put_host(const struct duet__facts *facts, struct duet__json_writer *json)
{
    const struct duet__survey *survey = &facts->info.survey;

    duet__json_print(json, "host: {name: %s, threads: %u, usable_threads: %u, usable_cores: %u",
                     facts->host, survey->threads, survey->usable_threads, survey->usable_cores);
    known(json, "quota_cores", survey->quota_cores, survey->quota_cores);
    duet__json_print(json, "cores: %u, sockets: %u", survey->cores, survey->sockets);
    known(json, "memory_bytes", survey->memory_bytes, survey->memory_bytes);
    known(json, "free_bytes", survey->free_bytes, survey->free_bytes);
    known(json, "lock_limit_bytes", survey->lock_bytes != UINT64_MAX, survey->lock_bytes);
    duet__json_print(json, "pin_bytes: %" PRIu64 "}", facts->info.pin_bytes);
}

static void put_device(const struct survey_device *device, struct duet__json_writer *json)
{
    duet__json_print(json, "{index: %u, why: %s, architecture: %s, description: %s, pci: %s",
                     device->index, device->error ? device->why.text : NULL, some(device->arch),
                     some(device->description), some(device->pci));
    known(json, "usable_bytes", device->memory_bytes, device->memory_bytes);
    known(json, "total_bytes", device->total_bytes, device->total_bytes);
    duet__json_print(json, "}");
}

static void put_backends(const struct duet__survey *survey, struct duet__json_writer *json)
{
    static const char *const kinds[] = {"cores", "devices", "emulated"};

    duet__json_print(json, "backends: [");
    for (unsigned b = 0; b < survey->backend_count; b++) {
        const struct survey_backend *backend = &survey->backends[b];

        duet__json_print(json,
                         "{name: %s, description: %s, kind: %s, count: %u, why: %s, devices: [",
                         backend->name, backend->description, kinds[backend->kind], backend->count,
                         backend->count ? NULL : some(backend->why.text));
        for (unsigned d = 0; d < survey->device_count; d++)
            if (survey->devices[d].backend == b)
                put_device(&survey->devices[d], json);
        duet__json_print(json, "]}");
    }
    duet__json_print(json, "]");
}

/* ------------------------------------------------------------------------------------------- */
/* The machine of a run                                                                         */

static void put_worker(const struct duet__info *info, struct duet__json_writer *json, unsigned w)
{
    const struct duet_machine *machine = &info->machine;
    const struct duet_worker *worker = &machine->workers[w];
    const struct duet_arch *arch = &machine->archs[worker->arch];
    const struct survey_device *device =
        info->devices[w] < 0 ? NULL : &info->survey.devices[info->devices[w]];

    duet__json_print(json, "{name: %s, architecture: %s, programmed_by: %s", worker->name,
                     arch->name, arch->backend);
    duet__json_put_string(json, "backend",
                          device ? info->survey.backends[device->backend].name : NULL);
    known(json, "device", device && worker->node != DUET_HOST, device ? device->index : 0);
    duet__json_print(json, "node: %s, socket: %u", machine->nodes[worker->node].name,
                     worker->socket);
    known(json, "thread", info->processors[w] >= 0, (uint64_t)info->processors[w]);
    duet__json_print(json, "window: %u, window_short: %u}", worker->window,
                     MAX(worker->window, worker->window_short));
}

static void put_route(const struct duet_machine *machine, struct duet__json_writer *json,
                      unsigned source, unsigned destination)
{
    const struct duet_route *route = duet_machine_route(machine, source, destination);

    duet__json_print(
        json,
        "{source: %s, destination: %s, direct: %d, bandwidth_Bps: %g, latency_s: %g, links: [",
        machine->nodes[source].name, machine->nodes[destination].name, route->direct,
        route->direct ? route->bandwidth_Bps : NAN, route->direct ? route->latency_s : NAN);
    for (unsigned i = 0; route->direct && i < route->count; i++)
        duet__json_put_string(json, NULL, machine->links[route->links[i]].name);
    duet__json_print(json, "]}");
}

static void put_machine(const struct duet__facts *facts, struct duet__json_writer *json)
{
    const struct duet_machine *machine = &facts->info.machine;
    const struct duet_config *config = facts->config;

    duet__json_print(json,
                     "machine: {name: %s, emulation: %s, scale: %g, gpu_streams: %u, lose: %s, "
                     "workers: [",
                     machine->name, duet__facts_emulation(facts),
                     config->scale > 0 ? config->scale : NAN, MAX(config->gpu_streams, 1),
                     config->lose);
    for (unsigned w = 0; w < machine->worker_count; w++)
        put_worker(&facts->info, json, w);
    duet__json_print(json, "], nodes: [");
    for (unsigned n = 0; n < machine->node_count; n++) {
        uint64_t bytes = machine->nodes[n].capacity_bytes;

        duet__json_print(json, "{name: %s", machine->nodes[n].name);
        known(json, "capacity_bytes", bytes, bytes);
        duet__json_print(json, "}");
    }
    duet__json_print(json, "], links: [");
    for (unsigned l = 0; l < machine->link_count; l++)
        duet__json_print(json, "{name: %s, bandwidth_Bps: %g, shared: %d}", machine->links[l].name,
                         machine->links[l].bandwidth_Bps, !machine->links[l].per_copy);
    duet__json_print(json, "], routes: [");
    for (unsigned s = 0; s < machine->node_count; s++)
        for (unsigned d = 0; d < machine->node_count; d++)
            if (s != d)
                put_route(machine, json, s, d);
    duet__json_print(json, "]}");
}

void duet__facts_put_json(const struct duet__facts *facts, FILE *stream)
{
    struct duet__json_writer json = {.stream = stream, .indented = true};

    duet__json_print(&json, "{schema: 1, command: %s", "info");
    put_build(facts, &json);
    put_host(facts, &json);
    put_backends(&facts->info.survey, &json);
    if (facts->info.error)
        duet__json_print(&json, "machine: null");
    else
        put_machine(facts, &json);
    duet__json_print(&json, "machine_why: %s, unused: [", some(facts->info.why.text));
    for (guint i = 0; i < facts->unused->len; i += 2)
        duet__json_print(&json, "{what: %s, why: %s}", (const char *)facts->unused->pdata[i],
                         (const char *)facts->unused->pdata[i + 1]);
    duet__json_print(&json, "], kernels: [");
    for (guint i = 0; i < facts->kernels->len; i++) {
        const char *name = facts->kernels->pdata[i];

        duet__json_print(&json, "{name: %s, cpu: %d, cuda: %d, opencl: %d}", name,
                         duet__kernel(name) != NULL, duet__cuda_kernel(name) != NULL,
                         duet__opencl_kernel(name) != NULL);
    }
    duet__json_print(&json, "]}");
}
