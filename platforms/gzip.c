/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that are compressed because their name ends in ".gz". It is part of the recorder of OpenMP
 * programs, too, into which GLib is not to be loaded.
 */
#define _GNU_SOURCE /* fopencookie */
#include "platforms/gzip.h"

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

FILE *duet__gzip_begin(const char *path, FILE *file)
{
    const cookie_io_functions_t calls = {.write = gzip_put, .close = gzip_close};
    const size_t length = strlen(path);
    FILE *stream = NULL;
    gzFile zip;
    int own;

    if (length < 3 || strcmp(path + length - 3, ".gz") != 0)
        return file;
    own = fcntl(fileno(file), F_DUPFD_CLOEXEC, 0);
    zip = own >= 0 ? gzdopen(own, "w1")
                   : NULL; /* level 1: half the time of level 6, files a quarter larger */
    if (zip)
        stream = fopencookie(zip, "w", calls);
    if (!stream && zip)
        gzclose_w(zip);
    else if (!stream && own >= 0)
        close(own);
    return stream;
}

bool duet__gzip_end(FILE *stream, FILE *file)
{
    bool good = stream && !ferror(stream);

    if (stream && stream != file)
        good = fclose(stream) == 0 && good;
    return fflush(file) == 0 && good;
}
