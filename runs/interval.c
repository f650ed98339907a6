/* SPDX-License-Identifier: Apache-2.0 */
#include "runs/interval.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/stats.h"
#include "platforms/model/draws.h"

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

/* A drawn figure, known by the two names of its draw. */
struct figure {
    const char *name, *of; /* `of` NULL: the state of the machine */
    const struct duet__use *use;
    const char *title, *why; /* where it is no kernel */
};

/* Figures that are no kernel's; those of the network come last. */
#define STATE                                                                                      \
    "it changes from run to run: use a quieter machine, or medians of more runs (--interval "      \
    "median:K)"
static const struct figure common[] = {
    {"", NULL, NULL, "the machine's state", STATE},
    {"", "costs", NULL, "the runtime's costs", "20 % are assumed"},
    {"", "links", NULL, "the links' bandwidths", "5 % are assumed"},
    {"", "network", NULL, "the network's bandwidth", "5 % are assumed"},
    {"", "latency", NULL, "the network's latency", "20 % are assumed"},
};
enum { COMMON = G_N_ELEMENTS(common), OF_NETWORK = 2 };

static double drawn(const struct duet__request *request, const struct figure *figure, uint64_t seed)
{
    struct duet__draws draws = {.seed = seed};

    if (figure->of)
        return duet__draw_normal(&draws, figure->name, figure->of);
    if (duet__draws_parse("", request->config.interval, &draws.runs, NULL))
        return 0;
    return log(duet__draw_state(&draws, &request->platform->calibration.states));
}

void duet__interval_widest(const struct duet__request *request, const struct duet__series *series,
                           struct duet__widest *out)
{
    struct figure figures[DUET__USES + COMMON] = {{NULL}};
    const size_t count = series->count;
    /* runs of opposite draws are one for this: 2.8 deviations of chance with half as many */
    const double least = 16.0 / (double)count;
    const struct figure *widest = NULL;
    size_t figure_count = G_N_ELEMENTS(figures);
    double low_s, high_s, *x, *y;

    *out = (struct duet__widest){.share = 0};
    if (count < DUET_PREDICTIVE_LEAST || !request->platform)
        return;
    if (duet__request_nodes(request) == 1)
        figure_count -= OF_NETWORK;
    x = g_new0(double, count);
    y = g_new0(double, count);
    for (size_t i = 0; i < DUET__USES; i++) {
        const struct duet__use *use = &series->runs[0].uses[i];

        figures[i] = (struct figure){use->kernel, use->arch, use, NULL, NULL};
    }
    memcpy(&figures[DUET__USES], common, sizeof common);
    for (size_t i = 0; i < count; i++)
        y[i] = log(series->runs[i].stats.makespan_s);
    for (size_t f = 0; f < figure_count; f++) {
        double share;

        if (figures[f].use && !(figures[f].use->seconds > 0))
            continue;
        for (size_t i = 0; i < count; i++)
            x[i] = drawn(request, &figures[f], series->runs[i].seed);
        share = common_part(x, y, count);
        if (share > fmax(out->share, least)) {
            out->share = share;
            widest = &figures[f];
        }
    }
    g_free(x);
    g_free(y);
    duet__interval_find(series, &low_s, &high_s);
    out->half = sinh(log(high_s / low_s) / 2);
    out->narrowed = sinh(log(high_s / low_s) / 2 * sqrt(1 - out->share));
    if (!widest)
        return;
    out->use = widest->use;
    out->why = widest->why;
    (void)g_snprintf(out->name, sizeof out->name, "%s%s%s",
                     widest->use ? widest->use->kernel : widest->title, widest->use ? " on " : "",
                     widest->use ? widest->use->arch : "");
}

/* Returns why a kernel's time is not certain, and what would make it so. */
static char *advice_for(const struct duet__request *request, const struct duet__use *use)
{
    static const char *const words[DUET__BASES] =
        {"measured, but in few other problems: calibrate more sizes of matrices",
         "interpolated between measured sizes", "extrapolated beyond measured sizes",
         "estimated, not measured", "guessed"};

    return use->basis == DUET__MEASURED || !request->problem.tile
               ? g_strdup(words[use->basis])
               : g_strdup_printf("%s: calibrate tiles of %" PRIu64, words[use->basis],
                                 request->problem.tile);
}

char *duet__interval_advice(const struct duet__request *request, const struct duet__widest *widest)
{
    g_autofree char *why = NULL;

    if (!*widest->name)
        return g_strdup_printf("+-%.2g %%; no figure stands out", 100 * widest->half);
    why = widest->use ? advice_for(request, widest->use) : g_strdup(widest->why);
    return g_strdup_printf("+-%.2g %%; +-%.2g %% if %s were certain (%.0f %% of the variance; %s)",
                           100 * widest->half, 100 * widest->narrowed, widest->name,
                           100 * widest->share, why);
}
