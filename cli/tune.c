/* SPDX-License-Identifier: Apache-2.0 */
/* `duet tune`: the best settings of a problem on a machine, by simulation and then by runs. */
#include "cli/tune.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <glib/gstdio.h>

#include "cli/calibrate.h"
#include "base/atomic_file.h"
#include "base/stats.h"
#include "base/clock.h"

enum {
    PART = 8,             /* one setting in so many goes from a level to the next */
    TOPS = 2,             /* number of best settings whose neighbours are tried */
    NOISY_MOST = 8,       /* settings that are simulated with noise at first */
    NOISY_REPS = 3,       /* first simulations of each with noise; each next level doubles them */
    NOISY_REPS_MOST = 12, /* most simulations of a setting with noise */
    RUN_REPS = 3,
    TASKS_PER_S = 50000, /* speed of a simulation, about */
    SETTINGS_MOST = 1000000,
};

static const double TIE = 0.03; /* settings that close to the best are compared with noise */

/* ------------------------------------------------------------------------------------------- */
/* Products                                                                                     */

static int add(struct duet__product *product, const char *name, const char *value,
               struct duet_message *message)
{
    return duet__study_add(product, duet__option_find(name, DUET__IN_TUNE), value, message);
}

/* Adds a copy of the space, or of what is the same in all of it, with these changes. */
static int add_product(struct duet__tune *tune, enum duet__fidelity fidelity,
                       struct duet_message *message)
{
    const struct duet__product *space = tune->space->products->pdata[0];
    struct duet__product *product = duet__product_new();
    const uint64_t part = fidelity < DUET__WHOLE ? UINT64_C(1) << (DUET__WHOLE - fidelity) : 1;
    bool beyond = fidelity < DUET__WHOLE, platform = false;
    int error = 0;

    g_ptr_array_add(tune->tables.study->products, product);
    for (guint f = 0; f < space->factors->len && !error; f++) {
        const struct duet__factor *factor = space->factors->pdata[f];
        const bool left_out = fidelity == DUET__USUAL && factor->values->len > 1;
        const bool tile = !strcmp(factor->name, "tile");
        g_autofree char *other = NULL;

        platform |= !strcmp(factor->name, "platform");
        if (!strcmp(factor->name, "platform"))
            other = g_strdup(tune->platform);
        else if (!strcmp(factor->name, "n"))
            other = g_strdup_printf("%" G_GUINT64_FORMAT, MAX(tune->request.problem.n / part, 1));
        else if (left_out && tile)
            other = g_strdup_printf("%" G_GUINT64_FORMAT, tune->usual_tile);
        else if (left_out && g_str_has_prefix(factor->name, "arg "))
            other = g_strdup(factor->values->pdata[0]); /* the default is the first */
        for (guint v = 0; v < (other ? 1 : left_out ? 0 : factor->values->len) && !error; v++) {
            const char *value = other ? other : factor->values->pdata[v];

            beyond |= (tile && duet__tune_beyond(tune, value, NULL)) ||
                      (tune->blocks && !strcmp(factor->name, "param block"));
            error = duet__study_add(product, factor->option, value, message);
        }
    }
    if (!error && !platform)
        error = add(product, "platform", tune->platform, message);
    if (!error && beyond && !duet__given(tune->job, "extrapolate"))
        error = add(product, "extrapolate", "", message);
    if (!error && fidelity >= DUET__NOISE)
        error = add(product, "noise", "", message);
    return error;
}

static int make_products(struct duet__tune *tune, struct duet_message *message)
{
    const struct duet__product *space = tune->space->products->pdata[0];
    int error = 0;

    tune->varied = g_ptr_array_new();
    for (guint f = 0; f < space->factors->len; f++)
        if (((const struct duet__factor *)space->factors->pdata[f])->values->len > 1)
            g_ptr_array_add(tune->varied, space->factors->pdata[f]);
    if (space->count > SETTINGS_MOST)
        return duet_fail(message, DUET_EINVAL, "there are more than %d settings: give fewer values",
                         SETTINGS_MOST);
    g_ptr_array_set_size(tune->tables.study->products, 0);
    tune->tables.study->program = tune->space->program;
    for (int i = 0; i < DUET__FIDELITIES && !error; i++)
        error = add_product(tune, i, message);
    if (!error)
        error = duet__study_number(tune->tables.study, message);
    return error ? error : duet__tables_plan(&tune->tables, message);
}

