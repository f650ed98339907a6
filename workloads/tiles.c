/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tiled workloads: tiles, builds, tasks of factorisations and flops of kernels. */
#include "workloads/tiles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <duet/graph.h>
#include <duet/trace.h>

#include "workloads/kernels.h"
#include "workloads/kernels_cuda.h"

size_t duet__element_bytes(const struct duet__problem *problem)
{
    return problem->precision == 's' ? 4 : 8;
}

uint64_t duet__tile_count(uint64_t size, uint64_t tile)
{
    return size / tile + (size % tile != 0);
}

int duet__tiles_check(const char *name, uint64_t size, uint64_t tile, struct duet_message *message)
{
    if (tile > size && !strcmp(name, "n"))
        return duet_fail(message, DUET_EINVAL,
                         "tiles of %llu are larger than the matrix, whose n is %llu: use tiles of "
                         "%llu or less",
                         (unsigned long long)tile, (unsigned long long)size,
                         (unsigned long long)size);
    if (duet__tile_count(size, tile) <= DUET__TILES_MAX)
        return 0;
    return duet_fail(message, DUET_EINVAL,
                     "%s = %llu in tiles of %llu makes %llu tiles, at most %d are possible: use "
                     "tiles of %llu or more",
                     name, (unsigned long long)size, (unsigned long long)tile,
                     (unsigned long long)duet__tile_count(size, tile), DUET__TILES_MAX,
                     (unsigned long long)duet__tile_count(size, DUET__TILES_MAX));
}

int duet__square_check(const struct duet__problem *problem,
                       const struct duet__parameter *parameters, struct duet_message *message)
{
    int error = duet__problem_check(problem, parameters, message);
    return error ? error : duet__tiles_check("n", problem->n, problem->tile, message);
}

uint32_t duet__tile_rows(const struct duet__tiles *tiles, uint32_t i)
{
    if (tiles->cuts)
        return (uint32_t)(tiles->cuts[i + 1] - tiles->cuts[i]);
    return (uint32_t)duet__piece(tiles->rows, tiles->tile_rows, i);
}

uint32_t duet__tile_cols(const struct duet__tiles *tiles, uint32_t j)
{
    return (uint32_t)duet__piece(tiles->cols, tiles->tile_cols, j);
}

struct duet_handle *duet__tile(const struct duet__tiles *tiles, uint32_t i, uint32_t j)
{
    return tiles->handles[i + (size_t)j * tiles->row_tiles];
}

unsigned duet__owner_in_turn(const struct duet_runtime *runtime,
                             const struct duet__problem *problem, unsigned matrix, uint32_t i,
                             uint32_t j)
{
    return i % duet_node_count(runtime);
}

static unsigned owner_of(const struct duet__tiled *tiled, const struct duet_runtime *runtime,
                         const struct duet__problem *problem, unsigned matrix, uint32_t i,
                         uint32_t j)
{
    return tiled->owner ? tiled->owner(runtime, problem, matrix, i, j)
                        : duet_node_at(runtime, i, j);
}

bool duet__tiled_here(const struct duet__tiled_data *data, const struct duet_runtime *runtime,
                      unsigned matrix, uint32_t i, uint32_t j)
{
    return !runtime || data->cuts ||
           duet_node_here(runtime, owner_of(data->tiled, runtime, &data->problem, matrix, i, j));
}

/* Page-locks memory of a matrix until the runtime is closed; a later build on the same runtime
 * finds it page-locked. If that is refused, copies take longer; the engine reports it. */
static void pin_memory(struct duet_runtime *runtime, void *memory, uint64_t bytes)
{
    int refused = duet_pin(runtime, memory, bytes);
    (void)refused;
}

/* A matrix that is being registered. */
struct registering {
    const struct duet__build *build;
    const struct duet__tiled *tiled;
    struct duet__tiles *tiles;
    const struct duet__storage *storage; /* without memory: there is no data */
    unsigned number;
};

/* Returns the address of a tile that this process owns, or that is to come here in the end; else
 * NULL. */
static void *tile_address(const struct registering *r, uint32_t i, uint32_t j, unsigned owner,
                          size_t *ld)
{
    const struct duet_runtime *runtime = r->build->runtime;
    const uint64_t *cuts = r->tiles->cuts;
    bool gathered = r->tiles->gathered && duet_node_here(runtime, 0);
    *ld = duet__tile_rows(r->tiles, i);
    if (!r->storage->memory || (!gathered && !duet_node_here(runtime, owner)))
        return NULL;
    char *data = duet__storage_tile(r->storage, cuts ? 0 : i, j, ld);
    return data + (cuts ? cuts[i] * r->storage->element_bytes : 0);
}

