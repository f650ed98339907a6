/* SPDX-License-Identifier: Apache-2.0 */
/* The executions of one point as rows. */
#include "calibrate/kernel_models.h"

static void add(const struct duet__executions *executions, const struct duet__execution *e,
                const struct duet__miss *misses, struct duet__rows *out)
{
    unsigned half = out->columns / 2;
    double *shares = out->shares + out->count * out->columns;
    struct duet__row *row = &out->list[out->count];
    *row = (struct duet__row){.run = e->run, .others = e->others, .workers = e->workers};
    out->seconds[out->count++] = e->seconds;
    for (unsigned i = 0; half && i < e->operands; i++) {
        unsigned place = MIN(i, half - 1);
        double bytes = (double)executions->operands[e->first + i].bytes;
        struct duet__miss miss = misses[e->first + i];
        shares[place] += miss.near;
        shares[half + place] += miss.far;
        row->bytes += bytes;
        row->from_memory += bytes * miss.far;
        out->operand_bytes[place] += bytes;
    }
}

void duet__rows_make(const struct duet__executions *executions, const struct duet__group *group,
                     const struct duet__miss *misses, size_t limit, struct duet__rows *out)
{
    size_t most = group->members->len;
    *out = (struct duet__rows){.columns = group->host ? 2 * group->operands : 0};
    out->seconds = g_new0(double, most + 1);
    out->shares = g_new0(double, most * out->columns + 1);
    out->list = g_new0(struct duet__row, most + 1);
    for (size_t i = 0; i < most; i++) {
        size_t index = g_array_index(group->members, size_t, i);
        const struct duet__execution *e = &executions->list[index];
        if (!limit || index - executions->runs[e->run].first < limit)
            add(executions, e, misses, out);
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
