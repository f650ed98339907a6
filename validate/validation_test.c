/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons: figures of examples computed by hand, and properties of all three writers. */
#include "validate/validation.h"

#include "validate/testing_validation.h"
#include "report/report.h"
#include "report/testing_json.h"
#include "base/table.h"

/* Rounding error of a few operations on numbers near 1. */
static const double tiny = 1e-12;

enum { COLUMNS = 40 }; /* in the CSV */

/* ------------------------------------------------------------------------------------------- */
/* Figures                                                                                      */

/* Returns a case of one workload whose sides have the given values. */
static struct duet__case plain(const char *policy, uint64_t n, const double *predicted,
                               size_t predicted_count, const double *measured,
                               size_t measured_count)
{
    return (struct duet__case){.workload = "cholesky",
                               .settings = "",
                               .platform = "vm",
                               .policy = policy,
                               .priorities = "workload",
                               .n = n,
                               .precision = 'd',
                               .predicted = {.makespans_s = predicted, .count = predicted_count},
                               .measured = {.makespans_s = measured, .count = measured_count}};
}

static struct duet__validation of(struct duet__case *cases, size_t count)
{
    return (struct duet__validation){.command = "duet validate",
                                     .title = "cholesky on vm",
                                     .first_name = "predicted",
                                     .second_name = "measured",
                                     .machine = "vm",
                                     .calibration = "",
                                     .date = "today",
                                     .cases = cases,
                                     .case_count = count,
                                     .fail_over = 0.15};
}

static void test_errors(void)
{
    static const double a[] = {1.1}, b[] = {0.9, 1.0, 1.2}, c[] = {2.0}, d[] = {1.5, 2.1},
                        e[] = {0.99}, f[] = {1.0, 1.0, 1.04, 0.98};
    struct duet__case cases[] = {
        plain("ws", 1, a, 1, b, 3), /* 1.1 / 1.0: +10 %, noise (1.2 - 0.9) / 2 = 15 % */
        plain("ws", 2, c, 1, d, 2), /* 2.0 / 1.8: +11.1 %, noise 0.3 / 1.8 = 16.7 % */
        plain("ws", 3, c, 1, a, 1), /* 2.0 / 1.1: +81.8 %, noise not known: fails */
        plain("ws", 4, e, 1, f, 4), /* 0.99 / 1.0: -1 %, noise 3 % */
        plain("ws", 5, e, 1, NULL, 0),
    };
    struct duet__validation validation = of(cases, G_N_ELEMENTS(cases));
    cases[4].failure = "no time";
    duet__validation_judge(&validation);
    g_assert_cmpfloat_with_epsilon(validation.cases[0].error, 0.1, tiny);
    g_assert_cmpfloat_with_epsilon(validation.cases[0].noise, 0.15, tiny);
    /* one run is taken for exact, and the interval of three is from the least to the largest */
    g_assert_cmpfloat_with_epsilon(validation.cases[0].error_low, 1.1 / 1.2 - 1, tiny);
    g_assert_cmpfloat_with_epsilon(validation.cases[0].error_high, 1.1 / 0.9 - 1, tiny);
    g_assert_cmpfloat_with_epsilon(validation.cases[1].error, 1.0 / 9, tiny);
    g_assert_true(isnan(validation.cases[2].noise));
    g_assert_cmpfloat_with_epsilon(validation.cases[2].error_low, 2 / 1.1 - 1, tiny);
    g_assert_cmpfloat_with_epsilon(validation.cases[2].error_high, 2 / 1.1 - 1, tiny);
    g_assert_true(isnan(validation.cases[4].error));
    g_assert_cmpuint(validation.cases[4].explanation.count, ==, 0);
    g_assert_cmpuint(validation.known, ==, 4);
    /* absolute: 1, 10, 11.1, 81.8 %; signed: -1, 10, 11.1, 81.8 % */
    g_assert_cmpfloat_with_epsilon(validation.median, (0.1 + 1.0 / 9) / 2, tiny);
    g_assert_cmpfloat_with_epsilon(validation.bias, (0.1 + 1.0 / 9) / 2, tiny);
    g_assert_cmpfloat_with_epsilon(validation.worst, 2 / 1.1 - 1, tiny);
    /* type 7: 0.85 of the way from the third to the fourth */
    g_assert_cmpfloat_with_epsilon(validation.p95, 1.0 / 9 + 0.85 * (2 / 1.1 - 1 - 1.0 / 9), tiny);
    g_assert_cmpuint(validation.within_noise, ==, 3);
    g_assert_cmpuint(validation.failed, ==, 1);
    g_assert_cmpuint(validation.refused, ==, 1);
    g_assert_cmpuint(validation.groups, ==, 0);
    duet__validation_fini(&validation);
    duet__validation_fini(&validation);
    validation.fail_over = 0; /* nothing is checked, but one case is still without a result */
    duet__validation_judge(&validation);
    g_assert_cmpuint(validation.failed, ==, 0);
    g_assert_cmpuint(validation.refused, ==, 1);
    duet__validation_fini(&validation);
}