static int register_tile(const struct registering *r, uint32_t i, uint32_t j)
{
    struct duet_runtime *runtime = r->build->runtime;
    struct duet_handle **handle = &r->tiles->handles[i + (size_t)j * r->tiles->row_tiles];
    unsigned owner = owner_of(r->tiled, runtime, r->build->problem, r->number, i, j);
    size_t ld;
    size_t rows = duet__tile_rows(r->tiles, i), cols = duet__tile_cols(r->tiles, j);
    size_t element_bytes = r->storage->element_bytes;
    void *data = tile_address(r, i, j, owner, &ld);
    if (data && r->storage->dealt && !r->storage->whole)
        pin_memory(runtime, data, rows * cols * element_bytes);
    int error = duet_register_matrix(runtime, data, rows, cols, ld, element_bytes, handle);
    return error ? error : duet_own(runtime, *handle, owner);
}

/* Registers a matrix, tile by tile, columns first. An error leaves it half filled. */
static int tiles_init(const struct registering *r, struct duet_message *message)
{
    struct duet__tiles *tiles = r->tiles;
    const struct duet__storage *s = r->storage;
    *tiles = (struct duet__tiles){
        .rows = s->rows,
        .cols = s->cols,
        .tile_rows = s->tile_rows,
        .tile_cols = s->tile_cols,
        .row_tiles = (uint32_t)duet__tile_count(s->rows, s->tile_rows),
        .col_tiles = (uint32_t)duet__tile_count(s->cols, s->tile_cols),
        .cuts = r->build->matrices->cuts,
        .gathered = r->build->problem->verify && duet_node_count(r->build->runtime) > 1,
    };
    size_t count = (size_t)tiles->row_tiles * tiles->col_tiles;
    tiles->handles = calloc(count, sizeof *tiles->handles);
    if (!tiles->handles)
        return duet_fail(message, DUET_ENOMEM, "no memory for the %zu tiles of a matrix", count);
    if (s->memory && !s->dealt) /* all at once */
        pin_memory(r->build->runtime, s->memory, duet__storage_bytes(s));
    int error = 0;
    for (uint32_t j = 0; !error && j < tiles->col_tiles; j++) {
        for (uint32_t i = s->lower ? j : 0; !error && i < tiles->row_tiles; i++) {
            if (!s->is_there || s->is_there(i, j))
                error = register_tile(r, i, j);
        }
    }
    return error;
}

/* Finds or registers the kernel in the problem's precision. */
static int register_kernel(struct duet_runtime *runtime, const struct duet__problem *problem,
                           const char *base, bool cpu_only, bool capturable,
                           double (*flops)(const void *args), struct duet_codelet **out)
{
    const struct duet_implementation implementations[] = {
        {.arch = "cpu", .run = problem->data ? duet__kernel(base) : NULL},
        {.arch = "cuda", .run = problem->data ? duet__cuda_kernel(base) : NULL},
        {.arch = "opencl", .run = problem->data ? duet__opencl_kernel(base) : NULL},
    };
    char name[32]; /* room for a kernel's name, which the core copies */
    int length = snprintf(name, sizeof name, "%c%s", problem->precision, base);
    if (length < 0 || (size_t)length >= sizeof name)
        return DUET_EINVAL;
    *out = duet_codelet_find(runtime, name);
    if (*out)
        return 0;
    const struct duet_codelet_desc desc = {
        .name = name,
        .implementations = implementations,
        .implementation_count = cpu_only ? 1 : sizeof implementations / sizeof *implementations,
        .flops = flops,
        .capturable = capturable,
    };
    return duet_register_codelet(runtime, &desc, out);
}

static bool has_cpus(const struct duet_runtime *runtime)
{
    const struct duet_machine *machine = duet_runtime_machine(runtime);
    return machine->worker_count && machine->workers[0].node == DUET_HOST;
}

