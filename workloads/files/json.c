/* SPDX-License-Identifier: Apache-2.0 */
/* Our own format of task graphs, which can express all of them; docs/formats.md describes it. It is
 * read one value at a time. */
#include <math.h>
#include <string.h>

#include "workloads/files/graph.h"
#include "base/fields.h"

/* Limit of indices. */
enum { MOST = INT32_MAX };

static const struct {
    unsigned mode;
    const char *name;
} modes[] = {{DUET_R, "r"},           {DUET_W, "w"},
             {DUET_RW, "rw"},         {DUET_COMMUTE, "commute"},
             {DUET_REDUCE, "reduce"}, {DUET_SCRATCH, "scratch"}};

const char *duet__graph_mode_name(unsigned mode)
{
    for (size_t i = 0; i < G_N_ELEMENTS(modes); i++)
        if (modes[i].mode == mode)
            return modes[i].name;
    return NULL;
}

#define DATA(member) .offset = offsetof(struct duet__graph_data, member)
static const struct duet__field data_fields[] = {
    {"bytes", DUET__INTEGER, DUET__OPTIONAL, DATA(bytes), .most = (double)DUET__GRAPH_BYTES_MAX},
    {"name", DUET__TEXT, DUET__OPTIONAL, DATA(name)},
    {"initial", DUET__BOOLEAN, DUET__OPTIONAL, DATA(initial), .unsaid = true},
    {NULL},
};

/* ------------------------------------------------------------------------------------------- */
/* Reading a task, the last one of the graph                                                    */

static int read_kernel(const struct duet__json *at, void *task, void *root)
{
    const struct duet__graph *graph = root;
    if (!graph->kernels->len)
        return duet__json_fail(at, DUET_EPARSE, "there is no kernel yet: they stand before tasks");
    return duet__json_unsigned(at, 0, graph->kernels->len - 1,
                               &((struct duet__graph_task *)task)->kernel);
}

/* An access: [data, mode]. */
static int read_access(const struct duet__json *at, const char *key, void *root)
{
    struct duet__graph *graph = root;
    const struct duet__json data_at = duet__json_element(at, 0),
                            mode_at = duet__json_element(at, 1);
    unsigned data = 0, two = 0;
    const char *name = NULL;
    int error = duet__json_array(at, 2, 2, &two);
    if (!error && !graph->data->len)
        error =
            duet__json_fail(&data_at, DUET_EPARSE, "there is no data yet: it stands before tasks");
    error = error ? error : duet__json_unsigned(&data_at, 0, graph->data->len - 1, &data);
    error = error ? error : duet__json_string(&mode_at, &name);
    for (size_t i = 0; !error && i < G_N_ELEMENTS(modes); i++)
        if (strcmp(name, modes[i].name) == 0) {
            duet__graph_add_access(graph, data, (enum duet_mode)modes[i].mode);
            return 0;
        }
    return error ? error
                 : duet__json_fail(&mode_at, DUET_EPARSE,
                                   "is one of r, w, rw, commute, reduce, scratch");
}

static int read_accesses(const struct duet__json *at, void *task, void *root)
{
    return duet__json_elements(at, read_access, root);
}

static int read_edge(const struct duet__json *at, const char *key, void *root)
{
    struct duet__graph *graph = root;
    unsigned task = 0;
    int error = graph->tasks->len > 1
                    ? duet__json_unsigned(at, 0, graph->tasks->len - 2, &task)
                    : duet__json_fail(at, DUET_EPARSE, "nothing stands before the first task");
    g_array_append_val(graph->after, task);
    return error;
}

static int read_after(const struct duet__json *at, void *task, void *root)
{
    return duet__json_elements(at, read_edge, root);
}

static int read_priority(const struct duet__json *at, void *task, void *root)
{
    double value = 0;
    int error = duet__json_number(at, INT32_MIN, INT32_MAX, &value);
    if (!error && floor(value) < value)
        error = duet__json_fail(at, DUET_EPARSE, "%g is no whole number", value);
    ((struct duet__graph_task *)task)->priority = (int32_t)value;
    return error;
}

static int read_seconds(const struct duet__json *at, void *task, void *root)
{
    const struct duet__graph *graph = root;
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

static int read_where(const struct duet__json *at, void *task, void *root)
{
    const char *where = NULL;
    int error = duet__json_string(at, &where);
    if (!error && !duet__graph_where(root, where, &((struct duet__graph_task *)task)->where))
        error = duet__json_fail(at, DUET_EPARSE, "more than %d different restrictions",
                                DUET__GRAPH_WHERES_MAX - 1);
    return error;
}

#define TASK(member) .offset = offsetof(struct duet__graph_task, member)
#define CUSTOM DUET__CUSTOM, DUET__OPTIONAL
static const struct duet__field task_fields[] = {
    {"kernel", DUET__CUSTOM, .read = read_kernel},
    {"accesses", CUSTOM, .read = read_accesses},
    {"after", CUSTOM, .read = read_after},
    {"work", DUET__NUMBER, DUET__OPTIONAL, TASK(work), .most = DUET__GRAPH_WORK_MAX},
    {"priority", CUSTOM, .read = read_priority},
    {"seconds", CUSTOM, .read = read_seconds},
    {"where", CUSTOM, .read = read_where},
    {"name", DUET__TEXT, DUET__OPTIONAL, TASK(name)},
    {NULL},
};

/* ------------------------------------------------------------------------------------------- */
/* Reading the rest                                                                             */

/* Adds the name of a kernel or an architecture, each once. */
static int read_name(const struct duet__json *at, struct duet__graph *graph, GPtrArray *names,
                     guint most, uint32_t (*add)(struct duet__graph *graph, const char *name))
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
    (void)add(graph, name);
    return 0;
}

