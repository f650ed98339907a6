/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data cut into parts: what waits for what, where data passes, what is refused; and memory that is
 * registered twice. Random programs with parts of parts are in random_test.c.
 */
#include <glib.h>

#include "core/testing_script.h"

enum { CPU = 0, GPU = 1, BLOCK = SLAB_ALIGN, PARTS = 4 };

/*
 * "together 4": so many tasks can run at once now, which are begun and ended. "name b a1": another
 * name for a part, of which parts can be named then.
 */
static bool cut_step(struct stage *stage, char **words)
{
    struct duet__engine_command commands[TESTING_WORKERS];
    struct testing *t = stage->t;
    unsigned count = 0;
    if (stage_is(words, "name")) {
        *stage_place(stage, words[1]) = stage_data(stage, words[2]);
        return true;
    }
    if (!stage_is(words, "together"))
        return false;
    for (unsigned w = 0; w < t->workers; w++) {
        commands[count] = testing_next(t, w);
        count += commands[count].kind == DUET_RUN;
    }
    for (unsigned i = 0; i < count; i++)
        testing_done(t, &commands[i], 1e-6, 0);
    stage_same(stage, "their number", count, stage_number(stage, words[1]));
    return true;
}

#define MANY "cpus=8 unasked"
#define BOTH "cpus=1 gpus=1 unasked"
#define CUT "data a*4; cut a 4;"
#define LAST "wait; unregister a; handles 0"

static const struct script scripts[] = {
    {"tasks on parts run side by side between those on the whole, and so do all who only read",
     MANY,
     CUT "any a:w; any a0:rw; any a1:rw; any a2:rw; any a3:rw; any a:r; any a0:r; any a1:r;"
         "any a2:r; any a3:r; any a1:w; any a2:w; any a:w; together 1; together 4; together 5;"
         "together 2; together 1;" LAST},
    {"views of a second cut, and of parts of a part, wait for those that they share data with",
     MANY,
     CUT "name h a; name q a0; name p a3; name f a0; cut h 2; cut q 2; any p:w; any q0:w; any q1:w;"
         "any h0:rw; any h1:rw; any q1:r; any a:r; any h1:r; any q0:w; any f:rw; together 3;"
         "together 2; together 3; together 1; together 1;" LAST},
    {"data goes from a device to the host's memory and from there on; nothing is copied in vain",
     BOTH,
     CUT "gpu a:w; gpu a2:rw; gpu a3:r; gpu a:r; gpu0 work 4; cpu0 work 0;"
         "copied a gpu0>host; copied a2 host>gpu0; copied a2 gpu0>host; copied a3 host>gpu0;"
         "copied a host>gpu0; copies 0;" LAST},
    {"if the whole is overwritten, the contents of the parts are not copied back", BOTH,
     CUT "gpu a0:w; cpu a:w; gpu0 work 1; cpu0 work 1; copies 0;" LAST},
    {"a part is acquired while another one is at work, and the whole when it is not",
     "cpus=2 unasked",
     CUT "acquire a0:rw; any a1:rw; any a:rw; together 1; together 0;"
         "unregister a EINVAL; says is acquired: release it first; uncut a1 EINVAL; release a0;"
         "together 1;" LAST},
    {"temporary data has no memory before it is cut; unregistering takes its parts along", BOTH,
     "temporary a; cut a 4; gpu a0:w; gpu a1:w; gpu a2:w; gpu a3:w; cpu a:r; leave a0 EINVAL;"
     "leave a; wait; handles 0"},
};

static void test_scripts(void)
{
    scripts_play_with(scripts, G_N_ELEMENTS(scripts), &(struct stage_more){NULL, cut_step});
}

static struct duet_handle *parts[PARTS];

/* A vector of four blocks, with its parts. */
static struct duet_handle *start(struct testing **made, unsigned gpus)
{
    const struct testing_machine make = {.cpus = 1, .gpus = gpus};
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

/* Triangles of 10 x 10 elements of 8 bytes: what of them is copied, and how they are refused. */
static void test_triangles(void)
{
    struct testing *t;
    struct testing_log log = {0};
    struct duet_handle *square, *inner[4];
    struct duet_handle *whole = start(&t, 1);
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

/* A cut ends with what is in flight, and may be made again. */
static void test_uncut(void)
{
    struct testing *t;
    struct duet_handle *inner[2];
    struct duet_handle *whole = start(&t, 1);
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
    struct duet_handle *whole = start(&t, 0);
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

TEST_MAIN(test_scripts, test_triangles, test_uncut, test_refusals, test_memory, test_random_memory)
