/* SPDX-License-Identifier: Apache-2.0 */
/* Extracts executions from recorded runs, in groups by kernel and work, and divides out the states
 * of the machine. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "calibrate/model.h"

/* ------------------------------------------------------------------------------------------- */
/* Neighbours                                                                                   */

/* The beginning or end of an execution. */
struct edge {
    double at_s;
    size_t of;
    bool begins;
};

/* The state of a socket at a date. */
struct socket {
    double at_s, computed_s;   /* date, and seconds computed by all its workers */
    unsigned workers, running; /* numbers of CPU workers */
};

static gint by_date(gconstpointer a, gconstpointer b)
{
    const struct edge *left = a, *right = b;
    if (left->at_s != right->at_s)
        return left->at_s < right->at_s ? -1 : 1;
    if (left->of != right->of)
        return left->of < right->of ? -1 : 1;
    return (int)right->begins - (int)left->begins;
}

/* Returns the beginnings and ends of executions on workers that need a core, in order. */
static GArray *find_edges(const struct duet_machine *machine,
                          const struct duet_event *const *events, size_t count)
{
    GArray *edges = g_array_new(FALSE, FALSE, sizeof(struct edge));
    for (size_t i = 0; i < count; i++) {
        const struct edge both[] = {{events[i]->start_s, i, true}, {events[i]->end_s, i, false}};
        if (duet__needs_core(machine, (unsigned)events[i]->worker) &&
            events[i]->end_s > events[i]->start_s)
            g_array_append_vals(edges, both, 2);
    }
    g_array_sort(edges, by_date);
    return edges;
}

/*
 * Computes others and workers of `count` executions of one run, and takes the time for which they
 * waited for cores out of their seconds; `events` are their records in the same order. The time
 * that all workers of a socket have computed up to a date is a function, walked along once. Its
 * growth during an execution, less the execution, is what the others did. The time that a kernel
 * has waited for cores up to a date is another such function: its growth during an execution is no
 * part of the kernel's seconds.
 */
static void find_neighbours(const struct duet_machine *machine,
                            const struct duet_event *const *events,
                            struct duet__execution *executions, size_t count)
{
    g_autoptr(GArray) edges = find_edges(machine, events, count);
    double *waited_before_s = g_new0(double, count + 1);
    struct socket *sockets;
    unsigned socket_count = 0, running = 0;
    double waited_s = 0, at_s = 0;
    for (unsigned w = 0; w < machine->worker_count; w++)
        socket_count = MAX(socket_count, machine->workers[w].socket + 1);
    sockets = g_new0(struct socket, socket_count + 1);
    for (unsigned w = 0; w < machine->worker_count; w++)
        sockets[machine->workers[w].socket].workers += machine->workers[w].node == DUET_HOST;
    for (guint i = 0; i < edges->len; i++) {
        const struct edge *edge = &g_array_index(edges, struct edge, i);
        const struct duet_event *event = events[edge->of];
        struct duet__execution *e = &executions[edge->of];
        struct socket *socket = &sockets[machine->workers[event->worker].socket];
        waited_s += (edge->at_s - at_s) * (1 - duet__core_share(machine, running));
        at_s = edge->at_s;
        if (edge->begins)
            waited_before_s[edge->of] = waited_s;
        else
            e->seconds *=
                1 - (waited_s - waited_before_s[edge->of]) / (event->end_s - event->start_s);
        running = edge->begins ? running + 1 : running - 1;
        if (machine->workers[event->worker].node != DUET_HOST)
            continue;
        if (socket->running)
            socket->computed_s += (edge->at_s - socket->at_s) * socket->running;
        socket->at_s = edge->at_s;
        if (edge->begins) {
            socket->running++;
            e->others = -socket->computed_s; /* becomes a difference at the end */
            continue;
        }
        socket->running--;
        e->others = (e->others + socket->computed_s) / (event->end_s - event->start_s) - 1;
        e->workers = socket->workers;
        e->others = fmin(fmax(e->others, 0), e->workers - 1);
    }
    g_free(sockets);
    g_free(waited_before_s);
}

/* ------------------------------------------------------------------------------------------- */
/* One run                                                                                      */

