/* SPDX-License-Identifier: Apache-2.0 */
/* `duet info` for programs: docs/formats.md describes it. */
#include <math.h>

#include "cli/build.h"
#include "cli/info.h"
#include "platforms/json.h"
#include "workloads/kernels_cuda.h"

/* NULL for "". */
static const char *some(const char *text)
{
    return *text ? text : NULL;
}

/* A number that is null where it is 0, which then means that it is not known. */
static void known(struct duet__json_writer *json, const char *name, uint64_t value)
{
    if (value)
        duet__json_put_integer(json, name, value);
    else
        duet__json_put_string(json, name, NULL);
}

static void put_sanitizers(struct duet__json_writer *json, const char *text)
{
    g_auto(GStrv) names = g_strsplit(text, " ", -1);

    duet__json_begin(json, "sanitizers", '[');
    for (char **name = names; *name; name++)
        if (**name)
            duet__json_put_string(json, NULL, *name);
    duet__json_end(json, ']');
}

static void put_build(const struct duet__facts *facts, struct duet__json_writer *json)
{
    const struct duet__build *build = duet__build();

    duet__json_begin(json, "build", '{');
    duet__json_put_string(json, "version", build->version);
    duet__json_put_string(json, "compiler", build->compiler);
    duet__json_put_string(json, "type", build->type);
    duet__json_put_boolean(json, "link_time_optimisation", build->link_time_optimisation);
    put_sanitizers(json, build->sanitizers);
    duet__json_put_string(json, "simgrid", some(build->simgrid));
    if (facts->has_blas) {
        duet__json_begin(json, "blas", '{');
        duet__json_put_string(json, "version", build->blas);
        duet__json_put_string(json, "config", facts->blas.build);
        duet__json_put_string(json, "core", facts->blas.core);
        duet__json_put_string(json, "threading", facts->blas.threading);
        duet__json_end(json, '}');
    } else {
        duet__json_put_string(json, "blas", NULL);
    }
    if (*build->cuda) {
        duet__json_begin(json, "cuda", '{');
        duet__json_put_string(json, "toolkit", build->cuda);
        duet__json_put_string(json, "compiled_for", build->gpus);
        duet__json_put_boolean(json, "libraries", !facts->cuda_error);
        duet__json_put_string(json, "libraries_why",
                              facts->cuda_error ? facts->cuda_why.text : NULL);
        duet__json_end(json, '}');
    } else {
        duet__json_put_string(json, "cuda", NULL);
    }
    duet__json_end(json, '}');
}

static void put_host(const struct duet__facts *facts, struct duet__json_writer *json)
{
    const struct duet__survey *survey = &facts->info.survey;

    duet__json_begin(json, "host", '{');
    duet__json_put_string(json, "name", facts->host);
    duet__json_put_integer(json, "threads", survey->threads);
    duet__json_put_integer(json, "usable_threads", survey->usable_threads);
    duet__json_put_integer(json, "usable_cores", survey->usable_cores);
    known(json, "quota_cores", survey->quota_cores);
    duet__json_put_integer(json, "cores", survey->cores);
    duet__json_put_integer(json, "sockets", survey->sockets);
    known(json, "memory_bytes", survey->memory_bytes);
    known(json, "free_bytes", survey->free_bytes);
    if (survey->lock_bytes == UINT64_MAX)
        duet__json_put_string(json, "lock_limit_bytes", NULL);
    else
        duet__json_put_integer(json, "lock_limit_bytes", survey->lock_bytes);
    duet__json_put_integer(json, "pin_bytes", facts->info.pin_bytes);
    duet__json_end(json, '}');
}

static void put_device(const struct survey_device *device, struct duet__json_writer *json)
{
    duet__json_begin(json, NULL, '{');
    duet__json_put_integer(json, "index", device->index);
    duet__json_put_string(json, "why", device->error ? device->why.text : NULL);
    duet__json_put_string(json, "architecture", some(device->arch));
    duet__json_put_string(json, "description", some(device->description));
    duet__json_put_string(json, "pci", some(device->pci));
    known(json, "usable_bytes", device->memory_bytes);
    known(json, "total_bytes", device->total_bytes);
    duet__json_end(json, '}');
}

static void put_backends(const struct duet__survey *survey, struct duet__json_writer *json)
{
    static const char *const kinds[] = {"cores", "devices", "emulated"};

    duet__json_begin(json, "backends", '[');
    for (unsigned b = 0; b < survey->backend_count; b++) {
        const struct survey_backend *backend = &survey->backends[b];

        duet__json_begin(json, NULL, '{');
        duet__json_put_string(json, "name", backend->name);
        duet__json_put_string(json, "description", backend->description);
        duet__json_put_string(json, "kind", kinds[backend->kind]);
        duet__json_put_integer(json, "count", backend->count);
        duet__json_put_string(json, "why", backend->count ? NULL : some(backend->why.text));
        duet__json_begin(json, "devices", '[');
        for (unsigned d = 0; d < survey->device_count; d++)
            if (survey->devices[d].backend == b)
                put_device(&survey->devices[d], json);
        duet__json_end(json, ']');
        duet__json_end(json, '}');
    }
    duet__json_end(json, ']');
}

/* ------------------------------------------------------------------------------------------- */
/* The machine of a run                                                                         */

