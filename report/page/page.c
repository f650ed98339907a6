/* SPDX-License-Identifier: Apache-2.0 */
/* The HTML page: the template with the data in it, the report's JSON and the timelines. */
#include "report/page/page.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <glib.h>

#include "base/fields.h"
#include "report/gantt.h"
#include "trace/account.h"
#include "trace/counters.h"

enum {
    BARS = 800000,  /* of all timelines together, some 20 MB; longer ones are merged to their
                       share */
    DIGITS = 7,     /* of the dates, behind the first */
    SHORT = 100000, /* gaps below this part of the time axis are not explained */
    POINTS = 20000, /* of all curves of a timeline together; longer ones are reduced to their
                       share */
    FEWEST = 64     /* least points of a curve */
};

/* ------------------------------------------------------------------------------------------- */
/* Timelines                                                                                    */

/* Writes the starts of a row's bars in ticks, as short differences from the one before. */
static void put_starts(struct duet__json_writer *writer, const struct duet__gantt_row *row,
                       double tick_s)
{
    uint64_t last = 0;
    duet__json_begin(writer, "starts", '[');
    for (guint i = 0; i < row->bars->len; i++) {
        uint64_t start = (uint64_t)llround(fmax(duet__gantt_bar(row, i)->start_s, 0) / tick_s);
        duet__json_put_integer(writer, NULL, start - last);
        last = start;
    }
    duet__json_end(writer, ']');
}

/* Writes starts and lengths. */
static void put_dates(struct duet__json_writer *writer, const struct duet__gantt_row *row,
                      double tick_s)
{
    put_starts(writer, row, tick_s);
    duet__json_begin(writer, "lengths", '[');
    for (guint i = 0; i < row->bars->len; i++) {
        const struct duet__gantt_bar *bar = duet__gantt_bar(row, i);
        duet__json_put_integer(writer, NULL,
                               (uint64_t)llround(fmax(bar->end_s - bar->start_s, 0) / tick_s));
    }
    duet__json_end(writer, ']');
}

/* Writes the member at `offset` of each bar. */
static void put_member(struct duet__json_writer *writer, const char *name,
                       const struct duet__gantt_row *row, size_t offset)
{
    duet__values_write(writer, name, DUET__INTEGER, row->bars->data + offset, row->bars->len,
                       sizeof(struct duet__gantt_bar));
}

/* Writes the reasons why a worker ran nothing, as bars with states for colours; its gaps begin at
 * `at`. */
static void put_gaps(struct duet__json_writer *writer, const struct duet__gantt *gantt,
                     unsigned worker, const GArray *gaps, guint at, double tick_s)
{
    const double least_s = fmax(gantt->merged_s, gantt->end_s / SHORT);
    g_autoptr(GArray) bars = g_array_new(FALSE, FALSE, sizeof(struct duet__gantt_bar));
    const struct duet__gantt_row row = {.bars = bars};
    for (; at < gaps->len; at++) {
        const struct duet__gap *gap = &g_array_index(gaps, struct duet__gap, at);
        const struct duet__gantt_bar bar = {gap->start_s, gap->end_s, .colour = gap->state};
        if (gap->worker != worker)
            break;
        if (gap->end_s - gap->start_s >= least_s)
            g_array_append_val(bars, bar);
    }
    duet__json_begin(writer, "gaps", '{');
    put_dates(writer, &row, tick_s);
    put_member(writer, "states", &row, offsetof(struct duet__gantt_bar, colour));
    duet__json_end(writer, '}');
}

/* Returns the row of a step of the critical path. */
static size_t row_of(const struct duet__gantt *gantt, const struct duet__step *step)
{
    const struct duet_event *event = &gantt->recording->events[step->event];
    if (event->kind == DUET_EVENT_TASK)
        return duet__gantt_find(gantt, DUET_GANTT_KERNELS, (unsigned)event->worker);
    const unsigned node = duet__shown_in(gantt->recording->machine, event);
    return duet__gantt_find(gantt, node == event->destination ? DUET_GANTT_IN : DUET_GANTT_OUT,
                            node);
}

/* Writes the steps of the critical path, each from the end of the one before; short ones are merged
 * where bars are. */
