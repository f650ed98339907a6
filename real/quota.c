/* SPDX-License-Identifier: Apache-2.0 */
/* How much processor time containers leave to a process: threads beyond that are only slowed down.
 */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real/topology.h"

enum { LINE = 4096 };

/* The cores of one group: "200000 100000" is two, "max 100000" any. */
static unsigned cores_of(const char *path)
{
    char line[64] = "", *end = NULL;
    FILE *file = fopen(path, "r");
    if (!file)
        return UINT_MAX;
    bool known = fgets(line, sizeof line, file) != NULL;
    (void)fclose(file);
    double quota = strtod(line, &end), period = strtod(end, NULL);
    if (!known || end == line || !(quota > 0) || !(period > 0) || quota / period > INT_MAX)
        return UINT_MAX;
    unsigned cores = (unsigned)(quota / period);
    return cores < quota / period ? cores + 1 : cores;
}

/* The group of the process, "" for the root: the line "0::/a/b". */
static void find_group(const char *membership, char *group, size_t size)
{
    char line[LINE];
    FILE *file = fopen(membership, "r");
    *group = '\0';
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "0::/", strlen("0::/")) != 0)
            continue;
        line[strcspn(line, "\n")] = '\0';
        (void)snprintf(group, size, "%s", line + strlen("0::"));
    }
    if (file)
        (void)fclose(file);
}

unsigned duet__quota(const char *root, const char *membership)
{
    char group[LINE], path[2 * LINE];
    unsigned least = UINT_MAX;
    find_group(membership, group, sizeof group);
    for (;;) {
        (void)snprintf(path, sizeof path, "%s%s/cpu.max", root, group);
        unsigned cores = cores_of(path);
        least = cores < least ? cores : least;
        char *last = strrchr(group, '/');
        if (!last)
            return least;
        *last = '\0';
    }
}
