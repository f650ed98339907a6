/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directed graphs of Graphviz (https://graphviz.org/doc/info/lang.html): nodes are tasks, edges say
 * what comes after what. libcgraph is not used: it takes twice the memory that a task may have.
 *
 * Of a node, `cost` (or `time`, `weight`) is its seconds, `kernel`, `work`, `priority` and `where`
 * are as in our own format, `label` is its name; of an edge, `size` (or `bytes`, `cost`, `weight`)
 * is the bytes that go over it. Everything else is for drawing.
 */
#include <math.h>
#include <string.h>

#include "graphs/formats.h"
#include "platforms/json.h"

enum { DEPTH_MAX = 100, NODES_MAX = 100000000, EDGES_MAX = 100000000 };

/* Values of attributes, of a statement or as defaults. */
struct values {
    double seconds, work, bytes, priority; /* NaN: not given */
    uint32_t kernel, where;                /* NOT_GIVEN */
    const char *label;                     /* NULL: not given */
};

#define NOT_GIVEN UINT32_MAX
static const struct values none = {NAN, NAN, NAN, NAN, NOT_GIVEN, NOT_GIVEN, NULL};

/* What nodes and edges have that say nothing else, in a graph or subgraph. */
struct scope {
    struct values node, edge;
};

struct reader {
    struct duet__graph *graph;
    const char *at, *path;
    unsigned line, depth;
    struct duet_message *message;
    GHashTable *nodes; /* identifier -> index of the task */
    GArray *edges;
    GString *word; /* the token that was read last: */
    enum { END, SIGN, WORD, QUOTED, ARROW, LINE } kind;
};

bool duet__graph_is_dot(const char *text, size_t length, const char *path)
{
    (void)length;
    return g_str_has_suffix(path, ".dot") || g_str_has_suffix(path, ".gv") ||
           g_ascii_strncasecmp(text, "digraph", 7) == 0 ||
           g_ascii_strncasecmp(text, "strict", 6) == 0 ||
           g_ascii_strncasecmp(text, "graph", 5) == 0;
}

#define fail(reader, ...)                                                                          \
    duet__graph_fail((reader)->message, (reader)->path, (reader)->line, __VA_ARGS__)

/* ------------------------------------------------------------------------------------------- */
/* Tokens                                                                                       */

static char step(struct reader *reader)
{
    reader->line += *reader->at == '\n';
    return *reader->at++;
}

/* Blanks and comments; lines that begin with # are those of a preprocessor. */
static void skip(struct reader *reader)
{
    while (*reader->at) {
        if (g_ascii_isspace(*reader->at)) {
            step(reader);
        } else if (*reader->at == '#' || (reader->at[0] == '/' && reader->at[1] == '/')) {
            reader->at += strcspn(reader->at, "\n");
        } else if (reader->at[0] == '/' && reader->at[1] == '*') {
            const char *end = strstr(reader->at + 2, "*/");

            while (*reader->at && reader->at != end)
                step(reader);
            reader->at += end ? 2 : 0;
        } else {
            return;
        }
    }
}

/* What stands between quotes, or between < and > of any depth. */
static int read_quoted(struct reader *reader)
{
    const char open = step(reader), close = open == '<' ? '>' : '"';
    unsigned depth = 1;

    while (*reader->at) {
        char next = step(reader);

        if (close == '"' && next == '\\' && *reader->at == '"')
            next = step(reader);
        else if (close == '>' && next == '<')
            depth++;
        else if (next == close && --depth == 0)
            return 0;
        g_string_append_c(reader->word, next);
    }
    return fail(reader, "the text ends before %c", close);
}

static bool in_word(char c)
{
    return g_ascii_isalnum(c) || c == '_' || c == '.' || (unsigned char)c >= 0x80;
}

/* Reads a token. */
static int next(struct reader *reader)
{
    int error = 0;

    g_string_truncate(reader->word, 0);
    skip(reader);
    if (!*reader->at) {
        reader->kind = END;
        g_string_assign(reader->word, "the end of the text");
    } else if (*reader->at == '"' || *reader->at == '<') {
        reader->kind = QUOTED;
        do {
            error = read_quoted(reader);
            skip(reader);
        } while (!error && *reader->at == '+' && (reader->at++, skip(reader), *reader->at == '"'));
    } else if (reader->at[0] == '-' && (reader->at[1] == '>' || reader->at[1] == '-')) {
        reader->kind = reader->at[1] == '>' ? ARROW : LINE;
        g_string_append_len(reader->word, reader->at, 2);
        reader->at += 2;
    } else if (in_word(*reader->at) || *reader->at == '-') {
        reader->kind = WORD;
        do
            g_string_append_c(reader->word, step(reader));
        while (in_word(*reader->at));
    } else {
        reader->kind = SIGN;
        g_string_append_c(reader->word, step(reader));
    }
    return error;
}

static bool is_sign(const struct reader *reader, char sign)
{
    return reader->kind == SIGN && reader->word->str[0] == sign;
}

static bool is_keyword(const struct reader *reader, const char *word)
{
    return reader->kind == WORD && g_ascii_strcasecmp(reader->word->str, word) == 0;
}

static int expect(struct reader *reader, bool there, const char *what)
{
    return there ? next(reader) : fail(reader, "expected %s, not '%.40s'", what, reader->word->str);
}

/* ------------------------------------------------------------------------------------------- */
/* Attributes                                                                                   */

static int read_real(const struct reader *reader, const char *key, double least, double most,
                     double *value)
{
    const char *text = reader->word->str;
    char *end = NULL;

    *value = g_ascii_strtod(text, &end);
    if (end == text || end[strspn(end, " ")] || !(*value >= least && *value <= most))
        return fail(reader, "%s '%.40s' is no number from %g to %g", key, text, least, most);
    return 0;
}

/* One attribute, whose value is the token at hand. */
static int set_value(struct reader *reader, const char *key, bool edge, struct values *values)
{
    static const char *const costs[] = {"cost", "time", "weight", NULL}, *const sizes[] = {"size",
                                                                                           "bytes",
                                                                                           "cost",
                                                                                           "weight",
                                                                                           NULL};

    if (edge)
        return g_strv_contains(sizes, key)
                   ? read_real(reader, key, 0, (double)DUET__GRAPH_BYTES_MAX, &values->bytes)
                   : 0;
    if (g_strv_contains(costs, key))
        return read_real(reader, key, 0, DUET__GRAPH_SECONDS_MAX, &values->seconds);
    if (strcmp(key, "work") == 0)
        return read_real(reader, key, 0, DUET__GRAPH_WORK_MAX, &values->work);
    if (strcmp(key, "priority") == 0)
        return read_real(reader, key, INT32_MIN, INT32_MAX, &values->priority);
    if (strcmp(key, "kernel") == 0)
        values->kernel = duet__graph_kernel(reader->graph, reader->word->str);
    else if (strcmp(key, "label") == 0)
        values->label = duet__graph_text(reader->graph, reader->word->str);
    else if (strcmp(key, "where") == 0 &&
             !duet__graph_where(reader->graph, reader->word->str, &values->where))
        return fail(reader, "more than %d different restrictions", DUET__GRAPH_WHERES_MAX - 1);
    return 0;
}

/* [a=1, b=2; c=3] [d=4] */
static int read_values(struct reader *reader, bool edge, struct values *values)
{
    int error = 0;

    while (!error && is_sign(reader, '[')) {
        error = next(reader);
        while (!error && (reader->kind == WORD || reader->kind == QUOTED)) {
            g_autofree char *key = g_strdup(reader->word->str);

            error = next(reader);
            if (!error && is_sign(reader, '=')) {
                error = next(reader);
                if (!error && reader->kind != WORD && reader->kind != QUOTED)
                    error = fail(reader, "expected a value of %.40s, not '%.40s'", key,
                                 reader->word->str);
                if (!error)
                    error = set_value(reader, key, edge, values);
                if (!error)
                    error = next(reader);
            }
            if (!error && (is_sign(reader, ',') || is_sign(reader, ';')))
                error = next(reader);
        }
        if (!error)
            error = expect(reader, is_sign(reader, ']'), "']'");
    }
    return error;
}

/* What is given, on top of what is known of a node. */
static void apply(struct reader *reader, uint32_t node, const struct values *values)
{
    struct duet__graph_task *task =
        &g_array_index(reader->graph->tasks, struct duet__graph_task, node);

    if (!isnan(values->seconds))
        *duet__graph_seconds(reader->graph, node) = values->seconds;
    if (!isnan(values->work))
        task->work = values->work;
    if (!isnan(values->priority))
        task->priority = (int32_t)values->priority;
    if (values->kernel != NOT_GIVEN)
        task->kernel = values->kernel;
    if (values->where != NOT_GIVEN)
        task->where = values->where;
    if (values->label)
        task->name = values->label;
}

/* ------------------------------------------------------------------------------------------- */
/* Statements                                                                                   */

static int read_list(struct reader *reader, struct scope scope, GArray *nodes);

/* The node of the identifier at hand, with what the scope says of new ones. */
static int find_node(struct reader *reader, const struct scope *scope, uint32_t *node)
{
    gpointer index = NULL;
    const char *name = *reader->word->str ? reader->word->str : "-";

    if (g_hash_table_lookup_extended(reader->nodes, name, NULL, &index)) {
        *node = GPOINTER_TO_UINT(index);
        return 0;
    }
    *node = reader->graph->tasks->len;
    if (*node == NODES_MAX)
        return fail(reader, "more than %d nodes", NODES_MAX);
    name = duet__graph_text(reader->graph, name);
    duet__graph_add(reader->graph, 0)->name = name;
    apply(reader, *node, &scope->node);
    g_hash_table_insert(reader->nodes, (gpointer)(uintptr_t)name, GUINT_TO_POINTER(*node));
    return 0;
}

static bool is_identifier(const struct reader *reader)
{
    return reader->kind == WORD || reader->kind == QUOTED;
}

/* An end of an edge, into `nodes`: a node, maybe with its port, or all nodes of a subgraph. */
static int read_end(struct reader *reader, const struct scope *scope, GArray *nodes)
{
    uint32_t node = 0;
    int error = 0;

    if (is_keyword(reader, "subgraph")) {
        error = next(reader);
        if (!error && is_identifier(reader))
            error = next(reader);
        if (!error && !is_sign(reader, '{'))
            error = fail(reader, "expected '{' of a subgraph, not '%.40s'", reader->word->str);
    }
    if (error || is_sign(reader, '{'))
        return error ? error : read_list(reader, *scope, nodes);
    if (!is_identifier(reader))
        return fail(reader, "expected a node, not '%.40s'", reader->word->str);
    error = find_node(reader, scope, &node);
    g_array_append_val(nodes, node);
    if (!error)
        error = next(reader);
    while (!error && is_sign(reader, ':')) {
        error = next(reader);
        if (!error)
            error = expect(reader, is_identifier(reader), "a port");
    }
    return error;
}

/* All pairs of the ends of an arrow. */
static int add_edges(struct reader *reader, const GArray *from, const GArray *to, uint64_t bytes)
{
    if ((guint64)from->len * to->len > EDGES_MAX - reader->edges->len)
        return fail(reader, "more than %d edges", EDGES_MAX);
    for (guint i = 0; i < from->len; i++)
        for (guint k = 0; k < to->len; k++) {
            const struct duet__graph_edge edge = {g_array_index(from, uint32_t, i),
                                                  g_array_index(to, uint32_t, k), bytes};

            g_array_append_val(reader->edges, edge);
        }
    return 0;
}

/* The ends of a -> b -> {c d}, each an array of nodes. */
static int read_ends(struct reader *reader, const struct scope *scope, GPtrArray *ends)
{
    int error = 0;

    do {
        if (reader->kind == ARROW)
            error = next(reader);
        g_ptr_array_add(ends, g_array_new(FALSE, FALSE, sizeof(uint32_t)));
        if (!error)
            error = read_end(reader, scope, ends->pdata[ends->len - 1]);
    } while (!error && reader->kind == ARROW);
    if (!error && reader->kind == LINE)
        error = fail(reader, "'--' has no direction: tasks are nodes of a digraph, with '->'");
    return error;
}

/* A node, a subgraph or edges, with attributes; the nodes in it are added to `nodes`. */
static int read_chain(struct reader *reader, const struct scope *scope, GArray *nodes)
{
    g_autoptr(GPtrArray) ends = g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref);
    const bool is_node = is_identifier(reader) && !is_keyword(reader, "subgraph");
    struct values node = none, edge = scope->edge;
    int error = read_ends(reader, scope, ends);
    const bool alone = ends->len == 1;

    if (!error)
        error = read_values(reader, !alone, alone ? &node : &edge);
    for (guint i = 0; i < ends->len && !error; i++) {
        const GArray *end = ends->pdata[i];

        g_array_append_vals(nodes, end->data, end->len);
        if (i)
            error = add_edges(reader, ends->pdata[i - 1], end,
                              isnan(edge.bytes) ? 0 : (uint64_t)edge.bytes);
        else if (alone && is_node)
            apply(reader, g_array_index(end, uint32_t, 0), &node);
    }
    return error;
}

