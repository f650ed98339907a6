/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The area bound as a linear program for Clp. Its variables are T and, for each group and each
 * architecture that can run it but the group's first, the work that runs there, measured in the
 * first architecture's seconds; the first gets the rest. A group that one or two architectures can
 * run thus needs no row of its own, and the coefficients are ratios of times, whatever the size of
 * the group.
 */
#include "validate/area_prices.h"

#include <math.h>
#include <stdlib.h>

#include <coin/Clp_C_Interface.h>

enum { PATIENCE_S = 60 };
static const double TOLERANCE = 1e-9;

/* Clp's status of a model. */
enum { OPTIMAL = 0, STOPPED = 3 };

/* The program as Clp takes it: column after column, T first. All arrays are in one block. */
struct columns {
    int count, coefficients;
    size_t row_count; /* an architecture each, then the groups that have a row of their own */
    double *values, *upper, *objective, *row_upper;
    int *starts, *rows;
};

/* The first architecture that can run the group, arch_count if none can. */
static size_t first_arch(const struct duet__area *area, const struct duet__area_group *group)
{
    size_t a = 0;
    while (a < area->arch_count && !duet__area_can_run(area, group, a))
        a++;
    return a;
}

static size_t count_places(const struct duet__area *area, const struct duet__area_group *group)
{
    size_t places = 0;
    for (size_t a = 0; a < area->arch_count; a++)
        places += duet__area_can_run(area, group, a);
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
static double add_group(struct columns *columns, const struct duet__area *area,
                        const struct duet__area_group *group, size_t first)
{
    double base = group->tasks * group->expected_s[first] / area->unit_s;
    bool sum = count_places(area, group) > 2; /* with two, the one variable's own bounds suffice */
    if (base <= 0)
        return 0; /* too little to be told from nothing beside the rest */
    for (size_t a = first + 1; a < area->arch_count; a++) {
        if (!duet__area_can_run(area, group, a))
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
static void fill_columns(struct columns *columns, const struct duet__area *area)
{
    columns->row_count = area->arch_count;
    columns->objective[0] = 1; /* the first column is T */
    for (size_t a = 0; a < area->arch_count; a++)
        put_coefficient(columns, a, -(double)area->workers[a]);
    end_column(columns, HUGE_VAL);
    for (const struct duet__area_group *g = area->groups; g < area->groups + area->group_count;
         g++) {
        size_t first = first_arch(area, g);
        columns->row_upper[first] -= add_group(columns, area, g, first);
    }
}

/* Room for what the groups can need at most. false: there is none. */
static bool columns_init(struct columns *columns, const struct duet__area *area)
{
    size_t variables = 1 + area->group_count * (area->arch_count - 1);
    size_t rows = area->arch_count + area->group_count;
    size_t coefficients = area->arch_count + 3 * variables;
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

/* Solves it. Sets the prices that the rows of the architectures have, and the optimum. */
static int solve(const struct duet__area *area, const struct columns *columns, double *prices,
                 double *optimum_s, struct duet_message *message)
{
    Clp_Simplex *model = Clp_newModel();
    Clp_setLogLevel(model, 0);
    Clp_setMaximumSeconds(model, PATIENCE_S);
    Clp_setPrimalTolerance(model, TOLERANCE); /* rows are many, and what they lack adds up */
    Clp_setDualTolerance(model, TOLERANCE);
    Clp_loadProblem(model, columns->count, (int)columns->row_count, columns->starts, columns->rows,
                    columns->values, NULL, columns->upper, columns->objective, NULL,
                    columns->row_upper);
    Clp_dual(model, 0);
    int status = Clp_status(model), error = 0;
    const double *duals = Clp_dualRowSolution(model);
    for (size_t a = 0; a < area->arch_count; a++)
        prices[a] = fmax(0, -duals[a]);
    *optimum_s = Clp_objectiveValue(model) * area->unit_s;
    Clp_deleteModel(model);
    if (status == STOPPED)
        error = duet_fail(message, DUET_ESTUCK,
                          "area bound: Clp did not solve it for %zu classes of tasks in %d s: try "
                          "fewer different data sizes",
                          area->group_count, PATIENCE_S);
    else if (status != OPTIMAL)
        error = duet_fail(message, DUET_ESTUCK,
                          "area bound: Clp found no solution for %zu classes of tasks (status "
                          "%d); please report the run",
                          area->group_count, status);
    return error;
}

int duet__area_prices(const struct duet__area *area, double *prices, double *optimum_s,
                      struct duet_message *message)
{
    struct columns columns;
    if (!columns_init(&columns, area))
        return duet_fail(message, DUET_ENOMEM, "area bound: no memory for %zu classes of tasks",
                         area->group_count);
    fill_columns(&columns, area);
    int error = solve(area, &columns, prices, optimum_s, message);
    columns_fini(&columns);
    return error;
}
