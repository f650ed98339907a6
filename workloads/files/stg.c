/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes the Standard Task Graph Set's format (Tobita, Kasahara, Journal of Scheduling 5,
 * 2002), that of its prototype, and the one with communication costs: the number of tasks, then a
 * line for each task with its number, its time, and its predecessors' count and numbers, each with
 * its cost if there are costs.
 */
#include <math.h>
#include <string.h>

#include "workloads/files/graph.h"
#include "base/json.h"

/* Bytes of a cost of 1: those that a link of 1 GB/s moves in a second. */
static const double bytes_of_cost = 1e9;

enum { MOST = 100000000 }; /* most tasks */

/* State of the reader. The first error stays in `error`. */
struct reader {
    struct duet__graph *graph;
    const char *at, *path;
    unsigned line;
    int error;
    struct duet_message *message;
    GArray *numbers, *edges; /* double: of the current line; struct duet__graph_edge */
    uint32_t rows, first;    /* lines of tasks so far; number of the first task */
    uint32_t dummies;        /* 1: the first line is the start of all, and no task */
};

bool duet__graph_is_stg(const char *text, size_t length, const char *path)
{
    return g_ascii_isdigit(*text) || *text == '#';
}

#define fail(reader, ...)                                                                          \
    ((reader)->error = (reader)->error ? (reader)->error                                           \
                                       : duet__graph_fail((reader)->message, (reader)->path,       \
                                                          (reader)->line, __VA_ARGS__))

/* Reads the numbers of the next line that has any. false: there is none. */
static bool next_line(struct reader *reader)
{
    g_array_set_size(reader->numbers, 0);
    while (!reader->numbers->len && !reader->error && *reader->at) {
        const bool remark = *reader->at == '#';
        size_t length;
        reader->line++;
        for (; (length = strcspn(reader->at += strspn(reader->at, " \t\r"), " \t\r\n"));
             reader->at += length) {
            char *end = NULL;
            const double value = g_ascii_strtod(reader->at, &end);
            if (!remark && (end != reader->at + length || isnan(value)))
                fail(reader, "expected a number, not '%.*s'", (int)MIN(length, 20), reader->at);
            if (!remark)
                g_array_append_val(reader->numbers, value);
        }
        reader->at += *reader->at == '\n';
    }
    return reader->numbers->len && !reader->error;
}

/* Returns the index-th number of the line; `whole`: it has no fraction. */
static double number(struct reader *reader, guint index, bool whole, double most)
{
    double value = 0;
    if (index < reader->numbers->len)
        value = g_array_index(reader->numbers, double, index);
    else
        fail(reader, "expected another number, but the line ends");
    if (value < 0 || value > most || (whole && value > floor(value)))
        fail(reader, "%g is out of range, expected a %snumber from 0 to %g", value,
             whole ? "whole " : "", most);
    return reader->error ? 0 : value;
}

/* Reads the predecessors of the last task, each with its cost if there are costs. */
static void read_edges(struct reader *reader, guint count, bool costs)
{
    for (guint i = 0; i < count && !reader->error; i++) {
        const double from = number(reader, 3 + (costs ? 2 * i : i), true, MOST),
                     cost = costs ? number(reader, 4 + 2 * i, false,
                                           DUET__GRAPH_SECONDS_MAX / bytes_of_cost)
                                  : 0;
        const struct duet__graph_edge edge = {(uint32_t)from - reader->first - reader->dummies,
                                              reader->rows - reader->dummies,
                                              (uint64_t)(cost * bytes_of_cost)};
        if (from < reader->first)
            fail(reader, "there is no task %.0f: the first one is %u", from, reader->first);
        else if (!reader->dummies || from > reader->first)
            g_array_append_val(reader->edges, edge);
    }
}

/* Reads the line of a task. */
static void read_row(struct reader *reader, uint32_t kernel)
{
    const double own = number(reader, 0, true, MOST),
                 seconds = number(reader, 1, false, DUET__GRAPH_SECONDS_MAX),
                 count = number(reader, 2, true, MOST);
    char name[16];
    if (!reader->rows)
        reader->first = (uint32_t)own;
    if (!reader->error && own - reader->first != reader->rows)
        fail(reader, "task %.0f, where %u comes next", own, reader->first + reader->rows);
    if (!reader->error && reader->numbers->len != 3 + count &&
        reader->numbers->len != 3 + 2 * count)
        fail(reader, "task %.0f comes after %.0f others, but %u numbers follow", own, count,
             reader->numbers->len - 3);
    if (!reader->rows && !(seconds > 0) && !(count > 0)) {
        reader->dummies = reader->rows = 1;
        return;
    }
    g_snprintf(name, sizeof name, "%.0f", own);
    duet__graph_add(reader->graph, kernel)->name = duet__graph_text(reader->graph, name);
    *duet__graph_seconds(reader->graph, reader->graph->tasks->len - 1) = seconds;
    read_edges(reader, (guint)count, reader->numbers->len > 3 + count);
    reader->rows++;
}

