/* SPDX-License-Identifier: Apache-2.0 */
/* Reports and validations are read as they were written, and other files are refused. */
#include "report/compare.h"

#include <string.h>

#include "report/report.h"
#include "report/testing_report.h"
#include "report/testing_mutate.h"

static const struct duet__read_run *run_at(const struct duet__file_runs *file, guint index)
{
    return &g_array_index(file->runs, struct duet__read_run, index);
}

static void test_report(void)
{
    OWNED(sample_fini) struct sample sample;
    struct duet__file_runs file;
    g_autoptr(GRand) random = g_rand_new_with_seed(32);
    g_autofree char *left = testing_text(random, 1000, 3000), *text = NULL;
    sample_init(&sample, 4, 3, 60);
    sample.request.problem.settings = &(struct duet__setting){"variant", left};
    sample.request.problem.setting_count = 1;
    text = sample_written(duet__report_write_json, &sample.report);
    WORKS(duet__read_text(text, strlen(text), "r.json", &file, hear()));
    g_assert_false(file.cases);
    g_assert_cmpuint(file.runs->len, ==, SAMPLE_POLICIES);
    for (unsigned p = 0; p < SAMPLE_POLICIES; p++) {
        const struct duet__read_run *run = run_at(&file, p);
        g_assert_cmpstr(run->problem.workload, ==, "cholesky");
        g_assert_true(g_str_has_prefix(run->problem.settings, "variant="));
        g_assert_cmpstr(run->problem.settings + strlen("variant="), ==, left);
        g_assert_cmpstr(run->problem.policy, ==, sample_policies[p]);
        g_assert_cmpstr(run->problem.platform, ==, "sample");
        g_assert_cmpstr(run->world, ==, "simulated");
        g_assert_cmpuint(run->problem.n, ==, 38400);
        g_assert_cmpuint(run->problem.tile, ==, 960);
        g_assert_cmpuint(run->problem.cpus, ==, 4);
        g_assert_cmpuint(run->problem.gpus, ==, 3);
        g_assert_cmpint(run->problem.precision, ==, 'd');
        g_assert_true(run->problem.set_arch);
        g_assert_cmpuint(run->side.count, ==, SAMPLE_RUNS);
        for (unsigned r = 0; r < SAMPLE_RUNS; r++)
            g_assert_cmpfloat(run->side.makespans_s[r], ==, sample.runs[p][r].stats.makespan_s);
    }
    duet__read_fini(&file);
    duet__read_fini(&file);
}

#define CASE "\"workload\":\"lu\",\"precision\":\"d\",\"policy\":\"ws\",\"n\":1,\"tile\":1"

/* A side without values is left out, and unknown members are ignored. */
static void test_validation(void)
{
    static const char text[] =
        "{\"schema\":1,\"fail_over\":null,\"cases\":[{" CASE ",\"settings\":\"variant=left\","
        "\"predicted\":{\"makespans_s\":[1,2],\"median_s\":1.5},\"error\":null,"
        "\"measured\":{\"rounds\":[1,2],\"makespans_s\":[3,5,4]}},{" CASE ",\"failure\":\"no\","
        "\"predicted\":{\"makespans_s\":[]},\"measured\":{\"makespans_s\":[4]}}]}";
    OWNED(duet__read_fini) struct duet__file_runs file;
    WORKS(duet__read_text(text, strlen(text), "v", &file, hear()));
    g_assert_cmpuint(file.runs->len, ==, 3);
    g_assert_cmpstr(run_at(&file, 0)->world, ==, "predicted");
    g_assert_cmpuint(run_at(&file, 0)->side.count, ==, 2);
    g_assert_cmpstr(run_at(&file, 0)->problem.settings, ==, "variant=left");
    g_assert_cmpstr(run_at(&file, 1)->world, ==, "measured");
    g_assert_cmpstr(run_at(&file, 1)->problem.settings, ==, "variant=left");
    g_assert_cmpfloat(run_at(&file, 1)->side.makespans_s[0], ==, 3);
    g_assert_cmpuint(run_at(&file, 1)->side.round_count, ==, 2);
    g_assert_cmpuint(run_at(&file, 1)->side.rounds[1], ==, 2);
    g_assert_null(run_at(&file, 0)->side.rounds);
    g_assert_cmpstr(run_at(&file, 2)->world, ==, "measured");
    g_assert_cmpstr(run_at(&file, 2)->problem.settings, ==, "");
    g_assert_cmpfloat(run_at(&file, 2)->side.makespans_s[0], ==, 4);
}

