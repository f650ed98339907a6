/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processor time and memory that containers leave to a process: more threads than the first are
 * only slowed down, more memory than the second ends it.
 */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "real/real.h"
#include "real/topology.h"

enum { LINE = 4096 };

enum { FIELD = 64 };

/* Reads the first line of a file, "" if there is none. */
static void read_line(const char *path, char line[FIELD])
{
    FILE *file = fopen(path, "r");
    if (!file || !fgets(line, FIELD, file))
        *line = '\0';
    if (file)
        (void)fclose(file);
}

/* Returns the cores of one group: "200000 100000" is two, "max 100000" unlimited. */
static uint64_t cores_of(const char *path)
{
    char line[FIELD], *end = NULL;
    read_line(path, line);
    double quota = strtod(line, &end), period = strtod(end, NULL);
    if (end == line || !(quota > 0) || !(period > 0) || quota / period > INT_MAX)
        return UINT64_MAX;
    unsigned cores = (unsigned)(quota / period);
    return cores < quota / period ? cores + 1 : cores;
}

/*
 * Returns the memory of one group: "1073741824" bytes; "max" or a number beyond all memory is
 * unlimited.
 */
static uint64_t bytes_of(const char *path)
{
    char line[FIELD], *end = NULL;
    read_line(path, line);
    unsigned long long bytes = strtoull(line, &end, 10);
    return end == line || *line == '-' ? UINT64_MAX : bytes;
}

/* True if the list "cpu,memory" of a hierarchy names the controller; cgroup v2 names none: "". */
static bool is_listed(const char *list, const char *controller)
{
    size_t length = strlen(controller);
    for (;;) {
        size_t name = strcspn(list, ",");
        if (name == length && !strncmp(list, controller, length))
            return true;
        if (!list[name])
            return false;
        list += name + 1;
    }
}

/* Finds the group of the process, "" for the root: the line "0::/a/b", in v1 "4:memory:/a/b". */
static void find_group(const char *membership, const char *controller, char *group, size_t size)
{
    char line[LINE];
    FILE *file = fopen(membership, "r");
    *group = '\0';
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        char *list = strchr(line, ':');
        char *path = list ? strchr(list + 1, ':') : NULL;
        if (!path || path[1] != '/')
            continue;
        *path = '\0';
        if (is_listed(list + 1, controller))
            (void)snprintf(group, size, "%s", path + 2);
    }
    if (file)
        (void)fclose(file);
}

/* A file that every group of a hierarchy has, and its reader. */
struct kind {
    const char *controller, *folder, *file;
    uint64_t (*read)(const char *path);
};

/* Returns the least value on the way from the process's group to the root. */
static uint64_t least_of(const struct kind *kind, const char *root, const char *membership)
{
    char group[LINE], path[2 * LINE];
    uint64_t least = UINT64_MAX;
    find_group(membership, kind->controller, group, sizeof group);
    for (;;) {
        (void)snprintf(path, sizeof path, "%s%s/%s/%s", root, kind->folder, group, kind->file);
        uint64_t value = kind->read(path);
        least = value < least ? value : least;
        char *last = strrchr(group, '/');
        if (!last && !*group)
            return least;
        *(last ? last : group) = '\0';
    }
}

unsigned duet__quota(const char *root, const char *membership)
{
    const struct kind cpu = {"", "", "cpu.max", cores_of};
    uint64_t cores = least_of(&cpu, root, membership);
    return cores < UINT_MAX ? (unsigned)cores : UINT_MAX;
}

uint64_t duet__memory_limit(const char *root, const char *membership)
{
    const struct kind kinds[] = {
        {"", "", "memory.max", bytes_of},
        {"memory", "/memory", "memory.limit_in_bytes", bytes_of},
    };
    uint64_t newer = least_of(&kinds[0], root, membership);
    uint64_t older = least_of(&kinds[1], root, membership);
    return newer < older ? newer : older;
}

uint64_t duet__real_memory_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    uint64_t bytes = pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : 0;
    uint64_t limit = duet__memory_limit("/sys/fs/cgroup", "/proc/self/cgroup");
    return limit < bytes ? limit : bytes;
}
