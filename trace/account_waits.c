/* SPDX-License-Identifier: Apache-2.0 */
/* Finds which copies a worker waits for while its next task is ready; or whether tasks wait
 * elsewhere. */
#include "trace/account.h"

#include <math.h>

#include "trace/released.h"

/* Copies to and from devices; what leaves one stands for the room that it makes. */
enum duet__state duet__copy_state(const struct duet_machine *machine, const struct duet_event *copy)
{
    if (copy->write_back)
        return DUET_STATE_ROOM;
    if (duet__is_message(machine, copy))
        return DUET_STATE_MESSAGE;
    if (duet__is_host(machine, copy->destination))
        return DUET_STATE_TO_HOST;
    return duet__is_host(machine, copy->source) ? DUET_STATE_TO_DEVICE : DUET_STATE_BETWEEN;
}

/* Adds a stretch before those that there are. */
static void add_stretch(GArray *line, double start_s, double end_s, enum duet__state state)
{
    const struct duet__stretch stretch = {start_s, end_s, state};

    if (start_s < end_s)
        g_array_prepend_val(line, stretch);
}

/*
 * Finds the copies that a task waited for, back from the last one: each of them asked for, then
 * under way. Returns the message that made the task ready, or NULL.
 */
static const struct duet_event *find_copies(const struct duet__recording *recording, size_t task,
                                            GArray *line)
{
    double until_s = recording->events[task].start_s;
    size_t before = task, at = duet__released_by(recording, task);

    g_array_set_size(line, 0);
    for (; at < before && recording->events[at].kind == DUET_EVENT_COPY;
         at = duet__released_by(recording, at)) {
        const struct duet_event *copy = &recording->events[at];
        const enum duet__state state = duet__copy_state(recording->machine, copy);
        double start_s;

        if (state == DUET_STATE_MESSAGE)
            return copy;
        /* a copy still counts from its end until that is noticed, if another one goes on */
        if (!line->len || state == DUET_STATE_ROOM)
            until_s = fmin(until_s, copy->end_s);
        start_s = fmin(fmax(copy->start_s, copy->ready_s), until_s);
        add_stretch(line, start_s, until_s, state);
        add_stretch(line, copy->ready_s, start_s, state == DUET_STATE_ROOM ? state : state - 1);
        until_s = fmin(until_s, copy->ready_s);
        before = at;
    }
    return NULL;
}

/* ------------------------------------------------------------------------------------------- */
/* Tasks that are ready elsewhere                                                               */

/* A date from which on a task more (1), or less (-1), is ready and does not run. */
struct change {
    double date_s;
    int by;
};

static int by_change_date(const void *left, const void *right)
{
    const struct change *a = left, *b = right;

    if (a->date_s != b->date_s)
        return a->date_s < b->date_s ? -1 : 1;
    return (a->by > b->by) - (a->by < b->by);
}

/* The tasks that were ready before they started. */
static GPtrArray *collect_tasks(const struct duet__recording *recording)
{
    GPtrArray *tasks = g_ptr_array_new();

    for (size_t i = 0; i < recording->event_count; i++) {
        struct duet_event *event = &recording->events[i];

        if (event->kind == DUET_EVENT_TASK && event->ready_s < event->start_s)
            g_ptr_array_add(tasks, event);
    }
    return tasks;
}

/* Finds when tasks of one host that an architecture can run are ready and have not started. */
static GArray *find_waiting(const GPtrArray *tasks, const unsigned *hosts, unsigned host,
                            unsigned arch)
{
    g_autoptr(GArray) changes = g_array_new(FALSE, FALSE, sizeof(struct change));
    GArray *all = g_array_new(FALSE, FALSE, sizeof(struct duet__stretch));
    struct duet__stretch stretch = {.state = DUET_STATE_ELSEWHERE};
    int count = 0;

    for (guint i = 0; i < tasks->len; i++) {
        const struct duet_event *event = tasks->pdata[i];
        const struct change ends[] = {{event->ready_s, 1}, {event->start_s, -1}};

        if (hosts[event->source] == host && (!event->where || event->where >> arch & 1))
            g_array_append_vals(changes, ends, 2);
    }
    g_array_sort(changes, by_change_date);
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

/* ------------------------------------------------------------------------------------------- */
/* Messages                                                                                     */

/* Divides the end of a gap, in which the message that made the next task ready was on its way; the
   gap keeps what is before it. */
static void divide_message(const struct duet_event *message, struct duet__gap *gap,
                           const struct duet__gap_sums *sums)
{
    const double asked_s = fmin(fmax(message->ready_s, gap->start_s), gap->end_s),
                 start_s = fmin(fmax(message->start_s, asked_s), gap->end_s),
                 end_s = fmin(fmax(message->end_s, start_s), gap->end_s);
    struct duet__stretch both[] = {{asked_s, start_s, DUET_STATE_MESSAGE_QUEUE},
                                   {start_s, end_s, DUET_STATE_MESSAGE}};
    const GArray line = {(char *)both, G_N_ELEMENTS(both)};
    const struct duet__gap late = {gap->worker, DUET_STATE_OVERHEAD, asked_s, gap->end_s,
                                   gap->next};

    duet__gap_divide(&late, &line, sums);
    gap->end_s = asked_s;
}

/* ------------------------------------------------------------------------------------------- */

void duet__account_divide(const struct duet__recording *recording, const GArray *gaps,
                          const struct duet__gap_sums *sums)
{
    const struct duet_machine *machine = recording->machine;
    g_autoptr(GArray) line = g_array_new(FALSE, FALSE, sizeof(struct duet__stretch));
    const GArray nothing = {NULL, 0};
    const size_t kinds = (size_t)machine->node_count * machine->arch_count;
    GArray **waiting = g_new0(GArray *, kinds); /* waiting tasks, by host and architecture */
    unsigned *hosts = g_new(unsigned, machine->node_count);
    g_autoptr(GPtrArray) tasks = collect_tasks(recording);

    for (unsigned i = 0; i < machine->node_count; i++)
        hosts[i] = duet__host_of(machine, i);
    for (guint i = 0; i < gaps->len; i++) {
        struct duet__gap gap = g_array_index(gaps, struct duet__gap, i);
        const struct duet_worker *worker = &machine->workers[gap.worker];
        const unsigned host = hosts[worker->node];
        GArray **ready = &waiting[(size_t)host * machine->arch_count + worker->arch];
        const struct duet_event *message = NULL;

        g_array_set_size(line, 0);
        if (gap.next < recording->event_count)
            message = find_copies(recording, gap.next, line);
        if (!*ready)
            *ready = find_waiting(tasks, hosts, host, worker->arch);
        if (message && gap.state != DUET_STATE_OVERHEAD)
            divide_message(message, &gap, sums);
        duet__gap_divide(&gap,
                         gap.state == DUET_STATE_OVERHEAD ? line
                         : gap.state == DUET_STATE_LOST   ? &nothing
                                                          : *ready,
                         sums);
    }
    for (size_t i = 0; i < kinds; i++)
        if (waiting[i])
            g_array_unref(waiting[i]);
    g_free(waiting);
    g_free(hosts);
}
