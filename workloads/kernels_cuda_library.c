/* SPDX-License-Identifier: Apache-2.0 */
/* Opens cuBLAS and cuSOLVER, once in a process. */
#include "workloads/kernels_cuda_handles.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The text of a macro's value. */
#define TEXT(name) TEXT_AS_IS(name)
#define TEXT_AS_IS(name) #name

/* File of the library whose headers were compiled: another version has another ABI. */
static const char cublas_file[] = "libcublas.so." TEXT(CUBLAS_VER_MAJOR);
static const char cusolver_file[] = "libcusolver.so." TEXT(CUSOLVER_VER_MAJOR);

/* Result of the first call. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct duet__cuda_library opened;
static struct duet_message refused; /* reason why it is not open; "": it is */

/* Opens a library where the system looks (and LD_LIBRARY_PATH says), else where the toolkit was at
 * compile time. NULL with the reason of the first try, which names a file that one can look for. */
static void *open_library(const char *file)
{
    char path[1024];
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library)
        return library;
    duet_fail(&refused, 0,
              "%s cannot be opened (%s): install cuBLAS and cuSOLVER of CUDA, or name their folder "
              "in LD_LIBRARY_PATH",
              file, dlerror());
    int length = snprintf(path, sizeof path, "%s/%s", DUET_CUDA_LIBRARY_DIR, file);
    if (length > 0 && (size_t)length < sizeof path)
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library)
        refused.text[0] = 0;
    return library;
}

/* Copies the address by memcpy: POSIX, but not C, lets a pointer to a function be one to data. */
static bool find_function(void *library, const char *file, const char *name, void *function,
                          size_t bytes)
{
    void *address = dlsym(library, name);
    if (!address)
        duet_fail(&refused, 0,
                  "%s lacks %s: it is not the library of CUDA that this duet was "
                  "built with",
                  file, name);
    memcpy(function, &address, bytes);
    return address != NULL;
}

static void open_all(void)
{
    void *blas = open_library(cublas_file);
    void *solver = blas ? open_library(cusolver_file) : NULL;
    bool found = solver != NULL;
#define FIND(library, file, name)                                                                  \
    found = found && find_function(library, file, TEXT(name), &opened.name, sizeof opened.name);
#define FIND_BLAS(name) FIND(blas, cublas_file, name)
#define FIND_SOLVER(name) FIND(solver, cusolver_file, name)
    DUET__CUBLAS_FUNCTIONS(FIND_BLAS)
    DUET__CUSOLVER_FUNCTIONS(FIND_SOLVER)
}

const struct duet__cuda_library *duet__cuda_library(struct duet_message *message)
{
    pthread_once(&once, open_all);
    if (!refused.text[0])
        return &opened;
    duet_fail(message, DUET_EABSENT, "%s", refused.text);
    return NULL;
}
