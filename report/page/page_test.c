/* SPDX-License-Identifier: Apache-2.0 */
/* The page stands alone, and its two pieces of data are JSON with all that the script needs. A
 * browser tests its look. */
#include "report/page/page.h"

#include <math.h>

#include "report/gantt.h"
#include "report/testing_json.h"
#include "validate/testing_validation.h"

/* Returns the page's data of that name; free with json_decref. */
static json_t *data_of(const char *page, const char *id)
{
    g_autofree char *begin = g_strdup_printf("<script type=\"application/json\" id=\"%s\">", id);
    const char *at = strstr(page, begin) + strlen(begin);
    return json_of(at, (size_t)(strstr(at, "</script>") - at));
}

/* Data neither ends a script element nor loads anything. */
static void check_alone(const char *page)
{
    static const char *const forbidden[] = {"<link", "src=", "@import", "url(", "</script><b>"};
    for (size_t i = 0; i < G_N_ELEMENTS(forbidden); i++)
        g_assert_null(strstr(page, forbidden[i]));
    g_assert_cmpuint(count_of(page, "<script"), ==, count_of(duet__page_template, "<script"));
    g_assert_cmpuint(count_of(page, "</script"), ==, count_of(duet__page_template, "</script"));
    g_assert_true(g_str_has_suffix(page, "</html>\n"));
}

static char *report_page(const struct duet__report *report)
{
    char *text = sample_written(duet__page_write_report, report);
    check_alone(text);
    return text;
}

static char *validation_page(struct testing_validation *the)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    duet__validation_judge(&the->validation);
    duet__page_write_validation(stream, &the->validation);
    fclose(stream);
    duet__validation_fini(&the->validation);
    check_alone(text);
    return text;
}

/* Counts the events in the rows of a lane, and checks that all figures are there. */
static size_t count_events(const json_t *recording, int lane)
{
    static const char *const columns[] = {"starts", "lengths", "colours", "ids", "bytes", "peers"};
    size_t i, events = 0;
    json_t *row;
    json_array_foreach(json_at(recording, "rows"), i, row)
    {
        const json_t *counts = json_at(row, "counts");
        size_t bars = count_at(row, "starts");
        if (number_at(row, "lane") != lane)
            continue;
        for (size_t k = 0; k < (lane == DUET_GANTT_KERNELS ? 4 : 6); k++)
            g_assert_cmpuint(count_at(row, columns[k]), ==, bars);
        for (size_t k = 0; counts && k < bars; k++)
            events += (size_t)json_number_value(json_array_get(counts, k));
        events += counts ? 0 : bars;
    }
    return events;
}

static double sum_at(const json_t *root, const char *place)
{
    const json_t *numbers = json_at(root, place);
    double sum = 0;
    size_t i;
    json_t *number;
    json_array_foreach(numbers, i, number) sum += json_number_value(number);
    return sum;
}

/* The path leads from the beginning to the end, and gaps and kernels of a worker fill its time,
   but for short ones. */
static void check_account(const json_t *recording, const struct duet__recording *of)
{
    const double tick_s = number_at(recording, "tick_s");
    const json_t *path = json_at(recording, "path"), *rows = json_at(recording, "rows");
    size_t i;
    json_t *row, *curve;
    g_assert_cmpfloat(fabs(sum_at(path, "lengths") * tick_s - of->makespan_s), <,
                      1e-5 * of->makespan_s);
    g_assert_cmpuint(count_at(path, "rows"), ==, count_at(path, "lengths"));
    json_array_foreach(json_at(path, "states"), i, row)
    {
        const json_t *number = json_array_get(json_at(path, "rows"), i),
                     *at = json_array_get(rows, (size_t)json_number_value(number));
        g_assert_nonnull(at);
        if (json_number_value(row) == DUET_STATE_KERNEL)
            g_assert_cmpfloat(number_at(at, "lane"), ==, DUET_GANTT_KERNELS);
    }
    json_array_foreach(rows, i, row)
    {
        const bool gaps = json_at(row, "gaps") != NULL;
        double seconds = (sum_at(row, "lengths") + sum_at(row, "gaps.lengths")) * tick_s;
        g_assert_true(gaps == (number_at(row, "lane") == 0));
        g_assert_cmpuint(count_at(row, "gaps.states"), ==, count_at(row, "gaps.lengths"));
        if (gaps && !json_at(row, "counts"))
            g_assert_cmpfloat(fabs(seconds - of->makespan_s), <, 0.03 * of->makespan_s);
    }
    g_assert_cmpuint(count_at(recording, "strips"), >=, 2);
    json_array_foreach(json_at(recording, "strips.0.curves"), i, curve)
    {
        const size_t count = count_at(curve, "starts");
        g_assert_cmpuint(count, >, 0);
        g_assert_cmpuint(count_at(curve, "lows"), ==, count);
        g_assert_cmpfloat(json_number_value(json_array_get(json_at(curve, "lows"), count - 1)), ==,
                          0);
        g_assert_cmpfloat(sum_at(curve, "starts") * tick_s, <=, of->makespan_s * (1 + 1e-6));
    }
}

