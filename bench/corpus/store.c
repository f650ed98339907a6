/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and reads a line for each problem, with its tasks, and a line for each run, with the date
 * and worker of each task. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/corpus/corpus.h"

enum { HANDLES = 1 << 24 };        /* most handles of a problem */
static const double TICK_S = 1e-8; /* unit of dates and times in lines */

/* ------------------------------------------------------------------------------------------- */
/* Writing                                                                                      */

/* Ends a line, and its object. */
static void end_line(struct duet__json_writer *json)
{
    duet__json_end(json, '}');
    (void)fputc('\n', json->stream);
}

void corpus_put_head(FILE *stream, uint64_t shared_bytes)
{
    struct duet__json_writer json = {.stream = stream, .dense = true};

    duet__json_print(&json, "{schema: 1, shared_bytes: %g", (double)shared_bytes);
    end_line(&json);
}

static void put_case(struct duet__json_writer *json, const char *what, const struct corpus_case *of)
{
    duet__json_print(json, "{%s: %s, n: %g, tile: %g", what, of->workload, (double)of->n,
                     (double)of->tile);
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
    struct duet__json_writer writer = {.stream = stream, .dense = true}, *json = &writer;
    uint64_t task = first_task(recording), handle = first_handle(recording);
    struct duet_event *by_task = g_new0(struct duet_event, recording->event_count + 1);
    size_t count = 0;

    for (size_t i = 0; i < recording->event_count; i++)
        if (recording->events[i].kind == DUET_EVENT_TASK) {
            by_task[recording->events[i].id - task] = recording->events[i];
            count++;
        }
    put_case(json, "problem", of);
    duet__json_begin(json, "kernels", '[');
    for (size_t i = 0; i < recording->kernel_count; i++)
        duet__json_put_string(json, NULL, recording->kernels[i]);
    duet__json_end(json, ']');
    duet__json_begin(json, "kernel", '[');
    for (size_t i = 0; i < count; i++)
        duet__json_put_integer(json, NULL, by_task[i].kernel);
    duet__json_end(json, ']');
    duet__json_begin(json, "work", '[');
    for (size_t i = 0; i < count; i++)
        duet__json_put_number(json, NULL, by_task[i].work);
    duet__json_end(json, ']');
    duet__json_begin(json, "accesses", '['); /* task, handle, bytes, 1: reads + 2: writes */
    for (size_t i = 0; i < recording->access_count; i++) {
        const struct duet_trace_access *access = &recording->accesses[i];
        duet__json_put_integer(json, NULL, access->task - task);
        duet__json_put_integer(json, NULL, access->handle - handle);
        duet__json_put_integer(json, NULL, access->bytes);
        duet__json_put_integer(json, NULL, access->reads + 2 * access->writes);
    }
    duet__json_end(json, ']');
    end_line(json);
    g_free(by_task);
}

