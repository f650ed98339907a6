/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of an OpenMP program: the functions that its compiler has made of constructs. */
#include "openmp/gomp/gomp.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine.h"
#include "openmp/names.h"

enum { BUCKETS = 1024 };

struct kernel {
    void (*run)(void *);
    const char *kind;
    struct duet_codelet *codelet;
    struct kernel *next; /* next kernel of the same bucket */
};

struct omp_kernels {
    pthread_mutex_t mutex; /* for adding */
    size_t count;
    _Atomic(struct kernel *) buckets[BUCKETS];
};

/* Returns an address for a function, which POSIX says there is. */
static const void *address_of(void (*run)(void *))
{
    const void *address;
    memcpy(&address, &run, sizeof address);
    return address;
}

static struct kernel *kernel_find(_Atomic(struct kernel *) *bucket, void (*run)(void *))
{
    struct kernel *kernel = atomic_load_explicit(bucket, memory_order_acquire);
    while (kernel && kernel->run != run)
        kernel = kernel->next;
    return kernel;
}

static struct kernel *kernel_new(struct omp_runtime *on, void (*run)(void *), const char *kind)
{
    struct kernel *kernel = malloc(sizeof *kernel);
    char name[DUET_NAME_MAX];
    const struct duet_codelet_desc desc = {.name = name,
                                           .expand =
                                               *kind ? duet__omp_run_member : duet__omp_run_task,
                                           .waits = true};
    (void)snprintf(name, sizeof name, "%.9s%zx", kind, (size_t)address_of(run));
    if (!kernel || duet_register_codelet(on->core, &desc, &kernel->codelet))
        duet__omp_die("there is no memory left");
    kernel->run = run;
    kernel->kind = kind;
    return kernel;
}

const struct duet_codelet *duet__omp_kernel(struct omp_runtime *on, void (*run)(void *),
                                            const char *kind)
{
    struct omp_kernels *all = on->kernels;
    _Atomic(struct kernel *) *bucket =
        &all->buckets[((uintptr_t)address_of(run) >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 54];
    struct kernel *kernel = kernel_find(bucket, run);
    if (kernel)
        return kernel->codelet;
    (void)pthread_mutex_lock(&all->mutex);
    kernel = kernel_find(bucket, run);
    if (!kernel) {
        kernel = kernel_new(on, run, kind);
        kernel->next = atomic_load(bucket);
        all->count++;
        atomic_store_explicit(bucket, kernel, memory_order_release);
    }
    (void)pthread_mutex_unlock(&all->mutex);
    return kernel->codelet;
}

struct omp_kernels *duet__omp_kernels_new(void)
{
    struct omp_kernels *all = calloc(1, sizeof *all);
    if (all)
        (void)pthread_mutex_init(&all->mutex, NULL);
    return all;
}

/* Numbers and names the places of all kernels. */
static void name_all(struct duet__omp_place *places, struct kernel *const *kernels, size_t count)
{
    for (size_t i = 0; i < count; i++)
        places[i] = (struct duet__omp_place){.code = (const char *)address_of(kernels[i]->run) + 1,
                                             .kind = kernels[i]->kind};
    if (!duet__omp_names(places, count, true))
        return;
    for (size_t i = 0; i < count; i++)
        if (places[i].name)
            duet__codelet_rename(kernels[i]->codelet, places[i].name);
}

void duet__omp_rename(struct omp_runtime *on)
{
    const struct omp_kernels *all = on->kernels;
    struct kernel **kernels = calloc(all->count + 1, sizeof *kernels);
    struct duet__omp_place *places = calloc(all->count + 1, sizeof *places);
    size_t count = 0;
    for (size_t i = 0; kernels && i < BUCKETS; i++)
        for (struct kernel *kernel = atomic_load(&all->buckets[i]); kernel; kernel = kernel->next)
            kernels[count++] = kernel;
    if (places && count)
        name_all(places, kernels, count);
    for (size_t i = 0; places && i < count; i++) {
        free(places[i].name);
        free(places[i].key);
    }
    free(places);
    free(kernels);
}
