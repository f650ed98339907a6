/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of a report, and its table, JSON and CSV, for made-up runs. */
#include "report/report.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "report/metrics.h"
#include "report/testing_json.h"
#include "report/testing_report.h"
#include "base/stats.h"

/* Returns the median of a figure over the runs of the first policy. */
static double median(const struct sample *sample, unsigned metric)
{
    return duet__metric_median(&duet__metrics[metric], &sample->report, &sample->series[0], 0);
}

typedef void writer(FILE *stream, const struct duet__report *report);

/* Checks that the written text contains all of these texts, up to NULL. */
static void says(writer *write, const struct sample *sample, ...)
{
    g_autofree char *text = sample_written(write, &sample->report);
    const char *fragment;
    va_list fragments;
    va_start(fragments, sample);
    while ((fragment = va_arg(fragments, const char *)))
        if (!strstr(text, fragment))
            g_error("there is no '%s' in %s", fragment, text);
    va_end(fragments);
}

/* Returns the written lines. */
static GStrv lines_of(writer *write, const struct sample *sample)
{
    char *text = sample_written(write, &sample->report), **lines = g_strsplit(text, "\n", -1);
    free(text);
    return lines;
}

/* Members of every run in JSON. */
static const char members[] =
    "world workload n tile precision settings platform cpus gpus policy set_arch hold priorities "
    "estimated tasks makespan_s gflops bytes cache_hit_ratio idle_share idle_share_by_arch "
    "bounds_s basis wall_s";

static void test_summary(void)
{
    struct duet__policy_summary summary;
    OWNED(sample_fini) struct sample sample;
    sample_init(&sample, 2, 2, 10);
    for (unsigned i = 0; i < SAMPLE_RUNS; i++) {
        struct duet_stats *stats = &sample.runs[0][i].stats;
        stats->makespan_s = 1 + i;
        stats->busy_s = 2;
        stats->bytes_to_device = 100 * (i + 1);
    }
    summary = duet__report_summarise(&sample.series[0]);
    g_assert_cmpfloat(summary.makespan_s, ==, 2);
    g_assert_cmpfloat(summary.mean_s, ==, 2);
    /* Student's t, 2 degrees of freedom: 4.30265 standard errors of 1 / sqrt(3). The interval would
       begin below 0, so there is none */
    g_assert_true(isnan(summary.ci95_low_s) && isnan(summary.ci95_high_s));
    g_assert_cmpfloat(median(&sample, DUET__GFLOPS), ==, 500);
    g_assert_cmpfloat(median(&sample, DUET__TO_DEVICE), ==, 200);
    /* of 4 workers, over 1, 2 and 3 seconds */
    g_assert_cmpfloat_with_epsilon(median(&sample, DUET__IDLE), 0.75, 1e-12);
    g_assert_cmpfloat_with_epsilon(median(&sample, DUET__HITS), 2.0 / 3, 1e-12);
    for (unsigned i = 0; i < SAMPLE_RUNS; i++)
        sample.runs[0][i].stats.makespan_s += 1;
    summary = duet__report_summarise(&sample.series[0]);
    g_assert_cmpfloat_with_epsilon(summary.ci95_low_s, 3 - 4.302653 / sqrt(3), 1e-5);
    g_assert_cmpfloat_with_epsilon(summary.ci95_high_s, 3 + 4.302653 / sqrt(3), 1e-5);
}

static void test_no_device(void)
{
    OWNED(sample_fini) struct sample sample;
    sample_init(&sample, 2, 0, 10);
    sample.runs[0][1].stats.reads_on_device = 0;
    g_assert_true(isnan(median(&sample, DUET__HITS)));
    says(duet__report_write_json, &sample, "\"cache_hit_ratio\": null", NULL);
}

/* Checks that an object has these members, and those of `more`, and no others. */
static void assert_members(const json_t *object, const char *names, const char *more)
{
    g_autofree char *all = g_strconcat(names, more, NULL);
    g_auto(GStrv) wanted = g_strsplit(all, " ", -1);
    g_assert_cmpuint(json_object_size(object), ==, g_strv_length(wanted));
    for (char **name = wanted; *name; name++)
        g_assert_nonnull(json_object_get(object, *name));
}

