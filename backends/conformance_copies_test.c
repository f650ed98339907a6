/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conformance to backend.h of copies and page-locked memory, for every backend with devices: all
 * ways that a copy may take, and shapes that need several pieces, bring the same bytes.
 */
#include "backends/testing.h"

#include <duet/random.h>

enum {
    PAGES = 1 << 20, /* a multiple of every page size */
    LOCKABLE = 8 * PAGES,
    SLAB = 16 << 20,
};

/* Memory in whole pages, in parts of PAGES bytes each. */
static unsigned char *memory_of(unsigned parts)
{
    void *memory = NULL;
    g_assert_cmpint(posix_memalign(&memory, PAGES, (size_t)parts * PAGES), ==, 0);
    return memory;
}

/* Whole words at a time, and bytes compared by memcmp: the thread sanitizer looks at each access.
 */
static void fill_random(unsigned char *bytes, size_t count, uint64_t *random)
{
    for (size_t i = 0; i < count; i += sizeof(uint64_t)) {
        uint64_t word = duet_random_next(random);
        memcpy(bytes + i, &word, MIN(sizeof word, count - i));
    }
}

enum { UNTOUCHED = 0xa5 };

static bool untouched(const unsigned char *bytes, size_t count)
{
    return !count || (bytes[0] == UNTOUCHED && !memcmp(bytes, bytes + 1, count - 1));
}

static void open_large(struct testing_device *d, struct testing *t, unsigned index)
{
    testing_open_as(d, t,
                    (struct backend_config){.index = index,
                                            .node = index + 1,
                                            .capacity_bytes = SLAB});
}

/* Chooses a backend that page-locks memory; false: skipped. */
static bool can_lock(const struct duet__backend *backend)
{
    g_assert_true(!backend->pin == !backend->unpin && !backend->pin == !backend->forget);
    if (!backend->pin)
        g_test_skip("page-locks nothing");
    return backend->pin != NULL;
}

static int pin(struct testing *t, void *data, size_t bytes)
{
    int error = t->backend->pin(t->shared, data, bytes, hear());
    g_assert_true(!error == !*heard());
    return error;
}

