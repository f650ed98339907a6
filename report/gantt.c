/* SPDX-License-Identifier: Apache-2.0 */
/* Gantt charts as data: events sorted into rows, short neighbours merged where there are too many.
 */
#include "report/gantt.h"

#include <inttypes.h>
#include <math.h>

#include "base/json.h"

const char *const duet__gantt_copy_colours[] = {"#7c93ad", "#c08a5a", "#6a5acd", "#b0457b"};
const char *const duet__gantt_copy_names[] = {"copy to GPU", "copy to host", "copy between GPUs",
                                              "message"};

const char *duet__gantt_unit(double end_s, double *scale)
{
    *scale = end_s >= 1 ? 1 : end_s >= 1e-3 ? 1e3 : 1e6;
    return end_s >= 1 ? "s" : end_s >= 1e-3 ? "ms" : "\xc2\xb5s";
}

static size_t *place(const struct duet__gantt *gantt, enum duet__gantt_lane lane, unsigned index)
{
    const struct duet_machine *machine = gantt->recording->machine;

    return &gantt->places[lane == DUET_GANTT_KERNELS ? index
                          : lane == DUET_GANTT_IN
                              ? machine->worker_count + index
                              : machine->worker_count + machine->node_count + index];
}

size_t duet__gantt_find(const struct duet__gantt *gantt, enum duet__gantt_lane lane, unsigned index)
{
    const struct duet_machine *machine = gantt->recording->machine;
    const bool known =
        index < (lane == DUET_GANTT_KERNELS ? machine->worker_count : machine->node_count);
    const size_t row = known ? *place(gantt, lane, index) : 0;

    return row ? row - 1 : gantt->row_count;
}

static void add_row(struct duet__gantt *gantt, const char *name, enum duet__gantt_lane lane,
                    unsigned index, unsigned node)
{
    *place(gantt, lane, index) = gantt->row_count + 1;
    gantt->rows[gantt->row_count++] =
        (struct duet__gantt_row){name, lane, index, node,
                                 g_array_new(FALSE, FALSE, sizeof(struct duet__gantt_bar))};
}

/* Adds rows: CPU workers in order, messages if there are several nodes, then for each device its
 * workers and its copies. */
static void add_rows(struct duet__gantt *gantt)
{
    const struct duet_machine *machine = gantt->recording->machine;
    const size_t most = machine->worker_count + 2 * (size_t)machine->node_count;
    const bool several = duet__host_count(machine) > 1;

    gantt->rows = g_new0(struct duet__gantt_row, most);
    gantt->places = g_new0(size_t, most);
    for (unsigned node = 0; node < machine->node_count; node++) {
        for (unsigned i = 0; i < machine->worker_count; i++)
            if (machine->workers[i].node == node)
                add_row(gantt, machine->workers[i].name, DUET_GANTT_KERNELS, i, node);
        if (duet__is_host(machine, node) && !several)
            continue;
        add_row(gantt, machine->nodes[node].name, DUET_GANTT_IN, node, node);
        add_row(gantt, machine->nodes[node].name, DUET_GANTT_OUT, node, node);
    }
}

/* Adds a bar to the row of that lane and index, where there is such a row. */
static void add_bar(struct duet__gantt *gantt, enum duet__gantt_lane lane, unsigned index,
                    const struct duet__gantt_bar *bar)
{
    const size_t row = duet__gantt_find(gantt, lane, index);

    if (row == gantt->row_count)
        return;
    g_array_append_vals(gantt->rows[row].bars, bar, 1);
    gantt->bar_count++;
}

static enum duet__gantt_copy copy_kind(const struct duet_machine *machine,
                                       const struct duet_event *event)
{
    if (duet__is_host(machine, event->destination))
        return duet__is_message(machine, event) ? DUET_GANTT_MESSAGE : DUET_GANTT_TO_HOST;
    return duet__is_host(machine, event->source) ? DUET_GANTT_TO_DEVICE : DUET_GANTT_BETWEEN;
}

