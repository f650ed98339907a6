/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the history model: exact means, and the power law between and beyond. */
#include "core/models/testing.h"

static void add(double work, uint64_t footprint, double mean_s, uint64_t samples)
{
    g_assert_cmpint(model->add(state, work, footprint, mean_s, samples), ==, DUET_OK);
}

static void expect(double work, uint64_t footprint, double seconds)
{
    double got = model->predict(state, work, footprint);
    if (fabs(got - seconds) > 1e-9 * seconds)
        g_error("work %g, footprint %u: %.12g, not %.12g", work, (unsigned)footprint, got, seconds);
}

static void test_means(void)
{
    setup_model("history");
    expect(100, 1, 0);
    add(100, 1, 2, 1);
    add(100, 1, 4, 1);
    expect(100, 1, 3);
    add(100, 1, 6, 2); /* weighs as two executions */
    expect(100, 1, 4.5);
    add(100, 2, 9, 1); /* same work, other sizes: told apart */
    expect(100, 1, 4.5);
    expect(100, 2, 9);
    expect(100, 3, (4.5 * 4 + 9) / 5); /* sizes never seen: mean of all executions */
    finish();
}

/* Footprint 0, a calibration's, stands for any and takes measurements in. */
static void test_wildcard(void)
{
    setup_model("history");
    add(100, 0, 2, 3);
    expect(100, 7, 2);
    add(100, 7, 6, 1);
    expect(100, 7, 3);
    expect(100, 8, 3);
    finish();
    setup_model("history");
    add(100, 7, 6, 1); /* measured before: its own figure stays */
    add(100, 0, 2, 1);
    expect(100, 7, 6);
    expect(100, 8, 2);
    finish();
}

/* t = 2e-3 x work^1.5 at two or three sizes, asked for between, below and above. */
static void test_power_law(void)
{
    static const double sizes[] = {4, 100, 1600};
    setup_model("history");
    for (unsigned i = 0; i < 3; i++)
        add(sizes[i], 5, 2e-3 * pow(sizes[i], 1.5), 10);
    for (unsigned work = 1; work < 100000; work *= 3) {
        expect(work, 5, 2e-3 * pow(work, 1.5));
        expect(work, 6, 2e-3 * pow(work, 1.5));
    }
    finish();
}

/* Two slopes: each between its own neighbours, and beyond as the nearest two say. */
static void test_segments(void)
{
    setup_model("history");
    add(1000, 0, 100, 1); /* in any order */
    add(10, 0, 1, 1);
    add(100, 0, 10, 1);
    add(10000, 0, 10000, 1);
    expect(30, 1, 3);
    expect(1, 1, 0.1);
    expect(3000, 1, 100 * 9);
    expect(1e5, 1, 1e6);
    finish();
}

static void test_one_size(void)
{
    setup_model("history");
    add(100, 1, 2, 1);
    add(100, 2, 2, 1);
    expect(50, 1, 1);
    expect(400, 3, 8);
    finish();
}

static void test_many(void)
{
    setup_model("history");
    for (unsigned i = 1000; i > 0; i--)
        add(i, i % 3, i * 1e-6, 1);
    for (unsigned i = 1; i <= 1000; i++)
        expect(i, i % 3, i * 1e-6);
    finish();
}

TEST_MAIN(test_means, test_wildcard, test_power_law, test_segments, test_one_size, test_many)
