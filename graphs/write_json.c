/* SPDX-License-Identifier: Apache-2.0 */
/* Our own format of task graphs, which says everything; docs/formats.md describes it. */
#include <math.h>

#include "graphs/formats.h"
#include "platforms/json.h"

const char *duet__graph_mode_name(unsigned mode)
{
    static const struct {
        unsigned mode;
        const char *name;
    } names[] = {{DUET_R, "r"},           {DUET_W, "w"},
                 {DUET_RW, "rw"},         {DUET_COMMUTE, "commute"},
                 {DUET_REDUCE, "reduce"}, {DUET_SCRATCH, "scratch"}};

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        if (names[i].mode == mode)
            return names[i].name;
    return NULL;
}

static void write_texts(struct duet__json_writer *json, const char *key, const GPtrArray *texts)
{
    duet__json_begin(json, key, '[');
    for (guint i = 0; i < texts->len; i++)
        duet__json_put_string(json, NULL, texts->pdata[i]);
    duet__json_end(json, ']');
}

static void write_data(struct duet__json_writer *json, const struct duet__graph_data *data)
{
    duet__json_begin(json, NULL, '{');
    if (data->bytes)
        duet__json_put_integer(json, "bytes", data->bytes);
    if (data->name)
        duet__json_put_string(json, "name", data->name);
    if (!data->initial)
        duet__json_put_boolean(json, "initial", false);
    duet__json_end(json, '}');
}

/* The tasks that it uses and comes after. */
static void write_links(struct duet__json_writer *json, const struct duet__graph *graph,
                        size_t index)
{
    size_t count;
    const struct duet__graph_access *accesses = duet__graph_accesses(graph, index, &count);
    const uint32_t *after;

    if (count)
        duet__json_begin(json, "accesses", '[');
    for (size_t i = 0; i < count; i++) {
        duet__json_begin(json, NULL, '[');
        duet__json_put_integer(json, NULL, accesses[i].data);
        duet__json_put_string(json, NULL, duet__graph_mode_name(accesses[i].mode));
        duet__json_end(json, ']');
    }
    if (count)
        duet__json_end(json, ']');
    after = duet__graph_after(graph, index, &count);
    if (count)
        duet__json_begin(json, "after", '[');
    for (size_t i = 0; i < count; i++)
        duet__json_put_integer(json, NULL, after[i]);
    if (count)
        duet__json_end(json, ']');
}

static void write_task(struct duet__json_writer *json, const struct duet__graph *graph,
                       size_t index)
{
    const struct duet__graph_task *task = duet__graph_task(graph, index);
    const double *seconds = duet__graph_seconds(graph, index);
    bool known = false;

    for (guint i = 0; i < graph->archs->len; i++)
        known |= !isnan(seconds[i]);
    duet__json_begin(json, NULL, '{');
    duet__json_put_integer(json, "kernel", task->kernel);
    write_links(json, graph, index);
    if (task->work > 0)
        duet__json_put_number(json, "work", task->work);
    if (task->priority)
        duet__json_put_number(json, "priority", task->priority);
    if (known)
        duet__json_put_numbers(json, "seconds", seconds, graph->archs->len);
    if (task->where)
        duet__json_put_string(json, "where", graph->wheres->pdata[task->where]);
    if (task->name)
        duet__json_put_string(json, "name", task->name);
    duet__json_end(json, '}');
}

void duet__graph_write_json(FILE *stream, const void *data)
{
    const struct duet__graph *graph = data;
    struct duet__json_writer writer = {.stream = stream, .dense = true}, *json = &writer;

    duet__json_print(json, "{format: %s, schema: 1\n name: %s", "duet-graph", graph->name);
    if (graph->origin)
        duet__json_print(json, "\n origin: %s", graph->origin);
    if (graph->makespan_s > 0)
        duet__json_print(json, "\n makespan_s: %g", graph->makespan_s);
    duet__json_break(json, 1);
    write_texts(json, "architectures", graph->archs);
    duet__json_break(json, 1);
    write_texts(json, "kernels", graph->kernels);
    duet__json_print(json, "\n data: [");
    for (guint i = 0; i < graph->data->len; i++) {
        duet__json_break(json, 2);
        write_data(json, duet__graph_datum(graph, i));
    }
    duet__json_print(json, "]\n tasks: [");
    for (size_t i = 0; i < duet__graph_count(graph); i++) {
        duet__json_break(json, 2);
        write_task(json, graph, i);
    }
    duet__json_print(json, "]}\n");
}
