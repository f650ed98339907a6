/* SPDX-License-Identifier: Apache-2.0 */
/* The charts of a study as files for papers: each as SVG, and the numbers behind it as CSV. */
#include <math.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"
#include "base/table.h"
#include "report/gantt.h"
#include "study/answer.h"

/* Sizes in units of the picture. */
enum {
    LEFT = 56, /* place for the numbers of an axis */
    WIDTH = 400,
    TOP = 50,
    HEIGHT = 240,
    LINE = 17,     /* of text */
    CHARACTER = 8, /* width of one, or less */
    PROBLEMS = 12, /* charts over a setting, of different problems */
};

/* A setting that varies. Places are levels in the order of an axis. */
struct factor {
    const char *name;
    guint index; /* among those that vary */
    size_t count;
    char *const *texts;           /* by level */
    char **names;                 /* by place, shortened */
    double *numbers;              /* by place; NULL: some level is no number */
    size_t *places, *levels;      /* by level, and by place */
    struct duet__ranking ranking; /* of its levels; none where it belongs to the problem */
};

enum { MAKESPAN, SPEED, BOUND, SPEEDUP, EFFICIENCY, MEASURES };
static const char *const measures[] = {"makespan", "speed", "bound", "speedup", "efficiency"};

struct point {
    const struct duet__cell *cell; /* of lines */
    size_t x, by;                  /* places; of others, a setting and its level */
    double y;
};

struct chart {
    const struct duet__results *results;
    const struct factor *x, *by; /* by: NULL: one line without a name; effects: all from x on */
    char *name, *title;
    int measure;
    double from;       /* number of nodes or GPUs whose speed-up and efficiency are 1 */
    GArray *points;    /* struct point */
    int width, height; /* written by `draw` */
    void (*draw)(GString *svg, struct chart *chart);
    void (*row)(struct duet__json_writer *csv, const struct chart *chart,
                const struct point *point);
};

static const struct point *point_of(const struct chart *chart, guint index)
{
    return &g_array_index(chart->points, struct point, index);
}

/* ------------------------------------------------------------------------------------------- */
/* Marks and axes                                                                               */

static const char style[] =
    "<style>svg{font:13px Helvetica,Arial,sans-serif}text{fill:#222}.grid{stroke:#ddd}"
    ".axis{stroke:#333;fill:none}.ideal{stroke:#888;stroke-dasharray:3 4}"
    ".together{stroke:#333;stroke-width:4}</style>\n"
    "<rect fill=\"#fff\" width=\"100%\" height=\"100%\"/>\n";

/* Appends a mark, whose form tells levels apart without colours; as those of the page. */
static void put_mark(GString *svg, double x, double y, size_t level)
{
    static const char *const forms[] =
        {"M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0Z",
         "M-4-4H4V4H-4Z",
         "M0-5.2L5 3.8H-5Z",
         "M0-5.8L5 0L0 5.8L-5 0Z",
         "M0 5.2L5-3.8H-5Z",
         "M-1.7-5H1.7V-1.7H5V1.7H1.7V5H-1.7V1.7H-5V-1.7H-1.7Z",
         "M0-2.4L2.6-5L5-2.6L2.4 0L5 2.6L2.6 5L0 2.4L-2.6 5L-5 2.6L-2.4 0L-5-2.6L-2.6-5Z",
         "M-5 0L-2.5-4.4H2.5L5 0L2.5 4.4H-2.5Z"};
    duet__svg_put(svg, "<path fill=\"%s\" d=\"%s\" transform=\"translate(%.1f %.1f)\"/>\n",
                  duet__svg_colours[level % DUET__SVG_COLOURS],
                  forms[(level + level / DUET__SVG_COLOURS) % G_N_ELEMENTS(forms)], x, y);
}

/* Appends a text whose `anchor` is at x: "start", "middle" or "end". */
static void put_text(GString *svg, double x, double y, const char *anchor, const char *text)
{
    duet__svg_put(svg, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor,
                  text);
}

static double longest(const struct factor *factor)
{
    size_t most = 0;
    for (size_t i = 0; i < factor->count; i++)
        most = MAX(most, duet__text_width(factor->names[i]));
    return (double)most * CHARACTER;
}

/* Returns the coordinate of a place on its axis. The axis is logarithmic if numbers grow by one
   factor, or if the first two of them are close together beside the whole range. */
