/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and reads a line for each problem, with its tasks, and a line for each run, with the date
 * and worker of each task. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fields.h"
#include "bench/corpus/corpus.h"

enum { HANDLES = 1 << 24 };        /* most handles of a problem */
static const double TICK_S = 1e-8; /* unit of dates and times in lines */

/* A line: the head, a problem or a run, as long as it is written or read. */
struct line {
    struct corpus_run run; /* its `of` is also a problem's */
    unsigned schema;
    uint64_t shared_bytes;
    struct {
        unsigned count;
        void *values;
    } kernels, kernel, work, accesses, tasks;
};

#define AT(member) .offset = offsetof(struct line, member)
#define NUMBER .kind = DUET__NUMBER, .least = -1e18, .most = 1e18, .unsaid = NAN
#define ARRAY(member, type, value)                                                                 \
#member, DUET__VALUES, .fields = &(value), .list = &(const struct duet__list)                  \
    {                                                                                              \
        .count = offsetof(struct line, member.count),                                              \
        .array = offsetof(struct line, member.values), .size = sizeof(type), .most = UINT32_MAX    \
    }
#define CASE(key)                                                                                  \
    {key, DUET__NAME, AT(run.of.workload), .room = DUET_NAME_MAX},                                 \
        {"n", DUET__INTEGER, AT(run.of.n), .least = 1, .most = UINT32_MAX},                        \
    {                                                                                              \
        "tile", DUET__INTEGER, AT(run.of.tile), .least = 1, .most = UINT32_MAX                     \
    }

static const struct duet__field a_text = {.kind = DUET__COPY}, a_number = {NUMBER},
                                an_index = {.kind = DUET__UNSIGNED, .most = UINT32_MAX};

static const struct duet__field head_fields[] = {
    {"schema", DUET__UNSIGNED, AT(schema), .most = UINT32_MAX},
    {"shared_bytes", DUET__INTEGER, AT(shared_bytes), .most = (double)INT64_MAX},
    DUET__OTHER_KEYS,
};
static const struct duet__field problem_fields[] = {
    CASE("problem"),
    {ARRAY(kernels, char *, a_text)},
    {ARRAY(kernel, unsigned, an_index)},
    {ARRAY(work, double, a_number)},
    {ARRAY(accesses, double, a_number)}, /* task, handle, bytes, 1: reads + 2: writes */
    DUET__OTHER_KEYS,
};
static const struct duet__field run_fields[] = {
    CASE("run"),
    {"cpus", DUET__UNSIGNED, AT(run.of.cpus), .least = 1, .most = UINT32_MAX},
    {"policy", DUET__NAME, AT(run.of.policy), .room = DUET_NAME_MAX},
    {"round", DUET__UNSIGNED, AT(run.round), .most = 1000},
    {"at_s", NUMBER, AT(run.at_s)},
    {"others", NUMBER, AT(run.others)},
    {"stolen", NUMBER, AT(run.stolen)},
    {"makespan_s", NUMBER, AT(run.recording.makespan_s)},
    /* number relative to the task before, worker, start relative to the task before, duration */
    {ARRAY(tasks, double, a_number)},
    DUET__OTHER_KEYS,
};

/* ------------------------------------------------------------------------------------------- */
/* Writing                                                                                      */

static void put_line(FILE *stream, const struct duet__field *fields, const struct line *line)
{
    struct duet__json_writer json = {.stream = stream, .dense = true};
    duet__json_begin(&json, NULL, '{');
    duet__fields_write(&json, fields, line, line);
    duet__json_end(&json, '}');
    (void)fputc('\n', stream);
}

void corpus_put_head(FILE *stream, uint64_t shared_bytes)
{
    put_line(stream, head_fields, &(struct line){.schema = 1, .shared_bytes = shared_bytes});
}

/* Returns the lowest number of a task, or of a handle: numbers go on from run to run. */
static uint64_t first_task(const struct duet__recording *recording)
{
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < recording->event_count; i++)
        if (recording->events[i].kind == DUET_EVENT_TASK)
            first = MIN(first, recording->events[i].id);
    return first;
}

static uint64_t first_handle(const struct duet__recording *recording)
{
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < recording->access_count; i++)
        first = MIN(first, recording->accesses[i].handle);
    return first;
}

void corpus_put_problem(FILE *stream, const struct corpus_case *of,
                        const struct duet__recording *recording)
{
    const uint64_t first = first_task(recording), handle = first_handle(recording);
    g_autofree unsigned *kernels = g_new0(unsigned, recording->event_count + 1);
    g_autofree double *work = g_new0(double, recording->event_count + 1);
    g_autofree double *cells = g_new0(double, 4 * recording->access_count + 1);
    struct line line = {.run.of = *of,
                        .kernels = {(unsigned)recording->kernel_count, recording->kernels},
                        .kernel.values = kernels,
                        .work.values = work,
                        .accesses = {4 * (unsigned)recording->access_count, cells}};
    for (size_t i = 0; i < recording->event_count; i++)
        if (recording->events[i].kind == DUET_EVENT_TASK) {
            kernels[recording->events[i].id - first] = recording->events[i].kernel;
            work[recording->events[i].id - first] = recording->events[i].work;
            line.kernel.count = ++line.work.count;
        }
    for (size_t i = 0; i < recording->access_count; i++) {
        const struct duet_trace_access *access = &recording->accesses[i];
        const double cell[] = {(double)(access->task - first), (double)(access->handle - handle),
                               (double)access->bytes, access->reads + 2 * access->writes};
        memcpy(cells + 4 * i, cell, sizeof cell);
    }
    put_line(stream, problem_fields, &line);
}

