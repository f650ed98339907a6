/* SPDX-License-Identifier: Apache-2.0 */
/* `duet validate --openmp`: how far simulations of a recorded OpenMP program are from its runs. */
#include <glib/gstdio.h>
#include <math.h>
#include <stdio.h>

#include "cli/calibrate.h"
#include "cli/tables.h"
#include "report/report.h"
#include "runs/rounds.h"
#include "trace/trace.h"
#include "base/json.h"
#include "base/stats.h"

/* A number of threads, and what is known of it: a value for each round. */
struct point {
    struct duet__request request; /* with as many CPUs as threads */
    double *predicted_s, *measured_s;
};

struct trial {
    struct duet__job *job;
    char **program;
    char *file;                 /* runs leave a graph in it */
    struct duet__tables tables; /* a cell a point */
    struct point *points;
    size_t count, round_count;  /* number of points; of wanted rounds */
    struct duet__rounds rounds; /* those made, of one case: the recording and all points */
    size_t tasks;
};

/* Reads the makespan of a trace. Returns the exit status. */
static int read_makespan(const char *path, double *makespan_s)
{
    struct duet__trace trace = {0};
    struct duet_message message = {""};
    g_autofree char *text = NULL;
    size_t length;
    int error = duet__read_all(path, DUET__TRACE_MOST_MIB, &text, &length, &message);
    error = error ? error : duet__read_figures(text, length, path, &trace, &message);
    *makespan_s = trace.run.stats.makespan_s;
    duet__trace_fini(&trace);
    return error ? duet__complain(DUET__FAILED, "%s", message.text) : DUET__DONE;
}

/*
 * Runs the program, and gives the makespan and, of a recording, the graph, which the caller owns.
 * Returns the exit status.
 */
static int measure(const struct trial *trial, uint64_t threads, struct duet__graph **recorded,
                   double *makespan_s)
{
    struct duet__graph *graph = NULL;
    const struct duet__openmp run = {.program = trial->program,
                                     .out = trial->file,
                                     .threads = threads,
                                     .loops = trial->job->values.loops,
                                     .static_loops = trial->job->values.static_loops,
                                     .only_makespan = !recorded,
                                     .on_duet = !recorded && trial->job->values.on_duet,
                                     .quiet = true};
    struct duet_message message = {""};
    int number = 0, status = duet__openmp_run(&run, &number);
    if (number > 0)
        return DUET__SIGNALLED + number;
    if (status == DUET__DONE && run.on_duet)
        return read_makespan(trial->file, makespan_s);
    if (status == DUET__DONE && duet__graph_read(trial->file, NULL, &graph, &message))
        status = duet__complain(DUET__FAILED, "%s", message.text);
    if (graph)
        *makespan_s = graph->makespan_s;
    if (recorded)
        *recorded = graph;
    else
        duet__graph_free(graph);
    return status;
}

/* Simulates a graph on as many cores as a point has. Returns the exit status. */
static int simulate(const struct trial *trial, const struct duet__graph *graph,
                    const struct point *point, double *makespan_s)
{
    const struct duet__workload workload = duet__graph_workload(graph);
    struct duet__request request;
    struct duet__progress progress = {0};
    struct duet__series series = {0};
    struct duet_message message = {""};
    int number = 0, error, status = DUET__DONE;
    duet__request_copy(&request, &point->request);
    request.workload = &workload;
    request.problem.graph = graph;
    request.platform = trial->job->platform;
    request.config.simulate = trial->job->platform->name;
    request.config.gpus = 0;
    /* on one core, the recording includes what a task costs */
    request.config.no_costs = request.config.cpus == 1;
    request.config.strict = false;
    request.reps = request.jobs = 1;
    error = duet__request_build(&request, &message);
    if (!error)
        error = duet__simulate(&request, &progress, &series, &number, &message);
    if (number)
        status = DUET__SIGNALLED + number;
    else if (error || !series.count)
        status = duet__complain(DUET__FAILED, "the simulation failed: %s",
                                error ? message.text : series.message.text);
    else
        *makespan_s = series.runs[0].stats.makespan_s;
    duet__series_fini(&series);
    duet__request_fini(&request);
    return status;
}

/* Makes one recording, and right behind it the runs without, when the machine is as fast. */
static int make_round(struct trial *trial)
{
    struct duet__graph *recorded = NULL;
    const size_t round = trial->rounds.round;
    double recorded_s;
    int status;
    (void)duet__rounds_begin(&trial->rounds);
    status = measure(trial, 1, &recorded, &recorded_s);
    for (size_t i = 0; i < trial->count && status == DUET__DONE; i++) {
        struct point *point = &trial->points[i];
        status =
            measure(trial, (uint64_t)point->request.config.cpus, NULL, &point->measured_s[round]);
        if (status == DUET__DONE)
            status = simulate(trial, recorded, point, &point->predicted_s[round]);
    }
    if (status == DUET__DONE) {
        trial->tasks = duet__graph_count(recorded);
        (void)duet__rounds_load(&trial->rounds);
        (void)duet__rounds_next(&trial->rounds);
    }
    duet__graph_free(recorded);
    return status;
}

