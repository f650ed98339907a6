/* SPDX-License-Identifier: Apache-2.0 */
/* `duet study`, and `simulate` and `run` with options of several values: tables of runs. */
#include "cli/tables.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "base/files.h"
#include "base/stats.h"
#include "study/answer.h"
#include "study/study.h"
#include "runtime/open.h"

/* ------------------------------------------------------------------------------------------- */
/* From options with several values to a table                                                  */

/* True if an option of one value is given again later: the last one counts. */
static bool again(const struct duet__job *job, guint at)
{
    const struct duet__option *option = g_array_index(job->given, struct duet__given, at).option;
    bool later = false;
    for (guint i = at + 1; i < job->given->len && !duet__option_named(option); i++)
        later |= g_array_index(job->given, struct duet__given, i).option == option;
    return later;
}

/*
 * Makes a factor of a list in braces, "{256,512}" or "{1..8}", in one of the program's arguments.
 * The factor has the name of the option before the list, "block" in "--block={1..8}" and "--block
 * {1..8}", or else the number of the argument.
 */
static int take_list(struct duet__product *product, char **words, guint at,
                     struct duet_message *message)
{
    char *word = words[at], *own = word + strspn(word, "-");
    const char *before = words[at - 1] + strspn(words[at - 1], "-");
    g_autoptr(GRegex) list =
        g_regex_new("[{]([^{}= \"]*(?:,|[.][.])[^{}= \"]*)[}]", 0, G_REGEX_MATCH_DEFAULT, NULL);
    g_autoptr(GMatchInfo) found = NULL;
    g_autofree char *name = NULL, *values = NULL, *factor = NULL, *text = NULL;
    int start = 0, end = 0;
    if (!g_regex_match(list, word, 0, &found))
        return 0;
    (void)g_match_info_fetch_pos(found, 0, &start, &end);
    if (own + strcspn(own, "=") < word + start)
        name = g_strndup(own, strcspn(own, "="));
    else if (at > 1 && !start && before != words[at - 1])
        name = g_strndup(before, strcspn(before, "={"));
    factor = g_strconcat("arg ", name, NULL);
    if (!name || !*name || duet__factor_place(product, factor) >= 0) {
        g_free(name);
        name = g_strdup_printf("%u", at);
        g_free(factor);
        factor = g_strconcat("arg ", name, NULL);
    }
    if (g_regex_match(list, word + end, 0, NULL) || duet__factor_place(product, factor) >= 0)
        return duet_fail(message, DUET_EINVAL,
                         "argument %s has a list without a name of its own: write {A} in its "
                         "place, and --arg A=LIST",
                         word);
    values = g_match_info_fetch(found, 1);
    text = g_strconcat(name, "=", values, NULL);
    words[at] = g_strdup_printf("%.*s{%s}%s", start, word, name, word + end);
    g_free(word);
    return duet__study_add(product, duet__option_find("arg", DUET__FACTOR), text, message);
}

int duet__tables_read(struct duet__tables *tables, int argc, char *const *argv,
                      struct duet_message *message)
{
    struct duet__job *job = tables->job;
    struct duet__study *study = tables->study;
    struct duet__product *product = study->products->pdata[0];
    char **program = duet__request_keep(&job->request, g_strdupv(job->program));
    const unsigned factors = duet__job_factors(job);
    int error = 0;
    for (int i = 1; i < argc && !error; i++)
        error = duet__study_add(product, NULL, argv[i], message);
    for (guint i = 0; i < job->given->len && !error; i++) {
        const struct duet__given *given = &g_array_index(job->given, struct duet__given, i);
        if (given->option->where & factors && !again(job, i))
            error = duet__study_add(product, given->option, given->text, message);
    }
    const bool lists = program && program[0] && duet__option_find("arg", job->command->where);
    for (guint i = 1; lists && program[i] && !error; i++)
        error = take_list(product, program, i, message);
    for (char **word = program; word && *word; word++)
        duet__request_keep(&job->request, *word);
    job->program = program;
    if (!error && job->values.cases)
        error = duet__study_read(study, job->values.cases, job->command->where | factors, message);
    study->program = job->program;
    return error ? error : duet__study_number(study, message);
}

