/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workflows in WfFormat (https://github.com/wfcommons/WfFormat), 1.5, and 1.4 and before, where
 * tasks have their files and times themselves. Files are data, whose first writer makes them. Times
 * are taken as they are: the clock rates of machines in published instances are those of one
 * moment, and no speeds. A task is one task, however many cores it used.
 */
#include <math.h>
#include <string.h>

#include "graphs/formats.h"
#include "platforms/json.h"

enum { MOST = 100000000 }; /* tasks, or files */

/* A task that has been named, by itself or by others. */
struct named {
    const char *id;
    uint32_t task; /* NOBODY: not described so far */
};
#define NOBODY UINT32_MAX

struct loader {
    struct duet__graph *graph;
    GHashTable *names; /* of tasks -> index in `named` */
    GArray *named;     /* struct named */
    GArray *edges;     /* struct duet__graph_edge, of indices in `named` */
    GHashTable *files; /* identifier -> index of the data */
    GArray *writers; /* uint32_t, by data: the task that writes it; NOBODY: none does, or several */
};

bool duet__graph_is_wfformat(const char *text, size_t length, const char *path)
{
    (void)length;
    (void)path;
    return *text == '{';
}

/* ------------------------------------------------------------------------------------------- */
/* Names                                                                                        */

/* The number under which a task of this name is known from now on. */
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

static void set_bytes(struct loader *loader, const char *name, uint64_t bytes)
{
    const uint32_t data = find_file(loader, name);

    g_array_index(loader->graph->data, struct duet__graph_data, data).bytes = bytes;
}

/* "dir/blastall" becomes "blastall"; "individuals_ID0000012" becomes "individuals". */
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

/* Calls `each` with the texts of an array, which may be missing. */
static int read_texts(struct loader *loader, const struct duet__json *at, const char *key,
                      uint32_t task,
                      void (*each)(struct loader *loader, const char *text, uint32_t task))
{
    const struct duet__json array = duet__json_member(at, key);
    unsigned count = 0;
    int error = duet__json_present(&array) ? duet__json_array(&array, 0, MOST, &count) : 0;

    for (unsigned i = 0; i < count && !error; i++) {
        const struct duet__json element = duet__json_element(&array, i);
        const char *text = NULL;

        error = duet__json_string(&element, &text);
        if (!error)
            each(loader, text, task);
    }
    return error;
}

static void add_parent(struct loader *loader, const char *text, uint32_t task)
{
    const struct duet__graph_edge edge = {find_task(loader, text), task, 0};

    g_array_append_val(loader->edges, edge);
}

static void add_child(struct loader *loader, const char *text, uint32_t task)
{
    const struct duet__graph_edge edge = {task, find_task(loader, text), 0};

    g_array_append_val(loader->edges, edge);
}

static void add_input(struct loader *loader, const char *text, uint32_t task)
{
    (void)task;
    duet__graph_add_access(loader->graph, find_file(loader, text), DUET_R);
}

static void add_output(struct loader *loader, const char *text, uint32_t task)
{
    const uint32_t data = find_file(loader, text);
    bool *initial = &g_array_index(loader->graph->data, struct duet__graph_data, data).initial;

    g_array_index(loader->writers, uint32_t, data) = *initial ? task : NOBODY;
    *initial = false;
    duet__graph_add_access(loader->graph, data, DUET_W);
}

/* {"link": "input", "name": "f", "sizeInBytes": 12}, before 1.5 */
static int read_link(struct loader *loader, const struct duet__json *at, uint32_t task)
{
    const struct duet__json link_at = duet__json_member(at, "link"),
                            name_at = duet__json_member(at, "name");
    struct duet__json size_at = duet__json_member(at, "sizeInBytes");
    const char *link = NULL, *name = NULL;
    uint64_t bytes = 0;
    int error = duet__json_keys(at, NULL);

    if (!duet__json_present(&size_at))
        size_at = duet__json_member(at, "size");
    if (!error)
        error = duet__json_string(&link_at, &link);
    if (!error)
        error = duet__json_string(&name_at, &name);
    if (!error && duet__json_present(&size_at))
        error = duet__json_integer(&size_at, 0, DUET__GRAPH_BYTES_MAX, &bytes);
    if (error)
        return error;
    (strcmp(link, "output") == 0 ? add_output : add_input)(loader, name, task);
    if (bytes)
        set_bytes(loader, name, bytes);
    return 0;
}

static int read_links(struct loader *loader, const struct duet__json *at, uint32_t task)
{
    const struct duet__json array = duet__json_member(at, "files");
    unsigned count = 0;
    int error = duet__json_present(&array) ? duet__json_array(&array, 0, MOST, &count) : 0;

    for (unsigned i = 0; i < count && !error; i++) {
        const struct duet__json element = duet__json_element(&array, i);

        error = read_link(loader, &element, task);
    }
    return error;
}

/* What a task took, and which program it is. */
static int read_execution(struct loader *loader, const struct duet__json *at, uint32_t index)
{
    struct duet__graph_task *task =
        &g_array_index(loader->graph->tasks, struct duet__graph_task, index);
    struct duet__json seconds = duet__json_member(at, "runtimeInSeconds");
    const struct duet__json command = duet__json_member(at, "command"),
                            priority = duet__json_member(at, "priority"),
                            category = duet__json_member(at, "category");
    struct duet__json program = duet__json_member(&command, "program");
    const char *name = NULL;
    double value = 0;
    int error = 0;

    if (!duet__json_present(&seconds))
        seconds = duet__json_member(at, "runtime");
    if (duet__json_present(&seconds))
        error = duet__json_number(&seconds, 0, DUET__GRAPH_SECONDS_MAX,
                                  duet__graph_seconds(loader->graph, index));
    if (!error && duet__json_present(&priority))
        error = duet__json_number(&priority, INT32_MIN, INT32_MAX, &value);
    task->priority = (int32_t)value;
    if (!duet__json_is_string(&program))
        program = category;
    if (error || !duet__json_is_string(&program))
        return error;
    error = duet__json_string(&program, &name);
    /* what is no word is a script */
    if (!error && *name && strlen(name) < 256 && !strpbrk(name, " \t\r\n"))
        task->kernel = find_kernel(loader, name, false);
    return error;
}

/* A task, called by that key. */
static int read_task(struct loader *loader, const struct duet__json *at, bool old)
{
    const struct duet__json name_at = duet__json_member(at, old ? "name" : "id");
    struct named *named;
    const char *name = NULL;
    uint32_t number, index = loader->graph->tasks->len;
    int error = duet__json_keys(at, NULL);

    if (!error)
        error = duet__json_string(&name_at, &name);
    if (error)
        return error;
    if (index == MOST)
        return duet__json_fail(at, DUET_EPARSE, "more than %d tasks", MOST);
    number = find_task(loader, name);
    named = &g_array_index(loader->named, struct named, number);
    if (named->task != NOBODY)
        return duet__json_fail(at, DUET_EPARSE, "there are two tasks '%.60s'", name);
    named->task = index;
    duet__graph_add(loader->graph, NOBODY)->name = *named->id ? named->id : NULL;
    error = read_texts(loader, at, "parents", number, add_parent);
    if (!error)
        error = read_texts(loader, at, "children", number, add_child);
    if (!error)
        error = read_texts(loader, at, "inputFiles", index, add_input);
    if (!error)
        error = read_texts(loader, at, "outputFiles", index, add_output);
    if (!error && old)
        error = read_links(loader, at, index);
    return error || !old ? error : read_execution(loader, at, index);
}

/* ------------------------------------------------------------------------------------------- */
/* The document                                                                                 */

static int read_file(struct loader *loader, const struct duet__json *at)
{
    const struct duet__json id_at = duet__json_member(at, "id"),
                            size_at = duet__json_member(at, "sizeInBytes");
    const char *id = NULL;
    uint64_t bytes = 0;
    int error = duet__json_keys(at, NULL);

    if (!error)
        error = duet__json_string(&id_at, &id);
    if (!error)
        error = duet__json_integer(&size_at, 0, DUET__GRAPH_BYTES_MAX, &bytes);
    if (!error)
        set_bytes(loader, id, bytes);
    return error;
}

static int read_executed(struct loader *loader, const struct duet__json *at)
{
    const struct duet__json id_at = duet__json_member(at, "id");
    const char *id = NULL;
    uint32_t task;
    int error = duet__json_keys(at, NULL);

    if (!error)
        error = duet__json_string(&id_at, &id);
    if (error)
        return error;
    task = find_task(loader, id);
    task = g_array_index(loader->named, struct named, task).task;
    if (task == NOBODY)
        return duet__json_fail(at, DUET_EPARSE, "there is no task '%.60s' in the specification",
                               id);
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

/*
 * Edges by tasks. Those between the writer of a file and its readers are added, as some instances
 * leave them out, unless there is no order then: somebody reads what was there before.
 */
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
    for (guint i = 0; i < graph->tasks->len && !error; i++) {
        struct duet__graph_task *task = &g_array_index(graph->tasks, struct duet__graph_task, i);

        if (task->kernel == NOBODY)
            task->kernel = find_kernel(&loader, task->name ? task->name : "task", true);
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
