/* SPDX-License-Identifier: Apache-2.0 */
/* Export to the JSON trace event format of Perfetto and Chrome. libc only. */
#include "report/perfetto.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "report/output.h"

/* Tracks: first the workers' kernels, then copies into each node, then copies out of each node. */
enum { LANES = 8 }; /* threads of one track: records that overlap go to the next lane */

struct lane {
    int64_t end_ns;
    bool named;
};

struct writer {
    FILE *stream;
    const struct duet_recording *recording;
    struct lane *lanes; /* LANES a track */
    bool comma;         /* something stands before the next element */
};

static void element(struct writer *writer)
{
    fputs(writer->comma ? ",\n" : "\n", writer->stream);
    writer->comma = true;
}

static int64_t nanoseconds(double seconds)
{
    return isfinite(seconds) ? (int64_t)llround(seconds * 1e9) : 0;
}

/* Microseconds with three digits, as the format wants them, without the locale's point. */
static void put_us(FILE *stream, const char *key, int64_t ns)
{
    int64_t size = ns < 0 ? -ns : ns;

    fprintf(stream, "\"%s\":%s%" PRId64 ".%03d", key, ns < 0 ? "-" : "", size / 1000,
            (int)(size % 1000));
}

/* What the machine is made of, also where nothing happens: for duet itself (trace_file.c). */
static void put_machine(FILE *stream, const struct duet_machine *machine)
{
    fputs(",\"nodes\":[", stream);
    for (unsigned node = 0; node < machine->node_count; node++) {
        fputs(node ? "," : "", stream);
        duet_write_json_string(stream, machine->nodes[node].name);
    }
    fputs("],\"workers\":[", stream);
    for (unsigned i = 0; i < machine->worker_count; i++) {
        const struct duet_worker *worker = &machine->workers[i];

        fputs(i ? ",\n{\"name\":" : "\n{\"name\":", stream);
        duet_write_json_string(stream, worker->name);
        fputs(",\"architecture\":", stream);
        duet_write_json_string(stream, machine->archs[worker->arch].name);
        fputs(",\"node\":", stream);
        duet_write_json_string(stream, machine->nodes[worker->node].name);
        putc('}', stream);
    }
    putc(']', stream);
}

