/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of core/calibration.c: each sentence of calibration.h. */
#include <duet/calibration.h>

#include <math.h>
#include <string.h>

#include <glib.h>

static const struct duet_point points[] = {
    {.work = 8e6, .size = 200, .mean_s = 4e-3, .deviation_s = 4e-4, .samples = 10},
    {.work = 1e6, .size = 100, .mean_s = 1e-3, .deviation_s = 0, .samples = 20},
    {.work = 64e6, .size = 400, .mean_s = 32e-3, .deviation_s = 1.6e-3, .samples = 5},
};

static void assert_near(double value, double expected)
{
    g_assert_cmpfloat_with_epsilon(value / expected, 1.0, 1e-12);
}

static const struct duet_curve *make(struct duet_calibration *calibration)
{
    struct duet_message message = {""};
    int error =
        duet_calibration_add(calibration, "dgemm", "c2050", points, G_N_ELEMENTS(points), &message);

    g_assert_cmpint(error, ==, DUET_OK);
    g_assert_cmpstr(message.text, ==, "");
    return duet_calibration_find(calibration, "dgemm", "c2050");
}

static void test_points_are_sorted(void)
{
    struct duet_calibration c = {0};
    const struct duet_curve *curve = make(&c);

    g_assert_nonnull(curve);
    g_assert_cmpuint(curve->count, ==, 3);
    g_assert_cmpfloat(curve->points[0].work, ==, 1e6);
    g_assert_cmpfloat(curve->points[1].work, ==, 8e6);
    g_assert_cmpuint(curve->points[2].samples, ==, 5);
    g_assert_null(duet_calibration_find(&c, "dgemm", "x5650"));
    g_assert_null(duet_calibration_find(&c, "sgemm", "c2050"));
    duet_calibration_fini(&c);
    duet_calibration_fini(&c);
    g_assert_null(duet_calibration_find(&c, "dgemm", "c2050"));
}

static void test_measured_points_are_exact(void)
{
    struct duet_calibration c = {0};
    const struct duet_curve *curve = make(&c);

    for (size_t i = 0; i < curve->count; i++) {
        double mean = 0, deviation = -1;

        g_assert_cmpint(duet_curve_at(curve, curve->points[i].work, false, &mean, &deviation), ==,
                        DUET_OK);
        g_assert_cmpfloat(mean, ==, curve->points[i].mean_s);
        g_assert_cmpfloat(deviation, ==, curve->points[i].deviation_s);
    }
    g_assert_cmpint(duet_curve_at(curve, 1e6, false, NULL, NULL), ==, DUET_OK);
    duet_calibration_fini(&c);
}

static void test_between_points_log_log(void)
{
    struct duet_calibration c = {0};
    const struct duet_curve *curve = make(&c);
    double mean = 0, deviation = 0;

    /* From (1e6, 1 ms) to (8e6, 4 ms) the exponent is 2/3; halfway is work sqrt(8) and time 2 ms.
     */
    g_assert_cmpint(duet_curve_at(curve, 1e6 * sqrt(8), false, &mean, &deviation), ==, DUET_OK);
    assert_near(mean, 2e-3);
    assert_near(deviation, 2e-3 * 0.05); /* ratios 0 and 0.1, halfway */
    g_assert_cmpint(duet_curve_at(curve, 16e6, false, &mean, NULL), ==, DUET_OK);
    assert_near(mean, 8e-3);
    duet_calibration_fini(&c);
}

static void test_outside(void)
{
    struct duet_calibration c = {0};
    const struct duet_curve *curve = make(&c);
    double mean = -1, deviation = -1;

    g_assert_cmpint(duet_curve_at(curve, 0.9e6, false, &mean, &deviation), ==, DUET_ENOMODEL);
    g_assert_cmpint(duet_curve_at(curve, 65e6, false, &mean, &deviation), ==, DUET_ENOMODEL);
    g_assert_cmpfloat(mean, ==, -1);
    g_assert_cmpint(duet_curve_at(curve, 0.5e6, true, &mean, &deviation), ==, DUET_OK);
    assert_near(mean, 0.5e-3);
    g_assert_cmpfloat(deviation, ==, 0);
    g_assert_cmpint(duet_curve_at(curve, 128e6, true, &mean, &deviation), ==, DUET_OK);
    assert_near(mean, 64e-3);
    assert_near(deviation, 3.2e-3);
    g_assert_cmpint(duet_curve_at(curve, 0, true, &mean, NULL), ==, DUET_EINVAL);
    g_assert_cmpint(duet_curve_at(curve, NAN, true, &mean, NULL), ==, DUET_EINVAL);
    g_assert_cmpint(duet_curve_at(curve, INFINITY, true, &mean, NULL), ==, DUET_EINVAL);
    duet_calibration_fini(&c);
}

static void refused(struct duet_calibration *c, const char *kernel, const char *arch,
                    const struct duet_point *list, size_t count, const char *fragment)
{
    struct duet_message message = {""};
    size_t before = c->count;

    g_assert_cmpint(duet_calibration_add(c, kernel, arch, list, count, &message), ==, DUET_EINVAL);
    g_assert_nonnull(strstr(message.text, fragment));
    g_assert_cmpuint(c->count, ==, before);
    g_assert_cmpint(duet_calibration_add(c, kernel, arch, list, count, NULL), ==, DUET_EINVAL);
}

static void test_refusals(void)
{
    struct duet_point p[2] = {points[0], points[0]};
    struct duet_calibration c = {0};
    char name[DUET_NAME_MAX + 1];

    make(&c);
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    refused(&c, "dgemm", "c2050", points, 3, "already");
    refused(&c, "k", "a", points, 0, "no points");
    refused(&c, "k", "a", NULL, 1, "no points");
    refused(&c, "k", "a", p, 2, "two points of work");
    refused(&c, "", "a", points, 3, "names have 1 to 31 bytes");
    refused(&c, name, "a", points, 3, "names have 1 to 31 bytes");
    p[0].mean_s = 0;
    refused(&c, "k", "a", p, 1, "positive");
    p[0] = points[0];
    p[0].deviation_s = -1;
    refused(&c, "k", "a", p, 1, "positive");
    p[0] = points[0];
    p[0].work = NAN;
    refused(&c, "k", "a", p, 1, "positive");
    duet_calibration_fini(&c);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/calibration/sorted", test_points_are_sorted);
    g_test_add_func("/calibration/exact", test_measured_points_are_exact);
    g_test_add_func("/calibration/between", test_between_points_log_log);
    g_test_add_func("/calibration/outside", test_outside);
    g_test_add_func("/calibration/refusals", test_refusals);
    return g_test_run();
}