static void add_event(struct duet__gantt *gantt, const struct duet_event *event)
{
    const struct duet_machine *machine = gantt->recording->machine;
    bool task = event->kind == DUET_EVENT_TASK;
    const enum duet__gantt_copy copy = task ? 0 : copy_kind(machine, event);
    const struct duet__gantt_bar bar = {
        .start_s = event->start_s,
        .end_s = event->end_s,
        .id = event->id,
        .bytes = event->bytes,
        .colour = task ? event->kernel : copy,
        .count = 1,
        .source = event->source,
        .destination = event->destination,
    };

    gantt->end_s = fmax(gantt->end_s, event->end_s);
    if (task) {
        add_bar(gantt, DUET_GANTT_KERNELS, (unsigned)event->worker, &bar);
    } else {
        if (copy != DUET_GANTT_TO_HOST)
            add_bar(gantt, DUET_GANTT_IN, event->destination, &bar);
        if (copy != DUET_GANTT_TO_DEVICE)
            add_bar(gantt, DUET_GANTT_OUT, event->source, &bar);
    }
}

/*
 * Merges, in one row, every bar shorter than `shortest` with those that follow it closer than that.
 * The colour is the weighted majority's (Boyer and Moore's vote). Returns the number of bars left.
 */
static guint merge_row(GArray *bars, double shortest)
{
    guint left = 0;
    double votes = 0;

    for (guint i = 0; i < bars->len; i++) {
        struct duet__gantt_bar bar = g_array_index(bars, struct duet__gantt_bar, i);
        struct duet__gantt_bar *last = &g_array_index(bars, struct duet__gantt_bar, left) - 1;
        double length = bar.end_s - bar.start_s;

        if (left && last->end_s - last->start_s < shortest &&
            bar.start_s - last->end_s < shortest) {
            votes += bar.colour == last->colour ? length : -length;
            if (votes < 0) {
                votes = -votes;
                last->colour = bar.colour;
            }
            last->end_s = fmax(last->end_s, bar.end_s);
            last->bytes += bar.bytes;
            last->count += bar.count;
        } else {
            votes = length;
            g_array_index(bars, struct duet__gantt_bar, left++) = bar;
        }
    }
    g_array_set_size(bars, left);
    return left;
}

void duet__gantt_init(struct duet__gantt *gantt, const struct duet__recording *recording,
                      size_t max_bars)
{
    *gantt = (struct duet__gantt){.recording = recording, .end_s = recording->makespan_s};
    add_rows(gantt);
    for (size_t i = 0; i < recording->event_count; i++)
        add_event(gantt, &recording->events[i]);
    if (!(gantt->end_s > 0))
        gantt->end_s = 1;
    if (gantt->bar_count <= max_bars)
        return;
    gantt->merged_s = gantt->end_s * (double)gantt->row_count / (double)MAX(max_bars, 1);
    gantt->bar_count = 0;
    for (size_t i = 0; i < gantt->row_count; i++)
        if (gantt->rows[i].bars) /* always true, which the analyser cannot know */
            gantt->bar_count += merge_row(gantt->rows[i].bars, gantt->merged_s);
}

void duet__gantt_fini(struct duet__gantt *gantt)
{
    for (size_t i = 0; i < gantt->row_count; i++)
        g_array_free(gantt->rows[i].bars, TRUE);
    g_free(gantt->rows);
    g_free(gantt->places);
    *gantt = (struct duet__gantt){0};
}

void duet__gantt_write_csv(FILE *stream, const struct duet__recording *recording)
{
    static const struct duet_event none = {.kind = DUET_EVENT_COPY};
    const struct duet_machine *machine = recording->machine;
    struct duet__json_writer csv = {.stream = stream, .csv = DUET__CSV_HEADING};

    for (size_t line = 0; line <= recording->event_count; line++) {
        const struct duet_event *event = line ? &recording->events[line - 1] : &none;
        const bool task = event->kind == DUET_EVENT_TASK;
        const char *name = task ? recording->kernels[event->kernel]
                                : duet__gantt_copy_names[copy_kind(machine, event)];

        duet__json_print(&csv, "worker: %s, name: %s, id: %" PRIu64 ", source: %s, destination: %s",
                         task ? machine->workers[event->worker].name : NULL, name, event->id,
                         task ? NULL : machine->nodes[event->source].name,
                         task ? NULL : machine->nodes[event->destination].name);
        duet__json_print(&csv, "bytes: %" PRIu64 ", start_s: %g, end_s: %g", event->bytes,
                         event->start_s, event->end_s);
        duet__csv_end(&csv);
    }
}
