/* SPDX-License-Identifier: Apache-2.0 */
/* The area bound, as a linear program for Clp. */
#include "validate/bounds.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include <coin/Clp_C_Interface.h>

enum { ARCHS_MAX = 64, GROUPS_MAX = 10000000, PATIENCE_S = 60 };

/* Clp's status of a model. */
enum { OPTIMAL = 0, STOPPED = 3 };

/* Classes of equal times, merged. */
struct group {
    double tasks;
    const double *expected_s; /* that of one of the classes */
    const char *name;
    size_t arch_count; /* for the comparison */
};

/*
 * The linear program. Its variables are T and, for each group and each architecture that can run it
 * but the group's first, the work that runs there, measured in the first architecture's seconds;
 * the first gets the rest. A group that one or two architectures can run thus needs no row of its
 * own, and the coefficients are ratios of times, whatever the size of the group.
 */
struct program {
    struct group *groups;
    size_t group_count;
    const unsigned *workers;
    size_t arch_count;
    double unit_s; /* of T and of all work: the whole work's order of magnitude */
};

/* The program as Clp takes it: column after column, T first. All arrays are in one block. */
struct columns {
    int count, coefficients;
    size_t row_count; /* an architecture each, then the groups that have a row of their own */
    double *values, *upper, *objective, *row_upper;
    int *starts, *rows;
};

static int no_memory(size_t class_count, struct duet_message *message)
{
    return duet_fail(message, DUET_ENOMEM, "area bound: no memory for %zu classes of tasks",
                     class_count);
}

/* ------------------------------------------------------------------------------------------- */
/* Groups                                                                                       */

static int compare_groups(const void *left, const void *right)
{
    const struct group *a = left, *b = right;
    for (size_t i = 0; i < a->arch_count; i++) {
        double x = a->expected_s[i], y = b->expected_s[i];
        if (x < y || x > y)
            return x < y ? -1 : 1;
    }
    return 0;
}

/* Makes groups of the classes that have tasks; room for all classes is there. */
static int make_groups(struct program *p, const struct duet_area_class *classes, size_t class_count,
                       struct duet_message *message)
{
    size_t used = 0;
    for (size_t c = 0; c < class_count; c++) {
        if (!classes[c].tasks)
            continue;
        for (size_t a = 0; a < p->arch_count; a++) {
            if (!isfinite(classes[c].expected_s[a]))
                return duet_fail(message, DUET_EINVAL,
                                 "area bound: the time expected of '%s' on architecture %zu is not "
                                 "a finite number",
                                 classes[c].name, a);
        }
        p->groups[used++] = (struct group){(double)classes[c].tasks, classes[c].expected_s,
                                           classes[c].name, p->arch_count};
    }
    qsort(p->groups, used, sizeof *p->groups, compare_groups);
    for (size_t i = 0; i < used; i++) {
        struct group *last = &p->groups[p->group_count];
        if (p->group_count && !compare_groups(last - 1, &p->groups[i]))
            last[-1].tasks += p->groups[i].tasks;
        else
            p->groups[p->group_count++] = p->groups[i];
    }
    return 0;
}

static bool can_run(const struct program *p, const struct group *group, size_t arch)
{
    return p->workers[arch] && group->expected_s[arch] > 0;
}

/* The first architecture that can run the group, arch_count if none can. */
static size_t first_arch(const struct program *p, const struct group *group)
{
    size_t a = 0;
    while (a < p->arch_count && !can_run(p, group, a))
        a++;
    return a;
}

/* Sets the unit: all work, each task where it is fastest. DUET_ENOWORKER if it can run nowhere. */
static int measure_groups(struct program *p, struct duet_message *message)
{
    p->unit_s = 0;
    for (const struct group *g = p->groups; g < p->groups + p->group_count; g++) {
        double best = INFINITY;
        for (size_t a = 0; a < p->arch_count; a++) {
            if (can_run(p, g, a))
                best = fmin(best, g->expected_s[a]);
        }
        if (isinf(best))
            return duet_fail(message, DUET_ENOWORKER,
                             "area bound: no worker can run the %.0f tasks like '%s': the machine "
                             "needs a worker of an architecture with a time for it",
                             g->tasks, g->name);
        p->unit_s += g->tasks * best;
    }
    if (!isfinite(p->unit_s))
        return duet_fail(message, DUET_EINVAL, "area bound: the tasks' times overflow");
    return 0;
}

/* ------------------------------------------------------------------------------------------- */
/* The linear program                                                                           */

static size_t count_places(const struct program *p, const struct group *group)
{
    size_t places = 0;
    for (size_t a = 0; a < p->arch_count; a++)
        places += can_run(p, group, a);
    return places;
}

static void put_coefficient(struct columns *columns, size_t row, double value)
{
    columns->rows[columns->coefficients] = (int)row;
    columns->values[columns->coefficients++] = value;
}

/* Ends the column whose coefficients were put: a variable between 0 and `upper`. */
static void end_column(struct columns *columns, double upper)
{
    columns->upper[columns->count++] = upper;
    columns->starts[columns->count] = columns->coefficients;
}

