/* SPDX-License-Identifier: Apache-2.0 */
/* Makes rows of the executions of one point. */
#include "calibrate/kernel_fit.h"

static void row_add(const struct duet__executions *executions, const struct duet__execution *e,
                    const double *missing, struct duet__rows *out)
{
    struct duet__row *row = &out->list[out->count];
    *row = (struct duet__row){.run = e->run, .others = e->others, .workers = e->workers};
    for (size_t i = e->first; i < e->first + e->operands; i++) {
        double bytes = (double)executions->operands[i].bytes;
        row->bytes += bytes;
        row->from_memory += bytes * missing[i];
    }
    out->missing[out->count] = row->bytes > 0 ? row->from_memory / row->bytes : 0;
    out->seconds[out->count++] = e->seconds;
    out->bytes += row->bytes;
}

void duet__rows_make(const struct duet__executions *executions, const struct duet__group *group,
                     const double *missing, size_t limit, struct duet__rows *out)
{
    size_t most = group->members->len;
    *out = (struct duet__rows){.seconds = g_new0(double, most + 1),
                               .missing = g_new0(double, most + 1),
                               .list = g_new0(struct duet__row, most + 1)};
    for (size_t i = 0; i < most; i++) {
        size_t index = g_array_index(group->members, size_t, i);
        const struct duet__execution *e = &executions->list[index];
        if (!limit || index - executions->runs[e->run].first < limit)
            row_add(executions, e, missing, out);
    }
    out->bytes /= (double)MAX(out->count, 1);
}

void duet__rows_fini(struct duet__rows *rows)
{
    g_free(rows->seconds);
    g_free(rows->missing);
    g_free(rows->list);
    *rows = (struct duet__rows){0};
}
