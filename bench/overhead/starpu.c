/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The overhead benchmarks in StarPU 1.3. The application's thread is none of its workers: it
 * submits on a core of its own, if there is one. Scheduler and the like come from the environment
 * (STARPU_SCHED, ...).
 */
#include <math.h>

#include <starpu.h>

#include "bench/overhead/overhead.h"
#include "bench/timing.h"

const char peer_name[] = "starpu";

enum { FIBONACCI = KERNELS };

static starpu_data_handle_t *handles; /* of the blocks */
static size_t handle_count;

static void check(int error, const char *what)
{
    if (!error)
        return;
    fprintf(stderr, "StarPU: %s: %s\n", what, strerror(-error));
    exit(1);
}

/* ------------------------------------------------------------------------------------------- */
/* Kernels                                                                                      */

static uint64_t *cell(void *buffer)
{
    return (uint64_t *)STARPU_VECTOR_GET_PTR(buffer);
}

static void run_mark(void **buffers, void *mark)
{
    kernel_mark(mark);
}

static void run_bump_1(void **buffers, void *argument)
{
    kernel_bump(cell(buffers[0]));
}

static void run_bump_2(void **buffers, void *argument)
{
    kernel_bump(cell(buffers[1]));
}

static void run_bump_3(void **buffers, void *argument)
{
    kernel_bump(cell(buffers[2]));
}

static void run_stencil(void **buffers, void *iterations)
{
    kernel_stencil(cell(buffers[3]), cell(buffers[0]), cell(buffers[1]), cell(buffers[2]),
                   *(const uint64_t *)iterations);
}

static void submit(unsigned kernel, const size_t *blocks, void *argument);

/* Tasks that submit tasks, which StarPU allows if they do not wait. */
static void run_fibonacci(void **buffers, void *argument)
{
    struct frame *frame = argument, *children[2];
    if (frame->n < 2) {
        frame_end(frame);
        return;
    }
    frame_split(frame, children);
    for (unsigned i = 0; i < 2; i++)
        submit(FIBONACCI, NULL, children[i]);
}

/* StarPU keeps its own state in codelets, so they cannot be const. */
#define CODELET(label, count, ...)                                                                 \
    {                                                                                              \
        .cpu_funcs = {run_##label}, .nbuffers = (count), .modes = {__VA_ARGS__}, .name = #label    \
    }

static struct starpu_codelet codelets[KERNELS + 1] = {
    [MARK] = CODELET(mark, 0, STARPU_NONE),
    [SIZED] = CODELET(mark, 0, STARPU_NONE), /* a mark is its first member */
    [BUMP_1] = CODELET(bump_1, 1, STARPU_RW),
    [BUMP_2] = CODELET(bump_2, 2, STARPU_R, STARPU_RW),
    [BUMP_3] = CODELET(bump_3, 3, STARPU_R, STARPU_R, STARPU_RW),
    [STENCIL] = CODELET(stencil, 4, STARPU_R, STARPU_R, STARPU_R, STARPU_W),
    [FIBONACCI] = CODELET(fibonacci, 0, STARPU_NONE),
};

static void submit(unsigned kernel, const size_t *blocks, void *argument)
{
    struct starpu_task *task = starpu_task_create();
    task->cl = &codelets[kernel];
    for (int i = 0; blocks && i < task->cl->nbuffers; i++)
        task->handles[i] = handles[blocks[i]];
    task->cl_arg = argument;
    check(starpu_task_submit(task), "submitting a task");
}

/* ------------------------------------------------------------------------------------------- */

void peer_open(unsigned workers)
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
}

void peer_close(void)
{
    starpu_shutdown();
}

void peer_blocks(char *base, size_t count)
{
    handles = zeroed(count * sizeof(starpu_data_handle_t));
    handle_count = count;
    for (size_t i = 0; i < count; i++)
        starpu_vector_data_register(&handles[i], STARPU_MAIN_RAM,
                                    (uintptr_t)(base + i * CELL_BYTES), CELL_BYTES, 1);
}

void peer_drop(void)
{
    for (size_t i = 0; i < handle_count; i++)
        starpu_data_unregister(handles[i]);
    free(handles);
}

void peer_run(void (*program)(const void *context), const void *context)
{
    program(context);
}

void peer_submit(enum kernel kernel, const size_t *blocks, void *argument)
{
    submit(kernel, blocks, argument);
}

void peer_wait(void)
{
    check(starpu_task_wait_for_all(), "waiting");
}

uint64_t peer_fibonacci(unsigned n, struct frame *frames)
{
    frames->n = n;
    submit(FIBONACCI, NULL, frames);
    peer_wait();
    return frames->value[0] + frames->value[1];
}

void peer_numbers(double *all, size_t count, size_t pieces)
{
}

double peer_sum(void)
{
    return NAN;
}

uint64_t peer_fibonacci_wait(unsigned n)
{
    return 0;
}
