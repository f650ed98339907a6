/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leaves runs out, fits each candidate to the others, and compares its predictions with the runs
 * left out: the time of their kernels where and beside what they ran, and the makespan of a
 * simulation.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fields.h"
#include "bench/corpus/corpus.h"
#include "runs/interval.h"
#include "runs/session.h"
#include "base/stats.h"

enum { CANDIDATES_MOST = 32, SIZES_RUNS = 100 };

/* A way to leave runs out: those with the same key are left out together. */
struct scheme {
    const char *name;
    uint64_t (*key)(const struct corpus *corpus, const struct corpus_run *run);
    bool nothing; /* nothing is left out: the model has seen the runs */
};

static uint64_t by_case(const struct corpus *corpus, const struct corpus_run *run)
{
    return (run->of.n << 32) + (run->of.tile << 8) + run->of.cpus;
}

static uint64_t by_size(const struct corpus *corpus, const struct corpus_run *run)
{
    return run->of.n;
}

static uint64_t by_workers(const struct corpus *corpus, const struct corpus_run *run)
{
    return run->of.cpus;
}

static uint64_t by_half(const struct corpus *corpus, const struct corpus_run *run)
{
    return 2 * run->round < corpus->rounds;
}

static uint64_t by_turn(const struct corpus *corpus, const struct corpus_run *run)
{
    return run->round % 2;
}

static uint64_t by_nothing(const struct corpus *corpus, const struct corpus_run *run)
{
    return 0;
}

static const struct scheme schemes[] = {
    {"none", by_nothing, true},     {"case", by_case, false}, {"size", by_size, false},
    {"workers", by_workers, false}, {"half", by_half, false}, {"turn", by_turn, false},
};

/* A comparison under way. */
struct work {
    struct corpus corpus;
    const struct duet__platform *machine;
    unsigned simulations; /* number of a case's simulations */
    bool intervals;       /* of the first candidate alone, with intervals */
    struct duet_sharing sizes[CANDIDATES_MOST];
    struct duet__json_writer json;
    struct duet_message message;
};

/* ------------------------------------------------------------------------------------------- */
/* Kernels                                                                                      */

/* Seconds that a point predicts for a row. */
static double predicted_seconds(const struct duet__point *point, const struct duet__rows *rows,
                                size_t row, double bandwidth_Bps)
{
    const struct duet__kernel_fit kernel = {
        .fit = {.base_s = point->base_s > 0 ? point->base_s : point->mean_s,
                .memory_s = point->memory_s},
        .busy_ratio = point->busy_ratio > 0 ? point->busy_ratio : 1,
        .bandwidth_Bps = bandwidth_Bps,
    };
    return duet__kernel_seconds(&kernel, rows, row);
}

static const struct duet__point *find_point(const struct duet__model *model,
                                            const struct duet__group *group)
{
    for (size_t i = 0; i < model->quality_count; i++)
        if (!strcmp(model->quality[i].kernel, group->kernel) &&
            model->quality[i].point.work == group->work)
            return &model->quality[i].point;
    return NULL;
}

/* Seconds of all kernels of each run, predicted and measured; NaN where one is not known. */
struct sums {
    double *predicted, *measured;
};

