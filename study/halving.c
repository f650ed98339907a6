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

static const struct duet__factor *factor_of(const struct duet__search *search, guint factor)
{
    return search->product->factors->pdata[factor];
}

/* Returns how far apart in number two settings are that are neighbours in this factor. */
static uint32_t stride_of(const struct duet__search *search, guint factor)
{
    uint32_t stride = 1;

    for (guint f = search->product->factors->len; f-- > factor + 1;)
        stride *= factor_of(search, f)->values->len;
    return stride;
}

static uint32_t value_of(const struct duet__search *search, uint32_t setting, guint factor)
{
    return setting / stride_of(search, factor) % factor_of(search, factor)->values->len;
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
    const int tile = duet__factor_place(search->product, "tile");
    size_t all = 0, kept = 0;

    for (size_t i = 0; i < count; i++)
        if (isfinite(seconds[i]))
            rated[all++] =
                (struct rated){.setting = list[i],
                               .group = tile < 0 ? 0 : value_of(search, list[i], (guint)tile),
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

/* Adds the settings that differ from one in one factor, by one step or, without order, at all. */
static void add_neighbours(const struct duet__search *search, uint32_t setting, GArray *list)
{
    for (guint f = 0; f < search->product->factors->len; f++) {
        const struct duet__factor *factor = factor_of(search, f);
        const uint32_t own = value_of(search, setting, f), stride = stride_of(search, f);

        for (uint32_t value = 0; value < factor->values->len; value++) {
            const uint32_t other = setting + (value - own) * stride; /* modulo 2^32 */
            bool beside = value + 1 == own || value == own + 1;

            if (value != own && (beside || !duet__factor_is_number(factor)))
                g_array_append_val(list, other);
        }
    }
}

/* Measures neighbours until all neighbours of the best settings were measured. */
static int refine(const struct duet__search *search, bool *seen, GArray *found)
{
    bool *done = g_new0(bool, search->product->count);
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
    size_t count = search->product->count;
    uint32_t *list = g_memdup2(search->order, count * sizeof *list);
    double *seconds = g_new(double, count);
    bool *seen = g_new0(bool, count);

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
