/* SPDX-License-Identifier: Apache-2.0 */
/* Why two runs of one problem differ: the difference of their accounts, reason by reason. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validate/account.h"

static const char *const reason_names[] = {
    [DUET_REASON_KERNEL] = "kernel",
    [DUET_REASON_SCHEDULE] = "schedule",
    [DUET_REASON_TO_DEVICE] = "waiting for copies to devices",
    [DUET_REASON_TO_HOST] = "waiting for copies to the host",
    [DUET_REASON_BETWEEN] = "waiting for copies between devices",
    [DUET_REASON_OVERHEAD] = "overhead",
    [DUET_REASON_IDLE] = "idle",
    [DUET_REASON_SPREAD] = "spread of the runs",
};

const char *duet_reason_name(enum duet_reason reason)
{
    return (unsigned)reason < sizeof(reason_names) / sizeof(reason_names[0]) ? reason_names[reason]
                                                                             : "?";
}

/* A kernel on an architecture in both accounts; what one does not have counts 0. */
struct pair {
    const char *name, *arch;
    double first_count, second_count, first_s, second_s;
};

/* Parts of the difference that are waiting. */
static const struct {
    enum duet_part part;
    enum duet_reason reason;
} waits[] = {
    {DUET_PART_TO_DEVICE, DUET_REASON_TO_DEVICE}, {DUET_PART_TO_HOST, DUET_REASON_TO_HOST},
    {DUET_PART_BETWEEN, DUET_REASON_BETWEEN},     {DUET_PART_OVERHEAD, DUET_REASON_OVERHEAD},
    {DUET_PART_IDLE, DUET_REASON_IDLE},
};

enum { WAITS = sizeof(waits) / sizeof(waits[0]) };

static int by_name(const void *left, const void *right)
{
    const struct pair *a = left, *b = right;
    int names = strcmp(a->name, b->name);

    return names ? names : strcmp(a->arch, b->arch);
}

/* The kernels of both, sorted by name, then architecture, each once. *pairs is the caller's. */
static int make_pairs(const struct duet_account *first, const struct duet_account *second,
                      struct pair **pairs, size_t *count)
{
    size_t all = 0, merged = 0;
    struct pair *list = calloc(first->kernel_count + second->kernel_count + 1, sizeof(*list));

    if (!list)
        return DUET_ENOMEM;
    for (size_t i = 0; i < first->kernel_count; i++) {
        const struct duet_account_kernel *kernel = &first->kernels[i];

        list[all++] = (struct pair){.name = kernel->name,
                                    .arch = kernel->arch,
                                    .first_count = kernel->count,
                                    .first_s = kernel->seconds};
    }
    for (size_t i = 0; i < second->kernel_count; i++) {
        const struct duet_account_kernel *kernel = &second->kernels[i];

        list[all++] = (struct pair){.name = kernel->name,
                                    .arch = kernel->arch,
                                    .second_count = kernel->count,
                                    .second_s = kernel->seconds};
    }
    qsort(list, all, sizeof(*list), by_name);
    for (size_t i = 0; i < all; i++) {
        struct pair *last = &list[merged - !!merged];

        if (merged && !by_name(last, &list[i])) {
            last->first_count += list[i].first_count;
            last->first_s += list[i].first_s;
            last->second_count += list[i].second_count;
            last->second_s += list[i].second_s;
        } else {
            list[merged++] = list[i];
        }
    }
    *pairs = list;
    *count = merged;
    return 0;
}

/* Means of one kernel against each other, for as many as the second has; the rest is returned to
 * the schedule: seconds of all workers that the first has, and that the second would have had. */
static void add_kernel(struct duet_explanation *out, const struct pair *pair, double workers,
                       double schedule_s[2])
{
    double first_s, second_s;
    struct duet_difference *difference;

    schedule_s[0] += pair->first_s;
    if (!(pair->first_count > 0) || !(pair->second_count > 0)) {
        schedule_s[1] += pair->second_s;
        return;
    }
    first_s = pair->first_s / pair->first_count;
    second_s = pair->second_s / pair->second_count;
    schedule_s[1] += first_s * pair->second_count;
    difference = &out->differences[out->count++];
    *difference = (struct duet_difference){
        .reason = DUET_REASON_KERNEL,
        .seconds = (first_s * pair->second_count - pair->second_s) / workers,
        .first = first_s,
        .second = second_s,
    };
    snprintf(difference->what, sizeof(difference->what), "%s on %s", pair->name, pair->arch);
}

