/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules, and their files. */
#include "runtime/schedule.h"

#include <inttypes.h>
#include <math.h>
#include <sys/stat.h>

#include "base/files.h"
#include "base/json.h"
#include "runtime/open.h"
#include "trace/trace.h"

/* ------------------------------------------------------------------------------------------- */
/* Schedules                                                                                    */

static struct duet__schedule *schedule_new(const char *path)
{
    struct duet__schedule *schedule = g_new0(struct duet__schedule, 1);
    schedule->path = g_strdup(path);
    schedule->workers = duet__texts_new();
    schedule->kernels = duet__texts_new();
    duet__follow(schedule);
    return schedule;
}

void duet__schedule_free(struct duet__schedule *schedule)
{
    if (!schedule)
        return;
    duet__texts_free(&schedule->workers);
    duet__texts_free(&schedule->kernels);
    g_free(schedule->path);
    g_free(schedule->tasks);
    g_free(schedule->order);
    g_free(schedule->first);
    g_free(schedule);
}

static void copy_texts(struct duet__texts *to, const struct duet__texts *from)
{
    for (guint i = 0; i < from->list->len; i++)
        (void)duet__texts_number(to, from->list->pdata[i]);
}

struct duet__schedule *duet__schedule_copy(const struct duet__schedule *schedule)
{
    struct duet__schedule *copy = schedule_new(schedule->path);
    const size_t workers = schedule->workers.list->len;
    copy_texts(&copy->workers, &schedule->workers);
    copy_texts(&copy->kernels, &schedule->kernels);
    copy->count = schedule->count;
    copy->planned = schedule->planned;
    copy->makespan_s = schedule->makespan_s;
    copy->tasks = g_memdup2(schedule->tasks, schedule->count * sizeof *schedule->tasks);
    copy->order = g_memdup2(schedule->order, schedule->planned * sizeof *schedule->order);
    copy->first = g_memdup2(schedule->first, (workers + 1) * sizeof *schedule->first);
    return copy;
}

/* Sorts indices of tasks by worker, then date; of equal dates, those before others stay so. */
static gint by_date(gconstpointer left, gconstpointer right, gpointer tasks)
{
    const struct duet__planned *a = (struct duet__planned *)tasks + *(const uint32_t *)left,
                               *b = (struct duet__planned *)tasks + *(const uint32_t *)right;
    if (a->worker != b->worker)
        return a->worker < b->worker ? -1 : 1;
    if (a->start_s != b->start_s)
        return a->start_s < b->start_s ? -1 : 1;
    return 0;
}

void duet__schedule_arrange(struct duet__schedule *schedule)
{
    uint32_t *order = schedule->order;
    size_t i = 0;
    g_qsort_with_data(order, (gint)schedule->planned, sizeof *order, by_date, schedule->tasks);
    for (unsigned w = 0; w < schedule->workers.list->len; w++) {
        schedule->first[w] = i;
        for (; i < schedule->planned && schedule->tasks[order[i]].worker == w; i++)
            schedule->tasks[order[i]].place = (uint32_t)(i - schedule->first[w]);
    }
    schedule->first[schedule->workers.list->len] = i;
}

/*
 * Makes room for tasks whose numbers are from 1 to the highest, and gives them no worker. False:
 * the highest is too far from their number, as only few may be left out.
 */
static bool make_room(struct duet__schedule *schedule, size_t planned, uint64_t highest)
{
    if (highest > 2 * (uint64_t)planned + 65536)
        return false;
    schedule->planned = 0;
    schedule->count = highest;
    schedule->tasks = g_new(struct duet__planned, highest);
    schedule->order = g_new(uint32_t, planned);
    schedule->first = g_new0(size_t, schedule->workers.list->len + 1);
    for (size_t i = 0; i < highest; i++)
        schedule->tasks[i] = (struct duet__planned){.worker = DUET__UNPLANNED,
                                                    .bytes = UINT64_MAX,
                                                    .start_s = NAN,
                                                    .end_s = NAN};
    return true;
}

