/* SPDX-License-Identifier: Apache-2.0 */
/* The report of `duet calibrate` for programs: docs/formats.md describes it. */
#include "cli/calibrate.h"

#include <math.h>

#include "platforms/json.h"

/* A number that is null where it is 0, which then means that it is not known. */
static void known(struct duet__json_writer *json, const char *name, double value)
{
    duet__json_put_number(json, name, value > 0 ? value : NAN);
}

static void put_machine(const struct duet__calibrate_result *result,
                        const struct duet_platform *platform, struct duet__json_writer *json)
{
    duet__json_begin(json, "machine", '{');
    duet__json_put_string(json, "name", platform->name);
    duet__json_put_string(json, "description", platform->description);
    duet__json_put_integer(json, "cpus", result->cpus);
    duet__json_put_integer(json, "gpus", result->gpus);
    duet__json_put_integer(json, "sockets", platform->socket_count);
    known(json, "cores", platform->cores);
    known(json, "memory_bytes", (double)platform->host_memory_bytes);
    known(json, "private_cache_bytes", (double)platform->sharing.private_bytes);
    known(json, "shared_cache_bytes", (double)platform->sharing.shared_bytes);
    known(json, "system_private_cache_bytes", (double)result->known.private_bytes);
    known(json, "system_shared_cache_bytes", (double)result->known.shared_bytes);
    known(json, "core_bandwidth_Bps", result->bandwidth.one_Bps);
    known(json, "bandwidth_Bps", result->bandwidth.all_Bps);
    known(json, "probe_s", platform->probe_s);
    duet__json_end(json, '}');
}

static void put_effort(const struct duet__calibrate_options *options,
                       const struct duet__calibrate_result *result, struct duet__json_writer *json)
{
    duet__json_put_number(json, "budget_s", options->request.budget_s);
    duet__json_put_number(json, "wall_s", result->wall_s);
    duet__json_put_number(json, "steal_share", result->load.stolen / result->load.cores);
    duet__json_put_number(json, "others_cores", result->load.others);
    duet__json_put_integer(json, "left_out_runs", result->left_out);
    duet__json_begin(json, "disturbed_rounds", '[');
    for (guint i = 0; i < result->disturbed_rounds->len; i++)
        duet__json_put_integer(json, NULL, g_array_index(result->disturbed_rounds, uint64_t, i));
    duet__json_end(json, ']');
    duet__json_put_integer(json, "rounds", result->rounds);
    duet__json_begin(json, "runs", '[');
    for (guint i = 0; i < result->setups->len; i++) {
        const struct duet__setup *setup = &g_array_index(result->setups, struct duet__setup, i);
        const char precision[] = {setup->problem.precision, 0};

        if (!setup->runs)
            continue; /* there was no time for it */
        duet__json_begin(json, NULL, '{');
        duet__json_put_string(json, "workload", setup->workload->name);
        duet__json_put_integer(json, "n", setup->problem.n);
        duet__json_put_integer(json, "tile", setup->problem.tile);
        duet__json_put_string(json, "precision", precision);
        duet__json_put_string(json, "size", duet__setup_size_name(setup));
        duet__json_put_string(json, "workers", duet__setup_workers(setup));
        duet__json_put_integer(json, "runs", setup->runs);
        duet__json_put_integer(json, "tasks", setup->tasks);
        duet__json_put_number(json, "mean_s", setup->run_s);
        duet__json_end(json, '}');
    }
    duet__json_end(json, ']');
}

static void put_conditions(const struct duet__quality *quality, struct duet__json_writer *json)
{
    static const char *const names[DUET__CONDITIONS] = {"warm_alone", "cold_alone", "warm_busy",
                                                        "cold_busy"};

    for (int i = 0; i < DUET__CONDITIONS; i++) {
        const struct duet__condition *condition = &quality->conditions[i];

        if (!condition->samples) {
            duet__json_put_string(json, names[i], NULL);
            continue;
        }
        duet__json_begin(json, names[i], '{');
        duet__json_put_integer(json, "samples", condition->samples);
        duet__json_put_number(json, "mean_s", condition->mean_s);
        duet__json_put_number(json, "median_s", condition->median_s);
        duet__json_put_number(json, "deviation_s", condition->deviation_s);
        duet__json_end(json, '}');
    }
}

