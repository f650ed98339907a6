/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics: samples computed by hand, published quantiles of Student's t, wrong input. */
#include "base/stats.h"

#include <math.h>
#include <string.h>

#include <glib.h>

#define CLOSE(a, b) g_assert_cmpfloat_with_epsilon(a, b, 1e-12)

static struct duet__summary summary(const double *values, size_t count)
{
    struct duet__summary s = duet__summarise(values, count);
    g_assert_cmpuint(s.count, ==, count);
    return s;
}

/* ------------------------------------------------------------------------------------------- */
/* Distributions                                                                                */

/* Student's quantiles to 16 digits, computed with 40 (mpmath); tables agree with the first. */
static void test_student(void)
{
    static const double known[][3] = {
        {0.975, 1, 12.7062047361747},     {0.975, 2, 4.302652729749464},
        {0.975, 3, 3.18244630528371},     {0.975, 4, 2.776445105197794},
        {0.975, 9, 2.262157162798206},    {0.975, 29, 2.045229642132704},
        {0.975, 99, 1.984216951586417},   {0.975, 1000, 1.962339080826408},
        {0.95, 10000, 1.645006018069243}, {0.975, 1e6, 1.959966356814107},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(known); i++) {
        double p = known[i][0], f = known[i][1], t = known[i][2];
        g_assert_cmpfloat_with_epsilon(duet__student_quantile(p, f) / t, 1, 1e-9);
        g_assert_cmpfloat_with_epsilon(duet__student_quantile(1 - p, f) / -t, 1, 1e-9);
    }
    /* Closed forms for one and two degrees of freedom. */
    for (int percent = 1; percent < 100; percent += 7) {
        double p = percent / 100.0;
        g_assert_cmpfloat_with_epsilon(duet__student_quantile(p, 1), tan(G_PI * (p - 0.5)), 1e-9);
        g_assert_cmpfloat_with_epsilon(duet__student_quantile(p, 2),
                                       (2 * p - 1) / sqrt(2 * p * (1 - p)), 1e-9);
    }
    g_assert_cmpfloat(duet__student_quantile(0.5, 7), ==, 0);
}

static void test_nonsense(void)
{
    /* 5 % points of F from tables; with one degree above it is the square of Student's t */
    g_assert_cmpfloat_with_epsilon(duet__f_tail(2.845, 3, 39), 0.05, 1e-4);
    g_assert_cmpfloat_with_epsilon(duet__f_tail(4.9646, 1, 10), 0.05, 1e-6);
    g_assert_cmpfloat_with_epsilon(duet__f_tail(pow(duet__student_quantile(0.99, 7), 2), 1, 7),
                                   0.02, 1e-12);
    g_assert_true(duet__f_tail(0, 2, 5) >= 1 && duet__f_tail(1e300, 2, 5) <= 0);
    g_assert_true(isnan(duet__student_quantile(0, 1)));
    g_assert_true(isnan(duet__student_quantile(1, 1)));
    g_assert_true(isnan(duet__student_quantile(0.9, 0)));
    g_assert_true(isnan(duet__student_quantile(NAN, 1)));
    g_assert_true(isnan(duet__student_quantile(0.9, INFINITY)));
}

/* ------------------------------------------------------------------------------------------- */
/* Samples                                                                                      */

static void test_quantile(void)
{
    static const double four[] = {1, 2, 4, 8};
    g_assert_cmpfloat(duet__quantile(four, 4, 0), ==, 1);
    g_assert_cmpfloat(duet__quantile(four, 4, 1), ==, 8);
    CLOSE(duet__quantile(four, 4, 0.5), 3);
    CLOSE(duet__quantile(four, 4, 0.25), 1.75);
    CLOSE(duet__quantile(four, 4, 0.75), 5);
    CLOSE(duet__quantile(four, 4, 0.9), 6.8);
    g_assert_cmpfloat(duet__quantile(four, 1, 0.3), ==, 1);
}

