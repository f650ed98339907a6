/* SPDX-License-Identifier: Apache-2.0 */
/* Cores that may be used, as the operating system and control groups say. */
#include <glib.h>
#include <glib/gstdio.h>
#include <limits.h>

#include "backends/backend.h"
#include "real/real.h"
#include "real/topology.h"

static void write_file(const char *folder, const char *name, const char *contents)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    g_assert_true(g_file_set_contents(path, contents, -1, NULL));
}

/* The smallest quota on the way from the process's group to the root. */
static void test_quota(void)
{
    const struct {
        const char *root, *inner, *membership;
        unsigned cores;
    } cases[] = {
        {"max 100000\n", "max 100000\n", "0::/inner\n", UINT_MAX},
        {"max 100000\n", "200000 100000\n", "0::/inner\n", 2},
        {"max 100000\n", "150000 100000\n", "0::/inner\n", 2},
        {"50000 100000\n", "200000 100000\n", "0::/inner\n", 1},
        {"400000 100000\n", "200000 100000\n", "0::/\n", 4},
        {"max 100000\n", "200000 100000\n", "4:cpu:/x\n0::/inner\n", 2},
        {"max 100000\n", "200000 100000\n", "0::/elsewhere/deep\n", UINT_MAX},
        {"what?", "", "0::/inner\n", UINT_MAX},
        {"-1 100000\n", "100000 0\n", "0::/inner\n", UINT_MAX},
        {"100000 100000\n", "max", "", 1},
    };
    g_autofree char *root = g_dir_make_tmp("duet-XXXXXX", NULL);
    g_autofree char *inner = g_build_filename(root, "inner", NULL);
    g_autofree char *membership = g_build_filename(root, "membership", NULL);
    g_assert_cmpint(g_mkdir(inner, 0700), ==, 0);
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        write_file(root, "cpu.max", cases[i].root);
        write_file(inner, "cpu.max", cases[i].inner);
        write_file(root, "membership", cases[i].membership);
        g_assert_cmpuint(duet__quota(root, membership), ==, cases[i].cores);
    }
    const char *const left[] = {"inner/cpu.max", "cpu.max", "membership", "inner", "."};
    for (unsigned i = 0; i < G_N_ELEMENTS(left); i++) {
        g_autofree char *path = g_build_filename(root, left[i], NULL);
        g_assert_cmpint(i + 1 < G_N_ELEMENTS(left) ? g_remove(path) : g_rmdir(root), ==, 0);
    }
    g_assert_cmpuint(duet__quota(root, membership), ==, UINT_MAX);
}

/* Two ways of counting. */
static void test_places(void)
{
    struct places *places;
    const struct duet_backend *cpu = duet__backend_find("cpu");
    struct backend_info info;
    struct duet_message message = {""};
    g_assert_cmpint(duet__places_new(&places), ==, DUET_OK);
    unsigned cores = duet__places_cores(places);
    g_assert_cmpuint(cores, >, 0);
    g_assert_cmpuint(cores, <=, duet__places_count(places));
    g_assert_cmpuint(cores, ==, duet__real_cores());
    g_assert_cmpuint(cores, <=, cpu->count(&message)); /* which knows of no quota */
    for (unsigned i = 0; i < duet__places_count(places); i++) {
        g_assert_cmpuint(duet__places_socket(places, i), <, 1024);
        duet__places_bind(places, i);
    }
    duet__places_free(places);
    g_assert_cmpint(cpu->describe(0, &info, &message), ==, DUET_OK);
    g_assert_cmpstr(info.arch, ==, "cpu");
    g_assert_cmpstr(info.description, !=, "");
    g_assert_cmpint(cpu->describe(100000, &info, &message), ==, DUET_EINVAL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/topology/quota", test_quota);
    g_test_add_func("/topology/places", test_places);
    return g_test_run();
}
