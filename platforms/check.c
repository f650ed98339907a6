/* SPDX-License-Identifier: Apache-2.0 */
/* Finds in a platform values that are valid and hardly meant: wrong units, misspelt kernels, typing
 * errors. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "platforms/catalogue.h"
#include "platforms/internal.h"

/* A copy or an operation of the runtime that takes longer was probably given in another unit. */
static const double LONG_S = 0.01;

/* A kernel this much faster than the machine's product of matrices, or than its GPU's data sheet,
 * is no measuring error; a CPU's peak is that of its base clock, which turbo clocks nearly double.
 */
static const double FASTER = 1.25, FASTER_CPU = 2;

/* A time this far outside what the neighbouring sizes leave possible is a typing error. */
static const double FAR_OFF = 30;

static void add_suspicion(GPtrArray *list, const char *format, ...) G_GNUC_PRINTF(2, 3);

static void add_suspicion(GPtrArray *list, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_ptr_array_add(list, g_strdup_vprintf(format, args));
    va_end(args);
}

static void check_latencies(const struct duet_machine *m, GPtrArray *list)
{
    for (unsigned i = 0; i < m->node_count; i++)
        for (unsigned k = 0; k < m->node_count; k++) {
            const struct duet_route *route = duet_machine_route(m, i, k);
            if (i != k && route->direct && route->latency_s > LONG_S)
                add_suspicion(
                    list,
                    "copies from %s to %s wait %g s before they begin; microseconds are usual",
                    m->nodes[i].name, m->nodes[k].name, route->latency_s);
        }
    for (const struct duet__field *cost = duet__cost_fields; cost->key != NULL; cost++) {
        const double *seconds = duet__field_at(cost, &m->costs);
        if (cost->kind == DUET__NUMBER && *seconds > LONG_S)
            add_suspicion(list, "costs.%s is %g s; microseconds are usual", cost->key, *seconds);
    }
}

double duet__best_rate(const struct duet__calibration *calibration, const char *kernel,
                       const char *arch)
{
    double best = 0;
    for (size_t i = 0; calibration != NULL && i < calibration->count; i++) {
        const struct duet__curve *curve = &calibration->curves[i];
        if (strcmp(curve->arch, arch) == 0 && (!kernel || strcmp(curve->kernel, kernel) == 0))
            for (size_t k = 0; k < curve->count; k++)
                best = fmax(best, curve->points[k].work / curve->points[k].mean_s);
    }
    return best;
}

/* Returns the flops a second that no kernel exceeds by its device's data sheet; 0: not known. */
static double sheet_peak(const struct duet__catalogue *catalogue, const struct duet__curve *curve)
{
    for (unsigned i = 0; i < catalogue->device_count && strchr("sd", curve->kernel[0]); i++) {
        const struct duet__device *device = &catalogue->devices[i];
        if (strcmp(device->name, curve->arch) == 0)
            return fmax(duet__device_peak(device, curve->kernel[0], false),
                        duet__device_peak(device, curve->kernel[0], true)) *
                   (device->cores > 0 ? FASTER_CPU : FASTER);
    }
    return 0;
}

/* Reports kernels with more flops a second than the device's data sheet has, or than the product of
 * matrices with the same first letter. */
static void check_peak(const struct duet__calibration *calibration,
                       const struct duet__catalogue *catalogue, const struct duet__curve *curve,
                       GPtrArray *list)
{
    const char product[] = {curve->kernel[0], 'g', 'e', 'm', 'm', '\0'};
    double peak = FASTER * duet__best_rate(calibration, product, curve->arch);
    double sheet = sheet_peak(catalogue, curve);
    for (size_t i = 0; i < curve->count; i++) {
        double rate = curve->points[i].work / curve->points[i].mean_s;
        if (sheet > 0 && rate > sheet)
            add_suspicion(list,
                          "%s on %s of work %g is faster (%.4g GFlop/s) than the data sheet "
                          "of %s allows (duet list devices)",
                          curve->kernel, curve->arch, curve->points[i].work, rate / 1e9,
                          curve->arch);
        else if (peak > 0 && rate > peak)
            add_suspicion(
                list, "%s on %s of work %g is faster (%.4g GFlop/s) than %s ever is (%.4g GFlop/s)",
                curve->kernel, curve->arch, curve->points[i].work, rate / 1e9, product,
                peak / FASTER / 1e9);
    }
}

