/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are either whole or not there, and are compressed where their name ends in ".gz". */
#ifndef DUET_BASE_FILES_H
#define DUET_BASE_FILES_H

#include <stdbool.h>
#include <stdio.h>

#include <duet/error.h>

/* Writes the contents of a file. Write errors stay with the stream. */
typedef void duet__file_fn(FILE *stream, const void *data);

/*
 * Has `contents` write a temporary file beside `path` (beside its target, if that is a symbolic
 * link), and renames it to `path`. An older file is replaced at once and its mode kept. A file
 * whose path ends in ".gz" is compressed. Files that are not ordinary (/dev/stdout) are written
 * directly; a named pipe is refused. SIGINT, SIGTERM and SIGHUP are blocked meanwhile, so that no
 * temporary file stays. DUET_EIO with a message that names the file; an older file then stays.
 */
DUET_MUST_CHECK int duet__file_write(const char *path, duet__file_fn *contents, const void *data,
                                     struct duet_message *message);

/* Checks that the file can be written, without changing it. DUET_EIO with a message. */
DUET_MUST_CHECK int duet__file_check(const char *path, struct duet_message *message);

/* Has `contents` write into `file`, which stays open; compressed if `path` ends in ".gz". Returns
 * true if all was written, else errno says why not. */
bool duet__gzip_write(const char *path, FILE *file, void (*contents)(FILE *, const void *),
                      const void *data);

#endif