/* Reports that no CPU is there for kernel i, and what else could run it. */
static int no_cpu(const struct duet__build *build, const struct duet__workload *self, unsigned i,
                  struct duet_message *message)
{
    const struct duet__tiled *tiled = self->tiled;
    bool movable = !(tiled->cpu_only >> i & 1);
    return duet_fail(message, DUET_ENOWORKER,
                     "kernel %c%s is for CPUs only, and no CPU computes: add one (--cpus)%s%s%s",
                     build->problem->precision, self->kernels[i],
                     movable ? ", or let GPUs run it (--param " : "",
                     movable ? tiled->placement : "", movable ? "=any)" : "");
}

static int register_codelets(struct duet__build *build, const struct duet__workload *self,
                             struct duet_message *message)
{
    const struct duet__tiled *tiled = self->tiled;
    unsigned cpu_only = tiled->cpu_only;
    if (tiled->placement &&
        !strcmp(duet__setting(build->problem, self->parameters, tiled->placement), "cpu"))
        cpu_only |= tiled->placed ? tiled->placed : 1;
    for (unsigned i = 0; i < DUET__KERNELS_MAX && self->kernels[i]; i++)
        if ((cpu_only >> i & 1) && !has_cpus(build->runtime))
            return no_cpu(build, self, i, message);
    /* calls on vectors, such as axpy, take no memory of their own */
    const char *first = self->kernels[0];
    const bool calls_blas = build->problem->data && first && duet__blas_kernel(first);
    const unsigned threads = duet_runtime_machine(build->runtime)->worker_count;
    int error =
        calls_blas ? duet__blas_begin(strcmp(first, "axpy") != 0 ? threads : 0, message) : 0;
    for (size_t i = 0; !error && i < DUET__KERNELS_MAX && self->kernels[i]; i++)
        error = register_kernel(build->runtime, build->problem, self->kernels[i], cpu_only >> i & 1,
                                tiled->capturable, tiled->flops[i], &build->codelets[i]);
    return error;
}

static int register_matrices(const struct duet__build *build, const struct duet__workload *self,
                             struct duet__tiles *matrices, struct duet_message *message)
{
    const struct duet__tiled *tiled = self->tiled;
    struct duet__storage described[DUET__MATRICES_MAX];
    const struct duet__tiled_data *data = build->problem->data;
    const struct duet__storage *storage = data ? data->matrices : described;
    if (!data)
        duet__tiled_describe(tiled, build->problem, described);
    matrices->cuts = tiled->cuts ? tiled->cuts(build->problem, self->parameters) : NULL;
    int error = tiled->cuts && !matrices->cuts
                    ? duet_fail(message, DUET_ENOMEM, "no memory for where the pieces begin")
                    : 0;
    for (unsigned i = 0; !error && i < DUET__MATRICES_MAX && storage[i].rows; i++) {
        const struct registering r = {build, tiled, &matrices[i], &storage[i], i};
        error = tiles_init(&r, message);
    }
    return error;
}

int duet__tiled_build(const struct duet__workload *self, struct duet_runtime *runtime,
                      const struct duet__problem *problem, void **state,
                      struct duet_message *message)
{
    *state = NULL;
    int error = self->check(problem, message);
    if (error)
        return error;
    struct duet__tiles *matrices = calloc(DUET__MATRICES_MAX, sizeof *matrices);
    if (!matrices)
        return duet_fail(message, DUET_ENOMEM, "no memory for the workload's matrices");
    struct duet__build build = {.runtime = runtime, .problem = problem, .matrices = matrices};
    error = register_codelets(&build, self, message);
    if (!error)
        error = register_matrices(&build, self, matrices, message);
    if (!error)
        error = self->tiled->submit(&build);
    if (error)
        duet__tiled_fini(matrices);
    else
        *state = matrices;
    return error;
}

void duet__tiled_fini(void *state)
{
    struct duet__tiles *matrices = state;
    for (size_t i = 0; matrices && i < DUET__MATRICES_MAX; i++)
        free(matrices[i].handles);
    if (matrices)
        free((void *)(uintptr_t)matrices->cuts);
    free(matrices);
}

/* Makes node 0 the owner of a tile, for which it has memory. */
static int gather_tile(struct duet_runtime *runtime, struct duet_handle **handle)
{
    return duet_migrate(runtime, *handle, 0);
}

static int unregister(struct duet_runtime *runtime, struct duet_handle **handle)
{
    int error = duet_unregister(runtime, *handle);
    *handle = NULL;
    return error;
}