/* Prints the table. Returns the exit status, by --fail-over. */
static int report(const struct trial *trial)
{
    double worst = 0, limit = trial->job->values.fail_over;
    int status;
    printf("%s: %zu tasks and parts of tasks, %zu rounds, simulated on %s under %s\n",
           trial->program[0], trial->tasks, trial->rounds.round, trial->job->platform->name,
           trial->points[0].request.policies[0]);
    duet__put_disturbed(stdout, (const size_t *)(void *)trial->rounds.disturbed->data,
                        trial->rounds.disturbed->len, 0);
    putchar('\n');
    printf("threads    predicted  measured     error      95%% of error\n"
           "                   s         s         %%                  %%\n");
    for (size_t i = 0; i < trial->count; i++) {
        const struct point *point = &trial->points[i];
        struct duet__summary predicted = duet__summarise(point->predicted_s, trial->rounds.round);
        struct duet__summary measured = duet__summarise(point->measured_s, trial->rounds.round);
        double error = predicted.median / measured.median - 1, low, high;
        duet__ratio_interval(&predicted, &measured, &low, &high);
        printf("%7d %12.5g %9.5g %+9.1f   %+7.1f to %+.1f\n", point->request.config.cpus,
               predicted.median, measured.median, 100 * error, 100 * (low - 1), 100 * (high - 1));
        worst = fmax(worst, fabs(error));
    }
    status = duet__finish_output();
    if (status == DUET__DONE && duet__given(trial->job, "fail-over") && worst > limit)
        status = duet__complain(DUET__FAILED, "an error is above %g %%: %.1f %%", limit * 100,
                                worst * 100);
    return status;
}

/* Makes the next point, from the table's cell. */
static int make_point(struct trial *trial, struct duet_message *message)
{
    struct point *point = &trial->points[trial->count];
    point->predicted_s = g_new0(double, trial->round_count);
    point->measured_s = g_new0(double, trial->round_count);
    int error = duet__tables_cell(&trial->tables, trial->count++, &trial->job->request,
                                  &point->request, message);
    if (!error && !point->request.config.cpus)
        error = duet_fail(message, DUET_EINVAL, "--cpus: a program has a thread at least");
    return error;
}

static int prepare(struct trial *trial, struct duet_message *message)
{
    static const char *const others[] = {"cases", "calibrate", "emulate", "json",
                                         "csv",   "html",      "n",       "tile",
                                         "gpus",  "reps",      "devices", "nodes"};
    const struct duet__values *values = &trial->job->values;
    struct duet__product *product = trial->tables.study->products->pdata[0];
    int error = 0;
    if (values->on_duet && !values->openmp)
        return duet_fail(message, DUET_EINVAL, "--on-duet goes with --openmp");
    if (!trial->program || !trial->program[0])
        return duet_fail(message, DUET_EINVAL,
                         "which program? duet validate --openmp -- ./program");
    for (size_t i = 0; i < G_N_ELEMENTS(others); i++)
        if (duet__given(trial->job, others[i]))
            return duet_fail(message, DUET_EINVAL, "--openmp and --%s exclude each other",
                             others[i]);
    trial->round_count = (size_t)(values->rounds ? values->rounds : 10);
    if (!duet__given(trial->job, "cpus"))
        error = duet__study_add(product, duet__option_find("cpus", DUET__CASE), "1,2", message);
    error = error ? error : duet__tables_read(&trial->tables, 1, NULL, message);
    for (guint f = 0; f < product->factors->len && !error; f++) {
        const struct duet__factor *factor = product->factors->pdata[f];
        if (factor->values->len > 1 && strcmp(factor->name, "cpus") != 0)
            error = duet_fail(message, DUET_EINVAL, "--openmp takes one %s", factor->name);
    }
    trial->points = g_new0(struct point, trial->tables.study->count);
    while (!error && trial->count < trial->tables.study->count)
        error = make_point(trial, message);
    return error ? error
                 : duet__platform_load(values->platform ? values->platform : "cores",
                                       &trial->job->platform, message);
}

/* Removes a folder, also with files of a run that was ended while it wrote. */
static void remove_folder(const char *folder)
{
    g_autoptr(GDir) directory = g_dir_open(folder, 0, NULL);
    const char *name;
    while (directory && (name = g_dir_read_name(directory))) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        g_unlink(path);
    }
    g_rmdir(folder);
}

int duet__openmp_validate(struct duet__job *job)
{
    struct trial trial = {.job = job,
                          .program = job->program,
                          .tables = {.job = job, .study = duet__study_new()}};
    struct duet_message message = {""};
    struct duet__signals signals;
    duet__rounds_init(&trial.rounds);
    trial.rounds.cases = 1;
    duet__signals_hold(&signals, false); /* the folder is removed before a signal ends this */
    g_autofree char *folder = g_dir_make_tmp("duet-XXXXXX", NULL);
    int error = folder ? prepare(&trial, &message)
                       : duet_fail(&message, DUET_EIO, "there is no folder for temporary files");
    int status = error ? duet__job_refuse(error, &message) : DUET__DONE;
    if (!error)
        duet__warn_of_load();
    if (folder)
        trial.file = g_build_filename(folder, "graph.json", NULL);
    while (status == DUET__DONE && trial.rounds.round < trial.round_count)
        status = make_round(&trial);
    if (trial.rounds.round)
        status = status == DUET__DONE ? report(&trial) : (report(&trial), status);
    if (folder)
        remove_folder(folder);
    duet__signals_release(&signals);
    for (size_t i = 0; i < trial.count; i++) {
        duet__request_fini(&trial.points[i].request);
        g_free(trial.points[i].predicted_s);
        g_free(trial.points[i].measured_s);
    }
    g_free(trial.points);
    duet__rounds_fini(&trial.rounds);
    duet__study_free(trial.tables.study);
    g_free(trial.file);
    return status;
}
