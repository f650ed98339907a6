/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recorder in place of the runtime, for the tests of workloads: it keeps what a workload
 * registers and submits, and can execute the tasks with the workload's own kernels, in the order of
 * submission or in any order that the declared accesses allow. Tasks that expand execute their
 * children as they submit them.
 *
 * A test includes this file first, then the .c files under test: the macros at the end of this
 * file send their calls here instead of to the library. It is included by one file of an
 * executable.
 */
#ifndef DUET_TEST_RECORDER_H
#define DUET_TEST_RECORDER_H

#include <math.h>
#include <string.h>

#include <duet/duet.h>
#include <duet/graph.h>
#include <duet/machine.h>
#include <duet/nodes.h>
#include <duet/parts.h>
#include <duet/trace.h>

#include <glib.h>
#include "workloads/workload.h"

enum { RECORDER_ACCESSES = 160, RECORDER_CODELETS = 64 };

struct duet_handle {
    size_t rows, cols, ld, element_bytes;
    double *data;  /* rows x cols, for recorder_execute; const cast away if from the workload */
    bool borrowed; /* from the workload, or a block of an expanding task */
    const struct duet_handle *whole; /* this is a triangle of `whole`; NULL: it is none */
};

struct duet_codelet {
    char name[32];
    unsigned implementation_count;
    double (*flops)(const void *args);
    double (*cost)(const void *args, const char *arch);
    duet_kernel_fn run;    /* for "cpu" */
    duet_expand_fn expand; /* in place of run */
};

struct recorded {
    const struct duet_codelet *codelet;
    _Alignas(16) char args[DUET_ARGS_INLINE];
    struct duet_access accesses[RECORDER_ACCESSES];
    size_t access_count;
    int priority;
    uint64_t where;
    double complexity;
};

/* Tasks that were recorded to be submitted again. */
struct duet_graph {
    size_t first, count; /* in the recorder's tasks */
};

/* Memory that the workload has page-locked. */
struct recorded_pin {
    uintptr_t begin, end;
};

struct duet_runtime {
    GPtrArray *handles; /* struct duet_handle */
    GArray *pins;       /* struct recorded_pin */
    GPtrArray *tasks;   /* struct recorded */
    struct duet_codelet codelets[RECORDER_CODELETS];
    unsigned codelet_count;
    unsigned fail_after; /* number of calls that succeed before all others fail; 0: none fails */
    unsigned calls;
    const struct duet_machine *machine;
    void *state; /* what the workload has built, freed by `fini`, if that is not NULL */
    void (*fini)(void *state);
    struct duet_graph *graph; /* the one that is recorded; NULL: none is */
};

/* A task that is expanding. */
struct duet_expansion {
    const struct recorded *task;
    GPtrArray *blocks; /* struct duet_handle */
    size_t children;
};

static inline void recorder_free_handle(void *pointer)
{
    struct duet_handle *handle = pointer;
    if (!handle->borrowed)
        g_free(handle->data);
    g_free(handle);
}

static inline struct duet_runtime *recorder_new(void)
{
    struct duet_runtime *recorder = g_new0(struct duet_runtime, 1);
    recorder->handles = g_ptr_array_new_with_free_func(recorder_free_handle);
    recorder->tasks = g_ptr_array_new_with_free_func(g_free);
    recorder->pins = g_array_new(FALSE, FALSE, sizeof(struct recorded_pin));
    return recorder;
}

static inline void recorder_free(struct duet_runtime *recorder)
{
    g_ptr_array_free(recorder->handles, TRUE);
    g_ptr_array_free(recorder->tasks, TRUE);
    g_array_free(recorder->pins, TRUE);
    if (recorder->fini)
        recorder->fini(recorder->state);
    g_free(recorder);
}

static inline void recorder_end(struct duet_runtime **recorder)
{
    recorder_free(*recorder);
}

static inline bool recorder_fails(struct duet_runtime *recorder)
{
    return recorder->fail_after && ++recorder->calls > recorder->fail_after;
}

/* ------------------------------------------------------------------------------------------- */
/* The calls a workload makes                                                                   */

/* Notes the memory, then refuses: a workload does not depend on it. */
static inline int recorder_pin(struct duet_runtime *recorder, void *data, size_t bytes)
{
    const struct recorded_pin pin = {(uintptr_t)data, (uintptr_t)data + bytes};
    g_array_append_val(recorder->pins, pin);
    return DUET_ENOMEM;
}

