/* SPDX-License-Identifier: Apache-2.0 */
/* Export to the JSON trace event format of Perfetto and Chrome. */
#include "trace/trace.h"

#include <float.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include <glib.h>

#include <duet/handles.h>

#include "base/json.h"
#include "trace/counters.h"
#include "trace/released.h"

/* ------------------------------------------------------------------------------------------- */
/* Facts of the run                                                                             */

#define AT(member) .offset = offsetof(struct duet__trace, member)
#define TEXT(member) #member, DUET__COPY, DUET__OPTIONAL, AT(member)
#define STAT(member) .offset = offsetof(struct duet_stats, member)
#define COUNT(member)                                                                              \
#member, DUET__INTEGER, DUET__OPTIONAL, STAT(member), .most = (double)INT64_MAX
#define AMOUNT(member) #member, DUET__NUMBER, DUET__OPTIONAL, STAT(member), .most = DBL_MAX
#define SECONDS .most = DUET__MAKESPAN_MOST_S

/* Seeds are all of 64 bits, numbers of JSON are not: a seed is a text. */
static int read_seed(const struct duet__json *at, void *into, void *root)
{
    struct duet__trace *trace = into;
    const char *text = "";
    int error = duet__json_string(at, &text);

    (void)root;
    if (!error && !duet__scan_whole(text, 0, UINT64_MAX, &trace->run.seed))
        error = duet__json_fail(at, DUET_EPARSE, "'%.40s' is no seed", text);
    return error;
}

static void write_seed(struct duet__json_writer *writer, const void *from, const void *root)
{
    char text[32];

    (void)root;
    (void)g_snprintf(text, sizeof text, "%" PRIu64, ((const struct duet__trace *)from)->run.seed);
    duet__json_put_string(writer, "seed", text);
}

static int read_busy(const struct duet__json *at, void *into, void *root)
{
    struct duet_stats *stats = into;
    unsigned count = 0;
    int error = duet__json_array(at, 0, DUET_STATS_ARCHS, &count);

    (void)root;
    for (unsigned i = 0; i < count && !error; i++) {
        struct duet__json element = duet__json_element(at, i);

        error = duet__json_number(&element, 0, DUET__MAKESPAN_MOST_S, &stats->busy_by_arch_s[i]);
    }
    return error;
}

static void write_busy(struct duet__json_writer *writer, const void *from, const void *root)
{
    (void)root;
    duet__json_put_numbers(writer, "busy_by_arch_s",
                           ((const struct duet_stats *)from)->busy_by_arch_s, DUET_STATS_ARCHS);
}

static const struct duet__field stats_fields[] = {
    {COUNT(tasks)},
    {COUNT(accesses)},
    {AMOUNT(first_submit_s)},
    {AMOUNT(last_end_s)},
    {"makespan_s", DUET__NUMBER, DUET__OPTIONAL, STAT(makespan_s), SECONDS},
    {AMOUNT(flops)},
    {COUNT(bytes_to_device)},
    {COUNT(bytes_to_host)},
    {COUNT(bytes_between)},
    {COUNT(copies_to_device)},
    {COUNT(copies_to_host)},
    {COUNT(copies_between)},
    {COUNT(evictions)},
    {COUNT(write_backs)},
    {COUNT(reads_on_device)},
    {COUNT(read_hits)},
    {COUNT(merged)},
    {COUNT(pushes)},
    {COUNT(pops)},
    {COUNT(steals)},
    {COUNT(steal_attempts)},
    {AMOUNT(busy_s)},
    {"busy_by_arch_s", DUET__CUSTOM, DUET__OPTIONAL, .read = read_busy, .write = write_busy},
    {AMOUNT(critical_path_s)},
    DUET__OTHER_KEYS,
};

#define CHOICE(member)                                                                             \
#member, .when = DUET__OPTIONAL, .offset = offsetof(struct duet_choice, member)

