/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are compressed because their name ends in ".gz". */
#ifndef DUET_PLATFORMS_GZIP_H
#define DUET_PLATFORMS_GZIP_H

#include <stdbool.h>
#include <stdio.h>

/*
 * Returns the stream that the contents of `path` are to be written to, for duet__gzip_end: `file`
 * itself, or, where the path ends in ".gz", one that compresses into it. NULL: there is no memory,
 * and errno says so.
 */
FILE *duet__gzip_begin(const char *path, FILE *file);

/*
 * Writes what `stream` holds yet into `file`, which stays open, and closes the stream if it is not
 * the file itself; NULL: nothing. Returns whether all was written; errno is that of the failure.
 */
bool duet__gzip_end(FILE *stream, FILE *file);

#endif
