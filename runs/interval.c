/* SPDX-License-Identifier: Apache-2.0 */
#include "runs/interval.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/stats.h"
#include "platforms/model/draws.h"
#include "runs/session.h"

/* Returns the part of the variance that two figures of the same runs have in common. */
static double common_part(const double *x, const double *y, size_t count)
{
    const struct duet__summary first = duet__summarise(x, count),
                               second = duet__summarise(y, count);
    double sum = 0;
    if (!(first.deviation > 0 && second.deviation > 0))
        return 0;
    for (size_t i = 0; i < count; i++)
        sum += (x[i] - first.mean) * (y[i] - second.mean);
    sum /= (double)(count - 1) * first.deviation * second.deviation;
    return fmin(sum * sum, 1);
}

void duet__interval_find(const struct duet__series *series, double *low_s, double *high_s)
{
    double *x = g_new(double, series->count + 1);
    *low_s = *high_s = NAN;
    for (size_t i = 0; i < series->count; i++)
        x[i] = series->runs[i].stats.makespan_s;
    duet__sort(x, series->count);
    if (series->count >= DUET_PREDICTIVE_LEAST)
        duet__predictive(x, series->count, low_s, high_s);
    g_free(x);
}

/* Returns what the time of a kernel on an architecture rests on. */
static enum duet__basis basis_of(const struct duet__request *request,
                                 const struct duet__spent *spent, struct duet__run *run)
{
    const struct duet__curve *curve =
        duet__calibration_find(&request->platform->calibration, spent->kernel, spent->arch);
    struct duet__point point;
    if (curve && !duet__curve_point(curve, spent->work, request->config.extrapolate, &point))
        return point.basis;
    if (request->guesses && !run->guess) {
        g_autofree char *name = g_strdup_printf("%s on %s", spent->kernel, spent->arch);
        run->guess = g_hash_table_lookup(request->guesses, name);
    }
    return DUET__GUESSED;
}

/* Adds the seconds of one size of a kernel to its use. If all DUET__USES are of other kernels, it
   replaces the one with the fewest seconds, if it has more. */
static void add_use(struct duet__run *run, const struct duet__spent *spent, enum duet__basis basis)
{
    struct duet__use *use = run->uses;
    bool other;
    for (size_t i = 1; i < DUET__USES; i++)
        use = run->uses[i].seconds < use->seconds ? &run->uses[i] : use;
    for (size_t i = 0; i < DUET__USES; i++)
        if (strcmp(run->uses[i].kernel, spent->kernel) == 0 &&
            strcmp(run->uses[i].arch, spent->arch) == 0)
            use = &run->uses[i];
    other = strcmp(use->kernel, spent->kernel) != 0 || strcmp(use->arch, spent->arch) != 0;
    if (other && use->seconds >= spent->seconds)
        return;
    if (other) {
        *use = (struct duet__use){.seconds = 0};
        g_strlcpy(use->kernel, spent->kernel, sizeof use->kernel);
        g_strlcpy(use->arch, spent->arch, sizeof use->arch);
    }
    use->seconds += spent->seconds;
    if (use->most_s >= spent->seconds)
        return;
    use->most_s = spent->seconds;
    use->work = spent->work;
    use->basis = basis;
}

void duet__bases_find(const struct duet__request *request, const struct duet__spent *spent,
                      unsigned count, struct duet__run *run)
{
    double all_s = 0;
    _Static_assert(G_N_ELEMENTS(run->basis) == DUET__BASES, "a share for each basis");
    if (!request->config.simulate || !request->platform)
        return;
    for (unsigned i = 0; i < count; i++) {
        const enum duet__basis basis = basis_of(request, &spent[i], run);
        run->basis[basis] += spent[i].seconds;
        all_s += spent[i].seconds;
        add_use(run, &spent[i], basis);
    }
    for (size_t i = 0; i < DUET__BASES && all_s > 0; i++)
        run->basis[i] /= all_s;
}

/* ------------------------------------------------------------------------------------------- */
/* Causes of an interval's width                                                                */

/* A drawn figure. */
struct figure {
    struct duet__hold draw;      /* its names */
    const struct duet__use *use; /* NULL: it is no kernel's */
    const char *title, *why;     /* where it is no kernel's */
    double share, error; /* of the variance of the makespan's logarithm; standard error of that */
    struct duet__series series; /* simulations in which it is held */
};

/* Figures that are no kernel's; those of links and of the network come last. */
#define STATE                                                                                      \
    "it changes from run to run: use a quieter machine, or medians of more runs (--interval "      \
    "median:K)"
static const struct figure common[] = {
    {{"", "state", false}, .title = "the machine's state", .why = STATE},
    {{"", "costs", false}, .title = "the runtime's costs", .why = "20 % are assumed"},
    {{"", "memory", false}, .title = "the memory's bandwidth", .why = "10 % are assumed"},
    {{"", "links", false}, .title = "the links' bandwidths", .why = "5 % are assumed"},
    {{"", "network", false}, .title = "the network's bandwidth", .why = "5 % are assumed"},
    {{"", "latency", false}, .title = "the network's latency", .why = "20 % are assumed"},
};
enum { LINKS = 3, COMMON = G_N_ELEMENTS(common), FIGURES = DUET__USES + COMMON };

