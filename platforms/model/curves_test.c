/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of platforms/model/curves.c: each sentence of its header. */
#include "platforms/model/curves.h"

#include <math.h>
#include <string.h>

#include <glib.h>

static const struct duet__point points[] = {
    {.work = 8e6, .size = 200, .mean_s = 4e-3, .deviation_s = 4e-4, .samples = 10},
    {.work = 1e6, .size = 100, .mean_s = 1e-3, .deviation_s = 0, .samples = 20},
    {.work = 64e6, .size = 400, .mean_s = 32e-3, .deviation_s = 1.6e-3, .samples = 5},
};

/* Finds the mean and deviation of the point at this work. */
static int curve_at(const struct duet__curve *curve, double work, bool extrapolate, double *mean_s,
                    double *deviation_s)
{
    struct duet__point point;
    int error = duet__curve_point(curve, work, extrapolate, &point);
    if (!error && mean_s != NULL)
        *mean_s = point.mean_s;
    if (!error && deviation_s != NULL)
        *deviation_s = point.deviation_s;
    return error;
}

static void assert_near(double value, double expected)
{
    g_assert_cmpfloat_with_epsilon(value / expected, 1.0, 1e-12);
}

/* Adds a curve with these names, whatever their length. */
static int add_points(struct duet__calibration *calibration, const char *kernel, const char *arch,
                      const char *context, const struct duet__point *list, size_t count,
                      struct duet_message *message)
{
    struct duet__curve curve = {.points = (struct duet__point *)(uintptr_t)list, .count = count};
    memcpy(curve.kernel, kernel, MIN(strlen(kernel) + 1, sizeof(curve.kernel)));
    memcpy(curve.arch, arch, MIN(strlen(arch) + 1, sizeof(curve.arch)));
    memcpy(curve.context, context, MIN(strlen(context) + 1, sizeof(curve.context)));
    return duet__calibration_add(calibration, &curve, message);
}

static const struct duet__curve *make(struct duet__calibration *calibration)
{
    WORKS(add_points(calibration, "dgemm", "c2050", "", points, G_N_ELEMENTS(points), hear()));
    g_assert_cmpstr(heard(), ==, "");
    return duet__calibration_find(calibration, "dgemm", "c2050");
}

static void test_points_are_sorted(void)
{
    struct duet__calibration c = {0};
    const struct duet__curve *curve = make(&c);
    g_assert_nonnull(curve);
    g_assert_cmpuint(curve->count, ==, 3);
    g_assert_cmpfloat(curve->points[0].work, ==, 1e6);
    g_assert_cmpfloat(curve->points[1].work, ==, 8e6);
    g_assert_cmpuint(curve->points[2].samples, ==, 5);
    g_assert_null(duet__calibration_find(&c, "dgemm", "x5650"));
    g_assert_null(duet__calibration_find(&c, "sgemm", "c2050"));
    duet__calibration_fini(&c);
    duet__calibration_fini(&c);
    g_assert_null(duet__calibration_find(&c, "dgemm", "c2050"));
}

static void test_measured_points_are_exact(void)
{
    OWNED(duet__calibration_fini) struct duet__calibration c = {0};
    const struct duet__curve *curve = make(&c);
    for (size_t i = 0; i < curve->count; i++) {
        double mean = 0, deviation = -1;
        g_assert_cmpint(curve_at(curve, curve->points[i].work, false, &mean, &deviation), ==,
                        DUET_OK);
        g_assert_cmpfloat(mean, ==, curve->points[i].mean_s);
        g_assert_cmpfloat(deviation, ==, curve->points[i].deviation_s);
    }
    g_assert_cmpint(curve_at(curve, 1e6, false, NULL, NULL), ==, DUET_OK);
}

