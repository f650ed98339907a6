/* SPDX-License-Identifier: Apache-2.0 */
/* Which copies a worker waits for while its next task is ready; else, whether others wait
 * elsewhere. */
#include "trace/account.h"

#include <math.h>
#include <string.h>

/*
 * A copy that ends later than a kernel starts is not waited for by it, but for the resolution of
 * the dates: that of CUDA's events is about half a microsecond.
 */
static const double resolution_s = 1e-6;

/*
 * A copy through the host continues when the end of its first half has been noticed, which takes a
 * thread that is not kept from it much less. What begins later has another reason.
 */
static const double notice_s = 1e-3;

/* A task that a message makes ready is so when its coming has been noticed. */
static const double message_s = 5e-5;

/* From when to when somebody who works in the memory `node` may wait for a copy. */
struct wait {
    unsigned node;
    enum duet__state state;
    double start_s, end_s;
    double last_s;             /* end of the copy that goes on from it, or its own */
    double asked_s, arrived_s; /* of the copy that it is a part of */
};

static int by_end(const void *left, const void *right)
{
    const struct wait *a = left, *b = right;

    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    if (a->last_s != b->last_s)
        return a->last_s < b->last_s ? -1 : 1;
    if (a->arrived_s != b->arrived_s)
        return a->arrived_s < b->arrived_s ? -1 : 1;
    if (a->asked_s != b->asked_s)
        return a->asked_s < b->asked_s ? -1 : 1;
    return (a->state > b->state) - (a->state < b->state);
}

static int by_gap_end(const void *left, const void *right, void *machine)
{
    const struct duet__gap *a = left, *b = right;
    const struct duet_worker *workers = ((const struct duet_machine *)machine)->workers;

    if (workers[a->worker].node != workers[b->worker].node)
        return workers[a->worker].node < workers[b->worker].node ? -1 : 1;
    return (a->end_s > b->end_s) - (a->end_s < b->end_s);
}

static int by_handle(const void *left, const void *right)
{
    const struct duet_event *a = *(const struct duet_event *const *)left;
    const struct duet_event *b = *(const struct duet_event *const *)right;

    if (a->destination != b->destination)
        return a->destination < b->destination ? -1 : 1;
    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    return (a->end_s > b->end_s) - (a->end_s < b->end_s);
}

static int by_arrival(const void *left, const void *right)
{
    const struct duet_event *a = *(const struct duet_event *const *)left;
    const struct duet_event *b = *(const struct duet_event *const *)right;

    if (a->destination != b->destination)
        return a->destination < b->destination ? -1 : 1;
    return (a->end_s > b->end_s) - (a->end_s < b->end_s);
}

/* The copies to the host, or the messages to its node, by it, then handle, or end. */
static GPtrArray *collect_to_host(const struct duet__recording *recording, bool messages)
{
    GPtrArray *copies = g_ptr_array_new();

    for (size_t i = 0; i < recording->event_count; i++)
        if (recording->events[i].kind == DUET_EVENT_COPY &&
            duet__is_host(recording->machine, recording->events[i].destination) &&
            duet__is_message(recording->machine, &recording->events[i]) == messages)
            g_ptr_array_add(copies, &recording->events[i]);
    g_ptr_array_sort(copies, messages ? by_arrival : by_handle);
    return copies;
}

