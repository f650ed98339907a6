/* SPDX-License-Identifier: Apache-2.0 */
/* Search for better schedules, by simulation. */
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <duet/random.h>

#include "base/clock.h"
#include "runs/executor.h"
#include "runs/session.h"
#include "runtime/schedule.h"

/* Name by which simulations find the schedule that is tried. */
static const char name[] = "improved.json";

enum {
    ROUNDS = 8,       /* moments at which all processes go on from the best schedule */
    MOVES = 8,        /* most moves between two simulations */
    PATH_MOST = 4096, /* tasks of the critical path that are looked at */
};

#define WARMEST                                                                                    \
    0.004 /* a change for the worse by this part is kept with probability 1/e at first */

/* ------------------------------------------------------------------------------------------- */
/* Schedules and their simulations                                                              */

/* A schedule with the records of its simulation. */
struct solution {
    struct duet__schedule *schedule; /* in the order of dates, which are those of the records */
    struct duet__run run;
    const struct duet_event **records; /* record of each task */
};

static void solution_fini(struct solution *solution)
{
    duet__schedule_free(solution->schedule);
    duet__run_fini(&solution->run);
    g_free(solution->records);
    *solution = (struct solution){0};
}

/* Sets the records of all tasks, and their dates in the schedule. */
static void note_records(struct solution *solution)
{
    const struct duet__recording *recording = &solution->run.recording;
    struct duet__schedule *schedule = solution->schedule;
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < recording->event_count; i++)
        if (recording->events[i].kind == DUET_EVENT_TASK)
            first = MIN(first, recording->events[i].id);
    solution->records = g_new0(const struct duet_event *, schedule->count);
    for (size_t i = 0; i < recording->event_count; i++) {
        const struct duet_event *event = &recording->events[i];
        const uint64_t task = event->id - first;
        if (event->kind != DUET_EVENT_TASK || task >= schedule->count)
            continue;
        solution->records[task] = event;
        schedule->tasks[task].start_s = event->start_s;
        schedule->tasks[task].end_s = event->end_s;
    }
    /* the first of two tasks that a device has taken may wait for data while the second begins */
    for (size_t i = 1; i < schedule->planned; i++) {
        const struct duet__planned *ahead = &schedule->tasks[schedule->order[i - 1]];
        struct duet__planned *task = &schedule->tasks[schedule->order[i]];
        if (task->place && task->start_s <= ahead->start_s)
            task->start_s = nextafter(ahead->start_s, INFINITY);
    }
    schedule->makespan_s = solution->run.stats.makespan_s;
}

