/* SPDX-License-Identifier: Apache-2.0 */
/* Files are whole or not there; text and numbers come out as their readers want them. */
#include "report/output.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <glib.h>
#include <glib/gstdio.h>

static void assert_contents(const char *path, const char *expected)
{
    char *text = NULL;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_assert_cmpstr(text, ==, expected);
    g_free(text);
}

static unsigned files_in(const char *folder)
{
    GDir *dir = g_dir_open(folder, 0, NULL);
    unsigned count = 0;

    while (g_dir_read_name(dir))
        count++;
    g_dir_close(dir);
    return count;
}

static void test_commit_and_discard(void)
{
    char *folder = g_dir_make_tmp("duet-XXXXXX", NULL);
    char *path = g_build_filename(folder, "out.txt", NULL);
    struct duet_output output = {0};

    g_assert_cmpint(duet_output_open(&output, path, NULL), ==, 0);
    fputs("first", output.stream);
    g_assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
    g_assert_cmpint(duet_output_commit(&output, NULL), ==, 0);
    assert_contents(path, "first");
    g_assert_cmpint(duet_output_open(&output, path, NULL), ==, 0);
    fputs("second", output.stream);
    duet_output_discard(&output);
    duet_output_discard(&output);
    assert_contents(path, "first");
    g_assert_cmpuint(files_in(folder), ==, 1);
    g_unlink(path);
    g_rmdir(folder);
    g_free(path);
    g_free(folder);
}

static void test_link(void)
{
    char *folder = g_dir_make_tmp("duet-XXXXXX", NULL);
    char *path = g_build_filename(folder, "target", NULL);
    char *link = g_build_filename(folder, "link", NULL);
    struct duet_output output = {0};

    g_assert_true(g_file_set_contents(path, "old", -1, NULL));
    g_assert_cmpint(symlink(path, link), ==, 0);
    g_assert_cmpint(duet_output_open(&output, link, NULL), ==, 0);
    fputs("new", output.stream);
    g_assert_cmpint(duet_output_commit(&output, NULL), ==, 0);
    g_assert_true(g_file_test(link, G_FILE_TEST_IS_SYMLINK));
    assert_contents(path, "new");
    g_unlink(link);
    g_unlink(path);
    g_rmdir(folder);
    g_free(link);
    g_free(path);
    g_free(folder);
}

static void test_errors(void)
{
    struct duet_message message = {""};
    struct duet_output output = {0};
    struct stat before, after;

    g_assert_cmpint(duet_output_open(&output, "/nowhere/out", &message), ==, DUET_EIO);
    g_assert_nonnull(strstr(message.text, "/nowhere/out"));
    g_assert_null(output.stream);
    /* a device is written, not replaced */
    g_assert_cmpint(stat("/dev/full", &before), ==, 0);
    g_assert_cmpint(duet_output_open(&output, "/dev/full", &message), ==, 0);
    fputs("text", output.stream);
    g_assert_cmpint(duet_output_commit(&output, &message), ==, DUET_EIO);
    g_assert_nonnull(strstr(message.text, "/dev/full"));
    g_assert_cmpint(stat("/dev/full", &after), ==, 0);
    g_assert_cmpuint(before.st_ino, ==, after.st_ino);
}

/* What a writer wrote. */
#define WRITTEN(call, expected)                                                                    \
    do {                                                                                           \
        char *text_ = NULL;                                                                        \
        size_t size_ = 0;                                                                          \
        FILE *stream = open_memstream(&text_, &size_);                                             \
        call;                                                                                      \
        fclose(stream);                                                                            \
        g_assert_cmpstr(text_, ==, expected);                                                      \
        free(text_);                                                                               \
    } while (0)

static void test_writers(void)
{
    WRITTEN(duet_write_xml_text(stream, "<a & \"b\">\001"), "&lt;a &amp; &quot;b&quot;&gt; ");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/report_file/commit_and_discard", test_commit_and_discard);
    g_test_add_func("/report_file/link", test_link);
    g_test_add_func("/report_file/errors", test_errors);
    g_test_add_func("/report_file/writers", test_writers);
    return g_test_run();
}
