/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the fit of latency and bandwidth, on made-up copies. */
#include <math.h>

#include <glib.h>

#include "calibrate/microbench.h"

enum { SIZES = 7, TIMES = 5, COUNT = SIZES * TIMES };

static const double LATENCY_S = 1.1e-5, BYTES_PER_S = 6e9;

/* Makes copies of 4 KiB to 16 MiB, `noise` times longer or shorter at most. */
static void make(struct duet__copy_sample *samples, double noise)
{
    for (unsigned i = 0; i < COUNT; i++) {
        unsigned size = i / TIMES;
        double bytes = 4096 * pow(4, size);
        double factor = 1 + noise * ((i * 7 % 11) / 5.0 - 1);
        samples[i] = (struct duet__copy_sample){bytes, (LATENCY_S + bytes / BYTES_PER_S) * factor};
    }
}

static struct duet__copy_pair fit(const struct duet__copy_sample *samples, size_t count)
{
    struct duet__copy_pair pair = {.source = 1, .destination = 2};
    duet__copies_fit(samples, count, &pair);
    g_assert_cmpuint(pair.source, ==, 1);
    return pair;
}

static void assert_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance * expected))
        g_error("%g instead of %g", value, expected);
}

static void test_exact(void)
{
    struct duet__copy_sample samples[COUNT];
    make(samples, 0);
    struct duet__copy_pair pair = fit(samples, COUNT);
    assert_near(pair.latency_s, LATENCY_S, 1e-9);
    assert_near(pair.bandwidth_Bps, BYTES_PER_S, 1e-9);
    g_assert_cmpuint(pair.samples, ==, COUNT);
    g_assert_cmpfloat(pair.error, <, 1e-9);
}

static void test_noise(void)
{
    struct duet__copy_sample samples[COUNT];
    make(samples, 0.05);
    struct duet__copy_pair pair = fit(samples, COUNT);
    assert_near(pair.latency_s, LATENCY_S, 0.05);
    assert_near(pair.bandwidth_Bps, BYTES_PER_S, 0.05);
    g_assert_cmpfloat(pair.error, <, 0.05);
    g_assert_cmpfloat(pair.error, >, 0.005);
}

/* One copy of each size that was interrupted for a millisecond changes nothing. */
static void test_outliers(void)
{
    struct duet__copy_sample samples[COUNT];
    make(samples, 0);
    for (unsigned i = 0; i < COUNT; i += TIMES)
        samples[i].seconds += 1e-3;
    struct duet__copy_pair pair = fit(samples, COUNT);
    assert_near(pair.latency_s, LATENCY_S, 1e-3);
    assert_near(pair.bandwidth_Bps, BYTES_PER_S, 1e-3);
}

/* Two copies of each size that were ten times as fast as the others change nothing. */
static void test_scattered(void)
{
    struct duet__copy_sample samples[COUNT];
    make(samples, 0);
    for (unsigned i = 0; i < COUNT; i++)
        samples[i].seconds /= i % TIMES < (TIMES - 1) / 2 ? 10 : 1;
    struct duet__copy_pair pair = fit(samples, COUNT);
    assert_near(pair.latency_s, LATENCY_S, 1e-3);
    assert_near(pair.bandwidth_Bps, BYTES_PER_S, 1e-3);
}

/* Copies of one size tell nothing of the latency, and a latency below 0 becomes 0. */
static void test_no_latency(void)
{
    struct duet__copy_sample samples[] = {{1e6, 1e-3}, {1e6, 1e-3}, {2e6, 3e-3}, {4e6, 7e-3}};
    struct duet__copy_pair pair = fit(samples, 2);
    g_assert_cmpfloat(pair.latency_s, ==, 0);
    assert_near(pair.bandwidth_Bps, 1e9, 1e-9);
    pair = fit(samples, 4);
    g_assert_cmpfloat(pair.latency_s, ==, 0);
    g_assert_true(pair.bandwidth_Bps > 0.5e9 && pair.bandwidth_Bps < 1e9);
}

static void test_nothing(void)
{
    struct duet__copy_sample samples[] = {{1e6, 0}, {0, 1e-3}};
    struct duet__copy_pair pair = fit(samples, 2);
    g_assert_cmpuint(pair.samples, ==, 0);
    g_assert_cmpfloat(pair.bandwidth_Bps, ==, 0);
    pair = fit(NULL, 0);
    g_assert_cmpuint(pair.samples, ==, 0);
}

TEST_MAIN(test_exact, test_scattered, test_noise, test_outliers, test_no_latency, test_nothing)
