/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of a report. To add one: a function and a line of the table, in the order in which it
   is to stand. */
#include "report/figures.h"

#include <math.h>

#include <glib.h>

#include "validate/stats.h"

static bool is_paced(const struct duet_report *report)
{
    return duet_request_paced(report->request);
}

/* ------------------------------------------------------------------------------------------- */
/* When a column is shown                                                                       */

static bool if_repeated(const struct duet_report *report)
{
    for (size_t i = 0; i < report->series_count; i++)
        if (report->series[i].count > 1)
            return true;
    return false;
}

static bool if_scaled(const struct duet_report *report)
{
    return duet_report_scale(report) < 1 || duet_report_scale(report) > 1;
}

static bool if_wall(const struct duet_report *report)
{
    return report->show_wall;
}

static bool if_verified(const struct duet_report *report)
{
    return duet_report_verdict(report).formula != NULL;
}

static unsigned workers_of(const struct duet_machine *machine, unsigned arch)
{
    unsigned workers = 0;

    for (unsigned i = 0; i < machine->worker_count; i++)
        workers += machine->workers[i].arch == arch;
    return workers;
}

static bool if_several(const struct duet_report *report)
{
    unsigned used = 0;

    for (unsigned arch = 0; arch < report->request->machine.arch_count; arch++)
        used += workers_of(&report->request->machine, arch) > 0;
    return used > 1;
}

static bool if_alike(const struct duet_report *report)
{
    return !if_several(report);
}

/* ------------------------------------------------------------------------------------------- */
/* The figures                                                                                  */

static double makespan(const struct duet_report *report, const struct duet_run *run)
{
    (void)report;
    return run->stats.makespan_s;
}

static double unscaled(const struct duet_report *report, const struct duet_run *run)
{
    return run->stats.makespan_s / duet_report_scale(report);
}

static double flops(const struct duet_report *report, const struct duet_run *run)
{
    const struct duet_request *request = report->request;
    double whole = request->workload->flops(&request->problem);

    return whole > 0 ? whole : run->stats.flops;
}

static double rate(const struct duet_report *report, const struct duet_run *run)
{
    double makespan_s = run->stats.makespan_s;

    if (is_paced(report))
        return NAN;
    return makespan_s > 0 ? flops(report, run) / makespan_s / 1e9 : 0;
}

static double tasks(const struct duet_report *report, const struct duet_run *run)
{
    (void)report;
    return (double)run->stats.tasks;
}

static double bytes_to_device(const struct duet_report *report, const struct duet_run *run)
{
    (void)report;
    return (double)run->stats.bytes_to_device;
}

static double bytes_to_host(const struct duet_report *report, const struct duet_run *run)
{
    (void)report;
    return (double)run->stats.bytes_to_host;
}

static double bytes_between(const struct duet_report *report, const struct duet_run *run)
{
    (void)report;
    return (double)run->stats.bytes_between;
}

static double hit_ratio(const struct duet_report *report, const struct duet_run *run)
{
    (void)report;
    if (run->stats.reads_on_device == 0)
        return NAN;
    return (double)run->stats.read_hits / (double)run->stats.reads_on_device;
}

/* Of `workers` that were busy so long together. */
static double idle_share(const struct duet_run *run, unsigned workers, double busy_s)
{
    double room = run->stats.makespan_s * workers;

    return room > 0 ? 1 - busy_s / room : 0;
}

static double idle(const struct duet_report *report, const struct duet_run *run)
{
    return idle_share(run, report->request->machine.worker_count, run->stats.busy_s);
}

static double arch_idle(const struct duet_report *report, const struct duet_run *run, unsigned arch)
{
    if (arch >= DUET_STATS_ARCHS)
        return NAN;
    return idle_share(run, workers_of(&report->request->machine, arch),
                      run->stats.busy_by_arch_s[arch]);
}

static double critical_path(const struct duet_report *report, const struct duet_run *run)
{
    (void)report;
    return run->critical_path_s;
}

static double area(const struct duet_report *report, const struct duet_run *run)
{
    (void)report;
    return run->area_s;
}

static double wall(const struct duet_report *report, const struct duet_run *run)
{
    (void)report;
    return run->wall_s;
}