static void put_workers(const struct duet__info *info, struct duet__json_writer *json)
{
    const struct duet_machine *machine = &info->machine;

    duet__json_begin(json, "workers", '[');
    for (unsigned w = 0; w < machine->worker_count; w++) {
        const struct duet_worker *worker = &machine->workers[w];
        const struct survey_device *device =
            info->devices[w] < 0 ? NULL : &info->survey.devices[info->devices[w]];

        duet__json_begin(json, NULL, '{');
        duet__json_put_string(json, "name", worker->name);
        duet__json_put_string(json, "architecture", machine->archs[worker->arch].name);
        duet__json_put_string(json, "programmed_by", machine->archs[worker->arch].backend);
        duet__json_put_string(json, "backend",
                              device ? info->survey.backends[device->backend].name : NULL);
        if (device && worker->node != DUET_HOST)
            duet__json_put_integer(json, "device", device->index);
        else
            duet__json_put_string(json, "device", NULL);
        duet__json_put_string(json, "node", machine->nodes[worker->node].name);
        duet__json_put_integer(json, "socket", worker->socket);
        if (info->processors[w] < 0)
            duet__json_put_string(json, "thread", NULL);
        else
            duet__json_put_integer(json, "thread", (uint64_t)info->processors[w]);
        duet__json_put_integer(json, "window", worker->window);
        duet__json_put_integer(json, "window_short", MAX(worker->window, worker->window_short));
        duet__json_end(json, '}');
    }
    duet__json_end(json, ']');
}

static void put_nodes(const struct duet_machine *machine, struct duet__json_writer *json)
{
    duet__json_begin(json, "nodes", '[');
    for (unsigned n = 0; n < machine->node_count; n++) {
        duet__json_begin(json, NULL, '{');
        duet__json_put_string(json, "name", machine->nodes[n].name);
        known(json, "capacity_bytes", machine->nodes[n].capacity_bytes);
        duet__json_end(json, '}');
    }
    duet__json_end(json, ']');
}

static void put_links(const struct duet_machine *machine, struct duet__json_writer *json)
{
    duet__json_begin(json, "links", '[');
    for (unsigned l = 0; l < machine->link_count; l++) {
        duet__json_begin(json, NULL, '{');
        duet__json_put_string(json, "name", machine->links[l].name);
        duet__json_put_number(json, "bandwidth_Bps", machine->links[l].bandwidth_Bps);
        duet__json_put_boolean(json, "shared", !machine->links[l].per_copy);
        duet__json_end(json, '}');
    }
    duet__json_end(json, ']');
}

static void put_route(const struct duet_machine *machine, struct duet__json_writer *json,
                      unsigned source, unsigned destination)
{
    const struct duet_route *route = duet_machine_route(machine, source, destination);

    duet__json_begin(json, NULL, '{');
    duet__json_put_string(json, "source", machine->nodes[source].name);
    duet__json_put_string(json, "destination", machine->nodes[destination].name);
    duet__json_put_boolean(json, "direct", route->direct);
    duet__json_put_number(json, "bandwidth_Bps", route->direct ? route->bandwidth_Bps : NAN);
    duet__json_put_number(json, "latency_s", route->direct ? route->latency_s : NAN);
    duet__json_begin(json, "links", '[');
    for (unsigned i = 0; route->direct && i < route->count; i++)
        duet__json_put_string(json, NULL, machine->links[route->links[i]].name);
    duet__json_end(json, ']');
    duet__json_end(json, '}');
}

static void put_machine(const struct duet__facts *facts, struct duet__json_writer *json)
{
    const struct duet_machine *machine = &facts->info.machine;

    if (facts->info.error) {
        duet__json_put_string(json, "machine", NULL);
        return;
    }
    duet__json_begin(json, "machine", '{');
    duet__json_put_string(json, "name", machine->name);
    duet__json_put_string(json, "emulation", duet__facts_emulation(facts));
    duet__json_put_number(json, "scale", facts->config->scale > 0 ? facts->config->scale : NAN);
    duet__json_put_integer(json, "gpu_streams", MAX(facts->config->gpu_streams, 1));
    duet__json_put_string(json, "lose", facts->config->lose);
    put_workers(&facts->info, json);
    put_nodes(machine, json);
    put_links(machine, json);
    duet__json_begin(json, "routes", '[');
    for (unsigned s = 0; s < machine->node_count; s++)
        for (unsigned d = 0; d < machine->node_count; d++)
            if (s != d)
                put_route(machine, json, s, d);
    duet__json_end(json, ']');
    duet__json_end(json, '}');
}

/* ------------------------------------------------------------------------------------------- */

static void put_rest(const struct duet__facts *facts, struct duet__json_writer *json)
{
    duet__json_begin(json, "unused", '[');
    for (guint i = 0; i < facts->unused->len; i += 2) {
        duet__json_begin(json, NULL, '{');
        duet__json_put_string(json, "what", facts->unused->pdata[i]);
        duet__json_put_string(json, "why", facts->unused->pdata[i + 1]);
        duet__json_end(json, '}');
    }
    duet__json_end(json, ']');
    duet__json_begin(json, "kernels", '[');
    for (guint i = 0; i < facts->kernels->len; i++) {
        duet__json_begin(json, NULL, '{');
        duet__json_put_string(json, "name", facts->kernels->pdata[i]);
        duet__json_put_boolean(json, "cpu", duet__kernel(facts->kernels->pdata[i]) != NULL);
        duet__json_put_boolean(json, "cuda", duet__cuda_kernel(facts->kernels->pdata[i]) != NULL);
        duet__json_end(json, '}');
    }
    duet__json_end(json, ']');
}

void duet__facts_put_json(const struct duet__facts *facts, FILE *stream)
{
    struct duet__json_writer json = {.stream = stream, .indented = true};

    duet__json_begin(&json, NULL, '{');
    duet__json_put_integer(&json, "schema", 1);
    duet__json_put_string(&json, "command", "info");
    put_build(facts, &json);
    put_host(facts, &json);
    put_backends(&facts->info.survey, &json);
    put_machine(facts, &json);
    duet__json_put_string(&json, "machine_why", facts->info.error ? facts->info.why.text : NULL);
    put_rest(facts, &json);
    duet__json_end(&json, '}');
}
