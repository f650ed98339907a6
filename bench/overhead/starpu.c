/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The overhead benchmarks in StarPU 1.3. The application's thread is none of its workers: it
 * submits on a core of its own, if there is one. Scheduler and the like come from the environment
 * (STARPU_SCHED, ...).
 */
#include <starpu.h>

#include "bench/overhead/overhead.h"
#include "bench/timing.h"

struct starpu {
    starpu_data_handle_t *handles; /* of the blocks */
    size_t handle_count;
};

static void check(int error, const char *what)
{
    if (!error)
        return;
    fprintf(stderr, "StarPU: %s: %s\n", what, strerror(-error));
    exit(1);
}

static void submit(struct starpu_codelet *codelet, const starpu_data_handle_t *handles, int count,
                   void *argument)
{
    struct starpu_task *task = starpu_task_create();
    task->cl = codelet;
    for (int i = 0; i < count; i++)
        task->handles[i] = handles[i];
    task->cl_arg = argument;
    check(starpu_task_submit(task), "submitting a task");
}

static void wait_all(void)
{
    check(starpu_task_wait_for_all(), "waiting");
}

/* ------------------------------------------------------------------------------------------- */
/* Kernels: StarPU keeps its own state in codelets, so they cannot be const                     */

static void run_mark(void **buffers, void *mark)
{
    kernel_mark(mark);
}

static struct starpu_codelet mark_codelet = {
    .cpu_funcs = {run_mark},
    .nbuffers = 0,
    .name = "mark",
};

static void run_bump_1(void **buffers, void *argument)
{
    kernel_bump((uint64_t *)STARPU_VECTOR_GET_PTR(buffers[0]));
}

static void run_bump_2(void **buffers, void *argument)
{
    kernel_bump((uint64_t *)STARPU_VECTOR_GET_PTR(buffers[1]));
}

static void run_bump_3(void **buffers, void *argument)
{
    kernel_bump((uint64_t *)STARPU_VECTOR_GET_PTR(buffers[2]));
}

static struct starpu_codelet chain_codelet = {
    .cpu_funcs = {run_bump_1},
    .nbuffers = 1,
    .modes = {STARPU_RW},
    .name = "chain",
};

static struct starpu_codelet potrf_codelet = {
    .cpu_funcs = {run_bump_1},
    .nbuffers = 1,
    .modes = {STARPU_RW},
    .name = "potrf",
};

static struct starpu_codelet trsm_codelet = {
    .cpu_funcs = {run_bump_2},
    .nbuffers = 2,
    .modes = {STARPU_R, STARPU_RW},
    .name = "trsm",
};

static struct starpu_codelet syrk_codelet = {
    .cpu_funcs = {run_bump_2},
    .nbuffers = 2,
    .modes = {STARPU_R, STARPU_RW},
    .name = "syrk",
};

static struct starpu_codelet gemm_codelet = {
    .cpu_funcs = {run_bump_3},
    .nbuffers = 3,
    .modes = {STARPU_R, STARPU_R, STARPU_RW},
    .name = "gemm",
};

static void run_fibonacci(void **buffers, void *argument);

static struct starpu_codelet fibonacci_codelet = {
    .cpu_funcs = {run_fibonacci},
    .nbuffers = 0,
    .name = "fibonacci",
};

/* Tasks that submit tasks, which StarPU allows as long as they do not wait. */
static void run_fibonacci(void **buffers, void *argument)
{
    struct frame *frame = argument;
    if (frame->n < 2) {
        frame_end(frame);
        return;
    }
    struct frame *children[2];
    frame_split(frame, children);
    for (unsigned i = 0; i < 2; i++)
        submit(&fibonacci_codelet, NULL, 0, children[i]);
}

static void run_stencil(void **buffers, void *iterations)
{
    kernel_stencil((uint64_t *)STARPU_VECTOR_GET_PTR(buffers[3]),
                   (uint64_t *)STARPU_VECTOR_GET_PTR(buffers[0]),
                   (uint64_t *)STARPU_VECTOR_GET_PTR(buffers[1]),
                   (uint64_t *)STARPU_VECTOR_GET_PTR(buffers[2]), *(const uint64_t *)iterations);
}

static struct starpu_codelet stencil_codelet = {
    .cpu_funcs = {run_stencil},
    .nbuffers = 4,
    .modes = {STARPU_R, STARPU_R, STARPU_R, STARPU_W},
    .name = "stencil",
};

static void run_saxpy(void **buffers, void *argument)
{
    kernel_saxpy(STARPU_VECTOR_GET_NX(buffers[1]) *
                     (STARPU_VECTOR_GET_ELEMSIZE(buffers[1]) / sizeof(float)),
                 (const float *)STARPU_VECTOR_GET_PTR(buffers[0]),
                 (float *)STARPU_VECTOR_GET_PTR(buffers[1]));
}

