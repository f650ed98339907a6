/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lower bounds: instances solved by hand, random ones against an exact method, degenerate and
 * wrong input. bounds.c is included with the calls to the runtime renamed to a small fake.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include <glib.h>

#include <duet/machine.h>
#include <duet/trace.h>

#include "validate/bounds.h"

struct duet_runtime {
    const struct duet_machine *machine;
    const struct duet_class_stats *classes;
    size_t class_count;
    double critical_path_s;
    int error;
    double scratch[8]; /* expected_s of the last answer only, as the header says */
};

static const struct duet_machine *fake_machine(const struct duet_runtime *runtime)
{
    return runtime->machine;
}

static size_t fake_class_count(const struct duet_runtime *runtime)
{
    return runtime->class_count;
}

static int fake_class_stats(const struct duet_runtime *runtime, size_t index,
                            struct duet_class_stats *stats)
{
    double *scratch = ((struct duet_runtime *)(uintptr_t)runtime)->scratch;
    *stats = runtime->classes[index];
    memcpy(scratch, stats->expected_s, runtime->machine->arch_count * sizeof *scratch);
    stats->expected_s = scratch;
    return runtime->error;
}

static void fake_stats(const struct duet_runtime *runtime, struct duet_stats *stats)
{
    *stats = (struct duet_stats){.critical_path_s = runtime->critical_path_s};
}

static struct duet__bounds tested_bounds(const struct duet_runtime *runtime);

#define duet_runtime_machine fake_machine
#define duet_class_count fake_class_count
#define duet_class_stats(...) fake_class_stats(__VA_ARGS__)
#define duet_stats(...) fake_stats(__VA_ARGS__)
#define duet__bounds(...) tested_bounds(__VA_ARGS__)

#include "validate/bounds.c" /* NOLINT(bugprone-suspicious-include) */

#undef duet_class_stats
#undef duet_stats
#undef duet__bounds

/* The bounds of classes, and of so many workers of each architecture. */
static struct duet__bounds bounds(const struct duet_class_stats *classes, size_t count,
                                  const unsigned *workers, size_t arch_count)
{
    struct duet_worker all[64] = {0};
    struct duet_machine machine = {.arch_count = (unsigned)arch_count, .workers = all};
    const struct duet_runtime runtime = {.machine = &machine,
                                         .classes = classes,
                                         .class_count = count,
                                         .critical_path_s = 2.5};
    for (unsigned a = 0; a < arch_count; a++)
        for (unsigned w = 0; w < workers[a]; w++)
            all[machine.worker_count++].arch = a;
    return tested_bounds(&runtime);
}

static double area(const struct duet_class_stats *classes, size_t count, const unsigned *workers,
                   size_t arch_count)
{
    struct duet__bounds out = bounds(classes, count, workers, arch_count);
    g_assert_cmpfloat(out.critical_path_s, ==, 2.5);
    return out.area_s;
}

/* ------------------------------------------------------------------------------------------- */
/* Instances solved by hand                                                                     */

static void test_one_arch(void)
{
    const unsigned workers[] = {4};
    const double first[] = {2}, second[] = {0.5};
    const struct duet_class_stats classes[] = {{.kernel = "a", .tasks = 10, .expected_s = first},
                                               {.kernel = "b", .tasks = 8, .expected_s = second}};
    g_assert_cmpfloat_with_epsilon(area(classes, 1, workers, 1), 5, 1e-12);
    g_assert_cmpfloat_with_epsilon(area(classes, 2, workers, 1), 6, 1e-12);
}

/* 12 tasks, 1 s on one GPU, 2 s on one CPU: 8 and 4 of them, 8 s. */
static void test_two_archs(void)
{
    const unsigned workers[] = {1, 1};
    const double seconds[] = {2, 1};
    const struct duet_class_stats classes[] = {{.kernel = "a", .tasks = 12, .expected_s = seconds}};
    g_assert_cmpfloat_with_epsilon(area(classes, 1, workers, 2), 8, 1e-12);
}

