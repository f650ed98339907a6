/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies whose dates are known by hand: any date, no bytes, routes without shared links, copies
 * that are cancelled. sim/network_test.c has random ones.
 */
#include <math.h>

#include "core/flows.h"
#include "core/testing.h"

enum { NODES = 4, SHARED = 0, OWN = 1, LINKS = 2, LONG = 20 };

static struct duet_machine machine;

/* All routes cross one link of 1 GB/s, which copies share or which limits each of them. Routes from
 * device 3 cross none. */
static void make_machine(unsigned link)
{
    g_assert_cmpint(duet_machine_init(&machine, 1, NODES, 1, LINKS), ==, DUET_OK);
    for (unsigned l = 0; l < LINKS; l++)
        machine.links[l] = (struct duet_link){.bandwidth_Bps = 1e9, .per_copy = l == OWN};
    for (unsigned i = 0; i < NODES * NODES; i++) {
        struct duet_route *route = &machine.routes[i];
        *route = (struct duet_route){.direct = true, .latency_s = 0.5};
        if (i / NODES != 3)
            route->links[route->count++] = (uint16_t)link;
    }
}

static void add_copy(struct duet__flows *flows, unsigned from, unsigned to, double bytes,
                     double date)
{
    const struct duet__flow flow = {.source = from,
                                    .destination = to,
                                    .bytes = bytes,
                                    .start_s = date};
    duet__flows_advance(flows, date);
    g_assert_cmpint(duet__flows_add(flows, &flow), ==, DUET_OK);
}

/* Lets all copies end, and checks the date of each, in their order. */
static void check_ends(struct duet__flows *flows, const double *ends_s, size_t count,
                       double precision_s)
{
    duet__flows_advance(flows, INFINITY);
    g_assert_cmpuint(flows->count, ==, count);
    for (size_t i = 0; i < count; i++) {
        const struct duet__flow flow = duet__flows_remove(flows, 0);
        g_assert_cmpint(flow.state, ==, DUET__ENDED);
        g_assert_cmpfloat_with_epsilon(flow.date_s, ends_s[i], precision_s);
    }
}

/* Two copies into one device wait for each other; a third one shares the link with either. */
static void test_dates(void)
{
    static const double dates[] = {0, 12345, 1e6, 1e9};
    for (unsigned i = 0; i < G_N_ELEMENTS(dates); i++)
        for (unsigned link = SHARED; link <= OWN; link++) {
            const double d = dates[i], precision_s = 1e-12 + 4e-16 * d;
            const double shared[] = {d + 1.5, d + 3, d + 3, d + 3.5},
                         own[] = {d + 1, d + 2, d + 2.5, d + 3};
            struct duet__flows flows;
            make_machine(link);
            g_assert_cmpint(duet__flows_init(&flows, &machine, 1), ==, DUET_OK);
            add_copy(&flows, 0, 1, 5e8, d);
            add_copy(&flows, 0, 1, 5e8, d);
            add_copy(&flows, 0, 2, 2e9 - 5e8 * (link == SHARED), d);
            add_copy(&flows, 0, 2, 0, d);
            check_ends(&flows, link == SHARED ? shared : own, 4, precision_s);
            duet__flows_fini(&flows);
            duet_machine_fini(&machine);
        }
}

/* Copies without bytes, or without links, last as long as their latency. */
static void test_nothing(void)
{
    static const double ends_s[] = {1e9 + 0.5, 1e9 + 0.5, 1e9 + 0.5};
    struct duet__flows flows;
    make_machine(SHARED);
    g_assert_cmpint(duet__flows_init(&flows, &machine, 1), ==, DUET_OK);
    add_copy(&flows, 0, 1, 0, 1e9);
    add_copy(&flows, 0, 2, 0, 1e9);
    add_copy(&flows, 3, 0, 1e30, 1e9);
    check_ends(&flows, ends_s, 3, 1e-12);
    duet__flows_fini(&flows);
    duet_machine_fini(&machine);
}

/*
 * Copies of each state, of which some are cancelled: the first flows, the second is queued behind
 * it, the third lets its latency pass. Those that remain have the whole link.
 */
