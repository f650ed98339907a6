/* SPDX-License-Identifier: Apache-2.0 */
/* A Gantt chart as a self-contained SVG picture. */
#include "report/gantt.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
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

static unsigned row_node(const struct duet_gantt *gantt, size_t row)
{
    unsigned index = gantt->rows[row].index;

    if (gantt->rows[row].lane != DUET_GANTT_KERNELS)
        return index;
    return gantt->recording->machine->workers[index].node;
}

/* Space between a row and the one above it. */
static int row_gap(const struct duet_gantt *gantt, size_t row)
{
    return row > 0 && row_node(gantt, row) != row_node(gantt, row - 1) ? DEVICE_GAP : GAP;
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
          ".grid{stroke:var(--line,#e4e8ec);stroke-width:1}",
          stream);
    for (size_t i = 0; i < 8; i++)
        fprintf(stream, ".k%zu{fill:%s}", i, duet_gantt_kernel_colour(i));
    for (int i = 0; i < DUET_GANTT_COPIES; i++)
        fprintf(stream, ".c%d{fill:%s}", i, duet_gantt_copy_colour((enum duet_gantt_copy)i));
    fputs("</style>\n", stream);
}

static void put_class(FILE *stream, bool kernel, size_t colour)
{
    fprintf(stream, "class=\"%c%zu\"", kernel ? 'k' : 'c', kernel ? colour % 8 : colour);
}

/*
 * One entry of the legend at *x, *y; moves them on, to a new line where the picture ends. Without
 * a stream only that.
 */
static void put_legend_entry(FILE *stream, bool kernel, size_t colour, const char *name, int *x,
                             int *y)
{
    int width = 20 + (int)strlen(name) * CHARACTER + 28;

    if (*x + width > WIDTH - RIGHT && *x > LEFT) {
        *x = LEFT;
        *y += LINE;
    }
    *x += width;
    if (!stream)
        return;
    fputs("<rect ", stream);
    put_class(stream, kernel, colour);
    fprintf(stream, " x=\"%d\" y=\"%d\" width=\"14\" height=\"%d\" rx=\"2\"/>", *x - width,
            kernel ? *y - 10 : *y - 7, kernel ? 12 : 6);
    fprintf(stream, "<text x=\"%d\" y=\"%d\">", *x - width + 20, *y);
    duet_write_xml_text(stream, name);
    fputs("</text>\n", stream);
}

/* Marks what colours the bars have. `used` holds kernel_count + DUET_GANTT_COPIES flags. */
static void find_used(const struct duet_gantt *gantt, bool *used)
{
    size_t kernels = gantt->recording->kernel_count;

    for (size_t r = 0; r < gantt->row_count; r++) {
        const struct duet_gantt_row *row = &gantt->rows[r];

        for (size_t i = row->first; i < row->first + row->count; i++) {
            size_t colour = gantt->bars[i].colour;

            if (row->lane != DUET_GANTT_KERNELS)
                used[kernels + colour] = true;
            else if (colour < kernels)
                used[colour] = true;
        }
    }
}

/* Writes the legend from baseline `y` on; returns the last baseline. NULL stream: only that. */
static int put_legend(FILE *stream, const struct duet_gantt *gantt, int y)
{
    size_t kernels = gantt->recording->kernel_count;
    bool *used = calloc(kernels + DUET_GANTT_COPIES, sizeof(*used));
    int x = LEFT;

    if (!used)
        return y;
    find_used(gantt, used);
    for (size_t i = 0; i < kernels; i++)
        if (used[i])
            put_legend_entry(stream, true, i, gantt->recording->kernels[i], &x, &y);
    for (size_t i = 0; i < DUET_GANTT_COPIES; i++)
        if (used[kernels + i])
            put_legend_entry(stream, false, i, duet_gantt_copy_name((enum duet_gantt_copy)i), &x,
                             &y);
    free(used);
    return y;
}

/* A number without trailing zeros, for ticks. */
static void put_tick(FILE *stream, double value)
{
    char text[32];

    snprintf(text, sizeof(text), "%.6g", value);
    for (char *at = text; *at; at++)
        if (*at == ',')
            *at = '.';
    fputs(text, stream);
}

static void put_axis(const struct drawing *drawing)
{
    FILE *stream = drawing->stream;
    double end = drawing->gantt->end_s * drawing->unit_scale;
    double step = duet_gantt_tick(end, 12);

    for (size_t i = 0; (double)i * step <= end * (1 + 1e-9); i++) {
        double x = LEFT + (double)i * step / drawing->unit_scale * drawing->scale;

        fputs("<line class=\"grid\" x1=\"", stream);
        duet_write_fixed(stream, x, 1);
        fputs("\" x2=\"", stream);
        duet_write_fixed(stream, x, 1);
        fprintf(stream, "\" y1=\"%d\" y2=\"%d\"/>", drawing->top, drawing->bottom + 4);
        fputs("<text class=\"soft\" text-anchor=\"middle\" x=\"", stream);
        duet_write_fixed(stream, x, 1);
        fprintf(stream, "\" y=\"%d\">", drawing->bottom + LINE);
        put_tick(stream, (double)i * step);
        fprintf(stream, " %s</text>\n", drawing->unit);
    }
}