/* True if the workload has asked to page-lock all of this memory. */
static inline bool recorder_pinned(const struct duet_runtime *recorder, const void *data,
                                   size_t bytes)
{
    uintptr_t begin = (uintptr_t)data;
    for (guint i = 0; i < recorder->pins->len; i++) {
        const struct recorded_pin *pin = &g_array_index(recorder->pins, struct recorded_pin, i);
        if (begin >= pin->begin && begin + bytes <= pin->end)
            return true;
    }
    return false;
}

static inline int recorder_matrix(struct duet_runtime *recorder, void *data, size_t rows,
                                  size_t cols, size_t ld, size_t element_bytes,
                                  struct duet_handle **out)
{
    g_assert_cmpuint(rows, >, 0);
    g_assert_cmpuint(cols, >, 0);
    g_assert_cmpuint(ld, >=, rows);
    g_assert_true(!data ||
                  recorder_pinned(recorder, data, (ld * (cols - 1) + rows) * element_bytes));
    if (recorder_fails(recorder))
        return DUET_ENOMEM;
    *out = g_new0(struct duet_handle, 1);
    **out = (struct duet_handle){rows, cols, ld, element_bytes, data, data != NULL, NULL};
    g_ptr_array_add(recorder->handles, *out);
    return 0;
}

static inline int recorder_vector(struct duet_runtime *recorder, void *data, size_t count,
                                  size_t element_bytes, struct duet_handle **out)
{
    return recorder_matrix(recorder, data, count, 1, count, element_bytes, out);
}

/* Returns the triangles of a square; kernels get the whole square. */
static inline int recorder_cut_triangles(struct duet_runtime *recorder, struct duet_handle *whole,
                                         enum duet_diagonal diagonal, struct duet_handle **out)
{
    g_assert_true(whole->rows == whole->cols && whole->rows > 1 && !whole->whole);
    if (recorder_fails(recorder))
        return DUET_ENOMEM;
    for (unsigned i = 0; i < 2 + (diagonal == DUET_DIAGONAL_APART); i++) {
        out[i] = g_new0(struct duet_handle, 1);
        *out[i] = *whole;
        out[i]->borrowed = true;
        out[i]->whole = whole;
        g_ptr_array_add(recorder->handles, out[i]);
    }
    return 0;
}

static inline int recorder_codelet(struct duet_runtime *recorder,
                                   const struct duet_codelet_desc *desc, struct duet_codelet **out)
{
    g_assert_cmpuint(strlen(desc->name), <, 32);
    g_assert_true(!desc->expand == (desc->implementation_count > 0));
    g_assert_cmpuint(recorder->codelet_count, <, RECORDER_CODELETS);
    if (!desc->expand)
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
    (*out)->run = desc->expand ? NULL : desc->implementations[0].run;
    (*out)->expand = desc->expand;
    return 0;
}

static inline struct duet_codelet *recorder_find(struct duet_runtime *recorder, const char *name)
{
    for (unsigned i = 0; i < recorder->codelet_count; i++) {
        if (!strcmp(recorder->codelets[i].name, name))
            return &recorder->codelets[i];
    }
    return NULL;
}

/* The handle stays in the list: the tasks that were recorded refer to it. */
static inline int recorder_unregister(struct duet_runtime *recorder, struct duet_handle *handle)
{
    g_assert_true(g_ptr_array_find(recorder->handles, handle, NULL));
    return recorder_fails(recorder) ? DUET_ETASK : 0;
}

/* Makes the task of a description. */
static inline struct recorded *recorder_copy(const struct duet_task_desc *desc)
{
    g_assert_cmpuint(desc->access_count, <=, RECORDER_ACCESSES);
    g_assert_cmpuint(desc->args_bytes, <=, DUET_ARGS_INLINE);
    struct recorded *task = g_new0(struct recorded, 1);
    g_assert_nonnull(desc->codelet);
    task->codelet = desc->codelet;
    task->access_count = desc->access_count;
    task->priority = desc->priority;
    task->where = desc->where;
    task->complexity = desc->complexity;
    memcpy(task->args, desc->args, desc->args_bytes);
    for (size_t i = 0; i < desc->access_count; i++) {
        g_assert_nonnull(desc->accesses[i].handle);
        for (size_t j = 0; j < i; j++)
            g_assert_true(desc->accesses[i].handle != desc->accesses[j].handle);
        task->accesses[i] = desc->accesses[i];
    }
    return task;
}

static inline int recorder_submit(struct duet_runtime *recorder, const struct duet_task_desc *desc)
{
    if (recorder_fails(recorder))
        return DUET_ENOMEM;
    g_ptr_array_add(recorder->tasks, recorder_copy(desc));
    return 0;
}

static inline int recorder_graph_begin(struct duet_runtime *recorder)
{
    g_assert_null(recorder->graph);
    if (recorder_fails(recorder))
        return DUET_ENOMEM;
    recorder->graph = g_new0(struct duet_graph, 1);
    recorder->graph->first = recorder->tasks->len;
    return 0;
}