static void sum_kernels(const struct duet__model *model, const struct duet__executions *all,
                        struct sums *sums)
{
    g_autofree double *missing = g_new0(double, all->operand_count + 1);
    duet__missing_find(all, &model->sharing, 0, missing);
    for (guint g = 0; g < all->groups->len; g++) {
        const struct duet__group *group = duet__group_at(all, g);
        const struct duet__point *point = find_point(model, group);
        struct duet__rows rows;
        duet__rows_make(all, group, missing, 0, &rows);
        for (size_t i = 0; i < rows.count; i++) {
            uint32_t run = rows.list[i].run;
            sums->predicted[run] +=
                point ? predicted_seconds(point, &rows, i, model->sharing.bandwidth_Bps) : NAN;
            sums->measured[run] += rows.seconds[i];
        }
        duet__rows_fini(&rows);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Makespans                                                                                    */

/* Returns the median of a case's simulations, NaN if it cannot be simulated. Unless `interval` is
 * NULL, sets *low_s and *high_s. */
static double simulate(struct work *work, const struct corpus_case *of,
                       const struct candidate *candidate, const struct duet__platform *platform,
                       const char *interval, double *low_s, double *high_s)
{
    double makespans[CORPUS_SIMULATIONS];
    struct duet__request request;
    struct duet__series series = {0};
    struct duet__progress bar = {0};
    double median = NAN;
    int number = 0, error;
    duet__request_init(&request);
    request.workload = duet__workload_find(of->workload);
    request.problem =
        (struct duet__problem){.n = of->n, .tile = of->tile, .precision = 'd', .seed = 1};
    g_strfreev(request.policies);
    request.policies = g_strsplit(of->policy, ",", -1);
    request.policy_count = 1;
    request.reps = work->simulations;
    request.jobs = 1;
    request.records = DUET_RECORDS_NONE;
    request.bounds = false;
    request.config.context = of->workload;
    request.config.cpus = (int)of->cpus;
    request.config.noise = true;
    request.config.interval = interval;
    request.config.costs = candidate->costs;
    request.config.without = candidate->without;
    request.platform = platform;
    request.config.simulate = platform->name;
    error = duet__request_build(&request, &work->message);
    error = error ? error : duet__simulate(&request, &bar, &series, &number, &work->message);
    if (!error && series.count == work->simulations) {
        for (size_t i = 0; i < work->simulations; i++)
            makespans[i] = series.runs[i].stats.makespan_s;
        median = duet__median(makespans, work->simulations);
        if (interval)
            duet__interval_find(&series, low_s, high_s);
    } else if (error || series.error) {
        (void)fprintf(stderr, "corpus: %s\n", error ? work->message.text : series.message.text);
    }
    duet__series_fini(&series);
    duet__request_fini(&request);
    return median;
}

/* ------------------------------------------------------------------------------------------- */
/* One fold                                                                                     */

static bool same_case(const struct corpus_case *a, const struct corpus_case *b)
{
    return a->n == b->n && a->tile == b->tile && a->cpus == b->cpus &&
           !strcmp(a->policy, b->policy);
}

/* Returns the recorded runs that are left out, or the others. */
static struct duet__recorded_run *choose_runs(const struct work *work, const struct scheme *scheme,
                                              uint64_t key, bool left_out,
                                              const struct corpus_run **own, size_t *count)
{
    struct duet__recorded_run *runs = g_new0(struct duet__recorded_run, work->corpus.runs->len + 1);
    *count = 0;
    for (guint i = 0; i < work->corpus.runs->len; i++) {
        const struct corpus_run *run = &g_array_index(work->corpus.runs, struct corpus_run, i);
        uint64_t problem = by_case(&work->corpus, run);
        if (!scheme->nothing && (scheme->key(&work->corpus, run) == key) != left_out)
            continue;
        own[*count] = run;
        runs[(*count)++] = (struct duet__recorded_run){
            .recording = run->recording,
            .context = run->of.workload,
            .repeats = 1 + g_str_hash(run->of.policy) % 1000 + 1000 * problem,
            .problem = 1 + problem,
        };
    }
    return runs;
}

/* The runs that are left out, without the model. */
struct fold {
    const char *scheme;
    guint number;
    const struct corpus_run **own; /* the runs */
    size_t count;
    struct duet__executions all; /* their executions */
};

/* Prints the left-out runs of a case, and the intervals of one and of their median. */
static void put_intervals(struct work *work, const struct fold *fold,
                          const struct candidate *candidate, size_t first,
                          const struct duet__platform *platform)
{
    const struct corpus_case *of = &fold->own[first]->of;
    double *values = g_new0(double, fold->count + 1), low = NAN, high = NAN;
    size_t runs = 0, rounds = 0;
    unsigned round = 0;
    for (size_t i = 0; i < fold->count; i++) {
        if (!same_case(&fold->own[i]->of, of))
            continue;
        rounds += !runs || fold->own[i]->round != round;
        round = fold->own[i]->round;
        values[runs++] = fold->own[i]->recording.makespan_s;
    }
    DUET__ARRAY_WRITE(&work->json, "measured", DUET__NUMBER, values, runs);
    g_free(values);
    for (size_t of_one = 0; of_one < 2; of_one++) {
        char median[32];
        (void)g_snprintf(median, sizeof median, "median:%zu", rounds);
        (void)simulate(work, of, candidate, platform, of_one ? "run" : median, &low, &high);
        duet__json_print(&work->json, of_one ? ", run: [%g, %g]" : ", median: [%g, %g]", low, high);
    }
}

/* Prints medians over the left-out runs of one case, from `first` on. */
static void put_case(struct work *work, const struct fold *fold, const struct candidate *candidate,
                     size_t first, const struct sums *sums, const struct duet__platform *platform)
{
    const struct corpus_run *const *own = fold->own;
    const struct corpus_case *of = &own[first]->of;
    const size_t count = fold->count;
    g_autofree double *values = g_new0(double, count + 1);
    double makespan_s, kernels, measured_s;
    size_t runs = 0;
    for (size_t i = 0; i < count; i++)
        if (same_case(&own[i]->of, of))
            values[runs++] = sums->predicted[i] / sums->measured[i];
    kernels = duet__median(values, runs);
    runs = 0;
    for (size_t i = 0; i < count; i++)
        if (same_case(&own[i]->of, of))
            values[runs++] = own[i]->recording.makespan_s;
    measured_s = duet__median(values, runs);
    makespan_s = simulate(work, of, candidate, platform, NULL, NULL, NULL);
    work->json = (struct duet__json_writer){.stream = stdout};
    duet__json_print(
        &work->json,
        "{scheme: %s, fold: %u, model: %s, workload: %s, n: %g, tile: %g, cpus: %u, policy: %s, "
        "runs: %zu, kernel_error: %g, makespan_error: %g, measured_s: %g",
        fold->scheme, fold->number, candidate->name, of->workload, (double)of->n, (double)of->tile,
        of->cpus, of->policy, runs, kernels - 1, makespan_s / measured_s - 1, measured_s);
    if (work->intervals)
        put_intervals(work, fold, candidate, first, platform);
    duet__json_end(&work->json, '}');
    (void)fputc('\n', stdout);
}

/* Adjusts all points of a model. */
static void adjust_points(struct duet__model *model, void (*change)(struct duet__point *point))
{
    for (size_t i = 0; i < model->quality_count && change; i++)
        change(&model->quality[i].point);
    for (size_t i = 0; i < model->calibration.count && change; i++)
        for (size_t k = 0; k < model->calibration.curves[i].count; k++)
            change(&model->calibration.curves[i].points[k]);
}

static int fit(struct work *work, const struct candidate *candidate,
               const struct duet_sharing *sizes, bool keep_size,
               const struct duet__recorded_run *runs, size_t count, struct duet__model *out)
{
    struct duet__model_options options = {
        .sharing = *sizes,
        .task_overhead_s = work->machine->costs.pop_s,
        .fit = candidate->fit,
        .keep_states = candidate->keep_states,
        .keep_size = keep_size,
        .folds = 1,
    };
    options.sharing.bandwidth_Bps =
        candidate->no_bandwidth ? 0 : work->machine->sharing.bandwidth_Bps;
    return duet__model_fit(runs, count, &options, out, &work->message);
}

static void try_model(struct work *work, const struct fold *fold, const struct candidate *candidate,
                      const struct duet__model *model)
{
    struct duet__platform platform = *work->machine;
    struct sums sums = {g_new0(double, fold->count + 1), g_new0(double, fold->count + 1)};
    sum_kernels(model, &fold->all, &sums);
    platform.calibration = model->calibration;
    platform.sharing = model->sharing;
    for (size_t i = 0; i < fold->count; i++) {
        bool seen = false;
        for (size_t k = 0; k < i; k++)
            seen = seen || same_case(&fold->own[k]->of, &fold->own[i]->of);
        if (!seen)
            put_case(work, fold, candidate, i, &sums, &platform);
    }
    (void)fflush(stdout);
    g_free(sums.predicted);
    g_free(sums.measured);
}

static void try_fold(struct work *work, const struct scheme *scheme, guint number, uint64_t key)
{
    const struct corpus_run **own = g_new0(const struct corpus_run *, work->corpus.runs->len + 1);
    size_t count;
    struct duet__recorded_run *runs = choose_runs(work, scheme, key, false, own, &count), *tests;
    struct fold fold = {.scheme = scheme->name, .number = number, .own = own};
    tests = choose_runs(work, scheme, key, true, own, &fold.count);
    if (duet__executions_read(tests, fold.count, work->machine->costs.pop_s, &fold.all,
                              &work->message))
        g_error("%s", work->message.text);
    for (size_t i = 0; candidates[i].name && (i == 0 || !work->intervals); i++) {
        struct duet__model model = {0};
        if (fit(work, &candidates[i], &work->sizes[i], true, runs, count, &model))
            g_error("%s", work->message.text);
        adjust_points(&model, candidates[i].adjust);
        try_model(work, &fold, &candidates[i], &model);
        duet__model_fini(&model);
    }
    duet__executions_fini(&fold.all);
    g_free(own);
    g_free(runs);
    g_free(tests);
}

/* ------------------------------------------------------------------------------------------- */

/* Finds, for each candidate, the cache size from a run of each of the first turns: once, as it
 * takes long. */
static void find_sizes(struct work *work)
{
    const struct corpus_run **own = g_new0(const struct corpus_run *, work->corpus.runs->len + 1);
    size_t count, few = 0;
    uint64_t last = 0;
    struct duet__recorded_run *runs = choose_runs(work, &schemes[0], 0, true, own, &count);
    const struct duet_sharing told = {.shared_bytes = work->corpus.shared_bytes};
    for (size_t i = 0; i < count && few < SIZES_RUNS; i++) {
        const struct duet__recorded_run run = runs[i];
        if (run.repeats != last)
            runs[few++] = run;
        last = run.repeats;
    }
    for (size_t i = 0; candidates[i].name && (i == 0 || !work->intervals); i++) {
        struct duet__model model = {0};
        if (fit(work, &candidates[i], &told, candidates[i].keep_size, runs, few, &model))
            g_error("%s", work->message.text);
        work->sizes[i] = model.sharing;
        duet__model_fini(&model);
    }
    g_free(own);
    g_free(runs);
}

static void try_scheme(struct work *work, const struct scheme *scheme)
{
    g_autoptr(GArray) keys = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    for (guint i = 0; i < work->corpus.runs->len; i++) {
        uint64_t key =
            scheme->key(&work->corpus, &g_array_index(work->corpus.runs, struct corpus_run, i));
        guint k = 0;
        while (k < keys->len && g_array_index(keys, uint64_t, k) != key)
            k++;
        if (k == keys->len)
            g_array_append_val(keys, key);
    }
    if (keys->len < 2 && !scheme->nothing)
        return;
    for (guint k = 0; k < keys->len; k++)
        try_fold(work, scheme, k, g_array_index(keys, uint64_t, k));
}

int corpus_compare(unsigned simulations, bool intervals, const char *path, const char *workload)
{
    struct work work = {.json = {.stream = stdout},
                        .simulations = simulations,
                        .intervals = intervals};
    struct duet__platform *platform = NULL;
    struct duet_machine machines[64] = {0};
    unsigned cores = 0;
    int error = duet__platform_load(path, &platform, &work.message);
    if (!error)
        cores = MIN(duet__platform_cores(platform), G_N_ELEMENTS(machines));
    for (unsigned i = 0; i < cores && !error; i++) {
        const struct duet__platform_options options = {.cpus = (int)i + 1, .gpus = -1};
        error = duet__platform_build(platform, &options, &machines[i], &work.message);
    }
    work.machine = platform;
    if (!error)
        error = corpus_read(stdin, workload, machines, cores, &work.corpus, &work.message);
    if (!error)
        find_sizes(&work);
    for (size_t i = 0; i < G_N_ELEMENTS(schemes) && !error; i++)
        try_scheme(&work, &schemes[i]);
    if (!error && (fflush(stdout) || ferror(stdout)))
        error = duet_fail(&work.message, DUET_EIO, "the figures cannot be written");
    if (error)
        (void)fprintf(stderr, "corpus: %s\n", work.message.text);
    corpus_fini(&work.corpus);
    for (unsigned i = 0; i < cores; i++)
        duet_machine_fini(&machines[i]);
    duet__platform_free(platform);
    return error ? 1 : 0;
}
