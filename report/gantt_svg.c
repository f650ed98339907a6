/* SPDX-License-Identifier: Apache-2.0 */
/* A Gantt chart as a self-contained SVG picture. */
#include "report/gantt.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/output.h"

/* All in pixels. */
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

struct drawing {
    FILE *stream;
    const struct duet_gantt *gantt;
    double scale; /* pixels a second */
    const char *unit;
    double unit_scale; /* units a second */
    int top, bottom;   /* of the plot */
};

static int row_height(const struct duet_gantt_row *row)
{
    return row->lane == DUET_GANTT_KERNELS ? KERNEL_HEIGHT : COPY_HEIGHT;
}

/* Space between a row and the one above it. */
static int row_gap(const struct duet_gantt *gantt, size_t row)
{
    return row > 0 && gantt->rows[row].node != gantt->rows[row - 1].node ? DEVICE_GAP : GAP;
}

static int plot_height(const struct duet_gantt *gantt)
{
    int height = GAP;

    for (size_t i = 0; i < gantt->row_count; i++)
        height += row_gap(gantt, i) + row_height(&gantt->rows[i]);
    return height;
}

static void put_attribute(FILE *stream, const char *name, double value, int digits)
{
    fprintf(stream, " %s=\"", name);
    duet_write_fixed(stream, value, digits);
    putc('"', stream);
}

/* Begins a text at x, y, which the caller goes on with; `attributes` is what else it has. */
static void begin_text(FILE *stream, const char *attributes, double x, int y)
{
    fprintf(stream, "<text %s y=\"%d\"", attributes, y);
    put_attribute(stream, "x", x, 1);
    putc('>', stream);
}

static void put_text(FILE *stream, const char *attributes, double x, int y, const char *text)
{
    begin_text(stream, attributes, x, y);
    duet_write_xml_text(stream, text);
    fputs("</text>\n", stream);
}

static void put_style(FILE *stream)
{
    fputs("<style>"
          "svg{font:12px system-ui,sans-serif;--back:#fff;--text:#24292f;--soft:#656d76;"
          "--line:#e4e8ec}"
          "@media (prefers-color-scheme:dark){svg{--back:#16191d;--text:#e6e9ec;--soft:#98a2ac;"
          "--line:#2b3137}}"
          ".back{fill:var(--back,#fff)}text{fill:var(--text,#24292f)}"
          ".title{font-size:16px;font-weight:600}.soft{fill:var(--soft,#656d76)}"
          ".grid{stroke:var(--line,#e4e8ec);stroke-width:1}.merged{opacity:.55}",
          stream);
    for (int i = 0; i < DUET_GANTT_COLOURS; i++)
        fprintf(stream, ".k%d{fill:%s}", i, duet_gantt_colours[i]);
    for (int i = 0; i < DUET_GANTT_COPIES; i++)
        fprintf(stream, ".c%d{fill:%s}", i, duet_gantt_copy_colours[i]);
    fputs("</style>\n", stream);
}

static bool is_used(const struct duet_gantt *gantt, bool kernel, size_t colour)
{
    for (size_t i = 0; i < gantt->row_count; i++)
        for (guint k = 0; k < gantt->rows[i].bars->len; k++)
            if ((gantt->rows[i].lane == DUET_GANTT_KERNELS) == kernel &&
                duet_gantt_bar(&gantt->rows[i], k)->colour == colour)
                return true;
    return false;
}

/*
 * Writes the legend, of what the chart has, from baseline `y` on, in lines that fit into the
 * picture; returns the last baseline. NULL stream: only that.
 */
static int put_legend(FILE *stream, const struct duet_gantt *gantt, int y)
{
    size_t kernels = gantt->recording->kernel_count;
    int x = LEFT;

    for (size_t i = 0; i < kernels + DUET_GANTT_COPIES; i++) {
        bool kernel = i < kernels;
        size_t colour = kernel ? i : i - kernels;
        const char *name =
            kernel ? gantt->recording->kernels[colour] : duet_gantt_copy_names[colour];
        int width = 20 + (int)strlen(name) * CHARACTER + 28;

        if (!is_used(gantt, kernel, colour))
            continue;
        if (x + width > WIDTH - RIGHT && x > LEFT) {
            x = LEFT;
            y += LINE;
        }
        if (stream) {
            fprintf(stream,
                    "<rect class=\"%c%zu\" x=\"%d\" y=\"%d\" width=\"14\" height=\"%d\" "
                    "rx=\"2\"/>",
                    kernel ? 'k' : 'c', colour % DUET_GANTT_COLOURS, x, kernel ? y - 10 : y - 7,
                    kernel ? 12 : 6);
            put_text(stream, "", x + 20, y, name);
        }
        x += width;
    }
    return y;
}

