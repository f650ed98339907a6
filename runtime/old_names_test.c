/* SPDX-License-Identifier: Apache-2.0 */
/* A program that uses the names of duet 0.1. */
#include <duet/trace.h>

#include "runtime/testing.h"

static int set_one(const struct duet_call *call)
{
    *(double *)call->buffers[0].data = 1;
    return DUET_OK;
}

static int add_second(const struct duet_call *call)
{
    *(double *)call->buffers[0].data += *(const double *)call->buffers[1].data;
    return DUET_OK;
}

static struct duet_codelet *define(struct duet_runtime *duet, const char *name, duet_kernel_fn run)
{
    struct duet_codelet *codelet = NULL;
    const struct duet_implementation cpu = {"cpu", run};
    must(duet, duet_codelet(duet,
                            &(struct duet_codelet_desc){.name = name,
                                                        .implementations = &cpu,
                                                        .implementation_count = 1},
                            &codelet));
    return codelet;
}

static void test_old_names(void)
{
    struct duet_config config = testing_config(NULL, 1, 0);
    struct duet_runtime *duet = testing_open(&config);
    double square[4] = {0}, sum = 0;
    struct duet_handle *matrix = NULL, *vector = NULL, *temporary = NULL;
    struct duet_handle *rows[2], *cols[2];
    struct duet_codelet *one = define(duet, "set_one", set_one);
    must(duet, duet_matrix(duet, square, 2, 2, 2, sizeof *square, &matrix));
    must(duet, duet_vector(duet, &sum, 1, sizeof sum, &vector));
    must(duet, duet_temporary(duet, 1, 1, sizeof sum, &temporary));
    must(duet, duet_reduction(duet, vector, one, define(duet, "add_second", add_second)));
    must(duet, duet_cut_rows(duet, matrix, 2, rows));
    must(duet, duet_cut_cols(duet, matrix, 2, cols));
    must(duet, duet_own_at(duet, temporary, 0, 0));
    must(duet, duet_insert(duet, one, DUET_W, rows[1], 0));
    must(duet, duet_insert(duet, one, DUET_W, cols[1], 0));
    must(duet, duet_unregister(duet, matrix));
    g_assert_true(square[0] == 0 && square[1] == 1 && square[2] == 1 && square[3] == 0);
    g_assert_cmpuint(duet_worker_tasks(duet, 0), ==, 2);
    g_assert_cmpfloat(duet_worker_busy(duet, 0), >, 0);
    must(duet, duet_close(duet));
}

TEST_MAIN(test_old_names)