/* Gives a task to a worker. Returns false if it has one. */
static bool give(struct duet__schedule *schedule, uint64_t number, uint32_t worker)
{
    struct duet__planned *task = &schedule->tasks[number - 1];
    if (task->worker != DUET__UNPLANNED)
        return false;
    task->worker = worker;
    schedule->order[schedule->planned++] = (uint32_t)(number - 1);
    return true;
}

/* ------------------------------------------------------------------------------------------- */
/* Schedules of runs                                                                            */

/* True for the record of a task that counts: not of a piece of it, or of an attempt. */
static bool counts(const struct duet_event *event)
{
    return event->kind == DUET_EVENT_TASK && !event->paused && !event->failed;
}

int duet__schedule_take(const char *path, const struct duet__recording *recording,
                        struct duet__schedule **out, struct duet_message *message)
{
    struct duet__schedule *schedule = schedule_new(path);
    const struct duet_machine *machine = recording->machine;
    uint64_t first = UINT64_MAX, last = 0, child = 0, own = 0, twice = 0;
    double begin_s = INFINITY;
    size_t planned = 0;
    int error = 0;
    for (unsigned w = 0; machine && w < machine->worker_count; w++)
        (void)duet__texts_number(&schedule->workers, machine->workers[w].name);
    for (size_t i = 0; i < recording->event_count; i++) {
        const struct duet_event *event = &recording->events[i];
        if (!counts(event))
            continue;
        planned++;
        first = MIN(first, event->id);
        last = MAX(last, event->id);
        begin_s = fmin(begin_s, event->submit_s);
        child = event->child ? event->id : child;
        own = event->own ? event->id : own;
    }
    if (!machine || !planned)
        error = duet_fail(message, DUET_EINVAL, "%s: no schedule without tasks", path);
    else if (duet__host_count(machine) > 1)
        error = duet_fail(message, DUET_EINVAL, "%s: no schedule of several nodes", path);
    else if (own)
        error = duet_fail(message, DUET_EINVAL,
                          "%s: no schedule where tasks reduce: which contributions are added up, "
                          "and when, differs from run to run",
                          path);
    else if (child || !make_room(schedule, planned, last - first + 1))
        error = duet_fail(message, DUET_EINVAL,
                          "%s: no schedule where tasks make others: their numbers differ from run "
                          "to run",
                          path);
    for (size_t i = 0; i < recording->event_count && !error; i++) {
        const struct duet_event *event = &recording->events[i];
        struct duet__planned *task = counts(event) ? &schedule->tasks[event->id - first] : NULL;
        if (!task)
            continue;
        if (!give(schedule, event->id - first + 1, (uint32_t)event->worker))
            twice = event->id;
        task->kernel =
            duet__texts_number(&schedule->kernels, duet__recording_kernel(recording, event));
        task->bytes = event->bytes;
        task->start_s = fmax(event->start_s - begin_s, 0);
        task->end_s = fmax(event->end_s - begin_s, 0);
    }
    if (twice)
        error = duet_fail(message, DUET_EINVAL, "%s: task %" PRIu64 " has run twice", path, twice);
    if (error) {
        duet__schedule_free(schedule);
        return error;
    }
    schedule->makespan_s = recording->makespan_s;
    duet__schedule_arrange(schedule);
    *out = schedule;
    return 0;
}

void duet__schedule_unscale(struct duet__schedule *schedule, double scale)
{
    schedule->makespan_s /= scale;
    for (size_t i = 0; i < schedule->count; i++) {
        schedule->tasks[i].start_s /= scale;
        schedule->tasks[i].end_s /= scale;
    }
}

static gint by_start(gconstpointer left, gconstpointer right)
{
    const struct duet_event *a = left, *b = right;
    return (a->start_s > b->start_s) - (a->start_s < b->start_s);
}

/* Returns the index of the machine's worker of this name; worker_count if there is none, because
 * the schedule's file was changed after the run. */
static unsigned worker_named(const struct duet_machine *machine, const char *name)
{
    unsigned w = 0;
    while (w < machine->worker_count && strcmp(machine->workers[w].name, name) != 0)
        w++;
    return w;
}

