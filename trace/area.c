/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The area bound follows from prices: what a second of each architecture's workers is worth. A task
 * costs at least what it costs where it is cheapest, and no machine earns more than all of its
 * workers do, so that whatever the prices are, the one by the other is a bound. What is computed
 * here is which prices make it the largest.
 */
#include "trace/bounds.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

/* ------------------------------------------------------------------------------------------- */
/* Classes                                                                                      */

/* Takes the times of one class where there are workers. false: it can run nowhere. */
static bool take_class(struct duet__classes *classes, size_t index, const double *class,
                       const double *workers, size_t arch_count)
{
    double *next = classes->times_s + index * classes->arch_count, best_s = INFINITY;
    classes->tasks[index] = class[0];
    for (size_t a = 1; a <= arch_count; a++) {
        if (!(workers[a] > 0))
            continue;
        *next = class[a] > 0 ? class[a] : INFINITY;
        best_s = fmin(best_s, *next++);
    }
    classes->best_s[index] = class[0] > 0 ? best_s : 0;
    return !(class[0] > 0) || isfinite(best_s);
}

/* Makes all times small, so that no sum of products overflows. No digit changes, and what becomes 0
   is nothing beside the longest. */
static void scale(struct duet__classes *classes)
{
    size_t count = classes->count * classes->arch_count;
    double longest_s = 0;
    for (size_t i = 0; i < count; i++)
        if (classes->tasks[i / classes->arch_count] > 0 && isfinite(classes->times_s[i]))
            longest_s = fmax(longest_s, classes->times_s[i]);
    (void)frexp(longest_s, &classes->exponent);
    for (size_t i = 0; i < count; i++)
        classes->times_s[i] = ldexp(classes->times_s[i], -classes->exponent);
    for (size_t c = 0; c < classes->count; c++)
        classes->best_s[c] = ldexp(classes->best_s[c], -classes->exponent);
}

bool duet__classes_make(struct duet__classes *classes, const struct duet__node_classes *nodes,
                        unsigned node_count)
{
    const size_t archs = nodes[0].arch_count, row = 1 + archs;
    size_t count = 0, taken = 0;
    double *sums = g_new0(double, 2 * row); /* workers, and those of devices */
    bool known = true;
    for (unsigned i = 0; i < node_count; i++) {
        known &= nodes[i].arch_count == archs && (nodes[i].rows || !nodes[i].count);
        count += nodes[i].count;
        for (size_t k = 0; known && nodes[i].rows && k < 2 * row; k++)
            sums[k] += nodes[i].rows[k];
    }
    *classes = (struct duet__classes){.count = count,
                                      .workers = g_new(unsigned, archs),
                                      .device = g_new0(bool, archs),
                                      .tasks = g_new0(double, count),
                                      .times_s = g_new0(double, count *archs),
                                      .best_s = g_new0(double, count)};
    for (size_t a = 1; a <= archs; a++)
        if (sums[a] > 0) {
            classes->device[classes->arch_count] = !(sums[row + a] < sums[a]);
            classes->workers[classes->arch_count++] = (unsigned)sums[a];
        }
    for (unsigned i = 0; i < node_count && known; i++)
        for (size_t c = 0; known && nodes[i].rows && c < nodes[i].count; c++)
            known = take_class(classes, taken++, nodes[i].rows + (2 + c) * row, sums, archs);
    scale(classes);
    g_free(sums);
    return known;
}

void duet__classes_free(struct duet__classes *classes)
{
    g_free(classes->workers);
    g_free(classes->device);
    g_free(classes->tasks);
    g_free(classes->times_s);
    g_free(classes->best_s);
}

/* ------------------------------------------------------------------------------------------- */
/* Tasks                                                                                        */

struct duet__area duet__area_new(const struct duet__classes *classes, bool link)
{
    return (struct duet__area){.of = classes,
                               .link = link,
                               .prices = g_new0(double, classes->arch_count + link)};
}

void duet__area_fini(struct duet__area *area)
{
    g_free(area->groups);
    g_free(area->prices);
}

static int by_times(const void *left, const void *right, void *area)
{
    const struct duet__area_tasks *a = left, *b = right;
    for (size_t i = 0; i < ((const struct duet__area *)area)->of->arch_count; i++)
        if (a->times_s[i] != b->times_s[i])
            return a->times_s[i] < b->times_s[i] ? -1 : 1;
    return (a->link_s > b->link_s) - (a->link_s < b->link_s);
}