static void put_path(struct duet__json_writer *writer, const struct duet__gantt *gantt,
                     const GArray *steps, double tick_s)
{
    g_autoptr(GArray) bars = g_array_new(FALSE, FALSE, sizeof(struct duet__gantt_bar));
    const struct duet__gantt_row row = {.bars = bars};
    double date_s = 0;
    for (guint i = 0; i < steps->len; i++) {
        const struct duet__step *step = &g_array_index(steps, struct duet__step, i);
        const struct duet__gantt_bar bar = {date_s, step->end_s, .id = row_of(gantt, step),
                                            .colour = step->state};
        if (step->end_s - date_s < gantt->merged_s && i + 1 < steps->len)
            continue;
        g_array_append_val(bars, bar);
        date_s = step->end_s;
    }
    duet__json_begin(writer, "path", '{');
    put_dates(writer, &row, tick_s);
    put_member(writer, "rows", &row, offsetof(struct duet__gantt_bar, id));
    put_member(writer, "states", &row, offsetof(struct duet__gantt_bar, colour));
    duet__json_end(writer, '}');
}

/* Writes what bars of all lanes have (dates, colours, numbers, counts), an array each. */
static void put_bars(struct duet__json_writer *writer, const struct duet__gantt *gantt,
                     const struct duet__gantt_row *row, double tick_s)
{
    put_dates(writer, row, tick_s);
    put_member(writer, "colours", row, offsetof(struct duet__gantt_bar, colour));
    put_member(writer, "ids", row, offsetof(struct duet__gantt_bar, id));
    if (gantt->merged_s > 0)
        put_member(writer, "counts", row, offsetof(struct duet__gantt_bar, count));
}

/* Begins a row: members of its bars, up to those that depend on the row. */
static void begin_row(struct duet__json_writer *writer, const struct duet__gantt *gantt,
                      const struct duet__gantt_row *row, double tick_s)
{
    duet__json_print(writer, "\n{name: %s, lane: %u, node: %u", row->name, row->lane, row->node);
    put_bars(writer, gantt, row, tick_s);
    if (row->lane != DUET_GANTT_KERNELS) {
        put_member(writer, "bytes", row, offsetof(struct duet__gantt_bar, bytes));
        put_member(writer, "peers", row, /* the memory at the copy's other end */
                   row->lane == DUET_GANTT_IN ? offsetof(struct duet__gantt_bar, source)
                                              : offsetof(struct duet__gantt_bar, destination));
    }
}

/* Writes the tasks and seconds of each kernel for each worker. */
static void put_workers(struct duet__json_writer *writer, const struct duet__recording *recording)
{
    const struct duet_machine *machine = recording->machine;
    const size_t kernels = recording->kernel_count, all = machine->worker_count * (kernels + 1);
    double *tasks = g_new0(double, all), *seconds = g_new0(double, all);
    for (size_t i = 0; i < recording->event_count; i++) {
        const struct duet_event *event = &recording->events[i];
        const size_t at = (size_t)event->worker * kernels + event->kernel;
        if (event->kind != DUET_EVENT_TASK || event->kernel >= kernels ||
            (unsigned)event->worker >= machine->worker_count)
            continue;
        tasks[at] += !event->paused;
        seconds[at] += event->end_s - event->start_s;
    }
    duet__json_begin(writer, "workers", '[');
    for (unsigned i = 0; i < machine->worker_count; i++) {
        duet__json_print(writer, "{name: %s, architecture: %s", machine->workers[i].name,
                         machine->archs[machine->workers[i].arch].name);
        DUET__ARRAY_WRITE(writer, "tasks", DUET__NUMBER, tasks + i * kernels, kernels);
        DUET__ARRAY_WRITE(writer, "seconds", DUET__NUMBER, seconds + i * kernels, kernels);
        duet__json_end(writer, '}');
    }
    duet__json_end(writer, ']');
    g_free(tasks);
    g_free(seconds);
}

/* Adds a point: values from `low` to `high`, from a date on. */
static void add_point(GArray *bars, double start_s, double low, double high, double unit)
{
    const struct duet__gantt_bar bar = {.start_s = start_s,
                                        .id = (uint64_t)llround(low / unit),
                                        .bytes =
                                            (uint64_t)(llround(high / unit) - llround(low / unit))};
    g_array_append_val(bars, bar);
}