static void test_between_points_log_log(void)
{
    OWNED(duet__calibration_fini) struct duet__calibration c = {0};
    const struct duet__curve *curve = make(&c);
    double mean = 0, deviation = 0;
    /* From (1e6, 1 ms) to (8e6, 4 ms) the exponent is 2/3; halfway is work sqrt(8) and time 2 ms.
     */
    g_assert_cmpint(curve_at(curve, 1e6 * sqrt(8), false, &mean, &deviation), ==, DUET_OK);
    assert_near(mean, 2e-3);
    assert_near(deviation, 2e-3 * 0.05); /* ratios 0 and 0.1, halfway */
    g_assert_cmpint(curve_at(curve, 16e6, false, &mean, NULL), ==, DUET_OK);
    assert_near(mean, 8e-3);
}

static void test_outside(void)
{
    OWNED(duet__calibration_fini) struct duet__calibration c = {0};
    const struct duet__curve *curve = make(&c);
    double mean = -1, deviation = -1;
    g_assert_cmpint(curve_at(curve, 0.9e6, false, &mean, &deviation), ==, DUET_ENOMODEL);
    g_assert_cmpint(curve_at(curve, 65e6, false, &mean, &deviation), ==, DUET_ENOMODEL);
    g_assert_cmpfloat(mean, ==, -1);
    g_assert_cmpint(curve_at(curve, 0.5e6, true, &mean, &deviation), ==, DUET_OK);
    assert_near(mean, 0.5e-3);
    g_assert_cmpfloat(deviation, ==, 0);
    g_assert_cmpint(curve_at(curve, 128e6, true, &mean, &deviation), ==, DUET_OK);
    assert_near(mean, 64e-3);
    assert_near(deviation, 3.2e-3);
    g_assert_cmpint(curve_at(curve, 0, true, &mean, NULL), ==, DUET_EINVAL);
    g_assert_cmpint(curve_at(curve, NAN, true, &mean, NULL), ==, DUET_EINVAL);
    g_assert_cmpint(curve_at(curve, INFINITY, true, &mean, NULL), ==, DUET_EINVAL);
}

static void refused(struct duet__calibration *c, const char *kernel, const char *arch,
                    const struct duet__point *list, size_t count, const char *fragment)
{
    size_t before = c->count;
    FAILS(add_points(c, kernel, arch, "", list, count, hear()), DUET_EINVAL, fragment);
    g_assert_cmpuint(c->count, ==, before);
    g_assert_cmpint(add_points(c, kernel, arch, "", list, count, NULL), ==, DUET_EINVAL);
}

static void test_refusals(void)
{
    struct duet__point p[2] = {points[0], points[0]};
    OWNED(duet__calibration_fini) struct duet__calibration c = {0};
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
}

/* Returns a point with every figure that can be measured. */
static struct duet__point whole_point(double work, double mean_s)
{
    struct duet__point p = {.work = work,
                            .size = 10,
                            .mean_s = mean_s,
                            .deviation_s = mean_s / 10,
                            .samples = 9,
                            .rejected = 2,
                            .median_s = mean_s * 0.9,
                            .base_s = mean_s / 2,
                            .memory_s = mean_s / 4,
                            .busy_ratio = 1.5,
                            .noise = mean_s};
    return p;
}

static void test_details_refused(void)
{
    OWNED(duet__calibration_fini) struct duet__calibration c = {0};
    struct duet__point p;
#define CHANGED(change)                                                                            \
    p = whole_point(1, 1);                                                                         \
    change;                                                                                        \
    refused(&c, "k", "a", &p, 1, "times must be finite and not negative")
    CHANGED(p.median_s = -1);
    CHANGED(p.base_s = NAN);
    CHANGED(p.memory_s = -1);
    CHANGED(p.memory_s = INFINITY);
    CHANGED(p.busy_ratio = -1);
    CHANGED(p.busy_ratio = 1e-17);
    CHANGED(p.busy_ratio = NAN);
    CHANGED(p.noise = -1);
    CHANGED(p.noise = 11);
    CHANGED(p.noise = NAN);
#undef CHANGED
}

static void add(struct duet__calibration *c, const char *kernel, const char *arch,
                const char *context, double mean_s)
{
    const struct duet__point p = whole_point(1, mean_s);
    g_assert_cmpint(add_points(c, kernel, arch, context, &p, 1, NULL), ==, DUET_OK);
}

