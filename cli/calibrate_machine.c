/* SPDX-License-Identifier: Apache-2.0 */
/* From what was found to a draft of the machine's description; and what the system tells of it. */
#include "cli/calibrate.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world/here.h"

/* ------------------------------------------------------------------------------------------- */
/* Caches                                                                                       */

/* A line about a cache of the first core, as sysfs has it; NULL: none. Caller frees. */
static char *cache_text(unsigned index, const char *what)
{
    char *path = g_strdup_printf("/sys/devices/system/cpu/cpu0/cache/index%u/%s", index, what);
    char *text = NULL;

    if (g_file_get_contents(path, &text, NULL, NULL))
        g_strstrip(text);
    g_free(path);
    return text;
}

/* "1024K" in bytes; 0: no size. */
static uint64_t cache_bytes(const char *text)
{
    char *end;
    uint64_t size = g_ascii_strtoull(text, &end, 10);

    return *end == 'K' ? size << 10 : *end == 'M' ? size << 20 : *end == 'G' ? size << 30 : size;
}

/* Levels 1 and 2 count as a core's own, whatever threads and neighbours they serve. */
void duet__caches_find(struct duet_sharing *sharing)
{
    enum { INDICES = 16, OWN_LEVEL = 2 };
    uint64_t private_level = 0, shared_level = OWN_LEVEL;

    for (unsigned i = 0; i < INDICES; i++) {
        char *level = cache_text(i, "level"), *size = cache_text(i, "size");
        char *type = cache_text(i, "type");

        if (level && size && type && strcmp(type, "Instruction") != 0) {
            uint64_t number = g_ascii_strtoull(level, NULL, 10);

            if (number <= OWN_LEVEL && number > private_level) {
                private_level = number;
                sharing->private_bytes = cache_bytes(size);
            } else if (number > shared_level) {
                shared_level = number;
                sharing->shared_bytes = cache_bytes(size);
            }
        }
        g_free(level);
        g_free(size);
        g_free(type);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Sockets                                                                                      */

/* Each worker takes a core of its socket: those of GPUs feed these. */
static bool has_worker(const struct duet_machine *machine, unsigned socket)
{
    for (unsigned w = 0; w < machine->worker_count; w++)
        if (machine->workers[w].socket == socket)
            return true;
    return false;
}

/* The number of a socket in the description, which leaves out those without a worker. */
static unsigned place_of(const struct duet_machine *machine, unsigned socket)
{
    unsigned place = 0;

    for (unsigned s = 0; s < socket; s++)
        place += has_worker(machine, s);
    return place;
}

static void draw_sockets(const struct duet_machine *machine, struct duet__drawing *drawing)
{
    unsigned count = 0, usual = machine->workers[0].arch;

    for (unsigned w = 0; w < machine->worker_count; w++)
        count = MAX(count, place_of(machine, machine->workers[w].socket) + 1);
    drawing->sockets = g_new0(struct duet_draft_socket, count);
    for (unsigned s = 0; s < count; s++)
        drawing->sockets[s].arch = usual;
    for (unsigned w = 0; w < machine->worker_count; w++) {
        const struct duet_worker *worker = &machine->workers[w];
        struct duet_draft_socket *socket = &drawing->sockets[place_of(machine, worker->socket)];

        socket->cores++;
        if (worker->node == DUET_HOST)
            socket->arch = worker->arch;
    }
    drawing->draft.sockets = drawing->sockets;
    drawing->draft.socket_count = count;
}

/* ------------------------------------------------------------------------------------------- */
/* Devices                                                                                      */

/* The worker of a memory node, which devices have one of. */
static const struct duet_worker *worker_of(const struct duet_machine *machine, unsigned node)
{
    for (unsigned w = 0; w < machine->worker_count; w++)
        if (machine->workers[w].node == node)
            return &machine->workers[w];
    return &machine->workers[0];
}

/* What was measured of a pair; NULL: nothing. */
static const struct duet__pair *measured_pair(const struct duet__found *found, unsigned source,
                                              unsigned destination)
{
    for (size_t i = 0; found->has_copies && i < found->copies.pair_count; i++) {
        const struct duet__pair *pair = &found->copies.pairs[i];

        if (pair->source == source && pair->destination == destination && pair->samples &&
            pair->bandwidth_Bps > 0)
            return pair;
    }
    return NULL;
}

/* Copies from one node to another: as measured, else as the machine is thought to be. */
static struct duet_draft_link figures(const struct duet__found *found, unsigned source,
                                      unsigned destination)
{
    const struct duet_route *route = duet_machine_route(&found->info.machine, source, destination);
    const struct duet__pair *pair = measured_pair(found, source, destination);

    if (pair)
        return (struct duet_draft_link){pair->bandwidth_Bps, fmax(pair->latency_s, 0)};
    return (struct duet_draft_link){route->bandwidth_Bps / found->pace,
                                    route->latency_s * found->pace};
}

/* Devices whose routes from the host begin with one link are behind one switch. */
static unsigned assumed_switch(const struct duet_machine *machine, unsigned node,
                               const struct duet__drawing *drawing)
{
    unsigned next = 0;

    for (unsigned other = 1; other < node; other++) {
        const struct duet_route *a = duet_machine_route(machine, DUET_HOST, node);
        const struct duet_route *b = duet_machine_route(machine, DUET_HOST, other);

        if (a->count && b->count && a->links[0] == b->links[0])
            return drawing->gpus[other - 1].position;
        next = MAX(next, drawing->gpus[other - 1].position + 1);
    }
    return next;
}

static void draw_gpus(const struct duet__found *found, struct duet__drawing *drawing)
{
    const struct duet_machine *machine = &found->info.machine;
    bool measured = found->has_copies && found->copies.switches;

    drawing->gpus = g_new0(struct duet_draft_gpu, machine->node_count);
    for (unsigned node = 1; node < machine->node_count; node++) {
        drawing->gpus[node - 1] = (struct duet_draft_gpu){
            .arch = worker_of(machine, node)->arch,
            .position = measured ? found->copies.switches[node - 1]
                                 : assumed_switch(machine, node, drawing),
            .memory_bytes = machine->nodes[node].capacity_bytes,
            .to_device = figures(found, DUET_HOST, node),
            .to_host = figures(found, node, DUET_HOST),
        };
    }
    drawing->draft.gpus = drawing->gpus;
    drawing->draft.gpu_count = machine->node_count - 1;
}

/* A switch is as fast as its devices are together, and at least as each of them alone. */
static void draw_switches(const struct duet__found *found, struct duet__drawing *drawing)
{
    const struct duet_machine *machine = &found->info.machine;
    const struct duet__copies *copies = &found->copies;
    struct duet_draft *draft = &drawing->draft;

    drawing->switches = g_new0(struct duet_draft_switch, draft->gpu_count + 1);
    for (unsigned i = 0; i < draft->gpu_count; i++) {
        const struct duet_draft_gpu *gpu = &drawing->gpus[i];
        struct duet_draft_switch *place = &drawing->switches[gpu->position];

        if (gpu->position >= draft->switch_count) {
            draft->switch_count = gpu->position + 1;
            place->socket = place_of(machine, worker_of(machine, i + 1)->socket);
        }
        place->to_device_Bps = fmax(place->to_device_Bps, gpu->to_device.bandwidth_Bps);
        place->to_host_Bps = fmax(place->to_host_Bps, gpu->to_host.bandwidth_Bps);
    }
    for (unsigned i = 0; found->has_copies && i < MIN(copies->switch_count, draft->switch_count);
         i++) {
        struct duet_draft_switch *place = &drawing->switches[i];

        place->to_device_Bps = fmax(place->to_device_Bps, copies->to_device_Bps[i]);
        place->to_host_Bps = fmax(place->to_host_Bps, copies->to_host_Bps[i]);
    }
    draft->switches = drawing->switches;
}

/* Behind one switch, on one socket, on two: the position in a draft's peers. */
static unsigned reach(const struct duet__drawing *drawing, unsigned a, unsigned b)
{
    unsigned first = drawing->gpus[a].position, second = drawing->gpus[b].position;

    if (first == second)
        return 0;
    return drawing->switches[first].socket == drawing->switches[second].socket ? 1 : 2;
}

/* The mean of those pairs of a reach and direction that copy directly. */
static struct duet_draft_link peers(const struct duet__found *found,
                                    const struct duet__drawing *drawing, unsigned wanted, bool up)
{
    struct duet_draft_link sum = {0, 0};
    unsigned count = 0, gpus = drawing->draft.gpu_count;

    for (unsigned i = 0; i < gpus * gpus; i++) {
        unsigned source = i / gpus, destination = i % gpus;
        struct duet_draft_link link;

        if (source == destination || (destination > source) != up ||
            reach(drawing, source, destination) != wanted ||
            !duet_machine_route(&found->info.machine, source + 1, destination + 1)->direct)
            continue;
        link = figures(found, source + 1, destination + 1);
        sum.bandwidth_Bps += link.bandwidth_Bps;
        sum.latency_s += link.latency_s;
        count++;
    }
    if (count) {
        sum.bandwidth_Bps /= count;
        sum.latency_s /= count;
    }
    return sum;
}

/* ------------------------------------------------------------------------------------------- */

/* What the system says of its cores; NULL: nothing. */
static const char *cores_of(const struct duet__found *found)
{
    const struct duet__survey *survey = &found->info.survey;

    for (unsigned d = 0; d < survey->device_count; d++)
        if (survey->backends[survey->devices[d].backend].kind == SURVEY_CORES &&
            *survey->devices[d].description)
            return survey->devices[d].description;
    return NULL;
}

/* "2 CPUs (AMD EPYC) and 1 GPU (h200), calibrated"; caller frees. */
static char *describe(const struct duet__wish *wish, const struct duet__found *found)
{
    GString *text = g_string_new(NULL);
    const char *cpu = wish->paced ? wish->job.config.emulate : cores_of(found);

    g_string_append_printf(text, "%u CPU%s", found->cpus, found->cpus == 1 ? "" : "s");
    if (cpu)
        g_string_append_printf(text, " (%s)", cpu);
    if (found->gpus)
        g_string_append_printf(text, " and %u GPU%s (%s)", found->gpus, found->gpus == 1 ? "" : "s",
                               found->info.machine.archs[worker_of(&found->info.machine, 1)->arch]
                                   .name);
    g_string_append(text, wish->paced ? ", emulated" : ", calibrated");
    return g_string_free(text, FALSE);
}

/* Where the figures come from, and which do not come from there; caller frees. */
static char *origin(const struct duet__wish *wish, const struct duet__found *found)
{
    GDateTime *now = g_date_time_new_now_utc();
    char *date = g_date_time_format(now, "%Y-%m-%d");
    GString *text = g_string_new("measured by duet calibrate on ");

    g_string_append(text, date);
    if (wish->paced)
        g_string_append_printf(text, " at the pace of %s, times %g", wish->job.config.emulate,
                               found->pace);
    if (!found->has_costs)
        g_string_append(text, "; costs are not measured");
    if (found->gpus && !found->has_copies)
        g_string_append(text, "; copies are not measured");
    g_free(date);
    g_date_time_unref(now);
    return g_string_free(text, FALSE);
}

void duet__drawing_make(const struct duet__wish *wish, const struct duet__found *found,
                        struct duet__drawing *drawing)
{
    const struct duet_machine *machine = &found->info.machine;
    struct duet_draft *draft = &drawing->draft;

    *drawing =
        (struct duet__drawing){.description = describe(wish, found), .origin = origin(wish, found)};
    *draft = (struct duet_draft){
        .name = wish->name,
        .description = drawing->description,
        .origin = drawing->origin,
        .archs = machine->archs,
        .arch_count = machine->arch_count,
        .host_memory_bytes = wish->paced ? 0 : found->info.survey.memory_bytes,
        .costs = machine->costs,
        .sharing = found->model.sharing,
        .cores = wish->paced ? machine->cores : duet__here_cores(),
        .first_waits = found->cpus > 0,
        .probe_s = found->probe_s,
    };
    if (found->has_costs)
        duet__costs_fill(found->costs, &draft->costs);
    draw_sockets(machine, drawing);
    draw_gpus(found, drawing);
    draw_switches(found, drawing);
    for (unsigned i = 0; i < G_N_ELEMENTS(draft->peers_up); i++) {
        draft->peers_up[i] = peers(found, drawing, i, true);
        draft->peers_down[i] = peers(found, drawing, i, false);
    }
}

void duet__drawing_fini(struct duet__drawing *drawing)
{
    g_free(drawing->description);
    g_free(drawing->origin);
    g_free(drawing->sockets);
    g_free(drawing->switches);
    g_free(drawing->gpus);
    *drawing = (struct duet__drawing){0};
}
