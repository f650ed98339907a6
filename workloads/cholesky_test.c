/* SPDX-License-Identifier: Apache-2.0 */
/* The Cholesky graph in both orders: counts, flops, sizes, priorities; its tasks, with the
 * workload's own kernels, factorise a matrix in any order that their accesses allow. */
#include "workloads/test_recorder.h"

#include "workloads/tiles.c" /* NOLINT(bugprone-suspicious-include) */

#include "workloads/cholesky.c" /* NOLINT(bugprone-suspicious-include) */

#include "workloads/test_compute.h"

/* ------------------------------------------------------------------------------------------- */
/* Tests                                                                                        */

static struct duet__problem problem_of(uint64_t n, uint64_t tile,
                                       const struct duet__setting *setting)
{
    return set_as(n, tile, 'd', setting, !!setting);
}

static const struct duet__setting left = {"variant", "left"};
static const struct duet__setting any = {"potrf", "any"};

static void test_counts(void)
{
    static const uint64_t sizes[][2] = {{7, 7}, {20, 10}, {960 * 6, 960}, {960 * 6 + 17, 960}};
    for (size_t i = 0; i < G_N_ELEMENTS(sizes) * 2; i++) {
        struct duet__problem problem =
            problem_of(sizes[i / 2][0], sizes[i / 2][1], i % 2 ? &left : NULL);
        OWNED(recorder_end)
        struct duet_runtime *recorder = build_graph(&recorded_cholesky, &problem);
        size_t t = (sizes[i / 2][0] + sizes[i / 2][1] - 1) / sizes[i / 2][1];
        double flops_expected = recorded_cholesky.flops(&problem);
        g_assert_cmpuint(recorder_count(recorder, "dpotrf"), ==, t);
        g_assert_cmpuint(recorder_count(recorder, "dtrsm"), ==, t * (t - 1) / 2);
        g_assert_cmpuint(recorder_count(recorder, "dsyrk"), ==, t * (t - 1) / 2);
        g_assert_cmpuint(recorder_count(recorder, "dgemm"), ==, t * (t - 1) * (t - 2) / 6);
        g_assert_cmpuint(recorder->handles->len, ==, t * (t + 1) / 2);
        g_assert_cmpfloat_with_epsilon(recorder_flops(recorder) / flops_expected, 1, 1e-13);
    }
}

/* Kernels and tiles of the tasks that touch a tile, in the order of submission, as text. */
static char *history(const struct duet_runtime *recorder, guint tile)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < recorder->tasks->len; i++) {
        const struct recorded *task = recorder_task(recorder, i);
        GString *line = g_string_new(task->codelet->name);
        bool touches = false;
        for (size_t a = 0; a < task->access_count; a++) {
            guint index;
            g_assert_true(g_ptr_array_find(recorder->handles, task->accesses[a].handle, &index));
            g_string_append_printf(line, " %u:%d", index, (int)task->accesses[a].mode);
            touches |= index == tile;
        }
        if (touches)
            g_string_append_printf(text, "%s\n", line->str);
        g_string_free(line, TRUE);
    }
    return g_string_free(text, FALSE);
}

/* Both orders make the same graph, in different order. */
static void test_variants(void)
{
    struct duet__problem right_problem = problem_of(60, 10, NULL);
    struct duet__problem left_problem = problem_of(60, 10, &left);
    OWNED(recorder_end)
    struct duet_runtime *a = build_graph(&recorded_cholesky, &right_problem);
    OWNED(recorder_end)
    struct duet_runtime *b = build_graph(&recorded_cholesky, &left_problem);
    for (guint tile = 0; tile < a->handles->len; tile++) {
        g_autofree char *one = history(a, tile), *other = history(b, tile);
        g_assert_cmpstr(one, ==, other);
    }
    /* After the panel (6 tasks) come all its updates, or only that of the second diagonal tile. */
    g_assert_cmpstr(recorder_task(a, 7)->codelet->name, ==, "dgemm");
    g_assert_cmpstr(recorder_task(b, 7)->codelet->name, ==, "dpotrf");
}

