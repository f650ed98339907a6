/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recorder in place of the runtime, for the tests of workloads: it keeps what a workload
 * registers and submits, and can execute the tasks with naive kernels on small matrices, in the
 * order of submission or in any order that the declared accesses allow.
 *
 * A test includes this file first, then the .c files under test: the macros at the end of this
 * file send their calls here instead of to the library, and rename what they define, so that the
 * test links with the library none the less. It is included by one file of an executable.
 */
#ifndef DUET_TEST_RECORDER_H
#define DUET_TEST_RECORDER_H

#include <math.h>
#include <string.h>

#include <glib.h>

#include <duet/duet.h>
#include <duet/machine.h>
#include <duet/trace.h>

#include "workloads/workload.h"

enum { RECORDER_ACCESSES = 160, RECORDER_CODELETS = 64 };

struct duet_handle {
    size_t rows, cols, ld, element_bytes;
    double *data; /* rows x cols, for recorder_execute */
};

struct duet_codelet {
    char name[32];
    unsigned implementation_count;
    double (*flops)(const void *args);
    double (*cost)(const void *args, const char *arch);
};

struct recorded {
    const struct duet_codelet *codelet;
    _Alignas(16) char args[DUET_ARGS_MAX];
    struct duet_access accesses[RECORDER_ACCESSES];
    size_t access_count;
    int priority;
    uint64_t where;
};

struct duet_runtime {
    GPtrArray *handles; /* struct duet_handle */
    GPtrArray *tasks;   /* struct recorded */
    struct duet_codelet codelets[RECORDER_CODELETS];
    unsigned codelet_count;
    unsigned fail_after; /* calls that succeed before every further one fails; 0: never fail */
    unsigned calls;
    const struct duet_machine *machine;
};

/* A kernel of the tests: works on the buffers and checks args against them. */
struct recorder_kernel {
    const char *name;
    duet_kernel_fn run;
};

static inline void recorder_free_handle(void *pointer)
{
    struct duet_handle *handle = pointer;
    g_free(handle->data);
    g_free(handle);
}

static inline struct duet_runtime *recorder_new(void)
{
    struct duet_runtime *recorder = g_new0(struct duet_runtime, 1);
    recorder->handles = g_ptr_array_new_with_free_func(recorder_free_handle);
    recorder->tasks = g_ptr_array_new_with_free_func(g_free);
    return recorder;
}

static inline void recorder_free(struct duet_runtime *recorder)
{
    g_ptr_array_free(recorder->handles, TRUE);
    g_ptr_array_free(recorder->tasks, TRUE);
    g_free(recorder);
}

static inline bool recorder_fails(struct duet_runtime *recorder)
{
    return recorder->fail_after && ++recorder->calls > recorder->fail_after;
}

/* ------------------------------------------------------------------------------------------- */
/* The calls a workload makes                                                                   */

static inline int recorder_matrix(struct duet_runtime *recorder, void *data, size_t rows,
                                  size_t cols, size_t ld, size_t element_bytes,
                                  struct duet_handle **out)
{
    g_assert_null(data);
    g_assert_cmpuint(rows, >, 0);
    g_assert_cmpuint(cols, >, 0);
    g_assert_cmpuint(ld, >=, rows);
    if (recorder_fails(recorder))
        return DUET_ENOMEM;
    *out = g_new0(struct duet_handle, 1);
    **out = (struct duet_handle){rows, cols, ld, element_bytes, NULL};
    g_ptr_array_add(recorder->handles, *out);
    return 0;
}

static inline int recorder_vector(struct duet_runtime *recorder, void *data, size_t count,
                                  size_t element_bytes, struct duet_handle **out)
{
    return recorder_matrix(recorder, data, count, 1, count, element_bytes, out);
}

static inline int recorder_codelet(struct duet_runtime *recorder,
                                   const struct duet_codelet_desc *desc, struct duet_codelet **out)
{
    g_assert_cmpuint(strlen(desc->name), <, 32);
    g_assert_cmpuint(desc->implementation_count, >, 0);
    g_assert_cmpuint(recorder->codelet_count, <, RECORDER_CODELETS);
    g_assert_cmpstr(desc->implementations[0].arch, ==, "cpu");
    if (desc->implementation_count > 1)
        g_assert_cmpstr(desc->implementations[1].arch, ==, "cuda");
    if (recorder_fails(recorder))
        return DUET_ENOMEM;
    *out = &recorder->codelets[recorder->codelet_count++];
    g_strlcpy((*out)->name, desc->name, sizeof(*out)->name);
    (*out)->implementation_count = (unsigned)desc->implementation_count;
    (*out)->flops = desc->flops;
    (*out)->cost = desc->cost;
    return 0;
}

