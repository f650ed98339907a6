/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data cut into parts: what waits for what, where data passes, what is refused; and memory that is
 * registered twice. Random programs with parts of parts are in random_test.c.
 */
#include <glib.h>

#include "core/testing.h"

enum { CPU = 0, GPU = 1, BLOCK = SLAB_ALIGN, PARTS = 4 };

static struct duet_handle *parts[PARTS];

/* A vector of four blocks, with its parts. */
static struct duet_handle *start(struct testing **made, unsigned cpus, unsigned gpus)
{
    const struct testing_machine make = {.cpus = cpus, .gpus = gpus};
    struct testing *t = *made = testing_init(&make, "eager", 1);
    struct duet_handle *whole = testing_handle(t, PARTS * BLOCK);
    g_assert_cmpint(duet_cut_blocks(t->core, whole, PARTS, 1, parts), ==, DUET_OK);
    return whole;
}

static void end(struct testing *t, struct duet_handle *whole)
{
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    g_assert_cmpint(duet_unregister(t->core, whole), ==, DUET_OK);
    g_assert_null(t->core->handles);
    testing_fini(t);
}

static void submit(struct testing *t, struct duet_handle *handle, int mode)
{
    (void)testing_submit(t, t->any, handle, mode, NULL, 0, 0);
}

/* Returns how many tasks can run at once now: they are begun and ended. */
static unsigned together(struct testing *t)
{
    struct duet__engine_command commands[TESTING_WORKERS];
    unsigned count = 0;
    for (unsigned w = 0; w < t->workers; w++) {
        commands[count] = testing_next(t, w);
        count += commands[count].kind == DUET_RUN;
    }
    for (unsigned i = 0; i < count; i++)
        testing_done(t, &commands[i], 1e-6, 0);
    return count;
}

/* Tasks on parts run side by side between those on the whole, and so do all who only read. */
static void test_order(void)
{
    struct testing *t;
    struct duet_handle *whole = start(&t, 2 * PARTS, 0);
    submit(t, whole, DUET_W);
    for (unsigned i = 0; i < PARTS; i++)
        submit(t, parts[i], DUET_RW);
    submit(t, whole, DUET_R);
    for (unsigned i = 0; i < PARTS; i++)
        submit(t, parts[i], DUET_R);
    submit(t, parts[1], DUET_W);
    submit(t, parts[2], DUET_W);
    submit(t, whole, DUET_W);
    g_assert_cmpuint(together(t), ==, 1);
    g_assert_cmpuint(together(t), ==, PARTS);
    g_assert_cmpuint(together(t), ==, PARTS + 1);
    g_assert_cmpuint(together(t), ==, 2);
    g_assert_cmpuint(together(t), ==, 1);
    end(t, whole);
}

/* Triangles of 10 x 10 elements of 8 bytes: what of them is copied, and how they are refused. */
static void test_triangles(void)
{
    struct testing *t;
    struct testing_log log = {0};
    struct duet_handle *square, *inner[4];
    struct duet_handle *whole = start(&t, 1, 1);
    g_assert_cmpint(duet_register_matrix(t->core, NULL, 10, 10, 12, 8, &square), ==, DUET_OK);
    refuses(t, duet_cut_triangles(t->core, whole, DUET_DIAGONAL_LOWER, inner), "only a square");
    g_assert_cmpint(duet_cut_triangles(t->core, square, DUET_DIAGONAL_UPPER, inner), ==, DUET_OK);
    g_assert_cmpint(duet_uncut(t->core, inner[1]), ==, DUET_OK);
    g_assert_cmpint(duet_cut_triangles(t->core, square, DUET_DIAGONAL_APART, inner), ==, DUET_OK);
    refuses(t, duet_cut_blocks(t->core, inner[0], 2, 2, &inner[3]), "cannot be cut further");
    for (unsigned i = 0; i < 3; i++)
        (void)testing_submit(t, t->gpu, inner[i], DUET_RW, NULL, 0, 0);
    while (testing_work(t, GPU, &log) + testing_work(t, CPU, &log))
        ;
    g_assert_cmpuint(log.count, ==, 3);
    g_assert_cmpuint(log.copies[0].bytes + log.copies[1].bytes + log.copies[2].bytes, ==, 800);
    for (unsigned i = 0; i < 3; i++)
        g_assert_cmpuint(inner[i]->bytes, ==, i == 2 ? 80 : 360);
    g_assert_cmpint(duet_unregister(t->core, square), ==, DUET_OK);
    end(t, whole);
}