static void put_dates(const struct drawing *drawing, const struct duet_gantt_bar *bar)
{
    fputs(", from ", drawing->stream);
    duet_write_fixed(drawing->stream, bar->start_s * drawing->unit_scale, 6);
    fprintf(drawing->stream, " %s for ", drawing->unit);
    duet_write_fixed(drawing->stream, (bar->end_s - bar->start_s) * 1e3, 3);
    fputs(" ms", drawing->stream);
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
        if (bar->count == 1)
            fprintf(stream, " task %" PRIu64, bar->id);
        else
            fprintf(stream, " and others: %" PRIu32 " tasks", bar->count);
    } else if (bar->count == 1) {
        duet_write_xml_text(stream, nodes[bar->source].name);
        fputs(" to ", stream);
        duet_write_xml_text(stream, nodes[bar->destination].name);
        fprintf(stream, ", handle %" PRIu64 ", %" PRIu64 " bytes", bar->id, bar->bytes);
    } else {
        fprintf(stream, "%" PRIu32 " copies, %" PRIu64 " bytes", bar->count, bar->bytes);
    }
    put_dates(drawing, bar);
    fputs("</title>", stream);
}

static void put_row(const struct drawing *drawing, const struct duet_gantt_row *row, int y)
{
    FILE *stream = drawing->stream;
    int height = row_height(row);

    if (row->lane == DUET_GANTT_KERNELS) {
        fprintf(stream, "<text text-anchor=\"end\" x=\"%d\" y=\"%d\">", LEFT - 8, y + height - 4);
        duet_write_xml_text(stream, row->name);
        fputs("</text>\n", stream);
    }
    for (size_t i = row->first; i < row->first + row->count; i++) {
        const struct duet_gantt_bar *bar = &drawing->gantt->bars[i];
        double width = (bar->end_s - bar->start_s) * drawing->scale;

        fputs("<rect ", stream);
        put_class(stream, row->lane == DUET_GANTT_KERNELS, bar->colour);
        fputs(" x=\"", stream);
        duet_write_fixed(stream, LEFT + bar->start_s * drawing->scale, 2);
        /* a hair less than its length, so that neighbours can be told apart */
        fputs("\" width=\"", stream);
        duet_write_fixed(stream, width > 2 ? width - 0.4 : fmax(width, 0.15), 2);
        fprintf(stream, "\" y=\"%d\" height=\"%d\">", y, height);
        put_tooltip(drawing, row, bar);
        fputs("</rect>\n", stream);
    }
}

static void put_text(FILE *stream, const char *class, int y, const char *text)
{
    fprintf(stream, "<text class=\"%s\" x=\"%d\" y=\"%d\">", class, LEFT, y);
    duet_write_xml_text(stream, text);
    fputs("</text>\n", stream);
}

/* Height of all rows. */
static int plot_height(const struct duet_gantt *gantt)
{
    int height = GAP;

    for (size_t i = 0; i < gantt->row_count; i++)
        height += row_gap(gantt, i) + row_height(&gantt->rows[i]);
    return height;
}

void duet_gantt_write_svg(FILE *stream, const struct duet_gantt *gantt, const char *title,
                          const char *subtitle)
{
    struct drawing drawing = {.stream = stream, .gantt = gantt};
    int legend = TOP + (subtitle ? LINE : 0) + LINE + 4;
    int y = put_legend(NULL, gantt, legend) + 10;
    int height = y + plot_height(gantt) + LINE + 12;

    drawing.scale = (WIDTH - LEFT - RIGHT) / gantt->end_s;
    drawing.unit = duet_gantt_unit(gantt->end_s, &drawing.unit_scale);
    drawing.top = y;
    drawing.bottom = y + plot_height(gantt);
    fprintf(stream,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\">\n",
            WIDTH, height, WIDTH, height);
    put_style(stream);
    fputs("<rect class=\"back\" width=\"100%\" height=\"100%\"/>\n", stream);
    put_text(stream, "title", TOP, title);
    if (subtitle)
        put_text(stream, "soft", TOP + LINE, subtitle);
    put_legend(stream, gantt, legend);
    put_axis(&drawing);
    for (size_t i = 0; i < gantt->row_count; i++) {
        y += row_gap(gantt, i);
        put_row(&drawing, &gantt->rows[i], y);
        y += row_height(&gantt->rows[i]);
    }
    fputs("</svg>\n", stream);
}
