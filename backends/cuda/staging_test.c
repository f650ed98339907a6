/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of staged copies: pieces of every shape, and random programs of copies on a device, beside
 * a plain copy.
 */
#include "backends/cuda/testing.h"

#include <duet/random.h>

enum { MIB = 1 << 20 };

static void fill_random(unsigned char *bytes, size_t count, uint64_t *random)
{
    for (size_t i = 0; i < count; i += 8) {
        uint64_t value = duet_random_next(random);
        memcpy(bytes + i, &value, MIN(count - i, sizeof value));
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Pieces                                                                                       */

/* Cut to pieces, through a buffer, and put together again elsewhere. */
static void through_buffer(size_t bytes, size_t cols, size_t room, uint64_t *random)
{
    size_t from_pitch = bytes + duet_random_below(random, 3) * 5;
    size_t to_pitch = bytes + duet_random_below(random, 3) * 7, moved = 0;
    unsigned char *from = g_malloc(from_pitch * cols), *to = g_malloc(to_pitch * cols);
    unsigned char *buffer = g_malloc(room);
    fill_random(from, from_pitch * cols, random);
    memset(to, 0xa5, to_pitch * cols);
    const struct backend_copy copy = {.destination = to,
                                      .source = from,
                                      .column_bytes = bytes,
                                      .cols = cols,
                                      .destination_pitch = to_pitch,
                                      .source_pitch = from_pitch};
    struct cut cut = {0, 0};
    struct piece piece;
    while (duet__piece_cut(&copy, &cut, room, &piece)) {
        g_assert_cmpuint(piece.width * piece.cols, <=, room);
        g_assert_true(piece.cols == 1 || (piece.width == bytes && piece.offset == 0));
        duet__piece_pack(buffer, &copy, &piece);
        duet__piece_unpack(buffer, &copy, &piece);
        moved += piece.width * piece.cols;
    }
    g_assert_cmpuint(moved, ==, bytes * cols);
    g_assert_cmpuint(cut.column, ==, cols);
    g_assert_false(duet__piece_cut(&copy, &cut, room, &piece));
    for (size_t c = 0; c < cols; c++) {
        g_assert_cmpmem(to + c * to_pitch, bytes, from + c * from_pitch, bytes);
        for (size_t i = bytes; i < to_pitch; i++)
            g_assert_cmpuint(to[c * to_pitch + i], ==, 0xa5);
    }
    g_free(from);
    g_free(to);
    g_free(buffer);
}

static void test_pieces(void)
{
    static const size_t sizes[] = {1, 2, 7, 8, 9, 63, 64, 65};
    uint64_t random = 1;
    for (unsigned b = 0; b < G_N_ELEMENTS(sizes); b++)
        for (unsigned r = 0; r < G_N_ELEMENTS(sizes); r++)
            for (size_t cols = 1; cols < 20; cols += 3)
                through_buffer(sizes[b], cols, sizes[r], &random);
    for (unsigned i = 0; i < 3000; i++)
        through_buffer(1 + duet_random_below(&random, 90), 1 + duet_random_below(&random, 20),
                       1 + duet_random_below(&random, 200), &random);
    const struct backend_copy empty = {.cols = 5}, none = {.column_bytes = 5};
    struct cut cut = {0, 0};
    struct piece piece;
    g_assert_false(duet__piece_cut(&empty, &cut, 10, &piece));
    g_assert_false(duet__piece_cut(&none, &cut, 10, &piece));
}

static void test_open(void)
{
    const struct fake_cuda_config config = {.devices = 1};
    struct failure failure;
    struct staging staging = {.memory = NULL};
    fake_cuda_reset(&config);
    duet__staging_close(&staging);
    for (unsigned n = 1; n <= STAGING_BUFFERS; n++) {
        fake_cuda_fail("cudaEventCreateWithFlags", n, cudaErrorMemoryAllocation);
        g_assert_false(duet__staging_open(&staging, STAGING_BYTES, &failure));
        g_assert_cmpstr(failure.call, ==, "cudaEventCreateWithFlags");
        g_assert_cmpuint(fake_cuda_leaks(true), ==, 0);
        fake_cuda_reset(&config);
    }
    fake_cuda_fail("cudaHostAlloc", 1, cudaErrorMemoryAllocation);
    g_assert_false(duet__staging_open(&staging, STAGING_BYTES, &failure));
    g_assert_cmpstr(failure.call, ==, "cudaHostAlloc");
    g_assert_true(duet__staging_open(&staging, STAGING_BYTES, &failure));
    duet__staging_close(&staging);
    duet__staging_close(&staging);
    g_assert_cmpuint(fake_cuda_leaks(true), ==, 0);
}

/* ------------------------------------------------------------------------------------------- */
/* Programs                                                                                     */

enum { COPIES = 12, SLAB = 2 * MIB, HOST = COPIES * 400 << 10, LARGEST = 330 << 10 };

struct program {
    struct user user;
    struct backend_device *device;
    unsigned char *mirror, *host, *expected; /* the slab as it should be, and the host's memory */
    uint64_t random;
    struct backend_copy copies[COPIES];
    _Atomic(void *) marks[COPIES];
};

/* Few bytes most of the time, and sometimes more than all staging buffers hold. */
static void draw(struct program *p, unsigned i, bool in)
{
    unsigned limit = 1U << duet_random_below(&p->random, 20);
    size_t total = 1 + duet_random_below(&p->random, MIN(limit, (unsigned)LARGEST));
    size_t cols = 1 + duet_random_below(&p->random, (unsigned)MIN(total, 300));
    if (duet_random_below(&p->random, 4) == 0)
        cols = 1;
    size_t bytes = MAX(total / cols, 1);
    size_t pitch = bytes + duet_random_below(&p->random, 2) * duet_random_below(&p->random, 900);
    size_t span = pitch * (cols - 1) + bytes;
    size_t at =
        duet_random_below(&p->random, HOST / COPIES - (unsigned)MIN(span, HOST / COPIES - 1));
    if (span > HOST / COPIES) {
        cols = 1;
        bytes = MIN(bytes, HOST / COPIES - at);
        pitch = bytes;
    }
    /* copies in may overlap on the slab, and are from parts of the host's memory of their own */
    size_t offset = duet_random_below(&p->random, (unsigned)(SLAB - bytes * cols));
    unsigned char *place = p->host + (size_t)i * (HOST / COPIES) + at;
    p->copies[i] = user_copy(p->device, in, offset, place, bytes, cols, pitch);
    if (duet_random_below(&p->random, 3))
        p->copies[i].mark = &p->marks[i];
}

static void apply(struct program *p, const struct backend_copy *copy)
{
    bool in = copy->stream == BACKEND_IN;
    unsigned char *slab = backend_base(p->device);
    const unsigned char *at = in ? copy->destination : copy->source;
    unsigned char *mirror = p->mirror + (at - slab);
    for (size_t c = 0; c < copy->cols; c++) {
        if (in)
            memcpy(mirror + c * copy->column_bytes,
                   (const unsigned char *)copy->source + c * copy->source_pitch,
                   copy->column_bytes);
        else
            memcpy(p->expected + ((unsigned char *)copy->destination - p->host) +
                       c * copy->destination_pitch,
                   mirror + c * copy->column_bytes, copy->column_bytes);
    }
}

/* All at once, in the order of the stream. */
static void round_of(struct program *p, bool in)
{
    struct backend_completion done[COPIES];
    memcpy(p->expected, p->host, HOST);
    for (unsigned i = 0; i < COPIES; i++) {
        draw(p, i, in);
        p->copies[i].tag = &p->copies[i];
        apply(p, &p->copies[i]);
        g_assert_cmpint(duet__backend_cuda.copy(p->device, &p->copies[i]), ==, DUET_OK);
    }
    user_collect(p->device, done, COPIES);
    for (unsigned i = 0; i < COPIES; i++) {
        g_assert_true(done[i].tag == &p->copies[i]);
        g_assert_cmpint(done[i].status, ==, DUET_OK);
        g_assert_true(done[i].start_s <= done[i].end_s);
        g_assert_true(i == 0 || done[i].start_s >= done[i - 1].end_s);
    }
    g_assert_true(!memcmp(p->host, p->expected, HOST));
    for (unsigned i = 0; i < COPIES; i++)
        duet__backend_cuda.forget(p->user.shared, &p->marks[i]);
}

static void run_program(uint64_t seed, uint64_t pin_bytes, unsigned delay_us)
{
    g_autofree struct program *p = g_new0(struct program, 1);
    const struct fake_cuda_config config = {.devices = 1, .delay_us = delay_us};
    struct fake_cuda_stats stats;
    user_begin(&p->user, &config, pin_bytes);
    p->random = seed;
    p->device = user_open(&p->user, user_config(0, SLAB));
    p->mirror = g_malloc(SLAB);
    p->host = user_pages(HOST);
    p->expected = g_malloc(HOST);
    fill_random(p->host, HOST, &p->random);
    memset(p->mirror, 0xff, SLAB);
    for (unsigned i = 0; i < 6; i++)
        round_of(p, i % 2 == 0);
    fake_cuda_stats(&stats);
    g_assert_cmpuint(stats.pageable_in + stats.pageable_out + stats.violations, ==, 0);
    g_assert_cmpuint(stats.in, >, 0);
    duet__backend_cuda.close(p->device);
    user_end(&p->user);
    free(p->host);
    g_free(p->mirror);
    g_free(p->expected);
}

static void test_programs(void)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        run_program(seed, 0, 0);          /* all is staged */
        run_program(seed, HOST, 0);       /* some of it */
        run_program(seed, HOST / 4, 100); /* with a device that takes its time */
    }
}

