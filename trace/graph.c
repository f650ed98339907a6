/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a task graph of the records of a run. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/files/graph.h"
#include "base/json.h"
#include "trace/trace.h"

/* Properties of a handle. */
struct handle {
    GArray *parts;  /* uint64_t: parts that it is cut into; NULL: none */
    uint64_t cut;   /* number of the cut that came first */
    uint64_t of;    /* number of the whole that it is a part of; 0: none */
    uint64_t bytes; /* size of the own data, or, if no task accesses it, of that cut's parts */
    uint32_t data;  /* index; NO_DATA: none yet */
    bool whole;     /* true if it is cut in several ways: accesses of parts count as the whole's */
    bool accessed, temporary;
};
#define NO_DATA UINT32_MAX
enum { DEEPEST = 64 }; /* cuts of parts; deeper parts in a file are data of their own */

struct taking {
    struct duet__graph *graph;
    const struct duet__recording *recording;
    const struct duet_event **events; /* by task of the graph: its event, sorted by number */
    size_t count;
    bool any_bytes;      /* classes of tasks ignore bytes */
    GHashTable *handles; /* number -> struct handle */
    GHashTable *scratch; /* bytes -> 1 + index of data */
};

static void free_handle(gpointer memory)
{
    struct handle *handle = memory;
    g_clear_pointer(&handle->parts, g_array_unref);
    g_free(handle);
}

static struct handle *find_handle(const struct taking *taking, uint64_t number)
{
    struct handle *handle = g_hash_table_lookup(taking->handles, GSIZE_TO_POINTER(number));
    if (!handle) {
        handle = g_new0(struct handle, 1);
        handle->data = NO_DATA;
        g_hash_table_insert(taking->handles, GSIZE_TO_POINTER(number), handle);
    }
    return handle;
}

/* Notes an access's handle, and the handle it is a part of, or a contribution to. */
static void find_part(const struct taking *taking, const struct duet_trace_access *access)
{
    struct handle *own = find_handle(taking, access->handle), *whole;
    own->accessed = true;
    own->bytes = access->bytes;
    own->temporary = access->temporary;
    if (own->of || !access->whole)
        return;
    whole = find_handle(taking, access->whole);
    if (access->mode == DUET_REDUCE) {
        whole->accessed = true;
        whole->bytes = access->bytes;
        return;
    }
    if (!whole->parts) {
        whole->parts = g_array_new(FALSE, FALSE, sizeof(uint64_t));
        whole->cut = access->cut;
    }
    whole->whole |= whole->cut != access->cut;
    if (!whole->accessed && whole->cut == access->cut)
        whole->bytes += MIN(access->bytes, DUET__GRAPH_BYTES_MAX - whole->bytes);
    own->of = access->whole;
    g_array_append_val(whole->parts, access->handle);
}

/* Returns the handle itself, or the outermost one whose parts count as the whole. */
static uint64_t outermost(const struct taking *taking, uint64_t number)
{
    uint64_t found = number;
    for (unsigned depth = 0; number && depth < DEEPEST;
         depth++, number = find_handle(taking, number)->of)
        if (find_handle(taking, number)->whole)
            found = number;
    return found;
}

/* Adds accesses to the data of a handle, or to that of its parts. */
static void add_accesses(const struct taking *taking, uint64_t number, enum duet_mode mode,
                         unsigned depth)
{
    struct handle *handle = find_handle(taking, number);
    if (handle->parts && !handle->whole && depth < DEEPEST) {
        for (guint i = 0; i < handle->parts->len; i++)
            add_accesses(taking, g_array_index(handle->parts, uint64_t, i), mode, depth + 1);
        return;
    }
    if (handle->data == NO_DATA)
        handle->data =
            duet__graph_add_data(taking->graph, MIN(handle->bytes, DUET__GRAPH_BYTES_MAX), NULL,
                                 !handle->temporary);
    duet__graph_add_access(taking->graph, handle->data, mode);
}

