/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the table of four means, and of the mean, on rows of which the truth is known. */
#include <math.h>

#include <glib.h>

#include "calibrate/kernel_models.h"

enum { ROWS = 40 };

/* Rows of a kernel that takes 1 ms, twice that on cold data, and half as long again beside others:
   all conditions in turn, each wholly or by a quarter. */
static void make_rows(struct duet__rows *rows)
{
    *rows = (struct duet__rows){.count = ROWS,
                                .seconds = g_new0(double, ROWS),
                                .shares = g_new0(double, ROWS),
                                .list = g_new0(struct duet__row, ROWS)};
    for (size_t i = 0; i < ROWS; i++) {
        double missing = i % 4 < 2 ? 0.25 * (double)(i / 4 % 2) : 1, busy = i % 2 ? 1 : 0;
        rows->list[i] = (struct duet__row){.others = 3 * busy,
                                           .workers = 4,
                                           .bytes = 1000,
                                           .from_memory = 1000 * missing};
        rows->seconds[i] = 1e-3 * (1 + missing) * (1 + busy / 2);
    }
}

/* A table of four means finds what is linear, between its conditions as well. */
static void test_table(void)
{
    struct duet__rows rows;
    union duet__parameters parameters;
    bool used[ROWS];
    make_rows(&rows);
    for (size_t i = 0; i < ROWS; i++)
        used[i] = true;
    duet__table_model.fit(&rows, used, 0, &parameters);
    for (size_t i = 0; i < ROWS; i++)
        g_assert_cmpfloat(fabs(duet__table_model.predict(&parameters, &rows, i) / rows.seconds[i] -
                               1),
                          <, 1e-12);
    rows.list[0].from_memory = 500; /* half of it missing, one and a half of three others busy */
    rows.list[0].others = 1.5;
    g_assert_cmpfloat(fabs(duet__table_model.predict(&parameters, &rows, 0) - 1.5e-3 * 1.25), <,
                      1e-12);
    /* memory gives 1000 bytes in 4 ms: cold data cannot come faster, and warm data does */
    duet__table_model.fit(&rows, used, 1000 / 4e-3, &parameters);
    g_assert_cmpfloat(fabs(duet__table_model.predict(&parameters, &rows, 2) - 4e-3), <, 1e-12);
    g_assert_cmpfloat(duet__table_model.predict(&parameters, &rows, 4), <, 2e-3);
    duet__rows_fini(&rows);
}

/* Conditions that were not measured take what is known of others; too few rows: the mean. */
static void test_holes(void)
{
    struct duet__rows rows;
    union duet__parameters parameters;
    bool used[ROWS];
    make_rows(&rows);
    for (size_t i = 0; i < ROWS; i++)
        used[i] = i % 4 == 3; /* cold and busy alone */
    duet__table_model.fit(&rows, used, 0, &parameters);
    for (size_t i = 0; i < ROWS; i++)
        g_assert_cmpfloat(fabs(duet__table_model.predict(&parameters, &rows, i) - 3e-3), <, 1e-12);
    for (size_t i = 0; i < ROWS; i++)
        used[i] = i == 0 || i == 3;
    duet__table_model.fit(&rows, used, 0, &parameters);
    g_assert_cmpfloat(fabs(duet__table_model.predict(&parameters, &rows, 1) - 2e-3), <, 1e-12);
    duet__mean_model.fit(&rows, used, 0, &parameters);
    g_assert_cmpfloat(fabs(duet__mean_model.predict(&parameters, &rows, 1) - 2e-3), <, 1e-12);
    duet__rows_fini(&rows);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/calibrate/table_model/table", test_table);
    g_test_add_func("/calibrate/table_model/holes", test_holes);
    return g_test_run();
}