static double along(const struct factor *x, size_t place)
{
    const double *numbers = x->numbers;
    if (!numbers)
        return LEFT + WIDTH * ((double)place + 0.5) / (double)x->count;
    const double least = numbers[0], range = numbers[x->count - 1] - least;
    const double step = least > 0 && x->count > 2 ? numbers[1] - least : 0;
    bool geometric = step > 0;
    double part = range > 0 ? (numbers[place] - least) / range : 0.5;
    for (size_t i = 2; geometric && i < x->count; i++)
        geometric = fabs(numbers[i] / numbers[i - 1] / (1 + step / least) - 1) < 0.01;
    if (geometric || (step > 0 && range > 10 * (double)(x->count - 1) * step))
        part = log(numbers[place] / least) / log1p(range / least);
    return LEFT + 12 + (WIDTH - 24) * part;
}

/* Appends the axis of a setting; names without room are turned, those of numbers left out. */
static void put_levels(GString *svg, struct chart *chart, double bottom)
{
    const struct factor *x = chart->x;
    const double most = longest(x);
    const bool turned = !x->numbers && most + CHARACTER > WIDTH / (double)x->count;
    g_autofree char *title = g_strdelimit(g_strdup(x->name), "_", ' ');
    double last = 0;
    for (size_t i = 0; i < x->count; i++) {
        const double at = along(x, i), half = (double)duet__text_width(x->names[i]) * CHARACTER / 2;
        duet__svg_put(svg, "<path class=\"axis\" d=\"M%.1f %.1fv5\"/>\n", at, bottom);
        if (turned) {
            duet__svg_put(svg, "<g transform=\"translate(%.1f %.1f) rotate(-35)\">", at + 4,
                          bottom + 16);
            put_text(svg, 0, 0, "end", x->names[i]);
            g_string_append(svg, "</g>");
        } else if (at - half >= last) {
            put_text(svg, at, bottom + 19, "middle", x->names[i]);
            last = at + half;
        }
    }
    bottom += turned ? 14 + most * 0.57 : 19;
    put_text(svg, LEFT + WIDTH / 2., bottom + 19, "middle", title);
    chart->height = (int)bottom + 30;
}

/* A scale of values, and its place in the picture. */
struct scale {
    double low, high, bottom;
    double unit; /* factor of the numbers that are printed: 1000 shows seconds as ms */
    bool logarithmic;
};

static double up(const struct scale *scale, double value)
{
    const double part = scale->logarithmic ? log(value / scale->low) / log(scale->high / scale->low)
                                           : value / scale->high;
    return scale->bottom - part * (scale->bottom - TOP);
}

static void put_tick(GString *svg, const struct scale *scale, double value)
{
    g_autofree char *digits = g_strdup_printf("%.4g", value * scale->unit);
    const double y = up(scale, value);
    if (value < scale->low || value > scale->high)
        return;
    duet__svg_put(svg, "<path class=\"grid\" d=\"M%d %.1fh%d\"/>\n", LEFT, y, WIDTH);
    put_text(svg, LEFT - 7, y + 4.5, "end", digits);
}

/* Returns the speed-up or efficiency of a speed that is proportional to the number of nodes or
   GPUs at a place; 0: the chart has another measure. */
static double ideal_at(const struct chart *chart, size_t place)
{
    return chart->measure == SPEEDUP ? chart->x->numbers[place] / chart->from
                                     : chart->measure == EFFICIENCY;
}

/* Returns half the width of the 95 % interval of a point's mean makespan; 0: none is shown. */
static double reach_of(const struct chart *chart, const struct point *point)
{
    const double reach_s = point->cell->reach_s;
    return chart->measure == MAKESPAN && isfinite(reach_s) ? reach_s : 0;
}

/* Appends the scale of values. It begins at 0; that of makespans over a wide range is logarithmic.
 */