static void test_refused(void)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"[]", "expected an object"},
        {"{\"traceEvents\":[]}", "r.json: no trace of duet's"},
        {"", "r.json:1: "},
        {"{}", "schema: missing"},
        {"{\"schema\":2,\"runs\":[]}", "schema: 2 is out of range"},
        {"{\"schema\":\"1\"}", "schema: expected a number"},
        {"{\"schema\":1}", "there is no run"},
        {"{\"schema\":1,\"fail_over\":0,\"cases\":[{" CASE
         ",\"measured\":{\"rounds\":[1,2],\"makespans_s\":[3]}}]}",
         "measured: the rounds have 3 runs of 1"},
        {"{\"schema\":1,\"fail_over\":0,\"cases\":[{" CASE
         ",\"measured\":{\"rounds\":[1],\"makespans_s\":[3,4]}}]}",
         "measured: the rounds have 1 runs of 2"},
        {"{\"schema\":1,\"fail_over\":0,\"cases\":[{" CASE
         ",\"measured\":{\"rounds\":[0],\"makespans_s\":[3]}}]}",
         "rounds[0]: 0 is out of range"},
        {"{\"schema\":1,\"runs\":[]}", "there is no run"},
        {"{\"schema\":1,\"runs\":{}}", "expected an array"},
        {"{\"schema\":1,\"runs\":[{}]}", "runs[0].n: missing"},
        {"{\"schema\":1,\"runs\":[{" CASE "}]}", "a run needs its world"},
        {"{\"schema\":1,\"runs\":[{" CASE ",\"world\":\"real\"}]}", "there is no run"},
        {"{\"schema\":1,\"runs\":[{\"n\":1.5}]}", "not a whole number"},
        {"{\"schema\":1,\"runs\":[{\"cpus\":5000000000}]}", "cpus: 5000000000 is out of range"},
        {"{\"schema\":1,\"runs\":[{" CASE ",\"makespan_s\":{\"values\":[1,0]}}]}",
         "values[1]: 0 is out of range"},
        {"{\"schema\":1,\"runs\":[{" CASE ",\"makespan_s\":{\"values\":[null]}}]}",
         "expected a number"},
        {"{\"schema\":1,\"cases\":[{" CASE ",\"predicted\":[]}]}", "expected an object"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        OWNED(duet__read_fini) struct duet__file_runs file;
        g_assert_cmpint(duet__read_text(cases[i].text, strlen(cases[i].text), "r.json", &file,
                                        hear()),
                        ==, DUET_EPARSE);
        if (!strstr(heard(), cases[i].says) || !strstr(heard(), "r.json"))
            g_error("'%s', not '%s'", heard(), cases[i].says);
    }
}

enum { ROUNDS = 5000 };

static void test_fuzz(void)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(20261121);
    OWNED(sample_fini) struct sample sample;
    g_autofree char *seed = NULL;
    sample_init(&sample, 1, 2, 12);
    seed = sample_written(duet__report_write_json, &sample.report);
    for (unsigned i = 0; i < ROUNDS; i++) {
        GString *text = g_string_new(seed);
        OWNED(duet__read_fini) struct duet__file_runs file;
        testing_mutate(text, random);
        /* exactly this long, so that sanitizers see an overrun */
        g_autofree char *exact = g_memdup2(text->str, text->len + 1);
        if (duet__read_text(exact, text->len, "fuzz", &file, hear()))
            g_assert_cmpstr(heard(), !=, "");
        else
            g_assert_cmpuint(file.runs->len, >, 0);
        g_string_free(text, TRUE);
    }
}

TEST_MAIN(test_report, test_validation, test_refused, test_fuzz)