/* Calls `act` for every tile of a matrix. Returns the first error. */
static int each_tile(struct duet_runtime *runtime, const struct duet__tiles *tiles,
                     int (*act)(struct duet_runtime *runtime, struct duet_handle **handle))
{
    size_t count = (size_t)tiles->row_tiles * tiles->col_tiles;
    int first = 0;
    for (size_t t = 0; tiles->handles && t < count; t++) {
        int error = tiles->handles[t] ? act(runtime, &tiles->handles[t]) : 0;
        first = first ? first : error;
    }
    return first;
}

int duet__tiled_retrieve(struct duet_runtime *runtime, void *state)
{
    const struct duet__tiles *matrices = state;
    int first = 0;
    for (size_t i = 0; i < DUET__MATRICES_MAX; i++) {
        int error = matrices[i].gathered ? each_tile(runtime, &matrices[i], gather_tile) : 0;
        first = first ? first : error;
    }
    for (size_t i = 0; i < DUET__MATRICES_MAX; i++) {
        int error = each_tile(runtime, &matrices[i], unregister);
        first = first ? first : error;
    }
    return first;
}

int duet__tiles_spent(const struct duet__build *build, const struct duet__tiles *tiles,
                      uint32_t first, uint32_t end, uint32_t j)
{
    int error = 0;
    if (build->expansion || duet_node_count(build->runtime) == 1)
        return 0;
    for (uint32_t i = first; !error && i < end; i++) {
        struct duet_handle *tile = duet__tile(tiles, i, j);
        if (tile)
            error = duet_fetch(build->runtime, tile, duet_owner(tile));
        if (tile && !error)
            error = duet_wont_use(build->runtime, tile);
    }
    return error;
}

int duet__build_task(const struct duet__build *build, unsigned kernel, const void *args,
                     size_t args_bytes, int priority, const struct duet_access *accesses,
                     size_t access_count)
{
    const struct duet_task_extra extra = {.iteration = build->iteration};
    const struct duet_task_desc task = {
        .codelet = build->codelets[kernel],
        .accesses = accesses,
        .access_count = access_count,
        .args = args,
        .args_bytes = args_bytes,
        .priority = build->priority + priority,
        .where = build->where,
        .complexity = build->complexity,
        .extra = build->iteration ? &extra : NULL,
    };
    return build->expansion ? duet_expand_submit(build->expansion, &task)
                            : duet_submit(build->runtime, &task);
}

int duet__tile_task(const struct duet__build *build, unsigned kernel, struct duet__tile_args args,
                    int priority, const struct duet_access *accesses, size_t access_count)
{
    return duet__build_task(build, kernel, &args, sizeof args, priority, accesses, access_count);
}

int duet__tiled_iterate(const struct duet__build *build, const struct duet__parameter *parameters,
                        int (*step)(const struct duet__build *build, unsigned parity))
{
    const uint64_t count = duet__setting_number(build->problem, parameters, "iterations", 1);
    const bool again =
        count > 3 && !strcmp(duet__setting(build->problem, parameters, "submit"), "graph");
    struct duet__build now = *build;
    struct duet_graph *graph = NULL;
    uint64_t done = 0;
    int error = again ? duet_graph_begin(build->runtime) : 0;
    if (error)
        return error;
    for (; !error && done < (again ? 2 : count); done++) {
        now.iteration = again ? 0 : (uint32_t)done + 1;
        error = step(&now, done % 2);
    }
    int ended = again ? duet_graph_end(build->runtime, &graph) : 0;
    error = error ? error : ended;
    for (; !error && count - done > 1; done += 2)
        error = duet_graph_submit(build->runtime, graph);
    if (!error && done < count)
        error = step(&now, 0);
    duet_graph_free(graph);
    return error;
}

int duet__factor_priority(const struct duet__build *build, uint32_t k, uint32_t distance)
{
    return 2 * (int)build->matrices->row_tiles - 2 * (int)k - (int)distance;
}

int duet__factor_task(const struct duet__build *build, unsigned kernel, struct duet__tile_args args,
                      uint32_t k, uint32_t distance, const struct duet_access *accesses,
                      size_t access_count)
{
    return duet__tile_task(build, kernel, args, duet__factor_priority(build, k, distance), accesses,
                           access_count);
}

int duet__factor_diagonal(const struct duet__build *build, unsigned kernel, uint32_t k)
{
    const struct duet__tiles *a = build->matrices;
    const struct duet_access access = {duet__tile(a, k, k), DUET_RW};
    const struct duet__tile_args args = {.n = duet__tile_cols(a, k)};
    return duet__factor_task(build, kernel, args, k, 0, &access, 1);
}