static struct scale put_scale(GString *svg, const struct chart *chart, double bottom)
{
    static const char *const names[] = {"makespan, s", "GFlop/s", "lower bound / makespan, %",
                                        "speed-up", "efficiency"};
    struct scale scale = {.low = INFINITY,
                          .bottom = bottom,
                          .unit = 1,
                          .high = ideal_at(chart, chart->x->count - 1)};
    const char *name = names[chart->measure];
    for (guint i = 0; i < chart->points->len; i++) {
        scale.low = fmin(scale.low, point_of(chart, i)->y / 1.1);
        scale.high =
            fmax(scale.high, 1.04 * (point_of(chart, i)->y + reach_of(chart, point_of(chart, i))));
    }
    if (chart->measure == MAKESPAN && scale.high < 1) {
        scale.unit = scale.high < 1e-3 ? 1e6 : 1e3;
        name = scale.high < 1e-3 ? "makespan, \xc2\xb5s" : "makespan, ms";
    }
    scale.logarithmic = chart->measure == MAKESPAN && scale.high > 8 * scale.low;
    scale.low = scale.logarithmic ? scale.low : 0;
    const double step = duet__svg_step(scale.high, 6);
    const bool wide = scale.logarithmic && scale.high > 160 * scale.low;
    for (int i = 0; i * step <= scale.high && !scale.logarithmic; i++)
        put_tick(svg, &scale, i * step);
    for (int i = -9; i < 9 && scale.logarithmic; i++)
        for (int digit = 1; digit <= (wide ? 1 : 5); digit += digit == 1 ? 1 : 3)
            put_tick(svg, &scale, digit * pow(10, i));
    put_text(svg, 8, TOP - 14, "start", name);
    return scale;
}

/* ------------------------------------------------------------------------------------------- */
/* Lines                                                                                        */

/* The end of a line. */
struct line_end {
    double y;
    size_t line;
};

static int compare_ends(const void *first, const void *second)
{
    const struct line_end *a = first, *b = second;
    return a->y < b->y ? -1 : a->y > b->y ? 1 : a->line < b->line ? -1 : a->line > b->line;
}

/* Appends names at the ends of lines, apart from each other. */
static void put_names(GString *svg, const struct factor *by, struct line_end *ends, size_t count,
                      double bottom)
{
    qsort(ends, count, sizeof *ends, compare_ends);
    for (size_t i = 0; i < count; i++)
        ends[i].y = fmax(ends[i].y, i ? ends[i - 1].y + LINE : TOP);
    for (size_t i = count; i-- > 0;) {
        ends[i].y = fmin(ends[i].y, i + 1 < count ? ends[i + 1].y - LINE : bottom);
        put_mark(svg, LEFT + WIDTH + 14, ends[i].y, ends[i].line);
        put_text(svg, LEFT + WIDTH + 24, ends[i].y + 4.5, "start", by->names[ends[i].line]);
    }
}

/* Appends a line with its marks and intervals. Returns the height of its end; NAN: it has no
   points. */
static double put_line(GString *svg, const struct chart *chart, const struct scale *scale,
                       size_t line)
{
    static const char *const dashes[] = {"none", "7 3", "2 3", "9 3 2 3", "12 4", "5 2 2 2 2 2"};
    g_autoptr(GString) path = g_string_new(NULL), marks = g_string_new(NULL);
    double y = NAN;
    for (guint i = 0; i < chart->points->len; i++) {
        const struct point *point = point_of(chart, i);
        const double x = along(chart->x, point->x), reach_s = reach_of(chart, point);
        if (point->by != line)
            continue;
        y = up(scale, point->y);
        duet__svg_put(path, "%s%.1f %.1f", path->len ? "L" : "M", x, y);
        if (reach_s > 0)
            duet__svg_put(marks, "<path class=\"axis\" d=\"M%.1f %.1fV%.1f\"/>\n", x,
                          up(scale, fmax(point->y - reach_s, scale->low)),
                          up(scale, point->y + reach_s));
        put_mark(marks, x, y, line);
    }
    if (chart->x->numbers)
        duet__svg_put(svg,
                      "<path fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" "
                      "stroke-dasharray=\"%s\" d=\"%s\"/>\n",
                      duet__svg_colours[line % DUET__SVG_COLOURS],
                      dashes[line % G_N_ELEMENTS(dashes)], path->str);
    g_string_append(svg, marks->str);
    return y;
}

