/* SPDX-License-Identifier: Apache-2.0 */
/* Releases: the events that released a run's kernels and copies, as the records say it. */
#ifndef DUET_TRACE_RELEASED_H
#define DUET_TRACE_RELEASED_H

#include <glib.h>

#include "trace/recording.h"

/* Names of enum duet_release in traces, and NULL. */
extern const char *const duet__release_names[DUET_RELEASE_OUTSIDE + 2];

/* Returns the index of the event that released one; event_count: there is none. */
static inline size_t duet__released_by(const struct duet__recording *recording, size_t event)
{
    const struct duet_event *own = &recording->events[event];
    const bool known = own->released_by && own->release != DUET_RELEASE_OUTSIDE &&
                       own->released_by <= recording->event_count;

    return known ? own->released_by - 1 : recording->event_count;
}

/*
 * Returns, by event, the index of the task that ended last on its worker before it started, and 1;
 * 0: there is none, or it is a copy. For g_free. O(n log n).
 */
uint32_t *duet__queued_behind(const struct duet__recording *recording);

/*
 * Returns, by event, the index of the task or copy from which an arrow leads to it, and 1; 0: there
 * is no arrow. An arrow's origin has a lower index, and its data released the event. Copies that
 * nothing waited for have no arrow and, unless `all`, events for which the task before on their
 * worker ended later. Events are sorted by start; for g_free.
 */
uint32_t *duet__arrows_make(const struct duet__recording *recording, bool all);

/* Adds, by memory, the bytes that were copied there though the same data had been there before. */
void duet__count_again(const struct duet__recording *recording, uint64_t *again_bytes);

/*
 * Fills in what released the events of a recording that does not say it, by dates and accesses: of
 * the tasks and copies that something may have waited for, the one that ended last, which has a
 * lower index. `messages`: of records of several nodes, whose cores know all but what messages
 * waited for, and what waited for them. Data is followed by handle, not from parts to their whole.
 * Events are sorted by start. O(n log n).
 */
void duet__releases_guess(struct duet__recording *recording, bool messages);

#endif
