/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directed graphs of Graphviz (https://graphviz.org/doc/info/lang.html): nodes are tasks, edges say
 * what comes after what. libcgraph is not used: it takes twice the memory allowed for a task.
 *
 * Of a node, `cost` (or `time`, `weight`) is its seconds, `kernel`, `work`, `priority` and `where`
 * are as in our own format, `size` is its work as in SimGrid's and daggen's files, `label` is its
 * name; of an edge, `size` (or `bytes`, `cost`, `weight`) is the bytes that go over it. Everything
 * else is for drawing.
 */
#include <math.h>
#include <string.h>
#include <inttypes.h>

#include "workloads/files/graph.h"
#include "base/json.h"

enum { DEPTH_MAX = 100, NODES_MAX = 100000000, EDGES_MAX = 100000000 };

/* Values of attributes, from a statement or as defaults. */
struct values {
    double seconds, work, bytes, priority; /* NaN: not given */
    uint32_t kernel, where;                /* NOT_GIVEN */
    const char *label;                     /* NULL: not given */
};

#define NOT_GIVEN UINT32_MAX
static const struct values none = {NAN, NAN, NAN, NAN, NOT_GIVEN, NOT_GIVEN, NULL};

/* Defaults of nodes and edges in a graph or subgraph. */
struct scope {
    struct values node, edge;
};

/* State of the reader. The first error stays in `error`; only the end of the text follows it. */
struct reader {
    struct duet__graph *graph;
    const char *at, *path;
    unsigned line, depth;
    bool strict;
    int error;
    struct duet_message *message;
    GHashTable *nodes; /* identifier -> index of the task */
    GPtrArray *ids;    /* by index of the task: its identifier */
    GArray *edges;
    GHashTable *only; /* in a strict graph: both ends -> 1 + index of their only edge */
    GString *word;    /* the token read last: */
    enum { END, SIGN, WORD, QUOTED, ARROW, LINE } kind;
};

#define fail(reader, ...)                                                                          \
    ((reader)->error = (reader)->error ? (reader)->error                                           \
                                       : duet__graph_fail((reader)->message, (reader)->path,       \
                                                          (reader)->line, __VA_ARGS__),            \
     (reader)->at = "", (reader)->kind = END)

/* ------------------------------------------------------------------------------------------- */
/* Tokens                                                                                       */

static char step(struct reader *reader)
{
    reader->line += *reader->at == '\n';
    return *reader->at++;
}

/* Skips blanks and comments; lines that begin with # are those of a preprocessor. */
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

bool duet__graph_is_dot(const char *text, size_t length, const char *path)
{
    static const char *const words[] = {"digraph", "strict", "graph"};
    struct reader reader = {.at = text};
    bool is = g_str_has_suffix(path, ".dot") || g_str_has_suffix(path, ".gv");
    skip(&reader);
    for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
        is |= g_ascii_strncasecmp(reader.at, words[i], strlen(words[i])) == 0;
    return is;
}

/* Reads the text between quotes, or between < and > of any depth. */
static void read_quoted(struct reader *reader)
{
    const char open = step(reader), close = open == '<' ? '>' : '"';
    unsigned depth = 1;
    while (*reader->at) {
        char next = step(reader);
        if (close == '"' && next == '\\' && *reader->at == '"') {
            next = step(reader);
        } else if (close == '"' && next == '\\' &&
                   reader->at[*reader->at == '\r'] == '\n') { /* continues a line */
            reader->at += *reader->at == '\r';
            step(reader);
            continue;
        } else if (close == '"' && next == '\\' && *reader->at == '\\') { /* does not end the
                                                                             string */
            g_string_append_c(reader->word, next);
            next = step(reader);
        } else if (close == '>' && next == '<') {
            depth++;
        } else if (next == close && --depth == 0) {
            return;
        }
        g_string_append_c(reader->word, next);
    }
    fail(reader, "the text ends before %c", close);
}

static bool in_name(char c)
{
    return g_ascii_isalnum(c) || c == '_' || (unsigned char)c >= 0x80;
}

/* Returns the length of a number such as -1, .5 or 2.; 0: there is none. */
static size_t length_of_number(const char *at)
{
    static const char digits[] = "0123456789";
    const size_t sign = *at == '-', whole = strspn(at + sign, digits);
    const size_t dot = at[sign + whole] == '.',
                 rest = dot ? strspn(at + sign + whole + 1, digits) : 0;
    return whole + rest ? sign + whole + dot + rest : 0;
}

/* Reads a name or number without quotes. Graphviz splits stage-1, 2nd and 1e6; their writers mean
 * one word. */
static void read_word(struct reader *reader)
{
    const size_t number = length_of_number(reader->at);
    const char *end = reader->at + number;
    while (!number && in_name(*end))
        end++;
    g_string_append_len(reader->word, reader->at, end - reader->at);
    reader->at = end;
    if (*end == '-' && end[1] != '>' && end[1] != '-')
        fail(reader, "a name with a hyphen stands between quotes: \"read-in\"");
    else if (*end == '.' || in_name(*end))
        fail(reader,
             "'%.40s%c' is no name and no number: \"2nd\", \"a.out\" and \"1e6\" have quotes",
             reader->word->str, *end);
}

/* Reads a token. */
static void next(struct reader *reader)
{
    g_string_truncate(reader->word, 0);
    skip(reader);
    if (!*reader->at) {
        reader->kind = END;
        g_string_assign(reader->word, "the end of the text");
    } else if (*reader->at == '"' || *reader->at == '<') {
        bool joins;
        reader->kind = QUOTED;
        do {
            read_quoted(reader);
            skip(reader);
            joins = *reader->at == '+' && step(reader);
            skip(reader);
            if (joins && *reader->at != '"')
                fail(reader, "expected a quote behind '+'");
        } while (joins && !reader->error);
    } else if (reader->at[0] == '-' && (reader->at[1] == '>' || reader->at[1] == '-')) {
        reader->kind = reader->at[1] == '>' ? ARROW : LINE;
        g_string_append_len(reader->word, reader->at, 2);
        reader->at += 2;
    } else if (in_name(*reader->at) || length_of_number(reader->at)) {
        reader->kind = WORD;
        read_word(reader);
    } else {
        reader->kind = SIGN;
        g_string_append_c(reader->word, step(reader));
    }
}

static bool is_sign(const struct reader *reader, char sign)
{
    return reader->kind == SIGN && reader->word->str[0] == sign;
}

static bool is_keyword(const struct reader *reader, const char *word)
{
    return reader->kind == WORD && g_ascii_strcasecmp(reader->word->str, word) == 0;
}

static bool is_identifier(const struct reader *reader)
{
    return reader->kind == WORD || reader->kind == QUOTED;
}

/* Skips the current token if it is `there`, else fails. */
static void expect_token(struct reader *reader, bool there, const char *what)
{
    if (there)
        next(reader);
    else
        fail(reader, "expected %s, not '%.40s'", what, reader->word->str);
}

/* ------------------------------------------------------------------------------------------- */
/* Attributes                                                                                   */

static void read_real(struct reader *reader, const char *key, const char *unit, double least,
                      double most, double *value)
{
    const char *text = reader->word->str;
    char *end = NULL;
    *value = g_ascii_strtod(text, &end);
    if (end == text || end[strspn(end, " ")] || !(*value >= least && *value <= most))
        fail(reader, "%s '%.40s' is no number%s from %g to %g", key, text, unit, least, most);
}

/* Sets one attribute, whose value is the current token; `values` is NULL for a graph. */
static void set_value(struct reader *reader, const char *key, bool edge, struct values *values)
{
    static const char *const costs[] = {"cost", "time", "weight", NULL};
    static const char *const sizes[] = {"size", "bytes", "cost", "weight", NULL};
    if (!values)
        return;
    if (edge && g_strv_contains(sizes, key))
        read_real(reader, key, " of bytes", 0, (double)DUET__GRAPH_BYTES_MAX, &values->bytes);
    else if (edge)
        return;
    else if (g_strv_contains(costs, key))
        read_real(reader, key, " of seconds", 0, DUET__GRAPH_SECONDS_MAX, &values->seconds);
    else if (strcmp(key, "work") == 0 ||
             (strcmp(key, "size") == 0 &&
              !strpbrk(reader->word->str, ",!"))) /* "2,3" or "2,3!" is the size of a drawing */
        read_real(reader, key, " of flops", 0, DUET__GRAPH_WORK_MAX, &values->work);
    else if (strcmp(key, "priority") == 0)
        read_real(reader, key, "", INT32_MIN, INT32_MAX, &values->priority);
    else if (strcmp(key, "kernel") == 0)
        values->kernel = duet__graph_kernel(reader->graph, reader->word->str);
    else if (strcmp(key, "label") == 0)
        values->label = duet__graph_text(reader->graph, reader->word->str);
    else if (strcmp(key, "where") == 0 &&
             !duet__graph_where(reader->graph, reader->word->str, &values->where))
        fail(reader, "more than %d different restrictions", DUET__GRAPH_WHERES_MAX - 1);
}

/* Reads attributes: [a=1, b=2; c=3] [d=4]. */
static void read_values(struct reader *reader, bool edge, struct values *values)
{
    while (is_sign(reader, '[')) {
        next(reader);
        while (is_identifier(reader)) {
            g_autofree char *key = g_strdup(reader->word->str);
            next(reader);
            if (is_sign(reader, '=')) {
                next(reader);
                if (is_identifier(reader))
                    set_value(reader, key, edge, values);
                else
                    fail(reader, "expected a value of %.40s, not '%.40s'", key, reader->word->str);
                next(reader);
            }
            if (is_sign(reader, ',') || is_sign(reader, ';'))
                next(reader);
        }
        expect_token(reader, is_sign(reader, ']'), "']'");
    }
}

/* Expands a label: \N is the node and \G the graph. */
static const char *expand_label(const struct reader *reader, const char *label, uint32_t node)
{
    g_autoptr(GString) text = g_string_new(NULL);
    if (!strchr(label, '\\'))
        return label;
    for (; *label; label++)
        if (label[0] == '\\' && label[1] == 'N' && label++)
            g_string_append(text, reader->ids->pdata[node]);
        else if (label[0] == '\\' && label[1] == 'G' && label++)
            g_string_append(text, reader->graph->name ? reader->graph->name : "");
        else if (label[0] == '\\' && label[1] == '\\')
            g_string_append_len(text, label++, 2);
        else
            g_string_append_c(text, *label);
    return duet__graph_text(reader->graph, text->str);
}

/* Sets the given values, over those already known of a node. */
static void apply_values(struct reader *reader, uint32_t node, const struct values *values)
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
        task->name = expand_label(reader, values->label, node);
}

