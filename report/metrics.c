/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of a report. To add one, name it in metrics.h and write its line of the table, in the
   same order, and a function where its value is not just a member of the run. */
#include "report/metrics.h"

/* ------------------------------------------------------------------------------------------- */
/* True if a column is shown */

static bool if_repeated(const struct duet__report *report)
{
    for (size_t i = 0; i < report->series_count; i++)
        if (report->series[i].count > 1)
            return true;
    return false;
}

static bool if_scaled(const struct duet__report *report)
{
    return duet__request_scale(report->request) < 1 || duet__request_scale(report->request) > 1;
}

static bool if_wall(const struct duet__report *report)
{
    return report->show_wall;
}

/* True if it is known what simulated times rest on. */
static bool if_based(const struct duet__report *report)
{
    double all = 0;
    for (size_t i = 0; i < DUET__BASES; i++)
        all += report->series[0].runs[0].basis[i];
    return all > 0;
}

static bool if_verified(const struct duet__report *report)
{
    return duet__report_verdict(report).formula != NULL;
}

static bool if_nodes(const struct duet__report *report)
{
    return duet__request_nodes(report->request) > 1;
}

/* Number of workers of an architecture, or, below 0, of a node, or all. */
static unsigned workers_of(const struct duet__report *report, int arch)
{
    const struct duet_machine *machine = &report->request->machine;
    unsigned workers = 0;
    for (unsigned i = 0; i < machine->worker_count; i++)
        workers += arch < 0 || machine->workers[i].arch == (unsigned)arch;
    return workers;
}

static bool if_several(const struct duet__report *report)
{
    unsigned first = report->request->machine.workers[0].arch;
    return workers_of(report, (int)first) < workers_of(report, -1);
}

static bool if_alike(const struct duet__report *report)
{
    return !if_several(report);
}

/* ------------------------------------------------------------------------------------------- */
/* The metrics                                                                                  */

static double unscaled(const struct duet__report *report, const struct duet__run *run, int arch)
{
    return run->stats.makespan_s / duet__request_scale(report->request);
}

static double flops(const struct duet__report *report, const struct duet__run *run, int arch)
{
    double whole = report->request->workload->flops(&report->request->problem);
    return whole > 0 ? whole : run->stats.flops;
}

static double rate(const struct duet__report *report, const struct duet__run *run, int arch)
{
    const double makespan_s = run->stats.makespan_s, work = flops(report, run, arch);
    if (duet__request_paced(report->request) || !(work > 0 && makespan_s > 0))
        return NAN;
    return work / makespan_s / 1e9;
}

static double hit_ratio(const struct duet__report *report, const struct duet__run *run, int arch)
{
    if (run->stats.reads_on_device == 0)
        return NAN;
    return (double)run->stats.read_hits / (double)run->stats.reads_on_device;
}

static double idle(const struct duet__report *report, const struct duet__run *run, int arch)
{
    double room_s = run->stats.makespan_s * workers_of(report, arch) * MAX(run->over.nodes, 1);
    if (arch >= DUET_STATS_ARCHS)
        return NAN;
    return room_s > 0
               ? 1 - (arch < 0 ? run->stats.busy_s : run->stats.busy_by_arch_s[arch]) / room_s
               : 0;
}

static double best(const struct duet__report *report, const struct duet__run *run, int arch)
{
    double best_s;
    (void)duet__bounds_best(&run->bounds, &best_s);
    return best_s;
}

#define MEMBER(member) .at = offsetof(struct duet__run, member)
#define PERCENT .unit = 0.01, .digits = 1
#define BYTES(name, head, member, ...)                                                             \
    {                                                                                              \
        .key = name, .group = "bytes", .csv = name "_bytes", .heads = {head, "GB"}, .unit = 1e9,   \
        .digits = -6, MEMBER(stats.member), .counts = true, __VA_ARGS__                            \
    }
#define BOUND(name, member, ...)                                                                   \
    {                                                                                              \
        .key = name, .group = "bounds_s", .csv = name "_s", MEMBER(bounds.member), __VA_ARGS__     \
    }

