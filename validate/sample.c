/* SPDX-License-Identifier: Apache-2.0 */
/* The runs of one side of a case: accounted one by one, and one of them kept to be looked at. */
#include "validate/sample.h"

#include <math.h>
#include <stdlib.h>

#include "validate/stats.h"

/*
 * Records of a side that are kept until its median is known, in all: those of the first runs, and
 * of the first one in any case. A page draws no more bars than a part of this (DUET_HTML_BARS).
 */
enum { KEPT = 200000 };

/* Makes room for a run in this slot. */
static void grow(struct duet_sample *sample, size_t slot)
{
    size_t room = MAX(slot + 1, 2 * sample->room);

    if (slot < sample->room)
        return;
    sample->makespans_s = g_renew(double, sample->makespans_s, room);
    sample->accounts = g_renew(struct duet_account, sample->accounts, room);
    sample->records = g_renew(struct duet_recording, sample->records, room);
    for (size_t i = sample->room; i < room; i++) {
        sample->makespans_s[i] = 0;
        sample->accounts[i] = (struct duet_account){0};
        sample->records[i] = (struct duet_recording){0};
    }
    sample->room = room;
}

void duet_sample_fini(struct duet_sample *sample)
{
    for (size_t i = 0; i < sample->room; i++) {
        duet_account_fini(&sample->accounts[i]);
        duet_recording_fini(&sample->records[i]);
    }
    duet_account_fini(&sample->mean);
    g_clear_pointer(&sample->rounds, g_array_unref);
    g_clear_pointer(&sample->disturbed, g_array_unref);
    g_free(sample->makespans_s);
    g_free(sample->accounts);
    g_free(sample->records);
    *sample = (struct duet_sample){0};
}

static size_t round_count(const struct duet_sample *sample)
{
    return sample->rounds ? sample->rounds->len : 0;
}

void duet_sample_begin(struct duet_sample *sample)
{
    if (!sample->rounds) {
        sample->rounds = g_array_new(FALSE, FALSE, sizeof(size_t));
        sample->disturbed = g_array_new(FALSE, FALSE, sizeof(gboolean));
    }
    if (round_count(sample))
        sample->kept |= !g_array_index(sample->disturbed, gboolean, sample->rounds->len - 1);
    sample->fresh = true;
}

static size_t *rounds_of(const struct duet_sample *sample)
{
    return sample->rounds ? (size_t *)(void *)sample->rounds->data : NULL;
}

/* Counts a run as one of its round; rounds without runs are not there. */
static void count_run(struct duet_sample *sample)
{
    const gboolean undisturbed = FALSE;
    const size_t none = 0;

    sample->count++;
    if (!sample->rounds)
        return;
    if (sample->fresh) {
        g_array_append_val(sample->rounds, none);
        g_array_append_val(sample->disturbed, undisturbed);
    }
    sample->fresh = false;
    rounds_of(sample)[sample->rounds->len - 1]++;
}

int duet_sample_put(struct duet_sample *sample, struct duet_run *run, struct duet_message *message)
{
    size_t slot = sample->count;
    /* so that one is left whichever rounds are left out */
    bool wanted = slot == 0 || (sample->fresh && !sample->kept);
    int error;

    grow(sample, slot);
    error = duet_account_make(&run->recording, &sample->accounts[slot], message);
    sample->makespans_s[slot] = run->stats.makespan_s;
    if (!error) {
        count_run(sample);
        if (sample->keep && (wanted || run->recording.event_count <= KEPT / (slot + 1))) {
            sample->records[slot] = run->recording;
            run->recording = (struct duet_recording){0};
        }
    }
    duet_run_fini(run);
    return error;
}

void duet_sample_disturb(struct duet_sample *sample)
{
    if (!sample->fresh && round_count(sample))
        g_array_index(sample->disturbed, gboolean, sample->rounds->len - 1) = TRUE;
}

