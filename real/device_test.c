/* SPDX-License-Identifier: Apache-2.0 */
/* The real engine with emulated GPUs that compute: copies, little memory, GPUs that are lost. */
#include <stdlib.h>

#include <duet/parts.h>
#include <duet/random.h>

#include "real/testing_steps.h"

enum { TIGHT_BYTES = 8 << 8, /* eight blocks */ SIZE = 7 };

static void test_results(void)
{
    for (unsigned gpus = 1; gpus <= 3; gpus++) {
        for (unsigned cpus = 0; cpus <= 2; cpus++) {
            struct testing t = {.cpus = cpus, .gpus = gpus};
            struct duet_stats stats = run_steps(&t, 10 * gpus + cpus, NULL);
            g_assert_cmpuint(stats.tasks, ==, STEPS);
            if (!cpus)
                g_assert_cmpuint(stats.bytes_to_device, >, 0);
        }
    }
}

static void test_policies(void)
{
    for (size_t p = 0; duet_policy_at(p); p++) {
        struct testing t = {.cpus = 1, .gpus = 2, .policy = duet_policy_at(p)->name};
        (void)run_steps(&t, p, NULL);
    }
}

static void test_little_memory(void)
{
    for (unsigned round = 0; round < 4; round++) {
        struct testing t = {.cpus = round % 2,
                            .gpus = 2,
                            .gpu_memory_bytes = TIGHT_BYTES,
                            .no_peer = round / 2,
                            .window = round == 3 ? 32 : 0};
        struct duet_stats stats = run_steps(&t, round, NULL);
        if (!t.cpus)
            g_assert_cmpuint(stats.evictions, >, 0);
        if (t.no_peer)
            g_assert_cmpuint(stats.bytes_between, ==, 0);
    }
}

/* Columns of a matrix that is a part of a larger one, there and back. */
static int negate(const struct duet_call *call)
{
    const struct duet_buffer *buffer = call->buffers;
    double *data = buffer->data;
    if (buffer->rows != SIZE || buffer->cols != SIZE - 2 || buffer->ld != SIZE || !call->stream)
        return DUET_EINVAL;
    for (size_t j = 0; j < buffer->cols; j++)
        for (size_t i = 0; i < buffer->rows; i++)
            data[j * buffer->ld + i] *= -1;
    return DUET_OK;
}

static void test_matrix(void)
{
    OWNED(testing_close) struct duet_runtime *core = testing_open(&(struct testing){.gpus = 1});
    double matrix[2 * SIZE * SIZE];
    struct duet_access access = {.mode = DUET_RW};
    for (unsigned i = 0; i < 2 * SIZE * SIZE; i++)
        matrix[i] = 1 + i;
    testing_must(core, duet_register_matrix(core, matrix, SIZE, SIZE - 2, 2 * SIZE, sizeof(double),
                                            &access.handle));
    testing_submit(core, testing_codelet(core, "negate", negate, "cuda"), &access, 1, NULL, 0);
    testing_must(core, duet_unregister(core, access.handle));
    for (unsigned i = 0; i < 2 * SIZE * SIZE; i++) {
        bool inside = i % (2 * SIZE) < SIZE && i / (2 * SIZE) < SIZE - 2;
        g_assert_cmpfloat(matrix[i], ==, inside ? -1.0 - i : 1.0 + i);
    }
}

enum { EDGE = 37, ROUNDS = 60, VIEWS = 4 };

/* Argument of a task: its part (0: all; lower, upper, diagonal), and a number. */
struct share {
    unsigned part, salt;
};

static bool belongs(unsigned part, size_t row, size_t col)
{
    return part == 0 || (part == 1 && row > col) || (part == 2 && row < col) ||
           (part == 3 && row == col);
}

static void mix_share(const struct share *share, double *data, size_t ld)
{
    for (size_t col = 0; col < EDGE; col++)
        for (size_t row = 0; row < EDGE; row++)
            if (belongs(share->part, row, col))
                data[row + col * ld] = 0.5 * data[row + col * ld] + share->salt;
}

static int run_share(const struct duet_call *call)
{
    const struct duet_buffer *buffer = call->buffers;
    if (buffer->rows != EDGE || buffer->cols != EDGE)
        return DUET_EINVAL;
    mix_share(call->args, buffer->data, buffer->ld);
    return DUET_OK;
}

