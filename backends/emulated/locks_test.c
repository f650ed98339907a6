/* SPDX-License-Identifier: Apache-2.0 */
/* Page-locking as emulated devices keep the books of it: what is refused, what is found out. */
#include "backends/emulated/internal.h"

#include "backends/testing.h"

extern const struct duet__backend duet__backend_emulated;
static const struct duet__backend *const emulated = &duet__backend_emulated;

/* The last line for the user. */
struct ear {
    unsigned lines;
    char last[128];
};

static void hear_line(void *clock, const char *line)
{
    struct ear *ear = clock;
    ear->lines++;
    g_strlcpy(ear->last, line, sizeof ear->last);
}

/* The clock of a device is not used here, so that it can be an ear. */
static double no_time(void *clock)
{
    return 0;
}

/* Attaches with an ear; what the test support made of `t` is done again. */
static void start(struct testing *t, struct ear *ear, uint64_t pin_bytes)
{
    testing_init(t, emulated);
    emulated->detach(t->shared);
    const struct backend_setup setup = {.machine = &t->machine,
                                        .now = no_time,
                                        .clock = ear,
                                        .pin_bytes = pin_bytes,
                                        .say = hear_line};
    *ear = (struct ear){0};
    g_assert_cmpint(emulated->attach(&t->shared, &setup, NULL), ==, DUET_OK);
}

/* ------------------------------------------------------------------------------------------- */
/* Ranges                                                                                       */

static void test_ranges(void)
{
    struct testing t;
    struct ear ear;
    char data[100];
    start(&t, &ear, sizeof data);
    WORKS(emulated->pin(t.shared, data + 20, 40, hear()));
    /* the same, and what is inside */
    WORKS(emulated->pin(t.shared, data + 20, 40, hear()));
    WORKS(emulated->pin(t.shared, data + 30, 30, hear()));
    WORKS(emulated->pin(t.shared, data + 20, 1, hear()));
    /* neighbours */
    WORKS(emulated->pin(t.shared, data + 60, 10, hear()));
    WORKS(emulated->pin(t.shared, data, 20, hear()));
    FAILS(emulated->pin(t.shared, data + 69, 2, hear()), DUET_EINVAL, "in part");
    FAILS(emulated->pin(t.shared, data, 100, hear()), DUET_EINVAL, "in part");
    FAILS(emulated->pin(t.shared, data, 0, hear()), DUET_EINVAL, "cannot be");
    FAILS(emulated->pin(t.shared, NULL, 1, hear()), DUET_EINVAL, "cannot be");
    FAILS(emulated->pin(t.shared, data, UINT64_MAX, hear()), DUET_EINVAL, "cannot be");
    g_assert_cmpint(emulated->unpin(t.shared, data, NULL), ==, DUET_OK);
    FAILS(emulated->unpin(t.shared, data, hear()), DUET_EINVAL, "nothing");
    FAILS(emulated->unpin(t.shared, data + 30, hear()), DUET_EINVAL, "nothing");
    g_assert_cmpint(emulated->unpin(t.shared, data + 20, NULL), ==, DUET_OK);
    g_assert_cmpint(emulated->pin(t.shared, data, 60, NULL), ==, DUET_OK);
    testing_fini(&t);
    g_assert_cmpuint(ear.lines, ==, 0);
}

static void test_limit(void)
{
    struct testing t;
    struct ear ear;
    char data[100];
    start(&t, &ear, 50);
    FAILS(emulated->pin(t.shared, data, 51, hear()), DUET_ENOMEM, "of at most 50");
    g_assert_cmpint(emulated->pin(t.shared, data, 30, NULL), ==, DUET_OK);
    FAILS(emulated->pin(t.shared, data + 30, 21, hear()), DUET_ENOMEM, "30 of at");
    g_assert_cmpint(emulated->pin(t.shared, data + 30, 20, NULL), ==, DUET_OK);
    g_assert_cmpint(emulated->unpin(t.shared, data, NULL), ==, DUET_OK);
    g_assert_cmpint(emulated->pin(t.shared, data + 70, 30, NULL), ==, DUET_OK);
    testing_fini(&t);
    start(&t, &ear, 0);
    FAILS(emulated->pin(t.shared, data, 1, hear()), DUET_ENOMEM, "of at most 0");
    testing_fini(&t);
}

