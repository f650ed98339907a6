/* SPDX-License-Identifier: Apache-2.0 */
/* The libraries of the toolkit open, and have every function in use, without a GPU. Skipped if they
 * are not installed, as the message then says. */
#include "workloads/kernels_cuda_handles.h"

#include <stdbool.h>
#include <string.h>

#include <glib.h>

enum { THREADS = 4, SKIPPED = 77 };

/* Skips a test if the libraries are absent. */
static bool absent(void)
{
    if (duet__cuda_library(hear()))
        return false;
    SAYS("cannot be opened");
    g_test_skip(heard());
    return true;
}

/* All members are pointers to functions. */
static void test_functions(void)
{
    if (absent())
        return;
    const struct duet__cuda_library *library = duet__cuda_library(hear());
    void *functions[sizeof *library / sizeof(void *)];
    g_assert_cmpstr(heard(), ==, "");
    memcpy(functions, library, sizeof functions);
    for (size_t i = 0; i < G_N_ELEMENTS(functions); i++)
        g_assert_nonnull(functions[i]);
    g_assert_cmpstr(library->cublasGetStatusName(CUBLAS_STATUS_EXECUTION_FAILED), ==,
                    "CUBLAS_STATUS_EXECUTION_FAILED");
}

static gpointer ask(gpointer out)
{
    *(const struct duet__cuda_library **)out = duet__cuda_library(NULL);
    return NULL;
}

/* All threads get the same libraries; these are the process's first calls. */
static void test_threads(void)
{
    GThread *threads[THREADS];
    const struct duet__cuda_library *libraries[THREADS];
    for (unsigned i = 0; i < THREADS; i++)
        threads[i] = g_thread_new("ask", ask, &libraries[i]);
    for (unsigned i = 0; i < THREADS; i++)
        g_thread_join(threads[i]);
    for (unsigned i = 0; i < THREADS; i++)
        g_assert_true(libraries[i] == duet__cuda_library(NULL));
    absent();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/workloads/kernels_cuda_library/threads", test_threads);
    g_test_add_func("/workloads/kernels_cuda_library/functions", test_functions);
    int status = g_test_run();
    return status || duet__cuda_library(NULL) ? status : SKIPPED;
}
