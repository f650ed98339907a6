/* SPDX-License-Identifier: Apache-2.0 */
/* The report of `duet calibrate` for programs: docs/calibrate.md describes it. */
#include "cli/calibrate.h"

#include <inttypes.h>
#include <math.h>

#include "base/fields.h"

/* Returns the number, or what JSON writes as null if it is 0, which means not known. */
static double known(double value)
{
    return value > 0 ? value : NAN;
}

static void put_machine(const struct duet__calibrating *c, const struct duet__platform *platform,
                        struct duet__json_writer *json)
{
    const struct duet_sharing *sharing = &platform->sharing;

    duet__json_print(json, "machine: {name: %s, description: %s, cpus: %u, gpus: %u, sockets: %u",
                     platform->name, platform->description, c->cpus, c->gpus,
                     platform->socket_count);
    duet__json_print(json,
                     "cores: %g, memory_bytes: %g, shared_cache_bytes: %g, "
                     "system_shared_cache_bytes: %g, core_bandwidth_Bps: %g, bandwidth_Bps: %g, "
                     "probe_s: %g}",
                     known(platform->cores), known((double)platform->host_memory_bytes),
                     known((double)sharing->shared_bytes), known((double)c->known.shared_bytes),
                     known(c->bandwidth.one_Bps), known(c->bandwidth.all_Bps),
                     known(platform->probe_s));
}

static void put_runs(const struct duet__calibrating *c, struct duet__json_writer *json)
{
    duet__json_print(json,
                     "budget_s: %g, wall_s: %g, steal_share: %g, others_cores: %g, "
                     "left_out_runs: %" PRIu64,
                     c->request->budget_s, c->wall_s, c->load.stolen / c->load.cores,
                     c->load.others, c->left_out);
    duet__values_write(json, "disturbed_rounds", DUET__INTEGER, c->rounds.disturbed->data,
                       c->rounds.disturbed->len, sizeof(uint64_t));
    duet__json_print(json, "rounds: %" PRIu64 ", runs: [", (uint64_t)c->rounds.round);
    for (guint i = 0; i < c->setups->len; i++) {
        const struct duet__setup *setup = duet__setup_at(c, i);
        const char precision[] = {setup->problem.precision, 0};

        if (setup->runs) /* else there was no time for it */
            duet__json_print(json,
                             "{workload: %s, n: %" PRIu64 ", tile: %" PRIu64 ", precision: %s, "
                             "size: %s, workers: %s, runs: %" PRIu64 ", tasks: %" PRIu64
                             ", mean_s: %g}",
                             setup->workload->name, setup->problem.n, setup->problem.tile,
                             precision, duet__setup_size_name(setup), duet__setup_workers(setup),
                             setup->runs, setup->tasks, setup->run_s);
    }
    duet__json_end(json, ']');
}

static void put_kernel(const struct duet__quality *q, struct duet__json_writer *json)
{
    static const char *const names[DUET__CONDITIONS] = {"warm_alone", "cold_alone", "warm_busy",
                                                        "cold_busy"};
    const struct duet__point *point = &q->point;

    duet__json_print(json,
                     "{kernel: %s, architecture: %s, workload: %s, work: %g, tile: %g, "
                     "samples: %" PRIu64 ", rejected: %" PRIu64
                     ", mean_s: %g, median_s: %g, deviation_s: %g",
                     q->kernel, q->arch, q->context, point->work, known(point->size),
                     point->samples, point->rejected, point->mean_s, point->median_s,
                     point->deviation_s);
    for (int i = 0; i < DUET__CONDITIONS; i++) {
        const struct duet__summary *times = &q->conditions[i];

        if (times->count)
            duet__json_print(json, "%s: {samples: %zu, mean_s: %g, median_s: %g, deviation_s: %g}",
                             names[i], times->count, times->mean, times->median, times->deviation);
        else
            duet__json_put_string(json, names[i], NULL);
    }
    duet__json_print(json, "sum_error: %g, execution_error: %g}", q->error.sum, q->error.execution);
}

