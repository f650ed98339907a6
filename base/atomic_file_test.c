/* SPDX-License-Identifier: Apache-2.0 */
/* Files are whole or not there. */
#include "base/files.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <glib.h>
#include <glib/gstdio.h>

#include "base/json.h"

static void assert_contents(const char *path, const char *expected)
{
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_assert_cmpstr(text, ==, expected);
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

/* Writes a text, and checks that the file is not there yet and signals are blocked. */
static void put(FILE *stream, const void *text)
{
    sigset_t held;
    g_assert_cmpint(pthread_sigmask(SIG_BLOCK, NULL, &held), ==, 0);
    g_assert_true(sigismember(&held, SIGINT));
    fputs(text, stream);
}

/* Fails as on a full disk. */
static void put_and_fail(FILE *stream, const void *text)
{
    struct rlimit before, none;
    g_assert_cmpint(getrlimit(RLIMIT_FSIZE, &before), ==, 0);
    none = (struct rlimit){0, before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &none), ==, 0);
    fputs(text, stream);
    fflush(stream);
    g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &before), ==, 0);
}

static void test_whole_or_not(void)
{
    g_autofree char *folder = g_dir_make_tmp("duet-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "out.txt", NULL);
    struct stat status;
    sigset_t held;
    g_assert_cmpint(mkfifo(path, 0600), ==, 0);
    FAILS(duet__file_check(path, hear()), DUET_EIO, "a named pipe");
    g_assert_cmpint(duet__file_check("-", hear()), ==, DUET_EIO);
    g_assert_cmpint(g_remove(path), ==, 0);
    g_assert_cmpint(duet__file_check(path, NULL), ==, 0);
    g_assert_cmpuint(files_in(folder), ==, 0);
    g_assert_cmpint(duet__file_write(path, put, "first", NULL), ==, 0);
    assert_contents(path, "first");
    g_assert_cmpint(g_chmod(path, 0640), ==, 0);
    g_assert_cmpint(duet__file_write(path, put, "first", NULL), ==, 0);
    g_assert_cmpint(stat(path, &status), ==, 0);
    g_assert_cmpuint(status.st_mode & 0777, ==, 0640);
    FAILS(duet__file_write(path, put_and_fail, "second", hear()), DUET_EIO, path);
    g_assert_cmpint(duet__file_check(path, NULL), ==, 0);
    assert_contents(path, "first");
    g_assert_cmpuint(files_in(folder), ==, 1);
    g_assert_cmpint(pthread_sigmask(SIG_BLOCK, NULL, &held), ==, 0);
    g_assert_false(sigismember(&held, SIGINT));
    g_unlink(path);
    g_rmdir(folder);
}

static void test_link(void)
{
    g_autofree char *folder = g_dir_make_tmp("duet-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "target", NULL);
    g_autofree char *link = g_build_filename(folder, "link", NULL);
    g_assert_true(g_file_set_contents(path, "old", -1, NULL));
    g_assert_cmpint(symlink(path, link), ==, 0);
    g_assert_cmpint(duet__file_write(link, put, "new", NULL), ==, 0);
    g_assert_true(g_file_test(link, G_FILE_TEST_IS_SYMLINK));
    assert_contents(path, "new");
    g_unlink(link);
    g_unlink(path);
    g_rmdir(folder);
}

static void test_errors(void)
{
    struct stat before, after;
    FAILS(duet__file_check("/nowhere/out", hear()), DUET_EIO, "/nowhere/out");
    g_assert_cmpint(duet__file_write("/nowhere/out", put, "text", hear()), ==, DUET_EIO);
    /* a device is written, not replaced */
    g_assert_cmpint(stat("/dev/full", &before), ==, 0);
    FAILS(duet__file_write("/dev/full", put, "text", hear()), DUET_EIO, "/dev/full");
    g_assert_cmpint(stat("/dev/full", &after), ==, 0);
    g_assert_cmpuint(before.st_ino, ==, after.st_ino);
}

/* A file called ".gz" is compressed, and is read back as far as it is whole. */
static void test_compressed(void)
{
    g_autofree char *folder = g_dir_make_tmp("duet-XXXXXX", NULL);
    char *path = g_build_filename(folder, "large.gz", NULL), *text = NULL, *got = NULL;
    char *large = g_strnfill((2 << 20) - 1, 'a');
    size_t length;
    g_assert_cmpint(symlink("/dev/full", path), ==, 0);
    FAILS(duet__file_write(path, put, large, hear()), DUET_EIO, "No space left");
    g_unlink(path);
    WORKS(duet__file_write(path, put, large, hear()));
    g_assert_true(g_file_get_contents(path, &text, &length, NULL));
    g_assert_cmpuint(length, <, 1 << 15);
    FAILS(duet__read_all(path, 1, &got, &length, hear()), DUET_EIO,
          "larger than 1 MiB when decompressed");
    WORKS(duet__read_all(path, 2, &got, &length, hear()));
    g_assert_cmpstr(got, ==, large);
    g_free(got);
    g_assert_true(g_file_set_contents(path, text, 100, NULL));
    FAILS(duet__read_all(path, 2, &got, &length, hear()), DUET_EPARSE, "ends too early");
    g_unlink(path);
    g_rmdir(folder);
    g_free(large);
    g_free(text);
    g_free(path);
}

TEST_MAIN(test_whole_or_not, test_link, test_errors, test_compressed)
