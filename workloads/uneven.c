/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts elements into pieces of uneven length, for workloads that are hard to balance. */
#include <stdlib.h>

#include "workloads/tiles.h"

enum { STREAM = 1000 /* of random numbers, which no matrix has */ };

int duet__uneven_check(const struct duet__problem *problem,
                       const struct duet__parameter *parameters, const char *name, uint64_t most,
                       struct duet_message *message)
{
    int error = duet__problem_check(problem, parameters, message);
    if (error)
        return error;
    uint64_t count = duet__tile_count(problem->n, problem->tile);
    if (problem->tile <= problem->n && count <= most)
        return 0;
    return duet_fail(message, DUET_EINVAL,
                     "n = %llu in %s of %llu in the mean makes %llu of them, 1 to %llu are "
                     "possible: use a tile of %llu to %llu",
                     (unsigned long long)problem->n, name, (unsigned long long)problem->tile,
                     (unsigned long long)(problem->tile > problem->n ? 0 : count),
                     (unsigned long long)most,
                     (unsigned long long)duet__tile_count(problem->n, most),
                     (unsigned long long)problem->n);
}

/* Length of a piece relative to the mean, from a number drawn from [-1/2, 1/2). */
static double length(char sizes, double drawn)
{
    if (sizes == 'f')
        return 1;
    if (sizes == 'u')
        return 1 + 1.75 * drawn;
    return drawn < -0.4 ? 5.5 : 0.5;
}

uint64_t *duet__uneven_cuts(const struct duet__problem *problem,
                            const struct duet__parameter *parameters)
{
    const struct duet__storage drawn = {.element_bytes = sizeof(double),
                                        .contents = DUET__RANDOM,
                                        .key = duet__data_key(problem->seed, STREAM)};
    const char sizes = *duet__setting(problem, parameters, "sizes");
    uint64_t count = duet__tile_count(problem->n, problem->tile);
    uint64_t *cuts = malloc((count + 1) * sizeof *cuts);
    double total = 0, before = 0;
    if (!cuts)
        return NULL;
    for (uint64_t i = 0; i < count; i++)
        total += length(sizes, duet__storage_initial(&drawn, i, 0));
    for (uint64_t i = 0; i < count; i++) {
        cuts[i] = i + (uint64_t)((double)(problem->n - count) * before / total);
        before += length(sizes, duet__storage_initial(&drawn, i, 0));
    }
    cuts[count] = problem->n;
    return cuts;
}