static void test_json(void)
{
    OWNED(sample_fini) struct sample sample;
    g_autofree char *text = NULL;
    const json_t *run;
    sample_init(&sample, 2, 2, 100);
    sample.request.problem.settings = &(struct duet__setting){"variant", "left"};
    sample.request.problem.setting_count = 1;
    sample.request.config.without = "caches,start";
    sample.report.command = "duet simulate \"x\" \\";
    text = sample_written(duet__report_write_json, &sample.report);
    json_auto_t *root = json_of(text, strlen(text));
    assert_members(root, "schema command runs", "");
    g_assert_cmpfloat(number_at(root, "schema"), ==, 1);
    g_assert_cmpstr(text_at(root, "command"), ==, sample.report.command);
    g_assert_cmpuint(count_at(root, "runs"), ==, SAMPLE_POLICIES);
    run = json_at(root, "runs.1");
    assert_members(run, members, " without");
    g_assert_cmpstr(text_at(run, "settings"), ==, "variant=left");
    g_assert_cmpstr(text_at(run, "without"), ==, "caches,start");
    assert_members(json_at(run, "makespan_s"),
                   "median mean ci95_low ci95_high interval low high values", "");
    assert_members(json_at(run, "bytes"), "host_to_device device_to_host device_to_device", "");
    assert_members(json_at(run, "bounds_s"), "critical_path area mixed links best", "");
    g_assert_cmpstr(text_at(run, "policy"), ==, "ws");
    g_assert_true(json_is_null(json_at(run, "wall_s")));
    g_assert_cmpfloat(number_at(run, "makespan_s.values.2"), ==,
                      sample.runs[1][2].stats.makespan_s);
}

static void test_csv(void)
{
    OWNED(sample_fini) struct sample sample;
    g_auto(GStrv) lines = NULL;
    sample_init(&sample, 2, 2, 100);
    g_free(sample.request.platform_name);
    sample.request.platform_name = g_strdup("a,\"b\"");
    sample.report.show_wall = true;
    lines = lines_of(duet__report_write_csv, &sample);
    g_assert_cmpuint(g_strv_length(lines), ==, 1 + SAMPLE_POLICIES * SAMPLE_RUNS + 1);
    g_assert_true(g_str_has_prefix(lines[0], "world,workload,n,tile,"));
    g_assert_true(g_str_has_suffix(lines[0], ",wall_s,idle_share_x5650,idle_share_c2050"));
    g_assert_true(
        g_str_has_prefix(lines[5],
                         "simulated,cholesky,38400,960,d,\"a,\"\"b\"\"\",2,2,ws,true,1,2,100,"));
    g_assert_nonnull(strstr(lines[5], ",0.25,0."));
}

/* CPUs and GPUs are not idle alike: each architecture has a figure of its own. */
static void test_idle(void)
{
    OWNED(sample_fini) struct sample sample, without;
    g_auto(GStrv) lines = NULL;
    sample_init(&sample, 2, 2, 10);
    for (unsigned i = 0; i < SAMPLE_RUNS; i++) {
        struct duet_stats *stats = &sample.runs[0][i].stats;
        stats->makespan_s = 1;
        stats->busy_s = 0.5 + 1.5;
        stats->busy_by_arch_s[0] = 0.5;
        stats->busy_by_arch_s[1] = 1.5;
    }
    sample.report.series_count = 1;
    sample.series[0].count = 1;
    says(duet__report_write_json, &sample,
         "\"idle_share\": 0.5, \"idle_share_by_arch\": {\"x5650\": 0.75, \"c2050\": 0.25}", NULL);
    says(duet__report_write_csv, &sample, ",idle_share_x5650,idle_share_c2050\n", ",0.75,0.25\n",
         NULL);
    lines = lines_of(duet__report_write_table, &sample);
    g_assert_nonnull(strstr(lines[3], " idle%  idle%"));
    g_assert_nonnull(strstr(lines[4], " x5650  c2050"));
    g_assert_nonnull(strstr(lines[5], "  75.0   25.0"));

    /* one that no worker has is left out */
    sample_init(&without, 2, 0, 10);
    g_strfreev(lines);
    lines = lines_of(duet__report_write_table, &without);
    g_assert_nonnull(strstr(lines[3], " idle "));
    for (char **line = lines; *line; line++)
        g_assert_null(strstr(*line, "c2050"));
}

/* One or two runs have no known spread. */
static void test_few_runs(void)
{
    struct duet__policy_summary summary;
    OWNED(sample_fini) struct sample sample;
    sample_init(&sample, 2, 2, 10);
    for (size_t count = 1; count < DUET_INTERVAL_RUNS; count++) {
        for (unsigned p = 0; p < SAMPLE_POLICIES; p++)
            sample.series[p].count = count;
        summary = duet__report_summarise(sample.series);
        g_assert_true(isnan(summary.ci95_low_s) && isnan(summary.ci95_high_s));
        says(duet__report_write_json, &sample, "\"ci95_low\": null, \"ci95_high\": null", NULL);
        g_auto(GStrv) lines = lines_of(duet__report_write_table, &sample);
        g_assert_true(!strstr(lines[3], "95% of mean") == (count == 1));
        g_assert_true(!strstr(lines[5], "  -  ") == (count == 1));
    }
}

