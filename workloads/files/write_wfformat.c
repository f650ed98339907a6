/* SPDX-License-Identifier: Apache-2.0 */
/* Writes task graphs as workflows in WfFormat 1.5: data are files, times those of the reference. */
#include <math.h>

#include "workloads/files/formats.h"
#include "base/json.h"

static gint by_parent(gconstpointer a, gconstpointer b)
{
    const struct duet__graph_edge *x = a, *y = b;

    return x->from != y->from ? (x->from > y->from) - (x->from < y->from)
                              : (x->to > y->to) - (x->to < y->to);
}

/* Returns all edges, by the task that they lead to. */
static GArray *find_edges(const struct duet__graph *graph)
{
    GArray *edges = g_array_new(FALSE, FALSE, sizeof(struct duet__graph_edge));
    struct duet__graph_walk *walk = duet__graph_walk_new(graph);

    for (size_t i = 0; i < duet__graph_count(graph); i++) {
        size_t count;
        const struct duet__graph_edge *own = duet__graph_walk_next(walk, &count);

        g_array_append_vals(edges, own, (guint)count);
    }
    duet__graph_walk_free(walk);
    return edges;
}

static void put_id(struct duet__json_writer *json, const char *key, char letter, size_t number)
{
    char id[32];

    g_snprintf(id, sizeof id, "%c%zu", letter, number);
    duet__json_put_string(json, key, id);
}

/* Writes the data that a task reads, or that it writes. */
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

static void write_specification(struct duet__json_writer *json, const struct duet__graph *graph)
{
    g_autoptr(GArray) parents = find_edges(graph), children = g_array_copy(parents);
    const struct duet__graph_edge *parent = (const struct duet__graph_edge *)(void *)parents->data,
                                  *child = (const struct duet__graph_edge *)(void *)children->data;
    const struct duet__graph_edge *last_parent = parent + parents->len,
                                  *last_child = child + children->len;

    g_array_sort(children, by_parent);
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
        for (; parent < last_parent && parent->to == i; parent++)
            put_id(json, NULL, 't', parent->from);
        duet__json_print(json, "], children: [");
        for (; child < last_child && child->from == i; child++)
            put_id(json, NULL, 't', child->to);
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

    duet__json_print(json, "{name: %s, schemaVersion: %s\n workflow: {", graph->name, "1.5");
    write_specification(json, graph);
    write_execution(json, graph);
    duet__json_print(json, "}}");
    fputc('\n', stream);
}
