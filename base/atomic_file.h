/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are either whole or not there. */
#ifndef DUET_BASE_ATOMIC_FILE_H
#define DUET_BASE_ATOMIC_FILE_H

#include <stdio.h>

#include <duet/error.h>

/* Writes what a file is to hold, and leaves write errors to the stream. */
typedef void duet__file_fn(FILE *stream, const void *data);

/*
 * Has `contents` write, with `data`, a temporary file beside `path` (beside its target, where it is
 * a symbolic link), which then gets that name, replacing an older file at once, of which it keeps
 * the mode. A file whose path ends in ".gz" is compressed. What is no ordinary file (/dev/stdout)
 * is written itself; a named pipe is refused. SIGINT, SIGTERM and SIGHUP wait meanwhile, so that no
 * temporary file stays.
 * DUET_EIO, upon which an older file stays, with a message that names the file.
 */
DUET_MUST_CHECK int duet__file_write(const char *path, duet__file_fn *contents, const void *data,
                                     struct duet_message *message);

/* Whether it can be written, without a change of it. DUET_EIO likewise. */
DUET_MUST_CHECK int duet__file_check(const char *path, struct duet_message *message);

#endif
