/* SPDX-License-Identifier: Apache-2.0 */
/* Explains why two runs of one problem differ: the difference of their accounts, by reasons. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include "trace/account.h"

static const char *const reason_names[] = {
    [DUET_REASON_KERNEL] = "kernel",
    [DUET_REASON_SCHEDULE] = "schedule",
    [DUET_REASON_TO_DEVICE] = "waiting for copies to devices",
    [DUET_REASON_TO_HOST] = "waiting for copies to the host",
    [DUET_REASON_BETWEEN] = "waiting for copies between devices",
    [DUET_REASON_MESSAGE] = "waiting for messages from other nodes",
    [DUET_REASON_OVERHEAD] = "overhead",
    [DUET_REASON_IDLE] = "idle",
    [DUET_REASON_SPREAD] = "spread of the runs",
};

const char *duet__reason_name(enum duet__reason reason)
{
    return reason_names[reason];
}

/* A kernel on an architecture in both accounts; an account that lacks it counts 0. */
struct pair {
    const char *name, *arch;
    double count[2], seconds[2];
};

/* The parts of the difference that are waiting. */
static const struct {
    enum duet__state first, last;
    enum duet__reason reason;
} waits[] = {
    {DUET_STATE_TO_DEVICE_QUEUE, DUET_STATE_TO_DEVICE, DUET_REASON_TO_DEVICE},
    {DUET_STATE_TO_HOST_QUEUE, DUET_STATE_ROOM, DUET_REASON_TO_HOST},
    {DUET_STATE_BETWEEN_QUEUE, DUET_STATE_BETWEEN, DUET_REASON_BETWEEN},
    {DUET_STATE_MESSAGE_QUEUE, DUET_STATE_MESSAGE, DUET_REASON_MESSAGE},
    {DUET_STATE_OVERHEAD, DUET_STATE_OVERHEAD, DUET_REASON_OVERHEAD},
    {DUET_STATE_ELSEWHERE, DUET_STATE_LOST, DUET_REASON_IDLE},
};

static int by_name(const void *left, const void *right)
{
    const struct pair *a = left, *b = right;
    int names = strcmp(a->name, b->name);
    return names ? names : strcmp(a->arch, b->arch);
}

/* Returns the kernels of both accounts, sorted by name, then architecture, each once. */
static GArray *make_pairs(const struct duet__account *const accounts[2])
{
    GArray *pairs = g_array_new(FALSE, FALSE, sizeof(struct pair));
    guint merged = 0;
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < accounts[side]->kernel_count; i++) {
            const struct duet__account_kernel *kernel = &accounts[side]->kernels[i];
            struct pair pair = {.name = kernel->name, .arch = kernel->arch};
            pair.count[side] = kernel->count;
            pair.seconds[side] = kernel->seconds;
            g_array_append_val(pairs, pair);
        }
    g_array_sort(pairs, by_name);
    for (guint i = 0; i < pairs->len; i++) {
        struct pair *pair = &g_array_index(pairs, struct pair, i);
        struct pair *last = &g_array_index(pairs, struct pair, merged - !!merged);
        if (!merged || by_name(last, pair)) {
            g_array_index(pairs, struct pair, merged++) = *pair;
            continue;
        }
        for (int side = 0; side < 2; side++) {
            last->count[side] += pair->count[side];
            last->seconds[side] += pair->seconds[side];
        }
    }
    g_array_set_size(pairs, merged);
    return pairs;
}

/*
 * Adds the difference of a kernel's means, for as many runs as the second account has. The rest
 * goes to the schedule: seconds of all workers that the first has, and that the second would have
 * had.
 */
static void add_kernel(struct duet__explanation *out, const struct pair *pair, double workers,
                       double schedule_s[2])
{
    double first_s = pair->seconds[0] / pair->count[0];
    double second_s = pair->seconds[1] / pair->count[1];
    struct duet__difference *difference = &out->differences[out->count];
    schedule_s[0] += pair->seconds[0];
    if (!(pair->count[0] > 0) || !(pair->count[1] > 0)) {
        schedule_s[1] += pair->seconds[1];
        return;
    }
    schedule_s[1] += first_s * pair->count[1];
    out->count++;
    *difference = (struct duet__difference){
        .reason = DUET_REASON_KERNEL,
        .seconds = (first_s * pair->count[1] - pair->seconds[1]) / workers,
        .first = first_s,
        .second = second_s,
    };
    g_snprintf(difference->what, sizeof(difference->what), "%s on %s", pair->name, pair->arch);
}

static void add(struct duet__explanation *out, enum duet__reason reason, double first,
                double second)
{
    out->differences[out->count++] = (struct duet__difference){.reason = reason,
                                                               .seconds = first - second,
                                                               .first = first,
                                                               .second = second};
}

/*
 * Returns the seconds that tasks of one kernel, in the `count` pairs, spent in the second account
 * on architectures where the first ran less of them. Tasks that the first has not run at all have
 * not moved.
 */
static double moved_seconds(const struct pair *pairs, size_t count)
{
    double left = 0, come = 0, left_s = 0;
    for (size_t i = 0; i < count; i++) {
        double less = pairs[i].count[1] - pairs[i].count[0];
        if (less > 0) {
            left += less;
            left_s += less * pairs[i].seconds[1] / pairs[i].count[1];
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
            all_s += pairs[next].seconds[1];
        moved_s += moved_seconds(pairs + i, next - i);
    }
    return all_s > 0 ? moved_s / all_s : 0;
}

static int by_size(const void *left, const void *right)
{
    const struct duet__difference *a = left, *b = right;
    double x = fabs(a->seconds), y = fabs(b->seconds);
    if (x != y)
        return x > y ? -1 : 1;
    if (a->reason != b->reason)
        return a->reason < b->reason ? -1 : 1;
    return strcmp(a->what, b->what);
}

void duet__explain_difference(const struct duet__account *first, const struct duet__account *second,
                              double first_s, double second_s, struct duet__explanation *out)
{
    double workers = first->workers, schedule_s[2] = {0};
    g_autoptr(GArray) pairs = make_pairs((const struct duet__account *const[]){first, second});
    *out = (struct duet__explanation){0};
    out->first_s = first_s > 0 ? first_s : first->makespan_s;
    out->second_s = second_s > 0 ? second_s : second->makespan_s;
    out->whole_s = out->first_s - out->second_s;
    out->moved_share = moved_share((const struct pair *)(void *)pairs->data, pairs->len);
    out->differences = g_new0(struct duet__difference, pairs->len + G_N_ELEMENTS(waits) + 2);
    for (guint i = 0; i < pairs->len; i++)
        add_kernel(out, &g_array_index(pairs, struct pair, i), workers, schedule_s);
    add(out, DUET_REASON_SCHEDULE, schedule_s[0] / workers, schedule_s[1] / workers);
    for (size_t i = 0; i < G_N_ELEMENTS(waits); i++)
        add(out, waits[i].reason,
            duet__states_sum(first->states_s, waits[i].first, waits[i].last) / workers,
            duet__states_sum(second->states_s, waits[i].first, waits[i].last) / workers);
    if (out->whole_s != first->makespan_s - second->makespan_s)
        add(out, DUET_REASON_SPREAD, out->first_s - first->makespan_s,
            out->second_s - second->makespan_s);
    qsort(out->differences, out->count, sizeof(*out->differences), by_size);
}

void duet__explanation_fini(struct duet__explanation *explanation)
{
    g_free(explanation->differences);
    *explanation = (struct duet__explanation){0};
}
