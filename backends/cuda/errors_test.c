/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of errors: what they are called, what they mean, and that none is left behind. */
#include "backends/cuda/testing.h"

static void test_texts(void)
{
    char text[FAILURE_TEXT];
    struct failure failure = {.call = "cudaMalloc", .error = cudaErrorMemoryAllocation};
    g_assert_cmpstr(duet__cuda_text(text, &failure), ==,
                    "cudaMalloc: out of memory (cudaErrorMemoryAllocation)");
    failure = (struct failure){.call = "cudaEventQuery", .error = cudaErrorIllegalAddress};
    g_assert_cmpstr(duet__cuda_text(text, &failure), ==,
                    "an illegal memory access was encountered (cudaErrorIllegalAddress), seen by "
                    "cudaEventQuery");
}

static void test_fates(void)
{
    static const int kernels[] = {700, 702, 710, 714, 715, 716, 717, 718, 719, 721};
    static const int gone[] = {214, 220, 226, 911, 46, 201, 709, 4, 810, 999};
    static const int refused[] = {0, 1, 2, 9, 12, 21, 98, 101, 400, 600, 704, 712, 801};
    for (unsigned i = 0; i < G_N_ELEMENTS(kernels); i++)
        g_assert_cmpint(duet__cuda_fate((cudaError_t)kernels[i]), ==, FATE_KERNEL);
    for (unsigned i = 0; i < G_N_ELEMENTS(gone); i++)
        g_assert_cmpint(duet__cuda_fate((cudaError_t)gone[i]), ==, FATE_GONE);
    for (unsigned i = 0; i < G_N_ELEMENTS(refused); i++)
        g_assert_cmpint(duet__cuda_fate((cudaError_t)refused[i]), ==, FATE_REFUSED);
}

static void test_statuses(void)
{
    g_assert_cmpint(duet__cuda_status(cudaErrorMemoryAllocation, DUET_EIO), ==, DUET_ENOMEM);
    g_assert_cmpint(duet__cuda_status(cudaErrorInvalidValue, DUET_EIO), ==, DUET_EIO);
    g_assert_cmpint(duet__cuda_status(cudaErrorInvalidValue, DUET_ETASK), ==, DUET_ETASK);
}

static void test_pending(void)
{
    const struct fake_cuda_config config = {.devices = 1};
    struct failure failure = {.call = "nothing"};
    fake_cuda_reset(&config);
    g_assert_false(duet__cuda_failed(&failure, "cudaSetDevice", cudaSetDevice(0)));
    g_assert_cmpstr(failure.call, ==, "nothing");
    g_assert_true(duet__cuda_failed(&failure, "cudaSetDevice", cudaSetDevice(7)));
    g_assert_cmpstr(failure.call, ==, "cudaSetDevice");
    g_assert_cmpint(failure.error, ==, cudaErrorInvalidDevice);
    g_assert_cmpint(cudaGetLastError(), ==, cudaSuccess);
    duet__cuda_ignore(cudaSetDevice(7));
    g_assert_cmpint(cudaGetLastError(), ==, cudaSuccess);
}

TEST_MAIN(test_texts, test_fates, test_statuses, test_pending)
