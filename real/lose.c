/* SPDX-License-Identifier: Apache-2.0 */
/* Which emulated devices are lost on purpose, and when. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "real/internal.h"

/* The device's worker of this name, or NULL. */
static struct worker *find(struct real *real, const char *name, size_t length)
{
    for (unsigned w = real->cpus; w < real->machine.worker_count; w++) {
        const char *known = real->machine.workers[w].name;
        if (strlen(known) == length && !memcmp(known, name, length))
            return &real->workers[w];
    }
    return NULL;
}

/* One "gpu1@100" of `length` bytes. */
static int parse_one(struct real *real, const char *text, size_t length,
                     struct duet_message *message)
{
    const char *at = memchr(text, '@', length);
    struct worker *worker = at ? find(real, text, (size_t)(at - text)) : NULL;
    if (!at)
        return duet_fail(message, DUET_EINVAL,
                         "a device to lose is given as gpu1@100 (at its 100th kernel or copy), not "
                         "'%.*s'",
                         (int)length, text);
    if (!worker || !real->emulated[worker->arch])
        return duet_fail(message, DUET_EINVAL, "cannot lose '%.*s': %s", (int)(at - text), text,
                         worker ? "only emulated devices are lost on purpose"
                                : "this machine has no such device");
    char *end = NULL;
    errno = 0;
    unsigned long long number = strtoull(at + 1, &end, 10);
    if (at[1] < '0' || at[1] > '9' || end != text + length || number == 0 || errno)
        return duet_fail(message, DUET_EINVAL,
                         "cannot lose a device at '%.*s': the number of a kernel or copy, from 1, "
                         "must stand after the @",
                         (int)length, text);
    if (worker->lose_at)
        return duet_fail(message, DUET_EINVAL, "%.*s is to be lost twice", (int)(at - text), text);
    worker->lose_at = number;
    return DUET_OK;
}

int duet__lose_parse(struct real *real, const char *text, struct duet_message *message)
{
    int error = DUET_OK;
    while (text && *text && !error) {
        size_t length = strcspn(text, ",");
        error = parse_one(real, text, length, message);
        text += length;
        text += *text == ',';
    }
    return error;
}