static void test_report(void)
{
    OWNED(sample_fini) struct sample sample;
    const json_t *first;
    sample_init(&sample, 2, 3, 400);
    sample.report.command = "duet simulate '</script><b>'";
    g_autofree char *text = report_page(&sample.report);
    json_auto_t *report = data_of(text, "report"), *extra = data_of(text, "extra");
    g_assert_cmpstr(text_at(report, "command"), ==, sample.report.command);
    g_assert_cmpuint(count_at(report, "runs"), ==, SAMPLE_POLICIES);
    g_assert_cmpuint(count_at(extra, "first_runs"), ==, SAMPLE_POLICIES);
    g_assert_cmpuint(count_at(extra, "recordings"), ==, SAMPLE_POLICIES);
    first = json_at(extra, "recordings.0");
    g_assert_cmpuint(count_events(first, DUET_GANTT_KERNELS), ==, 400);
    g_assert_cmpuint(count_events(first, DUET_GANTT_IN), >, 0);
    g_assert_null(strstr(text, "\"counts\""));
    check_account(first, &sample.recordings[0]);
}

/* A worker's row has what was planned of it, and a timeline without a plan has nothing of that. */
static void test_plan(void)
{
    static const char *const columns[] = {"lengths", "colours", "ids"};
    OWNED(sample_fini) struct sample sample;
    struct duet__run_plan plans[SAMPLE_POLICIES] = {0};
    struct duet_event planned = {.kind = DUET_EVENT_TASK, .id = 7, .worker = 1, .kernel = 2};
    const json_t *second;
    sample_init(&sample, 2, 3, 40);
    planned.end_s = 2 * sample.recordings[1].makespan_s;
    plans[1] = (struct duet__run_plan){.tasks = sample.recordings[1], .latest = 7, .late_s = 0.5};
    plans[1].tasks.events = &planned;
    plans[1].tasks.event_count = 1;
    sample.report.plans = plans;
    g_autofree char *text = report_page(&sample.report);
    json_auto_t *extra = data_of(text, "extra");
    second = json_at(extra, "recordings.1");
    g_assert_cmpuint(count_of(text, "\"plan\""), ==, 2);
    g_assert_cmpfloat(number_at(second, "plan.latest"), ==, 7);
    g_assert_cmpfloat(number_at(second, "end_s"), ==, planned.end_s);
    for (size_t i = 0; i < G_N_ELEMENTS(columns); i++)
        g_assert_cmpuint(count_at(json_at(second, "rows.1.plan"), columns[i]), ==, 1);
    g_assert_cmpfloat(sum_at(second, "rows.1.plan.ids"), ==, 7);
}

static void test_without_recording(void)
{
    OWNED(sample_fini) struct sample sample;
    sample_init(&sample, 2, 3, 40);
    for (unsigned i = 0; i < SAMPLE_POLICIES; i++)
        sample.runs[i][0].recording.machine = NULL;
    g_autofree char *text = report_page(&sample.report);
    json_auto_t *extra = data_of(text, "extra");
    g_assert_true(json_at(extra, "recordings") && !count_at(extra, "recordings"));
}

/* The page says where the run was made, so that nobody takes an emulated run for another one. */
static void test_emulated(void)
{
    OWNED(sample_fini) struct sample sample;
    sample_init(&sample, 2, 3, 40);
    sample.request.config.simulate = NULL;
    sample.request.config.emulate = "sample";
    sample.request.config.scale = 0.5;
    g_autofree char *text = report_page(&sample.report);
    json_auto_t *extra = data_of(text, "extra");
    g_assert_cmpstr(text_at(extra, "place"), ==,
                    "an emulated sample (times x 0.5, nothing computed)");
}

/* More events than a timeline's share of the page are merged, and the page knows from which length
   on. */
static void test_merged(void)
{
    enum { TASKS = 15000, TIMELINES = 40 };
    struct duet__series series[TIMELINES];
    OWNED(sample_fini) struct sample sample;
    const json_t *recording;
    sample_init(&sample, 2, 3, 40);
    g_free(sample.events[0]);
    sample_events(&sample, 0, TASKS);
    sample.runs[0][0].recording = sample.recordings[0];
    for (unsigned i = 0; i < TIMELINES; i++)
        series[i] = sample.series[i ? 1 : 0];
    sample.report.series = series;
    sample.report.series_count = TIMELINES;
    g_autofree char *text = report_page(&sample.report);
    json_auto_t *extra = data_of(text, "extra");
    g_assert_cmpuint(strlen(text), <, 2000000);
    recording = json_at(extra, "recordings.0");
    g_assert_cmpfloat(number_at(recording, "merged_s"), >, 0);
    g_assert_cmpuint(count_events(recording, DUET_GANTT_KERNELS), ==, TASKS);
    check_account(recording, &sample.recordings[0]);
}

/* Every side of a case has its timeline; the failed case 7 has one side. */
static void test_validation(void)
{
    static const size_t counts[] = {0, 1, 40};
    OWNED(testing_fini) struct testing_validation the;
    struct duet__run_plan plan = {.moved = 0};
    testing_init(&the, 40, 60);
    plan.tasks = *the.cases[0].measured.recording;
    the.cases[0].measured.plan = &plan;
    for (size_t i = 0; i < G_N_ELEMENTS(counts); i++) {
        the.validation.case_count = counts[i];
        g_autofree char *text = validation_page(&the);
        json_auto_t *report = data_of(text, "report"), *extra = data_of(text, "extra");
        g_assert_cmpuint(count_at(report, "cases"), ==, counts[i]);
        g_assert_cmpuint(count_at(extra, "recordings"), ==, 2 * counts[i] - (counts[i] > 7));
        g_assert_true((counts[i] > 0) == (strstr(text, "\"may_move\"") != NULL));
    }
}

TEST_MAIN(test_report, test_plan, test_without_recording, test_emulated, test_merged,
          test_validation)