static double drawn(const struct duet__request *request, const struct duet__hold *figure,
                    uint64_t seed)
{
    struct duet__draws draws = {.seed = seed};
    if (strcmp(figure->of, common->draw.of) != 0)
        return duet__draw_normal(&draws, figure->name, figure->of);
    if (duet__draws_parse("", request->config.interval, &draws.runs, NULL))
        return 0;
    return log(duet__draw_state(&draws, &request->platform->calibration.states));
}

static int by_share(const void *left, const void *right)
{
    const struct figure *a = left, *b = right;
    return (a->share < b->share) - (a->share > b->share);
}

/* Returns the logarithms of a series' makespans, for g_free. */
static double *logarithms(const struct duet__series *series)
{
    double *y = g_new(double, series->count + 1);
    for (size_t i = 0; i < series->count; i++)
        y[i] = log(series->runs[i].stats.makespan_s);
    return y;
}

/* Finds how the makespan goes with each drawn figure; the draws are repeated here. Returns the
   number of figures with which it does, the one with the largest share first. */
static size_t rank_figures(const struct duet__request *request, const struct duet__series *series,
                           struct figure *figures)
{
    const size_t others = duet__request_nodes(request) > 1 ? COMMON
                          : request->machine.link_count    ? LINKS + 1
                                                           : LINKS;
    g_autofree double *x = g_new(double, series->count + 1), *y = logarithms(series);
    size_t count = 0;
    for (size_t f = 0; f < DUET__USES + others; f++) {
        const struct duet__use *use = f < DUET__USES ? &series->runs[0].uses[f] : NULL;
        struct figure *own = &figures[count];
        *own = use ? (struct figure){{use->kernel, use->arch, false}, .use = use}
                   : common[f - DUET__USES];
        for (size_t i = 0; i < series->count; i++)
            x[i] = drawn(request, &own->draw, series->runs[i].seed);
        own->share = common_part(x, y, series->count);
        count += (!use || use->seconds > 0) && own->share > 0;
    }
    qsort(figures, count, sizeof *figures, by_share);
    return count;
}

/* Returns the name of a figure, "dgemm on c2050", for g_free. */
static char *name_of(const struct figure *figure)
{
    return figure->use ? g_strdup_printf("%s on %s", figure->draw.name, figure->draw.of)
                       : g_strdup(figure->title);
}

/* Returns why a figure is not certain, and what would make it so, for g_free. */
static char *reason_of(const struct figure *figure, uint64_t tile)
{
    static const char *const words[DUET__BASES] =
        {"measured, but in few other problems or on one number of workers: calibrate more of them",
         "interpolated between measured sizes", "extrapolated beyond measured sizes",
         "estimated, not measured", "guessed"};
    const struct duet__use *use = figure->use;
    if (!use || use->basis == DUET__MEASURED)
        return g_strdup(use ? words[use->basis] : figure->why);
    return tile ? g_strdup_printf("%s: calibrate tiles of %" PRIu64, words[use->basis], tile)
                : g_strdup_printf("%s: calibrate it", words[use->basis]);
}

/* Returns half of the interval of a series, by its middle. */
static double half_of(const struct duet__series *series)
{
    double low_s, high_s;
    duet__interval_find(series, &low_s, &high_s);
    return sinh(log(high_s / low_s) / 2);
}

char *duet__interval_advice(const struct duet__request *request, const struct duet__series *series)
{
    struct figure figures[FIGURES];
    double half;
    if (series->count < DUET_PREDICTIVE_LEAST || !request->platform)
        return NULL;
    half = half_of(series);
    /* runs of opposite draws are one for this: 2.8 deviations of chance with half as many */
    if (rank_figures(request, series, figures) && figures->share > 16.0 / (double)series->count) {
        g_autofree char *name = name_of(figures), *why = reason_of(figures, request->problem.tile);
        return g_strdup_printf(
            "+-%.2g %%; +-%.2g %% if %s were certain (%.0f %% of the variance; %s)", 100 * half,
            100 * sinh(asinh(half) * sqrt(1 - figures->share)), name, 100 * figures->share, why);
    }
    return g_strdup_printf("+-%.2g %%; no figure stands out", 100 * half);
}

/* ------------------------------------------------------------------------------------------- */
/* Causes of an interval's width, by simulations                                                */