static inline int recorder_graph_end(struct duet_runtime *recorder, struct duet_graph **out)
{
    *out = recorder->graph;
    recorder->graph = NULL;
    if (*out && !recorder_fails(recorder)) {
        (*out)->count = recorder->tasks->len - (*out)->first;
        return 0;
    }
    g_clear_pointer(out, g_free);
    return DUET_ENOMEM;
}

static inline int recorder_graph_submit(struct duet_runtime *recorder,
                                        const struct duet_graph *graph)
{
    for (size_t i = graph->first; i < graph->first + graph->count; i++) {
        if (recorder_fails(recorder))
            return DUET_ENOMEM;
        g_ptr_array_add(recorder->tasks,
                        g_memdup2(recorder->tasks->pdata[i], sizeof(struct recorded)));
    }
    return 0;
}

static inline uint64_t recorder_where(const struct duet_runtime *recorder, const char *name)
{
    g_auto(GStrv) names = g_strsplit(name, ",", -1);
    uint64_t mask = 0;
    if (!recorder->machine)
        return !strcmp(name, "cpu");
    for (unsigned a = 0; a < recorder->machine->arch_count; a++) {
        if (g_strv_contains((const char *const *)names, recorder->machine->archs[a].backend))
            mask |= UINT64_C(1) << a;
    }
    return mask;
}

/* Returns one CPU worker, unless the test sets another machine. */
static inline const struct duet_machine *recorder_machine(const struct duet_runtime *recorder)
{
    static struct duet_worker cpu = {.node = DUET_HOST, .window = 1};
    static const struct duet_machine usual = {.worker_count = 1, .workers = &cpu};
    return recorder->machine ? recorder->machine : &usual;
}

/* There is one node; nodes_test.c tests several. */
static inline unsigned recorder_node_count(const struct duet_runtime *recorder)
{
    return 1;
}

static inline struct duet_grid recorder_node_grid(const struct duet_runtime *recorder)
{
    return (struct duet_grid){1, 1};
}

static inline bool recorder_node_here(const struct duet_runtime *recorder, unsigned node)
{
    return node == 0;
}

static inline unsigned recorder_node_at(const struct duet_runtime *recorder, uint64_t row,
                                        uint64_t col)
{
    return 0;
}

static inline int recorder_own(struct duet_runtime *recorder, struct duet_handle *handle,
                               unsigned node)
{
    return node ? DUET_EINVAL : 0;
}

/* ------------------------------------------------------------------------------------------- */
/* Queries of tests */

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
        sum += task->codelet->flops ? task->codelet->flops(task->args) : 0;
    }
    return sum;
}

/* Bytes of all handles. */
static inline uint64_t recorder_bytes(const struct duet_runtime *recorder)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < recorder->handles->len; i++) {
        const struct duet_handle *handle = recorder->handles->pdata[i];
        sum += handle->whole ? 0 : handle->rows * handle->cols * handle->element_bytes;
    }
    return sum;
}

/* True if they have elements in common. */
static inline bool recorder_overlap(const struct duet_handle *a, const struct duet_handle *b)
{
    return a == b || a->whole == b || b->whole == a;
}

/* True if `later` must wait for `earlier` by sequential consistency. */
static inline bool recorder_conflict(const struct recorded *earlier, const struct recorded *later)
{
    for (size_t i = 0; i < earlier->access_count; i++) {
        for (size_t j = 0; j < later->access_count; j++) {
            if (recorder_overlap(earlier->accesses[i].handle, later->accesses[j].handle) &&
                ((earlier->accesses[i].mode | later->accesses[j].mode) & DUET_W))
                return true;
        }
    }
    return false;
}

/* Returns the handle's elements without the gaps between columns. */
static inline GByteArray *recorder_elements(const struct duet_handle *handle)
{
    GByteArray *elements = g_byte_array_new();
    for (size_t j = 0; j < handle->cols; j++)
        g_byte_array_append(elements,
                            (guint8 *)handle->data + j * handle->ld * handle->element_bytes,
                            (guint)(handle->rows * handle->element_bytes));
    return elements;
}

/* Calls the kernel of a task. */
static inline int recorder_call(const struct recorded *task, const struct duet_call *call)
{
    if (task->codelet->expand) {
        struct duet_expansion expansion = {task,
                                           g_ptr_array_new_with_free_func(recorder_free_handle), 0};
        int error = task->codelet->expand(&expansion, call);
        g_assert_cmpuint(expansion.children, >, 0);
        g_ptr_array_free(expansion.blocks, TRUE);
        return error;
    }
    return task->codelet->run(call);
}

