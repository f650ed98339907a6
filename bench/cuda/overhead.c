/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a task on a GPU costs in duet: tasks that enqueue nothing, or as little as there is, a
 * memset of one small block. Window, streams and policy come from the environment
 * (DUET_GPU_WINDOW, DUET_GPU_STREAMS, DUET_POLICY ...).
 *
 * Usage: cuda_overhead nothing|memset|chain [TASKS [REPEATS]]
 *   nothing  tasks without data, whose function enqueues nothing
 *   memset   tasks that write one of 1,024 blocks
 *   chain    tasks that write one block after each other
 * Prints a JSON object: nanoseconds a task in each repeat, after one more that warms up, by the
 * wall clock from the first submission to the end of the wait. What the tasks wrote is checked.
 * Without a GPU: status 77.
 */
#include <cuda_runtime_api.h>
#include <duet/duet.h>

#include "bench/timing.h"

enum { SKIPPED = 77, CELLS = 1024, CELL_BYTES = 256 };

struct bench {
    const char *name;
    size_t tasks, repeats, cells; /* cells that tasks write */
    struct duet_runtime *runtime;
    struct duet_codelet *codelet;
    struct duet_handle *handles[CELLS];
    unsigned char *memory;
};

/* What a task is to write; its repeat and number make it. */
struct order {
    unsigned char value;
};

static _Noreturn void fail(const struct bench *bench, int error, const char *what)
{
    fprintf(stderr, "cuda_overhead: %s: %s: %s\n", bench->name, duet_strerror(error), what);
    exit(1);
}

static void check(const struct bench *bench, int error)
{
    if (error)
        fail(bench, error, duet_last_message(bench->runtime));
}

static int enqueue_nothing(const struct duet_call *call)
{
    (void)call;
    return 0;
}

static int enqueue_memset(const struct duet_call *call)
{
    const struct order *order = call->args;
    const struct duet_buffer *cell = &call->buffers[0];
    cudaError_t status = cudaMemsetAsync(cell->data, order->value, cell->rows * cell->element_bytes,
                                         (cudaStream_t)call->stream);
    if (status == cudaSuccess)
        return 0;
    return duet_fail(call->message, DUET_ETASK, "cudaMemsetAsync: %s (%s)",
                     cudaGetErrorString(status), cudaGetErrorName(status));
}

static void open_runtime(struct bench *bench)
{
    struct duet_message message = {{0}};
    struct duet_config config;
    duet_config_init(&config);
    int error = duet_config_environment(&config, &message);
    if (config.gpus < 0)
        config.gpus = 1;
    if (!error)
        error = duet_open(&bench->runtime, &config, &message);
    if (error)
        fail(bench, error, message.text);
    struct duet_codelet_desc desc = {
        .name = bench->name,
        .implementations =
            &(struct duet_implementation){.arch = "cuda",
                                          .run = bench->cells ? enqueue_memset : enqueue_nothing},
        .implementation_count = 1,
    };
    check(bench, duet_codelet(bench->runtime, &desc, &bench->codelet));
    bench->memory = zeroed(CELLS * CELL_BYTES);
    for (size_t i = 0; i < bench->cells; i++)
        check(bench, duet_vector(bench->runtime, bench->memory + i * CELL_BYTES, CELL_BYTES, 1,
                                 &bench->handles[i]));
}

/* The value that is to be there in the end must differ from repeat to repeat. */
static unsigned char value_of(size_t repeat, size_t task)
{
    return (unsigned char)(task * 7 + repeat * 3 + 1);
}

/* Seconds of one repeat. */
static double submit_all(const struct bench *bench, size_t repeat)
{
    double start = seconds();
    for (size_t i = 0; i < bench->tasks; i++) {
        struct order order = {value_of(repeat, i)};
        struct duet_access access = {.handle =
                                         bench->cells ? bench->handles[i % bench->cells] : NULL,
                                     .mode = DUET_RW};
        struct duet_task_desc task = {
            .codelet = bench->codelet,
            .accesses = &access,
            .access_count = bench->cells ? 1 : 0,
            .args = &order,
            .args_bytes = sizeof order,
        };
        check(bench, duet_submit(bench->runtime, &task));
    }
    check(bench, duet_wait(bench->runtime));
    return seconds() - start;
}

/* Each cell has to hold what the last task on it wrote, as far as there was one. */
static void verify(const struct bench *bench, size_t repeat)
{
    for (size_t i = 0; i < bench->cells && i < bench->tasks; i++) {
        size_t last = i + (bench->tasks - 1 - i) / bench->cells * bench->cells;
        check(bench, duet_acquire(bench->runtime, bench->handles[i], DUET_R));
        for (size_t k = 0; k < CELL_BYTES; k++)
            if (bench->memory[i * CELL_BYTES + k] != value_of(repeat, last))
                fail(bench, DUET_ETASK, "a cell does not hold what its last task wrote");
        check(bench, duet_release(bench->runtime, bench->handles[i]));
    }
}

static void close_runtime(struct bench *bench)
{
    for (size_t i = 0; i < bench->cells; i++)
        check(bench, duet_unregister(bench->runtime, bench->handles[i]));
    int error = duet_close(bench->runtime);
    free(bench->memory);
    if (error) {
        bench->runtime = NULL;
        fail(bench, error, "closing");
    }
}

int main(int argc, char **argv)
{
    struct bench bench = {.name = argc > 1 ? argv[1] : "",
                          .tasks = argc > 2 ? strtoul(argv[2], NULL, 10) : 20000,
                          .repeats = argc > 3 ? strtoul(argv[3], NULL, 10) : 3};
    bool nothing = !strcmp(bench.name, "nothing"), chain = !strcmp(bench.name, "chain");
    if ((!nothing && !chain && strcmp(bench.name, "memset") != 0) || !bench.tasks ||
        !bench.repeats) {
        fprintf(stderr, "usage: cuda_overhead nothing|memset|chain [TASKS [REPEATS]]\n");
        return 2;
    }
    int count = 0;
    cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess || !count) {
        fprintf(stderr, "cuda_overhead: skipped: no GPU: %s (%s); `duet info` says more\n",
                cudaGetErrorString(status), cudaGetErrorName(status));
        return SKIPPED;
    }
    bench.cells = nothing ? 0 : chain ? 1 : CELLS;
    open_runtime(&bench);
    printf("{\"peer\": \"duet\", \"benchmark\": \"%s\", \"tasks\": %zu, \"verified\": %s, "
           "\"unit\": \"ns/task\", \"values\": [",
           bench.name, bench.tasks, nothing ? "null" : "true");
    for (size_t i = 0; i <= bench.repeats; i++) {
        double elapsed = submit_all(&bench, i);
        verify(&bench, i);
        if (i > 0)
            printf("%s%.6g", i > 1 ? ", " : "", 1e9 * elapsed / (double)bench.tasks);
    }
    puts("]}");
    close_runtime(&bench);
    return 0;
}
