/* SPDX-License-Identifier: Apache-2.0 */
/* Plots of a comparison's page: first against second, and the errors along a line. */
#include "report/html_cases.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "report/gantt.h"
#include "report/validation_parts.h"

/* In pixels at full width; narrow, so that text stays readable on a phone. */
enum {
    WIDTH = 500,
    LEFT = 66,
    RIGHT = 14,
    TOP = 12,
    SIDE = WIDTH - LEFT - RIGHT, /* of the square plot */
    AXIS = 44,                   /* room below for figures and a name */
    MARK = 9,                    /* width of a mark, more or less */
    LANES = 7,                   /* for marks that would hide each other */
    ROW = 66,                    /* of a workload */
};

/* The band that is drawn around equality: what the project aims at. */
static const double band = 0.05;

/* Outlines around 0, 0. */
static const char *const forms[] = {
    "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0Z",
    "M-4-4H4V4H-4Z",
    "M0-5.2L5 3.8H-5Z",
    "M0-5.8L5 0L0 5.8L-5 0Z",
    "M0 5.2L5-3.8H-5Z",
    "M-1.7-5H1.7V-1.7H5V1.7H1.7V5H-1.7V1.7H-5V-1.7H-1.7Z",
    "M0-2.4L2.6-5L5-2.6L2.4 0L5 2.6L2.6 5L0 2.4L-2.6 5L-5 2.6L-2.4 0L-5-2.6L-2.6-5Z",
    "M-5 0L-2.5-4.4H2.5L5 0L2.5 4.4H-2.5Z",
};

static unsigned find_name(GPtrArray *names, const char *name)
{
    for (unsigned i = 0; i < names->len; i++)
        if (strcmp(g_ptr_array_index(names, i), name) == 0)
            return i;
    g_ptr_array_add(names, (gpointer)(uintptr_t)name);
    return names->len - 1;
}

struct duet__marks duet__marks_of(const struct duet_validation *validation)
{
    struct duet__marks marks = {g_ptr_array_new(), g_ptr_array_new()};

    for (size_t i = 0; i < validation->case_count; i++) {
        find_name(marks.workloads, validation->cases[i].workload);
        find_name(marks.policies, validation->cases[i].policy);
    }
    return marks;
}

void duet__marks_fini(struct duet__marks *marks)
{
    g_ptr_array_free(marks->workloads, TRUE);
    g_ptr_array_free(marks->policies, TRUE);
}

static const char *form_of(const struct duet__marks *marks, const struct duet_case *the)
{
    return forms[find_name(marks->policies, the->policy) % G_N_ELEMENTS(forms)];
}

static const char *colour_of(const struct duet__marks *marks, const struct duet_case *the)
{
    return duet_gantt_kernel_colour(find_name(marks->workloads, the->workload));
}

static void put_icon(FILE *stream, const char *form, const char *colour)
{
    fprintf(stream,
            "<svg class=\"icon\" viewBox=\"-6 -6 12 12\" aria-hidden=\"true\"><path d=\"%s\" "
            "style=\"fill:%s\"/></svg>",
            form, colour);
}

void duet__html_mark(FILE *stream, const struct duet__marks *marks, const struct duet_case *the)
{
    put_icon(stream, form_of(marks, the), colour_of(marks, the));
}

void duet__html_marks_legend(FILE *stream, const struct duet__marks *marks)
{
    fputs("<ul class=\"legend\">", stream);
    for (unsigned i = 0; i < marks->workloads->len; i++) {
        fprintf(stream, "<li><i style=\"background:%s\"></i>", duet_gantt_kernel_colour(i));
        duet__html_text(stream, "", g_ptr_array_index(marks->workloads, i), "</li>");
    }
    for (unsigned i = 0; i < marks->policies->len; i++) {
        fputs("<li>", stream);
        put_icon(stream, forms[i % G_N_ELEMENTS(forms)], "var(--soft)");
        duet__html_text(stream, "", g_ptr_array_index(marks->policies, i), "</li>");
    }
    fputs("</ul>\n", stream);
}

static void put_attribute(FILE *stream, const char *name, double value)
{
    fprintf(stream, " %s=\"", name);
    duet_write_fixed(stream, value, 1);
    putc('"', stream);
}