const struct duet__field duet__choice_fields[] = {
    {CHOICE(policy), .kind = DUET__WORDS, .room = sizeof((struct duet_choice *)0)->policy},
    {CHOICE(why), .kind = DUET__WORDS, .room = sizeof((struct duet_choice *)0)->why},
    {CHOICE(tasks), .kind = DUET__INTEGER, .most = (double)INT64_MAX},
    {CHOICE(predicted_s), .kind = DUET__NUMBER, SECONDS},
    {CHOICE(runner_up), .kind = DUET__WORDS, .room = sizeof((struct duet_choice *)0)->runner_up},
    {CHOICE(runner_up_s), .kind = DUET__NUMBER, SECONDS},
    DUET__OTHER_KEYS,
};

const struct duet__field duet__trace_fields[] = {
    {TEXT(world)},
    {TEXT(workload)},
    {TEXT(settings)},
    {"n", DUET__INTEGER, DUET__OPTIONAL, AT(n), .most = (double)INT64_MAX},
    {"tile", DUET__INTEGER, DUET__OPTIONAL, AT(tile), .most = (double)INT64_MAX},
    {TEXT(estimated)},
    {TEXT(policy)},
    {TEXT(options)},
    {TEXT(platform_file)},
    {TEXT(platform_digest)},
    {"choice", DUET__OBJECT, DUET__OPTIONAL, AT(run.choice), .fields = duet__choice_fields},
    {"barred", DUET__WORDS, DUET__OPTIONAL, AT(run.barred),
     .room = sizeof((struct duet__run *)0)->barred},
    {"releases", DUET__BOOLEAN, DUET__OPTIONAL, AT(releases)},
    {"seed", DUET__CUSTOM, DUET__OPTIONAL, .read = read_seed, .write = write_seed},
    {"critical_path_s", DUET__NUMBER, DUET__OPTIONAL, AT(run.bounds.critical_path_s), SECONDS},
    {"area_s", DUET__NUMBER, DUET__OPTIONAL, AT(run.bounds.area_s), SECONDS},
    {"mixed_s", DUET__NUMBER, DUET__OPTIONAL, AT(run.bounds.mixed_s), SECONDS},
    {"links_s", DUET__NUMBER, DUET__OPTIONAL, AT(run.bounds.links_s), SECONDS},
    {"stats", DUET__OBJECT, DUET__OPTIONAL, AT(run.stats), .fields = stats_fields},
    DUET__OTHER_KEYS,
};

/* ------------------------------------------------------------------------------------------- */
/* The machine                                                                                  */

/* Tracks: first the workers' kernels, then copies into each node, then copies out of each node. */
enum {
    LANES = 8,          /* threads of one track: records that overlap go to the next lane */
    ALL_ARROWS = 20000, /* events; with more, arrows are to what a worker had to wait for alone */
};

struct lane {
    int64_t end_ns;
    bool named;
};

struct writer {
    struct duet__json_writer json;
    const struct duet__recording *recording;
    struct lane *lanes;      /* LANES a track */
    uint32_t *arrows, *tids; /* by event: what released it, and 1; its thread */
};

static int64_t nanoseconds(double seconds)
{
    return isfinite(seconds) ? (int64_t)llround(seconds * 1e9) : 0;
}

/* Microseconds with three digits, as the format wants them. */
static void put_us(struct writer *writer, const char *key, int64_t ns)
{
    int64_t size = ns < 0 ? -ns : ns;
    char digits[32];

    snprintf(digits, sizeof(digits), "%s%" PRId64 ".%03d", ns < 0 ? "-" : "", size / 1000,
             (int)(size % 1000));
    duet__json_put_digits(&writer->json, key, digits);
}

/* Writes the parts of the machine, also where nothing happens: for duet itself (read_trace.c). */
static void put_machine(struct duet__json_writer *json, const struct duet_machine *machine)
{
    duet__json_print(json, "platform: %s, architectures: [", machine->name);
    for (unsigned arch = 0; arch < machine->arch_count; arch++)
        duet__json_put_string(json, NULL, machine->archs[arch].name);
    duet__json_print(json, "], backends: [");
    for (unsigned arch = 0; arch < machine->arch_count; arch++)
        duet__json_put_string(json, NULL, machine->archs[arch].backend);
    duet__json_print(json, "], nodes: [");
    for (unsigned node = 0; node < machine->node_count; node++)
        duet__json_put_string(json, NULL, machine->nodes[node].name);
    duet__json_print(json, "], memory_bytes: [");
    for (unsigned node = 0; node < machine->node_count; node++)
        duet__json_put_integer(json, NULL, machine->nodes[node].capacity_bytes);
    duet__json_print(json, "], workers: [");
    for (unsigned i = 0; i < machine->worker_count; i++) {
        const struct duet_worker *worker = &machine->workers[i];

        duet__json_print(json, "\n{name: %s, architecture: %s, node: %s", worker->name,
                         machine->archs[worker->arch].name, machine->nodes[worker->node].name);
        if (worker->socket)
            duet__json_print(json, "socket: %u", worker->socket);
        duet__json_end(json, '}');
    }
    duet__json_end(json, ']');
}

