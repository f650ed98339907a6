/* SPDX-License-Identifier: Apache-2.0 */
/* Replacing two files that belong together: each in one step, both or none. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "platforms/description.h"

static int fail_write(const char *path, struct duet_message *message)
{
    return duet_fail(message, DUET_EIO, "%s: cannot write: %s", path, g_strerror(errno));
}

static bool write_fully(int fd, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t put = write(fd, text, length);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return false;
        text += put;
        length -= (size_t)put;
    }
    return true;
}

/* Removes a file that may not be there, and forgets its name. */
static void drop(char **path)
{
    if (*path != NULL)
        (void)g_unlink(*path);
    g_free(*path);
    *path = NULL;
}

/* Writes a file beside `file->path`, down to the disk; *temporary is its name. */
static int write_beside(const struct duet__file *file, char **temporary,
                        struct duet_message *message)
{
    size_t length = strlen(file->text);
    char *name;
    int fd;
    bool good;

    if (length > (size_t)DUET__MAX_FILE_MIB << 20)
        return duet_fail(message, DUET_EIO,
                         "%s: would be larger than %d MiB, the most that can be read back",
                         file->path, DUET__MAX_FILE_MIB);
    name = g_strconcat(file->path, ".XXXXXX", NULL);
    fd = g_mkstemp_full(name, O_WRONLY | O_CLOEXEC, 0666);
    if (fd < 0) {
        g_free(name);
        return fail_write(file->path, message);
    }
    *temporary = name;
    good = write_fully(fd, file->text, length) && fsync(fd) == 0;
    if (!good)
        (void)fail_write(file->path, message);
    if (close(fd) != 0 && good) {
        (void)fail_write(file->path, message);
        good = false;
    }
    if (!good)
        drop(temporary);
    return good ? DUET_OK : DUET_EIO;
}

/* A second name for what is at `path`, to bring it back by; NULL if there is nothing to. */
static char *second_name(const char *path)
{
    char *name = g_strconcat(path, ".XXXXXX", NULL);
    int fd = g_mkstemp_full(name, O_WRONLY | O_CLOEXEC, 0600);

    if (fd >= 0) {
        close(fd);
        (void)g_unlink(name);
        if (link(path, name) == 0)
            return name;
    }
    g_free(name);
    return NULL;
}

/* Makes the new names last through a loss of power, where the file system can. */
static void sync_folder(const char *path)
{
    char *folder = g_path_get_dirname(path);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
    g_free(folder);
}

/* Both are written: gives them their names. Where the second cannot have it, the first goes back.
 */
static int rename_both(const struct duet__file *first, char *const temporary[2],
                       const struct duet__file *second, struct duet_message *message)
{
    bool there = g_file_test(first->path, G_FILE_TEST_EXISTS);
    char *kept = there ? second_name(first->path) : NULL;
    int error = DUET_OK;

    if (g_rename(temporary[0], first->path) != 0) {
        error = fail_write(first->path, message);
        drop(&kept);
        return error;
    }
    if (g_rename(temporary[1], second->path) != 0) {
        error = fail_write(second->path, message);
        if (kept != NULL)
            (void)g_rename(kept, first->path);
        else if (!there)
            (void)g_unlink(first->path);
    }
    drop(&kept);
    return error;
}

int duet__replace_files(const struct duet__file *first, const struct duet__file *second,
                        struct duet_message *message)
{
    char *temporary[2] = {NULL, NULL};
    int error = write_beside(first, &temporary[0], message);

    if (error == DUET_OK)
        error = write_beside(second, &temporary[1], message);
    if (error == DUET_OK)
        error = rename_both(first, temporary, second, message);
    if (error == DUET_OK)
        sync_folder(second->path);
    drop(&temporary[0]); /* where they have been renamed nothing has these names */
    drop(&temporary[1]);
    return error;
}