void duet__schedule_plan(const struct duet__schedule *schedule,
                         const struct duet__recording *recording, double scale,
                         struct duet__run_plan *out)
{
    const struct duet_machine *machine = recording->machine;
    struct duet_event *planned = g_new(struct duet_event, recording->event_count + 1);
    uint64_t first = UINT64_MAX;
    size_t count = 0;
    *out = (struct duet__run_plan){.tasks = *recording, .late_s = -INFINITY};
    out->tasks.makespan_s = schedule->makespan_s * scale;
    for (size_t i = 0; i < recording->event_count; i++)
        if (counts(&recording->events[i]))
            first = MIN(first, recording->events[i].id);
    for (size_t i = 0; i < recording->event_count; i++) {
        const struct duet_event *event = &recording->events[i];
        const size_t index = counts(event) ? event->id - first : schedule->count;
        const struct duet__planned *task = NULL;
        struct duet_event *own = &planned[count];
        if (index < schedule->count)
            task = &schedule->tasks[index];
        if (!task || task->worker == DUET__UNPLANNED || !(task->end_s >= task->start_s))
            continue;
        *own = *event;
        own->worker = (int)worker_named(machine, schedule->workers.list->pdata[task->worker]);
        if (own->worker == (int)machine->worker_count)
            continue;
        own->start_s = task->start_s * scale;
        own->end_s = task->end_s * scale;
        out->moved += own->worker != event->worker;
        if (event->start_s - own->start_s > out->late_s) {
            out->late_s = event->start_s - own->start_s;
            out->latest = event->id;
        }
        if (!(schedule->makespan_s > 0))
            out->tasks.makespan_s = fmax(out->tasks.makespan_s, own->end_s);
        count++;
    }
    qsort(planned, count, sizeof *planned, by_start);
    out->tasks.events = planned;
    out->tasks.event_count = count;
}

/* ------------------------------------------------------------------------------------------- */
/* Files                                                                                        */

/* A task that was read. */
struct item {
    uint64_t number;
    uint32_t worker; /* index in the schedule's workers */
};

/* A file that is being read. */
struct reader {
    struct duet__schedule *schedule;
    GArray *items;   /* struct item */
    GArray *columns; /* struct cell */
};

/* A value of a column, which has one for each task. */
struct cell {
    unsigned column, kernel;
    double value;
};

enum { KERNELS, BYTES, STARTS, ENDS, COLUMNS };
static const char *const columns[] = {"kernels", "bytes", "start_s", "end_s", NULL};

#define MOST_S 1e15

static int read_cell(struct reader *reader, const struct duet__json *at, unsigned column)
{
    struct cell cell = {column, 0, NAN};
    const char *name = NULL;
    int error = 0;
    if (duet__json_is_null(at))
        cell.value = NAN;
    else if (column == KERNELS)
        error = duet__json_string(at, &name);
    else
        error = duet__json_number(at, 0, column == BYTES ? 0x1p53 : MOST_S, &cell.value);
    if (name)
        cell.kernel = duet__texts_number(&reader->schedule->kernels, name);
    g_array_append_val(reader->columns, cell);
    return error;
}

static int read_member(const struct duet__json *at, const char *key, void *data)
{
    struct reader *reader = data;
    const char *text;
    struct item item;
    int error;
    for (unsigned i = 0; i < COLUMNS; i++)
        if (strcmp(key, columns[i]) == 0)
            return read_cell(reader, at, i);
    if (strcmp(key, "machine") == 0)
        return duet__json_string(at, &text);
    if (strcmp(key, "makespan_s") == 0)
        return duet__json_number(at, 0, MOST_S, &reader->schedule->makespan_s);
    if (strncmp(key, "schedule.", strlen("schedule.")) != 0)
        return duet__json_fail(at, DUET_EPARSE,
                               "unknown key: known are schedule (an object that has, for each "
                               "worker, the numbers of its tasks in their order), kernels, bytes, "
                               "start_s, end_s (values by task), machine, makespan_s");
    error = duet__json_integer(at, 1, UINT32_MAX - 1, &item.number);
    item.worker = duet__texts_number(&reader->schedule->workers, strchr(key, '.') + 1) - 1;
    g_array_append_val(reader->items, item);
    return error;
}