/* Returns the points of a counter as bars; if there are more than `most`, the least and the largest
 * value of each interval with changes, and the value after it. */
static GArray *curve_of(const struct duet__counter *counter, double end_s, guint most, double unit)
{
    const struct duet__moment *moments = &g_array_index(counter->points, struct duet__moment, 0);
    const guint count = counter->points->len;
    const double width_s = count > most ? end_s / most : 0;
    GArray *bars = g_array_new(FALSE, FALSE, sizeof(struct duet__gantt_bar));
    double value = 0;
    for (guint i = 0; i < count;) {
        const double from_s =
            width_s > 0 ? floor(moments[i].date_s / width_s) * width_s : moments[i].date_s;
        double low = width_s > 0 ? value : moments[i].value, high = low;
        do {
            value = moments[i++].value;
            low = fmin(low, value);
            high = fmax(high, value);
        } while (i < count && moments[i].date_s < from_s + width_s);
        add_point(bars, from_s, low, high, unit);
        if (width_s > 0 && (i == count || moments[i].date_s >= from_s + 2 * width_s))
            add_point(bars, from_s + width_s, value, value, unit);
    }
    return bars;
}

/* Writes curves below the rows, with a title; false: there are none. */
static bool put_strip(struct duet__json_writer *writer, const struct duet__gantt *gantt,
                      const struct duet__counters *counters, enum duet__counted what,
                      const char *title, double tick_s)
{
    const struct duet_machine *machine = gantt->recording->machine;
    double most = 0, limit = 0, unit;
    for (unsigned i = 0; i < counters->count; i++)
        if (counters->all[i].what == what) {
            most = fmax(most, counters->all[i].most);
            if (what == DUET_COUNTED_USED)
                limit = fmax(limit, (double)machine->nodes[counters->all[i].index].capacity_bytes);
        }
    if (!(most > 0))
        return false;
    unit = pow(10, fmax(floor(log10(most)) - 3, 0));
    duet__json_print(writer, "\n{title: %s, bytes: %d, most: %g, limit: %g, unit: %g, curves: [",
                     title, what != DUET_COUNTED_READY, most, limit, unit);
    for (unsigned i = 0; i < counters->count; i++) {
        const struct duet__counter *counter = &counters->all[i];
        if (counter->what == what && counter->points && counter->points->len) {
            g_autoptr(GArray) bars =
                curve_of(counter, gantt->end_s, MAX(POINTS / counters->count, FEWEST), unit);
            const struct duet__gantt_row row = {.bars = bars};
            duet__json_print(writer, "\n{name: %s",
                             what == DUET_COUNTED_LINK    ? machine->links[counter->index].name
                             : what == DUET_COUNTED_READY ? NULL
                                                          : machine->nodes[counter->index].name);
            put_starts(writer, &row, tick_s);
            put_member(writer, "lows", &row, offsetof(struct duet__gantt_bar, id));
            put_member(writer, "spans", &row, offsetof(struct duet__gantt_bar, bytes));
            duet__json_end(writer, '}');
        }
    }
    duet__json_print(writer, "]}");
    return true;
}

/* Writes curves over time; those of links are not known from traces. */
static void put_strips(struct duet__json_writer *writer, const struct duet__gantt *gantt,
                       double tick_s)
{
    struct duet__counters counters = {0};
    duet__counters_make(gantt->recording, G_MAXUINT, &counters);
    duet__json_begin(writer, "strips", '[');
    put_strip(writer, gantt, &counters, DUET_COUNTED_READY, "ready tasks", tick_s);
    if (!put_strip(writer, gantt, &counters, DUET_COUNTED_LINK, "bytes on their way", tick_s))
        put_strip(writer, gantt, &counters, DUET_COUNTED_IN, "bytes on their way to", tick_s);
    put_strip(writer, gantt, &counters, DUET_COUNTED_USED, "memory in use", tick_s);
    duet__json_end(writer, ']');
    duet__counters_fini(&counters);
}

/* Writes the rows, with what was planned of each, and, if there is an account of the run, gaps and
 * the critical path. */
