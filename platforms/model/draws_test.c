/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what is drawn of a simulated machine. */
#include <math.h>
#include <string.h>

#include <glib.h>

#include "platforms/model/draws.h"

static void test_parse(void)
{
    static const struct {
        const char *text;
        unsigned runs; /* 0 of a text: an error */
    } cases[] = {{NULL, 0},         {"run", 1},           {"median:1", 1},
                 {"median:7", 7},   {"median:0", 0},      {"median:-1", 0},
                 {"median:", 0},    {"median", 0},        {"median:7x", 0},
                 {"median:1e3", 0}, {"median:100001", 0}, {"median: 5", 0},
                 {"median:+5", 0},  {"runs", 0},          {"", 0}};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        unsigned runs = 99;
        int error = duet__draws_parse("--interval", cases[i].text, &runs, hear());
        g_assert_cmpint(error, ==, cases[i].text && !cases[i].runs ? DUET_EINVAL : DUET_OK);
        g_assert_cmpuint(runs, ==, cases[i].runs);
        g_assert_true(!error || g_str_has_prefix(heard(), "--interval: '"));
    }
}

/* Draws are standard normal, of a seed and two names alone, and the opposite for the seed's
   neighbour. */
static void test_normal(void)
{
    enum { SEEDS = 20000 };
    double sum = 0, squares = 0, products = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed += 2) {
        const struct duet__draws one = {.seed = seed}, other = {.seed = seed + 1};
        double z = duet__draw_normal(&one, "dgemm", "cpu");
        g_assert_cmpfloat(z, ==, duet__draw_normal(&one, "dgemm", "cpu"));
        g_assert_cmpfloat(z, ==, -duet__draw_normal(&other, "dgemm", "cpu"));
        sum += z;
        squares += z * z;
        /* names and their ends count */
        products += z * duet__draw_normal(&one, "dgemmc", "pu");
    }
    /* five standard errors */
    g_assert_cmpfloat(fabs(sum), <, 5 * sqrt(SEEDS / 2.0));
    g_assert_cmpfloat(fabs(squares - SEEDS / 2.0), <, 5 * sqrt(SEEDS));
    g_assert_cmpfloat(fabs(products), <, 5 * sqrt(SEEDS / 2.0));
}

static void test_kernel(void)
{
    const struct duet__point point = {.uncertainty = 0.25};
    struct duet__draws draws = {.seed = 4};
    struct duet__hold hold = {"k", "a", false};
    g_assert_cmpfloat(duet__draw_kernel(&draws, "k", "a", &point), ==, 1);
    draws.runs = 5;
    g_assert_cmpfloat(duet__draw_kernel(&draws, "k", "a", &point), ==,
                      exp(0.25 * duet__draw_normal(&draws, "k", "a")));
    draws.hold = &hold;
    g_assert_cmpfloat(duet__draw_kernel(&draws, "k", "a", &point), ==, 1);
    g_assert_cmpfloat(duet__draw_kernel(&draws, "k", "b", &point), !=, 1);
    g_assert_cmpfloat(duet__draw_kernel(&draws, "l", "a", &point), !=, 1);
    hold.measured = true;
    g_assert_cmpfloat(duet__draw_kernel(&draws, "k", "a", &point), ==,
                      exp(0.03 * duet__draw_normal(&draws, "k", "a")));
}

/* A state of one run is one of the quantiles' distribution, that of many their median. */
static void test_state(void)
{
    struct duet__states states = {.runs = 100};
    const struct duet__hold hold = {"", "state", false};
    unsigned below = 0, near_median = 0;
    for (unsigned i = 0; i < DUET__STATES; i++)
        states.factor[i] = 0.9 + 0.01 * i; /* median 1, from 0.9 to 1.1 */
    for (uint64_t seed = 0; seed < 1000; seed++) {
        double one = duet__draw_state(&(struct duet__draws){.seed = seed, .runs = 1}, &states);
        double many = duet__draw_state(&(struct duet__draws){.seed = seed, .runs = 101}, &states);
        double opposite =
            duet__draw_state(&(struct duet__draws){.seed = seed ^ 1, .runs = 1}, &states);
        g_assert_true(one >= 0.9 && one <= 1.1);
        g_assert_cmpfloat(fabs(one + opposite - 2), <, 1e-9);
        below += one < 0.95;
        near_median += fabs(many - 1) < 0.03;
    }
    /* 250 expected, deviation 14; the median of 101 has a deviation of 0.01 */
    g_assert_true(below > 180 && below < 320);
    g_assert_cmpuint(near_median, >, 980);
    states.drift = 0.5;
    g_assert_cmpfloat(fabs(log(duet__draw_state(&(struct duet__draws){.seed = 2, .runs = 101},
                                                &states)) -
                           0.5 * duet__draw_normal(&(struct duet__draws){.seed = 2, .runs = 101},
                                                   "", "drift")),
                      <, 0.06);
    g_assert_cmpfloat(duet__draw_state(&(struct duet__draws){.seed = 2, .runs = 1, .hold = &hold},
                                       &states),
                      ==, states.factor[DUET__STATES / 2]);
    /* where nothing is drawn, the state is the median */
    g_assert_cmpfloat(duet__draw_state(&(struct duet__draws){.seed = 2}, &states), ==,
                      states.factor[DUET__STATES / 2]);
    states.runs = 0;
    g_assert_cmpfloat(duet__draw_state(&(struct duet__draws){.seed = 2, .runs = 1}, &states), ==,
                      1);
}

