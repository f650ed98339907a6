/* SPDX-License-Identifier: Apache-2.0 */
/* The settings among which `duet tune` chooses, and the machine. */
#include "cli/tune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <duet/policy.h>

#include "runtime/history.h"
#include "cli/calibrate.h"
#include "base/json.h"
#include "runs/executor.h"
#include "runs/monitor.h"
#include "base/clock.h"

static const char *const chosen[] = {"tile",    "policy",        "model",
                                     "param",   "priorities",    "window",
                                     "hold",    "gpu-window",    "gpu-window-short",
                                     "cpus",    "gpus",          "set-arch",
                                     "no-peer", "nearest-source"};

bool duet__tune_chosen(const char *factor)
{
    for (size_t i = 0; i < G_N_ELEMENTS(chosen); i++)
        if (!strcmp(factor, chosen[i]))
            return true;
    return g_str_has_prefix(factor, "param ") || g_str_has_prefix(factor, "arg ");
}

bool duet__tune_runs(const struct duet__factor *factor)
{
    static const char *const others[] = {"n", "precision", "gpu-memory", "speed", NULL};

    return !factor->option || duet__tune_chosen(factor->name) ||
           g_strv_contains(others, factor->option->name);
}

static struct duet__product *space_of(const struct duet__tune *tune)
{
    return tune->space->products->pdata[0];
}

static const struct duet__factor *factor_of(const struct duet__tune *tune, const char *name)
{
    const int place = duet__factor_place(space_of(tune), name);

    return place < 0 ? NULL : space_of(tune)->factors->pdata[place];
}

static int add(struct duet__tune *tune, const char *name, const char *values,
               struct duet_message *message)
{
    if (factor_of(tune, name))
        return 0;
    return duet__study_add(space_of(tune), duet__option_find(name, DUET__IN_TUNE), values, message);
}

/* ------------------------------------------------------------------------------------------- */
/* Tiles                                                                                        */

/* Finds the edges of tiles between which all kernels of the workload were measured. */
static void find_measured(struct duet__tune *tune, const struct duet__platform *platform)
{
    const struct duet__problem *problem = &tune->request.problem;
    const char *const *kernels = tune->request.workload->kernels;

    tune->low = tune->high = 0;
    for (; *kernels; kernels++) {
        g_autofree char *kernel = g_strdup_printf("%c%s", problem->precision, *kernels);

        for (size_t c = 0; c < platform->calibration.count; c++) {
            const struct duet__curve *curve = &platform->calibration.curves[c];
            double least = INFINITY, most = 0;

            for (size_t i = 0; i < curve->count && !strcmp(curve->kernel, kernel); i++) {
                least = curve->points[i].size > 0 ? fmin(least, curve->points[i].size) : least;
                most = fmax(most, curve->points[i].size);
            }
            if (most > 0) {
                tune->low = fmax(tune->low, least);
                tune->high = tune->high > 0 ? fmin(tune->high, most) : most;
            }
        }
    }
}

/* True if tiles of this edge leave parts of a whole that are smaller than was measured. */
static bool leaves(const struct duet__tune *tune, double whole, double edge)
{
    const double rest = fmod(whole, edge);

    return edge < tune->low || edge > tune->high || (rest > 0 && rest < tune->low);
}

bool duet__tune_beyond(const struct duet__tune *tune, const char *tile, const char *block)
{
    const double edge = tile ? g_ascii_strtod(tile, NULL) : 0;
    const double part = block && tune->blocks ? g_ascii_strtod(strchr(block, '=') + 1, NULL) : 0;

    return edge > 0 && tune->high > 0 &&
           (leaves(tune, (double)tune->request.problem.n, edge) ||
            (part > 0 && part < edge && leaves(tune, edge, part)));
}

/*
 * Returns the tile near one that leaves least beyond the matrix, and whose last row of tiles is not
 * smaller than was measured; 0 if there is none.
 */
static uint64_t fit_tile(const struct duet__tune *tune, double near)
{
    const uint64_t n = tune->request.problem.n;
    enum { STEP = 4, ALIGNED = 16 };
    static const double FAR = 1.08;
    double best = INFINITY;
    uint64_t found = 0;

    for (uint64_t tile = (uint64_t)ceil(fmax(tune->low, near / FAR) / STEP) * STEP;
         tile <= MIN((uint64_t)fmin(tune->high, near * FAR), n); tile += STEP) {
        const uint64_t rest = n % tile;
        double cost = (rest ? (double)(tile - rest) / (double)n : 0) +
                      0.1 * fabs(log((double)tile / near)) + (tile % ALIGNED ? 0.005 : 0);

        if (cost < best && (!rest || (double)rest >= tune->low)) {
            best = cost;
            found = tile;
        }
    }
    return found;
}

