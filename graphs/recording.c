/* SPDX-License-Identifier: Apache-2.0 */
/* A task graph from the records of a run. */
#include <stdlib.h>
#include <string.h>

#include "graphs/graph.h"

/* What is known of a handle. */
struct handle {
    GArray *parts;  /* uint64_t: handles that it is cut into; NULL: none */
    uint64_t cut;   /* the one that they are of */
    uint64_t bytes; /* of its own data */
    uint32_t data;  /* NO_DATA: not made so far */
    bool whole;     /* it is cut in several ways: its parts count as the whole */
};
#define NO_DATA UINT32_MAX

struct taking {
    struct duet__graph *graph;
    const struct duet__recording *recording;
    GHashTable *handles; /* number -> struct handle */
};

static void free_handle(gpointer memory)
{
    struct handle *handle = memory;

    g_clear_pointer(&handle->parts, g_array_unref);
    g_free(handle);
}

static struct handle *find(const struct taking *taking, uint64_t number)
{
    struct handle *handle = g_hash_table_lookup(taking->handles, GSIZE_TO_POINTER(number));

    if (!handle) {
        handle = g_new0(struct handle, 1);
        handle->data = NO_DATA;
        g_hash_table_insert(taking->handles, GSIZE_TO_POINTER(number), handle);
    }
    return handle;
}

/* What an access says of its handle, and of that which this is a part of. */
static void find_part(const struct taking *taking, const struct duet_trace_access *access)
{
    struct handle *own = find(taking, access->handle), *whole;
    const bool known = own->bytes > 0;

    own->bytes = access->bytes;
    if (known || !access->whole)
        return;
    whole = find(taking, access->whole);
    if (!whole->parts)
        whole->parts = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    whole->whole |= whole->parts->len && whole->cut != access->cut;
    whole->cut = access->cut;
    g_array_append_val(whole->parts, access->handle);
}

/* Adds accesses to the data of a handle, or to that of its parts. */
static void add_accesses(const struct taking *taking, uint64_t number, enum duet_mode mode)
{
    struct handle *handle = find(taking, number);

    if (handle->parts && !handle->whole) {
        for (guint i = 0; i < handle->parts->len; i++)
            add_accesses(taking, g_array_index(handle->parts, uint64_t, i), mode);
        return;
    }
    if (handle->data == NO_DATA)
        handle->data = duet__graph_add_data(taking->graph, handle->bytes, NULL, true);
    duet__graph_add_access(taking->graph, handle->data, mode);
}

static void take_accesses(const struct taking *taking, uint64_t task)
{
    const struct duet__recording *recording = taking->recording;

    for (size_t i = duet__recording_accesses(recording, task);
         i < recording->access_count && recording->accesses[i].task == task; i++) {
        const struct duet_trace_access *access = &recording->accesses[i];
        const bool of_whole = access->whole && find(taking, access->whole)->whole;

        add_accesses(taking, of_whole ? access->whole : access->handle,
                     !access->writes ? DUET_R
                     : access->reads ? DUET_RW
                                     : DUET_W);
    }
}

/* Names architectures, those of a backend by its name where all of them are meant. */
static void add_where(GString *text, const struct duet_machine *machine, uint64_t archs)
{
    for (unsigned i = 0; i < machine->arch_count; i++) {
        const struct duet_arch *arch = &machine->archs[i];
        bool all = true, first = true;

        for (unsigned k = 0; k < machine->arch_count; k++) {
            const bool same = strcmp(machine->archs[k].backend, arch->backend) == 0;

            all &= !same || archs >> k & 1;
            first &= !same || k >= i;
        }
        if (archs >> i & 1 && (first || !all))
            g_string_append_printf(text, "%s%s", text->len ? "," : "",
                                   all ? arch->backend : arch->name);
    }
}

static int take_task(const struct taking *taking, const struct duet_event *event,
                     struct duet_message *message)
{
    const struct duet_machine *machine = taking->recording->machine;
    struct duet__graph_task *task =
        duet__graph_add(taking->graph,
                        duet__graph_kernel(taking->graph,
                                           duet__recording_kernel(taking->recording, event)));
    g_autoptr(GString) where = g_string_new(NULL);

    /* work that counts bytes is none */
    task->work =
        event->work > (double)event->bytes || event->work < (double)event->bytes ? event->work : 0;
    task->priority = event->priority;
    task->name =
        duet__graph_text(taking->graph, duet__recording_name(taking->recording, event->name));
    if (event->where && event->where != (UINT64_C(1) << machine->arch_count) - 1)
        add_where(where, machine, event->where);
    if (!duet__graph_where(taking->graph, where->str, &task->where))
        return duet_fail(message, DUET_EINVAL, "more than %d different restrictions of tasks",
                         DUET__GRAPH_WHERES_MAX - 1);
    duet__graph_seconds(taking->graph,
                        taking->graph->tasks->len - 1)[machine->workers[event->worker].arch] =
        event->end_s - event->start_s;
    take_accesses(taking, event->id);
    return 0;
}

static int by_submission(const void *left, const void *right)
{
    const uint64_t a = (*(const struct duet_event *const *)left)->id,
                   b = (*(const struct duet_event *const *)right)->id;

    return (a > b) - (a < b);
}

int duet__graph_take(struct duet__graph *graph, const struct duet__recording *recording,
                     struct duet_message *message)
{
    const struct duet_event **events;
    struct taking taking = {graph, recording, NULL};
    size_t count = 0;
    int error = 0;

    if (!recording->accesses)
        return duet_fail(message, DUET_EINVAL, "the run says nothing of the data of its tasks");
    taking.handles = g_hash_table_new_full(NULL, NULL, NULL, free_handle);
    events = g_new(const struct duet_event *, recording->event_count + 1);
    for (size_t i = 0; i < recording->event_count; i++) {
        const struct duet_event *event = &recording->events[i];

        if (event->kind == DUET_EVENT_TASK && event->paused && !error)
            error = duet_fail(message, DUET_EINVAL,
                              "tasks that wait for others are nothing that a task graph can say");
        if (event->kind == DUET_EVENT_TASK && !event->failed)
            events[count++] = event;
    }
    qsort(events, count, sizeof *events, by_submission);
    for (unsigned i = 0; i < recording->machine->arch_count; i++)
        (void)duet__graph_arch(graph, recording->machine->archs[i].name);
    for (size_t i = 0; i < recording->access_count; i++)
        find_part(&taking, &recording->accesses[i]);
    for (size_t i = 0; i < count && !error; i++)
        error = take_task(&taking, events[i], message);
    graph->makespan_s = recording->makespan_s;
    g_hash_table_unref(taking.handles);
    g_free(events);
    return error;
}
