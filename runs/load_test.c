/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the load by others, with made-up counters of the system. */
#include <math.h>
#include <string.h>

#include <glib.h>

#include "runs/rounds.h"

#define ALL "cpu  110 3 34 4500 56 6 7 9 900 0"
#define LINES                                                                                      \
    "\ncpu0 100 2 30 4000 50 6 7 8 900 0\ncpu1 10 1 4 500 6 0 0 1 0 0\nintr 1 2\ncpu_other 3\n"

/* Ticks of 10 ms: user, nice, system, idle, iowait, irq, softirq, steal. */
static void test_read(void)
{
    struct duet__load load = {.at_s = 3, .own_s = 4};
    const bool first[DUET__CORES_MOST] = {true}, other[DUET__CORES_MOST] = {[7] = true};
    g_assert_true(duet__load_read(ALL LINES, 0.01, NULL, &load));
    g_assert_cmpfloat(fabs(load.busy_s - 1.6), <, 1e-12);
    g_assert_cmpuint(load.cores, ==, 2);
    g_assert_false(duet__load_read(ALL LINES, 0.01, other, &load));
    g_assert_true(duet__load_read(ALL LINES, 0.01, first, &load));
    g_assert_cmpfloat(fabs(load.busy_s - 1.45), <, 1e-12);
    g_assert_cmpfloat(fabs(load.stolen_s - 0.08), <, 1e-12);
    g_assert_cmpuint(load.cores, ==, 1);
    g_assert_cmpfloat(load.at_s, ==, 3);
    g_assert_cmpfloat(load.own_s, ==, 4);
}

/* An invalid text gives no load, and disturbs nothing. */
static void test_broken(void)
{
    static const char *const texts[] = {"",
                                        "cpu",
                                        "cpu ",
                                        "cpu  1 2 3 4 5 6 7",
                                        "intr 1 2 3",
                                        "cpu  1 2 3 4 5 6 7 8\ncpu0 1 2 x 4 5 6 7 8\n",
                                        "cpu0 1 2 3 4 5 6 7 8 9",
                                        "cpu  1 2 3 4 5 6 7 8\n"};
    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        struct duet__load before = {.at_s = 1, .cores = 1}, load = {.at_s = 2};
        struct duet__disturbance between;
        g_assert_false(duet__load_read(texts[i], 0.01, NULL, &load));
        between = duet__load_between(&before, &load);
        g_assert_false(between.disturbed);
        g_assert_true(isnan(between.others));
    }
}

/* Load between two readings ten seconds apart, in which we have computed for 12 s. */
static struct duet__disturbance ten_seconds(double busy_s, double stolen_s, unsigned cores)
{
    struct duet__load before = {.at_s = 100,
                                .busy_s = 5e5,
                                .stolen_s = 7,
                                .own_s = 1,
                                .cores = cores};
    struct duet__load after = before;
    after.at_s += 10;
    after.own_s += 12;
    after.busy_s += busy_s;
    after.stolen_s += stolen_s;
    return duet__load_between(&before, &after);
}

static void test_between(void)
{
    struct duet__disturbance quiet = ten_seconds(12.5, 0.1, 2), loop = ten_seconds(22, 0, 4),
                             stolen = ten_seconds(12, 2, 2), many = ten_seconds(17, 0, 64),
                             exact = ten_seconds(11.9, 0, 2);
    char *text;
    g_assert_cmpfloat(fabs(quiet.others - 0.06), <, 1e-9);
    g_assert_false(quiet.disturbed);
    g_assert_cmpfloat(fabs(loop.others - 1), <, 1e-9);
    g_assert_true(loop.disturbed);
    g_assert_cmpfloat(fabs(stolen.others - 0.2), <, 1e-9);
    g_assert_cmpfloat(fabs(stolen.stolen - 0.2), <, 1e-9);
    g_assert_true(stolen.disturbed);
    g_assert_false(many.disturbed); /* half a core of 64 */
    g_assert_cmpfloat(exact.others, ==, 0);
    g_assert_cmpfloat(ten_seconds(40, 0, 2).others, ==, 2); /* ticks are not exact */
    text = duet__load_text(&loop);
    g_assert_cmpstr(text, ==, "other processes use 1.0 of 4 cores");
    g_free(text);
    text = duet__load_text(&stolen);
    g_assert_cmpstr(text, ==,
                    "other processes use 0.2 of 2 cores, most of it on other virtual machines");
    g_free(text);
}

/* One tick too many in a tenth of a second is no disturbance; three are. */
static void test_short(void)
{
    struct duet__load before = {.at_s = 1, .busy_s = 5, .own_s = 1, .cores = 2};
    struct duet__load after = {.at_s = 1.1, .busy_s = 5.12, .own_s = 1.1, .cores = 2};
    g_assert_false(duet__load_between(&before, &after).disturbed);
    after.busy_s += 0.02;
    g_assert_true(duet__load_between(&before, &after).disturbed);
}

/* The load of this machine can be read, and this process's own work is not others'. */
static void test_here(void)
{
    struct duet__load before = duet__load_now(), after;
    struct duet__disturbance between;
    do
        after = duet__load_now();
    while (after.own_s - before.own_s < 0.3);
    between = duet__load_between(&before, &after);
    if (isnan(between.others)) {
        g_test_skip("the system does not tell");
        return;
    }
    g_assert_cmpuint(between.cores, >, 0);
    g_assert_cmpfloat(between.others, >=, 0);
    /* each core is counted in ticks, some of which may be one too many */
    g_assert_cmpfloat(between.others, <=, 1.25 * between.cores);
    g_assert_cmpfloat(after.busy_s, >, before.busy_s);
}

TEST_MAIN(test_read, test_broken, test_between, test_short, test_here)
