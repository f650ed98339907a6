/* SPDX-License-Identifier: Apache-2.0 */
/* The report of `duet calibrate`, for people and for programs. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fields.h"
#include "base/table.h"
#include "cli/calibrate.h"

enum { AT = 16 /* column of texts */ };

static const char *plural(uint64_t number)
{
    return number == 1 ? "" : "s";
}

/* Returns a figure in this unit; NaN for 0, which means not known. */
static double in(double unit, double value)
{
    return value != 0 ? value / unit : NAN;
}

/* ------------------------------------------------------------------------------------------- */
/* The machine                                                                                  */

static void put_cache(const struct duet__calibrating *c, const struct duet__platform *platform,
                      FILE *stream)
{
    const struct duet_sharing *sharing = &platform->sharing, *known = &c->known;
    g_autofree char *shared = duet__size_text(sharing->shared_bytes);
    g_autofree char *all = duet__size_text(known->shared_bytes);
    if (!sharing->shared_bytes)
        duet__put_field(stream, "cache", AT, "not known");
    else
        duet__put_field(stream, "cache", AT, "of the shared %s a program gets %s",
                        known->shared_bytes ? all : "one", shared);
}

static void put_measured(const struct duet__calibrating *c, FILE *stream)
{
    uint64_t runs = 0, tasks = 0;
    unsigned kinds = 0;
    char stolen[96] = "";
    for (guint i = 0; i < c->setups->len; i++) {
        kinds += duet__setup_at(c, i)->runs > 0;
        runs += duet__setup_at(c, i)->runs;
        tasks += duet__setup_at(c, i)->tasks;
    }
    if (isfinite(c->load.stolen))
        (void)g_snprintf(stolen, sizeof stolen, "; the hypervisor took %.1f %% of the time",
                         100 * c->load.stolen / c->load.cores);
    duet__put_field(stream, "measured", AT,
                    "in %.1f s: %zu round%s over %u kinds of runs, together %" PRIu64
                    " runs of %" PRIu64 " tasks%s",
                    c->wall_s, c->rounds.round, plural(c->rounds.round), kinds, runs, tasks,
                    stolen);
}

/* Prints when other processes computed as well, and what became of the runs of that time. */
static void put_others(const struct duet__calibrating *c, FILE *stream)
{
    const GArray *rounds = c->rounds.disturbed;
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < rounds->len; i++)
        g_string_append_printf(text, "%s%zu", i ? ", " : "", g_array_index(rounds, size_t, i));
    if (rounds->len)
        duet__put_field(stream, "others", AT,
                        "other processes used %.1f of %u cores; round%s %s disturbed; %" PRIu64
                        " run%s left out%s",
                        c->load.others, c->load.cores, plural(rounds->len), text->str, c->left_out,
                        plural(c->left_out),
                        c->left_out ? "" : ": there are no others of the same");
}

static void put_machine(const struct duet__calibrating *c, const struct duet__platform *platform,
                        FILE *stream)
{
    fprintf(stream, "%s: %s\n", platform->name, platform->description);
    put_measured(c, stream);
    put_others(c, stream);
    if (c->probe_s > 0)
        duet__put_field(stream, "speed", AT, "%.3g ms for the reference kernel", c->probe_s * 1e3);
    put_cache(c, platform, stream);
    if (c->bandwidth.samples)
        duet__put_field(stream, "memory", AT,
                        "%.3g GB/s for one core, %.3g GB/s for all of a socket",
                        c->bandwidth.one_Bps / 1e9, c->bandwidth.all_Bps / 1e9);
}

/* ------------------------------------------------------------------------------------------- */
/* Kernels                                                                                      */

static void add_kernel(struct duet__table *table, const struct duet__quality *quality)
{
    static const int order[DUET__CONDITIONS] = {0, DUET__CONDITION_BUSY, DUET__CONDITION_COLD,
                                                DUET__CONDITION_COLD | DUET__CONDITION_BUSY};
    const struct duet__model_error *error = &quality->error;
    const struct duet__point *point = &quality->point;
    duet__table_say(table, quality->kernel);
    duet__table_print(table, point->size > 0 ? "%.0f" : "%.3g",
                      point->size > 0 ? point->size : point->work);
    duet__table_print(table, "%" PRIu64 "\t%" PRIu64 "\t%.3g\t%.3g\t%.1f", point->samples,
                      point->rejected, in(1e-3, point->mean_s), in(1e-3, point->median_s),
                      100 * (point->deviation_s / point->mean_s));
    for (int i = 0; i < DUET__CONDITIONS; i++)
        duet__table_print(table, "%.3g", in(1e-3, quality->conditions[order[i]].mean));
    duet__table_print(table, "%+.1f\t%.1f", 100 * error->sum, 100 * error->execution);
}

