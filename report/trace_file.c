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

/* What has been read so far. After an error nothing more is read: the first one stays. */
struct loader {
    int error;
    struct duet_machine machine;
    bool ours;           /* written by duet */
    GHashTable *threads; /* thread of the trace (process << 32 | thread) -> worker and 1 */
    GHashTable *kernels; /* name -> index */
    GPtrArray *names;    /* of the kernels */
    GArray *events;      /* struct duet_event */
};

/* ------------------------------------------------------------------------------------------- */
/* Members of an object. What cannot be read is an error, and 0 or "".                          */

static const char *text_of(struct loader *loader, const struct duet__json *at)
{
    const char *text = "";

    if (!loader->error)
        loader->error = duet__json_string(at, &text);
    return loader->error ? "" : text;
}

static void read_name(struct loader *loader, const struct duet__json *at, char name[DUET_NAME_MAX])
{
    const char *text = text_of(loader, at);

    if (!loader->error && (!*text || strlen(text) >= DUET_NAME_MAX))
        loader->error = duet__json_fail(at, DUET_EPARSE, "'%.60s' is no name: 1 to %d bytes", text,
                                        DUET_NAME_MAX - 1);
    g_strlcpy(name, text, DUET_NAME_MAX);
}

static double microseconds(struct loader *loader, const struct duet__json *at, const char *key,
                           double least)
{
    struct duet__json member = duet__json_member(at, key);
    double value = 0;

    if (!loader->error)
        loader->error = duet__json_number(&member, least, most_us, &value);
    return value;
}

static uint64_t whole(struct loader *loader, const struct duet__json *at, const char *key,
                      uint64_t most)
{
    struct duet__json member = duet__json_member(at, key);
    uint64_t value = 0;

    if (!loader->error)
        loader->error = duet__json_integer(&member, 0, most, &value);
    return value;
}

/* False where it is not there. */
static bool flag(struct loader *loader, const struct duet__json *at, const char *key)
{
    struct duet__json member = duet__json_member(at, key);
    bool value = false;

    if (!loader->error && duet__json_present(&member))
        loader->error = duet__json_boolean(&member, &value);
    return value;
}

/* A member that says what an event is; "" where it says nothing. */
static const char *word(const struct duet__json *at, const char *key)
{
    struct duet__json member = duet__json_member(at, key);
    const char *text = "";

    return duet__json_is_string(&member) && duet__json_string(&member, &text) == 0 ? text : "";
}

/* Elements of a member that is an array, if it is there. */
static unsigned length_of(struct loader *loader, const struct duet__json *at, unsigned most)
{
    unsigned count = 0;

    if (!loader->error && duet__json_present(at))
        loader->error = duet__json_array(at, 1, most, &count);
    return count;
}

/* The number of the memory of that name. */
static unsigned node_of(struct loader *loader, const struct duet__json *at, const char *key)
{
    struct duet__json member = duet__json_member(at, key);
    const char *text = text_of(loader, &member);

    for (unsigned i = 0; i < loader->machine.node_count; i++)
        if (strcmp(loader->machine.nodes[i].name, text) == 0)
            return i;
    if (!loader->error)
        loader->error =
            duet__json_fail(&member, DUET_EPARSE, "'%.60s' is no memory of otherData.nodes", text);
    return 0;
}

/* ------------------------------------------------------------------------------------------- */
/* The machine                                                                                  */