static void put_kernels(const struct duet__model *model, struct duet__json_writer *json)
{
    duet__json_begin(json, "kernels", '[');
    for (size_t i = 0; i < model->quality_count; i++) {
        const struct duet__quality *quality = &model->quality[i];
        const struct duet__model_error *errors = quality->errors[DUET__LEFT_OUT_RUNS];

        duet__json_begin(json, NULL, '{');
        duet__json_put_string(json, "kernel", quality->kernel);
        duet__json_put_string(json, "architecture", quality->arch);
        duet__json_put_string(json, "workload", quality->context);
        duet__json_put_number(json, "work", quality->work);
        known(json, "tile", quality->size);
        duet__json_put_integer(json, "samples", quality->samples);
        duet__json_put_integer(json, "rejected", quality->rejected);
        duet__json_put_number(json, "mean_s", quality->mean_s);
        duet__json_put_number(json, "median_s", quality->median_s);
        duet__json_put_number(json, "deviation_s", quality->deviation_s);
        put_conditions(quality, json);
        duet__json_put_number(json, "sum_error", errors[DUET__EFFECTS_MODEL].sum);
        duet__json_put_number(json, "execution_error", errors[DUET__EFFECTS_MODEL].execution);
        duet__json_put_number(json, "mean_execution_error", errors[DUET__MEAN_MODEL].execution);
        duet__json_end(json, '}');
    }
    duet__json_end(json, ']');
}

/* What each model errs on problems that were left out. */
static void put_models(const struct duet__model *model, struct duet__json_writer *json)
{
    duet__json_begin(json, "models", '[');
    for (int m = 0; m < DUET__KERNEL_MODELS; m++) {
        duet__json_begin(json, NULL, '{');
        duet__json_put_string(json, "name", duet__kernel_models[m]->name);
        duet__json_put_string(json, "description", duet__kernel_models[m]->description);
        for (int left_out = 0; left_out < DUET__LEFT_OUT; left_out++) {
            struct duet__model_error error = duet__model_error_all(model, left_out, m);

            duet__json_begin(json, left_out == DUET__LEFT_OUT_RUNS ? "runs" : "problems", '{');
            duet__json_put_number(json, "sum_error", error.sum);
            duet__json_put_number(json, "execution_error", error.execution);
            duet__json_put_number(json, "part_error", error.part);
            duet__json_end(json, '}');
        }
        duet__json_end(json, '}');
    }
    duet__json_end(json, ']');
}

static void put_costs(const struct duet__calibrate_result *result, struct duet__json_writer *json)
{
    duet__json_begin(json, "costs", '[');
    for (int i = 0; result->has_costs && i < DUET__COSTS; i++) {
        const struct duet__measured *cost = &result->costs[i];
        bool is_known = cost->samples != 0;

        duet__json_begin(json, NULL, '{');
        duet__json_put_string(json, "name", cost->name);
        duet__json_put_string(json, "description", cost->description);
        duet__json_put_integer(json, "samples", cost->samples);
        duet__json_put_number(json, "median_s", is_known ? cost->median_s : NAN);
        duet__json_put_number(json, "mean_s", is_known ? cost->mean_s : NAN);
        duet__json_put_number(json, "deviation_s", is_known ? cost->deviation_s : NAN);
        duet__json_put_number(json, "quartile1_s", is_known ? cost->low_s : NAN);
        duet__json_put_number(json, "quartile3_s", is_known ? cost->high_s : NAN);
        duet__json_put_string(json, "why", is_known ? NULL : cost->why);
        duet__json_end(json, '}');
    }
    duet__json_end(json, ']');
}

