/* SPDX-License-Identifier: Apache-2.0 */
/* A Gantt chart as a self-contained SVG picture. */
#include "report/gantt.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/svg.h"

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
