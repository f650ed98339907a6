/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what released kernels and copies. Where events do not say it, dates do: tasks in conflict
 * run one after the other, so that all tasks that have ended when a task starts, and are in
 * conflict with it, come before it.
 */
#include "trace/recording.h"

/* An event that ends within this of a date may be its reason: the resolution of CUDA's events. */
static const double resolution_s = 1e-6;

const char *const duet__release_names[] = {
    [DUET_RELEASE_SUBMISSION] = "submission",
    [DUET_RELEASE_TASK] = "task",
    [DUET_RELEASE_COPY] = "copy",
    [DUET_RELEASE_ROOM] = "room",
    [DUET_RELEASE_WORKER] = "worker",
    [DUET_RELEASE_OUTSIDE] = "outside",
    NULL,
};

/* ------------------------------------------------------------------------------------------- */
/* Events that have ended                                                                       */

/*
 * Keys of the event that ended last, kept as its index and 1 (0: none): for a handle on a node
 * (WRITTEN, USED); for a handle in a memory, or any there (THERE, handle 0); for a task; for what
 * left a memory (LEFT).
 */
enum last { WRITTEN, USED, THERE, TASK, LEFT };

struct ended {
    const struct duet__recording *recording;
    GHashTable *last;
    uint32_t *order;       /* indices of events, and 1, by end; an event of no length in its turn */
    size_t next;           /* index in `order` of the first that has not ended */
    uint32_t *behind;      /* result of duet__queued_behind */
    uint64_t *again_bytes; /* NULL: not wanted */
};

static gpointer key(const struct ended *ended, enum last what, uint64_t number, unsigned node)
{
    return GSIZE_TO_POINTER((number * ended->recording->machine->node_count + node) << 3 | what);
}

static uint32_t get(const struct ended *ended, enum last what, uint64_t number, unsigned node)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(ended->last, key(ended, what, number, node)));
}

static void put(const struct ended *ended, enum last what, uint64_t number, unsigned node,
                uint32_t event)
{
    g_hash_table_insert(ended->last, key(ended, what, number, node), GUINT_TO_POINTER(event));
}

static double end_of(const struct ended *ended, uint32_t event)
{
    return event ? ended->recording->events[event - 1].end_s : -G_MAXDOUBLE;
}

static uint32_t later(const struct ended *ended, uint32_t first, uint32_t second)
{
    return end_of(ended, second) > end_of(ended, first) ? second : first;
}

/* Notes that the event of that index, and 1, has ended. */
static void end(const struct ended *ended, uint32_t index)
{
    const struct duet__recording *recording = ended->recording;
    const struct duet_event *event = &recording->events[index - 1];
    const unsigned node = event->destination, host = duet__host_of(recording->machine, node);
    if (event->failed)
        return;
    if (event->kind == DUET_EVENT_COPY) {
        const uint32_t before = get(ended, THERE, event->id, node);
        if (ended->again_bytes && before &&
            later(ended, before,
                  get(ended, WRITTEN, event->id,
                      duet__host_of(recording->machine, event->source))) == before)
            ended->again_bytes[node] += event->bytes;
        put(ended, THERE, event->id, node, index);
        put(ended, THERE, 0, node, index);
        if (duet__is_message(recording->machine, event))
            put(ended, WRITTEN, event->id, host, index);
        if (event->write_back)
            put(ended, LEFT, 0, event->source, index);
        return;
    }
    for (size_t i = duet__recording_accesses(recording, event->id);
         i < recording->access_count && recording->accesses[i].task == event->id; i++) {
        const struct duet_trace_access *access = &recording->accesses[i];
        put(ended, USED, access->handle, host, index);
        if (access->writes) {
            put(ended, WRITTEN, access->handle, host, index);
            put(ended, THERE, access->handle, node, index);
        }
    }
    put(ended, TASK, event->id, 0, index);
}

static int by_end(const void *left, const void *right, void *data)
{
    const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    const struct duet_event *events = data;
    if (events[a - 1].end_s != events[b - 1].end_s)
        return events[a - 1].end_s < events[b - 1].end_s ? -1 : 1;
    return (a > b) - (a < b);
}