/* Returns the verdict on a run in each of so many rounds; free with g_free. */
static char *verdict(size_t rounds, double spread)
{
    double a[64] = {0};
    size_t sizes[64];
    struct duet__case the = plain("a", 1, &(double){1}, 1, a, rounds);
    OWNED(duet__validation_fini) struct duet__validation validation = of(&the, 1);
    char *text;
    for (size_t i = 0; i < rounds; i++) {
        a[i] = 1 + spread * ((double)i / (double)rounds - 0.5);
        sizes[i] = 1;
    }
    the.measured.rounds = sizes;
    the.measured.round_count = rounds;
    duet__validation_judge(&validation);
    text = g_strdup(validation.verdict);
    return text;
}

static void test_verdict(void)
{
    static const struct {
        size_t rounds;
        double spread;
        const char *end;
    } expected[] = {
        {1, 0, NULL},
        {10, 0.01, " in 1 of 1 case; it is 0.4 % in the median case."},
        {4, 0.1, " case; what it is, 6 rounds would tell (--rounds)."},
        {10, 0.1, " case; below 3 % with about 14 rounds (--rounds)."},
        {10, 1, "even 300 rounds would leave more than 3 %."},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(expected); i++) {
        g_autofree char *text = verdict(expected[i].rounds, expected[i].spread);
        if (!expected[i].end)
            g_assert_null(text);
        else if (!g_str_has_suffix(text, expected[i].end))
            g_error("\"%s\" does not end with \"%s\"", text, expected[i].end);
    }
}

/* Rounds that differ are noise, and hide which policy is faster; the error's interval knows it. */
static void test_rounds(void)
{
    static const double steady[] = {1.00, 1.01, 1.02}, moving[] = {0.97, 1.08, 1.08, 1.12},
                        more[] = {1.1}, less[] = {1};
    static const size_t rounds[] = {6, 6, 6, 6};
    double a[24] = {0}, b[24] = {0};
    struct duet__case cases[] = {plain("a", 1, more, 1, a, 24), plain("b", 1, less, 1, b, 24)};
    struct duet__validation validation = of(cases, G_N_ELEMENTS(cases));
    for (size_t i = 0; i < 24; i++) {
        a[i] = steady[i % 3];
        b[i] = moving[i / 6];
    }
    duet__validation_judge(&validation); /* 7th and 18th of independent runs */
    g_assert_cmpfloat_with_epsilon(validation.cases[0].noise, 0.01 / 1.01, tiny);
    g_assert_cmpfloat_with_epsilon(validation.cases[1].noise, 0, tiny);
    g_assert_cmpfloat_with_epsilon(validation.cases[1].error_low, 1 / 1.08 - 1, tiny);
    g_assert_cmpuint(validation.pairs, ==, 1);
    g_assert_cmpuint(validation.best_right, ==, 0);
    g_assert_cmpuint(validation.within_noise, ==, 0);
    duet__validation_fini(&validation);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        cases[i].measured.rounds = rounds;
        cases[i].measured.round_count = G_N_ELEMENTS(rounds);
    }
    duet__validation_judge(&validation); /* the interval has all values of b */
    g_assert_cmpfloat_with_epsilon(validation.cases[0].noise, 0.01 / 1.01, tiny);
    g_assert_cmpfloat_with_epsilon(validation.cases[1].noise, 0.15 / 2 / 1.08, tiny);
    g_assert_cmpfloat_with_epsilon(validation.cases[1].error_low, 1 / 1.12 - 1, tiny);
    g_assert_cmpfloat_with_epsilon(validation.cases[1].error_high, 1 / 0.97 - 1, tiny);
    g_assert_cmpuint(validation.pairs, ==, 0);
    g_assert_cmpuint(validation.best_right, ==, 1);
    g_assert_cmpuint(validation.within_noise, ==, 0); /* 7.4 %, above 6.9 % */
    duet__validation_fini(&validation);
}

