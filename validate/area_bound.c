/* SPDX-License-Identifier: Apache-2.0 */
/* The area bound: in order of the times' ratios for two architectures, by Clp for more. */
#include "validate/bounds.h"

#include <math.h>
#include <stdlib.h>

#include "validate/area_prices.h"

enum { ARCHS_MAX = 64, GROUPS_MAX = 10000000 };

static int no_memory(size_t class_count, struct duet_message *message)
{
    return duet_fail(message, DUET_ENOMEM, "area bound: no memory for %zu classes of tasks",
                     class_count);
}

/* ------------------------------------------------------------------------------------------- */
/* Groups                                                                                       */

static int compare_groups(const void *left, const void *right)
{
    const struct duet__area_group *a = left, *b = right;
    for (size_t i = 0; i < a->arch_count; i++) {
        double x = a->expected_s[i], y = b->expected_s[i];
        if (x < y || x > y)
            return x < y ? -1 : 1;
    }
    return 0;
}

/* Makes groups of the classes that have tasks; room for all classes is there. */
static int make_groups(struct duet__area *area, const struct duet_area_class *classes,
                       size_t class_count, struct duet_message *message)
{
    size_t used = 0;
    for (size_t c = 0; c < class_count; c++) {
        if (!classes[c].tasks)
            continue;
        for (size_t a = 0; a < area->arch_count; a++) {
            if (!isfinite(classes[c].expected_s[a]))
                return duet_fail(message, DUET_EINVAL,
                                 "area bound: the time expected of '%s' on architecture %zu is not "
                                 "a finite number",
                                 classes[c].name, a);
        }
        area->groups[used++] = (struct duet__area_group){.tasks = (double)classes[c].tasks,
                                                         .expected_s = classes[c].expected_s,
                                                         .name = classes[c].name,
                                                         .arch_count = area->arch_count};
    }
    qsort(area->groups, used, sizeof *area->groups, compare_groups);
    for (size_t i = 0; i < used; i++) {
        struct duet__area_group *last = &area->groups[area->group_count];
        if (area->group_count && !compare_groups(last - 1, &area->groups[i]))
            last[-1].tasks += area->groups[i].tasks;
        else
            area->groups[area->group_count++] = area->groups[i];
    }
    return 0;
}

/* Sets the unit: all work, each task where it is fastest. DUET_ENOWORKER if it can run nowhere. */
static int measure_groups(struct duet__area *area, struct duet_message *message)
{
    area->unit_s = 0;
    for (const struct duet__area_group *g = area->groups; g < area->groups + area->group_count;
         g++) {
        double best = INFINITY;
        for (size_t a = 0; a < area->arch_count; a++) {
            if (duet__area_can_run(area, g, a))
                best = fmin(best, g->expected_s[a]);
        }
        if (isinf(best))
            return duet_fail(message, DUET_ENOWORKER,
                             "area bound: no worker can run the %.0f tasks like '%s': the machine "
                             "needs a worker of an architecture with a time for it",
                             g->tasks, g->name);
        area->unit_s += g->tasks * best;
    }
    if (!isfinite(area->unit_s))
        return duet_fail(message, DUET_EINVAL, "area bound: the tasks' times overflow");
    return 0;
}

/* ------------------------------------------------------------------------------------------- */
/* Two architectures: no linear program is needed                                               */

static int compare_ratios(const void *left, const void *right)
{
    const struct duet__area_group *a = left, *b = right;
    return (a->ratio > b->ratio) - (a->ratio < b->ratio);
}

/* Seconds that all tasks of a group take on an architecture; 0 where it cannot run. */
static double load(const struct duet__area *area, const struct duet__area_group *group, size_t arch)
{
    return duet__area_can_run(area, group, arch) ? group->tasks * group->expected_s[arch] : 0;
}

/*
 * The architectures with workers are `one` and `two`. Everything that can is on the second, and is
 * moved to the first in order of how much better it is there, until both take equally long. What
 * then is moved in part costs the same on both at the prices: that is what makes them the prices.
 * If nothing is, the time is that of what can run on one of them only.
 */