static void put_process(struct writer *writer, unsigned node, const char *name, const char *arch)
{
    FILE *stream = writer->stream;

    element(writer);
    fprintf(stream,
            "{\"ph\":\"M\",\"pid\":%u,\"name\":\"process_name\",\"args\":{\"name\":", node + 1);
    duet_write_json_string(stream, name);
    fputs("}}", stream);
    if (arch) {
        element(writer);
        fprintf(stream,
                "{\"ph\":\"M\",\"pid\":%u,\"name\":\"process_labels\",\"args\":{\"labels\":",
                node + 1);
        duet_write_json_string(stream, arch);
        fputs("}}", stream);
    }
    element(writer);
    fprintf(
        stream,
        "{\"ph\":\"M\",\"pid\":%u,\"name\":\"process_sort_index\",\"args\":{\"sort_index\":%u}}",
        node + 1, node);
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
    FILE *stream = writer->stream;
    char numbered[DUET_NAME_MAX + 16];

    if (lane)
        snprintf(numbered, sizeof(numbered), "%s (%u)", name, lane + 1);
    else
        snprintf(numbered, sizeof(numbered), "%s", name);
    element(writer);
    fprintf(stream,
            "{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"thread_name\",\"args\":{\"name\":",
            node + 1, tid);
    duet_write_json_string(stream, numbered);
    if (worker) {
        fputs(",\"worker\":", stream);
        duet_write_json_string(stream, worker);
    }
    fputs("}}", stream);
    element(writer);
    fprintf(stream,
            "{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"thread_sort_index\","
            "\"args\":{\"sort_index\":%u}}",
            node + 1, tid, tid);
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

static void put_head(struct writer *writer, unsigned node, unsigned tid, int64_t start_ns,
                     int64_t end_ns)
{
    element(writer);
    fprintf(writer->stream, "{\"ph\":\"X\",\"pid\":%u,\"tid\":%u,", node + 1, tid);
    put_us(writer->stream, "ts", start_ns);
    putc(',', writer->stream);
    put_us(writer->stream, "dur", end_ns - start_ns);
}

static void put_task(struct writer *writer, const struct duet_event *event)
{
    const struct duet_machine *machine = writer->recording->machine;
    int64_t start_ns = nanoseconds(event->start_s), end_ns = nanoseconds(event->end_s);
    const struct duet_worker *worker;
    unsigned tid;

    if (event->worker < 0 || (unsigned)event->worker >= machine->worker_count)
        return;
    worker = &machine->workers[event->worker];
    tid = take_thread(writer, (size_t)event->worker, worker->node,
                      worker->node == DUET_HOST ? worker->name : "kernels", start_ns, end_ns);
    put_head(writer, worker->node, tid, start_ns, end_ns);
    fputs(",\"cat\":\"kernel\",\"name\":", writer->stream);
    duet_write_json_string(writer->stream, duet_recording_kernel(writer->recording, event));
    fprintf(writer->stream, ",\"args\":{\"task\":%" PRIu64 ",\"bytes\":%" PRIu64 ",", event->id,
            event->bytes);
    put_us(writer->stream, "submitted_us", nanoseconds(event->submit_s));
    putc(',', writer->stream);
    put_us(writer->stream, "ready_us", nanoseconds(event->ready_s));
    fputs(event->failed ? ",\"failed\":true}}" : "}}", writer->stream);
}

static void put_copy(struct writer *writer, const struct duet_event *event)
{
    const struct duet_machine *machine = writer->recording->machine;
    int64_t start_ns = nanoseconds(event->start_s), end_ns = nanoseconds(event->end_s);
    FILE *stream = writer->stream;
    char name[2 * DUET_NAME_MAX + 8];
    bool in = event->destination != DUET_HOST;
    unsigned node = in ? event->destination : event->source;
    size_t track = machine->worker_count + (in ? 0 : machine->node_count) + node;
    unsigned tid;

    if (event->source >= machine->node_count || event->destination >= machine->node_count)
        return;
    tid = take_thread(writer, track, node, in ? "copies in" : "copies out", start_ns, end_ns);
    put_head(writer, node, tid, start_ns, end_ns);
    snprintf(name, sizeof(name), "%s to %s", machine->nodes[event->source].name,
             machine->nodes[event->destination].name);
    fputs(",\"cat\":\"copy\",\"name\":", stream);
    duet_write_json_string(stream, name);
    fprintf(stream,
            ",\"args\":{\"handle\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"source\":", event->id,
            event->bytes);
    duet_write_json_string(stream, machine->nodes[event->source].name);
    fputs(",\"destination\":", stream);
    duet_write_json_string(stream, machine->nodes[event->destination].name);
    putc(',', stream);
    put_us(stream, "ready_us", nanoseconds(event->ready_s));
    fputs(event->write_back ? ",\"write_back\":true" : "", stream);
    fputs(event->failed ? ",\"failed\":true}}" : "}}", stream);
}

int duet_perfetto_write(FILE *stream, const struct duet_recording *recording,
                        struct duet_message *message)
{
    const struct duet_machine *machine = recording->machine;
    size_t tracks = (size_t)machine->worker_count + 2 * (size_t)machine->node_count;
    struct writer writer = {.stream = stream, .recording = recording};

    writer.lanes = calloc(tracks * LANES, sizeof(*writer.lanes));
    if (!writer.lanes)
        return duet_fail(message, DUET_ENOMEM, "out of memory writing a trace");
    fputs("{\"displayTimeUnit\":\"ms\",\"otherData\":{\"producer\":\"duet\",\"platform\":", stream);
    duet_write_json_string(stream, machine->name);
    put_machine(stream, machine);
    fputs("},\"traceEvents\":[", stream);
    put_processes(&writer);
    for (size_t i = 0; i < recording->event_count; i++) {
        if (recording->events[i].kind == DUET_EVENT_TASK)
            put_task(&writer, &recording->events[i]);
        else
            put_copy(&writer, &recording->events[i]);
    }
    fputs("\n]}\n", stream);
    free(writer.lanes);
    return 0;
}
