/* SPDX-License-Identifier: Apache-2.0 */
/* Gantt charts as data: events sorted into rows, short neighbours merged. */
#include "report/gantt.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

static const char *const kernel_colours[] = {"#4e79a7", "#f28e2b", "#59a14f", "#b07aa1",
                                             "#e15759", "#3aa6a0", "#d4a72c", "#9c755f"};
static const char *const copy_colours[] = {"#7c93ad", "#c08a5a", "#6a5acd"};
static const char *const copy_names[] = {"copy to GPU", "copy to host", "copy between GPUs"};

const char *duet_gantt_kernel_colour(size_t kernel)
{
    return kernel_colours[kernel % (sizeof(kernel_colours) / sizeof(*kernel_colours))];
}

const char *duet_gantt_copy_colour(enum duet_gantt_copy copy)
{
    return copy_colours[copy < DUET_GANTT_COPIES ? copy : 0];
}

const char *duet_gantt_copy_name(enum duet_gantt_copy copy)
{
    return copy_names[copy < DUET_GANTT_COPIES ? copy : 0];
}

double duet_gantt_tick(double end_s, unsigned wanted)
{
    double rough = end_s / (wanted ? wanted : 1), power = pow(10, floor(log10(rough)));
    double part = rough / power;

    return power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

const char *duet_gantt_unit(double end_s, double *scale)
{
    *scale = end_s >= 1 ? 1 : end_s >= 1e-3 ? 1e3 : 1e6;
    return end_s >= 1 ? "s" : end_s >= 1e-3 ? "ms" : "\xc2\xb5s";
}

/* Numbers of the rows: by worker, and by node into and out of it; -1: none. */
struct index {
    int *kernels, *in, *out;
};

static void add_row(struct duet_gantt *gantt, int *at, const char *name, enum duet_gantt_lane lane,
                    unsigned index)
{
    *at = (int)gantt->row_count;
    gantt->rows[gantt->row_count++] =
        (struct duet_gantt_row){.name = name, .lane = lane, .index = index};
}

/* CPU workers as they come, then device by device its workers and its copies. */
static void add_rows(struct duet_gantt *gantt, struct index *index)
{
    const struct duet_machine *machine = gantt->recording->machine;

    for (unsigned node = 0; node < machine->node_count; node++) {
        index->in[node] = index->out[node] = -1;
        for (unsigned i = 0; i < machine->worker_count; i++)
            if (machine->workers[i].node == node)
                add_row(gantt, &index->kernels[i], machine->workers[i].name, DUET_GANTT_KERNELS, i);
        if (node == DUET_HOST)
            continue;
        add_row(gantt, &index->in[node], machine->nodes[node].name, DUET_GANTT_IN, node);
        add_row(gantt, &index->out[node], machine->nodes[node].name, DUET_GANTT_OUT, node);
    }
}

/* The rows an event belongs to; -1: none. */
static void event_rows(const struct duet_machine *machine, const struct index *index,
                       const struct duet_event *event, int rows[2])
{
    rows[0] = rows[1] = -1;
    if (event->kind == DUET_EVENT_TASK) {
        if (event->worker >= 0 && (unsigned)event->worker < machine->worker_count)
            rows[0] = index->kernels[event->worker];
    } else if (event->source < machine->node_count && event->destination < machine->node_count) {
        rows[0] = index->in[event->destination];
        rows[1] = index->out[event->source];
    }
}

static enum duet_gantt_copy copy_kind(const struct duet_event *event)
{
    if (event->destination == DUET_HOST)
        return DUET_GANTT_TO_HOST;
    return event->source == DUET_HOST ? DUET_GANTT_TO_DEVICE : DUET_GANTT_BETWEEN;
}

static void fill_bar(struct duet_gantt_bar *bar, const struct duet_event *event)
{
    *bar = (struct duet_gantt_bar){
        .start_s = event->start_s,
        .end_s = event->end_s,
        .id = event->id,
        .bytes = event->bytes,
        .colour = event->kind == DUET_EVENT_TASK ? event->kernel : (uint32_t)copy_kind(event),
        .count = 1,
        .source = event->source,
        .destination = event->destination,
    };
}

/* One bar an event, row by row. DUET_ENOMEM. */
static int fill_bars(struct duet_gantt *gantt, const struct index *index)
{
    const struct duet_recording *recording = gantt->recording;
    int rows[2];

    for (size_t i = 0; i < recording->event_count; i++) {
        event_rows(recording->machine, index, &recording->events[i], rows);
        for (int k = 0; k < 2; k++)
            if (rows[k] >= 0)
                gantt->rows[rows[k]].count++;
    }
    for (size_t row = 0; row < gantt->row_count; row++) {
        gantt->rows[row].first = gantt->bar_count;
        gantt->bar_count += gantt->rows[row].count;
        gantt->rows[row].count = 0;
    }
    gantt->bars = calloc(gantt->bar_count + 1, sizeof(*gantt->bars));
    if (!gantt->bars)
        return DUET_ENOMEM;
    for (size_t i = 0; i < recording->event_count; i++) {
        event_rows(recording->machine, index, &recording->events[i], rows);
        for (int k = 0; k < 2; k++) {
            if (rows[k] < 0)
                continue;
            fill_bar(&gantt->bars[gantt->rows[rows[k]].first + gantt->rows[rows[k]].count++],
                     &recording->events[i]);
        }
        if (recording->events[i].end_s > gantt->end_s)
            gantt->end_s = recording->events[i].end_s;
    }
    return 0;
}

/*
 * Merges, in one row, every bar that is shorter than `shortest` with those that follow it closer
 * than that. The colour is the weighted majority's (Boyer and Moore's vote). Returns how many
 * bars are left; they are written from `to` on.
 */
static size_t merge_row(const struct duet_gantt_bar *bars, size_t count, double shortest,
                        struct duet_gantt_bar *to)
{
    size_t left = 0;
    double votes = 0;

    for (size_t i = 0; i < count; i++) {
        struct duet_gantt_bar bar = bars[i], *last = left ? &to[left - 1] : NULL;
        double length = bar.end_s - bar.start_s;

        if (last && last->end_s - last->start_s < shortest &&
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
            to[left++] = bar;
        }
    }
    return left;
}

static void merge(struct duet_gantt *gantt, size_t max_bars)
{
    double shortest;
    size_t left = 0;

    if (gantt->bar_count <= max_bars || gantt->row_count == 0)
        return;
    shortest = gantt->end_s * (double)gantt->row_count / (double)(max_bars ? max_bars : 1);
    for (size_t row = 0; row < gantt->row_count; row++) {
        struct duet_gantt_row *r = &gantt->rows[row];

        r->count = merge_row(gantt->bars + r->first, r->count, shortest, gantt->bars + left);
        r->first = left;
        left += r->count;
    }
    gantt->bar_count = left;
}

int duet_gantt_build(struct duet_gantt *gantt, const struct duet_recording *recording,
                     size_t max_bars, struct duet_message *message)
{
    const struct duet_machine *machine = recording->machine;
    size_t workers = machine->worker_count, nodes = machine->node_count;
    struct index index;
    int result = DUET_ENOMEM;
    int *numbers = calloc(workers + 2 * nodes + 1, sizeof(*numbers));

    *gantt = (struct duet_gantt){.recording = recording, .end_s = recording->makespan_s};
    gantt->rows = calloc(workers + 2 * nodes + 1, sizeof(*gantt->rows));
    if (numbers && gantt->rows) {
        index = (struct index){numbers, numbers + workers, numbers + workers + nodes};
        add_rows(gantt, &index);
        result = fill_bars(gantt, &index);
    }
    free(numbers);
    if (result) {
        duet_gantt_fini(gantt);
        return duet_fail(message, result, "out of memory drawing %zu events",
                         recording->event_count);
    }
    if (!(gantt->end_s > 0))
        gantt->end_s = 1;
    merge(gantt, max_bars);
    return 0;
}

void duet_gantt_fini(struct duet_gantt *gantt)
{
    free(gantt->rows);
    free(gantt->bars);
    *gantt = (struct duet_gantt){0};
}
