/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data that is not a matrix: how many bytes it is, what copies of it consist of, and what is
 * refused. That kernels get it right is tested in real/layout_test.c, and by random programs.
 */
#include "core/testing.h"

enum { CPU = 0, GPU = 1, PIECES_MAX = 32 };

static struct testing *start(bool computes)
{
    struct testing *t = testing_init(&(struct testing_machine){.cpus = 1, .gpus = 1}, "eager", 1);
    t->core->computes = computes;
    return t;
}

/* ------------------------------------------------------------------------------------------- */
/* A type                                                                                       */

struct list {
    size_t count, room;
    int *numbers;
    char *letters;
};

static size_t list_bytes(const void *object)
{
    const struct list *list = object;
    return list->room * (sizeof *list->numbers + 1);
}

static void list_place(void *object, void *memory)
{
    struct list *list = object;
    list->numbers = memory;
    list->letters = (char *)(list->numbers + list->room);
}

static void list_copy(const void *from, void *to, struct duet_pieces *pieces)
{
    const struct list *source = from;
    struct list *list = to;
    list->count = source->count;
    duet_add_piece(pieces, list->numbers, source->numbers, source->count * sizeof *list->numbers);
    duet_add_piece(pieces, list->letters, source->letters, source->count);
}

static const struct duet_type list_type = {.name = "list",
                                           .object_bytes = sizeof(struct list),
                                           .bytes = list_bytes,
                                           .place = list_place,
                                           .copy = list_copy};

/* ------------------------------------------------------------------------------------------- */
/* Copies                                                                                       */

struct seen {
    struct duet__piece pieces[PIECES_MAX];
    unsigned count;
};

static int see(void *arg, const struct duet__piece *piece)
{
    struct seen *seen = arg;
    g_assert_cmpuint(seen->count, <, PIECES_MAX);
    seen->pieces[seen->count++] = *piece;
    return DUET_OK;
}

/* A task on the device brings the handle there: the pieces of that copy. */
static struct seen bring(struct testing *t, struct duet_handle *handle, char *slab)
{
    struct seen seen = {.count = 0};
    struct testing_log log = {0};
    (void)testing_submit(t, t->gpu, handle, DUET_RW, NULL, 0, 0);
    struct duet__engine_command copy = testing_next(t, GPU);
    g_assert_cmpint(copy.kind, ==, DUET_COPY);
    g_assert_cmpuint(copy.copy->bytes, ==, handle->bytes);
    g_assert_cmpint(duet__copy_pieces(copy.copy, NULL, slab, see, &seen), ==, DUET_OK);
    testing_done(t, &copy, 1e-6, DUET_OK);
    while (testing_work(t, GPU, &log) + testing_work(t, CPU, &log))
        ;
    return seen;
}

/* Evenly distant columns or planes are one piece; and so many bytes, whatever lies between. */
static void test_blocks(void)
{
    static double data[10000];
    static char slab[1 << 20];
    struct duet_handle *handle;
    static const struct {
        size_t rows, cols, planes, ld, plane;
        unsigned pieces;
        size_t column_bytes, columns, pitch;
    } cases[] = {{5, 4, 3, 7, 28, 1, 40, 12, 56},
                 {5, 4, 3, 5, 30, 1, 160, 3, 240},
                 {5, 1, 3, 7, 30, 1, 40, 3, 240},
                 {5, 4, 1, 7, 99, 1, 40, 4, 56},
                 {5, 4, 3, 7, 30, 3, 40, 4, 56}};
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        OWNED(testing_end) struct testing *t = start(true);
        g_assert_cmpint(duet_register_block(t->core, data, cases[i].rows, cases[i].cols,
                                            cases[i].planes, cases[i].ld, cases[i].plane,
                                            sizeof *data, &handle),
                        ==, DUET_OK);
        const size_t bytes = cases[i].rows * cases[i].cols * cases[i].planes * sizeof *data;
        g_assert_cmpuint(handle->bytes, ==, bytes);
        g_assert_true(duet_address(handle) == data);
        struct seen seen = bring(t, handle, slab);
        g_assert_cmpuint(seen.count, ==, cases[i].pieces);
        for (unsigned p = 0; p < seen.count; p++) {
            const struct duet__piece *piece = &seen.pieces[p];
            g_assert_true(piece->from == data + p * cases[i].plane);
            g_assert_true(piece->to == slab + p * cases[i].rows * cases[i].cols * sizeof *data);
            g_assert_cmpuint(piece->column_bytes, ==, cases[i].column_bytes);
            g_assert_cmpuint(piece->cols, ==, cases[i].columns);
            g_assert_cmpuint(piece->to_pitch, ==, cases[i].column_bytes);
            if (piece->cols > 1)
                g_assert_cmpuint(piece->from_pitch, ==, cases[i].pitch);
        }
        g_assert_cmpint(duet_unregister(t->core, handle), ==, DUET_OK);
    }
}