/* ------------------------------------------------------------------------------------------- */
/* Statements                                                                                   */

static void read_list(struct reader *reader, struct scope scope, GArray *nodes);

/* Returns the node of the current identifier, a new one with the scope's defaults. */
static uint32_t find_node(struct reader *reader, const struct scope *scope)
{
    const uint32_t node = reader->graph->tasks->len;
    const char *name = *reader->word->str ? reader->word->str : "-";
    gpointer index = NULL;
    if (g_hash_table_lookup_extended(reader->nodes, name, NULL, &index))
        return GPOINTER_TO_UINT(index);
    if (node == NODES_MAX)
        fail(reader, "more than %d nodes", NODES_MAX);
    name = duet__graph_text(reader->graph, name);
    duet__graph_add(reader->graph, 0)->name = name;
    g_ptr_array_add(reader->ids, (gpointer)(uintptr_t)name);
    apply_values(reader, node, &scope->node);
    g_hash_table_insert(reader->nodes, (gpointer)(uintptr_t)name, GUINT_TO_POINTER(node));
    return node;
}

/* Reads an end of an edge into `nodes`: a node, perhaps with its port, or all nodes of a
 * subgraph. */
static void read_end(struct reader *reader, const struct scope *scope, GArray *nodes)
{
    if (is_keyword(reader, "subgraph")) {
        next(reader);
        if (is_identifier(reader))
            next(reader);
        if (!is_sign(reader, '{'))
            fail(reader, "expected '{' of a subgraph, not '%.40s'", reader->word->str);
    }
    if (is_sign(reader, '{')) {
        read_list(reader, *scope, nodes);
    } else if (is_identifier(reader)) {
        const uint32_t node = find_node(reader, scope);
        g_array_append_val(nodes, node);
        next(reader);
        while (is_sign(reader, ':')) {
            next(reader);
            expect_token(reader, is_identifier(reader), "a port");
        }
    } else {
        fail(reader, "expected a node, not '%.40s'", reader->word->str);
    }
}