static void put_process(struct duet__json_writer *json, unsigned node, const char *name,
                        const char *arch)
{
    duet__json_print(json, "\n{ph: %s, pid: %u, name: %s, args: {name: %s}}", "M", node + 1,
                     "process_name", name);
    if (arch)
        duet__json_print(json, "\n{ph: %s, pid: %u, name: %s, args: {labels: %s}}", "M", node + 1,
                         "process_labels", arch);
    duet__json_print(json, "\n{ph: %s, pid: %u, name: %s, args: {sort_index: %u}}", "M", node + 1,
                     "process_sort_index", node);
}

static void put_processes(struct duet__json_writer *json, const struct duet_machine *machine)
{
    for (unsigned node = 0; node < machine->node_count; node++) {
        const char *arch = NULL, *own = machine->nodes[node].name;

        if (duet__is_host(machine, node)) { /* several nodes: "n3 CPUs" */
            g_autofree char *name = node || duet__host_count(machine) > 1
                                        ? g_strdup_printf("%.*s CPUs", (int)strcspn(own, "."), own)
                                        : g_strdup("CPUs");

            put_process(json, node, name, NULL);
            continue;
        }
        for (unsigned i = 0; i < machine->worker_count; i++)
            if (machine->workers[i].node == node)
                arch = machine->archs[machine->workers[i].arch].name;
        put_process(json, node, machine->nodes[node].name, arch);
    }
}

/* `worker`: the one whose kernels it shows; NULL: it shows copies. */
static void put_thread(struct duet__json_writer *json, unsigned node, unsigned tid,
                       const char *name, unsigned lane, const char *worker)
{
    char numbered[DUET_NAME_MAX + 16];

    snprintf(numbered, sizeof(numbered), lane ? "%s (%u)" : "%s", name, lane + 1);
    duet__json_print(json, "\n{ph: %s, pid: %u, tid: %u, name: %s, args: {name: %s", "M", node + 1,
                     tid, "thread_name", numbered);
    if (worker)
        duet__json_put_string(json, "worker", worker);
    duet__json_print(json, "}}\n{ph: %s, pid: %u, tid: %u, name: %s, args: {sort_index: %u}}", "M",
                     node + 1, tid, "thread_sort_index", tid);
}

/* Begins what happened on a track of `node`, and its args. It stands in the track's first thread
   that is free by then. */
static void begin_event(struct writer *writer, const struct duet_event *event, size_t track,
                        unsigned node, const char *thread, const char *category, const char *name)
{
    const struct duet_machine *machine = writer->recording->machine;
    int64_t start_ns = nanoseconds(event->start_s), end_ns = nanoseconds(event->end_s);
    struct lane *lanes = writer->lanes + track * LANES;
    unsigned lane = 0, tid;

    while (lane < LANES - 1 && lanes[lane].end_ns > start_ns)
        lane++;
    tid = (unsigned)(track * LANES) + lane + 1;
    if (!lanes[lane].named)
        put_thread(&writer->json, node, tid, thread, lane,
                   track < machine->worker_count ? machine->workers[track].name : NULL);
    lanes[lane] = (struct lane){.end_ns = end_ns, .named = true};
    writer->tids[event - writer->recording->events] = tid;
    duet__json_print(&writer->json, "\n{ph: %s, pid: %u, tid: %u", "X", node + 1, tid);
    put_us(writer, "ts", start_ns);
    put_us(writer, "dur", end_ns - start_ns);
    duet__json_print(&writer->json, "cat: %s, name: %s, args: {", category, name);
}

