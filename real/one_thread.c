/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread for each kernel, as there is a worker for every core already. BLAS libraries and
 * OpenMP that the program has brought along are set to one thread: nothing is linked or opened for
 * it. A number that holds for the whole process (OpenBLAS, older BLIS) is 1 from the first
 * runtime's opening until the last one's end; one of a thread (OpenMP, MKL, BLIS since 1.0), where
 * kernels run. On a thread that comes to run kernels the two are told apart by their value: if it
 * is not 1 there, it is the thread's.
 */
#include <dlfcn.h>
#include <string.h>

#include "real/internal.h"

/*
 * Functions of libraries; NULL: absent. openblas_set_num_threads_local is not used: without OpenMP
 * it sets the number of the process, too, and with it OpenBLAS takes OpenMP's.
 */
static struct libraries {
    void (*openblas_set)(int);
    int (*openblas_get)(void);
    void (*blis_set)(int64_t);
    int64_t (*blis_get)(void);
    void (*omp_set)(int);
    int (*omp_get)(void);
    int (*mkl_set)(int); /* returns the previous number; 0: as the process */
} libraries;

static const struct {
    const char *name;
    size_t offset;
} functions[] = {
    {"openblas_set_num_threads", offsetof(struct libraries, openblas_set)},
    {"openblas_get_num_threads", offsetof(struct libraries, openblas_get)},
    {"bli_thread_set_num_threads", offsetof(struct libraries, blis_set)},
    {"bli_thread_get_num_threads", offsetof(struct libraries, blis_get)},
    {"omp_set_num_threads", offsetof(struct libraries, omp_set)},
    {"omp_get_max_threads", offsetof(struct libraries, omp_get)},
    {"MKL_Set_Num_Threads_Local", offsetof(struct libraries, mkl_set)},
};

/*
 * State of the process: number of runtimes that compute, and the numbers before the first of them.
 */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned runtimes;
static struct kernel_threads of_process;

/*
 * Finds all functions. POSIX says that a function's address fits a pointer to data, which C does
 * not.
 */
static void find_functions(void)
{
    void *program = dlopen(NULL, RTLD_LAZY);
    libraries = (struct libraries){NULL};
    for (size_t i = 0; program && i < sizeof functions / sizeof *functions; i++) {
        void *function = dlsym(program, functions[i].name);
        memcpy((char *)&libraries + functions[i].offset, &function, sizeof function);
    }
    if (program)
        (void)dlclose(program);
    if (!libraries.openblas_set || !libraries.openblas_get)
        libraries.openblas_set = NULL;
    if (!libraries.blis_set || !libraries.blis_get)
        libraries.blis_set = NULL;
    if (!libraries.omp_set || !libraries.omp_get)
        libraries.omp_set = NULL;
}

/* Sets OpenBLAS and BLIS to 1. */
static void set_process(struct kernel_threads *before)
{
    before->openblas = libraries.openblas_set ? libraries.openblas_get() : 1;
    before->blis = libraries.blis_set ? libraries.blis_get() : 1;
    if (before->openblas != 1)
        libraries.openblas_set(1);
    if (before->blis != 1)
        libraries.blis_set(1);
}

static void reset_process(const struct kernel_threads *before)
{
    if (before->openblas != 1)
        libraries.openblas_set(before->openblas);
    if (before->blis != 1)
        libraries.blis_set(before->blis);
}

static bool computes(const struct real *real)
{
    return !(real->pace.scale > 0);
}

void duet__one_thread_begin(const struct real *real)
{
    if (!computes(real))
        return;
    (void)pthread_mutex_lock(&mutex);
    if (runtimes++ == 0) {
        find_functions();
        set_process(&of_process);
    }
    (void)pthread_mutex_unlock(&mutex);
}

void duet__one_thread_end(const struct real *real)
{
    if (!computes(real))
        return;
    (void)pthread_mutex_lock(&mutex);
    if (--runtimes == 0)
        reset_process(&of_process);
    (void)pthread_mutex_unlock(&mutex);
}

void duet__one_thread_enter(const struct real *real, struct kernel_threads *before)
{
    *before = (struct kernel_threads){.openblas = 1, .blis = 1, .omp = 1};
    if (!computes(real))
        return;
    set_process(before);
    if (libraries.omp_set) {
        before->omp = libraries.omp_get();
        if (before->omp != 1)
            libraries.omp_set(1);
    }
    if (libraries.mkl_set)
        before->mkl = libraries.mkl_set(1);
}

void duet__one_thread_leave(const struct real *real, const struct kernel_threads *before)
{
    if (!computes(real))
        return;
    reset_process(before);
    if (before->omp != 1)
        libraries.omp_set(before->omp);
    if (libraries.mkl_set)
        (void)libraries.mkl_set(before->mkl);
}