/* Drops a last task without time and successors: it is the end of all, and no task. */
static void drop_end(struct reader *reader)
{
    struct duet__graph *graph = reader->graph;
    const uint32_t last = graph->tasks->len - 1;
    guint kept = 0;
    if (!graph->tasks->len || *duet__graph_seconds(graph, last) > 0)
        return;
    for (guint i = 0; i < reader->edges->len; i++)
        if (g_array_index(reader->edges, struct duet__graph_edge, i).from == last)
            return;
    for (guint i = 0; i < reader->edges->len; i++) {
        const struct duet__graph_edge edge =
            g_array_index(reader->edges, struct duet__graph_edge, i);
        if (edge.to != last)
            g_array_index(reader->edges, struct duet__graph_edge, kept++) = edge;
    }
    g_array_set_size(reader->edges, kept);
    g_array_set_size(graph->tasks, last);
    g_array_set_size(graph->seconds, last);
}

static void read_rows(struct reader *reader)
{
    const uint32_t kernel = duet__graph_kernel(reader->graph, "task");
    double tasks = 0;
    if (next_line(reader))
        tasks = number(reader, 0, true, MOST);
    else
        fail(reader, "expected the number of tasks");
    while (next_line(reader))
        read_row(reader, kernel);
    if (reader->rows < tasks || reader->rows > tasks + 2)
        fail(reader, "the first line announces %.0f tasks, but there are %u", tasks, reader->rows);
    for (guint i = 0; i < reader->edges->len && !reader->error; i++) {
        const struct duet__graph_edge *edge =
            &g_array_index(reader->edges, struct duet__graph_edge, i);
        if (edge->from >= reader->graph->tasks->len)
            reader->error = duet_fail(reader->message, DUET_EPARSE,
                                      "%.300s: task %s comes after task %u, which is not there",
                                      reader->path, duet__graph_task(reader->graph, edge->to)->name,
                                      edge->from + reader->first + reader->dummies);
    }
}

int duet__graph_read_stg(struct duet__graph *graph, const char *text, size_t length,
                         const char *path, struct duet_message *message)
{
    g_autoptr(GArray) numbers = g_array_new(FALSE, FALSE, sizeof(double));
    g_autoptr(GArray) edges = g_array_new(FALSE, FALSE, sizeof(struct duet__graph_edge));
    struct reader reader = {.graph = graph,
                            .at = text,
                            .path = path,
                            .message = message,
                            .numbers = numbers,
                            .edges = edges};
    (void)duet__graph_arch(graph, DUET__GRAPH_REFERENCE);
    read_rows(&reader);
    if (reader.error)
        return reader.error;
    drop_end(&reader);
    return duet__graph_order(graph, edges, path, message);
}

static void write_row(FILE *stream, size_t number, double seconds, size_t after)
{
    char digits[DUET__DIGITS_MAX];
    fprintf(stream, " %10zu %10s %10zu", number, duet__digits(seconds, digits), after);
}

/* Writes tasks with numbers from 1; 0 is before all of them, and one more after. */
void duet__graph_write_stg(FILE *stream, const void *data)
{
    const struct duet__graph *graph = data;
    const size_t tasks = duet__graph_count(graph);
    struct duet__graph_walk *walk = duet__graph_walk_new(graph);
    bool *followed = g_new0(bool, tasks + 1);
    size_t ends = tasks;
    fprintf(stream, "%11zu\n", tasks);
    write_row(stream, 0, 0, 0);
    for (size_t i = 0; i < tasks; i++) {
        size_t count;
        const struct duet__graph_edge *edges = duet__graph_walk_next(walk, &count);
        fputc('\n', stream);
        write_row(stream, i + 1, duet__graph_reference(graph, i), MAX(count, 1));
        if (!count)
            fprintf(stream, " %10d", 0);
        for (size_t k = 0; k < count; k++) {
            fprintf(stream, " %10u", edges[k].from + 1);
            ends -= !followed[edges[k].from];
            followed[edges[k].from] = true;
        }
    }
    fputc('\n', stream);
    write_row(stream, tasks + 1, 0, ends);
    for (size_t i = 0; i < tasks; i++)
        if (!followed[i])
            fprintf(stream, " %10zu", i + 1);
    fprintf(stream, "\n# %s\n", graph->name);
    g_free(followed);
    duet__graph_walk_free(walk);
}
