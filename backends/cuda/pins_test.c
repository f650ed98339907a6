/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of page-locked ranges: what the application pins, what handles get, and the limits. */
#include "backends/cuda/testing.h"

#include <duet/random.h>

enum { KIB = 1 << 10, MIB = 1 << 20 };

struct fixture {
    struct pins pins;
    struct hearing hearing;
    unsigned char *memory; /* 16 MiB, in whole pages */
};

static void begin(struct fixture *f, uint64_t limit_bytes, uint64_t registered_bytes)
{
    const struct fake_cuda_config config = {.devices = 1,
                                            .whole_pages = true,
                                            .registered_bytes = registered_bytes};
    fake_cuda_reset(&config);
    hearing_init(&f->hearing);
    g_assert_cmpint(duet__pins_init(&f->pins, limit_bytes, hearing_add, &f->hearing), ==, DUET_OK);
    f->memory = user_pages(16 * MIB);
}

static void end(struct fixture *f)
{
    duet__pins_fini(&f->pins);
    (void)pthread_mutex_destroy(&f->hearing.mutex);
    g_assert_cmpuint(fake_cuda_leaks(true), ==, 0);
    free(f->memory);
}

static void expect_pin(struct fixture *f, size_t offset, uint64_t bytes, int error)
{
    g_assert_cmpint(duet__pins_pin(&f->pins, f->memory + offset, bytes, hear()), ==, error);
    g_assert_true((!error) == (*heard() == '\0'));
}

static void expect_unpin(struct fixture *f, size_t offset, int error)
{
    g_assert_cmpint(duet__pins_unpin(&f->pins, f->memory + offset, hear()), ==, error);
    g_assert_true((!error) == (*heard() == '\0'));
}

static bool direct(struct fixture *f, size_t offset, uint64_t bytes, _Atomic(void *) *mark)
{
    const struct pin_span span = {f->memory + offset, bytes, bytes};
    return duet__pins_direct(&f->pins, &span, mark);
}

static bool ordinary(struct fixture *f, size_t offset, uint64_t bytes)
{
    const struct pin_span span = {f->memory + offset, bytes, bytes};
    return duet__pins_ordinary(&f->pins, &span);
}

static void test_pin(void)
{
    struct fixture f;
    begin(&f, 64 * MIB, 0);
    expect_pin(&f, 100, 2 * MIB, DUET_OK); /* pages 0 to 2 MiB + 1 */
    g_assert_cmpuint(fake_cuda_registered(), ==, 2 * MIB + TESTING_PAGE);
    expect_pin(&f, 100, 2 * MIB, DUET_OK);
    expect_pin(&f, 4096, 10, DUET_OK);
    g_assert_cmpuint(fake_cuda_calls("cudaHostRegister"), ==, 1);
    expect_pin(&f, MIB, 4 * MIB, DUET_EINVAL);          /* begins inside */
    expect_pin(&f, 2 * MIB + 4095, 2, DUET_EINVAL);     /* the last byte */
    expect_pin(&f, 2 * MIB + 4096, 4096, DUET_OK);      /* just behind it */
    expect_pin(&f, 0, 8 * MIB, DUET_EINVAL);            /* around both */
    expect_pin(&f, 100, 2 * MIB + 4096 + 100, DUET_OK); /* across both, which touch */
    expect_unpin(&f, 4096, DUET_EINVAL); /* was inside of another one: nothing was done */
    expect_unpin(&f, 100, DUET_OK);
    expect_unpin(&f, 100, DUET_EINVAL);
    g_assert_cmpuint(fake_cuda_registered(), ==, 4096);
    expect_pin(&f, 0, MIB, DUET_OK);
    g_assert_cmpint(duet__pins_pin(&f.pins, NULL, 10, NULL), ==, DUET_EINVAL);
    g_assert_cmpint(duet__pins_pin(&f.pins, f.memory, 0, NULL), ==, DUET_EINVAL);
    g_assert_cmpint(duet__pins_pin(&f.pins, f.memory, UINT64_MAX, NULL), ==, DUET_EINVAL);
    g_assert_cmpint(duet__pins_unpin(&f.pins, NULL, NULL), ==, DUET_EINVAL);
    end(&f); /* the end unregisters the rest */
}