/* Whether `=` follows the identifier at hand, as in rankdir=LR. */
static bool is_assignment(struct reader *reader)
{
    skip(reader);
    return is_identifier(reader) && *reader->at == '=';
}

static int read_statement(struct reader *reader, struct scope *scope, GArray *nodes)
{
    struct values unused = none;
    int error = 0;

    if (is_assignment(reader)) {
        error = next(reader);
        if (!error)
            error = next(reader);
        return error ? error : expect(reader, is_identifier(reader), "a value");
    }
    if (!is_keyword(reader, "graph") && !is_keyword(reader, "node") && !is_keyword(reader, "edge"))
        return read_chain(reader, scope, nodes);
    const bool of_nodes = is_keyword(reader, "node"), of_edges = is_keyword(reader, "edge");

    error = next(reader);
    if (!error && !is_sign(reader, '['))
        error = fail(reader, "expected '[', not '%.40s'", reader->word->str);
    return error ? error
                 : read_values(reader, !of_nodes,
                               of_nodes   ? &scope->node
                               : of_edges ? &scope->edge
                                          : &unused);
}

/* What stands between { and }; its nodes are added to `nodes`. */
static int read_list(struct reader *reader, struct scope scope, GArray *nodes)
{
    int error = ++reader->depth > DEPTH_MAX
                    ? fail(reader, "subgraphs in more than %d others", DEPTH_MAX)
                    : expect(reader, is_sign(reader, '{'), "'{'");

    while (!error && !is_sign(reader, '}') && reader->kind != END) {
        error = is_sign(reader, ';') ? next(reader) : read_statement(reader, &scope, nodes);
    }
    reader->depth--;
    return error ? error : expect(reader, is_sign(reader, '}'), "'}'");
}

