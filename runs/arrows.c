/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kernels and copies waited for. Tasks in conflict run one after the other, so that of those
 * that have ended when a task starts, all that are in conflict with it come before it.
 */
#include "runs/arrows.h"

#include <glib.h>

/* What has ended so far: indices of events, and 1. */
struct ended {
    const struct duet__recording *recording;
    GHashTable *written; /* handle -> the last task that wrote it */
    GHashTable *used;    /* handle -> the last task that used it */
    GHashTable *there;   /* handle * memories + memory -> what wrote or brought it there last */
    GHashTable *tasks;   /* number -> itself */
    uint32_t *workers;   /* the last task of each */
    bool all;
};

static void put(GHashTable *table, uint64_t key, uint32_t event)
{
    g_hash_table_insert(table, GSIZE_TO_POINTER(key), GUINT_TO_POINTER(event));
}

static uint32_t get(GHashTable *table, uint64_t key)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(table, GSIZE_TO_POINTER(key)));
}

static uint64_t place(const struct ended *ended, uint64_t handle, unsigned node)
{
    return handle * ended->recording->machine->node_count + node;
}

static double end_of(const struct ended *ended, uint32_t event)
{
    return event ? ended->recording->events[event - 1].end_s : -G_MAXDOUBLE;
}

static uint32_t later(const struct ended *ended, uint32_t first, uint32_t second)
{
    return end_of(ended, second) > end_of(ended, first) ? second : first;
}

static void end(const struct ended *ended, uint32_t index)
{
    const struct duet__recording *recording = ended->recording;
    const struct duet_event *event = &recording->events[index - 1];

    if (event->kind == DUET_EVENT_COPY) {
        put(ended->there, place(ended, event->id, event->destination), index);
        return;
    }
    for (size_t i = duet__recording_accesses(recording, event->id);
         i < recording->access_count && recording->accesses[i].task == event->id; i++) {
        const struct duet_trace_access *access = &recording->accesses[i];

        put(ended->used, access->handle, index);
        if (access->writes) {
            put(ended->written, access->handle, index);
            put(ended->there, place(ended, access->handle, event->destination), index);
        }
    }
    put(ended->tasks, event->id, index);
    if (event->worker >= 0 && (unsigned)event->worker < recording->machine->worker_count)
        ended->workers[event->worker] = index;
}

static uint32_t waited_for(const struct ended *ended, const struct duet_event *event)
{
    const struct duet__recording *recording = ended->recording;
    uint32_t last = 0;

    if (event->kind == DUET_EVENT_COPY)
        return get(ended->there, place(ended, event->id, event->source));
    for (size_t i = duet__recording_accesses(recording, event->id);
         i < recording->access_count && recording->accesses[i].task == event->id; i++) {
        const struct duet_trace_access *access = &recording->accesses[i];
        GHashTable *const before = access->writes ? ended->used : ended->written;

        if (access->after)
            last = later(ended, last, get(ended->tasks, access->after));
        else
            last = later(ended, last, get(before, access->handle));
        if (access->reads)
            last = later(ended, last,
                         get(ended->there, place(ended, access->handle, event->destination)));
    }
    if (!ended->all && event->worker >= 0 &&
        (unsigned)event->worker < recording->machine->worker_count &&
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

/* Without arrows to copies that nothing waited for. */
static void leave_out(const struct duet__recording *recording, uint32_t *arrows)
{
    bool *waited = g_new0(bool, recording->event_count);

    for (size_t i = recording->event_count; i-- > 0;) {
        if (recording->events[i].kind == DUET_EVENT_COPY && !waited[i])
            arrows[i] = 0;
        if (arrows[i])
            waited[arrows[i] - 1] = true;
    }
    g_free(waited);
}

uint32_t *duet__arrows_make(const struct duet__recording *recording, bool all)
{
    const size_t count = recording->event_count;
    const struct duet_event *events = recording->events;
    struct ended ended = {recording,
                          g_hash_table_new(NULL, NULL),
                          g_hash_table_new(NULL, NULL),
                          g_hash_table_new(NULL, NULL),
                          g_hash_table_new(NULL, NULL),
                          g_new0(uint32_t, recording->machine->worker_count),
                          all};
    uint32_t *arrows = g_new0(uint32_t, count), *order = g_new(uint32_t, count);
    size_t next = 0;

    for (size_t i = 0; i < count; i++)
        order[i] = (uint32_t)(i + 1);
    g_qsort_with_data(order, (gint)count, sizeof *order, by_end, recording->events);
    for (size_t i = 0; i < count && recording->access_count; i++) {
        for (; order[next] <= i && events[order[next] - 1].end_s <= events[i].start_s; next++)
            if (!events[order[next] - 1].failed)
                end(&ended, order[next]);
        if (!events[i].failed)
            arrows[i] = waited_for(&ended, &events[i]);
    }
    leave_out(recording, arrows);
    g_hash_table_unref(ended.written);
    g_hash_table_unref(ended.used);
    g_hash_table_unref(ended.there);
    g_hash_table_unref(ended.tasks);
    g_free(ended.workers);
    g_free(order);
    return arrows;
}
