/* SPDX-License-Identifier: Apache-2.0 */
/* The heap of dated events: by date, and among equal dates by kind, worker and age. */
#include <glib.h>

#include "sim/events.h"

#include <stdlib.h>

#include <duet/random.h>

struct key {
    double date;
    unsigned kind, worker, sequence;
};

static int compare(const void *left, const void *right)
{
    const struct key *a = left, *b = right;
    if (a->date != b->date)
        return a->date < b->date ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->worker != b->worker)
        return a->worker < b->worker ? -1 : 1;
    return a->sequence < b->sequence ? -1 : 1;
}

/* Events of one date, given in another order. */
static void test_equal_dates(void)
{
    struct events events = {0};
    int kernel, copy, later, early;
    g_assert_true(duet__events_add(&events, 1, EVENT_COPY_END, 0, &copy));
    g_assert_true(duet__events_add(&events, 1, EVENT_KERNEL_END, 7, &later));
    g_assert_true(duet__events_add(&events, 1, EVENT_KERNEL_END, 3, &kernel));
    g_assert_true(duet__events_add(&events, 0.5, EVENT_SERVE, 9, &early));
    void *const order[] = {&early, &kernel, &later, &copy};
    for (unsigned i = 0; i < G_N_ELEMENTS(order); i++)
        g_assert_true(duet__events_take(&events).what == order[i]);
    g_assert_cmpuint(events.count, ==, 0);
    free(events.heap);
}

/* Thousands of events on a few dates, added and taken in turn, against a sorted array. */
static void test_random(void)
{
    enum { COUNT = 5000 };
    static struct key keys[COUNT];
    struct events events = {0};
    uint64_t random = 3;
    for (unsigned i = 0; i < COUNT; i++) {
        keys[i] = (struct key){duet_random_below(&random, 50), duet_random_below(&random, 5),
                               duet_random_below(&random, 20), i};
        g_assert_true(duet__events_add(&events, keys[i].date, (enum event_kind)keys[i].kind,
                                       keys[i].worker, &keys[i]));
    }
    struct key *sorted = g_memdup2(keys, sizeof keys);
    qsort(sorted, COUNT, sizeof *sorted, compare);
    for (unsigned i = 0; i < COUNT; i++) {
        struct event event = duet__events_take(&events);
        const struct key *key = event.what;
        g_assert_cmpuint(key->sequence, ==, sorted[i].sequence);
        g_assert_cmpuint(event_kind(&event), ==, key->kind);
        g_assert_cmpuint(event_worker(&event), ==, key->worker);
        g_assert_cmpfloat(event.date, ==, key->date);
    }
    g_free(sorted);
    free(events.heap);
}

/* The greatest worker number leaves the order whole. */
static void test_many_workers(void)
{
    struct events events = {0};
    const unsigned last = (1U << 20) - 1;
    g_assert_true(duet__events_add(&events, 1, EVENT_KERNEL_END, last, NULL));
    g_assert_true(duet__events_add(&events, 1, EVENT_KERNEL_END, last - 1, NULL));
    struct event event = duet__events_take(&events);
    g_assert_cmpuint(event_worker(&event), ==, last - 1);
    event = duet__events_take(&events);
    g_assert_cmpuint(event_worker(&event), ==, last);
    g_assert_cmpuint(event_kind(&event), ==, EVENT_KERNEL_END);
    free(events.heap);
}

TEST_MAIN(test_equal_dates, test_random, test_many_workers)
