/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes the n-th Fibonacci number with a task for each call of the recursion, which waits for
 * the tasks of its two parts: only scheduling, as runtimes are compared by (Duran et al., ICPP
 * 2009). Calls of numbers up to `tile` run inside their task. There is no data: tasks run on CPUs
 * and return results on their parents' stacks.
 */
#include <math.h>
#include <stdlib.h>

#include "workloads/tiles.h"

enum { N_MAX = 90, TASKS_MAX = 100000000 };

static const double CALL_S = 1e-9; /* estimated time of a call in simulations */

static const char *const kernels[] = {NULL};

/* Result of a run. */
struct result {
    unsigned n;
    uint64_t value;
};

/* Arguments of a task. */
struct call {
    unsigned n, tile;
    uint64_t *value;
};

static uint64_t recursive(unsigned n)
{
    return n < 2 ? n : recursive(n - 1) + recursive(n - 2);
}

/* f(0) = first, f(1) = second, f(n) = f(n - 1) + f(n - 2) + more. */
static double series(uint64_t n, double first, double second, double more)
{
    for (; n; n--) {
        double next = first + second + more;
        first = second;
        second = next;
    }
    return first;
}

/* Number of calls of the recursion without tasks. */
static double calls_of(unsigned n)
{
    return series(n, 1, 1, 1);
}

/* Number of tasks: one for a number up to the tile, else one more than its two parts have. */
static double fibonacci_count(const struct duet__problem *problem)
{
    return problem->n <= problem->tile ? 1 : series(problem->n - problem->tile + 1, 1, 1, 1);
}

static int fibonacci_check(const struct duet__problem *problem, struct duet_message *message)
{
    int error = duet__settings_check(problem, NULL, message);
    if (error)
        return error;
    if (!problem->n || problem->n > N_MAX || !problem->tile || problem->tile > problem->n)
        return duet_fail(message, DUET_EINVAL,
                         "the Fibonacci number %llu by calls of up to %llu at once is not "
                         "possible: give an n of 1 to %d and a tile of 1 to n",
                         (unsigned long long)problem->n, (unsigned long long)problem->tile, N_MAX);
    if (fibonacci_count(problem) > TASKS_MAX)
        return duet_fail(message, DUET_EINVAL,
                         "%.0f tasks are too many: at most %d are possible, use a larger tile",
                         fibonacci_count(problem), TASKS_MAX);
    if (duet__several_nodes(problem))
        return duet_fail(message, DUET_EINVAL,
                         "fibonacci has no data that could be dealt out: --nodes 1");
    return DUET_OK;
}

static uint64_t fibonacci_tasks(const struct duet__problem *problem)
{
    return (uint64_t)fibonacci_count(problem);
}

/* Flops: the additions. */
static double fibonacci_flops(const struct duet__problem *problem)
{
    return series(problem->n, 0, 0, 1);
}

/* Seconds of a task by itself, without its children. */
static double fibonacci_cost(const void *args, const char *arch)
{
    const struct call *call = args;
    return CALL_S * (call->n <= call->tile ? calls_of(call->n) : 1);
}

static double additions(const void *args)
{
    const struct call *call = args;
    return call->n <= call->tile ? fmax(series(call->n, 0, 0, 1), 1) : 1;
}

static int fibonacci(struct duet_expansion *expansion, const struct duet_call *call)
{
    const struct call *self = call->args;
    uint64_t values[2] = {0, 0};
    int error = DUET_OK;
    if (self->n <= self->tile) {
        *self->value = duet_computes(call->runtime) ? recursive(self->n) : 0;
        return DUET_OK;
    }
    for (unsigned i = 0; i < 2 && !error; i++) {
        const struct call part = {self->n - 1 - i, self->tile, &values[i]};
        const struct duet_task_desc desc = {.codelet =
                                                duet_codelet_find(call->runtime, "fibonacci"),
                                            .args = &part,
                                            .args_bytes = sizeof part};
        error = duet_expand_submit(expansion, &desc);
    }
    /* waits even if the second part was not submitted: the first one writes to this stack */
    const int waited = duet_expand_wait(expansion);
    error = error ? error : waited;
    if (!error)
        *self->value = values[0] + values[1];
    return error;
}

static int fibonacci_build(const struct duet__workload *self, struct duet_runtime *runtime,
                           const struct duet__problem *problem, void **state,
                           struct duet_message *message)
{
    static const struct duet_codelet_desc desc = {.name = "fibonacci",
                                                  .flops = additions,
                                                  .cost = fibonacci_cost,
                                                  .expand = fibonacci,
                                                  .waits = true};
    struct duet_codelet *codelet = duet_codelet_find(runtime, desc.name);
    struct result *own = calloc(1, sizeof *own), *result = problem->data ? problem->data : own;
    int error = own ? DUET_OK : DUET_ENOMEM;
    if (!error && !codelet)
        error = duet_register_codelet(runtime, &desc, &codelet);
    const struct call root = {(unsigned)problem->n, (unsigned)problem->tile, &result->value};
    const struct duet_task_desc task = {.codelet = codelet,
                                        .args = &root,
                                        .args_bytes = sizeof root};
    if (!error)
        error = duet_submit(runtime, &task);
    if (error)
        free(own);
    *state = error ? NULL : own;
    return error;
}

static int fibonacci_generate(const struct duet__workload *self,
                              const struct duet__problem *problem, void **data,
                              struct duet_message *message)
{
    struct result *result = calloc(1, sizeof *result);
    if (!result)
        return duet_fail(message, DUET_ENOMEM, "no memory for the result");
    result->n = (unsigned)problem->n;
    *data = result;
    return DUET_OK;
}

static void fibonacci_fill(void *data, const struct duet_runtime *runtime)
{
    ((struct result *)data)->value = UINT64_MAX;
}

static int fibonacci_retrieve(struct duet_runtime *runtime, void *state)
{
    return duet_wait(runtime);
}

static int fibonacci_verify(void *data, const struct duet__judging *how,
                            struct duet__verdict *verdict, struct duet_message *message)
{
    const struct result *result = data;
    uint64_t values[2] = {0, 1};
    for (unsigned i = 0; i < result->n; i++) {
        uint64_t next = values[0] + values[1];
        values[0] = values[1];
        values[1] = next;
    }
    *verdict = (struct duet__verdict){.formula = "the number is another one",
                                      .residual = result->value != values[0],
                                      .threshold = 1};
    return DUET_OK;
}

const struct duet__workload duet__workload_fibonacci = {
    .name = "fibonacci",
    .description = "the n-th Fibonacci number by recursion, a task for each call beyond tile",
    .source = "Duran, Teruel, Ferrer, Martorell, Ayguade, Barcelona OpenMP tasks suite, ICPP 2009 "
              "(fib); without data",
    .kernels = kernels,
    .default_n = 24,
    .default_tile = 8,
    .real_n = 32,
    .real_tile = 16,
    .check = fibonacci_check,
    .flops = fibonacci_flops,
    .tasks = fibonacci_tasks,
    .build = fibonacci_build,
    .fini = free,
    .generate = fibonacci_generate,
    .fill = fibonacci_fill,
    .retrieve = fibonacci_retrieve,
    .verify = fibonacci_verify,
    .discard = free,
};