void corpus_put_run(FILE *stream, const struct corpus_run *run)
{
    struct duet__json_writer writer = {.stream = stream, .dense = true}, *json = &writer;
    const struct duet__recording *recording = &run->recording;
    uint64_t first = first_task(recording), before = first;
    double date = NAN;

    put_case(json, "run", &run->of);
    duet__json_print(json,
                     "cpus: %u, policy: %s, round: %u, at_s: %g, others: %g, stolen: %g, "
                     "makespan_s: %g, tasks: [",
                     run->of.cpus, run->of.policy, run->round, round(run->at_s * 1e3) / 1e3,
                     run->others, run->stolen, round(recording->makespan_s / TICK_S) * TICK_S);
    /* number relative to the task before, worker, start relative to the task before, duration */
    for (size_t i = 0; i < recording->event_count; i++) {
        const struct duet_event *event = &recording->events[i];
        double start, end = round(event->end_s / TICK_S);
        if (event->kind != DUET_EVENT_TASK)
            continue;
        start = round(event->start_s / TICK_S);
        duet__json_put_number(json, NULL, (double)event->id - (double)before);
        duet__json_put_integer(json, NULL, (uint64_t)event->worker);
        duet__json_put_number(json, NULL, isnan(date) ? 0 : start - date);
        duet__json_put_number(json, NULL, end - start);
        before = event->id;
        date = start;
    }
    duet__json_end(json, ']');
    end_line(json);
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

/* Returns all numbers of an array; NULL, with the error, if it is none. Free with g_free. */
static double *numbers(const struct duet__json *at, const char *key, unsigned *count, int *error)
{
    const struct duet__json array = duet__json_member(at, key);
    double *values = NULL;

    *error = duet__json_array(&array, 0, UINT32_MAX, count);
    if (!*error)
        values = g_new0(double, *count + 1);
    for (unsigned i = 0; !*error && i < *count; i++) {
        const struct duet__json element = duet__json_element(&array, i);
        *error = duet__json_number(&element, -1e18, 1e18, &values[i]);
    }
    if (*error)
        g_clear_pointer(&values, g_free);
    return values;
}

static int member_number(const struct duet__json *at, const char *key, double *value)
{
    const struct duet__json member = duet__json_member(at, key);
    *value = NAN;
    return duet__json_is_null(&member) ? 0 : duet__json_number(&member, -1e18, 1e18, value);
}

static int read_case(const struct duet__json *at, const char *what, struct corpus_case *of)
{
    const struct duet__json name = duet__json_member(at, what), n = duet__json_member(at, "n"),
                            tile = duet__json_member(at, "tile");
    int error = duet__json_name(&name, of->workload, sizeof of->workload);

    error = error ? error : duet__json_integer(&n, 1, UINT32_MAX, &of->n);
    return error ? error : duet__json_integer(&tile, 1, UINT32_MAX, &of->tile);
}

static void free_problem(gpointer pointer)
{
    struct corpus_problem *problem = pointer;
    g_strfreev(problem->kernels);
    g_free(problem->kernel);
    g_free(problem->work);
    g_free(problem->accesses);
    g_free(problem);
}

static int read_kernels(const struct duet__json *at, struct corpus_problem *problem)
{
    const struct duet__json array = duet__json_member(at, "kernels");
    unsigned count = 0;
    int error = duet__json_array(&array, 0, 1000, &count);

    problem->kernels = g_new0(char *, count + 1);
    for (unsigned i = 0; i < count && !error; i++) {
        const struct duet__json element = duet__json_element(&array, i);
        const char *name = NULL;
        error = duet__json_string(&element, &name);
        problem->kernels[i] = g_strdup(name);
    }
    return error;
}

static int read_indices(const struct duet__json *at, struct corpus_problem *problem)
{
    unsigned count = 0, kernels = g_strv_length(problem->kernels);
    int error = 0;
    double *kernel = numbers(at, "kernel", &count, &error);

    problem->task_count = count;
    problem->kernel = g_new0(unsigned, count + 1);
    for (unsigned i = 0; i < count && !error; i++)
        if (kernel[i] >= 0 && kernel[i] < kernels)
            problem->kernel[i] = (unsigned)kernel[i];
        else
            error = duet__json_fail(at, DUET_EPARSE, "kernel[%u]: there is no such kernel", i);
    g_free(kernel);
    return error;
}

static int read_accesses(const struct duet__json *at, struct corpus_problem *problem)
{
    unsigned count = 0;
    int error = 0;
    double *cells = numbers(at, "accesses", &count, &error);

    problem->access_count = count / 4;
    problem->accesses = g_new0(struct duet_trace_access, count / 4 + 1);
    for (unsigned i = 0; i < count / 4 && !error; i++) {
        const double *cell = cells + 4 * (size_t)i;
        if (!(cell[0] >= 0 && cell[1] >= 0 && cell[1] < HANDLES && cell[2] >= 0 && cell[3] >= 0))
            error = duet__json_fail(at, DUET_EPARSE, "accesses[%u]: out of range", 4 * i);
        else
            problem->accesses[i] = (struct duet_trace_access){
                .task = 1 + (uint64_t)cell[0],
                .index = i && cell[0] == cell[-4] ? problem->accesses[i - 1].index + 1 : 0,
                .handle = 1 + (uint64_t)cell[1],
                .bytes = (uint64_t)cell[2],
                .reads = (int)cell[3] & 1,
                .writes = (int)cell[3] & 2,
            };
    }
    g_free(cells);
    return error;
}

static int read_problem(const struct duet__json *at, struct corpus_problem *problem)
{
    unsigned works = 0;
    int error = read_kernels(at, problem);

    error = error ? error : read_indices(at, problem);
    error = error ? error : read_accesses(at, problem);
    if (!error)
        problem->work = numbers(at, "work", &works, &error);
    if (!error && works != problem->task_count)
        error = duet__json_fail(at, DUET_EPARSE, "work: has %u elements for %zu tasks", works,
                                problem->task_count);
    return error;
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

static int read_tasks(const struct duet__json *at, struct corpus_run *run)
{
    struct duet__recording *recording = &run->recording;
    const struct corpus_problem *problem = run->problem;
    unsigned count = 0;
    int error = 0;
    double *cells = numbers(at, "tasks", &count, &error), task = 0, date = 0;

    if (!error && count != 4 * problem->task_count)
        error = duet__json_fail(at, DUET_EPARSE, "%u tasks of a problem that has %zu", count / 4,
                                problem->task_count);
    recording->event_count = problem->task_count;
    recording->events = g_new0(struct duet_event, problem->task_count + 1);
    for (unsigned i = 0; i < count / 4 && !error; i++) {
        const double *cell = cells + 4 * (size_t)i;
        task += cell[0];
        date += cell[2];
        if (!(task >= 0 && task < (double)problem->task_count) || !(cell[1] >= 0) ||
            !(cell[1] < run->of.cpus))
            error = duet__json_fail(at, DUET_EPARSE, "tasks[%u]: no such task or worker", i);
        else
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
    g_free(cells);
    return error;
}

static int read_run(const struct reading *reading, const struct duet__json *at,
                    struct corpus_run *run)
{
    const struct duet__json cpus = duet__json_member(at, "cpus"),
                            policy = duet__json_member(at, "policy"),
                            round = duet__json_member(at, "round");
    struct duet__recording *recording = &run->recording;
    int error = duet__json_unsigned(&cpus, 1, reading->machine_count, &run->of.cpus);

    error = error ? error : duet__json_name(&policy, run->of.policy, sizeof run->of.policy);
    error = error ? error : duet__json_unsigned(&round, 0, 1000, &run->round);
    error = error ? error : member_number(at, "at_s", &run->at_s);
    error = error ? error : member_number(at, "others", &run->others);
    error = error ? error : member_number(at, "stolen", &run->stolen);
    error = error ? error : member_number(at, "makespan_s", &recording->makespan_s);
    run->problem = find_problem(reading->corpus, &run->of);
    if (!error && !run->problem)
        return duet__json_fail(at, DUET_EPARSE, "a run of a problem that no line above describes");
    if (error)
        return error;
    recording->machine = &reading->machines[run->of.cpus - 1];
    recording->kernels = (void *)run->problem->kernels;
    recording->kernel_count = g_strv_length(run->problem->kernels);
    recording->accesses = run->problem->accesses;
    recording->access_count = run->problem->access_count;
    return read_tasks(at, run);
}

static int read_head(const struct duet__json *at, struct corpus *corpus)
{
    const struct duet__json shared = duet__json_member(at, "shared_bytes");

    return duet__json_integer(&shared, 0, UINT64_MAX >> 1, &corpus->shared_bytes);
}

static int read_line(const struct reading *reading, const struct duet__json *at)
{
    struct corpus *corpus = reading->corpus;
    const struct duet__json run = duet__json_member(at, "run"),
                            problem = duet__json_member(at, "problem");
    struct corpus_run own = {0};
    struct corpus_problem *described;
    int error;

    if (!duet__json_present(&run) && !duet__json_present(&problem))
        return read_head(at, corpus);
    error = read_case(at, duet__json_present(&run) ? "run" : "problem", &own.of);
    if (error || (reading->workload && strcmp(own.of.workload, reading->workload) != 0))
        return error;
    if (duet__json_present(&run)) {
        error = read_run(reading, at, &own);
        corpus->rounds = MAX(corpus->rounds, own.round + 1);
        g_array_append_val(corpus->runs, own); /* also half-read, so that it is freed */
        return error;
    }
    described = g_new0(struct corpus_problem, 1);
    described->of = own.of;
    g_ptr_array_add(corpus->problems, described);
    return read_problem(at, described);
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
        error = error ? error : duet__json_keys(&root, NULL);
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