void corpus_put_run(FILE *stream, const struct corpus_run *run)
{
    const struct duet__recording *recording = &run->recording;
    g_autofree double *cells = g_new0(double, 4 * recording->event_count + 1);
    struct line line = {.run = *run, .tasks.values = cells};
    uint64_t before = first_task(recording);
    double date = NAN;
    line.run.at_s = round(run->at_s * 1e3) / 1e3;
    line.run.recording.makespan_s = round(recording->makespan_s / TICK_S) * TICK_S;
    for (size_t i = 0; i < recording->event_count; i++) {
        const struct duet_event *event = &recording->events[i];
        const double start = round(event->start_s / TICK_S), end = round(event->end_s / TICK_S);
        const double cell[] = {(double)event->id - (double)before, event->worker,
                               isnan(date) ? 0 : start - date, end - start};
        if (event->kind != DUET_EVENT_TASK)
            continue;
        memcpy(cells + line.tasks.count, cell, sizeof cell);
        line.tasks.count += 4;
        before = event->id;
        date = start;
    }
    put_line(stream, run_fields, &line);
}

/* ------------------------------------------------------------------------------------------- */
/* Reading                                                                                      */

/* State of the reader. */
struct reading {
    struct corpus *corpus;
    const char *workload; /* NULL: all */
    struct duet_machine *machines;
    unsigned machine_count;
};

static void free_problem(gpointer pointer)
{
    struct corpus_problem *problem = pointer;
    g_strfreev(problem->kernels);
    g_free(problem->kernel);
    g_free(problem->work);
    g_free(problem->accesses);
    g_free(problem);
}

/* Makes the accesses of a problem from numbers, four each. */
static int take_accesses(const struct duet__json *at, const double *cells, unsigned count,
                         struct corpus_problem *problem)
{
    problem->access_count = count / 4;
    problem->accesses = g_new0(struct duet_trace_access, count / 4 + 1);
    for (unsigned i = 0; i < count / 4; i++) {
        const double *cell = cells + 4 * (size_t)i;
        if (!(cell[0] >= 0 && cell[1] >= 0 && cell[1] < HANDLES && cell[2] >= 0 && cell[3] >= 0))
            return duet__json_fail(at, DUET_EPARSE, "accesses[%u]: out of range", 4 * i);
        problem->accesses[i] = (struct duet_trace_access){
            .task = 1 + (uint64_t)cell[0],
            .index = i && cell[0] == cell[-4] ? problem->accesses[i - 1].index + 1 : 0,
            .handle = 1 + (uint64_t)cell[1],
            .bytes = (uint64_t)cell[2],
            .reads = (int)cell[3] & 1,
            .writes = (int)cell[3] & 2,
        };
    }
    return 0;
}

/* Makes a problem of a line; what it takes is no longer the line's. */
static int take_problem(const struct duet__json *at, struct line *line,
                        struct corpus_problem *problem)
{
    *problem = (struct corpus_problem){.of = line->run.of,
                                       .kernels = g_steal_pointer(&line->kernels.values),
                                       .kernel = g_steal_pointer(&line->kernel.values),
                                       .work = g_steal_pointer(&line->work.values),
                                       .task_count = line->kernel.count};
    for (unsigned i = 0; i < line->kernel.count; i++)
        if (problem->kernel[i] >= line->kernels.count)
            return duet__json_fail(at, DUET_EPARSE, "kernel[%u]: there is no such kernel", i);
    if (line->work.count != line->kernel.count)
        return duet__json_fail(at, DUET_EPARSE, "work: has %u elements for %zu tasks",
                               line->work.count, problem->task_count);
    return take_accesses(at, line->accesses.values, line->accesses.count, problem);
}

static const struct corpus_problem *find_problem(const struct corpus *corpus,
                                                 const struct corpus_case *of)
{
    for (guint i = 0; i < corpus->problems->len; i++) {
        const struct corpus_problem *problem = corpus->problems->pdata[i];
        if (!strcmp(problem->of.workload, of->workload) && problem->of.n == of->n &&
            problem->of.tile == of->tile)
            return problem;
    }
    return NULL;
}

