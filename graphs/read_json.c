/* SPDX-License-Identifier: Apache-2.0 */
/* Reading our own format of task graphs, one value at a time; docs/formats.md describes it. */
#include <math.h>
#include <string.h>

#include "graphs/formats.h"
#include "platforms/json.h"

/* As many as indices can tell apart. */
enum { MOST = INT32_MAX };

struct loader {
    struct duet__graph *graph;
    bool ours, schema; /* have been seen */
};

static int read_text(const struct duet__json *at, char **text)
{
    const char *value = NULL;
    int error = duet__json_string(at, &value);

    if (!error) {
        g_free(*text);
        *text = duet__json_clean(g_strdup(value));
    }
    return error;
}

/* The name of a kernel or an architecture, each once. */
static int read_name(const struct duet__json *at, GPtrArray *names, guint most)
{
    const char *name = NULL;
    int error = duet__json_string(at, &name);

    if (error)
        return error;
    if (!*name || strlen(name) >= DUET_NAME_MAX)
        return duet__json_fail(at, DUET_EPARSE, "a name has 1 to %d bytes", DUET_NAME_MAX - 1);
    for (const char *c = name; *c; c++)
        if (g_ascii_iscntrl(*c))
            return duet__json_fail(at, DUET_EPARSE, "a name has no control characters");
    if (names->len == most)
        return duet__json_fail(at, DUET_EPARSE, "more than %u names", most);
    if (g_ptr_array_find_with_equal_func(names, name, g_str_equal, NULL))
        return duet__json_fail(at, DUET_EPARSE, "the name '%s' is there twice", name);
    return 0;
}

static int read_kernel(struct loader *loader, const struct duet__json *at)
{
    const char *name = NULL;
    int error = read_name(at, loader->graph->kernels, DUET__GRAPH_KERNELS_MAX);

    if (!error && !duet__json_string(at, &name))
        (void)duet__graph_kernel(loader->graph, name);
    return error;
}

static int read_arch(struct loader *loader, const struct duet__json *at)
{
    const char *name = NULL;
    int error = read_name(at, loader->graph->archs, DUET__GRAPH_ARCHS_MAX);

    if (!error && loader->graph->tasks->len)
        return duet__json_fail(at, DUET_EPARSE, "architectures have to stand before the tasks");
    if (!error && !duet__json_string(at, &name))
        (void)duet__graph_arch(loader->graph, name);
    return error;
}

/* An optional member, which is not there or fine. */
#define OPTIONAL(member, read) (duet__json_present(&(member)) ? (read) : 0)

static int read_data(struct loader *loader, const struct duet__json *at)
{
    static const char *const keys[] = {"bytes", "name", "initial", NULL};
    const struct duet__json bytes_at = duet__json_member(at, "bytes"),
                            name_at = duet__json_member(at, "name"),
                            initial_at = duet__json_member(at, "initial");
    uint64_t bytes = 0;
    const char *name = NULL;
    bool initial = true;
    int error = duet__json_keys(at, keys);

    if (!error)
        error = OPTIONAL(bytes_at, duet__json_integer(&bytes_at, 0, DUET__GRAPH_BYTES_MAX, &bytes));
    if (!error)
        error = OPTIONAL(name_at, duet__json_string(&name_at, &name));
    if (!error)
        error = OPTIONAL(initial_at, duet__json_boolean(&initial_at, &initial));
    if (!error && loader->graph->data->len == MOST)
        error = duet__json_fail(at, DUET_EPARSE, "more than %d data", MOST);
    if (!error)
        duet__graph_add_data(loader->graph, bytes, name, initial);
    return error;
}

/* [data, mode] */
static int read_access(struct duet__graph *graph, const struct duet__json *at)
{
    static const unsigned modes[] = {DUET_R,       DUET_W,      DUET_RW,
                                     DUET_COMMUTE, DUET_REDUCE, DUET_SCRATCH};
    const struct duet__json data_at = duet__json_element(at, 0),
                            mode_at = duet__json_element(at, 1);
    unsigned data = 0, two = 0;
    const char *name = NULL;
    int error = duet__json_array(at, 2, 2, &two);

    if (!error && !graph->data->len)
        error =
            duet__json_fail(&data_at, DUET_EPARSE, "there is no data yet: it stands before tasks");
    if (!error)
        error = duet__json_unsigned(&data_at, 0, graph->data->len - 1, &data);
    if (!error)
        error = duet__json_string(&mode_at, &name);
    for (size_t i = 0; !error && i < G_N_ELEMENTS(modes); i++)
        if (strcmp(name, duet__graph_mode_name(modes[i])) == 0) {
            duet__graph_add_access(graph, data, (enum duet_mode)modes[i]);
            return 0;
        }
    return error ? error
                 : duet__json_fail(&mode_at, DUET_EPARSE,
                                   "is one of r, w, rw, commute, reduce, scratch");
}

/* What a task uses, and what it comes after; the task is the last of the graph. */
static int read_links(struct duet__graph *graph, const struct duet__json *at)
{
    enum { MOST_ACCESSES = 65535 }; /* of a task: duet_submit */
    const struct duet__json accesses = duet__json_member(at, "accesses"),
                            after = duet__json_member(at, "after");
    unsigned count = 0;
    int error = OPTIONAL(accesses, duet__json_array(&accesses, 0, MOST_ACCESSES, &count));

    for (unsigned i = 0; i < count && !error; i++) {
        const struct duet__json access = duet__json_element(&accesses, i);

        error = read_access(graph, &access);
    }
    count = 0;
    if (!error)
        error = OPTIONAL(after, duet__json_array(&after, 0, MOST, &count));
    for (unsigned i = 0; i < count && !error; i++) {
        const struct duet__json edge = duet__json_element(&after, i);
        unsigned task = 0;

        if (graph->tasks->len == 1)
            error = duet__json_fail(&edge, DUET_EPARSE, "nothing stands before the first task");
        else
            error = duet__json_unsigned(&edge, 0, graph->tasks->len - 2, &task);
        g_array_append_val(graph->after, task);
    }
    return error;
}