#define BASIS(which, name)                                                                         \
    [DUET__BASIS + DUET__##which] = {.key = name,                                                  \
                                     .group = "basis",                                             \
                                     .csv = "basis_" name,                                         \
                                     .known = if_based,                                            \
                                     MEMBER(basis[DUET__##which])}

const struct duet__metric duet__metrics[DUET__METRICS] = {
    [DUET__TASKS] = {.key = "tasks", .csv = "tasks", MEMBER(stats.tasks), .counts = true},
    [DUET__MAKESPAN] = {.csv = "makespan_s",
                        .heads = {"makespan", "s"},
                        .digits = -9,
                        MEMBER(stats.makespan_s)},
    [DUET__INTERVAL] = {.heads = {"95% of mean", "s"}, .tabled = if_repeated},
    [DUET__UNSCALED] = {.heads = {"at scale 1", "s"},
                        .digits = -9,
                        .tabled = if_scaled,
                        .of = unscaled},
    [DUET__GFLOPS] = {.key = "gflops",
                      .line = true,
                      .csv = "gflops",
                      .heads = {"rate", "GFlop/s"},
                      .digits = -3,
                      .of = rate},
    [DUET__TO_DEVICE] = BYTES("host_to_device", "to GPU", bytes_to_device, .line = true),
    [DUET__TO_HOST] = BYTES("device_to_host", "to host", bytes_to_host, .line = false),
    [DUET__BETWEEN] = BYTES("device_to_device", "GPU-GPU", bytes_between, .line = false),
    [DUET__HITS] = {.key = "cache_hit_ratio",
                    .line = true,
                    .csv = "cache_hit_ratio",
                    .heads = {"hits", "%"},
                    PERCENT,
                    .of = hit_ratio},
    [DUET__IDLE] = {.key = "idle_share",
                    .csv = "idle_share",
                    .heads = {"idle", "%"},
                    PERCENT,
                    .tabled = if_alike,
                    .of = idle},
    [DUET__ARCH_IDLE] = {.key = "idle_share_by_arch",
                         .csv = "idle_share_",
                         .heads = {"idle%"},
                         PERCENT,
                         .tabled = if_several,
                         .of = idle,
                         .by_arch = true},
    [DUET__MESSAGES] = {.heads = {"messages", "number"},
                        .tabled = if_nodes,
                        MEMBER(over.messages),
                        .counts = true},
    [DUET__MESSAGE_BYTES] = {.heads = {"messages", "GB"},
                             .unit = 1e9,
                             .digits = -6,
                             .tabled = if_nodes,
                             MEMBER(over.bytes),
                             .counts = true},
    [DUET__NODE_LEAST] = {MEMBER(over.idle_least)},
    [DUET__NODE_MEDIAN] = {MEMBER(over.idle_median)},
    [DUET__NODE_MOST] = {MEMBER(over.idle_most)},
    [DUET__PATH] = BOUND("critical_path", critical_path_s, .line = true),
    [DUET__AREA] = BOUND("area", area_s, .line = false),
    [DUET__MIXED] = BOUND("mixed", mixed_s, .line = false),
    [DUET__LINKS] = BOUND("links", links_s, .line = false),
    [DUET__BEST] = {.key = "best",
                    .group = "bounds_s",
                    .csv = "best_s",
                    .heads = {"bound", "%"},
                    PERCENT,
                    .bound = true,
                    .of = best},
    BASIS(MEASURED, "measured"),
    BASIS(INTERPOLATED, "interpolated"),
    BASIS(EXTRAPOLATED, "extrapolated"),
    BASIS(ESTIMATED, "estimated"),
    BASIS(GUESSED, "guessed"),
    [DUET__WALL_TIME] = {.key = "wall_s",
                         .csv = "wall_s",
                         .heads = {"wall", "s"},
                         .digits = 3,
                         .known = if_wall,
                         MEMBER(wall_s)},
    [DUET__RESIDUAL] = {.heads = {"residual", "scaled"}, .tabled = if_verified},
};

double duet__metric(const struct duet__metric *metric, const struct duet__report *report,
                    const struct duet__run *run, int arch)
{
    const void *member = (const char *)run + metric->at;
    if (metric->of)
        return metric->of(report, run, metric->by_arch ? arch : -1);
    return metric->counts ? (double)*(const uint64_t *)member : *(const double *)member;
}

int duet__metric_next(const struct duet__metric *metric, const struct duet__report *report,
                      int arch)
{
    if (!metric->by_arch)
        return arch > 0 ? -1 : 0;
    for (; arch < (int)report->request->machine.arch_count; arch++)
        if (workers_of(report, arch))
            return arch;
    return -1;
}

double duet__metric_median(const struct duet__metric *metric, const struct duet__report *report,
                           const struct duet__series *series, int arch)
{
    static const struct duet__metric work = {.of = flops};
    double *values, median = 0, makespan_s, whole;
    if (metric->of == rate && !duet__request_paced(report->request)) {
        makespan_s = duet__metric_median(&duet__metrics[DUET__MAKESPAN], report, series, arch);
        whole = duet__metric_median(&work, report, series, arch);
        return whole > 0 && makespan_s > 0 ? whole / makespan_s / 1e9 : NAN;
    }
    values = g_new(double, series->count);
    for (size_t i = 0; i < series->count; i++) {
        values[i] = duet__metric(metric, report, &series->runs[i], arch);
        if (isnan(values[i]))
            median = NAN;
    }
    if (!isnan(median))
        median = duet__median(values, series->count);
    g_free(values);
    return median;
}
