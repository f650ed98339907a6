/* SPDX-License-Identifier: Apache-2.0 */
/* What the main functions of tests share. */
#include "tests/main.h"

#include <string.h>

#include <glib.h>

int run_tests(int argc, char **argv, const char *names, void (*const *functions)(void))
{
    g_auto(GStrv) each = g_strsplit(names, ",", -1);

    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; each[i]; i++) {
        const char *name = g_strstrip(each[i]);
        g_autofree char *path =
            g_strconcat("/", g_str_has_prefix(name, "test_") ? name + strlen("test_") : name, NULL);

        g_test_add_func(path, functions[i]);
    }
    return g_test_run();
}