static void read_nodes(struct loader *loader, const struct duet__json *nodes)
{
    struct duet_node *node = loader->machine.nodes;

    for (unsigned i = 0; i < loader->machine.node_count; i++) {
        struct duet__json at = duet__json_element(nodes, i);

        read_name(loader, &at, node[i].name);
        for (unsigned k = 0; k < i && !loader->error; k++)
            if (strcmp(node[k].name, node[i].name) == 0)
                loader->error =
                    duet__json_fail(&at, DUET_EPARSE, "two memories are called '%s'", node[i].name);
    }
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

static void read_workers(struct loader *loader, const struct duet__json *workers)
{
    for (unsigned i = 0; i < loader->machine.worker_count && !loader->error; i++) {
        struct duet__json at = duet__json_element(workers, i),
                          name = duet__json_member(&at, "name"),
                          arch = duet__json_member(&at, "architecture");
        struct duet_worker *worker = &loader->machine.workers[i];
        char arch_name[DUET_NAME_MAX];

        read_name(loader, &name, worker->name);
        read_name(loader, &arch, arch_name);
        worker->node = node_of(loader, &at, "node");
        worker->arch = arch_index(&loader->machine, arch_name);
        worker->window = 1;
    }
}

/* The value of otherData. */
static void read_head(struct loader *loader, const struct duet__json *at)
{
    struct duet__json nodes = duet__json_member(at, "nodes"),
                      workers = duet__json_member(at, "workers"),
                      platform = duet__json_member(at, "platform");
    unsigned node_count = length_of(loader, &nodes, MOST_NODES),
             worker_count = length_of(loader, &workers, MOST_WORKERS);
    struct duet_machine *machine = &loader->machine;

    if (!loader->error && duet_machine_init(machine, MAX(worker_count, 1), MAX(node_count, 1),
                                            MAX(worker_count, 1), 0))
        loader->error = duet__json_fail(at, DUET_ENOMEM, "out of memory");
    if (loader->error)
        return;
    machine->arch_count = 0; /* at most one for each worker */
    machine->node_count = node_count;
    machine->worker_count = worker_count;
    if (duet__json_present(&platform))
        read_name(loader, &platform, machine->name);
    read_nodes(loader, &nodes);
    read_workers(loader, &workers);
    loader->ours = strcmp(word(at, "producer"), "duet") == 0 && node_count && worker_count;
}

/* ------------------------------------------------------------------------------------------- */
/* Threads, kernels and copies                                                                  */

static uint64_t thread_of(struct loader *loader, const struct duet__json *at)
{
    uint64_t process = whole(loader, at, "pid", UINT32_MAX);

    return process << 32 | whole(loader, at, "tid", UINT32_MAX);
}

/* A thread that shows a worker's kernels. */
static void add_thread(struct loader *loader, const struct duet__json *at)
{
    struct duet__json args = duet__json_member(at, "args"),
                      name = duet__json_member(&args, "worker");
    const struct duet_machine *machine = &loader->machine;
    const char *text;
    unsigned worker = 0;
    uint64_t thread;

    if (!duet__json_present(&name))
        return;
    text = text_of(loader, &name);
    while (worker < machine->worker_count && strcmp(machine->workers[worker].name, text) != 0)
        worker++;
    if (!loader->error && worker == machine->worker_count)
        loader->error =
            duet__json_fail(&name, DUET_EPARSE, "'%.60s' is no worker of otherData.workers", text);
    thread = thread_of(loader, at);
    if (!loader->error)
        g_hash_table_insert(loader->threads, g_memdup2(&thread, sizeof(thread)),
                            GUINT_TO_POINTER(worker + 1));
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

/* What kernels and copies have in common. */
static struct duet_event read_event(struct loader *loader, const struct duet__json *at,
                                    const struct duet__json *args, const char *id)
{
    double start_us = microseconds(loader, at, "ts", -most_us);
    double length_us = microseconds(loader, at, "dur", 0);
    struct duet_event event = {.start_s = start_us * 1e-6,
                               .end_s = (start_us + length_us) * 1e-6,
                               .id = whole(loader, args, id, INT64_MAX)};

    event.bytes = whole(loader, args, "bytes", INT64_MAX);
    event.ready_s = microseconds(loader, args, "ready_us", -most_us) * 1e-6;
    event.failed = flag(loader, args, "failed");
    return event;
}

static void add_kernel(struct loader *loader, const struct duet__json *at)
{
    struct duet__json args = duet__json_member(at, "args"), name = duet__json_member(at, "name");
    uint64_t thread = thread_of(loader, at);
    unsigned worker = GPOINTER_TO_UINT(g_hash_table_lookup(loader->threads, &thread));
    char kernel[DUET_NAME_MAX];
    struct duet_event event;

    read_name(loader, &name, kernel);
    event = read_event(loader, at, &args, "task");
    event.submit_s = microseconds(loader, &args, "submitted_us", -most_us) * 1e-6;
    if (!loader->error && !worker)
        loader->error = duet__json_fail(at, DUET_EPARSE, "a kernel in a thread of no worker");
    if (loader->error)
        return;
    event.kind = DUET_EVENT_TASK;
    event.worker = (int)worker - 1;
    event.source = event.destination = (uint16_t)loader->machine.workers[worker - 1].node;
    event.kernel = kernel_index(loader, kernel);
    g_array_append_val(loader->events, event);
}

static int worker_of(const struct duet_machine *machine, unsigned node)
{
    for (unsigned i = 0; i < machine->worker_count; i++)
        if (machine->workers[i].node == node)
            return (int)i;
    return DUET_NO_WORKER;
}

static void add_copy(struct loader *loader, const struct duet__json *at)
{
    struct duet__json args = duet__json_member(at, "args");
    struct duet_event event = read_event(loader, at, &args, "handle");
    unsigned source = node_of(loader, &args, "source"),
             destination = node_of(loader, &args, "destination");

    event.kind = DUET_EVENT_COPY;
    event.submit_s = event.ready_s;
    event.source = (uint16_t)source;
    event.destination = (uint16_t)destination;
    event.worker = worker_of(&loader->machine, destination != DUET_HOST ? destination : source);
    event.write_back = flag(loader, &args, "write_back");
    if (!loader->error && source == destination)
        loader->error = duet__json_fail(at, DUET_EPARSE, "a copy from a memory to itself");
    if (!loader->error)
        g_array_append_val(loader->events, event);
}

/* An element of traceEvents; what is of others is passed over. */
static void add(struct loader *loader, const struct duet__json *at)
{
    const char *phase = word(at, "ph"), *category = word(at, "cat");

    loader->error = duet__json_keys(at, NULL);
    if (loader->error)
        return;
    if (strcmp(phase, "M") == 0 && strcmp(word(at, "name"), "thread_name") == 0)
        add_thread(loader, at);
    else if (strcmp(phase, "X") == 0 && strcmp(category, "kernel") == 0)
        add_kernel(loader, at);
    else if (strcmp(phase, "X") == 0 && strcmp(category, "copy") == 0)
        add_copy(loader, at);
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
                read_head(loader, &at);
        } else if (strcmp(key, "traceEvents") == 0) {
            if (!loader->ours)
                return duet__json_stream_fail(stream,
                                              "no trace of duet's: before traceEvents, otherData "
                                              "has to name duet as producer, nodes and workers");
            while (!loader->error && !(error = duet__json_stream_element(stream, &at)) &&
                   duet__json_present(&at))
                add(loader, &at);
        }
        error = error ? error : loader->error;
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