static void test_policies(void)
{
    static const double one[] = {1}, two[] = {2}, three[] = {3}, four[] = {4},
                        broad[] = {1.8, 2.4}; /* 2.1 +- 0.3 */
    struct duet__case cases[] = {
        /* n 1: fastest right; pairs (a, b) right, (a, c) right, (b, c) wrong */
        plain("a", 1, one, 1, one, 1),
        plain("b", 1, three, 1, two, 1),
        plain("c", 1, two, 1, three, 1),
        plain("a", 1, four, 1, four, 1), /* again: the first one counts */
        /* n 2: noise hides which of b and c is faster, so that c is right; a is not fastest */
        plain("a", 2, four, 1, four, 1),
        plain("b", 2, three, 1, two, 1),
        plain("c", 2, two, 1, broad, 2),
        /* n 3: wrong, one pair */
        plain("a", 3, two, 1, one, 1),
        plain("b", 3, one, 1, two, 1),
        /* n 4: no two policies */
        plain("a", 4, one, 1, one, 1),
        plain("b", 4, one, 1, one, 1),
        plain("c", 4, one, 1, one, 1),
        plain("d", 4, one, 1, one, 1),
    };
    OWNED(duet__validation_fini)
    struct duet__validation validation = of(cases, G_N_ELEMENTS(cases));
    /* they differ in more than the policy */
    cases[G_N_ELEMENTS(cases) - 1].set_arch = true;
    cases[G_N_ELEMENTS(cases) - 2].hold = true;
    cases[G_N_ELEMENTS(cases) - 3].priorities = "none";
    duet__validation_judge(&validation);
    g_assert_cmpuint(validation.groups, ==, 3);
    g_assert_cmpuint(validation.best_right, ==, 2);
    g_assert_cmpuint(validation.pairs, ==, 3 + 2 + 1);
    g_assert_cmpuint(validation.pairs_right, ==, 2 + 2 + 0);
}

/* Results from values that are not finite are not known. */
static void test_bad_values(void)
{
    static const double good[] = {1}, bad[] = {1, NAN};
    struct duet__case cases[] = {plain("ws", 512, bad, 2, good, 1)};
    OWNED(duet__validation_fini) struct duet__validation validation = of(cases, 1);
    duet__validation_judge(&validation);
    g_assert_cmpuint(validation.known, ==, 0);
    g_assert_true(isnan(cases[0].error));
}

/* Parts of every case's explanation, and the means over all, add up to the errors. */
static void test_explanation(void)
{
    OWNED(testing_fini) struct testing_validation the;
    struct duet__causes causes;
    double whole = 0, shares = 0;
    testing_init(&the, 24, 20);
    the.rooms[3].accounts[0].workers++; /* accounts of two machines: not explained, no failure */
    duet__validation_judge(&the.validation);
    g_assert_cmpuint(the.cases[3].explanation.count, ==, 0);
    for (size_t i = 0; i < the.validation.case_count; i++) {
        const struct duet__explanation *explanation = &the.cases[i].explanation;
        double sum = 0;
        if (i == 3 || i == 7)
            continue;
        g_assert_cmpuint(explanation->count, >, 0);
        for (size_t k = 0; k < explanation->count; k++)
            sum += explanation->differences[k].seconds;
        whole += the.cases[i].error / 22;
        g_assert_cmpfloat_with_epsilon(sum / explanation->second_s, the.cases[i].error, 1e-9);
    }
    causes = duet__causes_of(&the.validation);
    g_assert_cmpuint(causes.cases, ==, 22);
    for (size_t i = 0; i < causes.count; i++)
        shares += causes.parts[i].share;
    g_assert_cmpfloat_with_epsilon(causes.whole, whole, 1e-9);
    g_assert_cmpfloat_with_epsilon(shares, whole, 1e-9);
    g_free(causes.parts);
    duet__validation_fini(&the.validation);
}

/* Returns the part that duet__culprit blames among these, the largest first. */
static size_t culprit_of(struct duet__difference *parts, size_t count)
{
    struct duet__explanation explanation = {.differences = parts, .count = count};
    return (size_t)(duet__culprit(&explanation) - parts);
}