static void test_table(void)
{
    OWNED(sample_fini) struct sample sample;
    g_auto(GStrv) lines = NULL;
    g_autofree char *text = NULL;
    sample_init(&sample, 4, 8, 1000);
    lines = lines_of(duet__report_write_table, &sample);
    g_assert_cmpstr(lines[0], ==, "simulated on sample: 4 CPUs (x5650) + 8 GPUs (c2050)");
    g_assert_cmpstr(lines[1], ==,
                    "cholesky, n 38400, tile 960, double precision, 1000 tasks, set-arch, noise, "
                    "3 runs a policy");
    for (unsigned i = 0; i < SAMPLE_POLICIES; i++) {
        g_assert_true(g_str_has_prefix(lines[5 + i], sample_policies[i]));
        g_assert_cmpuint(strlen(lines[5 + i]), ==, strlen(lines[3]));
    }
    for (char **line = lines; *line; line++)
        g_assert_cmpuint(strlen(*line), <=, 100);

    sample.request.config.without = "caches";
    text = sample_written(duet__report_write_table, &sample.report);
    g_assert_nonnull(strstr(text, "set-arch, noise, without caches, 3 runs a policy"));
    g_assert_null(strstr(text, "estimated"));

    sample.request.estimated = g_strdup("dgeqrt, dtsqrt");
    sample.runs[0][0].choice = (struct duet_choice){"cp", 2, "dmda", 1.995, 1, ""};
    sample.runs[1][0].choice = (struct duet_choice){"cp", 2, "dmda", 2.5, 2, ""};
    sample.runs[2][0].choice = (struct duet_choice){"cp", 0, "", 0, 0, "some tasks expand"};
    says(duet__report_write_table, &sample,
         "\nestimated, not measured: times of dgeqrt, dtsqrt (duet list",
         " took cp, 2.0000 s expected of 1 task; dmda is as good\n",
         " took cp, 2.0000 s expected of 2 tasks; then dmda, +25.00 %\n",
         " took cp: some tasks expand\n", NULL);
}

/* ------------------------------------------------------------------------------------------- */
/* Runs on this machine                                                                         */

static const char formula[] = "||A - L L'|| / (n ||A|| eps)";

/* Makes the sample one of real runs whose residuals are 0.01, 0.02, ... */
static void sample_real(struct sample *sample)
{
    for (unsigned p = 0; p < SAMPLE_POLICIES; p++)
        for (unsigned r = 0; r < SAMPLE_RUNS; r++)
            sample->runs[p][r].verdict = (struct duet__verdict){.formula = formula,
                                                                .residual = 0.01 * (1 + r),
                                                                .threshold = 30};
    sample->request.config.simulate = NULL;
    sample->request.config.noise = false;
    sample->report.cores = 2;
    sample->report.show_wall = true;
}

/* Nobody has asked for a verification. */
static void sample_unverified(struct sample *sample)
{
    for (unsigned p = 0; p < SAMPLE_POLICIES; p++)
        for (unsigned r = 0; r < SAMPLE_RUNS; r++)
            sample->runs[p][r].verdict = (struct duet__verdict){0};
}

/* Returns the report as JSON; free with json_decref. */
static json_t *real_json(const struct sample *sample)
{
    g_autofree char *text = sample_written(duet__report_write_json, &sample->report);
    json_t *root = json_of(text, strlen(text));
    assert_members(root, "schema command interrupted runs", "");
    return root;
}

static void test_real_json(void)
{
    OWNED(sample_fini) struct sample sample;
    const json_t *run;
    sample_init(&sample, 2, 2, 100);
    sample_real(&sample);
    json_auto_t *root = real_json(&sample);
    run = json_at(root, "runs.1");
    assert_members(run, members,
                   " emulation lose cores warmups reps_wanted bounds_from verification");
    g_assert_cmpstr(text_at(run, "world"), ==, "real");
    g_assert_true(json_is_null(json_at(run, "emulation")));
    g_assert_true(json_is_null(json_at(run, "lose")));
    g_assert_cmpstr(text_at(run, "bounds_from"), ==, "measured");
    g_assert_cmpfloat(number_at(run, "warmups"), ==, 1);
    assert_members(json_at(run, "verification"), "formula threshold passed residuals", "");
    g_assert_true(json_is_true(json_at(run, "verification.passed")));
    g_assert_cmpfloat(number_at(run, "verification.residuals.2"), ==, 0.03);

    /* a residual that is no number does not pass, and is null */
    sample.request.config.emulate = "free";
    sample.request.config.lose = "gpu1@3";
    sample.report.interrupted = true;
    sample.runs[1][0].verdict.residual = NAN;
    json_auto_t *odd = real_json(&sample);
    run = json_at(odd, "runs.1");
    g_assert_true(json_is_false(json_at(run, "verification.passed")));
    g_assert_true(json_is_null(json_at(run, "verification.residuals.0")));
    g_assert_cmpstr(text_at(run, "emulation.kind"), ==, "free");
    g_assert_cmpstr(text_at(run, "lose"), ==, "gpu1@3");
    g_assert_true(json_is_true(json_at(odd, "interrupted")));
}

