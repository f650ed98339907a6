/* SPDX-License-Identifier: Apache-2.0 */
/* The report of `duet calibrate` for people. */
#include "cli/calibrate.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/table.h"

enum { AT = 16 /* column of texts */ };

static void G_GNUC_PRINTF(3, 4) field(FILE *stream, const char *label, const char *format, ...)
{
    va_list args;
    char *text;

    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    duet__put_field(stream, label, AT, "%s", text);
    g_free(text);
}

static const char *plural(uint64_t number)
{
    return number == 1 ? "" : "s";
}

/* Three digits, or "-" for what is not known. */
static char *figure(double value, double unit)
{
    return isfinite(value) && value != 0 ? g_strdup_printf("%.3g", value / unit) : g_strdup("-");
}

static char *percent(double share)
{
    return isfinite(share) ? g_strdup_printf("%.1f", 100 * share) : g_strdup("-");
}

/* ------------------------------------------------------------------------------------------- */
/* The machine                                                                                  */

static void put_caches(const struct duet__calibrate_result *result,
                       const struct duet_platform *platform, FILE *stream)
{
    const struct duet_sharing *sharing = &platform->sharing, *known = &result->known;
    char *own = duet__size_text(sharing->private_bytes);
    char *shared = duet__size_text(sharing->shared_bytes);
    char *all = duet__size_text(known->shared_bytes);

    if (!sharing->private_bytes && !sharing->shared_bytes)
        field(stream, "caches", "not known");
    else
        field(stream, "caches", "%s for each core; of the shared %s a program gets %s",
              sharing->private_bytes ? own : "not known", known->shared_bytes ? all : "one",
              sharing->shared_bytes ? shared : "an unknown part");
    g_free(all);
    g_free(shared);
    g_free(own);
}

static void put_measured(const struct duet__calibrate_result *result, FILE *stream)
{
    const struct duet__setup *setups = (const struct duet__setup *)(void *)result->setups->data;
    uint64_t runs = 0, tasks = 0;
    GString *text = g_string_new(NULL);
    unsigned kinds = 0;

    for (guint i = 0; i < result->setups->len; i++) {
        kinds += setups[i].runs > 0;
        runs += setups[i].runs;
        tasks += setups[i].tasks;
    }
    g_string_append_printf(text,
                           "in %.1f s: %" PRIu64 " round%s over %u kinds of runs, together "
                           "%" PRIu64 " runs of %" PRIu64 " tasks",
                           result->wall_s, result->rounds, plural(result->rounds), kinds, runs,
                           tasks);
    if (isfinite(result->load.stolen))
        g_string_append_printf(text, "; the hypervisor took %.1f %% of the time",
                               100 * result->load.stolen / result->load.cores);
    field(stream, "measured", "%s", text->str);
    g_string_free(text, TRUE);
}

/* When other processes computed as well, and what became of the runs meanwhile. */
static void put_others(const struct duet__calibrate_result *result, FILE *stream)
{
    const GArray *rounds = result->disturbed_rounds;
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < rounds->len; i++)
        g_string_append_printf(text, "%s%" PRIu64, i ? ", " : "",
                               g_array_index(rounds, uint64_t, i));
    if (rounds->len)
        field(stream, "others",
              "other processes used %.1f of %u cores; round%s %s disturbed; %" PRIu64
              " run%s left out%s",
              result->load.others, result->load.cores, plural(rounds->len), text->str,
              result->left_out, plural(result->left_out),
              result->left_out ? "" : ": there are no others of the same");
    g_string_free(text, TRUE);
}

static void put_machine(const struct duet__calibrate_result *result,
                        const struct duet_platform *platform, FILE *stream)
{
    const struct duet__bandwidth *bandwidth = &result->bandwidth;

    fprintf(stream, "%s: %s\n", platform->name, platform->description);
    put_measured(result, stream);
    put_others(result, stream);
    if (result->probe_s > 0)
        field(stream, "speed", "%.3g ms for the reference kernel", result->probe_s * 1e3);
    put_caches(result, platform, stream);
    if (bandwidth->samples)
        field(stream, "memory", "%.3g GB/s for one core, %.3g GB/s for all of a socket",
              bandwidth->one_Bps / 1e9, bandwidth->all_Bps / 1e9);
}

