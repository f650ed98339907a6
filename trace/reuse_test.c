/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests how much tasks can do with few data: known factorisations, random graphs against all sets
 * of data, and the copies that follow from it against the fewest there can be.
 */
#include "trace/bounds.h"

#include <math.h>
#include <string.h>

#include <glib.h>

enum { TASKS = 64, USES = 4, DATA = 64 };

/* Tasks of one class, each with what it reads. */
struct sample {
    struct duet__entered_task tasks[TASKS];
    uint32_t uses[TASKS * USES];
    struct duet__entered entered;
    double bytes[DATA];
};

static void add(struct sample *sample, const uint32_t *data, size_t count)
{
    struct duet__entered *entered = &sample->entered;
    for (size_t i = 0; i < count; i++) {
        entered->uses[entered->use_count++] = data[i] << DUET__USE_BITS | DUET__USE_READS;
        entered->datum_count = MAX(entered->datum_count, data[i] + 1);
    }
    entered->tasks[entered->task_count++] =
        (struct duet__entered_task){7, (uint32_t)entered->use_count};
}

static void start(struct sample *sample)
{
    *sample = (struct sample){.entered = {.datum_count = 0}};
    sample->entered.tasks = sample->tasks;
    sample->entered.uses = sample->uses;
    for (unsigned d = 0; d < DATA; d++)
        sample->bytes[d] = 8;
}

/* Updates by tiles: n x n x n of three matrices; of one, all or the lower triangle; of one with
   another one beside it that each task uses, too. */
enum shape { PRODUCT, LU, CHOLESKY, QR };

static void make(struct sample *sample, enum shape shape, uint32_t n)
{
    start(sample);
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < n; j++) {
                const uint32_t own[] = {i * n + j, i * n + k, k * n + j, 2 * n * n + i * n + k};
                const uint32_t product[] = {i * n + k, n * n + k * n + j, 2 * n * n + i * n + j},
                               lu[] = {own[1], own[2], own[0]},
                               cholesky[] = {own[1], j * n + k, own[0]};
                if (shape == PRODUCT)
                    add(sample, product, 3);
                else if (shape == CHOLESKY ? i > j && j > k : i > k && j > k)
                    add(sample,
                        shape == LU   ? lu
                        : shape == QR ? own
                                      : cholesky,
                        shape == QR ? 4 : 3);
            }
}

static void test_shapes(void)
{
    static const double factors[] =
        {[PRODUCT] = 0.19245, [LU] = 0.5, [CHOLESKY] = 0.4714, [QR] = 0.3849};
    struct sample sample;
    struct duet__reuse reuse;
    for (unsigned shape = 0; shape < G_N_ELEMENTS(factors); shape++) {
        make(&sample, shape, 4 - (shape == PRODUCT));
        reuse = duet__reuse_find(&sample.entered, 7, sample.bytes);
        g_assert_cmpfloat_with_epsilon(reuse.factor, factors[shape], 1e-4);
        g_assert_cmpfloat(reuse.tasks, ==, (double)sample.entered.task_count);
        g_assert_cmpfloat(reuse.bytes, ==, 8);
        g_assert_cmpfloat(duet__reuse_find(&sample.entered, 6, sample.bytes).tasks, ==, 0);
    }
    /* a datum that may be anywhere without a copy */
    make(&sample, PRODUCT, 3);
    sample.bytes[0] = 0;
    g_assert_cmpfloat(duet__reuse_find(&sample.entered, 7, sample.bytes).tasks, ==, 24);
}

/* Three or four of so many data, or, where they are `apart`, one of each third. */
static void make_random(struct sample *sample, GRand *random, unsigned data, bool apart)
{
    const unsigned tasks = 1 + g_rand_int(random) % 10, uses = 3 + g_rand_int(random) % 2;
    start(sample);
    for (unsigned t = 0; t < tasks; t++) {
        uint32_t own[USES];
        for (unsigned i = 0; i < USES; i++)
            own[i] = apart ? i % 3 * (data / 3) + g_rand_int(random) % (data / 3)
                           : g_rand_int(random) % data;
        add(sample, own, uses);
    }
    sample->entered.datum_count = data;
}

