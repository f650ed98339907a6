/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels on CPUs, in their module: OpenBLAS, which starts threads, is opened when they compute. */
#include <glib.h>

#include "runtime/modules/module.h"

/* OpenBLAS would start a thread a core, each of which takes memory that a limit may not leave. It
   asks the environment for their number when it is opened. */
static const struct duet__blas_module *open_blas(struct duet_message *message)
{
    static gsize opened;
    if (g_once_init_enter(&opened)) {
        const bool asked = g_getenv("OPENBLAS_NUM_THREADS") != NULL;
        (void)g_setenv("OPENBLAS_NUM_THREADS", "1", FALSE);
        (void)duet__module_open("blas", NULL);
        if (!asked)
            g_unsetenv("OPENBLAS_NUM_THREADS");
        g_once_init_leave(&opened, 1);
    }
    return duet__module_open("blas", message);
}

duet_kernel_fn duet__blas_kernel(const char *base)
{
    const struct duet__blas_module *blas = open_blas(NULL);
    return blas ? blas->kernel(base) : NULL;
}

int duet__blas_begin(unsigned threads, struct duet_message *message)
{
    const struct duet__blas_module *blas = open_blas(NULL);
    return blas ? blas->begin(threads, message) : DUET_OK;
}

int duet__residual(const struct duet__storage *a, const uint64_t *rows,
                   const struct duet__judging *how, double *residual, struct duet_message *message)
{
    const struct duet__blas_module *blas = open_blas(message);
    return blas ? blas->residual(a, rows, how, residual, message) : DUET_EABSENT;
}

bool duet__blas_about(struct duet__blas *about)
{
    const struct duet__blas_module *blas = open_blas(NULL);
    return blas && blas->about(about);
}