/* Adds some tiles between those measured, evenly by their logarithms; only the usual one if nothing
   is known, or if `lists` say what is chosen among. */
static int add_tiles(struct duet__tune *tune, bool lists, struct duet_message *message)
{
    enum { TILES = 7 };
    const struct duet__request *request = &tune->request;
    g_autoptr(GString) list = g_string_new(NULL);
    uint64_t last = 0;

    for (int i = 0; i < TILES && tune->high > 0 && !lists; i++) {
        uint64_t tile = fit_tile(tune, tune->low * pow(tune->high / tune->low, i / (TILES - 1.0)));

        if (tile > last)
            g_string_append_printf(list, "%s%" G_GUINT64_FORMAT, last ? "," : "", tile);
        last = MAX(tile, last);
    }
    if (!tune->platform && !lists) /* the platform is yet to be measured */
        for (uint64_t tile = MAX(request->problem.tile / 4, 1);
             tile <= MIN(2 * request->problem.tile, request->problem.n); tile *= 2)
            g_string_append_printf(list, "%s%" G_GUINT64_FORMAT, list->len ? "," : "", tile);
    if (!list->len)
        g_string_append_printf(list, "%" G_GUINT64_FORMAT, request->problem.tile);
    return add(tune, "tile", list->str, message);
}

/* ------------------------------------------------------------------------------------------- */
/* The rest                                                                                     */

/* Adds blocks to factorise tiles by, of the least edge measured, if the workload has such. */
static int add_blocks(struct duet__tune *tune, struct duet_message *message)
{
    g_autofree char *values = g_strdup_printf("block=0,%g", tune->low);

    return !tune->blocks || !(tune->low > 0) || factor_of(tune, "param block")
               ? 0
               : add(tune, "param", values, message);
}

/* Adds all policies but those that choose at random or by trying others, and one whose simulations
   take long. */
static int add_policies(struct duet__tune *tune, struct duet_message *message)
{
    static const char *const others[] = {"auto", "darts", "no-prio", "random", "w-rand", NULL};
    g_autoptr(GString) list = g_string_new(NULL);
    const struct duet_policy *policy;

    for (size_t i = 0; (policy = duet_policy_at(i)); i++)
        if (!g_strv_contains(others, policy->name))
            g_string_append_printf(list, "%s%s", list->len ? "," : "", policy->name);
    return add(tune, "policy", list->str, message);
}

/* Adds numbers of CPUs beside the GPUs, windows, and whether CPUs may have what GPUs can run. */
static int add_workers(struct duet__tune *tune, const struct duet__platform *platform,
                       struct duet_message *message)
{
    const struct duet__factor *given = factor_of(tune, "gpus");
    const unsigned gpus = given ? (unsigned)strtoul(given->values->pdata[0], NULL, 10)
                                : duet__platform_gpus(platform);
    const unsigned cores = duet__platform_cores(platform), cpus = cores > gpus ? cores - gpus : 0;
    g_autofree char *some =
        cpus > 1 ? g_strdup_printf("%u,%u,0", cpus, cpus / 2) : g_strdup_printf("%u,0", cpus);
    int error;

    if (!gpus)
        return 0;
    error = add(tune, "gpu-window", "2,4", message);
    if (!error && cpus)
        error = add(tune, "cpus", some, message);
    return error ? error : add(tune, "set-arch", "0,1", message);
}

/* ------------------------------------------------------------------------------------------- */
/* The machine                                                                                  */

/*
 * Executes a job in a process of its own, as CUDA does not work in children of a process that has
 * used it. A signal ends it; *number is that signal, or 0. Returns true if the job left a result.
 */
static bool do_apart(duet__execute_fn *execute, void *data, int *number)
{
    struct duet__executor *executor = duet__executor_new(1, execute, data);
    struct duet__ended ended = {.result = NULL};
    struct duet__signals signals;
    bool over;

    *number = 0;
    duet__signals_hold(&signals, false);
    over = duet__executor_give(executor, 0, true, NULL) != 0;
    while (!over && !*number) {
        over = duet__executor_take(executor, 0.1, &ended);
        *number = duet__signals_take(&signals, 0);
    }
    duet__executor_free(executor);
    duet__signals_release(&signals);
    free(ended.result);
    return ended.length > 0;
}