static uint32_t *order_by_end(const struct duet__recording *recording)
{
    uint32_t *order = g_new(uint32_t, recording->event_count);
    for (size_t i = 0; i < recording->event_count; i++)
        order[i] = (uint32_t)(i + 1);
    g_qsort_with_data(order, (gint)recording->event_count, sizeof *order, by_end,
                      recording->events);
    return order;
}

static void begin(struct ended *ended, const struct duet__recording *recording)
{
    *ended = (struct ended){.recording = recording,
                            .last = g_hash_table_new(NULL, NULL),
                            .order = order_by_end(recording)};
}

static void finish(struct ended *ended)
{
    g_hash_table_unref(ended->last);
    g_free(ended->order);
    g_free(ended->behind);
}

void duet__count_again(const struct duet__recording *recording, uint64_t *again_bytes)
{
    struct ended ended;
    if (!recording->access_count)
        return;
    begin(&ended, recording);
    ended.again_bytes = again_bytes;
    while (ended.next < recording->event_count)
        end(&ended, ended.order[ended.next++]);
    finish(&ended);
}

/* ------------------------------------------------------------------------------------------- */
/* Candidates for what released an event                                                        */

/* Returns the index and 1 of the task before an event that ended last by a date; 0: none. */
static uint32_t last_task(const struct ended *ended, double date_s, size_t event)
{
    const struct duet_event *events = ended->recording->events;
    size_t low = 0, high = ended->recording->event_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (events[ended->order[middle] - 1].end_s <= date_s + resolution_s)
            low = middle + 1;
        else
            high = middle;
    }
    while (low && (events[ended->order[low - 1] - 1].kind != DUET_EVENT_TASK ||
                   ended->order[low - 1] > event))
        low--;
    return low ? ended->order[low - 1] : 0;
}

static void release(const struct ended *ended, struct duet_event *event, uint32_t by)
{
    const struct duet_event *from = by ? &ended->recording->events[by - 1] : NULL;
    event->released_by = by;
    event->release = !from                           ? DUET_RELEASE_SUBMISSION
                     : from->kind == DUET_EVENT_TASK ? DUET_RELEASE_TASK
                     : from->write_back && from->source == event->destination ? DUET_RELEASE_ROOM
                                                                              : DUET_RELEASE_COPY;
}

static void guess_copy(const struct ended *ended, struct duet_event *copy)
{
    const uint32_t room = get(ended, LEFT, 0, copy->destination);
    release(ended, copy,
            later(ended, get(ended, THERE, copy->id, copy->source),
                  end_of(ended, room) > copy->ready_s + resolution_s ? 0 : room));
}

/* A copy that nothing released was asked for when the task that needs it could be, or when its
   worker had ended the one before. */
static void pass_on(const struct ended *ended, size_t event, uint32_t task)
{
    struct duet_event *events = ended->recording->events;
    size_t at = event;
    uint32_t worker = ended->behind[event];
    while (events[at].released_by && events[events[at].released_by - 1].kind == DUET_EVENT_COPY)
        at = events[at].released_by - 1;
    if (events[at].kind != DUET_EVENT_COPY || events[at].released_by)
        return;
    while (worker && end_of(ended, worker) > events[at].ready_s + resolution_s)
        worker = ended->behind[worker - 1];
    if (end_of(ended, task) > events[at].ready_s + resolution_s)
        task = 0;
    release(ended, &events[at], later(ended, task, worker));
    if (worker && events[at].released_by == worker)
        events[at].release = DUET_RELEASE_WORKER;
}

static void guess_task(const struct ended *ended, size_t event)
{
    const struct duet__recording *recording = ended->recording;
    struct duet_event *own = &recording->events[event];
    const unsigned host = duet__host_of(recording->machine, own->destination);
    uint32_t task = 0, last = 0;
    for (size_t i = duet__recording_accesses(recording, own->id);
         i < recording->access_count && recording->accesses[i].task == own->id; i++) {
        const struct duet_trace_access *access = &recording->accesses[i];
        task = later(ended, task,
                     access->after
                         ? get(ended, TASK, access->after, 0)
                         : get(ended, access->writes ? USED : WRITTEN, access->handle, host));
        if (access->reads)
            last = later(ended, last, get(ended, THERE, access->handle, own->destination));
    }
    if (!task && own->ready_s > own->submit_s)
        task = last_task(ended, own->ready_s, event);
    if (!recording->access_count)
        last = later(ended, get(ended, THERE, 0, own->destination),
                     get(ended, LEFT, 0, own->destination));
    last = later(ended, task, last);
    release(ended, own, end_of(ended, last) < own->submit_s ? 0 : last);
    if (own->released_by && own->release != DUET_RELEASE_TASK)
        pass_on(ended, event, task);
}

