/* SPDX-License-Identifier: Apache-2.0 */
/* Describes the machine by measurements and by what the system reports. */
#include "calibrate/calibrate.h"

#include <math.h>
#include <string.h>

#include "base/stats.h"
#include "runtime/open.h"

/* ------------------------------------------------------------------------------------------- */
/* Caches                                                                                       */

/* Returns a line about a cache of the first core, as sysfs has it; NULL: none. Caller frees. */
static char *cache_text(unsigned index, const char *what)
{
    g_autofree char *path =
        g_strdup_printf("/sys/devices/system/cpu/cpu0/cache/index%u/%s", index, what);
    char *text = NULL;
    return g_file_get_contents(path, &text, NULL, NULL) ? g_strchomp(text) : NULL;
}

uint64_t duet__cache_find(void)
{
    enum { INDICES = 16 };
    uint64_t last = 0, bytes = 0;
    for (unsigned i = 0; i < INDICES; i++) {
        g_autofree char *level = cache_text(i, "level"), *size = cache_text(i, "size");
        g_autofree char *type = cache_text(i, "type");
        uint64_t number;
        if (!level || !size || !type || strcmp(type, "Instruction") == 0)
            continue;
        number = g_ascii_strtoull(level, NULL, 10);
        if (number > last) {
            last = number;
            bytes = g_ascii_strtoull(size, NULL, 10) << 10; /* "1024K" */
        }
    }
    return bytes;
}

/* ------------------------------------------------------------------------------------------- */
/* Sockets                                                                                      */

/* Number of a socket in the description, which leaves out sockets without a worker. */
static unsigned place_of(const struct duet_machine *machine, unsigned socket)
{
    unsigned place = 0;
    for (unsigned s = 0; s < socket; s++) {
        unsigned w = 0;
        while (w < machine->worker_count && machine->workers[w].socket != s)
            w++;
        place += w < machine->worker_count;
    }
    return place;
}

