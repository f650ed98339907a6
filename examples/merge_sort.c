/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorts numbers: a task cuts its data into halves, has them sorted by two children, waits, and
 * merges what they have left. Children run anywhere; when the wait returns, the halves are in the
 * host's memory.
 *
 *     merge_sort [count] [--duet-cpus=2]      sorts on this machine
 *     merge_sort --duet-simulate=idgraf       the same tasks in simulated time, without data
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <duet/duet.h>
#include <duet/trace.h>

enum { FEW = 16384 }; /* numbers sorted without further tasks */

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The kernel for few numbers. */
static int sort_few(const struct duet_call *call)
{
    const struct duet_buffer *numbers = &call->buffers[0];
    qsort(numbers->data, numbers->rows, sizeof(double), compare);
    return DUET_OK;
}

/* Merges the sorted halves of so many numbers. */
static int merge(double *numbers, size_t half, size_t count)
{
    double *left = malloc(half * sizeof *left);
    if (!left)
        return DUET_ENOMEM;
    memcpy(left, numbers, half * sizeof *left);
    for (size_t i = 0, j = half, k = 0; i < half; k++)
        numbers[k] = j == count || left[i] <= numbers[j] ? left[i++] : numbers[j++];
    free(left);
    return DUET_OK;
}

static int sort(struct duet_expansion *expansion, const struct duet_call *call)
{
    double *numbers = call->buffers[0].data; /* NULL in simulations */
    size_t count = call->buffers[0].rows, half = count / 2;
    const size_t begins[] = {0, half}, counts[] = {half, count - half};
    int error = DUET_OK;
    for (unsigned i = 0; i < 2 && !error; i++) {
        struct duet_access access = {NULL, DUET_RW};
        error = duet_expand_block(expansion, 0, begins[i], 0, counts[i], 1, &access.handle);
        const struct duet_task_desc task =
            {.codelet = duet_codelet_find(call->runtime, counts[i] <= FEW ? "sort_few" : "sort"),
             .accesses = &access,
             .access_count = 1,
             .args = &counts[i],
             .args_bytes = sizeof counts[i]};
        if (!error)
            error = duet_expand_submit(expansion, &task);
    }
    if (!error)
        error = duet_expand_wait(expansion);
    return error || !numbers ? error : merge(numbers, half, count);
}

/* Seconds of a task by itself, for simulations. */
static double merge_seconds(const void *args, const char *arch)
{
    return 3e-9 * (double)*(const size_t *)args;
}

static double few_seconds(const void *args, const char *arch)
{
    return 100e-9 * (double)*(const size_t *)args;
}

static int make_codelets(struct duet_runtime *duet)
{
    const struct duet_implementation where = {"cpu", sort_few};
    const struct duet_codelet_desc whole = {.name = "sort",
                                            .cost = merge_seconds,
                                            .expand = sort,
                                            .waits = true};
    const struct duet_codelet_desc few = {.name = "sort_few",
                                          .implementations = &where,
                                          .implementation_count = 1,
                                          .cost = few_seconds};
    struct duet_codelet *made;
    int error = duet_register_codelet(duet, &whole, &made);
    return error ? error : duet_register_codelet(duet, &few, &made);
}

static int sort_all(struct duet_runtime *duet, double *numbers, size_t count)
{
    struct duet_access access = {NULL, DUET_RW};
    int error = make_codelets(duet);
    if (!error)
        error = duet_register_vector(duet, numbers, count, sizeof *numbers, &access.handle);
    const struct duet_task_desc task = {.codelet = duet_codelet_find(duet, count <= FEW ? "sort_few"
                                                                                        : "sort"),
                                        .accesses = &access,
                                        .access_count = 1,
                                        .args = &count,
                                        .args_bytes = sizeof count};
    if (!error)
        error = duet_submit(duet, &task);
    return error ? error : duet_unregister(duet, access.handle);
}

static int run(struct duet_runtime *duet, double *numbers, size_t count)
{
    struct duet_stats stats;
    uint64_t state = 1;
    const bool computes = duet_computes(duet);
    for (size_t i = 0; computes && i < count; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        numbers[i] = (double)(state >> 11);
    }
    int error = sort_all(duet, numbers, count);
    for (size_t i = 1; computes && i < count && !error; i++)
        error = numbers[i - 1] <= numbers[i] ? DUET_OK : DUET_EIO;
    if (error)
        return error;
    duet_stats(duet, &stats);
    printf("sorted %zu numbers by %" PRIu64 " tasks in %.3f ms\n", count, stats.tasks,
           1e3 * stats.makespan_s);
    return DUET_OK;
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
    size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 200000;
    double *numbers = malloc(count * sizeof *numbers);
    if (!error && (count == 0 || !numbers))
        error = duet_fail(&message, DUET_EINVAL, "no memory for %zu numbers", count);
    if (!error)
        error = duet_open(&duet, &config, &message);
    if (error) {
        fprintf(stderr, "merge_sort: %s\n", message.text);
        free(numbers);
        return 2;
    }
    error = run(duet, numbers, count);
    if (error)
        fprintf(stderr, "merge_sort: %s: %s\n", duet_strerror(error), duet_last_message(duet));
    int closed = duet_close(duet);
    free(numbers);
    return closed || error;
}
