/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the causes. */
#include <string.h>

#include "platforms/model/effects.h"

static const char *const names[] = {"caches", "bandwidth", "neighbours",
                                    "cores",  "wake-ups",  "start"};

enum { NAMES = sizeof names / sizeof names[0] };

const char *duet__effect_name(unsigned effect)
{
    for (unsigned i = 0; i < NAMES; i++)
        if (effect == 1U << i)
            return names[i];
    return NULL;
}

/* The bit of a name of `length` bytes; 0: there is none. */
static unsigned bit_of(const char *name, size_t length)
{
    for (unsigned i = 0; i < NAMES; i++)
        if (strlen(names[i]) == length && !strncmp(names[i], name, length))
            return 1U << i;
    return 0;
}

int duet__effects_parse(const char *what, const char *list, unsigned *bits,
                        struct duet_message *message)
{
    unsigned found = 0;
    for (const char *at = list; at && *at;) {
        size_t length = strcspn(at, ",");
        unsigned bit = bit_of(at, length);
        if (!bit)
            return duet_fail(message, DUET_EINVAL,
                             "%s: unknown cause '%.*s': known are caches, bandwidth, neighbours, "
                             "cores, wake-ups, start",
                             what, (int)(length < 64 ? length : 64), at);
        found |= bit;
        at += length + (at[length] == ',');
    }
    *bits = found;
    return DUET_OK;
}