static int unpin(struct testing *t, void *data)
{
    int error = t->backend->unpin(t->shared, data, hear());
    g_assert_true(!error == !*heard());
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Page-locking                                                                                 */

static void test_pin(const void *argument)
{
    struct testing t;
    if (!can_lock(argument))
        return;
    g_autofree unsigned char *memory = memory_of(12);
    testing_init_pinning(&t, argument, LOCKABLE);
    g_assert_cmpint(unpin(&t, memory), ==, DUET_EINVAL);
    g_assert_cmpint(pin(&t, memory + 2 * PAGES, (size_t)2 * PAGES), ==, DUET_OK);
    g_assert_cmpint(pin(&t, memory + 3 * PAGES, PAGES), ==, DUET_OK); /* inside */
    g_assert_cmpint(pin(&t, memory + 3 * PAGES, (size_t)2 * PAGES), ==, DUET_EINVAL);
    g_assert_cmpint(pin(&t, memory + PAGES, (size_t)4 * PAGES), ==, DUET_EINVAL);
    g_assert_cmpint(pin(&t, memory + 4 * PAGES, PAGES), ==, DUET_OK); /* beside */
    g_assert_cmpint(unpin(&t, memory + 2 * PAGES + 64), ==, DUET_EINVAL);
    g_assert_cmpint(unpin(&t, memory + 2 * PAGES), ==, DUET_OK);
    g_assert_cmpint(pin(&t, memory + PAGES, (size_t)3 * PAGES), ==, DUET_OK);
    g_assert_cmpint(unpin(&t, memory + PAGES), ==, DUET_OK);
    testing_fini(&t); /* with one left */
}

static void test_limit(const void *argument)
{
    struct testing t;
    if (!can_lock(argument))
        return;
    g_autofree unsigned char *memory = memory_of(12);
    testing_init_pinning(&t, argument, LOCKABLE);
    g_assert_cmpint(pin(&t, memory, LOCKABLE + PAGES), ==, DUET_ENOMEM);
    g_assert_cmpint(pin(&t, memory, LOCKABLE), ==, DUET_OK);
    g_assert_cmpint(pin(&t, memory + LOCKABLE, PAGES), ==, DUET_ENOMEM);
    g_assert_cmpint(pin(&t, memory + PAGES, PAGES), ==, DUET_OK); /* is in it already */
    g_assert_cmpint(unpin(&t, memory), ==, DUET_OK);
    g_assert_cmpint(pin(&t, memory + LOCKABLE, PAGES), ==, DUET_OK);
    g_assert_cmpint(unpin(&t, memory + LOCKABLE), ==, DUET_OK);
    testing_fini(&t);
    testing_init_pinning(&t, argument, 0);
    g_assert_cmpint(pin(&t, memory, PAGES), ==, DUET_ENOMEM);
    testing_fini(&t);
}

/* ------------------------------------------------------------------------------------------- */
/* Ways of a copy                                                                               */

struct shape {
    size_t column_bytes, cols, gap; /* of the host's side; the device's has no gap */
    size_t offset;                  /* offset of the host's side in its memory */
};

static size_t span_of(const struct shape *s)
{
    return (s->cols - 1) * (s->column_bytes + s->gap) + s->column_bytes;
}

/* In from one place, out to another, both with this mark; what is between the columns stays. */
static void there_and_back(struct testing_device *d, const struct shape *s, unsigned char *from,
                           unsigned char *to, _Atomic(void *) *marks)
{
    size_t pitch = s->column_bytes + s->gap;
    struct backend_copy in = testing_in(d, 0, from + s->offset, s->column_bytes);
    in.cols = s->cols;
    in.source_pitch = pitch;
    in.mark = marks ? &marks[0] : NULL;
    testing_copy(d, in);
    testing_finish(d, in.tag);
    struct backend_copy out = testing_out(d, 0, to + s->offset, s->column_bytes);
    out.cols = s->cols;
    out.destination_pitch = pitch;
    out.mark = marks ? &marks[1] : NULL;
    testing_copy(d, out);
    testing_finish(d, out.tag);
    for (size_t c = 0; c < s->cols; c++) {
        const unsigned char *got = to + s->offset + c * pitch;
        g_assert_true(!memcmp(got, from + s->offset + c * pitch, s->column_bytes));
        g_assert_true(c + 1 == s->cols || untouched(got + s->column_bytes, s->gap));
    }
}

/* Only the bytes of a triangle come into the host's memory: lower, upper, diagonal. */
static void triangles(struct testing_device *d, unsigned char *from, unsigned char *to)
{
    static const size_t edges[] = {1, 5, 700};
    enum { BYTES = 8 };
    for (unsigned i = 0; i < 3 * G_N_ELEMENTS(edges); i++) {
        size_t n = edges[i / 3], column = n * BYTES, pitch = column + 3 * BYTES;
        bool lower = i % 3 != 1, upper = i % 3 != 0;
        struct backend_copy in = testing_in(d, 0, from, column);
        struct backend_copy out = testing_out(d, 0, to, column);
        in.cols = out.cols = n;
        in.source_pitch = out.destination_pitch = pitch;
        in.first_step = out.first_step = lower ? BYTES : 0;
        in.end = out.end = upper ? BYTES : column;
        in.end_step = out.end_step = upper ? BYTES : 0;
        memset(to, UNTOUCHED, n * pitch);
        testing_copy(d, in);
        testing_finish(d, in.tag);
        testing_copy(d, out);
        testing_finish(d, out.tag);
        for (size_t col = 0; col < n; col++) {
            const unsigned char *got = to + col * pitch, *sent = from + col * pitch;
            size_t first = lower ? col * BYTES : 0, end = upper ? (col + 1) * BYTES : column;
            g_assert_true(untouched(got, first));
            g_assert_true(!memcmp(got + first, sent + first, end - first));
            g_assert_true(untouched(got + end, pitch - end));
        }
    }
}

enum { PARTS = 14 };

static const struct shape shapes[] = {
    {(size_t)9 * PAGES + 17, 1, 0, 5},        /* one piece, larger than any buffer */
    {(size_t)5 * PAGES + 1, 2, 4096, 0},      /* columns larger than a buffer */
    {(size_t)300001, 9, 77, 1234},            /* several columns a buffer */
    {(size_t)240, 10000, 40, 8},              /* many small ones */
    {(size_t)2 * PAGES, 4, PAGES, PAGES - 1}, /* between whole pages */
    {1, 1, 0, (size_t)2 * PAGES - 1},
};

/* The part of the host's memory that is page-locked before the copies. */
struct way {
    const char *name;
    uint64_t pin_bytes;
    unsigned first[2], count[2]; /* parts to pin of both places */
    bool marks;
};

static void go(const struct duet__backend *backend, const struct way *way, unsigned char *from,
               unsigned char *to)
{
    OWNED(testing_fini) struct testing t;
    OWNED(testing_close) struct testing_device d;
    testing_init_pinning(&t, backend, way->pin_bytes);
    open_large(&d, &t, 0);
    for (unsigned i = 0; i < 2; i++)
        if (backend->pin && way->count[i])
            g_assert_cmpint(pin(&t, (i ? to : from) + (size_t)way->first[i] * PAGES,
                                (size_t)way->count[i] * PAGES),
                            ==, DUET_OK);
    triangles(&d, from, to);
    for (unsigned i = 0; i < G_N_ELEMENTS(shapes); i++) {
        _Atomic(void *) marks[2] = {NULL, NULL};
        g_assert_cmpuint(shapes[i].offset + span_of(&shapes[i]), <=, (size_t)PARTS * PAGES);
        memset(to, UNTOUCHED, shapes[i].offset + span_of(&shapes[i]));
        there_and_back(&d, &shapes[i], from, to, way->marks ? marks : NULL);
        if (way->marks)
            there_and_back(&d, &shapes[i], from, to, marks);
        for (unsigned k = 0; k < 2 && backend->forget; k++) {
            backend->forget(t.shared, &marks[k]);
            g_assert_null(marks[k]);
        }
    }
}

static void test_ways(const void *argument)
{
    static const struct way ways[] = {
        {"none", 0, {0, 0}, {0, 0}, false},
        {"all", (uint64_t)3 * PARTS * PAGES, {0, 0}, {PARTS, PARTS}, false},
        {"some", (uint64_t)3 * PARTS * PAGES, {2, 7}, {3, 6}, false},
        {"marks", (uint64_t)3 * PARTS * PAGES, {0, 0}, {0, 0}, true},
        {"marks, no memory to lock", 0, {0, 0}, {0, 0}, true},
        {"marks, little of it", (uint64_t)4 * PAGES, {0, 0}, {0, 0}, true},
        {"marks, some pinned", (uint64_t)3 * PARTS * PAGES, {1, 0}, {5, 10}, true},
    };
    uint64_t random = 5;
    g_autofree unsigned char *from = memory_of(PARTS), *to = memory_of(PARTS);
    fill_random(from, (size_t)PARTS * PAGES, &random);
    for (unsigned i = 0; i < G_N_ELEMENTS(ways); i++) {
        g_test_message("%s", ways[i].name);
        go(argument, &ways[i], from, to);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Handles                                                                                      */

/* Several handles' copies in flight, from one piece of memory, of which some share pages. */
static void test_handles(const void *argument)
{
    enum { COUNT = 24, BYTES = 100003 };
    OWNED(testing_fini) struct testing t;
    OWNED(testing_close) struct testing_device d;
    static unsigned char from[COUNT][BYTES], to[COUNT][BYTES];
    _Atomic(void *) marks[2][COUNT] = {{NULL}};
    struct backend_completion done[COUNT];
    uint64_t random = 6;
    fill_random(from[0], sizeof from, &random);
    testing_init_pinning(&t, argument, LOCKABLE);
    open_large(&d, &t, 0);
    for (unsigned out = 0; out < 2; out++) {
        for (unsigned i = 0; i < COUNT; i++) {
            struct backend_copy copy = out ? testing_out(&d, (size_t)i * BYTES, to[i], BYTES)
                                           : testing_in(&d, (size_t)i * BYTES, from[i], BYTES);
            copy.mark = &marks[out][i];
            testing_copy(&d, copy);
        }
        testing_collect(&d, done, COUNT);
        for (unsigned i = 0; i < COUNT; i++)
            g_assert_cmpint(done[i].status, ==, DUET_OK);
    }
    g_assert_true(!memcmp(from, to, sizeof from));
    for (unsigned i = 0; i < 2 * COUNT && t.backend->forget; i++)
        t.backend->forget(t.shared, &marks[i / COUNT][i % COUNT]);
}

/* Two devices use the same handles, each on its thread; all of them begin with no mark. */
enum { SHARED = 16, SHARED_BYTES = 70001, SHARED_ROUNDS = 30 };

struct sharing {
    struct testing *testing;
    unsigned index;
    const unsigned char *memory;
    _Atomic(void *) *marks;
};

static gpointer share(gpointer argument)
{
    const struct sharing *s = argument;
    struct testing_device d;
    uint64_t random = duet_random_stream(7, s->index);
    unsigned char *back = g_malloc(SHARED_BYTES);
    open_large(&d, s->testing, s->index);
    for (unsigned i = 0; i < SHARED_ROUNDS; i++) {
        unsigned which = duet_random_below(&random, SHARED);
        const unsigned char *from = s->memory + (size_t)which * SHARED_BYTES;
        struct backend_copy in = testing_in(&d, 0, from, SHARED_BYTES);
        in.mark = &s->marks[which];
        testing_copy(&d, in);
        testing_finish(&d, in.tag);
        testing_read(&d, 0, back, SHARED_BYTES);
        g_assert_true(!memcmp(back, from, SHARED_BYTES));
    }
    testing_close(&d);
    g_free(back);
    return NULL;
}

static void test_sharing(const void *argument)
{
    OWNED(testing_fini) struct testing t;
    _Atomic(void *) marks[SHARED] = {NULL};
    uint64_t random = 8;
    g_autofree unsigned char *memory = g_malloc((size_t)SHARED * SHARED_BYTES);
    fill_random(memory, (size_t)SHARED * SHARED_BYTES, &random);
    testing_init_pinning(&t, argument, LOCKABLE);
    struct sharing users[2] = {{&t, 0, memory, marks}, {&t, 1, memory, marks}};
    GThread *threads[2];
    for (unsigned i = 0; i < 2; i++)
        threads[i] = g_thread_new("sharing", share, &users[i]);
    for (unsigned i = 0; i < 2; i++)
        (void)g_thread_join(threads[i]);
    for (unsigned i = 0; i < SHARED && t.backend->forget; i++)
        t.backend->forget(t.shared, &marks[i]);
}

int main(int argc, char **argv)
{
    static const struct testing_test tests[] = {{"pin", test_pin, TESTING_STREAMS, 1},
                                                {"limit", test_limit, TESTING_STREAMS, 1},
                                                {"ways", test_ways, TESTING_STREAMS, 1},
                                                {"handles", test_handles, TESTING_STREAMS, 1},
                                                {"sharing", test_sharing, TESTING_STREAMS, 2},
                                                {NULL, NULL, TESTING_ANY, 0}};
    return testing_run(argc, argv, "copies/", tests);
}
