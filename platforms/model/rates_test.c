/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of demands, rates of executions beside each other, draws, and names of effects. */
#include <math.h>
#include <string.h>

#include <glib.h>

#include <duet/random.h>

#include "platforms/model/effects.h"

static void near(double value, double expected)
{
    g_assert_cmpfloat(fabs(value - expected), <=, 1e-12 * fabs(expected));
}

/* Four CPU workers: 0 to 2 on socket 0, 3 on socket 1; memory gives 10 GB/s. */
static void machine_init(struct duet_machine *machine)
{
    g_assert_cmpint(duet_machine_init(machine, 1, 1, 4, 0), ==, 0);
    machine->workers[3].socket = 1;
    machine->sharing.bandwidth_Bps = 10e9;
}

static void test_demand(void)
{
    struct duet__point point = {.mean_s = 5, .base_s = 1, .memory_s = 4.4};
    const struct duet__operand operands[2] = {{1, 100, false}, {2, 1000, true}};
    const double missing[2] = {0.5, 0.25}, none[2] = {0, 0}, little[2] = {0, 1e-13};
    struct duet__demand demand;
    duet__demand(&point, operands, missing, 2, DUET__EFFECTS, &demand);
    near(demand.fixed_s, 1);
    near(demand.memory_s, 4.4 * 300 / 1100);
    near(demand.bytes, 300);
    near(demand.busy_ratio, 1);
    /* waiting for less than a picosecond counts as none */
    duet__demand(&point, operands, little, 2, DUET__EFFECTS, &demand);
    g_assert_cmpfloat(demand.memory_s, ==, 0);
    duet__demand(&point, operands, none, 2, DUET__EFFECTS, &demand);
    g_assert_cmpfloat(demand.memory_s + demand.bytes, ==, 0);
    duet__demand(&point, operands, none, 0, DUET__EFFECTS, &demand);
    g_assert_cmpfloat(demand.memory_s + demand.bytes, ==, 0);
    duet__demand(&point, operands, missing, 2, DUET__EFFECTS & ~(unsigned)DUET__EFFECT_CACHES,
                 &demand);
    near(demand.fixed_s, 1);
    g_assert_cmpfloat(demand.memory_s + demand.bytes, ==, 0);
    duet__demand(&point, NULL, NULL, 0, DUET__EFFECTS, &demand);
    near(demand.fixed_s, 5);
    point.base_s = 0;
    point.busy_ratio = 1.25;
    duet__demand(&point, operands, missing, 2, DUET__EFFECTS, &demand);
    near(demand.fixed_s, 5);
    g_assert_cmpfloat(demand.memory_s + demand.bytes, ==, 0);
    near(demand.busy_ratio, 1.25);
}

static void test_alone(void)
{
    OWNED(duet_machine_fini) struct duet_machine machine;
    const struct duet__demand demand = {.fixed_s = 1, .memory_s = 1, .bytes = 8e9, .busy_ratio = 2};
    struct duet__running running[2] = {{.demand = &demand}, {.demand = &demand, .socket = 1}};
    machine_init(&machine);
    duet__rates(&machine, running, 1, DUET__EFFECTS);
    g_assert_cmpfloat(running[0].rate, ==, 1);
    /* sockets have nothing in common */
    duet__rates(&machine, running, 2, DUET__EFFECTS);
    g_assert_cmpfloat(running[0].rate, ==, 1);
    g_assert_cmpfloat(running[1].rate, ==, 1);
}

static void test_neighbours(void)
{
    OWNED(duet_machine_fini) struct duet_machine machine;
    const struct duet__demand touchy = {.fixed_s = 1, .busy_ratio = 1.5};
    const struct duet__demand calm = {.fixed_s = 1, .busy_ratio = 1};
    struct duet__running running[3] = {{.demand = &touchy}, {.demand = &calm}, {.demand = &touchy}};
    machine_init(&machine);
    duet__rates(&machine, running, 2, DUET__EFFECTS);
    near(running[0].rate, 1 / 1.25); /* one of the two others runs */
    near(running[1].rate, 1);
    duet__rates(&machine, running, 3, DUET__EFFECTS);
    near(running[2].rate, 1 / 1.5);
    duet__rates(&machine, running, 3, DUET__EFFECTS & ~(unsigned)DUET__EFFECT_NEIGHBOURS);
    g_assert_cmpfloat(running[2].rate, ==, 1);
}

/* Two executions that stream: each asks for 8 GB in 1 s and there are 10 GB/s. x with 16 / x = 10:
 * each runs at 10/16 of its speed. One beside them that only computes is not slowed down. */
