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

/* Ratio of a run's executions to the usual ones; 0: there are none. `room` has one element for
 * each. */
static double level_of(const struct duet__executions *all, const struct duet__executed_run *run,
                       const double *usual, struct ranked *room)
{
    double whole = 0, sum = 0;
    size_t count = 0;
    for (size_t i = run->first; i < run->first + run->count; i++) {
        if (!(usual[i] > 0))
            continue;
        room[count++] = (struct ranked){0, all->list[i].seconds / usual[i], i};
        whole += usual[i];
    }
    qsort(room, count, sizeof *room, by_rank);
    for (size_t i = 0; i < count; i++) {
        sum += usual[room[i].index];
        if (sum >= whole / 2)
            return room[i].value;
    }
    return 0;
}

/* Scales the states of runs equal to this one, the first of them, to a median of 1; too few have
 * none. `room` has one element for each run. */
static void scale_states(struct duet__executions *all, size_t first, double *room)
{
    uint64_t repeats = all->runs[first].of->repeats;
    double median = 0;
    size_t count = 0;
    for (size_t r = first; r < all->run_count; r++)
        if (all->runs[r].of->repeats == repeats && all->runs[r].state > 0)
            room[count++] = all->runs[r].state;
    if (count >= LEAST_RUNS)
        median = duet__median(room, count);
    for (size_t r = first; r < all->run_count; r++)
        if (all->runs[r].of->repeats == repeats)
            all->runs[r].state = median > 0 ? all->runs[r].state / median : 0;
}

static bool is_first(const struct duet__executions *all, size_t run)
{
    size_t r = 0;
    while (all->runs[r].of->repeats != all->runs[run].of->repeats)
        r++;
    return r == run;
}

void duet__states_remove(struct duet__executions *all)
{
    double *usual = g_new0(double, all->count + 1);
    double *levels = g_new0(double, all->run_count + 1);
    struct ranked *room = g_new0(struct ranked, all->count + 1);
    for (guint g = 0; g < all->groups->len; g++)
        if (duet__group_at(all, g)->host)
            find_usual(all, duet__group_at(all, g), room, usual);
    for (size_t r = 0; r < all->run_count; r++)
        all->runs[r].state =
            all->runs[r].of->repeats ? level_of(all, &all->runs[r], usual, room) : 0;
    for (size_t r = 0; r < all->run_count; r++)
        if (is_first(all, r))
            scale_states(all, r, levels);
    for (size_t i = 0; i < all->count; i++) {
        double state = all->runs[all->list[i].run].state;
        if (state > 0 && usual[i] > 0)
            all->list[i].seconds /= state;
    }
    g_free(usual);
    g_free(levels);
    g_free(room);
}
