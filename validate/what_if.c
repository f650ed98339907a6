/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of a run, each simulated in a process of its own. */
#include "validate/validation.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "runs/session.h"
#include "runtime/open.h"
#include "base/units.h"

enum {
    KERNELS = 3,             /* most kernels of the path that are made faster */
    MOST_TASKS = 200 * 1000, /* most tasks that another tile may make */
};

/* A variant of the run, to be simulated. */
struct variant {
    struct duet__change change;
    const char *policy; /* NULL: the policy of the run */
    struct duet__platform *platform;
    struct duet__graph graph; /* has seconds of its own, if kernels are faster */
};

/* All variants: arrays of equal length. */
struct variants {
    const struct duet__request *base;
    const struct duet__trace *trace;
    GArray *all;      /* struct variant */
    GArray *requests; /* struct duet__request */
};

/* ------------------------------------------------------------------------------------------- */
/* Adding                                                                                       */

/* Adds a variant, named as by printf, and returns its request, to be changed. Pointers hold until
   the next one is added. */
static struct duet__request *add(struct variants *variants, bool buys, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
static struct duet__request *add(struct variants *variants, bool buys, const char *format, ...)
{
    struct variant variant = {.change = {.buys = buys, .makespan_s = NAN}};
    struct duet__request request;
    va_list args;
    va_start(args, format);
    variant.change.what = g_strdup_vprintf(format, args);
    va_end(args);
    duet__request_copy(&request, variants->base);
    g_array_append_val(variants->all, variant);
    g_array_append_val(variants->requests, request);
    return &g_array_index(variants->requests, struct duet__request, variants->requests->len - 1);
}

static struct variant *last(const struct variants *variants)
{
    return &g_array_index(variants->all, struct variant, variants->all->len - 1);
}

/* Gives the last variant a platform of its own, to be changed. */
static int take_platform(struct variants *variants, struct duet__request *request,
                         struct duet_message *message)
{
    struct variant *variant = last(variants);
    int error = duet__platform_load(request->config.simulate, &variant->platform, message);
    if (error)
        return error;
    duet__calibration_select(&variant->platform->calibration, request->config.context);
    request->platform = variant->platform;
    return 0;
}

/* Halves the seconds that a graph itself has of a kernel, in a copy of them. */
static void halve_own(struct variant *variant, const struct duet__graph *graph, const char *kernel,
                      const char *arch)
{
    GArray *seconds = g_array_copy(graph->seconds);
    gpointer index = NULL;
    guint column = 0;
    variant->graph = *graph;
    variant->graph.seconds = seconds;
    while (column < graph->archs->len && strcmp(graph->archs->pdata[column], arch) != 0)
        column++;
    if (g_hash_table_lookup_extended(graph->kernel_index, kernel, NULL, &index))
        for (size_t i = 0; i < duet__graph_count(graph) && column < graph->archs->len; i++)
            if (duet__graph_task(graph, i)->kernel == GPOINTER_TO_UINT(index))
                duet__graph_seconds(&variant->graph, i)[column] /= 2;
}

/* Halves the times of a kernel, both the platform's and the graph's. */
static int halve(struct variants *variants, struct duet__request *request, const char *kernel,
                 const char *arch, struct duet_message *message)
{
    struct variant *variant = last(variants);
    int error = take_platform(variants, request, message);
    if (error)
        return error;
    if (request->problem.graph)
        halve_own(variant, request->problem.graph, kernel, arch);
    for (size_t i = 0; i < variant->platform->calibration.count; i++) {
        struct duet__curve *curve = &variant->platform->calibration.curves[i];
        for (size_t k = 0;
             k < curve->count && !strcmp(curve->kernel, kernel) && !strcmp(curve->arch, arch);
             k++) {
            struct duet__point *point = &curve->points[k];
            point->mean_s /= 2;
            point->deviation_s /= 2;
            point->median_s /= 2;
            point->base_s /= 2;
            point->memory_s /= 2;
        }
    }
    return 0;
}

static bool has_arch(const struct duet_machine *machine, const char *arch)
{
    unsigned i = 0;
    while (i < machine->arch_count && strcmp(machine->archs[i].name, arch) != 0)
        i++;
    return i < machine->arch_count;
}

static int add_kernels(struct variants *variants, const struct duet__path *path,
                       struct duet_message *message)
{
    const struct duet__recording *recording = &variants->trace->run.recording;
    unsigned kernels = 0;
    int error = 0;
    for (guint i = 0; i < path->parts->len && kernels < KERNELS && !error; i++) {
        const struct duet__path_part *part = &g_array_index(path->parts, struct duet__path_part, i);
        const char *arch = recording->machine->archs[part->arch].name;
        if (part->state != DUET_STATE_KERNEL || part->kernel >= recording->kernel_count ||
            !has_arch(&variants->base->machine, arch))
            continue;
        kernels++;
        error = halve(variants,
                      add(variants, true, "%s on %s twice as fast",
                          recording->kernels[part->kernel], arch),
                      recording->kernels[part->kernel], arch, message);
    }
    return error;
}

uint64_t duet__what_if_memory(const struct duet_machine *machine)
{
    uint64_t bytes = machine->node_count > 1 ? machine->nodes[1].capacity_bytes : 0;
    for (unsigned i = 2; i < machine->node_count; i++)
        if (!duet__is_host(machine, i) && machine->nodes[i].capacity_bytes != bytes)
            return 0;
    return bytes;
}

/* Adds twice as many nodes, with as many rows or columns, and twice the network between them. */
static int add_nodes(struct variants *variants, struct duet_message *message)
{
    const struct duet_config *base = &variants->base->config;
    const unsigned count = duet__request_nodes(variants->base);
    struct duet__network network;
    struct duet__request *request;
    struct duet_grid grid = duet__nodes_wanted(base);
    int error = duet__open_network(variants->base->platform, base, count, &network, message);
    if (error)
        return error;
    *(grid.rows > grid.cols ? &grid.cols : &grid.rows) *= 2;
    request = add(variants, true, "twice as many nodes");
    request->config.nodes =
        duet__request_keep(request, g_strdup_printf("%ux%u", grid.rows, grid.cols));
    if (network.kind == DUET__NETWORK_FILE)
        return 0;
    request = add(variants, true, "a network of twice the bandwidth");
    error = take_platform(variants, request, message);
    if (error)
        return error;
    last(variants)->platform->network = network;
    last(variants)->platform->network.bandwidth_Bps *= 2;
    request->config.network = NULL;
    return 0;
}

static void add_hardware(struct variants *variants)
{
    const char *each = duet__request_nodes(variants->base) > 1 ? " a node" : "";
    const struct duet_machine *machine = &variants->base->machine;
    const struct duet_config *base = &variants->base->config;
    const uint64_t capacity = duet__what_if_memory(machine);
    struct duet__request *request;
    struct duet_message message;
    if (machine->node_count < 2)
        return;
    request = add(variants, true, "links twice as fast");
    request->config.links =
        duet__request_keep(request, g_strdup_printf("%s%sall=2x", base->links ? base->links : "",
                                                    base->links ? "," : ""));
    request = add(variants, true, "one more GPU%s", each);
    request->config.gpus = (int)machine->node_count;
    if (duet__request_build(request, &message) && request->config.cpus > 0) {
        request->config.cpus--; /* one core feeds the added GPU */
        g_free(last(variants)->change.what);
        last(variants)->change.what = g_strdup_printf("one more GPU, one CPU less%s", each);
    }
    if (capacity) {
        request = add(variants, true, "GPU memory twice as large");
        request->config.gpu_memory_bytes = 2 * capacity;
        request->config.gpu_memory_share = 0;
    }
}

static void add_settings(struct variants *variants)
{
    static const char *const policies[] = {"heft", "dmdas", "ws", "eager", "cp"};
    const bool several = duet__request_nodes(variants->base) > 1;
    const size_t count = G_N_ELEMENTS(policies) - several; /* cp sees the graph of one node */
    const char *own = variants->base->policies[0];
    struct duet__request *request = add(variants, true, "a runtime that takes no time itself");
    request->config.costs = NULL;
    request->config.no_costs = true;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(own, policies[i]) == 0)
            continue;
        (void)add(variants, false, "policy %s", policies[i]);
        last(variants)->policy = policies[i];
    }
    if (several) /* tasks are not ranked before they run, either */
        return;
    request = add(variants, false, "priorities bottom-level");
    request->config.priorities = "bottom-level";
}