static struct starpu_codelet saxpy_codelet = {
    .cpu_funcs = {run_saxpy},
    .nbuffers = 2,
    .modes = {STARPU_R, STARPU_RW},
    .name = "saxpy",
};

/* ------------------------------------------------------------------------------------------- */

static void *open_starpu(unsigned workers)
{
    struct starpu_conf conf;
    check(starpu_conf_init(&conf), "its configuration");
    conf.ncpus = (int)workers;
    conf.ncuda = 0;
    conf.nopencl = 0;
    check(starpu_init(&conf), "starting");
    if (starpu_cpu_worker_get_count() != workers) {
        fprintf(stderr, "StarPU: %u workers instead of %u\n", starpu_cpu_worker_get_count(),
                workers);
        exit(1);
    }
    return zeroed(sizeof(struct starpu));
}

static void close_starpu(void *self)
{
    starpu_shutdown();
    free(self);
}

static void blocks(void *opaque, char *base, size_t count, size_t bytes)
{
    struct starpu *self = opaque;
    self->handles = zeroed(count * sizeof(starpu_data_handle_t));
    self->handle_count = count;
    for (size_t i = 0; i < count; i++)
        starpu_vector_data_register(&self->handles[i], STARPU_MAIN_RAM,
                                    (uintptr_t)(base + i * bytes),
                                    (uint32_t)(bytes / sizeof(float)), sizeof(float));
}

static void drop(void *opaque)
{
    struct starpu *self = opaque;
    for (size_t i = 0; i < self->handle_count; i++)
        starpu_data_unregister(self->handles[i]);
    free(self->handles);
}

static void fork_join(void *opaque, uint32_t *marks, size_t tasks, size_t joins)
{
    for (size_t j = 0; j < joins; j++) {
        for (size_t i = 0; i < tasks; i++)
            submit(&mark_codelet, NULL, 0, &marks[i]);
        wait_all();
    }
}

static void chain(void *opaque, size_t length)
{
    const struct starpu *self = opaque;
    for (size_t i = 0; i < length; i++)
        submit(&chain_codelet, self->handles, 1, NULL);
    wait_all();
}

static void update(const starpu_data_handle_t *tiles, size_t n, size_t k)
{
    for (size_t i = k + 1; i < n; i++) {
        submit(&syrk_codelet, (starpu_data_handle_t[]){tiles[i * n + k], tiles[i * n + i]}, 2,
               NULL);
        for (size_t j = k + 1; j < i; j++)
            submit(&gemm_codelet,
                   (starpu_data_handle_t[]){tiles[i * n + k], tiles[j * n + k], tiles[i * n + j]},
                   3, NULL);
    }
}

static void cholesky(void *opaque, size_t n)
{
    const struct starpu *self = opaque;
    const starpu_data_handle_t *tiles = self->handles;
    for (size_t k = 0; k < n; k++) {
        submit(&potrf_codelet, &tiles[k * n + k], 1, NULL);
        for (size_t i = k + 1; i < n; i++)
            submit(&trsm_codelet, (starpu_data_handle_t[]){tiles[k * n + k], tiles[i * n + k]}, 2,
                   NULL);
        update(tiles, n, k);
    }
    wait_all();
}

static uint64_t fibonacci(void *opaque, unsigned n, struct frame *frames)
{
    frames->n = n;
    submit(&fibonacci_codelet, NULL, 0, frames);
    wait_all();
    return frames->value[0] + frames->value[1];
}

static void stencil(void *opaque, size_t width, size_t steps, uint64_t iterations)
{
    const struct starpu *self = opaque;
    for (size_t t = 1; t <= steps; t++) {
        const starpu_data_handle_t *before = self->handles + (t - 1) % 2 * width;
        const starpu_data_handle_t *now = self->handles + t % 2 * width;
        for (size_t i = 0; i < width; i++)
            submit(&stencil_codelet,
                   (starpu_data_handle_t[]){before[i ? i - 1 : 0], before[i],
                                            before[i + 1 < width ? i + 1 : i], now[i]},
                   4, &iterations);
    }
    wait_all();
}

static void saxpy(void *opaque, size_t count, size_t passes)
{
    const struct starpu *self = opaque;
    for (size_t pass = 0; pass < passes; pass++) {
        for (size_t i = 0; i < count; i++)
            submit(&saxpy_codelet,
                   (starpu_data_handle_t[]){self->handles[i], self->handles[count + i]}, 2, NULL);
        wait_all();
    }
}

const struct peer overhead_peer = {
    .name = "starpu",
    .open = open_starpu,
    .close = close_starpu,
    .blocks = blocks,
    .drop = drop,
    .fork_join = fork_join,
    .chain = chain,
    .cholesky = cholesky,
    .fibonacci = fibonacci,
    .stencil = stencil,
    .saxpy = saxpy,
};