/* True if this is a record of a task on a worker of the machine. */
static bool is_task(const struct duet_event *event, const struct duet_machine *machine)
{
    return event->kind == DUET_EVENT_TASK && event->worker >= 0 &&
           (unsigned)event->worker < machine->worker_count;
}

static void read_operands(struct duet__executions *all, const struct duet__recording *recording,
                          uint64_t task, struct duet__execution *execution)
{
    execution->first = all->operand_count;
    for (size_t i = duet__recording_accesses(recording, task);
         i < recording->access_count && recording->accesses[i].task == task; i++) {
        const struct duet_trace_access *access = &recording->accesses[i];
        if (!access->reads && !access->writes)
            continue;
        all->operands[all->operand_count++] =
            (struct duet__operand){access->handle, access->bytes, access->writes};
        execution->operands++;
    }
}

/* Returns the group of these names and this work, an existing or a new one. */
static struct duet__group *find_group(GArray *groups, const struct duet__group *wanted)
{
    struct duet__group own = *wanted;
    for (guint i = 0; i < groups->len; i++) {
        struct duet__group *group = &g_array_index(groups, struct duet__group, i);
        if (group->work == wanted->work && !strcmp(group->kernel, wanted->kernel) &&
            !strcmp(group->arch, wanted->arch) && !strcmp(group->context, wanted->context))
            return group;
    }
    own.members = g_array_new(FALSE, FALSE, sizeof(size_t));
    g_array_append_val(groups, own);
    return &g_array_index(groups, struct duet__group, groups->len - 1);
}

static void read_task(struct duet__executions *all, const struct duet__recorded_run *run,
                      const struct duet_event *event, double before_s, double overhead_s)
{
    const struct duet__recording *recording = &run->recording;
    const struct duet_worker *worker = &recording->machine->workers[event->worker];
    double seconds = before_s + (event->end_s - event->start_s);
    size_t index = all->count++;
    struct duet__execution *execution = &all->list[index];
    struct duet__group *group;
    *execution = (struct duet__execution){
        .seconds = fmax(seconds - overhead_s, seconds / 10),
        .run = (uint32_t)all->run_count,
        .worker = (uint32_t)event->worker,
    };
    if (event->failed) /* it may not have touched its data */
        return;
    if (worker->node == DUET_HOST)
        read_operands(all, recording, event->id, execution);
    if (!(seconds > 0) || !isfinite(seconds) || !(event->work > 0) || !isfinite(event->work))
        return;
    group = find_group(all->groups, &(struct duet__group){
                                        .kernel = duet__recording_kernel(recording, event),
                                        .arch = recording->machine->archs[worker->arch].name,
                                        .context = run->context ? run->context : "",
                                        .work = event->work,
                                        .host = true,
                                    });
    group->host = group->host && worker->node == DUET_HOST;
    g_array_append_val(group->members, index);
}

/* Bytes of all handles that are accessed. */
static uint64_t registered(const struct duet__recording *recording)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    uint64_t sum = 0;
    for (size_t i = 0; i < recording->access_count; i++)
        if (g_hash_table_add(seen, GSIZE_TO_POINTER(recording->accesses[i].handle)))
            sum += recording->accesses[i].bytes;
    return sum;
}

/* True if a record is of a piece of a task that then waited; its seconds are added to the task's
 * last record. Pieces of one task follow each other. */
static bool is_piece(GHashTable *pieces, const struct duet_event *event)
{
    double *sum_s = event->paused ? g_hash_table_lookup(pieces, &event->id) : NULL;
    if (!event->paused)
        return false;
    if (!sum_s) {
        sum_s = g_new0(double, 1);
        g_hash_table_insert(pieces, g_memdup2(&event->id, sizeof event->id), sum_s);
    }
    *sum_s += event->end_s - event->start_s;
    return true;
}

/* Marks the executions of a run, from `first` on, that are the first to write some data. */
static void find_fresh(struct duet__executions *all, size_t first)
{
    g_autoptr(GHashTable) written = g_hash_table_new(NULL, NULL);
    for (struct duet__execution *e = all->list + first; e < all->list + all->count; e++)
        for (size_t i = e->first; i < e->first + e->operands; i++)
            e->fresh |= all->operands[i].writes &&
                        g_hash_table_add(written, GSIZE_TO_POINTER(all->operands[i].handle));
}