static void test_bandwidth(void)
{
    OWNED(duet_machine_fini) struct duet_machine machine;
    const struct duet__demand stream = {.fixed_s = 1e-9,
                                        .memory_s = 1 - 1e-9,
                                        .bytes = 8e9,
                                        .busy_ratio = 1};
    const struct duet__demand computes = {.fixed_s = 1, .busy_ratio = 1};
    struct duet__running running[3] = {{.demand = &stream},
                                       {.demand = &computes},
                                       {.demand = &stream}};
    machine_init(&machine);
    duet__rates(&machine, running, 3, DUET__EFFECTS);
    near(running[0].rate, 10.0 / 16);
    near(running[2].rate, 10.0 / 16);
    g_assert_cmpfloat(running[1].rate, ==, 1);
    /* demand equals supply: one half computes, one half waits for memory */
    const struct duet__demand half = {.fixed_s = 0.5,
                                      .memory_s = 0.5,
                                      .bytes = 8e9,
                                      .busy_ratio = 1};
    running[0].demand = running[2].demand = &half;
    duet__rates(&machine, running, 3, DUET__EFFECTS);
    near(running[0].rate * 8e9 + running[2].rate * 8e9, 10e9);
    duet__rates(&machine, running, 3, DUET__EFFECTS & ~(unsigned)DUET__EFFECT_BANDWIDTH);
    g_assert_cmpfloat(running[0].rate, ==, 1);
}

static void test_cores(void)
{
    OWNED(duet_machine_fini) struct duet_machine machine;
    const struct duet__demand computes = {.fixed_s = 1, .busy_ratio = 1};
    struct duet__running running[3] = {{.demand = &computes},
                                       {.demand = &computes},
                                       {.demand = &computes, .socket = 1}};
    machine_init(&machine);
    machine.cores = 2;
    duet__rates(&machine, running, 2, DUET__EFFECTS);
    g_assert_cmpfloat(running[0].rate, ==, 1);
    duet__rates(&machine, running, 3, DUET__EFFECTS);
    for (unsigned i = 0; i < 3; i++)
        near(running[i].rate, 2.0 / 3);
    duet__rates(&machine, running, 3, DUET__EFFECTS & ~(unsigned)DUET__EFFECT_CORES);
    g_assert_cmpfloat(running[0].rate, ==, 1);
}

/* Fails unless draws are log-normal with mean 1 and this ratio, within four standard errors. */
static void check_draws(const struct duet__point *point, double ratio)
{
    enum { DRAWS = 20000 };
    uint64_t state = duet_random_stream(1, 2);
    const double variance = log1p(ratio * ratio), deviation = sqrt(variance);
    double sum = 0, logs = 0, squares = 0, cubes = 0;
    for (unsigned i = 0; i < DRAWS; i++) {
        double u = duet_random_unit(&state),
               factor = duet__factor(point, u, duet_random_unit(&state));
        double normal = (log(factor) + variance / 2) / deviation;
        sum += factor;
        logs += normal;
        squares += normal * normal;
        cubes += normal * normal * normal;
    }
    /* a standard normal's powers have the variances 1, 2 and 15 */
    g_assert_cmpfloat(fabs(sum / DRAWS - 1), <, 4 * ratio / sqrt(DRAWS));
    g_assert_cmpfloat(fabs(logs / DRAWS), <, 4 / sqrt(DRAWS));
    g_assert_cmpfloat(fabs(squares / DRAWS - 1), <, 4 * sqrt(2.0 / DRAWS));
    g_assert_cmpfloat(fabs(cubes / DRAWS), <, 4 * sqrt(15.0 / DRAWS));
}

/* The point's noise counts, else the deviation of its times; without either there is no
 * variation. */
static void test_factor(void)
{
    check_draws(&(struct duet__point){.mean_s = 2, .deviation_s = 1, .noise = 0.2}, 0.2);
    check_draws(&(struct duet__point){.mean_s = 2, .deviation_s = 1}, 0.5);
    g_assert_cmpfloat(duet__factor(&(struct duet__point){.mean_s = 2}, 0.3, 0.3), ==, 1);
}

static void test_names(void)
{
    static const char *const names[] = {"caches", "bandwidth", "neighbours",
                                        "cores",  "wake-ups",  "start"};
    unsigned bits = 1;
    WORKS(duet__effects_parse("--without", NULL, &bits, hear()));
    g_assert_cmpuint(bits, ==, 0);
    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        WORKS(duet__effects_parse("--without", names[i], &bits, hear()));
        g_assert_cmpuint(bits, ==, 1U << i);
    }
    g_assert_cmpuint((1U << G_N_ELEMENTS(names)) - 1, ==, DUET__EFFECTS);
    WORKS(duet__effects_parse("--without", "cores,caches", &bits, hear()));
    g_assert_cmpuint(bits, ==, DUET__EFFECT_CORES | DUET__EFFECT_CACHES);
    FAILS(duet__effects_parse("--without", "caches,core", &bits, hear()), DUET_EINVAL,
          "--without: unknown cause 'core'");
    SAYS("wake-ups");
}

TEST_MAIN(test_demand, test_alone, test_neighbours, test_bandwidth, test_cores, test_factor,
          test_names)