int duet__what_if_workload(struct duet__request *request, const struct duet__trace *trace,
                           uint64_t tile, struct duet_message *message)
{
    const struct duet__workload *workload =
        trace->workload ? duet__workload_find(trace->workload) : NULL;
    const char *kernel = trace->run.recording.kernels[0];
    g_auto(GStrv) params = g_strsplit(trace->settings ? trace->settings : "", ", ", -1);
    int error;
    if (!workload || !trace->n || !tile)
        return duet_fail(message, DUET_ENOTFOUND,
                         "of '%.60s' it is not known which node has which data",
                         trace->workload ? trace->workload : "");
    request->workload = workload;
    request->config.context = workload->name;
    request->problem = (struct duet__problem){.n = trace->n,
                                              .tile = tile,
                                              .precision = *kernel == 's' ? 's' : 'd',
                                              .seed = trace->run.seed};
    /* a run's settings begin with its nodes, if there are several (duet__request_facts) */
    error =
        duet__request_set_params(request, params + (*params && g_str_has_prefix(*params, "nodes=")),
                                 message);
    return error ? error : workload->check(&request->problem, message);
}

/* Adds the workload itself with another tile, if it is one of duet's own. */
static void add_tile(struct variants *variants, uint64_t tile)
{
    const struct duet__trace *trace = variants->trace;
    struct duet__request *request;
    struct duet_message message;
    if (!tile || trace->n % tile)
        return;
    request = add(variants, false, "tile %" PRIu64, tile);
    request->config.extrapolate = true;
    if (!duet__what_if_workload(request, trace, tile, &message) &&
        duet__request_tasks(request) <= MOST_TASKS)
        return;
    /* a tile that the workload refuses is no possible change */
    duet__request_fini(request);
    g_free(last(variants)->change.what);
    g_array_set_size(variants->requests, variants->requests->len - 1);
    g_array_set_size(variants->all, variants->all->len - 1);
}

