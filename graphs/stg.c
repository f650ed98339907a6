/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Standard Task Graph Set's format (Tobita, Kasahara, Journal of Scheduling 5, 2002), that of
 * its prototype, and the one with communication costs: a number of tasks, then a line a task with
 * its number, its time, and how many and which tasks it comes after, each with its cost where there
 * are costs.
 */
#include <math.h>
#include <string.h>

#include "graphs/formats.h"
#include "platforms/json.h"

/* A cost of 1 is what a link of 1 GB/s moves in a second. */
static const double bytes_of_cost = 1e9;

enum { MOST = 100000000 }; /* tasks */

struct reader {
    struct duet__graph *graph;
    const char *at, *path;
    unsigned line;
    struct duet_message *message;
    GArray *edges;
    uint32_t rows, first; /* lines of tasks so far; the number of the first one */
    uint32_t dummies;     /* 1: the first one is none, but the start of all */
};

bool duet__graph_is_stg(const char *text, size_t length, const char *path)
{
    (void)length;
    (void)path;
    return g_ascii_isdigit(*text) || *text == '#';
}

#define fail(reader, ...)                                                                          \
    duet__graph_fail((reader)->message, (reader)->path, (reader)->line, __VA_ARGS__)

/* How many words are left on the line. */
static size_t count_words(const char *at)
{
    size_t count = 0;

    for (; *at && *at != '\n'; count++) {
        at += strspn(at, " \t\r");
        if (!*at || *at == '\n')
            break;
        at += strcspn(at, " \t\r\n");
    }
    return count;
}

/* The next number of a line; `whole`: without a fraction. */
static int read_number(struct reader *reader, bool whole, double most, double *value)
{
    const char *begin = reader->at + strspn(reader->at, " \t\r");
    const size_t length = strcspn(begin, " \t\r\n");
    char *end = NULL;

    *value = g_ascii_strtod(begin, &end);
    if (!length || end != begin + length || isnan(*value))
        return fail(reader, "expected a number, not '%.*s'", (int)MIN(length, 20), begin);
    if (*value < 0 || *value > most || (whole && *value > floor(*value)))
        return fail(reader, "%g is out of range, expected a %snumber from 0 to %g", *value,
                    whole ? "whole " : "", most);
    reader->at = end;
    return 0;
}

/* The tasks that the last one comes after, `count` of them, each with its cost if there are. */
static int read_edges(struct reader *reader, size_t count, bool costs)
{
    double number = 0, cost = 0;
    int error = 0;

    for (size_t i = 0; i < count && !error; i++) {
        struct duet__graph_edge edge = {.to = reader->rows - reader->dummies};

        error = read_number(reader, true, MOST, &number);
        if (!error && costs)
            error = read_number(reader, false, DUET__GRAPH_SECONDS_MAX / bytes_of_cost, &cost);
        if (!error && number < reader->first)
            error =
                fail(reader, "there is no task %.0f: the first one is %u", number, reader->first);
        if (error || (reader->dummies && number <= reader->first))
            continue;
        edge.from = (uint32_t)number - reader->first - reader->dummies;
        edge.bytes = (uint64_t)(cost * bytes_of_cost);
        g_array_append_val(reader->edges, edge);
    }
    return error;
}

/* A line of a task. */
static int read_row(struct reader *reader, uint32_t kernel)
{
    const size_t words = count_words(reader->at);
    double number = 0, seconds = 0, count = 0;
    char name[16];
    int error = read_number(reader, true, MOST, &number);

    if (!error && !reader->rows)
        reader->first = (uint32_t)number;
    if (!error && number - reader->first != reader->rows)
        error =
            fail(reader, "task %.0f, where %u comes next", number, reader->first + reader->rows);
    if (!error)
        error = read_number(reader, false, DUET__GRAPH_SECONDS_MAX, &seconds);
    if (!error)
        error = read_number(reader, true, MOST, &count);
    if (!error && (double)words != 3 + count && (double)words != 3 + 2 * count)
        error = fail(reader, "task %.0f comes after %.0f others, but %zu numbers follow", number,
                     count, words - 3);
    if (error)
        return error;
    if (!reader->rows && !(seconds > 0) && !(count > 0)) {
        reader->dummies = reader->rows = 1;
        return 0;
    }
    g_snprintf(name, sizeof name, "%.0f", number);
    duet__graph_add(reader->graph, kernel)->name = duet__graph_text(reader->graph, name);
    *duet__graph_seconds(reader->graph, reader->graph->tasks->len - 1) = seconds;
    error = read_edges(reader, (size_t)count, (double)words > 3 + count);
    reader->rows++;
    return error;
}

/* Moves to the next line that says something. false: there is none. */
static bool next_line(struct reader *reader, bool first)
{
    while (true) {
        if (!first)
            reader->at += strcspn(reader->at, "\n");
        if (!first && *reader->at) {
            reader->at++;
            reader->line++;
        }
        first = false;
        if (!*reader->at)
            return false;
        if (*reader->at != '#' && count_words(reader->at))
            return true;
    }
}

/* A last task without time that nobody comes after is the end of all, and none. */
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

static int read_rows(struct reader *reader)
{
    const uint32_t kernel = duet__graph_kernel(reader->graph, "task");
    double tasks = 0;
    int error = next_line(reader, true) ? read_number(reader, true, MOST, &tasks)
                                        : fail(reader, "expected the number of tasks");

    while (!error && next_line(reader, false))
        error = read_row(reader, kernel);
    if (error)
        return error;
    if (reader->rows < tasks || reader->rows > tasks + 2)
        return fail(reader, "the first line announces %.0f tasks, but there are %u", tasks,
                    reader->rows);
    for (guint i = 0; i < reader->edges->len; i++) {
        const struct duet__graph_edge *edge =
            &g_array_index(reader->edges, struct duet__graph_edge, i);

        if (edge->from >= reader->graph->tasks->len)
            return duet_fail(reader->message, DUET_EPARSE,
                             "%.300s: task %s comes after task %u, which is not there",
                             reader->path, duet__graph_task(reader->graph, edge->to)->name,
                             edge->from + reader->first + reader->dummies);
    }
    drop_end(reader);
    return duet__graph_order(reader->graph, reader->edges, reader->path, reader->message);
}

int duet__graph_read_stg(struct duet__graph *graph, const char *text, size_t length,
                         const char *path, struct duet_message *message)
{
    struct reader reader = {.graph = graph,
                            .at = text,
                            .path = path,
                            .line = 1,
                            .message = message,
                            .edges = g_array_new(FALSE, FALSE, sizeof(struct duet__graph_edge))};
    int error;

    (void)length;
    (void)duet__graph_arch(graph, DUET__GRAPH_REFERENCE);
    error = read_rows(&reader);
    g_array_unref(reader.edges);
    return error;
}

static void write_row(FILE *stream, size_t number, double seconds, size_t after)
{
    char digits[DUET__DIGITS_MAX];

    fprintf(stream, " %10zu %10s %10zu", number, duet__digits(seconds, digits), after);
}

/* Tasks are numbered from 1; 0 comes before all of them, and one more after. */
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
