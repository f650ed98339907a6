/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of dates: made-up devices whose clocks run otherwise, and everything is known about them.
 */
#include <math.h>

#include <glib.h>

#include <duet/random.h>

#include "backends/common.h"

/* A device's clock, and a stream on it. */
struct world {
    double rate, begin_s; /* device = (host - begin) * rate */
    uint64_t random;
    struct dates dates;
    double stream_s, free_s; /* as placed; when the device is really done */
    double worst_s;
};

static double device_date(const struct world *w, double host_s)
{
    return (host_s - w->begin_s) * w->rate;
}

static void world_init(struct world *w, double ppm, double begin_s)
{
    *w = (struct world){.rate = 1 + ppm * 1e-6, .begin_s = begin_s, .random = 5};
    duet__dates_init(&w->dates, begin_s - 4e-6, begin_s + 6e-6);
    w->stream_s = w->free_s = begin_s;
}

/*
 * Simulates one command: launched, run as soon as possible, noticed a while after its end. Returns
 * the date of the notice.
 */
static double pass(struct world *w, double launched_s, double latency_s, double length_s,
                   double late_s)
{
    double start_s, end_s, real_s = fmax(launched_s + latency_s, w->free_s);
    w->free_s = real_s + length_s;
    struct measured measured = {.start_s = device_date(w, real_s),
                                .end_s = device_date(w, w->free_s),
                                .launched_s = launched_s,
                                .seen_s = w->free_s + late_s,
                                .stream_s = w->stream_s};
    duet__dates_place(&w->dates, &measured, &start_s, &end_s);
    g_assert_true(launched_s <= start_s && start_s <= end_s && end_s <= measured.seen_s);
    g_assert_true(start_s >= w->stream_s);
    w->stream_s = end_s;
    w->worst_s = fmax(w->worst_s, fabs(start_s - real_s));
    w->worst_s = fmax(w->worst_s, fabs(end_s - w->free_s));
    return measured.seen_s;
}

static double between(struct world *w, double low, double high)
{
    return low + (high - low) * duet_random_unit(&w->random);
}

static void test_first(void)
{
    struct dates dates;
    double start_s, end_s;
    duet__dates_init(&dates, 10, 10.5);
    g_assert_true(dates.low_s == 10 && dates.high_s == 10.5 && dates.offset_s == 10.25);
    struct measured measured = {.start_s = 1, .end_s = 2, .launched_s = 11, .seen_s = 20};
    duet__dates_place(&dates, &measured, &start_s, &end_s);
    g_assert_cmpfloat_with_epsilon(start_s, 11.25, 1e-12);
    g_assert_cmpfloat_with_epsilon(end_s, 12.25, 1e-12);
    /* it has really begun later than that, and then so had all before it */
    measured = (struct measured){.start_s = 3, .end_s = 4, .launched_s = 13.4, .seen_s = 20};
    duet__dates_place(&dates, &measured, &start_s, &end_s);
    g_assert_cmpfloat_with_epsilon(start_s, 13.4, 2e-3);
    g_assert_cmpfloat_with_epsilon(dates.offset_s, 10.4, 2e-3);
    /* the measured end is earlier: both bounds hold */
    measured = (struct measured){.start_s = 5, .end_s = 6, .launched_s = 1, .seen_s = 16.3};
    duet__dates_place(&dates, &measured, &start_s, &end_s);
    g_assert_cmpfloat_with_epsilon(end_s, 16.3, 3e-3);
}

/* A badly known relation of the clocks does not date an end before its question. */
static void test_asked(void)
{
    struct dates dates;
    double start_s, end_s;
    duet__dates_init(&dates, 10, 10.5);
    const struct measured measured = {.start_s = 1,
                                      .end_s = 2,
                                      .launched_s = 11,
                                      .asked_s = 12.4,
                                      .seen_s = 20};
    duet__dates_place(&dates, &measured, &start_s, &end_s);
    g_assert_cmpfloat_with_epsilon(end_s, 12.4, 1e-12);
    g_assert_cmpfloat_with_epsilon(start_s, 11.4, 1e-12);
    g_assert_cmpfloat_with_epsilon(dates.low_s, 10.4, 1e-12);
}