/* ------------------------------------------------------------------------------------------- */
/* Marks                                                                                        */

/* All copies of a handle on all devices share one mark, until it is forgotten. */
static void test_marks(void)
{
    struct testing t;
    struct testing_device devices[2];
    struct ear ear;
    unsigned char host[64] = {1};
    _Atomic(void *) mark = NULL, other = NULL;
    start(&t, &ear, 0);
    for (unsigned round = 0; round < 2; round++) {
        void *noted[2];
        for (unsigned i = 0; i < 2; i++) {
            testing_open(&devices[i], &t, i);
            struct backend_copy in = testing_in(&devices[i], 0, host, sizeof host);
            struct backend_copy out = testing_out(&devices[i], 0, host, sizeof host);
            in.mark = out.mark = &mark;
            testing_copy(&devices[i], in);
            testing_finish(&devices[i], in.tag);
            testing_copy(&devices[i], out);
            testing_finish(&devices[i], out.tag);
            noted[i] = atomic_load(&mark);
        }
        g_assert_nonnull(noted[0]);
        g_assert_true(noted[0] == noted[1]);
        testing_write(&devices[0], 0, host, sizeof host); /* without a mark */
        for (unsigned i = 0; i < 2; i++)
            testing_close(&devices[i]);
        emulated->forget(t.shared, &mark);
        g_assert_null(atomic_load(&mark));
    }
    emulated->forget(t.shared, &other); /* a handle that was never copied */
    testing_fini(&t);
    g_assert_cmpuint(ear.lines, ==, 0);
}

/* A copy that is refused leaves nothing in use. */
static void test_refused_copy(void)
{
    struct testing t;
    struct testing_device d;
    struct ear ear;
    unsigned char host[64];
    _Atomic(void *) mark = NULL;
    start(&t, &ear, 0);
    testing_open(&d, &t, 0);
    struct backend_copy beyond = testing_in(&d, TESTING_BYTES, host, sizeof host);
    beyond.mark = &mark;
    g_assert_cmpint(emulated->copy(d.device, &beyond), ==, DUET_EINVAL);
    emulated->forget(t.shared, &mark);
    testing_close(&d);
    testing_fini(&t);
    g_assert_cmpuint(ear.lines, ==, 0);
}

/* Three errors of an engine: forgetting under a copy, moving a mark, not forgetting at all. */
static void test_errors(void)
{
    struct testing t;
    struct testing_device d;
    struct ear ear;
    struct backend_setup setup = {.say = hear_line, .clock = &ear};
    struct locks locks;
    _Atomic(void *) mark = NULL, moved = NULL;
    ear = (struct ear){0};
    g_assert_cmpint(duet__locks_init(&locks, &setup), ==, DUET_OK);
    struct lock_note *note = duet__locks_use(&locks, &mark);
    g_assert_true(note && note == duet__locks_use(&locks, &mark));
    duet__locks_leave(&locks, note);
    atomic_store(&moved, note);
    duet__locks_forget(&locks, &moved);
    g_assert_cmpuint(locks.errors, ==, 1);
    g_assert_nonnull(strstr(ear.last, "moved"));
    duet__locks_forget(&locks, &mark);
    g_assert_cmpuint(locks.errors, ==, 2);
    g_assert_nonnull(strstr(ear.last, "while its data was copied"));
    duet__locks_leave(&locks, note);
    duet__locks_leave(&locks, NULL);
    g_assert_null(duet__locks_use(&locks, NULL));
    duet__locks_fini(&locks);
    g_assert_cmpuint(locks.errors, ==, 3);
    g_assert_nonnull(strstr(ear.last, "never forgotten"));
    /* as an engine sees it */
    start(&t, &ear, 0);
    testing_open(&d, &t, 0);
    unsigned char host[64] = {1};
    atomic_store(&mark, NULL);
    struct backend_copy in = testing_in(&d, 0, host, sizeof host);
    in.mark = &mark;
    testing_copy(&d, in);
    testing_finish(&d, in.tag);
    testing_close(&d);
    testing_fini(&t);
    g_assert_cmpuint(ear.lines, ==, 1);
    g_assert_nonnull(strstr(ear.last, "never forgotten"));
}

TEST_MAIN(test_ranges, test_limit, test_marks, test_refused_copy, test_errors)
