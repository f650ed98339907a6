/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of files that are installed beside the running code. */
#ifndef DUET_PLATFORMS_DIRECTORIES_H
#define DUET_PLATFORMS_DIRECTORIES_H

#include <glib.h>

/* Appends to `list` (strings of g_malloc) the existing folders among `ways` (NULL-ended, relative):
 * first from the folder of the library or program that holds this code, then from the program's. */
void duet__beside_code(GPtrArray *list, const char *const *ways);

#endif
