/* SPDX-License-Identifier: Apache-2.0 */
/* Names of architectures, statuses, and the usage of threads. */
#include "backends/common.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

void duet__arch_name(char arch[DUET_NAME_MAX], const char *name)
{
    static const char *const brands[] = {"NVIDIA ", "Tesla "};
    size_t length = 0;
    for (size_t i = 0; i < sizeof brands / sizeof *brands; i++)
        if (!strncmp(name, brands[i], strlen(brands[i])))
            name += strlen(brands[i]);
    for (; *name && length + 1 < DUET_NAME_MAX; name++) {
        if (isalnum((unsigned char)*name))
            arch[length++] = (char)tolower((unsigned char)*name);
        else if (length && arch[length - 1] != '-')
            arch[length++] = '-';
    }
    while (length && arch[length - 1] == '-')
        length--;
    arch[length] = '\0';
    if (!length)
        (void)snprintf(arch, DUET_NAME_MAX, "gpu");
}

int duet__late_status(int late, int *info)
{
    switch (late) {
    case DUET_OK:
#define X(name, value, text) case name:
        DUET_ERRORS(X)
#undef X
        return late;
    default:
        *info = late;
        return DUET_ETASK;
    }
}

static double seconds_of(const struct timeval *time)
{
    return (double)time->tv_sec + 1e-6 * (double)time->tv_usec;
}

void duet__thread_usage(struct duet__usage *usage)
{
    struct rusage now;
    *usage = (struct duet__usage){0};
    if (getrusage(RUSAGE_THREAD, &now))
        return;
    usage->computed_s = seconds_of(&now.ru_utime) + seconds_of(&now.ru_stime);
    usage->sleeps = now.ru_nvcsw;
}

bool duet__has_prepared(double wall_s, const struct duet__usage *before)
{
    struct duet__usage now;
    if (wall_s <= DUET__PREPARING_S)
        return false;
    duet__thread_usage(&now);
    return now.sleeps > before->sleeps ||
           now.computed_s - before->computed_s > DUET__PREPARING_S / 2;
}
