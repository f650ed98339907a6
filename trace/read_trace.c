/* SPDX-License-Identifier: Apache-2.0 */
/* Reading back a trace: value after value, from its machine and its events to a recording. */
#include "trace/trace.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include <glib.h>

#include <duet/handles.h>

#include "base/fields.h"
#include "trace/released.h"
#include "base/texts.h"

/* Generous, and small enough that no input can exhaust the memory (routes are pairs of nodes). */
enum {
    MOST_NODES = 1024,
    MOST_WORKERS = 16384,
    MOST_ARCHS = 64,
    MOST_ACCESSES = 1 << 20, /* most accesses of a task */
};

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
/* The machine: the value of otherData                                                          */

static int read_nodes(const struct duet__json *at, void *into, void *root);
static int read_memory(const struct duet__json *at, void *into, void *root);
static int read_archs(const struct duet__json *at, void *into, void *root);
static int read_backends(const struct duet__json *at, void *into, void *root);
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
    {"socket", DUET__UNSIGNED, DUET__OPTIONAL, .offset = offsetof(struct duet_worker, socket),
     .most = MOST_WORKERS},
    DUET__OTHER_KEYS,
};

static const struct duet__list workers = {.what = "worker",
                                          ARRAY(worker_count, workers),
                                          .most = MOST_WORKERS,
                                          .fields = worker_fields};

