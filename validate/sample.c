/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of one side of a case: accounted one by one, and one of them kept to be looked at. */
#include "validate/experiment.h"

#include <math.h>

#include "base/stats.h"

/*
 * Records of a side that are kept until its median is known, in all: those of the first runs, and
 * always those of the first one. A page draws no more bars than a part of this (DUET_HTML_BARS).
 */
enum { KEPT = 200000 };

void duet__sample_init(struct duet__sample *sample, bool keep)
{
    *sample = (struct duet__sample){
        .keep = keep,
        .accounts = g_array_new(FALSE, FALSE, sizeof(struct duet__account)),
        .records = g_array_new(FALSE, FALSE, sizeof(struct duet__recording)),
        .rounds = g_array_new(FALSE, FALSE, sizeof(size_t)),
        .disturbed = g_array_new(FALSE, FALSE, sizeof(gboolean)),
    };
    g_array_set_clear_func(sample->accounts, (GDestroyNotify)duet__account_fini);
    g_array_set_clear_func(sample->records, (GDestroyNotify)duet__recording_fini);
}

void duet__sample_fini(struct duet__sample *sample)
{
    g_clear_pointer(&sample->accounts, g_array_unref);
    g_clear_pointer(&sample->records, g_array_unref);
    g_clear_pointer(&sample->rounds, g_array_unref);
    g_clear_pointer(&sample->disturbed, g_array_unref);
    g_free(sample->makespans_s);
    duet__account_fini(&sample->mean);
    *sample = (struct duet__sample){0};
}

/* ------------------------------------------------------------------------------------------- */
/* Runs in rounds                                                                               */

static size_t *rounds_of(const struct duet__sample *sample)
{
    return (size_t *)(void *)sample->rounds->data;
}

static struct duet__recording *record_at(const struct duet__sample *sample, size_t index)
{
    return &g_array_index(sample->records, struct duet__recording, index);
}

/* True if there is a round that nobody disturbed, as far as is known. */
static bool has_quiet(const struct duet__sample *sample)
{
    for (guint i = 0; i < sample->disturbed->len; i++)
        if (!g_array_index(sample->disturbed, gboolean, i))
            return true;
    return false;
}

void duet__sample_begin(struct duet__sample *sample)
{
    sample->fresh = true;
}

int duet__sample_put(struct duet__sample *sample, struct duet__run *run,
                     struct duet_message *message)
{
    const gboolean undisturbed = FALSE;
    const size_t none = 0, before = duet__sample_count(sample);
    /* one record is left whichever rounds are left out */
    bool wanted = before == 0 || (sample->fresh && !has_quiet(sample));
    struct duet__recording record = {0};
    struct duet__account account;
    int error = duet__account_make(&run->recording, &account, message);
    if (!error) {
        if (sample->keep && (wanted || run->recording.event_count <= KEPT / (before + 1))) {
            record = run->recording;
            run->recording = (struct duet__recording){0};
        }
        if (sample->fresh) { /* a round without runs does not count */
            g_array_append_val(sample->rounds, none);
            g_array_append_val(sample->disturbed, undisturbed);
        }
        sample->fresh = false;
        if (sample->rounds->len)
            rounds_of(sample)[sample->rounds->len - 1]++;
        g_array_append_val(sample->accounts, account);
        g_array_append_val(sample->records, record);
    }
    duet__run_fini(run);
    return error;
}

void duet__sample_disturb(struct duet__sample *sample)
{
    if (!sample->fresh && sample->rounds->len)
        g_array_index(sample->disturbed, gboolean, sample->rounds->len - 1) = TRUE;
}

size_t duet__sample_leave_out(struct duet__sample *sample)
{
    guint before = sample->accounts->len, end = before;
    for (guint i = has_quiet(sample) ? sample->rounds->len : 0; i-- > 0;) {
        guint runs = (guint)rounds_of(sample)[i];
        end -= runs;
        if (!g_array_index(sample->disturbed, gboolean, i))
            continue;
        g_array_remove_range(sample->accounts, end, runs);
        g_array_remove_range(sample->records, end, runs);
        g_array_remove_index(sample->rounds, i);
        g_array_remove_index(sample->disturbed, i);
    }
    return before - sample->accounts->len;
}