/* ------------------------------------------------------------------------------------------- */
/* Simulating                                                                                   */

static int by_makespan(const void *left, const void *right)
{
    const struct duet__change *a = left, *b = right;
    if (isnan(a->makespan_s) != isnan(b->makespan_s))
        return isnan(a->makespan_s) ? 1 : -1;
    if (a->makespan_s < b->makespan_s || a->makespan_s > b->makespan_s)
        return a->makespan_s < b->makespan_s ? -1 : 1;
    return strcmp(a->what, b->what);
}

/*
 * Adds the lower bound of the run without a change, which no policy can beat, to the changes. A
 * simulated run knew where its tasks may run, which the bounds of a graph do not.
 */
static void add_bound(struct variants *variants, const struct duet__series *series,
                      const struct duet__trace *trace)
{
    double best_s = 0, own_s = 0;
    const char *name = series->count ? duet__bounds_best(&series->runs[0].bounds, &best_s) : NULL,
               *own = duet__bounds_best(&trace->run.bounds, &own_s);
    if (!(best_s > 0))
        return;
    if (own_s > best_s && !g_strcmp0(trace->world, "simulated") &&
        !strcmp(variants->base->platform->name, trace->run.recording.machine->name)) {
        best_s = own_s;
        name = own;
    }
    (void)add(variants, false, "a perfect policy, at best (lower bound: %s)", name);
    last(variants)->change.bound = true;
    last(variants)->change.makespan_s = best_s;
}

