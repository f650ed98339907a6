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

/* What is told of each bar, in an array of its own for each row. */
enum column { START, LENGTH, COLOUR, ID, COUNT, BYTES, PEER };

static uint64_t figure_of(const struct duet_gantt_row *row, const struct duet_gantt_bar *bar,
                          enum column column, double tick_s)
{
    switch (column) {
    case START:
        return (uint64_t)llround(fmax(bar->start_s, 0) / tick_s);
    case LENGTH:
        return (uint64_t)llround(fmax(bar->end_s - bar->start_s, 0) / tick_s);
    case COLOUR:
        return bar->colour;
    case ID:
        return bar->id;
    case COUNT:
        return bar->count;
    case BYTES:
        return bar->bytes;
    default: /* the memory node at a copy's other end */
        return row->lane == DUET_GANTT_IN ? bar->source : bar->destination;
    }
}

/* Starts are written as the difference to the one before, which is shorter. */
static void put_column(struct duet__json_writer *writer, const char *name,
                       const struct duet_gantt_row *row, enum column column, double tick_s)
{
    uint64_t last = 0;

    duet__json_begin(writer, name, '[');
    for (guint i = 0; i < row->bars->len; i++) {
        uint64_t value = figure_of(row, duet_gantt_bar(row, i), column, tick_s);

        fprintf(writer->stream, "%s%" PRIu64, i ? "," : "", value - last);
        last = column == START ? value : 0;
    }
    duet__json_end(writer, ']');
}

static void put_row(struct duet__json_writer *writer, const struct duet_gantt *gantt,
                    const struct duet_gantt_row *row, double tick_s)
{
    duet__json_break(writer, 0);
    duet__json_begin(writer, NULL, '{');
    duet__json_put_string(writer, "name", row->name);
    duet__json_put_integer(writer, "lane", row->lane);
    duet__json_put_integer(writer, "node", row->node);
    put_column(writer, "starts", row, START, tick_s);
    put_column(writer, "lengths", row, LENGTH, tick_s);
    put_column(writer, "colours", row, COLOUR, tick_s);
    put_column(writer, "ids", row, ID, tick_s);
    if (gantt->merged_s > 0)
        put_column(writer, "counts", row, COUNT, tick_s);
    if (row->lane != DUET_GANTT_KERNELS) {
        put_column(writer, "bytes", row, BYTES, tick_s);
        put_column(writer, "peers", row, PEER, tick_s);
    }
    duet__json_end(writer, '}');
}

/* What each worker did: tasks and seconds of each kernel. */
static void put_workers(struct duet__json_writer *writer, const struct duet_recording *recording)
{
    const struct duet_machine *machine = recording->machine;
    size_t kernels = recording->kernel_count;
    uint64_t *tasks = g_new0(uint64_t, machine->worker_count * kernels + 1);
    double *seconds = g_new0(double, machine->worker_count *kernels + 1);

    for (size_t i = 0; i < recording->event_count; i++) {
        const struct duet_event *event = &recording->events[i];
        size_t worker = (size_t)event->worker;

        if (event->kind != DUET_EVENT_TASK || event->kernel >= kernels || event->worker < 0 ||
            worker >= machine->worker_count)
            continue;
        tasks[worker * kernels + event->kernel]++;
        seconds[worker * kernels + event->kernel] += event->end_s - event->start_s;
    }
    duet__json_begin(writer, "workers", '[');
    for (unsigned i = 0; i < machine->worker_count; i++) {
        duet__json_begin(writer, NULL, '{');
        duet__json_put_string(writer, "name", machine->workers[i].name);
        duet__json_put_string(writer, "architecture",
                              machine->archs[machine->workers[i].arch].name);
        duet__json_begin(writer, "tasks", '[');
        for (size_t k = 0; k < kernels; k++)
            duet__json_put_integer(writer, NULL, tasks[i * kernels + k]);
        duet__json_end(writer, ']');
        duet__json_begin(writer, "seconds", '[');
        for (size_t k = 0; k < kernels; k++)
            duet__json_put_number(writer, NULL, seconds[i * kernels + k]);
        duet__json_end(writer, ']');
        duet__json_end(writer, '}');
    }
    duet__json_end(writer, ']');
    g_free(seconds);
    g_free(tasks);
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
                          const struct duet_recording *recording, size_t max_bars)
{
    const struct duet_machine *machine = recording->machine;
    struct duet_gantt gantt;
    double tick_s;

    duet_gantt_init(&gantt, recording, max_bars);
    tick_s = pow(10, floor(log10(gantt.end_s)) - DIGITS);
    duet__json_break(writer, 0);
    duet__json_begin(writer, NULL, '{');
    duet__json_put_integer(writer, "of", of);
    duet__json_put_string(writer, "name", name);
    duet__json_put_number(writer, "makespan_s", recording->makespan_s);
    duet__json_put_number(writer, "end_s", gantt.end_s);
    duet__json_put_number(writer, "merged_s", gantt.merged_s);
    duet__json_put_number(writer, "tick_s", tick_s);
    put_texts(writer, "kernels", recording->kernels, recording->kernel_count);
    duet__json_begin(writer, "nodes", '[');
    for (unsigned i = 0; i < machine->node_count; i++)
        duet__json_put_string(writer, NULL, machine->nodes[i].name);
    duet__json_end(writer, ']');
    put_workers(writer, recording);
    duet__json_begin(writer, "rows", '[');
    for (size_t i = 0; i < gantt.row_count; i++)
        put_row(writer, &gantt, &gantt.rows[i], tick_s);
    duet__json_end(writer, ']');
    duet__json_end(writer, '}');
    duet_gantt_fini(&gantt);
}

