/* SPDX-License-Identifier: Apache-2.0 */
/* Fits figures of a network to messages made with them, with noise and outliers. */
#include <math.h>

#include <glib.h>

#include "calibrate/microbench.h"

enum { EACH = 21 };

/* Makes messages of `network`; a tenth took many times as long, the others vary by 1 %. */
static struct duet__mpi_measured make(const struct duet__network *network)
{
    struct duet__mpi_measured m = {.nodes = 2, .eager_bytes = network->eager_bytes};
    g_autoptr(GRand) random = g_rand_new_with_seed(7);
    for (unsigned size = 0; size < DUET__MPI_SIZES; size++) {
        struct duet__mpi_times *times = &m.sizes[size];
        const double bytes = (double)(1 << size);
        const double alone_s = duet__network_message_s(network, bytes);
        times->pings = g_new(double, EACH);
        times->streams = g_new(double, 1);
        for (times->ping_count = 0; times->ping_count < EACH; times->ping_count++)
            times->pings[times->ping_count] =
                alone_s *
                (times->ping_count % 10 == 9 ? 9 : g_rand_double_range(random, 0.99, 1.01));
        times->streams[times->stream_count++] =
            fmax(network->overhead_s, bytes / network->bandwidth_Bps);
    }
    return m;
}

static void assert_near(double got, double wanted)
{
    g_assert_cmpfloat(fabs(got - wanted), <=, 0.03 * wanted);
}

static void check(const struct duet__network *network)
{
    OWNED(duet__mpi_measured_free) struct duet__mpi_measured m = make(network);
    struct duet__network_fit fit;
    WORKS(duet__network_fit(&m, &fit, hear()));
    g_assert_cmpuint(fit.count, ==, 24);
    assert_near(fit.network.overhead_s, network->overhead_s);
    assert_near(fit.network.latency_s, network->latency_s);
    assert_near(fit.network.bandwidth_Bps, network->bandwidth_Bps);
    assert_near(fit.network.rendezvous_s, network->rendezvous_s);
    g_assert_cmpuint(fit.network.eager_bytes, ==, network->eager_bytes);
    for (size_t i = 0; i < fit.count; i++) {
        g_assert_cmpuint(fit.sizes[i].rejected, ==, 2);
        assert_near(fit.sizes[i].predicted_s,
                    duet__network_message_s(network, (double)fit.sizes[i].bytes));
    }
}

static void test_fit(void)
{
    check(&(struct duet__network){.bandwidth_Bps = 1.25e10,
                                  .latency_s = 1e-6,
                                  .overhead_s = 3e-7,
                                  .rendezvous_s = 4e-6,
                                  .eager_bytes = 4040});
    check(&(struct duet__network){.bandwidth_Bps = 1e8,
                                  .latency_s = 50e-6,
                                  .overhead_s = 2e-6,
                                  .rendezvous_s = 0,
                                  .eager_bytes = 65536});
}

/* Figures are never negative, whatever was measured. */
static void test_odd(void)
{
    struct duet__network network = {.bandwidth_Bps = 1e9, .overhead_s = 1e-6, .eager_bytes = 1024};
    struct duet__mpi_measured m = make(&network), nothing = {0};
    struct duet__network_fit fit;
    for (size_t i = 0; i < (size_t)EACH * DUET__MPI_SIZES; i++) /* faster with more bytes */
        m.sizes[i / EACH].pings[i % EACH] = 1e-3 / (double)(1 << i / EACH);
    WORKS(duet__network_fit(&m, &fit, hear()));
    g_assert_true(fit.network.overhead_s >= 0 && fit.network.latency_s >= 0);
    g_assert_true(fit.network.rendezvous_s >= 0 && fit.network.bandwidth_Bps > 0);
    g_assert_true(isfinite(fit.network.bandwidth_Bps));
    g_assert_cmpint(duet__network_fit(&nothing, &fit, hear()), ==, DUET_EINVAL);
    duet__mpi_measured_free(&m);
}

TEST_MAIN(test_fit, test_odd)
