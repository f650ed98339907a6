/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kernels and copies waited for. Tasks in conflict run one after the other, so that of those
 * that have ended when a task starts, all that are in conflict with it come before it.
 */
#include "trace/arrows.h"

#include <glib.h>

/* What ended last of something, as the index of its event, and 1; 0: nothing has. */
enum last { WRITTEN, USED, THERE, TASK }; /* of a handle on a node, of one in a memory; of a task */

struct ended {
    const struct duet__recording *recording;
    GHashTable *last;
    uint32_t *workers; /* the last task of each */
};

static gpointer key(const struct ended *ended, enum last what, uint64_t number, unsigned node)
{
    return GSIZE_TO_POINTER((number * ended->recording->machine->node_count + node) << 2 | what);
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

/* The event of that index, and 1, has ended. */
static void end(const struct ended *ended, uint32_t index, uint64_t *again_bytes)
{
    const struct duet__recording *recording = ended->recording;
    const struct duet_event *event = &recording->events[index - 1];
    const unsigned node = event->destination, host = duet__host_of(recording->machine, node);

    if (event->failed)
        return;
    if (event->kind == DUET_EVENT_COPY) {
        const uint32_t before = get(ended, THERE, event->id, node);

        if (again_bytes && before &&
            later(ended, before,
                  get(ended, WRITTEN, event->id,
                      duet__host_of(recording->machine, event->source))) == before)
            again_bytes[node] += event->bytes;
        put(ended, THERE, event->id, node, index);
        if (duet__is_message(recording->machine, event))
            put(ended, WRITTEN, event->id, host, index);
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
    if ((unsigned)event->worker < recording->machine->worker_count)
        ended->workers[event->worker] = index;
}

static uint32_t waited_for(const struct ended *ended, const struct duet_event *event, bool all)
{
    const struct duet__recording *recording = ended->recording;
    const unsigned host = duet__host_of(recording->machine, event->destination);
    uint32_t last = 0;

    if (event->kind == DUET_EVENT_COPY)
        return get(ended, THERE, event->id, event->source);
    for (size_t i = duet__recording_accesses(recording, event->id);
         i < recording->access_count && recording->accesses[i].task == event->id; i++) {
        const struct duet_trace_access *access = &recording->accesses[i];

        if (access->after)
            last = later(ended, last, get(ended, TASK, access->after, 0));
        else
            last = later(ended, last,
                         get(ended, access->writes ? USED : WRITTEN, access->handle, host));
        if (access->reads)
            last = later(ended, last, get(ended, THERE, access->handle, event->destination));
    }
    if (!all && (unsigned)event->worker < recording->machine->worker_count &&
        end_of(ended, ended->workers[event->worker]) > end_of(ended, last))
        return 0;
    return last;
}

/* Indices, and 1, by end; what has no length counts in its turn. */
static int by_end(const void *left, const void *right, void *data)
{
    const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    const struct duet_event *events = data;

    if (events[a - 1].end_s != events[b - 1].end_s)
        return events[a - 1].end_s < events[b - 1].end_s ? -1 : 1;
    return (a > b) - (a < b);
}

uint32_t *duet__arrows_make(const struct duet__recording *recording, bool all,
                            uint64_t *again_bytes)
{
    const size_t count = recording->access_count ? recording->event_count : 0;
    const struct duet_event *events = recording->events;
    const struct ended ended = {recording, g_hash_table_new(NULL, NULL),
                                g_new0(uint32_t, recording->machine->worker_count)};
    uint32_t *arrows = g_new0(uint32_t, recording->event_count), *order = g_new(uint32_t, count);
    bool *waited = g_new0(bool, count);
    size_t next = 0;

    for (size_t i = 0; i < count; i++)
        order[i] = (uint32_t)(i + 1);
    g_qsort_with_data(order, (gint)count, sizeof *order, by_end, recording->events);
    for (size_t i = 0; i < count; i++) {
        for (; order[next] <= i && events[order[next] - 1].end_s <= events[i].start_s; next++)
            end(&ended, order[next], again_bytes);
        arrows[i] = events[i].failed ? 0 : waited_for(&ended, &events[i], all);
    }
    for (; next < count; next++)
        end(&ended, order[next], again_bytes);
    for (size_t i = count; i-- > 0;) { /* none to copies that nothing waited for */
        if (events[i].kind == DUET_EVENT_COPY && !waited[i])
            arrows[i] = 0;
        if (arrows[i])
            waited[arrows[i] - 1] = true;
    }
    g_hash_table_unref(ended.last);
    g_free(ended.workers);
    g_free(order);
    g_free(waited);
    return arrows;
}