static void test_arrays(void)
{
    static uint32_t rows[11], columns[50];
    static double values[60];
    static char slab[1 << 20];
    const struct duet_array arrays[] = {{rows, 11, 1, 11, 4},
                                        {columns, 50, 1, 50, 4},
                                        {values, 5, 10, 6, 8}};
    struct duet_handle *handle, *other;
    OWNED(testing_end) struct testing *t = start(true);
    g_assert_cmpint(duet_register_arrays(t->core, arrays, 3, &handle), ==, DUET_OK);
    g_assert_cmpuint(handle->bytes, ==, 44 + 200 + 400);
    g_assert_cmpuint(handle->slab_bytes, ==, 256 + 256 + 512);
    struct seen seen = bring(t, handle, slab);
    g_assert_cmpuint(seen.count, ==, 3);
    g_assert_true(seen.pieces[1].from == columns && seen.pieces[1].to == slab + 256);
    g_assert_true(seen.pieces[2].from == values && seen.pieces[2].to == slab + 512);
    g_assert_cmpuint(seen.pieces[2].from_pitch, ==, 48);
    g_assert_cmpuint(seen.pieces[2].to_pitch, ==, 40);
    /* the memory of each is known */
    refuses(t, duet_register_vector(t->core, &columns[7], 1, 4, &other),
            "shares memory with handle 1");
    refuses(t, duet_register_arrays(t->core, arrays, 3, &other), "shares memory with handle 1");
    g_assert_cmpint(duet_register_vector(t->core, &values[5], 1, 8, &other), ==,
                    DUET_OK); /* between columns */
    g_assert_cmpint(duet_unregister(t->core, handle), ==, DUET_OK);
    const struct duet_array twice[] = {{rows, 11, 1, 11, 4}, {&rows[10], 1, 1, 1, 4}};
    refuses(t, duet_register_arrays(t->core, twice, 2, &handle), "shares memory");
    g_assert_null(handle);
    g_assert_cmpint(duet_register_vector(t->core, rows, 11, 4, &handle), ==,
                    DUET_OK); /* nothing is left */
}

static void test_type(void)
{
    static int numbers[20];
    static char letters[20], slab[1 << 20];
    struct list list = {.count = 7, .room = 20, .numbers = numbers, .letters = letters};
    struct duet_handle *handle, *other;
    OWNED(testing_end) struct testing *t = start(true);
    g_assert_cmpint(duet_register_object(t->core, &list_type, &list, &handle), ==, DUET_OK);
    g_assert_cmpuint(handle->bytes, ==, 100);
    g_assert_true(duet_address(handle) == &list);
    refuses(t, duet_register_vector(t->core, &letters[6], 1, 1, &other), "shares memory");
    list.count = 3; /* between acquire and release, say */
    struct seen seen = bring(t, handle, slab);
    g_assert_cmpuint(seen.count, ==, 2);
    g_assert_true(seen.pieces[0].from == numbers && seen.pieces[0].to == slab);
    g_assert_cmpuint(seen.pieces[0].column_bytes, ==, 12);
    g_assert_true(seen.pieces[1].from == letters && seen.pieces[1].to == slab + 80);
    g_assert_true(list.numbers == numbers && list.letters == letters);
    g_assert_cmpint(duet_unregister(t->core, handle), ==, DUET_OK);
    list.count = 0; /* nothing to copy */
    g_assert_cmpint(duet_register_object(t->core, &list_type, &list, &handle), ==, DUET_OK);
    seen = bring(t, handle, slab);
    g_assert_cmpuint(seen.count, ==, 0);
}

/* ------------------------------------------------------------------------------------------- */
/* Bad use                                                                                      */