static void put_rows(struct duet__json_writer *writer, const struct duet__gantt *gantt,
                     const struct duet__gantt *planned, double tick_s)
{
    g_autoptr(GArray) gaps = duet__account_gaps(gantt->recording);
    guint *first = g_new0(guint, gantt->recording->machine->worker_count); /* gap, by worker */
    struct duet__path path = {0};
    for (guint i = gaps ? gaps->len : 0; i-- > 0;)
        first[g_array_index(gaps, struct duet__gap, i).worker] = i;
    duet__json_begin(writer, "rows", '[');
    for (size_t i = 0; i < gantt->row_count; i++) {
        const struct duet__gantt_row *row = &gantt->rows[i];
        begin_row(writer, gantt, row, tick_s);
        if (gaps && row->lane == DUET_GANTT_KERNELS)
            put_gaps(writer, gantt, row->index, gaps, first[row->index], tick_s);
        if (planned->row_count && planned->rows[i].bars->len) {
            duet__json_begin(writer, "plan", '{');
            put_bars(writer, planned, &planned->rows[i], tick_s);
            duet__json_end(writer, '}');
        }
        duet__json_end(writer, '}');
    }
    duet__json_end(writer, ']');
    g_free(first);
    if (!gaps)
        return;
    duet__path_make(gantt->recording, NULL, &path);
    put_path(writer, gantt, path.steps, tick_s);
    duet__path_fini(&path);
    put_strips(writer, gantt, tick_s);
}

/* Writes one timeline: `of` is the index of its run or case, `name` its policy or side; `plan` is
 * what was planned, or NULL. */
static void put_recording(struct duet__json_writer *writer, size_t of, const char *name,
                          const struct duet__recording *recording,
                          const struct duet__run_plan *plan, size_t max_bars)
{
    const struct duet_machine *machine = recording->machine;
    const bool is_planned = plan && plan->tasks.event_count;
    struct duet__gantt gantt, planned = {0};
    double tick_s;
    duet__gantt_init(&gantt, recording, is_planned ? max_bars / 2 : max_bars);
    if (is_planned) {
        duet__gantt_init(&planned, &plan->tasks, max_bars / 2);
        gantt.end_s = fmax(gantt.end_s, planned.end_s);
    }
    tick_s = pow(10, floor(log10(gantt.end_s)) - DIGITS);
    duet__json_print(writer,
                     "\n{of: %zu, name: %s, makespan_s: %g, end_s: %g, merged_s: %g, tick_s: %g",
                     of, name, recording->makespan_s, gantt.end_s, gantt.merged_s, tick_s);
    DUET__ARRAY_WRITE(writer, "kernels", DUET__TEXT, recording->kernels, recording->kernel_count);
    duet__values_write(writer, "nodes", DUET__NAME, machine->nodes->name, machine->node_count,
                       sizeof *machine->nodes);
    put_workers(writer, recording);
    put_rows(writer, &gantt, &planned, tick_s);
    if (is_planned)
        duet__json_print(writer,
                         "plan: {tasks: %zu, makespan_s: %g, may_move: %d, moved: %zu, late_s: %g, "
                         "latest: %" PRIu64 "}",
                         plan->tasks.event_count, plan->tasks.makespan_s, plan->may_move,
                         plan->moved, plan->late_s, plan->latest);
    duet__json_end(writer, '}');
    duet__gantt_fini(&gantt);
    duet__gantt_fini(&planned);
}

/* Begins the second of the page's two pieces of data, which has what the report's JSON lacks, up to
 * the recordings. */
static void begin_extra(struct duet__json_writer *writer)
{
    duet__json_begin(writer, NULL, '{');
    DUET__ARRAY_WRITE(writer, "colours", DUET__TEXT, duet__svg_colours, DUET__SVG_COLOURS);
    DUET__ARRAY_WRITE(writer, "copy_colours", DUET__TEXT, duet__gantt_copy_colours,
                      DUET_GANTT_COPIES);
    DUET__ARRAY_WRITE(writer, "copy_names", DUET__TEXT, duet__gantt_copy_names, DUET_GANTT_COPIES);
    DUET__ARRAY_WRITE(writer, "states", DUET__TEXT, duet__state_names, DUET_STATES);
    duet__json_begin(writer, "recordings", '[');
}

/* ------------------------------------------------------------------------------------------- */
/* Page                                                                                         */

