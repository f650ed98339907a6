/* SPDX-License-Identifier: Apache-2.0 */
/* Compresses files whose name ends in ".gz". The recorder of OpenMP programs, which must not load
 * GLib, contains this file. */
#define _GNU_SOURCE /* fopencookie */
#include "base/files.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static ssize_t gzip_put(void *zip, const char *text, size_t length)
{
    return gzwrite(zip, text, (unsigned)length);
}

static int gzip_close(void *zip)
{
    return gzclose_w(zip) == Z_OK ? 0 : EOF;
}

/* Returns a stream that compresses into the file; NULL: out of memory. */
static FILE *gzip_open(FILE *file)
{
    const cookie_io_functions_t calls = {.write = gzip_put, .close = gzip_close};
    const int own = fcntl(fileno(file), F_DUPFD_CLOEXEC, 0);
    /* level 1: half the time of level 6, files a quarter larger */
    gzFile zip = gzdopen(own, "w1");
    FILE *stream = zip ? fopencookie(zip, "w", calls) : NULL;
    if (!stream && zip)
        gzclose_w(zip);
    else if (!stream && own >= 0)
        close(own);
    return stream;
}

bool duet__gzip_write(const char *path, FILE *file, void (*contents)(FILE *, const void *),
                      const void *data)
{
    const char *end = strrchr(path, '.');
    FILE *stream = end && strcmp(end, ".gz") == 0 ? gzip_open(file) : file;
    bool good;
    if (!stream)
        return false;
    contents(stream, data);
    good = !ferror(stream);
    if (stream != file)
        good = fclose(stream) == 0 && good;
    return fflush(file) == 0 && good;
}