static double mean_of(const struct duet__calibration *c, const char *kernel, const char *arch)
{
    const struct duet__curve *curve = duet__calibration_find(c, kernel, arch);
    return curve != NULL ? curve->points[0].mean_s : 0;
}

/* Curves of several workloads, in an order that helps none of them. */
static struct duet__calibration make_contexts(void)
{
    struct duet__calibration c = {0};
    add(&c, "dgemm", "x5650", "lu", 1);
    add(&c, "dgemm", "x5650", "", 2);
    add(&c, "dgemm", "x5650", "cholesky", 3);
    add(&c, "dgemm", "c2050", "lu", 4);
    add(&c, "dgemm", "c2050", "cholesky", 5);
    add(&c, "dtrsm", "x5650", "", 6);
    return c;
}

static void test_contexts(void)
{
    OWNED(duet__calibration_fini) struct duet__calibration c = make_contexts();
    const struct duet__point p = whole_point(1, 1);
    char name[DUET_NAME_MAX + 1];
    g_assert_cmpstr(c.curves[1].context, ==, "");
    g_assert_cmpfloat(mean_of(&c, "dgemm", "x5650"), ==, 1); /* the first */
    FAILS(add_points(&c, "dgemm", "x5650", "cholesky", &p, 1, hear()), DUET_EINVAL,
          "dgemm on x5650 in cholesky: there are times already");
    g_assert_cmpint(add_points(&c, "dgemm", "x5650", "", &p, 1, NULL), ==, DUET_EINVAL);
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    FAILS(add_points(&c, "k", "a", name, &p, 1, hear()), DUET_EINVAL, "names have 1 to 31 bytes");
    g_assert_cmpuint(c.count, ==, 6);
}

static void test_select(void)
{
    static const struct {
        const char *context;
        double cpu, gpu;
    } cases[] = {
        {"cholesky", 3, 5}, {"lu", 1, 4},
        {"gemm", 2, 4}, /* the curve of any context; without one, the first */
        {NULL, 2, 4},       {"", 2, 4},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        OWNED(duet__calibration_fini) struct duet__calibration c = make_contexts();
        duet__calibration_select(&c, cases[i].context);
        g_assert_cmpuint(c.count, ==, 3);
        g_assert_cmpfloat(mean_of(&c, "dgemm", "x5650"), ==, cases[i].cpu);
        g_assert_cmpfloat(mean_of(&c, "dgemm", "c2050"), ==, cases[i].gpu);
        g_assert_cmpfloat(mean_of(&c, "dtrsm", "x5650"), ==, 6);
    }
}

static void test_whole_points(void)
{
    struct duet__point two[] = {whole_point(1e6, 1e-3), whole_point(4e6, 4e-3)};
    OWNED(duet__calibration_fini) struct duet__calibration c = {0};
    const struct duet__curve *curve;
    struct duet__point p;
    two[0].memory_s = 0; /* all of it fits into caches */
    g_assert_cmpint(add_points(&c, "k", "a", "", two, 2, NULL), ==, DUET_OK);
    curve = duet__calibration_find(&c, "k", "a");
    /* a measured point gives its own figures, but for those about how it was measured */
    g_assert_cmpint(duet__curve_point(curve, 1e6, false, &p), ==, DUET_OK);
    g_assert_cmpuint(p.samples, ==, 0);
    g_assert_cmpuint(p.rejected, ==, 0);
    p.samples = two[0].samples;
    p.rejected = two[0].rejected;
    g_assert_cmpfloat(p.uncertainty, ==, DUET__USUAL_UNCERTAINTY);
    p.uncertainty = 0;
    g_assert_cmpmem(&p, sizeof(p), &two[0], sizeof(two[0]));
    /* halfway in log(work): all times are halfway in log, and keep their ratios */
    g_assert_cmpint(duet__curve_point(curve, 2e6, false, &p), ==, DUET_OK);
    assert_near(p.mean_s, 2e-3);
    assert_near(p.deviation_s, 2e-4);
    assert_near(p.median_s, 1.8e-3);
    assert_near(p.base_s, 1e-3);
    assert_near(p.memory_s, 0.25e-3); /* between 0 and half of base_s */
    assert_near(p.busy_ratio, 1.5);
    assert_near(p.noise, 2.5e-3); /* linear in log(work) */
    /* outside: refused, or at the rate of the end */
    g_assert_cmpint(duet__curve_point(curve, 8e6, false, &p), ==, DUET_ENOMODEL);
    g_assert_cmpint(duet__curve_point(curve, 8e6, true, &p), ==, DUET_OK);
    assert_near(p.mean_s, 8e-3);
    assert_near(p.base_s, 4e-3);
    assert_near(p.memory_s, 2e-3);
    assert_near(p.noise, 4e-3);
    assert_near(p.busy_ratio, 1.5);
    assert_near(p.work, 8e6);
    g_assert_cmpint(duet__curve_point(curve, 0, true, &p), ==, DUET_EINVAL);
    g_assert_cmpint(duet__curve_point(NULL, 1, true, &p), ==, DUET_EINVAL);
}