/* At a platform's pace nothing is computed: there is no rate, anywhere. */
static void test_paced(void)
{
    OWNED(sample_fini) struct sample sample;
    g_auto(GStrv) lines = NULL;
    sample_init(&sample, 2, 2, 100);
    sample_real(&sample);
    sample.request.config.emulate = "sample";
    sample.request.config.scale = 0.25;
    sample_unverified(&sample);
    g_assert_true(isnan(median(&sample, DUET__GFLOPS)));
    says(duet__report_write_json, &sample, "\"gflops\": null",
         "\"emulation\": {\"kind\": \"paced\", \"scale\": 0.25}", "\"bounds_from\": \"platform\"",
         "\"verification\": null", NULL);
    says(duet__report_write_table, &sample, "\nby the mean times of the platform\n", NULL);
    lines = lines_of(duet__report_write_table, &sample);
    g_assert_cmpstr(lines[0], ==,
                    "run on an emulated sample (times x 0.25, nothing computed): 2 CPUs (x5650) + "
                    "2 GPUs (c2050)");
    g_assert_nonnull(strstr(lines[3], "at scale 1"));
}

static void test_real_table(void)
{
    OWNED(sample_fini) struct sample sample;
    char *text;
    sample_init(&sample, 2, 2, 100);
    sample_real(&sample);
    sample.runs[0][0].bounds.critical_path_s = 0;
    sample.runs[0][1].bounds.critical_path_s = 0;
    text = sample_written(duet__report_write_table, &sample.report);
    g_assert_true(g_str_has_prefix(text, "run on sample: 2 CPUs (x5650) + 2 GPUs (c2050)\n"));
    free(text);
    says(duet__report_write_table, &sample, ", 3 runs a policy after 1 warm-up, 2 cores\n",
         "lower bounds of heft: critical path not known, area ",
         "||A|| eps), to be below 30: passed in all 9 runs\n", NULL);

    sample.report.interrupted = true;
    sample.request.config.lose = "gpu0@7";
    sample.runs[2][1].verdict.residual = 30;
    sample.series[2].count = 2;
    text = sample_written(duet__report_write_table, &sample.report);
    g_assert_true(g_str_has_prefix(
        text, "interrupted: of 3 runs a policy, heft has 3, ws has 3, locality-aware has 2\n"));
    free(text);
    says(duet__report_write_table, &sample, "\nlost on purpose: gpu0@7\n",
         ": FAILED in 1 of 8 runs\n", ", 2 to 3 runs a policy after 1 warm-up", NULL);

    sample.report.series_count = 0;
    text = sample_written(duet__report_write_table, &sample.report);
    g_assert_cmpstr(text, ==, "interrupted: of 3 runs a policy, none is finished\n");
    free(text);
}

static void test_real_csv(void)
{
    OWNED(sample_fini) struct sample sample;
    g_auto(GStrv) lines = NULL;
    sample_init(&sample, 2, 2, 100);
    sample_real(&sample);
    sample.request.config.emulate = "free";
    sample.request.config.lose = "gpu0@7,gpu1@8";
    sample.report.interrupted = true;
    sample.runs[0][1].verdict.residual = INFINITY;
    lines = lines_of(duet__report_write_csv, &sample);
    g_assert_true(g_str_has_suffix(
        lines[0], ",wall_s,emulation,scale,lose,cores,warmups,interrupted,residual,threshold,"
                  "idle_share_x5650,idle_share_c2050"));
    g_assert_nonnull(strstr(lines[1], ",0.25,free,,\"gpu0@7,gpu1@8\",2,1,true,0.01,30,"));
    g_assert_nonnull(strstr(lines[2], ",true,inf,30,"));
    sample_unverified(&sample);
    g_strfreev(lines);
    lines = lines_of(duet__report_write_csv, &sample);
    g_assert_nonnull(strstr(lines[1], ",true,,,0."));
}

TEST_MAIN(test_summary, test_no_device, test_json, test_csv, test_idle, test_few_runs, test_table,
          test_real_json, test_real_table, test_real_csv, test_paced)