int duet__factor_solve(const struct duet__build *build, unsigned kernel, uint32_t i, uint32_t j)
{
    const struct duet__tiles *a = build->matrices;
    uint32_t k = i < j ? i : j, distance = i < j ? j : i;
    const struct duet_access accesses[] = {
        {duet__tile(a, k, k), DUET_R},
        {duet__tile(a, i, j), DUET_RW},
    };
    const struct duet__tile_args args = {.m = duet__tile_rows(a, i), .n = duet__tile_cols(a, j)};
    return duet__factor_task(build, kernel, args, k, distance, accesses, 2);
}

int duet__factor_update(const struct duet__build *build, unsigned kernel, uint32_t m, uint32_t n,
                        uint32_t k, struct duet_handle *b, uint32_t form)
{
    const struct duet__tiles *a = build->matrices;
    const struct duet_access accesses[] = {
        {duet__tile(a, m, k), DUET_R},
        {b, DUET_R},
        {duet__tile(a, m, n), DUET_RW},
    };
    const struct duet__tile_args args = {
        .m = duet__tile_rows(a, m),
        .n = duet__tile_cols(a, n),
        .k = duet__tile_cols(a, k),
        .form = DUET__MINUS | form,
    };
    return duet__factor_task(build, kernel, args, k, m + n, accesses, 3);
}

enum { LU_GETRF, LU_TRSM_L, LU_TRSM_R, LU_GEMM }; /* LU's kernels */

/* Submits the tasks of step k of an LU factorisation in column n to the right of its panel. */
static int lu_column(const struct duet__build *build, uint32_t k, uint32_t n)
{
    const struct duet__tiles *a = build->matrices;
    struct duet_handle *row = duet__tile(a, k, n);
    int error = row ? duet__factor_solve(build, LU_TRSM_L, k, n) : 0;
    for (uint32_t m = k + 1; row && !error && m < a->row_tiles; m++) {
        if (duet__tile(a, m, k))
            error = duet__factor_update(build, LU_GEMM, m, n, k, row, 0);
    }
    return error;
}

int duet__factor_lu(const struct duet__build *build)
{
    const struct duet__tiles *a = build->matrices;
    int error = 0;
    for (uint32_t k = 0; !error && k < a->row_tiles; k++) {
        error = duet__factor_diagonal(build, LU_GETRF, k);
        for (uint32_t m = k + 1; !error && m < a->row_tiles; m++) {
            if (duet__tile(a, m, k))
                error = duet__factor_solve(build, LU_TRSM_R, m, k);
        }
        for (uint32_t n = k + 1; !error && n < a->row_tiles; n++) {
            error = lu_column(build, k, n);
            error = error ? error : duet__tiles_spent(build, a, k, k + 1, n);
        }
        error = error ? error : duet__tiles_spent(build, a, k, a->row_tiles, k);
    }
    return error;
}

double duet__flops_gemm(const void *args)
{
    const struct duet__tile_args *size = args;
    return 2.0 * size->m * size->n * size->k;
}

double duet__flops_syrk(const void *args)
{
    const struct duet__tile_args *size = args;
    return size->n * (size->n + 1.0) * size->k;
}

double duet__flops_trsm_right(const void *args)
{
    const struct duet__tile_args *size = args;
    return (double)size->m * size->n * size->n;
}

double duet__flops_trsm_left(const void *args)
{
    const struct duet__tile_args *size = args;
    return (double)size->m * size->m * size->n;
}

double duet__flops_potrf(const void *args)
{
    double n = ((const struct duet__tile_args *)args)->n;
    return n * n * n / 3 + n * n / 2 + n / 6;
}

double duet__flops_getrf(const void *args)
{
    const struct duet__tile_args *size = args;
    double n = size->n, m = size->m ? size->m : n;
    double flops = m * n * n - n * n * n / 3 - n * n / 2 - n / 6;
    return m > 1 ? flops : 1;
}

uint64_t duet__square_tasks(const struct duet__problem *problem)
{
    uint64_t t = duet__tile_count(problem->n, problem->tile);
    return t * (t + 1) * (2 * t + 1) / 6; /* step k has (t-k)^2 tasks */
}

double duet__lu_flops(const struct duet__problem *problem)
{
    double n = (double)problem->n;
    return 2 * n * n * n / 3 - n * n / 2 - n / 6;
}