/* A grid line from x1, y1 to x2, y2. */
static void put_line(FILE *stream, const char *class, double x1, double y1, double x2, double y2)
{
    fprintf(stream, "<line class=\"%s\"", class);
    put_attribute(stream, "x1", x1);
    put_attribute(stream, "y1", y1);
    put_attribute(stream, "x2", x2);
    put_attribute(stream, "y2", y2);
    fputs("/>", stream);
}

static void put_label(FILE *stream, const char *anchor, double x, double y, const char *text)
{
    fprintf(stream, "<text class=\"soft\" text-anchor=\"%s\"", anchor);
    put_attribute(stream, "x", x);
    put_attribute(stream, "y", y);
    duet__html_text(stream, ">", text, "</text>\n");
}

void duet__html_mark_at(FILE *stream, const struct duet_validation *validation,
                        const struct duet_validation_figures *figures,
                        const struct duet__marks *marks, size_t index, double x, double y)
{
    const struct duet_case *the = &validation->cases[index];
    const struct duet_case_figures *f = &figures->cases[index];

    fprintf(stream, "<a class=\"mark\" href=\"#case-%zu\" data-case=\"%zu\">", index, index);
    duet__html_own(stream, "<title>", duet__case_name(the), "\n");
    duet__html_text(stream, "", validation->first_name, " ");
    duet__html_own(stream, "", duet__time_text(f->predicted.median, false), ", ");
    duet__html_text(stream, "", validation->second_name, " ");
    duet__html_own(stream, "", duet__time_text(f->measured.median, false), ": ");
    duet__html_own(stream, "", duet__percent_text(f->error),
                   "</title><path transform=\"translate(");
    duet_write_fixed(stream, x, 1);
    putc(' ', stream);
    duet_write_fixed(stream, y, 1);
    fprintf(stream, ")\" d=\"%s\" style=\"fill:%s\"/></a>\n", form_of(marks, the),
            colour_of(marks, the));
}

/* ------------------------------------------------------------------------------------------- */
/* First against second                                                                         */

/* Both axes: from `low` to `high` seconds. */
struct axes {
    FILE *stream;
    double low, high;
};

static double place(const struct axes *axes, double seconds)
{
    return SIDE * log(seconds / axes->low) / log(axes->high / axes->low);
}

static double at_x(const struct axes *axes, double seconds)
{
    return LEFT + place(axes, seconds);
}

static double at_y(const struct axes *axes, double seconds)
{
    return TOP + SIDE - place(axes, seconds);
}

/* What both axes have to hold, and a little more; false: nothing. */
static bool find_range(const struct duet_validation_figures *figures, size_t count,
                       struct axes *axes)
{
    axes->low = INFINITY;
    axes->high = 0;
    for (size_t i = 0; i < count; i++) {
        const struct duet_case_figures *f = &figures->cases[i];

        if (isnan(f->error) || !(f->predicted.median > 0))
            continue;
        axes->low = fmin(axes->low, fmin(f->predicted.median, f->measured.median));
        axes->high = fmax(axes->high, fmax(f->predicted.median, f->measured.median));
    }
    if (!(axes->high > 0))
        return false;
    double room = fmax(pow(axes->high / axes->low, 0.06), 1.1);
    axes->low /= room;
    axes->high *= room;
    return true;
}

/* One tick on both axes. */
static void put_tick(const struct axes *axes, double seconds)
{
    FILE *stream = axes->stream;
    double scale, x = at_x(axes, seconds), y = at_y(axes, seconds);
    const char *unit = duet_gantt_unit(seconds * (1 + 1e-9), &scale);
    char text[48];

    g_snprintf(text, sizeof(text), "%.4g %s", seconds * scale, unit);
    put_line(stream, "grid", x, TOP, x, TOP + SIDE);
    put_line(stream, "grid", LEFT, y, LEFT + SIDE, y);
    put_label(stream, "middle", x, TOP + SIDE + 17, text);
    put_label(stream, "end", LEFT - 7, y + 4.5, text);
}

