/* SPDX-License-Identifier: Apache-2.0 */
/* The trace export is valid JSON, says what happened, and no thread does two things at once. */
#include "trace/trace.h"

#include <locale.h>
#include <string.h>

#include "report/testing_json.h"
#include "report/testing_report.h"

/* The trace, read back; free with json_decref. */
static json_t *exported(const struct duet__recording *recording)
{
    json_t *root;
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    const struct duet__trace trace = {.run = {.recording = *recording}};
    duet__trace_write(stream, &trace);
    fclose(stream);
    root = json_of(text, size);
    free(text);
    return root;
}

static void test_sample(void)
{
    OWNED(sample_fini) struct sample sample;
    json_t *event;
    double ends[4096] = {0};
    size_t complete = 0, i;
    sample_init(&sample, 2, 3, 500);
    json_auto_t *root = exported(&sample.recordings[0]);
    json_array_foreach(json_at(root, "traceEvents"), i, event)
    {
        const double start = number_at(event, "ts");
        const size_t tid = (size_t)number_at(event, "tid");
        if (g_strcmp0(text_at(event, "ph"), "X") != 0)
            continue;
        g_assert_cmpuint(tid, <, G_N_ELEMENTS(ends));
        g_assert_cmpfloat(start, >=, ends[tid] - 1e-6);
        ends[tid] = start + number_at(event, "dur");
        complete++;
    }
    g_assert_cmpuint(complete, ==, sample.recordings[0].event_count);
}

/* Two copies into one device that overlap stand on two threads; names and numbers are right. */
static void test_overlap(void)
{
    struct duet_event events[] = {
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
    OWNED(sample_fini) struct sample sample;
    struct duet__recording recording;
    json_t *event, *found[2];
    size_t count = 0, i;
    sample_init(&sample, 1, 2, 1);
    recording = sample.recordings[0];
    recording.events = events;
    recording.event_count = 2;
    json_auto_t *root = exported(&recording);
    json_array_foreach(json_at(root, "traceEvents"), i, event)
    {
        if (g_strcmp0(text_at(event, "ph"), "X") == 0 && count < 2)
            found[count++] = event;
    }
    g_assert_cmpuint(count, ==, 2);
    g_assert_cmpstr(text_at(found[1], "name"), ==, "gpu1 to gpu0");
    g_assert_cmpfloat(number_at(found[1], "ts"), ==, 1000);
    g_assert_cmpfloat(number_at(found[1], "dur"), ==, 2000);
    g_assert_cmpfloat(number_at(found[0], "pid"), ==, number_at(found[1], "pid"));
    g_assert_cmpfloat(number_at(found[0], "tid"), !=, number_at(found[1], "tid"));
    g_assert_cmpfloat(number_at(found[0], "args.bytes"), ==, 7);
}

/* The application's names are beside the kernels', its marks on a track of their own. */
static void test_names(void)
{
    const char *names[] = {"block \"3\"", "solve", "converged"};
    struct duet_trace_mark marks[] = {{.name = 2, .phase = true, .start_s = 1e-3, .end_s = 3e-3},
                                      {.name = 3, .start_s = 2e-3, .end_s = 2e-3}};
    struct duet_event event = {.kind = DUET_EVENT_TASK, .end_s = 1e-3, .name = 1, .iteration = 7};
    OWNED(sample_fini) struct sample sample;
    struct duet__recording recording;
    json_t *at, *args = NULL, *found[2] = {NULL, NULL};
    size_t k;
    sample_init(&sample, 1, 1, 1);
    recording = sample.recordings[0];
    recording.events = &event;
    recording.event_count = 1;
    recording.names = names;
    recording.name_count = G_N_ELEMENTS(names);
    recording.marks = marks;
    recording.mark_count = G_N_ELEMENTS(marks);
    json_auto_t *root = exported(&recording);
    json_array_foreach(json_at(root, "traceEvents"), k, at)
    {
        const char *kind = text_at(at, "cat");
        if (g_strcmp0(kind, "kernel") == 0)
            args = json_at(at, "args");
        if (g_strcmp0(kind, "phase") == 0)
            found[0] = at;
        if (g_strcmp0(kind, "mark") == 0)
            found[1] = at;
    }
    g_assert_cmpstr(text_at(args, "name"), ==, names[0]);
    g_assert_cmpfloat(number_at(args, "iteration"), ==, 7);
    for (unsigned i = 0; i < 2; i++) {
        g_assert_cmpstr(text_at(found[i], "name"), ==, names[i + 1]);
        g_assert_cmpfloat(number_at(found[i], "pid"), ==, 3);
        g_assert_cmpfloat(number_at(found[i], "ts"), ==, 1000 * (i + 1));
    }
    g_assert_cmpfloat(number_at(found[0], "dur"), ==, 2000);
}

/* Paje's format has no commas in any locale. */
static void test_paje(void)
{
    static const char *const locales[] = {"C", "de_DE.UTF-8"}; /* de_DE if installed */
    char *texts[2] = {NULL};
    OWNED(sample_fini) struct sample sample;
    size_t size;
    sample_init(&sample, 2, 3, 50);
    for (unsigned i = 0; i < 2; i++) {
        const struct duet__trace trace = {.run.recording = sample.recordings[0], .paje = true};
        FILE *stream = open_memstream(&texts[i], &size);
        (void)setlocale(LC_NUMERIC, locales[i]);
        duet__trace_write(stream, &trace);
        fclose(stream);
    }
    (void)setlocale(LC_NUMERIC, "C");
    g_assert_true(strcmp(texts[0], texts[1]) == 0);
    g_assert_nonnull(strstr(texts[0], "\n13 "));
    free(texts[0]);
    free(texts[1]);
}

TEST_MAIN(test_sample, test_overlap, test_names, test_paje)