static void test_refused(void)
{
    static int numbers[20];
    static char letters[20];
    struct duet_handle *handle = NULL, *parts[4];
    struct list list = {.count = 20, .room = 20, .numbers = numbers, .letters = letters};
    struct duet_type type = list_type;
    const struct duet_array nowhere = {NULL, 3, 1, 3, 8}, narrow = {numbers, 3, 2, 2, 4};
    OWNED(testing_end) struct testing *t = start(true);
    refuses(t, duet_register_block(t->core, numbers, 2, 2, 2, 2, 3, 4, &handle),
            "planes must not overlap");
    refuses(t, duet_register_block(t->core, numbers, 2, 2, 0, 2, 4, 4, &handle), "2 x 2 x 0");
    refuses(t, duet_register_block(t->core, numbers, 2, 2, SIZE_MAX, 2, 4, 4, &handle),
            "address space");
    refuses(t, duet_register_block(t->core, NULL, 2, 2, 2, 2, 4, 4, &handle), "no address");
    refuses(t, duet_register_arrays(t->core, NULL, 3, &handle), "1 to 1024 arrays");
    refuses(t, duet_register_arrays(t->core, &nowhere, 1, &handle), "no address");
    refuses(t, duet_register_arrays(t->core, &narrow, 1, &handle), "leading dimension");
    refuses(t, duet_register_object(t->core, &type, NULL, &handle), "needs an object");
    type.place = NULL;
    refuses(t, duet_register_object(t->core, &type, &list, &handle), "all of its fields");
    list.room = 19;
    refuses(t, duet_register_object(t->core, &list_type, &list, &handle),
            "type list: `copy` names a piece");
    list = (struct list){.count = 1, .room = 1};
    refuses(t, duet_register_object(t->core, &list_type, &list, &handle), "at no address");
    list.room = 0;
    refuses(t, duet_register_object(t->core, &list_type, &list, &handle), "0 bytes");
    g_assert_null(t->core->handles);
    /* what only matrices can be used for */
    const struct duet_array array = {numbers, 4, 4, 4, 4};
    g_assert_cmpint(duet_register_arrays(t->core, &array, 1, &handle), ==, DUET_OK);
    refuses(t, duet_cut_blocks(t->core, handle, 2, 1, parts),
            "several arrays, which cannot be cut");
    refuses(t, duet_cut_triangles(t->core, handle, DUET_DIAGONAL_LOWER, parts), "cannot be cut");
    refuses(t, duet_set_reduction(t->core, handle, t->any, t->any), "cannot be reduced");
    const struct duet_access scratch = {handle, DUET_SCRATCH};
    const struct duet_task_desc task = {.codelet = t->any, .accesses = &scratch, .access_count = 1};
    refuses(t, duet_submit(t->core, &task), "is several arrays: name temporary data");
}

/* If nothing computes, data needs no address. */
static void test_simulated(void)
{
    struct testing_log log = {0};
    struct list list = {.count = 5, .room = 5};
    const struct duet_array arrays[] = {{NULL, 3, 1, 3, 8}, {NULL, 3, 1, 3, 8}};
    struct duet_handle *handles[3];
    OWNED(testing_end) struct testing *t = start(false);
    g_assert_cmpint(duet_register_block(t->core, NULL, 5, 4, 3, 7, 30, 8, &handles[0]), ==,
                    DUET_OK);
    g_assert_cmpint(duet_register_arrays(t->core, arrays, 2, &handles[1]), ==, DUET_OK);
    g_assert_cmpint(duet_register_object(t->core, &list_type, &list, &handles[2]), ==, DUET_OK);
    for (unsigned i = 0; i < 3; i++)
        (void)testing_submit(t, t->gpu, handles[i], DUET_RW, NULL, 0, 0);
    while (testing_work(t, GPU, &log) + testing_work(t, CPU, &log))
        ;
    g_assert_cmpuint(log.count, ==, 3);
    g_assert_cmpuint(log.copies[0].bytes, ==, 480);
    g_assert_cmpuint(log.copies[1].bytes, ==, 48);
    g_assert_cmpuint(log.copies[2].bytes, ==, 25);
    for (unsigned i = 0; i < 3; i++)
        g_assert_cmpint(duet_unregister(t->core, handles[i]), ==, DUET_OK);
}

TEST_MAIN(test_blocks, test_arrays, test_type, test_refused, test_simulated)
