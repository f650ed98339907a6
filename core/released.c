/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of tasks and copies, with what released each of them. The core knows that in the call in
 * which a task or a copy ends, whose record is then the last one of the worker: whatever goes on
 * because of it is noted there. Notes are put into the records when these are asked for. A run that
 * is not recorded has none.
 */
#include "core/internal.h"

/* References to records: their generation, the worker, and the index of its record, and 1. */
enum { INDEX_BITS = 32, WORKER_BITS = 16 };

static uint64_t reference(const struct worker *worker, size_t index)
{
    return index ? (uint64_t)worker->generation << (INDEX_BITS + WORKER_BITS) |
                       (uint64_t)worker->index << INDEX_BITS | index
                 : 0;
}

/* Adds a row; NULL: there is no memory, and it is remembered that one is lost. trace_lock held. */
void *duet__row_add(struct worker *worker, struct rows *rows, size_t size)
{
    if (rows->count == rows->capacity) {
        const size_t capacity = rows->capacity ? 2 * rows->capacity : 1024;
        void *larger = realloc(rows->rows, capacity * size);
        if (!larger) {
            worker->records_lost = true;
            return NULL;
        }
        rows->rows = larger;
        rows->capacity = capacity;
    }
    return (char *)rows->rows + rows->count++ * size;
}

/* Appends a worker's rows to others; false: no memory, now or before. No lock held. */
bool duet__rows_take(struct worker *worker, const struct rows *from, struct rows *to, size_t size)
{
    spin_lock(&worker->trace_lock); /* a write-back may still end */
    void *larger =
        worker->records_lost ? NULL : realloc(to->rows, (to->count + from->count + 1) * size);
    if (larger) {
        if (from->count)
            memcpy((char *)larger + to->count * size, from->rows, from->count * size);
        to->rows = larger;
        to->count += from->count;
    }
    spin_unlock(&worker->trace_lock);
    return larger;
}

/* Adds a record of the worker; NULL: it is lost. trace_lock held. */
struct record *duet__record_add(struct worker *worker, const struct duet_event *event)
{
    struct record *record = duet__row_add(worker, &worker->records, sizeof *record);
    if (record)
        *record = (struct record){.event = *event};
    return record;
}

/* Returns the record of what has ended in this call, if a worker makes it; 0: there is none. */
uint64_t duet__last_record(const struct duet_view *view)
{
    if (!view->core->record || !view->self)
        return 0;
    spin_lock(&view->self->trace_lock);
    uint64_t last = reference(view->self, view->self->records.count);
    spin_unlock(&view->self->trace_lock);
    return last;
}

/* Notes that a task is released in this call, by a record or, OUTSIDE, by the user of a handle. */
void duet__note(struct duet_view *view, const struct duet_task *task, uint64_t by,
                enum duet_release release)
{
    if (!view->core->record || !task->klass || !by)
        return;
    struct worker *worker = view->self ? view->self : &view->core->workers[0];
    spin_lock(&worker->trace_lock);
    struct note *note = duet__row_add(worker, &worker->notes, sizeof *note);
    if (note)
        *note = (struct note){task->id, view->now, by, release};
    spin_unlock(&worker->trace_lock);
}

/* Notes that a task goes on, by the end of this call's record or of a use of the handle. */
void duet__note_released(struct duet_view *view, const struct duet_task *task, uint64_t handle)
{
    if (view->self)
        duet__note(view, task, duet__last_record(view), DUET_RELEASE_TASK);
    else
        duet__note(view, task, handle, DUET_RELEASE_OUTSIDE);
}

/*
 * Notes what releases a copy: its worker has turned to the task, after its last one or when this
 * was ready; or it goes on from what this call is about.
 */
void duet__note_asked(struct duet_view *view, struct duet__copy *copy, const struct duet_task *task)
{
    struct worker *self = view->self;
    if (!view->core->record || !self)
        return;
    if (!task || !task->klass) {
        copy->after = duet__last_record(view);
        return;
    }
    copy->asked_by = task->id;
    const struct node *node = &view->core->nodes[self->node];
    if (atomic_load(&node->blocked)) /* there was some room, which is not enough */
        duet__note(view, task, atomic_load(&node->freed), DUET_RELEASE_ROOM);
    spin_lock(&self->trace_lock);
    const struct record *records = self->records.rows;
    if (self->last_task && records[self->last_task - 1].event.end_s > task->ready_s)
        copy->after = reference(self, self->last_task);
    spin_unlock(&self->trace_lock);
}

/* ------------------------------------------------------------------------------------------- */
/* All workers' records                                                                         */

struct all {
    const struct duet_runtime *core;
    struct rows records, notes;
    size_t *first;      /* first[w]: number of records of workers before w */
    uint32_t *position; /* by worker, then in its order: index in the sorted records, and 1 */
};