static const char *say_mode(const struct duet_trace_access *access,
                            char text[sizeof DUET__TRACE_LETTERS])
{
    const unsigned bits = access->mode | (access->reads ? DUET_R : 0) |
                          (access->writes ? DUET_W : 0) | (access->temporary ? 32 : 0);
    unsigned length = 0;

    for (unsigned i = 0; i < strlen(DUET__TRACE_LETTERS); i++)
        if (bits >> i & 1)
            text[length++] = DUET__TRACE_LETTERS[i];
    text[length] = 0;
    return text;
}

/* The data that a task has used: handle, bytes, "rw", of parts their whole and cut; then the tasks
   that it came after explicitly. */
static void put_accesses(struct writer *writer, uint64_t task)
{
    const struct duet__recording *recording = writer->recording;
    struct duet__json_writer *json = &writer->json;
    size_t first = duet__recording_accesses(recording, task);
    const char *open = NULL;

    for (size_t i = first; i < recording->access_count && recording->accesses[i].task == task;
         i++) {
        const struct duet_trace_access *access = &recording->accesses[i];
        const char *key = access->after ? "after" : "accesses";
        char mode[sizeof DUET__TRACE_LETTERS];

        if (i > first && access->index == access[-1].index)
            continue; /* the task was run again */
        if (open && strcmp(open, key) != 0)
            duet__json_end(json, ']');
        if (!open || strcmp(open, key) != 0)
            duet__json_begin(json, key, '[');
        open = key;
        if (access->after)
            duet__json_put_integer(json, NULL, access->after);
        else
            duet__json_print(json, "[%" PRIu64 ", %" PRIu64 ", %s", access->handle, access->bytes,
                             say_mode(access, mode));
        if (access->whole)
            duet__json_print(json, "%" PRIu64 ", %" PRIu64, access->whole, access->cut);
        if (!access->after)
            duet__json_end(json, ']');
    }
    if (open)
        duet__json_end(json, ']');
}

/* The architectures that a task may run on, where these are not all. */
static void put_where(struct writer *writer, uint64_t archs)
{
    const struct duet_machine *machine = writer->recording->machine;
    g_autoptr(GString) names = g_string_new(NULL);
    bool all = true;

    for (unsigned arch = 0; arch < machine->arch_count; arch++)
        if (archs >> arch & 1)
            g_string_append_printf(names, "%s%s", names->len ? "," : "", machine->archs[arch].name);
        else
            all = false;
    if (archs && !all)
        duet__json_put_string(&writer->json, "where", names->str);
}

/* Writes what released an event, and that event's number in the file, or the handle's. */
static void put_release(struct writer *writer, const struct duet_event *event)
{
    if (event->released_by)
        duet__json_print(&writer->json, "release: %s, by: %u", duet__release_names[event->release],
                         event->released_by);
}

static void put_used(struct writer *writer, const struct duet_event *event)
{
    if (event->used_bytes)
        duet__json_print(&writer->json, "used: %" PRIu64, event->used_bytes);
}

static void put_task(struct writer *writer, const struct duet_event *event)
{
    const struct duet_machine *machine = writer->recording->machine;
    const struct duet_worker *worker;

    if (event->worker < 0 || (unsigned)event->worker >= machine->worker_count)
        return;
    worker = &machine->workers[event->worker];
    begin_event(writer, event, (size_t)event->worker, worker->node,
                duet__is_host(machine, worker->node) ? worker->name : "kernels", "kernel",
                duet__recording_kernel(writer->recording, event));
    duet__json_print(&writer->json, "task: %" PRIu64 ", bytes: %" PRIu64, event->id, event->bytes);
    if (event->work > 0 && isfinite(event->work))
        duet__json_put_number(&writer->json, "work", event->work);
    if (!event->paused)
        put_accesses(writer, event->id);
    if (event->priority)
        duet__json_put_number(&writer->json, "priority", event->priority);
    put_where(writer, event->where);
    if (event->own)
        duet__json_put_boolean(&writer->json, "own", true);
    if (event->child)
        duet__json_put_boolean(&writer->json, "child", true);
    if (duet__recording_name(writer->recording, event->name))
        duet__json_put_string(&writer->json, "name",
                              duet__recording_name(writer->recording, event->name));
    if (event->iteration)
        duet__json_print(&writer->json, "iteration: %u", event->iteration);
    put_us(writer, "submitted_us", nanoseconds(event->submit_s));
    put_us(writer, "ready_us", nanoseconds(event->ready_s));
    put_release(writer, event);
    put_used(writer, event);
    if (event->paused)
        duet__json_print(&writer->json, "paused: true");
    duet__json_print(&writer->json, event->failed ? "failed: true}}" : "}}");
}