/* Adds the variables of one group. Returns the first architecture's load if it runs everything. */
static double add_group(struct columns *columns, const struct program *p, const struct group *group,
                        size_t first)
{
    double base = group->tasks * group->expected_s[first] / p->unit_s;
    bool sum = count_places(p, group) > 2; /* with two, the one variable's own bounds suffice */
    if (base <= 0)
        return 0; /* too little to be told from nothing beside the rest */
    for (size_t a = first + 1; a < p->arch_count; a++) {
        if (!can_run(p, group, a))
            continue;
        put_coefficient(columns, first, -1);
        put_coefficient(columns, a, group->expected_s[a] / group->expected_s[first]);
        if (sum)
            put_coefficient(columns, columns->row_count, 1);
        end_column(columns, base);
    }
    if (sum)
        columns->row_upper[columns->row_count++] = base;
    return base;
}

/* Row a: what is moved to and from a - workers_a * T <= -(load of a if nothing were moved). */
static void fill_columns(struct columns *columns, const struct program *p)
{
    columns->row_count = p->arch_count;
    columns->objective[0] = 1; /* the first column is T */
    for (size_t a = 0; a < p->arch_count; a++)
        put_coefficient(columns, a, -(double)p->workers[a]);
    end_column(columns, HUGE_VAL);
    for (const struct group *g = p->groups; g < p->groups + p->group_count; g++) {
        size_t first = first_arch(p, g);
        columns->row_upper[first] -= add_group(columns, p, g, first);
    }
}

/*
 * The bound that prices (per second of each architecture's workers, >= 0) prove: a task costs at
 * least what it costs where it is cheapest, and a second of the whole machine costs `income`.
 */
static double price_bound(const struct program *p, const double *prices)
{
    double cost = 0, income = 0;
    for (size_t a = 0; a < p->arch_count; a++)
        income += p->workers[a] * prices[a];
    for (const struct group *g = p->groups; g < p->groups + p->group_count; g++) {
        double cheapest = INFINITY;
        for (size_t a = 0; a < p->arch_count; a++) {
            if (can_run(p, g, a))
                cheapest = fmin(cheapest, g->expected_s[a] * prices[a]);
        }
        cost += g->tasks * cheapest;
    }
    return income > 0 ? cost / income : 0;
}

/* Room for what the groups can need at most. false: there is none. */
static bool columns_init(struct columns *columns, const struct program *p)
{
    size_t variables = 1 + p->group_count * (p->arch_count - 1);
    size_t rows = p->arch_count + p->group_count;
    size_t coefficients = p->arch_count + 3 * variables;
    double *block = calloc(1, (coefficients + 2 * variables + rows) * sizeof *block +
                                  (coefficients + variables + 1) * sizeof *columns->rows);
    if (!block)
        return false;
    *columns = (struct columns){.values = block,
                                .upper = block + coefficients,
                                .objective = block + coefficients + variables,
                                .row_upper = block + coefficients + 2 * variables};
    columns->starts = (int *)(void *)(columns->row_upper + rows);
    columns->rows = columns->starts + variables + 1;
    return true;
}

static void columns_fini(struct columns *columns)
{
    free(columns->values);
}

/* Solves it. Sets the prices that the rows of the architectures have, and the optimum found. */
static int solve(const struct program *p, const struct columns *columns, double *prices,
                 double *optimum, struct duet_message *message)
{
    Clp_Simplex *model = Clp_newModel();
    Clp_setLogLevel(model, 0);
    Clp_setMaximumSeconds(model, PATIENCE_S);
    Clp_loadProblem(model, columns->count, (int)columns->row_count, columns->starts, columns->rows,
                    columns->values, NULL, columns->upper, columns->objective, NULL,
                    columns->row_upper);
    Clp_dual(model, 0);
    int status = Clp_status(model), error = 0;
    const double *duals = Clp_dualRowSolution(model);
    for (size_t a = 0; a < p->arch_count; a++)
        prices[a] = fmax(0, -duals[a]);
    *optimum = Clp_objectiveValue(model);
    Clp_deleteModel(model);
    if (status == STOPPED)
        error = duet_fail(message, DUET_ESTUCK,
                          "area bound: Clp did not solve it for %zu classes of tasks in %d s: try "
                          "fewer different data sizes",
                          p->group_count, PATIENCE_S);
    else if (status != OPTIMAL)
        error = duet_fail(message, DUET_ESTUCK,
                          "area bound: Clp found no solution for %zu classes of tasks (status "
                          "%d); please report the run",
                          p->group_count, status);
    return error;
}

static int solve_program(const struct program *p, double *area_s, struct duet_message *message)
{
    double prices[ARCHS_MAX], optimum = 0;
    struct columns columns;
    if (!columns_init(&columns, p))
        return no_memory(p->group_count, message);
    fill_columns(&columns, p);
    int error = solve(p, &columns, prices, &optimum, message);
    columns_fini(&columns);
    if (error)
        return error;
    double bound = price_bound(p, prices), claimed = optimum * p->unit_s;
    if (!(fabs(bound - claimed) <= 1e-5 * claimed))
        return duet_fail(message, DUET_ESTUCK,
                         "area bound: Clp's solution for %zu classes of tasks is inaccurate "
                         "(%g s, but %g s can be proved); please report the run",
                         p->group_count, claimed, bound);
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
    struct program p = {.workers = workers, .arch_count = arch_count};
    p.groups = calloc(class_count + 1, sizeof *p.groups);
    if (!p.groups)
        return no_memory(class_count, message);
    int error = make_groups(&p, classes, class_count, message);
    if (!error)
        error = measure_groups(&p, message);
    if (!error && !p.group_count)
        *area_s = 0;
    else if (!error)
        error = solve_program(&p, area_s, message);
    free(p.groups);
    return error;
}