const struct duet__figure duet__figures[DUET__FIGURES] = {
    [DUET__TASKS] = {.key = "tasks", .csv = "tasks", .counts = true, .of = tasks},
    [DUET__MAKESPAN] = {.csv = "makespan_s",
                        .heads = {"makespan", "s"},
                        .unit = DUET__SECONDS,
                        .of = makespan},
    [DUET__MEAN] = {.heads = {"95% of mean", "s"}, .unit = DUET__INTERVAL, .tabled = if_repeated},
    [DUET__UNSCALED] = {.heads = {"at scale 1", "s"},
                        .unit = DUET__OWN_SECONDS,
                        .tabled = if_scaled,
                        .of = unscaled},
    [DUET__GFLOPS] = {.key = "gflops",
                      .line = true,
                      .csv = "gflops",
                      .heads = {"rate", "GFlop/s"},
                      .unit = DUET__RATE,
                      .of = rate},
    [DUET__TO_DEVICE] = {.key = "host_to_device",
                         .group = "bytes",
                         .line = true,
                         .counts = true,
                         .csv = "host_to_device_bytes",
                         .heads = {"to GPU", "GB"},
                         .unit = DUET__BYTES,
                         .of = bytes_to_device},
    [DUET__TO_HOST] = {.key = "device_to_host",
                       .group = "bytes",
                       .counts = true,
                       .csv = "device_to_host_bytes",
                       .heads = {"to host", "GB"},
                       .unit = DUET__BYTES,
                       .of = bytes_to_host},
    [DUET__BETWEEN] = {.key = "device_to_device",
                       .group = "bytes",
                       .counts = true,
                       .csv = "device_to_device_bytes",
                       .heads = {"GPU-GPU", "GB"},
                       .unit = DUET__BYTES,
                       .of = bytes_between},
    [DUET__HITS] = {.key = "cache_hit_ratio",
                    .line = true,
                    .csv = "cache_hit_ratio",
                    .heads = {"hits", "%"},
                    .unit = DUET__SHARE,
                    .of = hit_ratio},
    [DUET__IDLE] = {.key = "idle_share",
                    .csv = "idle_share",
                    .heads = {"idle", "%"},
                    .unit = DUET__SHARE,
                    .tabled = if_alike,
                    .of = idle},
    [DUET__ARCH_IDLE] = {.key = "idle_share_by_arch",
                         .csv = "idle_share_",
                         .heads = {"idle%"},
                         .unit = DUET__SHARE,
                         .tabled = if_several,
                         .of_arch = arch_idle},
    [DUET__PATH] = {.key = "critical_path",
                    .group = "bounds_s",
                    .line = true,
                    .csv = "critical_path_s",
                    .heads = {"path", "%"},
                    .unit = DUET__BOUND,
                    .of = critical_path},
    [DUET__AREA] = {.key = "area",
                    .group = "bounds_s",
                    .csv = "area_s",
                    .heads = {"area", "%"},
                    .unit = DUET__BOUND,
                    .of = area},
    [DUET__WALL_TIME] = {.key = "wall_s",
                         .csv = "wall_s",
                         .heads = {"wall", "s"},
                         .unit = DUET__WALL,
                         .known = if_wall,
                         .tabled = if_wall,
                         .of = wall},
    [DUET__WORST_RESIDUAL] = {.heads = {"residual", "scaled"},
                              .unit = DUET__RESIDUAL,
                              .tabled = if_verified},
};

double duet__figure(const struct duet__figure *figure, const struct duet_report *report,
                    const struct duet_run *run, unsigned arch)
{
    return figure->of_arch ? figure->of_arch(report, run, arch) : figure->of(report, run);
}

int duet__figure_column(const struct duet__figure *figure, const struct duet_report *report,
                        int column)
{
    if (!figure->of_arch)
        return column ? -1 : 0;
    while ((unsigned)column < report->request->machine.arch_count)
        if (workers_of(&report->request->machine, (unsigned)column))
            return column;
        else
            column++;
    return -1;
}

/* Of what `of` or `of_arch` gives, NaN if one is. */
static double median_of(const struct duet__figure *figure, const struct duet_report *report,
                        const struct duet_series *series, unsigned arch)
{
    double *values = g_new(double, series->count), median = 0;

    for (size_t i = 0; i < series->count && !isnan(median); i++) {
        values[i] = duet__figure(figure, report, &series->runs[i], arch);
        if (isnan(values[i]))
            median = NAN;
    }
    if (!isnan(median))
        median = duet_median(values, series->count);
    g_free(values);
    return median;
}

double duet__figure_median(const struct duet__figure *figure, const struct duet_report *report,
                           const struct duet_series *series, unsigned arch)
{
    static const struct duet__figure work = {.of = flops};
    double makespan_s;

    if (figure->of != rate || is_paced(report))
        return median_of(figure, report, series, arch);
    makespan_s = median_of(&duet__figures[DUET__MAKESPAN], report, series, arch);
    return makespan_s > 0 ? median_of(&work, report, series, arch) / makespan_s / 1e9 : 0;
}
