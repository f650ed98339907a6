/* SPDX-License-Identifier: Apache-2.0 */
/* Export to the JSON trace event format of Perfetto and Chrome. */
#include "report/perfetto.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "platforms/json.h"

/* Tracks: first the workers' kernels, then copies into each node, then copies out of each node. */
enum { LANES = 8 }; /* threads of one track: records that overlap go to the next lane */

struct lane {
    int64_t end_ns;
    bool named;
};

struct writer {
    struct duet__json_writer json;
    const struct duet_recording *recording;
    struct lane *lanes; /* LANES a track */
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

/* What the machine is made of, also where nothing happens: for duet itself (read_trace.c). */
static void put_machine(struct duet__json_writer *json, const struct duet_machine *machine)
{
    duet__json_put_string(json, "platform", machine->name);
    duet__json_begin(json, "nodes", '[');
    for (unsigned node = 0; node < machine->node_count; node++)
        duet__json_put_string(json, NULL, machine->nodes[node].name);
    duet__json_end(json, ']');
    duet__json_begin(json, "workers", '[');
    for (unsigned i = 0; i < machine->worker_count; i++) {
        const struct duet_worker *worker = &machine->workers[i];

        duet__json_break(json, 0);
        duet__json_begin(json, NULL, '{');
        duet__json_put_string(json, "name", worker->name);
        duet__json_put_string(json, "architecture", machine->archs[worker->arch].name);
        duet__json_put_string(json, "node", machine->nodes[worker->node].name);
        duet__json_end(json, '}');
    }
    duet__json_end(json, ']');
}

/* Begins an element of traceEvents; `tid` 0: it is about the whole process. */
static void begin(struct writer *writer, const char *phase, unsigned node, unsigned tid)
{
    duet__json_break(&writer->json, 0);
    duet__json_begin(&writer->json, NULL, '{');
    duet__json_put_string(&writer->json, "ph", phase);
    duet__json_put_integer(&writer->json, "pid", node + 1);
    if (tid)
        duet__json_put_integer(&writer->json, "tid", tid);
}

static void end(struct writer *writer)
{
    duet__json_end(&writer->json, '}'); /* args */
    duet__json_end(&writer->json, '}');
}

/* Begins an element that says something of a process or a thread, and its args. */
static void begin_fact(struct writer *writer, unsigned node, unsigned tid, const char *name)
{
    begin(writer, "M", node, tid);
    duet__json_put_string(&writer->json, "name", name);
    duet__json_begin(&writer->json, "args", '{');
}

static void put_process(struct writer *writer, unsigned node, const char *name, const char *arch)
{
    begin_fact(writer, node, 0, "process_name");
    duet__json_put_string(&writer->json, "name", name);
    end(writer);
    if (arch) {
        begin_fact(writer, node, 0, "process_labels");
        duet__json_put_string(&writer->json, "labels", arch);
        end(writer);
    }
    begin_fact(writer, node, 0, "process_sort_index");
    duet__json_put_integer(&writer->json, "sort_index", node);
    end(writer);
}

static void put_processes(struct writer *writer)
{
    const struct duet_machine *machine = writer->recording->machine;

    put_process(writer, DUET_HOST, "CPUs", NULL);
    for (unsigned node = 1; node < machine->node_count; node++) {
        const char *arch = NULL;

        for (unsigned i = 0; i < machine->worker_count; i++)
            if (machine->workers[i].node == node)
                arch = machine->archs[machine->workers[i].arch].name;
        put_process(writer, node, machine->nodes[node].name, arch);
    }
}

/* `worker`: the one whose kernels it shows; NULL: it shows copies. */
static void put_thread(struct writer *writer, unsigned node, unsigned tid, const char *name,
                       unsigned lane, const char *worker)
{
    char numbered[DUET_NAME_MAX + 16];

    if (lane)
        snprintf(numbered, sizeof(numbered), "%s (%u)", name, lane + 1);
    else
        snprintf(numbered, sizeof(numbered), "%s", name);
    begin_fact(writer, node, tid, "thread_name");
    duet__json_put_string(&writer->json, "name", numbered);
    if (worker)
        duet__json_put_string(&writer->json, "worker", worker);
    end(writer);
    begin_fact(writer, node, tid, "thread_sort_index");
    duet__json_put_integer(&writer->json, "sort_index", tid);
    end(writer);
}

/* The thread of `track` that is free at `start_ns`, taken until `end_ns`. */
static unsigned take_thread(struct writer *writer, size_t track, unsigned node, const char *name,
                            int64_t start_ns, int64_t end_ns)
{
    const struct duet_machine *machine = writer->recording->machine;
    struct lane *lanes = writer->lanes + track * LANES;
    unsigned lane = 0, tid;

    while (lane < LANES - 1 && lanes[lane].end_ns > start_ns)
        lane++;
    tid = (unsigned)(track * LANES) + lane + 1;
    if (!lanes[lane].named)
        put_thread(writer, node, tid, name, lane,
                   track < machine->worker_count ? machine->workers[track].name : NULL);
    lanes[lane] = (struct lane){.end_ns = end_ns, .named = true};
    return tid;
}

/* Begins what happened on a track, and its args. */
static void begin_event(struct writer *writer, const struct duet_event *event, size_t track,
                        unsigned node, const char *thread, const char *category, const char *name)
{
    int64_t start_ns = nanoseconds(event->start_s), end_ns = nanoseconds(event->end_s);

    begin(writer, "X", node, take_thread(writer, track, node, thread, start_ns, end_ns));
    put_us(writer, "ts", start_ns);
    put_us(writer, "dur", end_ns - start_ns);
    duet__json_put_string(&writer->json, "cat", category);
    duet__json_put_string(&writer->json, "name", name);
    duet__json_begin(&writer->json, "args", '{');
}

static void put_task(struct writer *writer, const struct duet_event *event)
{
    const struct duet_machine *machine = writer->recording->machine;
    const struct duet_worker *worker;

    if (event->worker < 0 || (unsigned)event->worker >= machine->worker_count)
        return;
    worker = &machine->workers[event->worker];
    begin_event(writer, event, (size_t)event->worker, worker->node,
                worker->node == DUET_HOST ? worker->name : "kernels", "kernel",
                duet_recording_kernel(writer->recording, event));
    duet__json_put_integer(&writer->json, "task", event->id);
    duet__json_put_integer(&writer->json, "bytes", event->bytes);
    put_us(writer, "submitted_us", nanoseconds(event->submit_s));
    put_us(writer, "ready_us", nanoseconds(event->ready_s));
    if (event->failed)
        duet__json_put_boolean(&writer->json, "failed", true);
    end(writer);
}

static void put_copy(struct writer *writer, const struct duet_event *event)
{
    const struct duet_machine *machine = writer->recording->machine;
    const char *source, *destination;
    char name[2 * DUET_NAME_MAX + 8];
    bool in = event->destination != DUET_HOST;
    unsigned node = in ? event->destination : event->source;

    if (event->source >= machine->node_count || event->destination >= machine->node_count)
        return;
    source = machine->nodes[event->source].name;
    destination = machine->nodes[event->destination].name;
    snprintf(name, sizeof(name), "%s to %s", source, destination);
    begin_event(writer, event, machine->worker_count + (in ? 0 : machine->node_count) + node, node,
                in ? "copies in" : "copies out", "copy", name);
    duet__json_put_integer(&writer->json, "handle", event->id);
    duet__json_put_integer(&writer->json, "bytes", event->bytes);
    duet__json_put_string(&writer->json, "source", source);
    duet__json_put_string(&writer->json, "destination", destination);
    put_us(writer, "ready_us", nanoseconds(event->ready_s));
    if (event->write_back)
        duet__json_put_boolean(&writer->json, "write_back", true);
    if (event->failed)
        duet__json_put_boolean(&writer->json, "failed", true);
    end(writer);
}

int duet_perfetto_write(FILE *stream, const struct duet_recording *recording,
                        struct duet_message *message)
{
    const struct duet_machine *machine = recording->machine;
    size_t tracks = (size_t)machine->worker_count + 2 * (size_t)machine->node_count;
    struct writer writer = {.json = {.stream = stream, .dense = true}, .recording = recording};
    struct duet__json_writer *json = &writer.json;

    writer.lanes = calloc(tracks * LANES, sizeof(*writer.lanes));
    if (!writer.lanes)
        return duet_fail(message, DUET_ENOMEM, "out of memory writing a trace");
    duet__json_begin(json, NULL, '{');
    duet__json_put_string(json, "displayTimeUnit", "ms");
    duet__json_begin(json, "otherData", '{');
    duet__json_put_string(json, "producer", "duet");
    put_machine(json, machine);
    duet__json_end(json, '}');
    duet__json_begin(json, "traceEvents", '[');
    put_processes(&writer);
    for (size_t i = 0; i < recording->event_count; i++) {
        if (recording->events[i].kind == DUET_EVENT_TASK)
            put_task(&writer, &recording->events[i]);
        else
            put_copy(&writer, &recording->events[i]);
    }
    duet__json_break(json, 0);
    duet__json_end(json, ']');
    duet__json_end(json, '}');
    putc('\n', stream);
    free(writer.lanes);
    return 0;
}
