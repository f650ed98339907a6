/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the effects that can be left out. */
#include <string.h>

#include "platforms/model/effects.h"

/* Names by bit of enum duet__effect. */
static const char *const names[] = {"caches", "bandwidth", "neighbours",
                                    "cores",  "wake-ups",  "start"};

int duet__effects_parse(const char *what, const char *list, unsigned *bits,
                        struct duet_message *message)
{
    unsigned found = 0;
    for (const char *at = list; at && *at;) {
        size_t length = strcspn(at, ",");
        unsigned bit = 0;
        for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
            if (strlen(names[i]) == length && !strncmp(names[i], at, length))
                bit = 1U << i;
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