/* Between and beyond points, the uncertainty grows with the distance from the nearest, in octaves,
 * and estimated times stay estimated. */
static void test_uncertainty(void)
{
    struct duet__point two[] = {{.work = 1e6, .mean_s = 1e-3, .samples = 1, .uncertainty = 0.12},
                                {.work = 16e6, .mean_s = 4e-3, .samples = 1, .uncertainty = 0.2}};
    static const struct {
        double work, uncertainty, more;
        enum duet__basis basis;
    } cases[] = {{1e6, 0.12, 0, DUET__MEASURED},
                 {4e6, 0.16, 2 * 0.05, DUET__INTERPOLATED},
                 {8e6, 0.18, 1 * 0.05, DUET__INTERPOLATED},
                 {0.25e6, 0.12, 2 * 0.12, DUET__EXTRAPOLATED},
                 {32e6, 0.2, 1 * 0.12, DUET__EXTRAPOLATED}};

    for (unsigned estimated = 0; estimated < 2; estimated++) {
        OWNED(duet__calibration_fini) struct duet__calibration c = {0};
        two[0].basis = two[1].basis = estimated ? DUET__ESTIMATED : DUET__MEASURED;
        g_assert_cmpint(add_points(&c, "k", "a", "", two, 2, NULL), ==, DUET_OK);
        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
            struct duet__point p;
            g_assert_cmpint(duet__curve_point(&c.curves[0], cases[i].work, true, &p), ==, DUET_OK);
            g_assert_cmpint(p.basis, ==, estimated ? DUET__ESTIMATED : cases[i].basis);
            assert_near(p.uncertainty, estimated ? cases[i].uncertainty
                                                 : hypot(cases[i].uncertainty, cases[i].more));
        }
    }
}

/* A figure that one of two neighbours lacks is 0 between them. */
static void test_half_known(void)
{
    const struct duet__point two[] = {{.work = 1e6, .mean_s = 1e-3, .samples = 1},
                                      whole_point(4e6, 4e-3)};
    OWNED(duet__calibration_fini) struct duet__calibration c = {0};
    struct duet__point p;
    g_assert_cmpint(add_points(&c, "k", "a", "", two, 2, NULL), ==, DUET_OK);
    g_assert_cmpint(duet__curve_point(&c.curves[0], 2e6, false, &p), ==, DUET_OK);
    assert_near(p.mean_s, 2e-3);
    g_assert_cmpfloat(p.median_s, ==, 0);
    g_assert_cmpfloat(p.base_s, ==, 0);
    g_assert_cmpfloat(p.memory_s, ==, 0);
    g_assert_cmpfloat(p.busy_ratio, ==, 0);
    g_assert_cmpfloat(p.noise, ==, 0);
}

TEST_MAIN(test_points_are_sorted, test_measured_points_are_exact, test_between_points_log_log,
          test_outside, test_refusals, test_details_refused, test_contexts, test_select,
          test_whole_points, test_uncertainty, test_half_known)
