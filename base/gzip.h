/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are compressed because their name ends in ".gz". */
#ifndef DUET_BASE_GZIP_H
#define DUET_BASE_GZIP_H

#include <stdbool.h>
#include <stdio.h>

/* Has `contents` write into `file`, which stays open; compressed if `path` ends in ".gz". Returns
 * true if all was written, else errno says why not. */
bool duet__gzip_write(const char *path, FILE *file, void (*contents)(FILE *, const void *),
                      const void *data);

#endif
