/* SPDX-License-Identifier: Apache-2.0 */
/* Reading back a trace: value after value, from its machine and its events to a recording. */
#include "report/trace_file.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include "platforms/json.h"

/* Generous, and small enough that no input can exhaust the memory (routes are pairs of nodes). */
enum { MOST_NODES = 1024, MOST_WORKERS = 16384 };

/* Microseconds of years, so that nothing that is computed of them overflows. */
static const double most_us = 1e15;

/* What has been read so far. */
struct loader {
    struct duet_machine machine;
    bool ours;           /* written by duet */
    GHashTable *threads; /* thread of the trace (process << 32 | thread) -> worker and 1 */
    GHashTable *kernels; /* name -> index */
    GPtrArray *names;    /* of the kernels */
    GArray *events;      /* struct duet_event */
};

/* ------------------------------------------------------------------------------------------- */
/* The machine                                                                                  */

static int read_name(const struct duet__json *at, char name[DUET_NAME_MAX])
{
    const char *text = "";
    int error = duet__json_string(at, &text);

    if (!error && (!*text || strlen(text) >= DUET_NAME_MAX))
        error = duet__json_fail(at, DUET_EPARSE, "'%.60s' is no name: 1 to %d bytes", text,
                                DUET_NAME_MAX - 1);
    if (!error)
        g_strlcpy(name, text, DUET_NAME_MAX);
    return error;
}

/* The number of the memory of that name. */
static int read_node(const struct loader *loader, const struct duet__json *at, unsigned *node)
{
    const char *text = "";
    int error = duet__json_string(at, &text);

    for (unsigned i = 0; !error && i < loader->machine.node_count; i++)
        if (strcmp(loader->machine.nodes[i].name, text) == 0) {
            *node = i;
            return 0;
        }
    return error
               ? error
               : duet__json_fail(at, DUET_EPARSE, "'%.60s' is no memory of otherData.nodes", text);
}

static int read_worker_name(const struct loader *loader, const struct duet__json *at,
                            unsigned *worker)
{
    const char *text = "";
    int error = duet__json_string(at, &text);

    for (unsigned i = 0; !error && i < loader->machine.worker_count; i++)
        if (strcmp(loader->machine.workers[i].name, text) == 0) {
            *worker = i;
            return 0;
        }
    return error ? error
                 : duet__json_fail(at, DUET_EPARSE, "'%.60s' is no worker of otherData.workers",
                                   text);
}

static int read_nodes(struct loader *loader, const struct duet__json *nodes, unsigned count)
{
    struct duet_machine *machine = &loader->machine;
    int error = 0;

    for (unsigned i = 0; i < count && !error; i++) {
        struct duet__json at = duet__json_element(nodes, i);

        error = read_name(&at, machine->nodes[i].name);
        for (unsigned k = 0; k < i && !error; k++)
            if (strcmp(machine->nodes[k].name, machine->nodes[i].name) == 0)
                error = duet__json_fail(&at, DUET_EPARSE, "two memories are called '%s'",
                                        machine->nodes[i].name);
    }
    return error;
}

/* The architecture of that name, added to the machine where it is new. */
static unsigned arch_index(struct duet_machine *machine, const char *name)
{
    unsigned i = 0;

    while (i < machine->arch_count && strcmp(machine->archs[i].name, name) != 0)
        i++;
    if (i == machine->arch_count) {
        machine->arch_count++;
        g_strlcpy(machine->archs[i].name, name, DUET_NAME_MAX);
    }
    return i;
}

static int read_worker(struct loader *loader, const struct duet__json *at, unsigned index)
{
    struct duet_worker *worker = &loader->machine.workers[index];
    struct duet__json name = duet__json_member(at, "name"), node = duet__json_member(at, "node"),
                      arch = duet__json_member(at, "architecture");
    char arch_name[DUET_NAME_MAX];
    int error = duet__json_keys(at, NULL);

    if (!error)
        error = read_name(&name, worker->name);
    if (!error)
        error = read_name(&arch, arch_name);
    if (!error)
        error = read_node(loader, &node, &worker->node);
    if (!error)
        worker->arch = arch_index(&loader->machine, arch_name);
    worker->window = 1;
    return error;
}