static void put_costs(const struct duet__calibrating *c, struct duet__json_writer *json)
{
    duet__json_begin(json, "costs", '[');
    for (int i = 0; c->has_costs && i < DUET__COSTS; i++) {
        const struct duet__measured *cost = &c->costs[i];
        const struct duet__summary *times = &cost->times;
        double unit = times->count ? 1 : NAN;

        duet__json_print(json,
                         "{name: %s, description: %s, samples: %zu, median_s: %g, mean_s: %g, "
                         "deviation_s: %g, quartile1_s: %g, quartile3_s: %g, why: %s}",
                         cost->name, cost->description, times->count, unit * times->median,
                         unit * times->mean, unit * times->deviation, unit * times->quartile1,
                         unit * times->quartile3, cost->why);
    }
    duet__json_end(json, ']');
}

static void put_copies(const struct duet__calibrating *c, const struct duet__platform *platform,
                       struct duet__json_writer *json)
{
    const struct duet_node *nodes = c->info.machine.nodes;
    const struct duet__copies *copies = &c->copies;

    duet__json_begin(json, "copies", '[');
    for (size_t i = 0; i < copies->pair_count; i++) {
        const struct duet__copy_pair *pair = &copies->pairs[i];

        duet__json_print(json,
                         "{source: %s, destination: %s, direct: %d, samples: %" PRIu64
                         ", latency_s: %g, bandwidth_Bps: %g, error: %g}",
                         nodes[pair->source].name, nodes[pair->destination].name, pair->direct,
                         pair->samples, pair->latency_s, pair->bandwidth_Bps, pair->error);
    }
    duet__json_print(json, "], together: [");
    for (size_t i = 0; i < copies->together_count; i++)
        duet__json_print(json, "{first: %zu, second: %zu, first_Bps: %g, second_Bps: %g}",
                         copies->together[i].first, copies->together[i].second,
                         copies->together[i].first_Bps, copies->together[i].second_Bps);
    duet__json_print(json, "], links: [");
    for (unsigned s = 0; s < platform->switch_count; s++) {
        duet__json_print(json, "{gpus: [");
        for (unsigned g = 0; g < platform->gpu_count; g++)
            if (platform->gpus[g].position == s)
                duet__json_put_string(json, NULL, nodes[g + 1].name);
        duet__json_print(json, "], to_device_Bps: %g, to_host_Bps: %g}",
                         platform->switches[s].to_device_Bps, platform->switches[s].to_host_Bps);
    }
    duet__json_end(json, ']');
}

void duet__calibrate_put_json(const struct duet__calibrate_options *options,
                              const struct duet__calibrating *c,
                              const struct duet__platform *platform, FILE *stream)
{
    struct duet__json_writer json = {.stream = stream, .indented = true};
    struct duet__confidence confidence;

    duet__json_print(&json, "{schema: 2, command: %s, origin: %s, out: %s", options->job->line,
                     platform->origin, options->out);
    put_machine(c, platform, &json);
    put_runs(c, &json);
    duet__json_begin(&json, "kernels", '[');
    for (size_t i = 0; i < c->model.quality_count; i++)
        put_kernel(&c->model.quality[i], &json);
    duet__json_end(&json, ']');
    put_costs(c, &json);
    put_copies(c, platform, &json);
    duet__confidence(c, &confidence);
    duet__json_print(&json,
                     "quality: {points: %zu, median_error: %g, p90_error: %g, worst_error: %g, "
                     "worst_kernel: %s, samples: %" PRIu64 ", rejected: %" PRIu64
                     ", rejected_time: %g, first_writes: %g}}",
                     confidence.points, confidence.half, confidence.most, confidence.worst_error,
                     confidence.worst ? confidence.worst->kernel : NULL, confidence.samples,
                     confidence.rejected, confidence.rejected_s / confidence.all_s,
                     confidence.fresh_s / confidence.rejected_s);
}