static int read_file(struct reader *reader)
{
    const struct scope scope = {none, none};
    g_autoptr(GArray) nodes = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    int error = next(reader);

    if (!error && is_keyword(reader, "strict"))
        error = next(reader);
    if (!error && is_keyword(reader, "graph"))
        error = fail(reader, "a graph without directions: tasks are nodes of a digraph");
    if (!error)
        error = expect(reader, is_keyword(reader, "digraph"), "'digraph'");
    if (!error && is_identifier(reader)) {
        if (*reader->word->str)
            reader->graph->name =
                duet__json_clean(g_strdup(duet__graph_text(reader->graph, reader->word->str)));
        error = next(reader);
    }
    if (!error)
        error = read_list(reader, scope, nodes);
    if (!error && reader->kind != END)
        error = fail(reader, "expected one graph and nothing behind it");
    return error ? error
                 : duet__graph_order(reader->graph, reader->edges, reader->path, reader->message);
}

int duet__graph_read_dot(struct duet__graph *graph, const char *text, size_t length,
                         const char *path, struct duet_message *message)
{
    struct reader reader = {.graph = graph,
                            .at = text,
                            .path = path,
                            .line = 1,
                            .message = message,
                            .nodes = g_hash_table_new(g_str_hash, g_str_equal),
                            .edges = g_array_new(FALSE, FALSE, sizeof(struct duet__graph_edge)),
                            .word = g_string_new(NULL)};
    int error;

    (void)length;
    (void)duet__graph_arch(graph, DUET__GRAPH_REFERENCE);
    (void)duet__graph_kernel(graph, "task");
    error = read_file(&reader);
    g_hash_table_unref(reader.nodes);
    g_array_unref(reader.edges);
    g_string_free(reader.word, TRUE);
    return error;
}
