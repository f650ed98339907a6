/* SPDX-License-Identifier: Apache-2.0 */
/* A Gantt chart as a self-contained SVG picture. The command's numbers have a '.' in every locale.
 */
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

static const char style[] =
    "<style>svg{font:12px system-ui,sans-serif;--back:#fff;--text:#24292f;--soft:#656d76;"
    "--line:#e4e8ec}@media (prefers-color-scheme:dark){svg{--back:#16191d;--text:#e6e9ec;"
    "--soft:#98a2ac;--line:#2b3137}}.back{fill:var(--back,#fff)}text{fill:var(--text,#24292f)}"
    ".title{font-size:16px;font-weight:600}.soft{fill:var(--soft,#656d76)}"
    ".grid{stroke:var(--line,#e4e8ec);stroke-width:1}.merged{opacity:.55}</style>\n"
    "<rect class=\"back\" width=\"100%\" height=\"100%\"/>\n";

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

/* `attributes` is what else the element has; the text is freed. */
static void put_text(FILE *stream, const char *attributes, double x, int y, char *text)
{
    fprintf(stream, "<text %s x=\"%.1f\" y=\"%d\">", attributes, x, y);
    duet_write_xml_text(stream, text);
    fputs("</text>\n", stream);
    g_free(text);
}

static const char *colour_of(enum duet_gantt_lane lane, size_t colour)
{
    return lane == DUET_GANTT_KERNELS ? duet_gantt_colours[colour % DUET_GANTT_COLOURS]
                                      : duet_gantt_copy_colours[colour % DUET_GANTT_COPIES];
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
            fprintf(stream, "<rect fill=\"%s\" x=\"%d\" y=\"%d\" width=\"14\" height=\"%d\"/>",
                    colour_of(kernel ? DUET_GANTT_KERNELS : DUET_GANTT_IN, colour), x,
                    kernel ? y - 10 : y - 7, kernel ? 12 : 6);
            put_text(stream, "", x + 20, y, g_strdup(name));
        }
        x += width;
    }
    return y;
}

/* The time axis of rows between two heights: grid lines, and dates with about 12 of them. */
static void put_axis(FILE *stream, const struct duet_gantt *gantt, int top, int bottom)
{
    double scale, step, power;
    const char *unit = duet_gantt_unit(gantt->end_s, &scale);

    step = gantt->end_s * scale / 12;
    power = pow(10, floor(log10(step)));
    step = power * (step <= power ? 1 : step <= 2 * power ? 2 : step <= 5 * power ? 5 : 10);
    for (size_t i = 0; (double)i * step <= gantt->end_s * scale * (1 + 1e-9); i++) {
        double x = LEFT + (double)i * step / (gantt->end_s * scale) * (WIDTH - LEFT - RIGHT);

        fprintf(stream, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>", x, x,
                top, bottom + 4);
        put_text(stream, "class=\"soft\" text-anchor=\"middle\"", x, bottom + LINE,
                 g_strdup_printf("%.6g %s", (double)i * step, unit));
    }
}

static void put_tooltip(FILE *stream, const struct duet_gantt *gantt,
                        const struct duet_gantt_row *row, const struct duet_gantt_bar *bar)
{
    const struct duet_recording *recording = gantt->recording;
    const struct duet_node *nodes = recording->machine->nodes;
    double scale;
    const char *unit = duet_gantt_unit(gantt->end_s, &scale);

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
    fprintf(stream, ", from %.6f %s for %.3f ms</title>", bar->start_s * scale, unit,
            (bar->end_s - bar->start_s) * 1e3);
}

static void put_row(FILE *stream, const struct duet_gantt *gantt, const struct duet_gantt_row *row,
                    int y)
{
    double scale = (WIDTH - LEFT - RIGHT) / gantt->end_s;
    int height = row_height(row);

    if (row->lane == DUET_GANTT_KERNELS)
        put_text(stream, "text-anchor=\"end\"", LEFT - 8, y + height - 4, g_strdup(row->name));
    for (guint i = 0; i < row->bars->len; i++) {
        const struct duet_gantt_bar *bar = duet_gantt_bar(row, i);
        double width = (bar->end_s - bar->start_s) * scale;

        /* a hair less wide than it is long, so that neighbours can be told apart */
        fprintf(stream, "<rect fill=\"%s\"%s x=\"%.2f\" width=\"%.2f\" y=\"%d\" height=\"%d\">",
                colour_of(row->lane, bar->colour), bar->count > 1 ? " class=\"merged\"" : "",
                LEFT + bar->start_s * scale, width > 2 ? width - 0.4 : fmax(width, 0.15), y,
                height);
        put_tooltip(stream, gantt, row, bar);
        fputs("</rect>\n", stream);
    }
}

/* What the picture shows, and what it cannot show one by one. */
static char *subtitle_text(const struct duet_gantt *gantt, const char *subtitle)
{
    double scale;
    const char *unit = duet_gantt_unit(gantt->merged_s, &scale);

    if (!(gantt->merged_s > 0))
        return g_strdup(subtitle);
    return g_strdup_printf("%s; pale bars are several kernels or copies, each shorter than %.1f %s",
                           subtitle, gantt->merged_s * scale, unit);
}

void duet_gantt_write_svg(FILE *stream, const struct duet_recording *recording, const char *title,
                          const char *subtitle)
{
    struct duet_gantt gantt;
    int legend = TOP + 2 * LINE + 4, y, bottom;

    duet_gantt_init(&gantt, recording, DUET_GANTT_SVG_BARS);
    y = put_legend(NULL, &gantt, legend) + 10;
    bottom = y + plot_height(&gantt);
    fprintf(stream,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\">\n%s",
            WIDTH, bottom + LINE + 12, WIDTH, bottom + LINE + 12, style);
    put_text(stream, "class=\"title\"", LEFT, TOP, g_strdup(title));
    put_text(stream, "class=\"soft\"", LEFT, TOP + LINE, subtitle_text(&gantt, subtitle));
    put_legend(stream, &gantt, legend);
    put_axis(stream, &gantt, y, bottom);
    for (size_t i = 0; i < gantt.row_count; i++) {
        y += row_gap(&gantt, i);
        put_row(stream, &gantt, &gantt.rows[i], y);
        y += row_height(&gantt.rows[i]);
    }
    fputs("</svg>\n", stream);
    duet_gantt_fini(&gantt);
}