/* A second cut, and parts of a part, with the parts that they share data with. */
static void test_views(void)
{
    struct testing *t;
    struct duet_handle *halves[2], *quarters[2];
    struct duet_handle *whole = start(&t, 2 * PARTS, 0);
    g_assert_cmpint(duet_cut_blocks(t->core, whole, 2, 1, halves), ==, DUET_OK);
    g_assert_cmpint(duet_cut_blocks(t->core, parts[0], 2, 1, quarters), ==, DUET_OK);
    submit(t, parts[3], DUET_W);
    submit(t, quarters[0], DUET_W);
    submit(t, quarters[1], DUET_W);
    submit(t, halves[0], DUET_RW);
    submit(t, halves[1], DUET_RW);
    submit(t, quarters[1], DUET_R);
    submit(t, whole, DUET_R);
    submit(t, halves[1], DUET_R);
    submit(t, quarters[0], DUET_W);
    submit(t, parts[0], DUET_RW);
    g_assert_cmpuint(together(t), ==, 3);
    g_assert_cmpuint(together(t), ==, 2);
    g_assert_cmpuint(together(t), ==, 3);
    g_assert_cmpuint(together(t), ==, 1);
    g_assert_cmpuint(together(t), ==, 1);
    end(t, whole);
}

static bool copied(const struct testing_log *log, const struct duet_handle *handle, unsigned to)
{
    for (unsigned i = 0; i < log->count; i++)
        if (log->copies[i].handle == handle && log->copies[i].destination == to)
            return log->copies[i].bytes == handle->bytes;
    return false;
}

/* Data goes from a device to the host's memory and from there on; nothing is copied in vain. */
static void test_copies(void)
{
    struct testing *t;
    struct testing_log log = {0};
    struct duet_handle *whole = start(&t, 1, 1);
    (void)testing_submit(t, t->gpu, whole, DUET_W, NULL, 0, 0);
    (void)testing_submit(t, t->gpu, parts[2], DUET_RW, NULL, 0, 0);
    (void)testing_submit(t, t->gpu, parts[3], DUET_R, NULL, 0, 0);
    (void)testing_submit(t, t->gpu, whole, DUET_R, NULL, 0, 0);
    while (testing_work(t, GPU, &log) + testing_work(t, CPU, &log))
        ;
    g_assert_cmpuint(log.count, ==, 5);
    g_assert_true(copied(&log, whole, DUET_HOST) && copied(&log, whole, 1));
    g_assert_true(copied(&log, parts[2], 1) && copied(&log, parts[2], DUET_HOST));
    g_assert_true(copied(&log, parts[3], 1));
    end(t, whole);
}

/* If the whole is overwritten, the contents of the parts are not copied back. */
static void test_overwritten(void)
{
    struct testing *t;
    struct testing_log log = {0};
    struct duet_handle *whole = start(&t, 1, 1);
    (void)testing_submit(t, t->gpu, parts[0], DUET_W, NULL, 0, 0);
    (void)testing_submit(t, t->cpu, whole, DUET_W, NULL, 0, 0);
    while (testing_work(t, GPU, &log) + testing_work(t, CPU, &log))
        ;
    g_assert_cmpuint(log.count, ==, 0);
    end(t, whole);
}

/* The application acquires a part while another one is at work, and the whole when it is not. */
static void test_acquire(void)
{
    struct testing *t;
    struct duet_handle *whole = start(&t, 2, 0);
    g_assert_cmpint(duet_acquire(t->core, parts[0], DUET_RW), ==, DUET_OK);
    submit(t, parts[1], DUET_RW);
    submit(t, whole, DUET_RW);
    g_assert_cmpuint(together(t), ==, 1);
    g_assert_cmpuint(together(t), ==, 0);
    REFUSED(t->core, duet_unregister(t->core, whole), DUET_EINVAL, "is acquired: release it first");
    g_assert_cmpint(duet_uncut(t->core, parts[1]), ==, DUET_EINVAL);
    g_assert_cmpint(duet_release(t->core, parts[0]), ==, DUET_OK);
    g_assert_cmpuint(together(t), ==, 1);
    end(t, whole);
}

