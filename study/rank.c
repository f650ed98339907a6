/* SPDX-License-Identifier: Apache-2.0 */
/* Mean ranks, how far they have to differ, and how much a setting changes makespans. */
#include "study/rank.h"

#include <math.h>

#include "validate/stats.h"

/* ------------------------------------------------------------------------------------------- */
/* Statistics                                                                                   */

double duet__friedman(const double *values, size_t cases, size_t levels, double *ranks)
{
    const double middle = (double)(levels + 1) / 2;
    double between = 0, all = 0; /* squares of ranks' distances from the middle */

    for (size_t i = 0; i < levels; i++)
        ranks[i] = 0;
    for (size_t c = 0; c < cases; c++) {
        const double *own = values + c * levels;

        for (size_t i = 0; i < levels; i++) {
            double rank = 0.5;

            for (size_t k = 0; k < levels; k++)
                rank += own[k] < own[i] ? 1 : own[k] > own[i] ? 0 : 0.5;
            ranks[i] += rank;
            all += (rank - middle) * (rank - middle);
        }
    }
    for (size_t i = 0; i < levels; i++) {
        ranks[i] /= (double)cases;
        between += (double)cases * (ranks[i] - middle) * (ranks[i] - middle);
    }
    if (cases < 2)
        return NAN;
    if (!(all > 0))
        return 1;
    /* what rounding leaves of nothing is nothing */
    if (all - between < 1e-9 * all)
        return 0;
    return duet__f_tail((double)(cases - 1) * between / (all - between), (double)(levels - 1),
                        (double)(levels - 1) * (double)(cases - 1));
}

static double normal(double z)
{
    return erfc(-z / sqrt(2)) / 2;
}

/* P(range <= q). */
static double range_below(double q, size_t count)
{
    const double step = 1.0 / 32, pi = 3.14159265358979323846;
    const int reach = 9 * 32; /* beyond 9 standard deviations there is nothing */
    double sum = 0;

    for (int i = -reach; i <= reach; i++) {
        const double z = i * step;

        sum += exp(-z * z / 2) * pow(normal(z) - normal(z - q), (double)(count - 1));
    }
    return (double)count * sum * step / sqrt(2 * pi);
}

double duet__range_quantile(double p, size_t count)
{
    double low = 0, high = 40;

    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;

        if (range_below(middle, count) < p)
            low = middle;
        else
            high = middle;
    }
    return high;
}

double duet__nemenyi(size_t levels, size_t cases)
{
    const double count = (double)levels;

    return duet__range_quantile(0.95, levels) / sqrt(2) *
           sqrt(count * (count + 1) / (6 * (double)cases));
}

/* ------------------------------------------------------------------------------------------- */
/* Cases                                                                                        */

/* What cells are sorted by: settings of the problem, then the others, last the one compared. */
struct keys {
    const struct duet__results *results;
    GArray *varied; /* guint */
    guint problems; /* settings of these come first */
};

/* The first of the keys in which two cells differ. */
static guint differ(const struct keys *keys, guint first, guint second)
{
    guint i = 0;

    for (; i < keys->varied->len; i++) {
        const guint varied = g_array_index(keys->varied, guint, i);

        if (duet__level(keys->results, first, varied) != duet__level(keys->results, second, varied))
            break;
    }
    return i;
}

static int compare_cells(const void *first, const void *second, void *data)
{
    const struct keys *keys = data;
    const guint a = *(const guint *)first, b = *(const guint *)second, at = differ(keys, a, b);
    guint varied;

    if (at == keys->varied->len)
        return 0;
    varied = g_array_index(keys->varied, guint, at);
    return duet__level(keys->results, a, varied) < duet__level(keys->results, b, varied) ? -1 : 1;
}

/* Logarithms of makespans: a row for each case that has all levels, and where problems begin. */
struct matrix {
    GArray *values; /* double */
    GArray *begins; /* guint: rows */
};

static void fill(struct matrix *matrix, const struct keys *keys, const GArray *order,
                 struct duet__ranking *ranking)
{
    const guint *cells = (const guint *)(const void *)order->data;
    guint last = 0; /* the last case's first cell */