/* Tasks on a square and on its triangles, which are copied beside each other's being written. */
static void test_triangles(void)
{
    static double matrix[EDGE * (EDGE + 2)], expected[EDGE * (EDGE + 2)];
    for (unsigned seed = 1; seed <= 10; seed++) {
        struct testing t = {.cpus = 1, .gpus = 2, .gpu_memory_bytes = 8 * EDGE * EDGE * 3};
        OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
        struct duet_codelet *codelets[] = {testing_codelet(core, "on_gpu", run_share, "cuda"),
                                           testing_codelet(core, "on_cpu", run_share, "cpu")};
        struct duet_handle *views[VIEWS];
        uint64_t rng = seed;
        for (unsigned i = 0; i < EDGE * (EDGE + 2); i++)
            matrix[i] = expected[i] = i;
        testing_must(core, duet_register_matrix(core, matrix, EDGE, EDGE, EDGE + 2, 8, &views[0]));
        testing_must(core, duet_cut_triangles(core, views[0], DUET_DIAGONAL_APART, &views[1]));
        for (unsigned i = 0; i < ROUNDS; i++) {
            const struct share share = {duet_random_below(&rng, VIEWS) * (i % 8 != 0), i};
            const struct duet_access access = {views[share.part], DUET_RW};
            testing_submit(core, codelets[duet_random_below(&rng, 2)], &access, 1, &share,
                           sizeof share);
            mix_share(&share, expected, EDGE + 2);
        }
        testing_must(core, duet_unregister(core, views[0]));
        g_assert_cmpmem(matrix, sizeof matrix, expected, sizeof expected);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Submitting from kernels; errors                                                              */

struct again {
    struct duet_codelet *codelet;
    _Atomic(int) *calls;
};

static int once_more(const struct duet_call *call)
{
    struct again again;
    memcpy(&again, call->args, sizeof again);
    const struct duet_task_desc desc = {.codelet = again.codelet,
                                        .args = &again.calls,
                                        .args_bytes = sizeof again.calls};
    return duet_submit(call->runtime, &desc);
}

static void test_nested(void)
{
    for (unsigned cpus = 0; cpus < 2; cpus++) {
        struct testing t = {.cpus = cpus, .gpus = 2, .window = 8};
        OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
        _Atomic(int) calls = 0;
        const struct again again = {testing_codelet(core, "count", testing_count, NULL), &calls};
        struct duet_codelet *codelet = testing_codelet(core, "again", once_more, "cuda");
        for (unsigned i = 0; i < 300; i++)
            testing_submit(core, codelet, NULL, 0, &again, sizeof again);
        testing_must(core, duet_wait(core));
        g_assert_cmpint(atomic_load(&calls), ==, 300);
    }
}

static int fail(const struct duet_call *call)
{
    return DUET_EIO;
}

static void test_error(void)
{
    OWNED(testing_close) struct duet_runtime *core = testing_open(&(struct testing){.gpus = 1});
    testing_submit(core, testing_codelet(core, "spoil", fail, NULL), NULL, 0, NULL, 0);
    REFUSED(core, duet_wait(core), DUET_EIO, "task 1 (spoil) failed on gpu0");
}

/* A close in the middle, with copies between the devices, leaves nothing behind. */
static void test_close_in_the_middle(void)
{
    for (unsigned round = 0; round < 10; round++) {
        struct testing t = {.cpus = round % 2, .gpus = 3};
        uint64_t cells[CELLS] = {0};
        OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
        submit_mixes(core, cells, 500);
        if (round % 4 < 2)
            duet_cancel(core);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Devices that are lost                                                                        */

/* Either everything is right in the end, or the run says that data was lost. */
static void test_lost(void)
{
    const char *const lose[] = {"gpu0@1", "gpu1@2", "gpu0@50,gpu1@100", "gpu1@300",
                                "gpu0@1,gpu1@1"};
    for (unsigned i = 0; i < 4 * G_N_ELEMENTS(lose); i++) {
        int error = DUET_OK;
        struct testing t = {.cpus = 1 + i / G_N_ELEMENTS(lose) % 2,
                            .gpus = 2,
                            .lose = lose[i % G_N_ELEMENTS(lose)],
                            .no_peer = i >= 2 * G_N_ELEMENTS(lose)};
        (void)run_steps(&t, i, &error);
        g_assert_true(!error || error == DUET_ELOST);
    }
}

/* Tasks that only read are computed again elsewhere: nothing is lost with the device. */
static void test_lost_readers(void)
{
    struct testing t = {.cpus = 1, .gpus = 1, .lose = "gpu0@5"};
    OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
    struct duet_codelet *codelet = testing_codelet(core, "count", testing_count, NULL);
    _Atomic(int) calls = 0, *counter = &calls;
    for (unsigned i = 0; i < 500; i++)
        testing_submit(core, codelet, NULL, 0, &counter, sizeof counter);
    testing_must(core, duet_wait(core));
    g_assert_cmpint(atomic_load(&calls), >=, 500);
    g_assert_cmpuint(duet_tasks_done(core), ==, 500);
}

static int submit_and_rest(const struct duet_call *call)
{
    int error = once_more(call);
    testing_sleep(1e-3);
    return error;
}

/* Tasks that run when the device is lost have submitted everything already: it counts once. */
static void test_lost_nested(void)
{
    enum { OUTER = 20 };
    struct testing t = {.cpus = 1, .gpus = 2, .lose = "gpu0@3,gpu1@6"};
    OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
    _Atomic(int) calls = 0;
    const struct again again = {testing_codelet(core, "count", testing_count, "cpu"), &calls};
    struct duet_codelet *codelet = testing_codelet(core, "again", submit_and_rest, NULL);
    for (unsigned i = 0; i < OUTER; i++)
        testing_submit(core, codelet, NULL, 0, &again, sizeof again);
    testing_must(core, duet_wait(core));
    g_assert_cmpint(atomic_load(&calls), ==, OUTER);
    struct duet_stats stats;
    duet_stats(core, &stats);
    g_assert_cmpuint(stats.tasks, ==, 2 * OUTER);
}

static int set_ones(const struct duet_call *call)
{
    const struct duet_buffer *buffer = &call->buffers[0];
    for (size_t i = 0; i < buffer->rows; i++)
        ((uint64_t *)buffer->data)[i] = 1;
    return DUET_OK;
}

/* Statistics are asked for when all tasks have ended, but a write-back that nobody waits for has
   not: first in the memory lie a block and a gap, for which the large block after them would not
   have had to leave. */
static void test_late_write_back(void)
{
    enum { BLOCK = 256 / sizeof(uint64_t), LARGE = (8 << 20) / sizeof(uint64_t) };
    const size_t rows[] = {BLOCK, BLOCK, LARGE, LARGE, 2 * BLOCK};
    struct testing t = {.cpus = 1, .gpus = 1, .record = true};
    t.gpu_memory_bytes = (2 * BLOCK + 2 * (uint64_t)LARGE) * sizeof(uint64_t);
    struct duet_runtime *core = testing_open(&t);
    struct duet_codelet *codelet = testing_codelet(core, "ones", set_ones, "cuda");
    struct duet_access accesses[G_N_ELEMENTS(rows)];
    uint64_t *data[G_N_ELEMENTS(rows)];
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        data[i] = g_new0(uint64_t, rows[i]);
        accesses[i].mode = DUET_W;
        testing_must(core, duet_register_vector(core, data[i], rows[i], sizeof(uint64_t),
                                                &accesses[i].handle));
        testing_submit(core, codelet, &accesses[i], 1, NULL, 0);
        testing_must(core, duet_wait(core));
        if (i == 3)
            testing_must(core, duet_unregister(core, accesses[1].handle));
    }
    struct duet_event *events;
    size_t count;
    struct duet_stats stats;
    testing_must(core, duet_trace_events(core, &events, &count));
    do /* one of unregistering, two of making room */
        duet_stats(core, &stats);
    while (stats.copies_to_host < 3);
    g_assert_cmpuint(count, >=, G_N_ELEMENTS(rows));
    g_assert_cmpuint(stats.tasks, ==, G_N_ELEMENTS(rows));
    g_assert_cmpuint(stats.write_backs, ==, 2);
    duet_stats_reset(core);
    duet__core_free(core);
    g_free(events);
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++)
        g_free(data[i]);
}

TEST_MAIN(test_results, test_policies, test_little_memory, test_late_write_back, test_matrix,
          test_triangles, test_nested, test_error, test_close_in_the_middle, test_lost,
          test_lost_readers, test_lost_nested)
