/* SPDX-License-Identifier: Apache-2.0 */
/* The search of `duet tune`: successive halving, and neighbours of the best. */
#include "study/halving.h"

#include <math.h>
#include <stdlib.h>

enum { LEAST = 2 }; /* settings of each group that go on */

/* A setting among those of its group. */
struct rated {
    uint32_t setting, group, rank;
    double seconds;
};

static int compare_in_groups(const void *first, const void *second)
{
    const struct rated *a = first, *b = second;

    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    if (a->seconds < b->seconds || a->seconds > b->seconds)
        return a->seconds < b->seconds ? -1 : 1;
    return a->setting < b->setting ? -1 : a->setting > b->setting;
}

static int compare_ranks(const void *first, const void *second)
{
    const struct rated *a = first, *b = second;

    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return a->group > b->group ? -1 : a->group < b->group;
}

static gint compare_found(gconstpointer first, gconstpointer second)
{
    const struct duet__found *a = first, *b = second;

    if (a->seconds < b->seconds || a->seconds > b->seconds)
        return a->seconds < b->seconds ? -1 : 1;
    return a->setting < b->setting ? -1 : a->setting > b->setting;
}

/* Returns how far apart in number two settings are that are neighbours in this dimension. */
static uint32_t stride_of(const struct duet__search *search, size_t dimension)
{
    uint32_t stride = 1;

    for (size_t d = search->dimension_count; d-- > dimension + 1;)
        stride *= search->dimensions[d].values;
    return stride;
}

static uint32_t value_of(const struct duet__search *search, uint32_t setting, size_t dimension)
{
    return setting / stride_of(search, dimension) % search->dimensions[dimension].values;
}

static uint32_t group_of(const struct duet__search *search, uint32_t setting)
{
    for (size_t d = 0; d < search->dimension_count; d++)
        if (search->dimensions[d].apart)
            return value_of(search, setting, d);
    return 0;
}

/*
 * Leaves the best of each group in `list`, the best of all groups first (before these the largest
 * tiles, which are simulated soonest), so that its beginning, too, has something of each. Returns
 * their number.
 */
static size_t keep_best(const struct duet__search *search, uint32_t *list, size_t count,
                        const double *seconds)
{
    struct rated *rated = g_new(struct rated, count + 1);
    size_t all = 0, kept = 0;

    for (size_t i = 0; i < count; i++)
        if (isfinite(seconds[i]))
            rated[all++] = (struct rated){.setting = list[i],
                                          .group = group_of(search, list[i]),
                                          .seconds = seconds[i]};
    qsort(rated, all, sizeof *rated, compare_in_groups);
    for (size_t first = 0, end; first < all; first = end) {
        size_t most;

        for (end = first; end < all && rated[end].group == rated[first].group; end++)
            rated[end].rank = (uint32_t)(end - first);
        most = MAX(LEAST, (end - first + search->part - 1) / search->part);
        for (size_t i = first; i < MIN(end, first + most); i++)
            rated[kept++] = rated[i];
    }
    qsort(rated, kept, sizeof *rated, compare_ranks);
    for (size_t i = 0; i < kept; i++)
        list[i] = rated[i].setting;
    g_free(rated);
    return kept;
}

/* Measures the settings of a list that the last level lacks, and adds them to `found`. */
static int measure_last(const struct duet__search *search, const uint32_t *list, size_t count,
                        bool *seen, GArray *found)
{
    uint32_t *new = g_new(uint32_t, count + 1);
    double *seconds = g_new(double, count + 1);
    size_t left = 0;
    int error;

    for (size_t i = 0; i < count; i++) {
        if (!seen[list[i]])
            new[left++] = list[i];
        seen[list[i]] = true;
    }
    error = left ? search->measure(search->data, search->levels - 1, new, left, seconds) : 0;
    for (size_t i = 0; i < left && !error; i++) {
        const struct duet__found one = {new[i], seconds[i]};

        if (isfinite(seconds[i]))
            g_array_append_val(found, one);
    }
    g_array_sort(found, compare_found);
    g_free(new);
    g_free(seconds);
    return error;
}

/* Adds the settings that differ from one in one dimension, by one step or, without order, at
   all. */
static void add_neighbours(const struct duet__search *search, uint32_t setting, GArray *list)
{
    for (size_t d = 0; d < search->dimension_count; d++) {
        const struct duet__dimension *dimension = &search->dimensions[d];
        const uint32_t own = value_of(search, setting, d), stride = stride_of(search, d);

        for (uint32_t value = 0; value < dimension->values; value++) {
            const uint32_t other = setting + (value - own) * stride; /* modulo 2^32 */
            bool beside = value + 1 == own || value == own + 1;

            if (value != own && (beside || !dimension->ordered))
                g_array_append_val(list, other);
        }
    }
}

/* Measures neighbours until all neighbours of the best settings were measured. */
static int refine(const struct duet__search *search, bool *seen, GArray *found)
{
    bool *done = g_new0(bool, search->count);
    guint tried;
    int error = 0;

    do {
        g_autoptr(GArray) list = g_array_new(FALSE, FALSE, sizeof(uint32_t));

        tried = 0;
        for (guint i = 0; i < MIN(found->len, search->tops); i++) {
            const uint32_t setting = g_array_index(found, struct duet__found, i).setting;

            if (!done[setting])
                add_neighbours(search, setting, list);
            tried += !done[setting];
            done[setting] = true;
        }
        error = measure_last(search, (const uint32_t *)(void *)list->data, list->len, seen, found);
    } while (tried && !error);
    g_free(done);
    return error;
}

GArray *duet__search(const struct duet__search *search, int *error)
{
    GArray *found = g_array_new(FALSE, FALSE, sizeof(struct duet__found));
    uint32_t *list = g_memdup2(search->order, search->count * sizeof *list);
    double *seconds = g_new(double, search->count);
    bool *seen = g_new0(bool, search->count);
    size_t count = search->count;

    *error = 0;
    for (unsigned level = 0; level + 1 < search->levels && !*error; level++) {
        *error = search->measure(search->data, level, list, count, seconds);
        if (!*error)
            count = keep_best(search, list, count, seconds);
    }
    if (!*error)
        *error = measure_last(search, list, count, seen, found);
    if (!*error)
        *error = refine(search, seen, found);
    g_free(list);
    g_free(seconds);
    g_free(seen);
    return found;
}