/* A cut ends with what is in flight, and may be made again. */
static void test_uncut(void)
{
    struct testing *t;
    struct duet_handle *inner[2];
    struct duet_handle *whole = start(&t, 1, 1);
    g_assert_cmpint(duet_cut_blocks(t->core, parts[1], 2, 1, inner), ==, DUET_OK);
    (void)testing_submit(t, t->gpu, parts[0], DUET_RW, NULL, 0, 0);
    (void)testing_submit(t, t->gpu, inner[0], DUET_RW, NULL, 0, 0);
    g_assert_cmpint(duet_uncut(t->core, inner[1]), ==, DUET_OK);
    g_assert_cmpint(duet_uncut(t->core, parts[3]), ==, DUET_OK);
    g_assert_null(whole->cuts);
    g_assert_true(t->core->handles == whole && !whole->next);
    g_assert_cmpint(duet_uncut(t->core, whole), ==, DUET_EINVAL);
    g_assert_cmpint(duet_cut_blocks(t->core, whole, 3, 1, parts), ==, DUET_OK);
    g_assert_cmpuint(parts[0]->rows + parts[1]->rows + parts[2]->rows, ==, PARTS * BLOCK);
    g_assert_cmpuint(parts[2]->row, ==, parts[0]->rows + parts[1]->rows);
    (void)testing_submit(t, t->gpu, parts[1], DUET_RW, NULL, 0, 0);
    end(t, whole);
}

/* Temporary data has no memory before it is cut; unregistering takes its parts along. */
static void test_temporary(void)
{
    const struct testing_machine make = {.cpus = 1, .gpus = 1};
    struct duet_handle *whole;
    OWNED(testing_end) struct testing *t = testing_init(&make, "eager", 1);
    g_assert_cmpint(duet_register_temporary(t->core, 10, 10, 8, &whole), ==, DUET_OK);
    g_assert_cmpint(duet_cut_blocks(t->core, whole, 2, 2, parts), ==, DUET_OK);
    for (unsigned i = 0; i < PARTS; i++)
        (void)testing_submit(t, t->gpu, parts[i], DUET_W, NULL, 0, 0);
    (void)testing_submit(t, t->cpu, whole, DUET_R, NULL, 0, 0);
    g_assert_cmpint(duet_unregister_submit(t->core, parts[0]), ==, DUET_EINVAL);
    g_assert_cmpint(duet_unregister_submit(t->core, whole), ==, DUET_OK);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    g_assert_null(t->core->handles);
}

/* ------------------------------------------------------------------------------------------- */
/* Refused programs */

static int submit_both(struct testing *t, struct duet_handle *a, enum duet_mode mode_a,
                       struct duet_handle *b, enum duet_mode mode_b)
{
    const struct duet_access accesses[] = {{a, mode_a}, {b, mode_b}};
    double flops = 0;
    const struct duet_task_desc desc = {.codelet = t->any,
                                        .accesses = accesses,
                                        .access_count = 2,
                                        .args = &flops,
                                        .args_bytes = sizeof flops};
    return duet_submit(t->core, &desc);
}

static void test_refusals(void)
{
    static const struct duet_part bad[][2] = {{{0, 0, 0, 1}, {0}},
                                              {{1, 0, PARTS * BLOCK, 1}, {0}},
                                              {{0, 1, 1, 1}, {0}},
                                              {{0, 0, 9, 1}, {8, 0, 1, 1}}};
    static const char *const why[] = {"within", "within", "within", "overlaps an earlier one"};
    struct testing *t;
    struct duet_handle *halves[2], *quarters[2], *other[2];
    struct duet_handle *whole = start(&t, 1, 0);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++)
        refuses(t, duet_cut(t->core, whole, bad[i], 2, other), why[i]);
    refuses(t, duet_cut(t->core, whole, bad[0], 0, other), "a cut needs parts");
    refuses(t, duet_cut_blocks(t->core, whole, 1, 2, other), "some would be empty");
    refuses(t, duet_unregister(t->core, parts[0]), "duet_uncut frees all parts of a cut");
    refuses(t, duet_uncut(t->core, whole), "no part of a cut");
    g_assert_cmpint(duet_cut_blocks(t->core, whole, 2, 1, halves), ==, DUET_OK);
    g_assert_cmpint(duet_cut_blocks(t->core, parts[0], 2, 1, quarters), ==, DUET_OK);
    refuses(t, submit_both(t, whole, DUET_R, parts[0], DUET_W), "a part of it");
    refuses(t, submit_both(t, quarters[0], DUET_W, whole, DUET_R), "a part of it");
    refuses(t, submit_both(t, quarters[0], DUET_R, halves[1], DUET_W), "parts of two cuts");
    g_assert_cmpint(submit_both(t, quarters[0], DUET_R, halves[1], DUET_R), ==, DUET_OK);
    g_assert_cmpint(submit_both(t, quarters[0], DUET_W, quarters[1], DUET_W), ==, DUET_OK);
    g_assert_cmpint(submit_both(t, quarters[0], DUET_W, parts[1], DUET_RW), ==, DUET_OK);
    g_assert_cmpint(submit_both(t, whole, DUET_RW, whole, DUET_R), ==, DUET_OK);
    end(t, whole);
}

