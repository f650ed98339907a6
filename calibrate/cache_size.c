/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates how much of the shared cache a program gets: the size that explains the times best. */
#include <math.h>

#include "calibrate/model.h"

enum {
    SIZES = 7,
    ENOUGH = 30000,    /* executions: the search walks the caches several times */
    LEAST_ROWS = 10,   /* least executions by which a kernel tells something of caches */
    LEAST_A_RUN = 500, /* least executions that are used of each run, if it has so many */
};

/* Sizes that are tried. A cache keeps a part over two octaves of sizes: finer steps tell
 * nothing. */
static const double parts[SIZES] = {1, 0.7071067812, 0.5, 0.3535533906, 0.25, 0.1767766953, 0.125};
static const double LARGEST = 0.5;  /* relative errors count as at most this */
static const double BETTER = 0.005; /* part by which the sum of squares has to fall */

/* State of the search. */
struct search {
    const struct duet__executions *executions;
    size_t limit; /* number of executions of each run that are used */
    struct duet_sharing given;
    duet__kernel_fit_fn *fit;
    double *missing; /* by operand, for the size that is tried */
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

/* Sum of scores over all kernels of the host with this size. */
static double score(const struct search *search, uint64_t bytes)
{
    const struct duet__executions *executions = search->executions;
    struct duet_sharing sharing = search->given;
    double sum = 0;
    sharing.shared_bytes = bytes;
    duet__missing_find(executions, &sharing, search->limit, search->missing);
    for (guint i = 0; i < executions->groups->len; i++) {
        const struct duet__group *group = duet__group_at(executions, i);
        struct duet__rows rows;
        struct duet__kernel_fit kernel;
        if (!group->host || group->members->len < LEAST_ROWS)
            continue;
        duet__rows_make(executions, group, search->missing, search->limit, &rows);
        if (rows.bytes > 0 && rows.count >= LEAST_ROWS) {
            search->fit(&rows, NULL, search->given.bandwidth_Bps, &kernel, NULL);
            sum += score_rows(&rows, &kernel);
        }
        duet__rows_fini(&rows);
    }
    return sum;
}

/* The given size is replaced only by one that is clearly better. */
uint64_t duet__cache_size(const struct duet__executions *executions,
                          const struct duet_sharing *given, duet__kernel_fit_fn *fit)
{
    struct search search = {.executions = executions, .given = *given, .fit = fit};
    uint64_t best = given->shared_bytes;
    double least = INFINITY;
    if (best == 0 || executions->operand_count == 0)
        return best;
    search.limit = MAX(ENOUGH / executions->run_count, LEAST_A_RUN);
    search.missing = g_new0(double, executions->operand_count + 1);
    for (unsigned i = 0; i < SIZES; i++) {
        uint64_t bytes = (uint64_t)llround((double)given->shared_bytes * parts[i]);
        double own = score(&search, bytes);
        if (own < least) {
            least = i ? own : own * (1 - BETTER);
            best = bytes;
        }
    }
    g_free(search.missing);
    return best;
}