/* Simulates a schedule, which the solution takes over; after an error there is no solution. */
static int evaluate(const struct duet__request *request, struct duet__schedule *schedule,
                    struct solution *out, struct duet_message *message)
{
    struct duet__request own = *request;
    struct duet__session session = {.request = &own,
                                    .policy = name,
                                    .problem = request->problem,
                                    .quiet = true};
    int error;
    *out = (struct solution){.schedule = schedule};
    duet__schedule_offer(name, schedule);
    message->text[0] = 0;
    error = duet__session_run(&session, &out->run, request->records, message);
    duet__session_close(&session);
    duet__schedule_offer(name, NULL);
    if (error)
        solution_fini(out);
    else
        note_records(out);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Changes                                                                                      */

/* A search under way. */
struct search {
    const struct duet__request *request;
    struct solution now; /* schedule that the next change is made to */
    uint64_t random;
    uint64_t tries;
    GArray *path; /* size_t: tasks of the critical path of `now`, the last one first */
};

/* Returns the index of a record's task in the schedule. */
static size_t task_of(const struct solution *solution, const struct duet_event *record)
{
    uint64_t first = 0;
    for (size_t i = 0; !first; i++)
        first = solution->records[i] ? solution->records[i]->id - i : 0;
    return record->id - first;
}

/* Returns the task before another on its worker, or NULL. */
static const struct duet_event *before(const struct solution *solution, size_t task)
{
    const struct duet__schedule *schedule = solution->schedule;
    const struct duet__planned *planned = &schedule->tasks[task];
    return planned->place ? solution->records[schedule->order[schedule->first[planned->worker] +
                                                              planned->place - 1]]
                          : NULL;
}

/* Returns the task that ended last of those by which a task was released, over copies; or NULL. */
static const struct duet_event *releaser(const struct solution *solution,
                                         const struct duet_event *record)
{
    const struct duet__recording *recording = &solution->run.recording;
    for (unsigned hops = 0; hops < PATH_MOST; hops++) {
        if (!record->released_by || record->release == DUET_RELEASE_OUTSIDE ||
            record->released_by > recording->event_count)
            return NULL;
        record = &recording->events[record->released_by - 1];
        if (record->kind == DUET_EVENT_TASK)
            return record;
    }
    return NULL;
}

/* Finds the critical path: from a task to the one before it on its worker, or the one that released
   it, whichever ended later. */
static void find_path(struct search *search)
{
    const struct solution *now = &search->now;
    const struct duet_event *record = NULL;
    for (size_t i = 0; i < now->schedule->count; i++)
        if (now->records[i] && (!record || now->records[i]->end_s > record->end_s))
            record = now->records[i];
    g_array_set_size(search->path, 0);
    while (record && search->path->len < PATH_MOST) {
        const size_t task = task_of(now, record);
        const struct duet_event *own = before(now, task), *other = releaser(now, record);
        g_array_append_val(search->path, task);
        record = !own || (other && other->end_s > own->end_s) ? other : own;
    }
}

/* Returns a worker other than the task's that can run it, or the task's where there is none. */
static uint32_t other_worker(struct search *search, size_t task)
{
    const struct duet__schedule *schedule = search->now.schedule;
    const struct duet_machine *machine = search->now.run.recording.machine;
    const uint32_t own = schedule->tasks[task].worker, count = schedule->workers.list->len;
    for (unsigned tries = 0; tries < 4 * count; tries++) {
        uint32_t worker = duet_random_below(&search->random, count);
        unsigned arch = machine->workers[worker].arch;
        if (worker != own && search->now.records[task]->where >> arch & 1)
            return worker;
    }
    return own;
}

/* Returns a random task of the schedule. */
static size_t any_task(struct search *search)
{
    const struct duet__schedule *schedule = search->now.schedule;
    return schedule->order[duet_random_below(&search->random, (unsigned)schedule->planned)];
}

/* Returns a random task, three times in four of the critical path. */
static size_t choose_task(struct search *search)
{
    if (duet_random_below(&search->random, 4))
        return g_array_index(search->path, size_t,
                             duet_random_below(&search->random, search->path->len));
    return any_task(search);
}

/*
 * Changes a copy of the schedule: gives a task another worker, or an earlier place on its own. Its
 * date there is between that at which it was ready and its own. In the order of such dates each
 * task comes after all that it depends on, unless these take no time: so there is hardly ever a
 * cycle, with which the simulation fails.
 */
static void change(struct search *search, struct duet__schedule *schedule)
{
    const size_t task = choose_task(search);
    const struct duet_event *record = search->now.records[task];
    struct duet__planned *planned = &schedule->tasks[task];
    const struct duet_event *ahead = before(&search->now, task);
    const bool stays =
        ahead && ahead->start_s >= record->ready_s && duet_random_below(&search->random, 2);
    const double share = duet_random_unit(&search->random);
    if (stays) {
        planned->start_s = fmin(record->ready_s + share * (ahead->start_s - record->ready_s),
                                nextafter(ahead->start_s, 0));
    } else {
        planned->worker = other_worker(search, task);
        planned->start_s = record->start_s - (record->start_s - record->ready_s) *
                                                 fmin(fmax(2.5 * share - 0.75, 0), 1);
    }
}

/* Gives a worker that waits between two tasks one that is ready then, and begins later elsewhere.
 */
static void fill(struct search *search, struct duet__schedule *schedule)
{
    enum { GAPS = 8, TASKS = 64 };
    const struct solution *now = &search->now;
    const struct duet_machine *machine = now->run.recording.machine;
    double longest = 0, from_s = 0;
    uint32_t worker = 0;
    for (unsigned i = 0; i < GAPS; i++) {
        const size_t task = any_task(search);
        const struct duet_event *ahead = before(now, task);
        const double end_s = ahead ? ahead->end_s : 0;
        if (now->records[task]->start_s - end_s > longest) {
            longest = now->records[task]->start_s - end_s;
            from_s = end_s;
            worker = now->schedule->tasks[task].worker;
        }
    }
    for (unsigned i = 0; i < TASKS && longest > 0; i++) {
        const size_t task = any_task(search);
        const struct duet_event *record = now->records[task];
        if (record->ready_s <= from_s && record->start_s > from_s + longest &&
            record->where >> machine->workers[worker].arch & 1) {
            schedule->tasks[task].worker = worker;
            schedule->tasks[task].start_s = from_s;
            return;
        }
    }
}

/* Makes up to MOVES changes at once, simulates them, and keeps what is no worse than `most_s`. */
static bool step(struct search *search, double most_s)
{
    struct duet__schedule *schedule = duet__schedule_copy(search->now.schedule);
    unsigned moves = 1 + duet_random_below(&search->random, MOVES);
    struct duet_message message;
    struct solution found;
    for (unsigned i = 0; i < moves; i++)
        (duet_random_below(&search->random, 2) ? fill : change)(search, schedule);
    duet__schedule_arrange(schedule);
    search->tries++;
    if (evaluate(search->request, schedule, &found, &message))
        return false;
    if (found.schedule->makespan_s > most_s) {
        solution_fini(&found);
        return false;
    }
    solution_fini(&search->now);
    search->now = found;
    find_path(search);
    return true;
}

/* ------------------------------------------------------------------------------------------- */
/* Processes                                                                                    */

/* A search of all processes. */
struct together {
    struct duet__request request; /* of their simulations */
    GPtrArray *starts; /* struct duet__schedule *, the best first: where the next jobs begin */
    double seconds;    /* of a job */
    unsigned round;
    uint64_t tries;
    _Atomic(bool) *stop; /* shared with the jobs: they are to end with what they have */
    struct duet_message message;
};

/* The head of what a job leaves; a worker and a date of each task follow. */
struct left {
    double makespan_s; /* 0: it has found nothing */
    uint64_t tries;
};

struct place {
    uint32_t worker;
    double start_s;
};

/* Searches from one of the starts on, as a duet__execute_fn. */
static void execute(uint64_t job, FILE *stream, void *data)
{
    struct together *together = data;
    const double begin_s = duet__clock_s();
    struct search search = {.request = &together->request,
                            .random = duet_random_stream(together->request.seed, job),
                            .path = g_array_new(FALSE, FALSE, sizeof(size_t))};
    struct duet__schedule *start = together->starts->pdata[job % together->starts->len], *best;
    double passed;
    struct left left = {0};
    if (evaluate(&together->request, duet__schedule_copy(start), &search.now, &together->message))
        return;
    best = duet__schedule_copy(search.now.schedule);
    find_path(&search);
    do {
        passed = fmin((duet__clock_s() - begin_s) / together->seconds, 1);
        double rest = 1 - (together->round + passed) / ROUNDS;
        double worse = -log(1 - duet_random_unit(&search.random)) * WARMEST /
                       (double)start->planned * rest * rest;
        if (step(&search, search.now.schedule->makespan_s * (1 + worse)) &&
            search.now.schedule->makespan_s < best->makespan_s) {
            duet__schedule_free(best);
            best = duet__schedule_copy(search.now.schedule);
        }
    } while (passed < 1 && !atomic_load(together->stop));
    left = (struct left){best->makespan_s, search.tries};
    duet__wire_write(stream, &left, 1, sizeof left);
    for (size_t i = 0; i < best->count; i++)
        duet__wire_write(stream, &(struct place){best->tasks[i].worker, best->tasks[i].start_s}, 1,
                         sizeof(struct place));
    duet__schedule_free(best);
    solution_fini(&search.now);
    g_array_unref(search.path);
}

/* Adds what a job has found to the schedules that `together` knows. */
static void take(struct together *together, const struct duet__ended *ended, GPtrArray *found)
{
    struct duet__schedule *schedule = duet__schedule_copy(together->starts->pdata[0]);
    const size_t bytes = sizeof(struct left) + schedule->count * sizeof(struct place);
    struct left left;
    if (!ended->result || ended->length != bytes) {
        duet__schedule_free(schedule);
        return;
    }
    memcpy(&left, ended->result, sizeof left);
    for (size_t i = 0; i < schedule->count; i++) {
        struct place place;
        memcpy(&place, ended->result + sizeof left + i * sizeof place, sizeof place);
        schedule->tasks[i].worker = place.worker;
        schedule->tasks[i].start_s = place.start_s;
    }
    duet__schedule_arrange(schedule);
    schedule->makespan_s = left.makespan_s;
    together->tries += left.tries;
    g_ptr_array_add(found, schedule);
}

static gint by_makespan(gconstpointer left, gconstpointer right)
{
    const struct duet__schedule *a = *(struct duet__schedule *const *)left,
                                *b = *(struct duet__schedule *const *)right;
    return (a->makespan_s > b->makespan_s) - (a->makespan_s < b->makespan_s);
}

/*
 * Lets all processes search once. Returns the number of the signal that came, or 0. The first one
 * lets them end with what they have, a second one ends them.
 */
static int search_round(struct together *together, struct duet__executor *executor, unsigned jobs,
                        const struct duet__signals *signals)
{
    GPtrArray *found = g_ptr_array_new_with_free_func((GDestroyNotify)duet__schedule_free);
    struct duet__ended ended;
    int number = 0, again = 0;
    for (unsigned i = 0; i < jobs; i++)
        if (duet__executor_give(executor, (uint64_t)together->round * jobs + i, true,
                                &together->message))
            break;
    while (duet__executor_busy(executor) && !again) {
        if (duet__executor_take(executor, 0.1, &ended)) {
            take(together, &ended, found);
            free(ended.result);
        }
        if (number)
            again = duet__signals_take(signals, 0);
        else
            number = duet__signals_take(signals, 0);
        atomic_store(together->stop, number != 0);
    }
    (void)duet__executor_end(executor, 0, UINT64_MAX);
    g_ptr_array_add(found, duet__schedule_copy(together->starts->pdata[0]));
    g_ptr_array_sort(found, by_makespan);
    g_ptr_array_set_size(found, 1);
    g_ptr_array_unref(together->starts);
    together->starts = found;
    return number;
}

/* Takes the schedules of runs as starts, with the makespans of following them; those that cannot be
   followed are left out, as long as there are others. */
static int take_starts(struct together *together, const struct duet__series *series, size_t count)
{
    int error = 0;
    for (size_t i = 0; i < count; i++) {
        struct duet__schedule *schedule;
        struct solution followed;
        if (!series[i].count)
            continue;
        error = duet__schedule_take(series[i].policy, &series[i].runs[0].recording, &schedule,
                                    &together->message);
        if (!error)
            error = evaluate(&together->request, schedule, &followed, &together->message);
        if (error)
            continue;
        g_ptr_array_add(together->starts, g_steal_pointer(&followed.schedule));
        solution_fini(&followed);
    }
    g_ptr_array_sort(together->starts, by_makespan);
    return together->starts->len ? 0 : error;
}

/* Searches, from the starts on. */
static int search_all(struct together *together, int *number)
{
    const unsigned jobs = MAX(together->request.jobs, 1);
    struct duet__executor *executor = duet__executor_new(jobs, execute, together);
    struct duet__signals signals;
    together->stop = mmap(NULL, sizeof *together->stop, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (together->stop == MAP_FAILED) {
        duet__executor_free(executor);
        return duet_fail(&together->message, DUET_EIO, "cannot share memory: %s", strerror(errno));
    }
    duet__signals_hold(&signals, false);
    for (; together->round < ROUNDS && !*number; together->round++)
        *number = search_round(together, executor, jobs, &signals);
    duet__signals_release(&signals);
    duet__executor_free(executor);
    munmap(together->stop, sizeof *together->stop);
    return 0;
}

int duet__improve(const struct duet__request *request, const struct duet__series *series,
                  size_t count, double seconds, struct duet__improved *out, int *number,
                  struct duet_message *message)
{
    struct together together = {.request = *request,
                                .starts = g_ptr_array_new_with_free_func(
                                    (GDestroyNotify)duet__schedule_free),
                                .seconds = seconds / ROUNDS};
    struct solution best;
    int error;
    *out = (struct duet__improved){0};
    together.request.records = DUET_RECORDS_FIRST;
    together.request.bounds = false;
    error = take_starts(&together, series, count);
    if (!error) {
        out->before_s = ((const struct duet__schedule *)together.starts->pdata[0])->makespan_s;
        error = search_all(&together, number);
    }
    together.request.records = request->records;
    together.request.bounds = request->bounds;
    if (!error)
        error = evaluate(&together.request, duet__schedule_copy(together.starts->pdata[0]), &best,
                         &together.message);
    if (!error) {
        out->run = best.run;
        out->schedule = g_steal_pointer(&best.schedule);
        for (size_t i = 0; i < out->schedule->count; i++)
            if (best.records[i])
                out->schedule->tasks[i].start_s = best.records[i]->start_s;
        out->tries = together.tries;
        best.run = (struct duet__run){0};
        solution_fini(&best);
    }
    *message = together.message;
    g_ptr_array_unref(together.starts);
    return error;
}
