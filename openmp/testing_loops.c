/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that can be cut into parts, and some that cannot; record_test.py has the numbers of
 * parts. */
#include <stdio.h>
#include <string.h>

static double values[64];

static void compute(int i)
{
    volatile double sum = 0;
    for (int k = 0; k < 100000; k++)
        sum += k;
    values[i] += sum;
}

int main(int argc, char **argv)
{
    /* each iteration takes at least 0.1 ms: 100,000 times a load and a store */
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < 16; i++)
        compute(i);
#pragma omp parallel for
    for (int i = 0; i < 16; i++)
        compute(i);
#pragma omp parallel
    {
#pragma omp for schedule(dynamic) nowait
        for (int i = 0; i < 2; i++)
            compute(i);
#pragma omp for
        for (int i = 0; i < 16; i++)
            compute(32 + i);
#pragma omp single
        compute(63);
    }
    /* not cut: it creates tasks, or is in an inner region */
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < 4; i++) {
#pragma omp task
        compute(i);
    }
#pragma omp parallel num_threads(1)
    {
#pragma omp parallel for num_threads(1) schedule(dynamic)
        for (int i = 0; i < 4; i++)
            compute(i);
    }
    if (argc > 1 && strcmp(argv[1], "locks") == 0) {
#pragma omp parallel for
        for (int i = 0; i < 4; i++) {
#pragma omp critical
            values[0] += i;
        }
#pragma omp parallel
        {
#pragma omp sections
            {
#pragma omp section
                compute(0);
#pragma omp section
                compute(1);
            }
        }
    }
    /* the graph ends with the last region */
    for (int i = 0; i < 64; i++)
        compute(i);
    return 0;
}
