/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer of core_null: the same Cholesky-shaped graph of empty tasks, as OpenMP tasks with
 * dependencies in the compiler's own runtime. Prints nanoseconds a task, creation, dependencies and
 * execution together.
 *
 * Usage: openmp [TILES [REPEATS]]; OMP_NUM_THREADS chooses the threads, 1 to compare with
 * core_null.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench/timing.h"

static void nothing(void)
{
}

static size_t submit_cholesky(const char *tile, size_t n)
{
    size_t tasks = 0;
    for (size_t k = 0; k < n; k++) {
#pragma omp task depend(inout : tile[k * n + k])
        nothing();
        for (size_t i = k + 1; i < n; i++) {
#pragma omp task depend(in : tile[k * n + k]) depend(inout : tile[i * n + k])
            nothing();
        }
        for (size_t i = k + 1; i < n; i++) {
#pragma omp task depend(in : tile[i * n + k]) depend(inout : tile[i * n + i])
            nothing();
            for (size_t j = k + 1; j < i; j++) {
#pragma omp task depend(in : tile[i * n + k], tile[j * n + k]) depend(inout : tile[i * n + j])
                nothing();
            }
        }
        size_t below = n - k - 1;
        tasks += 1 + 2 * below + below * (below - 1) / 2;
    }
    return tasks;
}

int main(int argc, char **argv)
{
    size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 80;
    size_t repeats = argc > 2 ? strtoul(argv[2], NULL, 10) : 3;
    char *tiles = calloc(n * n, 1);
    if (!tiles)
        return 1;
    for (size_t r = 0; r < repeats; r++) {
        size_t tasks = 0;
        double start = seconds();
#pragma omp parallel
#pragma omp single
        tasks = submit_cholesky(tiles, n);
        printf("tasks %zu total_ns %.1f\n", tasks, 1e9 * (seconds() - start) / (double)tasks);
    }
    free(tiles);
    return 0;
}