/* Powers of ten, with twice and five times them where there is room; on a short axis even steps. */
static void put_ticks(const struct axes *axes)
{
    static const double parts[] = {1, 2, 5};
    double decades = log10(axes->high / axes->low), step;

    if (decades < 0.7) {
        step = duet_gantt_tick(axes->high - axes->low, 4);
        for (int i = (int)ceil(axes->low / step); i * step <= axes->high; i++)
            put_tick(axes, i * step);
        return;
    }
    for (int k = (int)floor(log10(axes->low)); pow(10, k) <= axes->high; k++)
        for (size_t i = 0; i < (decades < 2.2 ? G_N_ELEMENTS(parts) : 1); i++)
            if (pow(10, k) * parts[i] >= axes->low && pow(10, k) * parts[i] <= axes->high)
                put_tick(axes, pow(10, k) * parts[i]);
}

/* The band between two factors, cut to the plot: where first is `factor` times second. */
static void put_band(const struct axes *axes, double below, double above)
{
    const double corners[][2] = {{axes->low, axes->low * above}, {axes->high / above, axes->high},
                                 {axes->high, axes->high},       {axes->high, axes->high * below},
                                 {axes->low / below, axes->low}, {axes->low, axes->low}};

    fputs("<path class=\"band\" d=\"", axes->stream);
    for (size_t i = 0; i < G_N_ELEMENTS(corners); i++) {
        fputs(i ? "L" : "M", axes->stream);
        duet_write_fixed(axes->stream, at_x(axes, corners[i][0]), 1);
        putc(' ', axes->stream);
        duet_write_fixed(axes->stream, at_y(axes, corners[i][1]), 1);
    }
    fputs("Z\"/>", axes->stream);
}

/* Where first is `factor` times second. */
static void put_limit(const struct axes *axes, double factor)
{
    double from = fmax(axes->low, axes->low / factor);
    double to = fmin(axes->high, axes->high / factor);

    if (factor > 0 && from < to)
        put_line(axes->stream, "limit", at_x(axes, from), at_y(axes, from * factor), at_x(axes, to),
                 at_y(axes, to * factor));
}

static void put_names(const struct axes *axes, const struct duet_validation *validation)
{
    FILE *stream = axes->stream;

    put_label(stream, "middle", LEFT + SIDE / 2.0, TOP + SIDE + 37, validation->second_name);
    fprintf(stream,
            "<text class=\"soft\" text-anchor=\"middle\" transform=\"translate(13 %d) "
            "rotate(-90)\">",
            TOP + SIDE / 2);
    duet__html_text(stream, "", validation->first_name, "</text>\n");
}

void duet__html_scatter(FILE *stream, const struct duet_validation *validation,
                        const struct duet_validation_figures *figures,
                        const struct duet__marks *marks)
{
    struct axes axes = {.stream = stream};

    if (!find_range(figures, validation->case_count, &axes))
        return;
    fprintf(stream, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", WIDTH,
            TOP + SIDE + AXIS);
    duet__html_text(stream, "", validation->first_name, " against ");
    duet__html_text(stream, "", validation->second_name, "\">\n");
    put_ticks(&axes);
    put_band(&axes, 1 - band, 1 + band);
    put_line(stream, "equal", LEFT, TOP + SIDE, LEFT + SIDE, TOP);
    if (validation->fail_over > 0) {
        put_limit(&axes, 1 + validation->fail_over);
        put_limit(&axes, 1 - validation->fail_over);
    }
    put_names(&axes, validation);
    for (size_t i = 0; i < validation->case_count; i++) {
        const struct duet_case_figures *f = &figures->cases[i];

        if (!isnan(f->error) && f->predicted.median > 0)
            duet__html_mark_at(stream, validation, figures, marks, i,
                               at_x(&axes, f->measured.median), at_y(&axes, f->predicted.median));
    }
    fputs("</svg>\n", stream);
}

/* ------------------------------------------------------------------------------------------- */
/* Errors along a line                                                                          */

/* An error, and the case it is of. */
struct dot {
    double error;
    size_t index;
};

static int compare_dots(const void *left, const void *right)
{
    const struct dot *a = left, *b = right;

    return (a->error > b->error) - (a->error < b->error);
}

/* The axis: from `low` to `high`, with 0 and the band in it. */
struct line {
    double low, high;
};