/* Clocks that drift by as much as clocks may, for ten minutes of short commands. */
static void test_drift(void)
{
    static const double ppm[] = {0, 20, -20, 100, -100};
    for (unsigned k = 0; k < G_N_ELEMENTS(ppm); k++) {
        struct world w;
        world_init(&w, ppm[k], 3);
        double now_s = 3.1;
        while (now_s < 600) {
            double seen_s = pass(&w, now_s, between(&w, 3e-6, 20e-6), between(&w, 1e-5, 1e-2),
                                 between(&w, 1e-6, 30e-6));
            now_s = seen_s + between(&w, 0, 1e-3);
        }
        g_assert_cmpfloat(w.worst_s, <, 30e-6);
    }
}

/* Launched long before they can run: only their ends say something. */
static void test_deep(void)
{
    struct world w;
    world_init(&w, 60, 0);
    for (unsigned i = 0; i < 20000; i++)
        (void)pass(&w, w.free_s - fmin(w.free_s, 0.5), 5e-6, between(&w, 1e-4, 1e-3),
                   between(&w, 1e-6, 20e-6));
    g_assert_cmpfloat(w.worst_s, <, 30e-6);
}

/* After an idle hour the clocks are apart by a third of a second, the dates are not. */
static void test_idle(void)
{
    struct world w;
    world_init(&w, 95, 1);
    for (unsigned hour = 0; hour < 20; hour++)
        (void)pass(&w, 2 + hour * 3600.0, 5e-6, 1e-3, 2e-6);
    g_assert_cmpfloat(w.worst_s, <, 10e-6);
}

/* A command of minutes, within which the clocks drift; the ones after it are right again. */
static void test_long(void)
{
    static const double ppm[] = {90, -90};
    for (unsigned k = 0; k < G_N_ELEMENTS(ppm); k++) {
        struct world w;
        world_init(&w, ppm[k], 0);
        (void)pass(&w, 1, 5e-6, 300, 2e-6);
        g_assert_cmpfloat(w.worst_s, <, 300 * 91e-6);
        w.worst_s = 0;
        for (unsigned i = 0; i < 10; i++)
            (void)pass(&w, w.free_s + 1e-3, 5e-6, 1e-3, 2e-6);
        g_assert_cmpfloat(w.worst_s, <, 10e-6);
    }
}

/* Impossible measurements still give dates in order, and later ones are trusted again. */
static void test_nonsense(void)
{
    struct dates dates;
    double start_s = 0, end_s = 0, before_s = 0;
    uint64_t random = 9;
    duet__dates_init(&dates, 5, 4); /* seen before it was launched */
    for (unsigned i = 0; i < 100000; i++) {
        struct measured measured = {.start_s = 1000 * duet_random_unit(&random),
                                    .launched_s = 1000 * duet_random_unit(&random),
                                    .unsure_s = duet_random_unit(&random)};
        measured.end_s = measured.start_s + 1000 * duet_random_unit(&random);
        measured.seen_s = measured.launched_s + 10 * duet_random_unit(&random);
        measured.stream_s = fmin(before_s, measured.seen_s);
        duet__dates_place(&dates, &measured, &start_s, &end_s);
        g_assert_true(measured.launched_s <= start_s && start_s <= end_s);
        g_assert_true(end_s <= measured.seen_s && start_s >= measured.stream_s);
        g_assert_true(dates.low_s <= dates.high_s);
        before_s = end_s;
    }
    for (unsigned i = 0; i < 5; i++) {
        double now_s = 2000 + i;
        struct measured measured = {.start_s = now_s - 100,
                                    .end_s = now_s - 99.5,
                                    .launched_s = now_s - 1e-5,
                                    .seen_s = now_s + 0.5 + 1e-5};
        duet__dates_place(&dates, &measured, &start_s, &end_s);
        g_assert_cmpfloat_with_epsilon(start_s, now_s, 1e-3);
    }
}

TEST_MAIN(test_first, test_asked, test_drift, test_deep, test_idle, test_long, test_nonsense)