static void balance(const struct duet__area *area, size_t one, size_t two, double *prices,
                    double *optimum_s)
{
    double first = 0, second = 0;
    for (struct duet__area_group *g = area->groups; g < area->groups + area->group_count; g++) {
        g->ratio = !duet__area_can_run(area, g, one)   ? INFINITY
                   : !duet__area_can_run(area, g, two) ? 0
                                                       : g->expected_s[one] / g->expected_s[two];
        second += load(area, g, two) / area->workers[two];
    }
    qsort(area->groups, area->group_count, sizeof *area->groups, compare_ratios);
    prices[one] = 0;
    prices[two] = 1;
    *optimum_s = second;
    for (const struct duet__area_group *g = area->groups; g < area->groups + area->group_count;
         g++) {
        double more = load(area, g, one) / area->workers[one],
               less = load(area, g, two) / area->workers[two];
        if (!duet__area_can_run(area, g, one))
            break;
        if (first + more >= second - less) {
            double part =
                duet__area_can_run(area, g, two) ? fmax(0, (second - first) / (more + less)) : 1;
            prices[one] = duet__area_can_run(area, g, two) ? g->expected_s[two] : 1;
            prices[two] = duet__area_can_run(area, g, two) ? g->expected_s[one] : 0;
            *optimum_s = first + part * more;
            break;
        }
        first += more;
        second -= less;
        *optimum_s = second;
    }
}

/* ------------------------------------------------------------------------------------------- */
/* The bound                                                                                    */

/*
 * The bound that prices (per second of each architecture's workers, >= 0) prove: a task costs at
 * least what it costs where it is cheapest, and a second of the whole machine costs `income`.
 */
static double price_bound(const struct duet__area *area, const double *prices)
{
    double cost = 0, income = 0;
    for (size_t a = 0; a < area->arch_count; a++)
        income += area->workers[a] * prices[a];
    for (const struct duet__area_group *g = area->groups; g < area->groups + area->group_count;
         g++) {
        double cheapest = INFINITY;
        for (size_t a = 0; a < area->arch_count; a++) {
            if (duet__area_can_run(area, g, a))
                cheapest = fmin(cheapest, g->expected_s[a] * prices[a]);
        }
        cost += g->tasks * cheapest;
    }
    return income > 0 ? cost / income : 0;
}

/* How many architectures have workers, and the first two of them. */
static size_t find_archs(const struct duet__area *area, size_t archs[2])
{
    size_t count = 0;
    for (size_t a = 0; a < area->arch_count; a++) {
        if (!area->workers[a])
            continue;
        if (count < 2)
            archs[count] = a;
        count++;
    }
    return count;
}

static int prove(struct duet__area *area, double *area_s, struct duet_message *message)
{
    double prices[ARCHS_MAX] = {0}, optimum_s = 0;
    size_t archs[2] = {0, 0};
    size_t count = find_archs(area, archs);
    if (count == 1)
        prices[archs[0]] = 1;
    else if (count == 2)
        balance(area, archs[0], archs[1], prices, &optimum_s);
    else {
        int error = duet__area_prices(area, prices, &optimum_s, message);
        if (error)
            return error;
    }
    double bound = price_bound(area, prices);
    if (count > 1 && !(fabs(bound - optimum_s) <= 1e-5 * optimum_s))
        return duet_fail(message, DUET_ESTUCK,
                         "area bound: the solution for %zu classes of tasks is inaccurate (%g s, "
                         "but %g s can be proved); please report the run",
                         area->group_count, optimum_s, bound);
    *area_s = bound;
    return 0;
}

int duet_area_bound(const struct duet_area_class *classes, size_t class_count,
                    const unsigned *workers, size_t arch_count, double *area_s,
                    struct duet_message *message)
{
    if (!arch_count || arch_count > ARCHS_MAX)
        return duet_fail(message, DUET_EINVAL,
                         "area bound: %zu architectures, 1 to %d are possible", arch_count,
                         ARCHS_MAX);
    if (class_count > GROUPS_MAX)
        return duet_fail(message, DUET_EINVAL, "area bound: %zu classes of tasks, more than %d",
                         class_count, GROUPS_MAX);
    struct duet__area area = {.workers = workers, .arch_count = arch_count};
    area.groups = calloc(class_count + 1, sizeof *area.groups);
    if (!area.groups)
        return no_memory(class_count, message);
    int error = make_groups(&area, classes, class_count, message);
    if (!error)
        error = measure_groups(&area, message);
    if (!error && !area.group_count)
        *area_s = 0;
    else if (!error)
        error = prove(&area, area_s, message);
    free(area.groups);
    return error;
}