/*
 * "p" only on the CPU, 4 x 1 s. "g": 30 tasks, 10 s on the CPU, 1 s on one of two GPUs. Balanced:
 * 4 + 10 x = (30 - x) / 2, x = 22 / 21, T = 4 + 220 / 21.
 */
static void test_restricted(void)
{
    const unsigned workers[] = {1, 2};
    const double panel[] = {1, 0}, update[] = {10, 1};
    const struct duet_class_stats classes[] = {{.kernel = "p", .tasks = 4, .expected_s = panel},
                                               {.kernel = "g", .tasks = 30, .expected_s = update}};
    g_assert_cmpfloat_with_epsilon(area(classes, 2, workers, 2), 4 + 220.0 / 21, 1e-10);
}

/* The task with the greater speed-up goes to the GPU: a (4 to 1) there, b (2 to 1.5) on the CPU. */
static void test_affinity(void)
{
    const unsigned workers[] = {1, 1};
    const double fast[] = {4, 1}, slow[] = {2, 1.5};
    const struct duet_class_stats classes[] = {{.kernel = "a", .tasks = 6, .expected_s = fast},
                                               {.kernel = "b", .tasks = 3, .expected_s = slow}};
    g_assert_cmpfloat_with_epsilon(area(classes, 2, workers, 2), 6, 1e-10);
}

/* Rates 1, 2 and 4 tasks a second: 70 tasks in 10 s; with two of the middle ones, 70 / 9. */
static void test_three_archs(void)
{
    const unsigned workers[] = {1, 1, 1}, more[] = {1, 2, 1};
    const double seconds[] = {1, 0.5, 0.25};
    const struct duet_class_stats classes[] = {{.kernel = "a", .tasks = 70, .expected_s = seconds}};
    g_assert_cmpfloat_with_epsilon(area(classes, 1, workers, 3), 10, 1e-10);
    g_assert_cmpfloat_with_epsilon(area(classes, 1, more, 3), 70.0 / 9, 1e-10);
}

/* ------------------------------------------------------------------------------------------- */
/* Random instances against exact methods                                                       */

static int compare_ratio(const void *left, const void *right)
{
    const struct duet_class_stats *a = left, *b = right;
    double x = a->expected_s[0] / a->expected_s[1], y = b->expected_s[0] / b->expected_s[1];
    return (x > y) - (x < y);
}

/* Two architectures: classes in order of speed-up fill the CPUs until both sides end together. */
static double exact_for_two(struct duet_class_stats *classes, size_t count, const unsigned *workers)
{
    double cpu = 0, gpu = 0;
    for (size_t i = 0; i < count; i++)
        gpu += (double)classes[i].tasks * classes[i].expected_s[1] / workers[1];
    qsort(classes, count, sizeof *classes, compare_ratio);
    for (size_t i = 0; i < count; i++) {
        double more_cpu = (double)classes[i].tasks * classes[i].expected_s[0] / workers[0];
        double less_gpu = (double)classes[i].tasks * classes[i].expected_s[1] / workers[1];
        double part = (gpu - cpu) / (more_cpu + less_gpu);
        if (part <= 1)
            return cpu + fmax(part, 0) * more_cpu;
        cpu += more_cpu;
        gpu -= less_gpu;
    }
    return cpu;
}

static void random_classes(GRand *random, struct duet_class_stats *classes, double *seconds,
                           size_t count, size_t arch_count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t a = 0; a < arch_count; a++)
            seconds[i * arch_count + a] = exp(g_rand_double_range(random, -9, 3));
        classes[i] =
            (struct duet_class_stats){.kernel = "k",
                                      .tasks = (uint64_t)exp(g_rand_double_range(random, 0, 14)),
                                      .expected_s = seconds + i * arch_count};
    }
}

