/* SPDX-License-Identifier: Apache-2.0 */
/* `duet info` for programs: docs/formats.md describes it. */
#include <math.h>

#include "cli/build.h"
#include "cli/info.h"
#include "cli/emit.h"

/* NULL for "". */
static const char *some(const char *text)
{
    return *text ? text : NULL;
}

/* A number that is null where it is 0, which then means that it is not known. */
static void known(struct duet__emit *json, const char *name, uint64_t value)
{
    if (value)
        duet__emit_count(json, name, value);
    else
        duet__emit_null(json, name);
}

static void put_sanitizers(struct duet__emit *json, const char *text)
{
    g_auto(GStrv) names = g_strsplit(text, " ", -1);

    duet__emit_open(json, "sanitizers", '[');
    for (char **name = names; *name; name++)
        if (**name)
            duet__emit_text(json, NULL, *name);
    duet__emit_close(json, ']');
}

static void put_build(const struct duet__facts *facts, struct duet__emit *json)
{
    const struct duet__build *build = duet__build();

    duet__emit_open(json, "build", '{');
    duet__emit_text(json, "version", build->version);
    duet__emit_text(json, "compiler", build->compiler);
    duet__emit_text(json, "type", build->type);
    duet__emit_flag(json, "link_time_optimisation", build->link_time_optimisation);
    put_sanitizers(json, build->sanitizers);
    duet__emit_text(json, "simgrid", some(build->simgrid));
    if (facts->has_blas) {
        duet__emit_open(json, "blas", '{');
        duet__emit_text(json, "version", build->blas);
        duet__emit_text(json, "config", facts->blas.build);
        duet__emit_text(json, "core", facts->blas.core);
        duet__emit_text(json, "threading", facts->blas.threading);
        duet__emit_close(json, '}');
    } else {
        duet__emit_null(json, "blas");
    }
    if (*build->cuda) {
        duet__emit_open(json, "cuda", '{');
        duet__emit_text(json, "toolkit", build->cuda);
        duet__emit_text(json, "compiled_for", build->gpus);
        duet__emit_flag(json, "libraries", !facts->cuda_error);
        duet__emit_text(json, "libraries_why", facts->cuda_error ? facts->cuda_why.text : NULL);
        duet__emit_close(json, '}');
    } else {
        duet__emit_null(json, "cuda");
    }
    duet__emit_close(json, '}');
}

static void put_host(const struct duet__facts *facts, struct duet__emit *json)
{
    const struct duet__survey *survey = &facts->info.survey;

    duet__emit_open(json, "host", '{');
    duet__emit_text(json, "name", facts->host);
    duet__emit_count(json, "threads", survey->threads);
    duet__emit_count(json, "usable_threads", survey->usable_threads);
    duet__emit_count(json, "usable_cores", survey->usable_cores);
    known(json, "quota_cores", survey->quota_cores);
    duet__emit_count(json, "cores", survey->cores);
    duet__emit_count(json, "sockets", survey->sockets);
    known(json, "memory_bytes", survey->memory_bytes);
    known(json, "free_bytes", survey->free_bytes);
    if (survey->lock_bytes == UINT64_MAX)
        duet__emit_null(json, "lock_limit_bytes");
    else
        duet__emit_count(json, "lock_limit_bytes", survey->lock_bytes);
    duet__emit_count(json, "pin_bytes", facts->info.pin_bytes);
    duet__emit_close(json, '}');
}

static void put_device(const struct survey_device *device, struct duet__emit *json)
{
    duet__emit_open(json, NULL, '{');
    duet__emit_count(json, "index", device->index);
    duet__emit_text(json, "why", device->error ? device->why.text : NULL);
    duet__emit_text(json, "architecture", some(device->arch));
    duet__emit_text(json, "description", some(device->description));
    duet__emit_text(json, "pci", some(device->pci));
    known(json, "usable_bytes", device->memory_bytes);
    known(json, "total_bytes", device->total_bytes);
    duet__emit_close(json, '}');
}

static void put_backends(const struct duet__survey *survey, struct duet__emit *json)
{
    static const char *const kinds[] = {"cores", "devices", "emulated"};

    duet__emit_open(json, "backends", '[');
    for (unsigned b = 0; b < survey->backend_count; b++) {
        const struct survey_backend *backend = &survey->backends[b];

        duet__emit_open(json, NULL, '{');
        duet__emit_text(json, "name", backend->name);
        duet__emit_text(json, "description", backend->description);
        duet__emit_text(json, "kind", kinds[backend->kind]);
        duet__emit_count(json, "count", backend->count);
        duet__emit_text(json, "why", backend->count ? NULL : some(backend->why.text));
        duet__emit_open(json, "devices", '[');
        for (unsigned d = 0; d < survey->device_count; d++)
            if (survey->devices[d].backend == b)
                put_device(&survey->devices[d], json);
        duet__emit_close(json, ']');
        duet__emit_close(json, '}');
    }
    duet__emit_close(json, ']');
}

/* ------------------------------------------------------------------------------------------- */
/* The machine of a run                                                                         */

