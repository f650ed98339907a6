/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the functions of a test, looks at what calls return and say, and makes folders. */
#include <string.h>

#include <glib.h>
#include <glib/gstdio.h>

#include <duet/duet.h>

#include "tests/main.h"

int run_tests(int argc, char **argv, const char *names, void (*const *functions)(void),
              void (*add)(const char *path, void (*function)(void)))
{
    g_auto(GStrv) each = g_strsplit(names, ",", -1);
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; each[i] != NULL; i++) {
        const char *name = g_strstrip(each[i]);
        g_autofree char *path = g_strconcat("/", name, NULL);
        if (g_str_has_prefix(name, "subprocess_")) {
            path[strlen("/subprocess")] = '/';
        } else if (g_str_has_prefix(name, "test_")) {
            memmove(path + 1, name + strlen("test_"), strlen(name + strlen("test_")) + 1);
        }
        (add != NULL ? add : g_test_add_func)(path, functions[i]);
    }
    return g_test_run();
}

static _Thread_local struct duet_message message;

struct duet_message *hear(void)
{
    message = (struct duet_message){""};
    return &message;
}

const char *heard(void)
{
    return message.text;
}

void check_call(const char *file, int line, const char *call, int error, int expected,
                const struct duet_runtime *runtime, const char *words)
{
    const char *said = runtime ? duet_last_message(runtime) : message.text;
    bool right = words ? strstr(said, words) && !strchr(said, '\n') : runtime || expected || !*said;
    if (error != expected || !right)
        g_error("%s:%d: %s returned %d (not %d) and said \"%s\" (not \"%s\")", file, line, call,
                error, expected, said, words ? words : "");
}

char *new_folder(void)
{
    char *path = g_dir_make_tmp("duet-XXXXXX", NULL);
    g_assert_nonnull(path);
    return path;
}

void remove_tree(const char *path)
{
    if (!g_file_test(path, G_FILE_TEST_IS_SYMLINK) && g_file_test(path, G_FILE_TEST_IS_DIR)) {
        GDir *folder = g_dir_open(path, 0, NULL);
        const char *name;
        while (folder && (name = g_dir_read_name(folder))) {
            g_autofree char *inner = g_build_filename(path, name, NULL);
            remove_tree(inner);
        }
        g_dir_close(folder);
    }
    g_assert_cmpint(g_remove(path), ==, 0);
}

void drop_folder(char **path)
{
    remove_tree(*path);
    g_free(*path);
}