static void test_random_two(void)
{
    static const unsigned workers[] = {4, 8};
    GRand *random = g_rand_new_with_seed(1);
    struct duet_class_stats classes[200];
    double seconds[400];
    for (int round = 0; round < 200; round++) {
        size_t count = (size_t)g_rand_int_range(random, 1, 200);
        random_classes(random, classes, seconds, count, 2);
        double bound = area(classes, count, workers, 2);
        double exact = exact_for_two(classes, count, workers);
        g_assert_cmpfloat_with_epsilon(bound / exact, 1, 1e-6);
        g_assert_cmpfloat(bound, <=, exact * (1 + 1e-12)); /* never above */
    }
    g_rand_free(random);
}

/* Two of four architectures that are twins are one with more workers; not all can run anywhere. */
static void test_random_twins(void)
{
    static const unsigned twins[] = {4, 3, 5, 2}, merged[] = {4, 8, 2};
    GRand *random = g_rand_new_with_seed(2);
    struct duet_class_stats three[50], four[50];
    double seconds[150], doubled[200];
    for (int round = 0; round < 100; round++) {
        random_classes(random, three, seconds, 50, 3);
        for (size_t i = 0; i < 50; i++) {
            double *s = seconds + 3 * i;
            s[i % 7 % 3] *= i % 7 < 3 ? 0 : 1;
            memcpy(doubled + 4 * i, (double[]){s[0], s[1], s[1], s[2]}, 4 * sizeof(double));
            four[i] = (struct duet_class_stats){.kernel = "k",
                                                .tasks = three[i].tasks,
                                                .expected_s = doubled + 4 * i};
        }
        g_assert_cmpfloat_with_epsilon(area(four, 50, twins, 4) / area(three, 50, merged, 3), 1,
                                       1e-11);
    }
    g_rand_free(random);
}

/* ------------------------------------------------------------------------------------------- */
/* Degenerate and wrong input                                                                   */

static void test_nothing(void)
{
    const unsigned workers[] = {1, 1};
    const double nowhere[] = {0, 0};
    const struct duet_class_stats classes[] = {{.kernel = "a", .tasks = 0, .expected_s = nowhere}};
    g_assert_cmpfloat(area(NULL, 0, workers, 2), ==, 0);
    g_assert_cmpfloat(area(classes, 1, workers, 2), ==, 0);
}

static void test_big(void)
{
    const unsigned workers[] = {4, 8};
    const double short_s[] = {1e-6, 1e-7}, long_s[] = {1e4, 1e3};
    const struct duet_class_stats one[] = {
        {.kernel = "a", .tasks = UINT64_C(1000000000000000), .expected_s = short_s}};
    const struct duet_class_stats both[] = {{.kernel = "a",
                                             .tasks = UINT64_C(1000000000000),
                                             .expected_s = short_s},
                                            {.kernel = "b", .tasks = 3, .expected_s = long_s}};
    g_assert_cmpfloat_with_epsilon(area(one, 1, workers, 2) / (1e15 / 84e6), 1, 1e-9);
    g_assert_cmpfloat_with_epsilon(area(both, 2, workers, 2) / ((1e12 * 1e-7 + 3e3) / 8.4), 1,
                                   1e-6);
}

static void test_merging(void)
{
    const unsigned workers[] = {1, 1};
    const double seconds[] = {2, 1}, same[] = {2, 1};
    const struct duet_class_stats classes[] = {{.kernel = "a", .tasks = 5, .expected_s = seconds},
                                               {.kernel = "b", .tasks = 3, .expected_s = same},
                                               {.kernel = "c", .tasks = 4, .expected_s = seconds}};
    g_assert_cmpfloat_with_epsilon(area(classes, 3, workers, 2), 8, 1e-12);
}

