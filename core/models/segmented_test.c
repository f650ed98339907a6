/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the segmented model: break points by hand and at random, and what is learned late. */
#include <duet/random.h>

#include "core/models/testing.h"

enum { PIECES_MAX = 5, EXECUTIONS = 20000 };

static const double LEAST = 1e3, MOST = 1e12; /* work */

static int add(double work, double mean_s, uint64_t samples)
{
    int news = model->add(state, work, 3, mean_s, samples);
    g_assert_cmpint(news, >=, 0);
    return news;
}

static void expect(double work, double seconds, double tolerance)
{
    double got = model->predict(state, work, 9);
    if (!(fabs(got - seconds) <= tolerance * seconds))
        g_error("work %g: %.12g, not %.12g", work, got, seconds);
}

static void test_one_power_law(void)
{
    setup_model("segmented");
    expect(10, 0, 0);
    for (unsigned work = 2; work < 1000; work *= 2)
        add(work, 3e-9 * pow(work, 1.2), 100);
    for (unsigned work = 1; work < 100000; work *= 7)
        expect(work, 3e-9 * pow(work, 1.2), 1e-9);
    finish();
}

/* Time does not depend on work up to 1000, and is in proportion above: overhead, then work. */
static void test_break(void)
{
    setup_model("segmented");
    for (unsigned work = 1; work <= 1000000; work *= 10)
        add(work, work < 1000 ? 1e-6 : 1e-9 * work, 1000);
    for (unsigned work = 1; work < 100000000; work *= 3)
        expect(work, work < 1000 ? 1e-6 : 1e-9 * work, 1e-9);
    finish();
}

/* Three sizes, as calibrations often have: through each of them. */
static void test_three_sizes(void)
{
    setup_model("segmented");
    add(1, 1e-3, 100);
    add(10, 5e-3, 100);
    add(100, 7e-2, 100);
    expect(1, 1e-3, 1e-9);
    expect(10, 5e-3, 1e-9);
    expect(100, 7e-2, 1e-9);
    expect(1000, 0.98, 1e-9);
    finish();
}

static void test_one_size(void)
{
    setup_model("segmented");
    g_assert_cmpint(add(1e9, 2, 5), ==, 1);
    g_assert_cmpint(add(1e9, 2, 5), ==, 0);
    expect(1e9, 2, 1e-9);
    expect(3e9, 6, 1e-9);
    expect(5e9, 0, 0); /* nothing is known of quite another size */
    expect(2e8, 0, 0);
    add(1.2e9, 3, 5); /* nor does what is near say how time grows */
    expect(3e9, 3 * 3 / 1.2, 1e-9);
    expect(5e9, 0, 0);
    add(4e9, 4, 100);
    expect(4e10, 4 * sqrt(10), 0.6);
    finish();
}

/* Tasks without data, times of 0, sizes far away. */
static void test_no_work(void)
{
    setup_model("segmented");
    add(0, 0, 1);
    expect(0, 0, 0);
    add(0, 3, 2);
    expect(0, 3, 1e-9);
    add(10, 3, 2);
    expect(0, 3, 1e-9);
    expect(1e300, 3, 1e-9);
    finish();
}

/* A size that follows the forecast leaves it; one that misses it by more than chance does not. */
static void test_miss(void)
{
    setup_model("segmented");
    for (unsigned work = 1; work <= 10000; work *= 10)
        add(work, 1e-3 * work, 100);
    g_assert_cmpint(add(50, 1e-3 * 50 * 1.01, 50), ==, 0);
    g_assert_cmpint(add(3000, 1e-3 * 3000 * 1.08, 1), ==, 0); /* one execution: perhaps by chance */
    expect(3000, 3, 1e-9);
    g_assert_cmpint(add(3000, 1e-3 * 3000 * 1.08, 99), ==, 1); /* a hundred: not */
    expect(3000, 3.24, 0.01);
    expect(5, 5e-3, 0.02);
    finish();
}

/* A machine that becomes twice as slow is believed to be, in the end. */
static void test_drift(void)
{
    setup_model("segmented");
    uint64_t rng = duet_random_stream(1, 1);
    for (unsigned i = 0; i < 1000; i++)
        add(1 + duet_random_below(&rng, 1000), 1, 1);
    expect(500, 1, 0.02);
    for (unsigned i = 0; i < 100000; i++)
        add(1 + duet_random_below(&rng, 1000), 2, 1);
    expect(500, 2, 0.03);
    finish();
}

/* A random curve: continuous, of power laws between random works. */
struct curve {
    unsigned pieces;
    double ends[PIECES_MAX], slopes[PIECES_MAX]; /* logarithms of the works at which they end */
};

static struct curve draw(uint64_t *rng)
{
    struct curve curve = {.pieces = 1 + duet_random_below(rng, PIECES_MAX)};
    for (unsigned i = 0; i < curve.pieces; i++) {
        curve.ends[i] =
            log(LEAST) + (i + 0.3 + 0.4 * duet_random_unit(rng)) * log(MOST / LEAST) / curve.pieces;
        curve.slopes[i] = 1.5 * duet_random_unit(rng);
    }
    curve.ends[curve.pieces - 1] = INFINITY;
    return curve;
}

static double on(const struct curve *curve, double work)
{
    double x = log(work), y = log(1e-5), begin = log(LEAST);
    for (unsigned i = 0; i < curve->pieces && x > begin; i++) {
        y += curve->slopes[i] * (fmin(x, curve->ends[i]) - begin);
        begin = curve->ends[i];
    }
    return exp(y);
}

static double draw_work(uint64_t *rng)
{
    return LEAST * pow(MOST / LEAST, duet_random_unit(rng));
}

/* Learned in any order, with noise, from executions of which hardly two are of one size. */
static void test_random(void)
{
    for (unsigned seed = 1; seed <= 50; seed++) {
        uint64_t rng = duet_random_stream(seed, 7);
        struct curve curve = draw(&rng);
        unsigned news = 0;
        setup_model("segmented");
        for (unsigned i = 0; i < EXECUTIONS; i++) {
            double work = draw_work(&rng), noise = 0.9 + 0.2 * duet_random_unit(&rng);
            news += (unsigned)add(work, noise * on(&curve, work), 1);
        }
        for (unsigned i = 0; i < 1000; i++) {
            double work = draw_work(&rng);
            expect(work, on(&curve, work), 0.25);
        }
        g_assert_cmpuint(news, <, EXECUTIONS / 10);
        finish();
    }
}

/* A few sizes, with whatever numbers of executions: through each of them, in whatever order. */
static void test_random_sizes(void)
{
    for (unsigned seed = 1; seed <= 200; seed++) {
        uint64_t rng = duet_random_stream(seed, 8);
        struct curve curve = draw(&rng);
        double works[20];
        unsigned count = 1 + duet_random_below(&rng, 20);
        setup_model("segmented");
        for (unsigned i = 0; i < count; i++) {
            works[i] = floor(draw_work(&rng));
            add(works[i], on(&curve, works[i]), 200 + duet_random_below(&rng, 100000));
        }
        for (unsigned i = 0; i < count; i++)
            expect(works[i], on(&curve, works[i]), 0.03);
        finish();
    }
}

TEST_MAIN(test_one_power_law, test_break, test_three_sizes, test_one_size, test_no_work, test_miss,
          test_drift, test_random, test_random_sizes)
