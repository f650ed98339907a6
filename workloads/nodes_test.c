/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workloads on several nodes that are threads of this process: results pass their checks on node 0,
 * no process touches memory that others own, and messages are as many as the distribution needs.
 * messages_test.py counts those of simulated nodes.
 */
#include "nodes/testing_transport.h"
#include "workloads/test_run.h"

/* A workload on a grid of nodes. */
struct work {
    const struct run *run;
    struct duet_grid grid;
    char precision;
    bool verify; /* false: checks that others' tiles are untouched */
};

static bool is_zero(const char *memory, size_t bytes)
{
    return !bytes || (!memory[0] && !memcmp(memory, memory + 1, bytes - 1));
}

static void check_untouched(const struct node *node, const struct duet__tiled_data *data)
{
    for (unsigned number = 0; number < DUET__MATRICES_MAX && data->matrices[number].rows;
         number++) {
        const struct duet__storage *matrix = &data->matrices[number];
        for (uint32_t j = 0; j < duet__tile_count(matrix->cols, matrix->tile_cols); j++)
            for (uint32_t i = matrix->lower ? j : 0;
                 i < duet__tile_count(matrix->rows, matrix->tile_rows); i++) {
                size_t ld, rows = duet__piece(matrix->rows, matrix->tile_rows, i);
                const char *tile = duet__storage_tile(matrix, i, j, &ld);
                bool here = duet__tiled_here(data, node->duet, number, i, j);
                for (size_t c = 0; !here && c < duet__piece(matrix->cols, matrix->tile_cols, j);
                     c++)
                    g_assert_true(is_zero(tile + c * ld * matrix->element_bytes,
                                          rows * matrix->element_bytes));
            }
    }
}

/* Runs a workload in one process, twice on one runtime. */
static void run_work(struct node *node)
{
    const struct work *work = node->data;
    const struct duet__workload *workload = duet__workload_find(work->run->workload);
    struct duet__problem problem = problem_of(work->run, work->precision);
    struct duet__verdict verdict = {0};
    problem.nodes = work->grid;
    problem.verify = work->verify;
    g_assert_cmpint(workload->check(&problem, NULL), ==, 0);
    g_assert_cmpint(workload->generate(workload, &problem, &problem.data, NULL), ==, 0);
    for (int i = 0; i < RUNS; i++) {
        workload->fill(problem.data, node->duet);
        int error = once(workload, node->duet, &problem);
        g_assert_cmpstr(error ? duet_last_message(node->duet) : "", ==, "");
        g_assert_cmpint(error, ==, 0);
        if (work->verify && node->number == 0) {
            g_assert_cmpint(workload->verify(problem.data, NULL, &verdict, NULL), ==, 0);
            g_assert_cmpfloat(verdict.residual, <, verdict.threshold);
        }
        if (!work->verify)
            check_untouched(node, problem.data);
    }
    workload->discard(problem.data);
}

/* Runs a workload on its nodes. Returns the number of messages sent. */
static uint64_t run_on_nodes(struct work work, int gpus)
{
    struct fabric *fabric = fabric_new(work.grid.rows * work.grid.cols, 7);
    g_test_message("%s %c on %u x %u nodes", work.run->workload, work.precision, work.grid.rows,
                   work.grid.cols);
    run_nodes(fabric, work.grid, gpus, run_work, &work);
    uint64_t messages = fabric->messages;
    fabric_free(&fabric);
    return messages;
}

/* Every workload for several nodes, in all its forms. */
static void test_results(void)
{
    static const struct duet_grid grids[] = {{2, 2}, {1, 3}, {3, 1}, {1, 2}, {2, 3}};
    for (size_t i = 0; i < G_N_ELEMENTS(runs); i++) {
        const struct duet__workload *workload = duet__workload_find(runs[i].workload);
        const struct work work = {&runs[i], grids[i % G_N_ELEMENTS(grids)], i % 3 ? 'd' : 's',
                                  true};
        if (can_run(workload) && strcmp(workload->name, "fibonacci") != 0)
            (void)run_on_nodes(work, (int)(i % 2));
    }
}

static void test_fibonacci(void)
{
    const struct duet__workload *workload = duet__workload_find("fibonacci");
    struct duet__problem problem = {.n = 9, .tile = 3, .precision = 'd', .nodes = {1, 2}};
    g_assert_cmpint(workload->check(&problem, hear()), ==, DUET_EINVAL);
    g_assert_cmpstr(heard(), ==, "fibonacci has no data that could be dealt out: --nodes 1");
    problem.nodes = (struct duet_grid){1, 1};
    WORKS(workload->check(&problem, hear()));
}

static void test_messages(void)
{
    static const struct duet_grid grids[] = {{2, 2}, {1, 3}, {4, 1}};
    static const struct run cholesky = {"cholesky", 200, 25, {{0}}},
                            gemm = {"gemm", 150, 25, {{0}}};
    static const uint64_t of_cholesky[] = {56, 49, 64}; /* as messages_test.py counts them */
    static const struct run jacobi = {"jacobi2d", 96, 12, {{"iterations", "5"}}};
    for (size_t i = 0; i < G_N_ELEMENTS(grids); i++) {
        uint64_t p = grids[i].rows, q = grids[i].cols, sent;
        sent = run_on_nodes((struct work){&jacobi, grids[i], 'd', false}, 1);
        /* 8 borders along each side of a rectangle, both ways, in each step */
        g_assert_cmpuint(sent, ==, RUNS * 5 * 2 * 8 * (p - 1 + q - 1));
        if (!can_run(duet__workload_find("cholesky")))
            continue;
        sent = run_on_nodes((struct work){&cholesky, grids[i], 'd', false}, 0);
        g_assert_cmpuint(sent, ==, RUNS * of_cholesky[i]);
        sent = run_on_nodes((struct work){&gemm, grids[i], 'd', false}, 0);
        g_assert_cmpuint(sent, ==, RUNS * 6 * 6 * (p - 1 + q - 1));
    }
}

TEST_MAIN(test_results, test_fibonacci, test_messages)