/* Without buffers and page-locking copies are slow, which is reported. */
static void test_without_buffers(void)
{
    const struct fake_cuda_config config = {.devices = 1};
    struct user user;
    struct fake_cuda_stats stats;
    unsigned char *host = user_pages(2 * MIB);
    user_begin(&user, &config, 4 * MIB);
    fake_cuda_fail("cudaHostAlloc", 1, cudaErrorMemoryAllocation);
    fake_cuda_fail("cudaHostAlloc", 2, cudaErrorMemoryAllocation);
    struct backend_device *device = user_open(&user, user_config(0, 2 * MIB));
    memset(host, 3, MIB);
    memset(host + MIB, 4, MIB);
    struct backend_copy in = user_copy(device, true, 0, host, 1000, 1000, 1024);
    struct backend_copy out = user_copy(device, false, 0, host + MIB, 1000, 1000, 1024);
    for (unsigned i = 0; i < 2; i++) {
        g_assert_cmpint(duet__backend_cuda.copy(device, &in), ==, DUET_OK);
        g_assert_cmpint(user_finish(device).status, ==, DUET_OK);
        g_assert_cmpint(duet__backend_cuda.copy(device, &out), ==, DUET_OK);
        g_assert_cmpint(user_finish(device).status, ==, DUET_OK);
    }
    for (size_t i = 0; i < MIB; i++)
        g_assert_cmpuint(host[MIB + i], ==, i % 1024 < 1000 && i < 1000 * 1024 ? 3 : 4);
    fake_cuda_stats(&stats);
    g_assert_cmpuint(stats.pageable_in, ==, 2);
    g_assert_cmpuint(stats.pageable_out, ==, 2);
    g_assert_cmpuint(hearing_count(&user.hearing, "cudaHostAlloc"), ==, 2); /* once a direction */
    /* CUDA may not be given memory that is page-locked in part */
    g_assert_cmpint(duet__backend_cuda.pin(user.shared, host, 4096, NULL), ==, DUET_OK);
    g_assert_cmpint(duet__backend_cuda.copy(device, &in), ==, DUET_ENOMEM);
    g_assert_nonnull(strstr(backend_why(device), "cudaHostAlloc: out of memory"));
    duet__backend_cuda.close(device);
    user_end(&user);
    free(host);
}