static unsigned asked;

static uint64_t three_mib(void *clock)
{
    asked++;
    return 3 * MIB;
}

/* A limit that grows with the machine's memory is asked for anew where it is reached; no longer if
   it has not grown. */
static void test_growing_limit(void)
{
    OWNED(end) struct fixture f;
    begin(&f, MIB, 0);
    f.pins.more = three_mib;
    expect_pin(&f, 0, 2 * MIB, DUET_OK);
    for (unsigned i = 0; i < 100; i++)
        expect_pin(&f, 2 * MIB, MIB + 1, DUET_ENOMEM);
    g_assert_cmpuint(asked, >, 1);
    g_assert_cmpuint(asked, <, 50);
    expect_pin(&f, 2 * MIB, MIB, DUET_OK);
    expect_unpin(&f, 0, DUET_OK);
    expect_unpin(&f, 2 * MIB, DUET_OK);
}

static void test_limit(void)
{
    struct fixture f;
    _Atomic(void *) marks[3] = {NULL, NULL, NULL};
    begin(&f, 2 * MIB, 0);
    expect_pin(&f, 0, 2 * MIB + 1, DUET_ENOMEM);
    expect_pin(&f, 0, MIB, DUET_OK);
    expect_pin(&f, 2 * MIB, MIB + 1, DUET_ENOMEM);
    g_assert_cmpuint(f.hearing.count, ==, 1); /* applications may ignore the error */
    g_assert_cmpuint(hearing_count(&f.hearing, "are page-locked already"), ==, 1);
    g_assert_false(direct(&f, 2 * MIB, MIB + 1, &marks[0]));
    g_assert_false(direct(&f, 4 * MIB, MIB + 1, &marks[1]));
    g_assert_cmpuint(hearing_count(&f.hearing, "DUET_PIN"), ==, 1);
    g_assert_true(direct(&f, 6 * MIB, MIB, &marks[2]));
    expect_unpin(&f, 0, DUET_OK);
    g_assert_false(direct(&f, 2 * MIB, MIB + 1, &marks[0])); /* it was decided */
    for (unsigned i = 0; i < 3; i++)
        duet__pins_forget(&f.pins, &marks[i]);
    g_assert_cmpuint(fake_cuda_registered(), ==, 0);
    end(&f);

    begin(&f, 0, 0);
    expect_pin(&f, 0, MIB, DUET_ENOMEM);
    g_assert_false(direct(&f, 0, MIB, &marks[0]));
    g_assert_cmpuint(f.hearing.count, ==, 0);
    g_assert_cmpuint(fake_cuda_calls("cudaHostRegister"), ==, 0);
    end(&f);
}

/* More than one registration may hold. */
static void test_pieces(void)
{
    struct fixture f;
    _Atomic(void *) marks[3] = {NULL, NULL, NULL};
    begin(&f, 64 * MIB, 0);
    f.pins.piece_bytes = MIB;
    expect_pin(&f, 0, 3 * MIB + 10, DUET_OK);
    g_assert_cmpuint(fake_cuda_calls("cudaHostRegister"), ==, 4);
    expect_pin(&f, MIB / 2, MIB, DUET_OK);
    g_assert_true(direct(&f, MIB, MIB, &marks[0]));
    g_assert_false(direct(&f, MIB / 2, MIB, &marks[1])); /* in two of them */
    g_assert_false(direct(&f, MIB / 2, MIB, NULL));
    g_assert_false(direct(&f, 8 * MIB, 2 * MIB, &marks[2])); /* a handle gets one piece or none */
    g_assert_cmpuint(f.hearing.count, ==, 0);
    expect_unpin(&f, 0, DUET_OK);
    g_assert_cmpuint(fake_cuda_registered(), ==, 0);
    for (unsigned i = 0; i < 3; i++)
        duet__pins_forget(&f.pins, &marks[i]);
    end(&f);

    /* if one of them is refused none stays */
    begin(&f, 64 * MIB, 0);
    f.pins.piece_bytes = MIB;
    fake_cuda_fail("cudaHostRegister", 3, cudaErrorMemoryAllocation);
    expect_pin(&f, 0, 4 * MIB, DUET_ENOMEM);
    g_assert_cmpuint(fake_cuda_registered(), ==, 0);
    g_assert_cmpint(cudaGetLastError(), ==, cudaSuccess);
    expect_pin(&f, 0, 4 * MIB, DUET_OK);
    end(&f);
}

