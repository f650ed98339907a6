/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Export in the format of Paje (L. M. Schnorr: The Paje trace file format), for ViTE and pj_dump.
 * Types are called as those of StarPU's traces where they mean the same, and kernels have the
 * fields that StarVZ reads there. Dates are in milliseconds, as in those.
 */
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include <glib.h>

#include "base/json.h"
#include "trace/trace.h"

/* Events, by the numbers that the head gives them. */
enum { VALUE = 6, CONTAINER, IDLE, KERNEL, SET, ADD, SUBTRACT, START_LINK, END_LINK, MARK };

#define EVENT(name, number, fields) "%EventDef Paje" name " " number "\n" fields "%EndEventDef\n"
#define FIELD(name) "% " name " string\n"
#define TYPE FIELD("Alias") FIELD("Type")
#define COLOUR FIELD("Name") "% Color color\n"
#define AT "% Time date\n" FIELD("Type") FIELD("Container")
#define NUMBER AT "% Value double\n"

static const char head[] = EVENT("DefineContainerType", "1", TYPE FIELD("Name"))
    EVENT("DefineStateType", "2", TYPE FIELD("Name")) EVENT("DefineVariableType", "3", TYPE COLOUR)
        EVENT("DefineLinkType", "4",
              TYPE FIELD("StartContainerType") FIELD("EndContainerType") FIELD("Name"))
            EVENT("DefineEventType", "5", TYPE COLOUR) EVENT("DefineEntityValue", "6", TYPE COLOUR)
                EVENT("CreateContainer", "7",
                      AT FIELD("Alias") FIELD("Name")) EVENT("SetState", "8", AT FIELD("Value"))
                    EVENT("SetState", "9",
                          AT FIELD("Value") FIELD("Size") FIELD("Params") FIELD("Footprint")
                              FIELD("Tag") FIELD("JobId") FIELD("SubmitOrder") FIELD("GFlop")
                                  FIELD("X") FIELD("Y") FIELD("Iteration") FIELD("Subiteration")
                                      FIELD("NumaNodes")) EVENT("SetVariable", "10", NUMBER)
                        EVENT("AddVariable", "11", NUMBER) EVENT("SubVariable", "12", NUMBER)
                            EVENT("StartLink", "13",
                                  AT FIELD("StartContainer") FIELD("Value")
                                      FIELD("Key")) EVENT("EndLink", "14",
                                                          AT FIELD("EndContainer") FIELD("Value")
                                                              FIELD("Key"))
                                EVENT("NewEvent", "15",
                                      AT FIELD(
                                          "Value")) "1 P 0 Program\n"
                                                    "1 Sc P Scheduler\n"
                                                    "1 L P Link\n"
                                                    "1 Mn P \"Memory Node\"\n"
                                                    "1 Mm Mn \"Memory Manager\"\n"
                                                    "1 W Mn Worker\n"
                                                    "2 WS W \"Worker State\"\n"
                                                    "3 nr Sc \"Number of Ready Tasks\" \"0 0 0\"\n"
                                                    "3 ns Sc \"Number of Submitted Uncompleted "
                                                    "Tasks\" \"0 0 0\"\n"
                                                    "3 us Mm \"Used (MB)\" \"0 0 0\"\n"
                                                    "3 bi Mm \"Bandwidth In (MB/s)\" \"0 0 0\"\n"
                                                    "3 bo Mm \"Bandwidth Out (MB/s)\" \"0 0 0\"\n"
                                                    "3 fl L \"In Flight (MB)\" \"0 0 0\"\n"
                                                    "4 F P Mm Mm \"Intra-node data Fetch\"\n"
                                                    "4 B P Mm Mm \"Intra-node data WriteBack\"\n"
                                                    "4 D P W W Dependency\n"
                                                    "5 M P Mark \"0 0 0\"\n"
                                                    "6 I WS Idle \"0.9 0.9 0.9\"\n";

static const char *const colours[] = {"0.30 0.47 0.66", "0.95 0.56 0.17", "0.35 0.63 0.31",
                                      "0.88 0.34 0.35", "0.46 0.72 0.70", "0.93 0.79 0.28",
                                      "0.69 0.48 0.63", "0.61 0.46 0.37"};

/* Kinds of what happens at a date, in order: ends come first, those of no length last. */
enum kind { END, DEPENDED_ON, SUBMITTED, READY, DEPENDS, START, END_AT_ONCE, MARKED };

struct item {
    int64_t ns;
    uint32_t kind, index; /* index of the event, or the mark */
};

struct writer {
    FILE *stream;
    const struct duet__recording *recording;
    uint32_t *arrows;
    GArray *items;     /* struct item */
    unsigned *running; /* kernels, by worker */
    double date_ms;
};

