/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The overhead benchmarks in duet, with its public header only. Policy, window and the like come
 * from the environment (DUET_POLICY, DUET_WINDOW, ...).
 */
#include <duet/duet.h>

#include "bench/overhead/overhead.h"
#include "bench/timing.h"

/* Kernels, in the order of `kernels` below. */
enum { MARK, CHAIN, POTRF, TRSM, SYRK, GEMM, FIBONACCI, STENCIL, SAXPY, KERNELS };

struct duet {
    struct duet_runtime *runtime;
    struct duet_codelet *codelets[KERNELS];
    struct duet_handle **handles; /* of the blocks */
    size_t handle_count;
};

static void check(int error, const char *message)
{
    if (!error)
        return;
    fprintf(stderr, "%s: %s\n", duet_strerror(error), message);
    exit(1);
}

static void submit(const struct duet *self, unsigned kernel, const struct duet_access *accesses,
                   size_t count, const void *args, size_t args_bytes)
{
    struct duet_task_desc task = {
        .codelet = self->codelets[kernel],
        .accesses = accesses,
        .access_count = count,
        .args = args,
        .args_bytes = args_bytes,
    };
    check(duet_submit(self->runtime, &task), duet_last_message(self->runtime));
}

static void wait_all(const struct duet *self)
{
    check(duet_wait(self->runtime), duet_last_message(self->runtime));
}

/* ------------------------------------------------------------------------------------------- */
/* Kernels                                                                                      */

static int run_mark(const struct duet_call *call)
{
    kernel_mark(*(uint32_t *const *)call->args);
    return DUET_OK;
}

/* Bumps what it writes: the last access. */
static int run_bump(const struct duet_call *call)
{
    kernel_bump(call->buffers[call->buffer_count - 1].data);
    return DUET_OK;
}

struct fibonacci_args {
    const struct duet *self;
    struct frame *frame;
};

static int run_fibonacci(const struct duet_call *call)
{
    const struct fibonacci_args *args = call->args;
    if (args->frame->n < 2) {
        frame_end(args->frame);
        return DUET_OK;
    }
    struct frame *children[2];
    frame_split(args->frame, children);
    for (unsigned i = 0; i < 2; i++) {
        struct fibonacci_args child = {.self = args->self, .frame = children[i]};
        submit(args->self, FIBONACCI, NULL, 0, &child, sizeof child);
    }
    return DUET_OK;
}

static int run_stencil(const struct duet_call *call)
{
    const struct duet_buffer *buffers = call->buffers;
    kernel_stencil(buffers[3].data, buffers[0].data, buffers[1].data, buffers[2].data,
                   *(const uint64_t *)call->args);
    return DUET_OK;
}

static int run_saxpy(const struct duet_call *call)
{
    const struct duet_buffer *y = &call->buffers[1];
    kernel_saxpy(y->rows * y->element_bytes / sizeof(float), call->buffers[0].data, y->data);
    return DUET_OK;
}

static const struct {
    const char *name;
    duet_kernel_fn run;
} kernels[KERNELS] = {
    [MARK] = {"mark", run_mark},
    [CHAIN] = {"chain", run_bump},
    [POTRF] = {"potrf", run_bump},
    [TRSM] = {"trsm", run_bump},
    [SYRK] = {"syrk", run_bump},
    [GEMM] = {"gemm", run_bump},
    [FIBONACCI] = {"fibonacci", run_fibonacci},
    [STENCIL] = {"stencil", run_stencil},
    [SAXPY] = {"saxpy", run_saxpy},
};

/* ------------------------------------------------------------------------------------------- */

static void *open_duet(unsigned workers)
{
    struct duet *self = zeroed(sizeof *self);
    struct duet_message message = {{0}};
    struct duet_config config;
    duet_config_init(&config);
    check(duet_config_environment(&config, &message), message.text);
    config.cpus = (int)workers;
    config.gpus = 0;
    check(duet_open(&self->runtime, &config, &message), message.text);
    for (unsigned k = 0; k < KERNELS; k++) {
        struct duet_codelet_desc desc = {
            .name = kernels[k].name,
            .implementations = &(struct duet_implementation){.arch = "cpu", .run = kernels[k].run},
            .implementation_count = 1,
        };
        check(duet_codelet(self->runtime, &desc, &self->codelets[k]),
              duet_last_message(self->runtime));
    }
    return self;
}

static void close_duet(void *opaque)
{
    struct duet *self = opaque;
    check(duet_close(self->runtime), "closing");
    free(self);
}

