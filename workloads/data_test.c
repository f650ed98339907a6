/* SPDX-License-Identifier: Apache-2.0 */
/* Places of tiles, and contents that do not depend on them. */
#include <glib.h>
#include "workloads/data.h"

#include <math.h>
#include <string.h>

static struct duet__storage storage_of(uint64_t rows, uint64_t cols, uint32_t tile,
                                       enum duet__contents contents)
{
    return (struct duet__storage){.rows = rows,
                                  .cols = cols,
                                  .tile_rows = tile,
                                  .tile_cols = tile,
                                  .element_bytes = 8,
                                  .contents = contents,
                                  .key = duet__data_key(1, 0)};
}

static void allocate(struct duet__storage *storage)
{
    WORKS(duet__storage_allocate(storage, hear()));
    g_assert_cmpuint((guintptr)storage->memory % 4096, ==, 0);
}

/* Tiles cover the memory without overlap: every existing element has bytes of its own. */
static void covers(struct duet__storage storage)
{
    allocate(&storage);
    uint64_t elements = duet__storage_bytes(&storage) / storage.element_bytes, seen = 0;
    char *used = g_new0(char, elements);
    for (uint64_t j = 0; j < storage.cols; j++) {
        for (uint64_t i = 0; i < storage.rows; i++) {
            if (storage.lower && i / storage.tile_rows < j / storage.tile_cols)
                continue;
            size_t offset = (size_t)((char *)duet__storage_at(&storage, i, j) - storage.memory);
            g_assert_cmpuint(offset % storage.element_bytes, ==, 0);
            offset /= storage.element_bytes;
            g_assert_cmpuint(offset, <, elements);
            g_assert_false(used[offset]);
            used[offset] = 1;
            seen++;
        }
    }
    if (!storage.whole || !storage.lower)
        g_assert_cmpuint(seen, ==, elements);
    g_free(used);
    duet__storage_free(&storage);
    duet__storage_free(&storage);
}

static void test_places(void)
{
    static const uint64_t shapes[][2] = {{1, 1}, {10, 10}, {13, 7}, {7, 13}, {12, 12}, {25, 25}};
    for (size_t i = 0; i < G_N_ELEMENTS(shapes) * 8; i++) {
        const uint64_t *shape = shapes[i / 8];
        struct duet__storage storage = storage_of(shape[0], shape[1], 5, DUET__ZEROS);
        storage.whole = i & 1;
        storage.element_bytes = i & 2 ? 4 : 8;
        storage.lower = i & 4 && shape[0] == shape[1];
        covers(storage);
    }
    struct duet__storage rows = storage_of(4, 13, 5, DUET__ZEROS);
    rows.tile_rows = 1;
    covers(rows);
}

/* Tiles are contiguous in one layout, windows in the other. */
static void test_leading_dimensions(void)
{
    size_t ld;
    OWNED(duet__storage_free) struct duet__storage storage = storage_of(13, 13, 5, DUET__ZEROS);
    allocate(&storage);
    g_assert_true(duet__storage_tile(&storage, 0, 0, &ld) == storage.memory);
    g_assert_cmpuint(ld, ==, 5);
    g_assert_true(duet__storage_tile(&storage, 1, 0, &ld) == storage.memory + 25 * 8);
    g_assert_true(duet__storage_tile(&storage, 2, 1, &ld) == storage.memory + (13 * 5 + 50) * 8);
    g_assert_cmpuint(ld, ==, 3);
    storage.whole = true;
    g_assert_true(duet__storage_tile(&storage, 2, 1, &ld) == storage.memory + (13 * 5 + 10) * 8);
    g_assert_cmpuint(ld, ==, 13);
}

/* Elements are equal whatever layout, tile and precision, and so are columns. */
static void test_contents(void)
{
    for (int i = 0; i < 4 * 8; i++) {
        struct duet__storage storage =
            storage_of(30, 30, i & 1 ? 7 : 30, (enum duet__contents)(i / 8));
        double column[30];
        storage.element_bytes = i & 2 ? 4 : 8;
        storage.whole = i & 4;
        allocate(&storage);
        duet__storage_fill(&storage, NULL, NULL);
        for (uint64_t col = 0; col < 30; col++) {
            duet__storage_initial_column(&storage, col / 2, col, 15, column);
            for (uint64_t row = 0; row < 30; row++) {
                double value = duet__storage_initial(&storage, row, col);
                g_assert_cmpfloat(duet__storage_value(&storage, row, col), ==, value);
                if (row >= col / 2 && row < col / 2 + 15)
                    g_assert_cmpfloat(column[row - col / 2], ==, value);
                if (i & 2) {
                    storage.element_bytes = 8;
                    g_assert_cmpfloat(value, ==, (float)duet__storage_initial(&storage, row, col));
                    storage.element_bytes = 4;
                }
            }
        }
        duet__storage_free(&storage);
    }
}

static void test_kinds(void)
{
    struct duet__storage random = storage_of(100, 100, 10, DUET__RANDOM), dominant = random,
                         symmetric = random, zeros = random, other = random;
    double sum = 0, squares = 0;
    dominant.contents = DUET__DOMINANT;
    symmetric.contents = DUET__SYMMETRIC;
    zeros.contents = DUET__ZEROS;
    other.key = duet__data_key(1, 1);
    for (uint64_t j = 0; j < 100; j++) {
        for (uint64_t i = 0; i < 100; i++) {
            double value = duet__storage_initial(&random, i, j);
            g_assert_true(value >= -0.5 && value < 0.5);
            g_assert_cmpfloat(value, !=, duet__storage_initial(&other, i, j));
            g_assert_cmpfloat(duet__storage_initial(&dominant, i, j), ==,
                              value + (i == j ? 100 : 0));
            g_assert_cmpfloat(duet__storage_initial(&symmetric, i, j), ==,
                              duet__storage_initial(&dominant, MAX(i, j), MIN(i, j)));
            g_assert_cmpfloat(duet__storage_initial(&zeros, i, j), ==, 0);
            sum += value;
            squares += value * value;
        }
    }
    /* mean 0 and variance 1/12, within five standard deviations for 10,000 numbers */
    g_assert_cmpfloat(fabs(sum / 1e4), <, 5 * sqrt(1.0 / 12 / 1e4));
    g_assert_cmpfloat(fabs(squares / 1e4 - 1.0 / 12), <, 5 * sqrt(1.0 / 180 / 1e4));
    g_assert_cmpuint(duet__data_key(1, 0), !=, duet__data_key(2, 0));
}

/* Known numbers: contents are the same on every machine, and in every version. */
static void test_known(void)
{
    struct duet__storage random = storage_of(3, 3, 3, DUET__RANDOM);
    random.key = 0;
    /* the first number of the stream of splitmix64 whose seed is the first number of stream 0 */
    g_assert_cmpuint((guint64)((duet__storage_initial(&random, 0, 0) + 0.5) * 0x1p53), ==,
                     UINT64_C(0x14e0dba5e9a32f));
}

static void test_too_much(void)
{
    OWNED(duet__storage_free)
    struct duet__storage storage =
        storage_of(UINT64_C(1) << 29, UINT64_C(1) << 29, 65536, DUET__ZEROS);
    FAILS(duet__storage_allocate(&storage, hear()), DUET_ENOMEM, "2305843009213693952 bytes");
}

TEST_MAIN(test_places, test_leading_dimensions, test_contents, test_kinds, test_known,
          test_too_much)