static void draw_lines(GString *svg, struct chart *chart)
{
    const size_t lines = chart->by ? chart->by->count : 1;
    const double bottom = TOP + fmax(HEIGHT, (double)lines * LINE);
    const struct scale scale = put_scale(svg, chart, bottom);
    struct line_end *ends = g_new(struct line_end, lines);
    size_t known = 0;
    put_levels(svg, chart, bottom);
    for (size_t i = 1; i < chart->x->count && ideal_at(chart, i) > 0; i++)
        duet__svg_put(svg, "<path class=\"ideal\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n",
                      along(chart->x, i - 1), up(&scale, ideal_at(chart, i - 1)),
                      along(chart->x, i), up(&scale, ideal_at(chart, i)));
    for (size_t i = 0; i < lines; i++) {
        ends[known] = (struct line_end){put_line(svg, chart, &scale, i), i};
        known += isfinite(ends[known].y);
    }
    duet__svg_put(svg, "<path class=\"axis\" d=\"M%d %.1fh%d\"/>\n", LEFT, bottom, WIDTH);
    chart->width = LEFT + WIDTH + 16;
    if (chart->by) {
        put_names(svg, chart->by, ends, known, bottom);
        chart->width += 16 + (int)longest(chart->by);
    }
    g_free(ends);
}

static void row_of_line(struct duet__json_writer *csv, const struct chart *chart,
                        const struct point *point)
{
    const struct duet__cell *cell = point->cell;
    for (guint i = 0; i < chart->results->varied->len; i++)
        duet__json_put_string(csv, duet__varied(chart->results, i)->name,
                              duet__level_text(chart->results, cell, i));
    duet__json_print(csv, "makespan_s: %g, reach_s: %g, gflops: %g, bound_s: %g", cell->mean_s,
                     cell->reach_s, cell->flops / cell->mean_s,
                     cell->bound_s > 0 ? cell->bound_s : NAN);
    if (chart->measure >= SPEEDUP)
        duet__json_put_number(csv, measures[chart->measure], point->y);
}

/* ------------------------------------------------------------------------------------------- */
/* Effects and rankings                                                                         */

/* Appends how far the makespans of each value are from the mean of all values of its setting. */
static void draw_effects(GString *svg, struct chart *chart)
{
    g_autoptr(GString) rows = g_string_new(NULL);
    double low = 0, high = 0, left = 0, y = TOP - 30;
    for (guint i = 0; i < chart->points->len; i++) {
        const struct factor *factor = &chart->x[point_of(chart, i)->x];
        low = fmin(low, point_of(chart, i)->y);
        high = fmax(high, point_of(chart, i)->y);
        left = fmax(left, 24 + fmax(longest(factor), (double)strlen(factor->name) * CHARACTER));
    }
    const double step = duet__svg_step(high > low ? high - low : 1, 6);
    const int first = (int)floor(low / step), last = (int)ceil(high / step);
    const double unit = WIDTH / fmax(1, last - first), zero = left - unit * first;
    for (guint i = 0; i < chart->points->len; i++) {
        const struct point *point = point_of(chart, i);
        const struct factor *factor = &chart->x[point->x];
        const double x = zero + unit * point->y / step;
        if (!i || point->x != point[-1].x) {
            g_autofree char *share = g_strdup_printf("%.1f %%", 100 * factor->ranking.share);
            y += LINE * 1.4;
            put_text(rows, 8, y + 4.5, "start", factor->name);
            put_text(rows, left + WIDTH + 70, y + 4.5, "end", share);
        }
        y += LINE;
        put_text(rows, left - 8, y + 4.5, "end", factor->names[factor->places[point->by]]);
        duet__svg_put(rows, "<path class=\"axis\" d=\"M%.1f %.1fH%.1f\"/>\n", zero, y, x);
        put_mark(rows, x, y, point->x);
    }
    for (int i = first; i <= last; i++) {
        g_autofree char *text = i ? g_strdup_printf("%+.4g %%", 100 * i * step) : g_strdup("0");
        duet__svg_put(svg, "<path class=\"%s\" d=\"M%.1f %dV%.1f\"/>\n", i ? "grid" : "axis",
                      zero + unit * i, TOP - 18, y + LINE);
        put_text(svg, zero + unit * i, y + 2 * LINE, "middle", text);
    }
    g_string_append(svg, rows->str);
    chart->width = (int)left + WIDTH + 78;
    chart->height = (int)y + 3 * LINE;
}

static void row_of_effect(struct duet__json_writer *csv, const struct chart *chart,
                          const struct point *point)
{
    const struct factor *factor = &chart->x[point->x];
    duet__json_print(csv, "setting: %s, explains: %g, value: %s, ratio: %g", factor->name,
                     factor->ranking.share, factor->texts[point->by], 1 + point->y);
}