/* Factor by which a time is outside what a neighbour leaves possible: between the same time and one
 * in proportion to work; 1: it is inside. */
static double neighbour_distance(const struct duet__point *point,
                                 const struct duet__point *neighbour)
{
    double proportional = neighbour->mean_s * point->work / neighbour->work;
    double least = fmin(neighbour->mean_s, proportional);
    double most = fmax(neighbour->mean_s, proportional);
    return fmax(1, fmax(point->mean_s / most, least / point->mean_s));
}

/* Reports a point that is far from both its neighbours; at an end these are the next two. */
static void check_neighbours(const struct duet__curve *curve, GPtrArray *list)
{
    for (size_t i = 0; curve->count > 1 && i < curve->count; i++) {
        size_t first = i > 0 ? i - 1 : 1, second = i > 0 ? i + 1 : 2;
        double off;
        if (second >= curve->count)
            second = curve->count > 2 ? i - 2 : first;
        off = fmin(neighbour_distance(&curve->points[i], &curve->points[first]),
                   neighbour_distance(&curve->points[i], &curve->points[second]));
        if (off > FAR_OFF)
            add_suspicion(list,
                          "%s on %s of work %g takes %g s, %.0f times off the neighbouring sizes",
                          curve->kernel, curve->arch, curve->points[i].work,
                          curve->points[i].mean_s, off);
    }
}

/* Adds "dgemm on c2050" for each architecture in use without times of a kernel that others have. */
static void add_holes(const struct duet__calibration *calibration, const struct duet_machine *m,
                      const char *kernel, GPtrArray *holes)
{
    g_autoptr(GPtrArray) lacking = g_ptr_array_new();
    bool known = false;
    for (unsigned i = 0; i < m->worker_count; i++) {
        char *arch = m->archs[m->workers[i].arch].name;
        if (duet__calibration_find(calibration, kernel, arch) != NULL)
            known = true;
        else if (!g_ptr_array_find(lacking, arch, NULL))
            g_ptr_array_add(lacking, arch);
    }
    for (unsigned i = 0; known && i < lacking->len; i++)
        add_suspicion(holes, "%s on %s", kernel, (const char *)lacking->pdata[i]);
}

char *duet__platform_holes(const struct duet__calibration *calibration,
                           const struct duet_machine *machine, const char *const *kernels)
{
    g_autoptr(GPtrArray) holes = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    for (size_t i = 0; kernels == NULL && i < calibration->count; i++)
        if (g_hash_table_add(seen, calibration->curves[i].kernel))
            add_holes(calibration, machine, calibration->curves[i].kernel, holes);
    for (; kernels != NULL && *kernels != NULL; kernels++)
        add_holes(calibration, machine, *kernels, holes);
    g_ptr_array_add(holes, NULL);
    return holes->len > 1 ? g_strjoinv(", ", (char **)holes->pdata) : NULL;
}

char **duet__platform_suspicions(const struct duet__platform *platform)
{
    static const struct duet__platform_options whole = {.cpus = -1, .gpus = -1};
    const struct duet__calibration *calibration = &platform->calibration;
    GPtrArray *list = g_ptr_array_new();
    struct duet_machine machine = {.node_count = 0};
    struct duet_message message = {""};
    struct duet__catalogue catalogue;
    char *holes = NULL;
    (void)!duet__catalogue_load(&catalogue, &message); /* without it, no peak is known */
    if (duet__platform_build(platform, &whole, &machine, &message) != DUET_OK) {
        add_suspicion(list, "the whole machine cannot be built: %s", message.text);
    } else {
        check_latencies(&machine, list);
        holes = duet__platform_holes(calibration, &machine, NULL);
    }
    for (size_t i = 0; i < calibration->count; i++) {
        check_peak(calibration, &catalogue, &calibration->curves[i], list);
        check_neighbours(&calibration->curves[i], list);
    }
    if (calibration->count == 0)
        add_suspicion(list, "there are no kernel times");
    if (holes != NULL)
        add_suspicion(list, "no times of %s, of kernels that others have", holes);
    g_free(holes);
    duet__catalogue_fini(&catalogue);
    duet_machine_fini(&machine);
    g_ptr_array_add(list, NULL);
    return (char **)g_ptr_array_free(list, FALSE);
}
