/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are compressed because their name ends in ".gz". */
#ifndef DUET_BASE_GZIP_H
#define DUET_BASE_GZIP_H

#include <stdbool.h>
#include <stdio.h>

/*
 * Writes the contents of `path`, as a function makes them of `data`, into `file`, which stays open:
 * compressed where the path ends in ".gz". Returns whether all was written; errno is that of the
 * failure.
 */
bool duet__gzip_write(const char *path, FILE *file, void (*contents)(FILE *, const void *),
                      const void *data);

#endif