/* Begins the second of the page's two pieces of data, what the report's JSON does not have, up to
 * the recordings. */
static void begin_extra(struct duet__json_writer *writer)
{
    duet__json_begin(writer, NULL, '{');
    put_texts(writer, "colours", duet_gantt_colours, DUET_GANTT_COLOURS);
    put_texts(writer, "copy_colours", duet_gantt_copy_colours, DUET_GANTT_COPIES);
    put_texts(writer, "copy_names", duet_gantt_copy_names, DUET_GANTT_COPIES);
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

/* A figure of a report's first run, which the tables in its details show. */
static void put_first_run(struct duet__json_writer *writer, const struct duet_run *run)
{
    const struct duet_stats *stats = &run->stats;
    const struct {
        const char *name;
        uint64_t value;
    } figures[] = {
        {"seed", run->seed},
        {"bytes_to_device", stats->bytes_to_device},
        {"bytes_to_host", stats->bytes_to_host},
        {"bytes_between", stats->bytes_between},
        {"copies_to_device", stats->copies_to_device},
        {"copies_to_host", stats->copies_to_host},
        {"copies_between", stats->copies_between},
        {"evictions", stats->evictions},
        {"write_backs", stats->write_backs},
        {"steals", stats->steals},
        {"steal_attempts", stats->steal_attempts},
    };

    duet__json_begin(writer, NULL, '{');
    for (size_t i = 0; i < G_N_ELEMENTS(figures); i++)
        duet__json_put_integer(writer, figures[i].name, figures[i].value);
    duet__json_end(writer, '}');
}

static void put_report_extra(FILE *stream, const struct duet_report *report)
{
    struct duet__json_writer writer = {.stream = stream};
    char *place = duet_report_place(report),
         *resources = duet_report_resources(&report->request->machine);

    begin_extra(&writer);
    for (size_t i = 0; i < report->series_count; i++) {
        const struct duet_recording *recording = duet_run_recording(report->series[i].runs);

        if (recording)
            put_recording(&writer, i, report->series[i].policy, recording,
                          BARS / report->series_count);
    }
    duet__json_end(&writer, ']');
    duet__json_begin(&writer, "first_runs", '[');
    for (size_t i = 0; i < report->series_count; i++)
        put_first_run(&writer, &report->series[i].runs[0]);
    duet__json_end(&writer, ']');
    duet__json_put_string(&writer, "place", place);
    duet__json_put_string(&writer, "resources", resources);
    duet__json_put_boolean(&writer, "noise", report->request->config.noise);
    duet__json_end(&writer, '}');
    g_free(resources);
    g_free(place);
}

int duet_page_write_report(FILE *stream, const struct duet_report *report,
                           struct duet_message *message)
{
    const char *rest;
    int result;

    if (report->series_count == 0)
        return duet_fail(message, DUET_EINVAL, "no policy to report");
    rest = put_template(stream, duet__page_template, "@REPORT@");
    result = duet_report_write_json(stream, report, message);
    if (result)
        return result;
    rest = put_template(stream, rest, "@EXTRA@");
    put_report_extra(stream, report);
    fputs(rest, stream);
    return 0;
}

void duet_page_write_validation(FILE *stream, const struct duet_validation *validation)
{
    struct duet__json_writer writer = {.stream = stream};
    const char *names[] = {validation->first_name, validation->second_name};
    const char *rest = put_template(stream, duet__page_template, "@REPORT@");

    duet_validation_write_json(stream, validation);
    rest = put_template(stream, rest, "@EXTRA@");
    begin_extra(&writer);
    for (size_t i = 0; i < validation->case_count; i++) {
        const struct duet_side *sides[] = {&validation->cases[i].predicted,
                                           &validation->cases[i].measured};

        for (int side = 0; side < 2; side++)
            if (sides[side]->recording)
                put_recording(&writer, i, names[side], sides[side]->recording,
                              BARS / (2 * validation->case_count));
    }
    duet__json_end(&writer, ']');
    duet__json_end(&writer, '}');
    fputs(rest, stream);
}