static void add(struct duet_explanation *out, enum duet_reason reason, double first, double second)
{
    out->differences[out->count++] = (struct duet_difference){.reason = reason,
                                                              .seconds = first - second,
                                                              .first = first,
                                                              .second = second};
}

/*
 * Seconds that tasks of one kernel, in the `count` pairs, spent in the second on architectures
 * where the first ran less of them. Those that the first has not run at all have not moved.
 */
static double moved_seconds(const struct pair *pairs, size_t count)
{
    double left = 0, come = 0, left_s = 0;

    for (size_t i = 0; i < count; i++) {
        double less = pairs[i].second_count - pairs[i].first_count;

        if (less > 0) {
            left += less;
            left_s += less * pairs[i].second_s / pairs[i].second_count;
        } else {
            come -= less;
        }
    }
    return left > come ? left_s * come / left : left_s;
}

static double moved_share(const struct pair *pairs, size_t count)
{
    double all_s = 0, moved_s = 0;

    for (size_t i = 0, next; i < count; i = next) {
        for (next = i; next < count && !strcmp(pairs[i].name, pairs[next].name); next++)
            all_s += pairs[next].second_s;
        moved_s += moved_seconds(pairs + i, next - i);
    }
    return all_s > 0 ? moved_s / all_s : 0;
}

static int by_size(const void *left, const void *right)
{
    const struct duet_difference *a = left, *b = right;
    double x = fabs(a->seconds), y = fabs(b->seconds);

    if (x != y)
        return x > y ? -1 : 1;
    if (a->reason != b->reason)
        return a->reason < b->reason ? -1 : 1;
    return strcmp(a->what, b->what);
}

static void add_all(struct duet_explanation *out, const struct pair *pairs, size_t count,
                    const struct duet_account *first, const struct duet_account *second)
{
    double workers = first->workers, schedule_s[2] = {0};
    double accounts_s = first->makespan_s - second->makespan_s;

    for (size_t i = 0; i < count; i++)
        add_kernel(out, &pairs[i], workers, schedule_s);
    add(out, DUET_REASON_SCHEDULE, schedule_s[0] / workers, schedule_s[1] / workers);
    for (size_t i = 0; i < WAITS; i++)
        add(out, waits[i].reason, first->parts_s[waits[i].part] / workers,
            second->parts_s[waits[i].part] / workers);
    if (out->whole_s != accounts_s)
        add(out, DUET_REASON_SPREAD, out->first_s - first->makespan_s,
            out->second_s - second->makespan_s);
    out->moved_share = moved_share(pairs, count);
    qsort(out->differences, out->count, sizeof(*out->differences), by_size);
}

int duet_explain(const struct duet_account *first, const struct duet_account *second,
                 double first_s, double second_s, struct duet_explanation *out,
                 struct duet_message *message)
{
    struct pair *pairs = NULL;
    size_t count = 0;

    *out = (struct duet_explanation){0};
    if (!first->workers || first->workers != second->workers)
        return duet_fail(message, DUET_EINVAL,
                         "runs on %u and on %u workers are not explained by each other",
                         first->workers, second->workers);
    out->first_s = first_s > 0 ? first_s : first->makespan_s;
    out->second_s = second_s > 0 ? second_s : second->makespan_s;
    out->whole_s = out->first_s - out->second_s;
    if (!make_pairs(first, second, &pairs, &count))
        out->differences = calloc(count + WAITS + 2, sizeof(*out->differences));
    if (!out->differences) {
        free(pairs);
        return duet_fail(message, DUET_ENOMEM, "out of memory explaining a difference");
    }
    add_all(out, pairs, count, first, second);
    free(pairs);
    return 0;
}

void duet_explanation_fini(struct duet_explanation *explanation)
{
    free(explanation->differences);
    *explanation = (struct duet_explanation){0};
}
