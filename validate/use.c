/* SPDX-License-Identifier: Apache-2.0 */
/* What links and memories were used for, replayed from the records of a run. */
#include <math.h>

#include "validate/path.h"

/* What a memory has of a handle. */
struct replica {
    uint64_t bytes;
    uint64_t version; /* of the data that it has had */
    bool there;
};

/* Data arrives, or a task has used it. */
struct moment {
    double date_s;
    const struct duet_event *event;
};

struct replay {
    const struct duet__recording *recording;
    struct duet__node_use *uses;
    uint64_t *held;       /* bytes, by memory */
    GHashTable *replicas; /* handle * memories + memory -> struct replica */
    GHashTable *versions; /* handle -> how often it was written */
};

static int by_date(const void *left, const void *right)
{
    const struct moment *a = left, *b = right;

    if (a->date_s != b->date_s)
        return a->date_s < b->date_s ? -1 : 1;
    return (int)a->event->kind - (int)b->event->kind; /* data is written before it is copied */
}

static struct replica *find(const struct replay *replay, uint64_t handle, unsigned node)
{
    gpointer key = GSIZE_TO_POINTER(handle * replay->recording->machine->node_count + node);
    struct replica *replica = g_hash_table_lookup(replay->replicas, key);

    if (!replica) {
        replica = g_new0(struct replica, 1);
        g_hash_table_insert(replay->replicas, key, replica);
    }
    return replica;
}

static uint64_t version_of(const struct replay *replay, uint64_t handle)
{
    return GPOINTER_TO_SIZE(g_hash_table_lookup(replay->versions, GSIZE_TO_POINTER(handle))) + 1;
}

static void leave(struct replay *replay, struct replica *replica, unsigned node)
{
    if (replica->there)
        replay->held[node] -= replica->bytes;
    replica->there = false;
}

static void come(struct replay *replay, uint64_t handle, unsigned node, uint64_t bytes)
{
    struct replica *replica = find(replay, handle, node);
    uint64_t *peak = &replay->uses[node].peak_bytes;

    leave(replay, replica, node);
    *replica = (struct replica){bytes, version_of(replay, handle), true};
    replay->held[node] += bytes;
    *peak = MAX(*peak, replay->held[node]);
}

static void copied(struct replay *replay, const struct duet_event *copy)
{
    const struct replica *replica = find(replay, copy->id, copy->destination);

    if (replica->version == version_of(replay, copy->id))
        replay->uses[copy->destination].again_bytes += copy->bytes;
    come(replay, copy->id, copy->destination, copy->bytes);
    if (copy->write_back)
        leave(replay, find(replay, copy->id, copy->source), copy->source);
}

/* What a task has written is worth nothing in other memories. */
static void written(struct replay *replay, const struct duet_event *task)
{
    const struct duet__recording *recording = replay->recording;

    for (size_t i = duet__recording_accesses(recording, task->id);
         i < recording->access_count && recording->accesses[i].task == task->id; i++) {
        const struct duet_trace_access *access = &recording->accesses[i];

        if (!access->handle || !access->writes)
            continue;
        for (unsigned node = 0; node < recording->machine->node_count; node++)
            leave(replay, find(replay, access->handle, node), node);
        g_hash_table_insert(replay->versions, GSIZE_TO_POINTER(access->handle),
                            GSIZE_TO_POINTER(version_of(replay, access->handle)));
        come(replay, access->handle, task->destination, access->bytes);
    }
}

static void cap(const struct duet_machine *machine, struct duet__node_use *uses)
{
    for (unsigned i = 0; i < machine->node_count; i++)
        if (machine->nodes[i].capacity_bytes)
            uses[i].peak_bytes = MIN(uses[i].peak_bytes, machine->nodes[i].capacity_bytes);
    uses[DUET_HOST].peak_bytes = uses[DUET_HOST].again_bytes = 0; /* all data is at home there */
}

struct duet__node_use *duet__use_make(const struct duet__recording *recording)
{
    const struct duet_machine *machine = recording->machine;
    struct duet__node_use *uses = g_new0(struct duet__node_use, machine->node_count);
    uint64_t *held = g_new0(uint64_t, machine->node_count);
    double *until_s = g_new0(double, 2 * (size_t)machine->node_count);
    g_autoptr(GArray) moments = g_array_new(FALSE, FALSE, sizeof(struct moment));
    struct replay replay = {recording, uses, held, g_hash_table_new_full(NULL, NULL, NULL, g_free),
                            g_hash_table_new(NULL, NULL)};

    for (size_t i = 0; i < recording->event_count; i++) {
        const struct duet_event *event = &recording->events[i];
        const struct moment moment = {event->end_s, event};
        const unsigned ends[] = {event->destination, event->source};

        if (event->failed)
            continue;
        g_array_append_val(moments, moment);
        for (unsigned k = 0; k < 2 && event->kind == DUET_EVENT_COPY; k++) {
            struct duet__node_use *use = &uses[ends[k]];
            double *last_s = &until_s[2 * ends[k] + k];

            *(k ? &use->out_bytes : &use->in_bytes) += event->bytes;
            *(k ? &use->out_s : &use->in_s) +=
                fmax(event->end_s - fmax(event->start_s, *last_s), 0);
            *last_s = fmax(*last_s, event->end_s);
        }
    }
    g_array_sort(moments, by_date);
    for (guint i = 0; i < moments->len && recording->access_count; i++) {
        const struct duet_event *event = g_array_index(moments, struct moment, i).event;

        if (event->kind == DUET_EVENT_COPY)
            copied(&replay, event);
        else
            written(&replay, event);
    }
    g_hash_table_unref(replay.replicas);
    g_hash_table_unref(replay.versions);
    g_free(until_s);
    g_free(held);
    cap(machine, uses);
    return uses;
}