static void read_run(struct duet__executions *all, const struct duet__recorded_run *run,
                     double overhead_s)
{
    const struct duet__recording *recording = &run->recording;
    const struct duet_event **events =
        g_new0(const struct duet_event *, recording->event_count + 1);
    g_autoptr(GHashTable) pieces =
        g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    size_t first = all->count;
    for (size_t i = 0; i < recording->event_count; i++) {
        const struct duet_event *event = &recording->events[i];
        if (!is_task(event, recording->machine) || is_piece(pieces, event))
            continue;
        const double *before_s = g_hash_table_lookup(pieces, &event->id);
        events[all->count - first] = event;
        read_task(all, run, event, before_s ? *before_s : 0, overhead_s);
    }
    find_fresh(all, first);
    find_neighbours(recording->machine, events, all->list + first, all->count - first);
    all->runs[all->run_count++] = (struct duet__executed_run){
        .of = run,
        .first = first,
        .count = all->count - first,
        .registered_bytes = registered(recording),
    };
    g_free(events);
}

/* ------------------------------------------------------------------------------------------- */
/* All of it                                                                                    */

static gint by_names(gconstpointer a, gconstpointer b)
{
    const struct duet__group *left = a, *right = b;
    int order = strcmp(left->context, right->context);
    order = order ? order : strcmp(left->arch, right->arch);
    order = order ? order : strcmp(left->kernel, right->kernel);
    return order ? order : (left->work > right->work) - (left->work < right->work);
}

static void free_group(gpointer group)
{
    g_array_unref(((struct duet__group *)group)->members);
}

int duet__executions_read(const struct duet__recorded_run *runs, size_t run_count,
                          double overhead_s, struct duet__executions *out,
                          struct duet_message *message)
{
    size_t events = 0, accesses = 0;
    for (size_t i = 0; i < run_count; i++) {
        events += runs[i].recording.event_count;
        accesses += runs[i].recording.access_count;
    }
    *out = (struct duet__executions){
        .list = g_new0(struct duet__execution, events + 1),
        .operands = g_new0(struct duet__operand, accesses + 1),
        .runs = g_new0(struct duet__executed_run, run_count + 1),
        .groups = g_array_new(FALSE, FALSE, sizeof(struct duet__group)),
    };
    g_array_set_clear_func(out->groups, free_group);
    for (size_t i = 0; i < run_count; i++)
        read_run(out, &runs[i], fmax(overhead_s, 0));
    g_array_sort(out->groups, by_names);
    if (out->groups->len)
        return DUET_OK;
    duet__executions_fini(out);
    return duet_fail(message, DUET_EINVAL,
                     "no execution of a kernel in %zu runs: were they recorded?", run_count);
}

void duet__executions_fini(struct duet__executions *executions)
{
    g_free(executions->list);
    g_free(executions->operands);
    g_free(executions->runs);
    g_clear_pointer(&executions->groups, g_array_unref);
    *executions = (struct duet__executions){0};
}