/* Leaves a result if a platform is of this machine, so that it may be added to: a
   duet__execute_fn. */
static void look_here(uint64_t job, FILE *result, void *platform)
{
    struct duet__history *history;
    struct duet_config config;

    duet_config_init(&config);
    config.calibrate = platform;
    if (!duet__history_open(&history, &config, NULL))
        fputs("it is", result);
}

/* Returns the tiles of the space that were not measured: "384,512"; "" if all were. */
static char *missing_tiles(const struct duet__tune *tune, bool nothing)
{
    const struct duet__factor *tiles = factor_of(tune, "tile");
    GString *list = g_string_new(NULL);

    for (guint i = 0; tiles && i < tiles->values->len; i++) {
        const char *tile = tiles->values->pdata[i];
        double edge = g_ascii_strtod(tile, NULL);

        if (nothing || (tune->high > 0 && (edge < tune->low || edge > tune->high)))
            g_string_append_printf(list, "%s%s", list->len ? "," : "", tile);
    }
    return g_string_free(list, FALSE);
}

/* Runs `duet calibrate`, quietly, and leaves a result if it ended well: a duet__execute_fn. */
static void calibrate(uint64_t job, FILE *result, void *line)
{
    char **words = line;

    if (freopen("/dev/null", "w", stdout) &&
        !duet__command_run(&duet__calibrate_command, (int)g_strv_length(words), words))
        fputs("done", result);
}

/* Measures tiles, beside what the platform has if there is one, within a part of the budget. */
static int measure_tiles(struct duet__tune *tune, const char *tiles, struct duet_message *message)
{
    enum { MOST_MIB = 64 };
    const struct duet__request *request = &tune->request;
    const double seconds = fmax(tune->budget_s / 3, 0.1); /* calibrate takes no less */
    char budget[32];
    const char precision[] = {request->problem.precision, '\0'};
    g_autofree char *text = NULL, *folder = g_dir_make_tmp("duet-tune-XXXXXX", NULL);
    const char *const words[] = {"calibrate",   request->workload->name,
                                 "--tile",      tiles,
                                 "--precision", precision,
                                 "--budget",    budget,
                                 "--quiet",     "--merge",
                                 "--out",       NULL};
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
    g_auto(GStrv) line = NULL;
    gsize length = 0;
    int error, number;

    if (!folder)
        return duet_fail(message, DUET_EIO, "there is no room for a temporary file");
    g_snprintf(budget, sizeof budget, "%.3gs", seconds);
    tune->measured = g_build_filename(folder, "here.json", NULL);
    error = tune->platform ? duet__read_all(tune->platform, MOST_MIB, &text, &length, message) : 0;
    if (error)
        return error;
    if (text && !g_file_set_contents(tune->measured, text, (gssize)length, NULL))
        return duet_fail(message, DUET_EIO, "cannot copy %s", tune->platform);
    g_strv_builder_addv(builder, (const char **)(uintptr_t)words);
    g_strv_builder_add(builder, tune->measured);
    line = g_strv_builder_end(builder);
    if (!tune->job->values.quiet)
        fprintf(stderr, "duet: measuring %s with tiles of %s for %s\n", request->workload->name,
                tiles, budget);
    if (!do_apart(calibrate, line, &number) && !number)
        error = duet_fail(message, DUET_ECANCELED, "this machine could not be measured");
    tune->budget_s -= seconds;
    tune->start_s = duet__clock_s();
    tune->calibrated = g_strdup_printf("measured for this, in %s: tiles of %s", budget, tiles);
    g_free(tune->platform);
    tune->platform = g_strdup(tune->measured);
    return error ? error : number;
}

/* Returns the file of this machine; NULL if there is none. */
static char *own_platform(void)
{
    const char *host = g_get_host_name();
    char *name = g_strdup_printf("./%.*s.json", (int)strcspn(host, "."), host);

    if (!g_file_test(name, G_FILE_TEST_EXISTS))
        g_clear_pointer(&name, g_free);
    return name;
}

/* ------------------------------------------------------------------------------------------- */