/* ------------------------------------------------------------------------------------------- */
/* Kernels                                                                                      */

static void put_heading(struct duet__table *table)
{
    static const char *const heading[] = {"kernel", "tile",  "samples", "out",  "mean",
                                          "median", "dev %", "warm",    "busy", "cold",
                                          "busy",   "sum %", "each %"};

    duet__table_init(table, "lrrrrrrrrrrrr");
    for (size_t i = 0; i < G_N_ELEMENTS(heading); i++)
        duet__table_say(table, heading[i]);
}

static void put_kernel(const struct duet__quality *quality, struct duet__table *table)
{
    static const int order[DUET__CONDITIONS] = {0, DUET__CONDITION_BUSY, DUET__CONDITION_COLD,
                                                DUET__CONDITION_COLD | DUET__CONDITION_BUSY};
    const struct duet__model_error *error = &quality->errors[DUET__LEFT_OUT_RUNS][0];

    duet__table_say(table, quality->kernel);
    duet__table_add(table, quality->size > 0 ? g_strdup_printf("%.0f", quality->size)
                                             : g_strdup_printf("%.3g", quality->work));
    duet__table_add(table, g_strdup_printf("%" PRIu64, quality->samples));
    duet__table_add(table, g_strdup_printf("%" PRIu64, quality->rejected));
    duet__table_add(table, figure(quality->mean_s, 1e-3));
    duet__table_add(table, figure(quality->median_s, 1e-3));
    duet__table_add(table, percent(quality->deviation_s / quality->mean_s));
    for (int i = 0; i < DUET__CONDITIONS; i++)
        duet__table_add(table, figure(quality->conditions[order[i]].mean_s, 1e-3));
    duet__table_add(table, isfinite(error->sum) ? g_strdup_printf("%+.1f", 100 * error->sum)
                                                : g_strdup("-"));
    duet__table_add(table, percent(error->execution));
}

static bool same_group(const struct duet__quality *a, const struct duet__quality *b)
{
    return strcmp(a->context, b->context) == 0 && strcmp(a->arch, b->arch) == 0;
}

/* The kernels of one workload and architecture, if `first` is the first of them. */
static void put_group(const struct duet__model *model, size_t first, FILE *stream)
{
    const struct duet__quality *of = &model->quality[first];
    struct duet__table table;

    for (size_t i = 0; i < first; i++)
        if (same_group(&model->quality[i], of))
            return;
    fprintf(stream, "\n%s on %s\n", of->context, of->arch);
    put_heading(&table);
    for (size_t i = first; i < model->quality_count; i++)
        if (same_group(&model->quality[i], of))
            put_kernel(&model->quality[i], &table);
    duet__table_put(&table, stream, 2);
}

static void put_kernels(const struct duet__model *model, FILE *stream)
{
    fputs("\nkernels: times in ms; warm and cold: data in caches or beyond, on one worker alone "
          "and with all\nbusy; out: outliers; what the model errs, on executions that it was not "
          "made from, in sum and of each\n(median)\n",
          stream);
    for (size_t i = 0; i < model->quality_count; i++)
        put_group(model, i, stream);
}