/* Pitches that CUDA does not take: column by column. */
static void test_pitch(void)
{
    enum { PITCH = 512, COLS = 20, BYTES = 100 };
    const struct fake_cuda_config config = {.devices = 1};
    OWNED(user_end) struct user user;
    unsigned char host[2][PITCH * COLS];
    user_begin(&user, &config, 4 * MIB);
    struct backend_device *device = user_open(&user, user_config(0, MIB));
    device->max_pitch = PITCH - 1;
    memset(host, 7, sizeof host[0]);
    memset(host[1], 9, sizeof host[1]);
    g_assert_cmpint(duet__backend_cuda.pin(user.shared, host, sizeof host, NULL), ==, DUET_OK);
    struct backend_copy in = user_copy(device, true, 0, host[0], BYTES, COLS, PITCH);
    g_assert_cmpint(duet__backend_cuda.copy(device, &in), ==, DUET_OK);
    g_assert_cmpint(user_finish(device).status, ==, DUET_OK);
    struct backend_copy out = user_copy(device, false, 0, host[1], BYTES, COLS, PITCH);
    g_assert_cmpint(duet__backend_cuda.copy(device, &out), ==, DUET_OK);
    g_assert_cmpint(user_finish(device).status, ==, DUET_OK);
    for (size_t i = 0; i < sizeof host[1]; i++)
        g_assert_cmpuint(host[1][i], ==, i % PITCH < BYTES ? 7 : 9);
    g_assert_cmpuint(fake_cuda_calls("cudaMemcpy2DAsync"), ==, 0);
    g_assert_cmpuint(fake_cuda_calls("cudaMemcpyAsync"), ==, (unsigned)2 * COLS);
}

TEST_MAIN(test_pieces, test_open, test_programs, test_without_buffers, test_pitch)
