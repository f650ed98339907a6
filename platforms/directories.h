/* SPDX-License-Identifier: Apache-2.0 */
/* Where what is installed beside the running code is looked for. */
#ifndef DUET_PLATFORMS_DIRECTORIES_H
#define DUET_PLATFORMS_DIRECTORIES_H

#include <glib.h>

/*
 * Appends to `list` (strings of g_malloc) each folder that exists among these, NULL-ended: `ways`
 * from the folder of the program or library that holds this code, then from the program's.
 */
void duet__beside_code(GPtrArray *list, const char *const *ways);

#endif
