/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels call a BLAS that computes with one thread, on every thread that runs them, and the
 * program has its own number of threads again when it has closed its runtimes. More threads than
 * cores are spoken of once.
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "real/testing.h"

enum { TILES = 24, ORDER = 96, THREADS = 2 };

/* Functions of OpenBLAS and LAPACK, which are not linked. */
static struct {
    int (*get)(void);
    void (*set)(int);
    int (*geqrf)(int layout, int m, int n, double *a, int lda, double *tau);
} blas;

static void *find(void *library, const char *name)
{
    return library ? dlsym(library, name) : NULL;
}

/* Opens OpenBLAS, as a program that is linked with it has. false: there is none. */
static bool open_blas(void)
{
    void *openblas = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_GLOBAL);
    void *lapack = openblas ? dlopen("liblapacke.so.3", RTLD_NOW | RTLD_GLOBAL) : NULL;
    void *functions[] = {find(openblas, "openblas_get_num_threads"),
                         find(openblas, "openblas_set_num_threads"),
                         find(lapack, "LAPACKE_dgeqrf")};
    memcpy(&blas.get, &functions[0], sizeof functions[0]);
    memcpy(&blas.set, &functions[1], sizeof functions[1]);
    memcpy(&blas.geqrf, &functions[2], sizeof functions[2]);
    return functions[0] && functions[1] && functions[2];
}

/* The QR factorisation of a tile, which says how many threads it may have. */
static int run_geqrf(const struct duet_call *call)
{
    static const int column_major = 102;
    const struct duet_buffer *a = &call->buffers[0];
    double tau[ORDER];
    _Atomic(int) *most;
    memcpy(&most, call->args, sizeof most);
    int threads = blas.get(), before = atomic_load(most);
    while (threads > before && !atomic_compare_exchange_weak(most, &before, threads))
        ;
    return blas.geqrf(column_major, ORDER, ORDER, a->data, (int)a->ld, tau) ? DUET_ETASK : DUET_OK;
}

static int factorise(struct testing *t)
{
    struct duet_runtime *core = testing_open(t);
    struct duet_codelet *geqrf = testing_codelet(core, "geqrf", run_geqrf, NULL);
    double *data = calloc((size_t)TILES * ORDER * ORDER, sizeof *data);
    _Atomic(int) most = 0, *where = &most;
    struct duet_handle *tiles[TILES];
    for (size_t i = 0; i < TILES; i++) {
        double *tile = &data[i * ORDER * ORDER];
        for (size_t j = 0; j < ORDER * ORDER; j++)
            tile[j] = (double)((j * 7919 + i) % 1013);
        testing_must(core, duet_register_matrix(core, tile, ORDER, ORDER, ORDER, sizeof *tile,
                                                &tiles[i]));
        const struct duet_access access = {tiles[i], DUET_RW};
        testing_submit(core, geqrf, &access, 1, &where, sizeof where);
    }
    testing_must(core, duet_wait(core));
    for (size_t i = 0; i < TILES; i++)
        testing_must(core, duet_unregister(core, tiles[i]));
    /* the diagonal of R is that of a factorisation, not of the tile */
    g_assert_cmpfloat(fabs(data[0]), >, 1013);
    duet__core_free(core);
    free(data);
    return atomic_load(&most);
}

static void test_openblas(void)
{
    if (!open_blas()) {
        g_test_skip("no OpenBLAS with LAPACKE");
        return;
    }
    int before = blas.get();
    blas.set(THREADS);
    struct testing cpus = {.cpus = 2}, first = {.cpus = 1}, gpus = {.gpus = 2};
    g_assert_cmpint(factorise(&cpus), ==, 1);
    g_assert_cmpint(blas.get(), ==, THREADS);
    g_assert_cmpint(factorise(&first), ==, 1);
    g_assert_cmpint(factorise(&gpus), ==, 1);
    g_assert_cmpint(blas.get(), ==, THREADS);
    /* two runtimes: until both are closed */
    struct duet_runtime *other = testing_open(&first);
    g_assert_cmpint(factorise(&cpus), ==, 1);
    g_assert_cmpint(blas.get(), ==, 1);
    duet__core_free(other);
    g_assert_cmpint(blas.get(), ==, THREADS);
    blas.set(before);
}

static _Atomic(bool) enough;

static void *spin(void *unused)
{
    while (!atomic_load(&enough))
        ;
    return NULL;
}

/* Takes until the crowd was spoken of, and as long again as it could have been once more. */
static int run_long(const struct duet_call *call)
{
    struct testing_ear ear = testing_listen();
    testing_hear(&ear, "want to run on");
    testing_hear(&ear, "has been running on");
    testing_hear_last(&ear, "has been running on");
    return DUET_OK;
}

/* A program that computes on more threads than there are cores while it waits. */
static void subprocess_crowd(void)
{
    struct testing t = {.cpus = 1, .watchdog_s = 0.1, .real = true};
    const long threads = 2 * sysconf(_SC_NPROCESSORS_ONLN) + 1;
    g_autofree pthread_t *ids = calloc((size_t)threads, sizeof *ids);
    OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
    struct duet_codelet *codelet = testing_codelet(core, "long", run_long, NULL);
    for (long i = 0; i < threads; i++)
        g_assert_cmpint(pthread_create(&ids[i], NULL, spin, NULL), ==, 0);
    testing_submit(core, codelet, NULL, 0, NULL, 0);
    testing_must(core, duet_wait(core));
    atomic_store(&enough, true);
    for (long i = 0; i < threads; i++)
        g_assert_cmpint(pthread_join(ids[i], NULL), ==, 0);
}

static void test_crowd(void)
{
    g_test_trap_subprocess("/subprocess/crowd", 0, G_TEST_SUBPROCESS_DEFAULT);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr("*duet: * threads of this program want to run on * core*");
    g_test_trap_assert_stderr_unmatched("*want to run on*want to run on*");
}

TEST_MAIN(test_openblas, test_crowd, subprocess_crowd)
