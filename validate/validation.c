/* SPDX-License-Identifier: Apache-2.0 */
/* Judges a comparison of predicted and measured cases: errors, and the order of policies. */
#include "validate/validation.h"

#include <inttypes.h>

enum { ROUNDS_MOST = 300 /* most rounds that are advised */ };

/* ------------------------------------------------------------------------------------------- */
/* Cases                                                                                        */

static void append_count(GString *text, unsigned count, const char *what)
{
    g_string_append_printf(text, ", %u %s%s", count, what, count == 1 ? "" : "s");
}

char *duet__case_name(const struct duet__case *the)
{
    GString *text = g_string_new(the->workload);
    if (the->settings[0])
        g_string_append_printf(text, " %s", the->settings);
    if (the->n)
        g_string_append_printf(text, ", n %" PRIu64, the->n);
    if (the->tile)
        g_string_append_printf(text, ", tile %" PRIu64, the->tile);
    if (the->precision == 's')
        g_string_append(text, ", single precision");
    if (strcmp(the->policy, "-") != 0) /* a trace does not name the policy */
        g_string_append_printf(text, ", %s", the->policy);
    if (the->set_arch)
        g_string_append(text, " with set-arch");
    if (the->hold)
        g_string_append(text, ", held");
    if (strcmp(the->priorities, "workload") != 0)
        g_string_append_printf(text, ", priorities %s", the->priorities);
    append_count(text, the->cpus, "CPU");
    if (the->gpus)
        append_count(text, the->gpus, "GPU");
    return g_string_free(text, FALSE);
}

static void judge_error(struct duet__case *the)
{
    const struct duet__side *predicted = &the->predicted, *measured = &the->measured;
    const struct duet__summary *first = &predicted->summary, *second = &measured->summary;
    if (the->failure || the->disturbed || !first->count || !second->count || !(second->minimum > 0))
        return;
    duet__ratio_interval(first, second, &the->error_low, &the->error_high);
    the->error_low -= 1;
    the->error_high -= 1;
    the->error = first->median / second->median - 1;
    if (second->count > 1)
        the->noise = (second->median_high - second->median_low) / 2 / second->median;
    /* runs of two machines with other workers have no common account */
    if (predicted->account && measured->account &&
        predicted->account->workers == measured->account->workers)
        duet__explain_difference(predicted->account, measured->account, first->median,
                                 second->median, &the->explanation);
}

static void summarise(struct duet__side *side)
{
    side->summary =
        duet__summarise_clusters(side->makespans_s, side->count, side->rounds, side->round_count);
}

static void judge_case(struct duet__case *the)
{
    the->error = the->error_low = the->error_high = the->noise = NAN;
    the->explanation = (struct duet__explanation){0};
    summarise(&the->predicted);
    summarise(&the->measured);
    judge_error(the);
}

/* ------------------------------------------------------------------------------------------- */
/* Policies                                                                                     */

bool duet__case_alike(const struct duet__case *a, const struct duet__case *b)
{
    return strcmp(a->workload, b->workload) == 0 && strcmp(a->settings, b->settings) == 0 &&
           strcmp(a->priorities, b->priorities) == 0 && a->n == b->n && a->tile == b->tile &&
           a->precision == b->precision && a->cpus == b->cpus && a->gpus == b->gpus &&
           a->set_arch == b->set_arch && a->hold == b->hold;
}

/* Returns how far the measured median may be off, seconds. */
static double width(const struct duet__case *the)
{
    return isnan(the->noise) ? 0 : the->noise * the->measured.summary.median;
}

/* Returns by how much `a` was slower than `b`; 0 if noise hides which was. */
static double measured_apart(const struct duet__case *a, const struct duet__case *b)
{
    double apart = a->measured.summary.median - b->measured.summary.median;
    return fabs(apart) <= width(a) + width(b) ? 0 : apart;
}

