/* SPDX-License-Identifier: Apache-2.0 */
/* The timelines of the HTML page, as compact JSON that its script draws. */
#include "validate/html_parts.h"

#include <inttypes.h>
#include <math.h>

#include "validate/gantt.h"
#include "validate/html.h"
#include "validate/report_file.h"

/* A date in ticks. */
static int64_t ticks(double seconds, double tick)
{
    return (int64_t)llround(seconds / tick);
}

/*
 * Flat list of a row's bars: gap since the end of the one before, length (both in ticks), colour,
 * events, number of the first; for copies also bytes and the memory node at the other end.
 */
static void put_bars(FILE *stream, const struct duet_gantt *gantt, const struct duet_gantt_row *row,
                     double tick)
{
    int64_t at = 0;

    for (size_t i = row->first; i < row->first + row->count; i++) {
        const struct duet_gantt_bar *bar = &gantt->bars[i];
        int64_t start = ticks(bar->start_s, tick), end = ticks(bar->end_s, tick);

        fprintf(stream, "%s%" PRId64 ",%" PRId64 ",%" PRIu32 ",%" PRIu32 ",%" PRIu64,
                i > row->first ? "," : "", start - at, end - start, bar->colour, bar->count,
                bar->id);
        if (row->lane != DUET_GANTT_KERNELS)
            fprintf(stream, ",%" PRIu64 ",%u", bar->bytes,
                    row->lane == DUET_GANTT_IN ? bar->source : bar->destination);
        at = end;
    }
}

static void put_rows(FILE *stream, const struct duet_gantt *gantt, double tick)
{
    const struct duet_machine *machine = gantt->recording->machine;

    fputs("{\"rows\":[", stream);
    for (size_t i = 0; i < gantt->row_count; i++) {
        const struct duet_gantt_row *row = &gantt->rows[i];
        unsigned node =
            row->lane == DUET_GANTT_KERNELS ? machine->workers[row->index].node : row->index;

        fputs(i ? ",\n{\"name\":" : "\n{\"name\":", stream);
        duet_write_json_string(stream, row->name);
        fprintf(stream, ",\"lane\":%d,\"node\":%u,\"bars\":[", (int)row->lane, node);
        put_bars(stream, gantt, row, tick);
        fputs("]}", stream);
    }
    fputs("]}", stream);
}

static void put_colours(FILE *stream, size_t kernels)
{
    fputs(",\"colours\":[", stream);
    for (size_t i = 0; i < (kernels ? kernels : 1); i++)
        fprintf(stream, "%s\"%s\"", i ? "," : "", duet_gantt_kernel_colour(i));
    fputs("],\"copyColours\":[", stream);
    for (int i = 0; i < DUET_GANTT_COPIES; i++)
        fprintf(stream, "%s\"%s\"", i ? "," : "", duet_gantt_copy_colour((enum duet_gantt_copy)i));
    fputs("]", stream);
}

/* What all timelines have in common. All have the same machine and kernels. */
static void put_common(FILE *stream, const struct duet_recording *recording, double end_s,
                       double tick)
{
    fputs("{\"end\":", stream);
    duet_write_json_number(stream, end_s);
    fputs(",\"tick\":", stream);
    duet_write_json_number(stream, tick);
    fputs(",\"kernels\":[", stream);
    for (size_t i = 0; i < recording->kernel_count; i++) {
        if (i)
            putc(',', stream);
        duet_write_json_string(stream, recording->kernels[i]);
    }
    fputs("],\"nodes\":[", stream);
    for (unsigned i = 0; i < recording->machine->node_count; i++) {
        if (i)
            putc(',', stream);
        duet_write_json_string(stream, recording->machine->nodes[i].name);
    }
    fputs("]", stream);
    put_colours(stream, recording->kernel_count);
    fputs(",\"policies\":[", stream);
}

/* The end of the last event of all policies, or their longest makespan. */
static double common_end(const struct duet_report *report)
{
    double end = 0;

    for (size_t i = 0; i < report->policy_count; i++) {
        const struct duet_recording *recording = report->policies[i].recording;

        if (!recording)
            continue;
        end = fmax(end, recording->makespan_s);
        for (size_t k = 0; k < recording->event_count; k++)
            end = fmax(end, recording->events[k].end_s);
    }
    return end > 0 ? end : 1;
}

int duet__html_timelines(FILE *stream, const struct duet_report *report,
                         struct duet_message *message)
{
    double end = common_end(report), tick = pow(10, floor(log10(end)) - 8);
    size_t written = 0;

    for (size_t i = 0; i < report->policy_count; i++) {
        struct duet_gantt gantt;
        int result;

        if (!report->policies[i].recording)
            continue;
        result = duet_gantt_build(&gantt, report->policies[i].recording, DUET_HTML_BARS, message);
        if (result)
            return result;
        if (written++ == 0)
            put_common(stream, report->policies[i].recording, end, tick);
        else
            fputs(",\n", stream);
        put_rows(stream, &gantt, tick);
        duet_gantt_fini(&gantt);
    }
    if (written)
        fputs("]}\n", stream);
    return 0;
}
