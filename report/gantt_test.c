/* SPDX-License-Identifier: Apache-2.0 */
/* Gantt charts: rows, merging of short neighbours, units, well-formed SVG. */
#include "report/gantt.h"

#include "report/testing_report.h"

static void test_rows(void)
{
    OWNED(sample_fini) struct sample sample;
    struct duet__gantt gantt;
    size_t tasks = 0, copies = 0;
    sample_init(&sample, 2, 2, 100);
    duet__gantt_init(&gantt, &sample.recordings[0], 100000);
    g_assert_cmpuint(gantt.row_count, ==, 2 + 2 * 3);
    g_assert_cmpstr(gantt.rows[2].name, ==, "gpu0");
    g_assert_cmpint(gantt.rows[3].lane, ==, DUET_GANTT_IN);
    g_assert_cmpint(gantt.rows[4].lane, ==, DUET_GANTT_OUT);
    g_assert_cmpuint(gantt.rows[4].node, ==, gantt.rows[2].node);
    for (size_t r = 0; r < gantt.row_count; r++) {
        const struct duet__gantt_row *row = &gantt.rows[r];
        for (guint i = 0; i < row->bars->len; i++)
            g_assert_cmpuint(duet__gantt_bar(row, i)->count, ==, 1);
        g_assert_cmpuint(duet__gantt_find(&gantt, row->lane, row->index), ==, r);
        *(row->lane == DUET_GANTT_KERNELS ? &tasks : &copies) += row->bars->len;
    }
    g_assert_cmpuint(duet__gantt_find(&gantt, DUET_GANTT_KERNELS, 4), ==, gantt.row_count);
    g_assert_cmpuint(duet__gantt_find(&gantt, DUET_GANTT_IN, DUET_HOST), ==, gantt.row_count);
    g_assert_cmpuint(duet__gantt_find(&gantt, DUET_GANTT_OUT, 3), ==, gantt.row_count);
    g_assert_cmpuint(tasks, ==, 100);
    g_assert_cmpuint(copies, >=, sample.recordings[0].event_count - 100);
    g_assert_cmpuint(tasks + copies, ==, gantt.bar_count);
    g_assert_cmpfloat(gantt.end_s, >=, sample.recordings[0].makespan_s);
    g_assert_cmpfloat(gantt.merged_s, ==, 0);
    duet__gantt_fini(&gantt);
    duet__gantt_fini(&gantt);
}

/* Merging keeps every event and every date, and leaves no more bars than asked for. */
static void test_merge(void)
{
    OWNED(sample_fini) struct sample sample;
    struct duet__gantt whole, merged;
    size_t events = 0;
    sample_init(&sample, 2, 4, 5000);
    duet__gantt_init(&whole, &sample.recordings[0], 1000000);
    duet__gantt_init(&merged, &sample.recordings[0], 500);
    g_assert_cmpuint(merged.bar_count, <=, 500 + 2 * merged.row_count);
    g_assert_cmpfloat(merged.merged_s, >, 0);
    for (size_t r = 0; r < merged.row_count; r++) {
        const struct duet__gantt_row *row = &merged.rows[r];
        double end = 0;
        g_assert_cmpfloat(duet__gantt_bar(row, 0)->start_s, ==,
                          duet__gantt_bar(&whole.rows[r], 0)->start_s);
        for (guint i = 0; i < row->bars->len; i++) {
            g_assert_cmpfloat(duet__gantt_bar(row, i)->start_s, >=, end - 1e-2);
            end = duet__gantt_bar(row, i)->end_s;
            events += duet__gantt_bar(row, i)->count;
        }
    }
    g_assert_cmpuint(events, ==, whole.bar_count);
    duet__gantt_fini(&whole);
    duet__gantt_fini(&merged);
}

static void test_units(void)
{
    double scale;
    g_assert_cmpstr(duet__gantt_unit(2, &scale), ==, "s");
    g_assert_cmpstr(duet__gantt_unit(0.2, &scale), ==, "ms");
    g_assert_cmpfloat(scale, ==, 1000);
}

/* GLib's parser takes well-formed markup only. Where bars are merged, the picture says so. */
static void check_svg(const struct duet__recording *recording, const char *title, bool merged)
{
    const GMarkupParser parser = {0};
    GMarkupParseContext *context = g_markup_parse_context_new(&parser, 0, NULL, NULL);
    g_autofree char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    GError *error = NULL;
    duet__gantt_write_svg(stream, recording, title, "below");
    fclose(stream);
    g_markup_parse_context_parse(context, text, (gssize)size, &error);
    g_assert_no_error(error);
    g_assert_true(g_markup_parse_context_end_parse(context, &error));
    g_markup_parse_context_free(context);
    g_assert_null(strstr(text, "nan"));
    g_assert_true(!strstr(text, "pale bars are several") == !merged);
    g_assert_true(!strstr(text, "class=\"merged\"") == !merged);
}

/* The CSV has a line for each event, with the names of its places. */
static void test_csv(void)
{
    OWNED(sample_fini) struct sample sample;
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    sample_init(&sample, 2, 2, 300);
    duet__gantt_write_csv(stream, &sample.recordings[1]);
    fclose(stream);
    lines = g_strsplit(text, "\n", -1);
    g_assert_cmpuint(g_strv_length(lines), ==, sample.recordings[1].event_count + 2);
    g_assert_cmpstr(lines[0], ==, "worker,name,id,source,destination,bytes,start_s,end_s");
    for (size_t i = 0; i < sample.recordings[1].event_count; i++) {
        const struct duet_event *event = &sample.recordings[1].events[i];
        g_auto(GStrv) cells = g_strsplit(lines[i + 1], ",", -1);
        g_assert_cmpstr(cells[0], ==,
                        event->kind == DUET_EVENT_TASK
                            ? sample.recordings[1].machine->workers[event->worker].name
                            : "");
        g_assert_cmpfloat_with_epsilon(g_ascii_strtod(cells[7], NULL), event->end_s, 1e-12);
    }
}

static void test_svg(void)
{
    struct sample sample;
    struct duet__recording empty;
    sample_init(&sample, 2, 2, 300);
    check_svg(&sample.recordings[1], "<title> & \"more\"", false);
    empty = sample.recordings[0];
    empty.event_count = 0;
    empty.makespan_s = 0;
    check_svg(&empty, "nothing", false);
    sample_fini(&sample);
    sample_init(&sample, 2, 2, DUET_GANTT_SVG_BARS);
    check_svg(&sample.recordings[1], "large", true);
    sample_fini(&sample);
}

TEST_MAIN(test_rows, test_merge, test_units, test_csv, test_svg)