static void test_cancelled(void)
{
    static const double ends_s[1 << 3][3] = {{1.75, 3.25, 2}, {1, 2.75, 2}, {1.75, 1.75, 2},
                                             {1, 1, 1.75},    {1.5, 3, 1},  {1, 2.5, 1},
                                             {1.5, 1.5, 1},   {1, 1, 1}};
    for (unsigned which = 0; which < 1 << 3; which++)
        for (unsigned end = 0; end < 2; end++) {
            struct duet__flows flows;
            make_machine(SHARED);
            g_assert_cmpint(duet__flows_init(&flows, &machine, 1), ==, DUET_OK);
            add_copy(&flows, 0, 1, 1e9, 0);
            add_copy(&flows, 0, 1, 1e9, 0);
            add_copy(&flows, 0, 2, 5e8, 0.75);
            duet__flows_advance(&flows, 1);
            g_assert_cmpint(flows.flows[0].state, ==, DUET__FLOWING);
            g_assert_cmpint(flows.flows[1].state, ==, DUET__QUEUED);
            g_assert_cmpint(flows.flows[2].state, ==, DUET__LATENT);
            for (unsigned f = 0; f < 3; f++)
                if (which & 1U << f)
                    duet__flows_cancel(&flows, &flows.flows[f], 1);
            if (end)
                check_ends(&flows, ends_s[which], 3, 1e-12);
            duet__flows_fini(&flows);
            duet__flows_fini(&flows);
            duet_machine_fini(&machine);
        }
}

/* Flows that begin, end, or are dropped while others cross as many links, or one of them. */
static void test_fluid(void)
{
    double bandwidth_Bps[LONG];
    unsigned links[LONG];
    struct duet__fluid *fluid;
    for (unsigned i = 0; i < LONG; i++) {
        bandwidth_Bps[i] = i ? 2 : 1;
        links[i] = i;
    }
    g_assert_cmpint(duet__fluid_new(&fluid, bandwidth_Bps, LONG), ==, DUET_OK);
    for (unsigned round = 0; round < 4; round++) {
        struct duet__fluid_flow *flows[4];
        const double date = 100 * round;
        for (unsigned i = 0; i < 4; i++) {
            flows[i] = duet__fluid_flow_new(fluid, links, i == 3 ? 1 : LONG, INFINITY, &links[i]);
            g_assert_nonnull(flows[i]);
            if (i != 2)
                duet__fluid_begin(fluid, flows[i], 3, date);
        }
        g_assert_cmpfloat(duet__fluid_next(fluid), ==, date + 9);
        g_assert_null(duet__fluid_end(fluid, date + 8));
        duet__fluid_drop(fluid, flows[0], date + 3);
        duet__fluid_drop(fluid, flows[2], date + 3);
        g_assert_cmpfloat(duet__fluid_next(fluid), ==, date + 7);
        g_assert_true(duet__fluid_end(fluid, date + 7) == flows[1]);
        g_assert_true(duet__fluid_flow_tag(flows[1]) == &links[1]);
        g_assert_true(duet__fluid_end(fluid, date + 7) == flows[3]);
        g_assert_true(isinf(duet__fluid_next(fluid)));
        duet__fluid_begin(fluid, duet__fluid_flow_new(fluid, links, LONG, 0.5, NULL), 1, date + 7);
        g_assert_cmpfloat(duet__fluid_next(fluid), ==, date + 9);
        if (round < 3) /* the last one is freed on its way */
            g_assert_nonnull(duet__fluid_end(fluid, date + 9));
    }
    duet__fluid_free(fluid);
    duet__fluid_free(NULL);
}

/* A flow is dropped from the middle of the heap, and the last one, which takes its place, ends
 * sooner than those above. */
static void test_order(void)
{
    static const unsigned ends_s[] = {1, 10, 2, 11, 12, 3, 4, 13, 14, 15, 16, 5, 6};
    struct duet__fluid_flow *flows[17] = {NULL}, *many[100];
    struct duet__fluid *fluid;
    g_assert_cmpint(duet__fluid_new(&fluid, NULL, 0), ==, DUET_OK);
    for (unsigned i = 0; i < 100; i++)
        many[i] = duet__fluid_flow_new(fluid, NULL, 0, 1, NULL);
    for (unsigned i = 0; i < 100; i++) /* there is room for all that were made */
        duet__fluid_begin(fluid, many[i], 1, 0);
    for (unsigned i = 0; i < 100; i++)
        duet__fluid_drop(fluid, many[i], 0);
    for (unsigned i = 0; i < G_N_ELEMENTS(ends_s); i++) {
        flows[ends_s[i]] = duet__fluid_flow_new(fluid, NULL, 0, 1, NULL);
        g_assert_nonnull(flows[ends_s[i]]);
        duet__fluid_begin(fluid, flows[ends_s[i]], ends_s[i], 0);
    }
    duet__fluid_drop(fluid, flows[11], 0);
    flows[11] = NULL;
    for (unsigned end_s = 1; end_s < G_N_ELEMENTS(flows); end_s++)
        if (flows[end_s]) {
            g_assert_cmpfloat(duet__fluid_next(fluid), ==, end_s);
            g_assert_true(duet__fluid_end(fluid, end_s) == flows[end_s]);
        }
    duet__fluid_free(fluid);
}

TEST_MAIN(test_dates, test_nothing, test_cancelled, test_fluid, test_order)
