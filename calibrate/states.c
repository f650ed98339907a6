/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the machine in each run, beside others that did the same. */
#include <math.h>
#include <stdlib.h>

#include <glib.h>

#include "calibrate/samples.h"
#include "validate/stats.h"

enum { LEAST_RUNS = 3 }; /* that did the same: of two, neither is the usual one */

static const double TO_DEVIATION = 1.4826; /* of a normal distribution, by its MAD */

/* One execution: what it took beside what is usual. */
struct timed {
    uint64_t repeats;
    size_t index; /* of the sample */
    double seconds;
};

struct weighted {
    double ratio, weight;
};

static int by_repeats(const void *a, const void *b)
{
    const struct timed *left = a, *right = b;
    if (left->repeats != right->repeats)
        return left->repeats < right->repeats ? -1 : 1;
    if (left->seconds != right->seconds)
        return left->seconds < right->seconds ? -1 : 1;
    return (left->index > right->index) - (left->index < right->index);
}

static int by_ratio(const void *a, const void *b)
{
    const struct weighted *left = a, *right = b;
    return (left->ratio > right->ratio) - (left->ratio < right->ratio);
}

/* ------------------------------------------------------------------------------------------- */
/* Usual times                                                                                  */

/* usual[i] of each of these samples, which are of one kernel and work; `room` for all of them. */
static void find_usual(const struct duet__samples *samples, const struct duet__group *group,
                       const uint64_t *repeats, struct timed *room, double *usual)
{
    for (size_t i = 0; i < group->count; i++) {
        size_t index = samples->order[group->first + i];
        room[i] = (struct timed){repeats[index], index, samples->list[index].seconds};
    }
    qsort(room, group->count, sizeof *room, by_repeats);
    for (size_t first = 0, next; first < group->count; first = next) {
        for (next = first + 1; next < group->count && room[next].repeats == room[first].repeats;
             next++)
            ;
        size_t middle = first + (next - first) / 2;
        double median = (next - first) % 2 ? room[middle].seconds
                                           : (room[middle - 1].seconds + room[middle].seconds) / 2;
        for (size_t i = first; i < next; i++)
            usual[room[i].index] = median;
    }
}

/* ------------------------------------------------------------------------------------------- */
/* States                                                                                       */

/* How a run's executions are beside the usual ones; 0: there are none. */
static double level_of(const struct duet__samples *samples, const struct duet__sampled_run *run,
                       const double *usual, struct weighted *room)
{
    double all = 0, sum = 0;
    size_t count = 0;
    for (size_t i = run->first; i < run->first + run->count; i++) {
        if (!(usual[i] > 0))
            continue;
        room[count++] = (struct weighted){samples->list[i].seconds / usual[i], usual[i]};
        all += usual[i];
    }
    qsort(room, count, sizeof *room, by_ratio);
    for (size_t i = 0; i < count; i++) {
        sum += room[i].weight;
        if (sum >= all / 2)
            return room[i].ratio;
    }
    return 0;
}

/* Scales the states of the runs that did the same to a median of 1; too few have none. */
static void centre(struct duet__samples *samples, uint64_t repeats, double *room)
{
    size_t count = 0;
    for (size_t r = 0; r < samples->run_count; r++)
        if (samples->runs[r].repeats == repeats && samples->runs[r].state > 0)
            room[count++] = samples->runs[r].state;
    double median = count >= LEAST_RUNS ? duet_median(room, count) : 0;
    for (size_t r = 0; r < samples->run_count; r++)
        if (samples->runs[r].repeats == repeats)
            samples->runs[r].state = median > 0 ? samples->runs[r].state / median : 0;
}

static void find_states(struct duet__samples *samples, const double *usual, struct weighted *some,
                        double *room)
{
    for (size_t r = 0; r < samples->run_count; r++) {
        struct duet__sampled_run *run = &samples->runs[r];
        run->state = run->repeats ? level_of(samples, run, usual, some) : 0;
    }
    for (size_t r = 0; r < samples->run_count; r++) {
        bool first = samples->runs[r].repeats != 0;
        for (size_t before = 0; before < r && first; before++)
            first = samples->runs[before].repeats != samples->runs[r].repeats;
        if (first)
            centre(samples, samples->runs[r].repeats, room);
    }
}

void duet__states_remove(struct duet__samples *samples)
{
    double *usual = g_new0(double, samples->count + 1);
    double *states = g_new0(double, samples->run_count + 1);
    uint64_t *repeats = g_new0(uint64_t, samples->count + 1);
    struct timed *timed = g_new0(struct timed, samples->count + 1);
    struct weighted *weighted = g_new0(struct weighted, samples->count + 1);
    for (size_t r = 0; r < samples->run_count; r++)
        for (size_t i = 0; i < samples->runs[r].count; i++)
            repeats[samples->runs[r].first + i] = samples->runs[r].repeats;
    for (size_t g = 0; g < samples->group_count; g++)
        if (samples->labels[samples->groups[g].label].host)
            find_usual(samples, &samples->groups[g], repeats, timed, usual);
    find_states(samples, usual, weighted, states);
    for (size_t r = 0; r < samples->run_count; r++) {
        const struct duet__sampled_run *run = &samples->runs[r];
        for (size_t i = run->first; i < run->first + run->count; i++)
            if (run->state > 0 && usual[i] > 0)
                samples->list[i].seconds /= run->state;
    }
    g_free(usual);
    g_free(states);
    g_free(repeats);
    g_free(timed);
    g_free(weighted);
}

double duet__states_deviation(const struct duet__samples *samples, const size_t *runs, size_t count,
                              double *room)
{
    size_t known = 0;
    for (size_t i = 0; i < count; i++) {
        double state = samples->runs[runs[i]].state;
        /* the median run of a problem is no nearer to the true state than others */
        if ((i == 0 || runs[i] != runs[i - 1]) && state > 0 && state != 1)
            room[known++] = fabs(log(state));
    }
    return known >= LEAST_RUNS - 1 ? TO_DEVIATION * duet_median(room, known) : 0;
}
