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

/* ------------------------------------------------------------------------------------------- */
/* The chart as a self-contained SVG picture                                                    */

/* Sizes in pixels. */
enum {
    WIDTH = 1600,
    LEFT = 70,
    RIGHT = 24,
    TOP = 28,           /* baseline of the title */
    LINE = 20,          /* of text */
    KERNEL_HEIGHT = 16, /* of a row of kernels */
    COPY_HEIGHT = 5,    /* of a row of copies */
    GAP = 2,            /* between rows */
    DEVICE_GAP = 5,     /* between devices, and more */
    CHARACTER = 7,      /* width of one, more or less */
};

static const char style[] =
    "<style>svg{font:12px system-ui,sans-serif;--back:#fff;--text:#24292f;--soft:#656d76;"
    "--line:#e4e8ec}@media (prefers-color-scheme:dark){svg{--back:#16191d;--text:#e6e9ec;"
    "--soft:#98a2ac;--line:#2b3137}}.back{fill:var(--back,#fff)}text{fill:var(--text,#24292f)}"
    ".title{font-size:16px;font-weight:600}.soft{fill:var(--soft,#656d76)}"
    ".grid{stroke:var(--line,#e4e8ec);stroke-width:1}.merged{opacity:.55}</style>\n"
    "<rect class=\"back\" fill=\"#fff\" width=\"100%\" height=\"100%\"/>\n";

static const char *colour_of(bool kernel, uint64_t colour)
{
    return kernel ? duet__svg_colours[colour % DUET__SVG_COLOURS]
                  : duet__gantt_copy_colours[colour % DUET_GANTT_COPIES];
}

static bool is_used(const struct duet__gantt *gantt, bool kernel, uint64_t colour)
{
    for (size_t i = 0; i < gantt->row_count; i++)
        for (guint k = 0; k < gantt->rows[i].bars->len; k++)
            if ((gantt->rows[i].lane == DUET_GANTT_KERNELS) == kernel &&
                duet__gantt_bar(&gantt->rows[i], k)->colour == colour)
                return true;
    return false;
}

/* Appends the legend of the chart, in lines that fit into the picture; returns the last one's
 * baseline. */
static int put_legend(GString *svg, const struct duet__gantt *gantt, int y)
{
    size_t kernels = gantt->recording->kernel_count;
    int x = LEFT;
    for (size_t i = 0; i < kernels + DUET_GANTT_COPIES; i++) {
        bool kernel = i < kernels;
        uint64_t colour = (uint64_t)(kernel ? i : i - kernels);
        const char *name =
            kernel ? gantt->recording->kernels[colour] : duet__gantt_copy_names[colour];
        int width = 48 + (int)strlen(name) * CHARACTER;
        if (!is_used(gantt, kernel, colour))
            continue;
        if (x + width > WIDTH - RIGHT && x > LEFT) {
            x = LEFT;
            y += LINE;
        }
        duet__svg_put(svg,
                      "<rect fill=\"%s\" x=\"%d\" y=\"%d\" width=\"14\" height=\"%d\"/>"
                      "<text x=\"%d\" y=\"%d\">%s</text>\n",
                      colour_of(kernel, colour), x, kernel ? y - 10 : y - 7, kernel ? 12 : 6,
                      x + 20, y, name);
        x += width;
    }
    return y;
}

/* Appends the time axis of rows between two heights: grid lines with about 12 dates. */
static void put_axis(GString *svg, const struct duet__gantt *gantt, int top, int bottom)
{
    double scale;
    const char *unit = duet__gantt_unit(gantt->end_s, &scale);
    const double step = duet__svg_step(gantt->end_s * scale, 12);
    for (size_t i = 0; (double)i * step <= gantt->end_s * scale * (1 + 1e-9); i++) {
        double x = LEFT + (double)i * step / (gantt->end_s * scale) * (WIDTH - LEFT - RIGHT);
        duet__svg_put(svg,
                      "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/><text "
                      "class=\"soft\" "
                      "text-anchor=\"middle\" x=\"%.1f\" y=\"%d\">%.6g %s</text>\n",
                      x, x, top, bottom + 4, x, bottom + LINE, (double)i * step, unit);
    }
}

static void put_tooltip(GString *svg, const struct duet__gantt *gantt,
                        const struct duet__gantt_row *row, const struct duet__gantt_bar *bar)
{
    const struct duet__recording *recording = gantt->recording;
    const struct duet_node *nodes = recording->machine->nodes;
    bool kernel = row->lane == DUET_GANTT_KERNELS;
    const char *name =
        kernel && bar->colour < recording->kernel_count ? recording->kernels[bar->colour] : "?";
    double scale;
    const char *unit = duet__gantt_unit(gantt->end_s, &scale);
    if (kernel && bar->count == 1)
        duet__svg_put(svg, "<title>%s task %" PRIu64, name, bar->id);
    else if (kernel)
        duet__svg_put(svg, "<title>%s and others: %" PRIu64 " tasks", name, bar->count);
    else if (bar->count == 1)
        duet__svg_put(svg, "<title>%s to %s, handle %" PRIu64 ", %" PRIu64 " bytes",
                      nodes[bar->source].name, nodes[bar->destination].name, bar->id, bar->bytes);
    else
        duet__svg_put(svg, "<title>%" PRIu64 " copies, %" PRIu64 " bytes", bar->count, bar->bytes);
    duet__svg_put(svg, ", from %.6f %s for %.3f ms</title>", bar->start_s * scale, unit,
                  (bar->end_s - bar->start_s) * 1e3);
}