static void put_workers(const struct duet__info *info, struct duet__emit *json)
{
    const struct duet_machine *machine = &info->machine;

    duet__emit_open(json, "workers", '[');
    for (unsigned w = 0; w < machine->worker_count; w++) {
        const struct duet_worker *worker = &machine->workers[w];
        const struct survey_device *device =
            info->devices[w] < 0 ? NULL : &info->survey.devices[info->devices[w]];

        duet__emit_open(json, NULL, '{');
        duet__emit_text(json, "name", worker->name);
        duet__emit_text(json, "architecture", machine->archs[worker->arch].name);
        duet__emit_text(json, "programmed_by", machine->archs[worker->arch].backend);
        duet__emit_text(json, "backend",
                        device ? info->survey.backends[device->backend].name : NULL);
        if (device && worker->node != DUET_HOST)
            duet__emit_count(json, "device", device->index);
        else
            duet__emit_null(json, "device");
        duet__emit_text(json, "node", machine->nodes[worker->node].name);
        duet__emit_count(json, "socket", worker->socket);
        if (info->processors[w] < 0)
            duet__emit_null(json, "thread");
        else
            duet__emit_count(json, "thread", (uint64_t)info->processors[w]);
        duet__emit_count(json, "window", worker->window);
        duet__emit_count(json, "window_short", MAX(worker->window, worker->window_short));
        duet__emit_close(json, '}');
    }
    duet__emit_close(json, ']');
}

static void put_nodes(const struct duet_machine *machine, struct duet__emit *json)
{
    duet__emit_open(json, "nodes", '[');
    for (unsigned n = 0; n < machine->node_count; n++) {
        duet__emit_open(json, NULL, '{');
        duet__emit_text(json, "name", machine->nodes[n].name);
        known(json, "capacity_bytes", machine->nodes[n].capacity_bytes);
        duet__emit_close(json, '}');
    }
    duet__emit_close(json, ']');
}

static void put_links(const struct duet_machine *machine, struct duet__emit *json)
{
    duet__emit_open(json, "links", '[');
    for (unsigned l = 0; l < machine->link_count; l++) {
        duet__emit_open(json, NULL, '{');
        duet__emit_text(json, "name", machine->links[l].name);
        duet__emit_number(json, "bandwidth_Bps", machine->links[l].bandwidth_Bps);
        duet__emit_flag(json, "shared", !machine->links[l].per_copy);
        duet__emit_close(json, '}');
    }
    duet__emit_close(json, ']');
}

static void put_route(const struct duet_machine *machine, struct duet__emit *json, unsigned source,
                      unsigned destination)
{
    const struct duet_route *route = duet_machine_route(machine, source, destination);

    duet__emit_open(json, NULL, '{');
    duet__emit_text(json, "source", machine->nodes[source].name);
    duet__emit_text(json, "destination", machine->nodes[destination].name);
    duet__emit_flag(json, "direct", route->direct);
    duet__emit_number(json, "bandwidth_Bps", route->direct ? route->bandwidth_Bps : NAN);
    duet__emit_number(json, "latency_s", route->direct ? route->latency_s : NAN);
    duet__emit_open(json, "links", '[');
    for (unsigned i = 0; route->direct && i < route->count; i++)
        duet__emit_text(json, NULL, machine->links[route->links[i]].name);
    duet__emit_close(json, ']');
    duet__emit_close(json, '}');
}

static void put_machine(const struct duet__facts *facts, struct duet__emit *json)
{
    const struct duet_machine *machine = &facts->info.machine;

    if (facts->info.error) {
        duet__emit_null(json, "machine");
        return;
    }
    duet__emit_open(json, "machine", '{');
    duet__emit_text(json, "name", machine->name);
    duet__emit_text(json, "emulation", duet__facts_emulation(facts));
    duet__emit_number(json, "scale", facts->config->scale > 0 ? facts->config->scale : NAN);
    duet__emit_count(json, "gpu_streams", MAX(facts->config->gpu_streams, 1));
    duet__emit_text(json, "lose", facts->config->lose);
    put_workers(&facts->info, json);
    put_nodes(machine, json);
    put_links(machine, json);
    duet__emit_open(json, "routes", '[');
    for (unsigned s = 0; s < machine->node_count; s++)
        for (unsigned d = 0; d < machine->node_count; d++)
            if (s != d)
                put_route(machine, json, s, d);
    duet__emit_close(json, ']');
    duet__emit_close(json, '}');
}

/* ------------------------------------------------------------------------------------------- */

static void put_rest(const struct duet__facts *facts, struct duet__emit *json)
{
    duet__emit_open(json, "unused", '[');
    for (guint i = 0; i < facts->unused->len; i++) {
        const struct duet__unused *unused = &g_array_index(facts->unused, struct duet__unused, i);

        duet__emit_open(json, NULL, '{');
        duet__emit_text(json, "what", unused->what);
        duet__emit_text(json, "why", unused->why);
        duet__emit_close(json, '}');
    }
    duet__emit_close(json, ']');
    duet__emit_open(json, "kernels", '[');
    for (guint i = 0; i < facts->offers->len; i++) {
        const struct duet__offer *offer = &g_array_index(facts->offers, struct duet__offer, i);

        duet__emit_open(json, NULL, '{');
        duet__emit_text(json, "name", offer->name);
        duet__emit_flag(json, "cpu", offer->cpu);
        duet__emit_flag(json, "cuda", offer->cuda);
        duet__emit_close(json, '}');
    }
    duet__emit_close(json, ']');
}

void duet__facts_put_json(const struct duet__facts *facts, FILE *stream)
{
    struct duet__emit json = {.stream = stream};

    duet__emit_open(&json, NULL, '{');
    duet__emit_count(&json, "schema", 1);
    duet__emit_text(&json, "command", "info");
    put_build(facts, &json);
    put_host(facts, &json);
    put_backends(&facts->info.survey, &json);
    put_machine(facts, &json);
    duet__emit_text(&json, "machine_why", facts->info.error ? facts->info.why.text : NULL);
    put_rest(facts, &json);
    duet__emit_close(&json, '}');
}
