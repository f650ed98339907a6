/* SPDX-License-Identifier: Apache-2.0 */
/* Names and sums shared by all texts made from a comparison. */
#include "report/validation_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/gantt.h"
#include "base/table.h"

/* Part of the largest one from which a part that causes others is named first. The workers that
 * wait for a kernel on the critical path are idle, so that its own part is smaller. */
static const double cause_share = 1.0 / 3;

const char *duet__error_word(const struct duet__validation *validation)
{
    return strcmp(validation->first_name, "predicted") == 0 ? "error" : "difference";
}

const char *duet__difference_name(const struct duet__difference *difference)
{
    return difference->what[0] ? difference->what : duet__reason_name(difference->reason);
}

char *duet__time_text(double seconds)
{
    double scale;
    const char *unit = duet__gantt_unit(fabs(seconds), &scale);

    if (!(fabs(seconds) >= 1e-9)) /* less than a clock tells */
        return g_strdup("0 s");
    return g_strdup_printf("%.*f %s", duet__decimals(fabs(seconds) * scale, 4), seconds * scale,
                           unit);
}

char *duet__percent_text(double share)
{
    if (!isfinite(share))
        return g_strdup("-");
    if (fabs(share) < 5e-5) /* without a sign what is written as 0 */
        return g_strdup("0.00 %");
    return g_strdup_printf("%+.*f %%", fabs(share) < 0.1 ? 2 : 1, share * 100);
}

/* True if a part mostly follows from others, or tells nothing of the kernels that ran. */
static bool follows(enum duet__reason reason)
{
    return reason == DUET_REASON_IDLE || reason == DUET_REASON_OVERHEAD ||
           reason == DUET_REASON_SPREAD;
}

const struct duet__difference *duet__culprit(const struct duet__explanation *explanation)
{
    const struct duet__difference *most = explanation->differences;

    for (size_t i = 0; i < explanation->count; i++) {
        const struct duet__difference *part = &explanation->differences[i];

        /* a part of the opposite sign has not caused the largest */
        if (!follows(part->reason) && part->seconds * most->seconds > 0 &&
            fabs(part->seconds) >= cause_share * fabs(most->seconds))
            return part;
    }
    return explanation->count ? most : NULL;
}

char *duet__culprit_text(const struct duet__validation *validation,
                         const struct duet__explanation *explanation)
{
    const struct duet__difference *most = duet__culprit(explanation);
    g_autofree char *first = NULL, *second = NULL, *change = NULL;

    if (!most)
        return NULL;
    first = duet__time_text(most->first);
    second = duet__time_text(most->second);
    change = most->second > 0 ? duet__percent_text(most->first / most->second - 1) : NULL;
    return g_strdup_printf("%s%s %s %s, %s %s%s%s%s", duet__difference_name(most),
                           most->reason == DUET_REASON_KERNEL ? " takes" : ":", first,
                           validation->labels[0], second, validation->labels[1], change ? " (" : "",
                           change ? change : "", change ? ")" : "");
}

static int compare_causes(const void *left, const void *right)
{
    const struct duet__mean_part *a = left, *b = right;
    double x = fabs(a->share), y = fabs(b->share);

    return x > y || x < y ? (x > y ? -1 : 1) : strcmp(a->name, b->name);
}

static struct duet__mean_part *find_cause(GArray *parts, const struct duet__difference *difference)
{
    struct duet__mean_part part = {.reason = difference->reason};

    g_strlcpy(part.name, duet__difference_name(difference), sizeof(part.name));
    for (guint i = 0; i < parts->len; i++) {
        struct duet__mean_part *known = &g_array_index(parts, struct duet__mean_part, i);

        if (known->reason == part.reason && strcmp(known->name, part.name) == 0)
            return known;
    }
    g_array_append_val(parts, part);
    return &g_array_index(parts, struct duet__mean_part, parts->len - 1);
}

struct duet__causes duet__causes_of(const struct duet__validation *validation)
{
    GArray *parts = g_array_new(FALSE, FALSE, sizeof(struct duet__mean_part));
    struct duet__causes causes = {0};

    for (size_t i = 0; i < validation->case_count; i++) {
        const struct duet__explanation *explanation = &validation->cases[i].explanation;

        if (!explanation->count || !(explanation->second_s > 0))
            continue;
        causes.cases++;
        causes.whole += explanation->whole_s / explanation->second_s;
        for (size_t k = 0; k < explanation->count; k++)
            find_cause(parts, &explanation->differences[k])->share +=
                explanation->differences[k].seconds / explanation->second_s;
    }
    causes.count = parts->len;
    causes.parts = (struct duet__mean_part *)(void *)g_array_free(parts, FALSE);
    for (size_t i = 0; i < causes.count; i++)
        causes.parts[i].share /= (double)causes.cases;
    if (causes.cases) {
        causes.whole /= (double)causes.cases;
        qsort(causes.parts, causes.count, sizeof(*causes.parts), compare_causes);
    }
    return causes;
}
