/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a whole file within bounds. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <glib/gstdio.h>
#include <zlib.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include <glib.h>

#include "base/json.h"
#include "base/files.h"

int duet__read_all(const char *path, size_t most_mib, char **text, size_t *length,
                   struct duet_message *message)
{
    enum { STEP = 1 << 16 };
    gzFile file; /* zlib also reads files that are not compressed */
    GStatBuf status;
    g_autoptr(GString) all = g_string_new(NULL);
    const char *kind = "";
    int error = DUET_OK;
    int got;
    *text = NULL;
    if (g_stat(path, &status) != 0)
        return duet_fail(message, DUET_EIO, "%s: cannot open: %s", path, g_strerror(errno));
    /* Opening a named pipe would wait for its writer, and a device may never end; the shell has
     * already opened standard input and <(command). */
    if (!S_ISREG(status.st_mode) && strcmp(path, "/dev/stdin") != 0 &&
        !g_str_has_prefix(path, "/dev/fd/") && !g_str_has_prefix(path, "/proc/self/fd/"))
        return duet_fail(message, DUET_EIO, "%s: not a regular file", path);
    file = gzopen(path, "rbe");
    if (file == NULL)
        return duet_fail(message, DUET_EIO, "%s: cannot open: %s", path, g_strerror(errno));
    do {
        gsize before = all->len;
        g_string_set_size(all, before + STEP);
        errno = 0;
        got = gzread(file, all->str + before, STEP);
        g_string_truncate(all, before + (gsize)MAX(got, 0));
        if (before == 0 && !gzdirect(file)) {
            most_mib = MIN(most_mib, DUET__GZIP_MOST_MIB);
            kind = " when decompressed";
        }
    } while (got > 0 && all->len <= most_mib << 20);
    if (got > 0)
        error = duet_fail(message, DUET_EIO, "%s: larger than %zu MiB%s, the most that is read",
                          path, most_mib, kind);
    else if (errno && got < 0)
        error = duet_fail(message, DUET_EIO, "%s: cannot read: %s", path, g_strerror(errno));
    if ((gzclose_r(file) != Z_OK || got < 0) && !error)
        error = duet_fail(message, DUET_EPARSE,
                          "%s: the compressed data is damaged or ends too early", path);
    *length = all->len;
    if (!error)
        *text = g_string_free(g_steal_pointer(&all), FALSE);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Writes files that are either whole or not there. */

static int refuse_file(const char *path, struct duet_message *message)
{
    return duet_fail(message, DUET_EIO, "cannot write %s: %s", path,
                     g_strerror(errno ? errno : EIO));
}

/* Writes `name`, which will take the place of `path`; nothing if `contents` is NULL. If there is an
 * older file, `name` gets its mode, and is on the disk when this returns. */
static int write_stream(const char *name, const char *path, const struct stat *older,
                        duet__file_fn *contents, const void *data, struct duet_message *message)
{
    FILE *file = fopen(name, "we");
    bool bad;
    if (!file)
        return refuse_file(path, message);
    errno = 0; /* a full buffer is written while `contents` runs, and may fail there */
    bad = older && fchmod(fileno(file), older->st_mode & 07777);
    if (contents)
        bad |= !duet__gzip_write(path, file, contents, data) || (older && fsync(fileno(file)));
    bad |= fclose(file) != 0;
    return bad ? refuse_file(path, message) : 0;
}

static int write_file(const char *path, duet__file_fn *contents, const void *data,
                      struct duet_message *message)
{
    char *resolved = realpath(path, NULL); /* the target of a link */
    const char *target = resolved ? resolved : path;
    struct stat status;
    const bool there = stat(target, &status) == 0;
    char *temporary;
    int error;
    if (there && resolved && S_ISFIFO(status.st_mode)) { /* unlike /dev/stdout and /dev/fd/N */
        error = duet_fail(message, DUET_EIO,
                          "cannot write %s: a named pipe may wait for its reader for ever", path);
    } else if (there && !S_ISREG(status.st_mode)) {
        error = write_stream(target, path, NULL, contents, data, message);
    } else { /* the name holds the process, so that two runs do not meet */
        temporary = g_strdup_printf("%s.%ld.tmp", target, (long)getpid());
        error = write_stream(temporary, path, there ? &status : NULL, contents, data, message);
        if (!error && contents && rename(temporary, target) != 0)
            error = refuse_file(path, message);
        if (error || !contents)
            unlink(temporary);
        g_free(temporary);
    }
    free(resolved);
    return error;
}

int duet__file_write(const char *path, duet__file_fn *contents, const void *data,
                     struct duet_message *message)
{
    sigset_t ends, before;
    int error;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &ends, &before);
    error = write_file(path, contents, data, message);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

int duet__file_check(const char *path, struct duet_message *message)
{
    if (strcmp(path, "-") == 0)
        return duet_fail(message, DUET_EIO,
                         "'-' is not standard output here: name a file (./- is "
                         "one of that name)");
    return duet__file_write(path, NULL, NULL, message);
}