/* Simulates the drawn machines of a request with each of some figures held. */
static int simulate_held(const struct duet__request *request, struct figure *figures, size_t count,
                         struct duet__progress *progress, int *number, struct duet_message *message)
{
    struct duet__platform platforms[DUET__HELD];
    struct duet__request variants[DUET__HELD], pool = *request;
    struct duet__series series[DUET__HELD] = {{0}};
    char *policies[DUET__HELD + 1] = {NULL};
    int error;
    for (size_t i = 0; i < count; i++) {
        platforms[i] = *request->platform;
        platforms[i].hold = &figures[i].draw;
        variants[i] = *request;
        variants[i].platform = &platforms[i];
        policies[i] = request->policies[0];
    }
    pool.policies = policies;
    pool.policy_count = count;
    pool.variants = variants;
    error = duet__simulate(&pool, progress, series, number, message);
    for (size_t i = 0; i < count; i++) {
        figures[i].series = series[i];
        if (!error && !*number && series[i].error)
            error = duet_fail(message, series[i].error, "%s", series[i].message.text);
    }
    return error;
}

/* Returns the variance of the logarithms of makespans, without those from `first` to before
   `end`. */
static double variance_of(const struct duet__series *series, size_t first, size_t end)
{
    double *y = logarithms(series);
    struct duet__summary summary;
    memmove(&y[first], &y[end], (series->count - end) * sizeof *y);
    summary = duet__summarise(y, series->count - (end - first));
    g_free(y);
    return summary.deviation * summary.deviation;
}

/*
 * Returns the part of the variance of `all` by which that of `more` is larger than that of `less`,
 * with its standard error by the jackknife (Efron, Stein, Annals of Statistics 9(3), 1981). Runs of
 * opposite draws, of seeds 2k and 2k + 1, are left out together.
 */
static double compare_parts(const struct duet__series *all, const struct duet__series *more,
                            const struct duet__series *less, double *error)
{
    double *parts = g_new(double, all->count + 1);
    struct duet__summary summary;
    size_t units = 0;
    for (size_t first = 0, end; first < all->count; first = end) {
        end = first + 1;
        while (end < all->count && all->runs[end].seed / 2 == all->runs[first].seed / 2)
            end++;
        parts[units++] = (variance_of(more, first, end) - variance_of(less, first, end)) /
                         fmax(variance_of(all, first, end), 1e-300);
    }
    summary = duet__summarise(parts, units);
    g_free(parts);
    *error = summary.deviation * ((double)units - 1) / sqrt((double)units);
    return (variance_of(more, 0, 0) - variance_of(less, 0, 0)) /
           fmax(variance_of(all, 0, 0), 1e-300);
}

/* Fills what the simulations say. */
static void judge(const struct duet__series *all, struct figure *figures, unsigned count,
                  uint64_t tile, struct duet__holding *out)
{
    double error;
    duet__interval_find(all, &out->low_s, &out->high_s);
    out->half = half_of(all);
    for (unsigned i = 0; i < count; i++)
        figures[i].share = compare_parts(all, all, &figures[i].series, &figures[i].error);
    qsort(figures, count, sizeof *figures, by_share);
    for (out->count = 0; out->count < count; out->count++) {
        const struct figure *own = &figures[out->count];
        out->held[out->count] = (struct duet__held){name_of(own), reason_of(own, tile), own->share,
                                                    own->error, half_of(&own->series)};
        if (figures->share > 2 * figures->error && own->share > 0 &&
            compare_parts(all, &own->series, &figures->series, &error) <= 2 * error)
            out->tied = out->count + 1;
    }
}

int duet__interval_hold(const struct duet__request *given, const char *interval, uint64_t tile,
                        struct duet__progress *progress, struct duet__holding *out, int *number,
                        struct duet_message *message)
{
    struct figure figures[FIGURES] = {{.use = NULL}}, all = {.draw = {"", "", false}},
                  measured = all;
    struct duet__request request = *given;
    size_t count = 0, simulated = 1;
    int error;
    request.config.interval = interval;
    request.config.noise = true;
    request.reps = DUET_PREDICTIVE_USUAL;
    progress->run_count += request.reps * (1 + DUET__HELD);
    progress->total += duet__request_tasks(given) * request.reps * (1 + DUET__HELD);
    error = simulate_held(&request, &all, 1, progress, number, message);
    if (!error && !*number && all.series.runs) {
        count = MIN(rank_figures(&request, &all.series, figures), DUET__HELD);
        simulated += count;
        error = count ? simulate_held(&request, figures, count, progress, number, message) : 0;
        if (!error && !*number)
            judge(&all.series, figures, (unsigned)count, tile, out);
    }
    if (out->tied == 1 && figures->use && figures->use->basis != DUET__MEASURED) {
        measured.draw = figures->draw;
        measured.draw.measured = true;
        error = simulate_held(&request, &measured, 1, progress, number, message);
        simulated++;
    }
    out->interval = interval;
    out->measured_half = half_of(&measured.series);
    out->reps = request.reps;
    out->simulations = request.reps * simulated;
    duet__series_fini(&all.series);
    duet__series_fini(&measured.series);
    for (size_t i = 0; i < count; i++)
        duet__series_fini(&figures[i].series);
    return error;
}

void duet__holding_fini(struct duet__holding *holding)
{
    for (unsigned i = 0; i < holding->count; i++) {
        g_free(holding->held[i].name);
        g_free(holding->held[i].why);
    }
    *holding = (struct duet__holding){.count = 0};
}
