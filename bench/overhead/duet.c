/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The overhead benchmarks in duet, with its public header only. Policy, window and the like come
 * from the environment (DUET_POLICY, DUET_WINDOW, DUET_NODES, ...). Of several nodes, which mpirun
 * starts, the first one has all data, and so all tasks that have any. In the program overhead_cuda
 * tasks that compute nothing run on a GPU.
 */
#include <duet/duet.h>

#include "bench/overhead/overhead.h"
#include "bench/timing.h"

const char peer_name[] = OVERHEAD_NAME;

enum { FIBONACCI = KERNELS, FIBONACCI_WAIT, CLEAR, ADD, SUM, CODELETS };

static struct duet_runtime *runtime;
static struct duet_codelet *codelets[CODELETS];
static struct duet_handle **handles; /* of the blocks; or of the pieces, and their sum */
static size_t handle_count;
static double sum;

static void check(int error, const char *message)
{
    if (!error)
        return;
    fprintf(stderr, "%s: %s\n", duet_strerror(error), message);
    exit(1);
}

static void submit(unsigned kernel, const struct duet_access *accesses, size_t count,
                   const void *args, size_t args_bytes)
{
    struct duet_task_desc task = {
        .codelet = codelets[kernel],
        .accesses = accesses,
        .access_count = count,
        .args = args,
        .args_bytes = args_bytes,
    };
    int error = duet_submit(runtime, &task);
    if (error) /* the message is behind a lock */
        check(error, duet_last_message(runtime));
}

/* ------------------------------------------------------------------------------------------- */
/* Kernels, whose only argument is an address */

static void *argument_of(const struct duet_call *call)
{
    return *(void *const *)call->args;
}

static int run_mark(const struct duet_call *call)
{
    kernel_mark(argument_of(call));
    return DUET_OK;
}

static int run_sized(const struct duet_call *call)
{
    kernel_mark(&((struct sized *)argument_of(call))->mark);
    return DUET_OK;
}

static double size_of(const void *args)
{
    const struct sized *sized = *(void *const *)args;
    return sized->size;
}

static int run_bump(const struct duet_call *call)
{
    kernel_bump(call->buffers[call->buffer_count - 1].data);
    return DUET_OK;
}

static int run_stencil(const struct duet_call *call)
{
    const struct duet_buffer *buffers = call->buffers;
    kernel_stencil(buffers[3].data, buffers[0].data, buffers[1].data, buffers[2].data,
                   *(const uint64_t *)argument_of(call));
    return DUET_OK;
}

static int run_fibonacci(const struct duet_call *call)
{
    struct frame *frame = argument_of(call), *children[2];
    if (frame->n < 2) {
        frame_end(frame);
        return DUET_OK;
    }
    frame_split(frame, children);
    for (unsigned i = 0; i < 2; i++)
        submit(FIBONACCI, NULL, 0, &children[i], sizeof children[i]);
    return DUET_OK;
}

static int run_clear(const struct duet_call *call)
{
    *(double *)call->buffers[0].data = 0;
    return DUET_OK;
}

static int run_add(const struct duet_call *call)
{
    *(double *)call->buffers[0].data += *(const double *)call->buffers[1].data;
    return DUET_OK;
}

/* Adds a piece to the sum. */
static int run_sum(const struct duet_call *call)
{
    const struct duet_buffer *piece = &call->buffers[0];
    *(double *)call->buffers[1].data += kernel_sum(piece->data, piece->rows);
    return DUET_OK;
}

/* A call, and the address of its value. */
struct call {
    unsigned n;
    uint64_t *value;
};

static int run_fibonacci_wait(struct duet_expansion *expansion, const struct duet_call *call)
{
    const struct call *self = call->args;
    uint64_t values[2];
    if (self->n < 2) {
        *self->value = self->n;
        return DUET_OK;
    }
    int error = DUET_OK;
    struct call child;
    const struct duet_task_desc task = {.codelet = codelets[FIBONACCI_WAIT],
                                        .args = &child,
                                        .args_bytes = sizeof child};
    for (unsigned i = 0; i < 2 && !error; i++) {
        child = (struct call){self->n - 1 - i, &values[i]};
        error = duet_expand_submit(expansion, &task);
    }
    const int waited = duet_expand_wait(expansion); /* also if only one child was submitted */
    error = error ? error : waited;
    *self->value = error ? 0 : values[0] + values[1];
    return error;
}

/* Enqueues run_bump's kernel. In the program overhead_cuda only; NULL elsewhere. */
__attribute__((weak)) int run_bump_on_gpu(const struct duet_call *call);

static const struct {
    const char *name;
    duet_kernel_fn run;
    size_t args_bytes, blocks;
    enum duet_mode modes[BLOCKS_MAX];
    double (*flops)(const void *args);
} kernels[CODELETS] = {
    [MARK] = {"mark", run_mark, sizeof(void *), 0, {DUET_R}},
    [BUMP_1] = {"bump_1", run_bump, 0, 1, {DUET_RW}},
    [BUMP_2] = {"bump_2", run_bump, 0, 2, {DUET_R, DUET_RW}},
    [BUMP_3] = {"bump_3", run_bump, 0, 3, {DUET_R, DUET_R, DUET_RW}},
    [STENCIL] = {"stencil", run_stencil, sizeof(void *), 4, {DUET_R, DUET_R, DUET_R, DUET_W}},
    [SIZED] = {"sized", run_sized, sizeof(void *), 0, {DUET_R}, size_of},
    [FIBONACCI] = {"fibonacci", run_fibonacci, sizeof(void *), 0, {DUET_R}},
    [CLEAR] = {"clear", run_clear, 0, 1, {DUET_W}},
    [ADD] = {"add", run_add, 0, 2, {DUET_RW, DUET_R}},
    [SUM] = {"sum", run_sum, 0, 2, {DUET_R, DUET_REDUCE}},
};