static void put_copy(struct writer *writer, const struct duet_event *event)
{
    const struct duet_machine *machine = writer->recording->machine;
    const char *source, *destination;
    char name[2 * DUET_NAME_MAX + 8];
    unsigned node;
    bool in;

    if (event->source >= machine->node_count || event->destination >= machine->node_count)
        return;
    node = duet__shown_in(machine, event);
    in = node == event->destination;
    source = machine->nodes[event->source].name;
    destination = machine->nodes[event->destination].name;
    snprintf(name, sizeof(name), "%s to %s", source, destination);
    begin_event(writer, event, machine->worker_count + (in ? 0 : machine->node_count) + node, node,
                duet__is_host(machine, node) ? "messages in"
                : in                         ? "copies in"
                                             : "copies out",
                "copy", name);
    duet__json_print(&writer->json,
                     "handle: %" PRIu64 ", bytes: %" PRIu64 ", source: %s, destination: %s",
                     event->id, event->bytes, source, destination);
    put_us(writer, "ready_us", nanoseconds(event->ready_s));
    put_release(writer, event);
    put_used(writer, event);
    if (event->write_back)
        duet__json_print(&writer->json, "write_back: true");
    duet__json_print(&writer->json, event->failed ? "failed: true}}" : "}}");
}

/* Writes one end of an arrow: in a slice, to which it then belongs. */
static void put_arrow_end(struct writer *writer, const char *phase, size_t index, int64_t ns,
                          size_t id, const char *name)
{
    const struct duet_event *event = &writer->recording->events[index];
    duet__json_print(&writer->json, "\n{ph: %s, pid: %u, tid: %u, id: %zu, cat: %s, name: %s",
                     phase, duet__shown_in(writer->recording->machine, event) + 1,
                     writer->tids[index], id, "flow", name);
    put_us(writer, "ts", ns);
    duet__json_print(&writer->json, *phase == 'f' ? "bp: %s}" : "}", "e");
}

/* Writes an event's arrow, from its origin's last nanosecond: at its end others may begin. */
static void put_arrow(struct writer *writer, size_t index)
{
    const struct duet_event *to = &writer->recording->events[index], *from;
    const size_t first = writer->arrows[index];

    if (!first || !writer->tids[first - 1] || !writer->tids[index])
        return;
    from = &writer->recording->events[first - 1];
    const char *name = from->kind == to->kind && from->kind == DUET_EVENT_TASK ? "task" : "data";
    put_arrow_end(writer, "s", first - 1,
                  MAX(nanoseconds(from->start_s), nanoseconds(from->end_s) - 1), index, name);
    put_arrow_end(writer, "f", index, nanoseconds(to->start_s), index, name);
}

/* Counters belong to the process of their memory; links and tasks to one of their own. */
static void put_counter(struct writer *writer, const struct duet__counter *counter)
{
    static const char *const names[] = {"ready", "copies in", "copies out", "memory used", NULL};
    const struct duet_machine *machine = writer->recording->machine;
    const bool ready = counter->what == DUET_COUNTED_READY,
               link = counter->what == DUET_COUNTED_LINK;
    const char *name = link ? machine->links[counter->index].name : names[counter->what];

    for (guint i = 0; counter->points && i < counter->points->len; i++) {
        const struct duet__moment *at = &g_array_index(counter->points, struct duet__moment, i);

        duet__json_print(&writer->json, "\n{ph: %s, pid: %u, name: %s", "C",
                         (ready || link ? machine->node_count + 1 : counter->index) + 1, name);
        put_us(writer, "ts", nanoseconds(at->date_s));
        duet__json_begin(&writer->json, "args", '{');
        duet__json_put_number(&writer->json, ready ? "tasks" : "bytes",
                              ready ? rint(at->value * 100) / 100 : rint(at->value));
        duet__json_print(&writer->json, "}}");
    }
}

