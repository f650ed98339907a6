/* SPDX-License-Identifier: Apache-2.0 */
/* What a comparison of predicted and measured cases says: errors, and the order of policies. */
#include "validate/validation.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include "validate/stats.h"

static int compare_values(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

/* ------------------------------------------------------------------------------------------- */
/* Cases                                                                                        */

static void append_count(GString *text, unsigned count, const char *what)
{
    g_string_append_printf(text, ", %u %s%s", count, what, count == 1 ? "" : "s");
}

char *duet__case_name(const struct duet_case *the)
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
    if (strcmp(the->policy, "-") != 0) /* what is read from a trace does not say */
        g_string_append_printf(text, ", %s", the->policy);
    if (the->set_arch)
        g_string_append(text, " with set-arch");
    append_count(text, the->cpus, "CPU");
    if (the->gpus)
        append_count(text, the->gpus, "GPU");
    return g_string_free(text, FALSE);
}

bool duet__case_fails(const struct duet_validation *validation, size_t index,
                      const struct duet_validation_figures *figures)
{
    return validation->fail_over > 0 && fabs(figures->cases[index].error) > validation->fail_over;
}

/* Why a case's figures could not be made, with the case's name before the reason. */
static int fail_case(const struct duet_case *the, int code, const struct duet_message *reason,
                     struct duet_message *message)
{
    char *name = duet__case_name(the);

    duet_fail(message, code, "%s: %s", name, reason->text);
    g_free(name);
    return code;
}

static int judge_error(const struct duet_case *the, struct duet_case_figures *figures,
                       struct duet_message *message)
{
    const struct duet_side *predicted = &the->predicted, *measured = &the->measured;
    double low, high;

    if (the->failure || !predicted->count || !measured->count || !(figures->measured.minimum > 0))
        return 0;
    duet_ratio_interval(&figures->predicted, &figures->measured, &low, &high);
    figures->error = figures->predicted.median / figures->measured.median - 1;
    figures->error_low = low - 1;
    figures->error_high = high - 1;
    if (measured->count > 1)
        figures->noise = (figures->measured.median_high - figures->measured.median_low) / 2 /
                         figures->measured.median;
    /* runs of two machines with other workers have no common account */
    if (predicted->account && measured->account &&
        predicted->account->workers == measured->account->workers)
        return duet_explain(predicted->account, measured->account, figures->predicted.median,
                            figures->measured.median, &figures->explanation, message);
    return 0;
}

static int summarise_side(const struct duet_side *side, struct duet_summary *out,
                          struct duet_message *message)
{
    if (!side->count)
        return 0;
    return duet_summarise_clusters(side->makespans_s, side->count, side->rounds, side->round_count,
                                   out, message);
}

static int judge_case(const struct duet_case *the, struct duet_case_figures *figures,
                      struct duet_message *message)
{
    struct duet_message reason = {0};
    int result = summarise_side(&the->predicted, &figures->predicted, &reason);

    figures->error = figures->error_low = figures->error_high = figures->noise = NAN;
    if (!result)
        result = summarise_side(&the->measured, &figures->measured, &reason);
    if (!result)
        result = judge_error(the, figures, &reason);
    return result ? fail_case(the, result, &reason, message) : 0;
}

/* ------------------------------------------------------------------------------------------- */
/* Policies                                                                                     */

static bool same_but_policy(const struct duet_case *a, const struct duet_case *b)
{
    return strcmp(a->workload, b->workload) == 0 && strcmp(a->settings, b->settings) == 0 &&
           strcmp(a->platform, b->platform) == 0 && a->n == b->n && a->tile == b->tile &&
           a->precision == b->precision && a->cpus == b->cpus && a->gpus == b->gpus &&
           a->set_arch == b->set_arch;
}

/* A group: medians of its policies, and how far each may be off. */
struct group {
    double *predicted, *measured, *widths;
    size_t count;
};

/* Whether one that is predicted to be the fastest cannot be told from the fastest measured. */
static bool best_is_right(const struct group *group)
{
    size_t fastest = 0, chosen = 0;

    for (size_t i = 1; i < group->count; i++) {
        if (group->measured[i] < group->measured[fastest])
            fastest = i;
        if (group->predicted[i] < group->predicted[chosen])
            chosen = i;
    }
    return group->predicted[fastest] <= group->predicted[chosen] ||
           group->measured[chosen] - group->measured[fastest] <=
               group->widths[chosen] + group->widths[fastest];
}

