/* SPDX-License-Identifier: Apache-2.0 */
/* The trace export is valid JSON, says what happened, and no thread does two things at once. */
#include "report/perfetto.h"

#include <json-glib/json-glib.h>

#include "report/testing_report.h"

static JsonParser *exported(const struct duet_recording *recording)
{
    JsonParser *parser = json_parser_new();
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    g_assert_cmpint(duet_perfetto_write(stream, recording, NULL), ==, 0);
    fclose(stream);
    g_assert_true(json_parser_load_from_data(parser, text, (gssize)size, NULL));
    free(text);
    return parser;
}

static JsonArray *events_of(JsonParser *parser)
{
    JsonObject *root = json_node_get_object(json_parser_get_root(parser));

    return json_object_get_array_member(root, "traceEvents");
}

static void test_sample(void)
{
    struct sample sample;
    JsonParser *parser;
    JsonArray *events;
    double ends[4096] = {0};
    size_t complete = 0;

    sample_init(&sample, 2, 3, 500);
    parser = exported(&sample.recordings[0]);
    events = events_of(parser);
    for (unsigned i = 0; i < json_array_get_length(events); i++) {
        JsonObject *event = json_array_get_object_element(events, i);
        double start, end;
        gint64 tid;

        if (g_strcmp0(json_object_get_string_member(event, "ph"), "X") != 0)
            continue;
        start = json_object_get_double_member(event, "ts");
        end = start + json_object_get_double_member(event, "dur");
        tid = json_object_get_int_member(event, "tid");
        g_assert_cmpint(tid, <, G_N_ELEMENTS(ends));
        g_assert_cmpfloat(start, >=, ends[tid] - 1e-6);
        ends[tid] = end;
        complete++;
    }
    g_assert_cmpuint(complete, ==, sample.recordings[0].event_count);
    g_object_unref(parser);
    sample_fini(&sample);
}

/* Two copies into one device that overlap stand on two threads; names and numbers are right. */
static void test_overlap(void)
{
    const struct duet_event events[] = {
        {.kind = DUET_EVENT_COPY,
         .id = 1,
         .start_s = 0,
         .end_s = 2e-3,
         .destination = 1,
         .bytes = 7},
        {.kind = DUET_EVENT_COPY,
         .id = 2,
         .start_s = 1e-3,
         .end_s = 3e-3,
         .source = 2,
         .destination = 1,
         .write_back = true},
    };
    struct sample sample;
    struct duet_recording recording;
    JsonParser *parser;
    JsonArray *list;
    JsonObject *found[2];
    unsigned count = 0;

    sample_init(&sample, 1, 2, 1);
    recording = sample.recordings[0];
    recording.events = events;
    recording.event_count = 2;
    parser = exported(&recording);
    list = events_of(parser);
    for (unsigned i = 0; i < json_array_get_length(list); i++) {
        JsonObject *event = json_array_get_object_element(list, i);

        if (g_strcmp0(json_object_get_string_member(event, "ph"), "X") == 0 && count < 2)
            found[count++] = event;
    }
    g_assert_cmpuint(count, ==, 2);
    g_assert_cmpstr(json_object_get_string_member(found[1], "name"), ==, "gpu1 to gpu0");
    g_assert_cmpfloat(json_object_get_double_member(found[1], "ts"), ==, 1000);
    g_assert_cmpfloat(json_object_get_double_member(found[1], "dur"), ==, 2000);
    g_assert_cmpint(json_object_get_int_member(found[0], "pid"), ==,
                    json_object_get_int_member(found[1], "pid"));
    g_assert_cmpint(json_object_get_int_member(found[0], "tid"), !=,
                    json_object_get_int_member(found[1], "tid"));
    g_assert_cmpint(json_object_get_int_member(json_object_get_object_member(found[0], "args"),
                                               "bytes"),
                    ==, 7);
    g_object_unref(parser);
    sample_fini(&sample);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/perfetto/sample", test_sample);
    g_test_add_func("/perfetto/overlap", test_overlap);
    return g_test_run();
}