/* 2 4 4 4 5 5 7 9: mean 5, squares 32. The 2nd and 7th cover 1 - 18/256, the ends 1 - 2/256. */
static void test_sample(void)
{
    static const double values[] = {9, 4, 5, 2, 4, 7, 5, 4};
    struct duet__summary s = summary(values, 8);
    double half = 2.364624251592784 * sqrt(32.0 / 7) / sqrt(8);
    CLOSE(s.mean, 5);
    CLOSE(s.median, 4.5);
    CLOSE(s.deviation, sqrt(32.0 / 7));
    CLOSE(s.minimum, 2);
    CLOSE(s.quartile1, 4);
    CLOSE(s.quartile3, 5.5);
    g_assert_cmpfloat_with_epsilon(s.mean_low, 5 - half, 1e-9);
    g_assert_cmpfloat_with_epsilon(s.mean_high, 5 + half, 1e-9);
    CLOSE(s.median_low, 2);
    CLOSE(s.median_high, 9);
    g_assert_cmpfloat(values[0], ==, 9); /* left as they are */
}

/* Ranks of the tables (Hahn and Meeker; Conover): n = 30 gives 10 and 21, 95.7 %. */
static void test_median_interval(void)
{
    static const struct {
        size_t count, rank;
    } known[] = {{1, 1},  {2, 1},  {5, 1},  {6, 1},   {9, 2},
                 {10, 2}, {15, 4}, {20, 6}, {30, 10}, {100, 40}};
    double values[100];
    for (size_t i = 0; i < 100; i++)
        values[i] = (double)i + 1;
    for (size_t i = 0; i < G_N_ELEMENTS(known); i++) {
        struct duet__summary s = summary(values, known[i].count);
        g_assert_cmpfloat(s.median_low, ==, (double)known[i].rank);
        g_assert_cmpfloat(s.median_high, ==, (double)(known[i].count + 1 - known[i].rank));
    }
}

static void test_one(void)
{
    static const double value = 3.25;
    struct duet__summary s = summary(&value, 1);
    const double same[] = {s.mean,     s.median,    s.minimum,    s.quartile1,  s.quartile3,
                           s.mean_low, s.mean_high, s.median_low, s.median_high};
    for (size_t i = 0; i < G_N_ELEMENTS(same); i++)
        g_assert_cmpfloat(same[i], ==, value);
    g_assert_cmpfloat(s.deviation, ==, 0);
}

static void test_two(void)
{
    static const double values[] = {3, 1};
    struct duet__summary s = summary(values, 2);
    CLOSE(s.mean, 2);
    CLOSE(s.median, 2);
    CLOSE(s.deviation, sqrt(2));
    g_assert_cmpfloat_with_epsilon(s.mean_high, 2 + 12.7062047361747, 1e-9);
    g_assert_cmpfloat(s.median_low, ==, 1);
    g_assert_cmpfloat(s.median_high, ==, 3);
}

/* Equal values have no spread, whatever their size. */
static void test_equal(void)
{
    double values[31];
    for (size_t i = 0; i < G_N_ELEMENTS(values); i++)
        values[i] = 0.1;
    struct duet__summary s = summary(values, G_N_ELEMENTS(values));
    g_assert_cmpfloat(s.mean, ==, 0.1);
    g_assert_cmpfloat(s.deviation, ==, 0);
    g_assert_cmpfloat(s.mean_low, ==, 0.1);
    g_assert_cmpfloat(s.mean_high, ==, 0.1);
}

/* A spread of 1 around 10^9 among 10^5 values: what naive sums lose. */
static void test_offset(void)
{
    size_t count = 100000;
    g_autofree double *values = g_new(double, count);
    for (size_t i = 0; i < count; i++)
        values[i] = 1e9 + (double)(i % 2);
    struct duet__summary s = summary(values, count);
    g_assert_cmpfloat(s.mean, ==, 1e9 + 0.5);
    CLOSE(s.deviation, sqrt(0.25 * 1e5 / (1e5 - 1)));
    CLOSE(s.median, 1e9 + 0.5);
}

