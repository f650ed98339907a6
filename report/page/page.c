/* SPDX-License-Identifier: Apache-2.0 */
/* The HTML page: the template with the data in it, the report's JSON and the timelines. */
#include "report/page/page.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <glib.h>

#include "platforms/json.h"
#include "report/gantt.h"
#include "report/page/template.h"

enum {
    BARS = 800000, /* of all timelines together, which makes some 20 MB; of each its share, to
                      which longer ones are merged */
    DIGITS = 7,    /* of the dates, behind the first */
};

/* ------------------------------------------------------------------------------------------- */
/* Timelines                                                                                    */

/* The dates of a row's bars in ticks: starts as the difference to the one before, which is shorter,
   and lengths. */
static void put_dates(struct duet__json_writer *writer, const struct duet__gantt_row *row,
                      double tick_s)
{
    uint64_t last = 0;

    duet__json_begin(writer, "starts", '[');
    for (guint i = 0; i < row->bars->len; i++) {
        uint64_t start = (uint64_t)llround(fmax(duet__gantt_bar(row, i)->start_s, 0) / tick_s);

        duet__json_put_integer(writer, NULL, start - last);
        last = start;
    }
    duet__json_print(writer, "], lengths: [");
    for (guint i = 0; i < row->bars->len; i++) {
        const struct duet__gantt_bar *bar = duet__gantt_bar(row, i);

        duet__json_put_integer(writer, NULL,
                               (uint64_t)llround(fmax(bar->end_s - bar->start_s, 0) / tick_s));
    }
    duet__json_end(writer, ']');
}

/* A member of each bar, which is where `offset` says. */
static void put_member(struct duet__json_writer *writer, const char *name,
                       const struct duet__gantt_row *row, size_t offset)
{
    duet__json_begin(writer, name, '[');
    for (guint i = 0; i < row->bars->len; i++)
        duet__json_put_integer(writer, NULL,
                               *(const uint64_t *)(const void *)((const char *)duet__gantt_bar(row,
                                                                                               i) +
                                                                 offset));
    duet__json_end(writer, ']');
}

/* What is told of each bar, in an array of its own for each row. */
static void put_row(struct duet__json_writer *writer, const struct duet__gantt *gantt,
                    const struct duet__gantt_row *row, double tick_s)
{
    duet__json_print(writer, "\n{name: %s, lane: %u, node: %u", row->name, row->lane, row->node);
    put_dates(writer, row, tick_s);
    put_member(writer, "colours", row, offsetof(struct duet__gantt_bar, colour));
    put_member(writer, "ids", row, offsetof(struct duet__gantt_bar, id));
    if (gantt->merged_s > 0)
        put_member(writer, "counts", row, offsetof(struct duet__gantt_bar, count));
    if (row->lane != DUET_GANTT_KERNELS) {
        put_member(writer, "bytes", row, offsetof(struct duet__gantt_bar, bytes));
        put_member(writer, "peers", row, /* the memory at the copy's other end */
                   row->lane == DUET_GANTT_IN ? offsetof(struct duet__gantt_bar, source)
                                              : offsetof(struct duet__gantt_bar, destination));
    }
    duet__json_end(writer, '}');
}

/* What a worker did: tasks and seconds of each kernel. */
static void put_worker(struct duet__json_writer *writer, const struct duet__recording *recording,
                       unsigned index)
{
    const struct duet_worker *worker = &recording->machine->workers[index];
    size_t kernels = recording->kernel_count;
    double *tasks = g_new0(double, kernels + 1), *seconds = g_new0(double, kernels + 1);

    for (size_t i = 0; i < recording->event_count; i++) {
        const struct duet_event *event = &recording->events[i];

        if (event->kind != DUET_EVENT_TASK || event->kernel >= kernels ||
            event->worker != (int)index)
            continue;
        tasks[event->kernel] += !event->paused;
        seconds[event->kernel] += event->end_s - event->start_s;
    }
    duet__json_print(writer, "{name: %s, architecture: %s", worker->name,
                     recording->machine->archs[worker->arch].name);
    duet__json_put_numbers(writer, "tasks", tasks, kernels);
    duet__json_put_numbers(writer, "seconds", seconds, kernels);
    duet__json_end(writer, '}');
    g_free(tasks);
    g_free(seconds);
}

static void put_texts(struct duet__json_writer *writer, const char *name, const char *const *texts,
                      size_t count)
{
    duet__json_begin(writer, name, '[');
    for (size_t i = 0; i < count; i++)
        duet__json_put_string(writer, NULL, texts[i]);
    duet__json_end(writer, ']');
}

/* One timeline: `of` is the run or case it belongs to, `name` its policy or side. */
static void put_recording(struct duet__json_writer *writer, size_t of, const char *name,
                          const struct duet__recording *recording, size_t max_bars)
{
    const struct duet_machine *machine = recording->machine;
    struct duet__gantt gantt;
    double tick_s;

    duet__gantt_init(&gantt, recording, max_bars);
    tick_s = pow(10, floor(log10(gantt.end_s)) - DIGITS);
    duet__json_print(writer,
                     "\n{of: %zu, name: %s, makespan_s: %g, end_s: %g, merged_s: %g, tick_s: %g",
                     of, name, recording->makespan_s, gantt.end_s, gantt.merged_s, tick_s);
    put_texts(writer, "kernels", recording->kernels, recording->kernel_count);
    duet__json_begin(writer, "nodes", '[');
    for (unsigned i = 0; i < machine->node_count; i++)
        duet__json_put_string(writer, NULL, machine->nodes[i].name);
    duet__json_print(writer, "], workers: [");
    for (unsigned i = 0; i < machine->worker_count; i++)
        put_worker(writer, recording, i);
    duet__json_print(writer, "], rows: [");
    for (size_t i = 0; i < gantt.row_count; i++)
        put_row(writer, &gantt, &gantt.rows[i], tick_s);
    duet__json_print(writer, "]}");
    duet__gantt_fini(&gantt);
}

/* Begins the second of the page's two pieces of data, what the report's JSON does not have, up to
 * the recordings. */
static void begin_extra(struct duet__json_writer *writer)
{
    duet__json_begin(writer, NULL, '{');
    put_texts(writer, "colours", duet__gantt_colours, DUET_GANTT_COLOURS);
    put_texts(writer, "copy_colours", duet__gantt_copy_colours, DUET_GANTT_COPIES);
    put_texts(writer, "copy_names", duet__gantt_copy_names, DUET_GANTT_COPIES);
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
                          BARS / report->series_count);
    }
    duet__json_print(&writer, "], first_runs: [");
    for (size_t i = 0; i < report->series_count; i++)
        put_first_run(&writer, &report->series[i]);
    duet__json_print(&writer, "], place: %s, resources: %s, noise: %d}", place, resources,
                     report->request->config.noise);
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
                put_recording(&writer, i, names[side], sides[side]->recording,
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