int duet__tables_cell(const struct duet__tables *tables, uint64_t cell,
                      const struct duet__request *base, struct duet__request *request,
                      struct duet_message *message)
{
    struct duet__job *job = tables->job;
    const struct duet__product *product = duet__study_product(tables->study, cell);
    struct duet__values values = job->values;
    const char *workload = NULL;
    int error = 0;
    duet__request_copy(request, base);
    for (guint f = 0; f < product->factors->len && !error; f++) {
        const struct duet__factor *factor = product->factors->pdata[f];
        const char *value = duet__study_value(product, cell, f);
        if (factor->option)
            error = duet__option_set(factor->option, &values, factor->name, value, message);
        else
            workload = value;
    }
    request->config = values.config;
    request->config.policy = NULL;
    request->config.strict = base->config.strict;
    if (!error)
        error = duet__request_set_policies(request, values.config.policy, message);
    if (!error && !job->program)
        error = duet__job_find_workload(job, workload, &request->workload, message);
    if (!error && request->workload)
        error = duet__job_take_problem(&values, request, message);
    if (!error)
        error = duet__request_set_priorities(request, values.config.priorities, message);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* A cell                                                                                       */

/* Sets the options of a cell: the given ones that are no factors, and the cell's own. */
static int set_options(struct duet__job *job, const struct duet__tables *tables, uint64_t cell,
                       const char **workload, struct duet_message *message)
{
    const struct duet__product *product = duet__study_product(tables->study, cell);
    const GArray *given = tables->job->given;
    int error = 0;
    for (guint i = 0; i < given->len && !error; i++) {
        const struct duet__given *one = &g_array_index(given, struct duet__given, i);
        if (one->option->where & job->command->where && !(one->option->where & DUET__FACTOR))
            error = duet__job_set(job, one->option, one->text, message);
    }
    for (guint f = 0; f < product->factors->len && !error; f++) {
        const struct duet__factor *factor = product->factors->pdata[f];
        const char *value = duet__study_value(product, cell, f);
        if (!factor->option)
            *workload = value;
        else
            error = duet__job_set(job, factor->option, value, message);
    }
    return error;
}

/* Makes one run of a cell: a duet__execute_fn, of struct duet__tables. */
static void execute_cell(uint64_t number, FILE *result, void *data)
{
    struct duet__tables *tables = data;
    const uint64_t cell = number % tables->study->count, rep = number / tables->study->count;
    g_auto(GStrv) program = duet__cell_program(tables->study, cell);
    struct duet_message message = {""};
    const struct duet__platform *platform = NULL;
    struct duet__platform own;
    const char *workload = NULL;
    struct duet__job job;
    int error;
    duet__job_init(&job, tables->command, 0, NULL);
    job.in_table = true;
    job.program = program;
    /* each option was checked when it was taken */
    error = set_options(&job, tables, cell, &workload, &message);
    if (!error) {
        job.values.quiet = true;
        job.values.wall |= tables->job->command->where & (DUET__IN_STUDY | DUET__IN_TUNE);
        job.values.jobs = 1;
        job.values.config.seed = tables->plan.seed + rep;
        if (job.command == &duet__simulate_command || tables->single)
            job.values.reps = 1;
        duet__job_take_values(&job);
        if (job.values.platform && tables->platforms)
            platform = g_hash_table_lookup(tables->platforms, job.values.platform);
    }
    if (platform) { /* the table's, with times of its own: the run changes these */
        own = *platform;
        own.calibration = (struct duet__calibration){0};
        error = duet__calibration_copy(&own.calibration, &platform->calibration, &message);
        job.platform = &own;
    }
    if (!error)
        duet__job_rows(&job, workload, result);
    else
        fputs("{\"status\": 2, \"error\": \"an option was not taken\"}", result);
    if (platform)
        duet__calibration_fini(&own.calibration);
    job.platform = platform ? NULL : job.platform;
    duet__job_fini(&job);
}

int duet__tables_fini(struct duet__tables *tables, struct duet_message *message)
{
    int error = duet__store_close(&tables->store, message);
    duet__study_free(tables->study);
    if (tables->platforms)
        g_hash_table_unref(tables->platforms);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* The table                                                                                    */

/* Reads "I/K", from 1/K on. */
static int read_part(const char *option, const char *text, uint64_t *part, uint64_t *parts,
                     struct duet_message *message)
{
    char *end = NULL;
    uint64_t first = g_ascii_isdigit(*text) ? g_ascii_strtoull(text, &end, 10) : 0, second = 0;
    if (end && *end == '/' && g_ascii_isdigit(end[1]))
        second = g_ascii_strtoull(end + 1, &end, 10);
    if (!first || !second || *end || first > second || second > 1000000)
        return duet_fail(message, DUET_EINVAL,
                         "%s takes a part of a whole, \"1/4\", from 1/K to K/K, not '%s'", option,
                         text);
    *part = first;
    *parts = second;
    return 0;
}

static void free_platform(void *platform)
{
    duet__platform_free(platform);
}

/* Loads a platform for the cells that are simulated on it. */
static int take_platform(struct duet__tables *tables, const char *name,
                         struct duet_message *message)
{
    struct duet__platform *platform = NULL;
    int error;
    if (!tables->platforms)
        tables->platforms = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_platform);
    if (g_hash_table_contains(tables->platforms, name))
        return 0;
    error = duet__platform_load(name, &platform, message);
    if (!error)
        g_hash_table_insert(tables->platforms, g_strdup(name), platform);
    return error;
}

/* Refuses --arg NAME where no argument of the program has "{NAME}" in it. */
static int check_argument(const struct duet__job *job, const struct duet__factor *factor,
                          struct duet_message *message)
{
    const bool argument = g_str_has_prefix(factor->name, "arg ");
    const char *name = argument ? factor->name + strlen("arg ") : "";
    g_autofree char *place = g_strdup_printf("{%s}", name);
    bool used = !argument;
    for (char **word = job->program; word && *word; word++)
        used |= strstr(*word, place) != NULL;
    return used ? 0
                : duet_fail(message, DUET_EINVAL, "--arg %s: no argument behind -- has %s in it",
                            name, place);
}

/* Refuses a product that lacks a value of --arg NAME which another one has: its program would be
   given "{NAME}" itself. */
static int check_lists(const struct duet__product *product, const struct duet__product *other,
                       struct duet_message *message)
{
    for (guint f = 0; f < other->factors->len; f++) {
        const struct duet__factor *factor = other->factors->pdata[f];
        if (g_str_has_prefix(factor->name, "arg ") && duet__factor_place(product, factor->name) < 0)
            return duet_fail(message, DUET_EINVAL,
                             "a case has no value for {%s} in the program's arguments: give it "
                             "\"arg\", or all cases --arg %s=LIST",
                             factor->name + strlen("arg "), factor->name + strlen("arg "));
    }
    return 0;
}

/* Refuses a product in which something is missing or does not exist, before any run is made. */
static int check_product(struct duet__tables *tables, const struct duet__product *product,
                         struct duet_message *message)
{
    const struct duet__workload *ignored;
    bool platform = tables->command != &duet__simulate_command, workload = tables->job->program;
    int error = 0;
    for (guint f = 0; f < product->factors->len && !error; f++) {
        const struct duet__factor *factor = product->factors->pdata[f];
        error = check_argument(tables->job, factor, message);
        platform |= !strcmp(factor->name, "platform");
        for (guint v = 0; !strcmp(factor->name, "platform") && v < factor->values->len && !error;
             v++)
            error = take_platform(tables, factor->values->pdata[v], message);
        workload |= !factor->option;
        if (!factor->option && tables->job->program)
            error = duet__job_take_program(tables->job, factor->values->pdata[0],
                                           &tables->job->request, message);
        for (guint v = 0; !factor->option && v < factor->values->len && !error; v++)
            if (!g_file_test(factor->values->pdata[v], G_FILE_TEST_EXISTS))
                error = duet__job_find_workload(tables->job, factor->values->pdata[v], &ignored,
                                                message);
    }
    if (!error && !workload)
        error = duet__job_find_workload(tables->job, NULL, &ignored, message);
    if (!error && !platform)
        error = duet_fail(message, DUET_EINVAL,
                          "which machine? --platform NAME (duet list platforms shows them)");
    return error;
}

int duet__tables_plan(struct duet__tables *tables, struct duet_message *message)
{
    const struct duet__values *values = &tables->job->values;
    struct duet__plan *plan = &tables->plan;
    const GPtrArray *products = tables->study->products;
    const bool simulated = tables->command == &duet__simulate_command;
    struct duet__graph_models models;
    int error = duet__find_starpu(tables->job, &models, message);
    if (error)
        return error;
    *plan =
        (struct duet__plan){.study = tables->study,
                            .command = tables->command->name,
                            .version = duet_version(),
                            .build = *DUET_BUILD_COMMIT ? DUET_BUILD_COMMIT : NULL,
                            .models = duet__request_keep(&tables->job->request,
                                                         g_strdup_printf("%s:%s", models.directory,
                                                                         models.host)),
                            .seed = values->config.seed,
                            .reps = !simulated                             ? 1
                                    : values->reps                         ? values->reps
                                    : duet__given(tables->job, "interval") ? DUET_PREDICTIVE_USUAL
                                                                           : 1,
                            .part = 1,
                            .parts = 1,
                            .shards = 1,
                            .retry = values->retry,
                            .jobs = simulated ? (unsigned)values->jobs : 1,
                            .execute = execute_cell,
                            .fresh = simulated && !tables->job->program ? duet__is_fresh : NULL,
                            .data = tables};
    if (values->fraction)
        error = read_part("--fraction", values->fraction, &plan->part, &plan->parts, message);
    if (!error && values->shard) {
        error = read_part("--shard", values->shard, &plan->shard, &plan->shards, message);
        plan->shard--;
    }
    for (guint p = 0; p < products->len && !error; p++) {
        error = check_product(tables, products->pdata[p], message);
        if (!error && p)
            error = check_lists(products->pdata[p], products->pdata[p - 1], message);
        if (!error && p)
            error = check_lists(products->pdata[p - 1], products->pdata[p], message);
    }
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* The runs                                                                                     */

/* Prints one line if wanted runs, made now or before, have no result. Returns the exit status. */
static int judge(const struct duet__outcome *outcome)
{
    const uint64_t asked = outcome->there + outcome->made;
    if (outcome->refused && outcome->refused == asked)
        return duet__complain(DUET__MISUSED, "no run is possible: %s", outcome->example);
    if (outcome->failed + outcome->refused) /* the table says why */
        return duet__complain(DUET__FAILED, "%" PRIu64 " of %" PRIu64 " runs have no result",
                              outcome->failed + outcome->refused, asked);
    return DUET__DONE;
}

/* Makes the runs that are not in the store. Returns the exit status. */
static int make(struct duet__tables *tables)
{
    struct duet_message message = {""};
    struct duet__progress progress;
    struct duet__outcome outcome = {0};
    const struct duet__ranks *ranks = tables->plan.ranks;
    int status, error;
    duet__progress_init(&progress, !tables->job->values.quiet, 0, 0);
    error = duet__study_make(&tables->plan, &tables->store, &progress, &outcome, &message);
    status = error == DUET_EIO
                 ? duet__complain(DUET__FAILED, "%s; the same command goes on with what is there",
                                  message.text)
             : error ? duet__complain(duet__status_of(error), "%s", message.text)
                     : judge(&outcome);
    if (ranks && outcome.lost)
        duet__complain(DUET__DONE, "lost with other ranks, and made again: %" PRIu64 " runs",
                       outcome.lost);
    if (ranks && *ranks->trouble.text)
        duet__complain(DUET__DONE, "without %s", ranks->trouble.text);
    if (outcome.number)
        status = duet__complain(DUET__SIGNALLED + outcome.number,
                                "interrupted: %" PRIu64 " of %" PRIu64 " runs are finished",
                                outcome.there + outcome.made, outcome.total);
    g_free(outcome.example);
    return status;
}

/* Prints the table, or the part of it that exists. */
static int print(struct duet__tables *tables, const char *best)
{
    const struct duet__values *values = &tables->job->values;
    struct duet_message message = {""};
    tables->store.named = tables->study->products->pdata[0];
    int error = values->csv ? duet__study_csv(stdout, &tables->store, &message)
                : values->table && *values->table == 'l'
                    ? duet__study_latex(stdout, &tables->store, best, &message)
                    : duet__study_show(stdout, &tables->store, best, values->verbose, &message);
    int status = error ? duet__job_refuse(error, &message) : duet__finish_output();
    if (!error && values->html &&
        duet__study_page(values->html, &tables->store, best, tables->job->line, &message))
        status = duet__complain(DUET__FAILED, "%s", message.text);
    if (!error && values->svg) {
        *message.text = '\0';
        error = duet__study_charts(values->svg, &tables->store, best, &message);
        if (*message.text)
            status = duet__complain(error ? DUET__FAILED : status, "%s", message.text);
    }
    return status;
}

/* ------------------------------------------------------------------------------------------- */
/* The commands                                                                                 */

int duet__tabulate(struct duet__job *job, int argc, char *const *argv)
{
    static const char *const of_one[] = {"json", "trace", "gantt", "html", "machine-xml"};
    struct duet__tables tables = {.job = job, .command = job->command, .study = duet__study_new()};
    struct duet_message message = {""};
    int error = 0, status, shown;
    for (size_t i = 0; i < G_N_ELEMENTS(of_one) && !error; i++)
        if (duet__given(job, of_one[i]))
            error = duet_fail(&message, DUET_EINVAL,
                              "--%s is of one setting, and there are options with several values",
                              of_one[i]);
    if (!error && argc > 2)
        error = duet_fail(&message, DUET_EINVAL, "one workload at a time: '%s' is one too many",
                          argv[2]);
    if (!error)
        error = duet__tables_read(&tables, argc, argv, &message);
    if (!error)
        error = duet__tables_plan(&tables, &message);
    if (!error)
        error = duet__store_open(&tables.store, NULL, DUET__STORE_WRITE, &message);
    if (error) {
        status = duet__job_refuse(error, &message);
    } else {
        status = make(&tables);
        shown = status == DUET__MISUSED ? status : print(&tables, "");
        status = status ? status : shown;
    }
    (void)duet__tables_fini(&tables, NULL);
    return status;
}

/* Puts the results of other files into this one. Returns the exit status. */
static int merge(struct duet__tables *tables, int argc, char *const *argv)
{
    struct duet_message message = {""};
    int status = DUET__DONE;
    if (argc < 2)
        return duet__complain(DUET__MISUSED,
                              "--merge takes the files to be merged: duet study --out all.db "
                              "--merge part-*.db");
    for (int i = 1; i < argc && status == DUET__DONE; i++) {
        uint64_t added, differing = 0;
        int error = g_file_test(argv[i], G_FILE_TEST_IS_REGULAR)
                        ? duet__store_merge(&tables->store, argv[i], &added, &differing, &message)
                        : duet_fail(&message, DUET_EINVAL, "there is no file %s", argv[i]);
        if (error)
            status = duet__complain(error == DUET_EIO ? DUET__FAILED : DUET__MISUSED, "%s",
                                    message.text);
        else if (differing)
            duet__complain(DUET__DONE,
                           "%" PRIu64 " runs of %s are here with other makespans, and stay so",
                           differing, argv[i]);
    }
    return status;
}

/* Executes the command once the file is open. Returns the exit status. */
static int work_on(struct duet__tables *tables, int argc, char *const *argv)
{
    const struct duet__values *values = &tables->job->values;
    int status = DUET__DONE, shown;
    tables->store.line = tables->job->line;
    if (values->merge)
        status = merge(tables, argc, argv);
    else if (!values->show)
        status = make(tables);
    if (status == DUET__MISUSED)
        return status;
    shown = print(tables, values->best);
    return status ? status : shown;
}

static int work(struct duet__job *job, int argc, char **argv)
{
    const struct duet__values *values = &job->values;
    struct duet__tables tables = {.job = job,
                                  .command = &duet__simulate_command,
                                  .study = duet__study_new()};
    struct duet__ranks ranks = {.count = 1};
    struct duet_message message = {""};
    g_autofree char *shard =
        values->shard
            ? g_strdup_printf("study-%.*s.db", (int)strcspn(values->shard, "/"), values->shard)
            : NULL;
    const char *path = values->out ? values->out : shard ? shard : "study.db";
    bool table = !values->show && !values->merge;
    int error = 0, status;
    ranks.rank = duet__launched_as(&ranks.count);
    if (table && ranks.count > 1 && !ranks.rank)
        error = duet__ranks_meet(&ranks, &message);
    if (table && !error)
        error = duet__tables_read(&tables, argc, argv, &message);
    if (!error && !table && (job->several || (values->show && argc > 1)))
        error = duet_fail(&message, DUET_EINVAL,
                          "--%s makes no runs: it takes no workloads and their options",
                          values->show ? "show" : "merge");
    if (!error)
        error = duet__exclude(job, "show", "merge", &message);
    if (!error)
        error = duet__files_distinct(job, &message);
    if (!error && values->html && duet__files_same(values->html, path))
        error = duet_fail(&message, DUET_EINVAL, "--html and --out are one file, %s", path);
    if (!error && values->html && !ranks.rank && duet__file_check(values->html, &message))
        error = DUET_EINVAL;
    if (!error && values->svg && !ranks.rank && g_mkdir_with_parents(values->svg, 0777))
        error = duet_fail(&message, DUET_EINVAL, "--svg: cannot make the folder %s: %s",
                          values->svg, g_strerror(errno));
    if (!error && values->table && strcmp(values->table, "text") != 0 &&
        strcmp(values->table, "latex") != 0)
        error = duet_fail(&message, DUET_EINVAL, "--table takes text or latex, not '%s'",
                          values->table);
    if (!error)
        error = duet__exclude(job, "csv", "table", &message);
    if (!error && table)
        error = duet__tables_plan(&tables, &message);
    if (ranks.count > 1)
        tables.plan.ranks = &ranks;
    if (ranks.rank) {
        if (table)
            duet__ranks_serve(&tables.plan, &message);
        (void)duet__tables_fini(&tables, NULL);
        return DUET__DONE;
    }
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error like a full disk */
    if (!error)
        error = duet__store_open(&tables.store, path,
                                 values->show ? DUET__STORE_SHOW : DUET__STORE_WRITE, &message);
    if (error) {
        status = duet__job_refuse(error, &message);
    } else {
        if (!values->out && !values->quiet)
            fprintf(stderr, "duet: results are in %s\n", path);
        status = work_on(&tables, argc, argv);
    }
    error = duet__tables_fini(&tables, &message);
    if (error && status == DUET__DONE)
        status = duet__complain(DUET__FAILED, "%s", message.text);
    return status;
}

const struct duet__command duet__study_command = {
    .name = "study",
    .description = "which setting is best: tables of simulations, their results in one file",
    .where = DUET__IN_STUDY,
    .arguments = "WORKLOAD... | FILE... | -- PROGRAM ARGUMENT...",
    .summary =
        "Simulates all combinations of what options say, which take lists and ranges, into one "
        "SQLite file, and\nprints for each case the best setting and how sure that is. What is in "
        "the file is not simulated again.",
    .notes =
        "Values: A,B,C, A..B (steps of 1), A..B:STEP, A..B*FACTOR; of policies also all. Options "
        "with names\ntake a list for each: --link pcie=1x,2x. Flags: --set-arch=0,1.\n\n"
        "Run r of each cell (from 0) has seed S + r, so that differences between cells are not "
        "those of random\nnumbers. All cells are simulated once before any again, in an order "
        "that is spread over all factors: what\nis there after a while says something about all "
        "of it.\n\n"
        "Examples:\n"
        "  duet study cholesky --platform idgraf --n 9600..38400:9600 --tile 480,960 --gpus 1..8 "
        "\\\n"
        "      --policy all --out idgraf.db\n"
        "  duet study --out idgraf.db --show --best tile,policy\n"
        "  duet study --out all.db --merge part-*.db",
    .work = work,
};
