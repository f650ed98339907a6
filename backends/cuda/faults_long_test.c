/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of calls of CUDA that fail: many of each function, with errors of every kind. */
#include "backends/cuda/testing_faults.h"

enum { FIRST = 6, LATER = 12 };

static void test_all(gconstpointer error)
{
    fail_all((cudaError_t)GPOINTER_TO_INT(error), FIRST, LATER);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/cuda/faults/refused", GINT_TO_POINTER(cudaErrorInvalidValue), test_all);
    g_test_add_data_func("/cuda/faults/memory", GINT_TO_POINTER(cudaErrorMemoryAllocation),
                         test_all);
    g_test_add_data_func("/cuda/faults/by_kernel", GINT_TO_POINTER(cudaErrorIllegalAddress),
                         test_all);
    g_test_add_data_func("/cuda/faults/by_hardware", GINT_TO_POINTER(cudaErrorECCUncorrectable),
                         test_all);
    return g_test_run();
}
