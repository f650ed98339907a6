/* SPDX-License-Identifier: Apache-2.0 */
/*
 * static: the list schedule of HEFT (Topcuoglu, Hariri, Wu, TPDS 2002) over all submitted tasks.
 * Tasks are placed by descending upward rank (equation 8), each on the worker where it ends first
 * (equations 5 and 6), in the first gap between earlier placed tasks that is long enough for it
 * (section 4.1.2). When they become ready they go to that worker's list, which is in order of
 * planned beginnings; a worker whose next planned tasks are not ready waits. Tasks without a plan,
 * or for a lost worker, go to the worker that would end them first.
 *
 * Our choice where the paper is silent: data that no planned task writes is in the host's memory,
 * unless it is on the worker's node already; a copy begins when its data is written, takes as long
 * as a lone copy, and is made once for each task; a worker is free now or when its load is done.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <duet/policy.h>

/* An interval in which a worker is busy. */
struct busy {
    double start_s, end_s;
};

/* The plan of a worker, by date. */
struct calendar {
    struct busy *busy;
    size_t count, capacity;
};

/* The plan of a handle: node and date of its last write, and date of its last read. */
struct datum {
    double plan; /* number of the plan to which the rest belongs */
    double written_s, read_s;
    unsigned node;
    bool is_written;
};

struct state {
    double plan; /* number of plans so far */
};

/* A task to be placed. */
struct item {
    struct duet_task *task;
    double rank, start_s;
    size_t index;
};

static int static_by_rank(const void *left, const void *right)
{
    const struct item *a = left, *b = right;
    if (a->rank != b->rank)
        return a->rank > b->rank ? -1 : 1;
    return a->index < b->index ? -1 : 1;
}

static int by_start(const void *left, const void *right)
{
    const struct item *a = left, *b = right;
    if (a->start_s != b->start_s)
        return a->start_s < b->start_s ? -1 : 1;
    return static_by_rank(left, right);
}

/* Returns the plan of access i of a task. */
static struct datum *datum_of(struct duet_view *view, const struct state *state,
                              const struct duet_task *task, size_t i)
{
    struct datum *datum = duet_task_data_state(view, task, i);
    if (datum->plan != state->plan)
        *datum = (struct datum){.plan = state->plan};
    return datum;
}

/*
 * Returns the date at which the task's predecessors have ended and its data has come to the node
 * (equation 5).
 */
static double static_arrival(struct duet_view *view, const struct state *state,
                             const struct duet_task *task, unsigned node)
{
    double date = 0;
    for (size_t i = 0; i < duet_task_accesses(task); i++) {
        const struct datum *datum = datum_of(view, state, task, i);
        double copy_s = 0;
        if (duet_task_reads(task, i) &&
            (datum->is_written || !duet_view_valid(view, node, task, i)))
            copy_s = duet_view_copy_alone_seconds(view, datum->node, node,
                                                  duet_task_access_bytes(task, i));
        date = fmax(date, datum->written_s + copy_s);
        if (duet_task_writes(task, i))
            date = fmax(date, datum->read_s);
    }
    return date;
}

/* Returns the position of the first gap from `date` on that is long enough, and its start. */
static size_t static_gap(const struct calendar *calendar, double date, double seconds,
                         double *start_s)
{
    size_t low = 0, high = calendar->count;
    while (low < high) { /* the first that ends later */
        size_t middle = (low + high) / 2;
        if (calendar->busy[middle].end_s > date)
            high = middle;
        else
            low = middle + 1;
    }
    *start_s = date;
    for (; low < calendar->count && calendar->busy[low].start_s < *start_s + seconds; low++)
        *start_s = fmax(*start_s, calendar->busy[low].end_s);
    return low;
}

static bool static_insert(struct calendar *calendar, size_t at, struct busy busy)
{
    if (calendar->count == calendar->capacity) {
        size_t capacity = calendar->capacity ? 2 * calendar->capacity : 64;
        struct busy *more = realloc(calendar->busy, capacity * sizeof *more);
        if (!more)
            return false;
        calendar->busy = more;
        calendar->capacity = capacity;
    }
    memmove(&calendar->busy[at + 1], &calendar->busy[at],
            (calendar->count++ - at) * sizeof *calendar->busy);
    calendar->busy[at] = busy;
    return true;
}

/*
 * Places one task where it ends first (equation 6); its note is the worker, from 1, or 0 if no
 * worker can run it. Returns false if there is no memory.
 */
