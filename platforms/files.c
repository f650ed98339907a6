/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a whole file within bounds, and replacing one in one step, while signals wait. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <glib/gstdio.h>

#include "platforms/internal.h"
#include "platforms/json.h"
#include "platforms/signals.h"

void duet__signals_defer(sigset_t *before)
{
    sigset_t ends;

    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &ends, before);
}

void duet__signals_admit(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* Writes what GLib says went wrong, without its beginning, which names a file again. */
static int fail_io(const char *path, const char *what, const GError *error,
                   struct duet_message *message)
{
    const char *why = strrchr(error->message, ':');

    return duet_fail(message, DUET_EIO, "%s: cannot %s%s", path, what, why != NULL ? why : "");
}

int duet__read_file(const char *path, char **text, size_t *length, struct duet_message *message)
{
    g_autoptr(GError) error = NULL;
    GStatBuf status;

    if (g_stat(path, &status) != 0)
        return duet_fail(message, DUET_EIO, "%s: cannot open: %s", path, g_strerror(errno));
    if (!S_ISREG(status.st_mode)) /* a named pipe would wait for its writer */
        return duet_fail(message, DUET_EIO, "%s: not a regular file", path);
    if (status.st_size > (off_t)DUET__MAX_FILE_MIB << 20)
        return duet_fail(message, DUET_EIO, "%s: larger than %d MiB, the most that is read", path,
                         DUET__MAX_FILE_MIB);
    if (!g_file_get_contents(path, text, length, &error))
        return fail_io(path, "open", error, message);
    return DUET_OK;
}

int duet__read_all(const char *path, size_t most_mib, char **text, size_t *length,
                   struct duet_message *message)
{
    enum { STEP = 1 << 16 };
    FILE *file = fopen(path, "rb");
    g_autoptr(GString) all = g_string_new(NULL);
    int error = DUET_OK;
    size_t got;

    *text = NULL;
    if (file == NULL)
        return duet_fail(message, DUET_EIO, "%s: cannot open: %s", path, g_strerror(errno));
    do {
        gsize before = all->len;

        g_string_set_size(all, before + STEP);
        got = fread(all->str + before, 1, STEP, file);
        g_string_truncate(all, before + got);
    } while (got > 0 && all->len <= most_mib << 20);
    if (ferror(file))
        error = duet_fail(message, DUET_EIO, "%s: cannot read: %s", path, g_strerror(errno));
    else if (got > 0)
        error = duet_fail(message, DUET_EIO, "%s: larger than %zu MiB, the most that is read", path,
                          most_mib);
    (void)fclose(file);
    *length = all->len;
    if (error == DUET_OK)
        *text = g_string_free(g_steal_pointer(&all), FALSE);
    return error;
}

int duet__write_file(const char *path, const char *text, size_t length,
                     struct duet_message *message)
{
    g_autoptr(GError) error = NULL;
    sigset_t before;
    bool written;

    if (length > (size_t)DUET__MAX_FILE_MIB << 20)
        return duet_fail(message, DUET_EIO,
                         "%s: would be larger than %d MiB, the most that can be read back", path,
                         DUET__MAX_FILE_MIB);
    duet__signals_defer(&before);
    written = g_file_set_contents_full(path, text, (gssize)length,
                                       G_FILE_SET_CONTENTS_CONSISTENT | G_FILE_SET_CONTENTS_DURABLE,
                                       0666, &error);
    duet__signals_admit(&before);
    return written ? DUET_OK : fail_io(path, "write", error, message);
}

bool duet__good_name(const char *name, size_t size)
{
    static const char good[] = G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "_-.:+";
    size_t length = strlen(name);

    return length > 0 && length < size && strspn(name, good) == length;
}
