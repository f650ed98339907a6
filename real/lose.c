/* SPDX-License-Identifier: Apache-2.0 */
/* Emulated devices that are lost on purpose. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real/internal.h"

/* Returns the number of the device's worker of this name, or -1. */
static int find_worker(const struct duet_machine *machine, const char *name, size_t length)
{
    for (unsigned w = 0; w < machine->worker_count; w++) {
        const struct duet_worker *known = &machine->workers[w];
        if (known->node != DUET_HOST && strlen(known->name) == length &&
            !memcmp(known->name, name, length))
            return (int)w;
    }
    return -1;
}

/*
 * Refuses a name, and says which devices there are, as gpu0 and gpu2 may be the two that are used.
 */
static int refuse_name(const struct duet_machine *machine, const char *name, size_t length,
                       struct duet_message *message)
{
    char names[256] = "none";
    size_t used = 0;
    for (unsigned w = 0; w < machine->worker_count && used < sizeof names; w++)
        if (machine->workers[w].node != DUET_HOST)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                                     machine->workers[w].name);
    return duet_fail(message, DUET_EINVAL,
                     "cannot lose '%.*s': this machine has no such device (it has %s)", (int)length,
                     name, names);
}

/*
 * Parses one "gpu1@100" of `length` bytes, and sets the number for its worker. `emulated`: by
 * architecture, true if its devices are; NULL: all of them.
 */
static int parse_one(const struct duet_machine *machine, const bool *emulated, const char *text,
                     size_t length, uint64_t *lose_at, struct duet_message *message)
{
    const char *at = memchr(text, '@', length);
    int worker = at ? find_worker(machine, text, (size_t)(at - text)) : -1;
    if (!at)
        return duet_fail(message, DUET_EINVAL,
                         "a device to lose is given as gpu1@100 (at its 100th kernel or copy), not "
                         "'%.*s'",
                         (int)length, text);
    if (worker < 0)
        return refuse_name(machine, text, (size_t)(at - text), message);
    if (emulated && !emulated[machine->workers[worker].arch])
        return duet_fail(message, DUET_EINVAL,
                         "cannot lose '%.*s': only emulated devices are lost on purpose",
                         (int)(at - text), text);
    char *end = NULL;
    errno = 0;
    unsigned long long number = strtoull(at + 1, &end, 10);
    if (at[1] < '0' || at[1] > '9' || end != text + length || number == 0 || errno == ERANGE)
        return duet_fail(message, DUET_EINVAL,
                         "cannot lose a device at '%.*s': the number of a kernel or copy, from 1, "
                         "must stand after the @",
                         (int)length, text);
    if (lose_at[worker])
        return duet_fail(message, DUET_EINVAL, "%.*s is to be lost twice", (int)(at - text), text);
    lose_at[worker] = number;
    return DUET_OK;
}

/* Parses a list: *lose_at, to be freed, has a number for each worker, 0 for those that stay. */
static int parse_all(const struct duet_machine *machine, const bool *emulated, const char *text,
                     uint64_t **lose_at, struct duet_message *message)
{
    int error = DUET_OK;
    *lose_at = calloc((size_t)machine->worker_count + 1, sizeof **lose_at);
    if (!*lose_at)
        return duet_fail(message, DUET_ENOMEM, "no memory left for the engine");
    while (text && *text && !error) {
        size_t length = strcspn(text, ",");
        error = parse_one(machine, emulated, text, length, *lose_at, message);
        text += length;
        text += *text == ',';
    }
    return error;
}

int duet__lose_parse(struct real *real, const char *text, struct duet_message *message)
{
    uint64_t *lose_at;
    int error = parse_all(&real->machine, real->emulated, text, &lose_at, message);
    for (unsigned w = 0; w < real->machine.worker_count && !error; w++)
        real->workers[w].lose_at = lose_at[w];
    free(lose_at);
    return error;
}

int duet__real_check_lose(const struct duet_machine *machine, const char *text,
                          struct duet_message *message)
{
    uint64_t *lose_at;
    int error = parse_all(machine, NULL, text, &lose_at, message);
    free(lose_at);
    return error;
}
