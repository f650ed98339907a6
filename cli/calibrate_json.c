/* SPDX-License-Identifier: Apache-2.0 */
/* The report of `duet calibrate` for programs: docs/formats.md describes it. */
#include "cli/calibrate.h"

#include <math.h>

#include "cli/emit.h"

/* A number that is null where it is 0, which then means that it is not known. */
static void known(struct duet__emit *json, const char *name, double value)
{
    duet__emit_number(json, name, value > 0 ? value : NAN);
}

static void put_machine(const struct duet__found *found, const struct duet_platform *platform,
                        struct duet__emit *json)
{
    duet__emit_open(json, "machine", '{');
    duet__emit_text(json, "name", platform->name);
    duet__emit_text(json, "description", platform->description);
    duet__emit_count(json, "cpus", found->cpus);
    duet__emit_count(json, "gpus", found->gpus);
    duet__emit_count(json, "sockets", platform->socket_count);
    known(json, "cores", platform->cores);
    known(json, "memory_bytes", (double)platform->host_memory_bytes);
    known(json, "private_cache_bytes", (double)platform->sharing.private_bytes);
    known(json, "shared_cache_bytes", (double)platform->sharing.shared_bytes);
    known(json, "system_private_cache_bytes", (double)found->known.private_bytes);
    known(json, "system_shared_cache_bytes", (double)found->known.shared_bytes);
    known(json, "core_bandwidth_Bps", found->bandwidth.one_Bps);
    known(json, "bandwidth_Bps", found->bandwidth.all_Bps);
    known(json, "probe_s", platform->probe_s);
    duet__emit_close(json, '}');
}

static void put_effort(const struct duet__wish *wish, const struct duet__found *found,
                       struct duet__emit *json)
{
    duet__emit_number(json, "budget_s", wish->budget_s);
    duet__emit_number(json, "wall_s", found->wall_s);
    duet__emit_number(json, "steal_share", found->load.stolen / found->load.cores);
    duet__emit_number(json, "others_cores", found->load.others);
    duet__emit_count(json, "left_out_runs", found->left_out);
    duet__emit_open(json, "disturbed_rounds", '[');
    for (guint i = 0; i < found->disturbed_rounds->len; i++)
        duet__emit_count(json, NULL, g_array_index(found->disturbed_rounds, uint64_t, i));
    duet__emit_close(json, ']');
    duet__emit_count(json, "rounds", found->rounds);
    duet__emit_open(json, "runs", '[');
    for (guint i = 0; i < found->items->len; i++) {
        const struct duet__item *item = &g_array_index(found->items, struct duet__item, i);
        const char precision[] = {item->problem.precision, 0};

        if (!item->runs)
            continue; /* there was no time for it */
        duet__emit_open(json, NULL, '{');
        duet__emit_text(json, "workload", item->workload->name);
        duet__emit_count(json, "n", item->problem.n);
        duet__emit_count(json, "tile", item->problem.tile);
        duet__emit_text(json, "precision", precision);
        duet__emit_text(json, "size", duet__item_size_name(item));
        duet__emit_text(json, "workers", duet__item_workers(item));
        duet__emit_count(json, "runs", item->runs);
        duet__emit_count(json, "tasks", item->tasks);
        duet__emit_number(json, "mean_s", item->run_s);
        duet__emit_close(json, '}');
    }
    duet__emit_close(json, ']');
}

static void put_conditions(const struct duet__quality *quality, struct duet__emit *json)
{
    static const char *const names[DUET__CONDITIONS] = {"warm_alone", "cold_alone", "warm_busy",
                                                        "cold_busy"};

    for (int i = 0; i < DUET__CONDITIONS; i++) {
        const struct duet__condition *condition = &quality->conditions[i];

        if (!condition->samples) {
            duet__emit_null(json, names[i]);
            continue;
        }
        duet__emit_open(json, names[i], '{');
        duet__emit_count(json, "samples", condition->samples);
        duet__emit_number(json, "mean_s", condition->mean_s);
        duet__emit_number(json, "median_s", condition->median_s);
        duet__emit_number(json, "deviation_s", condition->deviation_s);
        duet__emit_close(json, '}');
    }
}

