/* SPDX-License-Identifier: Apache-2.0 */
/* Charts and tables of the HTML page that need no script. */
#include "report/html_parts.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <glib.h>

#include "report/gantt.h"
#include "report/output.h"

/* Makespans, in pixels at full width. */
enum {
    WIDTH = 1180,
    LEFT = 170,  /* of the bars */
    RIGHT = 220, /* room for figures */
    TOP = 46,    /* two lines with the names of the bounds */
    ROW = 34,
    BAR = 20,
    CHARACTER = 8, /* width of one, more or less */
};

static void put_attribute(FILE *stream, const char *name, double value)
{
    fprintf(stream, " %s=\"", name);
    duet_write_fixed(stream, value, 1);
    putc('"', stream);
}

/* A dashed line at `seconds` with its name above, on text line `line` (0 or 1). */
static void put_bound(FILE *stream, const char *class, const char *name, double seconds,
                      double scale, int line, double bottom)
{
    double x = LEFT + seconds * scale;
    size_t length = strlen(name) + 12;
    /* the name begins at the line; where it would leave the picture, it ends there */
    bool turn = x + (double)length * CHARACTER > WIDTH;

    if (!(seconds > 0))
        return;
    fprintf(stream, "<line class=\"%s\"", class);
    put_attribute(stream, "x1", x);
    put_attribute(stream, "x2", x);
    put_attribute(stream, "y1", 6 + 20 * line);
    put_attribute(stream, "y2", bottom);
    fprintf(stream, "/><text class=\"%s-name\" text-anchor=\"%s\"", class, turn ? "end" : "start");
    put_attribute(stream, "x", x + (turn ? -6 : 6));
    put_attribute(stream, "y", 16 + 20 * line);
    fprintf(stream, ">%s ", name);
    duet_write_fixed(stream, seconds, 3);
    fputs(" s</text>\n", stream);
}

static void put_whisker(FILE *stream, double low, double high, double y)
{
    fputs("<path class=\"whisker\" fill=\"none\" d=\"M", stream);
    duet_write_fixed(stream, low, 1);
    putc(' ', stream);
    duet_write_fixed(stream, y - 5, 1);
    fputs("v10m0 -5H", stream);
    duet_write_fixed(stream, high, 1);
    fputs("m0 -5v10\"/>", stream);
}

static void put_makespan(FILE *stream, const struct duet_policy_runs *policy,
                         const struct duet_policy_summary *summary, double scale, double y)
{
    fprintf(stream, "<text text-anchor=\"end\" x=\"%d\"", LEFT - 12);
    put_attribute(stream, "y", y + BAR / 2.0 + 4.5);
    fputs(">", stream);
    duet_write_xml_text(stream, policy->policy);
    fprintf(stream, "</text><rect class=\"bar\" rx=\"2\" x=\"%d\" height=\"%d\"", LEFT, BAR);
    put_attribute(stream, "y", y);
    put_attribute(stream, "width", fmax(summary->makespan_s * scale, 1));
    fputs("/>", stream);
    if (!isnan(summary->ci95_low_s))
        put_whisker(stream, LEFT + summary->ci95_low_s * scale, LEFT + summary->ci95_high_s * scale,
                    y + BAR / 2.0);
    fprintf(stream, "<text x=\"%d\"", WIDTH - RIGHT + 14);
    put_attribute(stream, "y", y + BAR / 2.0 + 4.5);
    fputs(">", stream);
    duet_write_fixed(stream, summary->makespan_s, summary->makespan_s < 1 ? 5 : 3);
    fputs(" s", stream);
    if (!isnan(summary->gflops)) {
        fputs("<tspan class=\"soft\" dx=\"10\">", stream);
        duet_write_fixed(stream, summary->gflops, 1);
        fputs(" GFlop/s</tspan>", stream);
    }
    fputs("</text>\n", stream);
}

void duet__html_makespans(FILE *stream, const struct duet_report *report,
                          const struct duet_policy_summary *summaries)
{
    double longest = 0, scale, height = TOP + (double)report->policy_count * ROW;
    double path = 0, area = 0;

    for (size_t i = 0; i < report->policy_count; i++) {
        longest = fmax(longest, fmax(summaries[i].makespan_s, summaries[i].ci95_high_s));
        path = fmax(path, summaries[i].critical_path_s);
        area = fmax(area, summaries[i].area_s);
    }
    longest = fmax(longest, fmax(path, area));
    scale = longest > 0 ? (WIDTH - LEFT - RIGHT) / longest : 0;
    fprintf(stream,
            "<svg viewBox=\"0 0 %d %.0f\" role=\"img\" aria-label=\"Makespan of each policy beside "
            "the lower bounds\">\n",
            WIDTH, height);
    for (size_t i = 0; i < report->policy_count; i++) {
        double y = TOP + (double)i * ROW + 4;

        fprintf(stream, "<rect class=\"room\" rx=\"2\" x=\"%d\" width=\"%d\" height=\"%d\"", LEFT,
                WIDTH - LEFT - RIGHT, BAR);
        put_attribute(stream, "y", y);
        fputs("/>", stream);
        put_makespan(stream, &report->policies[i], &summaries[i], scale, y);
    }
    if (path > 0) /* else it is not known */
        put_bound(stream, "path", "critical path", path, scale, 0, height);
    if (area > 0)
        put_bound(stream, "area", "area bound", area, scale, 1, height);
    fputs("</svg>\n", stream);
}

/* Sums over the tasks of a recording. */
struct sum {
    uint64_t count;
    double seconds;
};

