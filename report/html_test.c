/* SPDX-License-Identifier: Apache-2.0 */
/* The page stands alone, shows every policy, and its embedded data is valid JSON. */
#include "report/html.h"

#include <jansson.h>

#include "report/testing_report.h"

static char *page(const struct duet_report *report)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    g_assert_cmpint(duet_html_write(stream, report, NULL), ==, 0);
    fclose(stream);
    return text;
}

static void assert_alone(const char *text)
{
    static const char *const forbidden[] = {"http:", "https:", "<link", "src=", "@import", "url("};

    for (size_t i = 0; i < G_N_ELEMENTS(forbidden); i++)
        g_assert_null(strstr(text, forbidden[i]));
}

static void test_page(void)
{
    static const char begin[] = "id=\"timelines\">";
    struct sample sample;
    json_t *data;
    char *text, *json;

    sample_init(&sample, 2, 3, 400);
    sample.report.command = "duet simulate '</script><b>'";
    text = page(&sample.report);
    assert_alone(text);
    g_assert_nonnull(strstr(text, "&lt;/script&gt;&lt;b&gt;"));
    for (unsigned i = 0; i < SAMPLE_POLICIES; i++)
        g_assert_nonnull(strstr(text, sample_policies[i]));
    json = strstr(text, begin) + strlen(begin);
    *strstr(json, "</script>") = 0;
    data = json_loads(json, JSON_REJECT_DUPLICATES, NULL);
    g_assert_nonnull(data);
    g_assert_cmpuint(json_array_size(json_object_get(data, "policies")), ==, SAMPLE_POLICIES);
    json_decref(data);
    free(text);
    sample_fini(&sample);
}

static void test_without_recording(void)
{
    struct sample sample;
    char *text;

    sample_init(&sample, 2, 3, 40);
    for (unsigned i = 0; i < SAMPLE_POLICIES; i++)
        sample.policies[i].recording = NULL;
    text = page(&sample.report);
    assert_alone(text);
    g_assert_null(strstr(text, "id=\"timelines\""));
    free(text);
    sample_fini(&sample);
}

/* An emulated run says so at the top, and shows no rate. */
static void test_emulated(void)
{
    struct duet_report_real real = {.emulation = DUET_EMULATION_PACED,
                                    .scale = 0.5,
                                    .lose = "gpu1@9",
                                    .cores = 2,
                                    .warmups = 4,
                                    .reps = SAMPLE_RUNS,
                                    .interrupted = true};
    struct sample sample;
    char *text;

    sample_init(&sample, 2, 3, 40);
    sample.report.world = "emulated";
    sample.report.real = &real;
    text = page(&sample.report);
    assert_alone(text);
    g_assert_nonnull(strstr(text, "on an emulated sample (times x 0.5, nothing computed)</h1>"));
    g_assert_nonnull(strstr(text, "gpu1@9"));
    g_assert_nonnull(strstr(text, "<dt>Warm-up runs</dt><dd>4</dd>"));
    g_assert_nonnull(strstr(text, "<dt>Interrupted</dt>"));
    g_assert_null(strstr(text, "<dt>Verification</dt>"));
    g_assert_null(strstr(text, " GFlop/s</tspan>"));
    free(text);
    real.emulation = DUET_EMULATION_FREE;
    real.formula = "||x||";
    real.threshold = 30;
    sample.runs[1][2].residual = 31;
    text = page(&sample.report);
    g_assert_nonnull(strstr(text, "on sample with emulated GPUs</h1>"));
    g_assert_nonnull(strstr(text, "<dd>FAILED: ||x|| = 31 at most, to be below 30</dd>"));
    g_assert_nonnull(strstr(text, " GFlop/s</tspan>"));
    free(text);
    sample_fini(&sample);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/html/page", test_page);
    g_test_add_func("/html/without_recording", test_without_recording);
    g_test_add_func("/html/emulated", test_emulated);
    return g_test_run();
}
