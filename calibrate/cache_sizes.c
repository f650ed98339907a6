/* SPDX-License-Identifier: Apache-2.0 */
/* What a program gets of caches: the sizes with which misses explain the times best. */
#include <math.h>

#include "calibrate/model.h"

enum {
    PRIVATE = 3,
    SHARED = 7,
    ENOUGH = 30000,    /* executions: the search walks the caches some twenty times */
    LEAST_ROWS = 10,   /* of a kernel that says something about caches */
    LEAST_A_RUN = 500, /* executions looked at, if it has so many */
};

/* A cache keeps a part that falls over two octaves of sizes: finer steps would tell nothing. */
static const double private_parts[PRIVATE] = {0.5, 1, 2};
static const double shared_parts[SHARED] = {0.125, 0.1767766953, 0.25, 0.3535533906,
                                            0.5,   0.7071067812, 1};
static const double LARGEST = 0.5;  /* relative error, beyond which an execution says no more */
static const double BETTER = 0.005; /* by which the sum of squares has to fall */

/* What the search works on. */
struct search {
    const struct duet__executions *executions;
    size_t limit; /* executions of each run that are looked at */
    struct duet_sharing given;
    struct duet__miss *misses; /* by operand, with the sizes at hand */
};

/* Sum of squares of relative errors of one group, weighted by its time. */
static double score_rows(const struct duet__rows *rows, const struct duet__kernel_fit *kernel)
{
    double sum = 0, time = 0;
    size_t count = 0;
    for (size_t i = 0; i < rows->count; i++) {
        double expected, error;
        if (!duet__row_alone(&rows->list[i]))
            continue;
        expected = duet__kernel_seconds(kernel, rows, i);
        error = fmin(fabs(rows->seconds[i] / expected - 1), LARGEST);
        sum += error * error;
        time += fmin(rows->seconds[i], (1 + LARGEST) * expected);
        count++;
    }
    return count >= LEAST_ROWS ? sum / (double)count * time : 0;
}

/* The sizes with these numbers; a cache of unknown size has none. */
static struct duet_sharing sizes_of(const struct search *search, unsigned private_, unsigned shared)
{
    struct duet_sharing sizes = search->given;
    sizes.private_bytes = (uint64_t)llround((double)sizes.private_bytes * private_parts[private_]);
    sizes.shared_bytes = (uint64_t)llround((double)sizes.shared_bytes * shared_parts[shared]);
    return sizes;
}

/* The sum over all kernels of the host with these two sizes. */
static double score(const struct search *search, unsigned private_, unsigned shared)
{
    const struct duet__executions *executions = search->executions;
    const struct duet_sharing sizes = sizes_of(search, private_, shared);
    double sum = 0;
    duet__misses_find(executions, &sizes, search->limit, search->misses);
    for (guint i = 0; i < executions->groups->len; i++) {
        const struct duet__group *group = duet__group_at(executions, i);
        struct duet__rows rows;
        struct duet__kernel_fit kernel;
        if (!group->host || group->members->len < LEAST_ROWS)
            continue;
        duet__rows_make(executions, group, search->misses, search->limit, &rows);
        if (rows.columns && rows.count >= LEAST_ROWS) {
            duet__kernel_fit(&rows, NULL, search->given.bandwidth_Bps, &kernel, NULL);
            sum += score_rows(&rows, &kernel);
        }
        duet__rows_fini(&rows);
    }
    return sum;
}

/* Tries all sizes; given ones are left only for others that are clearly better. */
static struct duet_sharing best_of(const struct search *search)
{
    enum { GIVEN_PRIVATE = 1, GIVEN_SHARED = SHARED - 1 };
    double least[PRIVATE]; /* scores with the best shared size for each private one */
    unsigned shared[PRIVATE], best = GIVEN_PRIVATE;
    for (unsigned p = 0; p < PRIVATE; p++) {
        double given = score(search, p, GIVEN_SHARED);
        least[p] = given * (1 - BETTER);
        shared[p] = GIVEN_SHARED;
        for (unsigned s = 0; s < GIVEN_SHARED; s++) {
            double own = score(search, p, s);
            if (own < least[p]) {
                least[p] = own;
                shared[p] = s;
            }
        }
        if (shared[p] == GIVEN_SHARED)
            least[p] = given;
    }
    for (unsigned p = 0; p < PRIVATE; p++)
        if (least[p] < least[GIVEN_PRIVATE] * (1 - BETTER) && least[p] < least[best])
            best = p;
    return sizes_of(search, best, shared[best]);
}

struct duet_sharing duet__cache_sizes(const struct duet__executions *executions,
                                      const struct duet_sharing *given)
{
    struct search search = {.executions = executions, .given = *given};
    struct duet_sharing best;
    /* without a private cache nothing misses, and without operands nothing is touched */
    if (given->private_bytes == 0 || executions->operand_count == 0)
        return *given;
    search.limit = MAX(ENOUGH / executions->run_count, LEAST_A_RUN);
    search.misses = g_new0(struct duet__miss, executions->operand_count + 1);
    best = best_of(&search);
    g_free(search.misses);
    return best;
}