/* Checks that there is one problem on one machine, and that the options may be chosen. */
static int check(const struct duet__tune *tune, struct duet_message *message)
{
    const GPtrArray *factors = space_of(tune)->factors;

    if (factor_of(tune, "noise"))
        return duet_fail(message, DUET_EINVAL,
                         "--noise: the best settings are simulated with it anyway");
    for (guint f = 0; f < factors->len; f++) {
        const struct duet__factor *factor = factors->pdata[f];

        if (factor->values->len > 1 && !duet__tune_chosen(factor->name))
            return duet_fail(message, DUET_EINVAL,
                             "%s%s has several values: duet tune looks for the best settings of "
                             "one problem on one machine (duet study makes tables)",
                             factor->option ? "--" : "", factor->name);
    }
    return 0;
}

/* Finds the problem of the first setting, if that is a workload: its size and tile are then
   given. */
static int find_problem(struct duet__tune *tune, bool real, struct duet_message *message)
{
    struct duet__tables tables = {.job = tune->job, .study = tune->space};
    struct duet__problem *problem = &tune->request.problem;
    const struct duet__workload *workload;
    g_autofree char *n = NULL;
    int error;

    if (tune->job->program || tune->job->graph)
        return 0;
    duet__request_fini(&tune->request);
    error = duet__tables_cell(&tables, 0, &tune->job->request, &tune->request, message);
    if (error)
        return error;
    workload = tune->request.workload;
    for (const struct duet__parameter *one = workload->parameters; one && one->name; one++)
        tune->blocks |= !strcmp(one->name, "block") && !strcmp(one->initial, "0");
    real = real && workload->real_n;
    problem->n = problem->n ? problem->n : real ? workload->real_n : workload->default_n;
    tune->usual_tile = real ? workload->real_tile : workload->default_tile;
    problem->tile = problem->tile ? problem->tile : tune->usual_tile;
    error = workload->check(problem, message);
    n = g_strdup_printf("%" G_GUINT64_FORMAT, problem->n);
    return error ? error : add(tune, "n", n, message);
}

/* Finds the machine, and whether it is this one. */
static int find_platform(struct duet__tune *tune, struct duet_message *message)
{
    const struct duet__factor *given = factor_of(tune, "platform");
    const char *env = tune->job->values.env;
    int number = 0;

    tune->platform = given ? g_strdup(given->values->pdata[0]) : own_platform();
    if (!tune->platform && (tune->job->program || tune->job->graph))
        return duet_fail(message, DUET_EINVAL,
                         "which machine? --platform NAME (duet list platforms shows them; duet "
                         "calibrate measures this one)");
    if (tune->platform && env && duet__files_same(env, tune->platform))
        return duet_fail(message, DUET_EINVAL, "--platform and --env are one file, %s", env);
    tune->here = !tune->platform || (g_str_has_suffix(tune->platform, ".json") &&
                                     do_apart(look_here, tune->platform, &number));
    return number;
}

/* Finds what the platform has of the workload's kernels. */
static int look_at_platform(struct duet__tune *tune, struct duet__platform **platform,
                            struct duet_message *message)
{
    int error;

    duet__platform_free(g_steal_pointer(platform));
    error = duet__platform_load(tune->platform, platform, message);
    if (error || !tune->request.workload)
        return error;
    duet__calibration_select(&(*platform)->calibration, tune->request.workload->name);
    find_measured(tune, *platform);
    return 0;
}

int duet__tune_space(struct duet__tune *tune, struct duet_message *message)
{
    const bool tiled = !tune->job->program && !tune->job->graph;
    struct duet__platform *platform = NULL;
    GPtrArray *factors = space_of(tune)->factors;
    bool lists = false;
    int error = check(tune, message);

    for (guint f = 0; f < factors->len; f++)
        lists |= ((const struct duet__factor *)factors->pdata[f])->values->len > 1;
    if (!error)
        error = find_platform(tune, message);
    if (!error)
        error = find_problem(tune, tune->here, message);
    if (!error && tune->platform)
        error = look_at_platform(tune, &platform, message);
    if (!error && tiled)
        error = add_tiles(tune, lists, message);
    if (!error && !lists)
        error = add_policies(tune, message);
    if (!error && tune->here && tiled) {
        g_autofree char *missing = missing_tiles(tune, !platform);

        if (*missing)
            error = measure_tiles(tune, missing, message);
        if (!error && *missing)
            error = look_at_platform(tune, &platform, message);
    }
    if (!error && !lists && tiled)
        error = add_blocks(tune, message);
    if (!error && !lists)
        error = add_workers(tune, platform, message);
    duet__platform_free(platform);
    return error ? error : duet__study_number(tune->space, message);
}
