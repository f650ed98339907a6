/* SPDX-License-Identifier: Apache-2.0 */
/* The settings among which `duet tune` chooses, and the machine. */
#include "study/tune.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <duet/policy.h>

enum { SETTINGS_MOST = 1000000 };

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

static struct duet__product *space_of(const struct duet__tune *tune)
{
    return tune->study->products->pdata[0];
}

const struct duet__factor *duet__tune_factor(const struct duet__tune *tune, const char *name)
{
    const int place = duet__factor_place(space_of(tune), name);
    return place < 0 ? NULL : space_of(tune)->factors->pdata[place];
}

/* Adds a factor, unless it was given. */
static int add(struct duet__tune *tune, const char *name, const char *values)
{
    if (duet__tune_factor(tune, name))
        return 0;
    return duet__study_add(space_of(tune), duet__option_find(name, DUET__IN_TUNE), values,
                           &tune->message);
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
    const double whole = (double)tune->request.problem.n, last = fmod(whole, edge);
    return edge > 0 && tune->high > 0 &&
           (leaves(tune, whole, edge) || (part > 0 && part < edge && leaves(tune, edge, part)) ||
            (part > 0 && part < last && leaves(tune, last, part)));
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
   is known, or if lists say what is chosen among. */
static int add_tiles(struct duet__tune *tune)
{
    enum { TILES = 7 };
    const struct duet__request *request = &tune->request;
    g_autoptr(GString) list = g_string_new(NULL);
    uint64_t last = 0;
    for (int i = 0; i < TILES && tune->high > 0 && !tune->lists; i++) {
        uint64_t tile = fit_tile(tune, tune->low * pow(tune->high / tune->low, i / (TILES - 1.0)));
        if (tile > last)
            g_string_append_printf(list, "%s%" G_GUINT64_FORMAT, last ? "," : "", tile);
        last = MAX(tile, last);
    }
    if (!tune->platform && !tune->lists) /* the platform is yet to be measured */
        for (uint64_t tile = MAX(request->problem.tile / 4, 1);
             tile <= MIN(2 * request->problem.tile, request->problem.n); tile *= 2)
            g_string_append_printf(list, "%s%" G_GUINT64_FORMAT, list->len ? "," : "", tile);
    if (!list->len)
        g_string_append_printf(list, "%" G_GUINT64_FORMAT, request->problem.tile);
    return add(tune, "tile", list->str);
}

/* ------------------------------------------------------------------------------------------- */
/* The rest                                                                                     */

/* Adds blocks to factorise tiles by, of the least edge measured, if the workload has such. */
static int add_blocks(struct duet__tune *tune)
{
    g_autofree char *values = g_strdup_printf("block=0,%g", tune->low);
    if (!tune->blocks || !(tune->low > 0) || duet__tune_factor(tune, "param block"))
        return 0;
    tune->offered = !duet__tune_factor(tune, "extrapolate");
    return add(tune, "param", values);
}

/* Adds whether GPUs may run the kernels that a workload can keep on CPUs. The first of its kernels
   is one of these: some GPU has to have times of it. */
static int add_places(struct duet__tune *tune, const struct duet__platform *platform)
{
    const struct duet__workload *workload = tune->request.workload;
    const struct duet__parameter *one =
        workload && *workload->kernels ? workload->parameters : NULL;
    bool able = false;
    int error = 0;
    for (unsigned a = 0; a < platform->arch_count && one; a++) {
        g_autofree char *kernel =
            g_strdup_printf("%c%s", tune->request.problem.precision, workload->kernels[0]);
        able |= strcmp(platform->archs[a].backend, "cpu") != 0 &&
                duet__calibration_find(&platform->calibration, kernel, platform->archs[a].name);
    }
    for (; able && one->name && !error; one++) {
        g_autofree char *factor = g_strconcat("param ", one->name, NULL);
        g_autofree char *values = g_strconcat(one->name, "=cpu,any", NULL);
        if (!strcmp(one->values, "cpu|any") && !duet__tune_factor(tune, factor))
            error = add(tune, "param", values);
    }
    return error;
}

/* Adds all policies but those that choose at random or by trying others, and one whose simulations
   take long. */
static int add_policies(struct duet__tune *tune)
{
    static const char *const others[] = {"auto", "darts", "no-prio", "random", "w-rand", NULL};
    g_autoptr(GString) list = g_string_new(NULL);
    const struct duet_policy *policy;
    for (size_t i = 0; (policy = duet_policy_at(i)); i++)
        if (!g_strv_contains(others, policy->name))
            g_string_append_printf(list, "%s%s", list->len ? "," : "", policy->name);
    return add(tune, "policy", list->str);
}

/* Adds numbers of CPUs beside the GPUs, windows, and which of both may have what. */
static int add_workers(struct duet__tune *tune, const struct duet__platform *platform)
{
    const struct duet__factor *given = duet__tune_factor(tune, "gpus");
    const unsigned gpus = given ? (unsigned)strtoul(given->values->pdata[0], NULL, 10)
                                : duet__platform_gpus(platform);
    const unsigned cores = duet__platform_cores(platform), cpus = cores > gpus ? cores - gpus : 0;
    g_autofree char *some =
        cpus > 1 ? g_strdup_printf("%u,%u,0", cpus, cpus / 2) : g_strdup_printf("%u,0", cpus);
    int error;
    if (!gpus)
        return 0;
    error = add(tune, "gpu-window", "2,4");
    if (!error && cpus)
        error = add(tune, "cpus", some);
    error = error ? error : add(tune, "set-arch", "0,1");
    return error ? error : add_places(tune, platform);
}

/* ------------------------------------------------------------------------------------------- */

int duet__tune_check(struct duet__tune *tune)
{
    const GPtrArray *factors = space_of(tune)->factors;
    if (duet__tune_factor(tune, "noise") || duet__tune_factor(tune, "interval"))
        return duet_fail(&tune->message, DUET_EINVAL,
                         "--noise, --interval: the best settings are simulated with draws anyway");
    for (guint f = 0; f < factors->len; f++) {
        const struct duet__factor *factor = factors->pdata[f];
        tune->lists |= factor->values->len > 1;
        if (factor->values->len > 1 && !duet__tune_chosen(factor->name))
            return duet_fail(&tune->message, DUET_EINVAL,
                             "%s%s has several values: duet tune looks for the best settings of "
                             "one problem on one machine (duet study makes tables)",
                             factor->option ? "--" : "", factor->name);
    }
    return 0;
}

/* Completes the problem by the usual size and tile, and the space by its size. */
static int complete_problem(struct duet__tune *tune)
{
    const struct duet__workload *workload = tune->request.workload;
    struct duet__problem *problem = &tune->request.problem;
    const bool real = tune->here && workload->real_n;
    const uint64_t usual_n = real ? workload->real_n : workload->default_n;
    g_autofree char *n = NULL;
    int error;
    for (const struct duet__parameter *one = workload->parameters; one && one->name; one++)
        tune->blocks |= !strcmp(one->name, "block") && !strcmp(one->initial, "0");
    /* who took the problem did not know the machine */
    problem->n = duet__tune_factor(tune, "n") ? problem->n : usual_n;
    tune->usual_tile = real ? workload->real_tile : workload->default_tile;
    problem->tile = duet__tune_factor(tune, "tile") ? problem->tile : tune->usual_tile;
    error = workload->check(problem, &tune->message);
    n = g_strdup_printf("%" PRIu64, problem->n);
    return error ? error : add(tune, "n", n);
}

/* Loads the platform, and finds what it has of the workload's kernels. */
static int look_at_platform(struct duet__tune *tune, struct duet__platform **platform)
{
    int error = duet__platform_load(tune->platform, platform, &tune->message);
    if (error || !tune->request.workload)
        return error;
    duet__calibration_select(&(*platform)->calibration, tune->request.workload->name);
    find_measured(tune, *platform);
    return 0;
}

int duet__tune_tiles(struct duet__tune *tune, GArray **missing)
{
    struct duet__platform *platform = NULL;
    const struct duet__factor *tiles;
    int error = tune->request.workload ? complete_problem(tune) : 0;
    *missing = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    if (!error && tune->platform)
        error = look_at_platform(tune, &platform);
    if (!error && tune->request.workload)
        error = add_tiles(tune);
    if (!error && !tune->lists)
        error = add_policies(tune);
    tiles = tune->here && tune->request.workload ? duet__tune_factor(tune, "tile") : NULL;
    for (guint i = 0; tiles && i < tiles->values->len; i++) {
        const uint64_t edge = g_ascii_strtoull(tiles->values->pdata[i], NULL, 10);
        const bool known = tune->high > 0;
        if (!platform || (known && ((double)edge < tune->low || (double)edge > tune->high)))
            g_array_append_val(*missing, edge);
    }
    duet__platform_free(platform);
    return error;
}

int duet__tune_space(struct duet__tune *tune)
{
    struct duet__platform *platform = NULL;
    const int place = duet__factor_place(space_of(tune), "platform");
    int error = look_at_platform(tune, &platform);
    if (place >= 0) /* more may have been measured for this than the given one has */
        g_ptr_array_remove_index(space_of(tune)->factors, (guint)place);
    if (!error)
        error = add(tune, "platform", tune->platform);
    if (!error && !tune->lists && tune->request.workload)
        error = add_blocks(tune);
    if (!error && !tune->lists)
        error = add_workers(tune, platform);
    duet__platform_free(platform);
    if (!error)
        error = duet__study_number(tune->study, &tune->message);
    if (!error && tune->study->count > SETTINGS_MOST)
        error = duet_fail(&tune->message, DUET_EINVAL,
                          "there are more than %d settings: give fewer values", SETTINGS_MOST);
    return error;
}