static bool static_place(struct duet_view *view, const struct state *state,
                         struct calendar *calendars, struct item *item, double now)
{
    struct busy best = {0, INFINITY};
    unsigned worker = 0, node = 0;
    size_t at = 0;
    double there = -1;
    for (unsigned w = 0; w < duet_view_workers(view); w++) {
        if (!duet_view_can_run(view, w, item->task))
            continue;
        if (there < 0 || duet_view_node(view, w) != node) {
            node = duet_view_node(view, w);
            there = static_arrival(view, state, item->task, node);
        }
        double seconds = duet_view_seconds(view, w, item->task), start_s;
        size_t where = static_gap(&calendars[w], fmax(there, now + duet_view_load(view, w)),
                                  seconds, &start_s);
        if (start_s + seconds < best.end_s) {
            best = (struct busy){start_s, start_s + seconds};
            worker = w;
            at = where;
        }
    }
    if (isinf(best.end_s)) /* every worker that could run it is lost */
        return true;
    if (!static_insert(&calendars[worker], at, best))
        return false;
    item->start_s = best.start_s;
    duet_task_set_note(item->task, worker + 1);
    for (size_t i = 0; i < duet_task_accesses(item->task); i++) {
        struct datum *datum = datum_of(view, state, item->task, i);
        if (duet_task_writes(item->task, i))
            *datum = (struct datum){state->plan, best.end_s, best.end_s,
                                    duet_view_node(view, worker), true};
        else
            datum->read_s = fmax(datum->read_s, best.end_s);
    }
    return true;
}

/* Plans the tasks; without memory the rest of them has no plan. */
static void static_plan(void *self, struct duet_view *view, struct duet_task *const *tasks,
                        size_t count, const double *ranks, double now)
{
    struct state *state = self;
    const unsigned workers = duet_view_workers(view);
    struct calendar *calendars = calloc(workers, sizeof *calendars);
    struct item *items = malloc(count * sizeof *items);
    size_t placed = 0;
    state->plan++;
    for (size_t i = 0; items && i < count; i++)
        items[i] = (struct item){tasks[i], ranks[i], 0, i};
    if (items)
        qsort(items, count, sizeof *items, static_by_rank);
    while (items && calendars && placed < count &&
           static_place(view, state, calendars, &items[placed], now))
        placed++;
    if (placed)
        qsort(items, placed, sizeof *items, by_start);
    for (size_t i = 0; i < placed; i++)
        duet_task_set_priority(items[i].task, -(int)i);
    for (unsigned w = 0; calendars && w < workers; w++)
        free(calendars[w].busy);
    free(calendars);
    free(items);
}

/* Returns the worker that would end the task first by current loads. */
static unsigned static_earliest(struct duet_view *view, const struct duet_task *task)
{
    unsigned best = 0;
    double first_s = INFINITY;
    for (unsigned w = 0; w < duet_view_workers(view); w++) {
        if (!duet_view_can_run(view, w, task))
            continue;
        double end_s =
            fmax(duet_view_load(view, w), duet_view_transfer_seconds(view, w, task, false)) +
            duet_view_seconds(view, w, task);
        if (end_s < first_s) {
            first_s = end_s;
            best = w;
        }
    }
    return best;
}

static void static_push(void *self, struct duet_view *view, struct duet_task **batch, size_t count,
                        int by, double now)
{
    for (size_t i = 0; i < count; i++) {
        unsigned planned = (unsigned)duet_task_note(batch[i]);
        bool goes = planned && duet_view_can_run(view, planned - 1, batch[i]);
        unsigned worker = goes ? planned - 1 : static_earliest(view, batch[i]);
        duet_luf_count(view, batch[i], worker, 1);
        duet_push_tail(view, duet_view_list(view, worker), batch[i]);
    }
}

const struct duet_policy duet__policy_static = {
    .name = "static",
    .description = "HEFT's list schedule of the whole graph, made before it runs",
    .source = "Topcuoglu, Hariri, Wu, TPDS 13(3), 2002",
    .order = DUET_HEAP,
    .state_size = sizeof(struct state),
    .state_size_a_data = sizeof(struct datum),
    .state_size_a_place = DUET_LUF_BYTES,
    .scores_hold = true,
    .push = static_push,
    .pop = duet_pop_own,
    .victim = duet_luf_victim,
    .epilogue = duet_luf_epilogue,
    .plan = static_plan,
};
