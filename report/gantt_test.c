/* SPDX-License-Identifier: Apache-2.0 */
/* Gantt charts: rows, merging of short neighbours, ticks, well-formed SVG. */
#include "report/gantt.h"

#include <math.h>

#include "report/testing_report.h"

static void test_rows(void)
{
    struct sample sample;
    struct duet_gantt gantt;
    size_t tasks = 0, copies = 0;

    sample_init(&sample, 2, 2, 100);
    g_assert_cmpint(duet_gantt_build(&gantt, &sample.recordings[0], 100000, NULL), ==, 0);
    g_assert_cmpuint(gantt.row_count, ==, 2 + 2 * 3);
    g_assert_cmpstr(gantt.rows[2].name, ==, "gpu0");
    g_assert_cmpint(gantt.rows[3].lane, ==, DUET_GANTT_IN);
    g_assert_cmpint(gantt.rows[4].lane, ==, DUET_GANTT_OUT);
    for (size_t r = 0; r < gantt.row_count; r++) {
        const struct duet_gantt_row *row = &gantt.rows[r];

        for (size_t i = row->first; i < row->first + row->count; i++) {
            g_assert_cmpuint(gantt.bars[i].count, ==, 1);
            *(row->lane == DUET_GANTT_KERNELS ? &tasks : &copies) += 1;
        }
    }
    g_assert_cmpuint(tasks, ==, 100);
    g_assert_cmpuint(copies, >=, sample.recordings[0].event_count - 100);
    g_assert_cmpfloat(gantt.end_s, >=, sample.recordings[0].makespan_s);
    duet_gantt_fini(&gantt);
    duet_gantt_fini(&gantt);
    sample_fini(&sample);
}

/* Merging keeps every event and every date, and leaves no more bars than asked for. */
static void test_merge(void)
{
    struct sample sample;
    struct duet_gantt whole, merged;
    size_t events = 0;

    sample_init(&sample, 2, 4, 5000);
    g_assert_cmpint(duet_gantt_build(&whole, &sample.recordings[0], 1000000, NULL), ==, 0);
    g_assert_cmpint(duet_gantt_build(&merged, &sample.recordings[0], 500, NULL), ==, 0);
    g_assert_cmpuint(merged.bar_count, <=, 500 + 2 * merged.row_count);
    for (size_t r = 0; r < merged.row_count; r++) {
        const struct duet_gantt_row *row = &merged.rows[r], *all = &whole.rows[r];
        double end = 0;

        g_assert_cmpfloat(merged.bars[row->first].start_s, ==, whole.bars[all->first].start_s);
        for (size_t i = row->first; i < row->first + row->count; i++) {
            g_assert_cmpfloat(merged.bars[i].start_s, >=, end - 1e-2);
            end = merged.bars[i].end_s;
            events += merged.bars[i].count;
        }
    }
    g_assert_cmpuint(events, ==, whole.bar_count);
    duet_gantt_fini(&whole);
    duet_gantt_fini(&merged);
    sample_fini(&sample);
}

static void test_ticks(void)
{
    double scale;

    g_assert_cmpfloat_with_epsilon(duet_gantt_tick(10, 10), 1, 1e-12);
    g_assert_cmpfloat_with_epsilon(duet_gantt_tick(37, 10), 5, 1e-12);
    g_assert_cmpfloat_with_epsilon(duet_gantt_tick(0.0019, 10), 0.0002, 1e-12);
    g_assert_cmpstr(duet_gantt_unit(2, &scale), ==, "s");
    g_assert_cmpstr(duet_gantt_unit(0.2, &scale), ==, "ms");
    g_assert_cmpfloat(scale, ==, 1000);
}

/* GLib's parser takes well-formed markup only. */
static void assert_svg(const struct duet_gantt *gantt, const char *title)
{
    const GMarkupParser parser = {0};
    GMarkupParseContext *context = g_markup_parse_context_new(&parser, 0, NULL, NULL);
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    GError *error = NULL;

    duet_gantt_write_svg(stream, gantt, title, "below");
    fclose(stream);
    g_markup_parse_context_parse(context, text, (gssize)size, &error);
    g_assert_no_error(error);
    g_assert_true(g_markup_parse_context_end_parse(context, &error));
    g_markup_parse_context_free(context);
    g_assert_null(strstr(text, "nan"));
    free(text);
}

static void test_svg(void)
{
    struct sample sample;
    struct duet_gantt gantt;
    struct duet_recording empty;

    sample_init(&sample, 2, 2, 300);
    g_assert_cmpint(duet_gantt_build(&gantt, &sample.recordings[1], 200, NULL), ==, 0);
    assert_svg(&gantt, "<title> & \"more\"");
    duet_gantt_fini(&gantt);
    empty = sample.recordings[0];
    empty.event_count = 0;
    empty.makespan_s = 0;
    g_assert_cmpint(duet_gantt_build(&gantt, &empty, 200, NULL), ==, 0);
    assert_svg(&gantt, "nothing");
    duet_gantt_fini(&gantt);
    sample_fini(&sample);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/gantt/rows", test_rows);
    g_test_add_func("/gantt/merge", test_merge);
    g_test_add_func("/gantt/ticks", test_ticks);
    g_test_add_func("/gantt/svg", test_svg);
    return g_test_run();
}
