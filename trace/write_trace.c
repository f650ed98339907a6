/* SPDX-License-Identifier: Apache-2.0 */
/* Export to the JSON trace event format of Perfetto and Chrome. */
#include "trace/trace.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include <glib.h>

#include "base/json.h"
#include "trace/counters.h"

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
static void put_thread(struct duet__json_writer *json, unsigned process, unsigned tid,
                       const char *name, unsigned lane, const char *worker)
{
    char numbered[DUET_NAME_MAX + 16];
    snprintf(numbered, sizeof(numbered), lane ? "%s (%u)" : "%s", name, lane + 1);
    duet__json_print(json, "\n{ph: %s, pid: %u, tid: %u, name: %s, args: {name: %s", "M", process,
                     tid, "thread_name", numbered);
    if (worker)
        duet__json_put_string(json, "worker", worker);
    duet__json_print(json, "}}\n{ph: %s, pid: %u, tid: %u, name: %s, args: {sort_index: %u}}", "M",
                     process, tid, "thread_sort_index", tid);
}

/* Writes what happened on a track of a memory, in the track's first thread that is free by then. */
static void put_event(struct writer *writer, const struct duet_event *event, size_t track,
                      const char *thread, struct duet__trace_record record,
                      const struct duet__field *fields)
{
    const struct duet_machine *machine = writer->recording->machine;
    const int64_t start_ns = nanoseconds(event->start_s), end_ns = nanoseconds(event->end_s);
    struct lane *lanes = writer->lanes + track * LANES;
    unsigned lane = 0;
    while (lane < LANES - 1 && lanes[lane].end_ns > start_ns)
        lane++;
    record.phase = "X";
    record.process++;
    record.thread = (unsigned)(track * LANES) + lane + 1;
    if (!lanes[lane].named)
        put_thread(&writer->json, record.process, record.thread, thread, lane,
                   track < machine->worker_count ? machine->workers[track].name : NULL);
    lanes[lane] = (struct lane){.end_ns = end_ns, .named = true};
    writer->tids[event - writer->recording->events] = record.thread;
    record.recording = writer->recording;
    record.event = *event;
    record.event.start_s = (double)start_ns / 1e3;
    record.event.end_s = (double)(end_ns - start_ns) / 1e3;
    record.event.submit_s = (double)nanoseconds(event->submit_s) / 1e3;
    record.event.ready_s = (double)nanoseconds(event->ready_s) / 1e3;
    record.event.work = event->work > 0 && isfinite(event->work) ? event->work : 0;
    record.release = event->released_by ? event->release : 0;
    duet__json_break(&writer->json, 0);
    duet__json_begin(&writer->json, NULL, '{');
    duet__fields_write(&writer->json, fields, &record, machine);
    duet__json_end(&writer->json, '}');
}

static void put_task(struct writer *writer, const struct duet_event *event)
{
    const struct duet_machine *machine = writer->recording->machine;
    const struct duet_worker *worker;
    if (event->worker < 0 || (unsigned)event->worker >= machine->worker_count)
        return;
    worker = &machine->workers[event->worker];
    put_event(writer, event, (size_t)event->worker,
              duet__is_host(machine, worker->node) ? worker->name : "kernels",
              (struct duet__trace_record){
                  .process = worker->node,
                  .category = "kernel",
                  .name = duet__recording_kernel(writer->recording, event),
                  .own = duet__recording_name(writer->recording, event->name),
                  .priority = event->priority,
              },
              duet__trace_kernel_fields);
}

static void put_copy(struct writer *writer, const struct duet_event *event)
{
    const struct duet_machine *machine = writer->recording->machine;
    char name[2 * DUET_NAME_MAX + 8];
    unsigned node;
    bool in;
    if (event->source >= machine->node_count || event->destination >= machine->node_count)
        return;
    node = duet__shown_in(machine, event);
    in = node == event->destination;
    snprintf(name, sizeof(name), "%s to %s", machine->nodes[event->source].name,
             machine->nodes[event->destination].name);
    put_event(writer, event, machine->worker_count + (in ? 0 : machine->node_count) + node,
              duet__is_host(machine, node) ? "messages in"
              : in                         ? "copies in"
                                           : "copies out",
              (struct duet__trace_record){
                  .process = node,
                  .category = "copy",
                  .name = name,
                  .source = event->source,
                  .destination = event->destination,
              },
              duet__trace_copy_fields);
}

/* Writes one end of an arrow: in a slice, to which it then belongs. */
static void put_arrow_end(struct writer *writer, const char *phase, size_t index, int64_t ns,
                          size_t id, const char *name)
{
    const struct duet_event *event = &writer->recording->events[index];
    duet__json_print(&writer->json, "\n{ph: %s, pid: %u, tid: %u, id: %zu, cat: %s, name: %s",
                     phase, duet__shown_in(writer->recording->machine, event) + 1,
                     writer->tids[index], id, "flow", name);
    duet__json_put_thousandths(&writer->json, "ts", ns);
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
        duet__json_put_thousandths(&writer->json, "ts", nanoseconds(at->date_s));
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
        duet__json_put_thousandths(&writer->json, "ts", start_ns);
        if (mark->phase)
            duet__json_put_thousandths(&writer->json, "dur", nanoseconds(mark->end_s) - start_ns);
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
    duet__fields_write(&writer.json, duet__trace_machine_fields, machine, machine);
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
