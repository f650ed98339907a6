/* SPDX-License-Identifier: Apache-2.0 */
/* The critical path of a run, walked back from its end. */
#include "trace/path.h"
#include "trace/graph.h"

#include <math.h>

/* Chains of less than this part of another one are shorter for other reasons than the times that
   tasks happened to take. */
static const double much_less = 0.8;

/* What ends within this of a date may be its reason: the resolution of CUDA's events. */
static const double resolution_s = 1e-6;

/* By what records are looked up, each with a number, and some with a second one. */
enum lookup { ANY_TASK, OF_WORKER, ARRIVED_AT, ARRIVED, LEFT };

struct entry {
    enum lookup lookup;
    uint64_t number, handle;
    double end_s;
    size_t event;
};

struct walk {
    const struct duet__recording *recording;
    const struct duet__graph *graph;
    GArray *steps;      /* struct duet__step, the last one first */
    GArray *entries;    /* struct entry, sorted */
    guint *fewer;       /* by number of entries, where the last one is on the path: a smaller
                           number, between which all are */
    GArray *tasks;      /* size_t: events, in order of submission */
    size_t *last;       /* by position in it: the event that ended last of those up to there */
    size_t *position;   /* by event: in it */
    size_t *taken;      /* by task of the graph: event */
    size_t *graph_task; /* by event: task of the graph and 1; 0: none */
    size_t *first;      /* by task of the graph: of what it comes after in `before` */
    GArray *before;     /* uint32_t: tasks of the graph */
    bool *seen;         /* by event */
    double date_s;      /* the path is known from here on */
};

/* What ended last before something. */
struct found {
    enum duet__after after;
    size_t event;
    double end_s;
};

static const struct duet_event *event_at(const struct walk *walk, size_t event)
{
    return &walk->recording->events[event];
}

/* ------------------------------------------------------------------------------------------- */
/* Looking up                                                                                   */

static int by_entry(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;

    if (a->lookup != b->lookup)
        return a->lookup < b->lookup ? -1 : 1;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    if (a->handle != b->handle)
        return a->handle < b->handle ? -1 : 1;
    if (a->end_s != b->end_s)
        return a->end_s < b->end_s ? -1 : 1;
    return (a->event > b->event) - (a->event < b->event);
}

static int by_submission(const void *left, const void *right, void *data)
{
    const struct walk *walk = data;
    const size_t events[] = {*(const size_t *)left, *(const size_t *)right};
    const struct duet_event *a = event_at(walk, events[0]), *b = event_at(walk, events[1]);

    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    return (events[0] > events[1]) - (events[0] < events[1]);
}

static void enter(struct walk *walk, enum lookup lookup, uint64_t number, uint64_t handle,
                  size_t event)
{
    const struct entry entry = {lookup, number, handle, event_at(walk, event)->end_s, event};

    g_array_append_val(walk->entries, entry);
}

/* Is the last of so many entries on the path? */
static bool on_path(const struct walk *walk, guint count)
{
    return count && walk->seen[g_array_index(walk->entries, struct entry, count - 1).event];
}