static int by_start(const void *left, const void *right)
{
    const struct duet_event *a = &((const struct record *)left)->event;
    const struct duet_event *b = &((const struct record *)right)->event;
    if (a->start_s != b->start_s)
        return a->start_s < b->start_s ? -1 : 1;
    if (a->worker != b->worker)
        return a->worker < b->worker ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

static int by_task(const void *left, const void *right)
{
    const struct note *a = left, *b = right;
    if (a->task != b->task)
        return a->task < b->task ? -1 : 1;
    if (a->date_s != b->date_s)
        return a->date_s < b->date_s ? -1 : 1;
    return (a->by > b->by) - (a->by < b->by);
}

/* Returns the position of a record, and 1; 0: it is of an earlier measurement. */
static uint32_t position_of(const struct all *all, uint64_t by)
{
    const size_t worker = by >> INDEX_BITS & ((1 << WORKER_BITS) - 1), index = by & UINT32_MAX;
    if (!index || by != reference(&all->core->workers[worker], index) ||
        index > all->first[worker + 1] - all->first[worker])
        return 0;
    return all->position[all->first[worker] + index - 1];
}

/*
 * Returns the date by which something was released. A task that waits has several, and its worker
 * the clock of those who release it; to dates of devices that does not apply.
 */
static double latest(const struct duet_runtime *core, const struct duet_event *event)
{
    if (event->kind == DUET_EVENT_COPY)
        return event->ready_s;
    return core->workers[event->worker].node == DUET_HOST ? event->start_s : event->end_s;
}

/* True if a note names room that a record made later: another worker noticed its end meanwhile. */
static bool is_late(const struct all *all, const struct note *note)
{
    const struct record *records = all->records.rows;
    const uint32_t by = note->release == DUET_RELEASE_ROOM ? position_of(all, note->by) : 0;
    return by && records[by - 1].event.end_s > note->date_s;
}

/* Finds what released a task, or the task that asked for a copy, last; NULL: nothing. */
static const struct note *find_note(const struct all *all, const struct record *record)
{
    const bool copy = record->event.kind == DUET_EVENT_COPY;
    const uint64_t task = copy ? record->asked_by : record->event.id;
    const uint32_t own = (uint32_t)(record - (const struct record *)all->records.rows + 1);
    const double date_s = latest(all->core, &record->event);
    const struct note *notes = all->notes.rows;
    size_t low = 0, high = all->notes.count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (notes[middle].task < task ||
            (notes[middle].task == task && notes[middle].date_s <= date_s))
            low = middle + 1;
        else
            high = middle;
    }
    for (; low && notes[low - 1].release != DUET_RELEASE_OUTSIDE; low--)
        if (!(copy && notes[low - 1].release == DUET_RELEASE_COPY) &&
            position_of(all, notes[low - 1].by) != own && !is_late(all, &notes[low - 1]))
            break; /* notes by the record's own end, of the same date, are passed over */
    return low && notes[low - 1].task == task ? &notes[low - 1] : NULL;
}

static void find_release(const struct all *all, struct record *record)
{
    const struct record *records = all->records.rows;
    struct duet_event *event = &record->event;
    const struct note *note = find_note(all, record);
    uint32_t by = position_of(all, record->after);
    event->release = record->asked_by ? DUET_RELEASE_WORKER : DUET_RELEASE_TASK;
    if (note && (!by || records[by - 1].event.end_s <= note->date_s)) {
        event->release = note->release;
        by =
            note->release == DUET_RELEASE_OUTSIDE ? (uint32_t)note->by : position_of(all, note->by);
    }
    if (!by)
        event->release = DUET_RELEASE_SUBMISSION;
    else if (event->release <= DUET_RELEASE_COPY)
        event->release =
            records[by - 1].event.kind == DUET_EVENT_COPY ? DUET_RELEASE_COPY : DUET_RELEASE_TASK;
    event->released_by = by;
}

/* Takes the rows of each worker. Returns false without memory. */
static bool take(struct all *all)
{
    const unsigned workers = all->core->machine.worker_count;
    all->first = calloc(workers + 1, sizeof *all->first);
    for (unsigned w = 0; w < workers && all->first; w++) {
        struct worker *worker = &all->core->workers[w];
        if (!duet__rows_take(worker, &worker->records, &all->records, sizeof(struct record)) ||
            !duet__rows_take(worker, &worker->notes, &all->notes, sizeof(struct note)))
            return false;
        all->first[w + 1] = all->records.count;
    }
    all->position = malloc((all->records.count + 1) * sizeof *all->position);
    return all->first && all->position;
}

static struct duet_event *order(struct all *all)
{
    const size_t count = all->records.count;
    struct record *records = all->records.rows;
    struct duet_event *events = malloc((count + 1) * sizeof *events);
    if (!events)
        return NULL;
    for (size_t i = 0; i < count; i++)
        records[i].own = i;
    if (count)
        qsort(records, count, sizeof *records, by_start);
    if (all->notes.count)
        qsort(all->notes.rows, all->notes.count, sizeof(struct note), by_task);
    for (size_t i = 0; i < count; i++)
        all->position[records[i].own] = (uint32_t)(i + 1);
    for (size_t i = 0; i < count; i++) {
        find_release(all, &records[i]);
        events[i] = records[i].event;
    }
    return events;
}

int duet_trace_events(const struct duet_runtime *runtime, struct duet_event **events, size_t *count)
{
    struct all all = {.core = runtime};
    *events = NULL;
    *count = 0;
    if (!runtime->record)
        return DUET_EINVAL;
    if (take(&all))
        *events = order(&all);
    if (*events)
        *count = all.records.count;
    free(all.first);
    free(all.records.rows);
    free(all.notes.rows);
    free(all.position);
    return *events ? DUET_OK : DUET_ENOMEM;
}