/* Relative errors of each model, and what they mean. */
static void put_models(const struct duet__model *model, FILE *stream)
{
    static const char *const heading[] = {"model", "sum %",  "each %",
                                          "sum %", "each %", "problem %"};
    struct duet__table table;

    fputs("\nmodels, on executions that they were not made from: runs left out, then problems "
          "left out; errors of\nthe sum over all kernels, of each execution (median), and of a "
          "problem (mean of absolute values)\n\n",
          stream);
    duet__table_init(&table, "lrrrrr");
    for (size_t i = 0; i < G_N_ELEMENTS(heading); i++)
        duet__table_say(&table, heading[i]);
    for (int m = 0; m < DUET__KERNEL_MODELS; m++) {
        duet__table_say(&table, duet__kernel_models[m]->name);
        for (int left_out = 0; left_out < DUET__LEFT_OUT; left_out++) {
            struct duet__model_error error = duet__model_error_all(model, left_out, m);

            duet__table_add(&table, percent(error.sum));
            duet__table_add(&table, percent(error.execution));
            if (left_out == DUET__LEFT_OUT_PROBLEMS)
                duet__table_add(&table, percent(error.part));
        }
    }
    duet__table_put(&table, stream, 2);
}

/* ------------------------------------------------------------------------------------------- */
/* Costs and copies                                                                             */

static void put_costs(const struct duet__calibrate_result *result, FILE *stream)
{
    if (!result->has_costs)
        return;
    fputs("\nthe runtime's own operations: median, quartiles\n\n", stream);
    for (int i = 0; i < DUET__COSTS; i++) {
        const struct duet__measured *cost = &result->costs[i];

        if (cost->samples)
            field(stream, cost->name, "%.3g us (%.3g to %.3g): %s", cost->median_s * 1e6,
                  cost->low_s * 1e6, cost->high_s * 1e6, cost->description);
        else
            field(stream, cost->name, "not measured: %s", cost->why);
    }
}

static void put_pairs(const struct duet__calibrate_result *result, FILE *stream)
{
    const struct duet_machine *machine = &result->info.machine;
    struct duet__table table;

    duet__table_init(&table, "lrrr");
    duet__table_say(&table, "copies");
    duet__table_say(&table, "us");
    duet__table_say(&table, "GB/s");
    duet__table_say(&table, "error %");
    for (size_t i = 0; i < result->copies.pair_count; i++) {
        const struct duet__pair *pair = &result->copies.pairs[i];

        duet__table_add(&table, g_strdup_printf("%s to %s%s", machine->nodes[pair->source].name,
                                                machine->nodes[pair->destination].name,
                                                pair->direct ? "" : ", through the host"));
        duet__table_add(&table, figure(pair->latency_s, 1e-6));
        duet__table_add(&table, figure(pair->bandwidth_Bps, 1e9));
        duet__table_add(&table, percent(pair->error));
    }
    duet__table_put(&table, stream, 2);
}

