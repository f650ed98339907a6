/* SPDX-License-Identifier: Apache-2.0 */
/* The formats of task graph files, and finding the one of a file. */
#include "workloads/files/graph.h"

#include <string.h>

#include "base/json.h"

/* True if a word is among the first characters of a file. */
static bool begins_with(const char *text, size_t length, const char *word)
{
    enum { HEAD = 4096 };
    return g_strstr_len(text, (gssize)MIN(length, HEAD), word) != NULL;
}

static bool is_json(const char *text, size_t length, const char *path)
{
    return *text == '{' && begins_with(text, length, "\"duet-graph\"");
}

static const struct duet__graph_format formats[] = {
    {"json", "task graphs of duet, which say everything", is_json, duet__graph_read_json,
     duet__graph_write_json, false},
    {"trace", "traces of duet's runs", duet__graph_is_trace, duet__graph_read_trace, NULL, false},
    {"dot", "digraphs of Graphviz", duet__graph_is_dot, duet__graph_read_dot, duet__graph_write_dot,
     false},
    {"wfformat", "workflows of WfCommons", duet__graph_is_wfformat, duet__graph_read_wfformat,
     duet__graph_write_wfformat, false},
    {"starpu", "records of StarPU (tasks.rec)", duet__graph_is_starpu, duet__graph_read_starpu,
     NULL, false},
    {"stg", "the Standard Task Graph Set's", duet__graph_is_stg, duet__graph_read_stg,
     duet__graph_write_stg, true},
};

const struct duet__graph_format *duet__graph_format_at(size_t index)
{
    return index < G_N_ELEMENTS(formats) ? &formats[index] : NULL;
}

const struct duet__graph_format *duet__graph_format_find(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(formats); i++)
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    return NULL;
}

int duet__graph_fail(struct duet_message *message, const char *path, unsigned line,
                     const char *format, ...)
{
    va_list args;
    g_autofree char *what = NULL;
    va_start(args, format);
    what = g_strdup_vprintf(format, args);
    va_end(args);
    return duet_fail(message, DUET_EPARSE, "%.300s:%u: %s", path, line, duet__json_clean(what));
}

/* Returns "rand0000" for "dir/rand0000.stg". */
static char *name_of(const char *path)
{
    g_autofree char *name = g_path_get_basename(path);
    char *dot;
    if (g_str_has_suffix(name, ".gz"))
        name[strlen(name) - 3] = 0;
    dot = strrchr(name, '.');
    if (dot && dot > name)
        *dot = 0;
    return g_utf8_make_valid(duet__json_clean(name), -1);
}

/* Refuses tasks with too many accesses before anything is simulated. */
static int check_accesses(const struct duet__graph *graph, const char *path,
                          struct duet_message *message)
{
    char label[DUET__GRAPH_LABEL_MAX];
    size_t count;
    for (size_t i = 0; i < duet__graph_count(graph); i++)
        if (duet__graph_accesses(graph, i, &count), count > DUET__GRAPH_ACCESSES_MAX)
            return duet_fail(message, DUET_EPARSE,
                             "%.300s: %s accesses %zu data (files, edges with bytes), and duet's "
                             "tasks %d at most",
                             path, duet__graph_label(graph, i, label), count,
                             DUET__GRAPH_ACCESSES_MAX);
    return 0;
}

static int read_text(const char *text, size_t length, const char *path, struct duet__graph *graph,
                     struct duet_message *message)
{
    const struct duet__graph_format *format = formats;
    const size_t mark = length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    const char *begin = text + mark + strspn(text + mark, " \t\r\n");
    g_autofree char *own_name = NULL;
    int error;
    if (memchr(text, 0, length))
        return duet_fail(
            message, DUET_EPARSE,
            "%.300s: this is no text, and so no task graph (a program stands behind --)", path);
    if (!*begin)
        return duet_fail(message, DUET_EPARSE, "%.300s: the file is empty", path);
    while (format < formats + G_N_ELEMENTS(formats) &&
           !format->is(begin, length - (size_t)(begin - text), path))
        format++;
    if (format == formats + G_N_ELEMENTS(formats))
        return duet_fail(message, DUET_EPARSE,
                         "%.300s: a task graph in none of the formats that duet reads "
                         "(docs/graphs.md)",
                         path);
    /* some editors mark texts as UTF-8 */
    error = format->read(graph, text + mark, length - mark, path, message);
    if (!error && !graph->tasks->len)
        error = duet_fail(message, DUET_EPARSE,
                          "%.300s: there is no task in this graph, read as %s (docs/graphs.md)",
                          path, format->name);
    error = error ? error : check_accesses(graph, path, message);
    if (!graph->name)
        graph->name = name_of(path);
    return error;
}

int duet__graph_read(const char *path, const struct duet__graph_models *models,
                     struct duet__graph **out, struct duet_message *message)
{
    enum { MOST_MIB = 8192 };
    g_autofree char *text = NULL;
    size_t length = 0;
    int error = duet__read_all(path, MOST_MIB, &text, &length, message);
    *out = NULL;
    if (error)
        return error;
    *out = g_new(struct duet__graph, 1);
    duet__graph_init(*out);
    if (models)
        (*out)->models = *models;
    error = read_text(text, length, path, *out, message);
    if (error) {
        duet__graph_free(*out);
        *out = NULL;
    }
    return error;
}

void duet__graph_free(struct duet__graph *graph)
{
    if (graph)
        duet__graph_fini(graph);
    g_free(graph);
}