static uint64_t cell_of(const struct duet__tune *tune, enum duet__fidelity fidelity,
                        uint64_t setting)
{
    return ((const struct duet__product *)tune->tables.study->products->pdata[fidelity])->first +
           setting;
}

/* ------------------------------------------------------------------------------------------- */
/* Simulations                                                                                  */

/* The results of a cell's newest run. */
struct figures {
    double makespan_s, gflops, best_s;
};

static bool find_figures(const struct duet__tables *tables, uint64_t cell, uint64_t rep,
                         struct figures *out)
{
    g_autofree char *command =
        duet__cell_command(tables->study, tables->plan.command, cell, tables->plan.seed + rep);
    sqlite3_stmt *statement = duet__store_ask(&tables->store, NULL,
                                              "SELECT makespan_s, gflops, best_s FROM runs WHERE "
                                              "command = %Q AND error IS NULL ORDER BY id DESC",
                                              command);
    bool there = statement && sqlite3_step(statement) == SQLITE_ROW;

    *out = (struct figures){.makespan_s = INFINITY};
    if (there)
        *out = (struct figures){sqlite3_column_double(statement, 0),
                                sqlite3_column_double(statement, 1),
                                sqlite3_column_double(statement, 2)};
    sqlite3_finalize(statement);
    return there;
}

/* Makes runs of cells until then. Returns an error below 0, or the number of the signal that
   came. */
static int make_runs(struct duet__tune *tune, struct duet__tables *tables, const uint32_t *cells,
                     size_t count, uint64_t reps, double until_s, uint64_t *made)
{
    struct duet__progress progress;
    struct duet__outcome outcome = {0};
    char **said = tables == &tune->tables ? &tune->left_out : &tune->refusal;
    int error;

    tune->cut |= count && until_s > 0 && duet__clock_s() >= until_s;
    if (!count || (until_s > 0 && duet__clock_s() >= until_s))
        return 0;
    tables->plan.chosen = cells;
    tables->plan.chosen_count = count;
    tables->plan.reps = reps;
    tables->plan.until_s = until_s;
    duet__progress_init(&progress, !tune->job->values.quiet, 0, 0);
    error = duet__study_make(&tables->plan, &tables->store, &progress, &outcome, &tune->message);
    tune->cut |= until_s > 0 && duet__clock_s() >= until_s;
    *made += outcome.made;
    tune->failed += said == &tune->left_out ? outcome.failed + outcome.refused : 0;
    if (!*said)
        *said = g_steal_pointer(&outcome.example);
    g_free(outcome.example);
    return error ? error : outcome.number;
}

/* Simulates settings at one fidelity; seconds[i] is INFINITY if there is no run. */
static int simulate(struct duet__tune *tune, enum duet__fidelity fidelity, const uint32_t *settings,
                    size_t count, double until_s, double *seconds)
{
    uint32_t *cells = g_new(uint32_t, count + 1);
    struct figures figures;
    int error;

    for (size_t i = 0; i < count; i++)
        cells[i] = (uint32_t)cell_of(tune, fidelity, settings[i]);
    error = make_runs(tune, &tune->tables, cells, count, 1, until_s, &tune->made[fidelity]);
    for (size_t i = 0; i < count && !error; i++) {
        (void)find_figures(&tune->tables, cells[i], 0, &figures);
        seconds[i] = figures.makespan_s;
    }
    g_free(cells);
    return error;
}

/*
 * Simulates settings at a level: a duet__measure_fn. Half of the budget is for the levels before
 * the last; the rest is for the last one, for neighbours, and for noise. Something is always
 * simulated.
 */
