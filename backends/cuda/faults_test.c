/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of calls of CUDA that fail, some of each function; faults_long_test.c has more of them. */
#include "backends/cuda/testing_faults.h"

static void test_refused(void)
{
    fail_all(cudaErrorInvalidValue, 3, 3);
}

static void test_by_kernel(void)
{
    fail_all(cudaErrorIllegalAddress, 2, 2);
}

TEST_MAIN(test_refused, test_by_kernel)
