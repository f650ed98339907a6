/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of GPUs according to CUDA, and without asking it, on the fake CUDA. */
#include <string.h>

#include <cuda_runtime_api.h>

#include <glib.h>

#include "backends/cuda/nvml.h"
#include "real/real.h"
#include "tests/fake_cuda/fake.h"

/* The fake has no NVML: what there is on this machine knows none of its devices. */
static void check(bool no_peers, const char *kind)
{
    const struct fake_cuda_config config = {.devices = 3, .no_peers = no_peers};
    struct backend_link links[9] = {{.direct = false}};
    fake_cuda_reset(&config);
    WORKS(duet__cuda_links(3, links, hear()));
    for (unsigned i = 0; i < 9; i++) {
        g_assert_cmpint(links[i].direct, ==, i % 4 && !no_peers);
        g_assert_cmpstr(links[i].kind, ==, i % 4 ? kind : "");
        g_assert_cmpfloat(links[i].bandwidth_Bps, ==, 0);
    }
    g_assert_cmpuint(fake_cuda_calls("cudaDeviceCanAccessPeer"), ==, 6);
}

static void test_links(void)
{
    struct backend_link one;
    check(false, "pcie");
    check(true, "pcie");
    g_assert_cmpint(duet__cuda_links(0, NULL, NULL), ==, DUET_OK);
    g_assert_cmpint(duet__cuda_links(1, &one, NULL), ==, DUET_OK);
}

static void test_errors(void)
{
    static const char *const calls[] = {"cudaDeviceCanAccessPeer", "cudaDeviceGetPCIBusId"};
    const struct fake_cuda_config config = {.devices = 3};
    for (unsigned i = 0; i < G_N_ELEMENTS(calls); i++) {
        struct backend_link links[9] = {{.direct = false}};
        fake_cuda_reset(&config);
        fake_cuda_fail(calls[i], 2, cudaErrorUnknown);
        FAILS(duet__cuda_links(3, links, hear()), DUET_EIO, calls[i]);
        SAYS("cudaErrorUnknown");
    }
}

/* CUDA takes long to start: who wants no GPU does not wait for it. */
static void test_not_asked(void)
{
    static const char *const calls[] = {"cudaGetDeviceCount", "cudaDriverGetVersion",
                                        "cudaGetDeviceProperties"};
    const struct fake_cuda_config config = {.devices = 2};
    const struct duet_config wanted = {.cpus = 1, .gpus = 0};
    OWNED(duet_machine_fini) struct duet_machine machine;
    fake_cuda_reset(&config);
    WORKS(duet__real_machine(&machine, NULL, &wanted, NULL, hear()));
    g_assert_cmpuint(machine.node_count, ==, 1);
    for (unsigned i = 0; i < G_N_ELEMENTS(calls); i++)
        g_assert_cmpuint(fake_cuda_calls(calls[i]), ==, 0);
}

TEST_MAIN(test_links, test_errors, test_not_asked)
