/* SPDX-License-Identifier: Apache-2.0 */
/* Writes task graphs as directed graphs of Graphviz, with the attributes that duet reads. */
#include <inttypes.h>
#include <math.h>

#include "workloads/files/formats.h"
#include "base/json.h"

/* Writes a name; backslashes are special in Graphviz, and not in names. */
static void write_text(FILE *stream, const char *key, const char *text)
{
    if (!text)
        return;
    fprintf(stream, "%s\"", key);
    for (; *text; text++) {
        if (*text == '"')
            fputc('\\', stream);
        fputc(*text == '\\' ? '/' : *text, stream);
    }
    fputc('"', stream);
}

static void write_number(FILE *stream, const char *key, double value)
{
    char digits[DUET__DIGITS_MAX];

    if (!isnan(value))
        fprintf(stream, "%s\"%s\"", key,
                duet__digits(value, digits)); /* numbers without quotes have no exponent */
}

void duet__graph_write_dot(FILE *stream, const void *data)
{
    const struct duet__graph *graph = data;
    struct duet__graph_walk *walk = duet__graph_walk_new(graph);

    write_text(stream, "digraph ", graph->name);
    fputs(" {\n", stream);
    for (size_t i = 0; i < duet__graph_count(graph); i++) {
        const struct duet__graph_task *task = duet__graph_task(graph, i);
        const struct duet__graph_edge *edges;
        size_t count;

        fprintf(stream, "t%zu", i);
        write_text(stream, " [kernel=", duet__graph_kernel_name(graph, task->kernel));
        write_number(stream, ", cost=", duet__graph_reference(graph, i));
        write_number(stream, ", work=", task->work > 0 ? task->work : NAN);
        if (task->priority)
            write_number(stream, ", priority=", task->priority);
        write_text(stream, ", where=", task->where ? graph->wheres->pdata[task->where] : NULL);
        write_text(stream, ", label=", task->name);
        fputs("];\n", stream);
        edges = duet__graph_walk_next(walk, &count);
        for (size_t k = 0; k < count; k++) {
            fprintf(stream, "t%u -> t%zu", edges[k].from, i);
            if (edges[k].bytes)
                fprintf(stream, " [size=%" PRIu64 "]", edges[k].bytes);
            fputs(";\n", stream);
        }
    }
    fputs("}\n", stream);
    duet__graph_walk_free(walk);
}
