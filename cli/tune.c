/* SPDX-License-Identifier: Apache-2.0 */
/* `duet tune`: the best settings of a problem on a machine, by simulation and then by runs. */
#include "study/tune.h"

#include <inttypes.h>
#include <stdlib.h>

#include <glib/gstdio.h>

#include "base/files.h"
#include "base/clock.h"
#include "cli/calibrate.h"
#include "cli/tables.h"

/* ------------------------------------------------------------------------------------------- */
/* The machine                                                                                  */

/* Finds the machine, and whether it is this one. */
static int find_platform(struct duet__tune *tune, const struct duet__job *job,
                         const struct duet__signals *signals)
{
    const struct duet__factor *given = duet__tune_factor(tune, "platform");
    const char *env = job->values.env, *host = g_get_host_name();
    int number = 0;
    tune->platform = given ? g_strdup(given->values->pdata[0])
                           : g_strdup_printf("./%.*s.json", (int)strcspn(host, "."), host);
    if (!given && !g_file_test(tune->platform, G_FILE_TEST_EXISTS))
        g_clear_pointer(&tune->platform, g_free);
    if (!tune->platform && (job->program || job->graph))
        return duet_fail(&tune->message, DUET_EINVAL,
                         "which machine? --platform NAME (duet list platforms shows them; duet "
                         "calibrate measures this one)");
    if (tune->platform && env && duet__files_same(env, tune->platform))
        return duet_fail(&tune->message, DUET_EINVAL, "--platform and --env are one file, %s", env);
    tune->here = !tune->platform || (g_str_has_suffix(tune->platform, ".json") &&
                                     duet__is_here(tune->platform, NULL, signals, &number));
    return number;
}

/* Calibrates as asked for, and leaves a result if that went well: a duet__execute_fn. */
static void calibrate(uint64_t number, FILE *result, void *options)
{
    if (!duet__calibrate(options))
        fputs("done", result);
}

/* Measures tiles into a file for this search, beside what the platform has if there is one, within
   a part of the budget. */
static int measure_tiles(struct duet__tune *tune, GArray *tiles,
                         const struct duet__signals *signals)
{
    enum { MOST_MIB = 64 };
    const struct duet__problem *problem = &tune->request.problem;
    const struct duet__workload *workload = tune->request.workload;
    struct duet__job job;
    struct duet__calibrate_options options =
        {.job = &job,
         .request = {.runs = &job.request,
                     .workloads = g_ptr_array_new(),
                     .traces = g_ptr_array_new(),
                     .chosen = true,
                     .tiles = {(uint64_t *)(void *)tiles->data, tiles->len},
                     .precisions = problem->precision == 's' ? "s" : "d",
                     .budget_s = fmax(tune->budget_s / 3, 0.1), /* calibrate takes no less */
                     .name = g_strdup("here")},
         .how = DUET_WRITE_MERGE};
    g_autofree char *text = NULL, *folder = g_dir_make_tmp("duet-tune-XXXXXX", NULL);
    g_autofree char *from = g_steal_pointer(&tune->platform);
    g_autoptr(GString) list = g_string_new(NULL);
    gsize length = 0;
    int error = 0, number = 0;
    duet__job_init(&job, &duet__calibrate_command, 0, NULL);
    job.in_table = job.values.quiet = true;
    duet__job_take_values(&job);
    g_ptr_array_add(options.request.workloads, (void *)(uintptr_t)workload);
    for (guint i = 0; i < tiles->len; i++)
        g_string_append_printf(list, "%s%" PRIu64, i ? "," : "", g_array_index(tiles, uint64_t, i));
    tune->calibrated = g_strdup_printf("measured for this, in %.3gs: tiles of %s",
                                       options.request.budget_s, list->str);
    if (!folder)
        error = duet_fail(&tune->message, DUET_EIO, "there is no room for a temporary file");
    options.out = tune->platform = folder ? g_build_filename(folder, "here.json", NULL) : NULL;
    if (!error && from)
        error = duet__read_all(from, MOST_MIB, &text, &length, &tune->message);
    if (!error && from && !g_file_set_contents(tune->platform, text, (gssize)length, NULL))
        error = duet_fail(&tune->message, DUET_EIO, "cannot copy %s", from);
    if (!error && !tune->quiet)
        fprintf(stderr, "duet: measuring %s with tiles of %s for %.3gs\n", workload->name,
                list->str, options.request.budget_s);
    if (!error && !duet__do_apart(calibrate, &options, signals, &number) && !number)
        error = duet_fail(&tune->message, DUET_ECANCELED, "this machine could not be measured");
    tune->budget_s -= options.request.budget_s;
    tune->start_s = duet__clock_s();
    duet__calibrate_request_fini(&options.request);
    duet__job_fini(&job);
    return error ? error : number;
}

/* ------------------------------------------------------------------------------------------- */
/* The command                                                                                  */

