/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the state of the machine in each run, compared with equal runs. */
#include <math.h>
#include <stdlib.h>

#include "calibrate/executions.h"
#include "base/stats.h"

enum { LEAST_RUNS = 3 }; /* least equal runs: of two, neither is the usual one */

/* An execution among those that it is compared with, sorted by `of`, then by `value`. */
struct ranked {
    uint64_t of;
    double value;
    size_t index;
};

static int by_rank(const void *a, const void *b)
{
    const struct ranked *left = a, *right = b;
    if (left->of != right->of)
        return left->of < right->of ? -1 : 1;
    return (left->value > right->value) - (left->value < right->value);
}

/* Sets usual[i] for the executions of a group: the median over equal runs. `room` has as many
 * elements. */
static void find_usual(const struct duet__executions *all, const struct duet__group *group,
                       struct ranked *room, double *usual)
{
    size_t count = group->members->len;
    for (size_t i = 0; i < count; i++) {
        size_t index = g_array_index(group->members, size_t, i);
        const struct duet__execution *e = &all->list[index];
        room[i] = (struct ranked){all->runs[e->run].of->repeats, e->seconds, index};
    }
    qsort(room, count, sizeof *room, by_rank);
    for (size_t first = 0, next; first < count; first = next) {
        for (next = first; next < count && room[next].of == room[first].of;)
            next++;
        double median =
            (room[first + (next - first - 1) / 2].value + room[first + (next - first) / 2].value) /
            2;
        for (size_t i = first; i < next; i++)
            usual[room[i].index] = median;
    }
}

/* Sets the ratios of a run's executions to the usual ones, if there are any. `room` has one element
 * for each. */
static void find_level(const struct duet__executions *all, struct duet__executed_run *run,
                       const double *usual, struct ranked *room)
{
    double whole = 0, sum = 0, total = 0;
    size_t count = 0;
    for (size_t i = run->first; i < run->first + run->count; i++) {
        if (!(usual[i] > 0))
            continue;
        room[count++] = (struct ranked){0, all->list[i].seconds / usual[i], i};
        whole += usual[i];
        total += all->list[i].seconds;
    }
    if (!count)
        return;
    run->total = total / whole;
    qsort(room, count, sizeof *room, by_rank);
    for (size_t i = 0; i < count && sum < whole / 2; i++) {
        sum += usual[room[i].index];
        run->state = room[i].value;
    }
}

/* Scales the states of runs equal to this one, the first of them, to a median of 1; too few have
 * none. `room` has two elements for each run. */
static void scale_states(struct duet__executions *all, size_t first, double *room)
{
    uint64_t repeats = all->runs[first].of->repeats;
    double *totals = room + all->run_count, median = 0, middle = 0;
    size_t count = 0;
    for (size_t r = first; r < all->run_count; r++) {
        if (all->runs[r].of->repeats != repeats || !(all->runs[r].state > 0))
            continue;
        totals[count] = all->runs[r].total;
        room[count++] = all->runs[r].state;
    }
    if (count >= LEAST_RUNS) {
        median = duet__median(room, count);
        middle = duet__median(totals, count);
    }
    for (size_t r = first; r < all->run_count; r++) {
        if (all->runs[r].of->repeats != repeats)
            continue;
        all->runs[r].state = median > 0 ? all->runs[r].state / median : 0;
        all->runs[r].total = middle > 0 ? all->runs[r].total / middle : 0;
    }
}

static bool is_first(const struct duet__executions *all, size_t run)
{
    size_t r = 0;
    while (all->runs[r].of->repeats != all->runs[run].of->repeats)
        r++;
    return r == run;
}

/* Sets the distribution of the known states. `room` has one element for each run. */
static void summarise_states(const struct duet__executions *all, double *room,
                             struct duet__states *out)
{
    enum { PARTS = 5 };
    double parts[PARTS];
    size_t count = 0;
    *out = (struct duet__states){.runs = 0};
    for (size_t r = 0; r < all->run_count; r++)
        if (all->runs[r].total > 0)
            room[count++] = all->runs[r].total;
    if (count < PARTS * LEAST_RUNS)
        return;
    out->runs = count;
    for (size_t i = 0; i < PARTS; i++) {
        size_t first = i * count / PARTS;
        parts[i] = log(duet__median(room + first, (i + 1) * count / PARTS - first));
    }
    out->drift = duet__summarise(parts, PARTS).deviation * sqrt(2.0 / PARTS);
    duet__sort(room, count);
    for (size_t i = 0; i < DUET__STATES; i++)
        out->factor[i] = duet__quantile(room, count, (double)i / (DUET__STATES - 1));
}

void duet__states_remove(struct duet__executions *all, struct duet__states *out)
{
    double *usual = g_new0(double, all->count + 1);
    double *levels = g_new0(double, 2 * all->run_count + 1);
    struct ranked *room = g_new0(struct ranked, all->count + 1);
    for (guint g = 0; g < all->groups->len; g++)
        if (duet__group_at(all, g)->host)
            find_usual(all, duet__group_at(all, g), room, usual);
    for (size_t r = 0; r < all->run_count; r++)
        if (all->runs[r].of->repeats)
            find_level(all, &all->runs[r], usual, room);
    for (size_t r = 0; r < all->run_count; r++)
        if (is_first(all, r))
            scale_states(all, r, levels);
    summarise_states(all, levels, out);
    for (size_t i = 0; i < all->count; i++) {
        double state = all->runs[all->list[i].run].state;
        if (state > 0 && usual[i] > 0)
            all->list[i].seconds /= state;
    }
    g_free(usual);
    g_free(levels);
    g_free(room);
}