static inline int recorder_submit(struct duet_runtime *recorder, const struct duet_task_desc *desc)
{
    g_assert_cmpuint(desc->access_count, <=, RECORDER_ACCESSES);
    g_assert_cmpuint(desc->args_bytes, <=, DUET_ARGS_MAX);
    if (recorder_fails(recorder))
        return DUET_ENOMEM;
    struct recorded *task = g_new0(struct recorded, 1);
    task->codelet = desc->codelet;
    task->access_count = desc->access_count;
    task->priority = desc->priority;
    task->where = desc->where;
    memcpy(task->args, desc->args, desc->args_bytes);
    for (size_t i = 0; i < desc->access_count; i++) {
        g_assert_nonnull(desc->accesses[i].handle);
        for (size_t j = 0; j < i; j++)
            g_assert_true(desc->accesses[i].handle != desc->accesses[j].handle);
        task->accesses[i] = desc->accesses[i];
    }
    g_ptr_array_add(recorder->tasks, task);
    return 0;
}

static inline uint64_t recorder_where(const struct duet_runtime *recorder, const char *name)
{
    uint64_t mask = 0;
    for (unsigned a = 0; a < recorder->machine->arch_count; a++) {
        if (!strcmp(recorder->machine->archs[a].backend, name))
            mask |= UINT64_C(1) << a;
    }
    return mask;
}

static inline const struct duet_machine *recorder_machine(const struct duet_runtime *recorder)
{
    return recorder->machine;
}

/* ------------------------------------------------------------------------------------------- */
/* What tests ask                                                                               */

static inline const struct recorded *recorder_task(const struct duet_runtime *recorder, size_t i)
{
    return recorder->tasks->pdata[i];
}

/* Number of tasks of the kernel `name`; of all, if NULL. */
static inline size_t recorder_count(const struct duet_runtime *recorder, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < recorder->tasks->len; i++)
        count += !name || !strcmp(recorder_task(recorder, i)->codelet->name, name);
    return count;
}

/* Flops of all tasks. */
static inline double recorder_flops(const struct duet_runtime *recorder)
{
    double sum = 0;
    for (size_t i = 0; i < recorder->tasks->len; i++) {
        const struct recorded *task = recorder_task(recorder, i);
        sum += task->codelet->flops(task->args);
    }
    return sum;
}

/* Bytes of all handles. */
static inline uint64_t recorder_bytes(const struct duet_runtime *recorder)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < recorder->handles->len; i++) {
        const struct duet_handle *handle = recorder->handles->pdata[i];
        sum += handle->rows * handle->cols * handle->element_bytes;
    }
    return sum;
}

/* Must `later` wait for `earlier` by sequential consistency? */
static inline bool recorder_conflict(const struct recorded *earlier, const struct recorded *later)
{
    for (size_t i = 0; i < earlier->access_count; i++) {
        for (size_t j = 0; j < later->access_count; j++) {
            if (earlier->accesses[i].handle == later->accesses[j].handle &&
                ((earlier->accesses[i].mode | later->accesses[j].mode) & DUET_W))
                return true;
        }
    }
    return false;
}

/* Runs one task on the handles' data; what it may only read must not change. */
static inline void recorder_run(const struct recorded *task, const struct recorder_kernel *kernels)
{
    struct duet_buffer buffers[RECORDER_ACCESSES];
    double *copies[RECORDER_ACCESSES] = {NULL};
    for (size_t i = 0; i < task->access_count; i++) {
        const struct duet_handle *h = task->accesses[i].handle;
        g_assert_nonnull(h->data);
        buffers[i] = (struct duet_buffer){h->data, h->rows, h->cols, h->ld, sizeof(double)};
        if (task->accesses[i].mode == DUET_R)
            copies[i] = g_memdup2(h->data, h->ld * h->cols * sizeof(double));
    }
    while (kernels->name && strcmp(kernels->name, task->codelet->name) != 0)
        kernels++;
    g_assert_nonnull(kernels->name);
    const struct duet_call call = {task->args, buffers, task->access_count, NULL};
    g_assert_cmpint(kernels->run(&call), ==, 0);
    for (size_t i = 0; i < task->access_count; i++) {
        const struct duet_handle *h = task->accesses[i].handle;
        if (copies[i])
            g_assert_cmpmem(h->data, h->ld * h->cols * sizeof(double), copies[i],
                            h->ld * h->cols * sizeof(double));
        g_free(copies[i]);
    }
}