/* Finds machine, problem and settings. */
static int find_space(struct duet__tune *tune, struct duet__tables *tables,
                      const struct duet__signals *signals)
{
    struct duet__job *job = tables->job;
    GArray *missing = NULL;
    int error = duet__tune_check(tune);
    if (!error)
        error = find_platform(tune, job, signals);
    if (!error && !job->program && !job->graph) {
        duet__request_fini(&tune->request);
        error = duet__tables_cell(tables, 0, &job->request, &tune->request, &tune->message);
    }
    if (!error)
        error = duet__tune_tiles(tune, &missing);
    if (!error && missing->len)
        error = measure_tiles(tune, missing, signals);
    g_clear_pointer(&missing, g_array_unref);
    return error ? error : duet__tune_space(tune);
}

/* Finds the best settings, once options and files are known to be good. */
static int choose(struct duet__tune *tune, struct duet__tables *tables,
                  const struct duet__signals *signals)
{
    const struct duet__values *values = &tables->job->values;
    int error = find_space(tune, tables, signals);
    if (!error)
        error = duet__tables_plan(tables, &tune->message);
    if (!error)
        error = duet__store_open(&tables->store, values->out, DUET__STORE_WRITE, &tune->message);
    tables->store.line = tables->job->line;
    if (!error)
        error = duet__tune_search(tune);
    if (!error && tune->found->len && tune->here && !values->no_verify) {
        tables->command = &duet__run_command;
        tables->single = true;
        tables->plan.command = tables->command->name;
        tables->plan.jobs = 1;
        error = duet__store_close(&tables->store, &tune->message);
        if (!error)
            error = duet__store_open(&tables->store, NULL, DUET__STORE_WRITE, &tune->message);
        duet__warn_of_load();
        error = error ? error : duet__tune_run(tune);
    }
    return error ? error : duet__signals_take(signals, 0);
}

/* Reports what was found, or why nothing was. Returns the exit status. */
static int judge(const struct duet__tune *tune, const struct duet__job *job, int error)
{
    int status;
    if (error)
        return error > 0
                   ? duet__complain(DUET__SIGNALLED + error, "interrupted: nothing was chosen")
                   : duet__job_refuse(error, &tune->message);
    if (!tune->found->len)
        return tune->left_out
                   ? duet__complain(DUET__MISUSED, "no setting is possible: %s", tune->left_out)
                   : duet__complain(DUET__FAILED, "no simulation has ended");
    status = duet__tune_report(tune, job);
    return tune->refusal ? duet__complain(DUET__FAILED, "not all runs ended: %s", tune->refusal)
                         : status;
}

static int work(struct duet__job *job, int argc, char **argv)
{
    const struct duet__values *values = &job->values;
    struct duet__tables tables = {.job = job,
                                  .command = &duet__simulate_command,
                                  .study = duet__study_new()};
    struct duet__tune tune = {.study = tables.study,
                              .plan = &tables.plan,
                              .store = &tables.store,
                              .quiet = values->quiet,
                              .start_s = duet__clock_s(),
                              .budget_s = duet__given(job, "budget") ? values->budget_s : 30,
                              .verified = values->verified ? (unsigned)values->verified : 3};
    struct duet_message *message = &tune.message;
    struct duet__signals signals;
    int error = 0, status;
    duet__request_init(&tune.request);
    if (values->env && strcmp(values->env, "-") == 0)
        job->values.env = NULL;
    if (!(tune.budget_s >= 0.1))
        error = duet_fail(message, DUET_EINVAL, "--budget takes 0.1s or more, such as 30s");
    if (!error)
        error = duet__exclude(job, "verify", "no-verify", message);
    if (!error)
        error = duet__job_read_workload(job, argc, argv, message);
    if (!error)
        error = duet__files_distinct(job, message);
    if (!error && values->env)
        error = duet__file_check(values->env, message);
    if (!error)
        error = duet__tables_read(&tables, argc, argv, message);
    if (!error) {
        duet__signals_hold(&signals, false);
        error = choose(&tune, &tables, &signals);
        duet__signals_release(&signals);
    }
    status = judge(&tune, job, error);
    if (tune.calibrated && tune.platform) {
        g_autofree char *folder = g_path_get_dirname(tune.platform);
        g_unlink(tune.platform);
        g_rmdir(folder);
    }
    duet__tune_fini(&tune);
    (void)duet__tables_fini(&tables, NULL);
    return status;
}

const struct duet__command duet__tune_command = {
    .name = "tune",
    .description = "the best settings of a problem on a machine, by simulation, then by runs",
    .where = DUET__IN_TUNE,
    .arguments = "WORKLOAD | FILE | -- PROGRAM ARGUMENT...",
    .summary =
        "Looks for the best tile, policy, windows and workers of one problem on one machine: by "
        "simulations first,\nthen, where the machine is this one, by runs of the best few. Prints "
        "what it found, and variables by\nwhich programs take it.",
    .notes =
        "Options that take lists (duet study) say what is chosen among; where none has several "
        "values, it is tiles\nbetween those measured, policies, windows, workers, and whether GPUs "
        "may have panels. Without --platform it\nis this machine, by HOST.json here (duet "
        "calibrate), or measured now.\n\n"
        "Examples:\n"
        "  duet tune cholesky --n 40000 --platform idgraf\n"
        "  duet tune lu --n 20000 --platform idgraf --tile 480,960 --policy ws,heft,dmdas\n"
        "  duet tune cholesky --n 4096 --env tuned.env && env $(cat tuned.env) ./app",
    .work = work,
};