static const struct duet__field machine_fields[] = {
    {"platform", NAME(duet_machine), .when = DUET__OPTIONAL},
    {"architectures", DUET__CUSTOM, DUET__OPTIONAL, .read = read_archs},
    {"backends", DUET__CUSTOM, DUET__OPTIONAL, .read = read_backends},
    {"nodes", DUET__CUSTOM, DUET__OPTIONAL, .read = read_nodes},
    {"memory_bytes", DUET__CUSTOM, DUET__OPTIONAL, .read = read_memory},
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

/* The capacity of each memory, 0 where it is not known. */
static int read_memory(const struct duet__json *at, void *into, void *root)
{
    struct duet_machine *machine = into;
    unsigned count = 0;
    int error = duet__json_array(at, machine->node_count, machine->node_count, &count);

    (void)root;
    for (unsigned i = 0; i < count && !error; i++) {
        struct duet__json element = duet__json_element(at, i);

        error = duet__json_integer(&element, 0, INT64_MAX, &machine->nodes[i].capacity_bytes);
    }
    return error;
}

/* The number of an architecture, which is added to the machine where it is new. */
static int find_arch(const struct duet__json *at, struct duet_machine *machine, unsigned *number)
{
    struct duet_arch arch = {.name = ""};
    int error = duet__json_name(at, arch.name, DUET_NAME_MAX);

    for (*number = 0; *number < machine->arch_count; ++*number)
        if (strcmp(machine->archs[*number].name, arch.name) == 0)
            return error;
    if (machine->arch_count == MOST_ARCHS)
        return duet__json_fail(at, DUET_EPARSE, "more than %d architectures", MOST_ARCHS);
    machine->archs = g_renew(struct duet_arch, machine->archs, machine->arch_count + 1);
    machine->archs[machine->arch_count++] = arch;
    return error;
}

/* Reads all architectures, in their order; older traces have those of workers alone. */
static int read_archs(const struct duet__json *at, void *into, void *root)
{
    unsigned count = 0, number;
    int error = duet__json_array(at, 0, MOST_ARCHS, &count);

    (void)into;
    for (unsigned i = 0; i < count && !error; i++) {
        struct duet__json element = duet__json_element(at, i);

        error = find_arch(&element, root, &number);
    }
    return error;
}

/* Reads the backends, as many as there are architectures. */
static int read_backends(const struct duet__json *at, void *into, void *root)
{
    struct duet_machine *machine = into;
    unsigned count = 0;
    int error = duet__json_array(at, machine->arch_count, machine->arch_count, &count);

    (void)root;
    for (unsigned i = 0; i < count && !error; i++) {
        struct duet__json element = duet__json_element(at, i);

        error = duet__json_name(&element, machine->archs[i].backend, DUET_NAME_MAX);
    }
    return error;
}

static int read_arch(const struct duet__json *at, void *into, void *root)
{
    struct duet_worker *worker = into;

    worker->window = 1;
    return find_arch(at, root, &worker->arch);
}

/* ------------------------------------------------------------------------------------------- */
/* Threads, kernels and copies: elements of traceEvents                                         */

struct record {
    struct duet_event event; /* dates in microseconds */
    const char *name, *own;  /* the kernel's or mark's name; the application's own */
    double priority;
    unsigned process, thread, worker, source, destination, release;
};

/* Names of architectures, with commas between them. */
static int read_where(const struct duet__json *at, void *into, void *root)
{
    const struct duet_machine *machine = root;
    uint64_t *where = &((struct record *)into)->event.where;
    const char *text = "";
    int error = duet__json_string(at, &text);
    g_auto(GStrv) names = g_strsplit(text, ",", -1);

    for (char **name = names; *name && !error; name++) {
        unsigned arch = 0;

        while (arch < machine->arch_count && strcmp(machine->archs[arch].name, *name) != 0)
            arch++;
        if (arch == machine->arch_count)
            error = duet__json_fail(at, DUET_EPARSE, "there is no architecture '%.40s'", *name);
        else
            *where |= UINT64_C(1) << arch;
    }
    return error;
}

#define AT(member) .offset = offsetof(struct record, member)
#define WHOLE .most = (double)INT64_MAX
#define MOST_US 1e15 /* many years: sums and products overflow nowhere */
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
    {"work", DUET__NUMBER, DUET__OPTIONAL, AT(event.work), .most = DBL_MAX},
    {"name", DUET__TEXT, DUET__OPTIONAL, AT(own)},
    {"iteration", DUET__UNSIGNED, DUET__OPTIONAL, AT(event.iteration), .most = UINT32_MAX},
    {"priority", DUET__NUMBER, DUET__OPTIONAL, AT(priority), .least = INT32_MIN, .most = INT32_MAX},
    {"where", DUET__CUSTOM, DUET__OPTIONAL, .read = read_where},
    {"own", DUET__BOOLEAN, DUET__OPTIONAL, AT(event.own)},
    {"child", DUET__BOOLEAN, DUET__OPTIONAL, AT(event.child)},
    {"submitted_us", DUET__NUMBER, AT(event.submit_s), DATE},
    {"ready_us", DUET__NUMBER, AT(event.ready_s), DATE},
    {"paused", DUET__BOOLEAN, DUET__OPTIONAL, AT(event.paused)},
    {"failed", DUET__BOOLEAN, DUET__OPTIONAL, AT(event.failed)},
    {"release", DUET__CHOICE, DUET__OPTIONAL, AT(release), .choices = duet__release_names},
    {"by", DUET__UNSIGNED, DUET__OPTIONAL, AT(event.released_by), .most = UINT32_MAX},
    {"used", DUET__INTEGER, DUET__OPTIONAL, AT(event.used_bytes), WHOLE},
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
    {"release", DUET__CHOICE, DUET__OPTIONAL, AT(release), .choices = duet__release_names},
    {"by", DUET__UNSIGNED, DUET__OPTIONAL, AT(event.released_by), .most = UINT32_MAX},
    {"used", DUET__INTEGER, DUET__OPTIONAL, AT(event.used_bytes), WHOLE},
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

static const struct duet__field mark_fields[] = {
    {"name", DUET__TEXT, AT(name)},
    {"ts", DUET__NUMBER, AT(event.start_s), DATE},
    {"dur", DUET__NUMBER, DUET__OPTIONAL, AT(event.end_s), .most = MOST_US},
    DUET__OTHER_KEYS,
};

static gpointer thread_of(const struct record *record)
{
    return GSIZE_TO_POINTER((gsize)record->process << 32 | record->thread);
}

/* Reads the thread that shows a worker's kernels, if it says so. */
static int add_thread(struct loader *loader, const struct duet__json *at)
{
    struct record record = {.worker = UINT_MAX};
    int error = duet__part_read(at, thread_fields, &record, loader->machine);

    if (!error && record.worker < UINT_MAX)
        g_hash_table_insert(loader->threads, thread_of(&record),
                            GUINT_TO_POINTER(record.worker + 1));
    return error;
}

/* Reads [handle, bytes, mode], of a part also its whole, which was there before, and its cut. */
static int read_access(const struct duet__json *at, struct duet_trace_access *access)
{
    static const char letters[] = DUET__TRACE_LETTERS;
    unsigned count = 0, bits = 0;
    int error = duet__json_array(at, 3, 5, &count);
    uint64_t *const numbers[] = {&access->handle, &access->bytes, NULL, &access->whole,
                                 &access->cut};
    const char *mode = "";

    for (unsigned i = 0; i < count && !error; i++) {
        const struct duet__json part = duet__json_element(at, i);
        const uint64_t most = i == 3 && access->handle ? access->handle - 1 : INT64_MAX;

        error = numbers[i] ? duet__json_integer(&part, 0, most, numbers[i])
                           : duet__json_string(&part, &mode);
    }
    for (unsigned i = 0; letters[i]; i++)
        bits |= (unsigned)(strchr(mode, letters[i]) != NULL) << i;
    access->reads = bits & DUET_R;
    access->writes = bits & DUET_W;
    access->temporary = bits & 32;
    access->mode = bits & 8    ? DUET_REDUCE
                   : bits & 16 ? DUET_SCRATCH
                   : bits & 4  ? DUET_COMMUTE
                               : bits & DUET_RW;
    return error;
}

/* Reads the data that a task has used, and the tasks it came after, if it says so. */
static int add_accesses(struct loader *loader, const struct duet__json *args, uint64_t task)
{
    const struct duet__json all = duet__json_member(args, "accesses"),
                            after = duet__json_member(args, "after");
    unsigned count = 0, edges = 0;
    int error =
        duet__json_present(&all) ? duet__json_array(&all, 0, MOST_ACCESSES, &count) : DUET_OK;

    if (!error && duet__json_present(&after))
        error = duet__json_array(&after, 0, MOST_ACCESSES, &edges);
    for (unsigned i = 0; i < count + edges && !error; i++) {
        const struct duet__json one =
            i < count ? duet__json_element(&all, i) : duet__json_element(&after, i - count);
        struct duet_trace_access access = {.task = task, .index = i};

        error = i < count ? read_access(&one, &access)
                          : duet__json_integer(&one, 1, INT64_MAX, &access.after);
        g_array_append_val(loader->accesses, access);
    }
    return error;
}

static int add_kernel(struct loader *loader, const struct duet__json *at)
{
    struct record record = {.event.kind = DUET_EVENT_TASK};
    struct duet_event *event = &record.event;
    int error = duet__part_read(at, kernel_fields, &record, loader->machine);
    unsigned worker = GPOINTER_TO_UINT(g_hash_table_lookup(loader->threads, thread_of(&record)));

    const struct duet__json args = duet__json_member(at, "args");

    if (!error && !worker)
        error = duet__json_fail(at, DUET_EPARSE, "a kernel in a thread of no worker");
    if (!error)
        error = add_accesses(loader, &args, event->id);
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
    struct record record = {.event = {.kind = DUET_EVENT_COPY, .worker = DUET_NO_WORKER}};
    struct duet_event *event = &record.event;
    int error = duet__part_read(at, copy_fields, &record, loader->machine);

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
    struct record record = {.name = ""};
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

/* Reads the head, or an element of traceEvents; values of other programs are passed over. */
static int read_value(const struct duet__json *at, const char *key, void *data)
{
    struct loader *loader = data;
    int error;

    if (strcmp(key, "otherData") == 0) {
        error = duet__part_read(at, machine_fields, loader->machine, loader->machine);
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
        .makespan_s = (isfinite(last_s) ? last_s : failed_s) - first_s,
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
    duet__recording_shift(out, -first_s);
    duet__recording_scale(out, 1e-6);
    if (!loader->trace->releases)
        duet__releases_guess(out, false);
}

int duet__read_trace(const char *text, size_t length, const char *path, struct duet__trace *out,
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
    if (!error && !loader.kernels.list->len)
        error = duet_fail(message, DUET_EPARSE, "%.300s: there is no kernel in this trace", path);
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
    *trace = (struct duet__trace){0};
}