/* Runs one task on the handles' data; data that it only reads must not change. */
static inline void recorder_run(const struct recorded *task, struct duet_runtime *runtime)
{
    struct duet_buffer buffers[RECORDER_ACCESSES];
    GByteArray *copies[RECORDER_ACCESSES] = {NULL};
    for (size_t i = 0; i < task->access_count; i++) {
        const struct duet_handle *h = task->accesses[i].handle;
        g_assert_nonnull(h->data);
        buffers[i] = (struct duet_buffer){.data = h->data,
                                          .rows = h->rows,
                                          .cols = h->cols,
                                          .ld = h->ld,
                                          .element_bytes = h->element_bytes};
        if (task->accesses[i].mode == DUET_R)
            copies[i] = recorder_elements(h);
    }
    const struct duet_call call = {.runtime = runtime,
                                   .args = task->args,
                                   .buffers = buffers,
                                   .buffer_count = task->access_count};
    g_assert_cmpint(recorder_call(task, &call), ==, 0);
    for (size_t i = 0; i < task->access_count; i++) {
        if (!copies[i])
            continue;
        GByteArray *now = recorder_elements(task->accesses[i].handle);
        g_assert_cmpmem(now->data, now->len, copies[i]->data, copies[i]->len);
        g_byte_array_free(now, TRUE);
        g_byte_array_free(copies[i], TRUE);
    }
}

/* Makes a block of a task that expands. */
static inline int recorder_block(struct duet_expansion *expansion, size_t index, size_t row,
                                 size_t col, size_t rows, size_t cols, struct duet_handle **out)
{
    g_assert_cmpuint(index, <, expansion->task->access_count);
    const struct duet_handle *whole = expansion->task->accesses[index].handle;
    g_assert_true(rows && cols && row + rows <= whole->rows && col + cols <= whole->cols);
    *out = g_new0(struct duet_handle, 1);
    **out = (struct duet_handle){rows, cols, whole->ld, whole->element_bytes, NULL, true, NULL};
    (*out)->data = (void *)((char *)whole->data + (row + col * whole->ld) * whole->element_bytes);
    g_ptr_array_add(expansion->blocks, *out);
    return 0;
}

/* Runs a child at once. */
static inline int recorder_child(struct duet_expansion *expansion,
                                 const struct duet_task_desc *desc)
{
    for (size_t i = 0; i < desc->access_count; i++)
        g_assert_true(g_ptr_array_find(expansion->blocks, desc->accesses[i].handle, NULL));
    struct recorded *child = recorder_copy(desc);
    expansion->children++;
    recorder_run(child, NULL);
    g_free(child);
    return 0;
}

/* Runs all tasks in the order of submission, or, with `random`, in an order drawn from it. */
static inline void recorder_execute(struct duet_runtime *recorder, GRand *random)
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
        recorder_run(recorder_task(recorder, task), recorder);
        done[task] = true;
    }
    g_free(done);
}

/*
 * From here on calls go to the recorder, and workloads that the included files define have other
 * names. What else these files define stands for that of the library, whose list of workloads needs
 * it, too.
 */
#define duet_register_matrix recorder_matrix
#define duet_register_vector recorder_vector
#define duet_pin recorder_pin
#define duet_register_codelet(runtime, desc, out) recorder_codelet(runtime, desc, out)
#define duet_codelet_find recorder_find
#define duet_submit recorder_submit
#define duet_unregister recorder_unregister
#define duet_graph_begin recorder_graph_begin
#define duet_graph_end recorder_graph_end
#define duet_graph_submit recorder_graph_submit
#define duet_graph_free g_free
#define duet_cut_triangles recorder_cut_triangles
#define duet_expand_block recorder_block
#define duet_expand_submit recorder_child
#define duet_where recorder_where
#define duet_runtime_machine recorder_machine
#define duet_node_count recorder_node_count
#define duet_node_here recorder_node_here
#define duet_node_at recorder_node_at
#define duet_node_grid recorder_node_grid
#define duet_own recorder_own

#define duet__workload_cholesky recorded_cholesky
#define duet__workload_gemm recorded_gemm
#define duet__workload_lu recorded_lu
#define duet__workload_lu_incremental recorded_lu_incremental
#define duet__workload_lu_pivot recorded_lu_pivot
#define duet__workload_qr recorded_qr
#define duet__workload_saxpy recorded_saxpy
#define duet__workload_jacobi2d recorded_jacobi2d
#define duet__workload_layered recorded_layered
#define duet__workload_nbody recorded_nbody
#define duet__workload_sort recorded_sort
#define duet__workload_sparse_lu recorded_sparse_lu

#endif