static void put_kernels(const struct duet__model *model, FILE *stream)
{
    fputs("\nkernels: times in ms; warm and cold: data in caches or beyond, on one worker alone "
          "and with all\nbusy; out: outliers; what the model errs, on executions that it was not "
          "made from, in sum and of each\n(median)\n",
          stream);
    for (size_t i = 0; i < model->quality_count;) {
        const struct duet__quality *first = &model->quality[i];
        struct duet__table table;
        fprintf(stream, "\n%s on %s\n", first->context, first->arch);
        duet__table_init(&table, "lrrrrrrrrrrrr");
        duet__table_print(&table,
                          "kernel\t%s\tsamples\tout\tmean\tmedian\tdev %%\twarm\tbusy\tcold\tbusy\t"
                          "sum %%\teach %%",
                          first->point.size > 0 ? "tile" : "work");
        for (; i < model->quality_count; i++) {
            if (strcmp(model->quality[i].context, first->context) != 0 ||
                strcmp(model->quality[i].arch, first->arch) != 0)
                break;
            add_kernel(&table, &model->quality[i]);
        }
        duet__table_put(&table, stream, 2);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Costs and copies                                                                             */

static void put_costs(const struct duet__calibrating *c, FILE *stream)
{
    if (!c->has_costs)
        return;
    fputs("\nthe runtime's own operations: median, quartiles\n\n", stream);
    for (int i = 0; i < DUET__COSTS; i++) {
        const struct duet__measured *cost = &c->costs[i];
        const struct duet__summary *times = &cost->times;
        if (times->count)
            duet__put_field(stream, cost->name, AT, "%.3g us (%.3g to %.3g): %s",
                            times->median * 1e6, times->quartile1 * 1e6, times->quartile3 * 1e6,
                            cost->description);
        else
            duet__put_field(stream, cost->name, AT, "not measured: %s", cost->why);
    }
}

static void put_copies(const struct duet__calibrating *c, const struct duet__platform *platform,
                       FILE *stream)
{
    const struct duet_node *nodes = c->info.machine.nodes;
    struct duet__table table;
    if (!c->copies.pair_count)
        return;
    fputs("\ncopies, each alone: latency and bandwidth\n\n", stream);
    duet__table_init(&table, "lrrr");
    duet__table_print(&table, "copies\tus\tGB/s\terror %%");
    for (size_t i = 0; i < c->copies.pair_count; i++) {
        const struct duet__copy_pair *pair = &c->copies.pairs[i];
        duet__table_print(&table, "%s to %s%s\t%.3g\t%.3g\t%.1f", nodes[pair->source].name,
                          nodes[pair->destination].name, pair->direct ? "" : ", through the host",
                          in(1e-6, pair->latency_s), in(1e9, pair->bandwidth_Bps),
                          100 * pair->error);
    }
    duet__table_put(&table, stream, 2);
    for (unsigned s = 0; s < platform->switch_count; s++) {
        g_autoptr(GString) names = g_string_new(NULL);
        for (unsigned g = 0; g < platform->gpu_count; g++)
            if (platform->gpus[g].position == s)
                g_string_append_printf(names, "%s%s", names->len ? ", " : "", nodes[g + 1].name);
        fprintf(stream, "  link %u: %s; %.3g GB/s in, %.3g GB/s out%s\n", s, names->str,
                platform->switches[s].to_device_Bps / 1e9, platform->switches[s].to_host_Bps / 1e9,
                strchr(names->str, ',') ? ", shared" : "");
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Quality                                                                                      */

/* Prints the setups that there was no time for. Returns false if there are none. */
static bool put_left_out(const struct duet__calibrating *c, FILE *stream)
{
    g_autoptr(GString) text = g_string_new(NULL);
    const struct duet__setup *last = NULL;
    for (guint i = 0; i < c->setups->len; i++) {
        const struct duet__setup *setup = duet__setup_at(c, i);
        if (setup->runs || setup->failed ||
            (last && last->group == setup->group && last->size == setup->size))
            continue;
        last = setup;
        g_string_append_printf(text, "%s%s tile %" PRIu64 " %s", text->len ? ", " : "",
                               setup->workload->name, setup->problem.tile,
                               duet__setup_size_name(setup));
    }
    if (last)
        fprintf(stream, "Left out, as they would take more than %gs (--budget): %s.\n",
                c->request->budget_s, text->str);
    return last != NULL;
}

/* Prints the budget that gives enough rounds: from the time of those made, and a tenth more. */
static void put_enough(const struct duet__calibrating *c, FILE *stream)
{
    double rest_s = c->wall_s - c->runs_s, round_s = c->runs_s / (double)MAX(c->rounds.round, 1);
    if (c->request->traces->len)
        fputs("more traces of the same should do (--from).\n", stream);
    else if (c->request->rounds)
        fprintf(stream, "--reps %d should do.\n", DUET__LEAST_ROUNDS);
    else
        fprintf(stream, "--budget %.0fs should do.\n",
                10 * ceil((rest_s + DUET__LEAST_ROUNDS * round_s) / 9));
}

/* Prints what would improve the calibration; nothing if it is good. */
static void put_advice(const struct duet__calibrating *c, const struct duet__confidence *confidence,
                       FILE *stream)
{
    enum { FEW = 10 };
    static const double poor = 0.05, disturbed = 0.02;
    g_autofree char *more = c->request->traces->len ? g_strdup("traces (--from)")
                                                    : g_strdup_printf("time (--budget, now %.0fs)",
                                                                      c->request->budget_s);
    /* with more time there would be more to do */
    if (!put_left_out(c, stream) && confidence->fewest_runs < DUET__LEAST_ROUNDS) {
        fprintf(stream,
                "Of some problems there %s only %" PRIu64 " run%s, and %d are the least that is "
                "recommended:\n",
                confidence->fewest_runs == 1 ? "is" : "are", confidence->fewest_runs,
                plural(confidence->fewest_runs), DUET__LEAST_ROUNDS);
        put_enough(c, stream);
    } else if (confidence->half > poor || confidence->fewest_samples < FEW) {
        fprintf(stream, "More %s would give more samples%s.\n", more,
                confidence->half > poor ? ", and a machine with nothing else to do better ones"
                                        : "");
    }
    if (c->load.stolen > disturbed * c->load.cores)
        fputs("The hypervisor has given much of the time to others: what was measured then is "
              "slower than the\nmachine is. Calibrate again when it is quiet.\n",
              stream);
}

static void put_confidence(const struct duet__calibrating *c, FILE *stream)
{
    static const double much = 0.05;
    g_autofree char *advice = NULL, *text = NULL;
    const struct duet__quality *worst;
    struct duet__confidence confidence;
    bool sized;
    duet__confidence(c, &confidence);
    worst = confidence.worst;
    if (confidence.rejected_s > much * confidence.all_s &&
        confidence.fresh_s > confidence.rejected_s / 2)
        advice = g_strdup_printf(
            " Most of the outliers' time (%.0f %%) is of executions that were the first to write "
            "some data. Memory that was never written gets its pages then: write all of it before "
            "the first task, or runs take longer than predicted.",
            100 * confidence.fresh_s / confidence.rejected_s);
    fputc('\n', stream);
    if (worst) {
        sized = worst->point.size > 0;
        text = g_strdup_printf(
            "Without outliers, half of the %zu kernel times are predicted within %.1f %%, nine of "
            "ten within %.1f %%, and the worst, %s of %s, %s %.0f in %s, is %+.1f %% off; "
            "outliers are %.1f %% of the executions and %.1f %% of their time, which simulations "
            "contain with --noise or --interval.%s",
            confidence.points, 100 * confidence.half, 100 * confidence.most, worst->kernel,
            worst->arch, sized ? "tile" : "work", sized ? worst->point.size : worst->point.work,
            worst->context, 100 * confidence.worst_error,
            100 * (double)confidence.rejected /
                (double)MAX(confidence.samples + confidence.rejected, 1),
            100 * confidence.rejected_s / confidence.all_s, advice ? advice : "");
        duet__put_wrapped(stream, text, 0);
    }
    put_advice(c, &confidence, stream);
}

void duet__calibrate_put_text(const struct duet__calibrate_options *options,
                              const struct duet__calibrating *c,
                              const struct duet__platform *platform, FILE *stream)
{
    put_machine(c, platform, stream);
    put_kernels(&c->model, stream);
    put_costs(c, stream);
    put_copies(c, platform, stream);
    put_confidence(c, stream);
    fprintf(stream, "Written: %s and its kernel times. To simulate this machine: --platform %s%s\n",
            options->out, strchr(options->out, '/') ? "" : "./", options->out);
}

/* ------------------------------------------------------------------------------------------- */
/* JSON for programs: docs/calibrate.md describes it                                            */

/* Returns the number, or what JSON writes as null if it is 0, which means not known. */
static double known(double value)
{
    return value > 0 ? value : NAN;
}

static void write_machine(const struct duet__calibrating *c, const struct duet__platform *platform,
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

static void write_runs(const struct duet__calibrating *c, struct duet__json_writer *json)
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

static void write_kernel(const struct duet__quality *q, struct duet__json_writer *json)
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

static void write_costs(const struct duet__calibrating *c, struct duet__json_writer *json)
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

static void write_copies(const struct duet__calibrating *c, const struct duet__platform *platform,
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
    write_machine(c, platform, &json);
    write_runs(c, &json);
    duet__json_begin(&json, "kernels", '[');
    for (size_t i = 0; i < c->model.quality_count; i++)
        write_kernel(&c->model.quality[i], &json);
    duet__json_end(&json, ']');
    write_costs(c, &json);
    write_copies(c, platform, &json);
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
