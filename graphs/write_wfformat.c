/* SPDX-License-Identifier: Apache-2.0 */
/* Task graphs as workflows in WfFormat 1.5: data are files, and times those of the reference. */
#include <math.h>

#include "graphs/formats.h"
#include "platforms/json.h"

/* Edges by the task that they come from, beside the order in which the walk finds them. */
struct edges {
    GArray *all;   /* struct duet__graph_edge, by the task that they lead to */
    size_t *ends;  /* by task: where its own end in `all` */
    size_t *first; /* by task: where its children begin in `children` */
    uint32_t *children;
};

static void find_edges(const struct duet__graph *graph, struct edges *edges)
{
    const size_t tasks = duet__graph_count(graph);
    struct duet__graph_walk *walk = duet__graph_walk_new(graph);

    *edges = (struct edges){.all = g_array_new(FALSE, FALSE, sizeof(struct duet__graph_edge)),
                            .ends = g_new0(size_t, tasks + 1),
                            .first = g_new0(size_t, tasks + 2)};
    for (size_t i = 0; i < tasks; i++) {
        size_t count;
        const struct duet__graph_edge *own = duet__graph_walk_next(walk, &count);

        g_array_append_vals(edges->all, own, (guint)count);
        edges->ends[i] = edges->all->len;
        for (size_t k = 0; k < count; k++)
            edges->first[own[k].from + 2]++;
    }
    for (size_t i = 0; i < tasks; i++)
        edges->first[i + 2] += edges->first[i + 1];
    edges->children = g_new(uint32_t, edges->all->len + 1);
    for (guint i = 0; i < edges->all->len; i++) {
        const struct duet__graph_edge *edge =
            &g_array_index(edges->all, struct duet__graph_edge, i);

        edges->children[edges->first[edge->from + 1]++] = edge->to;
    }
    duet__graph_walk_free(walk);
}

static void put_id(struct duet__json_writer *json, const char *key, char letter, size_t number)
{
    char id[32];

    g_snprintf(id, sizeof id, "%c%zu", letter, number);
    duet__json_put_string(json, key, id);
}

/* The data that a task reads, or that it writes. */
static void write_files(struct duet__json_writer *json, const struct duet__graph *graph,
                        size_t task, const char *key, unsigned mode)
{
    size_t count;
    const struct duet__graph_access *accesses = duet__graph_accesses(graph, task, &count);

    duet__json_begin(json, key, '[');
    for (size_t i = 0; i < count; i++)
        if (accesses[i].mode & mode && accesses[i].mode != DUET_SCRATCH)
            put_id(json, NULL, 'd', accesses[i].data);
    duet__json_end(json, ']');
}

static void write_specification(struct duet__json_writer *json, const struct duet__graph *graph,
                                const struct edges *edges)
{
    duet__json_print(json, "\n  specification: {tasks: [");
    for (size_t i = 0; i < duet__graph_count(graph); i++) {
        const char *name = duet__graph_task(graph, i)->name;

        duet__json_break(json, 4);
        duet__json_begin(json, NULL, '{');
        duet__json_put_string(json, "name",
                              name ? name
                                   : duet__graph_kernel_name(graph,
                                                             duet__graph_task(graph, i)->kernel));
        put_id(json, "id", 't', i);
        duet__json_begin(json, "parents", '[');
        for (size_t k = i ? edges->ends[i - 1] : 0; k < edges->ends[i]; k++)
            put_id(json, NULL, 't', g_array_index(edges->all, struct duet__graph_edge, k).from);
        duet__json_print(json, "], children: [");
        for (size_t k = edges->first[i]; k < edges->first[i + 1]; k++)
            put_id(json, NULL, 't', edges->children[k]);
        duet__json_end(json, ']');
        write_files(json, graph, i, "inputFiles", DUET_R);
        write_files(json, graph, i, "outputFiles", DUET_W);
        duet__json_end(json, '}');
    }
    duet__json_print(json, "]\n   files: [");
    for (guint i = 0; i < graph->data->len; i++) {
        duet__json_break(json, 4);
        duet__json_begin(json, NULL, '{');
        put_id(json, "id", 'd', i);
        duet__json_put_integer(json, "sizeInBytes", duet__graph_datum(graph, i)->bytes);
        duet__json_end(json, '}');
    }
    duet__json_print(json, "]}");
}

static void write_execution(struct duet__json_writer *json, const struct duet__graph *graph)
{
    duet__json_print(json, "\n  execution: {makespanInSeconds: %g, executedAt: %s\n   tasks: [",
                     graph->makespan_s, "1970-01-01T00:00:00Z");
    for (size_t i = 0; i < duet__graph_count(graph); i++) {
        const struct duet__graph_task *task = duet__graph_task(graph, i);

        duet__json_break(json, 4);
        duet__json_begin(json, NULL, '{');
        put_id(json, "id", 't', i);
        if (!isnan(duet__graph_reference(graph, i)))
            duet__json_put_number(json, "runtimeInSeconds", duet__graph_reference(graph, i));
        duet__json_print(json, "command: {program: %s}",
                         duet__graph_kernel_name(graph, task->kernel));
        if (task->priority)
            duet__json_put_number(json, "priority", task->priority);
        duet__json_end(json, '}');
    }
    duet__json_print(json, "]}");
}

void duet__graph_write_wfformat(FILE *stream, const void *data)
{
    const struct duet__graph *graph = data;
    struct duet__json_writer writer = {.stream = stream}, *json = &writer;
    struct edges edges;

    find_edges(graph, &edges);
    duet__json_print(json, "{name: %s, schemaVersion: %s\n workflow: {", graph->name, "1.5");
    write_specification(json, graph, &edges);
    write_execution(json, graph);
    duet__json_print(json, "}}");
    fputc('\n', stream);
    g_array_unref(edges.all);
    g_free(edges.ends);
    g_free(edges.first);
    g_free(edges.children);
}