/* Appends mean ranks along a line; those that are joined by a bar are not told apart. */
static void draw_ranking(GString *svg, struct chart *chart)
{
    const struct duet__ranking *ranking = &chart->x->ranking;
    const size_t count = chart->points->len;
    const struct point *points = point_of(chart, 0);
    const double side = 64 + longest(chart->x), left = side + 14, axis = TOP + 36;
    const double unit = (double)WIDTH / (double)(count - 1);
    const double reach = fmin(ranking->distance, (double)(count - 1)) * unit;
    const int step = count > 10 ? (int)duet__svg_step((double)count, 10) : 1;
    double first = axis + 18;
    size_t joined = 0; /* last point that the bars so far reach */
    g_autofree char *critical =
        g_strdup_printf("critical difference %.2f (Nemenyi, 5 %%)", ranking->distance);
    duet__svg_put(svg, "<path class=\"axis\" d=\"M%.1f %dv8m0 -4h%.1fm0 -4v8M%.1f %.1fh%d\"/>\n",
                  left, TOP - 14, reach, left, axis, WIDTH);
    put_text(svg, left, TOP + 9, "start", critical);
    for (int rank = 1; rank <= (int)count; rank += rank == 1 && step > 1 ? step - 1 : step) {
        g_autofree char *text = g_strdup_printf("%d", rank);
        duet__svg_put(svg, "<path class=\"axis\" d=\"M%.1f %.1fv-5\"/>\n", left + (rank - 1) * unit,
                      axis);
        put_text(svg, left + (rank - 1) * unit, axis - 9, "middle", text);
    }
    for (size_t i = 0; i < count; i++) {
        size_t last = i;
        while (last + 1 < count && points[last + 1].y < points[i].y + ranking->distance)
            last++;
        if (last == i || last <= joined)
            continue;
        joined = last;
        duet__svg_put(svg, "<path class=\"together\" d=\"M%.1f %.1fH%.1f\"/>\n",
                      left + (points[i].y - 1) * unit - 3, first - 8,
                      left + (points[last].y - 1) * unit + 3);
        first += 8;
    }
    for (size_t i = 0; i < count; i++) {
        const bool right = i >= (count + 1) / 2;
        const double y = first + LINE * (double)(right ? count - 1 - i : i) + 4;
        const double edge = right ? left + WIDTH + 14 : side;
        const char *name = chart->x->names[chart->x->places[points[i].by]];
        g_autofree char *text = right ? g_strdup_printf("(%.2f) %s", points[i].y, name)
                                      : g_strdup_printf("%s (%.2f)", name, points[i].y);
        duet__svg_put(svg, "<path class=\"axis\" d=\"M%.1f %.1fV%.1fH%.1f\"/>\n",
                      left + (points[i].y - 1) * unit, axis, y, edge);
        put_text(svg, edge + (right ? 6 : -6), y + 4.5, right ? "start" : "end", text);
    }
    chart->width = (int)(left + WIDTH + 14 + side);
    chart->height = (int)first + LINE * (int)((count + 1) / 2) + 8;
}

static void row_of_ranking(struct duet__json_writer *csv, const struct chart *chart,
                           const struct point *point)
{
    const struct duet__ranking *ranking = &chart->x->ranking;
    duet__json_print(csv, "value: %s, mean_rank: %g, p: %g, critical_difference: %g, cases: %zu",
                     chart->x->texts[point->by], point->y, ranking->against[point->by],
                     ranking->distance, ranking->cases);
}

/* ------------------------------------------------------------------------------------------- */
/* Files                                                                                        */

/* The folder, and what all its charts are of. */
struct output {
    const char *folder;
    const struct duet__results *results;
    struct factor *factors;
    struct duet__texts names; /* of charts that are written */
    struct duet_message *message;
    int error;
};

static void put_svg(FILE *stream, const void *data)
{
    struct chart chart = *(const struct chart *)data;
    g_autoptr(GString) svg = g_string_new(NULL);
    put_text(svg, 8, 18, "start", chart.title);
    chart.draw(svg, &chart);
    chart.width = MAX(chart.width, 16 + (int)duet__text_width(chart.title) * CHARACTER);
    fprintf(stream,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\">\n%s%s</svg>\n",
            chart.width, chart.height, chart.width, chart.height, style, svg->str);
}