static void test_refused(void)
{
    struct fixture f;
    _Atomic(void *) marks[2] = {NULL, NULL};
    begin(&f, 64 * MIB, 2 * MIB); /* the system allows 2 MiB */
    FAILS(duet__pins_pin(&f.pins, f.memory, 3 * MIB, hear()), DUET_ENOMEM,
          "cudaHostRegister: out of memory");
    SAYS("read-only");
    g_assert_false(direct(&f, 0, 3 * MIB, &marks[0]));
    g_assert_false(direct(&f, 4 * MIB, 3 * MIB, &marks[1]));
    g_assert_cmpuint(hearing_count(&f.hearing, "cudaHostRegister"), ==, 1);
    g_assert_cmpint(cudaGetLastError(), ==, cudaSuccess);
    duet__pins_forget(&f.pins, &marks[0]);
    g_assert_null(marks[0]);
    g_assert_true(direct(&f, 0, 2 * MIB, &marks[0])); /* as another handle */
    end(&f);

    /* by the application itself */
    begin(&f, 64 * MIB, 0);
    marks[0] = NULL;
    g_assert_cmpint(cudaHostRegister(f.memory, MIB, cudaHostRegisterPortable), ==, cudaSuccess);
    expect_pin(&f, 0, MIB, DUET_EINVAL);
    g_assert_false(direct(&f, 0, MIB, &marks[0]));
    g_assert_cmpuint(hearing_count(&f.hearing, "by CUDA itself"), ==, 1);
    g_assert_cmpint(cudaHostUnregister(f.memory), ==, cudaSuccess);
    end(&f);
}

/* Registrations of handles: they begin with the first copy, and end in time. */
static void test_handles(void)
{
    OWNED(end) struct fixture f;
    _Atomic(void *) a = NULL, b = NULL, small = NULL, beside = NULL, again = NULL;
    begin(&f, 64 * MIB, 0);
    g_assert_true(direct(&f, 50, MIB, &a));
    g_assert_true(direct(&f, 50, MIB, &a));
    g_assert_cmpuint(fake_cuda_calls("cudaHostRegister"), ==, 1);
    g_assert_cmpuint(fake_cuda_registered(), ==, MIB + TESTING_PAGE);
    g_assert_true(direct(&f, 4096, MIB / 2, &b)); /* another handle inside of it */
    g_assert_false(direct(&f, 4 * MIB, 255 * KIB, &small));
    g_assert_cmpuint(f.hearing.count, ==, 0);
    g_assert_false(direct(&f, MIB, MIB, &beside)); /* shares a page */
    g_assert_cmpuint(hearing_count(&f.hearing, "duet_pin"), ==, 1);
    g_assert_false(direct(&f, MIB + 4096 + 8, MIB, NULL)); /* nothing for what does not last */
    g_assert_true(direct(&f, 60, 100, NULL));              /* a part of a handle will do, too */
    g_assert_false(direct(&f, 0, 40, NULL));               /* other data in its page will not */
    g_assert_cmpuint(fake_cuda_calls("cudaHostRegister"), ==, 1);
    duet__pins_forget(&f.pins, &a);
    g_assert_true(direct(&f, 4096, MIB / 2, &b)); /* b still holds it */
    duet__pins_forget(&f.pins, &b);
    g_assert_cmpuint(fake_cuda_registered(), ==, 0);
    g_assert_true(direct(&f, MIB, MIB, &again));
    duet__pins_forget(&f.pins, &again);
    duet__pins_forget(&f.pins, &small);
    duet__pins_forget(&f.pins, &beside);
    duet__pins_forget(&f.pins, &beside);
}

