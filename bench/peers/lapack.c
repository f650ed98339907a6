/* SPDX-License-Identifier: Apache-2.0 */
/* OpenBLAS's own potrf, getrf (with pivoting) and gemm, on its own threads. */
#include <stdlib.h>

#include <cblas.h>
#include <lapacke.h>

#include "bench/peers/peers.h"
#include "bench/timing.h"

void *peer_allocate(size_t bytes)
{
    return zeroed(bytes);
}

void peer_open(const struct problem *p)
{
    openblas_set_num_threads((int)p->threads);
}

static void check(int info)
{
    if (info)
        peer_end(1, "LAPACK says that it failed: info = %d", info);
}

static void cholesky(const struct problem *p)
{
    int n = (int)p->n;
    check(p->precision == 's' ? LAPACKE_spotrf_work(LAPACK_COL_MAJOR, 'L', n, p->result, n)
                              : LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'L', n, p->result, n));
}

static void lu(const struct problem *p)
{
    int n = (int)p->n;
    lapack_int *pivots = zeroed(p->n * sizeof *pivots);
    check(p->precision == 's' ? LAPACKE_sgetrf_work(LAPACK_COL_MAJOR, n, n, p->result, n, pivots)
                              : LAPACKE_dgetrf_work(LAPACK_COL_MAJOR, n, n, p->result, n, pivots));
    for (size_t i = 0; i < p->n; i++)
        p->pivots[i] = pivots[i];
    free(pivots);
}

static void gemm(const struct problem *p)
{
    int n = (int)p->n;
    if (p->precision == 's')
        cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, p->given[0], n,
                    p->given[1], n, 1, p->result, n);
    else
        cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, p->given[0], n,
                    p->given[1], n, 1, p->result, n);
}

const struct operation peer_operations[] = {
    {"cholesky", "openblas", CHOLESKY, .compute = cholesky},
    {"lu", "openblas", LU, .compute = lu},
    {"gemm", "openblas", PRODUCT, .compute = gemm},
    {0},
};