static double predicted_apart(const struct duet__case *a, const struct duet__case *b)
{
    return a->predicted.summary.median - b->predicted.summary.median;
}

/* Counts the pairs of a group of two policies or more, and judges if the fastest is right. */
static void judge_group(struct duet__validation *validation, const struct duet__case *const *group,
                        size_t count)
{
    const struct duet__case *fastest = group[0], *chosen = group[0];
    for (size_t i = 1; i < count; i++) {
        if (group[i]->measured.summary.median < fastest->measured.summary.median)
            fastest = group[i];
        if (predicted_apart(group[i], chosen) < 0)
            chosen = group[i];
        for (size_t k = 0; k < i; k++) {
            double apart = measured_apart(group[i], group[k]);
            validation->pairs += apart != 0;
            validation->pairs_right += apart * predicted_apart(group[i], group[k]) > 0;
        }
    }
    validation->groups++;
    /* a policy that cannot be told from the fastest measured is right, too */
    validation->best_right +=
        predicted_apart(fastest, chosen) <= 0 || !(measured_apart(chosen, fastest) > 0);
}

/* Groups the cases that differ in the policy alone, the first one of each policy. */
static void judge_policies(struct duet__validation *validation)
{
    g_autoptr(GPtrArray) left = g_ptr_array_new(), group = g_ptr_array_new();
    for (size_t i = 0; i < validation->case_count; i++)
        if (!isnan(validation->cases[i].error))
            g_ptr_array_add(left, &validation->cases[i]);
    while (left->len) {
        g_autoptr(GHashTable) policies = g_hash_table_new(g_str_hash, g_str_equal);
        const struct duet__case *first = left->pdata[0];
        guint others = 0;
        g_ptr_array_set_size(group, 0);
        for (guint i = 0; i < left->len; i++) {
            struct duet__case *the = left->pdata[i];
            if (!duet__case_alike(the, first) || strcmp(the->platform, first->platform) != 0)
                left->pdata[others++] = the;
            else if (g_hash_table_add(policies, (char *)(uintptr_t)the->policy))
                g_ptr_array_add(group, the);
        }
        g_ptr_array_set_size(left, (int)others);
        if (group->len > 1)
            judge_group(validation, (const struct duet__case *const *)group->pdata, group->len);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* All cases                                                                                    */

/* Returns the rounds of the case with the fewest; 0: no case was made in rounds. */
static size_t fewest_rounds(const struct duet__validation *validation)
{
    size_t fewest = SIZE_MAX;
    for (size_t i = 0; i < validation->case_count; i++)
        if (!isnan(validation->cases[i].noise))
            fewest = MIN(fewest, validation->cases[i].measured.round_count);
    return fewest == SIZE_MAX ? 0 : fewest;
}

/*
 * Appends advice on making the noise smaller. An interval narrows with the square root of the
 * number of rounds, as long as they differ no more than those so far.
 */
static void append_advice(GString *text, const struct duet__validation *validation)
{
    static const double little = 0.03;
    size_t rounds = fewest_rounds(validation);
    double ratio = validation->noise / little, wanted = ceil((double)rounds * ratio * ratio);
    if (rounds && rounds < DUET_INTERVAL_HOLDS)
        g_string_append_printf(text, "; what it is, %d rounds would tell (--rounds)",
                               DUET_INTERVAL_HOLDS);
    else if (rounds && ratio > 1 && wanted <= ROUNDS_MOST)
        g_string_append_printf(text, "; below %g %% with about %.0f rounds (--rounds)",
                               little * 100, wanted);
    else if (rounds && ratio > 1)
        g_string_append_printf(text,
                               "; this machine is too unsteady for less: even %d rounds would "
                               "leave more than %g %%",
                               ROUNDS_MOST, little * 100);
}

static char *verdict_of(const struct duet__validation *validation)
{
    bool predicted = strcmp(validation->first_name, "predicted") == 0;
    const char *first = predicted ? "Prediction" : validation->labels[0];
    const char *second = predicted ? "measurement" : validation->labels[1];
    size_t within = validation->within_noise;
    GString *text;
    if (isnan(validation->noise))
        return NULL;
    text = g_string_new(NULL);
    g_string_printf(text, "%s and %s agree within the noise of measuring in %zu of %zu case%s",
                    first, second, within, validation->known, validation->known == 1 ? "" : "s");
    g_string_append_printf(text, "; it is %.1f %% in the median case", validation->noise * 100);
    append_advice(text, validation);
    g_string_append_c(text, '.');
    return g_string_free(text, FALSE);
}

/* True if the measured median is inside the interval that was predicted for it. */
static bool case_inside(const struct duet__case *the)
{
    return the->low_s <= the->measured.summary.median &&
           the->measured.summary.median <= the->high_s;
}

static void judge_errors(struct duet__validation *validation)
{
    double *errors = g_new(double, validation->case_count + 1);
    double *absolute = g_new(double, validation->case_count + 1);
    double *noises = g_new(double, validation->case_count + 1);
    size_t known = 0, noisy = 0;
    for (size_t i = 0; i < validation->case_count; i++) {
        const struct duet__case *the = &validation->cases[i];
        validation->refused += the->failure != NULL;
        validation->unsettled += the->disturbed;
        if (isnan(the->error))
            continue;
        validation->intervals += the->high_s > 0;
        validation->inside += case_inside(the);
        errors[known] = the->error;
        absolute[known++] = fabs(the->error);
        validation->failed += validation->fail_over > 0 && fabs(the->error) > validation->fail_over;
        validation->within_noise += fabs(the->error) <= the->noise; /* false if the noise is not
                                                                       known */
        if (!isnan(the->noise))
            noises[noisy++] = the->noise;
    }
    validation->known = known;
    validation->noise = noisy ? duet__median(noises, noisy) : NAN;
    validation->median = validation->p95 = validation->worst = validation->bias = NAN;
    if (known) {
        validation->bias = duet__median(errors, known);
        validation->median = duet__median(absolute, known);
        validation->p95 = duet__quantile(absolute, known, 0.95);
        validation->worst = absolute[known - 1];
    }
    g_free(absolute);
    g_free(errors);
    g_free(noises);
}

enum { LABEL = 14 }; /* characters of a side's name in a heading */

/* Returns the part of a name before its colon, or else all of it, cut if it is long. */
static char *label_of(const char *name)
{
    const char *colon = strstr(name, ": ");
    char *label = colon ? g_strndup(name, (size_t)(colon - name)) : g_strdup(name), *cut;
    if (!g_utf8_validate(label, -1, NULL) || g_utf8_strlen(label, -1) <= LABEL)
        return label;
    cut = g_utf8_substring(label, 0, LABEL - 1);
    g_free(label);
    label = g_strconcat(cut, "~", NULL);
    g_free(cut);
    return label;
}

void duet__validation_judge(struct duet__validation *validation)
{
    validation->within_noise = validation->failed = validation->refused = 0;
    validation->intervals = validation->inside = validation->unsettled = 0;
    validation->groups = validation->best_right = validation->pairs = validation->pairs_right = 0;
    validation->labels[0] = label_of(validation->first_name);
    validation->labels[1] = label_of(validation->second_name);
    for (size_t i = 0; i < validation->case_count; i++)
        judge_case(&validation->cases[i]);
    judge_errors(validation);
    judge_policies(validation);
    validation->verdict = verdict_of(validation);
}

void duet__validation_fini(struct duet__validation *validation)
{
    for (size_t i = 0; i < validation->case_count; i++)
        duet__explanation_fini(&validation->cases[i].explanation);
    g_clear_pointer(&validation->labels[0], g_free);
    g_clear_pointer(&validation->labels[1], g_free);
    g_clear_pointer(&validation->verdict, g_free);
}
