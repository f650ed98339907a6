/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lower bounds on the makespan of a run. The area bound follows from prices: what a second of each
 * architecture's workers is worth. A task costs at least what it costs where it is cheapest, and no
 * machine earns more than all of its workers do, so that whatever the prices are, the one by the
 * other is a bound. What is computed here is which prices make it the largest.
 */
#include "validate/bounds.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include <glib.h>

#include <duet/machine.h>
#include <duet/trace.h>

/* Classes of the same times. */
struct group {
    double tasks;
    double *times_s; /* of one, by architecture that has workers; INFINITY: cannot run */
};

struct area {
    struct group *groups;
    size_t group_count;
    unsigned *workers; /* of the architectures that have some */
    size_t arch_count;
    double *times_s; /* what the groups point to: 2^-exponent of the times, at most 1 */
    int exponent;
    double *prices; /* by architecture that has workers */
};

static void area_fini(struct area *area)
{
    g_free(area->groups);
    g_free(area->workers);
    g_free(area->times_s);
    g_free(area->prices);
}

/* ------------------------------------------------------------------------------------------- */
/* Groups                                                                                       */

static int by_times(const void *left, const void *right, void *area)
{
    const struct group *a = left, *b = right;

    for (size_t i = 0; i < ((const struct area *)area)->arch_count; i++)
        if (a->times_s[i] != b->times_s[i])
            return a->times_s[i] < b->times_s[i] ? -1 : 1;
    return 0;
}

/* Takes the times of one class where there are workers. False: it can run nowhere. */
static bool add_class(struct area *area, const struct duet_class_stats *class,
                      const unsigned *workers, size_t arch_count)
{
    double *times_s = area->times_s + area->group_count * area->arch_count, *next = times_s;
    double best_s = INFINITY;

    for (size_t a = 0; a < arch_count; a++) {
        if (!workers[a])
            continue;
        *next = class->expected_s[a] > 0 ? class->expected_s[a] : INFINITY;
        best_s = fmin(best_s, *next++);
    }
    area->groups[area->group_count++] = (struct group){(double)class->tasks, times_s};
    return isfinite(best_s);
}

/* Makes all times small, so that no sum of products overflows. No digit changes, and what becomes 0
   is nothing beside the longest. */
static void scale(struct area *area)
{
    double longest_s = 0;

    for (size_t i = 0; i < area->group_count; i++)
        for (size_t a = 0; a < area->arch_count; a++)
            if (isfinite(area->groups[i].times_s[a]))
                longest_s = fmax(longest_s, area->groups[i].times_s[a]);
    (void)frexp(longest_s, &area->exponent);
    for (size_t i = 0; i < area->group_count; i++)
        for (size_t a = 0; a < area->arch_count; a++)
            area->groups[i].times_s[a] = ldexp(area->groups[i].times_s[a], -area->exponent);
}

/* Makes groups of a runtime's classes that have tasks, in order of their times. False: one of them
   can run nowhere. */
static bool area_init(struct area *area, const struct duet_runtime *runtime)
{
    const struct duet_machine *machine = duet_runtime_machine(runtime);
    size_t class_count = duet_class_count(runtime), used = 0;
    unsigned *workers = g_new0(unsigned, machine->arch_count); /* also where there are none */
    bool known = true;

    *area = (struct area){.groups = g_new(struct group, class_count),
                          .workers = g_new(unsigned, machine->arch_count),
                          .times_s = g_new(double, class_count * machine->arch_count),
                          .prices = g_new0(double, machine->arch_count)};
    for (unsigned w = 0; w < machine->worker_count; w++)
        workers[machine->workers[w].arch]++;
    for (size_t a = 0; a < machine->arch_count; a++)
        if (workers[a])
            area->workers[area->arch_count++] = workers[a];
    for (size_t c = 0; c < class_count && known; c++) {
        struct duet_class_stats class; /* its array lasts until the next call only */

        known = !duet_class_stats(runtime, c, &class) &&
                (!class.tasks || add_class(area, &class, workers, machine->arch_count));
    }
    scale(area);
    if (area->group_count)
        g_qsort_with_data(area->groups, (int)area->group_count, sizeof(*area->groups), by_times,
                          area);
    for (size_t i = 0; i < area->group_count; i++)
        if (used && !by_times(&area->groups[used - 1], &area->groups[i], area))
            area->groups[used - 1].tasks += area->groups[i].tasks;
        else
            area->groups[used++] = area->groups[i];
    area->group_count = used;
    g_free(workers);
    return known;
}

/* ------------------------------------------------------------------------------------------- */
/* Prices                                                                                       */

/*
 * What all tasks cost where each is cheapest. `loads_s`, if there is one: how long that keeps the
 * workers of each architecture busy.
 */
