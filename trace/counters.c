/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of a run over time, and what links and memories were used for. */
#include "trace/counters.h"

#include <math.h>

/* ------------------------------------------------------------------------------------------- */
/* Points: first what is added at a date, then what it adds up to                               */

static int by_date(const void *left, const void *right)
{
    double a_s = ((const struct duet__moment *)left)->date_s,
           b_s = ((const struct duet__moment *)right)->date_s;
    return (a_s > b_s) - (a_s < b_s);
}

static struct duet__counter *counter_of(struct duet__counters *counters, enum duet__counted what,
                                        unsigned index)
{
    return (struct duet__counter *)(uintptr_t)duet__counter(counters, what, index);
}

static void add_point(struct duet__counter *counter, double date_s, double value)
{
    const struct duet__moment point = {date_s, value};
    if (!counter->points)
        counter->points = g_array_new(FALSE, FALSE, sizeof point);
    g_array_append_val(counter->points, point);
}

/* Counts something from one date to another. */
static void add(struct duet__counters *counters, enum duet__counted what, unsigned index,
                double start_s, double end_s, uint64_t amount)
{
    struct duet__counter *counter = counter_of(counters, what, index);
    counter->amount += amount;
    if (!(start_s < end_s))
        return;
    add_point(counter, start_s, (double)amount);
    add_point(counter, end_s, -(double)amount);
}

/* Sums up points in order: each date once, and only where the value changes. */
static void sum_up(struct duet__counter *counter)
{
    struct duet__moment *points = (struct duet__moment *)(void *)counter->points->data;
    guint count = 0;
    double value = 0;
    g_array_sort(counter->points, by_date); /* stable */
    for (guint i = 0; i < counter->points->len; i++) {
        const double date_s = points[i].date_s, before = count ? points[count - 1].value : 0;
        value = counter->what == DUET_COUNTED_USED ? points[i].value : value + points[i].value;
        if (i + 1 < counter->points->len && points[i + 1].date_s == date_s)
            continue;
        if (value == before)
            continue;
        if (before > 0)
            counter->busy_s += date_s - points[count - 1].date_s;
        points[count++] = (struct duet__moment){date_s, value};
        counter->most = fmax(counter->most, value);
    }
    g_array_set_size(counter->points, count);
}

/* Means of equal intervals, and the last value, in place of more points than that. */
static void thin_out(struct duet__counter *counter, unsigned most)
{
    GArray *all = counter->points;
    const struct duet__moment *from = (const struct duet__moment *)(void *)all->data,
                              *last = from + all->len - 1;
    const double start_s = from->date_s, width_s = (last->date_s - start_s) / (most - 1);
    counter->points = NULL;
    for (unsigned i = 0; i < most - 1; i++) {
        const double end_s = start_s + (i + 1) * width_s;
        double date_s = start_s + i * width_s, sum = 0;
        for (; from < last && from[1].date_s < end_s; from++) {
            sum += from->value * (from[1].date_s - date_s);
            date_s = from[1].date_s;
        }
        sum += from->value * (end_s - date_s);
        add_point(counter, start_s + i * width_s, sum / width_s);
    }
    add_point(counter, last->date_s, last->value);
    g_array_unref(all);
}

static void count_copy(struct duet__counters *counters, const struct duet_machine *machine,
                       const struct duet_event *copy)
{
    const struct duet_route *route = duet_machine_route(machine, copy->source, copy->destination);
    add(counters, DUET_COUNTED_IN, copy->destination, copy->start_s, copy->end_s, copy->bytes);
    add(counters, DUET_COUNTED_OUT, copy->source, copy->start_s, copy->end_s, copy->bytes);
    for (unsigned i = 0; i < route->count; i++)
        add(counters, DUET_COUNTED_LINK, route->links[i], copy->start_s, copy->end_s, copy->bytes);
}

void duet__counters_make(const struct duet__recording *recording, unsigned most,
                         struct duet__counters *out)
{
    const struct duet_machine *machine = recording->machine;
    const unsigned nodes = machine->node_count, count = 1 + 3 * nodes + machine->link_count;
    *out = (struct duet__counters){g_new0(struct duet__counter, count), count, nodes};
    for (unsigned i = 1; i < count; i++) {
        const unsigned what = MIN(1 + (i - 1) / nodes, DUET_COUNTED_LINK);
        out->all[i].what = (enum duet__counted)what;
        out->all[i].index = i - 1 - (what - 1) * nodes;
    }
    for (size_t i = 0; i < recording->event_count; i++) {
        const struct duet_event *event = &recording->events[i];
        if (event->used_bytes)
            add_point(counter_of(out, DUET_COUNTED_USED, duet__shown_in(machine, event)),
                      event->end_s, (double)event->used_bytes);
        if (event->failed)
            continue;
        if (event->kind == DUET_EVENT_COPY)
            count_copy(out, machine, event);
        else
            add(out, DUET_COUNTED_READY, 0, event->ready_s, event->start_s, 1);
    }
    most = MAX(most, 2);
    for (unsigned i = 0; i < count; i++) {
        if (out->all[i].points)
            sum_up(&out->all[i]);
        if (out->all[i].points && out->all[i].points->len > most)
            thin_out(&out->all[i], most);
    }
}

void duet__counters_fini(struct duet__counters *counters)
{
    for (unsigned i = 0; i < counters->count; i++)
        if (counters->all[i].points)
            g_array_unref(counters->all[i].points);
    g_free(counters->all);
    *counters = (struct duet__counters){0};
}

struct duet__node_use *duet__use_make(const struct duet__recording *recording)
{
    struct duet__node_use *uses = g_new0(struct duet__node_use, recording->machine->node_count);
    uint64_t *again_bytes = g_new0(uint64_t, recording->machine->node_count);
    struct duet__counters counters;
    duet__count_again(recording, again_bytes);
    duet__counters_make(recording, 2, &counters);
    for (unsigned i = 0; i < counters.nodes; i++) {
        const struct duet__counter *in = duet__counter(&counters, DUET_COUNTED_IN, i),
                                   *out = duet__counter(&counters, DUET_COUNTED_OUT, i);
        uses[i] =
            (struct duet__node_use){.in_bytes = in->amount,
                                    .out_bytes = out->amount,
                                    /* all data is at home on the host */
                                    .again_bytes =
                                        duet__is_host(recording->machine, i) ? 0 : again_bytes[i],
                                    .in_s = in->busy_s,
                                    .out_s = out->busy_s,
                                    .peak_bytes =
                                        (uint64_t)duet__counter(&counters, DUET_COUNTED_USED, i)
                                            ->most};
    }
    duet__counters_fini(&counters);
    g_free(again_bytes);
    return uses;
}
