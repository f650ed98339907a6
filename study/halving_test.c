/* SPDX-License-Identifier: Apache-2.0 */
/* Searches in made-up tables: their results, and how much is measured for them. */
#include "study/halving.h"

#include <assert.h>
#include <math.h>

enum { TILES = 5, POLICIES = 8, WINDOWS = 4, ALL = TILES * POLICIES * WINDOWS, LEVELS = 3 };

/* Returns a study of all tiles, policies and windows, in this order. */
static struct duet__study *make_study(void)
{
    static const char *const values[][2] = {
        {"tile", "1..5"},
        {"policy", "eager,ws,data-aware,locality-aware,heft,no-prio,cp,dmdas"},
        {"gpu-window", "1..4"},
    };
    struct duet__study *study = duet__study_new();

    for (int i = 0; i < 3; i++)
        if (duet__study_add(study->products->pdata[0],
                            duet__option_find(values[i][0], DUET__IN_TUNE), values[i][1], NULL))
            g_error("%s takes no %s", values[i][0], values[i][1]);
    assert(!duet__study_number(study, NULL) && study->count == ALL);
    return study;
}

struct table {
    unsigned measured[LEVELS][ALL]; /* number of measurements of each setting */
    size_t most;                    /* measurements that there is time for */
    size_t made;
    int error; /* returned by the second call */
    unsigned calls;
};

/* Returns the seconds of a setting. The best is (3, 5, 2), by 1 % and more. Rough levels take small
   tiles for much better, and policy 4 for as good as 5. */
static double seconds_of(unsigned level, uint32_t setting)
{
    const uint32_t tile = setting / WINDOWS / POLICIES, window = setting % WINDOWS;
    const uint32_t policy = setting / WINDOWS % POLICIES;
    double rough = level + 1 == LEVELS ? 0 : 1;

    return 1 + 0.02 * fabs(tile - 3.0) + rough * 0.5 * tile + 0.01 * fabs(window - 2.0) +
           (policy == 5   ? 0
            : policy == 4 ? 0.03 * (1 - rough)
                          : 0.05 + 0.01 * policy);
}

static int measure(void *data, unsigned level, const uint32_t *settings, size_t count,
                   double *seconds)
{
    struct table *table = data;

    for (size_t i = 0; i < count; i++) {
        assert(settings[i] < ALL);
        table->measured[level][settings[i]]++;
        seconds[i] = table->made++ < table->most ? seconds_of(level, settings[i]) : INFINITY;
    }
    return table->calls++ == 1 ? table->error : 0;
}

static GArray *look(struct table *table, unsigned levels, size_t tops, int *error)
{
    uint32_t order[ALL];
    struct duet__study *study = make_study();
    const struct duet__search search = {.product = study->products->pdata[0],
                                        .order = order,
                                        .levels = levels,
                                        .part = 8,
                                        .tops = tops,
                                        .measure = measure,
                                        .data = table};
    GArray *found;

    for (uint32_t i = 0; i < ALL; i++)
        order[i] = i * 67 % ALL;
    found = duet__search(&search, error);
    duet__study_free(study);
    return found;
}

static unsigned count_level(const struct table *table, unsigned level)
{
    unsigned all = 0;

    for (int i = 0; i < ALL; i++) {
        assert(table->measured[level][i] <= 1);
        all += table->measured[level][i];
    }
    return all;
}

static const uint32_t BEST = (3 * POLICIES + 5) * WINDOWS + 2;

/* The search finds the best by few true measurements, although no rough level would name it. */
static void test_search(void)
{
    struct table table = {.most = SIZE_MAX};
    int error = 1;
    g_autoptr(GArray) found = look(&table, LEVELS, 2, &error);

    assert(!error && g_array_index(found, struct duet__found, 0).setting == BEST);
    assert(g_array_index(found, struct duet__found, 0).seconds == seconds_of(2, BEST));
    for (guint i = 1; i < found->len; i++)
        assert(g_array_index(found, struct duet__found, i - 1).seconds <=
               g_array_index(found, struct duet__found, i).seconds);
    assert(count_level(&table, 0) == ALL && count_level(&table, 1) == TILES * 4);
    assert(count_level(&table, 2) == found->len && found->len >= TILES * 2 && found->len < ALL / 4);
}

/* Neighbours find what the levels before have left out. */
static void test_neighbours(void)
{
    struct table alone = {.most = SIZE_MAX}, both = {.most = ALL + TILES * 4 + 3};
    int error = 1;
    g_autoptr(GArray) few = look(&alone, LEVELS, 0, &error);
    g_autoptr(GArray) cut = look(&both, LEVELS, 2, &error);

    assert(few->len == TILES * 2);
    assert(cut->len == 3); /* there was no time for more, and it ends */
    assert(count_level(&both, 2) > 3);
}

/* A search with one level measures everything, once. */
static void test_one_level(void)
{
    struct table table = {.most = SIZE_MAX};
    int error = 1;
    g_autoptr(GArray) found = look(&table, 1, 2, &error);

    assert(!error && found->len == ALL && count_level(&table, 0) == ALL);
}

/* A setting without time at a level goes no further, and errors end the search. */
static void test_ends(void)
{
    struct table nothing = {.most = 0}, failing = {.most = SIZE_MAX, .error = -5};
    int error = 1;
    g_autoptr(GArray) none = look(&nothing, LEVELS, 2, &error);

    assert(!error && !none->len);
    g_autoptr(GArray) ended = look(&failing, LEVELS, 2, &error);
    assert(error == -5 && !ended->len && count_level(&failing, 2) == 0);
}

int main(int argc, char **argv)
{
    test_search();
    test_neighbours();
    test_one_level();
    test_ends();
    return 0;
}