static void put_csv(FILE *stream, const void *data)
{
    const struct chart *chart = data;
    struct duet__json_writer csv = {.stream = stream, .csv = DUET__CSV_HEADING};
    for (guint line = 0; line <= chart->points->len; line++) {
        chart->row(&csv, chart, point_of(chart, line ? line - 1 : 0));
        duet__csv_end(&csv);
    }
}

static void write_file(struct output *output, const struct chart *chart, const char *ending,
                       duet__file_fn *contents)
{
    g_autofree char *path = g_strconcat(output->folder, "/", chart->name, ending, NULL);
    if (!output->error)
        output->error = duet__file_write(path, contents, chart, output->message);
}

/* Writes both files of a chart that has points, and frees it. */
static void write_chart(struct output *output, struct chart *chart)
{
    const unsigned known = output->names.list->len;
    if (chart->points->len) {
        g_strcanon(chart->name, G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "-_.+=", '_');
        if (duet__texts_number(&output->names, chart->name) <= known) {
            char *name = g_strdup_printf("%s-%u", chart->name, known);
            g_free(chart->name);
            chart->name = name;
        }
        write_file(output, chart, ".svg", put_svg);
        write_file(output, chart, ".csv", put_csv);
    }
    g_array_unref(chart->points);
    g_free(chart->name);
    g_free(chart->title);
}

/* Returns if two cells have the same problem, whatever their settings x and by are. */
static bool same_problem(const struct output *output, const struct duet__cell *first,
                         const struct duet__cell *second, const struct factor *x,
                         const struct factor *by)
{
    for (guint i = 0; i < output->results->problem_varied; i++)
        if (i != x->index && !(by && i == by->index) && first->levels[i] != second->levels[i])
            return false;
    return true;
}

/*
 * Returns what charts are of: "cholesky on idgraf, n 9600; best of tile". With a cell
 * (NULL: charts of all problems) the settings of its problem are added to *file, the chart's name.
 */
static char *title_of(const struct output *output, const struct duet__cell *cell,
                      const struct factor *x, const struct factor *by, GString *file)
{
    const GPtrArray *constants = output->results->constants;
    GString *title = g_string_new(NULL), *best = g_string_new(NULL);
    for (guint i = 0; i < constants->len; i += 2) {
        const char *name = constants->pdata[i];
        g_autofree char *value = g_strdup(constants->pdata[i + 1]);
        duet__names_shorten(&value, 1, 0);
        if (!strcmp(name, "workload") || !strcmp(name, "program"))
            g_string_prepend(title, value);
        else if (!strcmp(name, "platform"))
            g_string_append_printf(title, " on %s", value);
        else if (!strcmp(name, "n") || !strcmp(name, "precision"))
            g_string_append_printf(title, ", %s %s", name, value);
    }
    for (guint i = 0; i < output->results->varied->len && cell; i++) {
        const struct factor *factor = &output->factors[i];
        const char *value = factor->names[factor->places[cell->levels[i]]];
        if (factor == x || factor == by)
            continue;
        if (i >= output->results->problem_varied) {
            g_string_append_printf(best, "%s%s", best->len ? ", " : "; best of ", factor->name);
            continue;
        }
        if (!strcmp(factor->name, "workload"))
            g_string_prepend(title, value);
        else
            g_string_append_printf(title, ", %s %s", factor->name, value);
        g_string_append_printf(file, "-%s-%s", factor->name, value);
    }
    if (!title->len || strchr(" ,", *title->str))
        g_string_prepend(title, "All cases");
    g_string_append(title, best->str);
    g_string_free(best, TRUE);
    return g_string_free(title, FALSE);
}

/* Returns a measure of a cell; 0: it is not known. `base`: the cell with `from` GPUs or nodes. */
static double measure_of(const struct chart *chart, size_t place, const struct duet__cell *cell,
                         const struct duet__cell *base)
{
    const double number = chart->x->numbers ? chart->x->numbers[place] : 0;
    const double speedup = cell && base && number > 0 ? base->mean_s / cell->mean_s : 0;
    return !cell                                   ? 0
           : chart->measure == MAKESPAN            ? cell->mean_s
           : chart->measure == SPEED               ? cell->flops / cell->mean_s
           : chart->measure == BOUND               ? 100 * cell->bound_s / cell->mean_s
           : chart->measure == SPEEDUP || !speedup ? speedup
                                                   : speedup * chart->from / number;
}

