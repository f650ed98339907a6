/* SPDX-License-Identifier: Apache-2.0 */
/* The runs of one side of a case: accounted one by one, and one of them kept to be looked at. */
#include "cli/validate.h"

#include <math.h>
#include <stdlib.h>

#include "validate/stats.h"

/*
 * Records of a side that are kept until its median is known, in all: those of the first runs, and
 * of the first one in any case. A page draws no more bars than a part of this (DUET_HTML_BARS).
 */
enum { KEPT = 200000 };

/* Makes room for a run in this slot. */
static void grow(struct duet__side *side, size_t slot)
{
    size_t room = MAX(slot + 1, 2 * side->room);

    if (slot < side->room)
        return;
    side->makespans_s = g_renew(double, side->makespans_s, room);
    side->accounts = g_renew(struct duet_account, side->accounts, room);
    side->records = g_renew(struct duet_recording, side->records, room);
    for (size_t i = side->room; i < room; i++) {
        side->makespans_s[i] = 0;
        side->accounts[i] = (struct duet_account){0};
        side->records[i] = (struct duet_recording){0};
    }
    side->room = room;
}

void duet__side_fini(struct duet__side *side)
{
    for (size_t i = 0; i < side->room; i++) {
        duet_account_fini(&side->accounts[i]);
        duet_recording_fini(&side->records[i]);
    }
    duet_account_fini(&side->mean);
    if (side->rounds)
        g_array_free(side->rounds, TRUE);
    g_free(side->makespans_s);
    g_free(side->accounts);
    g_free(side->records);
    *side = (struct duet__side){0};
}

void duet__side_begin(struct duet__side *side)
{
    if (!side->rounds)
        side->rounds = g_array_new(FALSE, FALSE, sizeof(size_t));
    side->fresh = true;
}

static size_t round_count(const struct duet__side *side)
{
    return side->rounds ? side->rounds->len : 0;
}

static size_t *rounds_of(const struct duet__side *side)
{
    return side->rounds ? (size_t *)(void *)side->rounds->data : NULL;
}

/* Counts a run as one of its round; rounds without runs are not there. */
static void count_run(struct duet__side *side)
{
    const size_t none = 0;

    side->count++;
    if (!side->rounds)
        return;
    if (side->fresh)
        g_array_append_val(side->rounds, none);
    side->fresh = false;
    rounds_of(side)[side->rounds->len - 1]++;
}

int duet__side_put(struct duet__side *side, struct duet_run *run, struct duet_message *message)
{
    size_t slot = side->count;
    int error;

    grow(side, slot);
    error = duet_account_make(&run->recording, &side->accounts[slot], message);
    side->makespans_s[slot] = run->stats.makespan_s;
    if (!error) {
        count_run(side);
        if (side->keep && (slot == 0 || run->recording.event_count <= KEPT / (slot + 1))) {
            side->records[slot] = run->recording;
            run->recording = (struct duet_recording){0};
        }
    }
    duet_run_fini(run);
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

static double median_of(const double *values, size_t count)
{
    double *sorted = g_memdup2(values, count * sizeof(*values)), median;

    median = duet_median(sorted, count);
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

        if (side->records[i].machine && distance < nearest) {
            chosen = i;
            nearest = distance;
        }
    }
    for (size_t i = 0; i < side->count; i++)
        if (i != chosen)
            duet_recording_fini(&side->records[i]);
    if (chosen < side->count)
        side->middle = &side->records[chosen];
}

double duet__side_width(const struct duet__side *side)
{
    struct duet_summary summary;

    if (side->count < 2 ||
        duet_summarise_clusters(side->makespans_s, side->count, rounds_of(side), round_count(side),
                                &summary, NULL) ||
        !(summary.median > 0))
        return INFINITY;
    return (summary.median_high - summary.median_low) / 2 / summary.median;
}

/* Sum of the distances of `count` values from their median. */
static double distances(const double *values, size_t count)
{
    double median = median_of(values, count), sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += fabs(values[i] - median);
    return sum;
}

double duet__side_width_within(const struct duet__side *side)
{
    const size_t whole[] = {side->count}, *rounds = side->rounds ? rounds_of(side) : whole;
    size_t count = MAX(round_count(side), 1), at = 0;
    double freedom = (double)side->count - (double)count, sum = 0, median, error;

    if (side->count < 2 * count)
        return INFINITY;
    for (size_t i = 0; i < count; at += rounds[i++])
        sum += distances(side->makespans_s + at, rounds[i]);
    /* the deviation is sqrt(pi / 2) of the mean distance, and the median's error so much of that of
       the mean; no order statistics, as of two or three runs those of their distances say little */
    error = G_PI / 2 * sum / freedom / sqrt((double)side->count);
    median = median_of(side->makespans_s, side->count);
    return median > 0 ? duet_student_quantile(0.975, freedom) * error / median : INFINITY;
}

int duet__side_conclude(struct duet__side *side, double factor, struct duet_message *message)
{
    int error;

    choose(side);
    for (size_t i = 0; i < side->count; i++) {
        side->makespans_s[i] *= factor;
        scale_account(&side->accounts[i], factor);
        duet_recording_scale(&side->records[i], factor);
    }
    error = duet_account_mean(side->accounts, side->count, &side->mean, message);
    side->accounted = !error;
    return error;
}