static void test_culprit(void)
{
    struct duet__difference parts[] = {{.reason = DUET_REASON_IDLE, .seconds = -9},
                                       {.reason = DUET_REASON_KERNEL, .seconds = 4},
                                       {.reason = DUET_REASON_OVERHEAD, .seconds = -4},
                                       {.reason = DUET_REASON_SCHEDULE, .seconds = -3.5},
                                       {.reason = DUET_REASON_TO_DEVICE, .seconds = -3.2}};
    struct duet__explanation none = {.count = 0};
    /* the culprit neither makes up for the difference nor follows from other parts */
    g_assert_cmpuint(culprit_of(parts, G_N_ELEMENTS(parts)), ==, 3);
    parts[0].seconds = -11; /* the other parts are less than a third of this one */
    g_assert_cmpuint(culprit_of(parts, G_N_ELEMENTS(parts)), ==, 0);
    parts[0] = (struct duet__difference){.reason = DUET_REASON_KERNEL, .seconds = -9};
    g_assert_cmpuint(culprit_of(parts, G_N_ELEMENTS(parts)), ==, 0);
    parts[0] = (struct duet__difference){.reason = DUET_REASON_SPREAD}; /* two equal runs */
    g_assert_cmpuint(culprit_of(parts, 1), ==, 0);
    g_assert_null(duet__culprit(&none));
}

/* ------------------------------------------------------------------------------------------- */
/* Writers                                                                                      */

enum writer { TEXT, VERBOSE, JSON, CSV };

static char *written(enum writer writer, const struct duet__validation *validation)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (writer == TEXT || writer == VERBOSE)
        duet__validation_write_text(stream, validation, writer == VERBOSE);
    else if (writer == JSON)
        duet__validation_write_json(stream, validation);
    else
        duet__validation_write_csv(stream, validation);
    fclose(stream);
    return text;
}

static void check_text(const struct duet__validation *validation)
{
    size_t explained = 0;
    bool marked = false; /* some intervals have less than 95 % */
    for (size_t i = 0; i < validation->case_count; i++) {
        const struct duet__case *the = &validation->cases[i];
        explained += the->explanation.count > 0;
        marked |= (the->measured.count > 2 && !the->measured.summary.holds) ||
                  (the->predicted.count > 2 && !the->predicted.summary.holds);
    }
    for (int verbose = 0; verbose < 2; verbose++) {
        g_autofree char *text = written(verbose ? VERBOSE : TEXT, validation);
        g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
        g_assert_true(g_utf8_validate(text, -1, NULL));
        for (size_t i = 0; lines[i]; i++)
            g_assert_cmpuint(duet__text_width(lines[i]), <=, DUET__WIDE_PAGE);
        g_assert_cmpuint(count_of(text, "largest cause: "), ==,
                         verbose ? explained : MIN(explained, 3));
        g_assert_null(strstr(text, "nan"));
        /* nothing fails without a limit */
        g_assert_cmpuint(count_of(text, "FAILED: "), ==, validation->failed > 0);
        g_assert_true(!validation->failed || validation->fail_over > 0);
        g_assert_cmpuint(count_of(text, " without a result\n"), ==, validation->refused > 0);
        g_assert_cmpuint(count_of(text, "\n* of fewer than 6 rounds"), ==, marked);
        g_assert_cmpuint(count_of(text, "disturbed by other processes: "), ==,
                         validation->disturbed_count > 0);
    }
}

static void check_json(const struct duet__validation *validation)
{
    g_autofree char *text = written(JSON, validation);
    json_auto_t *root = json_of(text, strlen(text));
    json_t *one;
    size_t i;
    g_assert_cmpfloat(number_at(root, "schema"), ==, 1);
    g_assert_cmpstr(text_at(root, "command"), ==, validation->command);
    g_assert_cmpuint(count_at(root, "cases"), ==, validation->case_count);
    json_array_foreach(json_at(root, "cases"), i, one)
    {
        const struct duet__case *the = &validation->cases[i];
        const json_t *measured = json_at(one, "measured"),
                     *values = json_at(measured, "makespans_s");
        g_assert_cmpstr(text_at(one, "workload"), ==, the->workload);
        g_assert_cmpstr(text_at(one, "policy"), ==, the->policy);
        g_assert_cmpuint(json_array_size(values), ==, the->measured.count);
        for (size_t k = 0; k < json_array_size(values); k++)
            g_assert_cmpfloat(json_number_value(json_array_get(values, k)), ==,
                              the->measured.makespans_s[k]);
        g_assert_true(json_is_null(json_at(measured, "rounds")) == !the->measured.round_count);
        g_assert_true(the->measured.count < 3
                          ? json_is_null(json_at(measured, "ci95_holds"))
                          : json_boolean_value(json_at(measured, "ci95_holds")) ==
                                the->measured.summary.holds);
        for (size_t k = 0; k < the->measured.round_count; k++)
            g_assert_cmpfloat(json_number_value(json_array_get(json_at(measured, "rounds"), k)), ==,
                              (double)the->measured.rounds[k]);
        g_assert_true(json_is_null(json_at(one, "error")) == (bool)isnan(the->error));
        if (the->explanation.count)
            g_assert_cmpuint(count_at(one, "explanation.parts"), ==, the->explanation.count);
        else
            g_assert_true(json_is_null(json_at(one, "explanation")));
    }
}

