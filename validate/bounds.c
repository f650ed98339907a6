/* SPDX-License-Identifier: Apache-2.0 */
/* Lower bounds on the makespan, the area bound as a linear program for GLPK. */
#include "validate/bounds.h"

#include <math.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <glpk.h>

#include <duet/machine.h>
#include <duet/trace.h>

enum { ARCHS_MAX = 64, GROUPS_MAX = 10000000, PATIENCE_S = 60 };

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
    jmp_buf out_of_memory;
};

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
/* The linear program. GLPK counts rows, columns and coefficients from 1.                       */

/* Called by GLPK instead of abort(), for want of memory or on an internal error. */
static void leave(void *info)
{
    struct program *p = info;
    longjmp(p->out_of_memory, 1);
}

/* Swallows what GLPK says, error messages included, which glp_term_out does not. */
static int swallow(void *info, const char *text)
{
    (void)info;
    (void)text;
    return 1;
}

/* Adds the variables of one group. Returns the first architecture's load if it runs everything. */
static double add_group(glp_prob *lp, const struct program *p, const struct group *group,
                        size_t first)
{
    double base = group->tasks * group->expected_s[first] / p->unit_s;
    int sum_row = 0, places = 0;
    if (base <= 0)
        return 0; /* too little to be told from nothing beside the rest */
    for (size_t a = first; a < p->arch_count; a++)
        places += can_run(p, group, a);
    if (places > 2) { /* with two, the one variable's own bounds suffice */
        sum_row = glp_add_rows(lp, 1);
        glp_set_row_bnds(lp, sum_row, GLP_UP, 0, base);
    }
    for (size_t a = first + 1; a < p->arch_count; a++) {
        if (!can_run(p, group, a))
            continue;
        int rows[4] = {0, (int)first + 1, (int)a + 1, sum_row};
        double values[4] = {0, -1, group->expected_s[a] / group->expected_s[first], 1};
        int column = glp_add_cols(lp, 1);
        glp_set_col_bnds(lp, column, GLP_DB, 0, base);
        glp_set_mat_col(lp, column, sum_row ? 3 : 2, rows, values);
    }
    return base;
}