/* Nothing is known of nothing, nor of what is not finite. */
static void test_unknown(void)
{
    static const double values[] = {1, NAN, INFINITY};
    g_assert_cmpuint(duet__summarise(values, 0).count, ==, 0);
    g_assert_cmpuint(duet__summarise(NULL, 0).count, ==, 0);
    g_assert_cmpuint(duet__summarise(values, 2).count, ==, 0);
    g_assert_cmpuint(duet__summarise(values + 2, 1).count, ==, 0);
}

static void clustered(const double *values, const size_t *sizes, size_t clusters,
                      struct duet__summary *out)
{
    size_t count = 0;
    for (size_t i = 0; i < clusters; i++)
        count += sizes[i];
    *out = duet__summarise_clusters(values, count, sizes, clusters);
    g_assert_cmpuint(out->count, ==, count);
}

/* 1 to 24, of which the clusters have 5, 4, 2 and 1 of 6 below the median. */
static void test_clusters(void)
{
    static const double values[] = {1,  13, 2,  3,  4,  5,  6,  7,  8,  9,  15, 14,
                                    19, 18, 17, 16, 11, 10, 20, 21, 22, 23, 24, 12};
    static const size_t even[] = {6, 6, 6, 6}, uneven[] = {1, 5, 18}, one[] = {24};
    struct duet__summary s, alone = summary(values, 24);
    /* excesses 2, 1, -1, -2; Student's t of 3 degrees of freedom */
    double half = 3.18244630528371 * sqrt(4.0 / 3 * 10) / 24;
    clustered(values, even, 4, &s);
    CLOSE(s.median, 12.5);
    g_assert_cmpfloat_with_epsilon(s.median_low, 1 + 23 * (0.5 - half), 1e-9);
    g_assert_cmpfloat_with_epsilon(s.median_high, 1 + 23 * (0.5 + half), 1e-9);
    CLOSE(s.mean, alone.mean);
    CLOSE(s.mean_low, alone.mean_low);
    /* 1 of 1, 4 of 5, 7 of 18: excesses 1/2, 3/2, -2; t of 2 is 4.3, and the sum is too much */
    clustered(values, uneven, 3, &s);
    g_assert_cmpfloat(s.median_low, ==, 1);
    g_assert_cmpfloat(s.median_high, ==, 24);
    for (size_t clusters = 0; clusters < 2; clusters++) {
        s = duet__summarise_clusters(values, 24, one, clusters);
        g_assert_cmpfloat(s.median_low, ==, 7); /* the ranks of 24 independent values */
        g_assert_cmpfloat(s.median_high, ==, 18);
    }
}

/* Clusters that are more alike than chance makes them narrow nothing; ties are shared out. */
static void test_clusters_alike(void)
{
    double alike[100], tied[24];
    static const double six[] = {0, 5, 5, 9, 5, 5};
    size_t tens[10], sixes[4];
    struct duet__summary s;
    for (size_t i = 0; i < 100; i++)
        alike[i] = (double)(i % 10) * 10 + floor((double)i / 10);
    for (size_t i = 0; i < 10; i++)
        tens[i] = 10;
    clustered(alike, tens, 10, &s);
    g_assert_cmpfloat(s.median_low, ==, 39); /* the 40th and the 61st */
    g_assert_cmpfloat(s.median_high, ==, 60);
    for (size_t i = 0; i < 24; i++)
        tied[i] = six[i % 6];
    for (size_t i = 0; i < 4; i++)
        sixes[i] = 6;
    clustered(tied, sixes, 4, &s);
    g_assert_cmpfloat(s.median_low, ==, 5);
    g_assert_cmpfloat(s.median_high, ==, 5);
}

/* About normally distributed: the sum of 12 uniform numbers. */
static double draw_normal(GRand *random)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += g_rand_double(random);
    return sum;
}

enum { ROUNDS = 10, RUNS = 20, LARGE = 400, TRIALS = 300 };