static double cost(const struct area *area, const double *prices, double *loads_s)
{
    double sum = 0;

    for (size_t a = 0; loads_s && a < area->arch_count; a++)
        loads_s[a] = 0;
    for (const struct group *g = area->groups; g < area->groups + area->group_count; g++) {
        double cheapest = INFINITY;
        size_t where = 0;

        for (size_t a = 0; a < area->arch_count; a++)
            if (isfinite(g->times_s[a]) && g->times_s[a] * prices[a] < cheapest) {
                cheapest = g->times_s[a] * prices[a];
                where = a;
            }
        sum += g->tasks * cheapest;
        if (loads_s)
            loads_s[where] += g->tasks * g->times_s[where] / area->workers[where];
    }
    return sum;
}

static double ratio(const struct group *group)
{
    return group->times_s[0] > 0 ? group->times_s[0] / group->times_s[1] : 0;
}

static int by_ratio(const void *left, const void *right)
{
    double x = ratio(left), y = ratio(right);

    return (x > y) - (x < y);
}

/* Seconds that all tasks of a group keep an architecture busy; 0 where it cannot run. */
static double load(const struct area *area, const struct group *group, size_t arch)
{
    double seconds = group->times_s[arch];

    return isfinite(seconds) ? group->tasks * seconds / area->workers[arch] : 0;
}

/*
 * Two architectures. Everything that can is on the second, and is moved to the first in order of
 * how much better it is there, until both take equally long. What then is moved in part costs the
 * same on both at the prices: that is what makes them the prices. If nothing is, the time is that
 * of what can run on one of them only.
 */
static void balance(struct area *area, double prices[2])
{
    double first = 0, second = 0;

    qsort(area->groups, area->group_count, sizeof(*area->groups), by_ratio);
    for (size_t i = 0; i < area->group_count; i++)
        second += load(area, &area->groups[i], 1);
    prices[0] = 0;
    prices[1] = 1;
    for (size_t i = 0; i < area->group_count; i++) {
        const struct group *group = &area->groups[i];
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
    double *centre, *shape; /* n, n * n */
    double *normal, *inner; /* n, of a cut; the same in the ball, of length 1 */
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
static size_t share_out(const struct area *area, const struct ellipsoid *e, double *shares,
                        double *prices)
{
    size_t least = e->n;

    shares[e->n] = 1;
    for (size_t a = 0; a < e->n; a++) {
        shares[a] = e->centre[a];
        shares[e->n] -= shares[a];
    }
    for (size_t a = 0; a <= e->n; a++) {
        prices[a] = shares[a] / area->workers[a];
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
static double search(const struct area *area, double *prices, double most_products)
{
    size_t n = area->arch_count - 1;
    double products = (double)area->group_count * (double)(n + 1) + 3 * (double)(n * n);
    double most_steps = fmin(150 * (double)(n * (n + 1)), most_products / products);
    double *room = g_new0(double, n *n + 5 * (n + 1));
    struct ellipsoid e = {n, room, room + n, room + n + n * n, room + 2 * n + n * n};
    double *shares = e.inner + n, *loads_s = shares + n + 1, best = 0;

    for (size_t i = 0; i < n; i++) {
        e.centre[i] = 1 / (double)(n + 1);
        e.shape[i * n + i] = 1; /* all shares are within a distance of 1 */
    }
    for (size_t step = 0; (double)step <= most_steps; step++) {
        size_t least = share_out(area, &e, shares, prices);
        bool inside = shares[least] >= 0;
        double bound = inside ? cost(area, prices, loads_s) : 0, depth, length;

        best = fmax(best, bound);
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

static double bound_of(struct area *area)
{
    const double most_products = 3e8; /* some tenths of a second */
    double income = 0, *prices = area->prices;

    if (area->group_count == 0)
        return 0;
    if (area->arch_count > 2)
        return search(area, prices, most_products);
    prices[0] = 1;
    if (area->arch_count == 2)
        balance(area, prices);
    for (size_t a = 0; a < area->arch_count; a++)
        income += area->workers[a] * prices[a];
    return income > 0 ? cost(area, prices, NULL) / income : 0;
}

struct duet__bounds duet__bounds(const struct duet_runtime *runtime)
{
    struct duet__bounds bounds = {0};
    struct duet_stats stats;
    struct area area;

    if (area_init(&area, runtime)) {
        duet_stats(runtime, &stats);
        bounds =
            (struct duet__bounds){stats.critical_path_s, ldexp(bound_of(&area), area.exponent)};
    }
    if (!isfinite(bounds.critical_path_s) || !isfinite(bounds.area_s))
        bounds = (struct duet__bounds){0};
    area_fini(&area);
    return bounds;
}