/* Row a: what is moved to and from a - workers_a * T <= -(load of a if nothing were moved). */
static void fill_program(glp_prob *lp, const struct program *p)
{
    int rows[ARCHS_MAX + 1] = {0};
    double values[ARCHS_MAX + 1] = {0}, loads[ARCHS_MAX] = {0};
    glp_set_obj_dir(lp, GLP_MIN);
    glp_add_rows(lp, (int)p->arch_count);
    for (size_t a = 0; a < p->arch_count; a++) {
        rows[a + 1] = (int)a + 1;
        values[a + 1] = -(double)p->workers[a];
    }
    int time = glp_add_cols(lp, 1);
    glp_set_col_bnds(lp, time, GLP_LO, 0, 0);
    glp_set_obj_coef(lp, time, 1);
    glp_set_mat_col(lp, time, (int)p->arch_count, rows, values);
    for (const struct group *g = p->groups; g < p->groups + p->group_count; g++) {
        size_t first = first_arch(p, g);
        loads[first] += add_group(lp, p, g, first);
    }
    for (size_t a = 0; a < p->arch_count; a++)
        glp_set_row_bnds(lp, (int)a + 1, GLP_UP, 0, -loads[a]);
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

static int solve(glp_prob *lp, const struct program *p, double *area_s,
                 struct duet_message *message)
{
    double prices[ARCHS_MAX];
    glp_smcp parameters;
    glp_init_smcp(&parameters);
    parameters.msg_lev = GLP_MSG_OFF;
    parameters.tm_lim = PATIENCE_S * 1000;
    fill_program(lp, p);
    int failure = glp_simplex(lp, &parameters);
    if (failure == GLP_ETMLIM)
        return duet_fail(message, DUET_ESTUCK,
                         "area bound: GLPK did not solve it for %zu classes of tasks in %d s: try "
                         "fewer different data sizes",
                         p->group_count, PATIENCE_S);
    if (failure || glp_get_status(lp) != GLP_OPT)
        return duet_fail(message, DUET_ESTUCK,
                         "area bound: GLPK found no solution for %zu classes of tasks (simplex "
                         "code %d, status %d); please report the run",
                         p->group_count, failure, glp_get_status(lp));
    for (size_t a = 0; a < p->arch_count; a++)
        prices[a] = fmax(0, -glp_get_row_dual(lp, (int)a + 1));
    double bound = price_bound(p, prices), claimed = glp_get_obj_val(lp) * p->unit_s;
    if (!(fabs(bound - claimed) <= 1e-5 * claimed))
        return duet_fail(message, DUET_ESTUCK,
                         "area bound: GLPK's solution for %zu classes of tasks is inaccurate "
                         "(%g s, but %g s can be proved); please report the run",
                         p->group_count, claimed, bound);
    *area_s = bound;
    return 0;
}

static int solve_program(struct program *p, double *area_s, struct duet_message *message)
{
    if (setjmp(p->out_of_memory)) {
        glp_free_env(); /* and with it the program and the hooks; the next call starts afresh */
        return duet_fail(message, DUET_ENOMEM,
                         "area bound: GLPK has no memory for %zu classes of tasks", p->group_count);
    }
    glp_term_hook(swallow, NULL);
    glp_error_hook(leave, p);
    glp_prob *lp = glp_create_prob();
    int error = solve(lp, p, area_s, message);
    glp_delete_prob(lp);
    glp_error_hook(NULL, NULL);
    glp_term_hook(NULL, NULL);
    return error;
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
        return duet_fail(message, DUET_ENOMEM, "area bound: no memory for %zu classes of tasks",
                         class_count);
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

/* ------------------------------------------------------------------------------------------- */
/* A run                                                                                        */

/* Copies the runtime's classes: its arrays last only until the next call. */
static int copy_classes(const struct duet_runtime *runtime, size_t arch_count, size_t class_count,
                        struct duet_area_class *classes, double *seconds)
{
    for (size_t c = 0; c < class_count; c++) {
        struct duet_class_stats stats;
        int error = duet_class_stats(runtime, c, &stats);
        if (error)
            return error;
        double *expected_s = seconds + c * arch_count;
        memcpy(expected_s, stats.expected_s, arch_count * sizeof *expected_s);
        classes[c] = (struct duet_area_class){stats.kernel, stats.tasks, expected_s};
    }
    return 0;
}

int duet_bounds(const struct duet_runtime *runtime, struct duet_bounds *out,
                struct duet_message *message)
{
    const struct duet_machine *machine = duet_runtime_machine(runtime);
    size_t class_count = duet_class_count(runtime), arch_count = machine->arch_count;
    struct duet_area_class *classes = calloc(class_count + 1, sizeof *classes);
    double *seconds = calloc(class_count * arch_count + 1, sizeof *seconds), area_s = 0;
    unsigned *workers = calloc(arch_count + 1, sizeof *workers);
    int error;
    if (!classes || !seconds || !workers) {
        error = duet_fail(message, DUET_ENOMEM, "bounds: no memory for %zu classes of tasks",
                          class_count);
        goto out;
    }
    for (unsigned w = 0; w < machine->worker_count; w++)
        workers[machine->workers[w].arch]++;
    error = copy_classes(runtime, arch_count, class_count, classes, seconds);
    if (!error)
        error = duet_area_bound(classes, class_count, workers, arch_count, &area_s, message);
    if (!error) {
        struct duet_stats stats;
        duet_stats(runtime, &stats);
        *out = (struct duet_bounds){.critical_path_s = stats.critical_path_s, .area_s = area_s};
    }
out:
    free(workers);
    free(seconds);
    free(classes);
    return error;
}