static int measure(void *data, unsigned level, const uint32_t *settings, size_t count,
                   double *seconds)
{
    struct duet__tune *tune = data;
    const unsigned left = tune->levels - 1 - level;
    const enum duet__fidelity fidelity = DUET__WHOLE - left;
    const double part = left ? 0.5 * (level + 1) / (tune->levels - 1) : tune->last++ ? 0.85 : 0.7;
    bool some = tune->last > 1;
    int error =
        simulate(tune, fidelity, settings, count, tune->start_s + part * tune->budget_s, seconds);

    for (size_t i = 0; i < count && !error; i++)
        some |= isfinite(seconds[i]);
    for (size_t i = 0; i < count && !some && !error; i++) {
        error = simulate(tune, fidelity, &settings[i], 1, 0, &seconds[i]);
        some = isfinite(seconds[i]);
    }
    return error;
}

/*
 * Returns the number of levels, each of half the size of the next: as many as it takes to simulate
 * all settings in a part of the budget, if the problem is large enough.
 */
static unsigned count_levels(const struct duet__tune *tune)
{
    enum { TILES_LEAST = 4 };
    struct duet__problem problem = tune->request.problem;
    uint64_t largest = problem.tile;
    double tasks = 0, tiles = 0, seconds;
    unsigned levels = 1;

    if (tune->job->program || tune->job->graph)
        return 1;
    for (guint i = 0; i < tune->varied->len; i++) {
        const struct duet__factor *factor = tune->varied->pdata[i];

        for (guint v = 0; v < factor->values->len && !strcmp(factor->name, "tile"); v++) {
            problem.tile = g_ascii_strtoull(factor->values->pdata[v], NULL, 10);
            largest = MAX(largest, problem.tile);
            if (tune->request.workload->check(&problem, NULL))
                continue;
            tasks += (double)tune->request.workload->tasks(&problem);
            tiles++;
        }
    }
    if (!(tiles > 0))
        tasks = (double)tune->request.workload->tasks(&problem);
    seconds = tasks / fmax(tiles, 1) * (double)tune->space->count / TASKS_PER_S /
              duet__plan_jobs(&tune->tables.plan);
    for (; levels <= DUET__WHOLE && seconds > tune->budget_s / 4 &&
           problem.n >> levels >= TILES_LEAST * largest;
         levels++)
        seconds /= 8;
    return levels;
}