/* Step of an axis to `end` with about `wanted` ticks: 1, 2 or 5 times a power of ten. */
static double tick_step(double end, double wanted)
{
    double power = pow(10, floor(log10(end / wanted))), part = end / wanted / power;

    return power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

static void put_axis(const struct drawing *drawing)
{
    FILE *stream = drawing->stream;
    double end = drawing->gantt->end_s * drawing->unit_scale, step = tick_step(end, 12);
    int digits = (int)fmax(0, -floor(log10(step) + 1e-9));

    for (size_t i = 0; (double)i * step <= end * (1 + 1e-9); i++) {
        double x = LEFT + (double)i * step / drawing->unit_scale * drawing->scale;

        fprintf(stream, "<line class=\"grid\" y1=\"%d\" y2=\"%d\"", drawing->top,
                drawing->bottom + 4);
        put_attribute(stream, "x1", x, 1);
        put_attribute(stream, "x2", x, 1);
        fputs("/>", stream);
        begin_text(stream, "class=\"soft\" text-anchor=\"middle\"", x, drawing->bottom + LINE);
        duet_write_fixed(stream, (double)i * step, digits);
        fprintf(stream, " %s</text>\n", drawing->unit);
    }
}

static void put_tooltip(const struct drawing *drawing, const struct duet_gantt_row *row,
                        const struct duet_gantt_bar *bar)
{
    const struct duet_recording *recording = drawing->gantt->recording;
    const struct duet_node *nodes = recording->machine->nodes;
    FILE *stream = drawing->stream;

    fputs("<title>", stream);
    if (row->lane == DUET_GANTT_KERNELS) {
        duet_write_xml_text(stream, bar->colour < recording->kernel_count
                                        ? recording->kernels[bar->colour]
                                        : "?");
        fprintf(stream, bar->count == 1 ? " task %" PRIu64 : " and others: %" PRIu64 " tasks",
                bar->count == 1 ? bar->id : bar->count);
    } else if (bar->count == 1) {
        duet_write_xml_text(stream, nodes[bar->source].name);
        fputs(" to ", stream);
        duet_write_xml_text(stream, nodes[bar->destination].name);
        fprintf(stream, ", handle %" PRIu64 ", %" PRIu64 " bytes", bar->id, bar->bytes);
    } else {
        fprintf(stream, "%" PRIu32 " copies, %" PRIu64 " bytes", bar->count, bar->bytes);
    }
    fputs(", from ", stream);
    duet_write_fixed(stream, bar->start_s * drawing->unit_scale, 6);
    fprintf(stream, " %s for ", drawing->unit);
    duet_write_fixed(stream, (bar->end_s - bar->start_s) * 1e3, 3);
    fputs(" ms</title>", stream);
}

static void put_row(const struct drawing *drawing, const struct duet_gantt_row *row, int y)
{
    FILE *stream = drawing->stream;
    bool kernels = row->lane == DUET_GANTT_KERNELS;
    int height = row_height(row);

    if (kernels)
        put_text(stream, "text-anchor=\"end\"", LEFT - 8, y + height - 4, row->name);
    for (guint i = 0; i < row->bars->len; i++) {
        const struct duet_gantt_bar *bar = duet_gantt_bar(row, i);
        double width = (bar->end_s - bar->start_s) * drawing->scale;

        fprintf(stream, "<rect class=\"%c%u%s\" y=\"%d\" height=\"%d\"", kernels ? 'k' : 'c',
                bar->colour % DUET_GANTT_COLOURS, bar->count > 1 ? " merged" : "", y, height);
        put_attribute(stream, "x", LEFT + bar->start_s * drawing->scale, 2);
        /* a hair less than its length, so that neighbours can be told apart */
        put_attribute(stream, "width", width > 2 ? width - 0.4 : fmax(width, 0.15), 2);
        putc('>', stream);
        put_tooltip(drawing, row, bar);
        fputs("</rect>\n", stream);
    }
}

/* What the picture shows, and what it cannot show one by one. */
static void put_subtitle(FILE *stream, const struct duet_gantt *gantt, const char *subtitle)
{
    double scale;
    const char *unit = duet_gantt_unit(gantt->merged_s, &scale);

    begin_text(stream, "class=\"soft\"", LEFT, TOP + LINE);
    duet_write_xml_text(stream, subtitle);
    if (gantt->merged_s > 0) {
        fputs("; pale bars are several kernels or copies, each shorter than ", stream);
        duet_write_fixed(stream, gantt->merged_s * scale, 1);
        fprintf(stream, " %s", unit);
    }
    fputs("</text>\n", stream);
}

void duet_gantt_write_svg(FILE *stream, const struct duet_recording *recording, const char *title,
                          const char *subtitle)
{
    struct duet_gantt gantt;
    struct drawing drawing = {.stream = stream, .gantt = &gantt};
    int legend = TOP + 2 * LINE + 4, y, height;

    duet_gantt_init(&gantt, recording, DUET_GANTT_SVG_BARS);
    y = put_legend(NULL, &gantt, legend) + 10;
    height = y + plot_height(&gantt) + LINE + 12;
    drawing.scale = (WIDTH - LEFT - RIGHT) / gantt.end_s;
    drawing.unit = duet_gantt_unit(gantt.end_s, &drawing.unit_scale);
    drawing.top = y;
    drawing.bottom = y + plot_height(&gantt);
    fprintf(stream,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\">\n",
            WIDTH, height, WIDTH, height);
    put_style(stream);
    fputs("<rect class=\"back\" width=\"100%\" height=\"100%\"/>\n", stream);
    put_text(stream, "class=\"title\"", LEFT, TOP, title);
    put_subtitle(stream, &gantt, subtitle);
    put_legend(stream, &gantt, legend);
    put_axis(&drawing);
    for (size_t i = 0; i < gantt.row_count; i++) {
        y += row_gap(&gantt, i);
        put_row(&drawing, &gantt.rows[i], y);
        y += row_height(&gantt.rows[i]);
    }
    fputs("</svg>\n", stream);
    duet_gantt_fini(&gantt);
}