/* The last one that had ended by the date and is not on the path; event_count: there is none. */
static size_t find(const struct walk *walk, enum lookup lookup, uint64_t number, uint64_t handle,
                   double date_s)
{
    const struct entry key = {lookup, number, handle, date_s + resolution_s, SIZE_MAX};
    guint low = 0, high = walk->entries->len;

    while (low < high) {
        guint middle = low + (high - low) / 2;

        if (by_entry(&g_array_index(walk->entries, struct entry, middle), &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    /* many may have ended at one date: each look shortens the way of the next (path halving) */
    for (; on_path(walk, low); low = walk->fewer[low])
        walk->fewer[low] =
            on_path(walk, walk->fewer[low]) ? walk->fewer[walk->fewer[low]] : walk->fewer[low];
    if (low) {
        const struct entry *entry = &g_array_index(walk->entries, struct entry, low - 1);

        if (entry->lookup == lookup && entry->number == number && entry->handle == handle)
            return entry->event;
    }
    return walk->recording->event_count;
}

static void enter_all(struct walk *walk)
{
    for (size_t i = 0; i < walk->recording->event_count; i++) {
        const struct duet_event *event = event_at(walk, i);

        if (event->kind == DUET_EVENT_TASK) {
            g_array_append_val(walk->tasks, i);
            enter(walk, OF_WORKER, (uint64_t)event->worker, 0, i);
            enter(walk, ANY_TASK, 0, 0, i);
        } else if (!event->failed) {
            enter(walk, ARRIVED, event->destination, event->id, i);
            enter(walk, ARRIVED_AT, event->destination, 0, i);
            if (event->write_back)
                enter(walk, LEFT, event->source, 0, i);
        }
    }
    g_array_sort(walk->entries, by_entry);
    walk->fewer = g_new(guint, walk->entries->len + 1);
    for (guint i = 0; i <= walk->entries->len; i++)
        walk->fewer[i] = i ? i - 1 : 0;
    g_array_sort_with_data(walk->tasks, by_submission, walk);
    walk->last = g_new(size_t, walk->tasks->len);
    for (guint i = 0; i < walk->tasks->len; i++) {
        const size_t own = g_array_index(walk->tasks, size_t, i);
        const bool later =
            !i || event_at(walk, own)->end_s > event_at(walk, walk->last[i - 1])->end_s;

        walk->position[own] = i;
        walk->last[i] = later ? own : walk->last[i - 1];
    }
}

/* What tasks come after. Those of the graph are the application's that did not fail, in order. */
static void enter_graph(struct walk *walk)
{
    const size_t count = duet__graph_count(walk->graph);
    struct duet__graph_walk *graph_walk = duet__graph_walk_new(walk->graph);
    size_t task = 0;

    walk->taken = g_new(size_t, count + 1);
    walk->first = g_new0(size_t, count + 2);
    for (guint i = 0; i < walk->tasks->len && task < count; i++) {
        const size_t own = g_array_index(walk->tasks, size_t, i);

        if (event_at(walk, own)->failed || event_at(walk, own)->own)
            continue;
        walk->taken[task++] = own;
        walk->graph_task[own] = task;
    }
    for (size_t i = 0; i < task; i++) {
        size_t many;
        const struct duet__graph_edge *edges = duet__graph_walk_next(graph_walk, &many);

        for (size_t k = 0; k < many; k++)
            g_array_append_val(walk->before, edges[k].from);
        walk->first[i + 1] = walk->before->len;
    }
    duet__graph_walk_free(graph_walk);
}

/* ------------------------------------------------------------------------------------------- */
/* Walking back                                                                                 */

/* The path goes on before `start_s` with something else. */
static void step(struct walk *walk, enum duet__state state, size_t event, double start_s)
{
    const struct duet__step own = {.state = state,
                                   .event = event,
                                   .start_s = fmin(fmax(start_s, 0), walk->date_s),
                                   .end_s = walk->date_s};

    if (own.start_s < own.end_s || state == DUET_STATE_KERNEL)
        g_array_append_val(walk->steps, own);
    walk->date_s = own.start_s;
}

/* Of what ended at the same time, what is considered first counts. */
static void consider(const struct walk *walk, size_t event, enum duet__after after,
                     struct found *found)
{
    if (event < walk->recording->event_count && !walk->seen[event] &&
        event_at(walk, event)->end_s <= walk->date_s + resolution_s &&
        (found->after == DUET_AFTER_NOTHING ||
         event_at(walk, event)->end_s > found->end_s + resolution_s))
        *found = (struct found){after, event, event_at(walk, event)->end_s};
}

/* The copies of what a task reads. */
static void consider_data(const struct walk *walk, const struct duet_event *task,
                          struct found *found)
{
    const struct duet__recording *recording = walk->recording;

    if (!recording->access_count)
        consider(walk, find(walk, ARRIVED_AT, task->destination, 0, walk->date_s), DUET_AFTER_COPY,
                 found);
    for (size_t i = duet__recording_accesses(recording, task->id);
         i < recording->access_count && recording->accesses[i].task == task->id; i++)
        if (recording->accesses[i].reads)
            consider(walk,
                     find(walk, ARRIVED, task->destination, recording->accesses[i].handle,
                          walk->date_s),
                     DUET_AFTER_COPY, found);
}

/* The tasks that it comes after. */
static void consider_tasks(const struct walk *walk, size_t task, struct found *found)
{
    const size_t own = walk->graph_task[task];

    if (!own && (!walk->graph || event_at(walk, task)->own))
        consider(walk,
                 find(walk, ANY_TASK, 0, 0, fmin(event_at(walk, task)->ready_s, walk->date_s)),
                 DUET_AFTER_TASK, found);
    for (size_t i = own ? walk->first[own - 1] : 0; own && i < walk->first[own]; i++)
        consider(walk, walk->taken[g_array_index(walk->before, uint32_t, i)], DUET_AFTER_TASK,
                 found);
}

/*
 * What ended last before the path's date: of what the task needs to start or, where `copy` is one
 * of its, of what that needs to be asked for: the data at its source, room, a task in the worker's
 * window.
 */
static struct found explain(const struct walk *walk, size_t task, const struct duet_event *copy)
{
    const struct duet_event *event = event_at(walk, task);
    struct found found = {DUET_AFTER_NOTHING, task, 0};

    if (copy) {
        consider(walk, find(walk, ARRIVED, copy->source, copy->id, walk->date_s), DUET_AFTER_COPY,
                 &found);
        consider(walk, find(walk, LEFT, copy->destination, 0, walk->date_s), DUET_AFTER_COPY,
                 &found);
    } else {
        consider_data(walk, event, &found);
    }
    consider_tasks(walk, task, &found);
    consider(walk, find(walk, OF_WORKER, (uint64_t)event->worker, 0, walk->date_s),
             DUET_AFTER_WORKER, &found);
    if (event->submit_s <= walk->date_s + resolution_s &&
        (found.after == DUET_AFTER_NOTHING || event->submit_s > found.end_s + resolution_s))
        found = (struct found){DUET_AFTER_SUBMISSION, task, event->submit_s};
    return found;
}

/*
 * From a task's submission to the task that the application waited for before it submitted more:
 * one that ended after a submission, as the last of all before it. false: it never did.
 */
static bool pass_submission(struct walk *walk, size_t *task)
{
    for (size_t at = walk->position[*task]; at > 0; at--) {
        const struct duet_event *own = event_at(walk, g_array_index(walk->tasks, size_t, at)),
                                *before =
                                    event_at(walk, g_array_index(walk->tasks, size_t, at - 1));
        const size_t last = walk->last[at - 1];
        const double end_s = event_at(walk, last)->end_s;

        if (walk->seen[last] || end_s > own->submit_s + resolution_s || end_s <= before->submit_s)
            continue;
        step(walk, DUET_STATE_BEFORE, *task, end_s);
        *task = last;
        return true;
    }
    step(walk, DUET_STATE_BEFORE, *task, 0);
    return false;
}

/* A copy of the path: under way, then waited for. */
static void step_copy(struct walk *walk, size_t event)
{
    const struct duet_event *copy = event_at(walk, event);
    const struct duet_machine *machine = walk->recording->machine;
    const bool home = duet__is_host(machine, copy->destination);
    const enum duet__state state = copy->write_back                       ? DUET_STATE_ROOM
                                   : duet__is_message(machine, copy)      ? DUET_STATE_MESSAGE
                                   : home                                 ? DUET_STATE_TO_HOST
                                   : duet__is_host(machine, copy->source) ? DUET_STATE_TO_DEVICE
                                                                          : DUET_STATE_BETWEEN;

    walk->seen[event] = true;
    step(walk, state, event, copy->start_s);
    step(walk, copy->write_back ? state : state - 1, event, copy->ready_s);
}

static void go_back(struct walk *walk, size_t task)
{
    struct found found;

    do {
        guint own;

        walk->seen[task] = true;
        step(walk, DUET_STATE_KERNEL, task, event_at(walk, task)->start_s);
        own = walk->steps->len - 1;
        found = explain(walk, task, NULL);
        g_array_index(walk->steps, struct duet__step, own).after = found.after;
        step(walk, DUET_STATE_OVERHEAD, task, found.end_s);
        while (found.after == DUET_AFTER_COPY) {
            const size_t copy = found.event;

            step_copy(walk, copy);
            found = explain(walk, task, event_at(walk, copy));
            step(walk, DUET_STATE_OVERHEAD, copy, found.end_s);
        }
        task = found.event;
    } while (found.after != DUET_AFTER_NOTHING &&
             (found.after != DUET_AFTER_SUBMISSION || pass_submission(walk, &task)));
}

/* ------------------------------------------------------------------------------------------- */
/* Parts                                                                                        */

static int by_seconds(const void *left, const void *right)
{
    const struct duet__path_part *a = left, *b = right;

    if (a->seconds != b->seconds)
        return a->seconds > b->seconds ? -1 : 1;
    if (a->state != b->state)
        return a->state < b->state ? -1 : 1;
    if (a->kernel != b->kernel)
        return a->kernel < b->kernel ? -1 : 1;
    return (a->arch > b->arch) - (a->arch < b->arch);
}

static void add_part(GArray *parts, const struct duet__recording *recording,
                     const struct duet__step *step)
{
    const struct duet_event *event = &recording->events[step->event];
    const bool kernel = step->state == DUET_STATE_KERNEL;
    struct duet__path_part own = {
        .state = step->state,
        .kernel = kernel ? event->kernel : 0,
        .arch = kernel ? recording->machine->workers[event->worker].arch : 0,
    };
    guint at = 0;

    for (; at < parts->len; at++) {
        const struct duet__path_part *part = &g_array_index(parts, struct duet__path_part, at);

        if (part->state == own.state && part->kernel == own.kernel && part->arch == own.arch)
            break;
    }
    if (at == parts->len)
        g_array_append_val(parts, own);
    g_array_index(parts, struct duet__path_part, at).count++;
    g_array_index(parts, struct duet__path_part, at).seconds += step->end_s - step->start_s;
}

/* By task of the graph, the seconds of the longest chain that begins with it. */
static double *bottom_levels(const struct walk *walk)
{
    const size_t count = duet__graph_count(walk->graph);
    double *levels_s = g_new0(double, count + 1);

    for (size_t i = count; i-- > 0;) {
        const struct duet_event *event = event_at(walk, walk->taken[i]);

        levels_s[i] += event->end_s - event->start_s;
        for (size_t k = walk->first[i]; k < walk->first[i + 1]; k++) {
            double *before_s = &levels_s[g_array_index(walk->before, uint32_t, k)];

            *before_s = fmax(*before_s, levels_s[i]);
        }
    }
    return levels_s;
}

/* Kernels that others of the path waited for, although more depends on these. The last step is the
   first one of the walk. */
static double find_hindered(const struct walk *walk)
{
    double *levels_s = bottom_levels(walk);
    const struct duet__step *waits = NULL;
    double sum_s = 0;

    for (guint i = 0; i < walk->steps->len; i++) {
        const struct duet__step *own = &g_array_index(walk->steps, struct duet__step, i);
        const size_t task = walk->graph_task[own->event];

        if (own->state != DUET_STATE_KERNEL || !task)
            continue;
        if (waits && event_at(walk, waits->event)->ready_s <= own->start_s &&
            levels_s[task - 1] < much_less * levels_s[walk->graph_task[waits->event] - 1])
            sum_s += own->end_s - own->start_s;
        else
            waits = own;
        if (own->after != DUET_AFTER_WORKER)
            waits = NULL;
    }
    g_free(levels_s);
    return sum_s;
}

void duet__path_make(const struct duet__recording *recording, const struct duet__graph *graph,
                     struct duet__path *out)
{
    const size_t count = recording->event_count;
    struct walk walk = {
        .recording = recording,
        .graph = graph,
        .steps = g_array_new(FALSE, FALSE, sizeof(struct duet__step)),
        .entries = g_array_new(FALSE, FALSE, sizeof(struct entry)),
        .tasks = g_array_new(FALSE, FALSE, sizeof(size_t)),
        .before = g_array_new(FALSE, FALSE, sizeof(uint32_t)),
        .position = g_new0(size_t, count + 1),
        .graph_task = g_new0(size_t, count + 1),
        .seen = g_new0(bool, count + 1),
        .date_s = recording->makespan_s,
    };
    size_t end;

    out->steps = walk.steps;
    out->parts = g_array_new(FALSE, FALSE, sizeof(struct duet__path_part));
    out->hindered_s = 0;
    enter_all(&walk);
    if (graph)
        enter_graph(&walk);
    end = find(&walk, ANY_TASK, 0, 0, recording->makespan_s);
    if (end < count) {
        step(&walk, DUET_STATE_OVERHEAD, end, event_at(&walk, end)->end_s);
        go_back(&walk, end);
    }
    if (walk.date_s > 0 && end < count)
        step(&walk, DUET_STATE_BEFORE, end, 0);
    if (graph)
        out->hindered_s = find_hindered(&walk);
    for (guint i = 0; i < walk.steps->len / 2; i++) {
        struct duet__step *a = &g_array_index(walk.steps, struct duet__step, i),
                          *b = &g_array_index(walk.steps, struct duet__step,
                                              walk.steps->len - 1 - i),
                          other = *a;

        *a = *b;
        *b = other;
    }
    for (guint i = 0; i < walk.steps->len; i++)
        add_part(out->parts, recording, &g_array_index(walk.steps, struct duet__step, i));
    g_array_sort(out->parts, by_seconds);
    g_array_unref(walk.entries);
    g_array_unref(walk.tasks);
    g_array_unref(walk.before);
    g_free(walk.fewer);
    g_free(walk.last);
    g_free(walk.position);
    g_free(walk.taken);
    g_free(walk.graph_task);
    g_free(walk.first);
    g_free(walk.seen);
}

void duet__path_find(const struct duet__recording *recording, struct duet__path *out)
{
    struct duet__graph graph;
    struct duet_message why;
    bool none;

    duet__graph_init(&graph);
    none = duet__graph_take(&graph, recording, &why) != 0;
    duet__path_make(recording, none ? NULL : &graph, out);
    duet__graph_fini(&graph);
}

void duet__path_fini(struct duet__path *path)
{
    if (path->steps)
        g_array_unref(path->steps);
    if (path->parts)
        g_array_unref(path->parts);
    *path = (struct duet__path){0};
}