    for (guint i = 0, next; i < order->len; i = next) {
        for (next = i + 1;
             next < order->len && differ(keys, cells[i], cells[next]) == keys->varied->len - 1;)
            next++;
        if (next - i < ranking->levels) {
            ranking->left_out++;
            continue;
        }
        if (!ranking->cases || differ(keys, last, cells[i]) < keys->problems)
            g_array_append_val(matrix->begins, ranking->cases);
        for (guint k = i; k < next; k++) {
            const double value = log(duet__cell(keys->results, cells[k])->mean_s);

            g_array_append_val(matrix->values, value);
        }
        last = cells[i];
        ranking->cases++;
    }
    g_array_append_val(matrix->begins, ranking->cases);
}

/* Ratios of the levels, and how much of the variance they are. */
static void find_effects(const struct matrix *matrix, struct duet__ranking *ranking)
{
    const double *values = (const double *)(const void *)matrix->values->data;
    const guint levels = ranking->levels;
    double own = 0, all = 0;

    for (guint p = 0; p + 1 < matrix->begins->len; p++) {
        const struct duet__summary summary =
            duet__summarise(values + g_array_index(matrix->begins, guint, p) * levels,
                            (g_array_index(matrix->begins, guint, p + 1) -
                             g_array_index(matrix->begins, guint, p)) *
                                levels);

        all += summary.deviation * summary.deviation * (double)(summary.count - 1);
    }
    for (guint c = 0; c < ranking->cases; c++) {
        double mean = 0;

        for (guint i = 0; i < levels; i++)
            mean += values[c * levels + i] / levels;
        for (guint i = 0; i < levels; i++)
            ranking->ratios[i] += (values[c * levels + i] - mean) / ranking->cases;
    }
    for (guint i = 0; i < levels; i++) {
        own += ranking->cases * ranking->ratios[i] * ranking->ratios[i];
        ranking->ratios[i] = exp(ranking->ratios[i]);
    }
    ranking->share = all > 0 ? fmin(own / all, 1) : 0;
}

static int compare_ranks(const void *first, const void *second, void *data)
{
    const struct duet__ranking *ranking = data;
    const guint a = *(const guint *)first, b = *(const guint *)second;

    if (ranking->ranks[a] < ranking->ranks[b] || ranking->ranks[a] > ranking->ranks[b])
        return ranking->ranks[a] < ranking->ranks[b] ? -1 : 1;
    return a < b ? -1 : 1;
}

void duet__rank(const struct duet__results *results, guint varied, struct duet__ranking *ranking)
{
    const guint levels = duet__varied(results, varied)->levels->len;
    struct keys keys = {.results = results, .varied = g_array_new(FALSE, FALSE, sizeof(guint))};
    struct matrix matrix = {g_array_new(FALSE, FALSE, sizeof(double)),
                            g_array_new(FALSE, FALSE, sizeof(guint))};
    g_autoptr(GArray) order = g_array_new(FALSE, FALSE, sizeof(guint));

    *ranking = (struct duet__ranking){.levels = levels,
                                      .ranks = g_new0(double, levels),
                                      .ratios = g_new0(double, levels),
                                      .order = g_new0(guint, levels)};
    for (guint i = 0; i < results->varied->len; i++) {
        const bool problem = duet__varied(results, i)->problem;

        if (i != varied)
            g_array_insert_val(keys.varied, problem ? keys.problems : keys.varied->len, i);
        keys.problems += i != varied && problem;
    }
    g_array_append_val(keys.varied, varied);
    for (guint i = 0; i < results->cells->len; i++)
        g_array_append_val(order, i);
    g_array_sort_with_data(order, compare_cells, &keys);
    fill(&matrix, &keys, order, ranking);
    ranking->p = duet__friedman((const double *)(const void *)matrix.values->data, ranking->cases,
                                levels, ranking->ranks);
    find_effects(&matrix, ranking);
    ranking->distance = duet__nemenyi(levels, ranking->cases);
    for (guint i = 0; i < levels; i++)
        ranking->order[i] = i;
    g_qsort_with_data(ranking->order, (gint)levels, sizeof *ranking->order, compare_ranks, ranking);
    g_array_unref(matrix.values);
    g_array_unref(matrix.begins);
    g_array_unref(keys.varied);
}

void duet__ranking_fini(struct duet__ranking *ranking)
{
    g_free(ranking->ranks);
    g_free(ranking->ratios);
    g_free(ranking->order);
}