/* Tiles inside of a matrix: only duet_pin helps. */
static void test_tiles(void)
{
    OWNED(end) struct fixture f;
    _Atomic(void *) marks[2][4] = {{NULL}};
    enum { ROWS = 512, TILE = ROWS / 4, ROW_BYTES = 8 };
    begin(&f, 64 * MIB, 0);
    for (unsigned pinned = 0; pinned < 2; pinned++) {
        if (pinned)
            expect_pin(&f, 0, 16 * MIB, DUET_OK);
        for (unsigned i = 0; i < 4; i++) {
            const struct pin_span span = {f.memory + i * TILE * ROW_BYTES,
                                          (4 * TILE - 1) * ROWS * ROW_BYTES + TILE * ROW_BYTES,
                                          4 * TILE * TILE * ROW_BYTES};
            g_assert_true(duet__pins_direct(&f.pins, &span, &marks[pinned][i]) == pinned);
        }
    }
    g_assert_cmpuint(hearing_count(&f.hearing, "duet_pin"), ==, 1);
    g_assert_cmpuint(fake_cuda_calls("cudaHostRegister"), ==, 1);
    for (unsigned i = 0; i < 8; i++)
        duet__pins_forget(&f.pins, &marks[i / 4][i % 4]);
}

/* Pinned memory of handles, in all orders in which both can end. */
static void test_both(void)
{
    struct fixture f;
    _Atomic(void *) mark = NULL;
    begin(&f, 64 * MIB, 0);
    expect_pin(&f, 0, 4 * MIB, DUET_OK);
    g_assert_true(direct(&f, MIB, MIB, &mark));
    expect_unpin(&f, 0, DUET_OK); /* at once, though the handle lives on ... */
    g_assert_cmpuint(fake_cuda_registered(), ==, 0);
    g_assert_false(direct(&f, MIB, MIB, &mark)); /* ... without it */
    expect_pin(&f, 0, MIB, DUET_OK);
    duet__pins_forget(&f.pins, &mark);
    g_assert_true(direct(&f, 0, MIB, &mark));
    duet__pins_forget(&f.pins, &mark);
    g_assert_cmpuint(fake_cuda_registered(), ==, MIB);
    expect_unpin(&f, 0, DUET_OK);
    /* what a handle has becomes the application's */
    g_assert_true(direct(&f, 0, MIB, &mark));
    expect_pin(&f, 100, 100, DUET_OK);
    duet__pins_forget(&f.pins, &mark);
    g_assert_cmpuint(fake_cuda_registered(), ==, MIB);
    expect_unpin(&f, 100, DUET_OK);
    g_assert_cmpuint(fake_cuda_registered(), ==, 0);
    expect_pin(&f, 0, MIB, DUET_OK);
    g_assert_true(direct(&f, 0, MIB, &mark));
    expect_unpin(&f, 0, DUET_OK);
    end(&f); /* with a mark that nobody forgets */
}

static void test_ordinary(void)
{
    OWNED(end) struct fixture f;
    begin(&f, 64 * MIB, 0);
    expect_pin(&f, MIB, MIB, DUET_OK);
    g_assert_true(ordinary(&f, 0, MIB));
    g_assert_false(ordinary(&f, 0, MIB + 1));
    g_assert_false(ordinary(&f, MIB + 5, 1));
    g_assert_false(ordinary(&f, 2 * MIB - 1, MIB));
    g_assert_true(ordinary(&f, 2 * MIB, MIB));
}

/* Random pins, handles and their ends, against a map of pages. */
enum { PAGES_ = 256, MARKS = 12 };