/* Pieces of 60 x 60 bytes at a distance of 100: columns are pieces with gaps between. */
static void test_memory(void)
{
    static char data[10000];
    struct duet_handle *tile, *other;
    const struct testing_machine make = {.cpus = 1};
    OWNED(testing_end) struct testing *t = testing_init(&make, "eager", 1);
    g_assert_cmpint(duet_register_matrix(t->core, data + 1010, 60, 60, 100, 1, &tile), ==, DUET_OK);
    refuses(t, duet_register_matrix(t->core, data + 1010, 60, 60, 100, 1, &other), "shares memory");
    refuses(t, duet_register_matrix(t->core, data + 2069, 90, 2, 100, 1, &other), "shares memory");
    refuses(t, duet_register_vector(t->core, data, 1011, 1, &other), "shares memory with handle 1");
    refuses(t, duet_register_vector(t->core, data + 1070, 41, 1, &other), "cut it into parts");
    refuses(t, duet_register_matrix(t->core, data + 1072, 30, 9, 33, 1, &other), "shares memory");
    char at[32];
    g_snprintf(at, sizeof at, "%p", (void *)(data + 1010));
    refuses(t, duet_register_vector(t->core, data, 5000, 1, &other), at);
    g_assert_null(other);
    g_assert_cmpint(duet_register_vector(t->core, data + 1070, 40, 1, &other), ==, DUET_OK);
    g_assert_cmpint(duet_register_matrix(t->core, data + 1170, 40, 50, 100, 1, &other), ==,
                    DUET_OK);
    refuses(t, duet_register_vector(t->core, data + 1109, 1, 1, &other), "shares memory");
    g_assert_cmpint(duet_unregister(t->core, tile), ==, DUET_OK);
    g_assert_cmpint(duet_register_matrix(t->core, data + 1010, 60, 60, 100, 1, &tile), ==, DUET_OK);
}

/* Random pieces of memory, against a map of bytes. */
static void test_random_memory(void)
{
    enum { BYTES = 3000, COUNT = 200 };
    static char data[BYTES];
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct duet_handle *there[COUNT] = {NULL};
        const struct duet_handle *map[BYTES] = {NULL};
        const struct testing_machine make = {.cpus = 1};
        uint64_t rng = seed;
        OWNED(testing_end) struct testing *t = testing_init(&make, "eager", 1);
        for (unsigned i = 0; i < 1500; i++) {
            unsigned n = duet_random_below(&rng, COUNT), ld = 1 + duet_random_below(&rng, 40);
            if (seed % 2)
                ld = 40;
            unsigned rows = 1 + duet_random_below(&rng, ld), cols = 1 + duet_random_below(&rng, 6);
            unsigned first = duet_random_below(&rng, BYTES - 6 * 40);
            bool free = true;
            if (there[n]) {
                for (unsigned b = 0; b < BYTES; b++)
                    map[b] = map[b] == there[n] ? NULL : map[b];
                g_assert_cmpint(duet_unregister(t->core, there[n]), ==, DUET_OK);
            }
            for (unsigned b = 0; b < rows * cols; b++)
                free = free && !map[first + b / rows * ld + b % rows];
            int error = duet_register_matrix(t->core, data + first, rows, cols, ld, 1, &there[n]);
            g_assert_cmpint(error, ==, free ? DUET_OK : DUET_EINVAL);
            for (unsigned b = 0; free && b < rows * cols; b++)
                map[first + b / rows * ld + b % rows] = there[n];
        }
    }
}

TEST_MAIN(test_order, test_views, test_triangles, test_copies, test_overwritten, test_acquire,
          test_uncut, test_temporary, test_refusals, test_memory, test_random_memory)