/* Nothing is known where some tasks can run nowhere, or their time there is no number. */
static void test_unknown(void)
{
    const unsigned workers[] = {1, 0}, none[] = {0, 0};
    const double gpu[] = {0, 1}, wrong[] = {NAN, 1}, endless[] = {INFINITY, 1};
    const struct duet_class_stats classes[] = {
        {.kernel = "dgemm", .tasks = 2, .expected_s = gpu},
        {.kernel = "dpotrf", .tasks = 2, .expected_s = wrong},
        {.kernel = "dpotrf", .tasks = 2, .expected_s = endless},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(classes); i++) {
        g_assert_cmpfloat(bounds(&classes[i], 1, workers, 2).area_s, ==, 0);
        g_assert_cmpfloat(bounds(&classes[i], 1, workers, 2).critical_path_s, ==, 0);
        g_assert_cmpfloat(bounds(&classes[i], 1, none, 2).area_s, ==, 0);
    }
}

/* As many classes as a long run with varied sizes makes. */
static void test_many(void)
{
    static const unsigned workers[] = {4, 8};
    size_t count = 20000;
    GRand *random = g_rand_new_with_seed(4);
    struct duet_class_stats *classes = g_new(struct duet_class_stats, count);
    double *seconds = g_new(double, count * 2);
    random_classes(random, classes, seconds, count, 2);
    double bound = area(classes, count, workers, 2);
    g_assert_cmpfloat_with_epsilon(bound / exact_for_two(classes, count, workers), 1, 1e-6);
    g_free(classes);
    g_free(seconds);
    g_rand_free(random);
}

/* The same by the linear program: GPUs of two kinds that are as fast. */
static void test_many_twins(void)
{
    static const unsigned merged[] = {4, 8}, twins[] = {4, 3, 5};
    size_t count = 5000;
    GRand *random = g_rand_new_with_seed(5);
    struct duet_class_stats *two = g_new(struct duet_class_stats, count);
    struct duet_class_stats *three = g_new(struct duet_class_stats, count);
    double *seconds = g_new(double, count * 2), *doubled = g_new(double, count * 3);
    random_classes(random, two, seconds, count, 2);
    for (size_t i = 0; i < count; i++) {
        const double *s = seconds + 2 * i;
        memcpy(doubled + 3 * i, (double[]){s[0], s[1], s[1]}, 3 * sizeof *s);
        three[i] = (struct duet_class_stats){.kernel = "k",
                                             .tasks = two[i].tasks,
                                             .expected_s = doubled + 3 * i};
    }
    double bound = area(three, count, twins, 3);
    g_assert_cmpfloat_with_epsilon(bound / exact_for_two(two, count, merged), 1, 1e-6);
    g_free(two);
    g_free(three);
    g_free(seconds);
    g_free(doubled);
    g_rand_free(random);
}

/*
 * Times from 10^-300 to 10^300 s side by side, and none: what comes out is a bound, or 0. A task
 * has to be somewhere, so that no bound is beyond what all of them take where each is fastest.
 */
static void test_extreme(void)
{
    static const double some[] = {0, 1e-300, 5e-324, 1e-9, 1, 1e300, DBL_MAX, INFINITY, NAN};
    const unsigned workers[] = {40, 3, 2, 1};
    GRand *random = g_rand_new_with_seed(5);
    for (unsigned trial = 0; trial < 3000; trial++) {
        double seconds[6][4], all_s = 0;
        struct duet_class_stats classes[6];
        size_t archs = 1 + trial % 4, count = (size_t)g_rand_int_range(random, 1, 7);
        bool known = true;
        for (size_t c = 0; c < count; c++) {
            double best_s = INFINITY;
            for (size_t a = 0; a < archs; a++) {
                seconds[c][a] = some[g_rand_int_range(random, 0, G_N_ELEMENTS(some))];
                best_s = seconds[c][a] > 0 ? fmin(best_s, seconds[c][a]) : best_s;
            }
            classes[c] = (struct duet_class_stats){.tasks = 1000000, .expected_s = seconds[c]};
            known = known && isfinite(best_s);
            all_s += 1e6 * best_s;
        }
        double area_s = bounds(classes, count, workers, archs).area_s;
        g_assert_true(isfinite(area_s) && area_s >= 0 && (known || area_s == 0));
        g_assert_cmpfloat(area_s, <=, all_s * (1 + 1e-9));
    }
    g_rand_free(random);
}

