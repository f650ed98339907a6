/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the machine in each run, beside others that did the same. */
#include "calibrate/states.h"

#include <math.h>
#include <stdlib.h>

#include "validate/stats.h"

enum { LEAST_RUNS = 3 }; /* that did the same: of two, neither is the usual one */

static const double TO_DEVIATION = 1.4826; /* of a normal distribution, by its MAD */

/* One execution: what it took beside what is usual. */
struct timed {
    uint64_t item;
    size_t index; /* of the sample */
    double seconds;
};

struct weighted {
    double ratio, weight;
};

static int by_item(const void *a, const void *b)
{
    const struct timed *left = a, *right = b;
    if (left->item != right->item)
        return left->item < right->item ? -1 : 1;
    if (left->seconds != right->seconds)
        return left->seconds < right->seconds ? -1 : 1;
    return (left->index > right->index) - (left->index < right->index);
}

static int by_ratio(const void *a, const void *b)
{
    const struct weighted *left = a, *right = b;
    return (left->ratio > right->ratio) - (left->ratio < right->ratio);
}

static int ascending(const void *a, const void *b)
{
    const double *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

/* ------------------------------------------------------------------------------------------- */
/* Usual times                                                                                  */

/* usual[i] of each of these samples, which are of one kernel and work; `room` for all of them. */
static void find_usual(const struct duet__samples *samples, const struct duet__group *group,
                       const uint64_t *items, struct timed *room, double *usual)
{
    for (size_t i = 0; i < group->count; i++) {
        size_t index = samples->order[group->first + i];
        room[i] = (struct timed){items[index], index, samples->list[index].seconds};
    }
    qsort(room, group->count, sizeof *room, by_item);
    for (size_t first = 0, next; first < group->count; first = next) {
        for (next = first + 1; next < group->count && room[next].item == room[first].item; next++)
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

/* Scales the states of the runs of this item to a median of 1; too few have none. */
static void centre(struct duet__samples *samples, uint64_t item, double *room)
{
    size_t count = 0;
    for (size_t r = 0; r < samples->run_count; r++)
        if (samples->runs[r].item == item && samples->runs[r].state > 0)
            room[count++] = samples->runs[r].state;
    qsort(room, count, sizeof *room, ascending);
    double median = count >= LEAST_RUNS ? duet_quantile(room, count, 0.5) : 0;
    for (size_t r = 0; r < samples->run_count; r++)
        if (samples->runs[r].item == item)
            samples->runs[r].state = median > 0 ? samples->runs[r].state / median : 0;
}

static void find_states(struct duet__samples *samples, const double *usual, struct weighted *some,
                        double *room)
{
    for (size_t r = 0; r < samples->run_count; r++) {
        struct duet__sampled_run *run = &samples->runs[r];
        run->state = run->item ? level_of(samples, run, usual, some) : 0;
    }
    for (size_t r = 0; r < samples->run_count; r++) {
        bool first = samples->runs[r].item != 0;
        for (size_t before = 0; before < r && first; before++)
            first = samples->runs[before].item != samples->runs[r].item;
        if (first)
            centre(samples, samples->runs[r].item, room);
    }
}

int duet__states_remove(struct duet__samples *samples)
{
    double *usual = calloc(samples->count + 1, sizeof *usual);
    double *states = calloc(samples->run_count + 1, sizeof *states);
    uint64_t *items = calloc(samples->count + 1, sizeof *items);
    struct timed *timed = calloc(samples->count + 1, sizeof *timed);
    struct weighted *weighted = calloc(samples->count + 1, sizeof *weighted);
    int error = usual && states && items && timed && weighted ? DUET_OK : DUET_ENOMEM;
    for (size_t r = 0; r < samples->run_count && !error; r++)
        for (size_t i = 0; i < samples->runs[r].count; i++)
            items[samples->runs[r].first + i] = samples->runs[r].item;
    for (size_t g = 0; g < samples->group_count && !error; g++)
        if (samples->labels[samples->groups[g].label].host)
            find_usual(samples, &samples->groups[g], items, timed, usual);
    if (!error)
        find_states(samples, usual, weighted, states);
    for (size_t r = 0; r < samples->run_count && !error; r++) {
        const struct duet__sampled_run *run = &samples->runs[r];
        for (size_t i = run->first; i < run->first + run->count; i++)
            if (run->state > 0 && usual[i] > 0)
                samples->list[i].seconds /= run->state;
    }
    free(usual);
    free(states);
    free(items);
    free(timed);
    free(weighted);
    return error;
}

double duet__states_deviation(const struct duet__samples *samples, const size_t *runs, size_t count,
                              double *room)
{
    size_t known = 0;
    for (size_t i = 0; i < count; i++) {
        double state = samples->runs[runs[i]].state;
        /* the median run of an item is no nearer to the true state than others */
        if ((i == 0 || runs[i] != runs[i - 1]) && state > 0 && state != 1)
            room[known++] = fabs(log(state));
    }
    qsort(room, known, sizeof *room, ascending);
    return known >= LEAST_RUNS - 1 ? TO_DEVIATION * duet_quantile(room, known, 0.5) : 0;
}
