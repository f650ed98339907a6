/* SPDX-License-Identifier: Apache-2.0 */
/* Page-locking as bookkeeping. */
#include "backends/emulated/internal.h"

#include <inttypes.h>
#include <stdlib.h>

struct lock_note {
    const _Atomic(void *) *mark; /* the mark that holds this note */
    unsigned copies;             /* copies in flight; with the mutex */
    struct lock_note *next, *previous;
};

int duet__locks_init(struct locks *locks, const struct backend_setup *setup)
{
    *locks = (struct locks){.setup = setup};
    return pthread_mutex_init(&locks->mutex, NULL) ? DUET_ENOMEM : DUET_OK;
}

/* Reports an error of the engine. The mutex is held. */
static void complain(struct locks *locks, const char *line)
{
    locks->errors++;
    if (locks->setup->say)
        locks->setup->say(locks->setup->clock, line);
}

void duet__locks_fini(struct locks *locks)
{
    if (locks->notes)
        complain(locks, "emulated devices: the marks of some handles were never forgotten");
    while (locks->notes) {
        struct lock_note *next = locks->notes->next;
        free(locks->notes);
        locks->notes = next;
    }
    free(locks->ranges);
    (void)pthread_mutex_destroy(&locks->mutex);
}

/* ------------------------------------------------------------------------------------------- */
/* Ranges, with the mutex held                                                                  */

/* Returns the first range that overlaps this one, or NULL. */
static const struct lock_range *overlapping(const struct locks *locks, uintptr_t begin,
                                            uintptr_t end)
{
    for (size_t i = 0; i < locks->count; i++)
        if (locks->ranges[i].begin < end && begin < locks->ranges[i].end)
            return &locks->ranges[i];
    return NULL;
}

static bool reserve_range(struct locks *locks)
{
    if (locks->count < locks->capacity)
        return true;
    size_t capacity = 2 * locks->capacity + 8;
    struct lock_range *ranges = realloc(locks->ranges, capacity * sizeof *ranges);
    if (!ranges)
        return false;
    locks->ranges = ranges;
    locks->capacity = capacity;
    return true;
}

static int add_range(struct locks *locks, void *data, uint64_t bytes, struct duet_message *message)
{
    uintptr_t begin = (uintptr_t)data, end = begin + bytes;
    if (!data || bytes == 0 || end < begin)
        return duet_fail(message, DUET_EINVAL,
                         "emulated devices: %" PRIu64 " bytes at %p cannot be page-locked", bytes,
                         data);
    const struct lock_range *range = overlapping(locks, begin, end);
    if (range && range->begin <= begin && end <= range->end)
        return DUET_OK;
    if (range)
        return duet_fail(message, DUET_EINVAL,
                         "emulated devices: %" PRIu64 " bytes at %p overlap in part what is "
                         "page-locked already",
                         bytes, data);
    if (bytes > locks->setup->pin_bytes - locks->bytes)
        return duet_fail(message, DUET_ENOMEM,
                         "emulated devices: %" PRIu64 " bytes cannot be page-locked: %" PRIu64
                         " of at most %" PRIu64 " are",
                         bytes, locks->bytes, locks->setup->pin_bytes);
    if (!reserve_range(locks))
        return duet_fail(message, DUET_ENOMEM, "emulated devices: out of memory");
    locks->ranges[locks->count++] = (struct lock_range){begin, end};
    locks->bytes += bytes;
    return DUET_OK;
}

int duet__locks_pin(struct locks *locks, void *data, uint64_t bytes, struct duet_message *message)
{
    (void)pthread_mutex_lock(&locks->mutex);
    int error = add_range(locks, data, bytes, message);
    (void)pthread_mutex_unlock(&locks->mutex);
    return error;
}

static bool remove_range(struct locks *locks, uintptr_t begin)
{
    for (size_t i = 0; i < locks->count; i++) {
        if (locks->ranges[i].begin != begin)
            continue;
        locks->bytes -= locks->ranges[i].end - begin;
        locks->ranges[i] = locks->ranges[--locks->count];
        return true;
    }
    return false;
}

int duet__locks_unpin(struct locks *locks, void *data, struct duet_message *message)
{
    (void)pthread_mutex_lock(&locks->mutex);
    bool found = remove_range(locks, (uintptr_t)data);
    (void)pthread_mutex_unlock(&locks->mutex);
    if (found)
        return DUET_OK;
    return duet_fail(message, DUET_EINVAL,
                     "emulated devices: nothing that was page-locked begins at %p", data);
}

/* ------------------------------------------------------------------------------------------- */
/* Marks                                                                                        */

/* Makes a note, and stores it in the mark; NULL: no memory. The mutex is held. */
static struct lock_note *note_new(struct locks *locks, _Atomic(void *) *mark)
{
    struct lock_note *note = calloc(1, sizeof *note);
    if (!note)
        return NULL;
    note->mark = mark;
    note->next = locks->notes;
    if (note->next)
        note->next->previous = note;
    locks->notes = note;
    atomic_store_explicit(mark, note, memory_order_release);
    return note;
}

struct lock_note *duet__locks_use(struct locks *locks, _Atomic(void *) *mark)
{
    if (!mark)
        return NULL;
    (void)pthread_mutex_lock(&locks->mutex);
    struct lock_note *note = atomic_load_explicit(mark, memory_order_acquire);
    if (!note)
        note = note_new(locks, mark);
    if (note)
        note->copies++;
    (void)pthread_mutex_unlock(&locks->mutex);
    return note;
}

void duet__locks_leave(struct locks *locks, struct lock_note *note)
{
    if (!note)
        return;
    (void)pthread_mutex_lock(&locks->mutex);
    note->copies--;
    (void)pthread_mutex_unlock(&locks->mutex);
}

/* Removes the note from the list, and frees it. */
static void note_free(struct locks *locks, struct lock_note *note)
{
    if (note->previous)
        note->previous->next = note->next;
    else
        locks->notes = note->next;
    if (note->next)
        note->next->previous = note->previous;
    free(note);
}

void duet__locks_forget(struct locks *locks, _Atomic(void *) *mark)
{
    (void)pthread_mutex_lock(&locks->mutex);
    struct lock_note *note = atomic_load_explicit(mark, memory_order_acquire);
    if (note && note->mark != mark)
        complain(locks, "emulated devices: a mark was moved to another place");
    else if (note && note->copies)
        complain(locks, "emulated devices: a mark was forgotten while its data was copied");
    else if (note)
        note_free(locks, note);
    atomic_store_explicit(mark, NULL, memory_order_release);
    (void)pthread_mutex_unlock(&locks->mutex);
}