/* Describes sockets. Each worker takes a core of its socket, those of GPUs to feed them. */
static void describe_sockets(const struct duet_machine *machine, struct duet__platform *p)
{
    p->sockets = g_new0(struct duet__platform_socket, machine->worker_count);
    for (unsigned w = 0; w < machine->worker_count; w++) {
        const struct duet_worker *worker = &machine->workers[w];
        unsigned place = place_of(machine, worker->socket);
        struct duet__platform_socket *socket = &p->sockets[place];
        p->socket_count = MAX(p->socket_count, place + 1);
        if (!socket->cores++)
            socket->arch = machine->workers[0].arch;
        if (worker->node == DUET_HOST)
            socket->arch = worker->arch;
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Devices                                                                                      */

/* Returns the worker of a device's memory node. */
static const struct duet_worker *worker_of(const struct duet_machine *machine, unsigned node)
{
    for (unsigned w = 0; w < machine->worker_count; w++)
        if (machine->workers[w].node == node)
            return &machine->workers[w];
    return &machine->workers[0];
}

/* Figures of copies from one node to another: measured, else of the assumed machine. */
static struct duet__platform_figure figures(const struct duet__calibrating *c, unsigned source,
                                            unsigned destination)
{
    const struct duet_route *route = duet_machine_route(&c->info.machine, source, destination);
    for (size_t i = 0; c->has_copies && i < c->copies.pair_count; i++) {
        const struct duet__copy_pair *pair = &c->copies.pairs[i];
        if (pair->source == source && pair->destination == destination && pair->bandwidth_Bps > 0)
            return (struct duet__platform_figure){pair->bandwidth_Bps, pair->latency_s};
    }
    return (struct duet__platform_figure){route->bandwidth_Bps / c->pace,
                                          route->latency_s * c->pace};
}

/* Returns the assumed switch: devices whose routes from the host begin with one link share one. */
static unsigned assumed_switch(const struct duet_machine *machine, unsigned node,
                               const struct duet__platform *platform)
{
    unsigned next = 0;
    for (unsigned other = 1; other < node; other++) {
        const struct duet_route *a = duet_machine_route(machine, DUET_HOST, node);
        const struct duet_route *b = duet_machine_route(machine, DUET_HOST, other);
        if (a->count && b->count && a->links[0] == b->links[0])
            return platform->gpus[other - 1].position;
        next = MAX(next, platform->gpus[other - 1].position + 1);
    }
    return next;
}

/* Describes GPUs and their switches, numbered in the order of their first GPUs. A switch is as fast
 * as its GPUs together, and at least as the fastest alone. */
static void describe_gpus(const struct duet__calibrating *c, struct duet__platform *p)
{
    const struct duet_machine *machine = &c->info.machine;
    bool measured = c->has_copies && c->copies.switches;
    p->gpus = g_new0(struct duet__platform_gpu, machine->node_count);
    p->switches = g_new0(struct duet__platform_switch, machine->node_count);
    for (unsigned node = 1; node < machine->node_count; node++) {
        const struct duet_worker *worker = worker_of(machine, node);
        struct duet__platform_gpu *gpu = &p->gpus[p->gpu_count++];
        struct duet__platform_switch *place;
        unsigned number =
            measured ? c->copies.switches[node - 1] : assumed_switch(machine, node, p);
        *gpu = (struct duet__platform_gpu){
            .arch = worker->arch,
            .position = number,
            .memory_bytes = machine->nodes[node].capacity_bytes,
            .to_device = figures(c, DUET_HOST, node),
            .to_host = figures(c, node, DUET_HOST),
        };
        place = &p->switches[number];
        if (number >= p->switch_count) {
            p->switch_count = number + 1;
            place->socket = place_of(machine, worker->socket);
            place->to_device_Bps = measured ? c->copies.to_device_Bps[number] : 0;
            place->to_host_Bps = measured ? c->copies.to_host_Bps[number] : 0;
        }
        place->to_device_Bps = fmax(place->to_device_Bps, gpu->to_device.bandwidth_Bps);
        place->to_host_Bps = fmax(place->to_host_Bps, gpu->to_host.bandwidth_Bps);
    }
}

/* Returns the middle one of `count` figures that lie `stride` bytes apart. */
static double middle(const double *first, size_t stride, unsigned count)
{
    g_autofree double *values = g_new(double, count);
    for (unsigned i = 0; i < count; i++)
        values[i] = *(const double *)(const void *)((const char *)first + i * stride);
    duet__sort(values, count);
    return values[(count - 1) / 2];
}

/* Makes one kind of all links between host and switches, also for hypothetical ones. */
static void describe_kind(struct duet__platform *p)
{
    size_t sw = sizeof(*p->switches), gpu = sizeof(*p->gpus);
    p->kinds = g_new0(struct duet__platform_link, 1);
    p->kind_count = 1;
    p->kinds[0] = (struct duet__platform_link){
        .name = "pcie",
        .to_device = {middle(&p->switches->to_device_Bps, sw, p->switch_count),
                      middle(&p->gpus->to_device.latency_s, gpu, p->gpu_count)},
        .to_host = {middle(&p->switches->to_host_Bps, sw, p->switch_count),
                    middle(&p->gpus->to_host.latency_s, gpu, p->gpu_count)},
    };
}

/* Mean of those pairs of a reach and direction that copy directly. */
static struct duet__platform_figure mean_peer(const struct duet__calibrating *c,
                                              const struct duet__platform *p,
                                              enum duet__reach wanted, bool up)
{
    struct duet__platform_figure sum = {0, 0};
    unsigned count = 0;
    for (unsigned i = 0; i < p->gpu_count * p->gpu_count; i++) {
        unsigned source = i / p->gpu_count, destination = i % p->gpu_count;
        struct duet__platform_figure link;
        if (source == destination || (destination > source) != up ||
            duet__reach_between(p, source, destination) != wanted ||
            !duet_machine_route(&c->info.machine, source + 1, destination + 1)->direct)
            continue;
        link = figures(c, source + 1, destination + 1);
        sum.bandwidth_Bps += link.bandwidth_Bps;
        sum.latency_s += link.latency_s;
        count++;
    }
    return (struct duet__platform_figure){sum.bandwidth_Bps / MAX(count, 1),
                                          sum.latency_s / MAX(count, 1)};
}

/* A direct copy this much faster than the links to the host between two GPUs does not cross them; a
 * smaller difference comes from the time of measuring. */
static const double OWN_LINK = 1.1;

/* True if direct copies of this reach are too fast for the links to the host between any two
 * GPUs. */
static bool is_own(const struct duet__platform *p, enum duet__reach reach)
{
    const struct duet__platform_peer *peer = &p->peers[reach];
    for (unsigned a = 0; reach != DUET_REACH_SWITCH && a < p->gpu_count; a++)
        for (unsigned b = 0; b < p->gpu_count; b++) {
            double direct = a < b ? peer->up.bandwidth_Bps : peer->down.bandwidth_Bps;
            if (a != b && duet__reach_between(p, a, b) == reach &&
                direct > OWN_LINK * fmin(p->switches[p->gpus[a].position].to_host_Bps,
                                         p->switches[p->gpus[b].position].to_device_Bps))
                return true;
        }
    return false;
}

static void describe_peers(const struct duet__calibrating *c, struct duet__platform *p)
{
    static const char *const names[DUET_REACHES] = {"peer_switch", "peer_socket", "peer_remote"};
    for (unsigned i = 0; i < DUET_REACHES; i++) {
        struct duet__platform_peer *peer = &p->peers[i];
        peer->up = mean_peer(c, p, i, true);
        peer->down = mean_peer(c, p, i, false);
        if (!(peer->up.bandwidth_Bps > 0 && peer->down.bandwidth_Bps > 0))
            continue; /* no direct copies in both directions */
        g_strlcpy(peer->name, names[i], sizeof(peer->name));
        peer->own_link = is_own(p, i);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* All of it                                                                                    */

int duet__machine_look(struct duet__calibrating *c, struct duet_message *message)
{
    const struct duet_config *config = &c->request->runs->config;
    int error = duet__info_open(&c->info, config, false, message);
    if (!error && c->info.error)
        error = duet_fail(message, c->info.error, "%s", c->info.why.text);
    if (error)
        return error;
    c->pace = c->request->paced && config->scale > 0 ? config->scale : 1;
    for (unsigned w = 0; w < c->info.machine.worker_count; w++) {
        c->cpus += c->info.machine.workers[w].node == DUET_HOST;
        c->gpus += c->info.machine.workers[w].node != DUET_HOST;
    }
    if (!c->cpus)
        return duet_fail(message, DUET_EINVAL,
                         "no CPU computes on this machine, all of them feed GPUs: use fewer "
                         "(--gpus)");
    if (!c->request->paced)
        c->known.shared_bytes = duet__cache_find();
    return DUET_OK;
}

void duet__costs_fill(const struct duet__measured costs[DUET__COSTS], struct duet_costs *out)
{
    double median_s[DUET__COSTS];
    /* push is a difference, which noise may turn negative */
    for (unsigned i = 0; i < DUET__COSTS; i++)
        median_s[i] = costs[i].times.count ? fmax(costs[i].times.median, 0) : 0;
    *out = (struct duet_costs){
        .submit_s = median_s[DUET__COST_SUBMIT],
        .push_s = median_s[DUET__COST_PUSH],
        .pop_s = median_s[DUET__COST_POP],
        .steal_s = fmax(0, median_s[DUET__COST_STEAL] - median_s[DUET__COST_POP]),
        .kernel_launch_s = median_s[DUET__COST_KERNEL_LAUNCH],
        .copy_launch_s = median_s[DUET__COST_COPY_LAUNCH],
        .event_s = median_s[DUET__COST_EVENT],
        .wake_s = median_s[DUET__COST_WAKE],
        .spin_s = median_s[DUET__COST_SPIN],
    };
}

const char *duet__processor(const struct duet__calibrating *c)
{
    const struct duet__survey *survey = &c->info.survey;
    for (unsigned d = 0; d < survey->device_count; d++)
        if (survey->backends[survey->devices[d].backend].kind == SURVEY_CORES &&
            *survey->devices[d].description)
            return survey->devices[d].description;
    return NULL;
}

/* "2 CPUs (AMD EPYC) and 1 GPU (h200), calibrated"; caller frees. */
static char *description_text(const struct duet__calibrating *c)
{
    const struct duet_machine *machine = &c->info.machine;
    const char *of = c->request->paced ? c->request->runs->config.emulate : duet__processor(c);
    g_autofree char *cpu = of ? g_strdup_printf(" (%s)", of) : g_strdup("");
    g_autofree char *gpus = g_strdup_printf(" and %u GPU%s (%s)", c->gpus, c->gpus == 1 ? "" : "s",
                                            machine->archs[worker_of(machine, 1)->arch].name);
    return g_strdup_printf("%u CPU%s%s%s, %s", c->cpus, c->cpus == 1 ? "" : "s", cpu,
                           c->gpus ? gpus : "", c->request->paced ? "emulated" : "calibrated");
}

/* Returns the sources of the figures, and the figures with other sources; caller frees. */
static char *origin(const struct duet__calibrating *c)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autofree char *date = g_date_time_format(now, "measured by duet calibrate on %Y-%m-%d");
    const char *emulate = c->request->runs->config.emulate;
    g_autofree char *pace = c->request->paced
                                ? g_strdup_printf(" at the pace of %s, times %g", emulate, c->pace)
                                : g_strdup("");
    return g_strconcat(date, pace, c->has_costs ? "" : "; costs are not measured",
                       c->gpus && !c->has_copies ? "; copies are not measured" : "", NULL);
}

void duet__describe_machine(const struct duet__calibrating *c, struct duet__platform *platform)
{
    const struct duet_machine *machine = &c->info.machine;
    const struct duet__calibration *times = &c->model.calibration;
    *platform = (struct duet__platform){
        .description = description_text(c),
        .origin = origin(c),
        .archs = g_memdup2(machine->archs, machine->arch_count * sizeof(*machine->archs)),
        .arch_count = machine->arch_count,
        .host_memory_bytes = c->request->paced ? 0 : c->info.survey.memory_bytes,
        .costs = machine->costs,
        .sharing = c->model.sharing,
        .cores = machine->cores,
        .first_waits = c->cpus > 0,
        .probe_s = c->probe_s,
    };
    g_strlcpy(platform->name, c->request->name, sizeof(platform->name));
    if (c->has_costs)
        duet__costs_fill(c->costs, &platform->costs);
    describe_sockets(machine, platform);
    describe_gpus(c, platform);
    if (platform->gpu_count) {
        describe_kind(platform);
        describe_peers(c, platform);
    }
    for (size_t i = 0; i < times->count; i++)
        if (duet__calibration_add(&platform->calibration, &times->curves[i], NULL))
            g_error("kernel times that were added once cannot be added again");
    platform->calibration.states = times->states;
}

/* ------------------------------------------------------------------------------------------- */
/* Quality                                                                                      */

void duet__confidence(const struct duet__calibrating *c, struct duet__confidence *out)
{
    const struct duet__model *model = &c->model;
    g_autofree double *errors = g_new0(double, model->quality_count + 1);
    *out = (struct duet__confidence){.half = NAN,
                                     .most = NAN,
                                     .worst_error = NAN,
                                     .fewest_runs = UINT64_MAX,
                                     .fewest_samples = UINT64_MAX};
    for (size_t i = 0; i < model->quality_count; i++) {
        const struct duet__quality *quality = &model->quality[i];
        out->samples += quality->point.samples;
        out->rejected += quality->point.rejected;
        out->all_s += quality->all_s;
        out->rejected_s += quality->rejected_s;
        out->fresh_s += quality->fresh_s;
        out->fewest_samples = MIN(out->fewest_samples, quality->point.samples);
        double error = quality->error.sum;
        if (!isfinite(error))
            continue;
        errors[out->points++] = fabs(error);
        if (!out->worst || fabs(error) > fabs(out->worst_error)) {
            out->worst_error = error;
            out->worst = quality;
        }
    }
    for (guint i = 0; i < c->setups->len; i++) {
        uint64_t runs = duet__setup_at(c, i)->runs;
        if (runs)
            out->fewest_runs = MIN(out->fewest_runs, runs);
    }
    if (out->points) {
        out->half = duet__median(errors, out->points);
        out->most = duet__quantile(errors, out->points, 0.9);
    }
}