static double on_line(const struct line *line, double error)
{
    return RIGHT + (WIDTH - 2 * RIGHT) * (error - line->low) / (line->high - line->low);
}

/* Marks of one workload, ascending, in the first lane where they hide none. */
static void put_dots(FILE *stream, const struct duet_validation *validation,
                     const struct duet_validation_figures *figures, const struct duet__marks *marks,
                     const struct line *line, const struct dot *dots, size_t count, double middle)
{
    double ends[LANES];

    for (int i = 0; i < LANES; i++)
        ends[i] = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        double x = on_line(line, dots[i].error);
        int lane = 0;

        while (lane < LANES - 1 && x - ends[lane] < MARK)
            lane++;
        if (x - ends[lane] < MARK) /* all are full */
            lane = (int)(i % LANES);
        ends[lane] = x;
        /* 0, 1 above, 1 below, 2 above, ... */
        int step = (lane + 1) / 2 * (lane % 2 ? -1 : 1);
        duet__html_mark_at(stream, validation, figures, marks, dots[i].index, x,
                           middle + step * (MARK - 2));
    }
}

static void put_scale(FILE *stream, const struct line *line, double bottom)
{
    double step = duet_gantt_tick(line->high - line->low, 8);
    double inside[] = {on_line(line, -band), on_line(line, band)};

    fputs("<rect class=\"band\"", stream);
    put_attribute(stream, "x", inside[0]);
    put_attribute(stream, "y", TOP);
    put_attribute(stream, "width", inside[1] - inside[0]);
    put_attribute(stream, "height", bottom - TOP);
    fputs("/>\n", stream);
    for (int i = (int)ceil(line->low / step); i * step <= line->high; i++) {
        double x = on_line(line, i * step);
        bool zero = i == 0;
        char text[32];

        g_snprintf(text, sizeof(text), zero ? "0" : "%+.4g %%", i * step * 100);
        put_line(stream, zero ? "equal" : "grid", x, TOP, x, bottom);
        put_label(stream, "middle", CLAMP(x, 24, WIDTH - 24), bottom + 17, text);
    }
}

/* The known errors of a workload, ascending, into `dots`; how many. */
static size_t find_dots(const struct duet_validation *validation,
                        const struct duet_validation_figures *figures, const char *workload,
                        struct dot *dots)
{
    size_t count = 0;

    for (size_t i = 0; i < validation->case_count; i++)
        if (!isnan(figures->cases[i].error) &&
            (!workload || strcmp(validation->cases[i].workload, workload) == 0))
            dots[count++] = (struct dot){figures->cases[i].error, i};
    qsort(dots, count, sizeof(*dots), compare_dots);
    return count;
}

void duet__html_strip(FILE *stream, const struct duet_validation *validation,
                      const struct duet_validation_figures *figures,
                      const struct duet__marks *marks)
{
    struct dot *dots = g_new0(struct dot, validation->case_count + 1);
    size_t known = find_dots(validation, figures, NULL, dots);
    struct line line = {-band * 1.2, band * 1.2};
    double bottom = TOP + (double)marks->workloads->len * ROW;

    if (known) {
        double room = (dots[known - 1].error - dots[0].error) * 0.05;

        line.low = fmin(line.low, dots[0].error - room);
        line.high = fmax(line.high, dots[known - 1].error + room);
        fprintf(stream, "<svg viewBox=\"0 0 %d %.0f\" role=\"img\" aria-label=\"%ss\">\n", WIDTH,
                bottom + 26, duet__error_word(validation));
        put_scale(stream, &line, bottom);
        for (unsigned i = 0; i < marks->workloads->len; i++) {
            const char *workload = g_ptr_array_index(marks->workloads, i);
            size_t count = find_dots(validation, figures, workload, dots);

            if (i)
                put_line(stream, "grid", 0, TOP + i * (double)ROW, WIDTH, TOP + i * (double)ROW);
            put_label(stream, "start", 2, TOP + i * (double)ROW + 14, workload);
            put_dots(stream, validation, figures, marks, &line, dots, count,
                     TOP + (i + 0.5) * ROW + 4);
        }
        fputs("</svg>\n", stream);
    }
    g_free(dots);
}