static void put_copies(const struct duet__calibrate_result *result, struct duet__json_writer *json)
{
    const struct duet_node *nodes = result->info.machine.nodes;
    const struct duet__copies *copies = &result->copies;

    duet__json_begin(json, "copies", '[');
    for (size_t i = 0; result->has_copies && i < copies->pair_count; i++) {
        const struct duet__pair *pair = &copies->pairs[i];

        duet__json_begin(json, NULL, '{');
        duet__json_put_string(json, "source", nodes[pair->source].name);
        duet__json_put_string(json, "destination", nodes[pair->destination].name);
        duet__json_put_boolean(json, "direct", pair->direct);
        duet__json_put_integer(json, "samples", pair->samples);
        duet__json_put_number(json, "latency_s", pair->latency_s);
        duet__json_put_number(json, "bandwidth_Bps", pair->bandwidth_Bps);
        duet__json_put_number(json, "error", pair->error);
        duet__json_end(json, '}');
    }
    duet__json_end(json, ']');
    duet__json_begin(json, "together", '[');
    for (size_t i = 0; result->has_copies && i < copies->together_count; i++) {
        const struct duet__together *both = &copies->together[i];

        duet__json_begin(json, NULL, '{');
        duet__json_put_integer(json, "first", both->first);
        duet__json_put_integer(json, "second", both->second);
        duet__json_put_number(json, "first_Bps", both->first_Bps);
        duet__json_put_number(json, "second_Bps", both->second_Bps);
        duet__json_end(json, '}');
    }
    duet__json_end(json, ']');
}

static void put_links(const struct duet__calibrate_result *result,
                      const struct duet_platform *platform, struct duet__json_writer *json)
{
    duet__json_begin(json, "links", '[');
    for (unsigned s = 0; s < platform->switch_count; s++) {
        duet__json_begin(json, NULL, '{');
        duet__json_begin(json, "gpus", '[');
        for (unsigned g = 0; g < platform->gpu_count; g++)
            if (platform->gpus[g].position == s)
                duet__json_put_string(json, NULL, result->info.machine.nodes[g + 1].name);
        duet__json_end(json, ']');
        duet__json_put_number(json, "to_device_Bps", platform->switches[s].to_device_Bps);
        duet__json_put_number(json, "to_host_Bps", platform->switches[s].to_host_Bps);
        duet__json_end(json, '}');
    }
    duet__json_end(json, ']');
}

static void put_quality(const struct duet__calibrate_result *result, struct duet__json_writer *json)
{
    struct duet__confidence confidence;

    duet__confidence(result, &confidence);
    duet__json_begin(json, "quality", '{');
    duet__json_put_integer(json, "points", confidence.points);
    duet__json_put_number(json, "median_error", confidence.half);
    duet__json_put_number(json, "p90_error", confidence.most);
    duet__json_put_number(json, "worst_error",
                          confidence.worst
                              ? confidence.worst->errors[DUET__LEFT_OUT_RUNS][DUET__EFFECTS_MODEL]
                                    .sum
                              : NAN);
    duet__json_put_string(json, "worst_kernel", confidence.worst ? confidence.worst->kernel : NULL);
    duet__json_put_integer(json, "samples", confidence.samples);
    duet__json_put_integer(json, "rejected", confidence.rejected);
    duet__json_end(json, '}');
}

void duet__calibrate_put_json(const struct duet__calibrate_options *options,
                              const struct duet__calibrate_result *result,
                              const struct duet_platform *platform, FILE *stream)
{
    struct duet__json_writer json = {.stream = stream, .indented = true};

    duet__json_begin(&json, NULL, '{');
    duet__json_put_integer(&json, "schema", 1);
    duet__json_put_string(&json, "command", options->job.command);
    duet__json_put_string(&json, "origin", platform->origin);
    duet__json_put_string(&json, "out", options->out);
    put_machine(result, platform, &json);
    put_effort(options, result, &json);
    put_kernels(&result->model, &json);
    if (options->request.compare_models)
        put_models(&result->model, &json);
    put_costs(result, &json);
    put_copies(result, &json);
    put_links(result, platform, &json);
    put_quality(result, &json);
    duet__json_end(&json, '}');
}
