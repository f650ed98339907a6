/* SPDX-License-Identifier: Apache-2.0 */
/* The executions of one point as rows. */
#include "calibrate/rows.h"

#include <glib.h>

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

void duet__rows_make(const struct duet__samples *samples, const struct duet__group *group,
                     const struct duet__miss *misses, size_t limit, struct duet__rows *out)
{
    size_t count = 0;
    unsigned operands = 0;
    uint32_t run = 0;
    measure(samples, group, limit, &count, &operands);
    *out = (struct duet__rows){.columns = samples->labels[group->label].host ? 2 * operands : 0};
    out->seconds = g_new0(double, count + 1);
    out->shares = g_new0(double, count * out->columns + 1);
    out->list = g_new0(struct duet__row, count + 1);
    for (size_t i = group->first; i < group->first + group->count; i++) {
        size_t index = samples->order[i];
        if (takes(samples, index, limit, &run))
            add(samples, &samples->list[index], misses, run, out);
    }
    for (unsigned i = 0; i < DUET_OPERANDS && out->count; i++)
        out->operand_bytes[i] /= (double)out->count;
}

void duet__rows_fini(struct duet__rows *rows)
{
    g_free(rows->seconds);
    g_free(rows->shares);
    g_free(rows->list);
    *rows = (struct duet__rows){0};
}

double duet__row_busy_part(const struct duet__row *row)
{
    return row->workers > 1 ? row->others / (row->workers - 1) : 0;
}

bool duet__row_alone(const struct duet__row *row)
{
    return duet__row_busy_part(row) <= 0.1;
}

bool duet__row_busy(const struct duet__row *row)
{
    return duet__row_busy_part(row) > 0.5;
}

bool duet__row_cold(const struct duet__row *row)
{
    return row->from_memory > row->bytes / 2;
}