/* Rounds that differ by `between`, and values of a round that differ by `within`. */
struct rounds {
    size_t count, runs, large; /* runs of each round, and of the middle one */
    double between, within;
};

/*
 * Draws TRIALS samples whose median is 0; returns how many intervals hold 0, and the ratio of their
 * mean width to that of independent values.
 */
static unsigned count_covered(const struct rounds *rounds, double *wider)
{
    GRand *random = g_rand_new_with_seed(3);
    double values[ROUNDS * RUNS + LARGE], widths[2] = {0, 0};
    size_t sizes[ROUNDS];
    unsigned covered = 0;
    for (unsigned trial = 0; trial < TRIALS; trial++) {
        struct duet__summary s, alone;
        size_t count = 0;
        for (size_t round = 0; round < rounds->count; round++) {
            double centre = rounds->between * draw_normal(random);
            sizes[round] = round == rounds->count / 2 ? rounds->large : rounds->runs;
            for (size_t i = 0; i < sizes[round]; i++)
                values[count++] = centre + rounds->within * draw_normal(random);
        }
        s = duet__summarise_clusters(values, count, sizes, rounds->count);
        g_assert_cmpint(s.holds, ==, rounds->count >= DUET_INTERVAL_HOLDS);
        alone = summary(values, count);
        covered += s.median_low <= 0 && s.median_high >= 0;
        widths[0] += alone.median_high - alone.median_low;
        widths[1] += s.median_high - s.median_low;
    }
    g_rand_free(random);
    *wider = widths[1] / widths[0];
    return covered;
}

/*
 * The interval holds the median as often as it says, whether clusters differ or not. Of TRIALS, 95
 * % are 285, with a deviation of 3.8: five of these below are 266.
 */
static void test_clusters_cover(void)
{
    double wider;
    g_assert_cmpuint(count_covered(&(struct rounds){ROUNDS, RUNS, RUNS, 0, 1}, &wider), >=, 266);
    /* the larger of the two intervals, and one with t of 9 degrees of freedom, 1.15 times 1.96 */
    g_assert_cmpfloat(wider, <, 1.3);
    g_assert_cmpuint(count_covered(&(struct rounds){ROUNDS, RUNS, RUNS, 1, 1}, &wider), >=, 266);
    g_assert_cmpuint(count_covered(&(struct rounds){ROUNDS, RUNS, RUNS, 1, 0.01}, &wider), >=, 266);
    g_assert_cmpfloat(wider, >, 3);
}

/* Clusters of which one has far more values than the others, from six clusters on. */
static void test_clusters_unequal(void)
{
    static const struct rounds all[] = {{6, 5, 400, 1, 1e-3}, {6, 5, 40, 1, 0.1},
                                        {7, 5, 400, 1, 1},    {8, 5, 400, 0, 1},
                                        {10, 5, 40, 1, 1e-3}, {10, 20, 1, 1, 0.1}};
    double wider;
    for (size_t i = 0; i < G_N_ELEMENTS(all); i++)
        g_assert_cmpuint(count_covered(&all[i], &wider), >=, 266);
}

/* Fewer clusters that differ have the range that their number allows, and say so. */
static void test_clusters_few(void)
{
    double wider;
    for (size_t count = 2; count < DUET_INTERVAL_HOLDS; count++) {
        const struct rounds rounds = {count, RUNS, LARGE, 1, 1e-3};
        double expected = TRIALS * (1 - 2 * pow(0.5, (double)count));
        double deviation = sqrt(expected * (1 - expected / TRIALS));
        double covered = count_covered(&rounds, &wider);
        g_assert_cmpfloat(fabs(covered - expected), <, 5 * deviation);
    }
    g_assert_false(summary((const double[]){1, 2, 3, 4, 5}, 5).holds);
    g_assert_true(summary((const double[]){1, 2, 3, 4, 5, 6}, 6).holds);
}