/* Writes the template up to `mark`; returns what is behind that. */
static const char *put_template(FILE *stream, const char *template, const char *mark)
{
    const char *end = strstr(template, mark);
    fwrite(template, 1, (size_t)(end - template), stream);
    return end + strlen(mark);
}

/* Counters of a report's first run, which the tables in its details show. */
static void put_first_run(struct duet__json_writer *writer, const struct duet__series *series)
{
    const struct duet__run *run = &series->runs[0];
    const struct duet_stats *stats = &run->stats;
    g_autofree char *choice = duet__report_choice(series);
    duet__json_print(writer,
                     "{seed: %" PRIu64 ", bytes_to_device: %" PRIu64 ", bytes_to_host: %" PRIu64
                     ", bytes_between: %" PRIu64 ", copies_to_device: %" PRIu64
                     ", copies_to_host: %" PRIu64 ", copies_between: %" PRIu64
                     ", evictions: %" PRIu64 ", write_backs: %" PRIu64 ", steals: %" PRIu64
                     ", steal_attempts: %" PRIu64 ", choice: %s}",
                     run->seed, stats->bytes_to_device, stats->bytes_to_host, stats->bytes_between,
                     stats->copies_to_device, stats->copies_to_host, stats->copies_between,
                     stats->evictions, stats->write_backs, stats->steals, stats->steal_attempts,
                     choice);
}

void duet__page_write_report(FILE *stream, const struct duet__report *report)
{
    struct duet__json_writer writer = {.stream = stream, .dense = true};
    g_autofree char *place = duet__request_place(report->request);
    g_autofree char *resources = duet__report_resources(&report->request->machine);
    const char *rest = put_template(stream, duet__page_template, "@REPORT@");
    duet__report_write_json(stream, report);
    rest = put_template(stream, rest, "@EXTRA@");
    begin_extra(&writer);
    for (size_t i = 0; i < report->series_count; i++) {
        const struct duet__recording *recording = duet__series_recording(&report->series[i]);
        if (recording)
            put_recording(&writer, i, report->series[i].policy, recording,
                          report->plans ? &report->plans[i] : NULL, BARS / report->series_count);
    }
    duet__json_print(&writer, "], first_runs: [");
    for (size_t i = 0; i < report->series_count; i++)
        put_first_run(&writer, &report->series[i]);
    duet__json_print(&writer, "], place: %s, resources: %s, noise: %d}", place, resources,
                     report->request->config.noise);
    fputs(rest, stream);
}

void duet__page_write_why(FILE *stream, const struct duet__why *why)
{
    struct duet__json_writer writer = {.stream = stream, .dense = true};
    const struct duet__trace *trace = why->trace;
    const char *rest = put_template(stream, duet__page_template, "@REPORT@");
    duet__why_write_json(stream, why);
    rest = put_template(stream, rest, "@EXTRA@");
    begin_extra(&writer);
    put_recording(&writer, 0, trace->policy ? trace->policy : "", &trace->run.recording, NULL,
                  BARS);
    duet__json_print(&writer, "]}");
    fputs(rest, stream);
}

void duet__page_write_validation(FILE *stream, const struct duet__validation *validation)
{
    struct duet__json_writer writer = {.stream = stream, .dense = true};
    const char *names[] = {validation->first_name, validation->second_name};
    const char *rest = put_template(stream, duet__page_template, "@REPORT@");
    duet__validation_write_json(stream, validation);
    rest = put_template(stream, rest, "@EXTRA@");
    begin_extra(&writer);
    for (size_t i = 0; i < validation->case_count; i++) {
        const struct duet__side *sides[] = {&validation->cases[i].predicted,
                                            &validation->cases[i].measured};
        for (int side = 0; side < 2; side++)
            if (sides[side]->recording)
                put_recording(&writer, i, names[side], sides[side]->recording, sides[side]->plan,
                              BARS / (2 * validation->case_count));
    }
    duet__json_print(&writer, "]}");
    fputs(rest, stream);
}

void duet__page_write(FILE *stream, duet__file_fn *write, const void *data)
{
    struct duet__json_writer writer = {.stream = stream, .dense = true};
    const char *rest = put_template(stream, duet__page_template, "@REPORT@");
    write(stream, data);
    rest = put_template(stream, rest, "@EXTRA@");
    begin_extra(&writer);
    duet__json_print(&writer, "]}");
    fputs(rest, stream);
}