static void put_kernels(const struct duet__model *model, struct duet__emit *json)
{
    duet__emit_open(json, "kernels", '[');
    for (size_t i = 0; i < model->quality_count; i++) {
        const struct duet__quality *quality = &model->quality[i];
        const struct duet__model_error *errors = quality->errors[DUET__LEFT_OUT_RUNS];

        duet__emit_open(json, NULL, '{');
        duet__emit_text(json, "kernel", quality->kernel);
        duet__emit_text(json, "architecture", quality->arch);
        duet__emit_text(json, "workload", quality->context);
        duet__emit_number(json, "work", quality->work);
        known(json, "tile", quality->size);
        duet__emit_count(json, "samples", quality->samples);
        duet__emit_count(json, "rejected", quality->rejected);
        duet__emit_number(json, "mean_s", quality->mean_s);
        duet__emit_number(json, "median_s", quality->median_s);
        duet__emit_number(json, "deviation_s", quality->deviation_s);
        put_conditions(quality, json);
        duet__emit_number(json, "sum_error", errors[DUET__EFFECTS_MODEL].sum);
        duet__emit_number(json, "execution_error", errors[DUET__EFFECTS_MODEL].execution);
        duet__emit_number(json, "mean_execution_error", errors[DUET__MEAN_MODEL].execution);
        duet__emit_close(json, '}');
    }
    duet__emit_close(json, ']');
}

/* What each model errs on problems that were left out. */
static void put_models(const struct duet__model *model, struct duet__emit *json)
{
    duet__emit_open(json, "models", '[');
    for (int m = 0; m < DUET__KERNEL_MODELS; m++) {
        duet__emit_open(json, NULL, '{');
        duet__emit_text(json, "name", duet__kernel_models[m]->name);
        duet__emit_text(json, "description", duet__kernel_models[m]->description);
        for (int left_out = 0; left_out < DUET__LEFT_OUT; left_out++) {
            struct duet__model_error error = duet__model_error_all(model, left_out, m);

            duet__emit_open(json, left_out == DUET__LEFT_OUT_RUNS ? "runs" : "problems", '{');
            duet__emit_number(json, "sum_error", error.sum);
            duet__emit_number(json, "execution_error", error.execution);
            duet__emit_number(json, "part_error", error.part);
            duet__emit_close(json, '}');
        }
        duet__emit_close(json, '}');
    }
    duet__emit_close(json, ']');
}

static void put_costs(const struct duet__found *found, struct duet__emit *json)
{
    duet__emit_open(json, "costs", '[');
    for (int i = 0; found->has_costs && i < DUET__COSTS; i++) {
        const struct duet__measured *cost = &found->costs[i];
        bool is_known = cost->samples != 0;

        duet__emit_open(json, NULL, '{');
        duet__emit_text(json, "name", cost->name);
        duet__emit_text(json, "description", cost->description);
        duet__emit_count(json, "samples", cost->samples);
        duet__emit_number(json, "median_s", is_known ? cost->median_s : NAN);
        duet__emit_number(json, "mean_s", is_known ? cost->mean_s : NAN);
        duet__emit_number(json, "deviation_s", is_known ? cost->deviation_s : NAN);
        duet__emit_number(json, "quartile1_s", is_known ? cost->low_s : NAN);
        duet__emit_number(json, "quartile3_s", is_known ? cost->high_s : NAN);
        duet__emit_text(json, "why", is_known ? NULL : cost->why);
        duet__emit_close(json, '}');
    }
    duet__emit_close(json, ']');
}