static int simulate(struct variants *variants, struct duet__progress *progress,
                    struct duet__what_if *out, int *number, struct duet_message *message)
{
    const guint count = variants->all->len;
    struct duet__request pool = *variants->base;
    g_autofree char **policies = g_new0(char *, count + 1);
    g_autofree struct duet__series *series = g_new0(struct duet__series, count);
    int error;
    for (guint i = 0; i < count; i++) {
        struct variant *variant = &g_array_index(variants->all, struct variant, i);
        struct duet__request *request = &g_array_index(variants->requests, struct duet__request, i);
        if (variant->graph.seconds)
            request->problem.graph = &variant->graph;
        policies[i] = variant->policy ? (char *)(uintptr_t)variant->policy : pool.policies[0];
    }
    pool.policies = policies;
    pool.policy_count = count;
    pool.variants = (const struct duet__request *)(void *)variants->requests->data;
    progress->total = duet__request_tasks(&pool) * count;
    progress->run_count = count;
    error = duet__simulate(&pool, progress, series, number, message);
    for (guint i = 0; i < count && !error; i++) {
        struct duet__change *change = &g_array_index(variants->all, struct variant, i).change;
        const char *guess = series[i].count ? series[i].runs[0].guess : NULL;
        out->guess = i ? out->guess : guess;
        guess = out->guess ? out->guess : guess;
        if (guess && i)
            change->why = g_strdup_printf("rests on a guess: the time of %s", guess);
        else if (series[i].count)
            change->makespan_s = series[i].runs[0].stats.makespan_s;
        else
            change->why = g_strdup(*series[i].message.text ? series[i].message.text : "given up");
    }
    if (!error && !*number && series[0].error)
        error = duet_fail(message, series[0].error, "%s", series[0].message.text);
    if (!error && !variants->base->guesses)
        add_bound(variants, &series[0], variants->trace);
    for (guint i = 0; i < count; i++)
        duet__series_fini(&series[i]);
    return error;
}

static void take(struct variants *variants, struct duet__what_if *out)
{
    out->changes = g_array_new(FALSE, FALSE, sizeof(struct duet__change));
    for (guint i = 0; i < variants->all->len; i++) {
        struct variant *variant = &g_array_index(variants->all, struct variant, i);
        if (i) {
            g_array_append_val(out->changes, variant->change);
        } else {
            out->reference_s = variant->change.makespan_s;
            g_free(variant->change.what);
            g_free(variant->change.why);
        }
        if (variant->graph.seconds)
            g_array_unref(variant->graph.seconds);
        duet__request_fini(&g_array_index(variants->requests, struct duet__request, i));
        duet__platform_free(variant->platform);
    }
    g_array_sort(out->changes, by_makespan);
    g_array_unref(variants->all);
    g_array_unref(variants->requests);
}

int duet__what_if_make(const struct duet__request *request, const struct duet__trace *trace,
                       const struct duet__path *path, struct duet__progress *progress,
                       struct duet__what_if *out, int *number, struct duet_message *message)
{
    struct variants variants = {
        .base = request,
        .trace = trace,
        .all = g_array_new(FALSE, FALSE, sizeof(struct variant)),
        .requests = g_array_new(FALSE, FALSE, sizeof(struct duet__request)),
    };
    int error;
    *number = 0;
    add(&variants, false, "nothing")->bounds = true;
    error = add_kernels(&variants, path, message);
    if (!error && duet__request_nodes(request) > 1)
        error = add_nodes(&variants, message);
    if (!error) {
        add_hardware(&variants);
        add_settings(&variants);
        add_tile(&variants, trace->tile / 2);
        add_tile(&variants, trace->tile * 2);
        error = simulate(&variants, progress, out, number, message);
    }
    take(&variants, out);
    return error;
}

void duet__what_if_fini(struct duet__what_if *what_if)
{
    for (guint i = 0; what_if->changes && i < what_if->changes->len; i++) {
        g_free(g_array_index(what_if->changes, struct duet__change, i).what);
        g_free(g_array_index(what_if->changes, struct duet__change, i).why);
    }
    if (what_if->changes)
        g_array_unref(what_if->changes);
    *what_if = (struct duet__what_if){0};
}