/* Guesses what released a message, or data from outside: the message that brought it. */
static void guess_message(const struct ended *ended, struct duet_event *event)
{
    const struct duet__recording *recording = ended->recording;
    const uint32_t last = get(ended, WRITTEN, event->released_by,
                              duet__host_of(recording->machine, event->destination));
    if (event->kind == DUET_EVENT_COPY && duet__is_message(recording->machine, event))
        guess_copy(ended, event);
    else if (event->release == DUET_RELEASE_OUTSIDE && last &&
             recording->events[last - 1].kind == DUET_EVENT_COPY)
        release(ended, event, last);
}

void duet__releases_guess(struct duet__recording *recording, bool messages)
{
    struct duet_event *events = recording->events;
    struct ended ended;
    begin(&ended, recording);
    ended.behind = duet__queued_behind(recording);
    for (size_t i = 0; i < recording->event_count; i++) {
        for (; ended.order[ended.next] <= i &&
               events[ended.order[ended.next] - 1].end_s <= events[i].start_s + resolution_s;
             ended.next++)
            end(&ended, ended.order[ended.next]);
        if (messages)
            guess_message(&ended, &events[i]);
        else if (events[i].kind == DUET_EVENT_COPY)
            guess_copy(&ended, &events[i]);
        else if (!events[i].failed)
            guess_task(&ended, i);
    }
    finish(&ended);
}

/* ------------------------------------------------------------------------------------------- */
/* Queues, arrows, and data that came again                                                     */

static bool runs(const struct duet__recording *recording, const struct duet_event *event)
{
    return event->kind == DUET_EVENT_TASK &&
           (unsigned)event->worker < recording->machine->worker_count;
}

uint32_t *duet__queued_behind(const struct duet__recording *recording)
{
    const struct duet_event *events = recording->events;
    const unsigned workers = recording->machine->worker_count;
    uint32_t *order = order_by_end(recording), *last = g_new0(uint32_t, workers);
    uint32_t *behind = g_new0(uint32_t, recording->event_count + 1);
    size_t next = 0;
    for (size_t i = 0; i < recording->event_count; i++) {
        for (; order[next] <= i && events[order[next] - 1].end_s <= events[i].start_s; next++)
            if (runs(recording, &events[order[next] - 1]))
                last[events[order[next] - 1].worker] = order[next];
        if (runs(recording, &events[i]))
            behind[i] = last[events[i].worker];
    }
    g_free(last);
    g_free(order);
    return behind;
}

/* Returns true if what released an event has to do with the data of a copy. */
static bool concerns(const struct duet__recording *recording, const struct duet_event *from,
                     const struct duet_event *copy)
{
    if (from->kind == DUET_EVENT_COPY)
        return from->id == copy->id;
    for (size_t i = duet__recording_accesses(recording, from->id);
         i < recording->access_count && recording->accesses[i].task == from->id; i++)
        if (recording->accesses[i].writes && recording->accesses[i].handle == copy->id)
            return true;
    return false;
}

uint32_t *duet__arrows_make(const struct duet__recording *recording, bool all)
{
    const struct duet_event *events = recording->events;
    const size_t count = recording->event_count;
    uint32_t *behind = duet__queued_behind(recording);
    bool *waited = g_new0(bool, count);
    uint32_t *arrows = g_new0(uint32_t, count);
    for (size_t i = count; i-- > 0;) {
        const size_t by = duet__released_by(recording, i);
        if (by >= i || events[i].failed || events[i].release > DUET_RELEASE_COPY ||
            (events[i].kind == DUET_EVENT_COPY &&
             (!waited[i] || !concerns(recording, &events[by], &events[i]))) ||
            (!all && behind[i] && events[behind[i] - 1].end_s > events[by].end_s))
            continue;
        arrows[i] = (uint32_t)by + 1;
        waited[by] = true;
    }
    g_free(waited);
    g_free(behind);
    return arrows;
}