static void put_copies(const struct duet__calibrate_result *result,
                       const struct duet_platform *platform, FILE *stream)
{
    if (!result->has_copies || !result->copies.pair_count)
        return;
    fputs("\ncopies, each alone: latency and bandwidth\n\n", stream);
    put_pairs(result, stream);
    for (unsigned s = 0; s < platform->switch_count; s++) {
        GString *names = g_string_new(NULL);

        for (unsigned g = 0; g < platform->gpu_count; g++)
            if (platform->gpus[g].position == s)
                g_string_append_printf(names, "%s%s", names->len ? ", " : "",
                                       result->info.machine.nodes[g + 1].name);
        fprintf(stream, "  link %u: %s; %.3g GB/s in, %.3g GB/s out%s\n", s, names->str,
                platform->switches[s].to_device_Bps / 1e9, platform->switches[s].to_host_Bps / 1e9,
                strchr(names->str, ',') ? ", shared" : "");
        g_string_free(names, TRUE);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* How good it is                                                                               */

/* What gives enough rounds: by what they took, and a tenth more. "--budget 120s"; caller frees. */
static char *enough(const struct duet__calibrate_options *options,
                    const struct duet__calibrate_result *result)
{
    double rest_s = result->wall_s - result->runs_s;
    double round_s = result->runs_s / (double)MAX(result->rounds, 1);

    if (options->request.rounds)
        return g_strdup_printf("--reps %d", DUET__ROUNDS);
    return g_strdup_printf("--budget %.0fs", 10 * ceil((rest_s + DUET__ROUNDS * round_s) / 9));
}

/* What there was no time for, if there is anything. */
static bool put_left_out(const struct duet__calibrate_options *options,
                         const struct duet__calibrate_result *result, FILE *stream)
{
    GString *text = g_string_new(NULL);
    const struct duet__setup *last = NULL;

    for (guint i = 0; i < result->setups->len; i++) {
        const struct duet__setup *setup = &g_array_index(result->setups, struct duet__setup, i);

        if (setup->runs || (last && last->group == setup->group && last->size == setup->size))
            continue;
        last = setup;
        g_string_append_printf(text, "%s%s tile %" PRIu64 " %s", text->len ? ", " : "",
                               setup->workload->name, setup->problem.tile,
                               duet__setup_size_name(setup));
    }
    if (text->len)
        fprintf(stream, "Left out, as they would take more than %gs (--budget): %s.\n",
                options->request.budget_s, text->str);
    g_string_free(text, TRUE);
    return last != NULL;
}

/* What would make it better; nothing if it is good. */
static void put_advice(const struct duet__calibrate_options *options,
                       const struct duet__calibrate_result *result,
                       const struct duet__confidence *confidence, FILE *stream)
{
    enum { FEW = 10 };
    static const double poor = 0.05, disturbed = 0.02;
    char *what = enough(options, result);

    /* with more time there would be more to do */
    if (!put_left_out(options, result, stream) && confidence->fewest_runs < DUET__ROUNDS)
        fprintf(stream,
                "Of some problems there %s only %" PRIu64 " run%s, and %d are the least that is "
                "recommended:\n%s should do.\n",
                confidence->fewest_runs == 1 ? "is" : "are", confidence->fewest_runs,
                plural(confidence->fewest_runs), DUET__ROUNDS, what);
    else if (confidence->half > poor || confidence->fewest_samples < FEW)
        fprintf(stream, "More time (--budget, now %.0fs) would give more samples%s.\n",
                options->request.budget_s,
                confidence->half > poor ? ", and a machine with nothing else to do better ones"
                                        : "");
    if (result->load.stolen > disturbed * result->load.cores)
        fputs("The hypervisor has given much of the time to others: what was measured then is "
              "slower than the\nmachine is. Calibrate again when it is quiet.\n",
              stream);
    g_free(what);
}

static void put_confidence(const struct duet__calibrate_options *options,
                           const struct duet__calibrate_result *result, FILE *stream)
{
    struct duet__confidence confidence;

    duet__confidence(result, &confidence);
    fputc('\n', stream);
    if (confidence.points)
        fprintf(stream,
                "Half of the %zu kernel times are predicted within %.1f %%, nine of ten within "
                "%.1f %%; worst: %s\nof %s%s%.0f in %s, %+.1f %%. %.1f %% of the executions are "
                "outliers.\n",
                confidence.points, 100 * confidence.half, 100 * confidence.most,
                confidence.worst->kernel, confidence.worst->arch,
                confidence.worst->size > 0 ? ", tile " : ", work ",
                confidence.worst->size > 0 ? confidence.worst->size : confidence.worst->work,
                confidence.worst->context,
                100 * confidence.worst->errors[DUET__LEFT_OUT_RUNS][0].sum,
                100 * (double)confidence.rejected /
                    (double)MAX(confidence.samples + confidence.rejected, 1));
    put_advice(options, result, &confidence, stream);
}

void duet__calibrate_put_text(const struct duet__calibrate_options *options,
                              const struct duet__calibrate_result *result,
                              const struct duet_platform *platform, FILE *stream)
{
    put_machine(result, platform, stream);
    put_kernels(&result->model, stream);
    if (options->request.compare_models)
        put_models(&result->model, stream);
    put_costs(result, stream);
    put_copies(result, platform, stream);
    put_confidence(options, result, stream);
    fprintf(stream, "Written: %s and its kernel times. To simulate this machine: --platform %s%s\n",
            options->out, strchr(options->out, '/') ? "" : "./", options->out);
}
