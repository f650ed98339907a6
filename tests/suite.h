/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main function of a test that is a list of cases, each a function without arguments:
 * TEST_SUITE("/wait/", TEST(recursion), TEST(many)) runs test_recursion as "/wait/recursion", then
 * test_many as "/wait/many". A case whose function has another name is written out.
 */
#ifndef DUET_TESTS_SUITE_H
#define DUET_TESTS_SUITE_H

#include <glib.h>

struct test_case {
    const char *name;
    void (*run)(void);
    void (*add)(const char *path, void (*run)(void)); /* to GLib's list; NULL: as it is */
};

#define TEST(name)                                                                                 \
    {                                                                                              \
#name, test_##name, NULL                                                                   \
    }

static inline int test_cases_run(int argc, char **argv, const char *prefix,
                                 const struct test_case *cases, size_t count)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < count; i++) {
        gchar *path = g_strconcat(prefix, cases[i].name, NULL);
        (cases[i].add ? cases[i].add : g_test_add_func)(path, cases[i].run);
        g_free(path);
    }
    return g_test_run();
}

#define TEST_SUITE(prefix, ...)                                                                    \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        static const struct test_case suite_cases[] = {__VA_ARGS__};                               \
        return test_cases_run(argc, argv, prefix, suite_cases, G_N_ELEMENTS(suite_cases));         \
    }

#endif
