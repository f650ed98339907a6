/* SPDX-License-Identifier: Apache-2.0 */
/* Reading back a trace: value after value, from its machine and its events to a recording. */
#include "trace/trace.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include <glib.h>

#include "base/texts.h"

/* The trace as far as it has been read. */
struct loader {
    struct duet_machine *machine;
    struct duet__trace *trace; /* without its recording */
    bool ours;                 /* written by duet */
    GHashTable *threads;       /* thread of the trace (process << 32 | thread) -> worker and 1 */
    struct duet__texts kernels, names;
    GArray *events;   /* struct duet_event */
    GArray *accesses; /* struct duet_trace_access */
    GArray *marks;    /* struct duet_trace_mark */
};

/* ------------------------------------------------------------------------------------------- */
/* Threads, kernels and copies: elements of traceEvents                                         */

#define AT(member) .offset = offsetof(struct duet__trace_record, member)
#define MOST_US 1e15

static const struct duet__field thread_args[] = {
    {"worker", DUET__INDEX, DUET__OPTIONAL, AT(worker), .list = &duet__trace_workers},
    DUET__OTHER_KEYS,
};

static const struct duet__field thread_fields[] = {
    {"args", DUET__OBJECT, DUET__OPTIONAL, .fields = thread_args},
    {"pid", DUET__UNSIGNED, AT(process), .most = UINT32_MAX},
    {"tid", DUET__UNSIGNED, AT(thread), .most = UINT32_MAX},
    DUET__OTHER_KEYS,
};

static const struct duet__field mark_fields[] = {
    {"name", DUET__TEXT, AT(name)},
    {"ts", DUET__NUMBER, AT(event.start_s), .least = -MOST_US, .most = MOST_US},
    {"dur", DUET__NUMBER, DUET__OPTIONAL, AT(event.end_s), .most = MOST_US},
    DUET__OTHER_KEYS,
};

static gpointer thread_of(const struct duet__trace_record *record)
{
    return GSIZE_TO_POINTER((gsize)record->process << 32 | record->thread);
}

/* Reads the thread that shows a worker's kernels, if it says so. */
static int add_thread(struct loader *loader, const struct duet__json *at)
{
    struct duet__trace_record record = {.worker = UINT_MAX};
    int error = duet__part_read(at, thread_fields, &record, loader->machine);
    if (!error && record.worker < UINT_MAX)
        g_hash_table_insert(loader->threads, thread_of(&record),
                            GUINT_TO_POINTER(record.worker + 1));
    return error;
}

static int add_kernel(struct loader *loader, const struct duet__json *at)
{
    struct duet__trace_record record = {.event.kind = DUET_EVENT_TASK,
                                        .accesses = loader->accesses,
                                        .first = loader->accesses->len};
    struct duet_event *event = &record.event;
    int error = duet__part_read(at, duet__trace_kernel_fields, &record, loader->machine);
    unsigned worker = GPOINTER_TO_UINT(g_hash_table_lookup(loader->threads, thread_of(&record)));
    if (!error && !worker)
        error = duet__json_fail(at, DUET_EPARSE, "a kernel in a thread of no worker");
    if (error)
        return error;
    event->worker = (int)worker - 1;
    event->source = event->destination = (uint16_t)loader->machine->workers[worker - 1].node;
    event->kernel = duet__texts_number(&loader->kernels, record.name) - 1;
    event->priority = (int32_t)record.priority;
    event->release = (uint8_t)record.release;
    if (!event->where)
        event->where = (UINT64_C(2) << (loader->machine->arch_count - 1)) - 1;
    event->name = record.own ? duet__texts_number(&loader->names, record.own) : 0;
    event->end_s += event->start_s;
    g_array_append_vals(loader->events, event, 1);
    return 0;
}

static int add_copy(struct loader *loader, const struct duet__json *at)
{
    struct duet__trace_record record = {
        .event = {.kind = DUET_EVENT_COPY, .worker = DUET_NO_WORKER}};
    struct duet_event *event = &record.event;
    int error = duet__part_read(at, duet__trace_copy_fields, &record, loader->machine);
    if (!error && record.source == record.destination)
        error = duet__json_fail(at, DUET_EPARSE, "a copy from a memory to itself");
    event->submit_s = event->ready_s;
    event->release = (uint8_t)record.release;
    event->source = (uint16_t)record.source;
    event->destination = (uint16_t)record.destination;
    event->end_s += event->start_s;
    g_array_append_vals(loader->events, event, 1);
    return error;
}

static int add_mark(struct loader *loader, const struct duet__json *at, bool phase, bool lost)
{
    struct duet__trace_record record = {.name = ""};
    int error = duet__part_read(at, mark_fields, &record, loader->machine);
    struct duet_trace_mark mark = {.name = duet__texts_number(&loader->names, record.name),
                                   .phase = phase,
                                   .start_s = record.event.start_s,
                                   .end_s = record.event.start_s + record.event.end_s};
    for (unsigned i = 0; i < loader->machine->worker_count && lost; i++)
        if (strcmp(loader->machine->workers[i].name, record.name) == 0)
            mark.lost = i + 1;
    g_array_append_val(loader->marks, mark);
    return error;
}

/* Returns true if a member is this word. */
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

static int read_machine(const struct duet__json *at, struct duet_machine *machine)
{
    int error = duet__fields_read(at, duet__trace_machine_fields, machine);
    for (unsigned i = 0; i < machine->worker_count; i++)
        machine->workers[i].window = 1;
    machine->routes =
        g_new0(struct duet_route, (size_t)machine->node_count * machine->node_count + 1);
    return error;
}