/* The interval of a ratio: of one exact median that of the other, of two a right angle's side. */
static void test_ratio(void)
{
    static const double one[] = {3}, two[] = {2, 2}, spread[] = {1, 2, 4}, none[] = {0, 1};
    const struct duet__summary first = summary(one, 1), second = summary(two, 2),
                               third = summary(spread, 3), fourth = summary(none, 2);
    double low = 0, high = 0;
    duet__ratio_interval(&first, &second, &low, &high);
    CLOSE(low, 1.5);
    CLOSE(high, 1.5);
    duet__ratio_interval(&third, &second, &low, &high);
    CLOSE(low, 0.5);
    CLOSE(high, 2);
    duet__ratio_interval(&first, &third, &low, &high);
    CLOSE(low, 0.75);
    CLOSE(high, 3);
    duet__ratio_interval(&third, &third, &low, &high);
    CLOSE(low, pow(2, -sqrt(2)));
    CLOSE(high, pow(2, sqrt(2)));
    duet__ratio_interval(&first, &fourth, &low, &high);
    g_assert_true(isnan(low) && isnan(high));
    low = high = 0;
    duet__ratio_interval(&fourth, &first, &low, &high);
    g_assert_true(isnan(low) && isnan(high));
}

/* Returns what duet__wilcoxon computes, by trying all signs of ranks, each twice as large. */
static double by_all_signs(const unsigned *ranks, size_t count, unsigned above)
{
    unsigned whole = 0, hits = 0;
    for (size_t i = 0; i < count; i++)
        whole += ranks[i];
    for (unsigned signs = 0; signs < 1u << count; signs++) {
        unsigned sum = 0;
        for (size_t i = 0; i < count; i++)
            sum += signs >> i & 1 ? ranks[i] : 0;
        hits += sum <= MIN(above, whole - above);
    }
    return fmin(1, ldexp(2.0 * hits, -(int)count));
}

/* The plants of Fisher's Design of Experiments, whose test is in the manual of R and SciPy; ties
   and zeros; the normal distribution, which begins beyond 50 pairs. */
static void test_wilcoxon(void)
{
    static const double plants[] = {6, 8, 14, 16, 23, 24, 28, 29, 41, -48, 49, 56, 60, -67, 75};
    static const double tied[] = {1, -1, 1, 2, -2, 0, 3, 3, -3, 5, 1 + 1e-14};
    static const unsigned ranks[] = {5, 5, 5, 5, 11, 11, 16, 16, 16, 20};
    double many[60], adjusted[] = {0.01, 0.04, 0.03, 0.005}, above = 0;
    CLOSE(duet__wilcoxon(plants, G_N_ELEMENTS(plants)), 0.041259765625);
    CLOSE(duet__wilcoxon(tied, G_N_ELEMENTS(tied)), by_all_signs(ranks, 10, 11 + 16 + 5));
    CLOSE(duet__wilcoxon(plants, 1), 1);
    CLOSE(duet__wilcoxon((double[]){0, 1e-15}, 2), 1);
    CLOSE(duet__wilcoxon(NULL, 0), 1);
    for (size_t i = 0; i < 60; i++) {
        many[i] = (double)(i + 1) * (i % 3 ? 1 : -1);
        above += fmax(0, many[i]);
    }
    CLOSE(duet__wilcoxon(many, 60),
          erfc((above - 60 * 61 / 4. - 0.5) / sqrt(60 * 61 * 121 / 24.) / sqrt(2)));
    duet__holm(adjusted, G_N_ELEMENTS(adjusted)); /* as R's p.adjust */
    CLOSE(adjusted[0], 0.03);
    CLOSE(adjusted[1], 0.06);
    CLOSE(adjusted[2], 0.06);
    CLOSE(adjusted[3], 0.02);
}

TEST_MAIN(test_student, test_nonsense, test_quantile, test_sample, test_median_interval, test_one,
          test_two, test_equal, test_offset, test_unknown, test_clusters, test_clusters_alike,
          test_clusters_cover, test_clusters_unequal, test_clusters_few, test_ratio, test_wilcoxon)