/* Flops are those of square tiles, for which kernel times are calibrated. */
static void test_flops(void)
{
    const struct duet__tile_args b = {.m = 960, .n = 960, .k = 960};
    g_assert_cmpfloat(duet__flops_gemm(&b), ==, 2.0 * 960 * 960 * 960);
    g_assert_cmpfloat(duet__flops_trsm_right(&b), ==, 960.0 * 960 * 960);
    g_assert_cmpfloat(duet__flops_syrk(&b), ==, 960.0 * 960 * 961);
    g_assert_cmpfloat(duet__flops_potrf(&b), ==, 960.0 * 960 * 960 / 3 + 960.0 * 960 / 2 + 160);
}

static void test_kernels(void)
{
    for (unsigned anywhere = 0; anywhere < 2; anywhere++) {
        struct duet__problem problem = problem_of(30, 10, anywhere ? &any : NULL);
        problem.precision = anywhere ? 's' : 'd';
        OWNED(recorder_end)
        struct duet_runtime *recorder = build_graph(&recorded_cholesky, &problem);
        g_assert_cmpstr(recorder->codelets[0].name, ==, anywhere ? "spotrf" : "dpotrf");
        g_assert_cmpuint(recorder->codelets[0].implementation_count, ==, anywhere ? 3 : 1);
        for (unsigned i = 1; i < 4; i++)
            g_assert_cmpuint(recorder->codelets[i].implementation_count, ==, 3);
        g_assert_cmpuint(recorder_bytes(recorder), ==, anywhere ? 600 * 4 : 600 * 8);
    }
}

/* Priorities of step 0 with T = 3 tiles: panel 6, 5, 4; updates 5, 3, 4; then step 1. */
static void test_priorities(void)
{
    static const int expected[] = {6, 5, 4, 5, 3, 4, 4, 2, 2, 2};
    struct duet__problem problem = problem_of(30, 10, NULL);
    OWNED(recorder_end) struct duet_runtime *recorder = build_graph(&recorded_cholesky, &problem);
    g_assert_cmpuint(recorder->tasks->len, ==, G_N_ELEMENTS(expected));
    for (size_t i = 0; i < G_N_ELEMENTS(expected); i++)
        g_assert_cmpint(recorder_task(recorder, i)->priority, ==, expected[i]);
}

/* Whatever call fails, the error is returned, nothing leaks and there is no state. */
static void test_failures(void)
{
    struct duet__problem problem = problem_of(30, 10, NULL);
    check_failures(&recorded_cholesky, &problem, 4 + 6 + 10, NULL);
}

static void refuse(struct duet__problem problem, const char *text)
{
    FAILS(recorded_cholesky.check(&problem, hear()), DUET_EINVAL, text);
    g_assert_cmpint(recorded_cholesky.check(&problem, NULL), ==, DUET_EINVAL);
}

static void test_check(void)
{
    static const struct duet__setting diagonal = {"variant", "diagonal"},
                                      prefix = {"variant", "le"}, empty = {"variant", ""},
                                      unknown = {"colour", "red"}, small = {"block", "3"},
                                      text = {"block", "half"};
    struct duet__problem single = problem_of(10, 10, NULL);
    single.precision = 'z';
    refuse(problem_of(0, 10, NULL), "size n is 0");
    refuse(problem_of(10, 0, NULL), "tile edge 0");
    refuse(problem_of(10, 100000, NULL), "give 1 to 65536");
    refuse(problem_of(10000, 1, NULL), "use tiles of 2 or more");
    refuse(problem_of(9, 10, NULL), "larger than the matrix");
    refuse(problem_of(UINT64_MAX, 65536, NULL), "tiles");
    refuse(single, "precision 'z'");
    refuse(problem_of(10, 10, &diagonal), "give right|left");
    refuse(problem_of(10, 10, &prefix), "give right|left");
    refuse(problem_of(10, 10, &empty), "give right|left");
    refuse(problem_of(1000, 500, &small), "use blocks of 8 or more");
    refuse(problem_of(1000, 500, &text), "give 0..65536");
    refuse(problem_of(10, 10, &unknown), "this workload has variant, potrf, block, layout");
}

/* ------------------------------------------------------------------------------------------- */
/* With its own kernels                                                                         */

