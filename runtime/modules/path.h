/* SPDX-License-Identifier: Apache-2.0 */
/* Places of duet's parts that are shared objects of their own. */
#ifndef DUET_RUNTIME_MODULES_PATH_H
#define DUET_RUNTIME_MODULES_PATH_H

/* Returns the file libduet-NAME.so, for g_free; NULL: it is not where it belongs. */
char *duet__module_path(const char *name);

#endif
