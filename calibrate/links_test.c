/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of inferring shared links, on made-up figures. */
#include <math.h>
#include <stdlib.h>

#include <glib.h>

#include "calibrate/microbench.h"

enum { DEVICES = 4, ALONE = 0 };

/* Bandwidth that two devices share from the host (`to_device`) or to it; ALONE: as when alone. */
struct figures {
    double to_device[DEVICES], to_host[DEVICES]; /* alone, by device */
    double (*together)(unsigned a, unsigned b, bool to_device, unsigned which);
    unsigned devices;
};

static size_t pair_of(unsigned device, bool to_device)
{
    return 2 * (size_t)device + !to_device;
}

static void add_together(struct duet__copies *copies, const struct figures *figures, unsigned a,
                         unsigned b, bool to_device)
{
    const double *alone = to_device ? figures->to_device : figures->to_host;
    double a_Bps = figures->together ? figures->together(a, b, to_device, 0) : ALONE;
    double b_Bps = figures->together ? figures->together(a, b, to_device, 1) : ALONE;
    copies->together[copies->together_count++] =
        (struct duet__together){.first = pair_of(a, to_device),
                                .second = pair_of(b, to_device),
                                .first_Bps = a_Bps > 0 ? a_Bps : alone[a],
                                .second_Bps = b_Bps > 0 ? b_Bps : alone[b]};
}

static struct duet__copies infer(const struct figures *figures)
{
    unsigned devices = figures->devices ? figures->devices : DEVICES;
    struct duet__copies copies = {.node_count = devices + 1};
    copies.pairs = g_new0(struct duet__copy_pair, 2 * (size_t)devices);
    copies.together = g_new0(struct duet__together, 3 * (size_t)devices * devices);
    for (unsigned d = 0; d < devices; d++) {
        copies.pairs[copies.pair_count++] =
            (struct duet__copy_pair){.source = DUET_HOST,
                                     .destination = d + 1,
                                     .bandwidth_Bps = figures->to_device[d]};
        copies.pairs[copies.pair_count++] =
            (struct duet__copy_pair){.source = d + 1,
                                     .destination = DUET_HOST,
                                     .bandwidth_Bps = figures->to_host[d]};
    }
    for (unsigned a = 0; a < devices; a++) {
        /* both directions of one device share something, which is no switch */
        copies.together[copies.together_count++] =
            (struct duet__together){.first = pair_of(a, true),
                                    .second = pair_of(a, false),
                                    .first_Bps = figures->to_device[a] / 2,
                                    .second_Bps = figures->to_host[a] / 2};
        for (unsigned b = a + 1; b < devices; b++) {
            add_together(&copies, figures, a, b, true);
            add_together(&copies, figures, a, b, false);
        }
    }
    duet__copies_infer(&copies);
    return copies;
}

static void assert_switches(const struct duet__copies *copies, const unsigned *expected,
                            unsigned count)
{
    g_assert_cmpuint(copies->switch_count, ==, count);
    for (unsigned d = 0; d + 1 < copies->node_count; d++)
        g_assert_cmpuint(copies->switches[d], ==, expected[d]);
}

#define ALL_12                                                                                     \
    {                                                                                              \
        12e9, 12e9, 12e9, 12e9                                                                     \
    }

static void test_none(void)
{
    struct figures figures = {.to_device = {12e9, 6e9, 12e9, 3e9}, .to_host = ALL_12};
    OWNED(duet__copies_fini) struct duet__copies copies = infer(&figures);
    assert_switches(&copies, (unsigned[]){0, 1, 2, 3}, 4);
    for (unsigned d = 0; d < DEVICES; d++) {
        g_assert_cmpfloat(copies.to_device_Bps[d], ==, figures.to_device[d]);
        g_assert_cmpfloat(copies.to_host_Bps[d], ==, figures.to_host[d]);
    }
}

/* Devices 0 and 2, and 1 and 3, share 12 GB/s down and 11 up. */
static double as_pairs(unsigned a, unsigned b, bool to_device, unsigned which)
{
    return a % 2 != b % 2 ? ALONE : to_device ? 6e9 : 5.5e9;
}

