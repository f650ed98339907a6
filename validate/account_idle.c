/* SPDX-License-Identifier: Apache-2.0 */
/* Workers without a ready task: whether there was one that they could have run elsewhere. */
#include "validate/account.h"

#include <math.h>

/* From here on a task more, or less, is ready and does not run. */
struct change {
    double date_s;
    int by;
};

/* A stretch in which there is such a task, and the seconds of all before it. */
struct waiting {
    double start_s, end_s, before_s;
};

static int by_date(const void *left, const void *right)
{
    const struct change *a = left, *b = right;

    if (a->date_s != b->date_s)
        return a->date_s < b->date_s ? -1 : 1;
    return (a->by > b->by) - (a->by < b->by);
}

/* When tasks that an architecture can run are ready and have not started. */
static GArray *find_waiting(const struct duet__recording *recording, unsigned arch)
{
    g_autoptr(GArray) changes = g_array_new(FALSE, FALSE, sizeof(struct change));
    GArray *all = g_array_new(FALSE, FALSE, sizeof(struct waiting));
    struct waiting stretch = {0};
    int count = 0;

    for (size_t i = 0; i < recording->event_count; i++) {
        const struct duet_event *event = &recording->events[i];
        const struct change ends[] = {{event->ready_s, 1}, {event->start_s, -1}};

        if (event->kind == DUET_EVENT_TASK && event->ready_s < event->start_s &&
            (!event->where || event->where >> arch & 1))
            g_array_append_vals(changes, ends, 2);
    }
    g_array_sort(changes, by_date);
    for (guint i = 0; i < changes->len; i++) {
        const struct change *change = &g_array_index(changes, struct change, i);

        if (!count)
            stretch.start_s = change->date_s;
        count += change->by;
        if (count)
            continue;
        stretch.end_s = change->date_s;
        g_array_append_val(all, stretch);
        stretch.before_s += stretch.end_s - stretch.start_s;
    }
    return all;
}

/* Seconds of the stretches up to a date. */
static double seconds_until(const GArray *all, double date_s)
{
    guint low = 0, high = all->len;
    const struct waiting *last;

    while (low < high) {
        guint middle = low + (high - low) / 2;

        if (g_array_index(all, struct waiting, middle).start_s < date_s)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low)
        return 0;
    last = &g_array_index(all, struct waiting, low - 1);
    return last->before_s + fmin(date_s, last->end_s) - last->start_s;
}

void duet__account_idle(const struct duet__recording *recording, const GArray *gaps,
                        double (*states_s)[DUET_STATES])
{
    const struct duet_machine *machine = recording->machine;
    GArray **waiting = g_new0(GArray *, machine->arch_count);

    for (guint i = 0; i < gaps->len; i++) {
        const struct duet__gap *gap = &g_array_index(gaps, struct duet__gap, i);
        const unsigned arch = machine->workers[gap->worker].arch;
        const double whole_s = gap->end_s - gap->start_s;
        double seconds;

        if (!waiting[arch])
            waiting[arch] = find_waiting(recording, arch);
        seconds =
            seconds_until(waiting[arch], gap->end_s) - seconds_until(waiting[arch], gap->start_s);
        seconds = fmin(fmax(seconds, 0), whole_s);
        states_s[gap->worker][DUET_STATE_ELSEWHERE] += seconds;
        states_s[gap->worker][gap->state] += whole_s - seconds;
    }
    for (unsigned i = 0; i < machine->arch_count; i++)
        if (waiting[i])
            g_array_unref(waiting[i]);
    g_free(waiting);
}