static const struct duet__setting lapack = {"layout", "lapack"};

static void test_compute(void)
{
    static const uint64_t sizes[][2] = {{1, 1}, {7, 3}, {40, 40}, {64, 16}, {131, 32}};
    compute_all(&recorded_cholesky, sizes, G_N_ELEMENTS(sizes), &lapack, 1);
    compute_all(&recorded_cholesky, sizes, G_N_ELEMENTS(sizes), &left, 1);
    recorded_cholesky.discard(NULL);
}

static void test_damage(void)
{
    static const struct change changes[] = {{0, 130, 0, 1e-3},  {0, 100, 40, -1e-3},
                                            {0, 33, 33, 1e-3},  {0, 130, 130, 1e-3},
                                            {0, 130, 130, NAN}, {0, 64, 2, INFINITY}};
    check_damage(&recorded_cholesky, problem_of(131, 32, NULL), changes, G_N_ELEMENTS(changes));
}

/* Both layouts and orders give the same factor to the last bit: kernels do not see where tiles
 * lie. */
static void test_layouts(void)
{
    struct duet__problem tiles = problem_of(131, 32, NULL), whole = problem_of(131, 32, &lapack);
    if (!can_compute(&recorded_cholesky))
        return;
    struct duet__tiled_data *a = compute_right(&recorded_cholesky, &tiles);
    struct duet__tiled_data *b = compute_right(&recorded_cholesky, &whole);
    for (uint64_t j = 0; j < 131; j++) {
        for (uint64_t i = j; i < 131; i++)
            g_assert_cmpfloat(duet__storage_value(a->matrices, i, j), ==,
                              duet__storage_value(b->matrices, i, j));
    }
    recorded_cholesky.discard(a);
    recorded_cholesky.discard(b);
}

/* A matrix that is not positive definite fails the task. */
static void test_indefinite(void)
{
    double a[4] = {1, 2, 2, 1};
    struct duet_buffer buffer = {.data = a,
                                 .rows = 2,
                                 .cols = 2,
                                 .ld = 2,
                                 .element_bytes = sizeof *a};
    const struct duet__tile_args args = {.n = 2};
    const struct duet_call call = {.args = &args, .buffers = &buffer, .buffer_count = 1};
    if (can_compute(&recorded_cholesky))
        g_assert_cmpint(duet__kernel("potrf")(&call), ==, DUET_ETASK);
}

/* ------------------------------------------------------------------------------------------- */
/* Two levels                                                                                   */

/* The edge of blocks need not divide the tile's. */
static void test_blocks(void)
{
    static const struct duet__setting small[] = {{"block", "3"}, {"layout", "lapack"}};
    static const struct duet__setting large[] = {{"block", "16"}, {"layout", "lapack"}};
    static const uint64_t sizes[][2] = {{30, 7}, {13, 4}, {24, 3}}, size[2] = {131, 48};
    compute_all(&recorded_cholesky, sizes, G_N_ELEMENTS(sizes), small, 2);
    compute_all(&recorded_cholesky, &size, 1, large, 2);
}

/* Blocks change nothing in the graph but the kernel of diagonal tiles larger than a block. */
static void test_blocks_graph(void)
{
    static const struct duet__setting block = {"block", "5"};
    struct duet__problem problem = problem_of(33, 10, &block);
    OWNED(recorder_end) struct duet_runtime *recorder = build_graph(&recorded_cholesky, &problem);
    g_assert_cmpuint(recorder_count(recorder, "dpotrf_blocks"), ==, 3);
    g_assert_cmpuint(recorder_count(recorder, "dpotrf"), ==, 1); /* the last diagonal tile, of order
                                                                    3 */
    g_assert_cmpfloat_with_epsilon(recorder_flops(recorder) / recorded_cholesky.flops(&problem), 1,
                                   1e-13);
    g_assert_cmpint(recorder_task(recorder, 0)->priority, ==, 8);
}

TEST_MAIN(test_counts, test_variants, test_flops, test_kernels, test_priorities, test_failures,
          test_check, test_compute, test_damage, test_layouts, test_indefinite, test_blocks,
          test_blocks_graph)