/* Writes the counters, with few points beside the file's size. Bytes in flight are those of links,
   where these are known, else of devices. */
static void put_counters(struct writer *writer)
{
    enum { LEAST = 256, SHARE = 4 };
    const struct duet__recording *recording = writer->recording;
    const struct duet_machine *machine = recording->machine;
    const size_t most =
        recording->event_count / SHARE / (1 + machine->node_count + machine->link_count);
    struct duet__counters counters;

    put_process(&writer->json, machine->node_count + 1, "counters", NULL);
    duet__counters_make(recording, (unsigned)CLAMP(most, LEAST, UINT_MAX), &counters);
    for (unsigned i = 0; i < counters.count; i++) {
        const struct duet__counter *counter = &counters.all[i];

        if (counter->what == DUET_COUNTED_READY || counter->what >= DUET_COUNTED_USED ||
            (!machine->link_count && !duet__is_host(machine, counter->index)))
            put_counter(writer, counter);
    }
    duet__counters_fini(&counters);
}

/* The application's marks, on a track of their own: phases last, moments do not. */
static void put_marks(struct writer *writer)
{
    const struct duet__recording *recording = writer->recording;
    const unsigned node = recording->machine->node_count;

    if (recording->mark_count)
        put_process(&writer->json, node, "application", NULL);
    for (size_t i = 0; i < recording->mark_count; i++) {
        const struct duet_trace_mark *mark = &recording->marks[i];
        int64_t start_ns = nanoseconds(mark->start_s);

        duet__json_print(&writer->json, "\n{ph: %s, pid: %u, tid: 0, cat: %s",
                         mark->phase ? "X" : "i", node + 1,
                         mark->phase  ? "phase"
                         : mark->lost ? "lost"
                                      : "mark");
        duet__json_put_string(&writer->json, "name", duet__recording_name(recording, mark->name));
        put_us(writer, "ts", start_ns);
        if (mark->phase)
            put_us(writer, "dur", nanoseconds(mark->end_s) - start_ns);
        duet__json_print(&writer->json, mark->phase ? "}" : "s: %s}", "g");
    }
}

static void write_json(FILE *stream, const struct duet__trace *trace)
{
    const struct duet__recording *recording = &trace->run.recording;
    struct duet__trace known = *trace;
    const struct duet_machine *machine = recording->machine;
    size_t tracks = (size_t)machine->worker_count + 2 * (size_t)machine->node_count;
    struct writer writer = {.json = {.stream = stream, .dense = true},
                            .recording = recording,
                            .lanes = g_new0(struct lane, tracks * LANES),
                            .arrows =
                                duet__arrows_make(recording, recording->event_count < ALL_ARROWS),
                            .tids = g_new0(uint32_t, recording->event_count)};

    duet__json_print(&writer.json, "{displayTimeUnit: %s, otherData: {producer: %s", "ms", "duet");
    put_machine(&writer.json, machine);
    if (!(known.run.stats.flops >= 0) || isinf(known.run.stats.flops))
        known.run.stats.flops = 0; /* an application may count anything */
    known.releases = true;
    duet__fields_write(&writer.json, duet__trace_fields, &known, &known);
    duet__json_end(&writer.json, '}');
    duet__json_begin(&writer.json, "traceEvents", '[');
    put_processes(&writer.json, machine);
    for (size_t i = 0; i < recording->event_count; i++) {
        if (recording->events[i].kind == DUET_EVENT_TASK)
            put_task(&writer, &recording->events[i]);
        else
            put_copy(&writer, &recording->events[i]);
        put_arrow(&writer, i);
    }
    put_counters(&writer);
    put_marks(&writer);
    duet__json_print(&writer.json, "\n]}");
    putc('\n', stream);
    g_free(writer.lanes);
    g_free(writer.arrows);
    g_free(writer.tids);
}

void duet__trace_write(FILE *stream, const struct duet__trace *trace)
{
    (trace->paje ? duet__trace_write_paje : write_json)(stream, trace);
}

bool duet__trace_is_paje(const char *path)
{
    return g_str_has_suffix(path, ".paje") || g_str_has_suffix(path, ".paje.gz");
}
