/* SPDX-License-Identifier: Apache-2.0 */
/* BLAS and LAPACK on matrices in either precision, by CBLAS of OpenBLAS and LAPACKE. */
#include "workloads/kernels_blas.h"

#include <cblas.h>
#include <lapacke.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "workloads/kernels.h"

enum { SOLVE_LEAF = 32 /* order up to which a triangle is solved by xTRSM itself */ };

_Static_assert(sizeof(lapack_int) == 4, "pivots are stored as LAPACK writes them");

/* Bytes that OpenBLAS 0.3.21 maps on x86-64 for each thread that is in a call, and keeps. */
static const size_t BUFFER_BYTES = (size_t)128 << 20;

int duet__blas_begin(unsigned threads, struct duet_message *message)
{
    static atomic_uint found; /* number of threads for which there was room before */
    openblas_set_num_threads(1);
    if (threads <= atomic_load(&found))
        return DUET_OK;
    void *room = mmap(NULL, threads * BUFFER_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return duet_fail(message, DUET_ENOMEM,
                         "no address space for OpenBLAS, which takes %zu MiB a worker, of which "
                         "there are %u: raise the limit (ulimit -v), or take fewer (--cpus)",
                         BUFFER_BYTES >> 20, threads);
    munmap(room, threads * BUFFER_BYTES);
    atomic_store(&found, threads);
    return DUET_OK;
}

static bool is_single(const struct duet_buffer *a)
{
    return a->element_bytes == sizeof(float);
}

/* Converts a size or stride for BLAS; checks of the problem bound it (2^29 at most). */
static int blas_int(size_t size)
{
    return (int)size;
}

/* Calls a routine of CBLAS in the precision of a view. */
#define BLAS(a, name, ...) (is_single(a) ? cblas_s##name(__VA_ARGS__) : cblas_d##name(__VA_ARGS__))

static void *at(const struct duet_buffer *a, size_t i, size_t j)
{
    return (char *)a->data + (i + j * a->ld) * a->element_bytes;
}

struct duet_buffer duet__window(const struct duet_buffer *a, size_t row, size_t col, size_t rows,
                                size_t cols)
{
    return (struct duet_buffer){.data = at(a, row, col),
                                .rows = rows,
                                .cols = cols,
                                .ld = a->ld,
                                .element_bytes = a->element_bytes};
}

double duet__view_get(const struct duet_buffer *a, size_t i, size_t j)
{
    return is_single(a) ? (double)*(float *)at(a, i, j) : *(double *)at(a, i, j);
}

void duet__blas_gemm(bool transposed, double alpha, const struct duet_buffer *a,
                     const struct duet_buffer *b, const struct duet_buffer *c)
{
    CBLAS_TRANSPOSE trans = transposed ? CblasTrans : CblasNoTrans;
    int m = blas_int(c->rows), n = blas_int(c->cols), k = blas_int(a->cols);
    int lda = blas_int(a->ld), ldb = blas_int(b->ld), ldc = blas_int(c->ld);
    BLAS(c, gemm, CblasColMajor, CblasNoTrans, trans, m, n, k, alpha, a->data, lda, b->data, ldb, 1,
         c->data, ldc);
}

void duet__blas_syrk(const struct duet_buffer *a, const struct duet_buffer *c)
{
    int n = blas_int(c->rows), k = blas_int(a->cols);
    int lda = blas_int(a->ld), ldc = blas_int(c->ld);
    BLAS(c, syrk, CblasColMajor, CblasLower, CblasNoTrans, n, k, -1, a->data, lda, 1, c->data, ldc);
}

/* A triangular matrix in BLAS's words. */
struct triangle {
    CBLAS_SIDE side;
    CBLAS_UPLO uplo;
    CBLAS_TRANSPOSE trans;
    CBLAS_DIAG diag;
};

static const struct triangle triangles[] = {
    [DUET__RIGHT_LOWER_TRANSPOSED] = {CblasRight, CblasLower, CblasTrans, CblasNonUnit},
    [DUET__RIGHT_UPPER] = {CblasRight, CblasUpper, CblasNoTrans, CblasNonUnit},
    [DUET__LEFT_LOWER_UNIT] = {CblasLeft, CblasLower, CblasNoTrans, CblasUnit},
};

static void solve(enum duet__triangle triangle, const struct duet_buffer *t,
                  const struct duet_buffer *b)
{
    const struct triangle *kind = &triangles[triangle];
    int m = blas_int(b->rows), n = blas_int(b->cols), ldt = blas_int(t->ld), ldb = blas_int(b->ld);
    BLAS(b, trsm, CblasColMajor, kind->side, kind->uplo, kind->trans, kind->diag, m, n, 1, t->data,
         ldt, b->data, ldb);
}

void duet__blas_trsm(enum duet__triangle triangle, const struct duet_buffer *t,
                     const struct duet_buffer *b)
{
    if (t->rows <= SOLVE_LEAF) {
        solve(triangle, t, b);
        return;
    }
    bool left = triangle == DUET__LEFT_LOWER_UNIT, upper = triangle == DUET__RIGHT_UPPER;
    size_t half = (t->rows / 2 + SOLVE_LEAF - 1) / SOLVE_LEAF * SOLVE_LEAF, rest = t->rows - half;
    struct duet_buffer t1 = duet__window(t, 0, 0, half, half);
    struct duet_buffer t2 = duet__window(t, half, half, rest, rest);
    struct duet_buffer beside =
        upper ? duet__window(t, 0, half, half, rest) : duet__window(t, half, 0, rest, half);
    struct duet_buffer b1 = duet__window(b, 0, 0, left ? half : b->rows, left ? b->cols : half);
    struct duet_buffer b2 =
        left ? duet__window(b, half, 0, rest, b->cols) : duet__window(b, 0, half, b->rows, rest);
    duet__blas_trsm(triangle, &t1, &b1);
    if (left)
        duet__blas_gemm(false, -1, &beside, &b1, &b2);
    else
        duet__blas_gemm(!upper, -1, &b1, &beside, &b2);
    duet__blas_trsm(triangle, &t2, &b2);
}

void duet__blas_trmm(enum duet__triangle triangle, const struct duet_buffer *t,
                     const struct duet_buffer *b)
{
    const struct triangle *kind = &triangles[triangle];
    int m = blas_int(b->rows), n = blas_int(b->cols), ldt = blas_int(t->ld), ldb = blas_int(b->ld);
    BLAS(b, trmm, CblasColMajor, kind->side, kind->uplo, kind->trans, kind->diag, m, n, 1, t->data,
         ldt, b->data, ldb);
}

void duet__blas_eliminate(const struct duet_buffer *a, size_t k)
{
    int m = blas_int(a->rows - k - 1), n = blas_int(a->cols - k - 1), ld = blas_int(a->ld);
    double pivot = duet__view_get(a, k, k);
    if (m == 0)
        return;
    BLAS(a, scal, m, 1 / pivot, at(a, k + 1, k), 1);
    BLAS(a, ger, CblasColMajor, m, n, -1, at(a, k + 1, k), 1, at(a, k, k + 1), ld,
         at(a, k + 1, k + 1), ld);
}

void duet__blas_swap(const struct duet_buffer *a, size_t i, const struct duet_buffer *b, size_t j)
{
    int n = blas_int(a->cols), lda = blas_int(a->ld), ldb = blas_int(b->ld);
    BLAS(a, swap, n, at(a, i, 0), lda, at(b, j, 0), ldb);
}

void duet__blas_axpy(double alpha, const struct duet_buffer *x, const struct duet_buffer *y)
{
    BLAS(y, axpy, blas_int(y->rows), alpha, x->data, 1, y->data, 1);
}

int duet__blas_potrf(const struct duet_buffer *a)
{
    lapack_int n = blas_int(a->rows), ld = blas_int(a->ld);
    return is_single(a) ? LAPACKE_spotrf_work(LAPACK_COL_MAJOR, 'L', n, a->data, ld)
                        : LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'L', n, a->data, ld);
}

int duet__blas_getrf(const struct duet_buffer *a, int32_t *pivots)
{
    lapack_int m = blas_int(a->rows), n = blas_int(a->cols), ld = blas_int(a->ld);
    return is_single(a) ? LAPACKE_sgetrf_work(LAPACK_COL_MAJOR, m, n, a->data, ld, pivots)
                        : LAPACKE_dgetrf_work(LAPACK_COL_MAJOR, m, n, a->data, ld, pivots);
}

bool duet__blas_about(struct duet__blas *blas)
{
    int parallel = openblas_get_parallel();
    blas->build = openblas_get_config();
    blas->core = openblas_get_corename();
    blas->threading = parallel == 2 ? "OpenMP" : parallel ? "pthreads" : "sequential";
    return true;
}
