/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a whole file within bounds. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <glib/gstdio.h>
#include <zlib.h>

#include "base/json.h"

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
    if ((gzclose_r(file) != Z_OK || got < 0) && error == DUET_OK)
        error = duet_fail(message, DUET_EPARSE,
                          "%s: the compressed data is damaged or ends too early", path);
    *length = all->len;
    if (error == DUET_OK)
        *text = g_string_free(g_steal_pointer(&all), FALSE);
    return error;
}