/* Adds a buffer of a task's own; all of the same size share one datum. */
static void add_scratch(const struct taking *taking, uint64_t bytes)
{
    gpointer key = GSIZE_TO_POINTER(bytes);
    guint data = GPOINTER_TO_UINT(g_hash_table_lookup(taking->scratch, key));
    if (!data) {
        data =
            duet__graph_add_data(taking->graph, MIN(bytes, DUET__GRAPH_BYTES_MAX), NULL, true) + 1;
        g_hash_table_insert(taking->scratch, key, GUINT_TO_POINTER(data));
    }
    duet__graph_add_access(taking->graph, data - 1, DUET_SCRATCH);
}

static int by_number(const void *left, const void *right)
{
    const uint64_t a = (*(const struct duet_event *const *)left)->id,
                   b = (*(const struct duet_event *const *)right)->id;
    return (a > b) - (a < b);
}

/* Adds an explicit edge from a task in the records. */
static void add_edge(const struct taking *taking, uint64_t after)
{
    const struct duet_event wanted = {.id = after}, *key = &wanted;
    const struct duet_event **found =
        bsearch(&key, taking->events, taking->graph->tasks->len - 1, sizeof key, by_number);
    const uint32_t index = found ? (uint32_t)(found - taking->events) : 0;
    if (found)
        g_array_append_val(taking->graph->after, index);
}

/* Adds the accesses and edges of a task. Returns true if there are any in the records. */
static bool take_accesses(const struct taking *taking, uint64_t task)
{
    const struct duet__recording *recording = taking->recording;
    const size_t first = duet__recording_accesses(recording, task);
    size_t i = first;
    for (; i < recording->access_count && recording->accesses[i].task == task; i++) {
        const struct duet_trace_access *access = &recording->accesses[i];
        if (i > first && access->index == access[-1].index)
            continue; /* an earlier try's: the task was run again */
        if (access->after)
            add_edge(taking, access->after);
        else if (access->mode == DUET_SCRATCH)
            add_scratch(taking, access->bytes);
        else if (access->mode)
            add_accesses(taking,
                         outermost(taking, access->mode == DUET_REDUCE && access->whole
                                               ? access->whole
                                               : access->handle),
                         access->mode, 0);
    }
    return i > first;
}

/* Appends names of architectures, or of a backend if all of its architectures are meant. */
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
    const uint64_t archs =
        machine->arch_count < 64 ? (UINT64_C(1) << machine->arch_count) - 1 : UINT64_MAX;
    /* work that equals the bytes is no count of flops */
    task->work = event->work > (double)event->bytes || event->work < (double)event->bytes
                     ? fmin(event->work, DUET__GRAPH_WORK_MAX)
                     : 0;
    task->priority = event->priority;
    task->name =
        duet__graph_text(taking->graph, duet__recording_name(taking->recording, event->name));
    if (event->where && event->where != archs)
        add_where(where, machine, event->where);
    if (!duet__graph_where(taking->graph, where->str, &task->where))
        return duet_fail(message, DUET_EINVAL, "more than %d different restrictions of tasks",
                         DUET__GRAPH_WHERES_MAX - 1);
    duet__graph_seconds(taking->graph,
                        taking->graph->tasks->len - 1)[machine->workers[event->worker].arch] =
        round((event->end_s - event->start_s) * 1e12) / 1e12;
    if (!take_accesses(taking, event->id) && event->bytes)
        return duet_fail(message, DUET_EINVAL,
                         "the run says nothing of the data of its tasks: duet simulate --trace, "
                         "duet run --trace and DUET_TRACE record it");
    return 0;
}

