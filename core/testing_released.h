/* SPDX-License-Identifier: Apache-2.0 */
/* Checks what released the events of any run. */
#ifndef DUET_TESTING_RELEASED_H
#define DUET_TESTING_RELEASED_H

#include <glib.h>

#include <duet/trace.h>

/* Checks that the event is one that may release something by this name. */
static inline void testing_check_kind(enum duet_release release, const struct duet_event *by)
{
    if (release == DUET_RELEASE_TASK || release == DUET_RELEASE_WORKER)
        g_assert_cmpint(by->kind, ==, DUET_EVENT_TASK);
    else if (release == DUET_RELEASE_COPY)
        g_assert_cmpint(by->kind, ==, DUET_EVENT_COPY);
    else
        g_assert_cmpint(release, ==, DUET_RELEASE_ROOM);
}

/*
 * Checks that what released a kernel had ended when that started, and what released a copy when
 * that was asked for. Dates of one clock may be off by `off_s` from those of another one.
 */
static inline void testing_check_released(const struct duet_event *events, size_t count,
                                          double off_s)
{
    for (size_t i = 0; i < count; i++) {
        const struct duet_event *own = &events[i], *by;
        if (!own->released_by) {
            g_assert_cmpint(own->release, ==, DUET_RELEASE_SUBMISSION);
            continue;
        }
        if (own->release == DUET_RELEASE_OUTSIDE)
            continue;
        g_assert_cmpuint(own->released_by, <=, count);
        by = &events[own->released_by - 1];
        testing_check_kind((enum duet_release)own->release, by);
        const double start_s = own->kind == DUET_EVENT_COPY ? own->ready_s : own->start_s;
        if (by == own || by->end_s > start_s + off_s)
            g_error("event %zu of kind %u, number %u, begins at %.9f, and ends, on worker %d, at "
                    "%.9f, released (%u) by event %u of kind %u, number %u, which ends at %.9f, on "
                    "worker %d",
                    i + 1, own->kind, (unsigned)own->id, start_s, own->worker, own->end_s,
                    own->release, own->released_by, by->kind, (unsigned)by->id, by->end_s,
                    by->worker);
    }
}

#endif
