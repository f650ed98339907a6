/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a whole file within bounds, and replacing one in one step. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platforms/description.h"

/* Reads until the end or until `size` bytes are there; the number of bytes, or -1. */
static ssize_t read_fully(int fd, char *buffer, size_t size)
{
    size_t done = 0;

    while (done < size) {
        ssize_t got = read(fd, buffer + done, size - done);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

int duet__read_file(const char *path, char **text, size_t *length, struct duet_message *message)
{
    struct stat status;
    ssize_t got;
    size_t size;
    int error = DUET_OK;
    /* Non-blocking, so that a named pipe is refused below instead of waiting for its writer. */
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return duet_fail(message, DUET_EIO, "%s: cannot open: %s", path, g_strerror(errno));
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        error = duet_fail(message, DUET_EIO, "%s: not a regular file", path);
        goto opened;
    }
    if (status.st_size > (off_t)DUET__MAX_FILE_MIB << 20) {
        error = duet_fail(message, DUET_EIO, "%s: larger than %d MiB, the most that is read", path,
                          DUET__MAX_FILE_MIB);
        goto opened;
    }
    size = (size_t)status.st_size;
    *text = g_try_malloc(size + 1);
    if (*text == NULL) {
        error = duet_fail(message, DUET_ENOMEM, "%s: out of memory", path);
        goto opened;
    }
    got = read_fully(fd, *text, size);
    if (got < 0) {
        error = duet_fail(message, DUET_EIO, "%s: cannot read: %s", path, g_strerror(errno));
        g_free(*text);
        *text = NULL;
        goto opened;
    }
    (*text)[got] = '\0';
    *length = (size_t)got;
opened:
    close(fd);
    return error;
}

int duet__write_file(const char *path, const char *text, size_t length,
                     struct duet_message *message)
{
    GError *error = NULL;

    if (length > (size_t)DUET__MAX_FILE_MIB << 20)
        return duet_fail(message, DUET_EIO,
                         "%s: would be larger than %d MiB, the most that can be read back", path,
                         DUET__MAX_FILE_MIB);
    if (!g_file_set_contents_full(path, text, (gssize)length,
                                  G_FILE_SET_CONTENTS_CONSISTENT | G_FILE_SET_CONTENTS_DURABLE,
                                  0666, &error)) {
        /* what it says before is about a temporary file */
        const char *why = strrchr(error->message, ':');

        duet_fail(message, DUET_EIO, "%s: cannot write%s", path, why ? why : "");
        g_error_free(error);
        return DUET_EIO;
    }
    return DUET_OK;
}

bool duet__good_name(const char *name, size_t size)
{
    size_t length = strlen(name);

    if (length == 0 || length >= size)
        return false;
    for (size_t i = 0; i < length; i++)
        if (!g_ascii_isalnum(name[i]) && strchr("_-.:+", name[i]) == NULL)
            return false;
    return true;
}