void duet__missing_find(const struct duet__executions *executions,
                        const struct duet_sharing *sharing, size_t limit, double *missing)
{
    for (size_t r = 0; r < executions->run_count; r++) {
        const struct duet__executed_run *run = &executions->runs[r];
        struct duet_machine machine = *run->of->recording.machine;
        size_t count = limit ? MIN(limit, run->count) : run->count;
        struct duet__caches *caches;
        int error;
        machine.sharing = *sharing;
        error = duet__caches_new(&caches, &machine);
        for (size_t i = run->first; i < run->first + count && !error; i++) {
            const struct duet__execution *e = &executions->list[i];
            if (e->operands)
                error = duet__caches_touch(caches, e->worker, executions->operands + e->first,
                                           e->operands, run->registered_bytes, missing + e->first);
        }
        duet__caches_free(caches);
        if (error)
            g_error("out of memory for the caches of %zu executions", executions->count);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Finds the state of the machine in each run, compared with equal runs. */

enum { LEAST_RUNS = 3 }; /* least equal runs: of two, neither is the usual one */

/* An execution among those that it is compared with, sorted by `of`, then by `value`. */
struct ranked {
    uint64_t of;
    double value;
    size_t index;
};

static int by_rank(const void *a, const void *b)
{
    const struct ranked *left = a, *right = b;
    if (left->of != right->of)
        return left->of < right->of ? -1 : 1;
    return (left->value > right->value) - (left->value < right->value);
}

/* Sets usual[i] for the executions of a group: the median over equal runs, or over all runs on as
 * many workers. `room` has as many elements. */
static void find_usual(const struct duet__executions *all, const struct duet__group *group,
                       bool equal, struct ranked *room, double *usual)
{
    size_t count = group->members->len;
    for (size_t i = 0; i < count; i++) {
        size_t index = g_array_index(group->members, size_t, i);
        const struct duet__execution *e = &all->list[index];
        room[i] =
            (struct ranked){equal ? all->runs[e->run].of->repeats : e->workers, e->seconds, index};
    }
    qsort(room, count, sizeof *room, by_rank);
    for (size_t first = 0, next; first < count; first = next) {
        for (next = first; next < count && room[next].of == room[first].of;)
            next++;
        double median =
            (room[first + (next - first - 1) / 2].value + room[first + (next - first) / 2].value) /
            2;
        for (size_t i = first; i < next; i++)
            usual[room[i].index] = median;
    }
}

/* True for an outlier, but for the stalls that fits keep. */
static bool is_outlier(const struct duet__execution *execution, double usual_s)
{
    return execution->seconds > DUET__OUTLIER * usual_s &&
           execution->seconds - usual_s > DUET__STALL_S;
}

/* Sets the ratios of a run's executions to the usual ones, if there are any. `room` has one element
 * for each. */
static void find_level(const struct duet__executions *all, struct duet__executed_run *run,
                       const double *usual, struct ranked *room)
{
    double whole = 0, sum = 0, total = 0, kept = 0, kept_s = 0;
    size_t count = 0;
    for (size_t i = run->first; i < run->first + run->count; i++) {
        if (!(usual[i] > 0))
            continue;
        room[count++] = (struct ranked){0, all->list[i].seconds / usual[i], i};
        whole += usual[i];
        total += all->list[i].seconds;
    }
    if (!count)
        return;
    run->total = total / whole;
    qsort(room, count, sizeof *room, by_rank);
    for (size_t i = 0; i < count && sum < whole / 2; i++) {
        sum += usual[room[i].index];
        run->state = room[i].value;
    }
    for (size_t i = 0; i < count; i++) {
        if (is_outlier(&all->list[room[i].index], run->state * usual[room[i].index]))
            continue;
        kept += usual[room[i].index];
        kept_s += all->list[room[i].index].seconds;
    }
    run->kept = kept_s / kept;
}

/* Scales the states of runs equal to this one, the first of them, to a median of 1, and their
 * totals to a median of 1 without outliers; too few have none. `room` has two elements for each
 * run. */
static void scale_states(struct duet__executions *all, size_t first, double *room)
{
    uint64_t repeats = all->runs[first].of->repeats;
    double *kept = room + all->run_count, median = 0, middle = 0;
    size_t count = 0;
    for (size_t r = first; r < all->run_count; r++) {
        if (all->runs[r].of->repeats != repeats || !(all->runs[r].state > 0))
            continue;
        kept[count] = all->runs[r].kept;
        room[count++] = all->runs[r].state;
    }
    if (count >= LEAST_RUNS) {
        median = duet__median(room, count);
        middle = duet__median(kept, count);
    }
    for (size_t r = first; r < all->run_count; r++) {
        if (all->runs[r].of->repeats != repeats)
            continue;
        all->runs[r].state = median > 0 ? all->runs[r].state / median : 0;
        all->runs[r].total = middle > 0 ? all->runs[r].total / middle : 0;
    }
}

static bool is_first(const struct duet__executions *all, size_t run)
{
    size_t r = 0;
    while (all->runs[r].of->repeats != all->runs[run].of->repeats)
        r++;
    return r == run;
}

/* True for a run on several CPU workers. */
static bool is_busy(const struct duet__executed_run *run)
{
    const struct duet_machine *machine = run->of->recording.machine;
    unsigned cpus = 0;
    for (unsigned w = 0; w < machine->worker_count; w++)
        cpus += machine->workers[w].node == DUET_HOST;
    return cpus > 1;
}

/* Returns the median of the totals of runs on one worker, or on several; of all, if there are too
 * few. `room` has an element for each run. */
static double usual_total(const struct duet__executions *all, bool busy, bool any, double *room)
{
    size_t count = 0;
    for (size_t r = 0; r < all->run_count; r++)
        if (all->runs[r].total > 0 && (any || is_busy(&all->runs[r]) == busy))
            room[count++] = all->runs[r].total;
    return count >= LEAST_RUNS || any ? duet__median(room, count)
                                      : usual_total(all, busy, true, room);
}

/* Sets the distribution of states by the runs' totals; too few have none. `room` has an element for
 * each run. */
static void summarise_states(const struct duet__executions *all, double *room,
                             struct duet__states *out)
{
    enum { PARTS = 5 };
    double parts[PARTS];
    size_t count = 0;
    *out = (struct duet__states){.runs = 0};
    out->alone = usual_total(all, false, false, room);
    out->busy = usual_total(all, true, false, room);
    for (size_t r = 0; r < all->run_count; r++)
        if (all->runs[r].total > 0)
            room[count++] = all->runs[r].total / (is_busy(&all->runs[r]) ? out->busy : out->alone);
    if (count < PARTS * LEAST_RUNS)
        return;
    out->runs = count;
    for (size_t i = 0; i < PARTS; i++) {
        size_t first = i * count / PARTS;
        parts[i] = log(duet__median(room + first, (i + 1) * count / PARTS - first));
    }
    out->drift = duet__summarise(parts, PARTS).deviation * sqrt(2.0 / PARTS);
    duet__sort(room, count);
    for (size_t i = 0; i < DUET__STATES; i++)
        out->factor[i] = duet__quantile(room, count, (double)i / (DUET__STATES - 1));
}

/* Sets the totals of runs that are like hardly any other: the time of a run's kernels by their
 * median in all runs on as many workers, scaled to a mean of 1 without outliers. `usual` and `room`
 * have an element for each execution. */
static void find_totals(struct duet__executions *all, double *usual, struct ranked *room)
{
    double kept = 0, kept_s = 0;
    for (guint g = 0; g < all->groups->len; g++)
        if (duet__group_at(all, g)->host)
            find_usual(all, duet__group_at(all, g), false, room, usual);
    for (size_t i = 0; i < all->count; i++) {
        if (is_outlier(&all->list[i], usual[i]))
            continue;
        kept += usual[i];
        kept_s += all->list[i].seconds;
    }
    for (size_t r = 0; r < all->run_count; r++) {
        struct duet__executed_run run = all->runs[r]; /* its state stays as it is */
        run.total = 0;
        find_level(all, &run, usual, room);
        all->runs[r].total = run.total * kept / fmax(kept_s, 1e-300);
    }
}

void duet__states_remove(struct duet__executions *all, struct duet__states *out)
{
    double *usual = g_new0(double, all->count + 1);
    double *levels = g_new0(double, 2 * all->run_count + 1);
    struct ranked *room = g_new0(struct ranked, all->count + 1);
    for (guint g = 0; g < all->groups->len; g++)
        if (duet__group_at(all, g)->host)
            find_usual(all, duet__group_at(all, g), true, room, usual);
    for (size_t r = 0; r < all->run_count; r++)
        if (all->runs[r].of->repeats)
            find_level(all, &all->runs[r], usual, room);
    for (size_t r = 0; r < all->run_count; r++)
        if (is_first(all, r))
            scale_states(all, r, levels);
    summarise_states(all, levels, out);
    if (!out->runs) {
        find_totals(all, usual, room);
        summarise_states(all, levels, out);
    }
    for (size_t i = 0; i < all->count; i++) {
        double state = all->runs[all->list[i].run].state;
        if (state > 0 && usual[i] > 0)
            all->list[i].seconds /= state;
    }
    g_free(usual);
    g_free(levels);
    g_free(room);
}