/* ------------------------------------------------------------------------------------------- */
/* Standard error of the median                                                                 */

static double *makespans_of(const struct duet__sample *sample)
{
    double *makespans_s = g_new(double, duet__sample_count(sample) + 1);
    for (size_t i = 0; i < duet__sample_count(sample); i++)
        makespans_s[i] = g_array_index(sample->accounts, struct duet__account, i).makespan_s;
    return makespans_s;
}

double duet__sample_width(const struct duet__sample *sample)
{
    g_autofree double *makespans_s = makespans_of(sample);
    const struct duet__summary summary =
        duet__summarise_clusters(makespans_s, duet__sample_count(sample), rounds_of(sample),
                                 sample->rounds->len);
    if (summary.count < 2 || !(summary.median > 0))
        return INFINITY;
    return (summary.median_high - summary.median_low) / 2 / summary.median;
}

/* Returns the sum of the distances of `count` values from their median; sorts them. */
static double distances(double *values, size_t count)
{
    double median = duet__median(values, count), sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += fabs(values[i] - median);
    return sum;
}

double duet__sample_width_within(const struct duet__sample *sample)
{
    g_autofree double *makespans_s = makespans_of(sample);
    size_t all = duet__sample_count(sample), rounds = MAX(sample->rounds->len, 1), at = 0;
    double freedom = (double)all - (double)rounds, sum = 0, median, error;
    if (all < 2 * rounds)
        return INFINITY;
    for (size_t i = 0; i < rounds; i++) {
        size_t runs = sample->rounds->len ? rounds_of(sample)[i] : all;
        sum += distances(makespans_s + at, runs);
        at += runs;
    }
    /* the deviation is sqrt(pi / 2) of the mean distance, and the median's error so much of that of
       the mean; no order statistics, as of two or three runs those of their distances say little */
    error = G_PI / 2 * sum / freedom / sqrt((double)all);
    median = duet__median(makespans_s, all);
    return median > 0 ? duet__student_quantile(0.975, freedom) * error / median : INFINITY;
}

/* ------------------------------------------------------------------------------------------- */
/* Concluding                                                                                   */

static void scale_account(struct duet__account *account, double factor)
{
    account->makespan_s *= factor;
    for (size_t i = 0; i < DUET_STATES; i++)
        account->states_s[i] *= factor;
    for (size_t i = 0; i < account->kernel_count; i++)
        account->kernels[i].seconds *= factor;
}

/* Keeps one record, scaled, and returns it; NULL if there is none. */
static const struct duet__recording *choose(struct duet__sample *sample, double factor)
{
    g_autofree double *sorted = makespans_of(sample);
    double median = duet__median(sorted, duet__sample_count(sample)), nearest = INFINITY;
    struct duet__recording *chosen = NULL;
    for (size_t i = 0; i < duet__sample_count(sample); i++) {
        struct duet__recording *record = record_at(sample, i);
        double distance = fabs(record->makespan_s - median);
        if (record->machine && distance < nearest) {
            chosen = record;
            nearest = distance;
        }
    }
    for (size_t i = 0; i < duet__sample_count(sample); i++)
        if (record_at(sample, i) != chosen)
            duet__recording_fini(record_at(sample, i));
    if (chosen)
        duet__recording_scale(chosen, factor);
    return chosen;
}

void duet__sample_conclude(struct duet__sample *sample, double factor, struct duet__side *out)
{
    struct duet__account *accounts = (struct duet__account *)(void *)sample->accounts->data;
    size_t count = duet__sample_count(sample);
    const struct duet__recording *recording = choose(sample, factor);
    for (size_t i = 0; i < count; i++)
        scale_account(&accounts[i], factor);
    sample->makespans_s = makespans_of(sample);
    duet__account_mean(accounts, count, &sample->mean);
    *out = (struct duet__side){.makespans_s = sample->makespans_s,
                               .count = count,
                               .rounds = rounds_of(sample),
                               .round_count = sample->rounds->len,
                               .account = &sample->mean,
                               .recording = recording};
}