/* The last of copies in that order that does not come after the key; NULL: none. */
static const struct duet_event *last_until(const GPtrArray *copies, const struct duet_event *key,
                                           GCompareFunc compare)
{
    guint low = 0, high = copies->len;

    while (low < high) {
        const guint middle = low + (high - low) / 2;

        if (compare(&copies->pdata[middle], &key) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? copies->pdata[low - 1] : NULL;
}

/* The copy to the host from which `copy`, to a device, goes on; NULL: it was there before. */
static const struct duet_event *first_half(const struct duet_event *copy, const GPtrArray *to_host)
{
    /* the last one of this handle that has ended when the second half is decided */
    const struct duet_event key = {.destination = copy->source,
                                   .id = copy->id,
                                   .end_s = copy->ready_s + resolution_s};
    const struct duet_event *before = last_until(to_host, &key, by_handle);

    return before && before->destination == copy->source && before->id == copy->id &&
                   before->end_s >= copy->ready_s - notice_s
               ? before
               : NULL;
}

/* A copy is asked for, then under way; both count to the end of `last_s`. */
static void add_wait(const struct duet_event *copy, unsigned node, enum duet__state queue,
                     enum duet__state state, double last_s, GArray *waits)
{
    const double end_s = fmin(copy->end_s, last_s),
                 start_s = fmin(fmax(copy->start_s, copy->ready_s), end_s);
    const struct wait both[] = {
        {.node = node, .state = queue, .start_s = copy->ready_s, .end_s = start_s},
        {.node = node, .state = state, .start_s = start_s, .end_s = end_s},
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(both); i++) {
        struct wait wait = both[i];

        wait.last_s = last_s;
        wait.asked_s = copy->ready_s;
        wait.arrived_s = end_s;
        if (wait.start_s < wait.end_s)
            g_array_append_val(waits, wait);
    }
}

/* What may be waited for because of one copy: by those who work where it arrives or comes from. */
static void add_waits(const struct duet_machine *machine, const struct duet_event *copy,
                      const GPtrArray *to_host, GArray *waits)
{
    const struct duet_event *before;

    if (duet__is_message(machine, copy))
        return; /* no task is ready before it has come */
    if (duet__is_host(machine, copy->destination)) {
        /* a device waits for the room that it makes, the host for the data that it was asked for */
        if (copy->write_back)
            add_wait(copy, copy->source, DUET_STATE_ROOM, DUET_STATE_ROOM, copy->end_s, waits);
        else
            add_wait(copy, copy->destination, DUET_STATE_TO_HOST_QUEUE, DUET_STATE_TO_HOST,
                     copy->end_s, waits);
        return;
    }
    if (!duet__is_host(machine, copy->source)) {
        add_wait(copy, copy->destination, DUET_STATE_BETWEEN_QUEUE, DUET_STATE_BETWEEN, copy->end_s,
                 waits);
        return;
    }
    add_wait(copy, copy->destination, DUET_STATE_TO_DEVICE_QUEUE, DUET_STATE_TO_DEVICE, copy->end_s,
             waits);
    before = first_half(copy, to_host);
    if (before && before->ready_s < copy->ready_s) {
        /* from its end until that has been noticed it still counts as the first half */
        struct duet_event half = *before;

        half.end_s = copy->ready_s;
        add_wait(&half, copy->destination, DUET_STATE_TO_HOST_QUEUE, DUET_STATE_TO_HOST,
                 copy->end_s, waits);
    }
}

static GArray *collect_waits(const struct duet__recording *recording)
{
    g_autoptr(GPtrArray) to_host = collect_to_host(recording, false);
    GArray *waits = g_array_new(FALSE, FALSE, sizeof(struct wait));

    for (size_t i = 0; i < recording->event_count; i++)
        if (recording->events[i].kind == DUET_EVENT_COPY)
            add_waits(recording->machine, &recording->events[i], to_host, waits);
    g_array_sort(waits, by_end);
    return waits;
}

/*
 * Of several copies that are waited for at once, the one that ends last is what keeps the kernel
 * waiting. They come in this order, so that each takes what it covers from those before it.
 */
static void paint(GArray *line, const struct wait *wait)
{
    const struct duet__stretch stretch = {wait->start_s, wait->end_s, wait->state};
    struct duet__stretch *all = (void *)line->data;

    while (line->len && all[line->len - 1].start_s >= wait->start_s)
        g_array_set_size(line, line->len - 1);
    if (line->len)
        all[line->len - 1].end_s = fmin(all[line->len - 1].end_s, wait->start_s);
    g_array_append_val(line, stretch);
}

/* ------------------------------------------------------------------------------------------- */
/* Tasks that are ready elsewhere                                                               */

/* From here on a task more, or less, is ready and does not run. */
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

static int by_host(const void *left, const void *right, void *hosts)
{
    const struct duet_event *a = *(const struct duet_event *const *)left;
    const struct duet_event *b = *(const struct duet_event *const *)right;
    const unsigned *host = hosts;

    return (host[a->source] > host[b->source]) - (host[a->source] < host[b->source]);
}

/* The tasks that were ready before they started, host by host. */
static GPtrArray *collect_tasks(const struct duet__recording *recording, unsigned *hosts)
{
    GPtrArray *tasks = g_ptr_array_new();

    for (size_t i = 0; i < recording->event_count; i++) {
        struct duet_event *event = &recording->events[i];

        if (event->kind == DUET_EVENT_TASK && event->ready_s < event->start_s)
            g_ptr_array_add(tasks, event);
    }
    g_ptr_array_sort_with_data(tasks, by_host, hosts);
    return tasks;
}

/* When tasks from the one at `first` on, of one host, that an architecture can run are ready and
   have not started. */
static GArray *find_waiting(const GPtrArray *tasks, guint first, const unsigned *hosts,
                            unsigned host, unsigned arch)
{
    g_autoptr(GArray) changes = g_array_new(FALSE, FALSE, sizeof(struct change));
    GArray *all = g_array_new(FALSE, FALSE, sizeof(struct duet__stretch));
    struct duet__stretch stretch = {.state = DUET_STATE_ELSEWHERE};
    int count = 0;

    for (guint i = first; i < tasks->len; i++) {
        const struct duet_event *event = tasks->pdata[i];
        const struct change ends[] = {{event->ready_s, 1}, {event->start_s, -1}};

        if (hosts[event->source] != host)
            break;
        if (!event->where || event->where >> arch & 1)
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

/* The last message that has come to a host by a date, if the date is that of its coming; NULL. */
static const struct duet_event *arrived(const GPtrArray *messages, unsigned host, double date_s)
{
    const struct duet_event key = {.destination = (uint16_t)host, .end_s = date_s + resolution_s};
    const struct duet_event *last = last_until(messages, &key, by_arrival);

    return last && last->destination == host && last->end_s >= date_s - message_s ? last : NULL;
}

/* The end of a gap in which a message was on its way that made the next task ready; what is left of
   the gap is before it. */
static void divide_message(const struct duet_event *message, struct duet__gap *gap,
                           const struct duet__gap_sums *sums)
{
    const double asked_s = fmin(fmax(message->ready_s, gap->start_s), gap->end_s),
                 start_s = fmin(fmax(message->start_s, asked_s), gap->end_s),
                 end_s = fmin(fmax(message->end_s, start_s), gap->end_s);
    struct duet__stretch both[] = {{asked_s, start_s, DUET_STATE_MESSAGE_QUEUE},
                                   {start_s, end_s, DUET_STATE_MESSAGE}};
    const GArray line = {(char *)both, G_N_ELEMENTS(both)};
    const struct duet__gap late = {gap->worker, DUET_STATE_OVERHEAD, asked_s, gap->end_s};

    duet__gap_divide(&late, &line, sums);
    gap->end_s = asked_s;
}

/* ------------------------------------------------------------------------------------------- */

/* Memory by memory in order of their ends, each beside the copies that have ended by then. */
void duet__account_divide(const struct duet__recording *recording, GArray *gaps,
                          const struct duet__gap_sums *sums)
{
    const struct duet_machine *machine = recording->machine;
    g_autoptr(GArray) waits = collect_waits(recording);
    g_autoptr(GArray) line = g_array_new(FALSE, FALSE, sizeof(struct duet__stretch));
    g_autoptr(GPtrArray) messages = collect_to_host(recording, true);
    const GArray nothing = {NULL, 0};
    const size_t kinds = (size_t)machine->node_count * machine->arch_count;
    GArray **waiting = g_new0(GArray *, kinds); /* by host and architecture */
    unsigned *hosts = g_new(unsigned, machine->node_count);
    g_autoptr(GPtrArray) tasks = NULL;
    guint next = 0, first = 0;

    for (unsigned i = 0; i < machine->node_count; i++)
        hosts[i] = duet__host_of(machine, i);
    tasks = collect_tasks(recording, hosts);
    g_array_sort_with_data(gaps, by_gap_end, (void *)(uintptr_t)machine);
    for (guint i = 0; i < gaps->len; i++) {
        struct duet__gap gap = g_array_index(gaps, struct duet__gap, i);
        const struct duet_worker *worker = &machine->workers[gap.worker];
        const unsigned host = hosts[worker->node];
        GArray **ready = &waiting[(size_t)host * machine->arch_count + worker->arch];
        const bool before = gap.state == DUET_STATE_BEFORE || gap.state == DUET_STATE_WITHIN;
        const struct duet_event *message = before ? arrived(messages, host, gap.end_s) : NULL;

        if (i && worker->node !=
                     machine->workers[g_array_index(gaps, struct duet__gap, i - 1).worker].node)
            g_array_set_size(line, 0);
        for (; next < waits->len; next++) {
            const struct wait *wait = &g_array_index(waits, struct wait, next);

            if (wait->node > worker->node ||
                (wait->node == worker->node && wait->last_s > gap.end_s + resolution_s))
                break;
            if (wait->node == worker->node)
                paint(line, wait);
        }
        while (first < tasks->len &&
               hosts[((const struct duet_event *)tasks->pdata[first])->source] < host)
            first++;
        if (!*ready)
            *ready = find_waiting(tasks, first, hosts, host, worker->arch);
        if (message)
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
