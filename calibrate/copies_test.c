/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of measured copies, on emulated machines. */

#include "calibrate/testing_copies.h"

/* Five GPUs of Idgraf: the first and the last of them share a switch. */
static void test_idgraf(void)
{
    struct duet_config config = testing_part("idgraf", -1, 5);
    OWNED(duet__copies_fini) struct duet__copies copies = testing_copies(&config, 0.5);
    OWNED(duet_machine_fini) struct duet_machine machine = {0};
    config.cpus = 1;
    testing_machine(&config, &machine);
    testing_pairs(&copies, &machine);
    testing_switches(&copies, &machine);
    g_assert_cmpuint(copies.switch_count, ==, 4);
    g_assert_cmpuint(copies.switches[4], ==, copies.switches[0]);
}

/* Returns the mean seconds of copies of some sizes on a route. */
static double seconds(double latency_s, double bandwidth_Bps, unsigned size)
{
    return latency_s + 4096 * pow(4, size) / bandwidth_Bps;
}

/* Compares, for each pair of GPUs, a copy between them with the two copies through the host, on
 * average over sizes. Returns the least ratio. */
static double least_of_both(const struct duet__copies *copies, const struct duet_machine *machine)
{
    double least = 10;
    for (size_t i = 0; i < copies->pair_count; i++) {
        const struct duet__copy_pair *pair = &copies->pairs[i];
        double ratio = 0;
        if (pair->direct)
            continue;
        const struct duet_route *out = duet_machine_route(machine, pair->source, DUET_HOST);
        const struct duet_route *in = duet_machine_route(machine, DUET_HOST, pair->destination);
        for (unsigned size = 0; size < 4; size++)
            ratio += seconds(pair->latency_s, pair->bandwidth_Bps, size) /
                     (seconds(out->latency_s, out->bandwidth_Bps, size) +
                      seconds(in->latency_s, in->bandwidth_Bps, size)) /
                     4;
        least = fmin(least, ratio);
    }
    return least;
}

/*
 * Copies through the host at another scale: two, one after the other. Threads have to run between
 * them, for a varying time that weighs most in small copies, and a busy machine spoils the fit: it
 * is repeated until it is good. One copy of the two is about half.
 */
static void test_no_peer(void)
{
    struct duet_config config = testing_part("idgraf", -1, 2);
    OWNED(duet_machine_fini) struct duet_machine machine = {0};
    double least;
    config.scale = 0.5;
    config.no_peer = true;
    config.cpus = 1;
    testing_machine(&config, &machine);
    do {
        OWNED(duet__copies_fini) struct duet__copies copies = testing_copies(&config, 0);
        testing_pairs(&copies, &machine);
        least = least_of_both(&copies, &machine);
    } while (least <= 0.75);
}

/* Devices that compute copy as fast as they really do. */
static void test_free(void)
{
    struct duet_config config = testing_part("free", -1, 2);
    OWNED(duet__copies_fini) struct duet__copies copies = testing_copies(&config, 0);
    g_assert_cmpuint(copies.node_count, ==, 3);
    g_assert_cmpuint(copies.pair_count, ==, 6);
    g_assert_cmpuint(copies.together_count, ==, 4);
    for (size_t i = 0; i < copies.pair_count; i++) {
        g_assert_true(copies.pairs[i].direct);
        g_assert_cmpuint(copies.pairs[i].samples, >=, 10);
        g_assert_cmpfloat(copies.pairs[i].bandwidth_Bps, >, 0);
        g_assert_cmpfloat(copies.pairs[i].error, >=, 0);
    }
    for (size_t i = 0; i < copies.together_count; i++) {
        g_assert_cmpuint(copies.together[i].first, <, copies.pair_count);
        g_assert_cmpfloat(copies.together[i].first_Bps, >, 0);
        g_assert_cmpfloat(copies.together[i].second_Bps, >, 0);
    }
    g_assert_cmpuint(copies.switch_count, >=, 1);
}

static void test_none(void)
{
    struct duet_config config = testing_part(NULL, -1, 0);
    OWNED(duet__copies_fini) struct duet__copies copies = testing_copies(&config, 0);
    g_assert_cmpuint(copies.pair_count, ==, 0);
    g_assert_cmpuint(copies.switch_count, ==, 0);
}

/* A measurement that is interrupted anywhere ends and leaves nothing (the sanitizers look). */
static void test_stop(void)
{
    struct duet_config config = testing_part("idgraf", -1, 1);
    unsigned canceled = 0;
    int error;
    config.scale = 0.1;
    do {
        OWNED(duet__copies_fini) struct duet__copies copies;
        unsigned left = 3 * canceled;
        error = duet__copies_measure(&(struct duet__measurement){.config = &config,
                                                                 .stop = testing_stop_after,
                                                                 .context = &left,
                                                                 .message = hear()},
                                     &copies);
        if (error) {
            g_assert_cmpint(error, ==, DUET_ECANCELED);
            g_assert_cmpstr(heard(), ==, "the measurement was interrupted");
            g_assert_null(copies.pairs);
            canceled++;
        }
    } while (error);
    g_assert_cmpuint(canceled, >=, 3);
}

TEST_MAIN(test_idgraf, test_no_peer, test_free, test_none, test_stop)
