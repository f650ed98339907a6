/* SPDX-License-Identifier: Apache-2.0 */
/* Reading back a trace: value after value, from its machine and its events to a recording. */
#include "report/read.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "platforms/fields.h"

/* Generous, and small enough that no input can exhaust the memory (routes are pairs of nodes). */
enum { MOST_NODES = 1024, MOST_WORKERS = 16384 };

/* What has been read so far. */
struct loader {
    struct duet_machine *machine;
    bool ours;           /* written by duet */
    GHashTable *threads; /* thread of the trace (process << 32 | thread) -> worker and 1 */
    GHashTable *kernels; /* name -> index and 1 */
    GPtrArray *names;    /* of the kernels */
    GArray *events;      /* struct duet_event */
};

/* ------------------------------------------------------------------------------------------- */
/* The machine: the value of otherData                                                          */

static int read_nodes(const struct duet__json *at, void *into, void *root);
static int read_arch(const struct duet__json *at, void *into, void *root);

#define NAME(type) DUET__NAME, .offset = offsetof(struct type, name), .room = DUET_NAME_MAX
#define ARRAY(counter, elements)                                                                   \
    .count = offsetof(struct duet_machine, counter),                                               \
    .array = offsetof(struct duet_machine, elements),                                              \
    .size = sizeof(((struct duet_machine *)NULL)->elements[0]), .least = 1

static const struct duet__list nodes = {.what = "memory",
                                        ARRAY(node_count, nodes),
                                        .most = MOST_NODES};

static const struct duet__field worker_fields[] = {
    {"name", NAME(duet_worker)},
    {"architecture", DUET__CUSTOM, .read = read_arch},
    {"node", DUET__INDEX, .offset = offsetof(struct duet_worker, node), .list = &nodes},
    DUET__OTHER_KEYS,
};

static const struct duet__list workers = {.what = "worker",
                                          ARRAY(worker_count, workers),
                                          .most = MOST_WORKERS,
                                          .fields = worker_fields};

static const struct duet__field machine_fields[] = {
    {"platform", NAME(duet_machine), .when = DUET__OPTIONAL},
    {"nodes", DUET__CUSTOM, DUET__OPTIONAL, .read = read_nodes},
    {"workers", DUET__LIST, DUET__OPTIONAL, .list = &workers},
    DUET__OTHER_KEYS,
};

static int read_nodes(const struct duet__json *at, void *into, void *root)
{
    struct duet_machine *machine = into;
    unsigned count = 0;
    int error = duet__json_array(at, nodes.least, nodes.most, &count);

    (void)root;
    machine->nodes = g_new0(struct duet_node, count + 1);
    machine->routes = g_new0(struct duet_route, (size_t)count * count + 1);
    for (unsigned i = 0; i < count && !error; i++) {
        struct duet__json element = duet__json_element(at, i);
        char *name = machine->nodes[i].name;

        error = duet__json_name(&element, name, DUET_NAME_MAX);
        for (unsigned k = 0; k < i && !error; k++)
            if (strcmp(machine->nodes[k].name, name) == 0)
                error =
                    duet__json_fail(&element, DUET_EPARSE, "two memories are called '%s'", name);
        machine->node_count++;
    }
    return error;
}

