/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds of several nodes, solved by hand. Those of one are in bounds_test.c. */
#include <glib.h>

#include "validate/bounds.h"

/*
 * Two nodes, 1 CPU and 1 GPU, and 3 CPUs: 10 tasks of 3 s on CPUs alone and, of the other node, 16
 * that take 4 s there and 1 s on a GPU. 30 + 4 x = 4 (16 - x), x = 17 / 4, T = 47 / 4.
 */
static void test_nodes(void)
{
    double first[] = {0, 1, 1, 0, 0, 1, 10, 3, 0}, second[] = {0, 3, 0, 0, 0, 0, 16, 4, 1};
    const struct duet__node_classes nodes[] = {{2, 1, first}, {2, 1, second}},
                                    other[] = {{2, 1, first}, {1, 0, second}};
    g_assert_cmpfloat_with_epsilon(duet__bounds_of_nodes(nodes, 2, 1).area_s, 47.0 / 4, 1e-12);
    g_assert_cmpfloat(duet__bounds_of_nodes(other, 2, 1).critical_path_s, ==, 0);
    second[7] = second[8] = 0;
    g_assert_cmpfloat(duet__bounds_of_nodes(nodes, 2, 1).area_s, ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/validate/area/nodes", test_nodes);
    return g_test_run();
}