static void blocks(void *opaque, char *base, size_t count, size_t bytes)
{
    struct duet *self = opaque;
    self->handles = zeroed(count * sizeof(struct duet_handle *));
    self->handle_count = count;
    for (size_t i = 0; i < count; i++)
        check(duet_vector(self->runtime, base + i * bytes, bytes / sizeof(float), sizeof(float),
                          &self->handles[i]),
              duet_last_message(self->runtime));
}

static void drop(void *opaque)
{
    struct duet *self = opaque;
    for (size_t i = 0; i < self->handle_count; i++)
        check(duet_unregister(self->runtime, self->handles[i]), duet_last_message(self->runtime));
    free(self->handles);
}

static void fork_join(void *opaque, uint32_t *marks, size_t tasks, size_t joins)
{
    const struct duet *self = opaque;
    for (size_t j = 0; j < joins; j++) {
        for (size_t i = 0; i < tasks; i++) {
            uint32_t *mark = &marks[i];
            submit(self, MARK, NULL, 0, &mark, sizeof(uint32_t *));
        }
        wait_all(self);
    }
}

static void chain(void *opaque, size_t length)
{
    const struct duet *self = opaque;
    for (size_t i = 0; i < length; i++)
        submit(self, CHAIN, (struct duet_access[]){{self->handles[0], DUET_RW}}, 1, NULL, 0);
    wait_all(self);
}

/* What follows from column k of a right-looking Cholesky. */
static void update(const struct duet *self, size_t n, size_t k)
{
    struct duet_handle *const *tiles = self->handles;
    for (size_t i = k + 1; i < n; i++) {
        submit(self, SYRK,
               (struct duet_access[]){{tiles[i * n + k], DUET_R}, {tiles[i * n + i], DUET_RW}}, 2,
               NULL, 0);
        for (size_t j = k + 1; j < i; j++)
            submit(self, GEMM,
                   (struct duet_access[]){{tiles[i * n + k], DUET_R},
                                          {tiles[j * n + k], DUET_R},
                                          {tiles[i * n + j], DUET_RW}},
                   3, NULL, 0);
    }
}

static void cholesky(void *opaque, size_t n)
{
    const struct duet *self = opaque;
    struct duet_handle *const *tiles = self->handles;
    for (size_t k = 0; k < n; k++) {
        submit(self, POTRF, (struct duet_access[]){{tiles[k * n + k], DUET_RW}}, 1, NULL, 0);
        for (size_t i = k + 1; i < n; i++)
            submit(self, TRSM,
                   (struct duet_access[]){{tiles[k * n + k], DUET_R}, {tiles[i * n + k], DUET_RW}},
                   2, NULL, 0);
        update(self, n, k);
    }
    wait_all(self);
}

static uint64_t fibonacci(void *opaque, unsigned n, struct frame *frames)
{
    const struct duet *self = opaque;
    frames->n = n;
    struct fibonacci_args args = {.self = self, .frame = frames};
    submit(self, FIBONACCI, NULL, 0, &args, sizeof args);
    wait_all(self);
    return frames->value[0] + frames->value[1];
}

static void stencil(void *opaque, size_t width, size_t steps, uint64_t iterations)
{
    const struct duet *self = opaque;
    for (size_t t = 1; t <= steps; t++) {
        struct duet_handle *const *before = self->handles + (t - 1) % 2 * width;
        struct duet_handle *const *now = self->handles + t % 2 * width;
        for (size_t i = 0; i < width; i++)
            submit(self, STENCIL,
                   (struct duet_access[]){{before[i ? i - 1 : 0], DUET_R},
                                          {before[i], DUET_R},
                                          {before[i + 1 < width ? i + 1 : i], DUET_R},
                                          {now[i], DUET_W}},
                   4, &iterations, sizeof iterations);
    }
    wait_all(self);
}

static void saxpy(void *opaque, size_t count, size_t passes)
{
    const struct duet *self = opaque;
    for (size_t pass = 0; pass < passes; pass++) {
        for (size_t i = 0; i < count; i++)
            submit(self, SAXPY,
                   (struct duet_access[]){{self->handles[i], DUET_R},
                                          {self->handles[count + i], DUET_RW}},
                   2, NULL, 0);
        wait_all(self);
    }
}

const struct peer overhead_peer = {
    .name = "duet",
    .open = open_duet,
    .close = close_duet,
    .blocks = blocks,
    .drop = drop,
    .fork_join = fork_join,
    .chain = chain,
    .cholesky = cholesky,
    .fibonacci = fibonacci,
    .stencil = stencil,
    .saxpy = saxpy,
};