static guint hash_ends(gconstpointer ends)
{
    return (guint)(GPOINTER_TO_SIZE(ends) * 0x9e3779b97f4a7c15 >> 32);
}

/* Adds edges for all pairs of the ends of an arrow. */
static void add_edges(struct reader *reader, const GArray *from, const GArray *to, double bytes)
{
    if ((guint64)from->len * to->len > EDGES_MAX - reader->edges->len) {
        fail(reader, "more than %d edges", EDGES_MAX);
        return;
    }
    for (guint i = 0; i < from->len; i++)
        for (guint k = 0; k < to->len; k++) {
            const struct duet__graph_edge edge = {g_array_index(from, uint32_t, i),
                                                  g_array_index(to, uint32_t, k),
                                                  isnan(bytes) ? 0 : (uint64_t)bytes};
            void *const ends = GSIZE_TO_POINTER((gsize)edge.from << 32 | edge.to);
            const guint there =
                reader->strict ? GPOINTER_TO_UINT(g_hash_table_lookup(reader->only, ends)) : 0;
            if (there && edge.bytes) /* the last bytes given */
                g_array_index(reader->edges, struct duet__graph_edge, there - 1) = edge;
            if (there)
                continue;
            g_array_append_val(reader->edges, edge);
            if (reader->strict)
                g_hash_table_insert(reader->only, ends, GUINT_TO_POINTER(reader->edges->len));
        }
}

