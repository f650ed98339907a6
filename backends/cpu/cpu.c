/* SPDX-License-Identifier: Apache-2.0 */
/* CPU cores: kernels are called on the worker's thread, in the host's memory. */
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/backend.h"

/* An open core, which has no state. */
struct backend_device {
    char unused;
};

/* True if no lower-numbered hardware thread of the same core may be used. */
static bool first_of_its_core(const cpu_set_t *set, int processor)
{
    char path[96], list[256];
    (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
                   processor);
    (void)duet__read_line(path, list, sizeof list);
    for (int sibling = 0; sibling < processor; sibling++)
        if (CPU_ISSET(sibling, set) && duet__is_listed(list, (unsigned)sibling))
            return false;
    return true;
}

/*
 * Returns the number of cores within the process's affinity; hardware threads of one core count
 * once.
 */
static unsigned cpu_count(struct duet_message *why)
{
    cpu_set_t set;
    unsigned cores = 0;
    if (sched_getaffinity(0, sizeof set, &set)) {
        long online = sysconf(_SC_NPROCESSORS_ONLN);
        return online > 0 ? (unsigned)online : 1;
    }
    for (int processor = 0; processor < CPU_SETSIZE; processor++)
        cores += CPU_ISSET(processor, &set) && first_of_its_core(&set, processor);
    return cores > 0 ? cores : 1;
}

/* Gives the processor's name as Linux reports it, without spaces around; "" if it does not. */
static void model_name(char *to, size_t size)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    *to = '\0';
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", strlen("model name")) != 0 || !colon)
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        (void)snprintf(to, size, "%.*s", (int)strcspn(colon, "\n"), colon);
        break;
    }
    if (file)
        (void)fclose(file);
}

static int cpu_describe(unsigned index, struct backend_info *info, struct duet_message *message)
{
    unsigned cores = cpu_count(NULL);
    if (index >= cores)
        return duet_fail(message, DUET_EINVAL, "CPU core %u: there are %u", index, cores);
    *info = (struct backend_info){.arch = "cpu"};
    model_name(info->description, sizeof info->description);
    if (!*info->description)
        (void)snprintf(info->description, sizeof info->description, "CPU core");
    return DUET_OK;
}

static int cpu_attach(void **shared, const struct backend_setup *setup,
                      struct duet_message *message)
{
    *shared = NULL;
    return DUET_OK;
}

static void cpu_detach(void *shared)
{
}

/* Opens a core; more may be opened than there are: they then take turns. */
static int open_core(struct backend_device **out, void *shared, const struct backend_config *config,
                     struct duet_message *message)
{
    *out = calloc(1, sizeof **out);
    return *out ? DUET_OK : duet_fail(message, DUET_ENOMEM, "no memory left for a CPU core");
}

static void close_core(struct backend_device *device)
{
    free(device);
}

static int cpu_execute(struct backend_device *device, const struct backend_kernel *kernel)
{
    return kernel->run(kernel->call);
}

const struct duet__backend duet__backend_cpu = {
    .name = "cpu",
    .description = "CPU cores",
    .count = cpu_count,
    .describe = cpu_describe,
    .attach = cpu_attach,
    .detach = cpu_detach,
    .open = open_core,
    .close = close_core,
    .execute = cpu_execute,
};