static void random_step(struct fixture *f, uint64_t *random, _Atomic(void *) *marks,
                        unsigned *firsts, unsigned *lengths)
{
    unsigned first = duet_random_below(random, PAGES_ - 70), m = duet_random_below(random, MARKS);
    unsigned length = 1 + duet_random_below(random, 70);
    switch (duet_random_below(random, 4)) {
    case 0:
        (void)!duet__pins_pin(&f->pins, f->memory + first * 4096, length * 4096, hear());
        break;
    case 1:
        (void)duet__pins_unpin(&f->pins, f->memory + first * 4096, hear());
        break;
    case 2:
        duet__pins_forget(&f->pins, &marks[m]);
        g_assert_null(marks[m]);
        break;
    default:
        if (!marks[m]) {
            firsts[m] = first * 4096 + duet_random_below(random, 4096);
            lengths[m] = length * 4000;
        }
        (void)direct(f, firsts[m], lengths[m], &marks[m]);
    }
}

/* Only memory in one registration may go to CUDA directly: the fake refuses anything else. */
static void try_copy(struct fixture *f, void *slab, cudaStream_t stream, size_t offset,
                     size_t bytes)
{
    g_assert_cmpint(cudaMemcpyAsync(slab, f->memory + offset, bytes, cudaMemcpyHostToDevice,
                                    stream),
                    ==, cudaSuccess);
    g_assert_cmpint(cudaStreamSynchronize(stream), ==, cudaSuccess);
}

static void test_random(void)
{
    OWNED(end) struct fixture f;
    _Atomic(void *) marks[MARKS] = {NULL};
    unsigned firsts[MARKS] = {0}, lengths[MARKS] = {0}, m = 0;
    uint64_t random = 3;
    struct fake_cuda_stats stats;
    void *slab = NULL;
    cudaStream_t stream = NULL;
    begin(&f, 600 * 4096, 0);
    g_assert_cmpint(cudaMalloc(&slab, 70 * 4096), ==, cudaSuccess);
    g_assert_cmpint(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), ==, cudaSuccess);
    f.pins.piece_bytes = 64 * 4096;
    for (unsigned i = 0; i < 20000; i++) {
        random_step(&f, &random, marks, firsts, lengths);
        g_assert_cmpuint(f.pins.bytes, ==, fake_cuda_registered());
        m = (m + 1) % MARKS;
        if (marks[m] && direct(&f, firsts[m], lengths[m], &marks[m]))
            try_copy(&f, slab, stream, firsts[m], lengths[m]);
    }
    fake_cuda_stats(&stats);
    g_assert_cmpuint(stats.in, >, 500);
    g_assert_cmpuint(stats.pageable_in, ==, 0);
    for (m = 0; m < MARKS; m++)
        duet__pins_forget(&f.pins, &marks[m]);
    g_assert_cmpint(cudaStreamDestroy(stream), ==, cudaSuccess);
    g_assert_cmpint(cudaFree(slab), ==, cudaSuccess);
}

/* Threads that decide for the same handles at the same time. */
static gpointer decide_all(gpointer argument)
{
    struct fixture *f = argument;
    static _Atomic(void *) shared_marks[8];
    for (unsigned i = 0; i < 4000; i++) {
        _Atomic(void *) own = NULL;
        g_assert_true(direct(f, i % 8 * MIB, MIB, &shared_marks[i % 8]));
        (void)direct(f, 8 * MIB + i % 4 * 2 * MIB, MIB, &own);
        (void)direct(f, 8 * MIB + i % 4 * 2 * MIB + 4096, 4096, NULL);
        duet__pins_forget(&f->pins, &own);
    }
    return NULL;
}

static void test_threads(void)
{
    OWNED(end) struct fixture f;
    GThread *threads[3];
    begin(&f, 64 * MIB, 0);
    for (unsigned i = 0; i < 3; i++)
        threads[i] = g_thread_new("decide", decide_all, &f);
    for (unsigned i = 0; i < 3; i++)
        (void)g_thread_join(threads[i]);
    g_assert_cmpuint(fake_cuda_registered(), ==, 8 * MIB);
}

TEST_MAIN(test_pin, test_limit, test_growing_limit, test_pieces, test_refused, test_handles,
          test_tiles, test_both, test_ordinary, test_random, test_threads)
