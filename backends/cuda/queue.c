/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of commands in flight of a stream. It grows and is kept. */
#include <stdlib.h>

#include "backends/cuda/internal.h"

enum { FIRST_CAPACITY = 32 };

bool duet__cuda_reserve(struct stream *stream)
{
    if (stream->count < stream->capacity)
        return true;
    size_t capacity = stream->capacity ? 2 * stream->capacity : FIRST_CAPACITY;
    struct command *commands = malloc(capacity * sizeof *commands);
    if (!commands)
        return false;
    for (size_t i = 0; i < stream->count; i++)
        commands[i] = *cuda_at(stream, i);
    free(stream->commands);
    stream->commands = commands;
    stream->first = 0;
    stream->capacity = capacity;
    return true;
}

struct command *duet__cuda_push(struct stream *stream, const struct command *command)
{
    struct command *place = cuda_at(stream, stream->count++);
    *place = *command;
    return place;
}

static void give_timing(struct backend_device *device, struct command *command)
{
    if (command->timing)
        duet__timings_give(&device->timings, command->timing);
    command->timing = NULL;
}

void duet__cuda_unpush(struct backend_device *device, struct stream *stream)
{
    give_timing(device, cuda_at(stream, --stream->count));
    if (stream->given > stream->count)
        stream->given = stream->count;
}

void duet__cuda_shift(struct backend_device *device, struct stream *stream)
{
    give_timing(device, cuda_at(stream, 0));
    stream->first = (stream->first + 1) & (stream->capacity - 1);
    stream->count--;
    stream->given--;
    stream->reported++;
}