/* Writes the charts of a problem, that of cell `like`, over a setting. */
static void write_lines(struct output *output, const struct factor *x, const struct factor *by,
                        const struct duet__cell *like)
{
    const struct duet__results *results = output->results;
    const bool scaled = x->numbers && (!strcmp(x->name, "nodes") || !strcmp(x->name, "gpus"));
    const size_t lines = by ? by->count : 1, all = x->count * lines;
    g_autofree const struct duet__cell **best = g_new0(const struct duet__cell *, all);
    size_t base = 0;
    for (size_t i = 0; i < results->cell_count; i++) {
        const struct duet__cell *cell = &results->cells[i];
        const size_t line = by ? by->places[cell->levels[by->index]] : 0;
        const struct duet__cell **place = &best[x->places[cell->levels[x->index]] * lines + line];
        if (same_problem(output, cell, like, x, by) && (!*place || cell->mean_s < (*place)->mean_s))
            *place = cell;
    }
    while (scaled && base + 1 < x->count && !(x->numbers[base] > 0))
        base++;
    for (int m = 0; m < (scaled ? MEASURES : SPEEDUP); m++) {
        g_autoptr(GString) file = g_string_new(NULL);
        struct chart chart = {.results = results,
                              .x = x,
                              .by = by,
                              .measure = m,
                              .from = scaled ? x->numbers[base] : 0,
                              .title = title_of(output, like, x, by, file),
                              .points = g_array_new(FALSE, FALSE, sizeof(struct point)),
                              .draw = draw_lines,
                              .row = row_of_line};
        chart.name = g_strdup_printf("%s-over-%s%s", measures[m], x->name, file->str);
        for (size_t i = 0; i < all; i++) {
            const struct point point = {best[i], i / lines, i % lines,
                                        measure_of(&chart, i / lines, best[i],
                                                   best[base * lines + i % lines])};
            if (point.y > 0)
                g_array_append_val(chart.points, point);
        }
        write_chart(output, &chart);
    }
}

/* Writes the charts over a setting, for each problem; of more than PROBLEMS, for so many. */
static void write_over(struct output *output, const struct factor *x)
{
    const struct duet__results *results = output->results;
    g_autoptr(GPtrArray) problems = g_ptr_array_new();
    const struct factor *by = NULL;
    for (guint i = results->varied->len; i-- > 0;)
        if (&output->factors[i] != x && !(by && !strcmp(by->name, "policy")))
            by = &output->factors[i];
    for (size_t i = 0; i < results->cell_count; i++) {
        bool known = false;
        for (guint k = problems->len; k-- > 0 && !known;)
            known = same_problem(output, &results->cells[i], problems->pdata[k], x, by);
        if (!known)
            g_ptr_array_add(problems, &results->cells[i]);
    }
    for (guint i = 0, count = problems->len; i < MIN(count, PROBLEMS); i++)
        write_lines(output, x, by,
                    problems->pdata[count > PROBLEMS ? i * (count - 1) / (PROBLEMS - 1) : i]);
}

/* Writes the ranking of each setting that is none of a problem, and the effects of all of them. */
static void write_rankings(struct output *output)
{
    struct chart effects = {.results = output->results,
                            .x = output->factors,
                            .name = g_strdup("effects"),
                            .points = g_array_new(FALSE, FALSE, sizeof(struct point)),
                            .draw = draw_effects,
                            .row = row_of_effect};
    g_autofree char *title = title_of(output, NULL, NULL, NULL, NULL);
    for (guint f = output->results->problem_varied; f < output->results->varied->len; f++) {
        const struct factor *factor = &output->factors[f];
        const struct duet__ranking *ranking = &factor->ranking;
        struct chart chart = {.results = output->results,
                              .x = factor,
                              .name = g_strconcat("ranking-", factor->name, NULL),
                              .points = g_array_new(FALSE, FALSE, sizeof(struct point)),
                              .draw = draw_ranking,
                              .row = row_of_ranking};
        chart.title = g_strdup_printf("%s: mean rank of %s in %zu cases", title, factor->name,
                                      ranking->cases);
        for (size_t i = 0; i < ranking->levels && ranking->cases > 1; i++) {
            const size_t level = factor->levels[i], ranked = ranking->order[i];
            const struct point effect = {NULL, f, level, ranking->ratios[level] - 1};
            const struct point rank = {NULL, 0, ranked, ranking->ranks[ranked]};
            g_array_append_val(effects.points, effect);
            g_array_append_val(chart.points, rank);
        }
        write_chart(output, &chart);
    }
    effects.title = g_strconcat(title, ": makespan to mean, share of variance", NULL);
    write_chart(output, &effects);
}

