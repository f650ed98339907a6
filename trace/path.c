/* SPDX-License-Identifier: Apache-2.0 */
/* The critical path of a run, walked back from its end. */
#include "trace/account.h"

#include <math.h>

/* Chains of less than this part of another one are shorter for other reasons than the times that
   tasks happened to take. */
static const double much_less = 0.8;

struct walk {
    const struct duet__recording *recording;
    const struct duet__graph *graph;
    GArray *steps;      /* struct duet__step, the last one first */
    uint32_t *behind;   /* result of duet__queued_behind */
    GArray *tasks;      /* size_t: events, in order of submission */
    size_t *last;       /* last[i]: of tasks[0..i] the event that ended last */
    size_t *position;   /* by event: its index in tasks */
    size_t *taken;      /* by task of the graph: its event */
    size_t *graph_task; /* by event: its task of the graph and 1; 0: none */
    size_t *first;      /* by task of the graph: its first in `before` */
    GArray *before;     /* uint32_t: tasks of the graph that come before */
    bool *seen;         /* by event: true if the path has been there */
    double date_s;      /* seconds: the path is known from here on */
};

/* The event that ended last before something, or its own submission. */
struct found {
    enum duet_release after;
    size_t event; /* the task itself, for a submission */
    double end_s;
};

static const struct duet_event *event_at(const struct walk *walk, size_t event)
{
    return &walk->recording->events[event];
}

/* ------------------------------------------------------------------------------------------- */
/* Tasks in order of submission, and what they come after                                       */

static int by_submission(const void *left, const void *right, void *data)
{
    const struct walk *walk = data;
    const size_t events[] = {*(const size_t *)left, *(const size_t *)right};
    const struct duet_event *a = event_at(walk, events[0]), *b = event_at(walk, events[1]);
    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    return (events[0] > events[1]) - (events[0] < events[1]);
}

static void enter_all(struct walk *walk)
{
    for (size_t i = 0; i < walk->recording->event_count; i++)
        if (event_at(walk, i)->kind == DUET_EVENT_TASK)
            g_array_append_val(walk->tasks, i);
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

/* Enters the tasks before each task of the graph: the application's that did not fail, in order. */
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

/*
 * Returns what an event of the path waited for last, a task or a copy that `task` needs: what
 * released it or, if that ended earlier, the task before it on its worker.
 */
static struct found explain(const struct walk *walk, size_t task, size_t event)
{
    const struct duet_event *own = event_at(walk, event);
    const size_t by = duet__released_by(walk->recording, event), behind = walk->behind[event];
    struct found found = {own->release, by, 0};
    if (by < walk->recording->event_count)
        found.end_s = event_at(walk, by)->end_s;
    else if (own->release == DUET_RELEASE_OUTSIDE)
        found = (struct found){DUET_RELEASE_OUTSIDE, task, own->ready_s};
    else
        found = (struct found){DUET_RELEASE_SUBMISSION, task, own->submit_s};
    if (behind && event_at(walk, behind - 1)->end_s > found.end_s)
        found = (struct found){DUET_RELEASE_WORKER, behind - 1, event_at(walk, behind - 1)->end_s};
    return found;
}

/*
 * Goes from a task's submission to the task that the application waited for before it submitted
 * more: the one that ended last of all before a submission. Returns false if it never waited.
 */
static bool pass_submission(struct walk *walk, size_t *task)
{
    for (size_t at = walk->position[*task]; at > 0; at--) {
        const struct duet_event *own = event_at(walk, g_array_index(walk->tasks, size_t, at)),
                                *before =
                                    event_at(walk, g_array_index(walk->tasks, size_t, at - 1));
        const size_t last = walk->last[at - 1];
        const double end_s = event_at(walk, last)->end_s;
        if (walk->seen[last] || end_s > own->submit_s || end_s <= before->submit_s)
            continue;
        step(walk, DUET_STATE_BEFORE, *task, end_s);
        *task = last;
        return true;
    }
    step(walk, DUET_STATE_BEFORE, *task, 0);
    return false;
}

/* Adds a copy to the path: under way, then waited for. */
static void step_copy(struct walk *walk, size_t event)
{
    const struct duet_event *copy = event_at(walk, event);
    const enum duet__state state = duet__copy_state(walk->recording->machine, copy);
    walk->seen[event] = true;
    step(walk, state, event, copy->start_s);
    step(walk, state == DUET_STATE_ROOM ? state : state - 1, event, copy->ready_s);
}

/* Dates of different clocks might lead back to where the path has been: it ends there. */
static void go_back(struct walk *walk, size_t task)
{
    struct found found;
    do {
        guint own;
        walk->seen[task] = true;
        step(walk, DUET_STATE_KERNEL, task, event_at(walk, task)->start_s);
        own = walk->steps->len - 1;
        found = explain(walk, task, task);
        g_array_index(walk->steps, struct duet__step, own).after = found.after;
        step(walk, DUET_STATE_OVERHEAD, task, found.end_s);
        while (event_at(walk, found.event)->kind == DUET_EVENT_COPY && !walk->seen[found.event]) {
            const size_t copy = found.event;
            step_copy(walk, copy);
            found = explain(walk, task, copy);
            step(walk, DUET_STATE_OVERHEAD, copy, found.end_s);
        }
        if (found.event == task && !pass_submission(walk, &found.event))
            return;
        task = found.event;
    } while (!walk->seen[task]);
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

/* Returns the seconds of the longest chain that begins with each task of the graph. */
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
        if (own->after != DUET_RELEASE_WORKER)
            waits = NULL;
    }
    g_free(levels_s);
    return sum_s;
}

/* Compares ends; a failed task, dated when the error was found out, counts as earlier. */
static bool ends_later(const struct duet_event *a, const struct duet_event *b)
{
    return a->failed == b->failed ? a->end_s > b->end_s : b->failed;
}

void duet__path_make(const struct duet__recording *recording, const struct duet__graph *graph,
                     struct duet__path *out)
{
    const size_t count = recording->event_count;
    struct walk walk = {
        .recording = recording,
        .graph = graph,
        .steps = g_array_new(FALSE, FALSE, sizeof(struct duet__step)),
        .tasks = g_array_new(FALSE, FALSE, sizeof(size_t)),
        .before = g_array_new(FALSE, FALSE, sizeof(uint32_t)),
        .behind = duet__queued_behind(recording),
        .position = g_new0(size_t, count + 1),
        .graph_task = g_new0(size_t, count + 1),
        .seen = g_new0(bool, count + 1),
        .date_s = recording->makespan_s,
    };
    size_t end = count;
    out->steps = walk.steps;
    out->parts = g_array_new(FALSE, FALSE, sizeof(struct duet__path_part));
    out->hindered_s = 0;
    enter_all(&walk);
    if (graph)
        enter_graph(&walk);
    for (guint i = 0; i < walk.tasks->len; i++)
        if (end == count || !ends_later(event_at(&walk, end),
                                        event_at(&walk, g_array_index(walk.tasks, size_t, i))))
            end = g_array_index(walk.tasks, size_t, i);
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
    g_array_unref(walk.tasks);
    g_array_unref(walk.before);
    g_free(walk.behind);
    g_free(walk.last);
    g_free(walk.position);
    g_free(walk.taken);
    g_free(walk.graph_task);
    g_free(walk.first);
    g_free(walk.seen);
}

void duet__path_fini(struct duet__path *path)
{
    if (path->steps)
        g_array_unref(path->steps);
    if (path->parts)
        g_array_unref(path->parts);
    *path = (struct duet__path){0};
}
