/* SPDX-License-Identifier: Apache-2.0 */
/* Workers without a ready task: whether there was one that they could have run elsewhere. */
#include "validate/account.h"

/* From here on a task more, or less, is ready and does not run. */
struct change {
    double date_s;
    int by;
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
    GArray *all = g_array_new(FALSE, FALSE, sizeof(struct duet__stretch));
    struct duet__stretch stretch = {.state = DUET_STATE_ELSEWHERE};
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
    }
    return all;
}

void duet__account_idle(const struct duet__recording *recording, const GArray *gaps,
                        const struct duet__gap_sums *sums)
{
    const struct duet_machine *machine = recording->machine;
    const GArray nothing = {NULL, 0};
    GArray **waiting = g_new0(GArray *, machine->arch_count);

    for (guint i = 0; i < gaps->len; i++) {
        const struct duet__gap *gap = &g_array_index(gaps, struct duet__gap, i);
        const unsigned arch = machine->workers[gap->worker].arch;
        const bool lost = gap->state == DUET_STATE_LOST;

        if (!waiting[arch])
            waiting[arch] = find_waiting(recording, arch);
        duet__gap_divide(gap, lost ? &nothing : waiting[arch], sums);
    }
    for (unsigned i = 0; i < machine->arch_count; i++)
        if (waiting[i])
            g_array_unref(waiting[i]);
    g_free(waiting);
}
