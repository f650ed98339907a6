/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the regression model, and of the registry of models. */
#include "core/models/testing.h"

static void add(double work, double mean_s, uint64_t samples)
{
    g_assert_cmpint(model->add(state, work, 3, mean_s, samples), ==, DUET_OK);
}

static void expect(double work, double seconds)
{
    double got = model->predict(state, work, 9);
    if (!(fabs(got - seconds) <= 1e-6 * seconds))
        g_error("work %g: %.12g, not %.12g", work, got, seconds);
}

/* An exact power law comes back, at large figures too. */
static void test_exact(void)
{
    static const double scales[] = {1, 1e6, 1e12};
    for (unsigned s = 0; s < 3; s++) {
        setup_model("regression");
        for (unsigned work = 2; work < 1000; work *= 2)
            add(work * scales[s], 3e-9 * pow(work, 1.2), 1 + work);
        for (unsigned work = 1; work < 100000; work *= 7)
            expect(work * scales[s], 3e-9 * pow(work, 1.2));
        finish();
    }
}

/* Tasks without data, times of 0, and sizes far away leave it a number. */
static void test_no_work(void)
{
    setup_model("regression");
    add(0, 0, 1);
    g_assert_cmpfloat(model->predict(state, 0, 0), ==, 0);
    add(0, 3, 2);
    expect(0, 3);
    add(10, 3, 2);
    expect(0, 3);
    expect(1e300, 3);
    finish();
}

/* n executions at once weigh as n. */
static void test_weights(void)
{
    setup_model("regression");
    add(10, 1, 3);
    add(10, 8, 1);
    add(100, 10, 4);
    double at_10 = exp((3 * log(1.0) + log(8.0)) / 4);
    expect(10, at_10);
    expect(100, 10);
    expect(sqrt(1000), sqrt(at_10 * 10));
    finish();
}

static void test_one_size(void)
{
    setup_model("regression");
    g_assert_cmpfloat(model->predict(state, 10, 0), ==, 0);
    add(1e9, 2, 5);
    add(1e9, 2, 5);
    expect(1e9, 2);
    expect(3e9, 6);
    finish();
}

static void test_registry(void)
{
    size_t count = 0;
    for (const struct duet_model *m; (m = duet_model_at(count)); count++) {
        g_assert_true(m->name && *m->name && m->description && *m->description);
        g_assert_true(m->add && m->predict && m->fini && m->state_size);
        g_assert_true(duet_model_find(m->name) == m);
    }
    g_assert_cmpuint(count, >=, 2);
    g_assert_cmpstr(duet_model_at(0)->name, ==, "history");
    g_assert_null(duet_model_at(count));
    g_assert_null(duet_model_find("none"));
}

TEST_MAIN(test_no_work, test_exact, test_weights, test_one_size, test_registry)