/* The value of otherData. */
static int read_head(struct loader *loader, const struct duet__json *at)
{
    struct duet__json nodes = duet__json_member(at, "nodes"),
                      workers = duet__json_member(at, "workers"),
                      platform = duet__json_member(at, "platform"),
                      producer = duet__json_member(at, "producer");
    struct duet_machine *machine = &loader->machine;
    unsigned node_count = 0, worker_count = 0;
    const char *text = "";
    int error = duet__json_keys(at, NULL);

    if (!error && duet__json_present(&producer))
        error = duet__json_string(&producer, &text);
    if (!error && duet__json_present(&nodes))
        error = duet__json_array(&nodes, 1, MOST_NODES, &node_count);
    if (!error && duet__json_present(&workers))
        error = duet__json_array(&workers, 1, MOST_WORKERS, &worker_count);
    if (!error && duet_machine_init(machine, MAX(worker_count, 1), MAX(node_count, 1),
                                    MAX(worker_count, 1), 0))
        error = duet__json_fail(at, DUET_ENOMEM, "out of memory");
    if (error)
        return error;
    machine->arch_count = 0; /* at most one for each worker */
    machine->node_count = node_count;
    machine->worker_count = worker_count;
    if (duet__json_present(&platform))
        error = read_name(&platform, machine->name);
    if (!error)
        error = read_nodes(loader, &nodes, node_count);
    for (unsigned i = 0; i < worker_count && !error; i++) {
        struct duet__json worker = duet__json_element(&workers, i);

        error = read_worker(loader, &worker, i);
    }
    loader->ours = strcmp(text, "duet") == 0 && node_count && worker_count;
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Threads, kernels and copies                                                                  */

/* A member that says what an event is; "" where it says nothing. */
static const char *word(const struct duet__json *at, const char *key)
{
    struct duet__json member = duet__json_member(at, key);
    const char *text = "";

    if (duet__json_is_string(&member) && duet__json_string(&member, &text))
        return "";
    return text;
}

static int read_seconds(const struct duet__json *at, const char *key, double least, double *seconds)
{
    struct duet__json member = duet__json_member(at, key);
    double us = 0;
    int error = duet__json_number(&member, least, most_us, &us);

    *seconds = us * 1e-6;
    return error;
}

static int read_whole(const struct duet__json *at, const char *key, uint64_t most, uint64_t *value)
{
    struct duet__json member = duet__json_member(at, key);

    return duet__json_integer(&member, 0, most, value);
}

static int read_flag(const struct duet__json *at, const char *key, bool *value)
{
    struct duet__json member = duet__json_member(at, key);

    return duet__json_present(&member) ? duet__json_boolean(&member, value) : 0;
}

static int read_thread(const struct duet__json *at, uint64_t *thread)
{
    uint64_t process = 0;
    int error = read_whole(at, "pid", UINT32_MAX, &process);

    if (!error)
        error = read_whole(at, "tid", UINT32_MAX, thread);
    *thread |= process << 32;
    return error;
}

/* What kernels and copies have in common. */
static int read_event(const struct duet__json *at, const struct duet__json *args, const char *id,
                      struct duet_event *event)
{
    double start_us = 0, length_us = 0;
    struct duet__json start = duet__json_member(at, "ts"), length = duet__json_member(at, "dur");
    int error = duet__json_number(&start, -most_us, most_us, &start_us);

    if (!error)
        error = duet__json_number(&length, 0, most_us, &length_us);
    if (!error)
        error = read_whole(args, id, INT64_MAX, &event->id);
    if (!error)
        error = read_whole(args, "bytes", INT64_MAX, &event->bytes);
    if (!error)
        error = read_seconds(args, "ready_us", -most_us, &event->ready_s);
    if (!error)
        error = read_flag(args, "failed", &event->failed);
    event->start_s = start_us * 1e-6;
    event->end_s = (start_us + length_us) * 1e-6;
    return error;
}

/* Index of the kernel of that name, which is added where it is new. */
static unsigned kernel_index(struct loader *loader, const char *name)
{
    gpointer found;

    if (g_hash_table_lookup_extended(loader->kernels, name, NULL, &found))
        return GPOINTER_TO_UINT(found);
    g_ptr_array_add(loader->names, g_strdup(name));
    g_hash_table_insert(loader->kernels, g_strdup(name), GUINT_TO_POINTER(loader->names->len - 1));
    return loader->names->len - 1;
}

static int add_kernel(struct loader *loader, const struct duet__json *at)
{
    struct duet__json args = duet__json_member(at, "args"), name = duet__json_member(at, "name");
    struct duet_event event = {.kind = DUET_EVENT_TASK};
    char kernel[DUET_NAME_MAX] = "";
    uint64_t thread = 0;
    unsigned worker;
    int error = read_thread(at, &thread);

    if (!error)
        error = read_name(&name, kernel);
    if (!error)
        error = read_event(at, &args, "task", &event);
    if (!error)
        error = read_seconds(&args, "submitted_us", -most_us, &event.submit_s);
    if (error)
        return error;
    worker = GPOINTER_TO_UINT(g_hash_table_lookup(loader->threads, &thread));
    if (!worker)
        return duet__json_fail(at, DUET_EPARSE, "a kernel in a thread of no worker");
    event.worker = (int)worker - 1;
    event.source = event.destination = (uint16_t)loader->machine.workers[worker - 1].node;
    event.kernel = kernel_index(loader, kernel);
    g_array_append_val(loader->events, event);
    return 0;
}

static int worker_of(const struct duet_machine *machine, unsigned node)
{
    for (unsigned i = 0; i < machine->worker_count; i++)
        if (machine->workers[i].node == node)
            return (int)i;
    return DUET_NO_WORKER;
}

static int add_copy(struct loader *loader, const struct duet__json *at)
{
    struct duet__json args = duet__json_member(at, "args"),
                      from = duet__json_member(&args, "source"),
                      to = duet__json_member(&args, "destination");
    struct duet_event event = {.kind = DUET_EVENT_COPY};
    unsigned source = 0, destination = 0;
    int error = read_event(at, &args, "handle", &event);

    if (!error)
        error = read_flag(&args, "write_back", &event.write_back);
    if (!error)
        error = read_node(loader, &from, &source);
    if (!error)
        error = read_node(loader, &to, &destination);
    if (!error && source == destination)
        error = duet__json_fail(at, DUET_EPARSE, "a copy from a memory to itself");
    event.submit_s = event.ready_s;
    event.source = (uint16_t)source;
    event.destination = (uint16_t)destination;
    event.worker = worker_of(&loader->machine, destination != DUET_HOST ? destination : source);
    if (!error)
        g_array_append_val(loader->events, event);
    return error;
}

/* A thread that shows a worker's kernels. */
static int add_thread(struct loader *loader, const struct duet__json *at)
{
    struct duet__json args = duet__json_member(at, "args"),
                      name = duet__json_member(&args, "worker");
    unsigned worker = 0;
    uint64_t thread = 0;
    int error;

    if (!duet__json_present(&name))
        return 0;
    error = read_worker_name(loader, &name, &worker);
    if (!error)
        error = read_thread(at, &thread);
    if (!error)
        g_hash_table_insert(loader->threads, g_memdup2(&thread, sizeof(thread)),
                            GUINT_TO_POINTER(worker + 1));
    return error;
}

/* An element of traceEvents; what is of others is passed over. */
static int add(struct loader *loader, const struct duet__json *at)
{
    const char *phase = word(at, "ph"), *category = word(at, "cat");
    int error = duet__json_keys(at, NULL);

    if (error)
        return error;
    if (strcmp(phase, "M") == 0 && strcmp(word(at, "name"), "thread_name") == 0)
        return add_thread(loader, at);
    if (strcmp(phase, "X") == 0 && strcmp(category, "kernel") == 0)
        return add_kernel(loader, at);
    if (strcmp(phase, "X") == 0 && strcmp(category, "copy") == 0)
        return add_copy(loader, at);
    return 0;
}

static int read_all(struct loader *loader, struct duet__json_stream *stream)
{
    struct duet__json at;
    const char *key = NULL;
    int error = 0;

    while (!error && !(error = duet__json_stream_key(stream, &key)) && key) {
        if (strcmp(key, "otherData") == 0) {
            error = duet__json_stream_value(stream, &at);
            if (!error)
                error = read_head(loader, &at);
        } else if (strcmp(key, "traceEvents") == 0) {
            if (!loader->ours)
                return duet__json_stream_fail(stream,
                                              "no trace of duet's: before traceEvents, otherData "
                                              "has to name duet as producer, nodes and workers");
            while (!error && !(error = duet__json_stream_element(stream, &at)) &&
                   duet__json_present(&at))
                error = add(loader, &at);
        }
    }
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* The recording                                                                                */

static int by_start(const void *left, const void *right)
{
    const struct duet_event *a = left, *b = right;

    if (a->start_s != b->start_s)
        return a->start_s < b->start_s ? -1 : 1;
    if (a->worker != b->worker)
        return a->worker < b->worker ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

/* Dates from the first submission; the end of the last kernel, of those that did not fail if there
 * is one. */
static double date(struct duet_event *events, size_t count)
{
    double first_s = INFINITY, last_s = -INFINITY, failed_s = -INFINITY;

    for (size_t i = 0; i < count; i++) {
        if (events[i].kind != DUET_EVENT_TASK)
            continue;
        first_s = fmin(first_s, fmin(events[i].submit_s, events[i].start_s));
        if (events[i].failed)
            failed_s = fmax(failed_s, events[i].end_s);
        else
            last_s = fmax(last_s, events[i].end_s);
    }
    for (size_t i = 0; i < count; i++) {
        events[i].submit_s -= first_s;
        events[i].ready_s -= first_s;
        events[i].start_s -= first_s;
        events[i].end_s -= first_s;
    }
    return (isfinite(last_s) ? last_s : failed_s) - first_s;
}

/* What was read becomes *out, which owns it. */
static void finish(struct loader *loader, struct duet_trace_file *out)
{
    size_t kernels = loader->names->len, count = loader->events->len;

    out->machine = loader->machine;
    loader->machine = (struct duet_machine){0};
    g_ptr_array_add(loader->names, NULL);
    out->kernels = (char **)g_ptr_array_steal(loader->names, NULL);
    out->events = (struct duet_event *)(void *)g_array_steal(loader->events, NULL);
    out->recording = (struct duet_recording){
        .machine = &out->machine,
        .events = out->events,
        .event_count = count,
        .kernels = (const char **)(void *)out->kernels,
        .kernel_count = kernels,
        .makespan_s = date(out->events, count),
    };
    qsort(out->events, count, sizeof(*out->events), by_start);
}

int duet_trace_file_parse(const char *text, size_t length, const char *path,
                          struct duet_trace_file *out, struct duet_message *message)
{
    struct loader loader = {
        .threads = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL),
        .kernels = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
        .names = g_ptr_array_new_with_free_func(g_free),
        .events = g_array_new(FALSE, FALSE, sizeof(struct duet_event)),
    };
    struct duet__json_stream stream;
    int error = duet__json_stream_open(&stream, text, length, path, message);

    *out = (struct duet_trace_file){0};
    if (!error)
        error = read_all(&loader, &stream);
    if (!error && !loader.names->len)
        error = duet_fail(message, DUET_EPARSE, "%.300s: there is no kernel in this trace", path);
    if (!error)
        finish(&loader, out);
    duet__json_stream_close(&stream);
    duet_machine_fini(&loader.machine);
    g_hash_table_destroy(loader.threads);
    g_hash_table_destroy(loader.kernels);
    g_ptr_array_free(loader.names, TRUE);
    g_array_free(loader.events, TRUE);
    return error;
}

void duet_trace_file_fini(struct duet_trace_file *file)
{
    duet_machine_fini(&file->machine);
    g_free(file->events);
    g_strfreev(file->kernels);
    *file = (struct duet_trace_file){0};
}
