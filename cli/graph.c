/* SPDX-License-Identifier: Apache-2.0 */
/* `duet list FILE`: prints the contents of a task graph. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "cli/job.h"
#include "workloads/files/graph.h"
#include "base/json.h"

/* Sums over all tasks, or over the tasks of one kernel. */
struct sum {
    size_t tasks, timed;
    double seconds, work;
};

struct shape {
    struct sum all, *kernels;
    size_t edges, levels, width; /* tasks of the longest chain; most tasks of the same level */
    double longest_s;            /* chain */
    uint64_t bytes, made;
};

static void add(struct sum *sum, const struct duet__graph *graph, size_t task)
{
    const double seconds = duet__graph_reference(graph, task);
    sum->tasks++;
    sum->timed += !isnan(seconds);
    sum->seconds += isnan(seconds) ? 0 : seconds;
    sum->work += duet__graph_task(graph, task)->work;
}

static void measure(const struct duet__graph *graph, struct shape *shape)
{
    const size_t tasks = duet__graph_count(graph);
    struct duet__graph_walk *walk = duet__graph_walk_new(graph);
    double *ends = g_new0(double, tasks + 1);
    uint32_t *levels = g_new0(uint32_t, tasks + 1), *widths = g_new0(uint32_t, tasks + 1);
    for (size_t i = 0; i < tasks; i++) {
        const double seconds = duet__graph_reference(graph, i);
        size_t count;
        const struct duet__graph_edge *edges = duet__graph_walk_next(walk, &count);
        add(&shape->all, graph, i);
        add(&shape->kernels[duet__graph_task(graph, i)->kernel], graph, i);
        shape->edges += count;
        for (size_t k = 0; k < count; k++) {
            ends[i] = fmax(ends[i], ends[edges[k].from]);
            levels[i] = MAX(levels[i], levels[edges[k].from] + 1);
        }
        ends[i] += isnan(seconds) ? 0 : seconds;
        shape->longest_s = fmax(shape->longest_s, ends[i]);
        widths[levels[i]]++;
        shape->width = MAX(shape->width, widths[levels[i]]);
        shape->levels = MAX(shape->levels, levels[i] + 1);
    }
    for (guint i = 0; i < graph->data->len; i++) {
        shape->bytes += duet__graph_datum(graph, i)->bytes;
        shape->made +=
            duet__graph_datum(graph, i)->initial ? 0 : duet__graph_datum(graph, i)->bytes;
    }
    g_free(ends);
    g_free(levels);
    g_free(widths);
    duet__graph_walk_free(walk);
}

static void print(const struct duet__graph *graph, const struct shape *shape)
{
    printf("%s: %zu tasks, %zu edges", graph->name, shape->all.tasks, shape->edges);
    if (graph->origin)
        printf(" (%s)", graph->origin);
    printf("\n%u data of %" PRIu64 " bytes, %" PRIu64 " of these made by tasks\n", graph->data->len,
           shape->bytes, shape->made);
    printf("longest chain %zu tasks, at most %zu tasks side by side (of the same level)\n",
           shape->levels, shape->width);
    printf("critical path %.6g s, all tasks %.6g s: %.4g at a time in the mean", shape->longest_s,
           shape->all.seconds, shape->longest_s > 0 ? shape->all.seconds / shape->longest_s : 0.0);
    if (shape->all.timed < shape->all.tasks)
        printf("; no time is known of %zu tasks", shape->all.tasks - shape->all.timed);
    if (graph->makespan_s > 0)
        printf("; it took %.6g s", graph->makespan_s);
    printf("\n  %-32s %9s %12s %12s\n", "kernel", "tasks", "seconds", "work");
    for (guint k = 0; k < graph->kernels->len; k++)
        if (shape->kernels[k].tasks)
            printf("  %-32s %9zu %12.6g %12.6g\n", duet__graph_kernel_name(graph, k),
                   shape->kernels[k].tasks, shape->kernels[k].seconds, shape->kernels[k].work);
}

/* Prints the graph as docs/formats.md describes it. */
static void print_json(const struct duet__job *job, const struct duet__graph *graph,
                       const struct shape *shape)
{
    struct duet__json_writer json = {.stream = stdout, .indented = true};
    duet__json_print(&json, "{schema: 1, command: %s, name: %s, origin: %s, tasks: %zu, edges: %zu",
                     job->line, graph->name, graph->origin, shape->all.tasks, shape->edges);
    duet__json_print(&json, "data: %u, bytes: %" PRIu64 ", made_bytes: %" PRIu64, graph->data->len,
                     shape->bytes, shape->made);
    duet__json_print(&json, "levels: %zu, width: %zu, critical_path_s: %g, seconds: %g, work: %g",
                     shape->levels, shape->width, shape->longest_s, shape->all.seconds,
                     shape->all.work);
    duet__json_print(&json, "untimed: %zu, makespan_s: %g, kernels: [",
                     shape->all.tasks - shape->all.timed,
                     graph->makespan_s > 0 ? graph->makespan_s : NAN);
    for (guint k = 0; k < graph->kernels->len; k++)
        if (shape->kernels[k].tasks)
            duet__json_print(&json, "{name: %s, tasks: %zu, seconds: %g, work: %g}",
                             duet__graph_kernel_name(graph, k), shape->kernels[k].tasks,
                             shape->kernels[k].seconds, shape->kernels[k].work);
    duet__json_print(&json, "]}");
}

int duet__print_graph(struct duet__job *job, const char *path)
{
    struct duet_message message = {""};
    struct duet__graph *graph;
    struct shape shape = {0};
    struct duet__graph_models models;
    int error = duet__find_starpu(job, &models, &message);
    error = error ? error : duet__graph_read(path, &models, &graph, &message);
    if (error)
        return duet__job_refuse(error, &message);
    shape.kernels = g_new0(struct sum, graph->kernels->len);
    measure(graph, &shape);
    if (job->values.json)
        print_json(job, graph, &shape);
    else
        print(graph, &shape);
    g_free(shape.kernels);
    duet__graph_free(graph);
    return duet__finish_output();
}
