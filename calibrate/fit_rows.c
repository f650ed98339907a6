/* SPDX-License-Identifier: Apache-2.0 */
/* The executions of one point as rows. */
#include <math.h>
#include <stdlib.h>

#include "calibrate/fit_group.h"

/* Is the sample one that is asked for? Sets its run: those of a group come in order of runs. */
static bool takes(const struct duet__samples *samples, size_t index, size_t limit, uint32_t *run)
{
    while (index >= samples->runs[*run].first + samples->runs[*run].count)
        ++*run;
    return limit == 0 || index - samples->runs[*run].first < limit;
}

/* How many rows there will be, and how many operands the one with most of them has. */
static void measure(const struct duet__samples *samples, const struct duet__group *group,
                    size_t limit, size_t *count, unsigned *operands)
{
    uint32_t run = 0;
    for (size_t i = group->first; i < group->first + group->count; i++) {
        const struct duet__sample *sample = &samples->list[samples->order[i]];
        if (!takes(samples, samples->order[i], limit, &run))
            continue;
        ++*count;
        if (sample->operands > *operands)
            *operands = sample->operands < DUET_OPERANDS ? sample->operands : DUET_OPERANDS;
    }
}

static void add(const struct duet__samples *samples, const struct duet__sample *sample,
                const struct duet__miss *misses, uint32_t run, struct duet__rows *out)
{
    unsigned half = out->columns / 2;
    double *shares = out->shares + out->count * out->columns;
    struct duet__row *row = &out->list[out->count];
    *row = (struct duet__row){.run = run, .others = sample->others, .workers = sample->workers};
    out->seconds[out->count++] = sample->seconds;
    for (unsigned i = 0; half && i < sample->operands; i++) {
        unsigned place = i < half ? i : half - 1;
        double bytes = (double)samples->operands[sample->first + i].bytes;
        struct duet__miss miss = misses[sample->first + i];
        shares[place] += miss.near;
        shares[half + place] += miss.far;
        row->bytes += bytes;
        row->from_memory += bytes * miss.far;
        out->operand_bytes[place] += bytes;
    }
}

int duet__rows_make(const struct duet__samples *samples, const struct duet__group *group,
                    const struct duet__miss *misses, size_t limit, struct duet__rows *out)
{
    size_t count = 0;
    unsigned operands = 0;
    uint32_t run = 0;
    measure(samples, group, limit, &count, &operands);
    *out = (struct duet__rows){.columns = samples->labels[group->label].host ? 2 * operands : 0};
    out->seconds = calloc(count + 1, sizeof *out->seconds);
    out->shares = calloc(count * out->columns + 1, sizeof *out->shares);
    out->list = calloc(count + 1, sizeof *out->list);
    if (!out->seconds || !out->shares || !out->list) {
        duet__rows_fini(out);
        return DUET_ENOMEM;
    }
    for (size_t i = group->first; i < group->first + group->count; i++) {
        size_t index = samples->order[i];
        if (takes(samples, index, limit, &run))
            add(samples, &samples->list[index], misses, run, out);
    }
    for (unsigned i = 0; i < DUET_OPERANDS && out->count; i++)
        out->operand_bytes[i] /= (double)out->count;
    return DUET_OK;
}

void duet__rows_fini(struct duet__rows *rows)
{
    free(rows->seconds);
    free(rows->shares);
    free(rows->list);
    *rows = (struct duet__rows){0};
}

/* Which part of the socket's other workers computed. */
static double part_of_others(const struct duet__row *row)
{
    return row->workers > 1 ? row->others / (row->workers - 1) : 0;
}

bool duet__row_alone(const struct duet__row *row)
{
    return part_of_others(row) <= 0.1;
}

bool duet__row_busy(const struct duet__row *row)
{
    return part_of_others(row) > 0.5;
}