/* Of classes that are too many to look for long, what has been found by then is a bound, too. */
static void test_limited(void)
{
    enum { CLASSES = 500, ARCHS = 4 };
    double seconds[CLASSES][ARCHS], prices[ARCHS], before = 0;
    struct duet_class_stats classes[CLASSES];
    struct duet_worker workers[] = {{.arch = 0},
                                    {.arch = 0},
                                    {.arch = 1},
                                    {.arch = 2},
                                    {.arch = 3}};
    const struct duet_machine machine = {.arch_count = ARCHS,
                                         .worker_count = G_N_ELEMENTS(workers),
                                         .workers = workers};
    const struct duet_runtime runtime = {.machine = &machine,
                                         .classes = classes,
                                         .class_count = CLASSES};
    struct area area;
    GRand *random = g_rand_new_with_seed(8);
    for (size_t c = 0; c < CLASSES; c++) {
        classes[c] = (struct duet_class_stats){.tasks = 1, .expected_s = seconds[c]};
        for (size_t a = 0; a < ARCHS; a++)
            seconds[c][a] = g_rand_double_range(random, 1, 2);
    }
    g_assert_true(area_init(&area, &runtime));
    for (int power = 0; power < 7; power++) {
        double found = search(&area, prices, pow(10, power));
        g_assert_cmpfloat(found, >=, before);
        g_assert_cmpfloat(found, >, 0);
        before = found;
    }
    g_assert_cmpfloat(ldexp(before, area.exponent), ==, tested_bounds(&runtime).area_s);
    area_fini(&area);
    g_rand_free(random);
}

/* ------------------------------------------------------------------------------------------- */
/* A run                                                                                        */

static void test_run(void)
{
    struct duet_worker workers[] = {{.arch = 0}, {.arch = 1}, {.arch = 1}};
    const struct duet_machine machine = {.arch_count = 2, .worker_count = 3, .workers = workers};
    const double panel[] = {1, 0}, update[] = {10, 1};
    const struct duet_class_stats classes[] = {{.kernel = "p", .tasks = 4, .expected_s = panel},
                                               {.kernel = "g", .tasks = 30, .expected_s = update}};
    struct duet_runtime runtime = {.machine = &machine,
                                   .classes = classes,
                                   .class_count = 2,
                                   .critical_path_s = 2.5};
    struct duet__bounds out = tested_bounds(&runtime);
    g_assert_cmpfloat(out.critical_path_s, ==, 2.5);
    g_assert_cmpfloat_with_epsilon(out.area_s, 4 + 220.0 / 21, 1e-10);

    runtime.error = DUET_EINVAL;
    g_assert_cmpfloat(tested_bounds(&runtime).area_s, ==, 0);

    runtime = (struct duet_runtime){.machine = &machine};
    g_assert_cmpfloat(tested_bounds(&runtime).area_s, ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/validate/bounds/one_arch", test_one_arch);
    g_test_add_func("/validate/bounds/two_archs", test_two_archs);
    g_test_add_func("/validate/bounds/restricted", test_restricted);
    g_test_add_func("/validate/bounds/affinity", test_affinity);
    g_test_add_func("/validate/bounds/three_archs", test_three_archs);
    g_test_add_func("/validate/bounds/random_two", test_random_two);
    g_test_add_func("/validate/bounds/random_twins", test_random_twins);
    g_test_add_func("/validate/bounds/nothing", test_nothing);
    g_test_add_func("/validate/bounds/big", test_big);
    g_test_add_func("/validate/bounds/merging", test_merging);
    g_test_add_func("/validate/bounds/unknown", test_unknown);
    g_test_add_func("/validate/bounds/many", test_many);
    g_test_add_func("/validate/bounds/many_twins", test_many_twins);
    g_test_add_func("/validate/bounds/extreme", test_extreme);
    g_test_add_func("/validate/bounds/limited", test_limited);
    g_test_add_func("/validate/bounds/run", test_run);
    return g_test_run();
}