/* ------------------------------------------------------------------------------------------- */
/* Settings as axes                                                                             */

/* Reads a level as a number: sizes in bytes, else *unit is the unit. */
static bool read_number(const char *level, double *number, const char **unit)
{
    static const char *const sizes[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    char *rest = NULL;
    *number = g_ascii_isdigit(*level) ? g_ascii_strtod(level, &rest) : 0;
    *unit = rest;
    for (size_t i = 1; rest && i < G_N_ELEMENTS(sizes); i++)
        if (!strcmp(rest, sizes[i])) {
            *number *= pow(1024, (double)i);
            *unit = *sizes;
        }
    return rest && !rest[strspn(rest, G_CSET_a_2_z G_CSET_A_2_Z "/%")];
}

static void factor_init(struct factor *factor, const struct duet__varied *varied, guint index)
{
    enum { WIDE = 28 }; /* longer names are shortened even if they are no paths */
    const size_t count = varied->levels.list->len;
    double *numbers = g_new0(double, count);
    const char *unit = NULL, *other = NULL;
    bool all = true;
    *factor = (struct factor){.name = varied->name,
                              .index = index,
                              .count = count,
                              .texts = (char *const *)varied->levels.list->pdata,
                              .names = g_new0(char *, count + 1),
                              .places = g_new0(size_t, count),
                              .levels = g_new0(size_t, count)};
    for (size_t i = 0; i < count && all; i++) {
        all = read_number(factor->texts[i], &numbers[i], &unit) &&
              (!other || strcmp(unit, other) == 0);
        other = unit;
    }
    factor->numbers = all ? g_new0(double, count) : NULL;
    for (size_t i = 0; i < count; i++) {
        size_t place = 0;
        for (size_t k = 0; k < count; k++)
            place += all && (numbers[k] < numbers[i] || numbers[k] > numbers[i])
                         ? numbers[k] < numbers[i]
                         : k < i;
        factor->places[i] = place;
        factor->levels[place] = i;
        factor->names[place] = g_strdup(factor->texts[i]);
        if (all)
            factor->numbers[place] = numbers[i];
    }
    g_free(numbers);
    duet__names_shorten(factor->names, count, 0);
    duet__names_shorten(factor->names, count, WIDE);
}

static void factor_fini(void *data)
{
    struct factor *factor = data;
    g_strfreev(factor->names);
    g_free(factor->numbers);
    g_free(factor->places);
    g_free(factor->levels);
    duet__ranking_fini(&factor->ranking);
}

int duet__study_charts(const char *folder, const struct duet__store *store, const char *best,
                       struct duet_message *message)
{
    struct duet__results results;
    int error = duet__results_read(&results, store, best, message);
    const guint count = results.cell_count ? results.varied->len : 0;
    g_autoptr(GArray) factors = g_array_new(FALSE, TRUE, sizeof(struct factor));
    struct output output = {folder, &results, NULL, duet__texts_new(), message, error};
    bool numbers = false;
    g_array_set_clear_func(factors, factor_fini);
    output.factors = (struct factor *)(void *)g_array_set_size(factors, count)->data;
    for (guint i = 0; i < count; i++) {
        factor_init(&output.factors[i], duet__varied(&results, i), i);
        if (i >= results.problem_varied)
            duet__rank(&results, i, &output.factors[i].ranking);
        numbers |= output.factors[i].numbers != NULL;
    }
    for (guint i = 0; i < count && !output.error; i++)
        if (!numbers || output.factors[i].numbers)
            write_over(&output, &output.factors[i]);
    if (count)
        write_rankings(&output);
    if (!output.error && !output.names.list->len)
        duet_fail(message, DUET_OK, "no charts in %s: no setting has several values with results",
                  folder);
    duet__texts_free(&output.names);
    duet__results_fini(&results);
    return output.error;
}
