/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that the application gives to tasks, and its marks in the trace. Each text is stored once,
 * for as long as the runtime, and identified by a number.
 */
#include "core/internal.h"

struct name {
    struct name *next; /* hash chain */
    uint32_t number;   /* from 1 */
    char text[];
};

static size_t name_bucket(const struct names *names, const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return (size_t)(hash & (names->capacity - 1));
}

/* Makes room for one more in the table and in the list. Lock held. */
static bool reserve_name(struct names *names)
{
    if (names->count < names->capacity)
        return true;
    size_t capacity = names->capacity ? 2 * names->capacity : 64;
    struct name **list = realloc(names->list, capacity * sizeof(struct name *));
    if (!list)
        return false;
    names->list = list;
    struct name **table = calloc(capacity, sizeof(struct name *));
    if (!table)
        return false;
    free(names->table);
    names->table = table;
    names->capacity = capacity;
    for (size_t i = 0; i < names->count; i++) {
        size_t bucket = name_bucket(names, list[i]->text);
        list[i]->next = table[bucket];
        table[bucket] = list[i];
    }
    return true;
}

/* Lock held. */
static struct name *name_find(const struct names *names, const char *text)
{
    struct name *name = names->capacity ? names->table[name_bucket(names, text)] : NULL;
    while (name && strcmp(name->text, text) != 0)
        name = name->next;
    return name;
}

/* Lock held. */
static struct name *name_add(struct names *names, const char *text)
{
    size_t length = strlen(text);
    struct name *name = reserve_name(names) ? malloc(sizeof *name + length + 1) : NULL;
    if (!name)
        return NULL;
    memcpy(name->text, text, length + 1);
    names->list[names->count++] = name;
    name->number = (uint32_t)names->count;
    size_t bucket = name_bucket(names, text);
    name->next = names->table[bucket];
    names->table[bucket] = name;
    return name;
}

/* Returns the number of a text, from 1; 0: no memory left. */
uint32_t duet__name(struct duet_runtime *core, const char *text)
{
    struct names *names = &core->names;
    spin_lock(&names->lock);
    const struct name *name = name_find(names, text);
    if (!name)
        name = name_add(names, text);
    uint32_t number = name ? name->number : 0;
    spin_unlock(&names->lock);
    return number;
}

const char *duet_trace_name(const struct duet_runtime *runtime, uint32_t number)
{
    struct names *names = &((struct duet_runtime *)(uintptr_t)runtime)->names;
    spin_lock(&names->lock);
    const char *text = number && number <= names->count ? names->list[number - 1]->text : NULL;
    spin_unlock(&names->lock);
    return text;
}

/* ------------------------------------------------------------------------------------------- */
/* Marks                                                                                        */

/* Lock held. */
static bool add_mark(struct names *names, uint32_t name, bool phase, double now)
{
    if (names->mark_count == names->mark_capacity) {
        size_t capacity = names->mark_capacity ? 2 * names->mark_capacity : 64;
        struct duet_trace_mark *marks = realloc(names->marks, capacity * sizeof *marks);
        if (!marks)
            return false;
        names->marks = marks;
        names->mark_capacity = capacity;
    }
    names->marks[names->mark_count++] =
        (struct duet_trace_mark){.name = name, .phase = phase, .start_s = now, .end_s = now};
    return true;
}

/* Ends the current phase, and begins another or marks a moment. */
static int add_mark_now(struct duet_runtime *runtime, const char *text, bool phase)
{
    struct names *names = &runtime->names;
    if (!runtime->record)
        return DUET_OK;
    uint32_t name = text ? duet__name(runtime, text) : 0;
    double now = duet_now(runtime);
    bool room = !text || name;
    spin_lock(&names->lock);
    if (phase && names->phase)
        names->marks[names->phase - 1].end_s = now;
    if (name)
        room = add_mark(names, name, phase, now);
    if (phase)
        names->phase = name && room ? names->mark_count : 0;
    spin_unlock(&names->lock);
    return room ? DUET_OK
                : duet__refuse(runtime, DUET_ENOMEM, "no memory left for a mark in the trace");
}

void duet__mark_lost(struct duet_runtime *core, unsigned worker, double now)
{
    struct names *names = &core->names;
    uint32_t name = core->record ? duet__name(core, core->machine.workers[worker].name) : 0;
    spin_lock(&names->lock);
    if (name && add_mark(names, name, false, now)) /* without memory the trace lacks it */
        names->marks[names->mark_count - 1].lost = worker + 1;
    spin_unlock(&names->lock);
}

int duet_mark(struct duet_runtime *runtime, const char *text)
{
    if (!text)
        return duet__refuse(runtime, DUET_EINVAL, "duet_mark needs a text (it is NULL)");
    return add_mark_now(runtime, text, false);
}

int duet_phase(struct duet_runtime *runtime, const char *text)
{
    return add_mark_now(runtime, text, true);
}

int duet_trace_marks(const struct duet_runtime *runtime, struct duet_trace_mark **marks,
                     size_t *count)
{
    struct names *names = &((struct duet_runtime *)(uintptr_t)runtime)->names;
    *marks = NULL;
    *count = 0;
    if (!runtime->record)
        return DUET_EINVAL;
    double now = duet_now(runtime);
    spin_lock(&names->lock);
    struct duet_trace_mark *all = malloc((names->mark_count + 1) * sizeof *all);
    if (all && names->mark_count)
        memcpy(all, names->marks, names->mark_count * sizeof *all);
    if (all && names->phase)
        all[names->phase - 1].end_s = now;
    *count = all ? names->mark_count : 0;
    spin_unlock(&names->lock);
    *marks = all;
    return all ? DUET_OK : DUET_ENOMEM;
}

/* Begins a new measurement, with which the current phase begins anew. */
void duet__marks_reset(struct duet_runtime *core)
{
    struct names *names = &core->names;
    double now = names->phase ? duet_now(core) : 0;
    spin_lock(&names->lock);
    size_t kept = names->phase != 0;
    if (kept) {
        names->marks[0] = names->marks[names->phase - 1];
        names->marks[0].start_s = now;
    }
    names->mark_count = names->phase = kept;
    spin_unlock(&names->lock);
}

void duet__names_fini(struct duet_runtime *core)
{
    struct names *names = &core->names;
    for (size_t i = 0; i < names->count; i++)
        free(names->list[i]);
    free(names->list);
    free(names->table);
    free(names->marks);
}
