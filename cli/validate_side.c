/* SPDX-License-Identifier: Apache-2.0 */
/* The runs of one side of a case: accounted one by one, and one of them kept to be looked at. */
#include "cli/validate.h"

#include <math.h>
#include <stdlib.h>

#include "validate/stats.h"

/*
 * Records of a side that are kept until its median is known, in all: beyond that the first run has
 * to do. A page draws no more bars than a part of this (DUET_HTML_BARS).
 */
enum { KEPT = 200000 };

void duet__side_init(struct duet__side *side, size_t room, bool keep)
{
    side->room = room;
    side->keep = keep;
    side->makespans_s = g_new0(double, room);
    side->accounts = g_new0(struct duet_account, room);
    side->records = g_new0(struct duet__record, room);
}

void duet__side_fini(struct duet__side *side)
{
    for (size_t i = 0; i < side->room; i++) {
        duet_account_fini(&side->accounts[i]);
        duet__record_fini(&side->records[i]);
    }
    duet_account_fini(&side->mean);
    g_free(side->makespans_s);
    g_free(side->accounts);
    g_free(side->records);
    *side = (struct duet__side){0};
}

int duet__side_put(struct duet__side *side, size_t slot, double makespan_s,
                   struct duet__record *record, struct duet_message *message)
{
    int error = duet_account_make(&record->recording, &side->accounts[slot], message);

    side->makespans_s[slot] = makespan_s;
    if (!error) {
        side->count++;
        if (side->keep && (slot == 0 || record->recording.event_count <= KEPT / side->room)) {
            side->records[slot] = *record;
            *record = (struct duet__record){0};
        }
    }
    duet__record_fini(record);
    return error;
}

static void scale_account(struct duet_account *account, double factor)
{
    account->makespan_s *= factor;
    for (size_t i = 0; i < DUET_PARTS; i++)
        account->parts_s[i] *= factor;
    for (size_t i = 0; i < account->kernel_count; i++)
        account->kernels[i].seconds *= factor;
}

static void scale_record(struct duet__record *record, double factor)
{
    record->recording.makespan_s *= factor;
    for (size_t i = 0; i < record->recording.event_count; i++) {
        struct duet_event *event = &record->events[i];

        event->submit_s *= factor;
        event->ready_s *= factor;
        event->start_s *= factor;
        event->end_s *= factor;
    }
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static double median_of(const double *values, size_t count)
{
    double *sorted = g_new(double, count), median;

    for (size_t i = 0; i < count; i++)
        sorted[i] = values[i];
    qsort(sorted, count, sizeof(*sorted), by_value);
    median = duet_quantile(sorted, count, 0.5);
    g_free(sorted);
    return median;
}

/* Keeps one record. */
static void choose(struct duet__side *side)
{
    double median = median_of(side->makespans_s, side->count), nearest = INFINITY;
    size_t chosen = side->count;

    for (size_t i = 0; i < side->count; i++) {
        double distance = fabs(side->makespans_s[i] - median);

        if (side->records[i].recording.machine && distance < nearest) {
            chosen = i;
            nearest = distance;
        }
    }
    for (size_t i = 0; i < side->count; i++)
        if (i != chosen)
            duet__record_fini(&side->records[i]);
    if (chosen < side->count)
        side->middle = &side->records[chosen].recording;
}

int duet__side_conclude(struct duet__side *side, double factor, struct duet_message *message)
{
    int error;

    choose(side);
    for (size_t i = 0; i < side->count; i++) {
        side->makespans_s[i] *= factor;
        scale_account(&side->accounts[i], factor);
        scale_record(&side->records[i], factor);
    }
    error = duet_account_mean(side->accounts, side->count, &side->mean, message);
    side->accounted = !error;
    return error;
}