static void test_machine(void)
{
    const struct duet__states states = {.runs = 100, .factor = {[DUET__STATES / 2] = 1.25}};
    const struct duet__hold hold = {"", "state", false};
    struct duet__draws draws = {.seed = 3, .runs = 1, .hold = &hold};
    OWNED(duet_machine_fini) struct duet_machine machine;
    g_assert_cmpint(duet_machine_init(&machine, 1, 2, 2, 1), ==, 0);
    machine.costs = (struct duet_costs){.submit_s = 1, .wake_s = 2, .spin_s = 3};
    machine.links[0].bandwidth_Bps = machine.routes[1].bandwidth_Bps = 1e9;
    machine.sharing.bandwidth_Bps = 1e9;
    duet__draw_machine(&draws, NULL, &machine);
    g_assert_cmpfloat(machine.links[0].bandwidth_Bps, ==, 1e9);
    g_assert_cmpfloat(machine.sharing.bandwidth_Bps, ==, 1e9);
    g_assert_cmpfloat(machine.costs.wake_s, ==, 2 * machine.costs.submit_s);
    g_assert_cmpfloat(machine.costs.submit_s, !=, 1);
    g_assert_cmpfloat(machine.costs.spin_s, ==, 3); /* a setting, not a cost */
    duet__draw_machine(&draws, &states, &machine);
    g_assert_cmpfloat(machine.links[0].bandwidth_Bps, !=, 1e9);
    g_assert_cmpfloat(machine.links[0].bandwidth_Bps, ==, machine.routes[1].bandwidth_Bps);
    g_assert_cmpfloat(machine.sharing.bandwidth_Bps, ==,
                      1e9 * exp(0.1 * duet__draw_normal(&draws, "", "memory")) / 1.25);
}

/* Bandwidth and latency have a factor each; what a SimGrid file says itself, 0 here, stays. */
static void test_network(void)
{
    const struct duet__network known = {.bandwidth_Bps = 1e9,
                                        .latency_s = 1e-6,
                                        .overhead_s = 2e-6,
                                        .rendezvous_s = 4e-6,
                                        .eager_bytes = 4096};
    const struct duet__draws draws = {.seed = 3, .runs = 1};
    struct duet__network network = known, file = {.overhead_s = 1};
    duet__draw_network(&(struct duet__draws){.seed = 3}, &network);
    g_assert_cmpmem(&network, sizeof network, &known, sizeof known);
    for (size_t i = 0; i < 2; i++) { /* a held figure is as it is known */
        const struct duet__hold hold = {"", i ? "latency" : "network", false};
        network = known;
        duet__draw_network(&(struct duet__draws){3, 1, &hold}, &network);
        g_assert_true((network.latency_s == known.latency_s) == (i == 1));
        g_assert_true((network.bandwidth_Bps == known.bandwidth_Bps) == (i == 0));
    }
    network = known;
    duet__draw_network(&draws, &network);
    duet__draw_network(&draws, &file);
    g_assert_cmpfloat(network.bandwidth_Bps / 1e9, ==,
                      exp(0.05 * duet__draw_normal(&draws, "", "network")));
    g_assert_cmpfloat(file.overhead_s, ==, exp(0.2 * duet__draw_normal(&draws, "", "latency")));
    g_assert_cmpfloat(network.latency_s, ==, 1e-6 * file.overhead_s);
    g_assert_cmpfloat(network.overhead_s, ==, 2e-6 * file.overhead_s);
    g_assert_cmpfloat(network.rendezvous_s, ==, 4e-6 * file.overhead_s);
    g_assert_cmpuint(network.eager_bytes, ==, 4096);
    g_assert_true(file.bandwidth_Bps == 0 && file.latency_s == 0);
}

TEST_MAIN(test_parse, test_normal, test_kernel, test_state, test_machine, test_network)