static void put_copies(const struct duet__found *found, struct duet__emit *json)
{
    const struct duet_node *nodes = found->info.machine.nodes;
    const struct duet__copies *copies = &found->copies;

    duet__emit_open(json, "copies", '[');
    for (size_t i = 0; found->has_copies && i < copies->pair_count; i++) {
        const struct duet__pair *pair = &copies->pairs[i];

        duet__emit_open(json, NULL, '{');
        duet__emit_text(json, "source", nodes[pair->source].name);
        duet__emit_text(json, "destination", nodes[pair->destination].name);
        duet__emit_flag(json, "direct", pair->direct);
        duet__emit_count(json, "samples", pair->samples);
        duet__emit_number(json, "latency_s", pair->latency_s);
        duet__emit_number(json, "bandwidth_Bps", pair->bandwidth_Bps);
        duet__emit_number(json, "error", pair->error);
        duet__emit_close(json, '}');
    }
    duet__emit_close(json, ']');
    duet__emit_open(json, "together", '[');
    for (size_t i = 0; found->has_copies && i < copies->together_count; i++) {
        const struct duet__together *both = &copies->together[i];

        duet__emit_open(json, NULL, '{');
        duet__emit_count(json, "first", both->first);
        duet__emit_count(json, "second", both->second);
        duet__emit_number(json, "first_Bps", both->first_Bps);
        duet__emit_number(json, "second_Bps", both->second_Bps);
        duet__emit_close(json, '}');
    }
    duet__emit_close(json, ']');
}

static void put_links(const struct duet__found *found, const struct duet_platform *platform,
                      struct duet__emit *json)
{
    duet__emit_open(json, "links", '[');
    for (unsigned s = 0; s < platform->switch_count; s++) {
        duet__emit_open(json, NULL, '{');
        duet__emit_open(json, "gpus", '[');
        for (unsigned g = 0; g < platform->gpu_count; g++)
            if (platform->gpus[g].position == s)
                duet__emit_text(json, NULL, found->info.machine.nodes[g + 1].name);
        duet__emit_close(json, ']');
        duet__emit_number(json, "to_device_Bps", platform->switches[s].to_device_Bps);
        duet__emit_number(json, "to_host_Bps", platform->switches[s].to_host_Bps);
        duet__emit_close(json, '}');
    }
    duet__emit_close(json, ']');
}

static void put_quality(const struct duet__found *found, struct duet__emit *json)
{
    struct duet__confidence confidence;

    duet__confidence(found, &confidence);
    duet__emit_open(json, "quality", '{');
    duet__emit_count(json, "points", confidence.points);
    duet__emit_number(json, "median_error", confidence.half);
    duet__emit_number(json, "p90_error", confidence.most);
    duet__emit_number(json, "worst_error",
                      confidence.worst
                          ? confidence.worst->errors[DUET__LEFT_OUT_RUNS][DUET__EFFECTS_MODEL].sum
                          : NAN);
    duet__emit_text(json, "worst_kernel", confidence.worst ? confidence.worst->kernel : NULL);
    duet__emit_count(json, "samples", confidence.samples);
    duet__emit_count(json, "rejected", confidence.rejected);
    duet__emit_close(json, '}');
}

void duet__calibrate_put_json(const struct duet__wish *wish, const struct duet__found *found,
                              const struct duet_platform *platform, FILE *stream)
{
    struct duet__emit json = {.stream = stream};

    duet__emit_open(&json, NULL, '{');
    duet__emit_count(&json, "schema", 1);
    duet__emit_text(&json, "command", wish->job.command);
    duet__emit_text(&json, "origin", platform->origin);
    duet__emit_text(&json, "out", wish->out);
    put_machine(found, platform, &json);
    put_effort(wish, found, &json);
    put_kernels(&found->model, &json);
    if (wish->compare_models)
        put_models(&found->model, &json);
    put_costs(found, &json);
    put_copies(found, &json);
    put_links(found, platform, &json);
    put_quality(found, &json);
    duet__emit_close(&json, '}');
}