/* sums[kernel * groups + group]; group: architecture or worker. NULL: out of memory cannot be. */
static struct sum *sum_tasks(const struct duet_recording *recording, size_t groups, bool by_worker)
{
    const struct duet_machine *machine = recording->machine;
    struct sum *sums = g_new0(struct sum, recording->kernel_count * groups + 1);

    for (size_t i = 0; i < recording->event_count; i++) {
        const struct duet_event *event = &recording->events[i];
        size_t group = (size_t)event->worker;

        if (event->kind != DUET_EVENT_TASK || event->kernel >= recording->kernel_count ||
            event->worker < 0 || group >= machine->worker_count)
            continue;
        if (!by_worker)
            group = machine->workers[event->worker].arch;
        sums[event->kernel * groups + group].count++;
        sums[event->kernel * groups + group].seconds += event->end_s - event->start_s;
    }
    return sums;
}

static void put_swatch(FILE *stream, size_t kernel)
{
    fprintf(stream, "<i class=\"swatch\" style=\"background:%s\"></i>",
            duet_gantt_kernel_colour(kernel));
}

/* Count and mean time of one kernel on one architecture. */
static void put_sum(FILE *stream, const struct sum *sum)
{
    if (sum->count == 0) {
        fputs("<td>0</td><td>\xe2\x80\x93</td>", stream);
        return;
    }
    fprintf(stream, "<td>%" PRIu64 "</td><td>", sum->count);
    duet_write_fixed(stream, sum->seconds / (double)sum->count * 1e3, 3);
    fputs("</td>", stream);
}

void duet__html_kernels(FILE *stream, const struct duet_recording *recording)
{
    const struct duet_machine *machine = recording->machine;
    struct sum *sums = sum_tasks(recording, machine->arch_count, false);

    fputs("<div class=\"scroll\"><table><thead><tr><th>kernel</th>", stream);
    for (unsigned arch = 0; arch < machine->arch_count; arch++) {
        fputs("<th>tasks on<br>", stream);
        duet_write_xml_text(stream, machine->archs[arch].name);
        fputs("</th><th>mean<br>ms</th>", stream);
    }
    fputs("</tr></thead><tbody>\n", stream);
    for (size_t kernel = 0; kernel < recording->kernel_count; kernel++) {
        const struct sum *row = &sums[kernel * machine->arch_count];
        uint64_t count = 0;

        for (unsigned arch = 0; arch < machine->arch_count; arch++)
            count += row[arch].count;
        if (count == 0)
            continue;
        fputs("<tr><td>", stream);
        put_swatch(stream, kernel);
        duet_write_xml_text(stream, recording->kernels[kernel]);
        fputs("</td>", stream);
        for (unsigned arch = 0; arch < machine->arch_count; arch++)
            put_sum(stream, &row[arch]);
        fputs("</tr>\n", stream);
    }
    fputs("</tbody></table></div>\n", stream);
    g_free(sums);
}

/* What one worker did, kernel by kernel, on a bar `width` long. */
static void put_worker(FILE *stream, const struct duet_recording *recording, const struct sum *sums,
                       unsigned worker, double y)
{
    enum { BEGIN = 64, LENGTH = 390, THICK = 13 };
    double x = BEGIN, busy = 0, makespan = recording->makespan_s;

    fprintf(stream, "<text text-anchor=\"end\" x=\"%d\"", BEGIN - 10);
    put_attribute(stream, "y", y + THICK - 2);
    fputs(">", stream);
    duet_write_xml_text(stream, recording->machine->workers[worker].name);
    fprintf(stream, "</text><rect class=\"room\" rx=\"2\" x=\"%d\" width=\"%d\" height=\"%d\"",
            BEGIN, LENGTH, THICK);
    put_attribute(stream, "y", y);
    fputs("/>", stream);
    for (size_t kernel = 0; kernel < recording->kernel_count; kernel++) {
        const struct sum *sum = &sums[kernel * recording->machine->worker_count + worker];
        double share = makespan > 0 ? sum->seconds / makespan : 0;

        if (sum->count == 0)
            continue;
        fprintf(stream, "<rect fill=\"%s\" height=\"%d\"", duet_gantt_kernel_colour(kernel), THICK);
        put_attribute(stream, "x", x);
        put_attribute(stream, "y", y);
        put_attribute(stream, "width", share * LENGTH);
        fputs("><title>", stream);
        duet_write_xml_text(stream, recording->kernels[kernel]);
        fprintf(stream, ": %" PRIu64 " tasks, ", sum->count);
        duet_write_fixed(stream, sum->seconds, 4);
        fputs(" s</title></rect>", stream);
        x += share * LENGTH;
        busy += share;
    }
    fprintf(stream, "<text class=\"soft\" text-anchor=\"end\" x=\"%d\"", BEGIN + LENGTH + 56);
    put_attribute(stream, "y", y + THICK - 2);
    fputs(">", stream);
    duet_write_fixed(stream, busy * 100, 1);
    fputs(" %</text>\n", stream);
}

void duet__html_workers(FILE *stream, const struct duet_recording *recording)
{
    enum { ROW_HEIGHT = 21, FULL = 520 };
    unsigned workers = recording->machine->worker_count;
    struct sum *sums = sum_tasks(recording, workers, true);

    fprintf(
        stream,
        "<svg viewBox=\"0 0 %d %u\" role=\"img\" aria-label=\"Share of the makespan each worker "
        "was busy\">\n",
        FULL, workers * ROW_HEIGHT);
    for (unsigned i = 0; i < workers; i++)
        put_worker(stream, recording, sums, i, i * (double)ROW_HEIGHT + 2);
    fputs("</svg>\n", stream);
    g_free(sums);
}