static void put_row(GString *svg, const struct duet__gantt *gantt,
                    const struct duet__gantt_row *row, int y, int height)
{
    double scale = (WIDTH - LEFT - RIGHT) / gantt->end_s;
    bool kernels = row->lane == DUET_GANTT_KERNELS;
    if (kernels)
        duet__svg_put(svg, "<text text-anchor=\"end\" x=\"%d\" y=\"%d\">%s</text>\n", LEFT - 8,
                      y + height - 4, row->name);
    for (guint i = 0; i < row->bars->len; i++) {
        const struct duet__gantt_bar *bar = duet__gantt_bar(row, i);
        double width = (bar->end_s - bar->start_s) * scale;
        /* slightly narrower than its time, so that neighbours can be told apart */
        duet__svg_put(
            svg, "<rect fill=\"%s\" class=\"%s\" x=\"%.2f\" width=\"%.2f\" y=\"%d\" height=\"%d\">",
            colour_of(kernels, bar->colour), bar->count > 1 ? "merged" : "single",
            LEFT + bar->start_s * scale, width > 2 ? width - 0.4 : fmax(width, 0.15), y, height);
        put_tooltip(svg, gantt, row, bar);
        g_string_append(svg, "</rect>\n");
    }
}

/* Appends all rows from height `y` on, and their axis; returns the height of their end. */
static int put_rows(GString *svg, const struct duet__gantt *gantt, int y)
{
    GString *rows = g_string_new(NULL); /* drawn over the grid, whose height depends on them */
    int top = y;
    for (size_t i = 0; i < gantt->row_count; i++) {
        const struct duet__gantt_row *row = &gantt->rows[i];
        int height = row->lane == DUET_GANTT_KERNELS ? KERNEL_HEIGHT : COPY_HEIGHT;
        y += i > 0 && row->node != row[-1].node ? DEVICE_GAP : GAP;
        put_row(rows, gantt, row, y, height);
        y += height;
    }
    put_axis(svg, gantt, top, y + GAP);
    g_string_append(svg, rows->str);
    g_string_free(rows, TRUE);
    return y + GAP;
}

void duet__gantt_write_svg(FILE *stream, const struct duet__recording *recording, const char *title,
                           const char *subtitle)
{
    GString *svg = g_string_new(NULL);
    struct duet__gantt gantt;
    double scale;
    const char *unit;
    int height;
    duet__gantt_init(&gantt, recording, DUET_GANTT_SVG_BARS);
    unit = duet__gantt_unit(gantt.merged_s, &scale);
    duet__svg_put(svg, "<text class=\"title\" x=\"%d\" y=\"%d\">%s</text>\n", LEFT, TOP, title);
    duet__svg_put(svg, "<text class=\"soft\" x=\"%d\" y=\"%d\">%s", LEFT, TOP + LINE, subtitle);
    if (gantt.merged_s > 0)
        duet__svg_put(svg, "; pale bars are several kernels or copies, each shorter than %.1f %s",
                      gantt.merged_s * scale, unit);
    g_string_append(svg, "</text>\n");
    height = put_legend(svg, &gantt, TOP + 2 * LINE + 4) + 10;
    height = put_rows(svg, &gantt, height) + LINE + 12;
    fprintf(stream,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\">\n%s%s</svg>\n",
            WIDTH, height, WIDTH, height, style, svg->str);
    g_string_free(svg, TRUE);
    duet__gantt_fini(&gantt);
}

/* ------------------------------------------------------------------------------------------- */
/* Parts that all SVG pictures share                                                             */

const char *const duet__svg_colours[] = {"#4e79a7", "#f28e2b", "#59a14f", "#b07aa1",
                                         "#e15759", "#3aa6a0", "#d4a72c", "#9c755f"};

void duet__svg_put(GString *svg, const char *format, ...)
{
    va_list args;
    char *text;
    va_start(args, format);
    text = g_markup_vprintf_escaped(format, args);
    va_end(args);
    g_string_append(svg, text);
    g_free(text);
}

double duet__svg_step(double range, int most)
{
    const double step = range / most, power = pow(10, floor(log10(step)));
    return power * (step <= power ? 1 : step <= 2 * power ? 2 : step <= 5 * power ? 5 : 10);
}