static int read_data(const struct duet__json *at, struct duet__graph *graph)
{
    struct duet__graph_data data = {.initial = true};
    int error = duet__fields_read(at, data_fields, &data);
    if (!error && graph->data->len == MOST)
        error = duet__json_fail(at, DUET_EPARSE, "more than %d data", MOST);
    if (!error)
        duet__graph_add_data(graph, data.bytes, data.name, data.initial);
    return error;
}

static int read_task(const struct duet__json *at, struct duet__graph *graph)
{
    struct duet__graph_task *task;
    int error;
    if (graph->tasks->len == MOST)
        return duet__json_fail(at, DUET_EPARSE, "more than %d tasks", MOST);
    task = duet__graph_add(graph, 0);
    error = duet__part_read(at, task_fields, task, graph);
    task->name = error ? NULL : duet__graph_text(graph, task->name);
    return error;
}

/* Members of the document that occur once, beside the graph's arrays. */
struct document {
    struct duet__graph *graph;
    unsigned format, schema; /* must be 0 and 1 */
    char *name, *origin;
    double makespan_s;
};

#define DOCUMENT(member) .offset = offsetof(struct document, member)
static const char *const formats[] = {"duet-graph", NULL};
static const struct duet__field document_fields[] = {
    {"format", DUET__CHOICE, DOCUMENT(format), .choices = formats},
    {"schema", DUET__UNSIGNED, DOCUMENT(schema), .least = 1, .most = 1},
    {"name", DUET__COPY, DOCUMENT(name)},
    {"origin", DUET__COPY, DOCUMENT(origin)},
    {"makespan_s", DUET__NUMBER, DOCUMENT(makespan_s), .most = DUET__GRAPH_SECONDS_MAX},
    {NULL},
};

/* Reads a member of the document, or an element of a member that is an array. */
static int read_value(const struct duet__json *at, const char *key, void *data)
{
    struct document *document = data;
    struct duet__graph *graph = document->graph;
    if (strcmp(key, "tasks") == 0)
        return read_task(at, graph);
    if (strcmp(key, "data") == 0)
        return read_data(at, graph);
    if (strcmp(key, "kernels") == 0)
        return read_name(at, graph, graph->kernels, DUET__GRAPH_KERNELS_MAX, duet__graph_kernel);
    if (strcmp(key, "architectures") == 0 && graph->tasks->len)
        return duet__json_fail(at, DUET_EPARSE, "architectures have to stand before the tasks");
    if (strcmp(key, "architectures") == 0)
        return read_name(at, graph, graph->archs, DUET__GRAPH_ARCHS_MAX, duet__graph_arch);
    return duet__field_read(at, document_fields, key, document);
}

int duet__graph_read_json(struct duet__graph *graph, const char *text, size_t length,
                          const char *path, struct duet_message *message)
{
    struct document document = {.graph = graph, .format = 1};
    int error = duet__json_each(text, length, path, NULL, read_value, &document, message);
    if (!error && (document.format || !document.schema))
        error = duet_fail(message, DUET_EPARSE,
                          "%.300s: no task graph of duet's: \"format\" is not \"duet-graph\", or "
                          "there is no \"schema\"",
                          path);
    if (document.name && *document.name)
        graph->name = duet__json_clean(g_steal_pointer(&document.name));
    if (document.origin)
        graph->origin = duet__json_clean(document.origin);
    graph->makespan_s = document.makespan_s;
    g_free(document.name);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Writing                                                                                      */

/* Writes the accesses and predecessors of a task. */
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
        DUET__ARRAY_WRITE(json, "after", DUET__UNSIGNED, after, count);
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
        DUET__ARRAY_WRITE(json, "seconds", DUET__NUMBER, seconds, graph->archs->len);
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
    DUET__ARRAY_WRITE(json, "architectures", DUET__TEXT, graph->archs->pdata, graph->archs->len);
    duet__json_break(json, 1);
    DUET__ARRAY_WRITE(json, "kernels", DUET__TEXT, graph->kernels->pdata, graph->kernels->len);
    duet__json_print(json, "\n data: [");
    for (guint i = 0; i < graph->data->len; i++) {
        duet__json_break(json, 2);
        duet__json_begin(json, NULL, '{');
        duet__fields_write(json, data_fields, duet__graph_datum(graph, i), NULL);
        duet__json_end(json, '}');
    }
    duet__json_print(json, "]\n tasks: [");
    for (size_t i = 0; i < duet__graph_count(graph); i++) {
        duet__json_break(json, 2);
        write_task(json, graph, i);
    }
    duet__json_print(json, "]}\n");
}