/* Reads a node, a subgraph or edges, a -> b -> {c d}, with attributes; adds their nodes to
 * `nodes`. */
static void read_chain(struct reader *reader, const struct scope *scope, GArray *nodes)
{
    g_autoptr(GPtrArray) ends = g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref);
    const bool is_node = is_identifier(reader) && !is_keyword(reader, "subgraph");
    struct values node = none, edge = scope->edge;
    bool more;
    do {
        GArray *end = g_array_new(FALSE, FALSE, sizeof(uint32_t));
        g_ptr_array_add(ends, end);
        read_end(reader, scope, end);
        more = reader->kind == ARROW;
        if (more)
            next(reader);
    } while (more);
    if (reader->kind == LINE)
        fail(reader, "'--' has no direction: tasks are nodes of a digraph, with '->'");
    read_values(reader, ends->len > 1, ends->len > 1 ? &edge : &node);
    for (guint i = 0; i < ends->len && !reader->error; i++) {
        const GArray *end = ends->pdata[i];
        g_array_append_vals(nodes, end->data, end->len);
        if (i)
            add_edges(reader, ends->pdata[i - 1], end, edge.bytes);
        else if (ends->len == 1 && is_node)
            apply_values(reader, g_array_index(end, uint32_t, 0), &node);
    }
}

static void read_statement(struct reader *reader, struct scope *scope, GArray *nodes)
{
    const bool of_nodes = is_keyword(reader, "node"), of_edges = is_keyword(reader, "edge");
    skip(reader);
    if (is_identifier(reader) && *reader->at == '=') { /* as in rankdir=LR */
        next(reader);
        next(reader);
        expect_token(reader, is_identifier(reader), "a value");
    } else if (of_nodes || of_edges || is_keyword(reader, "graph")) {
        next(reader);
        if (!is_sign(reader, '['))
            fail(reader, "expected '[', not '%.40s'", reader->word->str);
        read_values(reader, !of_nodes, of_nodes ? &scope->node : of_edges ? &scope->edge : NULL);
    } else {
        read_chain(reader, scope, nodes);
    }
}

/* Reads the statements between { and }; adds their nodes to `nodes`. */
static void read_list(struct reader *reader, struct scope scope, GArray *nodes)
{
    if (++reader->depth > DEPTH_MAX)
        fail(reader, "subgraphs in more than %d others", DEPTH_MAX);
    expect_token(reader, is_sign(reader, '{'), "'{'");
    while (!is_sign(reader, '}') && reader->kind != END) {
        if (is_sign(reader, ';'))
            next(reader);
        else
            read_statement(reader, &scope, nodes);
    }
    reader->depth--;
    expect_token(reader, is_sign(reader, '}'), "'}'");
}

static void read_file(struct reader *reader)
{
    const struct scope scope = {none, none};
    g_autoptr(GArray) nodes = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    next(reader);
    reader->strict = is_keyword(reader, "strict");
    if (reader->strict)
        next(reader);
    if (is_keyword(reader, "graph"))
        fail(reader, "a graph without directions: tasks are nodes of a digraph");
    expect_token(reader, is_keyword(reader, "digraph"), "'digraph'");
    if (is_identifier(reader)) {
        if (*reader->word->str)
            reader->graph->name =
                duet__json_clean(g_strdup(duet__graph_text(reader->graph, reader->word->str)));
        next(reader);
    }
    read_list(reader, scope, nodes);
    if (reader->kind != END)
        fail(reader, "expected one graph and nothing behind it");
}

int duet__graph_read_dot(struct duet__graph *graph, const char *text, size_t length,
                         const char *path, struct duet_message *message)
{
    g_autoptr(GHashTable) nodes = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GHashTable) only = g_hash_table_new(hash_ends, NULL);
    g_autoptr(GPtrArray) ids = g_ptr_array_new();
    g_autoptr(GArray) edges = g_array_new(FALSE, FALSE, sizeof(struct duet__graph_edge));
    struct reader reader = {.graph = graph,
                            .at = text,
                            .path = path,
                            .line = 1,
                            .message = message,
                            .nodes = nodes,
                            .ids = ids,
                            .edges = edges,
                            .only = only,
                            .word = g_string_new(NULL)};
    (void)duet__graph_arch(graph, DUET__GRAPH_REFERENCE);
    (void)duet__graph_kernel(graph, "task");
    read_file(&reader);
    g_string_free(reader.word, TRUE);
    return reader.error ? reader.error : duet__graph_order(graph, edges, path, message);
}

/* ------------------------------------------------------------------------------------------- */
/* Writes task graphs as directed graphs of Graphviz, with the attributes that duet reads. */

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