/* Joins groups that are alike. */
static void merge(struct duet__area *area)
{
    size_t used = 0;
    if (area->group_count)
        g_qsort_with_data(area->groups, (int)area->group_count, sizeof(*area->groups), by_times,
                          area);
    for (size_t i = 0; i < area->group_count; i++)
        if (used && !by_times(&area->groups[used - 1], &area->groups[i], area))
            area->groups[used - 1].tasks += area->groups[i].tasks;
        else
            area->groups[used++] = area->groups[i];
    area->group_count = used;
}

/* Takes so many tasks of each class. */
void duet__area_fill(struct duet__area *area, const double *counts)
{
    const struct duet__classes *of = area->of;
    g_free(area->groups);
    area->groups = g_new(struct duet__area_tasks, of->count);
    area->group_count = 0;
    for (size_t c = 0; c < of->count; c++)
        if (counts[c] > 0)
            area->groups[area->group_count++] =
                (struct duet__area_tasks){counts[c], 0, of->times_s + c * of->arch_count};
}

/* ------------------------------------------------------------------------------------------- */
/* Prices                                                                                       */

/* Returns what a task costs where it is cheapest; *where: that architecture. */
double duet__area_cost(const struct duet__area *area, const double *times_s, double link_s,
                       const double *prices, size_t *where)
{
    const struct duet__classes *of = area->of;
    double least = INFINITY;
    *where = 0;
    for (size_t a = 0; a < of->arch_count; a++) {
        double price = times_s[a] * prices[a];
        if (area->link && of->device[a])
            price += link_s * prices[of->arch_count];
        if (isfinite(times_s[a]) && price < least) {
            least = price;
            *where = a;
        }
    }
    return least;
}

/*
 * Returns what all tasks cost where each is cheapest. `loads_s`, if not NULL: seconds that this
 * keeps the workers of each architecture busy.
 */
static double cost(const struct duet__area *area, const double *prices, double *loads_s)
{
    const struct duet__classes *of = area->of;
    double sum = 0;
    for (size_t a = 0; loads_s && a < of->arch_count + area->link; a++)
        loads_s[a] = a < of->arch_count ? 0 : -area->spare_s;
    for (const struct duet__area_tasks *g = area->groups; g < area->groups + area->group_count;
         g++) {
        size_t where;
        sum += g->tasks * duet__area_cost(area, g->times_s, g->link_s, prices, &where);
        if (loads_s)
            loads_s[where] += g->tasks * g->times_s[where] / of->workers[where];
        if (loads_s && area->link && of->device[where])
            loads_s[of->arch_count] += g->tasks * g->link_s;
    }
    if (area->link)
        sum -= area->spare_s * prices[of->arch_count];
    return sum;
}

static double ratio(const struct duet__area_tasks *group)
{
    return group->times_s[0] > 0 ? group->times_s[0] / group->times_s[1] : 0;
}

static int by_ratio(const void *left, const void *right)
{
    double x = ratio(left), y = ratio(right);
    return (x > y) - (x < y);
}

/* Seconds that all tasks of a group keep an architecture busy; 0 where it cannot run. */
static double load(const struct duet__area *area, const struct duet__area_tasks *group, size_t arch)
{
    double seconds = group->times_s[arch];
    return isfinite(seconds) ? group->tasks * seconds / area->of->workers[arch] : 0;
}

/*
 * Two architectures. Everything that can is on the second, and is moved to the first in order of
 * how much better it is there, until both take equally long. What then is moved in part costs the
 * same on both at the prices: that is what makes them the prices. If nothing is, the time is that
 * of what can run on one of them only.
 */
static void balance(struct duet__area *area, double prices[2])
{
    double first = 0, second = 0;
    qsort(area->groups, area->group_count, sizeof(*area->groups), by_ratio);
    for (size_t i = 0; i < area->group_count; i++)
        second += load(area, &area->groups[i], 1);
    prices[0] = 0;
    prices[1] = 1;
    for (size_t i = 0; i < area->group_count; i++) {
        const struct duet__area_tasks *group = &area->groups[i];
        bool both = isfinite(group->times_s[1]);
        if (isinf(group->times_s[0]))
            return;
        first += load(area, group, 0);
        second -= load(area, group, 1);
        if (first >= second) {
            prices[0] = both ? group->times_s[1] : 1;
            prices[1] = both ? group->times_s[0] : 0;
            return;
        }
    }
}

/* An ellipsoid in `n` dimensions that has the best shares in it: centre + shape * (unit ball). */
struct ellipsoid {
    size_t n;
    double *centre, *shape; /* vector of n, matrix of n * n elements */
    double *normal;         /* n elements: normal of a cut */
    double *inner;          /* n elements: the unit vector that the normal is in the ball */
};

