/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings as bytes, between processes of the same program. */
#include "trace/wire.h"

#include <stdlib.h>
#include <string.h>

#include <glib.h>

void *duet__wire_read(FILE *stream, size_t count, size_t bytes)
{
    void *array = count < SIZE_MAX / bytes ? calloc(count + 1, bytes) : NULL;

    if (array && fread(array, bytes, count, stream) == count)
        return array;
    free(array);
    return NULL;
}

void duet__wire_write(FILE *stream, const void *array, size_t count, size_t bytes)
{
    if (count)
        fwrite(array, bytes, count, stream);
}

static void write_texts(FILE *stream, const char **texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fwrite(texts[i], strlen(texts[i]) + 1, 1, stream);
}

/* Reads so many texts, owned by the caller; *whole becomes false where one is missing. */
static const char **read_texts(FILE *stream, size_t count, bool *whole)
{
    const char **texts = g_new0(const char *, count + 1);
    size_t room = 0;
    char *text = NULL;

    for (size_t i = 0; i < count && *whole; i++) {
        *whole = getdelim(&text, &room, 0, stream) > 0;
        texts[i] = *whole ? g_strdup(text) : NULL;
    }
    free(text);
    return texts;
}

/* An array of a machine, to be written or read. */
struct array {
    void **at;
    size_t count, bytes;
};

enum { ARRAYS = 5 };

static void arrays_of(struct duet_machine *machine, struct array arrays[ARRAYS])
{
    const size_t nodes = machine->node_count;
    const struct array all[ARRAYS] = {
        {(void **)&machine->archs, machine->arch_count, sizeof *machine->archs},
        {(void **)&machine->nodes, nodes, sizeof *machine->nodes},
        {(void **)&machine->workers, machine->worker_count, sizeof *machine->workers},
        {(void **)&machine->links, machine->link_count, sizeof *machine->links},
        {(void **)&machine->routes, nodes * nodes, sizeof *machine->routes},
    };

    memcpy(arrays, all, sizeof all);
}

static struct duet_machine *read_machine(FILE *stream, bool *whole)
{
    struct duet_machine *machine = duet__wire_read(stream, 1, sizeof *machine);
    struct array arrays[ARRAYS];

    *whole = machine != NULL;
    if (!machine)
        return NULL;
    arrays_of(machine, arrays);
    for (unsigned i = 0; i < ARRAYS; i++) {
        *arrays[i].at = duet__wire_read(stream, arrays[i].count, arrays[i].bytes);
        *whole &= *arrays[i].at != NULL;
    }
    return machine;
}

void duet__recording_write(FILE *stream, const struct duet__recording *recording)
{
    struct array arrays[ARRAYS];

    if (!recording->machine)
        return;
    duet__wire_write(stream, recording->machine, 1, sizeof *recording->machine);
    arrays_of(recording->machine, arrays);
    for (unsigned i = 0; i < ARRAYS; i++)
        duet__wire_write(stream, *arrays[i].at, arrays[i].count, arrays[i].bytes);
    duet__wire_write(stream, recording->events, recording->event_count, sizeof *recording->events);
    duet__wire_write(stream, recording->accesses, recording->access_count,
                     sizeof *recording->accesses);
    duet__wire_write(stream, recording->marks, recording->mark_count, sizeof *recording->marks);
    write_texts(stream, recording->kernels, recording->kernel_count);
    write_texts(stream, recording->names, recording->name_count);
}

bool duet__recording_read(FILE *stream, struct duet__recording *out)
{
    bool whole = true;

    if (!out->machine)
        return true;
    out->machine = read_machine(stream, &whole);
    out->events = duet__wire_read(stream, out->event_count, sizeof *out->events);
    out->accesses =
        out->accesses ? duet__wire_read(stream, out->access_count, sizeof *out->accesses) : NULL;
    out->marks = duet__wire_read(stream, out->mark_count, sizeof *out->marks);
    whole &= out->events && out->marks && (out->accesses || !out->access_count);
    out->kernels = read_texts(stream, out->kernel_count, &whole);
    out->names = read_texts(stream, out->name_count, &whole);
    return whole;
}