/* Moves the runs of a round to an earlier place, or frees what they left. */
static void move_round(struct duet_sample *sample, size_t from, size_t count, size_t to, bool stays)
{
    for (size_t i = 0; i < count; i++) {
        if (!stays) {
            duet_account_fini(&sample->accounts[from + i]);
            duet_recording_fini(&sample->records[from + i]);
        } else if (to != from) {
            sample->makespans_s[to + i] = sample->makespans_s[from + i];
            sample->accounts[to + i] = sample->accounts[from + i];
            sample->records[to + i] = sample->records[from + i];
            sample->accounts[from + i] = (struct duet_account){0};
            sample->records[from + i] = (struct duet_recording){0};
        }
    }
}

size_t duet_sample_leave_out(struct duet_sample *sample)
{
    size_t before = sample->count, at = 0, quiet = 0;

    for (guint i = 0; i < round_count(sample); i++)
        quiet += !g_array_index(sample->disturbed, gboolean, i);
    if (!quiet)
        return 0;
    sample->count = 0;
    for (guint i = 0; i < round_count(sample);) {
        size_t runs = rounds_of(sample)[i];
        bool stays = !g_array_index(sample->disturbed, gboolean, i);

        move_round(sample, at, runs, sample->count, stays);
        at += runs;
        sample->count += stays ? runs : 0;
        if (stays) {
            i++;
        } else {
            g_array_remove_index(sample->rounds, i);
            g_array_remove_index(sample->disturbed, i);
        }
    }
    return before - sample->count;
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

/* Keeps one record, and returns it; NULL: there is none. */
static const struct duet_recording *choose(struct duet_sample *sample)
{
    double median = median_of(sample->makespans_s, sample->count), nearest = INFINITY;
    size_t chosen = sample->count;

    for (size_t i = 0; i < sample->count; i++) {
        double distance = fabs(sample->makespans_s[i] - median);

        if (sample->records[i].machine && distance < nearest) {
            chosen = i;
            nearest = distance;
        }
    }
    for (size_t i = 0; i < sample->count; i++)
        if (i != chosen)
            duet_recording_fini(&sample->records[i]);
    return chosen < sample->count ? &sample->records[chosen] : NULL;
}

double duet_sample_width(const struct duet_sample *sample)
{
    struct duet_summary summary;

    if (sample->count < 2 ||
        duet_summarise_clusters(sample->makespans_s, sample->count, rounds_of(sample),
                                round_count(sample), &summary, NULL) ||
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

double duet_sample_width_within(const struct duet_sample *sample)
{
    const size_t whole[] = {sample->count}, *rounds = sample->rounds ? rounds_of(sample) : whole;
    size_t count = MAX(round_count(sample), 1), at = 0;
    double freedom = (double)sample->count - (double)count, sum = 0, median, error;

    if (sample->count < 2 * count)
        return INFINITY;
    for (size_t i = 0; i < count; at += rounds[i++])
        sum += distances(sample->makespans_s + at, rounds[i]);
    /* the deviation is sqrt(pi / 2) of the mean distance, and the median's error so much of that of
       the mean; no order statistics, as of two or three runs those of their distances say little */
    error = G_PI / 2 * sum / freedom / sqrt((double)sample->count);
    median = median_of(sample->makespans_s, sample->count);
    return median > 0 ? duet_student_quantile(0.975, freedom) * error / median : INFINITY;
}

int duet_sample_conclude(struct duet_sample *sample, double factor, struct duet_side *out,
                         struct duet_message *message)
{
    const struct duet_recording *recording = choose(sample);
    int error;

    for (size_t i = 0; i < sample->count; i++) {
        sample->makespans_s[i] *= factor;
        scale_account(&sample->accounts[i], factor);
        duet_recording_scale(&sample->records[i], factor);
    }
    error = duet_account_mean(sample->accounts, sample->count, &sample->mean, message);
    *out = (struct duet_side){.makespans_s = sample->makespans_s,
                              .count = sample->count,
                              .rounds = rounds_of(sample),
                              .round_count = round_count(sample),
                              .account = error ? NULL : &sample->mean,
                              .recording = recording};
    return error;
}