static int set_columns(const struct reader *reader, struct duet_message *message)
{
    struct duet__schedule *schedule = reader->schedule;
    size_t counts[COLUMNS] = {0};
    for (guint i = 0; i < reader->columns->len; i++) {
        const struct cell *cell = &g_array_index(reader->columns, struct cell, i);
        size_t index = counts[cell->column]++;
        struct duet__planned *task = &schedule->tasks[MIN(index, schedule->count - 1)];
        if (cell->column == KERNELS)
            task->kernel = cell->kernel;
        else if (cell->column == STARTS)
            task->start_s = cell->value;
        else if (cell->column == ENDS)
            task->end_s = cell->value;
        else if (!isnan(cell->value))
            task->bytes = (uint64_t)cell->value;
    }
    for (unsigned i = 0; i < COLUMNS; i++)
        if (counts[i] && counts[i] != schedule->count)
            return duet_fail(message, DUET_EPARSE, "%s: %s has %zu values, and there are %zu tasks",
                             schedule->path, columns[i], counts[i], schedule->count);
    for (size_t i = 0; i < schedule->count; i++)
        if (schedule->tasks[i].end_s < schedule->tasks[i].start_s)
            return duet_fail(message, DUET_EPARSE, "%s: task %zu ends before it begins",
                             schedule->path, i + 1);
    return 0;
}

static int read_file(const char *text, size_t length, struct duet__schedule *schedule,
                     struct duet_message *message)
{
    static const char *const inside[] = {"schedule", NULL};
    g_autoptr(GArray) items = g_array_new(FALSE, FALSE, sizeof(struct item));
    g_autoptr(GArray) cells = g_array_new(FALSE, FALSE, sizeof(struct cell));
    struct reader reader = {schedule, items, cells};
    const struct item *item = NULL;
    uint64_t highest = 0;
    int error =
        duet__json_each(text, length, schedule->path, inside, read_member, &reader, message);
    if (error)
        return error;
    for (guint i = 0; i < items->len; i++)
        highest = MAX(highest, g_array_index(items, struct item, i).number);
    if (!items->len)
        return duet_fail(message, DUET_EPARSE,
                         "%s: no task has a worker: {\"schedule\": {\"cpu0\": [1, 2]}} gives tasks "
                         "1 and 2 to cpu0, in that order",
                         schedule->path);
    if (!make_room(schedule, items->len, highest))
        return duet_fail(message, DUET_EPARSE,
                         "%s: it has %u tasks and a task %" PRIu64
                         ": numbers begin at 1, and few may be left out",
                         schedule->path, items->len, highest);
    for (guint i = 0; i < items->len; i++) {
        item = &g_array_index(items, struct item, i);
        if (!give(schedule, item->number, item->worker))
            return duet_fail(message, DUET_EPARSE, "%s: task %" PRIu64 " stands there twice",
                             schedule->path, item->number);
        schedule->tasks[item->number - 1].start_s = i; /* its place, until it has its date */
    }
    duet__schedule_arrange(schedule);
    for (size_t i = 0; i < schedule->count; i++)
        schedule->tasks[i].start_s = NAN;
    return set_columns(&reader, message);
}

int duet__schedule_read(const char *text, size_t length, const char *path,
                        struct duet__schedule **out, struct duet_message *message)
{
    struct duet__trace trace = {.world = NULL};
    struct duet__schedule *schedule;
    int error;
    if (g_strstr_len(text, (gssize)length, "\"traceEvents\"")) {
        error = duet__read_trace(text, length, path, &trace, message);
        if (!error)
            error = duet__schedule_take(path, &trace.run.recording, out, message);
        if (!error && trace.scale > 0)
            duet__schedule_unscale(*out, trace.scale);
        duet__trace_fini(&trace);
        return error == DUET_EINVAL ? DUET_EPARSE : error;
    }
    schedule = schedule_new(path);
    error = read_file(text, length, schedule, message);
    if (error)
        duet__schedule_free(schedule);
    else
        *out = schedule;
    return error;
}