/* The architecture of a worker, added to the machine where it is new. */
static int read_arch(const struct duet__json *at, void *into, void *root)
{
    struct duet_worker *worker = into;
    struct duet_machine *machine = root;
    struct duet_arch arch = {.name = ""};
    int error = duet__json_name(at, arch.name, DUET_NAME_MAX);

    while (worker->arch < machine->arch_count &&
           strcmp(machine->archs[worker->arch].name, arch.name) != 0)
        worker->arch++;
    if (worker->arch == machine->arch_count) {
        machine->archs = g_renew(struct duet_arch, machine->archs, machine->arch_count + 1);
        machine->archs[machine->arch_count++] = arch;
    }
    worker->window = 1;
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Threads, kernels and copies: elements of traceEvents                                         */

struct record {
    struct duet_event event; /* its dates in microseconds */
    const char *name;
    unsigned process, thread, worker, source, destination;
};

#define AT(member) .offset = offsetof(struct record, member)
#define WHOLE .most = (double)INT64_MAX
#define MOST_US 1e15 /* of years, so that nothing that is computed of them overflows */
#define DATE .least = -MOST_US, .most = MOST_US

static const struct duet__field thread_args[] = {
    {"worker", DUET__INDEX, DUET__OPTIONAL, AT(worker), .list = &workers},
    DUET__OTHER_KEYS,
};

static const struct duet__field thread_fields[] = {
    {"args", DUET__OBJECT, DUET__OPTIONAL, .fields = thread_args},
    {"pid", DUET__UNSIGNED, AT(process), .most = UINT32_MAX},
    {"tid", DUET__UNSIGNED, AT(thread), .most = UINT32_MAX},
    DUET__OTHER_KEYS,
};

static const struct duet__field kernel_args[] = {
    {"task", DUET__INTEGER, AT(event.id), WHOLE},
    {"bytes", DUET__INTEGER, AT(event.bytes), WHOLE},
    {"submitted_us", DUET__NUMBER, AT(event.submit_s), DATE},
    {"ready_us", DUET__NUMBER, AT(event.ready_s), DATE},
    {"paused", DUET__BOOLEAN, DUET__OPTIONAL, AT(event.paused)},
    {"failed", DUET__BOOLEAN, DUET__OPTIONAL, AT(event.failed)},
    DUET__OTHER_KEYS,
};

static const struct duet__field kernel_fields[] = {
    {"pid", DUET__UNSIGNED, AT(process), .most = UINT32_MAX},
    {"tid", DUET__UNSIGNED, AT(thread), .most = UINT32_MAX},
    {"name", DUET__TEXT, AT(name), .room = DUET_NAME_MAX},
    {"ts", DUET__NUMBER, AT(event.start_s), DATE},
    {"dur", DUET__NUMBER, AT(event.end_s), .most = MOST_US},
    {"args", DUET__OBJECT, .fields = kernel_args},
    DUET__OTHER_KEYS,
};

static const struct duet__field copy_args[] = {
    {"handle", DUET__INTEGER, AT(event.id), WHOLE},
    {"bytes", DUET__INTEGER, AT(event.bytes), WHOLE},
    {"ready_us", DUET__NUMBER, AT(event.ready_s), DATE},
    {"source", DUET__INDEX, AT(source), .list = &nodes},
    {"destination", DUET__INDEX, AT(destination), .list = &nodes},
    {"write_back", DUET__BOOLEAN, DUET__OPTIONAL, AT(event.write_back)},
    {"failed", DUET__BOOLEAN, DUET__OPTIONAL, AT(event.failed)},
    DUET__OTHER_KEYS,
};

static const struct duet__field copy_fields[] = {
    {"ts", DUET__NUMBER, AT(event.start_s), DATE},
    {"dur", DUET__NUMBER, AT(event.end_s), .most = MOST_US},
    {"args", DUET__OBJECT, .fields = copy_args},
    DUET__OTHER_KEYS,
};

static gpointer thread_of(const struct record *record)
{
    return GSIZE_TO_POINTER((gsize)record->process << 32 | record->thread);
}

/* A thread that shows a worker's kernels, if it says so. */
static int add_thread(struct loader *loader, const struct duet__json *at)
{
    struct record record = {.worker = UINT_MAX};
    int error = duet__part_read(at, thread_fields, &record, loader->machine);

    if (!error && record.worker < UINT_MAX)
        g_hash_table_insert(loader->threads, thread_of(&record),
                            GUINT_TO_POINTER(record.worker + 1));
    return error;
}

/* Index of the kernel of that name, which is added where it is new. */
static unsigned find_kernel(struct loader *loader, const char *name)
{
    unsigned found = GPOINTER_TO_UINT(g_hash_table_lookup(loader->kernels, name));

    if (!found) {
        g_ptr_array_add(loader->names, g_strdup(name));
        found = loader->names->len;
        g_hash_table_insert(loader->kernels, loader->names->pdata[found - 1],
                            GUINT_TO_POINTER(found));
    }
    return found - 1;
}

static int add_kernel(struct loader *loader, const struct duet__json *at)
{
    struct record record = {.event.kind = DUET_EVENT_TASK};
    struct duet_event *event = &record.event;
    int error = duet__part_read(at, kernel_fields, &record, loader->machine);
    unsigned worker = GPOINTER_TO_UINT(g_hash_table_lookup(loader->threads, thread_of(&record)));

    if (!error && !worker)
        error = duet__json_fail(at, DUET_EPARSE, "a kernel in a thread of no worker");
    if (error)
        return error;
    event->worker = (int)worker - 1;
    event->source = event->destination = (uint16_t)loader->machine->workers[worker - 1].node;
    event->kernel = find_kernel(loader, record.name);
    event->end_s += event->start_s;
    g_array_append_vals(loader->events, event, 1);
    return 0;
}

static int add_copy(struct loader *loader, const struct duet__json *at)
{
    struct record record = {.event = {.kind = DUET_EVENT_COPY, .worker = DUET_NO_WORKER}};
    struct duet_event *event = &record.event;
    int error = duet__part_read(at, copy_fields, &record, loader->machine);

    if (!error && record.source == record.destination)
        error = duet__json_fail(at, DUET_EPARSE, "a copy from a memory to itself");
    event->submit_s = event->ready_s;
    event->source = (uint16_t)record.source;
    event->destination = (uint16_t)record.destination;
    event->end_s += event->start_s;
    g_array_append_vals(loader->events, event, 1);
    return error;
}

/* Whether a member is this word. */
static bool says(const struct duet__json *at, const char *key, const char *word)
{
    struct duet__json member = duet__json_member(at, key);
    const char *text = "";

    return duet__json_is_string(&member) && !duet__json_string(&member, &text) &&
           strcmp(text, word) == 0;
}

static int refuse(const struct duet__json *at)
{
    return duet__json_fail(at, DUET_EPARSE,
                           "no trace of duet's: before traceEvents, otherData has to name duet as "
                           "producer, nodes and workers");
}

/* The head, or an element of traceEvents; what is of others is passed over. */
static int read_value(const struct duet__json *at, const char *key, void *data)
{
    struct loader *loader = data;
    int error;

    if (strcmp(key, "otherData") == 0) {
        error = duet__part_read(at, machine_fields, loader->machine, loader->machine);
        loader->ours = !error && says(at, "producer", "duet") && loader->machine->node_count &&
                       loader->machine->worker_count;
        return error;
    }
    if (strcmp(key, "traceEvents") != 0)
        return 0;
    if (!loader->ours)
        return refuse(at);
    if (says(at, "ph", "X") && says(at, "cat", "kernel"))
        return add_kernel(loader, at);
    if (says(at, "ph", "X") && says(at, "cat", "copy"))
        return add_copy(loader, at);
    if (says(at, "ph", "M") && says(at, "name", "thread_name"))
        return add_thread(loader, at);
    return duet__json_keys(at, NULL);
}

/* ------------------------------------------------------------------------------------------- */
/* The recording                                                                                */

static int by_start(const void *left, const void *right)
{
    double a_s = ((const struct duet_event *)left)->start_s,
           b_s = ((const struct duet_event *)right)->start_s;

    return (a_s > b_s) - (a_s < b_s);
}

/* What was read becomes a recording: in order, dated from the first submission to the end of the
   last kernel, of those that did not fail if there is one, and in seconds. */
static void finish(struct loader *loader, struct duet__recording *out)
{
    double first_s = INFINITY, last_s = -INFINITY, failed_s = -INFINITY;
    const size_t kernels = loader->names->len;

    for (guint i = 0; i < loader->events->len; i++) {
        const struct duet_event *event = &g_array_index(loader->events, struct duet_event, i);
        double *end_s = event->failed ? &failed_s : &last_s;

        if (event->kind != DUET_EVENT_TASK)
            continue;
        first_s = fmin(first_s, fmin(event->submit_s, event->start_s));
        *end_s = fmax(*end_s, event->end_s);
    }
    g_ptr_array_add(loader->names, NULL);
    *out = (struct duet__recording){
        .machine = g_steal_pointer(&loader->machine),
        .kernel_count = kernels,
        .kernels = (const char **)(void *)g_ptr_array_steal(loader->names, NULL),
        .makespan_s = (isfinite(last_s) ? last_s : failed_s) - first_s,
    };
    g_array_sort(loader->events, by_start);
    out->events = (struct duet_event *)(void *)g_array_steal(loader->events, &out->event_count);
    duet__recording_shift(out, -first_s);
    duet__recording_scale(out, 1e-6);
}

int duet__read_trace(const char *text, size_t length, const char *path, struct duet__recording *out,
                     struct duet_message *message)
{
    struct loader loader = {
        .machine = g_new0(struct duet_machine, 1),
        .threads = g_hash_table_new(NULL, NULL),
        .kernels = g_hash_table_new(g_str_hash, g_str_equal),
        .names = g_ptr_array_new_with_free_func(g_free),
        .events = g_array_new(FALSE, FALSE, sizeof(struct duet_event)),
    };
    int error = duet__json_each(text, length, path, read_value, &loader, message);

    *out = (struct duet__recording){0};
    if (!error && !loader.ours)
        error = refuse(&(struct duet__json){.path = path, .message = message});
    if (!error && !loader.names->len)
        error = duet_fail(message, DUET_EPARSE, "%.300s: there is no kernel in this trace", path);
    if (!error)
        finish(&loader, out);
    if (loader.machine)
        duet_machine_fini(loader.machine);
    g_free(loader.machine);
    g_hash_table_destroy(loader.threads);
    g_hash_table_destroy(loader.kernels);
    g_ptr_array_free(loader.names, TRUE);
    g_array_free(loader.events, TRUE);
    return error;
}
