/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of backends to the user: each line once, whichever device prints it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real/internal.h"

int duet__said_init(struct said *said)
{
    return pthread_mutex_init(&said->mutex, NULL) ? DUET_ENOMEM : DUET_OK;
}

void duet__said_fini(struct said *said)
{
    for (size_t i = 0; i < said->count; i++)
        free(said->lines[i]);
    free(said->lines);
    (void)pthread_mutex_destroy(&said->mutex);
}

/* Stores a line; without memory, it may be printed again. The mutex is held. */
static void keep_line(struct said *said, const char *line)
{
    if (said->count == said->capacity) {
        size_t capacity = 2 * said->capacity + 8;
        char **lines = realloc(said->lines, capacity * sizeof *lines);
        if (!lines)
            return;
        said->lines = lines;
        said->capacity = capacity;
    }
    char *copy = strdup(line);
    if (copy)
        said->lines[said->count++] = copy;
}

static bool is_kept(const struct said *said, const char *line)
{
    for (size_t i = 0; i < said->count; i++)
        if (!strcmp(said->lines[i], line))
            return true;
    return false;
}

void duet__say(void *engine, const char *line)
{
    struct real *real = engine;
    struct said *said = &real->said;
    if (real->options.quiet)
        return;
    (void)pthread_mutex_lock(&said->mutex);
    if (!is_kept(said, line)) {
        keep_line(said, line);
        (void)fprintf(stderr, "duet: %s\n", line);
    }
    (void)pthread_mutex_unlock(&said->mutex);
}