/* Compares tasks by kernel and work, and, if they count, by bytes. */
static int by_class(const void *left, const void *right, void *data)
{
    const struct taking *taking = data;
    const uint32_t tasks[] = {*(const uint32_t *)left, *(const uint32_t *)right};
    const struct duet_event *a = taking->events[tasks[0]], *b = taking->events[tasks[1]];
    if (a->kernel != b->kernel)
        return a->kernel < b->kernel ? -1 : 1;
    if (a->work < b->work || a->work > b->work)
        return a->work < b->work ? -1 : 1;
    return taking->any_bytes ? 0 : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

/* Gives tasks the mean times of their class, on architectures that ran only others of it. */
static void share_times(struct taking *taking)
{
    g_autofree uint32_t *tasks = g_new(uint32_t, taking->count + 1);
    for (size_t i = 0; i < taking->count; i++)
        tasks[i] = (uint32_t)i;
    g_qsort_with_data(tasks, (gint)taking->count, sizeof *tasks, by_class, taking);
    for (size_t from = 0, to = 0; from < taking->count; from = to) {
        while (to < taking->count && by_class(&tasks[from], &tasks[to], taking) == 0)
            to++;
        for (guint arch = 0; arch < taking->graph->archs->len; arch++) {
            double sum_s = 0;
            size_t known = 0;
            for (size_t i = from; i < to; i++) {
                const double own_s = duet__graph_seconds(taking->graph, tasks[i])[arch];
                known += !isnan(own_s);
                sum_s += isnan(own_s) ? 0 : own_s;
            }
            for (size_t i = from; i < to && known; i++)
                if (isnan(duet__graph_seconds(taking->graph, tasks[i])[arch]))
                    duet__graph_seconds(taking->graph, tasks[i])[arch] = sum_s / (double)known;
        }
    }
}

int duet__graph_take(struct duet__graph *graph, const struct duet__recording *recording,
                     struct duet_message *message)
{
    struct taking taking = {
        .graph = graph,
        .recording = recording,
        .events = g_new(const struct duet_event *, recording->event_count + 1),
        .handles = g_hash_table_new_full(NULL, NULL, NULL, free_handle),
        .scratch = g_hash_table_new(NULL, NULL),
    };
    int error = 0;
    for (size_t i = 0; i < recording->event_count && !error; i++) {
        const struct duet_event *event = &recording->events[i];
        if (event->kind != DUET_EVENT_TASK)
            continue;
        if (event->paused || event->child)
            error = duet_fail(message, DUET_EINVAL,
                              "there are tasks that make others, which a task graph cannot say");
        if (!event->failed && !event->own)
            taking.events[taking.count++] = event;
    }
    qsort(taking.events, taking.count, sizeof *taking.events, by_number);
    for (unsigned i = 0; i < recording->machine->arch_count; i++)
        (void)duet__graph_arch(graph, recording->machine->archs[i].name);
    for (size_t i = 1; i < taking.count && !error; i++)
        if (taking.events[i]->id == taking.events[i - 1]->id)
            error = duet_fail(message, DUET_EINVAL, "task %" PRIu64 " is there twice",
                              taking.events[i]->id);
    for (size_t i = 0; i < recording->access_count && !error; i++) {
        const struct duet_trace_access *access = &recording->accesses[i];
        if (!access->after)
            find_part(&taking, access);
        else if (access->after >= access->task)
            error =
                duet_fail(message, DUET_EINVAL,
                          "task %" PRIu64 " comes after task %" PRIu64 ", which is none before it",
                          access->task, access->after);
    }
    for (size_t i = 0; i < taking.count && !error; i++)
        error = take_task(&taking, taking.events[i], message);
    for (int any = 0; any < 2 && !error; any++) {
        taking.any_bytes = any;
        share_times(&taking);
    }
    graph->makespan_s = recording->makespan_s;
    g_hash_table_unref(taking.handles);
    g_hash_table_unref(taking.scratch);
    g_free(taking.events);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Traces                                                                                       */

bool duet__graph_is_trace(const char *text, size_t length, const char *path)
{
    enum { HEAD = 4096 };
    const gssize head = (gssize)MIN(length, HEAD);
    return *text == '{' && (g_strstr_len(text, head, "\"otherData\"") ||
                            g_strstr_len(text, head, "\"traceEvents\""));
}

int duet__graph_read_trace(struct duet__graph *graph, const char *text, size_t length,
                           const char *path, struct duet_message *message)
{
    struct duet_message why;
    struct duet__trace trace;
    int error = duet__read_trace(text, length, path, &trace, message);
    if (!error && duet__graph_take(graph, &trace.run.recording, &why))
        error = duet_fail(message, DUET_EPARSE, "%.300s: %s", path, why.text);
    if (!error && trace.workload && *trace.workload)
        graph->name = duet__json_clean(g_strdup(trace.workload));
    if (!error) {
        graph->origin = g_strdup_printf("a trace: %s%s%s", trace.run.recording.machine->name,
                                        trace.policy ? ", " : "", trace.policy ? trace.policy : "");
        duet__json_clean(graph->origin);
    }
    duet__trace_fini(&trace);
    return error;
}