/* Finds the best settings by simulations without noise: into tune->found. */
static int search(struct duet__tune *tune)
{
    g_autofree struct duet__dimension *dimensions =
        g_new0(struct duet__dimension, tune->varied->len + 1);
    g_autofree uint32_t *order = duet__study_order(tune->space);
    const struct duet__search search = {.dimensions = dimensions,
                                        .dimension_count = tune->varied->len,
                                        .order = order,
                                        .count = (uint32_t)tune->space->count,
                                        .levels = tune->levels,
                                        .part = PART,
                                        .tops = TOPS,
                                        .measure = measure,
                                        .data = tune};
    g_autoptr(GArray) found = NULL;
    int error;

    for (guint i = 0; i < tune->varied->len; i++) {
        const struct duet__factor *factor = tune->varied->pdata[i];

        dimensions[i].values = factor->values->len;
        dimensions[i].ordered =
            g_ascii_isdigit(*duet__factor_value(factor, factor->values->pdata[0]));
        dimensions[i].apart = !strcmp(factor->name, "tile");
    }
    found = duet__search(&search, &error);
    for (guint i = 0; i < found->len && !error; i++) {
        const struct duet__found *one = &g_array_index(found, struct duet__found, i);
        const struct duet__tuned tuned = {.setting = one->setting,
                                          .cell = cell_of(tune, DUET__WHOLE, one->setting),
                                          .predicted_s = one->seconds,
                                          .half_s = NAN,
                                          .measured_s = NAN};

        g_array_append_val(tune->found, tuned);
    }
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Noise                                                                                        */

/* Takes the results of a setting's simulations with noise, as many as there are. */
static void take_noise(const struct duet__tune *tune, struct duet__tuned *tuned, uint64_t cell,
                       uint64_t reps)
{
    double seconds[NOISY_REPS_MOST];
    struct duet__summary summary;
    struct figures figures;

    for (tuned->reps = 0;
         tuned->reps < reps && find_figures(&tune->tables, cell, tuned->reps, &figures);)
        seconds[tuned->reps++] = figures.makespan_s;
    if (!tuned->reps)
        return;
    tuned->cell = cell;
    summary = duet__summarise(seconds, tuned->reps);
    tuned->predicted_s = summary.mean;
    tuned->half_s = duet__spreads(&summary) ? (summary.mean_high - summary.mean_low) / 2 : NAN;
}

static gint compare_tuned(gconstpointer first, gconstpointer second)
{
    const struct duet__tuned *a = first, *b = second;

    if (a->reps != b->reps)
        return a->reps > b->reps ? -1 : 1;
    return a->predicted_s < b->predicted_s ? -1 : a->predicted_s > b->predicted_s;
}

/* Judges the settings near the best by successive halving over replications with equal seeds. */
static int judge_by_noise(struct duet__tune *tune)
{
    struct duet__tuned *found = (struct duet__tuned *)(void *)tune->found->data;
    const guint least = (guint)MIN(MAX(tune->job->values.verified, 2), NOISY_MOST);
    const bool cut = tune->cut;
    guint count = 1;
    int error = 0;

    tune->cut = false;
    while (count < MIN(tune->found->len, NOISY_MOST) &&
           (count < least || found[count].predicted_s < found->predicted_s * (1 + TIE)))
        count++;
    for (uint64_t reps = NOISY_REPS; reps <= NOISY_REPS_MOST && !error && !tune->cut; reps *= 2) {
        uint32_t cells[NOISY_MOST];

        for (guint i = 0; i < count; i++)
            cells[i] = (uint32_t)cell_of(tune, DUET__NOISE, found[i].setting);
        error = make_runs(tune, &tune->tables, cells, count, reps, tune->start_s + tune->budget_s,
                          &tune->made[DUET__NOISE]);
        /* no setting is judged by noise unless there was time for all */
        for (guint i = 0; i < count && !error && !tune->cut; i++)
            take_noise(tune, &found[i], cells[i], reps);
        g_array_sort(tune->found, compare_tuned);
        count = MAX(MIN(least, count), (count + 1) / 2);
    }
    tune->cut = cut;
    return error;
}

/* Finds how far the best is before the second, seed by seed. */
static void find_lead(struct duet__tune *tune)
{
    const struct duet__tuned *best = duet__tune_at(tune, 0), *second = best + 1;
    double differences[NOISY_REPS_MOST];
    struct figures own, other;
    struct duet__summary summary;

    tune->lead = tune->lead_half = NAN;
    if (tune->found->len < 2 || best->reps < 3 || second->reps != best->reps)
        return;
    for (uint64_t r = 0; r < best->reps; r++) {
        (void)find_figures(&tune->tables, best->cell, r, &own);
        (void)find_figures(&tune->tables, second->cell, r, &other);
        differences[r] = (other.makespan_s - own.makespan_s) / best->predicted_s;
    }
    summary = duet__summarise(differences, best->reps);
    tune->lead = summary.mean;
    if (best->half_s >= 0 || second->half_s >= 0)
        tune->lead_half = (summary.mean_high - summary.mean_low) / 2;
}

/* Simulates the usual setting, which one gets who chooses nothing, regardless of the budget: as
   often as the best. */
static int simulate_usual(struct duet__tune *tune)
{
    const uint32_t cell = (uint32_t)cell_of(tune, DUET__USUAL, 0);
    const uint64_t reps = MAX(NOISY_REPS, g_array_index(tune->found, struct duet__tuned, 0).reps);
    int error = make_runs(tune, &tune->tables, &cell, 1, reps, 0, &tune->made[DUET__USUAL]);

    tune->usual =
        (struct duet__tuned){.cell = cell, .predicted_s = NAN, .half_s = NAN, .measured_s = NAN};
    if (!error)
        take_noise(tune, &tune->usual, cell, reps);
    return error;
}

/* Finds the facts shown of settings beside their times, and if all times were ever measured. */
static void find_rest(struct duet__tune *tune)
{
    sqlite3_stmt *statement =
        duet__store_ask(&tune->tables.store, NULL, "SELECT 1 FROM runs WHERE estimated NOT NULL");

    tune->estimated = statement && sqlite3_step(statement) == SQLITE_ROW;
    sqlite3_finalize(statement);
    for (guint i = 0; i <= tune->found->len; i++) {
        struct duet__tuned *one = duet__tune_at(tune, i);
        struct figures figures;

        if (!find_figures(&tune->tables, one->cell, 0, &figures))
            continue;
        one->flops = figures.gflops * 1e9 * figures.makespan_s;
        one->best_s = figures.best_s;
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Real runs                                                                                    */

/* Adds a product of one cell: the options that real runs take of a setting. */
static int add_runs(struct duet__tune *tune, struct duet__study *study,
                    const struct duet__tuned *tuned)
{
    const struct duet__product *from = duet__study_product(tune->tables.study, tuned->cell);
    struct duet__product *product = duet__product_new();
    int error = 0;

    g_ptr_array_add(study->products, product);
    for (guint f = 0; f < from->factors->len && !error; f++) {
        const struct duet__factor *factor = from->factors->pdata[f];

        if (duet__tune_runs(factor))
            error = duet__study_add(product, factor->option,
                                    duet__study_value(from, tuned->cell, f), &tune->message);
    }
    return error;
}

/* Runs the best few and the usual one in turn; the best by their medians is the choice. */
static int verify(struct duet__tune *tune)
{
    struct duet__tables tables = {.job = tune->job,
                                  .command = &duet__run_command,
                                  .study = duet__study_new(),
                                  .single = true};
    const guint count = MIN((guint)tune->job->values.verified, tune->found->len);
    uint32_t *cells = g_new(uint32_t, count + 1);
    uint64_t made = 0;
    int error = 0;

    g_ptr_array_set_size(tables.study->products, 0);
    tables.study->program = tune->space->program;
    for (guint i = 0; i <= count && !error; i++) {
        cells[i] = i;
        error = add_runs(tune, tables.study, duet__tune_at(tune, i < count ? i : tune->found->len));
    }
    if (!error)
        error = duet__study_number(tables.study, &tune->message);
    if (!error)
        error = duet__tables_plan(&tables, &tune->message);
    if (!error)
        error = duet__store_open(&tables.store, NULL, DUET__STORE_WRITE, &tune->message);
    if (!error)
        duet__warn_of_load();
    if (!error)
        error = make_runs(tune, &tables, cells, count + 1, RUN_REPS, 0, &made);
    for (guint i = 0; i <= count && !error; i++) {
        struct duet__tuned *one = duet__tune_at(tune, i < count ? i : tune->found->len);
        double seconds[RUN_REPS];
        struct figures figures;
        size_t ended = 0;

        for (uint64_t r = 0; r < RUN_REPS; r++)
            if (find_figures(&tables, i, r, &figures))
                seconds[ended++] = figures.makespan_s;
        one->measured_s = ended ? duet__summarise(seconds, ended).median : NAN;
        if (one->measured_s < tune->chosen->measured_s || isnan(tune->chosen->measured_s))
            tune->chosen = ended ? one : tune->chosen;
    }
    tune->run_reps = RUN_REPS;
    (void)duet__tables_fini(&tables, NULL);
    g_free(cells);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* The command                                                                                  */

/* Complains about the error that ended the search. Returns the exit status. */
static int refuse(const struct duet__tune *tune, int error)
{
    return error > 0 ? duet__complain(DUET__SIGNALLED + error, "interrupted: nothing was chosen")
                     : duet__job_refuse(error, &tune->message);
}

/* Finds the best settings. Returns an error below 0, or the number of the signal that came. */
static int choose(struct duet__tune *tune)
{
    int error = search(tune);

    if (error || !tune->found->len)
        return error;
    error = judge_by_noise(tune);
    if (!error)
        error = simulate_usual(tune);
    tune->search_s = duet__clock_s() - tune->start_s;
    if (error)
        return error;
    find_lead(tune);
    find_rest(tune);
    tune->chosen = duet__tune_at(tune, 0);
    return tune->here && !tune->job->values.no_verify ? verify(tune) : 0;
}

/* Tunes once space and products are there. Returns the exit status. */
static int tune_all(struct duet__tune *tune)
{
    struct duet__signals signals;
    int error, status;

    tune->levels = count_levels(tune);
    duet__signals_hold(&signals, false); /* signals are held between one study and the next, too */
    error = choose(tune);
    if (!error)
        error = duet__signals_take(&signals, 0);
    duet__signals_release(&signals);
    if (error)
        return refuse(tune, error);
    if (!tune->found->len)
        return tune->left_out
                   ? duet__complain(DUET__MISUSED, "no setting is possible: %s", tune->left_out)
                   : duet__complain(DUET__FAILED, "no simulation has ended");
    status = duet__tune_report(tune);
    return tune->refusal ? duet__complain(DUET__FAILED, "not all runs ended: %s", tune->refusal)
                         : status;
}

static void fini(struct duet__tune *tune)
{
    (void)duet__tables_fini(&tune->tables, NULL);
    duet__study_free(tune->space);
    g_clear_pointer(&tune->varied, g_ptr_array_unref);
    duet__request_fini(&tune->request);
    g_array_unref(tune->found);
    if (tune->measured) {
        g_autofree char *folder = g_path_get_dirname(tune->measured);

        g_unlink(tune->measured);
        g_rmdir(folder);
    }
    g_free(tune->measured);
    g_free(tune->calibrated);
    g_free(tune->platform);
    g_free(tune->refusal);
    g_free(tune->left_out);
}

static int work(struct duet__job *job, int argc, char **argv)
{
    struct duet__tune tune = {.job = job,
                              .space = duet__study_new(),
                              .tables = {.job = job,
                                         .command = &duet__simulate_command,
                                         .study = duet__study_new()},
                              .found = g_array_new(FALSE, FALSE, sizeof(struct duet__tuned)),
                              .start_s = duet__clock_s(),
                              .budget_s = duet__given(job, "budget") ? job->values.budget_s : 30};
    struct duet__tables given = {.job = job, .study = tune.space};
    struct duet_message *message = &tune.message;
    int error = 0, status;

    duet__request_init(&tune.request);
    job->values.verified = job->values.verified ? job->values.verified : 3;
    if (!(tune.budget_s >= 0.1))
        error = duet_fail(message, DUET_EINVAL, "--budget takes 0.1s or more, such as 30s");
    if (!error)
        error = duet__exclude(job, "verify", "no-verify", message);
    if (!error)
        error = duet__job_read_workload(job, argc, argv, message);
    if (!error)
        error = duet__files_distinct(job, message);
    if (!error && job->values.env)
        error = duet__file_check(job->values.env, message);
    if (!error)
        error = duet__tables_read(&given, argc, argv, message);
    if (!error)
        error = duet__tune_space(&tune, message);
    if (!error)
        error = make_products(&tune, message);
    if (!error)
        error = duet__store_open(&tune.tables.store, job->values.out, DUET__STORE_WRITE, message);
    status = error ? refuse(&tune, error) : tune_all(&tune);
    fini(&tune);
    return status;
}

const struct duet__command duet__tune_command = {
    .name = "tune",
    .description = "the best settings of a problem on a machine, by simulation, then by runs",
    .where = DUET__IN_TUNE,
    .arguments = "WORKLOAD | FILE | -- PROGRAM ARGUMENT...",
    .summary =
        "Looks for the best tile, policy, windows and workers of one problem on one machine: by "
        "simulations first,\nthen, where the machine is this one, by runs of the best few. Prints "
        "what it found, and variables by\nwhich programs take it.",
    .notes =
        "Options that take lists (duet study) say what is chosen among; where none has several "
        "values, it is tiles\nbetween those measured, policies, windows and workers. Without "
        "--platform it is this machine, by HOST.json\nhere (duet calibrate), or measured now.\n\n"
        "Examples:\n"
        "  duet tune cholesky --n 40000 --platform idgraf\n"
        "  duet tune lu --n 20000 --platform idgraf --tile 480,960 --policy ws,heft,dmdas\n"
        "  duet tune cholesky --n 4096 --env tuned.env && env $(cat tuned.env) ./app",
    .work = work,
};