static int read_seconds(struct duet__graph *graph, const struct duet__json *at)
{
    double *seconds = duet__graph_seconds(graph, graph->tasks->len - 1);
    unsigned count = 0;
    int error = duet__json_array(at, graph->archs->len, graph->archs->len, &count);

    for (unsigned i = 0; i < count && !error; i++) {
        const struct duet__json element = duet__json_element(at, i);

        if (!duet__json_is_null(&element))
            error = duet__json_number(&element, 0, DUET__GRAPH_SECONDS_MAX, &seconds[i]);
    }
    return error;
}

static int read_where(struct duet__graph *graph, const struct duet__json *at, uint32_t *index)
{
    const char *where = NULL;
    int error = duet__json_string(at, &where);

    if (!error && !duet__graph_where(graph, where, index))
        error = duet__json_fail(at, DUET_EPARSE, "more than %d different restrictions",
                                DUET__GRAPH_WHERES_MAX - 1);
    return error;
}

static int read_priority(const struct duet__json *at, int32_t *priority)
{
    double value = 0;
    int error = duet__json_number(at, INT32_MIN, INT32_MAX, &value);

    if (!error && floor(value) < value)
        error = duet__json_fail(at, DUET_EPARSE, "%g is no whole number", value);
    *priority = (int32_t)value;
    return error;
}

static int read_task(struct loader *loader, const struct duet__json *at)
{
    static const char *const keys[] = {"kernel",  "accesses", "after", "work", "priority",
                                       "seconds", "where",    "name",  NULL};
    struct duet__graph *graph = loader->graph;
    const struct duet__json kernel_at = duet__json_member(at, "kernel"),
                            work_at = duet__json_member(at, "work"),
                            priority_at = duet__json_member(at, "priority"),
                            seconds_at = duet__json_member(at, "seconds"),
                            where_at = duet__json_member(at, "where"),
                            name_at = duet__json_member(at, "name");
    struct duet__graph_task *task;
    const char *name = NULL;
    unsigned kernel = 0;
    int error = duet__json_keys(at, keys);

    if (!error && !graph->kernels->len)
        error = duet__json_fail(at, DUET_EPARSE, "there is no kernel yet: they stand before tasks");
    if (!error && graph->tasks->len == MOST)
        error = duet__json_fail(at, DUET_EPARSE, "more than %d tasks", MOST);
    if (!error)
        error = duet__json_unsigned(&kernel_at, 0, graph->kernels->len - 1, &kernel);
    if (error)
        return error;
    task = duet__graph_add(graph, kernel);
    error = OPTIONAL(work_at, duet__json_number(&work_at, 0, DUET__GRAPH_WORK_MAX, &task->work));
    if (!error)
        error = OPTIONAL(priority_at, read_priority(&priority_at, &task->priority));
    if (!error)
        error = OPTIONAL(where_at, read_where(graph, &where_at, &task->where));
    if (!error)
        error = OPTIONAL(name_at, duet__json_string(&name_at, &name));
    task->name = duet__graph_text(graph, name);
    if (!error)
        error = OPTIONAL(seconds_at, read_seconds(graph, &seconds_at));
    return error ? error : read_links(graph, at);
}

/* A member of the document, or an element of one that is an array. */
static int read_value(const struct duet__json *at, const char *key, void *data)
{
    struct loader *loader = data;
    const char *format = NULL;
    unsigned schema = 0;
    int error;

    if (strcmp(key, "tasks") == 0)
        return read_task(loader, at);
    if (strcmp(key, "data") == 0)
        return read_data(loader, at);
    if (strcmp(key, "kernels") == 0)
        return read_kernel(loader, at);
    if (strcmp(key, "architectures") == 0)
        return read_arch(loader, at);
    if (strcmp(key, "name") == 0)
        return read_text(at, &loader->graph->name);
    if (strcmp(key, "origin") == 0)
        return read_text(at, &loader->graph->origin);
    if (strcmp(key, "makespan_s") == 0)
        return duet__json_number(at, 0, DUET__GRAPH_SECONDS_MAX, &loader->graph->makespan_s);
    if (strcmp(key, "schema") == 0) {
        error = duet__json_unsigned(at, 1, 1, &schema);
        loader->schema = !error;
        return error;
    }
    if (strcmp(key, "format") != 0)
        return duet__json_fail(at, DUET_EPARSE, "unknown key \"%.60s\"", key);
    error = duet__json_string(at, &format);
    loader->ours = !error && strcmp(format, "duet-graph") == 0;
    return error;
}

int duet__graph_read_json(struct duet__graph *graph, const char *text, size_t length,
                          const char *path, struct duet_message *message)
{
    struct loader loader = {.graph = graph};
    int error = duet__json_each(text, length, path, NULL, read_value, &loader, message);

    if (!error && (!loader.ours || !loader.schema))
        error = duet_fail(message, DUET_EPARSE,
                          "%.300s: no task graph of duet's: \"format\" is not \"duet-graph\", or "
                          "there is no \"schema\"",
                          path);
    if (!error && graph->name && !*graph->name)
        g_clear_pointer(&graph->name, g_free);
    return error;
}