/* Makes the events of a run from numbers, four each. */
static int take_tasks(const struct duet__json *at, const double *cells, unsigned count,
                      struct corpus_run *run)
{
    struct duet__recording *recording = &run->recording;
    const struct corpus_problem *problem = run->problem;
    double task = 0, date = 0;
    if (count != 4 * problem->task_count)
        return duet__json_fail(at, DUET_EPARSE, "%u tasks of a problem that has %zu", count / 4,
                               problem->task_count);
    recording->event_count = problem->task_count;
    recording->events = g_new0(struct duet_event, problem->task_count + 1);
    for (unsigned i = 0; i < count / 4; i++) {
        const double *cell = cells + 4 * (size_t)i;
        task += cell[0];
        date += cell[2];
        if (!(task >= 0 && task < (double)problem->task_count) || !(cell[1] >= 0) ||
            !(cell[1] < run->of.cpus))
            return duet__json_fail(at, DUET_EPARSE, "tasks[%u]: no such task or worker", i);
        recording->events[i] = (struct duet_event){
            .kind = DUET_EVENT_TASK,
            .worker = (int)cell[1],
            .kernel = problem->kernel[(size_t)task],
            .id = 1 + (uint64_t)task,
            .start_s = date * TICK_S,
            .end_s = (date + cell[3]) * TICK_S,
            .work = problem->work[(size_t)task],
        };
    }
    return 0;
}

/* Adds the run of a line. */
static int take_run(const struct reading *reading, const struct duet__json *at, struct line *line)
{
    struct corpus *corpus = reading->corpus;
    struct corpus_run *run = &line->run;
    const struct corpus_problem *problem = find_problem(corpus, &run->of);
    int error;
    if (run->of.cpus > reading->machine_count)
        return duet__json_fail(at, DUET_EPARSE, "cpus: %u is more than %u", run->of.cpus,
                               reading->machine_count);
    if (!problem)
        return duet__json_fail(at, DUET_EPARSE, "a run of a problem that no line above describes");
    run->problem = problem;
    run->recording.machine = &reading->machines[run->of.cpus - 1];
    run->recording.kernels = (void *)problem->kernels;
    run->recording.kernel_count = g_strv_length(problem->kernels);
    run->recording.accesses = problem->accesses;
    run->recording.access_count = problem->access_count;
    error = take_tasks(at, line->tasks.values, line->tasks.count, run);
    corpus->rounds = MAX(corpus->rounds, run->round + 1);
    g_array_append_val(corpus->runs, *run); /* also half-read, so that it is freed */
    return error;
}

static int read_line(const struct reading *reading, const struct duet__json *at)
{
    const struct duet__json member = duet__json_member(at, "run"),
                            problem = duet__json_member(at, "problem");
    const bool run = duet__json_present(&member), head = !run && !duet__json_present(&problem);
    struct line line = {0};
    int error = duet__fields_read(at,
                                  head  ? head_fields
                                  : run ? run_fields
                                        : problem_fields,
                                  &line);
    if (!error && head)
        reading->corpus->shared_bytes = line.shared_bytes;
    else if (!error && (!reading->workload || !strcmp(line.run.of.workload, reading->workload))) {
        if (!run)
            g_ptr_array_add(reading->corpus->problems, g_new0(struct corpus_problem, 1));
        error = run ? take_run(reading, at, &line)
                    : take_problem(at, &line,
                                   g_ptr_array_index(reading->corpus->problems,
                                                     reading->corpus->problems->len - 1));
    }
    for (unsigned i = 0; line.kernels.values && i < line.kernels.count; i++)
        g_free(((char **)line.kernels.values)[i]);
    g_free(line.kernels.values);
    g_free(line.kernel.values);
    g_free(line.work.values);
    g_free(line.accesses.values);
    g_free(line.tasks.values);
    return error;
}

int corpus_read(FILE *stream, const char *workload, struct duet_machine *machines,
                unsigned machine_count, struct corpus *out, struct duet_message *message)
{
    const struct reading reading = {out, workload, machines, machine_count};
    char *line = NULL, place[32];
    size_t room = 0;
    int error = 0;
    *out = (struct corpus){.problems = g_ptr_array_new_with_free_func(free_problem),
                           .runs = g_array_new(FALSE, FALSE, sizeof(struct corpus_run))};
    for (size_t number = 1; !error && getline(&line, &room, stream) > 0; number++) {
        struct duet__json root = {.node = NULL};
        (void)g_snprintf(place, sizeof place, "line %zu", number);
        error = duet__json_parse(line, strlen(line), place, message, &root);
        error = error ? error : read_line(&reading, &root);
        duet__json_close(&root);
    }
    free(line);
    if (!error && ferror(stream))
        error = duet_fail(message, DUET_EIO, "the runs cannot be read");
    if (!error && !out->runs->len)
        error = duet_fail(message, DUET_EINVAL, "no runs%s%s", workload ? " of " : "",
                          workload ? workload : "");
    return error;
}

void corpus_fini(struct corpus *corpus)
{
    for (guint i = 0; corpus->runs && i < corpus->runs->len; i++)
        g_free(g_array_index(corpus->runs, struct corpus_run, i).recording.events);
    g_clear_pointer(&corpus->runs, g_array_unref);
    g_clear_pointer(&corpus->problems, g_ptr_array_unref);
}
