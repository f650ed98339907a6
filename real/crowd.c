/* SPDX-License-Identifier: Apache-2.0 */
/*
 * More runnable threads of the process than cores: kernels start threads of their own, or the
 * program computes beside the runtime. Both make a run slow without a sign.
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "real/internal.h"

enum { LOOKS_IN_A_ROW = 3 };

/* True if this thread of the process runs, or waits for a core. Linux: proc(5). */
static bool is_running(const char *thread)
{
    char path[64], line[128] = "";
    (void)snprintf(path, sizeof path, "/proc/self/task/%.16s/stat", thread);
    FILE *file = fopen(path, "r");
    bool known = file && fgets(line, sizeof line, file);
    if (file)
        (void)fclose(file);
    const char *name_end = known ? strrchr(line, ')') : NULL;
    return name_end && !strncmp(name_end, ") R", 3);
}

/* Returns the number of runnable threads of the process, except the calling one. */
static unsigned count_running(void)
{
    DIR *folder = opendir("/proc/self/task");
    unsigned count = 0;
    if (!folder)
        return 0;
    for (const struct dirent *entry; (entry = readdir(folder));)
        count += *entry->d_name != '.' && is_running(entry->d_name);
    (void)closedir(folder);
    return count ? count - 1 : 0;
}

void duet__crowd_look(struct real *real)
{
    struct watch *watch = &real->watch;
    unsigned cores = duet__places_cores(real->places);
    /* emulated devices have more threads than they compute with */
    if (watch->crowd_said || real->options.emulate || real->options.quiet)
        return;
    unsigned running = count_running();
    watch->crowded = running > cores ? watch->crowded + 1 : 0;
    if (watch->crowded < LOOKS_IN_A_ROW)
        return;
    char line[256];
    (void)snprintf(line, sizeof line,
                   "%u threads of this program want to run on %u core%s: kernels that start "
                   "threads of their own slow each other down (their library's number of threads "
                   "should be 1), and what computes beside them needs cores of its own (--cpus)",
                   running, cores, cores == 1 ? "" : "s");
    watch->crowd_said = true;
    duet__say(real, line);
}
