/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads workflows in WfFormat (https://github.com/wfcommons/WfFormat), 1.5, and 1.4 and before,
 * where tasks have their files and times themselves. Files are data, which the first writer
 * creates. Times are not scaled: the clock rates of machines in published instances are momentary,
 * and no speeds. A task is one task, however many cores it used.
 */
#include <math.h>
#include <string.h>

#include "workloads/files/graph.h"
#include "base/fields.h"

enum { MOST = 100000000 }; /* most tasks, or files */

/* A task that was named, by itself or by others. */
struct named {
    const char *id, *name; /* other tasks may have the same name; NULL: it has an id alone */
    uint32_t task;         /* index; NOBODY: not described so far */
};
#define NOBODY UINT32_MAX

struct loader {
    struct duet__graph *graph;
    GHashTable *names; /* of tasks -> index in `named` */
    GArray *named;     /* struct named */
    uint32_t number;   /* index in `named` of the current task */
    GArray *edges;     /* struct duet__graph_edge, of indices in `named` */
    GHashTable *files; /* identifier -> index of the data */
    GArray *writers; /* uint32_t, by data: the task that writes it; NOBODY: none does, or several */
};

bool duet__graph_is_wfformat(const char *text, size_t length, const char *path)
{
    return *text == '{' && g_strstr_len(text, (gssize)length, "\"workflow\"");
}

/* ------------------------------------------------------------------------------------------- */
/* Names                                                                                        */

/* Returns the number of the task of this name, a new one if necessary. */
static uint32_t find_task(struct loader *loader, const char *name)
{
    struct named named = {.task = NOBODY};
    gpointer index = NULL;
    if (g_hash_table_lookup_extended(loader->names, name, NULL, &index))
        return GPOINTER_TO_UINT(index);
    named.id = g_string_chunk_insert(loader->graph->texts, name);
    g_hash_table_insert(loader->names, (gpointer)(uintptr_t)named.id,
                        GUINT_TO_POINTER(loader->named->len));
    g_array_append_val(loader->named, named);
    return loader->named->len - 1;
}

static uint32_t find_file(struct loader *loader, const char *name)
{
    const uint32_t nobody = NOBODY;
    gpointer index = NULL;
    uint32_t data;
    if (g_hash_table_lookup_extended(loader->files, name, NULL, &index))
        return GPOINTER_TO_UINT(index);
    data = duet__graph_add_data(loader->graph, 0, *name ? name : "-", true);
    g_hash_table_insert(loader->files,
                        (gpointer)(uintptr_t)(*name ? duet__graph_datum(loader->graph, data)->name
                                                    : ""),
                        GUINT_TO_POINTER(data));
    g_array_append_val(loader->writers, nobody);
    return data;
}

/* Returns the kernel: "blastall" for "dir/blastall", "individuals" for "individuals_ID0000012". */
static uint32_t find_kernel(struct loader *loader, const char *name, bool numbered)
{
    g_autofree char *base = g_path_get_basename(name);
    char *end = base + strlen(base);
    while (numbered && end > base && g_ascii_isdigit(end[-1]))
        end--;
    if (numbered && end - base > 2 && memcmp(end - 2, "ID", 2) == 0 && strchr("_-.", end[-3]))
        end -= 2;
    while (numbered && *end && end > base && strchr("_-.", end[-1]))
        end--;
    if (end > base)
        *end = 0;
    return duet__graph_kernel(loader->graph, base);
}

/* ------------------------------------------------------------------------------------------- */
/* Tasks                                                                                        */

/* Members of an object: a task, an execution, a file, or a link to one. */
struct object {
    const char *id, *name, *link, *program;
    uint64_t bytes;
    double seconds, runtime, priority;
};

/* Reads the command's program, else the category; ignores values that are no texts. */
static int read_program(const struct duet__json *at, void *into, void *root)
{
    const struct duet__json inner = duet__json_member(at, "program");
    const struct duet__json *program = strcmp(at->key, "command") == 0 ? &inner : at;
    struct object *object = into;
    return object->program || !duet__json_is_string(program)
               ? 0
               : duet__json_string(program, &object->program);
}

#define MEMBER(member) .offset = offsetof(struct object, member)
#define BYTES DUET__INTEGER, MEMBER(bytes), .most = (double)DUET__GRAPH_BYTES_MAX
#define SECONDS(member)                                                                            \
    DUET__NUMBER, DUET__OPTIONAL, MEMBER(member), .most = DUET__GRAPH_SECONDS_MAX, .unsaid = NAN
static const struct duet__field id_fields[] = {
    {"id", DUET__TEXT, MEMBER(id)},
    {"name", DUET__TEXT, DUET__OPTIONAL, MEMBER(name)},
    DUET__OTHER_KEYS,
};
static const struct duet__field name_fields[] = {
    {"name", DUET__TEXT, MEMBER(id)},
    DUET__OTHER_KEYS,
};
static const struct duet__field file_fields[] = {
    {"id", DUET__TEXT, MEMBER(id)},
    {"sizeInBytes", BYTES},
    DUET__OTHER_KEYS,
};
/* A file of a task before 1.5: {"link": "input", "name": "f", "sizeInBytes": 12}. */
static const struct duet__field link_fields[] = {
    {"link", DUET__TEXT, MEMBER(link)},
    {"name", DUET__TEXT, MEMBER(id)},
    {"size", BYTES, .when = DUET__OPTIONAL},
    {"sizeInBytes", BYTES, .when = DUET__OPTIONAL},
    DUET__OTHER_KEYS,
};
static const struct duet__field execution_fields[] = {
    {"runtimeInSeconds", SECONDS(seconds)},
    {"runtime", SECONDS(runtime)},
    {"priority", DUET__NUMBER, DUET__OPTIONAL, MEMBER(priority), .least = INT32_MIN,
     .most = INT32_MAX},
    {"command", DUET__CUSTOM, DUET__OPTIONAL, .read = read_program},
    {"category", DUET__CUSTOM, DUET__OPTIONAL, .read = read_program},
    DUET__OTHER_KEYS,
};

/* Sets the size of a file; 0: not known. */
static int set_bytes(struct loader *loader, const struct duet__json *at, const struct object *file)
{
    const uint32_t data = find_file(loader, file->id);
    uint64_t *bytes = &g_array_index(loader->graph->data, struct duet__graph_data, data).bytes;
    if (*bytes && file->bytes && *bytes != file->bytes)
        return duet__json_fail(at, DUET_EPARSE,
                               "file '%.60s' has %" G_GUINT64_FORMAT
                               " bytes here, and %" G_GUINT64_FORMAT " before",
                               file->id, file->bytes, *bytes);
    *bytes = file->bytes ? file->bytes : *bytes;
    return 0;
}

static void add_file(struct loader *loader, const char *name, bool output)
{
    const uint32_t data = find_file(loader, name);
    bool *initial = &g_array_index(loader->graph->data, struct duet__graph_data, data).initial;
    duet__graph_add_access(loader->graph, data, output ? DUET_W : DUET_R);
    if (!output)
        return;
    g_array_index(loader->writers, uint32_t, data) =
        *initial ? loader->graph->tasks->len - 1 : NOBODY;
    *initial = false;
}

/* Reads an element of the array `key` of a task. */
static int read_element(const struct duet__json *at, const char *key, void *data)
{
    struct loader *loader = data;
    struct duet__graph_edge edge = {loader->number, loader->number, 0};
    struct object object = {0};
    const bool link = strcmp(key, "files") == 0, parent = strcmp(key, "parents") == 0;
    int error =
        link ? duet__fields_read(at, link_fields, &object) : duet__json_string(at, &object.id);
    if (error)
        return error;
    if (parent || strcmp(key, "children") == 0) {
        *(parent ? &edge.from : &edge.to) = find_task(loader, object.id);
        g_array_append_val(loader->edges, edge);
        return 0;
    }
    add_file(loader, object.id,
             strcmp(link ? object.link : key, link ? "output" : "outputFiles") == 0);
    return set_bytes(loader, at, &object);
}

/* Reads the seconds of a task, and its program. */
static int read_execution(struct loader *loader, const struct duet__json *at, uint32_t index)
{
    struct duet__graph_task *task =
        &g_array_index(loader->graph->tasks, struct duet__graph_task, index);
    struct object object = {0};
    int error = duet__fields_read(at, execution_fields, &object);
    if (error)
        return error;
    *duet__graph_seconds(loader->graph, index) =
        isnan(object.seconds) ? object.runtime : object.seconds;
    task->priority = (int32_t)object.priority;
    /* a program that is no single word is a script */
    if (object.program && *object.program && strlen(object.program) < 256 &&
        !strpbrk(object.program, " \t\r\n"))
        task->kernel = find_kernel(loader, object.program, false);
    return 0;
}

/* Reads a task; `old`: it is identified by its name, and has all members itself. */
static int read_task(struct loader *loader, const struct duet__json *at, bool old)
{
    static const char *const keys[] = {"parents", "children", "inputFiles", "outputFiles", "files"};
    const uint32_t index = loader->graph->tasks->len;
    struct object object = {0};
    struct named *named;
    int error = duet__fields_read(at, old ? name_fields : id_fields, &object);
    if (error)
        return error;
    if (index == MOST)
        return duet__json_fail(at, DUET_EPARSE, "more than %d tasks", MOST);
    loader->number = find_task(loader, object.id);
    named = &g_array_index(loader->named, struct named, loader->number);
    if (named->task != NOBODY)
        return duet__json_fail(at, DUET_EPARSE, "there are two tasks '%.60s'", object.id);
    named->task = index;
    if (object.name && *object.name)
        named->name = g_string_chunk_insert(loader->graph->texts, object.name);
    duet__graph_add(loader->graph, NOBODY)->name = *named->id ? named->id : NULL;
    for (size_t i = 0; i < G_N_ELEMENTS(keys) - !old && !error; i++) {
        const struct duet__json list = duet__json_member(at, keys[i]);
        if (duet__json_present(&list))
            error = duet__json_elements(&list, read_element, loader);
    }
    return error || !old ? error : read_execution(loader, at, index);
}

/* ------------------------------------------------------------------------------------------- */
/* The document                                                                                 */

static int read_file(struct loader *loader, const struct duet__json *at)
{
    struct object object = {0};
    int error = duet__fields_read(at, file_fields, &object);
    return error ? error : set_bytes(loader, at, &object);
}

static int read_executed(struct loader *loader, const struct duet__json *at)
{
    struct object object = {0};
    uint32_t task;
    int error = duet__fields_read(at, id_fields, &object);
    if (error)
        return error;
    task = find_task(loader, object.id);
    task = g_array_index(loader->named, struct named, task).task;
    if (task == NOBODY)
        return duet__json_fail(at, DUET_EPARSE, "there is no task '%.60s' in the specification",
                               object.id);
    return read_execution(loader, at, task);
}

static int read_value(const struct duet__json *at, const char *key, void *data)
{
    struct loader *loader = data;
    const char *name = NULL;
    int error;
    if (strcmp(key, "workflow.specification.tasks") == 0)
        return read_task(loader, at, false);
    if (strcmp(key, "workflow.tasks") == 0 || strcmp(key, "workflow.jobs") == 0)
        return read_task(loader, at, true);
    if (strcmp(key, "workflow.specification.files") == 0)
        return read_file(loader, at);
    if (strcmp(key, "workflow.execution.tasks") == 0)
        return read_executed(loader, at);
    if (strcmp(key, "workflow.execution.makespanInSeconds") == 0 ||
        strcmp(key, "workflow.makespanInSeconds") == 0)
        return duet__json_number(at, 0, DUET__GRAPH_SECONDS_MAX, &loader->graph->makespan_s);
    if (strcmp(key, "name") != 0)
        return 0;
    error = duet__json_string(at, &name);
    if (!error && *name && !loader->graph->name)
        loader->graph->name = duet__json_clean(g_strdup(name));
    return error;
}

/* Makes edges between tasks, also between the writer of a file and its readers, as some instances
 * leave them out, unless that makes a cycle: somebody then reads the older contents. */
static int resolve(struct loader *loader, const char *path, struct duet_message *message)
{
    const struct duet__graph *graph = loader->graph;
    const guint given = loader->edges->len;
    for (guint i = 0; i < given; i++) {
        struct duet__graph_edge *edge = &g_array_index(loader->edges, struct duet__graph_edge, i);
        const struct named *from = &g_array_index(loader->named, struct named, edge->from),
                           *to = &g_array_index(loader->named, struct named, edge->to);
        if (from->task == NOBODY || to->task == NOBODY)
            return duet_fail(message, DUET_EPARSE,
                             "%.300s: task '%.60s' has the %s '%.60s', which is not there", path,
                             from->task == NOBODY ? to->id : from->id,
                             from->task == NOBODY ? "parent" : "child",
                             from->task == NOBODY ? from->id : to->id);
        *edge = (struct duet__graph_edge){from->task, to->task, 0};
    }
    for (size_t i = 0; i < duet__graph_count(graph); i++) {
        size_t count;
        const struct duet__graph_access *accesses = duet__graph_accesses(graph, i, &count);
        for (size_t k = 0; k < count; k++) {
            const struct duet__graph_edge edge = {g_array_index(loader->writers, uint32_t,
                                                                accesses[k].data),
                                                  (uint32_t)i, 0};
            if (accesses[k].mode == DUET_R && edge.from != NOBODY && edge.from != i)
                g_array_append_val(loader->edges, edge);
        }
    }
    if (!duet__graph_order(loader->graph, loader->edges, path, NULL))
        return 0;
    g_array_set_size(loader->edges, given);
    return duet__graph_order(loader->graph, loader->edges, path, message);
}

int duet__graph_read_wfformat(struct duet__graph *graph, const char *text, size_t length,
                              const char *path, struct duet_message *message)
{
    static const char *const inside[] = {"workflow", "workflow.specification", "workflow.execution",
                                         NULL};
    struct loader loader = {.graph = graph,
                            .names = g_hash_table_new(g_str_hash, g_str_equal),
                            .named = g_array_new(FALSE, FALSE, sizeof(struct named)),
                            .edges = g_array_new(FALSE, FALSE, sizeof(struct duet__graph_edge)),
                            .files = g_hash_table_new(g_str_hash, g_str_equal),
                            .writers = g_array_new(FALSE, FALSE, sizeof(uint32_t))};
    int error;
    (void)duet__graph_arch(graph, DUET__GRAPH_REFERENCE);
    error = duet__json_each(text, length, path, inside, read_value, &loader, message);
    for (guint i = 0; i < loader.named->len && !error; i++) {
        const struct named *named = &g_array_index(loader.named, struct named, i);
        struct duet__graph_task *task =
            named->task != NOBODY
                ? &g_array_index(graph->tasks, struct duet__graph_task, named->task)
                : NULL;
        const char *name = named->name ? named->name : *named->id ? named->id : "task";
        if (task && task->kernel == NOBODY)
            task->kernel = find_kernel(&loader, name, true);
    }
    if (!error)
        error = resolve(&loader, path, message);
    g_hash_table_unref(loader.names);
    g_array_unref(loader.named);
    g_array_unref(loader.edges);
    g_hash_table_unref(loader.files);
    g_array_unref(loader.writers);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Writes task graphs as workflows in WfFormat 1.5: data are files, times those of the reference. */

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