/* The first case of each policy among those that differ from case `first` in the policy alone. */
static void collect(const struct duet_validation *validation,
                    const struct duet_validation_figures *figures, size_t first, bool *taken,
                    struct group *group)
{
    const struct duet_case *cases = validation->cases;
    const char **names = g_new0(const char *, validation->case_count - first);

    group->count = 0;
    for (size_t i = first; i < validation->case_count; i++) {
        const struct duet_case_figures *f = &figures->cases[i];
        size_t known = 0;

        if (taken[i] || isnan(f->error) || !same_but_policy(&cases[i], &cases[first]))
            continue;
        taken[i] = true;
        while (known < group->count && strcmp(names[known], cases[i].policy) != 0)
            known++;
        if (known < group->count)
            continue;
        names[group->count] = cases[i].policy;
        group->predicted[group->count] = f->predicted.median;
        group->measured[group->count] = f->measured.median;
        group->widths[group->count++] = isnan(f->noise) ? 0 : f->noise * f->measured.median;
    }
    g_free(names);
}

static void judge_policies(const struct duet_validation *validation,
                           struct duet_validation_figures *figures)
{
    size_t count = validation->case_count;
    double *room = g_new0(double, 3 * count + 1);
    bool *taken = g_new0(bool, count + 1);
    struct group group = {room, room + count, room + 2 * count, 0};

    for (size_t i = 0; i < count; i++) {
        size_t pairs, right;

        if (taken[i] || isnan(figures->cases[i].error))
            continue;
        collect(validation, figures, i, taken, &group);
        if (group.count < 2)
            continue;
        duet_rank_pairs(group.predicted, group.measured, group.widths, group.count, &pairs, &right);
        figures->groups++;
        figures->best_right += best_is_right(&group);
        figures->pairs += pairs;
        figures->pairs_right += right;
    }
    g_free(room);
    g_free(taken);
}

/* ------------------------------------------------------------------------------------------- */
/* All                                                                                          */

static void summarise(const struct duet_validation *validation,
                      struct duet_validation_figures *figures)
{
    double *errors = g_new0(double, 2 * validation->case_count + 1);
    double *absolute = errors + validation->case_count;
    size_t known = 0;

    for (size_t i = 0; i < validation->case_count; i++) {
        const struct duet_case_figures *f = &figures->cases[i];

        figures->failed += duet__case_fails(validation, i, figures);
        figures->refused += validation->cases[i].failure != NULL;
        if (isnan(f->error))
            continue;
        errors[known] = f->error;
        absolute[known++] = fabs(f->error);
        figures->within_noise += fabs(f->error) <= f->noise; /* not if it is not known */
    }
    figures->known = known;
    figures->median = figures->p95 = figures->worst = figures->bias = NAN;
    if (known) {
        qsort(errors, known, sizeof(*errors), compare_values);
        qsort(absolute, known, sizeof(*absolute), compare_values);
        figures->bias = duet_quantile(errors, known, 0.5);
        figures->median = duet_quantile(absolute, known, 0.5);
        figures->p95 = duet_quantile(absolute, known, 0.95);
        figures->worst = absolute[known - 1];
    }
    g_free(errors);
}

int duet_validation_judge(const struct duet_validation *validation,
                          struct duet_validation_figures *out, struct duet_message *message)
{
    int result = 0;

    *out = (struct duet_validation_figures){0};
    out->cases = calloc(validation->case_count + 1, sizeof(*out->cases));
    if (!out->cases)
        return duet_fail(message, DUET_ENOMEM, "out of memory for the figures of %zu cases",
                         validation->case_count);
    for (size_t i = 0; i < validation->case_count && !result; i++)
        result = judge_case(&validation->cases[i], &out->cases[i], message);
    if (result) {
        duet_validation_figures_fini(out, validation->case_count);
        return result;
    }
    summarise(validation, out);
    judge_policies(validation, out);
    return 0;
}

void duet_validation_figures_fini(struct duet_validation_figures *figures, size_t case_count)
{
    for (size_t i = 0; figures->cases && i < case_count; i++)
        duet_explanation_fini(&figures->cases[i].explanation);
    free(figures->cases);
    *figures = (struct duet_validation_figures){0};
}