/* Half of what the ellipsoid extends along the normal, and sets what that is in the ball. */
static double half_length(struct ellipsoid *e)
{
    double square = 0;
    for (size_t k = 0; k < e->n; k++) {
        e->inner[k] = 0;
        for (size_t i = 0; i < e->n; i++)
            e->inner[k] += e->shape[i * e->n + k] * e->normal[i];
        square += e->inner[k] * e->inner[k];
    }
    for (size_t k = 0; k < e->n; k++)
        e->inner[k] /= sqrt(square);
    return sqrt(square);
}

/*
 * The smallest ellipsoid around the part of it that lies beyond the cut, whose distance from the
 * centre is `depth` of the half length along its normal.
 */
static void cut(struct ellipsoid *e, double depth)
{
    double n = (double)e->n, step = (1 + n * depth) / (n + 1);
    double across = n * sqrt((1 - depth * depth) / (n * n - 1));
    double along = n * (1 - depth) / (n + 1);
    for (size_t i = 0; i < e->n; i++) {
        double *row = &e->shape[i * e->n], axis = 0;
        for (size_t k = 0; k < e->n; k++)
            axis += row[k] * e->inner[k];
        e->centre[i] += step * axis;
        for (size_t k = 0; k < e->n; k++)
            row[k] = across * row[k] + (along - across) * axis * e->inner[k];
    }
}

/* Shares of the architectures in what the machine earns, and what a second of a worker then is
   worth. Returns the architecture with the least share. */
static size_t share_out(const struct duet__area *area, const struct ellipsoid *e, double *shares,
                        double *prices)
{
    size_t least = e->n;
    shares[e->n] = 1;
    for (size_t a = 0; a < e->n; a++) {
        shares[a] = e->centre[a];
        shares[e->n] -= shares[a];
    }
    for (size_t a = 0; a <= e->n; a++) {
        prices[a] = shares[a] / (a < area->of->arch_count ? area->of->workers[a] : 1);
        if (shares[a] < shares[least])
            least = a;
    }
    return least;
}

/*
 * More architectures, by the ellipsoid method (Bland, Goldfarb, Todd, "The ellipsoid method: a
 * survey", Operations Research 29(6), 1981). The bound is a concave function of the shares that all
 * but the last architecture have in what the machine earns a second; moving share to one whose load
 * is longer raises it. Each step leaves the part of an ellipsoid where it can be larger than the
 * best so far, until it can be so by a part of 10^12 only, or rounding hides what is left, or it
 * has taken as long as anybody would wait for it.
 */
static double search(struct duet__area *area, double most_products)
{
    size_t n = area->of->arch_count + area->link - 1;
    double products = (double)area->group_count * (double)(n + 1) + 3 * (double)(n * n);
    double most_steps = fmin(150 * (double)(n * (n + 1)), most_products / products);
    double *room = g_new0(double, n *n + 6 * (n + 1));
    struct ellipsoid e = {n, room, room + n, room + n + n * n, room + 2 * n + n * n};
    double *shares = e.inner + n, *loads_s = shares + n + 1, *prices = loads_s + n + 1, best = 0;
    for (size_t i = 0; i < n; i++) {
        e.centre[i] = 1 / (double)(n + 1);
        e.shape[i * n + i] = 1; /* a distance of 1 from the centre holds all shares */
    }
    for (size_t step = 0; (double)step <= most_steps; step++) {
        size_t least = share_out(area, &e, shares, prices);
        bool inside = shares[least] >= 0;
        double bound = inside ? cost(area, prices, loads_s) : 0, depth, length;
        if (bound > best) {
            best = bound;
            memcpy(area->prices, prices, (n + 1) * sizeof(*prices));
        }
        for (size_t i = 0; i < n; i++)
            e.normal[i] = inside ? loads_s[i] - loads_s[n] : least == n ? -1 : i == least;
        length = half_length(&e);
        depth = (inside ? best - bound : -shares[least]) / length;
        if (!(depth < 1) || (inside && bound + length <= best * (1 + 1e-12)))
            break;
        cut(&e, depth);
    }
    g_free(room);
    return best;
}

/* Sets the prices, of which the machine earns 1 a second. */
double duet__area_bound(struct duet__area *area, double most_products)
{
    const struct duet__classes *of = area->of;
    double income = 0, *prices = area->prices;
    merge(area);
    if (area->group_count == 0)
        return 0;
    if (of->arch_count + area->link > 2)
        return search(area, most_products);
    prices[0] = 1;
    if (of->arch_count == 2)
        balance(area, prices);
    for (size_t a = 0; a < of->arch_count; a++)
        income += of->workers[a] * prices[a];
    for (size_t a = 0; a < of->arch_count; a++)
        prices[a] = income > 0 ? prices[a] / income : 0;
    return income > 0 ? cost(area, prices, NULL) : 0;
}