/* ------------------------------------------------------------------------------------------- */

void peer_open(unsigned workers)
{
    struct duet_message message = {{0}};
    struct duet_config config;
    duet_config_init(&config);
    check(duet_config_environment(&config, &message), message.text);
    config.cpus = (int)workers;
    config.gpus = run_bump_on_gpu ? 1 : 0;
    check(duet_open(&runtime, &config, &message), message.text);
    for (unsigned k = 0; k < CODELETS; k++) {
        if (k == FIBONACCI_WAIT)
            continue;
        struct duet_implementation where = {.arch = "cpu", .run = kernels[k].run};
        if (run_bump_on_gpu && k <= BUMP_3) /* a mark needs no kernel there */
            where = (struct duet_implementation){"cuda", k == MARK ? run_mark : run_bump_on_gpu};
        struct duet_codelet_desc desc = {.name = kernels[k].name,
                                         .implementations = &where,
                                         .implementation_count = 1,
                                         .flops = kernels[k].flops};
        check(duet_register_codelet(runtime, &desc, &codelets[k]), duet_last_message(runtime));
    }
    const struct duet_codelet_desc waits = {.name = "fibonacci_wait",
                                            .expand = run_fibonacci_wait,
                                            .waits = true};
    check(duet_register_codelet(runtime, &waits, &codelets[FIBONACCI_WAIT]),
          duet_last_message(runtime));
}

void peer_close(void)
{
    check(duet_close(runtime), "closing");
}

void peer_blocks(char *base, size_t count)
{
    handles = zeroed(count * sizeof(struct duet_handle *));
    handle_count = count;
    for (size_t i = 0; i < count; i++) {
        check(duet_register_vector(runtime, base + i * CELL_BYTES, CELL_BYTES, 1, &handles[i]),
              duet_last_message(runtime));
        check(duet_own(runtime, handles[i], 0), duet_last_message(runtime));
    }
}

void peer_numbers(double *all, size_t count, size_t pieces)
{
    handles = zeroed((pieces + 1) * sizeof(struct duet_handle *));
    for (size_t i = 0; i < pieces; i++) {
        size_t begin = count * i / pieces, end = count * (i + 1) / pieces;
        check(duet_register_vector(runtime, all + begin, end - begin, sizeof *all,
                                   &handles[handle_count++]),
              duet_last_message(runtime));
    }
    check(duet_register_vector(runtime, &sum, 1, sizeof sum, &handles[handle_count]),
          duet_last_message(runtime));
    check(duet_set_reduction(runtime, handles[handle_count++], codelets[CLEAR], codelets[ADD]),
          duet_last_message(runtime));
}

void peer_drop(void)
{
    for (size_t i = 0; i < handle_count; i++) {
        if (duet_node_count(runtime) > 1) { /* all processes check the result */
            check(duet_acquire(runtime, handles[i], DUET_R), duet_last_message(runtime));
            check(duet_release(runtime, handles[i]), duet_last_message(runtime));
        }
        check(duet_unregister(runtime, handles[i]), duet_last_message(runtime));
    }
    free(handles);
    handle_count = 0;
}

double peer_sum(void)
{
    size_t pieces = handle_count - 1;
    struct duet_access accesses[] = {{handles[pieces], DUET_W}, {handles[pieces], DUET_REDUCE}};
    submit(CLEAR, accesses, 1, NULL, 0);
    for (size_t i = 0; i < pieces; i++) {
        accesses[0] = (struct duet_access){handles[i], DUET_R};
        submit(SUM, accesses, 2, NULL, 0);
    }
    check(duet_acquire(runtime, handles[pieces], DUET_R), duet_last_message(runtime));
    double value = sum;
    check(duet_release(runtime, handles[pieces]), duet_last_message(runtime));
    return value;
}

void peer_run(void (*program)(const void *context), const void *context)
{
    program(context);
}

void peer_submit(enum kernel kernel, const size_t *blocks, void *argument)
{
    struct duet_access accesses[BLOCKS_MAX];
    size_t count = kernels[kernel].blocks;
    for (size_t i = 0; i < count; i++)
        accesses[i] = (struct duet_access){handles[blocks[i]], kernels[kernel].modes[i]};
    submit(kernel, accesses, count, &argument, kernels[kernel].args_bytes);
}

void peer_wait(void)
{
    check(duet_wait(runtime), duet_last_message(runtime));
}

void peer_again(void (*program)(const void *context), const void *context, size_t times)
{
    struct duet_graph *graph;
    check(duet_graph_begin(runtime), duet_last_message(runtime));
    program(context);
    check(duet_graph_end(runtime, &graph), duet_last_message(runtime));
    for (size_t i = 2; i <= times; i++) {
        check(duet_graph_submit(runtime, graph), duet_last_message(runtime));
        if (i % AGAIN_WAIT == 0)
            peer_wait();
    }
    duet_graph_free(graph);
}

uint64_t peer_fibonacci(unsigned n, struct frame *frames)
{
    frames->n = n;
    submit(FIBONACCI, NULL, 0, &frames, sizeof frames);
    peer_wait();
    return frames->value[0] + frames->value[1];
}

uint64_t peer_fibonacci_wait(unsigned n)
{
    uint64_t value = 0;
    const struct call call = {n, &value};
    submit(FIBONACCI_WAIT, NULL, 0, &call, sizeof call);
    peer_wait();
    return value;
}
