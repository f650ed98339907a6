/* SPDX-License-Identifier: Apache-2.0 */
/* Names of architectures, statuses, and the time of threads. */
#include "backends/common.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

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

double duet__thread_s(void)
{
    struct timespec spent;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    return (double)spent.tv_sec + 1e-9 * (double)spent.tv_nsec;
}