/* A schedule that was read, and the version of the file that it was read from. */
struct kept {
    const struct duet__schedule *schedule;
    struct stat status;
    bool offered; /* there is no file */
};

static GHashTable *all; /* path -> struct kept; never freed, as runtimes may use them */
static GMutex lock;

bool duet__schedule_is(const char *path)
{
    return g_str_has_suffix(path, ".json") || g_str_has_suffix(path, ".json.gz");
}

void duet__schedule_offer(const char *path, const struct duet__schedule *schedule)
{
    const struct kept kept = {.schedule = schedule, .offered = true};
    g_mutex_lock(&lock);
    if (!all)
        all = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    if (schedule)
        g_hash_table_insert(all, g_strdup(path), g_memdup2(&kept, sizeof kept));
    else
        g_hash_table_remove(all, path);
    g_mutex_unlock(&lock);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

int duet__schedule_load(const char *path, const struct duet__schedule **out,
                        struct duet_message *message)
{
    struct duet__schedule *schedule = NULL;
    g_autofree char *text = NULL;
    size_t length = 0;
    struct stat status = {0};
    struct kept *kept;
    int error = 0;
    g_mutex_lock(&lock);
    if (!all)
        all = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    kept = g_hash_table_lookup(all, path);
    if (!kept || !(kept->offered || (!stat(path, &status) && is_same(&status, &kept->status)))) {
        (void)stat(path, &status);
        error = duet__read_all(path, DUET__TRACE_MOST_MIB, &text, &length, message);
        if (!error)
            error = duet__schedule_read(text, length, path, &schedule, message);
        if (!error) {
            kept = g_new0(struct kept, 1);
            *kept = (struct kept){.schedule = schedule, .status = status};
            g_hash_table_insert(all, g_strdup(path), kept);
        }
    }
    if (!error)
        *out = kept->schedule;
    g_mutex_unlock(&lock);
    return error;
}

/* ------------------------------------------------------------------------------------------- */

/* Writes a column: null where the schedule has no such task. */
static void write_column(struct duet__json_writer *json, const struct duet__schedule *schedule,
                         unsigned column)
{
    duet__json_print(json, "\n  %s: [", columns[column]);
    for (size_t i = 0; i < schedule->count; i++) {
        const struct duet__planned *task = &schedule->tasks[i];
        if (column == KERNELS)
            duet__json_put_string(json, NULL,
                                  task->kernel ? schedule->kernels.list->pdata[task->kernel - 1]
                                               : NULL);
        else if (column == BYTES && task->bytes != UINT64_MAX)
            duet__json_put_integer(json, NULL, task->bytes);
        else
            duet__json_put_number(json, NULL,
                                  column == BYTES    ? NAN
                                  : column == STARTS ? task->start_s
                                                     : task->end_s);
    }
    duet__json_end(json, ']');
}

void duet__schedule_write(FILE *stream, const struct duet__schedule *schedule, const char *machine)
{
    struct duet__json_writer json = {.stream = stream};
    duet__json_print(&json, "{\n  machine: %s\n  makespan_s: %g\n  schedule: {", machine,
                     schedule->makespan_s);
    for (unsigned i = 0; i < schedule->workers.list->len; i++) {
        duet__json_print(&json, "\n    %s: [", (char *)schedule->workers.list->pdata[i]);
        for (size_t k = schedule->first[i]; k < schedule->first[i + 1]; k++)
            duet__json_put_integer(&json, NULL, schedule->order[k] + UINT64_C(1));
        duet__json_end(&json, ']');
    }
    duet__json_print(&json, "\n  }");
    for (unsigned i = 0; i < COLUMNS; i++)
        write_column(&json, schedule, i);
    duet__json_print(&json, "\n}");
    putc('\n', stream);
}