/* The data of each task, as a set. */
static void find_sets(const struct sample *sample, uint32_t sets[TASKS])
{
    for (size_t t = 0, u = 0; t < sample->entered.task_count; t++)
        for (sets[t] = 0; u < sample->tasks[t].end; u++)
            sets[t] |= 1U << (sample->uses[u] >> DUET__USE_BITS);
}

/* No set of data is enough for more tasks than it is said to be. */
static void test_subsets(void)
{
    enum { FEW = 9 };
    g_autoptr(GRand) random = g_rand_new_with_seed(3);
    for (unsigned round = 0; round < 2000; round++) {
        struct sample sample;
        struct duet__reuse reuse;
        uint32_t sets[TASKS];
        if (round < 4)
            make(&sample, round == 3 ? QR : round, 2 + (round > 0));
        else
            make_random(&sample, random, FEW, round % 2);
        reuse = duet__reuse_find(&sample.entered, 7, sample.bytes);
        find_sets(&sample, sets);
        for (uint32_t set = 0; set < 1U << sample.entered.datum_count && round != 3; set++) {
            double enough = 0;
            for (size_t t = 0; t < sample.entered.task_count; t++)
                enough += !(sets[t] & ~set);
            g_assert_cmpfloat(enough, <=,
                              reuse.factor * pow(__builtin_popcount(set), 1.5) * (1 + 1e-9));
        }
    }
}

/* The fewest copies with which all tasks have run in a memory of so many data, whatever is in it at
   first: level by level, of what has run and what is there. */
static double fewest(const uint32_t *sets, size_t tasks, unsigned data, unsigned room)
{
    const size_t states = (size_t)1 << (tasks + data);
    uint8_t *seen = g_new0(uint8_t, states);
    GArray *now = g_array_new(FALSE, FALSE, sizeof(uint32_t)),
           *next = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    unsigned copies = 0;
    bool ended = false;
    for (uint32_t there = 0; there < 1U << data; there++)
        if ((unsigned)__builtin_popcount(there) == room)
            g_array_append_val(next, there);
    for (; !ended; copies++) {
        GArray *swap = now;
        now = next;
        next = swap;
        g_array_set_size(next, 0);
        for (guint s = 0; s < now->len && !ended; s++) {
            const uint32_t there = g_array_index(now, uint32_t, s) & ((1U << data) - 1);
            uint32_t done = g_array_index(now, uint32_t, s) >> data;
            for (size_t t = 0; t < tasks; t++)
                done |= (uint32_t) !(sets[t] & ~there) << t;
            ended = done == (1U << tasks) - 1;
            if (seen[(size_t)done << data | there])
                continue;
            seen[(size_t)done << data | there] = 1;
            for (unsigned in = 0; in < data; in++)
                for (unsigned out = 0; out < data; out++) {
                    const uint32_t state = done << data | (there & ~(1U << out)) | 1U << in;
                    if (!(there >> in & 1) && there >> out & 1)
                        g_array_append_val(next, state);
                }
        }
    }
    g_array_unref(now);
    g_array_unref(next);
    g_free(seen);
    return copies - 1;
}

static void test_fewest(void)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(4);
    unsigned half = 0;
    for (unsigned round = 0; round < 60; round++) {
        struct sample sample;
        struct duet__reuse reuse;
        uint32_t sets[TASKS];
        const unsigned room = 4 - (round < 3) + round % 3;
        double each, spare, bound, exact;
        if (round < 3)
            make(&sample, PRODUCT, 2);
        else
            make_random(&sample, random, 9, round % 2);
        reuse = duet__reuse_find(&sample.entered, 7, sample.bytes);
        each = duet__reuse_copies(&reuse, 8 * room + 7, 1, &spare);
        bound = reuse.tasks * each - spare;
        find_sets(&sample, sets);
        exact = fewest(sets, sample.entered.task_count, (unsigned)sample.entered.datum_count, room);
        g_assert_cmpfloat(bound, <=, exact);
        g_test_message("%g of %g", bound, exact);
        half += bound > 0 && bound >= exact / 2;
    }
    g_assert_cmpuint(half, >=, 2);
}

TEST_MAIN(test_shapes, test_subsets, test_fewest)