/* Reads the head, or an element of traceEvents; values of other programs are passed over. */
static int read_value(const struct duet__json *at, const char *key, void *data)
{
    struct loader *loader = data;
    int error;
    if (strcmp(key, "otherData") == 0) {
        if (loader->machine->routes) /* a second one */
            return refuse(at);
        error = read_machine(at, loader->machine);
        if (!error)
            error = duet__fields_read(at, duet__trace_fields, loader->trace);
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
    if (says(at, "ph", "X") && says(at, "cat", "phase"))
        return add_mark(loader, at, true, false);
    if (says(at, "ph", "i") && (says(at, "cat", "mark") || says(at, "cat", "lost")))
        return add_mark(loader, at, false, says(at, "cat", "lost"));
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

/* Makes a recording of what was read: sorted, in seconds, dated from the first submission to the
   end of the last kernel that did not fail, if there is one. */
static void finish(struct loader *loader, struct duet__recording *out)
{
    double first_s = INFINITY, last_s = -INFINITY, failed_s = -INFINITY;
    for (guint i = 0; i < loader->events->len; i++) {
        const struct duet_event *event = &g_array_index(loader->events, struct duet_event, i);
        double *end_s = event->failed ? &failed_s : &last_s;
        if (event->kind != DUET_EVENT_TASK)
            continue;
        first_s = fmin(first_s, fmin(event->submit_s, event->start_s));
        *end_s = fmax(*end_s, event->end_s);
    }
    *out = (struct duet__recording){
        .machine = g_steal_pointer(&loader->machine),
        .makespan_s = isfinite(first_s) ? (isfinite(last_s) ? last_s : failed_s) - first_s : 0,
    };
    out->kernels = duet__texts_give(&loader->kernels, &out->kernel_count);
    out->names = duet__texts_give(&loader->names, &out->name_count);
    /* a file that says what released its events has them in order: they keep their numbers */
    g_array_sort(loader->events, by_start);
    g_array_sort(loader->accesses, duet__by_task);
    out->events = (struct duet_event *)(void *)g_array_steal(loader->events, &out->event_count);
    if (loader->accesses->len)
        out->accesses =
            (struct duet_trace_access *)(void *)g_array_steal(loader->accesses, &out->access_count);
    out->marks = (struct duet_trace_mark *)(void *)g_array_steal(loader->marks, &out->mark_count);
    if (isfinite(first_s))
        duet__recording_shift(out, -first_s);
    duet__recording_scale(out, 1e-6);
    if (!loader->trace->releases)
        duet__releases_guess(out, false);
}

static int no_kernel(const char *path, struct duet_message *message)
{
    return duet_fail(message, DUET_EPARSE, "%.300s: there is no kernel in this trace", path);
}

int duet__read_figures(const char *text, size_t length, const char *path, struct duet__trace *out,
                       struct duet_message *message)
{
    struct loader loader = {
        .machine = g_new0(struct duet_machine, 1),
        .trace = out,
        .threads = g_hash_table_new(NULL, NULL),
        .kernels = duet__texts_new(),
        .names = duet__texts_new(),
        .events = g_array_new(FALSE, FALSE, sizeof(struct duet_event)),
        .accesses = g_array_new(FALSE, FALSE, sizeof(struct duet_trace_access)),
        .marks = g_array_new(FALSE, FALSE, sizeof(struct duet_trace_mark)),
    };
    int error;
    *out = (struct duet__trace){.world = NULL};
    error = duet__json_each(text, length, path, NULL, read_value, &loader, message);
    if (!error && !loader.ours)
        error = refuse(&(struct duet__json){.path = path, .message = message});
    if (!error && !loader.kernels.list->len && !out->run.stats.tasks)
        error = no_kernel(path, message);
    if (!error) {
        finish(&loader, &out->run.recording);
    } else {
        duet__trace_fini(out);
        duet__texts_free(&loader.kernels);
        duet__texts_free(&loader.names);
    }
    if (loader.machine)
        duet_machine_fini(loader.machine);
    g_free(loader.machine);
    g_hash_table_destroy(loader.threads);
    g_array_free(loader.events, TRUE);
    g_array_free(loader.accesses, TRUE);
    g_array_free(loader.marks, TRUE);
    return error;
}

int duet__read_trace(const char *text, size_t length, const char *path, struct duet__trace *out,
                     struct duet_message *message)
{
    int error = duet__read_figures(text, length, path, out, message);
    if (!error && !out->run.recording.kernel_count) {
        duet__trace_fini(out);
        error = no_kernel(path, message);
    }
    return error;
}

int duet__trace_load(const char *path, struct duet__trace *out, struct duet_message *message)
{
    g_autofree char *text = NULL;
    size_t length;
    int error = duet__read_all(path, DUET__TRACE_MOST_MIB, &text, &length, message);
    *out = (struct duet__trace){.world = NULL};
    return error ? error : duet__read_trace(text, length, path, out, message);
}

void duet__trace_fini(struct duet__trace *trace)
{
    duet__run_fini(&trace->run);
    g_free(trace->world);
    g_free(trace->workload);
    g_free(trace->settings);
    g_free(trace->estimated);
    g_free(trace->policy);
    g_free(trace->options);
    g_free(trace->platform_file);
    g_free(trace->platform_digest);
    g_free(trace->spent);
    *trace = (struct duet__trace){0};
}