/* Runs all tasks in the order of submission, or, with `random`, in an order drawn from it. */
static inline void recorder_execute(const struct duet_runtime *recorder,
                                    const struct recorder_kernel *kernels, GRand *random)
{
    size_t count = recorder->tasks->len;
    bool *done = g_new0(bool, count);
    for (size_t step = 0; step < count; step++) {
        size_t task = step;
        bool blocked = random != NULL;
        while (blocked) {
            task = (size_t)g_rand_int_range(random, 0, (gint32)count);
            blocked = done[task];
            for (size_t i = 0; !blocked && i < task; i++)
                blocked = !done[i] && recorder_conflict(recorder_task(recorder, i),
                                                        recorder_task(recorder, task));
        }
        recorder_run(recorder_task(recorder, task), kernels);
        done[task] = true;
    }
    g_free(done);
}

/* ------------------------------------------------------------------------------------------- */
/* Small matrices                                                                               */

/* The grid's tiles as the workload laid them out, filled from (or copied to) an ld = n matrix. */
static inline void recorder_fill(struct duet_handle *handle, const double *a, size_t n, size_t row,
                                 size_t col)
{
    if (!handle->data)
        handle->data = g_new0(double, handle->ld * handle->cols);
    for (size_t j = 0; j < handle->cols; j++) {
        for (size_t i = 0; i < handle->rows; i++)
            handle->data[i + j * handle->ld] = a[row + i + (col + j) * n];
    }
}

static inline void recorder_extract(const struct duet_handle *handle, double *a, size_t n,
                                    size_t row, size_t col)
{
    for (size_t j = 0; j < handle->cols; j++) {
        for (size_t i = 0; i < handle->rows; i++)
            a[row + i + (col + j) * n] = handle->data[i + j * handle->ld];
    }
}

/* Element of a buffer. */
static inline double *recorder_at(const struct duet_buffer *buffer, size_t i, size_t j)
{
    g_assert_cmpuint(i, <, buffer->rows);
    g_assert_cmpuint(j, <, buffer->cols);
    return (double *)buffer->data + i + j * buffer->ld;
}

/* From here on, calls go to the recorder, and what the included files define has other names. */
#define duet_matrix recorder_matrix
#define duet_vector recorder_vector
#define duet_codelet(runtime, desc, out) recorder_codelet(runtime, desc, out)
#define duet_submit recorder_submit
#define duet_where recorder_where
#define duet_runtime_machine recorder_machine

#define duet__workload_cholesky recorded_cholesky
#define duet__workload_gemm recorded_gemm
#define duet__workload_lu recorded_lu
#define duet__workload_layered recorded_layered
#define duet__element_bytes recorded_element_bytes
#define duet__tile_count recorded_tile_count
#define duet__tiles_check recorded_tiles_check
#define duet__square_check recorded_square_check
#define duet__tile_rows recorded_tile_rows
#define duet__tile_cols recorded_tile_cols
#define duet__tile recorded_tile
#define duet__tile_task recorded_tile_task
#define duet__tiled_build recorded_tiled_build
#define duet__tiled_fini recorded_tiled_fini
#define duet__factor_task recorded_factor_task
#define duet__factor_diagonal recorded_factor_diagonal
#define duet__factor_solve recorded_factor_solve
#define duet__factor_update recorded_factor_update
#define duet__flops_gemm recorded_flops_gemm
#define duet__flops_syrk recorded_flops_syrk
#define duet__flops_trsm_right recorded_flops_trsm_right
#define duet__flops_trsm_left recorded_flops_trsm_left
#define duet__flops_potrf recorded_flops_potrf
#define duet__flops_getrf recorded_flops_getrf

#endif