/* Returns the cells of a line of CSV, commas within quotes apart; sets *next behind it. */
static size_t cells_of(const char *line, const char **next)
{
    size_t cells = 1;
    bool quoted = false;
    for (; *line && (quoted || *line != '\n'); line++) {
        quoted ^= *line == '"';
        cells += !quoted && *line == ',';
    }
    *next = *line ? line + 1 : line;
    return cells;
}

static void check_csv(const struct duet__validation *validation)
{
    g_autofree char *text = written(CSV, validation);
    const char *line = text;
    size_t lines = 0;
    for (; *line; lines++)
        g_assert_cmpuint(cells_of(line, &line), ==, COLUMNS);
    g_assert_cmpuint(lines, ==, validation->case_count + 1);
    g_assert_null(strstr(text, "nan"));
    g_assert_null(strstr(text, "null"));
}

static void check_writers(struct duet__validation *validation)
{
    duet__validation_judge(validation);
    check_text(validation);
    check_json(validation);
    check_csv(validation);
    duet__validation_fini(validation);
}

static void test_writers(void)
{
    OWNED(testing_fini) struct testing_validation the;
    testing_init(&the, 40, 60);
    check_writers(&the.validation);
    the.validation.case_count = 1;
    check_writers(&the.validation);
    the.validation.case_count = 0;
    check_writers(&the.validation);
}

/* Two compared reports, of other kernels, have one run each, no accounts and no recordings. */
static void test_compare(void)
{
    static const char *other_kernels[] = {"dgemm", "dpotrf", "<dtrsm>"};
    OWNED(testing_fini) struct testing_validation the;
    char *text;
    testing_init(&the, 6, 60);
    the.validation.first_name = "A: before <of>.json";
    the.validation.second_name = "B: after.json";
    the.validation.fail_over = 0;
    the.sample.recordings[1].kernels = other_kernels;
    the.sample.recordings[1].kernel_count = G_N_ELEMENTS(other_kernels);
    check_writers(&the.validation);
    for (size_t i = 0; i < the.validation.case_count; i++) {
        the.cases[i].predicted =
            (struct duet__side){.makespans_s = the.rooms[i].makespans[0], .count = 1};
        the.cases[i].measured =
            (struct duet__side){.makespans_s = the.rooms[i].makespans[1], .count = 1};
        the.cases[i].speed = 0;
    }
    check_writers(&the.validation);
    duet__validation_judge(&the.validation);
    the.validation.disturbed_rounds = (const size_t[]){2, 5};
    the.validation.disturbed_count = 2;
    the.validation.left_out = 7;
    text = written(TEXT, &the.validation);
    g_assert_nonnull(strstr(text, "\ndisturbed by other processes: rounds 2, 5; 7 of their runs "
                                  "left out\n"));
    free(text);
    the.validation.left_out = 0;
    text = written(TEXT, &the.validation);
    g_assert_nonnull(strstr(text, "\ndisturbed by other processes: rounds 2, 5\n"));
    free(text);
    text = written(TEXT, &the.validation);
    g_assert_nonnull(strstr(text, "A: before <of>.json"));
    g_assert_nonnull(strstr(text, "absolute difference: "));
    g_assert_null(strstr(text, "noise"));
    g_assert_null(strstr(text, "speed"));
    g_assert_null(strstr(text, "predicted"));
    free(text);
    duet__validation_fini(&the.validation);
}

/* Names of any length and many cases leave lines within bounds. */
static void test_large(void)
{
    OWNED(testing_fini) struct testing_validation the;
    testing_init(&the, 200, 3000);
    for (size_t i = 100; i < 200; i++) {
        the.cases[i].policy = "/a/very/long/path/to/a/shared/object/with/a/policy/in/it/policy.so";
        the.cases[i].platform = "a platform with quite a long name, too";
        the.cases[i].set_arch = true;
        the.cases[i].precision = 's';
        the.cases[i].n = UINT64_MAX;
    }
    the.cases[150].failure = "a reason that is so long that it cannot stand in one line of a table "
                             "and has to be cut somewhere, because nobody wants to scroll";
    check_writers(&the.validation);
    the.validation.first_name = "/a/very/long/path/of/a/report/in/a/folder/somewhere/else.json";
    the.validation.case_count = 110;
    check_writers(&the.validation);
}

TEST_MAIN(test_errors, test_rounds, test_verdict, test_policies, test_bad_values, test_explanation,
          test_culprit, test_writers, test_compare, test_large)
