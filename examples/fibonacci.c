/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task that waits for its children: the n-th Fibonacci number with a task for each call of the
 * recursion, as OpenMP writes it with `task` and `taskwait`.
 *
 *     fibonacci [n] [--duet-cpus=2]           computes on this machine
 *     fibonacci --duet-simulate=idgraf        computes in simulated time, as each task takes 1 us
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <duet/duet.h>
#include <duet/trace.h>

/* Argument of a task: a number, and the address of its result. Copied with the task. */
struct call {
    unsigned n;
    uint64_t *value;
};

static int fibonacci(struct duet_expansion *expansion, const struct duet_call *call)
{
    const struct call *self = call->args;
    uint64_t values[2];
    int error = DUET_OK;
    if (self->n < 2) {
        *self->value = self->n;
        return DUET_OK;
    }
    for (unsigned i = 0; i < 2 && !error; i++) {
        const struct call child = {self->n - 1 - i, &values[i]};
        const struct duet_task_desc task = {.codelet =
                                                duet_codelet_find(call->runtime, "fibonacci"),
                                            .args = &child,
                                            .args_bytes = sizeof child};
        error = duet_expand_submit(expansion, &task);
    }
    /* Waits in any case: a child submitted before an error writes to this function's values. */
    const int waited = duet_expand_wait(expansion);
    error = error ? error : waited;
    if (!error) /* both values are there */
        *self->value = values[0] + values[1];
    return error;
}

/* Time of a call by itself, without its children: for simulations. */
static double seconds(const void *args, const char *arch)
{
    return 1e-6;
}

static uint64_t serial(unsigned n)
{
    return n < 2 ? n : serial(n - 1) + serial(n - 2);
}

static int compute(struct duet_runtime *duet, unsigned n)
{
    const struct duet_codelet_desc desc = {.name = "fibonacci",
                                           .cost = seconds,
                                           .expand = fibonacci,
                                           .waits = true};
    struct duet_codelet *codelet;
    struct duet_stats stats;
    uint64_t value = 0;
    const struct call call = {n, &value};
    int error = duet_register_codelet(duet, &desc, &codelet);
    const struct duet_task_desc task = {.codelet = codelet,
                                        .args = &call,
                                        .args_bytes = sizeof call};
    if (!error)
        error = duet_submit(duet, &task);
    if (!error)
        error = duet_wait(duet);
    if (error)
        return error;
    duet_stats(duet, &stats);
    printf("fibonacci(%u) = %" PRIu64 " by %" PRIu64 " tasks in %.3f ms\n", n, value, stats.tasks,
           1e3 * stats.makespan_s);
    return value == serial(n) ? DUET_OK : DUET_EIO;
}

int main(int argc, char **argv)
{
    struct duet_message message = {""};
    struct duet_config config;
    struct duet_runtime *duet = NULL;
    duet_config_init(&config);
    int error = duet_config_environment(&config, &message);
    if (!error)
        error = duet_config_arguments(&config, &argc, argv, &message);
    if (!error)
        error = duet_open(&duet, &config, &message);
    if (error) {
        fprintf(stderr, "fibonacci: %s\n", message.text);
        return 2;
    }
    error = compute(duet, argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 16);
    if (error)
        fprintf(stderr, "fibonacci: %s: %s\n", duet_strerror(error), duet_last_message(duet));
    return duet_close(duet) || error;
}