static void test_pairs(void)
{
    struct figures figures = {.to_device = ALL_12,
                              .to_host = {8e9, 8e9, 8e9, 8e9},
                              .together = as_pairs};
    OWNED(duet__copies_fini) struct duet__copies copies = infer(&figures);
    assert_switches(&copies, (unsigned[]){0, 1, 0, 1}, 2);
    g_assert_cmpfloat(copies.to_device_Bps[0], ==, 12e9);
    g_assert_cmpfloat(copies.to_device_Bps[1], ==, 12e9);
    g_assert_cmpfloat(copies.to_host_Bps[0], ==, 11e9);
}

/* A link of 12 GB/s for all: a tenth of noise on what two of them get. */
static double behind_one(unsigned a, unsigned b, bool to_device, unsigned which)
{
    return 6e9 * (1 + 0.05 * ((a + 2 * b + which) % 3 - 1.0));
}

static void test_one(void)
{
    struct figures figures = {.to_device = ALL_12, .to_host = ALL_12, .together = behind_one};
    OWNED(duet__copies_fini) struct duet__copies copies = infer(&figures);
    assert_switches(&copies, (unsigned[]){0, 0, 0, 0}, 1);
    g_assert_cmpfloat(fabs(copies.to_device_Bps[0] - 12e9), <, 0.06 * 12e9);
}

/* A chain 0-1-2 whose pairs share one by one is behind one switch. */
static double chain(unsigned a, unsigned b, bool to_device, unsigned which)
{
    return b == a + 1 && b < 3 ? 6e9 : ALONE;
}

static void test_transitive(void)
{
    struct figures figures = {.to_device = ALL_12, .to_host = ALL_12, .together = chain};
    OWNED(duet__copies_fini) struct duet__copies copies = infer(&figures);
    assert_switches(&copies, (unsigned[]){0, 0, 0, 1}, 2);
}

/* Each alone gets 12 GB/s, any two 18 together: the host's memory is the limit. */
static double of_memory(unsigned a, unsigned b, bool to_device, unsigned which)
{
    return 9e9;
}

static void test_memory(void)
{
    struct figures figures = {.to_device = ALL_12, .to_host = ALL_12, .together = of_memory};
    struct duet__copies copies = infer(&figures);
    assert_switches(&copies, (unsigned[]){0, 1, 2, 3}, 4);
    g_assert_cmpfloat(copies.to_device_Bps[2], ==, 12e9);
    duet__copies_fini(&copies);
    /* two devices alone cannot tell a link from memory: it is a link */
    figures.devices = 2;
    copies = infer(&figures);
    assert_switches(&copies, (unsigned[]){0, 0}, 1);
    g_assert_cmpfloat(copies.to_device_Bps[0], ==, 18e9);
    duet__copies_fini(&copies);
}

/* A slow device beside a fast one is not slowed down; the fast one is. */
static double unequal(unsigned a, unsigned b, bool to_device, unsigned which)
{
    return a == 0 && b == 1 && which == 0 ? 9e9 : ALONE;
}

static void test_unequal(void)
{
    struct figures figures = {.to_device = {12e9, 3e9, 12e9, 12e9},
                              .to_host = ALL_12,
                              .together = unequal};
    OWNED(duet__copies_fini) struct duet__copies copies = infer(&figures);
    assert_switches(&copies, (unsigned[]){0, 0, 1, 2}, 3);
    g_assert_cmpfloat(copies.to_device_Bps[0], ==, 12e9);
}

/* Less than a tenth is noise. */
static double noisy(unsigned a, unsigned b, bool to_device, unsigned which)
{
    return 11e9;
}

static void test_noise(void)
{
    struct figures figures = {.to_device = ALL_12, .to_host = ALL_12, .together = noisy};
    OWNED(duet__copies_fini) struct duet__copies copies = infer(&figures);
    assert_switches(&copies, (unsigned[]){0, 1, 2, 3}, 4);
}

/* No devices, one device, and inferring twice. */
static void test_small(void)
{
    struct figures figures = {.to_device = ALL_12, .to_host = ALL_12, .devices = 1};
    struct duet__copies none = {0}, copies = infer(&figures);
    duet__copies_infer(&none);
    g_assert_cmpuint(none.switch_count, ==, 0);
    duet__copies_fini(&none);
    assert_switches(&copies, (unsigned[DEVICES]){0}, 1);
    duet__copies_infer(&copies);
    assert_switches(&copies, (unsigned[DEVICES]){0}, 1);
    duet__copies_fini(&copies);
    duet__copies_fini(&copies);
}

TEST_MAIN(test_none, test_pairs, test_one, test_transitive, test_memory, test_unequal, test_noise,
          test_small)
