/* SPDX-License-Identifier: Apache-2.0 */
/* Mean ranks, how far they have to differ, and how much a setting changes makespans. */
#include "study/answer.h"

#include <math.h>
#include <string.h>

#include "base/stats.h"

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
    /* a difference as small as rounding errors is none */
    if (all - between < 1e-9 * all)
        return 0;
    return duet__f_tail((double)(cases - 1) * between / (all - between), (double)(levels - 1),
                        (double)(levels - 1) * (double)(cases - 1));
}

static double normal(double z)
{
    return erfc(-z / sqrt(2)) / 2;
}

/* Returns P(range <= q). */
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

/* True if two cells are equal in the first `count` varying settings, but for the `but`-th. */
static bool are_alike(const struct duet__cell *first, const struct duet__cell *second, guint count,
                      guint but)
{
    for (guint i = 0; i < count; i++)
        if (i != but && first->levels[i] != second->levels[i])
            return false;
    return true;
}

struct sorting {
    guint varied, last; /* numbers of settings; cells are sorted by `last` after all others */
};

static int compare_cells(const void *first, const void *second, void *data)
{
    const struct duet__cell *a = *(const struct duet__cell *const *)first;
    const struct duet__cell *b = *(const struct duet__cell *const *)second;
    const struct sorting *sorting = data;
    guint i = 0;
    while (i < sorting->varied && (i == sorting->last || a->levels[i] == b->levels[i]))
        i++;
    i = i < sorting->varied ? i : sorting->last;
    return a->levels[i] < b->levels[i] ? -1 : a->levels[i] > b->levels[i];
}

/* Adds the squares of a problem's logarithms, around their mean. */
static void add_squares(const double *values, size_t count, double *sum)
{
    double mean = 0;
    for (size_t i = 0; i < count; i++)
        mean += values[i] / (double)count;
    for (size_t i = 0; i < count; i++)
        *sum += (values[i] - mean) * (values[i] - mean);
}

/* Writes logarithms of makespans: a row for each case with all levels. Returns the sum of their
   squares, those of each problem around their own mean. */
static double fill(const struct duet__results *results, guint varied, double *values,
                   struct duet__ranking *ranking)
{
    const struct sorting sorting = {results->varied->len, varied};
    const struct duet__cell **cells = g_new(const struct duet__cell *, results->cell_count + 1);
    const struct duet__cell *last = NULL;
    size_t begin = 0, count = 0; /* index of the problem's first value; number of all values */
    double squares = 0;
    for (size_t i = 0; i < results->cell_count; i++)
        cells[i] = &results->cells[i];
    g_qsort_with_data(cells, (gint)results->cell_count, sizeof *cells, compare_cells,
                      (void *)(uintptr_t)&sorting);
    for (size_t i = 0, next; i < results->cell_count; i = next) {
        for (next = i + 1; next < results->cell_count &&
                           are_alike(cells[i], cells[next], sorting.varied, varied);)
            next++;
        if (next - i < ranking->levels) {
            ranking->left_out++;
            continue;
        }
        if (last && !are_alike(last, cells[i], results->problem_varied, varied)) {
            add_squares(values + begin, count - begin, &squares);
            begin = count;
        }
        last = cells[i];
        for (size_t k = i; k < next; k++)
            values[count++] = log(cells[k]->mean_s);
        ranking->cases++;
    }
    add_squares(values + begin, count - begin, &squares);
    g_free(cells);
    return squares;
}

/* Compares one level with each other one, by the logarithms that `fill` has written. */
static void compare_own(struct duet__ranking *ranking, const double *values, char *const *names)
{
    const size_t levels = ranking->levels, cases = ranking->cases;
    double *differences = g_new(double, cases + 1);
    ranking->own = ranking->order[0];
    for (size_t i = levels; i-- > 0;)
        if (strchr(names[ranking->order[i]], '/'))
            ranking->own = ranking->order[i];
    for (size_t i = 0; i < levels; i++) {
        for (size_t c = 0; c < cases; c++)
            differences[c] = values[c * levels + i] - values[c * levels + ranking->own];
        ranking->against[i] = duet__wilcoxon(differences, cases);
    }
    g_free(differences);
    /* the last one takes its place meanwhile */
    ranking->against[ranking->own] = ranking->against[levels - 1];
    duet__holm(ranking->against, levels - 1);
    ranking->against[levels - 1] = ranking->against[ranking->own];
    ranking->against[ranking->own] = NAN;
}

void duet__rank(const struct duet__results *results, guint varied, struct duet__ranking *ranking)
{
    const GPtrArray *names = duet__varied(results, varied)->levels.list;
    const size_t levels = names->len;
    double *values = g_new0(double, results->cell_count + 1), squares, own = 0;
    *ranking = (struct duet__ranking){.levels = levels,
                                      .ranks = g_new0(double, levels),
                                      .ratios = g_new0(double, levels),
                                      .against = g_new0(double, levels),
                                      .order = g_new0(size_t, levels)};
    squares = fill(results, varied, values, ranking);
    ranking->p = duet__friedman(values, ranking->cases, levels, ranking->ranks);
    ranking->distance = duet__nemenyi(levels, ranking->cases);
    for (size_t c = 0; c < ranking->cases; c++)
        for (size_t i = 0; i < levels; i++)
            for (size_t k = 0; k < levels; k++)
                ranking->ratios[i] += (values[c * levels + i] - values[c * levels + k]) /
                                      (double)(levels * ranking->cases);
    for (size_t i = 0; i < levels; i++) {
        size_t place = 0;
        own += (double)ranking->cases * ranking->ratios[i] * ranking->ratios[i];
        ranking->ratios[i] = exp(ranking->ratios[i]);
        for (size_t k = 0; k < levels; k++)
            place += ranking->ranks[k] < ranking->ranks[i] ||
                     (k < i && ranking->ranks[k] <= ranking->ranks[i]);
        ranking->order[place] = i;
    }
    compare_own(ranking, values, (char **)names->pdata);
    g_free(values);
    ranking->share = squares > 0 ? fmin(own / squares, 1) : 0;
}

void duet__ranking_fini(struct duet__ranking *ranking)
{
    g_free(ranking->ranks);
    g_free(ranking->ratios);
    g_free(ranking->against);
    g_free(ranking->order);
}