/* Writes one event at the date, of a type and a container. */
G_GNUC_PRINTF(3, 4)
static void put(const struct writer *writer, unsigned event, const char *format, ...)
{
    va_list values;
    fprintf(writer->stream, "%u %.6f ", event, writer->date_ms);
    va_start(values, format);
    vfprintf(writer->stream, format, values);
    va_end(values);
    putc('\n', writer->stream);
}

/* Returns a text without quotes, and without letters that end a column of pj_dump's; never empty,
   which pj_dump does not read. Caller frees. */
static char *clean(const char *text)
{
    return g_strdelimit(duet__json_clean(g_strdup(text && *text ? text : "-")), "\",", '_');
}

static void put_container(const struct writer *writer, const char *type, const char *in,
                          unsigned number, unsigned own, const char *name)
{
    g_autofree char *cleaned = clean(name);
    put(writer, CONTAINER, "%s %s%u %s%u \"%s\"", type, in, number, type, own, cleaned);
}

static void put_containers(const struct writer *writer)
{
    const struct duet_machine *machine = writer->recording->machine;
    put_container(writer, "P", "", 0, 0, machine->name);
    put_container(writer, "Sc", "P", 0, 0, "scheduler");
    put(writer, SET, "nr Sc0 0"); /* only an existing value can be added to */
    put(writer, SET, "ns Sc0 0");
    for (unsigned i = 0; i < machine->node_count; i++) {
        g_autofree char *manager = g_strdup_printf("MEMMANAGER%u", i);
        put_container(writer, "Mn", "P", 0, i, machine->nodes[i].name);
        put_container(writer, "Mm", "Mn", i, i, manager);
        put(writer, SET, "us Mm%u 0", i);
        put(writer, SET, "bi Mm%u 0", i);
        put(writer, SET, "bo Mm%u 0", i);
    }
    for (unsigned i = 0; i < machine->worker_count; i++) {
        const struct duet_worker *worker = &machine->workers[i];
        const char *digits = worker->name + strcspn(worker->name, "0123456789");
        g_autofree char *backend = g_ascii_strup(machine->archs[worker->arch].backend, -1);
        /* "CPU0", "CUDA3": StarVZ knows workers by their names */
        g_autofree char *name = g_strconcat(*digits ? backend : worker->name, digits, NULL);
        put_container(writer, "W", "Mn", worker->node, i, name);
        put(writer, IDLE, "WS W%u I", i);
    }
    for (unsigned i = 0; i < machine->link_count; i++) {
        put_container(writer, "L", "P", 0, i, machine->links[i].name);
        put(writer, SET, "fl L%u 0", i);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Items of the run, in order of dates                                                          */

static int by_date(const void *left, const void *right)
{
    const struct item *a = left, *b = right;
    if (a->ns != b->ns)
        return a->ns < b->ns ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

static int64_t add(struct writer *writer, enum kind kind, size_t index, double date_s)
{
    const struct item item = {isfinite(date_s) ? llround(date_s * 1e9) : 0, kind, (uint32_t)index};
    g_array_append_val(writer->items, item);
    return item.ns;
}

/* The task whose data another one waited for, over copies; NULL: none. */
static const struct duet_event *depends_on(const struct writer *writer, size_t index)
{
    do {
        if (!writer->arrows[index])
            return NULL;
        index = writer->arrows[index] - 1;
    } while (writer->recording->events[index].kind == DUET_EVENT_COPY);
    return &writer->recording->events[index];
}

static void collect(struct writer *writer)
{
    const struct duet__recording *recording = writer->recording;
    for (size_t i = 0; i < recording->event_count; i++) {
        const struct duet_event *event = &recording->events[i];
        const bool task = event->kind == DUET_EVENT_TASK;
        const struct duet_event *before = task ? depends_on(writer, i) : NULL;
        if (event->failed || (task && (unsigned)event->worker >= recording->machine->worker_count))
            continue;
        const int64_t start_ns = add(writer, START, i, event->start_s);
        if (add(writer, END, i, event->end_s) <= start_ns)
            g_array_index(writer->items, struct item, writer->items->len - 1).kind = END_AT_ONCE;
        if (task)
            add(writer, READY, i, fmin(event->ready_s, event->start_s));
        if (task && !event->paused)
            add(writer, SUBMITTED, i, fmin(event->submit_s, event->start_s));
        if (before) {
            add(writer, DEPENDED_ON, i, before->end_s);
            add(writer, DEPENDS, i, event->start_s);
        }
    }
    for (size_t i = 0; i < recording->mark_count; i++)
        add(writer, MARKED, i, recording->marks[i].start_s);
    g_array_sort(writer->items, by_date);
}

static void put_copy(const struct writer *writer, const struct duet_event *copy, uint32_t index,
                     bool starts)
{
    const struct duet_route *route =
        duet_machine_route(writer->recording->machine, copy->source, copy->destination);
    const unsigned how = starts ? ADD : SUBTRACT;
    const double mb = (double)copy->bytes * 1e-6, seconds = copy->end_s - copy->start_s;
    put(writer, starts ? START_LINK : END_LINK, "%s P0 Mm%u %" PRIu64 " c%u",
        copy->write_back ? "B" : "F", starts ? copy->source : copy->destination, copy->bytes,
        index);
    if (seconds > 0) {
        put(writer, how, "bo Mm%u %.6f", copy->source, mb / seconds);
        put(writer, how, "bi Mm%u %.6f", copy->destination, mb / seconds);
    }
    for (unsigned i = 0; i < route->count; i++)
        put(writer, how, "fl L%u %.6f", route->links[i], mb);
}

static void put_start(const struct writer *writer, const struct duet_event *task)
{
    g_autofree char *name = clean(duet__recording_name(writer->recording, task->name));
    writer->running[task->worker]++;
    put(writer, SUBTRACT, "nr Sc0 1");
    put(writer, KERNEL,
        "WS W%d k%u %" PRIu64 " \"%s\" %" PRIx64 " 0 %" PRIu64 " %" PRIu64 " %.9f 0 0 %u 0 %u",
        task->worker, task->kernel, task->bytes, name, task->bytes, task->id, task->id,
        isfinite(task->work) ? task->work * 1e-9 : 0, task->iteration, task->destination);
}

static void put_end(const struct writer *writer, const struct duet_event *event, uint32_t index)
{
    if (event->kind == DUET_EVENT_COPY)
        put_copy(writer, event, index, false);
    else if (--writer->running[event->worker] == 0)
        put(writer, IDLE, "WS W%d I", event->worker);
    if (event->kind == DUET_EVENT_TASK && !event->paused)
        put(writer, SUBTRACT, "ns Sc0 1");
    if (event->used_bytes)
        put(writer, SET, "us Mm%u %.6f", event->destination ? event->destination : event->source,
            (double)event->used_bytes * 1e-6);
}

static void put_item(const struct writer *writer, enum kind kind, uint32_t index)
{
    const struct duet__recording *recording = writer->recording;
    const struct duet_event *event = &recording->events[index];
    if (kind == MARKED) {
        g_autofree char *name =
            clean(duet__recording_name(recording, recording->marks[index].name));
        put(writer, MARK, "M P0 \"%s\"", name);
    } else if (kind == DEPENDED_ON) {
        put(writer, START_LINK, "D P0 W%d 0 d%u", depends_on(writer, index)->worker, index);
    } else if (kind == DEPENDS) {
        put(writer, END_LINK, "D P0 W%d 0 d%u", event->worker, index);
    } else if (kind == SUBMITTED || kind == READY) {
        put(writer, ADD, "%s Sc0 1", kind == READY ? "nr" : "ns");
    } else if (kind == END || kind == END_AT_ONCE) {
        put_end(writer, event, index);
    } else if (event->kind == DUET_EVENT_COPY) {
        put_copy(writer, event, index, true);
    } else {
        put_start(writer, event);
    }
}

void duet__trace_write_paje(FILE *stream, const struct duet__trace *trace)
{
    const struct duet__recording *recording = &trace->run.recording;
    struct writer writer = {.stream = stream,
                            .recording = recording,
                            .arrows = duet__arrows_make(recording, true),
                            .items = g_array_new(FALSE, FALSE, sizeof(struct item)),
                            .running = g_new0(unsigned, recording->machine->worker_count)};
    /* numbers have points, whatever the application has set */
    const locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0), own = uselocale(plain);
    collect(&writer);
    fputs(head, stream);
    for (size_t i = 0; i < recording->kernel_count; i++) {
        g_autofree char *name = clean(recording->kernels[i]);
        fprintf(stream, "%u k%zu WS \"%s\" \"%s\"\n", VALUE, i, name,
                colours[i % G_N_ELEMENTS(colours)]);
    }
    if (writer.items->len)
        writer.date_ms = fmin((double)g_array_index(writer.items, struct item, 0).ns * 1e-6, 0);
    put_containers(&writer);
    for (guint i = 0; i < writer.items->len; i++) {
        const struct item *item = &g_array_index(writer.items, struct item, i);
        writer.date_ms = (double)item->ns * 1e-6;
        put_item(&writer, (enum kind)item->kind, item->index);
    }
    uselocale(own);
    if (plain)
        freelocale(plain);
    g_array_free(writer.items, TRUE);
    g_free(writer.arrows);
    g_free(writer.running);
}
